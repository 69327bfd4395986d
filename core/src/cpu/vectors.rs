//! Products and sums of many long vectors, for optimizers that keep some of them. Each vector is read once, a
//! few of them at a time: a core gets more from memory by four streams than by one or by twenty.

use super::math::Real;
use super::row::{LANES, dot, largest_magnitude, sum_lanes};
use super::simd::{Simd, UpTo, Vectorized, vectorize};
use super::threads::each_part;
use super::update::{PARALLEL, TASK};
use crate::callback::Callback;

/// The vectors that are read at once.
const GROUP: usize = 4;
/// The vectors that they are multiplied with at once.
const PAIR: usize = 2;
/// The elements whose products are summed before the sum becomes `f64`.
const PART: usize = 1 << 10;

/// The elements of each vector that a thread takes at a time. Streams are fast after their first pages, so
/// they are long, for up to 16 threads.
fn task_len(n: usize) -> usize {
    n.div_ceil(16).next_multiple_of(PART).max(TASK)
}

/// The products of each vector in `x` with each in `y`: those of the first `x` with all `y`, and so on. They
/// are the same for any number of threads.
///
/// ```
/// use namegrad_core::cpu::vectors::products;
/// let (a, b) = ([1.0_f32, 2.0], [3.0, -1.0]);
/// assert_eq!(products(&[&a, &b], &[&a]), [5.0, 1.0]);
/// ```
///
/// # Panics
/// If the vectors differ in length.
pub fn products<T: Real>(x: &[&[T]], y: &[&[T]]) -> Vec<f64> {
    let Some(n) = x.first().map(|x| x.len()) else { return Vec::new() };
    check(n, x);
    check(n, y);
    let mut total =
        sum_parts(n, x.len() * y.len(), &|start, end, sums: &mut [f64]| add_tiles(x, y, start, end, sums));
    for (place, total) in total.iter_mut().enumerate() {
        if !total.is_finite() {
            *total = product_f64(x[place / y.len()], y[place % y.len()]);
        }
    }
    total
}

/// The totals of `count` sums, of which `add` adds the part of a range of elements.
fn sum_parts(n: usize, count: usize, add: &OnElements<'_, f64>) -> Vec<f64> {
    let (mut parts, mut total) = (vec![0.0; count * n.div_ceil(task_len(n))], vec![0.0; count]);
    each_task(n, &mut parts, count, add);
    for (place, sum) in parts.into_iter().enumerate() {
        total[place % count] += sum;
    }
    total
}

/// Adds the products of the elements from `start` to `end`, of a few vectors at a time.
fn add_tiles<T: Real>(x: &[&[T]], y: &[&[T]], start: usize, end: usize, sums: &mut [f64]) {
    for row in (0..x.len()).step_by(GROUP) {
        for column in (0..y.len()).step_by(PAIR) {
            // A tile at the end is filled up with vectors whose products are not used.
            let (mut tile, mut found) =
                (ProductTile { x: [&[]; GROUP], y: [&[]; PAIR] }, [[0.0; PAIR]; GROUP]);
            for i in 0..GROUP {
                tile.x[i] = part(x, row + i, start, end);
            }
            for j in 0..PAIR {
                tile.y[j] = part(y, column + j, start, end);
            }
            vectorize(tile, &mut found);
            for i in row..(row + GROUP).min(x.len()) {
                for j in column..(column + PAIR).min(y.len()) {
                    sums[i * y.len() + j] += found[i - row][j - column];
                }
            }
        }
    }
}

/// A part of a vector, or of the last.
#[inline(never)]
fn part<'a, T>(vectors: &[&'a [T]], place: usize, start: usize, end: usize) -> &'a [T] {
    &vectors[place.min(vectors.len() - 1)][start..end]
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
    check(n, &[y]);
    for (_, x) in terms {
        check(n, &[x]);
    }
    let mut parts = Vec::new();
    for to in to.chunks_mut(task_len(n)) {
        parts.push((to, (0.0, 0.0)));
    }
    each_task(n, &mut parts, 1, &|start, end, parts: &mut [(&mut [T], (f64, f64))]| {
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

/// `x · y`, for numbers whose products can be infinite in `T`, for few elements and for rare CPUs.
#[cold]
#[inline(never)]
fn product_f64<T: Real>(x: &[T], y: &[T]) -> f64 {
    let mut sum = 0.0;
    for i in 0..x.len() {
        sum += x[i].to_f64() * y[i].to_f64();
    }
    sum
}

fn check<T>(n: usize, vectors: &[&[T]]) {
    for vector in vectors {
        assert!(vector.len() == n, "vectors: {n} and {} elements", vector.len());
    }
}

/// What runs on the elements from a first to an end, with the part of the output for them.
type OnElements<'f, A> = dyn for<'p> Callback<(usize, usize, &'p mut [A])> + Sync + 'f;

/// Runs `f` for ranges of `0..n`, given by start and end, each with `len` elements of `out`.
fn each_task<A: Send>(n: usize, out: &mut [A], len: usize, f: &OnElements<'_, A>) {
    let task = |task: usize, out: &mut [A]| {
        f.call_with((task * task_len(n), ((task + 1) * task_len(n)).min(n), out));
    };
    if n < PARALLEL {
        for (i, out) in out.chunks_mut(len.max(1)).enumerate() {
            task(i, out);
        }
    } else {
        each_part(out, len, &task);
    }
}

/// A few vectors and those that they are multiplied with.
struct ProductTile<'a, T> {
    x: [&'a [T]; GROUP],
    y: [&'a [T]; PAIR],
}

impl<T: Real> Vectorized for ProductTile<'_, T> {
    type Out<'a> = &'a mut [[f64; PAIR]; GROUP];
    const UP_TO: UpTo = UpTo::for_memory::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, sums: &mut [[f64; PAIR]; GROUP]) {
        let n = if S::IS_RARE { 0 } else { self.y[0].len() / LANES * LANES };
        for place in 0..GROUP * PAIR {
            let (i, j) = (place / PAIR, place % PAIR);
            sums[i][j] += product_f64(&self.x[i][n..], &self.y[j][n..]);
        }
        if S::IS_RARE {
            return;
        }
        let (mut x, mut y) = ([simd.numbers(self.x[0]); GROUP], [simd.numbers(self.y[0]); PAIR]);
        for (x, own) in x.iter_mut().zip(&self.x).skip(1) {
            *x = simd.numbers(own);
        }
        for (y, own) in y.iter_mut().zip(&self.y).skip(1) {
            *y = simd.numbers(own);
        }
        add_products(x, y, sums);
    }
}

/// Numbers in groups of as many as there are accumulators.
type VectorLanes<'a, T> = &'a [[T; LANES]];

/// Adds the product of each `x` with each `y`, without their last elements, which fill no lanes.
#[inline(always)]
fn add_products<T: Real>(x: [&[T]; GROUP], y: [&[T]; PAIR], sums: &mut [[f64; PAIR]; GROUP]) {
    let (n, mut start) = (y[0].len() / LANES * LANES, 0);
    while start < n {
        let end = (start + PART).min(n);
        let (mut x_whole, mut y_whole): ([VectorLanes<'_, T>; GROUP], [VectorLanes<'_, T>; PAIR]) =
            ([&[]; GROUP], [&[]; PAIR]);
        for i in 0..GROUP {
            x_whole[i] = x[i][start..end].as_chunks().0;
        }
        for j in 0..PAIR {
            y_whole[j] = y[j][start..end].as_chunks().0;
        }
        let mut lanes = [[[T::ZERO; LANES]; PAIR]; GROUP];
        for at in 0..(end - start) / LANES {
            for i in 0..GROUP {
                for j in 0..PAIR {
                    let (x, y) = (x_whole[i][at], y_whole[j][at]);
                    for k in 0..LANES {
                        lanes[i][j][k] = x[k].mul_add(y[k], lanes[i][j][k]);
                    }
                }
            }
        }
        for i in 0..GROUP {
            for j in 0..PAIR {
                sums[i][j] += sum_lanes(lanes[i][j]).to_f64();
            }
        }
        start = end;
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
    const UP_TO: UpTo = UpTo::for_memory::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (to, (product, most)): Self::Out<'_>) {
        if S::IS_RARE {
            (*product, *most) = self.each_element(to);
            return;
        }
        let (start, end) = (self.start, self.start + to.len());
        let to = simd.numbers_mut(to);
        let (groups, rest) = self.terms.as_chunks::<GROUP>();
        for terms in groups {
            let (mut factors, mut x) = ([0.0; GROUP], [simd.numbers(self.y); GROUP]);
            for j in 0..GROUP {
                (factors[j], x[j]) = (terms[j].0, simd.numbers(&terms[j].1[start..end]));
            }
            add(factors, x, to);
        }
        for (factor, x) in rest {
            add([*factor], [simd.numbers(&x[start..end])], to);
        }
        measure(to, simd.numbers(self.y), product, most);
    }
}

impl<T: Real> Combination<'_, T> {
    /// The same for rare CPUs.
    #[inline(never)]
    fn each_element(&self, to: &mut [T]) -> (f64, f64) {
        let (mut product, mut most) = (0.0, 0.0);
        for (i, to) in to.iter_mut().enumerate() {
            let mut sum = to.to_f64();
            for (factor, x) in self.terms {
                sum += factor * x[self.start + i].to_f64();
            }
            *to = T::from_f64(sum);
            product += to.to_f64() * self.y[i].to_f64();
            most = f64::max(most, to.to_f64().abs());
        }
        (product, most)
    }
}

/// Adds the product of `to` and `y`, and takes the largest magnitude in `to`.
#[inline(always)]
fn measure<T: Real>(to: &[T], y: &[T], product: &mut f64, most: &mut f64) {
    let mut start = 0;
    while start < to.len() {
        let end = (start + PART).min(to.len());
        *product += dot(&to[start..end], &y[start..end]).to_f64();
        *most = f64::max(*most, largest_magnitude(&to[start..end]).to_f64());
        start = end;
    }
}

/// `to += Σ factor x`.
#[inline(always)]
fn add<T: Real, const N: usize>(factors: [f64; N], mut x: [&[T]; N], to: &mut [T]) {
    // The compiler sees that no index is out of range, so that the loop becomes vectors.
    let (n, mut rounded) = (to.len(), [T::ZERO; N]);
    for j in 0..N {
        rounded[j] = T::from_f64(factors[j]);
        x[j] = &x[j][..n];
    }
    for i in 0..n {
        let mut sum = to[i];
        for j in 0..N {
            sum = rounded[j].mul_add(x[j][i], sum);
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
            for y in [&[1][..], &[1, 4], &[0, 2, 3]] {
                let y: Vec<&[f64]> = y.iter().map(|i| x[*i]).collect();
                let expected = x.iter().flat_map(|x| y.iter().map(move |y| dot(x, y)));
                assert_eq!(products(&x, &y), expected.collect::<Vec<_>>());
            }

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
        assert!(products::<f32>(&[], &[&[]]).is_empty());
        assert_eq!(
            products(&[&[3e38_f32, 1e-38]], &[&[1e38_f32, 1e-38]])[0],
            f64::from(3e38_f32) * f64::from(1e38_f32)
        );
        let found = combine(&[(1.0, &[2e38_f32, -3e38])], &[2.0, 0.0], &mut [0.0, 0.0]);
        assert_eq!(found, (2.0 * f64::from(2e38_f32), f64::from(3e38_f32)));
    }

    #[test]
    #[should_panic(expected = "vectors: 2 and 1 elements")]
    fn lengths_differ() {
        products(&[&[1.0_f32, 2.0]], &[&[1.0]]);
    }
}
