//! The input of readers: bytes from files or memory, gzipped or not.

use flate2::read::MultiGzDecoder;
use namegrad_core::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file or bytes.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    File(PathBuf),
    Bytes(Arc<Cow<'static, [u8]>>),
}

/// The content of an input.
pub(crate) struct Opened {
    /// The bytes, unpacked if they were gzipped.
    pub(crate) bytes: Box<dyn Read + Send>,
    /// The number of bytes before they are unpacked.
    pub(crate) stored: u64,
    pub(crate) gzipped: bool,
}

impl Input {
    pub(crate) fn file(path: &Path) -> Input {
        Input::File(path.to_path_buf())
    }

    pub(crate) fn bytes(bytes: impl Into<Cow<'static, [u8]>>) -> Input {
        Input::Bytes(Arc::new(bytes.into()))
    }

    /// The name for errors.
    pub(crate) fn name(&self) -> String {
        match self {
            Input::File(path) => path.display().to_string(),
            Input::Bytes(_) => "the bytes".into(),
        }
    }

    /// The content. Its first bytes, not its name, tell whether it is gzipped.
    pub(crate) fn open(&self, op: &'static str) -> Result<Opened> {
        self.unpacked().map_err(|error| self.failed(op, &error))
    }

    fn unpacked(&self) -> io::Result<Opened> {
        let (mut bytes, stored): (Box<dyn Read + Send>, u64) = match self {
            Input::File(path) => {
                let file = File::open(path)?;
                let about = file.metadata()?;
                if about.is_dir() {
                    return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder, not a file"));
                }
                (Box::new(BufReader::with_capacity(1 << 16, file)), about.len())
            }
            Input::Bytes(bytes) => (Box::new(Cursor::new(SharedBytes(bytes.clone()))), bytes.len() as u64),
        };
        let mut start = Vec::new();
        bytes.by_ref().take(2).read_to_end(&mut start)?;
        let gzipped = start == [0x1f, 0x8b];
        let bytes = Cursor::new(start).chain(bytes);
        let bytes: Box<dyn Read + Send> = match gzipped {
            true => Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(bytes))),
            false => Box::new(bytes),
        };
        Ok(Opened { bytes, stored, gzipped })
    }

    /// The error of an input that could not be read.
    #[cold]
    pub(crate) fn failed(&self, op: &'static str, error: &io::Error) -> Error {
        let (kind, what) = match error.kind() {
            io::ErrorKind::UnexpectedEof => (ErrorKind::Format, "truncated".to_string()),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                (ErrorKind::Format, format!("damaged: {error}"))
            }
            _ => (ErrorKind::Io, error.to_string()),
        };
        Error::new(kind, op, format!("{}: {what}", self.name()))
    }

    /// The error of content that does not follow its format.
    #[cold]
    pub(crate) fn malformed(&self, op: &'static str, what: impl std::fmt::Display) -> Error {
        Error::new(ErrorKind::Format, op, format!("{}: {what}", self.name()))
    }
}

/// Bytes that several readers share.
struct SharedBytes(Arc<Cow<'static, [u8]>>);

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
