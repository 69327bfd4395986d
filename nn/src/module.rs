//! [`Module`], the trait of everything that holds parameters, and the walk over them by path.

use crate::state::{LoadOptions, LoadReport, StateDict};
use crate::summary::Summary;
use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::{DType, NamedTensor, Result};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A layer, a model, or a part of one: it holds parameters, buffers and other modules.
///
/// Derive it. Each field must be a module. Numbers, names and strings are modules that hold nothing;
/// `Option`, `Vec`, arrays and boxes of modules are modules. `forward` is your own method, with the arguments
/// that it needs.
///
/// ```
/// use namegrad::prelude::*;
///
/// #[derive(Module)]
/// struct Mlp {
///     hidden: Linear,
///     out: Linear,
///     dropout: Dropout,
/// }
///
/// impl Mlp {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         self.out.forward(&self.dropout.forward(&self.hidden.forward(x)?.relu()?)?)
///     }
/// }
///
/// let model = Mlp {
///     hidden: Linear::new(("pixels", 64), ("hidden", 128))?,
///     out: Linear::new(("hidden", 128), ("classes", 10))?,
///     dropout: Dropout::new(0.1)?,
/// };
/// let y = model.forward(&Tensor::rand([("N", 2), ("pixels", 64)])?)?;
/// assert_eq!(y.shape().to_string(), "[N=2, classes=10]");
/// assert_eq!(model.named_parameters()[0].0, "hidden.weight");
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a module",
    label = "not a module",
    note = "derive Module for it, or put `#[module(skip)]` on the field if it holds no parameters"
)]
pub trait Module {
    /// Shows the visitor every field: `visitor.field("weight", &self.weight)`.
    fn visit(&self, visitor: &mut Visitor<'_>);

    /// A short description of the layer for the summary: `Linear(in=64 -> out=128)`.
    fn describe(&self) -> String {
        String::new()
    }

    /// Calls `f` with the path and the place of every parameter, buffer and training flag.
    fn entries(&self, f: &mut dyn FnMut(&str, Entry<'_>))
    where
        Self: Sized,
    {
        walk(self, f);
    }

    /// The parameters with their paths, in the order of the fields. A parameter held twice is listed twice.
    fn named_parameters(&self) -> Vec<(String, Parameter)>
    where
        Self: Sized,
    {
        let mut found = Vec::new();
        walk(self, &mut |path, entry| {
            if let Entry::Parameter(parameter) = entry {
                found.push((path.to_string(), parameter.clone()));
            }
        });
        found
    }

    /// The parameters, each once, in the order of the fields: the argument of an optimizer.
    fn parameters(&self) -> Vec<Parameter>
    where
        Self: Sized,
    {
        let mut seen = HashSet::new();
        self.named_parameters()
            .into_iter()
            .map(|(_, parameter)| parameter)
            .filter(|parameter| seen.insert(parameter.id()))
            .collect()
    }

    /// The buffers with their paths.
    fn named_buffers(&self) -> Vec<(String, Buffer)>
    where
        Self: Sized,
    {
        let mut found = Vec::new();
        walk(self, &mut |path, entry| {
            if let Entry::Buffer(buffer) = entry {
                found.push((path.to_string(), buffer.clone()));
            }
        });
        found
    }

    /// Switches layers such as dropout to training.
    fn train(&self)
    where
        Self: Sized,
    {
        set_training(self, true);
    }

    /// Switches layers such as dropout to evaluation.
    fn eval(&self)
    where
        Self: Sized,
    {
        set_training(self, false);
    }

    /// Removes the gradients of all parameters.
    fn zero_grad(&self)
    where
        Self: Sized,
    {
        self.parameters().iter().for_each(Parameter::zero_grad);
    }

    /// Freezes or unfreezes all parameters.
    ///
    /// # Errors
    /// Those of [`Tensor::requires_grad_`].
    #[track_caller]
    fn set_requires_grad(&self, requires_grad: bool) -> Result<()>
    where
        Self: Sized,
    {
        for parameter in self.parameters() {
            parameter.set_requires_grad(requires_grad)?;
        }
        Ok(())
    }

    /// The number of elements of all parameters, a shared one counted once.
    fn num_parameters(&self) -> usize
    where
        Self: Sized,
    {
        self.parameters().iter().map(|parameter| parameter.tensor().numel()).sum()
    }

    /// Casts parameters and floating-point buffers.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`](namegrad_core::ErrorKind::Autograd) unless `dtype` is floating-point.
    #[track_caller]
    fn to(&self, dtype: DType) -> Result<()>
    where
        Self: Sized,
    {
        for parameter in self.parameters() {
            parameter.to_dtype(dtype)?;
        }
        for (_, buffer) in self.named_buffers() {
            if buffer.value().dtype().is_floating_point() {
                buffer.set(buffer.value().to(dtype)?);
            }
        }
        Ok(())
    }

    /// The values of all parameters and buffers by path, as they are now.
    fn state_dict(&self) -> StateDict
    where
        Self: Sized,
    {
        StateDict::of(self)
    }

    /// Loads the values of `state`, which must have exactly the paths of this module, with the same names and
    /// sizes. Otherwise nothing changes.
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) with all paths that are missing, unexpected or
    /// of other dims.
    #[track_caller]
    fn load_state_dict(&self, state: &StateDict) -> Result<()>
    where
        Self: Sized,
    {
        self.load_state_dict_with(state, LoadOptions::default()).map(drop)
    }

    /// Loads the values of `state` that fit, as the options say, and reports the others.
    ///
    /// # Errors
    /// Those of [`load_state_dict`](Self::load_state_dict), unless the options allow the misfit.
    #[track_caller]
    fn load_state_dict_with(&self, state: &StateDict, options: LoadOptions) -> Result<LoadReport>
    where
        Self: Sized,
    {
        state.load_into(self, options)
    }

    /// The tree of layers with their parameters, dims by name, and counts.
    fn summary(&self) -> Summary
    where
        Self: Sized,
    {
        Summary::of(self)
    }
}

/// Calls `f` for everything that `module` holds.
pub(crate) fn walk(module: &dyn Module, f: &mut dyn FnMut(&str, Entry<'_>)) {
    module.visit(&mut Visitor { path: String::new(), f });
}

fn set_training(module: &dyn Module, training: bool) {
    walk(module, &mut |_, entry| {
        if let Entry::Training(flag) = entry {
            flag.set(training);
        }
    });
}

/// What a module can hold besides other modules.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Entry<'a> {
    /// A parameter.
    Parameter(&'a Parameter),
    /// A buffer.
    Buffer(&'a Buffer),
    /// The flag for training or evaluation.
    Training(&'a Training),
    /// A module with its description. Its parts follow, with longer paths.
    Module(&'a dyn Module),
}

/// Walks through the fields of modules and tracks the path.
pub struct Visitor<'v> {
    path: String,
    f: &'v mut dyn FnMut(&str, Entry<'_>),
}

impl Visitor<'_> {
    /// Visits a field.
    pub fn field(&mut self, name: &str, module: &dyn Module) {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        (self.f)(&self.path, Entry::Module(module));
        module.visit(self);
        self.path.truncate(length);
    }

    /// Visits the place at the current path.
    pub fn entry(&mut self, entry: Entry<'_>) {
        (self.f)(&self.path, entry);
    }
}

impl Module for Parameter {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.entry(Entry::Parameter(self));
    }
}

/// A tensor that a layer keeps and saves but does not learn, such as a running mean. Clones share the same
/// value.
#[derive(Clone)]
pub struct Buffer(Arc<RwLock<NamedTensor>>);

impl Buffer {
    /// A buffer with this value.
    pub fn new(value: NamedTensor) -> Buffer {
        Buffer(Arc::new(RwLock::new(value)))
    }

    /// The current value.
    pub fn value(&self) -> NamedTensor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The current value as a tensor that requires no gradient.
    pub fn tensor(&self) -> Tensor {
        Tensor::constant(self.value())
    }

    /// Replaces the value.
    pub fn set(&self, value: NamedTensor) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer {:?}", self.value())
    }
}

impl Module for Buffer {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.entry(Entry::Buffer(self));
    }
}

/// Whether a layer is being trained; `train` and `eval` of the model set it. A new layer is in training.
#[derive(Debug)]
pub struct Training(AtomicBool);

impl Training {
    /// In training.
    pub fn new() -> Training {
        Training(AtomicBool::new(true))
    }

    /// Whether the layer is being trained.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Switches.
    pub fn set(&self, training: bool) {
        self.0.store(training, Ordering::Relaxed);
    }
}

impl Default for Training {
    fn default() -> Training {
        Training::new()
    }
}

impl Module for Training {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.entry(Entry::Training(self));
    }
}

impl<M: Module + ?Sized> Module for Box<M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        (**self).visit(visitor);
    }
    fn describe(&self) -> String {
        (**self).describe()
    }
}

impl<M: Module + ?Sized> Module for Arc<M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        (**self).visit(visitor);
    }
    fn describe(&self) -> String {
        (**self).describe()
    }
}

impl<M: Module> Module for Option<M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        if let Some(module) = self {
            module.visit(visitor);
        }
    }
    fn describe(&self) -> String {
        self.as_ref().map(M::describe).unwrap_or_default()
    }
}

impl<M: Module> Module for [M] {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.iter().enumerate().for_each(|(index, module)| visitor.field(&index.to_string(), module));
    }
}

impl<M: Module> Module for Vec<M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.as_slice().visit(visitor);
    }
}

impl<M: Module, const K: usize> Module for [M; K] {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.as_slice().visit(visitor);
    }
}

impl<M: Module> Module for BTreeMap<String, M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.iter().for_each(|(name, module)| visitor.field(name, module));
    }
}

/// Types of fields without parameters.
macro_rules! plain {
    ($($ty:ty),* $(,)?) => {$(
        impl Module for $ty { fn visit(&self, _: &mut Visitor<'_>) {} }
    )*};
}
plain!(
    bool,
    char,
    u8,
    u16,
    u32,
    u64,
    usize,
    i8,
    i16,
    i32,
    i64,
    isize,
    f32,
    f64,
    String,
    &'static str,
    (),
    namegrad_core::Name,
    namegrad_core::Shape,
    namegrad_core::Dim,
    namegrad_core::DType,
);

impl<T> Module for std::marker::PhantomData<T> {
    fn visit(&self, _: &mut Visitor<'_>) {}
}
