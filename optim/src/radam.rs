//! RAdam, Adam whose first steps are rectified.

use crate::direction::Direction;
use crate::method::ParameterStep;
use crate::moments::{self, Moments, correction};
use crate::rows::optimizer;
use namegrad_core::Result;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::Update;

optimizer! {
    /// RAdam: [`Adam`](crate::Adam) whose step is shortened while the average of the square is of few
    /// gradients, which takes the place of a warmup.
    ///
    /// `g` is the gradient, negated if `maximize`, and `t` is the number of the step, from 1:
    ///
    /// ```text
    /// d          = g + weight_decay · param
    /// exp_avg    = β₁ · exp_avg    + (1 - β₁) · d
    /// exp_avg_sq = β₂ · exp_avg_sq + (1 - β₂) · d²
    /// ρ∞         = 2 / (1 - β₂) - 1
    /// ρₜ         = ρ∞ - 2 t β₂ᵗ / (1 - β₂ᵗ)
    /// r          = √((ρₜ - 4) (ρₜ - 2) ρ∞ / ((ρ∞ - 4) (ρ∞ - 2) ρₜ))
    /// param     -= lr · exp_avg / (1 - β₁ᵗ) · r · √(1 - β₂ᵗ) / (√exp_avg_sq + eps)
    /// ```
    ///
    /// While `ρₜ ≤ 5`, which takes the first 5 steps with the default `β₂`, the last line is
    /// `param -= lr · exp_avg / (1 - β₁ᵗ)`. With `decoupled_weight_decay`, `d = g` and the parameter is first
    /// multiplied by `1 - lr · weight_decay`.
    ///
    /// # Source
    /// Liu et al., *On the Variance of the Adaptive Learning Rate and Beyond* (arXiv:1908.03265), algorithm
    /// 2, in the form of `torch.optim.RAdam`, which rectifies from `ρₜ > 5` instead of 4.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Optimizer, RAdam};
    /// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
    /// let mut optimizer = RAdam::builder([weight.clone()]).lr(0.1).build()?;
    /// for _ in 0..300 {
    ///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// }
    /// assert!(weight.tensor().to_vec::<f32>()?.iter().all(|w| w.abs() < 0.1));
    /// # Ok::<(), Error>(())
    /// ```
    RAdam(betas.0)
    RAdamOptions {
        /// The learning rate, per step.
        lr: f64 = 1e-3 in 0.0.. => "learning rate",
        /// How much of the averages of the gradient and of its square is kept from step to step.
        betas: (f64, f64) = (0.9, 0.999) in 0.0..1.0 => "beta parameter at index {index}",
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8 in 0.0.. => "epsilon value",
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0 in 0.0..,
        /// Whether `weight_decay` is that of [`AdamW`](crate::AdamW).
        decoupled_weight_decay: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
            &moments::SLOTS
        }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let RAdamOptions { lr, betas, eps, weight_decay, decoupled_weight_decay, maximize } = *self;
            let direction = match decoupled_weight_decay {
                true => Direction::decoupled(maximize, lr, weight_decay),
                false => Direction::coupled(maximize, weight_decay),
            };
            let (moments, size) = (Moments::new(direction, betas), lr / correction(betas.0, step.number));
            match self.rectification(step.number) {
                Some(r) => {
                    let size = size * r * correction(betas.1, step.number).sqrt();
                    step.run(&Rectified { moments, size, eps })
                }
                None => step.run(&Plain { moments, size }),
            }
        }
    }
}

impl RAdamOptions {
    /// The rectification in step `t`, if there are enough gradients in the average of the square.
    fn rectification(&self, t: u64) -> Option<f64> {
        let keep = self.betas.1;
        let whole = 2.0 / (1.0 - keep) - 1.0;
        let now = whole - 2.0 * t as f64 * keep.powf(t as f64) / correction(keep, t);
        (now > 5.0)
            .then(|| ((now - 4.0) * (now - 2.0) * whole / ((whole - 4.0) * (whole - 2.0) * now)).sqrt())
    }
}

/// A step of `size` along the average, divided by the root of the average of the square.
struct Rectified {
    moments: Moments<f64>,
    size: f64,
    eps: f64,
}

impl Update<2> for Rectified {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [exp_avg, exp_avg_sq]: [&mut [T]; 2]) {
        let (moments, [size, eps]) = (self.moments.to::<T>(), [self.size, self.eps].map(T::from_f64));
        for (((p, g), m), v) in param.iter_mut().zip(grad).zip(exp_avg).zip(exp_avg_sq) {
            let (decayed, _) = moments.average(*p, *g, m, v);
            *p = decayed - size * *m / (v.sqrt() + eps);
        }
    }
}

/// A step of `size` along the average.
struct Plain {
    moments: Moments<f64>,
    size: f64,
}

impl Update<2> for Plain {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [exp_avg, exp_avg_sq]: [&mut [T]; 2]) {
        let (moments, size) = (self.moments.to::<T>(), T::from_f64(self.size));
        for (((p, g), m), v) in param.iter_mut().zip(grad).zip(exp_avg).zip(exp_avg_sq) {
            let (decayed, _) = moments.average(*p, *g, m, v);
            *p = decayed - size * *m;
        }
    }
}
