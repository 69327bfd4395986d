//! [`Module`], the trait of layers and models, [`Field`], the trait of their fields, and the walk over
//! parameters by path.

use crate::buffer::Buffer;
use crate::state::{LoadOptions, LoadReport, StateDict};
use crate::summary::Summary;
use crate::training::Training;
use namegrad_autograd::Parameter;
use namegrad_core::{DType, Error, ErrorKind, Result};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// A layer or a model, whose parameters, buffers and layers have paths such as `blocks.0.weight`.
///
/// Derive it. Every field must be a [`Field`]: a parameter, a buffer, another module, an `Option`, a `Vec` or
/// an array of these, or plain data such as a number or a string. `forward` is your own method, with whatever
/// arguments it needs; also implement [`Layer`](crate::Layer) if the module is to be part of a
/// [`Sequential`](crate::Sequential).
///
/// The derive macro also implements [`Display`](fmt::Display), so `println!("{model}")` prints the
/// [`summary`](Self::summary).
///
/// # Attributes of the derive macro
/// - `#[module(skip)]` on a field: the field is ignored, so its type need not be a [`Field`]
/// - `#[module(flatten)]` on a field: the name of the field is left out of paths
/// - `#[module(describe = path)]` on the struct: the [description](Self::describe) is `path(&self)` instead
///   of the name of the struct
/// - `#[module(no_display)]` on the struct: you implement `Display` yourself
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a module",
    label = "not a module",
    note = "add #[derive(Module)] to it"
)]
pub trait Module: fmt::Display {
    /// Shows every field to the visitor: `visitor.field("weight", &self.weight)`. The derive macro implements
    /// this.
    fn fields(&self, visitor: &mut Visitor<'_>);

    /// A short description for the summary, such as `Linear(in=64 -> out=128)`. By default, the derive macro
    /// uses the name of the struct.
    fn describe(&self) -> String;

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
        walk(&|visitor| self.fields(visitor), f);
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
        named_parameters(&|visitor| self.fields(visitor))
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
        parameters(&|visitor| self.fields(visitor))
    }

    /// The buffers with their paths, in the order of the fields.
    ///
    /// [`Buffer`] has an example.
    fn named_buffers(&self) -> Vec<(String, Buffer)> {
        named_buffers(&|visitor| self.fields(visitor))
    }

    /// Switches layers such as dropout to training mode.
    ///
    /// [`Training`] has an example.
    fn train(&self) {
        set_training(&|visitor| self.fields(visitor), true);
    }

    /// Switches layers such as dropout to evaluation mode.
    ///
    /// [`Training`] has an example.
    fn eval(&self) {
        set_training(&|visitor| self.fields(visitor), false);
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
        self.parameters().iter().for_each(Parameter::zero_grad);
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
        cast(&|visitor| self.fields(visitor), dtype)
    }

    /// The values of all parameters and buffers by path, as they are now.
    ///
    /// [`StateDict`] has an example.
    fn state_dict(&self) -> StateDict {
        StateDict::of(&|visitor| self.fields(visitor))
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
        state.load_into(&|visitor| self.fields(visitor), LoadOptions::default()).map(drop)
    }

    /// Loads the values of `state` that fit according to the options, and reports the others.
    ///
    /// [`LoadOptions`] has an example.
    ///
    /// # Errors
    /// Same as [`load_state_dict`](Self::load_state_dict), except for mismatches that the options allow.
    #[track_caller]
    fn load_state_dict_with(&self, state: &StateDict, options: LoadOptions) -> Result<LoadReport> {
        state.load_into(&|visitor| self.fields(visitor), options)
    }

    /// The tree of layers with their parameters, dims by name, and counts.
    ///
    /// [`Summary`] has an example.
    fn summary(&self) -> Summary {
        Summary::of(self.describe(), &|visitor| self.fields(visitor))
    }
}

/// A type that can be a field of a [`Module`]: a parameter, a buffer, a flag, another module, a list of
/// these, or plain data.
///
/// Every module is a field. So are [`Parameter`], [`Buffer`], [`Training`],
/// [`ModulePath`](crate::ModulePath), numbers, strings, [`DType`], names and shapes of dims, and `Option`,
/// `Vec`, arrays and `BTreeMap<String, _>` of fields. For a field of another type, use `#[module(skip)]` or
/// implement this trait.
///
/// # Examples
/// ```
/// use namegrad::nn::{Field, Visitor};
/// use namegrad::prelude::*;
///
/// enum Norm {
///     Scale(Parameter),
///     Off,
/// }
///
/// impl Field for Norm {
///     fn visit(&self, visitor: &mut Visitor<'_>) {
///         if let Norm::Scale(scale) = self {
///             visitor.field("scale", scale);
///         }
///     }
/// }
///
/// #[derive(Module)]
/// struct Block {
///     linear: Linear,
///     norm: Norm,
///     other: Norm,
///     eps: f64,
/// }
///
/// let block = Block {
///     linear: Linear::builder(("in", 3), ("out", 2)).bias(false).build()?,
///     norm: Norm::Scale(Parameter::new(Tensor::ones([("out", 2)])?)?),
///     other: Norm::Off,
///     eps: 1e-5,
/// };
/// let paths: Vec<String> = block.named_parameters().into_iter().map(|(path, _)| path).collect();
/// assert_eq!(paths, ["linear.weight", "norm.scale"]);
/// # assert_eq!(block.eps, 1e-5);
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a module",
    label = "neither a module nor plain data",
    note = "add #[derive(Module)] to your own type, or put `#[module(skip)]` on a field that holds no parameters"
)]
pub trait Field {
    /// Shows the content of the field to the visitor.
    fn visit(&self, visitor: &mut Visitor<'_>);
}

impl<M: Module + ?Sized> Field for M {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.entry(Entry::Module(&Description(self)));
        self.fields(visitor);
    }
}

/// The description of a module, which is created when it is printed.
struct Description<'m, M: ?Sized>(&'m M);

impl<M: Module + ?Sized> fmt::Display for Description<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.describe())
    }
}

/// A function that shows the fields of a module to a visitor.
pub(crate) type Fields<'m> = &'m dyn Fn(&mut Visitor<'_>);

/// Calls `f` for everything in a module.
pub(crate) fn walk(fields: Fields<'_>, f: &mut dyn FnMut(&str, Entry<'_>)) {
    fields(&mut Visitor { path: String::new(), f });
}

fn named_parameters(fields: Fields<'_>) -> Vec<(String, Parameter)> {
    let mut found = Vec::new();
    walk(fields, &mut |path, entry| {
        if let Entry::Parameter(parameter) = entry {
            found.push((path.to_string(), parameter.clone()));
        }
    });
    found
}

fn parameters(fields: Fields<'_>) -> Vec<Parameter> {
    let mut seen = HashSet::new();
    named_parameters(fields)
        .into_iter()
        .map(|(_, parameter)| parameter)
        .filter(|parameter| seen.insert(parameter.id()))
        .collect()
}

fn named_buffers(fields: Fields<'_>) -> Vec<(String, Buffer)> {
    let mut found = Vec::new();
    walk(fields, &mut |path, entry| {
        if let Entry::Buffer(buffer) = entry {
            found.push((path.to_string(), buffer.clone()));
        }
    });
    found
}

fn set_training(fields: Fields<'_>, training: bool) {
    walk(fields, &mut |_, entry| {
        if let Entry::Training(flag) = entry {
            flag.set(training);
        }
    });
}

#[track_caller]
fn cast(fields: Fields<'_>, dtype: DType) -> Result<()> {
    if !dtype.is_floating_point() {
        let message =
            format!("the parameters of a module are floating-point; they cannot be cast to {dtype}");
        return Err(Error::new(ErrorKind::Autograd, "to", message));
    }
    for parameter in parameters(fields) {
        parameter.to_dtype(dtype)?;
    }
    for (_, buffer) in named_buffers(fields) {
        if buffer.value().dtype().is_floating_point() {
            buffer.to_dtype(dtype)?;
        }
    }
    Ok(())
}

/// An item that [`Module::entries`] finds.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Entry<'a> {
    /// A parameter.
    Parameter(&'a Parameter),
    /// A buffer.
    Buffer(&'a Buffer),
    /// The flag for training or evaluation mode.
    Training(&'a Training),
    /// A module, given by its [description](Module::describe). Its parts follow, with longer paths.
    Module(&'a dyn fmt::Display),
}

/// Walks through the fields of modules and keeps track of the path. [`Field`] has an example.
pub struct Visitor<'v> {
    pub(crate) path: String,
    f: &'v mut dyn FnMut(&str, Entry<'_>),
}

impl Visitor<'_> {
    /// Visits a field, whose name becomes the next segment of the path.
    pub fn field(&mut self, name: &str, field: &dyn Field) {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        field.visit(self);
        self.path.truncate(length);
    }

    /// Reports an item at the current path.
    pub fn entry(&mut self, entry: Entry<'_>) {
        (self.f)(&self.path, entry);
    }
}

impl Field for Parameter {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.entry(Entry::Parameter(self));
    }
}

impl<M: Module + ?Sized> Module for Box<M> {
    fn fields(&self, visitor: &mut Visitor<'_>) {
        (**self).fields(visitor);
    }
    fn describe(&self) -> String {
        (**self).describe()
    }
}

impl<M: Module + ?Sized> Module for Arc<M> {
    fn fields(&self, visitor: &mut Visitor<'_>) {
        (**self).fields(visitor);
    }
    fn describe(&self) -> String {
        (**self).describe()
    }
}

impl<F: Field> Field for Option<F> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        if let Some(field) = self {
            field.visit(visitor);
        }
    }
}

impl<F: Field> Field for [F] {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.iter().enumerate().for_each(|(index, field)| visitor.field(&index.to_string(), field));
    }
}

impl<F: Field> Field for Vec<F> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.as_slice().visit(visitor);
    }
}

impl<F: Field, const K: usize> Field for [F; K] {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.as_slice().visit(visitor);
    }
}

impl<F: Field> Field for BTreeMap<String, F> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.iter().for_each(|(name, field)| visitor.field(name, field));
    }
}

/// Types of fields without parameters. `bool` becomes
///
/// ```ignore
/// impl Field for bool { fn visit(&self, _: &mut Visitor<'_>) {} }
/// ```
macro_rules! plain {
    ($($ty:ty),* $(,)?) => {$(
        impl Field for $ty { fn visit(&self, _: &mut Visitor<'_>) {} }
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

impl<T> Field for std::marker::PhantomData<T> {
    fn visit(&self, _: &mut Visitor<'_>) {}
}
