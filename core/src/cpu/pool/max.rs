//! The maxima of windows, and their gradient.

use super::{Plane, Planes, TASK};
use crate::cpu::math::Real;
use crate::cpu::room::{Room, fill, written};
use crate::cpu::simd::{Simd, Vectorized, vectorize};
use crate::cpu::threads::{Parts, parallel};

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
    let parts = (Parts::new(values), Parts::new(indices));
    planes.run(len + windows, |at, plane| {
        let (x, to) = (&x[at * len..][..len], at * windows..(at + 1) * windows);
        // SAFETY: each plane has its own windows, and is run by one thread.
        let (values, indices) = unsafe { (parts.0.part(to.clone()), parts.1.part(to)) };
        max_of_plane(x, plane, values, indices);
    });
    // SAFETY: each window of each plane was written.
    unsafe { (written(values), written(indices)) }
}

fn max_of_plane<T: Ordered>(x: &[T], plane: &Plane, values: &mut Room<T>, indices: &mut Room<i64>) {
    vectorize(Lines { x, plane }, (&mut *values, &mut *indices));
    let step = plane.step();
    plane.each_other(|window, spans| {
        let (mut best, mut place) = (T::LEAST, None);
        plane.each_row(spans, |row| {
            for at in (row..).step_by(step).take(spans[2].count) {
                let value = x[at];
                if value > best || place.is_none() || value.is_nan() {
                    (best, place) = (value, Some(at));
                }
            }
        });
        values[window].write(best);
        indices[window].write(place.unwrap_or(0) as i64);
    });
}

/// The maxima of the regular windows of a plane.
struct Lines<'a, T> {
    x: &'a [T],
    plane: &'a Plane,
}

impl<T: Ordered> Vectorized for Lines<'_, T> {
    type Out<'a> = (&'a mut Room<T>, &'a mut Room<i64>);

    #[inline(always)]
    fn run<S: Simd>(self, _: S, (values, indices): (&mut Room<T>, &mut Room<i64>)) {
        let Lines { x, plane } = self;
        let (stride, step) = (plane.regular.stride, plane.step());
        let count = plane.regular.windows.len();
        let (mut best, mut taps) = (vec![T::LEAST; count], vec![0_u32; count]);
        let mut places = Vec::new();
        plane.each_regular(|windows, spans| {
            places.clear();
            plane.each_row(spans, |row| places.extend((0..spans[2].count).map(|tap| row + tap * step)));
            best.fill(T::LEAST);
            taps.fill(0);
            for (tap, place) in (0..).zip(&places) {
                let x = &x[*place..][..(count - 1) * stride + 1];
                match stride {
                    1 => rise(best.iter_mut().zip(&mut taps), x.iter().copied(), tap),
                    2 => {
                        let (pairs, last) = x.as_chunks::<2>();
                        rise(best.iter_mut().zip(&mut taps), pairs.iter().map(|pair| pair[0]), tap);
                        let own = best[count - 1..].iter_mut().zip(&mut taps[count - 1..]);
                        rise(own, last.iter().copied(), tap);
                    }
                    _ => rise(best.iter_mut().zip(&mut taps), x.iter().copied().step_by(stride), tap),
                }
            }
            let values = values[windows.clone()].iter_mut().zip(&best);
            values.for_each(|(value, best)| _ = value.write(*best));
            for (at, (index, tap)) in indices[windows].iter_mut().zip(&taps).enumerate() {
                // A window without elements has the index 0.
                index.write(places.get(*tap as usize).map_or(0, |place| place + at * stride) as i64);
            }
        });
    }
}

/// The greatest element so far of each window and its number among the elements of the window, after the
/// element with the number `tap`.
#[inline(always)]
fn rise<'a, T: Ordered>(
    best: impl Iterator<Item = (&'a mut T, &'a mut u32)>,
    elements: impl Iterator<Item = T>,
    tap: u32,
) {
    for ((best, of_best), x) in best.zip(elements) {
        let is_greater = (x > *best) | x.is_nan();
        *best = if is_greater { x } else { *best };
        *of_best = if is_greater { tap } else { *of_best };
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
    let parts = Parts::new(dx);
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
