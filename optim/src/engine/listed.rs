//! [`Listed`], a parameter as an optimizer is given it.

use super::*;
use namegrad_nn::pattern::Pattern;

/// A parameter, with its path in a model if that is known. A [`Parameter`] is one without a path, an item of
/// `model.named_parameters()` or `model.matching(..)` one with a path.
#[derive(Clone, Debug)]
pub struct Listed {
    pub(crate) parameter: Parameter,
    /// All paths of a parameter that several layers share.
    pub(crate) paths: Vec<String>,
}

impl From<Parameter> for Listed {
    fn from(parameter: Parameter) -> Listed {
        Listed { parameter, paths: Vec::new() }
    }
}

impl From<(String, Parameter)> for Listed {
    fn from((path, parameter): (String, Parameter)) -> Listed {
        Listed { parameter, paths: vec![path] }
    }
}

/// The list with each parameter that has several paths only once.
pub(crate) fn merged(all: impl IntoIterator<Item = impl Into<Listed>>) -> Vec<Listed> {
    let (mut list, mut places) = (Vec::new(), Places::new());
    for listed in all {
        add(&mut list, &mut places, listed.into());
    }
    list
}

/// The places of parameters in a list, by their ids.
type Places = HashMap<usize, usize>;

fn add(list: &mut Vec<Listed>, places: &mut Places, listed: Listed) {
    if !listed.paths.is_empty() {
        let place = *places.entry(listed.parameter.id()).or_insert(list.len());
        if let Some(first) = list.get_mut(place) {
            return first.paths.extend(listed.paths);
        }
    }
    list.push(listed);
}

/// The parameters of a group of a builder.
pub(crate) enum Chosen {
    Given(Vec<Listed>),
    Matching(String),
}

/// The parameters of each group. The first is of those that are in no other, unless there are none and there
/// are other groups.
#[track_caller]
pub(crate) fn divided(op: &'static str, all: Vec<Listed>, groups: Vec<Chosen>) -> Result<Vec<Vec<Listed>>> {
    let mut members = vec![all];
    for group in groups {
        let chosen = match group {
            Chosen::Given(chosen) => chosen,
            Chosen::Matching(pattern) => take_matching(op, &mut members[0], &pattern)?,
        };
        members.push(chosen);
    }
    if members[0].is_empty() && members.len() > 1 {
        members.remove(0);
    }
    Ok(members)
}

/// Moves the parameters with a path that matches a pattern out of the list.
#[track_caller]
fn take_matching(op: &'static str, list: &mut Vec<Listed>, text: &str) -> Result<Vec<Listed>> {
    let pattern = Pattern::new(text);
    let (mut found, mut left) = (Vec::new(), Vec::new());
    for listed in &*list {
        let is_covered = listed.paths.iter().any(|path| pattern.covers(path));
        if is_covered { &mut found } else { &mut left }.push(listed.clone());
    }
    if !found.is_empty() {
        *list = left;
        return Ok(found);
    }
    if list.iter().any(|listed| listed.paths.is_empty()) {
        let message = format!("the paths of parameters are not known, so that none matches '{text}'");
        return Err(Error::new(ErrorKind::Value, op, message)
            .with_repair(format!("{op}::builder_named(model.named_parameters())")));
    }
    let mut paths = list.iter().flat_map(|listed| listed.paths.iter().map(String::as_str));
    Err(pattern.unmatched(op, "parameter outside of earlier groups", &mut paths))
}
