//! Dims of a [`Tensor`] brought into an order by name; the gradient goes the way back.

use crate::op::Op;
use crate::tensor::Tensor;
use namegrad_core::{Name, NameArg, NameList, NamedTensor, Result};

/// # Dims in the order of names
impl Tensor {
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
    pub fn align_tensors(tensors: impl IntoIterator<Item: AsRef<Tensor>>) -> Result<Vec<Tensor>> {
        let tensors: Vec<_> = tensors.into_iter().collect();
        Tensor::all_aligned(&tensors.iter().map(AsRef::as_ref).collect::<Vec<_>>())
    }

    #[track_caller]
    fn all_aligned(tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
        // The first of equally long ones, as in PyTorch's proposal.
        let longest = tensors.iter().rev().max_by_key(|x| x.ndim());
        let mut aligned = Vec::with_capacity(tensors.len());
        if let Some(longest) = longest {
            for x in tensors {
                aligned.push(x.align_as(longest).map_err(|error| error.of("align_tensors"))?);
            }
        }
        Ok(aligned)
    }

    #[track_caller]
    fn aligned(&self, op: &'static str, value: NamedTensor) -> Tensor {
        let (from, to) = (self.names().clone(), value.names().clone());
        Op::new(op, value)
            .input(self, move |g, cx| {
                // The dims of size one that alignment added go first, then the order is undone.
                let g = g.rename(Some(to.clone()))?;
                let is_new = |name: Option<Name>| name.is_none_or(|name| from.position(name).is_none());
                let added: Vec<usize> = (0..g.ndim()).filter(|dim| is_new(to.get(*dim))).collect();
                let back: Vec<NameArg> = from.iter(cx.sizes().len()).flatten().map(NameArg::Name).collect();
                g.squeeze(added)?.align_to(back)?.rename(None)?.reshape(cx.sizes())
            })
            .output()
    }
}
