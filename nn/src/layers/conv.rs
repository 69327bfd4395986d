//! Convolution and transposed convolution over one, two or three dims. `body` has the parameters and the
//! work of a layer, without the number of dims in its type, and `padding` the padding that is not zeros.

mod body;
mod padding;

use super::*;
use body::ConvBody;
use namegrad_core::args::{Extents, Padding};

/// The elements that a convolution sees outside of its input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PaddingMode {
    /// Zeros.
    #[default]
    Zeros,
    /// The elements of the input in reverse, without the one at the edge.
    Reflect,
    /// The element at the edge.
    Replicate,
    /// The elements from the other end.
    Circular,
}

/// A convolution over `N` dims: [`Conv`], or if `TRANSPOSED`, [`ConvTranspose`].
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = self.body.settings.text(), layer)]
pub struct Convolution<const N: usize, const TRANSPOSED: bool> {
    #[module(flatten)]
    body: ConvBody,
}

/// Convolution over `N` dims, which the layer finds by name: [`Conv1d`], [`Conv2d`], [`Conv3d`].
///
/// The kernel sizes are given by the dims that the kernel slides along.
///
/// # Shapes
/// - `x`: any dims that include the input dim and those of the kernel, in any order
/// - result: the dims of `x`, with the output dim in place of the input dim, and with
///   `(L + 2 padding - dilation (K - 1) - 1) / stride + 1` in place of the size `L` of a dim that a kernel of
///   `K` slides along
///
/// A dim of the layer or of `x` without a name is matched by position. Without any names, `x` is `[N, C, ..]`
/// or `[C, ..]`, with the dims of the kernel after the channels.
///
/// # Parameters
/// - `weight`: `[out, in / groups, kernel..]`, uniform in ±1/√fan, where the fan is `in / groups` times the
///   elements of the kernel
/// - `bias`: `[out]`, uniform in ±1/√fan
///
/// The dims of the weight have the names given to [`new`](Self::new). Because a tensor cannot have the same
/// name twice, the second dim of a weight from `C` to `C` is called `C_in`.
///
/// # Source
/// Dumoulin, Visin, *A guide to convolution arithmetic for deep learning* (2016), sections 2 and 4.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let layer = Conv2d::new(("C", 3), ("F", 16), [("H", 3), ("W", 3)])?;
/// let images = Tensor::rand([("N", 2), ("C", 3), ("H", 8), ("W", 10)])?;
/// assert_eq!(layer.forward(&images)?.shape().to_string(), "[N=2, F=16, H=6, W=8]");
/// assert_eq!(layer.weight().tensor().shape().to_string(), "[F=16, C=3, H=3, W=3]");
///
/// // Any order of dims, and any other dims:
/// let video = Tensor::rand([("time", 5), ("H", 8), ("W", 10), ("C", 3)])?;
/// assert_eq!(layer.forward(&video)?.shape().to_string(), "[time=5, H=6, W=8, F=16]");
///
/// let halving = Conv2d::builder(("C", 3), ("C", 3), [("H", 3), ("W", 3)]).stride(2).padding(1).build()?;
/// assert_eq!(halving.forward(&images)?.shape().to_string(), "[N=2, C=3, H=4, W=5]");
/// # Ok::<(), Error>(())
/// ```
pub type Conv<const N: usize> = Convolution<N, false>;

/// [`Conv`] over one dim.
pub type Conv1d = Conv<1>;
/// [`Conv`] over two dims.
pub type Conv2d = Conv<2>;
/// [`Conv`] over three dims.
pub type Conv3d = Conv<3>;

/// Transposed convolution over `N` dims, which the layer finds by name: [`ConvTranspose1d`],
/// [`ConvTranspose2d`], [`ConvTranspose3d`]. It is the gradient of the input of a convolution, as a function
/// of the gradient of the output; with a stride, it makes the result larger by about that factor.
///
/// # Shapes
/// - `x`: any dims that include the input dim and those of the kernel, in any order
/// - result: the dims of `x`, with the output dim in place of the input dim, and with
///   `(L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1` in place of the size `L` of a dim
///   that a kernel of `K` slides along
///
/// Without names, dims are found as in [`Conv`].
///
/// # Parameters
/// - `weight`: `[in, out / groups, kernel..]`, uniform in ±1/√fan, where the fan is `out / groups` times the
///   elements of the kernel
/// - `bias`: `[out]`, uniform in ±1/√fan
///
/// The names of the weight are those of the layer; in a layer from `C` to `C`, its first dim is called
/// `C_in`.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let layer = ConvTranspose2d::builder(("F", 16), ("C", 3), [("H", 2), ("W", 2)]).stride(2).build()?;
/// let features = Tensor::rand([("N", 2), ("H", 4), ("W", 5), ("F", 16)])?;
/// assert_eq!(layer.forward(&features)?.shape().to_string(), "[N=2, H=8, W=10, C=3]");
/// assert_eq!(layer.weight().tensor().shape().to_string(), "[F=16, C=3, H=2, W=2]");
/// # Ok::<(), Error>(())
/// ```
pub type ConvTranspose<const N: usize> = Convolution<N, true>;

/// [`ConvTranspose`] over one dim.
pub type ConvTranspose1d = ConvTranspose<1>;
/// [`ConvTranspose`] over two dims.
pub type ConvTranspose2d = ConvTranspose<2>;
/// [`ConvTranspose`] over three dims.
pub type ConvTranspose3d = ConvTranspose<3>;

/// A builder for [`Conv`]; see [`Conv::builder`](Convolution::builder).
pub type ConvBuilder<const N: usize> = ConvolutionBuilder<N, false>;

/// A builder for [`ConvTranspose`]; see [`ConvTranspose::builder`](Convolution::builder).
pub type ConvTransposeBuilder<const N: usize> = ConvolutionBuilder<N, true>;

/// The sizes of a kernel, with the names of the dims that it slides along.
type Kernel = Vec<Named>;

/// A builder for a convolution; see [`Convolution::builder`].
#[derive(Clone, Debug, Setters)]
#[setters(generics(const N: usize, const TRANSPOSED: bool), layer = Convolution::<N, TRANSPOSED>::NAME)]
struct ConvolutionConfig {
    #[setters(skip, default = layer)]
    layer: &'static str,
    #[setters(skip, default = TRANSPOSED)]
    transposed: bool,
    /// The input dim, a size with or without a name.
    input: Named,
    /// The output dim, a size with or without a name.
    output: Named,
    /// The sizes of the kernel, with or without names: those of the dims that it slides along.
    kernel: Kernel,
    /// The step from one place of the kernel to the next; the default is 1. One number for all dims, a
    /// list of one for each, or pairs such as `[("H", 2), ("W", 1)]`, as for all such options.
    #[setters(default = Extents::from(1))]
    stride: Extents,
    #[setters(skip, default = Padding::Valid)]
    padding: Padding,
    /// The distance between the elements under the kernel; the default is 1.
    #[setters(default = Extents::from(1))]
    dilation: Extents,
    /// The number of groups into which the channels are split, each with its own part of the weight;
    /// the default is 1.
    #[setters(default = 1)]
    groups: usize,
    #[setters(skip)]
    mode: PaddingMode,
    #[setters(skip, default = Extents::from(0))]
    output_padding: Extents,
    /// Whether the layer has a bias; the default is `true`.
    #[setters(default = true)]
    bias: bool,
    /// The dtype of the weight and the bias; the default is the default dtype.
    dtype: DType,
}

impl<const N: usize> ConvBuilder<N> {
    /// The elements on each side of the input that the kernel also slides over: numbers,
    /// [`Padding::Same`] or [`Padding::Valid`]; by default none.
    pub fn padding(mut self, padding: impl Into<Padding>) -> Self {
        self.config.padding = padding.into();
        self
    }

    /// Sets the elements around the input; by default they are zeros.
    pub fn padding_mode(mut self, mode: PaddingMode) -> Self {
        self.config.mode = mode;
        self
    }
}

impl<const N: usize> ConvTransposeBuilder<N> {
    /// The elements that are left out on each side of the result; by default none.
    pub fn padding(mut self, padding: impl Into<Extents>) -> Self {
        self.config.padding = Padding::Zeros(padding.into());
        self
    }

    /// The elements that are added at the end of the result; by default none.
    pub fn output_padding(mut self, output_padding: impl Into<Extents>) -> Self {
        self.config.output_padding = output_padding.into();
        self
    }
}

impl<const N: usize, const TRANSPOSED: bool> ConvolutionBuilder<N, TRANSPOSED> {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size,
    /// [`ErrorKind::DuplicateName`] if the dims of the weight would have a name twice, [`ErrorKind::Value`] if
    /// the channels cannot be split into the groups, [`ErrorKind::DType`] for a dtype that is not
    /// floating-point.
    #[track_caller]
    pub fn build(self) -> Result<Convolution<N, TRANSPOSED>> {
        let body = made(Convolution::<N, TRANSPOSED>::NAME, ConvBody::new(self.config()?))?;
        Ok(Convolution { body })
    }
}

impl<const N: usize, const TRANSPOSED: bool> Convolution<N, TRANSPOSED> {
    const NAME: &'static str = {
        assert!(N >= 1 && N <= 3, "a convolution is over one, two or three dims");
        match TRANSPOSED {
            true => ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"][N - 1],
            false => ["Conv1d", "Conv2d", "Conv3d"][N - 1],
        }
    };

    /// The weight.
    pub fn weight(&self) -> &Parameter {
        &self.body.weight
    }

    /// The bias, `[out]`, if there is one.
    pub fn bias(&self) -> Option<&Parameter> {
        self.body.bias.as_ref()
    }

    /// The output for `x`: its dims, with the output dim in place of the input dim.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim, [`ErrorKind::Shape`] if it has another size, the kernel
    /// is larger than the padded input, or the result of a transposed convolution would be empty,
    /// [`ErrorKind::Value`] for an output padding that is not smaller than the stride or the dilation,
    /// [`ErrorKind::DuplicateName`] if `x` already has a dim with the output's name, [`ErrorKind::DType`] if
    /// `x` does not have the dtype of the parameters.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.body.forward(x, None)
    }
}

impl<const N: usize> ConvTranspose<N> {
    /// [`forward`](Self::forward) for a result with these sizes in the dims of the kernel, which a
    /// convolution would take to those of `x`: PyTorch's `output_size`. The output padding of the layer is
    /// not used.
    ///
    /// # Errors
    /// Same as [`forward`](Self::forward); [`ErrorKind::Value`] for sizes that a convolution does not take
    /// to those of `x`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let layer = ConvTranspose1d::builder(("F", 2), ("C", 1), [("L", 3)]).stride(2).build()?;
    /// let x = Tensor::rand([("F", 2), ("L", 4)])?;
    /// assert_eq!(layer.forward(&x)?.shape().to_string(), "[C=1, L=9]");
    /// assert_eq!(layer.forward_to(&x, 10)?.shape().to_string(), "[C=1, L=10]");
    /// assert!(layer.forward_to(&x, 11).is_err());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn forward_to(&self, x: &Tensor, sizes: impl Into<Extents>) -> Result<Tensor> {
        self.body.forward(x, Some(sizes.into()))
    }
}
