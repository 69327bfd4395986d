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
//! `naming` (the same for `rename`, `align_to` and so on) and `list` (arguments that are names). `pattern`
//! has patterns of the paths of parameters.
//!
//! # Source
//! PyTorch, *Named Tensors operator coverage*.

mod list;
pub(crate) mod naming;
#[doc(hidden)]
pub(crate) mod rules;

pub use list::{NameArg, NameList, RenameArg, Renaming};

use crate::error::{Error, ErrorKind, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{LazyLock, RwLock};

/// The name of a dim: an interned identifier, so that comparing two names means comparing integers.
///
/// Names are never freed: each takes about 130 bytes until the program ends. Because names can come from
/// files, there is a limit of 2^20 different names of up to 255 bytes each.
///
/// ```
/// use namegrad_core::names::Name;
/// let batch = Name::new("batch")?;
/// assert_eq!(batch, Name::new("batch")?);
/// assert_eq!(batch.as_str(), "batch");
/// assert!(Name::new("1st").is_err());
/// # Ok::<(), namegrad_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(NonZeroU32);

struct Interner {
    ids: HashMap<&'static str, Name>,
    texts: Vec<&'static str>,
}

static INTERNER: LazyLock<RwLock<Interner>> =
    LazyLock::new(|| RwLock::new(Interner { ids: HashMap::new(), texts: Vec::new() }));

/// The largest number of names that a program can have.
const MOST: usize = 1 << 20;
/// The maximum length of a name, in bytes.
const LONGEST: usize = 255;

/// The number of names that a thread caches.
const RECENT: usize = 64;

thread_local! {
    /// The cache of recent look-ups; the first and last byte of a string determine its slot.
    static LOOKED_UP: [Cell<Option<(&'static str, Name)>>; RECENT] = const { [const { Cell::new(None) }; RECENT] };
}

/// Reading never fails, because nothing can panic between the two writes of `Name::new`.
fn interner() -> std::sync::RwLockReadGuard<'static, Interner> {
    INTERNER.read().unwrap_or_else(|poisoned| poisoned.into_inner())
}

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
        let mut interner = INTERNER.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(name) = interner.ids.get(text) {
            return Ok(*name); // another thread interned it first
        }
        if interner.texts.len() >= MOST {
            let message = format!("there are {MOST} names of dims already, the most that a program can have");
            return Err(Error::new(ErrorKind::OutOfMemory, "names", message));
        }
        // A name lives as long as the program, so its string is never freed.
        let text: &'static str = Box::leak(text.into());
        interner.texts.push(text);
        let name = Name(NonZeroU32::new(interner.texts.len() as u32).expect("just pushed, so at least 1"));
        interner.ids.insert(text, name);
        Ok(name)
    }

    /// The name for a string, if it has been interned. This never interns a new name.
    ///
    /// Programs look up the same few names again and again, so each thread caches its recent look-ups. Taking
    /// the lock and hashing would cost more than many ops on small tensors.
    #[inline]
    pub fn lookup(text: &str) -> Option<Name> {
        let bytes = text.as_bytes();
        let (first, last) = (*bytes.first()?, *bytes.last()?);
        let slot = (bytes.len() + 3 * usize::from(first) + 5 * usize::from(last)) % RECENT;
        LOOKED_UP.with(|recent| match recent[slot].get() {
            Some((known, name)) if known == text => Some(name),
            _ => {
                let found = interner().ids.get_key_value(text).map(|(text, name)| (*text, *name));
                recent[slot].set(found.or(recent[slot].get()));
                found.map(|(_, name)| name)
            }
        })
    }

    /// The name as a string.
    pub fn as_str(self) -> &'static str {
        interner().texts[self.0.get() as usize - 1]
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

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{self}'")
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Name, D::Error> {
        let text = String::deserialize(deserializer)?;
        Name::new(&text).map_err(|error| serde::de::Error::custom(error.message()))
    }
}

/// The names of a tensor's dims, in order. An unnamed tensor stores no names, which costs nothing.
#[derive(PartialEq, Eq, Default, Hash)]
pub struct Names(List);

/// A name for each dim. Up to four names, enough for most tensors, need no allocation.
type List = SmallVec<[Option<Name>; 4]>;

impl Clone for Names {
    #[inline]
    fn clone(&self) -> Names {
        if self.0.is_empty() { Names::none() } else { Names(SmallVec::from_slice(&self.0)) }
    }
}

/// The first two names that dims at the same place have and that differ.
#[doc(hidden)]
pub fn apart(
    own: impl Iterator<Item = Option<Name>>,
    other: impl Iterator<Item = Option<Name>>,
) -> Option<(Name, Name)> {
    own.zip(other).find_map(|(own, other)| own.zip(other).filter(|(own, other)| own != other))
}

impl Names {
    /// No names.
    #[inline]
    pub fn none() -> Names {
        Names(SmallVec::new())
    }

    /// The names of consecutive dims, `None` for an unnamed one.
    ///
    /// # Errors
    /// [`ErrorKind::DuplicateName`].
    #[track_caller]
    pub fn new(op: &'static str, names: impl IntoIterator<Item = Option<Name>>) -> Result<Names> {
        let names = Names::unchecked(names);
        for (dim, name) in names.0.iter().enumerate() {
            if name.is_some() && names.0[..dim].contains(name) {
                let message = format!("Cannot construct a tensor with duplicate names. Got names: {names}.");
                return Err(Error::new(ErrorKind::DuplicateName, op, message)
                    .with_repair("give each dim a different name"));
            }
        }
        Ok(names)
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

    /// Like [`Names::new`], if the caller knows that there are no duplicates.
    #[inline]
    pub(crate) fn unchecked(names: impl IntoIterator<Item = Option<Name>>) -> Names {
        Names::from_list(names.into_iter().collect())
    }

    /// Like [`Names::unchecked`], for an existing list.
    #[inline]
    fn from_list(names: List) -> Names {
        if names.iter().all(Option::is_none) { Names::none() } else { Names(names) }
    }

    /// Whether any dim is named.
    #[inline]
    pub fn is_named(&self) -> bool {
        !self.0.is_empty()
    }

    /// The name of `dim`.
    #[inline]
    pub fn get(&self, dim: usize) -> Option<Name> {
        self.0.get(dim).copied().flatten()
    }

    /// The position of the dim with this name.
    #[inline]
    pub fn position(&self, name: Name) -> Option<usize> {
        self.0.iter().position(|own| *own == Some(name))
    }

    /// The names of all `ndim` dims.
    #[inline]
    pub fn iter(
        &self,
        ndim: usize,
    ) -> impl DoubleEndedIterator<Item = Option<Name>> + ExactSizeIterator + '_ {
        (0..ndim).map(|dim| self.get(dim))
    }

    /// The names as PyTorch prints them: `['N', None]`.
    pub fn list(&self, ndim: usize) -> String {
        let texts: Vec<String> =
            self.iter(ndim).map(|name| name.map_or("None".into(), |name| format!("'{name}'"))).collect();
        format!("[{}]", texts.join(", "))
    }

    /// The names as PyTorch's `names` attribute prints them: `('N', None)`.
    pub fn tuple(&self, ndim: usize) -> String {
        let list = self.list(ndim);
        let comma = if ndim == 1 { "," } else { "" };
        format!("({}{comma})", &list[1..list.len() - 1])
    }
}

/// `*x.names() == ["N", "C"]`: every dim is named, and the names are equal.
impl<const K: usize> PartialEq<[&str; K]> for Names {
    fn eq(&self, other: &[&str; K]) -> bool {
        self.0.len() == K
            && self.0.iter().zip(other).all(|(own, text)| own.is_some_and(|name| name.as_str() == *text))
    }
}

/// `*x.names() == [Some("N"), None]`; a list of `None` equals no names.
impl<const K: usize> PartialEq<[Option<&str>; K]> for Names {
    fn eq(&self, other: &[Option<&str>; K]) -> bool {
        match self.0.len() {
            0 => other.iter().all(Option::is_none),
            ndim => ndim == K && self.0.iter().zip(other).all(|(own, text)| own.map(Name::as_str) == *text),
        }
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.list(self.0.len()))
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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
    let mut row: Vec<usize> = (0..=b.len()).collect();
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
