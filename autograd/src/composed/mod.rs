//! Ops that others express at no loss of accuracy or speed: no kernel and no derivative of their own.
//!
//! Each file has a table of rows, in the grammar of all ops, and the functions that the rows call in the
//! module `kernels` below it: [`parts`] a tensor in parts, [`join`] tensors put together, [`shape`]
//! rearrangements, [`along`] one dim, [`getitem`] and [`index`] parts by position, [`pointwise`] by element,
//! [`products`] sums of products with [`einsum`], [`cast`] other dtypes, [`like`] new tensors like one that
//! is there, [`write`](mod@write) what a tensor is made to hold, [`random`] random numbers. Without rows is
//! [`query`], what is asked of a tensor.

mod along;
mod cast;
mod einsum;
mod getitem;
mod index;
mod join;
mod like;
mod parts;
mod pointwise;
mod products;
mod query;
mod random;
mod shape;
mod write;

pub use einsum::Equation;
pub use getitem::{Index, Indices};
pub use join::Indexing;
pub use parts::Sections;

/// The tables, each a file. `tables! { along }` becomes
///
/// ```ignore
/// pub(crate) const OPS: &[&[&crate::registry::Op]] = &[along::OPS];
/// pub(crate) mod options { pub use super::along::options::*; }
/// ```
macro_rules! tables {
    ($($table:ident)*) => {
        pub(crate) const OPS: &[&[&crate::registry::Op]] = &[$($table::OPS),*];
        /// The options of composed ops.
        #[allow(unused_imports, unreachable_pub)] // not every table has ops with options
        pub(crate) mod options {
            $(pub use super::$table::options::*;)*
        }
    };
}
tables! { along cast einsum getitem index join like parts pointwise products random shape write }
