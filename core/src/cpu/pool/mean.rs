//! The means of windows, and their gradient.

use super::Span;
use super::{Plane, Planes};
use crate::cpu::fold::{Fold, Sum, fold_middle};
use crate::cpu::math::Real;
use crate::cpu::room::{Room, fill, written};
use crate::cpu::row::sum;
use crate::cpu::simd::{Simd, Vectorized, vectorize};
use crate::cpu::threads::Parts;

/// The mean of each window, or its sum divided by `divisor`.
pub(crate) fn mean<'y, T: Real>(
    x: &[T],
    planes: Planes<'_>,
    divisor: Option<isize>,
    y: &'y mut Room<T>,
) -> &'y mut [T]
where
    Sum: Fold<T, Acc = T>,
{
    let [len, windows] = planes.sizes();
    assert!(x.len() == planes.count * len && y.len() == planes.count * windows);
    if let [plane] = planes.each
        && let Some(spans) = plane.only_window()
    {
        let y = fold_middle(Sum, x, [planes.count, len, 1], y);
        let divisor = divisor_of(spans, divisor);
        y.iter_mut().for_each(|y| *y /= divisor);
        return y;
    }
    let parts = Parts::new(y);
    planes.run(len + windows, |at, plane| {
        // SAFETY: each plane has its own windows, and is run by one thread.
        let y = unsafe { parts.part(at * windows..(at + 1) * windows) };
        mean_of_plane(&x[at * len..][..len], plane, divisor, y);
    });
    // SAFETY: each window of each plane was written.
    unsafe { written(y) }
}

fn mean_of_plane<T: Real>(x: &[T], plane: &Plane, divisor: Option<isize>, y: &mut Room<T>) {
    vectorize(Means { x, plane, divisor }, y);
}

/// The means of a plane.
struct Means<'a, T> {
    x: &'a [T],
    plane: &'a Plane,
    divisor: Option<isize>,
}

impl<T: Real> Vectorized for Means<'_, T> {
    type Out<'a> = &'a mut Room<T>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, y: &mut Room<T>) {
        let Means { x, plane, divisor } = self;
        let (x, y, step, stride) = (simd.numbers(x), simd.room(y), plane.step(), plane.regular.stride);
        plane.each_regular(|windows, spans| {
            let y = fill(&mut y[windows], S::Number::<T>::ZERO);
            let length = (y.len() - 1) * stride + 1;
            plane.each_row(spans, |row| {
                for tap in 0..spans[2].count {
                    add(&x[row + tap * step..][..length], stride, y);
                }
            });
            let divisor = divisor_of::<S::Number<T>>(spans, divisor);
            y.iter_mut().for_each(|y| *y /= divisor);
        });
        plane.each_other(|window, spans| {
            let mut total = S::Number::<T>::ZERO;
            match step {
                1 => plane.each_run(spans, |run| total += sum(&x[run.clone()], &x[run], |x, _| x)),
                _ => plane.each_row(spans, |row| {
                    (row..).step_by(step).take(spans[2].count).for_each(|at| total += x[at]);
                }),
            }
            y[window].write(total / divisor_of(spans, divisor));
        });
    }
}

/// `y ← y + x`, for every `stride`th element of `x`.
#[inline(always)]
fn add<T: Real>(x: &[T], stride: usize, y: &mut [T]) {
    match stride {
        1 => y.iter_mut().zip(x).for_each(|(y, x)| *y += *x),
        2 => {
            let (pairs, last) = x.as_chunks::<2>();
            y.iter_mut().zip(pairs).for_each(|(y, pair)| *y += pair[0]);
            y[pairs.len()..].iter_mut().zip(last).for_each(|(y, x)| *y += *x);
        }
        _ => y.iter_mut().zip(x.iter().step_by(stride)).for_each(|(y, x)| *y += *x),
    }
}

/// What the sum of a window is divided by.
fn divisor_of<T: Real>(spans: [Span; 3], given: Option<isize>) -> T {
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
    let parts = Parts::new(dx);
    planes.run(len + windows, |at, plane| {
        // SAFETY: planes do not overlap, and each is run by one thread.
        let dx = fill(unsafe { parts.part(at * len..(at + 1) * len) }, T::ZERO);
        spread(&g[at * windows..][..windows], plane, divisor, dx);
    });
    // SAFETY: each plane was filled.
    unsafe { written(dx) }
}

fn spread<T: Real>(g: &[T], plane: &Plane, divisor: Option<isize>, dx: &mut [T]) {
    vectorize(Spread { g, plane, divisor }, dx);
}

/// The gradient of the means of a plane.
struct Spread<'a, T> {
    g: &'a [T],
    plane: &'a Plane,
    divisor: Option<isize>,
}

impl<T: Real> Vectorized for Spread<'_, T> {
    type Out<'a> = &'a mut [T];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, dx: &mut [T]) {
        let Spread { g, plane, divisor } = self;
        let (g, dx, step, stride) =
            (simd.numbers(g), simd.numbers_mut(dx), plane.step(), plane.regular.stride);
        let mut shares = vec![S::Number::<T>::ZERO; plane.regular.windows.len()];
        plane.each_regular(|windows, spans| {
            let divisor = divisor_of::<S::Number<T>>(spans, divisor);
            shares.iter_mut().zip(&g[windows]).for_each(|(share, g)| *share = *g / divisor);
            plane.each_row(spans, |row| {
                for tap in 0..spans[2].count {
                    let dx = &mut dx[row + tap * step..][..(shares.len() - 1) * stride + 1];
                    match stride {
                        1 => dx.iter_mut().zip(&shares).for_each(|(dx, share)| *dx += *share),
                        _ => dx.iter_mut().step_by(stride).zip(&shares).for_each(|(dx, share)| *dx += *share),
                    }
                }
            });
        });
        plane.each_other(|window, spans| {
            let g = g[window] / divisor_of(spans, divisor);
            match step {
                1 => plane.each_run(spans, |run| dx[run].iter_mut().for_each(|dx| *dx += g)),
                _ => plane.each_row(spans, |row| {
                    (row..).step_by(step).take(spans[2].count).for_each(|at| dx[at] += g);
                }),
            }
        });
    }
}
