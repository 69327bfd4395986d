//! A tensor inside other data, through serde: `{dtype, sizes, names, data}`.
//!
//! In human-readable formats, `data` is a list of the elements in row-major order. NaN and infinities are the
//! strings `"nan"`, `"inf"` and `"-inf"`, because JSON has no such numbers. In binary formats, `data` is the
//! bytes of the elements in little-endian order.

use super::NamedTensor;
use crate::dtype::{Category, DType, Element, Scalar, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::names::{Name, Names};
use crate::shape::Shape;
use crate::sizes::checked_numel;
use crate::tensor::range::fits;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::ser::{Error as _, Serializer};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

const OP: &str = "deserialize";

impl Serialize for NamedTensor {
    /// `{dtype, sizes, names, data}`; `names` is `null` if no dim has one.
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename = "NamedTensor")]
        struct Parts<'a> {
            dtype: DType,
            sizes: &'a [usize],
            names: Option<Vec<Option<Name>>>,
            data: DenseElements<'a>,
        }
        let names = self.has_names().then(|| crate::list(self.names().iter(self.ndim())));
        let dense = self.contiguous().map_err(S::Error::custom)?;
        Parts { dtype: self.dtype(), sizes: self.sizes(), names, data: DenseElements(&dense) }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for NamedTensor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<NamedTensor, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename = "NamedTensor")]
        struct Parts {
            dtype: DType,
            sizes: Vec<usize>,
            names: Option<Vec<Option<Name>>>,
            data: ReadElements,
        }
        let Parts { dtype, sizes, names, data } = Parts::deserialize(deserializer)?;
        let checked = || {
            let shape = checked_shape(sizes, names)?;
            match data {
                ReadElements::List(list) => tensor_of_list(shape, dtype, &list),
                ReadElements::Bytes(bytes) => tensor_of_bytes(shape, dtype, &bytes),
            }
        };
        checked().map_err(|error: Error| serde::de::Error::custom(error.message()))
    }
}

/// The elements of a dense tensor.
struct DenseElements<'a>(&'a NamedTensor);

impl Serialize for DenseElements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            let numbers = numbers(self.0).map_err(S::Error::custom)?;
            return serializer.collect_seq(numbers.into_iter().map(Item::new));
        }
        let mut bytes = Vec::with_capacity(self.0.nbytes());
        self.0.write_bytes(&mut bytes).map_err(S::Error::custom)?;
        serializer.serialize_bytes(&bytes)
    }
}

/// The elements of a dense tensor as plain numbers.
fn numbers(x: &NamedTensor) -> Result<Vec<Scalar>> {
    let mut numbers = Vec::with_capacity(x.numel());
    if x.dtype() == DType::Bool {
        for value in x.as_slice::<bool>()? {
            numbers.push(Scalar::Bool(*value));
        }
        return Ok(numbers);
    }
    let x = x.to(x.dtype().wide())?;
    dispatch!(x.dtype(), wide T => for value in x.as_slice::<T>()? {
        numbers.push(value.to_scalar());
    });
    Ok(numbers)
}

/// An element in a list. Half types and `f32` are written as `f64`, which represents them exactly.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Item<'a> {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Cow<'a, str>),
}

const NOT_FINITE: [(&str, f64); 3] = [("nan", f64::NAN), ("inf", f64::INFINITY), ("-inf", f64::NEG_INFINITY)];

impl Item<'_> {
    fn new(value: Scalar) -> Item<'static> {
        match value {
            Scalar::Bool(value) => Item::Bool(value),
            Scalar::Int(value) => Item::Int(value),
            Scalar::Float(value) if value.is_finite() => Item::Float(value),
            Scalar::Float(value) if value.is_nan() => Item::Text("nan".into()),
            Scalar::Float(value) => Item::Text(if value > 0.0 { "inf" } else { "-inf" }.into()),
        }
    }

    /// The number, if it is an element of `dtype`.
    fn number(&self, dtype: DType) -> Option<Scalar> {
        let number = match (dtype.category(), self) {
            (Category::Bool, Item::Bool(value)) => Scalar::Bool(*value),
            (Category::Integer, Item::Int(value)) => Scalar::Int(*value),
            (Category::Float, Item::Int(value)) => Scalar::Int(*value),
            (Category::Float, Item::Float(value)) => Scalar::Float(*value),
            (Category::Float, Item::Text(text)) => {
                Scalar::Float(NOT_FINITE.iter().find(|(known, _)| known == text)?.1)
            }
            _ => return None,
        };
        fits(number, dtype).then_some(number)
    }
}

/// The elements as they were read, before the dtype is checked.
enum ReadElements {
    List(Vec<Item<'static>>),
    Bytes(Vec<u8>),
}

impl<'de> Deserialize<'de> for ReadElements {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<ReadElements, D::Error> {
        if deserializer.is_human_readable() {
            return Vec::deserialize(deserializer).map(ReadElements::List);
        }
        deserializer.deserialize_byte_buf(Bytes).map(ReadElements::Bytes)
    }
}

struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a tensor")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> std::result::Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> std::result::Result<Vec<u8>, E> {
        Ok(bytes)
    }

    /// Some formats represent bytes as a list.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Vec<u8>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = list.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes)
    }
}

fn checked_shape(sizes: Vec<usize>, names: Option<Vec<Option<Name>>>) -> Result<Shape> {
    let Some(names) = names else { return Ok(Shape { sizes: sizes.into(), names: Names::none() }) };
    if names.len() != sizes.len() {
        let message = format!("{} names for a tensor of sizes {sizes:?}", names.len());
        return Err(Error::new(ErrorKind::Format, OP, message));
    }
    Ok(Shape { names: Names::new(OP, names)?, sizes: sizes.into() })
}

fn tensor_of_list(shape: Shape, dtype: DType, list: &[Item<'_>]) -> Result<NamedTensor> {
    let mut numbers = Vec::with_capacity(list.len());
    for item in list {
        let Some(number) = item.number(dtype) else {
            return Err(Error::new(ErrorKind::Format, OP, format!("{item:?} is no element of {dtype}")));
        };
        numbers.push(number);
    }
    NamedTensor::of_numbers("from_slice", &numbers, shape, dtype)
}

fn tensor_of_bytes(shape: Shape, dtype: DType, bytes: &[u8]) -> Result<NamedTensor> {
    let numel = checked_numel(OP, &shape.sizes, dtype.itemsize())?;
    if bytes.len() != numel * dtype.itemsize() {
        let message = format!("{} bytes do not fill sizes {:?} of {dtype}", bytes.len(), shape.sizes);
        return Err(Error::new(ErrorKind::Format, OP, message));
    }
    NamedTensor::read_bytes(OP, shape, dtype, &mut &bytes[..], &|error| {
        Error::new(ErrorKind::Format, OP, format!("{error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<NamedTensor> {
        let mut samples: Vec<NamedTensor> = DType::ALL
            .into_iter()
            .map(|dtype| {
                NamedTensor::arange(-3, 3, 1, DType::I64)
                    .unwrap()
                    .to(dtype)
                    .unwrap()
                    .unflatten(0, [("N", 2), ("C", 3)])
                    .unwrap()
            })
            .collect();
        let odd = [0.1, f32::MAX, 1e-45, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        samples.push(NamedTensor::new(odd).unwrap());
        samples.push(NamedTensor::new(odd.map(|x| f64::from(x) / 3.0)).unwrap());
        samples.push(NamedTensor::from_slice(&[i64::MIN, i64::MAX], [2]).unwrap());
        samples.push(samples[3].reversed_dims().rename([Some("C"), None]).unwrap());
        samples.push(NamedTensor::zeros([3, 0]).unwrap());
        samples.push(NamedTensor::ones(()).unwrap());
        samples
    }

    fn assert_same(x: &NamedTensor, y: &NamedTensor) {
        assert_eq!((x.dtype(), x.sizes(), x.names()), (y.dtype(), y.sizes(), y.names()));
        let mut bytes = [Vec::new(), Vec::new()];
        x.write_bytes(&mut bytes[0]).unwrap();
        y.write_bytes(&mut bytes[1]).unwrap();
        assert_eq!(bytes[0], bytes[1], "{x}");
    }

    #[test]
    fn json_gives_back_every_bit() {
        for x in samples() {
            assert_same(&x, &serde_json::from_str(&serde_json::to_string(&x).unwrap()).unwrap());
        }
    }

    #[test]
    fn a_binary_format_gives_back_every_bit() {
        for x in samples() {
            let mut bytes = Vec::new();
            ciborium::into_writer(&x, &mut bytes).unwrap();
            assert_same(&x, &ciborium::from_reader(&bytes[..]).unwrap());
        }
    }

    #[test]
    fn reads_as_one_would_write_it() {
        let text = r#"{"dtype":"f32","sizes":[2,2],"names":["N",null],"data":[1,2.5,"-inf",-0.0]}"#;
        let x: NamedTensor = serde_json::from_str(text).unwrap();
        assert_eq!(format!("{x:?}"), "float32[N=2, ?=2]");
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.5, f32::NEG_INFINITY, 0.0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (text, message) in [
            (r#"{"dtype":"f32","sizes":[3],"names":null,"data":[1,2]}"#, "do not fill"),
            (r#"{"dtype":"f32","sizes":[2],"names":["N","C"],"data":[1,2]}"#, "2 names"),
            (r#"{"dtype":"f32","sizes":[1,1],"names":["N","N"],"data":[1]}"#, "duplicate names"),
            (r#"{"dtype":"f32","sizes":[1],"names":["no name"],"data":[1]}"#, "Invalid name"),
            (r#"{"dtype":"f32","sizes":[1],"names":null,"data":["one"]}"#, "no element of float32"),
            (r#"{"dtype":"u8","sizes":[1],"names":null,"data":[256]}"#, "no element of uint8"),
            (r#"{"dtype":"i32","sizes":[1],"names":null,"data":[1.5]}"#, "no element of int32"),
            (r#"{"dtype":"bool","sizes":[1],"names":null,"data":[1]}"#, "no element of bool"),
            (r#"{"dtype":"f32","sizes":[9223372036854775807,4],"names":null,"data":[]}"#, "do not fit"),
            (r#"{"dtype":"c64","sizes":[1],"names":null,"data":[1]}"#, "unknown variant"),
        ] {
            let error = serde_json::from_str::<NamedTensor>(text).unwrap_err().to_string();
            assert!(error.contains(message), "{error} does not say '{message}'");
        }
    }
}
