//! Elements by mask: one of two, numbers in their place, those that are true.

use crate::cpu::pointwise::{Kernel, promoted};
use crate::dim::{Argument, Dim};
use crate::dtype::{DType, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::names::rules;
use crate::operand::Operand;
use crate::ops::index::kernels::vector_index;
use crate::tensor::NamedTensor;

/// Where a condition is true, the first value, else the second.
static WHERE: Kernel<3> = kernel!(3 where_self (c x y) [] [] {
    float: if c != T::ZERO { x } else { y },
    int: if c != T::ZERO { x } else { y },
    boolean: if c { x } else { y },
});

impl NamedTensor {
    /// This tensor where `condition` is true, elsewhere `other`.
    ///
    /// # Errors
    /// As `namegrad::Tensor::where_self`.
    #[track_caller]
    pub fn where_self(&self, condition: &NamedTensor, other: impl Operand) -> Result<NamedTensor> {
        check_mask("where", condition)?;
        let other = &*other.operand_beside(self.dtype())?;
        let dtype = promoted(&[self, other]);
        WHERE.apply_as(dtype, [condition, self, other])
    }

    /// The tensor with `value`, a number or 0-d tensor, where `mask` is true. The mask broadcasts to the tensor.
    ///
    /// # Errors
    /// As `namegrad::Tensor::masked_fill`.
    #[track_caller]
    pub fn masked_fill(&self, mask: &NamedTensor, value: impl Operand) -> Result<NamedTensor> {
        const OP: &str = "masked_fill";
        check_mask(OP, mask)?;
        let value = &*value.operand_beside(self.dtype())?;
        if value.ndim() > 0 {
            let message = format!(
                "masked_fill only supports a 0-dimensional value tensor, but got tensor with {} dims",
                value.ndim()
            );
            return Err(Error::new(ErrorKind::Shape, OP, message));
        }
        let value = value.to(self.dtype())?;
        WHERE.apply_as(self.dtype(), [mask, &value, self])
    }

    /// In place: [`masked_fill`](Self::masked_fill). The mask must not be larger than the tensor.
    ///
    /// # Errors
    /// Those of the other form, [`ErrorKind::Shape`].
    #[track_caller]
    pub fn masked_fill_(&mut self, mask: &NamedTensor, value: impl Operand) -> Result<&mut NamedTensor> {
        let filled = self.masked_fill(mask, value)?;
        if filled.sizes() != self.sizes() {
            let message = format!(
                "output with shape {:?} doesn't match the broadcast shape {:?}",
                self.sizes(),
                filled.sizes()
            );
            return Err(Error::new(ErrorKind::Shape, "masked_fill_", message)
                .with_operands([self.extents(), mask.extents()]));
        }
        *self = filled;
        Ok(self)
    }

    /// The elements where `mask` is true, in row-major order. The mask and the tensor broadcast to each other.
    ///
    /// # Errors
    /// As `namegrad::Tensor::masked_select`.
    #[track_caller]
    pub fn masked_select(&self, mask: &NamedTensor) -> Result<NamedTensor> {
        check_mask("masked_select", mask)?;
        rules::unify("masked_select", "broadcast", self.input(), mask.input())?;
        let sizes = crate::shape::broadcast("masked_select", self.sizes(), mask.sizes())
            .map_err(|error| error.with_operands([self.extents(), mask.extents()]))?;
        let all = self.unnamed().expand(sizes.to_vec())?.contiguous()?;
        let mask = mask.unnamed().expand(sizes.to_vec())?.contiguous()?;
        let mask = mask.as_slice::<bool>()?;
        dispatch!(self.dtype(), T => {
            let picked: Vec<T> = all.as_slice::<T>()?.iter().zip(mask).filter(|(_, keep)| **keep).map(|(v, _)| *v).collect();
            NamedTensor::from_slice(&picked, [picked.len()])
        })
    }

    /// Which of the positions along `dim` stand in `index`, a vector: a mask that broadcasts to this tensor. Negative positions count from the end.
    ///
    /// # Errors
    /// [`ErrorKind::DType`], [`ErrorKind::Shape`], [`ErrorKind::Index`] for an index that is none.
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
        let mut truth = vec![false; size];
        for at in vector_index(op, self, index, dim)? {
            truth[at] = true;
        }
        let mut sizes = vec![1; self.ndim()];
        if let Some(own) = sizes.get_mut(dim) {
            *own = size;
        }
        NamedTensor::from_slice(&truth, sizes)
    }

    /// Positions of which the negative ones count from the end of a dim of `size`.
    #[track_caller]
    fn remainder_of_negative(&self, size: usize) -> Result<NamedTensor> {
        self.add(size as i64)?.where_self(&self.lt(0)?, self)
    }
}

#[track_caller]
fn check_mask(op: &'static str, mask: &NamedTensor) -> Result<()> {
    if mask.dtype() == DType::Bool {
        return Ok(());
    }
    let message = format!("expected condition to be a boolean tensor, but got {}", mask.dtype());
    Err(Error::new(ErrorKind::DType, op, message).with_operands([mask.extents()]).with_repair("x.ne(0)?"))
}
