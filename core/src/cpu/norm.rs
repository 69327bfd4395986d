//! Layer normalization of rows and its form without a mean, forward and backward, each in one pass over
//! memory. Statistics over groups of channels are in `standardize`.

use super::math::Real;
use super::room::{Room, copy, fill, written};
use super::row::{add_to, sum, sum_products};
use super::simd::{Simd, UpTo, Vectorized, vectorize};
use super::threads::{DisjointParts, parallel};

/// The elements that a thread takes at a time.
const TASK: usize = 1 << 14;

/// The rows of `n` elements that a thread takes at a time. Neither this nor the order of the sums depends on
/// the number of threads.
fn rows_of_task(n: usize) -> usize {
    (TASK / n.max(1)).max(1)
}

/// A normalization of rows of `n` elements.
#[derive(Clone, Copy)]
pub(crate) struct NormRows<'a, T> {
    /// The length of a row.
    pub(crate) n: usize,
    /// Whether the mean of a row is taken out first; otherwise the variance is the mean square.
    pub(crate) centered: bool,
    /// The weight, if there is one.
    pub(crate) weight: Option<&'a [T]>,
    /// The bias, if there is one.
    pub(crate) bias: Option<&'a [T]>,
    /// The number that is added to the variance.
    pub(crate) eps: f64,
}

/// `y = (x - mean) rstd weight + bias` for each row, with the `mean` of the row and
/// `rstd = 1 / √(variance + eps)`.
pub(crate) fn layer_norm<'a, T: Real>(
    x: &[T],
    norm: NormRows<'_, T>,
    [y, mean, rstd]: [&'a mut Room<T>; 3],
) -> [&'a mut [T]; 3] {
    let n = norm.n;
    let count = mean.len();
    assert!(x.len() == count * n && y.len() == x.len() && rstd.len() == count, "{count} rows of {n}");
    let parts = (DisjointParts::new(y), DisjointParts::new(mean), DisjointParts::new(rstd));
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
    norm: NormRows<'a, T>,
}

impl<T: Real> Vectorized for Forward<'_, T> {
    type Out<'a> = [&'a mut Room<T>; 3];
    const UP_TO: UpTo = UpTo::for_math::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, [y, mean, rstd]: [&mut Room<T>; 3]) {
        let NormRows { n, centered, weight, bias, eps } = self.norm;
        let weight = weight.map(|weight| simd.numbers(weight));
        let bias = bias.map(|bias| simd.numbers(bias));
        let norm = NormRows { n, centered, weight, bias, eps };
        forward(simd.numbers(self.x), norm, [simd.room(y), simd.room(mean), simd.room(rstd)]);
    }
}

#[inline(always)]
fn forward<T: Real>(x: &[T], norm: NormRows<'_, T>, [y, mean, rstd]: [&mut Room<T>; 3]) {
    let NormRows { n, centered, weight, bias, eps } = norm;
    // Divide by n: multiplying by a rounded 1 / n would shift a mean that is large compared to the
    // deviations.
    let count = T::from_f64(n as f64);
    for row in 0..mean.len() {
        let (x, y) = (&x[row * n..][..n], &mut y[row * n..][..n]);
        let center = if centered { sum(x) / count } else { T::ZERO };
        let variance = sum_products(x, x, [center; 2]) / count;
        let scale = (variance + T::from_f64(eps)).rsqrt();
        mean[row].write(center);
        rstd[row].write(scale);
        if let (Some(weight), Some(bias)) = (weight, bias) {
            let (weight, bias) = (&weight[..n], &bias[..n]);
            for j in 0..n {
                y[j].write((x[j] - center) * scale * weight[j] + bias[j]);
            }
        } else {
            for j in 0..n {
                y[j].write((x[j] - center) * scale);
            }
            // SAFETY: both rows have `n` elements.
            let y = unsafe { written(y) };
            if let Some(weight) = weight {
                let weight = &weight[..n];
                for j in 0..n {
                    y[j] *= weight[j];
                }
            }
            if let Some(bias) = bias {
                let bias = &bias[..n];
                for j in 0..n {
                    y[j] += bias[j];
                }
            }
        }
    }
}

/// The inputs of the backward pass of [`layer_norm`].
#[derive(Clone, Copy)]
pub(crate) struct NormBackward<'a, T> {
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

impl<'a, T: Real> NormBackward<'a, T> {
    /// `dx = rstd (gw - mean(gw) - x̂ mean(gw x̂))`, with `gw` the gradient times the weight and `x̂` the
    /// normalized input. The first mean is left out if the mean was not taken out.
    pub(crate) fn input(self, dx: &mut Room<T>) -> &mut [T] {
        assert_eq!(dx.len(), self.mean.len() * self.n);
        let parts = DisjointParts::new(dx);
        parallel(if self.n == 0 { 0 } else { self.mean.len() }, rows_of_task(self.n), |range| {
            // SAFETY: ranges of different threads do not overlap.
            let dx = unsafe { parts.part(range.start * self.n..range.end * self.n) };
            vectorize(InputGradients(self.rows(range.start, range.end)), dx);
        });
        // SAFETY: the loop writes all rows of a range, and the ranges make up all rows.
        unsafe { written(dx) }
    }

    /// `Σ g x̂` over the rows, or `Σ g`: the gradients of the weight and the bias.
    pub(crate) fn parameters(self, weight: &mut [T], bias: &mut [T]) {
        let rows = rows_of_task(self.n);
        let tasks = self.mean.len().div_ceil(rows);
        let mut sums = vec![T::ZERO; 2 * tasks * self.n];
        let parts = DisjointParts::new(&mut sums);
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
            add_to(weight, of_weight);
            add_to(bias, of_bias);
        }
    }

    /// The same numbers, for a set of instructions.
    #[inline(always)]
    fn numbers<S: Simd>(self, simd: S) -> NormBackward<'a, S::Number<T>> {
        let (g, x, mean, rstd) =
            (simd.numbers(self.g), simd.numbers(self.x), simd.numbers(self.mean), simd.numbers(self.rstd));
        let weight = self.weight.map(|weight| simd.numbers(weight));
        NormBackward { g, x, n: self.n, centered: self.centered, mean, rstd, weight }
    }

    /// Only these rows.
    fn rows(self, from: usize, to: usize) -> Self {
        let elements = from * self.n..to * self.n;
        NormBackward {
            g: &self.g[elements.clone()],
            x: &self.x[elements],
            mean: &self.mean[from..to],
            rstd: &self.rstd[from..to],
            ..self
        }
    }
}

struct InputGradients<'a, T>(NormBackward<'a, T>);

impl<T: Real> Vectorized for InputGradients<'_, T> {
    type Out<'a> = &'a mut Room<T>;
    const UP_TO: UpTo = UpTo::for_math::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, dx: &mut Room<T>) {
        input_gradient(self.0.numbers(simd), simd.room(dx));
    }
}

#[inline(always)]
fn input_gradient<T: Real>(backward: NormBackward<'_, T>, dx: &mut Room<T>) {
    let NormBackward { g, x, n, centered, mean, rstd, weight } = backward;
    let count = T::from_f64(n as f64);
    for row in 0..mean.len() {
        let (g, x) = (&g[row * n..][..n], &x[row * n..][..n]);
        let (dx, mean, rstd) = (&mut dx[row * n..][..n], mean[row], rstd[row]);
        // The row of `dx` holds the gradient times the weight first.
        let dx = match weight {
            Some(weight) => {
                let weight = &weight[..n];
                for j in 0..n {
                    dx[j].write(g[j] * weight[j]);
                }
                // SAFETY: a row has `n` elements, as the weight.
                unsafe { written(dx) }
            }
            None => copy(dx, g),
        };
        let along = if centered { sum(dx) / count } else { T::ZERO };
        let across = sum_products(dx, x, [T::ZERO, mean]) * rstd / count;
        for j in 0..n {
            dx[j] = (dx[j] - along - (x[j] - mean) * rstd * across) * rstd;
        }
    }
}

struct Parameters<'a, T>(NormBackward<'a, T>);

impl<T: Real> Vectorized for Parameters<'_, T> {
    type Out<'a> = (&'a mut [T], &'a mut [T]);
    const UP_TO: UpTo = UpTo::for_memory::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (weight, bias): (&mut [T], &mut [T])) {
        parameter_gradients(self.0.numbers(simd), simd.numbers_mut(weight), simd.numbers_mut(bias));
    }
}

#[inline(always)]
fn parameter_gradients<T: Real>(backward: NormBackward<'_, T>, weight: &mut [T], bias: &mut [T]) {
    let NormBackward { g, x, n, mean, rstd, .. } = backward;
    let (weight, bias) = (&mut weight[..n], &mut bias[..n]);
    for row in 0..mean.len() {
        let (g, x, mean, rstd) = (&g[row * n..][..n], &x[row * n..][..n], mean[row], rstd[row]);
        for j in 0..n {
            weight[j] += g[j] * ((x[j] - mean) * rstd);
            bias[j] += g[j];
        }
    }
}
