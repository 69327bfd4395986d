//! Files that are either written wholly or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Replaces the file at `path` by what `write` writes. On an error, and after a crash, the file is what it
/// was.
///
/// The content goes to a new file in the same folder, is forced to the disk, and takes the name only then.
/// Where `path` is a link, what it points to is replaced.
pub(super) fn write(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let (temporary, file) = beside(&target)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&temporary.0, &target)?;
    sync_folder(&target);
    Ok(())
}

/// A new file in the folder of `target`.
fn beside(target: &Path) -> io::Result<(Temporary, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    if target.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
    }
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".namegrad-{}-{number}.tmp", std::process::id());
        let temporary = target.with_file_name(name);
        match File::create_new(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {} // a process of that id died here
            file => return file.map(|file| (Temporary(temporary), file)),
        }
    }
}

/// A file that is removed when it goes out of scope; a no-op once it has its final name.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Makes the new name last through a loss of power. Not every file system can, and the content is safe
/// without it.
fn sync_folder(target: &Path) {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn an_error_leaves_what_was_there() {
        let folder = std::env::temp_dir().join(format!("namegrad-atomic-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        write(&path, |out| out.write_all(b"first")).unwrap();
        let failed = write(&path, |out| {
            out.write_all(b"half of the second")?;
            Err(io::Error::other("no"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"first");
        write(&path, |out| out.write_all(b"third")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"third");
        assert!(write(&folder, |_| Ok(())).is_err(), "a folder is not a file");
        let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["file"], "no temporary file is left");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = std::env::temp_dir().join(format!("namegrad-link-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, link) = (folder.join("file"), folder.join("latest"));
        fs::write(&path, b"first").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, |out| out.write_all(b"second")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        fs::remove_dir_all(&folder).unwrap();
    }
}
