//! Values that are computed a second time instead of kept.

use crate::tape::{Again, Meta, Origin, Way, forgetting, is_grad_enabled};
use crate::tensor::Tensor;
use namegrad_core::random::Draws;
use namegrad_core::{Error, ErrorKind, Result};
use std::panic::Location;
use std::sync::Arc;

/// `f(inputs)`, of which nothing is kept for the backward pass but the inputs: it runs a second time when its
/// gradient is asked for. This trades the time of one more forward pass for the memory of what `f` computes
/// on its way (Chen et al., *Training Deep Nets with Sublinear Memory Cost*, 2016).
///
/// Gradients reach what `f` holds, such as the parameters of a layer, as well as the inputs. Random numbers
/// are the same both times, whatever other threads draw. `f` must compute the same both times in every other
/// respect, too.
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
/// What `f` gives, and [`ErrorKind::Autograd`] if `f` itself takes a gradient of what it computes. In the
/// backward pass [`ErrorKind::Autograd`] if its result has other sizes or another dtype the second time.
#[track_caller]
pub fn checkpoint(
    f: impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
    inputs: &[&Tensor],
) -> Result<Tensor> {
    let inputs: Vec<Tensor> = inputs.iter().map(|x| (*x).clone()).collect();
    if !is_grad_enabled() {
        return f(&inputs);
    }
    let origin = Origin { op: "checkpoint", at: Location::caller() };
    let first = Meta::next_id();
    let (draws, y) = Draws::record(|| forgetting(|| f(&inputs)));
    let y = y?;
    let Some(made) = y.meta() else { return Ok(y) };
    let uses = older_than(first, made);
    let compute = move || {
        let y = draws.replay(|| f(&inputs))?;
        if !y.requires_grad() {
            let message = "computed again it depends on nothing";
            return Err(Error::new(ErrorKind::Autograd, "checkpoint", message).at(origin.at));
        }
        Ok(y)
    };
    let way = Way::Again(Arc::new(Again { compute: Box::new(compute), uses }));
    let value = y.into_value();
    let meta = Meta::new(&value, Some(origin), Some(way));
    Ok(Tensor::from_parts(value, Some(meta)))
}

/// What `made` depends on among the values that are older than number `first`.
fn older_than(first: u64, made: &Arc<Meta>) -> Vec<Arc<Meta>> {
    let mut seen = std::collections::HashSet::from([made.id]);
    let (mut older, mut todo) = (Vec::new(), vec![made.clone()]);
    while let Some(meta) = todo.pop() {
        if meta.id < first {
            older.push(meta);
            continue;
        }
        let way = meta.way();
        let into = way.iter().flat_map(Way::leads_to).filter(|into| seen.insert(into.id));
        todo.extend(into.cloned().collect::<Vec<_>>());
    }
    older
}
