//! Softmax and what belongs to it, fused: one visit of the data where it fits into the cache.
//!
//! Data is `[outer, n, inner]`, contiguous, and the function runs over `n`. Where `inner` is 1 it is computed in lanes along the row
//! ([`contiguous`]), otherwise in lanes along `inner` ([`columns`]). The order of every sum depends on the sizes alone.

mod columns;
mod contiguous;
#[cfg(test)]
mod tests;

use super::math::Real;
use super::threads::{Parts, parallel};
use columns::*;
use contiguous::*;

/// Below this many elements one thread is faster than two.
const PARALLEL: usize = 1 << 15;
/// Elements that a thread takes in one go.
const TASK: usize = 1 << 13;

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

/// What is taken out of the exponents: nothing if the largest is infinite, for `∞ - ∞` is NaN.
#[inline(always)]
fn finite_or_zero<T: Real>(max: T) -> T {
    if max.is_infinite() { T::ZERO } else { max }
}
