//! [`Module`], the trait of layers and models, the walks over their parameters by path, and [`ModuleFields`],
//! which a module must implement. `field.rs` has the fields of modules, `copy.rs` deep copies, `call.rs`
//! functional calls, and `parametrize` computed parameters.

use crate::pattern::Pattern;
use crate::places::{AnyModule, named_buffers, named_parameters, parameters, walk};
use crate::state::{LoadOptions, LoadReport, StateDict};
use crate::summary::Summary;
use crate::{Buffer, Entry, Layer, Visitor};
use namegrad_autograd::Parameter;
use namegrad_core::{DType, Device, Error, ErrorKind, NamedTensor, Result, on_device};
use std::fmt;
use std::sync::Arc;

/// A layer or a model, whose parameters, buffers and layers have paths such as `blocks.0.weight`.
///
/// Derive it. Every field must be a [`Field`](crate::Field): a parameter, a buffer, another module, an
/// `Option`, a `Vec` or an array of these, or plain data such as a number or a string. `forward` is your own
/// method, with whatever arguments it needs; also implement [`Layer`](crate::Layer) if the module is to be
/// part of a [`Sequential`](crate::Sequential).
///
/// The derive macro also implements [`Display`](fmt::Display), so `println!("{model}")` prints the
/// [`summary`](Self::summary).
///
/// # Attributes of the derive macro
/// - `#[module(skip)]` on a field: the field is ignored, so its type need not be a [`Field`](crate::Field)
/// - `#[module(flatten)]` on a field: the name of the field is left out of paths
/// - `#[module(name = "weight_g")]` on a field: its name in paths
/// - `#[module(describe = path)]` on the struct: the [description](ModuleFields::describe) is `path(&self)`, or
///   another expression, instead of the name of the struct
/// - `#[module(layer)]` on the struct: implements [`Layer`](crate::Layer) with your method
///   `forward(&self, x: &Tensor) -> Result<Tensor>`; `#[module(layer(x, target))]` for several tensors
/// - `#[module(get(weight, bias))]` on the struct: methods that return references to these fields, with the
///   docs of the fields
/// - `#[module(no_display)]` on the struct: you implement `Display` yourself
/// - `#[module(debug)]` on the struct: implements `Debug`, with the text of `Display`
/// - `#[module(crate = path)]` on the struct: the path of this trait's module if it is not `::namegrad::nn`
///
/// # Examples
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
/// assert!(model.to_string().contains("hidden.weight"));
/// # Ok::<(), Error>(())
/// ```
///
/// A field with a method of its own:
/// ```
/// use namegrad::prelude::*;
///
/// #[derive(Module)]
/// #[module(get(scale), debug)]
/// pub struct Scaled {
///     /// A factor for each channel.
///     scale: Option<Parameter>,
/// }
///
/// let layer = Scaled { scale: Some(Parameter::new(Tensor::ones([("C", 3)])?)?) };
/// assert_eq!(layer.scale().map(|scale| scale.shape().to_string()), Some("[C=3]".into()));
/// assert_eq!(format!("{layer:?}"), layer.to_string());
/// # Ok::<(), Error>(())
/// ```
pub trait Module: ModuleFields {
    /// Calls `f` with every parameter, buffer, training flag and module in this module, and its path.
    ///
    /// ```
    /// use namegrad::nn::Entry;
    /// use namegrad::prelude::*;
    /// let model = Sequential::new().then(Dropout::new(0.1)?).then(Relu);
    /// let mut layers = Vec::new();
    /// model.entries(&mut |path, entry| {
    ///     if let Entry::Module(description) = entry {
    ///         layers.push(format!("{path}: {description}"));
    ///     }
    /// });
    /// assert_eq!(layers, ["0: Dropout(p=0.1)", "1: Relu"]);
    /// # Ok::<(), Error>(())
    /// ```
    fn entries(&self, f: &mut dyn FnMut(&str, Entry<'_>)) {
        walk(&self, f);
    }

    /// The parameters with their paths, in the order of the fields. A parameter that occurs twice is listed
    /// twice.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let layer = Linear::new(("in", 3), ("out", 2))?;
    /// let paths: Vec<String> = layer.named_parameters().into_iter().map(|(path, _)| path).collect();
    /// assert_eq!(paths, ["weight", "bias"]);
    /// # Ok::<(), Error>(())
    /// ```
    fn named_parameters(&self) -> Vec<(String, Parameter)> {
        named_parameters(&self)
    }

    /// The parameters in the order of the fields, each only once. Pass them to an optimizer.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let layer = Linear::new(("in", 3), ("out", 2))?;
    /// let optimizer = Sgd::builder(layer.parameters()).lr(0.1).build()?;
    /// assert_eq!(optimizer.parameters().len(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    fn parameters(&self) -> Vec<Parameter> {
        parameters(&self)
    }

    /// The buffers with their paths, in the order of the fields.
    ///
    /// [`Buffer`] has an example.
    fn named_buffers(&self) -> Vec<(String, Buffer)> {
        named_buffers(&self)
    }

    /// Switches layers such as dropout to training mode.
    ///
    /// [`Training`](crate::Training) has an example.
    fn train(&self) {
        set_training(&self, true);
    }

    /// Switches layers such as dropout to evaluation mode.
    ///
    /// [`Training`](crate::Training) has an example.
    fn eval(&self) {
        set_training(&self, false);
    }

    /// Removes the gradients of all parameters.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let layer = Linear::new(("in", 3), ("out", 2))?;
    /// layer.forward(&Tensor::ones([("in", 3)])?)?.sum("out")?.backward()?;
    /// assert!(layer.weight().grad().is_some());
    /// layer.zero_grad();
    /// assert!(layer.weight().grad().is_none());
    /// # Ok::<(), Error>(())
    /// ```
    fn zero_grad(&self) {
        parameters(&self).iter().for_each(Parameter::zero_grad);
    }

    /// Freezes (`false`) or unfreezes (`true`) all parameters.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let layer = Linear::new(("in", 3), ("out", 2))?;
    /// layer.set_requires_grad(false)?;
    /// assert!(!layer.forward(&Tensor::ones([("in", 3)])?)?.requires_grad());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`Parameter::set_requires_grad`].
    #[track_caller]
    fn set_requires_grad(&self, requires_grad: bool) -> Result<()> {
        for parameter in self.parameters() {
            parameter.set_requires_grad(requires_grad)?;
        }
        Ok(())
    }

    /// The parameters whose paths match a pattern, with their paths.
    ///
    /// In a pattern, `*` is any text without a dot, `**` any text, and `?` one character other than a dot. A
    /// pattern that matches the path of a layer means all parameters in it: `blocks.*.norm` for
    /// `blocks.0.norm.weight`, `blocks.0.norm.bias`, ...
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let model = Sequential::new()
    ///     .then_named("hidden", Linear::new(("in", 3), ("h", 4))?)
    ///     .then_named("head", Linear::new(("h", 4), ("out", 2))?);
    /// // The biases learn at another rate.
    /// let weights = model.matching("*.weight")?.into_iter().map(|(_, parameter)| parameter);
    /// let biases = model.matching("*.bias")?.into_iter().map(|(_, parameter)| parameter);
    /// let optimizer = Sgd::builder(weights).lr(0.1).group(biases, |sgd| sgd.lr = 0.2).build()?;
    /// assert_eq!(optimizer.parameters().len(), 4);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the pattern matches no parameter; the error lists similar paths.
    #[track_caller]
    fn matching(&self, pattern: &str) -> Result<Vec<(String, Parameter)>> {
        matching("matching", &self, pattern)
    }

    /// Freezes the parameters that match a [pattern](Self::matching), and returns their paths. A frozen
    /// parameter gets no gradient, and optimizers leave it as it is.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let model = Sequential::new()
    ///     .then_named("hidden", Linear::new(("in", 3), ("h", 4))?)
    ///     .then_named("head", Linear::new(("h", 4), ("out", 2))?);
    /// assert_eq!(model.freeze("hidden")?, ["hidden.weight", "hidden.bias"]);
    /// let error = model.freeze("haed.*").unwrap_err();
    /// assert!(error.to_string().contains("head.weight"));
    /// model.unfreeze("**")?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`matching`](Self::matching); then nothing has changed.
    #[track_caller]
    fn freeze(&self, pattern: &str) -> Result<Vec<String>> {
        set_frozen("freeze", &self, pattern, true)
    }

    /// Unfreezes the parameters that match a [pattern](Self::matching), and returns their paths.
    ///
    /// # Errors
    /// Same as [`freeze`](Self::freeze).
    #[track_caller]
    fn unfreeze(&self, pattern: &str) -> Result<Vec<String>> {
        set_frozen("unfreeze", &self, pattern, false)
    }

    /// An independent copy, with the same values, flags and ties between parameters, and without gradients. A
    /// clone, by contrast, has the same parameters and buffers.
    ///
    /// The module and its fields implement `Clone`, usually by `#[derive(Clone)]`. Values are shared until
    /// one of the copies changes, so this takes no memory at first.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// #[derive(Clone, Module)]
    /// struct Model {
    ///     hidden: Linear,
    ///     out: Linear,
    /// }
    /// let model = Model { hidden: Linear::new(("x", 2), ("h", 3))?, out: Linear::new(("h", 3), ("y", 1))? };
    /// let average = model.deep_copy()?;
    /// model.out.weight().update(|weight| weight.mul_(0.0).map(drop))?;
    /// assert_ne!(average.out.weight().tensor(), model.out.weight().tensor());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if a parameter or buffer of the copy is not independent, because it is
    /// behind an `Arc`, or in a boxed layer that does not implement `Clone`. The error lists them.
    #[track_caller]
    fn deep_copy(&self) -> Result<Self>
    where
        Self: Clone,
    {
        crate::copy::deep_copy(self)
    }

    /// The number of elements of all parameters. A shared parameter counts once.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// assert_eq!(Linear::new(("in", 3), ("out", 2))?.num_parameters(), 3 * 2 + 2);
    /// # Ok::<(), Error>(())
    /// ```
    fn num_parameters(&self) -> usize {
        self.parameters().iter().map(|parameter| parameter.tensor().numel()).sum()
    }

    /// Casts the parameters and the floating-point buffers.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let layer = Linear::new(("in", 3), ("out", 2))?;
    /// layer.to(DType::F64)?;
    /// assert_eq!(layer.weight().tensor().dtype(), DType::F64);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] unless `dtype` is floating-point.
    #[track_caller]
    fn to(&self, dtype: DType) -> Result<()> {
        cast(&self, dtype)
    }

    /// Moves all parameters and buffers to a device, see
    /// [`Tensor::to_device`](namegrad_autograd::Tensor::to_device). Accumulated gradients are removed.
    ///
    /// A model is made without memory in [`on_device`](namegrad_core::on_device). Values for it come from a
    /// state: [`load_state_dict`](Self::load_state_dict) puts them in place of those on the meta device.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let real = Linear::new(("in", 3), ("out", 2))?;
    /// let model = on_device(Device::Meta, || Linear::new(("in", 3), ("out", 2)))?;
    /// model.load_state_dict(&real.state_dict())?;
    /// assert_eq!(model.weight().tensor(), real.weight().tensor());
    /// real.to_device(Device::Meta)?;
    /// assert_eq!(real.weight().device(), Device::Meta);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] from the meta device to another one, where there are no values to move.
    #[track_caller]
    fn to_device(&self, device: Device) -> Result<()> {
        move_to(&self, device)
    }

    /// Gives all parameters and buffers zeros on a device in place of their values: room for those of a model
    /// that was made on the meta device, to be filled by hand. Accumulated gradients are removed.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let model = on_device(Device::Meta, || Linear::new(("in", 3), ("out", 2)))?;
    /// model.to_empty(Device::Cpu)?;
    /// assert_eq!(model.weight().tensor(), Tensor::zeros([("out", 2), ("in", 3)])?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a device that this build does not have; [`ErrorKind::OutOfMemory`].
    #[track_caller]
    fn to_empty(&self, device: Device) -> Result<()> {
        empty_on(&self, device)
    }

    /// The values of all parameters and buffers by path, as they are now.
    ///
    /// [`StateDict`] has an example.
    fn state_dict(&self) -> StateDict {
        StateDict::of(&self)
    }

    /// Loads the values of `state`, which must have exactly the paths of this module, with the same names and
    /// sizes. After an error, nothing has changed.
    ///
    /// [`StateDict`] has an example.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] with all paths that are missing, unexpected or have other dims.
    #[track_caller]
    fn load_state_dict(&self, state: &StateDict) -> Result<()> {
        state.load_into(&self, LoadOptions::default()).map(drop)
    }

    /// Loads the values of `state` that fit according to the options, and reports the others.
    ///
    /// [`LoadOptions`] has an example.
    ///
    /// # Errors
    /// Same as [`load_state_dict`](Self::load_state_dict), except for mismatches that the options allow.
    #[track_caller]
    fn load_state_dict_with(&self, state: &StateDict, options: LoadOptions) -> Result<LoadReport> {
        state.load_into(&self, options)
    }

    /// The tree of layers with their parameters, dims by name, and counts.
    ///
    /// [`Summary`] has an example.
    fn summary(&self) -> Summary {
        Summary::of(self.describe(), &self, None)
    }

    /// The [`summary`](Self::summary) with what `forward` does: for each layer the shape of its output and
    /// the number of multiply-adds. The parameters and buffers stay as they are, and nothing is recorded for
    /// a backward pass.
    ///
    /// [`LayerSummary`](crate::LayerSummary) says what is counted.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let model = Sequential::new().then(Linear::new(("in", 3), ("h", 4))?).then(Relu);
    /// let x = Tensor::ones([("N", 2), ("in", 3)])?;
    /// let summary = model.summary_of(|| model.forward(&x))?;
    /// assert_eq!(summary.multiply_adds(), 2 * 3 * 4);
    /// let linear = &summary.layers()[1];
    /// assert_eq!((linear.path.as_str(), linear.parameters), ("0", 3 * 4 + 4));
    /// assert_eq!(linear.output.as_ref().unwrap().to_string(), "[N=2, h=4]");
    /// println!("{summary}");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `forward`.
    #[track_caller]
    fn summary_of<R>(&self, forward: impl FnOnce() -> Result<R>) -> Result<Summary>
    where
        Self: Sized,
    {
        let mut forward = Some(forward);
        let mut run = || forward.take().map_or(Ok(()), |forward| forward().map(drop));
        Summary::of_run(self.describe(), &self, &mut run)
    }
}

impl<M: ModuleFields + ?Sized> Module for M {}

/// The fields of a module and its text: what `#[derive(Module)]` implements. Every type that has it is a
/// [`Module`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a module",
    label = "not a module",
    note = "add #[derive(Module)] to it"
)]
pub trait ModuleFields: fmt::Display {
    /// Shows every field to the visitor: `visitor.field("weight", &self.weight)`.
    fn fields(&self, visitor: &mut Visitor<'_>);

    /// A short description for the summary, such as `Linear(in=64 -> out=128)`. By default, the derive macro
    /// uses the name of the struct.
    fn describe(&self) -> String;

    /// A clone in a box, if the module implements `Clone` and is a layer from tensor to tensor: what a
    /// [`Sequential`](crate::Sequential) copies. The derive macro implements this.
    fn clone_in_box(&self) -> Option<Box<dyn Layer>> {
        None
    }
}

fn set_training(module: &dyn AnyModule, training: bool) {
    walk(module, &mut |_, entry| {
        if let Entry::Training(flag) = entry {
            flag.set(training);
        }
    });
}

#[track_caller]
fn matching(op: &'static str, module: &dyn AnyModule, pattern: &str) -> Result<Vec<(String, Parameter)>> {
    let (all, pattern) = (named_parameters(module), Pattern::new(pattern));
    let found: Vec<_> = crate::list(all.iter().filter(|(path, _)| pattern.covers(path)).cloned());
    if found.is_empty() {
        return Err(pattern.unmatched(op, "parameter", &mut all.iter().map(|(path, _)| path.as_str())));
    }
    Ok(found)
}

#[track_caller]
fn set_frozen(op: &'static str, module: &dyn AnyModule, pattern: &str, frozen: bool) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for (path, parameter) in matching(op, module, pattern)? {
        parameter.set_requires_grad(!frozen)?;
        paths.push(path);
    }
    Ok(paths)
}

#[track_caller]
fn move_to(module: &dyn AnyModule, device: Device) -> Result<()> {
    for parameter in parameters(module) {
        parameter.to_device(device)?;
    }
    for (_, buffer) in named_buffers(module) {
        buffer.to_device(device)?;
    }
    Ok(())
}

#[track_caller]
fn empty_on(module: &dyn AnyModule, device: Device) -> Result<()> {
    let empty = |x: &NamedTensor| {
        on_device(device, || NamedTensor::full_as("to_empty", x.shape(), 0.into(), x.dtype()))
    };
    for parameter in parameters(module) {
        parameter.zero_grad();
        parameter.update(|own| empty(own).map(|zeros| *own = zeros))?;
    }
    for (_, buffer) in named_buffers(module) {
        match device {
            Device::Meta => buffer.to_device(device)?,
            _ => buffer.set(empty(&buffer.value())?)?,
        }
    }
    Ok(())
}

#[track_caller]
fn cast(module: &dyn AnyModule, dtype: DType) -> Result<()> {
    Error::ensure(dtype.is_floating_point(), ErrorKind::Autograd, "to", || {
        format!("the parameters of a module are floating-point; they cannot be cast to {dtype}")
    })?;
    for parameter in parameters(module) {
        parameter.to_dtype(dtype)?;
    }
    for (_, buffer) in named_buffers(module) {
        if buffer.value().dtype().is_floating_point() {
            buffer.to_dtype(dtype)?;
        }
    }
    Ok(())
}

impl<M: ModuleFields + ?Sized> ModuleFields for Box<M> {
    fn fields(&self, visitor: &mut Visitor<'_>) {
        (**self).fields(visitor);
    }
    fn describe(&self) -> String {
        (**self).describe()
    }
    fn clone_in_box(&self) -> Option<Box<dyn Layer>> {
        (**self).clone_in_box()
    }
}

impl<M: ModuleFields + ?Sized> ModuleFields for Arc<M> {
    fn fields(&self, visitor: &mut Visitor<'_>) {
        (**self).fields(visitor);
    }
    fn describe(&self) -> String {
        (**self).describe()
    }
    fn clone_in_box(&self) -> Option<Box<dyn Layer>> {
        (**self).clone_in_box()
    }
}
