//! Ops on one tensor by element.

use crate::plain;
use std::f64::consts::PI;

pointwise! {
//  op                          [dtypes]         reference                     where it has no derivative
    abs abs_ (x: -3.0..3.0)     [float int]      x.abs(), kinks x;
    neg neg_ (x: -3.0..3.0)     [float int]      -x;
    positive (x: -3.0..3.0)     [float int]      x;
    sign sign_ (x: -3.0..3.0)   [float int bool] plain::sign(x), kinks x;
    sgn sgn_ (x: -3.0..3.0)     [float int bool] plain::sign(x), kinks x;
    floor floor_ (x: -3.0..3.0) [float int]      x.floor(), kinks x - x.round();
    ceil ceil_ (x: -3.0..3.0)   [float int]      x.ceil(), kinks x - x.round();
    round round_ (x: -3.0..3.0) [float int]      x.round_ties_even(), kinks (x - 0.5) - (x - 0.5).round();
    trunc trunc_ (x: -3.0..3.0) [float int]      x.trunc(), kinks x - x.round();
    frac frac_ (x: -3.0..3.0)   [float only]     x - x.trunc(), kinks x - x.round();
    square square_ (x: -3.0..3.0) [float int counts] x * x;
    sqrt sqrt_ (x: 0.1..5.0)    [float]          x.sqrt();
    rsqrt rsqrt_ (x: 0.1..5.0)  [float]          1.0 / x.sqrt();
    reciprocal reciprocal_ (x: -3.0..3.0) [float] 1.0 / x, kinks x;
    exp exp_ (x: -3.0..3.0)     [float]          x.exp();
    exp2 exp2_ (x: -3.0..3.0)   [float]          libm::exp2(x);
    expm1 expm1_ (x: -3.0..3.0) [float]          x.exp_m1();
    log log_ (x: 0.1..5.0)      [float]          x.ln();
    log2 log2_ (x: 0.1..5.0)    [float]          x.log2();
    log10 log10_ (x: 0.1..5.0)  [float]          x.log10();
    log1p log1p_ (x: -0.9..5.0) [float]          x.ln_1p();
    sin sin_ (x: -3.0..3.0)     [float]          x.sin();
    cos cos_ (x: -3.0..3.0)     [float]          x.cos();
    tan tan_ (x: -1.3..1.3)     [float]          x.tan();
    asin asin_ (x: -0.9..0.9)   [float]          x.asin();
    acos acos_ (x: -0.9..0.9)   [float]          x.acos();
    atan atan_ (x: -3.0..3.0)   [float]          x.atan();
    sinh sinh_ (x: -3.0..3.0)   [float]          x.sinh();
    cosh cosh_ (x: -3.0..3.0)   [float]          x.cosh();
    tanh tanh_ (x: -3.0..3.0)   [float]          x.tanh();
    asinh asinh_ (x: -3.0..3.0) [float]          libm::asinh(x);
    acosh acosh_ (x: 1.2..5.0)  [float]          libm::acosh(x);
    atanh atanh_ (x: -0.9..0.9) [float]          libm::atanh(x);
    sinc sinc_ (x: -3.0..3.0)   [float]          plain::sinc(x), kinks x, scale 1.0; // the gradient at 0 has a test of its own
    deg2rad deg2rad_ (x: -3.0..3.0) [float]      x * (PI / 180.0);
    rad2deg rad2deg_ (x: -3.0..3.0) [float]      x * (180.0 / PI);
    sigmoid sigmoid_ (x: -3.0..3.0) [float]      1.0 / (1.0 + (-x).exp());
    logit logit_ (x: 0.1..0.9)  [float]          (x / (1.0 - x)).ln(), scale 1.0;
    relu relu_ (x: -3.0..3.0)   [float int]      plain::larger(x, 0.0), kinks x;
    gelu gelu_ (x: -3.0..3.0)   [float]          x * 0.5 * libm::erfc(-x / 2f64.sqrt());
    silu silu_ (x: -3.0..3.0)   [float]          x / (1.0 + (-x).exp());
    erf erf_ (x: -2.0..2.0)     [float]          libm::erf(x);
    erfc erfc_ (x: -2.0..2.0)   [float]          libm::erfc(x);
    erfinv erfinv_ (x: -0.9..0.9) [float]        plain::erfinv(x);
    lgamma lgamma_ (x: 0.5..4.0) [float]         libm::lgamma(x), scale 1.0; // it crosses 0 at 1 and 2
    digamma digamma_ (x: 0.5..4.0) [float]       plain::digamma(x), scale 1.0; // it crosses 0 near 1.46
    i0 i0_ (x: -3.0..3.0)       [float]          plain::i0(x);
    i0e (x: -3.0..3.0)          [float]          plain::i0e(x), kinks x;
    i1 (x: -3.0..3.0)           [float]          plain::i1(x);
    i1e (x: -3.0..3.0)          [float]          plain::i1e(x), kinks x;
    erfcx (x: -2.0..3.0)        [float]          plain::erfcx(x);
    ndtr (x: -3.0..3.0)         [float]          0.5 * libm::erfc(-x / 2f64.sqrt());
    ndtri (x: 0.1..0.9)         [float]          plain::ndtri(x), scale 1.0; // it crosses 0 at one half
    log_ndtr (x: -3.0..3.0)     [float]          plain::log_ndtr(x);
    entr (x: 0.1..3.0)          [float]          if x < 0.0 { f64::NEG_INFINITY } else if x == 0.0 { 0.0 } else { -x * x.ln() };
    bitwise_not bitwise_not_ (x: -3.0..3.0) [int bits] !(x as i64) as f64;
    logical_not logical_not_ (x: -3.0..3.0) [float int bool test] (x == 0.0).into();
    signbit (x: -3.0..3.0)      [float int bool test] x.is_sign_negative().into();
    isnan (x: -3.0..3.0)        [float int bool test] x.is_nan().into();
    isinf (x: -3.0..3.0)        [float int bool test] x.is_infinite().into();
    isfinite (x: -3.0..3.0)     [float int bool test] x.is_finite().into();
}

/// Those that take another argument.
pub(crate) mod parametric {
    use crate::check::near_one;
    use crate::plain;

    cases! {
        polygamma polygamma_ {
            (x: near_one("A=2 B=3"); 0) => "A=2 B=3" to_float, |i| plain::polygamma(0, x.at(i)), scale 1.0;
            (x: near_one("A=2 ?=3"); 1) => "A=2 ?=3" to_float, |i| plain::polygamma(1, x.at(i));
            (x: near_one("A=4"); 2) => "A=4" to_float, |i| plain::polygamma(2, x.at(i));
            (x: near_one(""); 3) => "" to_float, |i| plain::polygamma(3, x.at(i));
        }
    }
}
