//! [`Lifted`], a parameter in a scope: a tensor of all its parts, which is a result of this rank's part.

use super::IN_SCOPE;
use super::value::{Axes, Split, Value};
use crate::traffic;
use namegrad::autograd::{HookHandle, Op, enable_grad, places, register_backward_end_hook};
use namegrad::prelude::*;
use std::sync::Arc;
use std::thread;

/// A parameter with its value at the beginning of a scope.
pub(super) struct Lifted {
    axes: Arc<Axes>,
    parameter: Parameter,
    own: Tensor,
    value: Value,
    splits: Vec<Option<Split>>,
}

impl Lifted {
    /// The parameter, put together along the axis `gathered` if it is only stored in parts there.
    #[track_caller]
    pub(super) fn new(
        axes: &Arc<Axes>,
        parameter: &Parameter,
        splits: &[Option<Split>],
        gathered: Option<usize>,
    ) -> Result<Lifted> {
        let own = parameter.try_tensor()?;
        let mut value = Value::of(own.value().clone(), splits.to_vec());
        if let Some(axis) = gathered
            && value.splits[axis].as_ref().is_some_and(|split| split.is_stored)
        {
            value.gather(axes, axis)?;
        }
        Ok(Lifted { axes: axes.clone(), parameter: parameter.clone(), own, value, splits: splits.to_vec() })
    }

    /// The address of the parameter, and its tensor with a new place on the tape.
    #[track_caller]
    pub(super) fn tensor(&self) -> Result<(usize, Tensor)> {
        let (axes, splits) = (self.axes.clone(), self.splits.clone());
        let op = Op::new("Mesh::scope", self.value.clone().into_tensor(&self.axes)?);
        let op = op.input_once(&self.own, move |g, _| {
            Error::ensure(
                IN_SCOPE.get(),
                ErrorKind::Autograd,
                "Mesh::scope",
                || "the backward pass of a scope has to be inside of it",
            )?;
            let _scatters = traffic::in_op("Mesh::scope");
            axes.value(g).placed(&axes, &splits)?.part.deep_clone()
        });
        Ok((self.parameter.id(), op.output()))
    }

    /// An error if the parameter has changed since.
    #[track_caller]
    fn check_current(&self) -> Result<()> {
        // The value from the beginning shares its buffer, so that a change is made in another one.
        let is_same = self.parameter.update(|now| Ok(now.data_ptr() == self.own.value().data_ptr()))?;
        Error::ensure(
            is_same,
            ErrorKind::Autograd,
            "Mesh::scope",
            || "a parameter has changed in the scope, in which it has the value of its beginning",
        )
        .map_err(|error| error.with_repair("a scope for each step, with optimizer.step()? after it"))
    }
}

/// Gives the parameters of a scope new places on the tape after each backward pass, which uses up the former
/// ones, until this is dropped.
pub(super) struct Renewing(HookHandle);

impl Renewing {
    pub(super) fn new(all: Vec<Lifted>) -> Renewing {
        let thread = thread::current().id();
        Renewing(register_backward_end_hook(move || {
            if thread::current().id() != thread {
                return Ok(());
            }
            for lifted in &all {
                lifted.check_current()?;
                let (place, tensor) = enable_grad(|| lifted.tensor())?;
                drop(places::set_substitute(place, tensor));
            }
            Ok(())
        }))
    }
}

impl Drop for Renewing {
    fn drop(&mut self) {
        self.0.remove();
    }
}
