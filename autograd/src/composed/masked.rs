//! Reductions and functions along a dim over the elements where a mask is true.

use crate::Tensor;
use crate::chain::*;
use crate::options::{OnesLikeOptions, VectorNormOptions};
use namegrad_core::args::Over;
use namegrad_core::{DType, Dims, Error, ErrorKind, Result, Scalar, default_dtype, keep};
use namegrad_macros::composed;

composed! { masked;
    //! # Elements where a mask is true
    //!
    //! Elements where `mask` is false count as if they were not there; the mask broadcasts to the tensor.
    /// The sum of the elements where `mask` is true; 0 if there are none.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// // Two sequences, the second of which has one element less.
    /// let x = Tensor::new([[1.0, 2.0, 3.0], [4.0, 5.0, 0.0]])?.refine_names(["N", "time"])?;
    /// let mask = Tensor::new([[true, true, true], [true, true, false]])?;
    /// assert_eq!(x.masked_sum(&mask, "time")?.to_vec::<f32>()?, [6.0, 9.0]);
    /// assert_eq!(x.masked_mean(&mask, "time")?.to_vec::<f32>()?, [2.0, 4.5]);
    /// # Ok::<(), Error>(())
    /// ```
    masked_sum (x, mask: bool; dim: Reduced or ..) names removes, mask: unified
        => filled(x, mask, 0.into())?.sum(dim);
    /// The product of the elements where `mask` is true; 1 if there are none.
    masked_prod (x, mask: bool; dim: Reduced or ..) names removes, mask: unified
        => filled(x, mask, 1.into())?.prod(dim);
    /// The mean of the elements where `mask` is true; NaN if there are none.
    masked_mean (x, mask: bool; dim: Reduced or ..) names removes, mask: unified
        => filled(x, mask, 0.into())?.sum(&dim).div(counted(x, mask, dim.into())?);
    /// The variance of the elements where `mask` is true: the sum of the squared deviations from their mean,
    /// divided by their number minus `correction`.
    masked_var (x, mask: bool; dim: Reduced or .., correction: f64 = 1.0) names removes, mask: unified
        => variance(x, mask, dim.into(), correction);
    /// The standard deviation of the elements where `mask` is true, the root of
    /// [`masked_var`](Self::masked_var).
    masked_std (x, mask: bool; dim: Reduced or .., correction: f64 = 1.0) names removes, mask: unified
        => root(&variance(x, mask, dim.into(), correction)?);
    /// The largest element where `mask` is true, or the least number of the dtype if there is none.
    masked_amax (x, mask: bool; dim: Reduced or ..) names removes, mask: unified
        => filled(x, mask, ends(x.dtype())[0])?.amax(dim);
    /// The smallest element where `mask` is true, or the largest number of the dtype if there is none.
    masked_amin (x, mask: bool; dim: Reduced or ..) names removes, mask: unified
        => filled(x, mask, ends(x.dtype())[1])?.amin(dim);
    /// The position of the first of the largest elements where `mask` is true.
    masked_argmax (x, mask: bool; dim: Reduced or ..) names removes, mask: unified constant
        => position(x, mask, &dim, 0);
    /// The position of the first of the smallest elements where `mask` is true.
    masked_argmin (x, mask: bool; dim: Reduced or ..) names removes, mask: unified constant
        => position(x, mask, &dim, 1);
    /// The median of the elements where `mask` is true and that are not NaN; NaN if there are none.
    masked_median (x, mask: bool; dim: Reduced or ..) names removes, mask: unified
        => Ok(filled(x, mask, f64::NAN.into())?.nanmedian(dim)?.values);
    /// The norm `(Σ |x|^ord)^(1/ord)` of the elements where `mask` is true.
    masked_norm (x, mask: bool; dim: Reduced or .., ord: f64 = 2.0) names removes, mask: unified
        => norm(&floating(x)?, mask, &dim, ord);
    /// `log Σ e^x` over the elements where `mask` is true.
    masked_logsumexp (x, mask: bool; dim: Reduced or ..) names removes, mask: unified
        => filled(x, mask, f64::NEG_INFINITY.into())?.logsumexp(dim);
    /// Softmax along `dim` over the elements where `mask` is true, and 0 elsewhere; NaN along the whole `dim`
    /// if there are none.
    masked_softmax (x, mask: bool; dim: Dim) names keeps, mask: unified
        => filled(x, mask, f64::NEG_INFINITY.into())?.softmax(dim);
    /// The logarithm of [`masked_softmax`](Self::masked_softmax).
    masked_log_softmax (x, mask: bool; dim: Dim) names keeps, mask: unified
        => filled(x, mask, f64::NEG_INFINITY.into())?.log_softmax(dim);
    /// The running sum along `dim` of the elements where `mask` is true.
    masked_cumsum (x, mask: bool; dim: Dim) names keeps, mask: unified
        => filled(x, mask, 0.into())?.cumsum(dim);
    /// The running product along `dim` of the elements where `mask` is true.
    masked_cumprod (x, mask: bool; dim: Dim) names keeps, mask: unified
        => filled(x, mask, 1.into())?.cumprod(dim);
}

/// The tensor with `value` where the mask is false.
fn filled(x: &Tensor, mask: &Tensor, value: Scalar) -> Result<Tensor> {
    if mask.ndim() > x.ndim() {
        let message = format!("the mask has {} dims, and the tensor {}", mask.ndim(), x.ndim());
        return Err(Error::new(ErrorKind::Shape, "", message));
    }
    // An infinity or NaN makes floats of other numbers.
    let whole = x.dtype().is_floating_point() || value.to_f64().is_finite();
    let x = if whole { x.clone() } else { x.to(default_dtype())? };
    let y = x.masked_fill(&mask.logical_not()?, value)?;
    if y.sizes() != x.sizes() {
        let message = format!("a mask of sizes {:?} does not broadcast to {:?}", mask.sizes(), x.sizes());
        return Err(Error::new(ErrorKind::Shape, "", message));
    }
    Ok(y)
}

/// The position of the first element that is the largest, or with `end` 1 the smallest, of those where the mask
/// is true; NaN counts as both.
fn position(x: &Tensor, mask: &Tensor, dims: &Over, end: usize) -> Result<Tensor> {
    let y = filled(x, mask, ends(x.dtype())[end])?;
    let best = if end == 0 { y.amax(dims.kept())? } else { y.amin(dims.kept())? };
    let is_best = y.eq(&best)?.logical_or(y.isnan()?)?.logical_and(mask)?;
    is_best.to(DType::U8).argmax(dims)
}

fn norm(x: &Tensor, mask: &Tensor, dim: &Over, ord: f64) -> Result<Tensor> {
    let options = VectorNormOptions::new().ord(ord);
    if ord < 0.0 {
        // Without an element, the norm is infinite and constant.
        let none = counted(x, mask, dim.kept().into())?.eq(0)?;
        let y = filled(x, mask, f64::INFINITY.into())?.masked_fill(&none, 1.0)?;
        return y.vector_norm_with(dim, options)?.masked_fill(&none.all(dim)?, f64::INFINITY);
    }
    filled(x, mask, 0.into())?.vector_norm_with(dim, options)
}

/// The number of elements where the mask is true.
fn counted(x: &Tensor, mask: &Tensor, dims: Dims) -> Result<Tensor> {
    let ones = x.detach().ones_like_with(OnesLikeOptions::new().dtype(DType::I64))?;
    filled(&ones, mask, 0.into())?.sum(dims)
}

fn variance(x: &Tensor, mask: &Tensor, dims: Dims, correction: f64) -> Result<Tensor> {
    let x = &floating(x)?;
    let zero = |x: &Tensor| filled(x, mask, 0.into());
    let mean = zero(x)?.sum(keep(dims.clone())).div(counted(x, mask, keep(dims.clone()))?)?;
    let squares = zero(&zero(x)?.sub(&mean)?)?.square().sum(dims.clone())?;
    squares.div(counted(x, mask, dims)?.sub(correction).clamp_min(0.0)?).to(x.dtype())
}

/// The square root, with the gradient 0 at 0.
fn root(x: &Tensor) -> Result<Tensor> {
    let zero = x.eq(0)?;
    zero.choose(x.zeros_like()?, zero.choose(x.ones_like()?, x)?.sqrt()?)
}

fn floating(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_floating_point() { Ok(x.clone()) } else { x.to(default_dtype()) }
}

/// The least and the largest number of a dtype.
fn ends(dtype: DType) -> [Scalar; 2] {
    if dtype.is_floating_point() {
        return [f64::NEG_INFINITY.into(), f64::INFINITY.into()];
    }
    match dtype {
        DType::Bool => [false.into(), true.into()],
        DType::U8 => [0.into(), i64::from(u8::MAX).into()],
        signed => {
            let most = i64::MAX >> (64 - 8 * signed.itemsize());
            [(-most - 1).into(), most.into()]
        }
    }
}
