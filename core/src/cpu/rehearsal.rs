//! How an op would run on more threads than there are cores. Where loops share their parts among threads, one
//! thread runs all parts and measures each, so that what is left for other threads can be worked out.

use super::threads::Task;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// What a thread did in [`rehearse`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Rehearsal {
    /// The threads of the pool that it was rehearsed for.
    pub threads: usize,
    /// The loops that wait for all threads, one after another.
    pub sections: usize,
    /// The parts of all these loops together.
    pub parts: usize,
    /// The time that only one thread can work: outside of the loops.
    pub serial: Duration,
    /// The time of all parts, as if one thread ran them.
    pub shared: Duration,
    /// The time of all parts, if each thread of the pool takes the next one as soon as it is free.
    pub span: Duration,
}

thread_local! {
    static CURRENT: Cell<Option<Rehearsal>> = const { Cell::new(None) };
}

impl Rehearsal {
    /// How many times faster all threads are than one, if waking them took no time and each had as much
    /// bandwidth as this one has now.
    pub fn bound(&self) -> f64 {
        (self.serial + self.shared).as_secs_f64() / (self.serial + self.span).as_secs_f64()
    }
}

/// Runs `f` on this thread alone, divided as the threads of the current rayon pool would share it.
///
/// ```
/// use namegrad_core::NamedTensor;
/// use namegrad_core::rehearsal::rehearse;
/// let pool = rayon::ThreadPoolBuilder::new().num_threads(64).build()?;
/// let x = NamedTensor::ones([1 << 22])?;
/// let (y, rehearsal) = pool.install(|| rehearse(|| x.exp()));
/// assert_eq!((y?.numel(), rehearsal.threads, rehearsal.sections), (1 << 22, 64, 1));
/// assert!(rehearsal.parts >= 64 && rehearsal.bound() > 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn rehearse<R>(f: impl FnOnce() -> R) -> (R, Rehearsal) {
    let threads = rayon::current_num_threads();
    let outer = CURRENT.replace(Some(Rehearsal { threads, ..Rehearsal::default() }));
    let started = Instant::now();
    let result = f();
    let elapsed = started.elapsed();
    let mut rehearsal = CURRENT.replace(outer).unwrap_or_default();
    // Until here, it had the time of the loops, with that of their measurement.
    rehearsal.serial = elapsed.saturating_sub(rehearsal.serial);
    (result, rehearsal)
}

/// Runs the parts of a loop, if this thread rehearses. A loop inside of a part belongs to the part.
pub(super) fn run(tasks: usize, f: &Task<'_>) -> bool {
    if tasks < 2 {
        return false;
    }
    let Some(mut rehearsal) = CURRENT.take() else { return false };
    let mut free_at = vec![Duration::ZERO; rehearsal.threads.max(1)];
    let before_all = Instant::now();
    for task in 0..tasks {
        let started = Instant::now();
        f.call_with((task,));
        let elapsed = started.elapsed();
        rehearsal.shared += elapsed;
        *free_at.iter_mut().min().expect("a thread") += elapsed;
    }
    rehearsal.serial += before_all.elapsed();
    rehearsal.span += free_at.into_iter().max().unwrap_or_default();
    rehearsal.sections += 1;
    rehearsal.parts += tasks;
    CURRENT.set(Some(rehearsal));
    true
}
