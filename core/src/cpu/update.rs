//! In-place updates for other crates: one step of an optimizer is an [`Update`].
//!
//! [`update`] runs the loop of an [`Update`] with the widest vectors of the CPU and on all threads. It works
//! on slices, so the caller needs no `unsafe`.

use super::math::Real;
use super::simd::{Simd, Vectorized, vectorize};
use super::threads::{Parts, parallel};

/// Below this many elements one thread is faster than two.
const PARALLEL: usize = 1 << 16;
/// The elements that a thread takes at a time.
const TASK: usize = 1 << 14;

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
    let n = x.len();
    assert!(
        g.len() == n && states.iter().all(|state| state.len() == n),
        "update: {n} numbers with slices of {} and {:?}",
        g.len(),
        states.each_ref().map(|state| state.len())
    );
    if n < PARALLEL {
        return vectorize(Part { update, g, states }, x);
    }
    let (x, states) = (Parts::new(x), states.map(Parts::new));
    parallel(n, TASK, |range| {
        // SAFETY: ranges do not overlap.
        let states = states.each_ref().map(|state| unsafe { state.part(range.clone()) });
        // SAFETY: as above.
        let x = unsafe { x.part(range.clone()) };
        vectorize(Part { update, g: &g[range], states }, x);
    });
}

/// An update of a part of the numbers, on this thread.
struct Part<'a, U, T, const STATES: usize> {
    update: &'a U,
    g: &'a [T],
    states: [&'a mut [T]; STATES],
}

impl<U: Update<STATES>, T: Real, const STATES: usize> Vectorized for Part<'_, U, T, STATES> {
    type Out<'a> = &'a mut [T];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, x: &mut [T]) {
        let states = self.states.map(|state| simd.numbers_mut(state));
        self.update.run(simd.numbers_mut(x), simd.numbers(self.g), states);
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

    #[test]
    #[should_panic(expected = "update: 2 numbers with slices of 2 and [2, 3]")]
    fn slices_must_have_one_length() {
        update(&Sums, &mut [0.0; 2], &[0.0; 2], [&mut [0.0; 2], &mut [0.0; 3]]);
    }
}
