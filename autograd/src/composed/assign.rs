//! What a tensor is made to hold in the place of its values.

use crate::Tensor;
use crate::op::Op;
use namegrad_core::names::rules;
use namegrad_core::{Error, ErrorKind, Result, SizeList};

impl Tensor {
    /// The values of `source`, cast and broadcast, in the place of those of this tensor; the gradient goes to the source. A tensor without names takes on those
    /// of the source, one with names must have what the two unify to.
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
    /// Those of the name rule, [`ErrorKind::OutNames`], [`ErrorKind::Shape`], [`ErrorKind::Autograd`] on a leaf that requires a gradient.
    #[track_caller]
    pub fn copy_(&mut self, source: &Tensor) -> Result<&mut Tensor> {
        const OP: &str = "copy_";
        self.check_in_place(OP)?;
        let mut value = self.value().clone();
        value.copy_(source.value())?;
        let y = Op::new(OP, value)
            .input(self, |g, _| g.zeros_like())
            .input(source, |g, _| Ok(g.clone()))
            .output();
        self.assign(OP, y)
    }

    /// The tensor under other sizes, in place: the first elements stay in row-major order, those that are new are zero. One with names keeps its sizes.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the tensor has names and other sizes, or if a size is negative, [`ErrorKind::Autograd`] if it requires a gradient.
    #[track_caller]
    pub fn resize_(&mut self, sizes: impl Into<SizeList>) -> Result<&mut Tensor> {
        let SizeList(sizes) = sizes.into();
        self.resized("resize_", &sizes)
    }

    /// The tensor under the sizes of `other`, in place, as [`resize_`](Self::resize_); without names it takes on those of `other`, which else must be its own.
    ///
    /// # Errors
    /// Those of `resize_`, [`ErrorKind::OutNames`].
    #[track_caller]
    pub fn resize_as_(&mut self, other: &Tensor) -> Result<&mut Tensor> {
        const OP: &str = "resize_as_";
        let sizes: Vec<isize> = other.sizes().iter().map(|size| *size as isize).collect();
        if self.sizes() == other.sizes() {
            rules::out(OP, other.names(), self.value().input())?;
        }
        self.resized(OP, &sizes)?;
        *self = self.clone().named(other.names().clone());
        Ok(self)
    }

    #[track_caller]
    fn resized(&mut self, op: &'static str, sizes: &[isize]) -> Result<&mut Tensor> {
        Tensor::ensure(
            !self.requires_grad(),
            ErrorKind::Autograd,
            op,
            "cannot resize variables that require grad",
        )?;
        if sizes.iter().copied().eq(self.sizes().iter().map(|size| *size as isize)) {
            return Ok(self);
        }
        if self.has_names() {
            let message = format!(
                "Cannot resize named tensor with resize_ or resize_as_ (tried to resize Tensor{} with size {:?} to {sizes:?}).",
                self.names().list(self.ndim()),
                self.sizes()
            );
            return Err(Error::new(ErrorKind::Shape, op, message)
                .with_operands([self.extents()])
                .with_repair("x.rename(None)? first"));
        }
        let numel = sizes.iter().try_fold(1usize, |n, size| n.checked_mul(usize::try_from(*size).ok()?));
        let Some(numel) = numel else {
            return Err(Error::new(ErrorKind::Shape, op, format!("sizes {sizes:?} are no sizes")));
        };
        let kept = self.reshape([-1])?.narrow(0, 0, numel.min(self.numel()))?;
        let new = kept.new_zeros([numel - kept.numel()])?;
        *self = Tensor::cat(&[&kept, &new], 0)?.reshape(sizes)?;
        Ok(self)
    }
}
