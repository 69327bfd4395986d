//! The elements around the input of a convolution.

use super::*;
use crate::functional::PadMode;
use crate::functional::image::repeated;
use namegrad_core::args::{Extents, Padding};

/// Images with copies of their own elements around them, along the last dims.
pub(super) fn padded(
    images: Tensor,
    kernel: &[Named],
    padding: Padding,
    dilation: Extents,
    mode: PaddingMode,
) -> Result<Tensor> {
    let dims = kernel.len();
    let mut around = Vec::with_capacity(dims);
    match padding {
        Padding::Valid => return Ok(images),
        Padding::Zeros(each) => {
            for each in each.over("", "padding", dims)? {
                around.push([each, each]);
            }
        }
        Padding::Same => {
            for (dilation, (_, size)) in dilation.over("", "dilation", dims)?.into_iter().zip(kernel) {
                let total = dilation.saturating_mul(size - 1);
                around.push([total / 2, total - total / 2]);
            }
        }
    }
    let mode = match mode {
        PaddingMode::Zeros => PadMode::Constant,
        PaddingMode::Reflect => PadMode::Reflect,
        PaddingMode::Replicate => PadMode::Replicate,
        PaddingMode::Circular => PadMode::Circular,
    };
    let first = images.ndim() - dims;
    let mut pads = Vec::with_capacity(dims);
    let limited = |pad: usize| isize::try_from(pad).unwrap_or(isize::MAX);
    for (at, [before, after]) in around.into_iter().enumerate() {
        pads.push((first + at, [limited(before), limited(after)]));
    }
    repeated(&images, &pads, mode)
}
