//! Lines of a file as the parser of CSV wants them, with their numbers.

use crate::input::Bytes;
use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// The numbers of blank lines that have been read and are not behind the parser. The parser takes the line
/// after the last row as the line of a row, even if that line is blank.
#[derive(Clone, Debug, Default)]
pub(super) struct Blank(Arc<Mutex<VecDeque<u64>>>);

impl Blank {
    /// The line where a row starts, by what the parser says, which never goes back.
    pub(super) fn line(&self, mut said: u64) -> u64 {
        let mut blank = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(line) = blank.front().copied().filter(|line| *line <= said) {
            said += u64::from(line == said);
            blank.pop_front();
        }
        said
    }
}

/// A text without a byte order mark, whose lines end with `\n`: the parser counts `\r\n` late.
pub(super) struct LineReader {
    text: Bytes,
    ends: LineEnds,
}

/// The longest line and the longest quoted field, in bytes: without a limit, a file that is no text would
/// fill the memory.
const LONGEST: usize = 1 << 26;

/// Finds the ends of lines.
struct LineEnds {
    blank: Blank,
    /// The number of the current line.
    line: u64,
    /// The number of bytes of it that have been read.
    length: usize,
    /// The last byte was `\r`, which has not been passed on.
    carriage_return: bool,
    quotes: Quotes,
}

/// Follows the quotes as the parser does, which takes the rest of the text as one field if a quote is not
/// closed.
struct Quotes {
    delimiter: u8,
    at: FieldPosition,
    /// The line where the last quoted field opens, and how long that field is so far.
    opened: u64,
    length: usize,
}

/// The position in a field.
#[derive(Clone, Copy, PartialEq)]
enum FieldPosition {
    Start,
    Plain,
    Quoted,
    /// After a quote in a quoted field: the end of that field, or the first half of an escaped quote.
    Quote,
}

impl Quotes {
    fn pass(&mut self, byte: u8, line: u64) {
        self.at = match (self.at, byte) {
            (FieldPosition::Start, b'"') => {
                (self.opened, self.length) = (line, 0);
                FieldPosition::Quoted
            }
            (FieldPosition::Quoted, b'"') => FieldPosition::Quote,
            (FieldPosition::Quote, b'"') | (FieldPosition::Quoted, _) => {
                self.length += 1;
                FieldPosition::Quoted
            }
            (_, b'\n' | b'\r') => FieldPosition::Start,
            (_, byte) if byte == self.delimiter => FieldPosition::Start,
            _ => FieldPosition::Plain,
        };
    }
}

impl LineReader {
    pub(super) fn new(mut text: Bytes, delimiter: u8, blank: Blank) -> io::Result<LineReader> {
        if text.peek(3)?.starts_with(b"\xef\xbb\xbf") {
            text.consume(3);
        }
        let quotes = Quotes { delimiter, at: FieldPosition::Start, opened: 0, length: 0 };
        let ends = LineEnds { blank, line: 1, length: 0, carriage_return: false, quotes };
        Ok(LineReader { text, ends })
    }

    /// Checks the limits, and at the end of the text that no quote is open.
    fn check(&self, ended: bool) -> io::Result<()> {
        let LineEnds { line, length, quotes, .. } = &self.ends;
        let what = if quotes.at == FieldPosition::Quoted && (ended || quotes.length > LONGEST) {
            let within = if ended { String::new() } else { format!(" within {LONGEST} bytes") };
            format!("line {}: a quote opens here that is not closed{within}", quotes.opened)
        } else if *length > LONGEST {
            format!("line {line} is longer than {LONGEST} bytes")
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }
}

impl LineEnds {
    /// The byte to pass on for a byte of the file, if any, and whether the byte is consumed.
    fn pass(&mut self, byte: u8) -> (Option<u8>, bool) {
        if std::mem::take(&mut self.carriage_return) && byte != b'\n' {
            self.length += 1;
            self.quotes.pass(b'\r', self.line);
            return (Some(b'\r'), false);
        }
        match byte {
            b'\r' => {
                self.carriage_return = true;
                return (None, true);
            }
            b'\n' => {
                if self.length == 0 && self.quotes.at != FieldPosition::Quoted {
                    self.blank.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.line);
                }
                self.line += 1;
                self.length = 0;
            }
            _ => self.length += 1,
        }
        self.quotes.pass(byte, self.line);
        (Some(byte), true)
    }
}

impl Read for LineReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let (mut written, mut ended) = (0, out.is_empty());
        while written == 0 && !ended {
            let bytes = self.text.fill_buf()?;
            ended = bytes.is_empty();
            if ended && std::mem::take(&mut self.ends.carriage_return) {
                out[0] = b'\r';
                return Ok(1);
            }
            let mut used = 0;
            while used < bytes.len() && written < out.len() {
                let (passed, done) = self.ends.pass(bytes[used]);
                used += usize::from(done);
                if let Some(byte) = passed {
                    out[written] = byte;
                    written += 1;
                }
            }
            self.text.consume(used);
            self.check(ended)?;
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Place;

    fn reader(text: impl Read + Send + 'static, blank: Blank) -> LineReader {
        LineReader::new(Bytes::new(Place::Other(Box::new(text))), b',', blank).unwrap()
    }

    #[test]
    fn an_endless_line_is_an_error() {
        let mut lines = reader(io::repeat(b'a'), Blank::default());
        let error = io::copy(&mut lines, &mut io::sink()).unwrap_err();
        assert_eq!(error.to_string(), "line 1 is longer than 67108864 bytes");
    }

    #[test]
    fn an_endless_quoted_field_is_an_error() {
        let text = (&b"a\n1,\""[..]).chain(io::repeat(b'\n'));
        let error = io::copy(&mut reader(text, Blank::default()), &mut io::sink()).unwrap_err();
        assert_eq!(error.to_string(), "line 2: a quote opens here that is not closed within 67108864 bytes");
    }

    #[test]
    fn line_ends_are_alike_in_parts_of_any_size() {
        let text = b"\xef\xbb\xbfa\r\n\r\nb\rc\n\n\r\r\n\r";
        for size in 1..8 {
            let blank = Blank::default();
            let mut lines = reader(&text[..], blank.clone());
            let (mut all, mut part) = (Vec::<u8>::new(), vec![0; size]);
            loop {
                match lines.read(&mut part).unwrap() {
                    0 => break,
                    count => all.extend(&part[..count]),
                }
            }
            assert_eq!(all, b"a\n\nb\rc\n\n\r\n\r", "parts of {size}");
            assert_eq!([1, 2, 4, 6].map(|said| blank.line(said)), [1, 3, 5, 6]);
        }
    }
}
