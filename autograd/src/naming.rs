//! The naming API of [`Tensor`] and what changes the dtype: the value changes its dress, gradients pass
//! unchanged or go the way back.

use crate::op::Op;
use crate::tensor::Tensor;
use namegrad_core::{Dim, Dims, ErrorKind, IntoShape, Name, NameArg, NameList, RenameArg, Result};

impl Tensor {
    /// The tensor with other names: `None` drops them, a list renames by position (with at most one `"..."`),
    /// pairs rename by name. A view.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let images = Tensor::rand([("N", 2), ("C", 3), ("H", 5), ("W", 7)])?;
    /// assert_eq!(images.rename([("N", "batch"), ("C", "channels")])?.shape().to_string(), "[batch=2, channels=3, H=5, W=7]");
    /// assert_eq!(images.rename(["a", "..."])?.shape().to_string(), "[a=2, C=3, H=5, W=7]");
    /// assert!(!images.rename(None)?.has_names());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `NameCount`, `NameNotFound`, `DuplicateName`, `InvalidName`, `Ellipsis`.
    #[track_caller]
    pub fn rename(&self, names: impl RenameArg) -> Result<Tensor> {
        let value = self.value().rename(names)?;
        Ok(self.with_value(value))
    }

    /// In place: [`rename`](Self::rename).
    ///
    /// # Errors
    /// Those of `rename`.
    #[track_caller]
    pub fn rename_(&mut self, names: impl RenameArg) -> Result<&mut Tensor> {
        let renamed = self.value().rename(names)?;
        *self = self.with_value(renamed);
        Ok(self)
    }

    /// The tensor with unnamed dims named; a named dim keeps its name. One `"..."` stands for the dims that
    /// stay as they are. A view.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::randn([2, 3, 5, 7, 11])?.refine_names(["A", "...", "B", "C"])?;
    /// assert_eq!(x.shape().to_string(), "[A=2, ?=3, ?=5, B=7, C=11]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `RefineConflict`, `DuplicateName`, `InvalidName`, `Ellipsis`.
    #[track_caller]
    pub fn refine_names(&self, names: impl NameList) -> Result<Tensor> {
        let value = self.value().refine_names(names)?;
        Ok(self.with_value(value))
    }

    /// The same place on the tape under other names: names mean nothing to a gradient.
    fn with_value(&self, value: namegrad_core::NamedTensor) -> Tensor {
        Tensor::from_parts(value, self.meta().cloned())
    }

    /// The same tensor with these names: as many as dims, or none.
    pub(crate) fn named(self, names: namegrad_core::Names) -> Tensor {
        let meta = self.meta().cloned();
        Tensor::from_parts(self.into_value().with_names(names), meta)
    }

    /// The tensor with its dims in the order of `names`; a new name is a dim of size one. One `"..."` stands
    /// for the dims not mentioned. A view.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::randn([("A", 2), ("B", 3), ("C", 4)])?;
    /// assert_eq!(x.align_to(["C", "D", "..."])?.shape().to_string(), "[C=4, D=1, A=2, B=3]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `UnnamedNotAllowed`, `NameNotFound` if a dim is not mentioned, `DuplicateName`, `InvalidName`,
    /// `Ellipsis`.
    #[track_caller]
    pub fn align_to(&self, names: impl NameList) -> Result<Tensor> {
        let value = self.value().align_to(names)?;
        Ok(self.aligned("align_to", value))
    }

    /// The tensor with its dims in the order of those of `other`, which may have more: these get size one.
    /// For broadcasting by name. A view.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let images = Tensor::rand([("N", 2), ("H", 4), ("W", 4), ("C", 3)])?;
    /// let scale = Tensor::rand([("C", 3)])?;
    /// let scaled = images.mul(scale.align_as(&images)?)?;
    /// assert_eq!(scaled.shape(), images.shape());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`align_to`](Self::align_to) with the names of `other`.
    #[track_caller]
    pub fn align_as(&self, other: &Tensor) -> Result<Tensor> {
        let value = self.value().align_as(other.value())?;
        Ok(self.aligned("align_as", value))
    }

    /// All tensors with their dims in the order of those of the tensor that has most, which has every name
    /// that one of them has; a dim that a tensor lacks gets size one. For broadcasting by name. Views.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, y) = (Tensor::rand([("N", 2), ("C", 3)])?, Tensor::rand([("C", 3)])?);
    /// let aligned = Tensor::align_tensors(&[&y, &x])?;
    /// assert_eq!(aligned[0].shape().to_string(), "[N=1, C=3]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`align_to`](Self::align_to) with the names of the longest.
    #[track_caller]
    pub fn align_tensors(tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
        // The first of equally long ones, as in PyTorch's proposal.
        let longest = tensors.iter().rev().max_by_key(|x| x.ndim());
        let mut aligned = Vec::with_capacity(tensors.len());
        if let Some(longest) = longest {
            for x in tensors {
                aligned.push(x.align_as(longest)?);
            }
        }
        Ok(aligned)
    }

    #[track_caller]
    fn aligned(&self, op: &'static str, value: namegrad_core::NamedTensor) -> Tensor {
        let (from, to) = (self.names().clone(), value.names().clone());
        let back: Vec<NameArg> = from.iter(self.ndim()).flatten().map(NameArg::Name).collect();
        Op::new(op, value)
            .input(self, move |g, cx| {
                // The dims of size one that alignment added go first, then the order is undone.
                let g = g.rename(Some(to.clone()))?;
                let is_new = |name: Option<Name>| name.is_none_or(|name| from.position(name).is_none());
                let added: Vec<usize> = (0..g.ndim()).filter(|dim| is_new(to.get(*dim))).collect();
                g.squeeze(added)?.align_to(back.clone())?.rename(None)?.reshape(cx.sizes())
            })
            .output()
    }

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

    /// The sum over the dims along which a tensor of `sizes` was broadcast to this one's.
    ///
    /// # Errors
    /// `Shape` if `sizes` do not broadcast to those of this tensor.
    #[track_caller]
    pub fn sum_to(&self, sizes: &[usize]) -> Result<Tensor> {
        let new = self.ndim().saturating_sub(sizes.len());
        let broadcast = |dim: &usize| *dim < new || sizes[dim - new] == 1 && self.sizes()[*dim] != 1;
        let fits = self.ndim() >= sizes.len()
            && (new..self.ndim()).all(|dim| sizes[dim - new] == self.sizes()[dim] || sizes[dim - new] == 1);
        let message = || format!("sizes {sizes:?} do not broadcast to {:?}", self.sizes());
        Tensor::ensure(fits, ErrorKind::Shape, "sum_to", message)?;
        let dims: Vec<usize> = (0..self.ndim()).filter(broadcast).collect();
        self.unnamed().sum(dims)?.reshape(sizes)
    }

    /// The end of an in-place op that may change sizes, such as a transposition.
    #[track_caller]
    pub(crate) fn become_result(&mut self, op: &'static str, y: Tensor) -> Result<&mut Tensor> {
        let (from, to) = (y.dtype(), self.dtype());
        let message = || format!("result type {from} can't be cast to the desired output type {to}");
        Tensor::ensure(from.can_cast(to), ErrorKind::DType, op, message)?;
        *self = y.to(self.dtype())?;
        Ok(self)
    }
}
