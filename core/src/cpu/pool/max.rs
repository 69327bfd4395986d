//! The maxima of windows, and their gradient.

use super::{Plane, Planes, TASK};
use crate::cpu::math::Real;
use crate::cpu::room::{Room, fill, written};
use crate::cpu::simd::{Simd, UpTo, Vectorized, is_short, vectorize};
use crate::cpu::threads::{DisjointParts, parallel};

/// A number that has a maximum.
pub(crate) trait Ordered: Copy + Send + Sync + PartialOrd + 'static {
    /// Not greater than any other.
    const LEAST: Self;

    /// Whether it is not a number.
    fn is_nan(self) -> bool;
}

impl Ordered for f32 {
    const LEAST: f32 = f32::NEG_INFINITY;
    #[inline(always)]
    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }
}
impl Ordered for f64 {
    const LEAST: f64 = f64::NEG_INFINITY;
    #[inline(always)]
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
}
impl Ordered for i64 {
    const LEAST: i64 = i64::MIN;
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
}

/// The maximum of each window and its position in the plane: the first of equal elements, NaN if there is
/// one.
pub(crate) fn max<'v, 'i, T: Ordered>(
    x: &[T],
    planes: Planes<'_>,
    values: &'v mut Room<T>,
    indices: &'i mut Room<i64>,
) -> (&'v mut [T], &'i mut [i64]) {
    let [len, windows] = planes.sizes();
    assert!(x.len() == planes.count * len && values.len() == planes.count * windows);
    assert_eq!(values.len(), indices.len());
    let parts = (DisjointParts::new(values), DisjointParts::new(indices));
    planes.run(len + windows, &|at, plane: &Plane, places: &mut Vec<usize>| {
        let (x, to) = (&x[at * len..][..len], at * windows..(at + 1) * windows);
        // SAFETY: each plane has its own windows, and is run by one thread.
        let (values, indices) = unsafe { (parts.0.part(to.clone()), parts.1.part(to)) };
        max_of_plane(x, plane, places, (values, indices));
    });
    // SAFETY: each window of each plane was written.
    unsafe { (written(values), written(indices)) }
}

fn max_of_plane<T: Ordered>(
    x: &[T],
    plane: &Plane,
    places: &mut Vec<usize>,
    (values, indices): (&mut Room<T>, &mut Room<i64>),
) {
    vectorize(Lines { x, plane }, (&mut *places, &mut *values, &mut *indices));
    for &(window, spans) in &plane.others {
        plane.places(spans, places);
        let (mut best, mut place) = (T::LEAST, None);
        for at in places.iter() {
            let value = x[*at];
            if value > best || place.is_none() || value.is_nan() {
                (best, place) = (value, Some(*at));
            }
        }
        values[window].write(best);
        indices[window].write(place.unwrap_or(0) as i64);
    }
}

/// The maxima of the regular windows of a plane.
struct Lines<'a, T> {
    x: &'a [T],
    plane: &'a Plane,
}

impl<T: Ordered> Vectorized for Lines<'_, T> {
    type Out<'a> = (&'a mut Vec<usize>, &'a mut Room<T>, &'a mut Room<i64>);
    const UP_TO: UpTo = UpTo::for_memory::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, to: (&mut Vec<usize>, &mut Room<T>, &mut Room<i64>)) {
        max_of_lines(simd, self.x, self.plane, to);
    }
}

#[inline(always)]
fn max_of_lines<S: Simd, T: Ordered>(
    _: S,
    x: &[T],
    plane: &Plane,
    (places, values, indices): (&mut Vec<usize>, &mut Room<T>, &mut Room<i64>),
) {
    let stride = plane.stride;
    let is_fast = !S::IS_RARE && is_short::<T>();
    let count = plane.windows_of_line();
    let (mut best, mut taps) = (vec![T::LEAST; count], vec![0_u32; count]);
    for (windows, spans) in &plane.lines {
        plane.places(*spans, places);
        best.fill(T::LEAST);
        taps.fill(0);
        for (tap, place) in (0..).zip(places.iter()) {
            let x = &x[*place..][..(count - 1) * stride + 1];
            match stride {
                1 if is_fast => rise(&mut best, &mut taps, x, 1, tap),
                2 if is_fast => rise(&mut best, &mut taps, x, 2, tap),
                _ => rise(&mut best, &mut taps, x, stride, tap),
            }
        }
        let (values, indices) = (&mut values[windows.clone()], &mut indices[windows.clone()]);
        for at in 0..count {
            values[at].write(best[at]);
            // A window without elements has the index 0.
            let place = places.get(taps[at] as usize).map_or(0, |place| place + at * stride);
            indices[at].write(place as i64);
        }
    }
}

/// The greatest element so far of each window and its number among the elements of the window, after the
/// element with the number `tap`. Window `i` has it at `x[i * stride]`.
#[inline(always)]
fn rise<T: Ordered>(best: &mut [T], taps: &mut [u32], x: &[T], stride: usize, tap: u32) {
    let count = best.len();
    assert!(taps.len() == count && (count - 1) * stride < x.len());
    for at in 0..count {
        // SAFETY: the number of the last one is inside `x`, as asserted.
        let x = unsafe { *x.get_unchecked(at * stride) };
        let is_greater = (x > best[at]) | x.is_nan();
        best[at] = if is_greater { x } else { best[at] };
        taps[at] = if is_greater { tap } else { taps[at] };
    }
}

/// The gradient of a maximum: each of `g` is added at its index.
pub(crate) fn max_backward<'x, T: Real>(
    g: &[T],
    indices: &[i64],
    [planes, windows, len]: [usize; 3],
    dx: &'x mut Room<T>,
) -> &'x mut [T] {
    assert!(g.len() == planes * windows && indices.len() == g.len() && dx.len() == planes * len);
    let parts = DisjointParts::new(dx);
    parallel(planes, TASK / (len + windows).max(1) + 1, |range| {
        for at in range {
            // SAFETY: planes do not overlap, and each is run by one thread.
            let dx = fill(unsafe { parts.part(at * len..(at + 1) * len) }, T::ZERO);
            let from = at * windows..(at + 1) * windows;
            for (g, index) in g[from.clone()].iter().zip(&indices[from]) {
                dx[*index as usize] += *g;
            }
        }
    });
    // SAFETY: each plane was filled.
    unsafe { written(dx) }
}
