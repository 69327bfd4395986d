//! NAdam, Adam with Nesterov's momentum.

use crate::direction::Direction;
use crate::method::ParameterStep;
use crate::moments::{self, Moments, correction};
use crate::rows::optimizer;
use crate::update::{set_single, single, update_tensors};
use namegrad_core::Result;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::Update;

optimizer! {
    /// NAdam: [`Adam`](crate::Adam) that looks ahead along its momentum, as Nesterov's does. The momentum
    /// warms up from about half of `β₁`.
    ///
    /// `g` is the gradient, negated if `maximize`, and `t` is the number of the step, from 1:
    ///
    /// ```text
    /// d          = g + weight_decay · param
    /// exp_avg    = β₁ · exp_avg    + (1 - β₁) · d
    /// exp_avg_sq = β₂ · exp_avg_sq + (1 - β₂) · d²
    /// μₜ         = β₁ · (1 - ½ · 0.96^(t · momentum_decay))
    /// step       = (1 - μₜ) · d / (1 - μ₁ ⋯ μₜ) + μₜ₊₁ · exp_avg / (1 - μ₁ ⋯ μₜ₊₁)
    /// param     -= lr · step / (√(exp_avg_sq / (1 - β₂ᵗ)) + eps)
    /// ```
    ///
    /// With `decoupled_weight_decay`, `d = g` and the parameter is first multiplied by
    /// `1 - lr · weight_decay`.
    ///
    /// # Source
    /// Dozat, *Incorporating Nesterov Momentum into Adam* (ICLR 2016 workshop), algorithm 2, in the form of
    /// `torch.optim.NAdam`. The decoupled decay is that of Loshchilov, Hutter (arXiv:1711.05101).
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{NAdam, Optimizer};
    /// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
    /// let mut optimizer = NAdam::builder([weight.clone()]).lr(0.1).build()?;
    /// for _ in 0..200 {
    ///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// }
    /// assert!(weight.tensor().to_vec::<f32>()?.iter().all(|w| w.abs() < 0.1));
    /// # Ok::<(), Error>(())
    /// ```
    NAdam(betas.0)
    NAdamOptions {
        /// The learning rate, per step.
        lr: f64 = 2e-3 in 0.0.. => "learning rate",
        /// How much of the averages of the gradient and of its square is kept from step to step.
        betas: (f64, f64) = (0.9, 0.999) in 0.0..1.0 => "beta parameter at index {index}",
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8 in 0.0.. => "epsilon value",
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0 in 0.0..,
        /// How fast the momentum approaches `β₁`.
        momentum_decay: f64 = 4e-3 in 0.0..,
        /// Whether `weight_decay` is that of [`AdamW`](crate::AdamW).
        decoupled_weight_decay: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
            const { &[moments::SLOTS[0], moments::SLOTS[1], "mu_product"] }
        }

        fn slot_sizes(&self, slot: &str, sizes: &[usize]) -> Vec<usize> {
            if slot == "mu_product" { vec![] } else { sizes.to_vec() }
        }

        fn slot_start(&self, slot: &str) -> f64 {
            if slot == "mu_product" { 1.0 } else { 0.0 }
        }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let NAdamOptions { lr, betas, eps, weight_decay, decoupled_weight_decay, maximize, .. } = *self;
            let ParameterStep { number: t, param, grad, slots, .. } = step;
            let [exp_avg, exp_avg_sq, mu_product] = slots.take()?;
            let (mu, next) = (self.momentum_of(t), self.momentum_of(t + 1));
            let product = single(mu_product)? * mu as f32;
            set_single(mu_product, product)?;
            let product = f64::from(product);
            let direction = match decoupled_weight_decay {
                true => Direction::decoupled(maximize, lr, weight_decay),
                false => Direction::coupled(maximize, weight_decay),
            };
            let update = NAdamUpdate {
                moments: Moments::new(direction, betas),
                along_gradient: lr * (1.0 - mu) / (1.0 - product),
                along_average: lr * next / (1.0 - product * next),
                root_scale: correction(betas.1, t).recip(),
                eps,
            };
            update_tensors(&update, param, grad, [exp_avg, exp_avg_sq])
        }
    }
}

impl NAdamOptions {
    /// The momentum in step `t`.
    fn momentum_of(&self, t: u64) -> f64 {
        self.betas.0 * (1.0 - 0.5 * 0.96_f64.powf(t as f64 * self.momentum_decay))
    }
}

/// The numbers of a step that are the same for all elements.
struct NAdamUpdate {
    moments: Moments<f64>,
    /// `lr · (1 - μₜ) / (1 - μ₁ ⋯ μₜ)`.
    along_gradient: f64,
    /// `lr · μₜ₊₁ / (1 - μ₁ ⋯ μₜ₊₁)`.
    along_average: f64,
    /// `1 / (1 - β₂ᵗ)`.
    root_scale: f64,
    eps: f64,
}

impl Update<2> for NAdamUpdate {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [exp_avg, exp_avg_sq]: [&mut [T]; 2]) {
        let moments = self.moments.to::<T>();
        let [along_gradient, along_average, root_scale, eps] =
            [self.along_gradient, self.along_average, self.root_scale, self.eps].map(T::from_f64);
        for (((p, g), m), v) in param.iter_mut().zip(grad).zip(exp_avg).zip(exp_avg_sq) {
            let (decayed, d) = moments.average(*p, *g, m, v);
            *p = decayed - (along_gradient * d + along_average * *m) / ((*v * root_scale).sqrt() + eps);
        }
    }
}
