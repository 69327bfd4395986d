//! Compares results with the expected ones. `Err` says what differs.

use crate::call::Value;
use crate::case::{Output, TensorSpec, Tolerance, scalar};
use namegrad::ErrorKind;
use namegrad::core::{NamedTensor, Scalar};
use serde_json::Value as Json;

/// `Ok`, or what differs.
pub(crate) type Difference = Result<(), String>;

/// Compares all outputs of a call.
pub(crate) fn outputs(got: &[Value], want: &[Output], tol: Tolerance) -> Difference {
    if got.len() != want.len() {
        return Err(format!("{} outputs, expected {}", got.len(), want.len()));
    }
    for (number, (got, want)) in got.iter().zip(want).enumerate() {
        let at = |difference: String| format!("output {number}: {difference}");
        match (got, want) {
            (Value::Tensor(got), Output::Tensor(want)) => {
                tensor(got.value(), want, tol).map_err(at)?;
                if got.requires_grad() != want.requires_grad {
                    return Err(at(format!("requires_grad is {}", got.requires_grad())));
                }
            }
            (Value::Plain(got), Output::Plain(want)) => plain(got, want, tol).map_err(at)?,
            (Value::Tensor(got), Output::Plain(want)) => {
                return Err(at(format!("a tensor {got:?}, expected {want}")));
            }
            (Value::Plain(got), Output::Tensor(_)) => {
                return Err(at(format!("{got}, expected a tensor")));
            }
        }
    }
    Ok(())
}

/// Compares one tensor: dtype, sizes, names, values.
pub(crate) fn tensor(got: &NamedTensor, want: &TensorSpec, tol: Tolerance) -> Difference {
    named(got, want, want.names.as_deref(), tol)
}

fn named(
    got: &NamedTensor,
    want: &TensorSpec,
    wanted: Option<&[Option<String>]>,
    tol: Tolerance,
) -> Difference {
    if got.dtype() != want.dtype() {
        return Err(format!("dtype {}, expected {}", got.dtype(), want.dtype));
    }
    if got.sizes() != want.shape {
        return Err(format!("sizes {:?}, expected {:?}", got.sizes(), want.shape));
    }
    let names: Vec<Option<&str>> =
        got.names().iter(got.ndim()).map(|name| name.map(|name| name.as_str())).collect();
    let expected: Vec<Option<&str>> = match wanted {
        Some(names) => names.iter().map(Option::as_deref).collect(),
        None => vec![None; got.ndim()],
    };
    if names != expected {
        return Err(format!("names {names:?}, expected {expected:?}"));
    }
    values(got, want, tol)
}

fn values(got: &NamedTensor, want: &TensorSpec, tol: Tolerance) -> Difference {
    let read = |error: namegrad::Error| error.to_string();
    let got: Vec<Scalar> = if got.dtype().is_floating_point() {
        got.to_vec::<f64>().map_err(read)?.into_iter().map(Scalar::Float).collect()
    } else {
        got.to(namegrad::core::DType::I64)
            .and_then(|got| got.to_vec::<i64>())
            .map_err(read)?
            .into_iter()
            .map(Scalar::Int)
            .collect()
    };
    if let Some([low, high]) = &want.range {
        let bound = |number: &Json| scalar(number).map_or(f64::NAN, Scalar::to_f64);
        let range = bound(low)..=bound(high);
        if let Some(outside) = got.iter().find(|value| !range.contains(&value.to_f64())) {
            return Err(format!("{outside} is not in {range:?}"));
        }
    }
    let Some(data) = &want.data else { return Ok(()) };
    for (at, (got, want)) in got.iter().zip(data).enumerate() {
        let equal = scalar(want).is_some_and(|want| number(*got, want, tol));
        if !equal {
            return Err(format!("element {at} is {got}, expected {want}"));
        }
    }
    Ok(())
}

/// Integers and bools must be equal; floats may differ by the tolerance, and NaN equals NaN.
fn number(got: Scalar, want: Scalar, tol: Tolerance) -> bool {
    match (got, want) {
        (Scalar::Int(got), Scalar::Int(want)) => got == want,
        (Scalar::Int(got), Scalar::Bool(want)) => got == i64::from(want),
        (Scalar::Bool(got), Scalar::Bool(want)) => got == want,
        (got, want) => {
            let (got, want) = (got.to_f64(), want.to_f64());
            got == want
                || got.is_nan() && want.is_nan()
                || want.is_finite() && (got - want).abs() <= tol.atol + tol.rtol * want.abs()
        }
    }
}

fn plain(got: &Json, want: &Json, tol: Tolerance) -> Difference {
    let equal = match (got, want) {
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| plain(a, b, tol).is_ok())
        }
        _ => match (scalar(got), scalar(want)) {
            (Some(got), Some(want)) => number(got, want, tol),
            _ => got == want,
        },
    };
    if equal { Ok(()) } else { Err(format!("{got}, expected {want}")) }
}

/// Compares the gradients of the inputs. They have no names, whether or not the cotangent has. A missing
/// gradient and a zero gradient are equal.
pub(crate) fn gradients(
    got: &[Option<NamedTensor>],
    want: &[Option<TensorSpec>],
    tol: Tolerance,
) -> Difference {
    if got.len() != want.len() {
        return Err(format!("gradients of {} inputs, expected those of {}", got.len(), want.len()));
    }
    for (number, (got, want)) in got.iter().zip(want).enumerate() {
        let at = |difference: String| format!("gradient of input {number}: {difference}");
        let all_zero = |x: &NamedTensor| x.to_vec::<f64>().is_ok_and(|x| x.iter().all(|x| *x == 0.0));
        match (got, want) {
            (Some(got), Some(want)) => named(got, want, None, tol).map_err(at)?,
            (Some(got), None) if !all_zero(got) => return Err(at("not expected".into())),
            (None, Some(_)) => return Err(at("missing".into())),
            _ => {}
        }
    }
    Ok(())
}

/// Whether dtypes, sizes and elements are the same; names are ignored.
pub(crate) fn same_values(got: &[Value], want: &[Value]) -> Difference {
    if got.len() != want.len() {
        return Err(format!("{} outputs and {}", got.len(), want.len()));
    }
    for (number, pair) in got.iter().zip(want).enumerate() {
        let same = match pair {
            (Value::Tensor(a), Value::Tensor(b)) => {
                let elements = |x: &NamedTensor| {
                    format!("{:?}", x.to(namegrad::core::DType::F64).and_then(|x| x.to_vec::<f64>()))
                };
                let (a, b) = (a.value(), b.value());
                a.dtype() == b.dtype() && a.sizes() == b.sizes() && elements(a) == elements(b)
            }
            (Value::Plain(a), Value::Plain(b)) => a == b,
            _ => false,
        };
        if !same {
            return Err(format!("output {number} has other values"));
        }
    }
    Ok(())
}

/// The name of a kind of error in the fixtures.
pub(crate) fn kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NameMismatch => "name_mismatch",
        ErrorKind::Misaligned => "misaligned",
        ErrorKind::NameNotFound => "name_not_found",
        ErrorKind::DuplicateName => "duplicate_name",
        ErrorKind::InvalidName => "invalid_name",
        ErrorKind::UnnamedNotAllowed => "unnamed_not_allowed",
        ErrorKind::Ellipsis => "ellipsis",
        ErrorKind::NameCount => "name_count",
        ErrorKind::RefineConflict => "refine_conflict",
        ErrorKind::OutNames => "out_names",
        ErrorKind::Shape => "shape",
        ErrorKind::DimRange => "dim_range",
        ErrorKind::DType => "dtype",
        ErrorKind::Index => "index",
        ErrorKind::Value => "value",
        ErrorKind::Autograd => "autograd",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Device => "device",
        _ => "other",
    }
}
