//! Elementwise ops on one tensor. The result has the names of the input.
//!
//! `float` is the formula for floating-point numbers (half types compute in `f32`), `int` for integers (as
//! `i64`), `boolean` for `bool`. If a row has only `float`, integers and `bool` are converted to the default
//! float; otherwise a dtype without a formula is an error. `dtypes` is an extra rule about dtypes, and
//! `before` a function that checks the inputs before the op runs. `long` is for formulas of many instructions,
//! `plain` and `scalar` are for rare functions, whose loops are not compiled for all sets of vectors.

use crate::cpu::math::rare;
use crate::dtype::Scalar;
use crate::error::{Error, ErrorKind, Result};
use crate::ops::by_element::Instead;
use crate::tensor::NamedTensor;
use namegrad_macros::ops;

/// The constants of [`selu`](NamedTensor::selu), from the paper's reference code.
#[doc(hidden)]
pub const SELU_ALPHA: f64 = 1.673_263_242_354_377_3;
#[doc(hidden)]
pub const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

ops! { unary;
    //! # Elementwise functions
    /// `|x|` of each element.
    abs abs_ (x) { float: x.abs(), int: x.wrapping_abs() }
    /// `-x` of each element.
    neg neg_ (x) halves { float: -x, int: x.wrapping_neg() }
    /// `x` itself: the unary plus operator.
    positive (x) plain { float: x, int: x }
    /// -1, 0 or 1: the sign of each element; NaN gives 0.
    sign sign_ (x) plain { float: if x > T::ZERO { T::ONE } else if x < T::ZERO { -T::ONE } else { T::ZERO }, int: x.signum(), boolean: x }
    /// The same as [`sign`](Self::sign); in PyTorch the two differ only for complex numbers.
    sgn sgn_ (x) { like: sign }
    /// The largest integer not greater than each element.
    floor floor_ (x) { float: x.floor(), int: x }
    /// The smallest integer not less than each element.
    ceil ceil_ (x) { float: x.ceil(), int: x }
    /// Each element rounded to the nearest integer, with halves rounded to even. `decimals` rounds to that
    /// many decimal places; negative values round to tens, hundreds and so on.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([12.345, -67.89])?;
    /// assert_eq!(x.round()?.to_vec::<f32>()?, [12.0, -68.0]);
    /// assert_eq!(x.round_with(RoundOptions::new().decimals(1))?.to_vec::<f32>()?, [12.3, -67.9]);
    /// assert_eq!(x.round_with(RoundOptions::new().decimals(-1))?.to_vec::<f32>()?, [10.0, -70.0]);
    /// # Ok::<(), Error>(())
    /// ```
    round round_ (x; decimals: isize = 0) plain {
        float: {
            let power = T::from_f64(10f64.powi(decimals.to_f64().abs() as i32));
            if decimals > T::ZERO { (x * power).round() / power } else { (x / power).round() * power }
        },
        int: x, before: to_whole
    }
    /// Each element without its fractional part.
    trunc trunc_ (x) { float: x.trunc(), int: x }
    /// The fractional part of each element: `x - trunc(x)`.
    frac frac_ (x) plain { float: x.frac(), dtypes: Dtypes::Floats }
    /// `x²` of each element; `bool` gives `i64`.
    square square_ (x) { float: x * x, int: x.wrapping_mul(x), dtypes: Dtypes::BoolAsInt }
    /// `√x` of each element; NaN below 0.
    sqrt sqrt_ (x) { float: x.sqrt() }
    /// `1 / √x` of each element.
    rsqrt rsqrt_ (x) { float: x.rsqrt() }
    /// `1 / x` of each element.
    reciprocal reciprocal_ (x) { float: x.recip() }
    /// `e^x` of each element.
    exp exp_ (x) long { float: x.exp() }
    /// `2^x` of each element.
    exp2 exp2_ (x) scalar { float: x.exp2() }
    /// `e^x - 1` of each element, accurate for small `x`.
    expm1 expm1_ (x) long { float: x.exp_m1() }
    /// The natural logarithm of each element; -inf at 0, NaN below.
    log log_ (x) long { float: x.ln() }
    /// The logarithm to base 2 of each element.
    log2 log2_ (x) scalar { float: x.log2() }
    /// The logarithm to base 10 of each element.
    log10 log10_ (x) scalar { float: x.log10() }
    /// `ln(1 + x)` of each element, accurate for small `x`.
    log1p log1p_ (x) long { float: x.ln_1p() }
    /// The sine of each element, in radians.
    sin sin_ (x) scalar { float: x.sin() }
    /// The cosine of each element, in radians.
    cos cos_ (x) scalar { float: x.cos() }
    /// The tangent of each element, in radians.
    tan tan_ (x) scalar { float: x.tan() }
    /// The arc sine of each element, in radians; NaN outside [-1, 1].
    asin asin_ (x) scalar { float: x.asin() }
    /// The arc cosine of each element, in radians; NaN outside [-1, 1].
    acos acos_ (x) scalar { float: x.acos() }
    /// The arc tangent of each element, in radians.
    atan atan_ (x) scalar { float: x.atan() }
    /// The hyperbolic sine of each element.
    sinh sinh_ (x) scalar { float: x.sinh() }
    /// The hyperbolic cosine of each element.
    cosh cosh_ (x) scalar { float: x.cosh() }
    /// The hyperbolic tangent of each element.
    tanh tanh_ (x) long { float: x.tanh() }
    /// The inverse hyperbolic sine of each element.
    asinh asinh_ (x) scalar { float: x.asinh() }
    /// The inverse hyperbolic cosine of each element; NaN below 1.
    acosh acosh_ (x) scalar { float: x.acosh() }
    /// The inverse hyperbolic tangent of each element; NaN outside [-1, 1].
    atanh atanh_ (x) scalar { float: x.atanh() }
    /// `sin(πx) / (πx)` of each element, 1 at 0; NaN at infinity.
    sinc sinc_ (x) scalar { float: x.sinc() }
    /// Degrees to radians: `x π / 180`.
    deg2rad deg2rad_ (x) plain { float: x.deg2rad() }
    /// Radians to degrees: `x 180 / π`.
    rad2deg rad2deg_ (x) plain { float: x.rad2deg() }
    /// `1 / (1 + e^-x)` of each element.
    sigmoid sigmoid_ (x) long { float: x.sigmoid() }
    /// `max(x, 0)` of each element; NaN stays NaN. The derivative at 0 is 0.
    relu relu_ (x) halves { float: x.maximum(T::ZERO), int: x.max(0) }
    /// `x Φ(x)` of each element, where `Φ` is the distribution function of the normal distribution:
    /// `x/2 (1 + erf(x/√2))`.
    gelu gelu_ (x) long { float: x.gelu(), dtypes: Dtypes::Floats }
    /// `x / (1 + e^-x)` of each element: `x` times its [`sigmoid`](Self::sigmoid).
    silu silu_ (x) long { float: x.silu(), dtypes: Dtypes::Floats }
    /// The error function: `2/√π ∫₀ˣ e^(-t²) dt`.
    erf erf_ (x) long { float: x.erf() }
    /// `1 - erf(x)`, accurate for large `x`.
    erfc erfc_ (x) scalar { float: x.erfc() }
    /// The inverse of [`erf`](Self::erf); infinite at ±1, NaN outside.
    erfinv erfinv_ (x) scalar { float: x.erfinv() }
    /// The logarithm of the absolute value of the gamma function.
    lgamma lgamma_ (x) scalar { float: x.lgamma() }
    /// The derivative of [`lgamma`](Self::lgamma).
    digamma digamma_ (x) scalar { float: x.digamma() }
    /// The modified Bessel function of the first kind of order 0; NaN at infinity.
    i0 i0_ (x) scalar { float: x.i0() }
    /// `e^-|x|` times [`i0`](Self::i0), without overflow.
    i0e (x) scalar { float: x.i0e() }
    /// The modified Bessel function of the first kind of order 1; NaN at infinity.
    i1 (x) scalar { float: x.i1() }
    /// `e^-|x|` times [`i1`](Self::i1), without overflow.
    i1e (x) scalar { float: x.i1e() }
    /// `e^(x²) erfc(x)`, without overflow for large `x`.
    erfcx (x) scalar { float: x.erfcx() }
    /// The distribution function of the standard normal distribution: `erfc(-x/√2) / 2`.
    ndtr (x) scalar { float: x.ndtr() }
    /// The inverse of [`ndtr`](Self::ndtr); infinite at 0 and 1, NaN outside.
    ndtri (x) scalar { float: x.ndtri() }
    /// The logarithm of [`ndtr`](Self::ndtr), accurate for large negative `x`.
    log_ndtr (x) scalar { float: x.log_ndtr() }
    /// `-x ln x`, which is 0 at 0 and -inf below: the contribution of one outcome to the entropy.
    entr (x) scalar { float: x.entr() }
    /// The Bessel function of the first kind of order 0.
    bessel_j0 (x) scalar { float: T::from_f64(rare::j0(x.to_f64())) }
    /// The Bessel function of the first kind of order 1.
    bessel_j1 (x) scalar { float: T::from_f64(rare::j1(x.to_f64())) }
    /// The Bessel function of the second kind of order 0; -inf at 0, NaN below.
    bessel_y0 (x) scalar { float: T::from_f64(rare::y0(x.to_f64())) }
    /// The Bessel function of the second kind of order 1; -inf at 0, NaN below.
    bessel_y1 (x) scalar { float: T::from_f64(rare::y1(x.to_f64())) }
    /// The modified Bessel function of the second kind of order 0; infinite at 0, NaN below.
    modified_bessel_k0 (x) scalar { float: T::from_f64(rare::k0(x.to_f64())) }
    /// The modified Bessel function of the second kind of order 1; infinite at 0, NaN below.
    modified_bessel_k1 (x) scalar { float: T::from_f64(rare::k1(x.to_f64())) }
    /// `e^x` times [`modified_bessel_k0`](Self::modified_bessel_k0), without underflow.
    scaled_modified_bessel_k0 (x) scalar { float: T::from_f64(rare::k0e(x.to_f64())) }
    /// `e^x` times [`modified_bessel_k1`](Self::modified_bessel_k1), without underflow.
    scaled_modified_bessel_k1 (x) scalar { float: T::from_f64(rare::k1e(x.to_f64())) }
    /// The spherical Bessel function of the first kind of order 0: `sin x / x`, 1 at 0.
    spherical_bessel_j0 (x) scalar { float: T::from_f64(rare::spherical_j0(x.to_f64())) }
    /// Airy's function `Ai(x)`, the solution of `y'' = x y` that vanishes at infinity.
    airy_ai (x) scalar { float: T::from_f64(rare::airy_ai(x.to_f64())[0]) }
    /// The derivative of [`airy_ai`](Self::airy_ai); 0 at both infinities.
    airy_ai_prime (x) scalar { float: T::from_f64(rare::airy_ai(x.to_f64())[1]) }
    /// The bitwise "not" of integers; the logical "not" of `bool`.
    bitwise_not bitwise_not_ (x) { int: !x, boolean: !x }
    /// Whether each element is zero or false.
    logical_not logical_not_ (x) -> bool plain { float: x == T::ZERO, int: x == 0, boolean: !x }
    /// Whether the sign bit of each element is set, which includes -0.
    signbit (x) -> bool plain { float: T::ONE.copysign(x) < T::ZERO, int: x < 0, boolean: x & !x }
    /// Whether each element is NaN.
    isnan (x) -> bool plain { float: x.is_nan(), int: false, boolean: x & !x }
    /// Whether each element is infinite.
    isinf (x) -> bool plain { float: x.is_infinite(), int: false, boolean: x & !x }
    /// Whether each element is finite: neither infinite nor NaN.
    isfinite (x) -> bool plain { float: x.is_finite(), int: true, boolean: x | !x }
    /// `ln(x / (1 - x))` of each element: the inverse of [`sigmoid`](Self::sigmoid). Outside [0, 1], the
    /// result and the derivative are NaN. If `eps` is 0 or more, `x` is first clamped to [`eps`, `1 - eps`],
    /// outside of which the derivative is 0.
    logit logit_ (x; eps: f64 = -1.0) scalar {
        float: (if eps < T::ZERO { x } else if x < eps { eps } else if x > T::ONE - eps { T::ONE - eps } else { x }).logit()
    }
    /// The derivative of order `n` of [`digamma`](Self::digamma): `(-1)ⁿ⁺¹ n! Σ (x + k)⁻ⁿ⁻¹` over
    /// `k ≥ 0`; `digamma` itself for 0.
    polygamma polygamma_ (x; n: usize) scalar { float: x.polygamma(n.to_f64() as u32) }
    /// `x` for `x > 0`, else `alpha (e^x - 1)`.
    elu elu_ (x; alpha: f64 = 1.0) long {
        // What is computed in a branch alone would keep the branch, and the loop from having vectors.
        float: { let low = alpha * x.exp_m1(); if x > T::ZERO { x } else { low } }, dtypes: Dtypes::Floats
    }
    /// `x` for `x > 0`, else `negative_slope x`.
    leaky_relu leaky_relu_ (x; negative_slope: f64 = 0.01) {
        float: if x > T::ZERO { x } else { negative_slope * x }, dtypes: Dtypes::Floats
    }
    /// `ln(1 + e^(beta x)) / beta`, a smooth [`relu`](Self::relu). Where `beta x > threshold`, the result is
    /// `x` itself, which is equal up to rounding.
    softplus softplus_ (x; beta: f64 = 1.0, threshold: f64 = 20.0) long {
        float: { let low = (x * beta).exp().ln_1p() / beta; if x * beta > threshold { x } else { low } },
        dtypes: Dtypes::Floats
    }
    /// `x` limited to the range from `min_val` to `max_val`: `min(max(x, min_val), max_val)`. At a bound the
    /// derivative is 0.
    hardtanh hardtanh_ (x; min_val: Scalar = -1, max_val: Scalar = 1) {
        float: x.maximum(min_val).minimum(max_val), int: x.max(min_val).min(max_val), before: in_order
    }
    /// `x` for `x > threshold`, else `value`; NaN stays NaN. The derivative is 0 at the threshold.
    threshold threshold_ (x; threshold: Scalar, value: Scalar) plain {
        float: if x <= threshold { value } else { x }, int: if x <= threshold { value } else { x }
    }
    /// `x` where `|x| > lambd`, else 0, where the derivative is 0 too; NaN stays NaN.
    hardshrink (x; lambd: f64 = 0.5) {
        float: if x.abs() <= lambd { T::ZERO } else { x }, dtypes: Dtypes::Floats
    }
    /// `x` for `x > 0`, else `alpha (e^(x / alpha) - 1)`: an [`elu`](Self::elu) whose slope at 0 is 1 for
    /// every `alpha`.
    celu celu_ (x; alpha: f64 = 1.0) scalar {
        float: if x > T::ZERO { x } else { alpha * (x / alpha).exp_m1() }, dtypes: Dtypes::Floats, before: no_zero_alpha
    }
    /// `scale x` for `x > 0`, else `scale alpha (e^x - 1)`: an [`elu`](Self::elu) whose constants keep the
    /// mean 0 and the variance 1 of independent inputs. They are `alpha = 1.67326` and `scale = 1.05070`.
    ///
    /// # Source
    /// Klambauer et al., *Self-Normalizing Neural Networks* (2017), equation 2.
    selu selu_ (x) long {
        float: { let low = x.exp_m1() * T::from_f64(SELU_ALPHA * SELU_SCALE); if x > T::ZERO { x * T::from_f64(SELU_SCALE) } else { low } },
        dtypes: Dtypes::Floats
    }
    /// `x tanh(softplus(x))`.
    ///
    /// # Source
    /// Misra, *Mish: A Self Regularized Non-Monotonic Activation Function* (2019), equation 1.
    mish mish_ (x) long {
        // With n = e^2x + 2 e^x, tanh(ln(1 + e^x)) is n / (n + 2), which takes one exponential.
        float: {
            let e = x.exp();
            let n = e * (e + T::from_f64(2.0));
            let low = x * (n / (n + T::from_f64(2.0)));
            if x > T::from_f64(20.0) { x } else { low }
        },
        dtypes: Dtypes::Floats
    }
    /// `x min(max(x + 3, 0), 6) / 6`, a [`silu`](Self::silu) of straight lines and a parabola. The derivative
    /// is 0 at -3 and 1 at 3.
    ///
    /// # Source
    /// Howard et al., *Searching for MobileNetV3* (2019), section 5.2.
    hardswish hardswish_ (x) {
        float: x * (x + T::from_f64(3.0)).maximum(T::ZERO).minimum(T::from_f64(6.0)) / T::from_f64(6.0), dtypes: Dtypes::Floats
    }
    /// `min(max(x + 3, 0), 6) / 6`, a [`sigmoid`](Self::sigmoid) of straight lines. The derivative is 0 at -3
    /// and at 3, and for NaN.
    hardsigmoid hardsigmoid_ (x) {
        float: (x + T::from_f64(3.0)).maximum(T::ZERO).minimum(T::from_f64(6.0)) / T::from_f64(6.0), dtypes: Dtypes::Floats
    }
    /// `ln(1 / (1 + e^-x))`, the logarithm of [`sigmoid`](Self::sigmoid), without overflow.
    logsigmoid (x) long { float: x.minimum(T::ZERO) - (-x.abs()).exp().ln_1p(), dtypes: Dtypes::Floats }
}

/// Selects the kernel of `round`: rounding to integers has its own loop, and integers do not change.
fn to_whole(op: &'static str, inputs: &[&NamedTensor], args: &[Scalar]) -> Result<Option<Instead>> {
    use whole::elements::ROUND;
    let (dtype, decimals) = (inputs[0].dtype(), args[0].to_i64());
    if !dtype.is_floating_point() && decimals < 0 {
        let message = format!("rounding to {decimals} decimals is not implemented for {dtype}");
        return Err(Error::about(inputs, ErrorKind::DType, op, message).with_repair("x.to(DType::F64)?"));
    }
    Ok((decimals == 0).then_some(Instead::OfFirst(&ROUND)))
}

/// Kernels that need no arguments.
mod whole {
    namegrad_macros::kernels! {
        /// [`round`](crate::NamedTensor::round) without decimals.
        round (x) { float: x.round(), int: x }
    }
}

/// Checks that `min_val` is not greater than `max_val`.
fn in_order(op: &'static str, inputs: &[&NamedTensor], args: &[Scalar]) -> Result<Option<Instead>> {
    let (min_val, max_val) = (args[0], args[1]);
    if min_val.to_f64() <= max_val.to_f64() || min_val.to_f64().is_nan() || max_val.to_f64().is_nan() {
        return Ok(None);
    }
    let message = format!("min_val cannot be greater than max_val, but got {min_val} and {max_val}");
    Err(Error::about(inputs, ErrorKind::Value, op, message))
}

/// Checks that `alpha`, by which `x` is divided, is not zero.
fn no_zero_alpha(op: &'static str, inputs: &[&NamedTensor], args: &[Scalar]) -> Result<Option<Instead>> {
    if args[0].to_f64() != 0.0 {
        return Ok(None);
    }
    let message = "ZeroDivisionError: alpha cannot be 0 for CELU";
    Err(Error::about(inputs, ErrorKind::Value, op, message))
}
