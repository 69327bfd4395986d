//! [`Tensor`]: a named value with its record on the tape. Gradients are in `grad`, and writing to a tensor in
//! `write`.

mod grad;
mod write;

pub use self::grad::{grad, grad_with};

use crate::elsewhere;
use crate::tape::{Carried, Meta, is_grad_enabled};
use crate::vmap::{all_slices, check_readable};
#[cfg(doc)]
use namegrad_core::Scalar;
use namegrad_core::args::whole;
use namegrad_core::names::signature::{HasDims, Met, Signature};
use namegrad_core::recycled::{FreeList, Recycle, Recycled};
use namegrad_core::{
    Argument, DType, Dim, Element, Error, ErrorKind, Name, NamedTensor, Names, Number, Result, Shape, Whole,
};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::thread::LocalKey;

/// A tensor whose dims can have names, and which can be differentiated.
///
/// A tensor is a value. A clone shares the buffer and the record on the tape, an in-place op changes only one
/// handle, and writing to a view never changes its base.
///
/// ```
/// use namegrad::prelude::*;
/// let x = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.refine_names(["N", "C"])?.requiring_grad()?;
/// let loss = x.mul(&x)?.sum(..)?;
/// loss.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    parts: Recycled<Parts>,
}

#[derive(Clone)]
struct Parts {
    value: NamedTensor,
    meta: Option<Arc<Meta>>,
}

impl Recycle for Parts {
    const MAY_PANIC: bool = true;

    #[inline]
    fn free() -> &'static LocalKey<FreeList<Parts>> {
        thread_local!(static FREE: FreeList<Parts> = const { FreeList::new() });
        &FREE
    }
}

/// A tensor that requires no gradient. Functions of C do not unwind, so that callers have no code for that.
#[allow(improper_ctypes_definitions)] // the caller is not C
#[inline(never)]
extern "C" fn constant(value: NamedTensor) -> Tensor {
    Tensor::from_parts_at_once(value, None)
}

/// # Dtype, sizes, names and elements
impl Tensor {
    #[inline(always)]
    pub(crate) fn from_parts(value: NamedTensor, meta: Option<Arc<Meta>>) -> Tensor {
        Tensor { parts: Recycled::of(Parts { value, meta }) }
    }

    /// [`from_parts`](Self::from_parts) without a call, for the ops that must be the fastest.
    #[inline]
    pub(crate) fn from_parts_at_once(value: NamedTensor, meta: Option<Arc<Meta>>) -> Tensor {
        Tensor { parts: Recycled::new(|| Parts { value, meta }) }
    }

    /// A tensor that requires no gradient.
    #[inline(always)]
    pub fn constant(value: NamedTensor) -> Tensor {
        constant(value)
    }

    /// The value, without the tape.
    #[inline]
    pub fn value(&self) -> &NamedTensor {
        &self.parts.value
    }

    /// The values of tensors, without the tape.
    #[doc(hidden)]
    pub fn values_of<'a>(tensors: &[&'a Tensor]) -> Vec<&'a NamedTensor> {
        tensors.iter().map(|x| x.value()).collect()
    }

    /// The value, without the tape.
    #[inline]
    pub fn into_value(self) -> NamedTensor {
        self.parts.into_inner().value
    }

    /// The record on the tape, if the tensor requires a gradient.
    #[inline]
    pub(crate) fn meta(&self) -> Option<&Arc<Meta>> {
        self.parts.meta.as_ref().filter(|meta| meta.is_recorded())
    }

    /// The record with all that the tensor carries, for another handle of the same value.
    #[inline]
    pub(crate) fn meta_and_carried(&self) -> Option<&Arc<Meta>> {
        self.parts.meta.as_ref()
    }

    /// What the tensor carries besides its record.
    pub(crate) fn carried(&self) -> Option<&Carried> {
        self.parts.meta.as_ref()?.carried.as_deref()
    }

    /// The number of the record on the tape, if there is one.
    #[doc(hidden)]
    pub fn record_id(&self) -> Option<u64> {
        self.meta().map(|meta| meta.id)
    }

    /// The record that an op would lead back to if it were recorded now, or that has tangents, which go
    /// through an op in any case.
    #[inline]
    pub(crate) fn tracked(&self) -> Option<&Arc<Meta>> {
        let meta = self.parts.meta.as_ref()?;
        let follows = match &meta.carried {
            None => is_grad_enabled(),
            Some(carried) => carried.is_followed(),
        };
        follows.then_some(meta)
    }

    /// Whether an op on the tensor also computes a derivative now: it is recorded, or the tensor has tangents.
    #[doc(hidden)]
    pub fn is_followed(&self) -> bool {
        self.tracked().is_some()
    }

    /// The tensor, or inside of `vmap` that of all slices, for checks of its numbers. The slices are along the
    /// last dims.
    #[doc(hidden)]
    pub fn all_slices(&self) -> Tensor {
        all_slices(self)
    }

    /// The same tensor with these names: one for each dim, or none.
    pub(crate) fn named(mut self, names: Names) -> Tensor {
        self.parts.value.set_names(names);
        self
    }

    /// The tensor as a gradient of `other`, with the names of `other`.
    pub(crate) fn with_names_of(self, other: &Tensor) -> Tensor {
        self.named(other.names().clone())
    }

    /// The same record on the tape with an unnamed value, which is what derivatives compute with.
    #[inline]
    pub(crate) fn unnamed(&self) -> Tensor {
        Tensor::from_parts(self.parts.value.unnamed(), self.parts.meta.clone())
    }

    /// The tensor in the dtype that was asked for, if any was.
    #[inline(never)]
    #[track_caller]
    pub(crate) fn in_dtype(self, dtype: Option<DType>) -> Result<Tensor> {
        match dtype {
            Some(dtype) if dtype != self.dtype() => self.to(dtype),
            _ => Ok(self),
        }
    }

    /// The tensor in `dtype`, if one is given.
    #[doc(hidden)] // for the rows of other crates
    #[inline(never)]
    #[track_caller]
    pub fn cast_to(&self, dtype: Option<DType>) -> Result<Cow<'_, Tensor>> {
        match dtype {
            Some(dtype) if dtype != self.dtype() => Ok(Cow::Owned(self.to(dtype)?)),
            _ => Ok(Cow::Borrowed(self)),
        }
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.parts.value.dtype()
    }

    /// The number of dims.
    pub fn ndim(&self) -> usize {
        self.parts.value.ndim()
    }

    /// The sizes, outermost first.
    pub fn sizes(&self) -> &[usize] {
        self.parts.value.sizes()
    }

    /// The size of one dim.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
    #[track_caller]
    pub fn size(&self, dim: impl Into<Dim>) -> Result<usize> {
        self.size_for("size", dim.into())
    }

    #[track_caller]
    fn size_for(&self, op: &'static str, dim: Dim) -> Result<usize> {
        let dim = Argument::resolve(&dim, op, &self.parts.value)?;
        match self.sizes().get(dim) {
            Some(size) => Ok(*size),
            None => {
                let message = "dimension specified as 0 but tensor has no dimensions";
                Err(Error::new(ErrorKind::DimRange, op, message))
            }
        }
    }

    /// The sizes of several dims. Use it with `let` to get sizes by name and check that the dims exist.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::zeros([("N", 2), ("C", 3), ("time", 4)])?;
    /// let [n, time] = x.sizes_of(["N", "time"])?;
    /// assert_eq!((n, time), (2, 4));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
    #[track_caller]
    pub fn sizes_of<const N: usize>(&self, dims: [impl Into<Dim>; N]) -> Result<[usize; N]> {
        let mut sizes = [0; N];
        for (size, dim) in sizes.iter_mut().zip(dims) {
            *size = self.size_for("sizes_of", dim.into())?;
        }
        Ok(sizes)
    }

    /// The same tensor, if all of its elements are finite: one call that stops a training at a loss which is
    /// NaN.
    ///
    /// A step of an optimizer is an error if the first elements of a gradient are not finite, but a loss can be
    /// NaN while its gradients are finite. `detect_nonfinite` finds the op that made the first such value.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([4.0, -1.0])?.requiring_grad()?;
    /// x.abs().sqrt().sum(..).check_finite()?.backward()?;
    /// let error = x.sqrt().sum(..).check_finite().unwrap_err();
    /// assert_eq!((error.op(), error.message()), ("check_finite", "the value is NaN"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if an element is NaN or infinite; the error counts them.
    #[track_caller]
    pub fn check_finite(&self) -> Result<Tensor> {
        self.numbers()?.check_finite("check_finite")?;
        Ok(self.clone())
    }

    /// The distance in elements between neighbors along each dim.
    pub fn strides(&self) -> &[isize] {
        self.parts.value.strides()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.parts.value.numel()
    }

    /// The names.
    pub fn names(&self) -> &Names {
        self.parts.value.names()
    }

    /// The name of `dim`, if it has one.
    pub fn name(&self, dim: usize) -> Option<Name> {
        self.parts.value.name(dim)
    }

    /// Whether any dim is named.
    pub fn has_names(&self) -> bool {
        self.parts.value.has_names()
    }

    /// The sizes with the names, as errors show them. Factories take it to make another tensor with the same
    /// dims.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::zeros([("N", 2), ("C", 3)])?;
    /// assert_eq!(x.shape().to_string(), "[N=2, C=3]");
    /// assert_eq!(Tensor::ones(x.shape())?.shape(), x.shape());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn shape(&self) -> Shape {
        self.parts.value.shape()
    }

    /// Whether the elements are in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.parts.value.is_contiguous()
    }

    /// The only element, as a number of type `T`; [`Scalar`] accepts all dtypes. An integer must fit, and a
    /// float is rounded. Another kind of number needs a cast: `x.to(DType::I64)?.item::<i64>()?`.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let loss = Tensor::new([1.0, 2.0])?.sum(..)?;
    /// assert_eq!(loss.item::<f32>()?, 3.0);
    /// assert!(loss.item::<i64>().is_err());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if there is not exactly one element, [`ErrorKind::DType`] if `T` is another kind
    /// of number (bool, integer, float), [`ErrorKind::Value`] if an integer does not fit in `T`.
    #[track_caller]
    #[inline(never)]
    pub fn item<T: Number>(&self) -> Result<T> {
        check_readable("item", self)?;
        elsewhere::numbers(self.value())?.item()
    }

    /// The element at these positions, one for each dim, as a number. A negative position counts from the
    /// end.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.refine_names(["N", "C"])?;
    /// assert_eq!(x.item_at::<f32>([1, 0])?, 3.0);
    /// assert_eq!(x.item_at::<f32>([-1, -1])?, 4.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if a position is out of range, or if there is not one position for each dim; the
    /// errors of [`item`](Self::item).
    #[track_caller]
    pub fn item_at<T: Number>(&self, at: impl IntoIterator<Item: Whole>) -> Result<T> {
        const OP: &str = "item_at";
        check_readable(OP, self)?;
        let mut places: SmallVec<[isize; 6]> = SmallVec::new();
        for place in at {
            places.push(whole(OP, "at", place.number())?);
        }
        self.element(OP, &places)?.item().map_err(|error| self.of_element(OP, error))
    }

    /// The error of `item` on one element, as one of `op` on the whole tensor.
    #[cold]
    fn of_element(&self, op: &'static str, error: Error) -> Error {
        let repair =
            error.repair().map(|call| call.replace(".item::<", ".item_at::<").replace("()?", "(at)?"));
        let error = error.of(op).with_inputs(&[&self.parts.value]);
        match repair {
            Some(repair) => error.with_repair(repair),
            None => error,
        }
    }

    #[track_caller]
    fn element(&self, op: &'static str, at: &[isize]) -> Result<NamedTensor> {
        if at.len() != self.ndim() {
            let message = format!("got {} positions for a tensor of {} dims", at.len(), self.ndim());
            return Err(Error::new(ErrorKind::Index, op, message).with_operands([self.shape()]).with_repair(
                format!("x.item_at::<f32>({:?})?, with a position for each dim", vec![0; self.ndim()]),
            ));
        }
        let caller = Location::caller();
        let mut element = self.parts.value.clone();
        for place in at {
            element = element
                .select(0, *place)
                .map_err(|error| error.of(op).with_operands([self.shape()]).at(caller))?;
        }
        Ok(element)
    }

    /// A copy of the elements in row-major order. Integers can have another width if they fit, and floats are
    /// rounded. Another kind of number needs a cast: `x.to(DType::I64)?.to_vec::<i64>()?`.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1.5, -2.0])?;
    /// assert_eq!(x.to_vec::<f64>()?, [1.5, -2.0]);
    /// assert!(x.to_vec::<i32>().is_err());
    /// assert_eq!(x.to(DType::I32)?.to_vec::<i32>()?, [1, -2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if `T` is another kind of number (bool, integer, float), [`ErrorKind::Value`] if
    /// an integer does not fit in `T`, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    #[inline(never)]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        check_readable("to_vec", self)?;
        elsewhere::numbers(self.value())?.to_vec()
    }

    /// Whether gradients flow to or through this tensor.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        self.meta().is_some()
    }

    /// Whether this tensor is a leaf, that is, not the result of a recorded op.
    pub fn is_leaf(&self) -> bool {
        self.meta().is_none_or(|meta| meta.is_leaf())
    }

    /// The op that made this tensor, if it is recorded.
    pub fn grad_fn(&self) -> Option<&'static str> {
        Some(self.meta()?.origin?.op)
    }
}

/// Same as [`constant`](Tensor::constant).
impl From<NamedTensor> for Tensor {
    fn from(value: NamedTensor) -> Tensor {
        Tensor::constant(value)
    }
}

/// Allows a tensor where a plain value is expected, such as in `Parameter::set`.
impl HasDims for Tensor {
    #[inline]
    #[track_caller]
    fn check_dims(&self, signature: &'static Signature, part: usize, met: &mut [Met]) -> Result<()> {
        self.value().check_dims(signature, part, met)
    }
}

impl AsRef<NamedTensor> for Tensor {
    fn as_ref(&self) -> &NamedTensor {
        self.value()
    }
}

/// Allows lists of tensors or of references to them.
impl AsRef<Tensor> for Tensor {
    fn as_ref(&self) -> &Tensor {
        self
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if elsewhere::behind(self.value()).is_some() {
            return write!(f, "tensor{} of {} in parts", self.shape(), self.dtype());
        }
        match (self.meta(), self.grad_fn()) {
            (_, Some(op)) => self.parts.value.write(f, &[&format!("grad_fn=<{op}>")]),
            (Some(_), None) => self.parts.value.write(f, &["requires_grad=True"]),
            (None, None) => self.parts.value.write(f, &[]),
        }
    }
}

impl PartialEq for Tensor {
    /// Whether dtype, sizes, names and all elements are equal. NaN is not equal to anything, and the tape
    /// does not matter. For an elementwise comparison, see [`eq`](Tensor::eq).
    ///
    /// # Panics
    /// If all but the elements is equal and a tensor is on the meta device, where there are none.
    #[track_caller]
    fn eq(&self, other: &Tensor) -> bool {
        PartialEq::eq(&self.parts.value, &other.parts.value)
    }
}

#[cfg(feature = "approx")]
namegrad_core::approximate_equality!(Tensor, Tensor::value);

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.parts.value)?;
        match (self.meta(), self.grad_fn()) {
            (_, Some(op)) => write!(f, " <- {op}"),
            (Some(_), None) => f.write_str(" requires grad"),
            (None, None) => Ok(()),
        }
    }
}
