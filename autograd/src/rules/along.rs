//! Derivatives of the ops along one dim.

use crate::Tensor;
use crate::rules::kernel;
use namegrad_core::NamedTensor;
use namegrad_core::ops::gradients;

rules! { in NamedTensor; |g, cx|
    softmax(x; dim: usize) -> y {
        x: [y; dim] (g - (g * y).sum_keepdim(*dim)?) * y => kernel(gradients::softmax(y.value(), g.value(), *dim)?)
    }
    log_softmax(x; dim: usize) -> y {
        x: [y; dim] g - y.exp()? * g.sum_keepdim(*dim)? => kernel(gradients::log_softmax(y.value(), g.value(), *dim)?)
    }
    cumsum(x; dim: usize) -> y { x: [; dim] reversed_cumsum(g, *dim)? }
}

fn reversed_cumsum(g: &Tensor, dim: usize) -> namegrad_core::Result<Tensor> {
    if g.ndim() == 0 { Ok(g.clone()) } else { g.flip(dim)?.cumsum(dim)?.flip(dim) }
}

constants! { in NamedTensor;
    argmax(x; dim: usize) argmin(x; dim: usize) argsort(x; dim: usize, descending: bool)
}
