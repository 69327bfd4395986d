//! Named tensors as plain values, without gradients: the foundation of
//! [`namegrad`](https://docs.rs/namegrad).
//!
//! Read [`NamedTensor`] first, then [`names`] and its rules, then the tables of [`ops`], and [`cpu`] for the
//! loops. Most programs use `namegrad::Tensor`, which is a [`NamedTensor`] with its record on the tape.

#![deny(unsafe_code)]

/// `format!` as a call. That of `std` has a path of its own for texts without arguments, in each of the
/// hundreds of messages here.
macro_rules! format {
    ($($words:tt)*) => { $crate::fmt::formatted(format_args!($($words)*)) };
}

#[doc(hidden)]
pub mod args;
#[doc(hidden)]
pub mod callback;
mod cell;
#[doc(hidden)]
pub mod close;
#[allow(unsafe_code)]
pub mod cpu;
mod device;
mod dim;
mod dtype;
mod error;
mod fmt;
#[doc(hidden)]
pub mod for_types;
#[doc(hidden)]
pub mod kernels;
mod layout;
pub mod names;
mod operand;
pub mod ops;
pub mod random;
#[allow(unsafe_code)]
#[doc(hidden)]
pub mod recycled;
mod shape;
#[allow(unsafe_code)]
#[doc(hidden)]
pub mod short;
mod sizes;
#[allow(unsafe_code)]
#[doc(hidden)]
pub mod tensor;

pub use args::{Argument, IntoShape, NewDim, Value, Whole};
#[doc(hidden)]
pub use callback::{joined, list};
pub use cell::Cell;
pub use cpu::conv::{Winograd, set_winograd};
#[cfg(feature = "rehearsal")]
pub use cpu::rehearsal;
#[doc(hidden)]
pub use device::OnDevice;
pub use device::{Device, on_device};
pub use dim::{Dim, Dims, IntoDim, IntoDims, except, keep};
#[doc(hidden)]
pub use dim::{called, in_rust};
pub use dtype::{Category, DType, Element, Number, Scalar, default_dtype};
pub use error::{Error, ErrorKind, Result};
pub use fmt::{PrintOptions, printoptions, set_printoptions};
pub use layout::Sizes;
pub use names::{Name, NameArg, NameList, Names, RenameArg};
pub use operand::Operand;
pub use ops::count::Unique;
pub use ops::create::set_default_dtype;
pub use ops::data::Data;
pub use ops::index::Reduce;
pub use ops::linalg::{QrMode, Triangle};
pub use ops::pick::Picked;
pub use ops::reduce::{MinMax, StdMean, VarMean};
pub use shape::Shape;
pub use tensor::NamedTensor;

/// The options of ops, such as `SoftplusOptions` in `x.softplus_with(SoftplusOptions::new().beta(2.0))`.
pub mod options {
    pub use crate::ops::options::*;
}

/// The memory that tensors use, and the cache of freed memory.
pub mod memory {
    pub use crate::cpu::storage::{
        MemoryStats, MetaStats, allocated_bytes, empty_cache, empty_meta_cache, meta_stats, reset_meta_peak,
        reset_peak, set_cache_limit, stats,
    };
}
