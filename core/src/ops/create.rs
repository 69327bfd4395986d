//! Factories: zeros, ones, ranges. Tensors from data are in `data`, random tensors in `random`.

use crate::args::IntoShape;
use crate::cpu::fill;
use crate::device::{OnDevice, compute};
use crate::dtype::{Category, DType, Scalar, default_dtype, dispatch, set_default_is_f64};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Sizes;
use crate::names::Names;
use crate::shape::Shape;
use crate::sizes::checked_numel;
use crate::tensor::range::{does_not_fit, fits};
use crate::tensor::{NamedTensor, Unwritten};
use std::panic::Location;

/// Makes `f32` or `f64` the default dtype of the whole process.
///
/// # Errors
/// [`ErrorKind::DType`] for any other dtype.
#[track_caller]
pub fn set_default_dtype(dtype: DType) -> Result<()> {
    match dtype {
        DType::F32 | DType::F64 => set_default_is_f64(dtype == DType::F64),
        other => {
            let message = format!("the default dtype must be float32 or float64, not {other}");
            return Err(Error::new(ErrorKind::DType, "set_default_dtype", message));
        }
    }
    Ok(())
}

impl NamedTensor {
    /// A tensor of zeros, in the default dtype.
    ///
    /// # Errors
    /// The errors of the shape, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn zeros(shape: impl IntoShape) -> Result<NamedTensor> {
        NamedTensor::full_as("zeros", shape, Scalar::Float(0.0), default_dtype())
    }

    /// A tensor of ones, in the default dtype.
    ///
    /// # Errors
    /// Same as [`zeros`](Self::zeros).
    #[track_caller]
    pub fn ones(shape: impl IntoShape) -> Result<NamedTensor> {
        NamedTensor::full_as("ones", shape, Scalar::Float(1.0), default_dtype())
    }

    /// A tensor filled with `value`, in the dtype of the number: `bool`, `i64` or the default float.
    ///
    /// # Errors
    /// Same as [`zeros`](Self::zeros).
    #[track_caller]
    pub fn full(shape: impl IntoShape, value: impl Into<Scalar>) -> Result<NamedTensor> {
        let value = value.into();
        NamedTensor::full_as("full", shape, value, value.dtype())
    }

    /// A tensor filled with `value`, in `dtype`; errors name `op`.
    ///
    /// # Errors
    /// Same as [`zeros`](Self::zeros).
    #[track_caller]
    #[inline(never)]
    pub fn full_as(
        op: &'static str,
        shape: impl IntoShape,
        value: Scalar,
        dtype: DType,
    ) -> Result<NamedTensor> {
        NamedTensor::filled(op, shape.shape_for(op)?, dtype, value)
    }

    /// A tensor with the same sizes and names, filled with `value`, in `dtype`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn full_like(&self, value: impl Into<Scalar>, dtype: DType) -> Result<NamedTensor> {
        let _device = OnDevice::of(self);
        NamedTensor::filled("full_like", self.shape(), dtype, value.into())
    }

    /// The numbers `start, start + step, ...` before `end`, in `dtype`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a step of zero, in the wrong direction, bounds that are not finite, or a
    /// number that an integer dtype does not have.
    #[track_caller]
    pub fn arange(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
        dtype: DType,
    ) -> Result<NamedTensor> {
        range(start.into(), end.into(), step.into(), dtype)
    }

    /// `steps` evenly spaced numbers from `start` to `end`, both included, in `dtype`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn linspace(start: f64, end: f64, steps: usize, dtype: DType) -> Result<NamedTensor> {
        const OP: &str = "linspace";
        checked_numel(OP, &[steps], dtype.itemsize())?;
        let whole = dtype.category() != Category::Float;
        let [start, end] = if whole { [start.trunc(), end.trunc()] } else { [start, end] };
        if let Some(number) = [start, end].map(Scalar::Float).into_iter().find(|number| !fits(*number, dtype))
        {
            return Err(does_not_fit(OP, None, number, dtype));
        }
        let shape = Shape { sizes: Sizes::from_slice(&[steps]), names: Names::none() };
        let out = Unwritten::new(OP, shape, dtype.wide())?;
        dispatch!(dtype.wide(), wide T => out.write::<T>(|y| fill::between(start, end, y))).into_dtype(dtype)
    }

    /// A matrix with ones on the diagonal and zeros elsewhere, in `dtype`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn eye(rows: usize, cols: usize, dtype: DType) -> Result<NamedTensor> {
        let shape = Shape { sizes: Sizes::from_slice(&[rows, cols]), names: Names::none() };
        let mut out = NamedTensor::filled("eye", shape, dtype, Scalar::Int(0))?;
        let one = NamedTensor::number(1)?.to(dtype)?;
        compute(|| {
            dispatch!(dtype, width U => fill::unit(one.opaque::<U>()?[0], [rows, cols], out.opaque_mut()?));
            Ok(())
        })?;
        Ok(out)
    }
}

/// [`NamedTensor::arange`], compiled once for all types of numbers.
#[track_caller]
fn range(start: Scalar, end: Scalar, step: Scalar, dtype: DType) -> Result<NamedTensor> {
    const OP: &str = "arange";
    let (first, last, by) = (start.to_f64(), end.to_f64(), step.to_f64());
    let caller = Location::caller();
    let invalid = |message: String| Err(Error::new(ErrorKind::Value, OP, message).at(caller));
    if !(first.is_finite() && last.is_finite() && by.is_finite()) {
        return invalid(format!("unsupported range: {first} -> {last} in steps of {by}"));
    }
    // As in PyTorch, the start and the step are truncated for an integer dtype.
    let whole = dtype.category() != Category::Float;
    if whole && let Some(far) = [start, end, step].into_iter().find(|number| !fits(*number, DType::I64)) {
        return Err(does_not_fit(OP, None, far, DType::I64));
    }
    let [start, end, step] = match whole {
        true => [start, end, step].map(|number| Scalar::Int(number.to_i64())),
        false => [start, end, step],
    };
    if step.to_f64() == 0.0 {
        return invalid("step must be nonzero".into());
    }
    let integers = [start, end, step].iter().all(|number| matches!(number, Scalar::Int(_)));
    let [from, to, stride] = [start, end, step].map(|number| i128::from(number.to_i64()));
    let backwards = match integers {
        true => (to - from).signum() * stride.signum() < 0,
        false => (last - first) * by < 0.0,
    };
    if backwards {
        return invalid(format!(
            "upper bound and lower bound inconsistent with step sign: {first} -> {last} in steps of {by}"
        ));
    }
    // As in PyTorch, the number of elements is computed before truncation.
    let fractions = [first, last, by].iter().any(|number| number.fract() != 0.0);
    let count = match integers && !fractions {
        true => {
            usize::try_from((to - from).unsigned_abs().div_ceil(stride.unsigned_abs())).unwrap_or(usize::MAX)
        }
        false => ((last - first) / by).ceil() as usize,
    };
    checked_numel(OP, &[count], dtype.itemsize())?;
    if whole && count > 0 {
        // The numbers between these two fit as well.
        let last = from.saturating_add(stride.saturating_mul(count as i128 - 1));
        let last = i64::try_from(last).unwrap_or(if stride > 0 { i64::MAX } else { i64::MIN });
        for number in [start, Scalar::Int(last)] {
            if !fits(number, dtype) {
                return Err(does_not_fit(OP, None, number, dtype));
            }
        }
    }
    let shape = Shape { sizes: Sizes::from_slice(&[count]), names: Names::none() };
    let out = Unwritten::new(OP, shape, dtype.wide())?;
    let numbers = dispatch!(dtype.wide(), wide T => out.write::<T>(|y| match (start, step) {
        (Scalar::Int(start), Scalar::Int(step)) if whole => fill::count(start, step, y),
        _ => fill::steps(first, by, y),
    }));
    numbers.into_dtype(dtype)
}
