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
    use crate::cpu::scan::{Scan, each_lane, running, running_logsumexp, running_wide};
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

    /// Loops over one lane, one for each dtype that kernels compute in.
    struct Scans {
        f32: Scan<f32>,
        f64: Scan<f64>,
        i64: Scan<i64>,
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
        let sums = Scans {
            f32: |x, y| running_wide(x, y, 0.0, |a, b| a + b),
            f64: |x, y| running(x, y, 0.0, |a, b| a + b),
            i64: |x, y| running(x, y, 0, i64::wrapping_add),
        };
        scan("cumsum", x, dim, sums)
    }

    #[track_caller]
    pub(crate) fn cumprod(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        let products = Scans {
            f32: |x, y| running_wide(x, y, 1.0, |a, b| a * b),
            f64: |x, y| running(x, y, 1.0, |a, b| a * b),
            i64: |x, y| running(x, y, 1, i64::wrapping_mul),
        };
        scan("cumprod", x, dim, products)
    }

    #[track_caller]
    pub(crate) fn logcumsumexp(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        const OP: &str = "logcumsumexp";
        x.check_float(OP)?;
        scan(
            OP,
            x,
            dim,
            Scans {
                f32: running_logsumexp,
                f64: running_logsumexp,
                i64: |_, _| unreachable!("checked to be a float"),
            },
        )
    }
}
