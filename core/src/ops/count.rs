//! Counting and searching elements.

use crate::args::Immediate;
use crate::error::Result;
use crate::tensor::NamedTensor;
use namegrad_macros::ops;

ops! { count;
    //! # Counts and searches
    /// For each element, the number of elements of the ascending vector `boundaries` that are smaller (with
    /// `right`, not larger): the index of the interval that contains it. NaN comes after all boundaries.
    /// The result is `i64`, or `i32` with `out_int32`.
    bucketize (x, boundaries; right: bool = false, out_int32: bool = false) names keeps, boundaries: free;
    /// For each of the `values`, the number of elements of `x` that are smaller (with `right`, not larger):
    /// the index at which it can be inserted. `x` is ascending along its last dim. It is a vector, or has the
    /// same dims as `values` except for the last. The result is `i64`, or `i32` with `out_int32`. `side` says
    /// the same as `right` in a word.
    searchsorted (x, values; right: bool = false, side: Option<Side> = None, out_int32: bool = false) names of values, values: beside last;
    /// The number of times that each of the integers `0, 1...` occurs in `x`, a vector of integers that are
    /// not negative. The result extends to the largest integer and has at least `minlength` elements. With
    /// `weights`, it has the sums of their weights, computed in `f64`: as `f32` if the weights are `f32`,
    /// otherwise as `f64`.
    bincount (x, weights?; minlength: usize = 0, name: NewName = None) on integers names called name, weights: matched;
    /// The number of elements in each of `bins` intervals of equal length from `min` to `max`; floats only.
    /// The last interval includes both of its ends. Elements outside of all intervals are not counted. If
    /// `min` and `max` are equal, the minimum and maximum of the elements are used.
    histc (x; bins: usize = 100, min: f64 = 0.0, max: f64 = 0.0, name: NewName = None) on floats names called name;
    /// The distinct elements in ascending order, with their positions and counts. NaN counts as the largest,
    /// and no NaN equals another.
    unique (x; name: NewName = None) -> Unique { values, inverse, counts }
        names called name, inverse: keeps;
    /// The distinct slices along `dim` in ascending order, compared element by element, with the position of
    /// each slice among them and their counts. No slice with a NaN equals another.
    unique_dim (x; dim: Dim) -> Unique { values, inverse, counts } names keeps, inverse: removes, counts: removes;
}

/// On which side of equal elements [`searchsorted`](NamedTensor::searchsorted) inserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before them.
    Left,
    /// After them.
    Right,
}
impl Immediate for Side {
    const WORDS: &'static [(&'static str, Side)] = &[("left", Side::Left), ("right", Side::Right)];
}

/// The distinct elements of a tensor, with their positions and counts.
///
/// ```
/// use namegrad_core::{NamedTensor, Unique};
/// let x = NamedTensor::from_slice(&[5i64, 2, 5, 5], [4])?;
/// let Unique { values, inverse, counts } = x.unique()?;
/// assert_eq!(values.to_vec::<i64>()?, [2, 5]);
/// assert_eq!(inverse.to_vec::<i64>()?, [1, 0, 1, 1]);
/// assert_eq!(counts.to_vec::<i64>()?, [1, 3]);
/// # Ok::<(), namegrad_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Unique<T = NamedTensor> {
    /// The elements in ascending order, as a vector.
    pub values: T,
    /// For each element of the tensor, its position in `values`; with the sizes and names of the tensor.
    pub inverse: T,
    /// The number of times that each of the values occurs in the tensor.
    pub counts: T,
}

pub(crate) mod kernels {
    use super::*;
    use crate::cpu::count as cpu;
    use crate::cpu::order::{self, NAN_LAST};
    use crate::device::compute;
    use crate::dtype::{Category, DType, dispatch};
    use crate::error::{Error, ErrorKind};
    use crate::layout::Sizes;
    use crate::names::{Name, Names, rules};
    use crate::shape::Shape;
    use crate::tensor::Unwritten;

    /// The keys of all elements in row-major order.
    #[track_caller]
    fn keys(op: &'static str, x: &NamedTensor) -> Result<Vec<i64>> {
        x.check_elements(op)?;
        let dense = x.to(x.dtype().wide())?.contiguous()?;
        let mut keys = vec![0; x.numel()];
        dispatch!(dense.dtype(), wide T => order::keys(dense.elements::<T>()?, NAN_LAST, &mut keys));
        Ok(keys)
    }

    #[track_caller]
    fn search(
        op: &'static str,
        sorted: &NamedTensor,
        values: &NamedTensor,
        right: bool,
        out_int32: bool,
    ) -> Result<NamedTensor> {
        if sorted.dtype() != values.dtype() {
            let (a, b) = (sorted.dtype(), values.dtype());
            let message = format!("boundaries and values must have the same dtype, got {a} and {b}");
            let repair = format!("boundaries.to(DType::{b:?})?");
            return Err(Error::about(&[sorted, values], ErrorKind::DType, op, message).with_repair(repair));
        }
        let outer = |x: &NamedTensor| x.sizes().split_last().map(|(_, outer)| Sizes::from_slice(outer));
        if sorted.ndim() != 1 && (sorted.ndim() == 0 || outer(sorted) != outer(values)) {
            let message =
                "boundaries must be a vector, or have the sizes of the values in all but the last dim";
            return Err(Error::about(&[sorted, values], ErrorKind::Shape, op, message));
        }
        let n = sorted.sizes()[sorted.ndim() - 1];
        // With a single row of boundaries, all values use that row.
        let row = if sorted.ndim() == 1 { usize::MAX } else { values.sizes()[values.ndim() - 1] };
        let found = Unwritten::new(op, values.shape(), DType::I64)?;
        let found = match found.is_meta() {
            true => found.without_elements(),
            false => {
                let (sorted, wanted) = (keys(op, sorted)?, keys(op, values)?);
                found.write(|found| cpu::search(&sorted, n, &wanted, row, right, found))
            }
        };
        if out_int32 { found.into_dtype(DType::I32) } else { Ok(found) }
    }

    #[track_caller]
    pub(crate) fn bucketize(
        x: &NamedTensor,
        boundaries: &NamedTensor,
        right: bool,
        out_int32: bool,
    ) -> Result<NamedTensor> {
        if boundaries.ndim() != 1 {
            let message = format!("the boundaries must be a vector, got {} dims", boundaries.ndim());
            return Err(Error::about(&[x, boundaries], ErrorKind::Shape, "bucketize", message));
        }
        search("bucketize", boundaries, x, right, out_int32)
    }

    #[track_caller]
    pub(crate) fn searchsorted(
        x: &NamedTensor,
        values: &NamedTensor,
        right: bool,
        side: Option<Side>,
        out_int32: bool,
    ) -> Result<NamedTensor> {
        if right && side == Some(Side::Left) {
            let message = "side and right cannot say opposites: side is left, and right is true";
            return Err(Error::about(&[x, values], ErrorKind::Value, "searchsorted", message));
        }
        let right = right || side == Some(Side::Right);
        if let (true, Some(last)) = (x.ndim() > 1, x.ndim().checked_sub(1)) {
            rules::beside("searchsorted", "values", x.input(), values.input(), last)?;
        }
        search("searchsorted", x, values, right, out_int32)
    }

    /// Checks the numbers, and makes zeros of `dtype` to count them in.
    #[track_caller]
    fn numbers(x: &NamedTensor, minlength: usize, dtype: DType) -> Result<(Vec<i64>, NamedTensor)> {
        const OP: &str = "bincount";
        let whole = x.ndim() == 1 && x.dtype().category() == Category::Integer;
        if whole {
            x.check_elements(OP)?;
        }
        let numbers = if whole { x.to_vec::<i64>()? } else { Vec::new() };
        let (least, largest) = cpu::extremes(&numbers).unwrap_or((0, -1));
        if !whole || least < 0 {
            let message = match whole {
                true => format!("counts integers that are not negative, got {least}"),
                false => format!("expected a vector of integers, got {} dims of {}", x.ndim(), x.dtype()),
            };
            let repair = match whole {
                true => "x.sub(x.amin(..)?)?, to count from the smallest number on",
                false => "x.to(DType::I64)?.reshape([-1])?",
            };
            return Err(Error::about(&[x], ErrorKind::DType, OP, message).with_repair(repair));
        }
        let length = (largest as usize).wrapping_add(1).max(minlength); // 0 after -1
        let shape = Shape { sizes: Sizes::from_slice(&[length]), names: Names::none() };
        Ok((numbers, NamedTensor::filled(OP, shape, dtype, 0.into())?))
    }

    #[track_caller]
    pub(crate) fn bincount(
        x: &NamedTensor,
        weights: Option<&NamedTensor>,
        minlength: usize,
        name: Option<Name>,
    ) -> Result<NamedTensor> {
        let names = Names::unchecked([name]);
        let Some(weights) = weights else {
            let (numbers, mut counts) = numbers(x, minlength, DType::I64)?;
            cpu::tally(&numbers, counts.as_mut_slice()?);
            return Ok(counts.with_names(names));
        };
        if weights.sizes() != x.sizes() {
            let message = "weights should be 1-d and have the same length as input";
            return Err(Error::about(&[x, weights], ErrorKind::Shape, "bincount", message));
        }
        rules::unify("bincount", "match", x.input(), weights.input())?;
        let (_, zeros) = numbers(x, minlength, DType::F64)?;
        let sums = zeros.index_add(&x.unnamed().to(DType::I64)?, &weights.unnamed().to(DType::F64)?, 0)?;
        let sums = sums.into_dtype(if weights.dtype() == DType::F32 { DType::F32 } else { DType::F64 })?;
        Ok(sums.with_names(names))
    }

    #[track_caller]
    pub(crate) fn histc(
        x: &NamedTensor,
        bins: usize,
        min: f64,
        max: f64,
        name: Option<Name>,
    ) -> Result<NamedTensor> {
        const OP: &str = "histc";
        x.check_float(OP)?;
        let (mut low, mut high) = (min, max);
        // On the meta device, the range is unknown, and only the number of bins counts.
        if min == max && x.numel() > 0 && !x.is_meta() {
            (low, high) = cpu::range(&x.to_vec::<f64>()?);
        }
        if low == high {
            (low, high) = (low - 1.0, high + 1.0);
        }
        if bins == 0 || low >= high || !(high - low).is_finite() {
            let message = match bins {
                0 => "bins must be at least 1, got 0".to_string(),
                _ => format!("min must be less than max, both finite, got {low} and {high}"),
            };
            return Err(Error::about(&[x], ErrorKind::Value, OP, message));
        }
        let shape = Shape { sizes: Sizes::from_slice(&[bins]), names: Names::unchecked([name]) };
        let mut counts = NamedTensor::filled(OP, shape, DType::F64, 0.into())?;
        compute(|| {
            cpu::histogram(&x.to_vec::<f64>()?, low, high, counts.as_mut_slice()?);
            Ok(())
        })?;
        counts.into_dtype(x.dtype())
    }

    #[track_caller]
    pub(crate) fn unique(
        x: &NamedTensor,
        name: Option<Name>,
    ) -> Result<(NamedTensor, NamedTensor, NamedTensor)> {
        let (keys, float) = (keys("unique", x)?, x.dtype().is_floating_point());
        let mut inverse = NamedTensor::filled("unique", x.shape(), DType::I64, 0.into())?;
        let (firsts, counts) = cpu::unique(&keys, float, inverse.as_mut_slice()?);
        let firsts = NamedTensor::from_slice(&firsts, [firsts.len()])?;
        let values = x.unnamed().reshape([-1])?.index_select(&firsts, 0)?;
        let counts = NamedTensor::from_slice(&counts, [counts.len()])?;
        let names = Names::unchecked([name]);
        Ok((values.with_names(names.clone()), inverse, counts.with_names(names)))
    }

    #[track_caller]
    pub(crate) fn unique_dim(x: &NamedTensor, dim: usize) -> Result<(NamedTensor, NamedTensor, NamedTensor)> {
        const OP: &str = "unique_dim";
        let Some(n) = x.sizes().get(dim).copied() else {
            return Err(Error::about(&[x], ErrorKind::DimRange, OP, "a 0-d tensor has no slices"));
        };
        let keys = keys(OP, &x.unnamed().movedim(dim, 0)?)?;
        let shape = Shape { sizes: Sizes::from_slice(&[n]), names: Names::none() };
        let mut inverse = NamedTensor::filled(OP, shape, DType::I64, 0.into())?;
        let width = x.numel() / n.max(1);
        if width == 0 && n > 0 {
            let message = "slices without elements cannot be compared";
            return Err(Error::about(&[x], ErrorKind::Value, OP, message));
        }
        let float = x.dtype().is_floating_point();
        let (firsts, counts) = cpu::unique_rows(&keys, width, float, inverse.as_mut_slice()?);
        let firsts = NamedTensor::from_slice(&firsts, [firsts.len()])?;
        let values = x.index_select(&firsts, dim)?;
        let counts = NamedTensor::from_slice(&counts, [counts.len()])?;
        let names = Names::unchecked([x.name(dim)]);
        Ok((values, inverse.with_names(names.clone()), counts.with_names(names)))
    }
}
