//! Files with a single tensor; the extension determines the format.

use super::TensorFile;
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::NamedTensor;
use std::panic::Location;
use std::path::Path;

/// The name of the tensor in a safetensors file.
const NAME: &str = "tensor";

enum Format {
    Npy,
    Safetensors,
}

impl Format {
    /// The format of a file by its extension.
    #[track_caller]
    fn of(op: &'static str, path: &Path) -> Result<Format> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some(extension) if extension.eq_ignore_ascii_case("safetensors") => Ok(Format::Safetensors),
            Some(extension) if extension.eq_ignore_ascii_case("npy") => Ok(Format::Npy),
            _ => {
                let message =
                    format!("{}: expected a file name that ends in .safetensors or .npy", path.display());
                let repair = format!("{:?}", path.with_extension("safetensors").display().to_string());
                Err(Error::new(ErrorKind::Value, op, message).with_repair(repair))
            }
        }
    }
}

impl NamedTensor {
    /// Writes the tensor to a file, or replaces the file. `.safetensors` keeps the dtype and names; `.npy` is
    /// NumPy's format, which has no names and no `bf16`. If writing fails, an existing file is unchanged.
    ///
    /// ```
    /// use namegrad_core::NamedTensor;
    /// # let path = std::env::temp_dir().join(format!("namegrad-one-{}.safetensors", std::process::id()));
    /// let x = NamedTensor::ones([("N", 2), ("C", 3)])?;
    /// x.save(&path)?;
    /// assert_eq!(NamedTensor::load(&path)?, x);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), namegrad_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Value`] for any other extension, [`ErrorKind::DType`] for `bf16` in a
    /// `.npy` file.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        const OP: &str = "save";
        let path = path.as_ref();
        match Format::of(OP, path)? {
            Format::Npy => match self.save_npy(path) {
                Ok(()) => Ok(()),
                Err(error) => Err(error.of(OP)),
            },
            Format::Safetensors => {
                let mut file = TensorFile::default();
                file.tensors.insert(NAME.into(), self.clone());
                file.save(path)
            }
        }
    }

    /// Reads a tensor from a `.npy` file, or from a `.safetensors` file with a single tensor.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Format`] if the content does not follow the format or does not have
    /// exactly one tensor, [`ErrorKind::Value`] for any other extension, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn load(path: impl AsRef<Path>) -> Result<NamedTensor> {
        const OP: &str = "load";
        let (path, caller) = (path.as_ref(), Location::caller());
        if let Format::Npy = Format::of(OP, path)? {
            return NamedTensor::load_npy(path).map_err(|error| error.of(OP).at(caller));
        }
        let mut tensors = TensorFile::load(path)?.tensors;
        if tensors.len() == 1 {
            return Ok(tensors.pop_first().expect("there is one").1);
        }
        let names: Vec<String> = tensors.keys().take(5).map(|name| format!("'{name}'")).collect();
        let more = if tensors.len() > names.len() { ", ..." } else { "" };
        let message = format!(
            "{}: expected one tensor, found {}: {}{more}",
            path.display(),
            tensors.len(),
            names.join(", ")
        );
        Err(Error::new(ErrorKind::Format, OP, message).with_repair(format!(
            "namegrad::core::io::TensorFile::load({:?})?.tensors",
            path.display().to_string()
        )))
    }
}
