//! Maxima and means of windows, and their gradients.
//!
//! A plane is what the windows slide over: up to three dims. All planes have the same windows, or each has
//! its own. A window is the same elements along each dim for all windows beside it, so it is described along
//! each dim.
//!
//! Most windows of a line are [regular](Regular): of one size, at the same distance from the one before. The
//! loops take one element of all of them at a time, as a vector. The others are done window by window.

mod max;
mod mean;
mod windows;

pub(crate) use max::{Ordered, max, max_backward};
pub(crate) use mean::{mean, mean_backward};
pub(crate) use windows::{DimWindows, Sliding, WindowPositions, WindowSpan};

use super::threads::parallel;
use crate::callback::Callback;
use std::ops::Range;

/// The elements that a thread takes at a time.
const TASK: usize = 1 << 14;

/// The windows of a plane. A plane of fewer dims has first dims of one element.
///
/// The lists of windows are made once, as most planes share them.
pub(crate) struct Plane {
    dims: [DimWindows; 3],
    /// The distance between regular windows.
    stride: usize,
    /// The regular windows of each line, and the parts of the first of them along each dim.
    lines: Vec<(Range<usize>, [WindowSpan; 3])>,
    /// The other windows, each with its number and its part along each dim.
    others: Vec<(usize, [WindowSpan; 3])>,
}

/// The windows of a line that have one size and the same distance from the one before.
#[derive(Clone, Debug)]
struct Regular {
    windows: Range<usize>,
    stride: usize,
    /// The first of them.
    span: WindowSpan,
}

impl Regular {
    /// Fewer windows are not worth a vector.
    const FEWEST: usize = 4;

    /// Those between the first and the last window that is complete.
    fn of(along: &DimWindows) -> Regular {
        let spans = &along.spans;
        let size = spans.iter().map(|span| span.count).max().unwrap_or(0);
        let is_whole = |span: &WindowSpan| span.count == size;
        let start = spans.iter().position(is_whole).unwrap_or(0);
        let end = spans.iter().rposition(is_whole).map_or(0, |last| last + 1);
        let span = spans.get(start).copied().unwrap_or(WindowSpan { first: 0, count: 0, divisor: 1 });
        let stride = spans.get(start + 1).map_or(0, |next| next.first.saturating_sub(span.first));
        let is_next = |(at, other): (usize, &WindowSpan)| {
            let alike = other.count == size && other.divisor == span.divisor;
            alike && other.first == span.first + at * stride
        };
        let is_regular =
            stride > 0 && end - start >= Regular::FEWEST && spans[start..end].iter().enumerate().all(is_next);
        Regular { windows: if is_regular { start..end } else { 0..0 }, stride, span }
    }
}

impl Plane {
    /// The windows along the last dims.
    pub(crate) fn new(along: Vec<DimWindows>) -> Plane {
        let mut all = [(); 3].map(|()| DimWindows::one());
        let missing = 3 - along.len();
        along.into_iter().enumerate().for_each(|(dim, along)| all[missing + dim] = along);
        let Regular { windows, stride, span } = Regular::of(&all[2]);
        let [depths, heights, widths] = &all;
        let (mut lines, mut others, mut first) = (Vec::new(), Vec::new(), 0);
        for depth in &depths.spans {
            for height in &heights.spans {
                if !windows.is_empty() {
                    let of_line = first + windows.start..first + windows.end;
                    lines.push((of_line, [*depth, *height, span]));
                }
                for at in (0..windows.start).chain(windows.end..widths.spans.len()) {
                    others.push((first + at, [*depth, *height, widths.spans[at]]));
                }
                first += widths.spans.len();
            }
        }
        Plane { dims: all, stride, lines, others }
    }

    /// The elements.
    pub(crate) fn len(&self) -> usize {
        self.dims.iter().map(|along| along.length).product()
    }

    /// The windows.
    pub(crate) fn windows(&self) -> usize {
        self.dims.iter().map(|along| along.spans.len()).product()
    }

    /// The number of regular windows in a line.
    fn windows_of_line(&self) -> usize {
        self.lines.first().map_or(0, |(windows, _)| windows.len())
    }

    /// The only window, if it has all elements.
    fn only_window(&self) -> Option<[WindowSpan; 3]> {
        let whole = |along: &DimWindows| match along.spans[..] {
            [span] => (span.count == along.length && along.length > 0).then_some(span),
            _ => None,
        };
        let [depth, height, width] = self.dims.each_ref().map(whole);
        Some([depth?, height?, width?])
    }

    /// Writes the positions of the elements of a window to `places`.
    fn places(&self, spans: [WindowSpan; 3], places: &mut Vec<usize>) {
        let [depths, heights, widths] = &self.dims;
        let [depth, height, width] = spans;
        places.clear();
        for i in 0..depth.count {
            for j in 0..height.count {
                let row = (depth.first + i * depths.step) * heights.length + height.first + j * heights.step;
                let first = row * widths.length + width.first;
                for tap in 0..width.count {
                    places.push(first + tap * widths.step);
                }
            }
        }
    }

    /// Writes the starts of the runs of elements in memory that a window has, and returns their length. Whole
    /// rows make one run, and elements that are apart are runs of one.
    fn runs(&self, [depth, height, width]: [WindowSpan; 3], runs: &mut Vec<usize>) -> usize {
        let [_, heights, widths] = &self.dims;
        let whole = width.count == widths.length && heights.step == 1 && widths.step == 1;
        let (height, rows) =
            if whole { (WindowSpan { count: 1, ..height }, height.count) } else { (height, 1) };
        let (width, len) = match widths.step {
            1 => (WindowSpan { count: width.count.min(1), ..width }, rows * width.count),
            _ => (width, 1),
        };
        self.places([depth, height, width], runs);
        len
    }
}

/// The windows of each plane: one for all, or one for each.
#[derive(Clone, Copy)]
pub(crate) struct Planes<'a> {
    pub(crate) count: usize,
    pub(crate) each: &'a [Plane],
}

/// What runs for a plane: its number, itself, and a list that it may use for positions.
type OnPlane<'f> = dyn for<'a, 'b> Callback<(usize, &'a Plane, &'b mut Vec<usize>)> + Sync + 'f;

impl Planes<'_> {
    fn get(&self, at: usize) -> &Plane {
        &self.each[if self.each.len() == 1 { 0 } else { at }]
    }

    /// Runs `f` for the planes on all threads. They have `work` elements or windows each.
    fn run(&self, work: usize, f: &OnPlane<'_>) {
        parallel(self.count, TASK / work.max(1) + 1, |planes| {
            let mut places = Vec::new();
            for at in planes {
                f.call_with((at, self.get(at), &mut places));
            }
        });
    }

    /// The elements and the windows of a plane.
    fn sizes(&self) -> [usize; 2] {
        self.each.first().map_or([0, 0], |plane| [plane.len(), plane.windows()])
    }
}
