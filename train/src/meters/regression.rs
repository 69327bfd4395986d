//! [`Regression`]: errors of predicted numbers.

use super::pairs::{in_order_of, squeezed};
use namegrad_core::{DType, NamedTensor, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The errors of predicted numbers: MAE, MSE, RMSE and R², over all elements of all batches.
///
/// A NaN among the predictions or targets makes all of them NaN.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::meters::Regression;
/// let mut errors = Regression::new();
/// errors.update(&Tensor::new([2.5, 0.0])?, &Tensor::new([3.0, -0.5])?)?;
/// errors.update(&Tensor::new([2.0, 8.0])?, &Tensor::new([2.0, 7.0])?)?;
/// let scores = errors.compute();
/// assert_eq!((scores.mae, scores.mse), (0.5, 0.375));
/// assert!((scores.r2 - 0.9486).abs() < 1e-4);
/// assert_eq!(errors.to_string(), "MAE 0.5000  RMSE 0.6124  R² 0.9486");
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// scikit-learn, `mean_absolute_error`, `mean_squared_error` and `r2_score`. The mean and variance of targets
/// are merged as in Chan, Golub, LeVeque, *Updating formulae and a pairwise algorithm for computing sample
/// variances* (1979).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Regression {
    seen: f64,
    absolute: f64,
    squared: f64,
    /// The mean of the targets, and the sum of squared distances from it.
    mean: f64,
    spread: f64,
}

/// The errors of predictions `p` of targets `y`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegressionScores {
    /// The mean absolute error: `mean |p - y|`.
    pub mae: f64,
    /// The mean squared error: `mean (p - y)²`.
    pub mse: f64,
    /// The root of the mean squared error.
    pub rmse: f64,
    /// The coefficient of determination: `1 - Σ (p - y)² / Σ (y - mean y)²`. If all targets are equal, it
    /// is 1 if all predictions are right and 0 otherwise; for fewer than two elements, it is NaN. Both are
    /// as in scikit-learn.
    pub r2: f64,
}

impl Regression {
    /// Without any prediction.
    pub fn new() -> Regression {
        Regression::default()
    }

    /// Adds a batch.
    ///
    /// # Shapes
    /// - `predicted`: any dims
    /// - `target`: the same dims, in any order if they are named
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](namegrad_core::ErrorKind::Shape) or
    /// [`ErrorKind::NameMismatch`](namegrad_core::ErrorKind::NameMismatch) if the dims differ. `[N, 1]` and
    /// `[N]` differ.
    #[track_caller]
    pub fn update(
        &mut self,
        predicted: impl AsRef<NamedTensor>,
        target: impl AsRef<NamedTensor>,
    ) -> Result<()> {
        let (predicted, target) = (predicted.as_ref(), target.as_ref());
        let target = in_order_of(predicted, target, &|| squeezed("predicted", predicted, target))
            .map_err(|error| error.of("Regression"))?
            .to(DType::F64)?
            .to_vec::<f64>()?;
        let predicted = predicted.to(DType::F64)?.to_vec::<f64>()?;
        if target.is_empty() {
            return Ok(());
        }
        let seen = target.len() as f64;
        let mean = target.iter().sum::<f64>() / seen;
        let errors = || predicted.iter().zip(&target).map(|(p, y)| p - y);
        self.merge(&Regression {
            seen,
            absolute: errors().map(f64::abs).sum(),
            squared: errors().map(|error| error * error).sum(),
            mean,
            spread: target.iter().map(|y| (y - mean) * (y - mean)).sum(),
        });
        Ok(())
    }

    /// The errors; NaN without any element.
    pub fn compute(&self) -> RegressionScores {
        let (mae, mse) = (self.absolute / self.seen, self.squared / self.seen);
        let r2 = match self.spread {
            _ if self.seen < 2.0 => f64::NAN,
            0.0 if self.squared == 0.0 => 1.0,
            0.0 if !self.squared.is_nan() => 0.0,
            spread => 1.0 - self.squared / spread,
        };
        RegressionScores { mae, mse, rmse: mse.sqrt(), r2 }
    }

    /// The number of elements so far.
    pub fn count(&self) -> u64 {
        self.seen as u64
    }

    /// Starts again.
    pub fn reset(&mut self) {
        *self = Regression::new();
    }

    /// Adds the batches of another meter.
    pub fn merge(&mut self, other: &Regression) {
        if other.seen == 0.0 {
            return;
        }
        let (seen, apart) = (self.seen + other.seen, other.mean - self.mean);
        self.spread += other.spread + apart * apart * self.seen * other.seen / seen;
        self.mean += apart * other.seen / seen;
        self.seen = seen;
        self.absolute += other.absolute;
        self.squared += other.squared;
    }
}

impl fmt::Display for Regression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RegressionScores { mae, rmse, r2, .. } = self.compute();
        write!(f, "MAE {mae:.4}  RMSE {rmse:.4}  R² {r2:.4}")
    }
}
