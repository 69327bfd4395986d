//! Rates that rise and fall, and the momentum with them: [`OneCycle`] and [`Cyclic`].

use super::{PerGroup, Schedule, finite, positive, require, setters, settings_of};
use namegrad_core::{Error, ErrorKind, Result};
use serde::Serialize;
use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

/// How a [`OneCycle`] or a [`SwaLr`](super::SwaLr) goes from one rate to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Anneal {
    /// Along half a cosine wave.
    Cos,
    /// In a straight line.
    Linear,
}

impl Anneal {
    /// The value after a part of the way from `start` to `end`.
    fn at(self, start: f64, end: f64, part: f64) -> f64 {
        match self {
            Anneal::Cos => end + (start - end) / 2.0 * ((PI * part).cos() + 1.0),
            Anneal::Linear => (end - start) * part + start,
        }
    }
}

/// Raises the rate to `max_lr` and lowers it far below its start, once; the momentum does the opposite:
/// `torch.optim.lr_scheduler.OneCycleLR`.
///
/// With `initial = max_lr / div_factor` and `min = initial / final_div_factor`:
///
/// ```text
/// from step                     to step                  lr                  momentum
/// 0                             pct_start · total - 1    initial → max_lr    max → base
/// pct_start · total - 1         total - 1                max_lr → min        base → max
/// ```
///
/// With `three_phase`:
///
/// ```text
/// 0                             pct_start · total - 1    initial → max_lr    max → base
/// pct_start · total - 1         2 pct_start · total - 2  max_lr → initial    base → max
/// 2 pct_start · total - 2       total - 1                initial → min       max
/// ```
///
/// The learning rates of the optimizer do not matter. `total_steps` counts steps of the scheduler: in
/// training with a step for each batch, it is the number of epochs times that of batches. The rate after the
/// last step, `total_steps`, is not used any more; further steps are an error.
///
/// # Source
/// Smith, Topin, *Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates*
/// (arXiv:1708.07120), which has three phases.
///
/// # Examples
/// ```
/// use namegrad::optim::schedule::{OneCycle, Schedule, Scheduler};
/// use namegrad::prelude::*;
/// let mut optimizer = AdamW::new([Parameter::new(Tensor::new([1.0])?)?])?;
/// let (epochs, batches) = (2, 5);
/// let mut scheduler = Scheduler::new(OneCycle::new(0.5, epochs * batches), &mut optimizer)?;
/// assert!((optimizer.lr() - 0.02).abs() < 1e-15);
/// for _ in 0..2 {
///     optimizer.step()?;
///     scheduler.step(&mut optimizer)?;
/// }
/// assert!((optimizer.lr() - 0.5).abs() < 1e-15);
/// assert!((optimizer.momentums().unwrap()[0] - 0.85).abs() < 1e-15);
/// # Ok::<(), Error>(())
/// ```
#[doc(alias = "OneCycleLR")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneCycle {
    max_lr: PerGroup,
    total_steps: u64,
    pct_start: f64,
    anneal_strategy: Anneal,
    cycle_momentum: bool,
    base_momentum: PerGroup,
    max_momentum: PerGroup,
    div_factor: f64,
    final_div_factor: f64,
    three_phase: bool,
}

impl OneCycle {
    /// Raises the rate to `max_lr`, of all groups or of each, and lowers it again, in `total_steps` steps.
    pub fn new(max_lr: impl Into<PerGroup>, total_steps: u64) -> OneCycle {
        OneCycle {
            max_lr: max_lr.into(),
            total_steps,
            pct_start: 0.3,
            anneal_strategy: Anneal::Cos,
            cycle_momentum: true,
            base_momentum: PerGroup::All(0.85),
            max_momentum: PerGroup::All(0.95),
            div_factor: 25.0,
            final_div_factor: 1e4,
            three_phase: false,
        }
    }

    setters! {
        /// The part of the steps in which the rate rises, between 0 and 1. Default: 0.3.
        pct_start: f64,
        /// How the rate goes up and down. Default: [`Anneal::Cos`].
        anneal_strategy: Anneal,
        /// Whether to change the momentum, for Adam the first of the `betas`. Default: true.
        cycle_momentum: bool,
        /// `max_lr` divided by the first rate. Default: 25.
        div_factor: f64,
        /// The first rate divided by the last. Default: 10,000.
        final_div_factor: f64,
        /// Whether the rate falls to the first rate before it falls to the last. Default: false.
        three_phase: bool,
        /// The momentum where the rate is highest, of all groups or of each. Default: 0.85.
        base_momentum: impl Into<PerGroup>,
        /// The momentum at the start and at the end, of all groups or of each. Default: 0.95.
        max_momentum: impl Into<PerGroup>,
    }

    /// The phase that a step is in, and the part of it that is over.
    fn phase(&self, step: f64) -> (usize, f64) {
        let total = self.total_steps as f64;
        let ends = match self.three_phase {
            true => [self.pct_start * total - 1.0, 2.0 * self.pct_start * total - 2.0, total - 1.0],
            false => [self.pct_start * total - 1.0, total - 1.0, total - 1.0],
        };
        let last = if self.three_phase { 2 } else { 1 };
        let phase = ends[..last].iter().position(|end| step <= *end).unwrap_or(last);
        let start = if phase == 0 { 0.0 } else { ends[phase - 1] };
        let length = ends[phase] - start;
        (phase, if length == 0.0 { 1.0 } else { (step - start) / length })
    }
}

impl Schedule for OneCycle {
    fn lr(&self, step: f64, _base: f64, group: usize) -> f64 {
        let max = self.max_lr.get(group);
        let initial = max / self.div_factor;
        let min = initial / self.final_div_factor;
        let (phase, part) = self.phase(step);
        let (start, end) = match (phase, self.three_phase) {
            (0, _) => (initial, max),
            (1, false) => (max, min),
            (1, true) => (max, initial),
            _ => (initial, min),
        };
        let lr = self.anneal_strategy.at(start, end, part);
        // The rate after the last step is not used. A line would be below 0 there.
        if lr < 0.0 { 0.0 } else { lr }
    }

    fn momentum(&self, step: f64, group: usize) -> Option<f64> {
        if !self.cycle_momentum {
            return None;
        }
        let (base, max) = (self.base_momentum.get(group), self.max_momentum.get(group));
        let (phase, part) = self.phase(step);
        let (start, end) = match phase {
            0 => (max, base),
            1 => (base, max),
            _ => (max, max),
        };
        Some(self.anneal_strategy.at(start, end, part))
    }

    fn settings(&self) -> serde_json::Value {
        settings_of(self)
    }

    fn check(&self, groups: usize) -> Result<()> {
        let op = self.name();
        positive(op, "total_steps", self.total_steps, "OneCycle::new(0.1, epochs * batches)")?;
        let message = || format!("expected pct_start between 0 and 1, but got {:?}", self.pct_start);
        let repair = "OneCycle::new(0.1, 1000).pct_start(0.3)";
        require((0.0..=1.0).contains(&self.pct_start), op, message, repair)?;
        for (what, value) in [("div_factor", self.div_factor), ("final_div_factor", self.final_div_factor)] {
            let message = || format!("{what} must be finite and not 0, but is {value:?}");
            let repair = format!("OneCycle::new(0.1, 1000).{what}(25.0)");
            require(value.is_finite() && value != 0.0, op, message, &repair)?;
        }
        self.max_lr.check(op, "max_lr", groups)?;
        if self.cycle_momentum {
            self.base_momentum.check(op, "base_momentum", groups)?;
            self.max_momentum.check(op, "max_momentum", groups)?;
        }
        Ok(())
    }

    fn check_step(&self, step: f64) -> Result<()> {
        if step <= self.total_steps as f64 {
            return Ok(());
        }
        let message = format!(
            "tried to step {step} times, but the specified number of total steps is {}",
            self.total_steps
        );
        let repair = format!("OneCycle::new(0.1, {step}): the number of epochs times that of batches");
        Err(Error::new(ErrorKind::Value, self.name(), message).with_repair(repair))
    }
}

/// How the height of the cycles of a [`Cyclic`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CycleMode {
    /// All cycles have the same height.
    Triangular,
    /// Each cycle is half as high as the one before.
    Triangular2,
    /// The height is multiplied by this number in each step. PyTorch calls it `gamma`.
    ExpRange(f64),
}

/// What the function of [`Cyclic::scale_fn`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaleMode {
    /// The number of the cycle, from 1.
    Cycle,
    /// The step, from 0.
    Iterations,
}

/// Moves the rate between two bounds in straight lines, again and again; the momentum does the opposite:
/// `torch.optim.lr_scheduler.CyclicLR`.
///
/// With `total = step_size_up + step_size_down`:
///
/// ```text
/// cycle    = ⌊1 + step / total⌋
/// x        = 1 + step / total - cycle
/// height   = x / ratio                if x ≤ ratio, with ratio = step_size_up / total
///          = (x - 1) / (ratio - 1)    otherwise
/// lr       = base_lr + (max_lr - base_lr) · height · scale
/// momentum = max_momentum - (max_momentum - base_momentum) · height · scale
/// ```
///
/// `scale` is 1 for [`CycleMode::Triangular`], `1 / 2^(cycle - 1)` for [`CycleMode::Triangular2`],
/// `gamma^step` for [`CycleMode::ExpRange`]. The learning rates of the optimizer do not matter.
///
/// # Source
/// Smith, *Cyclical Learning Rates for Training Neural Networks* (arXiv:1506.01186).
///
/// # Examples
/// ```
/// use namegrad::optim::schedule::{Cyclic, CycleMode, Schedule};
/// let schedule = Cyclic::new(0.0, 1.0).step_size_up(2).mode(CycleMode::Triangular2);
/// assert_eq!([0.0, 1.0, 2.0, 4.0, 6.0].map(|step| schedule.lr(step, 0.1, 0)), [0.0, 0.5, 1.0, 0.0, 0.5]);
/// ```
#[doc(alias = "CyclicLR")]
#[derive(Clone, Serialize)]
pub struct Cyclic {
    base_lr: PerGroup,
    max_lr: PerGroup,
    step_size_up: u64,
    step_size_down: Option<u64>,
    mode: CycleMode,
    #[serde(skip)]
    scale_fn: Option<Arc<dyn Fn(f64) -> f64 + Send + Sync>>,
    scale_mode: Option<ScaleMode>,
    cycle_momentum: bool,
    base_momentum: PerGroup,
    max_momentum: PerGroup,
}

impl fmt::Debug for Cyclic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cyclic {}", self.settings())
    }
}

impl Cyclic {
    /// Moves the rate between `base_lr` and `max_lr`, of all groups or of each, in 2,000 steps up and 2,000
    /// down.
    pub fn new(base_lr: impl Into<PerGroup>, max_lr: impl Into<PerGroup>) -> Cyclic {
        Cyclic {
            base_lr: base_lr.into(),
            max_lr: max_lr.into(),
            step_size_up: 2000,
            step_size_down: None,
            mode: CycleMode::Triangular,
            scale_fn: None,
            scale_mode: None,
            cycle_momentum: true,
            base_momentum: PerGroup::All(0.8),
            max_momentum: PerGroup::All(0.9),
        }
    }

    setters! {
        /// The number of steps from `base_lr` to `max_lr`. Default: 2,000.
        step_size_up: u64,
        /// The number of steps from `max_lr` to `base_lr`. Default: `step_size_up`.
        step_size_down: u64,
        /// How the height of the cycles changes. Default: [`CycleMode::Triangular`].
        mode: CycleMode,
        /// Whether to change the momentum, for Adam the first of the `betas`. Default: true.
        cycle_momentum: bool,
        /// The momentum where the rate is highest, of all groups or of each. Default: 0.8.
        base_momentum: impl Into<PerGroup>,
        /// The momentum where the rate is lowest, of all groups or of each. Default: 0.9.
        max_momentum: impl Into<PerGroup>,
    }

    /// Multiplies the height of the cycles by your own function, in place of the mode.
    ///
    /// A function cannot be saved. A [state](super::SchedulerState) has the other settings and the step, and
    /// a schedule with the same settings loads it, whatever its function: give it the same one. The rates are
    /// then those of an uninterrupted run, because they depend on the step alone.
    ///
    /// ```
    /// use namegrad::optim::schedule::{Cyclic, ScaleMode, Schedule};
    /// let schedule = Cyclic::new(0.0, 1.0).step_size_up(2).scale_fn(ScaleMode::Cycle, |cycle| 1.0 / cycle);
    /// assert_eq!([2.0, 6.0, 14.0].map(|step| schedule.lr(step, 0.1, 0)), [1.0, 0.5, 0.25]);
    /// ```
    pub fn scale_fn(
        mut self,
        scale_mode: ScaleMode,
        scale_fn: impl Fn(f64) -> f64 + Send + Sync + 'static,
    ) -> Self {
        self.scale_fn = Some(Arc::new(scale_fn));
        self.scale_mode = Some(scale_mode);
        self
    }

    /// `height` and `scale` of a step.
    fn height_and_scale(&self, step: f64) -> (f64, f64) {
        let up = self.step_size_up as f64;
        let total = up + self.step_size_down.unwrap_or(self.step_size_up) as f64;
        let ratio = up / total;
        let cycle = (1.0 + step / total).floor();
        let x = 1.0 + step / total - cycle;
        let height = if x <= ratio { x / ratio } else { (x - 1.0) / (ratio - 1.0) };
        let scale = match (&self.scale_fn, self.mode) {
            (Some(scale_fn), _) if self.scale_mode == Some(ScaleMode::Iterations) => scale_fn(step),
            (Some(scale_fn), _) => scale_fn(cycle),
            (None, CycleMode::Triangular) => 1.0,
            (None, CycleMode::Triangular2) => 1.0 / 2.0_f64.powf(cycle - 1.0),
            (None, CycleMode::ExpRange(gamma)) => gamma.powf(step),
        };
        (height, scale)
    }
}

impl Schedule for Cyclic {
    fn lr(&self, step: f64, _base: f64, group: usize) -> f64 {
        let (base, max) = (self.base_lr.get(group), self.max_lr.get(group));
        let (height, scale) = self.height_and_scale(step);
        base + (max - base) * height * scale
    }

    fn momentum(&self, step: f64, group: usize) -> Option<f64> {
        if !self.cycle_momentum {
            return None;
        }
        let (base, max) = (self.base_momentum.get(group), self.max_momentum.get(group));
        let (height, scale) = self.height_and_scale(step);
        Some(max - (max - base) * height * scale)
    }

    fn settings(&self) -> serde_json::Value {
        settings_of(self)
    }

    fn check(&self, groups: usize) -> Result<()> {
        let op = self.name();
        positive(op, "step_size_up", self.step_size_up, "Cyclic::new(0.01, 0.1).step_size_up(2000)")?;
        if let CycleMode::ExpRange(gamma) = self.mode {
            finite(op, "gamma", gamma, "Cyclic::new(0.01, 0.1).mode(CycleMode::ExpRange(0.99))")?;
        }
        self.base_lr.check(op, "base_lr", groups)?;
        self.max_lr.check(op, "max_lr", groups)?;
        if self.cycle_momentum {
            self.base_momentum.check(op, "base_momentum", groups)?;
            self.max_momentum.check(op, "max_momentum", groups)?;
        }
        Ok(())
    }
}
