//! The folder of checkpoints: the names of its files, what is in it, and its lock.

use super::content::CheckpointHeader;
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_io::OpenFile;
use namegrad_io::sorted::{list_of, sort};
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

const PREFIX: &str = "step-";
const SUFFIX: &str = ".safetensors";

/// A checkpoint in a folder.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The step after which it was saved.
    pub step: u64,
    /// Its file.
    pub path: PathBuf,
    /// The metrics that it was saved with.
    pub metrics: BTreeMap<String, f64>,
    /// The error of reading the file, if it is damaged.
    pub damage: Option<Error>,
}

/// The path of the checkpoint of a step.
pub(super) fn path_of(folder: &Path, step: u64) -> PathBuf {
    folder.join(format!("{PREFIX}{step:08}{SUFFIX}"))
}

/// The steps of all checkpoints, in order. Other files in the folder do not matter.
pub(super) fn steps(op: &'static str, folder: &Path) -> Result<Vec<u64>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| io_error(op, folder, &error))?,
    };
    let mut steps = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| io_error(op, folder, &error))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let digits = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
        let step = digits.and_then(|digits| digits.parse::<u64>().ok());
        // A copy such as `step-1.safetensors` is not ours.
        let is_ours = |step: &u64| path_of(folder, *step).file_name().is_some_and(|own| *own == *name);
        steps.extend(step.filter(is_ours).filter(|_| !entry.path().is_dir()));
    }
    sort(&mut steps, &|a, b| a < b);
    Ok(steps)
}

/// All checkpoints in a folder, by step.
pub(super) fn list(op: &'static str, folder: &Path) -> Result<Vec<Checkpoint>> {
    let steps = steps(op, folder)?;
    Ok(list_of(steps.len(), &mut |at| describe(op, folder, steps[at])))
}

/// A map of metrics by name.
pub(super) fn by_name(metrics: Vec<(String, f64)>) -> BTreeMap<String, f64> {
    let mut named = BTreeMap::new();
    named.extend(metrics);
    named
}

/// Reads what a checkpoint says about itself, without its tensors.
fn describe(op: &'static str, folder: &Path, step: u64) -> Checkpoint {
    let path = path_of(folder, step);
    let header = OpenFile::open(&path).and_then(|file| header(op, &path, step, file.metadata()));
    let (metrics, damage) = match header {
        Ok(header) => (header.metrics(), None),
        Err(error) => (BTreeMap::new(), Some(error)),
    };
    Checkpoint { step, path, metrics, damage }
}

/// The header in the metadata of the checkpoint of a step.
pub(super) fn header(
    op: &'static str,
    path: &Path,
    step: u64,
    metadata: &BTreeMap<String, String>,
) -> Result<CheckpointHeader> {
    let malformed = |reason: String| {
        Error::new(ErrorKind::Format, op, format!("{}: not a checkpoint: {reason}", path.display()))
    };
    let header = CheckpointHeader::of(metadata).map_err(malformed)?;
    match header.step == step {
        true => Ok(header),
        false => Err(malformed(format!("it is of step {}", header.step))),
    }
}

/// Removes the checkpoint of a step.
pub(super) fn remove(op: &'static str, folder: &Path, step: u64) -> Result<()> {
    let path = path_of(folder, step);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error(op, &path, &error)),
        _ => Ok(()),
    }
}

/// Locks a folder for one run. The system releases the lock when the file is closed, also if the process is
/// killed. Where there are no locks, as on some network drives, this is `None`.
pub(super) fn lock(op: &'static str, folder: &Path) -> Result<Option<File>> {
    let Ok(file) = File::open(folder) else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::Error(_)) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let message = format!(
                "another run saves its checkpoints in {}; each run needs its own folder",
                folder.display()
            );
            Err(Error::new(ErrorKind::Io, op, message))
        }
    }
}

#[track_caller]
pub(super) fn io_error(op: &'static str, path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, op, format!("{}: {error}", path.display()))
}
