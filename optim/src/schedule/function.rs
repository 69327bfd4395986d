//! Your own functions of the step: [`Lambda`] and [`Multiplicative`].

use super::{Schedule, replay, require};
use namegrad_core::Result;
use std::fmt;
use std::sync::Arc;

type Factor = Arc<dyn Fn(f64) -> f64 + Send + Sync>;

/// A function for all groups, or one for each.
#[derive(Clone)]
enum Factors {
    All(Factor),
    Each(Vec<Factor>),
}

impl Factors {
    /// The factor of a group. It is NaN if the group has no function.
    fn at(&self, step: f64, group: usize) -> f64 {
        match self {
            Factors::All(factor) => factor(step),
            Factors::Each(factors) => factors.get(group).map_or(f64::NAN, |factor| factor(step)),
        }
    }

    /// A function for each group or the word "all".
    fn settings(&self) -> serde_json::Value {
        match self {
            Factors::All(_) => serde_json::json!({ "functions": "all" }),
            Factors::Each(factors) => serde_json::json!({ "functions": factors.len() }),
        }
    }

    fn check(&self, op: &'static str, groups: usize) -> Result<()> {
        let Factors::Each(factors) = self else { return Ok(()) };
        let message = || format!("expected {groups} functions, but got {}", factors.len());
        let repair = "give one function for all groups, or one for each";
        require(factors.len() == groups, op, message, repair)
    }
}

/// Generates what both schedules have in common.
macro_rules! functions {
    ($Schedule:ident) => {
        impl $Schedule {
            /// A schedule with the same function for all groups.
            pub fn new(factor: impl Fn(f64) -> f64 + Send + Sync + 'static) -> $Schedule {
                $Schedule { factors: Factors::All(Arc::new(factor)) }
            }

            /// A schedule with a function for each group.
            pub fn each(
                factors: impl IntoIterator<Item = Box<dyn Fn(f64) -> f64 + Send + Sync>>,
            ) -> $Schedule {
                $Schedule { factors: Factors::Each(factors.into_iter().map(Arc::from).collect()) }
            }
        }

        impl fmt::Debug for $Schedule {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($Schedule), " {}"), self.settings())
            }
        }
    };
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
#[derive(Clone)]
pub struct Lambda {
    factors: Factors,
}

functions!(Lambda);

impl Schedule for Lambda {
    fn lr(&self, step: f64, base: f64, group: usize) -> f64 {
        base * self.factors.at(step, group)
    }

    fn settings(&self) -> serde_json::Value {
        self.factors.settings()
    }

    fn check(&self, groups: usize) -> Result<()> {
        self.factors.check(self.name(), groups)
    }
}

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
#[derive(Clone)]
pub struct Multiplicative {
    factors: Factors,
}

functions!(Multiplicative);

impl Schedule for Multiplicative {
    fn lr(&self, step: f64, base: f64, group: usize) -> f64 {
        replay(self, step, base, group)
    }

    fn settings(&self) -> serde_json::Value {
        self.factors.settings()
    }

    fn check(&self, groups: usize) -> Result<()> {
        self.factors.check(self.name(), groups)
    }

    fn is_function_of_step(&self) -> bool {
        false
    }

    fn next(&self, step: f64, last: f64, _base: f64, group: usize) -> f64 {
        if step == 0.0 { last } else { last * self.factors.at(step, group) }
    }

    fn follow(&self, last: f64, _base: f64, group: usize) -> f64 {
        last * self.factors.at(0.0, group)
    }
}
