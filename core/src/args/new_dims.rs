//! Shapes as a caller writes them: sizes with or without names, as `[2, 3]`, `[("N", 2), ("C", 3)]` or mixed,
//! `(("N", 2), 3)`.

use super::{NewName, Whole};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Sizes;
use crate::names::{Name, Names};
use crate::shape::Shape;
use crate::short::Short;

impl Shape {
    /// A shape with these dims, each given by its name, if it has one, and its size.
    ///
    /// # Errors
    /// [`ErrorKind::DuplicateName`].
    #[track_caller]
    pub fn new(dims: impl IntoIterator<Item = (Option<Name>, usize)>) -> Result<Shape> {
        let (names, sizes): (Vec<_>, Sizes) = dims.into_iter().unzip();
        Ok(Shape { sizes, names: Names::new("shape", names)? })
    }
}

/// A new dim. Its size can be left open, written as -1, or `usize::MAX` beside sizes of type `usize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenDim {
    /// The name, if it has one.
    pub name: Option<Name>,
    /// The size, or `None` if it is left open.
    pub size: Option<usize>,
}

/// The dims of a shape in which sizes can be left open.
pub type OpenShape = Short<OpenDim, 6>;

/// A type that can be used as a new dim: `3`, `("C", 3)`, `(None, 3)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a new dim",
    label = "expected a size, or a name and a size",
    note = "a dim with a name is a pair: `(\"C\", 3)`; without a name it is its size, an integer such as a `usize`"
)]
pub trait NewDim: Sized {
    /// The dim, whose size can be left open.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a size below -1.
    #[doc(hidden)]
    #[track_caller]
    fn into_open_dim(self) -> Result<OpenDim>;

    /// The name, if it has one, and the size.
    ///
    /// ```
    /// use namegrad_core::NewDim;
    /// let (name, size) = ("C", 3).into_new_dim()?;
    /// assert_eq!((name.unwrap().as_str(), size), ("C", 3));
    /// assert_eq!(3.into_new_dim()?, (None, 3));
    /// # Ok::<(), namegrad_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a negative size.
    #[track_caller]
    fn into_new_dim(self) -> Result<(Option<Name>, usize)> {
        self.into_open_dim()?.closed()
    }
}

/// A type that can be used as a shape: an array, slice or `Vec` of dims, a tuple of different kinds of dims,
/// one dim, or a [`Shape`].
///
/// An array has one type of integers, so `-1` cannot stand beside a `usize` there; it can in a tuple, and
/// `usize::MAX` means the same:
///
/// ```
/// use namegrad_core::NamedTensor;
/// let (heads, x) = (2_usize, NamedTensor::zeros([("N", 3), ("embed", 8)])?);
/// let split = x.unflatten("embed", (("heads", heads), ("width", -1)))?;
/// assert_eq!(split.sizes(), [3, 2, 4]);
/// assert_eq!(x.reshape((-1, heads))?.sizes(), x.reshape([usize::MAX, heads])?.sizes());
/// # Ok::<(), namegrad_core::Error>(())
/// ```
///
/// ```
/// use namegrad_core::NamedTensor;
/// assert_eq!(format!("{:?}", NamedTensor::zeros([2, 3])?.shape()), "[2, 3]");
/// assert_eq!(format!("{:?}", NamedTensor::zeros([("N", 2), ("C", 3)])?.shape()), "[N=2, C=3]");
/// assert_eq!(format!("{:?}", NamedTensor::zeros((("N", 2), 3))?.shape()), "[N=2, ?=3]");
/// assert_eq!(format!("{:?}", NamedTensor::zeros(("N", 2))?.shape()), "[N=2]");
/// # Ok::<(), namegrad_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of sizes",
    label = "expected a list, such as `[2, 3]` or `[(\"N\", 2), (\"C\", 3)]`",
    note = "one dim without a name is `[3]`, and `()` makes a tensor of one element"
)]
pub trait IntoShape: Sized {
    /// The dims, whose sizes can be left open.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a size below -1.
    #[doc(hidden)]
    #[track_caller]
    fn into_open_shape(self) -> Result<OpenShape>;

    /// The shape.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::DuplicateName`], [`ErrorKind::Value`] for a negative size.
    #[track_caller]
    #[inline(never)]
    fn into_shape(self) -> Result<Shape> {
        closed(self.into_open_shape()?)
    }

    /// [`into_shape`](Self::into_shape) for an argument of `op`, which errors name.
    #[doc(hidden)]
    #[track_caller]
    #[inline(never)]
    fn shape_for(self, op: &'static str) -> Result<Shape> {
        self.into_shape().map_err(|error| error.of(op))
    }
}

/// A shape whose sizes must all be given.
#[track_caller]
fn closed(dims: OpenShape) -> Result<Shape> {
    let mut sizes = Sizes::new();
    for dim in &dims {
        sizes.push(dim.closed()?.1);
    }
    Ok(Shape { sizes, names: Names::new("shape", dims.iter().map(|dim| dim.name))? })
}

#[track_caller]
fn size_of(size: i128) -> Result<Option<usize>> {
    match usize::try_from(size) {
        Ok(usize::MAX) => Ok(None), // -1 as `usize`, which the compiler proposes for it
        Ok(size) => Ok(Some(size)),
        Err(_) if size == -1 => Ok(None),
        Err(_) => Err(negative(size)),
    }
}

#[track_caller]
fn negative(size: i128) -> Error {
    Error::new(ErrorKind::Value, "shape", format!("a size must not be negative, got {size}"))
}

impl OpenDim {
    #[track_caller]
    fn closed(self) -> Result<(Option<Name>, usize)> {
        let Some(size) = self.size else { return Err(negative(-1)) };
        Ok((self.name, size))
    }
}

#[diagnostic::do_not_recommend]
impl IntoShape for Shape {
    fn into_open_shape(self) -> Result<OpenShape> {
        (&self).into_open_shape()
    }
    fn into_shape(self) -> Result<Shape> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl IntoShape for &Shape {
    fn into_open_shape(self) -> Result<OpenShape> {
        let names = self.names.iter(self.sizes.len());
        Ok(crate::list(names.zip(&self.sizes).map(|(name, size)| OpenDim { name, size: Some(*size) })))
    }
    fn into_shape(self) -> Result<Shape> {
        Ok(self.clone())
    }
}

#[diagnostic::do_not_recommend]
impl IntoShape for () {
    /// No dims: one element.
    fn into_open_shape(self) -> Result<OpenShape> {
        Ok(OpenShape::new())
    }
}

#[diagnostic::do_not_recommend]
impl<D: NewDim, const K: usize> IntoShape for [D; K] {
    #[track_caller]
    fn into_open_shape(self) -> Result<OpenShape> {
        open_shape(self)
    }
}
#[diagnostic::do_not_recommend]
impl<D: NewDim> IntoShape for Vec<D> {
    #[track_caller]
    fn into_open_shape(self) -> Result<OpenShape> {
        open_shape(self)
    }
}
#[diagnostic::do_not_recommend]
impl<D: NewDim + Clone> IntoShape for &Vec<D> {
    #[track_caller]
    fn into_open_shape(self) -> Result<OpenShape> {
        open_shape(self.iter().cloned())
    }
}
#[diagnostic::do_not_recommend]
impl<D: NewDim + Clone, const K: usize> IntoShape for &[D; K] {
    #[track_caller]
    fn into_open_shape(self) -> Result<OpenShape> {
        open_shape(self.iter().cloned())
    }
}
#[diagnostic::do_not_recommend]
impl<D: NewDim + Clone> IntoShape for &[D] {
    #[track_caller]
    fn into_open_shape(self) -> Result<OpenShape> {
        open_shape(self.iter().cloned())
    }
}

#[track_caller]
#[inline(never)]
fn open_shape<D: NewDim>(dims: impl IntoIterator<Item = D>) -> Result<OpenShape> {
    let mut open = Ok(OpenShape::new());
    for dim in dims {
        push(&mut open, dim.into_open_dim());
        if open.is_err() {
            break;
        }
    }
    open
}

// Not generic, so that the list is compiled once, and not for each type of dim in every crate.
fn push(dims: &mut Result<OpenShape>, dim: Result<OpenDim>) {
    match (dim, dims) {
        (Ok(dim), Ok(dims)) => dims.push(dim),
        (Err(error), dims) => *dims = Err(error),
        _ => {}
    }
}

#[diagnostic::do_not_recommend]
impl<I: Whole> NewDim for I {
    #[track_caller]
    fn into_open_dim(self) -> Result<OpenDim> {
        Ok(OpenDim { name: None, size: size_of(self.number())? })
    }
}

#[diagnostic::do_not_recommend]
impl<N: Into<NewName>, I: Whole> NewDim for (N, I) {
    #[track_caller]
    fn into_open_dim(self) -> Result<OpenDim> {
        Ok(OpenDim { name: self.0.into().name()?, size: size_of(self.1.number())? })
    }
}

/// One dim without a name.
impl<I: Whole> IntoShape for I {
    #[track_caller]
    fn into_open_shape(self) -> Result<OpenShape> {
        open_shape([self])
    }
}

/// One dim with a name.
#[diagnostic::do_not_recommend]
impl<I: Whole> IntoShape for (&str, I) {
    #[track_caller]
    fn into_open_shape(self) -> Result<OpenShape> {
        open_shape([self])
    }
}

#[diagnostic::do_not_recommend]
impl IntoShape for &Sizes {
    fn into_open_shape(self) -> Result<OpenShape> {
        Ok(crate::list(self.iter().map(|size| OpenDim { name: None, size: Some(*size) })))
    }
}

#[diagnostic::do_not_recommend]
impl IntoShape for Sizes {
    fn into_open_shape(self) -> Result<OpenShape> {
        (&self).into_open_shape()
    }
}

/// Tuples of different kinds of dims: `A B` becomes
///
/// ```ignore
/// impl<A: NewDim, B: NewDim> IntoShape for (A, B) {
///     fn into_open_shape(self) -> Result<OpenShape> {
///         let (A, B) = self;
///         let mut open = OpenShape::new();
///         open.push(A.into_open_dim()?);
///         open.push(B.into_open_dim()?);
///         Ok(open)
///     }
/// }
/// ```
macro_rules! tuples {
    ($($($dim:ident)+;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($dim: NewDim),+> IntoShape for ($($dim,)+) {
            #[track_caller]
            fn into_open_shape(self) -> Result<OpenShape> {
                #[allow(non_snake_case)] // each field has the name of its type parameter
                let ($($dim,)+) = self;
                let mut open = OpenShape::new();
                $(open.push($dim.into_open_dim()?);)+
                Ok(open)
            }
        }
    )*};
}
tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}
