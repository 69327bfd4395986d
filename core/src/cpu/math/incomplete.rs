//! The incomplete gamma function, and what its density consists of, in `f64`, one number at a time.

use super::gamma::{digamma, zeta};
use std::f64::consts::{PI, TAU};

/// The integrand is negligible where its logarithm is below this.
pub const NEGLIGIBLE: f64 = -45.0;

/// The regularized incomplete gamma functions `P(a, x)` and `Q(a, x) = 1 - P(a, x)`.
pub fn gamma_p_q(a: f64, x: f64) -> [f64; 2] {
    if !(a >= 0.0 && x >= 0.0) || a == 0.0 && x == 0.0 || a.is_infinite() && x.is_infinite() {
        return [f64::NAN; 2];
    }
    if x == 0.0 || a.is_infinite() {
        return [0.0, 1.0];
    }
    if a == 0.0 || x.is_infinite() {
        return [1.0, 0.0];
    }
    let part = if x < 1.0 && a < 1.0 { 0.0 } else { a * density(a, x) * beyond(a, x)[0] };
    match x < a {
        _ if x < 1.0 && a < 1.0 => near_zero(a, x),
        true => [part, 1.0 - part],
        false => [1.0 - part, part],
    }
}

/// `x^a e^-x / Γ(a + 1)`, with what is lost in the quotient and in the difference, which the power multiplies.
fn density(a: f64, x: f64) -> f64 {
    let away = deviance(a, x) + factorial_rest(a);
    if away > 750.0 || a > 600.0 && f64::abs(x - a) < 0.1 * (x + a) {
        return (-away).exp(); // the series of the deviance near the mean loses nothing
    }
    let (ratio, above) = (x / a, a - x);
    let of_x = above - a;
    let lost = (-ratio).mul_add(a, x) / ratio + ((a - (above - of_x)) - (x + of_x));
    // a root of the power is in the range of f64
    let root: i32 = if a > 600.0 { 16 } else { 2 };
    let part = 1.0 / f64::from(root);
    (libm::pow(ratio, part * a) * libm::exp(part * above)).powi(root) * (lost - factorial_rest(a)).exp()
}

/// [`gamma_p_q`] for `a` and `x` below 1: `Q = 1 - x^a / Γ(1 + a) - x^a / Γ(a) Σ (-x)ⁿ / (n! (a + n))`,
/// whose first two terms are taken together.
///
/// # Source
/// *NIST Handbook of Mathematical Functions*, 8.7.1.
fn near_zero(a: f64, x: f64) -> [f64; 2] {
    let log = a * libm::log(x) - lgamma_above_one(a); // of x^a / Γ(1 + a)
    let (mut term, mut sum, mut n) = (1.0, 0.0, 0.0);
    while f64::abs(term) > 1e-18 {
        n += 1.0;
        term *= -x / n;
        sum += term / (a + n);
    }
    let power = libm::pow(x, a) * libm::exp(-lgamma_above_one(a));
    [power + a * power * sum, -log.exp_m1() - a * power * sum]
}

/// `log Γ(1 + a)` for `a < 1`; near 0 `-γ a + Σ ζ(k) (-a)ᵏ / k` (*NIST Handbook of Mathematical
/// Functions*, 5.7.3).
fn lgamma_above_one(a: f64) -> f64 {
    if a > 0.02 {
        return libm::lgamma(1.0 + a);
    }
    let terms = (2..10).rev().fold(0.0, |sum, k| zeta(f64::from(k), 1.0) / f64::from(k) - a * sum);
    -a * (EULER_GAMMA - a * terms)
}

/// Euler's constant.
const EULER_GAMMA: f64 = 0.5772156649015329;

/// With the density `p` of the gamma distribution of shape `a`: what lies above `x`, or below it if `x < a`,
/// divided by `x p(x)`; and the same of `log t - ψ(a)` for the points `t` there. They are integrals over
/// `u = log(t / x)` of `exp(a u - x (e^u - 1))`, which falls from 1 on.
pub fn beyond(a: f64, x: f64) -> [f64; 2] {
    // log x - ψ(a)
    let start = (x / a).ln() + log_minus_digamma(a);
    if x < a && a < 100.0 {
        return series(a, x);
    }
    let side = if x < a { -1.0 } else { 1.0 };
    // the difference of a u and x (e^u - 1), which are large
    let log_weight = |u: f64| (a - x) * u - x * exp_rest(u);
    // where the integrand is negligible
    let mut end = 1.0 / a.max(x).sqrt().max(1.0);
    while log_weight(side * end) > NEGLIGIBLE {
        end *= 1.5;
    }
    integral(end, 4, &|u| {
        let weight = log_weight(side * u).exp();
        [weight, weight * (start + side * u)]
    })
}

/// `e^u - 1 - u`.
fn exp_rest(u: f64) -> f64 {
    if f64::abs(u) > 0.5 {
        return u.exp_m1() - u;
    }
    // Σ uᵏ / k! from k = 2 on
    u * u * (3..16).rev().fold(1.0, |sum, k| 1.0 + sum * u / f64::from(k)) * 0.5
}

/// [`beyond`] for `x < a`, as a sum of positive terms `xⁿ Γ(a) / Γ(a + n + 1)` and its derivative.
///
/// # Source
/// *NIST Handbook of Mathematical Functions*, 8.11.4, differentiated by `a`.
fn series(a: f64, x: f64) -> [f64; 2] {
    let (mut term, mut sum, mut by_shape) = (1.0 / a, 0.0, 0.0);
    // log x - ψ(a + n + 1)
    let mut slope = (x / a).ln() + log_minus_digamma(a) - 1.0 / a;
    let mut n = 0.0;
    loop {
        sum += term;
        by_shape += term * slope;
        n += 1.0;
        term *= x / (a + n);
        slope -= 1.0 / (a + n);
        if term < 1e-18 * sum {
            // the sum is P / (x p); that of `log t - ψ(a)` below x is the derivative of P by a
            return [sum, by_shape];
        }
    }
}

/// `x log(x / m) + m - x`, which is not negative; near `m` by a series in `(x - m) / (x + m)`.
///
/// # Source
/// Loader, *Fast and Accurate Computation of Binomial Probabilities* (2000), function `bd0`.
pub fn deviance(x: f64, m: f64) -> f64 {
    if x == 0.0 {
        return m;
    }
    if m == 0.0 || m.is_infinite() || x.is_infinite() {
        return if x == m { f64::NAN } else { f64::INFINITY };
    }
    if (x - m).abs() >= 0.1 * (x + m) {
        return x * (x / m).ln() + m - x;
    }
    let v = (x - m) / (x + m);
    let (mut sum, mut term) = ((x - m) * v, 2.0 * x * v);
    for j in 1..100 {
        term *= v * v;
        let next = sum + term / f64::from(2 * j + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// `log Γ(x + 1) - x log x + x`, 0 at 0.
pub fn factorial_rest(x: f64) -> f64 {
    if x == 0.0 {
        return 0.0;
    }
    match x < 10.0 {
        true => libm::lgamma(x + 1.0) - x * x.ln() + x,
        false => 0.5 * (TAU * x).ln() + stirling(x),
    }
}

/// What Stirling's formula lacks: `log Γ(x) - (x - ½) log x + x - ½ log 2π`, for `x` from 10 on.
///
/// # Source
/// *NIST Handbook of Mathematical Functions*, 5.11.1.
pub fn stirling(x: f64) -> f64 {
    let s = 1.0 / (x * x);
    let series =
        [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0, 1.0 / 156.0];
    series.iter().rev().fold(0.0, |sum, b| sum * s + b) / x
}

/// `log a - ψ(a)`.
pub fn log_minus_digamma(a: f64) -> f64 {
    if a < 10.0 {
        return a.ln() - digamma(a);
    }
    let s = 1.0 / (a * a);
    let series =
        [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0];
    0.5 / a + series.iter().rev().fold(0.0, |sum, b| (sum + b) * s)
}

/// `(a - 1) log x - x - log Γ(a)`, at 0 the limit.
pub fn log_gamma_density(a: f64, x: f64) -> f64 {
    if x == 0.0 && a.is_finite() {
        return match a {
            a if a < 1.0 => f64::INFINITY,
            a if a > 1.0 => f64::NEG_INFINITY,
            _ => 0.0,
        };
    }
    if x == f64::INFINITY && a.is_finite() {
        return f64::NEG_INFINITY;
    }
    a.ln() - x.ln() - deviance(a, x) - factorial_rest(a)
}

/// The nodes and weights of Gauss and Legendre's rule of 32 points on `[0, 1]`.
///
/// # Source
/// Press et al., *Numerical Recipes* (3rd edition, 2007), section 4.6.
fn legendre() -> &'static [[f64; 2]] {
    static RULE: std::sync::LazyLock<Vec<[f64; 2]>> = std::sync::LazyLock::new(|| {
        let n = 32;
        let node = |i: usize| {
            let (mut x, mut slope) = ((PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos(), 1.0);
            for _ in 0..20 {
                let (mut p, mut before) = (1.0, 0.0);
                for j in 0..n {
                    let j = j as f64;
                    (p, before) = (((2.0 * j + 1.0) * x * p - j * before) / (j + 1.0), p);
                }
                slope = n as f64 * (x * p - before) / (x * x - 1.0);
                x -= p / slope;
            }
            [0.5 * (1.0 + x), 1.0 / ((1.0 - x * x) * slope * slope)]
        };
        (0..n).map(node).collect()
    });
    &RULE
}

/// The integral of `f` from 0 to `end`, in `pieces` of 32 points each.
pub fn integral(end: f64, pieces: usize, f: &dyn Fn(f64) -> [f64; 2]) -> [f64; 2] {
    let width = end / pieces as f64;
    let mut sums = [0.0; 2];
    for piece in 0..pieces {
        for [node, weight] in legendre() {
            let values = f((piece as f64 + node) * width);
            sums[0] += weight * values[0];
            sums[1] += weight * values[1];
        }
    }
    sums.map(|sum| sum * width)
}
