//! [`Setting`], a type of options, and [`Value`], the value of any of them.

use namegrad_io::fields::{invalid, object};
use serde::{Serialize, Serializer};
use serde_json::{Number, Value as Json};
use std::result::Result;

/// The value of an option. Unlike those of JSON, its numbers can be NaN or infinite.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// True or false.
    Flag(bool),
    /// An integer that is not negative.
    Count(u64),
    /// Any other number.
    Float(f64),
    /// The name of a choice.
    Text(String),
    /// The values in a tuple or a list.
    List(Vec<Value>),
    /// A choice with a value: `{"exp_range": 0.99}`.
    Named(String, Box<Value>),
}

impl Value {
    /// The value of JSON. Objects with more than one field are those of no option.
    pub(crate) fn of_json(json: &Json) -> Value {
        match json {
            Json::Null => Value::Null,
            Json::Bool(flag) => Value::Flag(*flag),
            Json::Number(number) => match number.as_u64() {
                Some(count) => Value::Count(count),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(list) => Value::List(list.iter().map(Value::of_json).collect()),
            Json::Object(fields) => match fields.iter().next() {
                Some((name, value)) => Value::Named(name.clone(), Box::new(Value::of_json(value))),
                None => Value::Null,
            },
        }
    }

    /// The value as JSON.
    ///
    /// # Errors
    /// The place of a number that JSON does not have.
    pub(crate) fn to_json(&self, place: &str) -> Result<Json, String> {
        Ok(match self {
            Value::Null => Json::Null,
            Value::Flag(flag) => (*flag).into(),
            Value::Count(count) => (*count).into(),
            Value::Float(number) => match Number::from_f64(*number) {
                Some(number) => Json::Number(number),
                None => return Err(format!("'{place}' is {number}, which JSON cannot store")),
            },
            Value::Text(text) => text.as_str().into(),
            Value::List(values) => {
                let mut list = Vec::new();
                for (index, value) in values.iter().enumerate() {
                    list.push(value.to_json(&format!("{place}[{index}]"))?);
                }
                Json::Array(list)
            }
            Value::Named(name, value) => {
                object(vec![(name.as_str(), value.to_json(&format!("{place}.{name}"))?)])
            }
        })
    }

    /// The number at a position, if there is one.
    fn number(&self, index: usize) -> Option<f64> {
        match self {
            Value::Count(count) => Some(*count as f64),
            Value::Float(number) => Some(*number),
            Value::List(values) => values.get(index).and_then(|value| value.number(0)),
            Value::Named(_, value) => value.number(index),
            _ => None,
        }
    }

    fn set_number(&mut self, index: usize, number: f64) {
        match self {
            Value::List(values) => values[index].set_number(0, number),
            Value::Named(_, value) => value.set_number(index, number),
            Value::Count(count) => *count = number as u64,
            other => *other = Value::Float(number),
        }
    }

    /// The message about a value of another type than `expected`.
    #[cold]
    fn is_not(&self, expected: &str) -> String {
        invalid(&self.to_json("").unwrap_or_default(), expected)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Float(number) => serializer.serialize_f64(*number),
            Value::List(values) => values.serialize(serializer),
            other => other.to_json("").unwrap_or_default().serialize(serializer),
        }
    }
}

/// A type of options.
pub trait Setting: Send + Sync {
    /// The value.
    fn value(&self) -> Value;
    /// Takes a value.
    ///
    /// # Errors
    /// A message if it is of another type.
    fn set(&mut self, value: &Value) -> Result<(), String>;
    /// How many numbers the value can have.
    fn count(&self) -> usize;
    /// One of these numbers, unless there is none at this position.
    fn number(&self, index: usize) -> Option<f64>;
    /// The number of groups for which there are values, unless a value is for all groups.
    fn groups(&self) -> Option<usize>;
}

impl dyn Setting + '_ {
    /// Changes one of the numbers.
    pub fn set_number(&mut self, index: usize, number: f64) {
        let mut value = self.value();
        value.set_number(index, number);
        let _ = self.set(&value); // of the same type
    }
}

/// A type that is made of a [`Value`].
pub(crate) trait OfValue: Sized + Send + Sync {
    fn to_value(&self) -> Value;
    fn of_value(value: &Value) -> Result<Self, String>;
    /// See [`Setting::count`].
    fn count(&self) -> usize {
        1
    }
    /// See [`Setting::number`].
    fn number(&self, index: usize) -> Option<f64> {
        self.to_value().number(index)
    }
    /// See [`Setting::groups`].
    fn groups(&self) -> Option<usize> {
        None
    }
}

impl<T: OfValue> Setting for T {
    fn value(&self) -> Value {
        self.to_value()
    }
    fn set(&mut self, value: &Value) -> Result<(), String> {
        *self = T::of_value(value)?;
        Ok(())
    }
    fn count(&self) -> usize {
        OfValue::count(self)
    }
    fn number(&self, index: usize) -> Option<f64> {
        OfValue::number(self, index)
    }
    fn groups(&self) -> Option<usize> {
        OfValue::groups(self)
    }
}

impl OfValue for f64 {
    fn to_value(&self) -> Value {
        Value::Float(*self)
    }
    fn of_value(value: &Value) -> Result<f64, String> {
        match value {
            Value::Float(number) => Ok(*number),
            Value::Count(count) => Ok(*count as f64),
            other => Err(other.is_not("f64")),
        }
    }
}

impl OfValue for u64 {
    fn to_value(&self) -> Value {
        Value::Count(*self)
    }
    fn of_value(value: &Value) -> Result<u64, String> {
        if let Value::Count(count) = value { Ok(*count) } else { Err(value.is_not("u64")) }
    }
}

impl OfValue for usize {
    fn to_value(&self) -> Value {
        Value::Count(*self as u64)
    }
    fn of_value(value: &Value) -> Result<usize, String> {
        if let Value::Count(count) = value { Ok(*count as usize) } else { Err(value.is_not("usize")) }
    }
}

impl OfValue for bool {
    fn to_value(&self) -> Value {
        Value::Flag(*self)
    }
    fn of_value(value: &Value) -> Result<bool, String> {
        if let Value::Flag(flag) = value { Ok(*flag) } else { Err(value.is_not("a boolean")) }
    }
}

impl<T: OfValue> OfValue for Option<T> {
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_value)
    }
    fn of_value(value: &Value) -> Result<Option<T>, String> {
        if *value == Value::Null { Ok(None) } else { T::of_value(value).map(Some) }
    }
}

impl<A: OfValue, B: OfValue> OfValue for (A, B) {
    fn to_value(&self) -> Value {
        Value::List(vec![self.0.to_value(), self.1.to_value()])
    }
    fn of_value(value: &Value) -> Result<(A, B), String> {
        match value {
            Value::List(list) if list.len() == 2 => Ok((A::of_value(&list[0])?, B::of_value(&list[1])?)),
            other => Err(other.is_not("a tuple of size 2")),
        }
    }
    fn count(&self) -> usize {
        2
    }
    fn number(&self, index: usize) -> Option<f64> {
        if index == 0 { OfValue::number(&self.0, 0) } else { OfValue::number(&self.1, 0) }
    }
}

impl OfValue for (f64, f64, f64) {
    fn to_value(&self) -> Value {
        Value::List(vec![Value::Float(self.0), Value::Float(self.1), Value::Float(self.2)])
    }
    fn of_value(value: &Value) -> Result<(f64, f64, f64), String> {
        match &Vec::of_value(value)?[..] {
            [a, b, c] => Ok((*a, *b, *c)),
            _ => Err(value.is_not("a tuple of size 3")),
        }
    }
}

impl<T: OfValue> OfValue for Vec<T> {
    fn to_value(&self) -> Value {
        let mut values = Vec::new();
        for element in self {
            values.push(element.to_value());
        }
        Value::List(values)
    }
    fn of_value(value: &Value) -> Result<Vec<T>, String> {
        let Value::List(values) = value else { return Err(value.is_not("a sequence")) };
        let mut list = Vec::new();
        for value in values {
            list.push(T::of_value(value)?);
        }
        Ok(list)
    }
    fn count(&self) -> usize {
        self.len()
    }
}

/// A choice between values that have names in saved states.
pub(crate) trait Choice: Copy + PartialEq + Send + Sync + 'static {
    const ALL: &'static [Self];
    /// The names of all values, in their order.
    const NAMES: &'static [&'static str];
}

impl<C: Choice> OfValue for C {
    fn to_value(&self) -> Value {
        let mut number = 0;
        while C::ALL[number] != *self {
            number += 1;
        }
        Value::Text(C::NAMES[number].into())
    }
    fn of_value(value: &Value) -> Result<C, String> {
        Ok(C::ALL[place(C::NAMES, value)?])
    }
}

/// The place of a name.
fn place(names: &[&str], value: &Value) -> Result<usize, String> {
    let Value::Text(text) = value else { return Err(value.is_not("string")) };
    let place = names.iter().position(|name| name == text);
    place.ok_or_else(|| format!("unknown variant `{text}`, expected `{}`", names.join("` or `")))
}
