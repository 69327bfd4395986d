//! Numbers as an argument: one, several, or those of tensors.

use crate::Tensor;
use crate::rules::refuse;
use namegrad_core::{Argument, Error, ErrorKind, NamedTensor, Result, Scalar, Value};

/// A number, a list of numbers, or tensors of numbers.
#[derive(Clone, Debug)]
pub enum Numbers {
    /// One number.
    One(f64),
    /// Several numbers; none is the default of the op.
    List(Vec<f64>),
    /// The numbers of tensors.
    Tensors(Vec<Tensor>),
}

/// Tensors are equal if they are the same one.
impl PartialEq for Numbers {
    fn eq(&self, other: &Numbers) -> bool {
        match (self, other) {
            (Numbers::One(one), Numbers::One(other)) => one == other,
            (Numbers::List(list), Numbers::List(others)) => list == others,
            (Numbers::Tensors(tensors), Numbers::Tensors(others)) => {
                let same = |(x, y): (&Tensor, &Tensor)| {
                    x.value().data_ptr() == y.value().data_ptr() && x.shape() == y.shape()
                };
                tensors.len() == others.len() && tensors.iter().zip(others).all(same)
            }
            _ => false,
        }
    }
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers::List(Vec::new())
    }
}

impl Numbers {
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Numbers::List(list) if list.is_empty())
    }

    /// The numbers, and whether they are more than one or could be: a list, or a vector. They have no
    /// derivative.
    #[track_caller]
    pub(crate) fn flat(&self, op: &'static str, name: &'static str) -> Result<(Vec<f64>, bool)> {
        match self {
            Numbers::One(number) => Ok((vec![*number], false)),
            Numbers::List(list) => Ok((list.clone(), true)),
            Numbers::Tensors(tensors) => match &tensors[..] {
                [x] if x.ndim() < 2 => {
                    refuse(op, name, x)?;
                    Ok((x.to_vec::<f64>()?, x.ndim() == 1))
                }
                _ => {
                    let message = format!("{name} must be a number, a list or a vector");
                    let shapes = tensors.iter().map(|x| x.shape());
                    Err(Error::new(ErrorKind::Shape, op, message).with_operands(shapes))
                }
            },
        }
    }
}

impl From<f64> for Numbers {
    fn from(number: f64) -> Numbers {
        Numbers::One(number)
    }
}
impl From<i32> for Numbers {
    fn from(number: i32) -> Numbers {
        Numbers::One(number.into())
    }
}
impl From<usize> for Numbers {
    fn from(number: usize) -> Numbers {
        Numbers::One(number as f64)
    }
}
impl<T: Into<Scalar> + Copy, const K: usize> From<[T; K]> for Numbers {
    fn from(list: [T; K]) -> Numbers {
        Numbers::from(&list[..])
    }
}
impl<T: Into<Scalar> + Copy> From<&[T]> for Numbers {
    fn from(list: &[T]) -> Numbers {
        Numbers::List(crate::list(list.iter().map(|number| (*number).into().to_f64())))
    }
}
impl From<Vec<f64>> for Numbers {
    fn from(list: Vec<f64>) -> Numbers {
        Numbers::List(list)
    }
}
impl From<&Tensor> for Numbers {
    fn from(tensor: &Tensor) -> Numbers {
        Numbers::Tensors(vec![tensor.clone()])
    }
}
impl<const K: usize> From<[&Tensor; K]> for Numbers {
    fn from(tensors: [&Tensor; K]) -> Numbers {
        Numbers::Tensors(crate::list(tensors.iter().map(|x| (*x).clone())))
    }
}

impl Argument for Numbers {
    type Resolved = Numbers;
    type View<'a> = &'a Numbers;
    fn look_up(&self, _: &'static str, _: &[&NamedTensor]) -> Result<Numbers> {
        Ok(self.clone())
    }
    fn view(resolved: &Numbers) -> &Numbers {
        resolved
    }
    fn from_value(value: &Value) -> Option<Numbers> {
        match value {
            Value::List(list) => {
                crate::list::<_, Option<_>>(list.iter().map(f64::from_value)).map(Numbers::List)
            }
            one => f64::from_value(one).map(Numbers::One),
        }
    }
    fn from_tensors(tensors: &[&NamedTensor]) -> Option<Numbers> {
        Some(Numbers::Tensors(crate::list(tensors.iter().map(|x| Tensor::constant((*x).clone())))))
    }
    fn accepted() -> String {
        "a number, a list of numbers, or a tensor".into()
    }
}
