//! The functions along contiguous rows. The lanes of a vector are elements of a row, or of several short
//! rows.

use super::{Kind, finite_or_zero};
use crate::cpu::exps::{exp_all, exp_into, ln_all, sum_exp};
use crate::cpu::math::Real;
use crate::cpu::room::{Room, written};
use crate::cpu::row::{self, largest};
use crate::cpu::simd::{Simd, is_short};
use std::hint::black_box;
use std::mem::MaybeUninit;

/// Rows below this length do not fill the lanes, so exponentials and logarithms are computed across rows.
const SHORT: usize = 32;
/// The elements of short rows that are computed together.
const BLOCK: usize = 512;

/// `Σ a b`.
#[inline(always)]
fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    if a.len() >= SHORT {
        return row::dot(a, b);
    }
    // The CPU runs several short rows at once.
    let mut sum = T::ZERO;
    for j in 0..a.len() {
        sum += a[j] * b[j];
    }
    sum
}

/// `Σ x`.
#[inline(always)]
fn sum<T: Real>(x: &[T]) -> T {
    if x.len() >= SHORT { row::sum(x) } else { sum_short(x) }
}

/// `Σ x` of a short row.
#[inline(always)]
fn sum_short<T: Real>(x: &[T]) -> T {
    let mut sum = T::ZERO;
    for x in x {
        sum += *x;
    }
    sum
}

/// The largest element of each short row.
#[inline(always)]
fn largest_of_each<T: Real>(x: &[T], n: usize, max: &mut [T]) {
    for row in 0..max.len() {
        let mut largest = T::NEG_INFINITY;
        for x in &x[row * n..][..n] {
            largest = if *x > largest { *x } else { largest };
        }
        max[row] = largest;
    }
}

/// Softmax of short rows, its logarithm, or the logarithm of the sum of exponentials, of which `y` has an
/// element for a row.
#[inline(always)]
fn softmax_short_rows<S: Simd, T: Real>(simd: S, kind: Kind, x: &[T], n: usize, y: &mut Room<T>) {
    let (mut max, mut sums) = ([T::ZERO; BLOCK], [T::ZERO; BLOCK]);
    let mut dropped = [const { MaybeUninit::uninit() }; BLOCK];
    let rows = BLOCK / n;
    let width = if kind == Kind::LogSumExp { 1 } else { n };
    for from in (0..x.len() / n).step_by(rows) {
        let kind = black_box(kind); // one loop for all kinds
        let rows = rows.min(x.len() / n - from);
        let (x, y) = (&x[from * n..][..rows * n], &mut y[from * width..][..rows * width]);
        let (max, sums) = (&mut max[..rows], &mut sums[..rows]);
        largest_of_each(x, n, max);
        if kind == Kind::LogSumExp {
            for max in max.iter_mut() {
                *max = finite_or_zero(*max);
            }
        }
        let exps = if kind == Kind::Softmax { &mut *y } else { &mut dropped[..x.len()] };
        for row in 0..rows {
            let (x, exps, max) = (&x[row * n..][..n], &mut exps[row * n..][..n], max[row]);
            for j in 0..n {
                exps[j].write(x[j] - max);
            }
        }
        // SAFETY: the rows make up `x`, and `exps` is as long.
        let exps = unsafe { written(exps) };
        exp_all(simd, exps);
        for row in 0..rows {
            sums[row] = sum_short(&exps[row * n..][..n]);
        }
        if kind == Kind::Softmax {
            for row in 0..rows {
                let (y, scale) = (&mut exps[row * n..][..n], sums[row].recip());
                for y in y {
                    *y *= scale;
                }
            }
            continue;
        }
        ln_all(simd, sums);
        for row in 0..rows {
            if kind == Kind::LogSumExp {
                y[row].write(max[row] + sums[row]);
                continue;
            }
            let (x, y, max, sum) = (&x[row * n..][..n], &mut y[row * n..][..n], max[row], sums[row]);
            for j in 0..n {
                y[j].write((x[j] - max) - sum);
            }
        }
    }
}

/// Softmax of rows, its logarithm, or the logarithm of the sum of exponentials, of which `y` has an element
/// for a row.
#[inline(always)]
pub(super) fn softmax_rows<S: Simd, T: Real>(simd: S, kind: Kind, x: &[T], n: usize, y: &mut Room<T>) {
    if n < SHORT && is_short::<T>() {
        return softmax_short_rows(simd, kind, x, n, y);
    }
    let width = if kind == Kind::LogSumExp { 1 } else { n };
    for row in 0..x.len() / n {
        let kind = black_box(kind); // one loop for all kinds
        let (x, y) = (&x[row * n..][..n], &mut y[row * width..][..width]);
        let max = largest(x, T::NEG_INFINITY);
        let max = if kind == Kind::LogSumExp { finite_or_zero(max) } else { max };
        let sum = sum_exp(simd, x, max, if kind == Kind::Softmax { Some(&mut *y) } else { None });
        if kind == Kind::Softmax {
            let scale = sum.recip();
            // SAFETY: `y` is as long as `x`.
            for y in unsafe { written(y) } {
                *y *= scale;
            }
            continue;
        }
        let ln_sum = sum.ln();
        if kind == Kind::LogSumExp {
            y[0].write(max + ln_sum);
            continue;
        }
        let y = &mut y[..n];
        for j in 0..n {
            y[j].write((x[j] - max) - ln_sum);
        }
    }
}

#[inline(always)]
pub(super) fn softmax_backward_rows<S: Simd, T: Real>(
    simd: S,
    log: bool,
    [y, g]: [&[T]; 2],
    n: usize,
    dx: &mut Room<T>,
) {
    if log {
        return log_softmax_backward_rows(simd, [y, g], n, dx);
    }
    for (row, dx) in dx.chunks_exact_mut(n).enumerate() {
        let (y, g) = (&y[row * n..][..n], &g[row * n..][..n]);
        let mean = dot(g, y);
        for j in 0..n {
            dx[j].write(y[j] * (g[j] - mean));
        }
    }
}

#[inline(always)]
fn log_softmax_backward_rows<S: Simd, T: Real>(simd: S, [y, g]: [&[T]; 2], n: usize, dx: &mut Room<T>) {
    // as many whole rows as stay in the L1 cache
    let block = (BLOCK / n).max(1) * n;
    for (at, dx) in dx.chunks_mut(block).enumerate() {
        let (y, g) = (&y[at * block..][..dx.len()], &g[at * block..][..dx.len()]);
        let (dx, _) = exp_into(simd, y, T::ZERO, dx);
        for row in 0..dx.len() / n {
            let (g, dx) = (&g[row * n..][..n], &mut dx[row * n..][..n]);
            let sum = sum(g);
            for j in 0..n {
                dx[j] = g[j] - dx[j] * sum;
            }
        }
    }
}

#[inline(always)]
pub(super) fn cross_entropy_backward_rows<S: Simd, T: Real>(
    simd: S,
    x: &[T],
    n: usize,
    target: &[i64],
    logsumexp: &[T],
    g: &[T],
    dx: &mut Room<T>,
) {
    let mut shifted = [T::ZERO; BLOCK];
    // rows that are as long as the block are not shifted first
    let block = (BLOCK / n).max(1);
    for (i, dx) in dx.chunks_mut(block * n).enumerate() {
        let from = i * block;
        let rows = dx.len() / n;
        let x = &x[from * n..][..dx.len()];
        let (x, shift) = if rows == 1 {
            (x, logsumexp[from])
        } else {
            for row in 0..rows {
                let (shifted, sum) = (&mut shifted[row * n..][..n], logsumexp[from + row]);
                let x = &x[row * n..][..n];
                for j in 0..n {
                    shifted[j] = x[j] - sum;
                }
            }
            (&shifted[..dx.len()], T::ZERO)
        };
        let (dx, _) = exp_into(simd, x, shift, dx);
        for row in 0..rows {
            let dx = &mut dx[row * n..][..n];
            let target = target[from + row] as usize; // a negative target becomes too large
            if target >= n {
                dx.fill(T::ZERO);
            } else if logsumexp[from + row].is_infinite() {
                dx.fill(T::NAN); // as softmax is
            } else {
                let g = g[from + row];
                for dx in &mut *dx {
                    *dx *= g;
                }
                dx[target] -= g;
            }
        }
    }
}
