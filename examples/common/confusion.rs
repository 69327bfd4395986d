//! The confusion matrix of a classifier.

use std::fmt;

use super::Result;

/// How often each class was predicted as each class; printed as a table with precision and recall.
#[derive(Debug, Clone)]
pub(crate) struct ConfusionMatrix {
    /// `counts[true class][predicted class]`.
    counts: Vec<Vec<u64>>,
}

impl ConfusionMatrix {
    /// Counts pairs of true class and predicted class.
    ///
    /// # Errors
    /// A class that is not in `0..classes`.
    pub(crate) fn new(classes: usize, pairs: impl IntoIterator<Item = (i64, i64)>) -> Result<Self> {
        let index = |class: i64| {
            let index = usize::try_from(class).ok().filter(|&index| index < classes);
            index
                .ok_or_else(|| format!("confusion matrix: class {class} is not one of the {classes} classes"))
        };
        let mut counts = vec![vec![0; classes]; classes];
        for (truth, predicted) in pairs {
            counts[index(truth)?][index(predicted)?] += 1;
        }
        Ok(Self { counts })
    }

    /// The share of all predictions that are right, or `None` without predictions.
    pub(crate) fn accuracy(&self) -> Option<f64> {
        ratio(self.right(), self.total())
    }

    /// The share of the predictions of `class` that are right, or `None` if it was never predicted.
    pub(crate) fn precision(&self, class: usize) -> Option<f64> {
        ratio(self.counts[class][class], self.counts.iter().map(|row| row[class]).sum())
    }

    /// The share of the samples of `class` that were predicted as `class`, or `None` if there are no such
    /// samples.
    pub(crate) fn recall(&self, class: usize) -> Option<f64> {
        ratio(self.counts[class][class], self.counts[class].iter().sum())
    }

    fn right(&self) -> u64 {
        self.counts.iter().enumerate().map(|(class, row)| row[class]).sum()
    }

    fn total(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A percentage, or `-` if there is none.
fn percent(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.1}%", 100.0 * ratio))
}

impl fmt::Display for ConfusionMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classes = self.counts.len();
        let largest = self.counts.iter().flatten().copied().max().unwrap_or(0);
        let width = 1 + largest.to_string().len().max(classes.to_string().len());

        write!(f, "{:<15}", "true\\predicted")?;
        for class in 0..classes {
            write!(f, "{class:>width$}")?;
        }
        writeln!(f, "{:>11}{:>9}", "precision", "recall")?;
        for (class, row) in self.counts.iter().enumerate() {
            write!(f, "{class:>14} ")?;
            for count in row {
                write!(f, "{count:>width$}")?;
            }
            writeln!(f, "{:>11}{:>9}", percent(self.precision(class)), percent(self.recall(class)))?;
        }
        write!(f, "accuracy {} ({} of {})", percent(self.accuracy()), self.right(), self.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_ratios() {
        let pairs = [(0, 0), (0, 1), (1, 1), (1, 1)];
        let matrix = ConfusionMatrix::new(3, pairs).unwrap();
        assert_eq!(matrix.accuracy(), Some(0.75));
        assert_eq!([0, 1, 2].map(|class| matrix.precision(class)), [Some(1.0), Some(2.0 / 3.0), None]);
        assert_eq!([0, 1, 2].map(|class| matrix.recall(class)), [Some(0.5), Some(1.0), None]);
    }

    #[test]
    fn the_table_is_aligned() {
        let pairs = [(0, 0), (0, 1), (1, 1)].into_iter().chain([(1, 1); 120]);
        let expected = "\
true\\predicted    0   1   2  precision   recall
             0    1   1   0     100.0%    50.0%
             1    0 121   0      99.2%   100.0%
             2    0   0   0          -        -
accuracy 99.2% (122 of 123)";
        assert_eq!(ConfusionMatrix::new(3, pairs).unwrap().to_string(), expected);
    }

    #[test]
    fn nothing_counted() {
        let matrix = ConfusionMatrix::new(2, []).unwrap();
        assert_eq!(matrix.accuracy(), None);
        assert!(matrix.to_string().ends_with("accuracy - (0 of 0)"));
    }

    #[test]
    fn an_unknown_class_is_an_error() {
        for pair in [(-1, 0), (0, 2), (i64::MAX, 0)] {
            let error = ConfusionMatrix::new(2, [pair]).unwrap_err().to_string();
            assert!(error.ends_with("is not one of the 2 classes"), "{error}");
        }
    }
}
