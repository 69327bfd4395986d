//! The rules of the naming API: the names after renaming, refining, aligning, flattening and unflattening,
//! and how to find a name in a list. Like those in [`rules`](super::rules), these are pure functions.

use super::rules::{NamedInput, argument};
use super::{Name, NameArg, Names, Renaming, closest};
use crate::error::{Error, ErrorKind, Result};
use crate::short::Short;
use std::panic::Location;

/// Names by position; `"..."` means the names that the tensor has there.
#[track_caller]
fn expand_ellipsis(op: &'static str, x: NamedInput<'_>, names: &[NameArg]) -> Result<Vec<Option<Name>>> {
    let ndim = x.sizes.len();
    let dots = names.iter().filter(|arg| **arg == NameArg::Ellipsis).count();
    if dots > 1 {
        return Err(too_many_ellipses(op, x, names));
    }
    // The names that are in place of the dots: none, if there are more names than dims.
    let kept = (ndim + 1).saturating_sub(names.len());
    let mut all = Vec::with_capacity(names.len() + kept);
    for (at, arg) in names.iter().enumerate() {
        match arg {
            NameArg::Name(name) => all.push(Some(*name)),
            NameArg::Unnamed => all.push(None),
            NameArg::Ellipsis => (at..at + kept).for_each(|dim| all.push(x.names.get(dim))),
        }
    }
    Ok(all)
}

#[track_caller]
fn too_many_ellipses(op: &'static str, x: NamedInput<'_>, names: &[NameArg]) -> Error {
    let message = format!(
        "More than one Ellipsis ('...') found in names {}. This function supports up to one Ellipsis.",
        NameArg::list(names)
    );
    let error = Error::new(ErrorKind::Ellipsis, op, message).with_operands([x.shape()]);
    let first = names.iter().position(|arg| *arg == NameArg::Ellipsis);
    let kept = names.iter().enumerate().filter(|(at, arg)| Some(*at) == first || **arg != NameArg::Ellipsis);
    match crate::list::<_, Option<Vec<_>>>(kept.map(|(_, arg)| in_rust(arg))) {
        Some(kept) if kept.len() < x.sizes.len() + 2 => {
            error.with_repair(format!("[{}]", crate::joined(&kept, ", ")))
        }
        _ => error,
    }
}

/// The error if the number of names is not the number of dims.
/// An element of a list of names as it is written, if it is a text.
fn in_rust(arg: &NameArg) -> Option<String> {
    match arg {
        NameArg::Name(name) => Some(format!("\"{name}\"")),
        NameArg::Ellipsis => Some("\"...\"".into()),
        NameArg::Unnamed => None,
    }
}

#[track_caller]
pub(crate) fn name_count(op: &'static str, ndim: usize, names: &[Option<Name>]) -> Error {
    let list = Names::unchecked(names.iter().copied()).list(names.len());
    let message = format!(
        "Number of names ({}) and number of dimensions in tensor ({ndim}) do not match. Attempted to create a tensor with names {list}",
        names.len()
    );
    let error = Error::new(ErrorKind::NameCount, op, message);
    match names.len() < ndim {
        true => error.with_repair(argument(&Names::unchecked(names.iter().copied()), ndim)),
        false => error,
    }
}

/// Names after `rename`.
///
/// # Errors
/// [`ErrorKind::NameCount`], [`ErrorKind::NameNotFound`], [`ErrorKind::DuplicateName`],
/// [`ErrorKind::Ellipsis`].
#[track_caller]
pub(crate) fn rename(op: &'static str, x: NamedInput<'_>, renaming: &Renaming) -> Result<Names> {
    match renaming {
        Renaming::Drop => Ok(Names::none()),
        Renaming::To(names) => {
            let names = expand_ellipsis(op, x, names)?;
            if names.len() != x.sizes.len() {
                let error = name_count(op, x.sizes.len(), &names).with_operands([x.shape()]);
                let texts: Vec<String> =
                    crate::list(names.iter().flatten().map(|name| format!("\"{name}\"")));
                return Err(match names.len() < x.sizes.len() && texts.len() == names.len() {
                    true if !names.is_empty() => error.with_repair(format!(
                        "x.rename([{}, \"...\"])?, which leaves the other dims as they are",
                        crate::joined(&texts, ", ")
                    )),
                    _ => error,
                });
            }
            Names::new(op, names).map_err(|error| error.with_operands([x.shape()]))
        }
        Renaming::Map(map) => {
            let mut names: Vec<Option<Name>> = crate::list(x.names.iter(x.sizes.len()));
            for (from, to) in map {
                let dim = position(op, x, from)?;
                names[dim] = match to {
                    NameArg::Name(name) => Some(*name),
                    _ => None,
                };
            }
            Names::new(op, names).map_err(|error| error.with_operands([x.shape()]))
        }
    }
}

/// The position of the dim with this name.
///
/// # Errors
/// [`ErrorKind::NameNotFound`], with the closest existing name.
#[track_caller]
pub(crate) fn position(op: &'static str, x: NamedInput<'_>, name: &str) -> Result<usize> {
    match Name::lookup(name).and_then(|name| x.names.position(name)) {
        Some(dim) => Ok(dim),
        None => Err(not_found(op, x, name)),
    }
}

/// The error if the tensor has no dim with this name.
#[track_caller]
pub(crate) fn not_found(op: &'static str, x: NamedInput<'_>, name: &str) -> Error {
    let message = format!("Name '{name}' not found in Tensor{} of sizes {:?}", x.list(), x.sizes);
    let error = Error::new(ErrorKind::NameNotFound, op, message).with_operands([x.shape()]);
    match closest(name, x.names.iter(x.sizes.len()).flatten().map(Name::as_str)) {
        Some(close) => error.with_repair(format!("\"{close}\"")),
        None if !x.names.is_named() && x.sizes.len() == 1 => {
            error.with_repair(format!("x.refine_names([\"{name}\"])? first"))
        }
        None if x.sizes.len().checked_sub(1).is_some_and(|last| x.names.get(last).is_none()) => {
            error.with_repair(format!("x.refine_names([\"...\", \"{name}\"])? first, if it is the last dim"))
        }
        None => error,
    }
}

/// Names after `refine_names`: an unnamed dim can get any name, and a named dim keeps its name.
///
/// # Errors
/// [`ErrorKind::RefineConflict`], [`ErrorKind::DuplicateName`], [`ErrorKind::Ellipsis`].
#[track_caller]
pub(crate) fn refine(x: NamedInput<'_>, list: &[NameArg]) -> Result<Names> {
    const OP: &str = "refine_names";
    let names = expand_ellipsis(OP, x, list)?;
    let to = Names::new(OP, names.iter().copied()).map_err(|error| error.with_operands([x.shape()]))?;
    let list = to.list(names.len());
    let caller = Location::caller();
    let cannot = |why: String| {
        let message = format!("cannot coerce Tensor{} to Tensor{list} {why}", x.list());
        let error = Error::new(ErrorKind::RefineConflict, OP, message).with_operands([x.shape()]);
        match names.len() == x.sizes.len() {
            true => error.with_repair(format!(
                "x.rename({})?, as refine_names only names dims that have none",
                argument(&to, names.len())
            )),
            false => error,
        }
        .at(caller)
    };
    if names.len() != x.sizes.len() {
        return Err(cannot("because they have different numbers of dims".into()));
    }
    for (dim, (own, new)) in x.names.iter(x.sizes.len()).zip(&names).enumerate() {
        match (own, new) {
            (Some(own), Some(new)) if own != *new => {
                return Err(cannot(format!("because '{own}' is different from '{new}' at index {dim}")));
            }
            (Some(own), None) => {
                return Err(cannot(format!("because '{own}' is more specific than None at index {dim}")));
            }
            _ => {}
        }
    }
    Ok(to)
}

/// A dim of an aligned tensor: the position of the dim in the input, or `None` for a new dim of size 1, and
/// its name.
pub(crate) type Aligned = Short<(Option<usize>, Option<Name>), 4>;

/// The error with the same list and the other dims after it as its repair.
#[cold]
fn rest_of(error: Error, wanted: &[NameArg]) -> Error {
    match crate::list::<_, Option<Vec<_>>>(wanted.iter().map(in_rust)) {
        Some(list) if !list.is_empty() => error.with_repair(format!(
            "x.align_to([{}, \"...\"])?, with the other dims last",
            crate::joined(&list, ", ")
        )),
        _ => error,
    }
}

/// The dims after `align_to`: the dims of `x` in the wanted order, with a dim of size one for each new name
/// or `None`. `"..."` means the dims that are not mentioned, unnamed ones among them.
///
/// # Errors
/// [`ErrorKind::UnnamedNotAllowed`], [`ErrorKind::NameNotFound`] if a dim of `x` is not in the list,
/// [`ErrorKind::DuplicateName`], [`ErrorKind::Ellipsis`].
#[track_caller]
pub(crate) fn align_to(x: NamedInput<'_>, wanted: &[NameArg]) -> Result<Aligned> {
    const OP: &str = "align_to";
    let ndim = x.sizes.len();
    let caller = Location::caller();
    let fail = |kind, message: String| Error::new(kind, OP, message).with_operands([x.shape()]).at(caller);
    let unnamed = (0..ndim).find(|dim| x.names.get(*dim).is_none());
    if let Some(dim) = unnamed.filter(|_| !wanted.contains(&NameArg::Ellipsis)) {
        let message =
            format!("All input dims must be named. Found unnamed dim at index {dim} of Tensor{}", x.list());
        return Err(rest_of(fail(ErrorKind::UnnamedNotAllowed, message), wanted));
    }
    if wanted.iter().filter(|arg| **arg == NameArg::Ellipsis).count() > 1 {
        return Err(too_many_ellipses(OP, x, wanted));
    }
    if wanted.contains(&NameArg::Unnamed) && wanted.contains(&NameArg::Ellipsis) {
        let message = format!(
            "the desired order of dimensions cannot contain a None name beside an Ellipsis, got {}",
            NameArg::list(wanted)
        );
        return Err(fail(ErrorKind::UnnamedNotAllowed, message));
    }
    let mut mentioned: Short<Option<Name>, 4> = Short::new();
    for arg in wanted {
        if let NameArg::Name(name) = arg {
            mentioned.push(Some(*name));
        }
    }
    Names::new(OP, mentioned.iter().copied()).map_err(|error| error.with_operands([x.shape()]))?;
    let own = |name: Name| (x.names.position(name), Some(name));
    let mut dims = Aligned::new();
    for arg in wanted {
        match arg {
            NameArg::Name(name) => dims.push(own(*name)),
            NameArg::Unnamed => dims.push((None, None)),
            NameArg::Ellipsis => {
                for dim in 0..ndim {
                    let name = x.names.get(dim);
                    if name.is_none() || !mentioned.contains(&name) {
                        dims.push((Some(dim), name));
                    }
                }
            }
        }
    }
    if let Some(name) =
        x.names.iter(ndim).flatten().find(|name| !dims.iter().any(|(_, to)| *to == Some(*name)))
    {
        let message = format!(
            "Cannot find dim '{name}' from Tensor{} in desired alignment {}.",
            x.list(),
            NameArg::list(wanted)
        );
        return Err(rest_of(fail(ErrorKind::NameNotFound, message), wanted));
    }
    Ok(dims)
}

/// Names after the dims `start..=end` are flattened into one dim called `name`.
///
/// # Errors
/// [`ErrorKind::DuplicateName`].
#[track_caller]
pub(crate) fn flatten(x: NamedInput<'_>, start: usize, end: usize, name: Option<Name>) -> Result<Names> {
    let mut names = x.names.to_vec(x.sizes.len());
    match names.get_mut(start) {
        Some(first) => {
            *first = name;
            names.drain(start + 1..(end + 1).min(x.sizes.len()));
        }
        None => names.push(name),
    }
    Names::new("flatten", names).map_err(|error| error.with_operands([x.shape()]))
}

/// Names after `dim` is split into dims called `names`. A named tensor needs a name for at least one of them.
///
/// # Errors
/// [`ErrorKind::UnnamedNotAllowed`], [`ErrorKind::DuplicateName`].
#[track_caller]
pub(crate) fn unflatten(x: NamedInput<'_>, dim: usize, names: &[Option<Name>]) -> Result<Names> {
    if x.names.is_named() && names.iter().all(Option::is_none) {
        let message = "input is a named tensor but no names were given for unflattened sizes";
        return Err(Error::new(ErrorKind::UnnamedNotAllowed, "unflatten", message).with_operands([x.shape()]));
    }
    let mut all = x.names.to_vec(x.sizes.len());
    let after = all.split_off((dim + 1).min(all.len()));
    all.truncate(dim);
    all.extend_from_slice(names);
    all.extend_from_slice(&after);
    Names::new("unflatten", all).map_err(|error| error.with_operands([x.shape()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::rules::tests::{input, names};
    use crate::names::{NameList, RenameArg};

    #[test]
    fn renaming() {
        let x = names(&["N", "_", "C"]);
        let renamed =
            |arg: Result<Renaming>| rename("rename", input(&x), &arg.unwrap()).map_err(|error| error.kind());
        assert_eq!(renamed(None.renaming()), Ok(Names::none()));
        assert_eq!(renamed(["a", "b", "c"].renaming()), Ok(names(&["a", "b", "c"]).0));
        assert_eq!(renamed(["a", "..."].renaming()), Ok(names(&["a", "_", "C"]).0));
        assert_eq!(renamed([("C", "D")].renaming()), Ok(names(&["N", "_", "D"]).0));
        assert_eq!(renamed([("Z", "D")].renaming()), Err(ErrorKind::NameNotFound));
        assert_eq!(renamed([("C", "N")].renaming()), Err(ErrorKind::DuplicateName));
        assert_eq!(renamed(["a"].renaming()), Err(ErrorKind::NameCount));
        assert_eq!(renamed(["...", "..."].renaming()), Err(ErrorKind::Ellipsis));
    }

    #[test]
    fn refining() {
        let x = names(&["N", "_", "_"]);
        let refined =
            |list: &[&str]| refine(input(&x), &list.name_list().unwrap()).map_err(|error| error.kind());
        assert_eq!(refined(&["N", "H", "W"]), Ok(names(&["N", "H", "W"]).0));
        assert_eq!(refined(&["...", "W"]), Ok(names(&["N", "_", "W"]).0));
        assert_eq!(refined(&["M", "H", "W"]), Err(ErrorKind::RefineConflict));
        assert_eq!(refined(&["N", "H"]), Err(ErrorKind::RefineConflict));
    }

    #[test]
    fn aligning() {
        let x = names(&["N", "C"]);
        let aligned =
            |list: &[&str]| align_to(input(&x), &list.name_list().unwrap()).map_err(|error| error.kind());
        let n = |text: &str| Some(Name::new(text).unwrap());
        assert_eq!(
            aligned(&["C", "H", "N"]),
            Ok(Short::from_slice(&[(Some(1), n("C")), (None, n("H")), (Some(0), n("N"))]))
        );
        assert_eq!(aligned(&["C", "..."]), Ok(Short::from_slice(&[(Some(1), n("C")), (Some(0), n("N"))])));
        assert_eq!(aligned(&["C"]), Err(ErrorKind::NameNotFound));
        let partly = names(&["_", "C", "_"]);
        let order = |list: &[&str]| align_to(input(&partly), &list.name_list().unwrap());
        let first: Vec<_> = order(&["C", "..."]).unwrap().into_iter().map(|(dim, _)| dim).collect();
        assert_eq!(first, [Some(1), Some(0), Some(2)]);
        assert_eq!(order(&["C"]).unwrap_err().kind(), ErrorKind::UnnamedNotAllowed);
        assert_eq!(aligned(&["C", "N", "C"]), Err(ErrorKind::DuplicateName));
    }
}
