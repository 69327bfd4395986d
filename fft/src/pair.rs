//! The dim of (re, im) of a complex tensor, and dims that are looked up among the others.

use crate::common::*;

/// The name of the dim of (re, im).
pub const COMPLEX: &str = "complex";

/// The position of the dim of (re, im): the dim called `complex`, or a last dim without a name.
///
/// # Errors
/// [`ErrorKind::Shape`] if there is none, or if it has another size than 2.
#[track_caller]
pub(crate) fn pair_dim(op: &'static str, x: &NamedTensor) -> Result<usize> {
    let called = Name::lookup(COMPLEX).and_then(|name| x.names().position(name));
    let last = || x.ndim().checked_sub(1).filter(|last| x.names().get(*last).is_none());
    match called.or_else(last) {
        Some(dim) if x.sizes()[dim] == 2 => Ok(dim),
        _ => Err(no_pair(op, x)),
    }
}

#[cold]
#[track_caller]
fn no_pair(op: &'static str, x: &NamedTensor) -> Error {
    if let Some(dim) = Name::lookup(COMPLEX).and_then(|name| x.names().position(name)) {
        let message = format!(
            "the dim '{COMPLEX}' has the size {}, but a dim of (re, im) has the size 2: give it another name if \
             it is something else",
            x.sizes()[dim]
        );
        return Error::about(&[x], ErrorKind::Shape, op, message);
    }
    let message = format!(
        "expected a complex tensor, whose dim of (re, im) has the size 2 and is called '{COMPLEX}' or is an \
         unnamed last dim, got {}",
        x.shape()
    );
    let error = Error::about(&[x], ErrorKind::Shape, op, message);
    let last =
        x.ndim().checked_sub(1).filter(|last| x.sizes()[*last] == 2).and_then(|last| x.names().get(last));
    match last {
        Some(name) => error.with_repair(format!(
            "x.rename([(\"{name}\", \"{COMPLEX}\")])? if '{name}' is the dim of (re, im)"
        )),
        None => error.with_repair("complex::from_real(&x)? if x is real"),
    }
}

/// What a tensor holds whose dims are looked up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Complex,
    Real,
    /// Complex numbers if it has a dim called `complex`.
    Either,
}

/// What a number says in [`AxisOf`] and [`AxesOf`].
const HOLDS: [Holds; 3] = [Holds::Complex, Holds::Real, Holds::Either];

/// A dim of a tensor, by its name or an index. An index counts the other dims than that of (re, im), so that -1
/// is the last of them.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisOf<const HOLDS: usize>(Dim);

/// Dims of a tensor, by names or indices, which do not count the dim of (re, im); `..` means all.
#[derive(Clone, Debug, PartialEq)]
pub struct AxesOf<const HOLDS: usize>(Dims);

/// A dim of a complex tensor.
pub type Axis = AxisOf<0>;
/// A dim of a real tensor.
pub type RealAxis = AxisOf<1>;
/// A dim of a tensor that is complex if it has a dim called `complex`.
pub type AnyAxis = AxisOf<2>;
/// Dims of a complex tensor.
pub type Axes = AxesOf<0>;
/// Dims of a real tensor.
pub type RealAxes = AxesOf<1>;
/// Dims of a tensor that is complex if it has a dim called `complex`.
pub type AnyAxes = AxesOf<2>;

impl<D: IntoDim, const HOLDS: usize> From<D> for AxisOf<HOLDS> {
    fn from(dim: D) -> Self {
        AxisOf(dim.into_dim())
    }
}

impl<D: IntoDims, const HOLDS: usize> From<D> for AxesOf<HOLDS> {
    fn from(dims: D) -> Self {
        AxesOf(dims.into_dims())
    }
}

impl<const HOLDS: usize> AxisOf<HOLDS> {
    /// The last dim.
    pub const LAST: Self = AxisOf(Dim::Index(-1));
}

impl<const HOLDS: usize> AxesOf<HOLDS> {
    /// All dims.
    pub const ALL: Self = AxesOf(Dims::ALL);

    /// The last two dims.
    pub fn last_two() -> Self {
        AxesOf([-2, -1].into())
    }
}

/// Dims of a tensor, as positions that do not count the dim of (re, im).
#[derive(Clone, Debug)]
pub struct Found {
    /// The position of the dim of (re, im) of a complex tensor.
    pub(crate) pair: Option<usize>,
    pub(crate) dims: Positions,
    /// Whether all dims are meant.
    pub(crate) is_all: bool,
}

impl Found {
    /// One dim of a real tensor.
    pub(crate) fn real(dim: usize) -> Found {
        Found { pair: None, dims: [dim].into_iter().collect(), is_all: false }
    }

    /// The positions in the tensor.
    pub(crate) fn places(&self) -> Vec<usize> {
        let pair = self.pair.unwrap_or(usize::MAX);
        self.dims.iter().map(|dim| dim + usize::from(*dim >= pair)).collect()
    }
}

#[track_caller]
fn found(dims: Dims, holds: Holds, op: &'static str, of: &[&NamedTensor]) -> Result<Found> {
    let Some(x) = of.first().copied() else {
        return Err(Error::new(ErrorKind::Value, op, "expected a tensor"));
    };
    let called = Name::lookup(COMPLEX).and_then(|name| x.names().position(name));
    let pair = match (holds, called) {
        (Holds::Real, Some(_)) => {
            let message = format!("expected a real tensor, and this one has a dim '{COMPLEX}'");
            return Err(Error::about(&[x], ErrorKind::DType, op, message).with_repair("complex::real(&x)?"));
        }
        (Holds::Complex, _) | (Holds::Either, Some(_)) => Some(pair_dim(op, x)?),
        (_, None) => None,
    };
    let is_all = dims.is_all();
    let dims = match pair {
        Some(pair) => match dims.clone().look_up(op, &[&x.select(pair, 0)?]) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NameNotFound => {
                return Err(of_pair(dims, op, x, pair).unwrap_or(error));
            }
            Err(error) => return Err(error),
        },
        None => dims.look_up(op, &[x])?,
    };
    Ok(Found { pair, dims, is_all })
}

/// The error for dims among which is that of (re, im).
#[cold]
#[track_caller]
fn of_pair(dims: Dims, op: &'static str, x: &NamedTensor, pair: usize) -> Option<Error> {
    let name = x.name(pair)?;
    if !dims.look_up(op, &[x]).ok()?.contains(&pair) {
        return None;
    }
    let message = format!("'{name}' is the dim of (re, im), and the call takes other dims of {}", x.shape());
    Some(Error::about(&[x], ErrorKind::NameNotFound, op, message))
}

impl<const HOLDS: usize> Argument for AxisOf<HOLDS> {
    type Resolved = Found;
    type View<'a> = &'a Found;
    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<Found> {
        let found = found(Dims::from(self.0.clone()), self::HOLDS[HOLDS], op, of)?;
        if found.dims.is_empty() {
            return Err(Error::about(of, ErrorKind::DimRange, op, "the tensor has no dims to transform"));
        }
        Ok(found)
    }
    fn view(resolved: &Found) -> &Found {
        resolved
    }
    fn from_value(value: &Value) -> Option<Self> {
        Dim::from_value(value).map(AxisOf)
    }
    fn accepted() -> String {
        Dim::accepted()
    }
}

impl<const HOLDS: usize> Argument for AxesOf<HOLDS> {
    type Resolved = Found;
    type View<'a> = &'a Found;
    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<Found> {
        found(self.0.clone(), self::HOLDS[HOLDS], op, of)
    }
    fn view(resolved: &Found) -> &Found {
        resolved
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::None => Some(AxesOf::ALL),
            other => Dims::from_value(other).map(AxesOf),
        }
    }
    fn accepted() -> String {
        Dims::accepted()
    }
}
