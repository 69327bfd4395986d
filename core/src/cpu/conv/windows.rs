//! Packing: some columns of the matrix of windows.

use crate::cpu::matmul::Accumulator;

/// What lies under the taps of a kernel that slides over the images of one group.
pub(super) struct Windows<'a, T> {
    /// The images, `image_stride` apart, from the first channel of the group on.
    pub(super) source: &'a [T],
    pub(super) image_stride: usize,
    pub(super) channels: std::ops::Range<usize>,
    pub(super) input: [usize; 3],
    /// The distance between the windows of neighboring places.
    pub(super) step: [usize; 3],
    /// Where the taps of the window at place 0 are.
    pub(super) taps: &'a [[isize; 3]],
    /// The places of an image.
    pub(super) grid: [usize; 3],
}

/// Neighboring places in a row of the grid.
pub(super) struct Run {
    /// The first column.
    pub(super) column: usize,
    pub(super) image: usize,
    pub(super) place: [usize; 3],
    pub(super) len: usize,
}

/// The rows of the grid in the places `from..from + count` of all images.
pub(super) fn runs(grid: [usize; 3], from: usize, count: usize) -> impl Iterator<Item = Run> {
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
        let run = Run { column, image, place: [plane % depth, row % height, left], len };
        column += len;
        Some(run)
    })
}

impl<T: Accumulator> Windows<'_, T> {
    /// Writes the columns of the places `from..from + count` to `to`, whose rows are `row_stride` apart. There
    /// is a row for each tap of each channel.
    ///
    /// # Safety
    /// `to` is valid for writes of these rows.
    pub(super) unsafe fn pack(&self, from: usize, count: usize, to: *mut T, row_stride: usize) {
        for run in runs(self.grid, from, count) {
            for (row, tap) in self.taps.iter().enumerate() {
                // SAFETY: the run is inside the columns, and the row is the first one of this tap.
                unsafe { self.pack_tap(&run, *tap, to.add(row * row_stride + run.column), row_stride) };
            }
        }
    }

    /// Writes the elements under a tap, for each channel.
    ///
    /// # Safety
    /// `to` is valid for writes of `run.len` elements in each row of this tap.
    unsafe fn pack_tap(&self, run: &Run, tap: [isize; 3], to: *mut T, row_stride: usize) {
        let [_, height, width] = self.input;
        let at = |dim: usize| (run.place[dim] * self.step[dim]) as isize + tap[dim];
        let inside = (0..2).all(|dim| (0..self.input[dim] as isize).contains(&at(dim)));
        let (first, step) = (at(2), self.step[2]);
        // The columns `start..end` are inside of the input.
        let end = match usize::try_from(width as isize - first) {
            Ok(room) if inside => room.div_ceil(step).min(run.len),
            _ => 0,
        };
        let start = usize::try_from(-first).map_or(0, |outside| outside.div_ceil(step)).min(end);
        let volume: usize = self.input.iter().product();
        for (index, channel) in self.channels.clone().enumerate() {
            let plane = run.image * self.image_stride + channel * volume;
            // SAFETY: the caller guarantees the row. The elements of the source are in a row of the input.
            unsafe {
                let to = to.add(index * self.taps.len() * row_stride);
                for column in (0..start).chain(end..run.len) {
                    to.add(column).write(T::ZERO);
                }
                if start < end {
                    let row = (at(0) as usize * height + at(1) as usize) * width;
                    let from = plane + row + (first + (start * step) as isize) as usize;
                    let source = &self.source[from..from + (end - start - 1) * step + 1];
                    copy(source.as_ptr(), step, to.add(start), end - start);
                }
            }
        }
    }
}

/// Copies `len` elements, `step` apart. Runs are short, so the copies of a few elements at a time, which need
/// no call, are faster than one of all.
///
/// # Safety
/// The elements exist in both places.
#[inline(always)]
unsafe fn copy<T: Copy>(from: *const T, step: usize, to: *mut T, len: usize) {
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
        while at < len {
            to.add(at).write(*from.add(at * step));
            at += 1;
        }
    }
}
