//! Shapes: sizes with or without names, as `[2, 3]`, `[("N", 2), ("C", 3)]` or mixed, `(("N", 2), 3)`.

use crate::args::{NewName, Whole};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::fill_strides;
use crate::names::{Name, Names};
use smallvec::SmallVec;
use std::fmt;

/// The sizes of a tensor, outermost first; up to six are stored inline.
pub type Sizes = SmallVec<[usize; 6]>;

/// The distance in elements between neighbors along each dim; may be negative or zero.
pub(crate) type Strides = SmallVec<[isize; 6]>;

/// The sizes of a tensor with the names of its dims. It prints as in errors: `[N=32, C=3, ?=7]` or, without
/// names, `[32, 3, 7]`.
#[derive(Clone, PartialEq, Eq)]
pub struct Shape {
    /// The sizes, outermost first.
    pub sizes: Sizes,
    /// The names: as many as sizes, or none.
    pub names: Names,
}

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

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (dim, size) in self.sizes.iter().enumerate() {
            if dim > 0 {
                f.write_str(", ")?;
            }
            match self.names.get(dim) {
                Some(name) => write!(f, "{name}={size}")?,
                None if self.names.is_named() => write!(f, "?={size}")?,
                None => write!(f, "{size}")?,
            }
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A new dim. Its size can be left open, written as -1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenDim {
    /// The name, if it has one.
    pub name: Option<Name>,
    /// The size, or `None` if it is left open.
    pub size: Option<usize>,
}

/// The dims of a shape in which sizes can be left open.
pub type OpenShape = SmallVec<[OpenDim; 6]>;

/// A type that can be used as a new dim: `3`, `("C", 3)`, `(None, 3)`.
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
/// or a [`Shape`].
///
/// ```
/// use namegrad_core::NamedTensor;
/// assert_eq!(format!("{:?}", NamedTensor::zeros([2, 3])?.shape()), "[2, 3]");
/// assert_eq!(format!("{:?}", NamedTensor::zeros([("N", 2), ("C", 3)])?.shape()), "[N=2, C=3]");
/// assert_eq!(format!("{:?}", NamedTensor::zeros((("N", 2), 3))?.shape()), "[N=2, ?=3]");
/// # Ok::<(), namegrad_core::Error>(())
/// ```
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
    fn into_shape(self) -> Result<Shape> {
        let dims = self.into_open_shape()?;
        let mut sizes = Sizes::new();
        for dim in &dims {
            sizes.push(dim.closed()?.1);
        }
        Ok(Shape { sizes, names: Names::new("shape", dims.iter().map(|dim| dim.name))? })
    }

    /// [`into_shape`](Self::into_shape) for an argument of `op`, which errors name.
    #[doc(hidden)]
    #[track_caller]
    fn shape_for(self, op: &'static str) -> Result<Shape> {
        self.into_shape().map_err(|error| error.of(op))
    }
}

#[track_caller]
fn size_of(size: impl Whole) -> Result<Option<usize>> {
    match (TryInto::<usize>::try_into(size), TryInto::<isize>::try_into(size)) {
        (Ok(size), _) => Ok(Some(size)),
        (_, Ok(-1)) => Ok(None),
        _ => Err(negative(size)),
    }
}

#[track_caller]
fn negative(size: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Value, "shape", format!("a size must not be negative, got {size}"))
}

impl OpenDim {
    #[track_caller]
    fn closed(self) -> Result<(Option<Name>, usize)> {
        let Some(size) = self.size else { return Err(negative(-1)) };
        Ok((self.name, size))
    }
}

impl IntoShape for Shape {
    fn into_open_shape(self) -> Result<OpenShape> {
        (&self).into_open_shape()
    }
    fn into_shape(self) -> Result<Shape> {
        Ok(self)
    }
}

impl IntoShape for &Shape {
    fn into_open_shape(self) -> Result<OpenShape> {
        let names = self.names.iter(self.sizes.len());
        Ok(names.zip(&self.sizes).map(|(name, size)| OpenDim { name, size: Some(*size) }).collect())
    }
    fn into_shape(self) -> Result<Shape> {
        Ok(self.clone())
    }
}

impl IntoShape for () {
    /// No dims: one element.
    fn into_open_shape(self) -> Result<OpenShape> {
        Ok(OpenShape::new())
    }
}

impl<D: NewDim, const K: usize> IntoShape for [D; K] {
    #[track_caller]
    fn into_open_shape(self) -> Result<OpenShape> {
        open_shape(self)
    }
}
impl<D: NewDim> IntoShape for Vec<D> {
    #[track_caller]
    fn into_open_shape(self) -> Result<OpenShape> {
        open_shape(self)
    }
}
impl<D: NewDim + Clone> IntoShape for &Vec<D> {
    #[track_caller]
    fn into_open_shape(self) -> Result<OpenShape> {
        open_shape(self.iter().cloned())
    }
}
impl<D: NewDim + Clone, const K: usize> IntoShape for &[D; K] {
    #[track_caller]
    fn into_open_shape(self) -> Result<OpenShape> {
        open_shape(self.iter().cloned())
    }
}
impl<D: NewDim + Clone> IntoShape for &[D] {
    #[track_caller]
    fn into_open_shape(self) -> Result<OpenShape> {
        open_shape(self.iter().cloned())
    }
}

#[track_caller]
fn open_shape<D: NewDim>(dims: impl IntoIterator<Item = D>) -> Result<OpenShape> {
    let mut open = OpenShape::new();
    for dim in dims {
        open.push(dim.into_open_dim()?);
    }
    Ok(open)
}

impl<I: Whole> NewDim for I {
    #[track_caller]
    fn into_open_dim(self) -> Result<OpenDim> {
        Ok(OpenDim { name: None, size: size_of(self)? })
    }
}

impl<N: Into<NewName>, I: Whole> NewDim for (N, I) {
    #[track_caller]
    fn into_open_dim(self) -> Result<OpenDim> {
        Ok(OpenDim { name: self.0.into().name()?, size: size_of(self.1)? })
    }
}

impl IntoShape for &Sizes {
    fn into_open_shape(self) -> Result<OpenShape> {
        Ok(self.iter().map(|size| OpenDim { name: None, size: Some(*size) }).collect())
    }
}

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

/// The number of elements, or an error if it or the number of bytes overflows.
#[inline]
#[track_caller]
pub(crate) fn checked_numel(op: &'static str, sizes: &[usize], itemsize: usize) -> Result<usize> {
    let mut product = 1usize;
    let mut fits = true;
    for size in sizes {
        // A size of zero makes the tensor empty; the product of the other sizes must not overflow either.
        match product.checked_mul((*size).max(1)) {
            Some(next) => product = next,
            None => fits = false,
        }
    }
    if !fits || product.checked_mul(itemsize).is_none_or(|bytes| bytes > isize::MAX as usize) {
        let message = format!(
            "out of memory: sizes {sizes:?} of {itemsize} bytes an element do not fit in memory of any size"
        );
        return Err(Error::new(ErrorKind::OutOfMemory, op, message));
    }
    Ok(if sizes.contains(&0) { 0 } else { product })
}

/// The strides of a dense tensor whose last dim is innermost.
#[inline]
pub(crate) fn contiguous_strides(sizes: &[usize]) -> Strides {
    let mut strides: Strides = SmallVec::from_elem(1, sizes.len());
    fill_strides(sizes, &mut strides);
    strides
}

/// `[outer, n, inner]` around `dim`; a 0-d tensor counts as having one dim of size one.
pub(crate) fn around(sizes: &[usize], dim: usize) -> [usize; 3] {
    let inner = sizes.get(dim + 1..).unwrap_or_default().iter().product();
    [sizes[..dim].iter().product(), sizes.get(dim).copied().unwrap_or(1), inner]
}

/// The sizes that two shapes broadcast to, from the right.
///
/// # Errors
/// [`ErrorKind::Shape`].
#[inline]
#[track_caller]
pub(crate) fn broadcast(op: &'static str, a: &[usize], b: &[usize]) -> Result<Sizes> {
    if a == b {
        return Ok(Sizes::from_slice(a));
    }
    let ndim = a.len().max(b.len());
    let mut sizes: Sizes = SmallVec::from_elem(1, ndim);
    for k in 0..ndim {
        let at = |x: &[usize]| if k < x.len() { x[x.len() - 1 - k] } else { 1 };
        let (x, y) = (at(a), at(b));
        sizes[ndim - 1 - k] = match (x, y) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            (x, y) => {
                let message = format!(
                    "The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {} of {a:?} and {b:?}",
                    ndim - 1 - k
                );
                return Err(Error::new(ErrorKind::Shape, op, message));
            }
        };
    }
    Ok(sizes)
}
