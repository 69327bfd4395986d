//! The lists of all optimizers and of all schedules, which tests and benchmarks go through.

use crate::engine::{Engine, Groups};
use crate::listed::{Listed, merged};
use crate::method::Method;
use crate::optimizer::Optimizer;
use crate::rows::Rows;
use crate::schedule::{
    Chained, Constant, Cosine, CosineRestarts, Cyclic, Exponential, Lambda, LinearRamp, MultiStep,
    Multiplicative, OneCycle, Polynomial, Schedule, Sequence, StepDecay, SwaLr,
};
use namegrad_autograd::Parameter;
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_io::fields::object;
use serde_json::Value as Json;
use std::panic::Location;

/// Every optimizer.
pub static OPTIMIZERS: [AnyOptimizer; 16] = [
    of::<crate::SgdOptions>(),
    of::<crate::AsgdOptions>(),
    of::<crate::AdamOptions>(),
    of::<crate::AdamWOptions>(),
    of::<crate::NAdamOptions>(),
    of::<crate::RAdamOptions>(),
    of::<crate::AdamaxOptions>(),
    of::<crate::AdagradOptions>(),
    of::<crate::AdadeltaOptions>(),
    of::<crate::RmsPropOptions>(),
    of::<crate::RpropOptions>(),
    of::<crate::AdafactorOptions>(),
    of::<crate::LionOptions>(),
    of::<crate::LambOptions>(),
    of::<crate::MuonOptions>(),
    of::<crate::LbfgsOptions>(),
];

/// Every schedule of a step.
pub static SCHEDULES: [AnySchedule; 16] = [
    table("StepLR", || Box::new(StepDecay::new(30))),
    table("MultiStepLR", || Box::new(MultiStep::new([30, 80]))),
    table("ExponentialLR", || Box::new(Exponential::new(0.99))),
    table("LinearLR", || Box::new(LinearRamp::new(5))),
    table("ConstantLR", || Box::new(Constant::new(5))),
    table("PolynomialLR", || Box::new(Polynomial::new(5))),
    table("CosineAnnealingLR", || Box::new(Cosine::new(1000))),
    table("CosineAnnealingWarmRestarts", || Box::new(CosineRestarts::new(1000))),
    table("OneCycleLR", || Box::new(OneCycle::new(0.1, 1000))),
    table("CyclicLR", || Box::new(Cyclic::new(0.01, 0.1))),
    table("SWALR", || Box::new(SwaLr::new(0.05))),
    combinator("LambdaLR", || Box::new(Lambda::new(|step| 1.0 / (1.0 + step)))),
    combinator("MultiplicativeLR", || Box::new(Multiplicative::new(|_| 0.9))),
    combinator("SequentialLR", || Box::new(Sequence::new(Constant::new(5)).then(5, Cosine::new(1000)))),
    combinator("ChainedScheduler", || Box::new(Chained::new(Constant::new(5)).with(Exponential::new(0.99)))),
    combinator("", || Box::new(Cosine::new(1000).warmup(100))),
];

/// A schedule of the list.
#[derive(Clone, Copy, Debug)]
pub struct AnySchedule {
    /// Its name in PyTorch, if that has it.
    pub torch: &'static str,
    make: MakeSchedule,
}

/// Makes a schedule with examples of its arguments.
#[derive(Clone, Copy, Debug)]
enum MakeSchedule {
    Table(fn() -> Box<dyn TableSchedule>),
    Combinator(fn() -> Box<dyn Schedule>),
}

const fn table(torch: &'static str, make: fn() -> Box<dyn TableSchedule>) -> AnySchedule {
    AnySchedule { torch, make: MakeSchedule::Table(make) }
}

const fn combinator(torch: &'static str, make: fn() -> Box<dyn Schedule>) -> AnySchedule {
    AnySchedule { torch, make: MakeSchedule::Combinator(make) }
}

impl AnySchedule {
    /// One with examples of its arguments.
    pub fn make(&self) -> Box<dyn Schedule> {
        match self.make {
            MakeSchedule::Table(make) => make(),
            MakeSchedule::Combinator(make) => make(),
        }
    }

    /// The same, unless it has no table of options.
    pub fn table(&self) -> Option<Box<dyn TableSchedule>> {
        if let MakeSchedule::Table(make) = self.make { Some(make()) } else { None }
    }
}

/// A schedule with a table of its options.
pub trait TableSchedule: Schedule + Rows {}

impl<S: Schedule + Rows> TableSchedule for S {}

/// An optimizer of the list.
#[derive(Clone, Copy, Debug)]
pub struct AnyOptimizer {
    name: &'static str,
    defaults: fn() -> Box<dyn Rows>,
    /// No groups of it.
    none: fn() -> Box<dyn Groups>,
}

/// Changes the hyperparameters of a group, which has a number, or says what is wrong.
pub type Change<'c> = &'c dyn Fn(usize, &mut dyn Rows) -> std::result::Result<(), String>;

impl AnyOptimizer {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its default hyperparameters.
    pub fn defaults(&self) -> Box<dyn Rows> {
        (self.defaults)()
    }

    /// Builds it with a group for each list of parameters. `change` gets the number and the hyperparameters
    /// of each group.
    ///
    /// # Errors
    /// The errors of a builder and of `change`.
    #[track_caller]
    pub fn build_with(&self, groups: Vec<Vec<Listed>>, change: Change<'_>) -> Result<Box<dyn Optimizer>> {
        let caller = Location::caller();
        let wrong = |message| Error::new(ErrorKind::Value, self.name, message).at(caller);
        let (mut methods, defaults) = ((self.none)(), object(Vec::new()));
        for group in 0..groups.len() {
            methods.push_json(&defaults).map_err(wrong)?;
            if let Some(rows) = methods.rows_mut(group) {
                change(group, rows).map_err(wrong)?;
            }
        }
        let mut merged_groups = Vec::new();
        for parameters in groups {
            merged_groups.push(merged(parameters));
        }
        Ok(Box::new(Engine::new(methods, merged_groups)?))
    }

    /// Builds it with these hyperparameters, by name.
    ///
    /// # Errors
    /// The errors of a builder; [`ErrorKind::Value`] for names and types of other options.
    #[track_caller]
    pub fn build(&self, parameters: &[Parameter], options: &Json) -> Result<Box<dyn Optimizer>> {
        let parameters = parameters.iter().cloned().map(Listed::from).collect();
        self.build_with(vec![parameters], &|_, rows| rows.read(options))
    }
}

/// The optimizer of a method.
const fn of<M: Method + Default + Rows>() -> AnyOptimizer {
    AnyOptimizer { name: M::NAME, defaults: || Box::new(M::default()), none: || Box::new(Vec::<M>::new()) }
}
