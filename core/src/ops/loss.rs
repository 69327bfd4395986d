//! Losses that are computed in one pass.

use crate::cpu::index::stray;
use crate::cpu::softmax;
use crate::dtype::{DType, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Sizes;
use crate::names::rules;
use crate::tensor::{NamedTensor, Unwritten};
use namegrad_macros::ops;

ops! { loss;
    //! # Losses
    /// The cross entropy of `softmax(x)` along `dim` with class indices, without reduction:
    /// `ln Σ e^x - x[target]`. Where the target is `ignore_index`, the loss and its gradient are 0.
    /// [`cross_entropy`](https://docs.rs/namegrad) in `nn::functional` adds weights and reductions.
    ///
    /// # Shapes
    /// - `x`: any dims that include `dim`
    /// - `target`: integers, with the dims of `x` except `dim`
    /// - result: like `target`, with the dtype of `x`
    ///
    /// # Source
    /// Goodfellow, Bengio, Courville, *Deep Learning* (2016), section 6.2.2.3.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let logits = Tensor::new([[2.0, 0.0], [0.0, 2.0]])?.refine_names(["N", "class"])?;
    /// let losses = logits.class_cross_entropy(&Tensor::new([0, 1])?, "class")?;
    /// assert_eq!(losses.shape().to_string(), "[N=2]");
    /// assert!((losses.sum(..)?.item::<f64>()? - 2.0 * (1.0 + (-2.0f64).exp()).ln()).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    class_cross_entropy (x, target; dim: Dim, ignore_index: isize = -100) -> (y; logsumexp)
        on floats names removes, target: without dim;
}

pub(crate) mod kernels {
    use super::*;

    #[track_caller]
    pub(crate) fn class_cross_entropy(
        x: &NamedTensor,
        target: &NamedTensor,
        dim: usize,
        ignore_index: isize,
    ) -> Result<(NamedTensor, NamedTensor)> {
        const OP: &str = "class_cross_entropy";
        x.check_float(OP)?;
        let inputs = [x, target];
        if !matches!(target.dtype(), DType::I64 | DType::I32 | DType::U8) {
            let message = format!("expected class indices of an integer dtype, got {}", target.dtype());
            return Err(
                Error::about(&inputs, ErrorKind::DType, OP, message).with_repair("target.to(DType::I64)?")
            );
        }
        let classes = x.length_of(dim);
        let removed: &[usize] = if x.ndim() > 0 { &[dim] } else { &[] };
        let mut sizes = Sizes::from_slice(x.sizes());
        if x.ndim() > 0 {
            sizes.remove(dim);
        }
        if classes == 0 {
            let message = "expected at least one class, but the class dim has size 0";
            return Err(Error::about(&inputs, ErrorKind::Shape, OP, message));
        }
        if sizes[..] != *target.sizes() {
            let message = format!("expected a target of sizes {sizes:?}, got {:?}", target.sizes());
            return Err(Error::about(&inputs, ErrorKind::Shape, OP, message));
        }
        let names = rules::remove(x.input(), removed);
        let names = rules::unify(
            OP,
            "broadcast",
            rules::NamedInput { names: &names, sizes: &sizes },
            target.input(),
        )?;
        let indices = indices(target)?;
        if let Some(bad) = stray(indices.elements()?, classes, Some(ignore_index as i64)) {
            let message = format!("Target {bad} is out of bounds for {classes} classes.");
            return Err(Error::about(&inputs, ErrorKind::Index, OP, message));
        }
        let lanes = lanes(x, dim)?;
        let one = || Unwritten::of(OP, &sizes, names.clone(), lanes.dtype());
        let out = [one()?, one()?];
        let indices = counted(&indices, ignore_index)?;
        let indices = indices.elements()?;
        let [logsumexp, losses] = dispatch!(lanes.dtype(), float T => {
            let lanes = lanes.elements::<T>()?;
            Unwritten::write_all(out, |out| softmax::cross_entropy(lanes, classes, indices, out))
        }, else unreachable!("checked to be a float"));
        Ok((losses.into_dtype(x.dtype())?, logsumexp))
    }

    /// The lanes along `dim` one after another, in the dtype that kernels compute in.
    #[track_caller]
    pub(super) fn lanes(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        x.unnamed().widened()?.movedim(dim, -1)?.contiguous()
    }

    #[track_caller]
    pub(super) fn indices(target: &NamedTensor) -> Result<NamedTensor> {
        target.unnamed().to(DType::I64)?.contiguous()
    }

    /// The classes, with those that are ignored replaced by an invalid class, which the loops skip.
    #[track_caller]
    pub(super) fn counted(indices: &NamedTensor, ignore_index: isize) -> Result<NamedTensor> {
        match ignore_index < 0 {
            true => Ok(indices.clone()),
            false => indices.masked_fill(&indices.eq(ignore_index as i64)?, -1),
        }
    }
}

/// The gradient of the logits, `g (softmax(x) - onehot(target))`, with `g` the gradient of each loss.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[doc(hidden)]
#[track_caller]
pub fn class_cross_entropy_backward(
    x: &NamedTensor,
    target: &NamedTensor,
    logsumexp: &NamedTensor,
    g: &NamedTensor,
    dim: usize,
    ignore_index: isize,
) -> Result<NamedTensor> {
    let lanes = kernels::lanes(x, dim)?;
    let target = kernels::counted(&kernels::indices(target)?, ignore_index)?;
    let g = g.cast(lanes.dtype())?.contiguous()?;
    let dx = Unwritten::like("class_cross_entropy_backward", &lanes, lanes.dtype())?;
    let (classes, target) = (x.length_of(dim), target.elements()?);
    let dx = dispatch!(lanes.dtype(), float T => {
        let (x, logsumexp, g) = (lanes.elements::<T>()?, logsumexp.elements()?, g.elements()?);
        dx.write(|dx| softmax::cross_entropy_backward(x, classes, target, logsumexp, g, dx))
    }, else unreachable!("checked in the forward pass"));
    dx.into_dtype(x.dtype())?.movedim(-1, dim)
}
