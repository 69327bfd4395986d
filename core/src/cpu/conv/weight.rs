//! The gradient of a weight: a product that sums over the places of all images.

use super::direct::DirectPlan;
use super::gathered::BLOCKS;
use super::windows::TapWindows;
#[cfg(target_arch = "x86_64")]
use super::winograd::TiledConvolution;
use super::{ElementBytes, Geometry, To, volume};
use crate::cpu::matmul::{
    MatmulElement, MatrixView, NumberKind, add_sums, gemm_sums, with_buffer, write_sums,
};
use crate::cpu::threads::{each, each_part};
use crate::dtype::dispatch;
use std::ops::Range;

/// The places of a block.
const PLACES: usize = 512;
/// The distance between the rows of a block, at which they do not evict each other from the cache.
const ROW: usize = PLACES + 16;
/// The most rows of a block.
const ROWS: usize = 288;
/// The channels from which windows are found by offsets.
const DIRECT: usize = 8;
/// The most elements of all partial sums.
const PARTIAL: usize = 1 << 20;
/// The filters that a thread writes at a time.
const FILTERS: usize = 16;
/// The most partial sums, and the fewest tasks if the sizes allow it.
const TASKS: usize = 16;

/// [`weight`](super::weight) of any type.
///
/// The images are split into parts, and the channels into blocks. A task has one part and one block, and
/// forms the sums for all features. Then the sums of all parts are added. The split depends only on the
/// sizes.
///
/// # Safety
/// The elements are of this kind, and `dw` has room for its `len` elements.
pub(super) unsafe fn weight_of(
    kind: &'static NumberKind,
    x: ElementBytes<'_>,
    g: ElementBytes<'_>,
    (dw, len): (To, usize),
    geometry: &Geometry,
) {
    #[cfg(target_arch = "x86_64")]
    if let Some(tiles) = TiledConvolution::of(kind, geometry, false) {
        // SAFETY: the contract is the same.
        if unsafe { tiles.write_weight(To::of(x), To::of(g), dw) } {
            return;
        }
    }
    let Geometry { batch, groups, channels, features, .. } = *geometry;
    let taps = geometry.taps();
    let [parts, block] = divided(len, geometry);
    let blocks = channels.div_ceil(block);
    let task_len = block * taps * features;
    if batch * task_len * blocks * volume(&geometry.output) == 0 {
        // SAFETY: the caller guarantees the room. The bits of a zero are 0 in any type.
        return unsafe { dw.ptr().write_bytes(0, len * kind.size) };
    }
    // The sums of a task, with a row for each tap of each channel and a column for each feature. A sum has at
    // most eight bytes.
    let per_part = groups * blocks * task_len;
    let mut sums = vec![0_u64; parts * per_part];
    let offsets = geometry.offsets();
    each_part(&mut sums, task_len, &|task, sums| {
        let (part, group, at) = (task / blocks / groups, task / blocks % groups, task % blocks);
        let images = part * batch / parts..(part + 1) * batch / parts;
        let channels = at * block..((at + 1) * block).min(channels);
        add_images(kind, (x, g), sums, geometry, &offsets, (images, group, channels));
    });
    let (total, others) = sums.split_at_mut(per_part);
    each_part(total, task_len, &|task, total| {
        for other in others.chunks_exact(per_part) {
            // SAFETY: both have the sums of a task.
            unsafe {
                add_sums(kind, other[task * task_len..].as_ptr().cast(), task_len, total.as_mut_ptr().cast())
            };
        }
    });
    // The sums of a block of channels, transposed, are some columns of the filters of a group.
    let (columns, total) = (channels * taps, To(total.as_mut_ptr().cast()));
    let strips = features.div_ceil(FILTERS);
    each(groups * blocks * strips, &|task| {
        let (of_block, strip) = (task / strips, task % strips * FILTERS);
        let (group, at) = (of_block / blocks, of_block % blocks);
        let rows = ((at + 1) * block).min(channels) * taps - at * block * taps;
        let first = (group * features + strip) * columns + at * block * taps;
        // SAFETY: the filters are in the weight, and no other task has these of this block.
        unsafe {
            let sums = total.ptr().add(of_block * task_len * size_of::<u64>() + strip * kind.acc_size());
            let to = MatrixView::rows(dw.ptr().add(first * kind.size), columns, kind.size).t();
            write_sums(kind, sums, features, [rows, FILTERS.min(features - strip)], to);
        }
    });
}

/// The parts of the batch, and the channels of a task.
fn divided(len: usize, geometry: &Geometry) -> [usize; 2] {
    let parts = (PARTIAL / len.max(1)).clamp(1, TASKS).min(geometry.batch.max(1));
    let tasks = TASKS.div_ceil(parts * geometry.groups);
    [parts, (ROWS / geometry.taps()).max(DIRECT).min(geometry.channels.div_ceil(tasks).max(1))]
}

/// The bytes that [`weight`] takes for itself: of a block of the cache, and of other memory.
pub(crate) fn weight_room<T: MatmulElement>(geometry: &Geometry) -> [usize; 2] {
    #[cfg(target_arch = "x86_64")]
    if let Some(tiles) = TiledConvolution::of(T::kind(), geometry, false) {
        return [tiles.sums_bytes(), 0];
    }
    let Geometry { groups, channels, features, .. } = *geometry;
    let of_channel = geometry.taps() * features;
    let [parts, block] = divided(groups * channels * of_channel, geometry);
    [0, size_of::<u64>() * parts * groups * channels.next_multiple_of(block) * of_channel]
}

/// Adds the sums over the places of some images.
fn add_images(
    kind: &'static NumberKind,
    (x, g): (ElementBytes<'_>, ElementBytes<'_>),
    sums: &mut [u64],
    geometry: &Geometry,
    taps: &[[isize; 3]],
    (images, group, channels): (Range<usize>, usize, Range<usize>),
) {
    let Geometry { groups, features, .. } = *geometry;
    let (places, volume, size) = (volume(&geometry.output), volume(&geometry.input), kind.size);
    let rows = channels.len() * taps.len();
    assert!(rows * features <= sums.len());
    let windows = |image: usize| {
        let first = (image * groups + group) * geometry.channels * volume;
        TapWindows {
            source: ElementBytes(&x.0[first * size..(first + geometry.channels * volume) * size]),
            image_stride: 0,
            channels: channels.clone(),
            input: geometry.input,
            step: geometry.stride,
            taps,
            grid: geometry.output,
        }
    };
    // Few channels are few rows of a product for each tap.
    let plan = match channels.len() >= DIRECT && !images.is_empty() {
        true => DirectPlan::of(kind, &windows(images.start), features),
        false => None,
    };
    for image in images {
        let windows = windows(image);
        let g = &g.0[(image * groups + group) * features * places * size..][..features * places * size];
        match &plan {
            // SAFETY: `g` has `features` rows of `places`, and the sums have `rows` rows of `features`, as
            // asserted. A plan is for `f32`.
            Some(plan) => unsafe {
                plan.add_weight(kind, &windows, (g.as_ptr(), features), sums.as_mut_ptr().cast())
            },
            // SAFETY: as above.
            None => unsafe { add_packed(kind, &windows, g, sums, geometry) },
        }
    }
}

/// Adds the sums over the places of an image, of which `windows` has some channels and `g` the gradient of the
/// output. The sums have a row for each tap of each channel.
///
/// # Safety
/// The elements are of this kind, and `windows`, `g` and the sums have these sizes.
unsafe fn add_packed(
    kind: &'static NumberKind,
    windows: &TapWindows<'_>,
    g: &[u8],
    sums: &mut [u64],
    geometry: &Geometry,
) {
    let (features, size) = (geometry.features, kind.size);
    let (places, volume) = (volume(&geometry.output), volume(&geometry.input));
    let rows = windows.channels.len() * windows.taps.len();
    with_buffer(&BLOCKS, rows * ROW * size, &mut |block| {
        for from in (0..places).step_by(PLACES) {
            let count = PLACES.min(places - from);
            // SAFETY: the block has room for a row for each tap of the channels. Without neighbors, those are
            // the channels of the input. `g` has `features` rows of `places`, and the sums have `rows` rows
            // of `features`, as the caller guarantees.
            unsafe {
                let a = match geometry.is_pointwise() {
                    true => {
                        let first = windows.channels.start * volume + from;
                        MatrixView::rows(windows.source.0.as_ptr().cast_mut().add(first * size), volume, size)
                    }
                    false => {
                        dispatch!(size size, W => windows.pack::<W>(from, count, block.cast(), ROW));
                        MatrixView::rows(block, ROW, size)
                    }
                };
                let b = MatrixView::rows(g.as_ptr().cast_mut().add(from * size), places, size).t();
                let c = MatrixView::rows(sums.as_mut_ptr().cast(), features, kind.acc_size());
                gemm_sums(kind, [rows, count, features], a, b, true, c);
            }
        }
    });
}
