//! Derivatives of the ops that pick along a dim: the values are gathered from the places that core finds, so that their gradient goes to these.

use crate::op::{Kept, Op};
use crate::{Cx, Tensor};
use namegrad_core::ops::pick::kernels;
use namegrad_core::{NamedTensor, Picked, Result};

macro_rules! pick_rows {
    ($($(#[doc = $doc:literal])* $name:ident $($name_keepdim:ident)? [$rule:literal] $args:tt)*) => {
        /// Each op of this file with its derivative.
        pub(crate) const ROWS: &[crate::rules::Row] = &[$(crate::rules::Row {
            op: stringify!($name),
            gradients: &[("x", "g.new_zeros(cx.sizes())?.scatter_add(indices, g, *dim)?")],
        }),*];
    };
}
namegrad_core::pick_ops!(pick_rows);

/// The elements of `x` at the places `found` along `dim`.
#[track_caller]
pub(crate) fn pick(
    op: &'static str,
    x: &Tensor,
    found: NamedTensor,
    dim: Option<usize>,
    keepdim: bool,
) -> Result<Picked<Tensor>> {
    let indices = Tensor::constant(kernels::placed(x.value(), found.clone(), dim, keepdim)?);
    let Some(dim) = dim else { return Ok(Picked { values: only(op, x, found, keepdim)?, indices }) };
    let values = x.gather(&Tensor::constant(found), dim)?;
    Ok(Picked { values: if keepdim { values } else { values.squeeze(dim)? }, indices })
}

/// The one element of `x` at place `found`. Its gradient is shared evenly by all that equal it, so that it does not depend on the order of elements.
#[track_caller]
fn only(op: &'static str, x: &Tensor, found: NamedTensor, keepdim: bool) -> Result<Tensor> {
    let flat = x.value().unnamed().reshape([-1])?;
    let value = kernels::placed(x.value(), flat.gather(&found, 0)?, None, keepdim)?;
    let (kept, result) = (Kept::input(x), Kept::output(&value));
    let evenly = move |g: &Tensor, cx: &Cx<'_>| {
        let (x, y) = (kept.get(cx), result.get(cx));
        let tied = x.eq(&y)?.logical_or(x.isnan()?.logical_and(y.isnan()?)?)?.to(x.dtype())?;
        g.mul(&tied)?.div(&tied.sum(..)?)
    };
    Ok(Op::new(op, value).input(x, evenly).output())
}
