//! Maxima and means of windows, and their gradients.
//!
//! A plane is what the windows slide over: up to three dims. All planes have the same windows, or each has its
//! own. A window is the same elements along each dim for all windows beside it, so it is described along each
//! dim.

use super::math::Real;
use super::room::{Room, fill, written};
use super::threads::{Parts, parallel};
use crate::args::windows::{Along, Span};

/// The elements that a thread takes at a time.
const TASK: usize = 1 << 14;

/// The windows of a plane. A plane of fewer dims has first dims of one element.
pub(crate) struct Plane([Along; 3]);

impl Plane {
    /// The windows along the last dims.
    pub(crate) fn new(along: Vec<Along>) -> Plane {
        let mut all = [(); 3].map(|()| Along::one());
        let missing = 3 - along.len();
        along.into_iter().enumerate().for_each(|(dim, along)| all[missing + dim] = along);
        Plane(all)
    }

    /// The elements.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|along| along.length).product()
    }

    /// The windows.
    pub(crate) fn windows(&self) -> usize {
        self.0.iter().map(|along| along.spans.len()).product()
    }

    /// Calls `f` with each window: its number, and its part along each dim.
    #[inline(always)]
    fn each(&self, mut f: impl FnMut(usize, [Span; 3])) {
        let [depths, heights, widths] = &self.0;
        let mut at = 0;
        for depth in &depths.spans {
            for height in &heights.spans {
                for width in &widths.spans {
                    f(at, [*depth, *height, *width]);
                    at += 1;
                }
            }
        }
    }

    /// Calls `f` with the position of the first element of each row of a window.
    #[inline(always)]
    fn each_row(&self, [depth, height, width]: [Span; 3], mut f: impl FnMut(usize)) {
        let [depths, heights, widths] = &self.0;
        for i in 0..depth.count {
            for j in 0..height.count {
                let row = (depth.first + i * depths.step) * heights.length + height.first + j * heights.step;
                f(row * widths.length + width.first);
            }
        }
    }

    /// The distance between the elements of a row of a window.
    fn step(&self) -> usize {
        self.0[2].step
    }
}

/// The windows of each plane: one for all, or one for each.
#[derive(Clone, Copy)]
pub(crate) struct Planes<'a> {
    pub(crate) count: usize,
    pub(crate) each: &'a [Plane],
}

impl Planes<'_> {
    fn get(&self, at: usize) -> &Plane {
        &self.each[if self.each.len() == 1 { 0 } else { at }]
    }

    /// Runs `f` for the planes on all threads. They have `work` elements or windows each.
    fn run(&self, work: usize, f: impl Fn(usize, &Plane) + Sync) {
        parallel(self.count, TASK / work.max(1) + 1, |planes| planes.for_each(|at| f(at, self.get(at))));
    }

    /// The elements and the windows of a plane.
    fn sizes(&self) -> [usize; 2] {
        self.each.first().map_or([0, 0], |plane| [plane.len(), plane.windows()])
    }
}

/// A number that has a maximum.
pub(crate) trait Ordered: Copy + Send + Sync + PartialOrd {
    /// Not greater than any other.
    const LEAST: Self;

    /// Whether it is not a number.
    fn is_nan(self) -> bool;
}

impl Ordered for f32 {
    const LEAST: f32 = f32::NEG_INFINITY;
    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }
}
impl Ordered for f64 {
    const LEAST: f64 = f64::NEG_INFINITY;
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
}
impl Ordered for i64 {
    const LEAST: i64 = i64::MIN;
    fn is_nan(self) -> bool {
        false
    }
}

/// The maximum of each window and its position in the plane: the first of equal elements, NaN if there is one.
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
    let step = plane.step();
    plane.each(|window, spans| {
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

/// The mean of each window, or its sum divided by `divisor`.
pub(crate) fn mean<'y, T: Real>(
    x: &[T],
    planes: Planes<'_>,
    divisor: Option<usize>,
    y: &'y mut Room<T>,
) -> &'y mut [T] {
    let [len, windows] = planes.sizes();
    assert!(x.len() == planes.count * len && y.len() == planes.count * windows);
    let parts = Parts::new(y);
    planes.run(len + windows, |at, plane| {
        // SAFETY: each plane has its own windows, and is run by one thread.
        let y = unsafe { parts.part(at * windows..(at + 1) * windows) };
        mean_of_plane(&x[at * len..][..len], plane, divisor, y);
    });
    // SAFETY: each window of each plane was written.
    unsafe { written(y) }
}

fn mean_of_plane<T: Real>(x: &[T], plane: &Plane, divisor: Option<usize>, y: &mut Room<T>) {
    let step = plane.step();
    plane.each(|window, spans| {
        let mut sum = T::ZERO;
        plane.each_row(spans, |row| match step {
            1 => sum += total(&x[row..row + spans[2].count]),
            _ => (row..).step_by(step).take(spans[2].count).for_each(|at| sum += x[at]),
        });
        y[window].write(sum / divisor_of(spans, divisor));
    });
}

/// The sum of a row of a window. A long one is formed in several parts, which do not wait for each other.
fn total<T: Real>(row: &[T]) -> T {
    const LANES: usize = 8;
    let (chunks, rest) = row.as_chunks::<LANES>();
    let mut sum = T::ZERO;
    if !chunks.is_empty() {
        let mut sums = [T::ZERO; LANES];
        for chunk in chunks {
            sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum += *x);
        }
        sums.iter().for_each(|part| sum += *part);
    }
    rest.iter().for_each(|x| sum += *x);
    sum
}

/// What the sum of a window is divided by.
fn divisor_of<T: Real>(spans: [Span; 3], given: Option<usize>) -> T {
    let size = || spans.iter().map(|span| span.divisor).product();
    T::from_f64(given.unwrap_or_else(size) as f64)
}

/// The gradient of a mean: each of `g`, divided, is added to the elements of its window.
pub(crate) fn mean_backward<'x, T: Real>(
    g: &[T],
    planes: Planes<'_>,
    divisor: Option<usize>,
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

fn spread<T: Real>(g: &[T], plane: &Plane, divisor: Option<usize>, dx: &mut [T]) {
    let step = plane.step();
    plane.each(|window, spans| {
        let g = g[window] / divisor_of(spans, divisor);
        plane.each_row(spans, |row| {
            (row..).step_by(step).take(spans[2].count).for_each(|at| dx[at] += g);
        });
    });
}
