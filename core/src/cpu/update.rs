//! In-place updates for other crates: one step of an optimizer is an [`Update`], or, if it depends on sums
//! over all numbers, several [`Sweep`]s.
//!
//! [`update`] and [`sweep`] run such loops with the widest vectors of the CPU and on all threads. They work
//! on slices, so the caller needs no `unsafe`. A sweep is compiled for each type and set of instructions;
//! [`sweep_any`], which divides the slices between threads, only for each type.

use super::math::Real;
use super::simd::{Simd, UpTo, Vectorized, vectorize};
use super::threads::{DisjointParts, each, parallel};

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
    mut states: [&mut [T]; STATES],
) {
    sweep_any(&Compiled(&WithoutSums(update)), x, g, &mut states, &mut []);
}

/// Runs `f` for each number below `tasks` on all threads, such as an update for each of several slices. A
/// thread that has none left helps with the long ones of others.
#[inline(always)]
pub fn at_once(tasks: usize, f: &(impl Fn(usize) + Sync)) {
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
    mut states: [&mut [T]; STATES],
) -> [f64; SUMS] {
    let mut sums = [0.0; SUMS];
    sweep_any(&Compiled(sweep), x, g, &mut states, &mut sums);
    sums
}

/// The loop of any [`Sweep`] over numbers of type `T`: [`Compiled`] makes it. Code that takes a
/// `&dyn Loop<T>` is compiled once for all sweeps.
pub trait Loop<T>: Sync {
    /// Runs the loop over the numbers from position `start`, on this thread, and sets the sums.
    fn run(&self, start: usize, x: &mut [T], g: &[T], states: &mut [&mut [T]], sums: &mut [f64]);
}

/// A [`Loop`] over both types of numbers in which parameters are updated.
pub trait Loops: Loop<f32> + Loop<f64> {}

impl<L: Loop<f32> + Loop<f64>> Loops for L {}

/// A [`Sweep`] as a [`Loop`], compiled for each set of instructions.
pub struct Compiled<'a, S, const STATES: usize, const SUMS: usize>(pub &'a S);

impl<T: Real, S: Sweep<STATES, SUMS>, const STATES: usize, const SUMS: usize> Loop<T>
    for Compiled<'_, S, STATES, SUMS>
{
    fn run(&self, start: usize, x: &mut [T], g: &[T], states: &mut [&mut [T]], sums: &mut [f64]) {
        let (Ok(states), Ok(sums)) = (states.try_into(), sums.try_into()) else {
            unreachable!("a loop gets its number of states and of sums")
        };
        vectorize(Part { sweep: self.0, start, g, states }, (x, sums));
    }
}

/// Runs a loop on all threads if the slices are long. `x` or `g` can be empty, for a loop that only reads or
/// that changes numbers without others. The sums are the same for any number of threads.
///
/// ```
/// use namegrad_core::cpu::math::Real;
/// use namegrad_core::cpu::update::{Compiled, Sweep, sweep_any};
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
/// let mut sums = [0.0];
/// sweep_any(&Compiled(&Sum), &mut [], &[1.0_f32, 2.0], &mut [], &mut sums);
/// assert_eq!(sums, [3.0]);
/// ```
///
/// # Panics
/// If slices that are not empty differ in length, or the loop has another number of states or sums.
pub fn sweep_any<T: Real>(
    sweep: &dyn Loop<T>,
    x: &mut [T],
    g: &[T],
    states: &mut [&mut [T]],
    sums: &mut [f64],
) {
    let (n, has_x, has_g) = (x.len().max(g.len()), !x.is_empty(), !g.is_empty());
    let check = |length: usize| assert!(length == n, "update: slices of {length} and {n} numbers");
    check(if has_x { x.len() } else { n });
    check(if has_g { g.len() } else { n });
    for state in &*states {
        check(state.len());
    }
    // Sums are of the same parts for any number of threads.
    if n < PARALLEL || (sums.is_empty() && rayon::current_num_threads() == 1) {
        return sweep.run(0, x, g, states, sums);
    }
    let mut parts = vec![0.0; n.div_ceil(TASK) * sums.len()];
    let (x, all_sums) = (DisjointParts::new(x), DisjointParts::new(&mut parts));
    let mut state_parts = Vec::new();
    for state in states {
        state_parts.push(DisjointParts::new(state));
    }
    let count = sums.len();
    parallel(n, TASK, |range| {
        let (start, task) = (range.start, range.start / TASK);
        let mut slices = Vec::new();
        for state in &state_parts {
            // SAFETY: ranges do not overlap.
            slices.push(unsafe { state.part(range.clone()) });
        }
        // SAFETY: as above, and of no elements if there are none.
        let x = unsafe { x.part(if has_x { range.clone() } else { 0..0 }) };
        // SAFETY: each range belongs to one task.
        let sums = unsafe { all_sums.part(task * count..(task + 1) * count) };
        let g = if has_g { &g[range.clone()] } else { &[] };
        sweep.run(start, x, g, &mut slices, sums);
    });
    sums.fill(0.0);
    for (place, part) in parts.into_iter().enumerate() {
        sums[place % count] += part;
    }
}

/// A sweep over a part of the numbers, on this thread.
struct Part<'a, 's, S, T, const STATES: usize, const SUMS: usize> {
    sweep: &'a S,
    start: usize,
    g: &'a [T],
    states: &'a mut [&'s mut [T]; STATES],
}

impl<L: Sweep<STATES, SUMS>, T: Real, const STATES: usize, const SUMS: usize> Vectorized
    for Part<'_, '_, L, T, STATES, SUMS>
{
    type Out<'a> = (&'a mut [T], &'a mut [f64; SUMS]);
    const UP_TO: UpTo = UpTo::for_memory::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (x, sums): (&mut [T], &mut [f64; SUMS])) {
        let states = std::ptr::from_mut(self.states).cast::<[&mut [S::Number<T>]; STATES]>();
        // SAFETY: the numbers have the layout of `T`, and nothing else uses the slices until the sweep ends.
        // They are cast together, since a closure for each would be compiled for each sweep.
        let states = unsafe { states.read() };
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
            sweep_any(&Compiled(&WithoutSums(&Next)), &mut x, &[], &mut [], &mut []);
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
            let mut sums = [f64::NAN; 2];
            sweep_any(&Compiled(&Read), &mut [], &g, &mut [], &mut sums);
            assert_eq!(sums, [2.0 * n as f64, positions], "{n}, only read");
        }
    }

    #[test]
    #[should_panic(expected = "update: slices of 3 and 2 numbers")]
    fn slices_must_have_one_length() {
        update(&Sums, &mut [0.0; 2], &[0.0; 2], [&mut [0.0; 2], &mut [0.0; 3]]);
    }
}
