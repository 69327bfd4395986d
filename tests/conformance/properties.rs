//! Properties of a tensor, its type and its device.

use crate::call::{Answer, Call, IntoOutputs, Value, copied, missing};
use crate::ops::table;
use namegrad::core::Device;
use namegrad::prelude::*;
use serde_json::{Value as Json, json};

table! {
    /// Properties of a tensor, and its type.
    pub(crate) fn properties;
    "device" => |c| json!(c.x(0)?.device().to_string());
    "allclose" => |c| {
        let mut close = IscloseOptions::new().equal_nan(c.flag("equal_nan", false));
        (close.rtol, close.atol) = (c.float_or("rtol", close.rtol)?, c.float_or("atol", close.atol)?);
        json!(c.x(0)?.allclose_with(c.x(1)?, close)?)
    };
    "equal" => |c| json!(c.x(0)?.equal(c.x(1)?)?);
    "cpu" => |c| c.x(0)?.cpu()?;
    "is_cuda" => |c| json!(c.x(0)?.is_cuda());
    "get_device" => |c| json!(match c.x(0)?.device() { Device::Cuda(number) => number as i32, _ => -1 });
    "is_pinned" => |c| { c.x(0)?; json!(false) }; // without a GPU there is no page-locked memory
    "is_shared" => |c| json!(c.x(0)?.is_shared());
    "is_sparse" => |c| json!(c.x(0)?.is_sparse());
    "is_sparse_csr" => |c| json!(c.x(0)?.is_sparse());
    "is_complex" => |c| json!(c.x(0)?.is_complex());
    "bool_scalar" => |c| json!(c.x(0)?.is_nonzero()?);
    "type" => |c| match c.dtype("dtype")? {
        Some(dtype) => c.x(0)?.to(dtype)?.outputs(),
        None => json!(c.x(0)?.type_name()).outputs(),
    };
    "can_cast" => |c| match (c.dtype("from_")?, c.dtype("to_")?) {
        (Some(from), Some(to)) => json!(from.can_cast(to)),
        _ => return missing("can_cast without two dtypes"),
    };
    "promote_types" => |c| match (c.dtype("type1")?, c.dtype("type2")?) {
        (Some(a), Some(b)) => json!(a.promote(b).torch_name()),
        _ => return missing("promote_types without two dtypes"),
    };
    "result_type" => |c| json!(c.x(0)?.result_type(c.operand(1, "other")?)?.torch_name());
    "data_ptr" => |c| json!(same_storage(c)?);
}

/// Whether the result of `via` shares memory with its tensor.
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

/// The positions of true elements, a tensor for each dim: `where` with only a condition.
pub(crate) fn positions_of(condition: &Tensor) -> Answer<Value> {
    let mut list = Vec::new();
    for x in condition.nonzero()?.unbind(1)? {
        let (dtype, data) = (x.dtype().torch_name(), x.to(DType::I64)?.to_vec::<i64>()?);
        list.push(json!({ "dtype": dtype, "shape": x.sizes(), "names": null, "data": data }));
    }
    Ok(Value::Plain(Json::Array(list)))
}
