//! Lion, which steps along the sign of its momentum.

use super::*;

options! {
    /// Lion: every element moves by `lr`, along the sign of a mix of the momentum and the gradient. The
    /// weight decay is decoupled.
    ///
    /// `g` is the gradient, negated if `maximize`:
    ///
    /// ```text
    /// c       = β₁ · exp_avg + (1 - β₁) · g
    /// param   = param · (1 - lr · weight_decay) - lr · sign(c)
    /// exp_avg = β₂ · exp_avg + (1 - β₂) · g
    /// ```
    ///
    /// The step is longer than that of [`AdamW`](crate::AdamW): the paper suggests an `lr` 3 to 10 times
    /// smaller, and a `weight_decay` larger by the same factor.
    ///
    /// # Source
    /// Chen et al., *Symbolic Discovery of Optimization Algorithms* (arXiv:2302.06675), algorithm 2. PyTorch
    /// does not have it; the defaults are those of the authors' code.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Lion, Optimizer};
    /// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
    /// let mut optimizer = Lion::builder([weight.clone()]).lr(0.5).build()?;
    /// optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// assert_eq!(weight.tensor().to_vec::<f32>()?, [3.5, -2.5]);
    /// # Ok::<(), Error>(())
    /// ```
    Lion(betas.0)
    LionOptions {
        /// The learning rate, per step.
        lr: f64 = 1e-4 in 0.0.. => "learning rate",
        /// The shares of the momentum in the step, and of what is kept of it from step to step.
        betas: (f64, f64) = (0.9, 0.99) in 0.0..1.0 => "beta parameter at index {index}",
        /// The share by which the parameter shrinks in each step, times `lr`.
        weight_decay: f64 = 0.0 in 0.0..,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] { &["exp_avg"] }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let (mix, keep) = self.betas;
            let shrink = 1.0 - self.lr * self.weight_decay;
            let numbers = [sign_of(self.maximize), shrink, self.lr, mix, 1.0 - mix, keep, 1.0 - keep];
            step.apply(self, numbers)
        }
    }

    impl Formula<7, 1> |[ascend, shrink, lr, mix, mix_in, keep, take], p, g, [m]| {
        let d = g * ascend;
        (p * shrink - lr * sign(m * mix + d * mix_in), [m * keep + d * take])
    }
}
