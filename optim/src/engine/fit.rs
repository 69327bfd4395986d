//! Loading a state: which parameters it fits, and what differs if it does not.

use super::Engine;
use super::groups::Groups;
use super::member::{Member, slot_names, sort_slots};
use crate::master::Master;
use crate::state::{GroupState, OptimizerState, ParameterState};
use namegrad_core::{DType, Error, ErrorKind, Result, Shape};

/// The groups of an optimizer and the members of each.
type Fitted = (Box<dyn Groups>, Vec<Vec<Member>>);

impl Engine {
    /// The groups of this optimizer and their parameters, with the given state.
    pub(super) fn fitted(&self, state: &OptimizerState) -> Result<Fitted> {
        let name = self.groups.name();
        if state.method != name {
            return Err(misfit(format!("the state is of {}, the optimizer is {name}", state.method)));
        }
        let (theirs, own) = (state.groups.len(), self.members.len());
        if theirs != own {
            return Err(misfit(format!("the state has {theirs} groups, the optimizer {own}")));
        }
        let numel = self.members.iter().flatten().map(|member| member.parameter.numel()).sum();
        self.groups.check_shared(&state.shared, numel).map_err(|error| misfit(error.message().into()))?;
        let wrong =
            |number: usize, error: &str| misfit(format!("hyperparameters of group {number}: {error}"));
        let mut groups = self.groups.none();
        for (number, (group, members)) in state.groups.iter().zip(&self.members).enumerate() {
            check_count(number, group, members)?;
            if !group.hyperparameters.is_object() {
                let message = format!("expected them by name, got {}", group.hyperparameters);
                return Err(wrong(number, &message));
            }
            groups.push_json(&group.hyperparameters).map_err(|error| wrong(number, &error))?;
        }
        let mut fitted = Vec::with_capacity(own);
        for (number, (group, members)) in state.groups.iter().zip(&self.members).enumerate() {
            groups.check(number).map_err(|error| wrong(number, error.message()))?;
            fitted.push(fitted_members(&*groups, number, group, members)?);
        }
        Ok((groups, fitted))
    }
}

fn check_count(number: usize, state: &GroupState, members: &[Member]) -> Result<()> {
    let (theirs, own) = (state.parameters.len(), members.len());
    if theirs == own {
        return Ok(());
    }
    let mut message = format!("group {number} has {theirs} parameters in the state, {own} in the optimizer");
    let known: Vec<&str> =
        state.parameters.iter().filter_map(|parameter| parameter.path.as_deref()).collect();
    if known.len() == theirs && members.iter().all(|member| !member.paths.is_empty()) {
        let own = |path: &str| members.iter().any(|member| member.paths.iter().any(|own| own == path));
        let is_missing = |member: &&Member| !member.paths.iter().any(|path| known.contains(&path.as_str()));
        let only_there = known.iter().filter(|path| !own(path)).map(|path| format!("'{path}'"));
        let only_here = members.iter().filter(is_missing).map(|member| format!("'{}'", member.paths[0]));
        let lists = [
            ("only in the state", only_there.collect()),
            ("missing in the state", only_here.collect::<Vec<_>>()),
        ];
        for (what, paths) in lists.into_iter().filter(|(_, paths): &(_, Vec<_>)| !paths.is_empty()) {
            message += &format!("; {what}: {}", listed(paths, ", "));
        }
    }
    Err(misfit(message))
}

/// A list for a message, of which the first ten are shown.
fn listed(all: Vec<String>, separator: &str) -> String {
    let shown = all.iter().take(10).cloned().collect::<Vec<_>>().join(separator);
    if all.len() > 10 { format!("{shown}{separator}and {} more", all.len() - 10) } else { shown }
}

fn fitted_members(
    groups: &dyn Groups,
    number: usize,
    state: &GroupState,
    members: &[Member],
) -> Result<Vec<Member>> {
    let mut fitted = Vec::with_capacity(members.len());
    let mut errors = Vec::new();
    for (index, (parameter, member)) in state.parameters.iter().zip(members).enumerate() {
        let path = member.paths.first().map(|path| format!(", '{path}'")).unwrap_or_default();
        let place = |error: Error| error.context(format!("parameter {index} of group {number}{path}: "));
        match member.fitted(groups, number, parameter) {
            Ok(member) => fitted.push(member),
            Err(error) => errors.push(place(error)),
        }
    }
    if errors.is_empty() {
        return Ok(fitted);
    }
    let messages = errors.iter().map(|error| error.message().to_string()).collect();
    Err(errors.swap_remove(0).with_message(listed(messages, "; ")))
}

impl Member {
    /// The same parameter with the given state.
    fn fitted(&self, groups: &dyn Groups, group: usize, state: &ParameterState) -> Result<Member> {
        let own = self.parameter.tensor();
        let theirs = Shape { sizes: state.sizes.as_slice().into(), names: state.names.clone() };
        if let Some(path) = &state.path
            && !self.paths.is_empty()
            && !self.paths.contains(path)
        {
            let message = format!("it is '{path}' in the state");
            return Err(misfit(message)
                .with_repair("load_state_dict(&state.ignore_names()) takes parameters by position alone"));
        }
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
            let sizes = groups.slot_sizes(group, name, own.sizes());
            if value.sizes() != sizes || !value.dtype().is_floating_point() {
                let message = format!("{name} is {value:?} in the state, must be of sizes {sizes:?}");
                return Err(misfit(message));
            }
            let names = slot_names(&sizes, own.value());
            slots.push((name.clone(), value.to(own.dtype().compute())?.with_names(names)));
        }
        let named = groups.slots(group, own.sizes());
        let missing = |name: &&&str| !state.slots.contains_key(**name);
        if let Some(name) = named.iter().find(missing).filter(|_| state.steps > 0) {
            return Err(misfit(format!(
                "{name} is missing in the state, which has made {} steps",
                state.steps
            )));
        }
        sort_slots(named, &mut slots);
        let (parameter, paths) = (self.parameter.clone(), self.paths.clone());
        let master = match &state.master {
            Some(master) if master.sizes() != own.sizes() || !master.dtype().is_floating_point() => {
                return Err(misfit(format!("the master is {master:?} in the state")));
            }
            Some(master) => Some(Master::new(master.to(DType::F32)?.with_names(own.names().clone()))),
            None => None,
        };
        Ok(Member { parameter, paths, steps: state.steps, counted: false, master, slots })
    }
}

fn misfit(message: String) -> Error {
    Error::new(ErrorKind::Value, "load_state_dict", message)
}
