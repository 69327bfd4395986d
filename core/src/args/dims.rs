//! Arguments that refer to dims of a tensor and become positions.

use super::{Argument, Value};
use crate::dim::{Dim, Dims, Positions, position, positions};
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::NamedTensor;
use std::ops::Deref;

/// The tensor in which dims are looked up. In a list, it is the tensor with the most dims.
#[track_caller]
fn looked_up_in<'a>(op: &'static str, of: &[&'a NamedTensor]) -> Result<&'a NamedTensor> {
    match of {
        [x] => Ok(x),
        _ => {
            let most = of.iter().rev().max_by_key(|x| x.ndim()).copied();
            let Some(most) = most else {
                return Err(Error::new(ErrorKind::Value, op, "expected a non-empty list of Tensors"));
            };
            Ok(most)
        }
    }
}

impl Argument for Dim {
    type Resolved = usize;
    type View<'a> = usize;
    #[inline(never)]
    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<usize> {
        position(self, op, looked_up_in(op, of)?)
    }
    fn view(resolved: &usize) -> usize {
        *resolved
    }
    fn from_value(value: &Value) -> Option<Dim> {
        match value {
            Value::Int(index) => Some(Dim::from(*index)),
            Value::Text(name) if name != ".." => Some(Dim::from(name.as_str())),
            _ => None,
        }
    }
    fn accepted() -> String {
        "a dim".into()
    }
}

impl Argument for Dims {
    type Resolved = Positions;
    type View<'a> = &'a Positions;
    #[inline(never)]
    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<Positions> {
        let x = looked_up_in(op, of)?;
        if self.is_kept() {
            let message = "`keep` is for reductions, which would remove the dims";
            return Err(Error::about(&[x], ErrorKind::Value, op, message));
        }
        let mut dims = positions(self, op, x)?;
        if x.ndim() == 0 {
            dims.clear(); // a 0-d tensor was treated as having one dim
        }
        Ok(dims)
    }
    fn view(resolved: &Positions) -> &Positions {
        resolved
    }
    fn from_value(value: &Value) -> Option<Dims> {
        match value {
            Value::Text(all) if all == ".." => Some(Dims::ALL),
            Value::List(list) => {
                crate::list::<_, Option<Vec<Dim>>>(list.iter().map(Dim::from_value)).map(Dims::from)
            }
            one => Dim::from_value(one).map(Dims::from),
        }
    }
    fn accepted() -> String {
        "a dim or a list of dims".into()
    }
}

/// The dims of a reduction after look-up. Dereferences to their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    dims: Positions,
    all: bool,
    /// Whether the dims are kept, with size one.
    pub keep: bool,
}

impl Over {
    /// A list of dims, which are kept in the result or removed.
    pub fn new(dims: impl IntoIterator<Item = usize>, keep: bool) -> Over {
        Over { dims: crate::list(dims.into_iter()), all: false, keep }
    }

    /// Whether all dims were asked for, with `..`.
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// The same dims, kept.
    pub fn kept(&self) -> Over {
        Over { keep: true, ..self.clone() }
    }

    /// The dim, or `None` for all dims flattened into one: for ops that find one element.
    ///
    /// # Errors
    /// [`ErrorKind::DimRange`] for several dims.
    #[track_caller]
    pub fn one_or_all(&self, op: &'static str, x: &NamedTensor) -> Result<Option<usize>> {
        match &self.dims[..] {
            _ if self.all => Ok(None),
            [dim] => Ok(Some(*dim)),
            [] if x.ndim() == 0 => Ok(Some(0)),
            dims => {
                let message = format!("expected one dim, or `..` for all elements, got {} dims", dims.len());
                Err(Error::about(&[x], ErrorKind::DimRange, op, message))
            }
        }
    }
}

/// The same dims as the argument of another reduction, with the same choice of keeping them.
impl From<&Over> for Dims {
    fn from(over: &Over) -> Dims {
        let dims = if over.all { Dims::ALL } else { Dims::from(&over.dims) };
        if over.keep { crate::dim::keep(dims) } else { dims }
    }
}

impl From<Over> for Dims {
    fn from(over: Over) -> Dims {
        Dims::from(&over)
    }
}

impl Deref for Over {
    type Target = Positions;
    fn deref(&self) -> &Positions {
        &self.dims
    }
}

/// The dims that an op reduces; [`keep`](crate::keep) keeps them with size one. In a call by name, an empty
/// list means all dims, as in PyTorch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduced(pub Dims);

impl From<i32> for Reduced {
    fn from(dim: i32) -> Reduced {
        Reduced(dim.into())
    }
}
impl From<std::ops::RangeFull> for Reduced {
    fn from(all: std::ops::RangeFull) -> Reduced {
        Reduced(all.into())
    }
}

impl From<Reduced> for Dims {
    fn from(reduced: Reduced) -> Dims {
        reduced.0
    }
}

impl Argument for Reduced {
    type Resolved = Over;
    type View<'a> = &'a Over;
    #[inline(never)]
    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<Over> {
        let x = looked_up_in(op, of)?;
        let (all, keep) = (self.0.is_all(), self.0.is_kept());
        let mut dims = positions(&self.0, op, x)?;
        if x.ndim() == 0 {
            dims.clear(); // a 0-d tensor was treated as having one dim
        }
        Ok(Over { dims, all, keep })
    }
    fn view(resolved: &Over) -> &Over {
        resolved
    }
    fn from_value(value: &Value) -> Option<Reduced> {
        match value {
            Value::List(list) if list.is_empty() => Some(Reduced(Dims::ALL)),
            other => Dims::from_value(other).map(Reduced),
        }
    }
    fn from_kept(dims: Option<&Value>) -> Option<Reduced> {
        let dims = dims.map_or(Some(Reduced(Dims::ALL)), Reduced::from_value)?;
        Some(Reduced(crate::dim::keep(dims.0)))
    }
    fn accepted() -> String {
        Dims::accepted()
    }
}

/// Dims that need not be given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionalDims(Option<Dims>);

impl OptionalDims {
    /// No dims: what the op does then is said there.
    pub const NONE: OptionalDims = OptionalDims(None);
}

impl<T: Into<Dims>> From<T> for OptionalDims {
    fn from(dims: T) -> OptionalDims {
        OptionalDims(Some(dims.into()))
    }
}

impl Argument for OptionalDims {
    type Resolved = Option<Positions>;
    type View<'a> = &'a Option<Positions>;
    #[inline(never)]
    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<Option<Positions>> {
        let Some(dims) = &self.0 else { return Ok(None) };
        dims.look_up(op, of).map(Some)
    }
    fn view(resolved: &Option<Positions>) -> &Option<Positions> {
        resolved
    }
    fn from_value(value: &Value) -> Option<OptionalDims> {
        match value {
            Value::None => Some(OptionalDims::NONE),
            dims => Dims::from_value(dims).map(OptionalDims::from),
        }
    }
    fn accepted() -> String {
        Dims::accepted()
    }
}

/// The dims of the rows and of the columns of matrices; `..` means the last two dims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix(pub Dims);

impl Matrix {
    /// The last two dims.
    pub const LAST: Matrix = Matrix(Dims::ALL);
}

/// A [`Matrix`] that is an option.
pub type MatrixDims = Matrix;

impl<T: Into<Dims>> From<T> for Matrix {
    fn from(dims: T) -> Matrix {
        Matrix(dims.into())
    }
}

impl Argument for Matrix {
    type Resolved = [usize; 2];
    type View<'a> = [usize; 2];
    #[inline(never)]
    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<[usize; 2]> {
        let x = looked_up_in(op, of)?;
        if self.0.is_all() {
            let Some(rows) = x.ndim().checked_sub(2) else {
                let message = format!("expected a matrix or a batch of them, got {} dims", x.ndim());
                return Err(Error::about(&[x], ErrorKind::Shape, op, message));
            };
            return Ok([rows, rows + 1]);
        }
        match self.0.look_up(op, of)?[..] {
            [rows, columns] => Ok([rows, columns]),
            ref dims => {
                let message = format!(
                    "expected the dims of the rows and of the columns, or `..` for the last two, got {} dims",
                    dims.len()
                );
                Err(Error::about(&[x], ErrorKind::DimRange, op, message))
            }
        }
    }
    fn view(resolved: &[usize; 2]) -> [usize; 2] {
        *resolved
    }
    fn from_value(value: &Value) -> Option<Matrix> {
        Dims::from_value(value).map(Matrix)
    }
    fn accepted() -> String {
        "two dims".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep;

    #[test]
    fn dims_of_a_reduction_are_handed_on() -> Result<()> {
        let x = NamedTensor::ones([("N", 2), ("C", 3)])?;
        for (dims, kept) in
            [(keep("C"), true), (Dims::from("C"), false), (keep(..), true), (Dims::ALL, false)]
        {
            let over = Reduced(dims.clone()).resolve("sum", &x)?;
            assert_eq!(Dims::from(&over).is_kept(), kept);
            assert_eq!(x.sum(&over)?.shape(), x.sum(dims)?.shape());
            assert_eq!(x.sum(over.kept())?.ndim(), 2);
        }
        Ok(())
    }
}
