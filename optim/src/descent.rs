//! [`Descent`], the common part of all optimizers: parameter groups, which `builder` makes, and the state of
//! each parameter, in `member`. A step is a [`Pass`] over them. `fit` loads states.

mod builder;
mod fit;
mod member;
mod pass;

pub use builder::Builder;
pub use pass::Pass;

use crate::listed::{Listed, merged};
use crate::method::{Checks, Method};
use crate::optimizer::{Loss, Optimizer, evaluate};
use crate::state::{GroupState, OptimizerState};
use member::Member;
use namegrad_autograd::{Parameter, Tensor, span};
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result};
use namegrad_io::TensorFile;
use pass::{Closure, needs_loss};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::panic::Location;

/// The optimizer of a [`Method`]: parameter groups with their hyperparameters, and the state of each
/// parameter. [`Sgd`](crate::Sgd), [`Adam`](crate::Adam) and all others, and your own optimizers, are built
/// on it.
///
/// An elementwise step makes one pass over each parameter, its gradient and its state, and allocates nothing.
///
/// For a parameter of a half type, the optimizer keeps a copy in `f32`, the master. Steps change the master,
/// and the parameter is the master rounded, so steps that are too small for the half type add up. (PyTorch
/// steps the half type itself, in which they are lost.) The master is a part of the saved state. Where the
/// parameter was changed by something else, such as loading a model, the master follows it.
pub struct Descent<M> {
    /// One set of hyperparameters for each group.
    groups: Vec<M>,
    members: Vec<Vec<Member>>,
    /// The tensors that the method keeps for all parameters together.
    shared: Shared,
}

type Shared = BTreeMap<String, NamedTensor>;

impl<M: Method> Descent<M> {
    /// The hyperparameters of each group.
    pub fn groups(&self) -> &[M] {
        &self.groups
    }

    /// The hyperparameters of each group, which you can change between steps.
    pub fn groups_mut(&mut self) -> &mut [M] {
        &mut self.groups
    }

    /// The parameters of a group; empty if there is no such group.
    pub fn group_parameters(&self, group: usize) -> Vec<Parameter> {
        self.members.get(group).into_iter().flatten().map(|member| member.parameter.clone()).collect()
    }

    /// Adds a group during training, for example layers that were frozen at first. `change` sets what differs
    /// from the first group.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a hyperparameter is out of range or the optimizer already has a parameter.
    #[track_caller]
    pub fn add_group(
        &mut self,
        parameters: impl IntoIterator<Item = impl Into<Listed>>,
        change: impl FnOnce(&mut M),
    ) -> Result<()> {
        let mut method = self.groups[0].clone(); // `build` makes at least one
        change(&mut method);
        self.push_group(merged(parameters), method)
    }

    #[track_caller]
    fn push_group(&mut self, parameters: Vec<Listed>, method: M) -> Result<()> {
        method.check()?;
        // A state that cannot be saved or loaded is an error now, and not after hours of training.
        let saved = hyperparameters(&method)?;
        if let Err(error) = M::deserialize(saved) {
            let message = format!("hyperparameters cannot be read back from JSON: {error}");
            return Err(Error::new(ErrorKind::Value, M::NAME, message));
        }
        let members = self.members.iter().flatten().map(|member| (member.parameter.id(), &member.paths));
        let mut seen: HashMap<usize, &Vec<String>> = members.collect();
        for Listed { parameter, paths } in &parameters {
            if let Some(before) = seen.insert(parameter.id(), paths) {
                let mut message = "some parameters appear more than once in the parameter groups".to_string();
                if let Some(path) = before.first().or(paths.first()) {
                    message += &format!(": '{path}'");
                }
                return Err(Error::new(ErrorKind::Value, M::NAME, message)
                    .with_repair("model.parameters() has each parameter once, also where layers share it"));
            }
            method.check_parameter(&parameter.shape())?;
        }
        self.groups.push(method);
        if let Err(error) = M::check_groups(&self.groups) {
            self.groups.pop();
            return Err(error);
        }
        let member = |Listed { parameter, paths }| Member {
            parameter,
            paths,
            steps: 0,
            counted: false,
            master: None,
            slots: Vec::new(),
        };
        self.members.push(parameters.into_iter().map(member).collect());
        Ok(())
    }

    /// Checks the hyperparameters, which may have been changed since the groups were made.
    #[track_caller]
    fn check_groups(&self) -> Result<()> {
        for (method, members) in self.groups.iter().zip(&self.members) {
            let (lr, checks) = (method.lr(), Checks(M::NAME)); // also for methods without a check
            checks.require(lr.is_finite(), || format!("Invalid learning rate: {lr:?}; it must be finite"))?;
            // Steps are computed in `f32`, except those of `f64` parameters.
            let steps_in_f32 = |member: &Member| member.parameter.dtype() != DType::F64;
            checks.require((lr as f32).is_finite() || !members.iter().any(steps_in_f32), || {
                format!(
                    "Invalid learning rate: {lr:?}; parameters that are not f64 take at most {:?}",
                    f32::MAX
                )
            })?;
            method.check()?;
        }
        Ok(())
    }

    /// Makes a step. Errors of the closure keep their line, others are at `caller`.
    fn pass<'a>(
        &'a mut self,
        closure: Option<Closure<'a>>,
        caller: &'static Location<'static>,
    ) -> Result<()> {
        let located = |error: Error| error.at(caller);
        for member in self.members.iter_mut().flatten() {
            member.counted = false;
            member.check::<M>().map_err(located)?;
        }
        let mut pass = Pass {
            groups: &self.groups,
            members: &mut self.members,
            shared: &mut self.shared,
            closure,
            failed: false,
        };
        let result = M::step(&mut pass);
        if pass.failed { result } else { result.map_err(located) }
    }

    #[track_caller]
    fn check_values(&self, what: &str, values: &[f64]) -> Result<()> {
        let checks = Checks(M::NAME);
        checks.require(values.len() == self.groups.len(), || {
            format!("{} values of {what} for {} groups", values.len(), self.groups.len())
        })?;
        for value in values {
            checks.require(value.is_finite(), || format!("Invalid {what}: {value:?}; it must be finite"))?;
        }
        Ok(())
    }
}

/// The hyperparameters of a group as JSON. The error names the one that has no JSON form.
#[track_caller]
fn hyperparameters<M: Method>(method: &M) -> Result<serde_json::Value> {
    let caller = Location::caller();
    let refused = |message: String| Error::new(ErrorKind::Value, M::NAME, message).at(caller);
    TensorFile::of_json("hyperparameters", method).map_err(|error| {
        refused(format!("hyperparameters: {}", error.message()))
            .with_repair("a large number in place of f64::INFINITY")
    })?;
    serde_json::to_value(method).map_err(|error| refused(format!("hyperparameters: {error}")))
}

impl<M: Method> Optimizer for Descent<M> {
    #[track_caller]
    fn step(&mut self) -> Result<()> {
        self.check_groups()?;
        if M::needs_loss() {
            return Err(needs_loss::<M>());
        }
        let caller = Location::caller();
        span(M::NAME, || self.pass(None, caller))
    }

    #[track_caller]
    fn step_with(&mut self, loss: Loss<'_>) -> Result<Tensor> {
        self.check_groups()?;
        let caller = Location::caller();
        let first = evaluate(&self.parameters(), loss, caller)?;
        span(M::NAME, || self.pass(Some(Closure { loss, first: first.clone(), caller }), caller))?;
        Ok(first)
    }

    fn needs_loss(&self) -> bool {
        M::needs_loss()
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.members.iter().flatten().map(|member| member.parameter.clone()).collect()
    }

    fn lrs(&self) -> Vec<f64> {
        self.groups.iter().map(Method::lr).collect()
    }

    #[track_caller]
    fn set_lrs(&mut self, lrs: &[f64]) -> Result<()> {
        self.check_values("learning rate", lrs)?;
        let mut groups = self.groups.clone();
        for (method, lr) in groups.iter_mut().zip(lrs) {
            method.set_lr(*lr);
            method.check()?;
        }
        self.groups = groups;
        Ok(())
    }

    fn momentums(&self) -> Option<Vec<f64>> {
        self.groups.iter().map(Method::momentum).collect()
    }

    #[track_caller]
    fn set_momentums(&mut self, momentums: &[f64]) -> Result<()> {
        self.check_values("momentum value", momentums)?;
        Checks(M::NAME).require(self.momentums().is_some(), || format!("{} has no momentum", M::NAME))?;
        let mut groups = self.groups.clone();
        for (method, momentum) in groups.iter_mut().zip(momentums) {
            method.set_momentum(*momentum);
            method.check()?;
        }
        self.groups = groups;
        Ok(())
    }

    fn zero_grad(&self) {
        self.members.iter().flatten().for_each(|member| member.parameter.zero_grad());
    }

    fn state_dict(&self) -> OptimizerState {
        let groups = self.groups.iter().zip(&self.members);
        let groups = groups.map(|(method, members)| GroupState {
            // Those that were changed through `groups_mut` may have no JSON form. The reason is in their place
            // then, and is the error of saving or loading the state.
            hyperparameters: hyperparameters(method).unwrap_or_else(|error| error.message().into()),
            parameters: members.iter().map(Member::state).collect(),
        });
        OptimizerState { method: M::NAME.into(), groups: groups.collect(), shared: self.shared.clone() }
    }

    #[track_caller]
    fn load_state_dict(&mut self, state: &OptimizerState) -> Result<()> {
        let caller = Location::caller();
        (self.groups, self.members) = self.fitted(state).map_err(|error| error.at(caller))?;
        self.shared = state.shared.clone();
        Ok(())
    }
}

impl<M: Method> fmt::Debug for Descent<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.groups.iter().zip(self.members.iter().map(Vec::len));
        f.debug_struct(M::NAME).field("groups", &counts.collect::<Vec<_>>()).finish()
    }
}
