//! [`Descent`], the common part of all optimizers: parameter groups, and the state of each parameter. A step
//! is a [`Pass`] over them. `fit.rs` loads states.

mod fit;

use crate::listed::{Listed, merged, take_matching};
use crate::master::{self, Master};
use crate::method::{Checks, Method, Slots, Turn};
use crate::optimizer::{Loss, Optimizer, evaluate};
use crate::state::{GroupState, OptimizerState, ParameterState};
use namegrad_autograd::{Parameter, Tensor, span};
use namegrad_core::cpu::update::{PARALLEL, at_once};
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Names, Result, Scalar, Shape};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

/// The optimizer of a [`Method`]: parameter groups with their hyperparameters, and the state of each
/// parameter. [`Sgd`](crate::Sgd), [`Adam`](crate::Adam) and all others, and your own optimizers, are built on
/// it.
///
/// An elementwise step makes one pass over each parameter, its gradient and its state, and allocates nothing.
///
/// For a parameter of a half type, the optimizer keeps a copy in `f32`, the master. Steps change the master, and
/// the parameter is the master rounded, so steps that are too small for the half type add up. (PyTorch steps the
/// half type itself, in which they are lost.) The master is a part of the saved state. Where the parameter was
/// changed by something else, such as loading a model, the master follows it.
pub struct Descent<M> {
    /// One set of hyperparameters for each group.
    groups: Vec<M>,
    members: Vec<Vec<Member>>,
    /// The tensors that the method keeps for all parameters together.
    shared: Shared,
}

type Shared = BTreeMap<String, NamedTensor>;

/// A parameter and its state.
struct Member {
    parameter: Parameter,
    /// Its paths in the model, if they are known.
    paths: Vec<String>,
    steps: u64,
    /// Whether `steps` already includes the current step.
    counted: bool,
    /// The copy in `f32` of a parameter of a half type.
    master: Option<Master>,
    /// Slots that `Method::slots` no longer names, then those that it names, in its order.
    slots: Vec<(String, NamedTensor)>,
}

/// A builder for an optimizer, with parameter groups and their hyperparameters.
pub struct Builder<M> {
    pub(crate) method: M,
    parameters: Vec<Listed>,
    groups: Vec<(Chosen, Change<M>)>,
}

/// The parameters of a group.
enum Chosen {
    Given(Vec<Listed>),
    Matching(String),
}

/// Changes the common hyperparameters to those of a group.
type Change<M> = Box<dyn FnOnce(&mut M)>;

impl<M: Method> Builder<M> {
    /// A builder for an optimizer with these parameters and hyperparameters.
    pub fn new(parameters: impl IntoIterator<Item = Parameter>, method: M) -> Builder<M> {
        let parameters = parameters.into_iter().map(Listed::from).collect();
        Builder { method, parameters, groups: Vec::new() }
    }

    /// A builder for an optimizer with these parameters, which have paths. A parameter that several layers share
    /// is stepped once.
    ///
    /// The paths are in the saved state, so that the state of another model is an error that names them.
    pub fn named(parameters: impl IntoIterator<Item = (String, Parameter)>, method: M) -> Builder<M> {
        Builder { method, parameters: merged(parameters), groups: Vec::new() }
    }

    /// Adds a group of parameters. `change` sets what differs from the hyperparameters of the optimizer,
    /// including those that are set after this call.
    pub fn group(
        mut self,
        parameters: impl IntoIterator<Item = impl Into<Listed>>,
        change: impl FnOnce(&mut M) + 'static,
    ) -> Builder<M> {
        self.groups.push((Chosen::Given(merged(parameters)), Box::new(change)));
        self
    }

    /// Makes a group of those parameters whose paths match a pattern and that no earlier group has taken. The
    /// others stay in group 0.
    ///
    /// Patterns are those of `Module::matching`: `*` is any text without a dot, `**` any text, and a pattern
    /// that matches the path of a layer stands for all parameters in it. A parameter that several layers share
    /// matches if one of its paths does.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::AdamW;
    /// let model = Sequential::new()
    ///     .then_named("hidden", Linear::new(("in", 3), ("h", 4))?)
    ///     .then_named("head", Linear::new(("h", 4), ("out", 2))?);
    /// let optimizer = AdamW::builder_named(model.named_parameters())
    ///     .lr(1e-3)
    ///     .group_matching("head", |group| group.lr = 1e-2)
    ///     .group_matching("**.bias", |group| group.weight_decay = 0.0)
    ///     .build()?;
    /// assert_eq!(optimizer.lrs(), [1e-3, 1e-2, 1e-3]);
    /// assert_eq!(optimizer.group_parameters(1).len(), 2); // the bias of the head is in the first group that matches
    /// # Ok::<(), Error>(())
    /// ```
    pub fn group_matching(mut self, pattern: &str, change: impl FnOnce(&mut M) + 'static) -> Builder<M> {
        self.groups.push((Chosen::Matching(pattern.into()), Box::new(change)));
        self
    }

    /// Builds the optimizer. Parameters that are in no group of their own are group 0, if there are any.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a hyperparameter is out of range, a parameter is given twice, a pattern matches
    /// no parameter, or there are no parameters.
    #[track_caller]
    pub fn build(self) -> Result<M::Optimizer> {
        let Builder { method, parameters: mut left, groups } = self;
        let mut chosen = Vec::with_capacity(groups.len());
        for (members, change) in groups {
            let members = match members {
                Chosen::Given(members) => members,
                Chosen::Matching(pattern) => take_matching(M::NAME, &mut left, &pattern)?,
            };
            let mut method = method.clone();
            change(&mut method);
            chosen.push((members, method));
        }
        let mut optimizer = Descent { groups: Vec::new(), members: Vec::new(), shared: Shared::new() };
        if !left.is_empty() || chosen.is_empty() {
            optimizer.push_group(left, method)?;
        }
        for (members, method) in chosen {
            optimizer.push_group(members, method)?;
        }
        if optimizer.members.iter().all(Vec::is_empty) {
            return Err(Error::new(ErrorKind::Value, M::NAME, "optimizer got an empty parameter list")
                .with_repair(format!("{}::builder(model.parameters())", M::NAME)));
        }
        Ok(optimizer.into())
    }
}

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
        // JSON has no infinity, so the state could be saved, but not loaded.
        let saved = serde_json::to_value(&method).ok();
        if saved.is_some_and(|saved| M::deserialize(saved).is_err()) {
            return Err(Error::new(ErrorKind::Value, M::NAME, "hyperparameters must be finite")
                .with_repair("a large number in place of f64::INFINITY"));
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
        for method in &self.groups {
            let lr = method.lr(); // also of methods without a check of their own
            Checks(M::NAME)
                .require(lr.is_finite(), || format!("Invalid learning rate: {lr:?}; it must be finite"))?;
            method.check()?;
        }
        Ok(())
    }

    /// Makes a step. Errors of the closure have a place of their own, others are at `caller`.
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
            // A struct of numbers always has a JSON form. A `Method` without one is rejected when its state
            // is loaded.
            hyperparameters: serde_json::to_value(method).unwrap_or_default(),
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

/// The part of a [`Method`] that the state of a parameter depends on. Code that needs only this is compiled
/// once for all methods.
trait Stateful {
    fn name(&self) -> &'static str;
    fn slots(&self, sizes: &[usize]) -> &'static [&'static str];
    fn slot_sizes(&self, slot: &str, sizes: &[usize]) -> Vec<usize>;
    fn slot_start(&self, slot: &str) -> f64;
}

impl<M: Method> Stateful for M {
    fn name(&self) -> &'static str {
        M::NAME
    }
    fn slots(&self, sizes: &[usize]) -> &'static [&'static str] {
        Method::slots(self, sizes)
    }
    fn slot_sizes(&self, slot: &str, sizes: &[usize]) -> Vec<usize> {
        Method::slot_sizes(self, slot, sizes)
    }
    fn slot_start(&self, slot: &str) -> f64 {
        Method::slot_start(self, slot)
    }
}

/// One step over all parameters of an optimizer: the argument of [`Method::step`].
pub struct Pass<'a, M> {
    groups: &'a [M],
    members: &'a mut [Vec<Member>],
    shared: &'a mut Shared,
    closure: Option<Closure<'a>>,
    /// Whether the closure has failed.
    failed: bool,
}

/// The argument of [`Optimizer::step_with`].
struct Closure<'a> {
    loss: Loss<'a>,
    /// The loss at the start of the step.
    first: Tensor,
    caller: &'static Location<'static>,
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

    /// Like [`each`](Self::each), for updates that do not depend on each other. Parameters that are too short for
    /// several threads are updated by one thread each, at the same time.
    ///
    /// # Errors
    /// Same as [`each`](Self::each). Of several errors it is the first by the order of the groups.
    pub fn each_at_once(&mut self, f: impl Fn(&M, Turn<'_>) -> Result<()> + Sync) -> Result<()> {
        let groups = self.groups.iter().zip(&mut *self.members);
        let all = groups.flat_map(|(method, members)| members.iter_mut().map(move |member| (method, member)));
        let is_short = |member: &Member| member.parameter.numel() < PARALLEL;
        let (mut short, long): (Vec<_>, Vec<_>) = all.partition(|(_, member)| is_short(member));
        for (method, member) in long {
            member.step(method, &mut |turn| f(method, turn))?;
        }
        if short.iter().map(|(_, member)| member.parameter.numel()).sum::<usize>() < PARALLEL {
            return short.iter_mut().try_for_each(|(method, member)| {
                let method: &M = method;
                member.step(method, &mut |turn| f(method, turn))
            });
        }
        let results: Vec<_> =
            short.into_iter().map(|(method, member)| Mutex::new((method, member, Ok(())))).collect();
        at_once(results.len(), &|task| {
            let mut task = results[task].lock().unwrap_or_else(PoisonError::into_inner);
            let (method, member, result) = &mut *task;
            let method: &M = method;
            *result = member.step(method, &mut |turn| f(method, turn));
        });
        results.into_iter().try_for_each(|task| task.into_inner().unwrap_or_else(PoisonError::into_inner).2)
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
    /// [`ErrorKind::Autograd`] if the step was not made with [`Optimizer::step_with`].
    pub fn loss(&self) -> Result<Tensor> {
        self.closure.as_ref().map(|closure| closure.first.clone()).ok_or_else(needs_loss::<M>)
    }

    /// Computes the loss and all gradients again, with the current parameters.
    ///
    /// # Errors
    /// The errors of the loss and of its backward pass; [`ErrorKind::Autograd`] if the step was not made with
    /// [`Optimizer::step_with`].
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
fn needs_loss<M: Method>() -> Error {
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

impl Member {
    /// Checks that the next step is possible.
    fn check<M: Method>(&self) -> Result<()> {
        let Some(grad) = self.parameter.grad() else { return Ok(()) };
        let own = self.parameter.shape();
        check_gradient(M::NAME, grad.sizes(), &own.sizes, self.parameter.dtype())?;
        check_names(M::NAME, &grad, own).map_err(|error| match self.paths.first() {
            Some(path) => error.context(format!("parameter '{path}': ")),
            None => error,
        })
    }

    /// Calls `f` with the parameter, if it has a gradient.
    fn step(&mut self, method: &dyn Stateful, f: &mut dyn FnMut(Turn<'_>) -> Result<()>) -> Result<()> {
        let Some(grad) = self.parameter.grad() else { return Ok(()) };
        let Member { parameter, steps, counted, master, slots, .. } = self;
        let number = if *counted { *steps } else { steps.saturating_add(1) };
        parameter.update_in_buffer(|value| {
            let dtype = value.dtype();
            check_gradient(method.name(), grad.sizes(), value.sizes(), dtype)?;
            let fresh = make_slots(method, slots, value)?;
            let grad = grad.value().to(dtype.compute())?.contiguous()?.unnamed();
            let shape = value.shape();
            let named = slots.len() - method.slots(value.sizes()).len();
            master::change(master, value, &mut |param| {
                let slots = Slots { method: method.name(), slots: &mut slots[named..] };
                f(Turn { number, fresh, param, grad: &grad, slots })
            })?;
            if value.sizes() != &shape.sizes[..] {
                let message = format!("a step changed a parameter of {shape} to {}", value.shape());
                return Err(Error::new(ErrorKind::Shape, method.name(), message));
            }
            Ok(())
        })?;
        (*steps, *counted) = (number, true);
        Ok(())
    }

    fn state(&self) -> ParameterState {
        let value = self.parameter.tensor();
        ParameterState {
            path: self.paths.first().cloned(),
            sizes: value.sizes().to_vec(),
            names: value.names().clone(),
            steps: self.steps,
            master: self.master.as_ref().map(|master| master.value().clone()),
            slots: self.slots.iter().cloned().collect(),
        }
    }
}

/// The names of a slot: those of the parameter if it has the same sizes.
fn slot_names(sizes: &[usize], value: &NamedTensor) -> Names {
    if sizes == value.sizes() { value.names().clone() } else { Names::none() }
}

/// Sorts the slots that are `named` behind those that are not.
fn sort_slots(named: &[&str], slots: &mut [(String, NamedTensor)]) {
    slots.sort_by_key(|(name, _)| named.iter().position(|slot| slot == name));
}

fn check_gradient(name: &'static str, grad: &[usize], param: &[usize], dtype: DType) -> Result<()> {
    if !dtype.is_floating_point() {
        let message = format!("a parameter must be of a floating point dtype, not {dtype}");
        return Err(Error::new(ErrorKind::DType, name, message));
    }
    if grad != param {
        let message = format!("a gradient of {grad:?} for a parameter of {param:?}");
        return Err(Error::new(ErrorKind::Shape, name, message));
    }
    Ok(())
}

/// Checks that a gradient with names has those of its parameter.
fn check_names(name: &'static str, grad: &Tensor, own: Shape) -> Result<()> {
    let agree = |dim| match (grad.names().get(dim), own.names.get(dim)) {
        (Some(name), Some(own)) => name == own,
        _ => true,
    };
    if !grad.has_names() || (0..own.sizes.len()).all(agree) {
        return Ok(());
    }
    let ndim = own.sizes.len();
    let lists = [grad.names().list(ndim), own.names.list(ndim)];
    let message = format!("a gradient with the names {} for a parameter with {}", lists[0], lists[1]);
    Err(Error::new(ErrorKind::NameMismatch, name, message).with_operands([grad.shape(), own]).with_repair(
        "p.set_grad(Some(g.align_as(&p.tensor())?))?, or g.rename(None)? if the positions are right",
    ))
}

/// Creates the missing slots of `method`. Returns whether all of its slots are new.
fn make_slots(
    method: &dyn Stateful,
    slots: &mut Vec<(String, NamedTensor)>,
    value: &NamedTensor,
) -> Result<bool> {
    let dtype = value.dtype().compute();
    let mut made = 0;
    let named = method.slots(value.sizes());
    for &slot in named {
        let sizes = method.slot_sizes(slot, value.sizes());
        match slots.iter_mut().find(|(name, _)| name == slot) {
            Some((_, kept)) if kept.sizes() != sizes => {
                let message = format!(
                    "{slot} has sizes {:?}, for a parameter that now has {:?}",
                    kept.sizes(),
                    value.sizes()
                );
                return Err(Error::new(ErrorKind::Shape, method.name(), message)
                    .with_repair("build a new optimizer after changing the sizes of a parameter"));
            }
            Some((_, kept)) if kept.dtype() != dtype => *kept = kept.to(dtype)?,
            Some(_) => {}
            None => {
                let names = slot_names(&sizes, value);
                let shape = Shape { sizes: sizes.into(), names };
                let start = Scalar::Float(method.slot_start(slot));
                slots.push((slot.into(), NamedTensor::full_as(method.name(), shape, start, dtype)?));
                made += 1;
            }
        }
    }
    if made > 0 {
        sort_slots(named, slots);
    }
    Ok(made == named.len())
}

impl<M: Method> fmt::Debug for Descent<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.groups.iter().zip(self.members.iter().map(Vec::len));
        f.debug_struct(M::NAME).field("groups", &counts.collect::<Vec<_>>()).finish()
    }
}

impl<M: Method> fmt::Debug for Builder<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("method", &self.method).finish_non_exhaustive()
    }
}
