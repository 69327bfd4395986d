//! The table: how each op of the fixtures is called here. A new op is one row.
//!
//! `"transpose" => |c| c.x(0)?.transpose(c.dim("dim0")?, c.dim("dim1")?)?;` reads the positional tensor 0 and two arguments. A row of an in-place op
//! goes through `c.in_place`. The ops by element and the reductions need no row at all: theirs are made of the tables of the library, in-place forms
//! included. The first table that has an op decides, so that a row can take the place of one that is made.

use crate::conformance::call::{Answer, Call, IntoOutputs, Value, copied, dim, dims, missing};
use namegrad::autograd::Index;
use namegrad::core::names::Renaming;
use namegrad::core::{
    Argument, Dim, DimOrAll, MinMax, Name, NameArg, Picked, Scalar, StdMean, Unique, VarMean,
};
use namegrad::prelude::*;
use serde_json::{Value as Json, json};

/// How one op is called.
pub(crate) type Row = fn(&mut Call<'_>) -> Answer<Vec<Value>>;

/// The row of an op. What PyTorch has in `torch.special` are methods as all others.
pub(crate) fn row(op: &str) -> Option<Row> {
    use crate::conformance::composed;

    let op = op.strip_prefix("special.").unwrap_or(op);
    let tables = [
        composed::parts,
        composed::positions,
        composed::arithmetic,
        composed::random,
        composed::properties,
        naming,
        queries,
        create,
        shape,
        others,
        crate::conformance::nn::functional,
        unary,
        binary,
        ternary,
        reductions,
    ];
    tables.iter().find_map(|table| table(op))
}

/// `"name" | "alias" => |c| outputs;` as a function from names to rows. The expression may use `?`.
macro_rules! table {
    ($(#[$doc:meta])* $vis:vis fn $table:ident; $($($op:literal)|+ => |$c:ident| $outputs:expr;)*) => {
        $(#[$doc])*
        $vis fn $table(op: &str) -> Option<$crate::conformance::ops::Row> {
            Some(match op {
                $($($op)|+ => |$c| Ok($crate::conformance::call::IntoOutputs::outputs($outputs)),)*
                _ => return None,
            })
        }
    };
}
pub(crate) use table;

macro_rules! unary_rows {
    ($($(#[$doc:meta])* $name:ident $($name_:ident)? ($x:ident) $(-> $out:ident)? { $($body:tt)* })*) => {
        fn unary(op: &str) -> Option<Row> {
            $(
                if op == stringify!($name) {
                    return Some(|c| Ok(c.x(0)?.$name()?.outputs()));
                }
                $(if op == stringify!($name_) {
                    return Some(|c| Ok(c.in_place(|x, _| Ok(x.$name_()?))?.outputs()));
                })?
            )*
            None
        }
    };
}
namegrad::core::unary_ops!(unary_rows);

macro_rules! binary_rows {
    ($($(#[$doc:meta])* $name:ident $($name_:ident)? ($x:ident $y:ident) $(-> $out:ident)? { $($body:tt)* } $($divides:ident)?;)*) => {
        fn binary(op: &str) -> Option<Row> {
            $(
                if op == stringify!($name) {
                    return Some(|c| { let (x, y) = c.pair()?; Ok(x.$name(y)?.outputs()) });
                }
                $(if op == stringify!($name_) {
                    return Some(|c| Ok(c.in_place(|x, c| Ok(x.$name_(c.other()?)?))?.outputs()));
                })?
            )*
            None
        }
    };
}
namegrad::core::binary_ops!(binary_rows);

macro_rules! ternary_rows {
    ($($(#[$doc:meta])* $name:ident $($name_:ident)? ($x:ident $y:ident $z:ident) { $($body:tt)* };)*) => {
        fn ternary(op: &str) -> Option<Row> {
            let row = |name: &str| -> Option<Row> { $(
                if name == stringify!($name) {
                    return Some(|c| Ok(c.x(0)?.$name(c.operand(1, stringify!($y))?, c.operand(2, stringify!($z))?)?.outputs()));
                }
                $(if name == stringify!($name_) {
                    return Some(|c| Ok(c.in_place(|x, c| Ok(x.$name_(c.operand(1, stringify!($y))?, c.operand(2, stringify!($z))?)?))?.outputs()));
                })?
            )* None };
            row(op)
        }
    };
}
namegrad::core::ternary_ops!(ternary_rows);

macro_rules! reduction_rows {
    ($($(#[$doc:meta])* $name:ident $name_keepdim:ident ($x:ident $(; $arg:ident: $ty:ty)?))*) => {
        fn reductions(op: &str) -> Option<Row> {
            $(if op == stringify!($name) {
                return Some(|c| {
                    let (x, dims) = (cast(c)?, c.dims("dim")?);
                    $(let $arg = c.scalar(stringify!($arg))?.to_f64();)?
                    let keepdim = c.flag("keepdim", false);
                    let y = if keepdim { x.$name_keepdim(dims $(, $arg)?)? } else { x.$name(dims $(, $arg)?)? };
                    Ok(y.outputs())
                });
            })*
            None
        }
    };
}
namegrad::core::reduce_ops!(reduction_rows);

/// The first tensor, cast to the argument `dtype`.
pub(crate) fn cast(c: &Call<'_>) -> Answer<Tensor> {
    Ok(match c.dtype("dtype")? {
        Some(dtype) => c.x(0)?.to(dtype)?,
        None => c.x(0)?.clone(),
    })
}

/// The names of a tensor, `null` where there is none.
fn names(x: &Tensor) -> Json {
    x.names().iter(x.ndim()).map(|name| name.map_or(Json::Null, |name| json!(name.as_str()))).collect()
}

table! {
    /// The naming API.
    fn naming;
    "names" => |c| names(c.x(0)?);
    "has_names" => |c| json!(c.x(0)?.has_names());
    "rename" => |c| renamed(c)?;
    "rename_" => |c| c.in_place(|x, c| {
        let renamed = rename(x, c)?;
        x.rename_(Some(renamed.names().clone()).filter(|names| names.is_named()))?;
        Ok(x)
    })?;
    "refine_names" => |c| c.x(0)?.refine_names(c.names("names")?)?;
    "align_to" => |c| c.x(0)?.align_to(c.names("names")?)?;
    "align_as" => |c| c.x(0)?.align_as(c.x(1)?)?;
    "align_tensors" => |c| Tensor::align_tensors(&c.xs()?)?;
    "flatten" => |c| flatten(c)?;
    "unflatten" => |c| c.x(0)?.unflatten(c.dim("dim")?, c.named_shape()?)?;
}

fn renamed(c: &Call<'_>) -> Answer<Tensor> {
    rename(c.x(0)?, c)
}

/// By position, by name, or `null` for none. The two at once cannot be said here.
fn rename(x: &Tensor, c: &Call<'_>) -> Answer<Tensor> {
    let map = c.arg("rename_map").and_then(Json::as_object);
    let pairs =
        map.map(|map| map.iter().map(|(from, to)| Ok((from.clone(), name(to)?))).collect::<Result<Vec<_>>>());
    match (pairs, c.has("names")) {
        (Some(_), true) => {
            c.arg("names");
            Err(Error::new(ErrorKind::Unsupported, "rename", "names by position and by name at once").into())
        }
        (Some(pairs), false) => Ok(x.rename(Renaming::Map(pairs?))?),
        (None, true) => Ok(x.rename(c.names("names")?)?),
        (None, false) => {
            c.arg("names");
            Ok(x.rename(None)?)
        }
    }
}

/// The new name of a dim; `null` takes the name away.
fn name(to: &Json) -> Result<NameArg> {
    to.as_str().map_or(Ok(NameArg::Unnamed), |text| Name::new(text).map(NameArg::Name))
}

fn flatten(c: &Call<'_>) -> Answer<Tensor> {
    let (x, name) = (c.x(0)?, c.text("out_dim"));
    if c.has("dims") {
        return Ok(x.flatten(c.dim_list("dims")?, name)?);
    }
    let (start, end) = (c.dim_or("start_dim", 0)?, c.dim_or("end_dim", -1)?);
    let at = |dim: Dim| dim.resolve("flatten", x.value());
    let (start, end) = (at(start)?, at(end)?);
    let dims = if start <= end { (start..=end).collect() } else { vec![start, end] };
    Ok(x.flatten(dims, name)?)
}

table! {
    /// What is asked of a tensor.
    fn queries;
    "dim" | "ndim" | "ndimension" => |c| json!(c.x(0)?.ndim());
    "numel" | "nelement" => |c| json!(c.x(0)?.numel());
    "len" => |c| json!(c.x(0)?.size(0)?);
    "size" | "shape" => |c| match c.has("dim") {
        true => json!(c.x(0)?.size(c.dim("dim")?)?),
        false => json!(c.x(0)?.sizes()),
    };
    "stride" => |c| match c.has("dim") {
        true => { let x = c.x(0)?; json!(x.strides()[c.dim("dim")?.resolve("stride", x.value())?]) }
        false => json!(c.x(0)?.strides()),
    };
    "element_size" | "itemsize" => |c| json!(c.x(0)?.dtype().itemsize());
    "nbytes" => |c| json!(c.x(0)?.value().nbytes());
    "dtype" => |c| json!(c.x(0)?.dtype().torch_name());
    "is_floating_point" => |c| json!(c.x(0)?.dtype().is_floating_point());
    "is_signed" => |c| json!(c.x(0)?.dtype().is_signed());
    "is_contiguous" => |c| json!(c.x(0)?.is_contiguous());
    "is_same_size" => |c| json!(c.x(0)?.sizes() == c.x(1)?.sizes());
    "is_leaf" => |c| json!(c.x(0)?.is_leaf());
    "requires_grad" => |c| json!(c.x(0)?.requires_grad());
    "requires_grad_" => |c| c.in_place(|x, c| { x.set_requires_grad(c.flag("requires_grad", true))?; Ok(x) })?;
    "item" => |c| number(c.x(0)?.item()?);
    "tolist" => |c| nested(c.x(0)?)?;
    "is_tensor" => |c| match c.arg("obj") { Some(_) => json!(false), None => json!(c.count() == 1) };
    "manual_seed" => |c| {
        let [first, second] = [seeded(c)?, seeded(c)?];
        json!(first.to_vec::<f64>()? == second.to_vec::<f64>()?)
    };
    "grad" => |c| gradient(c)?;
    "register_hook" => |c| {
        let scale = c.arg("scale").map(|_| c.float_or("scale", 1.0)).transpose()?;
        c.x(0)?.register_hook(move |g| scale.map(|scale| g.mul(scale)).transpose())?;
        c.x(0)?.sin()?
    };
    "register_post_accumulate_grad_hook" => |c| {
        let scale = c.float_or("scale", 1.0)?;
        let x = c.x(0)?;
        x.register_post_accumulate_grad_hook(move |g| g.mul(scale).map(Some))?;
        x.sin()?.backward_with(Some(c.x(1)?), Default::default())?;
        vec![x.grad().map_or(Value::Plain(Json::Null), Value::Tensor)]
    };
}

fn number(value: Scalar) -> Json {
    match value {
        Scalar::Bool(value) => json!(value),
        Scalar::Int(value) => json!(value),
        Scalar::Float(value) if value.is_nan() => json!("nan"),
        Scalar::Float(value) if value.is_infinite() => json!(if value > 0.0 { "inf" } else { "-inf" }),
        Scalar::Float(value) => json!(value),
    }
}

/// The elements as nested lists.
fn nested(x: &Tensor) -> Answer<Json> {
    if x.ndim() == 0 {
        return Ok(number(x.item()?));
    }
    (0..x.sizes()[0]).map(|row| nested(&x.select(0, row)?)).collect::<Answer<Vec<Json>>>().map(Json::Array)
}

fn seeded(c: &Call<'_>) -> Answer<Tensor> {
    manual_seed(c.int("seed")? as u64);
    let sizes = c.ints("size")?;
    match c.text("fn") {
        Some("rand") => Ok(Tensor::rand(sizes)?),
        Some("randn") => Ok(Tensor::randn(sizes)?),
        other => missing(format!("manual_seed with {other:?}")),
    }
}

/// `x.grad` of a fresh leaf, or after backward passes through an op.
fn gradient(c: &Call<'_>) -> Answer<Vec<Value>> {
    let x = c.x(0)?;
    if let Some(op) = c.text("fn") {
        for _ in 0..c.int_or("times", 1)? {
            let none = Default::default();
            let mut call = Call::new(&none, vec![x.clone()]);
            let Some(row) = row(op) else { return missing(op) };
            if let [Value::Tensor(y)] = &row(&mut call)?[..] {
                y.backward_with(Some(c.x(1)?), Default::default())?;
            }
        }
    }
    Ok(vec![x.grad().map_or(Value::Plain(Json::Null), Value::Tensor)])
}

table! {
    /// New tensors.
    fn create;
    "zeros" => |c| c.options()?.zeros(c.shape()?)?;
    "ones" => |c| c.options()?.ones(c.shape()?)?;
    "empty" => |c| c.options()?.empty(c.shape()?)?;
    "rand" => |c| c.options()?.rand(c.shape()?)?;
    "randn" => |c| c.options()?.randn(c.shape()?)?;
    "full" => |c| c.options()?.full(c.shape()?, c.scalar("fill_value")?)?;
    "tensor" => |c| tensor(c)?;
    "eye" => |c| { let n = c.int("n")? as usize; c.options()?.eye(n, c.int_or("m", n as isize)? as usize)? };
    "arange" => |c| {
        let (end, zero) = (c.scalar("end")?, Scalar::Int(0));
        c.options()?.arange(c.scalar_or("start", zero)?, end, c.scalar_or("step", Scalar::Int(1))?)?
    };
    "linspace" => |c| c.options()?.linspace(c.scalar("start")?.to_f64(), c.scalar("end")?.to_f64(), c.int("steps")? as usize)?;
    "zeros_like" => |c| cast(c)?.zeros_like()?;
    "ones_like" => |c| cast(c)?.ones_like()?;
    "empty_like" => |c| cast(c)?.empty_like()?;
    "full_like" => |c| cast(c)?.full_like(c.scalar("fill_value")?)?;
    "rand_like" => |c| cast(c)?.rand_like()?;
    "randn_like" => |c| cast(c)?.randn_like()?;
    "new_zeros" => |c| c.x(0)?.new_zeros(c.shape()?)?;
    "new_ones" => |c| c.x(0)?.new_ones(c.shape()?)?;
    "new_full" => |c| c.x(0)?.new_full(c.shape()?, c.scalar("fill_value")?)?;
    "fill_" => |c| c.in_place(|x, c| Ok(x.fill_(c.operand(1, "value")?)?))?;
    "zero_" => |c| c.in_place(|x, _| Ok(x.zero_()?))?;
}

/// A tensor of nested lists, which here are flat numbers and their sizes.
fn tensor(c: &Call<'_>) -> Answer<Tensor> {
    let Some(data) = c.arg("data") else { return missing("tensor without data") };
    let (mut sizes, mut level) = (Vec::new(), data);
    while let Json::Array(rows) = level {
        sizes.push(rows.len());
        match rows.first() {
            Some(row) => level = row,
            None => break,
        }
    }
    let mut flat = Vec::new();
    flatten_json(data, &mut flat);
    let widest = flat.iter().map(|number| number.dtype()).fold(DType::Bool, DType::promote);
    let widest = if flat.is_empty() { DType::F32 } else { widest };
    let dtype = c.dtype("dtype")?.unwrap_or(widest);
    let options = TensorOptions::new().dtype(dtype);
    let tensor = match widest {
        DType::I64 => options
            .tensor(flat.iter().map(|x| namegrad::core::Element::from_scalar(*x)).collect::<Vec<i64>>())?,
        DType::Bool => options.tensor(flat.iter().map(|x| x.to_f64() != 0.0).collect::<Vec<bool>>())?,
        _ => options.tensor(flat.iter().map(|x| x.to_f64()).collect::<Vec<f64>>())?,
    };
    let mut tensor = tensor.reshape(&sizes[..])?;
    if c.has("names") {
        tensor = tensor.rename(c.names("names")?)?;
    }
    Ok(tensor.requires_grad_(c.flag("requires_grad", false))?)
}

fn flatten_json(data: &Json, into: &mut Vec<Scalar>) {
    match data {
        Json::Array(rows) => rows.iter().for_each(|row| flatten_json(row, into)),
        number => into.extend(crate::conformance::case::scalar(number)),
    }
}

table! {
    /// Views and rearrangements.
    fn shape;
    "transpose" => |c| c.x(0)?.transpose(c.dim("dim0")?, c.dim("dim1")?)?;
    "transpose_" => |c| c.in_place(|x, c| Ok(x.transpose_(c.dim("dim0")?, c.dim("dim1")?)?))?;
    "swapaxes" => |c| c.x(0)?.transpose(c.dim("axis0")?, c.dim("axis1")?)?;
    "swapdims" => |c| c.x(0)?.transpose(c.dim("dim0")?, c.dim("dim1")?)?;
    "t" => |c| c.x(0)?.t()?;
    "T" => |c| { let x = c.x(0)?; x.permute((0..x.ndim()).rev().collect::<Vec<usize>>())? };
    "mT" => |c| c.x(0)?.mt()?;
    "permute" => |c| c.x(0)?.permute(c.dim_list("dims")?)?;
    "squeeze" => |c| c.x(0)?.squeeze(c.dims("dim")?)?;
    "unsqueeze" => |c| c.x(0)?.unsqueeze(c.int("dim")?)?;
    "expand" => |c| c.x(0)?.expand(c.ints("size")?)?;
    "broadcast_to" => |c| c.x(0)?.expand(c.ints("size")?)?;
    "expand_as" => |c| c.x(0)?.expand(c.x(1)?.sizes())?;
    "view" => |c| c.x(0)?.view(c.ints("size")?)?;
    "view_as" => |c| c.x(0)?.view(c.x(1)?.sizes())?;
    "reshape" => |c| c.x(0)?.reshape(c.ints("shape")?)?;
    "reshape_as" => |c| c.x(0)?.reshape(c.x(1)?.sizes())?;
    "ravel" => |c| c.x(0)?.reshape([-1])?;
    "repeat" => |c| c.x(0)?.repeat(c.ints("repeats")?)?;
    "flip" => |c| c.x(0)?.flip(c.dim_list("dims")?)?;
    "fliplr" => |c| c.x(0)?.flip(1)?;
    "flipud" => |c| c.x(0)?.flip(0)?;
    "roll" => |c| roll(c)?;
    "narrow" => |c| c.x(0)?.narrow(c.dim("dim")?, c.int("start")?, c.int("length")?)?;
    "select" => |c| c.x(0)?.select(c.dim("dim")?, c.int("index")?)?;
    "diagonal" => |c| c.x(0)?.diagonal(c.int_or("offset", 0)?, c.dim_or("dim1", 0)?, c.dim_or("dim2", 1)?)?;
    "triu" => |c| c.x(0)?.triu(c.int_or("diagonal", 0)?)?;
    "tril" => |c| c.x(0)?.tril(c.int_or("diagonal", 0)?)?;
    "contiguous" => |c| c.x(0)?.contiguous()?;
    "clone" => |c| copied(c.x(0)?)?;
    "detach" => |c| c.x(0)?.detach();
    "detach_" => |c| c.in_place(|x, _| Ok(x.detach_()))?;
    "to" => |c| match c.dtype("dtype")? {
        Some(dtype) => { c.flag("copy", false); c.x(0)?.to(dtype)? }
        None => c.x(0)?.to(c.x(1)?.dtype())?,
    };
    "bool" => |c| c.x(0)?.to(DType::Bool)?;
    "byte" => |c| c.x(0)?.to(DType::U8)?;
    "char" => |c| c.x(0)?.to(DType::I8)?;
    "short" => |c| c.x(0)?.to(DType::I16)?;
    "int" => |c| c.x(0)?.to(DType::I32)?;
    "long" => |c| c.x(0)?.to(DType::I64)?;
    "half" => |c| c.x(0)?.to(DType::F16)?;
    "bfloat16" => |c| c.x(0)?.to(DType::BF16)?;
    "float" => |c| c.x(0)?.to(DType::F32)?;
    "double" => |c| c.x(0)?.to(DType::F64)?;
}

/// One shift after the other; without dims the tensor is rolled as if it were flat.
fn roll(c: &Call<'_>) -> Answer<Tensor> {
    let shifts = c.ints("shifts")?;
    let dims: Vec<Dim> = match c.arg("dims") {
        None => return Ok(c.x(0)?.reshape([-1])?.roll(shifts[0], 0)?.reshape(c.x(0)?.sizes())?),
        Some(Json::Array(list)) => list.iter().map(dim).collect::<Answer<_>>()?,
        Some(one) => vec![dim(one)?],
    };
    if dims.len() != shifts.len() {
        return missing("shifts and dims of different number");
    }
    let mut x = c.x(0)?.clone();
    for (shift, dim) in shifts.into_iter().zip(dims) {
        x = x.roll(shift, dim)?;
    }
    Ok(x)
}

table! {
    /// All other ops, and those of the tables of the library whose arguments want more than the tables know.
    fn others;
    "multiply" => |c| { let (x, y) = c.pair()?; x.mul(y)? };
    "subtract" => |c| { let (x, y) = c.pair()?; x.sub(y)? };
    "true_divide" => |c| { let (x, y) = c.pair()?; x.div(y)? };
    "arctan2" => |c| { let (x, y) = c.pair()?; x.atan2(y)? };
    "div" | "divide" => |c| {
        let (x, y) = c.pair()?;
        match c.text("rounding_mode") {
            None => x.div(y)?,
            Some("floor") => x.floor_divide(y)?,
            Some(_) => x.trunc_divide(y)?,
        }
    };
    "where" => |c| match (c.has("self"), c.has("other")) {
        (false, false) if c.count() == 1 => return Ok(vec![crate::conformance::composed::positions_of(c.x(0)?)?]),
        (true, _) => c.number(&["self"])?.where_self(c.x(0)?, c.x(1)?)?,
        (_, true) => c.x(1)?.where_self(c.x(0)?, c.number(&["other"])?)?,
        _ => c.x(1)?.where_self(c.x(0)?, c.x(2)?)?,
    };
    "softmax" => |c| cast(c)?.softmax(c.dim("dim")?)?;
    "log_softmax" => |c| cast(c)?.log_softmax(c.dim("dim")?)?;
    "cumsum" => |c| cast(c)?.cumsum(c.dim("dim")?)?;
    "cumprod" => |c| cast(c)?.cumprod(c.dim("dim")?)?;
    "cumsum_" => |c| c.in_place(|x, c| Ok(x.cumsum_(c.dim("dim")?)?))?;
    "cumprod_" => |c| c.in_place(|x, c| Ok(x.cumprod_(c.dim("dim")?)?))?;
    "logcumsumexp" => |c| c.x(0)?.logcumsumexp(c.dim("dim")?)?;
    "max" => |c| if c.count() == 2 { c.x(0)?.maximum(c.x(1)?)?.outputs() } else { picked(c, Tensor::max, Tensor::max_keepdim)? };
    "min" => |c| if c.count() == 2 { c.x(0)?.minimum(c.x(1)?)?.outputs() } else { picked(c, Tensor::min, Tensor::min_keepdim)? };
    "median" => |c| picked(c, Tensor::median, Tensor::median_keepdim)?;
    "nanmedian" => |c| picked(c, Tensor::nanmedian, Tensor::nanmedian_keepdim)?;
    "mode" => |c| {
        let (x, dim) = (c.x(0)?, c.dim_or("dim", -1)?);
        both(if c.flag("keepdim", false) { x.mode_keepdim(dim)? } else { x.mode(dim)? })
    };
    "kthvalue" => |c| {
        let (x, k, dim) = (c.x(0)?, c.int("k")?, DimOrAll::One(c.dim_or("dim", -1)?));
        both(if c.flag("keepdim", false) { x.kthvalue_keepdim(k, dim)? } else { x.kthvalue(k, dim)? })
    };
    "argmax" => |c| {
        let (x, dim) = (c.x(0)?, dim_or_all(c)?);
        if c.flag("keepdim", false) { x.argmax_keepdim(dim)? } else { x.argmax(dim)? }
    };
    "argmin" => |c| {
        let (x, dim) = (c.x(0)?, dim_or_all(c)?);
        if c.flag("keepdim", false) { x.argmin_keepdim(dim)? } else { x.argmin(dim)? }
    };
    "polygamma" => |c| c.x(0)?.polygamma(c.int("n")?)?;
    "argsort" => |c| { c.flag("stable", true); c.x(0)?.argsort(c.dim_or("dim", -1)?, c.flag("descending", false))? };
    "sort" => |c| {
        c.flag("stable", true);
        both(c.x(0)?.sort(c.dim_or("dim", -1)?, c.flag("descending", false))?)
    };
    "msort" => |c| c.x(0)?.msort()?;
    "topk" => |c| both(c.x(0)?.topk(c.int("k")?, c.dim_or("dim", -1)?, c.flag("largest", true))?);
    "cummax" => |c| both(c.x(0)?.cummax(c.dim("dim")?)?);
    "cummin" => |c| both(c.x(0)?.cummin(c.dim("dim")?)?);
    "aminmax" => |c| {
        let (x, dims) = (c.x(0)?, c.dims("dim")?);
        let MinMax { min, max } = if c.flag("keepdim", false) { x.aminmax_keepdim(dims)? } else { x.aminmax(dims)? };
        vec![min, max]
    };
    "quantile" => |c| {
        let (x, q, dim) = (c.x(0)?, c.scalar("q")?.to_f64(), dim_or_all(c)?);
        if c.flag("keepdim", false) { x.quantile_keepdim(q, dim)? } else { x.quantile(q, dim)? }
    };
    "diff" => |c| c.x(0)?.diff(c.int_or("n", 1)?, c.dim_or("dim", -1)?)?;
    "searchsorted" => |c| c.x(0)?.searchsorted(c.x(1)?, c.flag("right", false))?;
    "bucketize" => |c| c.x(0)?.bucketize(c.x(1)?, c.flag("right", false))?;
    "bincount" => |c| {
        let minlength = c.int_or("minlength", 0)?;
        if c.count() == 2 { c.x(0)?.bincount_weighted(c.x(1)?, minlength)? } else { c.x(0)?.bincount(minlength)? }
    };
    "histc" => |c| c.x(0)?.histc(c.int_or("bins", 100)?, c.float_or("min", 0.0)?, c.float_or("max", 0.0)?)?;
    "unique" => |c| {
        let Unique { values, inverse, counts } = c.x(0)?.unique()?;
        let wanted = [(true, values), (c.flag("return_inverse", false), inverse), (c.flag("return_counts", false), counts)];
        wanted.into_iter().filter(|(wanted, _)| *wanted).map(|(_, tensor)| tensor).collect::<Vec<Tensor>>()
    };
    "linalg.vector_norm" => |c| {
        let (x, dims, ord) = (c.x(0)?, c.dims("dim")?, c.float_or("ord", 2.0)?);
        if c.flag("keepdim", false) { x.vector_norm_keepdim(dims, ord)? } else { x.vector_norm(dims, ord)? }
    };
    "norm" => |c| {
        let (x, dims, p) = (c.x(0)?, c.dims("dim")?, c.float_or("p", 2.0)?);
        if c.flag("keepdim", false) { x.vector_norm_keepdim(dims, p)? } else { x.vector_norm(dims, p)? }
    };
    "std" => |c| {
        let (x, dims, correction) = (c.x(0)?, c.dims("dim")?, correction(c)?);
        if c.flag("keepdim", false) { x.std_corrected_keepdim(dims, correction)? } else { x.std_corrected(dims, correction)? }
    };
    "var" => |c| {
        let (x, dims, correction) = (c.x(0)?, c.dims("dim")?, correction(c)?);
        if c.flag("keepdim", false) { x.var_corrected_keepdim(dims, correction)? } else { x.var_corrected(dims, correction)? }
    };
    "std_mean" => |c| {
        let (x, dims, correction) = (c.x(0)?, c.dims("dim")?, correction(c)?);
        let keepdim = c.flag("keepdim", false);
        let StdMean { std, mean } = if keepdim { x.std_mean_keepdim(dims, correction)? } else { x.std_mean(dims, correction)? };
        vec![std, mean]
    };
    "var_mean" => |c| {
        let (x, dims, correction) = (c.x(0)?, c.dims("dim")?, correction(c)?);
        let keepdim = c.flag("keepdim", false);
        let VarMean { var, mean } = if keepdim { x.var_mean_keepdim(dims, correction)? } else { x.var_mean(dims, correction)? };
        vec![var, mean]
    };
    "cat" => |c| Tensor::cat(&c.xs()?, c.dim_or("dim", 0)?)?;
    "stack" => |c| Tensor::stack(&c.xs()?, c.int_or("dim", 0)?, None)?;
    "index_select" => |c| c.x(0)?.index_select(c.x(1)?, c.dim("dim")?)?;
    "gather" => |c| c.x(0)?.gather(c.x(1)?, c.dim("dim")?)?;
    "scatter_add" => |c| c.x(0)?.scatter_add(c.x(1)?, c.x(2)?, c.dim("dim")?)?;
    "scatter_add_" => |c| c.in_place(|x, c| Ok(x.scatter_add_(c.x(1)?, c.x(2)?, c.dim("dim")?)?))?;
    "index_add" => |c| c.x(0)?.index_add(c.x(1)?, c.x(2)?, c.dim("dim")?)?;
    "index_add_" => |c| c.in_place(|x, c| Ok(x.index_add_(c.x(1)?, c.x(2)?, c.dim("dim")?)?))?;
    "nonzero" => |c| c.x(0)?.nonzero()?;
    "getitem" => |c| c.x(0)?.index(&indices(c)?)?;
    "masked_select" => |c| c.x(0)?.masked_select(c.x(1)?)?;
    "masked_fill" => |c| c.x(0)?.masked_fill(c.x(1)?, c.operand(2, "value")?)?;
    "masked_fill_" => |c| c.in_place(|x, c| Ok(x.masked_fill_(c.x(1)?, c.operand(2, "value")?)?))?;
    "mm" => |c| c.x(0)?.mm(c.x(1)?)?;
    "mv" => |c| c.x(0)?.mv(c.x(1)?)?;
    "dot" => |c| c.x(0)?.dot(c.x(1)?)?;
    "bmm" => |c| c.x(0)?.bmm(c.x(1)?)?;
    "matmul" => |c| c.x(0)?.matmul(c.x(1)?)?;
    "tensordot" => |c| tensordot(c)?;
    "outer" | "ger" => |c| c.x(0)?.outer(c.x(1)?)?;
    "addmm" => |c| { let [beta, alpha] = scales(c)?; c.x(0)?.addmm(c.x(1)?, c.x(2)?, beta, alpha)? };
    "addmm_" => |c| c.in_place(|x, c| { let [beta, alpha] = scales(c)?; Ok(x.addmm_(c.x(1)?, c.x(2)?, beta, alpha)?) })?;
    "addmv" => |c| { let [beta, alpha] = scales(c)?; c.x(0)?.addmv(c.x(1)?, c.x(2)?, beta, alpha)? };
    "addmv_" => |c| c.in_place(|x, c| { let [beta, alpha] = scales(c)?; Ok(x.addmv_(c.x(1)?, c.x(2)?, beta, alpha)?) })?;
    "baddbmm" => |c| { let [beta, alpha] = scales(c)?; c.x(0)?.baddbmm(c.x(1)?, c.x(2)?, beta, alpha)? };
    "promote_types" => |c| match (c.dtype("type1")?, c.dtype("type2")?) {
        (Some(a), Some(b)) => json!(a.promote(b).torch_name()),
        _ => return missing("promote_types without two dtypes"),
    };
}

/// Values and indices, as two outputs.
fn both(picked: Picked<Tensor>) -> Vec<Tensor> {
    vec![picked.values, picked.indices]
}

/// One dim, or all elements.
fn dim_or_all(c: &Call<'_>) -> Answer<DimOrAll> {
    Ok(c.arg("dim").map(dim).transpose()?.map_or(DimOrAll::All, DimOrAll::One))
}

/// What an op picks along a dim, or the value alone of all elements.
fn picked(
    c: &Call<'_>,
    op: fn(&Tensor, DimOrAll) -> Result<Picked<Tensor>>,
    op_keepdim: fn(&Tensor, DimOrAll) -> Result<Picked<Tensor>>,
) -> Answer<Vec<Value>> {
    let (x, dim) = (c.x(0)?, dim_or_all(c)?);
    let one = dim == DimOrAll::All;
    let picked = if c.flag("keepdim", false) { op_keepdim(x, dim)? } else { op(x, dim)? };
    Ok(if one { picked.values.outputs() } else { both(picked).outputs() })
}

/// What is taken off the number of elements: a number, or 1 where `unbiased`.
fn correction(c: &Call<'_>) -> Answer<f64> {
    c.float_or("correction", if c.flag("unbiased", true) { 1.0 } else { 0.0 })
}

pub(crate) fn indices(c: &Call<'_>) -> Answer<Vec<Index>> {
    let Some(list) = c.arg("index").and_then(Json::as_array) else {
        return missing("getitem without a list");
    };
    let entry = |entry: &Json| match entry {
        Json::Null => Ok(Index::New),
        Json::Number(at) => Ok(Index::At(at.as_i64().unwrap_or_default() as isize)),
        Json::String(_) => Ok(Index::Ellipsis),
        Json::Object(_) => match (c.input(entry), entry["slice"].as_array()) {
            (Some(tensor), _) => Ok(Index::from(tensor)),
            (None, Some(slice)) => {
                let end = |k: usize| slice[k].as_i64().map(|at| at as isize);
                Ok(Index::Slice { start: end(0), end: end(1), step: end(2).unwrap_or(1) as usize })
            }
            (None, None) => missing(format!("index {entry}")),
        },
        other => missing(format!("index {other}")),
    };
    list.iter().map(entry).collect()
}

/// Over the last dims of the one and the first of the other, or two lists of dims.
fn tensordot(c: &Call<'_>) -> Answer<Tensor> {
    let (x, y) = (c.x(0)?, c.x(1)?);
    match c.arg("dims") {
        Some(Json::Array(lists)) => Ok(x.tensordot(y, dims(&lists[0])?, dims(&lists[1])?)?),
        count => {
            let count = count.and_then(Json::as_u64).unwrap_or(2) as usize;
            let last: Vec<usize> = (x.ndim().saturating_sub(count)..x.ndim()).collect();
            Ok(x.tensordot(y, last, (0..count).collect::<Vec<usize>>())?)
        }
    }
}

/// The factors of a sum and a product, one each by default.
pub(crate) fn scales(c: &Call<'_>) -> Answer<[Scalar; 2]> {
    Ok([c.scalar_or("beta", Scalar::Int(1))?, c.scalar_or("alpha", Scalar::Int(1))?])
}
