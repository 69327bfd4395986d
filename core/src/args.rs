//! The arguments of ops that are not tensors: what a caller may write, what a kernel gets, and how a call by
//! name gives them.
//!
//! The types of arguments in the rows of [`ops`](crate::ops) are those of this module. Each implements
//! [`Argument`]; a new kind of argument is one more implementation.

use crate::dim::{Dims as AnyDims, position, positions};
use crate::dtype::{DType as AnyDType, Scalar as AnyScalar};
use crate::error::{Error, ErrorKind, Result};
use crate::names::Name;
use crate::shape::IntoShape;
use crate::tensor::NamedTensor;
use std::ops::Deref;

pub use crate::dim::{Dim, Dims, Positions};
pub use crate::dtype::{DType, Scalar};
pub use crate::ops::contraction::{Contraction, Paired};
pub use crate::ops::index::Reduce;
pub use crate::shape::{OpenDim, OpenShape};

/// A value that is given to an op by name.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing: the default.
    None,
    /// A flag.
    Bool(bool),
    /// A whole number: a size, an index, a dim by position.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text: the name of a dim or of a dtype, `".."` for all dims.
    Text(String),
    /// A list: of dims, of sizes, of pairs of a name and a size.
    List(Vec<Value>),
}

impl Value {
    /// What it is, for an error.
    pub fn describe(&self) -> String {
        match self {
            Value::None => "nothing".into(),
            Value::Bool(value) => format!("the bool {value}"),
            Value::Int(value) => format!("the integer {value}"),
            Value::Float(value) => format!("the float {value}"),
            Value::Text(value) => format!("the text \"{value}\""),
            Value::List(values) => format!("a list of {}", values.len()),
        }
    }
}

impl<T: Into<AnyScalar>> From<T> for Value {
    fn from(value: T) -> Value {
        match value.into() {
            AnyScalar::Bool(value) => Value::Bool(value),
            AnyScalar::Int(value) => Value::Int(value),
            AnyScalar::Float(value) => Value::Float(value),
        }
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value)
    }
}

impl From<AnyDType> for Value {
    fn from(value: AnyDType) -> Value {
        Value::Text(value.torch_name().into())
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Value {
        Value::List(values.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>, const K: usize> From<[T; K]> for Value {
    fn from(values: [T; K]) -> Value {
        Value::List(values.into_iter().map(Into::into).collect())
    }
}

/// An argument of an op that is looked up in tensors before the op runs.
pub trait Argument: Sized {
    /// What the kernel gets.
    type Resolved;
    /// What a derivative sees: a number by value, a list by reference.
    type View<'a>
    where
        Self::Resolved: 'a;

    /// Looks the argument up in the tensors that the row of `op` names, the first one unless it says
    /// otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`], [`ErrorKind::Value`].
    #[track_caller]
    fn look_up(self, op: &'static str, of: &[&NamedTensor]) -> Result<Self::Resolved>;

    /// Looks the argument up in one tensor.
    ///
    /// # Errors
    /// As [`look_up`](Self::look_up).
    #[inline]
    #[track_caller]
    fn resolve(self, op: &'static str, x: &NamedTensor) -> Result<Self::Resolved> {
        self.look_up(op, &[x])
    }

    /// What a derivative sees of it.
    fn view(resolved: &Self::Resolved) -> Self::View<'_>;

    /// The argument that a call by name gives, or `None` if the value is of another kind.
    fn from_value(value: &Value) -> Option<Self>;

    /// The dims of a reduction that keeps them, all of them if none are given: what `keepdim` asks for in a
    /// call by name.
    fn from_kept(_dims: Option<&Value>) -> Option<Self> {
        None
    }

    /// The argument made of tensors, such as indices, or `None` if no tensor can stand for it.
    fn from_tensors(_tensors: &[&NamedTensor]) -> Option<Self> {
        None
    }
}

/// The tensor in which dims are looked up: the only one, or of a list the one with the most dims.
#[track_caller]
fn looked_up_in<'a>(op: &'static str, of: &[&'a NamedTensor]) -> Result<&'a NamedTensor> {
    match of {
        [x] => Ok(x),
        _ => {
            let most = of.iter().rev().max_by_key(|x| x.ndim()).copied();
            let Some(most) = most else {
                return Err(Error::new(ErrorKind::Value, op, "expected a non-empty list of Tensors"));
            };
            Ok(most)
        }
    }
}

impl Argument for Dim {
    type Resolved = usize;
    type View<'a> = usize;
    #[inline]
    #[track_caller]
    fn look_up(self, op: &'static str, of: &[&NamedTensor]) -> Result<usize> {
        position(&self, op, looked_up_in(op, of)?)
    }
    fn view(resolved: &usize) -> usize {
        *resolved
    }
    fn from_value(value: &Value) -> Option<Dim> {
        match value {
            Value::Int(index) => Some(Dim::from(*index)),
            Value::Text(name) if name != ".." => Some(Dim::from(name.as_str())),
            _ => None,
        }
    }
}

impl Argument for Dims {
    type Resolved = Positions;
    type View<'a> = &'a Positions;
    #[inline]
    #[track_caller]
    fn look_up(self, op: &'static str, of: &[&NamedTensor]) -> Result<Positions> {
        let x = looked_up_in(op, of)?;
        if self.is_kept() {
            let message = "`keep` is for reductions, which would remove the dims";
            return Err(Error::about(&[x], ErrorKind::Value, op, message));
        }
        let mut dims = positions(&self, op, x)?;
        if x.ndim() == 0 {
            dims.clear(); // the one dim that a 0-d tensor was read as
        }
        Ok(dims)
    }
    fn view(resolved: &Positions) -> &Positions {
        resolved
    }
    fn from_value(value: &Value) -> Option<Dims> {
        match value {
            Value::Text(all) if all == ".." => Some(AnyDims::ALL),
            Value::List(list) => {
                list.iter().map(Dim::from_value).collect::<Option<Vec<Dim>>>().map(Dims::from)
            }
            one => Dim::from_value(one).map(Dims::from),
        }
    }
}

/// The dims of a reduction, looked up. It dereferences to their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    dims: Positions,
    all: bool,
    /// Do they stay, with size one?
    pub keep: bool,
}

impl Over {
    /// These dims, which stay or go.
    pub fn new(dims: impl IntoIterator<Item = usize>, keep: bool) -> Over {
        Over { dims: dims.into_iter().collect(), all: false, keep }
    }

    /// The same dims, which stay.
    pub fn kept(&self) -> Over {
        Over { keep: true, ..self.clone() }
    }

    /// The one dim, or `None` for all elements as one; for ops that find one element.
    ///
    /// # Errors
    /// [`ErrorKind::DimRange`] for several dims.
    #[track_caller]
    pub fn one_or_all(&self, op: &'static str, x: &NamedTensor) -> Result<Option<usize>> {
        match &self.dims[..] {
            _ if self.all => Ok(None),
            [dim] => Ok(Some(*dim)),
            [] if x.ndim() == 0 => Ok(Some(0)),
            dims => {
                let message = format!("expected one dim, or `..` for all elements, got {} dims", dims.len());
                Err(Error::about(&[x], ErrorKind::DimRange, op, message))
            }
        }
    }
}

impl Deref for Over {
    type Target = Positions;
    fn deref(&self) -> &Positions {
        &self.dims
    }
}

/// The dims that an op reduces: [`keep`](crate::keep) keeps them at size one. Without dims in a list that is
/// given by name it is all of them, as in PyTorch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduced(pub Dims);

impl From<i32> for Reduced {
    fn from(dim: i32) -> Reduced {
        Reduced(dim.into())
    }
}
impl From<std::ops::RangeFull> for Reduced {
    fn from(all: std::ops::RangeFull) -> Reduced {
        Reduced(all.into())
    }
}

impl From<Reduced> for Dims {
    fn from(reduced: Reduced) -> Dims {
        reduced.0
    }
}

impl Argument for Reduced {
    type Resolved = Over;
    type View<'a> = &'a Over;
    #[inline]
    #[track_caller]
    fn look_up(self, op: &'static str, of: &[&NamedTensor]) -> Result<Over> {
        let x = looked_up_in(op, of)?;
        let (all, keep) = (self.0.is_all(), self.0.is_kept());
        let mut dims = positions(&self.0, op, x)?;
        if x.ndim() == 0 {
            dims.clear(); // the one dim that a 0-d tensor was read as
        }
        Ok(Over { dims, all, keep })
    }
    fn view(resolved: &Over) -> &Over {
        resolved
    }
    fn from_value(value: &Value) -> Option<Reduced> {
        match value {
            Value::List(list) if list.is_empty() => Some(Reduced(AnyDims::ALL)),
            other => Dims::from_value(other).map(Reduced),
        }
    }
    fn from_kept(dims: Option<&Value>) -> Option<Reduced> {
        let dims = dims.map_or(Some(Reduced(AnyDims::ALL)), Reduced::from_value)?;
        Some(Reduced(crate::dim::keep(dims.0)))
    }
}

/// The sizes of a result, which may have names; one may be left open as -1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape(pub OpenShape);

impl Argument for Shape {
    type Resolved = OpenShape;
    type View<'a> = &'a OpenShape;
    #[inline]
    fn look_up(self, _: &'static str, _: &[&NamedTensor]) -> Result<OpenShape> {
        Ok(self.0)
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
            Value::List(dims) => dims.iter().map(dim).collect::<Option<OpenShape>>().map(Shape),
            one => Some(Shape([dim(one)?].into_iter().collect())),
        }
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
    /// A name that is in use.
    Known(Name),
    /// A text that is a name from now on, or not a name.
    Text(String),
}

impl NewName {
    /// The name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`].
    #[inline]
    #[track_caller]
    pub fn name(self) -> Result<Option<Name>> {
        match self {
            NewName::None => Ok(None),
            NewName::Known(name) => Ok(Some(name)),
            NewName::Text(text) => Ok(Some(Name::new(&text)?)),
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
/// Only of `&str`, so that the type of `None` alone is known.
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
    fn look_up(self, _: &'static str, _: &[&NamedTensor]) -> Result<Option<Name>> {
        self.name()
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
}

/// The place of a dim that an op makes: before that dim; negative counts from behind the end.
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
    fn look_up(self, _: &'static str, _: &[&NamedTensor]) -> Result<isize> {
        Ok(self.0)
    }
    fn view(resolved: &isize) -> isize {
        *resolved
    }
    fn from_value(value: &Value) -> Option<Place> {
        isize::from_value(value).map(Place)
    }
}

/// The dtype to which the first tensor is cast before the op runs, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cast(pub Option<AnyDType>);

impl From<AnyDType> for Cast {
    fn from(dtype: AnyDType) -> Cast {
        Cast(Some(dtype))
    }
}

impl Argument for Cast {
    type Resolved = Option<AnyDType>;
    type View<'a> = Option<AnyDType>;
    fn look_up(self, _: &'static str, _: &[&NamedTensor]) -> Result<Option<AnyDType>> {
        Ok(self.0)
    }
    fn view(resolved: &Option<AnyDType>) -> Option<AnyDType> {
        *resolved
    }
    fn from_value(value: &Value) -> Option<Cast> {
        match value {
            Value::None => Some(Cast(None)),
            other => AnyDType::from_value(other).map(Cast::from),
        }
    }
}

/// Any integer type: what methods take for sizes, counts and positions.
pub trait Whole: Copy + std::fmt::Display + TryInto<isize> + TryInto<usize> {}
impl Whole for i32 {}
impl Whole for i64 {}
impl Whole for isize {}
impl Whole for u32 {}
impl Whole for usize {}
impl Whole for Place {}

/// A whole number as a size or an index.
///
/// # Errors
/// [`ErrorKind::Value`] if it does not fit, such as a negative length.
#[inline]
#[track_caller]
pub fn whole<T>(op: &'static str, name: &'static str, value: impl Whole + TryInto<T>) -> Result<T> {
    match TryInto::<T>::try_into(value) {
        Ok(value) => Ok(value),
        Err(_) => {
            let value = value.to_string();
            let message = match value.starts_with('-') {
                true => format!("`{name}` must not be negative, got {value}"),
                false => format!("`{name}` is too large: {value}"),
            };
            Err(Error::new(ErrorKind::Value, op, message))
        }
    }
}

/// Arguments that need no look-up and are copied: a row says the type and which values give one. `bool =>
/// |value| from` becomes
///
/// ```ignore
/// impl Argument for bool {
///     type Resolved = bool;
///     type View<'a> = bool;
///     fn look_up(self, _: &'static str, _: &[&NamedTensor]) -> Result<bool> { Ok(self) }
///     fn view(resolved: &bool) -> bool { *resolved }
///     fn from_value(value: &Value) -> Option<bool> { from }
/// }
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! plain {
    ($($ty:ty => |$value:ident| $from:expr),* $(,)?) => {$(
        impl $crate::Argument for $ty {
            type Resolved = $ty;
            type View<'a> = $ty;
            #[inline]
            fn look_up(self, _: &'static str, _: &[&$crate::NamedTensor]) -> $crate::Result<$ty> {
                Ok(self)
            }
            fn view(resolved: &$ty) -> $ty {
                *resolved
            }
            fn from_value($value: &$crate::args::Value) -> Option<$ty> {
                $from
            }
        }
    )*};
}
pub use plain;

plain! {
    bool => |value| match value {
        Value::Bool(value) => Some(*value),
        _ => None,
    },
    f64 => |value| match value {
        Value::Float(value) => Some(*value),
        Value::Int(value) => Some(*value as f64),
        _ => None,
    },
    isize => |value| match value {
        Value::Int(value) => isize::try_from(*value).ok(),
        _ => None,
    },
    usize => |value| match value {
        Value::Int(value) => usize::try_from(*value).ok(),
        _ => None,
    },
    AnyScalar => |value| match value {
        Value::Bool(value) => Some((*value).into()),
        Value::Int(value) => Some((*value).into()),
        Value::Float(value) => Some((*value).into()),
        _ => None,
    },
    AnyDType => |value| match value {
        Value::Text(name) => AnyDType::from_torch_name(name),
        _ => None,
    },
}

impl<T: Argument<Resolved = T> + Copy + 'static> Argument for Option<T> {
    type Resolved = Option<T>;
    type View<'a> = Option<T>;
    fn look_up(self, op: &'static str, of: &[&NamedTensor]) -> Result<Option<T>> {
        self.map(|value| value.look_up(op, of)).transpose()
    }
    fn view(resolved: &Option<T>) -> Option<T> {
        *resolved
    }
    fn from_value(value: &Value) -> Option<Option<T>> {
        match value {
            Value::None => Some(None),
            other => T::from_value(other).map(Some),
        }
    }
}
