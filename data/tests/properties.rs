//! Properties of loaders and splits for random lengths, batch sizes and numbers of workers.

use namegrad::data::{Csv, Dataset, Loader, Samples, Stream, idx};
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Files are not trusted: an error at worst, and no panic.
    #[test]
    fn any_bytes_are_read_or_refused(
        letters in proptest::collection::vec(0usize..10, 0..60), header: bool, drop_missing: bool, categories: bool,
    ) {
        let alphabet = [b',', b'\n', b'\r', b'"', b'1', b'.', b'a', b' ', 0xff, 0xbb];
        let bytes: Vec<u8> = letters.into_iter().map(|letter| alphabet[letter]).collect();
        let csv = Csv::from_bytes(bytes).header(header).drop_missing(drop_missing);
        let csv = if categories { csv.categories([0]) } else { csv };
        if let Ok(table) = csv.read() {
            prop_assert!(table.len() > 0);
        }
        if let Ok(stream) = csv.stream() {
            prop_assert!(Loader::new(stream.map(|row| row.number(0)), 3).unwrap().iter().count() < 60);
        }
    }

    #[test]
    fn any_header_of_idx_is_read_or_refused(
        code in 0u8..20, sizes in proptest::collection::vec(0u32..5, 0..5), rest in 0usize..40, high: bool,
    ) {
        let mut bytes = vec![0, 0, code, sizes.len() as u8];
        bytes.extend(sizes.iter().flat_map(|size| size.to_be_bytes()));
        if high && bytes.len() > 4 {
            bytes[4] = 255;
        }
        bytes.extend(vec![1; rest]);
        if let Ok(x) = idx::from_bytes(bytes) {
            prop_assert_eq!(x.numel() * x.dtype().itemsize(), rest);
        }
    }

    /// The line of an error counts blank lines and line ends in quotes, however lines end.
    #[test]
    fn the_line_of_an_error_is_that_of_its_row(
        rows in proptest::collection::vec(0usize..4, 1..30), end in 0usize..2, last: bool,
    ) {
        let end = ["\n", "\r\n"][end];
        let mut lines = vec!["a,b"];
        for row in rows {
            lines.extend([&["1,x"][..], &[""], &["2,\"x", "", "y\""], &["", "3,x"]][row]);
        }
        lines.push("oops,x");
        let line = lines.len();
        let text = lines.join(end) + if last { end } else { "" };
        let error = Csv::from_bytes(text.into_bytes()).categories(["b"]).read().unwrap_err();
        let expected = format!("the bytes: line {line}, column 'a': 'oops' is not a number");
        prop_assert_eq!(error.message(), &expected);
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

#[test]
fn indices_of_subsets_are_checked() {
    let error = Samples::new(vec![1, 2]).subset([1, 2]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Index);
    assert_eq!(error.location().file(), file!());
    let subset = Samples::new(vec![1, 2]).subset([1, 1, 0]).unwrap();
    assert_eq!((0..3).map(|index| subset.get(index).unwrap()).collect::<Vec<_>>(), [2, 2, 1]);
    assert_eq!(subset.get(3).unwrap_err().kind(), ErrorKind::Index);
}
