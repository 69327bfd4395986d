//! [`Subset`]: some of the samples of a data set.

use crate::collate::{Collate, Collation};
use crate::dataset::{Dataset, no_sample};
use namegrad_core::Result;
use std::fmt;
use std::sync::Arc;

/// The samples of a data set at some indices: the result of [`Dataset::subset`], [`Dataset::filter`] and of
/// the methods that split a data set. Clones share the indices.
#[derive(Clone)]
pub struct Subset<D> {
    data: D,
    indices: Arc<Vec<usize>>,
}

impl<D: Dataset> Subset<D> {
    #[track_caller]
    pub(crate) fn new(data: D, indices: Vec<usize>) -> Result<Subset<D>> {
        let len = data.len();
        match indices.iter().find(|index| **index >= len) {
            Some(index) => {
                Err(no_sample("subset", *index, len).with_repair(format!("data.subset(0..{len})?")))
            }
            None => Ok(Subset::of(data, indices)),
        }
    }

    /// A subset at indices that are known to be in range.
    pub(crate) fn of(data: D, indices: Vec<usize>) -> Subset<D> {
        Subset { data, indices: Arc::new(indices) }
    }

    /// The indices of the samples in the data set that this is a part of.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// The data set that this is a part of.
    pub fn whole(&self) -> &D {
        &self.data
    }
}

/// The numbers of samples of the subset and of the whole data set.
impl<D: Dataset> fmt::Debug for Subset<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subset of {} of {} samples", self.indices.len(), self.data.len())
    }
}

impl<D: Dataset> Dataset for Subset<D> {
    type Sample = D::Sample;

    fn len(&self) -> usize {
        self.indices.len()
    }

    #[track_caller]
    fn get(&self, index: usize) -> Result<D::Sample> {
        match self.indices.get(index) {
            Some(inner) => self.data.get(*inner),
            None => Err(no_sample("Subset", index, self.indices.len())),
        }
    }

    fn get_batch(
        &self,
        indices: &[usize],
        how: &Collation<'_>,
    ) -> Option<Result<<D::Sample as Collate>::Batch>>
    where
        D::Sample: Collate,
    {
        let inner = indices.iter().map(|index| self.indices.get(*index).copied());
        let inner: Vec<usize> = crate::list::<_, Option<_>>(inner)?; // the error of a missing one comes from `get`
        self.data.get_batch(&inner, how)
    }
}
