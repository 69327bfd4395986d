//! Ops that are composed of other ops with no loss of accuracy or speed, without their own kernel or
//! derivative.
//!
//! Each file has a table of rows, in the grammar of all ops, and the functions that the rows call, in the
//! module `kernels` below it.
//!
//! | file | ops |
//! | --- | --- |
//! | [`pointwise`] | elementwise |
//! | [`along`] | along one dim |
//! | [`products`], [`einsum`] | sums of products |
//! | [`shape`] | rearrangements |
//! | [`pattern`] | rearrangements by a pattern |
//! | [`parts`] | splitting |
//! | [`getitem`], [`index`] | indexing |
//! | [`masked`] | reductions over elements where a mask is true |
//! | [`segments`] | reductions over segments |
//! | [`join`] | concatenation |
//! | [`cast`] | other dtypes |
//! | [`like`] | new tensors like an existing one |
//! | [`write`](mod@write) | filling and copying in place |
//! | [`random`] | random numbers |
//! | [`statistics`] | covariances, distances, histograms |
//!
//! [`numbers`] is an argument of several of them.
//!
//! [`query`] has methods without rows: properties of a tensor.

// In the order in which rustdoc shows the methods of `Tensor`. The blank lines keep rustfmt from sorting
// them.
mod pointwise;

mod along;

mod shape;

mod pattern;

mod parts;

mod getitem;

mod index;

mod masked;

mod segments;

mod join;

mod products;

mod einsum;

mod cast;

mod like;

mod write;

mod random;

mod statistics;

mod numbers;

mod query;

pub use along::Between;
pub use getitem::{Index, Indices, Places};
pub use join::Indexing;
pub use numbers::Numbers;
pub use parts::Sections;
pub use pattern::{Text, WordSizes};
pub use shape::Strides;
pub use statistics::EuclidMode;

/// Replaces the tensor by the result of an op. If nothing is recorded, the tensor keeps its record on the
/// tape.
fn set_result(x: &mut crate::Tensor, y: crate::Tensor) {
    *x = match crate::is_grad_enabled() || x.carried().is_some() || y.carried().is_some() {
        true => y,
        false => crate::Tensor::from_parts(y.into_value(), x.meta().cloned()),
    };
}

/// The ops of all tables.
pub(crate) static OPS: &[&[&crate::registry::Op]] = &[
    along::OPS,
    cast::OPS,
    einsum::OPS,
    getitem::OPS,
    index::OPS,
    join::OPS,
    like::OPS,
    masked::OPS,
    parts::OPS,
    pattern::OPS,
    pointwise::OPS,
    products::OPS,
    random::OPS,
    segments::OPS,
    shape::OPS,
    statistics::OPS,
    write::OPS,
];

/// The options of composed ops.
#[allow(unused_imports, unreachable_pub)] // not every table has ops with options
pub(crate) mod options {
    pub use super::{
        along::options::*, cast::options::*, einsum::options::*, getitem::options::*, index::options::*,
        join::options::*, like::options::*, masked::options::*, parts::options::*, pattern::options::*,
        pointwise::options::*, products::options::*, random::options::*, segments::options::*,
        shape::options::*, statistics::options::*, write::options::*,
    };
}

/// The ops as methods of the result of another op.
#[allow(unreachable_pub)] // public through another path
pub(crate) mod chained {
    pub use super::{
        along::Chained as _, cast::Chained as _, einsum::Chained as _, getitem::Chained as _,
        index::Chained as _, join::Chained as _, like::Chained as _, masked::Chained as _,
        parts::Chained as _, pattern::Chained as _, pointwise::Chained as _, products::Chained as _,
        random::Chained as _, segments::Chained as _, shape::Chained as _, statistics::Chained as _,
        write::Chained as _,
    };
}
