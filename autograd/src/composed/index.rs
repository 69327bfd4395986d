//! Parts by position or mask.

use crate::op::Op;
use crate::rules::getitem::Index;
use crate::{Operand, Tensor};
use namegrad_core::names::rules;
use namegrad_core::{Argument, DType, Dim, Error, ErrorKind, NamedTensor, Result, Scalar};

impl Tensor {
    /// The tensor with `value`, a number or 0-d tensor, at the positions along `dim` in `index`, a vector of integers of which negative ones count from the end.
    /// The value is cast.
    ///
    /// Names: keeps input names.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1, 2, 3], [4, 5, 6]])?.refine_names(["N", "C"])?;
    /// assert_eq!(x.index_fill(&Tensor::new([0, -1])?, 9, "C")?.to_vec::<i64>()?, [9, 2, 9, 9, 5, 9]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`], [`ErrorKind::Shape`] or [`ErrorKind::Index`] for an index that is none, [`ErrorKind::Shape`] for a value with dims,
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
    #[track_caller]
    pub fn index_fill(&self, index: &Tensor, value: impl Operand, dim: impl Into<Dim>) -> Result<Tensor> {
        let mask = self.value().positions_mask("index_fill", index.value(), dim)?;
        self.masked_fill(&Tensor::constant(mask), value)
    }

    /// In place: [`index_fill`](Self::index_fill).
    ///
    /// # Errors
    /// Those of the other form, [`ErrorKind::Autograd`] on a leaf that requires a gradient.
    #[track_caller]
    pub fn index_fill_(
        &mut self,
        index: &Tensor,
        value: impl Operand,
        dim: impl Into<Dim>,
    ) -> Result<&mut Tensor> {
        let filled = self.index_fill(index, value, dim)?;
        self.assign("index_fill_", filled)
    }

    /// The tensor with the number `value` at the positions along `dim` that `index` says, as [`scatter`](Self::scatter).
    ///
    /// # Errors
    /// Those of `scatter`.
    #[track_caller]
    pub fn scatter_value(
        &self,
        index: &Tensor,
        value: impl Into<Scalar>,
        dim: impl Into<Dim>,
    ) -> Result<Tensor> {
        let source = NamedTensor::full_as("scatter_value", index.sizes(), value.into(), self.dtype())?;
        self.scatter(index, &Tensor::constant(source), dim)
    }

    /// In place: [`scatter_value`](Self::scatter_value).
    ///
    /// # Errors
    /// Those of the other form, [`ErrorKind::Autograd`] on a leaf that requires a gradient.
    #[track_caller]
    pub fn scatter_value_(
        &mut self,
        index: &Tensor,
        value: impl Into<Scalar>,
        dim: impl Into<Dim>,
    ) -> Result<&mut Tensor> {
        let y = self.scatter_value(index, value, dim)?;
        self.assign("scatter_value_", y)
    }

    /// The tensor with the elements of `source`, in row-major order, where `mask` is true. The mask broadcasts to the tensor; of the source as many elements are
    /// taken as the mask has places.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1, -1, 2, -2])?;
    /// assert_eq!(x.masked_scatter(&x.lt(0)?, &Tensor::new([7, 8, 9])?)?.to_vec::<i64>()?, [1, 7, 2, 8]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] unless the mask is `bool` and the source of the dtype of the tensor, [`ErrorKind::Shape`] for a source that is too short, those of the
    /// name rule.
    #[track_caller]
    pub fn masked_scatter(&self, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
        const OP: &str = "masked_scatter";
        Tensor::ensure(mask.dtype() == DType::Bool, ErrorKind::DType, OP, "expected BoolTensor for mask")?;
        rules::unify(OP, "broadcast", self.value().input(), mask.value().input())?;
        let places = mask.unnamed().expand(self.sizes())?.reshape([-1])?.nonzero()?.reshape([-1])?;
        let message = format!("the source has {} elements for {} places", source.numel(), places.numel());
        Tensor::ensure(places.numel() <= source.numel(), ErrorKind::Shape, OP, message)?;
        let source = source.unnamed().reshape([-1])?.narrow(0, 0, places.numel())?;
        let flat = self.unnamed().reshape([-1])?.index_copy(&places, &source, 0)?;
        Ok(flat.reshape(self.sizes())?.named(self.names().clone()))
    }

    /// In place: [`masked_scatter`](Self::masked_scatter).
    ///
    /// # Errors
    /// Those of the other form, [`ErrorKind::Autograd`] on a leaf that requires a gradient.
    #[track_caller]
    pub fn masked_scatter_(&mut self, mask: &Tensor, source: &Tensor) -> Result<&mut Tensor> {
        let y = self.masked_scatter(mask, source)?;
        self.assign("masked_scatter_", y)
    }

    /// The elements at the positions in `index`, counted in row-major order, negative ones from the end; of the sizes and names of the index.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] unless the index is of integers, [`ErrorKind::Index`] for a position out of range.
    #[track_caller]
    pub fn take(&self, index: &Tensor) -> Result<Tensor> {
        let whole = matches!(index.dtype(), DType::I32 | DType::I64);
        let message = format!("take(): Expected a long tensor for index, but got {}", index.dtype());
        Tensor::ensure(whole, ErrorKind::DType, "take", message)?;
        let places = index.unnamed().reshape([-1])?;
        let places = places.add(self.numel() as i64)?.where_self(&places.lt(0)?, &places)?;
        let picked = self.unnamed().reshape([-1])?.index_select(&places, 0)?;
        Ok(picked.reshape(index.sizes())?.named(index.names().clone()))
    }

    /// For each element of `index`, the element of this tensor at that position along `dim`: [`gather`](Self::gather) of tensors that broadcast to each
    /// other along the other dims, such as what [`argmax`](Self::argmax) found.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1, 9], [8, 2]])?;
    /// assert_eq!(x.take_along_dim(&x.argsort(1, false)?, 1)?.to_vec::<i64>()?, [1, 9, 2, 8]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `gather`.
    #[track_caller]
    pub fn take_along_dim(&self, index: &Tensor, dim: impl Into<Dim>) -> Result<Tensor> {
        const OP: &str = "take_along_dim";
        let dim = dim.into().resolve(OP, self.value())?;
        if index.ndim() != self.ndim() {
            let message = "input and indices should have the same number of dimensions";
            return Err(
                Error::new(ErrorKind::Shape, OP, message).with_operands([self.extents(), index.extents()])
            );
        }
        let spread = |x: &Tensor, like: &Tensor| -> Vec<usize> {
            let size = |d| if d != dim && x.sizes()[d] == 1 { like.sizes()[d] } else { x.sizes()[d] };
            (0..x.ndim()).map(size).collect()
        };
        let (x, places) = (self.expand(spread(self, index))?, index.expand(spread(index, self))?);
        x.gather(&places, dim)
    }

    /// The tensor with `value` in the place of the part that the indices pick, as in `x[..] = value`; with `accumulate` it is added to it. The value is cast and
    /// broadcast to the part. Of several elements for one place the last one stays.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::autograd::Index;
    /// let x = Tensor::zeros([("N", 2), ("C", 3)])?;
    /// let y = x.index_put(&[Index::At(-1), (1..).into()], 5.0, false)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0, 0.0, 0.0, 5.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`index`](Self::index); [`ErrorKind::Shape`] if the value does not broadcast to the part, those of the name rule.
    #[track_caller]
    pub fn index_put(&self, indices: &[Index], value: impl Operand, accumulate: bool) -> Result<Tensor> {
        let mut y = if crate::is_grad_enabled() { self.clone() } else { self.detach() };
        y.put("index_put", indices, &*value.operand_beside(self.dtype())?, accumulate)?;
        Ok(y)
    }

    /// In place: [`index_put`](Self::index_put). A part that is a view is written to the buffer of this tensor, if nobody else holds it; the rest is not touched.
    ///
    /// # Errors
    /// Those of the other form, [`ErrorKind::Autograd`] on a leaf that requires a gradient.
    #[track_caller]
    pub fn index_put_(
        &mut self,
        indices: &[Index],
        value: impl Operand,
        accumulate: bool,
    ) -> Result<&mut Tensor> {
        const OP: &str = "index_put_";
        self.check_in_place(OP)?;
        let value = value.operand_beside(self.dtype())?;
        self.put(OP, indices, &value, accumulate)?;
        Ok(self)
    }

    #[track_caller]
    fn put(&mut self, op: &'static str, indices: &[Index], value: &Tensor, accumulate: bool) -> Result<()> {
        let views = !accumulate && !indices.iter().any(|index| matches!(index, Index::Tensor(_)));
        if views && !self.is_contiguous() {
            // A view of what is dense can be written to.
            let dense = self.value().contiguous()?;
            *self = Tensor::from_parts(dense, self.meta().cloned());
        }
        // The same part of a tensor of positions says where the value goes, if it is no view.
        let part = match views {
            true => self.detach().index(indices)?,
            false => {
                let all =
                    NamedTensor::arange(0, self.numel() as i64, 1, DType::I64)?.reshape(self.sizes())?;
                Tensor::constant(all.with_names(self.names().clone())).index(indices)?
            }
        };
        let mut value = value.clone();
        while value.ndim() > part.ndim() && value.sizes()[0] == 1 {
            value = value.select(0, 0)?;
        }
        rules::unify(op, "broadcast", part.value().input(), value.value().input())?;
        if views {
            return self.put_into_view(op, indices, part, &value);
        }
        let value = value.unnamed().to(self.dtype())?.expand(part.sizes())?.reshape([-1])?;
        let (flat, places) = (self.unnamed().reshape([-1])?, part.unnamed().reshape([-1])?);
        let flat = match accumulate {
            true => flat.index_add(&places, &value, 0)?,
            false => flat.index_copy(&places, &value, 0)?,
        };
        self.set_result(flat.reshape(self.sizes())?.named(self.names().clone()));
        Ok(())
    }

    /// Writes to a part that shares the buffer of this tensor, which is dense.
    #[track_caller]
    fn put_into_view(
        &mut self,
        op: &'static str,
        indices: &[Index],
        part: Tensor,
        value: &Tensor,
    ) -> Result<()> {
        let at = std::panic::Location::caller(); // a closure does not know its caller
        let part = part.into_value();
        if self.tracked().is_none() && value.tracked().is_none() {
            return self.update(|x| x.write_part(part, value.value())).map_err(|error| error.at(at));
        }
        let mut written = self.value().clone();
        written.write_part(part, value.value())?;
        let (own, theirs): (Vec<Index>, Vec<Index>) = (indices.to_vec(), indices.to_vec());
        let y = Op::new(op, written)
            .input(self, move |g, _| g.index_put(&own, 0.0, false))
            .input(value, move |g, _| g.index(&theirs))
            .output();
        self.set_result(y);
        Ok(())
    }

    /// The result of an op takes the place of this tensor; where nothing is recorded its place on the tape stays.
    fn set_result(&mut self, y: Tensor) {
        *self = match crate::is_grad_enabled() {
            true => y,
            false => Tensor::from_parts(y.into_value(), self.meta().cloned()),
        };
    }
}
