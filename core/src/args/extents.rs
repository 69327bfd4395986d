//! Numbers for the dims that a window slides along: its sizes, steps and padding.

use super::{Argument, Value};
use crate::cpu::SPATIAL;
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::NamedTensor;
use std::fmt;

/// The most numbers that are kept: sizes can be given with those of a batch and of channels.
const MOST: usize = SPATIAL + 2;
/// The size that a dim has.
const KEEP: isize = isize::MIN;

/// A number for each dim that a window slides along, such as the steps of a convolution: one number for all
/// of them, or a list. The default is no number, which means what the op says.
///
/// ```
/// use namegrad_core::args::Extents;
/// assert_eq!(Extents::from(2).over("conv2d", "stride", 2)?, [2, 2]);
/// assert_eq!(Extents::from([2, 1]).over("conv2d", "stride", 2)?, [2, 1]);
/// assert!(Extents::from([2, 1, 1]).over("conv2d", "stride", 2).is_err());
/// # Ok::<(), namegrad_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extents {
    numbers: [isize; MOST],
    /// The count of the numbers; more than [`MOST`] fit no op.
    count: usize,
    /// Whether it is a list.
    list: bool,
}

impl Extents {
    /// The numbers of a list.
    fn listed(numbers: impl ExactSizeIterator<Item = isize>) -> Extents {
        let mut all = Extents { numbers: [0; MOST], count: numbers.len(), list: true };
        for (at, number) in numbers.enumerate().take(MOST) {
            all.numbers[at] = number;
        }
        all
    }

    /// The numbers for `dims` dims. No number gives an empty list.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a negative number or a list of another length.
    #[track_caller]
    pub fn over(self, op: &'static str, name: &str, dims: usize) -> Result<Vec<usize>> {
        if self.count == 0 && !self.list {
            return Ok(Vec::new());
        }
        if self.count != dims && self.count != 1 {
            let message = format!("`{name}` must be one number or {dims}, one for each dim, got {self}");
            return Err(self.refused(op, name, message));
        }
        let mut numbers = Vec::with_capacity(dims);
        for dim in 0..dims {
            match usize::try_from(self.numbers[if self.count == 1 { 0 } else { dim }]) {
                Ok(number) => numbers.push(number),
                Err(_) => {
                    return Err(self.refused(op, name, format!("`{name}` must not be negative, got {self}")));
                }
            }
        }
        Ok(numbers)
    }

    /// An error, with a call of the option that is none.
    #[cold]
    #[track_caller]
    fn refused(self, op: &'static str, name: &str, message: String) -> Error {
        let error = Error::new(ErrorKind::Value, op, message);
        match name {
            "stride" | "dilation" => error.with_repair(format!(".{name}(1)")),
            "padding" | "output_padding" => error.with_repair(format!(".{name}(0)")),
            _ => error,
        }
    }

    /// The numbers for dims of these lengths, where `None` is the length.
    ///
    /// # Errors
    /// Those of [`over`](Self::over).
    #[track_caller]
    pub fn or_lengths(self, op: &'static str, name: &str, lengths: &[usize]) -> Result<Vec<usize>> {
        let mut own = self;
        let last = own.count.min(MOST);
        for at in 0..last {
            if own.numbers[at] == KEEP && at < lengths.len() {
                own.numbers[at] = super::position(lengths[at]);
            }
        }
        own.over(op, name, lengths.len())
    }

    /// The last `dims` numbers of a list that also has those of a batch and of channels.
    pub fn without_batch(self, dims: usize) -> Extents {
        match self.list && self.count == dims + 2 && self.count <= MOST {
            true => Extents::listed(self.numbers[2..self.count].iter().copied()),
            false => self,
        }
    }

    /// Whether there is no number.
    pub fn is_none(self) -> bool {
        self.count == 0 && !self.list
    }

    /// The length of a list; `None` for a single number.
    pub fn list_len(self) -> Option<usize> {
        self.list.then_some(self.count)
    }
}

impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.list {
            _ if self.count > MOST => write!(f, "{} numbers", self.count),
            true => write!(f, "{:?}", &self.numbers[..self.count]),
            false => self.numbers[0].fmt(f),
        }
    }
}

impl From<i32> for Extents {
    fn from(number: i32) -> Extents {
        Extents { list: false, ..Extents::listed([number as isize].into_iter()) }
    }
}
impl From<usize> for Extents {
    fn from(number: usize) -> Extents {
        Extents { list: false, ..Extents::from([number]) }
    }
}
/// Only for `usize`, so that the type of a bare `None` can be inferred.
impl From<Option<usize>> for Extents {
    fn from(number: Option<usize>) -> Extents {
        number.map_or(Extents::default(), Extents::from)
    }
}
impl<const N: usize> From<[i32; N]> for Extents {
    fn from(numbers: [i32; N]) -> Extents {
        Extents::listed(numbers.into_iter().map(|number| number as isize))
    }
}
impl<const N: usize> From<[usize; N]> for Extents {
    fn from(numbers: [usize; N]) -> Extents {
        Extents::from(&numbers[..])
    }
}
/// `None` is the size that a dim has.
impl<const N: usize> From<[Option<usize>; N]> for Extents {
    fn from(numbers: [Option<usize>; N]) -> Extents {
        Extents::listed(numbers.into_iter().map(|number| number.map_or(KEEP, super::position)))
    }
}
impl From<&[usize]> for Extents {
    fn from(numbers: &[usize]) -> Extents {
        Extents::listed(numbers.iter().map(|number| super::position(*number)))
    }
}

impl Argument for Extents {
    type Resolved = Extents;
    type View<'a> = Extents;
    #[inline]
    fn look_up(self, _: &'static str, _: &[&NamedTensor]) -> Result<Extents> {
        Ok(self)
    }
    fn view(resolved: &Extents) -> Extents {
        *resolved
    }
    fn from_value(value: &Value) -> Option<Extents> {
        match value {
            Value::None => Some(Extents::default()),
            Value::List(list) => {
                let mut numbers = Vec::with_capacity(list.len());
                for value in list {
                    numbers.push(match value {
                        Value::None => KEEP,
                        number => isize::from_value(number)?,
                    });
                }
                Some(Extents::listed(numbers.into_iter()))
            }
            one => {
                let number = isize::from_value(one)?;
                Some(Extents { list: false, ..Extents::listed(vec![number].into_iter()) })
            }
        }
    }
    fn accepted() -> String {
        "a whole number or a list of them".into()
    }
}

/// The padding of a convolution: the number of zeros on each side, or a rule for it.
///
/// ```
/// use namegrad_core::args::Padding;
/// use namegrad_core::{NamedTensor, options::ConvolutionOptions};
/// let x = NamedTensor::from_slice(&[1.0f32, 2.0, 4.0, 8.0], [1, 4])?;
/// let sum = NamedTensor::from_slice(&[1.0f32; 3], [1, 1, 3])?;
/// let padded = |padding: Padding| {
///     x.convolution_with(&sum, ConvolutionOptions::new().padding(padding))?.to_vec::<f32>()
/// };
/// assert_eq!(padded(Padding::Same)?, [3.0, 7.0, 14.0, 12.0]);
/// assert_eq!(padded(2.into())?, [1.0, 3.0, 7.0, 14.0, 12.0, 8.0]);
/// # Ok::<(), namegrad_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// This number of zeros on each side: one number for all dims, or one for each. Numbers convert into it.
    Zeros(Extents),
    /// Enough zeros for a result that is as large as the input. If their number is odd, the extra zero is at
    /// the end.
    Same,
    /// No zeros.
    Valid,
}

impl<T: Into<Extents>> From<T> for Padding {
    fn from(zeros: T) -> Padding {
        Padding::Zeros(zeros.into())
    }
}

impl super::Immediate for Padding {
    fn of_value(value: &Value) -> Option<Padding> {
        match value {
            Value::Text(text) if text == "same" => Some(Padding::Same),
            Value::Text(text) if text == "valid" => Some(Padding::Valid),
            Value::None => None,
            zeros => Extents::from_value(zeros).map(Padding::Zeros),
        }
    }
    fn accepts() -> String {
        "same, valid, or the zeros on each side".into()
    }
}
