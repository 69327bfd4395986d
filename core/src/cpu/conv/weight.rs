//! The gradient of a weight: a product that sums over the places of all images.

use super::gathered::BLOCKS;
use super::windows::Windows;
use super::{Geometry, volume};
use crate::cpu::matmul::{Accumulator, Mat, MatmulElement, gemm_sums, with_buffer};
use crate::cpu::room::{Room, fill, written};
use crate::cpu::threads::{each_part, write_parts};

/// The places of a block.
const PLACES: usize = 512;
/// The distance between the rows of a block, at which they do not evict each other from the cache.
const ROW: usize = PLACES + 16;
/// The most rows of a block.
const ROWS: usize = 288;
/// The most elements of all partial sums.
const PARTIAL: usize = 1 << 20;
/// The filters that a thread writes at a time.
const FILTERS: usize = 16;
/// The sums that a thread adds up at a time.
const CHUNK: usize = 1 << 14;
/// The most partial sums, and the fewest tasks if the sizes allow it.
const TASKS: usize = 16;

/// The gradient `dw` of the weight, from the input `x` and the gradient `g` of the output.
///
/// The images are split into parts, and the channels into blocks. A task has one part and one block, and
/// forms the sums for all features. Then the sums of all parts are added. The split depends only on the
/// sizes.
pub(crate) fn weight<'w, T: MatmulElement>(
    x: &[T],
    g: &[T],
    dw: &'w mut Room<T>,
    geometry: &Geometry,
) -> &'w mut [T] {
    geometry.check(x.len(), dw.len(), g.len());
    let Geometry { batch, groups, channels, features, .. } = *geometry;
    let taps = geometry.taps();
    let parts = (PARTIAL / dw.len().max(1)).clamp(1, TASKS).min(batch.max(1));
    let tasks = TASKS.div_ceil(parts * groups);
    let block = (ROWS / taps).clamp(1, channels.div_ceil(tasks).max(1));
    let blocks = channels.div_ceil(block);
    let task_len = block * taps * features;
    if batch * task_len * blocks * volume(&geometry.output) == 0 {
        return fill(dw, super::zero());
    }
    // The sums of a task, with a row for each tap of each channel and a column for each feature.
    let per_part = groups * blocks * task_len;
    let mut sums = vec![T::Acc::ZERO; parts * per_part];
    let offsets = geometry.offsets();
    each_part(&mut sums, task_len, &|task, sums| {
        let (part, group, at) = (task / blocks / groups, task / blocks % groups, task % blocks);
        let images = part * batch / parts..(part + 1) * batch / parts;
        let channels = at * block..((at + 1) * block).min(channels);
        images.for_each(|image| add_image(x, g, sums, geometry, &offsets, (image, group, channels.clone())));
    });
    let (total, others) = sums.split_at_mut(per_part);
    each_part(total, CHUNK, &|chunk, total| {
        for other in others.chunks_exact(per_part) {
            total.iter_mut().zip(&other[chunk * CHUNK..]).for_each(|(sum, part)| *sum = sum.add(*part));
        }
    });
    let columns = channels * taps;
    write_parts(dw, FILTERS * columns, &|part, dw| {
        for (filter, dw) in (part * FILTERS..).zip(dw.chunks_exact_mut(columns)) {
            // Only the last block of a group can be shorter, so the rows of a group are in order.
            let from = filter / features * blocks * task_len + filter % features;
            let sums = total[from..].iter().step_by(features);
            dw.iter_mut().zip(sums).for_each(|(dw, sum)| _ = dw.write(T::narrow(*sum)));
        }
        // SAFETY: the loop writes each filter of the part.
        unsafe { written(dw) }
    })
}

/// Adds the sums over the places of an image.
fn add_image<T: MatmulElement>(
    x: &[T],
    g: &[T],
    sums: &mut [T::Acc],
    geometry: &Geometry,
    taps: &[[isize; 3]],
    (image, group, channels): (usize, usize, std::ops::Range<usize>),
) {
    let Geometry { groups, features, .. } = *geometry;
    let (places, volume) = (volume(&geometry.output), volume(&geometry.input));
    let rows = channels.len() * taps.len();
    assert!(rows * features <= sums.len());
    let first = (image * groups + group) * geometry.channels * volume;
    let windows = Windows {
        source: &x[first..first + geometry.channels * volume],
        image_stride: 0,
        channels,
        input: geometry.input,
        step: geometry.stride,
        taps,
        grid: geometry.output,
    };
    let g = &g[(image * groups + group) * features * places..][..features * places];
    with_buffer(&BLOCKS, rows * ROW * size_of::<T>(), &mut |block| {
        let block = block.cast::<T>();
        for from in (0..places).step_by(PLACES) {
            let count = PLACES.min(places - from);
            // SAFETY: the block has room for a row for each tap of the channels. Without neighbors, those are
            // the channels of the input. `g` has `features` rows of `places`, and the sums have `rows` rows
            // of `features`, as asserted.
            unsafe {
                let (a, row_stride) = match geometry.is_pointwise() {
                    true => (windows.source.as_ptr().add(windows.channels.start * volume + from), volume),
                    false => {
                        windows.pack(from, count, block, ROW);
                        (block.cast_const(), ROW)
                    }
                };
                let a = Mat { ptr: a, row_stride: row_stride as isize, col_stride: 1 };
                let b = Mat { ptr: g.as_ptr().add(from), row_stride: 1, col_stride: places as isize };
                let c = Mat { ptr: sums.as_mut_ptr(), row_stride: features as isize, col_stride: 1 };
                gemm_sums([rows, count, features], a, b, T::Acc::ONE, c);
            }
        }
    });
}
