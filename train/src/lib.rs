//! What a training run needs besides the model: checkpoints, logs, meters, profiles, the health of gradients.
//!
//! * [`Checkpoints`] saves a run, and goes on after an interruption as if nothing had happened.
//! * [`profile`](profile::profile) shows where the time goes, by op and by line.
//! * [`health`](fn@health) and [`HealthWatch`] show norms of values, gradients and updates, and stop at the first NaN.

#![forbid(unsafe_code)]

mod checkpoint;
mod health;
pub mod profile;

pub use checkpoint::{Best, Checkpoint, Checkpoints, CheckpointsBuilder, IntoPart, Parts, Resumable};
#[doc(hidden)]
pub use checkpoint::{kind, last_word};
pub use health::{HealthReport, HealthWatch, ParameterHealth, TensorHealth, health};
