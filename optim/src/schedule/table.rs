//! [`schedule!`], which makes a schedule from a table of its options and its formula.

use super::PerGroup;
use crate::rows::{Row, Rows};
use crate::setting::{OfValue, Value};
use namegrad_core::{Error, ErrorKind, Result};
use serde_json::Value as Json;
use std::panic::Location;

/// Makes a schedule from a table of its options and its formula:
///
/// ```ignore
/// schedule! {
///     /// Multiplies the rate by `gamma` every `step_size` steps.
///     #[derive(Clone, Debug, PartialEq)]
///     StepDecay {
///         /// Multiplies the rate by 0.1 every `step_size` steps.
///         new(step_size: u64 = 30 in 1..)
///         /// The factor.
///         gamma: f64 = 0.1 in f64::MIN..=f64::MAX,
///     }
///     impl Schedule { .. }
/// }
/// ```
///
/// becomes the struct `StepDecay`, `new` with its arguments, a setter for each row, and `impl Schedule` with
/// `settings`, `check` and the functions in the last braces. The value of an argument is only an example, for
/// messages. Arguments in brackets take `impl Into` of their type. The options in `each { .. }` are
/// numbers of all groups or of each; those in `private { .. }` have no setter. Ranges and their words are
/// those of `optimizer!`.
macro_rules! schedule {
    (
        $(#[$doc:meta])+
        $Schedule:ident {
            $(#[$new_doc:meta])+
            new(
                $([$($into:ident: $into_ty:ty = $into_example:tt $(in $into_range:expr)?),*])? $(,)?
                $($arg:ident: $arg_ty:ty = $example:tt $(in $arg_range:expr)?),*
            )
            $(
                $(#[doc = $row_doc:literal])+
                $row:ident: $ty:ty = $default:tt $(in $range:expr $(=> $words:literal)?)?,
            )*
            $(each { $($(#[doc = $each_doc:literal])+ $each:ident = $each_default:tt $(in $each_range:expr)?,)* })?
            $(private { $($private:ident: $private_ty:ty),* })?
        }
        $(impl Schedule { $($formula:tt)* })?
    ) => {
        $(#[$doc])+
        pub struct $Schedule {
            $($($into: $into_ty,)*)?
            $($arg: $arg_ty,)*
            $($row: $ty,)*
            $($($each: $crate::schedule::PerGroup,)*)?
            $($($private: $private_ty,)*)?
        }

        impl $Schedule {
            $(#[$new_doc])+
            #[allow(clippy::new_without_default, reason = "few schedules can be made without arguments")]
            pub fn new($($($into: impl Into<$into_ty>,)*)? $($arg: $arg_ty,)*) -> $Schedule {
                $Schedule {
                    $($($into: $into.into(),)*)?
                    $($arg,)*
                    $($row: $default,)*
                    $($($each: $crate::schedule::PerGroup::All($each_default),)*)?
                    $($($private: Default::default(),)*)?
                }
            }

            $(
                $(#[doc = $row_doc])+
                #[doc = concat!("\n\nDefault: `", stringify!($default), "`.", $(" Range: `", stringify!($range), "`.")?)]
                pub fn $row(mut self, $row: $ty) -> Self {
                    self.$row = $row;
                    self
                }
            )*
            $($(
                $(#[doc = $each_doc])+
                #[doc = concat!("\n\nDefault: `", stringify!($each_default), "`.")]
                pub fn $each(mut self, $each: impl Into<$crate::schedule::PerGroup>) -> Self {
                    self.$each = $each.into();
                    self
                }
            )*)?
        }

        $crate::rows::optimizer! {
            @rows $Schedule, concat!(
                stringify!($Schedule), "::new(", stringify!($($($into_example,)*)? $($example),*), ")"
            ),
            $($($into = $into_example, [$($into_range)?], "", true;)*)?
            $($arg = $example, [$($arg_range)?], "", true;)*
            $($row = $default, [$($range)?], concat!($($($words)?)?), false;)*
            $($($each = $each_default, [f64::MIN..=f64::MAX], "", false;)*)?
            $($($private = None, [], "", false;)*)?
        }

        $(impl $crate::schedule::Schedule for $Schedule {
            fn settings(&self) -> serde_json::Value {
                $crate::schedule::table::settings(self)
            }
            fn check(&self, groups: usize) -> namegrad_core::Result<()> {
                $crate::schedule::table::check(self, self.name(), groups)
            }
            $($formula)*
        })?
    };
}
pub(crate) use schedule;

/// The options of a schedule as [`Schedule::settings`](super::Schedule::settings).
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
    let example = schedule.example().replace(",)", ")");
    let repair = match row.is_argument {
        true => example,
        false => format!("{example}.{}({})", row.name, row.default),
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
