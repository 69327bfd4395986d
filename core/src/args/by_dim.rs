//! Numbers that are given by dim: one for all dims, a list, or pairs of a dim and its number.

use super::{Argument, Value, Whole, position};
use crate::dim::{Dim, Dims, Positions};
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::NamedTensor;
use std::fmt;

/// A number for each of some dims: one for all, a list of one for each, or pairs of a dim and its number,
/// which also say which dims are meant. The default is no number.
///
/// ```
/// use namegrad_core::args::SizesByDim;
/// let sizes = [SizesByDim::from(8), SizesByDim::from([8, 6]), SizesByDim::from([("H", 8), ("W", 6)])];
/// assert_ne!(sizes[0], sizes[1]);
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct ByDim<T> {
    dims: Option<Vec<Dim>>,
    numbers: Vec<T>,
    /// Whether it is one number for all dims.
    all: bool,
}

/// Sizes by dim.
pub type SizesByDim = ByDim<isize>;
/// Factors by dim.
pub type Factors = ByDim<f64>;

/// Numbers by dim, looked up in a tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfDims<T> {
    /// The dims, if there were pairs.
    pub dims: Option<Positions>,
    /// The numbers as they were given.
    pub numbers: Vec<T>,
    /// Whether it is one number for all dims.
    pub all: bool,
}

impl<T: Copy> OfDims<T> {
    /// Whether there is no number.
    pub fn is_none(&self) -> bool {
        self.numbers.is_empty() && !self.all
    }

    /// The numbers for `count` dims, or `None` if there is a list of another length.
    pub fn over(&self, count: usize) -> Option<Vec<T>> {
        match (self.all, self.numbers.first()) {
            (true, Some(number)) => Some(vec![*number; count]),
            _ => Some(self.numbers.clone()).filter(|numbers| numbers.len() == count),
        }
    }
}

impl<T> ByDim<T> {
    /// No number.
    pub const NONE: ByDim<T> = ByDim { dims: None, numbers: Vec::new(), all: false };

    /// The numbers as they were given.
    pub fn numbers(&self) -> &[T] {
        &self.numbers
    }

    fn one(number: T) -> ByDim<T> {
        ByDim { dims: None, numbers: vec![number], all: true }
    }

    fn list(numbers: impl IntoIterator<Item = T>) -> ByDim<T> {
        ByDim { dims: None, numbers: crate::list(numbers.into_iter()), all: false }
    }

    fn pairs<D: Into<Dim> + Clone, I: Copy>(pairs: &[(D, I)], number: impl Fn(I) -> T) -> ByDim<T> {
        let mut all = ByDim { dims: None, numbers: Vec::with_capacity(pairs.len()), all: false };
        let dims = all.dims.insert(Vec::with_capacity(pairs.len()));
        for (dim, own) in pairs {
            dims.push(dim.clone().into());
            all.numbers.push(number(*own));
        }
        all
    }
}

/// Pairs of a dim and its number: an array, a slice, a `Vec`, or a reference to one.
#[doc(hidden)]
pub trait PairList {
    type Dim: Clone;
    type Number: Copy;
    fn pairs(&self) -> &[(Self::Dim, Self::Number)];
}

impl<D: Clone, I: Copy> PairList for [(D, I)] {
    type Dim = D;
    type Number = I;
    fn pairs(&self) -> &[(D, I)] {
        self
    }
}
impl<D: Clone, I: Copy, const N: usize> PairList for [(D, I); N] {
    type Dim = D;
    type Number = I;
    fn pairs(&self) -> &[(D, I)] {
        self
    }
}
impl<D: Clone, I: Copy> PairList for Vec<(D, I)> {
    type Dim = D;
    type Number = I;
    fn pairs(&self) -> &[(D, I)] {
        self
    }
}
impl<L: PairList + ?Sized> PairList for &L {
    type Dim = L::Dim;
    type Number = L::Number;
    fn pairs(&self) -> &[(L::Dim, L::Number)] {
        (**self).pairs()
    }
}

/// `[H=2, W=3]`.
fn write_pairs<'d, T: fmt::Debug>(
    f: &mut fmt::Formatter<'_>,
    pairs: impl Iterator<Item = (&'d Dim, T)>,
) -> fmt::Result {
    let text = |(dim, number): (&Dim, T)| match dim {
        Dim::Index(index) => format!("{index}={number:?}"),
        Dim::Name(name) => format!("{name}={number:?}"),
        Dim::Unknown(name) => format!("{}={number:?}", **name),
    };
    write!(f, "[{}]", crate::joined(&crate::list::<_, Vec<String>>(pairs.map(text)), ", "))
}

impl<T: fmt::Debug> fmt::Debug for ByDim<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.dims, &self.numbers[..]) {
            (Some(dims), numbers) => write_pairs(f, dims.iter().zip(numbers)),
            (None, [number]) if self.all => write!(f, "{number:?}"),
            (None, []) => f.write_str("None"),
            (None, numbers) => write!(f, "{numbers:?}"),
        }
    }
}

crate::for_types!(i32, i64, isize, u32, u64, usize => Number {
    impl From<Number> for ByDim<isize> {
        fn from(number: Number) -> ByDim<isize> {
            ByDim::one(position(number))
        }
    }
});
/// Only for `usize`, so that the type of a bare `None` can be inferred.
impl From<Option<usize>> for ByDim<isize> {
    fn from(number: Option<usize>) -> ByDim<isize> {
        number.map_or(ByDim::NONE, ByDim::from)
    }
}
impl<I: Whole, const N: usize> From<[I; N]> for ByDim<isize> {
    fn from(numbers: [I; N]) -> ByDim<isize> {
        ByDim::list(numbers.map(position))
    }
}
impl<I: Whole> From<&[I]> for ByDim<isize> {
    fn from(numbers: &[I]) -> ByDim<isize> {
        ByDim::list(numbers.iter().copied().map(position))
    }
}
impl<L: PairList<Dim: Into<Dim>, Number: Whole>> From<L> for ByDim<isize> {
    fn from(list: L) -> ByDim<isize> {
        ByDim::pairs(list.pairs(), position)
    }
}
impl From<f64> for ByDim<f64> {
    fn from(number: f64) -> ByDim<f64> {
        ByDim::one(number)
    }
}
/// Only for `f64`, so that the type of a bare `None` can be inferred.
impl From<Option<f64>> for ByDim<f64> {
    fn from(number: Option<f64>) -> ByDim<f64> {
        number.map_or(ByDim::NONE, ByDim::one)
    }
}
impl<const N: usize> From<[f64; N]> for ByDim<f64> {
    fn from(numbers: [f64; N]) -> ByDim<f64> {
        ByDim::list(numbers)
    }
}
impl From<&[f64]> for ByDim<f64> {
    fn from(numbers: &[f64]) -> ByDim<f64> {
        ByDim::list(numbers.iter().copied())
    }
}
impl<L: PairList<Dim: Into<Dim>, Number = f64>> From<L> for ByDim<f64> {
    fn from(list: L) -> ByDim<f64> {
        ByDim::pairs(list.pairs(), |number| number)
    }
}

impl<T: Argument + Copy + PartialEq + 'static> Argument for ByDim<T> {
    type Resolved = OfDims<T>;
    type View<'a> = &'a OfDims<T>;
    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<OfDims<T>> {
        let dims = match &self.dims {
            Some(dims) => Some(Dims::from(dims).look_up(op, of)?),
            None => None,
        };
        Ok(OfDims { dims, numbers: self.numbers.clone(), all: self.all })
    }
    fn view(resolved: &OfDims<T>) -> &OfDims<T> {
        resolved
    }
    fn from_value(value: &Value) -> Option<ByDim<T>> {
        let pair = |value: &Value| match value {
            Value::List(pair) => match &pair[..] {
                [dim, number] => Some((Dim::from_value(dim)?, T::from_value(number)?)),
                _ => None,
            },
            _ => None,
        };
        match value {
            Value::None => Some(ByDim::NONE),
            Value::List(list) if matches!(list.first(), Some(Value::List(_))) => {
                let all: Option<Vec<_>> = crate::list(list.iter().map(pair));
                all.map(|all| ByDim::pairs(&all, |number| number))
            }
            Value::List(list) => {
                crate::list::<_, Option<Vec<_>>>(list.iter().map(T::from_value)).map(ByDim::list)
            }
            one => T::from_value(one).map(ByDim::one),
        }
    }
    fn accepted() -> String {
        "a number, a list of numbers, or a list of pairs of a dim and a number".into()
    }
}

/// The numbers of elements to add before and after dims; negative numbers remove elements. They are given by
/// dim, or as PyTorch's list, which starts with the two numbers for the last dim.
///
/// ```
/// use namegrad_core::args::Pads;
/// let all = [
///     Pads::from([0, 2, 1, 1]),
///     Pads::from([("H", (1, 1)), ("W", (0, 2))]),
///     Pads::from([("H", 1), ("W", 2)]), // on both sides
/// ];
/// assert_ne!(all[0], all[1]);
/// ```
#[derive(PartialEq, Eq)]
pub struct Pads(GivenSizes);

impl Clone for Pads {
    #[inline(never)]
    fn clone(&self) -> Pads {
        Pads(self.0.clone())
    }
}

#[derive(Clone, PartialEq, Eq)]
enum GivenSizes {
    /// From the last dim.
    Flat(Vec<isize>),
    Pairs(Vec<Dim>, Vec<[isize; 2]>),
}

impl<I: Whole, const N: usize> From<[I; N]> for Pads {
    fn from(numbers: [I; N]) -> Pads {
        Pads(GivenSizes::Flat(numbers.map(position).to_vec()))
    }
}
impl<I: Whole> From<&[I]> for Pads {
    fn from(numbers: &[I]) -> Pads {
        Pads(GivenSizes::Flat(crate::list(numbers.iter().copied().map(position))))
    }
}
impl<I: Whole> From<Vec<I>> for Pads {
    fn from(numbers: Vec<I>) -> Pads {
        Pads::from(&numbers[..])
    }
}
impl<L: PairList<Dim: Into<Dim>, Number: Sides>> From<L> for Pads {
    fn from(list: L) -> Pads {
        let (mut dims, mut pads) = (Vec::new(), Vec::new());
        for (dim, sides) in list.pairs() {
            dims.push(dim.clone().into());
            pads.push(sides.both());
        }
        Pads(GivenSizes::Pairs(dims, pads))
    }
}

/// The numbers of elements before and after a dim, or one for both sides.
#[doc(hidden)]
pub trait Sides: Copy {
    fn both(self) -> [isize; 2];
}

impl<I: Whole> Sides for I {
    fn both(self) -> [isize; 2] {
        [position(self); 2]
    }
}
impl<I: Whole> Sides for (I, I) {
    fn both(self) -> [isize; 2] {
        [position(self.0), position(self.1)]
    }
}

impl fmt::Debug for Pads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            GivenSizes::Flat(numbers) => write!(f, "{numbers:?}"),
            GivenSizes::Pairs(dims, pads) => {
                let pairs = dims.iter().zip(pads).map(|(dim, [before, after])| (dim, (*before, *after)));
                write_pairs(f, pairs)
            }
        }
    }
}

impl Argument for Pads {
    /// The dims, and the elements before and after each.
    type Resolved = Vec<(usize, [isize; 2])>;
    type View<'a> = &'a [(usize, [isize; 2])];
    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<Self::Resolved> {
        match &self.0 {
            GivenSizes::Pairs(dims, pads) => {
                let dims = Dims::from(dims).look_up(op, of)?;
                let mut all = Vec::with_capacity(dims.len());
                for at in 0..dims.len() {
                    all.push((dims[at], pads[at]));
                }
                Ok(all)
            }
            GivenSizes::Flat(numbers) => {
                let ndim = of.first().map_or(0, |x| x.ndim());
                let (pairs, rest) = numbers.as_chunks::<2>();
                if !rest.is_empty() || pairs.len() > ndim {
                    let message = format!(
                        "`pad` must have two numbers for each of at most {ndim} dims, got {} numbers",
                        numbers.len()
                    );
                    return Err(Error::about(of, ErrorKind::Value, op, message));
                }
                let mut all = Vec::with_capacity(pairs.len());
                for (at, pads) in pairs.iter().enumerate() {
                    all.push((ndim - 1 - at, *pads));
                }
                Ok(all)
            }
        }
    }
    fn view(resolved: &Self::Resolved) -> &[(usize, [isize; 2])] {
        resolved
    }
    fn from_value(value: &Value) -> Option<Pads> {
        let Value::List(list) = value else { return None };
        if !matches!(list.first(), Some(Value::List(_))) {
            return crate::list::<_, Option<Vec<_>>>(list.iter().map(isize::from_value)).map(Pads::from);
        }
        let pair = |value: &Value| match value {
            Value::List(pair) => match &pair[..] {
                [dim, Value::List(sides)] => match &sides[..] {
                    [before, after] => {
                        Some((Dim::from_value(dim)?, (isize::from_value(before)?, isize::from_value(after)?)))
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        crate::list::<_, Option<Vec<_>>>(list.iter().map(pair)).map(Pads::from)
    }
    fn accepted() -> String {
        "a list of numbers, or of pairs of a dim and the two numbers for it".into()
    }
}
