//! RAdam, Adam whose first steps are rectified.

use crate::direction::Direction;
use crate::hyperparameters::{Formula, optimizer};
use crate::method::{Checks, Turn};
use crate::moments::{self, Moments, correction};
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
        lr: f64 = 1e-3,
        /// How much of the averages of the gradient and of its square is kept from step to step.
        betas: (f64, f64) = (0.9, 0.999),
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8,
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0,
        /// Whether `weight_decay` is that of [`AdamW`](crate::AdamW).
        decoupled_weight_decay: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
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

impl Formula for RAdamOptions {
    #[track_caller]
    fn check_as(&self, name: &'static str) -> Result<()> {
        Checks(name).moments(self.lr, self.betas, self.eps, self.weight_decay)
    }

    fn tensors(&self, _sizes: &[usize]) -> &'static [&'static str] {
        &moments::SLOTS
    }

    fn advance(&self, turn: Turn<'_>) -> Result<()> {
        let RAdamOptions { lr, betas, eps, weight_decay, decoupled_weight_decay, maximize } = *self;
        let direction = match decoupled_weight_decay {
            true => Direction::decoupled(maximize, lr, weight_decay),
            false => Direction::coupled(maximize, weight_decay),
        };
        let (moments, size) = (Moments::new(direction, betas), lr / correction(betas.0, turn.number));
        match self.rectification(turn.number) {
            Some(r) => {
                let size = size * r * correction(betas.1, turn.number).sqrt();
                turn.run(&Rectified { moments, size, eps })
            }
            None => turn.run(&Plain { moments, size }),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::testing::{LENGTHS, check_steps};

    /// `[param, exp_avg, exp_avg_sq]` of one element after step `t`, by `torch.optim`'s loop in `f64`.
    fn by_hand(method: &RAdamOptions, t: u64, [mut p, m, v]: [f64; 3], g: f64) -> [f64; 3] {
        let (beta1, beta2) = method.betas;
        let mut g = if method.maximize { -g } else { g };
        if method.decoupled_weight_decay {
            p *= 1.0 - method.lr * method.weight_decay;
        } else {
            g += method.weight_decay * p;
        }
        let m = m + (g - m) * (1.0 - beta1);
        let v = v * beta2 + (1.0 - beta2) * g * g;
        let [bias1, bias2] = [beta1, beta2].map(|beta| 1.0 - beta.powf(t as f64));
        let infinite = 2.0 / (1.0 - beta2) - 1.0;
        let rho = infinite - 2.0 * t as f64 * beta2.powf(t as f64) / bias2;
        let mut step = m / bias1 * method.lr;
        if rho > 5.0 {
            let length = (rho - 4.0) * (rho - 2.0) * infinite;
            step *= bias2.sqrt() / (v.sqrt() + method.eps);
            step *= (length / ((infinite - 4.0) * (infinite - 2.0) * rho)).sqrt();
        }
        [p - step, m, v]
    }

    #[test]
    fn steps_follow_the_formula() {
        for n in LENGTHS {
            for (decoupled_weight_decay, maximize) in [(false, false), (true, true)] {
                let method = RAdamOptions::new().lr(0.1).weight_decay(0.01).maximize(maximize);
                let mut method = method.decoupled_weight_decay(decoupled_weight_decay);
                check_steps::<f32, _, _>(n, &method, |t, state, g| by_hand(&method, t, state, g));
                check_steps::<f64, _, _>(n, &method, |t, state, g| by_hand(&method, t, state, g));
                method.betas.1 = 0.9;
                assert!(method.rectification(5).is_none() && method.rectification(7).is_some());
            }
        }
    }

    /// From the first step on the formula of the rectified step, as if many steps had been made.
    #[test]
    fn rectified_steps_follow_the_formula() {
        let method = RAdamOptions::new().lr(0.1);
        let late = 100;
        let r = method.rectification(late).unwrap();
        let size = 0.1 / correction(0.9, late) * r * correction(0.999, late).sqrt();
        let moments = Moments::new(Direction::coupled(false, 0.0), method.betas);
        let (mut p, mut m, mut v) = ([0.5], [0.25], [0.75]);
        Rectified { moments, size, eps: 1e-8 }.run::<f64>(&mut p, &[-0.3], [&mut m, &mut v]);
        let expected = by_hand(&method, late, [0.5, 0.25, 0.75], -0.3);
        for (found, expected) in [p[0], m[0], v[0]].into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-15);
        }
    }
}
