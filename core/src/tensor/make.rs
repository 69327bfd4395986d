//! Creates tensors: from a number, and of memory that a kernel writes.

use super::NamedTensor;
use crate::cpu::fill;
use crate::cpu::room::{self, Room};
use crate::cpu::storage::Storage;
use crate::device::is_on_meta;
use crate::dtype::{DType, Element, Opaque, Scalar, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::names::Names;
use crate::shape::Shape;
use crate::sizes::checked_numel;
use crate::tensor::range::{does_not_fit, fits};

impl NamedTensor {
    /// A 0-d tensor that represents a plain number in ops with tensors; it does not widen their dtype within
    /// its category.
    #[track_caller]
    pub fn number(value: impl Into<Scalar>) -> Result<NamedTensor> {
        let value = value.into();
        NamedTensor::number_as(value, value.dtype())
    }

    /// Like [`number`](Self::number), for an op with a tensor of `dtype`: with `f64`, a float keeps all of
    /// its digits.
    #[track_caller]
    pub fn number_beside(value: impl Into<Scalar>, dtype: DType) -> Result<NamedTensor> {
        let value = value.into();
        let keeps_digits = dtype == DType::F64 && matches!(value, Scalar::Float(_));
        NamedTensor::number_as(value, if keeps_digits { dtype } else { value.dtype() })
    }

    #[track_caller]
    fn number_as(value: Scalar, dtype: DType) -> Result<NamedTensor> {
        // A number is made for every `x + 1.0`: its memory is written before there is a tensor to be moved.
        let Some(mut storage) = Storage::new(dtype.itemsize()) else {
            return Err(out_of_memory("scalar", dtype.itemsize()));
        };
        // SAFETY: the buffer is fresh and has room for one element of the dtype.
        dispatch!(dtype, T => unsafe { storage.data_mut().cast::<T>().write(T::from_scalar(value)) });
        // SAFETY: the buffer holds the only element.
        let mut number = unsafe { NamedTensor::from_parts(storage, dtype, &[], Names::none()) };
        number.parts.is_number = true;
        Ok(number)
    }

    /// A meta tensor with the strides of this one, over a buffer for the elements from the first to the last in
    /// memory.
    #[track_caller]
    pub(crate) fn without_elements(&self, op: &'static str) -> Result<NamedTensor> {
        let (mut below, mut above) = (0, 0);
        for (size, stride) in self.sizes().iter().zip(self.strides()) {
            let reach = stride * (*size as isize - 1);
            if reach < 0 { below -= reach } else { above += reach }
        }
        let count = if self.numel() == 0 { 0 } else { (below + above) as usize + 1 };
        let bytes = count * self.parts.dtype.itemsize();
        let Some(storage) = Storage::meta(bytes) else { return Err(out_of_memory(op, bytes)) };
        let mut meta = self.clone();
        (meta.parts.storage, meta.parts.offset) = (storage, below as usize);
        Ok(meta)
    }

    /// A dense tensor whose elements all have one value.
    #[track_caller]
    pub(crate) fn filled(op: &'static str, shape: Shape, dtype: DType, value: Scalar) -> Result<NamedTensor> {
        if !fits(value, dtype) {
            return Err(does_not_fit(op, None, value, dtype));
        }
        let numel = checked_numel(op, &shape.sizes, dtype.itemsize())?;
        if value.to_f64() == 0.0 && value.to_f64().is_sign_positive() {
            let bytes = numel * dtype.itemsize();
            let Some(storage) = memory(bytes, Storage::zeroed) else {
                return Err(out_of_memory_for(op, &shape.sizes, dtype));
            };
            // SAFETY: the buffer has that many bytes, all zero, or none.
            return Ok(unsafe { NamedTensor::from_parts(storage, dtype, &shape.sizes, shape.names) });
        }
        let element = NamedTensor::number_as(value, dtype)?;
        let out = Unwritten::new(op, shape, dtype)?;
        dispatch!(dtype, width U => out.write_moved(&element, |element: &[Opaque<U>], y| fill::all(element[0], y)))
    }

    /// A dense tensor with the sizes and names of this one, of elements that `write` writes. It is made after
    /// them, and so in its place: moving it takes as long as an op on a few numbers.
    ///
    /// # Safety
    /// `write` writes as many elements of `dtype` as this tensor has.
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn like(
        &self,
        op: &'static str,
        dtype: DType,
        write: impl FnOnce(*mut u8),
    ) -> Result<NamedTensor> {
        // An element of `dtype` can be larger than that of this tensor.
        let bytes = self.numel().saturating_mul(dtype.itemsize());
        let Some(mut storage) = memory(bytes, Storage::new) else { return Err(out_of_memory(op, bytes)) };
        if !storage.is_meta() {
            write(storage.data_mut());
        }
        // SAFETY: the buffer has that many bytes, or none, and the caller's contract.
        Ok(unsafe { NamedTensor::from_parts(storage, dtype, self.sizes(), self.parts.names.clone()) })
    }

    /// A dense tensor with these elements.
    #[track_caller]
    pub(crate) fn of_elements<T: Element>(op: &'static str, data: &[T], shape: Shape) -> Result<NamedTensor> {
        // SAFETY: the bytes of that many elements.
        unsafe { NamedTensor::copied(op, shape, T::DTYPE, data.len(), data.as_ptr().cast()) }
    }

    /// A dense tensor of these numbers, cast to `dtype`.
    #[track_caller]
    pub(crate) fn of_numbers(
        op: &'static str,
        numbers: &[Scalar],
        shape: Shape,
        dtype: DType,
    ) -> Result<NamedTensor> {
        check_numel(op, &shape, dtype, numbers.len())?;
        let out = Unwritten::new(op, shape, dtype.wide())?;
        dispatch!(dtype.wide(), wide T => out.write::<T>(|y| fill::cast(numbers, y))).into_dtype(dtype)
    }

    /// [`of_elements`](Self::of_elements), compiled once for all types.
    ///
    /// # Safety
    /// There are `len` elements of `dtype` at `data`.
    #[track_caller]
    unsafe fn copied(
        op: &'static str,
        shape: Shape,
        dtype: DType,
        len: usize,
        data: *const u8,
    ) -> Result<NamedTensor> {
        check_numel(op, &shape, dtype, len)?;
        let out = Unwritten::new(op, shape, dtype)?;
        // SAFETY: the elements of `out`, which is new, are as many and of this dtype.
        Ok(unsafe { out.write_at(|to| to.copy_from_nonoverlapping(data, len * dtype.itemsize())) })
    }
}

/// The storage of a new tensor, which is made without data on the meta device.
#[inline]
fn memory(bytes: usize, make: fn(usize) -> Option<Storage>) -> Option<Storage> {
    if is_on_meta() { Storage::meta(bytes) } else { make(bytes) }
}

/// Returns an error unless the shape has `len` elements.
#[track_caller]
fn check_numel(op: &'static str, shape: &Shape, dtype: DType, len: usize) -> Result<()> {
    let numel = checked_numel(op, &shape.sizes, dtype.itemsize())?;
    if numel == len {
        return Ok(());
    }
    let message = format!("{len} elements do not fill sizes {:?}, which have {numel}", shape.sizes);
    Err(Error::new(ErrorKind::Shape, op, message))
}

/// The memory of a dense tensor that a kernel has yet to write. Nothing can read it; what the kernel writes
/// becomes the tensor.
pub(crate) struct Unwritten(NamedTensor);

impl Unwritten {
    /// Memory for the elements of a shape.
    #[inline]
    #[track_caller]
    pub(crate) fn new(op: &'static str, shape: Shape, dtype: DType) -> Result<Unwritten> {
        Unwritten::of(op, &shape.sizes, shape.names, dtype)
    }

    /// Memory for as many elements as `x` has, with its sizes and names.
    #[inline]
    #[track_caller]
    pub(crate) fn like(op: &'static str, x: &NamedTensor, dtype: DType) -> Result<Unwritten> {
        Unwritten::of(op, x.sizes(), x.parts.names.clone(), dtype)
    }

    /// Memory for elements of these sizes.
    #[inline(never)]
    #[track_caller]
    pub(crate) fn of(op: &'static str, sizes: &[usize], names: Names, dtype: DType) -> Result<Unwritten> {
        let numel = checked_numel(op, sizes, dtype.itemsize())?;
        let bytes = numel * dtype.itemsize();
        let Some(storage) = memory(bytes, Storage::new) else { return Err(out_of_memory(op, bytes)) };
        // SAFETY: the buffer has that many bytes, and nothing reads them until they are written; or it has
        // none.
        Ok(Unwritten(unsafe { NamedTensor::from_parts(storage, dtype, sizes, names) }))
    }

    /// Whether no kernel writes the elements, as there are none.
    #[inline]
    pub(crate) fn is_meta(&self) -> bool {
        self.0.is_meta()
    }

    /// The tensor of memory on the meta device.
    ///
    /// # Panics
    /// If there are elements to write.
    pub(crate) fn without_elements(self) -> NamedTensor {
        assert!(self.is_meta(), "elements are written");
        self.0
    }

    /// The address of the elements.
    #[inline]
    pub(crate) fn ptr_mut(&mut self) -> *mut u8 {
        self.0.ptr_mut()
    }

    /// The tensor.
    ///
    /// # Safety
    /// All elements are written, in the dtype.
    #[inline]
    pub(crate) unsafe fn written(self) -> NamedTensor {
        self.0
    }

    /// The tensor of what `write` writes from an address on.
    ///
    /// # Safety
    /// `write` writes all elements, in the dtype.
    #[inline]
    pub(crate) unsafe fn write_at(mut self, write: impl FnOnce(*mut u8)) -> NamedTensor {
        if !self.is_meta() {
            write(self.ptr_mut());
        }
        self.0
    }

    /// The tensor of what a kernel writes.
    ///
    /// # Panics
    /// If the dtype is not that of `T`, or if the kernel returns anything but its room.
    #[inline]
    pub(crate) fn write<T: Element>(mut self, kernel: impl FnOnce(&mut Room<T>) -> &mut [T]) -> NamedTensor {
        if !self.is_meta() {
            self.fill_with(kernel);
        }
        self.0
    }

    /// Has a kernel write all elements.
    #[inline]
    fn fill_with<T: Element>(&mut self, kernel: impl FnOnce(&mut Room<T>) -> &mut [T]) {
        let room = self.room::<T>();
        let place = (room.as_ptr(), room.len());
        room::check_is(place, kernel(room));
    }

    /// [`write`](Self::write) from the elements of `x`.
    ///
    /// # Errors
    /// Those of [`as_slice`](NamedTensor::as_slice).
    #[inline]
    #[track_caller]
    pub(crate) fn write_from<S: Element, T: Element>(
        self,
        x: &NamedTensor,
        kernel: impl for<'a> FnOnce(&[S], &'a mut Room<T>) -> &'a mut [T],
    ) -> Result<NamedTensor> {
        let x = x.elements()?;
        Ok(self.write(|y| kernel(x, y)))
    }

    /// The tensor of the elements of `x` that a kernel moves.
    ///
    /// # Panics
    /// If `x` has another dtype, or as [`write`](Self::write).
    ///
    /// # Errors
    /// Those of [`as_slice`](NamedTensor::as_slice).
    #[inline]
    #[track_caller]
    pub(crate) fn write_moved<U>(
        self,
        x: &NamedTensor,
        kernel: impl for<'a> FnOnce(&[Opaque<U>], &'a mut Room<Opaque<U>>) -> &'a mut [Opaque<U>],
    ) -> Result<NamedTensor> {
        assert!(x.parts.dtype == self.0.parts.dtype, "elements are moved within a dtype");
        let x = x.opaque::<U>()?;
        self.try_write_moved(|y| Ok(kernel(x, y)))
    }

    /// Same as [`write_moved`](Self::write_moved), for a kernel that can fail. It takes the elements from
    /// tensors of this dtype.
    ///
    /// # Errors
    /// Those of the kernel.
    #[inline]
    pub(crate) fn try_write_moved<U>(
        mut self,
        kernel: impl for<'a> FnOnce(&'a mut Room<Opaque<U>>) -> Result<&'a mut [Opaque<U>]>,
    ) -> Result<NamedTensor> {
        if self.is_meta() {
            return Ok(self.0);
        }
        let (elements, numel) = self.elements(size_of::<U>());
        // SAFETY: as in `room`; an `Opaque` has the size of an element.
        let room: &mut Room<Opaque<U>> = unsafe { std::slice::from_raw_parts_mut(elements.cast(), numel) };
        let place = (room.as_ptr(), room.len());
        room::check_is(place, kernel(room)?);
        Ok(self.0)
    }

    /// The tensors of what a kernel of several results writes.
    ///
    /// # Panics
    /// As [`write`](Self::write).
    #[inline]
    pub(crate) fn write_all<T: Element, const N: usize>(
        all: [Unwritten; N],
        kernel: impl for<'a> FnOnce([&'a mut Room<T>; N]) -> [&'a mut [T]; N],
    ) -> [NamedTensor; N] {
        let made = Unwritten::try_write_all(all, |rooms| Ok(kernel(rooms)));
        made.unwrap_or_else(|_| unreachable!("the kernel cannot fail"))
    }

    /// Same as [`write_all`](Self::write_all), for a kernel that can fail.
    ///
    /// # Errors
    /// Those of the kernel.
    #[inline]
    pub(crate) fn try_write_all<T: Element, const N: usize>(
        mut all: [Unwritten; N],
        kernel: impl for<'a> FnOnce([&'a mut Room<T>; N]) -> Result<[&'a mut [T]; N]>,
    ) -> Result<[NamedTensor; N]> {
        if all.iter().any(Unwritten::is_meta) {
            return Ok(all.map(|Unwritten(tensor)| tensor));
        }
        let rooms = all.each_mut().map(Unwritten::room::<T>);
        let mut places = [(std::ptr::null(), 0); N];
        for at in 0..N {
            places[at] = (rooms[at].as_ptr(), rooms[at].len());
        }
        let done = kernel(rooms)?;
        for at in 0..N {
            room::check_is(places[at], &*done[at]);
        }
        Ok(all.map(|Unwritten(tensor)| tensor))
    }

    /// The elements, to be written.
    #[inline]
    fn room<T: Element>(&mut self) -> &mut Room<T> {
        let (elements, numel) = self.elements_of(T::DTYPE);
        // SAFETY: the buffer is dense, held by nobody else and has that many elements, which may be
        // uninitialized.
        unsafe { std::slice::from_raw_parts_mut(elements.cast(), numel) }
    }

    /// The elements, which must be of this dtype, and their number.
    fn elements_of(&mut self, dtype: DType) -> (*mut u8, usize) {
        assert!(self.0.parts.dtype == dtype, "memory for {} and a kernel of {dtype}", self.0.parts.dtype);
        (self.0.ptr_mut(), self.0.numel())
    }

    /// The elements, which must have this size, and their number.
    fn elements(&mut self, itemsize: usize) -> (*mut u8, usize) {
        assert_eq!(itemsize, self.0.parts.dtype.itemsize(), "elements of this width");
        (self.0.ptr_mut(), self.0.numel())
    }
}

impl NamedTensor {
    /// Returns an error if there is no memory for a list of `count` entries of `size` bytes, whose allocation
    /// would abort the program. Lists of meta tensors take no such memory.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[doc(hidden)]
    #[track_caller]
    pub fn check_room(op: &'static str, count: usize, size: usize) -> Result<()> {
        const SMALL: usize = 1 << 28;
        let bytes = count.saturating_mul(size);
        let mut room: Vec<u8> = Vec::new();
        if bytes <= SMALL || is_on_meta() || std::hint::black_box(&mut room).try_reserve_exact(bytes).is_ok()
        {
            return Ok(());
        }
        Err(out_of_memory(op, bytes))
    }
}

#[cold]
#[track_caller]
fn out_of_memory(op: &'static str, bytes: usize) -> Error {
    Error::new(ErrorKind::OutOfMemory, op, format!("out of memory: {} requested", in_units(bytes)))
}

/// [`out_of_memory`], with the sizes and the dtype of the tensor.
#[cold]
#[track_caller]
fn out_of_memory_for(op: &'static str, sizes: &[usize], dtype: DType) -> Error {
    let bytes = crate::layout::product(sizes) * dtype.itemsize(); // which was checked before
    let message = format!("out of memory: {} for sizes {sizes:?} of {dtype}", in_units(bytes));
    Error::new(ErrorKind::OutOfMemory, op, message)
}

/// A number of bytes as people read it: `4 GiB`, `1.5 MiB`.
#[cold]
fn in_units(bytes: usize) -> String {
    let mut size = bytes as f64;
    let mut unit = "bytes";
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, larger);
    }
    let rounded = (size * 10.0).round() / 10.0;
    format!("{rounded} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Sizes;

    fn unwritten(n: usize, dtype: DType) -> Unwritten {
        let shape = Shape { sizes: Sizes::from_slice(&[n]), names: Names::none() };
        Unwritten::new("test", shape, dtype).unwrap()
    }

    #[test]
    fn what_a_kernel_writes_becomes_the_tensor() {
        drop(NamedTensor::from_slice(&[7u8; 300], [300]).unwrap());
        let x = unwritten(300, DType::Bool).write(|y| room::write_each(y, |i| i % 2 == 0));
        assert!(x.as_slice::<bool>().unwrap().iter().enumerate().all(|(i, x)| *x == (i % 2 == 0)));
        let [a, b] =
            Unwritten::write_all::<i64, 2>([unwritten(3, DType::I64), unwritten(0, DType::I64)], |[a, b]| {
                [room::fill(a, 5), room::fill(b, 6)]
            });
        assert_eq!((a.to_vec::<i64>().unwrap(), b.numel()), (vec![5; 3], 0));
        let failed = unwritten(3, DType::I64)
            .try_write_moved::<u64>(|_| Err(crate::Error::new(crate::ErrorKind::Value, "test", "no")));
        assert!(failed.is_err());
    }

    #[test]
    #[should_panic(expected = "the room that it was given")]
    fn a_kernel_cannot_leave_a_part_out() {
        unwritten(4, DType::I64).write::<i64>(|y| room::fill(&mut y[..3], 1));
    }

    #[test]
    #[should_panic(expected = "memory for float32 and a kernel of int64")]
    fn a_kernel_writes_its_own_dtype() {
        unwritten(4, DType::F32).write::<i64>(|y| room::fill(y, 1));
    }

    #[test]
    #[should_panic(expected = "the room that it was given")]
    fn a_kernel_cannot_swap_its_rooms() {
        let all = [unwritten(4, DType::I64), unwritten(5, DType::I64)];
        Unwritten::write_all::<i64, 2>(all, |[a, b]| [room::fill(b, 1), room::fill(a, 1)]);
    }
}
