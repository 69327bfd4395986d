//! [`EarlyStopping`]: when a metric no longer improves.

use crate::log::Measurement;
use crate::{Best, Resumable};
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use namegrad_io::TensorFile;
use namegrad_io::fields::{insert, insert_text, tensor_of, text_of};

/// Says when to stop a training: when a metric, such as the loss of the validation, has not improved for
/// `patience` steps in a row.
///
/// A metric improves if
///
/// ```text
/// metric < best - min_delta    Best::Lowest, the default
/// metric > best + min_delta    Best::Highest
/// ```
///
/// The first metric improves, unless it is the worst that there is: `+∞` for `Best::Lowest`. NaN never
/// improves.
///
/// It is a part of a [checkpoint](crate::Checkpoints): a resumed run stops where the uninterrupted one would
/// have stopped. To go back to the best model, keep the [best
/// checkpoint](crate::CheckpointsBuilder::keep_best), and load it at the end.
///
/// # Source
/// Prechelt, *Early Stopping - But When?* (1998); `EarlyStopping` of Keras and Lightning.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::EarlyStopping;
/// let mut stopping = EarlyStopping::builder().patience(2).min_delta(0.01).build()?;
/// let losses = [0.9, 0.5, 0.495, 0.6, 0.1]; // of the validation; 0.495 is not better by 0.01
/// let mut epochs = 0;
/// for loss in losses {
///     epochs += 1;
///     if stopping.step(loss)? {
///         break;
///     }
/// }
/// assert_eq!((epochs, stopping.best(), stopping.since_best()), (4, Some(0.5), 2));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct EarlyStopping {
    settings: EarlyStoppingBuilder,
    best: Option<f64>,
    since_best: u64,
}

/// The settings of an [`EarlyStopping`].
#[derive(Clone, Debug, PartialEq)]
pub struct EarlyStoppingBuilder {
    mode: Best,
    patience: u64,
    min_delta: f64,
}

impl EarlyStoppingBuilder {
    /// Sets whether the metric should fall or rise. Default: [`Best::Lowest`].
    pub fn mode(mut self, mode: Best) -> Self {
        self.mode = mode;
        self
    }

    /// The number of steps in a row without an improvement after which to stop. Default: 3, as in Lightning.
    pub fn patience(mut self, patience: u64) -> Self {
        self.patience = patience;
        self
    }

    /// A metric must be better than the best by more than this. Default: 0.
    pub fn min_delta(mut self, min_delta: f64) -> Self {
        self.min_delta = min_delta;
        self
    }

    /// Builds it, before the first step.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the patience is 0, or `min_delta` is negative or not finite.
    #[track_caller]
    pub fn build(self) -> Result<EarlyStopping> {
        if self.patience == 0 {
            let message = "a patience of 0 steps would stop at once";
            return Err(Error::new(ErrorKind::Value, NAME, message)
                .with_repair("EarlyStopping::builder().patience(1)"));
        }
        if !(self.min_delta >= 0.0 && self.min_delta.is_finite()) {
            let message = format!("min_delta must be finite and not negative, but is {:?}", self.min_delta);
            return Err(Error::new(ErrorKind::Value, NAME, message)
                .with_repair("EarlyStopping::builder().min_delta(1e-3)"));
        }
        Ok(EarlyStopping { settings: self, best: None, since_best: 0 })
    }
}

const NAME: &str = "EarlyStopping";

impl EarlyStopping {
    /// Stops after this many steps in a row in which the metric has not fallen.
    ///
    /// # Errors
    /// Same as [`EarlyStoppingBuilder::build`].
    #[track_caller]
    pub fn new(patience: u64) -> Result<EarlyStopping> {
        EarlyStopping::builder().patience(patience).build()
    }

    /// A builder for other settings.
    pub fn builder() -> EarlyStoppingBuilder {
        EarlyStoppingBuilder { mode: Best::Lowest, patience: 3, min_delta: 0.0 }
    }

    /// Takes the metric of a step, usually of an epoch: a number, or a tensor with one element. Returns
    /// whether to stop.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a tensor with more or fewer elements. Nothing changes then.
    #[track_caller]
    pub fn step(&mut self, metric: impl Measurement) -> Result<bool> {
        let metric = metric.number().map_err(|error| error.of(NAME))?;
        match self.improves(metric) {
            true => (self.best, self.since_best) = (Some(metric), 0),
            false => self.since_best = self.since_best.saturating_add(1),
        }
        Ok(self.is_over())
    }

    fn improves(&self, metric: f64) -> bool {
        let EarlyStoppingBuilder { mode, min_delta, .. } = self.settings;
        match mode {
            Best::Lowest => metric < self.best.unwrap_or(f64::INFINITY) - min_delta,
            Best::Highest => metric > self.best.unwrap_or(f64::NEG_INFINITY) + min_delta,
        }
    }

    /// Whether to stop, as the last [`step`](Self::step) said: for a resumed run, which may be over already.
    pub fn is_over(&self) -> bool {
        self.since_best >= self.settings.patience
    }

    /// The best metric so far; `None` before the first.
    pub fn best(&self) -> Option<f64> {
        self.best
    }

    /// The number of steps since the best; 0 right after an improvement.
    pub fn since_best(&self) -> u64 {
        self.since_best
    }

    /// The name of the mode in the state.
    fn mode_name(&self) -> &'static str {
        match self.settings.mode {
            Best::Lowest => "lowest",
            Best::Highest => "highest",
        }
    }
}

/// The best metric and the steps since then. Patience and `min_delta` are those of the program.
impl Resumable for EarlyStopping {
    fn state(&self) -> Result<TensorFile> {
        let mut state = TensorFile::default();
        // A tensor holds infinite numbers too, and each bit.
        if let Some(best) = self.best {
            insert(&mut state.tensors, "best".into(), NamedTensor::from_slice(&[best], ())?);
        }
        insert_text(&mut state.metadata, "mode".into(), self.mode_name().into());
        insert_text(&mut state.metadata, "since_best".into(), self.since_best.to_string());
        Ok(state)
    }

    fn restore(&mut self, state: &TensorFile) -> Result<()> {
        let damaged = |message: String| Error::new(ErrorKind::Format, NAME, message);
        let (mode, own) = (text_of(&state.metadata, "mode"), self.mode_name());
        if mode.is_none_or(|mode| mode != own) {
            let other = mode.map_or("nothing", String::as_str);
            let message = format!("the mode is '{own}', but the state was saved with '{other}'");
            return Err(Error::new(ErrorKind::Value, NAME, message)
                .with_repair("EarlyStopping::builder().mode(..), with the mode of the saved run"));
        }
        let since_best = text_of(&state.metadata, "since_best").and_then(|number| number.parse().ok());
        let since_best = since_best.ok_or_else(|| damaged("the state lacks 'since_best'".into()))?;
        self.best = tensor_of(&state.tensors, "best").map(|best| best.item::<f64>()).transpose()?;
        self.since_best = since_best;
        Ok(())
    }
}
