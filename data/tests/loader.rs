//! Loaders: the same batches for any number of workers, errors and panics with the index of the sample, no
//! thread left, and bad settings.

use namegrad::data::sampler::{Bucketed, Distributed, Epoch, Random, SubsetRandom, Weighted};
use namegrad::data::{Collation, Dataset, Loader, LoaderBuilder, Samples, Stream, TensorDataset, Windows};
use namegrad::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Numbers with random noise, as from an augmentation, which take different times to read.
struct Noisy {
    len: usize,
    reads: Arc<AtomicUsize>,
}

impl Noisy {
    fn new(len: usize) -> Noisy {
        Noisy { len, reads: Arc::default() }
    }
}

impl Dataset for Noisy {
    type Sample = (Tensor, i64);

    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize) -> Result<(Tensor, i64)> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if index.is_multiple_of(7) {
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok((Tensor::rand([("feature", 2)])?.add(index as f64)?, index as i64))
    }
}

/// All that two epochs give.
fn two_epochs<B: Send + 'static>(loader: &Loader<B>) -> Result<Vec<B>> {
    let mut batches = loader.iter().collect::<Result<Vec<B>>>()?;
    batches.extend(loader.iter().collect::<Result<Vec<B>>>()?);
    Ok(batches)
}

fn numbers(batches: &[(Tensor, Tensor)]) -> Result<Vec<(Vec<f32>, Vec<i64>)>> {
    batches.iter().map(|(x, y)| Ok((x.to_vec()?, y.to_vec()?))).collect()
}

#[test]
fn any_number_of_workers_gives_the_same_batches() -> Result<()> {
    let mut expected = None;
    for (workers, prefetch) in [(0, 1), (1, 1), (2, 1), (2, 4), (5, 3), (3, 100)] {
        let builder = Loader::builder(Noisy::new(50)).batch_size(8).shuffle(true).seed(3);
        let loader = builder.workers(workers).prefetch(prefetch).build()?;
        let found = numbers(&two_epochs(&loader)?)?;
        assert_eq!(found.len(), 14);
        assert_eq!(*expected.get_or_insert(found.clone()), found, "{workers} workers, {prefetch} ahead");
    }
    let batches = expected.unwrap_or_default();
    let order = |epoch: usize| batches[7 * epoch..][..7].iter().flat_map(|batch| batch.1.clone());
    assert_ne!(order(0).collect::<Vec<_>>(), order(1).collect::<Vec<_>>());
    for epoch in [0, 1] {
        let mut all: Vec<i64> = order(epoch).collect();
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<i64>>());
    }
    // The noise differs from sample to sample and from epoch to epoch.
    let mut noise: Vec<f32> = batches.iter().flat_map(|batch| &batch.0).map(|x| x.fract()).collect();
    noise.sort_by(f32::total_cmp);
    noise.dedup();
    assert!(noise.len() > 190, "{} different numbers of 200", noise.len());
    Ok(())
}

#[test]
fn the_seed_comes_from_the_default_generator() -> Result<()> {
    let seed = || -> Result<u64> { Ok(Loader::builder(Noisy::new(5)).shuffle(true).build()?.seed()) };
    let mut generator = namegrad::core::random::Generator::from_seed(1);
    let first = generator.scope(|| Ok::<_, Error>([seed()?, seed()?]))?;
    assert_ne!(first[0], first[1]);
    generator.manual_seed(1);
    assert_eq!(generator.scope(seed)?, first[0]);
    Ok(())
}

#[test]
fn a_stream_is_the_same_for_any_number_of_workers() -> Result<()> {
    manual_seed(1);
    let mut expected = None;
    for workers in [0, 1, 3] {
        let stream = Stream::new(|| 0..103).map(|x: i64| {
            std::thread::sleep(Duration::from_micros(50 * (x % 3) as u64));
            Ok((x, Tensor::rand([("feature", 2)])?))
        });
        let stream = stream.shuffle_buffer(20);
        let loader = Loader::builder(stream).batch_size(10).workers(workers).seed(5).build()?;
        let batches = two_epochs(&loader)?;
        let found: Vec<(Vec<i64>, Vec<f32>)> =
            batches.iter().map(|(x, noise)| Ok((x.to_vec()?, noise.to_vec()?))).collect::<Result<_>>()?;
        assert_eq!(found.iter().map(|batch| batch.0.len()).collect::<Vec<_>>()[9..12], [10, 3, 10]);
        let mut all: Vec<i64> = found[..11].iter().flat_map(|batch| batch.0.clone()).collect();
        assert_ne!(all, (0..103).collect::<Vec<_>>());
        all.sort_unstable();
        assert_eq!(all, (0..103).collect::<Vec<_>>());
        assert_eq!(*expected.get_or_insert(found.clone()), found, "{workers} workers");
    }
    Ok(())
}

/// Counts the values that exist.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Counted {
        count.fetch_add(1, Ordering::SeqCst);
        Counted(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn an_early_end_leaves_no_thread_and_no_batch() -> Result<()> {
    let (alive, reads) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (made, read) = (alive.clone(), reads.clone());
    let data = Samples::new((0..1000).collect::<Vec<i64>>()).map(move |_| {
        read.fetch_add(1, Ordering::SeqCst);
        Ok(Counted::new(&made))
    });
    let loader = Loader::builder_with(data, |samples, _| Ok(samples));
    let loader = loader.batch_size(10).workers(3).prefetch(4).build()?;
    for (taken, batch) in (1..).zip(loader.iter()) {
        assert_eq!(batch?.len(), 10);
        if taken == 3 {
            break;
        }
    }
    // The threads were joined: nothing is read any more, and whatever they had made is gone.
    let after = reads.load(Ordering::SeqCst);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    assert!(after <= (3 + 4 + 1) * 10, "{after} samples were read");
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(reads.load(Ordering::SeqCst), after);
    assert_eq!(Arc::strong_count(&reads), 2, "one here, one in the loader");
    Ok(())
}

#[test]
fn prefetch_is_bounded() -> Result<()> {
    let reads = Arc::new(AtomicUsize::new(0));
    let data = Noisy { len: 1000, reads: reads.clone() };
    let loader = Loader::builder(data).batch_size(1).workers(4).prefetch(3).build()?;
    let mut batches = loader.iter();
    for taken in 1..5 {
        batches.next().unwrap()?;
        std::thread::sleep(Duration::from_millis(20));
        let read = reads.load(Ordering::Relaxed);
        assert!(read <= taken + 3, "{read} samples read, {taken} taken");
    }
    Ok(())
}

#[test]
fn an_error_names_the_sample_and_the_loop_goes_on() -> Result<()> {
    for workers in [0, 2] {
        let data = Samples::new((0..20).collect::<Vec<i64>>()).map(|x| match x {
            13 => Err(Error::new(ErrorKind::Io, "read", "disk gone")),
            _ => Ok(x),
        });
        let loader = Loader::builder(data).batch_size(4).workers(workers).build()?;
        let batches: Vec<Result<Tensor>> = loader.iter().collect();
        assert_eq!(batches.len(), 5);
        let error = batches[3].as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(error.message(), "sample 13: disk gone");
        assert_eq!(batches[4].as_ref().unwrap().to_vec::<i64>()?, [16, 17, 18, 19]);
        assert_eq!(loader.epochs_done(), 1);
    }
    Ok(())
}

#[test]
fn a_panic_is_an_error_with_the_sample() -> Result<()> {
    for workers in [0, 2] {
        let data = Samples::new((0..20).collect::<Vec<i64>>()).map(|x| {
            assert_ne!(x, 6, "six is not allowed");
            Ok(x)
        });
        let loader = Loader::builder(data).batch_size(4).workers(workers).build()?;
        let line = line!() + 1;
        let batches: Vec<Result<Tensor>> = loader.iter().collect();
        let error = batches[1].as_ref().unwrap_err();
        assert!(error.message().starts_with("sample 6 panicked: "), "{error}");
        assert!(error.message().contains("six is not allowed"), "{error}");
        assert_eq!((error.location().file(), error.location().line()), (file!(), line));
        assert_eq!(batches.iter().filter(|batch| batch.is_ok()).count(), 4);

        let loader = Loader::builder(Samples::new(vec![1i64, 2, 3])).workers(workers);
        let loader = loader.map(|x| if x.item::<i64>()? == 2 { panic!("two") } else { Ok(x) }).build()?;
        let batches: Vec<Result<Tensor>> = loader.iter().collect();
        assert_eq!(batches[1].as_ref().unwrap_err().message(), "batch 1 panicked: two");
        assert!(batches[0].is_ok() && batches[2].is_ok());
    }
    Ok(())
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the drop panicked too");
    }
}

#[test]
fn a_drop_that_panics_does_not_stop_the_loop() -> Result<()> {
    for workers in [0, 2] {
        let data = Samples::new((0..20).collect::<Vec<i64>>())
            .map(|x| if x == 6 { std::panic::panic_any(Bomb) } else { Ok(x) });
        let loader = Loader::builder(data).batch_size(4).workers(workers).build()?;
        let batches: Vec<Result<Tensor>> = loader.iter().collect();
        assert_eq!(batches[1].as_ref().unwrap_err().message(), "sample 6 panicked: (no message)");
        assert_eq!((batches.len(), batches.iter().filter(|batch| batch.is_ok()).count()), (5, 4));
    }
    // The drop of a sample whose batch is given up, because another one of its samples is an error.
    for workers in [0, 2] {
        let data = Samples::new((0..20).collect::<Vec<i64>>()).map(|x| match x {
            7 => Err(Error::new(ErrorKind::Io, "read", "disk gone")),
            _ => Ok((x == 6).then(|| Bomb)),
        });
        let collate = |samples: Vec<Option<Bomb>>, _: &Collation<'_>| {
            samples.into_iter().for_each(std::mem::forget);
            Ok(())
        };
        let loader = Loader::builder_with(data, collate).batch_size(4).workers(workers).build()?;
        let line = line!() + 1;
        let batches: Vec<Result<()>> = loader.iter().collect();
        let error = batches[1].as_ref().unwrap_err();
        assert_eq!(error.message(), "making a batch panicked: the drop panicked too");
        assert_eq!((error.location().file(), error.location().line()), (file!(), line));
        assert_eq!((batches.len(), batches.iter().filter(|batch| batch.is_ok()).count()), (5, 4));
    }
    Ok(())
}

#[test]
fn an_error_of_a_stream_ends_the_epoch() -> Result<()> {
    for workers in [0, 3] {
        let read = |x: i64| match x {
            7 => Err(Error::new(ErrorKind::Io, "read", "disk gone")),
            _ => Ok(x),
        };
        let stream = Stream::fallible(move || Ok((0..20).map(read)));
        let loader = Loader::builder(stream).batch_size(3).workers(workers).build()?;
        let batches: Vec<Result<Tensor>> = loader.iter().collect();
        assert_eq!(batches.len(), 3);
        assert_eq!(batches[2].as_ref().unwrap_err().message(), "sample 7 of the stream: disk gone");

        // What a worker makes of a sample can fail without the end of the stream.
        let stream = Stream::new(|| 0..20).map(move |x| if x == 8 { panic!("eight") } else { Ok(x) });
        let loader = Loader::builder(stream).batch_size(3).workers(workers).build()?;
        let batches: Vec<Result<Tensor>> = loader.iter().collect();
        assert_eq!((batches.len(), loader.epochs_done()), (7, 1));
        assert_eq!(batches[2].as_ref().unwrap_err().message(), "sample 8 panicked: eight");

        let loader = Loader::builder(Stream::new(|| 0..0i64)).workers(workers).build()?;
        let batches: Vec<Result<Tensor>> = loader.iter().collect();
        assert_eq!(batches.len(), 1);
        assert_eq!(batches[0].as_ref().unwrap_err().message(), "the stream is empty");
    }
    Ok(())
}

/// The message of the error with which a loader is not built.
#[track_caller]
fn refused<B: Send + 'static>(builder: LoaderBuilder<B>) -> String {
    let caller = std::panic::Location::caller();
    let built = builder.build();
    let error = built.err().unwrap_or_else(|| panic!("built, at {caller}"));
    assert_eq!(error.location().file(), file!());
    error.message().to_string()
}

#[test]
fn bad_settings() {
    let data = || Samples::new(vec![1i64, 2, 3]);
    assert_eq!(refused(Loader::builder(data()).batch_size(0)), "batch_size is at least 1, got 0");
    assert_eq!(refused(Loader::builder(Samples::<i64>::new(vec![]))), "the data set is empty");
    assert_eq!(refused(Loader::builder(data()).prefetch(0)), "prefetch is at least 1, got 0");
    let both = Loader::builder(data()).shuffle(true).sampler(Random::new());
    assert!(refused(both).starts_with("a sampler chooses the order"));
    let stream = || Stream::new(|| 0..3i64);
    assert!(refused(Loader::builder(stream()).shuffle(true)).starts_with("a stream has its own order"));
    assert!(
        refused(Loader::builder(stream()).sampler(Random::new())).starts_with("a stream has its own order")
    );
    let few = Loader::builder(data()).batch_size(4).drop_last(true);
    assert_eq!(refused(few), "an epoch has fewer than 4 samples, and drop_last drops them");
    assert!(refused(Loader::builder(data()).batch_dim("a b")).starts_with("Invalid name"));
    assert!(refused(Loader::builder(data()).pad("1", 0)).starts_with("Invalid name"));

    let of = |sampler: fn(&Epoch) -> Result<Vec<usize>>| Loader::builder(data()).sampler(sampler);
    assert!(refused(of(|_| Ok(vec![0, 3]))).contains("index 3, but the data set has 3 samples"));
    assert!(refused(of(|_| Ok(vec![]))).contains("has no samples"));
    assert_eq!(refused(of(|_| panic!("no"))), "the sampler panicked: no");
    let weighted = |weights: &[f64]| Loader::builder(data()).sampler(Weighted::new(weights));
    assert!(refused(weighted(&[1.0, 2.0])).contains("2 weights for 3 samples"));
    assert!(refused(weighted(&[1.0, -2.0, 1.0])).contains("sample 1 is -2.0"));
    assert!(refused(weighted(&[1.0, 1.0, f64::NAN])).contains("sample 2 is NaN"));
    assert!(refused(weighted(&[0.0, 0.0, 0.0])).contains("positive"));
    let few = Weighted::new([1.0, 0.0, 1.0]).replacement(false);
    assert!(refused(Loader::builder(data()).sampler(few)).contains("from 2 positive weights"));
    assert!(refused(Loader::builder(data()).sampler(Random::new().num_samples(0))).contains("num_samples 0"));
    assert!(refused(Loader::builder(data()).sampler(Bucketed::new([1, 2]))).contains("2 lengths for 3"));
    assert!(refused(Loader::builder(data()).sampler(SubsetRandom::new([5]))).contains("index 5"));
    assert!(Distributed::new(Random::new(), 2, 2).unwrap_err().message().contains("rank less than 2"));
    let none = Distributed::new(Random::new(), 1, 4).unwrap().drop_last(true);
    assert!(refused(Loader::builder(data()).sampler(none)).contains("none for each of 4"));
}

#[test]
fn a_tensor_data_set_gathers_what_its_samples_stack_to() -> Result<()> {
    manual_seed(2);
    let x = Tensor::rand([("N", 10), ("H", 2), ("W", 3)])?;
    let y = Tensor::arange(0, 10, 1)?.to(DType::I64)?; // unnamed
    let data = TensorDataset::new((x.clone(), y.clone()))?;
    let fast = Loader::builder(data.clone()).batch_size(4).shuffle(true).seed(1).build()?;
    let slow = Loader::builder(data.map(Ok)).batch_size(4).shuffle(true).seed(1).build()?;
    for (fast, slow) in fast.iter().zip(slow.iter()) {
        let ((x, y), (other_x, other_y)) = (fast?, slow?);
        assert_eq!((x.shape(), y.shape()), (other_x.shape(), other_y.shape()));
        assert_eq!((x.to_vec::<f32>()?, y.to_vec::<i64>()?), (other_x.to_vec()?, other_y.to_vec()?));
        assert_eq!(x.names().list(3), "['N', 'H', 'W']");
    }
    // Along another dim, and from a view.
    let turned = x.align_to(["H", "N", "W"])?;
    let loader = Loader::builder(TensorDataset::new(turned)?).batch_size(3).batch_dim("batch").build()?;
    let batch = loader.peek()?;
    assert_eq!(batch.shape().to_string(), "[batch=3, H=2, W=3]");
    assert_eq!(batch.to_vec::<f32>()?, x.narrow("N", 0, 3)?.to_vec::<f32>()?);

    let error = TensorDataset::new((x.clone(), Tensor::zeros([("N", 9)])?)).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Shape, file!()));
    assert!(error.message().contains("[10, 9]"));
    let error = TensorDataset::along("time", x.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameNotFound);
    let error = TensorDataset::new(Tensor::zeros([("time", 9)])?).unwrap_err();
    assert_eq!(error.repair(), Some("TensorDataset::along(\"time\", tensors)?"));
    assert_eq!(TensorDataset::new(Tensor::zeros(())?).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(TensorDataset::new(x.requiring_grad()?).unwrap_err().kind(), ErrorKind::Autograd);
    Ok(())
}

#[test]
fn a_sample_that_is_not_there_is_reported_at_the_call() -> Result<()> {
    let x = Tensor::zeros([("N", 3)])?;
    let samples = || Samples::new(vec![1, 2, 3]);
    let boxed: Box<dyn Dataset<Sample = i32>> = Box::new(samples());
    let errors = [
        boxed.get(3).unwrap_err(),
        TensorDataset::new(x.clone())?.get(3).unwrap_err(),
        Windows::new(x, "N", 2)?.get(3).unwrap_err(),
        samples().get(3).unwrap_err(),
        Box::new(samples()).get(3).unwrap_err(),
        samples().subset([0])?.get(3).unwrap_err(),
        samples().map(Ok).get(3).unwrap_err(),
        samples().concat(samples()).get(6).unwrap_err(),
        samples().zip(samples())?.get(3).unwrap_err(),
    ];
    for error in errors {
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Index, file!()), "{error}");
    }
    Ok(())
}

#[test]
fn a_cycle_goes_through_epoch_after_epoch() -> Result<()> {
    for workers in [0, 2] {
        let loader =
            || Loader::builder(Noisy::new(10)).batch_size(4).shuffle(true).seed(3).workers(workers).build();
        let cycle = loader()?;
        let mut batches = cycle.cycle();
        let found = batches.by_ref().take(7).collect::<Result<Vec<_>>>()?;
        let epochs = loader()?;
        let expected = [two_epochs(&epochs)?, epochs.iter().take(1).collect::<Result<_>>()?].concat();
        assert_eq!(numbers(&found)?, numbers(&expected)?);
        // A state that is saved now goes on with the next batch, and putting the loader back ends nothing.
        let resumed = loader()?;
        resumed.load_state_dict(&cycle.state_dict()?)?;
        let next = batches.next().unwrap()?;
        assert_eq!(numbers(&[resumed.iter().next().unwrap()?])?, numbers(&[next])?);
        cycle.load_state_dict(&loader()?.state_dict()?)?;
        drop(batches);
        assert_eq!((cycle.epochs_done(), cycle.batches_done()), (0, 0));
    }
    Ok(())
}
