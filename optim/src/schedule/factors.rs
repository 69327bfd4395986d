//! Schedules that multiply the rate by a factor: [`StepDecay`], [`MultiStep`], [`Exponential`],
//! [`LinearRamp`], [`Constant`], [`Polynomial`], [`Cosine`] and [`CosineRestarts`].

use super::*;

options! {
    /// Multiplies the rate by `gamma` every `step_size` steps: `torch.optim.lr_scheduler.StepLR`.
    ///
    /// ```text
    /// lr = base · gamma^⌊step / step_size⌋
    /// ```
    ///
    /// # Examples
    /// ```
    /// use namegrad::optim::schedule::{Schedule, StepDecay};
    /// let schedule = StepDecay::new(30).gamma(0.5);
    /// assert_eq!([0.0, 29.0, 30.0, 60.0].map(|step| schedule.lr(step, 0.1, 0)), [0.1, 0.1, 0.05, 0.025]);
    /// ```
    #[doc(alias = "StepLR")]
    #[derive(Clone, Debug, PartialEq)]
    StepDecay {
        /// Multiplies the rate by 0.1 every `step_size` steps.
        new(step_size: usize = 30 in 1..)
        /// The factor.
        gamma: f64 = 0.1 in f64::MIN..=f64::MAX,
    }

    factor |self, step| self.gamma.powf((step / self.step_size as f64).floor())
}

options! {
    /// Multiplies the rate by `gamma` at each milestone: `torch.optim.lr_scheduler.MultiStepLR`.
    ///
    /// ```text
    /// lr = base · gamma^(the number of milestones ≤ step)
    /// ```
    ///
    /// # Examples
    /// ```
    /// use namegrad::optim::schedule::{MultiStep, Schedule};
    /// let schedule = MultiStep::new([30, 80]).gamma(0.5);
    /// assert_eq!([0.0, 29.0, 30.0, 80.0].map(|step| schedule.lr(step, 0.1, 0)), [0.1, 0.1, 0.05, 0.025]);
    /// ```
    #[doc(alias = "MultiStepLR")]
    #[derive(Clone, Debug, PartialEq)]
    MultiStep {
        /// Multiplies the rate by 0.1 at each milestone, in steps. A milestone that is given twice counts
        /// twice. The order does not matter.
        new([milestones: Vec<usize> = [30, 80]])
        /// The factor.
        gamma: f64 = 0.1 in f64::MIN..=f64::MAX,
    }

    factor |self, step| {
        let count = self.milestones.iter().filter(|milestone| **milestone as f64 <= step).count();
        self.gamma.powf(count as f64)
    }
}

options! {
    /// Multiplies the rate by `gamma` in each step: `torch.optim.lr_scheduler.ExponentialLR`.
    ///
    /// ```text
    /// lr = base · gamma^step
    /// ```
    ///
    /// # Examples
    /// ```
    /// use namegrad::optim::schedule::{Exponential, Schedule};
    /// assert_eq!([0.0, 1.0, 2.0].map(|step| Exponential::new(0.5).lr(step, 0.1, 0)), [0.1, 0.05, 0.025]);
    /// ```
    #[doc(alias = "ExponentialLR")]
    #[derive(Clone, Debug, PartialEq)]
    Exponential {
        /// Multiplies the rate by `gamma` in each step.
        new(gamma: f64 = 0.99 in f64::MIN..=f64::MAX)
    }

    factor |self, step| self.gamma.powf(step)
}

options! {
    /// Multiplies the rate by a factor that changes in a straight line: `torch.optim.lr_scheduler.LinearLR`.
    ///
    /// ```text
    /// lr = base · (start_factor + (end_factor - start_factor) · min(step, total_iters) / total_iters)
    /// ```
    ///
    /// # Examples
    /// ```
    /// use namegrad::optim::schedule::{LinearRamp, Schedule};
    /// let schedule = LinearRamp::new(4).start_factor(0.5);
    /// assert_eq!([0.0, 2.0, 4.0, 9.0].map(|step| schedule.lr(step, 1.0, 0)), [0.5, 0.75, 1.0, 1.0]);
    /// ```
    #[doc(alias = "LinearLR")]
    #[derive(Clone, Debug, PartialEq)]
    LinearRamp {
        /// Raises the factor from 1/3 to 1 in `total_iters` steps.
        new(total_iters: usize = 5 in 1..)
        /// The factor in step 0.
        start_factor: f64 = (1.0 / 3.0) in (Bound::Excluded(0.0), Bound::Included(1.0))
            => "starting multiplicative factor expected to be greater than 0 and less or equal to 1, but is {}",
        /// The factor from step `total_iters` on.
        end_factor: f64 = 1.0 in 0.0..=1.0
            => "ending multiplicative factor expected to be between 0 and 1, but is {}",
    }

    factor |self, step| {
        let total = self.total_iters as f64;
        self.start_factor + (self.end_factor - self.start_factor) * step.min(total) / total
    }
}

options! {
    /// Multiplies the rate by a factor for some steps: `torch.optim.lr_scheduler.ConstantLR`.
    ///
    /// ```text
    /// lr = base · factor    if step < total_iters
    /// lr = base             from then on
    /// ```
    ///
    /// # Examples
    /// ```
    /// use namegrad::optim::schedule::{Constant, Schedule};
    /// let schedule = Constant::new(3).factor(0.5);
    /// assert_eq!([0.0, 2.0, 3.0].map(|step| schedule.lr(step, 0.1, 0)), [0.05, 0.05, 0.1]);
    /// ```
    #[doc(alias = "ConstantLR")]
    #[derive(Clone, Debug, PartialEq)]
    Constant {
        /// Multiplies the rate by 1/3 for `total_iters` steps.
        new(total_iters: usize = 5 in 1..)
        /// The factor.
        factor: f64 = (1.0 / 3.0) in 0.0..=1.0
            => "constant multiplicative factor expected to be between 0 and 1, but is {}",
    }

    factor |self, step| if step < self.total_iters as f64 { self.factor } else { 1.0 }
}

options! {
    /// Lowers the rate to 0 along a power: `torch.optim.lr_scheduler.PolynomialLR`.
    ///
    /// ```text
    /// lr = base · (1 - min(step, total_iters) / total_iters)^power
    /// ```
    ///
    /// # Examples
    /// ```
    /// use namegrad::optim::schedule::{Polynomial, Schedule};
    /// let schedule = Polynomial::new(4).power(2.0);
    /// assert_eq!([0.0, 2.0, 4.0, 9.0].map(|step| schedule.lr(step, 0.4, 0)), [0.4, 0.1, 0.0, 0.0]);
    /// ```
    #[doc(alias = "PolynomialLR")]
    #[derive(Clone, Debug, PartialEq)]
    Polynomial {
        /// Lowers the rate to 0 in `total_iters` steps, in a straight line.
        new(total_iters: usize = 5 in 1..)
        /// The power.
        power: f64 = 1.0 in 0.0.. => "power must be finite and not negative, but is {}",
    }

    factor |self, step| {
        let total = self.total_iters as f64;
        (1.0 - step.min(total) / total).powf(self.power)
    }
}

options! {
    /// Lowers the rate along half a cosine wave: `torch.optim.lr_scheduler.CosineAnnealingLR`.
    ///
    /// ```text
    /// lr = eta_min + (base - eta_min) · (1 + cos(π · step / t_max)) / 2
    /// ```
    ///
    /// The rate is `eta_min` in step `t_max`, and rises again from there. In a [`Sequence`](super::Sequence),
    /// another schedule can take over.
    ///
    /// # Source
    /// Loshchilov, Hutter, *SGDR: Stochastic Gradient Descent with Warm Restarts* (arXiv:1608.03983),
    /// equation 5, for one cycle.
    ///
    /// # Examples
    /// ```
    /// use namegrad::optim::schedule::{Cosine, Schedule};
    /// let schedule = Cosine::new(1000);
    /// assert_eq!([0.0, 500.0, 1000.0].map(|step| schedule.lr(step, 0.1, 0)), [0.1, 0.05, 0.0]);
    /// ```
    #[doc(alias = "CosineAnnealingLR")]
    #[derive(Clone, Debug, PartialEq)]
    Cosine {
        /// Lowers the rate to 0 in `t_max` steps.
        new(t_max: usize = 1000 in 1..)
        /// The lowest rate.
        eta_min: f64 = 0.0 in f64::MIN..=f64::MAX,
    }

    impl Schedule {
        fn lr(&self, step: f64, base: f64, _group: usize) -> f64 {
            wave(step, self.t_max as f64, base, self.eta_min)
        }

        fn next(&self, step: f64, last: f64, base: f64, _group: usize) -> f64 {
            let (t_max, eta_min) = (self.t_max as f64, self.eta_min);
            let cosine = |step: f64| 1.0 + (PI * step / t_max).cos();
            if step == 0.0 {
                last
            } else if (step - 1.0 - t_max) % (2.0 * t_max) == 0.0 {
                last + (base - eta_min) * (1.0 - (PI / t_max).cos()) / 2.0
            } else {
                cosine(step) / cosine(step - 1.0) * (last - eta_min) + eta_min
            }
        }
    }
}

/// The rate at `step` of half a wave of `length` steps.
fn wave(step: f64, length: f64, base: f64, eta_min: f64) -> f64 {
    let cosine = (PI * step / length).cos();
    // At the top the sum may differ from `base` in its last digit.
    if cosine == 1.0 { base } else { eta_min + (base - eta_min) * (1.0 + cosine) / 2.0 }
}

options! {
    /// Lowers the rate along half a cosine wave, and starts again from the top:
    /// `torch.optim.lr_scheduler.CosineAnnealingWarmRestarts`.
    ///
    /// ```text
    /// lr = eta_min + (base - eta_min) · (1 + cos(π · t / length)) / 2
    /// ```
    ///
    /// `t` is the number of steps since the last restart. The first wave has `t_0` steps, and each wave is
    /// `t_mult` times as long as the one before.
    ///
    /// # Source
    /// Loshchilov, Hutter, *SGDR: Stochastic Gradient Descent with Warm Restarts* (arXiv:1608.03983),
    /// equation 5.
    ///
    /// # Examples
    /// ```
    /// use namegrad::optim::schedule::{CosineRestarts, Schedule};
    /// let schedule = CosineRestarts::new(2).t_mult(2); // waves from 0 to 2, from 2 to 6, from 6 to 14
    /// let rates = [0.0, 1.0, 2.0, 4.0, 6.0].map(|step| schedule.lr(step, 0.1, 0));
    /// assert_eq!(rates, [0.1, 0.05, 0.1, 0.05, 0.1]);
    /// ```
    #[doc(alias = "CosineAnnealingWarmRestarts")]
    #[derive(Clone, Debug, PartialEq)]
    CosineRestarts {
        /// Lowers the rate to 0 again and again, in `t_0` steps.
        new(t_0: usize = 1000 in 1..)
        /// How many times as long as the wave before each wave is.
        t_mult: usize = 1 in 1.. => "expected integer t_mult >= 1, but got {}",
        /// The lowest rate.
        eta_min: f64 = 0.0 in f64::MIN..=f64::MAX,
    }

    impl Schedule {
        fn lr(&self, step: f64, base: f64, _group: usize) -> f64 {
            let (mut t, mut length) = (step, self.t_0 as f64);
            if self.t_mult <= 1 {
                t %= length;
            }
            while t >= length && length > 0.0 {
                t -= length;
                length *= self.t_mult as f64;
            }
            wave(t, length, base, self.eta_min)
        }
    }
}

/// [`Schedule::next`] of a schedule that multiplies the rate: by the quotient of two factors.
fn multiplied(schedule: &dyn Schedule, step: f64, last: f64, base: f64) -> f64 {
    let factor = schedule.factor(step);
    let before = if step > 0.0 { schedule.factor(step - 1.0) } else { 1.0 };
    match before {
        _ if factor == before => last,
        0.0 => base * factor,
        _ => last * (factor / before),
    }
}
