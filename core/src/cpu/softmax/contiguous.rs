//! The functions along contiguous rows. The lanes of a vector are elements of a row, or of several short
//! rows.

use super::finite_or_zero;
use crate::cpu::math::Real;
use crate::cpu::room::{Room, copy, written};
use crate::cpu::row::{self, LANES, largest, sum_lanes};
use std::mem::MaybeUninit;

/// Rows below this length do not fill the lanes, so exponentials and logarithms are computed across rows.
const SHORT: usize = 32;
/// The elements of short rows that are computed together.
const BLOCK: usize = 512;

/// `y = exp(x - shift)`. Also adds `y` to `sums`. NaN reaches a result through the sum: [`largest`] ignores
/// it.
#[inline(always)]
fn exp_lanes<T: Real>(x: &[T; LANES], shift: T, sums: &mut [T; LANES]) -> [T; LANES] {
    let mut y = [T::ZERO; LANES];
    for j in 0..LANES {
        y[j] = (x[j] - shift).exp();
    }
    for j in 0..LANES {
        sums[j] += y[j];
    }
    y
}

/// Writes `y = exp(x - shift)` for a row, which is as long, and returns it with `Σ y`. The rest of the row is
/// padded to whole lanes.
#[inline(always)]
fn exp_row<'a, T: Real>(x: &[T], shift: T, y: &'a mut Room<T>) -> (&'a mut [T], T) {
    assert_eq!(x.len(), y.len());
    let mut sums = [T::ZERO; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    let (whole_y, rest_y) = y.as_chunks_mut::<LANES>();
    for (x, y) in whole.iter().zip(whole_y) {
        copy(y, &exp_lanes(x, shift, &mut sums));
    }
    if !rest.is_empty() {
        let e = exp_lanes(&filled(rest), shift, &mut sums);
        for (y, e) in rest_y.iter_mut().zip(e) {
            y.write(e);
        }
    }
    // SAFETY: the whole lanes and the rest, which is shorter than the lanes, are written above.
    (unsafe { written(y) }, sum_lanes(sums))
}

/// `Σ exp(x - shift)`.
#[inline(always)]
fn sum_exp_row<T: Real>(x: &[T], shift: T) -> T {
    let mut sums = [T::ZERO; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for x in whole {
        exp_lanes(x, shift, &mut sums);
    }
    if !rest.is_empty() {
        exp_lanes(&filled(rest), shift, &mut sums);
    }
    sum_lanes(sums)
}

/// The rest of a row, followed by numbers whose exponentials are 0.
#[inline(always)]
fn filled<T: Real>(rest: &[T]) -> [T; LANES] {
    let mut lanes = [T::NEG_INFINITY; LANES];
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = *x;
    }
    lanes
}

/// `Σ a b`.
#[inline(always)]
fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    if a.len() < SHORT {
        // the CPU runs several short rows at once
        return a.iter().zip(b).fold(T::ZERO, |sum, (a, b)| sum + *a * *b);
    }
    row::dot(a, b)
}

/// `Σ x`.
#[inline(always)]
fn sum<T: Real>(x: &[T]) -> T {
    if x.len() < SHORT {
        return x.iter().fold(T::ZERO, |sum, x| sum + *x);
    }
    row::sum(x, x, |x, _| x)
}

/// `x = exp(x)`.
#[inline(always)]
fn exp_all<T: Real>(x: &mut [T]) {
    for x in x {
        *x = x.exp();
    }
}

/// `x = ln(x)`.
#[inline(always)]
fn ln_all<T: Real>(x: &mut [T]) {
    for x in x {
        *x = x.ln();
    }
}

/// The largest element of each short row.
#[inline(always)]
fn largest_of_each<T: Real>(x: &[T], n: usize, max: &mut [T]) {
    for (x, max) in x.chunks_exact(n).zip(max) {
        *max = x.iter().fold(T::NEG_INFINITY, |max, x| if *x > max { *x } else { max });
    }
}

/// `y = exp(x - max)` for short rows, and their sums; returns both.
#[inline(always)]
fn exp_short_rows<'a, T: Real>(
    x: &[T],
    n: usize,
    max: &[T],
    y: &'a mut Room<T>,
    sums: &'a mut Room<T>,
) -> [&'a mut [T]; 2] {
    assert!(x.len() == y.len() && x.len() == sums.len() * n && max.len() >= sums.len());
    for ((x, y), max) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)).zip(max) {
        for (x, y) in x.iter().zip(y) {
            y.write(*x - *max);
        }
    }
    // SAFETY: there are as many whole rows of `y` as of `x`, and a maximum for each.
    let y = unsafe { written(y) };
    exp_all(y);
    for (y, sum) in y.chunks_exact(n).zip(sums.iter_mut()) {
        sum.write(y.iter().fold(T::ZERO, |sum, y| sum + *y));
    }
    // SAFETY: there is a row for each.
    [y, unsafe { written(sums) }]
}

/// The softmax of short rows, or its logarithm.
#[inline(always)]
fn softmax_short_rows<T: Real>(log: bool, x: &[T], n: usize, y: &mut Room<T>) {
    let (mut max, mut sums) = ([T::ZERO; BLOCK], [const { MaybeUninit::uninit() }; BLOCK]);
    let block = BLOCK / n * n;
    for (x, y) in x.chunks(block).zip(y.chunks_mut(block)) {
        largest_of_each(x, n, &mut max);
        let [y, sums] = exp_short_rows(x, n, &max, y, &mut sums[..x.len() / n]);
        if log {
            ln_all(sums);
            let rows = x.chunks_exact(n).zip(y.chunks_exact_mut(n));
            for ((x, y), (max, ln_sum)) in rows.zip(max.iter().zip(&*sums)) {
                for (x, y) in x.iter().zip(y) {
                    *y = (*x - *max) - *ln_sum;
                }
            }
        } else {
            for (y, sum) in y.chunks_exact_mut(n).zip(&*sums) {
                let scale = sum.recip();
                for y in y {
                    *y *= scale;
                }
            }
        }
    }
}

#[inline(always)]
pub(super) fn softmax_rows<T: Real>(x: &[T], n: usize, y: &mut Room<T>) {
    if n < SHORT {
        return softmax_short_rows(false, x, n, y);
    }
    for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
        let (y, sum) = exp_row(x, largest(x, T::NEG_INFINITY), y);
        let scale = sum.recip();
        for y in y {
            *y *= scale;
        }
    }
}

#[inline(always)]
pub(super) fn log_softmax_rows<T: Real>(x: &[T], n: usize, y: &mut Room<T>) {
    if n < SHORT {
        return softmax_short_rows(true, x, n, y);
    }
    for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
        let max = largest(x, T::NEG_INFINITY);
        let ln_sum = sum_exp_row(x, max).ln();
        for (y, x) in y.iter_mut().zip(x) {
            y.write((*x - max) - ln_sum);
        }
    }
}

#[inline(always)]
pub(super) fn softmax_backward_rows<T: Real>(y: &[T], g: &[T], n: usize, dx: &mut Room<T>) {
    for ((y, g), dx) in y.chunks_exact(n).zip(g.chunks_exact(n)).zip(dx.chunks_exact_mut(n)) {
        let mean = dot(g, y);
        for ((y, g), dx) in y.iter().zip(g).zip(dx) {
            dx.write(*y * (*g - mean));
        }
    }
}

#[inline(always)]
pub(super) fn log_softmax_backward_rows<T: Real>(y: &[T], g: &[T], n: usize, dx: &mut Room<T>) {
    // as many whole rows as stay in the L1 cache
    let block = (BLOCK / n).max(1) * n;
    for ((y, g), dx) in y.chunks(block).zip(g.chunks(block)).zip(dx.chunks_mut(block)) {
        for (y, dx) in y.iter().zip(dx.iter_mut()) {
            dx.write(y.exp());
        }
        // SAFETY: the three have the same length.
        let dx = unsafe { written(dx) };
        for (g, dx) in g.chunks_exact(n).zip(dx.chunks_exact_mut(n)) {
            let sum = sum(g);
            for (g, dx) in g.iter().zip(dx) {
                *dx = *g - *dx * sum;
            }
        }
    }
}

#[inline(always)]
pub(super) fn logsumexp_rows<T: Real>(x: &[T], n: usize, y: &mut Room<T>) {
    if n < SHORT {
        let (mut max, mut exps) = ([T::ZERO; BLOCK], [const { MaybeUninit::uninit() }; BLOCK]);
        let rows = BLOCK / n;
        for (x, y) in x.chunks(rows * n).zip(y.chunks_mut(rows)) {
            let max = &mut max[..y.len()];
            largest_of_each(x, n, max);
            for max in max.iter_mut() {
                *max = finite_or_zero(*max);
            }
            let [_, y] = exp_short_rows(x, n, max, &mut exps[..x.len()], y);
            ln_all(y);
            for (y, max) in y.iter_mut().zip(max) {
                *y += *max;
            }
        }
        return;
    }
    for (x, y) in x.chunks_exact(n).zip(y) {
        let max = finite_or_zero(largest(x, T::NEG_INFINITY));
        y.write(max + sum_exp_row(x, max).ln());
    }
}

#[inline(always)]
pub(super) fn cross_entropy_backward_rows<T: Real>(
    x: &[T],
    n: usize,
    target: &[i64],
    logsumexp: &[T],
    g: &[T],
    dx: &mut Room<T>,
) {
    let rows = (BLOCK / n).max(1);
    for (i, (x, dx)) in x.chunks(rows * n).zip(dx.chunks_mut(rows * n)).enumerate() {
        let from = i * rows;
        for ((x, dx), logsumexp) in x.chunks_exact(n).zip(dx.chunks_exact_mut(n)).zip(&logsumexp[from..]) {
            for (x, dx) in x.iter().zip(dx) {
                dx.write(*x - *logsumexp);
            }
        }
        // SAFETY: there are as many whole rows of `dx` as of `x`, and a sum for each.
        let dx = unsafe { written(dx) };
        exp_all(dx);
        let rows = dx.chunks_exact_mut(n).zip(&logsumexp[from..]).zip(&target[from..]).zip(&g[from..]);
        for (((dx, logsumexp), target), g) in rows {
            let target = *target as usize; // a negative target becomes too large
            if target >= n {
                dx.fill(T::ZERO);
                continue;
            }
            if logsumexp.is_infinite() {
                dx.fill(T::NAN); // as softmax is
                continue;
            }
            for dx in dx.iter_mut() {
                *dx *= *g;
            }
            dx[target] -= *g;
        }
    }
}
