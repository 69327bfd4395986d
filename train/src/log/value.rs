//! [`Record`], an entry of a log, and the arguments [`Measurement`] and [`Step`] of the methods that log.

use super::Histogram;
use namegrad_autograd::Tensor;
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use namegrad_io::text::shapes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;

/// An entry of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The step that the entry belongs to; 0 for hyperparameters.
    pub step: u64,
    /// The name, such as `loss/train`; `hparams` for hyperparameters.
    pub name: String,
    /// The value.
    pub content: Content,
}

/// The value of an entry.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// A number.
    Scalar(f64),
    /// The distribution of the elements of a tensor.
    Histogram(Histogram),
    /// A picture.
    Image(Image),
    /// A text, in Markdown.
    Text(String),
    /// Hyperparameters by name.
    Hparams(BTreeMap<String, Hparam>),
}

/// A picture as a PNG file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// In pixels.
    pub width: usize,
    /// In pixels.
    pub height: usize,
    /// The content of the file.
    pub png: Vec<u8>,
}

/// The value of a hyperparameter: a number, a text or a bool.
///
/// ```
/// use namegrad::train::log::Hparam;
/// let values: [Hparam; 3] = [1e-3.into(), "adam".into(), true.into()];
/// assert_eq!(values[0], Hparam::Number(1e-3));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Hparam {
    /// A bool.
    Bool(bool),
    /// A number.
    Number(#[serde(with = "super::json::number")] f64),
    /// A text.
    Text(String),
}

/// A map of hyperparameters by name.
pub(super) fn by_name(values: Vec<(String, Hparam)>) -> BTreeMap<String, Hparam> {
    let mut named = BTreeMap::new();
    named.extend(values);
    named
}

impl From<bool> for Hparam {
    fn from(value: bool) -> Hparam {
        Hparam::Bool(value)
    }
}

impl From<&str> for Hparam {
    fn from(value: &str) -> Hparam {
        Hparam::Text(value.into())
    }
}

impl From<String> for Hparam {
    fn from(value: String) -> Hparam {
        Hparam::Text(value)
    }
}

/// A step: a whole number of any type that is not negative.
pub trait Step: Copy + fmt::Display + TryInto<u64> {}

impl<T: Copy + fmt::Display + TryInto<u64>> Step for T {}

#[track_caller]
pub(super) fn whole(op: &'static str, step: impl Step) -> Result<u64> {
    let caller = Location::caller();
    step.try_into()
        .map_err(|_| Error::new(ErrorKind::Value, op, format!("steps count from 0, got {step}")).at(caller))
}

/// A number to log or to average: a number of any type, or a tensor of any dtype with one element, such as
/// a loss.
pub trait Measurement {
    /// The number.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a tensor with another number of elements.
    #[track_caller]
    fn number(&self) -> Result<f64>;
}

namegrad_core::for_types!(f32, f64, i32, i64, isize, u32, u64, usize => Number {
    impl Measurement for Number {
        fn number(&self) -> Result<f64> {
            Ok(*self as f64)
        }
    }

    impl From<Number> for Hparam {
        fn from(value: Number) -> Hparam {
            Hparam::Number(value as f64)
        }
    }
});

impl Measurement for NamedTensor {
    #[track_caller]
    fn number(&self) -> Result<f64> {
        if self.numel() != 1 {
            let message =
                format!("expected a number or a tensor with one element, got {} elements", self.numel());
            return Err(Error::new(ErrorKind::Shape, "number", message)
                .with_operands(shapes(&[self]))
                .with_repair("x.mean(..)?"));
        }
        self.to(namegrad_core::DType::F64)?.item::<f64>()
    }
}

impl Measurement for Tensor {
    #[track_caller]
    fn number(&self) -> Result<f64> {
        self.value().number()
    }
}

impl<M: Measurement + ?Sized> Measurement for &M {
    #[track_caller]
    fn number(&self) -> Result<f64> {
        (**self).number()
    }
}
