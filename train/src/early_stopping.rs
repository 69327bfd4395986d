//! [`EarlyStopping`]: when a metric no longer improves.

use crate::log::Measurement;
use crate::{Best, Resumable};
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use namegrad_io::TensorFile;
use namegrad_io::fields::{insert, insert_text, value_of};
use namegrad_nn::{Module, StateDict};

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
/// have stopped. [`step_model`](Self::step_model) keeps the values of the best model, and
/// [`restore_best`](Self::restore_best) goes back to them.
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
#[derive(Clone, Debug)]
pub struct EarlyStopping {
    settings: EarlyStoppingBuilder,
    best: Option<f64>,
    since_best: usize,
    /// The model at the best metric, if steps were given a model.
    weights: Option<StateDict>,
}

/// Whether the settings and the metrics are equal. Models are not compared.
impl PartialEq for EarlyStopping {
    fn eq(&self, other: &EarlyStopping) -> bool {
        (&self.settings, self.best, self.since_best) == (&other.settings, other.best, other.since_best)
    }
}

/// The settings of an [`EarlyStopping`].
#[derive(Clone, Debug, PartialEq)]
pub struct EarlyStoppingBuilder {
    mode: Best,
    patience: usize,
    min_delta: f64,
}

impl EarlyStoppingBuilder {
    /// Sets whether the metric should fall or rise. Default: [`Best::Lowest`].
    pub fn mode(mut self, mode: Best) -> Self {
        self.mode = mode;
        self
    }

    /// The number of steps in a row without an improvement after which to stop. Default: 3, as in Lightning.
    pub fn patience(mut self, patience: usize) -> Self {
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
        Ok(EarlyStopping { settings: self, best: None, since_best: 0, weights: None })
    }
}

const NAME: &str = "EarlyStopping";

/// Before the paths of the best model in the state.
const WEIGHTS: &str = "weights.";

impl EarlyStopping {
    /// Stops after this many steps in a row in which the metric has not fallen.
    ///
    /// # Errors
    /// Same as [`EarlyStoppingBuilder::build`].
    #[track_caller]
    pub fn new(patience: usize) -> Result<EarlyStopping> {
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
            true => (self.best, self.since_best, self.weights) = (Some(metric), 0, None),
            false => self.since_best = self.since_best.saturating_add(1),
        }
        Ok(self.is_over())
    }

    /// Does a [`step`](Self::step), and keeps the values of the model if its metric is the best so far. Keeping
    /// them copies nothing before the model changes. A [checkpoint](crate::Checkpoints) saves them too.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::train::EarlyStopping;
    /// let model = Linear::new(("in", 1), ("out", 1))?;
    /// let mut stopping = EarlyStopping::new(2)?;
    /// for (loss, weight) in [(0.9, 1.0), (0.5, 2.0), (0.6, 3.0), (0.7, 4.0), (0.1, 5.0)] {
    ///     model.weight().set(&Tensor::full([("out", 1), ("in", 1)], weight)?)?; // an epoch of training
    ///     if stopping.step_model(loss, &model)? {
    ///         break;
    ///     }
    /// }
    /// stopping.restore_best(&model)?;
    /// assert_eq!((stopping.best(), model.weight().tensor().item::<f64>()?), (Some(0.5), 2.0));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`step`](Self::step).
    #[track_caller]
    pub fn step_model(&mut self, metric: impl Measurement, model: &(impl Module + ?Sized)) -> Result<bool> {
        let is_over = self.step(metric)?;
        if self.since_best == 0 {
            self.weights = Some(model.state_dict());
        }
        Ok(is_over)
    }

    /// Loads the values of the best step into the model, those of its buffers too.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if no [`step_model`](Self::step_model) was the best so far, or the model has other
    /// parameters.
    #[track_caller]
    pub fn restore_best(&self, model: &(impl Module + ?Sized)) -> Result<()> {
        match &self.weights {
            Some(weights) => model.load_state_dict(weights),
            None => Err(Error::new(ErrorKind::Value, NAME, "no values of a best model were kept")
                .with_repair("stopping.step_model(loss, &model)? in place of stopping.step(loss)?")),
        }
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
    pub fn since_best(&self) -> usize {
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

/// The best metric, the steps since then and the best model. Patience and `min_delta` are those of the program.
impl Resumable for EarlyStopping {
    fn state(&self) -> Result<TensorFile> {
        let mut state = TensorFile::default();
        // A tensor holds infinite numbers too, and each bit.
        if let Some(best) = self.best {
            insert(&mut state.tensors, "best".into(), NamedTensor::from_slice(&[best], ())?);
        }
        insert_text(&mut state.metadata, "mode".into(), self.mode_name().into());
        insert_text(&mut state.metadata, "since_best".into(), self.since_best.to_string());
        if let Some(weights) = &self.weights {
            let file = weights.to_file();
            for (path, value) in file.tensors {
                insert(&mut state.tensors, format!("{WEIGHTS}{path}"), value);
            }
            for (key, value) in file.metadata {
                insert_text(&mut state.metadata, format!("{WEIGHTS}{key}"), value);
            }
        }
        Ok(state)
    }

    fn restore(&mut self, state: &TensorFile) -> Result<()> {
        let damaged = |message: String| Error::new(ErrorKind::Format, NAME, message);
        let (mode, own) = (value_of(&state.metadata, "mode"), self.mode_name());
        if mode.is_none_or(|mode| mode != own) {
            let other = mode.map_or("nothing", String::as_str);
            let message = format!("the mode is '{own}', but the state was saved with '{other}'");
            return Err(Error::new(ErrorKind::Value, NAME, message)
                .with_repair("EarlyStopping::builder().mode(..), with the mode of the saved run"));
        }
        let since_best = value_of(&state.metadata, "since_best").and_then(|number| number.parse().ok());
        let since_best = since_best.ok_or_else(|| damaged("the state lacks 'since_best'".into()))?;
        let mut weights = TensorFile::default();
        for (path, value) in &state.tensors {
            if let Some(path) = path.strip_prefix(WEIGHTS) {
                insert(&mut weights.tensors, path.into(), value.clone());
            }
        }
        for (key, value) in &state.metadata {
            if let Some(key) = key.strip_prefix(WEIGHTS) {
                insert_text(&mut weights.metadata, key.into(), value.clone());
            }
        }
        let weights = match weights.tensors.is_empty() {
            true => None,
            false => Some(StateDict::from_tensor_file(&weights)?),
        };
        self.best = value_of(&state.tensors, "best").map(|best| best.item::<f64>()).transpose()?;
        (self.since_best, self.weights) = (since_best, weights);
        Ok(())
    }
}
