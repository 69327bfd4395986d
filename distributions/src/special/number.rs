//! Functions of numbers in `f64`.

use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::math::incomplete::{deviance, factorial_rest, log_minus_digamma, stirling};
use std::f64::consts::{LN_2, TAU};

/// `log Γ(a + ½) - log Γ(a)`.
pub(crate) fn log_gamma_half_step(a: f64) -> f64 {
    if a < 10.0 {
        return libm::lgamma(a + 0.5) - libm::lgamma(a);
    }
    // (a + ½ - ½) log(a + ½) - (a - ½) log a - ½, and the two rests
    let step = (0.5 / a).ln_1p();
    a * step - 0.5 + 0.5 * a.ln() + stirling(a + 0.5) - stirling(a)
}

/// `log Γ(a) + log Γ(b) - log Γ(a + b)`.
pub(crate) fn log_beta(a: f64, b: f64) -> f64 {
    let (a, b) = (a.min(b), a.max(b));
    if b < 10.0 {
        return libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    }
    // log Γ(b) - log Γ(a + b)
    let far = -(b - 0.5) * (a / b).ln_1p() - a * (a + b).ln() + a + stirling(b) - stirling(a + b);
    match a < 10.0 {
        true => libm::lgamma(a) + far,
        // a log(a / (a + b)) is the large part of both
        false => {
            let rest = stirling(a) + stirling(b) - stirling(a + b);
            a * (a / (a + b)).ln() - b * (a / b).ln_1p() + 0.5 * (TAU * (1.0 / a + 1.0 / b)).ln() + rest
        }
    }
}

/// `log Γ(y) - log Γ(x) - (y - x) ψ(x)`, which is about `(y - x)² / 2x`, without its large part
/// `deviance(y, x)`.
pub(crate) fn gamma_rest(x: f64, y: f64) -> f64 {
    if x.min(y) < 10.0 {
        let all = libm::lgamma(y) - libm::lgamma(x) - (y - x) * (x.ln() - log_minus_digamma(x));
        return all - deviance(y, x);
    }
    // the parts of Stirling's series
    let slope = log_minus_digamma(x) - 0.5 / x;
    0.5 * deviance(x, y) / x + (y - x) * slope + (stirling(y) - stirling(x))
}

/// `(a - 1) log x + (b - 1) log(1 - x) - log B(a, b)`, at 0 and 1 the limit.
pub(crate) fn log_beta_density(a: f64, b: f64, x: f64) -> f64 {
    let y = 1.0 - x;
    for (at, own, other) in [(x, a, b), (y, b, a)] {
        if at == 0.0 {
            return match own {
                own if own < 1.0 => f64::INFINITY,
                own if own > 1.0 => f64::NEG_INFINITY,
                _ => other.ln(),
            };
        }
    }
    if a.max(b) < 10.0 {
        return (a - 1.0) * x.ln() + (b - 1.0) * (-x).ln_1p() - log_beta(a, b);
    }
    let n = a + b;
    let rest = factorial_rest(n) - factorial_rest(a) - factorial_rest(b);
    rest - deviance(a, n * x) - deviance(b, n * y) + (a / n).ln() + b.ln() - x.ln() - (-x).ln_1p()
}

/// `k log(k / (n p)) + n p - k` for `p = e^log_p`, also where `n p` is below the range of `f64`.
pub(crate) fn count_deviance(k: f64, n: f64, log_p: f64) -> f64 {
    let m = n * log_p.exp();
    if k > 0.0 && m < 1e-290 { k * ((k / n).ln() - log_p) + m - k } else { deviance(k, m) }
}

/// `log σ(x)`.
pub(crate) fn log_sigmoid(x: f64) -> f64 {
    x.min(0.0) - (-x.abs()).exp().ln_1p()
}

/// `1 / (1 + e^-x)`.
pub(crate) fn sigmoid(x: f64) -> f64 {
    log_sigmoid(x).exp()
}

/// The logarithm of the probability of `k` of `n`, with these logits; also between whole numbers.
pub(crate) fn log_binomial(k: f64, n: f64, logits: f64) -> f64 {
    let (j, p, q) = (n - k, sigmoid(logits), sigmoid(-logits));
    if k < 0.0 || j < 0.0 {
        return f64::NEG_INFINITY;
    }
    // a count of zero has no part, whatever its probability is
    let part = |count: f64, logits: f64| if count == 0.0 { 0.0 } else { count * log_sigmoid(logits) };
    if k == 0.0 || j == 0.0 || n * p.min(q) < 1e-290 {
        let ways = if k == 0.0 || j == 0.0 { 0.0 } else { -(n + 1.0).ln() - log_beta(k + 1.0, j + 1.0) };
        return ways + part(k, logits) + part(j, -logits);
    }
    let rest = factorial_rest(n) - factorial_rest(k) - factorial_rest(j);
    rest - deviance(k, n * p) - deviance(j, n * q)
}

/// `log I₀(x)` and `I₁(x) / I₀(x)`, for `x` that is not negative.
pub(crate) fn log_bessel(x: f64) -> (f64, f64) {
    let (zero, one) = (Real::i0e(x), Real::i1e(x));
    (zero.ln() + x, one / zero)
}

/// `log(1 - e^-x)` for positive `x`.
pub(crate) fn log1m_exp(x: f64) -> f64 {
    if x < LN_2 { (-(-x).exp_m1()).ln() } else { (-(-x).exp()).ln_1p() }
}

/// The `order`-th derivative of `log((e^x - 1) / x)`, for orders up to 4.
///
/// # Source
/// The series: *NIST Handbook of Mathematical Functions*, 24.2.1, the generating function of Bernoulli's
/// numbers.
pub(crate) fn unit_cumulant(x: f64, order: u32) -> f64 {
    if x < 0.0 {
        // A(x) is A(-x) + x
        let mirrored = unit_cumulant(-x, order);
        return match order {
            0 => mirrored + x,
            1 => 1.0 - mirrored,
            odd if odd % 2 == 1 => -mirrored,
            _ => mirrored,
        };
    }
    if x < 1.0 {
        // x / 2 + Σ B₂ₖ x²ᵏ / (2k (2k)!)
        let linear = [0.5 * x, 0.5, 0.0, 0.0, 0.0][order as usize];
        let term = |(k, b): (usize, &f64)| {
            let power = 2 * (k as i32 + 1);
            let factor: f64 = (0..order as i32).map(|i| f64::from(power - i)).product();
            if factor == 0.0 { 0.0 } else { b * factor * x.powi(power - order as i32) }
        };
        return linear + UNIT_CUMULANT.iter().enumerate().map(term).sum::<f64>();
    }
    // 1 / (1 - e^-x), and that minus 1
    let (above, rest) = (-1.0 / (-x).exp_m1(), 1.0 / x.exp_m1());
    match order {
        0 => x + (-(-x).exp()).ln_1p() - x.ln(),
        1 => above - 1.0 / x,
        2 => 1.0 / (x * x) - above * rest,
        3 => above * rest * (above + rest) - 2.0 / (x * x * x),
        _ => 6.0 / x.powi(4) - above * rest * (above * above + 4.0 * above * rest + rest * rest),
    }
}

/// `B₂ₖ / (2k (2k)!)` for `k` from 1.
const UNIT_CUMULANT: [f64; 12] = [
    1.0 / 24.0,
    -1.0 / 2880.0,
    1.0 / 181_440.0,
    -1.0 / 9_676_800.0,
    1.0 / 479_001_600.0,
    -691.0 / 15_692_092_416_000.0,
    1.0 / 1_046_139_494_400.0,
    -3617.0 / 170_729_965_486_080_000.0,
    43867.0 / 91_963_695_909_076_992_000.0,
    -174_611.0 / 16_057_153_253_965_824_000_000.0,
    77683.0 / 310_224_200_866_619_719_680_000.0,
    -236_364_091.0 / 40_651_779_281_561_848_066_867_200_000.0,
];
