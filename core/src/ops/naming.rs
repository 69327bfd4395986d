//! The naming API: rename, refine, align, flatten and unflatten by name. All of them are views, but for a
//! flatten whose dims do not stand together in memory.

use super::shape::kernels::reshaped;
use crate::Argument;
use crate::dim::{Dim, Dims};
use crate::error::{Error, ErrorKind, Result};
use crate::names::{Name, NameArg, NameList, Names, RenameArg, naming};
use crate::shape::{IntoShape, Sizes, Strides};
use crate::tensor::NamedTensor;

impl NamedTensor {
    /// The tensor with other names: `None` drops them, a list renames by position, pairs rename by name.
    ///
    /// # Errors
    /// [`ErrorKind::NameCount`], [`ErrorKind::NameNotFound`], [`ErrorKind::DuplicateName`],
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Ellipsis`].
    #[track_caller]
    pub fn rename(&self, names: impl RenameArg) -> Result<NamedTensor> {
        let names = naming::rename("rename", self.input(), &names.renaming()?)?;
        Ok(self.clone().with_names(names))
    }

    /// In place: [`rename`](Self::rename).
    ///
    /// # Errors
    /// Those of `rename`.
    #[track_caller]
    pub fn rename_(&mut self, names: impl RenameArg) -> Result<&mut NamedTensor> {
        let names = naming::rename("rename_", self.input(), &names.renaming()?)?;
        self.set_names(names);
        Ok(self)
    }

    /// The tensor with unnamed dims named; named dims keep their names. One `"..."` stands for the dims that
    /// stay as they are.
    ///
    /// # Errors
    /// [`ErrorKind::RefineConflict`], [`ErrorKind::DuplicateName`], [`ErrorKind::InvalidName`],
    /// [`ErrorKind::Ellipsis`].
    #[track_caller]
    pub fn refine_names(&self, names: impl NameList) -> Result<NamedTensor> {
        let names = naming::refine(self.input(), &names.name_list()?)?;
        Ok(self.clone().with_names(names))
    }

    /// The tensor with its dims in the order of `names`, new names being dims of size one. One `"..."` stands
    /// for the dims not mentioned.
    ///
    /// # Errors
    /// [`ErrorKind::UnnamedNotAllowed`], [`ErrorKind::NameNotFound`], [`ErrorKind::DuplicateName`],
    /// [`ErrorKind::Ellipsis`].
    #[track_caller]
    pub fn align_to(&self, names: impl NameList) -> Result<NamedTensor> {
        let dims = naming::align_to(self.input(), &names.name_list()?)?;
        Ok(self.aligned(&dims))
    }

    /// The tensor with its dims in the order of those of `other`, which may have more: these get size one.
    ///
    /// # Errors
    /// As [`align_to`](Self::align_to) with the names of `other`.
    #[track_caller]
    pub fn align_as(&self, other: &NamedTensor) -> Result<NamedTensor> {
        let names: Vec<NameArg> = other
            .names()
            .iter(other.ndim())
            .map(|name| name.map_or(NameArg::Unnamed, NameArg::Name))
            .collect();
        let dims = naming::align_to(self.input(), &names)?;
        Ok(self.aligned(&dims))
    }

    /// The view that an alignment describes.
    fn aligned(&self, dims: &naming::Aligned) -> NamedTensor {
        let sizes: Sizes = dims.iter().map(|(from, _)| from.map_or(1, |dim| self.sizes()[dim])).collect();
        let strides: Strides =
            dims.iter().map(|(from, _)| from.map_or(1, |dim| self.strides()[dim])).collect();
        self.view_as(sizes, strides, self.offset(), Names::unchecked(dims.iter().map(|(_, name)| *name)))
    }

    /// Consecutive dims as one dim of name `out_dim`, or without a name where it is `None`.
    ///
    /// # Errors
    /// [`ErrorKind::DimRange`] unless the dims stand side by side in that order, [`ErrorKind::NameNotFound`],
    /// [`ErrorKind::InvalidName`], [`ErrorKind::DuplicateName`].
    #[track_caller]
    pub fn flatten<'a>(
        &self,
        dims: impl Into<Dims>,
        out_dim: impl Into<Option<&'a str>>,
    ) -> Result<NamedTensor> {
        let name = match out_dim.into() {
            Some(text) => Some(Name::new(text)?),
            None => None,
        };
        let dims = dims.into().resolve("flatten", self)?;
        if self.ndim() == 0 {
            let names = Names::new("flatten", [name])?;
            return reshaped("flatten", self, Sizes::from_slice(&[1]), names);
        }
        if dims.is_empty() {
            let message = "flatten(tensor, dims, out_dim): dims cannot be empty";
            return Err(Error::about(&[self], ErrorKind::Value, "flatten", message));
        }
        let consecutive = dims.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let (Some(&start), Some(&end), true) = (dims.first(), dims.last(), consecutive) else {
            let list = Names::unchecked(dims.iter().map(|dim| self.name(*dim))).list(dims.len());
            let message = format!(
                "flatten(tensor, dims, out_dim): dims {list} must be consecutive in Tensor{}",
                self.names().list(self.ndim())
            );
            return Err(Error::about(&[self], ErrorKind::DimRange, "flatten", message)
                .with_repair("bring the dims together with align_to first"));
        };
        let names = naming::flatten(self.input(), start, end, name)?;
        let merged = self.sizes()[start..=end].iter().product();
        let mut sizes = Sizes::from_slice(self.sizes());
        sizes.drain(start..=end);
        sizes.insert(start, merged);
        reshaped("flatten", self, sizes, names)
    }

    /// Dim `dim` as the dims of `shape`, whose sizes must multiply to its size; one of them may be -1, to be
    /// inferred.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`], [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`],
    /// [`ErrorKind::InvalidName`], [`ErrorKind::DuplicateName`].
    #[track_caller]
    pub fn unflatten(&self, dim: impl Into<Dim>, shape: impl IntoShape) -> Result<NamedTensor> {
        let dim = dim.into().resolve("unflatten", self)?;
        let parts = shape.into_open_shape()?;
        let size = self.length_of(dim);
        if parts.is_empty() {
            return Err(Error::about(
                &[self],
                ErrorKind::Shape,
                "unflatten",
                "unflatten: sizes must be non-empty",
            ));
        }
        let mut known = parts.iter().filter_map(|part| part.size);
        let known = known.try_fold(1usize, |product, size| product.checked_mul(size));
        let fits = match (known, parts.iter().filter(|part| part.size.is_none()).count()) {
            (Some(known), 0) => known == size,
            (Some(known), 1) => known > 0 && size.is_multiple_of(known),
            _ => false,
        };
        let (Some(known), true) = (known, fits) else {
            let wanted: Vec<isize> =
                parts.iter().map(|part| part.size.map_or(-1, |size| size as isize)).collect();
            let message = format!(
                "unflatten: Provided sizes {wanted:?} don't multiply up to the size of dim {dim} ({}) in Tensor{}",
                size,
                self.names().list(self.ndim())
            );
            return Err(Error::about(&[self], ErrorKind::Shape, "unflatten", message));
        };
        let list: Vec<Option<Name>> = parts.iter().map(|part| part.name).collect();
        let names = naming::unflatten(self.input(), dim, &list)?;
        let stride = self.strides().get(dim).copied().unwrap_or(1);
        let (mut sizes, mut strides) = (Sizes::from_slice(self.sizes()), Strides::from_slice(self.strides()));
        if self.ndim() > 0 {
            sizes.remove(dim);
            strides.remove(dim);
        }
        let mut step = stride;
        for part in parts.iter().rev() {
            let size = part.size.unwrap_or_else(|| size / known);
            sizes.insert(dim, size);
            strides.insert(dim, step);
            step *= size.max(1) as isize;
        }
        Ok(self.view_as(sizes, strides, self.offset(), names))
    }
}
