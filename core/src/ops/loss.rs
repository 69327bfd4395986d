//! Cross entropy with class indices in one pass, forward and backward: what `namegrad::nn::functional::cross_entropy` runs on.

use crate::cpu::rows;
use crate::dtype::{DType, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::names::Names;
use crate::shape::Shape;
use crate::tensor::NamedTensor;
use smallvec::smallvec;

/// `logsumexp(logits) - logits[target]` of each row, and the `logsumexp`, which [`cross_entropy_backward`] takes.
///
/// A row whose target is not a class has loss 0: the caller checks targets, or means them to be ignored.
///
/// # Shapes
/// - `logits`: `[batch, classes]`, of a floating point dtype
/// - `target`: `[batch]`, of `i64`
/// - results: `[batch]`, in `f32` for half types
///
/// # Errors
/// [`ErrorKind::Shape`], [`ErrorKind::DType`].
#[track_caller]
pub fn cross_entropy(logits: &NamedTensor, target: &NamedTensor) -> Result<(NamedTensor, NamedTensor)> {
    const OP: &str = "cross_entropy";
    let fits = logits.ndim() == 2 && target.ndim() == 1 && logits.sizes()[0] == target.sizes()[0];
    if !fits {
        let message = "expected logits of sizes [batch, classes] and a target of [batch]";
        return Err(
            Error::new(ErrorKind::Shape, OP, message).with_operands([logits.extents(), target.extents()])
        );
    }
    if !logits.dtype().is_floating_point() || target.dtype() != DType::I64 {
        let message = format!(
            "expected floating point logits and an i64 target, got {} and {}",
            logits.dtype(),
            target.dtype()
        );
        return Err(Error::new(ErrorKind::DType, OP, message));
    }
    let (x, target) = (logits.widened()?.contiguous()?, target.contiguous()?);
    let shape = || Shape { sizes: smallvec![x.sizes()[0]], names: Names::none() };
    let mut losses = NamedTensor::uninit(OP, shape(), x.dtype())?;
    let mut logsumexp = NamedTensor::uninit(OP, shape(), x.dtype())?;
    dispatch!(x.dtype(), float T => {
        // SAFETY: fresh, of dtype T; the kernel writes each element before it reads it.
        let (losses, logsumexp) = unsafe { (losses.unwritten_mut::<T>(), logsumexp.unwritten_mut::<T>()) };
        rows::cross_entropy(x.as_slice::<T>()?, x.sizes()[1], target.as_slice()?, logsumexp, losses);
    }, else unreachable!("checked to be a float"));
    Ok((losses, logsumexp))
}

/// The gradient of the logits, `g (softmax(logits) - onehot(target))`, with `g` the gradient of each row's loss.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn cross_entropy_backward(
    logits: &NamedTensor,
    target: &NamedTensor,
    logsumexp: &NamedTensor,
    g: &NamedTensor,
) -> Result<NamedTensor> {
    let (x, target) = (logits.widened()?.contiguous()?, target.contiguous()?);
    let g = g.cast(x.dtype())?.contiguous()?;
    let mut dx = x.unwritten_like("cross_entropy_backward", x.dtype())?;
    dispatch!(x.dtype(), float T => {
        rows::cross_entropy_backward(
            x.as_slice::<T>()?,
            x.sizes()[1],
            target.as_slice()?,
            logsumexp.as_slice::<T>()?,
            g.as_slice::<T>()?,
            // SAFETY: fresh, of dtype T; the kernel writes each element before it reads it.
            unsafe { dx.unwritten_mut::<T>() },
        );
    }, else unreachable!("checked in the forward pass"));
    dx.into_dtype(logits.dtype())
}
