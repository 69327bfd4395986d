//! Dims that exist: by index (negative counts from the end), by name, a list of either, or `..` for all.

use crate::error::{Error, ErrorKind, Result};
use crate::names::{Name, rules};
use crate::shape::Sizes;
use crate::tensor::NamedTensor;
use smallvec::{SmallVec, smallvec};
use std::ops::RangeFull;

/// One dim of a tensor, not yet looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// By position; negative counts from the end.
    Index(isize),
    /// By name.
    Name(Name),
    /// A text that no tensor was ever named with; kept for the error.
    Unknown(String),
}

/// Several dims of a tensor, not yet looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dims {
    /// `..`: all of them.
    All,
    /// These; a single dim or a list.
    List(SmallVec<[Dim; 2]>),
}

/// One dim of a tensor, not yet looked up, or `..`: all elements as one dim, in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimOrAll {
    /// `..`: all elements.
    All,
    /// This dim.
    One(Dim),
}

/// Dims of a tensor by position, in the order in which they were given, none of them twice.
pub type Axes = SmallVec<[usize; 6]>;

impl From<&str> for Dim {
    fn from(name: &str) -> Dim {
        Name::lookup(name).map_or_else(|| Dim::Unknown(name.into()), Dim::Name)
    }
}
impl From<String> for Dim {
    fn from(name: String) -> Dim {
        Dim::from(name.as_str())
    }
}
impl From<Name> for Dim {
    fn from(name: Name) -> Dim {
        Dim::Name(name)
    }
}

macro_rules! indices {
    ($($int:ty),*) => {$(
        impl From<$int> for Dim {
            /// An index too large for `isize` is out of range of every tensor, so the largest stands for it.
            fn from(index: $int) -> Dim { Dim::Index(isize::try_from(index).unwrap_or(isize::MAX)) }
        }
    )*};
}
indices!(i32, i64, isize, usize, u32);

macro_rules! lists {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Dims {
            fn from(dim: $ty) -> Dims { Dims::List(smallvec![dim.into()]) }
        }
        impl From<$ty> for DimOrAll {
            fn from(dim: $ty) -> DimOrAll { DimOrAll::One(dim.into()) }
        }
        impl<const K: usize> From<[$ty; K]> for Dims {
            fn from(dims: [$ty; K]) -> Dims { Dims::List(dims.into_iter().map(Dim::from).collect()) }
        }
        impl From<&[$ty]> for Dims {
            fn from(dims: &[$ty]) -> Dims { Dims::List(dims.iter().cloned().map(Dim::from).collect()) }
        }
        impl From<Vec<$ty>> for Dims {
            fn from(dims: Vec<$ty>) -> Dims { Dims::List(dims.into_iter().map(Dim::from).collect()) }
        }
    )*};
}
lists!(&str, String, Name, i32, i64, isize, usize, u32, Dim);

impl From<RangeFull> for Dims {
    fn from(_: RangeFull) -> Dims {
        Dims::All
    }
}
impl From<RangeFull> for DimOrAll {
    fn from(_: RangeFull) -> DimOrAll {
        DimOrAll::All
    }
}
impl From<Option<usize>> for DimOrAll {
    /// What was looked up before.
    fn from(dim: Option<usize>) -> DimOrAll {
        dim.map_or(DimOrAll::All, DimOrAll::from)
    }
}
impl From<Axes> for Dims {
    fn from(axes: Axes) -> Dims {
        Dims::List(axes.into_iter().map(Dim::from).collect())
    }
}
impl From<&Axes> for Dims {
    fn from(axes: &Axes) -> Dims {
        Dims::from(axes.as_slice())
    }
}

/// Sizes of which one may be -1, to be inferred: the argument of `view`, `expand` and the like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeList(pub SmallVec<[isize; 6]>);

macro_rules! size_lists {
    ($($int:ty),*) => {$(
        impl<const K: usize> From<[$int; K]> for SizeList {
            fn from(sizes: [$int; K]) -> SizeList { SizeList::from(sizes.as_slice()) }
        }
        impl From<Vec<$int>> for SizeList {
            fn from(sizes: Vec<$int>) -> SizeList { SizeList::from(sizes.as_slice()) }
        }
        impl From<&[$int]> for SizeList {
            /// A size too large for `isize` is too large for memory, so the largest stands for it.
            fn from(sizes: &[$int]) -> SizeList {
                SizeList(sizes.iter().map(|size| isize::try_from(*size).unwrap_or(isize::MAX)).collect())
            }
        }
    )*};
}
size_lists!(i32, i64, isize, usize, u32);

impl Argument for SizeList {
    type Resolved = SmallVec<[isize; 6]>;
    #[inline]
    fn resolve(self, _: &'static str, _: &NamedTensor) -> Result<SmallVec<[isize; 6]>> {
        Ok(self.0)
    }
}

impl From<SmallVec<[isize; 6]>> for SizeList {
    fn from(sizes: SmallVec<[isize; 6]>) -> SizeList {
        SizeList(sizes)
    }
}
impl From<Sizes> for SizeList {
    fn from(sizes: Sizes) -> SizeList {
        SizeList::from(sizes.as_slice())
    }
}

/// A whole number, positive or negative: an index, an offset, a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int(pub isize);

/// A number of things: a length, a step. A negative one is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub isize);

macro_rules! whole_numbers {
    ($($int:ty),*) => {$(
        impl From<$int> for Int {
            /// What does not fit `isize` is out of every range, so the largest stands for it.
            fn from(value: $int) -> Int { Int(isize::try_from(value).unwrap_or(isize::MAX)) }
        }
        impl From<$int> for Count {
            /// As for [`Int`].
            fn from(value: $int) -> Count { Count(isize::try_from(value).unwrap_or(isize::MAX)) }
        }
    )*};
}
whole_numbers!(i32, i64, isize, usize, u32);

impl Argument for Int {
    type Resolved = isize;
    #[inline]
    fn resolve(self, _: &'static str, _: &NamedTensor) -> Result<isize> {
        Ok(self.0)
    }
}

impl Argument for Count {
    type Resolved = usize;
    #[inline]
    #[track_caller]
    fn resolve(self, op: &'static str, x: &NamedTensor) -> Result<usize> {
        match usize::try_from(self.0) {
            Ok(count) => Ok(count),
            Err(_) => {
                let message = format!("a length or step must not be negative, got {}", self.0);
                Err(Error::new(ErrorKind::Value, op, message).with_operands([x.extents()]))
            }
        }
    }
}

/// An argument of an op that is looked up in its first input before the op runs.
pub trait Argument {
    /// What the kernel and the derivative get.
    type Resolved;
    /// Looks the argument up in `x`, the first input of `op`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
    #[track_caller]
    fn resolve(self, op: &'static str, x: &NamedTensor) -> Result<Self::Resolved>;
}

impl Argument for Dim {
    type Resolved = usize;
    /// A 0-d tensor takes the dims 0 and -1, as PyTorch has it; the kernels read it as one dim of size one.
    #[inline]
    #[track_caller]
    fn resolve(self, op: &'static str, x: &NamedTensor) -> Result<usize> {
        match self {
            Dim::Index(index) => {
                resolve_index(op, index, x.ndim().max(1)).map_err(|e| e.with_operands([x.extents()]))
            }
            Dim::Name(name) => match x.names().position(name) {
                Some(dim) => Ok(dim),
                None => Err(rules::not_found(op, x.input(), name.as_str())),
            },
            Dim::Unknown(text) => Err(rules::not_found(op, x.input(), &text)),
        }
    }
}

impl Argument for DimOrAll {
    /// `None` for all elements.
    type Resolved = Option<usize>;
    #[inline]
    #[track_caller]
    fn resolve(self, op: &'static str, x: &NamedTensor) -> Result<Option<usize>> {
        match self {
            DimOrAll::All => Ok(None),
            DimOrAll::One(dim) => Ok(Some(dim.resolve(op, x)?)),
        }
    }
}

/// An index into `ndim` dims, negative counting from the end.
#[inline]
#[track_caller]
pub(crate) fn resolve_index(op: &'static str, index: isize, ndim: usize) -> Result<usize> {
    let positive = if index < 0 { index + ndim as isize } else { index };
    if positive < 0 || positive >= ndim as isize {
        let message = format!(
            "Dimension out of range (expected to be in range of [{}, {}], but got {index})",
            -(ndim as isize),
            ndim as isize - 1
        );
        return Err(Error::new(ErrorKind::DimRange, op, message));
    }
    Ok(positive as usize)
}

impl Argument for Dims {
    type Resolved = Axes;
    #[inline]
    #[track_caller]
    fn resolve(self, op: &'static str, x: &NamedTensor) -> Result<Axes> {
        let Dims::List(list) = self else { return Ok((0..x.ndim()).collect()) };
        let mut axes = Axes::new();
        for dim in list {
            let axis = dim.resolve(op, x)?;
            if axes.contains(&axis) {
                let message = format!("dim {axis} appears multiple times in the list of dims");
                return Err(Error::new(ErrorKind::DimRange, op, message).with_operands([x.extents()]));
            }
            axes.push(axis);
        }
        if x.ndim() == 0 {
            axes.clear(); // the one dim that a 0-d tensor was read as
        }
        Ok(axes)
    }
}

/// Arguments that need no look-up.
macro_rules! plain {
    ($($ty:ty),*) => {$(
        impl $crate::Argument for $ty {
            type Resolved = $ty;
            #[inline]
            fn resolve(self, _: &'static str, _: &$crate::NamedTensor) -> $crate::Result<$ty> { Ok(self) }
        }
    )*};
}
pub(crate) use plain;
plain!(bool, f64, crate::dtype::Scalar, crate::dtype::DType);
