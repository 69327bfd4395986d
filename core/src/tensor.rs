//! [`NamedTensor`]: a plain value of dtype, sizes, strides, names and a shared buffer. Views never copy; writing copies when somebody
//! else holds the buffer.

use crate::dtype::{DType, Element, Scalar, default_dtype, dispatch};
use crate::error::{Error, ErrorKind, Extents, Result};
use crate::layout::Layout;
use crate::names::rules::Input;
use crate::names::{Name, Names};
use crate::shape::{IntoShape, Shape, Sizes, Strides, checked_numel};
use crate::storage::Storage;
use std::borrow::Cow;

/// A tensor as a value, without gradients: what `namegrad::Tensor` holds.
///
/// A clone is a reference to the same buffer; an in-place op writes into the buffer when nobody else holds it and into a copy when somebody
/// does. So two values never change each other.
#[derive(Clone)]
pub struct NamedTensor {
    storage: Storage,
    layout: Layout,
    names: Names,
    offset: usize,
    dtype: DType,
    is_number: bool,
}

/// Up to this size a tensor is moved in registers; most ops of small tensors would otherwise be spent on moving results.
const _: () = assert!(size_of::<NamedTensor>() <= 128);

impl NamedTensor {
    /// A dense tensor over a buffer that has room for it.
    #[inline]
    pub(crate) fn from_parts(storage: Storage, dtype: DType, sizes: &[usize], names: Names) -> NamedTensor {
        NamedTensor { storage, layout: Layout::contiguous(sizes), names, offset: 0, dtype, is_number: false }
    }

    /// Another view of the same buffer. Every element of it must lie inside.
    #[inline]
    pub(crate) fn view_as(&self, sizes: Sizes, strides: Strides, offset: usize, names: Names) -> NamedTensor {
        let (storage, layout) = (self.storage.clone(), Layout::new(&sizes, &strides));
        NamedTensor { storage, layout, names, offset, dtype: self.dtype, is_number: false }
    }

    /// The same tensor with other names; as many as dims, or none.
    #[inline]
    pub fn with_names(mut self, names: Names) -> NamedTensor {
        debug_assert!(!names.is_named() || names.iter(self.ndim()).len() == self.ndim());
        self.names = names;
        self
    }

    #[inline]
    pub(crate) fn set_names(&mut self, names: Names) {
        self.names = names;
    }

    /// The same values without names: what the tape computes with.
    #[inline]
    pub fn unnamed(&self) -> NamedTensor {
        let NamedTensor { storage, layout, offset, dtype, is_number, .. } = self;
        NamedTensor {
            storage: storage.clone(),
            layout: layout.clone(),
            names: Names::none(),
            offset: *offset,
            dtype: *dtype,
            is_number: *is_number,
        }
    }

    /// A 0-d tensor that stands for a plain number beside tensors: it does not widen their dtype within its category.
    #[track_caller]
    pub fn number(value: impl Into<Scalar>) -> Result<NamedTensor> {
        let value = value.into();
        let mut number = NamedTensor::filled(
            "scalar",
            Shape { sizes: Sizes::new(), names: Names::none() },
            value.dtype(),
            value,
        )?;
        number.is_number = true;
        Ok(number)
    }

    /// As [`number`](Self::number), beside a tensor of `dtype`: beside `f64` a float keeps all of its digits.
    #[track_caller]
    pub fn number_beside(value: impl Into<Scalar>, dtype: DType) -> Result<NamedTensor> {
        let value = value.into();
        let Scalar::Float(_) = value else { return NamedTensor::number(value) };
        let own = if dtype == DType::F64 { DType::F64 } else { value.dtype() };
        let shape = Shape { sizes: Sizes::new(), names: Names::none() };
        let mut number = NamedTensor::filled("scalar", shape, own, value)?;
        number.is_number = true;
        Ok(number)
    }

    /// Does this stand for a plain number?
    #[inline]
    pub fn is_number(&self) -> bool {
        self.is_number
    }

    /// A dense tensor of one value.
    #[track_caller]
    pub(crate) fn filled(op: &'static str, shape: Shape, dtype: DType, value: Scalar) -> Result<NamedTensor> {
        let numel = checked_numel(op, &shape.sizes, dtype.itemsize())?;
        if value.to_f64() == 0.0 && value.to_f64().is_sign_positive() {
            let storage = Storage::zeroed(op, numel * dtype.itemsize())?;
            return Ok(NamedTensor::from_parts(storage, dtype, &shape.sizes, shape.names));
        }
        let mut out = NamedTensor::uninit(op, shape, dtype)?;
        dispatch!(dtype, T => {
            // SAFETY: a fresh dense buffer of `numel` elements, written as a whole.
            unsafe { out.uninit_mut::<T>().iter_mut().for_each(|element| { element.write(T::from_scalar(value)); }) }
        });
        Ok(out)
    }

    /// A dense tensor whose elements are not written yet: for kernels that write all of them.
    #[inline]
    #[track_caller]
    pub(crate) fn uninit(op: &'static str, shape: Shape, dtype: DType) -> Result<NamedTensor> {
        NamedTensor::unwritten(op, &shape.sizes, shape.names, dtype)
    }

    /// [`uninit`](Self::uninit) from parts of a shape.
    #[inline]
    #[track_caller]
    pub(crate) fn unwritten(
        op: &'static str,
        sizes: &[usize],
        names: Names,
        dtype: DType,
    ) -> Result<NamedTensor> {
        let numel = checked_numel(op, sizes, dtype.itemsize())?;
        let storage = Storage::uninit(op, numel * dtype.itemsize())?;
        Ok(NamedTensor::from_parts(storage, dtype, sizes, names))
    }

    /// A dense tensor of the same sizes and names, whose elements are not written yet.
    #[inline]
    #[track_caller]
    pub(crate) fn unwritten_like(&self, op: &'static str, dtype: DType) -> Result<NamedTensor> {
        NamedTensor::unwritten(op, self.sizes(), self.names.clone(), dtype)
    }

    /// Same dtype, sizes and names, so that an op by element has nothing to find out. `false` says nothing if there are many dims.
    #[inline]
    pub(crate) fn is_like(&self, other: &NamedTensor) -> bool {
        self.dtype == other.dtype && self.layout.has_sizes_of(&other.layout) && self.names == other.names
    }

    /// The tensor in the dtype that its loops compute in: half types become `f32`.
    #[inline]
    #[track_caller]
    pub(crate) fn widened(&self) -> Result<Cow<'_, NamedTensor>> {
        self.cast(self.dtype.compute())
    }

    /// The tensor in `dtype`, which costs nothing if it has it.
    #[inline]
    #[track_caller]
    pub(crate) fn cast(&self, dtype: DType) -> Result<Cow<'_, NamedTensor>> {
        Ok(if self.dtype == dtype { Cow::Borrowed(self) } else { Cow::Owned(self.to(dtype)?) })
    }

    /// [`to`](Self::to) for a tensor that is not needed any more.
    #[inline]
    #[track_caller]
    pub(crate) fn into_dtype(self, dtype: DType) -> Result<NamedTensor> {
        if self.dtype == dtype { Ok(self) } else { self.to(dtype) }
    }

    /// The elements of a fresh dense tensor, to be written.
    ///
    /// # Safety
    /// The tensor comes from [`NamedTensor::uninit`] with the dtype of `T`, and is not shared.
    #[inline]
    pub(crate) unsafe fn uninit_mut<T: Element>(&mut self) -> &mut [std::mem::MaybeUninit<T>] {
        debug_assert!(self.dtype == T::DTYPE && self.offset == 0 && self.is_contiguous());
        let numel = self.numel();
        // SAFETY: the buffer has room for `numel` elements, is aligned to 64 bytes and held by this tensor alone.
        unsafe { std::slice::from_raw_parts_mut(self.storage.data_mut().cast(), numel) }
    }

    /// The elements of a fresh dense tensor, for a kernel that writes each before it reads it.
    ///
    /// # Safety
    /// That of [`NamedTensor::uninit_mut`]; no element is read before it is written.
    #[inline]
    pub(crate) unsafe fn unwritten_mut<T: Element>(&mut self) -> &mut [T] {
        // SAFETY: the caller's contract; an element of memory that is not read may hold anything.
        unsafe {
            let slots = self.uninit_mut::<T>();
            std::slice::from_raw_parts_mut(slots.as_mut_ptr().cast(), slots.len())
        }
    }

    /// A tensor of these elements in row-major order.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if there are more or fewer elements than the shape has; the errors of the shape.
    #[track_caller]
    pub fn from_slice<T: Element>(data: &[T], shape: impl IntoShape) -> Result<NamedTensor> {
        let shape = shape.into_shape()?;
        let numel = checked_numel("from_slice", &shape.sizes, size_of::<T>())?;
        if numel != data.len() {
            let message =
                format!("{} elements do not fill sizes {:?}, which have {numel}", data.len(), shape.sizes);
            return Err(Error::new(ErrorKind::Shape, "from_slice", message));
        }
        let mut out = NamedTensor::uninit("from_slice", shape, T::DTYPE)?;
        // SAFETY: fresh, of dtype T, and written as a whole.
        let slots = unsafe { out.uninit_mut::<T>() };
        for (slot, value) in slots.iter_mut().zip(data) {
            slot.write(*value);
        }
        Ok(out)
    }

    /// The dtype.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The number of dims.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.sizes().len()
    }

    /// The sizes, outermost first.
    #[inline]
    pub fn sizes(&self) -> &[usize] {
        self.layout.sizes()
    }

    /// The size of `dim`; of the one dim that a 0-d tensor counts as, 1.
    #[inline]
    pub(crate) fn length_of(&self, dim: usize) -> usize {
        self.sizes().get(dim).copied().unwrap_or(1)
    }

    /// The error of an op that takes floats only, unless these are.
    #[doc(hidden)]
    #[track_caller]
    pub fn check_float(&self, op: &'static str) -> Result<()> {
        if self.dtype().is_floating_point() {
            return Ok(());
        }
        let message = format!("not implemented for {}; it takes floating point dtypes", self.dtype());
        Err(Error::new(ErrorKind::DType, op, message)
            .with_operands([self.extents()])
            .with_repair(format!("x.to({:?})?", default_dtype())))
    }

    /// The error of an op that makes no sense on `bool`.
    #[track_caller]
    pub(crate) fn check_not_bool(&self, op: &'static str) -> Result<()> {
        if self.dtype() != DType::Bool {
            return Ok(());
        }
        let message = "not implemented for bool; it takes the integers and floats";
        Err(Error::new(ErrorKind::DType, op, message)
            .with_operands([self.extents()])
            .with_repair(format!("x.to({:?})?", DType::U8)))
    }

    /// The step in elements between neighbours along each dim; negative after a flip, zero where a dim is expanded.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        self.layout.strides()
    }

    /// The names.
    #[inline]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Is any dim named?
    #[inline]
    pub fn has_names(&self) -> bool {
        self.names.is_named()
    }

    /// The name of dim `dim`, if it has one.
    #[inline]
    pub fn name(&self, dim: usize) -> Option<Name> {
        self.names.get(dim)
    }

    /// The number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.sizes().iter().product()
    }

    /// Bytes of all elements.
    #[inline]
    pub fn nbytes(&self) -> usize {
        self.numel() * self.dtype.itemsize()
    }

    /// Sizes with names, as errors show them.
    pub fn extents(&self) -> Extents {
        Extents { sizes: self.sizes().to_vec(), names: self.names.clone() }
    }

    /// Sizes and names, to make another tensor like this one.
    pub fn shape(&self) -> Shape {
        Shape { sizes: Sizes::from_slice(self.sizes()), names: self.names.clone() }
    }

    /// The tensor as the name rules see it.
    #[inline]
    pub fn input(&self) -> Input<'_> {
        Input { names: &self.names, sizes: self.sizes() }
    }

    /// Do the elements stand in row-major order without gaps?
    #[inline]
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

    /// The address of the first element, to see whether two tensors share a buffer.
    pub fn data_ptr(&self) -> *const u8 {
        self.ptr()
    }

    /// The number of tensors that hold the buffer of this one, itself counted.
    pub fn shared(&self) -> usize {
        self.storage.references()
    }

    /// May an in-place op write into the buffer: dense, and held by nobody else?
    #[inline]
    pub(crate) fn is_writable(&self) -> bool {
        self.storage.is_unique() && self.is_contiguous()
    }

    #[inline]
    pub(crate) fn ptr(&self) -> *const u8 {
        // SAFETY: the offset of a view lies inside the buffer, or at its end when it is empty.
        unsafe { self.storage.data().add(self.offset * self.dtype.itemsize()) }
    }

    /// The first element, to be written; only where [`is_writable`](Self::is_writable) holds.
    #[inline]
    pub(crate) fn ptr_mut(&mut self) -> *mut u8 {
        debug_assert!(self.storage.is_unique());
        // SAFETY: as in `ptr`.
        unsafe { self.storage.data_mut().add(self.offset * self.dtype.itemsize()) }
    }

    #[inline]
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// The elements in row-major order, if they stand so in memory.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the dtype is not that of `T`, [`ErrorKind::Value`] if the tensor is not contiguous.
    #[track_caller]
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.check_dtype::<T>("as_slice")?;
        if !self.is_contiguous() {
            let message = format!(
                "the tensor is not contiguous: sizes {:?}, strides {:?}",
                self.sizes(),
                self.strides()
            );
            return Err(
                Error::new(ErrorKind::Value, "as_slice", message).with_repair("x.contiguous()?.as_slice()")
            );
        }
        // SAFETY: contiguous, so `numel` elements of dtype T stand there, written, and nobody writes to a shared buffer.
        Ok(unsafe { std::slice::from_raw_parts(self.ptr().cast(), self.numel()) })
    }

    /// The elements in row-major order, to be written in place. Copies first when somebody else holds the buffer or the tensor is not
    /// contiguous.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the dtype is not that of `T`, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.check_dtype::<T>("as_mut_slice")?;
        if !self.is_writable() {
            *self = self.deep_clone()?;
        }
        let numel = self.numel();
        // SAFETY: unique and contiguous, so the elements are ours to write.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.ptr_mut().cast(), numel) })
    }

    #[track_caller]
    fn check_dtype<T: Element>(&self, op: &'static str) -> Result<()> {
        if self.dtype == T::DTYPE {
            return Ok(());
        }
        let message = format!("expected a tensor of {}, found {}", T::DTYPE, self.dtype);
        Err(Error::new(ErrorKind::DType, op, message).with_operands([self.extents()]))
    }

    /// The elements in row-major order, copied and cast to `T`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let dense = self.to(T::DTYPE)?.contiguous()?;
        Ok(dense.as_slice::<T>()?.to_vec())
    }

    /// The only element, as a plain number.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if there is not exactly one.
    #[track_caller]
    pub fn item(&self) -> Result<Scalar> {
        if self.numel() != 1 {
            let message = format!("a Tensor with {} elements cannot be converted to Scalar", self.numel());
            return Err(Error::new(ErrorKind::Shape, "item", message).with_operands([self.extents()]));
        }
        // SAFETY: there is one element, and it is at `ptr`.
        Ok(dispatch!(self.dtype, T => unsafe { self.ptr().cast::<T>().read() }.to_scalar()))
    }

    /// The element at `index`, one index a dim.
    pub(crate) fn at(&self, index: &[usize]) -> Scalar {
        debug_assert!(index.iter().zip(self.sizes()).all(|(i, n)| i < n) && index.len() == self.ndim());
        let step: isize = index.iter().zip(self.strides()).map(|(i, stride)| *i as isize * stride).sum();
        // SAFETY: the index is inside, so the element is inside the buffer.
        dispatch!(self.dtype, T => unsafe { self.ptr().cast::<T>().offset(step).read() }.to_scalar())
    }
}

impl NamedTensor {
    /// Prints the tensor as PyTorch does, followed by `more`, such as `grad_fn=<mul>`.
    pub fn write(&self, f: &mut std::fmt::Formatter<'_>, more: &[&str]) -> std::fmt::Result {
        use crate::fmt::{Element as Shown, write_tensor};
        let get = |index: &[usize]| match self.at(index) {
            Scalar::Float(value) => Shown::Float(value),
            Scalar::Int(value) => Shown::Int(value),
            Scalar::Bool(value) => Shown::Bool(value),
        };
        let default = [DType::I64, DType::Bool, crate::default_dtype()].contains(&self.dtype);
        let empty = self.numel() == 0 && self.dtype != crate::default_dtype();
        let dtype = (!default || empty).then(|| format!("dtype=torch.{}", self.dtype));
        let names = self.has_names().then(|| format!("names={}", self.names.tuple(self.ndim())));
        let suffixes: Vec<&str> =
            dtype.as_deref().into_iter().chain(more.iter().copied()).chain(names.as_deref()).collect();
        write_tensor(f, self.sizes(), &get, &suffixes)
    }
}

impl std::fmt::Display for NamedTensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.write(f, &[])
    }
}

impl std::fmt::Debug for NamedTensor {
    /// The dtype and the dims alone: `f32[N=32, C=3]`; a tensor in a message must not fill the screen.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.dtype, self.extents())
    }
}
