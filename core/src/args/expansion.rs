//! Sizes for the dims of a tensor, by position or by name.

use super::{Argument, IntoShape, OpenDim, OpenShape, Shape, Value};
use crate::dim::sort_dims;
use crate::error::{Error, ErrorKind, Result};
use crate::names::naming::Aligned;
use crate::names::{Name, Names};
use crate::tensor::NamedTensor;
use std::borrow::Cow;

/// The sizes to which a tensor is expanded, or its repeats: by position from the right, or by name if all of
/// them and the dims of the tensor have names. -1 keeps a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion(pub OpenShape);

/// An [`Expansion`] of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expanded {
    /// The sizes of the dims, and of new ones on the left.
    pub sizes: OpenShape,
    /// The dims of the tensor to which the sizes belong, if they are given by name.
    dims: Option<Aligned>,
}

impl Expansion {
    /// The sizes as a caller wrote them, looked up for an argument of `op`, which errors name.
    ///
    /// # Errors
    /// Those of the sizes, and those of the look-up.
    #[doc(hidden)]
    #[inline(never)]
    #[track_caller]
    pub fn resolved(op: &'static str, dims: Result<OpenShape>, of: &[&NamedTensor]) -> Result<Expanded> {
        look_up(dims.map_err(|error| error.of(op))?, op, of)
    }
}

impl Argument for Expansion {
    type Resolved = Expanded;
    type View<'a> = &'a Expanded;
    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<Expanded> {
        look_up(self.0.clone(), op, of)
    }
    fn view(resolved: &Expanded) -> &Expanded {
        resolved
    }
    fn from_value(value: &Value) -> Option<Expansion> {
        Shape::from_value(value).map(|shape| Expansion(shape.0))
    }
    fn accepted() -> String {
        Shape::accepted()
    }
}

#[track_caller]
fn look_up(given: OpenShape, op: &'static str, of: &[&NamedTensor]) -> Result<Expanded> {
    let Some(dims) = by_name(op, of[0], &given)? else { return Ok(Expanded { sizes: given, dims: None }) };
    let kept = if op == "expand" { None } else { Some(1) };
    let size = |name| match given.iter().find(|dim| dim.name == name && name.is_some()) {
        Some(dim) => dim.size,
        None => kept,
    };
    let sizes = crate::list(dims.iter().map(|(_, name)| OpenDim { name: *name, size: size(*name) }));
    Ok(Expanded { sizes, dims: Some(dims) })
}

impl IntoShape for Expansion {
    fn into_open_shape(self) -> Result<OpenShape> {
        Ok(self.0)
    }
}

impl Expanded {
    /// The tensor with its dims in the order of the sizes, and dims of size one for new names.
    pub(crate) fn in_order<'a>(&self, x: &'a NamedTensor) -> Cow<'a, NamedTensor> {
        self.dims.as_ref().map_or(Cow::Borrowed(x), |dims| Cow::Owned(x.aligned(dims)))
    }

    /// The dims of the result in the order in which those of the tensor come last, if they do not anyway.
    pub fn order(&self) -> Option<Vec<usize>> {
        let dims = self.dims.as_ref()?;
        let new = (0..dims.len()).filter(|dim| dims[*dim].0.is_none());
        let mut own: Vec<usize> = crate::list((0..dims.len()).filter(|dim| dims[*dim].0.is_some()));
        sort_dims(&mut own, &|a, b| dims[a].0 < dims[b].0);
        Some(crate::list(new.chain(own)))
    }
}

/// The dims of a result whose sizes are given by name; `None` if they are given by position.
#[track_caller]
fn by_name(op: &'static str, x: &NamedTensor, wanted: &[OpenDim]) -> Result<Option<Aligned>> {
    let given: Option<Vec<Name>> = crate::list(wanted.iter().map(|dim| dim.name));
    let Some(given) = given.filter(|given| !given.is_empty() && x.has_names()) else { return Ok(None) };
    let own = |dim: usize| (Some(dim), x.name(dim));
    let is_new = |name: &Name| x.names().position(*name).is_none();
    let absent = (0..x.ndim()).find(|dim| x.name(*dim).is_none_or(|name| !given.contains(&name)));
    let all_named = (0..x.ndim()).all(|dim| x.name(dim).is_some());
    if !all_named && (given.len() >= x.ndim() || given.iter().any(is_new)) {
        return Ok(None); // an unnamed dim may be any of them
    }
    Names::new(op, given.iter().copied().map(Some)).map_err(|error| error.with_inputs(&[x]))?;
    if let Some(name) = wanted.iter().filter(|dim| dim.size.is_none()).filter_map(|dim| dim.name).find(is_new)
    {
        let message =
            format!("the size of the new dim '{name}' is -1, which keeps the size of an existing dim");
        return Err(Error::about(&[x], ErrorKind::Shape, op, message));
    }
    let new = given.iter().filter(|name| is_new(name)).map(|name| (None, Some(*name)));
    match absent {
        None => Ok(Some(crate::list(given.iter().map(|name| (x.names().position(*name), Some(*name)))))),
        Some(_) if given.len() < x.ndim() => Ok(Some(crate::list(new.chain((0..x.ndim()).map(own))))),
        Some(dim) => {
            let name = x.name(dim).expect("all dims have names");
            let message = format!("'{name}' is a dim of the tensor and not among the sizes");
            let kept = if op == "expand" { -1 } else { 1 };
            let all: Vec<String> =
                crate::list(x.names().iter(x.ndim()).flatten().map(|name| format!("(\"{name}\", {kept})")));
            Err(Error::about(&[x], ErrorKind::NameMismatch, op, message).with_repair(format!(
                "x.{op}([{}])?, with the sizes to change and with new dims, if there are any",
                crate::joined(&all, ", ")
            )))
        }
    }
}
