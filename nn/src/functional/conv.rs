//! Convolution and transposed convolution over one, two or three dims.
//!
//! All functions work alike: [`ImageDims`] finds the dims, by name or by position, and `Tensor::convolution`
//! and its gradient `Tensor::convolution_input` do the work.

use super::*;
use crate::dims::images::{ImageDims, Wanted};
use namegrad_autograd::autocast;
use namegrad_core::args::Padding;
use namegrad_core::options::{ConvolutionInputOptions, ConvolutionOptions};

functional! { conv;
    /// Convolution over one dim, which in deep learning means cross-correlation:
    /// `y[n, o, t] = bias[o] + Σ weight[o, c, k] x[n, c, stride t + dilation k - padding]`, with the sum over
    /// the channels `c` and the taps `k`. The channels are split into `groups`, each with its own part of the
    /// weight.
    ///
    /// The names of the weight say which dims of `x` are meant: the one with the name of its second dim has
    /// the channels, and the ones with the names of the dims after that are those that the kernel slides
    /// along. All other dims of `x` are batch dims, any number of them. A dim without a name, of the weight
    /// or of `x`, is matched by position, and so is everything if there are no names: then the channels are
    /// before the last dims, and at most one batch dim is before the channels.
    ///
    /// # Shapes
    /// - `x`: `[N, C, L]`, or `[C, L]` without a batch; any order if the dims are found by name
    /// - `weight`: `[out, C / groups, K]`
    /// - `bias`: `[out]`
    /// - result: the dims of `x`, with `out` in place of `C`, and with
    ///   `(L + 2 padding - dilation (K - 1) - 1) / stride + 1` in place of `L`
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0, 4.0, 8.0]])?.refine_names(["C", "time"])?;
    /// let slope = Tensor::new([[[-1.0, 1.0]]])?.refine_names(["F", "C", "time"])?;
    /// let y = F::conv1d(&x, &slope)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0, 4.0]);
    /// assert_eq!(*y.names(), ["F", "time"]);
    /// let halved = F::conv1d_with(&x.t()?, &slope, Conv1dOptions::new().stride(2))?;
    /// assert_eq!(halved.shape().to_string(), "[time=2, F=1]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes do not fit, such as a kernel that is larger than the padded input,
    /// [`ErrorKind::Value`] for a stride, dilation or number of groups of 0 and for
    /// [`Padding::Same`] with a stride, [`ErrorKind::DType`] if the dtypes differ,
    /// [`ErrorKind::NameNotFound`] if `x` lacks the channels, [`ErrorKind::DuplicateName`] if it already has
    /// the dim of the output.
    conv1d
    /// [`conv1d`] over two dims.
    ///
    /// # Shapes
    /// - `x`: `[N, C, H, W]`, or `[C, H, W]` without a batch; any order if the dims are found by name
    /// - `weight`: `[out, C / groups, kernel height, kernel width]`
    /// - `bias`: `[out]`
    /// - result: the dims of `x`, with `out` in place of `C`
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let frames = Tensor::rand([("N", 2), ("time", 7), ("H", 8), ("W", 8), ("C", 3)])?;
    /// let weight = Tensor::rand([("F", 16), ("C", 3), ("H", 3), ("W", 5)])?;
    /// let y = F::conv2d_with(&frames, &weight, Conv2dOptions::new().stride([2, 1]).padding([1, 2]))?;
    /// assert_eq!(y.shape().to_string(), "[N=2, time=7, H=4, W=8, F=16]");
    /// let by_name = Conv2dOptions::new().stride(("H", 2)).padding([("W", 2), ("H", 1)]);
    /// assert!(F::conv2d_with(&frames, &weight, by_name)?.equal(&y)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`conv1d`].
    conv2d
    /// [`conv1d`] over three dims.
    ///
    /// # Shapes
    /// - `x`: `[N, C, D, H, W]`, or `[C, D, H, W]` without a batch; any order if the dims are found by name
    /// - `weight`: `[out, C / groups, kernel depth, kernel height, kernel width]`
    /// - `bias`: `[out]`
    /// - result: the dims of `x`, with `out` in place of `C`
    ///
    /// # Errors
    /// Same as [`conv1d`].
    conv3d (x, weight, bias?; stride: Extents = 1, padding: Padding = 0, dilation: Extents = 1, groups: usize = 1)
        on floats integers names keeps, weight: renames channels, bias: along channels => {
        let (layout, dims) = layout(rank, [x, weight], bias, [1, 0])?;
        let (stride, dilation) = steps(stride, dilation, &dims)?;
        let padding = padding.in_order("", &dims)?;
        convolved(&layout, layout.apply(x)?, weight, bias, (stride, padding, dilation, groups))
    }
    /// Transposed convolution over one dim: the gradient of a [`conv1d`] with the same arguments, as a
    /// function of the gradient of its output. With a stride, it makes the result larger by about that
    /// factor.
    ///
    /// Dims are found as in [`conv1d`]; the first dim of the weight has the channels of `x`.
    /// `output_padding` adds elements at the end of the result, to choose one of the lengths that the
    /// convolution would take to the length of `x`.
    ///
    /// # Shapes
    /// - `x`: `[N, C, L]`, or `[C, L]` without a batch; any order if the dims are found by name
    /// - `weight`: `[C, out / groups, K]`
    /// - `bias`: `[out]`
    /// - result: the dims of `x`, with `out` in place of `C`, and with
    ///   `(L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1` in place of `L`
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 10.0]])?;
    /// let weight = Tensor::new([[[1.0, 2.0]]])?;
    /// let y = F::conv_transpose1d_with(&x, &weight, ConvTranspose1dOptions::new().stride(2))?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0, 10.0, 20.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`conv1d`], and [`ErrorKind::Value`] for an `output_padding` that is not smaller than the
    /// stride or the dilation.
    conv_transpose1d
    /// [`conv_transpose1d`] over two dims.
    ///
    /// # Shapes
    /// - `x`: `[N, C, H, W]`, or `[C, H, W]` without a batch; any order if the dims are found by name
    /// - `weight`: `[C, out / groups, kernel height, kernel width]`
    /// - `bias`: `[out]`
    /// - result: the dims of `x`, with `out` in place of `C`
    ///
    /// # Errors
    /// Same as [`conv_transpose1d`].
    conv_transpose2d
    /// [`conv_transpose1d`] over three dims.
    ///
    /// # Shapes
    /// - `x`: `[N, C, D, H, W]`, or `[C, D, H, W]` without a batch; any order if the dims are found by name
    /// - `weight`: `[C, out / groups, kernel depth, kernel height, kernel width]`
    /// - `bias`: `[out]`
    /// - result: the dims of `x`, with `out` in place of `C`
    ///
    /// # Errors
    /// Same as [`conv_transpose1d`].
    conv_transpose3d (
        x, weight, bias?; stride: Extents = 1, padding: Extents = 0, output_padding: Extents = 0,
        groups: usize = 1, dilation: Extents = 1
    ) on floats integers names keeps, weight: renames channels, bias: along channels => {
        let (layout, dims) = layout(rank, [x, weight], bias, [0, 1])?;
        let (stride, dilation) = steps(stride, dilation, &dims)?;
        let padding = padding.in_order("", "padding", &dims, Some(0.into()))?;
        let output_padding = output_padding.in_order("", "output_padding", &dims, Some(0.into()))?;
        let slide = TransposedArguments { stride, padding, output_padding, dilation, groups };
        let y = transposed_images(layout.apply(x)?, weight, rank, bias, slide)?;
        layout.restore(y)
    }
}

/// The layout of `x`, whose dims have the names of the weight. The channels of `x` and those of the result
/// have the names of these dims of the weight. Also the names of the dims that the kernel slides along.
fn layout(
    dims: usize,
    [x, weight]: [&Tensor; 2],
    bias: Option<&Tensor>,
    [own, made]: [usize; 2],
) -> Result<(ImageDims, Vec<Option<Name>>)> {
    let (count, wanted) = (weight.ndim(), dims + 2);
    (count == wanted).or_shape(format_args!(
        "expected a weight of {wanted} dims, two for the channels and {dims} for the kernel, got {count}"
    ))?;
    if let Some(bias) = bias.filter(|bias| bias.ndim() == 1) {
        check_meeting(("bias", bias, 0), ("the weight", weight.name(made)))?;
    }
    let spatial = names_at(weight, &range(2..weight.ndim()));
    let wanted =
        Wanted { channel: weight.name(own), spatial: &spatial, made: weight.name(made), of_weight: true };
    let layout = ImageDims::find(x, wanted)?;
    let names = crate::list(spatial.iter().zip(layout.spatial()).map(|(name, dim)| name.or(x.name(*dim))));
    Ok((layout, names))
}

/// The stride and the dilation in the order of dims with these names.
pub(crate) fn steps(stride: Extents, dilation: Extents, dims: &[Option<Name>]) -> Result<(Extents, Extents)> {
    let in_order = |name, given: Extents| given.in_order("", name, dims, Some(1.into()));
    Ok((in_order("stride", stride)?, in_order("dilation", dilation)?))
}

/// The convolution of images in the order `[batch, channels, ..]`, in the layout of their input: what
/// `F::conv2d` and the layer `Conv2d` call when they have found the dims.
pub(crate) fn convolved(
    layout: &ImageDims,
    images: Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    (stride, padding, dilation, groups): (Extents, Padding, Extents, usize),
) -> Result<Tensor> {
    let bias = bias.map(|bias| bias.rename(None)).transpose()?;
    let bias = bias.as_ref().map(Cow::Borrowed);
    let options = ConvolutionOptions { bias, stride, padding, dilation, groups };
    layout.restore(images.convolution_with(&weight.rename(None)?, options)?)
}

/// The arguments of a transposed convolution.
#[derive(Clone, Copy)]
pub(crate) struct TransposedArguments {
    pub(crate) stride: Extents,
    pub(crate) padding: Extents,
    pub(crate) output_padding: Extents,
    pub(crate) dilation: Extents,
    pub(crate) groups: usize,
}

/// Transposed convolution of images in the order `[batch, channels, ..]`.
pub(crate) fn transposed_images(
    mut images: Tensor,
    weight: &Tensor,
    dims: usize,
    bias: Option<&Tensor>,
    slide: TransposedArguments,
) -> Result<Tensor> {
    let first = images.ndim() - dims;
    let (channels, rows) = (images.sizes()[first - 1], weight.sizes()[0]);
    (channels == rows)
        .or_shape(format_args!("the weight has {rows} input channels, and the input has {channels}"))?;
    let TransposedArguments { stride, padding, output_padding, dilation, groups } = slide;
    let options = ConvolutionInputOptions { stride, padding: Padding::Zeros(padding), dilation, groups };
    let numbers = |name, extents: Extents| extents.over("", name, dims);
    let (stride, dilation) = (numbers("stride", stride)?, numbers("dilation", dilation)?);
    let (padding, extra) = (numbers("padding", padding)?, numbers("output_padding", output_padding)?);
    let mut sizes = Vec::with_capacity(dims);
    for dim in 0..dims {
        let (stride, dilation, extra) = (stride[dim], dilation[dim], extra[dim]);
        (extra == 0 || extra < stride.max(dilation))
            .or_value(format_args!(
                "`output_padding` must be smaller than the stride {stride} or the dilation {dilation}, got {extra}"
            ))
            .map_err(|error| error.with_repair(".output_padding(0)"))?;
        // Elements after those of the next place of `x` are as if that place was there and 0.
        let more = extra.checked_div(stride).unwrap_or(0);
        if more > 0 {
            images = with_constant(&images, &[(first + dim, [0, more as isize])], 0.into())?;
        }
        let (length, kernel, padding) = (images.sizes()[first + dim], weight.sizes()[2 + dim], padding[dim]);
        let [steps, taps] = [length, kernel].map(|count| count as i128 - 1);
        let size = steps * stride as i128 + taps * dilation as i128 - 2 * padding as i128
            + (extra - more * stride + 1) as i128;
        (steps >= 0 && taps >= 0 && (1..isize::MAX as i128).contains(&size))
            .or_shape(format_args!(
                "a length of {length} and a kernel over {kernel} elements give no output with a stride of {stride}, a dilation of {dilation} and padding {padding}"
            ))
            .map_err(|error| error.with_repair(if padding > 0 { ".padding(0)" } else { "" }))?;
        sizes.push(size as usize);
    }
    let mut y = images.convolution_input_with(&weight.rename(None)?, &sizes[..], options)?;
    if let Some(bias) = bias {
        let made = y.sizes()[first - 1];
        ensure_sizes("a bias", bias, &[made])?;
        let (own, dtype) = (bias.dtype(), y.dtype());
        let message = format_args!("the bias is {own}, and the weight is {dtype}");
        ensure_dtype(autocast::fits(own, dtype), message, ("bias", dtype))?;
        let mut sizes = vec![1; dims + 1];
        sizes[0] = made;
        y = y.add(&bias.to(y.dtype()).rename(None).reshape(sizes)?)?;
    }
    Ok(y)
}
