//! Casts to other dtypes. The gradient is cast back.

use crate::Tensor;
use namegrad_macros::composed;

composed! { cast;
    //! # Other dtypes
    /// The tensor cast to `dtype`. Casting floats to integers drops the fraction, and casting to `bool` makes
    /// everything but 0 `true`.
    to (x; dtype: DType);
    /// The tensor cast to the dtype of `other`.
    type_as (x, other) names keeps, other: free;
    /// The tensor cast to `bool`: whether each element is nonzero.
    bool (x);
    /// The tensor cast to `u8`.
    byte (x);
    /// The tensor cast to `i8`.
    char (x);
    /// The tensor cast to `i16`.
    short (x);
    /// The tensor cast to `i32`.
    int (x);
    /// The tensor cast to `i64`.
    long (x);
    /// The tensor cast to `f16`.
    half (x);
    /// The tensor cast to `bf16`.
    bfloat16 (x);
    /// The tensor cast to `f32`.
    float (x);
    /// The tensor cast to `f64`.
    double (x);
}

mod kernels {
    use super::*;
    use crate::observe::starting;
    use crate::op::Op;
    use crate::vmap::value_of;
    use namegrad_core::{DType, Result};

    #[track_caller]
    pub(super) fn to(x: &Tensor, dtype: DType) -> Result<Tensor> {
        if x.dtype() == dtype && !x.value().is_number() {
            return Ok(x.clone());
        }
        starting();
        let value = value_of("to", x, &|| x.value().to(dtype), &|x| to(x, dtype))?;
        Ok(Op::new("to", value).input(x, |g, _| Ok(g.clone())).output())
    }

    #[track_caller]
    pub(super) fn type_as(x: &Tensor, other: &Tensor) -> Result<Tensor> {
        to(x, other.dtype())
    }

    #[track_caller]
    pub(super) fn bool(x: &Tensor) -> Result<Tensor> {
        to(x, DType::Bool)
    }

    #[track_caller]
    pub(super) fn byte(x: &Tensor) -> Result<Tensor> {
        to(x, DType::U8)
    }

    #[track_caller]
    pub(super) fn char(x: &Tensor) -> Result<Tensor> {
        to(x, DType::I8)
    }

    #[track_caller]
    pub(super) fn short(x: &Tensor) -> Result<Tensor> {
        to(x, DType::I16)
    }

    #[track_caller]
    pub(super) fn int(x: &Tensor) -> Result<Tensor> {
        to(x, DType::I32)
    }

    #[track_caller]
    pub(super) fn long(x: &Tensor) -> Result<Tensor> {
        to(x, DType::I64)
    }

    #[track_caller]
    pub(super) fn half(x: &Tensor) -> Result<Tensor> {
        to(x, DType::F16)
    }

    #[track_caller]
    pub(super) fn bfloat16(x: &Tensor) -> Result<Tensor> {
        to(x, DType::BF16)
    }

    #[track_caller]
    pub(super) fn float(x: &Tensor) -> Result<Tensor> {
        to(x, DType::F32)
    }

    #[track_caller]
    pub(super) fn double(x: &Tensor) -> Result<Tensor> {
        to(x, DType::F64)
    }
}
