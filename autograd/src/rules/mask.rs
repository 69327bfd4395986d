//! Derivatives of the ops that select elements by mask.

use crate::chain::*;
use crate::{Cx, Tensor};
use namegrad_core::Result;
use namegrad_macros::derivatives;

derivatives! { mask; |g, cx|
    masked_select(x, mask) -> y { x: [mask] put_back(g, mask, cx)? }
}

/// Zeros with the broadcast sizes of the input and the mask, with `g` where the mask is true.
fn put_back(g: &Tensor, mask: &Tensor, cx: &Cx<'_>) -> Result<Tensor> {
    let ndim = mask.ndim().max(cx.sizes().len());
    let mut sizes = vec![1; ndim];
    for shape in [mask.sizes(), cx.sizes()] {
        let from = ndim - shape.len();
        for (d, size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
            sizes[from + d] = *size;
        }
    }
    let mask = mask.expand(&sizes[..]).reshape([-1])?;
    let places = mask.nonzero().reshape([-1])?;
    g.new_zeros(mask.sizes()).index_add(&places, g, 0).reshape(&sizes[..])
}
