//! Half cosine waves: [`Cosine`] and [`CosineRestarts`].

use super::{Schedule, finite, positive, require, setters, settings_of};
use namegrad_core::Result;
use serde::Serialize;
use std::f64::consts::PI;

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
/// Loshchilov, Hutter, *SGDR: Stochastic Gradient Descent with Warm Restarts* (arXiv:1608.03983), equation 5,
/// for one cycle.
///
/// # Examples
/// ```
/// use namegrad::optim::schedule::{Cosine, Schedule};
/// let schedule = Cosine::new(1000);
/// assert_eq!([0.0, 500.0, 1000.0].map(|step| schedule.lr(step, 0.1, 0)), [0.1, 0.05, 0.0]);
/// ```
#[doc(alias = "CosineAnnealingLR")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cosine {
    t_max: u64,
    eta_min: f64,
}

impl Cosine {
    /// Lowers the rate to 0 in `t_max` steps.
    pub fn new(t_max: u64) -> Cosine {
        Cosine { t_max, eta_min: 0.0 }
    }

    setters! {
        /// The lowest rate. Default: 0.
        eta_min: f64,
    }
}

impl Schedule for Cosine {
    fn lr(&self, step: f64, base: f64, _group: usize) -> f64 {
        wave(step, self.t_max as f64, base, self.eta_min)
    }

    fn settings(&self) -> serde_json::Value {
        settings_of(self)
    }

    fn check(&self, _groups: usize) -> Result<()> {
        positive(self.name(), "t_max", self.t_max, "Cosine::new(1000)")?;
        finite(self.name(), "eta_min", self.eta_min, "Cosine::new(1000).eta_min(0.0)")
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

/// The rate at `step` of half a wave of `length` steps.
fn wave(step: f64, length: f64, base: f64, eta_min: f64) -> f64 {
    eta_min + (base - eta_min) * (1.0 + (PI * step / length).cos()) / 2.0
}

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
/// Loshchilov, Hutter, *SGDR: Stochastic Gradient Descent with Warm Restarts* (arXiv:1608.03983), equation 5.
///
/// # Examples
/// ```
/// use namegrad::optim::schedule::{CosineRestarts, Schedule};
/// let schedule = CosineRestarts::new(2).t_mult(2); // waves from 0 to 2, from 2 to 6, from 6 to 14
/// assert_eq!([0.0, 1.0, 2.0, 4.0, 6.0].map(|step| schedule.lr(step, 0.1, 0)), [0.1, 0.05, 0.1, 0.05, 0.1]);
/// ```
#[doc(alias = "CosineAnnealingWarmRestarts")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CosineRestarts {
    t_0: u64,
    t_mult: u64,
    eta_min: f64,
}

impl CosineRestarts {
    /// Lowers the rate to 0 again and again, in `t_0` steps.
    pub fn new(t_0: u64) -> CosineRestarts {
        CosineRestarts { t_0, t_mult: 1, eta_min: 0.0 }
    }

    setters! {
        /// How many times as long as the wave before each wave is. Default: 1.
        t_mult: u64,
        /// The lowest rate. Default: 0.
        eta_min: f64,
    }
}

impl Schedule for CosineRestarts {
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

    fn settings(&self) -> serde_json::Value {
        settings_of(self)
    }

    fn check(&self, _groups: usize) -> Result<()> {
        positive(self.name(), "t_0", self.t_0, "CosineRestarts::new(1000)")?;
        let message = || format!("expected integer t_mult >= 1, but got {}", self.t_mult);
        require(self.t_mult >= 1, self.name(), message, "CosineRestarts::new(1000).t_mult(2)")?;
        finite(self.name(), "eta_min", self.eta_min, "CosineRestarts::new(1000).eta_min(0.0)")
    }
}
