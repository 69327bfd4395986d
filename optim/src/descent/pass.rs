//! [`Pass`], what a step sees of its optimizer.

use super::Shared;
use super::member::Member;
use crate::master;
use crate::method::{Method, Turn};
use crate::optimizer::{Loss, evaluate};
use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::cpu::update::{PARALLEL, at_once};
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

/// One step over all parameters of an optimizer: the argument of [`Method::step`].
pub struct Pass<'a, M> {
    pub(super) groups: &'a [M],
    pub(super) members: &'a mut [Vec<Member>],
    pub(super) shared: &'a mut Shared,
    pub(super) closure: Option<Closure<'a>>,
    /// Whether the closure has failed.
    pub(super) failed: bool,
}

/// The argument of [`Optimizer::step_with`].
pub(super) struct Closure<'a> {
    pub(super) loss: Loss<'a>,
    /// The loss at the start of the step.
    pub(super) first: Tensor,
    pub(super) caller: &'static Location<'static>,
}

impl<'a, M: Method> Pass<'a, M> {
    /// The hyperparameters of each group.
    pub fn groups(&self) -> &'a [M] {
        self.groups
    }

    /// The tensors that the method keeps for all parameters together, by name. They are a part of the saved
    /// state.
    pub fn shared(&mut self) -> &mut BTreeMap<String, NamedTensor> {
        self.shared
    }

    /// Calls `f` for each parameter that has a gradient, in the order of the groups, with the hyperparameters
    /// of its group. If `f` fails, earlier parameters remain changed.
    ///
    /// # Errors
    /// The errors of `f`; [`ErrorKind::Shape`] if the sizes of a parameter have changed in `f` or since the
    /// last step.
    pub fn each(&mut self, mut f: impl FnMut(&M, Turn<'_>) -> Result<()>) -> Result<()> {
        for (method, members) in self.groups.iter().zip(&mut *self.members) {
            for member in members {
                member.step(method, &mut |turn| f(method, turn))?;
            }
        }
        Ok(())
    }

    /// Like [`each`](Self::each), for updates that do not depend on each other: several parameters are updated
    /// at the same time, and long ones by several threads. Use `each` for updates of large products, which use
    /// all threads themselves. If `f` fails, other parameters are changed.
    ///
    /// # Errors
    /// Same as [`each`](Self::each). Of several errors it is the first by the order of the groups.
    pub fn each_at_once(&mut self, f: impl Fn(&M, Turn<'_>) -> Result<()> + Sync) -> Result<()> {
        let all = self.members.iter().flatten().map(|member| member.parameter.numel()).sum::<usize>();
        if all < PARALLEL {
            return self.each(f);
        }
        let groups = self.groups.iter().zip(&mut *self.members);
        let tasks: Vec<_> = groups
            .flat_map(|(method, members)| members.iter_mut().map(move |member| (method, member)))
            .map(|(method, member)| Mutex::new((method, member, Ok(()))))
            .collect();
        at_once(tasks.len(), &|task| {
            let mut task = tasks[task].lock().unwrap_or_else(PoisonError::into_inner);
            let (method, member, result) = &mut *task;
            let method: &M = method;
            *result = member.step(method, &mut |turn| f(method, turn));
        });
        tasks.into_iter().try_for_each(|task| task.into_inner().unwrap_or_else(PoisonError::into_inner).2)
    }

    /// The gradients of all parameters that have one, with the hyperparameters of their groups, in the order
    /// of [`each`](Self::each). They share the buffers of the parameters' gradients.
    pub fn gradients(&self) -> Vec<(&'a M, NamedTensor)> {
        let methods: &'a [M] = self.groups;
        let groups = methods.iter().zip(&*self.members);
        let all = groups.flat_map(|(method, members)| members.iter().map(move |member| (method, member)));
        all.filter_map(|(method, member)| Some((method, member.parameter.grad()?.into_value().unnamed())))
            .collect()
    }

    /// The gradients of all parameters, one after the other in a vector of `f32`, or `f64` if a parameter is
    /// that. A parameter without a gradient has zeros.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn flat_gradient(&self) -> Result<NamedTensor> {
        let parameters = || self.members.iter().flatten().map(|member| &member.parameter);
        let wide = parameters().any(|parameter| parameter.dtype() == DType::F64);
        let dtype = if wide { DType::F64 } else { DType::F32 };
        let mut flat = Vec::new();
        for parameter in parameters() {
            let count = parameter.numel();
            flat.push(match parameter.grad() {
                Some(grad) => grad.value().to(dtype)?.unnamed().reshape([count])?,
                None => NamedTensor::zeros([count])?.to(dtype)?,
            });
        }
        let flat: Vec<&NamedTensor> = flat.iter().collect();
        NamedTensor::cat(&flat, 0)
    }

    /// Calls `f` with the value of each parameter, to be changed in place, in the order of
    /// [`flat_gradient`](Self::flat_gradient). Unlike [`each`](Self::each), it visits parameters without a
    /// gradient too and does not count a step. A parameter of a half type is given as `f32`.
    ///
    /// # Errors
    /// The errors of `f`.
    pub fn each_value(&mut self, mut f: impl FnMut(&mut NamedTensor) -> Result<()>) -> Result<()> {
        for member in self.members.iter_mut().flatten() {
            let Member { parameter, master, .. } = member;
            parameter.update_in_buffer(|value| master::change(master, value, &mut f))?;
        }
        Ok(())
    }

    /// The loss at the start of the step.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the step was not made with
    /// [`Optimizer::step_with`](crate::Optimizer::step_with).
    pub fn loss(&self) -> Result<Tensor> {
        self.closure.as_ref().map(|closure| closure.first.clone()).ok_or_else(needs_loss::<M>)
    }

    /// Computes the loss and all gradients again, with the current parameters.
    ///
    /// # Errors
    /// The errors of the loss and of its backward pass; [`ErrorKind::Autograd`] if the step was not made with
    /// [`Optimizer::step_with`](crate::Optimizer::step_with).
    pub fn evaluate(&mut self) -> Result<Tensor> {
        let Closure { loss, caller, .. } = self.closure.as_mut().ok_or_else(needs_loss::<M>)?;
        let parameters: Vec<Parameter> =
            self.members.iter().flatten().map(|member| member.parameter.clone()).collect();
        let loss = evaluate(&parameters, &mut **loss, caller);
        self.failed = loss.is_err();
        loss
    }
}

#[cold]
#[track_caller]
pub(super) fn needs_loss<M: Method>() -> Error {
    let message = format!("{} computes the loss itself, and step() does not give it", M::NAME);
    Error::new(ErrorKind::Autograd, M::NAME, message)
        .with_repair("optimizer.step_with(&mut || ..), with a closure that returns the loss")
}

impl<M> fmt::Debug for Pass<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.members.iter().map(Vec::len).collect::<Vec<_>>();
        f.debug_struct("Pass").field("groups", &sizes).finish_non_exhaustive()
    }
}
