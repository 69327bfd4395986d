//! Sizes and names given together: `[2, 3]`, `[("N", 2), ("C", 3)]`, or mixed as `(("N", 2), 3)`.

use crate::args::Whole;
use crate::error::{Error, ErrorKind, Result};
use crate::layout::fill_strides;
use crate::names::{Name, Names};
use smallvec::SmallVec;

/// Sizes or dims of a tensor; up to six stand inline.
pub type Sizes = SmallVec<[usize; 6]>;

/// Steps in elements between neighbours along each dim; may be negative or zero.
pub type Strides = SmallVec<[isize; 6]>;

/// The sizes of a tensor to be made, with the names of its dims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The sizes, outermost first.
    pub sizes: Sizes,
    /// The names: as many as sizes, or none.
    pub names: Names,
}

/// One dim to be made: a size, perhaps with a name. `("N", 32)` and `32` convert into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The name, if it has one.
    pub name: Option<Name>,
    /// The size.
    pub size: usize,
}

/// A dim that another is split into; one without a size, written -1, takes what the others leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The name, if it has one.
    pub name: Option<Name>,
    /// The size, unless it is to be inferred.
    pub size: Option<usize>,
}

/// The dims that another is split into.
pub type Parts = SmallVec<[Part; 6]>;

/// What can be written for one dim: `3`, `("C", 3)`, `(None, 3)`.
pub trait IntoAxis: Sized {
    /// The dim, of which the size may be left open.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a size below -1.
    #[track_caller]
    fn into_part(self) -> Result<Part>;

    /// The dim.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a negative size.
    #[track_caller]
    fn into_axis(self) -> Result<Axis> {
        self.into_part()?.axis()
    }
}

/// What can be written for a shape: an array, slice or `Vec` of dims, a tuple of different kinds of dims, a
/// [`Shape`].
///
/// ```
/// use namegrad_core::NamedTensor;
/// assert_eq!(format!("{:?}", NamedTensor::zeros([2, 3])?.extents()), "[2, 3]");
/// assert_eq!(format!("{:?}", NamedTensor::zeros([("N", 2), ("C", 3)])?.extents()), "[N=2, C=3]");
/// assert_eq!(format!("{:?}", NamedTensor::zeros((("N", 2), 3))?.extents()), "[N=2, ?=3]");
/// # Ok::<(), namegrad_core::Error>(())
/// ```
pub trait IntoShape: Sized {
    /// The dims, of which sizes may be left open.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a size below -1.
    #[track_caller]
    fn into_dim_parts(self) -> Result<Parts>;

    /// The shape.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::DuplicateName`], [`ErrorKind::Value`] for a negative size.
    #[track_caller]
    fn into_shape(self) -> Result<Shape> {
        shape_of(&self.into_dim_parts()?)
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

impl Part {
    #[track_caller]
    fn axis(self) -> Result<Axis> {
        let Some(size) = self.size else { return Err(negative(-1)) };
        Ok(Axis { name: self.name, size })
    }
}

/// A shape of these dims.
#[track_caller]
fn shape_of(parts: &[Part]) -> Result<Shape> {
    let mut sizes = Sizes::new();
    for part in parts {
        sizes.push(part.axis()?.size);
    }
    Ok(Shape { sizes, names: Names::new("shape", parts.iter().map(|part| part.name))? })
}

impl IntoAxis for Axis {
    fn into_part(self) -> Result<Part> {
        Ok(Part { name: self.name, size: Some(self.size) })
    }
}

impl IntoShape for Shape {
    fn into_dim_parts(self) -> Result<Parts> {
        (&self).into_dim_parts()
    }
    fn into_shape(self) -> Result<Shape> {
        Ok(self)
    }
}

impl IntoShape for &Shape {
    fn into_dim_parts(self) -> Result<Parts> {
        let names = self.names.iter(self.sizes.len());
        Ok(names.zip(&self.sizes).map(|(name, size)| Part { name, size: Some(*size) }).collect())
    }
    fn into_shape(self) -> Result<Shape> {
        Ok(self.clone())
    }
}

impl IntoShape for () {
    /// No dims: one element.
    fn into_dim_parts(self) -> Result<Parts> {
        Ok(Parts::new())
    }
}

impl<A: IntoAxis, const K: usize> IntoShape for [A; K] {
    #[track_caller]
    fn into_dim_parts(self) -> Result<Parts> {
        parts(self)
    }
}
impl<A: IntoAxis> IntoShape for Vec<A> {
    #[track_caller]
    fn into_dim_parts(self) -> Result<Parts> {
        parts(self)
    }
}
impl<A: IntoAxis + Clone> IntoShape for &Vec<A> {
    #[track_caller]
    fn into_dim_parts(self) -> Result<Parts> {
        parts(self.iter().cloned())
    }
}
impl<A: IntoAxis + Clone, const K: usize> IntoShape for &[A; K] {
    #[track_caller]
    fn into_dim_parts(self) -> Result<Parts> {
        parts(self.iter().cloned())
    }
}
impl<A: IntoAxis + Clone> IntoShape for &[A] {
    #[track_caller]
    fn into_dim_parts(self) -> Result<Parts> {
        parts(self.iter().cloned())
    }
}

#[track_caller]
fn parts<A: IntoAxis>(dims: impl IntoIterator<Item = A>) -> Result<Parts> {
    let mut parts = Parts::new();
    for dim in dims {
        parts.push(dim.into_part()?);
    }
    Ok(parts)
}

/// What can be written for the name of a dim to be made: a text, a [`Name`], or nothing.
pub trait AxisName {
    /// The name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`].
    #[track_caller]
    fn axis_name(self) -> Result<Option<Name>>;
}

impl AxisName for &str {
    #[track_caller]
    fn axis_name(self) -> Result<Option<Name>> {
        Ok(Some(Name::new(self)?))
    }
}
impl AxisName for String {
    #[track_caller]
    fn axis_name(self) -> Result<Option<Name>> {
        Ok(Some(Name::new(&self)?))
    }
}
impl AxisName for Name {
    fn axis_name(self) -> Result<Option<Name>> {
        Ok(Some(self))
    }
}
/// Only of `&str`, so that the type of `None` alone is known.
impl AxisName for Option<&str> {
    #[track_caller]
    fn axis_name(self) -> Result<Option<Name>> {
        match self {
            Some(name) => name.axis_name(),
            None => Ok(None),
        }
    }
}

impl<I: Whole> IntoAxis for I {
    #[track_caller]
    fn into_part(self) -> Result<Part> {
        Ok(Part { name: None, size: size_of(self)? })
    }
}

impl<N: AxisName, I: Whole> IntoAxis for (N, I) {
    #[track_caller]
    fn into_part(self) -> Result<Part> {
        Ok(Part { name: self.0.axis_name()?, size: size_of(self.1)? })
    }
}

impl IntoShape for &Sizes {
    fn into_dim_parts(self) -> Result<Parts> {
        Ok(self.iter().map(|size| Part { name: None, size: Some(*size) }).collect())
    }
}

impl IntoShape for Sizes {
    fn into_dim_parts(self) -> Result<Parts> {
        (&self).into_dim_parts()
    }
}

/// Tuples of dims of different kinds: `A B` becomes
///
/// ```ignore
/// impl<A: IntoAxis, B: IntoAxis> IntoShape for (A, B) {
///     fn into_dim_parts(self) -> Result<Parts> {
///         let (A, B) = self;
///         let mut parts = Parts::new();
///         parts.push(A.into_part()?);
///         parts.push(B.into_part()?);
///         Ok(parts)
///     }
/// }
/// ```
macro_rules! tuples {
    ($($($axis:ident)+;)*) => {$(
        impl<$($axis: IntoAxis),+> IntoShape for ($($axis,)+) {
            #[track_caller]
            fn into_dim_parts(self) -> Result<Parts> {
                #[allow(non_snake_case)] // each type parameter names its field
                let ($($axis,)+) = self;
                let mut parts = Parts::new();
                $(parts.push($axis.into_part()?);)+
                Ok(parts)
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

/// The number of elements, or an error when it or its bytes do not fit an address.
#[inline]
#[track_caller]
pub(crate) fn checked_numel(op: &'static str, sizes: &[usize], itemsize: usize) -> Result<usize> {
    let mut product = 1usize;
    let mut fits = true;
    for size in sizes {
        // A zero makes the tensor empty whatever the others are, so the product of the non-zero ones decides.
        match product.checked_mul((*size).max(1)) {
            Some(next) => product = next,
            None => fits = false,
        }
    }
    if !fits || product.checked_mul(itemsize).is_none_or(|bytes| bytes > isize::MAX as usize) {
        let message = format!("sizes {sizes:?} of {itemsize} bytes an element do not fit in memory");
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

/// `[outer, n, inner]` around dim `dim`; a 0-d tensor counts as one dim of one element.
pub(crate) fn around(sizes: &[usize], dim: usize) -> [usize; 3] {
    let inner = sizes.get(dim + 1..).unwrap_or_default().iter().product();
    [sizes[..dim].iter().product(), sizes.get(dim).copied().unwrap_or(1), inner]
}

/// The sizes that two tensors broadcast to, from the right.
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
