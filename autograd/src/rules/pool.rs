//! Derivatives of pooling: the gradient goes to the largest element, or evenly to all.

use crate::chain::*;
use crate::op::Op;
use crate::rules::kernel;
use crate::tape::fuses;
use crate::{Cx, Tensor};
use namegrad_core::args::Windows;
use namegrad_core::ops::pool::kernels::max_pool_backward;
use namegrad_core::{NamedTensor, Picked, Result};
use namegrad_macros::derivatives;

derivatives! { pool; |g, cx|
    max_pool(x; windows) -> (values, indices) by largest;
    fractional_max_pool(x, samples) -> (values, indices) by largest_at;
    avg_pool(x; windows) -> y { x: [; windows] g.avg_pool_input(windows, last(cx.sizes(), windows))? }
    avg_pool_input(x; windows) -> y { x: [; windows] g.avg_pool(windows)? }
}

/// The sizes of the dims of the windows.
fn last(sizes: &[usize], windows: Windows) -> &[usize] {
    &sizes[sizes.len() - windows.dims()..]
}

#[track_caller]
fn largest(
    op: &'static str,
    x: &Tensor,
    outputs: (NamedTensor, NamedTensor),
    windows: Windows,
) -> Result<Picked<Tensor>> {
    let (dims, places) = (windows.dims(), outputs.1.unnamed());
    let values = Op::new(op, outputs.0).input(x, move |g, cx| put_back(g, &places, dims, cx));
    Ok(Picked { values: values.output(), indices: Tensor::constant(outputs.1) })
}

#[track_caller]
fn largest_at(
    op: &'static str,
    x: &Tensor,
    samples: &Tensor,
    outputs: (NamedTensor, NamedTensor),
) -> Result<Picked<Tensor>> {
    let dims = samples.sizes().last().copied().unwrap_or(1);
    let places = outputs.1.unnamed();
    // Other samples give the same windows, until they give windows at other places.
    let values = Op::new(op, outputs.0)
        .input(x, move |g, cx| put_back(g, &places, dims, cx))
        .input(samples, |g, cx| g.new_zeros(cx.sizes()).to(cx.dtype()));
    Ok(Picked { values: values.output(), indices: Tensor::constant(outputs.1) })
}

/// Zeros with the sizes of the input, with `g` added at the indices; as one kernel if it is not recorded.
fn put_back(g: &Tensor, places: &NamedTensor, dims: usize, cx: &Cx<'_>) -> Result<Tensor> {
    let sizes = cx.sizes();
    if fuses() {
        return max_pool_backward(g.value(), places, sizes, dims).map(kernel);
    }
    let flat = |sizes: &[usize]| {
        let (outer, inner) = sizes.split_at(sizes.len() - dims);
        [outer.iter().product::<usize>(), inner.iter().product()]
    };
    let places = Tensor::constant(places.clone()).reshape(flat(places.sizes()))?;
    let zeros = g.new_zeros(flat(sizes))?;
    zeros.scatter_add(&places, g.reshape(flat(g.sizes()))?, 1).reshape(sizes)
}
