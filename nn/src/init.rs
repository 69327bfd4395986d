//! Starting values for parameters, in place.
//!
//! A weight has the dims `[out, in, kernel...]`: its fan in is `in` times the size of the kernel, its fan out
//! `out` times that.

use namegrad_autograd::{Parameter, TensorOptions};
use namegrad_core::{Error, ErrorKind, NamedTensor, Result, Scalar};

/// The pass whose variance an initialization keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fan {
    /// The forward pass: the fan in.
    In,
    /// The backward pass: the fan out.
    Out,
}

/// The nonlinearity after a layer, with the factor that makes up for it in the standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gain {
    /// Nothing, or a sigmoid: 1.
    Linear,
    /// 5/3.
    Tanh,
    /// √2.
    Relu,
    /// `√(2 / (1 + slope²))`.
    LeakyRelu(f64),
    /// 3/4.
    Selu,
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
        }
    }
}

/// The fan in and the fan out of a weight.
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dims.
#[track_caller]
pub fn fans(parameter: &Parameter) -> Result<(usize, usize)> {
    let tensor = parameter.tensor();
    match tensor.sizes() {
        [out, input, kernel @ ..] => {
            let kernel: usize = kernel.iter().product();
            Ok((input * kernel, out * kernel))
        }
        _ => {
            let message = "fan in and fan out can not be computed for a tensor with fewer than 2 dimensions";
            Err(Error::new(ErrorKind::Shape, "init", message).with_operands([tensor.shape()]))
        }
    }
}

#[track_caller]
fn replace(
    parameter: &Parameter,
    value: impl FnOnce(TensorOptions, &NamedTensor) -> Result<NamedTensor>,
) -> Result<()> {
    let old = parameter.tensor();
    let new = value(TensorOptions::new().dtype(old.dtype()), old.value())?;
    parameter.set(&new)
}

/// Uniform in [`low`, `high`).
///
/// # Errors
/// [`ErrorKind::Value`] unless `low <= high`.
#[track_caller]
pub fn uniform_(parameter: &Parameter, low: f64, high: f64) -> Result<()> {
    replace(parameter, |options, old| options.uniform(old.sizes(), low, high).map(|x| x.into_value()))
}

/// Normal.
///
/// # Errors
/// [`ErrorKind::Value`] for a negative `std`.
#[track_caller]
pub fn normal_(parameter: &Parameter, mean: f64, std: f64) -> Result<()> {
    replace(parameter, |options, old| options.normal(old.sizes(), mean, std).map(|x| x.into_value()))
}

/// One value everywhere.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn constant_(parameter: &Parameter, value: impl Into<Scalar>) -> Result<()> {
    let value = value.into();
    replace(parameter, |options, old| options.full(old.sizes(), value).map(|x| x.into_value()))
}

/// Zeros.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn zeros_(parameter: &Parameter) -> Result<()> {
    constant_(parameter, 0.0)
}

/// Ones.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn ones_(parameter: &Parameter) -> Result<()> {
    constant_(parameter, 1.0)
}

/// Ones on the diagonal of a matrix.
///
/// # Errors
/// [`ErrorKind::Shape`] unless the parameter is a matrix.
#[track_caller]
pub fn eye_(parameter: &Parameter) -> Result<()> {
    replace(parameter, |options, old| match *old.sizes() {
        [rows, cols] => options.eye(rows, cols).map(|x| x.into_value()),
        _ => Err(Error::new(ErrorKind::Shape, "eye_", "only tensors with 2 dimensions are supported")
            .with_operands([old.shape()])),
    })
}

/// Uniform in `±gain √(6 / (fan_in + fan_out))`.
///
/// # Source
/// Glorot, Bengio, *Understanding the difficulty of training deep feedforward neural networks* (2010),
/// equation 16.
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dims.
#[track_caller]
pub fn xavier_uniform_(parameter: &Parameter, gain: Gain) -> Result<()> {
    let (input, output) = fans(parameter)?;
    let bound = gain.value() * (6.0 / (input + output).max(1) as f64).sqrt();
    uniform_(parameter, -bound, bound)
}

/// Normal with the standard deviation `gain √(2 / (fan_in + fan_out))`.
///
/// # Source
/// That of [`xavier_uniform_`].
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dims.
#[track_caller]
pub fn xavier_normal_(parameter: &Parameter, gain: Gain) -> Result<()> {
    let (input, output) = fans(parameter)?;
    normal_(parameter, 0.0, gain.value() * (2.0 / (input + output).max(1) as f64).sqrt())
}

/// Uniform in `±gain √(3 / fan)`.
///
/// # Source
/// He, Zhang, Ren, Sun, *Delving Deep into Rectifiers* (2015), equations 10 and 14.
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dims.
#[track_caller]
pub fn kaiming_uniform_(parameter: &Parameter, fan: Fan, gain: Gain) -> Result<()> {
    let bound = 3f64.sqrt() * kaiming_std(parameter, fan, gain)?;
    uniform_(parameter, -bound, bound)
}

/// Normal with the standard deviation `gain / √fan`.
///
/// # Source
/// That of [`kaiming_uniform_`].
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dims.
#[track_caller]
pub fn kaiming_normal_(parameter: &Parameter, fan: Fan, gain: Gain) -> Result<()> {
    let std = kaiming_std(parameter, fan, gain)?;
    normal_(parameter, 0.0, std)
}

#[track_caller]
fn kaiming_std(parameter: &Parameter, fan: Fan, gain: Gain) -> Result<f64> {
    let (input, output) = fans(parameter)?;
    let fan = if fan == Fan::In { input } else { output };
    Ok(gain.value() / (fan.max(1) as f64).sqrt())
}
