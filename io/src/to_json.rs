//! A value with serde's traits as JSON text. Unlike `serde_json`, which writes NaN and infinite numbers as
//! `null`, so that they come back as `None` or not at all, it refuses them and says where they are.

use crate::text::{append, quoted};
use serde::ser::{self, Serialize, Serializer};
use serde_json::Number;
use std::fmt::{self, Display};

/// The JSON of a value, with the fields of structs in their order.
pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, NoJson> {
    let mut text = String::new();
    value.serialize(Json(&mut text))?;
    Ok(text)
}

/// The error of a value that has no JSON.
#[derive(Debug)]
pub(crate) enum NoJson {
    /// A float that JSON cannot hold, and its place in the value: `.field`, `[3]`, `["key"]`.
    NotFinite(f64, String),
    Other(String),
}

impl NoJson {
    /// The error, for the value around the one that it is about.
    fn inside(self, place: impl Display) -> NoJson {
        match self {
            NoJson::NotFinite(value, path) => NoJson::NotFinite(value, format!("{place}{path}")),
            other => other,
        }
    }
}

impl Display for NoJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoJson::NotFinite(value, path) => match path.trim_start_matches('.') {
                "" => write!(f, "the value is {value}, which JSON cannot store"),
                path => write!(f, "'{path}' is {value}, which JSON cannot store"),
            },
            NoJson::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for NoJson {}

impl ser::Error for NoJson {
    fn custom<T: Display>(message: T) -> NoJson {
        NoJson::Other(format!("{message}"))
    }
}

/// A serializer that appends to a text.
struct Json<'t>(&'t mut String);

impl<'t> Json<'t> {
    fn end_with(self, text: &str) -> Result<(), NoJson> {
        self.0.push_str(text);
        Ok(())
    }

    /// Starts a list, a map or a struct, which is the value of `variant` if there is one.
    fn open(self, variant: &str, open: char, close: &'static str) -> Result<Inside<'t>, NoJson> {
        if !variant.is_empty() {
            append(self.0, format_args!("{{{}:", quoted(variant)));
        }
        self.0.push(open);
        let close = if variant.is_empty() { &close[..1] } else { close };
        Ok(Inside { text: self.0, elements: 0, key: String::new(), close })
    }
}

/// The values of a list, a map or a struct.
struct Inside<'t> {
    text: &'t mut String,
    elements: usize,
    /// The key of a map's next value, as JSON.
    key: String,
    close: &'static str,
}

impl Inside<'_> {
    fn comma(&mut self) {
        if self.elements > 0 {
            self.text.push(',');
        }
        self.elements += 1;
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoJson> {
        self.comma();
        let at = self.elements - 1;
        value.serialize(Json(self.text)).map_err(|error| error.inside(format_args!("[{at}]")))
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), NoJson> {
        self.comma();
        self.text.push_str(&quoted(name));
        self.text.push(':');
        value.serialize(Json(self.text)).map_err(|error| error.inside(format_args!(".{name}")))
    }

    /// Keeps a key, which is text, or a number or a bool that becomes one.
    fn keep_key(&mut self, key: String) -> Result<(), NoJson> {
        if key == "null" || key.starts_with(['[', '{']) {
            return Err(NoJson::Other("key must be a string".into()));
        }
        self.key = key;
        Ok(())
    }

    fn write_key(&mut self) {
        self.comma();
        match self.key.starts_with('"') {
            true => self.text.push_str(&self.key),
            false => self.text.push_str(&quoted(&self.key)),
        }
        self.text.push(':');
    }

    fn close(self) -> Result<(), NoJson> {
        self.text.push_str(self.close);
        Ok(())
    }
}

/// Numbers, which are written as they are printed.
macro_rules! numbers {
    ($($method:ident $Number:ty;)*) => {$(
        fn $method(self, value: $Number) -> Result<(), NoJson> {
            self.end_with(&value.to_string())
        }
    )*};
}

impl<'t> Serializer for Json<'t> {
    type Ok = ();
    type Error = NoJson;
    type SerializeSeq = Inside<'t>;
    type SerializeTuple = Inside<'t>;
    type SerializeTupleStruct = Inside<'t>;
    type SerializeTupleVariant = Inside<'t>;
    type SerializeMap = Inside<'t>;
    type SerializeStruct = Inside<'t>;
    type SerializeStructVariant = Inside<'t>;

    numbers! {
        serialize_i8 i8;
        serialize_i16 i16;
        serialize_i32 i32;
        serialize_i64 i64;
        serialize_i128 i128;
        serialize_u8 u8;
        serialize_u16 u16;
        serialize_u32 u32;
        serialize_u64 u64;
        serialize_u128 u128;
        serialize_bool bool;
    }

    fn serialize_f64(self, value: f64) -> Result<(), NoJson> {
        match Number::from_f64(value) {
            Some(number) => self.end_with(&number.to_string()),
            None => Err(NoJson::NotFinite(value, String::new())),
        }
    }

    fn serialize_f32(self, value: f32) -> Result<(), NoJson> {
        match value.is_finite() {
            // The fewest digits that determine the number, as for `f64`; converted to that, it would have more.
            true => self.end_with(&format!("{value:?}")),
            false => Err(NoJson::NotFinite(value.into(), String::new())),
        }
    }

    fn serialize_char(self, value: char) -> Result<(), NoJson> {
        self.end_with(&quoted(value.encode_utf8(&mut [0; 4])))
    }

    fn serialize_str(self, value: &str) -> Result<(), NoJson> {
        self.end_with(&quoted(value))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), NoJson> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<(), NoJson> {
        self.end_with("null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NoJson> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), NoJson> {
        self.end_with("null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), NoJson> {
        self.end_with("null")
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), NoJson> {
        self.end_with(&quoted(variant))
    }

    fn serialize_newtype_struct<T>(self, _: &'static str, value: &T) -> Result<(), NoJson>
    where
        T: Serialize + ?Sized,
    {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), NoJson>
    where
        T: Serialize + ?Sized,
    {
        let mut inside = self.open("", '{', "}")?;
        inside.field(variant, value)?;
        inside.close()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'t>, NoJson> {
        self.open("", '[', "]")
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside<'t>, NoJson> {
        self.open("", '[', "]")
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside<'t>, NoJson> {
        self.open("", '[', "]")
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'t>, NoJson> {
        self.open(variant, '[', "]}")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'t>, NoJson> {
        self.open("", '{', "}")
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside<'t>, NoJson> {
        self.open("", '{', "}")
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'t>, NoJson> {
        self.open(variant, '{', "}}")
    }
}

/// The traits of lists and structs: `SerializeSeq::serialize_element(): element;` implements a trait whose
/// method gets a value, `SerializeStruct::serialize_field(name): field;` one whose method gets a name as well.
macro_rules! inside {
    ($($Trait:ident::$method:ident($($name:ident)?): $own:ident;)*) => {$(
        impl ser::$Trait for Inside<'_> {
            type Ok = ();
            type Error = NoJson;
            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($name: &'static str,)?
                value: &T,
            ) -> Result<(), NoJson> {
                self.$own($($name,)? value)
            }
            fn end(self) -> Result<(), NoJson> {
                self.close()
            }
        }
    )*};
}
inside! {
    SerializeSeq::serialize_element(): element;
    SerializeTuple::serialize_element(): element;
    SerializeTupleStruct::serialize_field(): element;
    SerializeTupleVariant::serialize_field(): element;
    SerializeStruct::serialize_field(name): field;
    SerializeStructVariant::serialize_field(name): field;
}

impl ser::SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = NoJson;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NoJson> {
        self.keep_key(to_json(key)?)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoJson> {
        self.write_key();
        value.serialize(Json(self.text)).map_err(|error| error.inside(format_args!("[{}]", self.key)))
    }

    fn end(self) -> Result<(), NoJson> {
        self.close()
    }
}
