//! Softmax and what belongs to it, fused: one visit of the data where it fits into the cache.
//!
//! Data is `[outer, n, inner]`, contiguous, and the function runs over `n`. Rows (`inner` = 1) are computed in lanes along the row,
//! others in lanes along `inner`. The order of every sum depends on the sizes alone.

use super::math::{Real, simd_real};
use super::threads::{Parts, parallel};

/// Below this many elements one thread is faster than two.
const PARALLEL: usize = 1 << 15;
/// Elements that a thread takes in one go.
const TASK: usize = 1 << 13;
/// Elements of a row that are computed side by side; a shorter rest is filled up.
const LANES: usize = 16;
/// Columns whose maxima and sums are kept side by side.
const COLUMNS: usize = 256;
/// Rows below this length do not fill the lanes: exponentials and logarithms are then taken across rows.
const SHORT: usize = 32;
/// Elements of short rows that are computed together.
const BLOCK: usize = 512;

/// `y = exp(x - max x) / Σ exp(x - max x)` over the middle of `[outer, n, inner]`.
pub(crate) fn softmax<T: Real>(x: &[T], [outer, n, inner]: [usize; 3], y: &mut [T]) {
    debug_assert_eq!((x.len(), y.len()), (outer * n * inner, outer * n * inner));
    map_groups(n * inner, [x, x], y, |[x, _], y| {
        if inner == 1 { softmax_rows(x, n, y) } else { softmax_columns(x, n, inner, y) }
    });
}

/// `y = x - max x - ln Σ exp(x - max x)` over the middle of `[outer, n, inner]`.
pub(crate) fn log_softmax<T: Real>(x: &[T], [outer, n, inner]: [usize; 3], y: &mut [T]) {
    debug_assert_eq!((x.len(), y.len()), (outer * n * inner, outer * n * inner));
    map_groups(n * inner, [x, x], y, |[x, _], y| {
        if inner == 1 { log_softmax_rows(x, n, y) } else { log_softmax_columns(x, n, inner, y) }
    });
}

/// The gradient of [`softmax`]: `y (g - Σ g y)`, with the result `y` and its gradient `g`.
pub(crate) fn softmax_backward<T: Real>(y: &[T], g: &[T], [outer, n, inner]: [usize; 3], dx: &mut [T]) {
    debug_assert_eq!((y.len(), g.len(), dx.len()), (outer * n * inner, outer * n * inner, outer * n * inner));
    map_groups(n * inner, [y, g], dx, |[y, g], dx| {
        if inner == 1 {
            softmax_backward_rows(y, g, n, dx)
        } else {
            softmax_backward_columns(y, g, n, inner, dx)
        }
    });
}

/// The gradient of [`log_softmax`]: `g - exp(y) Σ g`, with the result `y` and its gradient `g`.
pub(crate) fn log_softmax_backward<T: Real>(y: &[T], g: &[T], [outer, n, inner]: [usize; 3], dx: &mut [T]) {
    debug_assert_eq!((y.len(), g.len(), dx.len()), (outer * n * inner, outer * n * inner, outer * n * inner));
    map_groups(n * inner, [y, g], dx, |[y, g], dx| {
        if inner == 1 {
            log_softmax_backward_rows(y, g, n, dx)
        } else {
            log_softmax_backward_columns(y, g, n, inner, dx)
        }
    });
}

/// `y = ln Σ exp(x)`: `[outer, n, inner] -> [outer, inner]`.
pub(crate) fn logsumexp<T: Real>(x: &[T], [outer, n, inner]: [usize; 3], y: &mut [T]) {
    debug_assert_eq!((x.len(), y.len()), (outer * n * inner, outer * inner));
    if n == 0 {
        return y.fill(T::NEG_INFINITY);
    }
    let one = |x: &[T], y: &mut [T]| {
        if inner == 1 { logsumexp_rows(x, n, y) } else { logsumexp_columns(x, n, inner, y) }
    };
    for_each_group(x.len(), y, n * inner, inner, |from, y| {
        one(&x[from * n * inner..][..y.len() * n], y);
    });
}

/// Cross entropy with class indices over the rows of `logits`, `[batch, classes]`: `loss = logsumexp - logits[target]`.
///
/// The `logsumexp` of each row is given too, for [`cross_entropy_backward`]. A row whose target is no class (as PyTorch's `ignore_index`)
/// has loss 0. Weights and means are the caller's.
pub(crate) fn cross_entropy<T: Real>(
    logits: &[T],
    classes: usize,
    target: &[i64],
    logsumexp: &mut [T],
    loss: &mut [T],
) {
    debug_assert_eq!((logits.len(), loss.len()), (target.len() * classes, target.len()));
    if classes == 0 {
        return loss.fill(T::ZERO);
    }
    self::logsumexp(logits, [target.len(), classes, 1], logsumexp);
    for (((logits, target), logsumexp), loss) in
        logits.chunks_exact(classes).zip(target).zip(logsumexp).zip(loss)
    {
        let logit = usize::try_from(*target).ok().and_then(|t| logits.get(t));
        *loss = logit.map_or(T::ZERO, |logit| *logsumexp - *logit);
    }
}

/// The gradient of [`cross_entropy`] for the gradients `g` of the losses: `g (softmax(logits) - onehot(target))`.
///
/// What is multiplied to a loss later (its weight, the mean's `1 / batch`) belongs to its `g`.
pub(crate) fn cross_entropy_backward<T: Real>(
    logits: &[T],
    classes: usize,
    target: &[i64],
    logsumexp: &[T],
    g: &[T],
    dx: &mut [T],
) {
    debug_assert_eq!((logits.len(), dx.len()), (target.len() * classes, logits.len()));
    if classes == 0 {
        return;
    }
    for_each_group(logits.len(), dx, classes, classes, |from, dx| {
        let rows = from..from + dx.len() / classes;
        let x = &logits[from * classes..][..dx.len()];
        cross_entropy_backward_rows(
            x,
            classes,
            &target[rows.clone()],
            &logsumexp[rows.clone()],
            &g[rows],
            dx,
        );
    });
}

/// `f` over pieces of whole groups of `size` elements, in threads if it is worth it.
fn map_groups<T: Real>(
    size: usize,
    inputs: [&[T]; 2],
    y: &mut [T],
    f: impl Fn([&[T]; 2], &mut [T]) + Sync + Send,
) {
    let [a, b] = inputs;
    for_each_group(a.len(), y, size, size, |from, y| {
        let part = from * size..from * size + y.len();
        f([&a[part.clone()], &b[part]], y);
    });
}

/// `f` for parts of `y` of whole groups of `inner` elements, each of which is computed from `size` elements, and the number of the first group; in threads if the `total` is
/// worth it.
fn for_each_group<T: Real>(
    total: usize,
    y: &mut [T],
    size: usize,
    inner: usize,
    f: impl Fn(usize, &mut [T]) + Sync,
) {
    if y.is_empty() {
        return;
    }
    if total < PARALLEL {
        return f(0, y);
    }
    let (groups, grain) = (y.len() / inner, (TASK / size).max(1));
    let parts = Parts::new(y);
    parallel(groups, grain, |groups| {
        // SAFETY: ranges of groups do not overlap.
        f(groups.start, unsafe { parts.part(groups.start * inner..groups.end * inner) });
    });
}

/// The largest element, `-∞` if there is none but NaN: NaN is left to the sum of exponentials.
#[inline(always)]
fn largest<T: Real>(x: &[T]) -> T {
    let mut lanes = [T::NEG_INFINITY; LANES];
    let whole = x.chunks_exact(LANES);
    let rest = whole.remainder();
    for x in whole {
        for j in 0..LANES {
            lanes[j] = if x[j] > lanes[j] { x[j] } else { lanes[j] };
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = if *x > *lane { *x } else { *lane };
    }
    let mut width = LANES / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] = if lanes[j + width] > lanes[j] { lanes[j + width] } else { lanes[j] };
        }
        width /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn sum_lanes<T: Real>(mut lanes: [T; LANES]) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] += lanes[j + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// `y = exp(x - shift)`, which is also added to `sums`.
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

/// `y = exp(x - shift)` of a row, and its sum. The rest of the row is filled up to whole lanes.
#[inline(always)]
fn exp_row<T: Real>(x: &[T], shift: T, y: &mut [T]) -> T {
    let mut sums = [T::ZERO; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    let (whole_y, rest_y) = y.as_chunks_mut::<LANES>();
    for (x, y) in whole.iter().zip(whole_y) {
        *y = exp_lanes(x, shift, &mut sums);
    }
    if !rest.is_empty() {
        let e = exp_lanes(&filled(rest), shift, &mut sums);
        for (y, e) in rest_y.iter_mut().zip(e) {
            *y = e;
        }
    }
    sum_lanes(sums)
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
        // short rows overlap in the processor
        return a.iter().zip(b).fold(T::ZERO, |sum, (a, b)| sum + *a * *b);
    }
    let mut sums = [T::ZERO; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for j in 0..LANES {
            sums[j] = a[j].mul_add(b[j], sums[j]);
        }
    }
    for (sum, (a, b)) in sums.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *sum = a.mul_add(*b, *sum);
    }
    sum_lanes(sums)
}

/// `Σ x`.
#[inline(always)]
fn sum<T: Real>(x: &[T]) -> T {
    if x.len() < SHORT {
        return x.iter().fold(T::ZERO, |sum, x| sum + *x);
    }
    let mut sums = [T::ZERO; LANES];
    let (x, rest) = x.as_chunks::<LANES>();
    for x in x {
        for j in 0..LANES {
            sums[j] += x[j];
        }
    }
    for (sum, x) in sums.iter_mut().zip(rest) {
        *sum += *x;
    }
    sum_lanes(sums)
}

/// What is taken out of the exponents: nothing if the largest is infinite, for `∞ - ∞` is NaN.
#[inline(always)]
fn finite_or_zero<T: Real>(max: T) -> T {
    if max.is_infinite() { T::ZERO } else { max }
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

/// `y = exp(x - max)` of short rows, and their sums.
#[inline(always)]
fn exp_short_rows<T: Real>(x: &[T], n: usize, max: &[T], y: &mut [T], sums: &mut [T]) {
    for ((x, y), max) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)).zip(max) {
        for (x, y) in x.iter().zip(y) {
            *y = *x - *max;
        }
    }
    exp_all(y);
    for (y, sum) in y.chunks_exact(n).zip(sums) {
        *sum = y.iter().fold(T::ZERO, |sum, y| sum + *y);
    }
}

simd_real! {
    fn softmax_rows[T: Real](x: &[T], n: usize, y: &mut [T]) {
        if n < SHORT {
            let (mut max, mut sums) = ([T::ZERO; BLOCK], [T::ZERO; BLOCK]);
            let block = BLOCK / n * n;
            for (x, y) in x.chunks(block).zip(y.chunks_mut(block)) {
                largest_of_each(x, n, &mut max);
                exp_short_rows(x, n, &max, y, &mut sums);
                for (y, sum) in y.chunks_exact_mut(n).zip(&sums) {
                    let scale = sum.recip();
                    for y in y {
                        *y *= scale;
                    }
                }
            }
            return;
        }
        for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
            let scale = exp_row(x, largest(x), y).recip();
            for y in y {
                *y *= scale;
            }
        }
    }
}

simd_real! {
    fn log_softmax_rows[T: Real](x: &[T], n: usize, y: &mut [T]) {
        if n < SHORT {
            let (mut max, mut sums) = ([T::ZERO; BLOCK], [T::ZERO; BLOCK]);
            let block = BLOCK / n * n;
            for (x, y) in x.chunks(block).zip(y.chunks_mut(block)) {
                largest_of_each(x, n, &mut max);
                exp_short_rows(x, n, &max, y, &mut sums);
                ln_all(&mut sums[..x.len() / n]);
                let rows = x.chunks_exact(n).zip(y.chunks_exact_mut(n));
                for ((x, y), (max, ln_sum)) in rows.zip(max.iter().zip(&sums)) {
                    for (x, y) in x.iter().zip(y) {
                        *y = (*x - *max) - *ln_sum;
                    }
                }
            }
            return;
        }
        for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
            let max = largest(x);
            let ln_sum = sum_exp_row(x, max).ln();
            for (y, x) in y.iter_mut().zip(x) {
                *y = (*x - max) - ln_sum;
            }
        }
    }
}

simd_real! {
    fn softmax_backward_rows[T: Real](y: &[T], g: &[T], n: usize, dx: &mut [T]) {
        for ((y, g), dx) in y.chunks_exact(n).zip(g.chunks_exact(n)).zip(dx.chunks_exact_mut(n)) {
            let mean = dot(g, y);
            for ((y, g), dx) in y.iter().zip(g).zip(dx) {
                *dx = *y * (*g - mean);
            }
        }
    }
}

simd_real! {
    fn log_softmax_backward_rows[T: Real](y: &[T], g: &[T], n: usize, dx: &mut [T]) {
        // whole rows, as many as stay in the first-level cache
        let block = (BLOCK / n).max(1) * n;
        for ((y, g), dx) in y.chunks(block).zip(g.chunks(block)).zip(dx.chunks_mut(block)) {
            for (y, dx) in y.iter().zip(&mut *dx) {
                *dx = y.exp();
            }
            for (g, dx) in g.chunks_exact(n).zip(dx.chunks_exact_mut(n)) {
                let sum = sum(g);
                for (g, dx) in g.iter().zip(dx) {
                    *dx = *g - *dx * sum;
                }
            }
        }
    }
}

simd_real! {
    fn logsumexp_rows[T: Real](x: &[T], n: usize, y: &mut [T]) {
        if n < SHORT {
            let (mut max, mut exps) = ([T::ZERO; BLOCK], [T::ZERO; BLOCK]);
            let rows = BLOCK / n;
            for (x, y) in x.chunks(rows * n).zip(y.chunks_mut(rows)) {
                let max = &mut max[..y.len()];
                largest_of_each(x, n, max);
                for max in max.iter_mut() {
                    *max = finite_or_zero(*max);
                }
                exp_short_rows(x, n, max, &mut exps[..x.len()], y);
                ln_all(y);
                for (y, max) in y.iter_mut().zip(max) {
                    *y += *max;
                }
            }
            return;
        }
        for (x, y) in x.chunks_exact(n).zip(y) {
            let max = finite_or_zero(largest(x));
            *y = max + sum_exp_row(x, max).ln();
        }
    }
}

simd_real! {
    fn cross_entropy_backward_rows[T: Real](x: &[T], n: usize, target: &[i64], logsumexp: &[T], g: &[T], dx: &mut [T]) {
        let rows = (BLOCK / n).max(1);
        for (i, (x, dx)) in x.chunks(rows * n).zip(dx.chunks_mut(rows * n)).enumerate() {
            let from = i * rows;
            for ((x, dx), logsumexp) in x.chunks_exact(n).zip(dx.chunks_exact_mut(n)).zip(&logsumexp[from..]) {
                for (x, dx) in x.iter().zip(dx) {
                    *dx = *x - *logsumexp;
                }
            }
            exp_all(dx);
            for ((dx, target), g) in dx.chunks_exact_mut(n).zip(&target[from..]).zip(&g[from..]) {
                let target = *target as usize; // a negative one is no class either
                if target >= n {
                    dx.fill(T::ZERO);
                    continue;
                }
                for dx in dx.iter_mut() {
                    *dx *= *g;
                }
                dx[target] -= *g;
            }
        }
    }
}

/// The largest of each of the columns that start at `from`.
#[inline(always)]
fn largest_columns<T: Real>(x: &[T], inner: usize, from: usize, max: &mut [T]) {
    max.fill(T::NEG_INFINITY);
    for x in x.chunks_exact(inner) {
        for (max, x) in max.iter_mut().zip(&x[from..]) {
            *max = if *x > *max { *x } else { *max };
        }
    }
}

/// The sums of `exp(x - max)` of the columns that start at `from`.
#[inline(always)]
fn exp_columns<T: Real>(x: &[T], inner: usize, from: usize, max: &[T], sums: &mut [T]) {
    sums.fill(T::ZERO);
    for x in x.chunks_exact(inner) {
        for ((sum, max), x) in sums.iter_mut().zip(max).zip(&x[from..]) {
            *sum += (*x - *max).exp();
        }
    }
}

simd_real! {
    fn softmax_columns[T: Real](x: &[T], n: usize, inner: usize, y: &mut [T]) {
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
                        y[j] = (x[j] - max[j]).exp();
                        sums[j] += y[j];
                    }
                }
                for sum in sums.iter_mut() {
                    *sum = sum.recip();
                }
                for y in y.chunks_exact_mut(inner) {
                    for (y, scale) in y[from..].iter_mut().zip(&*sums) {
                        *y *= *scale;
                    }
                }
            }
        }
    }
}

simd_real! {
    fn log_softmax_columns[T: Real](x: &[T], n: usize, inner: usize, y: &mut [T]) {
        let (mut max, mut sums) = ([T::ZERO; COLUMNS], [T::ZERO; COLUMNS]);
        for (x, y) in x.chunks_exact(n * inner).zip(y.chunks_exact_mut(n * inner)) {
            for from in (0..inner).step_by(COLUMNS) {
                let columns = (inner - from).min(COLUMNS);
                let (max, sums) = (&mut max[..columns], &mut sums[..columns]);
                largest_columns(x, inner, from, max);
                exp_columns(x, inner, from, max, sums);
                for sum in sums.iter_mut() {
                    *sum = sum.ln();
                }
                for (x, y) in x.chunks_exact(inner).zip(y.chunks_exact_mut(inner)) {
                    let (x, y) = (&x[from..][..columns], &mut y[from..][..columns]);
                    for j in 0..columns {
                        y[j] = (x[j] - max[j]) - sums[j];
                    }
                }
            }
        }
    }
}

simd_real! {
    fn softmax_backward_columns[T: Real](y: &[T], g: &[T], n: usize, inner: usize, dx: &mut [T]) {
        let mut means = [T::ZERO; COLUMNS];
        let groups = y.chunks_exact(n * inner).zip(g.chunks_exact(n * inner));
        for ((y, g), dx) in groups.zip(dx.chunks_exact_mut(n * inner)) {
            for from in (0..inner).step_by(COLUMNS) {
                let columns = (inner - from).min(COLUMNS);
                let means = &mut means[..columns];
                means.fill(T::ZERO);
                for (y, g) in y.chunks_exact(inner).zip(g.chunks_exact(inner)) {
                    for ((mean, y), g) in means.iter_mut().zip(&y[from..]).zip(&g[from..]) {
                        *mean = y.mul_add(*g, *mean);
                    }
                }
                for ((y, g), dx) in y.chunks_exact(inner).zip(g.chunks_exact(inner)).zip(dx.chunks_exact_mut(inner)) {
                    let (y, g, dx) = (&y[from..][..columns], &g[from..][..columns], &mut dx[from..][..columns]);
                    for j in 0..columns {
                        dx[j] = y[j] * (g[j] - means[j]);
                    }
                }
            }
        }
    }
}

simd_real! {
    fn log_softmax_backward_columns[T: Real](y: &[T], g: &[T], n: usize, inner: usize, dx: &mut [T]) {
        let mut sums = [T::ZERO; COLUMNS];
        let groups = y.chunks_exact(n * inner).zip(g.chunks_exact(n * inner));
        for ((y, g), dx) in groups.zip(dx.chunks_exact_mut(n * inner)) {
            for from in (0..inner).step_by(COLUMNS) {
                let columns = (inner - from).min(COLUMNS);
                let sums = &mut sums[..columns];
                sums.fill(T::ZERO);
                for g in g.chunks_exact(inner) {
                    for (sum, g) in sums.iter_mut().zip(&g[from..]) {
                        *sum += *g;
                    }
                }
                for ((y, g), dx) in y.chunks_exact(inner).zip(g.chunks_exact(inner)).zip(dx.chunks_exact_mut(inner)) {
                    let (y, g, dx) = (&y[from..][..columns], &g[from..][..columns], &mut dx[from..][..columns]);
                    for j in 0..columns {
                        dx[j] = g[j] - y[j].exp() * sums[j];
                    }
                }
            }
        }
    }
}

simd_real! {
    fn logsumexp_columns[T: Real](x: &[T], n: usize, inner: usize, y: &mut [T]) {
        let mut max = [T::ZERO; COLUMNS];
        for (x, y) in x.chunks_exact(n * inner).zip(y.chunks_exact_mut(inner)) {
            for from in (0..inner).step_by(COLUMNS) {
                let columns = (inner - from).min(COLUMNS);
                let (max, y) = (&mut max[..columns], &mut y[from..][..columns]);
                largest_columns(x, inner, from, max);
                for max in max.iter_mut() {
                    *max = finite_or_zero(*max);
                }
                exp_columns(x, inner, from, max, y);
                for (y, max) in y.iter_mut().zip(&*max) {
                    *y = *max + y.ln();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [[usize; 3]; 9] = [
        [1, 1, 1],
        [3, 10, 1],
        [2, 16, 1],
        [5, 33, 1],
        [600, 100, 1],
        [2, 5, 7],
        [3, 40, 300],
        [1, 7, 9000],
        [0, 3, 2],
    ];

    fn numbers<T: Real>(n: usize, seed: f64) -> Vec<T> {
        (0..n).map(|i| T::from_f64(5.0 * ((i as f64 + seed) * 1.37).sin())).collect()
    }

    fn f64s<T: Real>(x: &[T]) -> Vec<f64> {
        x.iter().map(|x| x.to_f64()).collect()
    }

    /// `f(slice along the middle) -> slice`, for every slice.
    fn along(
        x: &[f64],
        g: &[f64],
        [outer, n, inner]: [usize; 3],
        f: impl Fn(&[f64], &[f64]) -> Vec<f64>,
    ) -> Vec<f64> {
        let mut y = vec![0.0; x.len()];
        for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
            let at = |j: usize| (o * n + j) * inner + i;
            let slice = |x: &[f64]| (0..n).map(|j| x[at(j)]).collect::<Vec<_>>();
            for (j, value) in f(&slice(x), &slice(g)).into_iter().enumerate() {
                y[at(j)] = value;
            }
        }
        y
    }

    fn plain_softmax(x: &[f64]) -> Vec<f64> {
        let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = x.iter().map(|x| (x - max).exp()).sum();
        x.iter().map(|x| (x - max).exp() / sum).collect()
    }

    fn close<T: Real>(a: &[T], b: &[f64], what: &str) {
        assert_eq!(a.len(), b.len());
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            let tolerance = 64.0 * T::EPSILON.to_f64() * (1.0 + b.abs());
            assert!((a.to_f64() - b).abs() <= tolerance, "{what}: {a} is not {b} at {i}");
        }
    }

    fn check<T: Real>(shape: [usize; 3]) {
        let len = shape.iter().product();
        let (x, g) = (numbers::<T>(len, 0.3), numbers::<T>(len, 7.1));
        let (x64, g64) = (f64s(&x), f64s(&g));
        let mut y = vec![T::NAN; len];
        let mut dx = vec![T::NAN; len];

        softmax(&x, shape, &mut y);
        close(&y, &along(&x64, &g64, shape, |x, _| plain_softmax(x)), "softmax");
        softmax_backward(&y, &g, shape, &mut dx);
        let backward = along(&f64s(&y), &g64, shape, |y, g| {
            let mean: f64 = y.iter().zip(g).map(|(y, g)| y * g).sum();
            y.iter().zip(g).map(|(y, g)| y * (g - mean)).collect()
        });
        close(&dx, &backward, "softmax_backward");

        log_softmax(&x, shape, &mut y);
        let log = along(&x64, &g64, shape, |x, _| plain_softmax(x).iter().map(|p| p.ln()).collect());
        close(&y, &log, "log_softmax");
        log_softmax_backward(&y, &g, shape, &mut dx);
        let backward = along(&f64s(&y), &g64, shape, |y, g| {
            let sum: f64 = g.iter().sum();
            y.iter().zip(g).map(|(y, g)| g - y.exp() * sum).collect()
        });
        let loose: Vec<T> = dx.iter().map(|dx| *dx * T::from_f64(0.125)).collect(); // sums of up to 100 numbers around 5
        close(&loose, &backward.iter().map(|x| x * 0.125).collect::<Vec<_>>(), "log_softmax_backward");

        let mut sums = vec![T::NAN; shape[0] * shape[2]];
        logsumexp(&x, shape, &mut sums);
        let all = along(&x64, &g64, shape, |x, _| vec![x.iter().map(|x| x.exp()).sum::<f64>().ln(); x.len()]);
        let first: Vec<f64> =
            all.chunks(shape[1] * shape[2]).flat_map(|group| group[..shape[2]].iter().copied()).collect();
        close(&sums, &first, "logsumexp");
    }

    #[test]
    fn softmax_and_its_kin_match_plain_loops() {
        for shape in SHAPES {
            check::<f32>(shape);
            check::<f64>(shape);
        }
    }

    #[test]
    fn infinite_logits() {
        let inf = f32::INFINITY;
        let mut y = [0.0; 3];
        for inner in [1, 3] {
            let x: Vec<f32> = [-inf, 0.0, 0.0].iter().flat_map(|x| vec![*x; inner]).collect();
            let mut y = vec![0.0; 3 * inner];
            softmax(&x, [1, 3, inner], &mut y);
            assert_eq!([y[0], y[inner], y[2 * inner]], [0.0, 0.5, 0.5]);
            for x in [vec![-inf; 3 * inner], vec![inf; 3 * inner], vec![f32::NAN; 3 * inner]] {
                softmax(&x, [1, 3, inner], &mut y);
                assert!(y.iter().all(|y| y.is_nan()));
                log_softmax(&x, [1, 3, inner], &mut y);
                assert!(y.iter().all(|y| y.is_nan()));
                logsumexp(&x, [1, 3, inner], &mut y[..inner]);
                assert!(y[..inner].iter().all(|y| y.is_nan() == x[0].is_nan() && (y.is_nan() || *y == x[0])));
            }
        }
        logsumexp::<f32>(&[], [3, 0, 1], &mut y);
        assert_eq!(y, [-inf; 3]);
        softmax(&[1.0, f32::NAN, 0.0], [1, 3, 1], &mut y);
        assert!(y.iter().all(|y| y.is_nan()));
    }

    #[test]
    fn cross_entropy_matches_log_softmax() {
        for (batch, classes) in [(1, 1), (4, 10), (500, 100)] {
            let x = numbers::<f64>(batch * classes, 0.2);
            let g = numbers::<f64>(batch, 3.0);
            // every fifth row is ignored
            let target: Vec<i64> =
                (0..batch).map(|i| if i % 5 == 3 { -100 } else { (i * 7 % classes) as i64 }).collect();
            let (mut lse, mut loss, mut dx) =
                (vec![0.0; batch], vec![0.0; batch], vec![0.0; batch * classes]);
            cross_entropy(&x, classes, &target, &mut lse, &mut loss);
            cross_entropy_backward(&x, classes, &target, &lse, &g, &mut dx);
            for i in 0..batch {
                let p = plain_softmax(&x[i * classes..][..classes]);
                let hit = |j: usize| target[i] == j as i64;
                let ignored = target[i] < 0;
                let expected = if ignored { 0.0 } else { -p[target[i] as usize].ln() };
                close(&loss[i..=i], &[expected], "cross_entropy");
                let expected: Vec<f64> = (0..classes)
                    .map(|j| if ignored { 0.0 } else { g[i] * (p[j] - f64::from(hit(j))) })
                    .collect();
                close(&dx[i * classes..][..classes], &expected, "cross_entropy_backward");
            }
        }
    }

    #[test]
    fn the_same_for_any_number_of_threads() {
        let shape = [700, 100, 1];
        let x = numbers::<f32>(70_000, 0.1);
        let [one, two] = [1, 2].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut y = vec![0.0; x.len()];
            pool.install(|| softmax(&x, shape, &mut y));
            y
        });
        assert_eq!(one, two);
    }
}
