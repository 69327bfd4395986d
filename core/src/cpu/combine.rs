//! Many vectors of one length at once: all their dot products, and sums of multiples of them. Each function reads
//! every vector once.
//!
//! The two functions go through the vectors in opposite directions, so that a sum that follows dot products finds
//! the vectors' last parts still in the caches.

use super::math::Real;
use super::row;
use super::simd::{Simd, Vectorized, vectorize};
use super::threads::{Parts, each, each_part};

/// The elements that a thread takes at a time.
const TASK: usize = 1 << 14;
/// The elements of each vector that are multiplied with those of all others while they are in the L2 cache.
const PART: usize = 1 << 12;

/// The dot products `xs[i] · ys[j]`, those of `xs[0]` first. They do not depend on the number of threads.
///
/// ```
/// use namegrad_core::cpu::combine::dots;
/// let (a, b) = ([1.0_f32, 2.0], [3.0, 4.0]);
/// assert_eq!(dots(&[&a, &b], &[&b]), [11.0, 25.0]);
/// ```
///
/// # Panics
/// If the vectors differ in length.
pub fn dots<T: Real>(xs: &[&[T]], ys: &[&[T]]) -> Vec<f64> {
    let n = length(xs.iter().chain(ys).map(|x| x.len()));
    let mut total = vec![0.0; xs.len() * ys.len()];
    if total.is_empty() {
        return total;
    }
    let mut sums = vec![0.0; n.div_ceil(TASK) * total.len()];
    each_part(&mut sums, total.len(), &|task, sums| {
        for start in (task * TASK..n.min((task + 1) * TASK)).step_by(PART) {
            vectorize(Dots { xs, ys, start, end: n.min(start + PART) }, sums);
        }
    });
    for task in sums.chunks_exact(total.len()) {
        total.iter_mut().zip(task).for_each(|(total, sum)| *total += sum);
    }
    total
}

/// Adds the dot products of a part of the vectors.
struct Dots<'a, T> {
    xs: &'a [&'a [T]],
    ys: &'a [&'a [T]],
    start: usize,
    end: usize,
}

impl<T: Real> Vectorized for Dots<'_, T> {
    type Out<'a> = &'a mut [f64];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, sums: &mut [f64]) {
        let Dots { xs, ys, start, end } = self;
        for (x, sums) in xs.iter().zip(sums.chunks_exact_mut(ys.len())) {
            let x = simd.numbers(&x[start..end]);
            for (y, sum) in ys.iter().zip(sums) {
                *sum += number(row::dot(x, simd.numbers(&y[start..end])));
            }
        }
    }
}

#[inline(always)]
fn number<T: Real>(x: T) -> f64 {
    x.to_f64()
}

/// `y = Σ factors[i] · xs[i]`, from the first to the last.
///
/// ```
/// use namegrad_core::cpu::combine::combine;
/// let mut y = [0.0_f32; 2];
/// combine(&[2.0, -1.0], &[&[1.0, 2.0], &[3.0, 4.0]], &mut y);
/// assert_eq!(y, [-1.0, 0.0]);
/// ```
///
/// # Panics
/// If the vectors differ in length, or there is not one factor for each.
pub fn combine<T: Real>(factors: &[f64], xs: &[&[T]], y: &mut [T]) {
    assert_eq!(factors.len(), xs.len(), "combine: one factor for each vector");
    let n = length(xs.iter().map(|x| x.len()).chain([y.len()]));
    let parts = Parts::new(y);
    let tasks = n.div_ceil(TASK);
    each(tasks, &|task| {
        let task = tasks - 1 - task;
        let (start, end) = (task * TASK, n.min((task + 1) * TASK));
        // SAFETY: the parts of different tasks do not overlap, and each task runs once.
        let y = unsafe { parts.part(start..end) };
        for (i, y) in y.chunks_mut(PART).enumerate() {
            vectorize(Combine { factors, xs, start: start + i * PART }, y);
        }
    });
}

/// Computes a part of the sum.
struct Combine<'a, T> {
    factors: &'a [f64],
    xs: &'a [&'a [T]],
    start: usize,
}

impl<T: Real> Vectorized for Combine<'_, T> {
    type Out<'a> = &'a mut [T];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, y: &mut [T]) {
        let place = self.start..self.start + y.len();
        let y = simd.numbers_mut(y);
        clear(y);
        for (factor, x) in self.factors.iter().zip(self.xs) {
            add_multiple(*factor, simd.numbers(&x[place.clone()]), y);
        }
    }
}

#[inline(always)]
fn clear<T: Real>(y: &mut [T]) {
    for y in y {
        *y = T::ZERO;
    }
}

/// `y += factor x`
#[inline(always)]
fn add_multiple<T: Real>(factor: f64, x: &[T], y: &mut [T]) {
    let factor = T::from_f64(factor);
    for (y, x) in y.iter_mut().zip(x) {
        *y = factor.mul_add(*x, *y);
    }
}

/// The length of all vectors.
fn length(mut lengths: impl Iterator<Item = usize>) -> usize {
    let n = lengths.next().unwrap_or(0);
    for other in lengths {
        assert_eq!(other, n, "vectors of different lengths");
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors<T: Real>(count: usize, n: usize) -> Vec<Vec<T>> {
        let number = |k: usize, i: usize| T::from_f64(((i * (2 * k + 3)) % 17) as f64 - 8.0);
        (0..count).map(|k| (0..n).map(|i| number(k, i)).collect()).collect()
    }

    fn check<T: Real>(n: usize) {
        let (a, b) = (vectors::<T>(3, n), vectors::<T>(6, n));
        let (xs, ys): (Vec<&[T]>, Vec<&[T]>) =
            (a.iter().map(|x| &x[..]).collect(), b.iter().map(|y| &y[..]).collect());
        for (i, found) in dots(&xs, &ys).into_iter().enumerate() {
            let (x, y) = (xs[i / ys.len()], ys[i % ys.len()]);
            let expected: f64 = x.iter().zip(y).map(|(x, y)| x.to_f64() * y.to_f64()).sum();
            assert_eq!(found, expected, "{i} of {n}"); // sums of small integers are exact
        }
        let factors = [1.0, -2.0, 0.5, 3.0, 0.0, 4.0];
        let mut y = vec![T::from_f64(f64::NAN); n];
        combine(&factors, &ys, &mut y);
        for (i, y) in y.into_iter().enumerate() {
            let expected: f64 = factors.iter().zip(&ys).map(|(factor, x)| factor * x[i].to_f64()).sum();
            assert_eq!(y.to_f64(), expected, "{i} of {n}");
        }
    }

    #[test]
    fn vectors_of_any_length() {
        for n in [0, 1, 37, PART, TASK - 1, 3 * TASK + PART + 5] {
            check::<f32>(n);
            check::<f64>(n);
        }
    }

    #[test]
    fn no_vectors() {
        assert!(dots::<f32>(&[], &[&[1.0]]).is_empty());
        let mut y = [f32::NAN; 2];
        combine(&[], &[], &mut y);
        assert_eq!(y, [0.0; 2]);
    }

    #[test]
    #[should_panic(expected = "vectors of different lengths")]
    fn lengths_must_be_equal() {
        dots(&[&[1.0_f32]], &[&[1.0, 2.0]]);
    }
}
