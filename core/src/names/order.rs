//! The errors of calls in the words of their callers: the op that was called, its inputs, and one repair for
//! dims that are in another order, are misspelt or would broadcast by name.

use super::meets::Meets;
use super::rules::{self, NamedInput};
use super::{Name, Names, apart, closest};
use crate::error::{Error, ErrorKind};
use crate::ops::OpInfo;
use crate::tensor::NamedTensor;

/// An input of a call that failed: what it is called, how its names meet the others, and the tensor.
#[doc(hidden)]
pub type OfCall<'a> = (&'static str, Meets, &'a NamedTensor);

/// The error of the call of `op` with these inputs, which may be that of an op that it is made of: about the
/// caller's inputs, with a repair in their names. An error of the op itself keeps its message.
#[doc(hidden)]
#[cold]
pub fn of_call(error: Error, op: &'static str, inputs: &[OfCall<'_>]) -> Error {
    let is_own = error.is_of(op);
    let error = error.in_words(op, inputs);
    use ErrorKind::{Misaligned, NameMismatch, OutNames, Shape};
    if !matches!(error.kind(), NameMismatch | Misaligned | OutNames | Shape) {
        return error;
    }
    let call = Call { op, inputs, row: row_of(op) };
    if let Some((message, repair)) = call.another_order() {
        let error = error.with_repair(repair);
        return if is_own { error } else { error.with_message(message) };
    }
    if error.repair().is_some() {
        return error;
    }
    let repair = match error.kind() {
        Shape => call.without_a_dim(),
        _ => call.other_names(),
    };
    match repair {
        Some(repair) => error.with_repair(repair),
        None => error,
    }
}

/// The row of an op of core, or of its in-place form.
fn row_of(op: &str) -> Option<&'static OpInfo> {
    crate::ops::all().find(|info| info.name == op || info.in_place == Some(op))
}

/// The list of names as it is written.
fn listed(names: &[Name]) -> String {
    rules::argument(&Names::unchecked(names.iter().copied().map(Some)), names.len())
}

/// The names of all dims, if all have one.
fn all_names(x: &NamedTensor) -> Option<Vec<Name>> {
    crate::list(x.names().iter(x.ndim()))
}

/// Whether an input has the dims of the others, or broadcasts to them.
fn is_alike(meets: Meets) -> bool {
    broadcasts(meets) || matches!(meets, Meets::Matched)
}

/// Whether the names of two inputs meet dim by dim, from the right or from the left.
fn is_ordered(meets: Meets) -> bool {
    is_alike(meets) || matches!(meets, Meets::Beside(_) | Meets::Without(_))
}

/// Whether an input broadcasts to the others.
fn broadcasts(meets: Meets) -> bool {
    matches!(meets, Meets::First | Meets::Unified)
}

struct Call<'a> {
    op: &'static str,
    inputs: &'a [OfCall<'a>],
    /// The row, of an op of core.
    row: Option<&'static OpInfo>,
}

impl Call<'_> {
    /// Whether it is written `x.op(&y)`.
    fn is_binary(&self) -> bool {
        let alone = |info: &OpInfo| info.args.iter().all(|arg| arg.default.is_some());
        self.inputs.len() == 2 && self.row.is_some_and(|info| info.tensors.len() == 2 && alone(info))
    }

    fn is_in_place(&self) -> bool {
        self.op.ends_with('_')
    }

    /// The call, or the input, in which `code` takes the place of the input `at`.
    fn with(&self, at: usize, code: impl Fn(&str) -> String) -> Option<String> {
        match (self.is_binary(), at) {
            // Dims cannot be added to the tensor that is written to.
            (_, 0) if self.is_in_place() => None,
            (true, 0) => Some(format!("{}.{}(&y)?", code("x"), self.op)),
            (true, _) => Some(format!("x.{}(&{})?", self.op, code("y"))),
            (false, _) => Some(code(self.inputs[at].0)),
        }
    }

    /// What repairs call an input.
    fn word(&self, at: usize) -> &'static str {
        if self.is_binary() { ["x", "y"][at] } else { self.inputs[at].0 }
    }

    /// The message and the repair for the first inputs with dims in different orders.
    fn another_order(&self) -> Option<(String, String)> {
        for at in 0..self.inputs.len() {
            for first in 0..at {
                if let Some(told) = self.order_of_pair(first, at) {
                    return Some(told);
                }
            }
        }
        self.order_of_factors().or_else(|| self.order_of_sum())
    }

    fn order_of_pair(&self, first: usize, second: usize) -> Option<(String, String)> {
        let (a, b) = (self.inputs[first], self.inputs[second]);
        if !is_ordered(a.1) || !is_ordered(b.1) {
            return None;
        }
        let (like, other) = if a.2.ndim() < b.2.ndim() { (second, first) } else { (first, second) };
        let meets = match (a.1, b.1) {
            (Meets::First, meets) => meets,
            (Meets::Unified, Meets::Unified) => Meets::Unified,
            _ => Meets::Matched,
        };
        let ((name, _, x), (like_name, _, like_x)) = (self.inputs[other], self.inputs[like]);
        let order =
            order_in(x, like_x, meets).filter(|order| all_names(x).is_some_and(|own| own != *order))?;
        if name == like_name {
            let repair =
                "y.align_as(&x)?, with x and y the tensors of the list whose dims are in different orders";
            return Some((told(("y", x), ("x", like_x)), repair.into()));
        }
        let broadcasts = matches!(meets, Meets::Unified) || x.ndim() == like_x.ndim();
        let repair = match broadcasts && order.iter().all(|name| like_x.names().position(*name).is_some()) {
            true => self.with(other, |x| format!("{x}.align_as(&{})?", self.word(like))),
            false => self.with(other, |x| format!("{x}.align_to({})?", listed(&order))),
        };
        Some((told((name, x), (like_name, like_x)), repair?))
    }

    /// Two batches of matrices: the order in which those of one have the dims of the other where a product
    /// needs them.
    fn order_of_factors(&self) -> Option<(String, String)> {
        let [(a, _, x), (b, Meets::Contracted, y)] = self.inputs[..] else { return None };
        let (own, other) = (all_names(x)?, all_names(y)?);
        if own.len() < 2 || other.len() < 2 || own.len() + other.len() < 5 {
            return None;
        }
        let lone = |names: &[Name], of: &[Name]| {
            let mut lone = names.iter().filter(|name| !of.contains(name));
            lone.next().copied().filter(|_| lone.next().is_none())
        };
        let (rows, cols) = (lone(&own, &other)?, lone(&other, &own)?);
        let (row, col) = (own.len() - 2, other.len() - 1);
        let batch = |names: &[Name], without: [Name; 2]| -> Vec<Name> {
            crate::list(names.iter().copied().filter(|name| !without.contains(name)))
        };
        // One of them is as it has to be.
        let (at, order) = if own[row] == rows {
            let summed = own[row + 1];
            (1, [batch(&own, [rows, summed]), vec![summed, cols]].concat())
        } else if other[col] == cols {
            let summed = other[col - 1];
            (0, [batch(&other, [summed, cols]), vec![rows, summed]].concat())
        } else {
            return None;
        };
        if order == [own, other][at] {
            return None;
        }
        let (moved, like) = if at == 0 { ((a, x), (b, y)) } else { ((b, y), (a, x)) };
        let repair = self.with(at, |x| format!("{x}.align_to({})?", listed(&order)))?;
        Some((told(moved, like), repair))
    }

    /// A tensor that is added to the product of two others: the order of the dims of the product.
    fn order_of_sum(&self) -> Option<(String, String)> {
        let [(name, Meets::First, x), (left, meets, a), (right, _, b)] = self.inputs[..] else { return None };
        let is_factor = |meets| matches!(meets, Meets::Contracted | Meets::Along(_));
        if !is_factor(meets) || !is_factor(self.inputs[2].1) {
            return None;
        }
        let (own, mut product, cols) = (all_names(x)?, all_names(a)?, all_names(b)?);
        if matches!(meets, Meets::Contracted) {
            product.pop();
            product.extend(cols.get(1..)?.last());
        } else {
            product.extend(cols);
        }
        if self.op.trim_end_matches('_') == "addbmm" {
            product.drain(..product.len().min(1)); // it sums over the batch
        }
        let is_in_order = own.len() <= product.len() && product.ends_with(&own);
        if is_in_order || own.iter().any(|name| !product.contains(name)) {
            return None;
        }
        let message = format!(
            "the dims of {name}, {}, are in another order than those of the product of {left} and {right}, {}",
            x.names().list(x.ndim()),
            Names::unchecked(product.iter().copied().map(Some)).list(product.len())
        );
        Some((message, format!("{name}.align_to({})?", listed(&product))))
    }

    /// The repair of two inputs whose names do not unify although their dims are in one order.
    fn other_names(&self) -> Option<String> {
        let is_list = self.inputs.first().is_some_and(|(_, meets, _)| !matches!(meets, Meets::First));
        for at in 1..self.inputs.len() {
            for first in 0..at {
                let ((_, a, x), (_, b, y)) = (self.inputs[first], self.inputs[at]);
                if !is_ordered(a) || !is_ordered(b) || rules::unify("", "", x.input(), y.input()).is_ok() {
                    continue;
                }
                if let Some(refined) = self.refined(first, at) {
                    return Some(refined);
                }
                if is_list {
                    return renamed_in_list(x.input(), y.input());
                }
                if let Some(to) = respelt(x.input(), y.input(), &is_close) {
                    let spelt = self.with(at, |y| format!("{y}.rename([{to}])?"));
                    return spelt.map(|spelt| spelt + ", if both names mean the same");
                }
                let (fewer, like) = if x.ndim() < y.ndim() { (first, at) } else { (at, first) };
                let has_all = order_in(self.inputs[fewer].2, self.inputs[like].2, Meets::Unified).is_some();
                return match has_all && [a, b].iter().all(|meets| broadcasts(*meets)) {
                    true => self.with(fewer, |x| format!("{x}.align_as(&{})?", self.word(like))),
                    false => self.by_name(first, at),
                };
            }
        }
        None
    }

    /// In strict mode, the names for the input whose unnamed dim meets a named one.
    fn refined(&self, first: usize, second: usize) -> Option<String> {
        let [x, y] = [first, second].map(|at| self.inputs[at].2.input());
        // A dim that one of them lacks may be any, such as that of the classes.
        if x.sizes.len() != y.sizes.len() && ![first, second].iter().all(|at| broadcasts(self.inputs[*at].1))
        {
            return None;
        }
        let mut dims = from_right(x).zip(from_right(y)).map(|((a, _), (b, _))| (a, b)).enumerate();
        let (place, (a, b)) = dims.find(|(_, (a, b))| a != b)?;
        let (at, unnamed) = if a.is_none() { (first, x) } else { (second, y) };
        let name = a.xor(b).filter(|_| super::is_strict())?;
        let is_list = self.inputs[first].0 == self.inputs[second].0;
        let word = if is_list { ["x", "y"][usize::from(at == second)] } else { self.word(at) };
        Some(rules::refined(word, unnamed, unnamed.sizes.len() - 1 - place, name))
    }

    /// Both inputs with the dims of both, in one order, if an elementwise op can broadcast them.
    fn by_name(&self, first: usize, second: usize) -> Option<String> {
        if ![first, second].iter().all(|at| broadcasts(self.inputs[*at].1))
            || self.is_in_place()
            || self.row.is_none_or(|info| !info.by_element)
        {
            return None;
        }
        let [mut both, others] = [all_names(self.inputs[first].2)?, all_names(self.inputs[second].2)?];
        for name in others {
            if !both.contains(&name) {
                both.push(name);
            }
        }
        let (both, [x, y]) = (listed(&both), [first, second].map(|at| self.word(at)));
        let aligned = [x, y].map(|x| format!("{x}.align_to({both})?"));
        Some(match self.is_binary() {
            true => {
                let by_name = format!("{}.{}(&{})? to broadcast by name", aligned[0], self.op, aligned[1]);
                match respelt(self.inputs[first].2.input(), self.inputs[second].2.input(), &|_, _| true) {
                    Some(to) => format!("{y}.rename([{to}])?, if both mean the same; or {by_name}"),
                    None => by_name + "; or rename a dim if two names mean the same",
                }
            }
            false => format!(
                "let ({x}, {y}) = ({}, {}); before this call, to broadcast by name",
                aligned[0], aligned[1]
            ),
        })
    }

    /// The repair of an input that lacks the last dim, such as a vector for the rows of a matrix.
    fn without_a_dim(&self) -> Option<String> {
        let [(name, a, x), (other, b, y)] = *self.inputs.get(..2)? else { return None };
        if !is_alike(a) || !is_alike(b) || name == other {
            return None;
        }
        let (at, fewer, like) = if x.ndim() < y.ndim() { (0, x, y) } else { (1, y, x) };
        let last = fewer.ndim();
        if last == 0 || like.ndim() != last + 1 || like.sizes()[..last] != *fewer.sizes() {
            return None;
        }
        match [a, b].iter().all(|meets| broadcasts(*meets)) {
            true => self.with(at, |x| format!("{x}.unsqueeze({last})?")),
            false => self.with(at, |x| format!("{x}.unsqueeze({last})?.expand_as(&{})?", self.word(1 - at))),
        }
    }
}

/// The message for dims that are in another order than those of another input.
fn told((name, x): (&str, &NamedTensor), (like, like_x): (&str, &NamedTensor)) -> String {
    format!(
        "the dims of {name}, {}, are in another order than those of {like}, {}",
        x.names().list(x.ndim()),
        like_x.names().list(like_x.ndim())
    )
}

/// The names of `x` in the order of `like`, if that is another one. All dims of `x` have names that `like`
/// has, except for one that can have its own beside a dim of `like`.
fn order_in(x: &NamedTensor, like: &NamedTensor, meets: Meets) -> Option<Vec<Name>> {
    let (own, mut order) = (all_names(x)?, like.names().to_vec(like.ndim()));
    let mut foreign = own.iter().filter(|name| like.names().position(**name).is_none());
    if let Some(name) = foreign.next() {
        let mut free = order.iter_mut().filter(|dim| dim.is_none_or(|dim| !own.contains(&dim)));
        let place = free.next().filter(|_| matches!(meets, Meets::Beside(_)) && own.len() == like.ndim())?;
        *place = Some(*name);
        if foreign.next().is_some() || free.next().is_some() {
            return None;
        }
    }
    let broadcasts = matches!(meets, Meets::Unified);
    let is_right = broadcasts && order.ends_with(&x.names().to_vec(x.ndim()));
    let order: Vec<Name> = crate::list(order.into_iter().flatten().filter(|name| own.contains(name)));
    if is_right || !broadcasts && order == own { None } else { Some(order) }
}

/// The names from the right, with the sizes of their dims.
fn from_right<'a>(x: NamedInput<'a>) -> impl Iterator<Item = (Option<Name>, usize)> + 'a {
    let ndim = x.sizes.len();
    (0..ndim).rev().map(move |dim| (x.names.get(dim), x.sizes[dim]))
}

/// The dims of `y` renamed to those of `x` that have almost the same names, sizes and places. To broadcast by
/// name would make a tensor with both dims.
fn respelt(x: NamedInput<'_>, y: NamedInput<'_>, fits: &dyn Fn(Name, Name) -> bool) -> Option<String> {
    let mut renamed = Vec::new();
    for ((own, n), (name, m)) in from_right(x).zip(from_right(y)) {
        let (Some(own), Some(name)) = (own, name) else { continue };
        if own == name {
            continue;
        }
        let elsewhere = x.names.position(name).is_some() || y.names.position(own).is_some();
        if n != m || elsewhere || !fits(own, name) {
            return None;
        }
        renamed.push(format!("(\"{name}\", \"{own}\")"));
    }
    Some(crate::joined(&renamed, ", ")).filter(|list| !list.is_empty())
}

/// Whether one name is likely the other, misspelt.
fn is_close(own: Name, name: Name) -> bool {
    closest(name.as_str(), [own.as_str()].into_iter()).is_some()
}

/// The repair of two tensors of a list whose names differ at one place.
fn renamed_in_list(x: NamedInput<'_>, y: NamedInput<'_>) -> Option<String> {
    let names = |x| from_right(x).map(|(name, _)| name);
    let (own, name) = apart(names(x), names(y))?;
    // Otherwise it would have the name twice.
    y.names
        .position(own)
        .is_none()
        .then(|| format!("y.rename([(\"{name}\", \"{own}\")])?, if both names mean the same"))
}
