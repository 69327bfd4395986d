//! Sums and maxima of contiguous rows. Each has as many accumulators as vectors hold, so the order of a sum
//! depends only on the length of the row.
//!
//! The functions are inlined into the loops that call them, and are compiled for the vectors of those.

use super::math::Real;
use std::hint::black_box;

/// The accumulators of a sum.
pub(super) const LANES: usize = 16;

/// `n`, known to the compiler where speed counts. Elsewhere a loop of so many steps stays a loop.
#[inline(always)]
pub(super) fn steps<T: Real>(n: usize) -> usize {
    if T::IS_RARE { black_box(n) } else { n }
}

/// `j`, known to the compiler where speed counts. Elsewhere it cannot keep the lanes in registers, for which it
/// would make a sequence of the steps.
#[inline(always)]
pub(super) fn lane<T: Real>(j: usize) -> usize {
    if T::IS_RARE { black_box(j) } else { j }
}

/// `sums ← sums + x`, for what is not worth vectors: compiled once for a type.
#[inline(never)]
pub(super) fn add_to<T: Real>(sums: &mut [T], x: &[T]) {
    for j in 0..sums.len().min(x.len()) {
        sums[j] += x[j];
    }
}

/// `Σ x` over a row.
#[inline(always)]
pub(super) fn sum<T: Real>(x: &[T]) -> T {
    let mut sums = [T::ZERO; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for x in whole {
        for j in 0..steps::<T>(LANES) {
            let j = lane::<T>(j);
            sums[j] += x[j];
        }
    }
    for j in 0..steps::<T>(rest.len()) {
        let j = lane::<T>(j);
        sums[j] += rest[j];
    }
    sum_lanes(apart(sums))
}

/// `Σ (a - center_a) (b - center_b)` over two rows of the same length.
#[inline(always)]
pub(super) fn sum_products<T: Real>(a: &[T], b: &[T], [center_a, center_b]: [T; 2]) -> T {
    let mut sums = [T::ZERO; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for i in 0..a.len() {
        for j in 0..steps::<T>(LANES) {
            let j = lane::<T>(j);
            sums[j] += (a[i][j] - center_a) * (b[i][j] - center_b);
        }
    }
    for j in 0..steps::<T>(a_rest.len()) {
        let j = lane::<T>(j);
        sums[j] += (a_rest[j] - center_a) * (b_rest[j] - center_b);
    }
    sum_lanes(apart(sums))
}

/// `Σ a b` over two rows.
#[inline(always)]
pub(super) fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::ZERO; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for i in 0..a.len() {
        for j in 0..steps::<T>(LANES) {
            let j = lane::<T>(j);
            sums[j] = a[i][j].mul_add(b[i][j], sums[j]);
        }
    }
    for j in 0..steps::<T>(a_rest.len()) {
        let j = lane::<T>(j);
        sums[j] = a_rest[j].mul_add(b_rest[j], sums[j]);
    }
    sum_lanes(apart(sums))
}

/// The largest of `least` and the elements that are not NaN.
#[inline(always)]
pub(super) fn largest<T: Real>(x: &[T], least: T) -> T {
    let mut lanes = [least; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for x in whole {
        for j in 0..steps::<T>(LANES) {
            let j = lane::<T>(j);
            lanes[j] = if x[j] > lanes[j] { x[j] } else { lanes[j] };
        }
    }
    for j in 0..steps::<T>(rest.len()) {
        let j = lane::<T>(j);
        lanes[j] = if rest[j] > lanes[j] { rest[j] } else { lanes[j] };
    }
    largest_lane(lanes)
}

/// The largest magnitude of the elements that are not NaN, or 0.
#[inline(always)]
pub(super) fn largest_magnitude<T: Real>(x: &[T]) -> T {
    let mut lanes = [T::ZERO; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for x in whole {
        for j in 0..steps::<T>(LANES) {
            let j = lane::<T>(j);
            lanes[j] = if x[j].abs() > lanes[j] { x[j].abs() } else { lanes[j] };
        }
    }
    for j in 0..steps::<T>(rest.len()) {
        let j = lane::<T>(j);
        lanes[j] = if rest[j].abs() > lanes[j] { rest[j].abs() } else { lanes[j] };
    }
    largest_lane(lanes)
}

/// The accumulators after a loop. If the compiler knew what is done with them next, it would keep pairs of
/// lanes in the loop instead of vectors.
#[inline(always)]
pub(super) fn apart<T: Real, const L: usize>(lanes: [T; L]) -> [T; L] {
    black_box(lanes)
}

/// The largest of the lanes.
#[inline(always)]
fn largest_lane<T: Real>(mut lanes: [T; LANES]) -> T {
    let mut width = steps::<T>(LANES / 2);
    while width > 0 {
        for j in 0..width {
            let j = lane::<T>(j);
            lanes[j] = if lanes[j + width] > lanes[j] { lanes[j + width] } else { lanes[j] };
        }
        width /= 2;
    }
    lanes[0]
}

/// The sum of the accumulators.
#[inline(always)]
pub(super) fn sum_lanes<T: Real>(mut lanes: [T; LANES]) -> T {
    let mut width = steps::<T>(LANES / 2);
    while width > 0 {
        for j in 0..width {
            let j = lane::<T>(j);
            lanes[j] += lanes[j + width];
        }
        width /= 2;
    }
    lanes[0]
}
