//! [`ConfusionMatrix`]: which class is predicted as which, and precision, recall and F1.

use super::classes::{TakesBatch, indices, is_whole, update_all};
use super::pairs::{extra_dim, in_order_of, squeezed};
use super::percent;
use namegrad_autograd::Tensor;
use namegrad_core::{Dim, Error, ErrorKind, NamedTensor, Result, Whole, in_rust};
use namegrad_io::sorted::list_of;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A confusion matrix: the number of samples of each class that were predicted as each class. Prints a table
/// with precision and recall.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::meters::{Average, ConfusionMatrix};
/// let mut matrix = ConfusionMatrix::new(2).names(["cat", "dog"])?;
/// let predicted = Tensor::new([0, 1, 1, 1])?;
/// let target = Tensor::new([0, 0, 1, 1])?;
/// matrix.update_classes(&predicted, &target)?;
/// assert_eq!(matrix.compute()?.to_vec::<i64>()?, [1, 1, 0, 2]); // [true, predicted]
/// assert_eq!(matrix.accuracy(), 0.75);
/// assert_eq!(matrix.scores(Average::Macro).recall, 0.75);
/// assert_eq!(matrix.per_class()[1].precision, 2.0 / 3.0);
/// let table = "\
/// true\\predicted  cat  dog  precision   recall       F1
///            cat    1    1    100.0 %   50.0 %   66.7 %
///            dog    0    2     66.7 %  100.0 %   80.0 %
/// accuracy 75.00 % (3 of 4)";
/// assert_eq!(matrix.to_string(), table);
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// scikit-learn, `confusion_matrix` and `precision_recall_fscore_support`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfusionMatrix {
    /// The name of each class.
    names: Vec<String>,
    ignored: Option<i64>,
    /// In row-major order: `[true, predicted]`.
    counts: Vec<u64>,
}

/// A way to average the scores of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// The scores of all predictions together. All are equal to the accuracy, because each sample has one
    /// class.
    Micro,
    /// The mean over the classes that occur in targets or predictions.
    Macro,
    /// The mean over the classes, weighted by the number of their samples.
    Weighted,
}

/// Scores of a class, or averages of them.
///
/// A score whose denominator is 0 is 0, as in scikit-learn: the precision of a class that is never predicted,
/// and the recall of a class without samples. Averages over nothing are NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scores {
    /// The share of the predictions of the class that are right: `TP / (TP + FP)`.
    pub precision: f64,
    /// The share of the samples of the class that are predicted as it: `TP / (TP + FN)`.
    pub recall: f64,
    /// Their harmonic mean: `2 TP / (2 TP + FP + FN)`.
    pub f1: f64,
    /// The number of samples of the class.
    pub support: u64,
}

impl ConfusionMatrix {
    /// Without any sample. The names of the classes are their numbers.
    pub fn new(classes: usize) -> ConfusionMatrix {
        let names = list_of(classes, &mut |class| class.to_string());
        ConfusionMatrix { names, ignored: None, counts: vec![0; classes * classes] }
    }

    /// Names the classes.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if there is not one name for each class.
    #[track_caller]
    pub fn names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Result<ConfusionMatrix> {
        let names: Vec<String> = crate::list(names.into_iter().map(N::into));
        Error::ensure(names.len() == self.classes(), ErrorKind::Value, "names", || {
            format!("expected {} names of classes, got {}", self.classes(), names.len())
        })?;
        self.names = names;
        Ok(self)
    }

    /// Ignores samples with this target, such as padding.
    pub fn ignore_index(mut self, index: impl Whole) -> ConfusionMatrix {
        self.ignored = index.number().try_into().ok(); // no class is beyond `i64`
        self
    }

    /// Adds a batch; the class with the largest logit is predicted. Of equal logits it is the first, and NaN
    /// counts as larger than any number.
    ///
    /// # Shapes
    /// Those of [`Accuracy::update`](super::Accuracy::update).
    ///
    /// # Errors
    /// Those of [`Accuracy::update`](super::Accuracy::update); [`ErrorKind::Shape`] for another number of
    /// classes than the matrix has.
    #[track_caller]
    pub fn update(
        &mut self,
        logits: impl AsRef<NamedTensor>,
        target: impl AsRef<NamedTensor>,
        dim: impl Into<Dim>,
    ) -> Result<()> {
        update_all(&mut [self], logits, target, dim).map_err(|error| error.of("ConfusionMatrix"))
    }

    /// Adds a batch of predicted classes, of the same dims as the targets.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] or [`ErrorKind::NameMismatch`] if the dims differ, [`ErrorKind::DType`] for
    /// classes that are not of an integer dtype, [`ErrorKind::Index`] for a class that there is not.
    #[track_caller]
    pub fn update_classes(
        &mut self,
        predicted: impl AsRef<NamedTensor>,
        target: impl AsRef<NamedTensor>,
    ) -> Result<()> {
        let (predicted, target, classes) = (predicted.as_ref(), target.as_ref(), self.classes());
        let of = |error: Error| error.of("ConfusionMatrix");
        let repair = || as_classes(predicted, target, classes);
        let ordered = in_order_of(predicted, target, &repair).map_err(of)?;
        let targets = indices(&ordered, classes, self.ignored).map_err(of)?;
        let predicted = indices(predicted, classes, None).map_err(|error| of(error).with_repair(repair()))?;
        self.count_pairs(&targets, predicted.into_iter().flatten());
        Ok(())
    }

    /// Counts targets, except those that are ignored, with what was predicted for each.
    fn count_pairs(&mut self, targets: &[Option<usize>], predicted: impl Iterator<Item = usize>) {
        let classes = self.classes();
        for (target, predicted) in targets.iter().zip(predicted) {
            let Some(target) = target else { continue };
            self.counts[target * classes + predicted] += 1;
        }
    }

    /// The counts `[true, predicted]`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn compute(&self) -> Result<Tensor> {
        let counts: Vec<i64> = crate::list(self.counts.iter().map(|count| *count as i64));
        Tensor::from_slice(&counts, [("true", self.classes()), ("predicted", self.classes())])
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.names.len()
    }

    /// The names of the classes.
    pub fn class_names(&self) -> &[String] {
        &self.names
    }

    /// The number of samples of `class` that were predicted as `predicted`; 0 if there is no such class.
    pub fn count(&self, class: usize, predicted: usize) -> u64 {
        let inside = class < self.classes() && predicted < self.classes();
        if inside { self.counts[class * self.classes() + predicted] } else { 0 }
    }

    /// The share of right predictions, from 0 to 1.
    pub fn accuracy(&self) -> f64 {
        self.right() as f64 / self.total() as f64
    }

    /// The scores of each class.
    pub fn per_class(&self) -> Vec<Scores> {
        let ratio = |part: u64, whole: u64| if whole > 0 { part as f64 / whole as f64 } else { 0.0 };
        let mut all = Vec::new();
        for class in 0..self.classes() {
            let (right, support, predicted) =
                (self.count(class, class), self.support(class), self.predicted(class));
            all.push(Scores {
                precision: ratio(right, predicted),
                recall: ratio(right, support),
                f1: ratio(2 * right, support + predicted),
                support,
            });
        }
        all
    }

    /// The scores of all classes together; the support is the number of samples.
    pub fn scores(&self, average: Average) -> Scores {
        let (support, scores) = (self.total(), self.per_class());
        if average == Average::Micro {
            let accuracy = self.accuracy();
            return Scores { precision: accuracy, recall: accuracy, f1: accuracy, support };
        }
        let (mut weights, mut sums) = (0.0, [0.0; 3]);
        for (class, scores) in scores.iter().enumerate() {
            let weight = match average {
                Average::Weighted => scores.support as f64,
                _ => f64::from(u8::from(scores.support + self.predicted(class) > 0)),
            };
            weights += weight;
            for (sum, score) in sums.iter_mut().zip([scores.precision, scores.recall, scores.f1]) {
                *sum += weight * score;
            }
        }
        let [precision, recall, f1] = sums.map(|sum| sum / weights);
        Scores { precision, recall, f1, support }
    }

    /// Starts again.
    pub fn reset(&mut self) {
        self.counts.fill(0);
    }

    /// Adds the batches of another matrix.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if it has another number of classes.
    #[track_caller]
    pub fn merge(&mut self, other: &ConfusionMatrix) -> Result<()> {
        Error::ensure(self.classes() == other.classes(), ErrorKind::Value, "merge", || {
            format!("a matrix of {} classes and one of {}", self.classes(), other.classes())
        })?;
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, other)| *own += other);
        Ok(())
    }

    /// The number of samples of a class.
    fn support(&self, class: usize) -> u64 {
        (0..self.classes()).map(|predicted| self.count(class, predicted)).sum()
    }

    /// The number of samples that were predicted as a class.
    fn predicted(&self, class: usize) -> u64 {
        (0..self.classes()).map(|truth| self.count(truth, class)).sum()
    }

    fn right(&self) -> u64 {
        (0..self.classes()).map(|class| self.count(class, class)).sum()
    }

    fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// The repair for predictions that are not classes; empty if there is none.
#[cold]
fn as_classes(predicted: &NamedTensor, target: &NamedTensor, classes: usize) -> String {
    let scores = match extra_dim(predicted, target) {
        Some(dim) if predicted.sizes()[dim] > 1 => {
            return format!("predicted.argmax({})?", in_rust(predicted, dim));
        }
        Some(dim) => format!("predicted.squeeze({})?", in_rust(predicted, dim)),
        None if predicted.numel() != target.numel() => return squeezed("predicted", predicted, target),
        None => "predicted".into(),
    };
    match predicted.dtype().is_floating_point() {
        false if scores == "predicted" => String::new(),
        false => scores,
        true if classes == 2 => {
            format!("{scores}.gt(0.5)? for probabilities of class 1, {scores}.gt(0.0)? for logits")
        }
        true if is_whole(predicted) => format!("{scores}.to(DType::I64)?"),
        true => String::new(),
    }
}

impl TakesBatch for ConfusionMatrix {
    fn ignored(&self) -> Option<i64> {
        self.ignored
    }

    #[track_caller]
    fn check(&self, classes: usize) -> Result<()> {
        Error::ensure(classes == self.classes(), ErrorKind::Shape, "update", || {
            format!("the matrix has {} classes, and the logits have {classes}", self.classes())
        })
    }

    fn take(&mut self, logits: &NamedTensor, targets: &[Option<usize>]) -> Result<()> {
        let predicted = logits.argmax(-1)?.to_vec::<i64>()?;
        self.count_pairs(targets, predicted.into_iter().map(|class| class as usize));
        Ok(())
    }
}

impl fmt::Display for ConfusionMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CORNER: &str = "true\\predicted";
        let length = |name: &String| name.chars().count();
        let longest = self.names.iter().map(length).max().unwrap_or(0);
        let largest = self.counts.iter().map(|count| count.to_string().len()).max().unwrap_or(0);
        let (first, width) = (longest.max(CORNER.len()), 2 + largest.max(longest));

        write!(f, "{CORNER:>first$}")?;
        for name in &self.names {
            write!(f, "{name:>width$}")?;
        }
        writeln!(f, "{:>11}{:>9}{:>9}", "precision", "recall", "F1")?;
        let share = |value: f64, of: u64| match of {
            0 => "-".to_string(),
            _ => format!("{:.1} %", 100.0 * value),
        };
        for (class, scores) in self.per_class().iter().enumerate() {
            write!(f, "{:>first$}", self.names[class])?;
            for predicted in 0..self.classes() {
                write!(f, "{:>width$}", self.count(class, predicted))?;
            }
            let precision = share(scores.precision, self.predicted(class));
            let recall = share(scores.recall, scores.support);
            let f1 = share(scores.f1, self.predicted(class) + scores.support);
            writeln!(f, "{precision:>11}{recall:>9}{f1:>9}")?;
        }
        f.write_str("accuracy ")?;
        percent(f, self.accuracy())?;
        write!(f, " ({} of {})", self.right(), self.total())
    }
}
