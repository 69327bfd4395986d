//! Derivatives of the reductions. `spread` brings what was reduced back to the sizes of the input.

use crate::{Cx, Tensor};
use namegrad_core::Axes;
use namegrad_core::Result;
use namegrad_core::ops::reduce::kernels;

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
        x: [x; dims keepdim] spread(g, cx, dims, *keepdim)? * (x - x.mean_keepdim(dims)?) * (2.0 / (count(cx, dims) - 1.0).max(0.0))
    }
    std(x; dims: Axes, keepdim: bool) -> y {
        x: [x y; dims keepdim] std_gradient(g, x, y, cx, dims, *keepdim)?
    }
    norm(x; dims: Axes, keepdim: bool) -> y {
        x: [x y; dims keepdim] norm_gradient(g, x, y, cx, dims, *keepdim)?
    }
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
    let zero = x.eq(0)?;
    let zeros = zero.to(x.dtype())?.sum_keepdim(dims)?;
    let others = x.masked_fill(&zero, 1.0)?.prod_keepdim(dims)?;
    // No zero: the product over x. One zero: it alone sees the product of the rest. More: everyone sees a zero.
    let without = others.masked_fill(&zeros.gt(0)?, 0.0)?.div(&x.masked_fill(&zero, 1.0)?)?;
    let at_zero = others.masked_fill(&zeros.ne(1)?, 0.0)?.mul(&zero.to(x.dtype())?)?;
    without.add(&at_zero)
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

/// `(x - mean) / ((n - 1) std)`; where the deviation is 0 the gradient is 0.
fn std_gradient(
    g: &Tensor,
    x: &Tensor,
    y: &Tensor,
    cx: &Cx<'_>,
    dims: &Axes,
    keepdim: bool,
) -> Result<Tensor> {
    let slope = g.div(&y.mul((count(cx, dims) - 1.0).max(0.0))?)?.masked_fill(&y.eq(0)?, 0.0)?;
    spread(&slope, cx, dims, keepdim)?.mul(&x.sub(&x.mean_keepdim(dims)?)?)
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
