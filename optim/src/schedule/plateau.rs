//! [`ReduceOnPlateau`], which depends on a metric.

use super::*;

const NAME: &str = "ReduceOnPlateau";

/// Whether a metric should fall or rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Words)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Less is better, such as a loss.
    Min,
    /// More is better, such as an accuracy.
    Max,
}

impl Choice for Mode {}

/// The reference of the threshold of an improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Words)]
#[serde(rename_all = "snake_case")]
pub enum ThresholdMode {
    /// A part of the best metric so far.
    Rel,
    /// A difference from the best metric so far.
    Abs,
}

impl Choice for ThresholdMode {}

/// Multiplies the rate by a factor when a metric has not improved for some steps:
/// `torch.optim.lr_scheduler.ReduceLROnPlateau`.
///
/// A metric improves if
///
/// ```text
/// metric < best · (1 - threshold)    Mode::Min, ThresholdMode::Rel
/// metric < best - threshold          Mode::Min, ThresholdMode::Abs
/// metric > best · (1 + threshold)    Mode::Max, ThresholdMode::Rel
/// metric > best + threshold          Mode::Max, ThresholdMode::Abs
/// ```
///
/// After more than `patience` steps in a row without an improvement, each group gets
///
/// ```text
/// lr = max(lr · factor, min_lr)    if that changes lr by more than eps
/// ```
///
/// and the following `cooldown` steps do not count. A metric that is NaN never improves.
///
/// A step is a call of [`step`](Self::step), usually one for each epoch, with the loss of the validation. It
/// changes the rates that the optimizer has, also where they were set by something else.
///
/// # Examples
/// ```
/// use namegrad::optim::schedule::ReduceOnPlateau;
/// use namegrad::prelude::*;
/// let mut optimizer = Sgd::builder([Parameter::new(Tensor::new([1.0])?)?]).lr(0.5).build()?;
/// let mut scheduler = ReduceOnPlateau::builder().factor(0.5).patience(1).build(&optimizer)?;
/// for loss in [1.0, 0.8, 0.8, 0.9] {
///     scheduler.step(loss, &mut optimizer)?;
/// }
/// assert_eq!(optimizer.lr(), 0.25);
/// # Ok::<(), Error>(())
/// ```
#[doc(alias = "ReduceLROnPlateau")]
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceOnPlateau {
    settings: ReduceOnPlateauBuilder,
    lrs: Vec<f64>,
    steps: u64,
    best: f64,
    bad_steps: u64,
    cooldown: u64,
}

options! {
    /// The settings of a [`ReduceOnPlateau`].
    #[derive(Clone, Debug, PartialEq)]
    ReduceOnPlateauBuilder {
        /// The default settings.
        new()
        /// Whether the metric should fall or rise.
        mode: Mode = (Mode::Min),
        /// The factor.
        factor: f64 = 0.1 in f64::MIN..1.0 => "factor should be < 1.0, but is {}",
        /// The number of steps without an improvement that do not change the rate yet.
        patience: u64 = 10,
        /// How much better a metric must be than the best.
        threshold: f64 = 1e-4 in .. => "threshold must be a number, but is {}",
        /// Whether the threshold is relative to the best metric or absolute.
        threshold_mode: ThresholdMode = (ThresholdMode::Rel),
        /// The number of steps after a change that do not count.
        cooldown: u64 = 0,
        /// The smallest change of the rate that is made.
        eps: f64 = 1e-8 in .. => "eps must be a number, but is {}",
        each {
            /// The lowest rate, of all groups or of each.
            min_lr = 0.0,
        }
    }
}

impl ReduceOnPlateauBuilder {
    /// Builds the scheduler for an optimizer.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the factor is not less than 1, a setting is NaN, or there is not one `min_lr`
    /// for each group.
    #[track_caller]
    pub fn build(self, optimizer: &dyn Optimizer) -> Result<ReduceOnPlateau> {
        let lrs = optimizer.lrs();
        check(&self, NAME, lrs.len())?;
        let best = if self.mode == Mode::Min { f64::INFINITY } else { f64::NEG_INFINITY };
        Ok(ReduceOnPlateau { settings: self, lrs, steps: 0, best, bad_steps: 0, cooldown: 0 })
    }

    fn improves(&self, metric: f64, best: f64) -> bool {
        match (self.mode, self.threshold_mode) {
            (Mode::Min, ThresholdMode::Rel) => metric < best * (1.0 - self.threshold),
            (Mode::Min, ThresholdMode::Abs) => metric < best - self.threshold,
            (Mode::Max, ThresholdMode::Rel) => metric > best * (self.threshold + 1.0),
            (Mode::Max, ThresholdMode::Abs) => metric > best + self.threshold,
        }
    }
}

impl ReduceOnPlateau {
    /// A scheduler with the default settings.
    ///
    /// # Errors
    /// Same as [`ReduceOnPlateauBuilder::build`]; the default settings are in range.
    #[track_caller]
    pub fn new(optimizer: &dyn Optimizer) -> Result<ReduceOnPlateau> {
        ReduceOnPlateau::builder().build(optimizer)
    }

    /// A builder for a scheduler with other settings.
    pub fn builder() -> ReduceOnPlateauBuilder {
        ReduceOnPlateauBuilder::new()
    }

    /// Takes a metric, and lowers the rates if it has not improved for long enough.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if there is a `min_lr` for each group and the optimizer has other groups than
    /// before. Nothing changes then.
    #[track_caller]
    pub fn step(&mut self, metric: f64, optimizer: &mut dyn Optimizer) -> Result<()> {
        let mut next = ReduceOnPlateau { lrs: optimizer.lrs(), ..self.clone() };
        check(&self.settings, NAME, next.lrs.len())?;
        next.steps += 1;
        next.bad_steps += 1;
        if self.settings.improves(metric, self.best) {
            (next.best, next.bad_steps) = (metric, 0);
        }
        if next.cooldown > 0 {
            next.cooldown -= 1;
            next.bad_steps = 0;
        }
        if next.bad_steps > self.settings.patience {
            (next.cooldown, next.bad_steps) = (self.settings.cooldown, 0);
            for (group, lr) in next.lrs.iter_mut().enumerate() {
                let lower = (*lr * self.settings.factor).max(self.settings.min_lr.get(group));
                if *lr - lower > self.settings.eps {
                    *lr = lower;
                }
            }
            at_caller(|| optimizer.set_lrs(&next.lrs))?;
        }
        *self = next;
        Ok(())
    }

    /// The number of steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The best metric so far. Before the first, it is infinite.
    pub fn best(&self) -> f64 {
        self.best
    }

    /// The learning rate of each group after the last step.
    #[doc(alias = "get_last_lr")]
    pub fn lrs(&self) -> &[f64] {
        &self.lrs
    }

    /// Everything that the next rates depend on.
    pub fn state_dict(&self) -> SchedulerState {
        let settings = (&self.settings as &dyn Rows).to_json();
        // JSON has no infinite numbers.
        let memory = object(vec![
            ("best", format!("{:?}", self.best).into()),
            ("num_bad_epochs", self.bad_steps.into()),
            ("cooldown_counter", self.cooldown.into()),
        ]);
        let start = SchedulerState::new(NAME, settings, self.lrs.clone());
        SchedulerState { step: self.steps as f64, memory, ..start }
    }

    /// Continues from a state as if this scheduler had made the earlier steps, and sets the rates of the
    /// state in the optimizer.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the state is of another schedule or of an optimizer with other groups; the
    /// message says what differs. Nothing changes then.
    #[track_caller]
    pub fn load_state_dict(&mut self, state: &SchedulerState, optimizer: &mut dyn Optimizer) -> Result<()> {
        let next = at_caller(|| self.fitted(state, optimizer.lrs().len()))?;
        at_caller(|| optimizer.set_lrs(&next.lrs))?;
        *self = next;
        Ok(())
    }

    /// Continues from a state without an optimizer. It is for an optimizer that loads its own state, which
    /// has the rates too.
    ///
    /// # Errors
    /// Same as [`load_state_dict`](Self::load_state_dict).
    #[track_caller]
    pub fn resume(&mut self, state: &SchedulerState) -> Result<()> {
        *self = at_caller(|| self.fitted(state, self.lrs.len()))?;
        Ok(())
    }

    /// The same scheduler with a state, if the state fits.
    fn fitted(&self, state: &SchedulerState, groups: usize) -> Result<ReduceOnPlateau> {
        state
            .check(NAME, &(&self.settings as &dyn Rows).to_json(), groups)
            .map_err(|error| error.with_repair(""))?;
        let count = |key: &str| state.memory.get(key).and_then(Json::as_u64);
        let best = state.memory.get("best").and_then(Json::as_str).and_then(|best| best.parse::<f64>().ok());
        let (Some(best), Some(bad_steps), Some(cooldown)) =
            (best.filter(|best| !best.is_nan()), count("num_bad_epochs"), count("cooldown_counter"))
        else {
            let message = format!("the state is damaged: its memory is {}", state.memory);
            return Err(refused(NAME, message, ""));
        };
        let (settings, lrs, steps) = (self.settings.clone(), state.lrs.clone(), state.step as u64);
        Ok(ReduceOnPlateau { settings, lrs, steps, best, bad_steps, cooldown })
    }
}
