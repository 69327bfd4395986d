//! [`TensorFile`]: the content of a file with any number of tensors.

use crate::input::{ReadSeek, SourceFile, read_up_to};
use crate::{atomic, io_error, npz, safetensors, torch, zip};
use flate2::Crc;
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use std::collections::BTreeMap;
use std::io::{self, Cursor, SeekFrom, Write};
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
type FileEntries = (Vec<(String, NamedTensor)>, Vec<(String, String)>);

impl TensorFile {
    /// The file with these tensors and this metadata.
    #[doc(hidden)]
    pub fn of_entries(tensors: Vec<(String, NamedTensor)>, metadata: Vec<(String, String)>) -> TensorFile {
        TensorFile { tensors: tensors.into_iter().collect(), metadata: metadata.into_iter().collect() }
    }

    /// A copy of the tensors by name and the metadata by key, both sorted.
    #[doc(hidden)]
    pub fn entries(&self) -> FileEntries {
        self.clone().into_entries()
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
        (self.tensors.into_iter().collect(), self.metadata.into_iter().collect())
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

    #[track_caller]
    fn save_to(&self, path: &Path) -> Result<()> {
        const OP: &str = "save";
        let caller = Location::caller();
        let written = |error: std::io::Error| io_error(OP, path, &error).at(caller);
        match path
            .extension()
            .and_then(|extension| extension.to_str())
            .map(str::to_ascii_lowercase)
            .as_deref()
        {
            Some("npz") => {
                let arrays = npz::prepare(OP, self).map_err(|error| error.at(caller))?;
                atomic::write(path, |out| npz::write(&arrays, out)).map_err(written)
            }
            Some("pt" | "pth") => {
                let message = format!("{}: PyTorch's files are read, but not written", path.display());
                let repair = format!("{:?}", path.with_extension("safetensors").display().to_string());
                Err(Error::new(ErrorKind::Value, OP, message).with_repair(repair).at(caller))
            }
            _ => {
                let header = safetensors::header(OP, self).map_err(|error| error.at(caller))?;
                atomic::write(path, |out| safetensors::write(self, &header, out)).map_err(written)
            }
        }
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
            .and_then(|(input, mut file)| read(&input, &mut file))
            .map_err(|error| error.at(caller))
    }

    /// The bytes of the file, in the safetensors format.
    ///
    /// # Errors
    /// Same as [`save`](Self::save), except [`ErrorKind::Io`].
    #[track_caller]
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        const OP: &str = "to_bytes";
        let caller = Location::caller();
        let header = safetensors::header(OP, self).map_err(|error| error.at(caller))?;
        let mut bytes = Vec::new();
        let written = safetensors::write(self, &header, &mut bytes);
        written.map_err(|error| Error::new(ErrorKind::OutOfMemory, OP, error.to_string()).at(caller))?;
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
    /// [`ErrorKind::OutOfMemory`] if there is no room for a dense copy of a view.
    #[track_caller]
    pub fn checksum(&self) -> Result<u32> {
        let (mut sum, caller) = (Checksum(Crc::new()), Location::caller());
        for (key, text) in &self.metadata {
            sum.add(key.as_bytes());
            sum.add(text.as_bytes());
        }
        for (name, x) in &self.tensors {
            sum.add(name.as_bytes());
            sum.add(format!("{} {}", x.dtype(), x.shape()).as_bytes());
            x.write_bytes(&mut sum).map_err(|error| {
                Error::new(ErrorKind::OutOfMemory, "checksum", error.to_string()).at(caller)
            })?;
        }
        Ok(sum.0.sum())
    }

    /// Reads the content of a file from bytes, in any format that [`load`](Self::load) reads.
    ///
    /// # Errors
    /// Same as [`load`](Self::load), except [`ErrorKind::Io`].
    #[track_caller]
    pub fn from_bytes(bytes: &[u8]) -> Result<TensorFile> {
        let caller = Location::caller();
        let input = SourceFile::bytes("from_bytes", bytes);
        read(&input, &mut Cursor::new(bytes)).map_err(|error| error.at(caller))
    }
}

/// The sum of what is written to it.
struct Checksum(Crc);

impl Checksum {
    /// Adds bytes, and their number: `a`, `bc` has another sum than `ab`, `c`.
    fn add(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
}

impl Write for Checksum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a file of any format.
fn read(input: &SourceFile, from: &mut dyn ReadSeek) -> Result<TensorFile> {
    let failed = |error: std::io::Error| input.failed(&error);
    let mut start = Vec::new();
    read_up_to(8, from, &mut start).map_err(failed)?;
    from.seek(SeekFrom::Start(0)).map_err(failed)?;
    if start.starts_with(zip::ENTRY) || start.starts_with(zip::END) {
        let mut archive = zip::Archive::new(from, input.length).map_err(failed)?;
        let torch = torch::folder(&archive).map(str::to_string);
        return match torch {
            Some(folder) => torch::read(input, &mut archive, &folder),
            None => npz::read(input, &mut archive),
        };
    }
    if start == torch::LEGACY {
        return Err(torch::legacy(input));
    }
    safetensors::read(input, from)
}
