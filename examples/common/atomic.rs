//! Writing files atomically.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::Result;

/// Writes `bytes` to `path`: readers see the old file or the new one, never part of it.
///
/// The bytes are first written to a file in the same folder, because a rename is atomic only within one file
/// system.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.file_name().ok_or_else(|| format!("{}: not the name of a file", path.display()))?;
    let temporary = path.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    write_and_rename(&temporary, path, bytes).map_err(|error| {
        // If the file could not be created, there is nothing to remove; the first error is the one to report.
        let _ = fs::remove_file(&temporary);
        format!("{}: cannot be written: {error}", path.display()).into()
    })
}

fn write_and_rename(temporary: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn replaces_a_file_and_leaves_nothing_else() {
        let folder = Scratch::new("atomic-replace");
        let path = folder.path().join("a.txt");
        write(&path, b"old and long").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_names_the_file_and_leaves_nothing() {
        let folder = Scratch::new("atomic-fail");
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        let error = write(&taken, b"x").unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: cannot be written: ", taken.display())), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write(&folder.path().join("missing/a.txt"), b"x").is_err());
    }
}
