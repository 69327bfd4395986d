//! Derivatives of the ops that read and write elements by index.

use crate::Tensor;
use crate::chain::*;
use namegrad_core::options::{IndexReduceOptions, ScatterReduceOptions, TrilOptions, TriuOptions};
use namegrad_core::{DType, Reduce, Result};
use namegrad_macros::derivatives;

derivatives! { index; |g, cx|
    index_select(x, index; dim) -> y { x: [index; dim] g.new_zeros(cx.sizes()).index_add(index, g, dim)?, index: refused }
    gather(x, index; dim) -> y { x: [index; dim] g.new_zeros(cx.sizes()).scatter_add(index, g, dim)?, index: refused }
    scatter_add(x, index, source; dim) -> y { x: [] g.clone(), index: refused, source: [index; dim] picked(g, index, cx.sizes(), dim)? }
    index_add(x, index, source; dim, alpha) -> y {
        x: [] g.clone(),
        index: refused,
        source: [index; dim alpha] super::matmul::scaled(slices(g, index, cx.sizes(), dim)?, alpha)?
    }
    scatter(x, index, source; dim) -> y {
        x: [index; dim] g.scatter(index, 0, dim)?,
        index: refused,
        source: [index; dim] picked(g, index, cx.sizes(), dim)?
    }
    scatter_reduce(x, index, source; dim, reduce, include_self) -> y {
        (x source): [x index source y; dim reduce include_self]
            Scattered { x, index, source, y, dim, reduce, include_self, of_slices: false }.gradients(g, wants)?,
        index: refused
    }
    index_reduce(x, index, source; dim, reduce, include_self) -> y {
        (x source): [x index source y; dim reduce include_self]
            Scattered { x, index, source, y, dim, reduce, include_self, of_slices: true }.gradients(g, wants)?,
        index: refused
    }
    index_copy(x, index, source; dim) -> y { x: [index; dim] g.index_fill(index, 0, dim)?, index: refused, source: [index; dim] slices(g, index, cx.sizes(), dim)? }
    tril(x; diagonal) -> y { x: [; diagonal] g.tril_with(TrilOptions::new().diagonal(diagonal))? }
    triu(x; diagonal) -> y { x: [; diagonal] g.triu_with(TriuOptions::new().diagonal(diagonal))? }
    nonzero constant;
}

/// A call of `scatter_reduce` or, of slices, of `index_reduce`, for its derivatives.
struct Scattered<'a> {
    x: &'a Tensor,
    index: &'a Tensor,
    source: &'a Tensor,
    y: &'a Tensor,
    dim: usize,
    reduce: Reduce,
    include_self: bool,
    of_slices: bool,
}

impl Scattered<'_> {
    /// For each position, the element of `y` there.
    fn at(&self, y: &Tensor) -> Result<Tensor> {
        match self.of_slices {
            true => slices(y, self.index, self.source.sizes(), self.dim),
            false => y.gather(self.index, self.dim),
        }
    }

    /// [`at`](Self::at), with zeros where the source has no position.
    fn from(&self, y: &Tensor) -> Result<Tensor> {
        padded(&self.at(y)?, self.source.sizes())
    }

    /// `y` with zeros at the positions.
    fn blank(&self, y: &Tensor) -> Result<Tensor> {
        match self.of_slices {
            true => y.index_fill(self.index, 0, self.dim),
            false => y.scatter(self.index, 0, self.dim),
        }
    }

    /// The gradients of `x` and of the source.
    fn gradients(&self, g: &Tensor, wants: [bool; 2]) -> Result<[Option<Tensor>; 2]> {
        let dtype = self.x.dtype();
        if self.reduce == Reduce::Prod && dtype != DType::F64 {
            // The product of all factors may be out of the range of a dtype when that of the others is not.
            let [x, source, g] = [self.x.to(DType::F64)?, self.source.to(DType::F64)?, g.to(DType::F64)?];
            let y = self.product(&x, &source)?;
            let gradients = Scattered { x: &x, source: &source, y: &y, ..*self }.gradients(&g, wants)?;
            let [of_x, of_source] = gradients.map(|g| g.map(|g| g.to(dtype)).transpose());
            return Ok([of_x?, of_source?]);
        }
        Ok([
            if wants[0] { Some(self.gradient_of_self(g)?) } else { None },
            if wants[1] { Some(self.gradient_of_source(g)?) } else { None },
        ])
    }

    fn gradient_of_self(&self, g: &Tensor) -> Result<Tensor> {
        let Scattered { x, .. } = *self;
        let gradient = match self.reduce {
            Reduce::Sum => g.clone(),
            Reduce::Mean => g.div(&self.terms()?)?,
            // The product of the other factors: the product again, with 1 in place of this factor.
            Reduce::Prod => g.mul(&self.product(&x.ones_like()?, self.source)?)?,
            Reduce::Amax | Reduce::Amin => same(x, self.y)?.choose(self.share(g)?, 0.0)?,
        };
        if self.include_self { Ok(gradient) } else { self.blank(&gradient) }
    }

    fn gradient_of_source(&self, g: &Tensor) -> Result<Tensor> {
        let Scattered { x, index, source, y, .. } = *self;
        let from = |y: &Tensor| self.from(y);
        match self.reduce {
            Reduce::Sum => from(g),
            Reduce::Mean => from(&g.div(&self.terms()?)?),
            Reduce::Prod => {
                // If there is exactly one zero, its gradient is the product of the others, and theirs is 0;
                // otherwise divide the product by the factor.
                let zero = source.eq(0)?;
                let zeros = self.at(&self.count(&zero)?)?;
                let part = |source: &Tensor| -> Result<Tensor> {
                    let mut part = source.clone();
                    for d in (0..source.ndim()).filter(|_| !self.of_slices) {
                        part = part.narrow(d, 0, index.sizes()[d])?;
                    }
                    Ok(part)
                };
                let single = zero.logical_and(padded(&zeros, source.sizes()).eq(1)?)?;
                let others = self.product(x, &source.masked_fill(&single, 1.0)?)?;
                let divided = self.at(&g.mul(y)?)?.div(&part(&source.masked_fill(&zero, 1.0)?)?)?;
                padded(&part(&single)?.choose(self.at(&g.mul(&others)?)?, &divided)?, source.sizes())
            }
            Reduce::Amax | Reduce::Amin => same(source, &from(y)?)?.choose(from(&self.share(g)?)?, 0.0),
        }
    }

    /// The number of elements that are combined in each position of the result.
    fn terms(&self) -> Result<Tensor> {
        let ones = self.count(&self.source.ones_like()?)?;
        if self.include_self { ones.add(1) } else { ones.clamp(1, f64::INFINITY) }
    }

    /// The number of elements for each position that are marked in `marks`, which has the sizes of the
    /// source.
    fn count(&self, marks: &Tensor) -> Result<Tensor> {
        let (zeros, marks) = (self.x.zeros_like()?, marks.to(self.x.dtype())?);
        match self.of_slices {
            true => zeros.index_add(self.index, &marks, self.dim),
            false => zeros.scatter_add(self.index, &marks, self.dim),
        }
    }

    /// The product, with other factors.
    fn product(&self, x: &Tensor, source: &Tensor) -> Result<Tensor> {
        let (index, dim, include_self) = (self.index, self.dim, self.include_self);
        match self.of_slices {
            true => {
                let options = IndexReduceOptions::new().include_self(include_self);
                x.index_reduce_with(index, source, dim, Reduce::Prod, options)
            }
            false => {
                let options = ScatterReduceOptions::new().include_self(include_self);
                x.scatter_reduce_with(index, source, dim, Reduce::Prod, options)
            }
        }
    }

    /// An equal share of the gradient for each element that is the extreme of its position.
    fn share(&self, g: &Tensor) -> Result<Tensor> {
        let Scattered { x, source, y, .. } = *self;
        let chosen = same(source, &self.from(y)?)?;
        let own = same(x, y)?.to(x.dtype())?;
        let own = if self.include_self { own } else { self.blank(&own)? };
        let ties = own.add(&self.count(&chosen)?)?;
        g.div(&ties.clamp(1, f64::INFINITY)?)
    }
}

/// Whether elements are equal, or both NaN.
fn same(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    x.eq(y).logical_or(x.isnan().logical_and(y.isnan()?)?)
}

/// The slices at the positions in `index`. For a 0-d tensor, the source can also be a vector of one element.
fn slices(g: &Tensor, index: &Tensor, sizes: &[usize], dim: usize) -> Result<Tensor> {
    let picked = g.index_select(index, dim)?;
    if picked.ndim() == sizes.len() { Ok(picked) } else { picked.reshape(sizes) }
}

/// The gradient of a scattered source with `sizes`, of which only the part that the index covers was used.
fn picked(g: &Tensor, index: &Tensor, sizes: &[usize], dim: usize) -> Result<Tensor> {
    padded(&g.gather(index, dim)?, sizes)
}

/// `x` padded with zeros at the end of each dim, up to `sizes`.
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
