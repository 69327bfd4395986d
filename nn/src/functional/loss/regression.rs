//! Losses of numbers: how far an estimate is from its target.

use super::*;
use std::f64::consts::TAU;

functional! { regression;
    /// The mean of `(x - target)²`.
    ///
    /// Numbers and dims of size one broadcast, but only to the sizes of the other tensor: `[5, 1]` and `[5]`
    /// would give 25 differences instead of 5, so that is an error. With a `weight`, which has the sizes of
    /// `x`, the mean is weighted.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0], [3.0]])?.refine_names(["N", "out"])?;
    /// let target = Tensor::new([0.0, 1.0])?.refine_names(["N"])?;
    /// assert!(F::mse_loss(&x, &target).is_err());
    /// assert_eq!(F::mse_loss(&x.squeeze("out")?, &target)?.item::<f64>()?, 2.5);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes differ and neither tensor broadcasts to the other,
    /// [`ErrorKind::Value`] for the mean of an empty batch, and the errors of the name rule.
    mse_loss (x, target, weight?; reduction: Reduction = Reduction::Mean) on floats integers
        names unifies layer MseLoss => {
        check_pair(x, target)?;
        by_weight(x, x.sub(target).square()?, weight, reduction)
    }
    /// The mean of `|x - target|`. Broadcasting and `weight` work as in [`mse_loss`]; the derivative is 0
    /// where both are equal.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, target) = (Tensor::new([1.0, 3.0])?, Tensor::new([0.0, 5.0])?);
    /// assert_eq!(F::l1_loss(&x, &target)?.item::<f64>()?, 1.5);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`mse_loss`].
    l1_loss (x, target, weight?; reduction: Reduction = Reduction::Mean) on floats integers
        names unifies layer L1Loss => {
        check_pair(x, target)?;
        by_weight(x, x.sub(target).abs()?, weight, reduction)
    }
    /// With `d = |x - target|`, the mean of `d² / (2 beta)` where `d < beta`, and `d - beta / 2` elsewhere:
    /// an [`l1_loss`] that is round at 0. With a `beta` of 0 it is the [`l1_loss`]. Broadcasting works as in
    /// [`mse_loss`].
    ///
    /// # Source
    /// Girshick, *Fast R-CNN* (2015), equation 3.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, target) = (Tensor::new([0.5, 3.0])?, Tensor::new([0.0, 0.0])?);
    /// let each = SmoothL1LossOptions::new().reduction(F::Reduction::None);
    /// assert_eq!(F::smooth_l1_loss_with(&x, &target, each)?.to_vec::<f32>()?, [0.125, 2.5]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`mse_loss`]; [`ErrorKind::Value`] for a negative `beta`.
    smooth_l1_loss (x, target; reduction: Reduction = Reduction::Mean, beta: f64 = 1.0) on floats
        names unifies layer SmoothL1Loss => {
        (beta >= 0.0).or_value(format_args!("beta cannot be negative, got {beta}"))?;
        check_pair(x, target)?;
        check_floats(&[("x", x)])?;
        let distance = x.sub(target).abs()?;
        if beta == 0.0 {
            return reduction.apply(distance);
        }
        let near = distance.clamp_max(beta)?;
        // In this order, because the product of a distance and `beta` may overflow.
        reduction.apply(near.div(beta).mul(distance.sub(near.mul(0.5)?)?)?)
    }
    /// With `d = |x - target|`, the mean of `d² / 2` where `d < delta`, and `delta (d - delta / 2)`
    /// elsewhere: `delta` times [`smooth_l1_loss`]. The losses are multiplied by `weight`, which has the
    /// sizes of `x`; the mean divides by their number, as in PyTorch.
    ///
    /// # Source
    /// Huber, *Robust Estimation of a Location Parameter* (1964).
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, target) = (Tensor::new([0.5, 3.0])?, Tensor::new([0.0, 0.0])?);
    /// let options = HuberLossOptions::new().delta(2.0).reduction(F::Reduction::None);
    /// assert_eq!(F::huber_loss_with(&x, &target, options)?.to_vec::<f32>()?, [0.125, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`mse_loss`]; [`ErrorKind::Value`] unless `delta` is positive.
    huber_loss (x, target, weight?; reduction: Reduction = Reduction::Mean, delta: f64 = 1.0) on floats
        names unifies layer HuberLoss => {
        check_positive("delta", delta)?;
        check_pair(x, target)?;
        check_floats(&[("x", x)])?;
        let distance = x.sub(target).abs()?;
        let near = distance.clamp_max(delta)?;
        let losses = near.mul(distance.sub(near.mul(0.5)?)?)?;
        if let Some(weight) = weight {
            check_same(("x", x), ("weight", weight))?;
        }
        reduction.apply(weighted(losses, weight)?)
    }
    /// The mean negative log likelihood of counts `target` with the Poisson distribution whose mean is `e^x`:
    /// `e^x - target x`, or with `log_input` false, whose mean is `x`: `x - target ln(x + eps)`. With `full`,
    /// the logarithm of the factorial of a target above 1 is added, by Stirling's formula
    /// `t ln t - t + ln(2πt) / 2`. Broadcasting works as in [`mse_loss`].
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let rate = Tensor::new([0.0, 1.0])?;
    /// let loss = F::poisson_nll_loss(&rate, &Tensor::new([1.0, 2.0])?)?;
    /// assert!((loss.item::<f64>()? - (1.0 + 1f64.exp() - 2.0) / 2.0).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`mse_loss`].
    poisson_nll_loss (
        x, target;
        log_input: bool = true, full: bool = false, eps: f64 = 1e-8, reduction: Reduction = Reduction::Mean
    ) on floats integers names unifies layer PoissonNllLoss => {
        check_pair(x, target)?;
        let mut losses = match log_input {
            true => x.exp().sub(target.mul(x)?)?,
            false => x.sub(target.mul(x.add(eps).log()?)?)?,
        };
        if full {
            // Filled before the logarithm, whose gradient would be NaN even where it does not count.
            let few = target.le(1)?;
            let target = target.masked_fill(&few, 1)?;
            let stirling = target.mul(target.log()?).sub(&target).add(target.mul(TAU).log().mul(0.5)?)?;
            losses = losses.add(stirling.masked_fill(&few, 0)?)?;
        }
        reduction.apply(losses)
    }
    /// The mean negative log likelihood of `target` with normal distributions of mean `x` and variance `var`:
    /// `(ln v + (x - target)² / v) / 2`, where `v` is `var` or, where that is less, `eps`. With `full`,
    /// `ln(2π) / 2` is added.
    ///
    /// # Shapes
    /// - `x`, `target`: any dims; broadcasting works as in [`mse_loss`]
    /// - `var`: a number, or the dims of `x`, of which the last may be missing, or one may have size 1
    ///
    /// # Source
    /// Nix, Weigend, *Estimating the Mean and Variance of the Target Probability Distribution* (1994).
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, target) = (Tensor::new([1.0, 3.0])?, Tensor::new([0.0, 5.0])?);
    /// let var = Tensor::new([1.0, 4.0])?;
    /// let loss = F::gaussian_nll_loss(&x, &target, &var)?.item::<f64>()?;
    /// assert!((loss - (1.0 + 4f64.ln() + 1.0) / 4.0).abs() < 1e-6);
    /// assert_eq!(F::gaussian_nll_loss(&x, &target, 1.0)?.item::<f64>()?, 1.25);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`mse_loss`]; [`ErrorKind::Value`] for a negative variance, [`ErrorKind::Shape`] for one of
    /// other sizes.
    gaussian_nll_loss (
        x, target, var: Operand;
        full: bool = false, eps: f64 = 1e-6, reduction: Reduction = Reduction::Mean
    ) on floats integers names unifies layer GaussianNllLoss => {
        check_pair(x, target)?;
        (var.detach().lt(0).logical_not()?.numbers()?.is_true_everywhere()?).or_value("var has negative entries")?;
        let var = spread_variance(x, var)?;
        // The gradient of a variance that is too small is that of the limit, so it can grow again.
        let small = var.detach().lt(eps)?;
        let var = small.choose(var.sub(var.detach()).add(eps)?, &var)?;
        let mut losses = x.sub(target).square().div(&var).add(var.log()?).mul(0.5)?;
        if full {
            losses = losses.add(TAU.ln() / 2.0)?;
        }
        reduction.apply(losses)
    }
}

/// The losses of `x` times their weights. The mean is divided by the sum of the weights.
fn by_weight(x: &Tensor, losses: Tensor, weight: Option<&Tensor>, reduction: Reduction) -> Result<Tensor> {
    let Some(weight) = weight else { return reduction.apply(losses) };
    check_same(("x", x), ("weight", weight))?;
    reduction.apply_by(weighted(losses, Some(weight))?, &|sum| sum.div(weight.sum(..)?))
}

/// The variance with a dim for each dim of `x`.
fn spread_variance(x: &Tensor, var: &Tensor) -> Result<Tensor> {
    let (own, wanted) = (var.sizes(), x.sizes());
    let mut apart = own.iter().zip(wanted).filter(|(own, wanted)| own != wanted);
    let is_spread = apart.next().is_none_or(|(own, _)| *own == 1) && apart.next().is_none();
    if var.value().is_number() || own.len() == wanted.len() && is_spread {
        return Ok(var.clone());
    }
    wanted.split_last().is_some_and(|(_, rest)| own == rest).or_shape(format_args!(
        "var has sizes {own:?}, and must have those of x, {wanted:?}, of which the last may be missing or one may be 1"
    ))?;
    var.unsqueeze(-1)
}
