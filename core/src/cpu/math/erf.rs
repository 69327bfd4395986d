//! The error function and the normal distribution, without branches.
//!
//! Beyond 1, everything comes from `erfcx(x) = exp(x²) erfc(x)`, which is smooth and positive, times
//! `exp(-x²)`.

use std::f64::consts::{FRAC_1_SQRT_2, LOG2_E, SQRT_2};

use super::elementary::{exp_sum, exp2_within};
use super::lane::{Lane, polynomial};

/// `erfcx(x)` for `0 ≤ x ≤ erfc_zero`.
#[inline(always)]
pub(super) fn erfcx<T: Lane>(x: T) -> T {
    let c = T::from_f64;
    let t = (x - c(3.0)) / (x + c(3.0));
    let one = c(1.0);
    let flat = polynomial(t, T::TABLES.erfcx) + one;
    flat / (one + (x + x))
}

/// `Φ(x)` and `exp(-x²/2)` for products with `x`, faster than [`ndtr`]: with one quotient, and no series
/// near 0, where `x Φ(x)` does not need one. `x²` is rounded, which costs up to `x²` roundings in the left
/// tail.
#[inline(always)]
pub(super) fn ndtr_of_product<T: Lane>(x: T) -> [T; 2] {
    let c = T::from_f64;
    let one = c(1.0);
    let a = limit(x.abs(), T::TABLES.erfc_zero * SQRT_2);
    let s = one / a.mul_add(c(0.25), one);
    let bell = exp2_within(a * a * c(-0.5 * LOG2_E));
    let tail = bell * (s * polynomial(s + s - one, T::TABLES.ndtr));
    [if x > c(0.0) { one - tail } else { tail }, bell]
}

/// `exp(-scale x²)`. It includes the digits of `x²` that do not fit into a number, because the exponential
/// multiplies a relative error of `x²` by `x²`.
#[inline(always)]
fn exp_minus_square<T: Lane>(x: T, scale: f64) -> T {
    let scale = T::from_f64(-scale);
    let head = x.head();
    let rest = (x - head) * (x + head);
    exp_sum(head * head * scale, rest * scale)
}

/// `exp(x²)`.
pub(super) fn exp_square(x: f64) -> f64 {
    let head = x.head();
    let rest = (x - head) * (x + head);
    if head * head > 710.0 { f64::INFINITY } else { exp_sum(head * head, rest) }
}

#[inline(always)]
fn limit<T: Lane>(x: T, high: f64) -> T {
    let high = T::from_f64(high);
    if x > high { high } else { x }
}

/// `erf(x) = x + x P(x²)` for `|x| ≤ 1`.
#[inline(always)]
fn erf_near<T: Lane>(x: T) -> T {
    polynomial(x * x, T::TABLES.erf).mul_add(x, x)
}

/// `1 - erfc(|x|)` beyond 1.
#[inline(always)]
pub(super) fn erf<T: Lane>(x: T) -> T {
    let one = T::from_f64(1.0);
    let a = limit(x.abs(), T::TABLES.erfc_zero);
    let far = one - exp_minus_square(a, 1.0) * erfcx(a);
    if x.abs() < one { erf_near(x) } else { far.copysign(x) }
}

/// `1 - erf(x)` below ½, where the other form would lose a few digits.
#[inline(always)]
pub(super) fn erfc<T: Lane>(x: T) -> T {
    let c = T::from_f64;
    let a = limit(x.abs(), T::TABLES.erfc_zero);
    let tail = exp_minus_square(a, 1.0) * erfcx(a);
    let far = if x < c(0.0) { c(2.0) - tail } else { tail };
    if x.abs() < c(0.5) { c(1.0) - erf_near(x) } else { far }
}

/// `erfc(-x/√2) / 2`, with the exponent taken from `x` itself.
#[inline(always)]
pub(super) fn ndtr<T: Lane>(x: T) -> T {
    let c = T::from_f64;
    let half = c(0.5);
    let a = limit(x.abs(), T::TABLES.erfc_zero * SQRT_2);
    let y = a * c(FRAC_1_SQRT_2);
    let tail = exp_minus_square(a, 0.5) * (half * erfcx(y));
    let far = if x > c(0.0) { c(1.0) - tail } else { tail };
    if y < half { half.mul_add(erf_near(y.copysign(x)), half) } else { far }
}
