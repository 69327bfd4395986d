//! Cross entropy with class indices over rows, as one op.

use crate::{Kept, Op, Tensor, is_grad_enabled};
use namegrad_core::ops::loss;
use namegrad_core::{DType, NamedTensor, Result};

/// `ln Σ exp logits - logits[target]` of each row; 0, without a gradient, for a row whose target is no class.
///
/// # Shapes
/// - `logits`: `[batch, classes]`
/// - `target`: `[batch]`, of `i64`
/// - result: `[batch]`, of the dtype of the logits, without names
///
/// # Errors
/// [`ErrorKind::Shape`](namegrad_core::ErrorKind::Shape), [`ErrorKind::DType`](namegrad_core::ErrorKind::DType).
#[doc(hidden)]
#[track_caller]
pub fn cross_entropy(logits: &Tensor, target: &NamedTensor) -> Result<Tensor> {
    let (losses, logsumexp) = loss::cross_entropy(logits.value(), target)?;
    let (kept, target) = (Kept::input(logits), target.unnamed());
    Ok(Op::new("cross_entropy", losses.to(logits.dtype())?)
        .input(logits, move |g, cx| {
            let logits = kept.get(cx);
            if is_grad_enabled() {
                return gradient(&logits, &target, g);
            }
            let dx = loss::cross_entropy_backward(logits.value(), &target, &logsumexp, g.value())?;
            Ok(Tensor::constant(dx))
        })
        .output())
}

/// `g (softmax(logits) - onehot(target))`, and 0 in a row whose target is no class.
fn gradient(logits: &Tensor, target: &NamedTensor, g: &Tensor) -> Result<Tensor> {
    let classes = NamedTensor::arange(0, logits.sizes()[1] as i64, 1, DType::I64)?;
    let hit = target.unsqueeze(1)?.eq(&classes)?.to(logits.dtype())?; // [batch, classes]
    let counts = Tensor::constant(hit.sum_keepdim(1)?);
    let slope = logits.softmax(1)?.sub(Tensor::constant(hit))?.mul(&counts)?;
    g.unsqueeze(1)?.mul(&slope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GradCheck, gradcheck, gradgradcheck};

    fn sample() -> Result<(Tensor, NamedTensor)> {
        let numbers: Vec<f64> = (0..12).map(|i| (f64::from(i) * 1.7).sin()).collect();
        let logits = Tensor::from_slice(&numbers, [4, 3])?.requires_grad_(true)?;
        Ok((logits, NamedTensor::from_slice(&[0i64, 2, -100, 1], [4])?))
    }

    #[test]
    fn is_what_log_softmax_gives() -> Result<()> {
        let (logits, target) = sample()?;
        let losses = cross_entropy(&logits, &target)?.to_vec::<f64>()?;
        let log_p = logits.log_softmax(1)?.to_vec::<f64>()?;
        for (row, class) in [(0, Some(0)), (1, Some(2)), (2, None), (3, Some(1))] {
            let expected = class.map_or(0.0, |class: usize| -log_p[row * 3 + class]);
            assert!((losses[row] - expected).abs() < 1e-14);
        }
        Ok(())
    }

    #[test]
    fn derivatives_match_differences() -> Result<()> {
        let (logits, target) = sample()?;
        let f = |inputs: &[Tensor]| cross_entropy(&inputs[0], &target);
        let options = GradCheck::default();
        gradcheck(f, std::slice::from_ref(&logits), options)?;
        gradgradcheck(f, &[logits], options)?;
        Ok(())
    }
}
