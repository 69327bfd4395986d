//! Rates that fall by a factor: [`StepDecay`], [`MultiStep`] and [`Exponential`].

use super::{Schedule, finite, positive, setters, settings_of};
use namegrad_core::Result;
use serde::Serialize;

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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepDecay {
    step_size: u64,
    gamma: f64,
}

impl StepDecay {
    /// Multiplies the rate by 0.1 every `step_size` steps.
    pub fn new(step_size: u64) -> StepDecay {
        StepDecay { step_size, gamma: 0.1 }
    }

    setters! {
        /// The factor. Default: 0.1.
        gamma: f64,
    }
}

impl Schedule for StepDecay {
    fn lr(&self, step: f64, base: f64, _group: usize) -> f64 {
        base * self.gamma.powf((step / self.step_size as f64).floor())
    }

    fn settings(&self) -> serde_json::Value {
        settings_of(self)
    }

    fn check(&self, _groups: usize) -> Result<()> {
        positive(self.name(), "step_size", self.step_size, "StepDecay::new(30)")?;
        finite(self.name(), "gamma", self.gamma, "StepDecay::new(30).gamma(0.1)")
    }

    fn next(&self, step: f64, last: f64, _base: f64, _group: usize) -> f64 {
        if step == 0.0 || step % self.step_size as f64 != 0.0 { last } else { last * self.gamma }
    }
}

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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MultiStep {
    milestones: Vec<u64>,
    gamma: f64,
}

impl MultiStep {
    /// Multiplies the rate by 0.1 at each milestone, in steps. A milestone that is given twice counts twice.
    /// The order does not matter.
    pub fn new(milestones: impl Into<Vec<u64>>) -> MultiStep {
        MultiStep { milestones: milestones.into(), gamma: 0.1 }
    }

    setters! {
        /// The factor. Default: 0.1.
        gamma: f64,
    }

    /// `gamma` to the number of milestones for which `counts` is true.
    fn power(&self, counts: impl Fn(f64) -> bool) -> f64 {
        let count = self.milestones.iter().filter(|milestone| counts(**milestone as f64)).count();
        self.gamma.powf(count as f64)
    }
}

impl Schedule for MultiStep {
    fn lr(&self, step: f64, base: f64, _group: usize) -> f64 {
        base * self.power(|milestone| milestone <= step)
    }

    fn settings(&self) -> serde_json::Value {
        settings_of(self)
    }

    fn check(&self, _groups: usize) -> Result<()> {
        finite(self.name(), "gamma", self.gamma, "MultiStep::new([30, 80]).gamma(0.1)")
    }

    fn next(&self, step: f64, last: f64, _base: f64, _group: usize) -> f64 {
        last * self.power(|milestone| milestone == step)
    }
}

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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exponential {
    gamma: f64,
}

impl Exponential {
    /// Multiplies the rate by `gamma` in each step.
    pub fn new(gamma: f64) -> Exponential {
        Exponential { gamma }
    }
}

impl Schedule for Exponential {
    fn lr(&self, step: f64, base: f64, _group: usize) -> f64 {
        base * self.gamma.powf(step)
    }

    fn settings(&self) -> serde_json::Value {
        settings_of(self)
    }

    fn check(&self, _groups: usize) -> Result<()> {
        finite(self.name(), "gamma", self.gamma, "Exponential::new(0.99)")
    }

    fn next(&self, step: f64, last: f64, _base: f64, _group: usize) -> f64 {
        if step == 0.0 { last } else { last * self.gamma }
    }
}
