//! Packing a strided view into a dense one, the elements in row-major order.

use super::convert::converter;
use super::pointwise::parallel;
use crate::dtype::DType;

/// A view in memory: where it starts and how it steps.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) ptr: *const u8,
    pub(crate) dtype: DType,
    pub(crate) strides: &'a [isize],
}

// SAFETY: a view is only read, and the tensor behind it outlives the kernel that reads it.

unsafe impl Sync for View<'_> {}

/// Side of the squares in which a transposed matrix is read: a square of 8-byte elements fits the first-level cache.
const TILE: usize = 32;

/// Writes the elements of `src` in row-major order of `sizes` to `dst`, cast to `to`.
///
/// # Safety
/// Every element of the view exists; `dst` has room for all of them and overlaps none.
pub(crate) unsafe fn pack(sizes: &[usize], src: View<'_>, to: DType, dst: *mut u8) {
    let numel: usize = sizes.iter().product();
    if numel == 0 {
        return;
    }
    let Some((&cols, outer)) = sizes.split_last() else {
        // SAFETY: one element.
        return unsafe { converter(src.dtype, to)(1, src.ptr, 1, dst) };
    };
    let convert = converter(src.dtype, to);
    let (from_size, to_size) = (src.dtype.itemsize() as isize, to.itemsize());
    let col_stride = src.strides[outer.len()];
    let rows: usize = outer.iter().product();
    let (from, dst) = (src.ptr as usize, dst as usize); // addresses, so that threads may share them
    // Of a transposed matrix the rows are taken `TILE` at a time, so that a cache line that was fetched is used whole.
    let tiled = col_stride.unsigned_abs() > 1 && rows > 1 && cols > 1;
    let block = if tiled { TILE } else { 1 };
    parallel(rows.div_ceil(block), (1 << 15) / (cols * block).max(1) + 1, |blocks| {
        for block_index in blocks {
            let first = block_index * block;
            let last = (first + block).min(rows);
            let mut col = 0;
            while col < cols {
                let width = if tiled { TILE.min(cols - col) } else { cols };
                for row in first..last {
                    let start = row_offset(row, outer, src.strides) + col as isize * col_stride;
                    // SAFETY: the element is inside the view, and the row inside `dst`.
                    unsafe {
                        let to = (dst as *mut u8).add((row * cols + col) * to_size);
                        convert(width, (from as *const u8).offset(start * from_size), col_stride, to);
                    }
                }
                col += width;
            }
        }
    });
}

/// The offset of row `row` of the outer dims `sizes`.
#[inline]
fn row_offset(mut row: usize, sizes: &[usize], strides: &[isize]) -> isize {
    let mut offset = 0;
    for (size, stride) in sizes.iter().zip(strides).rev() {
        offset += (row % size) as isize * stride;
        row /= size;
    }
    offset
}
