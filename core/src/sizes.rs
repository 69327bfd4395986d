//! Checked arithmetic of sizes: the number of elements, and broadcasting.

use crate::error::{Error, ErrorKind, Result};
use crate::layout::{Sizes, has};
use crate::short::Short;

/// The number of elements, or an error if it or the number of bytes overflows.
#[inline(never)]
#[track_caller]
pub(crate) fn checked_numel(op: &'static str, sizes: &[usize], itemsize: usize) -> Result<usize> {
    let mut product = 1usize;
    let mut fits = true;
    for size in sizes {
        // A size of zero makes the tensor empty; the product of the other sizes must not overflow either.
        match product.checked_mul((*size).max(1)) {
            Some(next) => product = next,
            None => fits = false,
        }
    }
    if !fits || product.checked_mul(itemsize).is_none_or(|bytes| bytes > isize::MAX as usize) {
        let message = format!(
            "out of memory: sizes {sizes:?} of {itemsize} bytes an element do not fit in memory of any size"
        );
        return Err(Error::new(ErrorKind::OutOfMemory, op, message));
    }
    Ok(if has(sizes, 0) { 0 } else { product })
}

/// The sizes that two shapes broadcast to, from the right.
///
/// # Errors
/// [`ErrorKind::Shape`].
#[inline(never)]
#[track_caller]
pub(crate) fn broadcast(op: &'static str, a: &[usize], b: &[usize]) -> Result<Sizes> {
    if a == b {
        return Ok(Sizes::from_slice(a));
    }
    let ndim = a.len().max(b.len());
    let mut sizes: Sizes = Short::from_elem(1, ndim);
    for k in 0..ndim {
        let at = |x: &[usize]| if k < x.len() { x[x.len() - 1 - k] } else { 1 };
        let (x, y) = (at(a), at(b));
        sizes[ndim - 1 - k] = match (x, y) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            (x, y) => {
                let message = format!(
                    "The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {} of {a:?} and {b:?}",
                    ndim - 1 - k
                );
                return Err(Error::new(ErrorKind::Shape, op, message));
            }
        };
    }
    Ok(sizes)
}
