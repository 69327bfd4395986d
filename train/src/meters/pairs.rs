//! Targets in the order of predictions.

use namegrad_core::{Error, ErrorKind, Name, NamedTensor, Result, called, in_rust};
use namegrad_io::text::shapes;
use std::panic::Location;

/// The target with the dims of `x` in the same order. It must have the same names where both have any,
/// and the same sizes; nothing broadcasts. `repair` is that of other sizes, and empty if there is none.
#[track_caller]
pub(super) fn in_order_of(
    x: &NamedTensor,
    target: &NamedTensor,
    repair: &dyn Fn() -> String,
) -> Result<NamedTensor> {
    const OP: &str = "update";
    let caller = Location::caller();
    let about = |error: Error| error.of(OP).with_operands(shapes(&[x, target])).at(caller);
    let has = |name: Option<Name>| name.is_some_and(|name| target.names().position(name).is_some());
    let has_same_names = x.ndim() == target.ndim() && x.names().iter(x.ndim()).all(has);
    let target = match has_same_names {
        true => target.align_as(x).map_err(about)?,
        false => target.clone(),
    };
    if target.sizes() != x.sizes() {
        let message = match extra_dim(x, &target) {
            Some(dim) => format!(
                "the target has no {}: its sizes are {:?}, not {:?}",
                called(x, dim),
                target.sizes(),
                x.sizes()
            ),
            None => format!("expected a target of sizes {:?}, got {:?}", x.sizes(), target.sizes()),
        };
        return Err(about(Error::new(ErrorKind::Shape, OP, message)).with_repair(repair()));
    }
    x.unified_names("unify", "broadcast", &target).map_err(about)?;
    Ok(target)
}

/// The dim that `x` has in addition to those of `other`; of several that it can be, the last one.
pub(super) fn extra_dim(x: &NamedTensor, other: &NamedTensor) -> Option<usize> {
    let is_shared = |name: Name| other.names().position(name).is_some();
    let is_extra = |dim: &usize| {
        let (before, after) = (&x.sizes()[..*dim], &x.sizes()[dim + 1..]);
        [before, after].concat() == other.sizes() && !x.name(*dim).is_some_and(is_shared)
    };
    (0..x.ndim()).rev().find(is_extra)
}

/// The call that removes an extra dim of size one from predictions or a target, for a repair; empty if there is
/// none.
pub(super) fn squeezed(x_name: &str, x: &NamedTensor, target: &NamedTensor) -> String {
    for (name, x, other) in [(x_name, x, target), ("target", target, x)] {
        if let Some(dim) = extra_dim(x, other).filter(|dim| x.sizes()[*dim] == 1) {
            return format!("{name}.squeeze({})?", in_rust(x, dim));
        }
    }
    String::new()
}
