//! Creating tensors: from a number, or with arbitrary elements that a kernel will write.

use super::NamedTensor;
use crate::dtype::{DType, Element, Scalar, dispatch};
use crate::error::{Error, Result};
use crate::names::Names;
use crate::ops::by_element::{does_not_fit, fits};
use crate::shape::{Shape, checked_numel};
use crate::storage::{Storage, in_units};

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
        // SAFETY: the next line writes the element.
        let mut number = unsafe { NamedTensor::unwritten("scalar", &[], Names::none(), dtype)? };
        // SAFETY: the buffer is fresh and has room for one element of the dtype.
        dispatch!(dtype, T => unsafe { number.storage.data_mut().cast::<T>().write(T::from_scalar(value)) });
        number.is_number = true;
        Ok(number)
    }

    /// A dense tensor whose elements all have one value.
    #[track_caller]
    pub(crate) fn filled(op: &'static str, shape: Shape, dtype: DType, value: Scalar) -> Result<NamedTensor> {
        if !fits(value, dtype) {
            return Err(does_not_fit(op, None, value, dtype));
        }
        let numel = checked_numel(op, &shape.sizes, dtype.itemsize())?;
        if value.to_f64() == 0.0 && value.to_f64().is_sign_positive() {
            let storage = Storage::zeroed(op, numel * dtype.itemsize())
                .map_err(|error| of_tensor(error, &shape.sizes, dtype))?;
            // SAFETY: the buffer has that many bytes, all zero.
            return Ok(unsafe { NamedTensor::from_parts(storage, dtype, &shape.sizes, shape.names) });
        }
        let mut out = NamedTensor::fresh(op, shape, dtype)?;
        dispatch!(dtype, T => out.as_mut_slice::<T>()?.fill(T::from_scalar(value)));
        Ok(out)
    }

    /// A dense tensor for kernels that write all elements. Until then, the elements are arbitrary numbers, or
    /// `false` for `bool`.
    #[inline]
    #[track_caller]
    pub(crate) fn fresh(op: &'static str, shape: Shape, dtype: DType) -> Result<NamedTensor> {
        // SAFETY: if the dtype is `bool`, the code below writes every element.
        let mut out = unsafe { NamedTensor::unwritten(op, &shape.sizes, shape.names, dtype)? };
        if dtype == DType::Bool {
            // SAFETY: the buffer is fresh and has a byte for each element.
            unsafe { out.storage.data_mut().write_bytes(0, out.numel()) };
        }
        Ok(out)
    }

    /// [`fresh`](Self::fresh) with the sizes and names of this tensor.
    #[inline]
    #[track_caller]
    pub(crate) fn fresh_like(&self, op: &'static str, dtype: DType) -> Result<NamedTensor> {
        NamedTensor::fresh(op, self.shape(), dtype)
    }

    /// Like [`fresh`](Self::fresh), but without the cost of initializing `bool`.
    ///
    /// # Safety
    /// If the dtype is `bool`, each element is written before it is read.
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn unwritten(
        op: &'static str,
        sizes: &[usize],
        names: Names,
        dtype: DType,
    ) -> Result<NamedTensor> {
        let numel = checked_numel(op, sizes, dtype.itemsize())?;
        let storage =
            Storage::new(op, numel * dtype.itemsize()).map_err(|error| of_tensor(error, sizes, dtype))?;
        // SAFETY: the buffer has that many bytes, any bytes are a valid number, and the caller guarantees the
        // rest.
        Ok(unsafe { NamedTensor::from_parts(storage, dtype, sizes, names) })
    }

    /// [`unwritten`](Self::unwritten) with the sizes and names of this tensor.
    ///
    /// # Safety
    /// Same as [`unwritten`](Self::unwritten).
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn unwritten_like(&self, op: &'static str, dtype: DType) -> Result<NamedTensor> {
        // SAFETY: the caller's contract.
        unsafe { NamedTensor::unwritten(op, self.sizes(), self.names.clone(), dtype) }
    }
}

/// The error of a buffer that there is no room for, with the tensor that it is for.
#[cold]
fn of_tensor(error: Error, sizes: &[usize], dtype: DType) -> Error {
    let bytes = sizes.iter().product::<usize>() * dtype.itemsize(); // which was checked before
    let message = format!("out of memory: {} for sizes {sizes:?} of {dtype}", in_units(bytes));
    Error::new(error.kind(), error.op(), message).at(error.location())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Sizes;

    #[test]
    fn bools_that_nobody_wrote_are_false() {
        drop(NamedTensor::from_slice(&[7u8; 300], [300]).unwrap());
        let shape = Shape { sizes: Sizes::from_slice(&[300]), names: Names::none() };
        let x = NamedTensor::fresh("test", shape, DType::Bool).unwrap();
        assert_eq!(x.as_slice::<bool>().unwrap(), [false; 300]);
    }
}
