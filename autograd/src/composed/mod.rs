//! Ops that others express at no loss of accuracy or speed: no kernel and no derivative of their own.
//!
//! Each file has a table of rows, in the grammar of all ops, and the functions that the rows call in the
//! module `kernels` below it: [`parts`] a tensor in parts, [`join`] tensors put together, [`shape`]
//! rearrangements, [`along`] one dim, [`getitem`] and [`index`] parts by position, [`pointwise`] by element,
//! [`products`] sums of products with [`einsum`], [`cast`] other dtypes, [`like`] new tensors like one that
//! is there, [`write`](mod@write) what a tensor is made to hold, [`random`] random numbers. Without rows is
//! [`query`], what is asked of a tensor.

// In the order in which the page of `Tensor` shows their methods; blank lines keep rustfmt from sorting them.
mod pointwise;

mod along;

mod shape;

mod parts;

mod getitem;

mod index;

mod join;

mod products;

mod einsum;

mod cast;

mod like;

mod write;

mod random;

mod query;

pub use einsum::Equation;
pub use getitem::{Index, Indices};
pub use join::Indexing;
pub use parts::Sections;

/// The tables, each a file. `tables! { along }` becomes
///
/// ```ignore
/// pub(crate) const OPS: &[&[&crate::registry::Op]] = &[along::OPS];
/// pub(crate) mod options { pub use super::along::options::*; }
/// pub(crate) mod chained { pub use super::along::Chained as _; }
/// ```
macro_rules! tables {
    ($($table:ident)*) => {
        pub(crate) const OPS: &[&[&crate::registry::Op]] = &[$($table::OPS),*];
        /// The options of composed ops.
        #[allow(unused_imports, unreachable_pub)] // not every table has ops with options
        pub(crate) mod options {
            $(pub use super::$table::options::*;)*
        }
        #[allow(unreachable_pub)] // public by another path
        pub(crate) mod chained {
            $(pub use super::$table::Chained as _;)*
        }
    };
}
tables! { along cast einsum getitem index join like parts pointwise products random shape write }
