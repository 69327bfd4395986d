//! Losses of probabilities.

use super::*;

/// The reduction of the losses of [`kl_div`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub enum KlReduction {
    /// The mean over all elements, which is PyTorch's default.
    #[default]
    Mean,
    /// The sum divided by the size of the first dim, the batch: the divergence as it is defined.
    #[word = "batchmean"]
    BatchMean,
    /// The sum.
    Sum,
    /// No reduction: one loss for each element.
    None,
}

functional! { probability;
    /// The mean cross entropy `-(target ln x + (1 - target) ln(1 - x))` of probabilities. Logarithms are at
    /// least -100, so that the loss is finite. For the output of a layer,
    /// [`binary_cross_entropy_with_logits`] is more accurate than this loss of a sigmoid.
    ///
    /// # Shapes
    /// - `x`: probabilities, with any dims
    /// - `target`: probabilities, with the dims of `x`
    /// - `weight`: any dims that broadcast to those of `x`; the mean is not divided by their sum
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, target) = (Tensor::new([0.5, 0.9])?, Tensor::new([0.0, 1.0])?);
    /// let loss = F::binary_cross_entropy(&x, &target)?.item::<f64>()?;
    /// assert!((loss + (0.5f64.ln() + 0.9f64.ln()) / 2.0).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a number outside [0, 1] and for the mean of an empty batch,
    /// [`ErrorKind::Shape`] for other sizes, [`ErrorKind::DType`] unless floating-point, and the errors of
    /// the name rule.
    binary_cross_entropy (x, target, weight?; reduction: Reduction = Reduction::Mean) on floats
        names unifies layer BceLoss => {
        check_floats(&[("x", x), ("target", target)])?;
        check_same(("x", x), ("target", target))?;
        check_probabilities("x", x)?;
        check_probabilities("target", target)?;
        let losses = x.bernoulli_cross_entropy(target)?;
        reduction.apply(weighted(losses, weight)?)
    }
    /// The mean [`binary_cross_entropy`] of `sigmoid(logits)`, computed without overflow. Where the target is
    /// 1, the loss is multiplied by `pos_weight`, so that a rare class counts more.
    ///
    /// # Shapes
    /// - `logits`: any dims
    /// - `target`: probabilities, with the dims of `logits`
    /// - `weight`, `pos_weight`: any dims that broadcast to those of `logits`
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let (logits, target) = (Tensor::new([0.0, 2.0])?, Tensor::new([0.0, 1.0])?);
    /// let loss = F::binary_cross_entropy_with_logits(&logits, &target)?;
    /// assert!(loss.allclose(&F::binary_cross_entropy(&logits.sigmoid()?, &target)?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`binary_cross_entropy`], except that the numbers are not checked.
    binary_cross_entropy_with_logits (
        logits, target, weight?, pos_weight?; reduction: Reduction = Reduction::Mean
    ) on floats names unifies layer BceWithLogitsLoss => {
        check_floats(&[("logits", logits), ("target", target)])?;
        check_same(("logits", logits), ("target", target))?;
        let mut log_p = logits.logsigmoid()?;
        if let Some(pos_weight) = pos_weight {
            let factor = weighted(target.clone(), Some(&pos_weight.sub(1)?)).add(1)?;
            log_p = log_p.mul(factor)?;
        }
        // ln(1 - sigmoid(x)) is ln(sigmoid(x)) - x.
        let losses = target.neg().add(1).mul(logits).sub(log_p)?;
        reduction.apply(weighted(losses, weight)?)
    }
    /// The Kullback-Leibler divergence of the distribution `x`, given as logarithms, from the distribution
    /// `target`: `target (ln target - x)`, and 0 where the target is 0. With `log_target`, the target is
    /// given as logarithms too. The default reduction is PyTorch's mean over all elements;
    /// [`KlReduction::BatchMean`] divides by the size of the first dim only.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let target = Tensor::new([[0.5, 0.5], [1.0, 0.0]])?.refine_names(["N", "class"])?;
    /// let x = Tensor::full([("N", 2), ("class", 2)], 0.5f64.ln())?;
    /// let options = KlDivOptions::new().reduction(F::KlReduction::BatchMean);
    /// let divergence = F::kl_div_with(&x, &target, options)?.item::<f64>()?;
    /// assert!((divergence - 2f64.ln() / 2.0).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes differ and neither tensor broadcasts to the other,
    /// [`ErrorKind::Value`] for the mean of an empty batch, [`ErrorKind::DType`] unless floating-point, and
    /// the errors of the name rule.
    kl_div (
        x, target;
        reduction: KlReduction = KlReduction::Mean, log_target: bool = false
    ) on floats names unifies layer KlDivLoss => {
        check_pair(x, target)?;
        check_floats(&[("x", x)])?;
        let losses = match log_target {
            true => target.exp().mul(target.sub(x)?)?,
            false => target.xlogy(target).sub(target.mul(x)?)?,
        };
        match reduction {
            KlReduction::Mean => Reduction::Mean.apply(losses),
            KlReduction::Sum => losses.sum(..),
            KlReduction::None => Ok(losses),
            KlReduction::BatchMean => {
                let batch = x.sizes().first().copied().unwrap_or(1);
                Reduction::Mean.check_not_empty(batch)?;
                losses.sum(..).div(batch)
            }
        }
    }
}

/// Checks that all elements are in [0, 1]; NaN is not.
fn check_probabilities(name: &str, x: &Tensor) -> Result<()> {
    let x = x.detach();
    let inside = x.ge(0).logical_and(x.le(1)?)?;
    if inside.numbers()?.is_true_everywhere()? {
        return Ok(());
    }
    let at = inside.to_vec::<bool>()?.iter().position(|inside| !inside).unwrap_or(0);
    let value = x.reshape([-1]).select(0, at).item::<f64>()?;
    let place = position(&x, at);
    Err(value_error(format_args!(
        "all elements of {name} should be between 0 and 1, and it has {value}{place}"
    )))
}
