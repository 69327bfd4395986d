//! Flattening consecutive dims into one, and splitting a dim, with names. The results are views, except if
//! the flattened dims are not adjacent in memory.

use super::shape::kernels::{reshaped, written};
use crate::Argument;
use crate::args::IntoShape;
use crate::dim::{Dim, Dims, called, in_rust, others};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{Sizes, Strides, product};
use crate::names::{Name, Names, naming};
use crate::sizes::checked_numel;
use crate::tensor::NamedTensor;

impl NamedTensor {
    /// Flattens consecutive dims into one dim called `out_dim`, or unnamed if that is `None`.
    ///
    /// # Errors
    /// [`ErrorKind::DimRange`] unless the dims are adjacent and in that order, [`ErrorKind::NameNotFound`],
    /// [`ErrorKind::InvalidName`], [`ErrorKind::DuplicateName`].
    #[track_caller]
    pub fn flatten<'a>(
        &self,
        dims: impl Into<Dims>,
        out_dim: impl Into<Option<&'a str>>,
    ) -> Result<NamedTensor> {
        self.flattened(dims.into(), out_dim.into())
    }

    /// [`flatten`](Self::flatten), compiled once for all types of dims.
    #[track_caller]
    fn flattened(&self, dims: Dims, out_dim: Option<&str>) -> Result<NamedTensor> {
        let name = match out_dim {
            Some(text) => Some(Name::new(text).map_err(|error| error.of("flatten").with_inputs(&[self]))?),
            None => None,
        };
        let dims = dims.resolve("flatten", self)?;
        if self.ndim() == 0 {
            let names = Names::new("flatten", [name])?;
            return reshaped("flatten", self, Sizes::from_slice(&[1]), names);
        }
        if dims.is_empty() {
            let message = "dims cannot be empty";
            return Err(Error::about(&[self], ErrorKind::Value, "flatten", message)
                .with_repair("x.flatten(.., None)? for all dims"));
        }
        let consecutive = dims.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let (Some(&start), Some(&end), true) = (dims.first(), dims.last(), consecutive) else {
            let list = Names::unchecked(dims.iter().map(|dim| self.name(*dim))).list(dims.len());
            let message =
                format!("dims {list} must be consecutive in Tensor{}", self.names().list(self.ndim()));
            return Err(Error::about(&[self], ErrorKind::DimRange, "flatten", message)
                .with_repair(self.brought_together(&dims, name)));
        };
        let names = naming::flatten(self.input(), start, end, name)?;
        let merged = product(&self.sizes()[start..=end]);
        let mut sizes = Sizes::from_slice(self.sizes());
        sizes.drain(start..=end);
        sizes.insert(start, merged);
        reshaped("flatten", self, sizes, names)
    }

    /// The call that flattens dims which are apart: it moves them to the place of the first.
    #[cold]
    fn brought_together(&self, dims: &[usize], name: Option<Name>) -> String {
        let name = name.map_or("None".into(), |name| format!("\"{name}\""));
        let list = |dims: &[usize]| -> String {
            crate::joined(&crate::list::<_, Vec<_>>(dims.iter().map(|dim| in_rust(self, *dim))), ", ")
        };
        let first = dims.iter().copied().min().unwrap_or(0);
        let mut order = others(self.ndim(), dims);
        order.insert_from_slice(first, dims);
        match order.iter().all(|dim| self.name(*dim).is_some()) {
            true => format!("x.align_to([{}])?.flatten([{}], {name})?", list(&order), list(dims)),
            false => {
                let now: Vec<usize> = crate::list(first..first + dims.len());
                format!("x.permute({order:?})?.flatten({now:?}, {name})?")
            }
        }
    }

    /// Splits `dim` into the dims of `shape`. The product of their sizes must be the size of `dim`; one size
    /// can be -1 and is then inferred. If the tensor has names, so must at least one of the new dims.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`], [`ErrorKind::UnnamedNotAllowed`], [`ErrorKind::OutOfMemory`],
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`], [`ErrorKind::InvalidName`],
    /// [`ErrorKind::DuplicateName`].
    #[track_caller]
    pub fn unflatten(&self, dim: impl Into<Dim>, shape: impl IntoShape) -> Result<NamedTensor> {
        self.unflattened(dim.into(), shape.into_open_shape())
    }

    /// [`unflatten`](Self::unflatten), compiled once.
    #[track_caller]
    fn unflattened(&self, dim: Dim, shape: Result<crate::args::OpenShape>) -> Result<NamedTensor> {
        let dim = dim.resolve("unflatten", self)?;
        let wanted = shape.map_err(|error| error.of("unflatten"))?;
        let size = self.length_of(dim);
        if wanted.is_empty() {
            return Err(Error::about(&[self], ErrorKind::Shape, "unflatten", "sizes must be non-empty"));
        }
        let mut known = wanted.iter().filter_map(|open| open.size);
        let known = known.try_fold(1usize, |product, size| product.checked_mul(size));
        let fits = match (known, wanted.iter().filter(|open| open.size.is_none()).count()) {
            (Some(known), 0) => known == size,
            (Some(known), 1) => known > 0 && size.is_multiple_of(known),
            _ => false,
        };
        let (Some(known), true) = (known, fits) else {
            let list = written(&wanted);
            let message = format!(
                "Provided sizes {list:?} don't multiply up to the size of {} ({size}) in Tensor{}",
                called(self, dim),
                self.names().list(self.ndim())
            );
            let error = Error::about(&[self], ErrorKind::Shape, "unflatten", message);
            let open = wanted.iter().filter(|open| open.size.is_none()).count();
            let rest = wanted[1..].iter().filter_map(|open| open.size).try_fold(1usize, usize::checked_mul);
            return Err(match open == 0 && rest.is_some_and(|rest| rest > 0 && size.is_multiple_of(rest)) {
                true => {
                    let sizes = wanted.iter().enumerate().map(|(at, open)| {
                        let size = open.size.filter(|_| at > 0).map_or("-1".into(), |size| size.to_string());
                        open.name.map_or(size.clone(), |name| format!("(\"{name}\", {size})"))
                    });
                    let sizes = crate::joined(&crate::list::<_, Vec<_>>(sizes), ", ");
                    let dim = in_rust(self, dim);
                    error.with_repair(format!("x.unflatten({dim}, [{sizes}])?, where -1 is inferred"))
                }
                false => error,
            });
        };
        let names: Vec<Option<Name>> = crate::list(wanted.iter().map(|open| open.name));
        let names = naming::unflatten(self.input(), dim, &names)?;
        let stride = self.strides().get(dim).copied().unwrap_or(1);
        let (mut sizes, mut strides) = (Sizes::from_slice(self.sizes()), Strides::from_slice(self.strides()));
        if self.ndim() > 0 {
            sizes.remove(dim);
            strides.remove(dim);
        }
        let made: Sizes = crate::list(wanted.iter().map(|open| open.size.unwrap_or_else(|| size / known)));
        sizes.insert_many(dim, made.iter().copied());
        checked_numel("unflatten", &sizes, self.dtype().itemsize())
            .map_err(|error| error.with_operands([self.shape()]))?;
        let mut step = stride;
        for size in made.iter().rev() {
            strides.insert(dim, step);
            step *= (*size).max(1) as isize;
        }
        Ok(self.view_as(sizes, strides, self.offset(), names))
    }
}
