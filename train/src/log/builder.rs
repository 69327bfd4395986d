//! [`LogBuilder`]: the files of a log, and whether it continues an earlier one.

use super::Log;
use super::json;
use super::sink::{self, FileFormat, ResumedFile};
use super::value::{Step, whole};
use namegrad_core::{Error, ErrorKind, Result};
use std::fs;
use std::panic::Location;
use std::path::{Path, PathBuf};

/// The settings of a [`Log`].
#[derive(Clone, Debug)]
pub struct LogBuilder {
    folder: PathBuf,
    json_lines: bool,
    csv: bool,
    #[cfg(feature = "tensorboard")]
    tensorboard: bool,
    /// The first step of this run, or the error of a negative one.
    resume_from: Option<Result<u64>>,
}

impl LogBuilder {
    pub(super) fn new(folder: &Path) -> LogBuilder {
        LogBuilder {
            folder: folder.to_path_buf(),
            json_lines: true,
            csv: false,
            #[cfg(feature = "tensorboard")]
            tensorboard: false,
            resume_from: None,
        }
    }

    /// Sets whether to write `log.jsonl`; by default it is written.
    pub fn json_lines(mut self, json_lines: bool) -> LogBuilder {
        self.json_lines = json_lines;
        self
    }

    /// Sets whether to write `log.csv`; by default it is not.
    pub fn csv(mut self, csv: bool) -> LogBuilder {
        self.csv = csv;
        self
    }

    /// Sets whether to write an event file for TensorBoard; by default it is not. `tensorboard --logdir runs`
    /// shows the logs in all folders in `runs`.
    #[cfg(feature = "tensorboard")]
    pub fn tensorboard(mut self, tensorboard: bool) -> LogBuilder {
        self.tensorboard = tensorboard;
        self
    }

    /// Continues the log in the folder. `step` is the first step that this run will log: what the log has of
    /// that step and later ones is dropped, because the run makes them again. So is half a record that a
    /// killed process left at the end of a file. The log becomes that of a run without an interruption.
    ///
    /// Without a log in the folder, or in a format that it was not written in, a new file begins.
    ///
    /// ```
    /// # use namegrad::prelude::*;
    /// # use namegrad::train::log::Log;
    /// # let folder = std::env::temp_dir().join(format!("namegrad-doc-resume-{}", std::process::id()));
    /// let mut log = Log::new(&folder)?;
    /// for step in 0..10 {
    ///     log.scalar("loss", step, 1.0)?; // saves a checkpoint after step 7, and is killed after step 9
    /// }
    /// drop(log);
    ///
    /// let mut log = Log::builder(&folder).resume_from(8).build()?;
    /// for step in 8..20 {
    ///     log.scalar("loss", step, 1.0)?;
    /// }
    /// assert_eq!(log.history()?.get("loss")?.len(), 20);
    /// # drop(log);
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    #[doc(alias = "purge_step")]
    #[track_caller]
    pub fn resume_from(mut self, step: impl Step) -> LogBuilder {
        self.resume_from = Some(whole("resume_from", step));
        self
    }

    /// Opens the files.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if a file cannot be read or written, or another log is writing to it;
    /// [`ErrorKind::Format`] if a file of the log to be continued is damaged, with the line or the offset;
    /// [`ErrorKind::Value`] if there are no files to write, or the step is negative. An earlier log stays,
    /// although some of its files may have been moved before a new one could not be created.
    #[track_caller]
    pub fn build(self) -> Result<Log> {
        let caller = Location::caller();
        self.open().map_err(|error| error.at(caller))
    }

    fn formats(&self) -> Vec<FileFormat> {
        let all = [
            (self.json_lines, FileFormat::JsonLines),
            (self.csv, FileFormat::Csv),
            #[cfg(feature = "tensorboard")]
            (self.tensorboard, FileFormat::Events),
        ];
        let mut formats = Vec::new();
        for (wanted, format) in all {
            if wanted {
                formats.push(format);
            }
        }
        formats
    }

    fn open(self) -> Result<Log> {
        let formats = self.formats();
        Error::ensure(!formats.is_empty(), ErrorKind::Value, "log", || "a log without files")
            .map_err(|error| error.with_repair(".json_lines(true)"))?;
        let resumed = self.resume_from.transpose()?;
        let folder = self.folder;
        fs::create_dir_all(&folder).map_err(|error| sink::io_error("log", &folder, &error))?;
        let existing = sink::existing(&folder);
        sink::check_unlocked(&existing)?;
        // All files are read before one of them changes.
        if resumed.is_none() {
            move_away(&folder, &existing)?;
        }
        let (mut kept, mut sinks, mut hparams) = (Vec::new(), Vec::new(), json::NO_HPARAMS.to_string());
        for format in formats {
            kept.push(ResumedFile::before(resumed.unwrap_or(0), format, &folder)?);
        }
        for file in kept {
            if hparams == json::NO_HPARAMS {
                hparams.clone_from(&file.hparams);
            }
            sinks.push(file.open()?);
        }
        Ok(Log { folder, sinks, hparams })
    }
}

/// Moves the files of an earlier log to a new folder in the same folder. Empty files and devices stay.
fn move_away(folder: &Path, files: &[PathBuf]) -> Result<()> {
    let mut used = Vec::new();
    for path in files {
        if fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0) {
            used.push(path);
        }
    }
    if used.is_empty() {
        return Ok(());
    }
    let failed = |path: &Path, error: &std::io::Error| sink::io_error("log", path, error);
    let mut number = 1;
    let target = loop {
        let target = folder.join(format!("earlier-{number}"));
        match fs::create_dir(&target) {
            Ok(()) => break target,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(failed(&target, &error)),
        }
    };
    for path in used {
        let Some(name) = path.file_name() else { continue };
        fs::rename(path, target.join(name)).map_err(|error| failed(path, &error))?;
    }
    Ok(())
}
