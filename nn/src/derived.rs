//! The items that the code of the derive macro uses.

pub use crate::copy::{Cloned, NotClonedHere, Probe};
pub use namegrad_autograd::Tensor;
pub use namegrad_core::Result;

use crate::ModuleFields;
use crate::summary::Summary;
use std::fmt;

/// `Display` for a module: its summary.
#[inline(never)]
pub fn show(module: &dyn ModuleFields, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    fmt::Display::fmt(&Summary::of(module.describe(), &module, None), f)
}

/// `describe` of a module that has only its name.
#[inline(never)]
pub fn text(name: &str) -> String {
    name.into()
}
