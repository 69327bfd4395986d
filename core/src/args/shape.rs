//! Arguments for new dims: their sizes, names and positions.

use super::{Argument, Value};
use super::{IntoShape, OpenDim, OpenShape};
use crate::error::Result;
use crate::names::Name;
use crate::tensor::NamedTensor;

/// The sizes of a result, with or without names. One of them can be -1 and is then inferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape(pub OpenShape);

impl Shape {
    /// The sizes as a caller wrote them, for an argument of `op`, which errors name.
    ///
    /// # Errors
    /// Those of the sizes.
    #[doc(hidden)]
    #[inline(never)]
    pub fn resolved(op: &'static str, dims: Result<OpenShape>, _: &[&NamedTensor]) -> Result<OpenShape> {
        dims.map_err(|error| error.of(op))
    }
}

impl Argument for Shape {
    type Resolved = OpenShape;
    type View<'a> = &'a OpenShape;
    #[inline]
    fn look_up(&self, _: &'static str, _: &[&NamedTensor]) -> Result<OpenShape> {
        Ok(self.0.clone())
    }
    fn view(resolved: &OpenShape) -> &OpenShape {
        resolved
    }
    fn from_value(value: &Value) -> Option<Shape> {
        let size = |value: &Value| match value {
            Value::Int(-1) => Some(None),
            Value::Int(size) => usize::try_from(*size).ok().map(Some),
            _ => None,
        };
        let dim = |value: &Value| match value {
            Value::List(pair) => match &pair[..] {
                [Value::Text(name), of] => {
                    Some(OpenDim { name: Some(Name::new(name).ok()?), size: size(of)? })
                }
                [Value::None, of] => Some(OpenDim { name: None, size: size(of)? }),
                _ => None,
            },
            of => Some(OpenDim { name: None, size: size(of)? }),
        };
        match value {
            Value::List(dims) => crate::list::<_, Option<OpenShape>>(dims.iter().map(dim)).map(Shape),
            one => Some(Shape(crate::list([dim(one)?].into_iter()))),
        }
    }
    fn accepted() -> String {
        "a size or a list of sizes".into()
    }
}

impl IntoShape for Shape {
    fn into_open_shape(self) -> Result<OpenShape> {
        Ok(self.0)
    }
}

/// The name of a dim that an op makes, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NewName {
    /// No name.
    #[default]
    None,
    /// A name that is already interned.
    Known(Name),
    /// A string that is not interned yet, and may not be a valid name.
    Text(String),
}

impl NewName {
    /// The name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`].
    #[inline]
    #[track_caller]
    pub fn name(&self) -> Result<Option<Name>> {
        match self {
            NewName::None => Ok(None),
            NewName::Known(name) => Ok(Some(*name)),
            NewName::Text(text) => Ok(Some(Name::new(text)?)),
        }
    }
}

impl From<&str> for NewName {
    fn from(name: &str) -> NewName {
        Name::lookup(name).map_or_else(|| NewName::Text(name.into()), NewName::Known)
    }
}
impl From<String> for NewName {
    fn from(name: String) -> NewName {
        NewName::from(name.as_str())
    }
}
/// Only for `&str`, so that the type of a bare `None` can be inferred.
impl From<Option<&str>> for NewName {
    fn from(name: Option<&str>) -> NewName {
        name.map_or(NewName::None, NewName::from)
    }
}
impl From<Name> for NewName {
    fn from(name: Name) -> NewName {
        NewName::Known(name)
    }
}

impl Argument for NewName {
    type Resolved = Option<Name>;
    type View<'a> = Option<Name>;
    #[inline]
    #[track_caller]
    fn look_up(&self, op: &'static str, _: &[&NamedTensor]) -> Result<Option<Name>> {
        self.name().map_err(|error| error.of(op))
    }
    fn view(resolved: &Option<Name>) -> Option<Name> {
        *resolved
    }
    fn from_value(value: &Value) -> Option<NewName> {
        match value {
            Value::None => Some(NewName::None),
            Value::Text(name) => Some(NewName::from(name.as_str())),
            _ => None,
        }
    }
    fn accepted() -> String {
        "a name or nothing".into()
    }
}

/// The names of the dims that an op makes: one for each dim, or none at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewNames(pub Vec<NewName>);

impl<N: Into<NewName>, const K: usize> From<[N; K]> for NewNames {
    fn from(names: [N; K]) -> NewNames {
        NewNames(crate::list(names.into_iter().map(Into::into)))
    }
}
impl<N: Into<NewName> + Clone> From<&[N]> for NewNames {
    fn from(names: &[N]) -> NewNames {
        NewNames(crate::list(names.iter().cloned().map(Into::into)))
    }
}
impl<N: Into<NewName>> From<Vec<N>> for NewNames {
    fn from(names: Vec<N>) -> NewNames {
        NewNames(crate::list(names.into_iter().map(Into::into)))
    }
}

impl Argument for NewNames {
    type Resolved = Vec<Option<Name>>;
    type View<'a> = &'a [Option<Name>];
    #[track_caller]
    fn look_up(&self, op: &'static str, _: &[&NamedTensor]) -> Result<Vec<Option<Name>>> {
        let mut names = Vec::with_capacity(self.0.len());
        for name in &self.0 {
            names.push(name.name().map_err(|error| error.of(op))?);
        }
        Ok(names)
    }
    fn view(resolved: &Vec<Option<Name>>) -> &[Option<Name>] {
        resolved
    }
    fn from_value(value: &Value) -> Option<NewNames> {
        match value {
            Value::None => Some(NewNames::default()),
            Value::List(names) => {
                crate::list::<_, Option<_>>(names.iter().map(NewName::from_value)).map(NewNames)
            }
            _ => None,
        }
    }
    fn accepted() -> String {
        "a list of names or nothing".into()
    }
}

/// The position of a dim that an op makes. Negative positions count from the end of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub isize);

impl From<i32> for Place {
    fn from(place: i32) -> Place {
        Place(place as isize)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<Place> for usize {
    type Error = std::num::TryFromIntError;
    fn try_from(place: Place) -> std::result::Result<usize, std::num::TryFromIntError> {
        usize::try_from(place.0)
    }
}

impl From<Place> for isize {
    fn from(place: Place) -> isize {
        place.0
    }
}

impl Argument for Place {
    type Resolved = isize;
    type View<'a> = isize;
    #[inline]
    fn look_up(&self, _: &'static str, _: &[&NamedTensor]) -> Result<isize> {
        Ok(self.0)
    }
    fn view(resolved: &isize) -> isize {
        *resolved
    }
    fn from_value(value: &Value) -> Option<Place> {
        isize::from_value(value).map(Place)
    }
    fn accepted() -> String {
        "a whole number".into()
    }
}
