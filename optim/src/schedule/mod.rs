//! Learning rate schedules: the learning rates of an optimizer as functions of the step.
//!
//! A [`Schedule`] says what the rate is after a number of steps. A [`Scheduler`] sets it: call
//! [`step`](Scheduler::step) after each step of the optimizer. [`ReduceOnPlateau`] depends on a metric
//! instead of the step.
//!
//! ```
//! use namegrad::optim::schedule::{Cosine, Schedule, Scheduler};
//! use namegrad::prelude::*;
//! let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
//! let mut optimizer = AdamW::builder([weight.clone()]).lr(0.1).build()?;
//! let mut scheduler = Scheduler::new(Cosine::new(1000).warmup(100), &mut optimizer)?;
//! for _ in 0..1100 {
//!     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
//!     scheduler.step(&mut optimizer)?;
//! }
//! assert_eq!(optimizer.lr(), 0.0);
//! # Ok::<(), Error>(())
//! ```
//!
//! | schedule | in `torch.optim.lr_scheduler` | rates |
//! | --- | --- | --- |
//! | [`StepDecay`] | `StepLR` | times `gamma` every `step_size` steps |
//! | [`MultiStep`] | `MultiStepLR` | times `gamma` at each milestone |
//! | [`Exponential`] | `ExponentialLR` | times `gamma` in each step |
//! | [`LinearRamp`] | `LinearLR` | from one factor to another in a straight line |
//! | [`Constant`] | `ConstantLR` | times a factor for some steps |
//! | [`Polynomial`] | `PolynomialLR` | down to 0 along a power |
//! | [`Cosine`] | `CosineAnnealingLR` | down along half a cosine wave |
//! | [`CosineRestarts`] | `CosineAnnealingWarmRestarts` | the same again and again |
//! | [`OneCycle`] | `OneCycleLR` | up and down once, with the momentum |
//! | [`Cyclic`] | `CyclicLR` | up and down again and again, with the momentum |
//! | [`ReduceOnPlateau`] | `ReduceLROnPlateau` | times a factor when a metric no longer improves |
//! | [`Lambda`] | `LambdaLR` | times a function of the step |
//! | [`Multiplicative`] | `MultiplicativeLR` | times a function of the step, in each step |
//! | [`Sequence`] | `SequentialLR` | schedules one after the other |
//! | [`Chained`] | `ChainedScheduler` | schedules at once |
//! | [`SwaLr`] | `swa_utils.SWALR` | to a constant, for an average of the weights |
//! | [`Warmup`] | | a rise before another schedule: `schedule.warmup(steps)` |
//!
//! The rates are those of PyTorch. A schedule of 0 steps is an error, where PyTorch keeps the first factor
//! forever. In a [`Sequence`], a [`OneCycle`] does not change the rates of the schedules before it, as it
//! does in PyTorch.
//!
//! # Steps and epochs
//! A schedule counts the calls of [`Scheduler::step`]. Call it after each batch, and all lengths are in
//! batches; call it after each epoch, and they are in epochs. To update the rate after each batch with
//! lengths in epochs, use [`Scheduler::step_to`] with fractions:
//! `scheduler.step_to(epoch + batch / batches, &mut optimizer)?`.
//!
//! # Your own schedule
//! Give a function to [`Lambda`], or implement [`Schedule`].

mod combined;
mod cycle;
mod factors;
mod plateau;
mod scheduler;
mod state;
pub(crate) mod table;

pub use combined::{Chained, Lambda, Multiplicative, OfFunctions, Sequence, Warmup};
pub use cycle::{Anneal, CycleMode, Cyclic, OneCycle, ScaleMode, SwaLr};
pub use factors::{
    Constant, Cosine, CosineRestarts, Exponential, LinearRamp, MultiStep, Polynomial, StepDecay,
};
pub use plateau::{Mode, ReduceOnPlateau, ReduceOnPlateauBuilder, ThresholdMode};
pub use scheduler::Scheduler;
pub use state::SchedulerState;
pub use table::PerGroup;

// The names that most schedules need.
use super::*;
use combined::FactorFn;
use interval::NonZero;
use std::f64::consts::PI;
use std::sync::Arc;
use table::check;

/// A learning rate as a function of the step.
///
/// `base` is the learning rate that a group of parameters had when the [`Scheduler`] was made. `step` is the
/// number of calls of [`Scheduler::step`] so far, 0 before the first; it has a fraction only after
/// [`Scheduler::step_to`].
///
/// # Examples
/// Your own schedule is one function:
/// ```
/// use namegrad::optim::schedule::{Schedule, Scheduler};
/// use namegrad::prelude::*;
///
/// /// `base / √(1 + step)`.
/// struct InverseSqrt;
///
/// impl Schedule for InverseSqrt {
///     fn factor(&self, step: f64) -> f64 {
///         1.0 / (1.0 + step).sqrt()
///     }
/// }
///
/// let weight = Parameter::new(Tensor::new([1.0])?)?;
/// let mut optimizer = Sgd::builder([weight]).lr(0.5).build()?;
/// let mut scheduler = Scheduler::new(InverseSqrt.warmup(10), &mut optimizer)?;
/// for _ in 0..13 {
///     optimizer.step()?;
///     scheduler.step(&mut optimizer)?;
/// }
/// assert_eq!(optimizer.lr(), 0.25);
/// # Ok::<(), Error>(())
/// ```
///
/// A schedule can be evaluated without an optimizer, to look at it or to draw it:
/// ```
/// use namegrad::optim::schedule::{Cosine, Schedule};
/// let cosine = Cosine::new(100);
/// let rates: Vec<f64> = (0..=100).map(|step| cosine.lr(step as f64, 0.1, 0)).collect();
/// assert_eq!([rates[0], rates[100]], [0.1, 0.0]);
/// ```
pub trait Schedule: Send + Sync {
    /// The learning rate after `step` steps, divided by `base`. By default, it is 1.
    fn factor(&self, _step: f64) -> f64 {
        1.0
    }

    /// The learning rate of a group after `step` steps. By default, it is `base` times the
    /// [`factor`](Self::factor).
    fn lr(&self, step: f64, base: f64, _group: usize) -> f64 {
        base * self.factor(step)
    }

    /// The momentum of a group after `step` steps, if the schedule changes the momentum.
    fn momentum(&self, step: f64, group: usize) -> Option<f64> {
        self.parts(Some(step)).into_iter().rev().find_map(|(part, step)| part.momentum(step, group))
    }

    /// Whether the schedule changes the momentum in any step. By default, whether it does in step 0.
    fn changes_momentum(&self) -> bool {
        self.momentum(0.0, 0).is_some() || self.parts(None).iter().any(|(part, _)| part.changes_momentum())
    }

    /// The name in errors and saved states. By default, the name of the type.
    fn name(&self) -> &'static str {
        last_name(std::any::type_name::<Self>())
    }

    /// The settings of the schedule in saved states. A state is loaded only by a schedule with the same
    /// settings.
    fn settings(&self) -> Json {
        Json::Null
    }

    /// Checks the settings, for an optimizer with this many groups.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a setting is out of range, or there is not one for each group.
    fn check(&self, groups: usize) -> Result<()> {
        self.parts(None).iter().try_for_each(|(part, _)| part.check(groups))
    }

    /// Checks that the schedule has a rate after `step` steps.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the schedule ends before.
    fn check_step(&self, step: f64) -> Result<()> {
        self.parts(Some(step)).iter().try_for_each(|(part, step)| part.check_step(*step))
    }

    /// Whether the rate depends on the step alone. If it does not, a [`Scheduler`] computes each rate from
    /// the one before with [`next`](Self::next), and [`lr`](Self::lr) repeats all steps from the first.
    fn is_function_of_step(&self) -> bool {
        self.parts(None).iter().all(|(part, _)| part.is_function_of_step())
    }

    /// The rate after `step` steps if the rate before was `last`. In step 0, `last` is `base`.
    ///
    /// [`Chained`] uses it, where `last` is the rate that the schedules before have changed: a schedule that
    /// multiplies the rate returns a multiple of `last`. By default, returns [`lr`](Self::lr), which replaces
    /// the rate of the schedules before.
    fn next(&self, step: f64, _last: f64, base: f64, group: usize) -> f64 {
        self.lr(step, base, group)
    }

    /// The rate in step 0 if the schedule follows another in a [`Sequence`], whose last rate was `last`. By
    /// default, the rate in step 0.
    fn follow(&self, _last: f64, base: f64, group: usize) -> f64 {
        self.lr(0.0, base, group)
    }

    /// The table of the settings, if they are one.
    #[doc(hidden)]
    fn table_mut(&mut self) -> Option<&mut dyn Rows> {
        None
    }

    /// The schedules that this one is made of, or those of a step, with their own number of that step.
    #[doc(hidden)]
    fn parts(&self, _step: Option<f64>) -> Vec<(&dyn Schedule, f64)> {
        Vec::new()
    }

    /// Raises the rate to the first of this schedule in `steps` steps, in a straight line from `1 / steps` of
    /// it. The steps of this schedule count from the end of the warmup.
    ///
    /// ```
    /// use namegrad::optim::schedule::{Cosine, Schedule};
    /// let schedule = Cosine::new(1000).warmup(100);
    /// let rates = [0, 50, 100, 600, 1100].map(|step| schedule.lr(step as f64, 1.0, 0));
    /// assert_eq!(rates, [0.01, 0.505, 1.0, 0.5, 0.0]);
    /// ```
    fn warmup(self, steps: usize) -> Warmup<Self>
    where
        Self: Sized,
    {
        Warmup::new(self, steps)
    }
}

for_types!(dyn Schedule, Cyclic, Lambda, Multiplicative => Described {
    impl fmt::Debug for Described {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{} {}", self.name(), self.settings())
        }
    }
});

impl Schedule for Box<dyn Schedule> {
    fn factor(&self, step: f64) -> f64 {
        (**self).factor(step)
    }
    fn lr(&self, step: f64, base: f64, group: usize) -> f64 {
        (**self).lr(step, base, group)
    }
    fn name(&self) -> &'static str {
        (**self).name()
    }
    fn settings(&self) -> Json {
        (**self).settings()
    }
    fn next(&self, step: f64, last: f64, base: f64, group: usize) -> f64 {
        (**self).next(step, last, base, group)
    }
    fn follow(&self, last: f64, base: f64, group: usize) -> f64 {
        (**self).follow(last, base, group)
    }
    fn parts(&self, step: Option<f64>) -> Vec<(&dyn Schedule, f64)> {
        vec![(&**self, step.unwrap_or_default())]
    }
    fn table_mut(&mut self) -> Option<&mut dyn Rows> {
        (**self).table_mut()
    }
}

/// The name of a type without the modules and the generics.
#[inline(never)]
fn last_name(path: &'static str) -> &'static str {
    let path = path.split('<').next().unwrap_or(path);
    path.rsplit(':').next().unwrap_or(path)
}

/// [`Schedule::lr`] of a schedule that is not a function of the step: all steps from the first.
fn replay(schedule: &dyn Schedule, step: f64, base: f64, group: usize) -> f64 {
    (0..=step as u64).fold(base, |last, step| schedule.next(step as f64, last, base, group))
}
