//! Consecutive dims of a [`Tensor`] as one dim, and a dim as several, with names.

use crate::op::Op;
use crate::tensor::Tensor;
use namegrad_core::{Dim, Dims, IntoShape, Result};

/// # Dims merged and split by name
impl Tensor {
    /// Consecutive dims as one dim of name `out_dim`, or without a name for `None`. A view if they stand
    /// together in memory.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let images = Tensor::rand([("N", 32), ("C", 3), ("H", 8), ("W", 8)])?;
    /// assert_eq!(images.flatten(["C", "H", "W"], "features")?.shape().to_string(), "[N=32, features=192]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DimRange` unless the dims stand side by side in that order, `NameNotFound`, `InvalidName`,
    /// `DuplicateName`.
    #[track_caller]
    pub fn flatten<'a>(&self, dims: impl Into<Dims>, out_dim: impl Into<Option<&'a str>>) -> Result<Tensor> {
        let value = self.value().flatten(dims, out_dim)?;
        Ok(Op::new("flatten", value).input(self, |g, cx| g.reshape(cx.sizes())).output())
    }

    /// Dim `dim` as the dims of `shape`, whose sizes must multiply to its size; one of them may be -1, to be
    /// inferred. A view.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let flat = Tensor::rand([("N", 32), ("features", 192)])?;
    /// let images = flat.unflatten("features", [("C", 3), ("H", 8), ("W", 8)])?;
    /// assert_eq!(images.shape().to_string(), "[N=32, C=3, H=8, W=8]");
    /// assert_eq!(flat.unflatten("features", [("C", 3), ("pixels", -1)])?.shape().to_string(), "[N=32, C=3, pixels=64]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Shape`, `NameNotFound`, `DimRange`, `InvalidName`, `DuplicateName`.
    #[track_caller]
    pub fn unflatten(&self, dim: impl Into<Dim>, shape: impl IntoShape) -> Result<Tensor> {
        let value = self.value().unflatten(dim, shape)?;
        Ok(Op::new("unflatten", value).input(self, |g, cx| g.reshape(cx.sizes())).output())
    }
}
