//! Products with a vector or a few rows. Each number of B is used only a few times, so the speed depends on
//! reading B in its order in memory, and little else.

use super::axpys::ROWS;
use super::buffer::{PANELS, with_buffer};
use super::product::{Product, Strip, Sums};

/// The most rows of A for dot products.
const DOTS: usize = 4;
/// The bytes per row of A from which B is large: reading it in order is then worth more than keeping sums in
/// registers.
const LARGE: usize = 1 << 18;

/// The direction in which B is contiguous and read: along its columns, by `dots`, or along its rows, by
/// `axpys`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ReadOrder {
    Columns,
    Rows,
}

/// The direction for a shape, if the product is computed by the function of this file.
pub(super) fn direction(p: &Product) -> Option<ReadOrder> {
    let size = p.kind.size as isize;
    if p.m <= DOTS && p.b.row == size && (p.b.col != size || p.n == 1) {
        Some(ReadOrder::Columns)
    } else if p.b.col == size && (p.m == 1 || p.m <= ROWS && p.k * p.n * p.kind.size > p.m * LARGE) {
        Some(ReadOrder::Rows)
    } else {
        None
    }
}

/// The most rows of a part that stays together when C is cut for threads.
pub(super) const TOGETHER: usize = ROWS;

/// The largest `k` of a strip: as many numbers of each row of A stay in the cache while the columns of B
/// pass.
const K_MAX: usize = 4096;

/// The [`ProductMethod`](super::method::ProductMethod) for few rows. They are computed in strips of `k`, all
/// but the first of which add to C. The rows of A are copied to a buffer unless they are contiguous
/// accumulators. If B does not consist of accumulators, some rows and columns of it at a time are widened
/// into a buffer that fits into the cache.
///
/// # Safety
/// The contract of [`ProductMethod::run`](super::method::ProductMethod::run).
pub(super) unsafe fn by_strips(p: &Product, sums: Sums, direction: ReadOrder) {
    let kernels = (p.kind.kernels)().expect("only a CPU with kernels uses this method");
    let (step, wide) = match direction {
        ReadOrder::Columns => (kernels.dots, (2048, 16)),
        ReadOrder::Rows => (kernels.axpys, (64, 512)),
    };
    let (is_acc, size) = (p.kind.is_acc, p.kind.acc_size());
    let (k_max, n_max) = if is_acc { (p.k.min(K_MAX), p.n) } else { (p.k.min(wide.0), p.n.min(wide.1)) };
    let ready = is_acc && p.a.col == size as isize;
    let a_len = if ready { 0 } else { p.m * k_max };
    let b_len = if is_acc { 0 } else { k_max * n_max };
    with_buffer(&PANELS, (a_len + b_len) * size, &mut |a_wide| {
        for l in (0..p.k).step_by(k_max) {
            let k = k_max.min(p.k - l);
            // SAFETY: the rows of A and this part of B exist, and the buffer has room for them.
            unsafe {
                let a = p.a.at(0, l);
                let a = if ready { a } else { p.kind.copy_rows(a, p.m, k, a_wide) };
                for j in (0..p.n).step_by(n_max) {
                    let n = n_max.min(p.n - j);
                    let (b, b_wide) = (p.b.at(l, j), a_wide.add(a_len * size));
                    let b = match direction {
                        _ if is_acc => b,
                        ReadOrder::Columns => p.kind.copy_rows(b.t(), n, k, b_wide).t(),
                        ReadOrder::Rows => p.kind.copy_rows(b, k, n, b_wide),
                    };
                    let sums = Sums {
                        ptr: sums.ptr.add(j * size),
                        row: sums.row,
                        beta: if l == 0 { sums.beta } else { p.kind.one },
                    };
                    step(&Strip { m: p.m, k, n, alpha: p.alpha, a: a.ptr, a_row: a.row, b, sums });
                }
            }
        }
    });
}
