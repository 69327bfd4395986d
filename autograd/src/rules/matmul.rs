//! Derivatives of products. The tape sums the gradients of broadcast batch dims.

use crate::chain::*;
use crate::lists;
use crate::rules::binary::like;
use crate::rules::shape::inverse;
use crate::{Cx, Tensor};
use namegrad_core::args::Paired;
use namegrad_core::args::Positions;
use namegrad_core::{Result, Scalar, keep};
use namegrad_macros::derivatives;

derivatives! { matmul; |g, cx|
    mm(a, b) -> y { a: [b] g.mm(&b.t()?)?, b: [a] right_of_mm(g, a, cx)? }
    mv(a, b) -> y { a: [b] g.outer(b)?, b: [a] a.t().mv(g)? }
    dot(a, b) -> y { a: [b] g * b, b: [a] g * a }
    bmm(a, b) -> y { a: [b] g.bmm(&b.mt()?)?, b: [a] a.mt().bmm(g)? }
    addcmul(x, a, b; value) -> y {
        x: [] g.clone(),
        a: [b; value] scaled(g * b, value)?,
        b: [a; value] scaled(g * a, value)?
    }
    addcdiv(x, a, b; value) -> y {
        x: [] g.clone(),
        a: [b; value] scaled(g / b, value)?,
        b: [a b; value] scaled(-g * (a / b.square()?), value)?
    }
    outer(a, b) -> y { a: [b] g.mv(&*like(g, b)?)?, b: [a] g.t().mv(&*like(g, a)?)? }
    matmul(a, b) -> y { a: [b] left_gradient(g, b, cx)?, b: [a] right_gradient(g, a, cx)? }
    addmm(x, a, b; beta, alpha) -> y {
        x: [; beta] scaled(g.clone(), beta)?,
        a: [b; alpha] scaled(g.mm(&b.t()?)?, alpha)?,
        b: [a; alpha] scaled(right_of_mm(g, a, cx)?, alpha)?
    }
    addmv(x, a, b; beta, alpha) -> y {
        x: [; beta] scaled(g.clone(), beta)?,
        a: [b; alpha] scaled(g.outer(b)?, alpha)?,
        b: [a; alpha] scaled(a.t().mv(g)?, alpha)?
    }
    baddbmm(x, a, b; beta, alpha) -> y {
        x: [; beta] scaled(g.clone(), beta)?,
        a: [b; alpha] scaled(g.bmm(&b.mt()?)?, alpha)?,
        b: [a; alpha] scaled(a.mt().bmm(g)?, alpha)?
    }
    tensordot(x, other; dims, other_dims) -> y {
        x: [other; dims other_dims]
            left_of_pairs(g, other, &pairs([cx.sizes().len(), other.ndim()], dims, other_dims), cx.sizes())?,
        other: [x; dims other_dims]
            right_of_pairs(g, x, &pairs([x.ndim(), cx.sizes().len()], dims, other_dims), cx.sizes())?
    }
    contract(x, other; dims) -> y {
        x: [other; dims] left_of_pairs(g, other, dims, cx.sizes())?,
        other: [x; dims] right_of_pairs(g, x, dims, cx.sizes())?
    }
}

pub(super) fn scaled(g: Tensor, by: Scalar) -> Result<Tensor> {
    if by.to_f64() == 1.0 { Ok(g) } else { g.mul(by) }
}

/// `g bᵀ`, where a vector on either side is a matrix with one row or column.
fn left_gradient(g: &Tensor, b: &Tensor, cx: &Cx<'_>) -> Result<Tensor> {
    match (cx.sizes().len(), b.ndim()) {
        (1, 1) => g.mul(b),
        (_, 1) => g.unsqueeze(-1).mul(b),
        (1, _) => g.unsqueeze(-2).matmul(&b.mt()?).squeeze(-2),
        (_, 2) if g.ndim() > 2 => folded(g).mm(&b.t()?).reshape(cx.sizes()),
        _ => g.matmul(&b.mt()?),
    }
}

/// `aᵀ g` of matrices, with the memory order of the right factor.
fn right_of_mm(g: &Tensor, a: &Tensor, cx: &Cx<'_>) -> Result<Tensor> {
    if cx.is_column_major() { g.t().mm(a).t() } else { a.t().mm(g) }
}

/// `aᵀ g`, where a vector on either side is a matrix with one row or column.
fn right_gradient(g: &Tensor, a: &Tensor, cx: &Cx<'_>) -> Result<Tensor> {
    match (a.ndim(), cx.sizes().len()) {
        (1, 1) => g.mul(a),
        (_, 1) => a.mt().matmul(&g.unsqueeze(-1)?).squeeze(-1),
        (1, _) => a.unsqueeze(-1).mul(&g.unsqueeze(-2)?),
        // one product instead of a batch of products and their sum
        (_, 2) if g.ndim() > 2 => right_of_mm(&folded(g)?, &folded(a)?, cx),
        (2, 2) => right_of_mm(g, a, cx),
        _ => a.mt().matmul(g),
    }
}

/// Flattens all dims but the last.
fn folded(x: &Tensor) -> Result<Tensor> {
    let (cols, rest) = x.sizes().split_last().expect("callers have at least two dims");
    x.reshape([rest.iter().product(), *cols])
}

/// The gradient of the left factor of a sum of products over pairs of dims: a sum of products over the
/// remaining dims of the other factor. `g` has the batch dims, the rows and the columns, in this order.
fn left_of_pairs(g: &Tensor, other: &Tensor, dims: &Paired, sizes: &[usize]) -> Result<Tensor> {
    let ([batch, other_batch], [summed, other_summed]) = (sides(&dims.batch), sides(&dims.summed));
    let other = other.permute([&other_batch[..], &dims.cols, &other_summed].concat())?;
    let count =
        |x: &Tensor, from: usize, length: usize| x.sizes()[from..][..length].iter().product::<usize>();
    let (b, r, c) = (batch.len(), dims.rows.len(), dims.cols.len());
    let (products, rows, cols) = (count(g, 0, b), count(g, b, r), count(g, b + r, c));
    let terms = count(&other, b + c, summed.len());
    let g = g.reshape([products, rows, cols])?;
    let gradient = g.bmm(&other.reshape([products, cols, terms])?)?;
    let kept = [&batch[..], &dims.rows].concat();
    let order = [&kept[..], &summed].concat();
    let made = [&lists::at(sizes, &kept)[..], &other.sizes()[b + c..]].concat();
    let gradient = gradient.reshape(made).permute(inverse(&order))?;
    if gradient.sizes() == sizes {
        return Ok(gradient);
    }
    // A summed dim of size one was paired with a dim of another size: one of the two was repeated.
    let repeated = lists::numbers(sizes.len(), &|dim| summed.contains(&dim) && sizes[dim] == 1);
    gradient.sum(keep(repeated)).expand(sizes)
}

/// The dims of each of two tensors.
fn sides(pairs: &[(usize, usize)]) -> [Vec<usize>; 2] {
    let mut sides = [Vec::with_capacity(pairs.len()), Vec::with_capacity(pairs.len())];
    for (one, other) in pairs {
        sides[0].push(*one);
        sides[1].push(*other);
    }
    sides
}

/// The gradient of the right factor: the gradient of the left factor with the factors swapped.
fn right_of_pairs(g: &Tensor, x: &Tensor, dims: &Paired, sizes: &[usize]) -> Result<Tensor> {
    let (b, r) = (dims.batch.len(), dims.rows.len());
    let mut order: Vec<usize> = crate::list(0..g.ndim());
    order[b..].rotate_left(r);
    left_of_pairs(&g.permute(order)?, x, &dims.exchanged(), sizes)
}

/// The pairs from two lists of dims, for tensors with `ndims` dims.
fn pairs(ndims: [usize; 2], dims: &Positions, other_dims: &Positions) -> Paired {
    Paired::new(ndims, &[], crate::list(dims.iter().copied().zip(other_dims.iter().copied())))
}
