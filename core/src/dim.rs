//! References to existing dims: by index (negative counts from the end), by name, as a list, or `..` for all.

use crate::args::{self, Whole};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::has;
use crate::names::{Name, naming};
use crate::recycled::DropByCall;
use crate::short::Short;
use crate::tensor::NamedTensor;
use smallvec::SmallVec;
use std::ops::RangeFull;

/// A dim of a tensor, not yet looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// By position; negative counts from the end.
    Index(isize),
    /// By name.
    Name(Name),
    /// A string that is not the name of any dim; kept for the error.
    Unknown(DropByCall<String>),
}

/// Several dims of a tensor, not yet looked up: one, a list, or `..` for all. [`keep`] marks them to be kept
/// by a reduction.
#[derive(Debug, PartialEq, Eq)]
pub struct Dims {
    /// `None` means all dims.
    list: Option<DropByCall<SmallVec<[Dim; 2]>>>,
    /// Whether the list has the dims to leave out.
    except: bool,
    keep: bool,
}

impl Clone for Dims {
    #[inline(never)]
    fn clone(&self) -> Dims {
        Dims { list: self.list.clone(), ..*self }
    }
}

impl Dims {
    /// `..`: all dims.
    pub const ALL: Dims = Dims { list: None, except: false, keep: false };

    /// Whether these are all dims (`..`).
    pub fn is_all(&self) -> bool {
        self.list.is_none()
    }

    /// Whether a reduction keeps these dims with size one.
    pub fn is_kept(&self) -> bool {
        self.keep
    }

    #[inline(never)]
    fn of<D: Into<Dim>>(dims: impl IntoIterator<Item = D>) -> Dims {
        let mut all = Dims { list: Some(DropByCall::new(SmallVec::new())), except: false, keep: false };
        for dim in dims {
            all.push(dim.into());
        }
        all
    }

    // Not generic, so that a list of dims is compiled once, and not for each type of dim in every crate.
    fn one(dim: Dim) -> Dims {
        let mut one = Dims { list: Some(DropByCall::new(SmallVec::new())), except: false, keep: false };
        one.push(dim);
        one
    }

    fn push(&mut self, dim: Dim) {
        if let Some(list) = &mut self.list {
            list.push(dim);
        }
    }
}

/// Dims that a reduction keeps with size one instead of removing them: PyTorch's `keepdim=True`.
///
/// ```
/// use namegrad_core::{NamedTensor, keep};
/// let x = NamedTensor::ones([("N", 2), ("C", 3)])?;
/// assert_eq!(x.sum(keep("C"))?.shape().to_string(), "[N=2, C=1]");
/// assert_eq!(x.sum("C")?.shape().to_string(), "[N=2]");
/// # Ok::<(), namegrad_core::Error>(())
/// ```
pub fn keep(dims: impl Into<Dims>) -> Dims {
    Dims { keep: true, ..dims.into() }
}

/// All dims but these.
///
/// ```
/// use namegrad_core::{NamedTensor, except, keep};
/// let x = NamedTensor::ones([("N", 2), ("C", 3), ("H", 4)])?;
/// assert_eq!(x.mean(except("C"))?.shape().to_string(), "[C=3]");
/// assert_eq!(x.var(keep(except(["N", "C"])))?.shape().to_string(), "[N=2, C=3, H=1]");
/// # Ok::<(), namegrad_core::Error>(())
/// ```
pub fn except(dims: impl Into<Dims>) -> Dims {
    let dims = dims.into();
    match dims.list {
        None => Dims { list: Some(DropByCall::new(SmallVec::new())), ..dims }, // all dims but all
        Some(_) => Dims { except: !dims.except, ..dims },
    }
}

/// The positions of dims of a tensor, in the order in which they were given, without duplicates.
pub type Positions = Short<usize, 6>;

impl From<&str> for Dim {
    fn from(name: &str) -> Dim {
        Name::lookup(name).map_or_else(|| Dim::Unknown(DropByCall::new(name.into())), Dim::Name)
    }
}
impl From<String> for Dim {
    fn from(name: String) -> Dim {
        Dim::from(name.as_str())
    }
}
impl From<&String> for Dim {
    fn from(name: &String) -> Dim {
        Dim::from(name.as_str())
    }
}
impl From<Name> for Dim {
    fn from(name: Name) -> Dim {
        Dim::Name(name)
    }
}

impl<I: Whole> From<I> for Dim {
    /// An index too large for `isize` is out of range for every tensor, so it becomes the largest `isize`.
    fn from(index: I) -> Dim {
        Dim::Index(args::position(index))
    }
}

/// What says which dim: a name or an index.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which dim",
    label = "expected a name or an index of a dim",
    note = "options go to the form of the method that ends in `_with`"
)]
pub trait IntoDim {
    /// The dim.
    #[doc(hidden)]
    fn into_dim(self) -> Dim;
}

#[diagnostic::do_not_recommend]
impl<D: Into<Dim>> IntoDim for D {
    #[inline]
    fn into_dim(self) -> Dim {
        self.into()
    }
}

/// What says which dims: a name, an index, a list of either, `..` for all, or [`keep`] and [`except`] of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which dims",
    label = "expected a name, an index, a list of them, or `..` for all",
    note = "several dims are a list: `[\"H\", \"W\"]`"
)]
pub trait IntoDims {
    /// The dims.
    #[doc(hidden)]
    fn into_dims(self) -> Dims;
}

#[diagnostic::do_not_recommend]
impl<D: Into<Dims>> IntoDims for D {
    #[inline]
    fn into_dims(self) -> Dims {
        self.into()
    }
}

impl<D: Into<Dim>> From<D> for Dims {
    fn from(dim: D) -> Dims {
        Dims::one(dim.into())
    }
}
impl<D: Into<Dim>, const K: usize> From<[D; K]> for Dims {
    fn from(dims: [D; K]) -> Dims {
        Dims::of(dims)
    }
}
impl<D: Into<Dim> + Clone> From<&[D]> for Dims {
    fn from(dims: &[D]) -> Dims {
        Dims::of(dims.iter().cloned())
    }
}
impl<D: Into<Dim> + Clone, const K: usize> From<&[D; K]> for Dims {
    fn from(dims: &[D; K]) -> Dims {
        Dims::from(dims.as_slice())
    }
}
impl<D: Into<Dim> + Clone> From<&Vec<D>> for Dims {
    fn from(dims: &Vec<D>) -> Dims {
        Dims::from(dims.as_slice())
    }
}
impl<D: Into<Dim>> From<Vec<D>> for Dims {
    fn from(dims: Vec<D>) -> Dims {
        Dims::of(dims)
    }
}

impl From<RangeFull> for Dims {
    fn from(_: RangeFull) -> Dims {
        Dims::ALL
    }
}
impl From<Positions> for Dims {
    fn from(dims: Positions) -> Dims {
        Dims::of(dims)
    }
}
impl From<&Positions> for Dims {
    fn from(dims: &Positions) -> Dims {
        Dims::from(dims.as_slice())
    }
}

/// The position of a dim. A 0-d tensor accepts the dims 0 and -1, as in PyTorch; kernels treat it as having
/// one dim of size one.
#[track_caller]
pub(crate) fn position(dim: &Dim, op: &'static str, x: &NamedTensor) -> Result<usize> {
    match dim {
        Dim::Index(index) => {
            resolve_index(op, *index, x.ndim().max(1)).map_err(|e| e.with_operands([x.shape()]))
        }
        Dim::Name(name) => match x.names().position(*name) {
            Some(dim) => Ok(dim),
            None => Err(naming::not_found(op, x.input(), name.as_str())),
        },
        // A layer may store the dim before the first tensor has the name.
        Dim::Unknown(text) => naming::position(op, x.input(), text),
    }
}

/// A dim as errors call it: `dim 'N'`, or `dim 0` without a name.
#[cold]
pub fn called(x: &NamedTensor, dim: usize) -> String {
    match x.name(dim) {
        Some(name) => format!("dim '{name}'"),
        None => format!("dim {dim}"),
    }
}

/// A dim as a call has it: `"N"`, or `0` without a name.
#[cold]
pub fn in_rust(x: &NamedTensor, dim: usize) -> String {
    match x.name(dim) {
        Some(name) => format!("\"{name}\""),
        None => dim.to_string(),
    }
}

/// The dims of a tensor of `ndim` that are not among these.
pub(crate) fn others(ndim: usize, dims: &[usize]) -> Positions {
    let mut others = Positions::new();
    for dim in 0..ndim {
        if !has(dims, dim) {
            others.push(dim);
        }
    }
    others
}

/// Sorts dims, which are few. Those of which none is before the other keep their order.
pub(crate) fn sort_dims(dims: &mut [usize], is_before: &dyn Fn(usize, usize) -> bool) {
    for end in 1..dims.len() {
        let mut at = end;
        while at > 0 && is_before(dims[at], dims[at - 1]) {
            dims.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// The positions of dims, without duplicates.
#[track_caller]
pub(crate) fn positions(dims: &Dims, op: &'static str, x: &NamedTensor) -> Result<Positions> {
    let Some(list) = &dims.list else { return Ok(others(x.ndim(), &[])) };
    let mut positions = Positions::new();
    for dim in list.iter() {
        let at = position(dim, op, x)?;
        if has(&positions, at) {
            let message = format!("{} appears multiple times in the list of dims", called(x, at));
            return Err(Error::about(&[x], ErrorKind::DimRange, op, message));
        }
        positions.push(at);
    }
    if dims.except {
        positions = others(x.ndim(), &positions);
    }
    Ok(positions)
}

/// Resolves an index into `ndim` dims; a negative index counts from the end.
#[inline(never)]
#[track_caller]
pub(crate) fn resolve_index(op: &'static str, index: isize, ndim: usize) -> Result<usize> {
    let positive = if index < 0 { index + ndim as isize } else { index };
    if positive < 0 || positive >= ndim as isize {
        let message = format!(
            "Dimension out of range (expected to be in range of [{}, {}], but got {index})",
            -(ndim as isize),
            ndim as isize - 1
        );
        return Err(
            Error::new(ErrorKind::DimRange, op, message).with_repair("-1 for the last dim, 0 for the first")
        );
    }
    Ok(positive as usize)
}
