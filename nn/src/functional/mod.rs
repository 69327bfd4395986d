//! Layers without state, as functions: PyTorch's `torch.nn.functional`.
//!
//! Each file has a table of rows, in the grammar of all ops. A row has the code of its function, and what
//! several rows share is below them. The options of a function are a struct in [`options`].

mod activation;
mod attention;
pub(crate) mod conv;
mod distance;
pub(crate) mod dropout;
pub(crate) mod embedding;
mod fold;
pub(crate) mod image;
mod linear;
mod loss;
pub(crate) mod norm;
pub(crate) mod pool;
mod sample;
mod shuffle;

// Most tables need these names, and functions of each other: their files begin with `use super::*`.
use crate::dims::images::fault;
use crate::dims::{
    all_names, by_name, copied, is_batch, is_channel, is_in, moved_back, names_at, names_of, numel, others,
    permuted, range, renaming, repaired, sizes_of, tensor_of, whole, with_names,
};
use namegrad_autograd::chain::*;
use namegrad_autograd::{Tensor, TensorOptions, elsewhere, place};
use namegrad_core::args::{Argument, Extents, Positions, Value};
use namegrad_core::names::is_strict;
use namegrad_core::options::VectorNormOptions;
use namegrad_core::{
    DType, Device, Dim, Dims, Element, Error, ErrorKind, Name, NamedTensor, Names, Result, keep,
};
use namegrad_macros::{Words, functional, functions};
use std::borrow::Cow;
use std::fmt::Display;

/// A tensor with the name that the caller knows it by.
type Called<'a> = (&'a str, &'a Tensor);

/// The errors of arguments that do not fit: `(x.ndim() == 2).or_shape(format_args!(".."))?`. The function of
/// the row adds its name and its inputs.
pub(crate) trait OrError {
    /// An error about sizes unless this is true. The message is written only then.
    fn or_shape(self, message: impl Display) -> Result<()>;
    /// An error about a value unless this is true, like [`or_shape`](Self::or_shape).
    fn or_value(self, message: impl Display) -> Result<()>;
}

impl OrError for bool {
    #[inline]
    fn or_shape(self, message: impl Display) -> Result<()> {
        if self { Ok(()) } else { Err(shape_error(message)) }
    }
    #[inline]
    fn or_value(self, message: impl Display) -> Result<()> {
        if self { Ok(()) } else { Err(value_error(message)) }
    }
}

#[cold]
fn shape_error(message: impl Display) -> Error {
    fault(ErrorKind::Shape, message)
}

#[cold]
fn value_error(message: impl Display) -> Error {
    fault(ErrorKind::Value, message)
}

/// What is wrong with `bool` for a function of numbers.
const NOT_BOOL: &str = "not implemented for bool; it takes the integers and floats";

/// An error about a dtype unless it fits, which says to cast the tensor of this name to this dtype.
#[inline]
fn ensure_dtype(fits: bool, message: impl Display, cast: (&str, DType)) -> Result<()> {
    if fits { Ok(()) } else { Err(wrong_dtype(message, cast)) }
}

/// An error unless a tensor has floats: the message, followed by its dtype.
fn ensure_floats((name, x): Called<'_>, message: impl Display) -> Result<()> {
    let dtype = x.dtype();
    ensure_dtype(dtype.is_floating_point(), format_args!("{message} {dtype}"), (name, DType::F32))
}

/// An error unless what the message describes fits in memory.
#[inline]
fn ensure_memory(fits: bool, what: impl Display) -> Result<()> {
    if fits { Ok(()) } else { Err(fault(ErrorKind::OutOfMemory, format_args!("out of memory: {what}"))) }
}

/// The names of the first dims of a tensor, and that of one more dim.
fn names_and(x: &Tensor, leading: usize, last: Option<Name>) -> Result<Names> {
    let mut names = names_at(x, &range(0..leading));
    names.push(last);
    Names::new("", names)
}

/// An error unless the number of dims of a tensor fits. The message says what was expected instead.
fn ensure_dims(fits: bool, expected: &str, x: &Tensor) -> Result<()> {
    fits.or_shape(format_args!("expected {expected}, got {} dims", x.ndim()))
}

/// An error unless a tensor, such as `a bias`, has these sizes.
fn ensure_sizes(which: impl Display, x: &Tensor, sizes: &[usize]) -> Result<()> {
    (x.sizes() == sizes).or_shape(format_args!("expected {which} of sizes {sizes:?}, got {:?}", x.sizes()))
}

/// The error for a tensor of another dtype. It says to cast the tensor of this name to this dtype.
#[cold]
fn wrong_dtype(message: impl Display, (name, dtype): (&str, DType)) -> Error {
    fault(ErrorKind::DType, message).with_repair(format!("{name}.to(DType::{dtype:?})?"))
}

/// Checks that no dim of the last `rank` is called as channels are, where a function takes these dims because
/// it was not told other ones: in PyTorch's order, the channels are before them.
fn check_last(rank: usize, x: &Tensor) -> Result<()> {
    let Some(first) = x.ndim().checked_sub(rank) else { return Ok(()) };
    let mut names = (first..x.ndim()).filter_map(|dim| x.name(dim));
    let Some(name) = names.find(|name| is_channel(*name)) else { return Ok(()) };
    let message = format_args!(
        "unless its dims are given by name, this is over the last {rank} of {}, and '{name}' is that of channels",
        x.shape()
    );
    let error = fault(ErrorKind::Misaligned, message);
    let before = first.checked_sub(1);
    let repair = before.map(|dim| format!("x.movedim(\"{name}\", {dim})?, or the names of the dims"));
    Err(repaired(error, repair))
}

/// Checks that two dims that meet by position have the same name, if both have one; in strict mode, that both
/// have one or none. `name` is that of the tensor to rename, whose dim comes with it.
fn check_meeting((name, x, dim): (&str, &Tensor, usize), (other, met): (&str, Option<Name>)) -> Result<()> {
    let is_vector = x.ndim() == 1;
    let (message, repair) = match (x.name(dim), met) {
        (Some(own), Some(wanted)) if own != wanted => (
            format!("the dim '{own}' of {name} meets the dim '{wanted}' of {other}"),
            // Not if it would have the name twice.
            x.names().position(wanted).is_none().then(|| renaming(name, own, &wanted)),
        ),
        (Some(own), None) if is_strict() => (
            format!("strict names: the dim '{own}' of {name} meets an unnamed dim of {other}"),
            is_vector.then(|| format!("{name}.rename(None)?, if the dim of {other} is '{own}'")),
        ),
        (None, Some(wanted)) if is_strict() => (
            format!("strict names: an unnamed dim of {name} meets the dim '{wanted}' of {other}"),
            is_vector.then(|| format!("{name}.rename([\"{wanted}\"])?")),
        ),
        _ => return Ok(()),
    };
    Err(repaired(fault(ErrorKind::NameMismatch, message), repair))
}

/// [`check_meeting`] for the first dims of both tensors, the first of which is the one to rename.
fn check_meeting_all((name, x): Called<'_>, (other, y): Called<'_>, dims: usize) -> Result<()> {
    (0..dims).try_for_each(|dim| check_meeting((name, x, dim), (other, y.name(dim))))
}

pub(crate) use self::loss::no_class;
pub use self::loss::{ClassDim, Reduction};

/// Exports the functions of tables, with their options and layers, and lists them for the registry.
macro_rules! tables {
    ($($($table:ident)::+),*) => {
        $(pub use self::$($table)::+::*;)*

        /// The options of functions.
        #[allow(unused_imports, unreachable_pub)] // a table may have none
        pub mod options {
            $(pub use super::$($table)::+::options::*;)*
        }

        /// The layers of functions.
        #[allow(unused_imports, unreachable_pub)] // a table may have none
        pub(crate) mod layers {
            pub use super::activation::{along_layers::*, unary_layers::*};
            $(pub use super::$($table)::+::layers::*;)*
        }

        /// The functions by table, for `namegrad::ops`, except those that are also methods of a tensor.
        pub static OPS: &[&[&namegrad_autograd::registry::Op]] = &[$($($table)::+::OPS),*];
    };
}

// Each table is a file, some in the folder `loss`.
tables! {
    activation, attention, conv, distance, dropout, embedding, fold, image, image::resize, linear, loss::classes,
    loss::ctc, loss::margin, loss::probability, loss::regression, loss::similarity, norm, pool, sample, shuffle
}
