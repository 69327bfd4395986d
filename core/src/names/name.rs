//! [`Name`], an interned identifier, and [`Names`], the list that a tensor carries.

use crate::callback::CallbackMut;
use crate::short::Short;
use serde::{Serialize, Serializer};
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
pub(super) const MOST: usize = 1 << 20;
/// The number of names that a thread caches.
const RECENT: usize = 64;

thread_local! {
    /// The cache of recent look-ups; the first and last byte of a string determine its slot.
    static LOOKED_UP: [Cell<Option<(&'static str, Name)>>; RECENT] = const { [const { Cell::new(None) }; RECENT] };
}

/// Reading never fails, because nothing can panic between the two writes of [`interned`].
fn interner() -> std::sync::RwLockReadGuard<'static, Interner> {
    INTERNER.read().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The name for a string, or `None` if the program has as many names as it can have.
pub(super) fn interned(text: &str) -> Option<Name> {
    let mut interner = INTERNER.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(name) = interner.ids.get(text) {
        return Some(*name); // another thread interned it first
    }
    if interner.texts.len() >= MOST {
        return None;
    }
    // A name lives as long as the program, so its string is never freed.
    let text: &'static str = Box::leak(text.into());
    interner.texts.push(text);
    let name = Name(NonZeroU32::new(interner.texts.len() as u32).expect("just pushed, so at least 1"));
    interner.ids.insert(text, name);
    Some(name)
}

impl Name {
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

/// The names of a tensor's dims, in order. An unnamed tensor stores no names, which costs nothing.
#[derive(PartialEq, Eq, Default, Hash)]
pub struct Names(pub(super) NameSlots);

/// A name for each dim. Up to four names, enough for most tensors, need no allocation.
pub(super) type NameSlots = Short<Option<Name>, FEW>;

const FEW: usize = 4;

impl Clone for Names {
    #[inline]
    fn clone(&self) -> Names {
        if self.0.is_empty() {
            return Names::none();
        }
        if self.0.len() > FEW {
            return Names(Short::from_slice(&self.0));
        }
        // All words are written, and at once, so that a move of the names need not wait for a part of one.
        Names(Short::from(SmallVec::from_buf_and_len(std::array::from_fn(|dim| self.get(dim)), self.0.len())))
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
        Names(Short::new())
    }

    /// Like [`Names::new`], if the caller knows that there are no duplicates.
    #[inline]
    pub(crate) fn unchecked(names: impl IntoIterator<Item = Option<Name>>) -> Names {
        let mut names = names.into_iter();
        Names::collected(&mut |()| names.next())
    }

    /// [`Names::unchecked`], compiled once, with all of what a list does to grow.
    fn collected(next: &mut dyn CallbackMut<(), Option<Option<Name>>>) -> Names {
        let mut list = NameSlots::new();
        while let Some(name) = next.call_with(()) {
            list.push(name);
        }
        Names::from_list(list)
    }

    /// Like [`Names::unchecked`], for an existing list.
    #[inline]
    pub(super) fn from_list(names: NameSlots) -> Names {
        if names.iter().all(Option::is_none) { Names::none() } else { Names(names) }
    }

    /// Whether any dim is named.
    #[inline]
    pub fn is_named(&self) -> bool {
        !self.0.is_empty()
    }

    /// The names of all dims; none for an unnamed tensor.
    #[inline]
    pub(super) fn slots(&self) -> &[Option<Name>] {
        &self.0
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

    /// The names of all `ndim` dims, as a list.
    pub(crate) fn to_vec(&self, ndim: usize) -> Vec<Option<Name>> {
        let mut names = Vec::with_capacity(ndim);
        for dim in 0..ndim {
            names.push(self.get(dim));
        }
        names
    }

    /// The names as PyTorch prints them: `['N', None]`.
    pub fn list(&self, ndim: usize) -> String {
        let mut list = String::from("[");
        for dim in 0..ndim {
            list += if dim > 0 { ", " } else { "" };
            list += &self.get(dim).map_or("None".into(), |name| format!("'{name}'"));
        }
        list + "]"
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
