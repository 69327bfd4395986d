//! [`StateFields`], the fields of a state of the library, which is JSON in the metadata of a file, and
//! [`Fields`], to read those of nested objects one by one. A type that serde reads is compiled again in each
//! crate.

use crate::TensorFile;
use crate::json::unread;
use crate::setting::{OfJson, Setting, number_of, parts};
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// A JSON object with these fields.
pub fn object(fields: Vec<(&str, Json)>) -> Json {
    let mut object = Json::Object(Map::new());
    for (name, value) in fields {
        object[name] = value;
    }
    object
}

/// A JSON object with those of these fields that are not null.
pub fn object_of_some(mut fields: Vec<(&str, Json)>) -> Json {
    fields.retain(|(_, json)| !json.is_null());
    object(fields)
}

/// The entries of a map, in order. The iterators of maps are much code where their steps are inlined.
#[inline(never)]
pub fn entries<'m, V: 'm>(map: impl IntoIterator<Item = (&'m String, &'m V)>) -> Vec<(&'m String, &'m V)> {
    let mut all = Vec::new();
    map.into_iter().for_each(|entry| all.push(entry));
    all
}

/// The value of a name in a map.
#[inline(never)]
pub fn value_of<'m, V>(map: &'m BTreeMap<String, V>, name: &str) -> Option<&'m V> {
    map.get(name)
}

/// Inserts a tensor under a name.
#[inline(never)]
pub fn insert(tensors: &mut BTreeMap<String, NamedTensor>, name: String, tensor: NamedTensor) {
    tensors.insert(name, tensor);
}

/// Inserts a text under a key.
#[inline(never)]
pub fn insert_text(texts: &mut BTreeMap<String, String>, key: String, text: String) {
    texts.insert(key, text);
}

/// Checks that JSON has a number, or all numbers of a list. `place` is their place, for the error.
///
/// # Errors
/// [`ErrorKind::Value`] if a number is infinite or NaN.
#[track_caller]
pub fn check_numbers(place: &str, json: &Json) -> Result<()> {
    for (index, part) in parts(json).iter().enumerate() {
        let number = number_of(part).unwrap_or_default();
        if !number.is_finite() {
            let index = if json.is_array() { format!("[{index}]") } else { String::new() };
            let message = format!("'{place}{index}' is {number}, which JSON cannot store");
            return Err(Error::new(ErrorKind::Value, "save", message));
        }
    }
    Ok(())
}

/// Adds what differs between the settings here and in a state.
pub fn compare(path: &str, here: &Json, there: &Json, differences: &mut Vec<String>) {
    let inner = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
    match (here, there) {
        (Json::Object(own), Json::Object(other)) => {
            for (at, (key, _)) in [entries(own), entries(other)].concat().into_iter().enumerate() {
                if at < own.len() || here.get(key).is_none() {
                    compare(&inner(key), &here[key], &there[key], differences); // null if it is missing
                }
            }
        }
        (Json::Array(own), Json::Array(other)) if own.len() == other.len() => {
            for index in 0..own.len() {
                compare(&inner(&index.to_string()), &own[index], &other[index], differences);
            }
        }
        _ if here == there => {}
        _ => differences.push(format!("{path} is {here} here, {there} in the state")),
    }
}

/// The message about a value of another type than `expected`, as serde has it.
#[cold]
pub fn invalid(json: &Json, expected: &str) -> String {
    let found = match json {
        Json::Null => "null".into(),
        Json::Bool(value) => format!("boolean `{value}`"),
        Json::Number(number) if number.is_f64() => format!("floating point `{number}`"),
        Json::Number(number) => format!("integer `{number}`"),
        Json::String(text) => format!("string {text:?}"),
        Json::Array(_) => "sequence".into(),
        Json::Object(_) => "map".into(),
    };
    format!("invalid type: {found}, expected {expected}")
}

/// The fields of an object. Errors have the metadata key that it is under.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'j> {
    key: &'j str,
    json: &'j Json,
}

impl<'j> Fields<'j> {
    /// The fields of a value under a metadata key. A value that is no object has none.
    pub fn new(key: &'j str, json: &'j Json) -> Fields<'j> {
        Fields { key, json }
    }

    /// A field. One that is missing is null.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if it is of another type.
    #[track_caller]
    pub fn get<T: OfJson>(self, name: &str) -> Result<T> {
        match T::of_json(&self.json[name]) {
            Ok(value) => Ok(value),
            Err(error) => Err(self.wrong(name, &error)),
        }
    }

    /// The objects in a list.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if it is missing or of another type.
    #[track_caller]
    pub fn list(self, name: &str) -> Result<Vec<Fields<'j>>> {
        match &self.json[name] {
            Json::Array(list) => Ok(crate::list(list.iter().map(|json| Fields { json, ..self }))),
            json => Err(self.wrong(name, &invalid(json, "a sequence"))),
        }
    }

    #[cold]
    #[track_caller]
    fn wrong(self, name: &str, error: &str) -> Error {
        match self.json.get(name) {
            Some(_) => unread(self.key, &format!("{name}: {error}")),
            None if self.json.is_object() => unread(self.key, &format!("missing field `{name}`")),
            None => unread(self.key, &invalid(self.json, "an object")),
        }
    }
}

/// The fields of a state by name, which is JSON under a metadata key. Those that are null are left out.
pub struct StateFields<'s> {
    /// The metadata key.
    pub key: &'static str,
    /// What errors call the state.
    pub what: &'static str,
    /// The fields.
    pub fields: Vec<(&'static str, &'s mut dyn Setting)>,
}

impl StateFields<'_> {
    /// A file with the state, and nothing else.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a number is infinite or NaN.
    #[track_caller]
    pub fn to_file(self) -> Result<TensorFile> {
        let mut written = Vec::new();
        for (name, field) in self.fields {
            let json = field.to_json();
            if !json.is_object() {
                check_numbers(name, &json)?;
            }
            written.push((name, json));
        }
        let mut file = TensorFile::default();
        file.insert_value(self.key, &object_of_some(written));
        Ok(file)
    }

    /// Takes the fields of the state in a file.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if a field is missing or of another type.
    #[track_caller]
    pub fn read(self, file: &TensorFile) -> Result<()> {
        let json = file.value(self.key, self.what)?;
        let fields = Fields::new(self.key, &json);
        for (name, field) in self.fields {
            if let Err(error) = field.set(&json[name]) {
                return Err(fields.wrong(name, &error));
            }
        }
        Ok(())
    }
}

impl TensorFile {
    /// Like [`json`](Self::json), of any type.
    #[doc(hidden)]
    #[track_caller]
    pub fn value(&self, key: &str, what: &str) -> Result<Json> {
        let json = self.text(key, what)?.parse();
        json.map_err(|error: serde_json::Error| unread(key, &error))
    }

    /// Stores a JSON value.
    #[doc(hidden)]
    pub fn insert_value(&mut self, key: &str, value: &Json) {
        insert_text(&mut self.metadata, key.into(), value.to_string());
    }
}
