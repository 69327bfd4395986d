//! The rules of name inference: pure functions over lists of names, which check before anything is computed.
//!
//! | rule | function |
//! | --- | --- |
//! | keeps input names | none needed: the result has the names of the input |
//! | removes dimensions | [`remove`] |
//! | unifies names from inputs | [`unify`] |
//! | permutes dimensions | [`permute`] |
//! | contracts away dims | [`mm`], [`mv`], [`matmul`] |
//! | out and in place | [`out`] |
//! | the naming API | [`rename`], [`refine`], [`align_to`], [`flatten`], [`unflatten`] |
//!
//! # Source
//! PyTorch, *Named Tensors operator coverage*.

use super::{List, Name, NameArg, Names, Renaming, closest, is_strict};
use crate::error::{Error, ErrorKind, Extents, Result};
use std::panic::Location;

/// An input as the rules see it: its names and sizes.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The names.
    pub names: &'a Names,
    /// The sizes.
    pub sizes: &'a [usize],
}

impl Input<'_> {
    fn list(&self) -> String {
        self.names.list(self.sizes.len())
    }

    /// The input as an error keeps it.
    pub fn extents(&self) -> Extents {
        Extents { sizes: self.sizes.to_vec(), names: self.names.clone() }
    }
}

/// The names of the dims that are not in `removed`.
pub fn remove(x: Input<'_>, removed: &[usize]) -> Names {
    if !x.names.is_named() {
        return Names::none();
    }
    let mut kept = List::new();
    for dim in 0..x.sizes.len() {
        if !removed.contains(&dim) {
            kept.push(x.names.get(dim));
        }
    }
    Names::from_list(kept)
}

/// The names in the order `dims`.
pub fn permute(names: &Names, dims: &[usize]) -> Names {
    if !names.is_named() {
        return Names::none();
    }
    Names::unchecked(dims.iter().map(|dim| names.get(*dim)))
}

/// Unifies two lists of names position by position from the right: equal names stay, a name beats an unnamed dim.
/// `doing` is the verb of the error: `broadcast` or `cat`.
///
/// # Errors
/// [`ErrorKind::NameMismatch`] for different names at one position, [`ErrorKind::Misaligned`] for one name at two positions, and in strict mode
/// [`ErrorKind::NameMismatch`] for a named dim that meets an unnamed one.
#[inline]
#[track_caller]
pub fn unify(op: &'static str, doing: &str, left: Input<'_>, right: Input<'_>) -> Result<Names> {
    if !left.names.is_named() && !right.names.is_named() {
        return Ok(Names::none());
    }
    let (l, r) = (left.sizes.len(), right.sizes.len());
    if left.names == right.names && l == r {
        return Ok(left.names.clone());
    }
    unify_named(op, doing, left, right)
}

#[track_caller]
fn unify_named(op: &'static str, doing: &str, left: Input<'_>, right: Input<'_>) -> Result<Names> {
    let (l, r) = (left.sizes.len(), right.sizes.len());
    let ndim = l.max(r);
    // The name at `from_right` of a list that may be shorter.
    let at = |x: &Input<'_>, from_right: usize| {
        x.sizes.len().checked_sub(from_right + 1).and_then(|dim| x.names.get(dim))
    };
    let caller = Location::caller();
    let fail = |kind, message: String, repair: String| {
        Error::new(kind, op, message)
            .with_operands([left.extents(), right.extents()])
            .with_repair(repair)
            .at(caller)
    };
    for k in 0..ndim {
        let (a, b) = (at(&left, k), at(&right, k));
        match (a, b) {
            (Some(a), Some(b)) if a != b => {
                let message = format!(
                    "Error when attempting to {doing} dims {} and dims {}: dim '{a}' and dim '{b}' are at the same position from \
                     the right but do not match.",
                    left.list(),
                    right.list()
                );
                return Err(fail(ErrorKind::NameMismatch, message, alignment(op, doing, left, right)));
            }
            (Some(name), None) | (None, Some(name)) => {
                let other = if a.is_some() { &right } else { &left };
                if other.names.position(name).is_some() {
                    let (first, second) = if a.is_some() { (&right, &left) } else { (&left, &right) };
                    let message = format!(
                        "Misaligned dims when attempting to {doing} dims {} and dims {}: dim '{name}' appears in a different \
                         position from the right across both lists.",
                        first.list(),
                        second.list()
                    );
                    return Err(fail(ErrorKind::Misaligned, message, alignment(op, doing, left, right)));
                }
                if is_strict() && k < l.min(r) {
                    let message = format!(
                        "strict names: dim '{name}' meets an unnamed dim when attempting to {doing} dims {} and dims {}",
                        left.list(),
                        right.list()
                    );
                    let repair = format!("name the dim: refine_names([.., \"{name}\", ..])?");
                    return Err(fail(ErrorKind::NameMismatch, message, repair));
                }
            }
            _ => {}
        }
    }
    Ok(Names::unchecked((0..ndim).rev().map(|k| at(&left, k).or(at(&right, k)))))
}

/// The line that would bring two inputs together whose names do not unify: one is aligned to the other if that is possible.
fn alignment(op: &str, doing: &str, left: Input<'_>, right: Input<'_>) -> String {
    let list = |x: &Input<'_>| x.names.iter(x.sizes.len()).collect::<Vec<_>>();
    let (l, r) = (list(&left), list(&right));
    if doing != "broadcast" {
        return "align_to or rename one of them so that the names stand at the same dims".into();
    }
    if l.iter().chain(&r).any(Option::is_none) {
        return "name every dim with refine_names, then bring one into the order of the other with align_as"
            .into();
    }
    if r.iter().all(|name| l.contains(name)) {
        return format!("x.{op}(&y.align_as(&x)?)?");
    }
    if l.iter().all(|name| r.contains(name)) {
        return format!("x.align_as(&y)?.{op}(&y)?");
    }
    let both = l.iter().chain(r.iter().filter(|name| !l.contains(name)));
    let both: Vec<String> = both.flatten().map(|name| format!("\"{name}\"")).collect();
    format!(
        "rename a dim if two names mean the same; to broadcast by name, align_to([{}]) both",
        both.join(", ")
    )
}

/// Names of a product of matrices: the rows of the left, the columns of the right.
///
/// # Errors
/// [`ErrorKind::DuplicateName`] if both have the same name; in strict mode [`ErrorKind::NameMismatch`] if the contracted dims are named differently.
#[track_caller]
pub fn mm(op: &'static str, left: Input<'_>, right: Input<'_>) -> Result<Names> {
    matmul(op, left, right)
}

/// Names of a matrix times a vector: those of the matrix but the last.
///
/// # Errors
/// In strict mode [`ErrorKind::NameMismatch`] if the contracted dims are named differently.
#[track_caller]
pub fn mv(op: &'static str, left: Input<'_>, right: Input<'_>) -> Result<Names> {
    matmul(op, left, right)
}

/// Names of a matrix product with batch dims: the unified batch dims, then the rows of the left and the columns of the right. A vector
/// has no rows or no columns.
///
/// # Errors
/// [`ErrorKind::NameMismatch`] if batch dims differ, [`ErrorKind::DuplicateName`] if the result would have a name twice; in strict mode
/// [`ErrorKind::NameMismatch`] if the contracted dims are named differently.
#[inline]
#[track_caller]
pub fn matmul(op: &'static str, left: Input<'_>, right: Input<'_>) -> Result<Names> {
    if !left.names.is_named() && !right.names.is_named() {
        return Ok(Names::none());
    }
    matmul_named(op, left, right)
}

#[track_caller]
fn matmul_named(op: &'static str, left: Input<'_>, right: Input<'_>) -> Result<Names> {
    let (l, r) = (left.sizes.len(), right.sizes.len());
    let batch_dims = |ndim: usize| ndim.saturating_sub(2);
    let (lb, rb) = (batch_dims(l), batch_dims(r));
    let operands = || [left.extents(), right.extents()];
    if is_strict() {
        let (a, b) = (left.names.get(l - 1), right.names.get(if r == 1 { 0 } else { r - 2 }));
        if a != b {
            let show =
                |name: Option<Name>| name.map_or("an unnamed dim".into(), |name| format!("dim '{name}'"));
            let message = format!("strict names: {} would be contracted with {}", show(a), show(b));
            return Err(Error::new(ErrorKind::NameMismatch, op, message)
                .with_operands(operands())
                .with_repair("rename one of the two, so that both carry the name that is summed over"));
        }
    }
    let batch = lb.max(rb);
    let mut names = List::new();
    for k in (0..batch).rev() {
        let at = |x: &Input<'_>, batch: usize| (k < batch).then(|| x.names.get(batch - 1 - k)).flatten();
        let (a, b) = (at(&left, lb), at(&right, rb));
        if let (Some(a_name), Some(b_name)) = (a, b)
            && a_name != b_name
        {
            let message = format!(
                "matmul: Expected '{a_name}' (index {} of {}) to match '{b_name}' (index {} of {}) but they do not match.",
                lb - 1 - k,
                left.list(),
                rb - 1 - k,
                right.list()
            );
            return Err(Error::new(ErrorKind::NameMismatch, op, message)
                .with_operands(operands())
                .with_repair("align the batch dims with align_to"));
        }
        names.push(a.or(b));
    }
    if l >= 2 {
        names.push(left.names.get(l - 2));
    }
    if r >= 2 {
        names.push(right.names.get(r - 1));
    }
    for (dim, name) in names.iter().enumerate() {
        if name.is_some() && names[..dim].contains(name) {
            let message = format!(
                "Matrix multiplying Tensor{} with Tensor{} would produce output tensor with duplicate names {}. Please rename the \
                 input tensors with `Tensor.rename` to prevent this.",
                left.list(),
                right.list(),
                Names::unchecked(names.iter().copied())
            );
            return Err(Error::new(ErrorKind::DuplicateName, op, message)
                .with_operands(operands())
                .with_repair(format!(
                    "x.{op}(&y.rename([(\"{0}\", \"{0}_\")])?)?",
                    names[dim].expect("tested above")
                )));
        }
    }
    Ok(Names::from_list(names))
}

/// The names that an out tensor with `existing` names gets when `computed` were inferred: an unnamed one takes them, a named one must have
/// exactly these.
///
/// # Errors
/// [`ErrorKind::OutNames`].
#[track_caller]
pub fn out(op: &'static str, computed: &Names, existing: Input<'_>) -> Result<Names> {
    if !existing.names.is_named() || existing.names == computed {
        return Ok(computed.clone());
    }
    let message = format!(
        "Name mismatch: specified out tensor with names {} are not the same as the computed output names {}. Please rename the out \
         tensor's dims with `Tensor.rename`.",
        existing.list(),
        computed.list(existing.sizes.len())
    );
    Err(Error::new(ErrorKind::OutNames, op, message)
        .with_operands([existing.extents()])
        .with_repair(format!("out.rename({})?", computed.list(existing.sizes.len()).replace('\'', "\""))))
}

/// Names by position, or `"..."` for the names that the tensor has there.
#[track_caller]
fn expand_ellipsis(op: &'static str, x: Input<'_>, names: &[NameArg]) -> Result<Vec<Option<Name>>> {
    let ndim = x.sizes.len();
    let dots: Vec<usize> = (0..names.len()).filter(|i| names[*i] == NameArg::Ellipsis).collect();
    let as_name = |arg: &NameArg| match arg {
        NameArg::Name(name) => Some(*name),
        _ => None,
    };
    match dots[..] {
        [] => Ok(names.iter().map(as_name).collect()),
        [at] if names.len() - 1 <= ndim => {
            let tail = names.len() - at - 1;
            let kept = (at..ndim - tail).map(|dim| x.names.get(dim));
            Ok(names[..at]
                .iter()
                .map(as_name)
                .chain(kept)
                .chain(names[at + 1..].iter().map(as_name))
                .collect())
        }
        [_] => Ok(names.iter().filter(|arg| **arg != NameArg::Ellipsis).map(as_name).collect()),
        _ => Err(too_many_ellipses(op, x, names)),
    }
}

#[track_caller]
fn too_many_ellipses(op: &'static str, x: Input<'_>, names: &[NameArg]) -> Error {
    let message = format!(
        "More than one Ellipsis ('...') found in names {}. This function supports up to one Ellipsis.",
        NameArg::list(names)
    );
    Error::new(ErrorKind::Ellipsis, op, message)
        .with_operands([x.extents()])
        .with_repair("keep one \"...\" in the list")
}

/// The error of a list of names that is not as long as the tensor has dims.
#[track_caller]
pub(crate) fn name_count(op: &'static str, ndim: usize, names: &[Option<Name>]) -> Error {
    let list = Names::unchecked(names.iter().copied()).list(names.len());
    let message = format!(
        "Number of names ({}) and number of dimensions in tensor ({ndim}) do not match. Attempted to create a tensor with names {list}",
        names.len()
    );
    Error::new(ErrorKind::NameCount, op, message).with_repair("give one name, or None, for each dim")
}

/// Names after `rename`.
///
/// # Errors
/// [`ErrorKind::NameCount`], [`ErrorKind::NameNotFound`], [`ErrorKind::DuplicateName`], [`ErrorKind::Ellipsis`].
#[track_caller]
pub fn rename(op: &'static str, x: Input<'_>, renaming: &Renaming) -> Result<Names> {
    match renaming {
        Renaming::Drop => Ok(Names::none()),
        Renaming::To(names) => {
            let names = expand_ellipsis(op, x, names)?;
            if names.len() != x.sizes.len() {
                return Err(name_count(op, x.sizes.len(), &names).with_operands([x.extents()]));
            }
            Names::new(op, names).map_err(|error| error.with_operands([x.extents()]))
        }
        Renaming::Map(map) => {
            let mut names: Vec<Option<Name>> = x.names.iter(x.sizes.len()).collect();
            for (from, to) in map {
                let dim = position(op, x, from)?;
                names[dim] = match to {
                    NameArg::Name(name) => Some(*name),
                    _ => None,
                };
            }
            Names::new(op, names).map_err(|error| error.with_operands([x.extents()]))
        }
    }
}

/// The dim of that name.
///
/// # Errors
/// [`ErrorKind::NameNotFound`], with the closest name that there is.
#[track_caller]
pub fn position(op: &'static str, x: Input<'_>, name: &str) -> Result<usize> {
    match Name::lookup(name).and_then(|name| x.names.position(name)) {
        Some(dim) => Ok(dim),
        None => Err(not_found(op, x, name)),
    }
}

/// The error of a name that the tensor does not have.
#[track_caller]
pub(crate) fn not_found(op: &'static str, x: Input<'_>, name: &str) -> Error {
    let message = format!("Name '{name}' not found in Tensor{} of sizes {:?}", x.list(), x.sizes);
    let error = Error::new(ErrorKind::NameNotFound, op, message).with_operands([x.extents()]);
    match closest(name, x.names.iter(x.sizes.len()).flatten()) {
        Some(close) => error.with_repair(format!("did you mean '{close}'?")),
        None if !x.names.is_named() => {
            error.with_repair(format!("name the dim first: x.refine_names([.., \"{name}\"])?"))
        }
        None => error,
    }
}

/// Names after `refine_names`: an unnamed dim may get any name, a named one keeps its own.
///
/// # Errors
/// [`ErrorKind::RefineConflict`], [`ErrorKind::DuplicateName`], [`ErrorKind::Ellipsis`].
#[track_caller]
pub fn refine(x: Input<'_>, list: &[NameArg]) -> Result<Names> {
    const OP: &str = "refine_names";
    let names = expand_ellipsis(OP, x, list)?;
    let to = Names::new(OP, names.iter().copied()).map_err(|error| error.with_operands([x.extents()]))?;
    let list = to.list(names.len());
    let caller = Location::caller();
    let cannot = |why: String| {
        let message = format!("refine_names: cannot coerce Tensor{} to Tensor{list} {why}", x.list());
        Error::new(ErrorKind::RefineConflict, OP, message)
            .with_operands([x.extents()])
            .with_repair("rename changes names; refine_names only names dims that have none")
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

/// One dim of an aligned tensor: which dim of the input it is, or a new one of size 1.
pub type Aligned = Vec<(Option<usize>, Option<Name>)>;

/// The dims after `align_to`: those of `x` in the wanted order, new names (or none) as dims of size one; `"..."` stands for the dims not mentioned.
///
/// # Errors
/// [`ErrorKind::UnnamedNotAllowed`], [`ErrorKind::NameNotFound`] if a dim of `x` is not wanted, [`ErrorKind::DuplicateName`],
/// [`ErrorKind::Ellipsis`].
#[track_caller]
pub fn align_to(x: Input<'_>, wanted: &[NameArg]) -> Result<Aligned> {
    const OP: &str = "align_to";
    let ndim = x.sizes.len();
    let caller = Location::caller();
    let fail = |kind, message: String| Error::new(kind, OP, message).with_operands([x.extents()]).at(caller);
    if let Some(dim) = (0..ndim).find(|dim| x.names.get(*dim).is_none()) {
        let message = format!(
            "align_to: All input dims must be named. Found unnamed dim at index {dim} of Tensor{}",
            x.list()
        );
        return Err(
            fail(ErrorKind::UnnamedNotAllowed, message).with_repair("name every dim with refine_names first")
        );
    }
    if wanted.iter().filter(|arg| **arg == NameArg::Ellipsis).count() > 1 {
        return Err(too_many_ellipses(OP, x, wanted));
    }
    if wanted.contains(&NameArg::Unnamed) && wanted.contains(&NameArg::Ellipsis) {
        let message = format!(
            "align_to: the desired order of dimensions cannot contain a None name beside an Ellipsis, got {}",
            NameArg::list(wanted)
        );
        return Err(fail(ErrorKind::UnnamedNotAllowed, message));
    }
    let mentioned: Vec<Name> = wanted
        .iter()
        .filter_map(|arg| match arg {
            NameArg::Name(name) => Some(*name),
            _ => None,
        })
        .collect();
    Names::new(OP, mentioned.iter().map(|name| Some(*name)))
        .map_err(|error| error.with_operands([x.extents()]))?;
    let own = |name: Name| (x.names.position(name), Some(name));
    let mut dims = Vec::with_capacity(mentioned.len());
    for arg in wanted {
        match arg {
            NameArg::Name(name) => dims.push(own(*name)),
            NameArg::Unnamed => dims.push((None, None)),
            NameArg::Ellipsis => {
                dims.extend(x.names.iter(ndim).flatten().filter(|name| !mentioned.contains(name)).map(own))
            }
        }
    }
    if let Some(name) =
        x.names.iter(ndim).flatten().find(|name| !dims.iter().any(|(_, to)| *to == Some(*name)))
    {
        let message = format!(
            "align_to: Cannot find dim '{name}' from Tensor{} in desired alignment {}.",
            x.list(),
            NameArg::list(wanted)
        );
        return Err(fail(ErrorKind::NameNotFound, message)
            .with_repair("put \"...\" where the other dims should stand"));
    }
    Ok(dims)
}

/// Names after the dims `start..=end` became one dim of name `name`.
///
/// # Errors
/// [`ErrorKind::DuplicateName`].
#[track_caller]
pub fn flatten(x: Input<'_>, start: usize, end: usize, name: Option<Name>) -> Result<Names> {
    let ndim = x.sizes.len();
    let names = (0..start)
        .map(|dim| x.names.get(dim))
        .chain([name])
        .chain((end + 1..ndim).map(|dim| x.names.get(dim)));
    Names::new("flatten", names).map_err(|error| error.with_operands([x.extents()]))
}

/// Names after dim `dim` became the dims of `names`.
///
/// # Errors
/// [`ErrorKind::DuplicateName`].
#[track_caller]
pub fn unflatten(x: Input<'_>, dim: usize, names: &[Option<Name>]) -> Result<Names> {
    let ndim = x.sizes.len();
    let before = (0..dim).map(|dim| x.names.get(dim));
    let after = (dim + 1..ndim).map(|dim| x.names.get(dim));
    Names::new("unflatten", before.chain(names.iter().copied()).chain(after))
        .map_err(|error| error.with_operands([x.extents()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{NameList, RenameArg, strict};

    fn names(list: &[&str]) -> (Names, Vec<usize>) {
        let names = list.iter().map(|text| (*text != "_").then(|| Name::new(text).unwrap()));
        (Names::unchecked(names), vec![2; list.len()])
    }

    fn input(x: &(Names, Vec<usize>)) -> Input<'_> {
        Input { names: &x.0, sizes: &x.1 }
    }

    fn unified(a: &[&str], b: &[&str]) -> std::result::Result<Names, ErrorKind> {
        unify("add", "broadcast", input(&names(a)), input(&names(b))).map_err(|error| error.kind())
    }

    #[test]
    fn unify_from_the_right() {
        assert_eq!(unified(&["N", "_"], &["_", "C"]), Ok(names(&["N", "C"]).0));
        assert_eq!(unified(&["N", "C"], &["C"]), Ok(names(&["N", "C"]).0));
        assert_eq!(unified(&["_"], &["N", "C"]), Ok(names(&["N", "C"]).0));
        assert_eq!(unified(&["N", "C"], &["N"]), Err(ErrorKind::NameMismatch));
        assert_eq!(unified(&["N", "_"], &["N"]), Err(ErrorKind::Misaligned));
        assert_eq!(strict(|| unified(&["N", "_"], &["_", "C"])), Err(ErrorKind::NameMismatch));
        assert_eq!(strict(|| unified(&["N", "C"], &["C"])), Ok(names(&["N", "C"]).0));
    }

    #[test]
    fn contraction() {
        let product = |a: &[&str], b: &[&str]| {
            matmul("matmul", input(&names(a)), input(&names(b))).map_err(|error| error.kind())
        };
        assert_eq!(product(&["A", "B", "C", "D"], &["B", "E", "F"]), Ok(names(&["A", "B", "C", "F"]).0));
        assert_eq!(product(&["N", "D"], &["in", "out"]), Ok(names(&["N", "out"]).0));
        assert_eq!(product(&["N", "D"], &["x"]), Ok(names(&["N"]).0));
        assert_eq!(product(&["x"], &["D", "M"]), Ok(names(&["M"]).0));
        assert_eq!(product(&["C", "D"], &["D", "C"]), Err(ErrorKind::DuplicateName));
        assert_eq!(product(&["A", "C", "D"], &["B", "D", "E"]), Err(ErrorKind::NameMismatch));
        assert_eq!(strict(|| product(&["N", "D"], &["in", "out"])), Err(ErrorKind::NameMismatch));
        assert_eq!(strict(|| product(&["N", "D"], &["D", "out"])), Ok(names(&["N", "out"]).0));
    }

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
        assert_eq!(aligned(&["C", "H", "N"]), Ok(vec![(Some(1), n("C")), (None, n("H")), (Some(0), n("N"))]));
        assert_eq!(aligned(&["C", "..."]), Ok(vec![(Some(1), n("C")), (Some(0), n("N"))]));
        assert_eq!(aligned(&["C"]), Err(ErrorKind::NameNotFound));
        assert_eq!(aligned(&["C", "N", "C"]), Err(ErrorKind::DuplicateName));
    }
}
