//! Exponentials and logarithms without branches: every input takes the same sequence of additions,
//! multiplications and selections, which is written once for all types.
//!
//! `exp` is `2^k exp(r)` with `k` the nearest integer to `x / ln 2`; `ln` is `k ln 2 + ln(1 + f)` with
//! `1 + f` between `√½` and `√2` (Cody and Waite, *Software Manual for the Elementary Functions*, 1980).
//! Subtractions that must be exact are exact with and without fused multiply-add. Comparisons are written so
//! that NaN passes through.

use std::f64::consts::LOG2_E;

use super::lane::{Lane, polynomial};

#[inline(always)]
fn within<T: Lane>(x: T, [low, high]: [f64; 2]) -> T {
    let (low, high) = (T::from_f64(low), T::from_f64(high));
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// `(k + ROUND, x - k ln 2)` with `k` the nearest integer to `x / ln 2`.
#[inline(always)]
fn reduce<T: Lane>(x: T) -> (T, T) {
    let c = T::from_f64;
    let z = x.mul_add(c(LOG2_E), c(T::ROUND));
    let k = z - c(T::ROUND);
    let r = k.mul_add(c(-T::TABLES.ln_2[0]), x);
    (z, k.mul_add(c(-T::TABLES.ln_2[1]), r))
}

/// `2^k exp(r)` for `z = k + ROUND`.
#[inline(always)]
fn exp_reduced<T: Lane>(z: T, r: T) -> T {
    let p = polynomial(r, T::TABLES.exp).mul_add(r * r, r) + T::from_f64(1.0);
    // the second product alone rounds a subnormal result
    let (a, b) = z.powers_of_two();
    p * a * b
}

#[inline(always)]
pub(super) fn exp<T: Lane>(x: T) -> T {
    let (z, r) = reduce(within(x, T::TABLES.exp_range));
    exp_reduced(z, r)
}

/// `exp(x + rest)` for a `rest` that is small compared to `x`.
#[inline(always)]
pub(super) fn exp_sum<T: Lane>(x: T, rest: T) -> T {
    let c = T::from_f64;
    let x = within(x, T::TABLES.exp_range);
    let z = (x + rest).mul_add(c(LOG2_E), c(T::ROUND));
    let k = z - c(T::ROUND);
    let r = k.mul_add(c(-T::TABLES.ln_2[0]), x);
    exp_reduced(z, r + k.mul_add(c(-T::TABLES.ln_2[1]), rest))
}

#[inline(always)]
pub(super) fn exp2<T: Lane>(x: T) -> T {
    exp2_within(within(x, T::TABLES.exp2_range))
}

/// `2ˣ` where it is neither infinite nor far below the smallest number.
#[inline(always)]
pub(super) fn exp2_within<T: Lane>(x: T) -> T {
    let c = T::from_f64;
    let z = x + c(T::ROUND);
    let r = x - (z - c(T::ROUND));
    let p = polynomial(r, T::TABLES.exp2).mul_add(r, c(1.0));
    let (a, b) = z.powers_of_two();
    p * a * b
}

/// `2^k (exp(r) - 1) + (2^k - 1)`: either `k` is 0 or the first term is smaller than the second.
#[inline(always)]
pub(super) fn exp_m1<T: Lane>(x: T) -> T {
    let (z, r) = reduce(within(x, T::TABLES.exp_range));
    let (a, b) = z.powers_of_two();
    let p = polynomial(r, T::TABLES.exp_m1).mul_add(r * r, r);
    let sum = p.mul_add(a, a - z.second_reciprocal());
    (sum * b).copysign(x) // restores the sign of zero
}

/// `x + x³ P(x²)` up to 5/8, then `1 - 2 / (exp(2|x|) + 1)`.
#[inline(always)]
pub(super) fn tanh<T: Lane>(x: T) -> T {
    let c = T::from_f64;
    let one = c(1.0);
    let a = x.abs();
    let square = a * a;
    let near = polynomial(square, T::TABLES.tanh).mul_add(square * a, a);
    let (z, r) = reduce(within(a + a, [0.0, 2.0 * T::TABLES.tanh_one]));
    let p = polynomial(r, T::TABLES.exp).mul_add(r * r, r) + one;
    let far = one - c(2.0) / p.mul_add(z.power_of_two(), one);
    (if a < c(0.625) { near } else { far }).copysign(x)
}

/// `1 / (1 + e)` or `e / (1 + e)` with `e = exp(-|x|)`.
#[inline(always)]
pub(super) fn sigmoid<T: Lane>(x: T) -> T {
    let one = T::from_f64(1.0);
    let e = exp(-x.abs());
    let numerator = if x < T::from_f64(0.0) { e } else { one };
    numerator / (one + e)
}

/// `(k, f)` with `x = 2^k (1 + f)`, for positive finite `x`.
#[inline(always)]
fn split<T: Lane>(x: T) -> (T, T) {
    let c = T::from_f64;
    let subnormal = x < c(T::SMALLEST_NORMAL);
    let up = c((1_u64 << T::FRACTION) as f64);
    let (k, m, _) = (if subnormal { x * up } else { x }).split();
    let up_exponent = if subnormal { c(T::FRACTION as f64) } else { c(0.0) };
    (k - up_exponent, m - c(1.0))
}

/// `(f²/2, ln(1 + f) - f + f²/2)`.
#[inline(always)]
fn ln_1p_reduced<T: Lane>(f: T) -> (T, T) {
    let square = f * f;
    (T::from_f64(0.5) * square, polynomial(f, T::TABLES.ln) * (square * f))
}

/// `ln` for positive finite `x`, and the limit of the logarithm for other `x`.
#[inline(always)]
fn ln_or_limit<T: Lane>(x: T, ln: T) -> T {
    let c = T::from_f64;
    let limit = if x == c(0.0) { c(f64::NEG_INFINITY) } else { c(f64::NAN) };
    let ln = if x > c(0.0) { ln } else { limit };
    if x == c(f64::INFINITY) { x } else { ln }
}

#[inline(always)]
pub(super) fn ln<T: Lane>(x: T) -> T {
    let c = T::from_f64;
    let (k, f) = split(x);
    let (half_square, rest) = ln_1p_reduced(f);
    let low = half_square - k.mul_add(c(T::TABLES.ln_2[1]), rest);
    ln_or_limit(x, k.mul_add(c(T::TABLES.ln_2[0]), f - low))
}

#[inline(always)]
pub(super) fn ln_1p<T: Lane>(x: T) -> T {
    let c = T::from_f64;
    let one = c(1.0);
    let u = one + x;
    // What the sum lost. For large `x` it does not matter, and `down` below is not a number to multiply with.
    let lost = if x < one { x - (u - one) } else { one - (u - x) };
    let lost = if x < c(1e30) { lost } else { c(0.0) };
    let (k, m, down) = u.split();
    let unreduced = k == c(0.0);
    let f = if unreduced { x } else { m - one };
    let (half_square, rest) = ln_1p_reduced(f);
    // ln(1 + f + d) = ln(1 + f) + d / (1 + f), and the quotient needs few digits
    let d = lost * (c(0.5) * down);
    let d = d * (one - f * (one - c(0.8) * f));
    let d = if unreduced { c(0.0) } else { d };
    let low = half_square - k.mul_add(c(T::TABLES.ln_2[1]), rest + d);
    let ln = k.mul_add(c(T::TABLES.ln_2[0]), f - low);
    ln_or_limit(u, ln.copysign(x)) // restores the sign of zero
}

/// `k unit + ln(1 + f) scale` for `x = 2^k (1 + f)`. Both constants have two parts, whose products are exact.
#[inline(always)]
fn log_scaled<T: Lane>(x: T, unit: [f64; 2], scale: [f64; 2]) -> T {
    let c = T::from_f64;
    let (k, f) = split(x);
    let (half_square, rest) = ln_1p_reduced(f);
    let high = (f - half_square).head();
    let low = (f - high) - half_square + rest;
    let big = k * c(unit[0]);
    let small = high * c(scale[0]);
    let sum = big + small;
    let lost = (big - sum) + small;
    let tail = k.mul_add(c(unit[1]), (low + high) * c(scale[1])) + low * c(scale[0]);
    ln_or_limit(x, (tail + lost) + sum)
}

#[inline(always)]
pub(super) fn log2<T: Lane>(x: T) -> T {
    log_scaled(x, [1.0, 0.0], T::TABLES.log2_e)
}

#[inline(always)]
pub(super) fn log10<T: Lane>(x: T) -> T {
    log_scaled(x, T::TABLES.log10_2, T::TABLES.log10_e)
}

/// `x^y` as `2^(y log2|x|)` in the wider type `W`, which has enough digits for those that the product with
/// `y` costs.
///
/// The exceptions are those of `std` and IEEE 754.
#[inline(always)]
pub(super) fn powf<T: Lane, W: Lane>(x: T, y: T) -> T {
    let c = T::from_f64;
    let wide = |x: T| W::from_f64(x.to_f64());
    let magnitude = T::from_f64(exp2(log2(wide(x.abs())) * wide(y)).to_f64());
    let half = y * c(0.5);
    let integer = y.trunc() == y;
    let odd = integer & (half.trunc() != half);
    // true for -0 too
    let negative = c(1.0).copysign(x) < c(0.0);
    let signed = if negative & odd { -magnitude } else { magnitude };
    let undefined = (x < c(0.0)) & (x > c(f64::NEG_INFINITY)) & !integer;
    let power = if undefined { c(f64::NAN) } else { signed };
    let infinite = y.abs() == c(f64::INFINITY);
    let one = (y == c(0.0)) | (x == c(1.0)) | ((x == c(-1.0)) & infinite);
    if one { c(1.0) } else { power }
}
