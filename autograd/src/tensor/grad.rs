//! The gradient of a [`Tensor`]: requiring it, storing it, computing it with [`backward`](Tensor::backward)
//! or [`grad`], and hooks.

use super::Tensor;
use crate::hooks::{Hook, HookHandle};
use crate::places::before_change;
use crate::tape::{
    BackwardOptions, Goal, GradNames, Meta, Root, is_anomalous, is_anomaly_enabled, is_grad_enabled,
    last_off, walk,
};
use crate::vmap::detached;
use namegrad_core::names::is_strict;
use namegrad_core::{DType, Error, ErrorKind, Name, NamedTensor, OnDevice, Result, Scalar};
use std::sync::Arc;

/// # Gradients
impl Tensor {
    /// Returns the same leaf, requiring a gradient. [`requires_grad_`](Self::requires_grad_) changes a leaf
    /// in place.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1.0, 2.0])?.requiring_grad()?;
    /// x.square()?.sum(..)?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the dtype has no gradients.
    #[track_caller]
    pub fn requiring_grad(mut self) -> Result<Tensor> {
        self.requires_grad_(true).map_err(|error| error.of("requiring_grad"))?;
        Ok(self)
    }

    /// Changes whether this leaf requires a gradient, in place.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let mut x = Tensor::ones([2])?;
    /// x.requires_grad_(true)?;
    /// assert!(x.requires_grad());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the dtype has no gradients, or if you switch it off for the result of an
    /// op.
    #[track_caller]
    pub fn requires_grad_(&mut self, requires_grad: bool) -> Result<&mut Tensor> {
        const OP: &str = "requires_grad_";
        match (requires_grad, self.meta()) {
            (true, None) if !self.dtype().is_floating_point() => {
                let message = format!(
                    "only Tensors of floating point dtype can require gradients, got {}",
                    self.dtype()
                );
                Err(Error::about(&[&self.parts.value], ErrorKind::Autograd, OP, message)
                    .with_repair("x.to(DType::F32)?.requiring_grad()?"))
            }
            (true, None) => {
                *self = self.leaf();
                Ok(self)
            }
            (false, Some(meta)) if !meta.is_leaf() => {
                let message = "you can only change requires_grad flags of leaf variables, and this tensor was computed from others";
                Err(Error::about(&[&self.parts.value], ErrorKind::Autograd, OP, message)
                    .with_repair("let x = x.detach();"))
            }
            (false, _) => {
                *self = self.off_tape();
                Ok(self)
            }
            (true, Some(_)) => Ok(self),
        }
    }

    /// The accumulated gradient: of a leaf, or of a tensor on which [`retain_grad`](Self::retain_grad) was
    /// called. It has no names, unless the backward pass used [`BackwardOptions::named`] or it was
    /// [set](Self::set_grad) with names.
    pub fn grad(&self) -> Option<Tensor> {
        let state = self.meta()?.state();
        let grad = state.grad.clone()?;
        Some(match &state.grad_names {
            GradNames::None => grad,
            GradNames::OfTensor => grad.with_names_of(self),
            GradNames::Given(names) => grad.named(names.clone()),
        })
    }

    /// Sets the gradient, or removes it. A gradient with names keeps them until something is added to it, and
    /// an optimizer refuses it if they are not those of the parameter.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the tensor requires no gradient, or if the gradient has other sizes or is
    /// not floating-point; [`ErrorKind::Device`] if it is on another device.
    #[track_caller]
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        const OP: &str = "set_grad";
        let Some(meta) = self.meta() else {
            return match grad {
                None => Ok(()),
                Some(_) => {
                    let message = "the tensor does not require a gradient";
                    Err(Error::about(&[&self.parts.value], ErrorKind::Autograd, OP, message)
                        .with_repair("let x = x.requiring_grad()?; before it is used"))
                }
            };
        };
        let names = match &grad {
            Some(grad) if grad.has_names() => GradNames::Given(grad.names().clone()),
            _ => GradNames::None,
        };
        let grad = match grad {
            Some(grad) => {
                self.value().check_device_of(OP, grad.value())?;
                Some(checked_gradient(OP, grad, &meta.sizes, meta.dtype)?)
            }
            None => None,
        };
        before_change(meta);
        let mut state = meta.state();
        (state.grad, state.grad_names) = (grad, names);
        Ok(())
    }

    /// Changes the gradient outside of the tape, if there is one. See `Parameter::update_grad`.
    #[track_caller]
    pub(crate) fn update_grad<R>(&self, f: impl FnOnce(&mut NamedTensor) -> Result<R>) -> Result<Option<R>> {
        let Some(meta) = self.meta() else { return Ok(None) };
        before_change(meta);
        let mut state = meta.state();
        let Some(grad) = &mut state.grad else { return Ok(None) };
        f(grad.detach_().in_buffer()).map(Some)
    }

    /// Removes the accumulated gradient.
    pub fn zero_grad(&self) {
        if let Some(meta) = self.meta() {
            before_change(meta);
            meta.state().grad = None;
        }
    }

    /// Makes `backward` store the gradient of this tensor although it is not a leaf.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the tensor requires no gradient.
    #[track_caller]
    pub fn retain_grad(&self) -> Result<()> {
        match self.meta() {
            Some(meta) => meta.state().retain_grad = true,
            None => {
                let message =
                    "can't retain_grad on Tensor that has requires_grad=False: there will be no gradient";
                return Err(Error::about(&[&self.parts.value], ErrorKind::Autograd, "retain_grad", message)
                    .with_repair(REQUIRED_BEFORE));
            }
        }
        Ok(())
    }

    /// The same value, detached from the tape.
    pub fn detach(&self) -> Tensor {
        Tensor::constant(detached(&self.parts.value))
    }

    /// The same value off the tape, with the tangents that it carries.
    pub(crate) fn off_tape(&self) -> Tensor {
        let carried = self.carried().map(|carried| carried.clone().recorded(false));
        let value = self.parts.value.clone();
        let meta = carried.map(|carried| Meta::carrying(&value, None, None, carried));
        Tensor::from_parts(value, meta)
    }

    /// The same value as a leaf that requires a gradient, with the tangents that it carries.
    pub(crate) fn leaf(&self) -> Tensor {
        let value = self.parts.value.clone();
        let meta = match self.carried() {
            Some(carried) => Meta::carrying(&value, None, None, carried.clone().recorded(true)),
            None => Meta::leaf(&value),
        };
        Tensor::from_parts(value, Some(meta))
    }

    /// [`detach`](Self::detach) in place.
    pub fn detach_(&mut self) -> &mut Tensor {
        self.parts.meta = None;
        if self.parts.value.behind().is_some() {
            self.parts.value = detached(&self.parts.value);
        }
        self
    }

    /// Calls `hook` with the gradient of this tensor whenever it is computed; `Some` replaces the gradient.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::ones([2])?.requiring_grad()?;
    /// let handle = x.register_hook(|grad| grad.mul(10.0).map(Some))?;
    /// x.sum(..)?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [10.0, 10.0]);
    /// handle.remove();
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the tensor requires no gradient.
    #[track_caller]
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        self.add_hook("register_hook", Arc::new(hook), false)
    }

    /// Calls `hook` with `grad` after `backward` has added to it; `Some` replaces it. Only for leaves.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the tensor requires no gradient or is not a leaf.
    #[track_caller]
    pub fn register_post_accumulate_grad_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        const OP: &str = "register_post_accumulate_grad_hook";
        if !self.is_leaf() {
            let message = "post accumulate grad hooks cannot be registered on non-leaf tensors: this one was computed from others";
            return Err(Error::about(&[&self.parts.value], ErrorKind::Autograd, OP, message)
                .with_repair("x.register_hook(..)? for the gradient on its way"));
        }
        self.add_hook(OP, Arc::new(hook), true)
    }

    #[track_caller]
    fn add_hook(&self, op: &'static str, hook: Hook, after_accumulation: bool) -> Result<HookHandle> {
        match self.meta() {
            Some(meta) => Ok(HookHandle::add(meta, hook, after_accumulation)),
            None => {
                let message =
                    "cannot register a hook on a tensor that doesn't require gradient: it would never run";
                Err(Error::about(&[&self.parts.value], ErrorKind::Autograd, op, message)
                    .with_repair(REQUIRED_BEFORE))
            }
        }
    }

    /// Computes the gradient of this tensor, which must have one element, with respect to every leaf that it
    /// was computed from, and adds it to the leaf's `grad`. Frees the saved values of the ops.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the tensor has more than one element or requires no gradient, or if the
    /// saved values have already been freed.
    #[track_caller]
    pub fn backward(&self) -> Result<()> {
        self.backward_with(None, BackwardOptions::default())
    }

    /// Like [`backward`](Self::backward), but starts with a given gradient of this tensor, whose names are
    /// ignored, except that in strict mode the names of this tensor in another order are an error.
    ///
    /// If you need [`create_graph`](BackwardOptions::create_graph), prefer [`grad`]: a leaf whose `grad` is
    /// on the tape is not freed before [`zero_grad`](Self::zero_grad).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1.0, 2.0])?.requiring_grad()?;
    /// let y = x.square()?;
    /// let g = Tensor::new([1.0, 10.0])?;
    /// y.backward_with(Some(&g), BackwardOptions::new().retain_graph(true))?;
    /// y.backward_with(Some(&g), BackwardOptions::new())?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [4.0, 80.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`backward`](Self::backward); [`ErrorKind::Autograd`] if the gradient has other sizes,
    /// [`ErrorKind::NameMismatch`] if they are those of the same dims in another order, [`ErrorKind::Device`]
    /// if it is on another device.
    #[track_caller]
    pub fn backward_with(&self, gradient: Option<&Tensor>, options: BackwardOptions) -> Result<()> {
        let root = root("backward", self, gradient, options.named)?;
        walk("backward", vec![root], Goal::Leaves, options).map(drop)
    }
}

/// Checks that a gradient fits a value, and removes its names.
#[track_caller]
fn checked_gradient(op: &'static str, gradient: Tensor, sizes: &[usize], dtype: DType) -> Result<Tensor> {
    if gradient.sizes() != sizes {
        let message = format!(
            "Mismatch in shape: the gradient has sizes {:?} and the tensor {sizes:?}",
            gradient.sizes()
        );
        return Err(Error::about(&[gradient.value()], ErrorKind::Autograd, op, message)
            .with_repair("y.ones_like()?, or another gradient of the sizes of the tensor"));
    }
    if !gradient.dtype().is_floating_point() {
        let message = format!("a gradient of {} for a tensor of {dtype}", gradient.dtype());
        return Err(Error::about(&[gradient.value()], ErrorKind::Autograd, op, message)
            .with_repair(format!("gradient.to(DType::{dtype:?})?")));
    }
    gradient.unnamed().to(dtype)
}

/// The start of a backward pass: an output and its gradient, by default 1 for a single element.
#[track_caller]
fn root(op: &'static str, output: &Tensor, gradient: Option<&Tensor>, named: bool) -> Result<Root> {
    let Some(meta) = output.meta().cloned() else { return Err(without_gradient(op, output)) };
    let gradient = match gradient {
        Some(gradient) => {
            // Where the names tell why the sizes differ, the error says it.
            let is_checked = is_strict() || gradient.sizes() != output.sizes();
            if named || is_checked && is_permuted(gradient, output) {
                output.value().check_alike(op, ["y", "gradient"], gradient.value())?;
            }
            output.value().check_device_of(op, gradient.value())?;
            checked_gradient(op, gradient.clone(), output.sizes(), output.dtype())?
        }
        None if output.numel() == 1 => {
            let _device = OnDevice::of(output.value());
            Tensor::constant(NamedTensor::full_as(op, output.sizes(), Scalar::Int(1), output.dtype())?)
        }
        None => {
            let message = "grad can be implicitly created only for scalar outputs";
            return Err(Error::new(ErrorKind::Autograd, op, message)
                .with_operands([output.shape()])
                .with_repair(match op {
                    "grad" => "grad(&[&y.sum(..)?], &[&x])?, or grad_with(&[&y], &[&x], &[Some(&g)], BackwardOptions::new())? with its gradient",
                    _ => "y.sum(..)?.backward()? or y.mean(..)?.backward()?; or y.backward_with(Some(&g), BackwardOptions::new())? with its gradient",
                }));
        }
    };
    Ok((meta, gradient, is_anomaly_enabled() && is_anomalous(output.value())))
}

/// Whether a tensor has the names of another one in another order.
fn is_permuted(x: &Tensor, other: &Tensor) -> bool {
    let all = |x: &Tensor| x.names().iter(x.ndim()).all(|name| name.is_some());
    let has = |name: Option<Name>| name.is_some_and(|name| other.names().position(name).is_some());
    x.ndim() == other.ndim() && x.names() != other.names() && all(other) && x.names().iter(x.ndim()).all(has)
}

/// The repair for a tensor that does not require a gradient where one is needed.
const REQUIRED_BEFORE: &str = "let x = x.requiring_grad()?; before it is used";

/// The error for a tensor from which no backward pass can start.
#[cold]
#[track_caller]
fn without_gradient(op: &'static str, output: &Tensor) -> Error {
    let sentence = "element 0 of tensors does not require grad and does not have a grad_fn";
    let (why, repair) = match output.dtype() {
        dtype if !dtype.is_floating_point() => (
            format!("{dtype}, the result of ops such as argmax and comparisons, has no gradient"),
            "F::cross_entropy(&logits, &target, \"class\")?, or another loss of floats",
        ),
        _ if !is_grad_enabled() => (
            "this call is in no_grad, where nothing is recorded; the forward pass has to be outside of it"
                .into(),
            "let loss = enable_grad(|| ..)?; for the forward pass",
        ),
        _ => {
            let why = "nothing that it was computed from requires a gradient, or no_grad, detach or an op without a gradient, such as argmax, cut it off";
            // The line is a guess: values do not say where they were made.
            let off = last_off()
                .map(|at| format!("; if it was computed in the no_grad at {at}, nothing was recorded"));
            (
                why.to_string() + &off.unwrap_or_default(),
                "let x = x.requiring_grad()?; before it is used, or model.set_requires_grad(true)? for a frozen model",
            )
        }
    };
    Error::new(ErrorKind::Autograd, op, format!("{sentence}: {why}"))
        .with_operands([output.shape()])
        .with_repair(repair)
}

/// The gradients of the sum of `outputs` with respect to each of `inputs`, which need not be leaves. No
/// `grad` changes.
///
/// ```
/// use namegrad::autograd::grad;
/// use namegrad::prelude::*;
/// let x = Tensor::new([1.0, 3.0])?.requiring_grad()?;
/// let y = x.pow(3).sum(..)?;
/// let of_x = grad(&[&y], &[&x])?.remove(0);
/// assert_eq!(of_x.to_vec::<f32>()?, [3.0, 27.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Autograd`] if an input requires no gradient or no output depends on it; the errors of
/// [`Tensor::backward`].
#[track_caller]
pub fn grad(outputs: &[&Tensor], inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    let found = grad_with(outputs, inputs, &[], BackwardOptions::default())?;
    Ok(crate::list(found.into_iter().flatten())) // unused inputs are not allowed, so none is missing
}

/// [`grad`] with options. `grad_outputs` are the gradients of the outputs; `None` or an empty list means
/// ones. With [`BackwardOptions::allow_unused`], an input that no output depends on has no gradient.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::{BackwardOptions, grad, grad_with};
/// let x = Tensor::new(3.0)?.requiring_grad()?;
/// let y = x.pow(3)?;
/// let create = BackwardOptions::new().create_graph(true);
/// let first = grad_with(&[&y], &[&x], &[], create)?[0].clone().unwrap();
/// let second = grad(&[&first], &[&x])?.remove(0);
/// assert_eq!([first.item::<f64>()?, second.item::<f64>()?], [27.0, 18.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Autograd`] if an input requires no gradient, or if no output depends on it and `allow_unused`
/// is not set; the errors of [`Tensor::backward_with`].
#[track_caller]
pub fn grad_with(
    outputs: &[&Tensor],
    inputs: &[&Tensor],
    grad_outputs: &[Option<&Tensor>],
    options: BackwardOptions,
) -> Result<Vec<Option<Tensor>>> {
    const OP: &str = "grad";
    if !grad_outputs.is_empty() && grad_outputs.len() != outputs.len() {
        let message =
            format!("got {} outputs and {} gradients of outputs", outputs.len(), grad_outputs.len());
        return Err(Error::new(ErrorKind::Autograd, OP, message));
    }
    if outputs.is_empty() {
        return Err(Error::new(ErrorKind::Autograd, OP, "there are no outputs to differentiate"));
    }
    let mut roots = Vec::with_capacity(outputs.len());
    for (number, output) in outputs.iter().enumerate() {
        roots.push(root(OP, output, grad_outputs.get(number).copied().flatten(), options.named)?);
    }
    let mut metas = Vec::with_capacity(inputs.len());
    for (number, input) in inputs.iter().enumerate() {
        match input.meta() {
            Some(meta) => metas.push(meta.clone()),
            None => {
                let message = format!("input {number} does not require a gradient");
                return Err(Error::new(ErrorKind::Autograd, OP, message)
                    .with_operands([input.shape()])
                    .with_repair(REQUIRED_BEFORE));
            }
        }
    }
    let mut found = walk(OP, roots, Goal::Inputs(&metas), options)?;
    if let Some(number) = found.iter().position(Option::is_none)
        && !options.allow_unused
    {
        let message = format!(
            "One of the differentiated Tensors appears to not have been used in the graph: input {number}"
        );
        return Err(Error::about(&[inputs[number].value()], ErrorKind::Autograd, OP, message)
            .with_repair("grad_with(&[&y], &[&x], &[], BackwardOptions::new().allow_unused(true))?, which gives None for it"));
    }
    if options.named {
        for (gradient, input) in found.iter_mut().zip(inputs) {
            *gradient = gradient.take().map(|gradient| gradient.with_names_of(input));
        }
    }
    Ok(found)
}
