//! Initial values of parameters, set in place: `init::normal_(layer.weight(), 0.0, 0.02)?`.
//!
//! Layers initialize their parameters when they are created; use these functions for other initial values.
//! [`Gain`] has the factors for nonlinearities, and [`fans`] defines fan in and fan out.

use namegrad_autograd::{Parameter, Tensor, TensorOptions};
use namegrad_core::{DType, Device, Error, ErrorKind, Result, Scalar, Sizes, on_device};
use namegrad_macros::Setters;

/// The pass in which an initialization preserves the variance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fan {
    /// The forward pass, with the fan in.
    #[default]
    In,
    /// The backward pass, with the fan out.
    Out,
}

/// The nonlinearity after a layer, which determines a factor for the standard deviation.
///
/// ```
/// use namegrad::nn::init::Gain;
/// assert_eq!(Gain::LeakyRelu(0.0).value(), 2f64.sqrt());
/// assert_eq!(Gain::from(1.5), Gain::Factor(1.5));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Gain {
    /// None, or a sigmoid: 1.
    #[default]
    Linear,
    /// 5/3.
    Tanh,
    /// √2.
    Relu,
    /// `√(2 / (1 + slope²))`, with the slope below 0.
    LeakyRelu(f64),
    /// 3/4.
    Selu,
    /// This factor. A number converts to it: `XavierOptions::new().gain(1.5)`.
    Factor(f64),
}

impl Gain {
    /// The factor.
    pub fn value(self) -> f64 {
        match self {
            Gain::Linear => 1.0,
            Gain::Tanh => 5.0 / 3.0,
            Gain::Relu => 2f64.sqrt(),
            Gain::LeakyRelu(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
            Gain::Selu => 0.75,
            Gain::Factor(factor) => factor,
        }
    }
}

impl From<f64> for Gain {
    fn from(factor: f64) -> Gain {
        Gain::Factor(factor)
    }
}

/// The options of [`xavier_uniform_with_`] and [`xavier_normal_with_`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Setters)]
pub struct XavierOptions {
    /// The nonlinearity after the layer, or a factor. By default `Gain::Linear`, which is 1.
    #[setters(into)]
    pub gain: Gain,
}

/// The options of [`kaiming_uniform_with_`] and [`kaiming_normal_with_`].
#[derive(Clone, Copy, Debug, PartialEq, Setters)]
pub struct KaimingOptions {
    /// The pass in which the variance is preserved. By default the forward pass, `Fan::In`.
    pub fan: Fan,
    /// The nonlinearity after the layer, or a factor. By default `Gain::Relu`.
    #[setters(into, default = Gain::Relu)]
    pub gain: Gain,
}

/// The fan in and the fan out of a weight `[out, in, kernel...]`: `in Π kernel` and `out Π kernel`, with the
/// product of the sizes of the kernel. The weight of a [`Linear`](crate::Linear) has no kernel, so they are
/// `in` and `out`.
///
/// ```
/// use namegrad::nn::init;
/// use namegrad::prelude::*;
/// let weight = Parameter::new(Tensor::zeros([("out", 8), ("in", 3), ("H", 5), ("W", 5)])?)?;
/// assert_eq!(init::fans(&weight)?, (3 * 25, 8 * 25));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dims.
#[track_caller]
pub fn fans(parameter: &Parameter) -> Result<(usize, usize)> {
    let tensor = parameter.tensor();
    let [out, input, kernel @ ..] = tensor.sizes() else {
        let message = "fan in and fan out are those of a weight [out, in, kernel...], of two dims or more";
        return Err(Error::new(ErrorKind::Shape, "fans", message).with_operands([tensor.shape()]));
    };
    let kernel: usize = kernel.iter().product();
    Ok((input * kernel, out * kernel))
}

/// The options and the sizes of a new value.
fn like(parameter: &Parameter) -> (TensorOptions, Sizes) {
    let old = parameter.tensor();
    (TensorOptions::new().dtype(old.dtype()).device(old.device()), Sizes::from_slice(old.sizes()))
}

/// Sets the parameter to the value. An error becomes an error of `op`.
#[track_caller]
fn set(op: &'static str, parameter: &Parameter, value: Result<Tensor>) -> Result<()> {
    parameter.set(value.map_err(|error| error.of(op))?.value()).map_err(|error| error.of(op))
}

/// Fills the parameter with uniform random numbers in [`low`, `high`).
///
/// ```
/// use namegrad::nn::init;
/// use namegrad::prelude::*;
/// let layer = Linear::new(("in", 3), ("out", 2))?;
/// init::uniform_(layer.weight(), -0.1, 0.1)?;
/// assert!(layer.weight().tensor().abs()?.amax(..)?.item::<f64>()? <= 0.1);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Value`] unless `low <= high`.
#[track_caller]
pub fn uniform_(parameter: &Parameter, low: f64, high: f64) -> Result<()> {
    let (options, sizes) = like(parameter);
    set("uniform_", parameter, options.uniform(&sizes, low, high))
}

/// Fills the parameter with normal random numbers with this mean and standard deviation.
///
/// ```
/// use namegrad::nn::init;
/// use namegrad::prelude::*;
/// let layer = Linear::new(("in", 300), ("out", 200))?;
/// init::normal_(layer.weight(), 0.0, 0.02)?;
/// let std = layer.weight().tensor().std(..)?.item::<f64>()?;
/// assert!((std - 0.02).abs() < 0.001);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Value`] for a negative `std`.
#[track_caller]
pub fn normal_(parameter: &Parameter, mean: f64, std: f64) -> Result<()> {
    let (options, sizes) = like(parameter);
    set("normal_", parameter, options.normal(&sizes, mean, std))
}

/// Fills the parameter with normal random numbers, drawn again until they are in [`low`, `high`].
///
/// ```
/// use namegrad::nn::init;
/// use namegrad::prelude::*;
/// let layer = Linear::new(("in", 300), ("out", 200))?;
/// init::trunc_normal_(layer.weight(), 0.0, 0.02, -0.04, 0.04)?;
/// assert!(layer.weight().tensor().abs()?.amax(..)?.item::<f64>()? <= 0.04);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Value`] unless `std` is positive and `low < high`.
#[track_caller]
pub fn trunc_normal_(parameter: &Parameter, mean: f64, std: f64, low: f64, high: f64) -> Result<()> {
    const OP: &str = "trunc_normal_";
    Error::ensure(std > 0.0 && low < high, ErrorKind::Value, OP, || {
        format!("std must be positive and low below high, got {std}, {low} and {high}")
    })?;
    let (options, sizes) = like(parameter);
    let scale = std * 2f64.sqrt();
    // The inverse of the distribution function, of uniform numbers between its values at the bounds.
    let value = || {
        let ends = [(low - mean) / scale, (high - mean) / scale];
        let ends = on_device(Device::Cpu, || Tensor::from_slice(&ends, 2)?.erf())?;
        let [from, to] = [ends.item_at::<f64>([0])?, ends.item_at::<f64>([1])?];
        let parts = options.dtype(DType::F64).uniform(&sizes, from, to)?;
        parts.erfinv()?.mul(scale)?.add(mean)?.clamp(low, high)?.to(parameter.tensor().dtype())
    };
    set(OP, parameter, value())
}

/// Fills the parameter with a random matrix whose rows, or columns if there are fewer of them, are orthogonal
/// and of length `gain`. The first dim is the rows; the others together are the columns.
///
/// ```
/// use namegrad::nn::init;
/// use namegrad::prelude::*;
/// let layer = Linear::new(("in", 5), ("out", 3))?;
/// init::orthogonal_(layer.weight(), 1.0)?;
/// let weight = layer.weight().tensor().rename(None)?;
/// let apart = weight.matmul(&weight.t()?)?.sub(Tensor::eye(3, 3)?)?.abs()?.amax(..)?;
/// assert!(apart.item::<f64>()? < 1e-5);
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Saxe, McClelland, Ganguli, *Exact solutions to the nonlinear dynamics of learning in deep linear neural
/// networks* (2014).
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dims.
#[track_caller]
pub fn orthogonal_(parameter: &Parameter, gain: f64) -> Result<()> {
    const OP: &str = "orthogonal_";
    fans(parameter).map_err(|error| error.of(OP))?;
    let (options, sizes) = like(parameter);
    let (rows, cols) = (sizes[0], sizes[1..].iter().product::<usize>());
    let value = || {
        let (q, r) = options.normal([rows.max(cols), rows.min(cols)], 0.0, 1.0)?.qr(..)?;
        // With these signs, each orthogonal matrix is as likely as any other.
        let q = q.mul(r.diagonal(0, 1)?.sign()?)?.mul(gain)?;
        if rows < cols { q.t()?.reshape(&sizes[..]) } else { q.reshape(&sizes[..]) }
    };
    set(OP, parameter, value())
}

/// Fills the parameter with one value.
///
/// ```
/// use namegrad::nn::init;
/// use namegrad::prelude::*;
/// let layer = Linear::new(("in", 3), ("out", 2))?;
/// init::constant_(layer.bias().unwrap(), 0.5)?;
/// assert_eq!(layer.bias().unwrap().tensor().to_vec::<f32>()?, [0.5, 0.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn constant_(parameter: &Parameter, value: impl Into<Scalar>) -> Result<()> {
    let (options, sizes) = like(parameter);
    set("constant_", parameter, options.full(&sizes, value))
}

/// Fills the parameter with zeros.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn zeros_(parameter: &Parameter) -> Result<()> {
    constant_(parameter, 0.0)
}

/// Fills the parameter with ones.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn ones_(parameter: &Parameter) -> Result<()> {
    constant_(parameter, 1.0)
}

/// Sets a matrix to ones on the diagonal and zeros elsewhere.
///
/// ```
/// use namegrad::nn::init;
/// use namegrad::prelude::*;
/// let layer = Linear::new(("in", 3), ("out", 2))?;
/// init::eye_(layer.weight())?;
/// assert_eq!(layer.weight().tensor().to_vec::<f32>()?, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] unless the parameter is a matrix.
#[track_caller]
pub fn eye_(parameter: &Parameter) -> Result<()> {
    let (options, sizes) = like(parameter);
    let [rows, cols] = sizes[..] else {
        let message = format!("the parameter must be a matrix, and has {} dims", sizes.len());
        return Err(Error::new(ErrorKind::Shape, "eye_", message).with_operands([parameter.tensor().shape()]));
    };
    set("eye_", parameter, options.eye(rows, cols))
}

/// Fills the parameter with uniform random numbers in `±gain √(6 / (fan_in + fan_out))`, with its
/// [fans](fans()) and a gain of 1.
///
/// ```
/// use namegrad::nn::init::{self, Gain, XavierOptions};
/// use namegrad::prelude::*;
/// let layer = Linear::new(("in", 4), ("out", 2))?;
/// init::xavier_uniform_(layer.weight())?;
/// assert!(layer.weight().tensor().abs()?.amax(..)?.item::<f64>()? <= 1.0);
/// init::xavier_uniform_with_(layer.weight(), XavierOptions::new().gain(Gain::Tanh))?;
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Glorot, Bengio, *Understanding the difficulty of training deep feedforward neural networks* (2010),
/// equation 16.
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dims.
#[track_caller]
pub fn xavier_uniform_(parameter: &Parameter) -> Result<()> {
    xavier_uniform_with_(parameter, XavierOptions::default())
}

/// [`xavier_uniform_`] with options.
///
/// # Errors
/// Same as [`xavier_uniform_`].
#[track_caller]
pub fn xavier_uniform_with_(parameter: &Parameter, options: XavierOptions) -> Result<()> {
    const OP: &str = "xavier_uniform_";
    let bound = 3f64.sqrt() * xavier_std(OP, parameter, options)?;
    uniform_(parameter, -bound, bound).map_err(|error| error.of(OP))
}

/// Fills the parameter with normal random numbers with mean 0 and standard deviation
/// `gain √(2 / (fan_in + fan_out))`, with its [fans](fans()) and a gain of 1. [`xavier_uniform_`] has an
/// example.
///
/// # Source
/// Same as [`xavier_uniform_`].
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dims.
#[track_caller]
pub fn xavier_normal_(parameter: &Parameter) -> Result<()> {
    xavier_normal_with_(parameter, XavierOptions::default())
}

/// [`xavier_normal_`] with options.
///
/// # Errors
/// Same as [`xavier_normal_`].
#[track_caller]
pub fn xavier_normal_with_(parameter: &Parameter, options: XavierOptions) -> Result<()> {
    const OP: &str = "xavier_normal_";
    normal_(parameter, 0.0, xavier_std(OP, parameter, options)?).map_err(|error| error.of(OP))
}

#[track_caller]
fn xavier_std(op: &'static str, parameter: &Parameter, options: XavierOptions) -> Result<f64> {
    let (input, output) = fans(parameter).map_err(|error| error.of(op))?;
    Ok(options.gain.value() * (2.0 / (input + output).max(1) as f64).sqrt())
}

/// Fills the parameter with uniform random numbers in `±gain √(3 / fan)`, with its fan in (see [`fans`]) and
/// the gain of `relu`, √2.
///
/// ```
/// use namegrad::nn::init::{self, Fan, Gain, KaimingOptions};
/// use namegrad::prelude::*;
/// let layer = Linear::new(("in", 6), ("out", 2))?;
/// init::kaiming_uniform_(layer.weight())?;
/// assert!(layer.weight().tensor().abs()?.amax(..)?.item::<f64>()? <= 1.0);
/// let options = KaimingOptions::new().fan(Fan::Out).gain(Gain::LeakyRelu(0.01));
/// init::kaiming_uniform_with_(layer.weight(), options)?;
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// He, Zhang, Ren, Sun, *Delving Deep into Rectifiers* (2015), equations 10 and 14.
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dims.
#[track_caller]
pub fn kaiming_uniform_(parameter: &Parameter) -> Result<()> {
    kaiming_uniform_with_(parameter, KaimingOptions::default())
}

/// [`kaiming_uniform_`] with options.
///
/// # Errors
/// Same as [`kaiming_uniform_`].
#[track_caller]
pub fn kaiming_uniform_with_(parameter: &Parameter, options: KaimingOptions) -> Result<()> {
    const OP: &str = "kaiming_uniform_";
    let bound = 3f64.sqrt() * kaiming_std(OP, parameter, options)?;
    uniform_(parameter, -bound, bound).map_err(|error| error.of(OP))
}

/// Fills the parameter with normal random numbers with mean 0 and standard deviation `gain / √fan`, with its
/// fan in (see [`fans`]) and the gain of `relu`, √2. [`kaiming_uniform_`] has an example.
///
/// # Source
/// Same as [`kaiming_uniform_`].
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dims.
#[track_caller]
pub fn kaiming_normal_(parameter: &Parameter) -> Result<()> {
    kaiming_normal_with_(parameter, KaimingOptions::default())
}

/// [`kaiming_normal_`] with options.
///
/// # Errors
/// Same as [`kaiming_normal_`].
#[track_caller]
pub fn kaiming_normal_with_(parameter: &Parameter, options: KaimingOptions) -> Result<()> {
    const OP: &str = "kaiming_normal_";
    normal_(parameter, 0.0, kaiming_std(OP, parameter, options)?).map_err(|error| error.of(OP))
}

#[track_caller]
fn kaiming_std(op: &'static str, parameter: &Parameter, options: KaimingOptions) -> Result<f64> {
    let (input, output) = fans(parameter).map_err(|error| error.of(op))?;
    let fan = if options.fan == Fan::In { input } else { output };
    Ok(options.gain.value() / (fan.max(1) as f64).sqrt())
}
