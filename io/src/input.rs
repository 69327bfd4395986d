//! `SourceFile`: the file or bytes that are read, with the name and op for error messages, and `Reader`,
//! which reads a part of them. `Output` is the file or bytes that are written.

use crate::io_error;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result, Shape};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Reads a tensor from its elements in little-endian order, with a function like [`Read::read`].
///
/// # Errors
/// The errors of [`NamedTensor::read_bytes`].
#[track_caller]
pub fn read_tensor(
    op: &'static str,
    shape: Shape,
    dtype: DType,
    read: &mut dyn FnMut(&mut [u8]) -> io::Result<usize>,
    failed: &dyn Fn(io::Error) -> Error,
) -> Result<NamedTensor> {
    struct Elements<'r>(&'r mut dyn FnMut(&mut [u8]) -> io::Result<usize>);

    impl Read for Elements<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            (self.0)(out)
        }
    }

    NamedTensor::read_bytes(op, shape, dtype, &mut Elements(read), failed)
}

/// Reads bytes as [`Read::read`] does. The table of methods of a `dyn Read` has six more, each of which is
/// compiled again for every reader.
pub(crate) trait ReadSome {
    fn read_some(&mut self, out: &mut [u8]) -> io::Result<usize>;
}

impl Read for &mut dyn ReadSome {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.read_some(out)
    }
}

/// Appends at most `most` bytes to `bytes`.
pub(crate) fn read_up_to(most: u64, from: &mut dyn ReadSome, bytes: &mut Vec<u8>) -> io::Result<()> {
    let start = bytes.len() as u64;
    let mut chunk = [0; 1 << 13];
    loop {
        let left = most - (bytes.len() as u64 - start);
        let room = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match from.read_some(&mut chunk[..room]) {
            Ok(0) => return Ok(()),
            Ok(n) => bytes.extend_from_slice(&chunk[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Fills `out` with bytes.
pub(crate) fn read_exactly(mut from: &mut dyn ReadSome, out: &mut [u8]) -> io::Result<()> {
    from.read_exact(out)
}

/// Bytes in a file or in memory, from a position to an end.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    from: Place<'a>,
    at: u64,
    end: u64,
}

#[derive(Clone, Copy)]
enum Place<'a> {
    File(&'a File),
    Bytes(&'a [u8]),
}

impl<'a> Reader<'a> {
    pub(crate) fn file(file: &'a File, end: u64) -> Reader<'a> {
        Reader { from: Place::File(file), at: 0, end }
    }

    pub(crate) fn bytes(bytes: &'a [u8]) -> Reader<'a> {
        Reader { from: Place::Bytes(bytes), at: 0, end: bytes.len() as u64 }
    }

    /// The bytes from `start` to `end`, as far as this reader has them.
    pub(crate) fn part(self, start: u64, end: u64) -> Reader<'a> {
        Reader { from: self.from, at: start, end: end.min(self.end) }
    }
}

impl ReadSome for Reader<'_> {
    fn read_some(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_sub(self.at);
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        let n = match self.from {
            _ if most == 0 => 0,
            Place::File(mut file) => {
                file.seek(SeekFrom::Start(self.at))?;
                file.read(&mut out[..most])?
            }
            Place::Bytes(bytes) => {
                let start = self.at as usize; // before the end of the bytes
                out[..most].copy_from_slice(&bytes[start..start + most]);
                most
            }
        };
        self.at += n as u64;
        Ok(n)
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.read_some(out)
    }
}

/// A function that writes all of the bytes that it is called with.
pub(crate) type Output<'a> = dyn FnMut(&[u8]) -> io::Result<()> + 'a;

/// Writes the elements of a tensor.
pub(crate) fn write_elements(x: &NamedTensor, out: &mut Output<'_>) -> io::Result<()> {
    struct Writer<'a, 'b>(&'a mut Output<'b>);

    impl Write for Writer<'_, '_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            (self.0)(bytes)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    x.write_bytes(&mut Writer(out))
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
    pub(crate) fn file(op: &'static str, path: &Path) -> Result<(SourceFile, File)> {
        let failed = |error: io::Error| io_error(op, path, &error);
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        Ok((SourceFile { op, name: format!("{}", path.display()), length }, file))
    }

    pub(crate) fn bytes(op: &'static str, bytes: &[u8]) -> SourceFile {
        SourceFile { op, name: "bytes".into(), length: bytes.len() as u64 }
    }

    /// Reads the elements of a tensor.
    #[track_caller]
    pub(crate) fn tensor(&self, shape: Shape, dtype: DType, from: &mut dyn ReadSome) -> Result<NamedTensor> {
        read_tensor(self.op, shape, dtype, &mut |out| from.read_some(out), &|error| self.failed(&error))
    }

    #[cold]
    pub(crate) fn malformed(&self, message: impl std::fmt::Display) -> Error {
        self.malformed_as(&message)
    }

    #[cold]
    #[inline(never)]
    fn malformed_as(&self, message: &dyn std::fmt::Display) -> Error {
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
