//! Ops by element.

use crate::{Operand, Tensor};
use namegrad_core::{DType, Error, ErrorKind, Result};

/// How near is near enough: `|x - y| <= atol + rtol |y|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Relative to the other tensor.
    pub rtol: f64,
    /// Absolute.
    pub atol: f64,
    /// Is NaN near to NaN?
    pub equal_nan: bool,
}

impl Default for Tolerance {
    /// PyTorch's: `1e-5` relative, `1e-8` absolute, NaN near to nothing.
    fn default() -> Tolerance {
        Tolerance { rtol: 1e-5, atol: 1e-8, equal_nan: false }
    }
}

/// The largest finite number of a float dtype.
fn largest(dtype: DType) -> f64 {
    // 2 less the last digit, times the largest power of 2.
    match dtype {
        DType::F16 => (2.0 - 2f64.powi(-10)) * 2f64.powi(15),
        DType::BF16 => (2.0 - 2f64.powi(-7)) * 2f64.powi(127),
        DType::F32 => f32::MAX.into(),
        _ => f64::MAX,
    }
}

impl Tensor {
    /// Is each element near that of `other`, within the default [`Tolerance`]? Equal infinities are.
    ///
    /// # Errors
    /// Those of the name rule, [`ErrorKind::Shape`].
    #[track_caller]
    pub fn isclose(&self, other: impl Operand) -> Result<Tensor> {
        self.isclose_with(other, Tolerance::default())
    }

    /// [`isclose`](Self::isclose) within another tolerance.
    ///
    /// # Errors
    /// Those of `isclose`, [`ErrorKind::Value`] for a negative tolerance.
    #[track_caller]
    pub fn isclose_with(&self, other: impl Operand, tolerance: Tolerance) -> Result<Tensor> {
        let Tolerance { rtol, atol, equal_nan } = tolerance;
        let message = format!("rtol and atol must not be negative, but got {rtol} and {atol}");
        Tensor::ensure(rtol >= 0.0 && atol >= 0.0, ErrorKind::Value, "isclose", message)?;
        let other = other.operand_beside(self.dtype())?;
        let mut close = self.detach().eq(other.detach())?;
        if equal_nan {
            close = close.logical_or(self.detach().isnan()?.logical_and(other.detach().isnan()?)?)?;
        }
        // Integers are compared as they are or, within a tolerance, as floats that hold nearly all of them.
        let float =
            |x: &Tensor| if x.dtype().is_floating_point() { Ok(x.detach()) } else { x.to(DType::F64) };
        let (x, y) = (float(self)?, float(&other)?);
        let distance = x.sub(&y)?.abs()?;
        let near = distance.le(y.abs()?.mul(rtol)?.add(atol)?)?.logical_and(distance.isfinite()?)?;
        close.logical_or(near)
    }

    /// Are all elements near those of `other`, within the default [`Tolerance`]?
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::rand([("N", 3)])?;
    /// assert!(x.exp()?.log()?.allclose(&x)?);
    /// assert!(!x.add(1e-3)?.allclose(&x)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the name rule, [`ErrorKind::Shape`].
    #[track_caller]
    pub fn allclose(&self, other: impl Operand) -> Result<bool> {
        self.allclose_with(other, Tolerance::default())
    }

    /// [`allclose`](Self::allclose) within another tolerance.
    ///
    /// # Errors
    /// Those of `allclose`, [`ErrorKind::Value`] for a negative tolerance.
    #[track_caller]
    pub fn allclose_with(&self, other: impl Operand, tolerance: Tolerance) -> Result<bool> {
        self.isclose_with(other, tolerance)?.all(..)?.is_nonzero()
    }

    /// Have the two tensors the same sizes, names and elements? NaN is not equal to itself.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn equal(&self, other: &Tensor) -> Result<bool> {
        if self.sizes() != other.sizes() || self.names() != other.names() {
            return Ok(false);
        }
        self.detach().eq(other.detach())?.all(..)?.is_nonzero()
    }

    /// Is each element infinite and positive?
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn isposinf(&self) -> Result<Tensor> {
        self.eq(f64::INFINITY)
    }

    /// Is each element infinite and negative?
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn isneginf(&self) -> Result<Tensor> {
        self.eq(f64::NEG_INFINITY)
    }

    /// The nearest number to each element that has so many decimals, halves to the even digit; negative decimals stand before the point. Its gradient is 0.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([12.345, -67.89])?;
    /// assert_eq!(x.round_decimals(1)?.to_vec::<f32>()?, [12.3, -67.9]);
    /// assert_eq!(x.round_decimals(-1)?.to_vec::<f32>()?, [10.0, -70.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] on `bool`, and on integers for negative decimals.
    #[track_caller]
    pub fn round_decimals(&self, decimals: i32) -> Result<Tensor> {
        if !self.dtype().is_floating_point() {
            let message = format!("rounding to {decimals} decimals is not implemented for {}", self.dtype());
            Tensor::ensure(decimals >= 0, ErrorKind::DType, "round_decimals", message)?;
            return self.round();
        }
        let power = 10f64.powi(decimals.abs());
        // Half types would overflow on the way.
        let x = self.to(if self.dtype() == DType::F64 { DType::F64 } else { DType::F32 })?;
        let rounded = match decimals {
            0 => x.round()?,
            1.. => x.mul(power)?.round()?.div(power)?,
            _ => x.div(power)?.round()?.mul(power)?,
        };
        rounded.to(self.dtype())
    }

    /// The tensor with `nan` for NaN and finite numbers for the infinities: without others the largest and the lowest of the dtype. The gradient of what was
    /// replaced is 0.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([f64::NAN, f64::INFINITY, 1.0])?;
    /// assert_eq!(x.nan_to_num(0.0, 9.0, None)?.to_vec::<f32>()?, [0.0, 9.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn nan_to_num(
        &self,
        nan: f64,
        posinf: impl Into<Option<f64>>,
        neginf: impl Into<Option<f64>>,
    ) -> Result<Tensor> {
        if !self.dtype().is_floating_point() {
            return Ok(self.clone());
        }
        let (high, low) = (posinf.into(), neginf.into());
        let most = largest(self.dtype());
        self.masked_fill(&self.isnan()?, nan)?
            .masked_fill(&self.isposinf()?, high.unwrap_or(most))?
            .masked_fill(&self.isneginf()?, low.unwrap_or(-most))
    }

    /// In place: [`nan_to_num`](Self::nan_to_num).
    ///
    /// # Errors
    /// Those of the other form, [`ErrorKind::Autograd`] on a leaf that requires a gradient.
    #[track_caller]
    pub fn nan_to_num_(
        &mut self,
        nan: f64,
        posinf: impl Into<Option<f64>>,
        neginf: impl Into<Option<f64>>,
    ) -> Result<&mut Tensor> {
        let y = self.nan_to_num(nan, posinf, neginf)?;
        self.assign("nan_to_num_", y)
    }

    /// `x^y` in `f64`, whatever the dtypes are.
    ///
    /// # Errors
    /// Those of [`pow`](Self::pow).
    #[track_caller]
    pub fn float_power(&self, exponent: impl Operand) -> Result<Tensor> {
        let exponent = exponent.operand_beside(DType::F64)?;
        // A number stays one: some have ops of their own.
        let exponent = if exponent.value().is_number() {
            exponent
        } else {
            std::borrow::Cow::Owned(exponent.to(DType::F64)?)
        };
        self.to(DType::F64)?.pow(&*exponent)
    }

    /// `x 2^y`.
    ///
    /// # Errors
    /// Those of [`mul`](Self::mul).
    #[track_caller]
    pub fn ldexp(&self, exponent: impl Operand) -> Result<Tensor> {
        self.mul(exponent.operand_beside(self.dtype())?.exp2()?)
    }

    /// The next number of the dtype after each element towards `other`, of `f32` and `f64`. It has no derivative: the result requires no gradient.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] on other dtypes, [`ErrorKind::Shape`], those of the name rule.
    #[track_caller]
    pub fn nextafter(&self, other: impl Operand) -> Result<Tensor> {
        let other = other.operand_beside(self.dtype())?;
        if self.requires_grad() && crate::is_grad_enabled() {
            return Err(crate::rules::no_derivative("nextafter", self));
        }
        self.value().nextafter(other.value()).map(Tensor::constant)
    }

    /// Is the only element not zero? It is what a condition asks of a tensor.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless there is exactly one.
    #[track_caller]
    pub fn is_nonzero(&self) -> Result<bool> {
        if self.numel() != 1 {
            let message = match self.numel() {
                0 => "Boolean value of Tensor with no values is ambiguous",
                _ => "Boolean value of Tensor with more than one value is ambiguous",
            };
            return Err(Error::new(ErrorKind::Value, "is_nonzero", message)
                .with_operands([self.extents()])
                .with_repair("x.any(..)? or x.all(..)?"));
        }
        Ok(self.item()?.to_f64() != 0.0)
    }
}
