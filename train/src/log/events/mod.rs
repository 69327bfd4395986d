//! TensorBoard's event files: scalars, histograms, images, texts and hyperparameters.
//!
//! A file is a sequence of framed records (`framing`), each of which is an event, a message of protocol
//! buffers (`proto`). `event` has the messages.
//!
//! # Source
//! TensorFlow, `core/lib/io/record_writer.h`, `core/util/event.proto`, `core/framework/summary.proto`.
//! TensorBoard, `plugins/hparams/plugin_data.proto`, `plugins/text/metadata.py`.

mod event;
mod framing;
mod proto;

use super::sink::Chunk;
use super::sink::EVENTS_SUFFIX;
use super::value::Record;
use namegrad_core::{Error, ErrorKind, Result};
use std::panic::Location;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Reads a whole event file, also one of another program. Values in forms that this crate does not write are
/// left out.
///
/// [`History::records`](super::History::records) reads a file that is still written to.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::log::{Content, Log, events};
/// # let folder = std::env::temp_dir().join(format!("namegrad-doc-events-{}", std::process::id()));
/// let mut log = Log::builder(&folder).tensorboard(true).build()?;
/// log.scalar("loss", 7, 0.5)?;
/// let file = log.files().last().unwrap();
/// let record = &events::read(file)?[0];
/// assert_eq!((record.name.as_str(), record.step), ("loss", 7));
/// assert_eq!(record.content, Content::Scalar(0.5));
/// # drop(log);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Io`]; [`ErrorKind::Format`] with the offset of a record that is truncated or damaged.
#[track_caller]
pub fn read(path: impl AsRef<Path>) -> Result<Vec<Record>> {
    const OP: &str = "read";
    let (path, caller) = (path.as_ref(), Location::caller());
    let content = std::fs::read(path).map_err(|error| super::sink::io_error(OP, path, &error).at(caller))?;
    let entries = records(OP, path, &content).map_err(|error| error.at(caller))?;
    let whole: usize = entries.iter().map(|entry| entry.bytes.len()).sum();
    if whole < content.len() {
        let message = format!("{}: the record at offset {whole} is truncated", path.display());
        return Err(Error::new(ErrorKind::Format, OP, message).at(caller));
    }
    Ok(entries.into_iter().flat_map(|entry| entry.records).collect())
}

/// A new name, which begins with the time, like TensorFlow's.
pub(super) fn file_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (seconds, process) = (wall_time() as u64, std::process::id());
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("events.out.tfevents.{seconds:010}.{process}.{number}{EVENTS_SUFFIX}")
}

/// The first record of a file.
pub(super) fn start() -> Vec<u8> {
    let mut bytes = Vec::new();
    framing::append(&mut bytes, &event::version(wall_time()));
    bytes
}

pub(super) fn encode(records: &[Record]) -> Vec<u8> {
    let (mut bytes, now) = (Vec::new(), wall_time());
    records.iter().for_each(|record| framing::append(&mut bytes, &event::encode(record, now)));
    bytes
}

/// The whole records of a file. What follows them is the beginning of one.
pub(super) fn records(op: &'static str, path: &Path, content: &[u8]) -> Result<Vec<Chunk>> {
    let (mut entries, mut offset) = (Vec::new(), 0);
    let damaged = |offset: usize, what: &str| {
        let message = format!("{}: the record at offset {offset} is damaged: {what}", path.display());
        Error::new(ErrorKind::Format, op, message)
    };
    while let Some(framed) = framing::next(&content[offset..]).map_err(|what| damaged(offset, what))? {
        let records = event::decode(framed.data).map_err(|what| damaged(offset, what))?;
        entries.push(Chunk { records, bytes: framed.bytes.to_vec() });
        offset += framed.bytes.len();
    }
    Ok(entries)
}

/// Seconds since 1970.
fn wall_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
