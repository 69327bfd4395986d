//! Derivatives of losses.

use crate::Tensor;
use crate::rules::kernel;
use namegrad_core::ops::loss::class_cross_entropy_backward;
use namegrad_core::{DType, NamedTensor, Result};
use namegrad_macros::derivatives;

derivatives! { loss; |g, cx|
    class_cross_entropy(x, target; dim, ignore_index) -> (y; logsumexp) {
        x: [x target logsumexp; dim ignore_index] cross_entropy_gradient(g, x, target, dim, ignore_index)?
            => kernel(class_cross_entropy_backward(
                x.value(), target.value(), logsumexp.value(), g.value(), dim, ignore_index
            )?),
        target: refused
    }
}

/// `g (softmax(x) - onehot(target))`, and 0 where the target is ignored.
fn cross_entropy_gradient(
    g: &Tensor,
    x: &Tensor,
    target: &Tensor,
    dim: usize,
    ignore_index: isize,
) -> Result<Tensor> {
    let ignored = target.eq(ignore_index as i64)?;
    let (g, target, ignored) = match x.ndim() {
        0 => (g.clone(), target.clone(), ignored),
        _ => (g.unsqueeze(dim)?, target.unsqueeze(dim)?, ignored.unsqueeze(dim)?),
    };
    let classes = x.sizes().get(dim).copied().unwrap_or(1);
    let mut sizes = vec![1; x.ndim()];
    if let Some(size) = sizes.get_mut(dim) {
        *size = classes;
    }
    let classes = NamedTensor::arange(0, classes as i64, 1, DType::I64)?.reshape(sizes)?;
    let hit = target.eq(Tensor::constant(classes))?.to(x.dtype())?;
    let slope = x.softmax(dim)?.sub(&hit)?.masked_fill(&ignored, 0.0)?;
    g.mul(&slope)
}
