//! The values of arguments in calls by name.
use crate::dtype::{DType, Scalar};

/// A value that is given to an op by name.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// None: the default.
    None,
    /// A flag.
    Bool(bool),
    /// An integer: a size, an index, a dim by position.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string: the name of a dim or a dtype, `".."` for all dims.
    Text(String),
    /// A list: of dims, of sizes, of pairs of a name and a size.
    List(Vec<Value>),
}

impl Value {
    /// A description of the value, for errors.
    pub fn describe(&self) -> String {
        match self {
            Value::None => "nothing".into(),
            Value::Bool(value) => format!("the bool {value}"),
            Value::Int(value) => format!("the integer {value}"),
            Value::Float(value) => format!("the float {value}"),
            Value::Text(value) => format!("the text \"{value}\""),
            Value::List(values) => format!("a list of {}", values.len()),
        }
    }
}

impl<T: Into<Scalar>> From<T> for Value {
    fn from(value: T) -> Value {
        match value.into() {
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Int(value) => Value::Int(value),
            Scalar::Float(value) => Value::Float(value),
        }
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value)
    }
}

impl From<DType> for Value {
    fn from(value: DType) -> Value {
        Value::Text(value.torch_name().into())
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Value {
        Value::List(crate::list(values.into_iter().map(Into::into)))
    }
}

impl<T: Into<Value>, const K: usize> From<[T; K]> for Value {
    fn from(values: [T; K]) -> Value {
        Value::List(crate::list(values.into_iter().map(Into::into)))
    }
}
