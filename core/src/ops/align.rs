//! Reordering dims by name. The results are views.
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::Result;
use crate::layout::{Sizes, Strides};
use crate::names::{NameArg, NameList, Names, naming};
use crate::tensor::NamedTensor;

impl NamedTensor {
    /// The tensor with its dims in the order of `names`. A new name adds a dim of size one, and one `"..."`
    /// means the dims that are not mentioned, unnamed ones among them.
    ///
    /// # Errors
    /// [`ErrorKind::UnnamedNotAllowed`], [`ErrorKind::NameNotFound`], [`ErrorKind::DuplicateName`],
    /// [`ErrorKind::Ellipsis`].
    #[track_caller]
    pub fn align_to(&self, names: impl NameList) -> Result<NamedTensor> {
        let list = names.name_list();
        let Ok(wanted) = &list else {
            return Err(list.expect_err("it is no list").of("align_to"));
        };
        let dims = naming::align_to(self.input(), wanted)?;
        Ok(self.aligned(&dims))
    }

    /// The tensor with its dims in the order of the dims of `other`. Dims that only `other` has are added
    /// with size one.
    ///
    /// # Errors
    /// Same as [`align_to`](Self::align_to) with the names of `other`.
    #[track_caller]
    pub fn align_as(&self, other: &NamedTensor) -> Result<NamedTensor> {
        let names: Vec<NameArg> = crate::list(
            other.names().iter(other.ndim()).map(|name| name.map_or(NameArg::Unnamed, NameArg::Name)),
        );
        let dims = naming::align_to(self.input(), &names).map_err(|error| {
            let error = error.of("align_as").with_inputs(&[self, other]);
            match self.refined_for(other).or_else(|| self.renamed_for(other)) {
                Some(repair) => error.with_repair(repair),
                None => error,
            }
        })?;
        Ok(self.aligned(&dims))
    }

    /// The call that gives a tensor without names those of the other one, which has as many dims.
    #[cold]
    fn refined_for(&self, other: &NamedTensor) -> Option<String> {
        let (from, to, call) = match (self.has_names(), other.has_names()) {
            (false, true) => (other, self, ("x", "?.align_as(&y)?", "")),
            (true, false) => (self, other, ("x.align_as(&y", "?)?", "")),
            _ => return None,
        };
        let is_whole =
            from.sizes() == to.sizes() && from.names().iter(from.ndim()).all(|name| name.is_some());
        is_whole.then(|| {
            let names = crate::names::rules::argument(from.names(), from.ndim());
            format!("{}.refine_names({names}){}, if its dims are these", call.0, call.1)
        })
    }

    /// The call that renames the one dim that `other` lacks to the one of its size that only `other` has.
    #[cold]
    fn renamed_for(&self, other: &NamedTensor) -> Option<String> {
        let lacks = |x: &NamedTensor, dim: usize, of: &NamedTensor| {
            of.name(dim).is_none_or(|name| x.names().position(name).is_none())
        };
        let is_own = |dim: &usize| lacks(other, *dim, self);
        let own = (0..self.ndim()).find(is_own)?;
        if (own + 1..self.ndim()).any(|dim| is_own(&dim)) {
            return None;
        }
        let like = |dim: &usize| lacks(self, *dim, other) && other.sizes()[*dim] == self.sizes()[own];
        let there = (0..other.ndim()).find(like)?;
        let (from, to) = (self.name(own)?, other.name(there)?);
        Some(format!("x.rename([(\"{from}\", \"{to}\")])?.align_as(&y)?, if both names mean the same"))
    }

    /// The view that an alignment describes.
    pub(crate) fn aligned(&self, dims: &naming::Aligned) -> NamedTensor {
        let (mut sizes, mut strides) = (Sizes::new(), Strides::new());
        for (from, _) in dims {
            sizes.push(from.map_or(1, |dim| self.sizes()[dim]));
            strides.push(from.map_or(1, |dim| self.strides()[dim]));
        }
        self.view_as(sizes, strides, self.offset(), Names::unchecked(dims.iter().map(|(_, name)| *name)))
    }
}
