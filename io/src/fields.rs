//! [`Fields`], the fields of a JSON object in the metadata of a file, which are read one by one. It is for the
//! states of the library: a type that serde reads is compiled again in each crate.

use crate::TensorFile;
use crate::json::unread;
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use serde_json::{Map, Number, Value as Json};
use std::collections::BTreeMap;

/// A JSON object with these fields.
pub fn object(fields: Vec<(&str, Json)>) -> Json {
    let mut object = Json::Object(Map::new());
    for (name, value) in fields {
        object[name] = value;
    }
    object
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

/// A number, unless JSON does not have it. `place` is its place, for the error.
///
/// # Errors
/// [`ErrorKind::Value`] if it is infinite or NaN.
#[track_caller]
pub fn float(place: &str, number: f64) -> Result<Json> {
    match Number::from_f64(number) {
        Some(number) => Ok(Json::Number(number)),
        None => {
            let message = format!("'{place}' is {number}, which JSON cannot store");
            Err(Error::new(ErrorKind::Value, "save", message))
        }
    }
}

/// Numbers like those of [`float`].
///
/// # Errors
/// Same as [`float`].
#[track_caller]
pub fn floats(place: &str, numbers: &[f64]) -> Result<Json> {
    let mut list = Vec::new();
    for (index, number) in numbers.iter().enumerate() {
        list.push(float(&format!("{place}[{index}]"), *number)?);
    }
    Ok(Json::Array(list))
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

    /// A field, unless it is missing or null.
    pub fn get(self, name: &str) -> Option<&'j Json> {
        self.json.get(name).filter(|value| !value.is_null())
    }

    /// A field, of which `read` makes a value.
    #[track_caller]
    fn read<T>(self, name: &str, expected: &str, read: fn(&'j Json) -> Option<T>) -> Result<T> {
        let json = self.get(name);
        match json.and_then(read) {
            Some(value) => Ok(value),
            None => Err(self.wrong(name, expected, json)),
        }
    }

    #[cold]
    #[track_caller]
    fn wrong(self, name: &str, expected: &str, found: Option<&Json>) -> Error {
        let found = found.or(self.json.get(name));
        match found {
            Some(json) => unread(self.key, &format!("{name}: {}", invalid(json, expected))),
            None if self.json.is_object() => unread(self.key, &format!("missing field `{name}`")),
            None => unread(self.key, &invalid(self.json, "an object")),
        }
    }

    /// A value of any type.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if it is missing.
    #[track_caller]
    pub fn any(self, name: &str) -> Result<&'j Json> {
        match self.json.get(name) {
            Some(json) => Ok(json),
            None => Err(self.wrong(name, "", None)),
        }
    }

    /// A text.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if it is missing or of another type.
    #[track_caller]
    pub fn text(self, name: &str) -> Result<&'j str> {
        self.read(name, "a string", Json::as_str)
    }

    /// A number that is a count.
    ///
    /// # Errors
    /// Same as [`text`](Self::text).
    #[track_caller]
    pub fn count(self, name: &str) -> Result<u64> {
        self.read(name, "u64", Json::as_u64)
    }

    /// A number.
    ///
    /// # Errors
    /// Same as [`text`](Self::text).
    #[track_caller]
    pub fn number(self, name: &str) -> Result<f64> {
        self.read(name, "f64", Json::as_f64)
    }

    /// The numbers of a list.
    ///
    /// # Errors
    /// Same as [`text`](Self::text).
    #[track_caller]
    pub fn numbers(self, name: &str) -> Result<Vec<f64>> {
        self.each(name, "f64", Json::as_f64)
    }

    /// A count, unless it is missing or null.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if it is of another type.
    #[track_caller]
    pub fn count_if_any(self, name: &str) -> Result<Option<u64>> {
        if self.get(name).is_some() { self.count(name).map(Some) } else { Ok(None) }
    }

    /// True or false.
    ///
    /// # Errors
    /// Same as [`text`](Self::text).
    #[track_caller]
    pub fn flag(self, name: &str) -> Result<bool> {
        self.read(name, "a boolean", Json::as_bool)
    }

    /// A list.
    ///
    /// # Errors
    /// Same as [`text`](Self::text).
    #[track_caller]
    pub fn list(self, name: &str) -> Result<&'j [Json]> {
        self.read(name, "a sequence", |json| json.as_array().map(Vec::as_slice))
    }

    /// The numbers by name of an object.
    ///
    /// # Errors
    /// Same as [`text`](Self::text).
    #[track_caller]
    pub fn counts(self, name: &str) -> Result<Vec<(&'j str, u64)>> {
        let mut counts = Vec::new();
        for (name, json) in self.read(name, "a map", Json::as_object)? {
            let Some(count) = json.as_u64() else { return Err(self.wrong(name, "u64", Some(json))) };
            counts.push((name.as_str(), count));
        }
        Ok(counts)
    }

    /// The numbers of a list, as many as there are.
    ///
    /// # Errors
    /// Same as [`text`](Self::text).
    #[track_caller]
    pub fn sizes(self, name: &str) -> Result<Vec<usize>> {
        self.each(name, "usize", |json| json.as_u64().map(|size| size as usize))
    }

    /// The texts of a list, or `None` for those that are null.
    ///
    /// # Errors
    /// Same as [`text`](Self::text).
    #[track_caller]
    pub fn texts(self, name: &str) -> Result<Vec<Option<&'j str>>> {
        self.each(name, "a string", |json| if json.is_null() { Some(None) } else { json.as_str().map(Some) })
    }

    /// The values that `read` makes of the elements of a list.
    #[track_caller]
    fn each<T>(self, name: &str, expected: &str, read: fn(&'j Json) -> Option<T>) -> Result<Vec<T>> {
        let mut values = Vec::new();
        for json in self.list(name)? {
            match read(json) {
                Some(value) => values.push(value),
                None => return Err(self.wrong(name, expected, Some(json))),
            }
        }
        Ok(values)
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

    /// A file with a JSON value, and nothing else.
    #[doc(hidden)]
    pub fn of_value(key: &str, value: &Json) -> TensorFile {
        let mut file = TensorFile::default();
        file.insert_value(key, value);
        file
    }
}
