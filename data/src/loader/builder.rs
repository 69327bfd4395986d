//! [`LoaderBuilder`]: the settings of a loader.

use super::Loader;
use super::jobs::{EpochRun, Jobs, Mapped};
use super::state::Position;
use crate::Sampler;
use crate::random::drawn_seed;
use crate::sampler::{InOrder, Random};
use namegrad_core::{Error, ErrorKind, Name, Result, Scalar};
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex};

const OP: &str = "Loader";

/// The settings of a [`Loader`]. [`Loader::builder`] makes it, [`build`](Self::build) checks it.
pub struct LoaderBuilder<B> {
    jobs: Arc<dyn Jobs<B>>,
    batch_size: usize,
    shuffle: bool,
    seed: Option<u64>,
    drop_last: bool,
    workers: usize,
    prefetch: Option<usize>,
    sampler: Option<Arc<dyn Sampler>>,
    batch_dim: String,
    pads: Vec<(String, Scalar)>,
}

impl<B> fmt::Debug for LoaderBuilder<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoaderBuilder")
            .field("batch_size", &self.batch_size)
            .field("shuffle", &self.shuffle)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

/// The settings that are the same for all epochs.
#[derive(Clone)]
pub(crate) struct LoaderSettings {
    pub(super) batch_size: usize,
    pub(super) drop_last: bool,
    pub(super) workers: usize,
    /// The number of batches that can be in progress or ready.
    pub(super) prefetch: usize,
    pub(super) sampler: Arc<dyn Sampler>,
    pub(super) batch_dim: Name,
    pub(super) pads: Arc<[(Name, Scalar)]>,
}

impl LoaderSettings {
    /// The number of samples in the batches of all processes.
    pub(super) fn whole_batch(&self) -> usize {
        self.batch_size.saturating_mul(self.sampler.processes())
    }
}

impl fmt::Debug for LoaderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("batch_size", &self.batch_size)
            .field("drop_last", &self.drop_last)
            .field("workers", &self.workers)
            .field("prefetch", &self.prefetch)
            .field("batch_dim", &self.batch_dim)
            .field("pads", &self.pads)
            .finish_non_exhaustive()
    }
}

impl<B: Send + 'static> LoaderBuilder<B> {
    pub(super) fn new(jobs: Arc<dyn Jobs<B>>) -> LoaderBuilder<B> {
        LoaderBuilder {
            jobs,
            batch_size: 1,
            shuffle: false,
            seed: None,
            drop_last: false,
            workers: 0,
            prefetch: None,
            sampler: None,
            batch_dim: "N".into(),
            pads: Vec::new(),
        }
    }

    /// Sets the number of samples in a batch; 1 by default.
    pub fn batch_size(mut self, batch_size: usize) -> LoaderBuilder<B> {
        self.batch_size = batch_size;
        self
    }

    /// Sets whether the samples are in random order, another one in each epoch; by default they are not.
    pub fn shuffle(mut self, shuffle: bool) -> LoaderBuilder<B> {
        self.shuffle = shuffle;
        self
    }

    /// Sets the seed of the order and of random augmentation. By default, it is drawn from the default
    /// generator when the loader is built, so `manual_seed` determines it.
    pub fn seed(mut self, seed: u64) -> LoaderBuilder<B> {
        self.seed = Some(seed);
        self
    }

    /// Sets whether a last batch that is not full is dropped; by default it is not.
    pub fn drop_last(mut self, drop_last: bool) -> LoaderBuilder<B> {
        self.drop_last = drop_last;
        self
    }

    /// Sets the number of threads that make batches; with 0, the default, the thread of the loop makes them.
    /// The batches are the same in either case.
    pub fn workers(mut self, workers: usize) -> LoaderBuilder<B> {
        self.workers = workers;
        self
    }

    /// Sets how many batches the workers can be ahead of the loop, all together; two for each worker by
    /// default.
    pub fn prefetch(mut self, batches: usize) -> LoaderBuilder<B> {
        self.prefetch = Some(batches);
        self
    }

    /// Sets which samples an epoch has, and in which order, in place of `shuffle`.
    pub fn sampler(mut self, sampler: impl Sampler + 'static) -> LoaderBuilder<B> {
        self.sampler = Some(Arc::new(sampler));
        self
    }

    /// Sets the name of the dim along which samples are stacked; "N" by default.
    pub fn batch_dim(mut self, name: &str) -> LoaderBuilder<B> {
        self.batch_dim = name.into();
        self
    }

    /// Pads dims of this name with `value` where the sizes of samples differ. [`Ragged`](crate::Ragged)
    /// samples come with their lengths too. A value that the dtype of the samples does not have, such as 0.5
    /// for integers, is an error of the batch.
    ///
    /// ```
    /// use namegrad::data::{Loader, Samples};
    /// use namegrad::prelude::*;
    /// let words = vec![Tensor::ones([("seq", 2)])?, Tensor::ones([("seq", 3)])?];
    /// let loader = Loader::builder(Samples::new(words)).batch_size(2).pad("seq", 0).build()?;
    /// let batch = loader.iter().next().unwrap()?; // [N, seq]
    /// assert_eq!(batch.to_vec::<f32>()?, [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn pad(mut self, dim: &str, value: impl Into<Scalar>) -> LoaderBuilder<B> {
        self.pads.push((dim.into(), value.into()));
        self
    }

    /// Changes each batch by `f`, in the worker that makes it: cheaper than changing each sample.
    ///
    /// ```
    /// use namegrad::data::{Loader, Samples};
    /// use namegrad::prelude::*;
    /// let loader = Loader::builder(Samples::new(vec![1.0f32, 2.0, 3.0]))
    ///     .batch_size(3)
    ///     .map(|x| x.square()?.sum("N"))
    ///     .build()?;
    /// assert_eq!(loader.iter().next().unwrap()?.item::<f32>()?, 14.0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn map<C: Send + 'static>(
        self,
        f: impl Fn(B) -> Result<C> + Send + Sync + 'static,
    ) -> LoaderBuilder<C> {
        LoaderBuilder {
            jobs: Arc::new(Mapped { of: self.jobs, f: Arc::new(f) }),
            batch_size: self.batch_size,
            shuffle: self.shuffle,
            seed: self.seed,
            drop_last: self.drop_last,
            workers: self.workers,
            prefetch: self.prefetch,
            sampler: self.sampler,
            batch_dim: self.batch_dim,
            pads: self.pads,
        }
    }

    /// Checks the settings and makes the loader.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the data set is empty, the batch size or `prefetch` is 0, there are both a
    /// sampler and `shuffle`, a stream has either, the sampler does not fit the data set, or there would be
    /// no batch at all; [`ErrorKind::Index`] if the sampler gives an index that is out of range;
    /// [`ErrorKind::InvalidName`].
    #[track_caller]
    pub fn build(self) -> Result<Loader<B>> {
        let caller = Location::caller();
        self.checked(caller).map_err(|error| error.at(caller))
    }

    fn checked(self, caller: &'static Location<'static>) -> Result<Loader<B>> {
        let refused = |message: String| Error::new(ErrorKind::Value, OP, message);
        if self.batch_size == 0 {
            return Err(refused("batch_size is at least 1, got 0".into()).with_repair(".batch_size(64)"));
        }
        if self.jobs.samples() == Some(0) {
            return Err(refused("the data set is empty".into()));
        }
        if self.prefetch == Some(0) {
            return Err(refused("prefetch is at least 1, got 0".into())
                .with_repair(".workers(0), to make no batch in advance"));
        }
        if self.shuffle && self.sampler.is_some() {
            return Err(refused("a sampler chooses the order, so there is nothing for shuffle to do".into())
                .with_repair(".sampler(sampler), without .shuffle(true)"));
        }
        if self.jobs.samples().is_none() && (self.shuffle || self.sampler.is_some()) {
            let message = "a stream has its own order: it has no sampler and cannot be shuffled as a whole";
            return Err(refused(message.into()).with_repair("stream.shuffle_buffer(10_000)"));
        }
        let sampler: Arc<dyn Sampler> = match self.sampler {
            Some(sampler) => sampler,
            None if self.shuffle => Arc::new(Random::new()),
            None => Arc::new(InOrder),
        };
        let pads = self.pads.iter().map(|(dim, value)| Ok((Name::new(dim)?, *value)));
        let settings = LoaderSettings {
            batch_size: self.batch_size,
            drop_last: self.drop_last,
            workers: self.workers,
            prefetch: self.prefetch.unwrap_or(self.workers.saturating_mul(2)).max(1),
            sampler,
            batch_dim: Name::new(&self.batch_dim)?,
            pads: pads.collect::<Result<_>>()?,
        };
        let seed = self.seed.map_or_else(drawn_seed, Ok)?;
        let run = EpochRun { seed, epoch: 0, first_batch: 0, settings: settings.clone(), caller };
        self.jobs.fingerprint(&run)?; // checks the order of the first epoch
        if self.jobs.batches(&run)? == Some(0) {
            let message = match self.drop_last {
                true => {
                    format!("an epoch has fewer than {} samples, and drop_last drops them", self.batch_size)
                }
                false => "an epoch of the sampler has no samples".into(),
            };
            return Err(refused(message));
        }
        let position = Mutex::new(Position::new(seed));
        Ok(Loader { jobs: self.jobs, settings, position })
    }
}
