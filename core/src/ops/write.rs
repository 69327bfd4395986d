//! Tensors and parts of them written in place.

use crate::cpu::copy::unpack;
use crate::error::{Error, ErrorKind, Result};
use crate::names::rules;
use crate::shape::{Sizes, Strides};
use crate::tensor::NamedTensor;

impl NamedTensor {
    /// `value` everywhere, in place.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the number does not fit the dtype, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn fill_(&mut self, value: impl Into<crate::Scalar>) -> Result<&mut NamedTensor> {
        let filled = NamedTensor::filled("fill_", self.shape(), self.dtype(), value.into())?;
        *self = filled;
        Ok(self)
    }

    /// The values of `source`, cast and broadcast, in the place of this tensor's. A tensor without names takes those of the source.
    ///
    /// # Errors
    /// As `namegrad::Tensor::copy_`.
    #[track_caller]
    pub fn copy_(&mut self, source: &NamedTensor) -> Result<&mut NamedTensor> {
        const OP: &str = "copy_";
        let names =
            rules::out(OP, &rules::unify(OP, "broadcast", self.input(), source.input())?, self.input())?;
        let spread = source.unnamed().expand(self.sizes())?.to(self.dtype())?.contiguous()?;
        *self = spread.with_names(names);
        Ok(self)
    }

    /// Writes `value`, cast and broadcast, to where `part` lies, a view of this tensor, which is dense. The buffer is copied only if somebody else holds it.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the value does not broadcast to the part, [`ErrorKind::Value`] if this is not dense or the part lies outside of it.
    #[track_caller]
    pub fn write_part(&mut self, part: NamedTensor, value: &NamedTensor) -> Result<()> {
        const OP: &str = "write_part";
        let value = value.unnamed().expand(part.sizes())?.to(self.dtype())?.contiguous()?;
        let (sizes, strides) = (Sizes::from_slice(part.sizes()), Strides::from_slice(part.strides()));
        let start = part.offset() as isize - self.offset() as isize;
        drop(part); // so that it does not count as somebody else
        if sizes.contains(&0) {
            return Ok(());
        }
        let reach = |forwards: bool| -> isize {
            let steps = sizes.iter().zip(&strides).filter(|(_, stride)| (**stride > 0) == forwards);
            start + steps.map(|(size, stride)| (*size as isize - 1) * stride).sum::<isize>()
        };
        if !self.is_contiguous() || reach(false) < 0 || reach(true) >= self.numel() as isize {
            let message = "the part is no view of a dense tensor";
            return Err(Error::new(ErrorKind::Value, OP, message).with_operands([self.extents()]));
        }
        if !self.is_writable() {
            *self = self.deep_clone()?;
        }
        let itemsize = self.dtype().itemsize();
        // SAFETY: the buffer is held by this tensor alone, so it is not that of `value`, which is dense and has the sizes of the part; the part lies inside.
        unsafe {
            let to = self.ptr_mut().offset(start * itemsize as isize);
            unpack(&sizes, &strides, itemsize, value.ptr(), to);
        }
        Ok(())
    }
}
