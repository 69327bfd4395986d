//! Properties of a tensor, and tensors on other devices.

use crate::op::Op;
use crate::vmap::value_of;
use crate::{Operand, Tensor};
use namegrad_core::{DType, Device, Error, ErrorKind, Result};

/// # Device, storage and type
impl Tensor {
    /// The device that has the elements.
    pub fn device(&self) -> Device {
        self.value().device()
    }

    /// The tensor on this device: this one if it is there already. On the way to the meta device, the elements
    /// are dropped. [`on_device`](namegrad_core::on_device) makes new tensors there.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0]])?.refine_names(["row", "col"])?.to_device(Device::Meta)?;
    /// assert_eq!(x.mul(&x)?.sum("row")?.to_string(), "tensor(..., device='meta', size=(2,), names=('col',))");
    /// assert!(x.to_vec::<f32>().is_err());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] from the meta device to another one, and for a device that this build does
    /// not have.
    #[track_caller]
    pub fn to_device(&self, device: Device) -> Result<Tensor> {
        const OP: &str = "to_device";
        let before = self.device();
        if before == device {
            return Ok(self.clone());
        }
        let value = value_of(OP, self, &|| self.value().to_device(device), &|x| x.to_device(device))?;
        Ok(Op::new(OP, value).input(self, move |g, _| g.to_device(before)).output())
    }

    /// The tensor in the memory of the CPU: this one if it is already there.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] on the meta device.
    #[track_caller]
    pub fn cpu(&self) -> Result<Tensor> {
        self.to_device(Device::Cpu)
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

    /// Whether the elements are in the memory of a GPU.
    pub fn is_cuda(&self) -> bool {
        matches!(self.device(), Device::Cuda(_))
    }

    /// Whether the elements are in memory shared with other processes: always false. Threads can share all
    /// tensors.
    pub fn is_shared(&self) -> bool {
        false
    }

    /// Whether only nonzero elements are stored: always false, because all tensors are dense.
    pub fn is_sparse(&self) -> bool {
        false
    }

    /// Whether the elements are complex numbers: always false, because there is no such dtype.
    pub fn is_complex(&self) -> bool {
        false
    }

    /// Whether the elements are floating-point numbers.
    pub fn is_floating_point(&self) -> bool {
        self.dtype().is_floating_point()
    }

    /// Whether the dtype is signed.
    pub fn is_signed(&self) -> bool {
        self.dtype().is_signed()
    }

    /// The size of an element in bytes.
    pub fn element_size(&self) -> usize {
        self.dtype().itemsize()
    }

    /// The size of all elements in bytes.
    pub fn nbytes(&self) -> usize {
        self.value().nbytes()
    }

    /// The address of the first element, which shows whether two tensors share a buffer.
    pub fn data_ptr(&self) -> *const u8 {
        self.value().data_ptr()
    }

    /// PyTorch's old name for dtype and device, such as `torch.FloatTensor` for `f32`. This is PyTorch's
    /// `x.type()`; for `x.type(dtype)`, use [`to`](Self::to).
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

    /// The dtype in which an elementwise op computes on this tensor and `other`. There are three groups:
    /// tensors with dims, 0-d tensors, plain numbers. In each group the widest dtype counts, and a later
    /// group matters only if its category is higher.
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
