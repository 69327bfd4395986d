//! Activations as layers for [`Sequential`](super::Sequential).

use super::stateless::stateless;
use super::{Layer, read, within};
use crate::Module;
use crate::functional as F;
use crate::functional::Approximate;
use crate::functional::options::*;
use crate::training::ModulePath;
use namegrad_autograd::{Parameter, Tensor, TensorOptions};
use namegrad_core::options::*;
use namegrad_core::{DType, Dim, Error, ErrorKind, NewDim, Result, Scalar, default_dtype};

/// An elementwise op as a layer. A row has the name of the layer, the function, and the output for
/// `[-1.0, 2.0]`, for the example. `Relu relu "[0.0, 2.0]";` becomes
///
/// ```ignore
/// #[derive(Clone, Copy, Debug, Default, Module)]
/// pub struct Relu;
///
/// impl Relu {
///     pub fn forward(&self, x: &Tensor) -> Result<Tensor> { F::relu(x) }
/// }
///
/// impl Layer for Relu {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> { Relu::forward(self, x) }
/// }
/// ```
macro_rules! activations {
    ($($(#[$doc:meta])* $layer:ident $op:ident $example:literal;)*) => {$(
        $(#[$doc])*
        #[doc = concat!("[`F::", stringify!($op), "`](crate::functional::", stringify!($op), ") as a layer.")]
        ///
        /// # Shapes
        /// - `x`: any dims
        /// - result: the dims of `x`
        ///
        /// # Parameters
        /// None.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("use namegrad::nn::", stringify!($layer), ";")]
        /// use namegrad::prelude::*;
        #[doc = concat!("let y = ", stringify!($layer), ".forward(&Tensor::new([-1.0, 2.0])?)?;")]
        #[doc = concat!("assert!(y.allclose(&Tensor::new(", $example, ")?)?);")]
        /// # Ok::<(), Error>(())
        /// ```
        #[derive(Clone, Copy, Debug, Default, Module)]
        #[module(crate = crate)]
        pub struct $layer;

        impl $layer {
            /// The output for `x`, with the dims of `x`.
            ///
            /// # Errors
            /// [`ErrorKind::DType`](namegrad_core::ErrorKind::DType) for `bool`.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
                F::$op(x).map_err(|error| error.of(stringify!($layer)))
            }
        }

        impl Layer for $layer {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                $layer::forward(self, x)
            }
        }
    )*};
}
activations! {
    /// `max(x, 0)` of each element:
    Relu relu "[0.0, 2.0]";
    /// `1 / (1 + e^-x)` of each element:
    Sigmoid sigmoid "[1.0 / (1.0 + 1f64.exp()), 1.0 / (1.0 + (-2f64).exp())]";
    /// `tanh x` of each element:
    Tanh tanh "[(-1f64).tanh(), 2f64.tanh()]";
    /// `min(max(x, 0), 6)` of each element:
    Relu6 relu6 "[0.0, 2.0]";
    /// `scale x` for `x > 0`, else `scale alpha (e^x - 1)`, with constants that keep mean and variance:
    Selu selu "[1.0507009873554805 * 1.6732632423543772 * ((-1f64).exp() - 1.0), 2.0 * 1.0507009873554805]";
    /// `x / (1 + e^-x)` of each element:
    Silu silu "[-1.0 / (1.0 + 1f64.exp()), 2.0 / (1.0 + (-2f64).exp())]";
    /// `x tanh(ln(1 + e^x))` of each element:
    Mish mish "[-(-1f64).exp().ln_1p().tanh(), 2.0 * 2f64.exp().ln_1p().tanh()]";
    /// `x min(max(x + 3, 0), 6) / 6` of each element:
    Hardswish hardswish "[-1.0 / 3.0, 5.0 / 3.0]";
    /// `min(max(x + 3, 0), 6) / 6` of each element:
    Hardsigmoid hardsigmoid "[1.0 / 3.0, 5.0 / 6.0]";
    /// `ln(1 / (1 + e^-x))` of each element:
    LogSigmoid logsigmoid "[-1f64.exp().ln_1p(), -(-2f64).exp().ln_1p()]";
    /// `x / (1 + |x|)` of each element:
    Softsign softsign "[-0.5, 2.0 / 3.0]";
    /// `x - tanh x` of each element:
    Tanhshrink tanhshrink "[-1.0 + 1f64.tanh(), 2.0 - 2f64.tanh()]";
}

stateless! {
    /// `x` for `x > 0`, else `alpha (e^x - 1)`: [`Tensor::elu`] as a layer. The output has the dims of `x`.
    ///
    /// # Shapes
    /// - `x`: any dims
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Elu;
    /// let x = Tensor::new([-1.0, 2.0])?;
    /// assert!(Elu::new()?.forward(&x)?.allclose(&Tensor::new([(-1f64).exp() - 1.0, 2.0])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    Elu EluBuilder (x) {  } [] {
        /// The limit for small `x`, negated; the default is 1.
        alpha: f64 = 1.0,
    } => |_training| F::elu_with(x, EluOptions { alpha });

    /// `x` for `x > 0`, else `alpha (e^(x / alpha) - 1)`: [`Tensor::celu`] as a layer. The output has the
    /// dims of `x`.
    ///
    /// # Shapes
    /// - `x`: any dims
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Celu;
    /// let x = Tensor::new([-1.0, 2.0])?;
    /// assert!(Celu::new()?.forward(&x)?.allclose(&Tensor::new([(-1f64).exp() - 1.0, 2.0])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    Celu CeluBuilder (x) {  } [] {
        /// The limit for small `x`, negated; the default is 1.
        alpha: f64 = 1.0,
    } => |_training| F::celu_with(x, CeluOptions { alpha });

    /// `x` for `x > 0`, else `negative_slope x`: [`Tensor::leaky_relu`] as a layer. The output has the dims
    /// of `x`.
    ///
    /// # Shapes
    /// - `x`: any dims
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::LeakyRelu;
    /// let x = Tensor::new([-1.0, 2.0])?;
    /// assert!(LeakyRelu::new()?.forward(&x)?.allclose(&Tensor::new([-0.01, 2.0])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    LeakyRelu LeakyReluBuilder (x) {  } [] {
        /// The slope below 0; the default is 0.01.
        negative_slope: f64 = 0.01,
    } => |_training| F::leaky_relu_with(x, LeakyReluOptions { negative_slope });

    /// `ln(1 + e^(beta x)) / beta`: [`Tensor::softplus`] as a layer. The output has the dims of `x`.
    ///
    /// # Shapes
    /// - `x`: any dims
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Softplus;
    /// let x = Tensor::new([-1.0, 2.0])?;
    /// let expected = Tensor::new([(-1f64).exp().ln_1p(), 2f64.exp().ln_1p()])?;
    /// assert!(Softplus::new()?.forward(&x)?.allclose(&expected)?);
    /// # Ok::<(), Error>(())
    /// ```
    Softplus SoftplusBuilder (x) {  } [] {
        /// The sharpness; the default is 1.
        beta: f64 = 1.0,
        /// Where `beta x` is larger, the output is `x`; the default is 20.
        threshold: f64 = 20.0,
    } => |_training| F::softplus_with(x, SoftplusOptions { beta, threshold });

    /// `x` limited to the range from `min_val` to `max_val`: [`Tensor::hardtanh`] as a layer. The output has
    /// the dims of `x`.
    ///
    /// # Shapes
    /// - `x`: any dims
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Hardtanh;
    /// let x = Tensor::new([-1.0, 2.0])?;
    /// assert!(Hardtanh::new()?.forward(&x)?.allclose(&Tensor::new([-1.0, 1.0])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    Hardtanh HardtanhBuilder (x) {  } [] {
        /// The lower limit; the default is -1.
        min_val: Scalar = Scalar::Int(-1),
        /// The upper limit; the default is 1.
        max_val: Scalar = Scalar::Int(1),
    } => |_training| F::hardtanh_with(x, HardtanhOptions { min_val, max_val });

    /// `x` moved toward 0 by `lambd`: [`F::softshrink`](crate::functional::softshrink) as a layer. The output
    /// has the dims of `x`.
    ///
    /// # Shapes
    /// - `x`: any dims
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Softshrink;
    /// let x = Tensor::new([-1.0, 2.0])?;
    /// assert!(Softshrink::new()?.forward(&x)?.allclose(&Tensor::new([-0.5, 1.5])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    Softshrink SoftshrinkBuilder (x) {  } [] {
        /// How far; the default is 0.5.
        lambd: f64 = 0.5,
    } => |_training| F::softshrink_with(x, SoftshrinkOptions { lambd });

    /// `x` where `|x| > lambd`, else 0: [`F::hardshrink`](crate::functional::hardshrink) as a layer. The
    /// output has the dims of `x`.
    ///
    /// # Shapes
    /// - `x`: any dims
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Hardshrink;
    /// let x = Tensor::new([-1.0, 2.0])?;
    /// assert!(Hardshrink::new()?.forward(&x)?.allclose(&Tensor::new([-1.0, 2.0])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    Hardshrink HardshrinkBuilder (x) {  } [] {
        /// The limit; the default is 0.5.
        lambd: f64 = 0.5,
    } => |_training| F::hardshrink_with(x, HardshrinkOptions { lambd });

    /// `x Φ(x)`: [`F::gelu`](crate::functional::gelu) as a layer. The output has the dims of `x`.
    ///
    /// # Shapes
    /// - `x`: any dims
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Gelu;
    /// let x = Tensor::new([-1.0, 2.0])?;
    /// assert!(Gelu::new()?.forward(&x)?.allclose(&Tensor::new([-0.158655, 1.954500])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    Gelu GeluBuilder (x) {  } [] {
        /// How `Φ` is computed; the default is exactly.
        approximate: Approximate = Approximate::None,
    } => |_training| F::gelu_with(x, GeluOptions { approximate });

    /// `x` for `x > 0`, else `a x`, with random `a` in training and their mean in evaluation:
    /// [`F::rrelu`](crate::functional::rrelu) as a layer. The output has the dims of `x`.
    ///
    /// # Shapes
    /// - `x`: any dims
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Rrelu;
    /// let layer = Rrelu::new()?;
    /// layer.eval();
    /// let x = Tensor::new([-1.0, 2.0])?;
    /// assert!(layer.forward(&x)?.allclose(&Tensor::new([-11.0 / 48.0, 2.0])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    Rrelu RreluBuilder (x) {  } [] {
        /// The smallest slope; the default is 1/8.
        lower: f64 = 1.0 / 8.0,
        /// The largest slope; the default is 1/3.
        upper: f64 = 1.0 / 3.0,
    } => |training| F::rrelu_with(x, RreluOptions { lower, upper, training });

    /// `x` for `x > threshold`, else `value`: [`Tensor::threshold`] as a layer. The output has the dims of
    /// `x`.
    ///
    /// # Shapes
    /// - `x`: any dims
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Threshold;
    /// let x = Tensor::new([-1.0, 2.0])?;
    /// assert_eq!(Threshold::new(0.5, 7)?.forward(&x)?.to_vec::<f32>()?, [7.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    Threshold ThresholdBuilder (x) { threshold: Scalar, value: Scalar } [] {

    } => |_training| F::threshold(x, threshold, value);

    /// `e^x / Σ e^x` along a dim: [`Tensor::softmax`] as a layer. The dim is found by name, and the
    /// output has the dims of `x`.
    ///
    /// # Shapes
    /// - `x`: any dims that include `dim`, in any order
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Softmax;
    /// let x = Tensor::zeros([("class", 2), ("N", 3)])?;
    /// let y = Softmax::new("class")?.forward(&x)?;
    /// assert_eq!(y.shape(), x.shape());
    /// assert!(y.allclose(0.5)?);
    /// # Ok::<(), Error>(())
    /// ```
    Softmax SoftmaxBuilder (x) { dim: Dim } [] {

    } => |_training| F::softmax(x, dim);

    /// The logarithm of [`Softmax`], accurate even where that is close to 0. The dim is found by name, and
    /// the output has the dims of `x`.
    ///
    /// # Shapes
    /// - `x`: any dims that include `dim`, in any order
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::LogSoftmax;
    /// let x = Tensor::zeros([("class", 2), ("N", 3)])?;
    /// let y = LogSoftmax::new("class")?.forward(&x)?;
    /// assert_eq!(y.shape(), x.shape());
    /// assert!(y.allclose(-(2f64.ln()))?);
    /// # Ok::<(), Error>(())
    /// ```
    LogSoftmax LogSoftmaxBuilder (x) { dim: Dim } [] {

    } => |_training| F::log_softmax(x, dim);

    /// [`Softmax`] of `-x`. The dim is found by name, and the
    /// output has the dims of `x`.
    ///
    /// # Shapes
    /// - `x`: any dims that include `dim`, in any order
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Softmin;
    /// let x = Tensor::zeros([("class", 2), ("N", 3)])?;
    /// let y = Softmin::new("class")?.forward(&x)?;
    /// assert_eq!(y.shape(), x.shape());
    /// assert!(y.allclose(0.5)?);
    /// # Ok::<(), Error>(())
    /// ```
    Softmin SoftminBuilder (x) { dim: Dim } [] {

    } => |_training| F::softmin(x, dim);

    /// `a sigmoid(b)` of the halves of `x` along a dim: [`F::glu`](crate::functional::glu) as a layer. The
    /// dim is found by name, and the output has half its size.
    ///
    /// # Shapes
    /// - `x`: any dims that include `dim`, whose size is even
    /// - result: the dims of `x`, with half of the size of `dim`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Glu;
    /// let x = Tensor::zeros([("C", 4), ("N", 3)])?;
    /// assert_eq!(Glu::new("C")?.forward(&x)?.shape().to_string(), "[C=2, N=3]");
    /// # Ok::<(), Error>(())
    /// ```
    Glu GluBuilder (x) { dim: Dim } [] {

    } => |_training| F::glu(x, dim);
}

/// `x` for `x > 0`, else `weight x`, with a slope for each channel that is learned:
/// [`F::prelu`](crate::functional::prelu) as a layer.
///
/// # Shapes
/// - `x`: any dims that include the dim of the channels, in any position
/// - result: the dims of `x`
///
/// # Parameters
/// - `weight`: `[channels]`, 0.25
///
/// A layer with one slope for all channels is `Prelu::new(1)`. If the dim of several channels is unnamed, it
/// is dim 1 of `x`.
///
/// # Source
/// He et al., *Delving Deep into Rectifiers* (2015), equation 1.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// use namegrad::nn::Prelu;
/// let layer = Prelu::new(("C", 2))?;
/// let x = Tensor::new([[-1.0, 2.0, 3.0], [-4.0, 5.0, -6.0]])?.refine_names(["C", "N"])?;
/// assert_eq!(layer.forward(&x)?.to_vec::<f32>()?, [-0.25, 2.0, 3.0, -1.0, 5.0, -1.5]);
/// assert_eq!(layer.named_parameters()[0].0, "weight");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = Prelu::text)]
pub struct Prelu {
    weight: Parameter,
    path: ModulePath,
}

/// A builder for [`Prelu`]; see [`Prelu::builder`].
#[derive(Clone, Debug)]
pub struct PreluBuilder {
    channels: Result<namegrad_core::Shape>,
    init: f64,
    dtype: DType,
}

impl PreluBuilder {
    /// The first value of each slope; the default is 0.25.
    pub fn init(mut self, init: f64) -> PreluBuilder {
        self.init = init;
        self
    }

    /// The dtype of the weight; the default is the default dtype.
    pub fn dtype(mut self, dtype: DType) -> PreluBuilder {
        self.dtype = dtype;
        self
    }

    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size,
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<Prelu> {
        let channels = self.channels?;
        if !self.dtype.is_floating_point() {
            let message = format!("the parameters of a layer are floating-point, not {}", self.dtype);
            return Err(Error::new(ErrorKind::DType, "Prelu", message).with_repair(".dtype(DType::F32)"));
        }
        let weight = TensorOptions::new().dtype(self.dtype).full(channels, self.init)?;
        Ok(Prelu { weight: Parameter::new(weight)?, path: ModulePath::new() })
    }
}

impl Prelu {
    /// A layer with a slope for each element of the dim `channels`, a size with or without a name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a negative size.
    #[track_caller]
    pub fn new(channels: impl NewDim) -> Result<Prelu> {
        Prelu::builder(channels).build()
    }

    /// A builder, to change the defaults of [`new`](Self::new).
    pub fn builder(channels: impl NewDim) -> PreluBuilder {
        let channels = channels
            .into_new_dim()
            .map_err(|error| error.of("Prelu"))
            .and_then(|dim| namegrad_core::Shape::new([dim]));
        PreluBuilder { channels, init: 0.25, dtype: default_dtype() }
    }

    /// The slopes.
    pub fn weight(&self) -> &Parameter {
        &self.weight
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] unless `x` has as many channels, [`ErrorKind::DType`] for another dtype.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        let weight = read(&self.weight, "Prelu", &self.path)?;
        F::prelu(x, weight).map_err(|error| within(error, "Prelu", &self.path))
    }

    fn text(&self) -> String {
        format!("Prelu{}", self.weight.shape())
    }
}

impl Layer for Prelu {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Prelu::forward(self, x)
    }
}
