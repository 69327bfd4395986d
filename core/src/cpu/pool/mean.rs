//! The means of windows, and their gradient.

use super::WindowSpan;
use super::{Plane, Planes};
use crate::cpu::fold::{Sum, fold_middle};
use crate::cpu::math::Real;
use crate::cpu::room::{Room, fill, written};
use crate::cpu::row::sum;
use crate::cpu::simd::{Simd, UpTo, Vectorized, is_short, vectorize};
use crate::cpu::threads::DisjointParts;

/// The mean of each window, or its sum divided by `divisor`.
pub(crate) fn mean<'y, T: Real>(
    x: &[T],
    planes: Planes<'_>,
    divisor: Option<isize>,
    y: &'y mut Room<T>,
) -> &'y mut [T] {
    let [len, windows] = planes.sizes();
    assert!(x.len() == planes.count * len && y.len() == planes.count * windows);
    if let [plane] = planes.each
        && let Some(spans) = plane.only_window()
    {
        let y = fold_middle(&Sum, x, [planes.count, len, 1], y);
        let divisor = divisor_of(spans, divisor);
        y.iter_mut().for_each(|y| *y /= divisor);
        return y;
    }
    let parts = DisjointParts::new(y);
    planes.run(len + windows, &|at, plane: &Plane, places: &mut Vec<usize>| {
        // SAFETY: each plane has its own windows, and is run by one thread.
        let y = unsafe { parts.part(at * windows..(at + 1) * windows) };
        mean_of_plane(&x[at * len..][..len], plane, divisor, (places, y));
    });
    // SAFETY: each window of each plane was written.
    unsafe { written(y) }
}

fn mean_of_plane<T: Real>(
    x: &[T],
    plane: &Plane,
    divisor: Option<isize>,
    to: (&mut Vec<usize>, &mut Room<T>),
) {
    vectorize(Means { x, plane, divisor }, to);
}

/// The means of a plane.
struct Means<'a, T> {
    x: &'a [T],
    plane: &'a Plane,
    divisor: Option<isize>,
}

impl<T: Real> Vectorized for Means<'_, T> {
    type Out<'a> = (&'a mut Vec<usize>, &'a mut Room<T>);
    const UP_TO: UpTo = UpTo::for_memory::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (places, y): (&mut Vec<usize>, &mut Room<T>)) {
        mean_of_windows(simd.numbers(self.x), self.plane, self.divisor, places, simd.room(y));
    }
}

#[inline(always)]
fn mean_of_windows<T: Real>(
    x: &[T],
    plane: &Plane,
    divisor: Option<isize>,
    places: &mut Vec<usize>,
    y: &mut Room<T>,
) {
    let stride = plane.stride;
    let is_fast = !T::IS_RARE && is_short::<T>();
    for (windows, spans) in &plane.lines {
        let y = fill(&mut y[windows.clone()], T::ZERO);
        let length = (y.len() - 1) * stride + 1;
        plane.places(*spans, places);
        for place in places.iter() {
            let x = &x[*place..][..length];
            match stride {
                1 if is_fast => add(x, 1, y),
                2 if is_fast => add(x, 2, y),
                _ => add(x, stride, y),
            }
        }
        let divisor = divisor_of::<T>(*spans, divisor);
        for y in y {
            *y /= divisor;
        }
    }
    for (window, spans) in &plane.others {
        let mut total = T::ZERO;
        let len = plane.runs(*spans, places);
        for run in places.iter() {
            total += sum(&x[*run..][..len]);
        }
        y[*window].write(total / divisor_of(*spans, divisor));
    }
}

/// `y ← y + x`, for every `stride`th element of `x`.
#[inline(always)]
fn add<T: Real>(x: &[T], stride: usize, y: &mut [T]) {
    assert!((y.len() - 1) * stride < x.len());
    for (at, y) in y.iter_mut().enumerate() {
        // SAFETY: the number of the last one is inside `x`, as asserted.
        *y += unsafe { *x.get_unchecked(at * stride) };
    }
}

/// What the sum of a window is divided by.
fn divisor_of<T: Real>(spans: [WindowSpan; 3], given: Option<isize>) -> T {
    let size = || spans.iter().map(|span| span.divisor).product::<usize>() as f64;
    T::from_f64(given.map_or_else(size, |given| given as f64))
}

/// The gradient of a mean: each of `g`, divided, is added to the elements of its window.
pub(crate) fn mean_backward<'x, T: Real>(
    g: &[T],
    planes: Planes<'_>,
    divisor: Option<isize>,
    dx: &'x mut Room<T>,
) -> &'x mut [T] {
    let [len, windows] = planes.sizes();
    assert!(dx.len() == planes.count * len && g.len() == planes.count * windows);
    let parts = DisjointParts::new(dx);
    let divisor_of_all = match planes.each {
        [plane] => plane.only_window().map(|spans| divisor_of::<T>(spans, divisor)),
        _ => None,
    };
    planes.run(len + windows, &|at, plane: &Plane, places: &mut Vec<usize>| {
        // SAFETY: planes do not overlap, and each is run by one thread.
        let dx = unsafe { parts.part(at * len..(at + 1) * len) };
        if let Some(divisor) = divisor_of_all {
            fill(dx, T::ZERO + g[at] / divisor);
            return;
        }
        let dx = fill(dx, T::ZERO);
        spread(&g[at * windows..][..windows], plane, divisor, (places, dx));
    });
    // SAFETY: each plane was filled.
    unsafe { written(dx) }
}

fn spread<T: Real>(g: &[T], plane: &Plane, divisor: Option<isize>, to: (&mut Vec<usize>, &mut [T])) {
    vectorize(Spread { g, plane, divisor }, to);
}

/// The gradient of the means of a plane.
struct Spread<'a, T> {
    g: &'a [T],
    plane: &'a Plane,
    divisor: Option<isize>,
}

impl<T: Real> Vectorized for Spread<'_, T> {
    type Out<'a> = (&'a mut Vec<usize>, &'a mut [T]);
    const UP_TO: UpTo = UpTo::for_memory::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (places, dx): (&mut Vec<usize>, &mut [T])) {
        spread_over_windows(simd.numbers(self.g), self.plane, self.divisor, places, simd.numbers_mut(dx));
    }
}

#[inline(always)]
fn spread_over_windows<T: Real>(
    g: &[T],
    plane: &Plane,
    divisor: Option<isize>,
    places: &mut Vec<usize>,
    dx: &mut [T],
) {
    let stride = plane.stride;
    let is_fast = !T::IS_RARE && is_short::<T>();
    let mut shares = vec![T::ZERO; plane.windows_of_line()];
    for (windows, spans) in &plane.lines {
        let (divisor, g) = (divisor_of::<T>(*spans, divisor), &g[windows.clone()]);
        for at in 0..g.len() {
            shares[at] = g[at] / divisor;
        }
        plane.places(*spans, places);
        for place in places.iter() {
            let dx = &mut dx[*place..][..(shares.len() - 1) * stride + 1];
            match stride {
                1 if is_fast => add_shares(&shares, 1, dx),
                2 if is_fast => add_shares(&shares, 2, dx),
                _ => add_shares(&shares, stride, dx),
            }
        }
    }
    for (window, spans) in &plane.others {
        let g = g[*window] / divisor_of(*spans, divisor);
        let len = plane.runs(*spans, places);
        for run in places.iter() {
            for dx in &mut dx[*run..][..len] {
                *dx += g;
            }
        }
    }
}

/// Adds a share to every `stride`th element of `dx`.
#[inline(always)]
fn add_shares<T: Real>(shares: &[T], stride: usize, dx: &mut [T]) {
    assert!((shares.len() - 1) * stride < dx.len());
    for (at, share) in shares.iter().enumerate() {
        // SAFETY: the number of the last one is inside `dx`, as asserted.
        unsafe { *dx.get_unchecked_mut(at * stride) += *share };
    }
}
