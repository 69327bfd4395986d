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
        let mut at = self.start;
        for part in part.chunks_exact(width) {
            copy(&mut self.y[at..at + width], part);
            at += self.row;
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
