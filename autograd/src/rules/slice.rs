//! Derivatives of slices: the gradient of the part, with zeros elsewhere.

use crate::Tensor;
use crate::chain::*;
use namegrad_core::options::DiagonalOptions;
use namegrad_core::{NamedTensor, Result};
use namegrad_macros::derivatives;

derivatives! { slice; |g, cx|
    narrow(x; dim, start) -> y { x: [; dim start] widen(g, cx.sizes(), dim, start, 1)? }
    slice(x; dim, start, step) -> y {
        x: [; dim start step] widen(g, cx.sizes(), dim, first(start, cx.sizes()[dim]), step)?
    }
    select(x; dim, index) -> y { x: [; dim index] widen(&g.unsqueeze(dim as isize)?, cx.sizes(), dim, index, 1)? }
    diagonal(x; offset, dim1, dim2) -> y { x: [; offset dim1 dim2] onto_diagonal(g, cx.sizes(), offset, dim1, dim2)? }
    unfold(x; dimension, step) -> y { x: [; dimension step] folded(g, cx.sizes(), dimension, step)? }
}

/// The start of a slice as an index that counts from the front.
fn first(start: isize, size: usize) -> isize {
    (if start < 0 { start.saturating_add(size as isize) } else { start }).clamp(0, size as isize)
}

/// Zeros with `sizes`, with `g` at `start`, `start + step`... along `dim`.
fn widen(g: &Tensor, sizes: &[usize], dim: usize, start: isize, step: usize) -> Result<Tensor> {
    let size = sizes[dim] as isize;
    let start = if start < 0 { start + size } else { start };
    if step == 1 {
        let zeros = |length: usize| {
            let mut part = sizes.to_vec();
            part[dim] = length;
            g.new_zeros(&part)
        };
        let after = (size - start) as usize - g.sizes()[dim];
        return Tensor::cat(&[&zeros(start as usize)?, g, &zeros(after)?], dim);
    }
    let places: Vec<i64> = crate::list((0..g.sizes()[dim] as i64).map(|i| start as i64 + i * step as i64));
    let places = Tensor::constant(NamedTensor::from_slice(&places, [places.len()])?);
    g.new_zeros(sizes).index_add(&places, g, dim)
}

/// Zeros with `sizes`, to which each window is added at its position.
fn folded(g: &Tensor, sizes: &[usize], dim: usize, step: usize) -> Result<Tensor> {
    if sizes.is_empty() {
        return g.sum(..); // the only window of a 0-d tensor has at most one element
    }
    let (windows, size) = (g.sizes()[dim], g.sizes()[sizes.len()]);
    let mut places = Vec::with_capacity(windows * size);
    for window in 0..windows {
        for element in 0..size {
            places.push((window * step + element) as i64);
        }
    }
    let places = Tensor::constant(NamedTensor::from_slice(&places, [places.len()])?);
    let g = g.movedim(-1, dim + 1)?.flatten([dim, dim + 1], None)?;
    g.new_zeros(sizes).index_add(&places, &g, dim)
}

/// Zeros with `sizes`, with `g` on a diagonal.
#[track_caller]
pub(crate) fn onto_diagonal(
    g: &Tensor,
    sizes: &[usize],
    offset: isize,
    dim0: usize,
    dim1: usize,
) -> Result<Tensor> {
    // The diagonal of a tensor of positions tells where each element of `g` goes.
    let zeros = g.new_zeros(sizes)?;
    let positions =
        NamedTensor::arange(0, zeros.numel() as i64, 1, namegrad_core::DType::I64)?.reshape(sizes)?;
    let positions =
        positions.diagonal_with(dim0, dim1, DiagonalOptions::new().offset(offset))?.reshape([-1])?;
    let flat = zeros.reshape([-1]).index_add(Tensor::constant(positions), &g.reshape([-1])?, 0)?;
    flat.reshape(sizes)
}
