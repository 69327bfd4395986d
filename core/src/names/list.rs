//! Arguments that are names: lists such as `["N", "C"]` and `[Some("N"), None]`, which may contain `"..."`,
//! and maps of renamings.

use super::{Name, Names};
use crate::error::{Error, ErrorKind, Result};

/// An entry of a list of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameArg {
    /// The dim has this name.
    Name(Name),
    /// The dim is unnamed.
    Unnamed,
    /// `"..."`: all dims that the list does not mention.
    Ellipsis,
}

impl NameArg {
    #[track_caller]
    fn new(text: &str) -> Result<NameArg> {
        match text {
            "..." => Ok(NameArg::Ellipsis),
            text => Name::new(text).map(NameArg::Name),
        }
    }

    /// The list as PyTorch prints it: `['N', '...', None]`.
    pub(crate) fn list(names: &[NameArg]) -> String {
        let text = |name: &NameArg| match name {
            NameArg::Name(name) => format!("'{name}'"),
            NameArg::Unnamed => "None".into(),
            NameArg::Ellipsis => "'...'".into(),
        };
        format!("[{}]", crate::joined(&crate::list::<_, Vec<_>>(names.iter().map(text)), ", "))
    }
}

/// A list of names, as `["N", "C", "..."]` or `[Some("N"), None]`.
pub trait NameList {
    /// The entries.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`].
    #[track_caller]
    fn name_list(self) -> Result<Vec<NameArg>>;
}

/// A type that can be an entry of a list of names: a string, a [`Name`], or an `Option`, with `None` for an
/// unnamed dim.
pub trait Entry {
    /// The entry.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`].
    #[track_caller]
    fn entry(&self) -> Result<NameArg>;
}

impl Entry for &str {
    #[track_caller]
    fn entry(&self) -> Result<NameArg> {
        NameArg::new(self)
    }
}
impl Entry for String {
    #[track_caller]
    fn entry(&self) -> Result<NameArg> {
        NameArg::new(self)
    }
}
impl Entry for Name {
    fn entry(&self) -> Result<NameArg> {
        Ok(NameArg::Name(*self))
    }
}
impl Entry for NameArg {
    fn entry(&self) -> Result<NameArg> {
        Ok(*self)
    }
}
impl<E: Entry> Entry for Option<E> {
    #[track_caller]
    fn entry(&self) -> Result<NameArg> {
        match self {
            Some(entry) => entry.entry(),
            None => Ok(NameArg::Unnamed),
        }
    }
}

impl<E: Entry, const K: usize> NameList for [E; K] {
    #[track_caller]
    fn name_list(self) -> Result<Vec<NameArg>> {
        entries(&self)
    }
}
impl<E: Entry> NameList for &[E] {
    #[track_caller]
    fn name_list(self) -> Result<Vec<NameArg>> {
        entries(self)
    }
}
impl<E: Entry> NameList for Vec<E> {
    #[track_caller]
    fn name_list(self) -> Result<Vec<NameArg>> {
        entries(&self)
    }
}
impl<E: Entry> NameList for &Vec<E> {
    #[track_caller]
    fn name_list(self) -> Result<Vec<NameArg>> {
        entries(self)
    }
}

#[track_caller]
fn entries<T: Entry>(list: &[T]) -> Result<Vec<NameArg>> {
    let mut names = Vec::with_capacity(list.len());
    for entry in list {
        names.push(entry.entry()?);
    }
    Ok(names)
}

/// The new names that `rename` gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renaming {
    /// Every dim becomes unnamed.
    Drop,
    /// Renames by position; the list can contain one ellipsis.
    To(Vec<NameArg>),
    /// In each pair, the first name becomes the second.
    Map(Vec<(String, NameArg)>),
}

/// The argument of `rename`: `None` drops all names, `["N", "C"]` renames by position, `[("N", "batch")]` by
/// name.
pub trait RenameArg {
    /// The renaming.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`].
    #[track_caller]
    fn renaming(self) -> Result<Renaming>;
}

impl RenameArg for Option<Names> {
    /// `None` drops the names; `Some` has the new names of all dims.
    #[track_caller]
    fn renaming(self) -> Result<Renaming> {
        Ok(match self {
            Some(names) if names.is_named() => {
                Renaming::To(crate::list(names.0.iter().map(|n| n.map_or(NameArg::Unnamed, NameArg::Name))))
            }
            _ => Renaming::Drop, // a list without names matches any number of dims
        })
    }
}

impl RenameArg for Renaming {
    fn renaming(self) -> Result<Renaming> {
        Ok(self)
    }
}

impl<E: Entry, const K: usize> RenameArg for [E; K] {
    #[track_caller]
    fn renaming(self) -> Result<Renaming> {
        Ok(Renaming::To(entries(&self)?))
    }
}
impl<E: Entry> RenameArg for &[E] {
    #[track_caller]
    fn renaming(self) -> Result<Renaming> {
        Ok(Renaming::To(entries(self)?))
    }
}
impl<E: Entry> RenameArg for Vec<E> {
    #[track_caller]
    fn renaming(self) -> Result<Renaming> {
        Ok(Renaming::To(entries(&self)?))
    }
}

impl<const K: usize> RenameArg for [(&str, &str); K] {
    #[track_caller]
    fn renaming(self) -> Result<Renaming> {
        self.as_slice().renaming()
    }
}

impl RenameArg for &[(&str, &str)] {
    #[track_caller]
    fn renaming(self) -> Result<Renaming> {
        let mut map: Vec<(String, NameArg)> = Vec::with_capacity(self.len());
        for (from, to) in self {
            if map.iter().any(|(other, _)| other == from) {
                let message = format!("'{from}' is renamed twice");
                return Err(Error::new(ErrorKind::DuplicateName, "rename", message));
            }
            map.push((from.to_string(), NameArg::Name(Name::new(to)?)));
        }
        Ok(Renaming::Map(map))
    }
}
