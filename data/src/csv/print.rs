//! Tables as text, and the statistics of their columns.

use super::schema::{ColumnKind, Schema};
use super::table::{Table, Values};
use super::{Csv, date};
use csv::StringRecord;
use namegrad_core::Result;
use namegrad_io::sorted::{self, list_of};
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// The columns of [`Table::describe`].
const STATISTICS: [&str; 9] = ["column", "count", "mean", "std", "min", "25%", "50%", "75%", "max"];

/// The most rows and columns that are printed.
const ROWS: usize = 50;
const COLUMNS: usize = 10;

impl Table {
    /// The first `n` rows, or all if there are fewer, such as to print them.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// let table = Csv::from_bytes(b"area,city\n70,Oslo\n55.5,Rome\n90,Oslo\n").categories(["city"]).read()?;
    /// assert_eq!(table.head(2)?.to_string(), "area  city\n  70  Oslo\n55.5  Rome");
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if `n` is 0.
    #[track_caller]
    pub fn head(&self, n: usize) -> Result<Table> {
        self.rows(0..n.min(self.len()))
    }

    /// A row for each column of numbers: its name, how many values are not NaN, their mean, standard deviation
    /// (with Bessel's correction), minimum, quartiles and maximum. Quartiles between two values are
    /// interpolated. The columns are called as in pandas.
    ///
    /// ```
    /// use namegrad::data::Csv;
    /// let table = Csv::from_bytes(b"area,price\n70,420\n55,250\n90,510\n").read()?;
    /// let statistics = table.describe()?;
    /// println!("{statistics}");
    /// assert_eq!(statistics.category_names("column")?, ["area", "price"]);
    /// assert_eq!(statistics.column("50%")?.to_vec::<f32>()?, [70.0, 420.0]);
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if no column has numbers.
    #[track_caller]
    pub fn describe(&self) -> Result<Table> {
        let caller = Location::caller();
        let (mut names, mut columns) = (Vec::new(), vec![Vec::new(); STATISTICS.len() - 1]);
        for (at, values) in self.values().iter().enumerate() {
            let Values::Numbers(numbers) = values else { continue };
            names.push(self.schema().name(at));
            for (column, value) in columns.iter_mut().zip(statistics(numbers)) {
                column.push(value);
            }
        }
        if names.is_empty() {
            let error = Csv::refused("the table has no columns of numbers to describe".into());
            return Err(error.at(caller));
        }
        let csv = Csv::from_bytes(b"").categories([STATISTICS[0]]);
        let schema = Schema::new(Arc::new(csv), &StringRecord::from(STATISTICS.to_vec()))?;
        let rows = names.len();
        let ids = list_of(rows, &mut |at| at as i64);
        let mut values = vec![Values::Categories { ids, names }];
        for column in columns {
            values.push(Values::Numbers(column));
        }
        Ok(Table::of(schema, values, rows))
    }
}

/// The count, mean, standard deviation, minimum, quartiles and maximum of the numbers that are not NaN.
fn statistics(numbers: &[f64]) -> [f64; 8] {
    let mut numbers = numbers.to_vec();
    numbers.retain(|number| !number.is_nan());
    sorted::sort(&mut numbers, &|a, b| a < b);
    let (count, last) = (numbers.len() as f64, numbers.len().saturating_sub(1));
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|number| (number - mean) * (number - mean)).sum();
    let quantile = |quarters: usize| {
        let (at, part) = (quarters * last / 4, (quarters * last % 4) as f64 / 4.0);
        let Some(low) = numbers.get(at) else { return f64::NAN };
        low + part * (numbers[(at + 1).min(last)] - low)
    };
    let [min, low, median, high, max] = [0, 1, 2, 3, 4].map(quantile);
    [count, mean, (squares / (count - 1.0)).sqrt(), min, low, median, high, max]
}

/// A number with six digits, or all before the point.
fn number(x: f64) -> String {
    let magnitude = if x == 0.0 { 0 } else { x.abs().log10().floor() as i32 };
    let trimmed = |digits: &str| digits.trim_end_matches('0').trim_end_matches('.').to_string();
    if !x.is_finite() || (5..15).contains(&magnitude) {
        return format!("{x:.0}");
    }
    if (-5..5).contains(&magnitude) {
        return trimmed(&format!("{x:.*}", (5 - magnitude) as usize));
    }
    let text = format!("{x:.5e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e{exponent}", trimmed(digits))
}

impl Table {
    /// A number of a column, as it is printed.
    fn shown(&self, column: usize, x: f64) -> String {
        match self.schema().kinds[column] {
            ColumnKind::Numbers => number(x),
            _ => self.text(column, x),
        }
    }

    /// A number of a column with all its digits, or the date or the time that it is.
    pub(super) fn text(&self, column: usize, x: f64) -> String {
        match self.schema().kinds[column] {
            _ if x.is_nan() => "NaN".into(),
            ColumnKind::Dates if x.fract() == 0.0 => date::date(x as i64),
            ColumnKind::Times => date::time(x),
            _ => format!("{x}"),
        }
    }
}

/// The rows with the names of the columns above: at most 50 rows and 10 columns.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.len().min(ROWS);
        let mut lines = vec![String::new(); rows + 1];
        let mut shown = 0;
        for (at, values) in self.values().iter().enumerate() {
            let cell = |row: usize| match values {
                Values::Numbers(numbers) => self.shown(at, numbers[row]),
                Values::Categories { ids, names } => names[ids[row] as usize].clone(),
                Values::Skipped => String::new(),
            };
            if matches!(values, Values::Skipped) {
                continue;
            }
            shown += 1;
            if shown > COLUMNS {
                lines.iter_mut().for_each(|line| line.push_str("  ..."));
                break;
            }
            let cells = list_of(rows + 1, &mut |line| match line {
                0 => self.schema().name(at),
                _ => cell(line - 1),
            });
            let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
            let space = if shown == 1 { "" } else { "  " };
            for (line, cell) in lines.iter_mut().zip(cells) {
                line.push_str(&format!("{space}{cell:>width$}"));
            }
        }
        f.write_str(&crate::joined(&lines, "\n"))?;
        match self.len() - rows {
            0 => Ok(()),
            more => write!(f, "\n... and {more} more rows"),
        }
    }
}

/// The number of rows, and the names and types of the columns.
impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table of {} rows: ", self.len())?;
        let mut shown = 0;
        for (at, values) in self.values().iter().enumerate() {
            let name = self.schema().name(at);
            let space = if shown == 0 { "" } else { ", " };
            match values {
                Values::Skipped => continue,
                _ if shown == 2 * COLUMNS => return write!(f, "{space}..."),
                Values::Numbers(_) => {
                    let what = match self.schema().kinds[at] {
                        ColumnKind::Dates => "dates",
                        ColumnKind::Times => "times",
                        _ => "numbers",
                    };
                    write!(f, "{space}'{name}' of {what}")?;
                }
                Values::Categories { names, .. } => {
                    write!(f, "{space}'{name}' of {} categories", names.len())?
                }
            }
            shown += 1;
        }
        Ok(())
    }
}
