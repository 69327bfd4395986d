//! Finding, describing and calling ops by name, with named arguments.
//!
//! Each table of ops adds its entries, and [`all`] returns all of them. The arguments of a call are checked
//! against the row of the op before it runs. Unknown, missing, extra and wrong arguments are errors that name
//! the op and suggest a similar name. [`Call`] matches them with the row.

mod call;

use crate::Tensor;
use crate::plain::{Handle, TensorOrNumber};
use namegrad_core::ops::OpInfo;
use namegrad_core::{DType, Error, ErrorKind, Result, Value};
use std::borrow::Cow;

#[doc(hidden)]
pub use crate::rules::refuse;
#[doc(hidden)]
pub use crate::tape::ByElement;
pub use call::Call;
#[doc(hidden)]
pub use call::Kind;
use call::{Slot, is_self};

/// An op: facts about it, and how to call it by name.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::ops;
/// let x = Tensor::new([[0.0, 0.0], [1.0, 3.0]])?.refine_names(["row", "class"])?;
/// let softmax = ops::find("softmax")?;
/// assert_eq!(softmax.info.args[0].name, "dim");
/// let p = softmax.call(&[&x], &[("dim", "class".into())])?;
/// assert!(p[0].equal(&x.softmax("class")?)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Op {
    /// The facts in its row.
    pub info: &'static OpInfo,
    /// The flow of gradients through the op.
    pub gradients: Gradients,
    #[doc(hidden)]
    pub args: &'static [Kind],
    #[doc(hidden)]
    pub call: Caller,
    #[doc(hidden)]
    pub call_in_place: Option<InPlace>,
}

/// The function that runs an op for a call by name. Most ops are functions of one or two tensors.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Caller {
    One(fn(&Tensor) -> Result<Tensor>),
    Two(fn(&Tensor, &Tensor) -> Result<Tensor>),
    Handle(fn(&Tensor, Handle<'_>) -> Result<Tensor>),
    Operand(fn(&Tensor, TensorOrNumber<'_>) -> Result<Tensor>),
    /// An elementwise op of one or two tensors.
    ByElement(&'static ByElement),
    Read(fn(&Call<'_>) -> Result<Tensor>),
    Several(fn(&Call<'_>) -> Result<Vec<Tensor>>),
}

/// The function that runs an in-place form.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum InPlace {
    One(fn(&mut Tensor) -> Result<&mut Tensor>),
    Two(for<'x> fn(&'x mut Tensor, &Tensor) -> Result<&'x mut Tensor>),
    Handle(for<'x> fn(&'x mut Tensor, Handle<'_>) -> Result<&'x mut Tensor>),
    Operand(for<'x> fn(&'x mut Tensor, TensorOrNumber<'_>) -> Result<&'x mut Tensor>),
    ByElement(&'static ByElement),
    Read(for<'x> fn(&'x mut Tensor, &Call<'_>) -> Result<&'x mut Tensor>),
}

/// The flow of gradients through an op.
#[derive(Clone, Copy, Debug)]
pub enum Gradients {
    /// The inputs and their gradients as formulas, with the names in the op's row.
    Formulas(&'static [(&'static str, &'static str)]),
    /// A function records it.
    Recorded,
    /// The op is composed of other ops, which have gradients.
    Composed,
    /// The result cannot have a gradient, because it is `bool` or an index.
    Constant,
    /// There is no gradient: the op is an error for a tensor that requires one.
    Refused,
}

/// A tensor or another value that is passed to an op.
#[derive(Clone, Debug)]
pub enum Given<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// Several tensors.
    Tensors(Vec<&'a Tensor>),
    /// Any other value.
    Value(Value),
}

impl<'a> From<&'a Tensor> for Given<'a> {
    fn from(tensor: &'a Tensor) -> Given<'a> {
        Given::Tensor(tensor)
    }
}

impl<'a> From<Vec<&'a Tensor>> for Given<'a> {
    fn from(tensors: Vec<&'a Tensor>) -> Given<'a> {
        Given::Tensors(tensors)
    }
}

impl From<&str> for Given<'_> {
    fn from(value: &str) -> Self {
        Given::Value(value.into())
    }
}

impl From<Value> for Given<'_> {
    fn from(value: Value) -> Self {
        Given::Value(value)
    }
}

impl<T: Into<Value>, const K: usize> From<[T; K]> for Given<'_> {
    fn from(values: [T; K]) -> Self {
        Given::Value(values.into())
    }
}

namegrad_core::for_types!(bool, i32, i64, usize, f32, f64, String, DType => Plain {
    impl From<Plain> for Given<'_> {
        fn from(value: Plain) -> Self {
            Given::Value(value.into())
        }
    }
});

impl Op {
    /// Calls the op with its tensors in order and with named arguments. A tensor can also be passed by name,
    /// or be a number if the op takes one. Arguments that are left out have their defaults.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for an argument that is unknown, missing, passed twice or of the wrong kind; the
    /// errors of the op.
    #[track_caller]
    pub fn call(&self, tensors: &[&Tensor], args: &[(&str, Given<'_>)]) -> Result<Vec<Tensor>> {
        let caller = std::panic::Location::caller(); // function pointers do not get it
        let (op, args) = self.variant(tensors.len().saturating_sub(1), args);
        let mut given = Vec::with_capacity(tensors.len());
        for x in tensors {
            given.push(Slot::Given(x));
        }
        let called = Call::new(op, given, &args).and_then(|call| call.run(op.call));
        called.map_err(|error| error.at(caller))
    }

    /// Calls the in-place form on `x`, with the other tensors in order and with named arguments.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if there is no in-place form; the errors of [`call`](Self::call).
    #[track_caller]
    pub fn call_in_place(
        &self,
        x: &mut Tensor,
        others: &[&Tensor],
        args: &[(&str, Given<'_>)],
    ) -> Result<()> {
        let caller = std::panic::Location::caller();
        let (op, args) = self.variant(others.len(), args);
        let Some(in_place) = op.call_in_place else {
            let message = "the op has no in-place form";
            return Err(Error::new(ErrorKind::Unsupported, op.info.name, message));
        };
        let mut given = vec![Slot::Written(x.dtype())];
        for other in others {
            given.push(Slot::Given(other));
        }
        let called = Call::new(op, given, &args).and_then(|call| call.run_in_place(x, in_place));
        called.map_err(|error| error.at(caller))
    }

    /// The op for these arguments, if one op in PyTorch is several ops here, and the arguments that are not
    /// `None`.
    fn variant<'a, 'b>(
        &self,
        others: usize,
        args: &'b [(&'a str, Given<'a>)],
    ) -> (&Op, Cow<'b, [(&'a str, Given<'a>)]>) {
        if let Some(form) = self.form(others, args) {
            return form;
        }
        if others > 0 || !VARIANTS.iter().any(|(name, ..)| *name == self.info.name) {
            return (self, Cow::Borrowed(args));
        }
        let mut said = Vec::with_capacity(args.len());
        for (name, value) in args {
            if !matches!(value, Given::Value(Value::None)) {
                said.push((*name, value.clone()));
            }
        }
        let mut names = said.iter().map(|(name, _)| *name).filter(|name| !is_self(name));
        if let (Some(only), None) = (names.next(), names.next()) {
            for (_, _, own) in
                VARIANTS.iter().filter(|(name, arg, _)| *name == self.info.name && *arg == only)
            {
                if let Some(op) = all().find(|op| op.info.name == *own) {
                    return (op, Cow::Owned(said));
                }
            }
        }
        (self, Cow::Borrowed(args))
    }
}

impl Op {
    /// The op for an argument that makes this one another op, without arguments that change nothing here.
    fn form<'a, 'b>(&self, others: usize, args: &'b [(&'a str, Given<'a>)]) -> Option<(&Op, Args<'a, 'b>)> {
        let name = self.info.name;
        if name == "choose" && others == 0 && args.iter().all(|(name, _)| *name == "condition") {
            return Some((all().find(|op| op.info.name == "nonzero_numpy")?, Cow::Borrowed(args)));
        }
        if !args.iter().any(|(arg, _)| takes(name, arg)) {
            return None;
        }
        let (mut op, mut said) = (self, Vec::with_capacity(args.len()));
        for (arg, value) in args {
            let text = match value {
                Given::Value(Value::Text(text)) => text.as_str(),
                Given::Value(Value::Bool(true)) => "true",
                Given::Value(Value::None | Value::Bool(false)) => "",
                _ => "any",
            };
            let fits = |wanted: &str| wanted == text || wanted == "any" && !text.is_empty();
            let form = FORMS.iter().find(|form| form.0 == name && form.1 == *arg && fits(form.2));
            match form {
                Some((_, _, _, own, instead)) => {
                    op = all().find(|op| op.info.name == *own)?;
                    said.extend((*instead == "dim").then(|| (*arg, value.clone())));
                    said.extend((*instead == "prod").then(|| (*arg, Given::from("prod"))));
                }
                None if takes(name, arg) => {}
                None => said.push((*arg, value.clone())),
            }
        }
        Some((op, Cow::Owned(said)))
    }
}

type Args<'a, 'b> = Cow<'b, [(&'a str, Given<'a>)]>;

/// Whether a call by name takes this argument beside those of the row: under another name, as one that makes it
/// another op, or as one that changes nothing here.
#[doc(hidden)]
pub fn knows(info: &OpInfo, arg: &str) -> bool {
    takes(info.name, arg) || call::has_synonym(info, arg)
}

/// Whether the argument makes this op another one, or changes nothing.
fn takes(op: &str, arg: &str) -> bool {
    FORMS.iter().any(|form| form.0 == op && form.1 == arg) || IDLE.contains(&(op, arg))
}

/// Calls in PyTorch that are separate ops here: PyTorch's name, the argument and its value, the op, and what it
/// gets in place of the argument.
const FORMS: [(&str, &str, &str, &str, &str); 6] = [
    ("div", "rounding_mode", "floor", "floor_divide", ""),
    ("div", "rounding_mode", "trunc", "trunc_divide", ""),
    ("nonzero", "as_tuple", "true", "nonzero_numpy", ""),
    ("scatter", "reduce", "add", "scatter_add", ""),
    ("scatter", "reduce", "multiply", "scatter_reduce", "prod"),
    ("unique", "dim", "any", "unique_dim", "dim"),
];

/// Arguments in PyTorch that change nothing here: sorting is stable, picked elements are always sorted, and all
/// outputs are returned.
const IDLE: [(&str, &str); 9] = [
    ("argsort", "stable"),
    ("isin", "assume_unique"),
    ("sort", "stable"),
    ("topk", "sorted"),
    ("unique", "return_counts"),
    ("unique", "return_inverse"),
    ("unique", "sorted"),
    ("unique_consecutive", "return_counts"),
    ("unique_consecutive", "return_inverse"),
];

/// Calls in PyTorch that are separate ops here: PyTorch's name, the only argument that is passed, and the op.
const VARIANTS: [(&str, &str, &str); 2] = [("clamp", "min", "clamp_min"), ("clamp", "max", "clamp_max")];

/// Every op of tensors that has a row.
pub fn all() -> impl Iterator<Item = &'static Op> {
    crate::rules::OPS.iter().chain(crate::composed::OPS.iter()).flat_map(|table| table.iter().copied())
}
