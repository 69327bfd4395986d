//! Signatures: the dims that the arguments and the result of a function must have, as the attribute `dims`
//! writes them. The macro reads the notation when a program is compiled; here the tensors of a call are
//! compared with it.

use super::Name;
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::NamedTensor;
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// Whether signatures are checked: the feature `signatures`, which is on by default.
pub const CHECKED: bool = cfg!(feature = "signatures");

/// The signature of a function.
pub struct Signature {
    function: &'static str,
    /// The different names in it.
    names: &'static [&'static str],
    parts: &'static [Notation],
    /// The names of the dims of each part.
    interned: OnceLock<Box<[PartNames]>>,
}

/// The names of the dims of a part, as tensors have them.
type PartNames = Box<[Option<Name>]>;

/// The dims of an argument or of the result.
pub struct Notation {
    /// How the program calls it: `q`, `self.weight`, `returns.0`.
    pub place: &'static str,
    /// The notation as it was written.
    pub text: &'static str,
    /// The dims, without `...`.
    pub dims: &'static [NotedDim],
    /// Whether the dims must be in this order.
    pub ordered: bool,
    /// The number of dims in front of `...`, if it has one.
    pub rest: Option<usize>,
}

/// Any size.
pub const ANY: usize = usize::MAX;

/// A dim of a notation.
#[derive(Clone, Copy)]
pub struct NotedDim {
    /// Which of the names of the signature.
    pub name: u32,
    /// The size that it must have, or [`ANY`].
    pub size: usize,
    /// Whether it can be missing.
    pub optional: bool,
}

/// The size of a name in a call, and the part of the signature that it was first met in.
#[derive(Clone, Copy)]
pub struct Met {
    size: usize,
    part: usize,
}

impl Met {
    /// A name that was not met yet.
    pub const NONE: Met = Met { size: 0, part: usize::MAX };
}

/// What is wrong with a tensor.
enum Fault {
    Missing(usize),
    Further(usize),
    Order,
    Fixed(usize, usize),
    Size(usize, usize, Met),
}

impl Signature {
    /// The signature of a function.
    pub const fn new(
        function: &'static str,
        names: &'static [&'static str],
        parts: &'static [Notation],
    ) -> Signature {
        Signature { function, names, parts, interned: OnceLock::new() }
    }

    /// Compares a tensor with a part of the signature, and keeps the sizes of its dims in `met`.
    #[inline]
    #[track_caller]
    fn check(&'static self, part: usize, x: &NamedTensor, met: &mut [Met]) -> Result<()> {
        let Some(names) = self.interned.get() else {
            self.intern()?;
            return self.check(part, x, met);
        };
        let notation = &self.parts[part];
        if notation.fits(&names[part], part, x, met) {
            return Ok(());
        }
        match notation.compare(&names[part], part, x, met) {
            None => Ok(()),
            Some(fault) => Err(self.error(part, x, met, fault)),
        }
    }

    #[cold]
    #[track_caller]
    fn intern(&'static self) -> Result<()> {
        let mut parts = Vec::with_capacity(self.parts.len());
        for part in self.parts {
            let mut names = Vec::with_capacity(part.dims.len());
            for dim in part.dims {
                names.push(Some(Name::new(self.names[dim.name as usize])?));
            }
            parts.push(names.into());
        }
        self.interned.get_or_init(|| parts.into());
        Ok(())
    }

    #[cold]
    #[track_caller]
    fn error(&self, part: usize, x: &NamedTensor, met: &[Met], fault: Fault) -> Error {
        let notation = &self.parts[part];
        let place = match notation.place.strip_prefix("returns") {
            Some(field) => format!("the result{}{field}", if field.is_empty() { "" } else { " " }),
            None => format!("`{}`", notation.place),
        };
        let name_of = |at: usize| self.names[notation.dims[at].name as usize];
        let (kind, what) = match fault {
            Fault::Missing(_) if !x.names().is_named() && x.ndim() > 0 => {
                (ErrorKind::UnnamedNotAllowed, format!("{place} has no names"))
            }
            Fault::Missing(at) => (ErrorKind::NameNotFound, format!("{place} has no dim '{}'", name_of(at))),
            Fault::Further(dim) => match x.names().get(dim) {
                Some(name) => (ErrorKind::Shape, format!("{place} has the further dim '{name}'")),
                None => (ErrorKind::Shape, format!("{place} has a further dim, which is unnamed")),
            },
            Fault::Order => (ErrorKind::Misaligned, format!("the dims of {place} are in another order")),
            Fault::Fixed(at, size) => {
                let (name, must) = (name_of(at), notation.dims[at].size);
                (ErrorKind::Shape, format!("{place} has size {size} in dim '{name}', not {must}"))
            }
            Fault::Size(at, size, met) => {
                let other = self.parts[met.part].place;
                let words = format!("{place} has size {size} in dim '{}', but ", name_of(at));
                let other = if met.part == part { place } else { format!("`{other}`") };
                (ErrorKind::Shape, format!("{words}{other} has size {}", met.size))
            }
        };
        let written: Vec<String> =
            crate::list(self.parts.iter().map(|part| format!("{} = \"{}\"", part.place, part.text)));
        let known: Vec<String> = crate::list(
            (self.names.iter().zip(met))
                .filter(|(_, met)| met.part != usize::MAX)
                .map(|(name, met)| format!("{name}={}", met.size)),
        );
        let known =
            if known.is_empty() { String::new() } else { format!(", where {}", crate::joined(&known, ", ")) };
        let message = format!("{what}; the signature is ({}){known}", crate::joined(&written, ", "));
        let error = Error::about(&[x], kind, self.function, message);
        match fault {
            Fault::Order if notation.place.starts_with("returns") => {
                error.with_repair(format!(".align_to([{}])?", self.order(notation, x)))
            }
            Fault::Order => {
                error.with_repair(format!("{}.align_to([{}])?", notation.place, self.order(notation, x)))
            }
            Fault::Missing(at) => match self.nearest(notation, at, x) {
                Some(text) => error.with_repair(text),
                None => error,
            },
            _ => error,
        }
    }

    /// The notation with the name of a dim that `x` does not have in place of its nearest one that `x` has, if
    /// the dim occurs only there and the other one elsewhere in the signature: it is misspelt.
    fn nearest(&self, notation: &Notation, at: usize, x: &NamedTensor) -> Option<String> {
        let (own, name) = (notation.dims[at].name, self.names[notation.dims[at].name as usize]);
        let uses = self.parts.iter().flat_map(|part| part.dims).filter(|dim| dim.name == own).count();
        let has = |name: &&str| x.names().iter(x.ndim()).flatten().any(|own| own.as_str() == *name);
        let nearest = super::closest(name, self.names.iter().copied().filter(has)).filter(|_| uses == 1)?;
        let mut words = Vec::new();
        for word in notation.text.split_whitespace() {
            let is_it = word.trim_matches(['[', ']', '?']).split('=').next() == Some(name);
            words.push(if is_it { word.replacen(name, nearest, 1) } else { word.into() });
        }
        Some(format!("{} = \"{}\", if '{name}' is misspelt", notation.place, crate::joined(&words, " ")))
    }

    /// The names of a notation in its order, as code: those that `x` has.
    fn order(&self, notation: &Notation, x: &NamedTensor) -> String {
        let has = |name: &str| x.names().iter(x.ndim()).flatten().any(|own| own.as_str() == name);
        let mut order = Vec::new();
        for at in 0..=notation.dims.len() {
            if notation.rest == Some(at) {
                order.push("\"...\"".to_owned());
            }
            let name = notation.dims.get(at).map(|dim| self.names[dim.name as usize]);
            order.extend(name.filter(|name| has(name)).map(|name| format!("\"{name}\"")));
        }
        crate::joined(&order, ", ")
    }
}

impl Notation {
    /// Whether `x` has all dims in the order of the notation and no others, as most tensors do, and their
    /// sizes fit. This only compares integers.
    #[inline]
    fn fits(&self, names: &[Option<Name>], part: usize, x: &NamedTensor, met: &mut [Met]) -> bool {
        let (own, sizes) = (x.names().slots(), x.sizes());
        if sizes.len() != self.dims.len() || own != names {
            return false;
        }
        for (dim, size) in self.dims.iter().zip(sizes) {
            let Some(seen) = met.get_mut(dim.name as usize) else { return false };
            if seen.part == usize::MAX {
                *seen = Met { size: *size, part };
            }
            if seen.size != *size || (dim.size != ANY && dim.size != *size) {
                return false;
            }
        }
        true
    }

    /// The first fault of `x`.
    fn compare(
        &self,
        names: &[Option<Name>],
        part: usize,
        x: &NamedTensor,
        met: &mut [Met],
    ) -> Option<Fault> {
        let (own, sizes) = (x.names().slots(), x.sizes());
        // The number of dims found, the position behind the last one, and whether an order was broken.
        let (mut found, mut next, mut moved) = (0, 0, false);
        // Whether `...` is behind the last dim found, and whether a dim behind it was found.
        let (mut gap, mut behind) = (false, false);
        for (at, (dim, name)) in self.dims.iter().zip(names).enumerate() {
            gap |= self.rest == Some(at);
            let Some(position) = own.iter().position(|own| own == name) else {
                if dim.optional {
                    continue;
                }
                return Some(Fault::Missing(at));
            };
            // Dims follow one another, but for those of `...`.
            moved |= if gap { position < next } else { position != next };
            (behind, gap) = (behind || gap, false);
            (found, next) = (found + 1, position + 1);
            let size = sizes[position];
            if dim.size != ANY && dim.size != size {
                return Some(Fault::Fixed(at, size));
            }
            let seen = &mut met[dim.name as usize];
            if seen.part == usize::MAX {
                *seen = Met { size, part };
            } else if seen.size != size {
                return Some(Fault::Size(at, size, *seen));
            }
        }
        if self.rest.is_none() && found != sizes.len() {
            let noted = |dim: &usize| own.get(*dim).is_some_and(|own| own.is_some() && names.contains(own));
            return (0..sizes.len()).find(|dim| !noted(dim)).map(Fault::Further);
        }
        // Dims behind `...` are the last ones.
        moved |= behind && next != sizes.len();
        (self.ordered && moved).then_some(Fault::Order)
    }
}

/// What the attribute `dims` can check: tensors, parameters, options and lists of them.
#[diagnostic::on_unimplemented(
    message = "`#[dims(..)]` cannot check the dims of `{Self}`",
    label = "not a tensor",
    note = "it checks tensors, parameters, and options, lists, boxes and other pointers of them; name the field of a struct \
            or tuple: `batch.image = \"N C\"`, `returns.0 = \"N\"`"
)]
pub trait HasDims {
    /// Compares the dims with a part of the signature.
    ///
    /// # Errors
    /// Those of the attribute.
    #[track_caller]
    fn check_dims(&self, signature: &'static Signature, part: usize, met: &mut [Met]) -> Result<()>;
}

impl HasDims for NamedTensor {
    #[inline]
    #[track_caller]
    fn check_dims(&self, signature: &'static Signature, part: usize, met: &mut [Met]) -> Result<()> {
        signature.check(part, self, met)
    }
}
impl<T: HasDims + ?Sized> HasDims for &T {
    #[inline]
    #[track_caller]
    fn check_dims(&self, signature: &'static Signature, part: usize, met: &mut [Met]) -> Result<()> {
        (**self).check_dims(signature, part, met)
    }
}
impl<T: HasDims + ?Sized> HasDims for &mut T {
    #[inline]
    #[track_caller]
    fn check_dims(&self, signature: &'static Signature, part: usize, met: &mut [Met]) -> Result<()> {
        (**self).check_dims(signature, part, met)
    }
}
impl<T: HasDims + ?Sized> HasDims for Box<T> {
    #[inline]
    #[track_caller]
    fn check_dims(&self, signature: &'static Signature, part: usize, met: &mut [Met]) -> Result<()> {
        (**self).check_dims(signature, part, met)
    }
}
impl<T: HasDims + ?Sized> HasDims for Rc<T> {
    #[inline]
    #[track_caller]
    fn check_dims(&self, signature: &'static Signature, part: usize, met: &mut [Met]) -> Result<()> {
        (**self).check_dims(signature, part, met)
    }
}
impl<T: HasDims + ?Sized> HasDims for Arc<T> {
    #[inline]
    #[track_caller]
    fn check_dims(&self, signature: &'static Signature, part: usize, met: &mut [Met]) -> Result<()> {
        (**self).check_dims(signature, part, met)
    }
}
impl<T: HasDims + ToOwned + ?Sized> HasDims for Cow<'_, T> {
    #[inline]
    #[track_caller]
    fn check_dims(&self, signature: &'static Signature, part: usize, met: &mut [Met]) -> Result<()> {
        (**self).check_dims(signature, part, met)
    }
}
impl<T: HasDims> HasDims for Option<T> {
    #[inline]
    #[track_caller]
    fn check_dims(&self, signature: &'static Signature, part: usize, met: &mut [Met]) -> Result<()> {
        match self {
            Some(x) => x.check_dims(signature, part, met),
            None => Ok(()),
        }
    }
}
impl<T: HasDims> HasDims for [T] {
    #[track_caller]
    fn check_dims(&self, signature: &'static Signature, part: usize, met: &mut [Met]) -> Result<()> {
        for x in self {
            x.check_dims(signature, part, met)?;
        }
        Ok(())
    }
}
impl<T: HasDims, const N: usize> HasDims for [T; N] {
    #[track_caller]
    fn check_dims(&self, signature: &'static Signature, part: usize, met: &mut [Met]) -> Result<()> {
        self[..].check_dims(signature, part, met)
    }
}
impl<T: HasDims> HasDims for Vec<T> {
    #[track_caller]
    fn check_dims(&self, signature: &'static Signature, part: usize, met: &mut [Met]) -> Result<()> {
        self[..].check_dims(signature, part, met)
    }
}

/// The results of functions that the attribute `dims` can make an error of.
#[diagnostic::on_unimplemented(
    message = "a function with `#[dims(..)]` returns a `Result` whose error can be made of `namegrad::Error`",
    label = "wrong dims are an error that this type cannot be",
    note = "return `Result<{Self}>`"
)]
pub trait Fallible {
    /// What a call gives that did not fail.
    type Value;
    /// That, if it did not fail.
    fn value(&self) -> Option<&Self::Value>;
    /// An error.
    fn refused(error: Error) -> Self;
}

impl<T, E: From<Error>> Fallible for Result<T, E> {
    type Value = T;
    #[inline]
    fn value(&self) -> Option<&T> {
        self.as_ref().ok()
    }
    #[cold]
    fn refused(error: Error) -> Self {
        Err(error.into())
    }
}

/// Runs the body of a function, which is a closure so that `?` and `return` end the body alone. Ops in it
/// report their own lines: a closure is not `#[track_caller]`, as the function with the signature is.
#[inline]
pub fn run<R>(body: impl FnOnce() -> R) -> R {
    body()
}
