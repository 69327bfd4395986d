//! Products and sums of many long vectors, for optimizers that keep some of them. Each vector is read once, a
//! few of them at a time: a core gets more from memory by four streams than by one or by twenty.

use super::math::Real;
use super::row::{LANES, dot, largest_magnitude, sum_lanes};
use super::simd::{Simd, Vectorized, vectorize};
use super::threads::each_part;
use super::update::{PARALLEL, TASK};

/// The vectors that are read at once.
const GROUP: usize = 4;
/// The elements whose products are summed before the sum becomes `f64`.
const PART: usize = 1 << 10;

/// The elements of each vector that a thread takes at a time. Streams are fast after their first pages, so
/// they are long, for up to 16 threads.
fn task_len(n: usize) -> usize {
    n.div_ceil(16).next_multiple_of(PART).max(TASK)
}

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
    let mut parts = vec![[0.0; N]; x.len() * n.div_ceil(task_len(n))];
    each_task(n, &mut parts, x.len(), &|start, end, sums| vectorize(Products { x, y, start, end }, sums));
    let mut total = vec![[0.0; N]; x.len()];
    for sums in parts.chunks(x.len()) {
        for (total, sums) in total.iter_mut().zip(sums) {
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
    }
    for (total, x) in total.iter_mut().zip(x) {
        for (total, y) in total.iter_mut().zip(y).filter(|(total, _)| !total.is_finite()) {
            *total = product_f64(x, y);
        }
    }
    total
}

/// `to += Σ factor x` for pairs of a factor and a vector. Returns the product of `to` with `y`, and the
/// largest magnitude in `to`.
///
/// ```
/// use namegrad_core::cpu::vectors::combine;
/// let mut to = [0.5_f32, -9.0];
/// let (product, largest) = combine(&[(2.0, &[1.0, 2.0]), (-1.0, &[3.0, -1.0])], &[2.0, 1.0], &mut to);
/// assert_eq!(to, [-0.5, -4.0]);
/// assert_eq!((product, largest), (-5.0, 4.0));
/// ```
///
/// # Panics
/// If the vectors differ in length.
pub fn combine<T: Real>(terms: &[(f64, &[T])], y: &[T], to: &mut [T]) -> (f64, f64) {
    let n = to.len();
    check(n, terms.iter().map(|(_, x)| *x).chain([y]));
    let mut parts: Vec<_> = to.chunks_mut(task_len(n)).map(|to| (to, (0.0, 0.0))).collect();
    each_task(n, &mut parts, 1, &|start, end, parts| {
        for (to, found) in parts {
            vectorize(Combination { terms, y: &y[start..end], start }, (to, found));
        }
    });
    let mut total = (0.0, 0.0);
    for (_, (product, largest)) in parts {
        total = (total.0 + product, f64::max(total.1, largest));
    }
    if !total.0.is_finite() {
        total.0 = product_f64(to, y);
    }
    total
}

/// `x · y`, for numbers whose products can be infinite in `T`.
fn product_f64<T: Real>(x: &[T], y: &[T]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x.to_f64() * y.to_f64()).sum()
}

fn check<'a, T: 'a>(n: usize, vectors: impl Iterator<Item = &'a [T]>) {
    for vector in vectors {
        assert!(vector.len() == n, "vectors: {n} and {} elements", vector.len());
    }
}

/// Runs `f` for ranges of `0..n`, given by start and end, each with `len` elements of `out`.
fn each_task<A: Send>(n: usize, out: &mut [A], len: usize, f: &(dyn Fn(usize, usize, &mut [A]) + Sync)) {
    let task = |task: usize, out: &mut [A]| f(task * task_len(n), ((task + 1) * task_len(n)).min(n), out);
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
        let range = self.start..self.end;
        let y = self.y.map(|y| simd.numbers(&y[range.clone()]));
        let (groups, rest) = self.x.as_chunks::<GROUP>();
        let (group_sums, rest_sums) = sums.as_chunks_mut::<GROUP>();
        for (x, sums) in groups.iter().zip(group_sums) {
            add_products(x.map(|x| simd.numbers(&x[range.clone()])), y, sums);
        }
        for (x, sums) in rest.iter().zip(rest_sums) {
            add_products([simd.numbers(&x[range.clone()])], y, std::array::from_mut(sums));
        }
    }
}

/// Adds the product of each `x` with each `y`.
#[inline(always)]
fn add_products<T: Real, const M: usize, const N: usize>(
    x: [&[T]; M],
    y: [&[T]; N],
    sums: &mut [[f64; N]; M],
) {
    let n = y[0].len();
    for start in (0..n).step_by(PART) {
        let range = start..(start + PART).min(n);
        let (x, y) = (
            x.map(|x| x[range.clone()].as_chunks::<LANES>()),
            y.map(|y| y[range.clone()].as_chunks::<LANES>()),
        );
        let mut lanes = [[[T::ZERO; LANES]; N]; M];
        // Not with `add_product`, with which the compiler keeps the sums in memory.
        for at in 0..range.len() / LANES {
            for i in 0..M {
                for j in 0..N {
                    let (x, y) = (x[i].0[at], y[j].0[at]);
                    for k in 0..LANES {
                        lanes[i][j][k] = x[k].mul_add(y[k], lanes[i][j][k]);
                    }
                }
            }
        }
        for i in 0..M {
            for j in 0..N {
                add_product(x[i].1, y[j].1, &mut lanes[i][j]);
                sums[i][j] += sum_lanes(lanes[i][j]).to_f64();
            }
        }
    }
}

/// Adds the product of each number in `x` with that in `y`.
#[inline(always)]
fn add_product<T: Real>(x: &[T], y: &[T], lanes: &mut [T; LANES]) {
    for ((x, y), lane) in x.iter().zip(y).zip(lanes) {
        *lane = x.mul_add(*y, *lane);
    }
}

/// [`combine`] for the elements from `start` on.
struct Combination<'a, T> {
    terms: &'a [(f64, &'a [T])],
    y: &'a [T],
    start: usize,
}

impl<T: Real> Vectorized for Combination<'_, T> {
    type Out<'a> = (&'a mut [T], &'a mut (f64, f64));

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (to, (product, most)): Self::Out<'_>) {
        let range = self.start..self.start + to.len();
        let to = simd.numbers_mut(to);
        let (groups, rest) = self.terms.as_chunks::<GROUP>();
        for terms in groups {
            add(terms.map(|(factor, x)| (factor, simd.numbers(&x[range.clone()]))), to);
        }
        for (factor, x) in rest {
            add([(*factor, simd.numbers(&x[range.clone()]))], to);
        }
        measure(to, simd.numbers(self.y), product, most);
    }
}

/// Adds the product of `to` and `y`, and takes the largest magnitude in `to`.
#[inline(always)]
fn measure<T: Real>(to: &[T], y: &[T], product: &mut f64, most: &mut f64) {
    for (to, y) in to.chunks(PART).zip(y.chunks(PART)) {
        *product += dot(to, y).to_f64();
        *most = f64::max(*most, largest_magnitude(to).to_f64());
    }
}

/// `to += Σ factor x`.
#[inline(always)]
fn add<T: Real, const N: usize>(terms: [(f64, &[T]); N], to: &mut [T]) {
    let n = to.len();
    let factors = terms.map(|(factor, _)| T::from_f64(factor));
    let x = terms.map(|(_, x)| &x[..n]);
    for i in 0..n {
        let mut sum = to[i];
        for j in 0..N {
            sum = factors[j].mul_add(x[j][i], sum);
        }
        to[i] = sum;
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
            let vectors: Vec<Vec<f64>> = (0..GROUP + 1).map(|seed| vector(n, seed)).collect();
            let x: Vec<&[f64]> = vectors.iter().map(Vec::as_slice).collect();
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            // The numbers are integers, so every order of the sums gives the same bits.
            let expected: Vec<[f64; 2]> = x.iter().map(|v| [dot(v, x[1]), dot(v, x[4])]).collect();
            assert_eq!(products(&x, [x[1], x[4]]), expected);

            let factors = [1.0, -2.0, 3.0, 0.0, 5.0];
            let terms: Vec<(f64, &[f64])> = factors.into_iter().zip(x.iter().copied()).collect();
            let mut to = vec![7.0; n];
            let (product, largest) = combine(&terms, x[1], &mut to);
            for (i, to) in to.iter().enumerate() {
                assert_eq!(*to, 7.0 + terms.iter().map(|(factor, x)| factor * x[i]).sum::<f64>());
            }
            assert_eq!(product, dot(&to, x[1]));
            assert_eq!(largest, to.iter().fold(0.0, |most, x| f64::max(most, x.abs())));
        }
        assert!(products::<f32, 1>(&[], [&[]]).is_empty());
        assert_eq!(
            products(&[&[3e38_f32, 1e-38]], [&[1e38_f32, 1e-38]])[0][0],
            f64::from(3e38_f32) * f64::from(1e38_f32)
        );
        let found = combine(&[(1.0, &[2e38_f32, -3e38])], &[2.0, 0.0], &mut [0.0, 0.0]);
        assert_eq!(found, (2.0 * f64::from(2e38_f32), f64::from(3e38_f32)));
    }

    #[test]
    #[should_panic(expected = "vectors: 2 and 1 elements")]
    fn lengths_differ() {
        products(&[&[1.0_f32, 2.0]], [&[1.0]]);
    }
}
