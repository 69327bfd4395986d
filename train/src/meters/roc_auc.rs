//! [`RocAuc`]: how well scores separate two classes, and the points of its curves.

use super::pairs::{extra_dim, in_order_of, squeezed};
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result, in_rust};
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
        let (scores, target) = (scores.as_ref(), target.as_ref());
        let target = in_order_of(scores, target, &|| one_score(scores, target))
            .map_err(|error| error.of("RocAuc"))?
            .to(DType::F64)?
            .to_vec::<f64>()?;
        if let Some(other) = target.iter().find(|class| **class != 0.0 && **class != 1.0) {
            let message = format!("a target is 0 or 1, got {other}");
            return Err(Error::new(ErrorKind::Value, "RocAuc", message).with_operands(shapes(&[scores])));
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
        let (mut twice, mut before) = (0_u128, [0, 0]);
        for (_, [negative, positive]) in self.counts() {
            twice += (negative - before[0]) as u128 * (positive + before[1]) as u128;
            before = [negative, positive];
        }
        let [negative, positive] = before;
        twice as f64 / (2 * negative as u128 * positive as u128) as f64
    }

    /// The points of the ROC curve and of the curve of precision and recall: one for each score, from the
    /// largest one down, after a first one above all scores. Empty where [`compute`](Self::compute) is NaN.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::train::meters::RocAuc;
    /// let mut auc = RocAuc::new();
    /// auc.update(&Tensor::new([0.1, 0.4, 0.35, 0.8])?, &Tensor::new([0, 0, 1, 1])?)?;
    /// let points = auc.points();
    /// let roc: Vec<(f64, f64)> = points.iter().map(|p| (p.false_positive_rate, p.recall)).collect();
    /// assert_eq!(roc, [(0.0, 0.0), (0.0, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 1.0)]); // for Chart::line
    /// // The largest threshold that finds all of class 1.
    /// let found = points.iter().find(|p| p.recall == 1.0).unwrap();
    /// assert_eq!((found.threshold, found.precision), (0.35f32 as f64, 2.0 / 3.0));
    /// # Ok::<(), Error>(())
    /// ```
    #[doc(alias = "roc_curve")]
    #[doc(alias = "precision_recall_curve")]
    pub fn points(&self) -> Vec<RocPoint> {
        let counts = self.counts();
        let [negatives, positives] = counts.last().map_or([0; 2], |(_, counts)| *counts);
        let point = |(threshold, [negative, positive]): &(f64, [usize; 2])| RocPoint {
            threshold: *threshold,
            false_positive_rate: *negative as f64 / negatives as f64,
            recall: *positive as f64 / positives as f64,
            precision: if negative + positive == 0 {
                1.0
            } else {
                *positive as f64 / (negative + positive) as f64
            },
        };
        crate::list(counts.iter().map(point))
    }

    /// The average precision: the mean of the precisions at the [points](Self::points), weighted by how much
    /// the recall rises there, as in scikit-learn. NaN where [`compute`](Self::compute) is.
    pub fn average_precision(&self) -> f64 {
        let points = self.points();
        let steps = points.windows(2).map(|pair| (pair[1].recall - pair[0].recall) * pair[1].precision);
        if points.is_empty() { f64::NAN } else { steps.sum() }
    }

    /// How many samples of each class have at least each score, from the largest score down, after none at
    /// infinity. Empty without samples of both classes, and if a score was NaN.
    fn counts(&self) -> Vec<(f64, [usize; 2])> {
        let mut scores = self.scores.clone();
        if scores.iter().any(Vec::is_empty) || self.nan > 0 {
            return Vec::new();
        }
        scores.iter_mut().for_each(|scores| sort(scores, &|a, b| a > b));
        let (mut counts, mut found) = (vec![(f64::INFINITY, [0, 0])], [0, 0]);
        while let Some(score) = (0..2).filter_map(|class| scores[class].get(found[class])).max().copied() {
            for (count, scores) in found.iter_mut().zip(&scores) {
                *count += scores[*count..].iter().take_while(|other| **other == score).count();
            }
            counts.push((out_of_order(score), found));
        }
        counts
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

/// Samples with a score of at least `threshold` are taken for class 1: a point of [`RocAuc::points`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RocPoint {
    /// The least score for class 1; infinite at the first point.
    pub threshold: f64,
    /// The share of class 0 that is taken for class 1, the horizontal axis of the ROC curve.
    pub false_positive_rate: f64,
    /// The share of class 1 that is found, the true positive rate.
    pub recall: f64,
    /// The share of class 1 among the samples that are taken for it; 1 if there are none.
    pub precision: f64,
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

/// The repair for scores of several classes; empty if they are not that.
#[cold]
fn one_score(scores: &NamedTensor, target: &NamedTensor) -> String {
    let Some(dim) = extra_dim(scores, target) else { return squeezed("scores", scores, target) };
    let name = in_rust(scores, dim);
    match scores.sizes()[dim] {
        // In order of both probabilities and logits of class 1.
        2 => format!("scores.select({name}, 1)?.sub(&scores.select({name}, 0)?)?"),
        3.. => format!(
            "scores.select({name}, 1)? and target.eq(1)? for class 1 against all others, if these are probabilities"
        ),
        _ => squeezed("scores", scores, target),
    }
}

/// A whole number for a score that is not NaN; they have the same order.
fn in_order(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits(); // -0 becomes 0
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// The score of a number of [`in_order`].
fn out_of_order(number: u64) -> f64 {
    f64::from_bits(if number >> 63 == 1 { number & !(1 << 63) } else { !number })
}
