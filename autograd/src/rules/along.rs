//! Derivatives of the ops along one dim.

use crate::Tensor;
use crate::chain::*;
use crate::rules::kernel;
use namegrad_core::ops::gradients;
use namegrad_core::{DType, Result, keep};
use namegrad_macros::derivatives;

derivatives! { along; |g, cx|
    softmax(x; dim) -> y {
        x: [y; dim] (g - (g * y).sum(keep(dim))?) * y => kernel(gradients::softmax(y.value(), g.value(), dim)?)
    }
    log_softmax(x; dim) -> y {
        x: [y; dim] g - y.exp()? * g.sum(keep(dim))? => kernel(gradients::log_softmax(y.value(), g.value(), dim)?)
    }
    cumsum(x; dim) -> y { x: [; dim] reversed_cumsum(g, dim)? }
    cumprod(x; dim) -> y {
        x: [x; dim] cumprod_gradient(g, x, dim, cumprod_by_products)? => cumprod_gradient(g, x, dim, cumprod_by_first_zeros)?
    }
    logcumsumexp(x; dim) -> y {
        x: [x y; dim] logcumsumexp_gradient(g, x, y, dim)? => kernel(gradients::logcumsumexp(x.value(), g.value(), dim)?)
    }
}

fn reversed_cumsum(g: &Tensor, dim: usize) -> Result<Tensor> {
    if g.ndim() == 0 { Ok(g.clone()) } else { g.flip(dim).cumsum(dim).flip(dim) }
}

/// The gradient of `x[i]`, which is a factor of `y[i]` and of all later outputs: `Σ g[j] y[j] / x[i]` over
/// `j ≥ i`; `beside_zeros` computes it, from `g` and `x`, if there are zeros. Both compute in `f64`: a
/// product may be out of the range of a dtype when its gradient is not.
fn cumprod_gradient(
    g: &Tensor,
    x: &Tensor,
    dim: usize,
    beside_zeros: fn(&Tensor, &Tensor, usize) -> Result<Tensor>,
) -> Result<Tensor> {
    if x.ndim() == 0 || x.sizes()[dim] == 1 {
        return Ok(g.clone());
    }
    let (g, x, dtype) = (&g.to(DType::F64)?, &x.to(DType::F64)?, g.dtype());
    let is = |marks: Result<Tensor>| marks?.numbers()?.is_true_everywhere();
    let products = x.cumprod(dim)?;
    let gradient = match (is(x.isfinite())?, is(x.ne(0))?) {
        (true, false) => beside_zeros(g, x, dim)?,
        (finite, true) if !finite || is(products.isfinite().logical_and(products.ne(0)?))? => {
            reversed_cumsum(&g.mul(&products)?, dim).div(x)?
        }
        // The products of all are out of range, and those without one element need not be; or infinity and NaN
        // are beside zeros.
        _ => cumprod_by_products(g, x, dim)?,
    };
    gradient.to(dtype)
}

/// If `x[i]` is zero, its gradient is the product of the elements before it, times the sum of `g[j]` times the
/// product of the elements between.
fn cumprod_by_products(g: &Tensor, x: &Tensor, dim: usize) -> Result<Tensor> {
    let n = x.sizes()[dim];
    let before = Tensor::cat(&[&x.narrow(dim, 0, 1).ones_like()?, &x.narrow(dim, 0, n - 1)?], dim)?;
    before.cumprod(dim).mul(&reversed_recurrence(&from(x, 1, dim)?, g, dim)?)
}

/// The same gradient, not to be differentiated. Only the factors before the first zero of a lane, and the zero
/// itself, have one: the products of all later factors contain the zero.
fn cumprod_by_first_zeros(g: &Tensor, x: &Tensor, dim: usize) -> Result<Tensor> {
    let zero = x.eq(0)?;
    let zeros = zero.cumsum(dim)?;
    let (past, first) = (zeros.gt(0)?, zero.logical_and(zeros.eq(1)?)?);
    let before = reversed_cumsum(&g.mul(x.cumprod(dim)?).masked_fill(&past, 0.0)?, dim)?;
    let before = before.div(&x.masked_fill(&past, 1.0)?).masked_fill(&past, 0.0)?;
    let without = x.masked_fill(&first, 1.0).cumprod(dim)?;
    let of_first = g.mul(&without).masked_fill(&past.logical_not()?, 0.0).sum(keep(dim))?;
    first.choose(&of_first, &before)
}

/// The gradient of `x[i]`: `Σ g[j] exp(x[i] - y[j])` over `j ≥ i`, as `exp(x[i] - y[i])` times a sum whose
/// factors `exp(y[i] - y[i+1])` are at most 1. It is NaN at positive infinity, and 0 at negative infinity.
fn logcumsumexp_gradient(g: &Tensor, x: &Tensor, y: &Tensor, dim: usize) -> Result<Tensor> {
    let infinite = y.isinf()?;
    let exp = |difference: Tensor| difference.masked_fill(&infinite, f64::NEG_INFINITY).exp();
    let share = (x - y).masked_fill(&y.eq(f64::NEG_INFINITY)?, f64::NEG_INFINITY).exp()?;
    if x.ndim() == 0 {
        return share.mul(g);
    }
    // `y` never decreases; after the last element, where `from` has a 0, the difference is meaningless.
    let decay = (y - from(y, 1, dim)?).clamp_max(0.0)?;
    share.mul(&reversed_recurrence(&exp(decay)?, g, dim)?)
}

/// The elements `step` positions further along `dim`; zeros past the end.
fn from(x: &Tensor, step: usize, dim: usize) -> Result<Tensor> {
    let n = x.sizes()[dim];
    let step = step.min(n);
    Tensor::cat(&[&x.narrow(dim, step as isize, n - step)?, &x.narrow(dim, 0, step).zeros_like()?], dim)
}

/// Computes `r[i] = b[i] + a[i] r[i+1]` from the last to the first, in steps that double: if `a` has the
/// products and `r` the sums over the next `step` positions, `r[i] + a[i] r[i+step]` are the sums over twice
/// as many.
fn reversed_recurrence(a: &Tensor, b: &Tensor, dim: usize) -> Result<Tensor> {
    let (mut a, mut r) = (a.clone(), b.clone());
    let mut step = 1;
    while step < r.sizes()[dim] {
        r = r.add(a.mul(from(&r, step, dim)?)?)?;
        a = a.mul(from(&a, step, dim)?)?;
        step *= 2;
    }
    Ok(r)
}
