//! Checkpoints: values that are computed a second time instead of being saved.

use crate::autocast;
use crate::tape::{Again, Meta, Origin, Route, forgetting, history, is_forward, is_grad_enabled};
use crate::tensor::Tensor;
use namegrad_core::random::Draws;
use namegrad_core::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Computes `f(inputs)` and saves only the inputs for the backward pass, which runs `f` a second time. This
/// saves the memory of intermediate values at the cost of a second forward pass (Chen et al., *Training Deep
/// Nets with Sublinear Memory Cost*, 2016).
///
/// Gradients flow to the inputs and to everything that `f` captures, such as the parameters of a layer.
/// Random numbers are the same in both runs, regardless of what other threads draw, and so are the
/// casts of [`autocast`](crate::autocast()). In all other respects,
/// `f` must compute the same in both runs.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::checkpoint;
/// let x = Tensor::new([0.5, 1.0])?.requiring_grad()?;
/// let y = checkpoint(|inputs| inputs[0].exp()?.sin(), &[&x])?;
/// y.sum(..)?.backward()?;
/// let plain = x.detach().requiring_grad()?;
/// plain.exp()?.sin()?.sum(..)?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, plain.grad().unwrap().to_vec::<f32>()?);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// The errors of `f`, and [`ErrorKind::Autograd`] if `f` itself computes gradients of its values. In the
/// backward pass, [`ErrorKind::Autograd`] if the result of the second run has other sizes or another dtype.
#[track_caller]
pub fn checkpoint(
    f: impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
    inputs: &[&Tensor],
) -> Result<Tensor> {
    let inputs: Vec<Tensor> = crate::list(inputs.iter().map(|x| (*x).clone()));
    if !is_grad_enabled() || is_forward() {
        return f(&inputs); // tangents go with the ops, and keep nothing
    }
    let origin = Origin::here("checkpoint");
    let first = Meta::next_id();
    let (draws, y) = Draws::record(|| forgetting(|| f(&inputs)));
    let y = y?;
    let Some(made) = y.meta() else { return Ok(y) };
    let uses = older_than(first, made);
    let mode = autocast::mode();
    let compute = move || {
        let y = autocast::in_mode(mode, || draws.replay(|| f(&inputs)))?;
        if !y.requires_grad() {
            let message = "computed again it depends on nothing";
            return Err(Error::new(ErrorKind::Autograd, "checkpoint", message).at(origin.at));
        }
        Ok(y)
    };
    let route = Route::Again(Arc::new(Again { compute: Box::new(compute), uses }));
    let value = y.into_value();
    let meta = Meta::new(&value, Some(origin), Some(route));
    Ok(Tensor::from_parts(value, Some(meta)))
}

/// The values that `made` depends on and that are older than number `first`.
pub(crate) fn older_than(first: u64, made: &Arc<Meta>) -> Vec<Arc<Meta>> {
    let mut older = history(std::slice::from_ref(made), first);
    older.retain(|meta| meta.id < first);
    older
}
