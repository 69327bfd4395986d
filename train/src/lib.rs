//! Tools for training runs: checkpoints, logs, meters, profiles, and the health of gradients.
//!
//! * [`Checkpoints`] saves a run, and goes on after an interruption as if nothing had happened.
//! * [`EarlyStopping`] says when a metric no longer improves.
//! * [`log`]: measurements of a run as JSON lines, CSV and event files for TensorBoard (feature
//!   `tensorboard`).
//! * [`meters`]: loss, accuracy and other measures over batches.
//! * [`lr_finder`]: a test of learning rates before training.
//! * `pictures` (feature `pictures`): learning curves and more as SVG and PNG files.
//! * `progress` (feature `progress`): progress bars.
//! * [`profile`](profile::profile) shows where the time goes, by op and by line.
//! * [`plan`](fn@plan) tells what a step computes and holds, without running it.
//! * [`health`](fn@health) and [`HealthWatch`] show norms of values, gradients and updates, and stop at the
//!   first NaN.

#![forbid(unsafe_code)]

mod checkpoint;
mod early_stopping;
mod health;
#[cfg(any(feature = "pictures", feature = "tensorboard"))]
mod image;
pub mod log;
pub mod lr_finder;
pub mod meters;
#[cfg(feature = "pictures")]
pub mod pictures;
mod plan;
pub mod profile;
#[cfg(feature = "progress")]
pub mod progress;

pub use checkpoint::{
    Best, Checkpoint, Checkpoints, CheckpointsBuilder, IntoPart, Parts, Resumable, Resumed,
};
#[doc(hidden)]
pub use checkpoint::{Snapshot, kind, last_word};
pub use early_stopping::{EarlyStopping, EarlyStoppingBuilder};
pub use health::{HealthReport, HealthWatch, ParameterHealth, TensorHealth, health};
use namegrad_core::{joined, list};
pub use plan::{Plan, PlannedOp, plan};
