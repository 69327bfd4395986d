//! The lists of all optimizers and of all schedules, which tests and benchmarks go through.

use crate::engine::{Engine, Groups, Listed, Method, merged};
use crate::optimizer::Optimizer;
use crate::rows::Rows;
use crate::schedule::{
    Chained, Constant, Cosine, CosineRestarts, Cyclic, Exponential, Lambda, LinearRamp, MultiStep,
    Multiplicative, OneCycle, Polynomial, Schedule, Sequence, StepDecay, SwaLr,
};
use namegrad_autograd::Parameter;
use namegrad_core::{Error, ErrorKind, Result};
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

/// Makes a schedule with examples of its arguments.
type MakeSchedule = fn() -> Box<dyn Schedule>;

/// Every schedule of a step, with its name in PyTorch, if that has it.
pub static SCHEDULES: [(&str, MakeSchedule); 16] = [
    ("StepLR", || Box::new(StepDecay::new(30))),
    ("MultiStepLR", || Box::new(MultiStep::new([30, 80]))),
    ("ExponentialLR", || Box::new(Exponential::new(0.99))),
    ("LinearLR", || Box::new(LinearRamp::new(5))),
    ("ConstantLR", || Box::new(Constant::new(5))),
    ("PolynomialLR", || Box::new(Polynomial::new(5))),
    ("CosineAnnealingLR", || Box::new(Cosine::new(1000))),
    ("CosineAnnealingWarmRestarts", || Box::new(CosineRestarts::new(1000))),
    ("OneCycleLR", || Box::new(OneCycle::new(0.1, 1000))),
    ("CyclicLR", || Box::new(Cyclic::new(0.01, 0.1))),
    ("SWALR", || Box::new(SwaLr::new(0.05))),
    ("LambdaLR", || Box::new(Lambda::new(|step| 1.0 / (1.0 + step)))),
    ("MultiplicativeLR", || Box::new(Multiplicative::new(|_| 0.9))),
    ("SequentialLR", || Box::new(Sequence::new(Constant::new(5)).then(5, Cosine::new(1000)))),
    ("ChainedScheduler", || Box::new(Chained::new(Constant::new(5)).with(Exponential::new(0.99)))),
    ("", || Box::new(Cosine::new(1000).warmup(100))),
];

/// An optimizer of the list.
#[derive(Clone, Copy, Debug)]
pub struct AnyOptimizer {
    name: &'static str,
    defaults: fn() -> Box<dyn Rows>,
    /// No groups of it.
    none: fn() -> Box<dyn Groups>,
}

impl AnyOptimizer {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its default hyperparameters.
    pub fn defaults(&self) -> Box<dyn Rows> {
        (self.defaults)()
    }

    /// Builds it with groups of parameters, each with its hyperparameters by name; null for the defaults.
    ///
    /// # Errors
    /// The errors of a builder; [`ErrorKind::Value`] for names and types of other options.
    #[track_caller]
    pub fn build_with(&self, groups: Vec<(Vec<Listed>, Json)>) -> Result<Box<dyn Optimizer>> {
        let caller = Location::caller();
        let (mut methods, mut all) = ((self.none)(), Vec::new());
        for (number, (parameters, options)) in groups.into_iter().enumerate() {
            let wrong = |message| Error::new(ErrorKind::Value, self.name, message).at(caller);
            methods.push_json(&options).map_err(wrong)?;
            all.extend(merged(parameters, number));
        }
        Ok(Box::new(Engine::new(methods, all)?))
    }

    /// Builds it with one group of parameters.
    ///
    /// # Errors
    /// Same as [`build_with`](Self::build_with).
    #[track_caller]
    pub fn build(&self, parameters: &[Parameter], options: &Json) -> Result<Box<dyn Optimizer>> {
        self.build_with(vec![(parameters.iter().cloned().map(Listed::from).collect(), options.clone())])
    }
}

/// The optimizer of a method.
const fn of<M: Method + Default + Rows>() -> AnyOptimizer {
    AnyOptimizer { name: M::NAME, defaults: || Box::new(M::default()), none: || Box::new(Vec::<M>::new()) }
}
