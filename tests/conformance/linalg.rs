//! Calls of `linalg` that differ in namegrad.

use crate::by_name;
use crate::call::{Answer, Call, IntoOutputs, Value, missing};
use crate::ops::table;
use namegrad::prelude::*;
use serde_json::Value as Json;

table! {
    /// Ops whose arguments differ from PyTorch's.
    pub(crate) fn different;
    "linalg.norm" => |c| norm(c, "ord")?;
    "linalg.lu" => |c| pivoted("lu", c)?;
    "linalg.lu_factor" => |c| pivoted("lu_factor", c)?;
    "linalg.lu_factor_ex" => |c| pivoted("lu_factor_ex", c)?;
    "lu_unpack" => |c| {
        if !(c.flag("unpack_data", true) && c.flag("unpack_pivots", true)) {
            return missing("a part of the factors");
        }
        by_name::required("lu_unpack", c)?
    };
    "linalg.lstsq" => |c| {
        c.text("driver"); // how it is computed
        by_name::required("lstsq", c)?
    };
    // `torch.lu_solve` has the right side first.
    "lu_solve" => |c| match c.x(2)?.dtype() {
        DType::I32 => c.x(1)?.lu_solve(c.x(2)?, c.x(0)?, ..)?.outputs(),
        _ => by_name::required("lu_solve", c)?,
    };
    // `torch.svd` gives `v`, not its transpose.
    "svd" => |c| {
        let options = SvdOptions::new().full_matrices(!c.flag("some", true));
        let (u, s, vt) = c.x(0)?.svd_with(.., options)?;
        match c.flag("compute_uv", true) {
            true => vec![u, s, vt.mt()?],
            false => return missing("`compute_uv`"),
        }
    };
}

/// Elimination without pivoting is for other devices in PyTorch.
fn pivoted(op: &str, c: &mut Call<'_>) -> Answer<Vec<Value>> {
    if c.flag("pivot", true) { by_name::required(op, c) } else { missing("`pivot`") }
}

/// A norm of vectors or of matrices, which are two functions here.
pub(crate) fn norm(c: &Call<'_>, key: &str) -> Answer<Vec<Value>> {
    let keeps = c.flag("keepdim", false);
    let cast = c.x(0)?.to(c.dtype("dtype")?.unwrap_or(c.x(0)?.dtype()))?;
    let dims = if c.has("dim") { Some(c.ints("dim")?) } else { None };
    let count = dims.as_ref().map_or(cast.ndim(), Vec::len);
    let over = dims.clone().map_or(namegrad::core::Dims::ALL, namegrad::core::Dims::from);
    let over = if keeps { keep(over) } else { over };
    let order = match c.arg(key) {
        None => return Ok(cast.vector_norm(over)?.outputs()),
        Some(Json::String(text)) if text == "fro" => Some(MatrixNorm::Frobenius),
        Some(Json::String(text)) if text == "nuc" => Some(MatrixNorm::Nuclear),
        Some(_) => None,
    };
    if order.is_none() && count == 1 {
        let options = VectorNormOptions::new().ord(c.float_or(key, 2.0)?);
        return Ok(cast.vector_norm_with(over, options)?.outputs());
    }
    if dims.is_none() && cast.ndim() > 2 {
        let all: Vec<usize> = (0..cast.ndim()).collect();
        return Ok(cast.matrix_norm(all)?.outputs());
    }
    let order = match order {
        Some(order) => order,
        None => MatrixNorm::Of(c.float_or(key, 2.0)?),
    };
    if count > 2 {
        return missing("a norm over more dims");
    }
    Ok(cast.matrix_norm_with(over, MatrixNormOptions::new().ord(order))?.outputs())
}
