//! Combinators: [`Sequence`], [`Chained`] and [`Warmup`] of schedules, [`Lambda`] and [`Multiplicative`] of
//! your own functions.

use super::*;

/// The names and the settings of schedules.
fn settings_of_all(schedules: &[Box<dyn Schedule>]) -> Json {
    crate::list::<_, Vec<Json>>(
        schedules.iter().map(|schedule| {
            object(vec![("name", schedule.name().into()), ("settings", schedule.settings())])
        }),
    )
    .into()
}

/// [`Schedule::parts`] that all have the same step.
fn parts_of(schedules: &[Box<dyn Schedule>], step: f64) -> Vec<(&dyn Schedule, f64)> {
    crate::list(schedules.iter().map(|schedule| (&**schedule, step)))
}

/// Runs schedules one after the other: `torch.optim.lr_scheduler.SequentialLR`.
///
/// ```text
/// lr = first(step)               if step < milestone₁
///    = second(step - milestone₁) if milestone₁ ≤ step < milestone₂
///    = ...
/// ```
///
/// # Examples
/// ```
/// use namegrad::optim::schedule::{Constant, Cosine, Schedule, Sequence};
/// let schedule = Sequence::new(Constant::new(10).factor(0.5)).then(10, Cosine::new(100));
/// assert_eq!([0.0, 10.0, 60.0, 110.0].map(|step| schedule.lr(step, 0.1, 0)), [0.05, 0.1, 0.05, 0.0]);
/// ```
///
/// For a rise before a schedule, [`Schedule::warmup`] is enough.
#[doc(alias = "SequentialLR")]
#[derive(Debug)]
pub struct Sequence {
    schedules: Vec<Box<dyn Schedule>>,
    milestones: Vec<usize>,
}

impl Sequence {
    /// Starts with a schedule.
    pub fn new(first: impl Schedule + 'static) -> Sequence {
        Sequence { schedules: vec![Box::new(first)], milestones: Vec::new() }
    }

    /// Goes on with `next` from step `milestone` of the sequence, which is step 0 of `next`.
    pub fn then(mut self, milestone: usize, next: impl Schedule + 'static) -> Sequence {
        self.schedules.push(Box::new(next));
        self.milestones.push(milestone);
        self
    }

    /// A sequence of schedules in a list, with one milestone less than schedules.
    pub fn from_list(schedules: Vec<Box<dyn Schedule>>, milestones: impl Into<Vec<usize>>) -> Sequence {
        Sequence { schedules, milestones: milestones.into() }
    }

    /// The schedule of a step, and the step at which it began. The list is not empty after `check`.
    #[inline(never)]
    fn at(&self, step: f64) -> Option<(&dyn Schedule, f64)> {
        let index = self.milestones.partition_point(|milestone| *milestone as f64 <= step);
        let start = index.checked_sub(1).map_or(0, |before| self.milestones[before]);
        self.schedules.get(index).map(|schedule| (&**schedule, start as f64))
    }
}

impl Schedule for Sequence {
    fn lr(&self, step: f64, base: f64, group: usize) -> f64 {
        match self.at(step) {
            Some((schedule, start)) if self.is_function_of_step() => schedule.lr(step - start, base, group),
            Some(_) => replay(self, step, base, group),
            None => f64::NAN,
        }
    }

    fn parts(&self, step: Option<f64>) -> Vec<(&dyn Schedule, f64)> {
        let Some(step) = step else { return parts_of(&self.schedules, 0.0) };
        crate::list(self.at(step).map(|(schedule, start)| (schedule, step - start)).into_iter())
    }

    fn settings(&self) -> Json {
        let schedules = settings_of_all(&self.schedules);
        object(vec![("schedules", schedules), ("milestones", self.milestones.as_slice().into())])
    }

    fn check(&self, groups: usize) -> Result<()> {
        let (count, name, milestones) = (self.schedules.len(), self.name(), &self.milestones);
        ensure(count > 0, name, || {
            let repair = "Sequence::new(Constant::new(10)).then(10, Cosine::new(100))";
            ("expects at least one schedule, but got none", repair)
        })?;
        ensure(count == milestones.len() + 1, name, || {
            let message = format!(
                "expects the number of schedules to be one more than the number of milestones, but got {count} \
                 schedules and {} milestones",
                milestones.len()
            );
            (message, "Sequence::new(first).then(10, second)")
        })?;
        Error::ensure(milestones.is_sorted(), ErrorKind::Value, name, || {
            format!(
                "the milestones must not decrease, but are {milestones:?}; they are steps of the whole sequence"
            )
        })?;
        self.schedules.iter().try_for_each(|schedule| schedule.check(groups))
    }

    fn next(&self, step: f64, last: f64, base: f64, group: usize) -> f64 {
        match self.at(step) {
            Some((schedule, start)) if step == start && step > 0.0 => schedule.follow(last, base, group),
            Some((schedule, start)) => schedule.next(step - start, last, base, group),
            None => f64::NAN,
        }
    }
}

/// Runs schedules at once, each of which changes the rate that the ones before it have set:
/// `torch.optim.lr_scheduler.ChainedScheduler`.
///
/// [`StepDecay`](super::StepDecay), [`MultiStep`](super::MultiStep), [`Exponential`](super::Exponential),
/// [`LinearRamp`](super::LinearRamp), [`Constant`](super::Constant), [`Polynomial`](super::Polynomial) and
/// [`Multiplicative`](super::Multiplicative) multiply the rate, so their factors multiply. So does
/// [`Cosine`](super::Cosine), if `eta_min` is 0, until its end. The others replace the rate.
///
/// # Examples
/// ```
/// use namegrad::optim::schedule::{Chained, Exponential, LinearRamp, Schedule};
/// let schedule = Chained::new(LinearRamp::new(2).start_factor(0.5)).with(Exponential::new(0.5));
/// assert_eq!([0.0, 1.0, 2.0].map(|step| schedule.lr(step, 1.0, 0)), [0.5, 0.375, 0.25]);
/// ```
#[doc(alias = "ChainedScheduler")]
#[derive(Debug)]
pub struct Chained {
    schedules: Vec<Box<dyn Schedule>>,
}

impl Chained {
    /// Starts with a schedule.
    pub fn new(first: impl Schedule + 'static) -> Chained {
        Chained { schedules: vec![Box::new(first)] }
    }

    /// Adds a schedule.
    pub fn with(mut self, next: impl Schedule + 'static) -> Chained {
        self.schedules.push(Box::new(next));
        self
    }

    /// The schedules in a list.
    pub fn from_list(schedules: Vec<Box<dyn Schedule>>) -> Chained {
        Chained { schedules }
    }
}

impl Schedule for Chained {
    fn lr(&self, step: f64, base: f64, group: usize) -> f64 {
        replay(self, step, base, group)
    }

    fn parts(&self, step: Option<f64>) -> Vec<(&dyn Schedule, f64)> {
        parts_of(&self.schedules, step.unwrap_or_default())
    }

    fn settings(&self) -> Json {
        object(vec![("schedules", settings_of_all(&self.schedules))])
    }

    fn check(&self, groups: usize) -> Result<()> {
        ensure(!self.schedules.is_empty(), self.name(), || {
            let repair = "Chained::new(LinearRamp::new(10)).with(schedule::Exponential::new(0.9))";
            ("expects at least one schedule to be chained, but got none", repair)
        })?;
        self.schedules.iter().try_for_each(|schedule| schedule.check(groups))
    }

    fn is_function_of_step(&self) -> bool {
        false
    }

    fn next(&self, step: f64, last: f64, base: f64, group: usize) -> f64 {
        self.schedules.iter().fold(last, |last, schedule| schedule.next(step, last, base, group))
    }
}

/// Raises the rate to the first of another schedule, and goes on with it. [`Schedule::warmup`] makes it.
///
/// ```text
/// first = schedule(0)
/// lr    = first · (start_factor + (1 - start_factor) · step / steps)    if step < steps
///       = schedule(step - steps)                                        from then on
/// ```
///
/// In PyTorch, this is a `SequentialLR` of `LinearLR(optimizer, start_factor, total_iters=steps)` and the
/// schedule, if that is a function of the step whose first rate is the base rate. For others,
/// [`Sequence`] is exactly PyTorch's.
///
/// # Examples
/// ```
/// use namegrad::optim::schedule::{Polynomial, Schedule};
/// let schedule = Polynomial::new(10).warmup(4).start_factor(0.5);
/// assert_eq!([0.0, 2.0, 4.0, 14.0].map(|step| schedule.lr(step, 1.0, 0)), [0.5, 0.75, 1.0, 0.0]);
/// ```
#[derive(Clone, Debug)]
pub struct Warmup<S> {
    schedule: S,
    steps: usize,
    start_factor: f64,
}

impl<S: Schedule> Warmup<S> {
    pub(super) fn new(schedule: S, steps: usize) -> Warmup<S> {
        Warmup { schedule, steps, start_factor: 1.0 / steps.max(1) as f64 }
    }

    /// The factor in step 0. Default: `1 / steps`.
    pub fn start_factor(self, start_factor: f64) -> Self {
        Warmup { start_factor, ..self }
    }
}

impl<S: Schedule> Schedule for Warmup<S> {
    fn lr(&self, step: f64, base: f64, group: usize) -> f64 {
        let steps = self.steps as f64;
        if step >= steps {
            return self.schedule.lr(step - steps, base, group);
        }
        let first = self.schedule.lr(0.0, base, group);
        first * (self.start_factor + (1.0 - self.start_factor) * step / steps)
    }

    fn parts(&self, step: Option<f64>) -> Vec<(&dyn Schedule, f64)> {
        vec![(&self.schedule, (step.unwrap_or_default() - self.steps as f64).max(0.0))]
    }

    fn settings(&self) -> Json {
        object(vec![
            ("name", self.schedule.name().into()),
            ("settings", self.schedule.settings()),
            ("steps", self.steps.into()),
            ("start_factor", self.start_factor.into()),
        ])
    }

    fn check(&self, groups: usize) -> Result<()> {
        ensure(self.start_factor.is_finite(), self.name(), || {
            let message = format!("start_factor must be finite, but is {:?}", self.start_factor);
            (message, "Cosine::new(1000).warmup(100).start_factor(0.1)")
        })?;
        self.schedule.check(groups)
    }

    fn next(&self, step: f64, last: f64, base: f64, group: usize) -> f64 {
        let steps = self.steps as f64;
        if step > steps {
            self.schedule.next(step - steps, last, base, group)
        } else {
            self.lr(step, base, group)
        }
    }
}

pub(super) type FactorFn = Arc<dyn Fn(f64) -> f64 + Send + Sync>;

/// A schedule of your own functions, one for all groups or one for each: [`Lambda`] or, if the rate is
/// multiplied by the function again in each step, [`Multiplicative`].
#[derive(Clone)]
pub struct OfFunctions<const IN_EACH_STEP: bool> {
    factors: Vec<FactorFn>,
    /// Whether there is a function for each group.
    is_each: bool,
}

/// Multiplies the rate by your own function of the step: `torch.optim.lr_scheduler.LambdaLR`.
///
/// ```text
/// lr = base · factor(step)
/// ```
///
/// A saved state does not contain the function.
///
/// # Examples
/// ```
/// use namegrad::optim::schedule::{Lambda, Schedule};
/// let schedule = Lambda::new(|step| 0.5_f64.powf(step));
/// assert_eq!([0.0, 1.0, 2.0].map(|step| schedule.lr(step, 0.1, 0)), [0.1, 0.05, 0.025]);
///
/// type Function = Box<dyn Fn(f64) -> f64 + Send + Sync>;
/// let for_each = Lambda::each([Box::new(|_| 1.0) as Function, Box::new(|step| 1.0 / step)]);
/// assert_eq!([0, 1].map(|group| for_each.lr(2.0, 0.5, group)), [0.5, 0.25]);
/// ```
#[doc(alias = "LambdaLR")]
pub type Lambda = OfFunctions<false>;

/// Multiplies the rate by your own function of the step in each step:
/// `torch.optim.lr_scheduler.MultiplicativeLR`.
///
/// ```text
/// lr = base · factor(1) · factor(2) ⋯ factor(step)
/// ```
///
/// The function is called once for each step. A saved state does not contain it.
///
/// # Examples
/// ```
/// use namegrad::optim::schedule::{Multiplicative, Schedule};
/// let schedule = Multiplicative::new(|step| if step < 3.0 { 0.5 } else { 1.0 });
/// assert_eq!([0.0, 1.0, 2.0, 3.0].map(|step| schedule.lr(step, 0.1, 0)), [0.1, 0.05, 0.025, 0.025]);
/// ```
#[doc(alias = "MultiplicativeLR")]
pub type Multiplicative = OfFunctions<true>;

impl<const IN_EACH_STEP: bool> OfFunctions<IN_EACH_STEP> {
    /// A schedule with the same function for all groups.
    pub fn new(factor: impl Fn(f64) -> f64 + Send + Sync + 'static) -> Self {
        OfFunctions { factors: vec![Arc::new(factor)], is_each: false }
    }

    /// A schedule with a function for each group.
    pub fn each(factors: impl IntoIterator<Item = Box<dyn Fn(f64) -> f64 + Send + Sync>>) -> Self {
        OfFunctions { factors: crate::list(factors.into_iter().map(Arc::from)), is_each: true }
    }

    /// The factor of a group. It is NaN if the group has no function.
    fn at(&self, step: f64, group: usize) -> f64 {
        let factor = self.factors.get(if self.is_each { group } else { 0 });
        factor.map_or(f64::NAN, |factor| factor(step))
    }
}

impl<const IN_EACH_STEP: bool> Schedule for OfFunctions<IN_EACH_STEP> {
    fn lr(&self, step: f64, base: f64, group: usize) -> f64 {
        if IN_EACH_STEP { replay(self, step, base, group) } else { base * self.at(step, group) }
    }

    fn name(&self) -> &'static str {
        if IN_EACH_STEP { "Multiplicative" } else { "Lambda" }
    }

    fn settings(&self) -> Json {
        let functions = if self.is_each { self.factors.len().into() } else { "all".into() };
        object(vec![("functions", functions)])
    }

    fn check(&self, groups: usize) -> Result<()> {
        let (count, is_each) = (self.factors.len(), self.is_each);
        Error::ensure(!is_each || count == groups, ErrorKind::Value, self.name(), || {
            format!("expected {groups} functions, but got {count}")
        })
    }

    fn is_function_of_step(&self) -> bool {
        !IN_EACH_STEP
    }

    fn next(&self, step: f64, last: f64, base: f64, group: usize) -> f64 {
        let before = if IN_EACH_STEP { last } else { base };
        if IN_EACH_STEP && step == 0.0 { last } else { before * self.at(step, group) }
    }

    fn follow(&self, last: f64, base: f64, group: usize) -> f64 {
        if IN_EACH_STEP { last * self.at(0.0, group) } else { self.lr(0.0, base, group) }
    }
}
