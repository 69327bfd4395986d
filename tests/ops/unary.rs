//! Elementwise ops on one tensor.

use crate::plain;
use namegrad::prelude::*;
use namegrad_tests::values::{assert_near, f64s, gradient, gradients};
use std::f64::consts::PI;

pointwise! {
//  op                          [dtypes]         reference                     where it has no derivative
    abs (x: -3.0..3.0)     [float int]      x.abs(), kinks x;
    neg (x: -3.0..3.0)     [float int]      -x;
    positive (x: -3.0..3.0)     [float int]      x;
    sign (x: -3.0..3.0)   [float int bool] plain::sign(x), kinks x;
    sgn (x: -3.0..3.0)     [float int bool] plain::sign(x), kinks x;
    floor (x: -3.0..3.0) [float int]      x.floor(), kinks x - x.round();
    ceil (x: -3.0..3.0)   [float int]      x.ceil(), kinks x - x.round();
    round (x: -3.0..3.0; decimals 0) [float int] x.round_ties_even(), kinks (x - 0.5) - (x - 0.5).round();
    trunc (x: -3.0..3.0) [float int]      x.trunc(), kinks x - x.round();
    frac (x: -3.0..3.0)   [float only]     x - x.trunc(), kinks x - x.round();
    square (x: -3.0..3.0) [float int counts] x * x;
    sqrt (x: 0.1..5.0)    [float]          x.sqrt();
    rsqrt (x: 0.1..5.0)  [float]          1.0 / x.sqrt();
    reciprocal (x: -3.0..3.0) [float] 1.0 / x, kinks x;
    exp (x: -3.0..3.0)     [float]          x.exp();
    exp2 (x: -3.0..3.0)   [float]          libm::exp2(x);
    expm1 (x: -3.0..3.0) [float]          x.exp_m1();
    log (x: 0.1..5.0)      [float]          x.ln();
    log2 (x: 0.1..5.0)    [float]          x.log2();
    log10 (x: 0.1..5.0)  [float]          x.log10();
    log1p (x: -0.9..5.0) [float]          x.ln_1p();
    sin (x: -3.0..3.0)     [float]          x.sin();
    cos (x: -3.0..3.0)     [float]          x.cos();
    tan (x: -1.3..1.3)     [float]          x.tan();
    asin (x: -0.9..0.9)   [float]          x.asin();
    acos (x: -0.9..0.9)   [float]          x.acos();
    atan (x: -3.0..3.0)   [float]          x.atan();
    sinh (x: -3.0..3.0)   [float]          x.sinh();
    cosh (x: -3.0..3.0)   [float]          x.cosh();
    tanh (x: -3.0..3.0)   [float]          x.tanh();
    asinh (x: -3.0..3.0) [float]          libm::asinh(x);
    acosh (x: 1.2..5.0)  [float]          libm::acosh(x);
    atanh (x: -0.9..0.9) [float]          libm::atanh(x);
    // The gradient at 0 has its own test.
    sinc (x: -3.0..3.0)   [float]          plain::sinc(x), kinks x, scale 1.0;
    deg2rad (x: -3.0..3.0) [float]      x * (PI / 180.0);
    rad2deg (x: -3.0..3.0) [float]      x * (180.0 / PI);
    sigmoid (x: -3.0..3.0) [float]      1.0 / (1.0 + (-x).exp());
    logit (x: 0.1..0.9)  [float]          (x / (1.0 - x)).ln(), scale 1.0;
    relu (x: -3.0..3.0)   [float int]      plain::larger(x, 0.0), kinks x;
    gelu (x: -3.0..3.0)   [float only]          x * 0.5 * libm::erfc(-x / 2f64.sqrt());
    selu (x: -3.0..3.0) [float only] 1.0507009873554805 * if x > 0.0 { x } else { 1.6732632423543772 * x.exp_m1() }, kinks x;
    mish (x: -3.0..3.0) [float only] x * x.exp().ln_1p().tanh();
    hardswish (x: -5.0..5.0) [float only] x * plain::smaller(plain::larger(x + 3.0, 0.0), 6.0) / 6.0, kinks (x + 3.0) * (x - 3.0);
    hardsigmoid (x: -5.0..5.0) [float only] plain::smaller(plain::larger(x + 3.0, 0.0), 6.0) / 6.0, kinks (x + 3.0) * (x - 3.0);
    logsigmoid (x: -3.0..3.0) [float only] plain::smaller(x, 0.0) - (-x.abs()).exp().ln_1p();
    silu (x: -3.0..3.0)   [float only]          x / (1.0 + (-x).exp());
    erf (x: -2.0..2.0)     [float]          libm::erf(x);
    erfc (x: -2.0..2.0)   [float]          libm::erfc(x);
    erfinv (x: -0.9..0.9) [float]        plain::erfinv(x);
    lgamma (x: 0.5..4.0) [float]         libm::lgamma(x), scale 1.0; // it crosses 0 at 1 and 2
    digamma (x: 0.5..4.0) [float]       plain::digamma(x), scale 1.0; // it crosses 0 near 1.46
    i0 (x: -3.0..3.0)       [float]          plain::i0(x);
    i0e (x: -3.0..3.0)          [float]          plain::i0e(x), kinks x;
    i1 (x: -3.0..3.0)           [float]          plain::i1(x);
    i1e (x: -3.0..3.0)          [float]          plain::i1e(x), kinks x;
    erfcx (x: -2.0..3.0)        [float]          plain::erfcx(x);
    ndtr (x: -3.0..3.0)         [float]          0.5 * libm::erfc(-x / 2f64.sqrt());
    ndtri (x: 0.1..0.9)         [float]          plain::ndtri(x), scale 1.0; // it crosses 0 at one half
    log_ndtr (x: -3.0..3.0)     [float]          plain::log_ndtr(x);
    entr (x: 0.1..3.0)          [float]          if x < 0.0 { f64::NEG_INFINITY } else if x == 0.0 { 0.0 } else { -x * x.ln() };
    bitwise_not (x: -3.0..3.0) [int bits] !(x as i64) as f64;
    logical_not (x: -3.0..3.0) [float int bool test] (x == 0.0).into();
    signbit (x: -3.0..3.0)      [float int bool test] x.is_sign_negative().into();
    isnan (x: -3.0..3.0)        [float int bool test] x.is_nan().into();
    isinf (x: -3.0..3.0)        [float int bool test] x.is_infinite().into();
    isfinite (x: -3.0..3.0)     [float int bool test] x.is_finite().into();
    elu (x: -3.0..3.0; alpha 1.5) [float only]   if x > 0.0 { x } else { alpha * x.exp_m1() }, kinks x;
    leaky_relu (x: -3.0..3.0; negative_slope 0.2) [float only] if x > 0.0 { x } else { negative_slope * x }, kinks x;
    softplus (x: -3.0..3.0; beta 2.0, threshold 3.0) [float only] if x * beta > threshold { x } else { (x * beta).exp().ln_1p() / beta }, kinks x * beta - threshold;
    hardtanh (x: -3.0..3.0; min_val -1, max_val 2) [float int] plain::smaller(plain::larger(x, min_val), max_val), kinks (x - min_val) * (x - max_val);
    threshold (x: -3.0..3.0; threshold 1, value 3) [float int] if x <= threshold { value } else { x }, kinks x - threshold;
    hardshrink (x: -3.0..3.0; lambd 0.75) [float only] if x.abs() <= lambd { 0.0 } else { x }, kinks x.abs() - lambd;
    celu (x: -3.0..3.0; alpha 0.5) [float only]  if x > 0.0 { x } else { alpha * (x / alpha).exp_m1() }, kinks x;
}

/// Ops with arguments: several orders, several decimals.
pub(crate) mod parametric {
    use crate::check::{near_one, numbers};
    use crate::plain;

    cases! {
        round {
            (x: numbers("N=3", [1.23, -2.36, 3.51]); 1) => "N=3" numeric, |i| (10.0 * x.at(i)).round_ties_even() / 10.0, scale 1.0;
            (x: numbers("N=3", [123.0, -236.0, 51.0]); -1) => "N=3" floats, |i| 10.0 * (x.at(i) / 10.0).round_ties_even();
        }
        polygamma {
            (x: near_one("A=2 B=3"); 0) => "A=2 B=3" to_float, |i| plain::polygamma(0, x.at(i)), scale 1.0;
            (x: near_one("A=2 ?=3"); 1) => "A=2 ?=3" to_float, |i| plain::polygamma(1, x.at(i));
            (x: near_one("A=4"); 2) => "A=4" to_float, |i| plain::polygamma(2, x.at(i));
            (x: near_one(""); 3) => "" to_float, |i| plain::polygamma(3, x.at(i));
        }
    }
}

#[test]
fn the_angle_of_no_direction_had_a_gradient_of_nan() -> Result<()> {
    assert_eq!(gradients(|a, b| a.atan2(b), 0.0, 0.0)?, [0.0, 0.0]);
    Ok(())
}

#[test]
fn special_functions_were_wrong_far_out_and_beside_poles() -> Result<()> {
    assert_near(&f64s([-688051.7, -1e8])?.erfcx()?.to_vec()?, &[f64::INFINITY; 2]);
    assert_near(&gradient(&f64s([1e8])?, |x| x.log_ndtr())?, &[0.0]);
    assert!(f64s([-1e5, 0.999])?.acosh()?.isnan()?.all(..)?.item::<bool>()?);
    // The second derivative of the series of sinc is -π²/3 at 0.
    let slope = -std::f64::consts::PI.powi(2) / 3.0;
    assert_near(
        &gradient(&f64s([0.0, 1e-300, -1e-9])?, |x| x.sinc())?,
        &[0.0, slope * 1e-300, slope * -1e-9],
    );
    assert_near(&f64s([-1e-10, f64::NEG_INFINITY])?.polygamma(2)?.to_vec()?, &[2e30, f64::NEG_INFINITY]);
    assert_near(&gradient(&f64s([1e3, -1e3])?, |x| x.i1())?, &[f64::INFINITY; 2]);
    Ok(())
}

#[test]
fn hardtanh_and_celu_took_arguments_without_a_meaning() -> Result<()> {
    let mut x = Tensor::new([-2.0, 0.5])?;
    let crossed = || HardtanhOptions::new().min_val(1).max_val(-1);
    let flat = || CeluOptions::new().alpha(0.0);
    for (error, text) in [
        (x.hardtanh_with(crossed()).unwrap_err(), "min_val cannot be greater than max_val"),
        (x.hardtanh_with_(crossed()).map(drop).unwrap_err(), "min_val cannot be greater than max_val"),
        (x.celu_with(flat()).unwrap_err(), "alpha cannot be 0 for CELU"),
        (x.celu_with_(flat()).map(drop).unwrap_err(), "alpha cannot be 0 for CELU"),
    ] {
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
        assert!(error.message().contains(text), "{error}");
    }
    assert_eq!(x.hardtanh_with(HardtanhOptions::new().min_val(1).max_val(1))?.to_vec::<f32>()?, [1.0, 1.0]);
    Ok(())
}

/// Slopes of half types are computed in `f32` from `x`, where a rounded result or a square would lose them.
#[test]
fn slopes_of_half_types_and_edges() -> Result<()> {
    type Function = fn(&Tensor) -> Result<Tensor>;
    let slope = |f: Function, x: f64, dtype| -> Result<f64> {
        let x = Tensor::new([x])?.to(dtype)?.requiring_grad()?;
        f(&x)?.sum(..)?.backward()?;
        x.grad().expect("it was computed").item()
    };
    let near = |a: f64, b: f64| (a - b).abs() <= 2e-3 * b.abs();
    let sinc = slope(|x| x.sinc(), 100.5, DType::F16)?;
    let expected = -1.0 / (std::f64::consts::PI * 100.5 * 100.5); // the cosine is 0, the sine 1
    assert!(near(sinc, expected), "{sinc} is not {expected}");
    assert!(near(slope(|x| x.i1e(), 6e-8, DType::F16)?, 0.5));
    assert!(near(slope(|x| x.i1(), 1e-45, DType::F32)?, 0.5));
    assert_eq!(slope(|x| x.logit(), -0.0, DType::F64)?, f64::INFINITY);
    assert!(slope(|x| x.digamma(), f64::NEG_INFINITY, DType::F64)?.is_nan());
    Ok(())
}
