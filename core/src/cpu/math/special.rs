//! Rare functions related to `sin` and the normal distribution, in `f64`, one number at a time.

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

use super::erf;

/// `sin(πx) / (πx)`, 1 at 0 and NaN at infinity. `x` is reduced before the multiplication by `π`.
pub(super) fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let nearest = x.round_ties_even();
    let s = libm::sin(PI * (x - nearest));
    (if nearest % 2.0 == 0.0 { s } else { -s }) / (PI * x)
}

/// `exp(x²) erfc(x)`.
pub(super) fn erfcx(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 * erf::exp_square(x) - erfcx(-x);
    }
    if x <= 27.0 {
        return erf::erfcx(x);
    }
    // the asymptotic series, NIST Handbook of Mathematical Functions, 7.12.1
    let s = 0.5 / (x * x);
    let series = [13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0].iter().fold(1.0, |sum, odd| 1.0 - odd * s * sum);
    series / (PI.sqrt() * x)
}

/// The inverse of `erf`.
pub(super) fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if a == 1.0 {
        return f64::INFINITY.copysign(x);
    }
    if a > 0.5 {
        return if a < 1.0 { erfc_inv(1.0 - a).copysign(x) } else { f64::NAN };
    }
    // Halley's method: (erf y)'' = -2y (erf y)'
    let slope = 2.0 / PI.sqrt();
    let mut y = x / slope;
    for _ in 0..4 {
        let newton = (erf::erf(y) - x) / (slope * libm::exp(-y * y));
        y -= newton / (1.0 + y * newton);
    }
    y
}

/// The inverse of `erfc` on `(0, 1/2]`: Newton's method for `ln erfc(y) = ln erfcx(y) - y²`, which is almost
/// a parabola.
fn erfc_inv(q: f64) -> f64 {
    let ln_q = libm::log(q);
    let mut y = (-ln_q).sqrt();
    for _ in 0..8 {
        let scaled = erfcx(y);
        let step = (libm::log(scaled) - y * y - ln_q) * (PI.sqrt() / 2.0) * scaled;
        y += step;
        if step.abs() < 1e-16 * y {
            break;
        }
    }
    y
}

/// The inverse of the normal distribution function.
pub(super) fn ndtri(p: f64) -> f64 {
    if p > 0.25 && p < 0.75 {
        return SQRT_2 * erfinv(2.0 * p - 1.0);
    }
    if p == 0.0 || p == 1.0 {
        return f64::INFINITY.copysign(p - 0.5);
    }
    if p > 0.0 && p < 1.0 {
        let tail = if p < 0.5 { p } else { 1.0 - p };
        return (SQRT_2 * erfc_inv(2.0 * tail)).copysign(p - 0.5);
    }
    f64::NAN
}

/// `ln Φ(x)`.
pub(super) fn log_ndtr(x: f64) -> f64 {
    let y = x * FRAC_1_SQRT_2;
    if x < -1.0 { libm::log(0.5 * erfcx(-y)) - y * y } else { libm::log1p(-erf::ndtr(-x)) }
}
