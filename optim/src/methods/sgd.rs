//! Stochastic gradient descent with momentum.

use super::*;

options! {
    /// Stochastic gradient descent, optionally with momentum.
    ///
    /// `g` is the gradient, negated if `maximize`, and `b` the momentum buffer, which is `d` in the first
    /// step:
    ///
    /// ```text
    /// d      = g + weight_decay · param
    /// b      = momentum · b + (1 - dampening) · d
    /// param -= lr · b                       or, with nesterov,  lr · (d + momentum · b)
    /// ```
    ///
    /// # Source
    /// Sutskever, Martens, Dahl, Hinton, *On the importance of initialization and momentum in deep learning*
    /// (ICML 2013), in the form of `torch.optim.SGD`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Optimizer, Sgd};
    /// let weight = Parameter::new(Tensor::new(1.0)?)?;
    /// let mut optimizer = Sgd::builder([weight.clone()]).lr(0.25).momentum(0.5).build()?;
    /// for expected in [0.75, 0.375] {
    ///     optimizer.zero_grad();
    ///     weight.tensor().sum(..)?.backward()?; // its gradient is 1
    ///     optimizer.step()?;
    ///     assert_eq!(weight.tensor().item::<f64>()?, expected);
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    Sgd(momentum)
    SgdOptions {
        /// The learning rate, per step.
        lr: f64 = 1e-3 in 0.0.. => "learning rate",
        /// The share of the momentum buffer that is kept from step to step; 0 for no momentum.
        momentum: f64 = 0.0 in 0.0..,
        /// The share of the gradient that does not enter the momentum buffer.
        dampening: f64 = 0.0 in f64::MIN..=f64::MAX,
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0 in 0.0..,
        /// Whether to use Nesterov's form, which looks ahead along the momentum.
        nesterov: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn check(&self) -> Result<()> {
            let fits = !self.nesterov || (self.momentum != 0.0 && self.dampening == 0.0);
            Error::ensure(fits, ErrorKind::Value, Self::NAME, || {
                "Nesterov momentum requires a momentum and zero dampening"
            })
        }

        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
            if self.momentum == 0.0 { &[] } else { &["momentum_buffer"] }
        }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let SgdOptions { lr, momentum, dampening, weight_decay, nesterov, maximize } = *self;
            // In the first step the momentum buffer becomes the gradient itself, undampened.
            let (keep, take) = if step.fresh { (0.0, 1.0) } else { (momentum, 1.0 - dampening) };
            let numbers = [sign_of(maximize), weight_decay, lr, keep, take, momentum];
            match (momentum == 0.0, nesterov) {
                (true, _) => step.apply::<_, 6, 0>(&SgdFormula::<false>, numbers),
                (false, false) => step.apply::<_, 6, 1>(&SgdFormula::<false>, numbers),
                (false, true) => step.apply::<_, 6, 1>(&SgdFormula::<true>, numbers),
            }
        }
    }
}

/// The state is the momentum, if there is one.
struct SgdFormula<const NESTEROV: bool>;

impl<const NESTEROV: bool, const N: usize> Formula<6, N> for SgdFormula<NESTEROV> {
    #[inline(always)]
    fn apply<T: Real>(numbers: [T; 6], p: T, g: T, mut states: [T; N]) -> (T, [T; N]) {
        let [sign, decay, lr, keep, take, momentum] = numbers;
        let d = p * decay + g * sign;
        if N == 0 {
            return (p - lr * d, states);
        }
        states[0] = states[0] * keep + d * take;
        (p - lr * if NESTEROV { d + states[0] * momentum } else { states[0] }, states)
    }
}
