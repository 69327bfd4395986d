//! The ops, a row each.
//!
//! A row says an op's name (and its in-place form), its doc, its arguments and its kernel; `namegrad_macros`
//! has the grammar. One row makes the method of [`NamedTensor`](crate::NamedTensor), the method of
//! `namegrad::Tensor` with the same doc, the in-place form, the struct of its options and the entry in
//! [`all`]. The file says the kind: [`unary`] one tensor by element, [`binary`] two, [`reduce`] over dims,
//! [`along`] one dim, [`pick`] elements of it with their places, [`count`] counts and searches, [`shape`]
//! views and rearrangements, [`slice`](mod@slice) views of parts, [`join`] tensors put together, [`matmul`]
//! products, [`index`] and [`mask`] parts, [`norm`], [`loss`] and [`linalg`] what their names say. Without
//! rows are [`naming`], [`align`] and [`flatten`], the API of names, [`create`], [`data`] and [`random`], new
//! tensors, `cast`, casts, and `write`, what is written in place.
//!
//! An op checks its inputs, finds the dtype, the names and the sizes of its result, and calls a loop of
//! `crate::cpu`.

pub mod align;
pub mod along;
pub mod binary;
#[allow(unsafe_code)]
pub(crate) mod by_element;
#[allow(unsafe_code)]
mod cast;
pub mod contraction;
pub mod count;
pub mod create;
pub mod data;
pub mod flatten;
#[doc(hidden)]
pub mod gradients;
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
pub mod random;
pub mod reduce;
pub mod shape;
pub mod slice;
pub mod unary;
#[allow(unsafe_code)]
mod write;

/// The tables, each a file. `tables! { unary }` becomes
///
/// ```ignore
/// const TABLES: &[&[OpInfo]] = &[unary::ROWS];
/// pub(crate) mod options { pub use super::unary::options::*; }
/// macro_rules! op_tables { ($with:ident) => { $with! { unary } }; }
/// ```
macro_rules! tables {
    ($($table:ident)*) => {
        const TABLES: &[&[OpInfo]] = &[$($table::ROWS),*];
        /// The options of all ops.
        #[allow(unused_imports, unreachable_pub)] // not every table has ops with options
        pub(crate) mod options {
            $(pub use super::$table::options::*;)*
        }
        /// Hands the names of the tables to the macro `$with`: the crate that has the derivatives needs a
        /// module for each.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! op_tables {
            ($with:ident) => { $with! { $($table)* } };
        }
    };
}
tables! { unary binary reduce along pick count shape slice index mask join matmul linalg norm loss }

use crate::dtype::Category;

/// What is known of an op from its row.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// The name.
    pub name: &'static str,
    /// The in-place form, if there is one.
    pub in_place: Option<&'static str>,
    /// The table that it is in, which has the name of its file.
    pub table: &'static str,
    /// The tensors that it takes, the one that it is a method of first.
    pub tensors: &'static [TensorInfo],
    /// The other arguments.
    pub args: &'static [ArgInfo],
    /// The names of what it gives.
    pub outputs: &'static [&'static str],
    /// Does it work element by element?
    pub by_element: bool,
    /// The rule of name inference that it follows.
    pub rule: &'static str,
    /// The classes of dtypes that it takes.
    pub dtypes: &'static [Category],
    /// The doc.
    pub doc: &'static str,
}

/// A tensor that an op takes.
#[derive(Clone, Copy, Debug)]
pub struct TensorInfo {
    /// The name.
    pub name: &'static str,
    /// What can be given for it.
    pub kind: TensorKind,
    /// Does a number in its place keep all its digits, whatever the other tensors are?
    pub exact: bool,
}

/// What can be given for a tensor.
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
    /// The type, as the row says it.
    pub ty: &'static str,
    /// The tensors in which it is looked up; the first one if there are none.
    pub of: &'static [&'static str],
    /// The default, as Rust writes it.
    pub default: Option<&'static str>,
    /// Is it a field of the struct of options, or else always said?
    pub option: bool,
    /// Does it come before the tensors in the method, behind `self`?
    pub leads: bool,
}

/// Every op that has a row.
pub fn all() -> impl Iterator<Item = &'static OpInfo> {
    TABLES.iter().copied().flatten()
}
