//! The elements around the input of a convolution.

use super::*;
use crate::functional::PadMode;
use crate::functional::image::repeated;
use namegrad_core::args::{Extents, Padding};

/// Images with copies of their own elements around them, along the last dims.
#[track_caller]
pub(super) fn padded(
    op: &'static str,
    images: Tensor,
    kernel: &[Named],
    padding: Padding,
    dilation: Extents,
    mode: PaddingMode,
) -> Result<Tensor> {
    let dims = kernel.len();
    let around: Vec<(usize, usize)> = match padding {
        Padding::Valid => return Ok(images),
        Padding::Zeros(each) => {
            each.over(op, "padding", dims)?.into_iter().map(|each| (each, each)).collect()
        }
        Padding::Same => {
            let dilation = dilation.over(op, "dilation", dims)?;
            let total = |(dilation, (_, size)): (usize, &Named)| dilation.saturating_mul(size - 1);
            dilation.into_iter().zip(kernel).map(total).map(|total| (total / 2, total - total / 2)).collect()
        }
    };
    let mode = match mode {
        PaddingMode::Zeros => PadMode::Constant,
        PaddingMode::Reflect => PadMode::Reflect,
        PaddingMode::Replicate => PadMode::Replicate,
        PaddingMode::Circular => PadMode::Circular,
    };
    let first = images.ndim() - dims;
    let pads: Vec<(usize, [isize; 2])> = around
        .into_iter()
        .enumerate()
        .map(|(at, (before, after))| {
            (first + at, [before, after].map(|pad| isize::try_from(pad).unwrap_or(isize::MAX)))
        })
        .collect();
    repeated(op, &images, &pads, mode)
}
