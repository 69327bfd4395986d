//! Writing to tensors and to parts of them, in place.

use crate::cpu::copy::unpack;
use crate::device::{OnDevice, compute_in, is_on_meta};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{Sizes, Strides, has};
use crate::names::{Meets, of_call, rules};
use crate::tensor::NamedTensor;
use crate::tensor::range::{does_not_fit, fits};

impl NamedTensor {
    /// Fills the tensor with `value`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the number is outside the range of an integer dtype,
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn fill_(&mut self, value: impl Into<crate::Scalar>) -> Result<&mut NamedTensor> {
        const OP: &str = "fill_";
        let value = value.into();
        if !fits(value, self.dtype()) {
            return Err(does_not_fit(OP, Some(self), value, self.dtype()));
        }
        let _device = OnDevice::of(self);
        let filled = NamedTensor::filled(OP, self.shape(), self.dtype(), value)?;
        *self = filled;
        Ok(self)
    }

    /// Replaces the values of this tensor with those of `source`, cast and broadcast. An unnamed tensor gets
    /// the names of `source`.
    ///
    /// # Errors
    /// Same as `namegrad::Tensor::copy_`.
    #[track_caller]
    pub fn copy_(&mut self, source: &NamedTensor) -> Result<&mut NamedTensor> {
        const OP: &str = "copy_";
        let _device = OnDevice::of_inputs(OP, &[&[&*self, source]])?;
        let names =
            rules::out(OP, &rules::unify(OP, "broadcast", self.input(), source.input())?, self.input())?;
        let spread = source.unnamed().expand(self.sizes())?.to(self.dtype())?.contiguous()?;
        *self = spread.with_names(names);
        Ok(self)
    }

    /// Replaces this tensor with `result`, cast to its dtype. This is the last step of an in-place op that
    /// cannot run in the buffer.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the result cannot be cast, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn replace_with(&mut self, op: &'static str, result: NamedTensor) -> Result<&mut NamedTensor> {
        if !result.dtype().can_cast(self.dtype()) {
            let (from, to) = (result.dtype(), self.dtype());
            let message = format!("result type {from} can't be cast to the desired output type {to}");
            return Err(Error::about(&[self], ErrorKind::DType, op, message)
                .with_repair(format!("x = x.to(DType::{from:?})?; before it")));
        }
        *self = result.to(self.dtype())?;
        Ok(self)
    }

    /// Writes this result to `out`, like the argument `out=` of PyTorch's functions; see
    /// `namegrad::Tensor::write_to`.
    ///
    /// # Errors
    /// Same as there.
    #[track_caller]
    pub fn write_to(self, out: &mut NamedTensor) -> Result<&mut NamedTensor> {
        const OP: &str = "write_to";
        if !is_on_meta() {
            out.check_keeps_elements(OP, &self)?;
        }
        // The names first: in another order, the sizes may differ too.
        if self.ndim() == out.ndim() {
            rules::out(OP, self.names(), out.input()).map_err(|error| {
                let error = of_call(error, OP, &[("out", Meets::First, &*out), ("y", Meets::Matched, &self)]);
                match self.align_as(out) {
                    Ok(y) if y.sizes() != out.sizes() => error.with_repair(fitting(&self)),
                    _ => error,
                }
            })?;
        }
        if out.sizes() != self.sizes() && (out.numel() > 0 || out.names().is_named()) {
            let message = format!(
                "the output has sizes {:?}, but the result has {:?}; only an unnamed output without elements is resized",
                out.sizes(),
                self.sizes()
            );
            return Err(
                Error::about(&[out, &self], ErrorKind::Shape, OP, message).with_repair(fitting(&self))
            );
        }
        out.replace_with(OP, self)
    }

    /// Writes `value`, cast and broadcast, to the elements of `part`, a view of this tensor, which must be
    /// dense. The buffer is copied only if it is shared.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the value does not broadcast to the part, [`ErrorKind::Value`] if this tensor
    /// is not dense or the part is outside of it.
    #[track_caller]
    pub fn write_part(&mut self, part: NamedTensor, value: &NamedTensor) -> Result<()> {
        const OP: &str = "write_part";
        let _device = OnDevice::of_inputs(OP, &[&[&*self, value]])?;
        let value = value.unnamed().expand(part.sizes())?.to(self.dtype())?.contiguous()?;
        let (sizes, strides) = (Sizes::from_slice(part.sizes()), Strides::from_slice(part.strides()));
        let start = part.offset() as isize - self.offset() as isize;
        drop(part); // so that it does not count as another owner
        if has(&sizes, 0) {
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
        self.make_writable()?;
        compute_in(self, |x| {
            let itemsize = x.dtype().itemsize();
            // SAFETY: only this tensor has the buffer, so `value` has another one; `value` is dense and has the
            // sizes of the part; the part is inside the buffer.
            unsafe {
                let to = x.ptr_mut().offset(start * itemsize as isize);
                unpack(&sizes, &strides, itemsize, value.ptr(), to);
            }
            Ok(())
        })
    }
}

/// The repair that makes an output for `y`.
fn fitting(y: &NamedTensor) -> String {
    format!("let mut out = Tensor::zeros({:?})?", y.sizes())
}
