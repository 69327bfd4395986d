//! Convolution over the last one, two or three dims, and its gradients, which are ops as well, so that they
//! can be differentiated again.
//!
//! The three ops are the gradients of one sum of products, of an input, a weight and an output. The gradient
//! of each is another one of them.

use crate::args::{Extents, Padding, SPATIAL};
use crate::cpu::conv::{self, Geometry};
use crate::cpu::matmul::has_fast_bf16;
use crate::device::takes;
use crate::dtype::{Category, DType, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Sizes;
use crate::names::{Names, rules};
use crate::tensor::{NamedTensor, Unwritten};
use namegrad_macros::ops;
use std::panic::Location;

ops! { conv;
    //! # Convolution
    /// Convolution, which in deep learning means cross-correlation, over one, two or three dims: for an
    /// image, `y[n, o, h, w] = bias[o] + Σ weight[o, c, i, j] x[n, c, stride h + dilation i - padding, ..]`.
    /// The channels are split into `groups`, each with its own part of the weight.
    ///
    /// Dims are found by position; `F::conv2d` finds them by name.
    ///
    /// # Shapes
    /// - `x`: `[N, C, H, W]`, or `[C, H, W]` without a batch; one, two or three dims after `C`
    /// - `weight`: `[out, C / groups, kernel height, kernel width]`
    /// - `bias`: `[out]`
    /// - result: `[N, out, H', W']`, with
    ///   `H' = (H + 2 padding - dilation (kernel height - 1) - 1) / stride + 1`
    ///
    /// # Source
    /// Dumoulin, Visin, *A guide to convolution arithmetic for deep learning* (2016), sections 2 and 4.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[[1.0, 2.0, 4.0, 8.0]]])?;
    /// let slope = Tensor::new([[[-1.0, 1.0]]])?;
    /// assert_eq!(x.convolution(&slope)?.to_vec::<f32>()?, [1.0, 2.0, 4.0]);
    /// let wide = x.convolution_with(&slope, ConvolutionOptions::new().stride(2).padding(1))?;
    /// assert_eq!(wide.to_vec::<f32>()?, [1.0, 2.0, -8.0]);
    /// # Ok::<(), Error>(())
    /// ```
    convolution (
        x, weight, bias?;
        stride: Extents = 1, padding: Padding = 0, dilation: Extents = 1, groups: usize = 1
    ) on floats integers names keeps, weight: renames channels, bias: along channels;
    /// The gradient of the input of a [`convolution`](Self::convolution), from the gradient of its output;
    /// for itself, a transposed convolution. `sizes` are those of the input in the dims that the kernel
    /// slides along.
    ///
    /// # Shapes
    /// - this tensor: the output, `[N, out, H', W']` or `[out, H', W']`
    /// - `weight`: `[out, C / groups, kernel height, kernel width]`
    /// - result: `[N, C, H, W]`, without names
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let g = Tensor::new([[1.0, 10.0]])?;
    /// let weight = Tensor::new([[[1.0, 2.0]]])?;
    /// assert_eq!(g.convolution_input(&weight, 3)?.to_vec::<f32>()?, [1.0, 12.0, 20.0]);
    /// # Ok::<(), Error>(())
    /// ```
    convolution_input (
        x, weight; sizes: Extents,
        stride: Extents = 1, padding: Padding = 0, dilation: Extents = 1, groups: usize = 1
    ) on floats integers names unnamed, weight: free;
    /// The gradient of the weight of a [`convolution`](Self::convolution) of this tensor, from the gradient
    /// `g` of its output. `sizes` are those of the kernel.
    ///
    /// # Shapes
    /// - this tensor: the input, `[N, C, H, W]` or `[C, H, W]`
    /// - `g`: the output, `[N, out, H', W']` or `[out, H', W']`
    /// - result: `[out, C / groups, kernel height, kernel width]`, without names
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0, 4.0]])?;
    /// let g = Tensor::new([[1.0, 10.0]])?;
    /// assert_eq!(x.convolution_weight(&g, 2)?.to_vec::<f32>()?, [21.0, 42.0]);
    /// # Ok::<(), Error>(())
    /// ```
    convolution_weight (
        x, g; sizes: Extents,
        stride: Extents = 1, padding: Padding = 0, dilation: Extents = 1, groups: usize = 1
    ) on floats integers names unnamed, g: free;
}

/// The arguments of a convolution.
#[derive(Clone, Copy)]
struct ConvArguments {
    stride: Extents,
    padding: Padding,
    dilation: Extents,
    groups: usize,
}

/// The sizes along the dims that a kernel slides along.
struct SlidingSizes {
    stride: Vec<usize>,
    /// The zeros before and after.
    padding: Vec<(usize, usize)>,
    dilation: Vec<usize>,
    output: Vec<usize>,
}

/// The sizes of an input and an output, and the positions of their channels.
struct ConvSizes {
    batch: Option<usize>,
    channels: usize,
    spatial: Vec<usize>,
}

impl ConvArguments {
    /// The sizes of the output.
    #[track_caller]
    fn along(
        self,
        op: &'static str,
        inputs: &[&NamedTensor],
        input: &[usize],
        kernel: &[usize],
    ) -> Result<SlidingSizes> {
        let caller = Location::caller();
        let fail = |kind, message: String| Error::about(inputs, kind, op, message).at(caller);
        let dims = kernel.len();
        let numbers = |name, extents: Extents| {
            extents.over(op, name, dims).map_err(|error| error.with_inputs(inputs).at(caller))
        };
        let (stride, dilation) = (numbers("stride", self.stride)?, numbers("dilation", self.dilation)?);
        for (name, numbers) in [("stride", &stride), ("dilation", &dilation)] {
            if numbers.len() != dims || numbers.contains(&0) {
                let message = format!("`{name}` must be at least 1, got {numbers:?}");
                return Err(fail(ErrorKind::Value, message).with_repair(format!(".{name}(1)")));
            }
        }
        if self.groups == 0 {
            let error = fail(ErrorKind::Value, "`groups` must be at least 1, got 0".into());
            return Err(error.with_repair(".groups(1)"));
        }
        // A span that is too large for a number fits into no input.
        let span = |dim: usize| dilation[dim].saturating_mul(kernel[dim].saturating_sub(1)).saturating_add(1);
        let padding: Vec<(usize, usize)> = match self.padding {
            Padding::Same if stride.iter().any(|stride| *stride != 1) => {
                let message = format!("padding of the same size needs a stride of 1, got {stride:?}");
                return Err(fail(ErrorKind::Value, message).with_repair(".stride(1)"));
            }
            Padding::Same => crate::list((0..dims).map(|dim| ((span(dim) - 1) / 2, span(dim) / 2))),
            Padding::Valid => vec![(0, 0); dims],
            Padding::Zeros(zeros) => {
                let zeros = numbers("padding", zeros)?;
                if zeros.len() != dims {
                    return Err(fail(
                        ErrorKind::Value,
                        format!("`padding` must be {dims} numbers, got none"),
                    ));
                }
                crate::list(zeros.into_iter().map(|zeros| (zeros, zeros)))
            }
        };
        let mut output = Vec::with_capacity(dims);
        for dim in 0..dims {
            let (before, after) = padding[dim];
            let length = input[dim].checked_add(before).and_then(|length| length.checked_add(after));
            let Some(length) = length.filter(|length| *length <= isize::MAX as usize) else {
                let message = format!("out of memory: a size of {} and padding {before}", input[dim]);
                return Err(fail(ErrorKind::OutOfMemory, message));
            };
            if kernel[dim] == 0 || span(dim) > length {
                let message = format!(
                    "a kernel over {} elements does not fit into a length of {length}, padding included",
                    if kernel[dim] == 0 { 0 } else { span(dim) }
                );
                let lacking = span(dim).saturating_sub(length).div_ceil(2).saturating_add(before);
                return Err(fail(ErrorKind::Shape, message)
                    .with_repair(format!(".padding({lacking}), which adds zeros at the borders")));
            }
            output.push((length - span(dim)) / stride[dim] + 1);
        }
        Ok(SlidingSizes { stride, padding, dilation, output })
    }
}

/// The sizes of a tensor with channels before `dims` dims, and perhaps a batch dim before the channels.
#[track_caller]
fn parts(op: &'static str, inputs: &[&NamedTensor], x: &NamedTensor, dims: usize) -> Result<ConvSizes> {
    let spatial = ["length", "height, width", "depth, height, width"][dims - 1];
    match x.ndim().checked_sub(dims) {
        Some(1) => Ok(ConvSizes { batch: None, channels: x.sizes()[0], spatial: x.sizes()[1..].to_vec() }),
        Some(2) => Ok(ConvSizes {
            batch: Some(x.sizes()[0]),
            channels: x.sizes()[1],
            spatial: x.sizes()[2..].to_vec(),
        }),
        _ => {
            let message = format!(
                "expected an input [N, channels, {spatial}] or [channels, {spatial}] for a kernel over {dims} dims, got {} dims",
                x.ndim()
            );
            Err(Error::about(inputs, ErrorKind::Shape, op, message))
        }
    }
}

/// The number of dims that the kernel of a weight slides along.
#[track_caller]
fn dims_of(op: &'static str, inputs: &[&NamedTensor], weight: &NamedTensor) -> Result<usize> {
    match weight.ndim().checked_sub(2) {
        Some(dims @ 1..=SPATIAL) => Ok(dims),
        _ => {
            let message = format!(
                "expected a weight [out, channels, kernel..] with one to three dims of the kernel, got {} dims",
                weight.ndim()
            );
            Err(Error::about(inputs, ErrorKind::Shape, op, message))
        }
    }
}

/// The dtype of all inputs.
#[track_caller]
fn common_dtype(op: &'static str, inputs: &[&NamedTensor]) -> Result<DType> {
    let dtype = inputs[1].dtype();
    if dtype == DType::Bool {
        let message = "not implemented for bool; it takes the integers and floats";
        let error = Error::about(inputs, ErrorKind::DType, op, message);
        return Err(error.with_repair("x.to(DType::F32)?, and the other inputs alike"));
    }
    for (which, x) in ["x", "", "bias"].into_iter().zip(inputs) {
        if x.dtype() != dtype {
            let message = format!("{which} is {}, and the weight is {dtype}", x.dtype());
            let error = Error::about(inputs, ErrorKind::DType, op, message);
            return Err(error.with_repair(format!("{which}.to(DType::{dtype:?})?")));
        }
    }
    Ok(dtype)
}

/// The dtype of the operands that a convolution computes with: halves in `f32` unless the CPU has products of
/// `bf16`, integers in `i64`, which has their low bits.
fn compute(dtype: DType) -> DType {
    match dtype.category() {
        _ if dtype == DType::BF16 && has_fast_bf16() => dtype,
        Category::Float => dtype.compute(),
        _ => DType::I64,
    }
}

/// The sizes as those of three dims: the missing ones come first and have one element.
fn block(numbers: &[usize], missing: usize) -> [usize; 3] {
    std::array::from_fn(|dim| match (dim + numbers.len()).checked_sub(3) {
        Some(at) => numbers[at],
        None => missing,
    })
}

/// Whether there are channels for the groups. Any number divides 0, but the loops visit each group.
fn splits(groups: usize, channels: [usize; 2]) -> bool {
    groups == 1 || channels.iter().any(|channels| groups <= *channels)
}

/// Checks that channels and groups fit.
#[track_caller]
fn check_channels(
    op: &'static str,
    inputs: &[&NamedTensor],
    channels: usize,
    [out, own]: [usize; 2],
    groups: usize,
) -> Result<()> {
    if !splits(groups, [channels, out]) || !out.is_multiple_of(groups) {
        let message = format!("{out} output channels cannot be split into {groups} groups");
        return Err(Error::about(inputs, ErrorKind::Shape, op, message).with_repair(".groups(1)"));
    }
    let expected = own.saturating_mul(groups);
    if channels == expected {
        return Ok(());
    }
    let groups = if groups == 1 { String::new() } else { format!(" in each of {groups} groups") };
    let message = format!("the weight has {own} channels{groups}, and the input has {channels}");
    Err(Error::about(inputs, ErrorKind::Shape, op, message))
}

/// The sizes in the form that the loops take.
fn geometry(
    batch: usize,
    [channels, features]: [usize; 2],
    groups: usize,
    input: &[usize],
    kernel: &[usize],
    along: &SlidingSizes,
) -> Geometry {
    let before: Vec<usize> = crate::list(along.padding.iter().map(|(before, _)| *before));
    Geometry {
        batch,
        groups,
        channels: channels / groups,
        features: features / groups,
        input: block(input, 1),
        kernel: block(kernel, 1),
        output: block(&along.output, 1),
        stride: block(&along.stride, 1),
        padding: block(&before, 0),
        dilation: block(&along.dilation, 1),
    }
}

/// `[N, channels, spatial..]`, or without the batch.
fn sizes_of(batch: Option<usize>, channels: usize, spatial: &[usize]) -> Sizes {
    let mut sizes = Sizes::from_slice(batch.as_slice());
    sizes.push(channels);
    sizes.extend_from_slice(spatial);
    sizes
}

pub(crate) mod kernels {
    use super::*;

    #[track_caller]
    pub(crate) fn convolution(
        x: &NamedTensor,
        weight: &NamedTensor,
        bias: Option<&NamedTensor>,
        stride: Extents,
        padding: Padding,
        dilation: Extents,
        groups: usize,
    ) -> Result<NamedTensor> {
        const OP: &str = "convolution";
        let inputs: Vec<&NamedTensor> = crate::list([x, weight].into_iter().chain(bias));
        let dims = dims_of(OP, &inputs, weight)?;
        let ConvSizes { batch, channels, spatial } = parts(OP, &inputs, x, dims)?;
        let dtype = common_dtype(OP, &inputs)?;
        let (features, kernel) = (weight.sizes()[0], &weight.sizes()[2..]);
        let along =
            ConvArguments { stride, padding, dilation, groups }.along(OP, &inputs, &spatial, kernel)?;
        check_channels(OP, &inputs, channels, [features, weight.sizes()[1]], groups)?;
        if let Some(bias) = bias
            && *bias.sizes() != [features]
        {
            let message = format!("the bias must have sizes [{features}], got {:?}", bias.sizes());
            return Err(Error::about(&inputs, ErrorKind::Shape, OP, message));
        }
        let geometry = geometry(batch.unwrap_or(1), [channels, features], groups, &spatial, kernel, &along);
        let (channel, both) = (x.ndim() - dims - 1, [x.input(), weight.input()]);
        if weight.has_names() {
            (0..=dims)
                .try_for_each(|dim| rules::agree(OP, ["x", "weight"], both, [channel + dim, 1 + dim]))?;
            bias.map_or(Ok(()), |bias| {
                rules::agree(OP, ["weight", "bias"], [weight.input(), bias.input()], [0, 0])
            })?;
        }
        let mut names = x.names().to_vec(x.ndim());
        names[channel] = weight.name(0);
        let names = Names::new(OP, names).map_err(|error| error.with_inputs(&inputs))?;
        let wide = compute(dtype);
        let out = Unwritten::of(OP, &sizes_of(batch, features, &along.output), names, wide)?;
        let (x, weight) = (dense(x, wide)?, dense(weight, wide)?);
        let bias = bias.map(|bias| dense(bias, wide)).transpose()?;
        let y = dispatch!(wide, product T => {
            let bias = bias.as_ref().map(|bias| bias.elements::<T>()).transpose()?;
            let (x, weight) = (x.elements::<T>()?, weight.elements::<T>()?);
            takes(|| conv::room_of::<T>(&geometry, false));
            out.write(|y| conv::output(x, weight, bias, y, &geometry))
        });
        y.into_dtype(dtype)
    }

    /// The elements in memory, in the order of the dims.
    #[track_caller]
    fn dense(x: &NamedTensor, dtype: DType) -> Result<NamedTensor> {
        x.cast(dtype)?.contiguous()
    }

    /// The sizes given for `dims` dims.
    #[track_caller]
    fn given(op: &'static str, inputs: &[&NamedTensor], sizes: Extents, dims: usize) -> Result<Vec<usize>> {
        let sizes = sizes.over(op, "sizes", dims).map_err(|error| error.with_inputs(inputs))?;
        if sizes.len() != dims {
            let message = format!("`sizes` must be {dims} numbers, got none");
            return Err(Error::about(inputs, ErrorKind::Value, op, message));
        }
        Ok(sizes)
    }

    /// Checks that the output has the sizes that follow from the others.
    #[track_caller]
    fn check_output(
        op: &'static str,
        inputs: &[&NamedTensor],
        along: &SlidingSizes,
        output: &[usize],
    ) -> Result<()> {
        if along.output == output {
            return Ok(());
        }
        let message =
            format!("the output of such a convolution has sizes {:?}, got {output:?}", along.output);
        Err(Error::about(inputs, ErrorKind::Shape, op, message))
    }

    #[track_caller]
    pub(crate) fn convolution_input(
        x: &NamedTensor,
        weight: &NamedTensor,
        sizes: Extents,
        stride: Extents,
        padding: Padding,
        dilation: Extents,
        groups: usize,
    ) -> Result<NamedTensor> {
        const OP: &str = "convolution_input";
        let inputs = [x, weight];
        let dims = dims_of(OP, &inputs, weight)?;
        let ConvSizes { batch, channels: features, spatial } = parts(OP, &inputs, x, dims)?;
        let dtype = common_dtype(OP, &inputs)?;
        let (sizes, kernel) = (given(OP, &inputs, sizes, dims)?, &weight.sizes()[2..]);
        let along = ConvArguments { stride, padding, dilation, groups }.along(OP, &inputs, &sizes, kernel)?;
        let channels = weight.sizes()[1].saturating_mul(groups);
        check_channels(OP, &inputs, channels, [weight.sizes()[0], weight.sizes()[1]], groups)?;
        if features != weight.sizes()[0] {
            let message = format!(
                "the weight has {} output channels, and the output has {features}",
                weight.sizes()[0]
            );
            return Err(Error::about(&inputs, ErrorKind::Shape, OP, message));
        }
        check_output(OP, &inputs, &along, &spatial)?;
        let geometry = geometry(batch.unwrap_or(1), [channels, features], groups, &sizes, kernel, &along);
        let wide = compute(dtype);
        let out = Unwritten::of(OP, &sizes_of(batch, channels, &sizes), Names::none(), wide)?;
        let (x, weight) = (dense(x, wide)?, dense(weight, wide)?);
        let y = dispatch!(wide, product T => {
            let (x, weight) = (x.elements::<T>()?, weight.elements::<T>()?);
            takes(|| conv::room_of::<T>(&geometry, true));
            out.write(|y| conv::input(x, weight, y, &geometry))
        });
        y.into_dtype(dtype)
    }

    #[track_caller]
    pub(crate) fn convolution_weight(
        x: &NamedTensor,
        g: &NamedTensor,
        sizes: Extents,
        stride: Extents,
        padding: Padding,
        dilation: Extents,
        groups: usize,
    ) -> Result<NamedTensor> {
        const OP: &str = "convolution_weight";
        let inputs = [x, g];
        // A batch of lines or a single image, as the number of sizes says.
        let dims = sizes.list_len().unwrap_or(x.ndim().saturating_sub(2).max(1));
        if !(1..=SPATIAL).contains(&dims) {
            let message = format!("`sizes` must be one to three numbers, got {sizes}");
            return Err(Error::about(&inputs, ErrorKind::Value, OP, message));
        }
        let (of_x, of_g) = (parts(OP, &inputs, x, dims)?, parts(OP, &inputs, g, dims)?);
        let dtype = common_dtype(OP, &inputs)?;
        let sizes = given(OP, &inputs, sizes, dims)?;
        let along =
            ConvArguments { stride, padding, dilation, groups }.along(OP, &inputs, &of_x.spatial, &sizes)?;
        if of_x.batch != of_g.batch {
            let message = format!("the inputs have batches of {:?} and {:?}", of_x.batch, of_g.batch);
            return Err(Error::about(&inputs, ErrorKind::Shape, OP, message));
        }
        let channels = [of_x.channels, of_g.channels];
        if !splits(groups, channels) || channels.iter().any(|channels| !channels.is_multiple_of(groups)) {
            let message = format!(
                "{} and {} channels cannot be split into {groups} groups",
                of_x.channels, of_g.channels
            );
            return Err(Error::about(&inputs, ErrorKind::Shape, OP, message).with_repair(".groups(1)"));
        }
        check_output(OP, &inputs, &along, &of_g.spatial)?;
        let geometry = geometry(of_x.batch.unwrap_or(1), channels, groups, &of_x.spatial, &sizes, &along);
        let (wide, own) = (compute(dtype), [of_g.channels, of_x.channels / groups]);
        let shape: Sizes = crate::list(own.into_iter().chain(sizes));
        let out = Unwritten::of(OP, &shape, Names::none(), wide)?;
        let (x, g) = (dense(x, wide)?, dense(g, wide)?);
        let dw = dispatch!(wide, product T => {
            let (x, g) = (x.elements::<T>()?, g.elements::<T>()?);
            takes(|| conv::weight_room::<T>(&geometry));
            out.write(|dw| conv::weight(x, g, dw, &geometry))
        });
        dw.into_dtype(dtype)
    }
}
