//! [`Accuracy`]: the share of right predictions.

use super::classes::{TakesBatch, rows, update_all};
use super::percent;
use namegrad_core::{DType, Dim, NamedTensor, Result, Whole};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The share of the samples whose target is among the `k` classes with the largest logits; by default, whose
/// target is the class with the largest logit.
///
/// Of equal logits, those of the first classes count as larger. NaN counts as larger than any number. Both
/// are as in `argmax`.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::meters::Accuracy;
/// let logits = Tensor::new([[0.1, 0.2, 0.7], [0.3, 0.4, 0.3]])?.refine_names(["N", "class"])?;
/// let target = Tensor::new([2, 0])?.refine_names(["N"])?;
/// let (mut first, mut second) = (Accuracy::new(), Accuracy::top(2));
/// first.update(&logits, &target, "class")?;
/// second.update(&logits, &target, "class")?;
/// assert_eq!((first.compute(), second.compute()), (0.5, 1.0));
/// assert_eq!(first.to_string(), "50.00 %");
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// scikit-learn, `accuracy_score` and `top_k_accuracy_score`. torchmetrics, `MulticlassAccuracy` with
/// `average="micro"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    k: usize,
    ignored: Option<i64>,
    right: u64,
    seen: u64,
}

impl Accuracy {
    /// The largest logit must be that of the target.
    pub fn new() -> Accuracy {
        Accuracy::top(1)
    }

    /// The logit of the target must be among the `k` largest.
    pub fn top(k: usize) -> Accuracy {
        Accuracy { k, ignored: None, right: 0, seen: 0 }
    }

    /// Ignores samples with this target, such as padding. By default no target is ignored, whereas cross
    /// entropy ignores -100.
    pub fn ignore_index(mut self, index: impl Whole) -> Accuracy {
        self.ignored = index.number().try_into().ok(); // no class is beyond `i64`
        self
    }

    /// Adds a batch.
    ///
    /// # Shapes
    /// - `logits`: any dims that include `dim`, the classes
    /// - `target`: the dims of `logits` without `dim`, in any order if they are named; class indices
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] or [`ErrorKind::DimRange`] if `logits` have no `dim`, [`ErrorKind::Shape`]
    /// or [`ErrorKind::NameMismatch`] if the other dims are not those of `target`, [`ErrorKind::DType`] for a
    /// target that is not of an integer dtype, [`ErrorKind::Index`] for a class that there is not.
    ///
    /// [`ErrorKind::NameNotFound`]: namegrad_core::ErrorKind::NameNotFound
    /// [`ErrorKind::DimRange`]: namegrad_core::ErrorKind::DimRange
    /// [`ErrorKind::Shape`]: namegrad_core::ErrorKind::Shape
    /// [`ErrorKind::NameMismatch`]: namegrad_core::ErrorKind::NameMismatch
    /// [`ErrorKind::DType`]: namegrad_core::ErrorKind::DType
    /// [`ErrorKind::Index`]: namegrad_core::ErrorKind::Index
    #[track_caller]
    pub fn update(
        &mut self,
        logits: impl AsRef<NamedTensor>,
        target: impl AsRef<NamedTensor>,
        dim: impl Into<Dim>,
    ) -> Result<()> {
        update_all(&mut [self], logits, target, dim).map_err(|error| error.of("Accuracy"))
    }

    /// The share of right predictions, from 0 to 1.
    pub fn compute(&self) -> f64 {
        self.right as f64 / self.seen as f64
    }

    /// The number of samples so far.
    pub fn count(&self) -> u64 {
        self.seen
    }

    /// Starts again.
    pub fn reset(&mut self) {
        (self.right, self.seen) = (0, 0);
    }

    /// Adds the batches of another meter.
    pub fn merge(&mut self, other: &Accuracy) {
        self.right += other.right;
        self.seen += other.seen;
    }
}

impl TakesBatch for Accuracy {
    fn ignored(&self) -> Option<i64> {
        self.ignored
    }

    fn take(&mut self, logits: &NamedTensor, targets: &[Option<usize>]) -> Result<()> {
        let logits = logits.to(DType::F64)?.to_vec::<f64>()?;
        for (row, target) in rows(&logits, targets) {
            let Some(target) = target else { continue };
            self.right += u64::from(rank(row, target) < self.k);
            self.seen += 1;
        }
        Ok(())
    }
}

impl Default for Accuracy {
    fn default() -> Accuracy {
        Accuracy::new()
    }
}

impl fmt::Display for Accuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        percent(f, self.compute())
    }
}

/// The number of classes with greater scores than a class.
fn rank(row: &[f64], class: usize) -> usize {
    let own = row[class];
    let before = |(other, value): (usize, &f64)| match (value.is_nan(), own.is_nan()) {
        (false, false) => *value > own || *value == own && other < class,
        (true, true) => other < class,
        (value, _) => value,
    };
    row.iter().enumerate().filter(|pair| before(*pair)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_and_nan() {
        assert_eq!([0, 1, 2].map(|class| rank(&[1.0, 1.0, 2.0], class)), [1, 2, 0]);
        assert_eq!([0, 1, 2].map(|class| rank(&[f64::INFINITY, f64::NAN, f64::NAN], class)), [2, 0, 1]);
    }
}
