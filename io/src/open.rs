//! [`OpenFile`]: a safetensors file whose tensors are read one by one.

use crate::TensorFile;
use crate::fields::insert;
use crate::input::{Reader, SourceFile};
use crate::safetensors::{self, Contents, Stored};
use crate::sorted;
use crate::text::quoted_list;
use memmap2::Mmap;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result, Shape};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::panic::Location;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A safetensors file whose header is read, and whose tensors are read when they are asked for: for a few
/// tensors of a large file, or for its shapes alone.
///
/// A tensor always has its own memory: it is copied from the file, which may store it at any alignment, and
/// stays valid when the file changes. [`open`](Self::open) reads from the file, [`map`](Self::map) from a
/// memory map, which several threads can do at once.
///
/// # Examples
/// ```
/// use namegrad_core::NamedTensor;
/// use namegrad_io::{OpenFile, TensorFile};
/// let mut file = TensorFile::default();
/// file.tensors.insert("bias".into(), NamedTensor::zeros([("out", 2)])?);
/// file.tensors.insert("weight".into(), NamedTensor::ones([("out", 2), ("in", 3)])?);
/// # let path = std::env::temp_dir().join(format!("namegrad-open-{}.safetensors", std::process::id()));
/// file.save(&path)?;
///
/// let file = OpenFile::open(&path)?;
/// assert!(file.names().eq(["bias", "weight"]));
/// assert_eq!(file.shape("weight").unwrap().to_string(), "[out=2, in=3]");
/// assert_eq!(file.tensor("bias")?, NamedTensor::zeros([("out", 2)])?);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), namegrad_core::Error>(())
/// ```
#[derive(Debug)]
pub struct OpenFile {
    input: SourceFile,
    metadata: BTreeMap<String, String>,
    /// The tensors, sorted by name.
    tensors: Vec<Stored>,
    elements: Backing,
}

/// The source of the elements: mapped memory or the file.
#[derive(Debug)]
enum Backing {
    File(Mutex<File>),
    Map(Mmap),
}

impl OpenFile {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], and [`ErrorKind::Format`] if the header is not that of a safetensors file of this
    /// length.
    #[track_caller]
    pub fn open(path: impl AsRef<Path>) -> Result<OpenFile> {
        let caller = Location::caller();
        OpenFile::new(path.as_ref(), &|file| Ok(Backing::File(Mutex::new(file))))
            .map_err(|error| error.at(caller))
    }

    /// Opens a file, reads its header and maps the file into memory.
    ///
    /// # Safety
    /// While the `OpenFile` exists, no program writes to the file or makes it shorter. Replacing it by
    /// another file, as [`TensorFile::save`](crate::TensorFile::save) does, is no problem.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and [`ErrorKind::Io`] if the system cannot map the file.
    ///
    /// # Examples
    /// ```
    /// # use namegrad_core::NamedTensor;
    /// # use namegrad_io::{Files, OpenFile};
    /// # let path = std::env::temp_dir().join(format!("namegrad-map-{}.safetensors", std::process::id()));
    /// # NamedTensor::ones([2, 3])?.save(&path)?;
    /// // SAFETY: no program changes the file.
    /// let file = unsafe { OpenFile::map(&path)? };
    /// assert_eq!(file.tensor("tensor")?, NamedTensor::ones([2, 3])?);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), namegrad_core::Error>(())
    /// ```
    #[track_caller]
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<OpenFile> {
        let caller = Location::caller();
        // SAFETY: the caller promises that the bytes of the file stay as they are.
        let map = |file: File| unsafe { Mmap::map(&file) }.map(Backing::Map);
        OpenFile::new(path.as_ref(), &map).map_err(|error| error.at(caller))
    }

    fn new(path: &Path, elements: &dyn Fn(File) -> io::Result<Backing>) -> Result<OpenFile> {
        let (input, file) = SourceFile::file("open", path)?;
        let read = safetensors::contents(&input, &mut Reader::file(&file, input.length))?;
        let Contents { metadata, mut tensors } = read;
        sorted::sort(&mut tensors, &|a: &Stored, b| a.name < b.name);
        let elements = elements(file).map_err(|error| input.failed(&error))?;
        Ok(OpenFile { input: SourceFile { op: "tensor", ..input }, metadata, tensors, elements })
    }

    /// The names of the tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.iter().map(|stored| stored.name.as_str())
    }

    /// The metadata: arbitrary strings by key.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Reads all tensors, with the metadata.
    #[doc(hidden)]
    #[track_caller]
    pub fn read_all(&self) -> Result<TensorFile> {
        let mut file = TensorFile { metadata: self.metadata.clone(), ..TensorFile::default() };
        for Stored { name, .. } in &self.tensors {
            insert(&mut file.tensors, name.clone(), self.tensor(name)?);
        }
        Ok(file)
    }

    /// The sizes of a tensor with the names of its dims.
    pub fn shape(&self, name: &str) -> Option<&Shape> {
        self.stored(name).map(|stored| &stored.shape)
    }

    /// The dtype of a tensor.
    pub fn dtype(&self, name: &str) -> Option<DType> {
        self.stored(name).map(|stored| stored.dtype)
    }

    /// Reads a tensor.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the file has no tensor of this name, [`ErrorKind::Io`] if it cannot be read,
    /// [`ErrorKind::Format`] if it has become shorter, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn tensor(&self, name: &str) -> Result<NamedTensor> {
        let caller = Location::caller();
        let stored = self.stored(name).ok_or_else(|| self.unknown(name).at(caller))?;
        let Stored { shape, dtype, at, .. } = stored;
        let read =
            |whole: Reader<'_>| self.input.tensor(shape.clone(), *dtype, &mut whole.part(at.start, at.end));
        let read = match &self.elements {
            Backing::Map(map) => read(Reader::bytes(map)),
            Backing::File(file) => {
                read(Reader::file(&file.lock().unwrap_or_else(PoisonError::into_inner), self.input.length))
            }
        };
        read.map_err(|error| error.at(caller))
    }

    fn stored(&self, name: &str) -> Option<&Stored> {
        let at = sorted::find(self.tensors.len(), &|at| &self.tensors[at].name, name).ok()?;
        Some(&self.tensors[at])
    }

    #[cold]
    fn unknown(&self, name: &str) -> Error {
        let some = quoted_list(5, &mut self.names());
        let message = format!("{}: no tensor '{name}', found {some}", self.input.name);
        Error::new(ErrorKind::Value, self.input.op, message)
    }
}
