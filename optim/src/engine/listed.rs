//! [`Listed`], a parameter as an optimizer is given it.

use super::*;
use namegrad_nn::pattern::Pattern;
use std::borrow::Borrow;

/// A parameter, with its path in a model if that is known. A [`Parameter`] is one without a path, an item of
/// `model.named_parameters()` or `model.matching(..)` one with a path.
#[derive(Clone, Debug)]
pub struct Listed {
    pub(crate) parameter: Parameter,
    /// All paths of a parameter that several layers share.
    pub(crate) paths: Vec<String>,
    /// The number of its group.
    pub(super) group: usize,
}

impl From<Parameter> for Listed {
    fn from(parameter: Parameter) -> Listed {
        Listed { parameter, paths: Vec::new(), group: 0 }
    }
}

impl From<(String, Parameter)> for Listed {
    fn from((path, parameter): (String, Parameter)) -> Listed {
        Listed { parameter, paths: vec![path], group: 0 }
    }
}

/// A list of parameters, or of references to them: `model.parameters()`, `[&weight]`, an iterator.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of parameters",
    label = "expected `model.parameters()`, a list or an iterator of parameters"
)]
pub trait ParameterList {
    /// The parameters.
    #[doc(hidden)]
    fn list(self) -> Vec<Parameter>;
}

#[diagnostic::do_not_recommend]
impl<I: IntoIterator<Item: Borrow<Parameter>>> ParameterList for I {
    fn list(self) -> Vec<Parameter> {
        crate::list(self.into_iter().map(|parameter| parameter.borrow().clone()))
    }
}

/// The list of a group, with each parameter that has several paths only once.
pub(super) fn merged(all: impl IntoIterator<Item = impl Into<Listed>>, group: usize) -> Vec<Listed> {
    let (mut list, mut places) = (Vec::new(), Ids::default());
    for listed in all {
        add(&mut list, &mut places, Listed { group, ..listed.into() });
    }
    list
}

/// Adds a parameter, or its paths if it is in the list. The places in the list have the ids of parameters.
fn add(list: &mut Vec<Listed>, places: &mut Ids, listed: Listed) {
    if !listed.paths.is_empty() {
        let place = places.first(listed.parameter.id(), list.len());
        if let Some(first) = list.get_mut(place) {
            return first.paths.extend(listed.paths);
        }
    }
    list.push(listed);
}

/// Moves the parameters of group 0 with a path that matches a pattern to another group.
#[track_caller]
pub(super) fn move_matching(op: &'static str, list: &mut [Listed], text: &str, group: usize) -> Result<()> {
    let pattern = Pattern::new(text);
    let (mut paths, mut is_found, mut are_known) = (Vec::new(), false, true);
    for listed in list.iter_mut().filter(|listed| listed.group == 0) {
        if listed.paths.iter().any(|path| pattern.covers(path)) {
            (listed.group, is_found) = (group, true);
        }
        are_known &= !listed.paths.is_empty();
        paths.extend(listed.paths.iter().map(String::as_str));
    }
    if is_found {
        return Ok(());
    }
    if !are_known {
        let message = format!("the paths of parameters are not known, so that none matches '{text}'");
        return Err(refused(op, message, &format!("{op}::builder_named(model.named_parameters())")));
    }
    Err(pattern.unmatched(op, "parameter outside of earlier groups", &mut paths.into_iter()))
}
