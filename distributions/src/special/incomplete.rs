//! The derivative of the incomplete gamma function by the shape, and the distribution function of von Mises.

use crate::common::*;
use crate::special::number::log_bessel;
use crate::special::{each, log_gamma_density as density_of};
use namegrad_core::cpu::math::incomplete::{
    NEGLIGIBLE, beyond, gamma_p_q, integral, log_gamma_density, log_minus_digamma,
};
use std::f64::consts::PI;

/// The derivative of `log x` by the shape `a`, if `x` is a draw of the gamma distribution that keeps its
/// rank: `-∂P/∂a / (x p(x))`.
///
/// # Source
/// Figurnov, Mohamed, Mnih, *Implicit Reparameterization Gradients* (2018), equation 5.
pub(crate) fn log_gamma_slope(a: f64, log_x: f64) -> f64 {
    let x = log_x.exp();
    if x < a.min(1.0) * 1e-20 {
        // P is x^a / Γ(a + 1) there
        return (log_minus_digamma(a) - 1.0 / a + log_x - a.ln()) / -a;
    }
    let [_, moment] = beyond(a, x);
    if x < a { -moment } else { moment }
}

/// `P(a, x)`, or `Q(a, x) = 1 - P(a, x)` for what lies above, with its derivatives.
#[track_caller]
pub(crate) fn gamma_cdf(a: &Tensor, x: &Tensor, is_above: bool) -> Result<Tensor> {
    let parts: [fn(&[f64]) -> f64; 2] = [|x| gamma_p_q(x[0], x[1])[0], |x| gamma_p_q(x[0], x[1])[1]];
    let value = each(&[a, x], parts[usize::from(is_above)])?;
    let sign = if is_above { -1.0 } else { 1.0 };
    let (a_kept, x_kept) = (Kept::input(a), Kept::input(x));
    let kept = (a_kept.clone(), x_kept.clone());
    let op = Op::new("gamma_cdf", value)
        .input(x, move |g, cx| {
            let (a, x) = (a_kept.get(cx), x_kept.get(cx));
            density_of(&a, &x.ones_like()?, &x).exp().mul(sign).mul(g)
        })
        .input_once(a, move |g, cx| {
            let slope = each(&[&kept.0.get(cx), &kept.1.get(cx)], |x| match x[1] {
                0.0 | f64::INFINITY => 0.0,
                _ => -log_gamma_slope(x[0], x[1].ln()) * (log_gamma_density(x[0], x[1]) + x[1].ln()).exp(),
            })?;
            slope.mul(sign)?.mul(g)
        });
    Ok(op.output())
}

/// `1 - I₁(k) / I₀(k)`, the circular variance of von Mises' distribution.
///
/// # Source
/// The series: *NIST Handbook of Mathematical Functions*, 10.40.1.
fn mean_below_one(k: f64) -> f64 {
    if k < 1e3 {
        return 1.0 - log_bessel(k).1;
    }
    let series = [0.5, 0.125, 0.125, 25.0 / 128.0, 13.0 / 32.0];
    series.iter().rev().fold(0.0, |sum, term| (sum + term) / k)
}

/// The derivative of an angle `x` by the concentration `k`, if it is a draw of von Mises' distribution around
/// 0 that keeps its rank: `-∂F/∂k / p(x)`.
///
/// # Source
/// As [`log_gamma_slope`]; the derivative of the density by `k` is `p (cos t - I₁(k) / I₀(k))`.
pub(crate) fn von_mises_slope(k: f64, x: f64) -> f64 {
    if k > 1e12 {
        return -0.5 * x / k; // a normal number divided by √k
    }
    let below = mean_below_one(k);
    let (at, sign) = (x.abs().min(PI), -x.signum());
    // p(t) / p(x)
    let log_weight = |t: f64| 2.0 * k * (0.5 * (at + t)).sin() * (0.5 * (at - t)).sin();
    let by_concentration = |t: f64| [log_weight(t).exp() * (below - 2.0 * (0.5 * t).sin().powi(2)), 0.0];
    if k * at * at < 1.0 {
        return sign * integral(at, 2, &by_concentration)[0];
    }
    // The integral up to the other side is 0, so that the rest of it is what is left of it.
    let mut end = (0.1 / k.sqrt()).min(PI - at);
    while end < PI - at && log_weight(at + end) > NEGLIGIBLE {
        end = (1.5 * end).min(PI - at);
    }
    -sign * integral(end, 8, &|t| by_concentration(at + t))[0]
}
