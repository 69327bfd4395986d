//! [`RocAuc`]: how well scores separate two classes.

use super::pairs::in_order_of;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result};
use namegrad_io::sorted::sort;
use namegrad_io::text::shapes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The area under the ROC curve of the scores of two classes: how often a sample of class 1 has a larger
/// score than one of class 0, over all such pairs. Equal scores count half.
///
/// It is exact, as a fraction of whole numbers. For that it keeps the scores of all samples, 8 bytes for
/// each. A score can be a probability, a logit or anything else that is larger for class 1; only the order
/// matters.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::meters::RocAuc;
/// let mut auc = RocAuc::new();
/// auc.update(&Tensor::new([0.1, 0.4])?, &Tensor::new([0, 0])?)?;
/// auc.update(&Tensor::new([0.35, 0.8])?, &Tensor::new([1, 1])?)?;
/// assert_eq!(auc.compute(), 0.75); // one of four pairs is in the wrong order
/// # Ok::<(), Error>(())
/// ```
///
/// For a model with two logits, the score is their difference:
/// ```
/// # use namegrad::prelude::*;
/// # use namegrad::train::meters::RocAuc;
/// # let mut auc = RocAuc::new();
/// let logits = Tensor::new([[1.0, -1.0], [0.0, 2.0]])?.refine_names(["N", "class"])?;
/// let target = Tensor::new([0, 1])?.refine_names(["N"])?;
/// auc.update(&logits.select("class", 1)?.sub(&logits.select("class", 0)?)?, &target)?;
/// assert_eq!(auc.compute(), 1.0);
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Hanley, McNeil, *The meaning and use of the area under a receiver operating characteristic (ROC) curve*
/// (1982); scikit-learn, `roc_auc_score`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RocAuc {
    /// The scores of each class, as whole numbers in the same order: JSON has no infinite numbers.
    scores: [Vec<u64>; 2],
    /// The number of scores that are NaN.
    nan: u64,
}

impl RocAuc {
    /// Without any sample.
    pub fn new() -> RocAuc {
        RocAuc::default()
    }

    /// Adds a batch.
    ///
    /// # Shapes
    /// - `scores`: any dims
    /// - `target`: the same dims, in any order if they are named; 0 and 1 of any dtype, or `bool`
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] or [`ErrorKind::NameMismatch`] if the dims differ, [`ErrorKind::Value`] for a
    /// target that is neither 0 nor 1.
    #[track_caller]
    pub fn update(&mut self, scores: impl AsRef<NamedTensor>, target: impl AsRef<NamedTensor>) -> Result<()> {
        let scores = scores.as_ref();
        let target = in_order_of(scores, target.as_ref())?.to(DType::F64)?.to_vec::<f64>()?;
        if let Some(other) = target.iter().find(|class| **class != 0.0 && **class != 1.0) {
            let message = format!("a target is 0 or 1, got {other}");
            return Err(Error::new(ErrorKind::Value, "update", message).with_operands(shapes(&[scores])));
        }
        for (score, class) in scores.to(DType::F64)?.to_vec::<f64>()?.into_iter().zip(target) {
            match score.is_nan() {
                true => self.nan += 1,
                false => self.scores[usize::from(class == 1.0)].push(in_order(score)),
            }
        }
        Ok(())
    }

    /// The area, from 0 to 1; 0.5 is that of random scores. It is NaN without samples of both classes, and if
    /// a score was NaN.
    pub fn compute(&self) -> f64 {
        let [mut negative, mut positive] = self.scores.clone();
        if negative.is_empty() || positive.is_empty() || self.nan > 0 {
            return f64::NAN;
        }
        sort(&mut negative, &|a, b| a < b);
        sort(&mut positive, &|a, b| a < b);
        // The pairs in the right order count 2, those of equal scores 1.
        let (mut below, mut up_to, mut points) = (0, 0, 0_u128);
        for score in &positive {
            below += negative[below..].iter().take_while(|other| *other < score).count();
            up_to = up_to.max(below);
            up_to += negative[up_to..].iter().take_while(|other| *other <= score).count();
            points += (below + up_to) as u128;
        }
        points as f64 / (2 * negative.len() as u128 * positive.len() as u128) as f64
    }

    /// The number of samples so far.
    pub fn count(&self) -> u64 {
        self.nan + self.scores.iter().map(|scores| scores.len() as u64).sum::<u64>()
    }

    /// Starts again.
    pub fn reset(&mut self) {
        *self = RocAuc::new();
    }

    /// Adds the batches of another meter.
    pub fn merge(&mut self, other: &RocAuc) {
        self.nan += other.nan;
        self.scores.iter_mut().zip(&other.scores).for_each(|(own, other)| own.extend(other));
    }
}

/// Four decimals: `0.9132`.
impl fmt::Display for RocAuc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.compute() {
            area if area.is_nan() => f.write_str("-"),
            area => write!(f, "{area:.4}"),
        }
    }
}

/// A whole number for a score that is not NaN; they have the same order.
fn in_order(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits(); // -0 becomes 0
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}
