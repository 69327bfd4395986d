//! Derivatives of reductions. `spread` broadcasts a reduced tensor back to the sizes of the input.

use crate::chain::*;
use crate::lists;
use crate::rules::shape::inverse;
use crate::{Cx, Tensor};
use namegrad_core::args::Over;
use namegrad_core::{DType, Result, keep};
use namegrad_macros::derivatives;

derivatives! { reduce; |g, cx|
    sum(x; dim) -> y { x: [; dim] spread(g, cx, dim)? }
    mean(x; dim) -> y { x: [; dim] mean_gradient(g, cx, dim)? }
    prod(x; dim) -> y {
        x: [x; dim] spread(g, cx, dim)? * products_of_others(x, dim, before_and_after)?
            => spread(g, cx, dim).mul(&products_of_others(x, dim, by_count_of_zeros)?)?
    }
    amax(x; dim) -> y { x: [x y; dim] evenly(g, x, y, cx, dim)? }
    amin(x; dim) -> y { x: [x y; dim] evenly(g, x, y, cx, dim)? }
    logsumexp(x; dim) -> y {
        x: [x y; dim] spread(g, cx, dim)? * (x - not_vanished(&spread(y, cx, dim)?)?).exp()? => spread(g, cx, dim).mul(&shares(x, dim)?)?
    }
    var(x; dim, correction) -> y { x: [x; dim correction] var_gradient(g, x, cx, dim, correction)? }
    std(x; dim, correction) -> y { x: [x y; dim correction] std_gradient(g, x, y, cx, dim, correction)? }
    var_mean(x; dim, correction) -> (var, mean) {
        x: [x; dim correction] var_gradient(g_var, x, cx, dim, correction)? + mean_gradient(g_mean, cx, dim)?
    }
    std_mean(x; dim, correction) -> (std, mean) {
        x: [x std; dim correction] std_gradient(g_std, x, std, cx, dim, correction)? + mean_gradient(g_mean, cx, dim)?
    }
    aminmax(x; dim) -> (min, max) { x: [x min max; dim] evenly(g_min, x, min, cx, dim)? + evenly(g_max, x, max, cx, dim)? }
    vector_norm(x; dim, ord) -> y {
        x: [x y; dim ord] vector_norm_gradient(g, x, y, cx, dim, ord)?
    }
    nansum(x; dim) -> y {
        x: [x; dim] spread(g, cx, dim).masked_fill(&x.isnan()?, 0.0)?
    }
    nanmean(x; dim) -> y {
        x: [x; dim] nanmean_gradient(g, x, cx, dim)?
    }
    norm(x; dim) -> y {
        x: [x y; dim] norm_gradient(g, x, y, cx, dim)?
    }
    count_nonzero all any constant;
}

/// The number of elements that were reduced to one.
fn count(cx: &Cx<'_>, dims: &Over) -> f64 {
    dims.iter().map(|dim| cx.sizes()[*dim] as f64).product()
}

/// `g / n`, repeated over the dims that were reduced.
fn mean_gradient(g: &Tensor, cx: &Cx<'_>, dims: &Over) -> Result<Tensor> {
    spread(&g.div(count(cx, dims))?, cx, dims)
}

/// A reduced tensor, repeated over the dims that were reduced.
fn spread(g: &Tensor, cx: &Cx<'_>, dims: &Over) -> Result<Tensor> {
    let mut g = g.clone();
    if !dims.keep {
        for dim in 0..cx.sizes().len() {
            if dims.contains(&dim) {
                g = g.unsqueeze(dim as isize)?;
            }
        }
    }
    g.expand(cx.sizes())
}

/// For each element, the product of the others that it was multiplied with; `beside_zeros` computes it if there
/// are zeros, which the product of all cannot be divided by. Both compute in `f64`: the product of all may be
/// out of the range of a dtype when those of the others are not. If it is out of that of `f64`, the products
/// are formed one by one.
fn products_of_others(
    x: &Tensor,
    dims: &Over,
    beside_zeros: fn(&Tensor, &Over) -> Result<Tensor>,
) -> Result<Tensor> {
    if lists::product_at(x.sizes(), dims) == 1 {
        return x.ones_like();
    }
    let (x, dtype) = (&x.to(DType::F64)?, x.dtype());
    let is = |marks: Result<Tensor>| marks?.numbers()?.is_true_everywhere();
    let products = match (is(x.isfinite())?, is(x.ne(0))?) {
        (true, false) => beside_zeros(x, dims)?,
        (finite, true) => {
            let all = x.prod(keep(&**dims))?;
            match finite && !is(all.isfinite().logical_and(all.ne(0)?))? {
                true => before_and_after(x, dims)?,
                false => all.div(x)?,
            }
        }
        // Infinity or NaN beside zeros, with which their products are NaN.
        (false, false) => before_and_after(x, dims)?,
    };
    products.to(dtype)
}

/// The product of the elements before, times the product of the elements after, with the reduced dims flattened
/// into a last dim.
fn before_and_after(x: &Tensor, dims: &Over) -> Result<Tensor> {
    let n = lists::product_at(x.sizes(), dims);
    let mut order = lists::others(x.ndim(), dims);
    order.extend_from_slice(dims);
    let ordered = x.permute(&order)?;
    let lanes = ordered.reshape([x.numel() / n, n])?;
    let before = products_before(&lanes)?;
    let after = products_before(&lanes.flip(1)?).flip(1)?;
    before.mul(&after).reshape(ordered.sizes()).permute(inverse(&order))
}

/// The same products, not to be differentiated: a lane with one zero has a product for the zero alone, and one
/// with more has none. No product of few factors overflows when that of all does not.
fn by_count_of_zeros(x: &Tensor, dims: &Over) -> Result<Tensor> {
    let zero = x.eq(0)?;
    let zeros = zero.sum(keep(&**dims))?;
    let nonzero = x.masked_fill(&zero, 1.0)?;
    let vanishes = zero.logical_not().logical_and(zeros.gt(0)?).logical_or(zeros.gt(1)?)?;
    nonzero.prod(keep(&**dims)).div(&nonzero).masked_fill(&vanishes, 0.0)
}

/// The share of each element in the sum of the exponentials, from the elements: a rounded logarithm would
/// lose digits. Not to be differentiated.
fn shares(x: &Tensor, dims: &Over) -> Result<Tensor> {
    if x.numel() == 0 {
        return x.zeros_like();
    }
    let wide = x.to(x.dtype().compute())?;
    let most = wide.amax(keep(&**dims))?;
    let terms = wide.sub(&not_vanished(&most)?).exp()?;
    let sum = terms.sum(keep(&**dims))?;
    // The difference of two infinities is NaN; the other shares are 0.
    terms.div(&sum.masked_fill(&most.isinf()?, 1.0)?).to(x.dtype())
}

/// In each row of a matrix, for each element, the product of the elements before it: first of one element,
/// then of two, four, and so on.
fn products_before(x: &Tensor) -> Result<Tensor> {
    let [rows, n] = [x.sizes()[0], x.sizes()[1]];
    let shifted =
        |x: &Tensor, by: usize| Tensor::cat(&[&x.new_ones([rows, by])?, &x.narrow(1, 0, n - by)?], 1);
    let mut products = shifted(x, 1)?;
    let mut step = 1;
    while step < n {
        products = products.mul(&shifted(&products, step)?)?;
        step *= 2;
    }
    Ok(products)
}

/// The gradient, shared equally by the elements that equal the result.
fn evenly(g: &Tensor, x: &Tensor, y: &Tensor, cx: &Cx<'_>, dims: &Over) -> Result<Tensor> {
    let tied = x.eq(&spread(y, cx, dims)?).to(x.dtype())?;
    spread(g, cx, dims).mul(&tied).div(&tied.sum(keep(&**dims))?)
}

/// Replaces the logarithms of 0 by 0, because the difference of two of them would be NaN.
fn not_vanished(y: &Tensor) -> Result<Tensor> {
    y.masked_fill(&y.eq(f64::NEG_INFINITY)?, 0.0)
}

/// The denominator of a variance.
fn degrees_of_freedom(cx: &Cx<'_>, dims: &Over, correction: f64) -> f64 {
    let left = count(cx, dims) - correction;
    if left < 0.0 { 0.0 } else { left } // NaN stays NaN
}

/// `2 (x - mean) / (n - correction)`.
fn var_gradient(g: &Tensor, x: &Tensor, cx: &Cx<'_>, dims: &Over, correction: f64) -> Result<Tensor> {
    let slope = 2.0 / degrees_of_freedom(cx, dims, correction);
    let gradient = spread(g, cx, dims).mul(&x.sub(&x.mean(keep(&**dims))?)?).mul(slope)?;
    where_used(gradient, g, cx, dims, correction)
}

/// Without degrees of freedom, the derivative is not finite. If the incoming gradient is zero, such as that
/// of the variance when only the mean is used, the result is zero anyway. Non-finite gradients have no second
/// derivative.
fn where_used(gradient: Tensor, g: &Tensor, cx: &Cx<'_>, dims: &Over, correction: f64) -> Result<Tensor> {
    if degrees_of_freedom(cx, dims, correction) > 0.0 {
        return Ok(gradient);
    }
    Ok(gradient.masked_fill(&spread(g, cx, dims).eq(0)?, 0.0)?.detach())
}

/// `(x - mean) / ((n - correction) std)`, and 0 where `std` is 0.
fn std_gradient(
    g: &Tensor,
    x: &Tensor,
    y: &Tensor,
    cx: &Cx<'_>,
    dims: &Over,
    correction: f64,
) -> Result<Tensor> {
    let zero = y.eq(0)?;
    let g_where = g.masked_fill(&zero, 0.0)?;
    let slope = g_where.div(&y.masked_fill(&zero, 1.0).mul(degrees_of_freedom(cx, dims, correction))?)?;
    let gradient = spread(&slope, cx, dims).mul(&x.sub(&x.mean(keep(&**dims))?)?)?;
    where_used(gradient, g, cx, dims, correction)
}

/// `1 / n` for the `n` elements that are not NaN.
fn nanmean_gradient(g: &Tensor, x: &Tensor, cx: &Cx<'_>, dims: &Over) -> Result<Tensor> {
    let nan = x.isnan()?;
    let count = nan.logical_not().sum(keep(&**dims))?;
    spread(g, cx, dims).div(&count).masked_fill(&nan, 0.0)
}

/// `sign(x) (|x| / norm)^(ord - 1)`, and 0 where `x` or the norm is 0. For an infinite order, the gradient is
/// shared equally by the elements that equal the norm.
fn vector_norm_gradient(
    g: &Tensor,
    x: &Tensor,
    y: &Tensor,
    cx: &Cx<'_>,
    dims: &Over,
    ord: f64,
) -> Result<Tensor> {
    if ord == 2.0 {
        return norm_gradient(g, x, y, cx, dims);
    }
    if ord == 0.0 {
        return x.zeros_like();
    }
    if ord.is_infinite() {
        return evenly(g, &x.abs()?, y, cx, dims).mul(&x.sign()?);
    }
    let g = spread(g, cx, dims).mul(&x.sign()?)?;
    if ord == 1.0 {
        return Ok(g);
    }
    let norm = spread(y, cx, dims)?;
    let mut zero = x.eq(0).logical_or(norm.eq(0)?)?;
    if ord < 0.0 {
        // Beside finite elements, an infinite one has no part in the norm.
        zero = zero.logical_or(x.isinf()?.logical_and(norm.isfinite()?)?)?;
    }
    let norm = norm.masked_fill(&zero, 1.0)?;
    let ratio = x.abs().div(&norm).masked_fill(&zero, 1.0)?;
    g.mul(&ratio.pow(ord - 1.0)?).masked_fill(&zero, 0.0)
}

/// `x / norm`, and 0 where the norm is 0.
fn norm_gradient(g: &Tensor, x: &Tensor, y: &Tensor, cx: &Cx<'_>, dims: &Over) -> Result<Tensor> {
    let zero = y.eq(0)?;
    // First the ratio, which is at most 1: `g / y` overflows if the norm is small.
    let ratio = x.div(&spread(&y.masked_fill(&zero, 1.0)?, cx, dims)?)?;
    spread(&g.masked_fill(&zero, 0.0)?, cx, dims).mul(&ratio)
}
