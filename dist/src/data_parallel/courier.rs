//! [`Courier`], a thread that exchanges buckets while the backward pass computes. MPI moves messages on only
//! while one of its functions runs, and an all-reduce on `n` ranks takes up to `2 (n - 1)` of such moves.

use crate::backend::Reduction;
use crate::group::Group;
use crate::pending::Pending;
use namegrad::prelude::*;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long the thread sleeps before it moves messages on again. Where all cores compute, it takes a few
/// percent of one.
const PAUSE: Duration = Duration::from_micros(50);

pub(super) struct Courier {
    /// Until the courier is dropped.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    lane: Group,
    /// Messages without elements, which this thread sends: a plan counts those of its thread.
    planned: Mutex<Vec<Result<Pending>>>,
}

enum Job {
    /// Sends the elements of tensors, one after another, times a factor.
    Send(Vec<Tensor>, f64),
    /// Hands over all that was sent, in the order in which it was.
    HandOver(Sender<Vec<Result<Pending>>>),
    /// Forgets all that was sent, for which nobody may wait.
    Forget,
}

impl Courier {
    pub(super) fn new(lane: &Group) -> Result<Courier> {
        let (jobs, received) = channel();
        let of_thread = lane.clone();
        let builder = thread::Builder::new().name("namegrad-buckets".into());
        let thread = builder.spawn(move || carry(&of_thread, &received))?;
        let planned = Mutex::default();
        Ok(Courier { jobs: Some(jobs), thread: Some(thread), lane: lane.clone(), planned })
    }

    fn planned(&self) -> MutexGuard<'_, Vec<Result<Pending>>> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether messages without elements were sent.
    pub(super) fn is_planned(&self) -> bool {
        !self.planned().is_empty()
    }

    fn tell(&self, job: Job) -> Result<()> {
        let told = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if told { Ok(()) } else { Err(Error::other("the thread that exchanges gradients has panicked")) }
    }

    /// Starts an all-reduce of the elements of tensors, one after another, times a factor.
    pub(super) fn send(&self, parts: Vec<Tensor>, factor: f64) -> Result<()> {
        if parts.iter().any(|part| part.device() == Device::Meta) {
            let sent = started(&self.lane, parts, factor);
            self.planned().push(sent);
            return Ok(());
        }
        self.tell(Job::Send(parts, factor))
    }

    /// The all-reduces that were started since the last call, in their order.
    pub(super) fn hand_over(&self) -> Result<Vec<Result<Pending>>> {
        if self.is_planned() {
            return Ok(std::mem::take(&mut *self.planned()));
        }
        let (to, sent) = channel();
        self.tell(Job::HandOver(to))?;
        sent.recv().map_err(|_| Error::other("the thread that exchanges gradients has panicked"))
    }
}

/// The thread ends before the groups that it uses.
impl Drop for Courier {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.tell(Job::Forget);
        }
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts what is to be sent, and moves it on until it is handed over.
fn carry(lane: &Group, jobs: &Receiver<Job>) {
    let mut sent: Vec<Result<Pending>> = Vec::new();
    loop {
        let mut is_moving = false;
        for one in &mut sent {
            match one.as_mut().map(Pending::is_done) {
                Ok(Ok(is_done)) => is_moving |= !is_done,
                Ok(Err(error)) => *one = Err(error),
                Err(_) => {}
            }
        }
        let job = match is_moving {
            true => jobs.recv_timeout(PAUSE),
            false => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match job {
            Ok(Job::Send(parts, factor)) => sent.push(started(lane, parts, factor)),
            // The other end waits, unless its thread panics.
            Ok(Job::HandOver(to)) => drop(to.send(std::mem::take(&mut sent))),
            Ok(Job::Forget) => std::mem::take(&mut sent).into_iter().for_each(std::mem::forget),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn started(lane: &Group, mut parts: Vec<Tensor>, factor: f64) -> Result<Pending> {
    let one = if parts.len() == 1 { parts.pop() } else { None };
    let mut message = one.map_or_else(|| Tensor::cat(parts, 0), Ok)?;
    if factor != 1.0 {
        message = message.mul(factor)?;
    }
    lane.start_all_reduce(&message, Reduction::Sum)
}
