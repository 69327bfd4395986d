//! Reordering dims by name. The results are views.

#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::Result;
use crate::names::{NameArg, NameList, Names, naming};
use crate::shape::{Sizes, Strides};
use crate::tensor::NamedTensor;

impl NamedTensor {
    /// The tensor with its dims in the order of `names`. A new name adds a dim of size one, and one `"..."`
    /// stands for the dims that are not mentioned.
    ///
    /// # Errors
    /// [`ErrorKind::UnnamedNotAllowed`], [`ErrorKind::NameNotFound`], [`ErrorKind::DuplicateName`],
    /// [`ErrorKind::Ellipsis`].
    #[track_caller]
    pub fn align_to(&self, names: impl NameList) -> Result<NamedTensor> {
        let dims = naming::align_to(self.input(), &names.name_list()?)?;
        Ok(self.aligned(&dims))
    }

    /// The tensor with its dims in the order of the dims of `other`. Dims that only `other` has are added
    /// with size one.
    ///
    /// # Errors
    /// Same as [`align_to`](Self::align_to) with the names of `other`.
    #[track_caller]
    pub fn align_as(&self, other: &NamedTensor) -> Result<NamedTensor> {
        let names: Vec<NameArg> = other
            .names()
            .iter(other.ndim())
            .map(|name| name.map_or(NameArg::Unnamed, NameArg::Name))
            .collect();
        let dims = naming::align_to(self.input(), &names).map_err(|error| {
            let repair = "rename the dim, or reduce it first: the other tensor must have every dim";
            error.of("align_as").with_operands([self.shape(), other.shape()]).with_repair(repair)
        })?;
        Ok(self.aligned(&dims))
    }

    /// The view that an alignment describes.
    fn aligned(&self, dims: &naming::Aligned) -> NamedTensor {
        let (mut sizes, mut strides) = (Sizes::new(), Strides::new());
        for (from, _) in dims {
            sizes.push(from.map_or(1, |dim| self.sizes()[dim]));
            strides.push(from.map_or(1, |dim| self.strides()[dim]));
        }
        self.view_as(sizes, strides, self.offset(), Names::unchecked(dims.iter().map(|(_, name)| *name)))
    }
}
