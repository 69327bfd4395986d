//! Sums in several lanes, which become vectors.

use namegrad_core::cpu::math::Real;

/// The number of lanes.
pub(crate) const WIDTH: usize = 16;

/// The sum of the lanes.
#[inline(always)]
pub(crate) fn total<T: Real>(lanes: &[T; WIDTH]) -> f64 {
    let mut total = 0.0;
    for lane in lanes {
        total += lane.to_f64();
    }
    total
}

/// The index in a loop, hidden from the compiler where few CPUs run the loop, so that it stays short.
#[inline(always)]
pub(crate) fn rare<T: Real>(i: usize) -> usize {
    if T::IS_RARE { std::hint::black_box(i) } else { i }
}
