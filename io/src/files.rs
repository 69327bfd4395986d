//! [`Files`]: one tensor in a file; the extension determines the format.

use crate::fields::insert;
use crate::text::{append, quoted_list};
use crate::{TensorFile, npy};
use namegrad_autograd::Tensor;
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use std::collections::BTreeMap;
use std::panic::Location;
use std::path::Path;

/// A single tensor in a file. A `Tensor` that is read requires no gradient.
///
/// ```
/// use namegrad::prelude::*;
/// # let folder = std::env::temp_dir().join(format!("namegrad-save-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// let x = Tensor::rand([("N", 2), ("C", 3)])?;
/// x.save(folder.join("x.safetensors"))?;
/// assert_eq!(Tensor::load(folder.join("x.safetensors"))?, x);
/// x.save(folder.join("x.npy"))?;
/// assert_eq!(Tensor::load(folder.join("x.npy"))?.refine_names(["N", "C"])?, x);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
pub trait Files: Sized {
    #[doc(hidden)]
    fn stored(&self) -> &NamedTensor;

    #[doc(hidden)]
    fn of_stored(value: NamedTensor) -> Self;

    /// Writes the tensor to a file, or replaces the file. `.safetensors` keeps the dtype and names; `.npy` is
    /// NumPy's format, which has no names and no `bf16`. If writing fails, an existing file is unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Value`] for any other extension, [`ErrorKind::DType`] for `bf16` in a
    /// `.npy` file.
    #[track_caller]
    fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        save(self.stored(), path.as_ref())
    }

    /// Reads a tensor from a `.npy` file, or from a `.safetensors`, `.npz`, `.pt` or `.pth` file with a
    /// single tensor.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Format`] if the content does not follow the format or does not have
    /// exactly one tensor, [`ErrorKind::Value`] for any other extension, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    fn load(path: impl AsRef<Path>) -> Result<Self> {
        load(path.as_ref()).map(Self::of_stored)
    }

    /// Writes the tensor to a file in NumPy's `.npy` format, or replaces the file. The names of dims are
    /// lost, because the format has none. If that fails, an existing file is unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::DType`] for `bf16`, which NumPy does not have.
    ///
    /// # Source
    /// NumPy, `numpy.lib.format`.
    ///
    /// # Examples
    /// ```
    /// use namegrad_core::NamedTensor;
    /// use namegrad_io::Files;
    /// # let path = std::env::temp_dir().join(format!("namegrad-doc-{}.npy", std::process::id()));
    /// NamedTensor::new([[1.0, 2.0], [3.0, 4.0]])?.save_npy(&path)?;
    /// let x = NamedTensor::load_npy(&path)?.refine_names(["row", "column"])?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), namegrad_core::Error>(())
    /// ```
    #[track_caller]
    fn save_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        npy::save("save_npy", self.stored(), path.as_ref())
    }

    /// Reads a NumPy `.npy` file; the dims are unnamed. For an array in Fortran order, the result is a view.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be read, [`ErrorKind::Format`] if it is not a `.npy` file, is cut
    /// short, or has elements of a type that is not among the ten; [`ErrorKind::OutOfMemory`].
    #[track_caller]
    fn load_npy(path: impl AsRef<Path>) -> Result<Self> {
        npy::load("load_npy", path.as_ref()).map(Self::of_stored)
    }
}

impl Files for NamedTensor {
    fn stored(&self) -> &NamedTensor {
        self
    }

    fn of_stored(value: NamedTensor) -> NamedTensor {
        value
    }
}

impl Files for Tensor {
    fn stored(&self) -> &NamedTensor {
        self.value()
    }

    fn of_stored(value: NamedTensor) -> Tensor {
        Tensor::constant(value)
    }
}

/// The name of the tensor in a safetensors file.
const NAME: &str = "tensor";

/// The extensions of files that are written, and of those that are read.
const WRITTEN: [&str; 2] = ["safetensors", "npy"];
const READ: [&str; 5] = ["safetensors", "npy", "npz", "pt", "pth"];

/// Whether a file is `.npy`, by its extension, which must be one of these.
#[track_caller]
fn is_npy(op: &'static str, path: &Path, extensions: &[&str]) -> Result<bool> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    for known in extensions {
        if extension.eq_ignore_ascii_case(known) {
            return Ok(*known == "npy");
        }
    }
    Err(unknown(op, path, extensions))
}

#[cold]
#[track_caller]
fn unknown(op: &'static str, path: &Path, extensions: &[&str]) -> Error {
    let mut message = format!("{}: expected a file name that ends in ", path.display());
    for (at, extension) in extensions.iter().enumerate() {
        let between = match extensions.len() - at {
            _ if at == 0 => "",
            1 => " or ",
            _ => ", ",
        };
        append(&mut message, format_args!("{between}.{extension}"));
    }
    let repair = format!("{:?}", format!("{}", path.with_extension("safetensors").display()));
    Error::new(ErrorKind::Value, op, message).with_repair(repair)
}

#[track_caller]
fn save(x: &NamedTensor, path: &Path) -> Result<()> {
    const OP: &str = "save";
    if is_npy(OP, path, &WRITTEN)? {
        return npy::save(OP, x, path);
    }
    let mut file = TensorFile::default();
    insert(&mut file.tensors, NAME.into(), x.clone());
    file.into_saved(path)
}

#[track_caller]
fn load(path: &Path) -> Result<NamedTensor> {
    const OP: &str = "load";
    let caller = Location::caller();
    if is_npy(OP, path, &READ)? {
        return npy::load(OP, path);
    }
    let tensors = TensorFile::load(path)?.tensors;
    if tensors.len() != 1 {
        return Err(not_one(path, &tensors).at(caller));
    }
    Ok(tensors.into_values().next().expect("there is one"))
}

/// The error of a file that has not exactly one tensor.
#[cold]
fn not_one(path: &Path, tensors: &BTreeMap<String, NamedTensor>) -> Error {
    let names = quoted_list(5, &mut tensors.keys().map(String::as_str));
    let (path, count) = (path.display(), tensors.len());
    let message = format!("{path}: expected one tensor, found {count}: {names}");
    let repair = format!("namegrad::io::TensorFile::load({:?})?.tensors", path.to_string());
    Error::new(ErrorKind::Format, "load", message).with_repair(repair)
}
