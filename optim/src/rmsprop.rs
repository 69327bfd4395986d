//! RMSprop, optionally centered and with momentum.

use crate::formula::{Formula, sign_of};
use crate::method::ParameterStep;
use crate::rows::optimizer;
use namegrad_core::Result;
use namegrad_core::cpu::math::Real;

optimizer! {
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
                (false, false) => step.apply(RmsPropFormula, numbers),
                (true, false) => step.apply(MomentumFormula, numbers),
                (false, true) => step.apply(CenteredFormula, numbers),
                (true, true) => step.apply(CenteredMomentumFormula, numbers),
            }
        }
    }
}

struct RmsPropFormula;

impl Formula<7, 1> for RmsPropFormula {
    #[inline(always)]
    fn apply<T: Real>(numbers: [T; 7], p: T, g: T, [square]: [T; 1]) -> (T, [T; 1]) {
        let [sign, decay, lr, keep, take, eps, _] = numbers;
        let (step, square) = scaled([keep, take, eps], p * decay + g * sign, square);
        (p - lr * step, [square])
    }
}

struct MomentumFormula;

impl Formula<7, 2> for MomentumFormula {
    #[inline(always)]
    fn apply<T: Real>(numbers: [T; 7], p: T, g: T, [square, buffer]: [T; 2]) -> (T, [T; 2]) {
        let [sign, decay, lr, keep, take, eps, momentum] = numbers;
        let (step, square) = scaled([keep, take, eps], p * decay + g * sign, square);
        let buffer = buffer * momentum + step;
        (p - lr * buffer, [square, buffer])
    }
}

struct CenteredFormula;

impl Formula<7, 2> for CenteredFormula {
    #[inline(always)]
    fn apply<T: Real>(numbers: [T; 7], p: T, g: T, averages: [T; 2]) -> (T, [T; 2]) {
        let [sign, decay, lr, keep, take, eps, _] = numbers;
        let (step, averages) = standardized([keep, take, eps], p * decay + g * sign, averages);
        (p - lr * step, averages)
    }
}

struct CenteredMomentumFormula;

impl Formula<7, 3> for CenteredMomentumFormula {
    #[inline(always)]
    fn apply<T: Real>(numbers: [T; 7], p: T, g: T, [square, mean, buffer]: [T; 3]) -> (T, [T; 3]) {
        let [sign, decay, lr, keep, take, eps, momentum] = numbers;
        let (step, [square, mean]) = standardized([keep, take, eps], p * decay + g * sign, [square, mean]);
        let buffer = buffer * momentum + step;
        (p - lr * buffer, [square, mean, buffer])
    }
}

/// The direction divided by the root of the average of its square, and that average.
#[inline(always)]
fn scaled<T: Real>([keep, take, eps]: [T; 3], d: T, square: T) -> (T, T) {
    let square = square * keep + d * d * take;
    (d / (square.sqrt() + eps), square)
}

/// The direction divided by its standard deviation, and the averages of its square and of itself. Rounding
/// does not make the variance negative.
#[inline(always)]
fn standardized<T: Real>([keep, take, eps]: [T; 3], d: T, [square, mean]: [T; 2]) -> (T, [T; 2]) {
    let square = square * keep + d * d * take;
    let mean = mean * keep + d * take;
    (d / ((square - mean * mean).maximum(T::ZERO).sqrt() + eps), [square, mean])
}
