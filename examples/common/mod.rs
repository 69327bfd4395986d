//! Code that the examples share and that has nothing to do with tensors.
//!
//! `samples` is a data set in memory; `digits` (embedded) and `idx` (MNIST, from a folder) read one. `flags`
//! has the command line and the exit code, `progress` the progress bar of an epoch, `confusion`, `plot` and
//! `lines` show the results, `picture` draws, `text` reads a text as numbers of characters, and `atomic` writes
//! files. `diagram`, which draws a tape, is used only by `07_tape`.

#![allow(dead_code, reason = "each example uses its own part of what is here")]

pub(crate) mod atomic;
pub(crate) mod confusion;
pub(crate) mod digits;
pub(crate) mod flags;
pub(crate) mod idx;
pub(crate) mod lines;
pub(crate) mod picture;
pub(crate) mod plot;
pub(crate) mod progress;
pub(crate) mod samples;
#[cfg(test)]
mod scratch;
pub(crate) mod text;
pub(crate) mod training;

/// The examples get errors from many libraries and only print them, so one boxed type is enough.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
