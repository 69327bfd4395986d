//! Casts and dense copies.

use crate::cpu::copy::{View, pack};
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::NamedTensor;

/// A dense copy of `x`, cast to `dtype`.
#[track_caller]
pub(crate) fn packed(op: &'static str, x: &NamedTensor, dtype: DType) -> Result<NamedTensor> {
    // SAFETY: each element is written below.
    let mut out = unsafe { x.unwritten_like(op, dtype)? };
    let view = View { ptr: x.ptr(), dtype: x.dtype(), strides: x.strides() };
    // SAFETY: the view is that of a tensor; the output is fresh and has room for as many elements.
    unsafe { pack(x.sizes(), view, dtype, out.ptr_mut()) };
    Ok(out)
}

impl NamedTensor {
    /// The elements cast to `dtype`: the tensor itself if it has it already. Floats lose their fraction in
    /// integers, anything but 0 is `true`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[track_caller]
    pub fn to(&self, dtype: DType) -> Result<NamedTensor> {
        if self.dtype() == dtype && !self.is_number() { Ok(self.clone()) } else { packed("to", self, dtype) }
    }

    /// A dense copy with a buffer of its own. `clone` only takes a reference, which no later write can be
    /// seen through either.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[track_caller]
    pub fn deep_clone(&self) -> Result<NamedTensor> {
        packed("clone", self, self.dtype())
    }
}
