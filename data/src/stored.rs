//! Values in safetensors files without tensors, as JSON under a metadata key.

use namegrad_core::{Error, ErrorKind, Result};
use namegrad_io::TensorFile;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// The content of a file with a value under `key`.
#[track_caller]
pub(crate) fn to_file<T: Serialize>(key: &str, value: &T) -> Result<TensorFile> {
    let refused = |error: serde_json::Error| Error::new(ErrorKind::Value, "save", error.to_string());
    let mut file = TensorFile::default();
    file.metadata.insert(key.into(), serde_json::to_string(value).map_err(refused)?);
    Ok(file)
}

/// The value under `key`, which errors call `what`.
#[track_caller]
pub(crate) fn from_file<T: DeserializeOwned>(key: &str, what: &str, file: &TensorFile) -> Result<T> {
    let malformed = |message: String| Error::new(ErrorKind::Format, "load", message);
    let Some(text) = file.metadata.get(key) else {
        return Err(malformed(format!("not {what}: there is no '{key}' in its metadata")));
    };
    serde_json::from_str(text)
        .map_err(|error| malformed(format!("'{key}' in the metadata is not as expected: {error}")))
}

/// The value under `key` in the file at a path.
#[track_caller]
pub(crate) fn load<T: DeserializeOwned>(key: &str, what: &str, path: &Path) -> Result<T> {
    from_file(key, what, &TensorFile::load(path)?)
        .map_err(|error| error.context(format!("{}: ", path.display())))
}
