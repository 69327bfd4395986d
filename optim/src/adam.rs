//! Adam, and AdamW, its form with decoupled weight decay.

use crate::method::{Checks, Method, Turn, hyperparameters};
use namegrad_core::Result;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::optimizer_steps::{self, adam};

hyperparameters! {
    /// Adam: steps of about `lr` along a moving average of the gradient, over the root of one of its square.
    ///
    /// With `g` the gradient, negated if `maximize`, and `t` the number of the step, from 1:
    ///
    /// ```text
    /// d          = g + weight_decay · param
    /// exp_avg    = β₁ · exp_avg    + (1 - β₁) · d
    /// exp_avg_sq = β₂ · exp_avg_sq + (1 - β₂) · d²
    /// param     -= lr · (exp_avg / (1 - β₁ᵗ)) / (√(exp_avg_sq / (1 - β₂ᵗ)) + eps)
    /// ```
    ///
    /// With `amsgrad` the largest `exp_avg_sq` so far takes the place of the present one in the last line.
    ///
    /// # Source
    /// Kingma, Ba, *Adam: A Method for Stochastic Optimization* (arXiv:1412.6980), algorithm 1; Reddi, Kale, Kumar, *On the Convergence
    /// of Adam and Beyond* (arXiv:1904.09237) for `amsgrad`; in the form of `torch.optim.Adam`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Adam, Optimizer};
    /// let weight = Parameter::new(Tensor::new(1.0)?)?;
    /// let mut optimizer = Adam::new([weight.clone()]).lr(0.25).eps(0.0).build()?;
    /// weight.tensor().mul(100.0)?.backward()?;
    /// optimizer.step()?;
    /// assert_eq!(weight.tensor().item()?.to_f64(), 0.75); // the first step is `lr` long, whatever the gradient
    /// # Ok::<(), Error>(())
    /// ```
    Adam {
        /// The learning rate, per step.
        lr: f64 = 1e-3,
        /// How much of the averages of the gradient and of its square is kept from step to step.
        betas: (f64, f64) = (0.9, 0.999),
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8,
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0,
        /// Whether the denominator never shrinks.
        amsgrad: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
        /// Whether `weight_decay` is that of [`AdamW`].
        decoupled_weight_decay: bool = false,
    }
}

hyperparameters! {
    /// AdamW: [`Adam`] with a weight decay that does not pass through the averages.
    ///
    /// ```text
    /// param *= 1 - lr · weight_decay
    /// ```
    ///
    /// comes first, then the step of [`Adam`] with `d = g`.
    ///
    /// # Source
    /// Loshchilov, Hutter, *Decoupled Weight Decay Regularization* (arXiv:1711.05101), algorithm 2, in the form of `torch.optim.AdamW`.
    ///
    /// # Examples
    /// No decay for biases, and a learning rate of their own:
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{AdamW, Optimizer};
    /// # let weight = Parameter::new(Tensor::ones([("out", 2), ("in", 3)])?)?;
    /// # let bias = Parameter::new(Tensor::ones([("out", 2)])?)?;
    /// let mut optimizer = AdamW::new([weight])
    ///     .lr(1e-3)
    ///     .group([bias], |group| {
    ///         group.lr = 1e-4;
    ///         group.weight_decay = 0.0;
    ///     })
    ///     .build()?;
    /// assert_eq!(optimizer.lrs(), [1e-3, 1e-4]);
    /// optimizer.groups_mut()[0].lr = 5e-4;
    /// # Ok::<(), Error>(())
    /// ```
    AdamW {
        /// The learning rate, per step.
        lr: f64 = 1e-3,
        /// How much of the averages of the gradient and of its square is kept from step to step.
        betas: (f64, f64) = (0.9, 0.999),
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8,
        /// How much the parameter shrinks in each step, times `lr`.
        weight_decay: f64 = 1e-2,
        /// Whether the denominator never shrinks.
        amsgrad: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }
}

/// What both keep; the last with `amsgrad` only.
const SLOTS: [&str; 3] = ["exp_avg", "exp_avg_sq", "max_exp_avg_sq"];

impl Method for Adam {
    const NAME: &'static str = "Adam";

    fn lr(&self) -> f64 {
        self.lr
    }

    fn set_lr(&mut self, lr: f64) {
        self.lr = lr;
    }

    fn momentum(&self) -> Option<f64> {
        Some(self.betas.0)
    }

    fn set_momentum(&mut self, momentum: f64) {
        self.betas.0 = momentum;
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        self.check_as(Self::NAME)
    }

    fn slots(&self) -> &'static [&'static str] {
        if self.amsgrad { &SLOTS } else { &SLOTS[..2] }
    }

    fn step<T: Real>(&self, turn: Turn<'_>, param: &mut [T], grad: &[T], slots: &mut [&mut [T]]) {
        let [exp_avg, exp_avg_sq, max_exp_avg_sq @ ..] = slots else { unreachable!("two slots or three") };
        let Adam { lr, betas, eps, weight_decay, decoupled_weight_decay: decoupled, maximize, .. } = *self;
        let t = turn.number as f64;
        let bias_corrections = (1.0 - betas.0.powf(t), 1.0 - betas.1.powf(t));
        let step =
            optimizer_steps::Adam { lr, betas, eps, weight_decay, decoupled, maximize, bias_corrections };
        adam(&step, param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq.first_mut().map(|max| &mut **max));
    }
}

impl Adam {
    #[track_caller]
    fn check_as(&self, name: &'static str) -> Result<()> {
        let checks = Checks(name);
        checks.not_negative("learning rate", self.lr)?;
        checks.not_negative("epsilon value", self.eps)?;
        checks.betas(self.betas)?;
        checks.not_negative("weight_decay value", self.weight_decay)
    }
}

impl AdamW {
    /// The same method, said as Adam.
    fn as_adam(&self) -> Adam {
        let AdamW { lr, betas, eps, weight_decay, amsgrad, maximize } = *self;
        Adam { lr, betas, eps, weight_decay, amsgrad, maximize, decoupled_weight_decay: true }
    }
}

impl Method for AdamW {
    const NAME: &'static str = "AdamW";

    fn lr(&self) -> f64 {
        self.lr
    }

    fn set_lr(&mut self, lr: f64) {
        self.lr = lr;
    }

    fn momentum(&self) -> Option<f64> {
        Some(self.betas.0)
    }

    fn set_momentum(&mut self, momentum: f64) {
        self.betas.0 = momentum;
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        self.as_adam().check_as(Self::NAME)
    }

    fn slots(&self) -> &'static [&'static str] {
        self.as_adam().slots()
    }

    fn step<T: Real>(&self, turn: Turn<'_>, param: &mut [T], grad: &[T], slots: &mut [&mut [T]]) {
        self.as_adam().step(turn, param, grad, slots);
    }
}
