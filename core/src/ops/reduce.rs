//! Reductions over dims, and what normalizes along a dim. A reduced dim is gone with its name, or has size one in the `_keepdim` form.
//!
//! Every reduction is brought to the form `[outer, n, inner]`, of which the middle is reduced, and runs in `crate::cpu::fold`.

use crate::dim::{Argument, Axes, Dims};
use crate::dtype::{DType, Scalar, default_dtype, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::names::rules;
use crate::shape::{Shape, Sizes};
use crate::tensor::NamedTensor;
use std::borrow::Cow;
use std::cmp::Reverse;

/// The rows of the reductions over any dims, handed to `$with`.
#[macro_export]
#[doc(hidden)]
macro_rules! reduce_ops {
    ($with:ident) => {
        $with! {
            /// The sum over `dims`; of integers and bool in `i64`. Over nothing it is 0.
            sum sum_keepdim (x)
            /// The product over `dims`; of integers and bool in `i64`. Over nothing it is 1.
            prod prod_keepdim (x)
            /// The mean over `dims`, of floats only. Over nothing it is NaN.
            mean mean_keepdim (x)
            /// The largest element over `dims`; NaN if there is one.
            amax amax_keepdim (x)
            /// The smallest element over `dims`; NaN if there is one.
            amin amin_keepdim (x)
            /// Are all elements over `dims` not zero? Over nothing it is true. As in PyTorch, the answer for `u8` is 1 or 0 in `u8`.
            all all_keepdim (x)
            /// Is one element over `dims` not zero? Over nothing it is false. As in PyTorch, the answer for `u8` is 1 or 0 in `u8`.
            any any_keepdim (x)
            /// `ln Σ e^x` over `dims`, without overflow.
            logsumexp logsumexp_keepdim (x)
            /// The variance over `dims`: squared distances from the mean, summed and divided by one less than their number.
            var var_keepdim (x)
            /// The standard deviation over `dims`: the root of [`var`](Self::var).
            std std_keepdim (x)
            /// The Euclidean norm over `dims`: `√Σ x²`. Those of other orders are [`vector_norm`](Self::vector_norm).
            norm norm_keepdim (x)
            /// The norm of order `ord` over `dims`: `(Σ |x|^ord)^(1/ord)`; `max |x|` for ∞, `min |x|` for -∞, the number of elements that are not zero for 0.
            vector_norm vector_norm_keepdim (x; ord: f64)
            /// The variance over `dims`: squared distances from the mean, summed and divided by `n - correction`, or 0 if that is less. A correction of 1 is
            /// [`var`](Self::var), which estimates without bias; with 0 it is the mean of the squares.
            var_corrected var_corrected_keepdim (x; correction: f64)
            /// The standard deviation over `dims`: the root of [`var_corrected`](Self::var_corrected).
            std_corrected std_corrected_keepdim (x; correction: f64)
            /// The sum over `dims` of the elements that are not NaN; of integers and bool in `i64`. Over nothing it is 0.
            nansum nansum_keepdim (x)
            /// The mean over `dims` of the elements that are not NaN, of floats only. If there are no others it is NaN.
            nanmean nanmean_keepdim (x)
            /// The number of elements over `dims` that are not zero, in `i64`.
            count_nonzero count_nonzero_keepdim (x)
        }
    };
}

macro_rules! define_reductions {
    ($(
        #[doc = $doc:literal]
        $(#[doc = $more:literal])*
        $name:ident $name_keepdim:ident ($x:ident $(; $arg:ident: $ty:ty)?)
    )*) => {
        /// What is known of the ops of this table.
        pub const ROWS: &[$crate::ops::OpInfo] = &[$(info!($name [] "removes dimensions", $doc $($more)*)),*];
        impl $crate::NamedTensor {$(
            #[doc = $doc]
            $(#[doc = $more])*
            ///
            /// # Errors
            #[doc = concat!("As `namegrad::Tensor::", stringify!($name), "`.")]
            #[track_caller]
            pub fn $name(&self, dims: impl Into<Dims> $(, $arg: $ty)?) -> Result<NamedTensor> {
                kernels::$name(self, dims.into().resolve(stringify!($name), self)?, false $(, $arg)?)
            }
            #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") with the reduced dims kept at size one.")]
            ///
            /// # Errors
            #[doc = concat!("As `namegrad::Tensor::", stringify!($name), "`.")]
            #[track_caller]
            pub fn $name_keepdim(&self, dims: impl Into<Dims> $(, $arg: $ty)?) -> Result<NamedTensor> {
                kernels::$name(self, dims.into().resolve(stringify!($name), self)?, true $(, $arg)?)
            }
        )*}
    };
}
reduce_ops!(define_reductions);

/// A tensor as `[outer, n, inner]`, dense, of which the middle is to be reduced, and the shape of the result.
pub(crate) struct Arranged<'a> {
    pub(crate) x: Cow<'a, NamedTensor>,
    pub(crate) sizes: [usize; 3],
    pub(crate) shape: Shape,
}

/// Arranges `x` for a reduction over `dims`. Dims that stand side by side in memory are taken as they are; others are brought to the end by a copy.
#[track_caller]
pub(crate) fn arrange<'a>(x: &'a NamedTensor, dims: &[usize], keepdim: bool) -> Result<Arranged<'a>> {
    let reduced = |dim: &usize| dims.contains(dim);
    let ndim = x.ndim();
    let sizes: Sizes = match keepdim {
        true => (0..ndim).map(|dim| if reduced(&dim) { 1 } else { x.sizes()[dim] }).collect(),
        false => (0..ndim).filter(|dim| !reduced(dim)).map(|dim| x.sizes()[dim]).collect(),
    };
    let names = if keepdim { x.names().clone() } else { rules::remove(x.input(), dims) };
    let shape = Shape { sizes, names };
    let product = |dims: &[usize]| dims.iter().map(|dim| x.sizes()[*dim]).product::<usize>();
    let n = product(dims);
    // In the order in which the dims stand in memory a transposed tensor is dense too.
    let mut order: Axes = (0..ndim).collect();
    let mut dense = Cow::Borrowed(x);
    if !x.is_contiguous() {
        order.sort_by_key(|dim| Reverse(x.strides()[*dim]));
        dense = Cow::Owned(super::shape::kernels::reorder(x, &order));
    }
    let first = order.iter().position(reduced).unwrap_or(ndim);
    let last = (first + dims.len()).min(ndim);
    let together = order[first..last].iter().all(reduced);
    if together && dense.is_contiguous() && order.iter().filter(|dim| !reduced(dim)).is_sorted() {
        let sizes = [product(&order[..first]), n, product(&order[last..])];
        return Ok(Arranged { x: dense, sizes, shape });
    }
    let order: Axes = (0..ndim).filter(|dim| !reduced(dim)).chain((0..ndim).filter(reduced)).collect();
    let x = super::shape::kernels::contiguous(&super::shape::kernels::reorder(x, &order))?;
    Ok(Arranged { x: Cow::Owned(x), sizes: [shape.sizes.iter().product(), n, 1], shape })
}

/// What the methods and the derivative rows call.
#[doc(hidden)]
pub mod kernels {
    use super::*;
    use crate::cpu::fold::{Fold, Max, Min, Prod, Sum, SumSquares, fold_middle};
    use crate::cpu::rows;
    use crate::dtype::Element;

    /// Folds an arranged tensor.
    #[track_caller]
    fn fold<T, F>(op: &'static str, fold: F, arranged: Arranged<'_>) -> Result<NamedTensor>
    where
        T: Element,
        F: Fold<T, Acc: Element>,
    {
        let Arranged { x, sizes, shape } = arranged;
        let mut out = NamedTensor::uninit(op, shape, F::Acc::DTYPE)?;
        // SAFETY: fresh, of that dtype; a fold writes each result before it reads one.
        fold_middle(fold, x.as_slice::<T>()?, sizes, unsafe { out.unwritten_mut::<F::Acc>() });
        Ok(out)
    }

    /// Dims of a dense tensor that do not stand side by side: the last that do, and the others.
    fn apart<'a>(x: &NamedTensor, dims: &'a mut Axes) -> Option<(&'a [usize], &'a [usize])> {
        dims.sort_unstable();
        let run = dims.windows(2).rev().take_while(|pair| pair[0] + 1 == pair[1]).count() + 1;
        let (others, last) = dims.split_at(dims.len().saturating_sub(run));
        (x.is_contiguous() && !others.is_empty()).then_some((last, others))
    }

    /// Rows `name = Fold of dtypes, then rest` become functions that fold dims of a tensor, half types in `f32`. Dims that do not stand side by side are folded one group after the
    /// other, the later groups by `rest`.
    macro_rules! folds {
        ($($name:ident = $fold:ident of $dtypes:ident, then $rest:ident;)*) => {$(
            #[track_caller]
            fn $name(op: &'static str, x: &NamedTensor, mut dims: Axes, keepdim: bool) -> Result<NamedTensor> {
                let x = x.widened()?;
                if let Some((last, others)) = apart(&x, &mut dims) {
                    let part = $name(op, &x, last.into(), true)?;
                    let whole = $rest(op, &part, others.into(), true)?;
                    return if keepdim { Ok(whole) } else { super::super::shape::kernels::squeeze(&whole, dims) };
                }
                let arranged = arrange(&x, &dims, keepdim)?;
                folds!(@ $dtypes, x.dtype(), op, $fold, arranged)
            }
        )*};
        (@ any, $dtype:expr, $op:expr, $fold:ident, $arranged:expr) => {
            dispatch!($dtype, compute T => fold::<T, _>($op, $fold, $arranged))
        };
        (@ floats, $dtype:expr, $op:expr, $fold:ident, $arranged:expr) => {
            dispatch!($dtype, float T => fold::<T, _>($op, $fold, $arranged), else unreachable!("checked to be a float"))
        };
    }
    folds! {
        total = Sum of any, then total;
        product = Prod of any, then product;
        largest = Max of any, then largest;
        smallest = Min of any, then smallest;
        squares = SumSquares of floats, then total;
    }

    /// The dtype of sums: `i64` for integers and bool, else that of the input.
    fn sum_dtype(x: &NamedTensor) -> DType {
        if x.dtype().is_floating_point() { x.dtype() } else { DType::I64 }
    }

    /// [`NamedTensor::sum`] over dims by position.
    #[track_caller]
    pub fn sum(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        total("sum", x, dims, keepdim)?.into_dtype(sum_dtype(x))
    }

    /// [`NamedTensor::prod`] over dims by position.
    #[track_caller]
    pub fn prod(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        product("prod", x, dims, keepdim)?.into_dtype(sum_dtype(x))
    }

    /// [`NamedTensor::amax`] over dims by position.
    #[track_caller]
    pub fn amax(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        check_not_empty("amax", x, &dims)?;
        largest("amax", x, dims, keepdim)?.into_dtype(x.dtype())
    }

    /// [`NamedTensor::amin`] over dims by position.
    #[track_caller]
    pub fn amin(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        check_not_empty("amin", x, &dims)?;
        smallest("amin", x, dims, keepdim)?.into_dtype(x.dtype())
    }

    /// [`NamedTensor::all`] over dims by position.
    #[track_caller]
    pub fn all(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        smallest("all", &x.ne(0)?, dims, keepdim)?.into_dtype(truth_dtype(x))
    }

    /// [`NamedTensor::any`] over dims by position.
    #[track_caller]
    pub fn any(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        largest("any", &x.ne(0)?, dims, keepdim)?.into_dtype(truth_dtype(x))
    }

    /// The dtype of truth about a tensor.
    fn truth_dtype(x: &NamedTensor) -> DType {
        if x.dtype() == DType::U8 { DType::U8 } else { DType::Bool }
    }

    #[track_caller]
    fn check_not_empty(op: &'static str, x: &NamedTensor, dims: &[usize]) -> Result<()> {
        if x.numel() == 0 && dims.iter().any(|dim| x.sizes()[*dim] == 0) {
            // As in PyTorch: of a whole that is empty it is the choice of dims that is wrong, of some dims their sizes.
            let (kind, message) = match dims.len() == x.ndim() {
                true => (ErrorKind::Value, "Expected reduction dim to be specified for input.numel() == 0."),
                false => (ErrorKind::Shape, "Expected reduction dims to have non-zero size"),
            };
            return Err(Error::new(kind, op, message).with_operands([x.extents()]));
        }
        Ok(())
    }

    /// The number of elements that are reduced to one.
    fn count(x: &NamedTensor, dims: &[usize]) -> f64 {
        dims.iter().map(|dim| x.sizes()[*dim] as f64).product()
    }

    /// [`NamedTensor::mean`] over dims by position.
    #[track_caller]
    pub fn mean(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        x.check_float("mean")?;
        let count = count(x, &dims);
        let mut mean = total("mean", x, dims, keepdim)?;
        mean.div_(count)?;
        mean.into_dtype(x.dtype())
    }

    /// [`NamedTensor::logsumexp`] over dims by position.
    #[track_caller]
    pub fn logsumexp(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        let x = if x.dtype().is_floating_point() { Cow::Borrowed(x) } else { x.cast(default_dtype())? };
        let wide = x.widened()?;
        let Arranged { x: dense, sizes, shape } = arrange(&wide, &dims, keepdim)?;
        let mut out = NamedTensor::uninit("logsumexp", shape, dense.dtype())?;
        dispatch!(dense.dtype(), float T => {
            // SAFETY: fresh, of dtype T; each result is written before it is read.
            rows::logsumexp(dense.as_slice::<T>()?, sizes, unsafe { out.unwritten_mut::<T>() });
        }, else unreachable!("cast to a float before"));
        out.into_dtype(x.dtype())
    }

    /// [`NamedTensor::var`] over dims by position.
    #[track_caller]
    pub fn var(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        variance("var", x, dims, keepdim, 1.0)
    }

    /// The variance with `count - correction` in the denominator, but not less than 0: over too few elements it is NaN or infinite.
    #[track_caller]
    pub(crate) fn variance(
        op: &'static str,
        x: &NamedTensor,
        dims: Axes,
        keepdim: bool,
        correction: f64,
    ) -> Result<NamedTensor> {
        x.check_float(op)?;
        let wide = x.widened()?;
        let left = (count(x, &dims) - correction).max(0.0);
        let distances = wide.sub(&mean(&wide, dims.clone(), true)?)?;
        let mut var = squares(op, &distances, dims, keepdim)?;
        var.div_(left)?;
        var.into_dtype(x.dtype())
    }

    /// [`NamedTensor::std`] over dims by position.
    #[track_caller]
    pub fn std(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        deviation("std", x, dims, keepdim, 1.0)
    }

    #[track_caller]
    fn deviation(
        op: &'static str,
        x: &NamedTensor,
        dims: Axes,
        keepdim: bool,
        correction: f64,
    ) -> Result<NamedTensor> {
        let mut std = variance(op, &*x.widened()?, dims, keepdim, correction)?;
        std.sqrt_()?;
        std.into_dtype(x.dtype())
    }

    /// [`NamedTensor::var_corrected`] over dims by position.
    #[track_caller]
    pub fn var_corrected(x: &NamedTensor, dims: Axes, keepdim: bool, correction: f64) -> Result<NamedTensor> {
        variance("var", x, dims, keepdim, correction)
    }

    /// [`NamedTensor::std_corrected`] over dims by position.
    #[track_caller]
    pub fn std_corrected(x: &NamedTensor, dims: Axes, keepdim: bool, correction: f64) -> Result<NamedTensor> {
        deviation("std", x, dims, keepdim, correction)
    }

    /// [`NamedTensor::norm`] over dims by position.
    #[track_caller]
    pub fn norm(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        x.check_float("norm")?;
        let mut norm = squares("norm", x, dims, keepdim)?;
        norm.sqrt_()?;
        norm.into_dtype(x.dtype())
    }

    /// [`NamedTensor::vector_norm`] over dims by position.
    #[track_caller]
    pub fn vector_norm(x: &NamedTensor, dims: Axes, keepdim: bool, ord: f64) -> Result<NamedTensor> {
        const OP: &str = "vector_norm";
        if ord == 2.0 {
            return norm(x, dims, keepdim);
        }
        x.check_float(OP)?;
        if ord < 0.0 || ord == f64::INFINITY {
            check_not_empty(OP, x, &dims)?;
        }
        let wide = x.widened()?;
        let norm = if ord == 0.0 {
            total(OP, &wide.ne(0)?, dims, keepdim)?
        } else if ord == f64::INFINITY {
            largest(OP, &wide.abs()?, dims, keepdim)?
        } else if ord == f64::NEG_INFINITY {
            smallest(OP, &wide.abs()?, dims, keepdim)?
        } else if ord == 1.0 {
            total(OP, &wide.abs()?, dims, keepdim)?
        } else {
            total(OP, &wide.abs()?.pow(ord)?, dims, keepdim)?.pow(ord.recip())?
        };
        norm.into_dtype(x.dtype())
    }

    /// `x` with 0 in the place of NaN.
    #[track_caller]
    fn without_nan(x: &NamedTensor) -> Result<Cow<'_, NamedTensor>> {
        match x.dtype().is_floating_point() {
            true => Ok(Cow::Owned(x.masked_fill(&x.isnan()?, 0.0)?)),
            false => Ok(Cow::Borrowed(x)),
        }
    }

    /// [`NamedTensor::nansum`] over dims by position.
    #[track_caller]
    pub fn nansum(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        total("nansum", &*without_nan(x)?, dims, keepdim)?.into_dtype(sum_dtype(x))
    }

    /// [`NamedTensor::nanmean`] over dims by position.
    #[track_caller]
    pub fn nanmean(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        x.check_float("nanmean")?;
        let count = total("nanmean", &x.isnan()?.logical_not()?, dims.clone(), keepdim)?;
        let mut mean = total("nanmean", &*without_nan(x)?, dims, keepdim)?;
        mean.div_(&count)?;
        mean.into_dtype(x.dtype())
    }

    /// [`NamedTensor::count_nonzero`] over dims by position.
    #[track_caller]
    pub fn count_nonzero(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        total("count_nonzero", &x.ne(0)?, dims, keepdim)
    }
}

/// The smallest and the largest element.
#[derive(Clone, Debug)]
pub struct MinMax<T = NamedTensor> {
    /// The smallest.
    pub min: T,
    /// The largest.
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

/// The reductions that are made of two others, as methods of a tensor type.
#[macro_export]
#[doc(hidden)]
macro_rules! paired_reductions {
    ($Tensor:ty) => {
        impl $Tensor {
            /// The smallest and the largest element over `dims`: [`amin`](Self::amin) and [`amax`](Self::amax).
            ///
            /// # Errors
            /// Those of `amin`.
            #[track_caller]
            pub fn aminmax(&self, dims: impl Into<$crate::Dims>) -> $crate::Result<$crate::MinMax<$Tensor>> {
                let dims = dims.into();
                Ok($crate::MinMax { min: self.amin(dims.clone())?, max: self.amax(dims)? })
            }

            /// [`aminmax`](Self::aminmax) with the reduced dims kept at size one.
            ///
            /// # Errors
            /// Those of `amin`.
            #[track_caller]
            pub fn aminmax_keepdim(
                &self,
                dims: impl Into<$crate::Dims>,
            ) -> $crate::Result<$crate::MinMax<$Tensor>> {
                let dims = dims.into();
                Ok($crate::MinMax { min: self.amin_keepdim(dims.clone())?, max: self.amax_keepdim(dims)? })
            }

            /// The standard deviation over `dims`, as [`std_corrected`](Self::std_corrected) has it, and the mean.
            ///
            /// # Errors
            /// Those of `std`.
            #[track_caller]
            pub fn std_mean(
                &self,
                dims: impl Into<$crate::Dims>,
                correction: f64,
            ) -> $crate::Result<$crate::StdMean<$Tensor>> {
                let dims = dims.into();
                Ok($crate::StdMean {
                    std: self.std_corrected(dims.clone(), correction)?,
                    mean: self.mean(dims)?,
                })
            }

            /// [`std_mean`](Self::std_mean) with the reduced dims kept at size one.
            ///
            /// # Errors
            /// Those of `std`.
            #[track_caller]
            pub fn std_mean_keepdim(
                &self,
                dims: impl Into<$crate::Dims>,
                correction: f64,
            ) -> $crate::Result<$crate::StdMean<$Tensor>> {
                let dims = dims.into();
                let std = self.std_corrected_keepdim(dims.clone(), correction)?;
                Ok($crate::StdMean { std, mean: self.mean_keepdim(dims)? })
            }

            /// The variance over `dims`, as [`var_corrected`](Self::var_corrected) has it, and the mean.
            ///
            /// # Errors
            /// Those of `var`.
            #[track_caller]
            pub fn var_mean(
                &self,
                dims: impl Into<$crate::Dims>,
                correction: f64,
            ) -> $crate::Result<$crate::VarMean<$Tensor>> {
                let dims = dims.into();
                Ok($crate::VarMean {
                    var: self.var_corrected(dims.clone(), correction)?,
                    mean: self.mean(dims)?,
                })
            }

            /// [`var_mean`](Self::var_mean) with the reduced dims kept at size one.
            ///
            /// # Errors
            /// Those of `var`.
            #[track_caller]
            pub fn var_mean_keepdim(
                &self,
                dims: impl Into<$crate::Dims>,
                correction: f64,
            ) -> $crate::Result<$crate::VarMean<$Tensor>> {
                let dims = dims.into();
                let var = self.var_corrected_keepdim(dims.clone(), correction)?;
                Ok($crate::VarMean { var, mean: self.mean_keepdim(dims)? })
            }
        }
    };
}
paired_reductions!(NamedTensor);

impl NamedTensor {
    /// Is one element zero?
    #[track_caller]
    pub(crate) fn has_zero(&self) -> Result<bool> {
        let any = self.eq(0)?.any(..)?;
        Ok(any.item()? == Scalar::Bool(true))
    }
}
