//! The health of a training: [`health`], a report of values, gradients and updates by path, and
//! [`HealthWatch`], which stops at the first value that is not finite. `report.rs` has the numbers and the
//! table.

mod report;

pub use report::{HealthReport, ParameterHealth, TensorHealth};

use namegrad_autograd::{Parameter, detect_nonfinite, take_anomaly};
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use std::collections::HashSet;
use std::panic::Location;

/// The health of parameters and their gradients as they are now.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::health;
/// let model = Linear::new(("in", 3), ("out", 2))?;
/// model.forward(&Tensor::ones([("N", 4), ("in", 3)])?)?.relu()?.sum(..)?.backward()?;
/// let report = health(model.named_parameters())?;
/// println!("{report}"); // a line for each parameter
/// assert_eq!(report.rows()[0].path, "weight");
/// assert!(report.first_bad().is_none());
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// The errors of a parameter that is computed from others; [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn health(parameters: impl IntoIterator<Item = (String, Parameter)>) -> Result<HealthReport> {
    HealthWatch::new(parameters).report()
}

/// Watches the parameters of a model during a training: reports their health with the updates of the last
/// step, and stops at the first value that is not finite.
///
/// A [`GradScaler`](namegrad_optim::GradScaler) skips steps whose gradients overflow, so do not use it inside
/// of a watch, for which an overflow is an error.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::HealthWatch;
/// let model = Linear::new(("in", 3), ("out", 2))?;
/// let mut optimizer = Sgd::builder(model.parameters()).lr(0.1).build()?;
/// let x = Tensor::ones([("N", 4), ("in", 3)])?;
/// let mut watch = HealthWatch::new(model.named_parameters());
/// let mut step = |scale: f64| {
///     watch.step(|| {
///         let loss = model.forward(&x)?.square()?.mean(..)?.mul(scale)?.sqrt()?;
///         optimizer.zero_grad();
///         loss.backward()?;
///         optimizer.step()
///     })
/// };
/// step(1.0)?;
/// let error = step(-1.0).unwrap_err(); // the parameters are as before
/// let start = "Function 'sqrt' returned nan or infinite values in the forward pass";
/// assert!(error.message().starts_with(start));
///
/// let report = watch.report()?;
/// println!("{report}");
/// # assert_eq!(report.rows()[0].update.as_ref().unwrap().norm, 0.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct HealthWatch {
    parameters: Vec<(String, Parameter)>,
    /// The values before the last step.
    before: Option<Vec<NamedTensor>>,
}

impl HealthWatch {
    /// A watch for these parameters, usually `model.named_parameters()`. A parameter with several paths is
    /// watched once.
    pub fn new(parameters: impl IntoIterator<Item = (String, Parameter)>) -> HealthWatch {
        let mut seen = HashSet::new();
        let mut own = Vec::new();
        for (path, parameter) in parameters {
            if seen.insert(parameter.id()) {
                own.push((path, parameter));
            }
        }
        HealthWatch { parameters: own, before: None }
    }

    /// Runs a step of the training, `f`, and stops it at the first value that is not finite: the backward
    /// pass is an error if the loss or a gradient is NaN or infinite, so that the optimizer does not step.
    /// The error names the op that made the first such value, the line that called it, and the parameters
    /// that the gradient belongs to.
    ///
    /// The values before the step are remembered, as by [`remember`](Self::remember). Each value of the step
    /// is read once more, which takes time.
    ///
    /// # Errors
    /// The errors of `f`; [`ErrorKind::Autograd`] if the loss or a gradient is not finite.
    /// [`ErrorKind::Value`] if a parameter is not finite before the step, or if the step itself made it so;
    /// the error names it.
    #[track_caller]
    pub fn step<R>(&mut self, f: impl FnOnce() -> Result<R>) -> Result<R> {
        let caller = Location::caller();
        self.check("before the step", "").map_err(|error| error.at(caller))?;
        self.remember();
        take_anomaly();
        let result = detect_nonfinite(f).map_err(|error| self.name_parameters(error))?;
        let repair =
            "optim::clip_grad_norm_(model.parameters(), 1.0)? before the step, or a smaller learning rate";
        self.check("after the step, and the gradients were finite", repair)
            .map_err(|error| error.at(caller))?;
        Ok(result)
    }

    /// Takes the values before a step, with which [`report`](Self::report) compares. Nothing is copied here,
    /// but the optimizer then writes to new memory: as much as the parameters take, until the next call.
    pub fn remember(&mut self) {
        self.before = None;
        let mut values = Vec::new();
        for (_, parameter) in &self.parameters {
            let Ok(tensor) = parameter.try_tensor() else { return };
            values.push(tensor.into_value());
        }
        self.before = Some(values);
    }

    /// The health of each parameter now, with the update since [`remember`](Self::remember) or the last
    /// [`step`](Self::step), if there was one.
    ///
    /// # Errors
    /// The errors of a parameter that is computed from others; [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn report(&self) -> Result<HealthReport> {
        let caller = Location::caller();
        let mut rows = Vec::new();
        for (at, (path, parameter)) in self.parameters.iter().enumerate() {
            let before = self.before.as_ref().map(|before| &before[at]);
            rows.push(ParameterHealth::of(path, parameter, before).map_err(|error| error.at(caller))?);
        }
        Ok(HealthReport::new(rows))
    }

    /// Checks that all parameters are finite.
    #[track_caller]
    fn check(&self, when: &str, repair: &str) -> Result<()> {
        for (path, parameter) in &self.parameters {
            let TensorHealth { nan, infinite, .. } = TensorHealth::of(parameter.try_tensor()?.value())?;
            if nan + infinite > 0 {
                let message =
                    format!("parameter '{path}' has {nan} nan and {infinite} infinite values {when}");
                return Err(Error::new(ErrorKind::Value, "HealthWatch::step", message)
                    .with_operands([parameter.shape()])
                    .with_repair(repair));
            }
        }
        Ok(())
    }

    /// The error of an anomaly with the paths of the parameters that it is about.
    fn name_parameters(&self, error: Error) -> Error {
        let Some(anomaly) = take_anomaly() else { return error };
        let backward = !anomaly.leaves.is_empty();
        let is_meant = |parameter: &Parameter| {
            let Ok(tensor) = parameter.try_tensor() else { return false };
            let address = tensor.value().data_ptr() as usize;
            tensor.record_id().is_some_and(|id| anomaly.leaves.contains(&id))
                || anomaly.inputs.contains(&address)
        };
        let mut paths = Vec::new();
        for (path, parameter) in &self.parameters {
            if is_meant(parameter) {
                paths.push(format!("'{path}'"));
            }
        }
        let paths = match paths.len() {
            0 => return error,
            1..=8 => crate::joined(&paths, ", "),
            more => format!("{} and {} more", crate::joined(&paths[..8], ", "), more - 8),
        };
        let message = match backward {
            true => format!("{}; it is, or leads to, the gradient of {paths}", error.message()),
            false => format!("{}; its inputs include the parameter {paths}", error.message()),
        };
        error.with_message(message)
    }
}
