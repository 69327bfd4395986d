//! Snapshots of the full texts of errors for wrong calls, as users would write them.
//!
//! A snapshot shows the line of the call, which is found through the location in the error, the kind of the
//! error, and its text. So each case also checks that the error points to the line of its caller.
//! `INSTA_UPDATE=always cargo test -p namegrad-tests --test tensors` rewrites the snapshots; read the
//! difference before you commit it.

use namegrad::prelude::*;
use std::collections::HashMap;
use std::panic::Location;
use std::path::Path;

/// The errors of wrong calls.
#[derive(Default)]
pub(crate) struct Messages {
    text: String,
    /// The lines of the files that make the calls.
    sources: HashMap<&'static str, String>,
}

impl Messages {
    /// Adds the error of a call, which must have failed at the line of the caller.
    #[track_caller]
    pub(crate) fn wrong<T>(&mut self, result: Result<T>) {
        let error = result.err().expect("the call should fail");
        let (place, here) = (error.location(), Location::caller());
        assert_eq!(place.file(), here.file(), "{error}");
        // The op is in front once.
        let twice = error.message().strip_prefix(error.op());
        assert!(twice.is_none_or(|rest| !rest.starts_with([':', '('])), "{error}");
        let source = self.sources.entry(here.file()).or_insert_with(|| read(here.file()));
        let line = source.lines().nth(place.line() as usize - 1).expect("a line of the file");
        let call = line.trim().trim_start_matches("m.wrong(").trim_end_matches(");");
        let text = without_places(&error.to_string(), here.file()).replace('\n', "\n    ");
        self.text += &format!("{call}\n    {:?}: {text}\n\n", error.kind());
    }

    /// Compares all texts with the snapshot of this name.
    pub(crate) fn check(self, name: &str) {
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, self.text);
        });
    }
}

/// A file of the workspace, by its path in locations.
fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    std::fs::read_to_string(path).expect("a file of the workspace")
}

/// A text with `here` for each place in this file, so that it stays the same when lines are added.
fn without_places(text: &str, file: &str) -> String {
    let mut parts = text.split(file);
    let mut result = parts.next().unwrap_or_default().to_string();
    for part in parts {
        result += "here";
        result += part.trim_start_matches(|letter: char| letter == ':' || letter.is_ascii_digit());
    }
    result
}
