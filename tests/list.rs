//! The lists of all optimizers and of all schedules, which tests and benchmarks go through.

use namegrad::optim::rows::Rows;
use namegrad::optim::schedule::{
    Chained, Constant, Cosine, CosineRestarts, Cyclic, Exponential, Lambda, LinearRamp, MultiStep,
    Multiplicative, OneCycle, Polynomial, Schedule, Sequence, StepDecay, SwaLr,
};
use namegrad::optim::{self, Builder, Listed, Method};
use namegrad::prelude::*;
use serde_json::Value as Json;
use std::panic::Location;

/// Every optimizer.
pub static OPTIMIZERS: [AnyOptimizer; 16] = [
    of::<optim::SgdOptions>(),
    of::<optim::AsgdOptions>(),
    of::<optim::AdamOptions>(),
    of::<optim::AdamWOptions>(),
    of::<optim::NAdamOptions>(),
    of::<optim::RAdamOptions>(),
    of::<optim::AdamaxOptions>(),
    of::<optim::AdagradOptions>(),
    of::<optim::AdadeltaOptions>(),
    of::<optim::RmsPropOptions>(),
    of::<optim::RpropOptions>(),
    of::<optim::AdafactorOptions>(),
    of::<optim::LionOptions>(),
    of::<optim::LambOptions>(),
    of::<optim::MuonOptions>(),
    of::<optim::LbfgsOptions>(),
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

/// Groups of parameters, each with its hyperparameters by name.
type Groups = Vec<(Vec<Listed>, Json)>;

/// An optimizer of the list.
#[derive(Clone, Copy, Debug)]
pub struct AnyOptimizer {
    name: &'static str,
    defaults: fn() -> Box<dyn Rows>,
    build: fn(Groups) -> Result<Box<dyn Optimizer>>,
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
    pub fn build_with(&self, groups: Groups) -> Result<Box<dyn Optimizer>> {
        let caller = Location::caller();
        (self.build)(groups).map_err(|error| error.at(caller))
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
    fn build<M: Method + Default>(groups: Groups) -> Result<Box<dyn Optimizer>> {
        let mut builder = Builder::new([] as [Parameter; 0], M::default());
        for (parameters, options) in groups {
            let own = M::of_json(&options).map_err(|error| Error::new(ErrorKind::Value, M::NAME, error))?;
            builder = builder.group(parameters, |method| *method = own);
        }
        Ok(Box::new(builder.build()?))
    }
    AnyOptimizer { name: M::NAME, defaults: || Box::new(M::default()), build: build::<M> }
}
