//! The columns of a table: names, types, categories, and replacements for missing values.

use super::unread::Unread;
use super::{Csv, OP, date};
use csv::StringRecord;
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_io::sorted::list_of;
use namegrad_io::text::{closest_name, quoted_list};
use std::collections::HashMap;
use std::sync::Arc;

/// A column of a table: by its name in the header, or by its position from 0. Negative positions count from
/// the last column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// By name.
    Name(String),
    /// By position.
    Index(isize),
}

impl From<&str> for Column {
    fn from(name: &str) -> Column {
        Column::Name(name.into())
    }
}

impl From<&String> for Column {
    fn from(name: &String) -> Column {
        Column::Name(name.clone())
    }
}

impl From<String> for Column {
    fn from(name: String) -> Column {
        Column::Name(name)
    }
}

impl From<i32> for Column {
    fn from(index: i32) -> Column {
        Column::Index(index as isize)
    }
}

impl From<usize> for Column {
    fn from(index: usize) -> Column {
        Column::Index(isize::try_from(index).unwrap_or(isize::MAX))
    }
}

/// A replacement for the missing values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    /// A number. `f64::NAN` keeps them as NaN, to be filled later: [`Standardize`](crate::Standardize) shows
    /// how.
    Number(f64),
    /// The mean of the values of the column that are not missing. It is over all rows, including those that
    /// you may split off for a test.
    Mean,
    /// A category.
    Category(String),
}

impl From<f64> for Fill {
    fn from(number: f64) -> Fill {
        Fill::Number(number)
    }
}

impl From<i32> for Fill {
    fn from(number: i32) -> Fill {
        Fill::Number(number.into())
    }
}

impl From<&str> for Fill {
    fn from(category: &str) -> Fill {
        Fill::Category(category.into())
    }
}

/// The type of the fields of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ColumnKind {
    Numbers,
    /// Dates, as numbers of days.
    Dates,
    /// Times, as numbers of seconds.
    Times,
    /// Categories, which are given or found.
    Categories(Option<Vec<String>>),
    Skipped,
}

impl ColumnKind {
    /// Whether its fields become numbers.
    pub(super) fn is_numeric(&self) -> bool {
        matches!(self, ColumnKind::Numbers | ColumnKind::Dates | ColumnKind::Times)
    }
}

/// The missing values of a column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    /// The line of the first one.
    line: u64,
    count: usize,
}

impl Missing {
    /// Counts the missing values of a row. `found` has the columns in order.
    pub(super) fn count(found: &mut Vec<(usize, Missing)>, schema: &Schema, record: &StringRecord) {
        for column in schema.missing_in(record) {
            let place = found.partition_point(|(own, _)| *own < column);
            match found.get_mut(place) {
                Some((own, missing)) if *own == column => missing.count += 1,
                _ => found.insert(place, (column, Missing { line: line_of(record), count: 1 })),
            }
        }
    }
}

/// The numbers of names: of columns, or of the categories of a column.
pub(super) type Numbering = HashMap<String, usize>;

/// The columns of a file.
#[derive(Clone, Debug)]
pub(super) struct Schema {
    pub(super) names: Option<Vec<String>>,
    /// The position of each name.
    positions: Numbering,
    pub(super) kinds: Vec<ColumnKind>,
    fills: Vec<Option<Fill>>,
    pub(super) csv: Arc<Csv>,
}

impl Csv {
    /// Checks that a single column is not several, with another delimiter.
    fn check_delimiter(&self, first: &StringRecord) -> Result<()> {
        let other = [';', '\t', '|'].into_iter().find(|other| first[0].contains(*other));
        match other {
            Some(other) if first.len() == 1 && self.delimiter.is_none() => {
                let what = format!("line 1: there is one column, {:?}, and no comma", &first[0]);
                let repair =
                    format!("Csv::new(path).delimiter(b{other:?}), or .delimiter(b',') for one column");
                Err(self.malformed(&what).with_repair(repair))
            }
            _ => Ok(()),
        }
    }
}

impl Schema {
    /// The columns of a table by its first row, which is the header if there is one.
    pub(super) fn new(csv: Arc<Csv>, first: &StringRecord) -> Result<Schema> {
        csv.check_delimiter(first)?;
        let names = csv.has_header().then(|| list_of(first.len(), &mut |at| first[at].to_string()));
        let mut positions = Numbering::new();
        for (column, name) in names.iter().flatten().enumerate() {
            if let Some(other) = positions.insert(name.clone(), column) {
                let (one, other) = (other + 1, column + 1);
                let what =
                    format!("line 1: columns {one} and {other} of the header are both called '{name}'");
                return Err(csv
                    .malformed(&what)
                    .with_repair("Csv::new(path).header(false), with columns by number, if line 1 is data; else give the columns different names in the file"));
            }
        }
        let kinds = vec![ColumnKind::Numbers; first.len()];
        let fills = vec![None; first.len()];
        let mut schema = Schema { names, positions, kinds, fills, csv: csv.clone() };
        for (column, kind) in &csv.kinds {
            let column = schema.find(column)?;
            if let ColumnKind::Categories(Some(given)) = kind
                && let Some(twice) = given.iter().enumerate().find(|(at, name)| given[..*at].contains(name))
            {
                let message = format!("{}: the category {:?} is given twice", schema.called(column), twice.1);
                return Err(Csv::refused(message));
            }
            schema.kinds[column] = kind.clone();
        }
        for (column, fill) in &csv.fills {
            let column = schema.find(column)?;
            schema.fill(column, fill)?;
        }
        if let Some(fill) = &csv.fill_numbers {
            for column in 0..schema.kinds.len() {
                if schema.kinds[column].is_numeric() && schema.fills[column].is_none() {
                    schema.fill(column, fill)?;
                }
            }
        }
        Ok(schema)
    }

    /// Sets the replacement for the missing values of a column.
    fn fill(&mut self, column: usize, fill: &Fill) -> Result<()> {
        let kind = &self.kinds[column];
        let fits = match fill {
            Fill::Number(number) => kind.is_numeric() && !(*number as f32).is_infinite(),
            Fill::Mean => kind.is_numeric(),
            Fill::Category(category) => match kind {
                ColumnKind::Categories(given) => given.as_ref().is_none_or(|given| given.contains(category)),
                _ => false,
            },
        };
        if !fits {
            let fill = match fill {
                Fill::Number(number) => format!("the number {number}"),
                Fill::Mean => "its mean".into(),
                Fill::Category(category) => format!("the category {category:?}"),
            };
            let message = format!("{} cannot be filled with {fill}", self.called(column));
            return Err(Csv::refused(message));
        }
        self.fills[column] = Some(fill.clone());
        Ok(())
    }

    /// The position of a column of numbers with this name, which is added if there is none.
    pub(super) fn place(&mut self, name: &str) -> Result<usize> {
        if let Some(column) = self.positions.get(name) {
            self.kinds[*column] = ColumnKind::Numbers;
            return Ok(*column);
        }
        let Some(names) = &mut self.names else {
            let message = format!("a table without a header cannot have a column '{name}'");
            return Err(Csv::refused(message));
        };
        names.push(name.into());
        self.positions.insert(name.into(), self.kinds.len());
        self.kinds.push(ColumnKind::Numbers);
        self.fills.push(None);
        Ok(self.kinds.len() - 1)
    }

    /// The position of a column.
    pub(super) fn find(&self, column: &Column) -> Result<usize> {
        let count = self.kinds.len();
        match column {
            Column::Index(index) => {
                let position = if *index < 0 { index.saturating_add_unsigned(count) } else { *index };
                usize::try_from(position).ok().filter(|position| *position < count).ok_or_else(|| {
                    Csv::refused(format!(
                        "{}: no column {index} in a table of {count}",
                        self.csv.input.name()
                    ))
                })
            }
            Column::Name(name) => self.positions.get(name).copied().ok_or_else(|| self.unknown(name)),
        }
    }

    #[cold]
    fn unknown(&self, name: &str) -> Error {
        let input = self.csv.input.name();
        let Some(names) = &self.names else {
            let message = format!("{input}: there is no column '{name}', as there is no header");
            return Csv::refused(message).with_repair("0 for the first column, -1 for the last one");
        };
        let some = quoted_list(20, &mut names.iter().map(String::as_str));
        let error = Csv::refused(format!("{input}: there is no column '{name}', only {some}"));
        match closest_name(name, &mut names.iter().map(String::as_str)) {
            Some(close) => error.with_repair(format!("\"{close}\"")),
            None if self.csv.header.is_none() && names.iter().any(|name| is_number(name)) => {
                error.with_repair(NO_HEADER)
            }
            None => error,
        }
    }

    /// The name of a column, or its number.
    pub(super) fn name(&self, column: usize) -> String {
        self.names.as_ref().map_or_else(|| column.to_string(), |names| names[column].clone())
    }

    /// The name of a column, for errors.
    pub(super) fn called(&self, column: usize) -> String {
        match &self.names {
            Some(names) => format!("column '{}'", names[column]),
            None => format!("column {column}"),
        }
    }

    /// Whether the missing values of a column get the mean of the others.
    pub(super) fn fills_mean(&self, column: usize) -> bool {
        self.fills[column] == Some(Fill::Mean)
    }

    pub(super) fn is_missing(&self, field: &str) -> bool {
        self.csv.missing.iter().any(|missing| missing == field)
    }

    /// The columns of a row in which a value is missing that is not filled.
    pub(super) fn missing_in(&self, record: &StringRecord) -> impl Iterator<Item = usize> {
        let is_open =
            |column: usize| self.kinds[column] != ColumnKind::Skipped && self.fills[column].is_none();
        let fields = record.iter().enumerate();
        let missing = fields.filter(move |(column, field)| is_open(*column) && self.is_missing(field));
        missing.map(|(column, _)| column)
    }

    /// Checks that a row is not the header again, and by the first row that the header is none itself.
    pub(super) fn check_header(&self, record: &StringRecord, is_first: bool) -> Result<()> {
        let Some(names) = &self.names else { return Ok(()) };
        if is_first && self.csv.header.is_none() && names.iter().any(|name| is_number(name)) {
            let mut columns = names.iter().zip(record);
            if !columns.any(|(name, field)| is_number(field) && !is_number(name)) {
                return Err(self.header_of_numbers(names));
            }
        }
        match record.iter().eq(names.iter().map(String::as_str)) {
            true => Err(self.csv.malformed(&format_args!("line {}: the header repeats", line_of(record)))),
            false => Ok(()),
        }
    }

    #[cold]
    fn header_of_numbers(&self, names: &[String]) -> Error {
        let some = quoted_list(4, &mut names.iter().map(String::as_str));
        let what = format!("line 1: the header looks like a row: {some}");
        self.csv.malformed(&what).with_repair(NO_HEADER)
    }

    /// The number in a field; NaN if it is missing and gets the mean.
    pub(super) fn number(&self, record: &StringRecord, column: usize) -> Result<f64> {
        let field = &record[column];
        if self.is_missing(field) {
            return match &self.fills[column] {
                Some(Fill::Number(number)) => Ok(*number),
                Some(Fill::Mean) => Ok(f64::NAN),
                _ => Err(self.missing_here(record, column)),
            };
        }
        self.read(column, field).ok_or_else(|| self.unread(record, &[Unread::new(record, column, false)]))
    }

    /// The number of a field that is not missing, if it is what the column has.
    pub(super) fn read(&self, column: usize, field: &str) -> Option<f64> {
        match self.kinds[column] {
            ColumnKind::Dates => date::days(field).map(|days| days as f64),
            ColumnKind::Times => date::seconds(field),
            // Columns are in `f32`.
            _ => field.parse().ok().filter(|number: &f64| (*number as f32).is_finite()),
        }
    }

    /// The category in a field.
    pub(super) fn category<'r>(&'r self, record: &'r StringRecord, column: usize) -> Result<&'r str> {
        let field = &record[column];
        if !self.is_missing(field) {
            return Ok(field);
        }
        match &self.fills[column] {
            Some(Fill::Category(category)) => Ok(category),
            _ => Err(self.missing_here(record, column)),
        }
    }

    /// The error of a category that is not among those that are given.
    #[cold]
    pub(super) fn no_category(&self, record: &StringRecord, column: usize, given: &[String]) -> Error {
        let (line, column_text, field) = (line_of(record), self.called(column), &record[column]);
        let error = self
            .csv
            .malformed(&format_args!("line {line}, {column_text}: '{field}' is not one of {given:?}"));
        match closest_name(field, &mut given.iter().map(String::as_str)) {
            Some(close) => error.with_repair(format!("\"{close}\"")),
            None => error,
        }
    }

    /// The error of a value that is missing in a row of a stream, where the mean is not known.
    #[cold]
    fn missing_here(&self, record: &StringRecord, column: usize) -> Error {
        let example = if self.kinds[column].is_numeric() { "f64::NAN" } else { "\"unknown\"" };
        let repair = format!(".fill({}, {example}) or .drop_missing(true)", self.in_rust(column));
        self.missing(&[(column, Missing { line: line_of(record), count: 1 })]).with_repair(repair)
    }

    /// The error of the columns that have missing values, of which there is at least one.
    #[cold]
    pub(super) fn missing(&self, columns: &[(usize, Missing)]) -> Error {
        let what = match columns {
            [(column, Missing { line, count: 1 })] => {
                format!("line {line}, {}: the value is missing", self.called(*column))
            }
            [(column, Missing { line, count })] => {
                let others = count - 1;
                format!(
                    "line {line}, {}: the value is missing, and {others} more below",
                    self.called(*column)
                )
            }
            _ => {
                let mut list = Vec::new();
                for (column, Missing { line, count }) in columns {
                    list.push(format!("{} ({count}, from line {line} on)", self.called(*column)));
                }
                format!("values are missing in {}", crate::joined(&list, ", "))
            }
        };
        let (mut number, mut numbers, mut categories) = (String::new(), 0, Vec::new());
        for (column, _) in columns {
            let in_rust = self.in_rust(*column);
            match self.kinds[*column] {
                ref kind if kind.is_numeric() => (number, numbers) = (in_rust, numbers + 1),
                _ => categories.push(format!(".fill({in_rust}, \"unknown\")")),
            }
        }
        let mut repairs = match numbers {
            0 => vec![],
            1 => vec![format!(".fill({number}, Fill::Mean)"), format!(".fill({number}, f64::NAN)")],
            _ => vec![".fill_numbers(Fill::Mean)".into(), ".fill_numbers(f64::NAN)".into()],
        };
        repairs.append(&mut categories);
        let repair = format!("{} or .drop_missing(true)", crate::joined(&repairs, ", "));
        self.csv.malformed(&what).with_repair(repair)
    }

    /// A column as one would write it.
    pub(super) fn in_rust(&self, column: usize) -> String {
        match &self.names {
            Some(names) => format!("{:?}", names[column]),
            None => column.to_string(),
        }
    }

    /// The error of a table without rows.
    #[cold]
    pub(super) fn no_rows(&self) -> Error {
        let error = self.csv.malformed(&"there are no rows");
        match self.names.iter().flatten().any(|name| is_number(name)) {
            true => error.with_repair(NO_HEADER),
            false => error,
        }
    }

    /// Checks that each row can be read without the others.
    pub(super) fn check_stream(&self) -> Result<()> {
        for column in 0..self.kinds.len() {
            let what = match (&self.kinds[column], &self.fills[column]) {
                (_, Some(Fill::Mean)) => "its mean is not known before the whole table is read",
                (ColumnKind::Categories(None), _) => {
                    "its categories are not known before the whole table is read"
                }
                _ => continue,
            };
            let repair = format!(".categories_of({}, [..]), or fill with a number", self.in_rust(column));
            let message = format!("{}: {}: {what}", self.csv.input.name(), self.called(column));
            return Err(Error::new(ErrorKind::Unsupported, OP, message).with_repair(repair));
        }
        Ok(())
    }
}

/// The repair for a header that may be a row.
pub(super) const NO_HEADER: &str =
    "Csv::new(path).header(false) if line 1 is a row, .header(true) if it has the names";

pub(super) fn is_number(field: &str) -> bool {
    field.parse::<f64>().is_ok_and(f64::is_finite)
}

/// The line of a row.
pub(super) fn line_of(record: &StringRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}
