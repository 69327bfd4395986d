//! Flattening consecutive dims of a [`Tensor`] into one, and splitting a dim, with names.

use crate::observe::starting;
use crate::op::Op;
use crate::tensor::Tensor;
use crate::vmap::value_of;
use namegrad_core::{Dim, Dims, IntoShape, Result, args};

/// # Flattening and unflattening by name
impl Tensor {
    /// Flattens consecutive dims into one dim called `out_dim`, or unnamed if that is `None`. A view if the
    /// dims are adjacent in memory.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let images = Tensor::rand([("N", 32), ("C", 3), ("H", 8), ("W", 8)])?;
    /// assert_eq!(images.flatten(["C", "H", "W"], "features")?.shape().to_string(), "[N=32, features=192]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DimRange` unless the dims are adjacent and in that order, `NameNotFound`, `InvalidName`,
    /// `DuplicateName`.
    #[track_caller]
    pub fn flatten<'a>(&self, dims: impl Into<Dims>, out_dim: impl Into<Option<&'a str>>) -> Result<Tensor> {
        starting();
        let (dims, name) = (dims.into(), out_dim.into());
        let of_slice = || self.value().flatten(dims.clone(), name);
        let value = value_of("flatten", self, &of_slice, &|x| x.flatten(dims.clone(), name))?;
        Ok(Op::new("flatten", value).input(self, |g, cx| g.reshape(cx.sizes())).output())
    }

    /// Splits `dim` into the dims of `shape`. The product of their sizes must be the size of `dim`; one size
    /// can be -1 and is then inferred. If the tensor has names, so must the new dims. A view.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let flat = Tensor::rand([("N", 32), ("features", 192)])?;
    /// let images = flat.unflatten("features", [("C", 3), ("H", 8), ("W", 8)])?;
    /// assert_eq!(images.shape().to_string(), "[N=32, C=3, H=8, W=8]");
    /// let pixels = flat.unflatten("features", [("C", 3), ("pixels", -1)])?;
    /// assert_eq!(pixels.shape().to_string(), "[N=32, C=3, pixels=64]");
    /// // A size that is a `usize` beside -1: the pairs as a tuple, where each can have its own type.
    /// let heads = 3_usize;
    /// let split = flat.unflatten("features", (("heads", heads), ("head", -1)))?;
    /// assert_eq!(split.shape().to_string(), "[N=32, heads=3, head=64]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Shape`, `NameNotFound`, `DimRange`, `InvalidName`, `DuplicateName`, `UnnamedNotAllowed` if the tensor
    /// has names and none of the new dims has one.
    #[track_caller]
    pub fn unflatten(&self, dim: impl Into<Dim>, shape: impl IntoShape) -> Result<Tensor> {
        starting();
        let (dim, shape) =
            (dim.into(), args::Shape(shape.into_open_shape().map_err(|error| error.of("unflatten"))?));
        let of_slice = || self.value().unflatten(dim.clone(), shape.clone());
        let value = value_of("unflatten", self, &of_slice, &|x| x.unflatten(dim.clone(), shape.clone()))?;
        Ok(Op::new("unflatten", value).input(self, |g, cx| g.reshape(cx.sizes())).output())
    }
}
