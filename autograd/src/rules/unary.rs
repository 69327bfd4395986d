//! Derivatives of the ops on one tensor by element.

use crate::rules::kernel;
use namegrad_core::NamedTensor;
use namegrad_core::ops::gradients;
use std::f64::consts::{FRAC_1_SQRT_2, LN_2, LN_10, PI, TAU};

rules! { in NamedTensor; |g, cx|
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
    sinc(x) -> y       { x: [x] sinc_gradient(g, x)? }
    deg2rad(x) -> y    { x: [] g * (PI / 180.0) }
    rad2deg(x) -> y    { x: [] g * (180.0 / PI) }
    sigmoid(x) -> y    { x: [y] g * (1.0 - y) * y => kernel(gradients::sigmoid(y.value(), g.value())?) }
    logit(x) -> y      { x: [x] g / (x * (1.0 - x)) }
    relu(x) -> y       { x: [y] g.masked_fill(&y.le(0)?, 0.0)? => kernel(gradients::relu(y.value(), g.value())?) }
    gelu(x) -> y       { x: [x] g * (normal_below(x)? + x * normal_density(x)?) => kernel(gradients::gelu(x.value(), g.value())?) }
    silu(x) -> y       { x: [x] g * (x.sigmoid()? * (1.0 + x * (1.0 - x.sigmoid()?))) => kernel(gradients::silu(x.value(), g.value())?) }
    erf(x) -> y        { x: [x] g * (2.0 / PI.sqrt()) * (-x.square()?).exp()? }
    erfc(x) -> y       { x: [x] g * (-2.0 / PI.sqrt()) * (-x.square()?).exp()? }
    erfinv(x) -> y     { x: [y] g * (PI.sqrt() / 2.0) * y.square()?.exp()? }
    lgamma(x) -> y     { x: [x] g * x.digamma()? }
}

/// `Φ(x)`: the share of the normal distribution that lies below `x`.
fn normal_below(x: &crate::Tensor) -> namegrad_core::Result<crate::Tensor> {
    (x * FRAC_1_SQRT_2).erf()?.add(1.0)?.mul(0.5)
}

/// `e^(-x²/2) / √(2π)`: the density of the normal distribution.
fn normal_density(x: &crate::Tensor) -> namegrad_core::Result<crate::Tensor> {
    x.square()?.mul(-0.5)?.exp()?.mul(1.0 / TAU.sqrt())
}

/// `cos(πx)/x - sin(πx)/(πx²)`, and 0 at 0, where the two terms are infinite.
fn sinc_gradient(g: &crate::Tensor, x: &crate::Tensor) -> namegrad_core::Result<crate::Tensor> {
    let zero = x.eq(0)?;
    let safe = x.masked_fill(&zero, 1.0)?;
    let turn = &safe * PI;
    let slope = (&turn * turn.cos()? - turn.sin()?) / (&turn * &safe);
    g.mul(&slope.masked_fill(&zero, 0.0)?)
}

/// Ops whose derivative is a function that has no kernel yet: an error when the input requires a gradient.
macro_rules! missing {
    ($($name:ident)*) => {$(
        #[track_caller]
        pub(crate) fn $name(x: &crate::Tensor) -> namegrad_core::Result<crate::Tensor> {
            if x.tracked().is_some() {
                return Err(crate::rules::no_derivative(stringify!($name), x));
            }
            Ok(crate::Tensor::constant(x.value().$name()?))
        }
    )*};
}
missing! { digamma i0 }

constants! { in NamedTensor;
    bitwise_not(x) logical_not(x) signbit(x) isnan(x) isinf(x) isfinite(x)
}
