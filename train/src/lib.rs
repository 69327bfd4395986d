//! What a training run needs besides the model: checkpoints, logs, meters, profiles, the health of gradients.

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
