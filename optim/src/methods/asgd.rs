//! ASGD, gradient descent that averages the parameters.

use super::*;

options! {
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
        lr: f64 = 1e-2 in 0.0.. => "learning rate",
        /// The decay of the learning rate, and the share by which the parameter shrinks, times the learning
        /// rate.
        lambd: f64 = 1e-4 in 0.0..,
        /// The power with which the learning rate falls.
        alpha: f64 = 0.75 in 0.0..,
        /// The step after which parameters are averaged.
        t0: f64 = 1e6 in ..,
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0 in 0.0..,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] { &["ax", "eta", "mu"] }

        fn slot_sizes(&self, slot: &str, sizes: &[usize]) -> Vec<usize> {
            if slot == "ax" { sizes.to_vec() } else { vec![] }
        }

        fn slot_start(&self, slot: &str) -> f64 {
            match slot { "eta" => self.lr, "mu" => 1.0, _ => 0.0 }
        }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let AsgdOptions { lr, lambd, alpha, t0, weight_decay, maximize } = *self;
            let ParameterStep { number: t, param, grad, slots, .. } = step;
            let [ax, eta, mu] = slots.take()?;
            let numbers = [f64::from(single(eta)?), f64::from(single(mu)?)];
            let shrink = 1.0 - lambd * numbers[0];
            let numbers = [sign_of(maximize), weight_decay, shrink, numbers[0], numbers[1]];
            apply(self, numbers, param, grad, [ax])?;
            let t = t as f64;
            eta.fill_((lr / (1.0 + lambd * lr * t).powf(alpha)) as f32)?;
            mu.fill_((1.0 / f64::max(1.0, t - t0)) as f32)?;
            Ok(())
        }
    }

    impl Formula<5, 1> |[sign, decay, shrink, eta, mu], p, g, [ax]| {
        let d = p * decay + g * sign;
        let p = p * shrink - eta * d;
        // exactly the parameter before averaging begins
        (p, [if mu == T::ONE { p } else { ax + (p - ax) * mu }])
    }
}
