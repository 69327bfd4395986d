//! Tables of options: `options!`, which makes an optimizer or a schedule from such a table and its formula,
//! and [`Rows`], a table at run time.

use super::*;
use interval::Interval;
use namegrad_io::setting::{Setting, number_of, parts};

/// A row of a table: an option with its default and its range.
pub struct Row {
    /// The name of the option.
    pub name: &'static str,
    /// Its default as it is written.
    pub default: &'static str,
    /// The range of its numbers, if they have one.
    pub range: Option<&'static dyn Interval>,
    /// The refusal of a number outside of the range: a message with `{}` in the place of the number, or
    /// what to call it in the message "Invalid ..". For a tuple, `{index}` is the position, or there is a
    /// text for each position, with `|` between them. If it is empty, the number is called by the name of the
    /// option.
    pub words: &'static str,
    /// Whether the option has no default, which is an example then.
    pub is_argument: bool,
}

/// A table of options, and their values.
pub trait Rows: Send + Sync {
    /// The rows.
    fn rows(&self) -> &'static [Row];
    /// The value of a row.
    fn value(&self, row: usize) -> &dyn Setting;
    /// The value of a row, to be changed.
    fn value_mut(&mut self, row: usize) -> &mut dyn Setting;
}

impl dyn Rows + '_ {
    /// Checks that all numbers are in their ranges. Errors have the name of the optimizer.
    #[inline(never)]
    #[track_caller]
    pub(crate) fn check(&self, name: &'static str) -> Result<()> {
        let Some((_, message)) = self.wrong() else { return Ok(()) };
        Err(Error::new(ErrorKind::Value, name, message))
    }

    /// The row of the first number outside of its range, and the message about it.
    pub(crate) fn wrong(&self) -> Option<(&'static Row, String)> {
        for (number, row) in self.rows().iter().enumerate() {
            let Some(range) = row.range else { continue };
            for (index, part) in parts(&self.value(number).to_json()).iter().enumerate() {
                if number_of(part).is_some_and(|number| !range.contains(number)) {
                    return Some((row, row.refusal(range, index, part)));
                }
            }
        }
        None
    }

    /// Takes the options that are given by name, or none if the JSON is null. The others stay as they are.
    ///
    /// # Errors
    /// A message if there is no option with a name, or a value is of another type.
    pub fn read(&mut self, json: &Json) -> std::result::Result<(), String> {
        let given = match json {
            Json::Object(given) => given,
            Json::Null => return Ok(()),
            _ => return Err(format!("expected options, got {json}")),
        };
        for (name, json) in entries(given) {
            let Some(row) = self.rows().iter().position(|row| row.name == name) else {
                let known: Vec<&str> = crate::list(self.rows().iter().map(|row| row.name));
                return Err(format!(
                    "unknown field `{name}`, expected one of `{}`",
                    namegrad_core::joined(&known, "`, `")
                ));
            };
            self.value_mut(row).set(json)?;
        }
        Ok(())
    }

    /// The options as JSON.
    pub(crate) fn to_json(&self) -> Json {
        let field = |(number, row): (usize, &Row)| (row.name, self.value(number).to_json());
        object(crate::list(self.rows().iter().enumerate().map(field)))
    }

    /// The options as JSON, if it has all of their numbers.
    ///
    /// # Errors
    /// The number that JSON does not have.
    pub(crate) fn storable(&self) -> std::result::Result<Json, String> {
        for (number, row) in self.rows().iter().enumerate() {
            check_numbers(row.name, &self.value(number).to_json())
                .map_err(|error| error.message().to_string())?;
        }
        Ok(self.to_json())
    }
}

impl Row {
    /// The message about a number of the option that is out of range.
    fn refusal(&self, range: &dyn Interval, index: usize, number: &Json) -> String {
        let mut words = self.words.split('|').nth(index).unwrap_or(self.words).to_string();
        if !words.contains("{}") {
            let what = if words.is_empty() { "{name} value" } else { &words };
            words = format!("Invalid {what}: {{}}; it must be {}", range.words(number.is_u64()));
        }
        let number = match (number.as_u64(), number_of(number)) {
            (None, Some(float)) => format!("{float:?}"),
            _ => number.to_string(),
        };
        words.replace("{name}", self.name).replace("{index}", &index.to_string()).replace("{}", &number)
    }
}

/// Makes an optimizer or a schedule from a table of its options and its formula. A row has the doc, the name,
/// the type and the default of an option, and the range of its numbers if they have one:
///
/// ```ignore
/// options! {
///     /// Stochastic gradient descent, optionally with momentum.
///     Sgd(momentum)
///     SgdOptions {
///         /// The learning rate, per step.
///         lr: f64 = 1e-3 in 0.0.. => "learning rate",
///         /// How much of the momentum buffer is kept from step to step; 0 for no momentum.
///         momentum: f64 = 0.0 in 0.0..,
///         ..
///     }
///     impl Method { .. }
///     impl Formula<4, 1> |numbers, p, g, slots| { .. }
/// }
/// ```
///
/// becomes `type Sgd = Descent<SgdOptions>`; the struct `SgdOptions` with `Default` and a setter for each
/// row; the same setters for `Builder<SgdOptions>`; `impl Method for SgdOptions`, with the functions in the
/// braces; and `impl Formula for SgdOptions`, if it has one. The expression in parentheses is the momentum,
/// if there is one. A number outside of its range is refused with "Invalid learning rate: -1.0; it must be
/// finite and not negative"; [`Row::words`] says what can follow `=>`. Numbers with a sign, and paths, need
/// parentheses.
///
/// A schedule has its arguments as well:
///
/// ```ignore
/// options! {
///     /// Multiplies the rate by `gamma` every `step_size` steps.
///     #[derive(Clone, Debug, PartialEq)]
///     StepDecay {
///         /// Multiplies the rate by 0.1 every `step_size` steps.
///         new(step_size: u64 = 30 in 1..)
///         /// The factor.
///         gamma: f64 = 0.1 in f64::MIN..=f64::MAX,
///     }
///     factor |self, step| self.gamma.powf((step / self.step_size as f64).floor())
/// }
/// ```
///
/// becomes the struct `StepDecay`, `new` with its arguments, a setter for each row, and `impl Schedule` with
/// `settings`, `check`, and a rate that is multiplied by the factor. A schedule of another kind has
/// `impl Schedule { .. }` with its functions in place of the factor. The value of an argument is only an
/// example, for messages. Arguments in brackets take `impl Into` of their type. The options in `each { .. }`
/// are numbers of all groups or of each; `private { .. }` has fields that are no options. A row of a schedule
/// can have a word of [`Setters`](namegrad_macros::Setters), such as `#[setters(skip)]`.
macro_rules! options {
    // `impl Rows` of a table.
    (@rows $Options:ident, $(
        $row:ident = $default:tt, [$($range:expr)?], $words:expr, $is_argument:literal;
    )*) => {
        impl $crate::rows::Rows for $Options {
            fn rows(&self) -> &'static [$crate::rows::Row] {
                const ROWS: &[$crate::rows::Row] = &[$($crate::rows::Row {
                    name: stringify!($row),
                    default: stringify!($default),
                    range: [$(Some(&($range) as &dyn $crate::interval::Interval),)? None][0],
                    words: $words,
                    is_argument: $is_argument,
                }),*];
                ROWS
            }
            fn value(&self, row: usize) -> &dyn namegrad_io::setting::Setting {
                let values: &[&dyn namegrad_io::setting::Setting] = &[$(&self.$row),*];
                values[row]
            }
            fn value_mut(&mut self, row: usize) -> &mut dyn namegrad_io::setting::Setting {
                $(
                    if row == 0 { return &mut self.$row; }
                    let row = row - 1;
                )*
                unreachable!("{row} rows too many")
            }
        }
    };
    // `impl Schedule` with these functions.
    (@schedule $Schedule:ident $($formula:tt)*) => {
        impl $crate::schedule::Schedule for $Schedule {
            fn settings(&self) -> serde_json::Value {
                (self as &dyn $crate::rows::Rows).to_json()
            }
            fn check(&self, groups: usize) -> namegrad_core::Result<()> {
                $crate::schedule::table::check(self, self.name(), groups)
            }
            fn table_mut(&mut self) -> Option<&mut dyn $crate::rows::Rows> {
                Some(self)
            }
            $($formula)*
        }
    };
    (
        $(#[$doc:meta])+
        $Optimizer:ident $(($($momentum:tt)+))?
        $Options:ident { $(
            $(#[doc = $row_doc:literal])+
            $row:ident: $ty:ty = $default:tt $(in $range:expr $(=> $words:literal)?)?
        ),* $(,)? }
        impl Method { $($method:tt)* }
        $(impl Formula<$K:literal, $N:literal> |$numbers:pat_param, $p:pat_param, $g:pat_param, $states:pat_param|
            $formula:block)?
    ) => {
        $(#[$doc])+
        pub type $Optimizer = $crate::Descent<$Options>;

        #[doc = concat!("The hyperparameters of [`", stringify!($Optimizer), "`], one value for each group of parameters.")]
        #[derive(Clone, Debug, PartialEq, namegrad_macros::Setters)]
        #[setters(of($crate::Builder<$Options>), at = method, own)]
        pub struct $Options {$(
            $(#[doc = $row_doc])+
            #[doc = concat!("\n\nDefault: `", stringify!($default), "`.", $(" Range: `", stringify!($range), "`.")?)]
            #[setters(default = $default)]
            pub $row: $ty,
        )*}

        $crate::rows::options! {
            @rows $Options,
            $($row = $default, [$($range)?], concat!($($($words)?)?), false;)*
        }

        impl serde::Serialize for $Options {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                (self as &dyn $crate::rows::Rows).to_json().serialize(serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $Options {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<$Options, D::Error> {
                let json = serde_json::Value::deserialize(deserializer)?;
                $crate::Method::of_json(&json).map_err(serde::de::Error::custom)
            }
        }

        impl $crate::Method for $Options {
            const NAME: &'static str = stringify!($Optimizer);
            fn lr(&self) -> f64 {
                self.lr
            }
            fn set_lr(&mut self, lr: f64) {
                self.lr = lr;
            }
            $(
                fn momentum(&self) -> Option<f64> {
                    Some(self.$($momentum)+)
                }
                fn set_momentum(&mut self, momentum: f64) {
                    self.$($momentum)+ = momentum;
                }
            )?
            fn rows(&self) -> Option<&dyn $crate::rows::Rows> {
                Some(self)
            }
            fn to_json(&self) -> std::result::Result<serde_json::Value, String> {
                (self as &dyn $crate::rows::Rows).storable()
            }
            fn of_json(json: &serde_json::Value) -> std::result::Result<$Options, String> {
                let mut options = $Options::default();
                (&mut options as &mut dyn $crate::rows::Rows).read(json)?;
                Ok(options)
            }
            $($method)*
        }

        $(impl $crate::formula::Formula<$K, $N> for $Options {
            #[inline(always)]
            fn apply<T: Real>($numbers: [T; $K], $p: T, $g: T, $states: [T; $N]) -> (T, [T; $N]) $formula
        })?
    };
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
                $(#[setters($setter:ident)])?
                $row:ident: $ty:ty = $default:tt $(in $range:expr $(=> $words:literal)?)?,
            )*
            $(each { $($(#[doc = $each_doc:literal])+ $each:ident = $each_default:tt,)* })?
            $(private { $($private:ident: $private_ty:ty),* })?
        }
        $(impl Schedule { $($formula:tt)* })?
        $(factor |$this:ident, $step:ident| $factor:expr)?
    ) => {
        $(#[$doc])+
        #[derive(namegrad_macros::Setters)]
        #[setters(row)]
        pub struct $Schedule {
            $($(#[setters(skip)] $into: $into_ty,)*)?
            $(#[setters(skip)] $arg: $arg_ty,)*
            $(
                $(#[doc = $row_doc])+
                #[doc = concat!("\n\nDefault: `", stringify!($default), "`.", $(" Range: `", stringify!($range), "`.")?)]
                $(#[setters($setter)])?
                $row: $ty,
            )*
            $($(
                $(#[doc = $each_doc])+
                #[doc = concat!("\n\nDefault: `", stringify!($each_default), "`.")]
                #[setters(into)]
                $each: $crate::schedule::PerGroup,
            )*)?
            $($(#[setters(skip)] $private: $private_ty,)*)?
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
        }

        $crate::rows::options! {
            @rows $Schedule,
            $($($into = $into_example, [$($into_range)?], "", true;)*)?
            $($arg = $example, [$($arg_range)?], "", true;)*
            $($row = $default, [$($range)?], concat!($($($words)?)?), false;)*
            $($($each = $each_default, [f64::MIN..=f64::MAX], "", false;)*)?
        }

        $($crate::rows::options! { @schedule $Schedule $($formula)* })?
        $($crate::rows::options! { @schedule $Schedule
            fn factor(&$this, $step: f64) -> f64 { $factor }
            fn next(&$this, step: f64, last: f64, base: f64, _group: usize) -> f64 {
                multiplied($this, step, last, base)
            }
        })?
    };
}
pub(crate) use options;

/// The error about a value that is refused, with the code that repairs it.
#[cold]
#[track_caller]
pub(crate) fn refused(op: &'static str, message: String, repair: &str) -> Error {
    Error::new(ErrorKind::Value, op, message).with_repair(repair)
}

/// The result of `f`, whose errors are at the line of the caller.
#[track_caller]
pub(crate) fn at_caller<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    let caller = Location::caller();
    f().map_err(|error| error.at(caller))
}

/// Returns an error of a wrong value unless a condition holds. The words are its message and a repair.
#[track_caller]
pub(crate) fn ensure<M: Into<String>, R: Into<String>>(
    holds: bool,
    op: &'static str,
    words: impl FnOnce() -> (M, R),
) -> Result<()> {
    if holds {
        return Ok(());
    }
    let (message, repair) = words();
    Err(refused(op, message.into(), &repair.into()))
}
