//! Convolution and transposed convolution over one, two or three dims. What both have in common is in
//! `settings` (options, parameters) and `padding`, in functions of slices where the number of
//! dims does not matter.

mod padding;
mod settings;

use super::{read, read_any, within};
use crate::Module;
use crate::dims::images::{Layout, Wanted};
use crate::dims::{Finder, Named};
use crate::functional::conv::{Slide, convolved, transposed_images};
use crate::training::ModulePath;
use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::args::{Extents, Padding};
use namegrad_core::{DType, Error, ErrorKind, NewDim, Result, default_dtype};
use namegrad_macros::Setters;
use padding::padded;
use settings::{Settings, parameters};
use std::panic::Location;

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
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = Conv::text, layer)]
pub struct Conv<const N: usize> {
    weight: Parameter,
    bias: Option<Parameter>,
    #[module(skip)]
    settings: Settings<N>,
    path: ModulePath,
}

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
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = ConvTranspose::text, layer)]
pub struct ConvTranspose<const N: usize> {
    weight: Parameter,
    bias: Option<Parameter>,
    #[module(skip)]
    settings: Settings<N>,
    #[module(skip)]
    output_padding: Extents,
    path: ModulePath,
}

/// [`ConvTranspose`] over one dim.
pub type ConvTranspose1d = ConvTranspose<1>;
/// [`ConvTranspose`] over two dims.
pub type ConvTranspose2d = ConvTranspose<2>;
/// [`ConvTranspose`] over three dims.
pub type ConvTranspose3d = ConvTranspose<3>;

/// The parts of the two layers that differ only in names: accessors, `new`, `Layer`. The row
/// `Conv ConvBuilder ["Conv1d", "Conv2d", "Conv3d"];` becomes
///
/// ```ignore
/// impl<const N: usize> Conv<N> {
///     const NAME: &'static str = ["Conv1d", "Conv2d", "Conv3d"][N - 1];
///     pub fn new(input: impl NewDim, output: impl NewDim, kernel: [impl NewDim; N]) -> Result<..> { .. }
///     pub fn builder(..) -> ConvBuilder<N> { .. }
///     pub fn weight(&self) -> &Parameter { &self.weight }
///     pub fn bias(&self) -> Option<&Parameter> { self.bias.as_ref() }
///     fn text(&self) -> String { self.settings.text(Self::NAME) }
/// }
/// impl<const N: usize> ConvBuilder<N> {
///     pub fn stride(self, stride: impl Into<Extents>) -> Self { .. }
///     pub fn dilation(self, dilation: impl Into<Extents>) -> Self { .. }
///     pub fn groups(self, groups: usize) -> Self { .. }
///     pub fn bias(self, bias: bool) -> Self { .. }
///     pub fn dtype(self, dtype: DType) -> Self { .. }
/// }
/// impl<const N: usize> Layer for Conv<N> { .. }
/// ```
macro_rules! layers {
    ($($Layer:ident $Builder:ident [$($name:literal),*];)*) => {$(
        impl<const N: usize> $Layer<N> {
            const NAME: &'static str = [$($name),*][N - 1];

            /// A layer with a bias from the dim `input` to the dim `output`, with a kernel of these sizes.
            /// Each is a size with or without a name; a name of the kernel is that of the dim that it slides
            /// along.
            ///
            /// # Errors
            /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size,
            /// [`ErrorKind::DuplicateName`] if the dims of the weight would have a name twice.
            #[track_caller]
            pub fn new(
                input: impl NewDim,
                output: impl NewDim,
                kernel: [impl NewDim; N],
            ) -> Result<$Layer<N>> {
                $Layer::builder(input, output, kernel).build()
            }

            /// A builder, to change the defaults of [`new`](Self::new).
            #[track_caller]
            pub fn builder(
                input: impl NewDim,
                output: impl NewDim,
                kernel: [impl NewDim; N],
            ) -> $Builder<N> {
                $Builder::of(Settings::new(Self::NAME, input, output, kernel))
            }

            /// The weight.
            pub fn weight(&self) -> &Parameter {
                &self.weight
            }

            /// The bias, `[out]`, if there is one.
            pub fn bias(&self) -> Option<&Parameter> {
                self.bias.as_ref()
            }

            fn text(&self) -> String {
                self.settings.text(Self::NAME)
            }
        }
    )*};
}
layers! {
    Conv ConvBuilder ["Conv1d", "Conv2d", "Conv3d"];
    ConvTranspose ConvTransposeBuilder ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"];
}

/// A builder for [`Conv`]; see [`Conv::builder`].
#[derive(Clone, Debug, Setters)]
#[setters(builder)]
pub struct ConvBuilder<const N: usize> {
    #[setters(skip)]
    settings: Result<Settings<N>>,
    /// Whether the layer has a bias; the default is `true`.
    bias: bool,
    /// The dtype of the weight and the bias; the default is the default dtype.
    dtype: DType,
}

impl<const N: usize> ConvBuilder<N> {
    fn of(settings: Result<Settings<N>>) -> ConvBuilder<N> {
        ConvBuilder { settings, bias: true, dtype: default_dtype() }
    }

    /// The elements on each side of the input that the kernel also slides over: numbers,
    /// [`Padding::Same`] or [`Padding::Valid`]; by default none.
    pub fn padding(mut self, padding: impl Into<Padding>) -> Self {
        if let Ok(settings) = &mut self.settings {
            settings.padding = padding.into();
        }
        self
    }

    /// Sets the elements around the input; by default they are zeros.
    pub fn padding_mode(mut self, mode: PaddingMode) -> Self {
        if let Ok(settings) = &mut self.settings {
            settings.mode = mode;
        }
        self
    }

    /// Builds the layer.
    ///
    /// # Errors
    /// Those of [`Conv::new`]; [`ErrorKind::Value`] if the channels cannot be split into the groups,
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<Conv<N>> {
        let settings = self.settings?;
        let dims = [settings.input, settings.output];
        let how = (settings.groups, false, self.bias);
        settings.check(Conv::<N>::NAME)?;
        let (weight, bias) = parameters(Conv::<N>::NAME, dims, &settings.kernel, how, self.dtype)?;
        Ok(Conv { weight, bias, settings, path: ModulePath::new() })
    }
}

impl<const N: usize> Conv<N> {
    /// The output for `x`: its dims, with the output dim in place of the input dim.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim, [`ErrorKind::Shape`] if it has another size or the
    /// kernel is larger than the padded input, [`ErrorKind::DuplicateName`] if `x` already has a dim with the
    /// output's name, [`ErrorKind::DType`] if `x` does not have the dtype of the parameters.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        let weight = read(&self.weight, Self::NAME, &self.path)?;
        let layout = layout(Self::NAME, &self.path, &self.settings, x, weight.dtype())?;
        let Settings { stride, padding, dilation, groups, mode, .. } = self.settings;
        let bias = read_any(self.bias.as_ref(), Self::NAME, &self.path)?;
        let mut images = layout.apply(x)?;
        let about = |error: Error| within(error.with_operands([x.shape()]), Self::NAME, &self.path);
        let mut around = padding;
        if mode != PaddingMode::Zeros {
            images =
                padded(Self::NAME, images, &self.settings.kernel, padding, dilation, mode).map_err(about)?;
            around = Padding::Valid;
        }
        convolved(&layout, images, &weight, bias.as_ref(), (stride, around, dilation, groups)).map_err(about)
    }
}

/// A builder for [`ConvTranspose`]; see [`ConvTranspose::builder`].
#[derive(Clone, Debug, Setters)]
#[setters(builder)]
pub struct ConvTransposeBuilder<const N: usize> {
    /// The settings, or the error in one of the dims.
    #[setters(skip)]
    settings: Result<Settings<N>>,
    /// The elements that are added at the end of the result; by default none.
    #[setters(into)]
    output_padding: Extents,
    /// Whether the layer has a bias; the default is `true`.
    bias: bool,
    /// The dtype of the weight and the bias; the default is the default dtype.
    dtype: DType,
}

impl<const N: usize> ConvTransposeBuilder<N> {
    fn of(settings: Result<Settings<N>>) -> ConvTransposeBuilder<N> {
        let output_padding = Extents::from(0);
        ConvTransposeBuilder { settings, output_padding, bias: true, dtype: default_dtype() }
    }

    /// The elements that are left out on each side of the result; by default none.
    pub fn padding(mut self, padding: impl Into<Extents>) -> Self {
        if let Ok(settings) = &mut self.settings {
            settings.padding = Padding::Zeros(padding.into());
        }
        self
    }

    /// Builds the layer.
    ///
    /// # Errors
    /// Those of [`ConvTranspose::new`]; [`ErrorKind::Value`] if the channels cannot be split into the groups,
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<ConvTranspose<N>> {
        let settings = self.settings?;
        let dims = [settings.input, settings.output];
        let how = (settings.groups, true, self.bias);
        settings.check(ConvTranspose::<N>::NAME)?;
        let (weight, bias) = parameters(ConvTranspose::<N>::NAME, dims, &settings.kernel, how, self.dtype)?;
        let output_padding = self.output_padding;
        Ok(ConvTranspose { weight, bias, settings, output_padding, path: ModulePath::new() })
    }
}

impl<const N: usize> ConvTranspose<N> {
    /// The output for `x`: its dims, with the output dim in place of the input dim.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim, [`ErrorKind::Shape`] if it has another size or the
    /// result would be empty, [`ErrorKind::Value`] for an output padding that is not smaller than the stride
    /// or the dilation, [`ErrorKind::DuplicateName`] if `x` already has a dim with the output's name,
    /// [`ErrorKind::DType`] if `x` does not have the dtype of the parameters.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.made(x, None)
    }

    /// [`forward`](Self::forward) for a result with these sizes in the dims of the kernel, which a
    /// convolution would take to those of `x`: PyTorch's `output_size`. The output padding of the layer is
    /// not used.
    ///
    /// # Errors
    /// Those of [`forward`](Self::forward); [`ErrorKind::Value`] for sizes that a convolution does not take
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
        self.made(x, Some(sizes.into()))
    }

    #[track_caller]
    fn made(&self, x: &Tensor, sizes: Option<Extents>) -> Result<Tensor> {
        let _running = self.path.running();
        let weight = read(&self.weight, Self::NAME, &self.path)?;
        let layout = layout(Self::NAME, &self.path, &self.settings, x, weight.dtype())?;
        let Settings { stride, padding, dilation, groups, .. } = self.settings;
        let padding = if let Padding::Zeros(zeros) = padding { zeros } else { Extents::from(0) };
        let images = layout.apply(x)?;
        let mut slide = Slide { stride, padding, output_padding: self.output_padding, dilation, groups };
        if let Some(sizes) = sizes {
            let lengths = &images.sizes()[images.ndim() - N..];
            let kernel = self.settings.kernel.map(|(_, size)| size);
            slide.output_padding = lacking(Self::NAME, x, lengths, &kernel, sizes, slide)
                .map_err(|error| within(error, Self::NAME, &self.path))?;
        }
        let bias = read_any(self.bias.as_ref(), Self::NAME, &self.path)?;
        let y = transposed_images(Self::NAME, images, [x, &weight], N, bias.as_ref(), slide)
            .map_err(|error| within(error, Self::NAME, &self.path))?;
        layout.restore(y)
    }
}

/// The output padding with which a transposed convolution makes `sizes`.
#[track_caller]
fn lacking(
    op: &'static str,
    x: &Tensor,
    lengths: &[usize],
    kernel: &[usize],
    sizes: Extents,
    slide: Slide,
) -> Result<Extents> {
    let dims = lengths.len();
    let caller = Location::caller();
    let numbers = |name, extents: Extents| {
        extents.over(op, name, dims).map_err(|error| error.with_operands([x.shape()]).at(caller))
    };
    let wanted = numbers("output_size", sizes.without_batch(dims))?;
    let (stride, dilation) = (numbers("stride", slide.stride)?, numbers("dilation", slide.dilation)?);
    let padding = numbers("padding", slide.padding)?;
    let mut all = Vec::with_capacity(dims);
    for dim in 0..dims {
        let span = dilation[dim].saturating_mul(kernel[dim].saturating_sub(1)).saturating_add(1);
        let least = (lengths[dim].saturating_sub(1).saturating_mul(stride[dim]).saturating_add(span))
            .saturating_sub(padding[dim].saturating_mul(2));
        let most = least.saturating_add(stride[dim].saturating_sub(1));
        let given = wanted.get(dim).copied().unwrap_or(0);
        match given.checked_sub(least).filter(|_| given <= most) {
            Some(extra) => all.push(extra),
            None => {
                let message = format!(
                    "a convolution takes the sizes {least} to {most} to a length of {}, and `output_size` is {given}",
                    lengths[dim]
                );
                return Err(Error::new(ErrorKind::Value, op, message).with_operands([x.shape()]).at(caller));
            }
        }
    }
    Ok(Extents::from(&all[..]))
}

/// Where the dims of `x` are, which is checked.
#[track_caller]
fn layout<const N: usize>(
    op: &'static str,
    path: &ModulePath,
    settings: &Settings<N>,
    x: &Tensor,
    dtype: DType,
) -> Result<Layout> {
    let spatial = settings.spatial();
    let (channel, made) = (settings.input.0, settings.output.0);
    let wanted = Wanted { channel, spatial: &spatial, made, exact: true };
    let layout = Layout::find(op, x, None, wanted).map_err(|error| within(error, op, path))?;
    let finder = Finder { layer: op, path, dims: &|| settings.dims() };
    finder.check_size(x, layout.channel(), settings.input.1)?;
    finder.check_dtype("the input", x, dtype)?;
    Ok(layout)
}
