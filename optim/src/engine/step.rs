//! [`OptimizerStep`], a step of all parameters as a method sees it.

use super::*;
use crate::optimizer::CLOSURE;
use namegrad_core::args::references;
use namegrad_core::cpu::update::{PARALLEL, at_once};
use std::sync::{Mutex, PoisonError};

/// A step of all parameters of an optimizer, the argument of [`Method::step`].
pub struct OptimizerStep<'a> {
    pub(super) groups: &'a dyn Groups,
    pub(super) members: &'a mut [Member],
    pub(super) shared: &'a mut Shared,
    pub(super) closure: Option<Closure<'a>>,
    /// Whether the closure has failed.
    pub(super) failed: bool,
}

/// The argument of [`Optimizer::step_with`](crate::Optimizer::step_with).
pub(super) struct Closure<'a> {
    pub(super) loss: Loss<'a>,
    /// The loss at the start of the step.
    pub(super) first: Tensor,
    pub(super) caller: &'static Location<'static>,
}

impl OptimizerStep<'_> {
    /// The tensors that the method keeps for all parameters together, by name. They are a part of the saved
    /// state.
    pub fn shared(&mut self) -> &mut BTreeMap<String, NamedTensor> {
        self.shared
    }

    /// Calls `f` for each parameter that has a gradient, in the order of the groups, with the number of its
    /// group. If `f` fails, earlier parameters remain changed.
    ///
    /// # Errors
    /// The errors of `f`; [`ErrorKind::Shape`] if the sizes of a parameter have changed in `f` or since the
    /// last step.
    pub fn each(&mut self, mut f: impl FnMut(usize, ParameterStep<'_>) -> Result<()>) -> Result<()> {
        for member in &mut *self.members {
            member.step(self.groups, &mut f)?;
        }
        Ok(())
    }

    /// Like [`each`](Self::each), for updates that do not depend on each other: several parameters are
    /// updated at the same time, and long ones by several threads. Use `each` for updates of large products,
    /// which use all threads themselves. If `f` fails, other parameters are changed.
    ///
    /// # Errors
    /// Same as [`each`](Self::each). Of several errors it is the first by the order of the groups.
    pub fn each_at_once(&mut self, f: impl Fn(usize, ParameterStep<'_>) -> Result<()> + Sync) -> Result<()> {
        // Without elements, nothing is worth a thread; messages between processes are in order.
        let is_meta = |member: &Member| member.parameter.tensor().device() == Device::Meta;
        let is_part = |member: &Member| part_of(self.groups, &member.parameter).is_some();
        let in_turn = self.members.first().is_some_and(is_meta) || self.members.iter().any(is_part);
        if numel(self.members) < PARALLEL || in_turn {
            return self.each(f);
        }
        let mut tasks = Vec::with_capacity(self.members.len());
        for member in &mut *self.members {
            tasks.push(Mutex::new((member, Ok(()))));
        }
        let groups = self.groups;
        at_once(tasks.len(), &|task| {
            let mut task = tasks[task].lock().unwrap_or_else(PoisonError::into_inner);
            let (member, result) = &mut *task;
            *result = member.step(groups, &mut |group, own| f(group, own));
        });
        for task in tasks {
            task.into_inner().unwrap_or_else(PoisonError::into_inner).1?;
        }
        Ok(())
    }

    /// Calls [`Method::update`] for each parameter that has a gradient, like
    /// [`each_at_once`](Self::each_at_once).
    ///
    /// # Errors
    /// Same as [`each`](Self::each). Of several errors it is the first by the order of the groups.
    pub fn update_each(&mut self) -> Result<()> {
        let groups = self.groups;
        self.each_at_once(|group, own| groups.update(group, own))
    }

    /// The gradients of all parameters that have one, with the numbers of their groups, in the order of
    /// [`each`](Self::each). They share the buffers of the parameters' gradients.
    pub fn gradients(&self) -> Vec<(usize, NamedTensor)> {
        let mut gradients = Vec::new();
        for member in &*self.members {
            if let Some(gradient) = member.parameter.grad() {
                gradients.push((member.group, gradient.into_value().unnamed()));
            }
        }
        gradients
    }

    /// The gradients of all parameters, one after the other in a vector of `f32`, or `f64` if a parameter is
    /// that. A parameter without a gradient has zeros.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn flat_gradient(&self) -> Result<NamedTensor> {
        let is_wide = self.members.iter().any(|member| member.parameter.dtype() == DType::F64);
        let dtype = if is_wide { DType::F64 } else { DType::F32 };
        let mut flat = Vec::new();
        for Member { parameter, .. } in &*self.members {
            let own = match parameter.grad() {
                Some(grad) => grad.value().to(dtype)?.unnamed(),
                None => NamedTensor::zeros(&parameter.shape().sizes[..])?.to(dtype)?,
            };
            flat.push(whole(part_of(self.groups, parameter), &own)?.reshape([-1])?);
        }
        NamedTensor::cat(&references(&flat), 0)
    }

    /// Calls `f` with the value of each parameter, to be changed in place, in the order of
    /// [`flat_gradient`](Self::flat_gradient). Unlike [`each`](Self::each), it visits parameters without a
    /// gradient too and does not count a step. A parameter of a half type is given as `f32`.
    ///
    /// # Errors
    /// The errors of `f`.
    pub fn each_value(&mut self, mut f: impl FnMut(&mut NamedTensor) -> Result<()>) -> Result<()> {
        for Member { parameter, master, .. } in &mut *self.members {
            let (part, mut change) = (part_of(self.groups, parameter), |value: &mut NamedTensor| {
                master::change(master, value, &mut f)
            });
            parameter.update_in_buffer(|value| in_whole(part, value, &mut change))?;
        }
        Ok(())
    }

    /// The loss at the start of the step.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the step was not made with
    /// [`Optimizer::step_with`](crate::Optimizer::step_with).
    pub fn loss(&self) -> Result<Tensor> {
        let closure = self.closure.as_ref().ok_or_else(|| needs_loss(self.groups.name()))?;
        Ok(closure.first.clone())
    }

    /// Computes the loss and all gradients again, with the current parameters.
    ///
    /// # Errors
    /// The errors of the loss and of its backward pass; [`ErrorKind::Autograd`] if the step was not made with
    /// [`Optimizer::step_with`](crate::Optimizer::step_with).
    pub fn evaluate(&mut self) -> Result<Tensor> {
        let name = self.groups.name();
        let Closure { loss, caller, .. } = self.closure.as_mut().ok_or_else(|| needs_loss(name))?;
        let loss = evaluate(&parameters(&*self.members), &mut **loss, None, caller);
        self.failed = loss.is_err();
        loss
    }
}

#[cold]
#[track_caller]
pub(super) fn needs_loss(name: &'static str) -> Error {
    let message = format!("{name} computes the loss itself, and step() does not give it");
    Error::new(ErrorKind::Autograd, name, message).with_repair(CLOSURE)
}

impl fmt::Debug for OptimizerStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OptimizerStep").field("groups", &self.groups.count()).finish_non_exhaustive()
    }
}
