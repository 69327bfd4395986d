//! Ops along one dim that keep it.

use namegrad_macros::ops;

ops! { along;
    //! # Softmax and running sums along a dim
    /// `e^x / Σ e^x` along `dim`: each slice sums to one. The maximum is subtracted first, so that no finite
    /// `x` overflows.
    softmax (x; dim: Dim, dtype: Cast) on floats;
    /// `x - ln Σ e^x` along `dim`: the logarithm of [`softmax`](Self::softmax), accurate even where that is
    /// close to 0.
    log_softmax (x; dim: Dim, dtype: Cast) on floats;
    /// The cumulative sum along `dim`; integers and `bool` give `i64`. If `dtype` is given, the elements are
    /// first cast to it, and the result has that dtype.
    cumsum cumsum_ (x; dim: Dim, dtype: Cast);
    /// The cumulative product along `dim`; integers and `bool` give `i64`. `dtype` works as in
    /// [`cumsum`](Self::cumsum).
    cumprod cumprod_ (x; dim: Dim, dtype: Cast);
    /// The cumulative [`logsumexp`](Self::logsumexp) along `dim`: `ln Σ e^x` of the elements so far, without
    /// overflow. Floats only.
    logcumsumexp (x; dim: Dim) on floats;
}

pub(crate) mod kernels {
    use crate::cpu::room::Room;
    use crate::cpu::scan::{self, LANES, each_lane, running, running_logsumexp};
    use crate::cpu::softmax;
    use crate::dtype::DType;
    use crate::error::Result;
    use crate::layout::around;
    use crate::tensor::{NamedTensor, Unwritten};

    /// `x` and its sizes as `[outer, n, inner]`, with `dim` in the middle; a 0-d tensor has one element.
    #[track_caller]
    pub(crate) fn split(x: &NamedTensor, dim: usize) -> Result<(NamedTensor, [usize; 3])> {
        Ok((x.contiguous()?, around(x.sizes(), dim)))
    }

    /// Loops over `[outer, n, inner]`, one for each dtype that kernels compute in.
    struct Rows {
        f32: Along<f32>,
        f64: Along<f64>,
    }

    type Along<T> = for<'a> fn(&[T], [usize; 3], &'a mut Room<T>) -> &'a mut [T];

    #[track_caller]
    fn normalize(op: &'static str, x: &NamedTensor, dim: usize, rows: Rows) -> Result<NamedTensor> {
        x.check_float(op)?;
        let (wide, sizes) = split(&*x.widened()?, dim)?;
        let out = Unwritten::like(op, &wide, wide.dtype())?;
        let out = match wide.dtype() {
            DType::F64 => out.write_from(&wide, |x, y| (rows.f64)(x, sizes, y))?,
            _ => out.write_from(&wide, |x, y| (rows.f32)(x, sizes, y))?,
        };
        out.into_dtype(x.dtype())
    }

    #[track_caller]
    pub(crate) fn softmax(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        normalize("softmax", x, dim, Rows { f32: softmax::softmax, f64: softmax::softmax })
    }

    #[track_caller]
    pub(crate) fn log_softmax(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        normalize("log_softmax", x, dim, Rows { f32: softmax::log_softmax, f64: softmax::log_softmax })
    }

    /// The scans of an op, for each dtype that kernels compute in.
    struct Scans {
        f32: scan::Scans<f32>,
        f64: scan::Scans<f64>,
        i64: scan::Scans<i64>,
    }

    #[track_caller]
    fn scan(op: &'static str, x: &NamedTensor, dim: usize, scans: Scans) -> Result<NamedTensor> {
        let dtype = if x.dtype().is_floating_point() { x.dtype() } else { DType::I64 };
        let (wide, sizes) = split(&*x.cast(dtype.compute())?, dim)?;
        let out = Unwritten::like(op, &wide, wide.dtype())?;
        let out = match wide.dtype() {
            DType::F64 => out.write_from(&wide, |x, y| each_lane(x, y, sizes, scans.f64))?,
            DType::F32 => out.write_from(&wide, |x, y| each_lane(x, y, sizes, scans.f32))?,
            _ => out.write_from(&wide, |x, y| each_lane(x, y, sizes, scans.i64))?,
        };
        out.into_dtype(dtype)
    }

    #[track_caller]
    pub(crate) fn cumsum(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        fn f32<'a, const L: usize>(x: &[f32], y: &'a mut Room<f32>) -> &'a mut [f32] {
            running::<_, _, L>(x, y, 0.0, |sum, x| sum + f64::from(x), |sum| sum as f32)
        }
        fn f64<'a, const L: usize>(x: &[f64], y: &'a mut Room<f64>) -> &'a mut [f64] {
            running::<_, _, L>(x, y, 0.0, |sum, x| sum + x, |sum| sum)
        }
        fn i64<'a, const L: usize>(x: &[i64], y: &'a mut Room<i64>) -> &'a mut [i64] {
            running::<_, _, L>(x, y, 0, i64::wrapping_add, |sum| sum)
        }
        let sums = Scans {
            f32: scan::Scans { lane: f32::<1>, beside: Some(f32::<LANES>) },
            f64: scan::Scans { lane: f64::<1>, beside: Some(f64::<LANES>) },
            i64: scan::Scans { lane: i64::<1>, beside: Some(i64::<LANES>) },
        };
        scan("cumsum", x, dim, sums)
    }

    #[track_caller]
    pub(crate) fn cumprod(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        let products = Scans {
            f32: one_by_one(|x, y| running::<_, _, 1>(x, y, 1.0, |a, x| a * f64::from(x), |a| a as f32)),
            f64: one_by_one(|x, y| running::<_, _, 1>(x, y, 1.0, |a, x| a * x, |a| a)),
            i64: one_by_one(|x, y| running::<_, _, 1>(x, y, 1, i64::wrapping_mul, |a| a)),
        };
        scan("cumprod", x, dim, products)
    }

    /// Lanes that are scanned one after another: for rare ops.
    fn one_by_one<T>(lane: scan::Scan<T>) -> scan::Scans<T> {
        scan::Scans { lane, beside: None }
    }

    #[track_caller]
    pub(crate) fn logcumsumexp(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        const OP: &str = "logcumsumexp";
        x.check_float(OP)?;
        let scans = Scans {
            f32: one_by_one(running_logsumexp),
            f64: one_by_one(running_logsumexp),
            i64: one_by_one(|_, _| unreachable!("checked to be a float")),
        };
        scan(OP, x, dim, scans)
    }
}
