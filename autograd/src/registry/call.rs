//! A call by name: its tensors and arguments, matched with the row of the op.

use super::{Caller, Given, InPlace, Op};
use crate::Tensor;
use crate::operators::Operand;
use crate::plain::{Handle, TensorOrNumber};
use crate::tape;
use namegrad_core::ops::{OpInfo, TensorInfo, TensorKind};
use namegrad_core::{Argument, DType, Error, ErrorKind, NamedTensor, Result, Value};
use std::borrow::Cow;

/// PyTorch's names of arguments, and their names here, for ops that have an argument with the second name but
/// none with the first.
const SYNONYMS: [(&str, &str); 29] = [
    ("count", "x"),
    ("x1", "x"),
    ("x2", "other"),
    ("elements", "x"),
    ("test_element", "test_elements"),
    ("indices", "indices_or_sections"),
    ("indices", "x"),
    ("sections", "indices_or_sections"),
    ("tensor_indices_or_sections", "indices_or_sections"),
    ("split_sizes", "split_size"),
    ("src", "values"),
    ("fill_value", "value"),
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
    ("UPLO", "uplo"),
    ("N", "n"),
    ("split_size_or_sections", "split_size"),
];

/// The argument that was passed for a tensor of the row.
#[derive(Clone)]
pub(super) enum Slot<'a> {
    Given(&'a Tensor),
    Made(Tensor),
    Several(Vec<&'a Tensor>),
    /// The tensor that an in-place form writes to, of which only the dtype is known.
    Written(DType),
    Nothing,
}

/// The value that was passed for an argument.
enum Passed<'a> {
    Nothing,
    Value(&'a Value),
    /// The dims of a reduction with `keepdim`, if any were passed.
    Kept(Option<Cow<'a, Value>>),
    Tensors(Vec<&'a NamedTensor>),
}

/// The argument of type `K`, unless none was passed or the value is of the wrong kind.
fn read<K: Argument>(passed: &Passed<'_>) -> Option<K> {
    match passed {
        Passed::Nothing => None,
        Passed::Value(value) => K::from_value(value),
        Passed::Kept(dims) => K::from_kept(dims.as_deref()),
        Passed::Tensors(tensors) => K::from_tensors(tensors),
    }
}

/// The type of an argument, for the checks of calls by name.
#[doc(hidden)]
pub struct Kind {
    accepts: fn(&Passed<'_>) -> bool,
    /// The values that it accepts, for errors.
    accepted: fn() -> String,
    is_required: bool,
}

impl Kind {
    /// The type `K` of an argument, which has a default unless it is required.
    pub const fn of<K: Argument>(is_required: bool) -> Kind {
        Kind { accepts: |passed| read::<K>(passed).is_some(), accepted: K::accepted, is_required }
    }
}

/// The arguments of a call, matched with the row.
pub struct Call<'a> {
    info: &'static OpInfo,
    slots: Vec<Slot<'a>>,
    /// By their names in the row.
    args: Vec<(&'a str, &'a Given<'a>)>,
    /// The values of the arguments, in the order of the row.
    passed: Vec<Passed<'a>>,
}

impl<'a> Call<'a> {
    pub(super) fn new(op: &Op, given: Vec<Slot<'a>>, args: &'a [(&'a str, Given<'a>)]) -> Result<Call<'a>> {
        let info = op.info;
        let fail = |message: String| Err(Error::new(ErrorKind::Value, info.name, message));
        let mut known: Vec<&'static str> = Vec::new();
        known.extend(info.tensors.iter().map(|tensor| tensor.name));
        known.extend(info.args.iter().map(|arg| arg.name));
        let mut named: Vec<(&'a str, &'a Given<'a>)> = Vec::with_capacity(args.len());
        for (name, value) in args {
            let name = own_name(name, &known);
            if !(known.contains(&name) || is_self(name) || name == "keepdim" && reduces(info)) {
                if reduces(info) {
                    known.push("keepdim");
                }
                return fail(format!("no argument `{name}`{}", nearest(name, &known)));
            }
            if named.iter().any(|(before, _)| *before == name) {
                return fail(format!("the argument `{name}` is given twice"));
            }
            named.push((name, value));
        }
        let args = named;
        // Tensors passed by name are placed first; the others follow in order.
        let (mut slots, mut is_named) = (Vec::with_capacity(info.tensors.len()), Vec::new());
        for (at, tensor) in info.tensors.iter().enumerate() {
            let value = args.iter().find(|(name, _)| *name == tensor.name || at == 0 && is_self(name));
            is_named.push(value.is_some());
            slots.push(match value.map(|(_, value)| value) {
                Some(Given::Tensor(tensor)) => Slot::Given(tensor),
                Some(Given::Tensors(tensors)) => Slot::Several(tensors.clone()),
                None | Some(Given::Value(Value::None)) => Slot::Nothing,
                Some(Given::Value(value)) => Slot::Made(number(info, tensor, value, &given, &args)?),
            });
        }
        let count = given.len();
        let mut given = given.into_iter();
        for (at, tensor) in info.tensors.iter().enumerate() {
            if is_named[at] {
                continue;
            }
            if tensor.kind == TensorKind::List {
                let mut all = Vec::new();
                while let Some(Slot::Given(x)) = given.next() {
                    all.push(x);
                }
                slots[at] = Slot::Several(all);
                continue;
            }
            match given.next() {
                Some(next) => slots[at] = next,
                None if tensor.kind == TensorKind::Optional => {}
                None => return fail(format!("the tensor `{}` is missing", tensor.name)),
            }
        }
        if given.next().is_some() {
            let twice = (0..info.tensors.len().min(count)).find(|at| is_named[*at]);
            return fail(match twice {
                Some(at) => format!("`{}` is given twice", info.tensors[at].name),
                None => format!("takes {}, got {count}", counted(info.tensors)),
            });
        }
        let mut call = Call { info, slots, args, passed: Vec::with_capacity(info.args.len()) };
        call.check_tensors()?;
        call.read_all(op.args)?;
        Ok(call)
    }

    /// Checks that there is a tensor wherever the op takes one.
    fn check_tensors(&self) -> Result<()> {
        for (slot, tensor) in self.slots.iter().zip(self.info.tensors) {
            let fits = match slot {
                Slot::Given(_) | Slot::Made(_) | Slot::Written(_) => true,
                Slot::Nothing => matches!(tensor.kind, TensorKind::Optional | TensorKind::List),
                Slot::Several(_) => tensor.kind == TensorKind::List,
            };
            if !fits {
                let message = format!("`{}` must be a tensor", tensor.name);
                return Err(Error::new(ErrorKind::Value, self.info.name, message));
            }
        }
        Ok(())
    }

    /// Reads the arguments of the row, whose types are `kinds`.
    fn read_all(&mut self, kinds: &[Kind]) -> Result<()> {
        for (arg, kind) in self.info.args.iter().zip(kinds) {
            let name = arg.name;
            let passed = self.passed(name)?;
            if matches!(passed, Passed::Nothing) {
                if kind.is_required {
                    let message = format!("the argument `{name}` is missing");
                    return Err(Error::new(ErrorKind::Value, self.info.name, message));
                }
            } else if !(kind.accepts)(&passed) {
                return Err(self.wrong(name, &(kind.accepted)(), self.value(name)));
            }
            self.passed.push(passed);
        }
        Ok(())
    }

    /// The results of an op.
    pub(super) fn run(&self, op: Caller) -> Result<Vec<Tensor>> {
        let made = match op {
            Caller::One(op) => op(self.tensor(0)),
            Caller::Two(op) => op(self.tensor(0), self.tensor(1)),
            Caller::Handle(op) => op(self.tensor(0), Handle::Tensor(self.tensor(1))),
            Caller::Operand(op) => op(self.tensor(0), TensorOrNumber::Tensor(self.tensor(1))),
            Caller::ByElement(op) if self.slots.len() == 1 => tape::unary(op, self.tensor(0)),
            Caller::ByElement(op) => tape::binary(op, self.tensor(0), TensorOrNumber::Tensor(self.tensor(1))),
            Caller::Read(op) => op(self),
            Caller::Several(op) => return op(self),
        };
        Ok(vec![made?])
    }

    /// Runs an in-place form.
    pub(super) fn run_in_place(&self, x: &mut Tensor, op: InPlace) -> Result<()> {
        match op {
            InPlace::One(op) => op(x),
            InPlace::Two(op) => op(x, self.tensor(1)),
            InPlace::Handle(op) => op(x, Handle::Tensor(self.tensor(1))),
            InPlace::Operand(op) => op(x, TensorOrNumber::Tensor(self.tensor(1))),
            InPlace::ByElement(op) if self.slots.len() == 1 => tape::unary_(op, x, &[], None),
            InPlace::ByElement(op) => tape::binary_(op, x, TensorOrNumber::Tensor(self.tensor(1))),
            InPlace::Read(op) => op(x, self),
        }
        .map(drop)
    }

    /// The tensor at this position in the row.
    #[doc(hidden)]
    #[inline(never)]
    pub fn tensor(&self, at: usize) -> &Tensor {
        self.optional(at).expect("`check_tensors` has seen that it is there")
    }

    /// The tensor at this position, if one was passed.
    #[doc(hidden)]
    #[inline(never)]
    pub fn optional(&self, at: usize) -> Option<&Tensor> {
        match &self.slots[at] {
            Slot::Given(x) => Some(x),
            Slot::Made(x) => Some(x),
            _ => None,
        }
    }

    /// The tensors at this position.
    #[doc(hidden)]
    #[inline(never)]
    pub fn list(&self, at: usize) -> Vec<Tensor> {
        match &self.slots[at] {
            Slot::Several(tensors) => crate::list(tensors.iter().map(|x| (*x).clone())),
            _ => crate::list(self.optional(at).into_iter().cloned()),
        }
    }

    /// The argument at this position in the row, which is required.
    #[doc(hidden)]
    #[inline(never)]
    pub fn required<K: Argument>(&self, at: usize) -> K {
        read(&self.passed[at]).expect("`read_all` has seen that it is there")
    }

    /// The argument at this position, or its default.
    #[doc(hidden)]
    #[inline(never)]
    pub fn or<K: Argument>(&self, at: usize, default: K) -> K {
        read(&self.passed[at]).unwrap_or(default)
    }

    /// Sets a field of options to the argument at this position, if it was passed.
    #[doc(hidden)]
    #[inline(never)]
    pub fn set<K: Argument>(&self, at: usize, field: &mut K) {
        if let Some(value) = read(&self.passed[at]) {
            *field = value;
        }
    }

    fn value(&self, name: &str) -> Option<&'a Given<'a>> {
        self.args.iter().find(|(given, _)| *given == name).map(|(_, value)| *value)
    }

    /// The value that was passed for an argument. It does not depend on the type of the argument, so that it
    /// is compiled once.
    fn passed(&self, name: &str) -> Result<Passed<'a>> {
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
            Some(Given::Tensors(tensors)) => Passed::Tensors(crate::list(tensors.iter().map(|x| x.value()))),
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

/// Whether PyTorch's name of an argument has another one in this row.
pub(super) fn has_synonym(info: &OpInfo, name: &str) -> bool {
    let known = |own: &str| {
        info.args.iter().any(|arg| arg.name == own) || info.tensors.iter().any(|tensor| tensor.name == own)
    };
    SYNONYMS.iter().any(|(other, own)| *other == name && known(own))
}

/// The name here of an argument that PyTorch may call `name`, for an op with the arguments `known`.
fn own_name<'a>(name: &'a str, known: &[&'static str]) -> &'a str {
    if known.contains(&name) {
        return name;
    }
    for (other, own) in SYNONYMS {
        if other == name && known.contains(&own) {
            return own;
        }
    }
    name
}

/// PyTorch's names for the tensor that a method is called on.
pub(super) fn is_self(name: &str) -> bool {
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
    let takes_two = matches!(info.tensors, [_, other] if other.kind == TensorKind::Operand);
    let allowed = tensor.kind == TensorKind::Operand || first && (info.by_element || takes_two);
    let Some(number) = number.filter(|_| allowed) else {
        let message = format!("`{}` must be a tensor, got {}", tensor.name, value.describe());
        return Err(Error::new(ErrorKind::Value, info.name, message));
    };
    let mut beside = DType::Bool;
    for slot in given {
        beside = match slot {
            Slot::Given(x) => beside.promote(x.dtype()),
            Slot::Written(dtype) => beside.promote(*dtype),
            _ => beside,
        };
    }
    for (_, value) in args {
        if let Given::Tensor(x) = value {
            beside = beside.promote(x.dtype());
        }
    }
    if info.tensors.iter().any(|tensor| tensor.exact) {
        beside = DType::F64;
    }
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
fn nearest(name: &str, known: &[&str]) -> String {
    match namegrad_core::names::closest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if known.is_empty() => String::new(),
        None if known.len() == 1 => format!("; there is {}", known[0]),
        None => {
            let mut all = String::from("; there are ");
            for (number, name) in known.iter().enumerate() {
                all.push_str(if number == 0 { "" } else { ", " });
                all.push_str(name);
            }
            all
        }
    }
}
