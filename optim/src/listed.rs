//! [`Listed`], a parameter as an optimizer is given it.

use namegrad_autograd::Parameter;
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_nn::pattern::Pattern;
use std::collections::HashMap;

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
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut list: Vec<Listed> = Vec::new();
    for listed in all {
        let listed: Listed = listed.into();
        if listed.paths.is_empty() {
            list.push(listed);
            continue;
        }
        match places.get(&listed.parameter.id()) {
            Some(place) => list[*place].paths.extend(listed.paths),
            None => {
                places.insert(listed.parameter.id(), list.len());
                list.push(listed);
            }
        }
    }
    list
}

/// Moves the parameters with a path that matches a pattern out of the list.
#[track_caller]
pub(crate) fn take_matching(op: &'static str, list: &mut Vec<Listed>, text: &str) -> Result<Vec<Listed>> {
    let pattern = Pattern::new(text);
    let covered = |listed: &Listed| listed.paths.iter().any(|path| pattern.covers(path));
    let (found, left): (Vec<Listed>, Vec<Listed>) = list.iter().cloned().partition(covered);
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
