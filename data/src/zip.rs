//! [`Zip`]: two data sets side by side.

use crate::Dataset;
use namegrad_core::{Error, ErrorKind, Result};

/// The result of [`Dataset::zip`].
#[derive(Clone, Debug)]
pub struct Zip<A, B> {
    first: A,
    second: B,
}

impl<A: Dataset, B: Dataset> Zip<A, B> {
    #[track_caller]
    pub(crate) fn new(first: A, second: B) -> Result<Zip<A, B>> {
        let (one, other) = (first.len(), second.len());
        Error::ensure(one == other, ErrorKind::Value, "zip", || {
            format!("the data sets have {one} and {other} samples, but each must have as many")
        })?;
        Ok(Zip { first, second })
    }
}

impl<A: Dataset, B: Dataset> Dataset for Zip<A, B> {
    type Sample = (A::Sample, B::Sample);

    fn len(&self) -> usize {
        self.first.len()
    }

    #[track_caller]
    fn get(&self, index: usize) -> Result<Self::Sample> {
        Ok((self.first.get(index)?, self.second.get(index)?))
    }
}
