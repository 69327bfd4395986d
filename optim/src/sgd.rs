//! Stochastic gradient descent with momentum.

use crate::direction::Direction;
use crate::method::ParameterStep;
use crate::rows::optimizer;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::Update;
use namegrad_core::{Error, ErrorKind, Result};

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
        lr: f64 = 1e-3 in 0.0.. => "learning rate",
        /// How much of the momentum buffer is kept from step to step; 0 for no momentum.
        momentum: f64 = 0.0 in 0.0..,
        /// How much of the gradient does not enter the momentum buffer.
        dampening: f64 = 0.0 in f64::MIN..=f64::MAX,
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0 in 0.0..,
        /// Whether to use Nesterov's form, which looks ahead along the momentum.
        nesterov: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        #[track_caller]
        fn check(&self) -> Result<()> {
            if self.nesterov && (self.momentum == 0.0 || self.dampening != 0.0) {
                let message = "Nesterov momentum requires a momentum and zero dampening";
                return Err(Error::new(ErrorKind::Value, Self::NAME, message));
            }
            Ok(())
        }

        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
            if self.momentum == 0.0 { &[] } else { &["momentum_buffer"] }
        }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let update = SgdUpdate::new(self, step.fresh);
            if self.momentum == 0.0 { step.run::<0>(&update) } else { step.run::<1>(&update) }
        }
    }
}

/// The numbers of a step that are the same for all elements.
struct SgdUpdate {
    direction: Direction<f64>,
    lr: f64,
    /// How much of the momentum buffer is kept.
    keep: f64,
    /// How much of the gradient enters the momentum buffer.
    take: f64,
    /// The momentum, if the step looks ahead along it.
    ahead: Option<f64>,
}

impl SgdUpdate {
    /// In the first step the momentum buffer becomes the gradient itself, undampened.
    fn new(options: &SgdOptions, first: bool) -> SgdUpdate {
        let SgdOptions { lr, momentum, dampening, weight_decay, nesterov, maximize } = *options;
        let (keep, take) = if first { (0.0, 1.0) } else { (momentum, 1.0 - dampening) };
        let direction = Direction::coupled(maximize, weight_decay);
        SgdUpdate { direction, lr, keep, take, ahead: nesterov.then_some(momentum) }
    }
}

/// Without momentum.
impl Update<0> for SgdUpdate {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], []: [&mut [T]; 0]) {
        let (direction, lr) = (self.direction.to::<T>(), T::from_f64(self.lr));
        for (p, g) in param.iter_mut().zip(grad) {
            *p -= lr * direction.of(*p, *g);
        }
    }
}

/// With momentum.
impl Update<1> for SgdUpdate {
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
