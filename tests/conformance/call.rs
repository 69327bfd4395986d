//! A call of an op, with methods that read its tensors and arguments.

use crate::case::scalar;
use namegrad::autograd::{Op, Operand};
use namegrad::core::args::OpenShape;
use namegrad::core::{Dim, Dims, IntoShape, Scalar};
use namegrad::prelude::*;
use serde_json::{Map, Value as Json};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// A result: a tensor or another value.
#[derive(Clone)]
pub(crate) enum Value {
    Tensor(Tensor),
    Plain(Json),
}

/// The reason why a call has no result.
pub(crate) enum Stop {
    /// The library returned an error.
    Error(Error),
    /// The library, or the row of the table, does not have this form of the call.
    NotImplemented(String),
    /// A mistake that does not compile in Rust.
    Unwritable(&'static str),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Error(error)
    }
}

pub(crate) type Answer<T> = std::result::Result<T, Stop>;

/// The result of a form that does not exist.
pub(crate) fn missing<T>(what: impl Into<String>) -> Answer<T> {
    Err(Stop::NotImplemented(what.into()))
}

/// The result of a call that does not compile.
pub(crate) fn unwritable<T>(why: &'static str) -> Answer<T> {
    Err(Stop::Unwritable(why))
}

/// A result of a row: one tensor, several, or a plain value.
pub(crate) trait IntoOutputs {
    fn outputs(self) -> Vec<Value>;
}

impl IntoOutputs for Tensor {
    fn outputs(self) -> Vec<Value> {
        vec![Value::Tensor(self)]
    }
}
impl IntoOutputs for Vec<Tensor> {
    fn outputs(self) -> Vec<Value> {
        self.into_iter().map(Value::Tensor).collect()
    }
}
impl IntoOutputs for Json {
    fn outputs(self) -> Vec<Value> {
        vec![Value::Plain(self)]
    }
}
impl IntoOutputs for Vec<Value> {
    fn outputs(self) -> Vec<Value> {
        self
    }
}

/// A call. An argument that the row does not read makes the form count as not implemented, so no row can pass
/// by ignoring one.
pub(crate) struct Call<'a> {
    args: &'a Map<String, Json>,
    inputs: Vec<Option<Tensor>>,
    positional: Vec<usize>,
    read: RefCell<BTreeSet<&'a str>>,
    /// The widest dtype of the inputs, by which the dtype of numbers is chosen.
    pub(crate) beside: DType,
    /// The tensors of `out=`, to which the results are written.
    outs: Vec<Tensor>,
    /// The tensors that the op wrote to, as they are after the call.
    pub(crate) after: Vec<Tensor>,
    /// Parameters of a layer, each with the input whose value it has and whose gradient it gets.
    pub(crate) parameters: Vec<(usize, Tensor)>,
}

/// The inputs that arguments refer to with `{"input": k}`, also in lists.
fn named_inputs(value: &Json, into: &mut Vec<usize>) {
    match value {
        Json::Array(list) => list.iter().for_each(|value| named_inputs(value, into)),
        Json::Object(map) => {
            into.extend(map.get("input").and_then(Json::as_u64).map(|k| k as usize));
            let list = map.get("inputs").and_then(Json::as_array).into_iter().flatten();
            into.extend(list.filter_map(Json::as_u64).map(|k| k as usize));
        }
        _ => {}
    }
}

impl<'a> Call<'a> {
    pub(crate) fn new(args: &'a Map<String, Json>, mut inputs: Vec<Tensor>) -> Call<'a> {
        let outs = args.get("out").and_then(Json::as_u64).unwrap_or(0) as usize;
        let outs = inputs.split_off(inputs.len() - outs);
        let mut by_keyword = Vec::new();
        args.values().for_each(|value| named_inputs(value, &mut by_keyword));
        let positional = (0..inputs.len()).filter(|k| !by_keyword.contains(k)).collect();
        let beside = inputs.iter().map(Tensor::dtype).fold(DType::Bool, DType::promote);
        let inputs = inputs.into_iter().map(Some).collect();
        let there = args.iter().find(|(key, value)| *key == "device" && *value == "cpu");
        Call {
            beside,
            args,
            inputs,
            positional,
            read: RefCell::new(there.into_iter().map(|(key, _)| key.as_str()).collect()),
            outs,
            after: Vec::new(),
            parameters: Vec::new(),
        }
    }

    /// Writes the results to the tensors of `out=`, if there are any.
    pub(crate) fn write_out(&mut self, outputs: Vec<Value>) -> Answer<Vec<Value>> {
        if self.arg("out").is_none() {
            return Ok(outputs);
        }
        for (value, out) in outputs.into_iter().zip(&mut self.outs) {
            let Value::Tensor(result) = value else { return missing("`out` of a plain value") };
            result.write_to(out)?;
        }
        self.after = self.outs.clone();
        Ok(self.outs.iter().cloned().map(Value::Tensor).collect())
    }

    /// The arguments that have not been read yet.
    pub(crate) fn unread(&self) -> Vec<&'a str> {
        let read = self.read.borrow();
        self.args.keys().map(String::as_str).filter(|key| !read.contains(key)).collect()
    }

    /// Makes positional tensors of lists of integers under these keywords.
    pub(crate) fn lists_as_tensors(&mut self, keys: &[&str]) -> Answer<()> {
        for key in keys.iter().filter(|key| self.args.get(**key).is_some_and(Json::is_array)) {
            let list: Vec<i64> = self.ints(key)?.into_iter().map(|number| number as i64).collect();
            self.positional.push(self.inputs.len());
            self.inputs.push(Some(Tensor::from_slice(&list, [list.len()])?));
        }
        Ok(())
    }

    /// The number of positional tensors.
    pub(crate) fn count(&self) -> usize {
        self.positional.len()
    }

    /// The positional tensor `k`.
    pub(crate) fn x(&self, k: usize) -> Answer<&Tensor> {
        let tensor = self.positional.get(k).and_then(|k| self.inputs[*k].as_ref());
        tensor.map_or_else(|| missing(format!("a form without tensor {k}")), Ok)
    }

    /// All positional tensors.
    pub(crate) fn xs(&self) -> Answer<Vec<&Tensor>> {
        (0..self.count()).map(|k| self.x(k)).collect()
    }

    /// Runs an in-place op on `self`. Its buffer is not shared during the call, so it can be reused.
    pub(crate) fn in_place(
        &mut self,
        op: impl for<'t> FnOnce(&'t mut Tensor, &Call<'_>) -> Answer<&'t mut Tensor>,
    ) -> Answer<Tensor> {
        let first = self.positional.first().copied();
        let Some(mut x) = first.and_then(|first| self.inputs[first].take()) else {
            return missing("an in-place form without self");
        };
        op(&mut x, self)?;
        self.after = vec![x.clone()];
        Ok(x)
    }

    /// The argument with this keyword; `null` counts as missing.
    pub(crate) fn arg(&self, key: &str) -> Option<&'a Json> {
        let (key, value) = self.args.get_key_value(key)?;
        self.read.borrow_mut().insert(key);
        (!value.is_null()).then_some(value)
    }

    pub(crate) fn is_empty_list(&self, key: &str) -> bool {
        self.args.get(key).and_then(Json::as_array).is_some_and(Vec::is_empty)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.args.get(key).is_some_and(|value| !value.is_null())
    }

    fn required(&self, key: &str) -> Answer<&'a Json> {
        self.arg(key).map_or_else(|| missing(format!("a form without `{key}`")), Ok)
    }

    pub(crate) fn dim(&self, key: &str) -> Answer<Dim> {
        dim(self.required(key)?)
    }

    pub(crate) fn dim_or(&self, key: &str, default: isize) -> Answer<Dim> {
        self.arg(key).map_or(Ok(Dim::Index(default)), dim)
    }

    /// A dim or a list of dims; all dims if there are none.
    pub(crate) fn dims(&self, key: &str) -> Answer<Dims> {
        match self.arg(key) {
            None => Ok(Dims::ALL),
            Some(Json::Array(list)) if list.is_empty() => Ok(Dims::ALL), // as in PyTorch
            Some(list) => dims(list),
        }
    }

    /// A list of dims, which may be empty.
    pub(crate) fn dim_list(&self, key: &str) -> Answer<Dims> {
        dims(self.required(key)?)
    }

    pub(crate) fn int_or(&self, key: &str, default: isize) -> Answer<isize> {
        match self.arg(key) {
            None => Ok(default),
            Some(value) => int(value),
        }
    }

    pub(crate) fn int(&self, key: &str) -> Answer<isize> {
        int(self.required(key)?)
    }

    /// A list of integers, or one integer.
    pub(crate) fn ints(&self, key: &str) -> Answer<Vec<isize>> {
        match self.required(key)? {
            Json::Array(list) => list.iter().map(int).collect(),
            one => Ok(vec![int(one)?]),
        }
    }

    pub(crate) fn float_or(&self, key: &str, default: f64) -> Answer<f64> {
        Ok(self.scalar_or(key, Scalar::Float(default))?.to_f64())
    }

    pub(crate) fn scalar(&self, key: &str) -> Answer<Scalar> {
        let value = self.required(key)?;
        scalar(value).map_or_else(|| missing(format!("`{key}` {value}")), Ok)
    }

    pub(crate) fn scalar_or(&self, key: &str, default: Scalar) -> Answer<Scalar> {
        if self.arg(key).is_some() { self.scalar(key) } else { Ok(default) }
    }

    pub(crate) fn flag(&self, key: &str, default: bool) -> bool {
        self.arg(key).and_then(Json::as_bool).unwrap_or(default)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.arg(key).and_then(Json::as_str)
    }

    pub(crate) fn dtype(&self, key: &str) -> Answer<Option<DType>> {
        match self.text(key) {
            None => Ok(None),
            Some(name) => match DType::from_torch_name(name) {
                Some(dtype) => Ok(Some(dtype)),
                None => missing(format!("dtype {name}")),
            },
        }
    }

    /// A list of names, with `None` for unnamed dims.
    pub(crate) fn names(&self, key: &str) -> Answer<Vec<Option<String>>> {
        let Some(list) = self.required(key)?.as_array() else {
            return missing(format!("`{key}` that is no list"));
        };
        Ok(list.iter().map(|name| name.as_str().map(String::from)).collect())
    }

    /// Sizes with the names of `names`, if there are any.
    pub(crate) fn shape(&self) -> Answer<Pairs> {
        let sizes = self.ints("size")?;
        if !self.has("names") {
            self.arg("names");
            return Ok(Pairs(sizes.into_iter().map(|size| (None, size)).collect()));
        }
        let names = self.names("names")?;
        if names.len() != sizes.len() {
            // Here sizes and names come in pairs, so lists of different lengths cannot be given in one call.
            Tensor::zeros(sizes.clone())?.rename(names.clone())?;
        }
        Ok(Pairs(names.into_iter().zip(sizes).collect()))
    }

    pub(crate) fn options(&self) -> Answer<TensorOptions> {
        let options = TensorOptions::new().requires_grad(self.flag("requires_grad", false));
        Ok(match self.dtype("dtype")? {
            Some(dtype) => options.dtype(dtype),
            None => options,
        })
    }

    /// The tensor that a keyword names.
    pub(crate) fn tensor(&self, key: &str) -> Option<&Tensor> {
        let k = self.arg(key)?.get("input")?.as_u64()?;
        self.inputs.get(k as usize)?.as_ref()
    }

    /// The tensors of `{"inputs": [..]}`.
    pub(crate) fn inputs_of(&self, value: &Json) -> Vec<&Tensor> {
        let list = value.get("inputs").and_then(Json::as_array).into_iter().flatten();
        list.filter_map(|k| self.inputs.get(k.as_u64()? as usize)?.as_ref()).collect()
    }

    /// The tensor of `{"input": k}`.
    pub(crate) fn input(&self, value: &Json) -> Option<&Tensor> {
        self.inputs.get(value.get("input")?.as_u64()? as usize)?.as_ref()
    }

    /// The number for the first of these keywords that is present, as an operand.
    pub(crate) fn number(&self, keys: &[&str]) -> Answer<Tensor> {
        let Some(key) = keys.iter().find(|key| self.has(key)) else {
            return missing(format!("a form without any of {keys:?}"));
        };
        Ok(self.scalar(key)?.operand_beside(self.beside)?.into_owned())
    }

    /// The positional tensor `k`, or the tensor or number with this keyword.
    pub(crate) fn operand(&self, k: usize, key: &str) -> Answer<Tensor> {
        match (self.x(k), self.tensor(key)) {
            (Ok(tensor), _) | (_, Some(tensor)) => Ok(tensor.clone()),
            _ => self.number(&[key]),
        }
    }

    /// The sizes that a dim is split into: `namedshape`, or `sizes` without names.
    pub(crate) fn named_shape(&self) -> Answer<Pairs> {
        let Some(pairs) = self.arg("namedshape") else {
            return Ok(Pairs(self.ints("sizes")?.into_iter().map(|size| (None, size)).collect()));
        };
        let pairs = pairs.as_array().into_iter().flatten();
        pairs
            .map(|pair| Ok((pair[0].as_str().map(String::from), int(&pair[1])?)))
            .collect::<Answer<_>>()
            .map(Pairs)
    }

    /// The right operand: a tensor or a number, times `alpha` if there is one.
    pub(crate) fn other(&self) -> Answer<Tensor> {
        let other = match self.x(1) {
            Ok(tensor) => tensor.clone(),
            Err(_) => self.number(&["other", "exponent", "value"])?,
        };
        match self.arg("alpha") {
            Some(_) => Ok(other.mul(self.scalar("alpha")?)?),
            None => Ok(other),
        }
    }
}

/// Sizes with names.
pub(crate) struct Pairs(Vec<(Option<String>, isize)>);

impl IntoShape for Pairs {
    fn into_open_shape(self) -> Result<OpenShape> {
        let pairs: Vec<(Option<&str>, isize)> =
            self.0.iter().map(|(name, size)| (name.as_deref(), *size)).collect();
        pairs.into_open_shape()
    }
}

/// A copy that is recorded on the tape, like PyTorch's `clone`. Rust's `Clone` returns another handle to the
/// same value.
pub(crate) fn copied(x: &Tensor) -> Answer<Tensor> {
    Ok(Op::new("clone", x.value().deep_clone()?).input(x, |g, _| Ok(g.clone())).output())
}

pub(crate) fn dim(value: &Json) -> Answer<Dim> {
    match value {
        Json::String(name) => Ok(Dim::from(name.as_str())),
        other => Ok(Dim::Index(int(other)?)),
    }
}

pub(crate) fn dims(value: &Json) -> Answer<Dims> {
    let list = match value {
        Json::Array(list) => list.iter().map(dim).collect::<Answer<Vec<Dim>>>()?,
        one => vec![dim(one)?],
    };
    Ok(Dims::from(list))
}

pub(crate) fn int(value: &Json) -> Answer<isize> {
    value
        .as_i64()
        .map_or_else(|| missing(format!("{value} where an integer is taken")), |int| Ok(int as isize))
}
