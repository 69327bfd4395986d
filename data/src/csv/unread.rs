//! Fields that cannot be read as what their column has: what they look like, and the settings that read them.

use super::date;
use super::schema::{ColumnKind, NO_HEADER, Schema, is_number, line_of};
use csv::StringRecord;
use namegrad_core::Error;

/// How many columns an error lists.
const MOST: usize = 10;

/// The fields of a column of numbers, dates or times that are not that.
pub(super) struct Unread {
    column: usize,
    /// The line of the first one.
    line: u64,
    /// The first few that differ.
    fields: Vec<String>,
    /// Whether fields before or between them can be read.
    is_mixed: bool,
}

impl Unread {
    /// The first field, below others that can be read or not.
    pub(super) fn new(record: &StringRecord, column: usize, is_mixed: bool) -> Unread {
        Unread { column, line: line_of(record), fields: vec![record[column].to_string()], is_mixed }
    }

    /// Adds the fields of a row, which is the first of the table or not.
    pub(super) fn gather(found: &mut Vec<Unread>, schema: &Schema, record: &StringRecord, is_first: bool) {
        for (column, field) in record.iter().enumerate() {
            if !schema.kinds[column].is_numeric() || schema.is_missing(field) {
                continue;
            }
            let is_read = schema.read(column, field).is_some();
            match found.iter_mut().find(|own| own.column == column) {
                Some(own) if is_read => own.is_mixed = true,
                Some(own) if own.fields.len() < 8 && !own.fields.iter().any(|own| own == field) => {
                    own.fields.push(field.into());
                }
                None if !is_read => found.push(Unread::new(record, column, !is_first)),
                _ => {}
            }
        }
    }

    /// The first field that does not mark a missing value, or the first one.
    fn field(&self) -> &str {
        self.fields.iter().find(|field| !marks_missing(field)).unwrap_or(&self.fields[0])
    }
}

/// What a field looks like.
enum Looks {
    Date,
    Time,
    /// A mark of a missing value.
    Missing,
    /// A number or a date that is written in another way, which the words say.
    Written(String),
    /// A number with letters, which can also be a class: `12 km`, `2b`.
    Unit,
    Text,
}

impl Looks {
    fn of(kind: &ColumnKind, field: &str) -> Looks {
        if marks_missing(field) {
            Looks::Missing
        } else if date::days(field).is_some() {
            Looks::Date
        } else if date::seconds(field).is_some() {
            Looks::Time
        } else if let Some(dates) = date::other_format(field) {
            let what = if kind == &ColumnKind::Numbers { "it looks like a date, and " } else { "" };
            Looks::Written(match &dates[..] {
                [] => format!("{what}only dates such as 2024-02-29 are read"),
                [date] => format!("{what}only dates such as {date} are read"),
                [one, other, ..] => {
                    format!("{what}it can be {one} or {other}; only dates such as {one} are read")
                }
            })
        } else if *kind != ColumnKind::Numbers || field.parse::<f64>().is_ok() {
            Looks::Written(String::new()) // the message says what a field of the column is
        } else {
            number_with(field)
        }
    }
}

impl Schema {
    /// The error of columns with fields that cannot be read, of which there is at least one. `record` is the
    /// row of the first.
    #[cold]
    pub(super) fn unread(&self, record: &StringRecord, found: &[Unread]) -> Error {
        let [mut dates, mut times, mut texts, mut others, mut units] = [const { Vec::new() }; 5];
        let [mut missing, mut messages] = [const { Vec::new() }; 2];
        for unread in found.iter().take(MOST) {
            let (column, field) = (self.in_rust(unread.column), unread.field());
            let (line, called, what) =
                (unread.line, self.called(unread.column), self.what(unread.column, field));
            let mut message = format!("line {line}, {called}: '{}' is not {what}", shortened(field));
            match Looks::of(&self.kinds[unread.column], field) {
                Looks::Date => dates.push(column),
                Looks::Time => times.push(column),
                Looks::Missing => missing.extend(unread.fields.iter().cloned()),
                Looks::Written(why) => {
                    message += &if why.is_empty() { why } else { format!(": {why}") };
                    others.push(column);
                }
                Looks::Text if !unread.is_mixed => texts.push(column),
                // The column may be one of numbers.
                looks => {
                    message += if let Looks::Unit = looks { ": it has a unit" } else { "" };
                    units.push(column.clone());
                    others.push(column);
                }
            }
            messages.push(message);
        }
        if let Some(more @ 1..) = found.len().checked_sub(MOST) {
            messages.push(format!("and so in {more} more columns"));
        }
        if !missing.is_empty() {
            missing.splice(0..0, self.csv.missing.iter().cloned()); // the setting replaces the list
            missing.iter_mut().for_each(|text| *text = format!("{text:?}"));
        }
        let mut repair = String::new();
        for (before, columns, after) in [
            (".dates([", &dates, "])"),
            (".times([", &times, "])"),
            (".categories([", &texts, "])"),
            (".missing([", &missing, "])"),
            (".skip([", &others, "])"),
            (", or .skip([", &texts, "]) for free text"),
            (", or .categories([", &units, "]) for classes"),
            ("; to keep ", &others, ", mend the file"),
        ] {
            if !columns.is_empty() {
                repair += &format!("{before}{}{after}", crate::joined(columns, ", "));
            }
        }
        // Where no field is a number or a date, nothing tells the header from a row.
        let tells = |field: &str| is_number(field) || date::seconds(field).is_some();
        let repair = match self.names.is_some() && self.csv.header.is_none() && !record.iter().any(tells) {
            true => format!("{NO_HEADER}; else {repair}"),
            false => repair,
        };
        self.csv.malformed(&crate::joined(&messages, "; ")).with_repair(repair)
    }

    /// What a field of a column is not.
    fn what(&self, column: usize, field: &str) -> &'static str {
        match (&self.kinds[column], field.parse::<f64>()) {
            (ColumnKind::Dates, _) => "a date such as 2024-02-29",
            (ColumnKind::Times, _) => "a time such as 2024-02-29T12:30:00Z",
            (_, Ok(number)) if number.is_finite() => "a number that `f32` can hold",
            (_, Ok(number)) if number.is_infinite() => "a finite number",
            _ => "a number",
        }
    }
}

/// Whether a field is one that people write for a missing value.
fn marks_missing(field: &str) -> bool {
    let marks = [
        "", "na", "n/a", "#n/a", "n.a.", "<na>", "nan", "null", "nil", "none", "missing", "unknown", "?",
        "-", "--", "---", ".",
    ];
    marks.iter().any(|mark| field.eq_ignore_ascii_case(mark))
}

/// What a field looks like that is not a number: a number with signs, or text.
fn number_with(field: &str) -> Looks {
    let bare = field.trim_start_matches(|c: char| !c.is_alphanumeric() && !"+-.,".contains(c));
    let is_part = |c: char| c.is_ascii_digit() || "+-.,'\u{a0}\u{202f} ".contains(c);
    let end = bare.find(|c: char| !is_part(c)).unwrap_or(bare.len());
    let (number, unit) = (bare[..end].trim_end(), &bare[end..]);
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    let groups = number.split([',', '\'', '\u{a0}', '\u{202f}', ' ']).collect::<Vec<_>>();
    let dots = number.split('.').skip(1).collect::<Vec<_>>();
    let has_thousands = is_number(&groups.concat())
        && groups[1..].iter().all(|group| group.find('.').unwrap_or(group.len()) == 3)
        || dots.len() > 1 && dots.iter().all(|group| group.len() == 3 && is_number(group));
    let has_decimal_comma = number.rsplit_once(',').is_some_and(|(whole, last)| {
        !last.contains('.') && is_number(&format!("{}.{last}", whole.replace('.', "")))
    });
    let what = match unit {
        _ if !has_thousands && !has_decimal_comma => return Looks::Text,
        _ if unit.contains(|c: char| c.is_ascii_digit() || c == ':') => return Looks::Text,
        _ if unit.contains(char::is_alphabetic) => return Looks::Unit,
        "%" => "a percent sign",
        "" if bare.len() == field.len() => match (has_thousands, has_decimal_comma) {
            (true, true) => "a comma, between thousands or before decimals",
            (true, false) => "signs between thousands",
            _ => "a decimal comma",
        },
        _ => "a unit",
    };
    Looks::Written(format!("it has {what}"))
}

/// A field that may be long, for a message.
fn shortened(field: &str) -> String {
    match field.char_indices().nth(40) {
        Some((end, _)) => format!("{}..", &field[..end]),
        None => field.into(),
    }
}
