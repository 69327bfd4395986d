//! [`Descent`], the common part of all optimizers: parameter groups, and the state of each parameter. A step
//! is a [`Pass`] over them.

use crate::method::{Checks, Method, Slots, Turn};
use crate::optimizer::{Loss, Optimizer, evaluate};
use crate::state::{GroupState, OptimizerState, ParameterState};
use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::{Error, ErrorKind, NamedTensor, Names, Result, Scalar, Shape};
use std::fmt;
use std::panic::Location;

/// The optimizer of a [`Method`]: parameter groups with their hyperparameters, and the state of each
/// parameter. [`Sgd`](crate::Sgd), [`Adam`](crate::Adam), [`AdamW`](crate::AdamW) and your own optimizers are
/// built on it.
///
/// An elementwise step makes one pass over each parameter, its gradient and its state, and allocates nothing.
/// For parameters of a half type, the step is computed and the state is stored in `f32`. (PyTorch stores the
/// state in the half type, in which small steps are lost to rounding.)
pub struct Descent<M> {
    /// One set of hyperparameters for each group.
    groups: Vec<M>,
    members: Vec<Vec<Member>>,
}

/// A parameter and its state.
struct Member {
    parameter: Parameter,
    steps: u64,
    /// Whether `steps` already includes the current step.
    counted: bool,
    /// Slots that `Method::slots` no longer names, then those that it names, in its order.
    slots: Vec<(String, NamedTensor)>,
}

/// A builder for an optimizer, with parameter groups and their hyperparameters.
pub struct Builder<M> {
    pub(crate) method: M,
    parameters: Vec<Parameter>,
    groups: Vec<(Vec<Parameter>, Change<M>)>,
}

/// Changes the common hyperparameters to those of a group.
type Change<M> = Box<dyn FnOnce(&mut M)>;

impl<M: Method> Builder<M> {
    /// A builder for an optimizer with these parameters and hyperparameters.
    pub fn new(parameters: impl IntoIterator<Item = Parameter>, method: M) -> Builder<M> {
        Builder { method, parameters: parameters.into_iter().collect(), groups: Vec::new() }
    }

    /// Adds a group of parameters. `change` sets what differs from the hyperparameters of the optimizer,
    /// including those that are set after this call.
    pub fn group(
        mut self,
        parameters: impl IntoIterator<Item = Parameter>,
        change: impl FnOnce(&mut M) + 'static,
    ) -> Builder<M> {
        self.groups.push((parameters.into_iter().collect(), Box::new(change)));
        self
    }

    /// Builds the optimizer.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a hyperparameter is out of range, a parameter is given twice, or there are no
    /// parameters.
    #[track_caller]
    pub fn build(self) -> Result<M::Optimizer> {
        let mut optimizer = Descent { groups: Vec::new(), members: Vec::new() };
        optimizer.push_group(self.parameters, self.method.clone())?;
        for (parameters, change) in self.groups {
            let mut method = self.method.clone();
            change(&mut method);
            optimizer.push_group(parameters, method)?;
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
        parameters: impl IntoIterator<Item = Parameter>,
        change: impl FnOnce(&mut M),
    ) -> Result<()> {
        let mut method = self.groups[0].clone(); // `build` makes at least one
        change(&mut method);
        self.push_group(parameters.into_iter().collect(), method)
    }

    #[track_caller]
    fn push_group(&mut self, parameters: Vec<Parameter>, method: M) -> Result<()> {
        method.check()?;
        let mut seen: Vec<usize> =
            self.members.iter().flatten().map(|member| member.parameter.id()).collect();
        seen.extend(parameters.iter().map(Parameter::id));
        seen.sort_unstable();
        if seen.windows(2).any(|pair| pair[0] == pair[1]) {
            let message = "some parameters appear more than once in the parameter groups";
            return Err(Error::new(ErrorKind::Value, M::NAME, message)
                .with_repair("model.parameters() has each parameter once, also where layers share it"));
        }
        self.groups.push(method);
        let member = |parameter| Member { parameter, steps: 0, counted: false, slots: Vec::new() };
        self.members.push(parameters.into_iter().map(member).collect());
        Ok(())
    }

    #[track_caller]
    fn check_rates(&self) -> Result<()> {
        for method in &self.groups {
            let lr = method.lr();
            Checks(M::NAME)
                .require(lr.is_finite(), || format!("Invalid learning rate: {lr:?}; it must be finite"))?;
        }
        Ok(())
    }

    fn pass<'a>(&'a mut self, closure: Option<Closure<'a>>) -> Result<()> {
        self.members.iter_mut().flatten().for_each(|member| member.counted = false);
        M::step(&mut Pass { groups: &self.groups, members: &mut self.members, closure })
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
        self.check_rates()?;
        let caller = Location::caller();
        self.pass(None).map_err(|error| error.at(caller))
    }

    #[track_caller]
    fn step_with(&mut self, loss: Loss<'_>) -> Result<Tensor> {
        self.check_rates()?;
        let caller = Location::caller();
        let first = evaluate(&self.parameters(), loss, caller)?;
        self.pass(Some(Closure { loss, first: first.clone(), caller }))?;
        Ok(first)
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
        self.groups.iter_mut().zip(lrs).for_each(|(method, lr)| method.set_lr(*lr));
        Ok(())
    }

    fn momentums(&self) -> Option<Vec<f64>> {
        self.groups.iter().map(Method::momentum).collect()
    }

    #[track_caller]
    fn set_momentums(&mut self, momentums: &[f64]) -> Result<()> {
        self.check_values("momentum value", momentums)?;
        Checks(M::NAME).require(self.momentums().is_some(), || format!("{} has no momentum", M::NAME))?;
        self.groups.iter_mut().zip(momentums).for_each(|(method, momentum)| method.set_momentum(*momentum));
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
        OptimizerState { method: M::NAME.into(), groups: groups.collect() }
    }

    #[track_caller]
    fn load_state_dict(&mut self, state: &OptimizerState) -> Result<()> {
        let caller = Location::caller();
        (self.groups, self.members) = self.fitted(state).map_err(|error| error.at(caller))?;
        Ok(())
    }
}

impl<M: Method> Descent<M> {
    /// The groups of this optimizer, with the given state.
    fn fitted(&self, state: &OptimizerState) -> Result<(Vec<M>, Vec<Vec<Member>>)> {
        if state.method != M::NAME {
            return Err(misfit(format!("the state is of {}, the optimizer is {}", state.method, M::NAME)));
        }
        let (theirs, own) = (state.groups.len(), self.groups.len());
        if theirs != own {
            return Err(misfit(format!("the state has {theirs} groups, the optimizer {own}")));
        }
        let groups = state.groups.iter().zip(&self.members).enumerate();
        groups.map(|(number, (group, members))| fitted_group(number, group, members)).collect()
    }
}

fn fitted_group<M: Method>(
    number: usize,
    state: &GroupState,
    members: &[Member],
) -> Result<(M, Vec<Member>)> {
    check_count(number, state, members)?;
    let wrong = |error: &dyn fmt::Display| misfit(format!("hyperparameters of group {number}: {error}"));
    if !state.hyperparameters.is_object() {
        return Err(wrong(&format_args!("expected them by name, got {}", state.hyperparameters)));
    }
    let method = M::deserialize(&state.hyperparameters).map_err(|error| wrong(&error))?;
    method.check().map_err(|error| wrong(&error.message()))?;
    let fitted = fitted_members(number, &method, state, members)?;
    Ok((method, fitted))
}

fn check_count(number: usize, state: &GroupState, members: &[Member]) -> Result<()> {
    let (theirs, own) = (state.parameters.len(), members.len());
    if theirs == own {
        return Ok(());
    }
    Err(misfit(format!("group {number} has {theirs} parameters in the state, {own} in the optimizer")))
}

fn fitted_members(
    number: usize,
    method: &dyn Stateful,
    state: &GroupState,
    members: &[Member],
) -> Result<Vec<Member>> {
    let mut fitted = Vec::with_capacity(members.len());
    for (index, (parameter, member)) in state.parameters.iter().zip(members).enumerate() {
        let place = |error: Error| error.context(format!("parameter {index} of group {number}: "));
        fitted.push(member.fitted(method, parameter).map_err(place)?);
    }
    Ok(fitted)
}

/// The part of a [`Method`] that the state of a parameter depends on. Code that needs only this is compiled
/// once for all methods.
trait Stateful {
    fn name(&self) -> &'static str;
    fn slots(&self) -> &'static [&'static str];
    fn slot_sizes(&self, slot: &str, sizes: &[usize]) -> Vec<usize>;
}

impl<M: Method> Stateful for M {
    fn name(&self) -> &'static str {
        M::NAME
    }
    fn slots(&self) -> &'static [&'static str] {
        Method::slots(self)
    }
    fn slot_sizes(&self, slot: &str, sizes: &[usize]) -> Vec<usize> {
        Method::slot_sizes(self, slot, sizes)
    }
}

fn misfit(message: String) -> Error {
    Error::new(ErrorKind::Value, "load_state_dict", message)
}

/// One step over all parameters of an optimizer: the argument of [`Method::step`].
pub struct Pass<'a, M> {
    groups: &'a [M],
    members: &'a mut [Vec<Member>],
    closure: Option<Closure<'a>>,
}

/// The argument of [`Optimizer::step_with`].
struct Closure<'a> {
    loss: Loss<'a>,
    /// The loss at the start of the step.
    first: Tensor,
    caller: &'static Location<'static>,
}

impl<'a, M: Method> Pass<'a, M> {
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

    /// The gradients of all parameters that have one, with the hyperparameters of their groups, in the order
    /// of [`each`](Self::each). They share the buffers of the parameters' gradients.
    pub fn gradients(&self) -> Vec<(&'a M, NamedTensor)> {
        let methods: &'a [M] = self.groups;
        let groups = methods.iter().zip(&*self.members);
        let all = groups.flat_map(|(method, members)| members.iter().map(move |member| (method, member)));
        all.filter_map(|(method, member)| Some((method, member.parameter.grad()?.into_value().unnamed())))
            .collect()
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
        evaluate(&parameters, &mut **loss, caller)
    }
}

#[cold]
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
    /// Calls `f` with the parameter, if it has a gradient.
    fn step(&mut self, method: &dyn Stateful, f: &mut dyn FnMut(Turn<'_>) -> Result<()>) -> Result<()> {
        let Some(grad) = self.parameter.grad() else { return Ok(()) };
        let Member { parameter, steps, counted, slots } = self;
        let number = if *counted { *steps } else { steps.saturating_add(1) };
        parameter.update_in_buffer(|value| {
            let dtype = value.dtype();
            if !dtype.is_floating_point() {
                let message = format!("a parameter must be of a floating point dtype, not {dtype}");
                return Err(Error::new(ErrorKind::DType, method.name(), message));
            }
            if grad.sizes() != value.sizes() {
                let message =
                    format!("a gradient of {:?} for a parameter of {:?}", grad.sizes(), value.sizes());
                return Err(Error::new(ErrorKind::Shape, method.name(), message));
            }
            let fresh = make_slots(method, slots, value)?;
            let grad = grad.value().to(dtype.compute())?.contiguous()?.unnamed();
            let shape = value.shape();
            let named = slots.len() - method.slots().len();
            let slots = Slots { method: method.name(), slots: &mut slots[named..] };
            if dtype == dtype.compute() {
                f(Turn { number, fresh, param: value, grad: &grad, slots })?;
            } else {
                let mut wide = value.to(dtype.compute())?;
                f(Turn { number, fresh, param: &mut wide, grad: &grad, slots })?;
                *value = wide.to(dtype)?;
            }
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
            sizes: value.sizes().to_vec(),
            names: value.names().clone(),
            steps: self.steps,
            slots: self.slots.iter().cloned().collect(),
        }
    }

    /// The same parameter with the given state.
    fn fitted(&self, method: &dyn Stateful, state: &ParameterState) -> Result<Member> {
        let own = self.parameter.tensor();
        let theirs = Shape { sizes: state.sizes.as_slice().into(), names: state.names.clone() };
        if state.sizes != own.sizes() {
            let message = format!("sizes {:?} in the state, {:?} in the optimizer", state.sizes, own.sizes());
            return Err(misfit(message).with_operands([theirs, own.shape()]));
        }
        let named_alike = |dim| match (state.names.get(dim), own.names().get(dim)) {
            (Some(name), Some(own)) => name == own,
            _ => true,
        };
        if !(0..own.ndim()).all(named_alike) {
            let ndim = own.ndim();
            let lists = [state.names.list(ndim), own.names().list(ndim)];
            let message = format!("names {} in the state, {} in the optimizer", lists[0], lists[1]);
            return Err(misfit(message)
                .with_operands([theirs, own.shape()])
                .with_repair("load_state_dict(&state.ignore_names()) takes sizes alone"));
        }
        let mut slots = Vec::new();
        for (name, value) in &state.slots {
            let sizes = method.slot_sizes(name, own.sizes());
            if value.sizes() != sizes || !value.dtype().is_floating_point() {
                let message = format!("{name} is {value:?} in the state, must be of sizes {sizes:?}");
                return Err(misfit(message));
            }
            let names = slot_names(&sizes, own.value());
            slots.push((name.clone(), value.to(own.dtype().compute())?.with_names(names)));
        }
        let missing = |name: &&&str| !state.slots.contains_key(**name);
        if let Some(name) = method.slots().iter().find(missing).filter(|_| state.steps > 0) {
            return Err(misfit(format!(
                "{name} is missing in the state, which has made {} steps",
                state.steps
            )));
        }
        sort_slots(method, &mut slots);
        Ok(Member { parameter: self.parameter.clone(), steps: state.steps, counted: false, slots })
    }
}

/// The names of a slot: those of the parameter if it has the same sizes.
fn slot_names(sizes: &[usize], value: &NamedTensor) -> Names {
    if sizes == value.sizes() { value.names().clone() } else { Names::none() }
}

fn sort_slots(method: &dyn Stateful, slots: &mut [(String, NamedTensor)]) {
    slots.sort_by_key(|(name, _)| method.slots().iter().position(|slot| slot == name));
}

/// Creates the missing slots of `method`. Returns whether all of its slots are new.
fn make_slots(
    method: &dyn Stateful,
    slots: &mut Vec<(String, NamedTensor)>,
    value: &NamedTensor,
) -> Result<bool> {
    let dtype = value.dtype().compute();
    let mut made = 0;
    for &slot in method.slots() {
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
                slots.push((
                    slot.into(),
                    NamedTensor::full_as(method.name(), shape, Scalar::Float(0.0), dtype)?,
                ));
                made += 1;
            }
        }
    }
    if made > 0 {
        sort_slots(method, slots);
    }
    Ok(made == method.slots().len())
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
