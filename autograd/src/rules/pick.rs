//! Derivatives of the ops that pick elements along a dim: the gradient goes to the picked positions.

use crate::chain::*;
use crate::op::{Kept, Op};
use crate::{Cx, Tensor};
use namegrad_core::args::Over;
use namegrad_core::{NamedTensor, Picked, Result};
use namegrad_macros::derivatives;

derivatives! { pick; |g, cx|
    max min median nanmedian mode kthvalue (x; dim) -> (values, indices) by reduced;
    sort topk cummax cummin (x; dim) -> (values, indices) by ordered;
    argmax argmin argsort constant;
}

/// Records an op that picks elements along a dim and removes the dim or keeps it with size one.
#[track_caller]
fn reduced(
    op: &'static str,
    x: &Tensor,
    (values, indices): (NamedTensor, NamedTensor),
    dim: Over,
) -> Result<Picked<Tensor>> {
    let Some(at) = dim.one_or_all(op, x.value())? else { return Ok(only(op, x, values, indices)) };
    if dim.keep || x.ndim() == 0 {
        return ordered(op, x, (values, indices), at);
    }
    let places = indices.unnamed();
    let put = move |g: &Tensor, cx: &Cx<'_>| {
        let places = Tensor::constant(places.clone()).unsqueeze(at as isize)?;
        put_back(&g.unsqueeze(at as isize)?, &places, at, cx)
    };
    let values = Op::new(op, values).input(x, put);
    Ok(Picked { values: values.output(), indices: Tensor::constant(indices) })
}

/// Records an op that picks elements along a dim and keeps the dim.
#[track_caller]
fn ordered(
    op: &'static str,
    x: &Tensor,
    (values, indices): (NamedTensor, NamedTensor),
    dim: usize,
) -> Result<Picked<Tensor>> {
    let places = Tensor::constant(indices.unnamed());
    let values = Op::new(op, values).input(x, move |g, cx| put_back(g, &places, dim, cx));
    Ok(Picked { values: values.output(), indices: Tensor::constant(indices) })
}

/// Zeros with the sizes of the input, with `g` at the picked positions.
fn put_back(g: &Tensor, places: &Tensor, dim: usize, cx: &Cx<'_>) -> Result<Tensor> {
    g.new_zeros(cx.sizes()).scatter_add(places, g, dim)
}

/// Records an op that picks one of all elements. The gradient is shared equally by all equal elements, so
/// that it does not depend on their order.
#[track_caller]
fn only(op: &'static str, x: &Tensor, value: NamedTensor, indices: NamedTensor) -> Picked<Tensor> {
    let (kept, result) = (Kept::input(x), Kept::output(&value));
    let evenly = move |g: &Tensor, cx: &Cx<'_>| {
        let (x, y) = (kept.get(cx), result.get(cx));
        let tied = x.eq(&y).logical_or(x.isnan().logical_and(y.isnan()?)?).to(x.dtype())?;
        g.mul(&tied).div(&tied.sum(..)?)
    };
    let values = Op::new(op, value).input(x, evenly).output();
    Picked { values, indices: Tensor::constant(indices) }
}
