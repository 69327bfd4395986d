//! [`Batches`], the iterator of a loader.

use super::Loader;
use super::jobs::{EpochRun, JobList, batch_of, next_job};
use super::workers::Workers;
use namegrad_autograd::span_at;
use namegrad_core::{Error, Result};
use std::fmt;
use std::iter::FusedIterator;
use std::panic::Location;

/// An iterator over the batches of an epoch, each a `Result`. [`Loader::iter`] and [`Loader::epoch`] return
/// it.
///
/// When it is dropped, it waits for its workers, each of which finishes the sample that it is at. If it is
/// leaked instead, by `std::mem::forget` or a cycle of `Rc`s, its workers and their batches stay until the
/// program ends.
pub struct Batches<'a, B> {
    loader: &'a Loader<B>,
    engine: BatchMaker<B>,
    /// The number of this run of the loader.
    run: u64,
    /// The number of batches that are left, if it is known.
    left: Option<usize>,
    /// The line of the loop.
    caller: &'static Location<'static>,
}

/// The maker of the batches.
enum BatchMaker<B> {
    /// This thread.
    Here(JobList<B>),
    Workers(Workers<B>),
    /// The epoch could not be started.
    Failed(Error),
    /// There is nothing left.
    Done,
}

impl<B: Send + 'static> BatchMaker<B> {
    /// The next batch, and whether the epoch ends with it.
    fn next(&mut self, caller: &'static Location<'static>) -> (Option<Result<B>>, bool) {
        match self {
            BatchMaker::Here(jobs) => match next_job(jobs, caller) {
                Some(Ok(job)) => (Some(batch_of(job, caller)), false),
                Some(Err(error)) => (Some(Err(error)), true),
                None => (None, true),
            },
            BatchMaker::Workers(workers) => workers.next(),
            BatchMaker::Failed(error) => (Some(Err(error.clone())), true),
            BatchMaker::Done => (None, true),
        }
    }
}

impl<B> fmt::Debug for Batches<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("left", &self.left).finish_non_exhaustive()
    }
}

impl<'a, B: Send + 'static> Batches<'a, B> {
    pub(super) fn new(loader: &'a Loader<B>, run: EpochRun, number: u64) -> Batches<'a, B> {
        let (settings, caller) = (&run.settings, run.caller);
        let started = loader.jobs.start(run.clone()).and_then(|jobs| match settings.workers {
            0 => Ok(BatchMaker::Here(jobs)),
            _ => Workers::start(jobs, settings.workers, settings.prefetch, caller).map(BatchMaker::Workers),
        });
        // The start has computed the order, so this does not ask the sampler again.
        let left = loader.jobs.batches(&run).ok().flatten();
        let left = left.map(|batches| batches.saturating_sub(run.first_batch as usize));
        let engine = started.unwrap_or_else(|error| BatchMaker::Failed(error.at(caller)));
        Batches { loader, engine, run: number, left, caller }
    }
}

/// A loop that ends early ends its epoch, so that a state saved after it is where the next loop begins.
impl<B> Drop for Batches<'_, B> {
    fn drop(&mut self) {
        self.loader.position().end(self.run);
    }
}

impl<B: Send + 'static> Iterator for Batches<'_, B> {
    type Item = Result<B>;

    fn next(&mut self) -> Option<Result<B>> {
        let (batch, ended) = match &mut self.engine {
            BatchMaker::Done => return None,
            // Profiles show how long the loop waits.
            engine => span_at("Loader", self.caller, || engine.next(self.caller)),
        };
        match (&batch, ended) {
            (Some(_), false) => self.loader.position().take(self.run),
            (None, _) => self.loader.position().end(self.run),
            // The epoch was broken off, so that a state saved now goes on at the same place.
            (Some(_), true) => {}
        }
        if ended {
            self.engine = BatchMaker::Done;
        }
        self.left = self.left.map(|left| if ended { 0 } else { left.saturating_sub(1) });
        batch
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, self.left)
    }
}

impl<B: Send + 'static> FusedIterator for Batches<'_, B> {}

/// An iterator over the batches of all epochs, one after the other. [`Loader::cycle`] returns it.
#[derive(Debug)]
pub struct Cycle<'a, B>(pub(super) Batches<'a, B>);

impl<B: Send + 'static> Iterator for Cycle<'_, B> {
    type Item = Result<B>;

    fn next(&mut self) -> Option<Result<B>> {
        if let Some(batch) = self.0.next() {
            return Some(batch);
        }
        let Batches { loader, caller, .. } = self.0;
        self.0 = loader.next_epoch(caller);
        self.0.next()
    }
}
