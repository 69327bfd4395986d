//! Filling and copying in place.

use crate::Tensor;
use crate::chain::*;
use crate::places::is_planned;
use namegrad_macros::composed;

composed! { write;
    //! # Writing in place
    /// Replaces the values of this tensor with those of `src`, cast and broadcast. The gradient goes to the
    /// source. An unnamed tensor gets the names of the source; a named one must have the unified names of the
    /// two.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let mut x = Tensor::zeros([("N", 2), ("C", 2)])?;
    /// x.copy_(&Tensor::new([1, 2])?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the name rule, `OutNames`, `Shape`.
    copy_ (mut x, src) names unifies;
    /// A tensor like this one, filled with `value`, a number or a 0-d tensor. The gradient of the old values
    /// is 0; the gradient of `value` is the sum over all elements.
    ///
    /// # Errors
    /// `Shape` if the value has dims.
    fill fill_ (mut x, value: Operand) names keeps, value: free;
    /// Fills the tensor with zeros. The gradient of the old values is 0.
    zero_ (mut x);
    /// Changes the sizes of the tensor. The first elements in row-major order are kept, and new elements are
    /// zero. A named tensor must keep its sizes.
    ///
    /// # Errors
    /// `Shape` if the tensor has names and other sizes, or if a size is negative, `Autograd` if it requires a
    /// gradient.
    resize_ (mut x; size: Shape) refused;
    /// Changes the sizes of the tensor to those of `other`, like [`resize_`](Self::resize_). An unnamed
    /// tensor gets the names of `other`; a named one must already have them.
    ///
    /// # Errors
    /// The errors of `resize_`, and `OutNames`.
    resize_as_ (mut x, other) names of other, other: matched refused;
}

mod kernels {
    use super::*;
    use crate::observe::starting;
    use crate::op::Op;
    use namegrad_core::args::{self, OpenShape};
    use namegrad_core::{Device, Error, ErrorKind, IntoShape, Result};

    #[track_caller]
    pub(super) fn copy_(x: &mut Tensor, src: &Tensor) -> Result<()> {
        const OP: &str = "copy_";
        if !is_planned() {
            x.value().check_keeps_elements(OP, src.value())?;
        }
        starting();
        let mut value = x.value().clone();
        value.copy_(src.value()).map_err(|error| match error.kind() {
            ErrorKind::Shape => {
                let message = format!("the source {} does not broadcast to {}", src.shape(), x.shape());
                Error::new(ErrorKind::Shape, OP, message).at(error.location())
            }
            _ => error,
        })?;
        let y = Op::new(OP, value).input(x, |g, _| g.zeros_like()).input(src, |g, _| Ok(g.clone())).output();
        x.assign(OP, y).map(drop)
    }

    #[track_caller]
    pub(super) fn fill(x: &mut Tensor, value: &Tensor) -> Result<()> {
        const OP: &str = "fill";
        if value.ndim() > 0 {
            let message =
                format!("the value must be a number or a 0-d tensor, got a tensor of {} dims", value.ndim());
            return Err(Error::new(ErrorKind::Shape, OP, message).with_operands([x.shape(), value.shape()]));
        }
        value.value().check_fits(OP, x.value())?;
        starting();
        let number = match value.device() {
            Device::Meta => 0.into(),
            _ => value.item::<namegrad_core::Scalar>()?,
        };
        let filled = x.full_like(number)?.into_value();
        let y =
            Op::new(OP, filled).input(x, |g, _| g.zeros_like()).input(value, |g, _| Ok(g.clone())).output();
        crate::composed::set_result(x, y);
        Ok(())
    }

    #[track_caller]
    pub(super) fn zero_(x: &mut Tensor) -> Result<()> {
        x.check_in_place("zero_")?;
        x.fill_(0).map(drop)
    }

    #[track_caller]
    pub(super) fn resize_(x: &mut Tensor, size: OpenShape) -> Result<()> {
        resized(x, "resize_", &args::Shape(size).into_shape()?.sizes)
    }

    #[track_caller]
    pub(super) fn resize_as_(x: &mut Tensor, other: &Tensor) -> Result<()> {
        const OP: &str = "resize_as_";
        if x.sizes() == other.sizes() {
            x.value().out_names(OP, other.names())?;
        }
        resized(x, OP, other.sizes())?;
        *x = x.clone().named(other.names().clone());
        Ok(())
    }

    #[track_caller]
    fn resized(x: &mut Tensor, op: &'static str, sizes: &[usize]) -> Result<()> {
        let message = "cannot resize variables that require grad";
        Error::ensure(!x.requires_grad(), ErrorKind::Autograd, op, || message)
            .map_err(|error| error.with_repair("let mut x = x.detach();"))?;
        if sizes == x.sizes() {
            return Ok(());
        }
        if x.has_names() {
            let message = format!(
                "Cannot resize named tensor with resize_ or resize_as_ (tried to resize Tensor{} with size {:?} to {sizes:?}).",
                x.names().list(x.ndim()),
                x.sizes()
            );
            return Err(Error::new(ErrorKind::Shape, op, message)
                .with_operands([x.shape()])
                .with_repair("x.rename(None)?"));
        }
        let numel = sizes.iter().try_fold(1usize, |n, size| n.checked_mul(*size));
        let Some(numel) = numel else {
            return Err(Error::new(ErrorKind::Shape, op, format!("sizes {sizes:?} are too large")));
        };
        let kept = x.reshape([-1]).narrow(0, 0, numel.min(x.numel()))?;
        let new = kept.new_zeros([numel - kept.numel()])?;
        *x = Tensor::cat(&[&kept, &new], 0).reshape(sizes)?;
        Ok(())
    }
}
