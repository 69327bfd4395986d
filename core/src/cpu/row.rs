//! Sums and maxima of contiguous rows. Each has as many accumulators as vectors hold, so the order of a sum
//! depends only on the length of the row.
//!
//! The functions are inlined into the loops that call them, and are compiled for the vectors of those.

use super::math::Real;

/// The accumulators of a sum.
pub(super) const LANES: usize = 16;

/// `Σ term(a, b)` over two rows.
///
/// `term` is a closure. It is inlined with this function, which is compiled as a part of the loop that calls
/// it.
#[inline(always)]
pub(super) fn sum<T: Real>(a: &[T], b: &[T], term: impl Fn(T, T) -> T) -> T {
    let mut sums = [T::ZERO; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for j in 0..LANES {
            sums[j] += term(a[j], b[j]);
        }
    }
    for (sum, (a, b)) in sums.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *sum += term(*a, *b);
    }
    sum_lanes(sums)
}

/// `Σ a b` over two rows.
#[inline(always)]
pub(super) fn dot<T: Real>(a: &[T], b: &[T]) -> T {
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

/// The largest of `least` and the elements that are not NaN.
#[inline(always)]
pub(super) fn largest<T: Real>(x: &[T], least: T) -> T {
    largest_term(x, least, |x| x)
}

/// The largest of `least` and the terms of the elements that are not NaN. `term` is as in [`sum`].
#[inline(always)]
pub(super) fn largest_term<T: Real>(x: &[T], least: T, term: impl Fn(T) -> T) -> T {
    let mut lanes = [least; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for x in whole {
        for j in 0..LANES {
            let x = term(x[j]);
            lanes[j] = if x > lanes[j] { x } else { lanes[j] };
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        let x = term(*x);
        *lane = if x > *lane { x } else { *lane };
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

/// The sum of the accumulators.
#[inline(always)]
pub(super) fn sum_lanes<T: Real>(mut lanes: [T; LANES]) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] += lanes[j + width];
        }
        width /= 2;
    }
    lanes[0]
}
