//! Stochastic gradient descent with momentum.

use crate::direction::Direction;
use crate::hyperparameters::{Formula, optimizer};
use crate::method::{Checks, Turn};
use namegrad_core::Result;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::Update;

optimizer! {
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
        lr: f64 = 1e-3,
        /// How much of the momentum buffer is kept from step to step; 0 for no momentum.
        momentum: f64 = 0.0,
        /// How much of the gradient does not enter the momentum buffer.
        dampening: f64 = 0.0,
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0,
        /// Whether to use Nesterov's form, which looks ahead along the momentum.
        nesterov: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }
}

impl Formula for SgdOptions {
    #[track_caller]
    fn check_as(&self, name: &'static str) -> Result<()> {
        let checks = Checks(name);
        checks.none_negative(&[
            ("learning rate", self.lr),
            ("momentum value", self.momentum),
            ("weight_decay value", self.weight_decay),
        ])?;
        let ahead = self.momentum > 0.0 && self.dampening == 0.0;
        checks.require(ahead || !self.nesterov, || {
            "Nesterov momentum requires a momentum and zero dampening".into()
        })?;
        checks
            .require(self.dampening.is_finite(), || format!("Invalid dampening value: {:?}", self.dampening))
    }

    fn tensors(&self, _sizes: &[usize]) -> &'static [&'static str] {
        if self.momentum == 0.0 { &[] } else { &["momentum_buffer"] }
    }

    fn advance(&self, turn: Turn<'_>) -> Result<()> {
        let step = Step::new(self, turn.fresh);
        if self.momentum == 0.0 { turn.run::<0>(&step) } else { turn.run::<1>(&step) }
    }
}

/// The numbers of a step that are the same for all elements.
struct Step {
    direction: Direction<f64>,
    lr: f64,
    /// How much of the momentum buffer is kept.
    keep: f64,
    /// How much of the gradient enters the momentum buffer.
    take: f64,
    /// The momentum, if the step looks ahead along it.
    ahead: Option<f64>,
}

impl Step {
    /// In the first step the momentum buffer becomes the gradient itself, undampened.
    fn new(options: &SgdOptions, first: bool) -> Step {
        let SgdOptions { lr, momentum, dampening, weight_decay, nesterov, maximize } = *options;
        let (keep, take) = if first { (0.0, 1.0) } else { (momentum, 1.0 - dampening) };
        let direction = Direction::coupled(maximize, weight_decay);
        Step { direction, lr, keep, take, ahead: nesterov.then_some(momentum) }
    }
}

/// Without momentum.
impl Update<0> for Step {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], []: [&mut [T]; 0]) {
        let (direction, lr) = (self.direction.to::<T>(), T::from_f64(self.lr));
        for (p, g) in param.iter_mut().zip(grad) {
            *p -= lr * direction.of(*p, *g);
        }
    }
}

/// With momentum.
impl Update<1> for Step {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [momentum_buffer]: [&mut [T]; 1]) {
        let direction = self.direction.to::<T>();
        let [lr, keep, take] = [self.lr, self.keep, self.take].map(T::from_f64);
        for ((p, g), b) in param.iter_mut().zip(grad).zip(momentum_buffer) {
            let d = direction.of(*p, *g);
            *b = *b * keep + d * take;
            *p -= lr
                * match self.ahead {
                    Some(momentum) => d + *b * T::from_f64(momentum),
                    None => *b,
                };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::testing::{LENGTHS, check_steps};

    /// `[param, momentum_buffer]` of one element after a step, by `torch.optim`'s loop in `f64`.
    fn by_hand(method: &SgdOptions, first: bool, [p, b]: [f64; 2], g: f64) -> [f64; 2] {
        let g = if method.maximize { -g } else { g } + method.weight_decay * p;
        if method.momentum == 0.0 {
            return [p - method.lr * g, b];
        }
        let b = if first { g } else { method.momentum * b + (1.0 - method.dampening) * g };
        let d = if method.nesterov { g + method.momentum * b } else { b };
        [p - method.lr * d, b]
    }

    #[test]
    fn steps_follow_the_formula() {
        for n in LENGTHS {
            for (momentum, dampening, nesterov) in
                [(0.0, 0.0, false), (0.9, 0.0, false), (0.9, 0.1, false), (0.9, 0.0, true)]
            {
                for maximize in [false, true] {
                    let (lr, weight_decay) = (0.1, 0.01);
                    let method = SgdOptions { lr, momentum, dampening, weight_decay, nesterov, maximize };
                    let after = |t, state, g| by_hand(&method, t == 1, state, g);
                    check_steps::<f32, _, _>(n, &method, after);
                    check_steps::<f64, _, _>(n, &method, after);
                }
            }
        }
    }
}
