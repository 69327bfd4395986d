//! Adadelta, which needs no learning rate.

use super::*;

options! {
    /// Adadelta: scales the gradient by the size of recent steps over that of recent gradients.
    ///
    /// `g` is the gradient, negated if `maximize`:
    ///
    /// ```text
    /// d          = g + weight_decay · param
    /// square_avg = rho · square_avg + (1 - rho) · d²
    /// step       = √(acc_delta + eps) / √(square_avg + eps) · d
    /// acc_delta  = rho · acc_delta + (1 - rho) · step²
    /// param     -= lr · step
    /// ```
    ///
    /// # Source
    /// Zeiler, *ADADELTA: An Adaptive Learning Rate Method* (arXiv:1212.5701), algorithm 1, in the form of
    /// `torch.optim.Adadelta`, which adds `lr`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Adadelta, Optimizer};
    /// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
    /// let mut optimizer = Adadelta::builder([weight.clone()]).lr(10.0).build()?;
    /// for _ in 0..300 {
    ///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// }
    /// assert!(weight.tensor().to_vec::<f32>()?.iter().all(|w| w.abs() < 0.1));
    /// # Ok::<(), Error>(())
    /// ```
    Adadelta
    AdadeltaOptions {
        /// A factor of each step.
        lr: f64 = 1.0 in 0.0.. => "learning rate",
        /// The share of the averages that is kept from step to step.
        rho: f64 = 0.9 in 0.0..=1.0,
        /// Added under both roots.
        eps: f64 = 1e-6 in 0.0.. => "epsilon value",
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0 in 0.0..,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] { &["square_avg", "acc_delta"] }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let (sign, rho) = (sign_of(self.maximize), self.rho);
            let numbers = [sign, self.weight_decay, self.lr, rho, 1.0 - rho, self.eps];
            step.apply(self, numbers)
        }
    }

    impl Formula<6, 2> |[sign, decay, lr, rho, take, eps], p, g, [square, delta]| {
        let d = p * decay + g * sign;
        let square = square * rho + d * d * take;
        let step = (delta + eps).sqrt() / (square + eps).sqrt() * d;
        (p - lr * step, [square, delta * rho + step * step * take])
    }
}
