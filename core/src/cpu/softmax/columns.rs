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
        let x = &x[from..][..max.len()];
        for j in 0..x.len() {
            max[j] = if x[j] > max[j] { x[j] } else { max[j] };
        }
    }
}

/// Adds `Σ exp(x - max)` of each column from column `from` on.
#[inline(always)]
fn exp_columns<T: Real>(x: &[T], inner: usize, from: usize, max: &[T], sums: &mut [T]) {
    let n = sums.len();
    let max = &max[..n];
    for x in x.chunks_exact(inner) {
        let x = &x[from..][..n];
        for j in 0..n {
            sums[j] += (x[j] - max[j]).exp();
        }
    }
}

/// Softmax, or its logarithm.
#[inline(always)]
pub(super) fn softmax_columns<T: Real>(log: bool, x: &[T], n: usize, inner: usize, y: &mut Room<T>) {
    let (mut max, mut sums) = ([T::ZERO; COLUMNS], [T::ZERO; COLUMNS]);
    for (x, y) in x.chunks_exact(n * inner).zip(y.chunks_exact_mut(n * inner)) {
        let mut from = 0;
        while from < inner {
            let columns = (inner - from).min(COLUMNS);
            let (max, sums) = (&mut max[..columns], &mut sums[..columns]);
            largest_columns(x, inner, from, max);
            sums.fill(T::ZERO);
            if log {
                exp_columns(x, inner, from, max, sums);
            } else {
                for row in 0..n {
                    let at = row * inner + from;
                    let (x, y) = (&x[at..][..columns], &mut y[at..][..columns]);
                    for j in 0..columns {
                        sums[j] += *y[j].write((x[j] - max[j]).exp());
                    }
                }
            }
            for sum in &mut *sums {
                *sum = if log { sum.ln() } else { sum.recip() };
            }
            for row in 0..n {
                let at = row * inner + from;
                let (x, y) = (&x[at..][..columns], &mut y[at..][..columns]);
                if log {
                    for j in 0..columns {
                        y[j].write((x[j] - max[j]) - sums[j]);
                    }
                } else {
                    // SAFETY: these columns are written above.
                    let y = unsafe { written(y) };
                    for j in 0..columns {
                        y[j] *= sums[j];
                    }
                }
            }
            from += columns;
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
    for (group, dx) in dx.chunks_exact_mut(n * inner).enumerate() {
        let (y, g) = (&y[group * n * inner..][..n * inner], &g[group * n * inner..][..n * inner]);
        let mut from = 0;
        while from < inner {
            let columns = (inner - from).min(COLUMNS);
            let sums = &mut sums[..columns];
            sums.fill(T::ZERO);
            for row in 0..n {
                let at = row * inner + from;
                let (y, g) = (&y[at..][..columns], &g[at..][..columns]);
                for j in 0..columns {
                    sums[j] = if log { sums[j] + g[j] } else { y[j].mul_add(g[j], sums[j]) };
                }
            }
            for row in 0..n {
                let at = row * inner + from;
                let (y, g, dx) = (&y[at..][..columns], &g[at..][..columns], &mut dx[at..][..columns]);
                for j in 0..columns {
                    dx[j].write(if log { g[j] - y[j].exp() * sums[j] } else { y[j] * (g[j] - sums[j]) });
                }
            }
            from += columns;
        }
    }
}

#[inline(always)]
pub(super) fn logsumexp_columns<T: Real>(x: &[T], n: usize, inner: usize, y: &mut Room<T>) {
    let mut max = [T::ZERO; COLUMNS];
    for (x, y) in x.chunks_exact(n * inner).zip(y.chunks_exact_mut(inner)) {
        let mut from = 0;
        while from < inner {
            let columns = (inner - from).min(COLUMNS);
            let (max, y) = (&mut max[..columns], &mut y[from..][..columns]);
            largest_columns(x, inner, from, max);
            for max in max.iter_mut() {
                *max = finite_or_zero(*max);
            }
            let y = fill(y, T::ZERO);
            exp_columns(x, inner, from, max, y);
            for j in 0..columns {
                y[j] = max[j] + y[j].ln();
            }
            from += columns;
        }
    }
}
