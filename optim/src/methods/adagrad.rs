//! Adagrad, gradient descent with a learning rate for each element that falls with the gradients seen.

use super::*;

options! {
    /// Adagrad: divides the gradient by the root of the sum of its squares so far.
    ///
    /// `g` is the gradient, negated if `maximize`, and `t` is the number of the step, from 1. `sum` starts
    /// with `initial_accumulator_value`:
    ///
    /// ```text
    /// d      = g + weight_decay · param
    /// sum   += d²
    /// param -= lr / (1 + (t - 1) · lr_decay) · d / (√sum + eps)
    /// ```
    ///
    /// # Source
    /// Duchi, Hazan, Singer, *Adaptive Subgradient Methods for Online Learning and Stochastic Optimization*
    /// (JMLR 12, 2011), in the form of `torch.optim.Adagrad`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Adagrad, Optimizer};
    /// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
    /// let mut optimizer = Adagrad::builder([weight.clone()]).lr(1.0).build()?;
    /// for _ in 0..100 {
    ///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// }
    /// assert!(weight.tensor().to_vec::<f32>()?.iter().all(|w| w.abs() < 0.1));
    /// # Ok::<(), Error>(())
    /// ```
    Adagrad
    AdagradOptions {
        /// The learning rate, per step.
        lr: f64 = 1e-2 in 0.0.. => "learning rate",
        /// The decay of the learning rate.
        lr_decay: f64 = 0.0 in 0.0..,
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0 in 0.0..,
        /// The initial value of the sums.
        initial_accumulator_value: f64 = 0.0 in 0.0..,
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-10 in 0.0.. => "epsilon value",
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] { &["sum"] }

        fn slot_start(&self, _slot: &str) -> f64 { self.initial_accumulator_value }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let lr = self.lr / (1.0 + (step.number - 1) as f64 * self.lr_decay);
            step.apply(self, [sign_of(self.maximize), self.weight_decay, lr, self.eps])
        }
    }

    impl Formula<4, 1> |[sign, decay, lr, eps], p, g, [sum]| {
        let d = p * decay + g * sign;
        let sum = sum + d * d;
        (p - lr * d / (sum.sqrt() + eps), [sum])
    }
}
