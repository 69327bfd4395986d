//! Numbers for the dims that a window slides along: its sizes, steps and padding.

use super::{Argument, PairList, Value, Whole, position};
use crate::cpu::SPATIAL;
use crate::error::{Error, ErrorKind, Result};
use crate::names::Name;
use crate::tensor::NamedTensor;
use std::fmt;
use std::panic::Location;

/// The most numbers that are kept: sizes can be given with those of a batch and of channels.
const MOST: usize = SPATIAL + 2;
/// The size that a dim has.
const KEEP: isize = isize::MIN;

/// A number for each dim that a window slides along, such as the steps of a convolution: one number for all of
/// them, a list, or pairs of the name of a dim and its number. The default is no number, which means what the
/// op says.
///
/// In pairs, dims can be in any order. A dim that is left out has the default of the option, such as a stride
/// of 1; sizes of windows and of results need all dims.
///
/// ```
/// use namegrad_core::args::{Extents, Windows};
/// use namegrad_core::NamedTensor;
/// assert_eq!(Extents::from(2).over("conv2d", "stride", 2)?, [2, 2]);
/// assert_eq!(Extents::from([2, 1]).over("conv2d", "stride", 2)?, [2, 1]);
/// assert!(Extents::from([2, 1, 1]).over("conv2d", "stride", 2).is_err());
/// let x = NamedTensor::zeros([("N", 2), ("H", 9), ("W", 9)])?;
/// let windows = Windows::sliding([("H", 3), ("W", 2)]).stride(("W", 1)); // and 3, the default, along H
/// assert_eq!(x.max_pool(windows)?.values.shape().to_string(), "[N=2, H=3, W=8]");
/// # Ok::<(), namegrad_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extents {
    numbers: [isize; MOST],
    /// The names of the dims if they are pairs, `None` for one that is not valid.
    names: [Option<Name>; MOST],
    /// The count of the numbers; more than [`MOST`] fit no op.
    count: usize,
    form: Form,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    /// One number for all dims, or none.
    #[default]
    One,
    List,
    Pairs,
}

impl Extents {
    /// The numbers of a list.
    fn listed(numbers: impl ExactSizeIterator<Item = isize>) -> Extents {
        let mut all = Extents { count: numbers.len(), form: Form::List, ..Extents::default() };
        for (at, number) in numbers.enumerate().take(MOST) {
            all.numbers[at] = number;
        }
        all
    }

    /// The numbers as a list in the order of dims with these names, if they are pairs; otherwise as they are.
    /// A dim that no pair has gets its number from `or`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] for a name that is not among the dims, [`ErrorKind::DuplicateName`] for one
    /// that is given twice, [`ErrorKind::Value`] for a dim without a number.
    #[doc(hidden)]
    #[track_caller]
    pub fn in_order(
        self,
        op: &'static str,
        name: &str,
        dims: &[Option<Name>],
        or: Option<Extents>,
    ) -> Result<Extents> {
        if self.form != Form::Pairs {
            return Ok(self);
        }
        let caller = Location::caller();
        let all: Vec<String> =
            crate::list(dims.iter().map(|dim| dim.map_or("an unnamed dim".into(), |dim| format!("'{dim}'"))));
        let fail = |kind, what: String| {
            let message =
                format!("`{name}` {what}; the dims of the windows are {}", crate::joined(&all, ", "));
            Err(Error::new(kind, op, message).at(caller))
        };
        let given = &self.names[..self.count.min(MOST)];
        for (at, own) in given.iter().enumerate() {
            match own {
                None => return fail(ErrorKind::InvalidName, "has a dim whose name is not valid".into()),
                Some(own) if given[..at].contains(&Some(*own)) => {
                    return fail(ErrorKind::DuplicateName, format!("has the dim '{own}' twice"));
                }
                Some(own) if !dims.contains(&Some(*own)) => {
                    return fail(ErrorKind::NameNotFound, format!("has a number for '{own}'"));
                }
                Some(_) => {}
            }
        }
        let or = match or {
            Some(or) => or.over(op, name, dims.len())?,
            None => Vec::new(),
        };
        let mut numbers = Vec::with_capacity(dims.len());
        for (at, dim) in dims.iter().enumerate() {
            let own = given.iter().position(|own| own == dim && own.is_some());
            match (own, or.get(at)) {
                (Some(own), _) => numbers.push(self.numbers[own]),
                (None, Some(or)) => numbers.push(position(*or)),
                (None, None) => return fail(ErrorKind::Value, format!("has no number for {}", all[at])),
            }
        }
        Ok(Extents::listed(numbers.into_iter()))
    }

    /// The names of `dims` dims in the order in which pairs give them; none if they are no pairs.
    #[doc(hidden)]
    pub fn names(self, dims: usize) -> Vec<Option<Name>> {
        crate::list((0..dims).map(|dim| self.names.get(dim).copied().flatten()))
    }

    /// The numbers for `dims` dims. No number gives an empty list.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a negative number, a list of another length, or pairs where no names are known.
    #[track_caller]
    pub fn over(self, op: &'static str, name: &str, dims: usize) -> Result<Vec<usize>> {
        if self.is_none() {
            return Ok(Vec::new());
        }
        if self.form == Form::Pairs {
            let message = format!("`{name}` takes numbers in the order of the dims here, not {self}");
            return Err(self.refused(op, name, message));
        }
        if self.count != dims && self.count != 1 {
            let message = format!("`{name}` must be one number or {dims}, one for each dim, got {self}");
            return Err(Error::new(ErrorKind::Value, op, message));
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
        match self.form == Form::List && self.count == dims + 2 && self.count <= MOST {
            true => Extents::listed(self.numbers[2..self.count].iter().copied()),
            false => self,
        }
    }

    /// Whether there is no number.
    pub fn is_none(self) -> bool {
        self.count == 0 && self.form == Form::One
    }

    /// The length of a list; `None` for a single number.
    pub fn list_len(self) -> Option<usize> {
        (self.form != Form::One).then_some(self.count)
    }
}

impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            _ if self.count > MOST => write!(f, "{} numbers", self.count),
            Form::List => write!(f, "{:?}", &self.numbers[..self.count]),
            Form::One => self.numbers[0].fmt(f),
            Form::Pairs => {
                let name = |at: usize| self.names[at].map_or("?", Name::as_str);
                let pair = |at| format!("{}={}", name(at), self.numbers[at]);
                write!(
                    f,
                    "[{}]",
                    crate::joined(&crate::list::<_, Vec<String>>((0..self.count).map(pair)), ", ")
                )
            }
        }
    }
}

impl From<i32> for Extents {
    fn from(number: i32) -> Extents {
        Extents { form: Form::One, ..Extents::listed([number as isize].into_iter()) }
    }
}
impl From<usize> for Extents {
    fn from(number: usize) -> Extents {
        Extents { form: Form::One, ..Extents::from([number]) }
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
/// One dim and its number.
impl<I: Whole> From<(&str, I)> for Extents {
    fn from(pair: (&str, I)) -> Extents {
        Extents::from([pair])
    }
}
/// Dims and their numbers, in any order: an array, a slice or a `Vec` of pairs.
impl<L: PairList<Dim: AsRef<str>, Number: Whole>> From<L> for Extents {
    fn from(list: L) -> Extents {
        let pairs = list.pairs();
        let mut all = Extents { count: pairs.len(), form: Form::Pairs, ..Extents::default() };
        for (at, (name, number)) in pairs.iter().enumerate().take(MOST) {
            (all.names[at], all.numbers[at]) = (Name::new(name.as_ref()).ok(), position(*number));
        }
        all
    }
}
impl From<&[usize]> for Extents {
    fn from(numbers: &[usize]) -> Extents {
        Extents::listed(numbers.iter().map(|number| super::position(*number)))
    }
}

impl From<Vec<usize>> for Extents {
    fn from(numbers: Vec<usize>) -> Extents {
        Extents::from(&numbers[..])
    }
}

impl Argument for Extents {
    type Resolved = Extents;
    type View<'a> = Extents;
    #[inline]
    fn look_up(&self, _: &'static str, _: &[&NamedTensor]) -> Result<Extents> {
        Ok(*self)
    }
    fn view(resolved: &Extents) -> Extents {
        *resolved
    }
    fn from_value(value: &Value) -> Option<Extents> {
        match value {
            Value::None => Some(Extents::default()),
            Value::List(list) if matches!(list.first(), Some(Value::List(_))) => {
                let mut pairs = Vec::with_capacity(list.len());
                for pair in list {
                    let Value::List(pair) = pair else { return None };
                    let [Value::Text(name), number] = &pair[..] else { return None };
                    pairs.push((name.as_str(), isize::from_value(number)?));
                }
                Some(Extents::from(pairs))
            }
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
                Some(Extents { form: Form::One, ..Extents::listed(vec![number].into_iter()) })
            }
        }
    }
    fn accepted() -> String {
        "a whole number, a list of them, or a list of pairs of a dim and a number".into()
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

impl Padding {
    /// [`Extents::in_order`] for the zeros.
    ///
    /// # Errors
    /// Those of it.
    #[doc(hidden)]
    #[track_caller]
    pub fn in_order(self, op: &'static str, dims: &[Option<Name>]) -> Result<Padding> {
        match self {
            Padding::Zeros(zeros) => {
                Ok(Padding::Zeros(zeros.in_order(op, "padding", dims, Some(0.into()))?))
            }
            other => Ok(other),
        }
    }
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
