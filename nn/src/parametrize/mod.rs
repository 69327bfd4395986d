//! Parameters that are computed from others: [`weight_norm`], [`spectral_norm`], [`lora`], and your own
//! [`Parametrization`].
//!
//! A parametrized parameter stays where it is in its layer, and the layer does not notice: `weight.tensor()`
//! gives the computed tensor, and gradients flow to the parameters that it is computed from. Those are what
//! [`parameters`](crate::Module::parameters) lists and files hold, under PyTorch's paths: `fc.weight` becomes
//! `fc.parametrizations.weight.original`, or `original0`, `original1`, ... if there are several, and what the
//! first parametrization itself holds is at `fc.parametrizations.weight.0`.
//!
//! Parametrize a model before you build its optimizer, which holds parameters.
//!
//! # Your own
//! A parametrization is a module with a formula. Its parameters, buffers and mode become a part of the model.
//! ```
//! use namegrad::nn::parametrize::{self, Parametrization};
//! use namegrad::prelude::*;
//!
//! /// The symmetric matrix with the upper triangle of the original.
//! #[derive(Clone, Module)]
//! struct Symmetric;
//!
//! impl Parametrization for Symmetric {
//!     fn compute(&self, originals: &[Tensor]) -> Result<Tensor> {
//!         let upper = originals[0].rename(None)?;
//!         let above = upper.triu_with(TriuOptions::new().diagonal(1))?;
//!         upper.triu()?.add(&above.t()?)?.rename(Some(originals[0].names().clone()))
//!     }
//! }
//!
//! let layer = Linear::new(("x", 3), ("y", 3))?;
//! parametrize::register(&layer, "weight", Symmetric)?;
//! let weight = layer.weight().tensor().rename(None)?;
//! assert!(weight.equal(&weight.t()?)?);
//! assert_eq!(layer.named_parameters()[0].0, "parametrizations.weight.original");
//!
//! parametrize::remove(&layer, "weight")?; // the weight stays symmetric until it is updated
//! assert_eq!(layer.named_parameters()[0].0, "weight");
//! # Ok::<(), Error>(())
//! ```
//! (`parametrize::register` takes the parameter by its path, so any layer will do, also your own.)

mod lora;
mod spectral_norm;
mod weight_norm;

pub use lora::{Lora, lora};
pub use spectral_norm::{SpectralNorm, SpectralNormOptions, spectral_norm, spectral_norm_with};
pub use weight_norm::{WeightNorm, weight_norm};

use crate::pattern::nearest;
use crate::places::walk;
use crate::{Entry, Field, Module, ModuleFields, Visitor};
use namegrad_autograd::{Computed, Parameter, Tensor};
use namegrad_core::{Error, ErrorKind, Result};
use std::any::Any;
use std::sync::Arc;

/// The computation of a parameter from others. The [module page](self) has an example.
pub trait Parametrization: ModuleFields + Send + Sync {
    /// The parameter, with the dims that it had, from the originals. There is one original, unless
    /// [`originals`](Self::originals) gives more.
    ///
    /// It runs each time that a layer reads the parameter.
    ///
    /// # Errors
    /// Those of your formula. An error while the parametrization is set up is an error of [`register`]; a
    /// later one is an error of the `forward` of the layer, and a panic of [`Parameter::tensor`].
    fn compute(&self, originals: &[Tensor]) -> Result<Tensor>;

    /// The first values of the originals, from the value that the parameter had: PyTorch's `right_inverse`.
    /// By default, there is one original with that value.
    ///
    /// # Errors
    /// Those of your formula.
    fn originals(&self, value: &Tensor) -> Result<Vec<Tensor>> {
        Ok(vec![value.clone()])
    }
}

/// A parametrization that can be copied with the model.
trait CopiedWithModel: Parametrization {
    fn copied(&self) -> Arc<dyn CopiedWithModel>;
}

impl<P: Parametrization + Clone + 'static> CopiedWithModel for P {
    fn copied(&self) -> Arc<dyn CopiedWithModel> {
        Arc::new(self.clone())
    }
}

/// A parameter as it is computed: the originals, and what is applied to them in order.
pub(crate) struct Parametrized {
    originals: Vec<Parameter>,
    steps: Vec<Arc<dyn CopiedWithModel>>,
}

impl Computed for Parametrized {
    fn tensor(&self) -> Result<Tensor> {
        let mut values: Vec<Tensor> = crate::list(self.originals.iter().map(Parameter::tensor));
        for step in &self.steps {
            values = vec![step.compute(&values)?];
        }
        Ok(values.swap_remove(0))
    }

    fn copied(&self) -> Arc<dyn Computed> {
        let steps = crate::list(self.steps.iter().map(|step| step.copied()));
        Arc::new(Parametrized { originals: self.originals.clone(), steps })
    }
}

impl Parametrized {
    /// The parts of the parameter, as PyTorch calls them: `layer.weight` becomes
    /// `layer.parametrizations.weight.original`.
    pub(crate) fn parts(&self, visitor: &mut Visitor<'_>) {
        let own = visitor.path.clone();
        let at = own.rfind('.').map_or(0, |dot| dot + 1);
        visitor.path.insert_str(at, "parametrizations.");
        for (number, original) in self.originals.iter().enumerate() {
            let number = if self.originals.len() > 1 { number.to_string() } else { String::new() };
            visitor.field(&format!("original{number}"), original);
        }
        self.steps.visit(visitor);
        visitor.path = own;
    }
}

/// Parametrizes the parameter of `module` at `path`. If it is parametrized already, the result of the former
/// parametrization is the original of this one, as in PyTorch. The dims stay the same.
///
/// # Errors
/// [`ErrorKind::Value`] for a path that `module` does not have, with similar ones, and for a parametrization
/// with several originals that is not the first; [`ErrorKind::Shape`] if the computed parameter has other
/// sizes; the errors of the parametrization. Then nothing has changed.
#[track_caller]
pub fn register<P>(module: &dyn Module, path: &str, parametrization: P) -> Result<()>
where
    P: Parametrization + Clone + 'static,
{
    add(&find("parametrize::register", module, path)?, Arc::new(parametrization))
}

/// Ends the parametrizations of the parameter of `module` at `path`. It becomes an ordinary parameter, which
/// requires a gradient, with the value that was computed last.
///
/// # Errors
/// [`ErrorKind::Value`] for a path that `module` does not have, or that is not parametrized; the errors of
/// the parametrization.
#[track_caller]
pub fn remove(module: &dyn Module, path: &str) -> Result<()> {
    const OP: &str = "parametrize::remove";
    let parameter = find(OP, module, path)?;
    Error::ensure(parameter.computed().is_some(), ErrorKind::Value, OP, || {
        format!("the parameter '{path}' is not parametrized")
    })?;
    parameter.stop_computing()
}

/// Parametrizes a parameter, and returns its originals.
#[track_caller]
fn parametrized(parameter: &Parameter, step: Arc<dyn CopiedWithModel>) -> Result<Parametrized> {
    let before = parameter.computed();
    let before = before.as_deref().and_then(|computed| (computed as &dyn Any).downcast_ref::<Parametrized>());
    if let Some(before) = before {
        let count = step.originals(&parameter.try_tensor()?.detach())?.len();
        Error::ensure(count == 1, ErrorKind::Value, "parametrize::register", || {
            format!("{} has {count} originals, and can only be the first parametrization", step.describe())
        })?;
        let mut steps = before.steps.clone();
        steps.push(step);
        return Ok(Parametrized { originals: before.originals.clone(), steps });
    }
    let value = parameter.try_tensor()?;
    let frozen = !value.requires_grad();
    let mut originals = Vec::new();
    for original in step.originals(&value.detach())? {
        let original = Parameter::new(original)?;
        if frozen {
            original.set_requires_grad(false)?;
        }
        originals.push(original);
    }
    Ok(Parametrized { originals, steps: vec![step] })
}

#[track_caller]
fn add(parameter: &Parameter, step: Arc<dyn CopiedWithModel>) -> Result<()> {
    let parametrized = parametrized(parameter, step)?;
    parameter.compute_by(Arc::new(parametrized))
}

/// The parameter at a path, parametrized or not.
#[track_caller]
fn find(op: &'static str, module: &dyn Module, path: &str) -> Result<Parameter> {
    let known = all(module);
    let Some((_, parameter)) = known.iter().find(|(own, _)| own == path) else {
        let similar = crate::joined(&nearest(path, &mut known.iter().map(|(own, _)| own.as_str())), ", ");
        let message = format!("the module has no parameter '{path}'; the nearest: {similar}");
        return Err(Error::new(ErrorKind::Value, op, message));
    };
    Ok(parameter.clone())
}

/// The parameters of the layers by path: parametrized ones by their own path, without their parts.
fn all(module: &dyn Module) -> Vec<(String, Parameter)> {
    let mut found = Vec::new();
    walk(&module, &mut |path, entry| {
        if let Entry::Parameter(parameter) | Entry::Computed(parameter) = entry
            && !path.split('.').any(|segment| segment == "parametrizations")
        {
            found.push((path.to_string(), parameter.clone()));
        }
    });
    found
}
