//! The options of schedules: their checks, and [`PerGroup`], a number for all groups or one for each.

use super::*;
use crate::rows::Row;

/// Checks the options of a schedule for an optimizer with this many groups.
#[track_caller]
pub(crate) fn check(schedule: &dyn Rows, name: &'static str, groups: usize) -> Result<()> {
    for (number, Row { name: row, .. }) in schedule.rows().iter().enumerate() {
        let value: &dyn Any = schedule.value(number);
        if let Some(PerGroup::Each(numbers)) = value.downcast_ref() {
            let count = numbers.len();
            Error::ensure(count == groups, ErrorKind::Value, name, || {
                format!(
                    "{row} must have the same length as the groups of the optimizer: {row} has {count} values, the \
                     optimizer has {groups} groups"
                )
            })?;
        }
    }
    let Some((row, message)) = schedule.wrong() else { return Ok(()) };
    let rows = schedule.rows().iter();
    let arguments: Vec<&str> = crate::list(rows.filter(|row| row.is_argument).map(|row| row.default));
    let arguments = namegrad_core::joined(&arguments, ", ");
    let made = if arguments.is_empty() { "builder" } else { "new" };
    let example = format!("{name}::{made}({arguments})");
    let setter = if row.is_argument { String::new() } else { format!(".{}({})", row.name, row.default) };
    Err(refused(name, message, &(example + &setter)))
}

/// A number for all groups of parameters, or one for each.
///
/// ```
/// use namegrad::optim::schedule::OneCycle;
/// let for_all = OneCycle::new(0.1, 1000);
/// let for_each = OneCycle::new([0.1, 0.01], 1000);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum PerGroup {
    /// The same number for all groups.
    All(f64),
    /// A number for each group.
    Each(Vec<f64>),
}

impl PerGroup {
    /// The number of a group. It is NaN if there is none.
    pub fn get(&self, group: usize) -> f64 {
        match self {
            PerGroup::All(value) => *value,
            PerGroup::Each(values) => values.get(group).copied().unwrap_or(f64::NAN),
        }
    }
}

impl From<f64> for PerGroup {
    fn from(value: f64) -> PerGroup {
        PerGroup::All(value)
    }
}

impl<const N: usize> From<[f64; N]> for PerGroup {
    fn from(values: [f64; N]) -> PerGroup {
        PerGroup::Each(values.to_vec())
    }
}

impl From<&[f64]> for PerGroup {
    fn from(values: &[f64]) -> PerGroup {
        PerGroup::Each(values.to_vec())
    }
}

impl From<Vec<f64>> for PerGroup {
    fn from(values: Vec<f64>) -> PerGroup {
        PerGroup::Each(values)
    }
}

impl OfJson for PerGroup {
    fn to_json(&self) -> Json {
        match self {
            PerGroup::All(number) => number.to_json(),
            PerGroup::Each(numbers) => numbers.to_json(),
        }
    }
    fn of_json(json: &Json) -> std::result::Result<PerGroup, String> {
        match json {
            Json::Array(_) => Vec::of_json(json).map(PerGroup::Each),
            _ => f64::of_json(json).map(PerGroup::All),
        }
    }
}
