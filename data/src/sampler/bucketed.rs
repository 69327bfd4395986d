//! [`Bucketed`]: batches of samples of similar lengths.

use super::{Epoch, Sampler, refused};
use crate::random::permutation;
use namegrad_core::Result;
use namegrad_io::sorted;

/// Random batches whose samples have similar lengths, so that little is padded. The order of the batches is
/// random too, except that a last batch that is not full stays the last.
///
/// # Examples
/// ```
/// use namegrad::data::sampler::Bucketed;
/// use namegrad::data::{Loader, Samples};
/// let words = vec!["an", "alphabet", "of", "anything"];
/// let sampler = Bucketed::new(words.iter().map(|word| word.len()).collect::<Vec<_>>());
/// let loader = Loader::builder(Samples::new(words)).batch_size(2).sampler(sampler).build()?;
/// for batch in loader.iter() {
///     let batch = batch?;
///     assert_eq!(batch[0].len(), batch[1].len());
/// }
/// # Ok::<(), namegrad::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bucketed {
    lengths: Vec<usize>,
    batches: usize,
}

impl Bucketed {
    /// A sampler for samples of these lengths.
    pub fn new(lengths: impl Into<Vec<usize>>) -> Bucketed {
        Bucketed { lengths: lengths.into(), batches: 100 }
    }

    /// Sets from how many batches, drawn at random, the samples of a batch are taken together; 100 by
    /// default. More need less padding, fewer give more random batches.
    pub fn batches(mut self, batches: usize) -> Bucketed {
        self.batches = batches.max(1);
        self
    }
}

impl Sampler for Bucketed {
    fn indices(&self, epoch: &Epoch) -> Result<Vec<usize>> {
        let count = self.count(epoch)?;
        let mut order = epoch.permutation(count)?;
        for pool in order.chunks_mut(self.batches.saturating_mul(epoch.batch_size)) {
            sorted::sort(pool, &|a, b| self.lengths[*a] < self.lengths[*b]);
        }
        let full = count / epoch.batch_size;
        let mut indices = Vec::new();
        for batch in permutation(full, epoch.seed, !epoch.number)? {
            indices.extend_from_slice(&order[batch * epoch.batch_size..][..epoch.batch_size]);
        }
        indices.extend_from_slice(&order[full * epoch.batch_size..]);
        Ok(indices)
    }

    fn count(&self, epoch: &Epoch) -> Result<usize> {
        match self.lengths.len() == epoch.samples {
            true => Ok(epoch.samples),
            false => {
                let message = format!("{} lengths for {} samples", self.lengths.len(), epoch.samples);
                Err(refused("Bucketed", message))
            }
        }
    }
}
