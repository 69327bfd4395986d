//! The batches of an epoch as jobs, which are made in order and run in any thread.

use super::builder::LoaderSettings;
use crate::collate::{Collate, Collation};
use crate::random::derived;
use crate::sampler::Epoch;
use crate::stream::{Stream, Thunk, Thunks};
use crate::{Dataset, Sampler};
use namegrad_autograd::{autocast, enable_grad};
use namegrad_core::random::Generator;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Makes a batch.
pub(super) type BatchJob<B> = Box<dyn FnOnce() -> Result<B> + Send>;
/// The jobs of an epoch. An error ends the epoch.
pub(super) type JobList<B> = Box<dyn Iterator<Item = Result<BatchJob<B>>> + Send>;

/// An epoch to be run: everything that its batches depend on besides the data.
#[derive(Clone)]
pub struct EpochRun {
    pub(super) seed: u64,
    pub(super) epoch: u64,
    pub(super) first_batch: u64,
    pub(super) settings: LoaderSettings,
    /// The line of the loop.
    pub(super) caller: &'static Location<'static>,
}

/// A stage of making batches. Each call of a user's code belongs to one and has random numbers of its own.
#[derive(Clone, Copy)]
enum Stage {
    /// The sampler, or the opening of a stream.
    EpochOrder,
    /// Reading the sample at a position of a stream.
    Read(u64),
    /// Making the sample at a position of the epoch.
    Sample(u64),
    /// Making the batch of a number.
    Batch(u64),
    /// Changing the batch of a number, in the function that is so many functions after the first.
    Map(u64, u64),
}

impl Stage {
    fn seed(self, epoch: u64) -> u64 {
        let (kind, number) = match self {
            Stage::EpochOrder => (0, 0),
            Stage::Read(position) => (1, position),
            Stage::Sample(position) => (2, position),
            Stage::Batch(number) => (3, number),
            Stage::Map(number, depth) => (4 + depth, number),
        };
        derived(derived(epoch, kind), number)
    }
}

impl EpochRun {
    /// The seed of everything random in this epoch.
    fn epoch_seed(&self) -> u64 {
        derived(self.seed, self.epoch)
    }

    /// Runs `f`, which errors call `what`. Its random numbers depend on the stage alone, and a panic in it is
    /// an error.
    fn guarded<T>(
        &self,
        stage: Stage,
        what: impl Fn() -> String,
        f: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let mut generator = Generator::from_seed(stage.seed(self.epoch_seed()));
        // The modes of the loop's thread do not reach workers, so they do not matter without workers either.
        let f = || enable_grad(|| autocast(DType::F32, f));
        match caught(|| generator.scope(f)) {
            Ok(result) => result.map_err(|error| self.at_user(error).context(format!("{}: ", what()))),
            Err(said) => {
                let message = format!("{} panicked: {said}", what());
                Err(Error::new(ErrorKind::Value, "Loader", message).at(self.caller))
            }
        }
    }

    /// An error at a line of the user: that of the loop, if the error happened in this crate.
    fn at_user(&self, error: Error) -> Error {
        let sources = &file!()[..file!().len() - "loader/jobs.rs".len()];
        match error.location().file().starts_with(sources) {
            true => error.at(self.caller),
            false => error,
        }
    }

    /// The batch of samples. `number` is that of the batch in the epoch.
    fn collated<T, B>(
        &self,
        number: u64,
        samples: Vec<T>,
        indices: &[usize],
        make: &MakeBatch<T, B>,
    ) -> Result<B> {
        let how = Collation::new(self.settings.batch_dim, &self.settings.pads, indices);
        self.guarded(Stage::Batch(number), || format!("batch {number}"), || make(samples, &how))
    }
}

/// Runs `f`; if it panics, this returns what the panic said.
fn caught<T>(f: impl FnOnce() -> T) -> std::result::Result<T, String> {
    // A data set that several threads share has to cope with a panic in one of them in any case.
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or(panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)");
        let text = text.to_string();
        // The drop of what was thrown can panic too, and so on: only the first drop is tried.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(second);
        }
        text
    })
}

/// The next job of a list. What users write runs guarded, but a drop of their values can panic anywhere.
pub(super) fn next_job<B>(
    list: &mut JobList<B>,
    caller: &'static Location<'static>,
) -> Option<Result<BatchJob<B>>> {
    caught(|| list.next()).unwrap_or_else(|said| Some(Err(broken(&said, caller))))
}

/// The batch of a job, which can panic as [`next_job`] can.
pub(super) fn batch_of<B>(job: BatchJob<B>, caller: &'static Location<'static>) -> Result<B> {
    caught(job).unwrap_or_else(|said| Err(broken(&said, caller)))
}

fn broken(said: &str, caller: &'static Location<'static>) -> Error {
    Error::new(ErrorKind::Value, "Loader", format!("making a batch panicked: {said}")).at(caller)
}

/// Makes a batch of samples.
type MakeBatch<T, B> = Arc<dyn Fn(Vec<T>, &Collation<'_>) -> Result<B> + Send + Sync>;

/// The batches of a data set or of a stream.
pub trait Jobs<B>: Send + Sync {
    /// The jobs of an epoch.
    fn start(&self, run: EpochRun) -> Result<JobList<B>>;
    /// The number of samples, if it is known.
    fn samples(&self) -> Option<usize>;
    /// The number of batches of an epoch, if it is known.
    fn batches(&self, run: &EpochRun) -> Result<Option<usize>>;
    /// The number of functions that change the batches.
    fn maps(&self) -> u64 {
        0
    }
    /// A checksum of the order of the samples in an epoch, if that is known.
    fn fingerprint(&self, run: &EpochRun) -> Result<Option<u64>>;
}

/// A [`Dataset`] or a [`Stream`]: a source of samples for a [`Loader`](super::Loader).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a source of samples",
    label = "expected a data set or a stream",
    note = "`TensorDataset::new((x, y))?` makes a data set of tensors"
)]
pub trait Source: Sized {
    /// The type of a sample.
    type Sample;

    /// The jobs that collate samples by their type.
    #[doc(hidden)]
    fn jobs<B>(self) -> Arc<dyn Jobs<B>>
    where
        B: Send + 'static,
        Self::Sample: Collate<Batch = B>;

    /// The jobs that collate samples by a function.
    #[doc(hidden)]
    fn jobs_with<B: Send + 'static>(
        self,
        make: impl Fn(Vec<Self::Sample>, &Collation<'_>) -> Result<B> + Send + Sync + 'static,
    ) -> Arc<dyn Jobs<B>>;
}

#[diagnostic::do_not_recommend]
impl<D: Dataset + 'static> Source for D {
    type Sample = D::Sample;

    fn jobs<B>(self) -> Arc<dyn Jobs<B>>
    where
        B: Send + 'static,
        D::Sample: Collate<Batch = B>,
    {
        let whole: BatchGetter<D, B> = |data, indices, how| data.get_batch(indices, how);
        Arc::new(Indexed::new(self, Arc::new(D::Sample::collate), Some(whole)))
    }

    fn jobs_with<B: Send + 'static>(
        self,
        make: impl Fn(Vec<D::Sample>, &Collation<'_>) -> Result<B> + Send + Sync + 'static,
    ) -> Arc<dyn Jobs<B>> {
        Arc::new(Indexed::new(self, Arc::new(make), None))
    }
}

/// [`Dataset::get_batch`] of a data set.
type BatchGetter<D, B> = fn(&D, &[usize], &Collation<'_>) -> Option<Result<B>>;

/// The batches of a data set.
struct Indexed<D: Dataset, B> {
    data: Arc<D>,
    make: MakeBatch<D::Sample, B>,
    whole: Option<BatchGetter<D, B>>,
    /// The order that was used last. The checksum in a state, the check of a state and the epoch itself need
    /// the same one, and a permutation of many samples takes long.
    last: Arc<Mutex<Option<Arc<EpochOrder>>>>,
}

/// The indices of an epoch.
struct EpochOrder {
    epoch: Epoch,
    indices: Vec<usize>,
    checksum: OnceLock<u64>,
}

impl EpochOrder {
    /// A checksum of the order on all processes.
    fn checksum(&self, sampler: &dyn Sampler) -> Result<u64> {
        if let Some(known) = self.checksum.get() {
            return Ok(*known);
        }
        let whole = match sampler.processes() {
            1 => Cow::Borrowed(&self.indices),
            _ => Cow::Owned(sampler.whole(&self.epoch)?),
        };
        // FNV-1a over the indices.
        let step = |sum: u64, index: &usize| (sum ^ *index as u64).wrapping_mul(0x0000_0100_0000_01b3);
        Ok(*self.checksum.get_or_init(|| whole.iter().fold(0xcbf2_9ce4_8422_2325, step)))
    }
}

impl<D: Dataset, B> Clone for Indexed<D, B> {
    fn clone(&self) -> Indexed<D, B> {
        let Indexed { data, make, whole, last } = self;
        Indexed { data: data.clone(), make: make.clone(), whole: *whole, last: last.clone() }
    }
}

impl<D: Dataset, B> Indexed<D, B> {
    fn new(data: D, make: MakeBatch<D::Sample, B>, whole: Option<BatchGetter<D, B>>) -> Indexed<D, B> {
        Indexed { data: Arc::new(data), make, whole, last: Arc::default() }
    }

    fn epoch(&self, run: &EpochRun) -> Epoch {
        Epoch::new(self.data.len(), run.settings.batch_size, run.seed, run.epoch)
    }

    fn last(&self) -> MutexGuard<'_, Option<Arc<EpochOrder>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The order of an epoch, if it is the one that was used last.
    fn known(&self, epoch: &Epoch) -> Option<Arc<EpochOrder>> {
        self.last().clone().filter(|last| last.epoch == *epoch)
    }

    /// The indices of an epoch.
    fn order(&self, run: &EpochRun) -> Result<Arc<EpochOrder>> {
        let epoch = self.epoch(run);
        if let Some(known) = self.known(&epoch) {
            return Ok(known);
        }
        NamedTensor::check_room("Loader", epoch.samples, 2 * size_of::<usize>())
            .map_err(|error| error.at(run.caller))?;
        let indices =
            run.guarded(Stage::EpochOrder, || "the sampler".into(), || run.settings.sampler.indices(&epoch))?;
        let samples = epoch.samples;
        if let Some(index) = indices.iter().find(|index| **index >= samples) {
            let message = format!("the sampler gave index {index}, but the data set has {samples} samples");
            return Err(Error::new(ErrorKind::Index, "Loader", message).at(run.caller));
        }
        let order = Arc::new(EpochOrder { epoch, indices, checksum: OnceLock::new() });
        *self.last() = Some(order.clone());
        Ok(order)
    }

    /// Batch `number` of an epoch, of samples at `indices`.
    fn batch(&self, run: &EpochRun, number: u64, indices: &[usize]) -> Result<B> {
        if let Some(whole) = self.whole {
            let how = Collation::new(run.settings.batch_dim, &run.settings.pads, indices);
            let made = run.guarded(
                Stage::Batch(number),
                || format!("batch {number}"),
                || whole(&self.data, indices, &how).transpose(),
            )?;
            if let Some(batch) = made {
                return Ok(batch);
            }
        }
        let first = number * run.settings.batch_size as u64;
        let sample = |(position, index): (u64, &usize)| {
            run.guarded(Stage::Sample(position), || format!("sample {index}"), || self.data.get(*index))
        };
        let samples = crate::list::<_, Result<Vec<_>>>((first..).zip(indices).map(sample))?;
        run.collated(number, samples, indices, &self.make)
    }
}

impl<D: Dataset + 'static, B: Send + 'static> Jobs<B> for Indexed<D, B> {
    fn start(&self, run: EpochRun) -> Result<JobList<B>> {
        let order = self.order(&run)?;
        let batches = self.batches_of(&run, order.indices.len()) as u64;
        let (this, run) = (self.clone(), Arc::new(run));
        Ok(Box::new((run.first_batch..batches).map(move |number| -> Result<BatchJob<B>> {
            let (this, run, order) = (this.clone(), run.clone(), order.clone());
            Ok(Box::new(move || {
                let start = number as usize * run.settings.batch_size;
                let end = (start + run.settings.batch_size).min(order.indices.len());
                this.batch(&run, number, &order.indices[start..end])
            }))
        })))
    }

    fn samples(&self) -> Option<usize> {
        Some(self.data.len())
    }

    fn batches(&self, run: &EpochRun) -> Result<Option<usize>> {
        let epoch = self.epoch(run);
        let count = || run.settings.sampler.count(&epoch);
        let samples = match self.known(&epoch) {
            Some(order) => order.indices.len(),
            None => run.guarded(Stage::EpochOrder, || "the sampler".into(), count)?,
        };
        Ok(Some(self.batches_of(run, samples)))
    }

    fn fingerprint(&self, run: &EpochRun) -> Result<Option<u64>> {
        let order = self.order(run)?;
        run.guarded(Stage::EpochOrder, || "the sampler".into(), || order.checksum(&*run.settings.sampler))
            .map(Some)
    }
}

impl<D: Dataset, B> Indexed<D, B> {
    fn batches_of(&self, run: &EpochRun, samples: usize) -> usize {
        let LoaderSettings { batch_size, drop_last, .. } = run.settings;
        if drop_last { samples / batch_size } else { samples.div_ceil(batch_size) }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Send + 'static> Source for Stream<T> {
    type Sample = T;

    fn jobs<B>(self) -> Arc<dyn Jobs<B>>
    where
        B: Send + 'static,
        T: Collate<Batch = B>,
    {
        Arc::new(Streamed { stream: self, make: Arc::new(T::collate) })
    }

    fn jobs_with<B: Send + 'static>(
        self,
        make: impl Fn(Vec<T>, &Collation<'_>) -> Result<B> + Send + Sync + 'static,
    ) -> Arc<dyn Jobs<B>> {
        Arc::new(Streamed { stream: self, make: Arc::new(make) })
    }
}

/// The batches of a stream.
struct Streamed<T, B> {
    stream: Stream<T>,
    make: MakeBatch<T, B>,
}

impl<T: Send + 'static, B: Send + 'static> Jobs<B> for Streamed<T, B> {
    fn start(&self, run: EpochRun) -> Result<JobList<B>> {
        let thunks =
            run.guarded(Stage::EpochOrder, || "the stream".into(), || self.stream.open(run.epoch_seed()))?;
        let mut reading =
            Reading { thunks, run: Arc::new(run), make: self.make.clone(), position: 0, ended: false };
        let skipped = reading.run.first_batch.saturating_mul(reading.run.settings.batch_size as u64);
        while reading.position < skipped && reading.read()?.is_some() {}
        Ok(Box::new(reading))
    }

    fn samples(&self) -> Option<usize> {
        None
    }

    fn batches(&self, _: &EpochRun) -> Result<Option<usize>> {
        Ok(None)
    }

    fn fingerprint(&self, _: &EpochRun) -> Result<Option<u64>> {
        Ok(None)
    }
}

/// The jobs of an epoch of a stream.
struct Reading<T, B> {
    thunks: Thunks<T>,
    run: Arc<EpochRun>,
    make: MakeBatch<T, B>,
    /// The number of samples that have been read.
    position: u64,
    ended: bool,
}

impl<T: Send + 'static, B> Reading<T, B> {
    /// Reads a sample, without making it.
    fn read(&mut self) -> Result<Option<Thunk<T>>> {
        let (position, thunks) = (self.position, &mut self.thunks);
        let what = || format!("sample {position} of the stream");
        let read = self.run.guarded(Stage::Read(position), what, || thunks.next().transpose())?;
        self.position += u64::from(read.is_some());
        Ok(read)
    }

    /// The samples of the next batch: fewer at the end of the stream.
    fn samples(&mut self) -> Result<Vec<Thunk<T>>> {
        let mut samples = Vec::new();
        while samples.len() < self.run.settings.batch_size {
            match self.read()? {
                Some(sample) => samples.push(sample),
                None => break,
            }
        }
        Ok(samples)
    }
}

impl<T: Send + 'static, B: Send + 'static> Iterator for Reading<T, B> {
    type Item = Result<BatchJob<B>>;

    fn next(&mut self) -> Option<Result<BatchJob<B>>> {
        if self.ended {
            return None;
        }
        let (first, size) = (self.position, self.run.settings.batch_size);
        let thunks = match self.samples() {
            Ok(thunks) => thunks,
            Err(error) => {
                self.ended = true;
                return Some(Err(error));
            }
        };
        self.ended = thunks.len() < size;
        if self.position == 0 {
            let error = Error::new(ErrorKind::Value, "Loader", "the stream is empty");
            return Some(Err(error.at(self.run.caller)));
        }
        if thunks.is_empty() || self.ended && self.run.settings.drop_last {
            return None;
        }
        let (run, make) = (self.run.clone(), self.make.clone());
        Some(Ok(Box::new(move || {
            let number = first / size as u64;
            let sample = |(position, thunk): (u64, Thunk<T>)| {
                run.guarded(Stage::Sample(position), || format!("sample {position}"), thunk)
            };
            let count = thunks.len();
            let samples = crate::list::<_, Result<Vec<_>>>((first..).zip(thunks).map(sample))?;
            let indices: Vec<usize> = crate::list((first as usize..).take(count));
            run.collated(number, samples, &indices, &make)
        })))
    }
}

/// Batches that are changed by a function.
pub(super) struct Mapped<A, F> {
    pub(super) of: Arc<dyn Jobs<A>>,
    pub(super) f: Arc<F>,
}

impl<A, B, F> Jobs<B> for Mapped<A, F>
where
    A: 'static,
    B: Send + 'static,
    F: Fn(A) -> Result<B> + Send + Sync + 'static,
{
    fn start(&self, run: EpochRun) -> Result<JobList<B>> {
        let (f, numbers, depth) = (self.f.clone(), run.first_batch.., self.of.maps());
        let jobs = self.of.start(run.clone())?;
        let run = Arc::new(run);
        Ok(Box::new(numbers.zip(jobs).map(move |(number, job)| -> Result<BatchJob<B>> {
            let (job, f, run) = (job?, f.clone(), run.clone());
            Ok(Box::new(move || {
                let batch = job()?;
                run.guarded(Stage::Map(number, depth), || format!("batch {number}"), || f(batch))
            }))
        })))
    }

    fn samples(&self) -> Option<usize> {
        self.of.samples()
    }

    fn maps(&self) -> u64 {
        self.of.maps() + 1
    }

    fn batches(&self, run: &EpochRun) -> Result<Option<usize>> {
        self.of.batches(run)
    }

    fn fingerprint(&self, run: &EpochRun) -> Result<Option<u64>> {
        self.of.fingerprint(run)
    }
}
