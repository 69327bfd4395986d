//! The ops; each is a row of a table.
//!
//! A row gives the name of an op (and of its in-place form), its doc, its arguments and its kernel;
//! `namegrad_macros` has the grammar. From each row come the method of [`NamedTensor`](crate::NamedTensor),
//! the method of `namegrad::Tensor` with the same doc, the in-place form, the option struct and the entry in
//! [`all`].
//!
//! | file | ops |
//! | --- | --- |
//! | [`unary`], [`binary`] | elementwise, on one tensor or several |
//! | [`reduce`] | reductions over dims |
//! | [`along`] | softmax and cumulative sums along one dim |
//! | [`pick`] | elements of a dim with their positions |
//! | [`count`] | counts and searches |
//! | [`shape`], [`slice`](mod@slice) | views and rearrangements |
//! | [`index`], [`mask`] | parts by index and by mask |
//! | [`join`] | concatenation |
//! | [`matmul`], [`linalg`] | products, linear algebra |
//! | [`conv`], [`pool`], [`image`] | convolution, pooling, resizing and sampling of images |
//! | [`norm`], [`attention`], [`recurrent`], [`loss`] | normalization, attention, recurrent layers, losses |
//!
//! The other files have methods without rows: [`naming`], [`align`] and [`flatten`] for names, [`create`],
//! [`data`] and [`random`] for new tensors, `cast` for casts, `write` for writing in place, and `tiles` for
//! chains of ops that run tile by tile.
//!
//! An op checks its inputs, finds the dtype, the names and the sizes of its result, and calls a loop of
//! `crate::cpu`.

pub mod align;
pub mod along;
#[allow(unsafe_code)]
pub mod attention;
pub mod binary;
#[allow(unsafe_code)]
#[doc(hidden)]
pub mod by_element;
#[allow(unsafe_code)]
mod cast;
pub mod contraction;
pub mod conv;
pub mod count;
pub mod create;
pub mod data;
pub mod flatten;
#[doc(hidden)]
pub mod gradients;
pub mod image;
pub mod index;
pub mod join;
pub mod linalg;
pub mod loss;
pub mod mask;
#[allow(unsafe_code)]
pub mod matmul;
pub mod naming;
pub mod norm;
pub mod pick;
pub mod pool;
pub mod random;
pub mod recurrent;
pub mod reduce;
pub mod shape;
pub mod slice;
#[doc(hidden)]
pub mod standardize;
#[allow(unsafe_code)]
#[doc(hidden)]
pub mod tiles;
pub mod unary;
pub(crate) mod unify;
#[allow(unsafe_code)]
mod write;

/// The rows of all tables; each table is a file. As a static, they are in one crate only.
static TABLES: &[&[OpInfo]] = &[
    &unary::ROWS,
    &binary::ROWS,
    &reduce::ROWS,
    &along::ROWS,
    &pick::ROWS,
    &count::ROWS,
    &shape::ROWS,
    &slice::ROWS,
    &index::ROWS,
    &mask::ROWS,
    &join::ROWS,
    &matmul::ROWS,
    &linalg::ROWS,
    &conv::ROWS,
    &pool::ROWS,
    &image::ROWS,
    &norm::ROWS,
    &attention::ROWS,
    &recurrent::ROWS,
    &loss::ROWS,
];

/// The options of all ops.
#[allow(unused_imports, unreachable_pub)] // not every table has ops with options
pub(crate) mod options {
    pub use super::{
        along::options::*, attention::options::*, binary::options::*, conv::options::*, count::options::*,
        image::options::*, index::options::*, join::options::*, linalg::options::*, loss::options::*,
        mask::options::*, matmul::options::*, norm::options::*, pick::options::*, pool::options::*,
        recurrent::options::*, reduce::options::*, shape::options::*, slice::options::*, unary::options::*,
    };
}

use crate::dtype::Category;
use crate::names::{Meets, Outcome};

/// Facts about an op, from its row.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// The name.
    pub name: &'static str,
    /// The in-place form, if there is one.
    pub in_place: Option<&'static str>,
    /// The table of the op, which has the name of its file.
    pub table: &'static str,
    /// The tensors that the op takes, starting with the one that it is a method of.
    pub tensors: &'static [TensorInfo],
    /// The other arguments.
    pub args: &'static [ArgInfo],
    /// The names of the outputs.
    pub outputs: &'static [&'static str],
    /// Whether the op is elementwise.
    pub by_element: bool,
    /// What each output has.
    pub names: &'static [Outcome],
    /// The rule of names in words, made from `names` and from how its inputs meet.
    pub rule: &'static str,
    /// The categories of dtypes that the op takes.
    pub dtypes: &'static [Category],
    /// The doc comment.
    pub doc: &'static str,
}

/// A tensor that an op takes.
#[derive(Clone, Copy, Debug)]
pub struct TensorInfo {
    /// The name.
    pub name: &'static str,
    /// The kind of tensor that can be passed.
    pub kind: TensorKind,
    /// Whether a number passed for it keeps all its digits, regardless of the other tensors.
    pub exact: bool,
    /// How its names meet those of the first tensor.
    pub meets: Meets,
}

/// The kinds of tensors that can be passed for a tensor of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorKind {
    /// A tensor.
    Tensor,
    /// A tensor or a number.
    Operand,
    /// A tensor or nothing.
    Optional,
    /// A tensor of `bool`.
    Mask,
    /// Any number of tensors.
    List,
}

/// An argument of an op that is not a tensor.
#[derive(Clone, Copy, Debug)]
pub struct ArgInfo {
    /// The name, which is PyTorch's.
    pub name: &'static str,
    /// The type, as written in the row.
    pub ty: &'static str,
    /// The tensors in which it is looked up; the first tensor if this is empty.
    pub of: &'static [&'static str],
    /// The default, as Rust code.
    pub default: Option<&'static str>,
    /// Whether it is a field of the option struct; otherwise it is always passed.
    pub option: bool,
    /// Whether it comes before the tensors in the method, after `self`.
    pub leads: bool,
    /// How names in it, such as those of sizes, meet those of the first tensor.
    pub meets: Option<Meets>,
}

/// Every op that has a row.
pub fn all() -> impl Iterator<Item = &'static OpInfo> {
    // Otherwise the compiler, which knows the tables, makes a loop for each.
    std::hint::black_box(TABLES).iter().copied().flatten()
}
