//! Tensors put together along a dim, or taken apart and put together otherwise.

use crate::cpu::pointwise::promoted;
use crate::dim::{Argument, Dim};
use crate::dtype::dispatch;
use crate::error::{Error, ErrorKind, Result};
use crate::names::{Name, Names, rules};
use crate::ops::shape::kernels::unsqueeze;
use crate::shape::{Shape, Sizes};
use crate::tensor::NamedTensor;

impl NamedTensor {
    /// Which of `tensors` [`cat`](Self::cat) skips: as in PyTorch empty vectors, whatever they are joined to, unless names say what fits.
    #[doc(hidden)]
    pub fn skipped_by_cat(tensors: &[&NamedTensor]) -> impl Fn(&NamedTensor) -> bool + use<> {
        let named = tensors.iter().any(|x| x.has_names());
        move |x| !named && x.sizes() == [0]
    }

    /// The tensors one after the other along `dim`. Names unify.
    ///
    /// # Errors
    /// As `namegrad::Tensor::cat`.
    #[track_caller]
    pub fn cat(tensors: &[&NamedTensor], dim: impl Into<Dim>) -> Result<NamedTensor> {
        const OP: &str = "cat";
        let skipped = NamedTensor::skipped_by_cat(tensors);
        let Some(first) = tensors.iter().find(|x| !skipped(x)).or(tensors.first()) else {
            return Err(Error::new(ErrorKind::Value, OP, "expected a non-empty list of Tensors"));
        };
        let dim = dim.into().resolve(OP, first)?;
        let extents = || tensors.iter().map(|x| x.extents());
        if first.ndim() == 0 {
            let message = "zero-dimensional tensor (at position 0) cannot be concatenated";
            return Err(Error::new(ErrorKind::DimRange, OP, message).with_operands(extents()));
        }
        let mut names = first.names().clone();
        let mut sizes = Sizes::from_slice(first.sizes());
        sizes[dim] = 0;
        for (number, x) in tensors.iter().enumerate() {
            if skipped(x) {
                continue;
            }
            if x.ndim() != first.ndim() {
                let message = format!(
                    "Tensors must have same number of dimensions: got {} and {}",
                    first.ndim(),
                    x.ndim()
                );
                return Err(Error::new(ErrorKind::Shape, OP, message).with_operands(extents()));
            }
            if let Some(d) = (0..x.ndim()).find(|d| *d != dim && x.sizes()[*d] != first.sizes()[*d]) {
                let message = format!(
                    "Sizes of tensors must match except in dimension {dim}. Expected size {} but got size {} for tensor number {number} in \
                     the list.",
                    first.sizes()[d],
                    x.sizes()[d]
                );
                return Err(Error::new(ErrorKind::Shape, OP, message).with_operands(extents()));
            }
            names = rules::unify(OP, "cat", rules::Input { names: &names, sizes: first.sizes() }, x.input())?;
            sizes[dim] += x.sizes()[dim];
        }
        let dtype = promoted(tensors);
        let mut out = NamedTensor::uninit(OP, Shape { sizes: sizes.clone(), names }, dtype)?;
        let outer: usize = sizes[..dim].iter().product();
        let row: usize = sizes[dim..].iter().product();
        dispatch!(dtype, T => {
            // SAFETY: fresh, of dtype T, and written as a whole: the parts of a row add up to it.
            let slots = unsafe { out.uninit_mut::<T>() };
            let mut from = 0;
            for x in tensors.iter().filter(|x| !skipped(x)) {
                let dense = x.to(dtype)?.contiguous()?;
                let part: usize = x.sizes()[dim..].iter().product();
                let data = dense.as_slice::<T>()?;
                for o in 0..outer {
                    let place = &mut slots[o * row + from..][..part];
                    place.iter_mut().zip(&data[o * part..]).for_each(|(slot, value)| { slot.write(*value); });
                }
                from += part;
            }
        });
        Ok(out)
    }

    /// The tensors, all of one size, along a new dim before dim `at`, with the name `name` or none.
    ///
    /// # Errors
    /// As `namegrad::Tensor::stack`.
    #[track_caller]
    pub fn stack(tensors: &[&NamedTensor], at: isize, name: Option<Name>) -> Result<NamedTensor> {
        const OP: &str = "stack";
        let Some(first) = tensors.first() else {
            return Err(Error::new(ErrorKind::Value, OP, "stack expects a non-empty list of tensors"));
        };
        if let Some(other) = tensors.iter().find(|x| x.sizes() != first.sizes()) {
            let message = format!(
                "stack expects each tensor to be equal size, but got {:?} and {:?}",
                first.sizes(),
                other.sizes()
            );
            return Err(
                Error::new(ErrorKind::Shape, OP, message).with_operands(tensors.iter().map(|x| x.extents()))
            );
        }
        let mut grown = Vec::with_capacity(tensors.len());
        for x in tensors {
            grown.push(unsqueeze(x, at)?);
        }
        let place = crate::dim::resolve_index(OP, at, first.ndim() + 1)?;
        let stacked = NamedTensor::cat(&grown.iter().collect::<Vec<_>>(), place)?;
        let mut names: Vec<Option<Name>> = stacked.names().iter(stacked.ndim()).collect();
        names[place] = name;
        let names = Names::new(OP, names)?;
        Ok(stacked.with_names(names))
    }

    /// The tensor with its elements moved by `shift` along `dim`; what leaves at the end comes in at the start.
    ///
    /// # Errors
    /// As `namegrad::Tensor::roll`.
    #[track_caller]
    pub fn roll(&self, shift: isize, dim: impl Into<Dim>) -> Result<NamedTensor> {
        let dim = dim.into().resolve("roll", self)?;
        let size = self.length_of(dim);
        if size <= 1 || self.numel() == 0 {
            return Ok(self.clone());
        }
        let cut = (-shift).rem_euclid(size as isize);
        let (head, tail) = (self.narrow(dim, cut, size - cut as usize)?, self.narrow(dim, 0, cut as usize)?);
        NamedTensor::cat(&[&head, &tail], dim)
    }
}
