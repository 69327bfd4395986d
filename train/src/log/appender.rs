//! [`Appender`]: a file to which whole records are appended, each completely or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that only grows by whole records, locked while it is open.
pub(super) struct Appender {
    path: PathBuf,
    file: File,
    /// The length of the whole records.
    length: u64,
    /// Whether the file may be longer than `length`, after a failed write.
    torn: bool,
}

impl Appender {
    /// Opens or creates the file.
    pub(super) fn open(path: PathBuf) -> io::Result<Appender> {
        let file = File::options().append(true).create(true).open(&path)?;
        lock(&file)?;
        let length = file.metadata()?.len();
        Ok(Appender { path, file, length, torn: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn len(&self) -> u64 {
        self.length
    }

    /// Appends records with a single write. After an error, the file ends with the last whole record.
    pub(super) fn append(&mut self, records: &[u8]) -> io::Result<()> {
        self.mend()?;
        if records.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.file.write_all(records) {
            self.torn = true;
            let _ = self.mend(); // tried again before the next write
            return Err(error);
        }
        self.length += records.len() as u64;
        Ok(())
    }

    /// Takes the last writes back.
    pub(super) fn truncate(&mut self, length: u64) {
        if length < self.length {
            self.length = length;
            self.torn = true;
            let _ = self.mend();
        }
    }

    fn mend(&mut self) -> io::Result<()> {
        // A device or a pipe has no length.
        if self.torn && self.file.metadata()?.is_file() {
            self.file.set_len(self.length)?;
        }
        self.torn = false;
        Ok(())
    }

    /// Waits until the content is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        match self.file.metadata()?.is_file() {
            true => self.file.sync_all(),
            false => Ok(()),
        }
    }
}

/// Checks that no other log has the file open. Where there are no locks, as on some network drives, it cannot
/// be known.
pub(super) fn check_unlocked(path: &Path) -> io::Result<()> {
    match File::options().append(true).open(path) {
        Ok(file) => lock(&file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(io::Error::new(io::ErrorKind::WouldBlock, "another log is writing to it"))
        }
        _ => Ok(()),
    }
}
