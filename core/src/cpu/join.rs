//! Joins tensors.

use super::room::{Room, copy, written};

/// Rows of `row` elements that are written from left to right.
pub(crate) struct JoinedRows<'a, T> {
    y: &'a mut Room<T>,
    row: usize,
    start: usize,
}

impl<'a, T: Copy> JoinedRows<'a, T> {
    pub(crate) fn new(y: &'a mut Room<T>, row: usize) -> JoinedRows<'a, T> {
        JoinedRows { y, row, start: 0 }
    }

    /// Copies `part`, dense rows of `width` elements, to the rows from where the last part ends on.
    pub(crate) fn place(&mut self, part: &[T], width: usize) {
        if part.is_empty() {
            return;
        }
        assert_eq!(part.len() / width * self.row, self.y.len(), "a part has all rows");
        for (part, row) in part.chunks_exact(width).zip(self.y.chunks_exact_mut(self.row)) {
            copy(&mut row[self.start..self.start + width], part);
        }
        self.start += width;
    }

    /// The rows, which are full.
    pub(crate) fn done(self) -> &'a mut [T] {
        assert!(self.y.is_empty() || self.start == self.row, "the parts fill the rows");
        // SAFETY: each part wrote its columns of all rows, and together they have all columns.
        unsafe { written(self.y) }
    }
}
