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
    let failed = Error::new(ErrorKind::Io, op, format!("{}: {error}", path.display()));
    match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        Some(folder) if op.starts_with("save") => failed
            .with_repair(format!("std::fs::create_dir_all({:?})? before it", folder.display().to_string())),
        _ => failed,
    }
}
