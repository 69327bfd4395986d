//! Derivatives of concatenation.

use crate::Tensor;
use crate::op::Op;
use crate::tape::{is_forward, linear_in_list};
use namegrad_core::{NamedTensor, Result};
use namegrad_macros::derivatives;

derivatives! { join; |g, cx|
    cat(tensors; dim) -> y by joined;
    stack(tensors; dim) -> y by stacked;
    roll(x; shifts, dims) -> y { x: [; shifts dims] g.roll(back(shifts, cx.sizes().get(dims)), dims)? }
}

/// The shift that undoes `shift` along a dim of `size`. The shift itself may be too large to be negated.
fn back(shift: isize, size: Option<&usize>) -> isize {
    -(shift % size.map_or(1, |size| (*size).max(1) as isize))
}

/// Each tensor gets its part of the gradient.
#[track_caller]
fn joined(op: &'static str, tensors: &[&Tensor], y: NamedTensor, dim: usize) -> Result<Tensor> {
    if is_forward()
        && let Some(made) =
            linear_in_list(tensors, &|list| Ok(cat(list, dim, None)?.named(y.names().clone())))
    {
        return made;
    }
    let values: Vec<&NamedTensor> = crate::list(tensors.iter().map(|x| x.value()));
    let skipped = NamedTensor::skipped_by_cat(&values);
    let mut op = Op::new(op, y);
    let mut start = 0;
    for x in tensors {
        if skipped(x.value()) {
            op = op.input(x, |g, cx| g.new_zeros(cx.sizes()));
            continue;
        }
        let (from, length) = (start as isize, x.sizes()[dim]);
        op = op.input(x, move |g, _| g.narrow(dim, from, length));
        start += length;
    }
    Ok(op.output())
}

/// Each tensor gets its slice of the gradient.
#[track_caller]
fn stacked(op: &'static str, tensors: &[&Tensor], y: NamedTensor, dim: isize) -> Result<Tensor> {
    if is_forward()
        && let Some(made) =
            linear_in_list(tensors, &|list| Ok(stack(list, dim, None)?.named(y.names().clone())))
    {
        return made;
    }
    let place = if dim < 0 { dim + y.ndim() as isize } else { dim };
    let mut op = Op::new(op, y);
    for (number, x) in tensors.iter().enumerate() {
        op = op.input(x, move |g, _| g.select(place, number));
    }
    Ok(op.output())
}
