//! Functions of one element that the densities need, with derivatives made of tensor ops, and the numbers
//! that they are computed with (`number`, `incomplete`).
//!
//! A density is a difference of terms that are much larger than itself where counts are large. The functions
//! here are such differences as a whole, without the terms.

pub(crate) mod incomplete;
pub(crate) mod number;

use crate::common::*;
use crate::support::columns;
use namegrad_core::cpu::math::incomplete::{
    deviance as deviance_of, factorial_rest, log_gamma_density as log_density, log_minus_digamma,
};

/// A function of the elements of tensors that are broadcast to each other, computed in `f64`.
#[track_caller]
pub(crate) fn each(tensors: &[&Tensor], f: fn(&[f64]) -> f64) -> Result<NamedTensor> {
    let (columns, shape) = columns(tensors)?;
    let dtype = tensors.iter().map(|x| x.dtype()).fold(tensors[0].dtype(), DType::promote);
    let mut row = vec![0.0; columns.len()];
    let mut results = Vec::with_capacity(columns[0].len());
    for index in 0..columns[0].len() {
        for (number, column) in row.iter_mut().zip(&columns) {
            *number = column[index];
        }
        results.push(f(&row));
    }
    NamedTensor::from_slice(&results, &shape)?.to(dtype)
}

/// `log p(k)` of Poisson's distribution: `k log m - m - log k!`.
///
/// # Source
/// Loader, *Fast and Accurate Computation of Binomial Probabilities* (2000): the deviance of `k` from `m`,
/// and what Stirling's formula lacks.
#[track_caller]
pub(crate) fn log_poisson(k: &Tensor, m: &Tensor) -> Result<Tensor> {
    let value = each(&[k, m], |x| -deviance_of(x[0], x[1]) - factorial_rest(x[0]))?;
    let (k_kept, m_kept) = (Kept::input(k), Kept::input(m));
    let op = Op::new("log_poisson", value).inputs(&[Some(k), Some(m)], move |g, cx| {
        let (k, m) = (k_kept.get(cx), m_kept.get(cx));
        let by_k = || m.log().sub(k.add(1.0).digamma()?).mul(g);
        // 0 / 0 is 0: nothing was counted
        let by_m = || k.eq(0.0).choose(0.0, k.div(&m)?).sub(1.0).mul(g);
        Ok(vec![wanted(cx, 0, by_k)?, wanted(cx, 1, by_m)?])
    });
    Ok(op.output())
}

/// A gradient that the backward pass asks for.
fn wanted(cx: &Cx<'_>, input: usize, gradient: impl FnOnce() -> Result<Tensor>) -> Result<Option<Tensor>> {
    if cx.wants(input) { gradient().map(Some) } else { Ok(None) }
}

/// `log p(k)` of the binomial distribution of `n` trials with these logits:
/// `log n! - log k! - log (n - k)! + k log σ(l) + (n - k) log σ(-l)`, also between whole numbers.
///
/// # Source
/// As [`log_poisson`].
#[track_caller]
pub(crate) fn log_binomial(k: &Tensor, n: &Tensor, logits: &Tensor) -> Result<Tensor> {
    let value = each(&[k, n, logits], |x| number::log_binomial(x[0], x[1], x[2]))?;
    let kept = [Kept::input(k), Kept::input(n), Kept::input(logits)];
    let op = Op::new("log_binomial", value).inputs(&[Some(k), Some(n), Some(logits)], move |g, cx| {
        let [k, n, logits] = [kept[0].get(cx), kept[1].get(cx), kept[2].get(cx)];
        let rest = || n.sub(&k).add(1.0).digamma();
        let by_k = || logits.add(rest()?).sub(k.add(1.0).digamma()?).mul(g);
        let by_n = || n.add(1.0).digamma().sub(rest()?).add(logits.neg().logsigmoid()?).mul(g);
        let by_logits = || k.sub(n.mul(logits.sigmoid()?)?).mul(g);
        Ok(vec![wanted(cx, 0, by_k)?, wanted(cx, 1, by_n)?, wanted(cx, 2, by_logits)?])
    });
    Ok(op.output())
}

/// What the logarithm of a factorial has beside `x log x - x`: `log x! - x log x + x`, 0 at 0.
#[track_caller]
pub(crate) fn log_factorial_rest(x: &Tensor) -> Result<Tensor> {
    let kept = Kept::input(x);
    let value = each(&[x], |x| factorial_rest(x[0]))?;
    let op = Op::new("log_factorial_rest", value).input(x, move |g, cx| {
        let x = kept.get(cx);
        x.add(1.0).digamma().sub(x.log()?).mul(g)
    });
    Ok(op.output())
}

/// How far a count `k` is from the number that is expected of `n` with probability `p`:
/// `k log(k / (n p)) + n p - k`.
#[track_caller]
pub(crate) fn count_deviance(k: &Tensor, n: &Tensor, log_p: &Tensor) -> Result<Tensor> {
    let value = each(&[k, n, log_p], |x| number::count_deviance(x[0], x[1], x[2]))?;
    let kept = [Kept::input(k), Kept::input(n), Kept::input(log_p)];
    let op = Op::new("count_deviance", value).inputs(&[Some(k), Some(n), Some(log_p)], move |g, cx| {
        let [k, n, log_p] = [kept[0].get(cx), kept[1].get(cx), kept[2].get(cx)];
        let above = || n.mul(log_p.exp()?).sub(&k);
        let by_k = || k.div(&n).log().sub(&log_p).mul(g);
        let by_n = || above()?.div(&n).mul(g);
        // Not `n p - k`: the probabilities of all classes add up to 1, also where `log_p` is moved away from
        // -inf and has no gradient.
        let by_log_p = || k.neg().mul(g);
        Ok(vec![wanted(cx, 0, by_k)?, wanted(cx, 1, by_n)?, wanted(cx, 2, by_log_p)?])
    });
    Ok(op.output())
}

/// The logarithm of the density of the gamma distribution: `a log b + (a - 1) log x - b x - log Γ(a)` for
/// the shape `a` and the rate `b`.
#[track_caller]
pub(crate) fn log_gamma_density(a: &Tensor, rate: &Tensor, x: &Tensor) -> Result<Tensor> {
    let value = each(&[a, rate, x], |x| log_density(x[0], x[1] * x[2]) + x[1].ln())?;
    let kept = [Kept::input(a), Kept::input(rate), Kept::input(x)];
    let op = Op::new("log_gamma_density", value).inputs(&[Some(a), Some(rate), Some(x)], move |g, cx| {
        let [a, rate, x] = [kept[0].get(cx), kept[1].get(cx), kept[2].get(cx)];
        let by_a = || rate.mul(&x).div(&a).log().add(log_above_digamma(&a)?).mul(g);
        let by_rate = || a.div(&rate).sub(&x).mul(g);
        let by_x = || a.sub(1.0).div(&x).sub(&rate).mul(g);
        Ok(vec![wanted(cx, 0, by_a)?, wanted(cx, 1, by_rate)?, wanted(cx, 2, by_x)?])
    });
    Ok(op.output())
}

/// `log a - ψ(a)`, which is about `1 / (2 a)`.
#[track_caller]
pub(crate) fn log_above_digamma(a: &Tensor) -> Result<Tensor> {
    let kept = Kept::input(a);
    let value = each(&[a], |x| log_minus_digamma(x[0]))?;
    let op = Op::new("log_above_digamma", value).input(a, move |g, cx| {
        let a = kept.get(cx);
        a.reciprocal().sub(a.polygamma(1)?).mul(g)
    });
    Ok(op.output())
}

/// The logarithm of the density of the beta distribution:
/// `(a - 1) log x + (b - 1) log(1 - x) - log B(a, b)`.
#[track_caller]
pub(crate) fn log_beta_density(a: &Tensor, b: &Tensor, x: &Tensor) -> Result<Tensor> {
    let value = each(&[a, b, x], |x| number::log_beta_density(x[0], x[1], x[2]))?;
    let kept = [Kept::input(a), Kept::input(b), Kept::input(x)];
    let op = Op::new("log_beta_density", value).inputs(&[Some(a), Some(b), Some(x)], move |g, cx| {
        let [a, b, x] = [kept[0].get(cx), kept[1].get(cx), kept[2].get(cx)];
        let both = || a.add(&b).digamma();
        let by_a = || x.log().add(both()?).sub(a.digamma()?).mul(g);
        let by_b = || x.neg().log1p().add(both()?).sub(b.digamma()?).mul(g);
        let by_x = || {
            let below = a.sub(1.0).div(&x)?;
            below.sub(b.sub(1.0).div(x.neg().add(1.0)?)?).mul(g)
        };
        Ok(vec![wanted(cx, 0, by_a)?, wanted(cx, 1, by_b)?, wanted(cx, 2, by_x)?])
    });
    Ok(op.output())
}

/// `log Γ(a) + log Γ(b) - log Γ(a + b)`.
#[track_caller]
pub(crate) fn log_beta(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let value = each(&[a, b], |x| number::log_beta(x[0], x[1]))?;
    let (a_kept, b_kept) = (Kept::input(a), Kept::input(b));
    let op = Op::new("log_beta", value).inputs(&[Some(a), Some(b)], move |g, cx| {
        let (a, b) = (a_kept.get(cx), b_kept.get(cx));
        let both = || a.add(&b).digamma();
        let by_a = || a.digamma().sub(both()?).mul(g);
        let by_b = || b.digamma().sub(both()?).mul(g);
        Ok(vec![wanted(cx, 0, by_a)?, wanted(cx, 1, by_b)?])
    });
    Ok(op.output())
}

/// `x log(x / m) + m - x`.
#[track_caller]
pub(crate) fn deviance(x: &Tensor, m: &Tensor) -> Result<Tensor> {
    let value = each(&[x, m], |x| deviance_of(x[0], x[1]))?;
    let kept = [Kept::input(x), Kept::input(m)];
    let op = Op::new("deviance", value).inputs(&[Some(x), Some(m)], move |g, cx| {
        let [x, m] = [kept[0].get(cx), kept[1].get(cx)];
        let by_x = || x.div(&m).log().mul(g);
        let by_m = || m.sub(&x).div(&m).mul(g);
        Ok(vec![wanted(cx, 0, by_x)?, wanted(cx, 1, by_m)?])
    });
    Ok(op.output())
}

/// `log Γ(y) - log Γ(x) - (y - x) ψ(x) - deviance(y, x)`.
#[track_caller]
pub(crate) fn gamma_rest(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let value = each(&[x, y], |x| number::gamma_rest(x[0], x[1]))?;
    let kept = [Kept::input(x), Kept::input(y)];
    let op = Op::new("gamma_rest", value).inputs(&[Some(x), Some(y)], move |g, cx| {
        let [x, y] = [kept[0].get(cx), kept[1].get(cx)];
        let by_x = || y.sub(&x).mul(x.reciprocal()?.sub(x.polygamma(1)?)?).mul(g);
        let by_y = || log_above_digamma(&x)?.sub(log_above_digamma(&y)?).mul(g);
        Ok(vec![wanted(cx, 0, by_x)?, wanted(cx, 1, by_y)?])
    });
    Ok(op.output())
}

/// `log Γ(a + ½) - log Γ(a)`.
#[track_caller]
pub(crate) fn log_gamma_half_step(a: &Tensor) -> Result<Tensor> {
    let kept = Kept::input(a);
    let value = each(&[a], |x| number::log_gamma_half_step(x[0]))?;
    let op = Op::new("log_gamma_half_step", value).input(a, move |g, cx| {
        let a = kept.get(cx);
        a.add(0.5).digamma().sub(a.digamma()?).mul(g)
    });
    Ok(op.output())
}

/// `log(1 + x²)`, also where `x²` overflows.
#[track_caller]
pub(crate) fn log1p_square(x: &Tensor) -> Result<Tensor> {
    let kept = Kept::input(x);
    let value = each(&[x], |x| match x[0].abs() {
        far if far > 1e8 => 2.0 * far.ln(),
        near => (near * near).ln_1p(),
    })?;
    let op = Op::new("log1p_square", value).input(x, move |g, cx| {
        let x = kept.get(cx);
        // 2 x / (1 + x²), whose parts overflow
        let far = x.abs().gt(1.0)?;
        let of_far = far.choose(&x, 1.0)?.reciprocal()?;
        let part = far.choose(&of_far, &x)?;
        part.mul(2.0).div(part.square().add(1.0)?).mul(g)
    });
    Ok(op.output())
}

/// `k log x`, which is 0 for `k = 0` also where `log x` is infinite.
#[track_caller]
pub(crate) fn counted(k: &Tensor, log: &Tensor) -> Result<Tensor> {
    let none = k.eq(0.0)?.logical_and(log.isinf()?)?;
    k.mul(none.choose(0.0, log)?)
}

/// `log(1 - e^-x)`.
#[track_caller]
pub(crate) fn log1m_exp(x: &Tensor) -> Result<Tensor> {
    let kept = Kept::input(x);
    let value = each(&[x], |x| number::log1m_exp(x[0]))?;
    let op = Op::new("log1m_exp", value).input(x, move |g, cx| {
        // 0 / 0 is 0, as where a power of `1 - e^-x` does not depend on `x`
        g.eq(0.0)?.choose(0.0, g.div(kept.get(cx).expm1()?)?)
    });
    Ok(op.output())
}

/// The `order`-th derivative, up to the third, of `A(x) = log((e^x - 1) / x)`: the cumulants of a density
/// proportional to `e^(x t)` for `t` between 0 and 1.
#[track_caller]
pub(crate) fn unit_cumulant(x: &Tensor, order: usize) -> Result<Tensor> {
    const ORDERS: [fn(&[f64]) -> f64; 4] = [
        |x| number::unit_cumulant(x[0], 0),
        |x| number::unit_cumulant(x[0], 1),
        |x| number::unit_cumulant(x[0], 2),
        |x| number::unit_cumulant(x[0], 3),
    ];
    let op = Op::new("unit_cumulant", each(&[x], ORDERS[order])?);
    if order == 3 {
        let kept = Kept::input(x);
        return Ok(op
            .input_once(x, move |g, cx| g.mul(&each(&[&kept.get(cx)], |x| number::unit_cumulant(x[0], 4))?))
            .output());
    }
    let kept = Kept::input(x);
    Ok(op.input(x, move |g, cx| unit_cumulant(&kept.get(cx), order + 1)?.mul(g)).output())
}
