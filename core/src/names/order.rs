//! The error of inputs that meet element by element and have the same dims in different orders: one message and
//! one repair for all ops.

use super::meets::Meets;
use crate::error::{Error, ErrorKind};
use crate::tensor::NamedTensor;

/// An input of a call that failed: what it is called, how its names meet the others, and the tensor.
#[doc(hidden)]
pub type OfCall<'a> = (&'a str, Meets, &'a NamedTensor);

/// The error of a call with what puts the dims of its inputs into one order, if they are in different ones. An
/// error keeps a repair that aligns an input in the call or by its name, and that of a core op its message.
#[doc(hidden)]
#[cold]
pub fn in_order(error: Error, inputs: &[OfCall<'_>], keeps: bool) -> Error {
    let about = [ErrorKind::NameMismatch, ErrorKind::Misaligned, ErrorKind::Shape];
    let calls = [format!(".{}(", error.op()), format!("::{}(", error.op())];
    let follows = |repair: &str| {
        let by_name = || inputs.iter().any(|(name, ..)| repair.starts_with(&format!("let {name} = ")));
        repair.contains(".align_") && (calls.iter().any(|call| repair.contains(call)) || by_name())
    };
    if !about.contains(&error.kind()) || error.repair().is_some_and(follows) {
        return error;
    }
    let Some((message, repair)) = another_order(inputs) else { return error };
    match keeps {
        true => error.with_repair(repair),
        false => error.with_message(message).with_repair(repair),
    }
}

/// The message and the repair for the first two inputs with dims in different orders.
fn another_order(inputs: &[OfCall<'_>]) -> Option<(String, String)> {
    let meet = |meets: Meets| {
        matches!(meets, Meets::First | Meets::Unified | Meets::Matched | Meets::Beside(_) | Meets::Without(_))
    };
    let ordered: Vec<&OfCall<'_>> = inputs.iter().filter(|(_, meets, _)| meet(*meets)).collect();
    for (at, second) in ordered.iter().enumerate() {
        for first in &ordered[..at] {
            let (like, other) =
                if first.2.ndim() < second.2.ndim() { (second, first) } else { (first, second) };
            if let Some(order) = order_in(other.2, like.2) {
                return Some(told(other, like, &order));
            }
        }
    }
    None
}

/// The names of `x` in the order of `like`, if that is another one: all dims of `x` have names that `like` has.
fn order_in(x: &NamedTensor, like: &NamedTensor) -> Option<Vec<String>> {
    let mut places = Vec::with_capacity(x.ndim());
    for dim in 0..x.ndim() {
        places.push(like.names().position(x.name(dim)?)?);
    }
    if places.is_sorted() {
        return None;
    }
    places.sort_unstable();
    Some(places.into_iter().filter_map(|dim| like.name(dim)).map(|name| name.to_string()).collect())
}

fn told(
    (name, meets, x): &OfCall<'_>,
    (like_name, _, like): &OfCall<'_>,
    order: &[String],
) -> (String, String) {
    // Two tensors of a list have one name.
    let (name, like_name, of_list) = match name == like_name {
        true => ("y", "x", ", with x and y the tensors of the list whose dims are in different orders"),
        false => (*name, *like_name, ""),
    };
    let message = format!(
        "the dims of {name}, {}, are in another order than those of {like_name}, {}",
        x.names().list(x.ndim()),
        like.names().list(like.ndim())
    );
    let broadcasts = matches!(meets, Meets::First | Meets::Unified);
    let repair = match x.ndim() == like.ndim() || broadcasts {
        true => format!("{name}.align_as(&{like_name})?{of_list}"),
        false => format!("{name}.align_to([\"{}\"])?{of_list}", order.join("\", \"")),
    };
    (message, repair)
}
