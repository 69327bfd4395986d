//! Code that the examples share: [`flags`] has the command line and the exit code, [`digits`] the embedded
//! data set, [`cnn`] a convolutional network, and [`training`] a small model and the loop of the classifiers.
//! [`diagram`] draws a tape.

pub mod cnn;
pub mod diagram;
pub mod digits;
pub mod flags;
#[cfg(test)]
mod scratch;
pub mod training;

/// The examples get errors from many libraries and only print them, so one boxed type is enough.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
