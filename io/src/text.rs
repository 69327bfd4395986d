//! Texts and lists in messages, whose code is compiled once.

use std::fmt::{self, Write};

/// Appends words to a text.
pub fn append(text: &mut String, words: fmt::Arguments<'_>) {
    text.write_fmt(words).expect("a string takes any text");
}

/// The parts with a text between them.
pub fn join(parts: &[String], between: &str) -> String {
    let mut text = String::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            text.push_str(between);
        }
        text.push_str(part);
    }
    text
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
