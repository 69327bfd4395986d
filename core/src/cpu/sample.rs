//! Elements of images at positions between their elements, and the two gradients of that.

use super::SPATIAL;
use super::math::Real;
use super::resample::{Interpolation, cubic};
use super::room::{Room, fill, write_each, written};
use super::threads::{DisjointParts, parallel};

/// The elements outside of an image that is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outside {
    /// Zeros.
    #[default]
    Zeros,
    /// The element at the edge.
    Border,
    /// The elements of the image in reverse: from the centers of the first and the last element if
    /// `align_corners`, otherwise from their edges.
    Reflection,
}

/// The options of [`sample_at`](crate::NamedTensor::sample_at), which makes elements from those around a
/// position.
///
/// ```
/// use namegrad_core::args::{Interpolation, Outside, Sampling};
/// let nearest = Sampling::new(Interpolation::NearestExact).outside(Outside::Border).align_corners(true);
/// assert_ne!(nearest, Sampling::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    pub(crate) mode: Interpolation,
    pub(crate) outside: Outside,
    pub(crate) align_corners: bool,
    /// The order of the derivative of the result along each of the spatial dims.
    pub(crate) slopes: [u8; SPATIAL],
}

impl Sampling {
    /// With zeros outside.
    pub fn new(mode: Interpolation) -> Sampling {
        Sampling { mode, ..Sampling::default() }
    }

    /// Sets the elements outside of the image.
    pub fn outside(self, outside: Outside) -> Sampling {
        Sampling { outside, ..self }
    }

    /// Whether -1 and 1 are the centers of the first and the last elements; by default they are their edges.
    pub fn align_corners(self, align_corners: bool) -> Sampling {
        Sampling { align_corners, ..self }
    }

    /// The derivative of what is sampled, by the coordinate along a spatial dim.
    #[doc(hidden)]
    pub fn slope(self, dim: usize) -> Sampling {
        let mut slopes = self.slopes;
        slopes[dim] = slopes[dim].saturating_add(1);
        Sampling { slopes, ..self }
    }
}

/// The elements that a thread takes at a time.
const TASK: usize = 1 << 14;

/// The elements of an image that are around each of some positions, and their weights. Every position has the
/// same number of elements; those outside of the image have the index [`NOWHERE`].
pub(crate) struct Points<T> {
    /// The number of elements around each position.
    each: usize,
    index: Vec<usize>,
    weight: Vec<T>,
}

/// No element has this index.
const NOWHERE: usize = usize::MAX;

/// The elements around a position along one dim.
struct Neighbors<T> {
    count: usize,
    index: [usize; 4],
    weight: [T; 4],
}

impl<T: Real> Points<T> {
    /// The elements of an image with these sizes around the positions of a grid, `[position, coordinate]`.
    /// The first coordinate is that of the last dim.
    pub(crate) fn new(grid: &[T], sizes: &[usize], how: Sampling) -> Points<T> {
        let dims = sizes.len();
        let each = match how.mode {
            Interpolation::Nearest | Interpolation::NearestExact => 1,
            Interpolation::Linear => 1 << dims,
            Interpolation::Cubic => 1 << (2 * dims),
        };
        let count = grid.len() / dims.max(1);
        let mut index = vec![NOWHERE; count * each];
        let mut weight = vec![T::ZERO; count * each];
        let parts = (DisjointParts::new(&mut index), DisjointParts::new(&mut weight));
        parallel(count, TASK / (16 * each) + 1, |range| {
            for at in range {
                let place = at * each..(at + 1) * each;
                // SAFETY: positions have their own places, and each is run by one thread.
                let (index, weight) = unsafe { (parts.0.part(place.clone()), parts.1.part(place)) };
                around_all(&grid[at * dims..][..dims], sizes, how, index, weight);
            }
        });
        Points { each, index, weight }
    }

    /// The number of positions.
    pub(crate) fn count(&self) -> usize {
        self.index.len() / self.each
    }

    #[inline(always)]
    fn of(&self, at: usize) -> impl Iterator<Item = (usize, T)> {
        let range = at * self.each..(at + 1) * self.each;
        self.index[range.clone()].iter().copied().zip(self.weight[range].iter().copied())
    }

    /// The weighted sum of the elements around position `at` in a plane. An element outside has no part in
    /// it, not even 0 times one.
    #[inline(always)]
    fn sum(&self, at: usize, plane: &[T]) -> T {
        let mut sum = T::ZERO;
        for (index, weight) in self.of(at) {
            if let Some(x) = plane.get(index) {
                sum += *x * weight;
            }
        }
        sum
    }
}

/// The elements around a position, products of those along each dim.
fn around_all<T: Real>(
    coordinates: &[T],
    sizes: &[usize],
    how: Sampling,
    index: &mut [usize],
    weight: &mut [T],
) {
    (index[0], weight[0]) = (0, T::ONE);
    let (dims, mut made) = (sizes.len(), 1);
    for dim in 0..dims {
        let around = around(coordinates[dims - 1 - dim], sizes[dim], how, how.slopes[dim]);
        // From the last, so that no product is overwritten before it is used.
        for k in (0..made).rev() {
            let (before, factor) = (index[k], weight[k]);
            for t in (0..around.count).rev() {
                let inside = before != NOWHERE && around.index[t] != NOWHERE;
                index[k * around.count + t] =
                    if inside { before * sizes[dim] + around.index[t] } else { NOWHERE };
                weight[k * around.count + t] = factor * around.weight[t];
            }
        }
        made *= around.count;
    }
}

/// The elements around a coordinate along a dim with `n` elements, and the derivatives of their weights by
/// the coordinate, of this order.
fn around<T: Real>(coordinate: T, n: usize, how: Sampling, order: u8) -> Neighbors<T> {
    let number = |n: usize| T::from_f64(n as f64);
    let (place, slope) = match how.align_corners {
        true => (
            (coordinate + T::ONE) * T::HALF * number(n.saturating_sub(1)),
            T::HALF * number(n.saturating_sub(1)),
        ),
        false => (((coordinate + T::ONE) * number(n) - T::ONE) * T::HALF, T::HALF * number(n)),
    };
    // Of a cubic, it is the four elements that are inside, not the position.
    let (place, slope) = match (how.mode, how.outside) {
        (Interpolation::Cubic, _) | (_, Outside::Zeros) => (place, slope),
        (_, Outside::Border) => clipped(place, slope, n),
        (_, Outside::Reflection) => {
            let (place, slope) = reflected(place, slope, n, how.align_corners);
            clipped(place, slope, n)
        }
    };
    let mut around = Neighbors { count: 1, index: [NOWHERE; 4], weight: [T::ZERO; 4] };
    let inside = |at: i64| usize::try_from(at).ok().filter(|at| *at < n).unwrap_or(NOWHERE);
    let floor = place.floor();
    let (first, share) = (floor.to_f64() as i64, place - floor);
    match how.mode {
        Interpolation::Nearest | Interpolation::NearestExact => {
            around.index[0] = inside(place.round().to_f64() as i64);
            around.weight[0] = if order == 0 { T::ONE } else { T::ZERO };
            return around;
        }
        Interpolation::Linear => {
            around.count = 2;
            (around.index[0], around.index[1]) = (inside(first), inside(first.saturating_add(1)));
            match order {
                0 => (around.weight[0], around.weight[1]) = (T::ONE - share, share),
                1 => (around.weight[0], around.weight[1]) = (-T::ONE, T::ONE),
                _ => {}
            }
        }
        Interpolation::Cubic => {
            around.count = 4;
            around.weight = cubic(share, order);
            for (k, index) in around.index.iter_mut().enumerate() {
                let at = first.saturating_add(k as i64 - 1);
                *index = match how.outside {
                    Outside::Zeros => inside(at),
                    Outside::Border => inside(at.clamp(0, n as i64 - 1)),
                    Outside::Reflection => {
                        let at = reflected(T::from_f64(at as f64), T::ONE, n, how.align_corners).0;
                        inside((at.to_f64() as i64).clamp(0, n as i64 - 1))
                    }
                };
            }
        }
    }
    for _ in 0..order {
        around.weight.iter_mut().for_each(|weight| *weight *= slope);
    }
    around
}

/// A position between the first and the last element. At these, the slope is 0, as in PyTorch.
fn clipped<T: Real>(place: T, slope: T, n: usize) -> (T, T) {
    let last = T::from_f64(n as f64 - 1.0);
    if place <= T::ZERO {
        (T::ZERO, T::ZERO)
    } else if place >= last {
        (last, T::ZERO)
    } else {
        (place, slope)
    }
}

/// A position that is reflected at the centers of the first and the last element, or at their edges. A call,
/// which is in a loop over elements.
#[inline(never)]
fn reflected<T: Real>(place: T, slope: T, n: usize, centers: bool) -> (T, T) {
    let (low, span) = match centers {
        true => (T::ZERO, T::from_f64(n as f64 - 1.0)),
        false => (-T::HALF, T::from_f64(n as f64)),
    };
    if span <= T::ZERO {
        return (T::ZERO, T::ZERO);
    }
    let from_low = place - low;
    let (distance, slope) = if from_low < T::ZERO { (-from_low, -slope) } else { (from_low, slope) };
    let turns = (distance / span).floor();
    let rest = distance - turns * span;
    match turns.to_f64() % 2.0 == 0.0 {
        true => (rest + low, slope),
        false => (span - rest + low, -slope),
    }
}

/// `y[c, p]`, what is around position `p` in each plane `x[c, ..]`.
pub(crate) fn gather<'y, T: Real>(
    x: &[T],
    planes: usize,
    points: &Points<T>,
    y: &'y mut Room<T>,
) -> &'y mut [T] {
    let (count, len) = (points.count(), x.len() / planes.max(1));
    assert!(y.len() == planes * count && x.len() == planes * len);
    let parts = DisjointParts::new(y);
    parallel(planes * count, TASK / points.each + 1, |range| {
        // SAFETY: elements do not overlap, and each is run by one thread.
        let mut y = unsafe { parts.part(range.clone()) };
        let mut at = range.start;
        while at < range.end {
            let (plane, first) = (at / count, at % count);
            let length = (count - first).min(range.end - at);
            let (now, rest) = y.split_at_mut(length);
            write_each(now, |k| points.sum(first + k, &x[plane * len..][..len]));
            (y, at) = (rest, at + length);
        }
    });
    // SAFETY: each element was written.
    unsafe { written(y) }
}

/// The transpose of [`gather`]: `g[c, p]`, spread to what is around position `p` in each plane.
pub(crate) fn scatter<'x, T: Real>(
    g: &[T],
    planes: usize,
    points: &Points<T>,
    dx: &'x mut Room<T>,
) -> &'x mut [T] {
    let (count, len) = (points.count(), dx.len() / planes.max(1));
    assert!(g.len() == planes * count && dx.len() == planes * len);
    let parts = DisjointParts::new(dx);
    parallel(if len == 0 { 0 } else { planes }, TASK / (len + count * points.each).max(1) + 1, |range| {
        for plane in range {
            // SAFETY: planes do not overlap, and each is run by one thread.
            let dx = fill(unsafe { parts.part(plane * len..(plane + 1) * len) }, T::ZERO);
            for (at, g) in g[plane * count..][..count].iter().enumerate() {
                for (index, weight) in points.of(at) {
                    if let Some(dx) = dx.get_mut(index) {
                        *dx += *g * weight;
                    }
                }
            }
        }
    });
    // SAFETY: each plane was filled.
    unsafe { written(dx) }
}

/// The gradient of the grid: for each position and coordinate, the sum over the planes of `g[c, p]` times
/// what is around the position. `slopes` has the points for each of the spatial dims.
pub(crate) fn slopes<'d, T: Real>(
    g: &[T],
    x: &[T],
    planes: usize,
    slopes: &[Points<T>],
    dgrid: &'d mut Room<T>,
) -> &'d mut [T] {
    let dims = slopes.len();
    let (count, len) = (dgrid.len() / dims.max(1), x.len() / planes.max(1));
    assert!(g.len() == planes * count && x.len() == planes * len);
    assert!(slopes.iter().all(|points| points.count() == count));
    let parts = DisjointParts::new(dgrid);
    let work = slopes.first().map_or(1, |points| points.each) * dims * planes;
    parallel(count, TASK / work.max(1) + 1, |range| {
        // SAFETY: positions do not overlap, and each is run by one thread.
        let sums = fill(unsafe { parts.part(range.start * dims..range.end * dims) }, T::ZERO);
        for plane in 0..planes {
            let (g, x) = (&g[plane * count..][range.clone()], &x[plane * len..][..len]);
            for ((at, g), sums) in range.clone().zip(g).zip(sums.chunks_exact_mut(dims)) {
                for (points, sum) in slopes.iter().rev().zip(sums) {
                    *sum += *g * points.sum(at, x);
                }
            }
        }
    });
    // SAFETY: each position was filled.
    unsafe { written(dgrid) }
}
