//! The cases of the fixtures and the tensors that they describe. The format is in `tests/fixtures/README.md`.

use namegrad::core::{Element, NamedTensor, Scalar};
use namegrad::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use std::io::Read;
use std::path::Path;

/// A call and its expected result.
#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) op: String,
    #[serde(default)]
    pub(crate) inputs: Vec<TensorSpec>,
    #[serde(default)]
    pub(crate) args: Map<String, Json>,
    pub(crate) grad_outputs: Option<Vec<TensorSpec>>,
    #[serde(default)]
    pub(crate) clone_self: bool,
    #[serde(default)]
    pub(crate) grads: Vec<Vec<Option<TensorSpec>>>,
    pub(crate) expect: Expect,
    #[serde(default)]
    pub(crate) tol: Tolerance,
    pub(crate) deviation: Option<String>,
}

/// The expected result.
#[derive(Deserialize)]
pub(crate) struct Expect {
    pub(crate) error: Option<ExpectedError>,
    #[serde(default)]
    pub(crate) outputs: Vec<Output>,
    pub(crate) inputs_after: Option<Vec<TensorSpec>>,
    pub(crate) grads: Option<Vec<Option<TensorSpec>>>,
    #[serde(default)]
    pub(crate) trajectory: Vec<Checkpoint>,
    #[serde(default)]
    pub(crate) lrs: Vec<Vec<f64>>,
    #[serde(default)]
    pub(crate) momentums: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
pub(crate) struct ExpectedError {
    pub(crate) kind: String,
    pub(crate) phase: Option<String>,
    pub(crate) step: Option<usize>,
}

/// The parameters after some steps of an optimizer.
#[derive(Deserialize)]
pub(crate) struct Checkpoint {
    pub(crate) step: usize,
    pub(crate) params: Vec<TensorSpec>,
    /// The loss that the step returns, if the optimizer evaluates it.
    pub(crate) loss: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Output {
    Tensor(TensorSpec),
    Plain(Json),
}

/// A tensor as text. Integers are not read as `f64`, which would round large ones.
#[derive(Deserialize)]
pub(crate) struct TensorSpec {
    pub(crate) dtype: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) names: Option<Vec<Option<String>>>,
    pub(crate) data: Option<Vec<Json>>,
    #[serde(default)]
    pub(crate) requires_grad: bool,
    memory_order: Option<Vec<usize>>,
    pub(crate) range: Option<[Json; 2]>,
}

/// `|got - want| <= atol + rtol |want|`.
#[derive(Deserialize, Clone, Copy, Default)]
pub(crate) struct Tolerance {
    pub(crate) rtol: f64,
    pub(crate) atol: f64,
}

/// A number in the format of the fixtures: a float if it has a fraction or an exponent, an integer otherwise.
/// NaN and the infinities are strings.
pub(crate) fn scalar(number: &Json) -> Option<Scalar> {
    match number {
        Json::Bool(value) => Some(Scalar::Bool(*value)),
        Json::Number(value) => value.as_i64().map(Scalar::Int).or_else(|| value.as_f64().map(Scalar::Float)),
        Json::String(text) => match text.as_str() {
            "nan" => Some(Scalar::Float(f64::NAN)),
            "inf" => Some(Scalar::Float(f64::INFINITY)),
            "-inf" => Some(Scalar::Float(f64::NEG_INFINITY)),
            _ => None,
        },
        _ => None,
    }
}

impl TensorSpec {
    /// The dtype. The fixtures use only dtypes that exist here.
    pub(crate) fn dtype(&self) -> DType {
        DType::from_torch_name(&self.dtype).expect("a dtype of the fixtures")
    }

    /// The tensor, as a leaf with the strides of the memory order.
    pub(crate) fn tensor(&self) -> Result<Tensor> {
        let mut value = self.value()?;
        if let Some(order) = &self.memory_order {
            let mut inverse = vec![0; order.len()];
            order.iter().enumerate().for_each(|(to, from)| inverse[*from] = to);
            value = value.permute(order.clone())?.deep_clone()?.permute(inverse)?;
        }
        let mut tensor = Tensor::constant(value);
        tensor.requires_grad_(self.requires_grad)?;
        Ok(tensor)
    }

    fn value(&self) -> Result<NamedTensor> {
        match self.dtype() {
            DType::Bool => self.elements::<bool>(),
            DType::U8 => self.elements::<u8>(),
            DType::I8 => self.elements::<i8>(),
            DType::I16 => self.elements::<i16>(),
            DType::I32 => self.elements::<i32>(),
            DType::I64 => self.elements::<i64>(),
            DType::F16 => self.elements::<half::f16>(),
            DType::BF16 => self.elements::<half::bf16>(),
            DType::F32 => self.elements::<f32>(),
            DType::F64 => self.elements::<f64>(),
        }
    }

    fn elements<T: Element>(&self) -> Result<NamedTensor> {
        let numbers = self.data.iter().flatten();
        let data: Vec<T> =
            numbers.map(|number| T::from_scalar(scalar(number).expect("a number of the fixtures"))).collect();
        let name = |dim: usize| self.names.as_ref().and_then(|names| names[dim].as_deref());
        let shape: Vec<(Option<&str>, usize)> =
            self.shape.iter().enumerate().map(|(dim, size)| (name(dim), *size)).collect();
        NamedTensor::from_slice(&data, shape)
    }
}

/// The cases of one file, `.jsonl` or `.jsonl.gz`.
pub(crate) fn read(path: &Path) -> Vec<Case> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    let read = match path.extension() {
        Some(extension) if extension == "gz" => {
            flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text)
        }
        _ => (&bytes[..]).read_to_string(&mut text),
    };
    read.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{}:{}: {error}", path.display(), number + 1))
        })
        .collect()
}
