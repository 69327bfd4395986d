//! Derivatives of the products. The tape sums what was broadcast over batch dims.

use crate::op::{Kept, Op};
use crate::{Cx, Tensor};
use namegrad_core::{Argument, Dims, ErrorKind, NameArg, NamedTensor, Names, Result, Scalar};

rules! { in NamedTensor; |g, cx|
    mm(a, b) -> y { a: [b] g.mm(&b.t()?)?, b: [a] right_of_mm(g, a, cx)? }
    mv(a, b) -> y { a: [b] g.outer(b)?, b: [a] a.t()?.mv(g)? }
    dot(a, b) -> y { a: [b] g * b, b: [a] g * a }
    bmm(a, b) -> y { a: [b] g.bmm(&b.mt()?)?, b: [a] a.mt()?.bmm(g)? }
    addcmul(x, a, b; value: Scalar) -> y {
        x: [] g.clone(),
        a: [b; value] scaled(g * b, *value)?,
        b: [a; value] scaled(g * a, *value)?
    }
    addcdiv(x, a, b; value: Scalar) -> y {
        x: [] g.clone(),
        a: [b; value] scaled(g / b, *value)?,
        b: [a b; value] scaled(-g * (a / b.square()?), *value)?
    }
    outer(a, b) -> y { a: [b] g.mv(b)?, b: [a] g.t()?.mv(a)? }
    matmul(a, b) -> y { a: [b] left_gradient(g, b, cx)?, b: [a] right_gradient(g, a, cx)? }
    addmm(x, a, b; beta: Scalar, alpha: Scalar) -> y {
        x: [; beta] scaled(g.clone(), *beta)?,
        a: [b; alpha] scaled(g.mm(&b.t()?)?, *alpha)?,
        b: [a; alpha] scaled(right_of_mm(g, a, cx)?, *alpha)?
    }
    addmv(x, a, b; beta: Scalar, alpha: Scalar) -> y {
        x: [; beta] scaled(g.clone(), *beta)?,
        a: [b; alpha] scaled(g.outer(b)?, *alpha)?,
        b: [a; alpha] scaled(a.t()?.mv(g)?, *alpha)?
    }
    baddbmm(x, a, b; beta: Scalar, alpha: Scalar) -> y {
        x: [; beta] scaled(g.clone(), *beta)?,
        a: [b; alpha] scaled(g.bmm(&b.mt()?)?, *alpha)?,
        b: [a; alpha] scaled(a.mt()?.bmm(g)?, *alpha)?
    }
}

fn scaled(g: Tensor, by: Scalar) -> Result<Tensor> {
    if by.to_f64() == 1.0 { Ok(g) } else { g.mul(by) }
}

/// `g bᵀ`, a vector on either side being a matrix of one row or column.
fn left_gradient(g: &Tensor, b: &Tensor, cx: &Cx<'_>) -> Result<Tensor> {
    match (cx.sizes().len(), b.ndim()) {
        (1, 1) => g.mul(b),
        (_, 1) => g.unsqueeze(-1)?.mul(b),
        (1, _) => g.unsqueeze(-2)?.matmul(&b.mt()?)?.squeeze(-2),
        (_, 2) if g.ndim() > 2 => folded(g)?.mm(&b.t()?)?.reshape(cx.sizes()),
        _ => g.matmul(&b.mt()?),
    }
}

/// `aᵀ g` of matrices, in the order in memory that the right factor has.
fn right_of_mm(g: &Tensor, a: &Tensor, cx: &Cx<'_>) -> Result<Tensor> {
    if cx.is_column_major() { g.t()?.mm(a)?.t() } else { a.t()?.mm(g) }
}

/// `aᵀ g`, a vector on either side being a matrix of one row or column.
fn right_gradient(g: &Tensor, a: &Tensor, cx: &Cx<'_>) -> Result<Tensor> {
    match (a.ndim(), cx.sizes().len()) {
        (1, 1) => g.mul(a),
        (_, 1) => a.mt()?.matmul(&g.unsqueeze(-1)?)?.squeeze(-1),
        (1, _) => a.unsqueeze(-1)?.mul(&g.unsqueeze(-2)?),
        (_, 2) if g.ndim() > 2 => right_of_mm(&folded(g)?, &folded(a)?, cx), // one product instead of a batch and its sum
        (2, 2) => right_of_mm(g, a, cx),
        _ => a.mt()?.matmul(g),
    }
}

/// All dims but the last as one.
fn folded(x: &Tensor) -> Result<Tensor> {
    let (cols, rest) = x.sizes().split_last().expect("callers have at least two dims");
    x.reshape([rest.iter().product(), *cols])
}

impl Tensor {
    /// The sum of the products over `dims` of this tensor and as many `other_dims` of the other, pair by pair: the dims that are left of this tensor come
    /// first, then those of the other, with their names.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, y) = (Tensor::ones([("N", 2), ("C", 3)])?, Tensor::ones([("K", 3), ("M", 4)])?);
    /// assert_eq!(x.tensordot(&y, "C", "K")?.extents().to_string(), "[N=2, M=4]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the summed dims differ in number or size, [`ErrorKind::DuplicateName`], [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
    #[track_caller]
    pub fn tensordot(
        &self,
        other: &Tensor,
        dims: impl Into<Dims>,
        other_dims: impl Into<Dims>,
    ) -> Result<Tensor> {
        const OP: &str = "tensordot";
        let (here, there) =
            (dims.into().resolve(OP, self.value())?, other_dims.into().resolve(OP, other.value())?);
        let sizes =
            |x: &Tensor, dims: &[usize]| dims.iter().map(|dim| x.sizes()[*dim]).collect::<Vec<usize>>();
        let summed = sizes(self, &here);
        let fits = summed == sizes(other, &there);
        let message = || {
            format!(
                "contracted dims {here:?} of {:?} and {there:?} of {:?} need to match",
                self.sizes(),
                other.sizes()
            )
        };
        Tensor::ensure(fits, ErrorKind::Shape, OP, if fits { String::new() } else { message() })?;
        let left = |x: &Tensor, summed: &[usize]| {
            (0..x.ndim()).filter(|dim| !summed.contains(dim)).collect::<Vec<usize>>()
        };
        let (rows, cols) = (left(self, &here), left(other, &there));
        let name = |x: &Tensor, dims: &[usize]| dims.iter().map(|dim| x.name(*dim)).collect::<Vec<_>>();
        let names = Names::new(OP, name(self, &rows).into_iter().chain(name(other, &cols)))
            .map_err(|error| error.with_operands([self.extents(), other.extents()]))?;
        let inner: usize = summed.iter().product();
        let result = [sizes(self, &rows), sizes(other, &cols)].concat();
        let count = |x: &Tensor, dims: &[usize]| sizes(x, dims).iter().product::<usize>();
        let (m, n) = (count(self, &rows), count(other, &cols));
        let a = self.unnamed().permute([&rows[..], &here].concat())?.reshape([m, inner])?;
        let b = other.unnamed().permute([&there[..], &cols].concat())?.reshape([inner, n])?;
        a.mm(&b)?.reshape(result)?.rename(Some(names))
    }
}

/// `contract` differs from the other products: its derivative is a contraction of named tensors, so it is recorded by hand.
#[track_caller]
pub(crate) fn contract(x: &Tensor, other: &Tensor, dims: &namegrad_core::Axes) -> Result<Tensor> {
    let value = NamedTensor::contract(x.value(), other.value(), dims)?;
    let gradient = |side: &Tensor, against: &Tensor| {
        let (kept, names) = (Kept::input(against), against.names().clone());
        let (own, made) = (side.names().clone(), value.names().clone());
        let own_list: Vec<NameArg> = own.iter(side.ndim()).flatten().map(NameArg::Name).collect();
        move |g: &Tensor, cx: &Cx<'_>| {
            let against = kept.get(cx).rename(Some(names.clone()))?;
            // Summed are the dims of the other side that the result has and this side has not.
            let summed: Vec<_> = names
                .iter(against.ndim())
                .flatten()
                .filter(|name| made.position(*name).is_some() && own.position(*name).is_none())
                .collect();
            let g = g.rename(Some(made.clone()))?;
            let summed = Dims::from(summed).resolve("contract", g.value())?;
            contract(&g, &against, &summed)?.align_to(own_list.clone())?.rename(None)
        }
    };
    let (left, right) = (gradient(x, other), gradient(other, x));
    Ok(Op::new("contract", value.clone()).input(x, left).input(other, right).output())
}
