//! Layers without state, as functions: PyTorch's `torch.nn.functional`.
//!
//! Each file has a table of rows, in the grammar of all ops. A row has the code of its function, and what
//! several rows share is below them. The options of a function are a struct in [`options`].

mod activation;
mod attention;
pub(crate) mod conv;
mod distance;
mod dropout;
pub(crate) mod embedding;
mod fold;
pub(crate) mod image;
mod linear;
mod loss;
mod norm;
pub(crate) mod pool;
mod sample;
mod shuffle;

// Most tables need these names: their files begin with `use super::*`.
use crate::dims::images::fault;
use crate::dims::{moved_back, names_of, others, permuted, sizes_of, with_names};
use namegrad_autograd::chain::*;
use namegrad_autograd::{Tensor, TensorOptions};
use namegrad_core::args::{Argument, Extents, Immediate, Positions, Value};
use namegrad_core::names::is_strict;
use namegrad_core::options::VectorNormOptions;
use namegrad_core::{DType, Dim, Dims, Error, ErrorKind, Name, NamedTensor, Names, Result, keep};
use namegrad_macros::{functional, functions};
use std::borrow::Cow;

/// An error about sizes unless they fit. The function of the row adds its name and its inputs.
#[inline]
fn ensure_shape<M: Into<String>>(fits: bool, message: impl FnOnce() -> M) -> Result<()> {
    Error::ensure(fits, ErrorKind::Shape, "", message)
}

/// An error about a value unless it fits, like [`ensure_shape`].
#[inline]
fn ensure_value<M: Into<String>>(fits: bool, message: impl FnOnce() -> M) -> Result<()> {
    Error::ensure(fits, ErrorKind::Value, "", message)
}

/// The error for a tensor of another dtype. It says to cast the tensor of this name to this dtype.
#[cold]
fn wrong_dtype(message: impl std::fmt::Display, (name, dtype): (&str, DType)) -> Error {
    fault(ErrorKind::DType, message).with_repair(format!("{name}.to(DType::{dtype:?})?"))
}

/// Checks that no dim of the last `rank` is called as channels are, where a function takes these dims because
/// it was not told other ones: in PyTorch's order, the channels are before them.
fn check_last(rank: usize, x: &Tensor) -> Result<()> {
    let Some(first) = x.ndim().checked_sub(rank) else { return Ok(()) };
    let is_channel = |name: &Name| matches!(name.as_str(), "C" | "channel" | "channels");
    let Some(name) = (first..x.ndim()).filter_map(|dim| x.name(dim)).find(is_channel) else { return Ok(()) };
    let message = format_args!(
        "unless its dims are given by name, this is over the last {rank} of {}, and '{name}' is that of channels",
        x.shape()
    );
    let error = fault(ErrorKind::Misaligned, message);
    Err(match first {
        0 => error,
        _ => error.with_repair(format!("x.movedim(\"{name}\", {})?, or the names of the dims", first - 1)),
    })
}

/// Checks that two dims that meet by position have the same name, if both have one; in strict mode, that both
/// have one or none. `name` is that of the tensor to rename, whose dim comes with it.
fn check_meeting(
    (name, x, dim): (&str, &Tensor, usize),
    (other, wanted): (&str, Option<Name>),
) -> Result<()> {
    let error = match (x.name(dim), wanted) {
        (Some(own), Some(wanted)) if own != wanted => {
            let message = format_args!("the dim '{own}' of {name} meets the dim '{wanted}' of {other}");
            let repair = format!("{name}.rename([(\"{own}\", \"{wanted}\")])?, if both names mean the same");
            let error = fault(ErrorKind::NameMismatch, message);
            match x.names().position(wanted) {
                None => error.with_repair(repair),
                Some(_) => error, // it would have the name twice
            }
        }
        (Some(own), None) if is_strict() => {
            let message =
                format_args!("strict names: the dim '{own}' of {name} meets an unnamed dim of {other}");
            fault(ErrorKind::NameMismatch, message)
        }
        (None, Some(wanted)) if is_strict() => {
            let message =
                format_args!("strict names: an unnamed dim of {name} meets the dim '{wanted}' of {other}");
            fault(ErrorKind::NameMismatch, message)
        }
        _ => return Ok(()),
    };
    Err(error)
}

// Each table is a file, some in the folder `loss`. A new one is added to the four lists below.
pub use self::loss::{ClassDim, Reduction};
pub use self::{
    activation::*, attention::*, conv::*, distance::*, dropout::*, embedding::*, fold::*, image::*,
    linear::*, loss::classes::*, loss::ctc::*, loss::margin::*, loss::probability::*, loss::regression::*,
    loss::similarity::*, norm::*, pool::*, sample::*, shuffle::*,
};

/// The options of functions.
pub mod options {
    pub use super::{
        activation::options::*, attention::options::*, conv::options::*, distance::options::*,
        dropout::options::*, embedding::options::*, image::options::*, linear::options::*,
        loss::classes::options::*, loss::ctc::options::*, loss::margin::options::*,
        loss::probability::options::*, loss::regression::options::*, loss::similarity::options::*,
        norm::options::*, pool::options::*, sample::options::*,
    };
}

/// The layers of functions.
pub(crate) mod layers {
    pub use super::activation::{along_layers::*, layers::*, unary_layers::*};
    pub use super::loss::{
        classes::layers::*, ctc::layers::*, margin::layers::*, probability::layers::*, regression::layers::*,
        similarity::layers::*,
    };
    pub use super::{distance::layers::*, dropout::layers::*, image::layers::*, shuffle::layers::*};
}

/// The functions by table, for `namegrad::ops`, except those that are also methods of a tensor.
pub static OPS: &[&[&namegrad_autograd::registry::Op]] = &[
    activation::OPS,
    attention::OPS,
    conv::OPS,
    distance::OPS,
    dropout::OPS,
    embedding::OPS,
    fold::OPS,
    image::OPS,
    linear::OPS,
    loss::classes::OPS,
    loss::ctc::OPS,
    loss::margin::OPS,
    loss::probability::OPS,
    loss::regression::OPS,
    loss::similarity::OPS,
    norm::OPS,
    pool::OPS,
    sample::OPS,
    shuffle::OPS,
];
