//! When two results count as equal.

use crate::plain::Plain;
use half::{bf16, f16};
use namegrad::prelude::*;

/// The allowed relative error: arithmetic is accurate to a few units in the last place, and half types are
/// rounded once.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-14,
        DType::F32 => 1e-6,
        DType::F16 => 2.0f64.powi(-10),
        DType::BF16 => 2.0f64.powi(-7),
        _ => 0.0,
    }
}

/// The nearest number in this dtype.
fn rounded(x: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F16 => f16::from_f64(x).to_f64(),
        DType::BF16 => bf16::from_f64(x).to_f64(),
        DType::F32 => f64::from(x as f32),
        DType::Bool => f64::from(x != 0.0),
        DType::U8 => f64::from(x as i64 as u8),
        DType::I8 => f64::from(x as i64 as i8),
        DType::I16 | DType::I32 | DType::I64 => x.trunc(),
        DType::F64 => x,
    }
}

/// Below this, numbers of a dtype have fewer digits.
fn smallest(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::MIN_POSITIVE,
        DType::F16 => f16::MIN_POSITIVE_SUBNORMAL.to_f64(),
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

/// Whether sizes are the same and numbers differ by no more than the tolerance of the dtype.
#[track_caller]
pub(crate) fn assert_close(got: &Tensor, want: &Plain, scale: f64, what: &dyn Fn() -> String) {
    assert_eq!(got.sizes(), want.sizes, "sizes of {}", what());
    let dtype = got.dtype();
    let tolerance = tolerance(dtype);
    for (at, (got, exact)) in
        got.to(DType::F64).unwrap().to_vec::<f64>().unwrap().into_iter().zip(&want.data).enumerate()
    {
        let want = rounded(*exact, dtype);
        let allowed = tolerance * (want.abs() + scale) + if tolerance > 0.0 { smallest(dtype) } else { 0.0 };
        let equal = got == want || got.is_nan() && want.is_nan() || (got - want).abs() <= allowed;
        assert!(equal, "{}: element {at} is {got:e}, the reference {want:e}", what());
    }
}

/// Whether sizes, names, dtype and bits are the same. All NaNs are equal.
pub(crate) fn identical(a: &Tensor, b: &Tensor) -> bool {
    let bits = |x: &Tensor| -> Vec<u64> {
        if x.dtype().is_floating_point() {
            let bits = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
            x.to_vec::<f64>().unwrap().into_iter().map(bits).collect()
        } else {
            x.to(DType::I64).unwrap().to_vec::<i64>().unwrap().into_iter().map(|x| x as u64).collect()
        }
    };
    a.dtype() == b.dtype() && a.shape() == b.shape() && bits(a) == bits(b)
}
