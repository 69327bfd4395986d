//! Ops along one dim that keep it, or look for an element in it.

use crate::dim::{Dim, DimOrAll};

/// The rows of the ops along one dim, handed to `$with`.
#[macro_export]
#[doc(hidden)]
macro_rules! along_ops {
    ($with:ident) => {
        $with! {
            /// `e^x / Σ e^x` along `dim`: each slice sums to one. The maximum is taken out first, so that no finite `x` overflows.
            softmax ["keeps input names"] (x; dim: Dim)
            /// `x - ln Σ e^x` along `dim`: the logarithm of [`softmax`](Self::softmax), exact where that is close to 0.
            log_softmax ["keeps input names"] (x; dim: Dim)
            /// The running sum along `dim`; of integers and bool in `i64`.
            cumsum cumsum_ ["keeps input names"] (x; dim: Dim)
            /// The running product along `dim`; of integers and bool in `i64`.
            cumprod cumprod_ ["keeps input names"] (x; dim: Dim)
            /// `ln Σ e^x` of the elements so far along `dim`, without overflow; of floats only.
            logcumsumexp ["keeps input names"] (x; dim: Dim)
            /// The index of the largest element along `dim`, or of all, the first of equal ones; NaN counts as the largest.
            argmax ["removes dimensions"] (x; dim: DimOrAll)
            /// [`argmax`](Self::argmax) with the dim kept at size one.
            argmax_keepdim ["removes dimensions"] (x; dim: DimOrAll)
            /// The index of the smallest element along `dim`, or of all, the first of equal ones; NaN counts as the smallest.
            argmin ["removes dimensions"] (x; dim: DimOrAll)
            /// [`argmin`](Self::argmin) with the dim kept at size one.
            argmin_keepdim ["removes dimensions"] (x; dim: DimOrAll)
            /// The indices that sort `dim`, in ascending order unless `descending`; equal elements keep their order, NaN counts as the largest.
            argsort ["keeps input names"] (x; dim: Dim, descending: bool)
        }
    };
}
along_ops!(define_ops);

/// The ops along a dim that are made of others, as methods of a tensor type whose value is `$value`.
#[macro_export]
#[doc(hidden)]
macro_rules! composed_along {
    ($Tensor:ty, |$x:ident| $value:expr) => {
        impl $Tensor {
            /// The elements in ascending order along the first dim: the values of [`sort`](Self::sort).
            ///
            /// # Errors
            /// Those of `sort`.
            #[track_caller]
            pub fn msort(&self) -> $crate::Result<$Tensor> {
                Ok(self.sort(0, false)?.values)
            }

            /// The differences `x[i+1] - x[i]` along `dim`, taken `n` times, each of which makes it shorter by one; of bool whether neighbours differ.
            ///
            /// # Errors
            /// `ErrorKind::NameNotFound`, `ErrorKind::DimRange`,
            /// `ErrorKind::Shape` on a 0-d tensor, `ErrorKind::Value` for a negative `n`.
            #[track_caller]
            pub fn diff(
                &self,
                n: impl Into<$crate::Count>,
                dim: impl Into<$crate::Dim>,
            ) -> $crate::Result<$Tensor> {
                use $crate::{Argument, DType, Error, ErrorKind};
                let ($x, dim) = (self, dim.into());
                let n = n.into().resolve("diff", $value)?;
                let dim = dim.resolve("diff", $value)?;
                if self.ndim() == 0 {
                    let message = "diff expects input to be at least one-dimensional";
                    return Err(Error::new(ErrorKind::Shape, "diff", message).with_operands([self.extents()]));
                }
                let mut differences = self.clone();
                for _ in 0..n.min(self.sizes()[dim]) {
                    let left = differences.sizes()[dim] - 1;
                    let (next, this) = (differences.narrow(dim, 1, left)?, differences.narrow(dim, 0, left)?);
                    differences = match self.dtype() {
                        DType::Bool => next.logical_xor(&this)?,
                        _ => next.sub(&this)?,
                    };
                }
                Ok(differences)
            }

            /// The `q`-th quantile along `dim`, or of all elements with `..`, of floats only: the number below which a share `q` of them lies, interpolated between the
            /// two neighbours of place `q (n - 1)` in the sorted dim. NaN if there is one.
            ///
            /// # Errors
            /// `ErrorKind::NameNotFound`, `ErrorKind::DimRange`,
            /// `ErrorKind::DType`, `ErrorKind::Value` for a `q` outside of `0..=1`, or if there are no elements.
            #[track_caller]
            pub fn quantile(&self, q: f64, dim: impl Into<$crate::DimOrAll>) -> $crate::Result<$Tensor> {
                let ($x, dim) = (self, dim.into());
                let dim = $crate::Argument::resolve(dim, "quantile", $value)?;
                let quantile = self.quantile_keepdim(q, dim)?;
                match dim {
                    Some(dim) => quantile.squeeze(dim),
                    None => quantile.squeeze(..),
                }
            }

            /// [`quantile`](Self::quantile) with the dim kept at size one.
            ///
            /// # Errors
            /// Those of the other form.
            #[track_caller]
            pub fn quantile_keepdim(
                &self,
                q: f64,
                dim: impl Into<$crate::DimOrAll>,
            ) -> $crate::Result<$Tensor> {
                use $crate::{Argument, Dims, Error, ErrorKind};
                let ($x, dim) = (self, dim.into());
                let dim = dim.resolve("quantile", $value)?;
                let floats = self.dtype().is_floating_point();
                if !floats || !(0.0..=1.0).contains(&q) || self.numel() == 0 {
                    let kind = if floats { ErrorKind::Value } else { ErrorKind::DType };
                    let message = format!(
                        "takes a q in the range [0, 1] and at least one float; q is {q}, the input of {}",
                        self.dtype()
                    );
                    return Err(Error::new(kind, "quantile", message).with_operands([self.extents()]));
                }
                let n = dim.map_or(self.numel(), |dim| self.sizes().get(dim).copied().unwrap_or(1));
                let place = q * (n - 1) as f64;
                let (below, above) = (place.floor(), place.ceil());
                let mut quantile = self.kthvalue_keepdim(below as usize + 1, dim)?.values;
                if above > below {
                    let above = self.kthvalue_keepdim(above as usize + 1, dim)?.values;
                    quantile = quantile.lerp(&above, place - below)?;
                }
                let dims = dim.map_or(Dims::All, Dims::from);
                quantile.masked_fill(&self.isnan()?.any_keepdim(dims)?, f64::NAN)
            }
        }
    };
}
composed_along!(crate::NamedTensor, |x| x);

pub(crate) mod kernels {
    use crate::cpu::math::Real;
    use crate::cpu::rows;
    use crate::cpu::threads::parallel;
    use crate::dtype::{DType, Element};
    use crate::error::{Error, ErrorKind, Result};
    use crate::ops::pick::kernels as pick;
    use crate::shape::around;
    use crate::tensor::NamedTensor;

    /// The one dim of `x` in the middle of `[outer, n, inner]`; a 0-d tensor is one element.
    #[track_caller]
    pub(crate) fn split(x: &NamedTensor, dim: usize) -> Result<(NamedTensor, [usize; 3])> {
        Ok((x.contiguous()?, around(x.sizes(), dim)))
    }

    /// Runs `f(lane of x, lane of out)` for each lane along the middle of `[outer, n, inner]`.
    fn each_lane<T: Element>(x: &[T], out: &mut [T], [outer, n, inner]: [usize; 3], f: fn(&[T], &mut [T])) {
        let to = out.as_mut_ptr() as usize;
        parallel(outer * inner, (1 << 14) / n.max(1) + 1, |lanes| {
            let (mut from, mut made) = (vec![T::default(); n], vec![T::default(); n]);
            for lane in lanes {
                let start = lane / inner * n * inner + lane % inner;
                if inner == 1 {
                    // SAFETY: lanes do not overlap, and each is run by one thread.
                    let made = unsafe { std::slice::from_raw_parts_mut((to as *mut T).add(start), n) };
                    f(&x[start..start + n], made);
                    continue;
                }
                (0..n).for_each(|j| from[j] = x[start + j * inner]);
                f(&from, &mut made);
                for (j, value) in made.iter().enumerate() {
                    // SAFETY: as above.
                    unsafe { (to as *mut T).add(start + j * inner).write(*value) };
                }
            }
        });
    }

    /// A loop over `[outer, n, inner]` for each dtype that is computed in.
    struct Rows {
        f32: fn(&[f32], [usize; 3], &mut [f32]),
        f64: fn(&[f64], [usize; 3], &mut [f64]),
    }

    #[track_caller]
    fn normalize(op: &'static str, x: &NamedTensor, dim: usize, rows: Rows) -> Result<NamedTensor> {
        x.check_float(op)?;
        let (wide, sizes) = split(&*x.widened()?, dim)?;
        let mut out = wide.unwritten_like(op, wide.dtype())?;
        match wide.dtype() {
            // SAFETY: fresh, of that dtype; the loop writes each element before it reads it.
            DType::F64 => (rows.f64)(wide.as_slice()?, sizes, unsafe { out.unwritten_mut() }),
            // SAFETY: as above.
            _ => (rows.f32)(wide.as_slice()?, sizes, unsafe { out.unwritten_mut() }),
        }
        out.into_dtype(x.dtype())
    }

    #[track_caller]
    pub(crate) fn softmax(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        normalize("softmax", x, dim, Rows { f32: rows::softmax, f64: rows::softmax })
    }

    #[track_caller]
    pub(crate) fn log_softmax(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        normalize("log_softmax", x, dim, Rows { f32: rows::log_softmax, f64: rows::log_softmax })
    }

    /// A loop over one lane for each dtype that is computed in.
    struct Scan {
        f32: fn(&[f32], &mut [f32]),
        f64: fn(&[f64], &mut [f64]),
        i64: fn(&[i64], &mut [i64]),
    }

    #[track_caller]
    fn scan(op: &'static str, x: &NamedTensor, dim: usize, scan: Scan) -> Result<NamedTensor> {
        let dtype = if x.dtype().is_floating_point() { x.dtype() } else { DType::I64 };
        let (wide, sizes) = split(&*x.cast(dtype.compute())?, dim)?;
        let mut out = NamedTensor::filled(op, wide.shape(), wide.dtype(), 0.into())?;
        match wide.dtype() {
            DType::F64 => each_lane(wide.as_slice()?, out.as_mut_slice()?, sizes, scan.f64),
            DType::F32 => each_lane(wide.as_slice()?, out.as_mut_slice()?, sizes, scan.f32),
            _ => each_lane(wide.as_slice()?, out.as_mut_slice()?, sizes, scan.i64),
        }
        out.into_dtype(dtype)
    }

    /// `y = x[0], x[0] ∘ x[1]...`
    fn running<T: Copy>(x: &[T], y: &mut [T], start: T, join: fn(T, T) -> T) {
        let mut total = start;
        for (y, x) in y.iter_mut().zip(x) {
            total = join(total, *x);
            *y = total;
        }
    }

    #[track_caller]
    pub(crate) fn cumsum(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        let sums = Scan {
            f32: |x, y| running(x, y, 0.0, |a, b| a + b),
            f64: |x, y| running(x, y, 0.0, |a, b| a + b),
            i64: |x, y| running(x, y, 0, i64::wrapping_add),
        };
        scan("cumsum", x, dim, sums)
    }

    #[track_caller]
    pub(crate) fn cumprod(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        let products = Scan {
            f32: |x, y| running(x, y, 1.0, |a, b| a * b),
            f64: |x, y| running(x, y, 1.0, |a, b| a * b),
            i64: |x, y| running(x, y, 1, i64::wrapping_mul),
        };
        scan("cumprod", x, dim, products)
    }

    #[track_caller]
    pub(crate) fn logcumsumexp(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        const OP: &str = "logcumsumexp";
        x.check_float(OP)?;
        scan(OP, x, dim, Scan { f32: running_logsumexp, f64: running_logsumexp, i64: |_, _| {} })
    }

    /// `y = max x + ln Σ exp(x - max x)` of the elements so far; where the maximum grows, the sum is made smaller.
    fn running_logsumexp<T: Real>(x: &[T], y: &mut [T]) {
        let (mut max, mut sum) = (T::NEG_INFINITY, T::ZERO);
        for (y, x) in y.iter_mut().zip(x) {
            if *x > max {
                sum = sum * (max - *x).exp() + T::ONE;
                max = *x;
            } else if *x == max {
                sum += T::ONE; // the difference of two infinities is NaN
            } else {
                sum += (*x - max).exp();
            }
            *y = max + sum.ln();
        }
    }

    #[track_caller]
    fn arg(
        op: &'static str,
        x: &NamedTensor,
        dim: Option<usize>,
        largest: bool,
        keepdim: bool,
    ) -> Result<NamedTensor> {
        if x.dtype() == DType::Bool {
            let message = format!("{op}(): does not support bool input");
            return Err(Error::new(ErrorKind::DType, op, message).with_operands([x.extents()]).with_repair(
                match dim {
                    Some(dim) => format!("x.to({:?})?.{op}({dim})", DType::U8),
                    None => format!("x.to({:?})?.{op}(..)", DType::U8),
                },
            ));
        }
        pick::placed(x, pick::extreme(op, x, dim, largest)?, dim, keepdim)
    }

    #[track_caller]
    pub(crate) fn argmax(x: &NamedTensor, dim: Option<usize>) -> Result<NamedTensor> {
        arg("argmax", x, dim, true, false)
    }

    #[track_caller]
    pub(crate) fn argmax_keepdim(x: &NamedTensor, dim: Option<usize>) -> Result<NamedTensor> {
        arg("argmax", x, dim, true, true)
    }

    #[track_caller]
    pub(crate) fn argmin(x: &NamedTensor, dim: Option<usize>) -> Result<NamedTensor> {
        arg("argmin", x, dim, false, false)
    }

    #[track_caller]
    pub(crate) fn argmin_keepdim(x: &NamedTensor, dim: Option<usize>) -> Result<NamedTensor> {
        arg("argmin", x, dim, false, true)
    }

    #[track_caller]
    pub(crate) fn argsort(x: &NamedTensor, dim: usize, descending: bool) -> Result<NamedTensor> {
        pick::sorted("argsort", x, dim, descending)
    }
}
