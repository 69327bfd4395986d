//! A product of a weight with the windows of a tensor, whose columns are the places of the result.

use super::direct::DirectPlan;
use super::windows::{GridRun, TapWindows, runs};
use super::{ElementBytes, To, WeightMatrices, volume};
use crate::cpu::matmul::{MatrixView, NumberKind, PanelBuffer, gemm_sums, with_buffer, write_sums};
use crate::cpu::threads::parallel;
use crate::dtype::dispatch;
use std::cell::Cell;

thread_local! {
    /// The windows of some places, and the sums for these places.
    pub(super) static BLOCKS: PanelBuffer = const { Cell::new(Vec::new()) };
}

/// The fewest and the most places of a block, which are multiples of the panels in which a product reads
/// them.
const PLACES: (usize, usize) = (64, 512);
/// The windows and sums of a block, unless that would be fewer places. They stay in the cache of a core.
const BLOCK: usize = 1 << 15;
/// The multiply-adds that a thread takes at a time.
pub(super) const TASK: usize = 1 << 20;

/// The result at place `t` of the grid is the sum over taps of the factor times the source at `step t + tap`.
/// It goes to `spread t + start` of the output.
pub(super) struct Gathered<'a> {
    pub(super) kind: &'static NumberKind,
    /// `rows` by `channels` times taps, for each group.
    pub(super) factor: WeightMatrices<'a>,
    pub(super) source: ElementBytes<'a>,
    /// The channels of the source in a group.
    pub(super) channels: usize,
    pub(super) input: [usize; 3],
    pub(super) step: [usize; 3],
    pub(super) taps: Vec<[isize; 3]>,
    pub(super) grid: [usize; 3],
    /// The channels of the output in a group.
    pub(super) rows: usize,
    /// The bias of each channel of the output, as accumulators.
    pub(super) bias: Option<Vec<u64>>,
    pub(super) output: [usize; 3],
    pub(super) spread: [usize; 3],
    pub(super) start: [usize; 3],
    pub(super) groups: usize,
    pub(super) batch: usize,
}

/// Some places of a group.
struct GatheredBlock {
    group: usize,
    from: usize,
    count: usize,
    /// Memory for the sums, in rows of `width`.
    sums: *mut u8,
    /// Memory for the windows, in such rows too.
    windows: *mut u8,
    width: usize,
}

impl Gathered<'_> {
    /// Writes the results of all places to the output, which has room for them.
    pub(super) fn write(&self, output: To) {
        if self.is_depthwise() {
            return self.write_rows(output);
        }
        if let Some(plan) = DirectPlan::of(self.kind, &self.windows(0), self.rows) {
            return plan.write(self, output);
        }
        let (size, acc_size) = (self.kind.size, self.kind.acc_size());
        let places = self.batch * volume(&self.grid);
        let columns = self.channels * self.taps.len();
        let (least, most) = PLACES;
        let width = (BLOCK / (columns + self.rows).max(1)).clamp(least, most) / least * least;
        let blocks = places.div_ceil(width);
        let cost = (self.rows * columns * width).max(width);
        parallel(self.groups * blocks, (TASK / cost).max(1), |tasks| {
            let sums = self.rows * width * acc_size;
            with_buffer(&BLOCKS, sums + columns * width * size, &mut |memory| {
                for task in tasks.clone() {
                    let from = task % blocks * width;
                    let block = GatheredBlock {
                        group: task / blocks,
                        from,
                        count: width.min(places - from),
                        sums: memory,
                        windows: memory.wrapping_add(sums),
                        width,
                    };
                    // SAFETY: the buffer has room for the windows and sums of a block, and no other task has
                    // these places in this group.
                    unsafe { self.block(&block, output.ptr()) };
                }
            });
        });
    }

    /// The windows of a group.
    pub(super) fn windows(&self, group: usize) -> TapWindows<'_> {
        let of_group = self.channels * volume(&self.input);
        let first = group * of_group * self.kind.size;
        TapWindows {
            source: ElementBytes(&self.source.0[first.min(self.source.0.len())..]),
            image_stride: self.groups * of_group,
            channels: 0..self.channels,
            input: self.input,
            step: self.step,
            taps: &self.taps,
            grid: self.grid,
        }
    }

    /// The results for the places of a block.
    ///
    /// # Safety
    /// The memory of the block has room for its windows and results, and nothing else accesses the output at
    /// its places.
    unsafe fn block(&self, block: &GatheredBlock, output: *mut u8) {
        let GatheredBlock { group, from, count, sums, windows, width } = *block;
        let (size, acc_size) = (self.kind.size, self.kind.acc_size());
        let columns = self.channels * self.taps.len();
        let source = self.windows(group);
        let factor = self.factor.ptr().wrapping_add(group * self.factor.group_stride * size);
        // SAFETY: the caller guarantees the memory. The factor has `rows` rows of `columns` elements. The sums
        // are read only if they were filled with the bias.
        unsafe {
            dispatch!(size size, W => source.pack::<W>(from, count, windows.cast(), width));
            if let Some(bias) = &self.bias {
                self.fill_with(bias, group, (sums, width), count);
            }
            let a = MatrixView::rows(factor.cast_mut(), self.factor.row_stride, size);
            let (b, c) = (MatrixView::rows(windows, width, size), MatrixView::rows(sums, width, acc_size));
            gemm_sums(self.kind, [self.rows, columns, count], a, b, self.bias.is_some(), c);
            for run in runs(self.grid, from, count) {
                self.spread_run(group, &run, (sums.add(run.column * acc_size), width), output);
            }
        }
    }

    /// Writes the bias of each row of a group to `count` sums, in rows that are `width` apart.
    ///
    /// # Safety
    /// `sums` has room for them.
    pub(super) unsafe fn fill_with(
        &self,
        bias: &[u64],
        group: usize,
        (sums, width): (*mut u8, usize),
        count: usize,
    ) {
        // SAFETY: the caller guarantees the sums, and there is a bias for each row of each group.
        dispatch!(size self.kind.acc_size(), W => unsafe {
            let bias = bias.as_ptr().cast::<W>().add(group * self.rows);
            for row in 0..self.rows {
                let sums = sums.cast::<W>().add(row * width);
                for column in 0..count {
                    sums.add(column).write(*bias.add(row));
                }
            }
        });
    }

    /// Writes the sums of a run to the output. They may be overwritten.
    ///
    /// # Safety
    /// `sums` has `run.len` sums for each row, in rows that are `apart`, and nothing else accesses the output
    /// at these places.
    unsafe fn spread_run(
        &self,
        group: usize,
        run: &GridRun,
        (sums, apart): (*mut u8, usize),
        output: *mut u8,
    ) {
        let to = self.place_of(group, run, output);
        // SAFETY: the caller guarantees the sums, and the places are in a row of the output.
        unsafe { write_sums(self.kind, sums, apart, [self.rows, run.len], to) };
    }

    /// Where the results of a run go: a row for each channel of the output.
    pub(super) fn place_of(&self, group: usize, run: &GridRun, output: *mut u8) -> MatrixView {
        let [_, height, width] = self.output;
        let [d, h, w] = std::array::from_fn(|dim| run.place[dim] * self.spread[dim] + self.start[dim]);
        let (place, size) = ((d * height + h) * width + w, self.kind.size);
        let volume = volume(&self.output);
        let plane = (run.image * self.groups + group) * self.rows * volume;
        MatrixView {
            ptr: output.wrapping_add((plane + place) * size),
            row: (volume * size) as isize,
            col: (self.spread[2] * size) as isize,
        }
    }
}
