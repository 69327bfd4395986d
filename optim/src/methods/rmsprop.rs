//! RMSprop, optionally centered and with momentum.

use super::*;

options! {
    /// RMSprop: divides the gradient by the root of a moving average of its square.
    ///
    /// `g` is the gradient, negated if `maximize`:
    ///
    /// ```text
    /// d          = g + weight_decay · param
    /// square_avg = alpha · square_avg + (1 - alpha) · d²
    /// step       = d / (√square_avg + eps)
    /// param     -= lr · step
    /// ```
    ///
    /// If `centered`, the root is `√(square_avg - grad_avg²)`, a standard deviation, where `grad_avg` is the
    /// moving average of `d`. With a momentum, the last line is
    ///
    /// ```text
    /// momentum_buffer = momentum · momentum_buffer + step
    /// param          -= lr · momentum_buffer
    /// ```
    ///
    /// # Source
    /// Tieleman, Hinton, *Neural Networks for Machine Learning* (2012), lecture 6.5, and for `centered`
    /// Graves, *Generating Sequences With Recurrent Neural Networks* (arXiv:1308.0850), equations 38 to 40,
    /// both in the form of `torch.optim.RMSprop`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Optimizer, RmsProp};
    /// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
    /// let mut optimizer = RmsProp::builder([weight.clone()]).lr(0.02).momentum(0.5).build()?;
    /// for _ in 0..300 {
    ///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// }
    /// assert!(weight.tensor().to_vec::<f32>()?.iter().all(|w| w.abs() < 0.1));
    /// # Ok::<(), Error>(())
    /// ```
    RmsProp(momentum)
    RmsPropOptions {
        /// The learning rate, per step.
        lr: f64 = 1e-2 in 0.0.. => "learning rate",
        /// The share of the averages that is kept from step to step.
        alpha: f64 = 0.99 in 0.0..,
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8 in 0.0.. => "epsilon value",
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0 in 0.0..,
        /// The share of the momentum buffer that is kept from step to step; 0 for no momentum.
        momentum: f64 = 0.0 in 0.0..,
        /// Whether to divide by the standard deviation of the gradient.
        centered: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
            match (self.momentum > 0.0, self.centered) {
                (false, false) => &["square_avg"],
                (true, false) => &["square_avg", "momentum_buffer"],
                (false, true) => &["square_avg", "grad_avg"],
                (true, true) => &["square_avg", "grad_avg", "momentum_buffer"],
            }
        }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let (sign, keep) = (sign_of(self.maximize), self.alpha);
            let RmsPropOptions { lr, eps, weight_decay, momentum, .. } = *self;
            let numbers = [sign, weight_decay, lr, keep, 1.0 - keep, eps, momentum];
            match (momentum > 0.0, self.centered) {
                (false, false) => step.apply::<_, 7, 1>(&RmsPropFormula::<false>, numbers),
                (true, false) => step.apply::<_, 7, 2>(&RmsPropFormula::<false>, numbers),
                (false, true) => step.apply::<_, 7, 2>(&RmsPropFormula::<true>, numbers),
                (true, true) => step.apply::<_, 7, 3>(&RmsPropFormula::<true>, numbers),
            }
        }
    }
}

/// The states are the average of the square, that of the direction if `CENTERED`, and the momentum if there is
/// one more.
struct RmsPropFormula<const CENTERED: bool>;

impl<const CENTERED: bool, const N: usize> Formula<7, N> for RmsPropFormula<CENTERED> {
    #[inline(always)]
    fn apply<T: Real>(numbers: [T; 7], p: T, g: T, mut states: [T; N]) -> (T, [T; N]) {
        let [sign, decay, lr, keep, take, eps, momentum] = numbers;
        let d = p * decay + g * sign;
        states[0] = states[0] * keep + d * d * take;
        let mut variance = states[0];
        if CENTERED {
            states[1] = states[1] * keep + d * take;
            // Rounding does not make the variance negative.
            variance = (variance - states[1] * states[1]).maximum(T::ZERO);
        }
        let mut step = d / (variance.sqrt() + eps);
        if N > 1 + CENTERED as usize {
            states[N - 1] = states[N - 1] * momentum + step;
            step = states[N - 1];
        }
        (p - lr * step, states)
    }
}
