//! The arguments of ops that are not tensors: what a caller can write, what a kernel gets, and how a call by
//! name passes them.
//!
//! The argument types in the rows of [`ops`](crate::ops) are defined here. Each implements [`Argument`]; to
//! add a kind of argument, implement it for a new type.

mod by_dim;
mod dims;
mod expansion;
mod extents;
pub(crate) mod image;
mod new_dims;
mod shape;
mod value;
pub(crate) mod windows;
use crate::dtype::Category;
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::NamedTensor;

pub use self::by_dim::{ByDim, Factors, OfDims, Pads, PairList, SizesByDim};
pub use self::dims::{Matrix, MatrixDims, OptionalDims, Over, Reduced};
pub use self::expansion::{Expanded, Expansion};
pub use self::extents::{Extents, Padding};
pub use self::image::Resize;
pub use self::new_dims::{IntoShape, NewDim, OpenDim, OpenShape};
pub use self::shape::{NewName, NewNames, Place, Shape};
pub use self::value::Value;
pub use self::windows::Windows;
pub use crate::cell::Cell;
pub use crate::cpu::SPATIAL;
pub use crate::cpu::resample::Interpolation;
pub use crate::cpu::sample::{Outside, Sampling};
pub use crate::dim::{Dim, Dims, Positions};
pub use crate::dtype::{DType, Scalar};
pub use crate::operand::TensorOrNumber;
pub use crate::ops::contraction::{Contraction, Paired};
pub use crate::ops::count::Side;
pub use crate::ops::index::Reduce;
pub use crate::ops::linalg::{QrMode, Triangle};

/// An argument of an op, which is looked up in tensors before the op runs.
pub trait Argument: Sized {
    /// The type that the kernel gets.
    type Resolved;
    /// The type that a derivative gets: numbers by value, lists by reference.
    type View<'a>
    where
        Self::Resolved: 'a;

    /// Looks the argument up in the tensors that the row of `op` names, the first one unless it says
    /// otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`], [`ErrorKind::Value`].
    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<Self::Resolved>;

    /// [`look_up`](Self::look_up) of an argument that nothing else uses: this drops it, and not its callers.
    ///
    /// # Errors
    /// Same as [`look_up`](Self::look_up).
    #[doc(hidden)]
    #[inline(never)]
    #[track_caller]
    fn looked_up(self, op: &'static str, of: &[&NamedTensor]) -> Result<Self::Resolved> {
        self.look_up(op, of)
    }

    /// Looks the argument up in one tensor.
    ///
    /// # Errors
    /// Same as [`look_up`](Self::look_up).
    #[inline]
    #[track_caller]
    fn resolve(&self, op: &'static str, x: &NamedTensor) -> Result<Self::Resolved> {
        self.look_up(op, &[x])
    }

    /// The argument as a derivative gets it.
    fn view(resolved: &Self::Resolved) -> Self::View<'_>;

    /// The argument for a value in a call by name, or `None` if the value has the wrong kind.
    fn from_value(value: &Value) -> Option<Self>;

    /// The values that a call by name accepts, for errors: "a dim or a list of dims".
    fn accepted() -> String {
        let name = std::any::type_name::<Self>();
        format!("of type {}", name.rsplit("::").next().unwrap_or(name))
    }

    /// The dims of a reduction with `keepdim` in a call by name; all dims if none are given.
    fn from_kept(_dims: Option<&Value>) -> Option<Self> {
        None
    }

    /// The argument for tensors, such as indices, or `None` if this argument does not take tensors.
    fn from_tensors(_tensors: &[&NamedTensor]) -> Option<Self> {
        None
    }
}

/// The dtype to which the first tensor is cast before the op runs, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cast(pub Option<DType>);

impl From<DType> for Cast {
    fn from(dtype: DType) -> Cast {
        Cast(Some(dtype))
    }
}

impl Argument for Cast {
    type Resolved = Option<DType>;
    type View<'a> = Option<DType>;
    fn look_up(&self, _: &'static str, _: &[&NamedTensor]) -> Result<Option<DType>> {
        Ok(self.0)
    }
    fn view(resolved: &Option<DType>) -> Option<DType> {
        *resolved
    }
    fn from_value(value: &Value) -> Option<Cast> {
        match value {
            Value::None => Some(Cast(None)),
            other => DType::from_value(other).map(Cast::from),
        }
    }
    fn accepted() -> String {
        Option::<DType>::accepted()
    }
}

/// Any integer type, for sizes, counts and positions.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an integer that is taken here",
    label = "expected `usize`, `isize`, `i64`, `u64`, `i32` or `u32`",
    note = "an existing dim can also be given by its name, several as a list, and all as `..`; a new dim is named by an option"
)]
pub trait Whole: Copy + std::fmt::Display + TryInto<isize> + TryInto<usize> {
    /// The number in a type that has those of all the others.
    #[doc(hidden)]
    fn number(self) -> i128;
}

crate::for_types!(i32, i64, isize, u32, u64, usize => Number {
    impl Whole for Number {
        #[inline]
        fn number(self) -> i128 {
            self as i128
        }
    }
});

impl Whole for Place {
    fn number(self) -> i128 {
        self.0 as i128
    }
}

/// A whole number as a position. One too large for `isize` becomes the largest, which is out of range of
/// every tensor.
#[doc(hidden)]
#[inline]
pub fn position(number: impl TryInto<isize>) -> isize {
    number.try_into().unwrap_or(isize::MAX)
}

/// An integer as an index.
///
/// # Errors
/// [`ErrorKind::Value`] if it does not fit.
#[doc(hidden)]
#[track_caller]
pub fn whole(op: &'static str, name: &'static str, value: i128) -> Result<isize> {
    match isize::try_from(value) {
        Ok(value) => Ok(value),
        Err(_) => Err(not_whole(op, name, value)),
    }
}

/// An integer as a size.
///
/// # Errors
/// [`ErrorKind::Value`] if it is negative or does not fit.
#[doc(hidden)]
#[track_caller]
pub fn length(op: &'static str, name: &'static str, value: i128) -> Result<usize> {
    match usize::try_from(value) {
        Ok(value) => Ok(value),
        Err(_) => Err(not_whole(op, name, value)),
    }
}

#[cold]
#[track_caller]
fn not_whole(op: &'static str, name: &'static str, value: i128) -> Error {
    let message = match value < 0 {
        true => format!("`{name}` must not be negative, got {value}"),
        false => format!("`{name}` is too large: {value}"),
    };
    Error::new(ErrorKind::Value, op, message)
}

/// A list of tensors as a method is given it.
#[doc(hidden)]
#[inline]
pub fn list<T: Clone>(given: impl IntoIterator<Item: AsRef<T>>) -> Vec<T> {
    let mut tensors = Vec::new();
    for tensor in given {
        tensors.push(tensor.as_ref().clone());
    }
    tensors
}

/// A list of tensors as ops take it.
#[doc(hidden)]
pub fn references<T>(tensors: &[T]) -> Vec<&T> {
    crate::list(tensors.iter())
}

/// An argument that needs no look-up and is copied: a number, or one of several words.
#[doc(hidden)]
pub trait Immediate: Copy + 'static {
    /// The words of a call by name and their values: `("mean", Reduction::Mean)`.
    const WORDS: &'static [(&'static str, Self)] = &[];

    /// The argument for a value in a call by name, or `None` if the value has the wrong kind.
    fn of_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Self::WORDS.iter().find(|(word, _)| text == word).map(|(_, value)| *value),
            _ => None,
        }
    }

    /// The argument for a 0-d tensor in a call by name.
    fn of_number(_x: &NamedTensor) -> Option<Self> {
        None
    }

    /// The values that a call by name accepts, for errors.
    fn accepts() -> String {
        format!(
            "one of {}",
            crate::joined(&crate::list::<_, Vec<_>>(Self::WORDS.iter().map(|(word, _)| *word)), ", ")
        )
    }
}

impl<T: Immediate> Argument for T {
    type Resolved = T;
    type View<'a> = T;
    #[inline]
    fn look_up(&self, _: &'static str, _: &[&NamedTensor]) -> Result<T> {
        Ok(*self)
    }
    #[inline]
    fn looked_up(self, _: &'static str, _: &[&NamedTensor]) -> Result<T> {
        Ok(self)
    }
    fn view(resolved: &T) -> T {
        *resolved
    }
    fn from_value(value: &Value) -> Option<T> {
        T::of_value(value)
    }
    fn accepted() -> String {
        T::accepts()
    }
    fn from_tensors(tensors: &[&NamedTensor]) -> Option<T> {
        match tensors {
            [x] if x.ndim() == 0 => T::of_number(x),
            _ => None,
        }
    }
}

impl Immediate for bool {
    fn of_value(value: &Value) -> Option<bool> {
        match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }
    fn accepts() -> String {
        "true or false".into()
    }
}

impl Immediate for f64 {
    fn of_value(value: &Value) -> Option<f64> {
        match value {
            Value::Float(value) => Some(*value),
            Value::Int(value) => Some(*value as f64),
            _ => None,
        }
    }
    fn accepts() -> String {
        "a number".into()
    }
}

impl Immediate for isize {
    fn of_value(value: &Value) -> Option<isize> {
        match value {
            Value::Int(value) => isize::try_from(*value).ok(),
            _ => None,
        }
    }
    /// An integer.
    fn of_number(x: &NamedTensor) -> Option<isize> {
        let number = x.to_vec::<i64>().ok().filter(|_| x.dtype().category() == Category::Integer)?;
        isize::try_from(*number.first()?).ok()
    }
    fn accepts() -> String {
        "a whole number".into()
    }
}

impl Immediate for usize {
    fn of_value(value: &Value) -> Option<usize> {
        match value {
            Value::Int(value) => usize::try_from(*value).ok(),
            _ => None,
        }
    }
    fn accepts() -> String {
        "a whole number that is not negative".into()
    }
}

impl Immediate for Scalar {
    fn of_value(value: &Value) -> Option<Scalar> {
        match value {
            Value::Bool(value) => Some((*value).into()),
            Value::Int(value) => Some((*value).into()),
            Value::Float(value) => Some((*value).into()),
            _ => None,
        }
    }
    fn accepts() -> String {
        "a number".into()
    }
}

impl Immediate for DType {
    fn of_value(value: &Value) -> Option<DType> {
        match value {
            Value::Text(name) => DType::from_torch_name(name),
            _ => None,
        }
    }
    fn accepts() -> String {
        "a dtype".into()
    }
}

impl<T: Argument<Resolved = T> + Copy + 'static> Argument for Option<T> {
    type Resolved = Option<T>;
    type View<'a> = Option<T>;
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<Option<T>> {
        self.as_ref().map(|value| value.look_up(op, of)).transpose()
    }
    #[inline]
    fn looked_up(self, op: &'static str, of: &[&NamedTensor]) -> Result<Option<T>> {
        self.look_up(op, of)
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
    fn accepted() -> String {
        format!("{} or nothing", T::accepted())
    }
}
