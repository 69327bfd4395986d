//! The elements around the input of a convolution.

use super::*;
use crate::functional::PadMode;
use crate::functional::image::repeated;

impl ConvolutionConfig {
    /// Images with copies of their own elements around them, along the last dims.
    pub(super) fn padded(&self, images: Tensor) -> Result<Tensor> {
        let dims = self.kernel.len();
        let numbers = match self.padding {
            Padding::Valid => return Ok(images),
            Padding::Zeros(each) => each.over("", "padding", dims)?,
            Padding::Same => self.dilation.over("", "dilation", dims)?,
        };
        let limited = |pad: usize| isize::try_from(pad).unwrap_or(isize::MAX);
        let (first, mut pads) = (images.ndim() - dims, Vec::with_capacity(dims));
        for (at, number) in numbers.into_iter().enumerate() {
            let times = if self.padding == Padding::Same { self.kernel[at].1 - 1 } else { 2 };
            let both = number.saturating_mul(times);
            pads.push((first + at, [limited(both / 2), limited(both - both / 2)]));
        }
        let mode = match self.mode {
            PaddingMode::Zeros => PadMode::Constant,
            PaddingMode::Reflect => PadMode::Reflect,
            PaddingMode::Replicate => PadMode::Replicate,
            PaddingMode::Circular => PadMode::Circular,
        };
        repeated(&images, &pads, mode)
    }
}
