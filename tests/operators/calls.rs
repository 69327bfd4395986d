//! Every call that `docs/operators.md` shows. Made by `tests/operators.rs`.

#![allow(dead_code, unused_imports, unused_must_use, unused_mut, unused_variables)]

use crate::Given;
use namegrad::autograd::*;
use namegrad::core::args::*;
use namegrad::nn::functional::*;
use namegrad::prelude::*;

/// A call with what is given; `None` if something that it needs is not given.
pub(crate) type Call = fn(&Given<'_>) -> Option<Result<()>>;

#[rustfmt::skip]
fn call_abs(x: &Tensor) -> Result<()> {
    x.abs()?;
    Ok(())
}

#[rustfmt::skip]
fn call_abs_(x: &mut Tensor) -> Result<()> {
    x.abs_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_neg(x: &Tensor) -> Result<()> {
    x.neg()?;
    Ok(())
}

#[rustfmt::skip]
fn call_neg_(x: &mut Tensor) -> Result<()> {
    x.neg_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_positive(x: &Tensor) -> Result<()> {
    x.positive()?;
    Ok(())
}

#[rustfmt::skip]
fn call_sign(x: &Tensor) -> Result<()> {
    x.sign()?;
    Ok(())
}

#[rustfmt::skip]
fn call_sign_(x: &mut Tensor) -> Result<()> {
    x.sign_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_sgn(x: &Tensor) -> Result<()> {
    x.sgn()?;
    Ok(())
}

#[rustfmt::skip]
fn call_sgn_(x: &mut Tensor) -> Result<()> {
    x.sgn_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_floor(x: &Tensor) -> Result<()> {
    x.floor()?;
    Ok(())
}

#[rustfmt::skip]
fn call_floor_(x: &mut Tensor) -> Result<()> {
    x.floor_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_ceil(x: &Tensor) -> Result<()> {
    x.ceil()?;
    Ok(())
}

#[rustfmt::skip]
fn call_ceil_(x: &mut Tensor) -> Result<()> {
    x.ceil_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_round(x: &Tensor) -> Result<()> {
    x.round()?;
    Ok(())
}

#[rustfmt::skip]
fn call_round_with(x: &Tensor, decimals: isize) -> Result<()> {
    x.round_with(RoundOptions::new().decimals(decimals))?;
    Ok(())
}

#[rustfmt::skip]
fn call_round_(x: &mut Tensor) -> Result<()> {
    x.round_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_trunc(x: &Tensor) -> Result<()> {
    x.trunc()?;
    Ok(())
}

#[rustfmt::skip]
fn call_trunc_(x: &mut Tensor) -> Result<()> {
    x.trunc_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_frac(x: &Tensor) -> Result<()> {
    x.frac()?;
    Ok(())
}

#[rustfmt::skip]
fn call_frac_(x: &mut Tensor) -> Result<()> {
    x.frac_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_square(x: &Tensor) -> Result<()> {
    x.square()?;
    Ok(())
}

#[rustfmt::skip]
fn call_square_(x: &mut Tensor) -> Result<()> {
    x.square_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_sqrt(x: &Tensor) -> Result<()> {
    x.sqrt()?;
    Ok(())
}

#[rustfmt::skip]
fn call_sqrt_(x: &mut Tensor) -> Result<()> {
    x.sqrt_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_rsqrt(x: &Tensor) -> Result<()> {
    x.rsqrt()?;
    Ok(())
}

#[rustfmt::skip]
fn call_rsqrt_(x: &mut Tensor) -> Result<()> {
    x.rsqrt_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_reciprocal(x: &Tensor) -> Result<()> {
    x.reciprocal()?;
    Ok(())
}

#[rustfmt::skip]
fn call_reciprocal_(x: &mut Tensor) -> Result<()> {
    x.reciprocal_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_exp(x: &Tensor) -> Result<()> {
    x.exp()?;
    Ok(())
}

#[rustfmt::skip]
fn call_exp_(x: &mut Tensor) -> Result<()> {
    x.exp_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_exp2(x: &Tensor) -> Result<()> {
    x.exp2()?;
    Ok(())
}

#[rustfmt::skip]
fn call_exp2_(x: &mut Tensor) -> Result<()> {
    x.exp2_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_expm1(x: &Tensor) -> Result<()> {
    x.expm1()?;
    Ok(())
}

#[rustfmt::skip]
fn call_expm1_(x: &mut Tensor) -> Result<()> {
    x.expm1_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_log(x: &Tensor) -> Result<()> {
    x.log()?;
    Ok(())
}

#[rustfmt::skip]
fn call_log_(x: &mut Tensor) -> Result<()> {
    x.log_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_log2(x: &Tensor) -> Result<()> {
    x.log2()?;
    Ok(())
}

#[rustfmt::skip]
fn call_log2_(x: &mut Tensor) -> Result<()> {
    x.log2_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_log10(x: &Tensor) -> Result<()> {
    x.log10()?;
    Ok(())
}

#[rustfmt::skip]
fn call_log10_(x: &mut Tensor) -> Result<()> {
    x.log10_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_log1p(x: &Tensor) -> Result<()> {
    x.log1p()?;
    Ok(())
}

#[rustfmt::skip]
fn call_log1p_(x: &mut Tensor) -> Result<()> {
    x.log1p_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_sin(x: &Tensor) -> Result<()> {
    x.sin()?;
    Ok(())
}

#[rustfmt::skip]
fn call_sin_(x: &mut Tensor) -> Result<()> {
    x.sin_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_cos(x: &Tensor) -> Result<()> {
    x.cos()?;
    Ok(())
}

#[rustfmt::skip]
fn call_cos_(x: &mut Tensor) -> Result<()> {
    x.cos_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_tan(x: &Tensor) -> Result<()> {
    x.tan()?;
    Ok(())
}

#[rustfmt::skip]
fn call_tan_(x: &mut Tensor) -> Result<()> {
    x.tan_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_asin(x: &Tensor) -> Result<()> {
    x.asin()?;
    Ok(())
}

#[rustfmt::skip]
fn call_asin_(x: &mut Tensor) -> Result<()> {
    x.asin_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_acos(x: &Tensor) -> Result<()> {
    x.acos()?;
    Ok(())
}

#[rustfmt::skip]
fn call_acos_(x: &mut Tensor) -> Result<()> {
    x.acos_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_atan(x: &Tensor) -> Result<()> {
    x.atan()?;
    Ok(())
}

#[rustfmt::skip]
fn call_atan_(x: &mut Tensor) -> Result<()> {
    x.atan_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_sinh(x: &Tensor) -> Result<()> {
    x.sinh()?;
    Ok(())
}

#[rustfmt::skip]
fn call_sinh_(x: &mut Tensor) -> Result<()> {
    x.sinh_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_cosh(x: &Tensor) -> Result<()> {
    x.cosh()?;
    Ok(())
}

#[rustfmt::skip]
fn call_cosh_(x: &mut Tensor) -> Result<()> {
    x.cosh_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_tanh(x: &Tensor) -> Result<()> {
    x.tanh()?;
    Ok(())
}

#[rustfmt::skip]
fn call_tanh_(x: &mut Tensor) -> Result<()> {
    x.tanh_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_asinh(x: &Tensor) -> Result<()> {
    x.asinh()?;
    Ok(())
}

#[rustfmt::skip]
fn call_asinh_(x: &mut Tensor) -> Result<()> {
    x.asinh_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_acosh(x: &Tensor) -> Result<()> {
    x.acosh()?;
    Ok(())
}

#[rustfmt::skip]
fn call_acosh_(x: &mut Tensor) -> Result<()> {
    x.acosh_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_atanh(x: &Tensor) -> Result<()> {
    x.atanh()?;
    Ok(())
}

#[rustfmt::skip]
fn call_atanh_(x: &mut Tensor) -> Result<()> {
    x.atanh_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_sinc(x: &Tensor) -> Result<()> {
    x.sinc()?;
    Ok(())
}

#[rustfmt::skip]
fn call_sinc_(x: &mut Tensor) -> Result<()> {
    x.sinc_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_deg2rad(x: &Tensor) -> Result<()> {
    x.deg2rad()?;
    Ok(())
}

#[rustfmt::skip]
fn call_deg2rad_(x: &mut Tensor) -> Result<()> {
    x.deg2rad_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_rad2deg(x: &Tensor) -> Result<()> {
    x.rad2deg()?;
    Ok(())
}

#[rustfmt::skip]
fn call_rad2deg_(x: &mut Tensor) -> Result<()> {
    x.rad2deg_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_sigmoid(x: &Tensor) -> Result<()> {
    x.sigmoid()?;
    Ok(())
}

#[rustfmt::skip]
fn call_sigmoid_(x: &mut Tensor) -> Result<()> {
    x.sigmoid_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_relu(x: &Tensor) -> Result<()> {
    x.relu()?;
    Ok(())
}

#[rustfmt::skip]
fn call_relu_(x: &mut Tensor) -> Result<()> {
    x.relu_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_gelu(x: &Tensor) -> Result<()> {
    x.gelu()?;
    Ok(())
}

#[rustfmt::skip]
fn call_gelu_(x: &mut Tensor) -> Result<()> {
    x.gelu_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_silu(x: &Tensor) -> Result<()> {
    x.silu()?;
    Ok(())
}

#[rustfmt::skip]
fn call_silu_(x: &mut Tensor) -> Result<()> {
    x.silu_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_erf(x: &Tensor) -> Result<()> {
    x.erf()?;
    Ok(())
}

#[rustfmt::skip]
fn call_erf_(x: &mut Tensor) -> Result<()> {
    x.erf_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_erfc(x: &Tensor) -> Result<()> {
    x.erfc()?;
    Ok(())
}

#[rustfmt::skip]
fn call_erfc_(x: &mut Tensor) -> Result<()> {
    x.erfc_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_erfinv(x: &Tensor) -> Result<()> {
    x.erfinv()?;
    Ok(())
}

#[rustfmt::skip]
fn call_erfinv_(x: &mut Tensor) -> Result<()> {
    x.erfinv_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_lgamma(x: &Tensor) -> Result<()> {
    x.lgamma()?;
    Ok(())
}

#[rustfmt::skip]
fn call_lgamma_(x: &mut Tensor) -> Result<()> {
    x.lgamma_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_digamma(x: &Tensor) -> Result<()> {
    x.digamma()?;
    Ok(())
}

#[rustfmt::skip]
fn call_digamma_(x: &mut Tensor) -> Result<()> {
    x.digamma_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_i0(x: &Tensor) -> Result<()> {
    x.i0()?;
    Ok(())
}

#[rustfmt::skip]
fn call_i0_(x: &mut Tensor) -> Result<()> {
    x.i0_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_i0e(x: &Tensor) -> Result<()> {
    x.i0e()?;
    Ok(())
}

#[rustfmt::skip]
fn call_i1(x: &Tensor) -> Result<()> {
    x.i1()?;
    Ok(())
}

#[rustfmt::skip]
fn call_i1e(x: &Tensor) -> Result<()> {
    x.i1e()?;
    Ok(())
}

#[rustfmt::skip]
fn call_erfcx(x: &Tensor) -> Result<()> {
    x.erfcx()?;
    Ok(())
}

#[rustfmt::skip]
fn call_ndtr(x: &Tensor) -> Result<()> {
    x.ndtr()?;
    Ok(())
}

#[rustfmt::skip]
fn call_ndtri(x: &Tensor) -> Result<()> {
    x.ndtri()?;
    Ok(())
}

#[rustfmt::skip]
fn call_log_ndtr(x: &Tensor) -> Result<()> {
    x.log_ndtr()?;
    Ok(())
}

#[rustfmt::skip]
fn call_entr(x: &Tensor) -> Result<()> {
    x.entr()?;
    Ok(())
}

#[rustfmt::skip]
fn call_bitwise_not(x: &Tensor) -> Result<()> {
    x.bitwise_not()?;
    Ok(())
}

#[rustfmt::skip]
fn call_bitwise_not_(x: &mut Tensor) -> Result<()> {
    x.bitwise_not_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_logical_not(x: &Tensor) -> Result<()> {
    x.logical_not()?;
    Ok(())
}

#[rustfmt::skip]
fn call_logical_not_(x: &mut Tensor) -> Result<()> {
    x.logical_not_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_signbit(x: &Tensor) -> Result<()> {
    x.signbit()?;
    Ok(())
}

#[rustfmt::skip]
fn call_isnan(x: &Tensor) -> Result<()> {
    x.isnan()?;
    Ok(())
}

#[rustfmt::skip]
fn call_isinf(x: &Tensor) -> Result<()> {
    x.isinf()?;
    Ok(())
}

#[rustfmt::skip]
fn call_isfinite(x: &Tensor) -> Result<()> {
    x.isfinite()?;
    Ok(())
}

#[rustfmt::skip]
fn call_logit(x: &Tensor) -> Result<()> {
    x.logit()?;
    Ok(())
}

#[rustfmt::skip]
fn call_logit_with(x: &Tensor, eps: f64) -> Result<()> {
    x.logit_with(LogitOptions::new().eps(eps))?;
    Ok(())
}

#[rustfmt::skip]
fn call_logit_(x: &mut Tensor) -> Result<()> {
    x.logit_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_polygamma(x: &Tensor, n: usize) -> Result<()> {
    x.polygamma(n)?;
    Ok(())
}

#[rustfmt::skip]
fn call_polygamma_(x: &mut Tensor, n: usize) -> Result<()> {
    x.polygamma_(n)?;
    Ok(())
}

#[rustfmt::skip]
fn call_elu(x: &Tensor) -> Result<()> {
    x.elu()?;
    Ok(())
}

#[rustfmt::skip]
fn call_elu_with(x: &Tensor, alpha: f64) -> Result<()> {
    x.elu_with(EluOptions::new().alpha(alpha))?;
    Ok(())
}

#[rustfmt::skip]
fn call_elu_(x: &mut Tensor) -> Result<()> {
    x.elu_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_leaky_relu(x: &Tensor) -> Result<()> {
    x.leaky_relu()?;
    Ok(())
}

#[rustfmt::skip]
fn call_leaky_relu_with(x: &Tensor, negative_slope: f64) -> Result<()> {
    x.leaky_relu_with(LeakyReluOptions::new().negative_slope(negative_slope))?;
    Ok(())
}

#[rustfmt::skip]
fn call_leaky_relu_(x: &mut Tensor) -> Result<()> {
    x.leaky_relu_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_softplus(x: &Tensor) -> Result<()> {
    x.softplus()?;
    Ok(())
}

#[rustfmt::skip]
fn call_softplus_with(x: &Tensor, beta: f64, threshold: f64) -> Result<()> {
    x.softplus_with(SoftplusOptions::new().beta(beta).threshold(threshold))?;
    Ok(())
}

#[rustfmt::skip]
fn call_softplus_(x: &mut Tensor) -> Result<()> {
    x.softplus_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_hardtanh(x: &Tensor) -> Result<()> {
    x.hardtanh()?;
    Ok(())
}

#[rustfmt::skip]
fn call_hardtanh_with(x: &Tensor, min_val: Scalar, max_val: Scalar) -> Result<()> {
    x.hardtanh_with(HardtanhOptions::new().min_val(min_val).max_val(max_val))?;
    Ok(())
}

#[rustfmt::skip]
fn call_hardtanh_(x: &mut Tensor) -> Result<()> {
    x.hardtanh_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_threshold(x: &Tensor, threshold: Scalar, value: Scalar) -> Result<()> {
    x.threshold(threshold, value)?;
    Ok(())
}

#[rustfmt::skip]
fn call_threshold_(x: &mut Tensor, threshold: Scalar, value: Scalar) -> Result<()> {
    x.threshold_(threshold, value)?;
    Ok(())
}

#[rustfmt::skip]
fn call_celu(x: &Tensor) -> Result<()> {
    x.celu()?;
    Ok(())
}

#[rustfmt::skip]
fn call_celu_with(x: &Tensor, alpha: f64) -> Result<()> {
    x.celu_with(CeluOptions::new().alpha(alpha))?;
    Ok(())
}

#[rustfmt::skip]
fn call_celu_(x: &mut Tensor) -> Result<()> {
    x.celu_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_add(x: &Tensor, other: &Tensor) -> Result<()> {
    x.add(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_add_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.add_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_sub(x: &Tensor, other: &Tensor) -> Result<()> {
    x.sub(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_sub_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.sub_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_mul(x: &Tensor, other: &Tensor) -> Result<()> {
    x.mul(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_mul_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.mul_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_div(x: &Tensor, other: &Tensor) -> Result<()> {
    x.div(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_div_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.div_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_floor_divide(x: &Tensor, other: &Tensor) -> Result<()> {
    x.floor_divide(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_floor_divide_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.floor_divide_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_trunc_divide(x: &Tensor, other: &Tensor) -> Result<()> {
    x.trunc_divide(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_trunc_divide_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.trunc_divide_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_fmod(x: &Tensor, other: &Tensor) -> Result<()> {
    x.fmod(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_fmod_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.fmod_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_remainder(x: &Tensor, other: &Tensor) -> Result<()> {
    x.remainder(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_remainder_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.remainder_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_pow(x: &Tensor, exponent: &Tensor) -> Result<()> {
    x.pow(exponent)?;
    Ok(())
}

#[rustfmt::skip]
fn call_pow_(x: &mut Tensor, exponent: &Tensor) -> Result<()> {
    x.pow_(exponent)?;
    Ok(())
}

#[rustfmt::skip]
fn call_atan2(x: &Tensor, other: &Tensor) -> Result<()> {
    x.atan2(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_atan2_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.atan2_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_hypot(x: &Tensor, other: &Tensor) -> Result<()> {
    x.hypot(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_hypot_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.hypot_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_logaddexp(x: &Tensor, other: &Tensor) -> Result<()> {
    x.logaddexp(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_logaddexp2(x: &Tensor, other: &Tensor) -> Result<()> {
    x.logaddexp2(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_xlogy(x: &Tensor, other: &Tensor) -> Result<()> {
    x.xlogy(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_xlogy_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.xlogy_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_copysign(x: &Tensor, other: &Tensor) -> Result<()> {
    x.copysign(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_copysign_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.copysign_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_maximum(x: &Tensor, other: &Tensor) -> Result<()> {
    x.maximum(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_minimum(x: &Tensor, other: &Tensor) -> Result<()> {
    x.minimum(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_fmax(x: &Tensor, other: &Tensor) -> Result<()> {
    x.fmax(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_fmin(x: &Tensor, other: &Tensor) -> Result<()> {
    x.fmin(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_clamp_min(x: &Tensor, min: &Tensor) -> Result<()> {
    x.clamp_min(min)?;
    Ok(())
}

#[rustfmt::skip]
fn call_clamp_min_(x: &mut Tensor, min: &Tensor) -> Result<()> {
    x.clamp_min_(min)?;
    Ok(())
}

#[rustfmt::skip]
fn call_clamp_max(x: &Tensor, max: &Tensor) -> Result<()> {
    x.clamp_max(max)?;
    Ok(())
}

#[rustfmt::skip]
fn call_clamp_max_(x: &mut Tensor, max: &Tensor) -> Result<()> {
    x.clamp_max_(max)?;
    Ok(())
}

#[rustfmt::skip]
fn call_heaviside(x: &Tensor, values: &Tensor) -> Result<()> {
    x.heaviside(values)?;
    Ok(())
}

#[rustfmt::skip]
fn call_heaviside_(x: &mut Tensor, values: &Tensor) -> Result<()> {
    x.heaviside_(values)?;
    Ok(())
}

#[rustfmt::skip]
fn call_eq(x: &Tensor, other: &Tensor) -> Result<()> {
    x.eq(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_eq_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.eq_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_ne(x: &Tensor, other: &Tensor) -> Result<()> {
    x.ne(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_ne_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.ne_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_lt(x: &Tensor, other: &Tensor) -> Result<()> {
    x.lt(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_lt_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.lt_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_le(x: &Tensor, other: &Tensor) -> Result<()> {
    x.le(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_le_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.le_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_gt(x: &Tensor, other: &Tensor) -> Result<()> {
    x.gt(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_gt_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.gt_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_ge(x: &Tensor, other: &Tensor) -> Result<()> {
    x.ge(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_ge_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.ge_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_logical_and(x: &Tensor, other: &Tensor) -> Result<()> {
    x.logical_and(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_logical_and_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.logical_and_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_logical_or(x: &Tensor, other: &Tensor) -> Result<()> {
    x.logical_or(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_logical_or_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.logical_or_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_logical_xor(x: &Tensor, other: &Tensor) -> Result<()> {
    x.logical_xor(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_logical_xor_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.logical_xor_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bitwise_and(x: &Tensor, other: &Tensor) -> Result<()> {
    x.bitwise_and(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bitwise_and_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.bitwise_and_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bitwise_or(x: &Tensor, other: &Tensor) -> Result<()> {
    x.bitwise_or(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bitwise_or_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.bitwise_or_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bitwise_xor(x: &Tensor, other: &Tensor) -> Result<()> {
    x.bitwise_xor(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bitwise_xor_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.bitwise_xor_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bitwise_left_shift(x: &Tensor, other: &Tensor) -> Result<()> {
    x.bitwise_left_shift(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bitwise_left_shift_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.bitwise_left_shift_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bitwise_right_shift(x: &Tensor, other: &Tensor) -> Result<()> {
    x.bitwise_right_shift(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bitwise_right_shift_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.bitwise_right_shift_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_gcd(x: &Tensor, other: &Tensor) -> Result<()> {
    x.gcd(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_gcd_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.gcd_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_lcm(x: &Tensor, other: &Tensor) -> Result<()> {
    x.lcm(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_lcm_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.lcm_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_lerp(x: &Tensor, end: &Tensor, weight: &Tensor) -> Result<()> {
    x.lerp(end, weight)?;
    Ok(())
}

#[rustfmt::skip]
fn call_lerp_(x: &mut Tensor, end: &Tensor, weight: &Tensor) -> Result<()> {
    x.lerp_(end, weight)?;
    Ok(())
}

#[rustfmt::skip]
fn call_clamp(x: &Tensor, min: &Tensor, max: &Tensor) -> Result<()> {
    x.clamp(min, max)?;
    Ok(())
}

#[rustfmt::skip]
fn call_clamp_(x: &mut Tensor, min: &Tensor, max: &Tensor) -> Result<()> {
    x.clamp_(min, max)?;
    Ok(())
}

#[rustfmt::skip]
fn call_choose(condition: &Tensor, x: &Tensor, other: &Tensor) -> Result<()> {
    condition.choose(x, other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_masked_fill(x: &Tensor, mask: &Tensor, value: &Tensor) -> Result<()> {
    x.masked_fill(mask, value)?;
    Ok(())
}

#[rustfmt::skip]
fn call_masked_fill_(x: &mut Tensor, mask: &Tensor, value: &Tensor) -> Result<()> {
    x.masked_fill_(mask, value)?;
    Ok(())
}

#[rustfmt::skip]
fn call_sum(x: &Tensor, dim: Dims) -> Result<()> {
    x.sum(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_sum_with(x: &Tensor, dim: Dims, dtype: DType) -> Result<()> {
    x.sum_with(dim, SumOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_prod(x: &Tensor, dim: Dims) -> Result<()> {
    x.prod(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_prod_with(x: &Tensor, dim: Dims, dtype: DType) -> Result<()> {
    x.prod_with(dim, ProdOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_mean(x: &Tensor, dim: Dims) -> Result<()> {
    x.mean(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_mean_with(x: &Tensor, dim: Dims, dtype: DType) -> Result<()> {
    x.mean_with(dim, MeanOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_amax(x: &Tensor, dim: Dims) -> Result<()> {
    x.amax(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_amin(x: &Tensor, dim: Dims) -> Result<()> {
    x.amin(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_aminmax(x: &Tensor, dim: Dims) -> Result<()> {
    x.aminmax(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_all(x: &Tensor, dim: Dims) -> Result<()> {
    x.all(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_any(x: &Tensor, dim: Dims) -> Result<()> {
    x.any(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_logsumexp(x: &Tensor, dim: Dims) -> Result<()> {
    x.logsumexp(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_var(x: &Tensor, dim: Dims) -> Result<()> {
    x.var(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_var_with(x: &Tensor, dim: Dims, correction: f64) -> Result<()> {
    x.var_with(dim, VarOptions::new().correction(correction))?;
    Ok(())
}

#[rustfmt::skip]
fn call_std(x: &Tensor, dim: Dims) -> Result<()> {
    x.std(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_std_with(x: &Tensor, dim: Dims, correction: f64) -> Result<()> {
    x.std_with(dim, StdOptions::new().correction(correction))?;
    Ok(())
}

#[rustfmt::skip]
fn call_var_mean(x: &Tensor, dim: Dims) -> Result<()> {
    x.var_mean(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_var_mean_with(x: &Tensor, dim: Dims, correction: f64) -> Result<()> {
    x.var_mean_with(dim, VarMeanOptions::new().correction(correction))?;
    Ok(())
}

#[rustfmt::skip]
fn call_std_mean(x: &Tensor, dim: Dims) -> Result<()> {
    x.std_mean(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_std_mean_with(x: &Tensor, dim: Dims, correction: f64) -> Result<()> {
    x.std_mean_with(dim, StdMeanOptions::new().correction(correction))?;
    Ok(())
}

#[rustfmt::skip]
fn call_norm(x: &Tensor, dim: Dims) -> Result<()> {
    x.norm(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_vector_norm(x: &Tensor, dim: Dims) -> Result<()> {
    x.vector_norm(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_vector_norm_with(x: &Tensor, dim: Dims, ord: f64) -> Result<()> {
    x.vector_norm_with(dim, VectorNormOptions::new().ord(ord))?;
    Ok(())
}

#[rustfmt::skip]
fn call_nansum(x: &Tensor, dim: Dims) -> Result<()> {
    x.nansum(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_nansum_with(x: &Tensor, dim: Dims, dtype: Option<DType>) -> Result<()> {
    x.nansum_with(dim, NansumOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_nanmean(x: &Tensor, dim: Dims) -> Result<()> {
    x.nanmean(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_nanmean_with(x: &Tensor, dim: Dims, dtype: DType) -> Result<()> {
    x.nanmean_with(dim, NanmeanOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_count_nonzero(x: &Tensor, dim: Dims) -> Result<()> {
    x.count_nonzero(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_softmax(x: &Tensor, dim: Dim) -> Result<()> {
    x.softmax(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_softmax_with(x: &Tensor, dim: Dim, dtype: DType) -> Result<()> {
    x.softmax_with(dim, SoftmaxOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_log_softmax(x: &Tensor, dim: Dim) -> Result<()> {
    x.log_softmax(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_log_softmax_with(x: &Tensor, dim: Dim, dtype: DType) -> Result<()> {
    x.log_softmax_with(dim, LogSoftmaxOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_cumsum(x: &Tensor, dim: Dim) -> Result<()> {
    x.cumsum(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_cumsum_with(x: &Tensor, dim: Dim, dtype: DType) -> Result<()> {
    x.cumsum_with(dim, CumsumOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_cumsum_(x: &mut Tensor, dim: Dim) -> Result<()> {
    x.cumsum_(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_cumprod(x: &Tensor, dim: Dim) -> Result<()> {
    x.cumprod(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_cumprod_with(x: &Tensor, dim: Dim, dtype: DType) -> Result<()> {
    x.cumprod_with(dim, CumprodOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_cumprod_(x: &mut Tensor, dim: Dim) -> Result<()> {
    x.cumprod_(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_logcumsumexp(x: &Tensor, dim: Dim) -> Result<()> {
    x.logcumsumexp(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_max(x: &Tensor, dim: Dims) -> Result<()> {
    x.max(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_min(x: &Tensor, dim: Dims) -> Result<()> {
    x.min(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_median(x: &Tensor, dim: Dims) -> Result<()> {
    x.median(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_nanmedian(x: &Tensor, dim: Dims) -> Result<()> {
    x.nanmedian(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_mode(x: &Tensor, dim: Dims) -> Result<()> {
    x.mode(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_kthvalue(x: &Tensor, k: usize, dim: Dims) -> Result<()> {
    x.kthvalue(k, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_sort(x: &Tensor, dim: Dim) -> Result<()> {
    x.sort(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_sort_with(x: &Tensor, dim: Dim, descending: bool) -> Result<()> {
    x.sort_with(dim, SortOptions::new().descending(descending))?;
    Ok(())
}

#[rustfmt::skip]
fn call_topk(x: &Tensor, k: usize, dim: Dim) -> Result<()> {
    x.topk(k, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_topk_with(x: &Tensor, k: usize, dim: Dim, largest: bool) -> Result<()> {
    x.topk_with(k, dim, TopkOptions::new().largest(largest))?;
    Ok(())
}

#[rustfmt::skip]
fn call_cummax(x: &Tensor, dim: Dim) -> Result<()> {
    x.cummax(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_cummin(x: &Tensor, dim: Dim) -> Result<()> {
    x.cummin(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_argmax(x: &Tensor, dim: Dims) -> Result<()> {
    x.argmax(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_argmin(x: &Tensor, dim: Dims) -> Result<()> {
    x.argmin(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_argsort(x: &Tensor, dim: Dim) -> Result<()> {
    x.argsort(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_argsort_with(x: &Tensor, dim: Dim, descending: bool) -> Result<()> {
    x.argsort_with(dim, ArgsortOptions::new().descending(descending))?;
    Ok(())
}

#[rustfmt::skip]
fn call_bucketize(x: &Tensor, boundaries: &Tensor) -> Result<()> {
    x.bucketize(boundaries)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bucketize_with(x: &Tensor, boundaries: &Tensor, right: bool) -> Result<()> {
    x.bucketize_with(boundaries, BucketizeOptions::new().right(right))?;
    Ok(())
}

#[rustfmt::skip]
fn call_searchsorted(x: &Tensor, values: &Tensor) -> Result<()> {
    x.searchsorted(values)?;
    Ok(())
}

#[rustfmt::skip]
fn call_searchsorted_with(x: &Tensor, values: &Tensor, right: bool) -> Result<()> {
    x.searchsorted_with(values, SearchsortedOptions::new().right(right))?;
    Ok(())
}

#[rustfmt::skip]
fn call_bincount(x: &Tensor) -> Result<()> {
    x.bincount()?;
    Ok(())
}

#[rustfmt::skip]
fn call_bincount_with(x: &Tensor, weights: &Tensor, minlength: usize, name: &str) -> Result<()> {
    x.bincount_with(BincountOptions::new().weights(weights).minlength(minlength).name(name))?;
    Ok(())
}

#[rustfmt::skip]
fn call_histc(x: &Tensor) -> Result<()> {
    x.histc()?;
    Ok(())
}

#[rustfmt::skip]
fn call_histc_with(x: &Tensor, bins: usize, min: f64, max: f64, name: &str) -> Result<()> {
    x.histc_with(HistcOptions::new().bins(bins).min(min).max(max).name(name))?;
    Ok(())
}

#[rustfmt::skip]
fn call_unique(x: &Tensor) -> Result<()> {
    x.unique()?;
    Ok(())
}

#[rustfmt::skip]
fn call_unique_with(x: &Tensor, name: &str) -> Result<()> {
    x.unique_with(UniqueOptions::new().name(name))?;
    Ok(())
}

#[rustfmt::skip]
fn call_transpose(x: &Tensor, dim0: Dim, dim1: Dim) -> Result<()> {
    x.transpose(dim0, dim1)?;
    Ok(())
}

#[rustfmt::skip]
fn call_transpose_(x: &mut Tensor, dim0: Dim, dim1: Dim) -> Result<()> {
    x.transpose_(dim0, dim1)?;
    Ok(())
}

#[rustfmt::skip]
fn call_t(x: &Tensor) -> Result<()> {
    x.t()?;
    Ok(())
}

#[rustfmt::skip]
fn call_t_(x: &mut Tensor) -> Result<()> {
    x.t_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_mt(x: &Tensor) -> Result<()> {
    x.mt()?;
    Ok(())
}

#[rustfmt::skip]
fn call_permute(x: &Tensor, dims: Dims) -> Result<()> {
    x.permute(dims)?;
    Ok(())
}

#[rustfmt::skip]
fn call_movedim(x: &Tensor, source: Dims, destination: Dims) -> Result<()> {
    x.movedim(source, destination)?;
    Ok(())
}

#[rustfmt::skip]
fn call_squeeze(x: &Tensor, dim: Dims) -> Result<()> {
    x.squeeze(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_squeeze_(x: &mut Tensor, dim: Dims) -> Result<()> {
    x.squeeze_(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_unsqueeze(x: &Tensor, dim: isize) -> Result<()> {
    x.unsqueeze(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_unsqueeze_with(x: &Tensor, dim: isize, name: &str) -> Result<()> {
    x.unsqueeze_with(dim, UnsqueezeOptions::new().name(name))?;
    Ok(())
}

#[rustfmt::skip]
fn call_unsqueeze_(x: &mut Tensor, dim: isize) -> Result<()> {
    x.unsqueeze_(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_expand(x: &Tensor, size: &[isize]) -> Result<()> {
    x.expand(size)?;
    Ok(())
}

#[rustfmt::skip]
fn call_view(x: &Tensor, size: &[isize]) -> Result<()> {
    x.view(size)?;
    Ok(())
}

#[rustfmt::skip]
fn call_reshape(x: &Tensor, shape: &[isize]) -> Result<()> {
    x.reshape(shape)?;
    Ok(())
}

#[rustfmt::skip]
fn call_flip(x: &Tensor, dims: Dims) -> Result<()> {
    x.flip(dims)?;
    Ok(())
}

#[rustfmt::skip]
fn call_repeat(x: &Tensor, repeats: &[isize]) -> Result<()> {
    x.repeat(repeats)?;
    Ok(())
}

#[rustfmt::skip]
fn call_contiguous(x: &Tensor) -> Result<()> {
    x.contiguous()?;
    Ok(())
}

#[rustfmt::skip]
fn call_narrow(x: &Tensor, dim: Dim, start: isize, length: usize) -> Result<()> {
    x.narrow(dim, start, length)?;
    Ok(())
}

#[rustfmt::skip]
fn call_slice(x: &Tensor, dim: Dim, start: isize, end: isize, step: usize) -> Result<()> {
    x.slice(dim, start, end, step)?;
    Ok(())
}

#[rustfmt::skip]
fn call_select(x: &Tensor, dim: Dim, index: isize) -> Result<()> {
    x.select(dim, index)?;
    Ok(())
}

#[rustfmt::skip]
fn call_diagonal(x: &Tensor, dim1: Dim, dim2: Dim) -> Result<()> {
    x.diagonal(dim1, dim2)?;
    Ok(())
}

#[rustfmt::skip]
fn call_diagonal_with(x: &Tensor, dim1: Dim, dim2: Dim, offset: isize, name: &str) -> Result<()> {
    x.diagonal_with(dim1, dim2, DiagonalOptions::new().offset(offset).name(name))?;
    Ok(())
}

#[rustfmt::skip]
fn call_unfold(x: &Tensor, dimension: Dim, size: usize, step: usize) -> Result<()> {
    x.unfold(dimension, size, step)?;
    Ok(())
}

#[rustfmt::skip]
fn call_unfold_with(x: &Tensor, dimension: Dim, size: usize, step: usize, name: &str) -> Result<()> {
    x.unfold_with(dimension, size, step, UnfoldOptions::new().name(name))?;
    Ok(())
}

#[rustfmt::skip]
fn call_index_select(x: &Tensor, index: &Tensor, dim: Dim) -> Result<()> {
    x.index_select(index, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_gather(x: &Tensor, index: &Tensor, dim: Dim) -> Result<()> {
    x.gather(index, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_scatter_add(x: &Tensor, index: &Tensor, source: &Tensor, dim: Dim) -> Result<()> {
    x.scatter_add(index, source, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_scatter_add_(x: &mut Tensor, index: &Tensor, source: &Tensor, dim: Dim) -> Result<()> {
    x.scatter_add_(index, source, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_scatter(x: &Tensor, index: &Tensor, source: &Tensor, dim: Dim) -> Result<()> {
    x.scatter(index, source, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_scatter_(x: &mut Tensor, index: &Tensor, source: &Tensor, dim: Dim) -> Result<()> {
    x.scatter_(index, source, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_scatter_reduce(x: &Tensor, index: &Tensor, source: &Tensor, dim: Dim, reduce: Reduce) -> Result<()> {
    x.scatter_reduce(index, source, dim, reduce)?;
    Ok(())
}

#[rustfmt::skip]
fn call_scatter_reduce_with(x: &Tensor, index: &Tensor, source: &Tensor, dim: Dim, reduce: Reduce, include_self: bool) -> Result<()> {
    x.scatter_reduce_with(index, source, dim, reduce, ScatterReduceOptions::new().include_self(include_self))?;
    Ok(())
}

#[rustfmt::skip]
fn call_scatter_reduce_(x: &mut Tensor, index: &Tensor, source: &Tensor, dim: Dim, reduce: Reduce) -> Result<()> {
    x.scatter_reduce_(index, source, dim, reduce)?;
    Ok(())
}

#[rustfmt::skip]
fn call_index_copy(x: &Tensor, index: &Tensor, source: &Tensor, dim: Dim) -> Result<()> {
    x.index_copy(index, source, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_index_copy_(x: &mut Tensor, index: &Tensor, source: &Tensor, dim: Dim) -> Result<()> {
    x.index_copy_(index, source, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_index_add(x: &Tensor, index: &Tensor, source: &Tensor, dim: Dim) -> Result<()> {
    x.index_add(index, source, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_index_add_(x: &mut Tensor, index: &Tensor, source: &Tensor, dim: Dim) -> Result<()> {
    x.index_add_(index, source, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_tril(x: &Tensor) -> Result<()> {
    x.tril()?;
    Ok(())
}

#[rustfmt::skip]
fn call_tril_with(x: &Tensor, diagonal: isize) -> Result<()> {
    x.tril_with(TrilOptions::new().diagonal(diagonal))?;
    Ok(())
}

#[rustfmt::skip]
fn call_tril_(x: &mut Tensor) -> Result<()> {
    x.tril_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_triu(x: &Tensor) -> Result<()> {
    x.triu()?;
    Ok(())
}

#[rustfmt::skip]
fn call_triu_with(x: &Tensor, diagonal: isize) -> Result<()> {
    x.triu_with(TriuOptions::new().diagonal(diagonal))?;
    Ok(())
}

#[rustfmt::skip]
fn call_triu_(x: &mut Tensor) -> Result<()> {
    x.triu_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_nonzero(x: &Tensor) -> Result<()> {
    x.nonzero()?;
    Ok(())
}

#[rustfmt::skip]
fn call_nonzero_with(x: &Tensor, names: &[&str]) -> Result<()> {
    x.nonzero_with(NonzeroOptions::new().names(names))?;
    Ok(())
}

#[rustfmt::skip]
fn call_masked_select(x: &Tensor, mask: &Tensor) -> Result<()> {
    x.masked_select(mask)?;
    Ok(())
}

#[rustfmt::skip]
fn call_masked_select_with(x: &Tensor, mask: &Tensor, name: &str) -> Result<()> {
    x.masked_select_with(mask, MaskedSelectOptions::new().name(name))?;
    Ok(())
}

#[rustfmt::skip]
fn call_cat(tensors: &[&Tensor], dim: Dim) -> Result<()> {
    Tensor::cat(tensors, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_stack(tensors: &[&Tensor], dim: isize) -> Result<()> {
    Tensor::stack(tensors, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_stack_with(tensors: &[&Tensor], dim: isize, name: &str) -> Result<()> {
    Tensor::stack_with(tensors, dim, StackOptions::new().name(name))?;
    Ok(())
}

#[rustfmt::skip]
fn call_roll(x: &Tensor, shifts: isize, dims: Dim) -> Result<()> {
    x.roll(shifts, dims)?;
    Ok(())
}

#[rustfmt::skip]
fn call_mm(x: &Tensor, other: &Tensor) -> Result<()> {
    x.mm(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_mv(x: &Tensor, other: &Tensor) -> Result<()> {
    x.mv(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_dot(x: &Tensor, other: &Tensor) -> Result<()> {
    x.dot(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bmm(x: &Tensor, other: &Tensor) -> Result<()> {
    x.bmm(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_matmul(x: &Tensor, other: &Tensor) -> Result<()> {
    x.matmul(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_addmm(x: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    x.addmm(a, b)?;
    Ok(())
}

#[rustfmt::skip]
fn call_addmm_with(x: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<()> {
    x.addmm_with(a, b, AddmmOptions::new().beta(beta).alpha(alpha))?;
    Ok(())
}

#[rustfmt::skip]
fn call_addmm_(x: &mut Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    x.addmm_(a, b)?;
    Ok(())
}

#[rustfmt::skip]
fn call_addmv(x: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    x.addmv(a, b)?;
    Ok(())
}

#[rustfmt::skip]
fn call_addmv_with(x: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<()> {
    x.addmv_with(a, b, AddmvOptions::new().beta(beta).alpha(alpha))?;
    Ok(())
}

#[rustfmt::skip]
fn call_addmv_(x: &mut Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    x.addmv_(a, b)?;
    Ok(())
}

#[rustfmt::skip]
fn call_baddbmm(x: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    x.baddbmm(a, b)?;
    Ok(())
}

#[rustfmt::skip]
fn call_baddbmm_with(x: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<()> {
    x.baddbmm_with(a, b, BaddbmmOptions::new().beta(beta).alpha(alpha))?;
    Ok(())
}

#[rustfmt::skip]
fn call_baddbmm_(x: &mut Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    x.baddbmm_(a, b)?;
    Ok(())
}

#[rustfmt::skip]
fn call_addcmul(x: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    x.addcmul(a, b)?;
    Ok(())
}

#[rustfmt::skip]
fn call_addcmul_with(x: &Tensor, a: &Tensor, b: &Tensor, value: Scalar) -> Result<()> {
    x.addcmul_with(a, b, AddcmulOptions::new().value(value))?;
    Ok(())
}

#[rustfmt::skip]
fn call_addcmul_(x: &mut Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    x.addcmul_(a, b)?;
    Ok(())
}

#[rustfmt::skip]
fn call_addcdiv(x: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    x.addcdiv(a, b)?;
    Ok(())
}

#[rustfmt::skip]
fn call_addcdiv_with(x: &Tensor, a: &Tensor, b: &Tensor, value: Scalar) -> Result<()> {
    x.addcdiv_with(a, b, AddcdivOptions::new().value(value))?;
    Ok(())
}

#[rustfmt::skip]
fn call_addcdiv_(x: &mut Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    x.addcdiv_(a, b)?;
    Ok(())
}

#[rustfmt::skip]
fn call_outer(x: &Tensor, other: &Tensor) -> Result<()> {
    x.outer(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_outer_with(x: &Tensor, other: &Tensor, names: &[&str]) -> Result<()> {
    x.outer_with(other, OuterOptions::new().names(names))?;
    Ok(())
}

#[rustfmt::skip]
fn call_tensordot(x: &Tensor, other: &Tensor, dims: Dims, other_dims: Dims) -> Result<()> {
    x.tensordot(other, dims, other_dims)?;
    Ok(())
}

#[rustfmt::skip]
fn call_contract(x: &Tensor, other: &Tensor, dims: Contraction) -> Result<()> {
    x.contract(other, dims)?;
    Ok(())
}

#[rustfmt::skip]
fn call_qr(x: &Tensor) -> Result<()> {
    x.qr()?;
    Ok(())
}

#[rustfmt::skip]
fn call_qr_with(x: &Tensor, name: &str) -> Result<()> {
    x.qr_with(QrOptions::new().name(name))?;
    Ok(())
}

#[rustfmt::skip]
fn call_solve_triangular(x: &Tensor, other: &Tensor, upper: Triangle) -> Result<()> {
    x.solve_triangular(other, upper)?;
    Ok(())
}

#[rustfmt::skip]
fn call_solve_triangular_with(x: &Tensor, other: &Tensor, upper: Triangle, left: bool, unitriangular: bool) -> Result<()> {
    x.solve_triangular_with(other, upper, SolveTriangularOptions::new().left(left).unitriangular(unitriangular))?;
    Ok(())
}

#[rustfmt::skip]
fn call_layer_norm(x: &Tensor, dims: Dims) -> Result<()> {
    x.layer_norm(dims)?;
    Ok(())
}

#[rustfmt::skip]
fn call_layer_norm_with(x: &Tensor, dims: Dims, weight: &Tensor, bias: &Tensor, eps: f64) -> Result<()> {
    x.layer_norm_with(dims, LayerNormOptions::new().weight(weight).bias(bias).eps(eps))?;
    Ok(())
}

#[rustfmt::skip]
fn call_class_cross_entropy(x: &Tensor, target: &Tensor, dim: Dim) -> Result<()> {
    x.class_cross_entropy(target, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_class_cross_entropy_with(x: &Tensor, target: &Tensor, dim: Dim, ignore_index: isize) -> Result<()> {
    x.class_cross_entropy_with(target, dim, ClassCrossEntropyOptions::new().ignore_index(ignore_index))?;
    Ok(())
}

#[rustfmt::skip]
fn call_msort(x: &Tensor) -> Result<()> {
    x.msort()?;
    Ok(())
}

#[rustfmt::skip]
fn call_diff(x: &Tensor, dim: Dim) -> Result<()> {
    x.diff(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_diff_with(x: &Tensor, dim: Dim, n: usize) -> Result<()> {
    x.diff_with(dim, DiffOptions::new().n(n))?;
    Ok(())
}

#[rustfmt::skip]
fn call_quantile(x: &Tensor, q: f64, dim: Dims) -> Result<()> {
    x.quantile(q, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_to(x: &Tensor, dtype: DType) -> Result<()> {
    x.to(dtype)?;
    Ok(())
}

#[rustfmt::skip]
fn call_type_as(x: &Tensor, other: &Tensor) -> Result<()> {
    x.type_as(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bool(x: &Tensor) -> Result<()> {
    x.bool()?;
    Ok(())
}

#[rustfmt::skip]
fn call_byte(x: &Tensor) -> Result<()> {
    x.byte()?;
    Ok(())
}

#[rustfmt::skip]
fn call_char(x: &Tensor) -> Result<()> {
    x.char()?;
    Ok(())
}

#[rustfmt::skip]
fn call_short(x: &Tensor) -> Result<()> {
    x.short()?;
    Ok(())
}

#[rustfmt::skip]
fn call_int(x: &Tensor) -> Result<()> {
    x.int()?;
    Ok(())
}

#[rustfmt::skip]
fn call_long(x: &Tensor) -> Result<()> {
    x.long()?;
    Ok(())
}

#[rustfmt::skip]
fn call_half(x: &Tensor) -> Result<()> {
    x.half()?;
    Ok(())
}

#[rustfmt::skip]
fn call_bfloat16(x: &Tensor) -> Result<()> {
    x.bfloat16()?;
    Ok(())
}

#[rustfmt::skip]
fn call_float(x: &Tensor) -> Result<()> {
    x.float()?;
    Ok(())
}

#[rustfmt::skip]
fn call_double(x: &Tensor) -> Result<()> {
    x.double()?;
    Ok(())
}

#[rustfmt::skip]
fn call_einsum(equation: &str, operands: &[&Tensor]) -> Result<()> {
    Tensor::einsum(equation, operands)?;
    Ok(())
}

#[rustfmt::skip]
fn call_einsum_with(equation: &str, operands: &[&Tensor], names: &[&str]) -> Result<()> {
    Tensor::einsum_with(equation, operands, EinsumOptions::new().names(names))?;
    Ok(())
}

#[rustfmt::skip]
fn call_index(x: &Tensor, indices: &[Index]) -> Result<()> {
    x.index(indices)?;
    Ok(())
}

#[rustfmt::skip]
fn call_index_fill(x: &Tensor, index: &Tensor, value: &Tensor, dim: Dim) -> Result<()> {
    x.index_fill(index, value, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_index_fill_(x: &mut Tensor, index: &Tensor, value: &Tensor, dim: Dim) -> Result<()> {
    x.index_fill_(index, value, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_masked_scatter(x: &Tensor, mask: &Tensor, source: &Tensor) -> Result<()> {
    x.masked_scatter(mask, source)?;
    Ok(())
}

#[rustfmt::skip]
fn call_masked_scatter_(x: &mut Tensor, mask: &Tensor, source: &Tensor) -> Result<()> {
    x.masked_scatter_(mask, source)?;
    Ok(())
}

#[rustfmt::skip]
fn call_take(x: &Tensor, index: &Tensor) -> Result<()> {
    x.take(index)?;
    Ok(())
}

#[rustfmt::skip]
fn call_put(x: &Tensor, index: &Tensor, source: &Tensor) -> Result<()> {
    x.put(index, source)?;
    Ok(())
}

#[rustfmt::skip]
fn call_put_with(x: &Tensor, index: &Tensor, source: &Tensor, accumulate: bool) -> Result<()> {
    x.put_with(index, source, PutOptions::new().accumulate(accumulate))?;
    Ok(())
}

#[rustfmt::skip]
fn call_put_(x: &mut Tensor, index: &Tensor, source: &Tensor) -> Result<()> {
    x.put_(index, source)?;
    Ok(())
}

#[rustfmt::skip]
fn call_one_hot(x: &Tensor) -> Result<()> {
    x.one_hot()?;
    Ok(())
}

#[rustfmt::skip]
fn call_one_hot_with(x: &Tensor, num_classes: isize, name: &str) -> Result<()> {
    x.one_hot_with(OneHotOptions::new().num_classes(num_classes).name(name))?;
    Ok(())
}

#[rustfmt::skip]
fn call_take_along_dim(x: &Tensor, indices: &Tensor, dim: Dim) -> Result<()> {
    x.take_along_dim(indices, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_index_put(x: &Tensor, indices: &[Index], values: &Tensor) -> Result<()> {
    x.index_put(indices, values)?;
    Ok(())
}

#[rustfmt::skip]
fn call_index_put_with(x: &Tensor, indices: &[Index], values: &Tensor, accumulate: bool) -> Result<()> {
    x.index_put_with(indices, values, IndexPutOptions::new().accumulate(accumulate))?;
    Ok(())
}

#[rustfmt::skip]
fn call_index_put_(x: &mut Tensor, indices: &[Index], values: &Tensor) -> Result<()> {
    x.index_put_(indices, values)?;
    Ok(())
}

#[rustfmt::skip]
fn call_broadcast_tensors(tensors: &[&Tensor]) -> Result<()> {
    Tensor::broadcast_tensors(tensors)?;
    Ok(())
}

#[rustfmt::skip]
fn call_hstack(tensors: &[&Tensor]) -> Result<()> {
    Tensor::hstack(tensors)?;
    Ok(())
}

#[rustfmt::skip]
fn call_vstack(tensors: &[&Tensor]) -> Result<()> {
    Tensor::vstack(tensors)?;
    Ok(())
}

#[rustfmt::skip]
fn call_dstack(tensors: &[&Tensor]) -> Result<()> {
    Tensor::dstack(tensors)?;
    Ok(())
}

#[rustfmt::skip]
fn call_column_stack(tensors: &[&Tensor]) -> Result<()> {
    Tensor::column_stack(tensors)?;
    Ok(())
}

#[rustfmt::skip]
fn call_block_diag(tensors: &[&Tensor]) -> Result<()> {
    Tensor::block_diag(tensors)?;
    Ok(())
}

#[rustfmt::skip]
fn call_block_diag_with(tensors: &[&Tensor], names: &[&str]) -> Result<()> {
    Tensor::block_diag_with(tensors, BlockDiagOptions::new().names(names))?;
    Ok(())
}

#[rustfmt::skip]
fn call_meshgrid(tensors: &[&Tensor]) -> Result<()> {
    Tensor::meshgrid(tensors)?;
    Ok(())
}

#[rustfmt::skip]
fn call_meshgrid_with(tensors: &[&Tensor], indexing: Indexing) -> Result<()> {
    Tensor::meshgrid_with(tensors, MeshgridOptions::new().indexing(indexing))?;
    Ok(())
}

#[rustfmt::skip]
fn call_kron(x: &Tensor, other: &Tensor) -> Result<()> {
    x.kron(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_kron_with(x: &Tensor, other: &Tensor, names: &[&str]) -> Result<()> {
    x.kron_with(other, KronOptions::new().names(names))?;
    Ok(())
}

#[rustfmt::skip]
fn call_zeros_like(x: &Tensor) -> Result<()> {
    x.zeros_like()?;
    Ok(())
}

#[rustfmt::skip]
fn call_zeros_like_with(x: &Tensor, dtype: Option<DType>) -> Result<()> {
    x.zeros_like_with(ZerosLikeOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_ones_like(x: &Tensor) -> Result<()> {
    x.ones_like()?;
    Ok(())
}

#[rustfmt::skip]
fn call_ones_like_with(x: &Tensor, dtype: Option<DType>) -> Result<()> {
    x.ones_like_with(OnesLikeOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_empty_like(x: &Tensor) -> Result<()> {
    x.empty_like()?;
    Ok(())
}

#[rustfmt::skip]
fn call_empty_like_with(x: &Tensor, dtype: Option<DType>) -> Result<()> {
    x.empty_like_with(EmptyLikeOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_full_like(x: &Tensor, fill_value: Scalar) -> Result<()> {
    x.full_like(fill_value)?;
    Ok(())
}

#[rustfmt::skip]
fn call_full_like_with(x: &Tensor, fill_value: Scalar, dtype: Option<DType>) -> Result<()> {
    x.full_like_with(fill_value, FullLikeOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_rand_like(x: &Tensor) -> Result<()> {
    x.rand_like()?;
    Ok(())
}

#[rustfmt::skip]
fn call_rand_like_with(x: &Tensor, dtype: Option<DType>) -> Result<()> {
    x.rand_like_with(RandLikeOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_randn_like(x: &Tensor) -> Result<()> {
    x.randn_like()?;
    Ok(())
}

#[rustfmt::skip]
fn call_randn_like_with(x: &Tensor, dtype: Option<DType>) -> Result<()> {
    x.randn_like_with(RandnLikeOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_new_zeros(x: &Tensor, size: &[isize]) -> Result<()> {
    x.new_zeros(size)?;
    Ok(())
}

#[rustfmt::skip]
fn call_new_zeros_with(x: &Tensor, size: &[isize], dtype: Option<DType>) -> Result<()> {
    x.new_zeros_with(size, NewZerosOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_new_ones(x: &Tensor, size: &[isize]) -> Result<()> {
    x.new_ones(size)?;
    Ok(())
}

#[rustfmt::skip]
fn call_new_ones_with(x: &Tensor, size: &[isize], dtype: Option<DType>) -> Result<()> {
    x.new_ones_with(size, NewOnesOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_new_full(x: &Tensor, size: &[isize], fill_value: Scalar) -> Result<()> {
    x.new_full(size, fill_value)?;
    Ok(())
}

#[rustfmt::skip]
fn call_new_full_with(x: &Tensor, size: &[isize], fill_value: Scalar, dtype: Option<DType>) -> Result<()> {
    x.new_full_with(size, fill_value, NewFullOptions::new().dtype(dtype))?;
    Ok(())
}

#[rustfmt::skip]
fn call_split(x: &Tensor, split_size: Sections, dim: Dim) -> Result<()> {
    x.split(split_size, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_chunk(x: &Tensor, chunks: usize, dim: Dim) -> Result<()> {
    x.chunk(chunks, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_tensor_split(x: &Tensor, indices_or_sections: Sections, dim: Dim) -> Result<()> {
    x.tensor_split(indices_or_sections, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_unbind(x: &Tensor, dim: Dim) -> Result<()> {
    x.unbind(dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_isclose(x: &Tensor, other: &Tensor) -> Result<()> {
    x.isclose(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_isclose_with(x: &Tensor, other: &Tensor, rtol: f64, atol: f64, equal_nan: bool) -> Result<()> {
    x.isclose_with(other, IscloseOptions::new().rtol(rtol).atol(atol).equal_nan(equal_nan))?;
    Ok(())
}

#[rustfmt::skip]
fn call_isposinf(x: &Tensor) -> Result<()> {
    x.isposinf()?;
    Ok(())
}

#[rustfmt::skip]
fn call_isneginf(x: &Tensor) -> Result<()> {
    x.isneginf()?;
    Ok(())
}

#[rustfmt::skip]
fn call_nan_to_num(x: &Tensor) -> Result<()> {
    x.nan_to_num()?;
    Ok(())
}

#[rustfmt::skip]
fn call_nan_to_num_with(x: &Tensor, nan: f64, posinf: Option<f64>, neginf: Option<f64>) -> Result<()> {
    x.nan_to_num_with(NanToNumOptions::new().nan(nan).posinf(posinf).neginf(neginf))?;
    Ok(())
}

#[rustfmt::skip]
fn call_nan_to_num_(x: &mut Tensor) -> Result<()> {
    x.nan_to_num_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_float_power(x: &Tensor, exponent: &Tensor) -> Result<()> {
    x.float_power(exponent)?;
    Ok(())
}

#[rustfmt::skip]
fn call_ldexp(x: &Tensor, other: &Tensor) -> Result<()> {
    x.ldexp(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_nextafter(x: &Tensor, other: &Tensor) -> Result<()> {
    x.nextafter(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_addr(x: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    x.addr(a, b)?;
    Ok(())
}

#[rustfmt::skip]
fn call_addr_with(x: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<()> {
    x.addr_with(a, b, AddrOptions::new().beta(beta).alpha(alpha))?;
    Ok(())
}

#[rustfmt::skip]
fn call_addbmm(x: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    x.addbmm(a, b)?;
    Ok(())
}

#[rustfmt::skip]
fn call_addbmm_with(x: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<()> {
    x.addbmm_with(a, b, AddbmmOptions::new().beta(beta).alpha(alpha))?;
    Ok(())
}

#[rustfmt::skip]
fn call_vdot(x: &Tensor, other: &Tensor) -> Result<()> {
    x.vdot(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_inner(x: &Tensor, other: &Tensor) -> Result<()> {
    x.inner(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_cross(x: &Tensor, other: &Tensor, dim: Dim) -> Result<()> {
    x.cross(other, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_dist(x: &Tensor, other: &Tensor) -> Result<()> {
    x.dist(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_dist_with(x: &Tensor, other: &Tensor, p: f64) -> Result<()> {
    x.dist_with(other, DistOptions::new().p(p))?;
    Ok(())
}

#[rustfmt::skip]
fn call_uniform_(x: &mut Tensor, from: f64, to: f64) -> Result<()> {
    x.uniform_(from, to)?;
    Ok(())
}

#[rustfmt::skip]
fn call_normal_(x: &mut Tensor, mean: f64, std: f64) -> Result<()> {
    x.normal_(mean, std)?;
    Ok(())
}

#[rustfmt::skip]
fn call_log_normal_(x: &mut Tensor, mean: f64, std: f64) -> Result<()> {
    x.log_normal_(mean, std)?;
    Ok(())
}

#[rustfmt::skip]
fn call_exponential_(x: &mut Tensor, lambd: f64) -> Result<()> {
    x.exponential_(lambd)?;
    Ok(())
}

#[rustfmt::skip]
fn call_cauchy_(x: &mut Tensor, median: f64, sigma: f64) -> Result<()> {
    x.cauchy_(median, sigma)?;
    Ok(())
}

#[rustfmt::skip]
fn call_geometric_(x: &mut Tensor, p: f64) -> Result<()> {
    x.geometric_(p)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bernoulli_(x: &mut Tensor, p: &Tensor) -> Result<()> {
    x.bernoulli_(p)?;
    Ok(())
}

#[rustfmt::skip]
fn call_bernoulli(x: &Tensor) -> Result<()> {
    x.bernoulli()?;
    Ok(())
}

#[rustfmt::skip]
fn call_normal(mean: &Tensor, std: &Tensor) -> Result<()> {
    Tensor::normal(mean, std)?;
    Ok(())
}

#[rustfmt::skip]
fn call_diag(x: &Tensor) -> Result<()> {
    x.diag()?;
    Ok(())
}

#[rustfmt::skip]
fn call_diag_with(x: &Tensor, diagonal: isize, names: &[&str]) -> Result<()> {
    x.diag_with(DiagOptions::new().diagonal(diagonal).names(names))?;
    Ok(())
}

#[rustfmt::skip]
fn call_diag_embed(x: &Tensor) -> Result<()> {
    x.diag_embed()?;
    Ok(())
}

#[rustfmt::skip]
fn call_diag_embed_with(x: &Tensor, offset: isize, dim1: isize, dim2: isize, names: &[&str]) -> Result<()> {
    x.diag_embed_with(DiagEmbedOptions::new().offset(offset).dim1(dim1).dim2(dim2).names(names))?;
    Ok(())
}

#[rustfmt::skip]
fn call_rot90(x: &Tensor, k: isize, dims: Dims) -> Result<()> {
    x.rot90(k, dims)?;
    Ok(())
}

#[rustfmt::skip]
fn call_trace(x: &Tensor) -> Result<()> {
    x.trace()?;
    Ok(())
}

#[rustfmt::skip]
fn call_repeat_interleave(x: &Tensor, repeats: &Tensor, dim: Dims) -> Result<()> {
    x.repeat_interleave(repeats, dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_tile(x: &Tensor, dims: &[isize]) -> Result<()> {
    x.tile(dims)?;
    Ok(())
}

#[rustfmt::skip]
fn call_ravel(x: &Tensor) -> Result<()> {
    x.ravel()?;
    Ok(())
}

#[rustfmt::skip]
fn call_ravel_with(x: &Tensor, name: &str) -> Result<()> {
    x.ravel_with(RavelOptions::new().name(name))?;
    Ok(())
}

#[rustfmt::skip]
fn call_fliplr(x: &Tensor) -> Result<()> {
    x.fliplr()?;
    Ok(())
}

#[rustfmt::skip]
fn call_flipud(x: &Tensor) -> Result<()> {
    x.flipud()?;
    Ok(())
}

#[rustfmt::skip]
fn call_swapaxes(x: &Tensor, axis0: Dim, axis1: Dim) -> Result<()> {
    x.swapaxes(axis0, axis1)?;
    Ok(())
}

#[rustfmt::skip]
fn call_expand_as(x: &Tensor, other: &Tensor) -> Result<()> {
    x.expand_as(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_view_as(x: &Tensor, other: &Tensor) -> Result<()> {
    x.view_as(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_reshape_as(x: &Tensor, other: &Tensor) -> Result<()> {
    x.reshape_as(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_copy_(x: &mut Tensor, src: &Tensor) -> Result<()> {
    x.copy_(src)?;
    Ok(())
}

#[rustfmt::skip]
fn call_fill_(x: &mut Tensor, value: &Tensor) -> Result<()> {
    x.fill_(value)?;
    Ok(())
}

#[rustfmt::skip]
fn call_zero_(x: &mut Tensor) -> Result<()> {
    x.zero_()?;
    Ok(())
}

#[rustfmt::skip]
fn call_resize_(x: &mut Tensor, size: &[isize]) -> Result<()> {
    x.resize_(size)?;
    Ok(())
}

#[rustfmt::skip]
fn call_resize_as_(x: &mut Tensor, other: &Tensor) -> Result<()> {
    x.resize_as_(other)?;
    Ok(())
}

#[rustfmt::skip]
fn call_nn_gelu(x: &Tensor) -> Result<()> {
    F::gelu(x)?;
    Ok(())
}

#[rustfmt::skip]
fn call_nn_gelu_with(x: &Tensor, approximate: Approximate) -> Result<()> {
    F::gelu_with(x, GeluOptions::new().approximate(approximate))?;
    Ok(())
}

#[rustfmt::skip]
fn call_nn_conv1d(x: &Tensor, weight: &Tensor) -> Result<()> {
    F::conv1d(x, weight)?;
    Ok(())
}

#[rustfmt::skip]
fn call_nn_conv1d_with(x: &Tensor, weight: &Tensor, bias: &Tensor, stride: usize, padding: Padding, dilation: usize, groups: usize) -> Result<()> {
    F::conv1d_with(x, weight, Conv1dOptions::new().bias(bias).stride(stride).padding(padding).dilation(dilation).groups(groups))?;
    Ok(())
}

#[rustfmt::skip]
fn call_nn_dropout(x: &Tensor, p: f64) -> Result<()> {
    F::dropout(x, p)?;
    Ok(())
}

#[rustfmt::skip]
fn call_nn_dropout_with(x: &Tensor, p: f64, training: bool) -> Result<()> {
    F::dropout_with(x, p, DropoutOptions::new().training(training))?;
    Ok(())
}

#[rustfmt::skip]
fn call_nn_linear(x: &Tensor, weight: &Tensor) -> Result<()> {
    F::linear(x, weight)?;
    Ok(())
}

#[rustfmt::skip]
fn call_nn_linear_with(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<()> {
    F::linear_with(x, weight, LinearOptions::new().bias(bias))?;
    Ok(())
}

#[rustfmt::skip]
fn call_nn_mse_loss(x: &Tensor, target: &Tensor) -> Result<()> {
    F::mse_loss(x, target)?;
    Ok(())
}

#[rustfmt::skip]
fn call_nn_mse_loss_with(x: &Tensor, target: &Tensor, reduction: Reduction) -> Result<()> {
    F::mse_loss_with(x, target, MseLossOptions::new().reduction(reduction))?;
    Ok(())
}

#[rustfmt::skip]
fn call_nn_cross_entropy(logits: &Tensor, target: &Tensor, class_dim: ClassDim) -> Result<()> {
    F::cross_entropy(logits, target, class_dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_nn_cross_entropy_with(logits: &Tensor, target: &Tensor, class_dim: ClassDim, weight: &Tensor, ignore_index: isize, label_smoothing: f64, reduction: Reduction) -> Result<()> {
    F::cross_entropy_with(logits, target, class_dim, CrossEntropyOptions::new().weight(weight).ignore_index(ignore_index).label_smoothing(label_smoothing).reduction(reduction))?;
    Ok(())
}

#[rustfmt::skip]
fn call_nn_nll_loss(log_probabilities: &Tensor, target: &Tensor, class_dim: ClassDim) -> Result<()> {
    F::nll_loss(log_probabilities, target, class_dim)?;
    Ok(())
}

#[rustfmt::skip]
fn call_nn_nll_loss_with(log_probabilities: &Tensor, target: &Tensor, class_dim: ClassDim, weight: &Tensor, ignore_index: isize, reduction: Reduction) -> Result<()> {
    F::nll_loss_with(log_probabilities, target, class_dim, NllLossOptions::new().weight(weight).ignore_index(ignore_index).reduction(reduction))?;
    Ok(())
}

#[rustfmt::skip]
fn other_align_as(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.align_as(&y)?;
    Ok(())
}

#[rustfmt::skip]
fn other_align_to(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.align_to(["C", "..."])?;
    Ok(())
}

#[rustfmt::skip]
fn other_flatten(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.flatten(["H", "W"], "pixels")?;
    Ok(())
}

#[rustfmt::skip]
fn other_has_names(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.has_names();
    Ok(())
}

#[rustfmt::skip]
fn other_names(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.names();
    Ok(())
}

#[rustfmt::skip]
fn other_refine_names(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.refine_names(["N", "..."])?;
    Ok(())
}

#[rustfmt::skip]
fn other_rename(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.rename([("N", "batch")])?;
    Ok(())
}

#[rustfmt::skip]
fn other_rename_(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.rename_([("N", "batch")])?;
    Ok(())
}

#[rustfmt::skip]
fn other_unflatten(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.unflatten("pixels", [("H", 8), ("W", 8)])?;
    Ok(())
}

#[rustfmt::skip]
fn other_empty(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    Tensor::empty([("N", 2)])?;
    Ok(())
}

#[rustfmt::skip]
fn other_ones(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    Tensor::ones([("N", 2)])?;
    Ok(())
}

#[rustfmt::skip]
fn other_zeros(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    Tensor::zeros([("N", 2)])?;
    Ok(())
}

#[rustfmt::skip]
fn other_tensor(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    Tensor::new([1.0, 2.0])?;
    Ok(())
}

#[rustfmt::skip]
fn other_rand(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    Tensor::rand([("N", 2)])?;
    Ok(())
}

#[rustfmt::skip]
fn other_randn(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    Tensor::randn([("N", 2)])?;
    Ok(())
}

#[rustfmt::skip]
fn other_manual_seed(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    manual_seed(0);
    Ok(())
}

#[rustfmt::skip]
fn other_random_(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.random_(0..10)?;
    Ok(())
}

#[rustfmt::skip]
fn other_cpu(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.cpu();
    Ok(())
}

#[rustfmt::skip]
fn other_cuda(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.cuda()?;
    Ok(())
}

#[rustfmt::skip]
fn other_device(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.device();
    Ok(())
}

#[rustfmt::skip]
fn other_get_device(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.device();
    Ok(())
}

#[rustfmt::skip]
fn other_is_cuda(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.is_cuda();
    Ok(())
}

#[rustfmt::skip]
fn other_is_shared(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.is_shared();
    Ok(())
}

#[rustfmt::skip]
fn other_is_sparse(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.is_sparse();
    Ok(())
}

#[rustfmt::skip]
fn other_is_sparse_csr(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.is_sparse();
    Ok(())
}

#[rustfmt::skip]
fn other_type(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.type_name();
    Ok(())
}

#[rustfmt::skip]
fn other_data_ptr(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.data_ptr();
    Ok(())
}

#[rustfmt::skip]
fn other_dim(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.ndim();
    Ok(())
}

#[rustfmt::skip]
fn other_element_size(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.element_size();
    Ok(())
}

#[rustfmt::skip]
fn other_grad(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.grad();
    Ok(())
}

#[rustfmt::skip]
fn other_is_contiguous(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.is_contiguous();
    Ok(())
}

#[rustfmt::skip]
fn other_is_floating_point(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.dtype().is_floating_point();
    Ok(())
}

#[rustfmt::skip]
fn other_is_leaf(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.is_leaf();
    Ok(())
}

#[rustfmt::skip]
fn other_is_signed(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.dtype().is_signed();
    Ok(())
}

#[rustfmt::skip]
fn other_item(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.item::<f32>()?;
    Ok(())
}

#[rustfmt::skip]
fn other_itemsize(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.element_size();
    Ok(())
}

#[rustfmt::skip]
fn other_nbytes(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.nbytes();
    Ok(())
}

#[rustfmt::skip]
fn other_ndim(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.ndim();
    Ok(())
}

#[rustfmt::skip]
fn other_ndimension(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.ndim();
    Ok(())
}

#[rustfmt::skip]
fn other_numel(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.numel();
    Ok(())
}

#[rustfmt::skip]
fn other_requires_grad(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.requires_grad();
    Ok(())
}

#[rustfmt::skip]
fn other_size(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.size("N")?;
    Ok(())
}

#[rustfmt::skip]
fn other_stride(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.strides();
    Ok(())
}

#[rustfmt::skip]
fn other_detach(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.detach();
    Ok(())
}

#[rustfmt::skip]
fn other_detach_(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.detach_();
    Ok(())
}

#[rustfmt::skip]
fn other_register_hook(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.register_hook(|g| g.mul(2.0).map(Some))?;
    Ok(())
}

#[rustfmt::skip]
fn other_register_post_accumulate_grad_hook(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.register_post_accumulate_grad_hook(|g| g.mul(2.0).map(Some))?;
    Ok(())
}

#[rustfmt::skip]
fn other_requires_grad_(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {
    x.requires_grad_(true)?;
    Ok(())
}

/// The calls, each after the name of the op.
#[rustfmt::skip]
pub(crate) const CALLS: &[(&str, Call)] = &[
    ("abs", |given| Some(call_abs(given.tensor("x")?))),
    ("abs", |given| Some(call_abs_(&mut given.tensor("x")?.clone()))),
    ("neg", |given| Some(call_neg(given.tensor("x")?))),
    ("neg", |given| Some(call_neg_(&mut given.tensor("x")?.clone()))),
    ("positive", |given| Some(call_positive(given.tensor("x")?))),
    ("sign", |given| Some(call_sign(given.tensor("x")?))),
    ("sign", |given| Some(call_sign_(&mut given.tensor("x")?.clone()))),
    ("sgn", |given| Some(call_sgn(given.tensor("x")?))),
    ("sgn", |given| Some(call_sgn_(&mut given.tensor("x")?.clone()))),
    ("floor", |given| Some(call_floor(given.tensor("x")?))),
    ("floor", |given| Some(call_floor_(&mut given.tensor("x")?.clone()))),
    ("ceil", |given| Some(call_ceil(given.tensor("x")?))),
    ("ceil", |given| Some(call_ceil_(&mut given.tensor("x")?.clone()))),
    ("round", |given| Some(call_round(given.tensor("x")?))),
    ("round", |given| Some(call_round_with(given.tensor("x")?, given.arg("decimals")?))),
    ("round", |given| Some(call_round_(&mut given.tensor("x")?.clone()))),
    ("trunc", |given| Some(call_trunc(given.tensor("x")?))),
    ("trunc", |given| Some(call_trunc_(&mut given.tensor("x")?.clone()))),
    ("frac", |given| Some(call_frac(given.tensor("x")?))),
    ("frac", |given| Some(call_frac_(&mut given.tensor("x")?.clone()))),
    ("square", |given| Some(call_square(given.tensor("x")?))),
    ("square", |given| Some(call_square_(&mut given.tensor("x")?.clone()))),
    ("sqrt", |given| Some(call_sqrt(given.tensor("x")?))),
    ("sqrt", |given| Some(call_sqrt_(&mut given.tensor("x")?.clone()))),
    ("rsqrt", |given| Some(call_rsqrt(given.tensor("x")?))),
    ("rsqrt", |given| Some(call_rsqrt_(&mut given.tensor("x")?.clone()))),
    ("reciprocal", |given| Some(call_reciprocal(given.tensor("x")?))),
    ("reciprocal", |given| Some(call_reciprocal_(&mut given.tensor("x")?.clone()))),
    ("exp", |given| Some(call_exp(given.tensor("x")?))),
    ("exp", |given| Some(call_exp_(&mut given.tensor("x")?.clone()))),
    ("exp2", |given| Some(call_exp2(given.tensor("x")?))),
    ("exp2", |given| Some(call_exp2_(&mut given.tensor("x")?.clone()))),
    ("expm1", |given| Some(call_expm1(given.tensor("x")?))),
    ("expm1", |given| Some(call_expm1_(&mut given.tensor("x")?.clone()))),
    ("log", |given| Some(call_log(given.tensor("x")?))),
    ("log", |given| Some(call_log_(&mut given.tensor("x")?.clone()))),
    ("log2", |given| Some(call_log2(given.tensor("x")?))),
    ("log2", |given| Some(call_log2_(&mut given.tensor("x")?.clone()))),
    ("log10", |given| Some(call_log10(given.tensor("x")?))),
    ("log10", |given| Some(call_log10_(&mut given.tensor("x")?.clone()))),
    ("log1p", |given| Some(call_log1p(given.tensor("x")?))),
    ("log1p", |given| Some(call_log1p_(&mut given.tensor("x")?.clone()))),
    ("sin", |given| Some(call_sin(given.tensor("x")?))),
    ("sin", |given| Some(call_sin_(&mut given.tensor("x")?.clone()))),
    ("cos", |given| Some(call_cos(given.tensor("x")?))),
    ("cos", |given| Some(call_cos_(&mut given.tensor("x")?.clone()))),
    ("tan", |given| Some(call_tan(given.tensor("x")?))),
    ("tan", |given| Some(call_tan_(&mut given.tensor("x")?.clone()))),
    ("asin", |given| Some(call_asin(given.tensor("x")?))),
    ("asin", |given| Some(call_asin_(&mut given.tensor("x")?.clone()))),
    ("acos", |given| Some(call_acos(given.tensor("x")?))),
    ("acos", |given| Some(call_acos_(&mut given.tensor("x")?.clone()))),
    ("atan", |given| Some(call_atan(given.tensor("x")?))),
    ("atan", |given| Some(call_atan_(&mut given.tensor("x")?.clone()))),
    ("sinh", |given| Some(call_sinh(given.tensor("x")?))),
    ("sinh", |given| Some(call_sinh_(&mut given.tensor("x")?.clone()))),
    ("cosh", |given| Some(call_cosh(given.tensor("x")?))),
    ("cosh", |given| Some(call_cosh_(&mut given.tensor("x")?.clone()))),
    ("tanh", |given| Some(call_tanh(given.tensor("x")?))),
    ("tanh", |given| Some(call_tanh_(&mut given.tensor("x")?.clone()))),
    ("asinh", |given| Some(call_asinh(given.tensor("x")?))),
    ("asinh", |given| Some(call_asinh_(&mut given.tensor("x")?.clone()))),
    ("acosh", |given| Some(call_acosh(given.tensor("x")?))),
    ("acosh", |given| Some(call_acosh_(&mut given.tensor("x")?.clone()))),
    ("atanh", |given| Some(call_atanh(given.tensor("x")?))),
    ("atanh", |given| Some(call_atanh_(&mut given.tensor("x")?.clone()))),
    ("sinc", |given| Some(call_sinc(given.tensor("x")?))),
    ("sinc", |given| Some(call_sinc_(&mut given.tensor("x")?.clone()))),
    ("deg2rad", |given| Some(call_deg2rad(given.tensor("x")?))),
    ("deg2rad", |given| Some(call_deg2rad_(&mut given.tensor("x")?.clone()))),
    ("rad2deg", |given| Some(call_rad2deg(given.tensor("x")?))),
    ("rad2deg", |given| Some(call_rad2deg_(&mut given.tensor("x")?.clone()))),
    ("sigmoid", |given| Some(call_sigmoid(given.tensor("x")?))),
    ("sigmoid", |given| Some(call_sigmoid_(&mut given.tensor("x")?.clone()))),
    ("relu", |given| Some(call_relu(given.tensor("x")?))),
    ("relu", |given| Some(call_relu_(&mut given.tensor("x")?.clone()))),
    ("gelu", |given| Some(call_gelu(given.tensor("x")?))),
    ("gelu", |given| Some(call_gelu_(&mut given.tensor("x")?.clone()))),
    ("silu", |given| Some(call_silu(given.tensor("x")?))),
    ("silu", |given| Some(call_silu_(&mut given.tensor("x")?.clone()))),
    ("erf", |given| Some(call_erf(given.tensor("x")?))),
    ("erf", |given| Some(call_erf_(&mut given.tensor("x")?.clone()))),
    ("erfc", |given| Some(call_erfc(given.tensor("x")?))),
    ("erfc", |given| Some(call_erfc_(&mut given.tensor("x")?.clone()))),
    ("erfinv", |given| Some(call_erfinv(given.tensor("x")?))),
    ("erfinv", |given| Some(call_erfinv_(&mut given.tensor("x")?.clone()))),
    ("lgamma", |given| Some(call_lgamma(given.tensor("x")?))),
    ("lgamma", |given| Some(call_lgamma_(&mut given.tensor("x")?.clone()))),
    ("digamma", |given| Some(call_digamma(given.tensor("x")?))),
    ("digamma", |given| Some(call_digamma_(&mut given.tensor("x")?.clone()))),
    ("i0", |given| Some(call_i0(given.tensor("x")?))),
    ("i0", |given| Some(call_i0_(&mut given.tensor("x")?.clone()))),
    ("i0e", |given| Some(call_i0e(given.tensor("x")?))),
    ("i1", |given| Some(call_i1(given.tensor("x")?))),
    ("i1e", |given| Some(call_i1e(given.tensor("x")?))),
    ("erfcx", |given| Some(call_erfcx(given.tensor("x")?))),
    ("ndtr", |given| Some(call_ndtr(given.tensor("x")?))),
    ("ndtri", |given| Some(call_ndtri(given.tensor("x")?))),
    ("log_ndtr", |given| Some(call_log_ndtr(given.tensor("x")?))),
    ("entr", |given| Some(call_entr(given.tensor("x")?))),
    ("bitwise_not", |given| Some(call_bitwise_not(given.tensor("x")?))),
    ("bitwise_not", |given| Some(call_bitwise_not_(&mut given.tensor("x")?.clone()))),
    ("logical_not", |given| Some(call_logical_not(given.tensor("x")?))),
    ("logical_not", |given| Some(call_logical_not_(&mut given.tensor("x")?.clone()))),
    ("signbit", |given| Some(call_signbit(given.tensor("x")?))),
    ("isnan", |given| Some(call_isnan(given.tensor("x")?))),
    ("isinf", |given| Some(call_isinf(given.tensor("x")?))),
    ("isfinite", |given| Some(call_isfinite(given.tensor("x")?))),
    ("logit", |given| Some(call_logit(given.tensor("x")?))),
    ("logit", |given| Some(call_logit_with(given.tensor("x")?, given.arg("eps")?))),
    ("logit", |given| Some(call_logit_(&mut given.tensor("x")?.clone()))),
    ("polygamma", |given| Some(call_polygamma(given.tensor("x")?, given.arg("n")?))),
    ("polygamma", |given| Some(call_polygamma_(&mut given.tensor("x")?.clone(), given.arg("n")?))),
    ("elu", |given| Some(call_elu(given.tensor("x")?))),
    ("elu", |given| Some(call_elu_with(given.tensor("x")?, given.arg("alpha")?))),
    ("elu", |given| Some(call_elu_(&mut given.tensor("x")?.clone()))),
    ("leaky_relu", |given| Some(call_leaky_relu(given.tensor("x")?))),
    ("leaky_relu", |given| Some(call_leaky_relu_with(given.tensor("x")?, given.arg("negative_slope")?))),
    ("leaky_relu", |given| Some(call_leaky_relu_(&mut given.tensor("x")?.clone()))),
    ("softplus", |given| Some(call_softplus(given.tensor("x")?))),
    ("softplus", |given| Some(call_softplus_with(given.tensor("x")?, given.arg("beta")?, given.arg("threshold")?))),
    ("softplus", |given| Some(call_softplus_(&mut given.tensor("x")?.clone()))),
    ("hardtanh", |given| Some(call_hardtanh(given.tensor("x")?))),
    ("hardtanh", |given| Some(call_hardtanh_with(given.tensor("x")?, given.arg("min_val")?, given.arg("max_val")?))),
    ("hardtanh", |given| Some(call_hardtanh_(&mut given.tensor("x")?.clone()))),
    ("threshold", |given| Some(call_threshold(given.tensor("x")?, given.arg("threshold")?, given.arg("value")?))),
    ("threshold", |given| Some(call_threshold_(&mut given.tensor("x")?.clone(), given.arg("threshold")?, given.arg("value")?))),
    ("celu", |given| Some(call_celu(given.tensor("x")?))),
    ("celu", |given| Some(call_celu_with(given.tensor("x")?, given.arg("alpha")?))),
    ("celu", |given| Some(call_celu_(&mut given.tensor("x")?.clone()))),
    ("add", |given| Some(call_add(given.tensor("x")?, given.tensor("other")?))),
    ("add", |given| Some(call_add_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("sub", |given| Some(call_sub(given.tensor("x")?, given.tensor("other")?))),
    ("sub", |given| Some(call_sub_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("mul", |given| Some(call_mul(given.tensor("x")?, given.tensor("other")?))),
    ("mul", |given| Some(call_mul_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("div", |given| Some(call_div(given.tensor("x")?, given.tensor("other")?))),
    ("div", |given| Some(call_div_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("floor_divide", |given| Some(call_floor_divide(given.tensor("x")?, given.tensor("other")?))),
    ("floor_divide", |given| Some(call_floor_divide_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("trunc_divide", |given| Some(call_trunc_divide(given.tensor("x")?, given.tensor("other")?))),
    ("trunc_divide", |given| Some(call_trunc_divide_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("fmod", |given| Some(call_fmod(given.tensor("x")?, given.tensor("other")?))),
    ("fmod", |given| Some(call_fmod_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("remainder", |given| Some(call_remainder(given.tensor("x")?, given.tensor("other")?))),
    ("remainder", |given| Some(call_remainder_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("pow", |given| Some(call_pow(given.tensor("x")?, given.tensor("exponent")?))),
    ("pow", |given| Some(call_pow_(&mut given.tensor("x")?.clone(), given.tensor("exponent")?))),
    ("atan2", |given| Some(call_atan2(given.tensor("x")?, given.tensor("other")?))),
    ("atan2", |given| Some(call_atan2_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("hypot", |given| Some(call_hypot(given.tensor("x")?, given.tensor("other")?))),
    ("hypot", |given| Some(call_hypot_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("logaddexp", |given| Some(call_logaddexp(given.tensor("x")?, given.tensor("other")?))),
    ("logaddexp2", |given| Some(call_logaddexp2(given.tensor("x")?, given.tensor("other")?))),
    ("xlogy", |given| Some(call_xlogy(given.tensor("x")?, given.tensor("other")?))),
    ("xlogy", |given| Some(call_xlogy_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("copysign", |given| Some(call_copysign(given.tensor("x")?, given.tensor("other")?))),
    ("copysign", |given| Some(call_copysign_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("maximum", |given| Some(call_maximum(given.tensor("x")?, given.tensor("other")?))),
    ("minimum", |given| Some(call_minimum(given.tensor("x")?, given.tensor("other")?))),
    ("fmax", |given| Some(call_fmax(given.tensor("x")?, given.tensor("other")?))),
    ("fmin", |given| Some(call_fmin(given.tensor("x")?, given.tensor("other")?))),
    ("clamp_min", |given| Some(call_clamp_min(given.tensor("x")?, given.tensor("min")?))),
    ("clamp_min", |given| Some(call_clamp_min_(&mut given.tensor("x")?.clone(), given.tensor("min")?))),
    ("clamp_max", |given| Some(call_clamp_max(given.tensor("x")?, given.tensor("max")?))),
    ("clamp_max", |given| Some(call_clamp_max_(&mut given.tensor("x")?.clone(), given.tensor("max")?))),
    ("heaviside", |given| Some(call_heaviside(given.tensor("x")?, given.tensor("values")?))),
    ("heaviside", |given| Some(call_heaviside_(&mut given.tensor("x")?.clone(), given.tensor("values")?))),
    ("eq", |given| Some(call_eq(given.tensor("x")?, given.tensor("other")?))),
    ("eq", |given| Some(call_eq_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("ne", |given| Some(call_ne(given.tensor("x")?, given.tensor("other")?))),
    ("ne", |given| Some(call_ne_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("lt", |given| Some(call_lt(given.tensor("x")?, given.tensor("other")?))),
    ("lt", |given| Some(call_lt_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("le", |given| Some(call_le(given.tensor("x")?, given.tensor("other")?))),
    ("le", |given| Some(call_le_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("gt", |given| Some(call_gt(given.tensor("x")?, given.tensor("other")?))),
    ("gt", |given| Some(call_gt_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("ge", |given| Some(call_ge(given.tensor("x")?, given.tensor("other")?))),
    ("ge", |given| Some(call_ge_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("logical_and", |given| Some(call_logical_and(given.tensor("x")?, given.tensor("other")?))),
    ("logical_and", |given| Some(call_logical_and_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("logical_or", |given| Some(call_logical_or(given.tensor("x")?, given.tensor("other")?))),
    ("logical_or", |given| Some(call_logical_or_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("logical_xor", |given| Some(call_logical_xor(given.tensor("x")?, given.tensor("other")?))),
    ("logical_xor", |given| Some(call_logical_xor_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("bitwise_and", |given| Some(call_bitwise_and(given.tensor("x")?, given.tensor("other")?))),
    ("bitwise_and", |given| Some(call_bitwise_and_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("bitwise_or", |given| Some(call_bitwise_or(given.tensor("x")?, given.tensor("other")?))),
    ("bitwise_or", |given| Some(call_bitwise_or_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("bitwise_xor", |given| Some(call_bitwise_xor(given.tensor("x")?, given.tensor("other")?))),
    ("bitwise_xor", |given| Some(call_bitwise_xor_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("bitwise_left_shift", |given| Some(call_bitwise_left_shift(given.tensor("x")?, given.tensor("other")?))),
    ("bitwise_left_shift", |given| Some(call_bitwise_left_shift_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("bitwise_right_shift", |given| Some(call_bitwise_right_shift(given.tensor("x")?, given.tensor("other")?))),
    ("bitwise_right_shift", |given| Some(call_bitwise_right_shift_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("gcd", |given| Some(call_gcd(given.tensor("x")?, given.tensor("other")?))),
    ("gcd", |given| Some(call_gcd_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("lcm", |given| Some(call_lcm(given.tensor("x")?, given.tensor("other")?))),
    ("lcm", |given| Some(call_lcm_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("lerp", |given| Some(call_lerp(given.tensor("x")?, given.tensor("end")?, given.tensor("weight")?))),
    ("lerp", |given| Some(call_lerp_(&mut given.tensor("x")?.clone(), given.tensor("end")?, given.tensor("weight")?))),
    ("clamp", |given| Some(call_clamp(given.tensor("x")?, given.tensor("min")?, given.tensor("max")?))),
    ("clamp", |given| Some(call_clamp_(&mut given.tensor("x")?.clone(), given.tensor("min")?, given.tensor("max")?))),
    ("choose", |given| Some(call_choose(given.tensor("condition")?, given.tensor("x")?, given.tensor("other")?))),
    ("masked_fill", |given| Some(call_masked_fill(given.tensor("x")?, given.tensor("mask")?, given.tensor("value")?))),
    ("masked_fill", |given| Some(call_masked_fill_(&mut given.tensor("x")?.clone(), given.tensor("mask")?, given.tensor("value")?))),
    ("sum", |given| Some(call_sum(given.tensor("x")?, given.arg("dim")?))),
    ("sum", |given| Some(call_sum_with(given.tensor("x")?, given.arg("dim")?, given.arg("dtype")?))),
    ("prod", |given| Some(call_prod(given.tensor("x")?, given.arg("dim")?))),
    ("prod", |given| Some(call_prod_with(given.tensor("x")?, given.arg("dim")?, given.arg("dtype")?))),
    ("mean", |given| Some(call_mean(given.tensor("x")?, given.arg("dim")?))),
    ("mean", |given| Some(call_mean_with(given.tensor("x")?, given.arg("dim")?, given.arg("dtype")?))),
    ("amax", |given| Some(call_amax(given.tensor("x")?, given.arg("dim")?))),
    ("amin", |given| Some(call_amin(given.tensor("x")?, given.arg("dim")?))),
    ("aminmax", |given| Some(call_aminmax(given.tensor("x")?, given.arg("dim")?))),
    ("all", |given| Some(call_all(given.tensor("x")?, given.arg("dim")?))),
    ("any", |given| Some(call_any(given.tensor("x")?, given.arg("dim")?))),
    ("logsumexp", |given| Some(call_logsumexp(given.tensor("x")?, given.arg("dim")?))),
    ("var", |given| Some(call_var(given.tensor("x")?, given.arg("dim")?))),
    ("var", |given| Some(call_var_with(given.tensor("x")?, given.arg("dim")?, given.arg("correction")?))),
    ("std", |given| Some(call_std(given.tensor("x")?, given.arg("dim")?))),
    ("std", |given| Some(call_std_with(given.tensor("x")?, given.arg("dim")?, given.arg("correction")?))),
    ("var_mean", |given| Some(call_var_mean(given.tensor("x")?, given.arg("dim")?))),
    ("var_mean", |given| Some(call_var_mean_with(given.tensor("x")?, given.arg("dim")?, given.arg("correction")?))),
    ("std_mean", |given| Some(call_std_mean(given.tensor("x")?, given.arg("dim")?))),
    ("std_mean", |given| Some(call_std_mean_with(given.tensor("x")?, given.arg("dim")?, given.arg("correction")?))),
    ("norm", |given| Some(call_norm(given.tensor("x")?, given.arg("dim")?))),
    ("vector_norm", |given| Some(call_vector_norm(given.tensor("x")?, given.arg("dim")?))),
    ("vector_norm", |given| Some(call_vector_norm_with(given.tensor("x")?, given.arg("dim")?, given.arg("ord")?))),
    ("nansum", |given| Some(call_nansum(given.tensor("x")?, given.arg("dim")?))),
    ("nansum", |given| Some(call_nansum_with(given.tensor("x")?, given.arg("dim")?, given.arg("dtype")?))),
    ("nanmean", |given| Some(call_nanmean(given.tensor("x")?, given.arg("dim")?))),
    ("nanmean", |given| Some(call_nanmean_with(given.tensor("x")?, given.arg("dim")?, given.arg("dtype")?))),
    ("count_nonzero", |given| Some(call_count_nonzero(given.tensor("x")?, given.arg("dim")?))),
    ("softmax", |given| Some(call_softmax(given.tensor("x")?, given.arg("dim")?))),
    ("softmax", |given| Some(call_softmax_with(given.tensor("x")?, given.arg("dim")?, given.arg("dtype")?))),
    ("log_softmax", |given| Some(call_log_softmax(given.tensor("x")?, given.arg("dim")?))),
    ("log_softmax", |given| Some(call_log_softmax_with(given.tensor("x")?, given.arg("dim")?, given.arg("dtype")?))),
    ("cumsum", |given| Some(call_cumsum(given.tensor("x")?, given.arg("dim")?))),
    ("cumsum", |given| Some(call_cumsum_with(given.tensor("x")?, given.arg("dim")?, given.arg("dtype")?))),
    ("cumsum", |given| Some(call_cumsum_(&mut given.tensor("x")?.clone(), given.arg("dim")?))),
    ("cumprod", |given| Some(call_cumprod(given.tensor("x")?, given.arg("dim")?))),
    ("cumprod", |given| Some(call_cumprod_with(given.tensor("x")?, given.arg("dim")?, given.arg("dtype")?))),
    ("cumprod", |given| Some(call_cumprod_(&mut given.tensor("x")?.clone(), given.arg("dim")?))),
    ("logcumsumexp", |given| Some(call_logcumsumexp(given.tensor("x")?, given.arg("dim")?))),
    ("max", |given| Some(call_max(given.tensor("x")?, given.arg("dim")?))),
    ("min", |given| Some(call_min(given.tensor("x")?, given.arg("dim")?))),
    ("median", |given| Some(call_median(given.tensor("x")?, given.arg("dim")?))),
    ("nanmedian", |given| Some(call_nanmedian(given.tensor("x")?, given.arg("dim")?))),
    ("mode", |given| Some(call_mode(given.tensor("x")?, given.arg("dim")?))),
    ("kthvalue", |given| Some(call_kthvalue(given.tensor("x")?, given.arg("k")?, given.arg("dim")?))),
    ("sort", |given| Some(call_sort(given.tensor("x")?, given.arg("dim")?))),
    ("sort", |given| Some(call_sort_with(given.tensor("x")?, given.arg("dim")?, given.arg("descending")?))),
    ("topk", |given| Some(call_topk(given.tensor("x")?, given.arg("k")?, given.arg("dim")?))),
    ("topk", |given| Some(call_topk_with(given.tensor("x")?, given.arg("k")?, given.arg("dim")?, given.arg("largest")?))),
    ("cummax", |given| Some(call_cummax(given.tensor("x")?, given.arg("dim")?))),
    ("cummin", |given| Some(call_cummin(given.tensor("x")?, given.arg("dim")?))),
    ("argmax", |given| Some(call_argmax(given.tensor("x")?, given.arg("dim")?))),
    ("argmin", |given| Some(call_argmin(given.tensor("x")?, given.arg("dim")?))),
    ("argsort", |given| Some(call_argsort(given.tensor("x")?, given.arg("dim")?))),
    ("argsort", |given| Some(call_argsort_with(given.tensor("x")?, given.arg("dim")?, given.arg("descending")?))),
    ("bucketize", |given| Some(call_bucketize(given.tensor("x")?, given.tensor("boundaries")?))),
    ("bucketize", |given| Some(call_bucketize_with(given.tensor("x")?, given.tensor("boundaries")?, given.arg("right")?))),
    ("searchsorted", |given| Some(call_searchsorted(given.tensor("x")?, given.tensor("values")?))),
    ("searchsorted", |given| Some(call_searchsorted_with(given.tensor("x")?, given.tensor("values")?, given.arg("right")?))),
    ("bincount", |given| Some(call_bincount(given.tensor("x")?))),
    ("bincount", |given| Some(call_bincount_with(given.tensor("x")?, given.tensor("weights")?, given.arg("minlength")?, given.text("name")?))),
    ("histc", |given| Some(call_histc(given.tensor("x")?))),
    ("histc", |given| Some(call_histc_with(given.tensor("x")?, given.arg("bins")?, given.arg("min")?, given.arg("max")?, given.text("name")?))),
    ("unique", |given| Some(call_unique(given.tensor("x")?))),
    ("unique", |given| Some(call_unique_with(given.tensor("x")?, given.text("name")?))),
    ("transpose", |given| Some(call_transpose(given.tensor("x")?, given.arg("dim0")?, given.arg("dim1")?))),
    ("transpose", |given| Some(call_transpose_(&mut given.tensor("x")?.clone(), given.arg("dim0")?, given.arg("dim1")?))),
    ("t", |given| Some(call_t(given.tensor("x")?))),
    ("t", |given| Some(call_t_(&mut given.tensor("x")?.clone()))),
    ("mt", |given| Some(call_mt(given.tensor("x")?))),
    ("permute", |given| Some(call_permute(given.tensor("x")?, given.arg("dims")?))),
    ("movedim", |given| Some(call_movedim(given.tensor("x")?, given.arg("source")?, given.arg("destination")?))),
    ("squeeze", |given| Some(call_squeeze(given.tensor("x")?, given.arg("dim")?))),
    ("squeeze", |given| Some(call_squeeze_(&mut given.tensor("x")?.clone(), given.arg("dim")?))),
    ("unsqueeze", |given| Some(call_unsqueeze(given.tensor("x")?, given.arg("dim")?))),
    ("unsqueeze", |given| Some(call_unsqueeze_with(given.tensor("x")?, given.arg("dim")?, given.text("name")?))),
    ("unsqueeze", |given| Some(call_unsqueeze_(&mut given.tensor("x")?.clone(), given.arg("dim")?))),
    ("expand", |given| Some(call_expand(given.tensor("x")?, &given.sizes("size")?))),
    ("view", |given| Some(call_view(given.tensor("x")?, &given.sizes("size")?))),
    ("reshape", |given| Some(call_reshape(given.tensor("x")?, &given.sizes("shape")?))),
    ("flip", |given| Some(call_flip(given.tensor("x")?, given.arg("dims")?))),
    ("repeat", |given| Some(call_repeat(given.tensor("x")?, &given.sizes("repeats")?))),
    ("contiguous", |given| Some(call_contiguous(given.tensor("x")?))),
    ("narrow", |given| Some(call_narrow(given.tensor("x")?, given.arg("dim")?, given.arg("start")?, given.arg("length")?))),
    ("slice", |given| Some(call_slice(given.tensor("x")?, given.arg("dim")?, given.arg("start")?, given.arg("end")?, given.arg("step")?))),
    ("select", |given| Some(call_select(given.tensor("x")?, given.arg("dim")?, given.arg("index")?))),
    ("diagonal", |given| Some(call_diagonal(given.tensor("x")?, given.arg("dim1")?, given.arg("dim2")?))),
    ("diagonal", |given| Some(call_diagonal_with(given.tensor("x")?, given.arg("dim1")?, given.arg("dim2")?, given.arg("offset")?, given.text("name")?))),
    ("unfold", |given| Some(call_unfold(given.tensor("x")?, given.arg("dimension")?, given.arg("size")?, given.arg("step")?))),
    ("unfold", |given| Some(call_unfold_with(given.tensor("x")?, given.arg("dimension")?, given.arg("size")?, given.arg("step")?, given.text("name")?))),
    ("index_select", |given| Some(call_index_select(given.tensor("x")?, given.tensor("index")?, given.arg("dim")?))),
    ("gather", |given| Some(call_gather(given.tensor("x")?, given.tensor("index")?, given.arg("dim")?))),
    ("scatter_add", |given| Some(call_scatter_add(given.tensor("x")?, given.tensor("index")?, given.tensor("source")?, given.arg("dim")?))),
    ("scatter_add", |given| Some(call_scatter_add_(&mut given.tensor("x")?.clone(), given.tensor("index")?, given.tensor("source")?, given.arg("dim")?))),
    ("scatter", |given| Some(call_scatter(given.tensor("x")?, given.tensor("index")?, given.tensor("source")?, given.arg("dim")?))),
    ("scatter", |given| Some(call_scatter_(&mut given.tensor("x")?.clone(), given.tensor("index")?, given.tensor("source")?, given.arg("dim")?))),
    ("scatter_reduce", |given| Some(call_scatter_reduce(given.tensor("x")?, given.tensor("index")?, given.tensor("source")?, given.arg("dim")?, given.arg("reduce")?))),
    ("scatter_reduce", |given| Some(call_scatter_reduce_with(given.tensor("x")?, given.tensor("index")?, given.tensor("source")?, given.arg("dim")?, given.arg("reduce")?, given.arg("include_self")?))),
    ("scatter_reduce", |given| Some(call_scatter_reduce_(&mut given.tensor("x")?.clone(), given.tensor("index")?, given.tensor("source")?, given.arg("dim")?, given.arg("reduce")?))),
    ("index_copy", |given| Some(call_index_copy(given.tensor("x")?, given.tensor("index")?, given.tensor("source")?, given.arg("dim")?))),
    ("index_copy", |given| Some(call_index_copy_(&mut given.tensor("x")?.clone(), given.tensor("index")?, given.tensor("source")?, given.arg("dim")?))),
    ("index_add", |given| Some(call_index_add(given.tensor("x")?, given.tensor("index")?, given.tensor("source")?, given.arg("dim")?))),
    ("index_add", |given| Some(call_index_add_(&mut given.tensor("x")?.clone(), given.tensor("index")?, given.tensor("source")?, given.arg("dim")?))),
    ("tril", |given| Some(call_tril(given.tensor("x")?))),
    ("tril", |given| Some(call_tril_with(given.tensor("x")?, given.arg("diagonal")?))),
    ("tril", |given| Some(call_tril_(&mut given.tensor("x")?.clone()))),
    ("triu", |given| Some(call_triu(given.tensor("x")?))),
    ("triu", |given| Some(call_triu_with(given.tensor("x")?, given.arg("diagonal")?))),
    ("triu", |given| Some(call_triu_(&mut given.tensor("x")?.clone()))),
    ("nonzero", |given| Some(call_nonzero(given.tensor("x")?))),
    ("nonzero", |given| Some(call_nonzero_with(given.tensor("x")?, &given.texts("names")?))),
    ("masked_select", |given| Some(call_masked_select(given.tensor("x")?, given.tensor("mask")?))),
    ("masked_select", |given| Some(call_masked_select_with(given.tensor("x")?, given.tensor("mask")?, given.text("name")?))),
    ("cat", |given| Some(call_cat(&given.tensors("tensors")?, given.arg("dim")?))),
    ("stack", |given| Some(call_stack(&given.tensors("tensors")?, given.arg("dim")?))),
    ("stack", |given| Some(call_stack_with(&given.tensors("tensors")?, given.arg("dim")?, given.text("name")?))),
    ("roll", |given| Some(call_roll(given.tensor("x")?, given.arg("shifts")?, given.arg("dims")?))),
    ("mm", |given| Some(call_mm(given.tensor("x")?, given.tensor("other")?))),
    ("mv", |given| Some(call_mv(given.tensor("x")?, given.tensor("other")?))),
    ("dot", |given| Some(call_dot(given.tensor("x")?, given.tensor("other")?))),
    ("bmm", |given| Some(call_bmm(given.tensor("x")?, given.tensor("other")?))),
    ("matmul", |given| Some(call_matmul(given.tensor("x")?, given.tensor("other")?))),
    ("addmm", |given| Some(call_addmm(given.tensor("x")?, given.tensor("a")?, given.tensor("b")?))),
    ("addmm", |given| Some(call_addmm_with(given.tensor("x")?, given.tensor("a")?, given.tensor("b")?, given.arg("beta")?, given.arg("alpha")?))),
    ("addmm", |given| Some(call_addmm_(&mut given.tensor("x")?.clone(), given.tensor("a")?, given.tensor("b")?))),
    ("addmv", |given| Some(call_addmv(given.tensor("x")?, given.tensor("a")?, given.tensor("b")?))),
    ("addmv", |given| Some(call_addmv_with(given.tensor("x")?, given.tensor("a")?, given.tensor("b")?, given.arg("beta")?, given.arg("alpha")?))),
    ("addmv", |given| Some(call_addmv_(&mut given.tensor("x")?.clone(), given.tensor("a")?, given.tensor("b")?))),
    ("baddbmm", |given| Some(call_baddbmm(given.tensor("x")?, given.tensor("a")?, given.tensor("b")?))),
    ("baddbmm", |given| Some(call_baddbmm_with(given.tensor("x")?, given.tensor("a")?, given.tensor("b")?, given.arg("beta")?, given.arg("alpha")?))),
    ("baddbmm", |given| Some(call_baddbmm_(&mut given.tensor("x")?.clone(), given.tensor("a")?, given.tensor("b")?))),
    ("addcmul", |given| Some(call_addcmul(given.tensor("x")?, given.tensor("a")?, given.tensor("b")?))),
    ("addcmul", |given| Some(call_addcmul_with(given.tensor("x")?, given.tensor("a")?, given.tensor("b")?, given.arg("value")?))),
    ("addcmul", |given| Some(call_addcmul_(&mut given.tensor("x")?.clone(), given.tensor("a")?, given.tensor("b")?))),
    ("addcdiv", |given| Some(call_addcdiv(given.tensor("x")?, given.tensor("a")?, given.tensor("b")?))),
    ("addcdiv", |given| Some(call_addcdiv_with(given.tensor("x")?, given.tensor("a")?, given.tensor("b")?, given.arg("value")?))),
    ("addcdiv", |given| Some(call_addcdiv_(&mut given.tensor("x")?.clone(), given.tensor("a")?, given.tensor("b")?))),
    ("outer", |given| Some(call_outer(given.tensor("x")?, given.tensor("other")?))),
    ("outer", |given| Some(call_outer_with(given.tensor("x")?, given.tensor("other")?, &given.texts("names")?))),
    ("tensordot", |given| Some(call_tensordot(given.tensor("x")?, given.tensor("other")?, given.arg("dims")?, given.arg("other_dims")?))),
    ("contract", |given| Some(call_contract(given.tensor("x")?, given.tensor("other")?, given.arg("dims")?))),
    ("qr", |given| Some(call_qr(given.tensor("x")?))),
    ("qr", |given| Some(call_qr_with(given.tensor("x")?, given.text("name")?))),
    ("solve_triangular", |given| Some(call_solve_triangular(given.tensor("x")?, given.tensor("other")?, given.arg("upper")?))),
    ("solve_triangular", |given| Some(call_solve_triangular_with(given.tensor("x")?, given.tensor("other")?, given.arg("upper")?, given.arg("left")?, given.arg("unitriangular")?))),
    ("layer_norm", |given| Some(call_layer_norm(given.tensor("x")?, given.arg("dims")?))),
    ("layer_norm", |given| Some(call_layer_norm_with(given.tensor("x")?, given.arg("dims")?, given.tensor("weight")?, given.tensor("bias")?, given.arg("eps")?))),
    ("class_cross_entropy", |given| Some(call_class_cross_entropy(given.tensor("x")?, given.tensor("target")?, given.arg("dim")?))),
    ("class_cross_entropy", |given| Some(call_class_cross_entropy_with(given.tensor("x")?, given.tensor("target")?, given.arg("dim")?, given.arg("ignore_index")?))),
    ("msort", |given| Some(call_msort(given.tensor("x")?))),
    ("diff", |given| Some(call_diff(given.tensor("x")?, given.arg("dim")?))),
    ("diff", |given| Some(call_diff_with(given.tensor("x")?, given.arg("dim")?, given.arg("n")?))),
    ("quantile", |given| Some(call_quantile(given.tensor("x")?, given.arg("q")?, given.arg("dim")?))),
    ("to", |given| Some(call_to(given.tensor("x")?, given.arg("dtype")?))),
    ("type_as", |given| Some(call_type_as(given.tensor("x")?, given.tensor("other")?))),
    ("bool", |given| Some(call_bool(given.tensor("x")?))),
    ("byte", |given| Some(call_byte(given.tensor("x")?))),
    ("char", |given| Some(call_char(given.tensor("x")?))),
    ("short", |given| Some(call_short(given.tensor("x")?))),
    ("int", |given| Some(call_int(given.tensor("x")?))),
    ("long", |given| Some(call_long(given.tensor("x")?))),
    ("half", |given| Some(call_half(given.tensor("x")?))),
    ("bfloat16", |given| Some(call_bfloat16(given.tensor("x")?))),
    ("float", |given| Some(call_float(given.tensor("x")?))),
    ("double", |given| Some(call_double(given.tensor("x")?))),
    ("einsum", |given| Some(call_einsum(given.text("equation")?, &given.tensors("operands")?))),
    ("einsum", |given| Some(call_einsum_with(given.text("equation")?, &given.tensors("operands")?, &given.texts("names")?))),
    ("index", |given| Some(call_index(given.tensor("x")?, &given.indices("indices")?))),
    ("index_fill", |given| Some(call_index_fill(given.tensor("x")?, given.tensor("index")?, given.tensor("value")?, given.arg("dim")?))),
    ("index_fill", |given| Some(call_index_fill_(&mut given.tensor("x")?.clone(), given.tensor("index")?, given.tensor("value")?, given.arg("dim")?))),
    ("masked_scatter", |given| Some(call_masked_scatter(given.tensor("x")?, given.tensor("mask")?, given.tensor("source")?))),
    ("masked_scatter", |given| Some(call_masked_scatter_(&mut given.tensor("x")?.clone(), given.tensor("mask")?, given.tensor("source")?))),
    ("take", |given| Some(call_take(given.tensor("x")?, given.tensor("index")?))),
    ("put", |given| Some(call_put(given.tensor("x")?, given.tensor("index")?, given.tensor("source")?))),
    ("put", |given| Some(call_put_with(given.tensor("x")?, given.tensor("index")?, given.tensor("source")?, given.arg("accumulate")?))),
    ("put", |given| Some(call_put_(&mut given.tensor("x")?.clone(), given.tensor("index")?, given.tensor("source")?))),
    ("one_hot", |given| Some(call_one_hot(given.tensor("x")?))),
    ("one_hot", |given| Some(call_one_hot_with(given.tensor("x")?, given.arg("num_classes")?, given.text("name")?))),
    ("take_along_dim", |given| Some(call_take_along_dim(given.tensor("x")?, given.tensor("indices")?, given.arg("dim")?))),
    ("index_put", |given| Some(call_index_put(given.tensor("x")?, &given.indices("indices")?, given.tensor("values")?))),
    ("index_put", |given| Some(call_index_put_with(given.tensor("x")?, &given.indices("indices")?, given.tensor("values")?, given.arg("accumulate")?))),
    ("index_put", |given| Some(call_index_put_(&mut given.tensor("x")?.clone(), &given.indices("indices")?, given.tensor("values")?))),
    ("broadcast_tensors", |given| Some(call_broadcast_tensors(&given.tensors("tensors")?))),
    ("hstack", |given| Some(call_hstack(&given.tensors("tensors")?))),
    ("vstack", |given| Some(call_vstack(&given.tensors("tensors")?))),
    ("dstack", |given| Some(call_dstack(&given.tensors("tensors")?))),
    ("column_stack", |given| Some(call_column_stack(&given.tensors("tensors")?))),
    ("block_diag", |given| Some(call_block_diag(&given.tensors("tensors")?))),
    ("block_diag", |given| Some(call_block_diag_with(&given.tensors("tensors")?, &given.texts("names")?))),
    ("meshgrid", |given| Some(call_meshgrid(&given.tensors("tensors")?))),
    ("meshgrid", |given| Some(call_meshgrid_with(&given.tensors("tensors")?, given.arg("indexing")?))),
    ("kron", |given| Some(call_kron(given.tensor("x")?, given.tensor("other")?))),
    ("kron", |given| Some(call_kron_with(given.tensor("x")?, given.tensor("other")?, &given.texts("names")?))),
    ("zeros_like", |given| Some(call_zeros_like(given.tensor("x")?))),
    ("zeros_like", |given| Some(call_zeros_like_with(given.tensor("x")?, given.arg("dtype")?))),
    ("ones_like", |given| Some(call_ones_like(given.tensor("x")?))),
    ("ones_like", |given| Some(call_ones_like_with(given.tensor("x")?, given.arg("dtype")?))),
    ("empty_like", |given| Some(call_empty_like(given.tensor("x")?))),
    ("empty_like", |given| Some(call_empty_like_with(given.tensor("x")?, given.arg("dtype")?))),
    ("full_like", |given| Some(call_full_like(given.tensor("x")?, given.arg("fill_value")?))),
    ("full_like", |given| Some(call_full_like_with(given.tensor("x")?, given.arg("fill_value")?, given.arg("dtype")?))),
    ("rand_like", |given| Some(call_rand_like(given.tensor("x")?))),
    ("rand_like", |given| Some(call_rand_like_with(given.tensor("x")?, given.arg("dtype")?))),
    ("randn_like", |given| Some(call_randn_like(given.tensor("x")?))),
    ("randn_like", |given| Some(call_randn_like_with(given.tensor("x")?, given.arg("dtype")?))),
    ("new_zeros", |given| Some(call_new_zeros(given.tensor("x")?, &given.sizes("size")?))),
    ("new_zeros", |given| Some(call_new_zeros_with(given.tensor("x")?, &given.sizes("size")?, given.arg("dtype")?))),
    ("new_ones", |given| Some(call_new_ones(given.tensor("x")?, &given.sizes("size")?))),
    ("new_ones", |given| Some(call_new_ones_with(given.tensor("x")?, &given.sizes("size")?, given.arg("dtype")?))),
    ("new_full", |given| Some(call_new_full(given.tensor("x")?, &given.sizes("size")?, given.arg("fill_value")?))),
    ("new_full", |given| Some(call_new_full_with(given.tensor("x")?, &given.sizes("size")?, given.arg("fill_value")?, given.arg("dtype")?))),
    ("split", |given| Some(call_split(given.tensor("x")?, given.arg("split_size")?, given.arg("dim")?))),
    ("chunk", |given| Some(call_chunk(given.tensor("x")?, given.arg("chunks")?, given.arg("dim")?))),
    ("tensor_split", |given| Some(call_tensor_split(given.tensor("x")?, given.arg("indices_or_sections")?, given.arg("dim")?))),
    ("unbind", |given| Some(call_unbind(given.tensor("x")?, given.arg("dim")?))),
    ("isclose", |given| Some(call_isclose(given.tensor("x")?, given.tensor("other")?))),
    ("isclose", |given| Some(call_isclose_with(given.tensor("x")?, given.tensor("other")?, given.arg("rtol")?, given.arg("atol")?, given.arg("equal_nan")?))),
    ("isposinf", |given| Some(call_isposinf(given.tensor("x")?))),
    ("isneginf", |given| Some(call_isneginf(given.tensor("x")?))),
    ("nan_to_num", |given| Some(call_nan_to_num(given.tensor("x")?))),
    ("nan_to_num", |given| Some(call_nan_to_num_with(given.tensor("x")?, given.arg("nan")?, given.arg("posinf")?, given.arg("neginf")?))),
    ("nan_to_num", |given| Some(call_nan_to_num_(&mut given.tensor("x")?.clone()))),
    ("float_power", |given| Some(call_float_power(given.tensor("x")?, given.tensor("exponent")?))),
    ("ldexp", |given| Some(call_ldexp(given.tensor("x")?, given.tensor("other")?))),
    ("nextafter", |given| Some(call_nextafter(given.tensor("x")?, given.tensor("other")?))),
    ("addr", |given| Some(call_addr(given.tensor("x")?, given.tensor("a")?, given.tensor("b")?))),
    ("addr", |given| Some(call_addr_with(given.tensor("x")?, given.tensor("a")?, given.tensor("b")?, given.arg("beta")?, given.arg("alpha")?))),
    ("addbmm", |given| Some(call_addbmm(given.tensor("x")?, given.tensor("a")?, given.tensor("b")?))),
    ("addbmm", |given| Some(call_addbmm_with(given.tensor("x")?, given.tensor("a")?, given.tensor("b")?, given.arg("beta")?, given.arg("alpha")?))),
    ("vdot", |given| Some(call_vdot(given.tensor("x")?, given.tensor("other")?))),
    ("inner", |given| Some(call_inner(given.tensor("x")?, given.tensor("other")?))),
    ("cross", |given| Some(call_cross(given.tensor("x")?, given.tensor("other")?, given.arg("dim")?))),
    ("dist", |given| Some(call_dist(given.tensor("x")?, given.tensor("other")?))),
    ("dist", |given| Some(call_dist_with(given.tensor("x")?, given.tensor("other")?, given.arg("p")?))),
    ("uniform_", |given| Some(call_uniform_(&mut given.tensor("x")?.clone(), given.arg("from")?, given.arg("to")?))),
    ("normal_", |given| Some(call_normal_(&mut given.tensor("x")?.clone(), given.arg("mean")?, given.arg("std")?))),
    ("log_normal_", |given| Some(call_log_normal_(&mut given.tensor("x")?.clone(), given.arg("mean")?, given.arg("std")?))),
    ("exponential_", |given| Some(call_exponential_(&mut given.tensor("x")?.clone(), given.arg("lambd")?))),
    ("cauchy_", |given| Some(call_cauchy_(&mut given.tensor("x")?.clone(), given.arg("median")?, given.arg("sigma")?))),
    ("geometric_", |given| Some(call_geometric_(&mut given.tensor("x")?.clone(), given.arg("p")?))),
    ("bernoulli_", |given| Some(call_bernoulli_(&mut given.tensor("x")?.clone(), given.tensor("p")?))),
    ("bernoulli", |given| Some(call_bernoulli(given.tensor("x")?))),
    ("normal", |given| Some(call_normal(given.tensor("mean")?, given.tensor("std")?))),
    ("diag", |given| Some(call_diag(given.tensor("x")?))),
    ("diag", |given| Some(call_diag_with(given.tensor("x")?, given.arg("diagonal")?, &given.texts("names")?))),
    ("diag_embed", |given| Some(call_diag_embed(given.tensor("x")?))),
    ("diag_embed", |given| Some(call_diag_embed_with(given.tensor("x")?, given.arg("offset")?, given.arg("dim1")?, given.arg("dim2")?, &given.texts("names")?))),
    ("rot90", |given| Some(call_rot90(given.tensor("x")?, given.arg("k")?, given.arg("dims")?))),
    ("trace", |given| Some(call_trace(given.tensor("x")?))),
    ("repeat_interleave", |given| Some(call_repeat_interleave(given.tensor("x")?, given.tensor("repeats")?, given.arg("dim")?))),
    ("tile", |given| Some(call_tile(given.tensor("x")?, &given.sizes("dims")?))),
    ("ravel", |given| Some(call_ravel(given.tensor("x")?))),
    ("ravel", |given| Some(call_ravel_with(given.tensor("x")?, given.text("name")?))),
    ("fliplr", |given| Some(call_fliplr(given.tensor("x")?))),
    ("flipud", |given| Some(call_flipud(given.tensor("x")?))),
    ("swapaxes", |given| Some(call_swapaxes(given.tensor("x")?, given.arg("axis0")?, given.arg("axis1")?))),
    ("expand_as", |given| Some(call_expand_as(given.tensor("x")?, given.tensor("other")?))),
    ("view_as", |given| Some(call_view_as(given.tensor("x")?, given.tensor("other")?))),
    ("reshape_as", |given| Some(call_reshape_as(given.tensor("x")?, given.tensor("other")?))),
    ("copy_", |given| Some(call_copy_(&mut given.tensor("x")?.clone(), given.tensor("src")?))),
    ("fill_", |given| Some(call_fill_(&mut given.tensor("x")?.clone(), given.tensor("value")?))),
    ("zero_", |given| Some(call_zero_(&mut given.tensor("x")?.clone()))),
    ("resize_", |given| Some(call_resize_(&mut given.tensor("x")?.clone(), &given.sizes("size")?))),
    ("resize_as_", |given| Some(call_resize_as_(&mut given.tensor("x")?.clone(), given.tensor("other")?))),
    ("nn.gelu", |given| Some(call_nn_gelu(given.tensor("x")?))),
    ("nn.gelu", |given| Some(call_nn_gelu_with(given.tensor("x")?, given.arg("approximate")?))),
    ("nn.conv1d", |given| Some(call_nn_conv1d(given.tensor("x")?, given.tensor("weight")?))),
    ("nn.conv1d", |given| Some(call_nn_conv1d_with(given.tensor("x")?, given.tensor("weight")?, given.tensor("bias")?, given.arg("stride")?, given.arg("padding")?, given.arg("dilation")?, given.arg("groups")?))),
    ("nn.dropout", |given| Some(call_nn_dropout(given.tensor("x")?, given.arg("p")?))),
    ("nn.dropout", |given| Some(call_nn_dropout_with(given.tensor("x")?, given.arg("p")?, given.arg("training")?))),
    ("nn.linear", |given| Some(call_nn_linear(given.tensor("x")?, given.tensor("weight")?))),
    ("nn.linear", |given| Some(call_nn_linear_with(given.tensor("x")?, given.tensor("weight")?, given.tensor("bias")?))),
    ("nn.mse_loss", |given| Some(call_nn_mse_loss(given.tensor("x")?, given.tensor("target")?))),
    ("nn.mse_loss", |given| Some(call_nn_mse_loss_with(given.tensor("x")?, given.tensor("target")?, given.arg("reduction")?))),
    ("nn.cross_entropy", |given| Some(call_nn_cross_entropy(given.tensor("logits")?, given.tensor("target")?, given.arg("class_dim")?))),
    ("nn.cross_entropy", |given| Some(call_nn_cross_entropy_with(given.tensor("logits")?, given.tensor("target")?, given.arg("class_dim")?, given.tensor("weight")?, given.arg("ignore_index")?, given.arg("label_smoothing")?, given.arg("reduction")?))),
    ("nn.nll_loss", |given| Some(call_nn_nll_loss(given.tensor("log_probabilities")?, given.tensor("target")?, given.arg("class_dim")?))),
    ("nn.nll_loss", |given| Some(call_nn_nll_loss_with(given.tensor("log_probabilities")?, given.tensor("target")?, given.arg("class_dim")?, given.tensor("weight")?, given.arg("ignore_index")?, given.arg("reduction")?))),
];
