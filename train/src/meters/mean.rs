//! [`Mean`]: the mean loss, or any other mean.

use crate::log::Measurement;
use namegrad_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The weighted mean of numbers: `Σ wᵢ xᵢ / Σ wᵢ`. The weight of a mean loss is the size of its batch.
///
/// A NaN or an infinity makes the mean NaN or infinite, unless its weight is 0.
///
/// ```
/// use namegrad::train::meters::Mean;
/// let mut loss = Mean::new();
/// loss.update(1.0, 64)?;
/// loss.update(4.0, 32)?; // the last batch is smaller
/// assert_eq!(loss.compute(), 2.0);
/// # Ok::<(), namegrad::Error>(())
/// ```
///
/// # Source
/// torchmetrics, `MeanMetric`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    /// The mean of nothing.
    pub fn new() -> Mean {
        Mean::default()
    }

    /// Adds a number, or a tensor with one element, with its weight.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a tensor with more or fewer elements, [`ErrorKind::Value`] for a weight that
    /// is negative or not finite.
    #[track_caller]
    pub fn update(&mut self, value: impl Measurement, weight: impl Measurement) -> Result<()> {
        let of = |error: Error| error.of("Mean");
        let (value, weight) = (value.number().map_err(of)?, weight.number().map_err(of)?);
        Error::ensure(weight >= 0.0 && weight.is_finite(), ErrorKind::Value, "Mean", || {
            format!("a weight is finite and not negative, got {weight}")
        })?;
        if weight > 0.0 {
            self.sum += value * weight;
            self.weight += weight;
        }
        Ok(())
    }

    /// The mean; NaN if the weights are 0 in all.
    pub fn compute(&self) -> f64 {
        self.sum / self.weight
    }

    /// Starts again.
    pub fn reset(&mut self) {
        *self = Mean::new();
    }

    /// Adds the numbers of another meter.
    pub fn merge(&mut self, other: &Mean) {
        self.sum += other.sum;
        self.weight += other.weight;
    }
}

/// Four decimals: `0.6931`.
impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.weight > 0.0 {
            true => write!(f, "{:.4}", self.compute()),
            false => f.write_str("-"),
        }
    }
}
