//! Targets in the order of predictions.

use namegrad_core::{Error, ErrorKind, Name, NamedTensor, Result};
use namegrad_io::text::shapes;
use std::panic::Location;

/// The target with the dims of `x` in the same order. It must have the same names where both have any,
/// and the same sizes; nothing broadcasts.
#[track_caller]
pub(super) fn in_order_of(x: &NamedTensor, target: &NamedTensor) -> Result<NamedTensor> {
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
        let message = format!("expected a target of sizes {:?}, got {:?}", x.sizes(), target.sizes());
        return Err(about(Error::new(ErrorKind::Shape, OP, message)));
    }
    x.unified_names("unify", "broadcast", &target).map_err(about)?;
    Ok(target)
}
