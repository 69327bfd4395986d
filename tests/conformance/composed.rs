//! The rows of the ops that others express, of random numbers in place, and of what is asked of a tensor.

use crate::conformance::call::{Answer, Call, IntoOutputs, Value, copied, int, missing, unwritable};
use crate::conformance::ops::{indices, scales, table};
use namegrad::autograd::{Index, Indexing, Sections, Tolerance};
use namegrad::core::{Reduce, Scalar};
use namegrad::prelude::*;
use serde_json::{Value as Json, json};

table! {
    /// Parts and what is put together.
    pub(crate) fn parts;
    "split" => |c| c.x(0)?.split(sections(c, "split_size")?, c.dim_or("dim", 0)?)?;
    "tensor_split" => |c| c.x(0)?.tensor_split(sections(c, "indices_or_sections")?, c.dim_or("dim", 0)?)?;
    "chunk" => |c| c.x(0)?.chunk(c.int("chunks")?.unsigned_abs(), c.dim_or("dim", 0)?)?;
    "unbind" => |c| c.x(0)?.unbind(c.dim_or("dim", 0)?)?;
    "broadcast_tensors" => |c| Tensor::broadcast_tensors(&c.xs()?)?;
    "tile" => |c| c.x(0)?.tile(c.ints("dims")?)?;
    "hstack" => |c| Tensor::hstack(&c.xs()?)?;
    "vstack" => |c| Tensor::vstack(&c.xs()?)?;
    "dstack" => |c| Tensor::dstack(&c.xs()?)?;
    "column_stack" => |c| Tensor::column_stack(&c.xs()?)?;
    "block_diag" => |c| Tensor::block_diag(&c.xs()?)?;
    "meshgrid" => |c| match c.text("indexing") {
        Some("xy") => Tensor::meshgrid(&c.xs()?, Indexing::Xy)?,
        _ => Tensor::meshgrid(&c.xs()?, Indexing::Ij)?,
    };
    "kron" => |c| c.x(0)?.kron(c.x(1)?)?;
    "diag" => |c| c.x(0)?.diag(c.int_or("diagonal", 0)?)?;
    "diag_embed" => |c| c.x(0)?.diag_embed(c.int_or("offset", 0)?, c.int_or("dim1", -2)?, c.int_or("dim2", -1)?)?;
    "rot90" => |c| c.x(0)?.rot90(c.int_or("k", 1)?, c.dim_list("dims")?)?;
    "trace" => |c| c.x(0)?.trace()?;
    "unfold" => |c| c.x(0)?.unfold(c.dim("dimension")?, c.int("size")?, c.int("step")?)?;
    "movedim" => |c| c.x(0)?.movedim(c.dim_list("source")?, c.dim_list("destination")?)?;
    "repeat_interleave" => |c| {
        let repeats = c.operand(1, "repeats")?;
        match c.has("dim") {
            true => c.x(0)?.repeat_interleave(repeats, c.dim("dim")?)?,
            false => c.x(0)?.reshape([-1])?.repeat_interleave(repeats, 0)?,
        }
    };
    "resize_" => |c| c.in_place(|x, c| Ok(x.resize_(c.ints("size")?)?))?;
    "resize_as_" => |c| c.in_place(|x, c| Ok(x.resize_as_(c.x(1)?)?))?;
    "copy_" => |c| c.in_place(|x, c| Ok(x.copy_(c.x(1)?)?))?;
}

fn sections(c: &Call<'_>, key: &str) -> Answer<Sections> {
    match c.arg(key) {
        Some(Json::Array(list)) => Ok(Sections::List(list.iter().map(int).collect::<Answer<_>>()?)),
        _ => Ok(Sections::Each(c.int(key)?)),
    }
}

table! {
    /// By position or mask.
    pub(crate) fn positions;
    "index_fill" => |c| c.x(0)?.index_fill(c.x(1)?, c.operand(2, "value")?, c.dim("dim")?)?;
    "index_fill_" => |c| c.in_place(|x, c| Ok(x.index_fill_(c.x(1)?, c.operand(2, "value")?, c.dim("dim")?)?))?;
    "index_copy" => |c| c.x(0)?.index_copy(c.x(1)?, c.x(2)?, c.dim("dim")?)?;
    "scatter" => |c| match c.has("value") {
        true => c.x(0)?.scatter_value(c.x(1)?, c.scalar("value")?, c.dim("dim")?)?,
        false => c.x(0)?.scatter(c.x(1)?, c.x(2)?, c.dim("dim")?)?,
    };
    "scatter_" => |c| c.in_place(|x, c| Ok(x.scatter_(c.x(1)?, c.x(2)?, c.dim("dim")?)?))?;
    "scatter_reduce" => |c| {
        let reduce = match c.text("reduce") {
            Some("sum") => Reduce::Sum,
            Some("prod") => Reduce::Prod,
            Some("mean") => Reduce::Mean,
            Some("amax") => Reduce::Amax,
            Some("amin") => Reduce::Amin,
            other => return missing(format!("reduce {other:?}")),
        };
        c.x(0)?.scatter_reduce(c.x(1)?, c.x(2)?, c.dim("dim")?, reduce, c.flag("include_self", true))?
    };
    "masked_scatter" => |c| c.x(0)?.masked_scatter(c.x(1)?, c.x(2)?)?;
    "take" => |c| c.x(0)?.take(c.x(1)?)?;
    "put" => |c| {
        let (x, accumulate) = (c.x(0)?, c.flag("accumulate", false));
        let flat = x.reshape([-1])?.index_put(&[c.x(1)?.into()], c.x(2)?, accumulate)?;
        flat.reshape(x.sizes())?
    };
    "index_put" => |c| {
        let places: Vec<Index> = c.tensors("indices").into_iter().map(Index::from).collect();
        c.x(0)?.index_put(&places, c.operand(1, "values")?, c.flag("accumulate", false))?
    };
    "take_along_dim" => |c| c.x(0)?.take_along_dim(c.x(1)?, c.dim("dim")?)?;
    "setitem_" => |c| c.in_place(|x, c| Ok(x.index_put_(&indices(c)?, c.operand(1, "value")?, false)?))?;
}

table! {
    /// By element, and sums of products.
    pub(crate) fn arithmetic;
    "round" => |c| match c.has("decimals") {
        true => c.x(0)?.round_decimals(c.int("decimals")? as i32)?,
        false => c.x(0)?.round()?,
    };
    "logit" => |c| match c.arg("eps") {
        Some(_) => { let eps = c.float_or("eps", 0.0)?; c.x(0)?.clamp(eps, 1.0 - eps)?.logit()? }
        None => c.x(0)?.logit()?,
    };
    "clamp" => |c| { let x = c.x(0)?.clone(); clamped(x, c)? };
    "clamp_" => |c| c.in_place(|x, c| {
        match (bound(c, "min")?, bound(c, "max")?) {
            (Some(min), Some(max)) => x.clamp_(min, max)?,
            (Some(min), None) => x.clamp_min_(min)?,
            (None, Some(max)) => x.clamp_max_(max)?,
            (None, None) => return unwritable("clamp takes its bounds, clamp_min and clamp_max one"),
        };
        Ok(x)
    })?;
    "clamp_min" => |c| c.x(0)?.clamp_min(c.operand(1, "min")?)?;
    "clamp_max" => |c| c.x(0)?.clamp_max(c.operand(1, "max")?)?;
    "nan_to_num" => |c| { let (nan, high, low) = replacements(c)?; c.x(0)?.nan_to_num(nan, high, low)? };
    "nan_to_num_" => |c| c.in_place(|x, c| { let (nan, high, low) = replacements(c)?; Ok(x.nan_to_num_(nan, high, low)?) })?;
    "isposinf" => |c| c.x(0)?.isposinf()?;
    "isneginf" => |c| c.x(0)?.isneginf()?;
    "float_power" => |c| { let (x, y) = c.pair()?; x.float_power(y)? };
    "ldexp" => |c| { let (x, y) = c.pair()?; x.ldexp(y)? };
    "nextafter" => |c| c.x(0)?.nextafter(c.x(1)?)?;
    "isclose" => |c| c.x(0)?.isclose_with(c.x(1)?, tolerance(c)?)?;
    "allclose" => |c| json!(c.x(0)?.allclose_with(c.x(1)?, tolerance(c)?)?);
    "equal" => |c| json!(c.x(0)?.equal(c.x(1)?)?);
    "addcmul" => |c| c.x(0)?.addcmul(c.x(1)?, c.x(2)?, c.scalar_or("value", Scalar::Int(1))?)?;
    "addcmul_" => |c| c.in_place(|x, c| Ok(x.addcmul_(c.x(1)?, c.x(2)?, c.scalar_or("value", Scalar::Int(1))?)?))?;
    "addcdiv" => |c| c.x(0)?.addcdiv(c.x(1)?, c.x(2)?, c.scalar_or("value", Scalar::Int(1))?)?;
    "addcdiv_" => |c| c.in_place(|x, c| Ok(x.addcdiv_(c.x(1)?, c.x(2)?, c.scalar_or("value", Scalar::Int(1))?)?))?;
    "addr" => |c| { let [beta, alpha] = scales(c)?; c.x(0)?.addr(c.x(1)?, c.x(2)?, beta, alpha)? };
    "addbmm" => |c| { let [beta, alpha] = scales(c)?; c.x(0)?.addbmm(c.x(1)?, c.x(2)?, beta, alpha)? };
    "vdot" => |c| c.x(0)?.vdot(c.x(1)?)?;
    "inner" => |c| c.x(0)?.inner(c.x(1)?)?;
    "cross" => |c| c.x(0)?.cross(c.x(1)?, c.dim("dim")?)?;
    "dist" => |c| c.x(0)?.dist(c.x(1)?, c.float_or("p", 2.0)?)?;
    "einsum" => |c| match c.text("equation") {
        Some(equation) => Tensor::einsum(equation, &c.xs()?)?,
        None => return missing("einsum without an equation"),
    };
}

/// A bound of a clamp: a tensor or a number.
fn bound(c: &Call<'_>, key: &str) -> Answer<Option<Tensor>> {
    match c.tensor(key) {
        Some(tensor) => Ok(Some(tensor.clone())),
        None if c.has(key) => Ok(Some(c.number(&[key])?)),
        None => Ok(None),
    }
}

fn clamped(x: Tensor, c: &Call<'_>) -> Answer<Tensor> {
    match (bound(c, "min")?, bound(c, "max")?) {
        (Some(min), Some(max)) => Ok(x.clamp(min, max)?),
        (Some(min), None) => Ok(x.clamp_min(min)?),
        (None, Some(max)) => Ok(x.clamp_max(max)?),
        // Which bounds there are is in the name of the method, so none cannot be said.
        (None, None) => unwritable("clamp takes its bounds, clamp_min and clamp_max one"),
    }
}

fn replacements(c: &Call<'_>) -> Answer<(f64, Option<f64>, Option<f64>)> {
    let infinite = |key| if c.has(key) { c.float_or(key, 0.0).map(Some) } else { Ok(None) };
    Ok((c.float_or("nan", 0.0)?, infinite("posinf")?, infinite("neginf")?))
}

fn tolerance(c: &Call<'_>) -> Answer<Tolerance> {
    let Tolerance { rtol, atol, .. } = Tolerance::default();
    let equal_nan = c.flag("equal_nan", false);
    Ok(Tolerance { rtol: c.float_or("rtol", rtol)?, atol: c.float_or("atol", atol)?, equal_nan })
}

table! {
    /// Random numbers.
    pub(crate) fn random;
    "bernoulli" => |c| c.x(0)?.bernoulli()?;
    "bernoulli_" => |c| c.in_place(|x, c| Ok(x.bernoulli_(c.operand(1, "p")?)?))?;
    "uniform_" => |c| c.in_place(|x, c| Ok(x.uniform_(c.float_or("from", 0.0)?, c.float_or("to", 1.0)?)?))?;
    "normal_" => |c| c.in_place(|x, c| Ok(x.normal_(c.float_or("mean", 0.0)?, c.float_or("std", 1.0)?)?))?;
    "log_normal_" => |c| c.in_place(|x, c| Ok(x.log_normal_(c.float_or("mean", 1.0)?, c.float_or("std", 2.0)?)?))?;
    "cauchy_" => |c| c.in_place(|x, c| Ok(x.cauchy_(c.float_or("median", 0.0)?, c.float_or("sigma", 1.0)?)?))?;
    "exponential_" => |c| c.in_place(|x, c| Ok(x.exponential_(c.float_or("lambd", 1.0)?)?))?;
    "random_" => |c| c.in_place(|x, c| match (c.has("from"), c.has("to")) {
        (false, false) => Ok(x.random_(..)?),
        (false, true) => Ok(x.random_(..c.int("to")? as i64)?),
        _ => Ok(x.random_(c.int("from")? as i64..c.int("to")? as i64)?),
    })?;
    "normal" => |c| match (c.has("mean"), c.count()) {
        (true, _) => Tensor::normal(c.number(&["mean"])?, c.x(0)?)?,
        (false, 1) => Tensor::normal(c.x(0)?, c.number(&["std"])?)?,
        _ => Tensor::normal(c.x(0)?, c.x(1)?)?,
    };
}

table! {
    /// What is asked of a tensor, and its type.
    pub(crate) fn properties;
    "device" => |c| json!(c.x(0)?.device().to_string());
    "cpu" => |c| c.x(0)?.cpu();
    "is_cuda" => |c| json!(c.x(0)?.is_cuda());
    "get_device" => |c| json!(c.x(0)?.get_device());
    "is_pinned" => |c| json!(c.x(0)?.is_pinned());
    "is_shared" => |c| json!(c.x(0)?.is_shared());
    "is_sparse" => |c| json!(c.x(0)?.is_sparse());
    "is_sparse_csr" => |c| json!(c.x(0)?.is_sparse_csr());
    "is_complex" => |c| json!(c.x(0)?.is_complex());
    "bool_scalar" => |c| json!(c.x(0)?.is_nonzero()?);
    "type_as" => |c| c.x(0)?.type_as(c.x(1)?)?;
    "type" => |c| match c.dtype("dtype")? {
        Some(dtype) => c.x(0)?.to(dtype)?.outputs(),
        None => json!(c.x(0)?.type_name()).outputs(),
    };
    "can_cast" => |c| match (c.dtype("from_")?, c.dtype("to_")?) {
        (Some(from), Some(to)) => json!(from.can_cast(to)),
        _ => return missing("can_cast without two dtypes"),
    };
    "result_type" => |c| json!(c.x(0)?.result_type(c.operand(1, "other")?)?.torch_name());
    "data_ptr" => |c| json!(same_storage(c)?);
}

/// Does what `via` makes of a tensor share its memory?
fn same_storage(c: &mut Call<'_>) -> Answer<bool> {
    if c.text("via") == Some("abs_") {
        let mut before = std::ptr::null();
        c.in_place(|x, _| {
            before = x.data_ptr();
            Ok(x.abs_()?)
        })?;
        return Ok(c.after.drain(..).all(|x| x.data_ptr() == before));
    }
    let x = c.x(0)?;
    let reversed = || -> Vec<Option<&str>> {
        x.names().iter(x.ndim()).rev().map(|name| name.map(|name| name.as_str())).collect()
    };
    let via = match c.text("via").unwrap_or_default() {
        "self" => x.clone(),
        "detach" => x.detach(),
        "unname" => x.rename(None)?,
        "transpose" => x.transpose(0, -1)?,
        "flatten" => x.flatten(.., "all_")?,
        "align_to" => x.align_to(reversed())?,
        "clone" => copied(x)?,
        "neg" => x.neg()?,
        "contiguous" => x.contiguous()?,
        other => return missing(format!("data_ptr via {other}")),
    };
    Ok(via.data_ptr() == x.data_ptr())
}

/// The positions of what is true, a tensor for each dim: `where` of a condition alone.
pub(crate) fn positions_of(condition: &Tensor) -> Answer<Value> {
    let mut list = Vec::new();
    for x in condition.nonzero()?.unbind(1)? {
        let (dtype, data) = (x.dtype().torch_name(), x.to_vec::<i64>()?);
        list.push(json!({ "dtype": dtype, "shape": x.sizes(), "names": null, "data": data }));
    }
    Ok(Value::Plain(Json::Array(list)))
}
