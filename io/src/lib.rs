//! Files of named tensors: safetensors for models and training, NumPy's `.npy` for exchange.
//!
//! Read [`TensorFile`] first, then [`Files`], for one tensor in a file. `atomic` replaces files. A tensor
//! inside other data is written with serde, which the core crate implements.

#![forbid(unsafe_code)]

mod atomic;
mod files;
mod npy;
mod safetensors;

pub use self::files::Files;
pub use self::safetensors::TensorFile;

use namegrad_core::{Error, ErrorKind};
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
