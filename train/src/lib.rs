//! What a training run needs besides the model: checkpoints, logs, meters, profiles, the health of gradients.
//!
//! * [`Checkpoints`] saves a run, and goes on after an interruption as if nothing had happened.
//! * [`profile`](profile::profile) shows where the time goes, by op and by line.

#![forbid(unsafe_code)]

mod checkpoint;
pub mod profile;

pub use checkpoint::{Best, Checkpoint, Checkpoints, CheckpointsBuilder, IntoPart, Parts, Resumable};
#[doc(hidden)]
pub use checkpoint::{kind, last_word};
