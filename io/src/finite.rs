//! Finds floats that JSON cannot hold. `serde_json` writes NaN and infinite numbers as `null`, which comes
//! back as `None` or not at all.

use serde::ser::{self, Serialize, Serializer};
use std::fmt::{self, Display};

/// Checks that all floats of a value are finite; the error says where one is not.
pub(crate) fn check<T: Serialize + ?Sized>(value: &T) -> Result<(), NotFinite> {
    value.serialize(&mut Walk { path: Vec::new() })
}

/// What is wrong with a value.
#[derive(Debug)]
pub(crate) struct NotFinite(String);

impl Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotFinite {}

impl ser::Error for NotFinite {
    fn custom<T: Display>(message: T) -> NotFinite {
        NotFinite(message.to_string())
    }
}

/// A serializer that writes nothing.
struct Walk {
    /// Where in the value it is: `.field`, `[3]`, `["key"]`.
    path: Vec<String>,
}

/// The values of a list, a map or a struct.
struct Inside<'w> {
    walk: &'w mut Walk,
    elements: usize,
}

impl<'w> Inside<'w> {
    fn new(walk: &'w mut Walk) -> Result<Inside<'w>, NotFinite> {
        Ok(Inside { walk, elements: 0 })
    }

    fn value<T: Serialize + ?Sized>(&mut self, place: String, value: &T) -> Result<(), NotFinite> {
        self.walk.path.push(place);
        value.serialize(&mut *self.walk)?;
        self.walk.path.pop();
        Ok(())
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotFinite> {
        self.elements += 1;
        self.value(format!("[{}]", self.elements - 1), value)
    }
}

/// Values that are not floats: `serialize_bool(bool);` is a method that does nothing.
macro_rules! others {
    ($($method:ident($($value:ty),*);)*) => {$(
        fn $method(self $(, _: $value)*) -> Result<(), NotFinite> { Ok(()) }
    )*};
}

/// Values with others inside: `serialize_seq(Option<usize>);` is a method that starts to walk through them.
macro_rules! inside {
    ($($method:ident($($value:ty),*);)*) => {$(
        fn $method(self $(, _: $value)*) -> Result<Inside<'w>, NotFinite> { Inside::new(self) }
    )*};
}

impl<'w> Serializer for &'w mut Walk {
    type Ok = ();
    type Error = NotFinite;
    type SerializeSeq = Inside<'w>;
    type SerializeTuple = Inside<'w>;
    type SerializeTupleStruct = Inside<'w>;
    type SerializeTupleVariant = Inside<'w>;
    type SerializeMap = Inside<'w>;
    type SerializeStruct = Inside<'w>;
    type SerializeStructVariant = Inside<'w>;

    fn serialize_f64(self, value: f64) -> Result<(), NotFinite> {
        if value.is_finite() {
            return Ok(());
        }
        let path = self.path.concat();
        let what = match path.trim_start_matches('.') {
            "" => "the value".into(),
            path => format!("'{path}'"),
        };
        Err(NotFinite(format!("{what} is {value}, which JSON cannot store")))
    }

    fn serialize_f32(self, value: f32) -> Result<(), NotFinite> {
        self.serialize_f64(value.into())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NotFinite> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), NotFinite> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), NotFinite> {
        Inside::new(self)?.value(format!(".{variant}"), value)
    }

    others! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_i128(i128);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_u128(u128);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(&'static str);
        serialize_unit_variant(&'static str, u32, &'static str);
    }

    inside! {
        serialize_seq(Option<usize>);
        serialize_tuple(usize);
        serialize_tuple_struct(&'static str, usize);
        serialize_tuple_variant(&'static str, u32, &'static str, usize);
        serialize_map(Option<usize>);
        serialize_struct(&'static str, usize);
        serialize_struct_variant(&'static str, u32, &'static str, usize);
    }
}

/// Lists: `SerializeSeq::serialize_element;` implements the trait, whose method gets the elements.
macro_rules! lists {
    ($($Trait:ident::$method:ident;)*) => {$(
        impl ser::$Trait for Inside<'_> {
            type Ok = ();
            type Error = NotFinite;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotFinite> {
                self.element(value)
            }
            fn end(self) -> Result<(), NotFinite> { Ok(()) }
        }
    )*};
}
lists! {
    SerializeSeq::serialize_element;
    SerializeTuple::serialize_element;
    SerializeTupleStruct::serialize_field;
    SerializeTupleVariant::serialize_field;
}

/// Structs and variants with fields: `SerializeStruct;` implements the trait, whose method gets the fields.
macro_rules! structs {
    ($($Trait:ident;)*) => {$(
        impl ser::$Trait for Inside<'_> {
            type Ok = ();
            type Error = NotFinite;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), NotFinite> {
                self.value(format!(".{name}"), value)
            }
            fn end(self) -> Result<(), NotFinite> { Ok(()) }
        }
    )*};
}
structs! {
    SerializeStruct;
    SerializeStructVariant;
}

impl ser::SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = NotFinite;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NotFinite> {
        let key = serde_json::to_string(key).unwrap_or_default(); // a bad key is an error when JSON is written
        self.walk.path.push(format!("[{key}]"));
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotFinite> {
        value.serialize(&mut *self.walk)?;
        self.walk.path.pop();
        Ok(())
    }

    fn end(self) -> Result<(), NotFinite> {
        Ok(())
    }
}
