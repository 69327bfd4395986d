//! Values with serde's traits in the metadata of a [`TensorFile`], as JSON.

use crate::TensorFile;
use crate::fields::insert_text;
use crate::to_json::to_json;
use namegrad_core::{Error, ErrorKind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::panic::Location;
use std::path::Path;

impl TensorFile {
    /// Stores a value as JSON under a metadata key. Numbers come back with the same bits; infinity and NaN
    /// have no form in JSON and are an error.
    ///
    /// ```
    /// use namegrad::io::TensorFile;
    /// let mut file = TensorFile::default();
    /// file.insert_json("run", &("sgd", 0.1))?;
    /// let (name, lr): (String, f64) = file.json("run", "a run")?;
    /// assert_eq!((name.as_str(), lr), ("sgd", 0.1));
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the value has no JSON form, or a number in it is infinite or NaN; the message
    /// says where.
    #[track_caller]
    pub fn insert_json(&mut self, key: &str, value: &impl Serialize) -> Result<()> {
        let caller = Location::caller();
        self.insert_text(key, to_json(value).map_err(|error| format!("{error}")))
            .map_err(|error| error.at(caller))
    }

    /// Stores a text, or fails with the reason that there is none.
    fn insert_text(&mut self, key: &str, text: std::result::Result<String, String>) -> Result<()> {
        let text = text.map_err(|reason| Error::new(ErrorKind::Value, "save", reason))?;
        insert_text(&mut self.metadata, key.into(), text);
        Ok(())
    }

    /// A file with a value under a metadata key, and nothing else; see [`insert_json`](Self::insert_json).
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the value has no JSON form.
    #[track_caller]
    pub fn of_json(key: &str, value: &impl Serialize) -> Result<TensorFile> {
        let mut file = TensorFile::default();
        file.insert_json(key, value)?;
        Ok(file)
    }

    /// The value that [`insert_json`](Self::insert_json) has stored. Errors call the content of the file
    /// `what`, such as "the state of an optimizer".
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if there is no such key, or its JSON is not a `T`.
    #[track_caller]
    pub fn json<T: DeserializeOwned>(&self, key: &str, what: &str) -> Result<T> {
        let caller = Location::caller();
        let read = self
            .text(key, what)
            .and_then(|text| serde_json::from_str(text).map_err(|error| unread(key, &error)));
        read.map_err(|error| error.at(caller))
    }

    /// The text under a metadata key.
    #[track_caller]
    pub(crate) fn text(&self, key: &str, what: &str) -> Result<&str> {
        match self.metadata.get(key) {
            Some(text) => Ok(text),
            None => {
                let message = format!("not {what}: there is no '{key}' in its metadata");
                Err(Error::new(ErrorKind::Format, "load", message))
            }
        }
    }

    /// Reads a file and makes a value of its content. An error of `make` gets the path of the file.
    ///
    /// ```
    /// use namegrad::io::TensorFile;
    /// # let name = format!("namegrad-doc-json-{}.safetensors", std::process::id());
    /// # let path = std::env::temp_dir().join(name);
    /// let mut file = TensorFile::default();
    /// file.insert_json("epoch", &3)?;
    /// file.save(&path)?;
    /// let epoch: u64 = TensorFile::load_as(&path, |file| file.json("epoch", "an epoch"))?;
    /// assert_eq!(epoch, 3);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`load`](Self::load) and of `make`.
    #[track_caller]
    pub fn load_as<T>(path: impl AsRef<Path>, make: impl FnOnce(&TensorFile) -> Result<T>) -> Result<T> {
        let (path, caller) = (path.as_ref(), Location::caller());
        let file = TensorFile::load(path)?;
        make(&file).map_err(|error| error.context(format!("{}: ", path.display())).at(caller))
    }
}

/// The error of a text that is not the JSON of the expected type.
#[cold]
#[track_caller]
pub(crate) fn unread(key: &str, error: &dyn Display) -> Error {
    let message = format!("'{key}' in the metadata is not as expected: {error}");
    Error::new(ErrorKind::Format, "load", message)
}
