//! The lists of all optimizers and of all schedules, which tests and benchmarks go through.

use crate::engine::{Engine, Groups};
use crate::listed::{Listed, merged};
use crate::method::Method;
use crate::optimizer::Optimizer;
use crate::rows::Rows;
use crate::schedule::{self, Schedule};
use namegrad_autograd::Parameter;
use namegrad_core::{Error, ErrorKind, Result};
use serde_json::Value as Json;

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

/// Every schedule that is a table of options, as a function that makes one.
pub static SCHEDULES: [fn() -> Box<dyn TableSchedule>; 11] = [
    || Box::new(schedule::StepDecay::new(30)),
    || Box::new(schedule::MultiStep::new([30, 80])),
    || Box::new(schedule::Exponential::new(0.99)),
    || Box::new(schedule::LinearRamp::new(5)),
    || Box::new(schedule::Constant::new(5)),
    || Box::new(schedule::Polynomial::new(5)),
    || Box::new(schedule::Cosine::new(1000)),
    || Box::new(schedule::CosineRestarts::new(1000)),
    || Box::new(schedule::OneCycle::new(0.1, 1000)),
    || Box::new(schedule::Cyclic::new(0.01, 0.1)),
    || Box::new(schedule::SwaLr::new(0.05)),
];

/// A schedule with a table of its options.
pub trait TableSchedule: Schedule + Rows {}

impl<S: Schedule + Rows> TableSchedule for S {}

/// An optimizer of the list.
#[derive(Clone, Copy, Debug)]
pub struct AnyOptimizer {
    name: &'static str,
    defaults: fn() -> Box<dyn Rows>,
    /// Calls the function with the default hyperparameters of each of some groups, and returns the groups.
    groups: fn(usize, Change<'_>) -> std::result::Result<Box<dyn Groups>, String>,
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
        let methods = match (self.groups)(groups.len(), change) {
            Ok(methods) => methods,
            Err(message) => return Err(Error::new(ErrorKind::Value, self.name, message)),
        };
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
    AnyOptimizer { name: M::NAME, defaults: || Box::new(M::default()), groups: groups::<M> }
}

fn groups<M: Method + Default + Rows>(
    count: usize,
    change: Change<'_>,
) -> std::result::Result<Box<dyn Groups>, String> {
    let mut methods = Vec::new();
    for group in 0..count {
        let mut method = M::default();
        change(group, &mut method)?;
        methods.push(method);
    }
    Ok(Box::new(methods))
}
