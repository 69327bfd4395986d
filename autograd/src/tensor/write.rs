//! Writing to a [`Tensor`]: the last step of in-place ops, `out=`, and updates outside of the tape.

use super::Tensor;
use crate::tape::{Meta, is_forward, is_grad_enabled};
use crate::vmap::check_in_place;
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};

/// # Writing results to a tensor
impl Tensor {
    /// A tensor for an op to write to without changing its input: the value, with its record on the tape if
    /// ops are recorded.
    #[inline]
    pub(crate) fn to_write(&self) -> Tensor {
        if is_grad_enabled() || self.carried().is_some() { self.clone() } else { self.detach() }
    }

    /// Adds `other` to this tensor, outside of the tape. The buffer is reused if it is not shared.
    pub(crate) fn add_in_place(&mut self, other: Tensor) -> Result<()> {
        self.parts.meta = None;
        self.parts.value.add_(&other.parts.value).map(drop)
    }

    /// The last step of an in-place op: this handle becomes `y`.
    #[track_caller]
    pub(crate) fn assign(&mut self, op: &'static str, y: Tensor) -> Result<&mut Tensor> {
        self.check_in_place(op)?;
        if y.sizes() != self.sizes() {
            let message = format!(
                "output with shape {:?} doesn't match the broadcast shape {:?}",
                self.sizes(),
                y.sizes()
            );
            return Err(Error::new(ErrorKind::Shape, op, message).with_operands([self.shape(), y.shape()]));
        }
        if !y.dtype().can_cast(self.dtype()) {
            let message = format!(
                "result type {} can't be cast to the desired output type {}",
                y.dtype(),
                self.dtype()
            );
            return Err(Error::new(ErrorKind::DType, op, message)
                .with_operands([self.shape()])
                .with_repair(format!("x = x.to(DType::{:?})?; before it", y.dtype())));
        }
        if is_forward() {
            check_in_place(op, self, &y)?;
        }
        let y = y.to(self.dtype())?;
        if is_grad_enabled() || self.carried().is_some() || y.carried().is_some() {
            *self = y;
        } else {
            self.parts.value = y.into_value(); // an update like an optimizer's: the record on the tape is kept
        }
        Ok(self)
    }

    /// [`assign`](Self::assign) for what the op has made, whose errors become those of the in-place op.
    #[track_caller]
    pub(crate) fn assign_made(&mut self, op: &'static str, made: Result<Tensor>) -> Result<&mut Tensor> {
        self.assign(op, made.map_err(|error| error.of(op))?)
    }

    /// The same for an in-place op that may change sizes, such as a transposition.
    #[track_caller]
    pub(crate) fn become_made(&mut self, op: &'static str, made: Result<Tensor>) -> Result<&mut Tensor> {
        self.become_result(op, made.map_err(|error| error.of(op))?)
    }

    /// The value, for an in-place op that the tape does not follow. [`written`](Self::written) comes next.
    pub(crate) fn in_buffer(&mut self) -> &mut NamedTensor {
        &mut self.parts.value
    }

    /// The last step of an in-place op that has written to the value.
    pub(crate) fn written(&mut self) -> &mut Tensor {
        self.renew_leaf();
        self
    }

    /// The last step of an in-place op that may change sizes, such as a transposition.
    #[track_caller]
    fn become_result(&mut self, op: &'static str, y: Tensor) -> Result<&mut Tensor> {
        let (from, to) = (y.dtype(), self.dtype());
        let message = || format!("result type {from} can't be cast to the desired output type {to}");
        Error::ensure(from.can_cast(to), ErrorKind::DType, op, message).map_err(|error| {
            error.with_inputs(&[self.value()]).with_repair(format!("x = x.to(DType::{from:?})?; before it"))
        })?;
        *self = y.to(self.dtype())?;
        Ok(self)
    }

    /// Returns an error for an in-place op on a leaf, which would overwrite the value whose gradient is
    /// wanted.
    #[track_caller]
    pub(crate) fn check_in_place(&self, op: &'static str) -> Result<()> {
        if self.requires_grad() && self.is_leaf() && is_grad_enabled() {
            let message = "a leaf Variable that requires grad is being used in an in-place operation: its gradient is asked for as it is";
            return Err(Error::new(ErrorKind::Autograd, op, message)
                .with_operands([self.shape()])
                .with_repair(format!(
                    "p.update(|v| v.{op}(..).map(drop))? for a Parameter p, or no_grad(|| x.{op}(..).map(drop))? for a tensor of your own"
                )));
        }
        Ok(())
    }

    /// Writes this result to `out`, which replaces PyTorch's argument `out=` for every op, function and
    /// layer.
    ///
    /// An unnamed `out` gets the names of the result; a named one must already have them. `out` keeps its
    /// dtype, to which the result is cast. It must have the sizes of the result, unless it is empty and
    /// unnamed. If the dtypes agree, nothing is copied: `out` becomes the result.
    ///
    /// ```
    /// use namegrad_autograd::Tensor;
    /// let x = Tensor::ones([("N", 2), ("C", 3)])?;
    /// let mut out = Tensor::zeros([2])?;
    /// x.sum("C")?.write_to(&mut out)?;
    /// assert_eq!(*out.names(), ["N"]);
    /// assert!(x.sum("N")?.write_to(&mut out).is_err());
    /// # Ok::<(), namegrad_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OutNames`], [`ErrorKind::Shape`], [`ErrorKind::DType`] if the result cannot be cast, such
    /// as floats to integers, [`ErrorKind::Autograd`] if either tensor requires a gradient while ops are
    /// recorded, because the tape cannot follow a result into an existing tensor. After an error, `out` is
    /// unchanged.
    #[track_caller]
    pub fn write_to(self, out: &mut Tensor) -> Result<&mut Tensor> {
        if is_grad_enabled() && (self.requires_grad() || out.requires_grad()) {
            let message = "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.";
            return Err(Error::new(ErrorKind::Autograd, "write_to", message)
                .with_operands([self.shape(), out.shape()])
                .with_repair("no_grad(|| y.write_to(&mut out).map(drop))?, or use y itself"));
        }
        self.into_value().write_to(&mut out.parts.value)?;
        Ok(out)
    }

    /// Changes the value outside of the tape, like an optimizer. If `f` changes the sizes or the dtype of a
    /// leaf, it becomes a new leaf.
    ///
    /// # Errors
    /// The errors of `f`.
    #[track_caller]
    pub fn update<R>(&mut self, f: impl FnOnce(&mut NamedTensor) -> Result<R>) -> Result<R> {
        let result = f(&mut self.parts.value);
        self.renew_leaf();
        result
    }

    /// Makes this a new leaf if the value no longer has the sizes or the dtype of the old one.
    fn renew_leaf(&mut self) {
        if let Some(meta) = &self.parts.meta
            && (meta.sizes[..] != *self.sizes() || meta.dtype != self.dtype())
        {
            self.parts.meta = Some(Meta::leaf(&self.parts.value));
        }
    }
}
