//! Code that the examples share: `flags` has the command line and the exit code, `digits` the embedded data
//! set, and `training` the model and the loop of the classifiers. `diagram`, which draws a tape, is used only
//! by `07_tape`.

#![allow(dead_code, reason = "each example uses its own part of what is here")]

pub(crate) mod digits;
pub(crate) mod flags;
#[cfg(test)]
mod scratch;
pub(crate) mod training;

/// The examples get errors from many libraries and only print them, so one boxed type is enough.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
