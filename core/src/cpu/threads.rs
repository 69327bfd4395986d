//! Loops on several threads.
//!
//! The caller starts working immediately, and the threads of the current rayon pool join as soon as they are
//! awake. Waking a thread takes about as long as a loop over 100,000 elements, so a caller that waited for
//! one would gain nothing on short loops.

use super::room::{Room, check_is, written};
use crate::callback::Callback;
use std::any::Any;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Splits `0..n` into ranges of `grain` and runs them on all threads. Up to two ranges run on the calling
/// thread. The ranges do not depend on the number of threads.
#[inline(always)]
pub(crate) fn parallel(n: usize, grain: usize, f: impl Fn(Range<usize>) + Sync) {
    parallel_ranges(n, grain, &f);
}

/// [`parallel`], which is compiled once.
fn parallel_ranges(n: usize, grain: usize, f: &(dyn Callback<(Range<usize>,)> + Sync)) {
    if n > 2 * grain {
        each(n.div_ceil(grain), &|task| f.call_with((task * grain..((task + 1) * grain).min(n),)));
    } else if n > 0 {
        f.call_with((0..n,));
    }
}

/// Runs `f` for each number below `tasks` on all threads.
#[inline(always)]
pub(crate) fn each(tasks: usize, f: &(impl Fn(usize) + Sync)) {
    each_of(tasks, f);
}

/// [`each`], which is compiled once.
pub(crate) fn each_of(tasks: usize, f: &Task<'_>) {
    #[cfg(feature = "rehearsal")]
    if super::rehearsal::run(tasks, f) {
        return;
    }
    let helpers = rayon::current_num_threads().min(tasks).saturating_sub(1);
    if helpers == 0 {
        return (0..tasks).for_each(|task| f.call_with((task,)));
    }
    // SAFETY: only the lifetime changes. `f` is called only for a task, and the wait below ends after the
    // last task.
    let f = unsafe { std::mem::transmute::<&Task<'_>, &'static Task<'static>>(f) };
    let work = Arc::new(TaskCounter {
        f,
        tasks,
        next: AtomicUsize::new(0),
        busy: AtomicUsize::new(0),
        panic: Mutex::new(None),
    });
    work.wake(helpers);
    work.help();
    work.wait();
    let panic = work.panic.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

/// What runs for each number.
pub(crate) type Task<'f> = dyn Callback<(usize,)> + Sync + 'f;

/// Runs `f` on all threads for each part of `y` and its number. A part has `len` elements; the last one may
/// be shorter.
#[inline(always)]
pub(crate) fn each_part<A: Send>(y: &mut [A], len: usize, f: &(impl Fn(usize, &mut [A]) + Sync)) {
    each_part_of(y, len, f);
}

/// [`each_part`], which is compiled once for a type.
fn each_part_of<A: Send>(y: &mut [A], len: usize, f: &(dyn for<'p> Callback<(usize, &'p mut [A])> + Sync)) {
    let tasks = y.len().div_ceil(len);
    if tasks < 2 {
        if tasks == 1 {
            f.call_with((0, y));
        }
        return;
    }
    let parts = DisjointParts::new(y);
    // SAFETY: parts with different numbers do not overlap, and each number is used once.
    each(tasks, &|i| f.call_with((i, unsafe { parts.part(i * len..(i + 1) * len) })));
}

/// `each_part` of a room: `f` writes its part and returns it.
#[inline(always)]
pub fn write_parts<'a, A: Send>(
    y: &'a mut Room<A>,
    len: usize,
    f: &(impl for<'p> Fn(usize, &'p mut Room<A>) -> &'p mut [A] + Sync),
) -> &'a mut [A] {
    write_parts_of(y, len, f)
}

/// [`write_parts`], which is compiled once for a type.
pub(crate) fn write_parts_of<'a, A: Send>(
    y: &'a mut Room<A>,
    len: usize,
    f: &WritePart<'_, A>,
) -> &'a mut [A] {
    each_part(y, len, &|i, part| {
        let place = (part.as_ptr(), part.len());
        check_is(place, f.call_with((i, part)));
    });
    // SAFETY: the parts make up `y`, and each was returned as elements.
    unsafe { written(y) }
}

/// Writes the part of a number.
pub(crate) type WritePart<'f, A> = dyn for<'p> Callback<(usize, &'p mut Room<A>), &'p mut [A]> + Sync + 'f;

/// Tasks that several threads take from a common counter.
struct TaskCounter {
    f: &'static Task<'static>,
    tasks: usize,
    next: AtomicUsize,
    /// The number of threads that may be inside `f`.
    busy: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl TaskCounter {
    /// Wakes other threads. Each wakes two more while tasks are left: a thread that woke all of them would
    /// have no time to work, and the last would be awake after as many wakes as there are threads.
    fn wake(self: &Arc<Self>, helpers: usize) {
        for helpers in [helpers.div_ceil(2), helpers / 2] {
            if helpers > 0 {
                let work = self.clone();
                rayon::spawn(move || {
                    if work.next.load(Ordering::Relaxed) < work.tasks {
                        work.wake(helpers - 1);
                        work.help();
                    }
                });
            }
        }
    }

    /// Runs tasks until none are left. A helper that wakes up too late finds none and does not touch `f`,
    /// which may no longer exist.
    fn help(&self) {
        // Counted before a task is taken: when no tasks are left and no thread is busy, all tasks are done.
        self.busy.fetch_add(1, Ordering::SeqCst);
        loop {
            let task = self.next.fetch_add(1, Ordering::SeqCst);
            if task >= self.tasks {
                break;
            }
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.f.call_with((task,)))) {
                *self.panic.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(panic);
            }
        }
        self.busy.fetch_sub(1, Ordering::SeqCst);
    }

    /// Waits for the threads that are still running their last task, which is short.
    fn wait(&self) {
        let mut turns = 0;
        while self.busy.load(Ordering::SeqCst) > 0 {
            turns += 1;
            if turns < 2000 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

/// A slice that threads write in disjoint parts.
pub(crate) struct DisjointParts<'a, T> {
    ptr: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: by its contract, `part` returns parts that do not overlap.
unsafe impl<T: Send> Sync for DisjointParts<'_, T> {}

impl<'a, T> DisjointParts<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> DisjointParts<'a, T> {
        DisjointParts { ptr: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// The elements in `range`; a range that is too long ends with the slice.
    ///
    /// # Safety
    /// No other live part overlaps this one.
    #[allow(clippy::mut_from_ref)] // as `Cell::from_mut`, with the contract in place of the check
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        let end = range.end.min(self.len);
        assert!(range.start <= end);
        // SAFETY: the range is inside the slice, and the caller guarantees that nothing overlaps it.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(range.start), end - range.start) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        for threads in [1, 2, 3, 4, 64] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for n in [0, 1, 9, 10, 1000] {
                let mut seen = vec![0; n];
                let slots = DisjointParts::new(&mut seen);
                // SAFETY: ranges do not overlap.
                let mark = |range| unsafe { slots.part(range) }.iter_mut().for_each(|count| *count += 1);
                pool.install(|| parallel(n, 3, mark));
                parallel(n, 4, mark);
                assert!(seen.iter().all(|count| *count == 2), "{threads} {n}");
            }
        }
    }

    #[test]
    fn loops_inside_loops() {
        let sum = AtomicUsize::new(0);
        each(20, &|i| {
            each(20, &|j| {
                sum.fetch_add(i * j, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), 190 * 190);
    }

    #[test]
    fn a_panic_reaches_the_caller_after_all_tasks() {
        let ran = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            each(50, &|task| {
                ran.fetch_add(1, Ordering::Relaxed);
                assert!(task != 7);
            });
        }));
        assert!(result.is_err());
        // On one thread the panic ends the loop.
        assert!([8, 50].contains(&ran.into_inner()));
    }
}
