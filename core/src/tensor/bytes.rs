//! The elements of a tensor as little-endian bytes, on any machine and at any alignment: for files.

use super::NamedTensor;
use crate::dtype::{DType, Element, Scalar, dispatch};
use crate::error::{Error, Result};
use crate::shape::Shape;
use half::{bf16, f16};
use std::io::{self, Read, Write};

/// The number of bytes converted at once; a multiple of every element size.
const CHUNK: usize = 1 << 16;

trait LittleEndian: Element {
    fn put(self, bytes: &mut [u8]);
    fn take(bytes: &[u8]) -> Self;
}

/// Elements that are numbers: `f32` becomes
///
/// ```ignore
/// impl LittleEndian for f32 {
///     fn put(self, bytes: &mut [u8]) { bytes.copy_from_slice(&self.to_le_bytes()) }
///     fn take(bytes: &[u8]) -> f32 { f32::from_le_bytes(bytes.try_into().expect("the size of an element")) }
/// }
/// ```
macro_rules! little_endian {
    ($($ty:ty)*) => {$(
        impl LittleEndian for $ty {
            #[inline]
            fn put(self, bytes: &mut [u8]) { bytes.copy_from_slice(&self.to_le_bytes()) }
            #[inline]
            fn take(bytes: &[u8]) -> $ty { <$ty>::from_le_bytes(bytes.try_into().expect("the size of an element")) }
        }
    )*};
}
little_endian!(u8 i8 i16 i32 i64 f16 bf16 f32 f64);

impl LittleEndian for bool {
    fn put(self, bytes: &mut [u8]) {
        bytes[0] = self.into();
    }

    /// Any byte other than 0 is true: a file can contain any byte, but a `bool` only 0 or 1.
    fn take(bytes: &[u8]) -> bool {
        bytes[0] != 0
    }
}

impl NamedTensor {
    /// Writes the elements as little-endian bytes, in row-major order.
    ///
    /// ```
    /// use namegrad_core::NamedTensor;
    /// let mut bytes = Vec::new();
    /// NamedTensor::from_slice(&[1i16, 2, -1], [3])?.write_bytes(&mut bytes).unwrap();
    /// assert_eq!(bytes, [1, 0, 2, 0, 255, 255]);
    /// # Ok::<(), namegrad_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `out`; [`io::ErrorKind::OutOfMemory`] if there is no room for a dense copy of a view.
    pub fn write_bytes(&self, out: &mut dyn Write) -> io::Result<()> {
        let dense = self
            .contiguous()
            .map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error.to_string()))?;
        let mut chunk = vec![0; CHUNK.min(dense.nbytes())];
        dispatch!(dense.dtype(), T => {
            let elements = dense.as_slice::<T>().expect("contiguous, and of this dtype");
            for run in elements.chunks(CHUNK / size_of::<T>()) {
                let bytes = &mut chunk[..size_of_val(run)];
                for (element, bytes) in run.iter().zip(bytes.chunks_exact_mut(size_of::<T>())) {
                    element.put(bytes);
                }
                out.write_all(bytes)?;
            }
        });
        Ok(())
    }

    /// Reads a tensor from the bytes of its elements, as [`write_bytes`](Self::write_bytes) writes them.
    /// Errors are those of `op`, and `failed` turns a failure to read into one.
    ///
    /// ```
    /// use namegrad_core::{DType, Error, ErrorKind, IntoShape, NamedTensor};
    /// let failed = |error: std::io::Error| Error::new(ErrorKind::Io, "load", error.to_string());
    /// let shape = [("N", 2)].into_shape()?;
    /// let x = NamedTensor::read_bytes("load", shape, DType::I16, &mut &[1, 0, 255, 255][..], &failed)?;
    /// assert_eq!(x.to_vec::<i16>()?, [1, -1]);
    /// # Ok::<(), namegrad_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// What `failed` returns; [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[track_caller]
    pub fn read_bytes(
        op: &'static str,
        shape: Shape,
        dtype: DType,
        from: &mut dyn Read,
        failed: &dyn Fn(io::Error) -> Error,
    ) -> Result<NamedTensor> {
        let mut out = NamedTensor::full_as(op, shape, Scalar::Int(0), dtype)?;
        let mut chunk = vec![0; CHUNK.min(out.nbytes())];
        dispatch!(dtype, T => {
            for run in out.as_mut_slice::<T>()?.chunks_mut(CHUNK / size_of::<T>()) {
                let bytes = &mut chunk[..size_of_val(run)];
                from.read_exact(bytes).map_err(failed)?;
                for (element, bytes) in run.iter_mut().zip(bytes.chunks_exact(size_of::<T>())) {
                    *element = T::take(bytes);
                }
            }
        });
        Ok(out)
    }
}
