//! [`Map`]: samples changed by a function.

use crate::Dataset;
use namegrad_core::Result;
use std::fmt;

/// The result of [`Dataset::map`].
#[derive(Clone)]
pub struct Map<D, F> {
    data: D,
    f: F,
}

impl<D, F> Map<D, F> {
    pub(crate) fn new(data: D, f: F) -> Map<D, F> {
        Map { data, f }
    }
}

impl<D: fmt::Debug, F> fmt::Debug for Map<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Map").field(&self.data).finish()
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

    #[track_caller]
    fn get(&self, index: usize) -> Result<T> {
        (self.f)(self.data.get(index)?)
    }
}
