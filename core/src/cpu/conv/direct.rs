//! Convolution without a matrix of windows: the rows of the source that some places see are copied once, with
//! zeros around them, and the product finds each tap in the copy by an offset.
//!
//! With a stride, a copied plane has each `stride`-th element of a channel, so that neighboring places see
//! neighboring elements. Taps that see the same elements, at other places, share a plane. All rows of a plane
//! are `pitch` apart, so the places of some rows of the grid are one row of the product; the sums between the
//! rows are not used.

use super::gathered::{BLOCKS, Gathered, TASK};
use super::windows::{GridRun, TapWindows, copy};
use super::{To, positions, volume};
use crate::cpu::matmul::{MatrixView, NumberKind, ScatteredProduct, has_scattered, with_buffer};
use crate::cpu::threads::parallel;

/// The places of a block, unless the sums of many rows would take too much of the cache of a core.
const PLACES: usize = 512;
/// The most sums of a block.
const SUMS: usize = 1 << 16;
/// The places of an image below which blocks of several images are faster.
const FEW: usize = 100;
/// The most terms of a sum at a time, so that some rows of the factor stay in the cache.
const TERMS: usize = 512;

/// The most elements of a copy.
const COPIED: usize = 1 << 20;

/// How the source is copied, and cut into blocks.
pub(super) struct DirectPlan {
    /// The position of the first element of each plane, relative to the first place of a block.
    planes: Vec<[isize; 3]>,
    /// The plane of each tap, and its distance in rows and elements from the first place.
    taps: Vec<(usize, [usize; 2])>,
    /// The rows and the columns of a plane beyond those of the places.
    around: [usize; 2],
    /// The rows and the columns of the grid in a block.
    block: [usize; 2],
    /// The distance of the rows of a plane.
    pitch: usize,
    /// The channels at a time.
    channels: usize,
}

impl DirectPlan {
    /// A plan for a convolution with `rows` results at each place, unless products with copied windows are as
    /// fast or are the only ones.
    pub(super) fn of(kind: &NumberKind, windows: &TapWindows<'_>, rows: usize) -> Option<DirectPlan> {
        let ([_, height, width], channels) = (windows.grid, windows.channels.len());
        if !has_scattered(kind) || volume(&windows.grid) * rows * channels == 0 {
            return None;
        }
        let [_, down, along] = windows.step.map(|step| step as isize);
        let steps = |tap: &[isize; 3]| [tap[1].div_euclid(down), tap[2].div_euclid(along)];
        let ends = |dim: usize| {
            let steps = windows.taps.iter().map(|tap| steps(tap)[dim]);
            Some((steps.clone().min()?, steps.max()?))
        };
        let [(top, bottom), (left, right)] = [ends(0)?, ends(1)?];
        let (mut planes, mut taps) = (Vec::new(), Vec::new());
        for tap in windows.taps {
            let [row, column] = steps(tap);
            let plane = [tap[0], tap[1] - (row - top) * down, tap[2] - (column - left) * along];
            let at = planes.iter().position(|other| *other == plane).unwrap_or_else(|| {
                planes.push(plane);
                planes.len() - 1
            });
            taps.push((at, [(row - top) as usize, (column - left) as usize]));
        }
        let around = [(bottom - top) as usize, (right - left) as usize];
        let places = PLACES.min(SUMS / rows).max(64);
        let columns = width.div_ceil(width.div_ceil(places));
        let pitch = columns + around[1];
        let rows = (places / pitch).clamp(1, height);
        let rows = height.div_ceil(height.div_ceil(rows));
        let at_once = (TERMS / taps.len()).clamp(1, channels);
        let channels = channels.div_ceil(channels.div_ceil(at_once));
        let plan = DirectPlan { planes, taps, around, block: [rows, columns], pitch, channels };
        // Taps that share nothing are copied as often either way, and far ones are too many zeros.
        let copied = plan.planes.len() * plan.plane_len();
        let fits = copied <= plan.taps.len() * rows * columns && plan.channels * copied < COPIED;
        let fits = fits && rows * columns >= FEW;
        (plan.planes.len() < plan.taps.len() && fits).then_some(plan)
    }

    /// The elements of a plane.
    fn plane_len(&self) -> usize {
        (self.block[0] + self.around[0]) * self.pitch
    }

    /// The distance of the rows of sums. They do not evict each other from the cache.
    fn sums_width(&self) -> usize {
        (self.block[0] * self.pitch).next_multiple_of(16) | 16
    }

    /// Writes the results of all places to the output, which has room for them.
    pub(super) fn write(&self, conv: &Gathered<'_>, output: To) {
        let [depth, height, width] = conv.grid;
        let [rows, columns] = self.block;
        let blocks = [conv.groups, conv.batch, depth, height.div_ceil(rows), width.div_ceil(columns)];
        let sums = conv.rows * self.sums_width();
        let copied = self.channels * self.planes.len() * self.plane_len();
        let offsets = self.offsets(conv.kind.size);
        let cost = (conv.rows * rows * columns * conv.channels * self.taps.len()).max(1);
        parallel(blocks.iter().product(), (TASK / cost).max(1), |tasks| {
            with_buffer(&BLOCKS, (sums + copied) * conv.kind.size, &mut |memory| {
                for mut task in tasks.clone() {
                    let mut at = [0; 5];
                    for dim in (0..5).rev() {
                        (at[dim], task) = (task % blocks[dim], task / blocks[dim]);
                    }
                    // SAFETY: the buffer has room for the sums and planes of a block, and no other task has
                    // these places.
                    unsafe { self.block(conv, at, &offsets, memory, output) };
                }
            });
        });
    }

    /// The bytes to each column of the factor and to its row of the planes, for some channels.
    fn offsets(&self, size: usize) -> Vec<[i32; 2]> {
        let mut offsets = Vec::with_capacity(self.channels * self.taps.len());
        for channel in 0..self.channels {
            for (plane, [row, column]) in &self.taps {
                let plane = channel * self.planes.len() + plane;
                let place = plane * self.plane_len() + row * self.pitch + column;
                offsets.push([(offsets.len() * size) as i32, (place * size) as i32]);
            }
        }
        offsets
    }

    /// Copies what `rows` rows of the grid see, from this place on, to planes.
    ///
    /// # Safety
    /// The elements are `f32`, and there is room for a plane of each channel.
    unsafe fn copy_planes(&self, windows: &TapWindows<'_>, place: [usize; 3], rows: usize, to: *mut u8) {
        let mut taps = self.planes.clone();
        for plane in &mut taps {
            for (dim, at) in plane.iter_mut().enumerate() {
                *at += (place[dim] * windows.step[dim]) as isize;
            }
        }
        let grid = [1, rows + self.around[0], self.pitch];
        let planes = TapWindows { taps: &taps, grid, channels: windows.channels.clone(), ..*windows };
        // SAFETY: the contract is the same.
        unsafe { planes.pack::<u32>(0, volume(&grid), to.cast(), self.plane_len()) };
    }

    /// The results for a block of places of an image and a group.
    ///
    /// # Safety
    /// The memory has room for its sums and planes, and nothing else accesses the output at its places.
    unsafe fn block(
        &self,
        conv: &Gathered<'_>,
        [group, image, depth, row, column]: [usize; 5],
        offsets: &[[i32; 2]],
        sums: *mut u8,
        output: To,
    ) {
        let (size, width) = (conv.kind.size, self.sums_width());
        let place = [depth, row * self.block[0], column * self.block[1]];
        let rows = self.block[0].min(conv.grid[1] - place[1]);
        let len = self.block[1].min(conv.grid[2] - place[2]);
        let planes = sums.wrapping_add(conv.rows * width * size);
        let mut windows = conv.windows(group);
        windows.source.0 = &windows.source.0[image * windows.image_stride * size..];
        let factor = conv.factor.ptr().wrapping_add(group * conv.factor.group_stride * size);
        // SAFETY: the caller guarantees the memory, in which there is a row for each plane of the channels. The
        // factor has a row for each channel of the output. The places of all taps are in the planes.
        unsafe {
            if let Some(bias) = &conv.bias {
                conv.fill_with(bias, group, (sums, width), (rows - 1) * self.pitch + len);
            }
            for first in (0..conv.channels).step_by(self.channels) {
                windows.channels = first..conv.channels.min(first + self.channels);
                self.copy_planes(&windows, place, rows, planes);
                let terms = windows.channels.len() * self.taps.len();
                let product = ScatteredProduct {
                    kind: conv.kind,
                    rows: conv.rows,
                    columns: (rows - 1) * self.pitch + len,
                    offsets: &offsets[..terms],
                    a: factor.add(first * self.taps.len() * size),
                    a_row: (conv.factor.row_stride * size) as isize,
                    b: planes,
                    c: MatrixView::rows(sums, width, size),
                    add: first > 0 || conv.bias.is_some(),
                };
                product.run();
            }
            for row in 0..rows {
                let place = [place[0], place[1] + row, place[2]];
                let run = GridRun { column: row * self.pitch, image, place, len };
                let to = conv.place_of(group, &run, output.ptr());
                let sums = MatrixView::rows(sums.add(run.column * size), width, size);
                copy_rows(sums, to, [conv.rows, len]);
            }
        }
    }
}

/// The gradient of a weight.
impl DirectPlan {
    /// Adds the sums over the places of an image, of which `windows` has some channels and `g` the gradient of
    /// the output in `features` rows. The sums have a row for each tap of each channel.
    ///
    /// # Safety
    /// The elements are `f32`, and the sums are valid.
    pub(super) unsafe fn add_weight(
        &self,
        kind: &'static NumberKind,
        windows: &TapWindows<'_>,
        (g, features): (*const u8, usize),
        sums: *mut u8,
    ) {
        let ([depth, height, width], [most_rows, columns]) = (windows.grid, self.block);
        let (size, taps) = (kind.size, self.taps.len());
        let planes_len = windows.channels.len() * self.planes.len() * self.plane_len();
        let turned_len = most_rows * columns * features;
        // Only a block of whole rows has several, so a smaller one has the first of these places.
        let offset = |at: usize| (at / columns * self.pitch + at % columns, at * features);
        let offsets: Vec<[i32; 2]> = (0..most_rows * columns)
            .map(offset)
            .map(|(a, b)| [(a * size) as i32, (b * size) as i32])
            .collect();
        with_buffer(&BLOCKS, (planes_len + turned_len) * size, &mut |planes| {
            let turned = planes.wrapping_add(planes_len * size);
            let blocks = [depth, height.div_ceil(most_rows), width.div_ceil(columns)];
            for block in positions(blocks) {
                let place = [block[0], block[1] * most_rows, block[2] * columns];
                let rows = most_rows.min(height - place[1]);
                let len = columns.min(width - place[2]);
                let first = (place[0] * height + place[1]) * width + place[2];
                let places = rows * len;
                // SAFETY: the buffer has room for the planes and the turned rows of `g`, and the caller
                // guarantees the operands and the sums.
                unsafe {
                    self.copy_planes(windows, place, rows, planes);
                    let g = MatrixView::rows(g.add(first * size).cast_mut(), volume(&windows.grid), size);
                    kind.copy_matrix(g.t(), [places, features], turned, features);
                    for (tap, (plane, [row, column])) in self.taps.iter().enumerate() {
                        let from = plane * self.plane_len() + row * self.pitch + column;
                        let product = ScatteredProduct {
                            kind,
                            rows: windows.channels.len(),
                            columns: features,
                            offsets: &offsets[..places],
                            a: planes.add(from * size),
                            a_row: (self.planes.len() * self.plane_len() * size) as isize,
                            b: turned,
                            c: MatrixView::rows(sums.add(tap * features * size), taps * features, size),
                            add: true,
                        };
                        product.run();
                    }
                }
            }
        });
    }
}

/// Copies `f32` from contiguous rows.
///
/// # Safety
/// The elements exist in both places.
unsafe fn copy_rows(from: MatrixView, to: MatrixView, [rows, len]: [usize; 2]) {
    for row in 0..rows as isize {
        // SAFETY: the caller guarantees the elements.
        unsafe {
            let from = from.ptr.offset(row * from.row).cast::<u32>();
            let first = to.ptr.offset(row * to.row);
            if to.col == size_of::<u32>() as isize {
                copy(from, 1, first.cast(), len);
            } else {
                for at in 0..len {
                    first.offset(at as isize * to.col).cast::<u32>().write(*from.add(at));
                }
            }
        }
    }
}
