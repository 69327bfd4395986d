//! Properties of loaders and splits for random lengths, batch sizes and numbers of workers.

use namegrad::data::{Dataset, Loader, Samples, Stream};
use namegrad::prelude::*;
use proptest::prelude::*;

fn flat(batches: &[Vec<i64>]) -> Vec<i64> {
    batches.concat()
}

fn epoch(loader: &Loader<Tensor>) -> Vec<Vec<i64>> {
    loader.iter().map(|batch| batch.unwrap().to_vec::<i64>().unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_epoch_has_each_sample_once(
        len in 1usize..60, batch_size in 1usize..20, workers in 0usize..4, prefetch in 1usize..6,
        shuffle: bool, drop_last: bool, seed: u64,
    ) {
        prop_assume!(!drop_last || len >= batch_size);
        let data = Samples::new((0..len as i64).collect::<Vec<_>>());
        let of = |workers| {
            Loader::builder(data.clone()).batch_size(batch_size).shuffle(shuffle).drop_last(drop_last)
                .seed(seed).workers(workers).prefetch(prefetch).build().unwrap()
        };
        let (loader, other) = (of(workers), of(0));
        for _ in 0..2 {
            let batches = epoch(&loader);
            prop_assert_eq!(&batches, &epoch(&other));
            prop_assert_eq!(batches.len(), loader.len().unwrap());
            let full = batches.iter().filter(|batch| batch.len() == batch_size).count();
            prop_assert!(full == batches.len() || !drop_last && full + 1 == batches.len());
            let mut all = flat(&batches);
            prop_assert_eq!(all.len(), if drop_last { len - len % batch_size } else { len });
            if !shuffle {
                prop_assert!(all.is_sorted());
            }
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len(), batches.iter().map(Vec::len).sum::<usize>());
        }
    }

    #[test]
    fn a_stream_has_each_sample_once(
        len in 1usize..60, batch_size in 1usize..20, workers in 0usize..4, buffer in 1usize..80, seed: u64,
    ) {
        let stream = Stream::new(move || 0..len as i64).shuffle_buffer(buffer);
        let of = |workers| {
            Loader::builder(stream.clone()).batch_size(batch_size).seed(seed).workers(workers).build().unwrap()
        };
        let batches = epoch(&of(workers));
        prop_assert_eq!(&batches, &epoch(&of(0)));
        let mut all = flat(&batches);
        all.sort_unstable();
        prop_assert_eq!(all, (0..len as i64).collect::<Vec<_>>());
    }

    #[test]
    fn folds_and_splits_partition(len in 2usize..60, k in 2usize..10, seed: u64, fraction in 0.0f64..1.0) {
        let data = || Samples::new((0..len as i64).collect::<Vec<_>>());
        let all = |parts: &[&[usize]]| {
            let mut all = parts.concat();
            all.sort_unstable();
            all
        };
        match data().k_folds(k, seed) {
            Err(error) => prop_assert!(k > len && error.kind() == ErrorKind::Value),
            Ok(folds) => {
                prop_assert_eq!(folds.len(), k);
                for [train, test] in &folds {
                    prop_assert_eq!(all(&[train.indices(), test.indices()]), (0..len).collect::<Vec<_>>());
                    prop_assert!(test.len() == len / k || test.len() == len / k + 1);
                }
                let tests: Vec<&[usize]> = folds.iter().map(|[_, test]| test.indices()).collect();
                prop_assert_eq!(all(&tests), (0..len).collect::<Vec<_>>());
            }
        }
        match data().random_split([fraction, 1.0 - fraction], seed) {
            Err(error) => prop_assert!(error.message().contains("is empty"), "{}", error),
            Ok([one, two]) => {
                prop_assert_eq!(all(&[one.indices(), two.indices()]), (0..len).collect::<Vec<_>>());
                prop_assert!((one.len() as f64 - len as f64 * fraction).abs() <= 1.0);
            }
        }
    }
}

#[test]
fn bad_splits() {
    let data = || Samples::new(vec![1, 2, 3]);
    let kind = |error: Error| {
        assert_eq!(error.location().file(), file!());
        error.kind()
    };
    for lengths in [[1, 1], [2, 2], [usize::MAX, 4], [3, 0]] {
        assert_eq!(kind(data().random_split(lengths, 0).unwrap_err()), ErrorKind::Value);
    }
    for fractions in [[0.5, 0.6], [-0.5, 1.5], [f64::NAN, 1.0], [0.0, 1.0]] {
        assert_eq!(kind(data().random_split(fractions, 0).unwrap_err()), ErrorKind::Value);
    }
    for k in [0, 1, 4, usize::MAX] {
        let error = data().k_folds(k, 0).unwrap_err();
        assert!(error.message().contains(&format!("{k} folds of 3 samples")));
        assert_eq!(kind(error), ErrorKind::Value);
    }
    let error = Samples::new(vec![1i64, 2])
        .map(|x| if x == 2 { Err(Error::new(ErrorKind::Io, "read", "no")) } else { Ok(x) });
    assert_eq!(error.filter(|_| true).unwrap_err().message(), "sample 1: no");
}
