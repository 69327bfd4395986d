//! Copies between strided views and dense memory in row-major order.

use super::convert::converter;
use super::threads::parallel;
use crate::dtype::DType;
use crate::layout::product;
use std::mem::MaybeUninit;

/// The elements that a thread packs at a time.
const GRAIN: usize = 1 << 15;

/// The elements of a row that is long enough: finding its start costs little beside them.
const ROW: usize = 1 << 10;

/// A view in memory: its first element, dtype and strides.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) ptr: *const u8,
    pub(crate) dtype: DType,
    pub(crate) strides: &'a [isize],
}

// SAFETY: a view is only read, and the tensor behind it outlives the kernel that reads it.

unsafe impl Sync for View<'_> {}

/// The rows of a tile of a transposed matrix. The source is contiguous along them: a column of a tile is
/// several cache lines of one page.
pub(crate) const TILE_ROWS: usize = 64;
/// The columns of such a tile, each perhaps in its own page of the source.
pub(crate) const TILE_COLS: usize = 64;

/// The rows and columns of the squares of a tile: as many 4-byte elements as a cache line holds. With
/// sizes that are a multiple of a page, all columns compete for the same few lines of the L1 cache.
const SQUARE: usize = 16;

/// Copies a tile of at most [`TILE_ROWS`] by [`TILE_COLS`] elements of `itemsize` bytes, square by square, to
/// rows that are [`TILE_COLS`] elements apart.
///
/// # Safety
/// The elements exist; `dst` has room for a tile and does not overlap them.
// Within its caller, the loops below run out of registers and take a tenth longer.
#[inline(never)]
pub(crate) unsafe fn gather_tile(
    itemsize: usize,
    size: [usize; 2],
    src: *const u8,
    [row_stride, col_stride]: [isize; 2],
    dst: *mut u8,
) {
    #[inline(always)]
    unsafe fn columns<T: Copy>([rows, cols]: [usize; 2], src: *const T, steps: [isize; 2], dst: *mut T) {
        for col in 0..cols {
            for row in 0..rows {
                // SAFETY: guaranteed by the contract of `gather_tile`.
                unsafe {
                    let from = src.offset(row as isize * steps[0] + col as isize * steps[1]);
                    dst.add(row * TILE_COLS + col).write(from.read());
                }
            }
        }
    }
    unsafe fn gather<T: Copy>([rows, cols]: [usize; 2], src: *const T, steps: [isize; 2], dst: *mut T) {
        let squares = [rows / SQUARE * SQUARE, if steps[0] == 1 { cols / SQUARE * SQUARE } else { 0 }];
        // SAFETY: guaranteed by the contract of `gather_tile`, for each part of the tile.
        unsafe {
            let at = |row: usize, col: usize| {
                let from = src.offset(row as isize * steps[0] + col as isize * steps[1]);
                (from, dst.add(row * TILE_COLS + col))
            };
            for col in (0..squares[1]).step_by(SQUARE) {
                for row in (0..squares[0]).step_by(SQUARE) {
                    let (from, to) = at(row, col);
                    columns([SQUARE; 2], from, [1, steps[1]], to);
                }
            }
            let (from, to) = at(squares[0], 0);
            columns([rows - squares[0], squares[1]], from, steps, to);
            let (from, to) = at(0, squares[1]);
            columns([rows, cols - squares[1]], from, steps, to);
        }
    }
    let steps = [row_stride, col_stride];
    // SAFETY: the same contract; only the width of an element matters.
    unsafe {
        match itemsize {
            1 => gather::<u8>(size, src, steps, dst),
            2 => gather::<u16>(size, src.cast(), steps, dst.cast()),
            4 => gather::<u32>(size, src.cast(), steps, dst.cast()),
            _ => gather::<u64>(size, src.cast(), steps, dst.cast()),
        }
    }
}

/// Writes the elements of `src`, a view of `sizes`, to `dst` in row-major order, cast to `to`.
///
/// # Safety
/// Every element of the view exists. `dst` has room for all of them and overlaps none.
pub(crate) unsafe fn pack(sizes: &[usize], src: View<'_>, to: DType, dst: *mut u8) {
    let numel: usize = product(sizes);
    if numel == 0 {
        return;
    }
    let Some((&cols, mut outer)) = sizes.split_last() else {
        // SAFETY: the view has one element.
        return unsafe { converter(src.dtype, to).run(1, src.ptr, 1, dst) };
    };
    let (mut cols, col_stride) = (cols, src.strides[outer.len()]);
    // Short rows that follow one another are one row.
    while let Some((&size, rest)) = outer.split_last()
        && cols < ROW
        && src.strides[rest.len()] == cols as isize * col_stride
    {
        (cols, outer) = (size * cols, rest);
    }
    let convert = converter(src.dtype, to);
    let (from_size, to_size) = (src.dtype.itemsize() as isize, to.itemsize());
    let rows: usize = product(outer);
    let (from, dst) = (src.ptr as usize, dst as usize); // addresses, so that threads may share them
    let start =
        |row: usize| (from as *const u8).wrapping_offset(row_offset(row, outer, src.strides) * from_size);
    let grain = |rows: usize| GRAIN / (cols * rows).max(1) + 1;
    let row_stride = outer.len().checked_sub(1).map_or(0, |dim| src.strides[dim]);
    if src.dtype == to && rows > 1 && row_stride.unsigned_abs() < col_stride.unsigned_abs() && col_stride != 1
    {
        let (height, steps) = (outer[outer.len() - 1], [row_stride, col_stride]);
        let per_matrix = height.div_ceil(TILE_ROWS);
        // A band of long rows is several tasks.
        let pieces = (cols * TILE_ROWS / (2 * GRAIN)).max(1);
        let piece = cols.div_ceil(pieces).next_multiple_of(TILE_COLS);
        let pieces = cols.div_ceil(piece);
        let band_tasks = rows / height * per_matrix;
        return parallel(band_tasks * pieces, grain(TILE_ROWS), |tasks| {
            let mut tile = [MaybeUninit::<u64>::uninit(); TILE_ROWS * TILE_COLS];
            let tile = tile.as_mut_ptr().cast::<u8>();
            let column = |task: usize| task / band_tasks * piece;
            let tiles = (0..piece)
                .step_by(TILE_COLS)
                .flat_map(|col| tasks.clone().map(move |task| (column(task) + col, task % band_tasks)));
            for (col, band) in tiles.filter(|(col, _)| *col < cols) {
                let (matrix, row) = (band / per_matrix, band % per_matrix * TILE_ROWS);
                let (first, tile_rows) = (matrix * height + row, TILE_ROWS.min(height - row));
                let width = TILE_COLS.min(cols - col);
                // SAFETY: the tile is inside the view, and its rows inside `dst`.
                unsafe {
                    let from = start(first).offset(col as isize * col_stride * from_size);
                    gather_tile(to_size, [tile_rows, width], from, steps, tile);
                    for r in 0..tile_rows {
                        let to = (dst as *mut u8).add(((first + r) * cols + col) * to_size);
                        to.copy_from_nonoverlapping(tile.add(r * TILE_COLS * to_size), width * to_size);
                    }
                }
            }
        });
    }
    if rows == 1 {
        return parallel(cols, GRAIN, |range| {
            let (at, start) = (range.start as isize * col_stride * from_size, range.start * to_size);
            // SAFETY: these elements are inside the view and inside `dst`.
            unsafe {
                let from = (from as *const u8).offset(at);
                convert.run(range.len(), from, col_stride, (dst as *mut u8).add(start));
            }
        });
    }
    let beside = outer.last().copied().unwrap_or(1); // rows at an even distance
    parallel(rows, grain(1), |range| {
        let mut row = range.start;
        while row < range.end {
            let (mut from, first) = (start(row), row);
            row = range.end.min(row - row % beside + beside);
            for row in first..row {
                // SAFETY: the row is inside the view and inside `dst`.
                unsafe { convert.run(cols, from, col_stride, (dst as *mut u8).add(row * cols * to_size)) };
                from = from.wrapping_offset(row_stride * from_size);
            }
        }
    });
}

/// Writes the dense elements of `src`, of `itemsize` bytes each, to the view of `sizes` and `strides` at
/// `dst`: the inverse of [`pack`].
///
/// # Safety
/// Every element of the view exists, nothing else accesses it, and `src` has as many elements, none of them
/// in the view.
pub(crate) unsafe fn unpack(
    sizes: &[usize],
    strides: &[isize],
    itemsize: usize,
    src: *const u8,
    dst: *mut u8,
) {
    unsafe fn scatter<T: Copy>(n: usize, src: *const T, dst: *mut T, step: isize) {
        for i in 0..n {
            // SAFETY: guaranteed by the contract of `unpack`.
            unsafe { dst.offset(i as isize * step).write(src.add(i).read()) };
        }
    }
    let (outer, cols, step) = match sizes.split_last() {
        Some((cols, outer)) => (outer, *cols, strides[outer.len()]),
        None => (sizes, 1, 1),
    };
    let rows = if cols == 0 { 0 } else { product(outer) };
    for row in 0..rows {
        // SAFETY: the same contract; only the width of an element matters.
        unsafe {
            let from = src.add(row * cols * itemsize);
            let to = dst.offset(row_offset(row, outer, strides) * itemsize as isize);
            match itemsize {
                _ if step == 1 => to.copy_from_nonoverlapping(from, cols * itemsize),
                1 => scatter::<u8>(cols, from, to, step),
                2 => scatter::<u16>(cols, from.cast(), to.cast(), step),
                4 => scatter::<u32>(cols, from.cast(), to.cast(), step),
                _ => scatter::<u64>(cols, from.cast(), to.cast(), step),
            }
        }
    }
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
