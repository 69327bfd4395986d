//! Numbers outside the range of an integer dtype.

use super::NamedTensor;
use crate::dtype::{Category, DType, Scalar, default_dtype};
use crate::error::{Error, ErrorKind, Result};

/// The first plain number among the inputs that is outside the range of an integer `dtype`, so that a cast
/// would wrap it.
#[track_caller]
pub(crate) fn beyond(inputs: &[&NamedTensor], dtype: DType) -> Result<Option<Scalar>> {
    if dtype.category() != Category::Integer {
        return Ok(None);
    }
    for x in inputs.iter().filter(|x| x.is_number()) {
        let number = x.item::<Scalar>()?;
        if !fits(number, dtype) {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Whether a cast of `number` to `dtype` keeps its integer part. Integer dtypes wrap numbers outside their
/// range.
pub(crate) fn fits(number: Scalar, dtype: DType) -> bool {
    const END: f64 = -(i64::MIN as f64); // 2^63
    match (dtype.category(), number) {
        (Category::Float | Category::Bool, _) => true,
        (Category::Integer, Scalar::Float(x)) if !(-END..END).contains(&x) => false,
        _ => dtype.bounds().contains(&number.to_i64()),
    }
}

/// The error for a number outside the range of an integer dtype.
#[track_caller]
pub(crate) fn does_not_fit(op: &'static str, x: Option<&NamedTensor>, number: Scalar, dtype: DType) -> Error {
    let wider = if fits(number, DType::I64) { DType::I64 } else { default_dtype() };
    let message = format!("{number} does not fit in {dtype}");
    match x {
        Some(x) => {
            Error::about(&[x], ErrorKind::Value, op, message).with_repair(format!("x.to(DType::{wider:?})?"))
        }
        None => Error::new(ErrorKind::Value, op, message).with_repair(format!("DType::{wider:?}")),
    }
}

impl NamedTensor {
    /// An error of `op` unless the dtype of this tensor has the number, which is rounded if it is a float.
    ///
    /// # Errors
    /// [`ErrorKind::Value`].
    #[doc(hidden)]
    #[track_caller]
    pub fn check_has(&self, op: &'static str, number: f64) -> Result<()> {
        let is_finite = match self.dtype() {
            DType::F16 => half::f16::from_f64(number).is_finite(),
            DType::BF16 => half::bf16::from_f64(number).is_finite(),
            DType::F32 => (number as f32).is_finite(),
            _ => true,
        };
        let is_whole = number.fract() == 0.0;
        let has = match self.dtype().category() {
            Category::Float => is_finite || !number.is_finite(),
            _ => is_whole && fits(Scalar::Float(number), self.dtype()),
        };
        if has {
            return Ok(());
        }
        let is_integer = is_whole && fits(Scalar::Float(number), DType::I64);
        let wider = if is_integer && !self.dtype().is_floating_point() {
            DType::I64
        } else if number.abs() > f64::from(f32::MAX) {
            DType::F64
        } else {
            DType::F32
        };
        let message = format!("{number:?} does not fit in {}", self.dtype());
        Err(Error::about(&[self], ErrorKind::Value, op, message)
            .with_repair(format!("x.to(DType::{wider:?})?")))
    }

    /// An error of `op` if an element is NaN or infinite.
    ///
    /// # Errors
    /// [`ErrorKind::Value`]; [`ErrorKind::OutOfMemory`].
    #[doc(hidden)]
    #[track_caller]
    pub fn check_finite(&self, op: &'static str) -> Result<()> {
        if !self.dtype().is_floating_point() || self.isfinite()?.is_true_everywhere()? {
            return Ok(());
        }
        let count = |found: NamedTensor| found.sum(..)?.item::<i64>();
        let (nan, infinite) = (count(self.isnan()?)?, count(self.isinf()?)?);
        let message = match (self.numel(), nan) {
            (1, 0) => "the value is infinite".into(),
            (1, _) => "the value is NaN".into(),
            (all, _) => format!("of {all} values, {nan} are NaN and {infinite} are infinite"),
        };
        Err(Error::about(&[self], ErrorKind::Value, op, message))
    }
}
