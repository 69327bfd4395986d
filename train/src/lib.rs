//! What a training run needs besides the model: checkpoints, logs, meters, profiles, the health of gradients.
//!
//! * [`log`]: what a run measures, as JSON lines, CSV and event files for TensorBoard (feature `tensorboard`).
//! * [`meters`]: loss, accuracy and other measures over batches.
//! * [`lr_finder`]: a test of learning rates before training.
//! * `pictures` (feature `pictures`): learning curves and more as SVG and PNG files.
//! * `progress` (feature `progress`): progress bars.

#![forbid(unsafe_code)]

#[cfg(any(feature = "pictures", feature = "tensorboard"))]
mod image;
pub mod log;
pub mod lr_finder;
pub mod meters;
#[cfg(feature = "pictures")]
pub mod pictures;
#[cfg(feature = "progress")]
pub mod progress;
