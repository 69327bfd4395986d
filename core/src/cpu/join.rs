//! Joins tensors.

use super::room::{Room, copy, written};
use super::threads::{DisjointParts, parallel};

/// The elements that a thread copies at a time.
const TASK: usize = 1 << 16;

/// Rows of `row` elements that are written from left to right.
pub(crate) struct JoinedRows<'a, T> {
    y: &'a mut Room<T>,
    row: usize,
    start: usize,
}

impl<'a, T: Copy + Send + Sync> JoinedRows<'a, T> {
    pub(crate) fn new(y: &'a mut Room<T>, row: usize) -> JoinedRows<'a, T> {
        JoinedRows { y, row, start: 0 }
    }

    /// Copies `part`, dense rows of `width` elements, to the rows from where the last part ends on.
    pub(crate) fn place(&mut self, part: &[T], width: usize) {
        if part.is_empty() {
            return;
        }
        assert_eq!(part.len() / width * self.row, self.y.len(), "a part has all rows");
        let (start, row, y) = (self.start, self.row, DisjointParts::new(self.y));
        parallel(part.len(), TASK, |range| {
            let (mut at, mut to) = (range.start, range.start / width * row + start + range.start % width);
            while at < range.end {
                let end = range.end.min(at - at % width + width);
                // SAFETY: each element of the part is copied once.
                copy(unsafe { y.part(to..to + end - at) }, &part[at..end]);
                to += end - at + row - width;
                at = end;
            }
        });
        self.start += width;
    }

    /// The rows, which are full.
    pub(crate) fn done(self) -> &'a mut [T] {
        assert!(self.y.is_empty() || self.start == self.row, "the parts fill the rows");
        // SAFETY: each part wrote its columns of all rows, and together they have all columns.
        unsafe { written(self.y) }
    }
}
