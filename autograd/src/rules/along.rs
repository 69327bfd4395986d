//! Derivatives of the ops along one dim.

use crate::Tensor;
use namegrad_core::NamedTensor;

rules! { in NamedTensor; |g, cx|
    softmax(x; dim: usize) -> y { x: [y; dim] (g - (g * y).sum_keepdim(*dim)?) * y }
    log_softmax(x; dim: usize) -> y { x: [y; dim] g - y.exp()? * g.sum_keepdim(*dim)? }
    cumsum(x; dim: usize) -> y { x: [; dim] reversed_cumsum(g, *dim)? }
}

fn reversed_cumsum(g: &Tensor, dim: usize) -> namegrad_core::Result<Tensor> {
    if g.ndim() == 0 { Ok(g.clone()) } else { g.flip(dim)?.cumsum(dim)?.flip(dim) }
}

constants! { in NamedTensor;
    argmax(x; dim: usize) argmin(x; dim: usize) argsort(x; dim: usize, descending: bool)
}
