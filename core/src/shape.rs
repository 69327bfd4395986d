//! [`Shape`], the sizes and names of a tensor.

use crate::layout::Sizes;
use crate::names::Names;
use std::fmt;

/// The sizes of a tensor with the names of its dims. It prints as in errors: `[N=32, C=3, ?=7]` or, without
/// names, `[32, 3, 7]`.
#[derive(PartialEq, Eq)]
pub struct Shape {
    /// The sizes, outermost first.
    pub sizes: Sizes,
    /// The names: as many as sizes, or none.
    pub names: Names,
}

impl Clone for Shape {
    #[inline(never)]
    fn clone(&self) -> Shape {
        Shape { sizes: self.sizes.clone(), names: self.names.clone() }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (dim, size) in self.sizes.iter().enumerate() {
            if dim > 0 {
                f.write_str(", ")?;
            }
            match self.names.get(dim) {
                Some(name) => write!(f, "{name}={size}")?,
                None if self.names.is_named() => write!(f, "?={size}")?,
                None => write!(f, "{size}")?,
            }
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
