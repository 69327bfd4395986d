//! Targets in the order of predictions.

use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use std::panic::Location;

/// The target with the dims of `x` in the same order. It must have the same names where both have any,
/// and the same sizes; nothing broadcasts.
#[track_caller]
pub(super) fn in_order_of(x: &NamedTensor, target: &NamedTensor) -> Result<NamedTensor> {
    const OP: &str = "update";
    let caller = Location::caller();
    let about = |error: Error| error.of(OP).with_operands([x.shape(), target.shape()]).at(caller);
    let names = |x: &NamedTensor| {
        let mut names: Vec<_> = x.names().iter(x.ndim()).collect();
        names.sort();
        names
    };
    let target = match names(x) == names(target) && !names(x).contains(&None) {
        true => target.align_as(x).map_err(about)?,
        false => target.clone(),
    };
    if target.sizes() != x.sizes() {
        let message = format!("expected a target of sizes {:?}, got {:?}", x.sizes(), target.sizes());
        return Err(about(Error::new(ErrorKind::Shape, OP, message)));
    }
    x.unified_names("unify", "broadcast", &target).map_err(about)?;
    Ok(target)
}
