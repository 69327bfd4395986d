//! Casts and dense copies.

use crate::cpu::copy::{View, pack};
use crate::device::OnDevice;
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::{NamedTensor, Unwritten};

/// A dense copy of `x`, cast to `dtype`.
#[track_caller]
pub(crate) fn packed(op: &'static str, x: &NamedTensor, dtype: DType) -> Result<NamedTensor> {
    let _device = OnDevice::of(x);
    let out = Unwritten::like(op, x, dtype)?;
    let view = || View { ptr: x.ptr(), dtype: x.dtype(), strides: x.strides() };
    // SAFETY: the view is the view of a tensor; the output is new and has room for as many elements, each of
    // which is written.
    Ok(unsafe { out.write_at(|to| pack(x.sizes(), view(), dtype, to)) })
}

impl NamedTensor {
    /// The tensor cast to `dtype`, or the tensor itself if it already has that dtype. Casting floats to
    /// integers drops the fraction, and casting to `bool` makes everything but 0 `true`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[track_caller]
    pub fn to(&self, dtype: DType) -> Result<NamedTensor> {
        if self.dtype() == dtype && !self.is_number() { Ok(self.clone()) } else { packed("to", self, dtype) }
    }

    /// A dense copy with its own buffer. It is rarely needed: `clone` shares the buffer, but a later write to
    /// one of the tensors does not change the other.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[track_caller]
    pub fn deep_clone(&self) -> Result<NamedTensor> {
        packed("clone", self, self.dtype())
    }
}
