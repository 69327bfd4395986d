//! The elements of a tensor as little-endian bytes, on any machine and at any alignment: for files.

use super::NamedTensor;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::shape::Shape;
use std::io::{self, Read, Write};

/// The number of bytes converted at once; a multiple of every element size.
const CHUNK: usize = 1 << 16;

/// Turns elements of `itemsize` bytes from the order of this machine to little-endian, or back.
fn turn(bytes: &mut [u8], itemsize: usize) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(itemsize).for_each(<[u8]>::reverse);
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
        let failed = |kind| move |error: Error| io::Error::new(kind, format!("{error}"));
        self.check_elements("write_bytes").map_err(failed(io::ErrorKind::Unsupported))?;
        let dense = self.contiguous().map_err(failed(io::ErrorKind::OutOfMemory))?;
        let mut chunk = vec![0; CHUNK.min(dense.nbytes())];
        for run in dense.bytes().chunks(CHUNK) {
            let chunk = &mut chunk[..run.len()];
            chunk.copy_from_slice(run);
            turn(chunk, dense.dtype().itemsize());
            out.write_all(chunk)?;
        }
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
        out.overwrite(&mut |bytes| {
            for run in bytes.chunks_mut(CHUNK) {
                from.read_exact(run).map_err(failed)?;
                turn(run, dtype.itemsize());
            }
            Ok(())
        })?;
        Ok(out)
    }
}
