//! The rules of name inference: pure functions over lists of names, which run before anything is computed.
//!
//! | rule | function |
//! | --- | --- |
//! | keeps input names | none needed: the result has the names of the input |
//! | removes dimensions | [`remove`] |
//! | unifies names from inputs | [`unify`] |
//! | permutes dimensions | [`permute`] |
//! | contracts away dims | [`matmul`] |
//! | out and in place | [`out`] |
//!
//! The naming API has its own rules, in [`naming`](super::naming).

use super::name::NameSlots;
use super::{Name, Names, is_strict};
use crate::error::{Error, ErrorKind, Result};
use crate::shape::Shape;
use std::panic::Location;

/// An input of a rule: names and sizes.
#[derive(Clone, Copy)]
pub(crate) struct NamedInput<'a> {
    /// The names.
    pub(crate) names: &'a Names,
    /// The sizes.
    pub(crate) sizes: &'a [usize],
}

impl NamedInput<'_> {
    pub(super) fn list(&self) -> String {
        self.names.list(self.sizes.len())
    }

    /// The input as it is stored in an error.
    pub(crate) fn shape(&self) -> Shape {
        Shape { sizes: self.sizes.into(), names: self.names.clone() }
    }
}

/// The names of the dims that are not in `removed`.
pub(crate) fn remove(x: NamedInput<'_>, removed: &[usize]) -> Names {
    if !x.names.is_named() {
        return Names::none();
    }
    let mut kept = NameSlots::new();
    for dim in 0..x.sizes.len() {
        if !removed.contains(&dim) {
            kept.push(x.names.get(dim));
        }
    }
    Names::from_list(kept)
}

/// The names, permuted by `dims`.
pub(crate) fn permute(names: &Names, dims: &[usize]) -> Names {
    if !names.is_named() {
        return Names::none();
    }
    Names::unchecked(dims.iter().map(|dim| names.get(*dim)))
}

/// Unifies two lists of names position by position from the right: equal names are kept, and a named dim wins
/// over an unnamed one. `doing` is the verb in the error: `broadcast` or `cat`.
///
/// # Errors
/// [`ErrorKind::NameMismatch`] for different names at one position, [`ErrorKind::Misaligned`] for one name at
/// two positions, and in strict mode [`ErrorKind::NameMismatch`] for a named and an unnamed dim at one
/// position. The error has no repair; [`of_call`](super::of_call) adds it.
#[inline(never)]
#[track_caller]
pub(crate) fn unify(
    op: &'static str,
    doing: &str,
    left: NamedInput<'_>,
    right: NamedInput<'_>,
) -> Result<Names> {
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
fn unify_named(op: &'static str, doing: &str, left: NamedInput<'_>, right: NamedInput<'_>) -> Result<Names> {
    let (l, r) = (left.sizes.len(), right.sizes.len());
    let ndim = l.max(r);
    // The name at `from_right` of a list that may be shorter.
    let at = |x: &NamedInput<'_>, from_right: usize| {
        x.sizes.len().checked_sub(from_right + 1).and_then(|dim| x.names.get(dim))
    };
    let caller = Location::caller();
    let fail = |kind, message: String| {
        Error::new(kind, op, message).with_operands([left.shape(), right.shape()]).at(caller)
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
                return Err(fail(ErrorKind::NameMismatch, message));
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
                    return Err(fail(ErrorKind::Misaligned, message));
                }
                if is_strict() && k < l.min(r) {
                    let message = format!(
                        "strict names: dim '{name}' meets an unnamed dim when attempting to {doing} dims {} and dims {}",
                        left.list(),
                        right.list()
                    );
                    return Err(fail(ErrorKind::NameMismatch, message));
                }
            }
            _ => {}
        }
    }
    Ok(Names::unchecked((0..ndim).rev().map(|k| at(&left, k).or(at(&right, k)))))
}

/// How repairs call the two tensors of `x.op(&y)`.
pub(crate) const CALL: [&str; 2] = ["x", "y"];

/// Names of a matrix product: the unified batch dims, then the rows of the left operand and the columns of the
/// right one. A vector on the left has no rows; a vector on the right has no columns. `what` is how repairs
/// call the two.
///
/// # Errors
/// [`ErrorKind::NameMismatch`] if batch dims differ, [`ErrorKind::Misaligned`] if the name of a batch dim that
/// meets an unnamed one is elsewhere in the other tensor, [`ErrorKind::DuplicateName`] if the result would have
/// a name twice; in strict mode [`ErrorKind::NameMismatch`] if the contracted dims are named differently.
#[inline]
#[track_caller]
pub(crate) fn matmul(
    op: &'static str,
    what: [&str; 2],
    left: NamedInput<'_>,
    right: NamedInput<'_>,
) -> Result<Names> {
    if !left.names.is_named() && !right.names.is_named() {
        return Ok(Names::none());
    }
    matmul_named(op, what, left, right)
}

#[track_caller]
fn matmul_named(
    op: &'static str,
    what: [&str; 2],
    left: NamedInput<'_>,
    right: NamedInput<'_>,
) -> Result<Names> {
    let (l, r) = (left.sizes.len(), right.sizes.len());
    let batch_dims = |ndim: usize| ndim.saturating_sub(2);
    let (lb, rb) = (batch_dims(l), batch_dims(r));
    let operands = || [left.shape(), right.shape()];
    contracted(op, what, [left, right], [l - 1, if r == 1 { 0 } else { r - 2 }])?;
    let mut names = NameSlots::new();
    for k in (1..=lb.max(rb)).rev() {
        names.push(match (lb.checked_sub(k), rb.checked_sub(k)) {
            (Some(i), Some(j)) => matched(op, what, [left, right], [i, j])?,
            (i, j) => i.and_then(|dim| left.names.get(dim)).or(j.and_then(|dim| right.names.get(dim))),
        });
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
            let name = names[dim].expect("tested above");
            let renamed = format!("{}.rename([(\"{name}\", \"{name}_\")])?", what[1]);
            return Err(Error::new(ErrorKind::DuplicateName, op, message)
                .with_operands(operands())
                .with_repair(if what == CALL { format!("x.{op}(&{renamed})?") } else { renamed }));
        }
    }
    Ok(Names::from_list(names))
}

/// Checks two dims whose products are summed: the specification lets their names differ.
///
/// # Errors
/// In strict mode [`ErrorKind::NameMismatch`] if they do.
#[track_caller]
pub(crate) fn contracted(
    op: &'static str,
    what: [&str; 2],
    [left, right]: [NamedInput<'_>; 2],
    [i, j]: [usize; 2],
) -> Result<()> {
    let (a, b) = (left.names.get(i), right.names.get(j));
    if a == b || !is_strict() {
        return Ok(());
    }
    let show = |name: Option<Name>| name.map_or("an unnamed dim".into(), |name| format!("dim '{name}'"));
    let message = format!("strict names: {} would be contracted with {}", show(a), show(b));
    Err(Error::new(ErrorKind::NameMismatch, op, message)
        .with_operands([left.shape(), right.shape()])
        .with_repair(match (a, b) {
            (Some(a), Some(b)) => renamed(what[1], right, b, a),
            (Some(name), None) => refined(what[1], right, j, name),
            (None, name) => refined(what[0], left, i, name.expect("one of them has a name")),
        }))
}

/// The call that renames a dim of the input `what`, or swaps the two if it has both names.
#[cold]
fn renamed(what: &str, x: NamedInput<'_>, from: Name, to: Name) -> String {
    match x.names.position(to) {
        None => format!("{what}.rename([(\"{from}\", \"{to}\")])?, if both mean the same"),
        Some(_) => format!("{what}.transpose(\"{from}\", \"{to}\")?"),
    }
}

/// Whether all names that both inputs have are at the same position from the right if dims `i` and `j` of the
/// right input are swapped.
#[cold]
fn meet_after_swap([left, right]: [NamedInput<'_>; 2], i: usize, j: usize) -> bool {
    (0..right.sizes.len()).all(|dim| {
        let from = if dim == i {
            j
        } else if dim == j {
            i
        } else {
            dim
        };
        let own = right.names.get(from).and_then(|name| left.names.position(name));
        own.is_none_or(|own| left.sizes.len() - own == right.sizes.len() - dim)
    })
}

/// The call that names one unnamed dim of the input `what`.
#[cold]
pub(super) fn refined(what: &str, x: NamedInput<'_>, dim: usize, name: Name) -> String {
    let names = (0..x.sizes.len()).map(|d| if d == dim { Some(name) } else { x.names.get(d) });
    let list = argument(&Names::unchecked(names), x.sizes.len());
    format!("{what}.refine_names({list})?, if both mean the same")
}

/// The name of two dims that mean the same: equal names are kept, and a named dim wins over an unnamed one.
/// `what` is how repairs call the two inputs.
///
/// # Errors
/// [`ErrorKind::NameMismatch`] for different names, [`ErrorKind::Misaligned`] if the name that an unnamed dim
/// meets is elsewhere in its tensor; in strict mode [`ErrorKind::NameMismatch`] if only one has a name.
#[track_caller]
pub(crate) fn matched(
    op: &'static str,
    what: [&str; 2],
    [left, right]: [NamedInput<'_>; 2],
    [i, j]: [usize; 2],
) -> Result<Option<Name>> {
    let (a, b) = (left.names.get(i), right.names.get(j));
    if a == b {
        return Ok(a);
    }
    let (kind, message, repair) = match (a, b) {
        (Some(a), Some(b)) => (
            ErrorKind::NameMismatch,
            format!(
                "Expected '{a}' (index {i} of {}) to match '{b}' (index {j} of {}) but they do not match.",
                left.list(),
                right.list()
            ),
            match (left.names.position(b), right.names.position(a)) {
                (None, None) => renamed(what[1], right, b, a),
                (_, Some(other)) if meet_after_swap([left, right], j, other) => renamed(what[1], right, b, a),
                _ => String::new(), // one of them is in another order
            },
        ),
        _ => {
            let (named, n, unnamed, u) = if a.is_some() { (left, i, right, j) } else { (right, j, left, i) };
            let name = a.or(b).expect("one of them has a name");
            if unnamed.names.position(name).is_some() {
                let message = format!(
                    "Cannot match '{name}' (index {n} of {}) with None (index {u} of {}) because the latter names already have \
                     '{name}'. Are your tensors misaligned?",
                    named.list(),
                    unnamed.list()
                );
                return Err(Error::new(ErrorKind::Misaligned, op, message)
                    .with_operands([left.shape(), right.shape()]));
            } else if is_strict() {
                let message = format!(
                    "strict names: dim '{name}' (index {n} of {}) meets an unnamed dim (index {u} of {})",
                    named.list(),
                    unnamed.list()
                );
                let unnamed = what[usize::from(a.is_some())];
                let (dim, of) = if a.is_some() { (j, right) } else { (i, left) };
                (ErrorKind::NameMismatch, message, refined(unnamed, of, dim, name))
            } else {
                return Ok(Some(name));
            }
        }
    };
    Err(Error::new(kind, op, message).with_operands([left.shape(), right.shape()]).with_repair(repair))
}

/// Checks two dims that mean the same, if both have a name: see [`matched`]. An unnamed one is matched by
/// position in strict mode too.
///
/// # Errors
/// [`ErrorKind::NameMismatch`] for different names.
#[track_caller]
pub(crate) fn agree(
    op: &'static str,
    what: [&str; 2],
    inputs: [NamedInput<'_>; 2],
    [i, j]: [usize; 2],
) -> Result<()> {
    match (inputs[0].names.get(i), inputs[1].names.get(j)) {
        (Some(_), Some(_)) => matched(op, what, inputs, [i, j]).map(drop),
        _ => Ok(()),
    }
}

/// The names of `y`, the input `what`, which has an element or a slice for each position along `dim` of `x`:
/// its other dims are those of `x`. Along `dim` it has its own name, or that of `x`.
///
/// # Errors
/// Those of dims that have to match, and [`ErrorKind::Misaligned`] if `y` has another dim of `x` along `dim`.
#[track_caller]
pub(crate) fn beside(
    op: &'static str,
    what: &str,
    x: NamedInput<'_>,
    y: NamedInput<'_>,
    dim: usize,
) -> Result<Names> {
    if !x.names.is_named() && !y.names.is_named() || x.names == y.names {
        return Ok(y.names.clone());
    }
    if x.sizes.len() != y.sizes.len() {
        return Ok(y.names.clone()); // a 0-d tensor and a vector
    }
    let mut names = NameSlots::new();
    for d in 0..x.sizes.len() {
        let own = y.names.get(d);
        if d != dim {
            names.push(matched(op, ["x", what], [x, y], [d, d])?);
        } else if let Some(other) = own.and_then(|name| x.names.position(name)).filter(|other| *other != dim)
        {
            let message = format!(
                "dim '{}' (index {other} of {}) is at index {dim} of the {what} {}, where it has the positions",
                own.expect("it has a position"),
                x.list(),
                y.list()
            );
            return Err(Error::new(ErrorKind::Misaligned, op, message).with_operands([x.shape(), y.shape()]));
        } else {
            names.push(own.or(x.names.get(dim)));
        }
    }
    Ok(Names::from_list(names))
}

/// Checks `y`, the input `what`, whose dim `d` belongs to dim `of(d)` of `x`, or to none: a dim may have a name
/// of its own, but not that of another dim of `x`.
///
/// # Errors
/// [`ErrorKind::Misaligned`].
#[track_caller]
pub(crate) fn in_place(
    op: &'static str,
    what: &str,
    [x, y]: [NamedInput<'_>; 2],
    of: impl Fn(usize) -> Option<usize>,
) -> Result<()> {
    for d in 0..y.sizes.len() {
        let Some(name) = y.names.get(d) else { continue };
        if let Some(other) = x.names.position(name).filter(|other| of(d) != Some(*other)) {
            let message = format!(
                "dim '{name}' (index {other} of {}) is at index {d} of the {what} {}, which belongs to {}",
                x.list(),
                y.list(),
                match of(d) {
                    Some(dim) => format!("dim {dim}"),
                    None => "no dim".into(),
                }
            );
            return Err(Error::new(ErrorKind::Misaligned, op, message).with_operands([x.shape(), y.shape()]));
        }
    }
    Ok(())
}

/// The names of `x` whose `dim` has the slices at the positions in the vector `index`: the dim gets the name of
/// the vector, if it has one.
///
/// # Errors
/// [`ErrorKind::DuplicateName`] if another dim of `x` has that name.
#[track_caller]
pub(crate) fn indexed(
    op: &'static str,
    x: NamedInput<'_>,
    index: NamedInput<'_>,
    dim: usize,
) -> Result<Names> {
    let Some(name) = index.names.get(0).filter(|name| x.names.get(dim) != Some(*name)) else {
        return Ok(x.names.clone());
    };
    let names = (0..x.sizes.len()).map(|d| if d == dim { Some(name) } else { x.names.get(d) });
    Names::new(op, names).map_err(|error| error.with_operands([x.shape(), index.shape()]))
}

/// The names of an output tensor that has `existing` names when `computed` names were inferred: an unnamed
/// tensor gets the computed names, and a named one must already have them.
///
/// # Errors
/// [`ErrorKind::OutNames`].
#[track_caller]
pub(crate) fn out(op: &'static str, computed: &Names, existing: NamedInput<'_>) -> Result<Names> {
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
        .with_operands([existing.shape()])
        .with_repair(format!("out.rename({})?", argument(computed, existing.sizes.len()))))
}

/// Names as they are written in a call: a list of strings, of options if a dim is unnamed, or `None`.
pub(crate) fn argument(names: &Names, ndim: usize) -> String {
    let each = || names.iter(ndim);
    if each().all(|name| name.is_none()) {
        return "None".into();
    }
    let text = |name: Option<Name>| match name {
        Some(name) if each().all(|other| other.is_some()) => format!("\"{name}\""),
        Some(name) => format!("Some(\"{name}\")"),
        None => "None".into(),
    };
    format!("[{}]", crate::joined(&crate::list::<_, Vec<_>>(each().map(text)), ", "))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::names::strict;

    /// Names and sizes of a tensor whose dims all have size 2; `_` is an unnamed dim.
    pub(crate) fn names(list: &[&str]) -> (Names, Vec<usize>) {
        let names = list.iter().map(|text| (*text != "_").then(|| Name::new(text).unwrap()));
        (Names::unchecked(names), vec![2; list.len()])
    }

    pub(crate) fn input(x: &(Names, Vec<usize>)) -> NamedInput<'_> {
        NamedInput { names: &x.0, sizes: &x.1 }
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
            matmul("matmul", CALL, input(&names(a)), input(&names(b))).map_err(|error| error.kind())
        };
        assert_eq!(product(&["A", "B", "C", "D"], &["B", "E", "F"]), Ok(names(&["A", "B", "C", "F"]).0));
        assert_eq!(product(&["N", "D"], &["in", "out"]), Ok(names(&["N", "out"]).0));
        assert_eq!(product(&["N", "D"], &["x"]), Ok(names(&["N"]).0));
        assert_eq!(product(&["x"], &["D", "M"]), Ok(names(&["M"]).0));
        assert_eq!(product(&["C", "D"], &["D", "C"]), Err(ErrorKind::DuplicateName));
        assert_eq!(product(&["A", "C", "D"], &["B", "D", "E"]), Err(ErrorKind::NameMismatch));
        assert_eq!(product(&["N", "A", "B"], &["_", "N", "B"]), Err(ErrorKind::Misaligned));
        assert_eq!(product(&["_", "N", "B"], &["N", "B", "A"]), Err(ErrorKind::Misaligned));
        assert_eq!(product(&["N", "A", "B"], &["_", "B", "C"]), Ok(names(&["N", "A", "C"]).0));
        assert_eq!(strict(|| product(&["N", "D"], &["in", "out"])), Err(ErrorKind::NameMismatch));
        assert_eq!(strict(|| product(&["N", "D"], &["D", "out"])), Ok(names(&["N", "out"]).0));
    }
}
