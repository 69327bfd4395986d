//! [`Setting`], a type of options and of the fields of states. Values are JSON, in which a number that JSON
//! does not have is its text: `"inf"`, `"NaN"`.

use crate::fields::invalid;
use namegrad_core::args::Immediate;
use namegrad_core::for_types;
use serde::Deserialize;
use serde_json::{Number, Value as Json};
use std::any::Any;
use std::result::Result;

/// A type of options and of the fields of states.
pub trait Setting: Any + Send + Sync {
    /// The value.
    fn to_json(&self) -> Json;
    /// Takes a value.
    ///
    /// # Errors
    /// A message if it is of another type.
    fn set(&mut self, json: &Json) -> Result<(), String>;
}

/// A type that is made of JSON.
pub trait OfJson: Sized + Send + Sync + 'static {
    /// The value as JSON.
    fn to_json(&self) -> Json;
    /// The value in JSON.
    ///
    /// # Errors
    /// A message if it is of another type.
    fn of_json(json: &Json) -> Result<Self, String>;
}

impl<T: OfJson> Setting for T {
    fn to_json(&self) -> Json {
        OfJson::to_json(self)
    }
    fn set(&mut self, json: &Json) -> Result<(), String> {
        *self = T::of_json(json)?;
        Ok(())
    }
}

/// A number, also one that JSON does not have.
#[inline(never)]
pub fn number_of(json: &Json) -> Option<f64> {
    match json {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => text.parse().ok().filter(|number: &f64| !number.is_finite()),
        _ => None,
    }
}

/// The values in a tuple, a list or a choice, or the only value.
#[inline(never)]
pub fn parts(json: &Json) -> &[Json] {
    match json {
        Json::Array(list) => list,
        Json::Object(fields) => fields.values().next().map_or(&[], std::slice::from_ref),
        single => std::slice::from_ref(single),
    }
}

impl OfJson for f64 {
    fn to_json(&self) -> Json {
        Number::from_f64(*self).map_or_else(|| format!("{self:?}").into(), Json::Number)
    }
    fn of_json(json: &Json) -> Result<f64, String> {
        number_of(json).ok_or_else(|| invalid(json, "f64"))
    }
}

impl<T: OfJson> OfJson for Option<T> {
    fn to_json(&self) -> Json {
        self.as_ref().map_or(Json::Null, T::to_json)
    }
    fn of_json(json: &Json) -> Result<Option<T>, String> {
        if json.is_null() { Ok(None) } else { T::of_json(json).map(Some) }
    }
}

impl<A: OfJson, B: OfJson> OfJson for (A, B) {
    fn to_json(&self) -> Json {
        vec![self.0.to_json(), self.1.to_json()].into()
    }
    fn of_json(json: &Json) -> Result<(A, B), String> {
        match parts(json) {
            [a, b] => Ok((A::of_json(a)?, B::of_json(b)?)),
            _ => Err(invalid(json, "a tuple of size 2")),
        }
    }
}

impl OfJson for (f64, f64, f64) {
    fn to_json(&self) -> Json {
        OfJson::to_json(&vec![self.0, self.1, self.2])
    }
    fn of_json(json: &Json) -> Result<(f64, f64, f64), String> {
        match parts(json) {
            [a, b, c] => Ok((f64::of_json(a)?, f64::of_json(b)?, f64::of_json(c)?)),
            _ => Err(invalid(json, "a tuple of size 3")),
        }
    }
}

impl<T: OfJson> OfJson for Vec<T> {
    fn to_json(&self) -> Json {
        let mut list = Vec::new();
        for element in self {
            list.push(element.to_json());
        }
        Json::Array(list)
    }
    fn of_json(json: &Json) -> Result<Vec<T>, String> {
        let Json::Array(values) = json else { return Err(invalid(json, "a sequence")) };
        let mut list = Vec::new();
        for value in values {
            list.push(T::of_json(value)?);
        }
        Ok(list)
    }
}

for_types!(u64, usize, bool, String, Json => Plain {
    impl OfJson for Plain {
        fn to_json(&self) -> Json {
            self.to_owned().into()
        }
        fn of_json(json: &Json) -> Result<Plain, String> {
            Plain::deserialize(json).map_err(|error| format!("{error}"))
        }
    }
});

/// A choice between values, whose words are their names in saved states.
pub trait Choice: Immediate + PartialEq + Send + Sync {}

impl<C: Choice> OfJson for C {
    fn to_json(&self) -> Json {
        C::WORDS.iter().find(|(_, value)| value == self).map(|(word, _)| *word).into()
    }
    fn of_json(json: &Json) -> Result<C, String> {
        let Json::String(text) = json else { return Err(invalid(json, "string")) };
        match C::WORDS.iter().find(|(word, _)| word == text) {
            Some((_, value)) => Ok(*value),
            None => Err(unknown(text, crate::list(C::WORDS.iter().map(|(word, _)| *word)))),
        }
    }
}

#[cold]
fn unknown(text: &str, names: Vec<&str>) -> String {
    format!("unknown variant `{text}`, expected `{}`", crate::joined(&names, "` or `"))
}
