//! In-place updates for other crates: one step of an optimizer is an [`Update`], or, if it depends on sums
//! over all numbers, several [`Sweep`]s.
//!
//! [`update`] and [`sweep`] run such loops with the widest vectors of the CPU and on all threads. They work
//! on slices, so the caller needs no `unsafe`.

use super::math::Real;
use super::simd::{Simd, Vectorized, vectorize};
use super::threads::{Parts, each, parallel};

/// Below this many elements one thread is faster than two: shorter slices are updated by the calling thread.
pub const PARALLEL: usize = 1 << 16;
/// The elements that a thread takes at a time.
pub(super) const TASK: usize = 1 << 14;

/// A loop that updates numbers, such as parameters, with others, such as their gradients. It can keep
/// `STATES` more numbers for each.
///
/// ```
/// use namegrad_core::cpu::math::Real;
/// use namegrad_core::cpu::update::{Update, update};
///
/// /// `m = β m + g`, `x -= lr m`.
/// struct Momentum {
///     lr: f64,
///     beta: f64,
/// }
///
/// impl Update<1> for Momentum {
///     #[inline(always)]
///     fn run<T: Real>(&self, x: &mut [T], g: &[T], [m]: [&mut [T]; 1]) {
///         let (lr, beta) = (T::from_f64(self.lr), T::from_f64(self.beta));
///         for ((x, g), m) in x.iter_mut().zip(g).zip(m) {
///             *m = beta * *m + *g;
///             *x -= lr * *m;
///         }
///     }
/// }
///
/// let (mut x, g, mut m) = ([1.0_f32, 2.0], [1.0, -1.0], [0.0; 2]);
/// update(&Momentum { lr: 0.5, beta: 0.9 }, &mut x, &g, [&mut m]);
/// assert_eq!(x, [0.5, 2.5]);
/// ```
pub trait Update<const STATES: usize>: Sync {
    /// The loop. All slices have the same length.
    ///
    /// It runs on parts of the slices that were given to [`update`], in any order, so a number must not
    /// depend on those around it. `T` may be [`Fused`](super::math::Fused).
    ///
    /// Mark it `#[inline(always)]`, as well as the functions that it calls, and compute in loops rather than
    /// closures: only what is inlined is compiled for the widest vectors.
    fn run<T: Real>(&self, x: &mut [T], g: &[T], states: [&mut [T]; STATES]);
}

/// Runs an [`Update`] with the widest vectors of the CPU and, if the slices are long, on all threads.
///
/// # Panics
/// If the slices differ in length.
pub fn update<T: Real, const STATES: usize>(
    update: &impl Update<STATES>,
    x: &mut [T],
    g: &[T],
    states: [&mut [T]; STATES],
) {
    sweep::<T, STATES, 0>(&WithoutSums(update), x, g, states);
}

/// Runs `f` for each number below `tasks` on all threads, such as an update for each of several slices. A
/// thread that has none left helps with the long ones of others.
pub fn at_once(tasks: usize, f: &(dyn Fn(usize) + Sync)) {
    each(tasks, f);
}

/// An [`Update`] as a [`Sweep`].
pub struct WithoutSums<'a, U>(pub &'a U);

impl<U: Update<STATES>, const STATES: usize> Sweep<STATES, 0> for WithoutSums<'_, U> {
    #[inline(always)]
    fn run<T: Real>(&self, _: usize, x: &mut [T], g: &[T], states: [&mut [T]; STATES]) -> [f64; 0] {
        self.0.run(x, g, states);
        []
    }
}

/// A loop like that of an [`Update`] that also knows the positions of its numbers and computes `SUMS` sums
/// over all of them, such as the squares of what it has written.
///
/// ```
/// use namegrad_core::cpu::math::Real;
/// use namegrad_core::cpu::update::{Sweep, sweep};
///
/// /// `x -= lr g`, and `Σ x²`.
/// struct Descend(f64);
///
/// impl Sweep<0, 1> for Descend {
///     #[inline(always)]
///     fn run<T: Real>(&self, _start: usize, x: &mut [T], g: &[T], []: [&mut [T]; 0]) -> [f64; 1] {
///         let (lr, mut sum) = (T::from_f64(self.0), T::ZERO);
///         for (x, g) in x.iter_mut().zip(g) {
///             *x -= lr * *g;
///             sum += *x * *x;
///         }
///         [sum.to_f64()]
///     }
/// }
///
/// let mut x = [1.0_f32, 2.0];
/// assert_eq!(sweep(&Descend(0.5), &mut x, &[1.0, 1.0], []), [2.5]);
/// ```
pub trait Sweep<const STATES: usize, const SUMS: usize>: Sync {
    /// The loop over the numbers from position `start`, and their part of the sums. All slices have the same
    /// length.
    ///
    /// Like [`Update::run`], it must be `#[inline(always)]` and runs on parts of the slices, in any order.
    /// The parts depend only on the length of the slices.
    fn run<T: Real>(&self, start: usize, x: &mut [T], g: &[T], states: [&mut [T]; STATES]) -> [f64; SUMS];
}

/// Runs a [`Sweep`] with the widest vectors of the CPU and, if the slices are long, on all threads. Returns
/// the sums, which are the same for any number of threads.
///
/// # Panics
/// If the slices differ in length.
pub fn sweep<T: Real, const STATES: usize, const SUMS: usize>(
    sweep: &impl Sweep<STATES, SUMS>,
    x: &mut [T],
    g: &[T],
    states: [&mut [T]; STATES],
) -> [f64; SUMS] {
    let n = x.len();
    assert!(
        g.len() == n && states.iter().all(|state| state.len() == n),
        "update: {n} numbers with slices of {} and {:?}",
        g.len(),
        states.each_ref().map(|state| state.len())
    );
    swept(sweep, x, g, states)
}

/// Runs a [`Sweep`] that only reads: all of its slices but `g` are empty. Returns the sums.
///
/// ```
/// use namegrad_core::cpu::math::Real;
/// use namegrad_core::cpu::update::{Sweep, sums};
///
/// /// `Σ g`.
/// struct Sum;
///
/// impl Sweep<0, 1> for Sum {
///     #[inline(always)]
///     fn run<T: Real>(&self, _start: usize, _x: &mut [T], g: &[T], []: [&mut [T]; 0]) -> [f64; 1] {
///         let mut sum = T::ZERO;
///         for g in g {
///             sum += *g;
///         }
///         [sum.to_f64()]
///     }
/// }
///
/// assert_eq!(sums(&Sum, &[1.0_f32, 2.0]), [3.0]);
/// ```
pub fn sums<T: Real, const SUMS: usize>(sweep: &impl Sweep<0, SUMS>, g: &[T]) -> [f64; SUMS] {
    swept(sweep, &mut [], g, [])
}

/// Runs a [`Sweep`] of numbers with nothing else: its `g` is empty. Returns the sums.
///
/// ```
/// use namegrad_core::cpu::math::Real;
/// use namegrad_core::cpu::update::{Update, WithoutSums, sweep_alone};
///
/// /// `x *= 2`.
/// struct Double;
///
/// impl Update<0> for Double {
///     #[inline(always)]
///     fn run<T: Real>(&self, x: &mut [T], _g: &[T], []: [&mut [T]; 0]) {
///         for x in x {
///             *x += *x;
///         }
///     }
/// }
///
/// let mut x = [1.0_f32, 2.0];
/// sweep_alone(&WithoutSums(&Double), &mut x);
/// assert_eq!(x, [2.0, 4.0]);
/// ```
pub fn sweep_alone<T: Real, const SUMS: usize>(sweep: &impl Sweep<0, SUMS>, x: &mut [T]) -> [f64; SUMS] {
    swept(sweep, x, &[], [])
}

/// A sweep over slices of one length, of which `x` or `g` can also be empty.
fn swept<T: Real, const STATES: usize, const SUMS: usize>(
    sweep: &impl Sweep<STATES, SUMS>,
    x: &mut [T],
    g: &[T],
    states: [&mut [T]; STATES],
) -> [f64; SUMS] {
    let (n, has_x, has_g) = (x.len().max(g.len()), !x.is_empty(), !g.is_empty());
    let mut total = [0.0; SUMS];
    if n < PARALLEL {
        vectorize(Part { sweep, start: 0, g, states }, (x, &mut total));
        return total;
    }
    let mut sums = vec![[0.0; SUMS]; n.div_ceil(TASK)];
    let (x, states, parts) = (Parts::new(x), states.map(Parts::new), Parts::new(&mut sums));
    parallel(n, TASK, |range| {
        let (start, task) = (range.start, range.start / TASK);
        // SAFETY: ranges do not overlap.
        let states = states.each_ref().map(|state| unsafe { state.part(range.clone()) });
        // SAFETY: as above, and of no elements if there are none.
        let x = unsafe { x.part(if has_x { range.clone() } else { 0..0 }) };
        // SAFETY: each range belongs to one task.
        let sums = unsafe { parts.part(task..task + 1) };
        let g = if has_g { &g[range] } else { &[] };
        vectorize(Part { sweep, start, g, states }, (x, &mut sums[0]));
    });
    for part in sums {
        total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
    }
    total
}

/// A sweep over a part of the numbers, on this thread.
struct Part<'a, S, T, const STATES: usize, const SUMS: usize> {
    sweep: &'a S,
    start: usize,
    g: &'a [T],
    states: [&'a mut [T]; STATES],
}

impl<L: Sweep<STATES, SUMS>, T: Real, const STATES: usize, const SUMS: usize> Vectorized
    for Part<'_, L, T, STATES, SUMS>
{
    type Out<'a> = (&'a mut [T], &'a mut [f64; SUMS]);

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (x, sums): (&mut [T], &mut [f64; SUMS])) {
        let states = self.states.map(|state| simd.numbers_mut(state));
        *sums = self.sweep.run(self.start, simd.numbers_mut(x), simd.numbers(self.g), states);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a = a + g`, `x = x + a b`: some slices are only read, others are also written.
    struct Sums;

    impl Update<2> for Sums {
        #[inline(always)]
        fn run<T: Real>(&self, x: &mut [T], g: &[T], [a, b]: [&mut [T]; 2]) {
            for (((x, g), a), b) in x.iter_mut().zip(g).zip(a).zip(b) {
                *a += *g;
                *x += *a * *b;
            }
        }
    }

    fn check<T: Real>(n: usize) {
        let numbers = |k: usize| (0..n).map(|i| T::from_f64((i * k % 17) as f64)).collect::<Vec<_>>();
        let (mut x, g, mut a, mut b) = (numbers(3), numbers(5), numbers(7), numbers(11));
        update(&Sums, &mut x, &g, [&mut a, &mut b]);
        for (i, (x, a)) in x.iter().zip(&a).enumerate() {
            let number = |k: usize| (i * k % 17) as f64;
            let sum = number(7) + number(5);
            assert_eq!((x.to_f64(), a.to_f64()), (number(3) + sum * number(11), sum), "{i} of {n}");
        }
        assert!(b == numbers(11));
    }

    #[test]
    fn each_number_is_updated_once() {
        for n in [0, 1, 37, PARALLEL - 1, PARALLEL, PARALLEL + TASK + 5] {
            check::<f32>(n);
            check::<f64>(n);
        }
    }

    /// `x = x + 1`.
    struct Next;

    impl Update<0> for Next {
        #[inline(always)]
        fn run<T: Real>(&self, x: &mut [T], g: &[T], []: [&mut [T]; 0]) {
            assert!(g.is_empty());
            for x in x {
                *x += T::ONE;
            }
        }
    }

    #[test]
    fn numbers_are_updated_alone() {
        for n in [0, 37, PARALLEL - 1, PARALLEL + TASK + 5] {
            let mut x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            sweep_alone(&WithoutSums(&Next), &mut x);
            assert!(x.iter().enumerate().all(|(i, x)| *x == i as f32 + 1.0), "{n}");
        }
    }

    /// `x = x + 1`, the sum of all `g`, and that of all positions.
    struct Positions;

    impl Sweep<0, 2> for Positions {
        #[inline(always)]
        fn run<T: Real>(&self, start: usize, x: &mut [T], g: &[T], []: [&mut [T]; 0]) -> [f64; 2] {
            let mut sums = [0.0; 2];
            for (i, (x, g)) in x.iter_mut().zip(g).enumerate() {
                *x += T::ONE;
                sums[0] += g.to_f64();
                sums[1] += (start + i) as f64;
            }
            sums
        }
    }

    /// The same sums, of numbers that are only read.
    struct Read;

    impl Sweep<0, 2> for Read {
        #[inline(always)]
        fn run<T: Real>(&self, start: usize, x: &mut [T], g: &[T], []: [&mut [T]; 0]) -> [f64; 2] {
            assert!(x.is_empty());
            let mut sums = [0.0; 2];
            for (i, g) in g.iter().enumerate() {
                sums[0] += g.to_f64();
                sums[1] += (start + i) as f64;
            }
            sums
        }
    }

    #[test]
    fn sums_are_of_all_numbers() {
        for n in [0, 37, PARALLEL - 1, PARALLEL + TASK + 5] {
            let (mut x, g) = (vec![0.0_f32; n], vec![2.0_f32; n]);
            let sums = sweep(&Positions, &mut x, &g, []);
            let positions = (n * n.saturating_sub(1) / 2) as f64;
            assert_eq!(sums, [2.0 * n as f64, positions], "{n}");
            assert!(x.iter().all(|x| *x == 1.0));
            assert_eq!(super::sums(&Read, &g), [2.0 * n as f64, positions], "{n}, only read");
        }
    }

    #[test]
    #[should_panic(expected = "update: 2 numbers with slices of 2 and [2, 3]")]
    fn slices_must_have_one_length() {
        update(&Sums, &mut [0.0; 2], &[0.0; 2], [&mut [0.0; 2], &mut [0.0; 3]]);
    }
}
