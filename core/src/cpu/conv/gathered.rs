//! A product of a weight with the windows of a tensor, whose columns are the places of the result.

use super::windows::{Run, Windows, runs};
use super::{Factor, volume};
use crate::cpu::matmul::{Accumulator, Buffer, Mat, MatmulElement, gemm_sums, with_buffer, write_rounded};
use crate::cpu::room::Room;
use crate::cpu::threads::parallel;
use std::cell::Cell;

thread_local! {
    /// The windows of some places, and the sums for these places.
    pub(super) static BLOCKS: Buffer = const { Cell::new(Vec::new()) };
}

/// The fewest and the most places of a block, which are multiples of the panels in which a product reads
/// them.
const PLACES: (usize, usize) = (64, 512);
/// The windows and sums of a block, unless that would be fewer places. They stay in the cache of a core.
const BLOCK: usize = 1 << 15;
/// The multiply-adds that a thread takes at a time.
const TASK: usize = 1 << 20;

/// The result at place `t` of the grid is the sum over taps of the factor times the source at `step t + tap`.
/// It goes to `spread t + start` of the output.
pub(super) struct Gathered<'a, T: MatmulElement> {
    /// `rows` by `channels` times taps, for each group.
    pub(super) factor: Factor<'a, T>,
    pub(super) source: &'a [T],
    /// The channels of the source in a group.
    pub(super) channels: usize,
    pub(super) input: [usize; 3],
    pub(super) step: [usize; 3],
    pub(super) taps: Vec<[isize; 3]>,
    pub(super) grid: [usize; 3],
    /// The channels of the output in a group.
    pub(super) rows: usize,
    pub(super) bias: Option<&'a [T]>,
    pub(super) output: [usize; 3],
    pub(super) spread: [usize; 3],
    pub(super) start: [usize; 3],
    pub(super) groups: usize,
    pub(super) batch: usize,
}

/// Some places of a group.
struct Block<T: MatmulElement> {
    group: usize,
    from: usize,
    count: usize,
    /// Memory for the sums, in rows of `width`.
    sums: *mut T::Acc,
    /// Memory for the windows, in such rows too.
    windows: *mut T,
    width: usize,
}

/// The memory of the output. Tasks write different places of it.
#[derive(Clone, Copy)]
struct To<T>(*mut T);

// SAFETY: tasks write different places.
unsafe impl<T: Send> Sync for To<T> {}

impl<T> To<T> {
    fn ptr(&self) -> *mut T {
        self.0
    }
}

impl<T: MatmulElement> Gathered<'_, T> {
    /// Writes the results of all places to the output.
    pub(super) fn write(&self, output: &mut Room<T>) {
        assert_eq!(output.len(), self.batch * self.groups * self.rows * volume(&self.output));
        let places = self.batch * volume(&self.grid);
        let columns = self.channels * self.taps.len();
        let (least, most) = PLACES;
        let width = (BLOCK / (columns + self.rows).max(1)).clamp(least, most) / least * least;
        let blocks = places.div_ceil(width);
        let cost = (self.rows * columns * width).max(width);
        let to = To(output.as_mut_ptr().cast::<T>());
        parallel(self.groups * blocks, (TASK / cost).max(1), |tasks| {
            let sums = self.rows * width * size_of::<T::Acc>();
            with_buffer(&BLOCKS, sums + columns * width * size_of::<T>(), &mut |memory| {
                for task in tasks.clone() {
                    let from = task % blocks * width;
                    let block = Block {
                        group: task / blocks,
                        from,
                        count: width.min(places - from),
                        sums: memory.cast(),
                        windows: memory.wrapping_add(sums).cast(),
                        width,
                    };
                    // SAFETY: the buffer has room for the windows and sums of a block, and no other task has
                    // these places in this group.
                    unsafe { self.block(&block, to.ptr()) };
                }
            });
        });
    }

    /// The results for the places of a block.
    ///
    /// # Safety
    /// The memory of the block has room for its windows and results, and nothing else accesses the output at
    /// its places.
    unsafe fn block(&self, block: &Block<T>, output: *mut T) {
        let Block { group, from, count, sums, windows, width } = *block;
        let columns = self.channels * self.taps.len();
        let volume = volume(&self.input);
        let source = Windows {
            source: &self.source[(group * self.channels * volume).min(self.source.len())..],
            image_stride: self.groups * self.channels * volume,
            channels: 0..self.channels,
            input: self.input,
            step: self.step,
            taps: &self.taps,
            grid: self.grid,
        };
        let factor = &self.factor.elements[group * self.factor.group_stride..][..self.factor.group_stride];
        // SAFETY: the caller guarantees the memory. The factor has `rows` rows of `columns` elements, and
        // with a `beta` of 0 the sums are written and not read.
        unsafe {
            source.pack(from, count, windows, width);
            let row_stride = self.factor.row_stride as isize;
            let a = Mat { ptr: factor.as_ptr(), row_stride, col_stride: 1 };
            let b = Mat { ptr: windows.cast_const(), row_stride: width as isize, col_stride: 1 };
            let c = Mat { ptr: sums, row_stride: width as isize, col_stride: 1 };
            gemm_sums([self.rows, columns, count], a, b, T::Acc::ZERO, c);
            for run in runs(self.grid, from, count) {
                self.spread_run(group, &run, (sums.add(run.column), width), output);
            }
        }
    }

    /// Writes the sums of a run to the output. They may be overwritten.
    ///
    /// # Safety
    /// `sums` has `run.len` sums for each row, in rows that are `apart`, and nothing else accesses the output
    /// at these places.
    unsafe fn spread_run(
        &self,
        group: usize,
        run: &Run,
        (sums, apart): (*mut T::Acc, usize),
        output: *mut T,
    ) {
        let [_, height, width] = self.output;
        let [d, h, w] = std::array::from_fn(|dim| run.place[dim] * self.spread[dim] + self.start[dim]);
        let (place, step) = ((d * height + h) * width + w, self.spread[2]);
        let channels = group * self.rows..(group + 1) * self.rows;
        let volume = volume(&self.output);
        let plane = |channel: usize| (run.image * self.groups * self.rows + channel) * volume;
        if !T::IS_ACC {
            // SAFETY: the caller guarantees the sums, and the places are in a row of the output.
            unsafe {
                for (row, bias) in self.bias.iter().flat_map(|bias| bias[channels.clone()].iter().enumerate())
                {
                    let sums = std::slice::from_raw_parts_mut(sums.add(row * apart), run.len);
                    sums.iter_mut().for_each(|sum| *sum = sum.add(bias.widen()));
                }
                let (ptr, row_stride) = (output.add(plane(channels.start) + place), volume as isize);
                let to = Mat { ptr, row_stride, col_stride: step as isize };
                return write_rounded(sums, apart, [self.rows, run.len], T::Acc::ZERO, to);
            }
        }
        for (row, channel) in channels.enumerate() {
            let bias = self.bias.map_or(T::Acc::ZERO, |bias| bias[channel].widen());
            // SAFETY: as above.
            unsafe {
                let (sums, to) = (sums.add(row * apart), output.add(plane(channel) + place));
                let sum = |i: usize| T::narrow((*sums.add(i)).add(bias));
                match step {
                    1 => (0..run.len).for_each(|i| to.add(i).write(sum(i))),
                    _ => (0..run.len).for_each(|i| to.add(i * step).write(sum(i))),
                }
            }
        }
    }
}
