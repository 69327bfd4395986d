//! Counting and searching: what there is how often, and where it belongs in an order.

use crate::dim::Count;
use crate::error::Result;
use crate::tensor::NamedTensor;

/// The rows of the ops that count, handed to `$with`.
#[macro_export]
#[doc(hidden)]
macro_rules! count_ops {
    ($with:ident) => {
        $with! {
            /// For each element the number of `boundaries`, an ascending vector, that are smaller, or not larger if `right`: the index of the interval in which it
            /// lies. NaN lies behind all.
            bucketize ["keeps input names"] (x, boundaries; right: bool)
            /// For each of the `values` the number of elements of `x`, ascending along the last dim, that are smaller, or not larger if `right`: the index at which it
            /// can be inserted. `x` is a vector, or has the other dims of `values`.
            searchsorted ["keeps the names of the values"] (x, values; right: bool)
            /// How often each of the numbers `0, 1...` stands in `x`, a vector of integers that are not negative, up to the largest and at least `minlength` of them.
            bincount ["gives a vector without names"] (x; minlength: Count)
            /// For each of the numbers `0, 1...` the sum of the `weights` of those elements of `x` that equal it; otherwise as [`bincount`](Self::bincount). Weights that
            /// are not floats are summed in `f64`.
            bincount_weighted ["gives a vector without names"] (x, weights; minlength: Count)
            /// The number of elements in each of `bins` intervals of one length from `min` to `max`, of floats only. The last one has both of its ends; what lies
            /// outside is not counted. If `min` and `max` are equal, those of the elements stand in their place.
            histc ["gives a vector without names"] (x; bins: Count, min: f64, max: f64)
        }
    };
}
count_ops!(define_ops);

/// The different elements of a tensor.
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
    /// The elements in ascending order, a vector.
    pub values: T,
    /// For each element of the tensor its place among the values; with the sizes and names of the tensor.
    pub inverse: T,
    /// How often each of the values stands in the tensor.
    pub counts: T,
}

impl NamedTensor {
    /// The different elements in ascending order, where they stand and how often. NaN is the largest, and no NaN equals another.
    ///
    /// # Errors
    /// As `namegrad::Tensor::unique`.
    #[track_caller]
    pub fn unique(&self) -> Result<Unique> {
        kernels::unique(self)
    }
}

pub(crate) mod kernels {
    use super::*;
    use crate::cpu::order::{self, NAN_LAST, Pairs};
    use crate::cpu::threads::each_part;
    use crate::dtype::{Category, DType, dispatch};
    use crate::error::{Error, ErrorKind};
    use crate::names::Names;
    use crate::shape::{Shape, Sizes};

    /// Searches that a thread does in one go.
    const TASK: usize = 1 << 12;

    /// The keys of all elements in row-major order.
    #[track_caller]
    fn keys(x: &NamedTensor) -> Result<Vec<i64>> {
        let dense = x.contiguous()?;
        let mut keys = vec![0; x.numel()];
        dispatch!(x.dtype(), T => order::keys(dense.as_slice::<T>()?, NAN_LAST, &mut keys));
        Ok(keys)
    }

    #[track_caller]
    fn search(
        op: &'static str,
        sorted: &NamedTensor,
        values: &NamedTensor,
        right: bool,
    ) -> Result<NamedTensor> {
        let operands = || [sorted.extents(), values.extents()];
        if sorted.dtype() != values.dtype() {
            let (a, b) = (sorted.dtype(), values.dtype());
            let message = format!("boundaries and values must have the same dtype, got {a} and {b}");
            return Err(Error::new(ErrorKind::DType, op, message).with_operands(operands()));
        }
        let outer = |x: &NamedTensor| x.sizes().split_last().map(|(_, outer)| Sizes::from_slice(outer));
        if sorted.ndim() != 1 && (sorted.ndim() == 0 || outer(sorted) != outer(values)) {
            let message =
                "boundaries must be a vector, or have the sizes of the values in all but the last dim";
            return Err(Error::new(ErrorKind::Shape, op, message).with_operands(operands()));
        }
        let n = sorted.sizes()[sorted.ndim() - 1];
        // With one row of boundaries all values belong to the first.
        let row = if sorted.ndim() == 1 { usize::MAX } else { values.sizes()[values.ndim() - 1] };
        let (sorted, wanted) = (keys(sorted)?, keys(values)?);
        let mut found = NamedTensor::filled(op, values.shape(), DType::I64, 0.into())?;
        each_part(found.as_mut_slice::<i64>()?, TASK, &|task, found| {
            for (at, found) in found.iter_mut().enumerate() {
                let at = task * TASK + at;
                let value = wanted[at];
                let before = |key: &i64| if right { *key <= value } else { *key < value };
                *found = sorted[at / row * n..][..n].partition_point(before) as i64;
            }
        });
        Ok(found)
    }

    #[track_caller]
    pub(crate) fn bucketize(x: &NamedTensor, boundaries: &NamedTensor, right: bool) -> Result<NamedTensor> {
        if boundaries.ndim() != 1 {
            let message =
                format!("boundaries tensor must be 1 dimension, but got dim({})", boundaries.ndim());
            return Err(Error::new(ErrorKind::Shape, "bucketize", message)
                .with_operands([x.extents(), boundaries.extents()]));
        }
        search("bucketize", boundaries, x, right)
    }

    #[track_caller]
    pub(crate) fn searchsorted(x: &NamedTensor, values: &NamedTensor, right: bool) -> Result<NamedTensor> {
        search("searchsorted", x, values, right)
    }

    /// Checked numbers, and zeros of `dtype` to count them in.
    #[track_caller]
    fn numbers(x: &NamedTensor, minlength: usize, dtype: DType) -> Result<(Vec<i64>, NamedTensor)> {
        const OP: &str = "bincount";
        let whole = x.ndim() == 1 && x.dtype().category() == Category::Integer;
        let numbers = if whole { x.to_vec::<i64>()? } else { Vec::new() };
        if !whole || numbers.iter().any(|number| *number < 0) {
            let message = "bincount only supports 1-d non-negative integral inputs";
            return Err(Error::new(ErrorKind::DType, OP, message).with_operands([x.extents()]));
        }
        let length = numbers.iter().max().map_or(0, |max| *max as usize + 1).max(minlength);
        let shape = Shape { sizes: Sizes::from_slice(&[length]), names: Names::none() };
        Ok((numbers, NamedTensor::filled(OP, shape, dtype, 0.into())?))
    }

    #[track_caller]
    pub(crate) fn bincount(x: &NamedTensor, minlength: usize) -> Result<NamedTensor> {
        let (numbers, mut counts) = numbers(x, minlength, DType::I64)?;
        let slots = counts.as_mut_slice::<i64>()?;
        numbers.into_iter().for_each(|number| slots[number as usize] += 1);
        Ok(counts)
    }

    #[track_caller]
    pub(crate) fn bincount_weighted(
        x: &NamedTensor,
        weights: &NamedTensor,
        minlength: usize,
    ) -> Result<NamedTensor> {
        if weights.sizes() != x.sizes() {
            let message = "weights should be 1-d and have the same length as input";
            return Err(Error::new(ErrorKind::Shape, "bincount", message)
                .with_operands([x.extents(), weights.extents()]));
        }
        let dtype = if weights.dtype().is_floating_point() { weights.dtype() } else { DType::F64 };
        let (_, zeros) = numbers(x, minlength, dtype)?;
        zeros.index_add(&x.to(DType::I64)?, &weights.to(dtype)?, 0)
    }

    #[track_caller]
    pub(crate) fn histc(x: &NamedTensor, bins: usize, min: f64, max: f64) -> Result<NamedTensor> {
        const OP: &str = "histc";
        x.check_float(OP)?;
        let elements = x.to_vec::<f64>()?;
        let (mut low, mut high) = (min, max);
        if min == max && !elements.is_empty() {
            low = elements.iter().copied().fold(f64::INFINITY, f64::min);
            high = elements.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        }
        if low == high {
            (low, high) = (low - 1.0, high + 1.0);
        }
        if bins == 0 || low >= high || !(high - low).is_finite() {
            let message =
                format!("bins must be > 0 and min < max, both finite; got {bins} bins from {low} to {high}");
            return Err(Error::new(ErrorKind::Value, OP, message).with_operands([x.extents()]));
        }
        let shape = Shape { sizes: Sizes::from_slice(&[bins]), names: Names::none() };
        let mut counts = NamedTensor::filled(OP, shape, DType::F64, 0.into())?;
        let slots = counts.as_mut_slice::<f64>()?;
        for x in elements.into_iter().filter(|x| (low..=high).contains(x)) {
            slots[((x - low) / (high - low) * bins as f64).min(bins as f64 - 1.0) as usize] += 1.0;
        }
        counts.into_dtype(x.dtype())
    }

    #[track_caller]
    pub(crate) fn unique(x: &NamedTensor) -> Result<Unique> {
        let (keys, mut pairs) = (keys(x)?, Pairs::new());
        order::sort(&keys, false, &mut pairs);
        let float = x.dtype().is_floating_point();
        let (mut firsts, mut counts) = (Vec::new(), Vec::new());
        let mut inverse = NamedTensor::filled("unique", x.shape(), DType::I64, 0.into())?;
        let slots = inverse.as_mut_slice::<i64>()?;
        for run in pairs.chunk_by(|a, b| a.0 == b.0 && !(float && a.0 == NAN_LAST)) {
            run.iter().for_each(|(_, place)| slots[*place] = firsts.len() as i64);
            firsts.push(run[0].1 as i64);
            counts.push(run.len() as i64);
        }
        let firsts = NamedTensor::from_slice(&firsts, [firsts.len()])?;
        let values = x.unnamed().reshape([-1])?.index_select(&firsts, 0)?;
        Ok(Unique { values, inverse, counts: NamedTensor::from_slice(&counts, [counts.len()])? })
    }
}
