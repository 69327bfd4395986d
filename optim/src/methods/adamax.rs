//! Adamax, Adam with a maximum in place of the average of the square.

use super::*;

options! {
    /// Adamax: [`Adam`](crate::Adam) that divides by a decaying maximum of the gradient's magnitude.
    ///
    /// `g` is the gradient, negated if `maximize`, and `t` is the number of the step, from 1:
    ///
    /// ```text
    /// d       = g + weight_decay · param
    /// exp_avg = β₁ · exp_avg + (1 - β₁) · d
    /// exp_inf = max(β₂ · exp_inf, |d| + eps)
    /// param  -= lr · exp_avg / ((1 - β₁ᵗ) · exp_inf)
    /// ```
    ///
    /// # Source
    /// Kingma, Ba, *Adam: A Method for Stochastic Optimization* (arXiv:1412.6980), algorithm 2, in the form
    /// of `torch.optim.Adamax`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Adamax, Optimizer};
    /// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
    /// let mut optimizer = Adamax::builder([weight.clone()]).lr(0.1).build()?;
    /// for _ in 0..200 {
    ///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// }
    /// assert!(weight.tensor().to_vec::<f32>()?.iter().all(|w| w.abs() < 0.1));
    /// # Ok::<(), Error>(())
    /// ```
    Adamax(betas.0)
    AdamaxOptions {
        /// The learning rate, per step.
        lr: f64 = 2e-3 in 0.0.. => "learning rate",
        /// The shares of the average of the gradient and of the maximum that are kept from step to step.
        betas: (f64, f64) = (0.9, 0.999) in 0.0..1.0 => "beta parameter at index {index}",
        /// Added to the magnitude of the gradient, so that the denominator is not 0.
        eps: f64 = 1e-8 in 0.0.. => "epsilon value",
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0 in 0.0..,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] { &["exp_avg", "exp_inf"] }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let (sign, (keep, keep_inf)) = (sign_of(self.maximize), self.betas);
            let size = self.lr / correction(keep, step.number);
            let numbers = [sign, self.weight_decay, keep, 1.0 - keep, keep_inf, self.eps, size];
            step.apply(self, numbers)
        }
    }

    impl Formula<7, 2> |[sign, decay, keep, take, keep_inf, eps, size], p, g, [m, u]| {
        let d = p * decay + g * sign;
        let m = m * keep + d * take;
        let u = (u * keep_inf).maximum(d.abs() + eps);
        (p - size * m / u, [m, u])
    }
}
