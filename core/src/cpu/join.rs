//! Joins tensors.

use crate::dtype::Element;

/// Copies `part`, dense rows of `width` elements, into the rows of `row` elements of `y`, from column `start`
/// on.
pub(crate) fn place_rows<T: Element>(part: &[T], width: usize, start: usize, row: usize, y: &mut [T]) {
    if width == 0 {
        return;
    }
    for (part, row) in part.chunks_exact(width).zip(y.chunks_exact_mut(row)) {
        row[start..start + width].copy_from_slice(part);
    }
}
