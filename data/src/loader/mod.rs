//! [`Loader`], which makes batches. Read it first, then [`LoaderBuilder`] for its settings. `jobs` says what
//! the batches of an epoch are, `workers` makes them on threads, `iter` hands them out, and `state` is what a
//! resumed run needs.

mod builder;
mod iter;
mod jobs;
mod state;
mod workers;

pub use builder::LoaderBuilder;
pub use iter::{Batches, Cycle};
pub use jobs::Source;
pub use state::{LoaderPosition, LoaderState};

use crate::collate::{Collate, Collation};
use builder::LoaderSettings;
use jobs::{EpochRun, Jobs};
use namegrad_core::{Error, ErrorKind, Result};
use state::Position;
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Batches of the samples of a [`Dataset`](crate::Dataset) or a [`Stream`](crate::Stream), whose type is `B`.
///
/// Each call of [`iter`](Self::iter) goes through the next epoch. The batches depend on the seed and the
/// epoch alone: they are the same for any number of workers, also with random augmentation, and a run that is
/// resumed from a [state](Self::state_dict) goes on with exactly the next batch.
///
/// # Examples
/// ```
/// use namegrad::data::{Loader, TensorDataset};
/// use namegrad::prelude::*;
/// manual_seed(0);
/// let x = Tensor::randn([("N", 100), ("feature", 3)])?;
/// let y = x.sum("feature")?;
/// let data = TensorDataset::new((x, y))?;
/// let loader = Loader::builder(data).batch_size(32).shuffle(true).workers(2).build()?;
///
/// let model = Linear::new(("feature", 3), ("out", 1))?;
/// let mut optimizer = Adam::builder(model.parameters()).lr(0.1).build()?;
/// for epoch in 0..20 {
///     for batch in loader.iter() {
///         let (x, y) = batch?; // [N, feature], [N]
///         let loss = F::mse_loss(&model.forward(&x)?.squeeze("out")?, &y)?;
///         optimizer.zero_grad();
///         loss.backward()?;
///         optimizer.step()?;
///     }
/// }
/// assert_eq!(loader.epochs_done(), 20);
/// # Ok::<(), Error>(())
/// ```
pub struct Loader<B> {
    jobs: Arc<dyn Jobs<B>>,
    settings: LoaderSettings,
    position: Mutex<Position>,
}

impl<B> fmt::Debug for Loader<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("samples", &self.jobs.samples())
            .field("settings", &self.settings)
            .field("position", &*self.position())
            .finish()
    }
}

impl<B: Send + 'static> Loader<B> {
    /// Batches of `batch_size` samples in the order of the data set, made in the thread of the loop. The last
    /// batch of an epoch can be smaller.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if `batch_size` is 0 or the data set is empty.
    #[track_caller]
    pub fn new<S>(source: S, batch_size: usize) -> Result<Loader<B>>
    where
        S: Source,
        S::Sample: Collate<Batch = B>,
    {
        Loader::builder(source).batch_size(batch_size).build()
    }

    /// A builder with settings: shuffling, workers, padding and others.
    pub fn builder<S>(source: S) -> LoaderBuilder<B>
    where
        S: Source,
        S::Sample: Collate<Batch = B>,
    {
        LoaderBuilder::new(source.jobs())
    }

    /// A builder for a loader whose batches are made by a function, for samples whose type is not [`Collate`]
    /// or is to be collated in another way. The functions of [`Collate`] are at hand in it.
    ///
    /// ```
    /// use namegrad::data::{Collate, Loader, Samples};
    /// use namegrad::prelude::*;
    /// let data = Samples::new(vec![[1.0f32, 2.0], [3.0, 4.0]]);
    /// let loader = Loader::builder_with(data, |points, how| {
    ///     let sums = points.iter().map(|point| point.iter().sum()).collect();
    ///     f32::collate(sums, how)
    /// });
    /// let loader = loader.batch_size(2).build()?;
    /// assert_eq!(loader.iter().next().unwrap()?.to_vec::<f32>()?, [3.0, 7.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn builder_with<S: Source>(
        source: S,
        collate: impl Fn(Vec<S::Sample>, &Collation<'_>) -> Result<B> + Send + Sync + 'static,
    ) -> LoaderBuilder<B> {
        LoaderBuilder::new(source.jobs_with(collate))
    }

    /// The batches of the next epoch; after [`load_state_dict`](Self::load_state_dict), what is left of its
    /// epoch.
    ///
    /// Workers start now, and have ended when the iterator is dropped. If a batch cannot be made, its place
    /// is taken by an error that names the sample, which counts as taken, and the iteration can go on after
    /// it. An error of a stream itself ends the epoch.
    ///
    /// If the loop ends early, by `break` or `take`, the next call goes to the next epoch, and so does a run
    /// that is resumed from a state saved after the loop. A state saved inside of the loop goes on with its
    /// next batch.
    #[track_caller]
    pub fn iter(&self) -> Batches<'_, B> {
        self.next_epoch(Location::caller())
    }

    /// The batches of the next epoch, of the one after it, and so on without an end, for a loop that counts
    /// steps rather than epochs. It ends only if an epoch has no batches.
    ///
    /// Each epoch is one of [`iter`](Self::iter), so a saved state goes on with the next batch.
    ///
    /// ```
    /// use namegrad::data::{Loader, Samples};
    /// let data = Samples::new((0..10).collect::<Vec<i64>>());
    /// let loader = Loader::builder(data).batch_size(4).shuffle(true).build()?;
    /// let mut steps = 0;
    /// for batch in loader.cycle().take(7) {
    ///     let numbers = batch?; // [N]
    ///     steps += 1;
    /// }
    /// assert_eq!((steps, loader.epochs_done()), (7, 3)); // 3 batches in an epoch
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    #[track_caller]
    pub fn cycle(&self) -> Cycle<'_, B> {
        Cycle(self.next_epoch(Location::caller()))
    }

    fn next_epoch(&self, caller: &'static Location<'static>) -> Batches<'_, B> {
        let (run, seed, epoch, first) = self.position().next_run();
        Batches::new(self, self.run(seed, epoch, first, caller), run)
    }

    /// The batches of an epoch by its number, from 0; after [`load_state_dict`](Self::load_state_dict) of a
    /// state in this epoch, what is left of it. The next call of [`iter`](Self::iter) goes to the epoch after
    /// this one.
    ///
    /// ```
    /// use namegrad::data::{Loader, Samples};
    /// use namegrad::prelude::*;
    /// let data = Samples::new((0..100).collect::<Vec<i64>>());
    /// let loader = Loader::builder(data).batch_size(100).shuffle(true).build()?;
    /// let third = loader.epoch(2).next().unwrap()?;
    /// assert_eq!(loader.epoch(2).next().unwrap()?, third);
    /// assert_ne!(loader.epoch(3).next().unwrap()?.to_vec::<i64>()?, third.to_vec::<i64>()?);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn epoch(&self, epoch: u64) -> Batches<'_, B> {
        let caller = Location::caller();
        let (run, seed, first) = self.position().run_of(epoch);
        Batches::new(self, self.run(seed, epoch, first, caller), run)
    }

    /// The first batch that the next call of [`iter`](Self::iter) would give, which will still give it: to
    /// look at the data.
    ///
    /// # Errors
    /// Those of the batch; [`ErrorKind::Value`] if there is none.
    #[track_caller]
    pub fn peek(&self) -> Result<B> {
        let caller = Location::caller();
        let (seed, epoch, first) = self.position().upcoming();
        let mut jobs = self.jobs.start(self.run(seed, epoch, first, caller))?;
        match jobs.next() {
            Some(job) => job?(),
            None => Err(Error::new(ErrorKind::Value, "peek", "the epoch has no batches left").at(caller)),
        }
    }

    /// The number of batches of an epoch, such as for a schedule of ten epochs:
    /// `OneCycle::new(0.1, 10 * loader.len()?)`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a [`Stream`](crate::Stream), whose length is not known.
    #[track_caller]
    #[allow(clippy::len_without_is_empty)] // a loader is never empty
    pub fn len(&self) -> Result<usize> {
        let caller = Location::caller();
        let (seed, epoch, _) = self.position().upcoming();
        match self.jobs.batches(&self.run(seed, epoch, 0, caller))? {
            Some(batches) => Ok(batches),
            None => {
                Err(Error::new(ErrorKind::Unsupported, "len", "the length of a stream is not known")
                    .at(caller))
            }
        }
    }

    /// The number of epochs that have ended, those among them whose loop ended early.
    pub fn epochs_done(&self) -> u64 {
        self.position().epoch()
    }

    /// The number of batches that the loop has taken in the current epoch.
    pub fn batches_done(&self) -> u64 {
        self.position().batches()
    }

    /// The number of samples of the data set, if it is known.
    pub fn samples(&self) -> Option<usize> {
        self.jobs.samples()
    }

    /// The number of samples in a batch; the last one of an epoch can have fewer.
    pub fn batch_size(&self) -> usize {
        self.settings.batch_size
    }

    /// The seed of the order and of random augmentation.
    pub fn seed(&self) -> u64 {
        self.position().seed()
    }

    /// The position of the loop: everything that the next batches depend on besides the data. It counts the
    /// batches that the loop has taken, not those that were made in advance.
    ///
    /// # Errors
    /// Those of the [sampler](crate::Sampler).
    ///
    /// # Examples
    /// ```
    /// use namegrad::data::{Loader, LoaderState, Samples};
    /// use namegrad::prelude::*;
    /// let loader = || {
    ///     let data = Samples::new((0..10).collect::<Vec<i64>>());
    ///     Loader::builder(data).batch_size(2).shuffle(true).workers(2).build()
    /// };
    /// let first = loader()?;
    /// let mut batches = first.iter();
    /// batches.next().unwrap()?;
    /// # let file = format!("namegrad-doc-loader-{}.safetensors", std::process::id());
    /// # let path = std::env::temp_dir().join(file);
    /// first.state_dict()?.save(&path)?;
    ///
    /// let resumed = loader()?;
    /// resumed.load_state_dict(&LoaderState::load(&path)?)?;
    /// assert_eq!(resumed.iter().next().unwrap()?, batches.next().unwrap()?);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn state_dict(&self) -> Result<LoaderState> {
        let caller = Location::caller();
        let (seed, epoch, batches) = self.position().state();
        let order =
            self.jobs.fingerprint(&self.run(seed, epoch, 0, caller)).map_err(|error| error.at(caller))?;
        let (batch_size, drop_last) = (self.settings.whole_batch(), self.settings.drop_last);
        Ok(LoaderState { epoch, batches, seed, samples: self.jobs.samples(), batch_size, drop_last, order })
    }

    /// Goes on from a state: the next call of [`iter`](Self::iter) gives the batches of its epoch that the
    /// loop had not taken, and skips the others without reading their samples. The number of workers can
    /// differ.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the state is of a loader with other data, another batch size or another
    /// sampler; the message says what differs. Nothing changes then.
    #[track_caller]
    pub fn load_state_dict(&self, state: &LoaderState) -> Result<()> {
        let caller = Location::caller();
        let run = self.run(state.seed, state.epoch, 0, caller);
        let (batch_size, drop_last) = (self.settings.whole_batch(), self.settings.drop_last);
        let own =
            LoaderState { samples: self.jobs.samples(), batch_size, drop_last, order: None, ..state.clone() };
        let check = || -> Result<()> {
            own.check(state)?;
            let order = self.jobs.fingerprint(&run)?;
            LoaderState { order, ..own }.check(state)?;
            match self.jobs.batches(&run)? {
                Some(batches) if state.batches > batches as u64 => Err(state.beyond(batches)),
                _ => Ok(()),
            }
        };
        check().map_err(|error| error.at(caller))?;
        self.position().load(state);
        Ok(())
    }

    /// The position of the loop, for [`put_back`](Self::put_back).
    #[doc(hidden)]
    pub fn place(&self) -> LoaderPosition {
        LoaderPosition(self.position().clone())
    }

    /// Undoes a [`load_state_dict`](Self::load_state_dict): the loop is where it was, and an iterator that
    /// runs goes on to count, which it would not after loading the state of that place.
    #[doc(hidden)]
    pub fn put_back(&self, place: &LoaderPosition) {
        *self.position() = place.0.clone();
    }

    fn run(&self, seed: u64, epoch: u64, first_batch: u64, caller: &'static Location<'static>) -> EpochRun {
        EpochRun { seed, epoch, first_batch, settings: self.settings.clone(), caller }
    }
}

impl<B> Loader<B> {
    fn position(&self) -> MutexGuard<'_, Position> {
        // Every change is complete before something can panic.
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a, B: Send + 'static> IntoIterator for &'a Loader<B> {
    type Item = Result<B>;
    type IntoIter = Batches<'a, B>;

    #[track_caller]
    fn into_iter(self) -> Batches<'a, B> {
        self.iter()
    }
}
