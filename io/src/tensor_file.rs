//! [`TensorFile`]: the content of a file with any number of tensors.

use crate::fields::{insert, insert_text};
use crate::input::{Reader, SourceFile, read_up_to, write_elements};
use crate::text::{closest_name, quoted_list};
use crate::{atomic, io_error, npz, safetensors, torch, zip};
use flate2::Crc;
use namegrad_autograd::Tensor;
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::Location;
use std::path::Path;

/// Tensors by name, and metadata: the content of a `.safetensors`, `.npz`, `.pt` or `.pth` file.
///
/// | | read | written | names of dims | metadata |
/// | --- | --- | --- | --- | --- |
/// | safetensors | yes | yes | yes | yes |
/// | NumPy's `.npz` | yes | if the file name ends in `.npz` | no | no |
/// | PyTorch's `.pt`, `.pth`, `.bin` | yes | no | no | numbers, strings, bools and `None` in it |
///
/// [`load`](Self::load) finds the format by the content of the file, whatever its name.
///
/// **Safetensors.** The names of dims are stored in the file's metadata. For each tensor that has names,
/// there is a key `names:<tensor>` with a JSON list such as `["N","C",null]`. Other programs can read these
/// files, without the names, and files of other programs are read as unnamed tensors. Your own metadata
/// cannot use keys that begin with `names:`. The same content always gives the same bytes.
/// [`OpenFile`](crate::OpenFile) reads the tensors of a file one by one.
///
/// **PyTorch.** A file of `torch.save` is a pickle, which is a program. It is read by an interpreter that
/// knows only tensors, parameters, dicts, lists, tuples, numbers, strings, bools and `None`: state dicts,
/// checkpoints of models and optimizers. A file that asks for anything else is an error that names it; no
/// code is ever run. A tensor in nested dicts is called by its path, such as `model.fc.weight`. Tensors that
/// share storage in PyTorch share a buffer. Files of versions before 1.6 and TorchScript programs are errors.
///
/// The tensors are plain values; `Tensor::constant(value)` makes a tensor with a tape of one.
///
/// # Source
/// Hugging Face, *Safetensors*, section "Format". NumPy, `numpy.savez`. PyTorch, `torch/_utils.py` and
/// `torch/serialization.py`.
///
/// # Examples
/// ```
/// use namegrad_core::NamedTensor;
/// use namegrad_io::TensorFile;
/// let mut file = TensorFile::default();
/// file.tensors.insert("weight".into(), NamedTensor::ones([("out", 2), ("in", 3)])?);
/// file.metadata.insert("epoch".into(), "7".into());
/// # let path = std::env::temp_dir().join(format!("namegrad-doc-{}.safetensors", std::process::id()));
/// file.save(&path)?;
///
/// let file = TensorFile::load(&path)?;
/// assert_eq!(format!("{:?}", file.tensors["weight"].shape()), "[out=2, in=3]");
/// assert_eq!(file.metadata["epoch"], "7");
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), namegrad_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TensorFile {
    /// The tensors by name.
    pub tensors: BTreeMap<String, NamedTensor>,
    /// The metadata: arbitrary strings by key.
    pub metadata: BTreeMap<String, String>,
}

/// The tensors by name and the metadata by key, both sorted.
#[doc(hidden)]
pub type FileEntries = (Vec<(String, NamedTensor)>, Vec<(String, String)>);

impl TensorFile {
    /// The file with these tensors and this metadata.
    #[doc(hidden)]
    pub fn of_entries(tensors: Vec<(String, NamedTensor)>, metadata: Vec<(String, String)>) -> TensorFile {
        let mut file = TensorFile::default();
        for (name, tensor) in tensors {
            insert(&mut file.tensors, name, tensor);
        }
        for (key, text) in metadata {
            insert_text(&mut file.metadata, key, text);
        }
        file
    }

    /// The tensor with this name.
    ///
    /// ```
    /// use namegrad::io::TensorFile;
    /// use namegrad::prelude::*;
    /// let mut file = TensorFile::default();
    /// file.tensors.insert("weight".into(), Tensor::ones([("in", 3)])?.into_value());
    /// assert_eq!(file.get("weight")?.sizes(), [3]);
    /// assert_eq!(file.get("wieght").unwrap_err().repair(), Some("\"weight\""));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if there is none.
    #[track_caller]
    pub fn get(&self, name: &str) -> Result<Tensor> {
        if let Some(tensor) = self.tensors.get(name) {
            return Ok(Tensor::constant(tensor.clone()));
        }
        let names = || self.tensors.keys().map(String::as_str);
        let message = format!("there is no tensor '{name}', only {}", quoted_list(20, &mut names()));
        let error = Error::new(ErrorKind::Value, "get", message);
        Err(match closest_name(name, &mut names()) {
            Some(close) => error.with_repair(format!("{close:?}")),
            None => error,
        })
    }

    /// A copy of the tensors by name and the metadata by key, both sorted.
    #[doc(hidden)]
    pub fn entries(&self) -> FileEntries {
        let (mut tensors, mut metadata) = (Vec::new(), Vec::new());
        for (name, tensor) in &self.tensors {
            tensors.push((name.clone(), tensor.clone()));
        }
        for (key, text) in &self.metadata {
            metadata.push((key.clone(), text.clone()));
        }
        (tensors, metadata)
    }

    /// [`save`](Self::save), after which the file is not needed.
    #[doc(hidden)]
    #[track_caller]
    pub fn into_saved(self, path: &Path) -> Result<()> {
        self.save(path)
    }

    /// The tensors by name and the metadata by key, both sorted.
    #[doc(hidden)]
    pub fn into_entries(self) -> FileEntries {
        self.entries()
    }

    /// Writes the file, or replaces it. If that fails, an existing file is unchanged. A file name that ends
    /// in `.npz` gives NumPy's format, any other safetensors.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be written. For safetensors, [`ErrorKind::Value`] if a tensor is called
    /// `__metadata__`, a metadata key begins with `names:`, or the header would exceed the limit of the
    /// format. For `.npz`, [`ErrorKind::Value`] if there is metadata or a name is longer than the format
    /// allows, [`ErrorKind::DType`] for `bf16`; the names of dims are lost. [`ErrorKind::Value`] for `.pt`
    /// and `.pth`, which are only read.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_to(path.as_ref())
    }

    /// Returns an error that names a tensor without elements, if there is one.
    #[track_caller]
    fn check_elements(&self, op: &'static str) -> Result<()> {
        for (name, x) in &self.tensors {
            x.check_elements(op).map_err(|error| error.context(format!("'{name}': ")))?;
        }
        Ok(())
    }

    #[track_caller]
    fn save_to(&self, path: &Path) -> Result<()> {
        const OP: &str = "save";
        self.check_elements(OP)?;
        let caller = Location::caller();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if ["pt", "pth"].iter().any(|torch| extension.eq_ignore_ascii_case(torch)) {
            let message = format!("{}: PyTorch's files are read, but not written", path.display());
            let repair = format!("{:?}", format!("{}", path.with_extension("safetensors").display()));
            return Err(Error::new(ErrorKind::Value, OP, message).with_repair(repair));
        }
        let written = if extension.eq_ignore_ascii_case("npz") {
            let arrays = npz::prepare(OP, self).map_err(|error| error.at(caller))?;
            atomic::write(path, |out| npz::write(&arrays, &mut |bytes| out.write_all(bytes)))
        } else {
            let header = safetensors::header(OP, self).map_err(|error| error.at(caller))?;
            atomic::write(path, |out| safetensors::write(self, &header, &mut |bytes| out.write_all(bytes)))
        };
        written.map_err(|error| io_error(OP, path, &error).at(caller))
    }

    /// Reads a file: safetensors, NumPy's `.npz`, or PyTorch's `.pt` and `.pth`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be read, [`ErrorKind::Format`] if the content is none of these, is
    /// damaged, has tensors of a dtype that is not among the ten, names that do not fit the tensors, or
    /// anything in a pickle that is not part of a state dict; [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn load(path: impl AsRef<Path>) -> Result<TensorFile> {
        let caller = Location::caller();
        SourceFile::file("load", path.as_ref())
            .and_then(|(input, file)| read(&input, Reader::file(&file, input.length)))
            .map_err(|error| error.at(caller))
    }

    /// The bytes of the file, in the safetensors format.
    ///
    /// # Errors
    /// Same as [`save`](Self::save), except [`ErrorKind::Io`].
    #[track_caller]
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        const OP: &str = "to_bytes";
        self.check_elements(OP)?;
        let caller = Location::caller();
        let header = safetensors::header(OP, self).map_err(|error| error.at(caller))?;
        let mut bytes = Vec::new();
        let written = safetensors::write(self, &header, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        });
        written.map_err(|error| Error::new(ErrorKind::OutOfMemory, OP, format!("{error}")).at(caller))?;
        Ok(bytes)
    }

    /// A checksum of the content: CRC-32 of the metadata and of the names, dtypes, dims and elements of the
    /// tensors. The order of the elements in memory does not matter.
    ///
    /// ```
    /// use namegrad_core::NamedTensor;
    /// use namegrad_io::TensorFile;
    /// let mut file = TensorFile::default();
    /// file.tensors.insert("weight".into(), NamedTensor::ones([("out", 2), ("in", 3)])?);
    /// let read = TensorFile::from_bytes(&file.to_bytes()?)?;
    /// assert_eq!(read.checksum()?, file.checksum()?);
    /// file.tensors.insert("weight".into(), NamedTensor::zeros([("out", 2), ("in", 3)])?);
    /// assert_ne!(read.checksum()?, file.checksum()?);
    /// # Ok::<(), namegrad_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] if there is no room for a dense copy of a view, [`ErrorKind::Unsupported`]
    /// for a tensor on the meta device.
    #[track_caller]
    pub fn checksum(&self) -> Result<u32> {
        self.checksum_without(None)
    }

    /// The [`checksum`](Self::checksum) without the metadata under a key.
    #[doc(hidden)]
    #[track_caller]
    pub fn checksum_without(&self, left_out: Option<&str>) -> Result<u32> {
        self.check_elements("checksum")?;
        let caller = Location::caller();
        let mut sum = Crc::new();
        // The length of a text is added as well: `a`, `bc` has another sum than `ab`, `c`.
        let add = |sum: &mut Crc, text: &str| {
            sum.update(&(text.len() as u64).to_le_bytes());
            sum.update(text.as_bytes());
        };
        for (key, text) in &self.metadata {
            if Some(key.as_str()) != left_out {
                add(&mut sum, key);
                add(&mut sum, text);
            }
        }
        for (name, x) in &self.tensors {
            add(&mut sum, name);
            add(&mut sum, &format!("{} {}", x.dtype(), x.shape()));
            let added = write_elements(x, &mut |bytes| {
                sum.update(bytes);
                Ok(())
            });
            added.map_err(|error| {
                Error::new(ErrorKind::OutOfMemory, "checksum", format!("{error}")).at(caller)
            })?;
        }
        Ok(sum.sum())
    }

    /// Reads the content of a file from bytes, in any format that [`load`](Self::load) reads.
    ///
    /// # Errors
    /// Same as [`load`](Self::load), except [`ErrorKind::Io`].
    #[track_caller]
    pub fn from_bytes(bytes: &[u8]) -> Result<TensorFile> {
        let caller = Location::caller();
        let input = SourceFile::bytes("from_bytes", bytes);
        read(&input, Reader::bytes(bytes)).map_err(|error| error.at(caller))
    }
}

/// Reads a file of any format.
fn read(input: &SourceFile, mut from: Reader<'_>) -> Result<TensorFile> {
    let failed = |error: std::io::Error| input.failed(&error);
    let mut start = Vec::new();
    read_up_to(8, &mut { from }, &mut start).map_err(failed)?;
    if start.starts_with(zip::ENTRY) || start.starts_with(zip::END) {
        let archive = zip::Archive::new(from, input.length).map_err(failed)?;
        return match torch::folder(&archive) {
            Some(folder) => torch::read(input, &archive, folder),
            None => npz::read(input, &archive),
        };
    }
    if start == torch::LEGACY {
        return Err(torch::legacy(input));
    }
    safetensors::read(input, &mut from)
}
