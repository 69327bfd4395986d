//! What a training run needs besides the model: checkpoints, logs, meters, profiles, the health of gradients.

#![forbid(unsafe_code)]

pub mod log;
pub mod meters;
#[cfg(feature = "progress")]
pub mod progress;
