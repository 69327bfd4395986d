//! [`Tensor`]: a named value and what the tape knows of it.

use crate::hooks::{Hook, HookHandle};
use crate::tape::{BackwardOptions, Goal, Meta, is_grad_enabled, walk};
use namegrad_core::{DType, Element, Error, ErrorKind, Name, NamedTensor, Names, Result, Scalar, Shape};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A tensor whose dims may have names, and that can be differentiated.
///
/// A tensor is a value: a clone shares the buffer and the place on the tape, an in-place op changes one
/// handle only, and a view never writes through to its base.
///
/// ```
/// use namegrad::prelude::*;
/// let x = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.refine_names(["N", "C"])?.requires_grad_(true)?;
/// let loss = x.mul(&x)?.sum(..)?;
/// loss.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    value: NamedTensor,
    meta: Option<Arc<Meta>>,
}

impl Tensor {
    #[inline]
    pub(crate) fn from_parts(value: NamedTensor, meta: Option<Arc<Meta>>) -> Tensor {
        Tensor { value, meta }
    }

    /// A tensor that requires no gradient.
    #[inline]
    pub fn constant(value: NamedTensor) -> Tensor {
        Tensor { value, meta: None }
    }

    /// The value, without the tape.
    #[inline]
    pub fn value(&self) -> &NamedTensor {
        &self.value
    }

    /// The value, without the tape.
    #[inline]
    pub fn into_value(self) -> NamedTensor {
        self.value
    }

    #[inline]
    pub(crate) fn meta(&self) -> Option<&Arc<Meta>> {
        self.meta.as_ref()
    }

    /// What an op that is recorded now would lead back to.
    #[inline]
    pub(crate) fn tracked(&self) -> Option<&Arc<Meta>> {
        if is_grad_enabled() { self.meta.as_ref() } else { None }
    }

    /// A gradient of `other`, with its names.
    pub(crate) fn with_names_of(self, other: &Tensor) -> Tensor {
        Tensor { value: self.value.with_names(other.names().clone()), meta: self.meta }
    }

    /// The same place on the tape, with the value unnamed: what derivatives compute with.
    #[inline]
    pub(crate) fn unnamed(&self) -> Tensor {
        Tensor { value: self.value.unnamed(), meta: self.meta.clone() }
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.value.dtype()
    }

    /// The number of dims.
    pub fn ndim(&self) -> usize {
        self.value.ndim()
    }

    /// The sizes, outermost first.
    pub fn sizes(&self) -> &[usize] {
        self.value.sizes()
    }

    /// The size of one dim.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
    #[track_caller]
    pub fn size(&self, dim: impl Into<namegrad_core::Dim>) -> Result<usize> {
        let dim = namegrad_core::Argument::resolve(dim.into(), "size", &self.value)?;
        match self.sizes().get(dim) {
            Some(size) => Ok(*size),
            None => {
                let message = "dimension specified as 0 but tensor has no dimensions";
                Err(Error::new(ErrorKind::DimRange, "size", message))
            }
        }
    }

    /// The step in elements between neighbours along each dim.
    pub fn strides(&self) -> &[isize] {
        self.value.strides()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.value.numel()
    }

    /// The names.
    pub fn names(&self) -> &Names {
        self.value.names()
    }

    /// The name of dim `dim`, if it has one.
    pub fn name(&self, dim: usize) -> Option<Name> {
        self.value.name(dim)
    }

    /// Is any dim named?
    pub fn has_names(&self) -> bool {
        self.value.has_names()
    }

    /// The sizes with the names: what errors show, and what another tensor of the same dims is made of.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::zeros([("N", 2), ("C", 3)])?;
    /// assert_eq!(x.shape().to_string(), "[N=2, C=3]");
    /// assert_eq!(Tensor::ones(x.shape())?.shape(), x.shape());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn shape(&self) -> Shape {
        self.value.shape()
    }

    /// Do the elements stand in row-major order without gaps?
    pub fn is_contiguous(&self) -> bool {
        self.value.is_contiguous()
    }

    /// The only element, as a plain number.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if there is not exactly one.
    #[track_caller]
    pub fn item(&self) -> Result<Scalar> {
        self.value.item()
    }

    /// The elements in row-major order, copied and cast to `T`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.value.to_vec()
    }

    /// Does a gradient flow to or through this tensor?
    #[inline]
    pub fn requires_grad(&self) -> bool {
        self.meta.is_some()
    }

    /// Was this tensor made by the user rather than by a recorded op?
    pub fn is_leaf(&self) -> bool {
        self.meta.as_ref().is_none_or(|meta| meta.is_leaf())
    }

    /// The op that made this tensor, if it is recorded.
    pub fn grad_fn(&self) -> Option<&'static str> {
        Some(self.meta.as_ref()?.origin?.op)
    }

    /// The same leaf, requiring a gradient from now on, or not any more.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the dtype has no gradients, or to switch it off for a tensor that an op
    /// made.
    #[track_caller]
    pub fn requires_grad_(mut self, requires_grad: bool) -> Result<Tensor> {
        self.set_requires_grad(requires_grad)?;
        Ok(self)
    }

    /// In place: [`requires_grad_`](Self::requires_grad_).
    ///
    /// # Errors
    /// Those of `requires_grad_`.
    #[track_caller]
    pub fn set_requires_grad(&mut self, requires_grad: bool) -> Result<()> {
        const OP: &str = "requires_grad_";
        match (requires_grad, &self.meta) {
            (true, None) if !self.dtype().is_floating_point() => {
                let message = format!(
                    "only Tensors of floating point dtype can require gradients, got {}",
                    self.dtype()
                );
                Err(Error::new(ErrorKind::Autograd, OP, message).with_repair("x.to(DType::F32)? first"))
            }
            (true, None) => {
                self.meta = Some(Meta::leaf(&self.value));
                Ok(())
            }
            (false, Some(meta)) if !meta.is_leaf() => {
                let message = "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a \
                               subgraph that doesn't require differentiation use var_no_grad = var.detach().";
                Err(Error::new(ErrorKind::Autograd, OP, message).with_repair("x.detach()"))
            }
            (false, _) => {
                self.meta = None;
                Ok(())
            }
            (true, Some(_)) => Ok(()),
        }
    }

    /// The accumulated gradient: of a leaf, or of a tensor on which [`retain_grad`](Self::retain_grad) was
    /// called. It has no names, unless the backward pass was asked for them by [`BackwardOptions::named`].
    pub fn grad(&self) -> Option<Tensor> {
        let state = self.meta.as_ref()?.state();
        let grad = state.grad.clone()?;
        Some(if state.named { grad.with_names_of(self) } else { grad })
    }

    /// Puts a gradient in place, or removes it.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the tensor requires none, or the gradient has other sizes or is not
    /// floating-point.
    #[track_caller]
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        const OP: &str = "set_grad";
        let Some(meta) = &self.meta else {
            return match grad {
                None => Ok(()),
                Some(_) => Err(Error::new(ErrorKind::Autograd, OP, "the tensor does not require a gradient")),
            };
        };
        let grad = match grad {
            Some(grad) => Some(checked_gradient(OP, grad, &meta.sizes, meta.dtype)?),
            None => None,
        };
        meta.state().grad = grad;
        Ok(())
    }

    /// Forgets the accumulated gradient.
    pub fn zero_grad(&self) {
        if let Some(meta) = &self.meta {
            meta.state().grad = None;
        }
    }

    /// Lets backward keep the gradient of this tensor although it is no leaf.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if it requires none.
    #[track_caller]
    pub fn retain_grad(&self) -> Result<()> {
        match &self.meta {
            Some(meta) => meta.state().retain_grad = true,
            None => {
                let message = "can't retain_grad on Tensor that has requires_grad=False";
                return Err(Error::new(ErrorKind::Autograd, "retain_grad", message));
            }
        }
        Ok(())
    }

    /// The same value, cut from the tape.
    pub fn detach(&self) -> Tensor {
        Tensor::constant(self.value.clone())
    }

    /// In place: [`detach`](Self::detach).
    pub fn detach_(&mut self) -> &mut Tensor {
        self.meta = None;
        self
    }

    /// Calls `hook` with the gradient of this tensor whenever it is computed; `Some` replaces the gradient.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::ones([2])?.requires_grad_(true)?;
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

    /// Calls `hook` with `grad` after backward has added to it; `Some` replaces it. For leaves only.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the tensor requires no gradient or is no leaf.
    #[track_caller]
    pub fn register_post_accumulate_grad_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        const OP: &str = "register_post_accumulate_grad_hook";
        if !self.is_leaf() {
            return Err(Error::new(
                ErrorKind::Autograd,
                OP,
                "post accumulate grad hooks cannot be registered on non-leaf tensors",
            ));
        }
        self.add_hook(OP, Arc::new(hook), true)
    }

    #[track_caller]
    fn add_hook(&self, op: &'static str, hook: Hook, after_accumulation: bool) -> Result<HookHandle> {
        match &self.meta {
            Some(meta) => Ok(HookHandle::add(meta, hook, after_accumulation)),
            None => Err(Error::new(
                ErrorKind::Autograd,
                op,
                "cannot register a hook on a tensor that doesn't require gradient",
            )),
        }
    }

    /// Adds the gradients of this one element to the `grad` of every leaf that it was computed from, and
    /// frees what the ops kept.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if it has more than one element, requires no gradient, or was walked before.
    #[track_caller]
    pub fn backward(&self) -> Result<()> {
        self.backward_with(None, BackwardOptions::default())
    }

    /// As [`backward`](Self::backward), from a given gradient of this tensor, whose names are ignored.
    ///
    /// # Errors
    /// Those of `backward`; [`ErrorKind::Autograd`] if the gradient has other sizes.
    #[track_caller]
    pub fn backward_with(&self, gradient: Option<&Tensor>, options: BackwardOptions) -> Result<()> {
        let root = root("backward", self, gradient, options.named)?;
        walk("backward", vec![root], Goal::Leaves, options).map(drop)
    }

    /// The tensor in that dtype, if there is one.
    #[inline]
    #[track_caller]
    pub(crate) fn cast_to(&self, dtype: Option<DType>) -> Result<Cow<'_, Tensor>> {
        match dtype {
            Some(dtype) if dtype != self.dtype() => Ok(Cow::Owned(self.to(dtype)?)),
            _ => Ok(Cow::Borrowed(self)),
        }
    }

    /// What an op writes to that leaves its input as it is: the value with its place on the tape, if ops are
    /// recorded.
    #[inline]
    pub(crate) fn to_write(&self) -> Tensor {
        if is_grad_enabled() { self.clone() } else { self.detach() }
    }

    /// Adds `other` to this tensor, outside the tape; the buffer is reused if nobody else holds it.
    pub(crate) fn add_in_place(&mut self, other: Tensor) -> Result<()> {
        self.meta = None;
        self.value.add_(&other.value).map(drop)
    }

    /// The end of an in-place op: this handle becomes `y`.
    #[track_caller]
    pub(crate) fn assign(&mut self, op: &'static str, y: Tensor) -> Result<&mut Tensor> {
        self.check_in_place(op)?;
        if y.sizes() != self.sizes() {
            let message = format!(
                "output with shape {:?} doesn't match the broadcast shape {:?}",
                self.sizes(),
                y.sizes()
            );
            return Err(Error::new(ErrorKind::Shape, op, message).with_operands([self.shape(), y.shape()]));
        }
        if !y.dtype().can_cast(self.dtype()) {
            let message = format!(
                "result type {} can't be cast to the desired output type {}",
                y.dtype(),
                self.dtype()
            );
            return Err(Error::new(ErrorKind::DType, op, message).with_operands([self.shape()]));
        }
        let y = y.to(self.dtype())?;
        if is_grad_enabled() {
            *self = y;
        } else {
            self.value = y.value; // an update, as an optimizer makes it: the place on the tape stays
        }
        Ok(self)
    }

    /// An in-place op on a leaf would change the very value that the gradient is asked for.
    #[track_caller]
    pub(crate) fn check_in_place(&self, op: &'static str) -> Result<()> {
        if self.requires_grad() && self.is_leaf() && is_grad_enabled() {
            let message = "a leaf Variable that requires grad is being used in an in-place operation.";
            return Err(Error::new(ErrorKind::Autograd, op, message)
                .with_operands([self.shape()])
                .with_repair("no_grad(|| ..) to update it, or x.detach() to change a copy"));
        }
        Ok(())
    }

    /// Writes this result to `out`: the one form that every op, function and layer has of PyTorch's argument
    /// `out=`.
    ///
    /// The names of the result propagate to an unnamed `out`, and must equal those of a named one. `out`
    /// keeps its dtype, to which the result is cast. It must have the sizes of the result; without elements
    /// and names it takes them. Nothing is copied where the dtypes agree: `out` becomes the result.
    ///
    /// ```
    /// use namegrad_autograd::Tensor;
    /// let x = Tensor::ones([("N", 2), ("C", 3)])?;
    /// let mut out = Tensor::zeros([2])?;
    /// x.sum("C")?.write_to(&mut out)?;
    /// assert_eq!(*out.names(), ["N"]);
    /// assert!(x.sum("N")?.write_to(&mut out).is_err());
    /// # Ok::<(), namegrad_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OutNames`], [`ErrorKind::Shape`], [`ErrorKind::DType`] if the result cannot be cast, such
    /// as floats to integers, [`ErrorKind::Autograd`] if either tensor requires a gradient while ops are
    /// recorded: a tape cannot follow a result into a tensor that was there before. `out` is then as it was.
    #[track_caller]
    pub fn write_to(self, out: &mut Tensor) -> Result<&mut Tensor> {
        if is_grad_enabled() && (self.requires_grad() || out.requires_grad()) {
            let message = "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.";
            return Err(Error::new(ErrorKind::Autograd, "out", message)
                .with_operands([self.shape(), out.shape()])
                .with_repair("no_grad(|| ..), or use the result itself"));
        }
        self.value.write_to(&mut out.value)?;
        Ok(out)
    }

    /// Changes the value without the tape noticing, as an optimizer does. A leaf of which `f` changes the
    /// sizes or the dtype is a new leaf afterwards.
    ///
    /// # Errors
    /// What `f` gives.
    #[track_caller]
    pub fn update<R>(&mut self, f: impl FnOnce(&mut NamedTensor) -> Result<R>) -> Result<R> {
        let result = f(&mut self.value);
        if let Some(meta) = &self.meta
            && (meta.sizes[..] != *self.sizes() || meta.dtype != self.dtype())
        {
            self.meta = Some(Meta::leaf(&self.value));
        }
        result
    }
}

/// A gradient that fits a value, without names.
#[track_caller]
fn checked_gradient(op: &'static str, gradient: Tensor, sizes: &[usize], dtype: DType) -> Result<Tensor> {
    if gradient.sizes() != sizes {
        let message = format!(
            "Mismatch in shape: the gradient has sizes {:?} and the tensor {sizes:?}",
            gradient.sizes()
        );
        return Err(Error::new(ErrorKind::Autograd, op, message).with_operands([gradient.shape()]));
    }
    if !gradient.dtype().is_floating_point() {
        let message = format!("a gradient of {} for a tensor of {dtype}", gradient.dtype());
        return Err(Error::new(ErrorKind::Autograd, op, message));
    }
    gradient.unnamed().to(dtype)
}

/// Where a walk starts: an output and its gradient, one if none is given for a single element.
#[track_caller]
fn root(
    op: &'static str,
    output: &Tensor,
    gradient: Option<&Tensor>,
    named: bool,
) -> Result<(Arc<Meta>, Tensor)> {
    let Some(meta) = output.meta.clone() else {
        let message = "element 0 of tensors does not require grad and does not have a grad_fn";
        return Err(Error::new(ErrorKind::Autograd, op, message)
            .with_operands([output.shape()])
            .with_repair("call requires_grad_(true) on an input, outside no_grad"));
    };
    let gradient = match gradient {
        Some(gradient) => {
            let checked = checked_gradient(op, gradient.clone(), output.sizes(), output.dtype())?;
            if named {
                output.value().unified_names(op, "match", gradient.value())?;
            }
            checked
        }
        None if output.numel() == 1 => {
            Tensor::constant(NamedTensor::full_as(op, &output.shape().sizes, Scalar::Int(1), output.dtype())?)
        }
        None => {
            let message = "grad can be implicitly created only for scalar outputs";
            return Err(Error::new(ErrorKind::Autograd, op, message)
                .with_operands([output.shape()])
                .with_repair("sum or average the output first, or pass its gradient to backward_with"));
        }
    };
    Ok((meta, gradient))
}

/// The gradients of the sum of `outputs` with respect to each of `inputs`, which may be intermediates; no
/// `grad` is touched. `grad_outputs` are the gradients of the outputs, `None` standing for one.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::{grad, BackwardOptions};
/// let x = Tensor::new(3.0)?.requires_grad_(true)?;
/// let y = x.mul(&x)?.mul(&x)?;
/// let create = BackwardOptions { create_graph: true, ..Default::default() };
/// let first = grad(&[&y], &[&x], &[], create)?[0].clone().unwrap();
/// let second = grad(&[&first], &[&x], &[], BackwardOptions::default())?[0].clone().unwrap();
/// assert_eq!([first.item()?.to_f64(), second.item()?.to_f64()], [27.0, 18.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Autograd`] if an input requires no gradient, or no output depends on it and `allow_unused` is
/// not set; those of [`Tensor::backward_with`].
#[track_caller]
pub fn grad(
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
    let mut roots = Vec::with_capacity(outputs.len());
    for (number, output) in outputs.iter().enumerate() {
        roots.push(root(OP, output, grad_outputs.get(number).copied().flatten(), options.named)?);
    }
    let mut metas = Vec::with_capacity(inputs.len());
    for (number, input) in inputs.iter().enumerate() {
        match &input.meta {
            Some(meta) => metas.push(meta.clone()),
            None => {
                let message = format!("input {number} does not require a gradient");
                return Err(Error::new(ErrorKind::Autograd, OP, message).with_operands([input.shape()]));
            }
        }
    }
    let found = walk(OP, roots, Goal::Inputs(&metas), options)?;
    if let Some(number) = found.iter().position(Option::is_none)
        && !options.allow_unused
    {
        let message = format!(
            "One of the differentiated Tensors appears to not have been used in the graph: input {number}. Set allow_unused if this is the \
             desired behavior."
        );
        return Err(Error::new(ErrorKind::Autograd, OP, message).with_operands([inputs[number].shape()]));
    }
    let named = found.into_iter().zip(inputs).map(|(gradient, input)| match options.named {
        true => gradient.map(|gradient| gradient.with_names_of(input)),
        false => gradient,
    });
    Ok(named.collect())
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.meta, self.grad_fn()) {
            (_, Some(op)) => self.value.write(f, &[&format!("grad_fn=<{op}>")]),
            (Some(_), None) => self.value.write(f, &["requires_grad=True"]),
            (None, None) => self.value.write(f, &[]),
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.value)?;
        match (&self.meta, self.grad_fn()) {
            (_, Some(op)) => write!(f, " <- {op}"),
            (Some(_), None) => f.write_str(" requires grad"),
            (None, None) => Ok(()),
        }
    }
}
