//! Files of values: safetensors for models and training, NumPy's `.npy` for exchange, serde for everything
//! else.
//!
//! Read [`TensorFile`] first. `elements` converts tensors to bytes and back, `atomic` replaces files,
//! `serialize` is for tensors inside other data, and `single` for one tensor in a file.

mod atomic;
mod elements;
mod npy;
mod safetensors;
mod serialize;
mod single;

pub use self::safetensors::TensorFile;

use crate::error::{Error, ErrorKind};
use std::io;
use std::path::Path;

/// The file could not be opened, read or written.
fn io_error(op: &'static str, path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, op, format!("{}: {error}", path.display()))
}
