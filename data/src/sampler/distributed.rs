//! [`Distributed`]: the part of an epoch for one of several processes.

use super::{Epoch, Sampler, refused};
use namegrad_core::Result;

/// Every `world`-th sample of another sampler, from the one at `rank`: the part of process `rank` of `world`.
/// All parts have the same length, as in PyTorch's `DistributedSampler`: by default, the epoch is extended
/// with its first samples.
///
/// All processes need loaders with the same seed. Their loaders have the same state, which the loader of any
/// process resumes from. It also resumes on another number of processes, if all of them together have batches
/// of the same size.
///
/// # Examples
/// ```
/// use namegrad::data::sampler::{Distributed, Random};
/// use namegrad::data::{Loader, Samples};
/// let mut seen = vec![];
/// for rank in 0..2 {
///     let sampler = Distributed::new(Random::new(), rank, 2)?;
///     let data = Samples::new(vec!["a", "b", "c", "d"]);
///     let loader = Loader::builder(data).batch_size(2).sampler(sampler).seed(7).build()?;
///     seen.extend(loader.iter().next().unwrap()?);
/// }
/// seen.sort();
/// assert_eq!(seen, ["a", "b", "c", "d"]);
/// # Ok::<(), namegrad::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Distributed<S> {
    of: S,
    rank: usize,
    world: usize,
    drop_last: bool,
}

impl<S: Sampler> Distributed<S> {
    /// The part of process `rank` of `world`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) unless `rank` is less than `world`.
    #[track_caller]
    pub fn new(of: S, rank: usize, world: usize) -> Result<Distributed<S>> {
        match rank < world {
            true => Ok(Distributed { of, rank, world, drop_last: false }),
            false => Err(refused("Distributed", format!("expected a rank less than {world}, got {rank}"))),
        }
    }

    /// Sets whether the last samples are dropped if they are not enough for all processes, instead of
    /// extending the epoch.
    pub fn drop_last(mut self, drop_last: bool) -> Distributed<S> {
        self.drop_last = drop_last;
        self
    }

    fn part(&self, total: usize) -> Result<usize> {
        let part = if self.drop_last { total / self.world } else { total.div_ceil(self.world) };
        match part {
            0 => Err(refused("Distributed", format!("{total} samples are none for each of {}", self.world))),
            _ => Ok(part),
        }
    }
}

impl<S: Sampler> Sampler for Distributed<S> {
    fn indices(&self, epoch: &Epoch) -> Result<Vec<usize>> {
        let whole = self.of.indices(epoch)?;
        let part = self.part(whole.len())?;
        Ok(crate::list((0..part).map(|number| whole[(self.rank + number * self.world) % whole.len()])))
    }

    fn count(&self, epoch: &Epoch) -> Result<usize> {
        self.part(self.of.count(epoch)?)
    }

    fn whole(&self, epoch: &Epoch) -> Result<Vec<usize>> {
        self.of.whole(epoch)
    }

    fn processes(&self) -> usize {
        self.world * self.of.processes()
    }
}
