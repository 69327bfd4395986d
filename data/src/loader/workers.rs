//! Threads that run the jobs of an epoch ahead of the loop, and hand over the batches in order.

use super::jobs::{JobList, batch_of, next_job};
use namegrad_autograd::hand_over;
use namegrad_core::{Error, ErrorKind, Result, names};
use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Threads that make the batches of an epoch. They end when this is dropped.
pub(super) struct Workers<B> {
    shared: Arc<Pool<B>>,
    threads: Vec<JoinHandle<()>>,
    /// The number of the batch that the loop takes next.
    next: usize,
}

struct Pool<B> {
    /// The jobs that no worker has taken, and the number of the first of them. A worker holds it while it
    /// reads a job, and while it waits until there is room for its batch.
    jobs: Mutex<(JobList<B>, usize)>,
    queue: Mutex<Queue<B>>,
    /// The queue has changed.
    changed: Condvar,
    /// The number of batches that can be in progress or ready.
    room: usize,
    /// The line of the loop.
    caller: &'static Location<'static>,
}

/// The batches that are ready.
struct Queue<B> {
    ready: BTreeMap<usize, Finished<B>>,
    /// The number of batches that the loop has taken.
    taken: usize,
    /// The number of batches of the epoch, once it is known.
    total: Option<usize>,
    /// The loop wants no more.
    stopped: bool,
}

/// A batch, or the error that ends the epoch.
enum Finished<B> {
    Made(Result<B>),
    Broken(Error),
}

impl<B> Pool<B> {
    fn queue(&self) -> MutexGuard<'_, Queue<B>> {
        // Jobs do not panic, and nothing else can while the queue is locked.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'q>(&self, queue: MutexGuard<'q, Queue<B>>) -> MutexGuard<'q, Queue<B>> {
        self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs jobs until there are no more.
    fn work(&self) {
        loop {
            let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            let (list, number) = &mut *jobs;
            let mut queue = self.queue();
            while !queue.stopped && queue.total.is_none() && *number >= queue.taken.saturating_add(self.room)
            {
                queue = self.wait(queue);
            }
            if queue.stopped || queue.total.is_some() {
                return;
            }
            drop(queue);
            // A panic must not end a worker for whose batch the loop waits.
            let (job, own) = (next_job(list, self.caller), *number);
            *number += 1;
            let (batch, ends) = match job {
                Some(Ok(job)) => {
                    drop(jobs);
                    (Some(Finished::Made(batch_of(job, self.caller))), false)
                }
                Some(Err(error)) => (Some(Finished::Broken(error)), true),
                None => (None, true),
            };
            let mut queue = self.queue();
            if ends {
                queue.total = Some(own + usize::from(batch.is_some()));
            }
            if let Some(batch) = batch {
                queue.ready.insert(own, batch);
            }
            drop(queue);
            self.changed.notify_all();
        }
    }
}

impl<B: Send + 'static> Workers<B> {
    /// Starts `count` threads, which are at most `room` batches ahead of the loop.
    pub(super) fn start(
        jobs: JobList<B>,
        count: usize,
        room: usize,
        caller: &'static Location<'static>,
    ) -> Result<Workers<B>> {
        let (jobs, changed) = (Mutex::new((jobs, 0)), Condvar::new());
        let queue = Mutex::new(Queue { ready: BTreeMap::new(), taken: 0, total: None, stopped: false });
        let shared = Pool { jobs, queue, changed, room, caller };
        let mut workers = Workers { shared: Arc::new(shared), threads: Vec::new(), next: 0 };
        let strict = names::is_strict();
        for number in 0..count {
            let shared = workers.shared.clone();
            let observed = hand_over();
            let work = move || {
                observed.run(|| if strict { names::strict(|| shared.work()) } else { shared.work() });
            };
            let thread = Builder::new().name(format!("namegrad-loader-{number}")).spawn(work);
            let thread = thread.map_err(|error| {
                let message = format!("worker {number} of {count} could not be started: {error}");
                Error::new(ErrorKind::Io, "Loader", message).with_repair(".workers(2)")
            })?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// The next batch, and whether the epoch ends with it.
    pub(super) fn next(&mut self) -> (Option<Result<B>>, bool) {
        let mut queue = self.shared.queue();
        let batch = loop {
            if let Some(batch) = queue.ready.remove(&self.next) {
                break batch;
            }
            if queue.total.is_some_and(|total| self.next >= total) {
                return (None, true);
            }
            queue = self.shared.wait(queue);
        };
        self.next += 1;
        queue.taken = self.next;
        drop(queue);
        self.shared.changed.notify_all();
        match batch {
            Finished::Made(batch) => (Some(batch), false),
            Finished::Broken(error) => (Some(Err(error)), true),
        }
    }
}

impl<B> Drop for Workers<B> {
    fn drop(&mut self) {
        self.shared.queue().stopped = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A job does not panic: what users write runs guarded.
            let _ = thread.join();
        }
    }
}
