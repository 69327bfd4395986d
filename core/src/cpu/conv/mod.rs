//! Convolution over up to three dims, and its gradients, as products of matrices.
//!
//! All three directions are products with the windows of a tensor. Column `p` of the matrix of windows has
//! the elements under the kernel at place `p`. It would have as many copies of each element as the kernel has
//! taps, so it is never made as a whole: a thread packs the columns of some places into a block that stays in
//! its cache, multiplies the block, and goes on. Where taps see the same elements, `f32` windows are not packed
//! but found in a copy of some rows (`direct`).
//!
//! Kernels of 3 × 3 over `f32` images with some channels take another way with fewer multiplications
//! (`winograd`), and depthwise convolutions are sums of rows without products (`depthwise`).
//!
//! Read [`Geometry`] first, then `windows` (packing), `gathered` (the product that makes an output, and the
//! gradient of an input) and `weight` (the gradient of a weight). The dims of a line or an image are the last
//! ones of three; the others have one element.

mod depthwise;
mod direct;
mod gathered;
mod weight;
mod windows;
#[cfg(target_arch = "x86_64")]
mod winograd;

use super::matmul::{MatmulElement, MatrixView, NumberKind, gemm_batched, rows_collide};
use super::room::{Room, written};
use super::threads::each;
use crate::dtype::dispatch;
use gathered::Gathered;
use std::sync::atomic::{AtomicU8, Ordering};
pub(crate) use weight::weight_room;
#[cfg(target_arch = "x86_64")]
use winograd::TiledConvolution;

/// The sizes of a convolution. The output at place `t` is the sum over taps `k` of the weight at `k` times
/// the input at `stride t + dilation k - padding`; there are zeros outside of the input.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) batch: usize,
    pub(crate) groups: usize,
    /// The channels of the input in a group.
    pub(crate) channels: usize,
    /// The channels of the output in a group.
    pub(crate) features: usize,
    pub(crate) input: [usize; 3],
    pub(crate) kernel: [usize; 3],
    pub(crate) output: [usize; 3],
    pub(crate) stride: [usize; 3],
    /// The zeros before the input.
    pub(crate) padding: [usize; 3],
    pub(crate) dilation: [usize; 3],
}

/// How convolutions of `f32` images by a kernel of 3 × 3 are computed, with a stride and a dilation of 1, one
/// group, at least 16 channels and features, and on a CPU with AVX2: by Winograd's algorithm, which has fewer
/// multiplications for each tile of the result, or as all others, as a sum of products.
///
/// The table has the errors of the output and of the gradient of the input, in parts of the sum of the absolute
/// values of the products: the square root of the mean square, and the greatest that was found in convolutions
/// of random numbers with 16 to 512 channels. The greatest of the gradient of the weight is not larger.
///
/// |  | multiplications | mean | greatest |
/// | --- | --- | --- | --- |
/// | `Off` | 1 | 1e-8 to 2e-8 | 3e-7 |
/// | `TwoByTwo` | 4/9 | 2e-8 | 3e-7 |
/// | `FourByFour` | 1/4 | 4e-8 to 6e-8 | 2e-6 |
///
/// The errors are relative to the largest numbers of a tile: beside a pixel of 1e6, results near 1 that do not
/// depend on it are off by up to 1 with `FourByFour`, and by 1e-5 otherwise.
///
/// With tiles, an infinity or a NaN in an input makes all results of its tiles NaN. The weights take 16/9 or 4
/// times their memory during a call, and a thread has at most 84 tiles at a time: 12 KiB for a channel of the
/// input in tiles of 4 × 4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Winograd {
    /// Sums of products.
    Off = 0,
    /// Tiles of 2 × 2.
    TwoByTwo = 2,
    /// Tiles of 4 × 4, the default.
    FourByFour = 4,
}

/// The value of [`Winograd`] in use.
static WINOGRAD: AtomicU8 = AtomicU8::new(Winograd::FourByFour as u8);

/// Sets how the whole process computes convolutions by a kernel of 3 × 3, from the next one on.
///
/// # Examples
/// ```
/// use namegrad_core::{Winograd, set_winograd};
/// set_winograd(Winograd::Off);
/// ```
pub fn set_winograd(tiles: Winograd) {
    WINOGRAD.store(tiles as u8, Ordering::Relaxed);
}

/// The elements of a block.
fn volume(sizes: &[usize; 3]) -> usize {
    sizes.iter().product()
}

/// All positions in a block of these sizes, in row-major order.
fn positions([depth, height, width]: [usize; 3]) -> Vec<[usize; 3]> {
    let mut positions = Vec::with_capacity(depth * height * width);
    for d in 0..depth {
        for h in 0..height {
            for w in 0..width {
                positions.push([d, h, w]);
            }
        }
    }
    positions
}

impl Geometry {
    /// The taps of the kernel.
    fn taps(&self) -> usize {
        volume(&self.kernel)
    }

    /// The position of each tap in the input, relative to `stride t`.
    fn offsets(&self) -> Vec<[isize; 3]> {
        let mut offsets = Vec::with_capacity(self.taps());
        for tap in positions(self.kernel) {
            let mut offset = [0; 3];
            for dim in 0..3 {
                offset[dim] = (tap[dim] * self.dilation[dim]) as isize - self.padding[dim] as isize;
            }
            offsets.push(offset);
        }
        offsets
    }

    /// Whether an output is at the place of its input, so that the inputs already are the windows.
    fn is_pointwise(&self) -> bool {
        self.taps() == 1 && self.stride == [1; 3] && self.padding == [0; 3] && self.input == self.output
    }

    /// Panics unless the slices have these sizes.
    fn check(&self, input: usize, weight: usize, output: usize) {
        let Geometry { batch, groups, channels, features, .. } = *self;
        assert_eq!(input, batch * groups * channels * volume(&self.input));
        assert_eq!(weight, groups * features * channels * self.taps());
        assert_eq!(output, batch * groups * features * volume(&self.output));
    }
}

/// Elements in memory, of a type of number that is known at run time. The loops are compiled once, and move
/// elements by their width.
#[derive(Clone, Copy)]
struct ElementBytes<'a>(&'a [u8]);

impl<'a> ElementBytes<'a> {
    fn of<T: MatmulElement>(x: &'a [T]) -> Self {
        // SAFETY: a number consists of initialized bytes.
        ElementBytes(unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), size_of_val(x)) })
    }

    /// The same elements as integers of their width.
    ///
    /// # Safety
    /// They are of a type of the width of `W`.
    unsafe fn by_width<W>(self) -> &'a [W] {
        // SAFETY: the caller guarantees the width, and so the alignment; any bits are an integer.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() / size_of::<W>()) }
    }
}

/// Memory that tasks write in different places.
#[derive(Clone, Copy)]
struct To(*mut u8);

// SAFETY: tasks write different places.
unsafe impl Sync for To {}

impl To {
    /// Elements that tasks read.
    #[cfg(target_arch = "x86_64")]
    fn of(x: ElementBytes<'_>) -> To {
        To(x.0.as_ptr().cast_mut())
    }

    fn ptr(&self) -> *mut u8 {
        self.0
    }
}

/// The matrices of a weight, one for each group, whose rows are `row_stride` elements apart.
struct WeightMatrices<'a> {
    weight: ElementBytes<'a>,
    /// A copy of the weight in another order.
    copied: Option<Vec<u64>>,
    row_stride: usize,
    group_stride: usize,
}

impl WeightMatrices<'_> {
    fn ptr(&self) -> *const u8 {
        self.copied.as_ref().map_or(self.weight.0.as_ptr(), |copied| copied.as_ptr().cast())
    }
}

/// The row stride at which the rows of a matrix do not evict each other from the cache.
fn apart(columns: usize, size: usize) -> usize {
    if rows_collide(columns * size) { columns + 64 / size } else { columns }
}

/// The output for the input `x`, plus `bias`.
pub(crate) fn output<'y, T: MatmulElement>(
    x: &[T],
    weight: &[T],
    bias: Option<&[T]>,
    y: &'y mut Room<T>,
    geometry: &Geometry,
) -> &'y mut [T] {
    geometry.check(x.len(), weight.len(), y.len());
    assert!(bias.is_none_or(|bias| bias.len() == geometry.groups * geometry.features));
    let [x, weight] = [x, weight].map(ElementBytes::of);
    // SAFETY: the lengths are checked, and all of `y` is written.
    unsafe {
        output_of(T::kind(), x, weight, bias.map(ElementBytes::of), To(y.as_mut_ptr().cast()), geometry);
        written(y)
    }
}

/// The bytes that [`output`] takes for itself, or [`input`]: of a block of the cache, and of other memory.
pub(crate) fn room_of<T: MatmulElement>(geometry: &Geometry, is_gradient: bool) -> [usize; 2] {
    let Geometry { groups, channels, features, .. } = *geometry;
    if geometry.is_pointwise() {
        return [0, 0];
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(tiles) = TiledConvolution::of(T::kind(), geometry, is_gradient) {
        return [tiles.factor_bytes(), 0];
    }
    // The weight, with rows apart.
    [0, groups * channels * features * geometry.taps() * size_of::<T>()]
}

/// [`output`] of any type.
///
/// # Safety
/// The elements are of this kind, and `y` has room for the output.
unsafe fn output_of(
    kind: &'static NumberKind,
    x: ElementBytes<'_>,
    weight: ElementBytes<'_>,
    bias: Option<ElementBytes<'_>>,
    y: To,
    geometry: &Geometry,
) {
    let Geometry { batch, groups, channels, features, .. } = *geometry;
    let (columns, size) = (channels * geometry.taps(), kind.size);
    if geometry.is_pointwise() && columns > 0 {
        let factor = MatrixView::rows(weight.0.as_ptr().cast_mut(), columns, size);
        // SAFETY: the contract is the same.
        return unsafe { pointwise(kind, x, factor, bias, y, [features, columns], geometry) };
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(tiles) = TiledConvolution::of(kind, geometry, false) {
        // SAFETY: the contract is the same, and the numbers are `f32`.
        let is_written = unsafe {
            let bias = bias.map(|bias| bias.by_width::<f32>());
            tiles.write(To::of(x), To::of(weight), bias, y)
        };
        if is_written {
            return;
        }
    }
    let row_stride = if features > 1 { apart(columns, size) } else { columns };
    let copied = (row_stride != columns).then(|| {
        let mut rows = vec![0_u64; (groups * features * row_stride * size).div_ceil(8)];
        let to = rows.as_mut_ptr().cast::<u8>();
        for (row, from) in weight.0.chunks(columns * size).enumerate() {
            // SAFETY: there is a row for each, which is longer.
            unsafe { to.add(row * row_stride * size).copy_from(from.as_ptr(), from.len()) };
        }
        rows
    });
    Gathered {
        kind,
        factor: WeightMatrices { weight, copied, row_stride, group_stride: features * row_stride },
        source: x,
        channels,
        input: geometry.input,
        step: geometry.stride,
        taps: geometry.offsets(),
        grid: geometry.output,
        rows: features,
        bias: bias.map(|bias| kind.widened(bias.0)),
        output: geometry.output,
        spread: [1; 3],
        start: [0; 3],
        groups,
        batch,
    }
    .write(y);
}

/// The gradient of the input, from the gradient `g` of the output; for itself, a transposed convolution.
///
/// With a stride, the inputs at places that are equal modulo the stride see the same taps. So each such part
/// of the input is a convolution of `g` with a stride of 1 and a part of the kernel.
pub(crate) fn input<'x, T: MatmulElement>(
    g: &[T],
    weight: &[T],
    dx: &'x mut Room<T>,
    geometry: &Geometry,
) -> &'x mut [T] {
    geometry.check(dx.len(), weight.len(), g.len());
    let [g, weight] = [g, weight].map(ElementBytes::of);
    // SAFETY: the lengths are checked. Each place of the input is in the part that starts at its position
    // modulo the stride, and all places of a part are written.
    unsafe {
        input_of(T::kind(), g, weight, To(dx.as_mut_ptr().cast()), geometry);
        written(dx)
    }
}

/// [`input`] of any type.
///
/// # Safety
/// The elements are of this kind, and `dx` has room for the input.
unsafe fn input_of(
    kind: &'static NumberKind,
    g: ElementBytes<'_>,
    weight: ElementBytes<'_>,
    dx: To,
    geometry: &Geometry,
) {
    let Geometry { batch, groups, channels, features, stride, .. } = *geometry;
    if geometry.is_pointwise() && features > 0 {
        let factor = MatrixView::rows(weight.0.as_ptr().cast_mut(), channels, kind.size).t();
        // SAFETY: the contract is the same.
        return unsafe { pointwise(kind, g, factor, None, dx, [channels, features], geometry) };
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(tiles) = TiledConvolution::of(kind, geometry, true) {
        // SAFETY: the contract is the same.
        if unsafe { tiles.write(To::of(g), To::of(weight), None, dx) } {
            return;
        }
    }
    // A part that starts after the end has no places, and there can be many of them.
    for start in positions(std::array::from_fn(|dim| stride[dim].min(geometry.input[dim]))) {
        let grid = std::array::from_fn(|dim| (geometry.input[dim] - start[dim]).div_ceil(stride[dim]));
        let (taps, offsets) = taps_of_part(geometry, start);
        Gathered {
            kind,
            factor: transposed(kind, weight, &taps, geometry),
            source: g,
            channels: features,
            input: geometry.output,
            step: [1; 3],
            taps: offsets,
            grid,
            rows: channels,
            bias: None,
            output: geometry.input,
            spread: stride,
            start,
            groups,
            batch,
        }
        .write(dx);
    }
}

/// The gradient `dw` of the weight, from the input `x` and the gradient `g` of the output.
pub(crate) fn weight<'w, T: MatmulElement>(
    x: &[T],
    g: &[T],
    dw: &'w mut Room<T>,
    geometry: &Geometry,
) -> &'w mut [T] {
    geometry.check(x.len(), dw.len(), g.len());
    let [x, g] = [x, g].map(ElementBytes::of);
    // SAFETY: the lengths are checked, and all of `dw` is written.
    unsafe {
        weight::weight_of(T::kind(), x, g, (To(dw.as_mut_ptr().cast()), dw.len()), geometry);
        written(dw)
    }
}

/// The taps that the inputs at `start` plus multiples of the stride see, and the places of their outputs
/// relative to that multiple.
fn taps_of_part(geometry: &Geometry, start: [usize; 3]) -> (Vec<usize>, Vec<[isize; 3]>) {
    let Geometry { stride, padding, dilation, .. } = *geometry;
    let distance = |tap: [usize; 3], dim: usize| {
        (start[dim] + padding[dim]) as isize - (tap[dim] * dilation[dim]) as isize
    };
    let (mut taps, mut places) = (Vec::new(), Vec::new());
    for (at, tap) in positions(geometry.kernel).into_iter().enumerate() {
        let (mut place, mut is_seen) = ([0; 3], true);
        for dim in 0..3 {
            let (distance, stride) = (distance(tap, dim), stride[dim] as isize);
            is_seen &= distance % stride == 0;
            place[dim] = distance / stride;
        }
        if is_seen {
            taps.push(at);
            places.push(place);
        }
    }
    (taps, places)
}

/// Some taps of the weight with rows for the channels of the input.
fn transposed<'a>(
    kind: &'static NumberKind,
    weight: ElementBytes<'a>,
    taps: &[usize],
    geometry: &Geometry,
) -> WeightMatrices<'a> {
    let Geometry { groups, channels, features, .. } = *geometry;
    let (all, columns) = (geometry.taps(), features * taps.len());
    let row_stride = apart(columns, kind.size);
    let mut copied = vec![0_u64; (groups * channels * row_stride * kind.size).div_ceil(8)];
    // SAFETY: a filter has `channels` times all taps of this width, and there is a row for each channel of
    // each group.
    dispatch!(size kind.size, W => unsafe {
        let (from, to) = (weight.by_width::<W>().as_ptr(), copied.as_mut_ptr().cast::<W>());
        for row in 0..groups * channels {
            let (group, channel) = (row / channels, row % channels);
            for feature in 0..features {
                let from = from.add(((group * features + feature) * channels + channel) * all);
                let to = to.add(row * row_stride + feature * taps.len());
                for (at, tap) in taps.iter().enumerate() {
                    to.add(at).write(*from.add(*tap));
                }
            }
        }
    });
    WeightMatrices { weight, copied: Some(copied), row_stride, group_stride: channels * row_stride }
}

/// A convolution without neighbors: the product of `factor`, which has `rows` by `columns` elements for each
/// group, and the channels of `x`.
///
/// # Safety
/// The operands have these sizes.
unsafe fn pointwise(
    kind: &'static NumberKind,
    x: ElementBytes<'_>,
    factor: MatrixView,
    bias: Option<ElementBytes<'_>>,
    y: To,
    [rows, columns]: [usize; 2],
    geometry: &Geometry,
) {
    let (places, groups, batch) = (volume(&geometry.input), geometry.groups, geometry.batch);
    let offsets = |i: usize| {
        let (factor, x, y) = (i % groups * rows * columns, i * columns * places, i * rows * places);
        (factor as isize, x as isize, y as isize)
    };
    if let Some(bias) = bias {
        // SAFETY: each channel of each image has its places and a bias of this width.
        dispatch!(size kind.size, W => each(batch * groups * rows, &|channel| unsafe {
            let bias = bias.by_width::<W>()[channel % (groups * rows)];
            std::slice::from_raw_parts_mut(y.ptr().cast::<W>().add(channel * places), places).fill(bias);
        }));
    }
    let [x, to] = [x.0.as_ptr().cast_mut(), y.0].map(|ptr| MatrixView::rows(ptr, places, kind.size));
    // SAFETY: the caller guarantees the sizes. Each product writes the rows of another group or image of `y`,
    // all of them, and reads them only if they were filled with the bias.
    unsafe {
        let sizes = [rows, columns, places];
        gemm_batched(kind, (batch * groups, &offsets), sizes, factor, x, bias.is_some(), to);
    }
}
