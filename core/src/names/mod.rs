//! Names of dims: interned ids, the list that a tensor carries, and the rules by which ops propagate them.
//!
//! | rule | names of the result |
//! | --- | --- |
//! | keeps input names | the names of the input |
//! | removes dimensions | the names of the remaining dims |
//! | unifies names from inputs | from the right: the name of both, or of the one that is named |
//! | permutes dimensions | the names of the input, in the new order |
//! | contracts away dims | the names of the dims that are not summed over |
//! | out and in place | the names of the computed result, which a named tensor must already have |
//!
//! Read [`Name`] and [`Names`] first, then `rules` (pure functions over lists of names, one for each rule),
//! `naming` (the same for `rename`, `align_to` and so on), `list` (arguments that are names) and `meets` (the
//! rules of an op as data), whose errors about the order of dims are in `order`.
//!
//! # Source
//! PyTorch, *Named Tensors operator coverage*.

mod list;
mod meets;
mod name;
pub(crate) mod naming;
mod order;
#[doc(hidden)]
pub(crate) mod rules;
#[doc(hidden)]
pub mod signature;

pub use list::{NameArg, NameList, RenameArg, Renaming};
pub use meets::{Meets, Outcome};
#[doc(hidden)]
pub use name::apart;
pub use name::{Name, Names};
#[doc(hidden)]
pub use order::{OfCall, of_call};

use crate::error::{Error, ErrorKind, Result};
use name::MOST;
use serde::{Deserialize, Deserializer};
use std::cell::Cell;

/// The maximum length of a name, in bytes.
const LONGEST: usize = 255;

impl Name {
    /// Interns a string as a name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] unless it is an ASCII identifier of at most 255 bytes: letters, digits and
    /// underscore, not starting with a digit; [`ErrorKind::OutOfMemory`] for a new name beyond the first
    /// 2^20.
    #[track_caller]
    pub fn new(text: &str) -> Result<Name> {
        if let Some(name) = Name::lookup(text) {
            return Ok(name);
        }
        if text.len() > LONGEST {
            let message = format!("Invalid name: {} bytes, a name has at most {LONGEST}", text.len());
            return Err(Error::new(ErrorKind::InvalidName, "names", message));
        }
        let mut bytes = text.bytes();
        let valid = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
            && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !valid {
            let message = format!(
                "Invalid name: a valid identifier contains only digits, alphabetical characters, and/or underscore and starts \
                 with a non-digit. got: '{text}'."
            );
            return Err(Error::new(ErrorKind::InvalidName, "names", message).with_repair(valid_name(text)));
        }
        name::interned(text).ok_or_else(|| {
            let message = format!("there are {MOST} names of dims already, the most that a program can have");
            Error::new(ErrorKind::OutOfMemory, "names", message)
        })
    }
}

/// A valid name that is close to a text that is none.
#[cold]
fn valid_name(text: &str) -> String {
    let legal = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let mut name: String = text.chars().map(legal).collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
        name.insert(0, '_');
    }
    match text {
        "" => "None for a dim without a name".into(),
        _ => format!("\"{name}\""),
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Name, D::Error> {
        let text = String::deserialize(deserializer)?;
        Name::new(&text).map_err(|error| serde::de::Error::custom(error.message()))
    }
}

impl Names {
    /// The names of consecutive dims, `None` for an unnamed one.
    ///
    /// # Errors
    /// [`ErrorKind::DuplicateName`].
    #[track_caller]
    pub fn new(op: &'static str, names: impl IntoIterator<Item = Option<Name>>) -> Result<Names> {
        Names::unchecked(names).distinct(op)
    }

    /// The names, if no name occurs twice.
    #[track_caller]
    fn distinct(self, op: &'static str) -> Result<Names> {
        for (dim, name) in self.0.iter().enumerate() {
            if name.is_some() && self.0[..dim].contains(name) {
                let message = format!("Cannot construct a tensor with duplicate names. Got names: {self}.");
                return Err(Error::new(ErrorKind::DuplicateName, op, message));
            }
        }
        Ok(self)
    }

    /// The names that a caller gives to the dims that an op makes, or `own` if none are given.
    ///
    /// # Errors
    /// [`ErrorKind::NameCount`] unless there are as many, [`ErrorKind::DuplicateName`].
    #[doc(hidden)]
    #[track_caller]
    pub fn given(op: &'static str, given: &[Option<Name>], own: &[Option<Name>]) -> Result<Names> {
        match given.len() {
            0 => Names::new(op, own.iter().copied()),
            count if count == own.len() => Names::new(op, given.iter().copied()),
            _ => Err(naming::name_count(op, own.len(), given)),
        }
    }
}

thread_local! {
    static STRICT: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f` in strict mode: matching an unnamed dim with a named one, or contracting two dims with different
/// names, is an error.
///
/// The specification allows both, because unnamed dims are wildcards. Strict mode is for programs that name
/// every dim.
///
/// ```
/// use namegrad_core::{names, NamedTensor};
/// let x = NamedTensor::ones([("N", 2)])?;
/// let y = NamedTensor::ones([2])?;
/// assert!(x.add(&y).is_ok());
/// assert!(names::strict(|| x.add(&y)).is_err());
/// # Ok::<(), namegrad_core::Error>(())
/// ```
pub fn strict<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            STRICT.set(self.0);
        }
    }
    let _restore = Restore(STRICT.replace(true));
    f()
}

/// Whether the calling thread is inside [`strict`].
#[inline]
pub fn is_strict() -> bool {
    STRICT.get()
}

/// The candidate closest to `wanted`, for "did you mean", if any is close.
#[doc(hidden)]
pub fn closest<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|name| (edit_distance(wanted, name), name))
        .filter(|(distance, name)| *distance <= name.len().max(wanted.len()) / 2)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Levenshtein distance, ignoring ASCII case.
#[doc(hidden)]
pub fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    let mut row: Vec<usize> = crate::list(0..=b.len());
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substitute = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_only() {
        for good in ["N", "batch", "_x", "W2", "a_b"] {
            assert!(Name::new(good).is_ok(), "{good}");
        }
        for bad in ["", "1a", "a b", "a-b", "é", "..."] {
            assert_eq!(Name::new(bad).unwrap_err().kind(), ErrorKind::InvalidName, "{bad}");
        }
    }

    #[test]
    fn a_question_does_not_intern() {
        assert_eq!(Name::lookup("never_used_by_any_tensor"), None);
        assert_eq!(Name::lookup("never_used_by_any_tensor"), None);
    }

    #[test]
    fn all_unnamed_is_no_names() {
        assert_eq!(Names::unchecked([None, None]), Names::none());
    }

    #[test]
    fn suggestions() {
        let names = ["batch", "channel"];
        assert_eq!(closest("bacth", names.into_iter()), Some("batch"));
        assert_eq!(closest("zzz", names.into_iter()), None);
    }
}
