//! [`Engine`], the optimizer of any method: parameter groups and the state of each parameter, in `member`. A
//! step is in `step`, loading a state in `fit`. The hyperparameters have no type here, so that all methods
//! share one engine.

mod descent;
mod fit;
mod groups;
mod listed;
mod master;
mod member;
mod method;
mod state;
mod step;

pub use descent::{Builder, Descent};
pub use listed::{Listed, ParameterList};
pub use method::{Method, ParameterStep, Slots};
pub use state::{GroupState, OptimizerState, ParameterState};
pub(crate) use state::{check_known, tensor};
pub use step::OptimizerStep;

// The names that most of the engine needs.
use super::*;
use crate::optimizer::evaluate;
use groups::{Groups, Rate};
use master::Master;
use member::{Member, in_whole, part_of, whole};
use namegrad_autograd::{backward_passes, places, span_at};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use step::{Closure, needs_loss};

/// Tensors that a method keeps for all parameters together.
type Shared = BTreeMap<String, NamedTensor>;

/// An optimizer of any method.
pub(crate) struct Engine {
    /// The hyperparameters of each group.
    pub(crate) groups: Box<dyn Groups>,
    /// Members of the first group come first.
    members: Vec<Member>,
    shared: Shared,
    /// The backward passes of this thread before the last step.
    passes: u64,
    /// The backward passes before the last `zero_grad` that has removed a gradient.
    cleared: AtomicU64,
}

impl Engine {
    /// An optimizer with these hyperparameters of each group and parameters.
    #[track_caller]
    pub(crate) fn new(groups: Box<dyn Groups>, parameters: Vec<Listed>) -> Result<Engine> {
        let (members, shared, cleared) = (Vec::new(), Shared::new(), AtomicU64::new(u64::MAX));
        let mut engine = Engine { groups, members, shared, passes: backward_passes(), cleared };
        for group in 0..engine.groups.count() {
            let members = parameters.iter().filter(|listed| listed.group == group);
            engine.push_group(group, crate::list(members.cloned()))?;
        }
        let name = engine.groups.name();
        ensure(!engine.members.is_empty(), name, || {
            ("optimizer got an empty parameter list", format!("{name}::builder(model.parameters())"))
        })?;
        Ok(engine)
    }

    /// The number of parameters in each group.
    pub(crate) fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.groups.count()];
        for member in &self.members {
            counts[member.group] += 1;
        }
        counts
    }

    #[track_caller]
    fn push_group(&mut self, group: usize, parameters: Vec<Listed>) -> Result<()> {
        let name = self.groups.name();
        self.groups.check(group)?;
        // A state that cannot be saved or loaded is an error now, and not after hours of training.
        let saved = self.saved(group)?;
        if let Err(error) = self.groups.none().push_json(&saved) {
            let message = format!("hyperparameters cannot be read back from JSON: {error}");
            return Err(Error::new(ErrorKind::Value, name, message));
        }
        let mut known = Ids::default();
        for (place, member) in self.members.iter().enumerate() {
            known.first(member.parameter.id(), place);
        }
        for Listed { parameter, paths, group } in parameters {
            let before = known.first(parameter.id(), self.members.len());
            ensure(before == self.members.len(), name, || {
                let path = self.members[before].paths.first().or(paths.first());
                let path = path.map(|path| format!(": '{path}'")).unwrap_or_default();
                let message = format!("some parameters appear more than once in the parameter groups{path}");
                (message, "model.parameters(), which has each parameter once, also where layers share it")
            })?;
            self.groups.check_parameter(group, &parameter.shape())?;
            let (master, slots) = (None, Vec::new());
            self.members.push(Member { parameter, group, paths, steps: 0, counted: false, master, slots });
        }
        Ok(())
    }

    /// The hyperparameters of a group as JSON.
    #[track_caller]
    fn saved(&self, group: usize) -> Result<Json> {
        match self.groups.to_json(group) {
            Ok(json) => Ok(json),
            Err(error) => Err(refused(self.groups.name(), format!("hyperparameters: {error}"), "")),
        }
    }

    /// The elements of all parameters, and of the wholes that they are parts of.
    fn numel_of_wholes(&self) -> Result<usize> {
        let mut sum = 0;
        for member in &self.members {
            sum += member.dims()?.numel();
        }
        Ok(sum)
    }

    /// Checks the hyperparameters, which may have been changed since the groups were made.
    #[track_caller]
    fn check_groups(&self) -> Result<()> {
        let (kind, name) = (ErrorKind::Value, self.groups.name());
        for (group, lr) in self.rates(Rate::Lr).into_iter().flatten().enumerate() {
            // Methods may have no check.
            let message = || format!("Invalid learning rate: {lr:?}; it must be finite");
            Error::ensure(lr.is_finite(), kind, name, message)?;
            // Steps are computed in `f32`, except those of `f64` parameters.
            let is_narrow = |member: &Member| member.group == group && member.parameter.dtype() != DType::F64;
            let most = f32::MAX;
            let fits = (lr as f32).is_finite() || !self.members.iter().any(is_narrow);
            Error::ensure(fits, kind, name, || {
                format!("Invalid learning rate: {lr:?}; parameters that are not f64 take at most {most:?}")
            })?;
            self.groups.check(group)?;
        }
        Ok(())
    }

    /// Makes a step. Errors of the closure keep their line, others are at `caller`. In a plan, it is made with
    /// states that are kept apart, so that the own ones stay as they are.
    fn step_at(&mut self, closure: Option<Closure<'_>>, caller: &'static Location<'static>) -> Result<()> {
        let planned = places::stand_in(self.members.as_ptr() as usize, || Some(Rc::new(self.planned())));
        let Some(planned) = planned else { return self.step_here(closure, caller) };
        let (passes, cleared) = (self.passes, self.cleared.load(Ordering::Relaxed));
        let swap = |engine: &mut Engine| {
            let (members, shared) = &mut *planned.borrow_mut();
            std::mem::swap(&mut engine.members, members);
            std::mem::swap(&mut engine.shared, shared);
        };
        swap(self);
        let result = catch_unwind(AssertUnwindSafe(|| self.step_here(closure, caller)));
        swap(self);
        (self.passes, self.cleared) = (passes, cleared.into());
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// The states for the steps of a plan: those of now, without elements.
    fn planned(&self) -> RefCell<(Vec<Member>, Shared)> {
        let without = |x: &NamedTensor| x.to_device(Device::Meta).unwrap_or_else(|_| x.clone());
        let mut shared = Shared::new();
        for (name, tensor) in &self.shared {
            insert(&mut shared, name.clone(), without(tensor));
        }
        RefCell::new((crate::list(self.members.iter().map(|member| member.planned(&without))), shared))
    }

    fn step_here(&mut self, closure: Option<Closure<'_>>, caller: &'static Location<'static>) -> Result<()> {
        let name = self.groups.name();
        span_at(name, caller, || {
            let (mut any, finite) = (false, !self.groups.needs_loss());
            for member in &mut self.members {
                member.counted = false;
                any |= member.check(name, finite).map_err(|error| error.at(caller))?;
            }
            let passes = std::mem::replace(&mut self.passes, backward_passes());
            if !any && let Some(error) = self.without_gradients(passes, closure.is_some()) {
                return Err(error.at(caller));
            }
            let Engine { groups, members, shared, .. } = self;
            // With the lifetime of this step, which is shorter.
            let closure = closure.map(|Closure { loss, first, caller }| Closure { loss, first, caller });
            let mut step = OptimizerStep { groups: &**groups, members, shared, closure, failed: false };
            let result = groups.step(&mut step);
            if step.failed { result } else { result.map_err(|error| error.at(caller)) }
        })
    }

    /// The error of a step without any gradient, if that is a mistake. It is none before anything was computed,
    /// as in programs that look at a schedule, nor where losses of several models take turns.
    #[cold]
    fn without_gradients(&self, passes: u64, is_of_loss: bool) -> Option<Error> {
        let (name, count) = (self.groups.name(), self.members.len());
        let builder = format!("{name}::builder(model.parameters()), with the model that computes the loss");
        let any = |holds: fn(&Parameter) -> bool| self.members.iter().any(|member| holds(&member.parameter));
        let is_first = || self.members.iter().all(|member| member.steps == 0);
        let (why, repair) = if !any(Parameter::requires_grad) {
            ("requires a gradient: the model is frozen", "model.set_requires_grad(true)?")
        } else if self.cleared.load(Ordering::Relaxed) == self.passes {
            let why = "has a gradient: `zero_grad` has removed them, and there was no backward pass since";
            (why, "loss.backward()?, after optimizer.zero_grad() and before the step")
        } else if passes != self.passes && (is_of_loss || is_first()) {
            let why = "has a gradient after the backward pass: the loss does not depend on them, but perhaps on those of \
                       another model, or `zero_grad` came after `backward`";
            (why, &builder[..])
        } else if passes == self.passes && any(Parameter::is_recorded) {
            ("has a gradient: there was no backward pass", "loss.backward()?")
        } else {
            return None;
        };
        let message = format!("none of the {count} parameters {why}");
        Some(Error::new(ErrorKind::Autograd, name, message).with_repair(repair))
    }

    /// A number of each group, if they have it.
    fn rates(&self, rate: Rate) -> Option<Vec<f64>> {
        let mut rates = Vec::new();
        for group in 0..self.groups.count() {
            rates.push(self.groups.rate(group, rate)?);
        }
        Some(rates)
    }

    /// Changes a number of each group, or of none if a new one is out of range.
    #[track_caller]
    fn set_rates(&mut self, rate: Rate, what: &str, rates: &[f64]) -> Result<()> {
        let (name, groups) = (self.groups.name(), self.groups.count());
        let counted = || format!("{} values of {what} for {groups} groups", rates.len());
        Error::ensure(rates.len() == groups, ErrorKind::Value, name, counted)?;
        for number in rates {
            let message = || format!("Invalid {what}: {number:?}; it must be finite");
            Error::ensure(number.is_finite(), ErrorKind::Value, name, message)?;
        }
        let Some(before) = self.rates(rate) else {
            return Err(Error::new(ErrorKind::Value, name, format!("{name} has no momentum")));
        };
        let mut result = Ok(());
        for (group, number) in rates.iter().enumerate() {
            self.groups.set_rate(group, rate, *number);
            result = result.and(self.groups.check(group));
        }
        if result.is_err() {
            for (group, number) in before.into_iter().enumerate() {
                self.groups.set_rate(group, rate, number);
            }
        }
        result
    }
}

/// The elements of all parameters.
fn numel(members: &[Member]) -> usize {
    members.iter().map(|member| member.parameter.numel()).sum()
}

/// The parameters of members.
fn parameters<'m>(members: impl IntoIterator<Item = &'m Member>) -> Vec<Parameter> {
    crate::list(members.into_iter().map(|member| member.parameter.clone()))
}

/// Methods of [`Optimizer`].
impl Engine {
    #[track_caller]
    fn step(&mut self) -> Result<()> {
        self.check_groups()?;
        if self.groups.needs_loss() {
            return Err(needs_loss(self.groups.name()));
        }
        self.step_at(None, Location::caller())
    }

    #[track_caller]
    fn step_with(&mut self, loss: Loss<'_>) -> Result<Tensor> {
        self.check_groups()?;
        let caller = Location::caller();
        // A method that evaluates the loss itself ends its step where the loss is not finite.
        let checked = (!self.groups.needs_loss()).then(|| self.groups.name());
        let first = evaluate(&parameters(&self.members), loss, checked, caller)?;
        self.step_at(Some(Closure { loss, first: first.clone(), caller }), caller)?;
        Ok(first)
    }

    #[track_caller]
    fn check_finite(&self) -> Result<()> {
        let caller = Location::caller();
        for member in &self.members {
            let Some(gradient) = member.parameter.grad() else { continue };
            let checked = gradient.value().check_finite("check_finite");
            checked.map_err(|error| error.context(member.of_gradient()).at(caller))?;
        }
        Ok(())
    }

    fn zero_grad(&self) {
        for Member { parameter, .. } in &self.members {
            if parameter.grad().is_some() {
                parameter.zero_grad();
                if places::is_planned() {
                    continue;
                }
                self.cleared.store(backward_passes(), Ordering::Relaxed);
            }
        }
    }

    fn state_dict(&self) -> OptimizerState {
        let mut groups = Vec::new();
        for group in 0..self.groups.count() {
            // Those that were changed through `groups_mut` may have no JSON form. The reason is in their
            // place then, and is the error of saving or loading the state.
            let hyperparameters = self.saved(group).unwrap_or_else(|error| error.message().into());
            groups.push(GroupState { hyperparameters, parameters: Vec::new() });
        }
        for member in &self.members {
            let state = member.state().unwrap_or_else(|error| panic!("{error}"));
            groups[member.group].parameters.push(state);
        }
        OptimizerState { method: self.groups.name().into(), groups, shared: self.shared.clone() }
    }

    #[track_caller]
    fn load_state_dict(&mut self, state: &OptimizerState) -> Result<()> {
        (self.groups, self.members) = at_caller(|| self.fitted(state))?;
        self.shared = state.shared.clone();
        Ok(())
    }
}
