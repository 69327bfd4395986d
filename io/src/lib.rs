//! Files of named tensors: safetensors for models and training, NumPy's `.npy` and `.npz` for exchange, and
//! PyTorch's state dicts, which are only read.
//!
//! Read [`TensorFile`] first, then [`Files`], for one tensor in a file, and [`OpenFile`], for large files.
//! Each format has a module; `zip` and `pickle` read the formats that `.npz` and `.pt` files consist of,
//! `input` is the file or the bytes for all of them, `json` stores values in metadata, `to_json` turns them
//! into text, `fields` reads and writes the states of the library, `setting` their fields, `sorted` sorts,
//! `text` makes lists for messages, and `atomic` replaces files. A tensor inside of other data is written with
//! serde, whose traits the core crate implements.
//!
//! A file is not trusted, whatever its format: a damaged or malicious one is an error, without a panic,
//! without running code, and without a large allocation that its content does not fill.

#![deny(unsafe_code)]

pub mod atomic;
#[doc(hidden)]
pub mod fields;
mod files;
#[doc(hidden)]
pub mod input;
mod json;
mod npy;
mod npz;
#[allow(unsafe_code)]
mod open;
mod pickle;
mod safetensors;
#[doc(hidden)]
pub mod setting;
#[doc(hidden)]
pub mod sorted;
mod tensor_file;
#[doc(hidden)]
pub mod text;
mod to_json;
mod torch;
mod zip;

pub use self::files::Files;
pub use self::open::OpenFile;
#[doc(hidden)]
pub use self::tensor_file::FileEntries;
pub use self::tensor_file::TensorFile;
use namegrad_core::{joined, list};

use namegrad_core::{Error, ErrorKind};
use std::io;
use std::path::Path;

/// The file could not be opened, read or written.
fn io_error(op: &'static str, path: &Path, error: &io::Error) -> Error {
    let failed = Error::new(ErrorKind::Io, op, format!("{}: {error}", path.display()));
    match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        Some(folder) if op.starts_with("save") => failed.with_repair(format!(
            "std::fs::create_dir_all({:?})? before it",
            format!("{}", folder.display())
        )),
        _ => failed,
    }
}
