//! Derivatives of rearrangements: the gradient is rearranged back.

use crate::Tensor;
use crate::chain::*;
use namegrad_core::Result;
use namegrad_core::args::OpenShape;
use namegrad_macros::derivatives;

derivatives! { shape; |g, cx|
    transpose(x; dim0, dim1) -> y { x: [; dim0 dim1] g.transpose(dim0, dim1)? }
    t(x) -> y { x: [] g.t()? }
    mt(x) -> y { x: [] g.mt()? }
    permute(x; dims) -> y { x: [; dims] g.permute(inverse(dims))? }
    movedim(x; source, destination) -> y { x: [; source destination] g.movedim(destination, source)? }
    squeeze(x) -> y { x: [] g.reshape(cx.sizes())? }
    unsqueeze(x) -> y { x: [] g.reshape(cx.sizes())? }
    expand(x) -> y { x: [] g.clone() }
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

/// The sum over all copies.
fn sum_repeats(g: &Tensor, sizes: &[usize], repeats: &OpenShape) -> Result<Tensor> {
    let new = repeats.len() - sizes.len();
    let mut parts = Vec::with_capacity(2 * repeats.len());
    for (dim, times) in repeats.iter().enumerate() {
        parts.extend([times.size.unwrap_or(1), dim.checked_sub(new).map_or(1, |own| sizes[own])]);
    }
    let copies: Vec<usize> = (0..repeats.len()).map(|dim| 2 * dim).collect();
    g.reshape(parts).sum(copies).reshape(sizes)
}
