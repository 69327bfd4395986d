//! Reductions over dims, and what normalizes along a dim. A reduced dim is gone with its name, or has size one in the `_keepdim` form.
//!
//! Every reduction is brought to the form `[outer, n, inner]`, of which the middle is reduced, and runs in [`crate::cpu::rows`].

use crate::dim::{Argument, Axes, Dims};
use crate::dtype::{Category, DType, Scalar, default_dtype, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::names::rules;
use crate::shape::{Shape, Sizes};
use crate::tensor::NamedTensor;

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
            /// Are all elements over `dims` not zero? Over nothing it is true.
            all all_keepdim (x)
            /// Is one element over `dims` not zero? Over nothing it is false.
            any any_keepdim (x)
            /// `ln Σ e^x` over `dims`, without overflow.
            logsumexp logsumexp_keepdim (x)
            /// The variance over `dims`: squared distances from the mean, summed and divided by one less than their number.
            var var_keepdim (x)
            /// The standard deviation over `dims`: the root of [`var`](Self::var).
            std std_keepdim (x)
            /// The Euclidean norm over `dims`: `√Σ x²`.
            norm norm_keepdim (x)
        }
    };
}

macro_rules! define_reductions {
    ($(
        #[doc = $doc:literal]
        $(#[doc = $more:literal])*
        $name:ident $name_keepdim:ident ($x:ident)
    )*) => {
        /// What is known of the ops of this table.
        pub const ROWS: &[$crate::ops::OpInfo] = &[$(info!($name [] "removes dimensions", $doc $($more)*)),*];
        impl $crate::NamedTensor {$(
            #[doc = $doc]
            ///
            /// # Errors
            #[doc = concat!("As `namegrad::Tensor::", stringify!($name), "`.")]
            #[track_caller]
            pub fn $name(&self, dims: impl Into<Dims>) -> Result<NamedTensor> {
                kernels::$name(self, dims.into().resolve(stringify!($name), self)?, false)
            }
            #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") with the reduced dims kept at size one.")]
            ///
            /// # Errors
            #[doc = concat!("As `namegrad::Tensor::", stringify!($name), "`.")]
            #[track_caller]
            pub fn $name_keepdim(&self, dims: impl Into<Dims>) -> Result<NamedTensor> {
                kernels::$name(self, dims.into().resolve(stringify!($name), self)?, true)
            }
        )*}
    };
}
reduce_ops!(define_reductions);

/// A tensor as `[outer, n, inner]`, dense, of which the middle is to be reduced, and the shape of the result.
pub(crate) struct Arranged {
    pub(crate) x: NamedTensor,
    pub(crate) outer: usize,
    pub(crate) n: usize,
    pub(crate) inner: usize,
    pub(crate) shape: Shape,
}

/// Arranges `x` for a reduction over `dims`. Dims that stand side by side in memory are taken as they are; others are brought to the end by a copy.
#[track_caller]
pub(crate) fn arrange(x: &NamedTensor, dims: &[usize], keepdim: bool) -> Result<Arranged> {
    let reduced = |dim: &usize| dims.contains(dim);
    let ndim = x.ndim();
    let sizes: Sizes = match keepdim {
        true => (0..ndim).map(|dim| if reduced(&dim) { 1 } else { x.sizes()[dim] }).collect(),
        false => (0..ndim).filter(|dim| !reduced(dim)).map(|dim| x.sizes()[dim]).collect(),
    };
    let names = if keepdim { x.names().clone() } else { rules::remove(x.input(), dims) };
    let shape = Shape { sizes, names };
    let n = dims.iter().map(|dim| x.sizes()[*dim]).product();
    let first = dims.iter().copied().min().unwrap_or(ndim);
    let last = dims.iter().copied().max().unwrap_or(ndim);
    let side_by_side = dims.is_empty() || last - first + 1 == dims.len();
    if x.is_contiguous() && side_by_side {
        let outer = x.sizes()[..first].iter().product();
        let inner = x.sizes()[(last + 1).min(ndim)..].iter().product();
        return Ok(Arranged { x: x.clone(), outer, n, inner, shape });
    }
    let order: Axes = (0..ndim).filter(|dim| !reduced(dim)).chain((0..ndim).filter(reduced)).collect();
    let x = super::shape::kernels::contiguous(&super::shape::kernels::reorder(x, &order))?;
    Ok(Arranged { x, outer: shape.sizes.iter().product(), n, inner: 1, shape })
}

/// What the methods and the derivative rows call.
#[doc(hidden)]
pub mod kernels {
    use super::*;
    use crate::cpu::reduce::{self, Max, Min, Prod, Sum};

    /// The dtype that sums run in and give: `i64` for integers and bool, else that of the input.
    fn sum_dtype(x: &NamedTensor) -> DType {
        if x.dtype().is_floating_point() { x.dtype() } else { DType::I64 }
    }

    /// `$out ← $fold` over `dims` of `x`, run in `dtype` (half types in `f32`), which the result has.
    macro_rules! fold {
        ($op:literal, $fold:ident, $x:expr, $dims:expr, $keepdim:expr, $dtype:expr) => {{
            let dtype = $dtype;
            let Arranged { x, outer, n, inner, shape } = arrange(&$x.to(dtype.compute())?, &$dims, $keepdim)?;
            let mut out = NamedTensor::uninit($op, shape, dtype.compute())?;
            dispatch!(dtype.compute(), number T => {
                // SAFETY: fresh, of dtype T, and written as a whole.
                let slots = unsafe { out.uninit_mut::<T>() };
                reduce::fold::<$fold, T>(x.as_slice::<T>()?, outer, n, inner, slots);
            }, else unreachable!("bool is cast before"));
            out.to(dtype)
        }};
    }

    /// [`NamedTensor::sum`] over dims by position.
    #[track_caller]
    pub fn sum(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        fold!("sum", Sum, x, dims, keepdim, sum_dtype(x))
    }

    /// [`NamedTensor::prod`] over dims by position.
    #[track_caller]
    pub fn prod(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        fold!("prod", Prod, x, dims, keepdim, sum_dtype(x))
    }

    /// [`NamedTensor::amax`] over dims by position.
    #[track_caller]
    pub fn amax(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        check_not_empty("amax", x, &dims)?;
        if x.dtype() == DType::Bool {
            return any(x, dims, keepdim);
        }
        fold!("amax", Max, x, dims, keepdim, x.dtype())
    }

    /// [`NamedTensor::amin`] over dims by position.
    #[track_caller]
    pub fn amin(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        check_not_empty("amin", x, &dims)?;
        if x.dtype() == DType::Bool {
            return all(x, dims, keepdim);
        }
        fold!("amin", Min, x, dims, keepdim, x.dtype())
    }

    /// [`NamedTensor::all`] over dims by position.
    #[track_caller]
    pub fn all(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        let truth = x.ne(0)?.to(DType::U8)?;
        fold!("all", Min, truth, dims, keepdim, DType::U8)?.to(DType::Bool)
    }

    /// [`NamedTensor::any`] over dims by position.
    #[track_caller]
    pub fn any(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        let truth = x.ne(0)?.to(DType::U8)?;
        fold!("any", Max, truth, dims, keepdim, DType::U8)?.to(DType::Bool)
    }

    #[track_caller]
    fn check_not_empty(op: &'static str, x: &NamedTensor, dims: &[usize]) -> Result<()> {
        if x.numel() == 0 && dims.iter().any(|dim| x.sizes()[*dim] == 0) {
            let message = "Expected reduction dims to have non-zero size".to_string();
            return Err(Error::new(ErrorKind::Shape, op, message).with_operands([x.extents()]));
        }
        Ok(())
    }

    #[track_caller]
    fn check_float(op: &'static str, x: &NamedTensor) -> Result<()> {
        if x.dtype().category() == Category::Float {
            return Ok(());
        }
        let message =
            format!("could not infer output dtype: {op} takes floating point dtypes, got {}", x.dtype());
        Err(Error::new(ErrorKind::DType, op, message)
            .with_operands([x.extents()])
            .with_repair(format!("x.to({:?})?", default_dtype())))
    }

    /// The number of elements that are reduced to one.
    fn count(x: &NamedTensor, dims: &[usize]) -> f64 {
        dims.iter().map(|dim| x.sizes()[*dim] as f64).product()
    }

    /// [`NamedTensor::mean`] over dims by position.
    #[track_caller]
    pub fn mean(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        check_float("mean", x)?;
        let count = count(x, &dims);
        let mut mean = fold!("mean", Sum, x, dims, keepdim, x.dtype().compute())?;
        mean.div_(count)?;
        mean.to(x.dtype())
    }

    /// [`NamedTensor::logsumexp`] over dims by position.
    #[track_caller]
    pub fn logsumexp(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        let float = if x.dtype().is_floating_point() { x.clone() } else { x.to(default_dtype())? };
        if float.numel() == 0 {
            return sum(&float, dims, keepdim)?.log();
        }
        let max = amax(&float, dims.clone(), true)?;
        // An infinite maximum is left in: inf - inf would be NaN.
        let max = max.where_self(&max.isfinite()?, &NamedTensor::number(0.0)?)?;
        let total = sum(&float.sub(&max)?.exp()?, dims.clone(), keepdim)?.log()?;
        total.add(&if keepdim { max } else { super::super::shape::kernels::squeeze(&max, dims)? })
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
        check_float(op, x)?;
        let wide = x.to(x.dtype().compute())?;
        let left = (count(x, &dims) - correction).max(0.0);
        let mut distances = wide.sub(&mean(&wide, dims.clone(), true)?)?;
        distances.square_()?;
        let mut var = fold!("var", Sum, distances, dims, keepdim, wide.dtype())?;
        var.div_(left)?;
        var.to(x.dtype())
    }

    /// [`NamedTensor::std`] over dims by position.
    #[track_caller]
    pub fn std(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        let wide = x.to(x.dtype().compute())?;
        let mut std = variance("std", &wide, dims, keepdim, 1.0)?;
        std.sqrt_()?;
        std.to(x.dtype())
    }

    /// [`NamedTensor::norm`] over dims by position.
    #[track_caller]
    pub fn norm(x: &NamedTensor, dims: Axes, keepdim: bool) -> Result<NamedTensor> {
        check_float("norm", x)?;
        let squares = x.to(x.dtype().compute())?.square()?;
        let mut norm = fold!("norm", Sum, squares, dims, keepdim, squares.dtype())?;
        norm.sqrt_()?;
        norm.to(x.dtype())
    }
}

impl NamedTensor {
    /// The variance over `dims` with `count - correction` in the denominator: 1 is [`var`](Self::var), 0 the mean of the squared distances.
    ///
    /// # Errors
    /// As `namegrad::Tensor::var`.
    #[track_caller]
    pub fn var_corrected(
        &self,
        dims: impl Into<Dims>,
        correction: f64,
        keepdim: bool,
    ) -> Result<NamedTensor> {
        kernels::variance("var", self, dims.into().resolve("var", self)?, keepdim, correction)
    }

    /// Is one element zero?
    #[track_caller]
    pub(crate) fn has_zero(&self) -> Result<bool> {
        let any = self.eq(0)?.any(..)?;
        Ok(any.item()? == Scalar::Bool(true))
    }
}
