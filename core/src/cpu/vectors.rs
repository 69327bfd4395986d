//! Products and sums of many long vectors, for optimizers that keep some of them. Each vector is read once,
//! in parts that stay in the cache beside the others.

use super::math::Real;
use super::row::dot;
use super::simd::{Simd, Vectorized, vectorize};
use super::threads::each_part;
use super::update::{PARALLEL, TASK};

/// The elements of each vector that are used one after the other.
const PART: usize = 1 << 10;

/// The products of each vector in `x` with each in `y`. They are the same for any number of threads.
///
/// ```
/// use namegrad_core::cpu::vectors::products;
/// let (a, b) = ([1.0_f32, 2.0], [3.0, -1.0]);
/// assert_eq!(products(&[&a, &b], [&a]), [[5.0], [1.0]]);
/// ```
///
/// # Panics
/// If the vectors differ in length.
pub fn products<T: Real, const N: usize>(x: &[&[T]], y: [&[T]; N]) -> Vec<[f64; N]> {
    let Some(first) = x.first() else { return Vec::new() };
    let n = first.len();
    check(n, x.iter().copied().chain(y));
    let mut parts = vec![[0.0; N]; x.len() * n.div_ceil(TASK)];
    each_task(n, &mut parts, x.len(), &|start, end, sums| vectorize(Products { x, y, start, end }, sums));
    let mut total = vec![[0.0; N]; x.len()];
    for sums in parts.chunks(x.len()) {
        for (total, sums) in total.iter_mut().zip(sums) {
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
    }
    // The products of large numbers can be infinite in `f32`.
    for (total, x) in total.iter_mut().zip(x) {
        for (total, y) in total.iter_mut().zip(y).filter(|(total, _)| !total.is_finite()) {
            *total = x.iter().zip(y).map(|(x, y)| x.to_f64() * y.to_f64()).sum();
        }
    }
    total
}

/// `to = Σ factor x` for pairs of a factor and a vector.
///
/// ```
/// use namegrad_core::cpu::vectors::combine;
/// let mut to = [0.0_f32; 2];
/// combine(&[(2.0, &[1.0, 2.0]), (-1.0, &[3.0, -1.0])], &mut to);
/// assert_eq!(to, [-1.0, 5.0]);
/// ```
///
/// # Panics
/// If the vectors differ in length.
pub fn combine<T: Real>(terms: &[(f64, &[T])], to: &mut [T]) {
    let n = to.len();
    check(n, terms.iter().map(|(_, x)| *x));
    each_task(n, to, TASK, &|start, _, to| vectorize(Combination { terms, start }, to));
}

fn check<'a, T: 'a>(n: usize, vectors: impl Iterator<Item = &'a [T]>) {
    for vector in vectors {
        assert!(vector.len() == n, "vectors: {n} and {} elements", vector.len());
    }
}

/// Runs `f` for ranges of `0..n`, given by start and end, each with `len` elements of `out`.
fn each_task<A: Send>(n: usize, out: &mut [A], len: usize, f: &(dyn Fn(usize, usize, &mut [A]) + Sync)) {
    let task = |task: usize, out: &mut [A]| f(task * TASK, ((task + 1) * TASK).min(n), out);
    if n < PARALLEL {
        out.chunks_mut(len).enumerate().for_each(|(i, out)| task(i, out));
    } else {
        each_part(out, len, &task);
    }
}

/// [`products`] of the elements from `start` to `end`.
struct Products<'a, T, const N: usize> {
    x: &'a [&'a [T]],
    y: [&'a [T]; N],
    start: usize,
    end: usize,
}

impl<T: Real, const N: usize> Vectorized for Products<'_, T, N> {
    type Out<'a> = &'a mut [[f64; N]];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, sums: &mut [[f64; N]]) {
        for start in (self.start..self.end).step_by(PART) {
            let end = (start + PART).min(self.end);
            let y = self.y.map(|y| simd.numbers(&y[start..end]));
            for (x, sums) in self.x.iter().zip(&mut *sums) {
                let x = simd.numbers(&x[start..end]);
                for (sum, y) in sums.iter_mut().zip(y) {
                    *sum += product(x, y);
                }
            }
        }
    }
}

#[inline(always)]
fn product<T: Real>(x: &[T], y: &[T]) -> f64 {
    dot(x, y).to_f64()
}

/// [`combine`] for the elements from `start` on.
struct Combination<'a, T> {
    terms: &'a [(f64, &'a [T])],
    start: usize,
}

impl<T: Real> Vectorized for Combination<'_, T> {
    type Out<'a> = &'a mut [T];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, to: &mut [T]) {
        for (start, to) in (self.start..).step_by(PART).zip(to.chunks_mut(PART)) {
            to.fill(T::ZERO);
            for (factor, x) in self.terms {
                add(*factor, simd.numbers(&x[start..start + to.len()]), simd.numbers_mut(to));
            }
        }
    }
}

/// `to += factor x`.
#[inline(always)]
fn add<T: Real>(factor: f64, x: &[T], to: &mut [T]) {
    let factor = T::from_f64(factor);
    for (to, x) in to.iter_mut().zip(x) {
        *to = factor.mul_add(*x, *to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(n: usize, seed: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * 37 + seed * 11) % 101) as f64 - 50.0).collect()
    }

    #[test]
    fn products_and_combinations_are_those_of_plain_loops() {
        for n in [0, 1, 64, PART + 3, TASK + 1, PARALLEL + TASK / 2] {
            let vectors: Vec<Vec<f64>> = (0..5).map(|seed| vector(n, seed)).collect();
            let x: Vec<&[f64]> = vectors.iter().map(Vec::as_slice).collect();
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            // The numbers are integers, so every order of the sums gives the same bits.
            let expected: Vec<[f64; 2]> = x.iter().map(|v| [dot(v, x[1]), dot(v, x[4])]).collect();
            assert_eq!(products(&x, [x[1], x[4]]), expected);

            let factors = [1.0, -2.0, 3.0, 0.0, 5.0];
            let terms: Vec<(f64, &[f64])> = factors.into_iter().zip(x.iter().copied()).collect();
            let mut to = vec![f64::NAN; n];
            combine(&terms, &mut to);
            for (i, to) in to.iter().enumerate() {
                assert_eq!(*to, terms.iter().map(|(factor, x)| factor * x[i]).sum::<f64>());
            }
        }
        assert!(products::<f32, 1>(&[], [&[]]).is_empty());
        assert_eq!(
            products(&[&[3e38_f32, 1e-38]], [&[1e38_f32, 1e-38]])[0][0],
            f64::from(3e38_f32) * f64::from(1e38_f32)
        );
    }

    #[test]
    #[should_panic(expected = "vectors: 2 and 1 elements")]
    fn lengths_differ() {
        products(&[&[1.0_f32, 2.0]], [&[1.0]]);
    }
}
