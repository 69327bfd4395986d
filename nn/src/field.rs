//! [`Field`], the trait of the fields of modules, the types that have it, and the [`Visitor`] that walks
//! through them.

use crate::dims::Named;
use crate::dims::sequences::Seq;
use crate::parametrize::Parametrized;
use crate::places::AnyModule;
use crate::{Buffer, ModuleFields, ModulePath, Synchronized, Training};
use namegrad_autograd::Parameter;
use namegrad_core::args::{Extents, Factors, Windows};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;

/// A type that can be a field of a [`Module`](crate::Module): a parameter, a buffer, a flag, another module,
/// a list of these, or plain data.
///
/// Every module is a field. So are [`Parameter`], [`Buffer`], [`Training`], [`Synchronized`],
/// [`ModulePath`](crate::ModulePath), numbers, strings, [`DType`](namegrad_core::DType), dims, their names,
/// sizes and shapes, and `Option`, `Vec`, arrays and `BTreeMap<String, _>` of fields. For a field of another
/// type, use `#[module(skip)]` or implement this trait.
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
    note = "add #[derive(Module)] to your own type, or put `#[module(skip)]` on a field that holds no parameters",
    note = "a tensor is held as a `Parameter`, which is trained, or a `Buffer`, which is not; a map is a `BTreeMap`"
)]
pub trait Field {
    /// Shows the content of the field to the visitor.
    fn visit(&self, visitor: &mut Visitor<'_>);
}

#[diagnostic::do_not_recommend]
impl<M: ModuleFields + ?Sized> Field for M {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.module(&self);
    }
}

/// The description of a module, which is created when it is printed.
impl fmt::Display for dyn AnyModule + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// An item that [`Module::entries`](crate::Module::entries) finds.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Entry<'a> {
    /// A parameter.
    Parameter(&'a Parameter),
    /// A buffer.
    Buffer(&'a Buffer),
    /// The flag for training or evaluation mode.
    Training(&'a Training),
    /// How a batch normalization adds up sums over processes.
    Synchronized(&'a Synchronized),
    /// A module, given by its [description](ModuleFields::describe). Its parts follow, with longer paths.
    Module(&'a dyn fmt::Display),
    /// A parameter that is [computed](crate::parametrize) from others, which follow.
    Computed(&'a Parameter),
    /// The path that a layer knows.
    Path(&'a ModulePath),
}

/// Walks through the fields of modules and keeps track of the path. [`Field`] has an example.
pub struct Visitor<'v> {
    pub(crate) path: String,
    f: &'v mut dyn FnMut(&str, Entry<'_>),
}

impl<'v> Visitor<'v> {
    pub(crate) fn new(f: &'v mut dyn FnMut(&str, Entry<'_>)) -> Visitor<'v> {
        Visitor { path: String::new(), f }
    }

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

    /// Visits fields with their names. A field without a name is [flattened](crate::Module): its own fields
    /// take its place.
    pub fn fields(&mut self, fields: &[(&str, &dyn Field)]) {
        for (name, field) in fields {
            if name.is_empty() { field.visit(self) } else { self.field(name, *field) }
        }
    }

    #[inline(never)]
    fn module(&mut self, module: &dyn AnyModule) {
        self.entry(Entry::Module(&module));
        module.show(self);
    }

    #[inline(never)]
    fn item(&mut self, index: usize, field: &dyn Field) {
        self.field(&index.to_string(), field);
    }

    /// Reports an item at the current path.
    pub fn entry(&mut self, entry: Entry<'_>) {
        (self.f)(&self.path, entry);
    }
}

impl Field for Parameter {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        let Some(computed) = self.computed() else { return visitor.entry(Entry::Parameter(self)) };
        visitor.entry(Entry::Computed(self));
        let computed: &dyn Any = &*computed;
        if let Some(parametrized) = computed.downcast_ref::<Parametrized>() {
            parametrized.parts(visitor);
        }
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
        self.iter().enumerate().for_each(|(index, field)| visitor.item(index, field));
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

// Types of fields without parameters.
namegrad_core::for_types!(
    bool, char, u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64, String, &'static str, (),
    namegrad_core::Name, namegrad_core::Shape, namegrad_core::Dim, namegrad_core::Dims, namegrad_core::DType,
    Extents, Factors, Windows, Named, Seq => Plain {
        impl Field for Plain {
            fn visit(&self, _: &mut Visitor<'_>) {}
        }
    }
);

impl<T> Field for std::marker::PhantomData<T> {
    fn visit(&self, _: &mut Visitor<'_>) {}
}
