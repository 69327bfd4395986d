//! ASGD, gradient descent that averages the parameters.

use crate::direction::Direction;
use crate::hyperparameters::{Formula, optimizer};
use crate::method::{Checks, Turn, set_single, single, update_tensors};
use namegrad_core::Result;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::Update;

optimizer! {
    /// ASGD, averaged stochastic gradient descent: a falling learning rate, and an average of the parameters
    /// in the state `ax`.
    ///
    /// `g` is the gradient, negated if `maximize`, and `t` is the number of the step, from 1. `eta` starts
    /// with `lr` and `mu` with 1:
    ///
    /// ```text
    /// d      = g + weight_decay · param
    /// param  = param · (1 - lambd · eta) - eta · d
    /// ax    += mu · (param - ax)
    /// eta    = lr / (1 + lambd · lr · t)^alpha
    /// mu     = 1 / max(1, t - t0)
    /// ```
    ///
    /// # Source
    /// Polyak, Juditsky, *Acceleration of Stochastic Approximation by Averaging* (SIAM Journal on Control and
    /// Optimization 30, 1992), in the form of `torch.optim.ASGD`.
    ///
    /// # Examples
    /// The average of the parameters is in the state:
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Asgd, Optimizer};
    /// let weight = Parameter::new(Tensor::new([4.0])?)?;
    /// let mut optimizer = Asgd::builder([weight.clone()]).lr(0.25).lambd(0.0).t0(0.0).build()?;
    /// for expected in [2.0, 1.0] {
    ///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    ///     assert_eq!(weight.tensor().to_vec::<f32>()?, [expected]);
    /// }
    /// optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// let average = &optimizer.state_dict().groups[0].parameters[0].slots["ax"];
    /// assert_eq!(average.to_vec::<f32>()?, [0.75]); // of 1 and 0.5
    /// # Ok::<(), Error>(())
    /// ```
    Asgd
    AsgdOptions {
        /// The learning rate of the first step.
        lr: f64 = 1e-2,
        /// How fast the learning rate falls, and how much the parameter shrinks, times the learning rate.
        lambd: f64 = 1e-4,
        /// The power with which the learning rate falls.
        alpha: f64 = 0.75,
        /// The step after which parameters are averaged.
        t0: f64 = 1e6,
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0,
        /// Whether to ascend.
        maximize: bool = false,
    }
}

impl Formula for AsgdOptions {
    #[track_caller]
    fn check_as(&self, name: &'static str) -> Result<()> {
        let checks = Checks(name);
        checks.none_negative(&[
            ("learning rate", self.lr),
            ("lambd value", self.lambd),
            ("alpha value", self.alpha),
            ("weight_decay value", self.weight_decay),
        ])?;
        checks.not_nan("t0 value", self.t0)
    }

    fn tensors(&self, _sizes: &[usize]) -> &'static [&'static str] {
        &["ax", "eta", "mu"]
    }

    fn tensor_sizes(&self, slot: &str, sizes: &[usize]) -> Vec<usize> {
        if slot == "ax" { sizes.to_vec() } else { vec![] }
    }

    fn tensor_start(&self, slot: &str) -> f64 {
        match slot {
            "eta" => self.lr,
            "mu" => 1.0,
            _ => 0.0,
        }
    }

    fn advance(&self, turn: Turn<'_>) -> Result<()> {
        let AsgdOptions { lr, lambd, alpha, t0, weight_decay, maximize } = *self;
        let Turn { number: t, param, grad, slots, .. } = turn;
        let [ax, eta, mu] = slots.take()?;
        let direction = Direction::coupled(maximize, weight_decay);
        let step = Step { direction, lambd, eta: single(eta)?.into(), mu: single(mu)?.into() };
        update_tensors(&step, param, grad, [ax])?;
        let t = t as f64;
        set_single(eta, (lr / (1.0 + lambd * lr * t).powf(alpha)) as f32)?;
        set_single(mu, (1.0 / f64::max(1.0, t - t0)) as f32)
    }
}

/// The numbers of a step that are the same for all elements.
struct Step {
    direction: Direction<f64>,
    lambd: f64,
    eta: f64,
    mu: f64,
}

impl Update<1> for Step {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [ax]: [&mut [T]; 1]) {
        let direction = self.direction.to::<T>();
        let [shrink, eta, mu] = [1.0 - self.lambd * self.eta, self.eta, self.mu].map(T::from_f64);
        for ((p, g), ax) in param.iter_mut().zip(grad).zip(ax) {
            let d = direction.of(*p, *g);
            *p = *p * shrink - eta * d;
            // exactly the parameter before averaging begins
            *ax = if mu == T::ONE { *p } else { *ax + (*p - *ax) * mu };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::testing::{LENGTHS, check_steps};

    /// `[param, ax]` of one element after step `t`, by `torch.optim`'s loop in `f64`.
    fn by_hand(method: &AsgdOptions, t: u64, [p, ax]: [f64; 2], g: f64) -> [f64; 2] {
        let before = t as f64 - 1.0;
        let eta = method.lr / (1.0 + method.lambd * method.lr * before).powf(method.alpha);
        let mu = 1.0 / f64::max(1.0, before - method.t0);
        let [eta, mu] = [eta, mu].map(|number| f64::from(number as f32));
        let g = if method.maximize { -g } else { g } + method.weight_decay * p;
        let p = p * (1.0 - method.lambd * eta) - eta * g;
        [p, ax + (p - ax) * mu]
    }

    #[test]
    fn steps_follow_the_formula() {
        for n in LENGTHS {
            for (t0, maximize) in [(1e6, false), (0.0, true)] {
                let method = AsgdOptions::new().lr(0.1).lambd(0.1).weight_decay(0.01);
                let method = method.t0(t0).maximize(maximize);
                let after = |t, state, g| by_hand(&method, t, state, g);
                check_steps::<f32, _, _>(n, &method, after);
                check_steps::<f64, _, _>(n, &method, after);
            }
        }
    }
}
