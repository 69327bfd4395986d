//! Ops as methods of the result of another op, so that a chain of ops needs only one `?`.
//!
//! Every op that is a method of [`Tensor`] is also a method of `Result<Tensor>` and of [`Parameter`], except
//! the in-place forms. The first op that fails ends the chain, and the error names that op and its line. The
//! prelude brings the methods into scope.
//!
//! ```
//! use namegrad_autograd::Tensor;
//! use namegrad_autograd::chain::*;
//! use namegrad_core::keep;
//!
//! let x = Tensor::randn([("N", 2), ("C", 3)])?;
//! let scale = x.square().mean(keep("C")).add(1e-6).rsqrt()?; // [N, C=1]
//! assert_eq!(scale.sizes_of(["N", "C"])?, [2, 1]);
//!
//! let error = x
//!     .exp()
//!     .sum("H") // the op and the line that the error names
//!     .log()
//!     .unwrap_err();
//! assert_eq!((error.op(), error.location().line()), ("sum", line!() - 3));
//! # Ok::<(), namegrad_core::Error>(())
//! ```

use crate::parameter::Parameter;
use crate::tensor::Tensor;
use namegrad_core::{Dim, Dims, Element, IntoShape, NameList, Number, RenameArg, Result, Whole};

pub use crate::composed::chained::*;
pub use crate::rules::chained::*;

/// A value on which an op can be called: the result of another op, or a parameter.
#[doc(hidden)]
pub trait Made: Sized {
    fn made(self) -> Result<Tensor>;
}

/// For the methods of other crates, which are those of a trait.
impl Made for &Tensor {
    #[inline]
    fn made(self) -> Result<Tensor> {
        Ok(self.clone())
    }
}

impl Made for Result<Tensor> {
    #[inline]
    fn made(self) -> Result<Tensor> {
        self
    }
}

impl Made for &Parameter {
    #[inline]
    fn made(self) -> Result<Tensor> {
        Ok(self.tensor())
    }
}

/// Methods for results of ops that do not come from rows: names, and methods that end a chain.
#[doc(hidden)]
pub trait ChainMethods: Made {
    #[track_caller]
    fn rename(self, names: impl RenameArg) -> Result<Tensor> {
        self.made()?.rename(names)
    }

    #[track_caller]
    fn refine_names(self, names: impl NameList) -> Result<Tensor> {
        self.made()?.refine_names(names)
    }

    #[track_caller]
    fn align_to(self, names: impl NameList) -> Result<Tensor> {
        self.made()?.align_to(names)
    }

    #[track_caller]
    fn align_as(self, other: &Tensor) -> Result<Tensor> {
        self.made()?.align_as(other)
    }

    #[track_caller]
    fn flatten<'a>(self, dims: impl Into<Dims>, out_dim: impl Into<Option<&'a str>>) -> Result<Tensor> {
        self.made()?.flatten(dims, out_dim)
    }

    #[track_caller]
    fn unflatten(self, dim: impl Into<Dim>, shape: impl IntoShape) -> Result<Tensor> {
        self.made()?.unflatten(dim, shape)
    }

    #[track_caller]
    fn requiring_grad(self) -> Result<Tensor> {
        self.made()?.requiring_grad()
    }

    #[track_caller]
    fn check_finite(self) -> Result<Tensor> {
        self.made()?.check_finite()
    }

    #[track_caller]
    fn item<T: Number>(self) -> Result<T> {
        self.made()?.item()
    }

    #[track_caller]
    fn item_at<T: Number>(self, at: impl IntoIterator<Item: Whole>) -> Result<T> {
        self.made()?.item_at(at)
    }

    #[track_caller]
    fn to_vec<T: Element>(self) -> Result<Vec<T>> {
        self.made()?.to_vec()
    }

    #[track_caller]
    fn backward(self) -> Result<()> {
        self.made()?.backward()
    }
}

impl ChainMethods for Result<Tensor> {}
impl ChainMethods for &Parameter {}
