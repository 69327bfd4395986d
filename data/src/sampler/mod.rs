//! [`Sampler`]: which samples an epoch has, and in which order.

mod bucketed;
mod distributed;
mod random;
mod weighted;

pub use bucketed::Bucketed;
pub use distributed::Distributed;
pub use random::{Random, SubsetRandom};
pub use weighted::Weighted;

use crate::random::{permutation, uniform};
use namegrad_core::{Error, ErrorKind, Result};

/// Chooses the samples of each epoch and their order. A [`Loader`](crate::Loader) cuts the list into batches.
///
/// The same epoch must always have the same list: a resumed loader asks for it again. Random numbers come
/// from [`Epoch::permutation`] and [`Epoch::uniform`], or from [`Epoch::seed`].
///
/// # Examples
/// A function is a sampler too:
/// ```
/// use namegrad::data::{Loader, Samples};
/// use namegrad::data::sampler::Epoch;
/// let backwards = |epoch: &Epoch| Ok((0..epoch.samples).rev().collect());
/// let loader = Loader::builder(Samples::new(vec!["a", "b", "c"])).batch_size(2).sampler(backwards).build()?;
/// assert_eq!(loader.iter().collect::<Result<Vec<_>, _>>()?, [vec!["c", "b"], vec!["a"]]);
/// # Ok::<(), namegrad::Error>(())
/// ```
pub trait Sampler: Send + Sync {
    /// The indices of an epoch, each less than `epoch.samples`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the sampler does not fit the data set.
    fn indices(&self, epoch: &Epoch) -> Result<Vec<usize>>;

    /// The number of indices in an epoch. Implement it if counting is cheaper than making the list.
    ///
    /// # Errors
    /// Same as [`indices`](Self::indices).
    fn count(&self, epoch: &Epoch) -> Result<usize> {
        self.indices(epoch).map(|indices| indices.len())
    }

    /// The indices of an epoch on all [`processes`](Self::processes), by which a resumed loader knows the
    /// sampler: those of this process, unless it has a part of them.
    ///
    /// # Errors
    /// Same as [`indices`](Self::indices).
    fn whole(&self, epoch: &Epoch) -> Result<Vec<usize>> {
        self.indices(epoch)
    }

    /// The number of processes that share an epoch. The batch size in the state of a loader is that of all
    /// together, so a run resumes on another number of processes with the same batches.
    fn processes(&self) -> usize {
        1
    }
}

/// An epoch, as a sampler sees it: everything that its order depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Epoch {
    /// The number of samples of the data set.
    pub samples: usize,
    /// The number of samples in a batch.
    pub batch_size: usize,
    /// The seed of the loader.
    pub seed: u64,
    /// The number of the epoch, from 0.
    pub number: u64,
}

impl Epoch {
    pub(crate) fn new(samples: usize, batch_size: usize, seed: u64, number: u64) -> Epoch {
        Epoch { samples, batch_size, seed, number }
    }

    /// The numbers `0..n` in an order that depends on the seed and the number of the epoch.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn permutation(&self, n: usize) -> Result<Vec<usize>> {
        permutation(n, self.seed, self.number)
    }

    /// `n` numbers in `[0, 1)` that depend on the seed and the number of the epoch.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn uniform(&self, n: usize) -> Result<Vec<f64>> {
        uniform(n, self.seed, self.number)
    }
}

impl<F: Fn(&Epoch) -> Result<Vec<usize>> + Send + Sync> Sampler for F {
    fn indices(&self, epoch: &Epoch) -> Result<Vec<usize>> {
        self(epoch)
    }
}

/// All samples in the order of the data set. It is the sampler of a loader that does not shuffle.
#[derive(Clone, Copy, Debug, Default)]
pub struct InOrder;

impl Sampler for InOrder {
    fn indices(&self, epoch: &Epoch) -> Result<Vec<usize>> {
        Ok(crate::list(0..epoch.samples))
    }

    fn count(&self, epoch: &Epoch) -> Result<usize> {
        Ok(epoch.samples)
    }
}

/// An error of a sampler.
#[cold]
#[track_caller]
fn refused(op: &'static str, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Value, op, message)
}
