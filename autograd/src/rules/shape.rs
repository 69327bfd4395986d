//! Derivatives of rearrangements: the gradient is rearranged back.

use crate::Tensor;
use crate::chain::*;
use namegrad_core::Result;
use namegrad_core::args::Expanded;
use namegrad_macros::derivatives;

derivatives! { shape; |g, cx|
    transpose(x; dim0, dim1) -> y { x: [; dim0 dim1] g.transpose(dim0, dim1)? }
    t(x) -> y { x: [] g.t()? }
    mt(x) -> y { x: [] g.mt()? }
    permute(x; dims) -> y { x: [; dims] g.permute(inverse(dims))? }
    movedim(x; source, destination) -> y { x: [; source destination] g.movedim(destination, source)? }
    squeeze(x) -> y { x: [] g.reshape(cx.sizes())? }
    unsqueeze(x) -> y { x: [] g.reshape(cx.sizes())? }
    expand(x; size) -> y { x: [; size] in_order_of(g, size)? }
    view(x) -> y { x: [] g.reshape(cx.sizes())? }
    reshape(x) -> y { x: [] g.reshape(cx.sizes())? }
    flip(x; dims) -> y { x: [; dims] g.flip(dims)? }
    repeat(x; repeats) -> y { x: [; repeats] sum_repeats(g, cx.sizes(), repeats)? }
    contiguous(x) -> y { x: [] g.clone() }
}

/// The permutation that undoes `dims`.
pub(super) fn inverse(dims: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; dims.len()];
    for (to, from) in dims.iter().enumerate() {
        inverse[*from] = to;
    }
    inverse
}

/// The gradient with the dims of the input last and in their order, also if sizes are given by name.
fn in_order_of(g: &Tensor, sizes: &Expanded) -> Result<Tensor> {
    sizes.order().map_or_else(|| Ok(g.clone()), |order| g.permute(order))
}

/// The sum over all copies.
fn sum_repeats(g: &Tensor, sizes: &[usize], repeats: &Expanded) -> Result<Tensor> {
    let g = in_order_of(g, repeats)?;
    let new = g.ndim() - sizes.len();
    let mut parts = Vec::with_capacity(2 * g.ndim());
    for (dim, size) in g.sizes().iter().enumerate() {
        let own = dim.checked_sub(new).map_or(1, |own| sizes[own]);
        parts.extend([size.checked_div(own).unwrap_or(0), own]);
    }
    let copies: Vec<usize> = crate::list((0..g.ndim()).map(|dim| 2 * dim));
    g.reshape(parts).sum(copies).reshape(sizes)
}
