//! [`History`]: the numbers of a log as series, for plots.

use super::sink::{self, FileFormat};
use super::value::{Content, Measurement, Record, Step, whole};
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_io::sorted;
use namegrad_io::text::quoted_list;
use std::panic::Location;
use std::path::Path;

/// Series of numbers by name: the scalars of a log, or what a program collects itself.
///
/// ```
/// use namegrad::train::log::History;
/// let mut history = History::new();
/// for epoch in 1..=3 {
///     history.push("loss/train", epoch, 1.0 / f64::from(epoch))?;
/// }
/// assert_eq!(history.get("loss/train")?[1], (2, 0.5));
/// let error = history.get("loss/trian").unwrap_err();
/// assert!(error.to_string().contains("'loss/train'"));
/// # Ok::<(), namegrad::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    series: Vec<(String, Vec<(u64, f64)>)>,
}

impl History {
    /// Without any series.
    pub fn new() -> History {
        History::default()
    }

    /// Reads a log: a folder, a `.jsonl` or `.csv` file, or, with the feature `tensorboard`, an event file. A
    /// folder with files of several formats is read from the first of `log.jsonl`, `log.csv` and the event
    /// file that it has.
    ///
    /// The log can still be written to; half a record at the end is left out.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if there is no log or it cannot be read, [`ErrorKind::Format`] if it is damaged,
    /// with the line or the offset.
    #[track_caller]
    pub fn read(path: impl AsRef<Path>) -> Result<History> {
        let (path, caller) = (path.as_ref(), Location::caller());
        History::of(path).map_err(|error| error.at(caller))
    }

    fn of(path: &Path) -> Result<History> {
        let mut history = History::default();
        for Record { step, name, content } in records(path)? {
            if let Content::Scalar(value) = content {
                history.add(&name, (step, value));
            }
        }
        Ok(history)
    }

    /// Reads everything in a log, in the order in which it was written; see [`read`](Self::read).
    ///
    /// # Errors
    /// Same as [`read`](Self::read).
    #[track_caller]
    pub fn records(path: impl AsRef<Path>) -> Result<Vec<Record>> {
        let caller = Location::caller();
        records(path.as_ref()).map_err(|error| error.at(caller))
    }

    /// Appends a number to a series, which is new if there is none of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a tensor with more or fewer elements than one, [`ErrorKind::Value`] for a
    /// negative step.
    #[track_caller]
    pub fn push(&mut self, name: &str, step: impl Step, value: impl Measurement) -> Result<()> {
        let step = whole("push", step)?;
        let value = value.number().map_err(|error| error.of("push"))?;
        self.add(name, (step, value));
        Ok(())
    }

    fn add(&mut self, name: &str, number: (u64, f64)) {
        match self.find(name) {
            Ok(at) => self.series[at].1.push(number),
            Err(at) => self.series.insert(at, (name.into(), vec![number])),
        }
    }

    /// The place of a series, or the place at which it belongs.
    fn find(&self, name: &str) -> std::result::Result<usize, usize> {
        sorted::find(self.series.len(), &|at| &self.series[at].0, name)
    }

    /// The names of the series, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.series.iter().map(|(name, _)| name.as_str())
    }

    /// Steps and numbers of a series, in the order in which they were logged.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if there is no series of this name; the error lists those that there are.
    #[track_caller]
    pub fn get(&self, name: &str) -> Result<&[(u64, f64)]> {
        if let Ok(at) = self.find(name) {
            return Ok(&self.series[at].1);
        }
        let names = quoted_list(usize::MAX, &mut self.names());
        let message = match names.is_empty() {
            true => format!("no series '{name}'; there are none"),
            false => format!("no series '{name}'; there are {names}"),
        };
        Err(Error::new(ErrorKind::Value, "get", message))
    }

    /// The last number of a series, if there is one.
    pub fn last(&self, name: &str) -> Option<f64> {
        Some(self.series[self.find(name).ok()?].1.last()?.1)
    }
}

fn records(path: &Path) -> Result<Vec<Record>> {
    const OP: &str = "read";
    let path = match path.is_dir() {
        true => match sink::existing(path).into_iter().find(|path| FileFormat::of(path).is_some()) {
            Some(file) => file,
            None => {
                let message = format!("{}: there is no log in this folder", path.display());
                return Err(Error::new(ErrorKind::Io, OP, message));
            }
        },
        false => path.to_path_buf(),
    };
    if !path.exists() {
        return Err(Error::new(
            ErrorKind::Io,
            OP,
            format!("{}: there is no such file or folder", path.display()),
        ));
    }
    let Some(format) = FileFormat::of(&path) else {
        let message = format!("{}: neither a .jsonl, nor a .csv, nor an event file", path.display());
        return Err(Error::new(ErrorKind::Format, OP, message));
    };
    let mut records = Vec::new();
    for entry in format.entries(OP, &path)? {
        records.extend(entry.records);
    }
    Ok(records)
}
