//! Layers with state, and [`Sequential`], which runs layers one after another.

mod adaptive_softmax;
mod attention;
mod bilinear;
mod containers;
mod conv;
mod embedding;
mod flatten;
mod fold;
mod hooked;
mod lambda;
mod linear;
mod linear_loss;
mod norm;
mod parameters;
mod pool;
mod prelu;
mod recurrent;
mod rotary;
mod sequential;
mod tensors;
mod transformer;
mod triplet;

pub use {
    adaptive_softmax::*, attention::*, bilinear::*, containers::*, conv::*, embedding::*, flatten::*,
    fold::*, hooked::*, lambda::*, linear::*, linear_loss::*, norm::*, pool::*, prelu::*, recurrent::*,
    rotary::*, sequential::*, tensors::*, transformer::*, triplet::*,
};

// Most layers need these names: their files begin with `use super::*`.
use crate::dims::images::*;
use crate::dims::sequences::*;
use crate::dims::*;
use crate::functional::options::*;
use crate::functional::{self as F, OrError};
use crate::trace::Running;
use crate::training::{ModulePath, Training};
use crate::{Buffer, Field, Module, ModuleFields, Visitor};
use namegrad_autograd::{Parameter, Tensor, TensorOptions};
use namegrad_core::names::{Name, Names, is_strict};
use namegrad_core::{DType, Dim, Error, ErrorKind, NewDim, Result};
use namegrad_macros::Setters;
pub(crate) use parameters::kept;
use parameters::{as_in_weight, beside, check_dtype, filled, made, read, repeated, shared, uniform, unnamed};
use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::sync::Arc;

/// A module with a `forward` from one `Input` to one `Output`; both are [`Tensor`] by default.
///
/// A layer from tensor to tensor can be part of a [`Sequential`] and have hooks for its gradients
/// ([`Hooked`]). Several inputs or outputs are a tuple or a struct. A model that is not used by generic code
/// does not need `Layer`; its own `forward` method is enough.
///
/// # Examples
/// A layer for a [`Sequential`]:
/// ```
/// use namegrad::prelude::*;
///
/// #[derive(Module)]
/// struct Residual {
///     inner: Linear,
/// }
///
/// impl Layer for Residual {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         x.add(&self.inner.forward(x)?)
///     }
/// }
///
/// let block = || Ok::<_, Error>(Residual { inner: Linear::new(("C", 4), ("C", 4))? });
/// let model = Sequential::new().then(block()?).then(Relu).then(block()?);
/// assert_eq!(model.forward(&Tensor::ones([("N", 2), ("C", 4)])?)?.shape().to_string(), "[N=2, C=4]");
/// # Ok::<(), Error>(())
/// ```
///
/// A layer with two inputs and two outputs:
/// ```
/// use namegrad::prelude::*;
///
/// #[derive(Module)]
/// struct Cell {
///     update: Linear,
/// }
///
/// struct Step {
///     output: Tensor,
///     state: Tensor,
/// }
///
/// impl Layer<(Tensor, Tensor), Step> for Cell {
///     fn forward(&self, (x, state): &(Tensor, Tensor)) -> Result<Step> {
///         let state = self.update.forward(&x.add(state)?)?.tanh()?;
///         Ok(Step { output: state.relu()?, state })
///     }
/// }
///
/// fn run<I, O>(layer: &impl Layer<I, O>, input: &I) -> Result<O> {
///     layer.forward(input)
/// }
/// let cell = Cell { update: Linear::new(("h", 3), ("h", 3))? };
/// let step = run(&cell, &(Tensor::ones([("h", 3)])?, Tensor::zeros([("h", 3)])?))?;
/// assert_eq!(step.output.sizes(), step.state.sizes());
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a layer from `{Input}` to `{Output}`",
    label = "not such a layer",
    note = "implement `Layer` for it: fn forward(&self, input: &{Input}) -> Result<{Output}>",
    note = "a closure from tensor to tensor becomes a layer with `nn::Lambda::new`",
    note = "a `Result` must be unwrapped first, with `?`"
)]
pub trait Layer<Input: ?Sized = Tensor, Output = Tensor>: ModuleFields + Send + Sync {
    /// The output for `input`.
    ///
    /// # Errors
    /// The errors of the layer.
    #[track_caller]
    fn forward(&self, input: &Input) -> Result<Output>;
}

impl<L: Layer<I, O> + ?Sized, I: ?Sized, O> Layer<I, O> for Box<L> {
    #[track_caller]
    fn forward(&self, input: &I) -> Result<O> {
        (**self).forward(input)
    }
}

impl<L: Layer<I, O> + ?Sized, I: ?Sized, O> Layer<I, O> for Arc<L> {
    #[track_caller]
    fn forward(&self, input: &I) -> Result<O> {
        (**self).forward(input)
    }
}

/// The words of errors for a layer: `the layer 'blocks.0' (in=3 -> out=2)`, or without a path,
/// `the layer (in=3 -> out=2)`.
pub(crate) fn called(path: &ModulePath, about: &str) -> String {
    match path.get().filter(|path| !path.is_empty()) {
        Some(path) => format!("the layer '{path}' ({about})"),
        None => format!("the layer ({about})"),
    }
}

/// A layer with its settings, as summaries show it: `Softplus(beta=1.0, threshold=20.0)`.
pub(crate) fn described(layer: &str, settings: &[(&str, &dyn Debug)]) -> String {
    let settings: Vec<String> = crate::list(settings.iter().map(|(name, value)| format!("{name}={value:?}")));
    format!("{layer}({})", crate::joined(&settings, ", "))
}

/// A layer with its dims and the settings to show: `Conv2d(C=3 -> F=16, H=3, W=3, stride=2)`.
pub(crate) fn with_settings(layer: &str, dims: &str, settings: &[(bool, String)]) -> String {
    let mut parts = vec![dims];
    parts.extend(settings.iter().filter(|(shown, _)| *shown).map(|(_, text)| text.as_str()));
    format!("{layer}({})", crate::joined(&parts, ", "))
}

/// Turns the error of an op in a layer into an error of the layer, with its type `layer` and its path, unless
/// the message has the path already.
#[cold]
pub(crate) fn within(error: Error, layer: &'static str, inputs: &[&Tensor], path: &ModulePath) -> Error {
    let values: Vec<_> = crate::list(inputs.iter().map(|x| x.value()));
    let error = error.of_layer(layer, &values);
    let Some(path) = path.get().filter(|path| !path.is_empty()) else { return error };
    let place = format!("the layer '{path}'");
    if mentions(error.message(), &place) { error } else { error.context(format_args!("{place}: ")) }
}

/// Whether `text` has `part`: the search is much code where it is inlined.
#[inline(never)]
pub(crate) fn mentions(text: &str, part: &str) -> bool {
    text.contains(part)
}
