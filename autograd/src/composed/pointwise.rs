//! Elementwise ops.

use crate::Tensor;
use crate::chain::*;
use crate::line::called_here;
use namegrad_core::names::is_strict;
use namegrad_core::{DType, Error, ErrorKind, Result, Scalar, default_dtype};
use namegrad_macros::composed;

composed! { pointwise;
    //! # More elementwise functions
    /// Whether each element is close to that of `other`: `|x - y| <= atol + rtol |y|`. Equal infinities are
    /// close; two NaNs are close only with `equal_nan`.
    ///
    /// # Errors
    /// The errors of the name rule, [`ErrorKind::Shape`], [`ErrorKind::Value`] for a negative tolerance.
    isclose (x, other: Operand; rtol: f64 = 1e-5, atol: f64 = 1e-8, equal_nan: bool = false) -> bool
        names unifies;
    /// Whether each element is positive infinity.
    isposinf (x) -> bool;
    /// Whether each element is negative infinity.
    isneginf (x) -> bool;
    /// The tensor with NaN replaced by `nan` and the infinities replaced by `posinf` and `neginf`, by default
    /// the largest and lowest finite numbers of the dtype. The gradient of a replaced element is 0.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([f64::NAN, f64::INFINITY, 1.0])?;
    /// assert_eq!(x.nan_to_num_with(NanToNumOptions::new().posinf(9.0))?.to_vec::<f32>()?, [0.0, 9.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    nan_to_num nan_to_num_ (x; nan: f64 = 0.0, posinf: Option<f64> = None, neginf: Option<f64> = None);
    /// `x` for `x > 0`, else `weight x`, with a slope for each channel or one for all. The dim of the weight is
    /// the dim of `x` with the same name; without a name it is dim 1.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] unless the weight has one number, or one for each channel; [`ErrorKind::DType`]
    /// unless both are floating-point and of one dtype; in strict mode [`ErrorKind::NameMismatch`].
    prelu (x, weight) on floats names keeps, weight: along channels;
    /// `x^y`, computed in `f64` for all dtypes.
    float_power (x, exponent: Operand of f64) names unifies;
    /// The logarithm of the multivariate gamma function of dimension `p`:
    /// `p (p - 1) / 4 ln π + Σ lgamma(x - j / 2)` over `j` from 0 to `p - 1`.
    ///
    /// # Errors
    /// `Value` if `p` is 0.
    multigammaln (x; p: usize) => {
        Error::ensure(p > 0, ErrorKind::Value, op, || "p has to be greater than or equal to 1".to_string())?;
        let mut sum = x.lgamma()?;
        for j in 1..p {
            sum = sum.add(x.add(-0.5 * j as f64).lgamma()?)?;
        }
        sum.add(p as f64 * (p as f64 - 1.0) / 4.0 * std::f64::consts::PI.ln())
    }
    /// `other - alpha x`.
    rsub (x, other: Operand; alpha: Scalar = 1) on floats integers names unifies => {
        let is_number = x.dtype() != DType::Bool && other.dtype() != DType::Bool;
        Error::ensure(is_number, ErrorKind::DType, op, || "bool has no difference".to_string())
            .map_err(|error| error.with_repair("x.logical_xor(other)?"))?;
        let scaled = if alpha == Scalar::Int(1) { x.clone() } else { x.mul(alpha)? };
        scaled.neg().add(other)
    }
    /// Whether each element is one of the `test_elements`, or with `invert`, whether it is none of them. NaN is
    /// not one.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1, 2, 3, 2])?.refine_names(["N"])?;
    /// assert_eq!(x.isin(&Tensor::new([2, 5])?)?.to_vec::<bool>()?, [false, true, false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    isin (x, test_elements: Operand; invert: bool = false) -> bool names keeps, test_elements: free;
    /// `x 2^y`.
    ldexp (x, other: Operand) names unifies;
    /// The numbers `m` and `e` of `x = m 2^e` for each element: `m` has an absolute value in [½, 1), and `e`
    /// is whole, in `i32`. For 0, infinities and NaN, `m` is `x`, and `e` is 0.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let (m, e) = Tensor::new([12.0, -0.5])?.frexp()?;
    /// assert_eq!((m.to_vec::<f32>()?, e.to_vec::<i32>()?), (vec![0.75, -0.5], vec![4, 0]));
    /// # Ok::<(), Error>(())
    /// ```
    frexp (x) -> (mantissa, exponent) on floats names keeps, exponent: keeps => {
        let exponent = |x: &f64| {
            let bits = |x: f64| ((x.to_bits() >> 52) & 0x7ff) as i32 - 1022;
            match *x {
                x if x == 0.0 || !x.is_finite() => 0,
                // Beside subnormal numbers the bits say nothing.
                x if x.is_subnormal() => bits(x * 2f64.powi(64)) - 64,
                x => bits(x),
            }
        };
        x.value().check_float("frexp")?;
        let mut exponents: Vec<i32> = x.numbers()?.elements_to_check::<f64>()?.iter().map(exponent).collect();
        exponents.resize(x.numel(), 0); // on the meta device, where there are none
        let exponents = Tensor::from_slice(&exponents, x.shape())?;
        Ok((x.ldexp(&exponents.neg()?)?, exponents))
    }
    /// For each element, the next representable number in the direction of `other`.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] unless floating-point, [`ErrorKind::Shape`], the errors of the name rule,
    /// [`ErrorKind::Autograd`] for a tensor that requires a gradient.
    nextafter (x, other: Operand) on floats names unifies refused;
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn isclose(
        x: &Tensor,
        other: &Tensor,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> Result<Tensor> {
        Error::ensure(rtol >= 0.0 && atol >= 0.0, ErrorKind::Value, "isclose", || {
            format!("rtol and atol must not be negative, but got {rtol} and {atol}")
        })?;
        let _called = called_here(); // a closure does not know its caller
        let (x, other) = (x.detach(), other.detach());
        let mut close = x.eq(&other)?;
        if equal_nan {
            close = close.logical_or(x.isnan().logical_and(other.isnan()?)?)?;
        }
        // Integers are compared exactly, or, with a tolerance, as floats, which represent nearly all of them.
        let float = |x: &Tensor| if x.dtype().is_floating_point() { Ok(x.clone()) } else { x.to(DType::F64) };
        let (x, other) = (float(&x)?, float(&other)?);
        let distance = x.sub(&other).abs()?;
        let near = distance.le(other.abs().mul(rtol).add(atol)?).logical_and(distance.isfinite()?)?;
        close.logical_or(near)
    }

    #[track_caller]
    pub(super) fn isposinf(x: &Tensor) -> Result<Tensor> {
        x.eq(f64::INFINITY)
    }

    #[track_caller]
    pub(super) fn isneginf(x: &Tensor) -> Result<Tensor> {
        x.eq(f64::NEG_INFINITY)
    }

    /// The largest finite number of a float dtype.
    fn largest(dtype: DType) -> f64 {
        // 2 minus the unit of the last digit, times the largest power of 2.
        match dtype {
            DType::F16 => (2.0 - 2f64.powi(-10)) * 2f64.powi(15),
            DType::BF16 => (2.0 - 2f64.powi(-7)) * 2f64.powi(127),
            DType::F32 => f32::MAX.into(),
            _ => f64::MAX,
        }
    }

    #[track_caller]
    pub(super) fn nan_to_num(
        x: &Tensor,
        nan: f64,
        posinf: Option<f64>,
        neginf: Option<f64>,
    ) -> Result<Tensor> {
        if !x.dtype().is_floating_point() {
            return Ok(x.clone());
        }
        let most = largest(x.dtype());
        x.masked_fill(&x.isnan()?, nan)?
            .masked_fill(&x.isposinf()?, posinf.unwrap_or(most))?
            .masked_fill(&x.isneginf()?, neginf.unwrap_or(-most))
    }

    #[track_caller]
    pub(super) fn prelu(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        const OP: &str = "prelu";
        let inputs = [x.value(), weight.value()];
        x.value().check_float(OP)?;
        Error::ensure(x.dtype() == weight.dtype(), ErrorKind::DType, OP, || {
            format!("x is {}, and the weight is {}", x.dtype(), weight.dtype())
        })
        .map_err(|error| {
            error.with_inputs(&inputs).with_repair(format!("weight.to(DType::{:?})?", x.dtype()))
        })?;
        let dim = match weight.names().get(0) {
            Some(name) => x.names().position(name),
            None => (x.ndim() > 1).then_some(1),
        };
        if let (None, Some(name), true) = (dim, weight.names().get(0), weight.numel() > 1) {
            let message =
                format!("the weight has a number for each element of '{name}', which x does not have");
            return Err(Error::new(ErrorKind::NameNotFound, OP, message).with_inputs(&inputs));
        }
        let channels = dim.map_or(1, |dim| x.sizes()[dim]);
        let is_one = weight.numel() == 1;
        Error::ensure(weight.ndim() <= 1 && (is_one || weight.numel() == channels), ErrorKind::Shape, OP, || {
            format!(
                "the weight must have one number, or one for each of the {channels} channels, got sizes {:?}",
                weight.sizes()
            )
        })
        .map_err(|error| error.with_inputs(&inputs))?;
        let mut sizes = vec![1; x.ndim()];
        if let Some(dim) = dim.filter(|_| !is_one) {
            sizes[dim] = channels;
            Error::ensure(
                !is_strict() || weight.name(0) == x.name(dim),
                ErrorKind::NameMismatch,
                OP,
                || "strict names: the dim of the weight and the dim of x that it meets have different names",
            )
            .map_err(|error| error.with_inputs(&inputs))?;
        }
        let (slope, plain) = (weight.unnamed().reshape(sizes)?, x.unnamed());
        let positive = plain.gt(0)?;
        // Filled before the product: infinity times a gradient of 0 is NaN.
        let y = positive.choose(&plain, plain.masked_fill(&positive, 0).mul(slope)?)?;
        if x.has_names() { y.rename(Some(x.names().clone())) } else { Ok(y) }
    }

    #[track_caller]
    pub(super) fn float_power(x: &Tensor, exponent: &Tensor) -> Result<Tensor> {
        let x = x.to(DType::F64)?;
        // A plain number stays one, because some exponents have their own ops.
        if exponent.value().is_number() {
            x.pow(exponent.to(DType::F64)?.item::<f64>()?)
        } else {
            x.pow(exponent.to(DType::F64)?)
        }
    }

    #[track_caller]
    pub(super) fn ldexp(x: &Tensor, other: &Tensor) -> Result<Tensor> {
        let dtype = x.value().result_type(other.value());
        let dtype = if dtype.is_floating_point() { dtype } else { default_dtype() };
        // In `f64`, powers of two are exact. A third of the exponent at a time, none of them is out of range.
        let (x, zeros) = (x.to(DType::F64)?, x.zeros_like()?.to(DType::F64)?.detach());
        let exponent = zeros.add(&other.to(DType::F64).clamp(-2100.0, 2100.0)?)?;
        let third = exponent.div(3.0).trunc()?.detach();
        let (part, rest) = (third.exp2()?, exponent.sub(&third.mul(2.0)?).exp2()?);
        x.mul(&part).mul(&part).mul(&rest).to(dtype)
    }

    #[track_caller]
    pub(super) fn isin(x: &Tensor, test_elements: &Tensor, invert: bool) -> Result<Tensor> {
        let dtype = x.value().result_type(test_elements.value());
        let dtype = if dtype == DType::Bool { DType::U8 } else { dtype };
        let (own, tests) = (x.detach().to(dtype)?, test_elements.detach().unnamed().to(dtype).reshape([-1])?);
        let found = match tests.numel() {
            0 => own.zeros_like().to(DType::Bool)?,
            1 => own.eq(tests.select(0, 0)?)?,
            count => {
                let sorted = tests.sort(0)?.values; // NaN last, where it equals nothing
                let places = sorted.searchsorted(own.unnamed().reshape([-1])?).clamp_max(count - 1)?;
                let near = sorted.index_select(places, 0).reshape(own.sizes())?;
                near.eq(own.unnamed()).rename(Some(x.names().clone()).filter(|names| names.is_named()))?
            }
        };
        if invert { found.logical_not() } else { Ok(found) }
    }

    #[track_caller]
    pub(super) fn nextafter(x: &Tensor, other: &Tensor) -> Result<Tensor> {
        x.value().nextafter(other.value()).map(Tensor::constant)
    }
}

/// # Comparisons of whole tensors
impl Tensor {
    /// Whether all elements are close to those of `other`; see [`isclose`](Self::isclose).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::rand([("N", 3)])?;
    /// assert!(x.exp()?.log()?.allclose(&x)?);
    /// assert!(!x.add(1e-3)?.allclose(&x)?);
    /// assert!(x.add(1e-3)?.allclose_with(&x, IscloseOptions::new().atol(0.1))?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`isclose`](Self::isclose).
    #[track_caller]
    pub fn allclose(&self, other: impl crate::Operand) -> Result<bool> {
        self.isclose(other).all(..)?.is_nonzero()
    }

    /// [`allclose`](Self::allclose) with other tolerances.
    ///
    /// # Errors
    /// Same as [`isclose`](Self::isclose).
    #[track_caller]
    pub fn allclose_with(&self, other: impl crate::Operand, options: IscloseOptions) -> Result<bool> {
        self.isclose_with(other, options).all(..)?.is_nonzero()
    }

    /// Whether both tensors have the same sizes, names and elements. NaN is not equal to itself.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn equal(&self, other: &Tensor) -> Result<bool> {
        if self.sizes() != other.sizes() || self.names() != other.names() {
            return Ok(false);
        }
        self.detach().eq(other.detach()).all(..)?.is_nonzero()
    }

    /// Whether the only element is nonzero, for use in conditions.
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
                .with_operands([self.shape()])
                .with_repair("x.any(..)? or x.all(..)?"));
        }
        Ok(self.item::<Scalar>()?.to_f64() != 0.0)
    }
}
