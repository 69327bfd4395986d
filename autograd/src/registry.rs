//! Finding, describing and calling ops by name, with named arguments.
//!
//! Each table of ops adds its entries, and [`all`] returns all of them. The arguments of a call are checked
//! against the row of the op before it runs. Unknown, missing, extra and wrong arguments are errors that name
//! the op and suggest a similar name.

use crate::Tensor;
use crate::operators::Operand;
use crate::plain::{Handle, TensorOrNumber};
use namegrad_core::ops::{OpInfo, TensorInfo, TensorKind};
use namegrad_core::{Argument, DType, Error, ErrorKind, NamedTensor, Result, Value};
use std::borrow::Cow;

#[doc(hidden)]
pub use crate::rules::refuse;

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
    Any(fn(&Call<'_>) -> Result<Vec<Tensor>>),
}

/// The function that runs an in-place form.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum InPlace {
    One(fn(&mut Tensor) -> Result<&mut Tensor>),
    Two(for<'x> fn(&'x mut Tensor, &Tensor) -> Result<&'x mut Tensor>),
    Handle(for<'x> fn(&'x mut Tensor, Handle<'_>) -> Result<&'x mut Tensor>),
    Operand(for<'x> fn(&'x mut Tensor, TensorOrNumber<'_>) -> Result<&'x mut Tensor>),
    Any(fn(&mut Tensor, &Call<'_>) -> Result<()>),
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

/// Values that can be passed as an argument. `i64` becomes
///
/// ```ignore
/// impl From<i64> for Given<'_> {
///     fn from(value: i64) -> Self { Given::Value(value.into()) }
/// }
/// ```
macro_rules! values {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Given<'_> {
            fn from(value: $ty) -> Self {
                Given::Value(value.into())
            }
        }
    )*};
}
values!(bool, i32, i64, usize, f32, f64, &str, String, DType);

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
        let given = tensors.iter().map(|x| Slot::Given(x)).collect();
        let called = Call::new(op.info, given, &args).and_then(|call| call.run(op.call));
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
        let written = Slot::Written(x.dtype());
        let given = [written].into_iter().chain(others.iter().map(|x| Slot::Given(x))).collect();
        let called = Call::new(op.info, given, &args).and_then(|call| call.run_in_place(x, in_place));
        called.map_err(|error| error.at(caller))
    }

    /// The op for these arguments, if one op in PyTorch is several ops here, and the arguments that are not
    /// `None`.
    fn variant<'a, 'b>(
        &self,
        others: usize,
        args: &'b [(&'a str, Given<'a>)],
    ) -> (&Op, Cow<'b, [(&'a str, Given<'a>)]>) {
        let of_this_name = || VARIANTS.iter().filter(|(name, ..)| *name == self.info.name);
        if others > 0 || of_this_name().next().is_none() {
            return (self, Cow::Borrowed(args));
        }
        let said: Vec<_> =
            args.iter().filter(|(_, value)| !matches!(value, Given::Value(Value::None))).cloned().collect();
        let names: Vec<&str> = said.iter().map(|(name, _)| *name).filter(|name| !is_self(name)).collect();
        let own = of_this_name().find(|(_, only, _)| names == [*only]);
        match own.and_then(|(.., own)| all().find(|op| op.info.name == *own)) {
            Some(op) => (op, Cow::Owned(said)),
            None => (self, Cow::Borrowed(args)),
        }
    }
}

/// Calls in PyTorch that are separate ops here: PyTorch's name, the only argument that is passed, and the op.
const VARIANTS: [(&str, &str, &str); 2] = [("clamp", "min", "clamp_min"), ("clamp", "max", "clamp_max")];

/// PyTorch's names of arguments, and their names here, for ops that have an argument with the second name but
/// none with the first.
const SYNONYMS: [(&str, &str); 15] = [
    ("src", "source"),
    ("value", "source"),
    ("mat1", "a"),
    ("mat2", "b"),
    ("batch1", "a"),
    ("batch2", "b"),
    ("vec1", "a"),
    ("vec2", "b"),
    ("mat", "a"),
    ("vec", "b"),
    ("tensor1", "a"),
    ("tensor2", "b"),
    ("vec2", "other"),
    ("mat2", "other"),
    ("split_size_or_sections", "split_size"),
];

/// Every op of tensors that has a row.
pub fn all() -> impl Iterator<Item = &'static Op> {
    crate::rules::OPS.iter().chain(crate::composed::OPS.iter()).flat_map(|table| table.iter().copied())
}

/// The argument that was passed for a tensor of the row.
#[derive(Clone)]
enum Slot<'a> {
    Given(&'a Tensor),
    Made(Tensor),
    Several(Vec<&'a Tensor>),
    /// The tensor that an in-place form writes to, of which only the dtype is known.
    Written(DType),
    Nothing,
}

/// The value that was passed for an argument.
#[doc(hidden)]
pub enum Passed<'c> {
    Nothing,
    Value(&'c Value),
    /// The dims of a reduction with `keepdim`, if any were passed.
    Kept(Option<Cow<'c, Value>>),
    Tensors(Vec<&'c NamedTensor>),
}

/// A place for the value of an argument.
#[doc(hidden)]
pub trait Readable {
    /// Reads the value. Returns false if it is of the wrong kind.
    fn read(&mut self, passed: &Passed<'_>) -> bool;

    /// A description of the values that are accepted, for errors.
    fn accepted(&self) -> String;

    /// Whether it has no value, not even a default.
    fn is_missing(&self) -> bool {
        false
    }
}

/// A field of options, which has its default.
impl<K: Argument> Readable for K {
    fn read(&mut self, passed: &Passed<'_>) -> bool {
        let value = match passed {
            Passed::Nothing => return true,
            Passed::Value(value) => K::from_value(value),
            Passed::Kept(dims) => K::from_kept(dims.as_deref()),
            Passed::Tensors(tensors) => K::from_tensors(tensors),
        };
        let is_right = value.is_some();
        if let Some(value) = value {
            *self = value;
        }
        is_right
    }

    fn accepted(&self) -> String {
        K::accepted()
    }
}

/// An argument that is not an option, with its default if calls by name have one.
#[doc(hidden)]
pub struct Asked<K>(pub Option<K>);

impl<K> Asked<K> {
    /// The value, after it was read.
    pub fn take(&mut self) -> K {
        self.0.take().expect("`read` has checked that it is there")
    }
}

impl<K: Argument> Readable for Asked<K> {
    fn read(&mut self, passed: &Passed<'_>) -> bool {
        self.0 = match passed {
            Passed::Nothing => return true,
            Passed::Value(value) => K::from_value(value),
            Passed::Kept(dims) => K::from_kept(dims.as_deref()),
            Passed::Tensors(tensors) => K::from_tensors(tensors),
        };
        self.0.is_some()
    }

    fn accepted(&self) -> String {
        K::accepted()
    }

    fn is_missing(&self) -> bool {
        self.0.is_none()
    }
}

/// The results of an op that has one.
#[doc(hidden)]
pub fn one(result: Result<Tensor>) -> Result<Vec<Tensor>> {
    result.map(|made| vec![made])
}

/// The arguments of a call, matched with the row.
pub struct Call<'a> {
    info: &'static OpInfo,
    slots: Vec<Slot<'a>>,
    /// By their names in the row.
    args: Vec<(&'a str, &'a Given<'a>)>,
}

impl<'a> Call<'a> {
    fn new(
        info: &'static OpInfo,
        given: Vec<Slot<'a>>,
        args: &'a [(&'a str, Given<'a>)],
    ) -> Result<Call<'a>> {
        let fail = |message: String| Err(Error::new(ErrorKind::Value, info.name, message));
        let names =
            || info.tensors.iter().map(|tensor| tensor.name).chain(info.args.iter().map(|arg| arg.name));
        let own = |name: &'a str| {
            let has = |name: &str| names().any(|known| known == name);
            let synonym = SYNONYMS.iter().find(|(other, own)| *other == name && !has(name) && has(own));
            synonym.map_or(name, |(_, own)| own)
        };
        let args: Vec<(&str, &Given<'_>)> = args.iter().map(|(name, value)| (own(name), value)).collect();
        for (number, (name, _)) in args.iter().enumerate() {
            let known =
                names().any(|known| known == *name) || is_self(name) || *name == "keepdim" && reduces(info);
            if !known {
                let known = names().chain(reduces(info).then_some("keepdim"));
                return fail(format!("no argument `{name}`{}", nearest(name, known)));
            }
            if args[..number].iter().any(|(before, _)| before == name) {
                return fail(format!("the argument `{name}` is given twice"));
            }
        }
        let mut slots = vec![Slot::Nothing; info.tensors.len()];
        // Tensors passed by name are placed first; the others follow in order.
        for (at, tensor) in info.tensors.iter().enumerate() {
            let own = |name: &str| name == tensor.name || at == 0 && is_self(name) && given.is_empty();
            let first = |name: &str| at == 0 && is_self(name);
            let Some((_, value)) = args.iter().find(|(name, _)| own(name) || first(name)) else { continue };
            slots[at] = match value {
                Given::Tensor(tensor) => Slot::Given(tensor),
                Given::Tensors(tensors) => Slot::Several(tensors.clone()),
                Given::Value(Value::None) => Slot::Nothing,
                Given::Value(value) => Slot::Made(number(info, tensor, value, &given, &args)?),
            };
        }
        let named = |tensor: &TensorInfo| {
            args.iter()
                .any(|(name, _)| *name == tensor.name || is_self(name) && tensor.name == info.tensors[0].name)
        };
        let count = given.len();
        let mut given = given.into_iter();
        for (slot, tensor) in slots.iter_mut().zip(info.tensors).filter(|(_, tensor)| !named(tensor)) {
            if tensor.kind == TensorKind::List {
                let all =
                    given.by_ref().filter_map(|slot| if let Slot::Given(x) = slot { Some(x) } else { None });
                *slot = Slot::Several(all.collect());
                continue;
            }
            match given.next() {
                Some(next) => *slot = next,
                None if tensor.kind == TensorKind::Optional => {}
                None => return fail(format!("the tensor `{}` is missing", tensor.name)),
            }
        }
        if given.next().is_some() {
            let twice = info.tensors.iter().take(count).find(|tensor| named(tensor));
            return fail(match twice {
                Some(tensor) => format!("`{}` is given twice", tensor.name),
                None => format!("takes {}, got {count}", counted(info.tensors)),
            });
        }
        Ok(Call { info, slots, args })
    }

    /// The tensor at this position in the row.
    #[doc(hidden)]
    pub fn tensor(&self, at: usize) -> Result<&Tensor> {
        match &self.slots[at] {
            Slot::Given(x) => Ok(x),
            Slot::Made(x) => Ok(x),
            _ => {
                let message = format!("`{}` must be a tensor", self.info.tensors[at].name);
                Err(Error::new(ErrorKind::Value, self.info.name, message))
            }
        }
    }

    /// The results of an op.
    fn run(&self, op: Caller) -> Result<Vec<Tensor>> {
        one(match op {
            Caller::One(op) => op(self.tensor(0)?),
            Caller::Two(op) => op(self.tensor(0)?, self.tensor(1)?),
            Caller::Handle(op) => op(self.tensor(0)?, Handle::Tensor(self.tensor(1)?)),
            Caller::Operand(op) => op(self.tensor(0)?, TensorOrNumber::Tensor(self.tensor(1)?)),
            Caller::Any(op) => return op(self),
        })
    }

    /// Runs an in-place form.
    fn run_in_place(&self, x: &mut Tensor, op: InPlace) -> Result<()> {
        match op {
            InPlace::One(op) => op(x),
            InPlace::Two(op) => op(x, self.tensor(1)?),
            InPlace::Handle(op) => op(x, Handle::Tensor(self.tensor(1)?)),
            InPlace::Operand(op) => op(x, TensorOrNumber::Tensor(self.tensor(1)?)),
            InPlace::Any(op) => return op(x, self),
        }
        .map(drop)
    }

    /// The tensor at this position, if one was passed.
    #[doc(hidden)]
    pub fn optional(&self, at: usize) -> Result<Option<&Tensor>> {
        match &self.slots[at] {
            Slot::Nothing => Ok(None),
            _ => self.tensor(at).map(Some),
        }
    }

    /// The tensors at this position.
    #[doc(hidden)]
    pub fn list(&self, at: usize) -> Vec<Tensor> {
        match &self.slots[at] {
            Slot::Several(tensors) => tensors.iter().map(|x| (*x).clone()).collect(),
            _ => self.tensor(at).into_iter().cloned().collect(),
        }
    }

    /// Reads arguments, given by their names and the places for their values. A place keeps its value if the
    /// argument was not passed.
    #[doc(hidden)]
    pub fn read(&self, args: &mut [(&'static str, &mut dyn Readable)]) -> Result<()> {
        for (name, place) in args {
            let passed = self.passed(name)?;
            if let Passed::Nothing = passed {
                if place.is_missing() {
                    let message = format!("the argument `{name}` is missing");
                    return Err(Error::new(ErrorKind::Value, self.info.name, message));
                }
            } else if !place.read(&passed) {
                return Err(self.wrong(name, &place.accepted(), self.value(name)));
            }
        }
        Ok(())
    }

    fn value(&self, name: &str) -> Option<&Given<'a>> {
        self.args.iter().find(|(given, _)| *given == name).map(|(_, value)| *value)
    }

    /// The value that was passed for an argument. It does not depend on the type of the argument, so that it
    /// is compiled once.
    fn passed(&self, name: &str) -> Result<Passed<'_>> {
        let keepdim = match self.value("keepdim") {
            Some(Given::Value(Value::Bool(keepdim))) => *keepdim,
            Some(Given::Value(Value::None)) | None => false,
            Some(_) => {
                return Err(self.wrong("keepdim", &<bool as Argument>::accepted(), self.value("keepdim")));
            }
        };
        let arg = self.info.args.iter().find(|arg| arg.name == name);
        let keeps = keepdim && arg.is_some_and(|arg| arg.ty == "Reduced");
        Ok(match self.value(name) {
            None | Some(Given::Value(Value::None)) if keeps => {
                let default = arg.and_then(|arg| arg.default);
                let dim = default.and_then(|dim| dim.parse().ok()).map(Value::Int); // `..` is not a number
                Passed::Kept(dim.map(Cow::Owned))
            }
            None | Some(Given::Value(Value::None)) => Passed::Nothing,
            Some(Given::Value(value)) if keeps => Passed::Kept(Some(Cow::Borrowed(value))),
            Some(Given::Value(value)) => Passed::Value(value),
            Some(Given::Tensor(tensor)) => Passed::Tensors(vec![tensor.value()]),
            Some(Given::Tensors(tensors)) => Passed::Tensors(tensors.iter().map(|x| x.value()).collect()),
        })
    }

    fn wrong(&self, name: &str, accepted: &str, value: Option<&Given<'_>>) -> Error {
        let got = match value {
            Some(Given::Tensor(_)) => "a tensor".to_string(),
            Some(Given::Tensors(_)) => "tensors".to_string(),
            Some(Given::Value(value)) => value.describe(),
            None => "nothing".to_string(),
        };
        Error::new(ErrorKind::Value, self.info.name, format!("`{name}` must be {accepted}, got {got}"))
    }
}

/// PyTorch's names for the tensor that a method is called on.
fn is_self(name: &str) -> bool {
    name == "self" || name == "input"
}

fn reduces(info: &OpInfo) -> bool {
    info.args.iter().any(|arg| arg.ty == "Reduced")
}

/// A number that was passed in place of a tensor, as an operand for the widest of the other tensors.
#[track_caller]
fn number(
    info: &OpInfo,
    tensor: &TensorInfo,
    value: &Value,
    given: &[Slot<'_>],
    args: &[(&str, &Given<'_>)],
) -> Result<Tensor> {
    let first = info.tensors.first().is_some_and(|first| first.name == tensor.name);
    let number = match value {
        Value::Bool(value) => Some((*value).into()),
        Value::Int(value) => Some((*value).into()),
        Value::Float(value) => Some((*value).into()),
        _ => None,
    };
    let allowed = tensor.kind == TensorKind::Operand || first && info.by_element;
    let Some(number) = number.filter(|_| allowed) else {
        let message = format!("`{}` must be a tensor, got {}", tensor.name, value.describe());
        return Err(Error::new(ErrorKind::Value, info.name, message));
    };
    let positional = given.iter().filter_map(|slot| match slot {
        Slot::Given(x) => Some(x.dtype()),
        Slot::Written(dtype) => Some(*dtype),
        _ => None,
    });
    let named = args
        .iter()
        .filter_map(|(_, value)| if let Given::Tensor(x) = value { Some(x.dtype()) } else { None });
    let beside = match tensor.exact {
        true => DType::F64,
        false => positional.chain(named).fold(DType::Bool, DType::promote),
    };
    let number: namegrad_core::Scalar = number;
    Ok(number.operand_beside(beside)?.into_owned())
}

/// `2 tensors`, or `1 or 2 tensors` if some are optional.
fn counted(tensors: &[TensorInfo]) -> String {
    let most = tensors.len();
    let least = most - tensors.iter().filter(|tensor| tensor.kind == TensorKind::Optional).count();
    let plural = if most == 1 { "" } else { "s" };
    match most - least {
        0 => format!("{most} tensor{plural}"),
        1 => format!("{least} or {most} tensor{plural}"),
        _ => format!("{least} to {most} tensor{plural}"),
    }
}

/// `; did you mean `x`?` if there is a similar name, otherwise a list of all names.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    match namegrad_core::names::closest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if known.is_empty() => String::new(),
        None if known.len() == 1 => format!("; there is {}", known[0]),
        None => format!("; there are {}", known.join(", ")),
    }
}
