//! Complex numbers as pairs (re, im) along a dim of size 2.
//!
//! Real tensors hold complex numbers: one of their dims has the size 2 and the elements (re, im). It is the dim
//! called `complex`, wherever it is, or the last dim, if that has no name. A function that makes a complex
//! tensor puts this dim at the end, and calls it `complex` if its input has names. So `view_as_real` and
//! `view_as_complex` of PyTorch are the identity, files need no further dtype, and sums, differences, means,
//! views and indexing are those of real tensors. The functions here are those that differ.
//!
//! ```
//! use namegrad::complex;
//! use namegrad::prelude::*;
//! let z = complex::from_parts(&Tensor::new([3.0, 0.0])?, &Tensor::new([4.0, 1.0])?)?;
//! assert_eq!(z.sizes(), [2, 2]);
//! assert_eq!(complex::abs(&z)?.to_vec::<f32>()?, [5.0, 1.0]);
//! let squares = complex::mul(&z, &z)?;
//! assert_eq!(complex::display(&squares)?.to_string(), "[-7+24i, -1+0i]");
//! # Ok::<(), Error>(())
//! ```
//!
//! # Gradients
//!
//! The gradient of a complex tensor is that of the pairs, again (re, im). That is PyTorch's convention: the
//! direction in which a real loss grows fastest.
//!
//! # Why there is no complex dtype
//!
//! A dtype is compiled into every loop: `docs/complex.md` in the repository has the figures.

mod arithmetic;
mod elementary;
mod number;
mod parts;
mod text;

pub use arithmetic::*;
pub use elementary::*;
pub use parts::*;
pub use text::{Text, display};

/// The options of functions.
pub mod options {
    pub use super::parts::options::*;
}
pub use options::*;

pub(crate) use {arithmetic::OPS as ARITHMETIC, elementary::OPS as ELEMENTARY, parts::OPS as PARTS};
