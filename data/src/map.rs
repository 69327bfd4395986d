//! [`Map`]: samples changed by a function.

use crate::Dataset;
use namegrad_core::Result;

/// The result of [`Dataset::map`].
#[derive(Clone, Debug)]
pub struct Map<D, F> {
    data: D,
    f: F,
}

impl<D, F> Map<D, F> {
    pub(crate) fn new(data: D, f: F) -> Map<D, F> {
        Map { data, f }
    }
}

impl<D, T, F> Dataset for Map<D, F>
where
    D: Dataset,
    T: Send,
    F: Fn(D::Sample) -> Result<T> + Send + Sync,
{
    type Sample = T;

    fn len(&self) -> usize {
        self.data.len()
    }

    fn get(&self, index: usize) -> Result<T> {
        (self.f)(self.data.get(index)?)
    }
}
