//! The functions along the middle of `[outer, n, inner]`. The lanes of a vector are columns, elements along
//! `inner`.

use super::finite_or_zero;
use crate::cpu::math::Real;
use crate::cpu::room::{Room, fill, written};

/// The columns whose maxima and sums are kept at once.
const COLUMNS: usize = 256;

/// The largest element of each column from column `from` on.
#[inline(always)]
fn largest_columns<T: Real>(x: &[T], inner: usize, from: usize, max: &mut [T]) {
    max.fill(T::NEG_INFINITY);
    for x in x.chunks_exact(inner) {
        for (max, x) in max.iter_mut().zip(&x[from..]) {
            *max = if *x > *max { *x } else { *max };
        }
    }
}

/// Adds `Σ exp(x - max)` of each column from column `from` on.
#[inline(always)]
fn exp_columns<T: Real>(x: &[T], inner: usize, from: usize, max: &[T], sums: &mut [T]) {
    for x in x.chunks_exact(inner) {
        for ((sum, max), x) in sums.iter_mut().zip(max).zip(&x[from..]) {
            *sum += (*x - *max).exp();
        }
    }
}

#[inline(always)]
pub(super) fn softmax_columns<T: Real>(x: &[T], n: usize, inner: usize, y: &mut Room<T>) {
    let (mut max, mut sums) = ([T::ZERO; COLUMNS], [T::ZERO; COLUMNS]);
    for (x, y) in x.chunks_exact(n * inner).zip(y.chunks_exact_mut(n * inner)) {
        for from in (0..inner).step_by(COLUMNS) {
            let columns = (inner - from).min(COLUMNS);
            let (max, sums) = (&mut max[..columns], &mut sums[..columns]);
            largest_columns(x, inner, from, max);
            sums.fill(T::ZERO);
            for (x, y) in x.chunks_exact(inner).zip(y.chunks_exact_mut(inner)) {
                let (x, y) = (&x[from..][..columns], &mut y[from..][..columns]);
                for j in 0..columns {
                    sums[j] += *y[j].write((x[j] - max[j]).exp());
                }
            }
            for sum in sums.iter_mut() {
                *sum = sum.recip();
            }
            for y in y.chunks_exact_mut(inner) {
                // SAFETY: these columns are written above.
                let y = unsafe { written(&mut y[from..][..columns]) };
                for (y, scale) in y.iter_mut().zip(&*sums) {
                    *y *= *scale;
                }
            }
        }
    }
}

#[inline(always)]
pub(super) fn log_softmax_columns<T: Real>(x: &[T], n: usize, inner: usize, y: &mut Room<T>) {
    let (mut max, mut sums) = ([T::ZERO; COLUMNS], [T::ZERO; COLUMNS]);
    for (x, y) in x.chunks_exact(n * inner).zip(y.chunks_exact_mut(n * inner)) {
        for from in (0..inner).step_by(COLUMNS) {
            let columns = (inner - from).min(COLUMNS);
            let (max, sums) = (&mut max[..columns], &mut sums[..columns]);
            largest_columns(x, inner, from, max);
            sums.fill(T::ZERO);
            exp_columns(x, inner, from, max, sums);
            for sum in sums.iter_mut() {
                *sum = sum.ln();
            }
            for (x, y) in x.chunks_exact(inner).zip(y.chunks_exact_mut(inner)) {
                let (x, y) = (&x[from..][..columns], &mut y[from..][..columns]);
                for j in 0..columns {
                    y[j].write((x[j] - max[j]) - sums[j]);
                }
            }
        }
    }
}

/// The gradient of softmax from its result `y`: `y (g - Σ g y)`; or that of its logarithm: `g - exp(y) Σ g`.
#[inline(always)]
pub(super) fn softmax_backward_columns<T: Real>(
    log: bool,
    [y, g]: [&[T]; 2],
    n: usize,
    inner: usize,
    dx: &mut Room<T>,
) {
    let mut sums = [T::ZERO; COLUMNS];
    let groups = y.chunks_exact(n * inner).zip(g.chunks_exact(n * inner));
    for ((y, g), dx) in groups.zip(dx.chunks_exact_mut(n * inner)) {
        for from in (0..inner).step_by(COLUMNS) {
            let columns = (inner - from).min(COLUMNS);
            let sums = &mut sums[..columns];
            sums.fill(T::ZERO);
            let rows = y.chunks_exact(inner).zip(g.chunks_exact(inner));
            for (y, g) in rows.clone() {
                for ((sum, y), g) in sums.iter_mut().zip(&y[from..]).zip(&g[from..]) {
                    *sum = if log { *sum + *g } else { y.mul_add(*g, *sum) };
                }
            }
            for ((y, g), dx) in rows.zip(dx.chunks_exact_mut(inner)) {
                let (y, g, dx) = (&y[from..][..columns], &g[from..][..columns], &mut dx[from..][..columns]);
                for j in 0..columns {
                    dx[j].write(if log { g[j] - y[j].exp() * sums[j] } else { y[j] * (g[j] - sums[j]) });
                }
            }
        }
    }
}

#[inline(always)]
pub(super) fn logsumexp_columns<T: Real>(x: &[T], n: usize, inner: usize, y: &mut Room<T>) {
    let mut max = [T::ZERO; COLUMNS];
    for (x, y) in x.chunks_exact(n * inner).zip(y.chunks_exact_mut(inner)) {
        for from in (0..inner).step_by(COLUMNS) {
            let columns = (inner - from).min(COLUMNS);
            let (max, y) = (&mut max[..columns], &mut y[from..][..columns]);
            largest_columns(x, inner, from, max);
            for max in max.iter_mut() {
                *max = finite_or_zero(*max);
            }
            let y = fill(y, T::ZERO);
            exp_columns(x, inner, from, max, y);
            for (y, max) in y.iter_mut().zip(&*max) {
                *y = *max + y.ln();
            }
        }
    }
}
