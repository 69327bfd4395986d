//! What a training run needs besides the model: checkpoints, logs, meters, profiles, the health of gradients.
//!
//! * [`Checkpoints`] saves a run, and goes on after an interruption as if nothing had happened.
//! * [`profile`](profile::profile) shows where the time goes, by op and by line.
//! * [`log`] writes scalars, histograms, images and texts to files; [`meters`] compute what is written.
//! * `pictures` (feature `pictures`) draws learning curves and other charts, `progress` (feature `progress`) shows bars,
//!   and [`lr_finder`] tests learning rates.
//! * [`health`](fn@health) and [`HealthWatch`] show norms of values, gradients and updates, and stop at the first NaN.

#![forbid(unsafe_code)]

mod checkpoint;
mod health;
#[cfg(any(feature = "pictures", feature = "tensorboard"))]
mod image;
pub mod log;
pub mod lr_finder;
pub mod meters;
#[cfg(feature = "pictures")]
pub mod pictures;
pub mod profile;
#[cfg(feature = "progress")]
pub mod progress;

pub use checkpoint::{Best, Checkpoint, Checkpoints, CheckpointsBuilder, IntoPart, Parts, Resumable};
#[doc(hidden)]
pub use checkpoint::{kind, last_word};
pub use health::{HealthReport, HealthWatch, ParameterHealth, TensorHealth, health};
