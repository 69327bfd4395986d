//! Lion, which steps along the sign of its momentum.

use crate::direction::Direction;
use crate::method::ParameterStep;
use crate::rows::optimizer;
use crate::rprop::sign;
use namegrad_core::Result;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::Update;

optimizer! {
    /// Lion: every element moves by `lr`, along the sign of a mix of the momentum and the gradient. The
    /// weight decay is decoupled.
    ///
    /// `g` is the gradient, negated if `maximize`:
    ///
    /// ```text
    /// c       = β₁ · exp_avg + (1 - β₁) · g
    /// param   = param · (1 - lr · weight_decay) - lr · sign(c)
    /// exp_avg = β₂ · exp_avg + (1 - β₂) · g
    /// ```
    ///
    /// The step is longer than that of [`AdamW`](crate::AdamW): the paper suggests an `lr` 3 to 10 times
    /// smaller, and a `weight_decay` larger by the same factor.
    ///
    /// # Source
    /// Chen et al., *Symbolic Discovery of Optimization Algorithms* (arXiv:2302.06675), algorithm 2. PyTorch
    /// does not have it; the defaults are those of the authors' code.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Lion, Optimizer};
    /// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
    /// let mut optimizer = Lion::builder([weight.clone()]).lr(0.5).build()?;
    /// optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// assert_eq!(weight.tensor().to_vec::<f32>()?, [3.5, -2.5]);
    /// # Ok::<(), Error>(())
    /// ```
    Lion(betas.0)
    LionOptions {
        /// The learning rate, per step.
        lr: f64 = 1e-4 in 0.0.. => "learning rate",
        /// How much of the momentum is in the step, and how much is kept from step to step.
        betas: (f64, f64) = (0.9, 0.99) in 0.0..1.0 => "beta parameter at index {index}",
        /// How much the parameter shrinks in each step, times `lr`.
        weight_decay: f64 = 0.0 in 0.0..,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
            &["exp_avg"]
        }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let direction = Direction::decoupled(self.maximize, self.lr, self.weight_decay);
            step.run(&LionUpdate { direction, lr: self.lr, betas: self.betas })
        }
    }
}

/// The numbers of a step that are the same for all elements.
struct LionUpdate {
    direction: Direction<f64>,
    lr: f64,
    betas: (f64, f64),
}

impl Update<1> for LionUpdate {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [exp_avg]: [&mut [T]; 1]) {
        let direction = self.direction.to::<T>();
        let (mix, keep) = self.betas;
        let [lr, mix, mix_in, keep, take] = [self.lr, mix, 1.0 - mix, keep, 1.0 - keep].map(T::from_f64);
        for ((p, g), m) in param.iter_mut().zip(grad).zip(exp_avg) {
            let d = direction.of(*p, *g);
            *p = direction.shrunk(*p) - lr * sign(*m * mix + d * mix_in);
            *m = *m * keep + d * take;
        }
    }
}
