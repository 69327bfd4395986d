//! Elements as little-endian bytes, on any machine and at any alignment.

use crate::dtype::{DType, Element, Scalar, dispatch};
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::NamedTensor;
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

/// Writes the elements in row-major order.
pub(super) fn write(x: &NamedTensor, out: &mut impl Write) -> io::Result<()> {
    let dense =
        x.contiguous().map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error.to_string()))?;
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

/// Reads a tensor whose elements are in row-major order. `failed` turns a failure to read into an error.
#[track_caller]
pub(super) fn read(
    op: &'static str,
    shape: Shape,
    dtype: DType,
    from: &mut impl Read,
    failed: impl Fn(io::Error) -> crate::Error,
) -> Result<NamedTensor> {
    let mut out = NamedTensor::full_as(op, shape, Scalar::Int(0), dtype)?;
    let mut chunk = vec![0; CHUNK.min(out.nbytes())];
    dispatch!(dtype, T => {
        for run in out.as_mut_slice::<T>()?.chunks_mut(CHUNK / size_of::<T>()) {
            let bytes = &mut chunk[..size_of_val(run)];
            from.read_exact(bytes).map_err(&failed)?;
            for (element, bytes) in run.iter_mut().zip(bytes.chunks_exact(size_of::<T>())) {
                *element = T::take(bytes);
            }
        }
    });
    Ok(out)
}
