//! Derivatives of the ops that count and search: of these a sum of weights alone has one.

use crate::Tensor;
use crate::rules::no_derivative;
use namegrad_core::{NamedTensor, Result, Unique};

rules! { in NamedTensor; |g, cx|
    bincount_weighted(x, weights; minlength: usize) -> y { weights: [x] g.index_select(x, 0)? }
}

constants! { in NamedTensor;
    bucketize(x, boundaries; right: bool) searchsorted(x, values; right: bool) bincount(x; minlength: usize)
}

/// Counts are floats here, without a slope anywhere.
#[track_caller]
pub(crate) fn histc(x: &Tensor, bins: &usize, min: &f64, max: &f64) -> Result<Tensor> {
    if x.tracked().is_some() {
        return Err(no_derivative("histc", x));
    }
    Ok(Tensor::constant(x.value().histc(*bins, *min, *max)?))
}

impl Tensor {
    /// The different elements in ascending order, where they stand and how often. NaN is the largest, and no NaN equals another.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`](namegrad_core::ErrorKind::Autograd) on a tensor that requires a gradient: there is no derivative.
    #[track_caller]
    pub fn unique(&self) -> Result<Unique<Tensor>> {
        if self.tracked().is_some() {
            return Err(no_derivative("unique", self));
        }
        let Unique { values, inverse, counts } = self.value().unique()?;
        let [values, inverse, counts] = [values, inverse, counts].map(Tensor::constant);
        Ok(Unique { values, inverse, counts })
    }
}
