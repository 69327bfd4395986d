//! Texts, lists in messages, and shapes in errors, whose code is compiled once.

use namegrad_core::names::closest;
use namegrad_core::{NamedTensor, Shape};
use serde_json::Value;
use std::fmt::{self, Write};

/// Appends words to a text.
#[inline(never)]
pub fn append(text: &mut String, words: fmt::Arguments<'_>) {
    text.write_fmt(words).expect("a string takes any text");
}

/// The JSON of a string, with its quotes.
#[inline(never)]
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// At most `most` names for a message: `'a', 'b', ...`.
#[cold]
pub fn quoted_list(most: usize, names: &mut dyn Iterator<Item = &str>) -> String {
    let mut list = String::new();
    for (at, name) in names.enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        if at == most {
            return list + comma + "...";
        }
        append(&mut list, format_args!("{comma}'{name}'"));
    }
    list
}

/// The name that is most like another one, if one is.
#[cold]
pub fn closest_name<'n>(name: &str, names: &mut dyn Iterator<Item = &'n str>) -> Option<&'n str> {
    closest(name, names)
}

/// The shapes of tensors, for [`Error::with_operands`](namegrad_core::Error::with_operands).
#[cold]
pub fn shapes(tensors: &[&NamedTensor]) -> Vec<Shape> {
    let mut shapes = Vec::new();
    for tensor in tensors {
        shapes.push(tensor.shape());
    }
    shapes
}
