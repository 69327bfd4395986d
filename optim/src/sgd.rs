//! Stochastic gradient descent with momentum.

use crate::method::{Checks, Method, Turn, hyperparameters};
use namegrad_core::Result;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::optimizer_steps::{self, sgd};

hyperparameters! {
    /// Stochastic gradient descent, with momentum if asked for.
    ///
    /// With `g` the gradient, negated if `maximize`, and `b` the momentum buffer, which is `d` at the first step:
    ///
    /// ```text
    /// d      = g + weight_decay · param
    /// b      = momentum · b + (1 - dampening) · d
    /// param -= lr · b                       or, with nesterov,  lr · (d + momentum · b)
    /// ```
    ///
    /// # Source
    /// Sutskever, Martens, Dahl, Hinton, *On the importance of initialization and momentum in deep learning* (ICML 2013), in the form of
    /// `torch.optim.SGD`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Optimizer, Sgd};
    /// let weight = Parameter::new(Tensor::new(1.0)?)?;
    /// let mut optimizer = Sgd::new([weight.clone()]).lr(0.25).momentum(0.5).build()?;
    /// for expected in [0.75, 0.375] {
    ///     optimizer.zero_grad();
    ///     weight.tensor().sum(..)?.backward()?; // its gradient is 1
    ///     optimizer.step()?;
    ///     assert_eq!(weight.tensor().item()?.to_f64(), expected);
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    Sgd {
        /// The learning rate, per step.
        lr: f64 = 1e-3,
        /// How much of the momentum buffer is kept from step to step; 0 for no momentum.
        momentum: f64 = 0.0,
        /// How much of the gradient does not enter the momentum buffer.
        dampening: f64 = 0.0,
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0,
        /// Whether to step to where the momentum leads from here, as Nesterov does.
        nesterov: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }
}

impl Method for Sgd {
    const NAME: &'static str = "Sgd";

    fn lr(&self) -> f64 {
        self.lr
    }

    fn set_lr(&mut self, lr: f64) {
        self.lr = lr;
    }

    fn momentum(&self) -> Option<f64> {
        Some(self.momentum)
    }

    fn set_momentum(&mut self, momentum: f64) {
        self.momentum = momentum;
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        let checks = Checks(Self::NAME);
        checks.not_negative("learning rate", self.lr)?;
        checks.not_negative("momentum value", self.momentum)?;
        checks.not_negative("weight_decay value", self.weight_decay)?;
        let ahead = self.momentum > 0.0 && self.dampening == 0.0;
        checks.require(ahead || !self.nesterov, || {
            "Nesterov momentum requires a momentum and zero dampening".into()
        })?;
        checks
            .require(self.dampening.is_finite(), || format!("Invalid dampening value: {:?}", self.dampening))
    }

    fn slots(&self) -> &'static [&'static str] {
        if self.momentum == 0.0 { &[] } else { &["momentum_buffer"] }
    }

    fn step<T: Real>(&self, turn: Turn<'_>, param: &mut [T], grad: &[T], slots: &mut [&mut [T]]) {
        let Sgd { lr, momentum, dampening, weight_decay, nesterov, maximize } = *self;
        let first = turn.fresh;
        let step = optimizer_steps::Sgd { lr, momentum, dampening, weight_decay, nesterov, maximize, first };
        sgd(&step, param, grad, slots.first_mut().map(|buffer| &mut **buffer));
    }
}
