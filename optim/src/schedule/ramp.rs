//! Factors that end after some steps: [`LinearRamp`], [`Constant`] and [`Polynomial`].

use super::{Schedule, positive, require, setters, settings_of};
use namegrad_core::Result;
use serde::Serialize;

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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinearRamp {
    total_iters: u64,
    start_factor: f64,
    end_factor: f64,
}

impl LinearRamp {
    /// Raises the factor from 1/3 to 1 in `total_iters` steps.
    pub fn new(total_iters: u64) -> LinearRamp {
        LinearRamp { total_iters, start_factor: 1.0 / 3.0, end_factor: 1.0 }
    }

    setters! {
        /// The factor in step 0, more than 0 and at most 1. Default: 1/3.
        start_factor: f64,
        /// The factor from step `total_iters` on, at least 0 and at most 1. Default: 1.
        end_factor: f64,
    }
}

impl Schedule for LinearRamp {
    fn lr(&self, step: f64, base: f64, _group: usize) -> f64 {
        let total = self.total_iters as f64;
        base * (self.start_factor + (self.end_factor - self.start_factor) * step.min(total) / total)
    }

    fn settings(&self) -> serde_json::Value {
        settings_of(self)
    }

    fn check(&self, _groups: usize) -> Result<()> {
        let LinearRamp { total_iters, start_factor, end_factor } = *self;
        positive(self.name(), "total_iters", total_iters, "LinearRamp::new(5)")?;
        let message = || {
            format!(
                "starting multiplicative factor expected to be greater than 0 and less or equal to 1, but is \
                 {start_factor:?}"
            )
        };
        let repair = "LinearRamp::new(5).start_factor(0.1)";
        require(start_factor > 0.0 && start_factor <= 1.0, self.name(), message, repair)?;
        let message =
            || format!("ending multiplicative factor expected to be between 0 and 1, but is {end_factor:?}");
        let repair = "LinearRamp::new(5).end_factor(1.0)";
        require((0.0..=1.0).contains(&end_factor), self.name(), message, repair)
    }

    fn next(&self, step: f64, last: f64, _base: f64, _group: usize) -> f64 {
        let LinearRamp { total_iters, start_factor, end_factor } = *self;
        if step == 0.0 {
            return last * start_factor;
        }
        if step > total_iters as f64 {
            return last;
        }
        let change = end_factor - start_factor;
        last * (1.0 + change / (total_iters as f64 * start_factor + (step - 1.0) * change))
    }
}

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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Constant {
    total_iters: u64,
    factor: f64,
}

impl Constant {
    /// Multiplies the rate by 1/3 for `total_iters` steps.
    pub fn new(total_iters: u64) -> Constant {
        Constant { total_iters, factor: 1.0 / 3.0 }
    }

    setters! {
        /// The factor, at least 0 and at most 1. Default: 1/3.
        factor: f64,
    }
}

impl Schedule for Constant {
    fn lr(&self, step: f64, base: f64, _group: usize) -> f64 {
        if step < self.total_iters as f64 { base * self.factor } else { base }
    }

    fn settings(&self) -> serde_json::Value {
        settings_of(self)
    }

    fn check(&self, _groups: usize) -> Result<()> {
        let factor = self.factor;
        positive(self.name(), "total_iters", self.total_iters, "Constant::new(5)")?;
        let message =
            || format!("constant multiplicative factor expected to be between 0 and 1, but is {factor:?}");
        require((0.0..=1.0).contains(&factor), self.name(), message, "Constant::new(5).factor(0.5)")
    }

    fn next(&self, step: f64, last: f64, base: f64, _group: usize) -> f64 {
        let end = step == self.total_iters as f64;
        match step {
            0.0 => last * self.factor,
            _ if end && self.factor == 0.0 => base,
            _ if end => last * (1.0 / self.factor),
            _ => last,
        }
    }
}

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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Polynomial {
    total_iters: u64,
    power: f64,
}

impl Polynomial {
    /// Lowers the rate to 0 in `total_iters` steps, in a straight line.
    pub fn new(total_iters: u64) -> Polynomial {
        Polynomial { total_iters, power: 1.0 }
    }

    setters! {
        /// The power. Default: 1.
        power: f64,
    }
}

impl Schedule for Polynomial {
    fn lr(&self, step: f64, base: f64, _group: usize) -> f64 {
        let total = self.total_iters as f64;
        base * (1.0 - step.min(total) / total).powf(self.power)
    }

    fn settings(&self) -> serde_json::Value {
        settings_of(self)
    }

    fn check(&self, _groups: usize) -> Result<()> {
        let power = self.power;
        positive(self.name(), "total_iters", self.total_iters, "Polynomial::new(5)")?;
        let message = || format!("power must be finite and not negative, but is {power:?}");
        require(power >= 0.0 && power.is_finite(), self.name(), message, "Polynomial::new(5).power(1.0)")
    }

    fn next(&self, step: f64, last: f64, _base: f64, _group: usize) -> f64 {
        let total = self.total_iters as f64;
        if step == 0.0 || step > total {
            return last;
        }
        last * ((1.0 - step / total) / (1.0 - (step - 1.0) / total)).powf(self.power)
    }
}
