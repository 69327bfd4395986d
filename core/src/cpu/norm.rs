//! Layer normalization of rows and its form without a mean, forward and backward, each in one pass over
//! memory. Statistics over groups of channels are in `standardize`.

use super::math::Real;
use super::math::lane::Lane;
use super::room::{Room, copy, fill, written};
use super::row::sum;
use super::simd::{Simd, Vectorized, vectorize};
use super::threads::{Parts, parallel};

/// The elements that a thread takes at a time.
const TASK: usize = 1 << 14;

/// The rows of `n` elements that a thread takes at a time. Neither this nor the order of the sums depends on
/// the number of threads.
fn rows_of_task(n: usize) -> usize {
    (TASK / n.max(1)).max(1)
}

/// A normalization of rows of `n` elements.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a, T> {
    /// The length of a row.
    pub(crate) n: usize,
    /// Whether the mean of a row is taken out first; otherwise the variance is the mean square.
    pub(crate) centered: bool,
    /// The weight, if there is one.
    pub(crate) weight: Option<&'a [T]>,
    /// The bias, if there is one.
    pub(crate) bias: Option<&'a [T]>,
    /// What is added to the variance.
    pub(crate) eps: f64,
}

/// `y = (x - mean) rstd weight + bias` for each row, with the `mean` of the row and
/// `rstd = 1 / √(variance + eps)`.
pub(crate) fn layer_norm<'a, T: Real>(
    x: &[T],
    norm: Rows<'_, T>,
    [y, mean, rstd]: [&'a mut Room<T>; 3],
) -> [&'a mut [T]; 3] {
    let n = norm.n;
    let count = mean.len();
    assert!(x.len() == count * n && y.len() == x.len() && rstd.len() == count, "{count} rows of {n}");
    let parts = (Parts::new(y), Parts::new(mean), Parts::new(rstd));
    parallel(if n == 0 { 0 } else { count }, rows_of_task(n), |range| {
        let elements = range.start * n..range.end * n;
        // SAFETY: ranges of different threads do not overlap.
        let out =
            unsafe { [parts.0.part(elements.clone()), parts.1.part(range.clone()), parts.2.part(range)] };
        vectorize(Forward { x: &x[elements], norm }, out);
    });
    if n == 0 {
        // An empty row has no mean and no variance.
        return [fill(y, T::NAN), fill(mean, T::NAN), fill(rstd, T::NAN)];
    }
    // SAFETY: the loop writes all elements of a range, and the ranges make up all rows.
    unsafe { [written(y), written(mean), written(rstd)] }
}

struct Forward<'a, T> {
    x: &'a [T],
    norm: Rows<'a, T>,
}

impl<T: Real> Vectorized for Forward<'_, T> {
    type Out<'a> = [&'a mut Room<T>; 3];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, [y, mean, rstd]: [&mut Room<T>; 3]) {
        let Rows { n, centered, weight, bias, eps } = self.norm;
        let (x, y) = (simd.numbers(self.x), simd.room(y));
        let (mean, rstd) = (simd.room(mean), simd.room(rstd));
        // Divide by n: multiplying by a rounded 1 / n would shift a mean that is large compared to the
        // deviations.
        let count = S::Number::<T>::from_f64(n as f64);
        let eps = S::Number::<T>::from_f64(eps);
        let rows = x.chunks_exact(n).zip(y.chunks_exact_mut(n));
        for ((x, y), (mean, rstd)) in rows.zip(mean.iter_mut().zip(rstd)) {
            let center = if centered { sum(x, x, |x, _| x) / count } else { S::Number::<T>::ZERO };
            let variance = sum(x, x, |x, _| (x - center) * (x - center)) / count;
            let scale = (variance + eps).rsqrt();
            mean.write(center);
            rstd.write(scale);
            if let (Some(weight), Some(bias)) = (weight, bias) {
                let parameters = simd.numbers(weight).iter().zip(simd.numbers(bias));
                for ((y, x), (weight, bias)) in y.iter_mut().zip(x).zip(parameters) {
                    y.write((*x - center) * scale * *weight + *bias);
                }
                continue;
            }
            for (y, x) in y.iter_mut().zip(x) {
                y.write((*x - center) * scale);
            }
            // SAFETY: both rows have `n` elements.
            let y = unsafe { written(y) };
            if let Some(weight) = weight {
                for (y, weight) in y.iter_mut().zip(simd.numbers(weight)) {
                    *y *= *weight;
                }
            }
            if let Some(bias) = bias {
                for (y, bias) in y.iter_mut().zip(simd.numbers(bias)) {
                    *y += *bias;
                }
            }
        }
    }
}

/// The inputs of the backward pass of [`layer_norm`].
#[derive(Clone, Copy)]
pub(crate) struct Backward<'a, T> {
    /// The gradient of the result.
    pub(crate) g: &'a [T],
    /// The input.
    pub(crate) x: &'a [T],
    /// The length of a row.
    pub(crate) n: usize,
    /// Whether the mean was taken out.
    pub(crate) centered: bool,
    /// The means from the forward pass; zeros if none was taken out.
    pub(crate) mean: &'a [T],
    /// The reciprocal deviations from the forward pass.
    pub(crate) rstd: &'a [T],
    /// The weight, if there was one.
    pub(crate) weight: Option<&'a [T]>,
}

impl<T: Real> Backward<'_, T> {
    /// `dx = rstd (gw - mean(gw) - x̂ mean(gw x̂))`, with `gw` the gradient times the weight and `x̂` the
    /// normalized input. The first mean is left out if the mean was not taken out.
    pub(crate) fn input(self, dx: &mut Room<T>) -> &mut [T] {
        assert_eq!(dx.len(), self.mean.len() * self.n);
        let parts = Parts::new(dx);
        parallel(if self.n == 0 { 0 } else { self.mean.len() }, rows_of_task(self.n), |range| {
            // SAFETY: ranges of different threads do not overlap.
            let dx = unsafe { parts.part(range.start * self.n..range.end * self.n) };
            vectorize(Input(self.rows(range.start, range.end)), dx);
        });
        // SAFETY: the loop writes all rows of a range, and the ranges make up all rows.
        unsafe { written(dx) }
    }

    /// `Σ g x̂` over the rows, or `Σ g`: the gradients of the weight and the bias.
    pub(crate) fn parameters(self, weight: &mut [T], bias: &mut [T]) {
        let rows = rows_of_task(self.n);
        let tasks = self.mean.len().div_ceil(rows);
        let mut sums = vec![T::ZERO; 2 * tasks * self.n];
        let parts = Parts::new(&mut sums);
        parallel(tasks, 1, |range| {
            for task in range {
                // SAFETY: each task has its own part.
                let sums = unsafe { parts.part(2 * task * self.n..2 * (task + 1) * self.n) };
                let part = self.rows(task * rows, ((task + 1) * rows).min(self.mean.len()));
                vectorize(Parameters(part), sums.split_at_mut(self.n));
            }
        });
        for sums in sums.chunks_exact(2 * self.n.max(1)) {
            let (of_weight, of_bias) = sums.split_at(self.n);
            weight.iter_mut().zip(of_weight).for_each(|(sum, part)| *sum += *part);
            bias.iter_mut().zip(of_bias).for_each(|(sum, part)| *sum += *part);
        }
    }

    /// Only these rows.
    fn rows(self, from: usize, to: usize) -> Self {
        let elements = from * self.n..to * self.n;
        Backward {
            g: &self.g[elements.clone()],
            x: &self.x[elements],
            mean: &self.mean[from..to],
            rstd: &self.rstd[from..to],
            ..self
        }
    }
}

struct Input<'a, T>(Backward<'a, T>);

impl<T: Real> Vectorized for Input<'_, T> {
    type Out<'a> = &'a mut Room<T>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, dx: &mut Room<T>) {
        let Backward { g, x, n, centered, mean, rstd, weight } = self.0;
        let (g, x, dx) = (simd.numbers(g), simd.numbers(x), simd.room(dx));
        let count = S::Number::<T>::from_f64(n as f64);
        let moments = simd.numbers(mean).iter().zip(simd.numbers(rstd));
        let rows = g.chunks_exact(n).zip(x.chunks_exact(n)).zip(dx.chunks_exact_mut(n));
        for (((g, x), dx), (mean, rstd)) in rows.zip(moments) {
            // The row of `dx` holds the gradient times the weight first.
            let dx = match weight {
                Some(weight) => {
                    let weight = &simd.numbers(weight)[..n];
                    for ((dx, g), weight) in dx.iter_mut().zip(g).zip(weight) {
                        dx.write(*g * *weight);
                    }
                    // SAFETY: a row has `n` elements, as the weight.
                    unsafe { written(dx) }
                }
                None => copy(dx, g),
            };
            let along = if centered { sum(dx, dx, |g, _| g) / count } else { S::Number::<T>::ZERO };
            let across = sum(dx, x, |g, x| g * ((x - *mean) * *rstd)) / count;
            for (dx, x) in dx.iter_mut().zip(x) {
                *dx = (*dx - along - (*x - *mean) * *rstd * across) * *rstd;
            }
        }
    }
}

struct Parameters<'a, T>(Backward<'a, T>);

impl<T: Real> Vectorized for Parameters<'_, T> {
    type Out<'a> = (&'a mut [T], &'a mut [T]);

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (weight, bias): (&mut [T], &mut [T])) {
        let Backward { g, x, n, mean, rstd, .. } = self.0;
        let (weight, bias) = (simd.numbers_mut(weight), simd.numbers_mut(bias));
        let moments = simd.numbers(mean).iter().zip(simd.numbers(rstd));
        let rows = simd.numbers(g).chunks_exact(n).zip(simd.numbers(x).chunks_exact(n));
        for ((g, x), (mean, rstd)) in rows.zip(moments) {
            for (((weight, bias), g), x) in weight.iter_mut().zip(bias.iter_mut()).zip(g).zip(x) {
                *weight += *g * ((*x - *mean) * *rstd);
                *bias += *g;
            }
        }
    }
}
