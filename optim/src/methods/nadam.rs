//! NAdam, Adam with Nesterov's momentum.

use super::*;

options! {
    /// NAdam: [`Adam`](crate::Adam) that looks ahead along its momentum, as Nesterov's does. The momentum
    /// warms up from about half of `β₁`.
    ///
    /// `g` is the gradient, negated if `maximize`, and `t` is the number of the step, from 1:
    ///
    /// ```text
    /// d          = g + weight_decay · param
    /// exp_avg    = β₁ · exp_avg    + (1 - β₁) · d
    /// exp_avg_sq = β₂ · exp_avg_sq + (1 - β₂) · d²
    /// μₜ         = β₁ · (1 - ½ · 0.96^(t · momentum_decay))
    /// step       = (1 - μₜ) · d / (1 - μ₁ ⋯ μₜ)
    ///              + μₜ₊₁ · exp_avg / (1 - μ₁ ⋯ μₜ₊₁)
    /// param     -= lr · step / (√(exp_avg_sq / (1 - β₂ᵗ)) + eps)
    /// ```
    ///
    /// With `decoupled_weight_decay`, `d = g` and the parameter is first multiplied by
    /// `1 - lr · weight_decay`.
    ///
    /// # Source
    /// Dozat, *Incorporating Nesterov Momentum into Adam* (ICLR 2016 workshop), algorithm 2, in the form of
    /// `torch.optim.NAdam`. The decoupled decay is that of Loshchilov, Hutter (arXiv:1711.05101).
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{NAdam, Optimizer};
    /// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
    /// let mut optimizer = NAdam::builder([weight.clone()]).lr(0.1).build()?;
    /// for _ in 0..200 {
    ///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// }
    /// assert!(weight.tensor().to_vec::<f32>()?.iter().all(|w| w.abs() < 0.1));
    /// # Ok::<(), Error>(())
    /// ```
    NAdam(betas.0)
    NAdamOptions {
        /// The learning rate, per step.
        lr: f64 = 2e-3 in 0.0.. => "learning rate",
        /// The shares of the averages of the gradient and of its square that are kept from step to step.
        betas: (f64, f64) = (0.9, 0.999) in 0.0..1.0 => "beta parameter at index {index}",
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8 in 0.0.. => "epsilon value",
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0 in 0.0..,
        /// The rate at which the momentum approaches `β₁`.
        momentum_decay: f64 = 4e-3 in 0.0..,
        /// Whether `weight_decay` is that of [`AdamW`](crate::AdamW).
        decoupled_weight_decay: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
            const { &[MOMENTS[0], MOMENTS[1], "mu_product"] }
        }

        fn slot_sizes(&self, slot: &str, sizes: &[usize]) -> Vec<usize> {
            if slot == "mu_product" { vec![] } else { sizes.to_vec() }
        }

        fn slot_start(&self, slot: &str) -> f64 { if slot == "mu_product" { 1.0 } else { 0.0 } }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let NAdamOptions { lr, betas, eps, .. } = *self;
            let ParameterStep { number: t, param, grad, slots, .. } = step;
            let [exp_avg, exp_avg_sq, mu_product] = slots.take()?;
            let (mu, next) = (self.momentum_of(t), self.momentum_of(t + 1));
            let product = single(mu_product)? * mu as f32;
            mu_product.fill_(product)?;
            let product = f64::from(product);
            let along_gradient = lr * (1.0 - mu) / (1.0 - product);
            let along_average = lr * next / (1.0 - product * next);
            let root_scale = correction(betas.1, t).recip();
            let decay = decays(lr, self.weight_decay, self.decoupled_weight_decay);
            let moments = moments(self.maximize, decay, betas);
            let numbers = joined(moments, [along_gradient, along_average, root_scale, eps]);
            apply::<_, 11, 2>(self, numbers, param, grad, [exp_avg, exp_avg_sq])
        }
    }

    impl Formula<11, 2> |[moments @ .., along_gradient, along_average, root_scale, eps], p, g, averages| {
        let (p, d, [m, v]) = decayed_and_averaged(moments, p, g, averages);
        (p - (along_gradient * d + along_average * m) / ((v * root_scale).sqrt() + eps), [m, v])
    }
}

impl NAdamOptions {
    /// The momentum in step `t`.
    fn momentum_of(&self, t: u64) -> f64 {
        self.betas.0 * (1.0 - 0.5 * 0.96_f64.powf(t as f64 * self.momentum_decay))
    }
}
