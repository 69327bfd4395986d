//! Derivatives of elementwise ops on two or three tensors. The gradient of a broadcast input has the sizes of
//! the result; the tape sums it.

use crate::Tensor;
use crate::chain::*;
use namegrad_core::{DType, Result, Scalar};
use namegrad_macros::derivatives;
use std::borrow::Cow;
use std::f64::consts::LN_2;

/// The least divisor in the derivative of `bernoulli_cross_entropy`: 1e-12 as PyTorch has it for all dtypes.
const SMALLEST: f64 = 1e-12f32 as f64;

derivatives! { binary; |g, cx|
    add(a, b) -> y       { a: [] g.clone(), b: [] g.clone() }
    sub(a, b) -> y       { a: [] g.clone(), b: [] -g }
    mul(a, b) -> y       { a: [b] g * b, b: [a] g * a }
    div(a, b) -> y       { a: [b] g / b, b: [b y] -g * y / b }
    fmod(a, b) -> y      { a: [] g.clone(), b: [a b] -g * a.trunc_divide(b)? }
    remainder(a, b) -> y { a: [] g.clone(), b: [a b] -g * a.floor_divide(b)? }
    pow(a, b) -> y       { a: [a b] pow_base_gradient(g, a, b)?, b: [a b y] pow_exponent_gradient(g, a, b, y)? }
    atan2(a, b) -> y     { a: [a b] g * over_square(g, b, a)?, b: [a b] -g * over_square(g, a, b)? }
    hypot(a, b) -> y     { a: [a y] g * (a / y), b: [b y] g * (b / y) }
    logaddexp(a, b) -> y { a: [a b] g * apart(g, a, b).sigmoid()?, b: [a b] g * apart(g, b, a).sigmoid()? }
    logaddexp2(a, b) -> y { a: [a b] g * (apart(g, a, b)? * LN_2).sigmoid()?, b: [a b] g * (apart(g, b, a)? * LN_2).sigmoid()? }
    xlog1py(a, b) -> y   { a: [a b] (g * like(g, b)?.log1p()?).masked_fill(&a.eq(0).logical_and(b.le(-1)?)?, 0.0)?, b: [a b] g * a / (b + 1.0) }
    zeta(a, b) -> y      { a: refused, b: [a b] - g * a * (a + 1.0).zeta(b)? }
    gammainc(a, b) -> y  { a: refused, b: [a b] g * gamma_density(a, b)? }
    gammaincc(a, b) -> y { a: refused, b: [a b] - g * gamma_density(a, b)? }
    chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w refused;
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u refused;
    shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w refused;
    hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p refused;
    xlogy(a, b) -> y     { a: [a b] (g * like(g, b)?.log()?).masked_fill(&a.eq(0).logical_and(b.le(0)?)?, 0.0)?, b: [a b] g * a / b }
    bernoulli_cross_entropy(a, target) -> y {
        a: [a target] g * (a - &*like(g, target)?) / a.mul(a.neg().add(1.0)?).clamp_min(SMALLEST)?,
        target: [a] g * (a.neg().log1p()? - a.log()?)
    }
    copysign(a, b) -> y  { a: [a y] g * a.sign()? * y.sign()?, b: [] g.zeros_like()? }
    maximum(a, b) -> y   { a: [a b] shared(g, a.lt(b)?, a.eq(b)?)?, b: [a b] shared(g, b.lt(a)?, a.eq(b)?)? }
    minimum(a, b) -> y   { a: [a b] shared(g, a.gt(b)?, a.eq(b)?)?, b: [a b] shared(g, b.gt(a)?, a.eq(b)?)? }
    fmax(a, b) -> y      { a: [a b] chosen(g, a.ge(b).logical_or(b.isnan()?)?)?, b: [a b] chosen(g, a.ge(b).logical_or(b.isnan()?).logical_not()?)? }
    fmin(a, b) -> y      { a: [a b] chosen(g, a.le(b).logical_or(b.isnan()?)?)?, b: [a b] chosen(g, a.le(b).logical_or(b.isnan()?).logical_not()?)? }
    clamp_min(a, b) -> y { a: [a b] chosen(g, a.ge(b)?)?, b: [a b] chosen(g, a.lt(b)?)? }
    clamp_max(a, b) -> y { a: [a b] chosen(g, a.le(b)?)?, b: [a b] chosen(g, a.gt(b)?)? }
    heaviside(a, b) -> y { a: [] g.zeros_like()?, b: [a] chosen(g, a.eq(0)?)? }
    floor_divide(a, b) -> y { a: [] g.zeros_like()?, b: [] g.zeros_like()? }
    trunc_divide(a, b) -> y { a: [] g.zeros_like()?, b: [] g.zeros_like()? }
    lerp(a, end, weight) -> y {
        a: [weight] g * (1.0 - &*like(g, weight)?),
        end: [weight] g * weight,
        weight: [a end] g * (end - a)
    }
    choose(condition, a, other) -> y { a: [condition] condition.choose(g, 0.0)?, other: [condition] g.masked_fill(condition, 0.0)? }
    masked_fill(a, mask, value) -> y { a: [mask] g.masked_fill(mask, 0.0)?, value: [mask] mask.choose(g, 0.0).sum(..)? }
    clamp(a, min, max) -> y {
        a: [a min max] chosen(g, a.ge(min).logical_and(a.le(max)?)?)?,
        min: [a min max] chosen(g, a.lt(min).logical_and(min.le(max)?)?)?,
        max: [a min max] chosen(g, a.gt(max).logical_or(max.lt(min)?)?)?
    }
    eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd lcm constant;
}

/// The gradient where `condition` is true, else 0.
fn chosen(g: &Tensor, condition: Tensor) -> Result<Tensor> {
    condition.choose(g, 0.0)
}

/// The gradient where this input was chosen, and half of it where both are equal. Where one is NaN, both get
/// the gradient.
fn shared(g: &Tensor, lost: Tensor, tied: Tensor) -> Result<Tensor> {
    tied.choose(g * 0.5, g).masked_fill(&lost, 0.0)
}

/// `a - b` in the dtype of the gradient, because masks cannot be subtracted.
fn apart(g: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    like(g, a)?.sub(&*like(g, b)?)
}

/// The operand cast to the dtype of the gradient, because its own dtype may be an integer or a narrower
/// float.
pub(super) fn like<'a>(g: &Tensor, operand: &'a Tensor) -> Result<Cow<'a, Tensor>> {
    operand.cast_to(Some(g.dtype()))
}

/// `a / (a² + b²)`, and 0 where both are 0, so that `atan2(0, 0)` has a gradient of 0. The larger of the two
/// is taken out first: its square may be out of range.
fn over_square(g: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (a, b) = (&*like(g, a)?, &*like(g, b)?);
    let larger = a.abs().maximum(b.abs()?)?.detach();
    let infinite = a.isinf().logical_xor(b.isinf()?)?;
    let larger = larger.masked_fill(&larger.eq(0).logical_or(larger.isinf()?)?, 1.0)?;
    let (a, b) = (a.div(&larger)?, b.div(&larger)?);
    let square = a.square().add(b.square()?)?;
    let zero = square.eq(0).logical_or(&infinite)?; // or far beyond any angle
    a.div(&square.masked_fill(&zero, 1.0)?).div(&larger).masked_fill(&zero, 0.0)
}

/// `b a^(b-1)`, and 0 where `b` is 0, even for `a = 0`.
fn pow_base_gradient(g: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if b.value().is_number() {
        // If all exponents are one number, no mask is needed, and a square needs no power.
        return match b.item::<Scalar>()? {
            b if b.to_f64() == 0.0 => g.zeros_like(),
            b if b.to_f64() == 2.0 => g.mul(&a.mul(2.0)?),
            Scalar::Int(b) => g.mul(&a.pow(b.wrapping_sub(1)).mul(b)?),
            b => g.mul(&a.pow(b.to_f64() - 1.0).mul(b.to_f64())?),
        };
    }
    // Integer exponents stay integers: the dtype of the gradient may not have the odd ones.
    let less = if b.dtype().is_floating_point() { like(g, b)?.sub(1)? } else { b.to(DType::I64).sub(1)? };
    let slope = like(g, b)?.mul(&like(g, a)?.pow(&less)?)?;
    g.mul(&slope.masked_fill(&b.eq(0)?, 0.0)?)
}

/// `a^b ln a`, and its limit 0 where `a` is 0 and `b` is not negative.
fn pow_exponent_gradient(g: &Tensor, a: &Tensor, b: &Tensor, y: &Tensor) -> Result<Tensor> {
    let vanishing = a.eq(0).logical_and(b.ge(0)?)?;
    let slope = y.mul(&like(g, a)?.log()?)?;
    g.mul(&slope.masked_fill(&vanishing, 0.0)?)
}

/// `x^(a-1) e^-x / Γ(a)`.
fn gamma_density(a: &Tensor, x: &Tensor) -> Result<Tensor> {
    like(x, a)?.sub(1.0).xlogy(x).sub(x).sub(a.lgamma()?).exp()
}
