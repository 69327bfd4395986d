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
    for i in 0..whole.len() {
        copy(&mut whole_y[i], &exp_lanes(&whole[i], shift, &mut sums));
    }
    if !rest.is_empty() {
        let e = exp_lanes(&filled(rest), shift, &mut sums);
        for j in 0..rest_y.len() {
            rest_y[j].write(e[j]);
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
    lanes[..rest.len()].copy_from_slice(rest);
    lanes
}

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
        *max = T::NEG_INFINITY;
        for x in x {
            *max = if *x > *max { *x } else { *max };
        }
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
    let rows = sums.len();
    assert!(x.len() == y.len() && x.len() == rows * n && max.len() >= rows);
    for row in 0..rows {
        let (x, y, max) = (&x[row * n..][..n], &mut y[row * n..][..n], max[row]);
        for j in 0..n {
            y[j].write(x[j] - max);
        }
    }
    // SAFETY: there are as many whole rows of `y` as of `x`, and a maximum for each.
    let y = unsafe { written(y) };
    exp_all(y);
    for row in 0..rows {
        sums[row].write(sum_short(&y[row * n..][..n]));
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
        }
        for row in 0..sums.len() {
            let (x, y, max, sum) = (&x[row * n..][..n], &mut y[row * n..][..n], max[row], sums[row]);
            let scale = sum.recip();
            for j in 0..n {
                y[j] = if log { (x[j] - max) - sum } else { y[j] * scale };
            }
        }
    }
}

#[inline(always)]
pub(super) fn softmax_rows<T: Real>(log: bool, x: &[T], n: usize, y: &mut Room<T>) {
    if n < SHORT {
        return softmax_short_rows(log, x, n, y);
    }
    for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
        let max = largest(x, T::NEG_INFINITY);
        if log {
            let ln_sum = sum_exp_row(x, max).ln();
            for j in 0..n {
                y[j].write((x[j] - max) - ln_sum);
            }
        } else {
            let (y, sum) = exp_row(x, max, y);
            let scale = sum.recip();
            for y in y {
                *y *= scale;
            }
        }
    }
}

#[inline(always)]
pub(super) fn softmax_backward_rows<T: Real>(log: bool, [y, g]: [&[T]; 2], n: usize, dx: &mut Room<T>) {
    if log {
        return log_softmax_backward_rows([y, g], n, dx);
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
fn log_softmax_backward_rows<T: Real>([y, g]: [&[T]; 2], n: usize, dx: &mut Room<T>) {
    // as many whole rows as stay in the L1 cache
    let block = (BLOCK / n).max(1) * n;
    for (at, dx) in dx.chunks_mut(block).enumerate() {
        let (y, g) = (&y[at * block..][..dx.len()], &g[at * block..][..dx.len()]);
        for j in 0..dx.len() {
            dx[j].write(y[j].exp());
        }
        // SAFETY: the loop writes each element.
        let dx = unsafe { written(dx) };
        for (g, dx) in g.chunks_exact(n).zip(dx.chunks_exact_mut(n)) {
            let sum = sum(g);
            for j in 0..n {
                dx[j] = g[j] - dx[j] * sum;
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
            for row in 0..max.len() {
                y[row] += max[row];
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
    let block = (BLOCK / n).max(1);
    for (i, dx) in dx.chunks_mut(block * n).enumerate() {
        let from = i * block;
        let rows = dx.len() / n;
        for row in 0..rows {
            let (x, dx, sum) = (&x[(from + row) * n..][..n], &mut dx[row * n..][..n], logsumexp[from + row]);
            for j in 0..n {
                dx[j].write(x[j] - sum);
            }
        }
        // SAFETY: the loop writes all rows.
        let dx = unsafe { written(dx) };
        exp_all(dx);
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
