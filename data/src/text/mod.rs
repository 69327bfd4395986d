//! Text: [`Vocabulary`] numbers bytes, characters or words, [`read`](read_text) and [`lines`] read files, and
//! [`Windows`] cuts long sequences.

mod vocabulary;
mod windows;
pub use vocabulary::{Tokens, Vocabulary};
pub use windows::{Shifted, Windows};

use crate::input::Input;
use crate::{Samples, Stream};
use namegrad_core::{Error, Result};
use std::io::{self, BufRead};
use std::panic::Location;
use std::path::Path;

const OP: &str = "text";

/// The text of a file, gzipped or not.
///
/// # Errors
/// [`ErrorKind::Io`](namegrad_core::ErrorKind::Io) if the file cannot be read,
/// [`ErrorKind::Format`](namegrad_core::ErrorKind::Format) if it is not UTF-8.
#[track_caller]
pub fn read_text(path: impl AsRef<Path>) -> Result<String> {
    let caller = Location::caller();
    let input = Input::file(path.as_ref());
    let read = || {
        let bytes = input.open(OP)?.bytes.into_vec().map_err(|error| input.failed(OP, &error))?;
        String::from_utf8(bytes).map_err(|_| {
            let error = io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8");
            input.failed(OP, &error)
        })
    };
    read().map_err(|error: Error| error.at(caller))
}

/// The lines of a text file, gzipped or not, without blank ones and without blanks around them.
///
/// # Errors
/// Same as [`read_text`].
///
/// # Examples
/// ```
/// use namegrad::data::{Dataset, text};
/// # let path = std::env::temp_dir().join(format!("namegrad-doc-lines-{}.txt", std::process::id()));
/// # std::fs::write(&path, "emma\nolivia\n\nava").unwrap();
/// let names = text::lines(&path)?;
/// assert_eq!((names.len(), names.get(2)?), (3, "ava".to_string()));
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), namegrad::Error>(())
/// ```
#[track_caller]
pub fn lines(path: impl AsRef<Path>) -> Result<Samples<String>> {
    let caller = Location::caller();
    let text = read_text(path).map_err(|error| error.at(caller))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    Ok(Samples::new(crate::list(lines.map(String::from))))
}

/// The lines of a text file that is larger than memory; otherwise like [`lines`].
///
/// # Errors
/// [`ErrorKind::Io`](namegrad_core::ErrorKind::Io) if the file cannot be opened. Errors of lines come from
/// the loader.
#[track_caller]
pub fn stream_lines(path: impl AsRef<Path>) -> Result<Stream<String>> {
    let caller = Location::caller();
    let input = Input::file(path.as_ref());
    input.open(OP).map_err(|error| error.at(caller))?;
    Ok(Stream::fallible(move || {
        let (content, input) = (input.open(OP)?, input.clone());
        let lines = content.bytes.lines().enumerate();
        Ok(lines.filter_map(move |(number, line)| trimmed(line, number + 1, &input).transpose()))
    }))
}

/// A line without blanks around it, if it is not blank.
fn trimmed(line: io::Result<String>, number: usize, input: &Input) -> Result<Option<String>> {
    let failed = |error: io::Error| input.failed(OP, &error).context(format!("line {number}: "));
    let line = line.map_err(failed)?;
    let line = line.trim();
    Ok((!line.is_empty()).then(|| line.to_string()))
}
