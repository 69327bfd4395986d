//! Softmax, log-softmax, log-sum-exp and cross entropy along a dim, and their gradients. Each is fused: data
//! that fits into the cache is read from memory once.
//!
//! The data is contiguous, `[outer, n, inner]`, and the functions run along `n`. If `inner` is 1, the lanes
//! of a vector are elements of a row ([`contiguous`]), otherwise elements along `inner` ([`columns`]). The
//! order of every sum depends only on the sizes.

mod columns;
mod contiguous;
#[cfg(test)]
mod tests;

use super::math::Real;
use super::room::{Room, fill, write_each, written};
use super::simd::{Simd, UpTo, Vectorized, vectorize};
use super::threads::{DisjointParts, parallel};
use crate::callback::Callback;
use columns::*;
use contiguous::*;

/// Below this many elements one thread is faster than two.
const PARALLEL: usize = 1 << 15;
/// The elements that a thread takes at a time.
const TASK: usize = 1 << 13;

/// `y = exp(x - max x) / Σ exp(x - max x)` along the middle of `[outer, n, inner]`.
pub(crate) fn softmax<'a, T: Real>(x: &[T], sizes: [usize; 3], y: &'a mut Room<T>) -> &'a mut [T] {
    map(Kind::Softmax, x, sizes, y)
}

/// `y = x - max x - ln Σ exp(x - max x)` along the middle of `[outer, n, inner]`.
pub(crate) fn log_softmax<'a, T: Real>(x: &[T], sizes: [usize; 3], y: &'a mut Room<T>) -> &'a mut [T] {
    map(Kind::LogSoftmax, x, sizes, y)
}

/// The gradient of [`softmax`]: `y (g - Σ g y)`, with the result `y` and its gradient `g`.
pub(crate) fn softmax_backward<'a, T: Real>(
    y: &[T],
    g: &[T],
    sizes: [usize; 3],
    dx: &'a mut Room<T>,
) -> &'a mut [T] {
    backward(false, [y, g], sizes, dx)
}

/// The gradient of [`log_softmax`]: `g - exp(y) Σ g`, with the result `y` and its gradient `g`.
pub(crate) fn log_softmax_backward<'a, T: Real>(
    y: &[T],
    g: &[T],
    sizes: [usize; 3],
    dx: &'a mut Room<T>,
) -> &'a mut [T] {
    backward(true, [y, g], sizes, dx)
}

/// `y = ln Σ exp(x)`: `[outer, n, inner] -> [outer, inner]`.
pub(crate) fn logsumexp<'a, T: Real>(
    x: &[T],
    [outer, n, inner]: [usize; 3],
    y: &'a mut Room<T>,
) -> &'a mut [T] {
    assert_eq!((x.len(), y.len()), (outer * n * inner, outer * inner));
    if n == 0 {
        return fill(y, T::NEG_INFINITY);
    }
    for_each_group(x.len(), y, n * inner, inner, &|from, y: &mut Room<T>| {
        let x = &x[from * n * inner..][..y.len() * n];
        vectorize(Forward { kind: Kind::LogSumExp, x, sizes: [n, inner] }, y);
    });
    // SAFETY: the groups make up `y`, and the loop writes all of a group.
    unsafe { written(y) }
}

/// Cross entropy with class indices over the rows of `logits`, `[batch, classes]`:
/// `loss = logsumexp - logits[target]`.
///
/// Also writes the `logsumexp` of each row, which [`cross_entropy_backward`] takes. A row whose target is not
/// a class, such as PyTorch's `ignore_index`, has loss 0. The caller applies weights and takes the mean.
pub(crate) fn cross_entropy<'a, T: Real>(
    logits: &[T],
    classes: usize,
    target: &[i64],
    [logsumexp, loss]: [&'a mut Room<T>; 2],
) -> [&'a mut [T]; 2] {
    assert_eq!((logits.len(), loss.len()), (target.len() * classes, target.len()));
    let logsumexp = self::logsumexp(logits, [target.len(), classes, 1], logsumexp);
    let loss = write_each(loss, |row| {
        let logits = &logits[row * classes..][..classes];
        let (logit, sum) = (usize::try_from(target[row]).ok().and_then(|t| logits.get(t)), logsumexp[row]);
        // As with `log_softmax`, an infinite logit makes its row NaN.
        let of_logit = |logit: &T| if sum.is_infinite() { T::NAN } else { sum - *logit };
        logit.map_or(T::ZERO, of_logit)
    });
    [logsumexp, loss]
}

/// The gradient of [`cross_entropy`] for the gradients `g` of the losses:
/// `g (softmax(logits) - onehot(target))`.
///
/// Factors that are applied to a loss later, such as its weight or the `1 / batch` of a mean, belong to its
/// `g`.
pub(crate) fn cross_entropy_backward<'a, T: Real>(
    logits: &[T],
    classes: usize,
    target: &[i64],
    logsumexp: &[T],
    g: &[T],
    dx: &'a mut Room<T>,
) -> &'a mut [T] {
    assert_eq!((logits.len(), dx.len()), (target.len() * classes, logits.len()));
    for_each_group(logits.len(), dx, classes, classes, &|from, dx: &mut Room<T>| {
        let rows = from..from + dx.len() / classes;
        let backward = CrossEntropyBackward {
            logits: &logits[from * classes..][..dx.len()],
            classes,
            target: &target[rows.clone()],
            logsumexp: &logsumexp[rows.clone()],
            g: &g[rows],
        };
        vectorize(backward, dx);
    });
    // SAFETY: the groups make up `dx`, and the loop writes all of a group.
    unsafe { written(dx) }
}

/// The arguments of [`cross_entropy_backward`].
struct CrossEntropyBackward<'a, T> {
    logits: &'a [T],
    classes: usize,
    target: &'a [i64],
    logsumexp: &'a [T],
    g: &'a [T],
}

impl<T: Real> Vectorized for CrossEntropyBackward<'_, T> {
    type Out<'a> = &'a mut Room<T>;
    const UP_TO: UpTo = UpTo::for_math::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, dx: &mut Room<T>) {
        cross_entropy_backward_rows(
            simd,
            simd.numbers(self.logits),
            self.classes,
            self.target,
            simd.numbers(self.logsumexp),
            simd.numbers(self.g),
            simd.room(dx),
        );
    }
}

/// A function that starts with the exponentials of its input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Softmax,
    LogSoftmax,
    LogSumExp,
}

/// A function of groups of sizes `[n, inner]`, which writes all of `y`.
struct Forward<'a, T> {
    kind: Kind,
    x: &'a [T],
    sizes: [usize; 2],
}

impl<T: Real> Vectorized for Forward<'_, T> {
    type Out<'a> = &'a mut Room<T>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, y: &mut Room<T>) {
        let (x, y, sizes) = (simd.numbers(self.x), simd.room(y), self.sizes);
        match sizes[1] {
            1 if !S::IS_RARE => softmax_rows(simd, self.kind, x, sizes[0], y),
            _ => softmax_columns(simd, self.kind, x, sizes, y),
        }
    }
}

/// The gradient of softmax, or of its logarithm, from its result and the gradient of that.
struct Backward<'a, T> {
    log: bool,
    inputs: [&'a [T]; 2],
    sizes: [usize; 2],
}

impl<T: Real> Vectorized for Backward<'_, T> {
    type Out<'a> = &'a mut Room<T>;
    const UP_TO: UpTo = UpTo::for_math::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, dx: &mut Room<T>) {
        let inputs = [simd.numbers(self.inputs[0]), simd.numbers(self.inputs[1])];
        let (dx, sizes) = (simd.room(dx), self.sizes);
        match sizes[1] {
            1 if !S::IS_RARE => softmax_backward_rows(simd, self.log, inputs, sizes[0], dx),
            _ => softmax_backward_columns(simd, self.log, inputs, sizes, dx),
        }
    }
}

/// Applies a function whose result has the sizes of its input, on all threads if there are enough elements.
fn map<'a, T: Real>(kind: Kind, x: &[T], [outer, n, inner]: [usize; 3], y: &'a mut Room<T>) -> &'a mut [T] {
    let size = n * inner;
    assert_eq!(y.len(), outer * size);
    for_each_group(y.len(), y, size, size, &|from, y: &mut Room<T>| {
        let x = &x[from * size..][..y.len()];
        vectorize(Forward { kind, x, sizes: [n, inner] }, y);
    });
    // SAFETY: the groups make up `y`, and the function writes all of a group.
    unsafe { written(y) }
}

/// The gradient of a function that [`map`] applies.
fn backward<'a, T: Real>(
    log: bool,
    [y, g]: [&[T]; 2],
    [outer, n, inner]: [usize; 3],
    dx: &'a mut Room<T>,
) -> &'a mut [T] {
    let size = n * inner;
    assert_eq!(dx.len(), outer * size);
    for_each_group(dx.len(), dx, size, size, &|from, dx: &mut Room<T>| {
        let inputs = [&y[from * size..][..dx.len()], &g[from * size..][..dx.len()]];
        vectorize(Backward { log, inputs, sizes: [n, inner] }, dx);
    });
    // SAFETY: the groups make up `dx`, and the loop writes all of a group.
    unsafe { written(dx) }
}

/// Runs `f` for parts of `y` with the number of their first group, on all threads if the input has enough
/// elements, `total`. A part consists of whole groups of `inner` elements, each of which is computed from
/// `size` elements.
fn for_each_group<T: Real>(
    total: usize,
    y: &mut Room<T>,
    size: usize,
    inner: usize,
    f: &(dyn for<'p> Callback<(usize, &'p mut Room<T>)> + Sync),
) {
    if y.is_empty() {
        return;
    }
    if total < PARALLEL {
        return f.call_with((0, y));
    }
    let (groups, grain) = (y.len() / inner, (TASK / size).max(1));
    let parts = DisjointParts::new(y);
    parallel(groups, grain, |groups| {
        // SAFETY: ranges of groups do not overlap.
        let part = unsafe { parts.part(groups.start * inner..groups.end * inner) };
        f.call_with((groups.start, part));
    });
}

/// The number to subtract from the exponents: the largest, or 0 if it is infinite, as `∞ - ∞` is NaN.
#[inline(always)]
fn finite_or_zero<T: Real>(max: T) -> T {
    if max.is_infinite() { T::ZERO } else { max }
}
