//! What is asked of a tensor, and tensors on another device.

use crate::{Operand, Tensor};
use namegrad_core::{DType, Device, Error, ErrorKind, Result};

/// # Device, storage and type
impl Tensor {
    /// Where the elements are.
    pub fn device(&self) -> Device {
        Device::Cpu
    }

    /// The tensor in the memory of the CPU: this one, if it is there.
    pub fn cpu(&self) -> Tensor {
        self.clone()
    }

    /// The tensor in the memory of a GPU.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`]: this build has no CUDA.
    #[track_caller]
    pub fn cuda(&self) -> Result<Tensor> {
        let message = "this build has no CUDA: all tensors are on the CPU";
        Err(Error::new(ErrorKind::Unsupported, "cuda", message).with_operands([self.shape()]))
    }

    /// Are the elements in the memory of a GPU?
    pub fn is_cuda(&self) -> bool {
        matches!(self.device(), Device::Cuda(_))
    }

    /// Are the elements in memory that other processes share? Never: threads share tensors as they are.
    pub fn is_shared(&self) -> bool {
        false
    }

    /// Are only the elements stored that are not zero? Never: all tensors are dense.
    pub fn is_sparse(&self) -> bool {
        false
    }

    /// Are the elements complex numbers? Never: there is no such dtype.
    pub fn is_complex(&self) -> bool {
        false
    }

    /// Are the elements floating-point numbers?
    pub fn is_floating_point(&self) -> bool {
        self.dtype().is_floating_point()
    }

    /// Is the dtype signed?
    pub fn is_signed(&self) -> bool {
        self.dtype().is_signed()
    }

    /// Bytes of an element.
    pub fn element_size(&self) -> usize {
        self.dtype().itemsize()
    }

    /// Bytes of all elements.
    pub fn nbytes(&self) -> usize {
        self.value().nbytes()
    }

    /// The address of the first element, to see whether two tensors share a buffer.
    pub fn data_ptr(&self) -> *const u8 {
        self.value().data_ptr()
    }

    /// PyTorch's old name of dtype and device: `torch.FloatTensor` for `f32`. What `x.type()` gives there;
    /// [`to`](Self::to) is its form with a dtype.
    pub fn type_name(&self) -> &'static str {
        match self.dtype() {
            DType::Bool => "torch.BoolTensor",
            DType::U8 => "torch.ByteTensor",
            DType::I8 => "torch.CharTensor",
            DType::I16 => "torch.ShortTensor",
            DType::I32 => "torch.IntTensor",
            DType::I64 => "torch.LongTensor",
            DType::F16 => "torch.HalfTensor",
            DType::BF16 => "torch.BFloat16Tensor",
            DType::F32 => "torch.FloatTensor",
            DType::F64 => "torch.DoubleTensor",
        }
    }

    /// The dtype that an op by element computes in on this tensor and `other`. Among tensors with dims, then
    /// among 0-d ones, then among numbers the widest counts; a later group matters only when its category is
    /// higher.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1, 2])?.to(DType::I8)?;
    /// assert_eq!(x.result_type(3)?, DType::I8);
    /// assert_eq!(x.result_type(2.5)?, DType::F32);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn result_type(&self, other: impl Operand) -> Result<DType> {
        Ok(self.value().result_type(other.operand_beside(self.dtype())?.value()))
    }
}
