//! Checkpoints, logs, meters, pictures, profiles, and runs that are killed.

mod checkpoints;
mod common;
mod early_stopping;
mod health;
mod kill;
mod log;
mod lr_finder;
mod meters;
#[cfg(feature = "pictures")]
mod pictures;
mod plan;
mod profile;
#[cfg(feature = "progress")]
mod progress;
mod resume;
#[cfg(feature = "tensorboard")]
mod tensorboard;
