//! How a layer finds its dims in an input: by name, or by position where either has no name.

use super::called;
use crate::training::ModulePath;
use namegrad_autograd::Tensor;
use namegrad_core::names::{Name, is_strict};
use namegrad_core::{Error, ErrorKind, NewDim, Result};

/// A dim that a layer was made for: the name, if it has one, and the size.
pub(super) type Named = (Option<Name>, usize);

/// `C=3`, or `3` without a name.
pub(super) fn dim_text((name, size): Named) -> String {
    name.map_or(size.to_string(), |name| format!("{name}={size}"))
}

/// A dim of a layer, with the layer in the error.
#[track_caller]
pub(super) fn named(layer: &'static str, dim: impl NewDim) -> Result<Named> {
    dim.into_new_dim().map_err(|error| error.of(layer))
}

/// A layer, for errors about its input.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) layer: &'static str,
    pub(super) path: &'a ModulePath,
    /// The dims of the layer, as in its summary.
    pub(super) dims: &'a dyn Fn() -> String,
}

impl Of<'_> {
    /// The position in `x` of a dim of the layer, checked. If the layer or `x` has no name for it, it is at
    /// `position`.
    #[track_caller]
    pub(super) fn place(self, x: &Tensor, dim: Named, position: Option<usize>) -> Result<usize> {
        let (name, size) = dim;
        let position = position.filter(|at| *at < x.ndim());
        let place = match name {
            Some(name) => x.names().position(name).or(position.filter(|at| x.name(*at).is_none())),
            None => position,
        };
        let Some(place) = place else { return Err(self.missing(x, dim)) };
        let found = x.sizes()[place];
        if found != size {
            let what = x.name(place).map_or(format!("dim {place}"), |name| format!("the dim '{name}'"));
            return Err(self.error(
                x,
                ErrorKind::Shape,
                format!("{} needs {size} elements in {what}, got {found}", called(self.path, &(self.dims)())),
            ));
        }
        if is_strict() && x.name(place) != name {
            let of =
                |name: Option<Name>| name.map_or("an unnamed dim".into(), |name| format!("the dim '{name}'"));
            let message = format!(
                "strict names: {} would take {} as {}",
                called(self.path, &(self.dims)()),
                of(x.name(place)),
                of(name)
            );
            return Err(self.error(x, ErrorKind::NameMismatch, message));
        }
        Ok(place)
    }

    /// An error about the input.
    #[cold]
    #[track_caller]
    pub(super) fn error(self, x: &Tensor, kind: ErrorKind, message: String) -> Error {
        Error::new(kind, self.layer, message).with_operands([x.shape()])
    }

    #[cold]
    #[track_caller]
    fn missing(self, x: &Tensor, (name, size): Named) -> Error {
        let who = called(self.path, &(self.dims)());
        let Some(name) = name.filter(|_| x.ndim() > 0) else {
            let message = format!("{who} needs a dim of size {size}, and the input has {} dims", x.ndim());
            return self.error(x, ErrorKind::Shape, message);
        };
        let message = format!("{who} needs the dim '{name}', which the input does not have");
        let error = self.error(x, ErrorKind::NameNotFound, message);
        // A dim with that size, otherwise a similar name.
        let likely = (0..x.ndim()).rfind(|dim| x.sizes()[*dim] == size).and_then(|dim| x.name(dim));
        match (likely, x.size(name).err().and_then(|error| error.repair().map(str::to_string))) {
            (Some(other), _) => error.with_repair(format!("x.rename([(\"{other}\", \"{name}\")])?")),
            (None, Some(repair)) => error.with_repair(repair),
            (None, None) => error,
        }
    }
}
