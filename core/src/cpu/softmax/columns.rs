//! The functions along the middle of `[outer, n, inner]`. The lanes of a vector are columns, elements along
//! `inner`.

use super::{Kind, finite_or_zero};
use crate::cpu::exps::{exp_into, ln_all};
use crate::cpu::math::Real;
use crate::cpu::room::{Room, written};
use crate::cpu::simd::Simd;
use std::hint::black_box;
use std::mem::MaybeUninit;

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

/// Softmax, its logarithm, or the logarithm of the sum of exponentials, of which `y` has a row for a group.
#[inline(always)]
pub(super) fn softmax_columns<S: Simd, T: Real>(
    simd: S,
    kind: Kind,
    x: &[T],
    [n, inner]: [usize; 2],
    y: &mut Room<T>,
) {
    let (mut max, mut sums) = ([T::ZERO; COLUMNS], [T::ZERO; COLUMNS]);
    let mut dropped = [const { MaybeUninit::uninit() }; COLUMNS];
    let rows = if kind == Kind::LogSumExp { 1 } else { n };
    for group in 0..x.len() / (n * inner) {
        let kind = black_box(kind); // one loop for all kinds
        let x = &x[group * n * inner..][..n * inner];
        let y = &mut y[group * rows * inner..][..rows * inner];
        let mut from = 0;
        while from < inner {
            let columns = (inner - from).min(COLUMNS);
            let (max, sums) = (&mut max[..columns], &mut sums[..columns]);
            largest_columns(x, inner, from, max);
            if kind == Kind::LogSumExp {
                for max in max.iter_mut() {
                    *max = finite_or_zero(*max);
                }
            }
            sums.fill(T::ZERO);
            for row in 0..n {
                let at = row * inner + from;
                let y = if kind == Kind::Softmax { &mut y[at..] } else { &mut dropped[..] };
                add_exp(&x[at..][..columns], max, &mut y[..columns], sums);
            }
            if kind == Kind::Softmax {
                for sum in &mut *sums {
                    *sum = sum.recip();
                }
            } else {
                ln_all(simd, sums);
            }
            if kind == Kind::LogSumExp {
                let y = &mut y[from..][..columns];
                for j in 0..columns {
                    y[j].write(max[j] + sums[j]);
                }
                from += columns;
                continue;
            }
            for row in 0..n {
                let at = row * inner + from;
                let (x, y) = (&x[at..][..columns], &mut y[at..][..columns]);
                if kind == Kind::LogSoftmax {
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

/// `y = exp(x - max)`, which is added to `sums`.
#[inline(always)]
fn add_exp<T: Real>(x: &[T], max: &[T], y: &mut Room<T>, sums: &mut [T]) {
    let n = x.len();
    let (max, y, sums) = (&max[..n], &mut y[..n], &mut sums[..n]);
    for j in 0..n {
        sums[j] += *y[j].write((x[j] - max[j]).exp());
    }
}

/// The gradient of softmax from its result `y`: `y (g - Σ g y)`; or that of its logarithm: `g - exp(y) Σ g`.
#[inline(always)]
pub(super) fn softmax_backward_columns<S: Simd, T: Real>(
    simd: S,
    log: bool,
    [y, g]: [&[T]; 2],
    [n, inner]: [usize; 2],
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
                if log {
                    let (dx, _) = exp_into(simd, y, T::ZERO, dx);
                    for j in 0..columns {
                        dx[j] = g[j] - dx[j] * sums[j];
                    }
                } else {
                    for j in 0..columns {
                        dx[j].write(y[j] * (g[j] - sums[j]));
                    }
                }
            }
            from += columns;
        }
    }
}
