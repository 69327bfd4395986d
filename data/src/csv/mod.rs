//! [`Csv`], which reads tables. `schema` finds the columns and parses fields, `table` has what was read,
//! `print` shows it, `row` reads a file that is larger than memory, `unread` has the errors of fields.

mod date;
mod lines;
mod print;
mod row;
mod schema;
mod table;
mod unread;

pub use row::Row;
pub use schema::{Column, Fill};
pub use table::Table;

use crate::Stream;
use crate::input::Input;
use csv::{ReaderBuilder, StringRecord, Trim};
use lines::{Blank, LineReader};
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_io::sorted::list_of;
use schema::{ColumnKind, Missing, Schema};
use std::borrow::Cow;
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;
use unread::Unread;

const OP: &str = "Csv";

/// Reads a table of comma-separated values, gzipped or not: all of it with [`read`](Self::read), or row by
/// row with [`stream`](Self::stream).
///
/// Columns have numbers, unless they are said to have [`categories`](Self::categories) or are
/// [skipped](Self::skip). A field that contains the delimiter, a quote or a line end must be quoted. As in
/// RFC 4180, the quote has to come directly after the delimiter: in `1, "a, b"`, a blank comes first, so the
/// quotes are part of the text and the row has three fields. Otherwise, blanks around fields do not count,
/// and neither do blank lines. An error says the line and the column.
///
/// # Examples
/// ```
/// use namegrad::data::{Csv, Fill, TensorDataset};
/// use namegrad::prelude::*;
/// # let path = std::env::temp_dir().join(format!("namegrad-doc-{}.csv", std::process::id()));
/// # std::fs::write(&path, "area,rooms,city,price\n70,3,Oslo,420\n55,,Rome,250\n90,4,Oslo,510\n").unwrap();
/// let table = Csv::new(&path).categories(["city"]).fill("rooms", Fill::Mean).read()?;
/// let x = table.columns(["area", "rooms"])?; // [N, feature] in f32
/// let city = table.category("city")?; // [N] in i64
/// let price = table.column("price")?; // [N] in f32
/// assert_eq!(x.to_vec::<f32>()?, [70.0, 3.0, 55.0, 3.5, 90.0, 4.0]);
/// assert_eq!(table.category_names("city")?, ["Oslo", "Rome"]);
/// assert_eq!(city.to_vec::<i64>()?, [0, 1, 0]);
/// let data = TensorDataset::new((x, city, price))?;
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Csv {
    input: Input,
    /// Whether there is a header, if that was said.
    header: Option<bool>,
    /// The delimiter, if that was said.
    delimiter: Option<u8>,
    missing: Vec<String>,
    drop_missing: bool,
    kinds: Vec<(Column, ColumnKind)>,
    fills: Vec<(Column, Fill)>,
    fill_numbers: Option<Fill>,
}

impl Csv {
    /// A reader for a file.
    pub fn new(path: impl AsRef<Path>) -> Csv {
        Csv::of(Input::file(path.as_ref()))
    }

    /// A reader for the content of a file, such as `include_bytes!("digits.csv.gz")`.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// let table = Csv::from_bytes(b"1,2\n3,4\n").header(false).read()?;
    /// assert_eq!(table.column(-1)?.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    pub fn from_bytes(bytes: impl Into<Cow<'static, [u8]>>) -> Csv {
        Csv::of(Input::bytes(bytes))
    }

    fn of(input: Input) -> Csv {
        let fields = ["", "NA", "N/A", "NaN", "nan", "null"];
        let missing = list_of(fields.len(), &mut |at| fields[at].to_string());
        let (kinds, fills) = (Vec::new(), Vec::new());
        Csv {
            input,
            header: None,
            delimiter: None,
            missing,
            drop_missing: false,
            kinds,
            fills,
            fill_numbers: None,
        }
    }

    /// Sets whether the first row has the names of the columns; by default it has. Without this setting, a
    /// header is an error if it looks like a row: a field of it is a number, and each column of numbers has a
    /// number for a name.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// let csv = Csv::from_bytes(b"1990,1991\n4.5,4.25\n");
    /// assert!(csv.read().is_err());
    /// assert_eq!(csv.clone().header(true).read()?.names(), ["1990", "1991"]);
    /// assert_eq!(csv.header(false).read()?.len(), 2);
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    pub fn header(mut self, header: bool) -> Csv {
        self.header = Some(header);
        self
    }

    /// Sets the byte between fields; a comma by default, `b'\t'` in a tab-separated file. Without this
    /// setting, it is an error if the first row is a single field with a semicolon, a tab or a `|` in it.
    pub fn delimiter(mut self, delimiter: u8) -> Csv {
        self.delimiter = Some(delimiter);
        self
    }

    /// Sets which fields are missing values, in place of the default: empty ones, `NA`, `N/A`, `NaN`, `nan` and
    /// `null`.
    pub fn missing<S: Into<String>>(mut self, fields: impl IntoIterator<Item = S>) -> Csv {
        self.missing = fields.into_iter().map(Into::into).collect();
        self
    }

    /// Sets whether rows with a missing value are left out; by default, a missing value is an error.
    pub fn drop_missing(mut self, drop_missing: bool) -> Csv {
        self.drop_missing = drop_missing;
        self
    }

    /// Fills the missing values of a column: with a number, with [`Fill::Mean`] of the others, or in a column
    /// of categories with a category.
    pub fn fill(mut self, column: impl Into<Column>, fill: impl Into<Fill>) -> Csv {
        self.fills.push((column.into(), fill.into()));
        self
    }

    /// Fills the missing values of all columns of numbers, besides those that [`fill`](Self::fill) names.
    ///
    /// ```
    /// use namegrad::data::{Csv, Fill};
    /// let csv = Csv::from_bytes(b"area,rooms,price\n70,,420\n,2,250\n90,4,510\n");
    /// let table = csv.fill_numbers(Fill::Mean).fill("rooms", 1).read()?;
    /// assert_eq!(table.column("area")?.to_vec::<f32>()?, [70.0, 80.0, 90.0]);
    /// assert_eq!(table.column("rooms")?.to_vec::<f32>()?, [1.0, 2.0, 4.0]);
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    pub fn fill_numbers(mut self, fill: impl Into<Fill>) -> Csv {
        self.fill_numbers = Some(fill.into());
        self
    }

    /// Columns whose fields are categories, which are numbered in alphabetical order.
    ///
    /// The numbers depend on which categories a file has, so read a second file with those of the first, by
    /// [`categories_like`](Self::categories_like), or for one column by
    /// `categories_of("city", train.category_names("city")?)`:
    /// ```
    /// use namegrad::data::Csv;
    /// let train = Csv::from_bytes(b"city\nOslo\nRome\n").categories(["city"]).read()?;
    /// let csv = Csv::from_bytes(b"city\nRome\n");
    /// let test = csv.clone().categories_of("city", train.category_names("city")?).read()?;
    /// assert_eq!(test.category("city")?.to_vec::<i64>()?, [1]);
    /// assert_eq!(csv.categories(["city"]).read()?.category("city")?.to_vec::<i64>()?, [0]); // another number
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    pub fn categories<C: Into<Column>>(mut self, columns: impl IntoIterator<Item = C>) -> Csv {
        self.kinds.extend(columns.into_iter().map(|column| (column.into(), ColumnKind::Categories(None))));
        self
    }

    /// A column with these categories, which are numbered in this order. Any other is an error.
    pub fn categories_of<S: Into<String>>(
        mut self,
        column: impl Into<Column>,
        categories: impl IntoIterator<Item = S>,
    ) -> Csv {
        let categories = categories.into_iter().map(Into::into).collect();
        self.kinds.push((column.into(), ColumnKind::Categories(Some(categories))));
        self
    }

    /// The columns of categories of another table, with its categories in its order. Any other is an error.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// let train = Csv::from_bytes(b"city,price\nOslo,420\nRome,250\n").categories(["city"]).read()?;
    /// let test = Csv::from_bytes(b"city,price\nRome,260\n").categories_like(&train).read()?;
    /// assert_eq!(test.category("city")?.to_vec::<i64>()?, [1]);
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    pub fn categories_like(mut self, table: &Table) -> Csv {
        self.kinds.extend(table.known_categories());
        self
    }

    /// Columns of dates such as `2024-02-29`, which become numbers: the whole days since 1970-01-01. A table
    /// prints them as dates.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// use namegrad::prelude::*;
    /// let table = Csv::from_bytes(b"day,sold\n2024-02-28,3\n2024-03-01,5\n").dates(["day"]).read()?;
    /// let day = table.column_in("day", DType::I64)?; // [N]
    /// assert_eq!(day.to_vec::<i64>()?, [19781, 19783]);
    /// // 1970-01-01 was a Thursday: 0 is Monday.
    /// let table = table.with_column("weekday", day.add(3)?.remainder(7)?)?;
    /// assert_eq!(table.column("weekday")?.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn dates<C: Into<Column>>(mut self, columns: impl IntoIterator<Item = C>) -> Csv {
        self.kinds.extend(columns.into_iter().map(|column| (column.into(), ColumnKind::Dates)));
        self
    }

    /// Columns of times such as `2024-02-29T12:30:00Z`, `2024-02-29 12:30` or `2024-02-29T12:30:00.5+02:00`,
    /// which become numbers: the seconds since 1970-01-01 in UTC. A time without an offset is one of UTC.
    /// Read them by [`column_in`](Table::column_in) in `f64` or `i64`, as `f32` would round them to minutes.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// use namegrad::prelude::*;
    /// let table = Csv::from_bytes(b"time\n2024-02-29T12:30:00Z\n").times(["time"]).read()?;
    /// assert_eq!(table.column_in("time", DType::I64)?.item::<i64>()?, 1709209800);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn times<C: Into<Column>>(mut self, columns: impl IntoIterator<Item = C>) -> Csv {
        self.kinds.extend(columns.into_iter().map(|column| (column.into(), ColumnKind::Times)));
        self
    }

    /// Columns that are not read.
    pub fn skip<C: Into<Column>>(mut self, columns: impl IntoIterator<Item = C>) -> Csv {
        self.kinds.extend(columns.into_iter().map(|column| (column.into(), ColumnKind::Skipped)));
        self
    }

    /// Reads the whole table.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be read. [`ErrorKind::Format`], with the line, if a row has
    /// another number of fields than the first one, a quote is not closed, a name in the header or the header
    /// itself repeats, the header looks like a row, the delimiter seems to be another one, a field is not a
    /// finite number or a category, values are missing, or there are no rows. The error of missing values
    /// lists all columns that have some. [`ErrorKind::Value`] if a setting is about a column that does not
    /// exist.
    #[track_caller]
    pub fn read(&self) -> Result<Table> {
        let caller = Location::caller();
        self.table().map_err(|error| error.at(caller))
    }

    fn table(&self) -> Result<Table> {
        let mut rows = self.shared().rows()?;
        let (mut table, mut known) = Table::new(rows.schema.clone());
        let mut record = StringRecord::new();
        while rows.read(&mut record)? {
            if let Err(error) = table.push(&mut known, &record) {
                return Err(rows.faults(record, table.len() == 0).unwrap_or(error));
            }
        }
        table.finish()
    }

    /// The rows one by one, for a file that is larger than memory. The file is read once now, up to its first
    /// row.
    ///
    /// ```
    /// use namegrad::data::{Csv, Loader};
    /// use namegrad::prelude::*;
    /// let rows = Csv::from_bytes(b"area,rooms,price\n70,3,420\n55,2,250\n90,4,510\n").stream()?;
    /// let samples = rows.map(|row| Ok((row.numbers(["area", "rooms"])?, row.number("price")? as f32)));
    /// for batch in Loader::new(samples.shuffle_buffer(1000), 2)?.iter() {
    ///     let (x, price) = batch?; // [N, feature], [N]
    ///     assert_eq!(x.size("feature")?, 2);
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`read`](Self::read). Those of later rows come from the loader. [`ErrorKind::Unsupported`] for
    /// [`Fill::Mean`] and for categories that are not given, which would need the whole table.
    #[track_caller]
    pub fn stream(&self) -> Result<Stream<Row>> {
        let caller = Location::caller();
        let csv = self.shared();
        let first = csv.clone().rows().and_then(|mut rows| {
            rows.schema.check_stream()?;
            rows.read(&mut StringRecord::new())
        });
        first.map_err(|error| error.at(caller))?;
        Ok(Stream::fallible(move || csv.clone().rows()))
    }

    /// A copy that the reader, the schema and the stream share.
    #[inline(never)]
    fn shared(&self) -> Arc<Csv> {
        Arc::new(self.clone())
    }

    fn has_header(&self) -> bool {
        self.header.unwrap_or(true)
    }

    fn separator(&self) -> u8 {
        self.delimiter.unwrap_or(b',')
    }

    /// Reads the header and finds the columns.
    fn rows(self: Arc<Csv>) -> Result<RowReader> {
        let (content, blank) = (self.input.open(OP)?, Blank::default());
        let lines = LineReader::new(content.bytes, self.separator(), blank.clone());
        let lines = lines.map_err(|error| self.input.failed(OP, &error))?;
        let mut reader = ReaderBuilder::new()
            .has_headers(self.has_header())
            .delimiter(self.separator())
            .trim(Trim::All)
            .from_reader(lines);
        // Without a header, these are the fields of the first row, which is read again.
        let first = reader.headers().map_err(|error| self.failed(&error, &blank))?.clone();
        if first.is_empty() {
            return Err(self.input.malformed(OP, &"there are no rows"));
        }
        Ok(RowReader { reader, blank, schema: Arc::new(Schema::new(self, &first)?), is_first: true })
    }

    /// The error of a row that could not be read.
    #[cold]
    fn failed(&self, error: &csv::Error, blank: &Blank) -> Error {
        let line = |position: &Option<csv::Position>| match position {
            Some(position) => format!("line {}: ", blank.line(position.line())),
            None => String::new(),
        };
        match error.kind() {
            csv::ErrorKind::Io(error) => self.input.failed(OP, error),
            csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
                let what = format!("{}{len} fields, expected {expected_len}", line(pos));
                let error = self.input.malformed(OP, &what);
                match len > expected_len {
                    true => error.with_repair(self.quoting()),
                    false => error,
                }
            }
            csv::ErrorKind::Utf8 { pos, err } => {
                self.input.malformed(OP, &format_args!("{}field {} is not UTF-8", line(pos), err.field() + 1))
            }
            _ => self.input.malformed(OP, error),
        }
    }

    /// The repair for a row with too many fields.
    fn quoting(&self) -> String {
        let delimiter = char::from(self.separator());
        format!(
            "1{delimiter}\"a{delimiter} b\" in the file: quotes around a field that has '{delimiter}' in it, and no blank before them"
        )
    }

    #[cold]
    fn malformed(&self, what: &dyn std::fmt::Display) -> Error {
        self.input.malformed(OP, what)
    }

    #[cold]
    fn refused(message: String) -> Error {
        Error::new(ErrorKind::Value, OP, message)
    }
}

/// The rows of a file.
struct RowReader {
    reader: csv::Reader<LineReader>,
    blank: Blank,
    schema: Arc<Schema>,
    /// The next row is the first one.
    is_first: bool,
}

impl RowReader {
    /// The error of all fields that cannot be read from this row on, or else of all missing values, if the row
    /// has one.
    #[cold]
    fn faults(mut self, first: StringRecord, mut is_first: bool) -> Option<Error> {
        let (schema, mut record) = (self.schema.clone(), first.clone());
        let (mut unread, mut missing) = (Vec::new(), Vec::new());
        loop {
            Unread::gather(&mut unread, &schema, &record, std::mem::take(&mut is_first));
            Missing::count(&mut missing, &schema, &record);
            // An error in a later row is the error of the next call.
            if !self.read(&mut record).unwrap_or(false) {
                break;
            }
        }
        let is_missing = schema.missing_in(&first).next().is_some();
        match unread.is_empty() {
            true => is_missing.then(|| schema.missing(&missing)),
            false => Some(schema.unread(&first, &unread)),
        }
    }

    /// Reads the next row, and says whether there was one. Rows with missing values are left out, if they are
    /// to be.
    fn read(&mut self, record: &mut StringRecord) -> Result<bool> {
        loop {
            if !self
                .reader
                .read_record(record)
                .map_err(|error| self.schema.csv.failed(&error, &self.blank))?
            {
                return Ok(false);
            }
            let position = record.position().cloned().map(|mut position| {
                let line = self.blank.line(position.line());
                position.set_line(line);
                position
            });
            record.set_position(position);
            self.schema.check_header(record, std::mem::take(&mut self.is_first))?;
            if !(self.schema.csv.drop_missing && self.schema.missing_in(record).next().is_some()) {
                return Ok(true);
            }
        }
    }
}
