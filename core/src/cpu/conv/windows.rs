//! Packing: some columns of the matrix of windows.

use super::ElementBytes;
use std::ops::Range;

/// The elements under the taps of a kernel that slides over the images of one group.
pub(super) struct TapWindows<'a> {
    /// The images, `image_stride` apart, from the first channel of the group on.
    pub(super) source: ElementBytes<'a>,
    pub(super) image_stride: usize,
    pub(super) channels: Range<usize>,
    pub(super) input: [usize; 3],
    /// The distance between the windows of neighboring places.
    pub(super) step: [usize; 3],
    /// The positions of the taps of the window at place 0.
    pub(super) taps: &'a [[isize; 3]],
    /// The places of an image.
    pub(super) grid: [usize; 3],
}

/// Neighboring places in a row of the grid.
pub(super) struct GridRun {
    /// The first column.
    pub(super) column: usize,
    pub(super) image: usize,
    pub(super) place: [usize; 3],
    pub(super) len: usize,
}

/// The rows of the grid in the places `from..from + count` of all images.
pub(super) fn runs(grid: [usize; 3], from: usize, count: usize) -> impl Iterator<Item = GridRun> {
    let [depth, height, width] = grid;
    let mut column = 0;
    std::iter::from_fn(move || {
        if column == count {
            return None;
        }
        let at = from + column;
        let (row, left) = (at / width, at % width);
        let (plane, image) = (row / height, row / height / depth);
        let len = (width - left).min(count - column);
        let run = GridRun { column, image, place: [plane % depth, row % height, left], len };
        column += len;
        Some(run)
    })
}

impl TapWindows<'_> {
    /// Writes the columns of the places `from..from + count` to `to`, whose rows are `row_stride` apart.
    /// There is a row for each tap of each channel.
    ///
    /// # Safety
    /// The elements have the width of `W`, and `to` is valid for writes of these rows.
    pub(super) unsafe fn pack<W: Copy + Default>(
        &self,
        from: usize,
        count: usize,
        to: *mut W,
        row_stride: usize,
    ) {
        // SAFETY: the caller guarantees the width.
        let source = unsafe { self.source.by_width::<W>() };
        let volume: usize = self.input.iter().product();
        let runs: Vec<GridRun> = runs(self.grid, from, count).collect();
        let mut spans = Vec::with_capacity(runs.len() * self.taps.len());
        for tap in self.taps {
            spans.extend(runs.iter().map(|run| self.span(run, *tap)));
        }
        // Channel by channel: the taps and the runs read the same part of memory.
        let mut row = 0;
        for channel in self.channels.clone() {
            for of_tap in spans.chunks_exact(runs.len().max(1)) {
                for (run, span) in runs.iter().zip(of_tap) {
                    let plane = &source[run.image * self.image_stride + channel * volume..][..volume];
                    // SAFETY: the run is inside the columns, and there is a row for each tap of each channel.
                    unsafe { self.pack_span(span, plane, to.add(row * row_stride + run.column), run.len) };
                }
                row += 1;
            }
        }
    }

    /// The columns of a run in which a tap is inside of the input.
    pub(super) fn span(&self, run: &GridRun, tap: [isize; 3]) -> ColumnSpan {
        let [_, height, width] = self.input;
        let at = |dim: usize| (run.place[dim] * self.step[dim]) as isize + tap[dim];
        let inside = (0..2).all(|dim| (0..self.input[dim] as isize).contains(&at(dim)));
        let (first, step) = (at(2), self.step[2]);
        let end = match usize::try_from(width as isize - first) {
            Ok(room) if inside => room.div_ceil(step).min(run.len),
            _ => 0,
        };
        let start = usize::try_from(-first).map_or(0, |outside| outside.div_ceil(step)).min(end);
        if start == end {
            return ColumnSpan { start: 0, end: 0, from: 0 };
        }
        let row = (at(0) as usize * height + at(1) as usize) * width;
        ColumnSpan { start, end, from: row + (first + (start * step) as isize) as usize }
    }

    /// Writes the elements of a channel under a tap.
    ///
    /// # Safety
    /// `to` is valid for writes of `len` elements, which are at least those of the span.
    #[inline(always)]
    unsafe fn pack_span<W: Copy + Default>(&self, span: &ColumnSpan, plane: &[W], to: *mut W, len: usize) {
        let ColumnSpan { start, end, from } = *span;
        // SAFETY: the caller guarantees the row. The slice has the elements that are read.
        unsafe {
            // Zeros outside of the input: the bits of a zero are 0 in any type. They are few, and a loop for
            // each side would be compiled to a call of `memset`.
            for column in (0..start).chain(end..len) {
                to.add(column).write(W::default());
            }
            if start < end {
                let source = &plane[from..from + (end - start - 1) * self.step[2] + 1];
                copy(source.as_ptr(), self.step[2], to.add(start), end - start);
            }
        }
    }
}

/// The columns `start..end` of a run, the first of which is at `from` in a channel of the input.
pub(super) struct ColumnSpan {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) from: usize,
}

/// Copies `len` elements, `step` apart. Runs are short, so the copies of a few elements at a time, which need
/// no call, are faster than one of all.
///
/// # Safety
/// The elements exist in both places.
#[inline(always)]
pub(super) unsafe fn copy<T: Copy>(from: *const T, step: usize, to: *mut T, len: usize) {
    const AT_ONCE: usize = 8;
    let mut at = 0;
    // SAFETY: the caller guarantees the elements. An array of them needs no alignment here.
    unsafe {
        if step == 1 && len >= AT_ONCE {
            let some = |at: usize| {
                let some = from.add(at).cast::<[T; AT_ONCE]>().read_unaligned();
                to.add(at).cast::<[T; AT_ONCE]>().write_unaligned(some);
            };
            while at + AT_ONCE <= len {
                some(at);
                at += AT_ONCE;
            }
            // The last few, and some before them again.
            return some(len - AT_ONCE);
        }
        // The most frequent other step, for which the compiler makes vectors.
        while step == 2 && at < len {
            to.add(at).write(*from.add(2 * at));
            at += 1;
        }
        while at < len {
            to.add(at).write(*from.add(at * step));
            at += 1;
        }
    }
}
