//! The lists of all optimizers and of all schedules, which tests and benchmarks go through.

use crate::descent::Descent;
use crate::listed::{Listed, merged};
use crate::method::Method;
use crate::optimizer::Optimizer;
use crate::rows::Rows;
use crate::schedule::{self, Schedule};
use namegrad_autograd::Parameter;
use namegrad_core::{Error, ErrorKind, Result};
use serde_json::Value as Json;
use std::marker::PhantomData;

/// Every optimizer.
pub static OPTIMIZERS: [&dyn AnyOptimizer; 16] = [
    &Of::<crate::SgdOptions>(PhantomData),
    &Of::<crate::AsgdOptions>(PhantomData),
    &Of::<crate::AdamOptions>(PhantomData),
    &Of::<crate::AdamWOptions>(PhantomData),
    &Of::<crate::NAdamOptions>(PhantomData),
    &Of::<crate::RAdamOptions>(PhantomData),
    &Of::<crate::AdamaxOptions>(PhantomData),
    &Of::<crate::AdagradOptions>(PhantomData),
    &Of::<crate::AdadeltaOptions>(PhantomData),
    &Of::<crate::RmsPropOptions>(PhantomData),
    &Of::<crate::RpropOptions>(PhantomData),
    &Of::<crate::AdafactorOptions>(PhantomData),
    &Of::<crate::LionOptions>(PhantomData),
    &Of::<crate::LambOptions>(PhantomData),
    &Of::<crate::MuonOptions>(PhantomData),
    &Of::<crate::LbfgsOptions>(PhantomData),
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
pub trait AnyOptimizer: Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Its default hyperparameters.
    fn defaults(&self) -> Box<dyn Rows>;
    /// Builds it with a group for each list of parameters. `change` gets the number and the hyperparameters
    /// of each group.
    ///
    /// # Errors
    /// The errors of a builder and of `change`.
    #[track_caller]
    fn build_with(&self, groups: Vec<Vec<Listed>>, change: Change<'_>) -> Result<Box<dyn Optimizer>>;
}

/// Changes the hyperparameters of a group, or says what is wrong.
pub type Change<'c> = &'c dyn Fn(usize, &mut dyn Rows) -> std::result::Result<(), String>;

impl dyn AnyOptimizer {
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
struct Of<M>(PhantomData<fn() -> M>);

impl<M: Method + Default + Rows> AnyOptimizer for Of<M> {
    fn name(&self) -> &'static str {
        M::NAME
    }
    fn defaults(&self) -> Box<dyn Rows> {
        Box::new(M::default())
    }
    #[track_caller]
    fn build_with(&self, groups: Vec<Vec<Listed>>, change: Change<'_>) -> Result<Box<dyn Optimizer>> {
        let mut optimizer = Descent::<M>::empty();
        for (group, parameters) in groups.into_iter().enumerate() {
            let mut method = M::default();
            if let Err(message) = change(group, &mut method) {
                return Err(Error::new(ErrorKind::Value, M::NAME, message));
            }
            optimizer.push_group(merged(parameters), method)?;
        }
        Ok(Box::new(optimizer.checked()?))
    }
}
