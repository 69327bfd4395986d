//! A gradient on its way: fitted to its input, passed to hooks, and added to others.

use crate::hooks::Hook;
use crate::observe::{Held, holding};
use crate::places::before_change;
use crate::tape::modes::{is_forward, is_grad_enabled};
use crate::tape::{GradNames, Meta, Origin};
use crate::tensor::Tensor;
use crate::vmap::check_accumulated;
use namegrad_core::{Error, ErrorKind, Result};
use std::panic::Location;
use std::sync::Arc;

/// The gradient of input `number` of an op, summed to the sizes of the input if that was broadcast, and cast
/// to its dtype if it was promoted.
pub(in crate::tape) fn fit(gradient: Tensor, input: &Meta, number: usize, origin: Origin) -> Result<Tensor> {
    let invalid = |got: String, expected: String| {
        let message =
            format!("returned an invalid gradient at index {number} - got {got} but expected {expected}");
        Error::new(ErrorKind::Autograd, origin.op, message).at(origin.at)
    };
    if !gradient.dtype().is_floating_point() {
        return Err(invalid(format!("{}", gradient.dtype()), format!("{}", input.dtype)));
    }
    let gradient = if gradient.sizes() == &input.sizes[..] {
        gradient
    } else {
        gradient.sum_to(&input.sizes).map_err(|error| match error.kind() {
            ErrorKind::Shape => {
                let expected = format!("shape compatible with {:?}", input.sizes);
                invalid(format!("{:?}", gradient.sizes()), expected)
            }
            _ => error,
        })?
    };
    if gradient.dtype() == input.dtype { Ok(gradient) } else { gradient.to(input.dtype) }
}

/// The gradient after the hooks of a tensor, in the order of their registration.
pub(super) fn run_hooks(
    hooks: Vec<Hook>,
    mut grad: Tensor,
    at: &'static Location<'static>,
) -> Result<Tensor> {
    for hook in hooks {
        if let Some(changed) = hook(&grad)? {
            grad = replaced("register_hook", &grad, changed, at)?;
        }
    }
    Ok(grad)
}

/// The gradient that a hook replaces `grad` with.
fn replaced(
    op: &'static str,
    grad: &Tensor,
    changed: Tensor,
    at: &'static Location<'static>,
) -> Result<Tensor> {
    let error = |message| Error::new(ErrorKind::Autograd, op, message).at(at);
    if changed.sizes() != grad.sizes() {
        let (old, new) = (grad.sizes(), changed.sizes());
        return Err(error(format!("a hook changed the sizes of a gradient from {old:?} to {new:?}")));
    }
    if changed.dtype() != grad.dtype() {
        let (old, new) = (grad.dtype(), changed.dtype());
        return Err(error(format!("a hook changed the dtype of a gradient from {old} to {new}")));
    }
    Ok(plain(changed))
}

/// A gradient without names, which is on the tape only if the walk is recorded. A derivative or a hook may
/// return a tensor that is already on the tape; without this, its graph would stay alive, perhaps forever.
#[inline]
pub(super) fn plain(mut gradient: Tensor) -> Tensor {
    if gradient.meta().is_some() && !is_grad_enabled() {
        gradient = gradient.off_tape();
    }
    if gradient.value().has_names() { gradient.unnamed() } else { gradient }
}

/// Adds to the `grad` of a value.
pub(super) fn accumulate(meta: &Arc<Meta>, grad: Tensor, named: bool) -> Result<()> {
    before_change(meta);
    if is_forward() {
        check_accumulated(meta.id, &grad)?;
    }
    let mut state = meta.state();
    state.grad_names = if named { GradNames::OfTensor } else { GradNames::None };
    match state.grad.as_mut() {
        None => state.grad = Some(grad),
        Some(old) => add_to(old, grad)?,
    }
    if let Some(grad) = &state.grad {
        holding(Held::Gradient, grad.value());
    }
    Ok(())
}

/// Adds one gradient to another, in place unless the pass is recorded.
pub(super) fn add_to(sum: &mut Tensor, grad: Tensor) -> Result<()> {
    if is_grad_enabled() || is_forward() {
        *sum = sum.add(&grad)?;
        return Ok(());
    }
    sum.add_in_place(grad)
}

/// Calls the hooks that wait for the summed gradient of a value.
pub(super) fn run_hooks_after(meta: &Meta, at: &'static Location<'static>) -> Result<()> {
    let hooks = match &meta.state().hooks {
        Some(hooks) => hooks.list(true),
        None => return Ok(()),
    };
    for hook in hooks {
        let Some(old) = meta.state().grad.clone() else { return Ok(()) };
        if let Some(changed) = hook(&old)? {
            meta.state().grad = Some(replaced("register_post_accumulate_grad_hook", &old, changed, at)?);
        }
    }
    Ok(())
}
