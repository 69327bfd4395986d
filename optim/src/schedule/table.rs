//! The options of schedules: their settings, their checks, and those that are numbers for each group.

use super::PerGroup;
use crate::rows::{Row, Rows};
use crate::setting::{OfValue, Value};
use namegrad_core::{Error, ErrorKind, Result};
use serde_json::Value as Json;
use std::panic::Location;

/// The options of a schedule as [`Schedule::settings`](super::Schedule::settings).
#[inline(never)]
pub(super) fn settings(schedule: &dyn Rows) -> Json {
    schedule.to_json().unwrap_or_default() // of finite numbers
}

/// Checks the options of a schedule for an optimizer with this many groups.
#[track_caller]
pub(crate) fn check(schedule: &dyn Rows, name: &'static str, groups: usize) -> Result<()> {
    let caller = Location::caller();
    let refused = |message: String| Error::new(ErrorKind::Value, name, message).at(caller);
    for (number, Row { name, .. }) in schedule.rows().iter().enumerate() {
        if let Some(count) = schedule.value(number).groups().filter(|count| *count != groups) {
            let message = format!(
                "{name} must have the same length as the groups of the optimizer: {name} has {count} values, the \
                 optimizer has {groups} groups"
            );
            return Err(refused(message).with_repair("give one number for all groups, or one for each"));
        }
    }
    let Some((row, index, number)) = schedule.wrong() else { return Ok(()) };
    let row = &schedule.rows()[row];
    let words = match (row.words, row.range) {
        ("", Some(range)) if range.is_of_integers() => "expected positive integer {name}, but got {}",
        ("", _) => "{name} must be finite, but is {}",
        (words, _) => words,
    };
    let example = schedule.example().trim_end_matches([',', ')']);
    let repair = match row.is_argument {
        true => format!("{example})"),
        false => format!("{example}).{}({})", row.name, row.default),
    };
    Err(refused(row.message(words, index, number)).with_repair(repair))
}

impl OfValue for PerGroup {
    fn to_value(&self) -> Value {
        match self {
            PerGroup::All(number) => Value::Float(*number),
            PerGroup::Each(numbers) => numbers.to_value(),
        }
    }
    fn of_value(value: &Value) -> std::result::Result<PerGroup, String> {
        match value {
            Value::List(_) => Vec::of_value(value).map(PerGroup::Each),
            _ => f64::of_value(value).map(PerGroup::All),
        }
    }
    fn count(&self) -> usize {
        OfValue::groups(self).unwrap_or(1)
    }
    fn number(&self, index: usize) -> Option<f64> {
        Some(self.get(index))
    }
    fn groups(&self) -> Option<usize> {
        match self {
            PerGroup::All(_) => None,
            PerGroup::Each(numbers) => Some(numbers.len()),
        }
    }
}
