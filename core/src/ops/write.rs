//! Tensors and parts of them written in place.

use crate::cpu::copy::unpack;
use crate::error::{Error, ErrorKind, Result};
use crate::names::rules;
use crate::ops::by_element::{does_not_fit, fits};
use crate::shape::{Sizes, Strides};
use crate::tensor::NamedTensor;

impl NamedTensor {
    /// `value` everywhere, in place.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if an integer dtype does not have the number, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn fill_(&mut self, value: impl Into<crate::Scalar>) -> Result<&mut NamedTensor> {
        const OP: &str = "fill_";
        let value = value.into();
        if !fits(value, self.dtype()) {
            return Err(does_not_fit(OP, Some(self), value, self.dtype()));
        }
        let filled = NamedTensor::filled(OP, self.shape(), self.dtype(), value)?;
        *self = filled;
        Ok(self)
    }

    /// The values of `source`, cast and broadcast, in the place of this tensor's. A tensor without names
    /// takes those of the source.
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

    /// Puts `result` in the place of this tensor, cast to its dtype: the end of an in-place op that cannot
    /// run in its buffer.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the result cannot be cast, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn replace_with(&mut self, op: &'static str, result: NamedTensor) -> Result<&mut NamedTensor> {
        if !result.dtype().can_cast(self.dtype()) {
            let (from, to) = (result.dtype(), self.dtype());
            let message = format!("result type {from} can't be cast to the desired output type {to}");
            return Err(Error::about(&[self], ErrorKind::DType, op, message)
                .with_repair(format!("x.to(DType::{from:?})?")));
        }
        *self = result.to(self.dtype())?;
        Ok(self)
    }

    /// Writes this result to `out`, as the argument `out=` of PyTorch's functions does; see
    /// `namegrad::Tensor::write_to`.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn write_to(self, out: &mut NamedTensor) -> Result<&mut NamedTensor> {
        if out.sizes() != self.sizes() && (out.numel() > 0 || out.names().is_named()) {
            let message = format!(
                "the output has sizes {:?}, but the result has {:?}; only an unnamed output without elements is resized",
                out.sizes(),
                self.sizes()
            );
            return Err(Error::about(&[out, &self], ErrorKind::Shape, "write_to", message)
                .with_repair(format!("let mut out = Tensor::zeros({:?})?", self.sizes())));
        }
        rules::out("write_to", self.names(), out.input())?;
        out.replace_with("write_to", self)
    }

    /// Writes `value`, cast and broadcast, to where `part` lies, a view of this tensor, which is dense. The
    /// buffer is copied only if somebody else holds it.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the value does not broadcast to the part, [`ErrorKind::Value`] if this is not
    /// dense or the part lies outside of it.
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
            return Err(Error::about(&[self], ErrorKind::Value, OP, message));
        }
        if !self.is_writable() {
            *self = self.deep_clone()?;
        }
        let itemsize = self.dtype().itemsize();
        // SAFETY: the buffer is held by this tensor alone, so it is not that of `value`, which is dense and
        // has the sizes of the part; the part lies inside.
        unsafe {
            let to = self.ptr_mut().offset(start * itemsize as isize);
            unpack(&sizes, &strides, itemsize, value.ptr(), to);
        }
        Ok(())
    }
}
