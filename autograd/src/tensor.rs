//! [`Tensor`]: a named value and what the tape knows of it. Its gradient is in `grad`, what writes to it in
//! `write`.

mod grad;
mod write;

pub use self::grad::grad;

use crate::tape::{Meta, is_grad_enabled};
use namegrad_core::{DType, Element, Error, ErrorKind, Name, NamedTensor, Names, Result, Scalar, Shape};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A tensor whose dims may have names, and that can be differentiated.
///
/// A tensor is a value: a clone shares the buffer and the place on the tape, an in-place op changes one
/// handle only, and a view never writes through to its base.
///
/// ```
/// use namegrad::prelude::*;
/// let x = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.refine_names(["N", "C"])?.requires_grad_(true)?;
/// let loss = x.mul(&x)?.sum(..)?;
/// loss.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    value: NamedTensor,
    meta: Option<Arc<Meta>>,
}

/// # What a tensor is: its dtype, sizes, names and numbers
impl Tensor {
    #[inline]
    pub(crate) fn from_parts(value: NamedTensor, meta: Option<Arc<Meta>>) -> Tensor {
        Tensor { value, meta }
    }

    /// A tensor that requires no gradient.
    #[inline]
    pub fn constant(value: NamedTensor) -> Tensor {
        Tensor { value, meta: None }
    }

    /// The value, without the tape.
    #[inline]
    pub fn value(&self) -> &NamedTensor {
        &self.value
    }

    /// The value, without the tape.
    #[inline]
    pub fn into_value(self) -> NamedTensor {
        self.value
    }

    #[inline]
    pub(crate) fn meta(&self) -> Option<&Arc<Meta>> {
        self.meta.as_ref()
    }

    /// What an op that is recorded now would lead back to.
    #[inline]
    pub(crate) fn tracked(&self) -> Option<&Arc<Meta>> {
        if is_grad_enabled() { self.meta.as_ref() } else { None }
    }

    /// A gradient of `other`, with its names.
    pub(crate) fn with_names_of(self, other: &Tensor) -> Tensor {
        Tensor { value: self.value.with_names(other.names().clone()), meta: self.meta }
    }

    /// The same place on the tape, with the value unnamed: what derivatives compute with.
    #[inline]
    pub(crate) fn unnamed(&self) -> Tensor {
        Tensor { value: self.value.unnamed(), meta: self.meta.clone() }
    }

    /// The tensor in that dtype, if there is one.
    #[inline]
    #[track_caller]
    pub(crate) fn cast_to(&self, dtype: Option<DType>) -> Result<Cow<'_, Tensor>> {
        match dtype {
            Some(dtype) if dtype != self.dtype() => Ok(Cow::Owned(self.to(dtype)?)),
            _ => Ok(Cow::Borrowed(self)),
        }
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.value.dtype()
    }

    /// The number of dims.
    pub fn ndim(&self) -> usize {
        self.value.ndim()
    }

    /// The sizes, outermost first.
    pub fn sizes(&self) -> &[usize] {
        self.value.sizes()
    }

    /// The size of one dim.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
    #[track_caller]
    pub fn size(&self, dim: impl Into<namegrad_core::Dim>) -> Result<usize> {
        let dim = namegrad_core::Argument::resolve(dim.into(), "size", &self.value)?;
        match self.sizes().get(dim) {
            Some(size) => Ok(*size),
            None => {
                let message = "dimension specified as 0 but tensor has no dimensions";
                Err(Error::new(ErrorKind::DimRange, "size", message))
            }
        }
    }

    /// The step in elements between neighbours along each dim.
    pub fn strides(&self) -> &[isize] {
        self.value.strides()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.value.numel()
    }

    /// The names.
    pub fn names(&self) -> &Names {
        self.value.names()
    }

    /// The name of dim `dim`, if it has one.
    pub fn name(&self, dim: usize) -> Option<Name> {
        self.value.name(dim)
    }

    /// Is any dim named?
    pub fn has_names(&self) -> bool {
        self.value.has_names()
    }

    /// The sizes with the names: what errors show, and what another tensor of the same dims is made of.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::zeros([("N", 2), ("C", 3)])?;
    /// assert_eq!(x.shape().to_string(), "[N=2, C=3]");
    /// assert_eq!(Tensor::ones(x.shape())?.shape(), x.shape());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn shape(&self) -> Shape {
        self.value.shape()
    }

    /// Do the elements stand in row-major order without gaps?
    pub fn is_contiguous(&self) -> bool {
        self.value.is_contiguous()
    }

    /// The only element, as a plain number.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if there is not exactly one.
    #[track_caller]
    pub fn item(&self) -> Result<Scalar> {
        self.value.item()
    }

    /// The elements in row-major order, copied and cast to `T`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.value.to_vec()
    }

    /// Does a gradient flow to or through this tensor?
    #[inline]
    pub fn requires_grad(&self) -> bool {
        self.meta.is_some()
    }

    /// Was this tensor made by the user rather than by a recorded op?
    pub fn is_leaf(&self) -> bool {
        self.meta.as_ref().is_none_or(|meta| meta.is_leaf())
    }

    /// The op that made this tensor, if it is recorded.
    pub fn grad_fn(&self) -> Option<&'static str> {
        Some(self.meta.as_ref()?.origin?.op)
    }
}

/// So that a list can be of tensors or of references to them.
impl AsRef<Tensor> for Tensor {
    fn as_ref(&self) -> &Tensor {
        self
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.meta, self.grad_fn()) {
            (_, Some(op)) => self.value.write(f, &[&format!("grad_fn=<{op}>")]),
            (Some(_), None) => self.value.write(f, &["requires_grad=True"]),
            (None, None) => self.value.write(f, &[]),
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.value)?;
        match (&self.meta, self.grad_fn()) {
            (_, Some(op)) => write!(f, " <- {op}"),
            (Some(_), None) => f.write_str(" requires grad"),
            (None, None) => Ok(()),
        }
    }
}
