//! Reordering the dims of a [`Tensor`] by name. The gradient is reordered back.

use crate::chain::*;
use crate::op::Op;
use crate::operators::AsTensor;
use crate::tape::is_forward;
use crate::tensor::Tensor;
use namegrad_core::tensor::looked_behind;
use namegrad_core::{NameList, NamedTensor, Result};
use std::panic::Location;

/// # Ordering dims by name
impl Tensor {
    /// The tensor with its dims in the order of `names`; a new name adds a dim of size one. One `"..."`
    /// means the dims that are not mentioned, unnamed ones among them. A view.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::randn([("A", 2), ("B", 3), ("C", 4)])?;
    /// assert_eq!(x.align_to(["C", "D", "..."])?.shape().to_string(), "[C=4, D=1, A=2, B=3]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `UnnamedNotAllowed` if a dim is unnamed and there is no `"..."`, `NameNotFound` if a dim is not
    /// mentioned, `DuplicateName`, `InvalidName`, `Ellipsis`.
    #[track_caller]
    pub fn align_to(&self, names: impl NameList) -> Result<Tensor> {
        let caller = Location::caller();
        let value = looked_behind(|| self.value().align_to(names)).0.map_err(|error| error.at(caller))?;
        self.aligned("align_to", value)
    }

    /// The tensor with its dims in the order of the dims of `other`, for broadcasting by name. Dims that only
    /// `other` has are added with size one. A view.
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
    /// Same as [`align_to`](Self::align_to) with the names of `other`.
    #[track_caller]
    pub fn align_as(&self, other: &Tensor) -> Result<Tensor> {
        let caller = Location::caller();
        let made = looked_behind(|| self.value().align_as(other.value())).0;
        let value = made.map_err(|error| error.at(caller))?;
        self.aligned("align_as", value)
    }

    /// All tensors with their dims in the order of the dims of the tensor that has the most, for broadcasting
    /// by name. That tensor must have all names of the others; a dim that a tensor lacks is added with size
    /// one. Views.
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
    /// Same as [`align_to`](Self::align_to) with the names of the tensor that has the most dims.
    #[track_caller]
    pub fn align_tensors(tensors: impl IntoIterator<Item: AsTensor>) -> Result<Vec<Tensor>> {
        Tensor::all_aligned(&crate::plain::tensors(tensors)?)
    }

    #[track_caller]
    fn all_aligned(tensors: &[Tensor]) -> Result<Vec<Tensor>> {
        // If several have the most dims, the first of them, as in PyTorch's proposal.
        let longest = tensors.iter().rev().max_by_key(|x| x.ndim());
        let mut aligned = Vec::with_capacity(tensors.len());
        if let Some(longest) = longest {
            for x in tensors {
                aligned.push(x.align_as(longest).map_err(|error| error.of("align_tensors"))?);
            }
        }
        Ok(aligned)
    }

    /// The same of all slices: a permutation, and dims of size one.
    #[track_caller]
    fn aligned_slices(&self, value: NamedTensor) -> Result<Tensor> {
        let mut unnamed = (0..self.ndim()).filter(|dim| self.name(*dim).is_none());
        let (mut order, mut added) = (Vec::new(), Vec::new());
        for dim in 0..value.ndim() {
            match value.name(dim).map_or_else(|| unnamed.next(), |name| self.names().position(name)) {
                Some(source) => order.push(source),
                None => added.push(dim as isize),
            }
        }
        let mut x = self.unnamed().permute(order)?;
        for dim in added {
            x = x.unsqueeze(dim)?;
        }
        Ok(x.named(value.names().clone()))
    }

    #[track_caller]
    fn aligned(&self, op: &'static str, value: NamedTensor) -> Result<Tensor> {
        let (from, to) = (self.names().clone(), value.names().clone());
        if is_forward() && self.value().behind().is_some() {
            return self.aligned_slices(value);
        }
        crate::observe::starting(); // a view takes no time
        Ok(Op::new(op, value)
            .input(self, move |g, cx| {
                // First remove the dims of size one that alignment added, then restore the order. Unnamed dims
                // have kept theirs.
                let ndim = cx.sizes().len();
                let mut unnamed = (0..ndim).filter(|dim| from.get(*dim).is_none());
                let (mut added, mut back, mut kept) = (Vec::new(), vec![0; ndim], 0);
                for dim in 0..g.ndim() {
                    match to.get(dim).map_or_else(|| unnamed.next(), |name| from.position(name)) {
                        None => added.push(dim),
                        Some(source) => {
                            back[source] = kept;
                            kept += 1;
                        }
                    }
                }
                g.rename(None).squeeze(added).permute(back)
            })
            .output())
    }
}
