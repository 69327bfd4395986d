//! Rules for the dtype of a result, given the dtype of the values; `None` if the op rejects it.

use namegrad::prelude::*;

/// The same dtype, for all dtypes.
pub(crate) fn any(dtype: DType) -> Option<DType> {
    Some(dtype)
}

/// The same dtype; rejects `bool`.
pub(crate) fn numeric(dtype: DType) -> Option<DType> {
    (dtype != DType::Bool).then_some(dtype)
}

/// Floats only.
pub(crate) fn floats(dtype: DType) -> Option<DType> {
    dtype.is_floating_point().then_some(dtype)
}

/// The dtype in which floats are computed: `f32` for half types.
pub(crate) fn computed(dtype: DType) -> Option<DType> {
    dtype.is_floating_point().then_some(if dtype == DType::F64 { DType::F64 } else { DType::F32 })
}

/// Floats; other dtypes are converted to floats.
pub(crate) fn to_float(dtype: DType) -> Option<DType> {
    Some(if dtype.is_floating_point() { dtype } else { DType::F32 })
}

/// Floats; integers are converted to floats, and `bool` is rejected.
pub(crate) fn to_number(dtype: DType) -> Option<DType> {
    to_float(dtype).filter(|_| dtype != DType::Bool)
}

/// `f64`.
pub(crate) fn doubles(_: DType) -> Option<DType> {
    Some(DType::F64)
}

/// Floats, or `i64` for all others.
pub(crate) fn sums(dtype: DType) -> Option<DType> {
    Some(if dtype.is_floating_point() { dtype } else { DType::I64 })
}

/// `f32`, or `f64` for all others.
pub(crate) fn weighted(dtype: DType) -> Option<DType> {
    Some(if dtype == DType::F32 { DType::F32 } else { DType::F64 })
}

/// `i64`.
pub(crate) fn indices(_: DType) -> Option<DType> {
    Some(DType::I64)
}

/// `i64`, for floats.
pub(crate) fn drawn(dtype: DType) -> Option<DType> {
    dtype.is_floating_point().then_some(DType::I64)
}

/// `i64`, for dtypes with an order.
pub(crate) fn places(dtype: DType) -> Option<DType> {
    (dtype != DType::Bool).then_some(DType::I64)
}

/// `bool`.
pub(crate) fn truth(_: DType) -> Option<DType> {
    Some(DType::Bool)
}

/// `bool`, but `u8` for `u8`.
pub(crate) fn truth_or_byte(dtype: DType) -> Option<DType> {
    Some(if dtype == DType::U8 { DType::U8 } else { DType::Bool })
}
