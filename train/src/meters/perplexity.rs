//! [`Perplexity`] of a language model.

use super::classes::{TakesBatch, rows, update_all};
use namegrad_core::{DType, Dim, NamedTensor, Result, Whole};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The perplexity of predicted distributions: `exp(-mean ln p(target))`, where `p` is the softmax of the
/// logits.
///
/// A NaN among the logits makes it NaN, and a target of probability 0 infinite. From mean losses, it is
/// `mean.compute().exp()`.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::meters::Perplexity;
/// let logits = Tensor::zeros([("N", 2), ("time", 3), ("vocab", 50)])?;
/// let target = Tensor::randint(0, 50, [("time", 3), ("N", 2)])?; // dims are found by name
/// let mut perplexity = Perplexity::new();
/// perplexity.update(&logits, &target, "vocab")?;
/// assert!((perplexity.compute() - 50.0).abs() < 1e-3);
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Jelinek, Mercer, Bahl, Baker, *Perplexity: a measure of the difficulty of speech recognition tasks*
/// (1977). torchmetrics, `Perplexity`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Perplexity {
    ignored: Option<i64>,
    /// The sum of `-ln p`.
    sum: f64,
    seen: u64,
}

impl Perplexity {
    /// Without any prediction.
    pub fn new() -> Perplexity {
        Perplexity::default()
    }

    /// Ignores targets equal to this, such as padding. By default no target is ignored, whereas cross entropy
    /// ignores -100.
    pub fn ignore_index(mut self, index: impl Whole) -> Perplexity {
        self.ignored = index.number().try_into().ok(); // no class is beyond `i64`
        self
    }

    /// Adds a batch.
    ///
    /// # Shapes
    /// Those of [`Accuracy::update`](super::Accuracy::update); the classes are the tokens.
    ///
    /// # Errors
    /// Those of [`Accuracy::update`](super::Accuracy::update).
    #[track_caller]
    pub fn update(
        &mut self,
        logits: impl AsRef<NamedTensor>,
        target: impl AsRef<NamedTensor>,
        dim: impl Into<Dim>,
    ) -> Result<()> {
        update_all(&mut [self], logits, target, dim).map_err(|error| error.of("Perplexity"))
    }

    /// The perplexity of all targets so far.
    pub fn compute(&self) -> f64 {
        (self.sum / self.seen as f64).exp()
    }

    /// The number of targets so far.
    pub fn count(&self) -> u64 {
        self.seen
    }

    /// Starts again.
    pub fn reset(&mut self) {
        (self.sum, self.seen) = (0.0, 0);
    }

    /// Adds the batches of another meter.
    pub fn merge(&mut self, other: &Perplexity) {
        self.sum += other.sum;
        self.seen += other.seen;
    }
}

impl TakesBatch for Perplexity {
    fn ignored(&self) -> Option<i64> {
        self.ignored
    }

    fn take(&mut self, logits: &NamedTensor, targets: &[Option<usize>]) -> Result<()> {
        let wide = if logits.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
        let log_p = logits.to(wide)?.log_softmax(-1)?.to(DType::F64)?.to_vec::<f64>()?;
        for (row, target) in rows(&log_p, targets) {
            let Some(target) = target else { continue };
            self.sum -= row[target];
            self.seen += 1;
        }
        Ok(())
    }
}

/// Two decimals: `12.34`.
impl fmt::Display for Perplexity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seen {
            0 => f.write_str("-"),
            _ => write!(f, "{:.2}", self.compute()),
        }
    }
}
