//! Convolution over up to three dims, and its gradients, as products of matrices.
//!
//! All three directions are products with the windows of a tensor. Column `p` of the matrix of windows has
//! the elements under the kernel at place `p`. It would have as many copies of each element as the kernel has
//! taps, so it is never made as a whole: a thread packs the columns of some places into a block that stays in
//! its cache, multiplies the block, and goes on.
//!
//! Read [`Geometry`] first, then `windows` (packing), `gathered` (the product that makes an output, and the
//! gradient of an input) and `weight` (the gradient of a weight). The dims of a line or an image are the last
//! ones of three; the others have one element.

mod gathered;
mod weight;
mod windows;

use super::matmul::{Accumulator, Mat, MatmulElement, gemm_batched, rows_collide};
use super::room::{Room, fill, written};
use super::threads::write_parts;
use gathered::Gathered;
use std::borrow::Cow;

pub(crate) use weight::weight;

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

/// The elements of a block.
fn volume(sizes: &[usize; 3]) -> usize {
    sizes.iter().product()
}

/// All positions in a block of these sizes, in row-major order.
fn positions([depth, height, width]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..depth).flat_map(move |d| (0..height).flat_map(move |h| (0..width).map(move |w| [d, h, w])))
}

impl Geometry {
    /// The taps of the kernel.
    fn taps(&self) -> usize {
        volume(&self.kernel)
    }

    /// The position of each tap in the input, relative to `stride t`.
    fn offsets(&self) -> Vec<[isize; 3]> {
        let offset = |tap: [usize; 3]| {
            std::array::from_fn(|dim| (tap[dim] * self.dilation[dim]) as isize - self.padding[dim] as isize)
        };
        positions(self.kernel).map(offset).collect()
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

/// The matrices of a weight, one for each group.
struct Factor<'a, T: Clone> {
    elements: Cow<'a, [T]>,
    row_stride: usize,
    group_stride: usize,
}

fn zero<T: MatmulElement>() -> T {
    T::narrow(T::Acc::ZERO)
}

/// The row stride at which the rows of a matrix do not evict each other from the cache.
fn apart<T>(columns: usize) -> usize {
    if rows_collide::<T>(columns) { columns + 64 / size_of::<T>() } else { columns }
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
    let Geometry { batch, groups, channels, features, .. } = *geometry;
    let columns = channels * geometry.taps();
    if geometry.is_pointwise() && columns > 0 {
        let factor = Mat { ptr: weight.as_ptr(), row_stride: columns as isize, col_stride: 1 };
        return pointwise(x, factor, bias, y, [features, columns], geometry);
    }
    let row_stride = if features > 1 { apart::<T>(columns) } else { columns };
    let elements = if row_stride == columns {
        Cow::Borrowed(weight)
    } else {
        let mut rows = vec![zero::<T>(); groups * features * row_stride];
        for (to, row) in rows.chunks_mut(row_stride).zip(weight.chunks(columns)) {
            to[..columns].copy_from_slice(row);
        }
        Cow::Owned(rows)
    };
    Gathered {
        factor: Factor { elements, row_stride, group_stride: features * row_stride },
        source: x,
        channels,
        input: geometry.input,
        step: geometry.stride,
        taps: geometry.offsets(),
        grid: geometry.output,
        rows: features,
        bias,
        output: geometry.output,
        spread: [1; 3],
        start: [0; 3],
        groups,
        batch,
    }
    .write(y);
    // SAFETY: the grid is the output, of which each place is written.
    unsafe { written(y) }
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
    let Geometry { batch, groups, channels, features, stride, .. } = *geometry;
    if geometry.is_pointwise() && features > 0 {
        let factor = Mat { ptr: weight.as_ptr(), row_stride: 1, col_stride: channels as isize };
        return pointwise(g, factor, None, dx, [channels, features], geometry);
    }
    // A part that starts after the end has no places, and there can be many of them.
    for start in positions(std::array::from_fn(|dim| stride[dim].min(geometry.input[dim]))) {
        let grid = std::array::from_fn(|dim| (geometry.input[dim] - start[dim]).div_ceil(stride[dim]));
        let (taps, offsets) = taps_of_part(geometry, start);
        Gathered {
            factor: transposed(weight, &taps, geometry),
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
    // SAFETY: each place of the input is in the part that starts at its position modulo the stride, and all
    // places of a part are written.
    unsafe { written(dx) }
}

/// The taps that the inputs at `start` plus multiples of the stride see, and the places of their outputs
/// relative to that multiple.
fn taps_of_part(geometry: &Geometry, start: [usize; 3]) -> (Vec<usize>, Vec<[isize; 3]>) {
    let Geometry { stride, padding, dilation, .. } = *geometry;
    let distance = |tap: [usize; 3], dim: usize| {
        (start[dim] + padding[dim]) as isize - (tap[dim] * dilation[dim]) as isize
    };
    positions(geometry.kernel)
        .enumerate()
        .filter(|(_, tap)| (0..3).all(|dim| distance(*tap, dim) % stride[dim] as isize == 0))
        .map(|(at, tap)| (at, std::array::from_fn(|dim| distance(tap, dim) / stride[dim] as isize)))
        .unzip()
}

/// Some taps of the weight with rows for the channels of the input.
fn transposed<T: MatmulElement>(weight: &[T], taps: &[usize], geometry: &Geometry) -> Factor<'static, T> {
    let Geometry { groups, channels, features, .. } = *geometry;
    let (all, columns) = (geometry.taps(), features * taps.len());
    let row_stride = apart::<T>(columns);
    let mut elements = vec![zero::<T>(); groups * channels * row_stride];
    for (group, weight) in weight.chunks((features * channels * all).max(1)).enumerate() {
        for channel in 0..channels {
            let row = &mut elements[(group * channels + channel) * row_stride..][..columns];
            for (feature, row) in row.chunks_mut(taps.len().max(1)).enumerate() {
                let from = &weight[(feature * channels + channel) * all..][..all];
                row.iter_mut().zip(taps).for_each(|(to, tap)| *to = from[*tap]);
            }
        }
    }
    Factor { elements: Cow::Owned(elements), row_stride, group_stride: channels * row_stride }
}

/// A convolution without neighbors: the product of `factor`, which has `rows` by `columns` elements for each
/// group, and the channels of `x`.
fn pointwise<'y, T: MatmulElement>(
    x: &[T],
    factor: Mat<*const T>,
    bias: Option<&[T]>,
    y: &'y mut Room<T>,
    [rows, columns]: [usize; 2],
    geometry: &Geometry,
) -> &'y mut [T] {
    let (places, groups) = (volume(&geometry.input), geometry.groups);
    let offsets = |i: usize| {
        let (factor, x, y) = (i % groups * rows * columns, i * columns * places, i * rows * places);
        (factor as isize, x as isize, y as isize)
    };
    let beta = match bias {
        Some(bias) if places > 0 => {
            write_parts(y, places, &|channel, y| fill(y, bias[channel % bias.len()]));
            T::Acc::ONE
        }
        _ => T::Acc::ZERO,
    };
    let x = Mat { ptr: x.as_ptr(), row_stride: places as isize, col_stride: 1 };
    let to = Mat { ptr: y.as_mut_ptr().cast(), row_stride: places as isize, col_stride: 1 };
    // SAFETY: the caller has checked the lengths. Each product writes the rows of another group or image of
    // `y`, all of them, and reads them only if they were filled with the bias.
    unsafe {
        gemm_batched(
            geometry.batch * groups,
            &offsets,
            rows,
            columns,
            places,
            T::Acc::ONE,
            factor,
            x,
            beta,
            to,
        );
        written(y)
    }
}
