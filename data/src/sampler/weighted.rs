//! [`Weighted`]: samples with given probabilities.

use super::{Epoch, Sampler, refused};
use namegrad_core::{Error, Result};
use namegrad_io::sorted;

const OP: &str = "Weighted";

/// Samples drawn with probabilities proportional to their weights: PyTorch's `WeightedRandomSampler`.
///
/// The weight of a sample is often one divided by the number of samples of its class, so that all classes are
/// equally likely.
///
/// # Source
/// Without replacement: Efraimidis, Spirakis, *Weighted random sampling with a reservoir* (2006), algorithm
/// A.
///
/// # Examples
/// ```
/// use namegrad::data::sampler::Weighted;
/// use namegrad::data::{Loader, Samples};
/// let data = Samples::new(vec!["never", "seldom", "often"]);
/// let sampler = Weighted::new([0.0, 0.1, 0.9]).num_samples(100);
/// let loader = Loader::builder(data).batch_size(100).sampler(sampler).build()?;
/// let batch = loader.iter().next().unwrap()?;
/// assert!(!batch.contains(&"never"));
/// assert!(batch.iter().filter(|name| **name == "often").count() > 70);
/// # Ok::<(), namegrad::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Weighted {
    weights: Vec<f64>,
    num_samples: Option<usize>,
    replacement: bool,
}

impl Weighted {
    /// A sampler that draws, with replacement, as many samples as there are weights. There is a weight for
    /// each sample.
    pub fn new(weights: impl Into<Vec<f64>>) -> Weighted {
        Weighted { weights: weights.into(), num_samples: None, replacement: true }
    }

    /// Sets how many samples an epoch has.
    pub fn num_samples(mut self, num_samples: usize) -> Weighted {
        self.num_samples = Some(num_samples);
        self
    }

    /// Sets whether a sample can be drawn several times in an epoch; by default it can.
    pub fn replacement(mut self, replacement: bool) -> Weighted {
        self.replacement = replacement;
        self
    }

    fn checked(&self, epoch: &Epoch) -> Result<()> {
        let wrong = |message: String| -> Result<(), Error> { Err(refused(OP, message)) };
        let weights = &self.weights;
        if weights.len() != epoch.samples {
            return wrong(format!("{} weights for {} samples", weights.len(), epoch.samples));
        }
        if let Some(index) = weights.iter().position(|weight| !(*weight >= 0.0 && weight.is_finite())) {
            let weight = weights[index];
            return wrong(format!(
                "weights are finite and not negative, but that of sample {index} is {weight:?}"
            ));
        }
        let positive = weights.iter().filter(|weight| **weight > 0.0).count();
        let wanted = self.num_samples.unwrap_or(weights.len());
        if wanted == 0 || positive == 0 || !weights.iter().sum::<f64>().is_finite() {
            return wrong(format!(
                "expected at least one sample in an epoch and weights with a positive, finite sum: {wanted} samples, \
                 {positive} positive weights"
            ));
        }
        if !self.replacement && wanted > positive {
            let message =
                format!("cannot draw {wanted} samples without replacement from {positive} positive weights");
            return Err(refused(OP, message).with_repair(format!(".num_samples({positive})")));
        }
        Ok(())
    }
}

impl Sampler for Weighted {
    fn indices(&self, epoch: &Epoch) -> Result<Vec<usize>> {
        let count = self.count(epoch)?;
        if self.replacement {
            let mut total = 0.0;
            let mut sums = self.weights.clone(); // the sum of the weights up to each sample
            sums.iter_mut().for_each(|sum| {
                total += *sum;
                *sum = total;
            });
            // The last sample that can be drawn, should rounding give the total itself.
            let last = self.weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0);
            let numbers = epoch.uniform(count)?;
            let drawn = |at: usize| sums.partition_point(|sum| *sum <= numbers[at] * total).min(last);
            return Ok(sorted::list_of(count, &mut { drawn }));
        }
        let (mut keys, mut indices) = (Vec::new(), Vec::new());
        for (index, number) in epoch.uniform(self.weights.len())?.into_iter().enumerate() {
            let weight = self.weights[index];
            if weight > 0.0 {
                keys.push((1.0 - number).ln() / weight);
                indices.push(index);
            }
        }
        let mut order = sorted::order(keys.len(), &|a, b| keys[b].total_cmp(&keys[a]).is_lt());
        order.truncate(count);
        for at in &mut order {
            *at = indices[*at];
        }
        Ok(order)
    }

    fn count(&self, epoch: &Epoch) -> Result<usize> {
        self.checked(epoch)?;
        Ok(self.num_samples.unwrap_or(self.weights.len()))
    }
}
