//! [`Histogram`]: how often values occur.

use super::json;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result};
use serde::{Deserialize, Serialize};
use std::panic::Location;

/// The counts of values in buckets of equal width, from the least value to the greatest.
///
/// NaN and infinities are in no bucket; they are only counted.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::log::Histogram;
/// let x = Tensor::new([0.0, 0.5, 1.0, 3.5, 4.0, f64::NAN])?;
/// let histogram = Histogram::new(&x, 4)?;
/// assert_eq!((histogram.min, histogram.max, histogram.not_finite), (0.0, 4.0, 1));
/// assert_eq!(histogram.limits, [1.0, 2.0, 3.0, 4.0]);
/// assert_eq!(histogram.counts, [2, 1, 0, 2]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// The least finite value; NaN if there is none.
    #[serde(with = "json::number")]
    pub min: f64,
    /// The greatest finite value; NaN if there is none.
    #[serde(with = "json::number")]
    pub max: f64,
    /// The sum of the finite values.
    #[serde(with = "json::number")]
    pub sum: f64,
    /// The sum of the squares of the finite values.
    #[serde(with = "json::number")]
    pub sum_squares: f64,
    /// The number of values that are NaN or infinite.
    #[serde(default)]
    pub not_finite: u64,
    /// The upper end of each bucket. A bucket begins where the one before ends, the first at `min`. Like in
    /// NumPy, a value on a limit is in the bucket above it, and `max` in the last.
    pub limits: Vec<f64>,
    /// The number of values in each bucket.
    pub counts: Vec<u64>,
}

impl Histogram {
    /// Counts the elements of a tensor of any dtype in this number of buckets; one bucket if all are equal,
    /// and none without a finite element.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for no buckets, or more than 65,536; [`ErrorKind::OutOfMemory`].
    #[doc(alias = "histc")]
    #[track_caller]
    pub fn new(x: impl AsRef<NamedTensor>, buckets: usize) -> Result<Histogram> {
        let caller = Location::caller();
        Histogram::of("histogram", x.as_ref(), buckets).map_err(|error| error.at(caller))
    }

    pub(crate) fn of(op: &'static str, x: &NamedTensor, buckets: usize) -> Result<Histogram> {
        Error::ensure((1..=1 << 16).contains(&buckets), ErrorKind::Value, op, || {
            format!("the number of buckets must be from 1 to 65536, got {buckets}")
        })?;
        // Every dtype has an exact copy in `f64`, if its numbers are not large integers.
        Ok(count(&x.to(DType::F64)?.to_vec::<f64>()?, buckets))
    }

    /// The number of finite values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The buckets: lower end, upper end, count.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, f64, u64)> {
        let lower = std::iter::once(self.min).chain(self.limits.iter().copied());
        lower.zip(&self.limits).zip(&self.counts).map(|((low, high), count)| (low, *high, *count))
    }
}

fn count(values: &[f64], buckets: usize) -> Histogram {
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    let (mut sum, mut sum_squares, mut not_finite) = (0.0, 0.0, 0);
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    for value in finite() {
        (min, max) = (min.min(value), max.max(value));
        sum += value;
        sum_squares += value * value;
    }
    let total = finite().count();
    not_finite += (values.len() - total) as u64;
    if total == 0 {
        let (limits, counts) = (vec![], vec![]);
        return Histogram { min: f64::NAN, max: f64::NAN, sum, sum_squares, not_finite, limits, counts };
    }
    // Halves, because the difference of two finite numbers can overflow.
    let half_width = (max / 2.0 - min / 2.0) / buckets as f64;
    if half_width < f64::MIN_POSITIVE {
        let (limits, counts) = (vec![max], vec![total as u64]);
        return Histogram { min, max, sum, sum_squares, not_finite, limits, counts };
    }
    let mut limits = Vec::new();
    for number in 1..buckets {
        limits.push(min + half_width * number as f64 + half_width * number as f64);
    }
    limits.push(max);
    let mut counts = vec![0; buckets];
    for value in finite() {
        // Rounding can put a value on a limit into the bucket beside it.
        let mut at = (((value / 2.0 - min / 2.0) / half_width) as usize).min(buckets - 1);
        while at > 0 && value < limits[at - 1] {
            at -= 1;
        }
        while at + 1 < buckets && value >= limits[at] {
            at += 1;
        }
        counts[at] += 1;
    }
    Histogram { min, max, sum, sum_squares, not_finite, limits, counts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namegrad_autograd::Tensor;

    #[test]
    fn any_values_can_be_counted() {
        for (values, limits, counts) in [
            (&[][..], &[][..], &[][..]),
            (&[f64::NAN, f64::INFINITY], &[], &[]),
            (&[2.5], &[2.5], &[1]),
            (&[2.5, 2.5, f64::NAN], &[2.5], &[2]),
            (&[0.0, 5e-324], &[5e-324], &[2]),
            (&[-f64::MAX, f64::MAX, 0.0], &[0.0, f64::MAX], &[1, 2]),
        ] {
            let histogram = count(values, 2);
            assert_eq!(
                (histogram.limits.as_slice(), histogram.counts.as_slice()),
                (limits, counts),
                "{values:?}"
            );
            let finite = values.iter().filter(|value| value.is_finite()).count() as u64;
            assert_eq!((histogram.count(), histogram.not_finite), (finite, values.len() as u64 - finite));
        }
    }

    #[test]
    fn a_value_on_a_limit_is_in_the_bucket_above() {
        let values: Vec<f64> = (0..=30).map(|k| f64::from(k) * 0.1).collect();
        let histogram = count(&values, 30);
        for (low, high, count) in histogram.buckets() {
            let last = high == histogram.max;
            let inside = values.iter().filter(|v| **v >= low && (**v < high || last && **v == high)).count();
            assert_eq!(count, inside as u64);
        }
    }

    #[test]
    fn every_dtype_can_be_counted() -> Result<()> {
        for dtype in [DType::Bool, DType::U8, DType::I64, DType::BF16, DType::F16, DType::F64] {
            let x = Tensor::new([0, 1, 1])?.to(dtype)?;
            assert_eq!(Histogram::new(&x, 2)?.counts, [1, 2], "{dtype}");
        }
        assert!(Histogram::new(Tensor::new([1.0])?, 0).is_err());
        Ok(())
    }
}
