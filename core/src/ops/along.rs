//! Ops along one dim that keep it, or look for an element in it.

use crate::dim::Dim;

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
            cumsum ["keeps input names"] (x; dim: Dim)
            /// The index of the largest element along `dim`, the first of equal ones; NaN counts as the largest.
            argmax ["removes dimensions"] (x; dim: Dim)
            /// The index of the smallest element along `dim`, the first of equal ones; NaN counts as the smallest.
            argmin ["removes dimensions"] (x; dim: Dim)
            /// The indices that sort `dim`, in ascending order unless `descending`; equal elements keep their order, NaN counts as the largest.
            argsort ["keeps input names"] (x; dim: Dim, descending: bool)
        }
    };
}
along_ops!(define_ops);

pub(crate) mod kernels {
    use crate::cpu::rows;
    use crate::cpu::threads::parallel;
    use crate::dtype::{DType, Element, default_dtype, dispatch};
    use crate::error::{Error, ErrorKind, Result};
    use crate::ops::reduce::{Arranged, arrange};
    use crate::shape::Shape;
    use crate::tensor::NamedTensor;
    use std::cmp::Ordering;

    /// The one dim of `x` in the middle of `[outer, n, inner]`; a 0-d tensor is one element.
    #[track_caller]
    pub(crate) fn split(x: &NamedTensor, dim: usize) -> Result<(NamedTensor, [usize; 3])> {
        let x = x.contiguous()?;
        let n = x.sizes().get(dim).copied().unwrap_or(1);
        let outer = x.sizes()[..dim].iter().product();
        let inner = x.sizes().get(dim + 1..).unwrap_or_default().iter().product();
        Ok((x, [outer, n, inner]))
    }

    /// Runs `f(lane of x, lane of out)` for each lane along the middle of `[outer, n, inner]`.
    fn each_lane<T: Element, U: Element>(
        x: &[T],
        out: &mut [U],
        [outer, n, inner]: [usize; 3],
        f: impl Fn(&[T], &mut [U]) + Sync,
    ) {
        let to = out.as_mut_ptr() as usize;
        parallel(outer * inner, (1 << 14) / n.max(1) + 1, |lanes| {
            let (mut from, mut made) = (vec![T::default(); n], vec![U::default(); n]);
            for lane in lanes {
                let start = lane / inner * n * inner + lane % inner;
                if inner == 1 {
                    // SAFETY: lanes do not overlap, and each is run by one thread.
                    let made = unsafe { std::slice::from_raw_parts_mut((to as *mut U).add(start), n) };
                    f(&x[start..start + n], made);
                    continue;
                }
                (0..n).for_each(|j| from[j] = x[start + j * inner]);
                f(&from, &mut made);
                for (j, value) in made.iter().enumerate() {
                    // SAFETY: as above.
                    unsafe { (to as *mut U).add(start + j * inner).write(*value) };
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
        if !x.dtype().is_floating_point() {
            let message = format!("not implemented for {}; it takes floating point dtypes", x.dtype());
            return Err(Error::new(ErrorKind::DType, op, message)
                .with_operands([x.extents()])
                .with_repair(format!("x.to({:?})?", default_dtype())));
        }
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

    #[track_caller]
    pub(crate) fn cumsum(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        let dtype = if x.dtype().is_floating_point() { x.dtype() } else { DType::I64 };
        let (wide, sizes) = split(&*x.cast(dtype.compute())?, dim)?;
        let mut out = NamedTensor::filled("cumsum", wide.shape(), wide.dtype(), 0.into())?;
        macro_rules! run {
            ($T:ident, $zero:expr, $add:expr) => {
                each_lane(wide.as_slice::<$T>()?, out.as_mut_slice::<$T>()?, sizes, |x, y| {
                    let mut total = $zero;
                    for (y, x) in y.iter_mut().zip(x) {
                        total = $add(total, *x);
                        *y = total;
                    }
                })
            };
        }
        match wide.dtype() {
            DType::F64 => run!(f64, 0.0, |a, b| a + b),
            DType::F32 => run!(f32, 0.0, |a, b| a + b),
            _ => run!(i64, 0, i64::wrapping_add),
        }
        out.into_dtype(dtype)
    }

    /// NaN above everything, as PyTorch orders.
    fn order<T: Element + PartialOrd>(a: &T, b: &T) -> Ordering {
        #[allow(clippy::eq_op)] // only NaN differs from itself
        a.partial_cmp(b).unwrap_or_else(|| (a != a).cmp(&(b != b)))
    }

    #[track_caller]
    fn search(op: &'static str, x: &NamedTensor, dim: usize, largest: bool) -> Result<NamedTensor> {
        if x.dtype() == DType::Bool {
            let message = format!("{op}(): does not support bool input");
            return Err(Error::new(ErrorKind::DType, op, message)
                .with_operands([x.extents()])
                .with_repair(format!("x.to({:?})?.{op}({dim})", DType::U8)));
        }
        let dims: &[usize] = if x.ndim() == 0 { &[] } else { &[dim] };
        let Arranged { x: dense, sizes: [outer, n, inner], shape } = arrange(x, dims, false)?;
        if n == 0 {
            // As in PyTorch: of a whole that is empty it is the choice of dims that is wrong, of one dim its size.
            let kind = if x.ndim() == 1 { ErrorKind::Value } else { ErrorKind::Shape };
            let message = format!("Expected reduction dim {dim} to have non-zero size.");
            return Err(Error::new(kind, op, message).with_operands([x.extents()]));
        }
        let mut found = Vec::with_capacity(outer * inner);
        dispatch!(dense.dtype(), T => {
            let data = dense.as_slice::<T>()?;
            for lane in 0..outer * inner {
                let at = |j: usize| data[lane / inner * n * inner + lane % inner + j * inner];
                let mut best = 0;
                for j in 1..n {
                    #[allow(clippy::eq_op)] // only NaN differs from itself
                    let nan = |v: T| v != v;
                    let (a, b) = (at(j), at(best));
                    #[allow(clippy::bool_comparison)] // T is bool in one of the copies only
                    let better = !nan(b) && (nan(a) || if largest { a > b } else { a < b });
                    if better {
                        best = j;
                    }
                }
                found.push(best as i64);
            }
        });
        NamedTensor::from_slice(&found, Shape { sizes: shape.sizes, names: shape.names })
    }

    #[track_caller]
    pub(crate) fn argmax(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        search("argmax", x, dim, true)
    }

    #[track_caller]
    pub(crate) fn argmin(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        search("argmin", x, dim, false)
    }

    #[track_caller]
    pub(crate) fn argsort(x: &NamedTensor, dim: usize, descending: bool) -> Result<NamedTensor> {
        let (dense, sizes) = split(x, dim)?;
        let mut out = NamedTensor::filled("argsort", dense.shape(), DType::I64, 0.into())?;
        dispatch!(dense.dtype(), T => {
            each_lane(dense.as_slice::<T>()?, out.as_mut_slice::<i64>()?, sizes, |x, y| {
                y.iter_mut().enumerate().for_each(|(j, index)| *index = j as i64);
                let compare = |a: &i64, b: &i64| order(&x[*a as usize], &x[*b as usize]);
                y.sort_by(|a, b| if descending { compare(b, a) } else { compare(a, b) });
            });
        });
        Ok(out)
    }
}
