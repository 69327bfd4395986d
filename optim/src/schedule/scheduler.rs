//! [`Scheduler`], which sets the rates of a [`Schedule`] in an optimizer.

use super::*;

/// Sets the learning rates of an optimizer, and the momentum if the schedule changes it.
///
/// Call [`step`](Self::step) after each step of the optimizer:
///
/// ```
/// use namegrad::optim::schedule::{Scheduler, StepDecay};
/// use namegrad::prelude::*;
/// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
/// let mut optimizer = Sgd::builder([weight.clone()]).lr(0.25).build()?;
/// let mut scheduler = Scheduler::new(StepDecay::new(2).gamma(0.5), &mut optimizer)?;
/// let mut rates = vec![];
/// for _ in 0..4 {
///     rates.push(optimizer.lr());
///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
///     scheduler.step(&mut optimizer)?;
/// }
/// assert_eq!(rates, [0.25, 0.25, 0.125, 0.125]);
/// # Ok::<(), Error>(())
/// ```
///
/// Each group of parameters has its own rate: the schedule starts from the rate that the group has when the
/// scheduler is made. To use several schedules at once, make one scheduler with [`Chained`](super::Chained)
/// or [`Sequence`](super::Sequence). In PyTorch, a scheduler multiplies the rate that it finds in the
/// optimizer; here, it replaces a rate that was set by hand during training.
#[derive(Debug)]
pub struct Scheduler {
    schedule: Box<dyn Schedule>,
    state: SchedulerState,
}

/// The repair for a rate that no optimizer takes.
const CHECK: &str = "schedule.lr(step, 0.1, 0), which shows what the settings give";

impl Scheduler {
    /// Makes a scheduler for an optimizer, and sets the rates of step 0.
    ///
    /// The schedule starts from the rates that the optimizer has now. After an earlier scheduler, they are not
    /// those that the optimizer was built with: a warmup begins below them, and a decay ends there. Set the
    /// rate again before you make a second scheduler:
    /// ```
    /// use namegrad::optim::schedule::{Cosine, Scheduler};
    /// use namegrad::prelude::*;
    /// let mut optimizer = Sgd::builder([Parameter::new(Tensor::new([1.0])?)?]).lr(0.1).build()?;
    /// let first = Scheduler::new(Cosine::new(100).warmup(5), &mut optimizer)?;
    /// assert!(optimizer.lr() < 0.1); // the first rate of the warmup
    /// optimizer.set_lr(0.1)?;
    /// let second = Scheduler::new(Cosine::new(100).warmup(5), &mut optimizer)?;
    /// assert_eq!(second.base_lrs(), first.base_lrs());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a setting of the schedule is out of range, there is not one for each group, or
    /// the schedule changes the momentum and the optimizer has none. The optimizer does not change then.
    #[track_caller]
    pub fn new(schedule: impl Schedule + 'static, optimizer: &mut dyn Optimizer) -> Result<Scheduler> {
        Scheduler::of(Box::new(schedule), optimizer)
    }

    #[track_caller]
    fn of(schedule: Box<dyn Schedule>, optimizer: &mut dyn Optimizer) -> Result<Scheduler> {
        let state = SchedulerState::new(schedule.name(), schedule.settings(), optimizer.lrs());
        let mut own = Scheduler { schedule, state };
        at_caller(|| {
            own.schedule.check(own.state.lrs.len())?;
            let fits = !own.schedule.changes_momentum() || optimizer.momentums().is_some();
            ensure(fits, own.schedule.name(), || {
                let message =
                    "the optimizer must support momentum or beta1 with the `cycle_momentum` option enabled";
                (message, ".cycle_momentum(false)")
            })?;
            own.set(own.computed(0.0, own.state.base_lrs.clone())?, optimizer)
        })?;
        Ok(own)
    }

    /// Sets the rates of the next step.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the schedule has ended, a rate is not finite, or the optimizer has other
    /// groups than before. Nothing changes then.
    #[track_caller]
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.step_to(self.state.step.floor() + 1.0, optimizer)
    }

    /// Sets the rates of any step. It can be a fraction, such as `epoch + batch / batches` for a schedule
    /// whose lengths are in epochs. It is PyTorch's `step(epoch)`.
    ///
    /// ```
    /// use namegrad::optim::schedule::{CosineRestarts, Scheduler};
    /// use namegrad::prelude::*;
    /// let mut optimizer = Sgd::builder([Parameter::new(Tensor::new([1.0])?)?]).lr(0.5).build()?;
    /// let mut scheduler = Scheduler::new(CosineRestarts::new(3), &mut optimizer)?;
    /// let batches = 10;
    /// for epoch in 0..2 {
    ///     for batch in 0..batches {
    ///         let progress = f64::from(epoch) + f64::from(batch) / f64::from(batches);
    ///         scheduler.step_to(progress, &mut optimizer)?;
    ///         optimizer.step()?;
    ///     }
    /// }
    /// assert_eq!(scheduler.steps(), 1.9);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`step`](Self::step); [`ErrorKind::Value`] if the step is negative or not finite.
    #[track_caller]
    pub fn step_to(&mut self, step: f64, optimizer: &mut dyn Optimizer) -> Result<()> {
        at_caller(|| {
            let name = self.schedule.name();
            ensure(step >= 0.0 && step.is_finite(), name, || {
                let message = format!("expected a finite step that is not negative, but got {step:?}");
                (message, "scheduler.step(&mut optimizer)?")
            })?;
            let (groups, known) = (optimizer.lrs().len(), self.state.base_lrs.len());
            ensure(groups == known, name, || {
                (other_groups(groups, known), "scheduler.add_groups(&mut optimizer)?")
            })?;
            self.set(self.computed(step, self.state.base_lrs.clone())?, optimizer)
        })
    }

    /// The state after `step` steps from these rates. It has momentums if the schedule has them in this step.
    fn computed(&self, step: f64, base_lrs: Vec<f64>) -> Result<SchedulerState> {
        self.schedule.check_step(step)?;
        let (schedule, before) = (&self.schedule, self.state.step);
        // From the current rates to those of a later step; `lr` would repeat all steps from the first.
        let is_later = step > before && step.fract() == 0.0 && before.fract() == 0.0;
        let goes_on = is_later && !schedule.is_function_of_step();
        let (mut lrs, mut momentums) = (Vec::new(), Vec::new());
        for (group, base) in base_lrs.iter().enumerate() {
            lrs.push(match goes_on {
                true => (before as u64 + 1..=step as u64)
                    .fold(self.state.lrs[group], |last, step| schedule.next(step as f64, last, *base, group)),
                false => schedule.lr(step, *base, group),
            });
            momentums.extend(schedule.momentum(step, group));
        }
        for (what, values) in [("learning rate", &lrs), ("momentum", &momentums)] {
            if let Some(group) = values.iter().position(|value| !value.is_finite()) {
                let value = values[group];
                let message =
                    format!("the {what} of group {group} in step {step} is {value:?}; it must be finite");
                return Err(refused(schedule.name(), message, CHECK));
            }
        }
        let momentums = (momentums.len() == lrs.len()).then_some(momentums);
        Ok(SchedulerState { step, base_lrs, lrs, momentums, ..self.state.clone() })
    }

    /// Sets the rates of a state in the optimizer, and keeps the state.
    fn set(&mut self, mut next: SchedulerState, optimizer: &mut dyn Optimizer) -> Result<()> {
        let before = optimizer.lrs();
        let step = next.step;
        let named =
            |error: Error| error.context(format!("{} in step {step}: ", next.schedule)).with_repair(CHECK);
        optimizer.set_lrs(&next.lrs).map_err(named)?;
        if let Some(Err(error)) = next.momentums.as_ref().map(|own| optimizer.set_momentums(own)) {
            optimizer.set_lrs(&before)?;
            return Err(named(error));
        }
        next.momentums = next.momentums.or(self.state.momentums.take());
        self.state = next;
        Ok(())
    }

    /// The number of steps so far. It has a fraction only after [`step_to`](Self::step_to).
    #[doc(alias = "last_epoch")]
    pub fn steps(&self) -> f64 {
        self.state.step
    }

    /// The learning rates that were set last, one for each group.
    #[doc(alias = "get_last_lr")]
    pub fn lrs(&self) -> &[f64] {
        &self.state.lrs
    }

    /// The learning rates that the schedule starts from, one for each group.
    pub fn base_lrs(&self) -> &[f64] {
        &self.state.base_lrs
    }

    /// The schedule.
    pub fn schedule(&self) -> &dyn Schedule {
        &*self.schedule
    }

    /// Includes the groups that were added to the optimizer since the scheduler was made. The schedule starts
    /// from their current rates, and they get the rate of the current step.
    ///
    /// ```
    /// use namegrad::optim::schedule::{Scheduler, StepDecay};
    /// use namegrad::prelude::*;
    /// let [first, late] = [Parameter::new(Tensor::new([1.0])?)?, Parameter::new(Tensor::new([1.0])?)?];
    /// let mut optimizer = Sgd::builder([first]).lr(0.5).build()?;
    /// let mut scheduler = Scheduler::new(StepDecay::new(1).gamma(0.5), &mut optimizer)?;
    /// scheduler.step(&mut optimizer)?;
    /// optimizer.add_group([late], |group| group.lr = 2.0)?;
    /// scheduler.add_groups(&mut optimizer)?;
    /// assert_eq!(optimizer.lrs(), [0.25, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the optimizer has fewer groups than before, or the schedule has settings for
    /// each of the groups before. Nothing changes then.
    #[track_caller]
    pub fn add_groups(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        at_caller(|| {
            let (lrs, known) = (optimizer.lrs(), self.state.base_lrs.len());
            ensure(lrs.len() >= known, self.schedule.name(), || {
                (other_groups(lrs.len(), known), "Scheduler::new(schedule, &mut optimizer)?")
            })?;
            self.schedule.check(lrs.len())?;
            let base_lrs = [&self.state.base_lrs, &lrs[known..]].concat();
            let mut next = self.computed(self.state.step, base_lrs)?;
            next.lrs[..known].copy_from_slice(&self.state.lrs);
            self.set(next, optimizer)
        })
    }

    /// Everything that the next rates depend on.
    pub fn state_dict(&self) -> SchedulerState {
        self.state.clone()
    }

    /// Continues from a state as if this scheduler had made the earlier steps, and sets the rates and the
    /// momentums of the state in the optimizer. Before or after the optimizer loads its own state makes no
    /// difference.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the state is of another schedule or of an optimizer with other groups; the
    /// message says what differs. Nothing changes then.
    #[track_caller]
    pub fn load_state_dict(&mut self, state: &SchedulerState, optimizer: &mut dyn Optimizer) -> Result<()> {
        at_caller(|| {
            self.check(state, optimizer.lrs().len())?;
            let message = "the state has momentums, and the optimizer has none";
            let fits = state.momentums.is_none() || optimizer.momentums().is_some();
            Error::ensure(fits, ErrorKind::Value, self.schedule.name(), || message)?;
            self.set(state.clone(), optimizer)?;
            self.state = state.clone();
            Ok(())
        })
    }

    /// Continues from a state without an optimizer. It is for an optimizer that loads its own state, which
    /// has the rates too.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the state is of another schedule or of an optimizer with other groups; the
    /// message says what differs. Nothing changes then.
    #[track_caller]
    pub fn resume(&mut self, state: &SchedulerState) -> Result<()> {
        at_caller(|| self.check(state, self.state.base_lrs.len()))?;
        self.state = state.clone();
        Ok(())
    }

    fn check(&self, state: &SchedulerState, groups: usize) -> Result<()> {
        state.check(self.schedule.name(), &self.state.settings, groups)?;
        self.schedule.check_step(state.step)
    }
}

fn other_groups(groups: usize, known: usize) -> String {
    format!("the optimizer has {groups} groups, the scheduler was made for {known}")
}
