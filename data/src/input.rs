//! The input of readers: bytes from files or memory, gzipped or not.

use flate2::bufread::MultiGzDecoder;
use namegrad_core::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, Read};
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
    pub(crate) bytes: Bytes,
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
            Input::File(path) => format!("{}", path.display()),
            Input::Bytes(_) => "the bytes".into(),
        }
    }

    /// The content. Its first bytes, not its name, tell whether it is gzipped.
    pub(crate) fn open(&self, op: &'static str) -> Result<Opened> {
        self.unpacked().map_err(|error| self.failed(op, &error))
    }

    fn unpacked(&self) -> io::Result<Opened> {
        let (place, stored) = match self {
            Input::File(path) => {
                let file = File::open(path)?;
                let about = file.metadata()?;
                if about.is_dir() {
                    return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder, not a file"));
                }
                (Place::File(file), about.len())
            }
            Input::Bytes(bytes) => (Place::Memory(bytes.clone(), 0), bytes.len() as u64),
        };
        let mut bytes = Bytes::new(place);
        let gzipped = bytes.peek(2)?.starts_with(&[0x1f, 0x8b]);
        if gzipped {
            bytes = Bytes::new(Place::Gzipped(Box::new(MultiGzDecoder::new(bytes))));
        }
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
            _ => (ErrorKind::Io, format!("{error}")),
        };
        Error::new(kind, op, format!("{}: {what}", self.name()))
    }

    /// The error of content that does not follow its format.
    #[cold]
    pub(crate) fn malformed(&self, op: &'static str, what: &dyn std::fmt::Display) -> Error {
        Error::new(ErrorKind::Format, op, format!("{}: {what}", self.name()))
    }
}

/// The unpacked content of an input, with a buffer.
pub(crate) struct Bytes {
    from: Place,
    buffer: Vec<u8>,
    /// The start of the rest of the buffer.
    at: usize,
}

pub(crate) enum Place {
    File(File),
    /// Bytes, and the position of the next one.
    Memory(Arc<Cow<'static, [u8]>>, usize),
    Gzipped(Box<MultiGzDecoder<Bytes>>),
    #[cfg(test)]
    Other(Box<dyn Read + Send>),
}

/// The number of bytes that are read at once.
const PART: usize = 1 << 16;

impl Bytes {
    pub(crate) fn new(from: Place) -> Bytes {
        Bytes { from, buffer: Vec::new(), at: 0 }
    }

    /// Reads more bytes into the buffer, and returns how many.
    fn more(&mut self) -> io::Result<usize> {
        self.buffer.drain(..std::mem::take(&mut self.at));
        let rest = self.buffer.len();
        self.buffer.resize(rest + PART, 0);
        let part = &mut self.buffer[rest..];
        let read = match &mut self.from {
            Place::File(file) => file.read(part),
            Place::Memory(bytes, at) => {
                let n = PART.min(bytes.len() - *at);
                part[..n].copy_from_slice(&bytes[*at..*at + n]);
                *at += n;
                Ok(n)
            }
            Place::Gzipped(from) => from.read(part),
            #[cfg(test)]
            Place::Other(from) => from.read(part),
        };
        self.buffer.truncate(rest + *read.as_ref().unwrap_or(&0));
        read
    }

    /// The next bytes, which stay the next ones: at least `count`, unless there are fewer.
    pub(crate) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.buffer.len() - self.at < count && self.more()? > 0 {}
        Ok(&self.buffer[self.at..])
    }

    /// All bytes, if none has been consumed.
    pub(crate) fn into_vec(mut self) -> io::Result<Vec<u8>> {
        self.peek(usize::MAX)?;
        Ok(self.buffer)
    }
}

impl BufRead for Bytes {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.buffer.len() {
            self.more()?;
        }
        Ok(&self.buffer[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

impl Read for Bytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let n = bytes.len().min(out.len());
        out[..n].copy_from_slice(&bytes[..n]);
        self.consume(n);
        Ok(n)
    }
}
