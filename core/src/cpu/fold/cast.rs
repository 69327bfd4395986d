//! Folds of halves, which are cast to `f32` a part at a time.

use super::plain::AnyElements;
use super::{BLOCK, Fold, TASK, join_parts, join_rows, slabs_of, write_each_part};
use crate::cpu::room::{Room, fill, vec_of, write_each, written};
use std::mem::MaybeUninit;

/// The columns that are cast at a time: with the rows of a slab, they stay in the L2 cache.
const CAST_COLUMNS: usize = 256;

/// [`fold_middle`](super::fold_middle) of halves in `f32`, with the same bits as after a cast of all. They are
/// cast a part at a time, which stays in the cache.
pub(crate) fn fold_cast<'a>(
    fold: &dyn Fold<f32>,
    x: AnyElements<'_>,
    [outer, n, inner]: [usize; 3],
    y: &'a mut Room<f32>,
) -> &'a mut [f32] {
    assert_eq!((x.len(), y.len()), (outer * n * inner, outer * inner));
    if y.is_empty() || n == 0 {
        return fill(y, fold.empty());
    }
    if inner == 1 {
        return fold_cast_rows(fold, x, n, y);
    }
    let (rows, slabs) = slabs_of(n, inner);
    // The columns of a single slab are for several threads, too.
    let len = if outer * slabs == 1 { CAST_COLUMNS } else { inner };
    let mut parts = vec_of(outer * slabs * inner, |parts| {
        write_each_part(x.len(), parts, len, &|i, part| {
            let (slab, from) = (i * len / inner, i * len % inner);
            let first = slab % slabs * rows;
            let rows = rows.min(n - first);
            let start = (slab / slabs * n + first) * inner + from;
            let mut numbers = Vec::with_capacity(rows * part.len().min(CAST_COLUMNS));
            for (i, part) in part.chunks_mut(CAST_COLUMNS).enumerate() {
                let columns = part.len();
                let room = &mut numbers.spare_capacity_mut()[..rows * columns];
                fold.columns(x.read_rows(start + i * CAST_COLUMNS, inner, columns, room), columns, 0, part);
            }
            // SAFETY: the pieces make up the part, and the loop writes each.
            unsafe { written(part) }
        })
    });
    for (y, parts) in y.chunks_mut(inner).zip(parts.chunks_mut(slabs * inner)) {
        join_rows(fold, parts, y);
    }
    // SAFETY: `y` is made up of `outer` rows, each of which is written.
    unsafe { written(y) }
}

/// [`fold_cast`] of rows of `n` halves.
fn fold_cast_rows<'a>(
    fold: &dyn Fold<f32>,
    x: AnyElements<'_>,
    n: usize,
    y: &'a mut Room<f32>,
) -> &'a mut [f32] {
    let blocks = n.div_ceil(BLOCK);
    if blocks == 1 {
        return fold_cast_blocks(fold, x, n, y);
    }
    let parts = vec_of(y.len() * blocks, |parts| fold_cast_blocks(fold, x, n, parts));
    write_each(y, |i| join_parts(fold, parts[i * blocks..][..blocks].to_vec()))
}

/// The results of the blocks of each row of `n` halves: `[outer, blocks]`. Several short rows are cast at once.
fn fold_cast_blocks<'a>(
    fold: &dyn Fold<f32>,
    x: AnyElements<'_>,
    n: usize,
    y: &'a mut Room<f32>,
) -> &'a mut [f32] {
    let (blocks, rows) = (n.div_ceil(BLOCK), (BLOCK / n).max(1));
    let len = TASK / BLOCK * rows;
    write_each_part(x.len(), y, len, &|i, part| {
        let mut numbers = [const { MaybeUninit::uninit() }; BLOCK];
        for (j, part) in part.chunks_mut(rows).enumerate() {
            let at = i * len + j * rows;
            let (row, from) = (at / blocks, at % blocks * BLOCK);
            let len = (n - from).min(BLOCK) * part.len();
            fold.rows(x.read(row * n + from, &mut numbers[..len]), part);
        }
        // SAFETY: the rows make up the part, and the loop writes each.
        unsafe { written(part) }
    })
}
