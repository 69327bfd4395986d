//! Clipping gradients between `backward` and a step.

use namegrad_autograd::{Parameter, Tensor, no_grad};
use namegrad_core::{DType, Error, ErrorKind, Result};
use std::borrow::Borrow;
use std::panic::Location;

/// The options of [`clip_grad_norm_with_`].
#[derive(Clone, Debug, PartialEq)]
pub struct ClipGradNormOptions {
    /// The order of the norm: 2 for the Euclidean norm, infinity for the largest magnitude.
    ///
    /// Default: `2.0`.
    pub norm_type: f64,
    /// Whether a norm that is NaN or infinite is an error. Otherwise the gradients are scaled with it.
    ///
    /// Default: `false`.
    pub error_if_nonfinite: bool,
}

impl Default for ClipGradNormOptions {
    fn default() -> ClipGradNormOptions {
        ClipGradNormOptions { norm_type: 2.0, error_if_nonfinite: false }
    }
}

impl ClipGradNormOptions {
    /// The defaults.
    pub fn new() -> ClipGradNormOptions {
        ClipGradNormOptions::default()
    }

    /// The order of the norm: 2 for the Euclidean norm, infinity for the largest magnitude.
    pub fn norm_type(mut self, norm_type: f64) -> ClipGradNormOptions {
        self.norm_type = norm_type;
        self
    }

    /// Whether a norm that is NaN or infinite is an error.
    pub fn error_if_nonfinite(mut self, error_if_nonfinite: bool) -> ClipGradNormOptions {
        self.error_if_nonfinite = error_if_nonfinite;
        self
    }
}

/// Scales all gradients by one factor so that their total Euclidean norm is at most `max_norm`. Returns the
/// norm before scaling, `‖(g₁, g₂, ..)‖`, over all elements of all gradients.
///
/// Gradients are multiplied by `min(1, max_norm / (norm + 1e-6))`, as in PyTorch.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::optim::clip_grad_norm_;
/// let a = Parameter::new(Tensor::new([1.0])?)?;
/// let b = Parameter::new(Tensor::new([1.0, 1.0])?)?;
/// a.tensor().mul(3.0)?.sum(..)?.add(&b.tensor().mul(Tensor::new([4.0, 0.0])?)?.sum(..)?)?.backward()?;
/// let norm = clip_grad_norm_([&a, &b], 1.0)?;
/// assert_eq!(norm, 5.0);
/// assert!((a.grad().unwrap().to_vec::<f32>()?[0] - 0.6).abs() < 1e-6);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Value`] if `max_norm` is negative or NaN; [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn clip_grad_norm_(parameters: impl IntoIterator<Item: Borrow<Parameter>>, max_norm: f64) -> Result<f64> {
    clip_norm("clip_grad_norm_", with_gradients(parameters), max_norm, &ClipGradNormOptions::default())
}

/// [`clip_grad_norm_`] with options.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::optim::{ClipGradNormOptions, clip_grad_norm_with_};
/// let weight = Parameter::new(Tensor::new([1.0, -4.0])?)?;
/// weight.tensor().square()?.sum(..)?.backward()?;
/// let options = ClipGradNormOptions::new().norm_type(f64::INFINITY).error_if_nonfinite(true);
/// assert_eq!(clip_grad_norm_with_([&weight], 2.0, options)?, 8.0);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Value`] if `max_norm` or `norm_type` is negative or NaN, or the norm is not finite and
/// `error_if_nonfinite` is set; [`ErrorKind::OutOfMemory`]. After an error, no gradient has changed.
#[track_caller]
pub fn clip_grad_norm_with_(
    parameters: impl IntoIterator<Item: Borrow<Parameter>>,
    max_norm: f64,
    options: ClipGradNormOptions,
) -> Result<f64> {
    clip_norm("clip_grad_norm_", with_gradients(parameters), max_norm, &options)
}

/// Clamps each element of each gradient to `-clip_value..=clip_value`.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::optim::clip_grad_value_;
/// let weight = Parameter::new(Tensor::new([1.0, -4.0])?)?;
/// weight.tensor().square()?.sum(..)?.backward()?;
/// clip_grad_value_([&weight], 3.0)?;
/// assert_eq!(weight.grad().unwrap().to_vec::<f32>()?, [2.0, -3.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Value`] if `clip_value` is negative or NaN; [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn clip_grad_value_(
    parameters: impl IntoIterator<Item: Borrow<Parameter>>,
    clip_value: f64,
) -> Result<()> {
    const OP: &str = "clip_grad_value_";
    not_negative(OP, "clip_value", clip_value)?;
    let caller = Location::caller();
    replace(with_gradients(parameters), &|gradient| gradient.clamp(-clip_value, clip_value))
        .map_err(|error| error.of(OP).at(caller))
}

type WithGradients = Vec<(Parameter, Tensor)>;

/// The parameters that have a gradient, each once.
fn with_gradients(parameters: impl IntoIterator<Item: Borrow<Parameter>>) -> WithGradients {
    let mut found: WithGradients = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for parameter in parameters {
        let parameter = parameter.borrow();
        if let Some(gradient) = parameter.grad()
            && seen.insert(parameter.id())
        {
            found.push((parameter.clone(), gradient.detach()));
        }
    }
    found
}

#[track_caller]
fn not_negative(op: &'static str, what: &str, value: f64) -> Result<()> {
    if value >= 0.0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Value, op, format!("{what} must not be negative, got {value:?}")))
}

#[track_caller]
fn clip_norm(
    op: &'static str,
    gradients: WithGradients,
    max_norm: f64,
    options: &ClipGradNormOptions,
) -> Result<f64> {
    not_negative(op, "max_norm", max_norm)?;
    not_negative(op, "norm_type", options.norm_type)?;
    let caller = Location::caller();
    let norm = total_norm(&gradients, options.norm_type).map_err(|error| error.of(op).at(caller))?;
    if options.error_if_nonfinite && !norm.is_finite() {
        let message = format!(
            "The total norm of order {:?} for gradients is {norm}, so it cannot be clipped",
            options.norm_type
        );
        return Err(Error::new(ErrorKind::Value, op, message).with_repair(
            "ClipGradNormOptions::new().error_if_nonfinite(false) scales the gradients with it",
        ));
    }
    let factor = max_norm / (norm + 1e-6);
    if factor < 1.0 || factor.is_nan() {
        replace(gradients, &|gradient| gradient.mul(factor)).map_err(|error| error.of(op).at(caller))?;
    }
    Ok(norm)
}

/// The norm over all elements of all gradients, which is the norm of their norms.
fn total_norm(gradients: &WithGradients, order: f64) -> Result<f64> {
    let options = namegrad_core::options::VectorNormOptions::new().ord(order);
    let mut norms = Vec::with_capacity(gradients.len());
    for (_, gradient) in gradients.iter().filter(|(_, gradient)| gradient.numel() > 0) {
        // In f64, so that no square overflows.
        let wide = gradient.value().to(DType::F64)?;
        norms.extend(wide.vector_norm_with(.., options.clone())?.to_vec::<f64>()?);
    }
    if norms.is_empty() {
        return Ok(0.0);
    }
    let norms = namegrad_core::NamedTensor::from_slice(&norms, [norms.len()])?;
    Ok(norms.vector_norm_with(.., options)?.to_vec::<f64>()?[0])
}

/// Replaces the gradients, after all new ones have been computed.
fn replace(gradients: WithGradients, change: &dyn Fn(&Tensor) -> Result<Tensor>) -> Result<()> {
    no_grad(|| gradients.iter().try_for_each(|(parameter, old)| parameter.set_grad(Some(change(old)?))))
}
