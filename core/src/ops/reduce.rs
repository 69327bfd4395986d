//! Reductions over dims. A reduced dim is removed together with its name, or kept with size one by
//! [`keep`](crate::keep).
//!
//! Every reduction is arranged as `[outer, n, inner]`, of which the middle is reduced by `crate::cpu::fold`.

use crate::args::Over;
use crate::dim::{Positions, others, sort_dims};
use crate::dtype::{DType, default_dtype, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{self, Sizes};
use crate::names::rules;
use crate::shape::Shape;
use crate::tensor::{NamedTensor, Unwritten};
use namegrad_macros::ops;
use std::borrow::Cow;

ops! { reduce;
    //! # Reductions over dims
    /// The sum over `dim`; integers and `bool` give `i64`. The sum of no elements is 0. If `dtype` is given,
    /// the elements are first cast to it, and the result has that dtype.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.5, 2.5]])?.refine_names(["N", "C"])?;
    /// assert_eq!(x.sum("C")?.to_vec::<f32>()?, [4.0]);
    /// assert_eq!(x.sum(keep("C"))?.shape().to_string(), "[N=1, C=1]");
    /// let whole = x.sum_with("C", SumOptions::new().dtype(DType::I32))?;
    /// assert_eq!((whole.dtype(), whole.to_vec::<i32>()?), (DType::I32, vec![3]));
    /// # Ok::<(), Error>(())
    /// ```
    sum (x; dim: Reduced = .., dtype: Cast);
    /// The product over `dim`; integers and `bool` give `i64`. The product of no elements is 1. `dtype` works
    /// as in [`sum`](Self::sum).
    prod (x; dim: Reduced = .., dtype: Cast);
    /// The mean over `dim`; floats only. The mean of no elements is NaN.
    mean (x; dim: Reduced = .., dtype: Cast) on floats;
    /// The largest element over `dim`; NaN if any element is NaN.
    amax (x; dim: Reduced = ..);
    /// The smallest element over `dim`; NaN if any element is NaN.
    amin (x; dim: Reduced = ..);
    /// The smallest and the largest element over `dim`: [`amin`](Self::amin) and [`amax`](Self::amax).
    aminmax (x; dim: Reduced = ..) -> MinMax { min, max };
    /// Whether all elements over `dim` are nonzero; true if there are no elements. As in PyTorch, the result
    /// for `u8` is 1 or 0 in `u8`.
    all (x; dim: Reduced = ..);
    /// Whether any element over `dim` is nonzero; false if there are no elements. As in PyTorch, the result
    /// for `u8` is 1 or 0 in `u8`.
    any (x; dim: Reduced = ..);
    /// `ln Σ e^x` over `dim`, without overflow.
    logsumexp (x; dim: Reduced = ..);
    /// The variance over `dim`: the sum of the squared deviations from the mean, divided by
    /// `max(n - correction, 0)`. The default correction of 1 gives the unbiased estimate; with 0, the
    /// variance is the mean of the squared deviations.
    var (x; dim: Reduced = .., correction: f64 = 1.0) on floats;
    /// The standard deviation over `dim`: the square root of [`var`](Self::var).
    std (x; dim: Reduced = .., correction: f64 = 1.0) on floats;
    /// The variance and the mean over `dim`, as [`var`](Self::var) and [`mean`](Self::mean), but the mean is
    /// computed only once.
    var_mean (x; dim: Reduced = .., correction: f64 = 1.0) -> VarMean { var, mean } on floats;
    /// The standard deviation and the mean over `dim`, as [`std`](Self::std) and [`mean`](Self::mean), but
    /// the mean is computed only once.
    std_mean (x; dim: Reduced = .., correction: f64 = 1.0) -> StdMean { std, mean } on floats;
    /// The Euclidean norm over `dim`: `√Σ x²`. For norms of other orders, see
    /// [`vector_norm`](Self::vector_norm).
    norm (x; dim: Reduced = ..) on floats;
    /// The norm of order `ord` over `dim`: `(Σ |x|^ord)^(1/ord)`; `max |x|` for ∞, `min |x|` for -∞, and
    /// the number of nonzero elements for 0.
    vector_norm (x; dim: Reduced = .., ord: f64 = 2.0, dtype: Cast) on floats;
    /// The sum over `dim` of the elements that are not NaN; integers and `bool` give `i64`. The sum of no
    /// elements is 0. `dtype` works as in [`sum`](Self::sum).
    nansum (x; dim: Reduced = .., dtype: Option<DType> = None);
    /// The mean over `dim` of the elements that are not NaN; floats only. If there are none, it is NaN.
    nanmean (x; dim: Reduced = .., dtype: Cast) on floats;
    /// The number of nonzero elements over `dim`, in `i64`.
    count_nonzero (x; dim: Reduced = ..);
}

/// A dense tensor as `[outer, n, inner]`, whose middle is to be reduced, and the shape of the result.
pub(crate) struct Arranged<'a> {
    pub(crate) x: Cow<'a, NamedTensor>,
    pub(crate) sizes: [usize; 3],
    pub(crate) shape: Shape,
}

/// Arranges `x` for a reduction over `dims`. Dims that are adjacent in memory need no copy; others are moved
/// to the end by a copy.
#[track_caller]
pub(crate) fn arrange<'a>(x: &'a NamedTensor, dims: &Over) -> Result<Arranged<'a>> {
    let reduced = |dim: &usize| dims.contains(dim);
    let ndim = x.ndim();
    let mut sizes = Sizes::new();
    for dim in 0..ndim {
        match (reduced(&dim), dims.keep) {
            (true, true) => sizes.push(1),
            (true, false) => {}
            (false, _) => sizes.push(x.sizes()[dim]),
        }
    }
    let names = if dims.keep { x.names().clone() } else { rules::remove(x.input(), dims) };
    let shape = Shape { sizes, names };
    if x.is_contiguous() && dims.windows(2).all(|pair| pair[1] == pair[0] + 1) {
        let first = dims.first().copied().unwrap_or(ndim);
        let (outer, rest) = x.sizes().split_at(first);
        let (middle, inner) = rest.split_at(dims.len());
        let sizes = [outer, middle, inner].map(layout::product);
        return Ok(Arranged { x: Cow::Borrowed(x), sizes, shape });
    }
    let product = |dims: &[usize]| dims.iter().map(|dim| x.sizes()[*dim]).product::<usize>();
    let n = product(dims);
    // If its dims are ordered by stride, a transposed tensor is dense too.
    let mut order = others(ndim, &[]);
    let mut dense = Cow::Borrowed(x);
    if !x.is_contiguous() {
        sort_dims(&mut order, &|a, b| x.strides()[a] > x.strides()[b]);
        dense = Cow::Owned(super::shape::kernels::reorder(x, &order));
    }
    let first = order.iter().position(reduced).unwrap_or(ndim);
    let last = (first + dims.len()).min(ndim);
    let together = order[first..last].iter().all(reduced);
    if together && dense.is_contiguous() && order.iter().filter(|dim| !reduced(dim)).is_sorted() {
        let sizes = [product(&order[..first]), n, product(&order[last..])];
        return Ok(Arranged { x: dense, sizes, shape });
    }
    let mut order = Positions::new();
    for last in [false, true] {
        for dim in 0..ndim {
            if reduced(&dim) == last {
                order.push(dim);
            }
        }
    }
    let x = super::shape::kernels::contiguous(&super::shape::kernels::reorder(x, &order))?;
    Ok(Arranged { x: Cow::Owned(x), sizes: [layout::product(&shape.sizes), n, 1], shape })
}

pub(crate) mod kernels {
    use super::*;
    use crate::cpu::fold::cast::fold_cast;
    use crate::cpu::fold::plain::{self, AnyElements, Plain, fold_plainly};
    use crate::cpu::fold::{Fold, MAX, MIN, Sum, SumSquares, fold_middle};
    use crate::cpu::math::Real;
    use crate::cpu::softmax;
    use crate::dtype::Element;

    /// Folds an arranged tensor of floats.
    #[track_caller]
    fn fold<T: Element + Real>(
        op: &'static str,
        fold: &dyn Fold<T>,
        arranged: Arranged<'_>,
    ) -> Result<NamedTensor> {
        let Arranged { x, sizes, shape } = arranged;
        Unwritten::new(op, shape, T::DTYPE)?.write_from(&x, |x: &[T], y| fold_middle(fold, x, sizes, y))
    }

    #[track_caller]
    fn any_elements(x: &NamedTensor) -> Result<AnyElements<'_>> {
        Ok(dispatch!(x.dtype(), T => AnyElements::of(x.elements::<T>()?)))
    }

    /// Folds an arranged tensor of any dtype in that of `A`.
    #[track_caller]
    fn fold_in<A: Element>(op: &'static str, plain: Plain<A>, arranged: Arranged<'_>) -> Result<NamedTensor> {
        let Arranged { x, sizes, shape } = arranged;
        let elements = any_elements(&x)?;
        Ok(Unwritten::new(op, shape, A::DTYPE)?.write(|y| fold_plainly(plain, elements, sizes, y)))
    }

    /// Folds an arranged tensor of halves in `f32`.
    #[track_caller]
    fn fold_halves(op: &'static str, kernel: &dyn Fold<f32>, arranged: Arranged<'_>) -> Result<NamedTensor> {
        let Arranged { x, sizes, shape } = arranged;
        let elements = any_elements(&x)?;
        Ok(Unwritten::new(op, shape, DType::F32)?.write(|y| fold_cast(kernel, elements, sizes, y)))
    }

    /// Splits dims of a dense tensor that are not adjacent into the last adjacent group and the others.
    fn apart(x: &NamedTensor, dims: &Over) -> Option<(Over, Over)> {
        if dims.len() < 2 || !x.is_contiguous() {
            return None;
        }
        let mut dims = Positions::from_slice(dims);
        sort_dims(&mut dims, &|a, b| a < b);
        let run = dims.windows(2).rev().take_while(|pair| pair[0] + 1 == pair[1]).count() + 1;
        let (others, last) = dims.split_at(dims.len().saturating_sub(run));
        let kept = |dims: &[usize]| Over::new(dims.iter().copied(), true);
        (!others.is_empty()).then(|| (kept(last), kept(others)))
    }

    /// An expanded tensor with each element once, if dims that are reduced repeat elements, and how often it
    /// has them. A copy with all repetitions may not fit in memory.
    #[inline]
    fn without_repeats(x: &NamedTensor, dims: &Over) -> Option<(NamedTensor, i64)> {
        let repeats = |dim: &&usize| x.strides()[**dim] == 0 && x.sizes()[**dim] > 1;
        if x.is_contiguous() || x.numel() == 0 {
            return None;
        }
        let (mut once, mut count) = (None, 1);
        for dim in dims.iter().filter(repeats) {
            count *= x.sizes()[*dim] as i64;
            once = Some(once.as_ref().unwrap_or(x).narrow(*dim as isize, 0, 1).ok()?);
        }
        Some((once?, count))
    }

    /// A kind of reduction.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Folding {
        Total,
        Product,
        Largest,
        Smallest,
        /// The sum of squares; floats only.
        Squares,
        /// `bool` only.
        All,
        /// `bool` only.
        Any,
    }

    impl Folding {
        /// Folds dims of a tensor, with half types in `f32`. Dims that are not adjacent are folded group by
        /// group.
        #[track_caller]
        fn over(self, op: &'static str, x: &NamedTensor, dims: &Over) -> Result<NamedTensor> {
            // Powers of integers are exact, those of rounded floats are not.
            let is_exact = self != Folding::Product || !x.dtype().is_floating_point();
            if let Some((once, count)) = without_repeats(x, dims).filter(|_| is_exact) {
                let part = self.over(op, &once, dims)?;
                return match self {
                    Folding::Total | Folding::Squares => part.mul(count),
                    Folding::Product => part.pow(count),
                    _ => Ok(part),
                };
            }
            if let Some((last, others)) = apart(x, dims) {
                let part = self.over(op, x, &last)?;
                let whole = match self {
                    Folding::Squares => Folding::Total.over(op, &part, &others)?,
                    same => same.over(op, &part, &others)?,
                };
                let removed = if dims.keep { Positions::new() } else { Positions::from_slice(dims) };
                return crate::ops::shape::kernels::squeeze(&whole, removed);
            }
            let folded = arrange(x, dims)?;
            let is_float = x.dtype().is_floating_point();
            match self {
                Folding::All => fold_in(op, plain::ALL, folded),
                Folding::Any => fold_in(op, plain::ANY, folded),
                Folding::Total if !is_float => fold_in(op, plain::SUM, folded),
                Folding::Largest if !is_float => fold_in(op, plain::MAX, folded),
                Folding::Smallest if !is_float => fold_in(op, plain::MIN, folded),
                Folding::Product if !is_float => fold_in(op, plain::PRODUCT, folded),
                Folding::Product => {
                    fold_in(op, plain::FLOAT_PRODUCT, folded)?.into_dtype(x.dtype().compute())
                }
                _ => dispatch!(x.dtype(), float T => fold(op, self.kernel::<T>(), folded), else {
                    fold_halves(op, self.kernel(), folded)
                }),
            }
        }

        /// The kernel for floats.
        fn kernel<T: Real>(self) -> &'static dyn Fold<T> {
            match self {
                Folding::Total => &Sum,
                Folding::Largest => &MAX,
                Folding::Smallest => &MIN,
                _ => &SumSquares,
            }
        }
    }

    /// The dtype of sums: `i64` for integers and `bool`, otherwise the dtype of the input.
    fn sum_dtype(x: &NamedTensor) -> DType {
        if x.dtype().is_floating_point() { x.dtype() } else { DType::I64 }
    }

    #[track_caller]
    pub(crate) fn sum(x: &NamedTensor, dims: Over) -> Result<NamedTensor> {
        Folding::Total.over("sum", x, &dims)?.into_dtype(sum_dtype(x))
    }

    #[track_caller]
    pub(crate) fn prod(x: &NamedTensor, dims: Over) -> Result<NamedTensor> {
        Folding::Product.over("prod", x, &dims)?.into_dtype(sum_dtype(x))
    }

    #[track_caller]
    pub(crate) fn amax(x: &NamedTensor, dims: Over) -> Result<NamedTensor> {
        check_not_empty("amax", x, &dims)?;
        Folding::Largest.over("amax", x, &dims)?.into_dtype(x.dtype())
    }

    #[track_caller]
    pub(crate) fn amin(x: &NamedTensor, dims: Over) -> Result<NamedTensor> {
        check_not_empty("amin", x, &dims)?;
        Folding::Smallest.over("amin", x, &dims)?.into_dtype(x.dtype())
    }

    #[track_caller]
    pub(crate) fn all(x: &NamedTensor, dims: Over) -> Result<NamedTensor> {
        Folding::All.over("all", &*x.cast(DType::Bool)?, &dims)?.into_dtype(truth_dtype(x))
    }

    #[track_caller]
    pub(crate) fn any(x: &NamedTensor, dims: Over) -> Result<NamedTensor> {
        Folding::Any.over("any", &*x.cast(DType::Bool)?, &dims)?.into_dtype(truth_dtype(x))
    }

    /// The dtype of `all` and `any`.
    fn truth_dtype(x: &NamedTensor) -> DType {
        if x.dtype() == DType::U8 { DType::U8 } else { DType::Bool }
    }

    #[track_caller]
    fn check_not_empty(op: &'static str, x: &NamedTensor, dims: &[usize]) -> Result<()> {
        if x.numel() == 0 && dims.iter().any(|dim| x.sizes()[*dim] == 0) {
            // As in PyTorch: for all dims of an empty tensor the error is about the choice of dims, for some
            // dims about their sizes.
            let (kind, message) = match dims.len() == x.ndim() {
                true => (ErrorKind::Value, "a tensor without elements has no largest and no smallest one"),
                false => (ErrorKind::Shape, "Expected reduction dims to have non-zero size"),
            };
            return Err(Error::about(&[x], kind, op, message).with_repair(crate::ops::pick::EMPTY));
        }
        Ok(())
    }

    /// The number of elements that are reduced to one.
    fn count(x: &NamedTensor, dims: &[usize]) -> f64 {
        dims.iter().map(|dim| x.sizes()[*dim] as f64).product()
    }

    #[track_caller]
    pub(crate) fn mean(x: &NamedTensor, dims: Over) -> Result<NamedTensor> {
        x.check_float("mean")?;
        let count = count(x, &dims);
        let mut mean = Folding::Total.over("mean", x, &dims)?;
        mean.div_(count)?;
        mean.into_dtype(x.dtype())
    }

    #[track_caller]
    pub(crate) fn logsumexp(x: &NamedTensor, dims: Over) -> Result<NamedTensor> {
        let x = if x.dtype().is_floating_point() { Cow::Borrowed(x) } else { x.cast(default_dtype())? };
        let wide = x.widened()?;
        let Arranged { x: dense, sizes, shape } = arrange(&wide, &dims)?;
        let out = Unwritten::new("logsumexp", shape, dense.dtype())?;
        let out = dispatch!(dense.dtype(), float T => {
            out.write_from::<T, T>(&dense, |x, y| softmax::logsumexp(x, sizes, y))?
        }, else unreachable!("cast to a float before"));
        out.into_dtype(x.dtype())
    }

    /// The variance, with the denominator `max(count - correction, 0)`, and the mean. With too few elements,
    /// the variance is NaN or infinite. Both are in the dtype that kernels compute in.
    #[track_caller]
    fn moments(op: &'static str, x: &NamedTensor, dims: &Over, correction: f64) -> Result<[NamedTensor; 2]> {
        x.check_float(op)?;
        let wide = x.widened()?;
        let [mut squares, mut mean] = squares_and_mean(op, &wide, dims)?;
        let fits = squares.isfinite()?;
        if wide.dtype() == DType::F32 && !fits.is_true_everywhere()? {
            // The squares of large numbers may overflow `f32` even if the deviation does not.
            let [exact, exact_mean] = squares_and_mean(op, &*wide.cast(DType::F64)?, dims)?;
            let better = exact.isfinite()?.logical_and(fits.logical_not()?)?;
            squares = better.choose(&exact, &squares)?;
            mean = better.choose(&exact_mean, &mean)?;
        }
        let left = count(x, dims) - correction;
        squares.div_(if left < 0.0 { 0.0 } else { left })?; // NaN stays NaN
        Ok([squares, mean])
    }

    /// The sum of the squared deviations from the mean, and the mean.
    #[track_caller]
    fn squares_and_mean(op: &'static str, x: &NamedTensor, dims: &Over) -> Result<[NamedTensor; 2]> {
        let kept = mean(x, dims.kept())?;
        let squares = Folding::Squares.over(op, &x.sub(&kept)?, dims)?;
        let removed = if dims.keep { Positions::new() } else { Positions::from_slice(dims) };
        Ok([squares, crate::ops::shape::kernels::squeeze(&kept, removed)?])
    }

    #[track_caller]
    pub(crate) fn var(x: &NamedTensor, dims: Over, correction: f64) -> Result<NamedTensor> {
        let [var, _] = moments("var", x, &dims, correction)?;
        var.into_dtype(x.dtype())
    }

    #[track_caller]
    pub(crate) fn var_mean(
        x: &NamedTensor,
        dims: Over,
        correction: f64,
    ) -> Result<(NamedTensor, NamedTensor)> {
        let [var, mean] = moments("var_mean", x, &dims, correction)?;
        Ok((var.into_dtype(x.dtype())?, mean.into_dtype(x.dtype())?))
    }

    #[track_caller]
    pub(crate) fn std(x: &NamedTensor, dims: Over, correction: f64) -> Result<NamedTensor> {
        let [mut std, _] = moments("std", x, &dims, correction)?;
        std.sqrt_()?;
        std.into_dtype(x.dtype())
    }

    #[track_caller]
    pub(crate) fn std_mean(
        x: &NamedTensor,
        dims: Over,
        correction: f64,
    ) -> Result<(NamedTensor, NamedTensor)> {
        let [mut std, mean] = moments("std_mean", x, &dims, correction)?;
        std.sqrt_()?;
        Ok((std.into_dtype(x.dtype())?, mean.into_dtype(x.dtype())?))
    }

    #[track_caller]
    pub(crate) fn aminmax(x: &NamedTensor, dims: Over) -> Result<(NamedTensor, NamedTensor)> {
        check_not_empty("aminmax", x, &dims)?;
        let [min, max] =
            [Folding::Smallest.over("aminmax", x, &dims)?, Folding::Largest.over("aminmax", x, &dims)?];
        Ok((min.into_dtype(x.dtype())?, max.into_dtype(x.dtype())?))
    }

    #[track_caller]
    pub(crate) fn norm(x: &NamedTensor, dims: Over) -> Result<NamedTensor> {
        x.check_float("norm")?;
        let mut norm = Folding::Squares.over("norm", x, &dims)?;
        // The squares of large and of small numbers are out of the range of the dtype.
        let fits = |square: &f32| (1e-30..f32::INFINITY).contains(square);
        if norm.dtype() == DType::F32 && !norm.elements_to_check::<f32>()?.iter().all(fits) {
            norm = Folding::Squares.over("norm", &*x.cast(DType::F64)?, &dims)?;
        }
        let fits = |square: &f64| (1e-280..f64::INFINITY).contains(square);
        if x.dtype() == DType::F64 && !norm.elements_to_check::<f64>()?.iter().all(fits) {
            return norm_by_parts("norm", x, &dims, 2.0);
        }
        norm.sqrt_()?;
        norm.into_dtype(x.dtype())
    }

    /// The norm of a finite order that is not 0, of parts of the largest element, or of the smallest for a
    /// negative order: none of their powers is out of range.
    #[track_caller]
    fn norm_by_parts(op: &'static str, x: &NamedTensor, dims: &Over, ord: f64) -> Result<NamedTensor> {
        let (size, kept) = (x.abs()?, dims.kept());
        let most = if ord > 0.0 { Folding::Largest } else { Folding::Smallest };
        let scale = most.over(op, &size, &kept)?;
        let scale = scale.masked_fill(&scale.isfinite()?.logical_and(&scale.ne(0)?)?.logical_not()?, 1.0)?;
        let sum = Folding::Total.over(op, &size.div(&scale)?.pow(ord)?, &kept)?;
        let removed = if dims.keep { Positions::new() } else { Positions::from_slice(dims) };
        crate::ops::shape::kernels::squeeze(&sum.pow(ord.recip())?.mul(&scale)?, removed)
    }

    #[track_caller]
    pub(crate) fn vector_norm(x: &NamedTensor, dims: Over, ord: f64) -> Result<NamedTensor> {
        const OP: &str = "vector_norm";
        if ord == 2.0 {
            return norm(x, dims).map_err(|error| error.of(OP));
        }
        x.check_float(OP)?;
        if ord < 0.0 || ord == f64::INFINITY {
            check_not_empty(OP, x, &dims)?;
        }
        let wide = x.widened()?;
        let norm = if ord == 0.0 {
            Folding::Total.over(OP, &(*wide).ne(0)?, &dims)?
        } else if ord == f64::INFINITY {
            Folding::Largest.over(OP, &wide.abs()?, &dims)?
        } else if ord == f64::NEG_INFINITY {
            Folding::Smallest.over(OP, &wide.abs()?, &dims)?
        } else if ord == 1.0 {
            Folding::Total.over(OP, &wide.abs()?, &dims)?
        } else {
            norm_by_parts(OP, &wide, &dims, ord)?
        };
        norm.into_dtype(x.dtype())
    }

    /// `x` with NaN replaced by 0.
    #[track_caller]
    fn without_nan(x: &NamedTensor) -> Result<Cow<'_, NamedTensor>> {
        match x.dtype().is_floating_point() {
            true => Ok(Cow::Owned(x.masked_fill(&x.isnan()?, 0.0)?)),
            false => Ok(Cow::Borrowed(x)),
        }
    }

    #[track_caller]
    pub(crate) fn nansum(x: &NamedTensor, dims: Over, dtype: Option<DType>) -> Result<NamedTensor> {
        let numbers = without_nan(x)?; // before a cast, which would turn NaN into an integer
        let numbers = numbers.cast_to(dtype)?;
        Folding::Total.over("nansum", &numbers, &dims)?.into_dtype(dtype.unwrap_or(sum_dtype(x)))
    }

    #[track_caller]
    pub(crate) fn nanmean(x: &NamedTensor, dims: Over) -> Result<NamedTensor> {
        x.check_float("nanmean")?;
        let count = Folding::Total.over("nanmean", &x.isnan()?.logical_not()?, &dims)?;
        let mut mean = Folding::Total.over("nanmean", &*without_nan(x)?, &dims)?;
        mean.div_(&count)?;
        mean.into_dtype(x.dtype())
    }

    #[track_caller]
    pub(crate) fn count_nonzero(x: &NamedTensor, dims: Over) -> Result<NamedTensor> {
        Folding::Total.over("count_nonzero", &x.ne(0)?, &dims)
    }
}

/// The smallest and the largest element.
#[derive(Clone, Debug)]
pub struct MinMax<T = NamedTensor> {
    /// The smallest element.
    pub min: T,
    /// The largest element.
    pub max: T,
}

/// A standard deviation and a mean.
#[derive(Clone, Debug)]
pub struct StdMean<T = NamedTensor> {
    /// The standard deviation.
    pub std: T,
    /// The mean.
    pub mean: T,
}

/// A variance and a mean.
#[derive(Clone, Debug)]
pub struct VarMean<T = NamedTensor> {
    /// The variance.
    pub var: T,
    /// The mean.
    pub mean: T,
}

impl NamedTensor {
    /// Whether any element is zero; on the meta device, where there are no elements, none is.
    #[track_caller]
    pub(crate) fn has_zero(&self) -> Result<bool> {
        Ok(!self.ne(0)?.is_true_everywhere()?)
    }
}
