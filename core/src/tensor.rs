//! [`NamedTensor`]: a dtype, sizes, strides, names and a shared buffer. Views never copy; writing copies if
//! the buffer is shared. `make` creates tensors, `serialize` is serde's form of a tensor inside other data, and
//! `bytes` that of its elements in files.
use crate::cpu::storage::Storage;
use crate::device::is_on_meta;
use crate::dtype::{Category, DType, Element, Number, Opaque, Scalar, default_dtype, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{Layout, has, product};
use crate::layout::{Sizes, Strides};
use crate::names::rules::NamedInput;
use crate::names::{Name, Names, apart};
use crate::recycled::{FreeList, Recycle, Recycled};
use crate::shape::Shape;
use std::borrow::Cow;
use std::sync::Arc;
use std::thread::LocalKey;

mod about;
mod behind;
mod bytes;
mod make;
pub(crate) mod range;
mod serialize;

#[doc(hidden)]
pub use behind::{Behind, looked_behind};
pub(crate) use make::Unwritten;

/// A tensor as a plain value, without gradients. A `namegrad::Tensor` contains one.
///
/// Clones share the same buffer. An in-place op writes into the buffer if it is not shared, and otherwise
/// into a copy, so changing one tensor never changes another.
#[derive(Clone)]
pub struct NamedTensor {
    parts: Recycled<Parts>,
}

#[derive(Clone)]
struct Parts {
    storage: Storage,
    layout: Layout,
    names: Names,
    offset: usize,
    dtype: DType,
    is_number: bool,
    behind: Option<Arc<Behind>>,
}

impl Recycle for Parts {
    const MAY_PANIC: bool = false;

    #[inline]
    fn free() -> &'static LocalKey<FreeList<Parts>> {
        thread_local!(static FREE: FreeList<Parts> = const { FreeList::new() });
        &FREE
    }
}

/// A tensor or an error is returned in two registers. If it were larger, most of the time of ops on small
/// tensors would be spent on moving results, and much of the code.
const _: () = assert!(size_of::<Result<NamedTensor>>() == 16);

impl NamedTensor {
    #[inline]
    fn of(parts: impl FnOnce() -> Parts) -> NamedTensor {
        NamedTensor { parts: Recycled::new(parts) }
    }

    /// A dense tensor over a buffer.
    ///
    /// # Safety
    /// The buffer has room for the elements, and none is read before it is written.
    #[inline]
    unsafe fn from_parts(storage: Storage, dtype: DType, sizes: &[usize], names: Names) -> NamedTensor {
        let layout = Layout::contiguous(sizes);
        NamedTensor::of(|| Parts { storage, layout, names, offset: 0, dtype, is_number: false, behind: None })
    }

    /// Another view of the same buffer.
    ///
    /// # Panics
    /// If an element would be outside of the buffer, which is a bug in the op and not a mistake of its user.
    #[inline(never)]
    pub(crate) fn view_as(&self, sizes: Sizes, strides: Strides, offset: usize, names: Names) -> NamedTensor {
        self.look_behind();
        let room = self.parts.storage.bytes() / self.parts.dtype.itemsize();
        // An empty view can begin anywhere, even past the end of an empty buffer.
        let offset = if has(&sizes, 0) { 0 } else { offset };
        assert!(lies_within(room, &sizes, &strides, offset), "a view outside of the buffer");
        let (storage, layout) = (self.parts.storage.clone(), Layout::new(&sizes, &strides));
        let dtype = self.parts.dtype;
        NamedTensor::of(|| Parts { storage, layout, names, offset, dtype, is_number: false, behind: None })
    }

    /// The same tensor with other names: one for each dim, or none.
    #[inline]
    pub fn with_names(mut self, names: Names) -> NamedTensor {
        self.set_names(names);
        self
    }

    /// Same as [`with_names`](Self::with_names), in place.
    #[doc(hidden)]
    #[inline]
    pub fn set_names(&mut self, names: Names) {
        debug_assert!(!names.is_named() || names.iter(self.ndim()).len() == self.ndim());
        self.parts.names = names;
    }

    /// The same values without names, which is what the tape computes with.
    #[inline(never)]
    pub fn unnamed(&self) -> NamedTensor {
        let Parts { storage, layout, offset, dtype, is_number, behind, .. } = &*self.parts;
        NamedTensor::of(|| Parts {
            storage: storage.clone(),
            layout: layout.clone(),
            names: Names::none(),
            offset: *offset,
            dtype: *dtype,
            is_number: *is_number,
            behind: behind.clone(),
        })
    }

    /// Whether this is a plain number rather than a tensor.
    #[inline]
    pub fn is_number(&self) -> bool {
        self.parts.is_number
    }

    /// Whether dtype, sizes and names are the same, so that an elementwise op has nothing to infer. With many
    /// dims, `false` means nothing.
    #[inline]
    pub(crate) fn is_like(&self, other: &NamedTensor) -> bool {
        self.parts.dtype == other.parts.dtype
            && self.parts.layout.has_sizes_of(&other.parts.layout)
            && self.parts.names == other.parts.names
    }

    /// Whether this is a mask for `other`: `bool`, with the same sizes and names. With many dims, `false`
    /// means nothing.
    #[inline]
    pub(crate) fn is_mask_of(&self, other: &NamedTensor) -> bool {
        self.parts.dtype == DType::Bool
            && self.parts.layout.has_sizes_of(&other.parts.layout)
            && self.parts.names == other.parts.names
    }

    /// The tensor in the dtype that its loops compute in: half types become `f32`.
    #[inline]
    #[track_caller]
    pub(crate) fn widened(&self) -> Result<Cow<'_, NamedTensor>> {
        self.cast(self.parts.dtype.compute())
    }

    /// The tensor in `dtype`; costs nothing if it already has that dtype.
    #[inline(never)]
    #[track_caller]
    pub(crate) fn cast(&self, dtype: DType) -> Result<Cow<'_, NamedTensor>> {
        Ok(if self.parts.dtype == dtype { Cow::Borrowed(self) } else { Cow::Owned(self.to(dtype)?) })
    }

    /// The tensor in the dtype that was asked for, if any was.
    #[inline(never)]
    #[track_caller]
    pub(crate) fn in_dtype(self, dtype: Option<DType>) -> Result<NamedTensor> {
        match dtype {
            Some(dtype) if dtype != self.dtype() => self.to(dtype),
            _ => Ok(self),
        }
    }

    /// The tensor in `dtype`, if one is given.
    #[inline(never)]
    #[track_caller]
    pub(crate) fn cast_to(&self, dtype: Option<DType>) -> Result<Cow<'_, NamedTensor>> {
        self.cast(dtype.unwrap_or(self.parts.dtype))
    }

    /// [`to`](Self::to) for a tensor that is no longer needed.
    #[inline(never)]
    #[track_caller]
    pub(crate) fn into_dtype(self, dtype: DType) -> Result<NamedTensor> {
        if self.parts.dtype == dtype { Ok(self) } else { self.to(dtype) }
    }

    /// The dtype.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.parts.dtype
    }

    /// The number of dims.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.sizes().len()
    }

    /// The sizes, outermost first.
    #[inline]
    pub fn sizes(&self) -> &[usize] {
        self.parts.layout.sizes()
    }

    /// The sizes of these dims.
    pub(crate) fn sizes_of(&self, dims: &[usize]) -> Sizes {
        let mut sizes = Sizes::new();
        for dim in dims {
            sizes.push(self.sizes()[*dim]);
        }
        sizes
    }

    /// The strides of these dims.
    pub(crate) fn strides_of(&self, dims: &[usize]) -> Strides {
        let mut strides = Strides::new();
        for dim in dims {
            strides.push(self.strides()[*dim]);
        }
        strides
    }

    /// The size of `dim`; 1 for a 0-d tensor, which counts as having one dim.
    #[inline]
    pub(crate) fn length_of(&self, dim: usize) -> usize {
        self.sizes().get(dim).copied().unwrap_or(1)
    }

    /// Returns an error for an op on floats unless the dtype is a float.
    #[doc(hidden)]
    #[track_caller]
    pub fn check_float(&self, op: &'static str) -> Result<()> {
        if self.dtype().is_floating_point() {
            return Ok(());
        }
        let message = format!("not implemented for {}; it takes floating point dtypes", self.dtype());
        Err(Error::about(&[self], ErrorKind::DType, op, message)
            .with_repair(format!("x.to(DType::{:?})?", default_dtype())))
    }

    /// Returns an error if a dim of `value`, which is to replace this tensor of the same sizes, has another
    /// name.
    #[doc(hidden)]
    #[track_caller]
    pub fn check_names_of(&self, op: &'static str, value: &NamedTensor) -> Result<()> {
        let Some((own, other)) =
            apart(self.parts.names.iter(self.ndim()), value.parts.names.iter(value.ndim()))
        else {
            return Ok(());
        };
        let message = format!("dim '{other}' of the value lies on dim '{own}'");
        let by_name = match (value.align_as(self), value.names().position(own)) {
            (Ok(_), _) => "value.align_as(&p.tensor())?, or ".to_string(),
            (Err(_), None) => {
                format!("value.rename([(\"{other}\", \"{own}\")])? if both names mean the same, or ")
            }
            _ => String::new(), // it would have the name twice
        };
        Err(Error::about(&[self, value], ErrorKind::NameMismatch, op, message)
            .with_repair(format!("{by_name}value.rename(None)? if the position is meant")))
    }

    /// Returns an error if this is a plain number outside the range of the integer dtype in which it would be
    /// written to `x`.
    #[doc(hidden)]
    #[track_caller]
    pub fn check_fits(&self, op: &'static str, x: &NamedTensor) -> Result<()> {
        match range::beyond(&[self], x.parts.dtype)? {
            Some(number) => Err(range::does_not_fit(op, Some(x), number, x.parts.dtype)),
            None => Ok(()),
        }
    }

    /// Returns an error if the dtype is `bool`, for ops that make no sense on it.
    #[track_caller]
    pub(crate) fn check_not_bool(&self, op: &'static str) -> Result<()> {
        if self.dtype() != DType::Bool {
            return Ok(());
        }
        let message = "not implemented for bool; it takes the integers and floats";
        Err(Error::about(&[self], ErrorKind::DType, op, message).with_repair("x.to(DType::U8)?"))
    }

    /// The distance in elements between neighbors along each dim; negative after a flip, zero for an expanded
    /// dim.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        self.parts.layout.strides()
    }

    /// The names.
    #[inline]
    pub fn names(&self) -> &Names {
        &self.parts.names
    }

    /// Whether any dim is named.
    #[inline]
    pub fn has_names(&self) -> bool {
        self.parts.names.is_named()
    }

    /// The name of `dim`, if it has one.
    #[inline]
    pub fn name(&self, dim: usize) -> Option<Name> {
        self.parts.names.get(dim)
    }

    /// The number of elements.
    #[inline(never)]
    pub fn numel(&self) -> usize {
        product(self.sizes())
    }

    /// The size of all elements in bytes.
    #[inline]
    pub fn nbytes(&self) -> usize {
        self.numel() * self.parts.dtype.itemsize()
    }

    /// The sizes with the names, as errors show them. Factories take it to make another tensor with the same
    /// dims.
    pub fn shape(&self) -> Shape {
        Shape { sizes: Sizes::from_slice(self.sizes()), names: self.parts.names.clone() }
    }

    /// The tensor as the name rules see it.
    #[inline]
    pub(crate) fn input(&self) -> NamedInput<'_> {
        NamedInput { names: &self.parts.names, sizes: self.sizes() }
    }

    /// Whether the elements are in row-major order without gaps.
    #[inline(never)]
    pub fn is_contiguous(&self) -> bool {
        let mut step = 1isize;
        for (size, stride) in self.sizes().iter().zip(self.strides()).rev() {
            if *size == 0 {
                return true;
            }
            if *size != 1 && *stride != step {
                return false;
            }
            step *= *size as isize;
        }
        true
    }

    /// The address of the first element, which shows whether two tensors share a buffer.
    #[inline]
    pub fn data_ptr(&self) -> *const u8 {
        self.look_behind();
        self.parts.storage.address().wrapping_add(self.parts.offset * self.parts.dtype.itemsize())
    }

    /// Whether the tensor has no elements, as it is on the meta device.
    #[inline]
    pub(crate) fn is_meta(&self) -> bool {
        self.parts.storage.is_meta()
    }

    /// The number of tensors that share this tensor's buffer, including itself.
    pub fn shared(&self) -> usize {
        self.parts.storage.references()
    }

    /// Whether an in-place op can write into the buffer: the tensor is dense and the buffer is not shared, and
    /// on the device of new tensors.
    #[inline]
    pub(crate) fn is_writable(&self) -> bool {
        self.parts.storage.is_unique() && self.is_contiguous() && (self.is_meta() || !is_on_meta())
    }

    #[inline]
    pub(crate) fn ptr(&self) -> *const u8 {
        self.look_behind();
        assert!(!self.is_meta(), "a tensor without elements is not read");
        // SAFETY: the offset of a view is inside the buffer or at its end; `view_as` checks it.
        unsafe { self.parts.storage.data().add(self.parts.offset * self.parts.dtype.itemsize()) }
    }

    /// The first element, for writing.
    ///
    /// # Panics
    /// If the buffer is shared.
    #[inline]
    pub(crate) fn ptr_mut(&mut self) -> *mut u8 {
        self.look_behind();
        assert!(!self.is_meta(), "a tensor without elements is not written");
        // SAFETY: as in `ptr`.
        unsafe { self.parts.storage.data_mut().add(self.parts.offset * self.parts.dtype.itemsize()) }
    }

    #[inline]
    pub(crate) fn offset(&self) -> usize {
        self.parts.offset
    }

    /// The elements, if they are in row-major order in memory.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the dtype is not that of `T`, [`ErrorKind::Value`] if the tensor is not
    /// contiguous.
    #[track_caller]
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.check_elements("as_slice")?;
        self.elements()
    }

    /// Same as [`as_slice`](Self::as_slice), for kernels, which do not run on a meta tensor: it has no
    /// elements.
    #[track_caller]
    pub(crate) fn elements<T: Element>(&self) -> Result<&[T]> {
        self.check_dtype("as_slice", T::DTYPE)?;
        self.check_contiguous()?;
        if self.is_meta() {
            return Ok(&[]);
        }
        // SAFETY: contiguous, so there are `numel` elements of type T, and nobody writes to a shared buffer.
        // They were written before the tensor was made: the contract of `Unwritten`.
        Ok(unsafe { std::slice::from_raw_parts(self.ptr().cast(), self.numel()) })
    }

    /// Same as [`as_slice`](Self::as_slice), for kernels that only move elements.
    #[track_caller]
    pub(crate) fn opaque<U>(&self) -> Result<&[Opaque<U>]> {
        assert_eq!(size_of::<U>(), self.parts.dtype.itemsize(), "elements of this width");
        self.check_contiguous()?;
        if self.is_meta() {
            return Ok(&[]);
        }
        // SAFETY: as in `as_slice`; the type has the size of an element and all patterns of bits.
        Ok(unsafe { std::slice::from_raw_parts(self.ptr().cast(), self.numel()) })
    }

    /// Same as [`as_mut_slice`](Self::as_mut_slice), for kernels that only move elements.
    #[track_caller]
    pub(crate) fn opaque_mut<U>(&mut self) -> Result<&mut [Opaque<U>]> {
        assert_eq!(size_of::<U>(), self.parts.dtype.itemsize(), "elements of this width");
        let numel = self.numel();
        self.make_writable()?;
        // SAFETY: as in `as_mut_slice`; what is written are elements of this dtype.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.ptr_mut().cast(), numel) })
    }

    /// The bytes of the elements, which are contiguous.
    pub(crate) fn bytes(&self) -> &[u8] {
        assert!(self.is_contiguous() && !self.is_meta(), "the bytes of a dense tensor");
        // SAFETY: as in `as_slice`; elements have no padding.
        unsafe { std::slice::from_raw_parts(self.ptr(), self.nbytes()) }
    }

    /// Overwrites the bytes of the elements with what `write` writes, or with a part of it after an error. In a
    /// `bool`, any byte but 0 becomes true.
    #[track_caller]
    pub(crate) fn overwrite(&mut self, write: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
        self.make_writable()?;
        self.check_elements("overwrite")?;
        let nbytes = self.nbytes();
        // SAFETY: unique and contiguous, and every pattern of bits is a number; a `bool` is mended below.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.ptr_mut(), nbytes) };
        let done = write(bytes);
        if self.parts.dtype == DType::Bool {
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        done
    }

    #[track_caller]
    fn check_contiguous(&self) -> Result<()> {
        if self.is_contiguous() {
            return Ok(());
        }
        let (sizes, strides) = (self.sizes(), self.strides());
        let message = format!("the tensor is not contiguous: sizes {sizes:?}, strides {strides:?}");
        Err(Error::new(ErrorKind::Value, "as_slice", message).with_repair("x.contiguous()?"))
    }

    /// Copies the elements if the buffer is shared or the tensor is not contiguous.
    #[track_caller]
    pub(crate) fn make_writable(&mut self) -> Result<()> {
        if !self.is_writable() {
            *self = self.deep_clone()?;
        }
        Ok(())
    }

    /// The elements in row-major order, for writing in place. Copies them first if the buffer is shared or
    /// the tensor is not contiguous.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the dtype is not that of `T`, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    #[inline(never)]
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.check_dtype("as_mut_slice", T::DTYPE)?;
        self.make_writable()?;
        self.check_elements("as_mut_slice")?;
        let numel = self.numel();
        // SAFETY: unique and contiguous, so the elements are ours to write.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.ptr_mut().cast(), numel) })
    }

    #[track_caller]
    fn check_dtype(&self, op: &'static str, dtype: DType) -> Result<()> {
        if self.parts.dtype == dtype {
            return Ok(());
        }
        let message = format!("expected a tensor of {dtype}, found {}", self.parts.dtype);
        Err(Error::about(&[self], ErrorKind::DType, op, message))
    }

    /// A copy of the elements in row-major order. Integers can have another width if they fit, and floats are
    /// rounded. Another kind of number needs a cast: `x.to(DType::I64)?.to_vec::<i64>()?`.
    ///
    /// ```
    /// use namegrad_core::NamedTensor;
    /// let x = NamedTensor::from_slice(&[1.5_f32, 2.0], [2])?;
    /// assert_eq!(x.to_vec::<f64>()?, [1.5, 2.0]);
    /// assert!(x.to_vec::<i32>().is_err());
    /// # Ok::<(), namegrad_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if `T` is another kind of number (bool, integer, float), [`ErrorKind::Value`] if
    /// an integer does not fit in `T`, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    #[inline(never)]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        Ok(self.elements_as(T::DTYPE)?.as_slice::<T>()?.to_vec())
    }

    /// The elements in a dtype of the same kind, contiguous.
    #[track_caller]
    fn elements_as(&self, dtype: DType) -> Result<NamedTensor> {
        const OP: &str = "to_vec";
        self.check_elements(OP)?;
        if self.parts.dtype == dtype && self.is_contiguous() {
            return Ok(self.clone());
        }
        if self.parts.dtype.category() != dtype.category() {
            let message =
                format!("the elements are of {}, another kind of number than {dtype}", self.parts.dtype);
            return Err(Error::about(&[self], ErrorKind::DType, OP, message).with_repair(explicit(dtype, OP)));
        }
        let dense = self.to(dtype)?.contiguous()?;
        if dtype.category() == Category::Integer
            && !dense.to(self.parts.dtype)?.eq(self)?.all(..)?.item::<bool>()?
        {
            let message = format!("an element of {} does not fit in {dtype}", self.parts.dtype);
            return Err(Error::about(&[self], ErrorKind::Value, OP, message)
                .with_repair(format!("x.to_vec::<{}>()?", rust_name(self.parts.dtype))));
        }
        Ok(dense)
    }

    /// The only element, as a number of type `T`; [`Scalar`] accepts all dtypes. An integer must fit, and a
    /// float is rounded. Another kind of number needs a cast: `x.to(DType::I64)?.item::<i64>()?`.
    ///
    /// ```
    /// use namegrad_core::{NamedTensor, Scalar};
    /// let x = NamedTensor::from_slice(&[2.5_f32], [1])?;
    /// let y: f64 = x.item()?;
    /// assert_eq!((y, x.item::<Scalar>()?), (2.5, Scalar::Float(2.5)));
    /// assert!(x.item::<i64>().is_err());
    /// # Ok::<(), namegrad_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if there is not exactly one element, [`ErrorKind::DType`] if `T` is another kind
    /// of number (bool, integer, float), [`ErrorKind::Value`] if an integer does not fit in `T`.
    #[track_caller]
    #[inline(never)]
    pub fn item<T: Number>(&self) -> Result<T> {
        let number = self.only_element()?;
        match T::exactly(number) {
            Some(number) => Ok(number),
            None => Err(self.not_that_number(number, T::NEAREST)),
        }
    }

    #[track_caller]
    fn only_element(&self) -> Result<Scalar> {
        if self.numel() != 1 {
            let message = format!("a Tensor with {} elements cannot be converted to Scalar", self.numel());
            return Err(Error::about(&[self], ErrorKind::Shape, "item", message)
                .with_repair("x.to_vec::<f32>()? for all elements, or x.sum(..)? for one number"));
        }
        self.check_elements("item")?;
        // SAFETY: there is one element.
        Ok(unsafe { self.read(0) })
    }

    /// The element that is `step` elements after the first.
    ///
    /// # Safety
    /// There is one.
    unsafe fn read(&self, step: isize) -> Scalar {
        // SAFETY: the caller's contract; as in `as_slice`.
        dispatch!(self.parts.dtype, T => unsafe { *self.ptr().cast::<T>().offset(step) }.to_scalar())
    }

    #[cold]
    #[track_caller]
    fn not_that_number(&self, number: Scalar, asked: Option<DType>) -> Error {
        const OP: &str = "item";
        let asked = asked.unwrap_or(self.parts.dtype);
        if asked.category() == self.parts.dtype.category() {
            let message = format!("{number} of {} does not fit in {asked}", self.parts.dtype);
            return Error::about(&[self], ErrorKind::Value, OP, message)
                .with_repair(format!("x.item::<{}>()?", rust_name(self.parts.dtype)));
        }
        let message = format!("the element is of {}, another kind of number than {asked}", self.parts.dtype);
        Error::about(&[self], ErrorKind::DType, OP, message).with_repair(explicit(asked, OP))
    }

    /// The element at `index`, which has one index for each dim.
    ///
    /// # Panics
    /// If there is no such element.
    pub(crate) fn at(&self, index: &[usize]) -> Scalar {
        assert!(index.iter().zip(self.sizes()).all(|(i, n)| i < n) && index.len() == self.ndim());
        let step: isize = index.iter().zip(self.strides()).map(|(i, stride)| *i as isize * stride).sum();
        // SAFETY: the index is in bounds, so the element is inside the buffer.
        unsafe { self.read(step) }
    }
}

/// The same call with a cast before it, for a repair.
pub(crate) fn explicit(dtype: DType, method: &str) -> String {
    format!("x.to(DType::{dtype:?})?.{method}::<{}>()?", rust_name(dtype))
}

/// The Rust type of the elements of a dtype.
fn rust_name(dtype: DType) -> String {
    format!("{dtype:?}").to_lowercase()
}

/// Whether all elements of a view are among the first `room` elements of a buffer. An empty view can start at
/// their end.
#[inline]
fn lies_within(room: usize, sizes: &[usize], strides: &[isize], offset: usize) -> bool {
    let (mut low, mut high) = (0isize, 0isize);
    for (size, stride) in sizes.iter().zip(strides) {
        if *size == 0 {
            return offset <= room;
        }
        // If this saturates, the view extends far outside of any buffer.
        let reach = stride.saturating_mul((*size - 1).min(isize::MAX as usize) as isize);
        let side = if reach < 0 { &mut low } else { &mut high };
        *side = side.saturating_add(reach);
    }
    low.unsigned_abs() <= offset && (high as usize) < room.saturating_sub(offset)
}

impl NamedTensor {
    /// Prints the tensor as PyTorch does, followed by `more`, such as `grad_fn=<mul>`.
    pub fn write(&self, f: &mut std::fmt::Formatter<'_>, more: &[&str]) -> std::fmt::Result {
        use crate::fmt::{PrintedElement as Shown, without_elements, write_tensor};
        let get = |index: &[usize]| match self.at(index) {
            Scalar::Float(value) => Shown::Float(value),
            Scalar::Int(value) => Shown::Int(value),
            Scalar::Bool(value) => Shown::Bool(value),
        };
        let default = [DType::I64, DType::Bool, crate::default_dtype()].contains(&self.parts.dtype);
        let empty = self.numel() == 0 && self.parts.dtype != crate::default_dtype();
        let dtype = (!default || empty).then(|| format!("dtype=torch.{}", self.parts.dtype));
        let names = self.has_names().then(|| format!("names={}", self.parts.names.tuple(self.ndim())));
        let suffixes: Vec<&str> =
            crate::list(dtype.as_deref().into_iter().chain(more.iter().copied()).chain(names.as_deref()));
        if self.is_meta() {
            return f.write_str(&without_elements(self.sizes(), &suffixes));
        }
        write_tensor(f, self.sizes(), &get, &suffixes)
    }
}

/// Allows lists of tensors or of references to them.
impl AsRef<NamedTensor> for NamedTensor {
    fn as_ref(&self) -> &NamedTensor {
        self
    }
}

impl std::fmt::Display for NamedTensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.write(f, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_lie_within_their_buffer() {
        let inside = |sizes: &[usize], strides: &[isize], offset| lies_within(12, sizes, strides, offset);
        assert!(
            inside(&[3, 4], &[4, 1], 0) && inside(&[3, 4], &[-4, -1], 11) && inside(&[9, 12], &[0, 1], 0)
        );
        assert!(inside(&[], &[], 11) && inside(&[0, 100], &[1, 1], 12));
        assert!(
            !inside(&[3, 4], &[4, 1], 1) && !inside(&[3, 4], &[4, 2], 0) && !inside(&[3, 4], &[-4, 1], 7)
        );
        assert!(!inside(&[], &[], 12) && !inside(&[0], &[1], 13));
        assert!(!inside(&[3, 3], &[isize::MAX, isize::MAX], 0) && !inside(&[usize::MAX], &[-2], 11));
    }

    #[test]
    #[should_panic = "outside of the buffer"]
    fn a_wrong_stride_is_found() {
        let x = NamedTensor::from_slice(&[0.0f64; 512], [512]).unwrap();
        x.view_as(Sizes::from_slice(&[512]), Strides::from_slice(&[2]), 0, Names::none());
    }
}
