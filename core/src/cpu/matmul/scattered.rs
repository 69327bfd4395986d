//! Products of matrices whose rows overlap in memory, such as the windows of a convolution: a list has the
//! places of the columns of A and of the rows of B.

use super::blocked::{pieces, tile_of};
use super::product::{MatrixView, NumberKind, Tile};

/// Whether there are kernels for [`ScatteredProduct`]s of this kind.
pub(crate) fn has_scattered(kind: &NumberKind) -> bool {
    kind.is_acc && (kind.kernels)().is_some_and(|kernels| kernels.scattered.is_some())
}

/// `C ← A B`, or `C ← A B + C` if it is to `add`. The rows of A and C are at strides, and the rows of B and
/// C are contiguous.
pub(crate) struct ScatteredProduct<'a> {
    pub(crate) kind: &'static NumberKind,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// The bytes from `a` to a column of A and from `b` to a row of B, for each term of a sum.
    pub(crate) offsets: &'a [[i32; 2]],
    pub(crate) a: *const u8,
    pub(crate) a_row: isize,
    pub(crate) b: *const u8,
    pub(crate) c: MatrixView,
    pub(crate) add: bool,
}

impl ScatteredProduct<'_> {
    /// Computes it on this thread.
    ///
    /// # Safety
    /// The operands are valid for these sizes, C for writes by this call alone, and the kind
    /// [`has_scattered`].
    pub(crate) unsafe fn run(&self) {
        let kernels = (self.kind.kernels)().expect("the kind has kernels");
        let scattered = kernels.scattered.expect("the kind has such kernels");
        let size = self.kind.size;
        let mut column = 0;
        while column < self.columns {
            let left = self.columns - column;
            let second = usize::from(left > kernels.lanes);
            let cols = left.min(kernels.lanes << second);
            for (first, mut rows) in pieces(self.rows, scattered[1][0].0, kernels.row_unit) {
                let mut row = first as isize;
                while rows > 0 {
                    let (count, kernel) = tile_of(scattered[second], rows);
                    // SAFETY: the rows and columns exist, and the kernel is for as many of them and for this
                    // CPU.
                    unsafe {
                        kernel(&Tile {
                            k: self.offsets.len(),
                            a: self.a.wrapping_offset(row * self.a_row),
                            a_row: self.a_row,
                            a_col: 0,
                            b: self.b.wrapping_add(column * size),
                            b_row: 0,
                            offsets: self.offsets.as_ptr(),
                            c: self.c.ptr.wrapping_offset(row * self.c.row).wrapping_add(column * size),
                            c_row: self.c.row,
                            rows: count,
                            cols,
                            alpha: self.kind.one,
                            beta: if self.add { self.kind.one } else { 0 },
                        });
                    }
                    row += count as isize;
                    rows -= count;
                }
            }
            column += cols;
        }
    }
}
