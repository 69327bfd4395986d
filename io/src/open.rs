//! [`OpenFile`]: a safetensors file whose tensors are read one by one.

use crate::TensorFile;
use crate::input::SourceFile;
use crate::safetensors::{self, Contents, Stored};
use memmap2::Mmap;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result, Shape};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
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
    tensors: Vec<Stored>,
    /// The position of each tensor in the list, by name.
    names: BTreeMap<String, usize>,
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
        OpenFile::new(path.as_ref(), |file| Ok(Backing::File(Mutex::new(file))))
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
        OpenFile::new(path.as_ref(), map).map_err(|error| error.at(caller))
    }

    fn new(path: &Path, elements: impl FnOnce(File) -> io::Result<Backing>) -> Result<OpenFile> {
        let (input, mut file): (SourceFile, BufReader<File>) = SourceFile::file("open", path)?;
        let Contents { metadata, tensors } = safetensors::contents(&input, &mut file)?;
        let mut names = BTreeMap::new();
        names.extend(tensors.iter().enumerate().map(|(at, stored)| (stored.name.clone(), at)));
        let elements = elements(file.into_inner()).map_err(|error| input.failed(&error))?;
        Ok(OpenFile { input: SourceFile { op: "tensor", ..input }, metadata, tensors, names, elements })
    }

    /// The names of the tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
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
        for name in self.names.keys() {
            file.tensors.insert(name.clone(), self.tensor(name)?);
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
        let read = match &self.elements {
            Backing::Map(map) => {
                // The header was compared with the length of the file before it was mapped.
                let bytes = map.get(stored.at.start as usize..stored.at.end as usize);
                stored.read(&self.input, &mut bytes.unwrap_or_default())
            }
            Backing::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let found = file.seek(SeekFrom::Start(stored.at.start));
                found.map_err(|error| self.input.failed(&error)).and_then(|_| {
                    stored.read(&self.input, &mut (&mut *file).take(stored.at.end - stored.at.start))
                })
            }
        };
        read.map_err(|error| error.at(caller))
    }

    fn stored(&self, name: &str) -> Option<&Stored> {
        self.names.get(name).map(|at| &self.tensors[*at])
    }

    #[cold]
    fn unknown(&self, name: &str) -> Error {
        let some: Vec<String> = self.names().take(5).map(|name| format!("'{name}'")).collect();
        let more = if self.tensors.len() > some.len() { ", ..." } else { "" };
        let message = format!("{}: no tensor '{name}', found {}{more}", self.input.name, some.join(", "));
        Error::new(ErrorKind::Value, self.input.op, message)
    }
}
