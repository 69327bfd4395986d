//! Clipping gradients between `backward` and a step: by the norm of all together, by the norm of each, by
//! value. Euclidean norms are computed in one pass and in `f64`, with sums in several lanes, which become
//! vectors.

use super::*;
use namegrad_core::cpu::update::{Compiled, Loops, sweep_any};
use namegrad_core::options::VectorNormOptions;
use std::hint::black_box;

/// The options of [`clip_grad_norm_with_`], [`clip_each_grad_norm_with_`] and [`total_norm_with`].
#[derive(Clone, Debug, PartialEq, namegrad_macros::Setters)]
pub struct ClipGradNormOptions {
    /// The order of the norm: 2 for the Euclidean norm, infinity for the largest magnitude.
    ///
    /// Default: `2.0`.
    #[setters(default = 2.0)]
    pub norm_type: f64,
    /// Whether a norm that is NaN or infinite is an error. Otherwise the gradients are scaled with it.
    ///
    /// Default: `false`.
    pub error_if_nonfinite: bool,
}

/// Scales all gradients by one factor so that their total Euclidean norm is at most `max_norm`. Returns the
/// norm before scaling, `‖(g₁, g₂, ..)‖`, over all elements of all gradients.
///
/// Gradients are multiplied by `min(1, max_norm / (norm + 1e-6))`, as in PyTorch. The norm is computed in
/// `f64`.
///
/// A NaN or an infinity in a gradient makes the norm NaN or infinite, and clipping then spoils all gradients.
/// [`error_if_nonfinite`](ClipGradNormOptions::error_if_nonfinite) makes that an error, before anything
/// changes.
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
pub fn clip_grad_norm_(parameters: impl ParameterList, max_norm: f64) -> Result<f64> {
    clip_grad_norm_with_(parameters, max_norm, ClipGradNormOptions::default())
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
    parameters: impl ParameterList,
    max_norm: f64,
    options: ClipGradNormOptions,
) -> Result<f64> {
    const OP: &str = "clip_grad_norm_";
    let (parameters, _) = distinct(parameters.list());
    not_negative(OP, "max_norm", max_norm)?;
    let norms = norms_of(OP, &options, &mut gradients(&parameters))?;
    let norm = norm_of_norms(OP, &norms, options.norm_type)?;
    scale(OP, &parameters, &[factor(max_norm, norm)])?;
    Ok(norm)
}

/// Scales each gradient by itself so that its Euclidean norm is at most `max_norm`. Returns the norms before
/// scaling, one for each parameter; that of a parameter without a gradient is 0.
///
/// It is `torch.nn.utils.clip_grad_norm_([p], max_norm)` for each parameter `p`. The directions of gradients
/// stay the same, but not those of the whole step.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::optim::clip_each_grad_norm_;
/// let [a, b] = [Parameter::new(Tensor::new([4.0, -3.0])?)?, Parameter::new(Tensor::new([0.5])?)?];
/// a.tensor().square()?.sum(..)?.add(&b.tensor().square()?.sum(..)?)?.backward()?;
/// assert_eq!(clip_each_grad_norm_([&a, &b], 2.0)?, [10.0, 1.0]);
/// assert!(a.grad().unwrap().allclose(&Tensor::new([1.6, -1.2])?)?);
/// assert_eq!(b.grad().unwrap().to_vec::<f32>()?, [1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`clip_grad_norm_`].
#[track_caller]
pub fn clip_each_grad_norm_(parameters: impl ParameterList, max_norm: f64) -> Result<Vec<f64>> {
    clip_each_grad_norm_with_(parameters, max_norm, ClipGradNormOptions::default())
}

/// [`clip_each_grad_norm_`] with options.
///
/// # Errors
/// Same as [`clip_grad_norm_with_`].
#[track_caller]
pub fn clip_each_grad_norm_with_(
    parameters: impl ParameterList,
    max_norm: f64,
    options: ClipGradNormOptions,
) -> Result<Vec<f64>> {
    const OP: &str = "clip_each_grad_norm_";
    let (parameters, places) = distinct(parameters.list());
    not_negative(OP, "max_norm", max_norm)?;
    let norms = norms_of(OP, &options, &mut gradients(&parameters))?;
    let factors: Vec<f64> = crate::list(norms.iter().map(|norm| factor(max_norm, *norm)));
    scale(OP, &parameters, &factors)?;
    Ok(crate::list(places.into_iter().map(|place| norms[place])))
}

/// Clamps each element of each gradient to `-clip_value..=clip_value`. NaN stays NaN.
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
pub fn clip_grad_value_(parameters: impl ParameterList, clip_value: f64) -> Result<()> {
    const OP: &str = "clip_grad_value_";
    not_negative(OP, "clip_value", clip_value)?;
    for parameter in distinct(parameters.list()).0 {
        change_grad(OP, &parameter, &with::<_, 1, 0, 0>(&ClampFormula, &[clip_value]))?;
    }
    Ok(())
}

/// The Euclidean norm over all elements of all tensors. For the gradients of a model, this is what
/// [`clip_grad_norm_`] returns; it is PyTorch's `get_total_norm`.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::optim::total_norm;
/// let tensors = [Tensor::new([3.0])?, Tensor::new([[4.0], [0.0]])?];
/// assert_eq!(total_norm(&tensors)?, 5.0);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::DType`] if a tensor is not floating-point; [`ErrorKind::OutOfMemory`].
#[track_caller]
#[doc(alias = "get_total_norm")]
pub fn total_norm(tensors: impl IntoIterator<Item: AsRef<NamedTensor>>) -> Result<f64> {
    total_norm_with(tensors, ClipGradNormOptions::default())
}

/// [`total_norm`] with options.
///
/// # Errors
/// The errors of [`total_norm`]; [`ErrorKind::Value`] if `norm_type` is negative or NaN, or the norm is not
/// finite and `error_if_nonfinite` is set.
#[track_caller]
pub fn total_norm_with(
    tensors: impl IntoIterator<Item: AsRef<NamedTensor>>,
    options: ClipGradNormOptions,
) -> Result<f64> {
    const OP: &str = "total_norm";
    let norms = norms_of(OP, &options, &mut tensors.into_iter().map(|x| (Some(x.as_ref().clone()), None)))?;
    norm_of_norms(OP, &norms, options.norm_type)
}

/// Scales all gradients as [`clip_grad_norm_`] does, with a norm that is already known, such as one over
/// several machines: by `min(1, max_norm / (total_norm + 1e-6))`.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::optim::clip_grads_with_norm_;
/// let weight = Parameter::new(Tensor::new([1.0, -4.0])?)?;
/// weight.tensor().square()?.sum(..)?.backward()?;
/// clip_grads_with_norm_([&weight], 1.0, 2.0)?;
/// assert!(weight.grad().unwrap().allclose(&Tensor::new([1.0, -4.0])?)?);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Value`] if `max_norm` or `total_norm` is negative or `max_norm` is NaN;
/// [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn clip_grads_with_norm_(parameters: impl ParameterList, max_norm: f64, total_norm: f64) -> Result<()> {
    const OP: &str = "clip_grads_with_norm_";
    not_negative(OP, "max_norm", max_norm)?;
    if total_norm < 0.0 {
        not_negative(OP, "total_norm", total_norm)?;
    }
    scale(OP, &distinct(parameters.list()).0, &[factor(max_norm, total_norm)])
}

/// The parameters, each once, and the place of each of those given.
fn distinct(parameters: Vec<Parameter>) -> (Vec<Parameter>, Vec<usize>) {
    let (mut seen, mut found, mut places) = (Ids::default(), Vec::new(), Vec::new());
    for parameter in parameters {
        let place = seen.first(parameter.id(), found.len());
        if place == found.len() {
            found.push(parameter);
        }
        places.push(place);
    }
    (found, places)
}

#[track_caller]
fn not_negative(op: &'static str, what: &str, value: f64) -> Result<()> {
    let message = || format!("{what} must not be negative, got {value:?}");
    Error::ensure(value >= 0.0, ErrorKind::Value, op, message)
}

/// The norm of each gradient; 0 if there is none. One that must be finite and is not is an error.
#[track_caller]
fn norms_of(
    op: &'static str,
    options: &ClipGradNormOptions,
    gradients: &mut dyn Iterator<Item = (Option<NamedTensor>, Option<&dyn PartOf>)>,
) -> Result<Vec<f64>> {
    not_negative(op, "norm_type", options.norm_type)?;
    let mut norms = Vec::new();
    for (at, (gradient, part)) in gradients.enumerate() {
        let Some(x) = gradient else {
            norms.push(0.0);
            continue;
        };
        let order = options.norm_type;
        let mut norm = norm_of(&x, order).map_err(|error| error.of(op))?;
        if let Some(part) = part {
            norm =
                if order == 2.0 { part.sum(norm * norm)?.sqrt() } else { norm_of(&part.whole(&x)?, order)? };
        }
        ensure(!options.error_if_nonfinite || norm.is_finite() || x.device() == Device::Meta, op, || {
            let shape = x.shape();
            let message = format!(
                "The total norm of order {order:?} for gradients is non-finite, so it cannot be clipped: that of \
                 gradient {at}, {shape}, is {norm}"
            );
            (message, "detect_anomaly(|| ..), which finds where it was made")
        })?;
        norms.push(norm);
    }
    Ok(norms)
}

/// The gradients, and what they are parts of.
fn gradients(parameters: &[Parameter]) -> impl Iterator<Item = (Option<NamedTensor>, Option<&dyn PartOf>)> {
    parameters.iter().map(|parameter| (parameter.grad().map(Tensor::into_value), parameter.part()))
}

/// The factor for gradients of this norm.
fn factor(max_norm: f64, norm: f64) -> f64 {
    let factor = max_norm / (norm + 1e-6);
    if factor > 1.0 { 1.0 } else { factor } // NaN stays NaN
}

/// Multiplies the gradients in place, each by the factor for its position, or all by one.
#[track_caller]
fn scale(op: &'static str, parameters: &[Parameter], factors: &[f64]) -> Result<()> {
    for (number, parameter) in parameters.iter().enumerate() {
        let factor = factors.get(number).copied().unwrap_or(factors[0]);
        if factor != 1.0 {
            change_grad(op, parameter, &with::<_, 1, 0, 0>(&ScaleFormula, &[factor]))?;
        }
    }
    Ok(())
}

/// Changes the gradient of a parameter in place.
#[track_caller]
fn change_grad(op: &'static str, parameter: &Parameter, formula: &dyn Loops) -> Result<()> {
    let changed = at_caller(|| parameter.update_grad(|gradient| run_alone(gradient, formula, &mut [])));
    changed.map(drop).map_err(|error| error.of(op))
}

/// `x *= factor`.
struct ScaleFormula;

impl Formula<1, 0> for ScaleFormula {
    #[inline(always)]
    fn apply<T: Real>([factor]: [T; 1], x: T, _: T, []: [T; 0]) -> (T, [T; 0]) {
        (x * factor, [])
    }
}

/// `x = min(max(x, -bound), bound)`; NaN stays NaN.
struct ClampFormula;

impl Formula<1, 0> for ClampFormula {
    #[inline(always)]
    fn apply<T: Real>([bound]: [T; 1], x: T, _: T, []: [T; 0]) -> (T, [T; 0]) {
        (x.clamp(-bound, bound), [])
    }
}

/// The norm of a tensor; 0 if it is empty. The order is not negative.
#[track_caller]
fn norm_of(tensor: &NamedTensor, order: f64) -> Result<f64> {
    if tensor.numel() == 0 {
        return Ok(0.0);
    }
    if tensor.device() == Device::Meta {
        return Ok(f64::NAN);
    }
    if order == 2.0 && tensor.dtype().is_floating_point() {
        let tensor = tensor.to(tensor.dtype().compute())?.contiguous()?;
        let (sweep, mut squares) = (Compiled::<_, 0, 1>(&Squares), [0.0]);
        match tensor.dtype() {
            DType::F64 => sweep_any::<f64>(&sweep, &mut [], tensor.as_slice()?, &mut [], &mut squares),
            _ => sweep_any::<f32>(&sweep, &mut [], tensor.as_slice()?, &mut [], &mut squares),
        }
        return Ok(squares[0].sqrt());
    }
    // In f64, so that no power overflows. The largest magnitude needs none.
    let is_exact = order.is_infinite() || !tensor.dtype().is_floating_point(); // integers are refused
    let dtype = if is_exact { tensor.dtype() } else { DType::F64 };
    let norm = tensor.to(dtype)?.vector_norm_with(.., VectorNormOptions::new().ord(order))?;
    Ok(norm.to(DType::F64)?.to_vec::<f64>()?[0])
}

/// The norm over all elements of tensors with these norms.
#[track_caller]
fn norm_of_norms(op: &'static str, norms: &[f64], order: f64) -> Result<f64> {
    let norms = NamedTensor::from_slice(norms, [norms.len()])?;
    norm_of(&norms, order).map_err(|error| error.of(op))
}

/// `Σ g²`.
struct Squares;

impl Sweep<0, 1> for Squares {
    #[inline(always)]
    fn run<T: Real>(&self, _: usize, _: &mut [T], g: &[T], []: [&mut [T]; 0]) -> [f64; 1] {
        let mut lanes = [0.0_f64; WIDTH];
        let mut chunks = g.chunks_exact(WIDTH);
        for chunk in &mut chunks {
            for (i, (lane, g)) in lanes.iter_mut().zip(chunk).enumerate() {
                // Where few CPUs run the loop, the index is hidden from the compiler, so that it stays short.
                let g = if T::IS_RARE { chunk[black_box(i)] } else { *g }.to_f64();
                *lane += g * g;
            }
        }
        for (lane, g) in lanes.iter_mut().zip(chunks.remainder()) {
            let g = g.to_f64();
            *lane += g * g;
        }
        [lanes.iter().sum()]
    }
}

/// The number of lanes.
const WIDTH: usize = 16;
