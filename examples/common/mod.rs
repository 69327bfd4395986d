//! What the training examples share and what has nothing to do with tensors.
//!
//! `samples` is what a data set is once read; `digits` (embedded) and `idx` (MNIST, from a folder) read one.
//! `flags` is the command line and the way out of `main`, `progress` the bar of an epoch, `confusion` and
//! `plot` the results, `atomic` how a file is written. `diagram`, the picture of a tape, belongs to `07_tape`
//! alone.

#![allow(dead_code, reason = "each example uses its own part of what is here")]

pub(crate) mod atomic;
pub(crate) mod confusion;
pub(crate) mod digits;
pub(crate) mod flags;
pub(crate) mod idx;
pub(crate) mod plot;
pub(crate) mod progress;
pub(crate) mod samples;
#[cfg(test)]
mod scratch;
pub(crate) mod training;

/// An example meets errors of many libraries and only prints them, so one boxed type serves.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
