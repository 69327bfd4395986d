//! Writing files of any format atomically: completely or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Replaces the file at `path` with what `write` writes. After an error or a crash, the file is unchanged.
///
/// The content is written to a temporary file in the same folder and synced to disk; only then is the file
/// renamed. If `path` is a link, its target is replaced; a device, such as `/dev/null`, or a pipe is not
/// replaced but written to. A process that is killed leaves its temporary file behind; the next write to a
/// file in that folder removes it.
///
/// ```
/// use namegrad_io::atomic;
/// use std::io::Write;
/// # let path = std::env::temp_dir().join(format!("namegrad-doc-atomic-{}.txt", std::process::id()));
/// atomic::write(&path, |out| out.write_all(b"loss 0.25"))?;
/// assert_eq!(std::fs::read(&path)?, b"loss 0.25");
/// # std::fs::remove_file(path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Those of the file system and of `write`.
pub fn write(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut write = Some(write);
    replace(path, &mut |out| write.take().map_or(Ok(()), |write| write(out)))
}

/// [`write`], which calls `write` once.
fn replace(path: &Path, write: &mut dyn FnMut(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if fs::metadata(&target).is_ok_and(|kind| !kind.is_file() && !kind.is_dir()) {
        let mut out = BufWriter::new(File::options().write(true).open(&target)?);
        write(&mut out)?;
        return out.into_inner().map(drop).map_err(io::IntoInnerError::into_error);
    }
    remove_abandoned(&target);
    let (temporary, file) = beside(&target)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    fs::rename(&temporary.0, &target)?;
    drop(file); // releases its lock, which must last until the file is renamed
    sync_folder(&target);
    Ok(())
}

const PREFIX: &str = ".namegrad-";
const SUFFIX: &str = ".tmp";

/// Creates a temporary file in the folder of `target`, locked while it is open.
fn beside(target: &Path) -> io::Result<(Temporary, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    if target.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
    }
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}{SUFFIX}", std::process::id());
        let temporary = target.with_file_name(name);
        let file = match File::create_new(&temporary) {
            // Left by a dead process with this id.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            file => file?,
        };
        // Where there are no locks, as on some network drives, nothing is removed either.
        let locked = file.lock().is_ok();
        if !locked || temporary.exists() {
            return Ok((Temporary(temporary), file));
        } // otherwise another process removed it before it was locked
    }
}

/// Removes the temporary files of killed writes in the folder of `target`: those that no process has locked.
fn remove_abandoned(target: &Path) {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX)) {
            continue;
        }
        // Opened for writing, because some systems cannot lock other files.
        let Ok(file) = File::options().write(true).open(entry.path()) else { continue };
        if file.try_lock().is_ok() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A file that is removed when it goes out of scope, unless it has been renamed.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Makes the rename survive a loss of power. Not every file system supports this, and the content is safe
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

    #[test]
    fn what_a_killed_write_left_goes_with_the_next() {
        let folder = std::env::temp_dir().join(format!("namegrad-killed-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        fs::write(folder.join(".namegrad-1-0.tmp"), b"half").unwrap();
        fs::write(folder.join(".other.tmp"), b"whole").unwrap();
        // Another write is in progress.
        write(&folder.join("slow"), |out| {
            out.write_all(b"first")?;
            write(&path, |out| out.write_all(b"second"))
        })
        .unwrap();
        assert_eq!(fs::read(folder.join("slow")).unwrap(), b"first");
        assert_eq!(fs::read(&path).unwrap(), b"second");
        let mut left: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".other.tmp", "file", "slow"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_device_stays_a_device() {
        use std::os::unix::fs::FileTypeExt;
        let device = Path::new("/dev/null");
        write(device, |out| out.write_all(b"lost")).unwrap();
        assert!(fs::metadata(device).unwrap().file_type().is_char_device());
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
