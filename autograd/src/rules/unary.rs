//! Derivatives of elementwise ops on one tensor.

use crate::chain::*;
use crate::rules::kernel;
use namegrad_core::ops::gradients;
use namegrad_core::ops::unary::{SELU_ALPHA, SELU_SCALE};
use namegrad_macros::derivatives;
use std::f64::consts::{FRAC_1_SQRT_2, LN_2, LN_10, PI, TAU};

/// 1/6 as PyTorch's derivative of `hardsigmoid` has it for all dtypes, `f64` included.
const SIXTH: f64 = (1.0f32 / 6.0) as f64;

derivatives! { unary; |g, cx|
    abs(x) -> y        { x: [x] g * x.sign()? }
    neg(x) -> y        { x: [] -g }
    positive(x) -> y   { x: [] g.clone() }
    sign(x) -> y       { x: [] g.zeros_like()? }
    sgn(x) -> y        { x: [] g.zeros_like()? }
    floor(x) -> y      { x: [] g.zeros_like()? }
    ceil(x) -> y       { x: [] g.zeros_like()? }
    round(x) -> y      { x: [] g.zeros_like()? }
    trunc(x) -> y      { x: [] g.zeros_like()? }
    frac(x) -> y       { x: [] g.clone() }
    square(x) -> y     { x: [x] g * (2.0 * x) }
    sqrt(x) -> y       { x: [y] g / (2.0 * y) => kernel(gradients::sqrt(y.value(), g.value())?) }
    rsqrt(x) -> y      { x: [y] -0.5 * g * y.pow(3)? }
    reciprocal(x) -> y { x: [y] -g * y.square()? }
    exp(x) -> y        { x: [y] g * y }
    exp2(x) -> y       { x: [y] g * y * LN_2 }
    expm1(x) -> y      { x: [y] g * (y + 1.0) }
    log(x) -> y        { x: [x] g / x }
    log2(x) -> y       { x: [x] g / (x * LN_2) }
    log10(x) -> y      { x: [x] g / (x * LN_10) }
    log1p(x) -> y      { x: [x] g / (x + 1.0) }
    sin(x) -> y        { x: [x] g * x.cos()? }
    cos(x) -> y        { x: [x] -g * x.sin()? }
    tan(x) -> y        { x: [y] g * (1.0 + y.square()?) }
    asin(x) -> y       { x: [x] g * (1.0 - x.square()?).rsqrt()? }
    acos(x) -> y       { x: [x] -g * (1.0 - x.square()?).rsqrt()? }
    atan(x) -> y       { x: [x] g / (x.square()? + 1.0) }
    sinh(x) -> y       { x: [x] g * x.cosh()? }
    cosh(x) -> y       { x: [x] g * x.sinh()? }
    tanh(x) -> y       { x: [y] g * (1.0 - y.square()?) => kernel(gradients::tanh(y.value(), g.value())?) }
    asinh(x) -> y      { x: [x] g * (x.square()? + 1.0).rsqrt()? }
    acosh(x) -> y      { x: [x] g * (x.square()? - 1.0).rsqrt()? }
    atanh(x) -> y      { x: [x] g / (1.0 - x.square()?) }
    sinc(x) -> y       { x: [x] g * sinc_slope(x)? }
    deg2rad(x) -> y    { x: [] g * (PI / 180.0) }
    rad2deg(x) -> y    { x: [] g * (180.0 / PI) }
    sigmoid(x) -> y    { x: [y] g * (1.0 - y) * y => kernel(gradients::sigmoid(y.value(), g.value())?) }
    logit(x; eps) -> y { x: [x; eps] logit_gradient(g, x, eps)? }
    relu(x) -> y       { x: [y] g.masked_fill(&y.le(0)?, 0.0)? => kernel(gradients::relu(y.value(), g.value())?) }
    gelu(x) -> y       { x: [x] g * (x.ndtr()? + x * normal_density(x)?) => kernel(gradients::gelu(x.value(), g.value())?) }
    silu(x) -> y       { x: [x] g * (x.sigmoid()? * (1.0 + x * (1.0 - x.sigmoid()?))) => kernel(gradients::silu(x.value(), g.value())?) }
    erf(x) -> y        { x: [x] g * (2.0 / PI.sqrt()) * (-x.square()?).exp()? }
    erfc(x) -> y       { x: [x] g * (-2.0 / PI.sqrt()) * (-x.square()?).exp()? }
    erfinv(x) -> y     { x: [y] g * (PI.sqrt() / 2.0) * y.square().exp()? }
    lgamma(x) -> y     { x: [x] g * x.digamma()? }
    digamma(x) -> y    { x: [x] g * x.polygamma(1)?.masked_fill(&x.eq(f64::NEG_INFINITY)?, f64::NAN)? }
    polygamma(x; n) -> y { x: [x; n] g * x.polygamma(n + 1)? }
    elu(x; alpha) -> y {
        x: [x; alpha] elu_gradient(g, x, alpha, 1.0)? => kernel(gradients::elu(x.value(), g.value(), alpha)?)
    }
    leaky_relu(x; negative_slope) -> y {
        x: [x; negative_slope] x.gt(0).choose(g, g * negative_slope)? => kernel(gradients::leaky_relu(x.value(), g.value(), negative_slope)?)
    }
    softplus(x; beta, threshold) -> y {
        x: [x; beta threshold] (x * beta).gt(threshold).choose(g, g * (x * beta).sigmoid()?)?
            => kernel(gradients::softplus(x.value(), g.value(), beta, threshold)?)
    }
    hardtanh(x; min_val, max_val) -> y {
        x: [x; min_val max_val] g.masked_fill(&x.le(min_val).logical_or(x.ge(max_val)?)?, 0.0)?
            => kernel(gradients::hardtanh(x.value(), g.value(), min_val.to_f64(), max_val.to_f64())?)
    }
    threshold(x; threshold) -> y { x: [x; threshold] g.masked_fill(&x.le(threshold)?, 0.0)? }
    hardshrink(x; lambd) -> y { x: [x; lambd] g.masked_fill(&x.abs()?.le(lambd)?, 0.0)? }
    celu(x; alpha) -> y {
        x: [x; alpha] elu_gradient(g, x, 1.0, alpha)? => kernel(gradients::celu(x.value(), g.value(), alpha)?)
    }
    selu(x) -> y       { x: [x] selu_gradient(g, x)? => kernel(gradients::selu(x.value(), g.value())?) }
    mish(x) -> y       { x: [x] mish_gradient(g, x)? => kernel(gradients::mish(x.value(), g.value())?) }
    hardswish(x) -> y  { x: [x] hardswish_gradient(g, x)? => kernel(gradients::hardswish(x.value(), g.value())?) }
    hardsigmoid(x) -> y { x: [x] x.gt(-3).logical_and(x.lt(3)?).choose(g * SIXTH, 0.0)? }
    logsigmoid(x) -> y { x: [x] g * (-x).sigmoid()? => kernel(gradients::logsigmoid(x.value(), g.value())?) }
    i0(x) -> y         { x: [x] g * x.i1()? }
    i0e(x) -> y        { x: [x] g * (x.i1e()? - x.sign()? * x.i0e()?) }
    i1(x) -> y         { x: [x] g * (x.i0()? - over_x(&x.i1()?, x)?) }
    i1e(x) -> y        { x: [x] g * i1e_slope(x)? }
    bessel_j0(x) -> y  { x: [x] - g * x.bessel_j1()? }
    bessel_j1(x) -> y  { x: [x y] g * (x.bessel_j0()? - x.eq(0)?.choose(0.5, y / x)?) }
    bessel_y0(x) -> y  { x: [x] - g * x.bessel_y1()? }
    bessel_y1(x) -> y  { x: [x y] g * (x.bessel_y0()? - y / x) }
    modified_bessel_k0(x) -> y { x: [x] - g * x.modified_bessel_k1()? }
    modified_bessel_k1(x) -> y { x: [x y] - g * (x.modified_bessel_k0()? + y / x) }
    scaled_modified_bessel_k0(x) -> y { x: [x y] g * (y - x.scaled_modified_bessel_k1()?) }
    scaled_modified_bessel_k1(x) -> y { x: [x y] g * (y - x.scaled_modified_bessel_k0()? - y / x) }
    spherical_bessel_j0(x) -> y { x: [x y] g * x.eq(0).logical_or(x.isinf()?).choose(0.0, (x.cos()? - y) / x)? }
    airy_ai(x) -> y    { x: [x] g * x.airy_ai_prime()? }
    airy_ai_prime(x) -> y { x: [x] g * x.isinf().choose(0.0, x.mul(x.airy_ai()?)?)? }
    erfcx(x) -> y      { x: [x] g * (2.0 * x * x.erfcx()? - 2.0 / PI.sqrt()) }
    ndtr(x) -> y       { x: [x] g * normal_density(x)? }
    ndtri(x) -> y      { x: [y] g * (y.square()? * 0.5).exp()? * TAU.sqrt() }
    log_ndtr(x) -> y   { x: [x] g * (2.0 / PI).sqrt() / (x * -FRAC_1_SQRT_2).erfcx()? }
    entr(x) -> y       { x: [x] -g * (x.log()? + 1.0) }
    bitwise_not logical_not signbit isnan isinf isfinite constant;
}

/// `e^(-x²/2) / √(2π)`: the density of the normal distribution.
fn normal_density(x: &crate::Tensor) -> namegrad_core::Result<crate::Tensor> {
    x.square().mul(-0.5).exp().mul(1.0 / TAU.sqrt())
}

/// `g alpha e^(x / width)` for `x <= 0`, else `g`, for NaN too as in PyTorch. The exponential is computed
/// only where `x` is not positive: elsewhere it could overflow, and infinity times 0 is NaN.
fn elu_gradient(
    g: &crate::Tensor,
    x: &crate::Tensor,
    alpha: f64,
    width: f64,
) -> namegrad_core::Result<crate::Tensor> {
    let bent = x.le(0)?;
    let slope = bent.choose(x, 0.0).div(width).exp().mul(alpha)?;
    bent.choose(g.mul(&slope)?, g)
}

/// `g scale alpha e^x` for `x <= 0`, else `g scale`.
fn selu_gradient(g: &crate::Tensor, x: &crate::Tensor) -> namegrad_core::Result<crate::Tensor> {
    let bent = x.le(0)?;
    let slope = bent.choose(x, 0.0).exp().mul(SELU_ALPHA * SELU_SCALE)?;
    bent.choose(g.mul(&slope)?, g.mul(SELU_SCALE)?)
}

/// `g (t + x s (1 - t²))`, where `t` is `tanh(softplus(x))` and `s` the sigmoid of `x`.
fn mish_gradient(g: &crate::Tensor, x: &crate::Tensor) -> namegrad_core::Result<crate::Tensor> {
    let t = x.softplus().tanh()?;
    let slope = x.mul(x.sigmoid()?).mul(t.square().neg().add(1.0)?)?;
    g.mul(t.add(&slope)?)
}

/// 0 up to -3, `g` from 3, and `g (x/3 + 1/2)` between them.
fn hardswish_gradient(g: &crate::Tensor, x: &crate::Tensor) -> namegrad_core::Result<crate::Tensor> {
    let between = x.gt(-3).logical_and(x.lt(3)?)?;
    let slope = x.div(3.0).add(0.5)?;
    between.choose(g.mul(&slope)?, g).masked_fill(&x.le(-3)?, 0.0)
}

/// `(cos πx - sinc x) / x`. Near 0, where the two terms cancel, the series is used:
/// `π Σ (-1)ᵏ 2k t²ᵏ⁻¹ / (2k + 1)!` with `t = πx`.
fn sinc_slope(x: &crate::Tensor) -> namegrad_core::Result<crate::Tensor> {
    let small = x.abs().lt(0.5 / PI)?;
    let far = x.masked_fill(&small, 1.0)?;
    // The cosine has the period 2, and this difference is exact.
    let turn = far.sub(far.div(2.0).round().mul(2.0)?.detach())?;
    let slope = (turn.mul(PI).cos()? - far.sinc()?) / &far;
    let near = x.masked_fill(&small.logical_not()?, 0.0).mul(PI)?;
    // The ratios of the coefficients of adjacent powers, from last to first.
    let mut series = near.ones_like()?;
    for k in (1..=6).rev().map(f64::from) {
        let ratio = -(k + 1.0) / k / ((2.0 * k + 2.0) * (2.0 * k + 3.0));
        series = near.square().mul(ratio).mul(&series).add(1.0)?;
    }
    small.choose(&near * &series * (-PI / 3.0), &slope)
}

/// `g / (x (1 - x))`. Where `x` was clamped to `eps`, it is 0; without `eps`, it is NaN outside [0, 1].
fn logit_gradient(g: &crate::Tensor, x: &crate::Tensor, eps: f64) -> namegrad_core::Result<crate::Tensor> {
    let product = x.mul(x.neg().add(1.0)?).add(0.0)?; // no negative zero
    if eps < 0.0 {
        return g.div(&product.masked_fill(&product.lt(0)?, f64::NAN)?);
    }
    let clamped = x.lt(eps).logical_or(x.gt(1.0 - eps)?)?;
    // Do not divide by 0: the gradient of the quotient would be NaN even where 0 is chosen.
    g.div(&product.masked_fill(&clamped, 1.0)?).masked_fill(&clamped, 0.0)
}

/// `e^-|x| (I₀(x) - I₁(x) / x) - sign(x) e^-|x| I₁(x)`.
fn i1e_slope(x: &crate::Tensor) -> namegrad_core::Result<crate::Tensor> {
    let y = x.i1e()?;
    x.i0e()?.sub(&over_x(&y, x)?).sub(&x.sign().mul(&y)?)
}

/// `y / x`, where `y` is a Bessel function of order 1, which is `x/2` near 0: below 1e-8 the next term of the
/// series does not count. It is 0 where `y` is infinite, because it is subtracted from the function of order 0,
/// which is larger.
fn over_x(y: &crate::Tensor, x: &crate::Tensor) -> namegrad_core::Result<crate::Tensor> {
    let small = x.abs().lt(1e-8)?;
    y.masked_fill(&y.isinf()?, 0.0).div(&x.masked_fill(&small, 1.0)?).masked_fill(&small, 0.5)
}
