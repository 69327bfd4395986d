//! Ops that others express at no loss of accuracy or speed: no kernel and no derivative of their own.
//!
//! [`parts`] a tensor in parts, [`join`] tensors put together, [`shape`] rearrangements, [`index`] parts by position, [`pointwise`] by element, [`products`] sums
//! of products with [`einsum`], [`assign`] what a tensor is made to hold, [`query`] what is asked of one.

mod assign;
mod einsum;
mod index;
mod join;
mod parts;
mod pointwise;
mod products;
mod query;
mod shape;

pub use join::Indexing;
pub use parts::Sections;
pub use pointwise::Tolerance;
