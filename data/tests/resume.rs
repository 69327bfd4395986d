//! A loader that goes on from a saved state gives exactly the batches that an uninterrupted one gives, and
//! does not read the samples before them.

use namegrad::data::sampler::{Bucketed, Distributed, Epoch, InOrder, Random, SubsetRandom, Weighted};
use namegrad::data::{Dataset, Loader, LoaderState, Sampler, Samples, Stream};
use namegrad::prelude::*;
use std::sync::{Arc, Mutex};

const SAMPLES: usize = 23;
const BATCH: usize = 4;
const EPOCHS: u64 = 3;

/// Numbers with random noise. It notes what is read.
#[derive(Clone, Default)]
struct Noisy(Arc<Mutex<Vec<usize>>>);

impl Dataset for Noisy {
    type Sample = (i64, Tensor);

    fn len(&self) -> usize {
        SAMPLES
    }

    fn get(&self, index: usize) -> Result<(i64, Tensor)> {
        self.0.lock().unwrap().push(index);
        Ok((index as i64, Tensor::rand([("noise", 2)])?))
    }
}

/// A sampler by its number, or `None`.
fn sampler(number: usize) -> Option<Arc<dyn Sampler>> {
    let own = |epoch: &Epoch| Ok((0..9).map(|n| (n * 5 + epoch.number as usize) % epoch.samples).collect());
    let weights: Vec<f64> = (0..SAMPLES).map(|n| (n % 5) as f64).collect();
    Some(match number {
        0 => Arc::new(InOrder),
        1 => Arc::new(Random::new()),
        2 => Arc::new(Random::new().replacement(true).num_samples(50)),
        3 => Arc::new(Random::new().num_samples(50)),
        4 => Arc::new(Weighted::new(weights)),
        5 => Arc::new(Weighted::new(weights).replacement(false).num_samples(10)),
        6 => Arc::new(SubsetRandom::new([1, 2, 3, 5, 8, 13, 21])),
        7 => Arc::new(Distributed::new(Random::new(), 1, 3).unwrap()),
        8 => Arc::new(Distributed::new(InOrder, 2, 3).unwrap().drop_last(true)),
        9 => Arc::new(Bucketed::new((0..SAMPLES).map(|n| n % 7).collect::<Vec<_>>()).batches(2)),
        10 => Arc::new(own),
        _ => return None,
    })
}

/// A sampler behind a pointer.
struct Shared(Arc<dyn Sampler>);

impl Sampler for Shared {
    fn indices(&self, epoch: &Epoch) -> Result<Vec<usize>> {
        self.0.indices(epoch)
    }
}

type Batch = (Tensor, Tensor);
/// The numbers of a batch.
type Values = (Vec<i64>, Vec<f32>);

fn values((x, noise): &Batch) -> Result<Values> {
    Ok((x.to_vec()?, noise.to_vec()?))
}

/// A training loop up to `EPOCHS`, which is killed after `kill` batches. Returns what it saw, and the state
/// that it had saved after the last batch.
fn run(loader: &Loader<Batch>, kill: usize) -> Result<(Vec<Values>, LoaderState)> {
    let mut seen = Vec::new();
    for _ in loader.epochs_done()..EPOCHS {
        for batch in loader.iter() {
            seen.push(values(&batch?)?);
            if seen.len() == kill {
                return Ok((seen, loader.state_dict()?));
            }
        }
    }
    Ok((seen, loader.state_dict()?))
}

#[test]
fn every_sampler_resumes_at_every_batch() -> Result<()> {
    for number in 0.. {
        let Some(sampler) = sampler(number) else { break };
        let loader = |workers, seed| {
            let builder = Loader::builder(Noisy::default()).batch_size(BATCH).seed(seed);
            builder.sampler(Shared(sampler.clone())).workers(workers).build()
        };
        let (whole, end) = run(&loader(0, 9)?, usize::MAX)?;
        assert_eq!((end.epoch, end.batches), (EPOCHS, 0));
        for kill in 1..=whole.len() {
            let (workers, others) = (kill % 3, (kill + 1) % 3);
            let (mut seen, state) = run(&loader(workers, 9)?, kill)?;
            let resumed = loader(others, 1000)?; // the seed comes from the state
            resumed.load_state_dict(&state)?;
            assert_eq!(resumed.state_dict()?, state);
            seen.extend(run(&resumed, usize::MAX)?.0);
            assert_eq!(seen, whole, "sampler {number}, killed after {kill} batches");
        }
    }
    Ok(())
}

#[test]
fn skipped_samples_are_not_read() -> Result<()> {
    for workers in [0, 2] {
        let first = Loader::builder(Noisy::default()).batch_size(BATCH).workers(workers).build()?;
        let mut batches = first.iter();
        batches.by_ref().take(4).try_for_each(|batch| batch.map(drop))?;
        let state = first.state_dict()?;
        assert_eq!((state.epoch, state.batches), (0, 4), "batches that were made in advance do not count");
        let data = Noisy::default();
        let resumed = Loader::builder(data.clone()).batch_size(BATCH).workers(workers).build()?;
        resumed.load_state_dict(&state)?;
        assert_eq!((resumed.epochs_done(), resumed.batches_done()), (0, 4));
        resumed.iter().try_for_each(|batch| batch.map(drop))?;
        let mut read = data.0.lock().unwrap().clone();
        read.sort_unstable();
        assert_eq!(read, (16..SAMPLES).collect::<Vec<_>>());
    }
    Ok(())
}

#[test]
fn streams_resume() -> Result<()> {
    manual_seed(1);
    let made = Arc::new(Mutex::new(0));
    let counter = made.clone();
    let stream = Stream::new(|| 0..SAMPLES as i64).shuffle_buffer(5).map(move |x| {
        *counter.lock().unwrap() += 1;
        Ok((x, Tensor::rand([("noise", 2)])?))
    });
    let loader = |workers| Loader::builder(stream.clone()).batch_size(BATCH).seed(2).workers(workers).build();
    let (whole, _) = run(&loader(0)?, usize::MAX)?;
    for kill in 1..=whole.len() {
        let (mut seen, state) = run(&loader(kill % 3)?, kill)?;
        let resumed = loader((kill + 1) % 3)?;
        resumed.load_state_dict(&state)?;
        *made.lock().unwrap() = 0;
        let rest = run(&resumed, usize::MAX)?.0;
        let count: usize = rest.iter().map(|batch| batch.0.len()).sum();
        assert_eq!(*made.lock().unwrap(), count, "samples that are skipped are read, but not made");
        seen.extend(rest);
        assert_eq!(seen, whole, "killed after {kill} batches");
    }
    Ok(())
}

#[test]
fn a_loop_that_ends_early() -> Result<()> {
    let loader = Loader::builder(Noisy::default()).batch_size(BATCH).shuffle(true).seed(1).build()?;
    let whole = run(&loader, usize::MAX)?.0;
    let loader = Loader::builder(Noisy::default()).batch_size(BATCH).shuffle(true).seed(1).build()?;
    // A look at the data changes nothing.
    assert_eq!(values(&loader.peek()?)?, whole[0]);
    assert_eq!(values(&loader.peek()?)?, whole[0]);
    // The state in the loop is that of the batch, the state after it that of the next epoch.
    let mut state = loader.state_dict()?;
    for batch in loader.iter().take(2) {
        batch?;
        state = loader.state_dict()?;
    }
    assert_eq!((state.epoch, state.batches), (0, 2));
    let after = loader.state_dict()?;
    assert_eq!((after.epoch, after.batches, loader.epochs_done()), (1, 0, 1));
    let batches = whole.len() / EPOCHS as usize;
    assert_eq!(values(&loader.iter().next().unwrap()?)?, whole[batches]);
    loader.load_state_dict(&after)?;
    assert_eq!(values(&loader.iter().next().unwrap()?)?, whole[batches]);
    // Of two iterators, the later one counts.
    let (mut one, mut two) = (loader.iter(), loader.iter());
    two.next().unwrap()?;
    one.next().unwrap()?;
    one.next().unwrap()?;
    assert_eq!((loader.epochs_done(), loader.batches_done()), (3, 1));
    // `epoch` goes on within its epoch.
    loader.load_state_dict(&state)?;
    assert_eq!(values(&loader.epoch(0).next().unwrap()?)?, whole[2]);
    loader.load_state_dict(&state)?;
    assert_eq!(values(&loader.epoch(1).next().unwrap()?)?, whole[batches]);
    Ok(())
}

#[test]
fn a_state_of_another_loader_is_refused() -> Result<()> {
    let of = |batch_size, sampler: Arc<dyn Sampler>| {
        Loader::builder(Noisy::default()).batch_size(batch_size).seed(5).sampler(Shared(sampler)).build()
    };
    let loader = of(BATCH, Arc::new(Random::new()))?;
    let mut batches = loader.iter();
    batches.next().unwrap()?;
    let (before, good) = (loader.state_dict()?, loader.state_dict()?);
    let refused = |loader: &Loader<Batch>, state: &LoaderState| {
        let error = loader.load_state_dict(state).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
        error.message().to_string()
    };
    let bad = LoaderState { samples: Some(99), ..good.clone() };
    assert!(refused(&loader, &bad).contains("the data set has 23 samples here, 99 samples in the state"));
    let bad = LoaderState { samples: None, ..good.clone() };
    assert!(refused(&loader, &bad).contains("23 samples here, a stream in the state"));
    assert!(
        refused(&of(5, Arc::new(Random::new()))?, &good).contains("batch_size is 5 here, 4 in the state")
    );
    let bad = LoaderState { drop_last: true, ..good.clone() };
    assert!(refused(&loader, &bad).contains("drop_last is false here, true in the state"));
    assert!(
        refused(&of(BATCH, Arc::new(InOrder))?, &good)
            .contains("the order of the samples in epoch 0 differs")
    );
    let bad = LoaderState { batches: 7, ..good.clone() };
    assert!(refused(&loader, &bad).contains("batch 7 of an epoch of 6"));
    assert_eq!(loader.state_dict()?, before, "nothing has changed");
    assert!(loader.load_state_dict(&LoaderState { batches: 6, ..good.clone() }).is_ok());
    assert_eq!(loader.iter().count(), 0, "the rest of an epoch whose last batch was taken");
    assert_eq!(loader.epochs_done(), 1);

    let file = good.to_file()?;
    assert_eq!(LoaderState::from_file(&file)?, good);
    let mut other = file.clone();
    other.metadata.insert("loader".into(), "{\"epoch\": -1}".into());
    assert_eq!(LoaderState::from_file(&other).unwrap_err().kind(), ErrorKind::Format);
    other.metadata.clear();
    assert_eq!(LoaderState::from_file(&other).unwrap_err().kind(), ErrorKind::Format);
    Ok(())
}

#[test]
fn a_state_asks_the_sampler_once_for_each_epoch() -> Result<()> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let sampler = {
        let asked = asked.clone();
        move |epoch: &Epoch| {
            asked.lock().unwrap().push(epoch.number);
            epoch.permutation(epoch.samples)
        }
    };
    let of = |sampler| Loader::builder(Noisy::default()).batch_size(BATCH).seed(5).sampler(sampler).build();
    let loader = of(sampler.clone())?;
    let mut state = loader.state_dict()?;
    for _ in 0..2 {
        for batch in loader.iter() {
            batch?;
            state = loader.state_dict()?;
        }
        loader.state_dict()?;
    }
    assert_eq!(*asked.lock().unwrap(), [0, 1, 2]);
    let resumed = of(sampler)?;
    resumed.load_state_dict(&state)?;
    assert_eq!((resumed.iter().count(), resumed.iter().count()), (0, 6));
    assert_eq!(*asked.lock().unwrap(), [0, 1, 2, 0, 1, 2]);
    Ok(())
}

#[test]
fn a_run_resumes_on_another_number_of_processes() {
    let loader = |rank, world| {
        let sampler = Distributed::new(Random::new(), rank, world).unwrap();
        let data = Samples::new((0..24).collect::<Vec<i64>>());
        Loader::builder(data).batch_size(8 / world).sampler(sampler).seed(3).build().unwrap()
    };
    let whole = |world: usize, state: Option<&LoaderState>| {
        let mut seen: Vec<i64> = (0..world)
            .flat_map(|rank| {
                let loader = loader(rank, world);
                if let Some(state) = state {
                    loader.load_state_dict(state).unwrap();
                }
                loader.iter().next().unwrap().unwrap().to_vec::<i64>().unwrap()
            })
            .collect();
        seen.sort_unstable();
        seen
    };
    let after_a_batch = |rank| {
        let loader = loader(rank, 2);
        let mut batches = loader.iter();
        batches.next().unwrap().unwrap();
        loader.state_dict().unwrap()
    };
    let state = after_a_batch(1);
    assert_eq!(state, after_a_batch(0));
    let second = whole(2, Some(&state));
    assert_ne!(second, whole(2, None));
    for world in [1, 4, 8] {
        assert_eq!(whole(world, Some(&state)), second, "on {world} processes");
    }
    let other = Loader::builder(Samples::new((0..24).collect::<Vec<i64>>()))
        .batch_size(3)
        .sampler(Distributed::new(Random::new(), 0, 4).unwrap())
        .build()
        .unwrap();
    let error = other.load_state_dict(&state).unwrap_err();
    assert!(error.message().contains("batch_size"), "{error}");
}
