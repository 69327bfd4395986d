//! Derivatives of losses.

use crate::Tensor;
use crate::chain::*;
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

/// `g (softmax(x) - onehot(target))`, and 0 where the target is ignored. Like the kernel, it computes half
/// types in `f32` and uses `i64` classes, which can represent every `ignore_index`.
fn cross_entropy_gradient(
    g: &Tensor,
    x: &Tensor,
    target: &Tensor,
    dim: usize,
    ignore_index: isize,
) -> Result<Tensor> {
    let (target, dtype) = (target.to(DType::I64)?, x.dtype().compute());
    let (g, target) = match x.ndim() {
        0 => (g.clone(), target),
        _ => (g.unsqueeze(dim)?, target.unsqueeze(dim)?),
    };
    // Filled before the product: infinity times 0 is NaN, and so is the softmax of NaN.
    let ignored = target.eq(ignore_index as i64)?;
    let g = g.to(dtype).masked_fill(&ignored, 0.0)?;
    let p = x.to(dtype).masked_fill(&ignored, 0.0).softmax(dim)?;
    let classes = x.sizes().get(dim).copied().unwrap_or(1);
    let mut sizes = vec![1; x.ndim()];
    if let Some(size) = sizes.get_mut(dim) {
        *size = classes;
    }
    let classes = NamedTensor::arange(0, classes as i64, 1, DType::I64)?.reshape(sizes)?;
    let hit = target.eq(Tensor::constant(classes)).to(dtype)?;
    g.mul(&p.sub(&hit)?)
}
