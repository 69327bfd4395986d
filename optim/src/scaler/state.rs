//! [`GradScalerState`], everything that the next scales depend on, as a value and as a file.

use super::{GradScaler, check_scale};
#[cfg(doc)]
use namegrad_core::ErrorKind;
use namegrad_core::{Error, Result};
use namegrad_io::TensorFile;
use namegrad_io::fields::{Fields, float, object};
use serde::{Deserialize, Serialize};

/// The metadata key of a file under which the state is stored.
const KEY: &str = "grad_scaler";

/// Everything that the next steps of a [`GradScaler`] depend on. In a file, it is JSON under the metadata key
/// `grad_scaler`.
///
/// # Examples
/// ```
/// use namegrad::optim::{GradScaler, GradScalerState};
/// use namegrad::prelude::*;
/// let scaler = GradScaler::builder().init_scale(1024.0).build()?;
/// # let path = std::env::temp_dir().join(format!("namegrad-doc-scaler-{}.safetensors", std::process::id()));
/// scaler.state_dict().save(&path)?;
/// let mut resumed = GradScaler::new();
/// resumed.load_state_dict(&GradScalerState::load(&path)?)?;
/// assert_eq!(resumed.scale_factor(), 1024.0);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradScalerState {
    /// The current scale.
    pub scale: f64,
    /// The factor of the scale after `growth_interval` good steps.
    pub growth_factor: f64,
    /// The factor of the scale after a skipped step.
    pub backoff_factor: f64,
    /// The number of good steps in a row after which the scale grows.
    pub growth_interval: u64,
    /// The good steps since the scale last changed.
    pub growth_tracker: u64,
    /// The number of steps that were made.
    pub steps_taken: u64,
    /// The number of steps that were skipped.
    pub steps_skipped: u64,
}

impl GradScaler {
    /// Everything that the next steps depend on, between an [`update`](Self::update) and the next
    /// [`scale`](Self::scale).
    pub fn state_dict(&self) -> GradScalerState {
        self.state.clone()
    }

    /// Continues from a state, with its factors and its interval. A scaler that is not enabled stays as it
    /// is.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a number is out of range. Nothing changes then.
    #[track_caller]
    pub fn load_state_dict(&mut self, state: &GradScalerState) -> Result<()> {
        if !self.enabled {
            return Ok(());
        }
        let GradScalerState { growth_factor, backoff_factor, growth_interval, .. } = *state;
        let builder = GradScaler::builder().growth_factor(growth_factor).backoff_factor(backoff_factor);
        let damaged = |error: Error| error.of("load_state_dict").context("the state is damaged: ");
        builder.growth_interval(growth_interval).check().map_err(damaged)?;
        check_scale(state.scale).map_err(damaged)?;
        self.state = GradScalerState { scale: f64::from(state.scale as f32), ..state.clone() };
        self.start_again();
        Ok(())
    }
}

impl GradScalerState {
    /// The content of the file that [`save`](Self::save) writes.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a number has no JSON form.
    #[track_caller]
    pub fn to_file(&self) -> Result<TensorFile> {
        let fields = vec![
            ("scale", float("scale", self.scale)?),
            ("growth_factor", float("growth_factor", self.growth_factor)?),
            ("backoff_factor", float("backoff_factor", self.backoff_factor)?),
            ("growth_interval", self.growth_interval.into()),
            ("growth_tracker", self.growth_tracker.into()),
            ("steps_taken", self.steps_taken.into()),
            ("steps_skipped", self.steps_skipped.into()),
        ];
        Ok(TensorFile::of_value(KEY, &object(fields)))
    }

    /// The state in a file's content.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if it is not the state of a scaler.
    #[track_caller]
    pub fn from_file(file: &TensorFile) -> Result<GradScalerState> {
        let json = file.value(KEY, "the state of a scaler")?;
        let fields = Fields::new(KEY, &json);
        Ok(GradScalerState {
            scale: fields.number("scale")?,
            growth_factor: fields.number("growth_factor")?,
            backoff_factor: fields.number("backoff_factor")?,
            growth_interval: fields.count("growth_interval")?,
            growth_tracker: fields.count("growth_tracker")?,
            steps_taken: fields.count("steps_taken")?,
            steps_skipped: fields.count("steps_skipped")?,
        })
    }
}
