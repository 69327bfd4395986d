//! Derivatives of the reductions. `spread` brings what was reduced back to the sizes of the input.

use crate::rules::shape::inverse;
use crate::{Cx, Tensor};
use namegrad_core::ops::reduce::kernels;
use namegrad_core::{Axes, Result, Scalar};

rules! { in kernels; |g, cx|
    sum(x; dims: Axes, keepdim: bool) -> y { x: [; dims keepdim] spread(g, cx, dims, *keepdim)? }
    mean(x; dims: Axes, keepdim: bool) -> y { x: [; dims keepdim] spread(&g.div(count(cx, dims))?, cx, dims, *keepdim)? }
    prod(x; dims: Axes, keepdim: bool) -> y { x: [x; dims keepdim] spread(g, cx, dims, *keepdim)? * products_of_others(x, dims)? }
    amax(x; dims: Axes, keepdim: bool) -> y { x: [x y; dims keepdim] evenly(g, x, y, cx, dims, *keepdim)? }
    amin(x; dims: Axes, keepdim: bool) -> y { x: [x y; dims keepdim] evenly(g, x, y, cx, dims, *keepdim)? }
    logsumexp(x; dims: Axes, keepdim: bool) -> y {
        x: [x y; dims keepdim] spread(g, cx, dims, *keepdim)? * (x - finite(&spread(y, cx, dims, *keepdim)?)?).exp()?
    }
    var(x; dims: Axes, keepdim: bool) -> y {
        x: [x; dims keepdim] var_gradient(g, x, cx, dims, *keepdim, 1.0)?
    }
    var_corrected(x; dims: Axes, keepdim: bool, correction: f64) -> y {
        x: [x; dims keepdim correction] var_gradient(g, x, cx, dims, *keepdim, *correction)?
    }
    std(x; dims: Axes, keepdim: bool) -> y {
        x: [x y; dims keepdim] std_gradient(g, x, y, cx, dims, *keepdim, 1.0)?
    }
    std_corrected(x; dims: Axes, keepdim: bool, correction: f64) -> y {
        x: [x y; dims keepdim correction] std_gradient(g, x, y, cx, dims, *keepdim, *correction)?
    }
    vector_norm(x; dims: Axes, keepdim: bool, ord: f64) -> y {
        x: [x y; dims keepdim ord] vector_norm_gradient(g, x, y, cx, dims, *keepdim, *ord)?
    }
    nansum(x; dims: Axes, keepdim: bool) -> y {
        x: [x; dims keepdim] spread(g, cx, dims, *keepdim)?.masked_fill(&x.isnan()?, 0.0)?
    }
    nanmean(x; dims: Axes, keepdim: bool) -> y {
        x: [x; dims keepdim] nanmean_gradient(g, x, cx, dims, *keepdim)?
    }
    norm(x; dims: Axes, keepdim: bool) -> y {
        x: [x y; dims keepdim] norm_gradient(g, x, y, cx, dims, *keepdim)?
    }
}

constants! { in kernels;
    count_nonzero(x; dims: Axes, keepdim: bool)
}

#[track_caller]
pub(crate) fn all(x: &Tensor, dims: &Axes, keepdim: &bool) -> Result<Tensor> {
    Ok(Tensor::constant(kernels::all(x.value(), dims.clone(), *keepdim)?))
}

#[track_caller]
pub(crate) fn any(x: &Tensor, dims: &Axes, keepdim: &bool) -> Result<Tensor> {
    Ok(Tensor::constant(kernels::any(x.value(), dims.clone(), *keepdim)?))
}

/// The number of elements that became one.
fn count(cx: &Cx<'_>, dims: &Axes) -> f64 {
    dims.iter().map(|dim| cx.sizes()[*dim] as f64).product()
}

/// A reduced tensor, repeated over the dims that were reduced.
fn spread(g: &Tensor, cx: &Cx<'_>, dims: &Axes, keepdim: bool) -> Result<Tensor> {
    let mut g = g.clone();
    if !keepdim {
        let mut sorted = dims.clone();
        sorted.sort_unstable();
        for dim in sorted {
            g = g.unsqueeze(dim as isize)?;
        }
    }
    g.expand(cx.sizes())
}

/// For each element the product of the others it was multiplied with. Where one of them is zero, dividing the product is no way.
fn products_of_others(x: &Tensor, dims: &Axes) -> Result<Tensor> {
    let n: usize = dims.iter().map(|dim| x.sizes()[*dim]).product();
    if n == 1 {
        return x.ones_like();
    }
    if x.eq(0)?.any(..)?.item()? == Scalar::Bool(false) {
        return x.prod_keepdim(dims)?.div(x);
    }
    // The product of those before times that of those after, along all dims as one behind the others.
    let order: Axes = (0..x.ndim()).filter(|dim| !dims.contains(dim)).chain(dims.iter().copied()).collect();
    let ordered = x.permute(&order)?;
    let lanes = ordered.reshape([x.numel() / n, n])?;
    let before = products_before(&lanes)?;
    let after = products_before(&lanes.flip(1)?)?.flip(1)?;
    before.mul(&after)?.reshape(ordered.sizes())?.permute(inverse(&order))
}

/// In each row of a matrix, for each element the product of those before it: of the one before, then of two, four...
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

/// The gradient shared evenly by the elements that equal the result.
fn evenly(g: &Tensor, x: &Tensor, y: &Tensor, cx: &Cx<'_>, dims: &Axes, keepdim: bool) -> Result<Tensor> {
    let tied = x.eq(&spread(y, cx, dims, keepdim)?)?.to(x.dtype())?;
    spread(g, cx, dims, keepdim)?.mul(&tied)?.div(&tied.sum_keepdim(dims)?)
}

/// Zeros for what is infinite: `inf - inf` would be NaN.
fn finite(y: &Tensor) -> Result<Tensor> {
    y.masked_fill(&y.isinf()?, 0.0)
}

/// The denominator of a variance.
fn degrees_of_freedom(cx: &Cx<'_>, dims: &Axes, correction: f64) -> f64 {
    (count(cx, dims) - correction).max(0.0)
}

/// `2 (x - mean) / (n - correction)`.
fn var_gradient(
    g: &Tensor,
    x: &Tensor,
    cx: &Cx<'_>,
    dims: &Axes,
    keepdim: bool,
    correction: f64,
) -> Result<Tensor> {
    let slope = 2.0 / degrees_of_freedom(cx, dims, correction);
    spread(g, cx, dims, keepdim)?.mul(&x.sub(&x.mean_keepdim(dims)?)?)?.mul(slope)
}

/// `(x - mean) / ((n - correction) std)`; where the deviation is 0 the gradient is 0.
fn std_gradient(
    g: &Tensor,
    x: &Tensor,
    y: &Tensor,
    cx: &Cx<'_>,
    dims: &Axes,
    keepdim: bool,
    correction: f64,
) -> Result<Tensor> {
    let slope = g.div(&y.mul(degrees_of_freedom(cx, dims, correction))?)?.masked_fill(&y.eq(0)?, 0.0)?;
    spread(&slope, cx, dims, keepdim)?.mul(&x.sub(&x.mean_keepdim(dims)?)?)
}

/// `1 / n` for the `n` elements that are not NaN.
fn nanmean_gradient(g: &Tensor, x: &Tensor, cx: &Cx<'_>, dims: &Axes, keepdim: bool) -> Result<Tensor> {
    let nan = x.isnan()?;
    let count = nan.logical_not()?.sum_keepdim(dims)?;
    spread(g, cx, dims, keepdim)?.div(&count)?.masked_fill(&nan, 0.0)
}

/// `sign(x) (|x| / norm)^(ord - 1)`; 0 where `x` or the norm is 0. That of an infinite order is shared evenly by the elements that equal the norm.
fn vector_norm_gradient(
    g: &Tensor,
    x: &Tensor,
    y: &Tensor,
    cx: &Cx<'_>,
    dims: &Axes,
    keepdim: bool,
    ord: f64,
) -> Result<Tensor> {
    if ord == 2.0 {
        return norm_gradient(g, x, y, cx, dims, keepdim);
    }
    if ord == 0.0 {
        return x.zeros_like();
    }
    if ord.is_infinite() {
        return evenly(g, &x.abs()?, y, cx, dims, keepdim)?.mul(&x.sign()?);
    }
    let g = spread(g, cx, dims, keepdim)?.mul(&x.sign()?)?;
    if ord == 1.0 {
        return Ok(g);
    }
    let norm = spread(y, cx, dims, keepdim)?;
    let zero = x.eq(0)?.logical_or(norm.eq(0)?)?;
    let norm = norm.masked_fill(&zero, 1.0)?;
    let ratio = x.abs()?.div(&norm)?.masked_fill(&zero, 1.0)?;
    g.mul(&ratio.pow(ord - 1.0)?)?.masked_fill(&zero, 0.0)
}

/// `x / norm`; 0 where the norm is 0.
fn norm_gradient(
    g: &Tensor,
    x: &Tensor,
    y: &Tensor,
    cx: &Cx<'_>,
    dims: &Axes,
    keepdim: bool,
) -> Result<Tensor> {
    let zero = y.eq(0)?;
    let slope = g.div(&y.masked_fill(&zero, 1.0)?)?.masked_fill(&zero, 0.0)?;
    spread(&slope, cx, dims, keepdim)?.mul(x)
}
