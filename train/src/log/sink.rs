//! [`Sink`]: a file of a log in one of the formats, and [`ResumedFile`]: its content when a run resumes.

use super::appender::{self, Appender};
#[cfg(feature = "tensorboard")]
use super::events;
use super::value::{Content, Record};
use super::{csv, json};
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_io::sorted;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileFormat {
    JsonLines,
    Csv,
    #[cfg(feature = "tensorboard")]
    Events,
}

impl FileFormat {
    /// The file in a folder: an existing one or a new name.
    pub(super) fn file(self, folder: &Path) -> PathBuf {
        match self {
            FileFormat::JsonLines => folder.join("log.jsonl"),
            FileFormat::Csv => folder.join("log.csv"),
            #[cfg(feature = "tensorboard")]
            FileFormat::Events => {
                own_event_files(folder).pop().unwrap_or_else(|| folder.join(events::file_name()))
            }
        }
    }

    /// The first bytes of a new file.
    fn start(self) -> Vec<u8> {
        match self {
            FileFormat::JsonLines => Vec::new(),
            FileFormat::Csv => csv::HEADER.into(),
            #[cfg(feature = "tensorboard")]
            FileFormat::Events => events::start(),
        }
    }

    /// The format of a file, by its name.
    pub(super) fn of(path: &Path) -> Option<FileFormat> {
        let name = path.file_name()?.to_str()?;
        match name {
            #[cfg(feature = "tensorboard")]
            name if name.contains("tfevents") => Some(FileFormat::Events),
            name if name.ends_with(".jsonl") => Some(FileFormat::JsonLines),
            name if name.ends_with(".csv") => Some(FileFormat::Csv),
            _ => None,
        }
    }

    /// The content of a file, without an incomplete record at the end.
    pub(super) fn entries(self, op: &'static str, path: &Path) -> Result<Vec<Chunk>> {
        let failed = |error: std::io::Error| io_error(op, path, &error);
        // A device, such as /dev/full, may be endless.
        if !fs::metadata(path).map_err(failed)?.is_file() {
            return Ok(vec![]);
        }
        let content = fs::read(path).map_err(failed)?;
        #[cfg(feature = "tensorboard")]
        if self == FileFormat::Events {
            return events::records(op, path, &content);
        }
        let header = match self {
            FileFormat::Csv => csv::HEADER.trim_end(),
            _ => "",
        };
        let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut entries = Vec::new();
        for (number, line) in content[..whole].split_inclusive(|byte| *byte == b'\n').enumerate() {
            let text = str::from_utf8(line).map_err(|error| format!("{error}"));
            let record = text.and_then(|text| match text.trim_end_matches(['\r', '\n']) {
                text if number == 0 && !header.is_empty() && text == header => Ok(None),
                text if self == FileFormat::Csv => csv::record(text).map(Some),
                text => json::record(text).map(Some),
            });
            let record = record.map_err(|message| {
                let message = format!("{}: line {}: {message}", path.display(), number + 1);
                Error::new(ErrorKind::Format, op, message)
            })?;
            entries.push(Chunk { records: crate::list(record.into_iter()), bytes: line.to_vec() });
        }
        Ok(entries)
    }
}

/// A part of a file: a line or an event.
pub(super) struct Chunk {
    /// Its records: none for the start of a file, several only in event files of other programs.
    pub(super) records: Vec<Record>,
    pub(super) bytes: Vec<u8>,
}

/// The files of a log in a folder, in all formats.
pub(super) fn existing(folder: &Path) -> Vec<PathBuf> {
    let mut files = own_event_files(folder);
    for format in [FileFormat::Csv, FileFormat::JsonLines] {
        let path = format.file(folder);
        if path.exists() {
            files.insert(0, path);
        }
    }
    files
}

/// The end of the names of our event files, which tells them from those of other programs.
pub(super) const EVENTS_SUFFIX: &str = ".namegrad";

/// Our event files in a folder, in the order of their names, which begin with the time.
fn own_event_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return files };
    for entry in entries {
        let Ok(entry) = entry else { continue };
        let name = entry.file_name();
        let is_own = |name: &str| name.starts_with("events.out.tfevents.") && name.ends_with(EVENTS_SUFFIX);
        if name.to_str().is_some_and(is_own) {
            files.push(entry.path());
        }
    }
    sorted::sort(&mut files, &|a, b| a < b);
    files
}

/// A file of a log when a run resumes, with the records that are kept.
pub(super) struct ResumedFile {
    pub(super) format: FileFormat,
    pub(super) path: PathBuf,
    /// The content, unless it is that of the file.
    content: Option<Vec<u8>>,
    /// The last hyperparameters in it.
    pub(super) hparams: String,
}

impl ResumedFile {
    /// The records before `step`.
    pub(super) fn before(step: u64, format: FileFormat, folder: &Path) -> Result<ResumedFile> {
        let path = format.file(folder);
        if !path.exists() {
            return Ok(ResumedFile { format, path, content: None, hparams: json::NO_HPARAMS.into() });
        }
        let length = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let (mut content, mut hparams) = (Vec::new(), json::NO_HPARAMS.to_string());
        for Chunk { records, bytes } in format.entries("log", &path)? {
            match records.first() {
                Some(Record { content: Content::Hparams(values), .. }) => hparams = json::of_hparams(values),
                Some(record) if record.step >= step => continue,
                _ => {}
            }
            content.extend(bytes);
        }
        let content = (content.len() as u64 != length).then_some(content);
        Ok(ResumedFile { format, path, content, hparams })
    }

    pub(super) fn open(self) -> Result<Sink> {
        let ResumedFile { format, path, content, .. } = self;
        let opened = match content {
            Some(content) => namegrad_io::atomic::write(&path, |out| out.write_all(&content)),
            None => Ok(()),
        };
        let opened = opened.and_then(|()| Appender::open(path.clone())).and_then(|mut appender| {
            if appender.len() == 0 {
                appender.append(&format.start())?;
            }
            Ok(appender)
        });
        match opened {
            Ok(appender) => Ok(Sink { format, appender }),
            Err(error) => Err(io_error("log", &path, &error)),
        }
    }
}

/// Checks that no log writes to the files.
pub(super) fn check_unlocked(files: &[PathBuf]) -> Result<()> {
    files
        .iter()
        .try_for_each(|path| appender::check_unlocked(path).map_err(|error| io_error("log", path, &error)))
}

pub(super) fn io_error(op: &'static str, path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, op, format!("{}: {error}", path.display()))
}

/// A file of a log.
pub(super) struct Sink {
    format: FileFormat,
    appender: Appender,
}

impl Sink {
    pub(super) fn path(&self) -> &Path {
        self.appender.path()
    }

    pub(super) fn len(&self) -> u64 {
        self.appender.len()
    }

    /// The bytes of the records that the format can hold.
    pub(super) fn encode(&mut self, records: &[Record]) -> Vec<u8> {
        let lines = |line: fn(&Record) -> Option<String>| {
            let mut lines = Vec::new();
            for record in records {
                lines.extend_from_slice(line(record).unwrap_or_default().as_bytes());
            }
            lines
        };
        match self.format {
            FileFormat::JsonLines => lines(json::line),
            FileFormat::Csv => lines(csv::line),
            #[cfg(feature = "tensorboard")]
            FileFormat::Events => events::encode(records),
        }
    }

    pub(super) fn append(&mut self, records: &[u8]) -> Result<()> {
        self.appender.append(records).map_err(|error| io_error("log", self.path(), &error))
    }

    pub(super) fn truncate(&mut self, length: u64) {
        self.appender.truncate(length);
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.appender.sync().map_err(|error| io_error("sync", self.path(), &error))
    }
}
