//! Replays a recorded call through the registry of ops, with PyTorch's names for the op and its arguments.

use crate::call::{Answer, Call, Value, missing};
use crate::case::scalar;
use namegrad::ops::{self, Given, Op, OpInfo, TensorKind};
use namegrad::prelude::*;
use serde_json::Value as Json;

/// Calls the op with this name, or its in-place form if the name ends in `_`. Returns `None` if there is no
/// such op. A function of `torch.nn.functional`, such as `nn.elu`, is the op `elu`.
pub(crate) fn call(name: &str, c: &mut Call<'_>) -> Option<Answer<Vec<Value>>> {
    let plain = name.strip_prefix("nn.").unwrap_or(name);
    if let Some(op) = ops::find_in_place(plain) {
        return Some(in_place(op, c));
    }
    let op = ops::find(name).ok()?;
    // PyTorch's functions have an argument where its methods have a `_`.
    if name != plain && c.flag("inplace", false) {
        return Some(if op.info.in_place.is_some() { in_place(op, c) } else { assigned(op, c) });
    }
    Some(out_of_place(op, c))
}

/// [`call`] for an op that exists.
pub(crate) fn required(name: &str, c: &mut Call<'_>) -> Answer<Vec<Value>> {
    call(name, c).unwrap_or_else(|| missing(format!("{name} has no row")))
}

fn out_of_place(op: &Op, c: &Call<'_>) -> Answer<Vec<Value>> {
    let scaled = scaled(op.info, c)?;
    let mut tensors = c.xs()?;
    if let Some(scaled) = &scaled {
        tensors.truncate(1);
        tensors.push(scaled);
    }
    let mut arguments = arguments(op.info, c)?;
    // A tensor in place of a number.
    let takes = |arg: &&ops::ArgInfo| {
        (arg.name == "start" || ["Numbers", "Sections"].contains(&arg.ty)) && !c.has(arg.name)
    };
    let list = op.info.tensors.iter().any(|tensor| tensor.kind == TensorKind::List);
    let more = !list && tensors.len() > op.info.tensors.len();
    if let Some(arg) = op.info.args.iter().find(takes).filter(|_| more) {
        arguments.extend(tensors.pop().map(|x| (arg.name, Given::Tensor(x))));
    }
    check_count(op.info, tensors.len())?;
    let mut results = op.call(&tensors, &arguments)?;
    if values_alone(op.info, c) {
        results.truncate(1);
    }
    Ok(results.into_iter().map(Value::Tensor).collect())
}

fn in_place(op: &Op, c: &mut Call<'_>) -> Answer<Vec<Value>> {
    let result = c.in_place(|x, c| {
        let scaled = scaled(op.info, c)?;
        let others: Vec<&Tensor> = match &scaled {
            Some(scaled) => vec![scaled],
            None => (1..c.count()).map(|k| c.x(k)).collect::<Answer<_>>()?,
        };
        check_count(op.info, others.len() + 1)?;
        op.call_in_place(x, &others, &arguments(op.info, c)?)?;
        Ok(x)
    })?;
    Ok(vec![Value::Tensor(result)])
}

/// `x = op(x)`, for PyTorch's `inplace` of a function that has no in-place form here.
fn assigned(op: &Op, c: &mut Call<'_>) -> Answer<Vec<Value>> {
    let result = c.in_place(|x, c| {
        let others: Vec<&Tensor> = (1..c.count()).map(|k| c.x(k)).collect::<Answer<_>>()?;
        let tensors: Vec<&Tensor> = std::iter::once(&*x).chain(others).collect();
        let made = op.call(&tensors, &arguments(op.info, c)?)?.remove(0);
        *x = made;
        Ok(x)
    })?;
    Ok(vec![Value::Tensor(result)])
}

/// A call with more tensors than the row has is another form of the op.
fn check_count(info: &OpInfo, count: usize) -> Answer<()> {
    let list = info.tensors.iter().any(|tensor| tensor.kind == TensorKind::List);
    if !list && count > info.tensors.len() {
        return missing(format!("a form with {count} tensors"));
    }
    Ok(())
}

/// The second operand times `alpha`: PyTorch's sums and differences have this factor, the row does not.
fn scaled(info: &OpInfo, c: &Call<'_>) -> Answer<Option<Tensor>> {
    match info.name {
        "add" | "sub" if c.has("alpha") => c.other().map(Some),
        _ => Ok(None),
    }
}

/// Over all elements, PyTorch returns the picked value without its index.
fn values_alone(info: &OpInfo, c: &Call<'_>) -> bool {
    let all = info.args.iter().any(|arg| arg.name == "dim" && arg.default == Some(".."));
    all && info.outputs == ["values", "indices"] && !c.has("dim")
}

/// The arguments that have not been read yet, in the types of the registry; `null` is the default.
fn arguments<'c>(info: &OpInfo, c: &'c Call<'_>) -> Answer<Vec<(&'c str, Given<'c>)>> {
    let mut arguments = Vec::new();
    for key in c.unread().into_iter().filter(|key| !["out", "inplace"].contains(key)) {
        let Some(value) = c.arg(key) else { continue };
        let is = |name: &str| name == key || name == key.to_lowercase(); // `UPLO`
        let ty = info.args.iter().find(|arg| is(arg.name)).map(|arg| arg.ty);
        let tensor = info.tensors.iter().any(|tensor| tensor.name == key) || ["self", "input"].contains(&key);
        let keeps = key == "keepdim" && info.args.iter().any(|arg| arg.ty == "Reduced");
        match key {
            "unbiased" if info.args.iter().any(|arg| arg.name == "correction") => {
                arguments.push(("correction", f64::from(value.as_bool() == Some(true)).into()));
            }
            _ if ty.is_none() && !tensor && namegrad::autograd::registry::knows(info, key) => {
                arguments.push((key, given(value, "Text", c)?))
            }
            _ if ty.is_some() || tensor || keeps => {
                arguments.push((key, given(value, ty.unwrap_or("f64"), c)?))
            }
            _ => return missing(format!("`{key}`")),
        }
    }
    Ok(arguments)
}

/// A value of the fixtures. Tensors are given by their numbers; text becomes a number where the argument is a
/// number.
fn given<'c>(value: &Json, ty: &str, c: &'c Call<'_>) -> Answer<Given<'c>> {
    if let Some(tensor) = c.input(value) {
        return Ok(Given::Tensor(tensor));
    }
    match value.get("inputs").and_then(Json::as_array) {
        Some(_) => Ok(Given::Tensors(c.inputs_of(value))),
        None => Ok(Given::Value(plain(value, ty)?)),
    }
}

pub(crate) fn plain(value: &Json, ty: &str) -> Answer<ops::Value> {
    let number = ["f64", "Option<f64>", "Scalar"].contains(&ty);
    Ok(match value {
        Json::Null => ops::Value::None,
        Json::Bool(value) => (*value).into(),
        Json::String(text) if !number => text.as_str().into(),
        Json::Array(list) => {
            ops::Value::List(list.iter().map(|each| plain(each, ty)).collect::<Answer<_>>()?)
        }
        other => match scalar(other) {
            Some(namegrad::core::Scalar::Int(value)) => value.into(),
            Some(number) => number.to_f64().into(),
            None => return missing(format!("an argument {other}")),
        },
    })
}
