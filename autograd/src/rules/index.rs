//! Derivatives of the ops that pick elements and put tensors together.

use crate::op::{Kept, Op};
use crate::{Operand, Tensor};
use namegrad_core::{Argument, Dim, Error, ErrorKind, Name, NamedTensor, Reduce, Result};

rules! { in NamedTensor; |g, cx|
    index_select(x, index; dim: usize) -> y { x: [index; dim] g.new_zeros(cx.sizes())?.index_add(index, g, *dim)? }
    gather(x, index; dim: usize) -> y { x: [index; dim] g.new_zeros(cx.sizes())?.scatter_add(index, g, *dim)? }
    scatter_add(x, index, source; dim: usize) -> y { x: [] g.clone(), source: [index; dim] picked(g, index, cx.sizes(), *dim)? }
    index_add(x, index, source; dim: usize) -> y { x: [] g.clone(), source: [index; dim] g.index_select(index, *dim)? }
    scatter(x, index, source; dim: usize) -> y {
        x: [index; dim] g.scatter_value(index, 0, *dim)?,
        source: [index; dim] picked(g, index, cx.sizes(), *dim)?
    }
    scatter_reduce(x, index, source; dim: usize, reduce: Reduce, include_self: bool) -> y {
        x: [x index source y; dim reduce include_self] {
            let call = Scattered { x, index, source, y, dim: *dim, reduce: *reduce, include_self: *include_self };
            call.gradient_of_self(g)?
        },
        source: [x index source y; dim reduce include_self] {
            let call = Scattered { x, index, source, y, dim: *dim, reduce: *reduce, include_self: *include_self };
            call.gradient_of_source(g)?
        }
    }
    index_copy(x, index, source; dim: usize) -> y { x: [index; dim] g.index_fill(index, 0, *dim)?, source: [index; dim] g.index_select(index, *dim)? }
    tril(x; diagonal: isize) -> y { x: [; diagonal] g.tril(*diagonal)? }
    triu(x; diagonal: isize) -> y { x: [; diagonal] g.triu(*diagonal)? }
}

constants! { in NamedTensor;
    nonzero(x)
}

/// A call of `scatter_reduce`, as its derivatives see it.
struct Scattered<'a> {
    x: &'a Tensor,
    index: &'a Tensor,
    source: &'a Tensor,
    y: &'a Tensor,
    dim: usize,
    reduce: Reduce,
    include_self: bool,
}

impl Scattered<'_> {
    fn gradient_of_self(&self, g: &Tensor) -> Result<Tensor> {
        let Scattered { x, index, dim, .. } = *self;
        let gradient = match self.reduce {
            Reduce::Sum => g.clone(),
            Reduce::Mean => g.div(&self.terms()?)?,
            // What the other factors come to: the product again, with 1 in the place of this one.
            Reduce::Prod => g.mul(&self.product(&x.ones_like()?, self.source)?)?,
            Reduce::Amax | Reduce::Amin => self.share(g)?.where_self(&x.eq(self.y)?, 0.0)?,
        };
        if self.include_self { Ok(gradient) } else { gradient.scatter_value(index, 0, dim) }
    }

    fn gradient_of_source(&self, g: &Tensor) -> Result<Tensor> {
        let Scattered { x, index, source, y, dim, .. } = *self;
        let from = |y: &Tensor| picked(y, index, source.sizes(), dim);
        match self.reduce {
            Reduce::Sum => from(g),
            Reduce::Mean => from(&g.div(&self.terms()?)?),
            Reduce::Prod => {
                // Beside one zero the gradient of that zero is the product of the others, and theirs is 0; else what is missing is divided out.
                let zero = source.eq(0)?;
                let zeros = self.count(&zero)?.gather(index, dim)?;
                let part = |source: &Tensor| -> Result<Tensor> {
                    let mut part = source.clone();
                    for d in 0..source.ndim() {
                        part = part.narrow(d, 0, index.sizes()[d])?;
                    }
                    Ok(part)
                };
                let single = zero.logical_and(padded(&zeros, source.sizes())?.eq(1)?)?;
                let others = self.product(x, &source.masked_fill(&single, 1.0)?)?;
                let divided = g.mul(y)?.gather(index, dim)?.div(&part(&source.masked_fill(&zero, 1.0)?)?)?;
                padded(
                    &g.mul(&others)?.gather(index, dim)?.where_self(&part(&single)?, &divided)?,
                    source.sizes(),
                )
            }
            Reduce::Amax | Reduce::Amin => from(&self.share(g)?)?.where_self(&source.eq(&from(y)?)?, 0.0),
        }
    }

    /// The number of elements that each place of the result is made of.
    fn terms(&self) -> Result<Tensor> {
        let ones = self.count(&self.source.ones_like()?)?;
        if self.include_self { ones.add(1) } else { ones.clamp(1, f64::INFINITY) }
    }

    /// How many of the elements for a place are marked by `marks`, of the sizes of the source.
    fn count(&self, marks: &Tensor) -> Result<Tensor> {
        self.x.zeros_like()?.scatter_add(self.index, &marks.to(self.x.dtype())?, self.dim)
    }

    /// The product, of other factors.
    fn product(&self, x: &Tensor, source: &Tensor) -> Result<Tensor> {
        x.scatter_reduce(self.index, source, self.dim, Reduce::Prod, self.include_self)
    }

    /// An even share of the gradient for each element that is the extreme of its place.
    fn share(&self, g: &Tensor) -> Result<Tensor> {
        let Scattered { x, index, source, y, dim, .. } = *self;
        let chosen = source.eq(&picked(y, index, source.sizes(), dim)?)?;
        let own = x.eq(y)?.to(x.dtype())?;
        let own = if self.include_self { own } else { own.scatter_value(index, 0, dim)? };
        let ties = own.add(&self.count(&chosen)?)?;
        g.div(&ties.clamp(1, f64::INFINITY)?)
    }
}

/// What was scattered from a source of `sizes`, of which only as much as the index covers was used.
fn picked(g: &Tensor, index: &Tensor, sizes: &[usize], dim: usize) -> Result<Tensor> {
    padded(&g.gather(index, dim)?, sizes)
}

/// `x` with zeros behind its end along each dim, up to `sizes`.
fn padded(x: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    let mut gradient = x.clone();
    for (d, size) in sizes.iter().enumerate() {
        let missing = size - gradient.sizes()[d];
        if missing > 0 {
            let mut rest = gradient.sizes().to_vec();
            rest[d] = missing;
            gradient = Tensor::cat(&[&gradient, &x.new_zeros(&rest)?], d)?;
        }
    }
    Ok(gradient)
}

impl Tensor {
    /// This tensor where `condition` is true, elsewhere `other`.
    ///
    /// # Errors
    /// Those of the name rule, [`ErrorKind::Shape`], [`ErrorKind::DType`] unless the condition is `bool`.
    #[track_caller]
    pub fn where_self(&self, condition: &Tensor, other: impl Operand) -> Result<Tensor> {
        let other = &*other.operand_beside(self.dtype())?;
        let value = self.value().where_self(condition.value(), other.value())?;
        let (here, there) = (Kept::input(condition), Kept::input(condition));
        Ok(Op::new("where", value)
            .input(self, move |g, cx| g.where_self(&here.get(cx), 0.0))
            .input(other, move |g, cx| g.zeros_like()?.where_self(&there.get(cx), g))
            .output())
    }

    /// The tensor with `value`, a number or 0-d tensor, where `mask` is true. The mask broadcasts to the tensor.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1.0, -2.0])?;
    /// assert_eq!(x.masked_fill(&x.lt(0)?, 0.0)?.to_vec::<f32>()?, [1.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the name rule, [`ErrorKind::Shape`], [`ErrorKind::DType`] unless the mask is `bool`.
    #[track_caller]
    pub fn masked_fill(&self, mask: &Tensor, value: impl Operand) -> Result<Tensor> {
        let value = &*value.operand_beside(self.dtype())?;
        let filled = self.value().masked_fill(mask.value(), value.value())?;
        let (here, there) = (Kept::input(mask), Kept::input(mask));
        Ok(Op::new("masked_fill", filled)
            .input(self, move |g, cx| g.masked_fill(&here.get(cx), 0.0))
            .input(value, move |g, cx| g.where_self(&there.get(cx), 0.0)?.sum(..))
            .output())
    }

    /// In place: [`masked_fill`](Self::masked_fill). The mask must not be larger than the tensor.
    ///
    /// # Errors
    /// Those of the other form, [`ErrorKind::Autograd`] on a leaf that requires a gradient.
    #[track_caller]
    pub fn masked_fill_(&mut self, mask: &Tensor, value: impl Operand) -> Result<&mut Tensor> {
        let filled = self.masked_fill(mask, value)?;
        self.assign("masked_fill_", filled)
    }

    /// The elements where `mask` is true, in row-major order, as a vector without a name. The mask and the tensor broadcast to each other.
    ///
    /// # Errors
    /// Those of the name rule, [`ErrorKind::Shape`], [`ErrorKind::DType`] unless the mask is `bool`.
    #[track_caller]
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
        let value = self.value().masked_select(mask.value())?;
        let kept = Kept::input(mask);
        Ok(Op::new("masked_select", value)
            .input(self, move |g, cx| {
                let mask = kept.get(cx);
                let ndim = mask.ndim().max(cx.sizes().len());
                let mut sizes = vec![1; ndim];
                for shape in [mask.sizes(), cx.sizes()] {
                    let from = ndim - shape.len();
                    for (d, size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
                        sizes[from + d] = *size;
                    }
                }
                let mask = mask.expand(&sizes[..])?.reshape([-1])?;
                let places = mask.nonzero()?.reshape([-1])?;
                g.new_zeros(mask.sizes())?.index_add(&places, g, 0)?.reshape(&sizes[..])
            })
            .output())
    }

    /// The tensors one after the other along `dim`; the sizes of all other dims are the same. Names unify. Without names, empty vectors are skipped,
    /// whatever they are joined to.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for an empty list, [`ErrorKind::Shape`], those of the name rule.
    #[track_caller]
    pub fn cat(tensors: &[&Tensor], dim: impl Into<Dim>) -> Result<Tensor> {
        let values: Vec<&NamedTensor> = tensors.iter().map(|x| x.value()).collect();
        let skipped = NamedTensor::skipped_by_cat(&values);
        let Some(first) = values.iter().find(|x| !skipped(x)).or(values.first()) else {
            return Err(Error::new(ErrorKind::Value, "cat", "expected a non-empty list of Tensors"));
        };
        let dim = dim.into().resolve("cat", first)?;
        let mut op = Op::new("cat", NamedTensor::cat(&values, dim)?);
        let mut start = 0;
        for x in tensors {
            if skipped(x.value()) {
                op = op.input(x, |g, cx| g.new_zeros(cx.sizes()));
                continue;
            }
            let (from, length) = (start as isize, x.sizes()[dim]);
            op = op.input(x, move |g, _| g.narrow(dim, from, length));
            start += length;
        }
        Ok(op.output())
    }

    /// The tensors, all of one size, along a new dim before dim `at` (negative counts from behind the end), with the name `name` or none.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let rows = [Tensor::ones([("C", 3)])?, Tensor::zeros([("C", 3)])?];
    /// let batch = Tensor::stack(&[&rows[0], &rows[1]], 0, "N")?;
    /// assert_eq!(batch.extents().to_string(), "[N=2, C=3]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for an empty list, [`ErrorKind::Shape`], those of the name rule, [`ErrorKind::InvalidName`], [`ErrorKind::DuplicateName`].
    #[track_caller]
    pub fn stack<'a>(tensors: &[&Tensor], at: isize, name: impl Into<Option<&'a str>>) -> Result<Tensor> {
        let name = match name.into() {
            Some(text) => Some(Name::new(text)?),
            None => None,
        };
        let values: Vec<&NamedTensor> = tensors.iter().map(|x| x.value()).collect();
        let stacked = NamedTensor::stack(&values, at, name)?;
        let place = if at < 0 { at + stacked.ndim() as isize } else { at };
        let mut op = Op::new("stack", stacked);
        for (number, x) in tensors.iter().enumerate() {
            op = op.input(x, move |g, _| g.select(place, number as isize));
        }
        Ok(op.output())
    }

    /// The tensor with its elements moved by `shift` along `dim`; what leaves at the end comes in at the start.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
    #[track_caller]
    pub fn roll(&self, shift: isize, dim: impl Into<Dim>) -> Result<Tensor> {
        let dim = dim.into().resolve("roll", self.value())?;
        let value = self.value().roll(shift, dim)?;
        Ok(Op::new("roll", value).input(self, move |g, _| g.roll(-shift, dim)).output())
    }
}
