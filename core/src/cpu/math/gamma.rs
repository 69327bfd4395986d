//! The gamma function's logarithm and its derivatives, and Hurwitz's zeta function, in `f64`, one number at a
//! time.

use std::f64::consts::PI;

use super::bessel::chebyshev;

/// `ln|Γ(x)|`.
pub(super) fn lgamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// `ψ(x)`: `∓∞` at `±0`, NaN at the other poles, as in PyTorch.
///
/// `ψ(x) = ψ(x + 1) - 1/x` leads to `[1, 2]`, where `ψ` is a series times the distance to its root. From 10
/// on the asymptotic series is used (*NIST Handbook of Mathematical Functions*, 5.5.2, 5.5.4, 5.11.2).
pub(super) fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::NEG_INFINITY.copysign(-x);
    }
    if x < 0.0 {
        let from_pole = x - x.round_ties_even();
        if from_pole == 0.0 || x.is_infinite() {
            return f64::NAN;
        }
        return digamma(1.0 - x) - PI / libm::tan(PI * from_pole);
    }
    if x >= 10.0 {
        if x.is_infinite() {
            return x;
        }
        let s = 1.0 / (x * x);
        // B₂ₖ / 2k
        let series =
            [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0];
        let series = series.iter().rev().fold(0.0, |sum, b| (sum + b) * s);
        return libm::log(x) - 0.5 / x - series;
    }
    let (mut x, mut steps) = (x, 0.0);
    if x < 1.0 {
        steps -= 1.0 / x;
        x += 1.0;
    }
    while x > 2.0 {
        x -= 1.0;
        steps += 1.0 / x;
    }
    let root_distance = (x - DIGAMMA_ROOT[0]) - DIGAMMA_ROOT[1];
    steps + root_distance * chebyshev(2.0 * x - 3.0, DIGAMMA)
}

/// The positive root of `ψ`, in two parts.
const DIGAMMA_ROOT: [f64; 2] = [1.4616321449683622, 9.549995429965697e-17];

/// The `n`-th derivative of `ψ`: `(-1)ⁿ⁺¹ n! ζ(n + 1, x)`.
pub(super) fn polygamma(n: u32, x: f64) -> f64 {
    if n == 0 {
        return digamma(x);
    }
    let sign = if n % 2 == 1 { 1.0 } else { -1.0 };
    sign * libm::tgamma(f64::from(n) + 1.0) * zeta(f64::from(n) + 1.0, x)
}

/// `ζ(s, q) = Σ (q + k)⁻ˢ`: infinite at `s = 1` and at the poles `q = 0, -1, ...`; NaN for `s < 1`, and
/// for negative `q` unless `s` is an integer. By the formula of Euler and Maclaurin (*NIST Handbook*,
/// 25.11.5 and
/// 2.10.1).
pub(crate) fn zeta(s: f64, q: f64) -> f64 {
    if s == 1.0 {
        return f64::INFINITY;
    }
    if s.is_nan() || q.is_nan() || s < 1.0 {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return f64::INFINITY;
        }
        // Just below 0, the fraction is rounded, but `rest` is exact.
        let (fraction, rest) = (q - q.floor(), q.floor() + 1.0 - q);
        if s != s.floor() {
            return f64::NAN;
        }
        // the sum over all integers without the part below q
        let sign = if s % 2.0 == 0.0 { 1.0 } else { -1.0 };
        return zeta(s, fraction) + sign * (zeta(s, rest) - zeta(s, 1.0 - q));
    }
    if q.is_infinite() {
        return 0.0;
    }
    if s.is_infinite() {
        return if q < 1.0 { f64::INFINITY } else { f64::from(q == 1.0) };
    }
    let (mut q, mut sum) = (q, 0.0);
    let mut term = libm::pow(q, -s);
    // From `s` on the terms of the formula become smaller fast.
    while q < 10.0 || q < s && term > 1e-18 * sum {
        sum += term;
        q += 1.0;
        term = libm::pow(q, -s);
    }
    sum += q * term / (s - 1.0) + 0.5 * term;
    // term becomes s (s + 1) ... (s + 2j - 2) q^(1 - s - 2j)
    term *= s / q;
    for (j, b) in ZETA.iter().enumerate() {
        let step = b * term;
        sum += step;
        if step.abs() <= 1e-17 * sum.abs() {
            break;
        }
        let odd = s + 2.0 * j as f64 + 1.0;
        term *= odd * (odd + 1.0) / (q * q);
    }
    sum
}

/// `B₂ⱼ / (2j)!` for `j` from 1.
const ZETA: [f64; 12] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30240.0,
    -1.0 / 1209600.0,
    1.0 / 47900160.0,
    -691.0 / 1307674368000.0,
    1.0 / 74724249600.0,
    -3617.0 / 10670622842880000.0,
    43867.0 / 5109094217170944000.0,
    -174611.0 / 802857662698291200000.0,
    77683.0 / 14101100039391805440000.0,
    -236364091.0 / 1693824136731743669452800000.0,
];

/// `ψ(x) / (x - root)` on `[1, 2]` as a Chebyshev series in `2x - 3`: interpolation at 64 nodes with 40
/// digits.
const DIGAMMA: &[f64] = &[
    0.983570260441567,
    -0.2270640863346444,
    0.03336889902393011,
    -0.005320077271596548,
    0.0008788656937820505,
    -0.00014773492650606044,
    2.5060543468359146e-05,
    -4.2721034029993324e-06,
    7.302769272465923e-07,
    -1.2502886813559594e-07,
    2.1425009322359472e-08,
    -3.673295918565179e-09,
    6.299717236108931e-10,
    -1.080593028883266e-10,
    1.853735192053638e-11,
    -3.18023536582553e-12,
    5.456147570322795e-13,
    -9.360993131036438e-14,
    1.606064636295075e-14,
    -2.7555431377438815e-15,
    4.727736178601912e-16,
    -8.11148420346509e-17,
    1.391707769474154e-17,
    -2.3877901082188625e-18,
];
