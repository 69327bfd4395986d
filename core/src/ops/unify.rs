//! Names unified for an op, with the repair if they do not unify.

use crate::error::{Error, ErrorKind, Result};
use crate::names::{Names, apart, closest, rules};
use crate::shape::Shape;
use crate::tensor::NamedTensor;

/// [`rules::unify`], whose error gets the line that repairs the call.
///
/// # Errors
/// Same as [`rules::unify`].
#[inline(never)]
#[track_caller]
pub(crate) fn unify(
    op: &'static str,
    doing: &str,
    left: rules::NamedInput<'_>,
    right: rules::NamedInput<'_>,
) -> Result<Names> {
    rules::unify(op, doing, left, right).map_err(|error| repaired(error, op, doing))
}

impl NamedTensor {
    /// The unified names of this tensor and `other`; see `rules::unify`.
    ///
    /// # Errors
    /// Same as `rules::unify`.
    #[doc(hidden)]
    #[track_caller]
    pub fn unified_names(&self, op: &'static str, doing: &str, other: &NamedTensor) -> Result<Names> {
        unify(op, doing, self.input(), other.input())
    }

    /// Checks the names of two dims whose products are summed; see `rules::contracted`.
    ///
    /// # Errors
    /// Same as `rules::contracted`.
    #[doc(hidden)]
    #[track_caller]
    pub fn check_contracted(&self, op: &'static str, other: &NamedTensor, dims: [usize; 2]) -> Result<()> {
        rules::contracted(op, [self.input(), other.input()], dims)
    }

    /// Checks the names of two dims that mean the same; see `rules::matched`.
    ///
    /// # Errors
    /// Same as `rules::matched`.
    #[doc(hidden)]
    #[track_caller]
    pub fn check_matched(&self, op: &'static str, other: &NamedTensor, dims: [usize; 2]) -> Result<()> {
        rules::matched(op, "y", [self.input(), other.input()], dims).map(drop)
    }

    /// The names that this tensor gets as an output tensor when `computed` names were inferred; see
    /// `rules::out`.
    ///
    /// # Errors
    /// [`ErrorKind::OutNames`].
    #[doc(hidden)]
    #[track_caller]
    pub fn out_names(&self, op: &'static str, computed: &Names) -> Result<Names> {
        rules::out(op, computed, self.input())
    }
}

/// The error of two shapes whose names do not unify, with a repair unless it has one.
#[cold]
fn repaired(error: Error, op: &str, doing: &str) -> Error {
    let (None, [left, right]) = (error.repair(), error.operands()) else { return error };
    let repair = match doing {
        "cat" if error.kind() == ErrorKind::NameMismatch => Some(brought_together(op, left, right)),
        _ => alignment(op, doing, left, right),
    };
    match repair {
        Some(repair) => error.with_repair(repair),
        None => error,
    }
}

/// The line that brings two tensors of a list together whose names differ at one place.
#[cold]
fn brought_together(op: &str, left: &Shape, right: &Shape) -> String {
    let all = |x: &Shape, of: &Shape| {
        x.names.iter(x.sizes.len()).all(|name| name.is_some_and(|name| of.names.position(name).is_some()))
    };
    match all(left, right) && all(right, left) {
        true => format!("Tensor::{op}([&x, &y.align_as(&x)?], dim)?"),
        false => {
            let from_right = |x: &Shape| x.names.iter(x.sizes.len()).rev().collect::<Vec<_>>();
            let (a, b) = apart(from_right(left).into_iter(), from_right(right).into_iter())
                .expect("the names differ at one place");
            match right.names.position(a).is_none() {
                true => format!("y.rename([(\"{b}\", \"{a}\")])?, if both names mean the same"),
                false => String::new(), // it would have the name twice
            }
        }
    }
}

/// A repair for two inputs whose names do not unify: it renames dims whose names look misspelled, or aligns
/// one input to the other, if that is possible.
#[cold]
fn alignment(op: &str, doing: &str, left: &Shape, right: &Shape) -> Option<String> {
    let list = |x: &Shape| x.names.iter(x.sizes.len()).collect::<Vec<_>>();
    let (l, r) = (list(left), list(right));
    // The tensors of a layer are not `x` and `y`.
    if doing != "broadcast" || op.starts_with(char::is_uppercase) {
        return None;
    }
    if let Some(repair) = respelled(op, left, right) {
        return Some(repair);
    }
    if l.iter().chain(&r).any(Option::is_none) {
        return None;
    }
    let (of_left, of_right) = (r.iter().all(|name| l.contains(name)), l.iter().all(|name| r.contains(name)));
    if !is_binary(op) && (of_left || of_right) {
        let (like, aligned) = if of_left {
            (left.names.list(left.sizes.len()), right.names.list(right.sizes.len()))
        } else {
            (right.names.list(right.sizes.len()), left.names.list(left.sizes.len()))
        };
        return Some(format!(
            "let y = y.align_as(&x)?; before this call, with x the tensor of dims {like} and y that of {aligned}"
        ));
    }
    if of_left {
        return Some(format!("x.{op}(&y.align_as(&x)?)?"));
    }
    if op.ends_with('_') {
        return None; // the result would have more dims than the tensor that is written to
    }
    if of_right {
        return Some(format!("x.align_as(&y)?.{op}(&y)?"));
    }
    let both = l.iter().chain(r.iter().filter(|name| !l.contains(name)));
    let both: Vec<String> = both.flatten().map(|name| format!("\"{name}\"")).collect();
    let both = both.join(", ");
    if !is_binary(op) {
        return Some(format!(
            "let (x, y) = (x.align_to([{both}])?, y.align_to([{both}])?); before this call, to broadcast by name"
        ));
    }
    Some(format!(
        "x.align_to([{both}])?.{op}(&y.align_to([{both}])?)? to broadcast by name; or rename a dim if two names mean the same"
    ))
}

/// The repair for dims of equal sizes at equal positions whose names are almost the same: the inputs unify
/// when those of the right one are renamed. To broadcast by name would make a tensor with both dims.
fn respelled(op: &str, left: &Shape, right: &Shape) -> Option<String> {
    let from_right = |x: &Shape, k: usize| {
        let dim = x.sizes.len().checked_sub(k + 1)?;
        Some((x.names.get(dim)?, x.sizes[dim]))
    };
    let mut renamed = Vec::new();
    for k in 0..left.sizes.len().min(right.sizes.len()) {
        let (Some((own, n)), Some((name, m))) = (from_right(left, k), from_right(right, k)) else {
            continue;
        };
        if own == name {
            continue;
        }
        let elsewhere = left.names.position(name).is_some() || right.names.position(own).is_some();
        if n != m || elsewhere || closest(name.as_str(), [own.as_str()].into_iter()).is_none() {
            return None;
        }
        renamed.push(format!("(\"{name}\", \"{own}\")"));
    }
    if renamed.is_empty() {
        return None;
    }
    let call = format!("y.rename([{}])?", renamed.join(", "));
    Some(match is_binary(op) {
        true => format!("x.{op}(&{call})?, if both names mean the same"),
        false => {
            let dims = right.names.list(right.sizes.len());
            format!(
                "let y = {call}; before this call, with y the tensor of dims {dims}, if both names mean the same"
            )
        }
    })
}

/// Is the call of the op `x.op(&y)`?
#[cold]
fn is_binary(op: &str) -> bool {
    let info = super::all().find(|info| info.name == op || info.in_place == Some(op));
    info.is_none_or(|info| info.tensors.len() == 2 && info.args.iter().all(|arg| arg.default.is_some()))
}
