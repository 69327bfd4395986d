//! [`SourceFile`]: the file or bytes that are read, with the name and op for error messages.

use crate::io_error;
use namegrad_core::{Error, ErrorKind, Result};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

/// A reader that can seek.
pub(crate) trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// Appends at most `most` bytes to `bytes`. The reader is a trait object, so that this is compiled once.
pub(crate) fn read_up_to(most: u64, from: &mut dyn Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    from.take(most).read_to_end(bytes).map(drop)
}

/// A file or bytes that are read.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) op: &'static str,
    pub(crate) name: String,
    /// The length in bytes. Lengths in the file are compared with it before they are used.
    pub(crate) length: u64,
}

impl SourceFile {
    pub(crate) fn file(op: &'static str, path: &Path) -> Result<(SourceFile, BufReader<File>)> {
        let failed = |error: io::Error| io_error(op, path, &error);
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let input = SourceFile { op, name: path.display().to_string(), length };
        Ok((input, BufReader::with_capacity(1 << 16, file)))
    }

    pub(crate) fn bytes(op: &'static str, bytes: &[u8]) -> SourceFile {
        SourceFile { op, name: "bytes".into(), length: bytes.len() as u64 }
    }

    #[cold]
    pub(crate) fn malformed(&self, message: impl std::fmt::Display) -> Error {
        Error::new(ErrorKind::Format, self.op, format!("{}: {message}", self.name))
    }

    /// The error of a read that failed: that of a file whose content is wrong, or of the system.
    #[cold]
    pub(crate) fn failed(&self, error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => self.malformed(error),
            io::ErrorKind::UnexpectedEof => self.malformed("the file is cut short"),
            _ => Error::new(ErrorKind::Io, self.op, format!("{}: {error}", self.name)),
        }
    }
}
