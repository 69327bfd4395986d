//! [`SwaLr`], the rate while the weights of a model are averaged.

use super::{Anneal, PerGroup, Schedule, replay, setters, settings_of};
use namegrad_core::Result;
use serde::Serialize;
use std::f64::consts::PI;

/// Goes to a constant rate and stays there, for an [equal average](crate::AveragedModel::new) of the weights:
/// `torch.optim.swa_utils.SWALR`.
///
/// ```text
/// lr = swa_lr · a + base · (1 - a)    where a goes from 0 to 1 in anneal_epochs steps
/// ```
///
/// Make its [`Scheduler`](super::Scheduler) when the average starts, or let it follow another schedule in a
/// [`Sequence`](super::Sequence). It starts from the rates that the optimizer has then.
///
/// # Source
/// Izmailov et al., *Averaging Weights Leads to Wider Optima and Better Generalization* (arXiv:1803.05407),
/// in the form of PyTorch.
///
/// # Examples
/// ```
/// use namegrad::optim::schedule::{Anneal, Schedule, SwaLr};
/// let schedule = SwaLr::new(0.5).anneal_epochs(4).anneal_strategy(Anneal::Linear);
/// let rates = [0.0, 1.0, 2.0, 4.0, 9.0].map(|step| schedule.lr(step, 1.0, 0));
/// assert_eq!(rates, [1.0, 0.875, 0.75, 0.5, 0.5]);
/// ```
#[doc(alias = "SWALR")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SwaLr {
    swa_lr: PerGroup,
    anneal_epochs: u64,
    anneal_strategy: Anneal,
}

impl SwaLr {
    /// Goes to `swa_lr`, of all groups or of each, in 10 steps.
    pub fn new(swa_lr: impl Into<PerGroup>) -> SwaLr {
        SwaLr { swa_lr: swa_lr.into(), anneal_epochs: 10, anneal_strategy: Anneal::Cos }
    }

    setters! {
        /// The number of steps to the constant rate; with 0, it is reached at once. Default: 10.
        anneal_epochs: u64,
        /// How the rate goes there. Default: [`Anneal::Cos`].
        anneal_strategy: Anneal,
    }

    /// The part of the way that is behind a step.
    fn part(&self, step: f64) -> f64 {
        let part = match self.anneal_epochs {
            0 => 1.0,
            epochs => (step / epochs as f64).clamp(0.0, 1.0),
        };
        match self.anneal_strategy {
            Anneal::Cos => (1.0 - (PI * part).cos()) / 2.0,
            Anneal::Linear => part,
        }
    }
}

impl Schedule for SwaLr {
    fn lr(&self, step: f64, base: f64, group: usize) -> f64 {
        replay(self, step, base, group)
    }

    fn settings(&self) -> serde_json::Value {
        settings_of(self)
    }

    fn check(&self, groups: usize) -> Result<()> {
        self.swa_lr.check(self.name(), "swa_lr", groups)
    }

    /// In a sequence, the way starts from the rate of the schedule before.
    fn is_function_of_step(&self) -> bool {
        false
    }

    fn next(&self, step: f64, last: f64, _base: f64, group: usize) -> f64 {
        let (before, part, swa_lr) = (self.part(step - 1.0), self.part(step), self.swa_lr.get(group));
        let start = if before == 1.0 { swa_lr } else { (last - before * swa_lr) / (1.0 - before) };
        swa_lr * part + start * (1.0 - part)
    }

    fn follow(&self, last: f64, _base: f64, group: usize) -> f64 {
        self.lr(0.0, last, group)
    }
}
