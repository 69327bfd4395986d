//! Schedules that set the rate itself, and the momentum with it: [`OneCycle`], [`Cyclic`] and [`SwaLr`].

use super::*;

/// How a [`OneCycle`] or a [`SwaLr`](super::SwaLr) goes from one rate to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Words)]
#[serde(rename_all = "snake_case")]
pub enum Anneal {
    /// Along half a cosine wave.
    Cos,
    /// In a straight line.
    Linear,
}

impl Choice for Anneal {}

impl Anneal {
    /// The value after a part of the way from `start` to `end`.
    fn at(self, start: f64, end: f64, part: f64) -> f64 {
        match self {
            Anneal::Cos => end + (start - end) / 2.0 * ((PI * part).cos() + 1.0),
            Anneal::Linear => (end - start) * part + start,
        }
    }
}

options! {
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
    /// training with a step for each batch, it is the number of epochs times that of batches. The rate after
    /// the last step, `total_steps`, is not used any more; further steps are an error.
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
    #[derive(Clone, Debug, PartialEq)]
    OneCycle {
        /// Raises the rate to `max_lr`, of all groups or of each, and lowers it again, in `total_steps`
        /// steps.
        new([max_lr: PerGroup = 0.1 in f64::MIN..=f64::MAX], total_steps: usize = 1000 in 1..)
        /// The part of the steps in which the rate rises.
        pct_start: f64 = 0.3 in 0.0..=1.0 => "expected pct_start between 0 and 1, but got {}",
        /// How the rate goes up and down.
        anneal_strategy: Anneal = (Anneal::Cos),
        /// Whether to change the momentum, for Adam the first of the `betas`.
        cycle_momentum: bool = true,
        /// `max_lr` divided by the first rate.
        div_factor: f64 = 25.0 in NonZero => "div_factor must be finite and not 0, but is {}",
        /// The first rate divided by the last.
        final_div_factor: f64 = 1e4 in NonZero => "final_div_factor must be finite and not 0, but is {}",
        /// Whether the rate falls to the first rate before it falls to the last.
        three_phase: bool = false,
        each {
            /// The momentum where the rate is highest, of all groups or of each.
            base_momentum = 0.85,
            /// The momentum at the start and at the end, of all groups or of each.
            max_momentum = 0.95,
        }
    }

    impl Schedule {
        fn lr(&self, step: f64, _base: f64, group: usize) -> f64 {
            let max = self.max_lr.get(group);
            let initial = max / self.div_factor;
            let min = initial / self.final_div_factor;
            let ends = if self.three_phase { [initial, max, initial, min] } else { [initial, max, min, min] };
            let lr = self.between(step, ends);
            // The rate after the last step is not used. A line would be below 0 there.
            if lr < 0.0 { 0.0 } else { lr }
        }

        fn momentum(&self, step: f64, group: usize) -> Option<f64> {
            let (base, max) = (self.base_momentum.get(group), self.max_momentum.get(group));
            self.cycle_momentum.then(|| self.between(step, [max, base, max, max]))
        }

        fn check_step(&self, step: f64) -> Result<()> {
            let total = self.total_steps;
            ensure(step <= total as f64, self.name(), || {
                let message = format!(
                    "tried to step {step} times, but the specified number of total steps is {total}"
                );
                (message, format!("OneCycle::new(0.1, {step}), with the number of epochs times that of batches"))
            })
        }
    }
}

impl OneCycle {
    /// The value in a step that goes from one to the next of these in each phase.
    fn between(&self, step: f64, values: [f64; 4]) -> f64 {
        let (total, up) = (self.total_steps as f64, self.pct_start * self.total_steps as f64);
        let ends = match self.three_phase {
            true => &[up - 1.0, 2.0 * up - 2.0, total - 1.0][..],
            false => &[up - 1.0, total - 1.0],
        };
        let phase = ends.iter().position(|end| step <= *end).unwrap_or(ends.len() - 1);
        let start = if phase == 0 { 0.0 } else { ends[phase - 1] };
        let length = ends[phase] - start;
        let part = if length == 0.0 { 1.0 } else { (step - start) / length };
        self.anneal_strategy.at(values[phase], values[phase + 1], part)
    }
}

/// How the height of the cycles of a [`Cyclic`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CycleMode {
    /// All cycles have the same height.
    Triangular,
    /// Each cycle is half as high as the one before.
    Triangular2,
    /// The height is multiplied by this number in each step. PyTorch calls it `gamma`.
    ExpRange(f64),
}

/// The argument of the function of [`Cyclic::scale_fn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Words)]
#[serde(rename_all = "snake_case")]
pub enum ScaleMode {
    /// The number of the cycle, from 1.
    Cycle,
    /// The step, from 0.
    Iterations,
}

impl Choice for ScaleMode {}

impl OfJson for CycleMode {
    fn to_json(&self) -> Json {
        match self {
            CycleMode::Triangular => "triangular".into(),
            CycleMode::Triangular2 => "triangular2".into(),
            CycleMode::ExpRange(gamma) => object(vec![("exp_range", gamma.to_json())]),
        }
    }
    /// A number alone is the factor of `ExpRange`.
    fn of_json(json: &Json) -> std::result::Result<CycleMode, String> {
        match json.as_str() {
            Some("triangular") => Ok(CycleMode::Triangular),
            Some("triangular2") => Ok(CycleMode::Triangular2),
            _ => f64::of_json(json.get("exp_range").unwrap_or(json)).map(CycleMode::ExpRange),
        }
    }
}

options! {
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
    /// let rates = [0.0, 1.0, 2.0, 4.0, 6.0].map(|step| schedule.lr(step, 0.1, 0));
    /// assert_eq!(rates, [0.0, 0.5, 1.0, 0.0, 0.5]);
    /// ```
    #[doc(alias = "CyclicLR")]
    #[derive(Clone)]
    Cyclic {
        /// Moves the rate between `base_lr` and `max_lr`, of all groups or of each, in 2,000 steps up and
        /// 2,000 down.
        new([base_lr: PerGroup = 0.01 in f64::MIN..=f64::MAX, max_lr: PerGroup = 0.1 in f64::MIN..=f64::MAX])
        /// The number of steps from `base_lr` to `max_lr`.
        step_size_up: usize = 2000 in 1..,
        /// The number of steps from `max_lr` to `base_lr`, `step_size_up` if it is not given.
        step_size_down: Option<usize> = None,
        /// How the height of the cycles changes.
        mode: CycleMode = (CycleMode::Triangular) in f64::MIN..=f64::MAX => "gamma must be finite, but is {}",
        /// Whether to change the momentum, for Adam the first of the `betas`.
        cycle_momentum: bool = true,
        /// The argument of the function of [`scale_fn`](Self::scale_fn), if there is one.
        #[setters(skip)]
        scale_mode: Option<ScaleMode> = None,
        each {
            /// The momentum where the rate is highest, of all groups or of each.
            base_momentum = 0.8,
            /// The momentum where the rate is lowest, of all groups or of each.
            max_momentum = 0.9,
        }
        private { scale_fn: Option<FactorFn> }
    }

    impl Schedule {
        fn lr(&self, step: f64, _base: f64, group: usize) -> f64 {
            let (base, max) = (self.base_lr.get(group), self.max_lr.get(group));
            let (height, scale) = self.height_and_scale(step);
            base + (max - base) * height * scale
        }

        fn momentum(&self, step: f64, group: usize) -> Option<f64> {
            self.cycle_momentum.then(|| {
                let (base, max) = (self.base_momentum.get(group), self.max_momentum.get(group));
                let (height, scale) = self.height_and_scale(step);
                max - (max - base) * height * scale
            })
        }
    }
}

impl Cyclic {
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
        self,
        scale_mode: ScaleMode,
        scale_fn: impl Fn(f64) -> f64 + Send + Sync + 'static,
    ) -> Self {
        Cyclic { scale_fn: Some(Arc::new(scale_fn)), scale_mode: Some(scale_mode), ..self }
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

options! {
    /// Goes to a constant rate and stays there, for an [equal average](crate::AveragedModel::new) of the
    /// weights:
    /// `torch.optim.swa_utils.SWALR`.
    ///
    /// ```text
    /// lr = swa_lr · a + base · (1 - a)    where a goes from 0 to 1 in anneal_epochs steps
    /// ```
    ///
    /// Make its [`Scheduler`](super::Scheduler) when the average starts, or let it follow another schedule in
    /// a [`Sequence`](super::Sequence). It starts from the rates that the optimizer has then.
    ///
    /// # Source
    /// Izmailov et al., *Averaging Weights Leads to Wider Optima and Better Generalization*
    /// (arXiv:1803.05407), in the form of PyTorch.
    ///
    /// # Examples
    /// ```
    /// use namegrad::optim::schedule::{Anneal, Schedule, SwaLr};
    /// let schedule = SwaLr::new(0.5).anneal_epochs(4).anneal_strategy(Anneal::Linear);
    /// let rates = [0.0, 1.0, 2.0, 4.0, 9.0].map(|step| schedule.lr(step, 1.0, 0));
    /// assert_eq!(rates, [1.0, 0.875, 0.75, 0.5, 0.5]);
    /// ```
    #[doc(alias = "SWALR")]
    #[derive(Clone, Debug, PartialEq)]
    SwaLr {
        /// Goes to `swa_lr`, of all groups or of each, in 10 steps.
        new([swa_lr: PerGroup = 0.05 in f64::MIN..=f64::MAX])
        /// The number of steps to the constant rate; with 0, it is reached at once.
        anneal_epochs: usize = 10,
        /// How the rate goes there.
        anneal_strategy: Anneal = (Anneal::Cos),
    }

    impl Schedule {
        fn lr(&self, step: f64, base: f64, group: usize) -> f64 { replay(self, step, base, group) }

        /// In a sequence, the way starts from the rate of the schedule before.
        fn is_function_of_step(&self) -> bool { false }

        fn next(&self, step: f64, last: f64, _base: f64, group: usize) -> f64 {
            let (before, part, swa_lr) = (self.part(step - 1.0), self.part(step), self.swa_lr.get(group));
            let start = if before == 1.0 { swa_lr } else { (last - before * swa_lr) / (1.0 - before) };
            swa_lr * part + start * (1.0 - part)
        }

        fn follow(&self, last: f64, _base: f64, group: usize) -> f64 { self.lr(0.0, last, group) }
    }
}

impl SwaLr {
    /// The part of the way that is behind a step.
    fn part(&self, step: f64) -> f64 {
        let epochs = self.anneal_epochs as f64;
        let part = if epochs == 0.0 { 1.0 } else { (step / epochs).clamp(0.0, 1.0) };
        match self.anneal_strategy {
            Anneal::Cos => (1.0 - (PI * part).cos()) / 2.0,
            Anneal::Linear => part,
        }
    }
}
