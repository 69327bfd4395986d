//! Samples in random order: [`Random`], [`SubsetRandom`].

use super::{Epoch, Sampler, refused};
use namegrad_core::Result;
use namegrad_io::sorted::list_of;

/// All samples in random order, another one in each epoch: what `.shuffle(true)` does. With
/// [`replacement`](Self::replacement), each index is drawn from all samples. It is PyTorch's `RandomSampler`.
///
/// ```
/// use namegrad::data::sampler::Random;
/// use namegrad::data::{Loader, Samples};
/// // 1000 random windows of a text in each epoch, whatever its length.
/// let sampler = Random::new().replacement(true).num_samples(1000);
/// let loader = Loader::builder(Samples::new(vec![1, 2, 3])).batch_size(10).sampler(sampler).build()?;
/// assert_eq!(loader.len()?, 100);
/// # Ok::<(), namegrad::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Random {
    replacement: bool,
    num_samples: Option<usize>,
}

impl Random {
    /// A sampler of all samples, each once.
    pub fn new() -> Random {
        Random::default()
    }

    /// Sets whether a sample can be drawn several times in an epoch.
    pub fn replacement(mut self, replacement: bool) -> Random {
        self.replacement = replacement;
        self
    }

    /// Sets how many samples an epoch has; by default as many as the data set. Without replacement, more
    /// samples than the data set has are drawn in several rounds.
    pub fn num_samples(mut self, num_samples: usize) -> Random {
        self.num_samples = Some(num_samples);
        self
    }
}

impl Sampler for Random {
    fn indices(&self, epoch: &Epoch) -> Result<Vec<usize>> {
        let count = self.count(epoch)?;
        if self.replacement && epoch.samples > 0 {
            let numbers = epoch.uniform(count)?;
            let scaled = |at: usize| ((numbers[at] * epoch.samples as f64) as usize).min(epoch.samples - 1);
            return Ok(list_of(count, &mut { scaled }));
        }
        let mut indices = epoch.permutation(epoch.samples)?;
        if indices.is_empty() {
            return Ok(indices);
        }
        for round in 1.. {
            if indices.len() >= count {
                break;
            }
            let seed = epoch.seed.wrapping_add(round);
            indices.extend(crate::random::permutation(epoch.samples, seed, !epoch.number)?);
        }
        indices.truncate(count);
        Ok(indices)
    }

    fn count(&self, epoch: &Epoch) -> Result<usize> {
        match self.num_samples {
            Some(0) => Err(refused("Random", "expected at least one sample in an epoch, got num_samples 0")
                .with_repair(format!("Random::new().num_samples({})", epoch.samples))),
            count => Ok(count.unwrap_or(epoch.samples)),
        }
    }
}

/// The samples at some indices, each once, in random order: PyTorch's `SubsetRandomSampler`.
///
/// ```
/// use namegrad::data::sampler::SubsetRandom;
/// use namegrad::data::{Loader, Samples};
/// let data = Samples::new(vec!["a", "b", "c"]);
/// let loader = Loader::builder(data).batch_size(2).sampler(SubsetRandom::new([0, 2])).build()?;
/// let mut batch = loader.iter().next().unwrap()?;
/// batch.sort();
/// assert_eq!(batch, ["a", "c"]);
/// # Ok::<(), namegrad::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SubsetRandom {
    indices: Vec<usize>,
}

impl SubsetRandom {
    /// A sampler of the samples at these indices.
    pub fn new(indices: impl Into<Vec<usize>>) -> SubsetRandom {
        SubsetRandom { indices: indices.into() }
    }
}

impl Sampler for SubsetRandom {
    fn indices(&self, epoch: &Epoch) -> Result<Vec<usize>> {
        let mut order = epoch.permutation(self.indices.len())?;
        for place in &mut order {
            *place = self.indices[*place];
        }
        Ok(order)
    }

    fn count(&self, _: &Epoch) -> Result<usize> {
        Ok(self.indices.len())
    }
}
