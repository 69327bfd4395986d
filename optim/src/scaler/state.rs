//! [`GradScalerState`], everything that the next scales depend on, as a value and as a file.

use super::*;

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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
        let GradScalerState { scale, growth_factor, backoff_factor, growth_interval, .. } = *state;
        let builder = GradScaler::builder().init_scale(scale).growth_factor(growth_factor);
        let built = builder.backoff_factor(backoff_factor).growth_interval(growth_interval).build();
        let damaged = |error: Error| error.of("load_state_dict").context("the state is damaged: ");
        let GradScalerState { scale, .. } = built.map_err(damaged)?.state;
        self.state = GradScalerState { scale, ..state.clone() };
        self.start_again();
        Ok(())
    }
}

impl GradScalerState {
    pub(crate) fn fields(&mut self) -> StateFields<'_> {
        StateFields {
            key: "grad_scaler",
            what: "the state of a scaler",
            fields: vec![
                ("scale", &mut self.scale),
                ("growth_factor", &mut self.growth_factor),
                ("backoff_factor", &mut self.backoff_factor),
                ("growth_interval", &mut self.growth_interval),
                ("growth_tracker", &mut self.growth_tracker),
                ("steps_taken", &mut self.steps_taken),
                ("steps_skipped", &mut self.steps_skipped),
            ],
        }
    }
}
