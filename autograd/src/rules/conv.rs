//! Derivatives of convolutions: each is the gradient of one sum of products.

use crate::Tensor;
use namegrad_core::Result;
use namegrad_core::args::{Extents, Padding};
use namegrad_core::options::{ConvolutionInputOptions, ConvolutionOptions, ConvolutionWeightOptions};
use namegrad_macros::derivatives;

derivatives! { conv; |g, cx|
    convolution(x, weight, bias; stride, padding, dilation, groups) -> y {
        x: [weight; stride padding dilation groups]
            of_input(g, weight, cx.sizes(), (stride, padding, dilation, groups))?,
        weight: [x; stride padding dilation groups]
            of_weight(x, g, cx.sizes(), (stride, padding, dilation, groups))?,
        bias: [weight] of_bias(g, weight.ndim() - 2)?
    }
    convolution_input(x, weight; stride, padding, dilation, groups) -> y {
        x: [weight; stride padding dilation groups] of_output(g, weight, (stride, padding, dilation, groups))?,
        weight: [x; stride padding dilation groups]
            of_weight(g, x, cx.sizes(), (stride, padding, dilation, groups))?
    }
    convolution_weight(x, other; stride, padding, dilation, groups) -> y {
        x: [other; stride padding dilation groups]
            of_input(other, g, cx.sizes(), (stride, padding, dilation, groups))?,
        other: [x; stride padding dilation groups] of_output(x, g, (stride, padding, dilation, groups))?
    }
}

/// The arguments of a convolution: stride, padding, dilation and groups.
type StridesAndGroups = (Extents, Padding, Extents, usize);

fn of_output(
    x: &Tensor,
    weight: &Tensor,
    (stride, padding, dilation, groups): StridesAndGroups,
) -> Result<Tensor> {
    let options = ConvolutionOptions { bias: None, stride, padding, dilation, groups };
    x.rename(None).convolution_with(&weight.rename(None)?, options)
}

fn of_input(
    g: &Tensor,
    weight: &Tensor,
    sizes: &[usize],
    (stride, padding, dilation, groups): StridesAndGroups,
) -> Result<Tensor> {
    let options = ConvolutionInputOptions { stride, padding, dilation, groups };
    g.convolution_input_with(weight, &sizes[sizes.len() + 2 - weight.ndim()..], options)
}

fn of_weight(
    x: &Tensor,
    g: &Tensor,
    sizes: &[usize],
    (stride, padding, dilation, groups): StridesAndGroups,
) -> Result<Tensor> {
    let options = ConvolutionWeightOptions { stride, padding, dilation, groups };
    x.convolution_weight_with(g, &sizes[2..], options)
}

/// The sum over all dims except the channels, which are before `dims` dims.
fn of_bias(g: &Tensor, dims: usize) -> Result<Tensor> {
    let channel = g.ndim() - dims - 1;
    let others: Vec<usize> = crate::list((0..g.ndim()).filter(|dim| *dim != channel));
    g.sum(others)
}
