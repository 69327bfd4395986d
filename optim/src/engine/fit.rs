//! Loading a state: which parameters it fits, and what differs if it does not.

use super::*;
use member::{slot_names, sort_slots};

impl Engine {
    /// The groups of this optimizer and their parameters, with the given state.
    pub(super) fn fitted(&self, state: &OptimizerState) -> Result<(Box<dyn Groups>, Vec<Member>)> {
        let (name, counts) = (self.groups.name(), self.counts());
        if state.method != name {
            return Err(misfit(format!("the state is of {}, the optimizer is {name}", state.method)));
        }
        let (theirs, own) = (state.groups.len(), counts.len());
        if theirs != own {
            return Err(misfit(format!("the state has {theirs} groups, the optimizer {own}")));
        }
        let shared = self.groups.check_shared(&state.shared, self.numel_of_wholes()?);
        shared.map_err(|error| misfit(error.message().into()))?;
        let wrong =
            |number: usize, error: &str| misfit(format!("hyperparameters of group {number}: {error}"));
        let (mut groups, mut start) = (self.groups.none(), 0);
        for (number, group) in state.groups.iter().enumerate() {
            check_count(number, group, &self.members[start..][..counts[number]])?;
            start += counts[number];
            if !group.hyperparameters.is_object() {
                let message = format!("expected them by name, got {}", group.hyperparameters);
                return Err(wrong(number, &message));
            }
            groups.push_json(&group.hyperparameters).map_err(|error| wrong(number, &error))?;
        }
        let mut fitted = Vec::with_capacity(self.members.len());
        for (number, group) in state.groups.iter().enumerate() {
            groups.check(number).map_err(|error| wrong(number, error.message()))?;
            let (mut first, mut messages) = (None, Vec::new());
            for (index, parameter) in group.parameters.iter().enumerate() {
                let member = &self.members[fitted.len() + messages.len()];
                match member.fitted(&*groups, parameter) {
                    Ok(member) => fitted.push(member),
                    Err(error) => {
                        let path = member.paths.first().map(|path| format!(", '{path}'")).unwrap_or_default();
                        let error = error.context(format!("parameter {index} of group {number}{path}: "));
                        messages.push(error.message().to_string());
                        first.get_or_insert(error);
                    }
                }
            }
            if let Some(first) = first {
                return Err(first.with_message(listed(&messages, "; ")));
            }
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
    let there: Vec<&String> = crate::list(state.parameters.iter().filter_map(|one| one.path.as_ref()));
    if there.len() < theirs || members.iter().any(|member| member.paths.is_empty()) {
        return Err(misfit(message));
    }
    let is_here = |path: &String| members.iter().any(|member| member.paths.contains(path));
    let is_there = |member: &Member| member.paths.iter().any(|path| there.contains(&path));
    let only_there = there.iter().filter(|path| !is_here(path)).map(|path| format!("'{path}'"));
    let missing = members.iter().filter(|member| !is_there(member));
    let missing = missing.map(|member| format!("'{}'", member.paths[0]));
    let lists: [Vec<String>; 2] = [crate::list(only_there), crate::list(missing)];
    for (what, paths) in ["only in the state", "missing in the state"].into_iter().zip(lists) {
        if !paths.is_empty() {
            message += &format!("; {what}: {}", listed(&paths, ", "));
        }
    }
    Err(misfit(message))
}

/// A list for a message, of which the first ten are shown.
fn listed(all: &[String], separator: &str) -> String {
    match all.get(..10) {
        Some(shown) if all.len() > 10 => {
            format!("{}{separator}and {} more", namegrad_core::joined(shown, separator), all.len() - 10)
        }
        _ => namegrad_core::joined(all, separator),
    }
}

impl Member {
    /// The same parameter with the given state.
    fn fitted(&self, groups: &dyn Groups, state: &ParameterState) -> Result<Member> {
        let (group, own) = (self.group, self.dims()?);
        let theirs = Shape { sizes: state.sizes.as_slice().into(), names: state.names.clone() };
        if let Some(path) = &state.path
            && !self.paths.is_empty()
            && !self.paths.contains(path)
        {
            let repair =
                "optimizer.load_state_dict(&state.ignore_names())?, which takes parameters by position alone";
            return Err(misfit(format!("it is '{path}' in the state")).with_repair(repair));
        }
        if state.sizes != own.sizes() {
            let message = format!("sizes {:?} in the state, {:?} in the optimizer", state.sizes, own.sizes());
            return Err(misfit(message).with_operands([theirs, own.shape()]));
        }
        let ndim = own.ndim();
        if apart(state.names.iter(ndim), own.names().iter(ndim)).is_some() {
            let lists = [state.names.list(ndim), own.names().list(ndim)];
            let message = format!("names {} in the state, {} in the optimizer", lists[0], lists[1]);
            return Err(misfit(message)
                .with_operands([theirs, own.shape()])
                .with_repair("optimizer.load_state_dict(&state.ignore_names())?, if the sizes are enough"));
        }
        // What the method keeps is in parts if its steps are.
        let part = self.parameter.part().filter(|_| !groups.needs_whole());
        let mine = |x: NamedTensor| match part {
            Some(part) if x.sizes() == own.sizes() => part.mine(&x),
            _ => Ok(x),
        };
        let mut slots = Vec::new();
        for (name, value) in entries(&state.slots) {
            let (sizes, _) = groups.slot(group, name, own.sizes());
            if value.sizes() != sizes || !value.dtype().is_floating_point() {
                let message = format!("{name} is {value:?} in the state, must be of sizes {sizes:?}");
                return Err(misfit(message));
            }
            let names = slot_names(&sizes, &own);
            slots.push((name.clone(), mine(value.to(own.dtype().compute())?.with_names(names))?));
        }
        let named = groups.slots(group, own.sizes());
        let missing = |name: &&&str| value_of(&state.slots, name).is_none();
        if let Some(name) = named.iter().find(missing).filter(|_| state.steps > 0) {
            let steps = state.steps;
            return Err(misfit(format!("{name} is missing in the state, which has made {steps} steps")));
        }
        sort_slots(named, &mut slots);
        let (parameter, paths) = (self.parameter.clone(), self.paths.clone());
        let master = match &state.master {
            Some(master) if master.sizes() != own.sizes() || !master.dtype().is_floating_point() => {
                return Err(misfit(format!("the master is {master:?} in the state")));
            }
            Some(master) => {
                let value = mine(master.to(DType::F32)?.with_names(own.names().clone()))?;
                Some(Master { value, rounded: None })
            }
            None => None,
        };
        Ok(Member { parameter, group, paths, steps: state.steps, counted: false, master, slots })
    }
}

fn misfit(message: String) -> Error {
    Error::new(ErrorKind::Value, "load_state_dict", message)
}
