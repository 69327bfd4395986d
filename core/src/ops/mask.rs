//! Selecting elements by mask.

use crate::Argument;
use crate::cpu::index as cpu;
use crate::device::compute_in;
use crate::dim::Dim;
use crate::dtype::{DType, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Sizes;
use crate::names::{Name, Names, rules};
use crate::ops::index::kernels::vector_index;
use crate::shape::Shape;
use crate::tensor::{NamedTensor, Unwritten};
use namegrad_macros::ops;

ops! { mask;
    //! # Masks
    /// The elements where `mask` is true, in row-major order, as a vector, whose dim is called `name` or is
    /// unnamed. The mask and the tensor broadcast to each other.
    masked_select (x, mask: bool; name: NewName = None) names called name, mask: unified;
}

pub(crate) mod kernels {
    use super::*;

    #[track_caller]
    pub(crate) fn masked_select(
        x: &NamedTensor,
        mask: &NamedTensor,
        name: Option<Name>,
    ) -> Result<NamedTensor> {
        const OP: &str = "masked_select";
        check_mask(OP, mask)?;
        rules::unify(OP, "broadcast", x.input(), mask.input())?;
        let sizes = crate::sizes::broadcast(OP, x.sizes(), mask.sizes())
            .map_err(|error| error.with_operands([x.shape(), mask.shape()]))?;
        let all = x.unnamed().expand(&sizes[..])?.contiguous()?;
        let mask = mask.unnamed().expand(&sizes[..])?.contiguous()?;
        mask.check_elements(OP)?;
        let mask = mask.elements()?;
        let before = cpu::trues_before(mask);
        let shape =
            Shape { sizes: Sizes::from_slice(&before[before.len() - 1..]), names: Names::unchecked([name]) };
        let out = Unwritten::new(OP, shape, x.dtype())?;
        dispatch!(x.dtype(), width U => out.write_moved::<U>(&all, |x, y| cpu::masked(x, mask, &before, y)))
    }
}

impl NamedTensor {
    /// A mask of the positions along `dim` that are in the vector `index`. The mask broadcasts to this
    /// tensor. Negative positions count from the end.
    ///
    /// # Errors
    /// [`ErrorKind::DType`], [`ErrorKind::Shape`], [`ErrorKind::Index`] for an index out of range.
    #[track_caller]
    pub fn positions_mask(
        &self,
        op: &'static str,
        index: &NamedTensor,
        dim: impl Into<Dim>,
    ) -> Result<NamedTensor> {
        let dim = dim.into().resolve(op, self)?;
        let size = self.length_of(dim);
        let index = match index.dtype() {
            DType::I32 | DType::I64 => &index.remainder_of_negative(size)?,
            _ => index,
        };
        rules::indexed(op, self.input(), index.input(), dim)?; // it has no name of another dim
        let index = vector_index(op, self, index, dim)?;
        let mut sizes = Sizes::from_elem(1, self.ndim());
        if let Some(own) = sizes.get_mut(dim) {
            *own = size;
        }
        let shape = Shape { sizes, names: self.names().clone() };
        let mut mask = NamedTensor::filled(op, shape, DType::Bool, false.into())?;
        compute_in(&mut mask, |mask| {
            cpu::mark(index.elements()?, mask.as_mut_slice()?);
            Ok(())
        })?;
        Ok(mask)
    }

    /// The positions, with negative positions counted from the end of a dim of `size`.
    #[track_caller]
    fn remainder_of_negative(&self, size: usize) -> Result<NamedTensor> {
        self.lt(0)?.choose(self.add(size as i64)?, self)
    }
}

#[track_caller]
fn check_mask(op: &'static str, mask: &NamedTensor) -> Result<()> {
    if mask.dtype() == DType::Bool {
        return Ok(());
    }
    let message = format!("expected the mask to be a boolean tensor, but got {}", mask.dtype());
    Err(Error::about(&[mask], ErrorKind::DType, op, message).with_repair("mask.ne(0)?"))
}
