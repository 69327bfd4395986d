//! Composed ops along one dim.

use crate::Tensor;
use crate::chain::*;
use namegrad_macros::composed;

composed! { along;
    //! # More along a dim
    /// The elements in ascending order along the first dim: the values of [`sort`](Self::sort).
    msort (x);
    /// The differences `x[i+1] - x[i]` along `dim`, taken `n` times; each time, the dim becomes shorter by
    /// one. For `bool`, whether neighbors differ.
    diff (x; dim: Dim = -1, n: usize = 1);
    /// The `q`-quantile along `dim`, or of all elements with `..`; floats only. It is interpolated linearly
    /// between the two elements around position `q (n - 1)` in sorted order. NaN if any element is NaN.
    quantile (x; q: f64, dim: Reduced = ..) on floats;
}

mod kernels {
    use super::*;
    use namegrad_core::args::Over;
    use namegrad_core::ops::pick;
    use namegrad_core::{DType, Dims, Error, ErrorKind, Result, keep};

    #[track_caller]
    pub(super) fn msort(x: &Tensor) -> Result<Tensor> {
        Ok(x.sort(0)?.values)
    }

    #[track_caller]
    pub(super) fn diff(x: &Tensor, dim: usize, n: usize) -> Result<Tensor> {
        if x.ndim() == 0 {
            let message = "expected a tensor of at least one dim";
            return Err(Error::new(ErrorKind::Shape, "diff", message));
        }
        let mut differences = x.clone();
        for _ in 0..n.min(x.sizes()[dim]) {
            let left = differences.sizes()[dim] - 1;
            let (next, this) = (differences.narrow(dim, 1, left)?, differences.narrow(dim, 0, left)?);
            differences = match x.dtype() {
                DType::Bool => next.logical_xor(&this)?,
                _ => next.sub(&this)?,
            };
        }
        Ok(differences)
    }

    #[track_caller]
    pub(super) fn quantile(x: &Tensor, q: f64, dim: Over) -> Result<Tensor> {
        const OP: &str = "quantile";
        x.value().check_float(OP)?;
        if !(0.0..=1.0).contains(&q) {
            let error = Error::new(ErrorKind::Value, OP, format!("q must be between 0 and 1, got {q}"));
            // A percentage.
            return Err(match (1.0..=100.0).contains(&q) {
                true => error.with_repair(format!("q = {}, if {q} % are meant", q / 100.0)),
                false => error,
            });
        }
        if x.numel() == 0 {
            let message = "a tensor without elements has no quantile";
            return Err(Error::new(ErrorKind::Value, OP, message).with_repair("if x.numel() > 0 { .. }"));
        }
        let one = pick::kernels::one_or_all(OP, x.value(), &dim)?;
        let n = one.map_or(x.numel(), |dim| x.sizes().get(dim).copied().unwrap_or(1));
        let dims = || one.map_or(Dims::ALL, Dims::from);
        let place = q * (n - 1) as f64;
        let (below, above) = (place.floor(), place.ceil());
        let mut quantile = x.kthvalue(below as usize + 1, keep(dims()))?.values;
        if above > below {
            let above = x.kthvalue(above as usize + 1, keep(dims()))?.values;
            quantile = quantile.lerp(&above, place - below)?;
        }
        let quantile = quantile.masked_fill(&x.isnan().any(keep(dims()))?, f64::NAN)?;
        if dim.keep { Ok(quantile) } else { quantile.squeeze(dims()) }
    }
}
