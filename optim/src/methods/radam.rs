//! RAdam, Adam whose first steps are rectified.

use super::*;

options! {
    /// RAdam: [`Adam`](crate::Adam) whose step is shortened while the average of the square is of few
    /// gradients, which takes the place of a warmup.
    ///
    /// `g` is the gradient, negated if `maximize`, and `t` is the number of the step, from 1:
    ///
    /// ```text
    /// d          = g + weight_decay · param
    /// exp_avg    = β₁ · exp_avg    + (1 - β₁) · d
    /// exp_avg_sq = β₂ · exp_avg_sq + (1 - β₂) · d²
    /// ρ∞         = 2 / (1 - β₂) - 1
    /// ρₜ         = ρ∞ - 2 t β₂ᵗ / (1 - β₂ᵗ)
    /// r          = √((ρₜ - 4) (ρₜ - 2) ρ∞ / ((ρ∞ - 4) (ρ∞ - 2) ρₜ))
    /// param     -= lr · exp_avg / (1 - β₁ᵗ) · r · √(1 - β₂ᵗ) / (√exp_avg_sq + eps)
    /// ```
    ///
    /// While `ρₜ ≤ 5`, which takes the first 5 steps with the default `β₂`, the last line is
    /// `param -= lr · exp_avg / (1 - β₁ᵗ)`. With `decoupled_weight_decay`, `d = g` and the parameter is
    /// first multiplied by `1 - lr · weight_decay`.
    ///
    /// # Source
    /// Liu et al., *On the Variance of the Adaptive Learning Rate and Beyond* (arXiv:1908.03265), algorithm
    /// 2, in the form of `torch.optim.RAdam`, which rectifies from `ρₜ > 5` instead of 4.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Optimizer, RAdam};
    /// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
    /// let mut optimizer = RAdam::builder([weight.clone()]).lr(0.1).build()?;
    /// for _ in 0..300 {
    ///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// }
    /// assert!(weight.tensor().to_vec::<f32>()?.iter().all(|w| w.abs() < 0.1));
    /// # Ok::<(), Error>(())
    /// ```
    RAdam(betas.0)
    RAdamOptions {
        /// The learning rate, per step.
        lr: f64 = 1e-3 in 0.0.. => "learning rate",
        /// The shares of the averages of the gradient and of its square that are kept from step to step.
        betas: (f64, f64) = (0.9, 0.999) in 0.0..1.0 => "beta parameter at index {index}",
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8 in 0.0.. => "epsilon value",
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0 in 0.0..,
        /// Whether `weight_decay` is that of [`AdamW`](crate::AdamW).
        decoupled_weight_decay: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] { &MOMENTS }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let (lr, betas, t) = (self.lr, self.betas, step.number);
            let decay = decays(lr, self.weight_decay, self.decoupled_weight_decay);
            let moments = moments(self.maximize, decay, betas);
            let size = lr / correction(betas.0, t);
            let Some(r) = self.rectification(t) else {
                return step.apply::<_, 8, 2>(self, joined(moments, [size]));
            };
            let size = size * r * correction(betas.1, t).sqrt();
            // Adam's step with another size. The root has no scale.
            step.apply::<_, 10, 2>(&AdamOptions::new(), joined(moments, [size, 1.0, self.eps]))
        }
    }

    // A step along the average.
    impl Formula<8, 2> |[moments @ .., size], p, g, averages| {
        let (p, _, [m, v]) = decayed_and_averaged(moments, p, g, averages);
        (p - size * m, [m, v])
    }
}

impl RAdamOptions {
    /// The rectification in step `t`, if there are enough gradients in the average of the square.
    fn rectification(&self, t: u64) -> Option<f64> {
        let keep = self.betas.1;
        let whole = 2.0 / (1.0 - keep) - 1.0;
        let now = whole - 2.0 * t as f64 * keep.powf(t as f64) / correction(keep, t);
        (now > 5.0)
            .then(|| ((now - 4.0) * (now - 2.0) * whole / ((whole - 4.0) * (whole - 2.0) * now)).sqrt())
    }
}
