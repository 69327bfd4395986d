//! The product of a matrix with itself transposed. It is symmetric, so only the tiles on one side of the
//! diagonal are computed. The bits are those of the whole product: each sum adds the same numbers in the same
//! order on both sides.

use super::blocked::{blocked_above, is_one_block};
use super::buffer::{SUMS, with_buffer};
use super::method::{ProductMethod, serial};
use super::product::{BlockResults, MatrixView, PanelCopy, Product, Sums};
use crate::callback::Callback;
use crate::cpu::threads::each;

/// The least size of a C of which half is computed.
const LEAST: usize = 64;
/// C is cut after multiples of this many columns, which fill whole tiles.
const UNIT: usize = 32;
/// The sides of the squares of C whose sums are in a buffer at once. Smaller ones are packed more often, and
/// larger ones leave less out.
const SQUARE: usize = 192;

/// Computes a product with a B that is A transposed, cut for `parts` threads. Otherwise, or if this would not
/// be faster, it does nothing and returns false.
///
/// # Safety
/// The contract of [`gemm`](super::gemm), and `k` is not 0.
pub(super) unsafe fn gram(p: &Product, method: ProductMethod, parts: usize) -> bool {
    let is_gram = p.a.ptr == p.b.ptr && (p.m, p.a.row, p.a.col) == (p.n, p.b.col, p.b.row);
    let size = p.kind.size as isize;
    if !is_gram || p.n < LEAST || method != ProductMethod::Blocked || p.c.col != size {
        return false;
    }
    let (in_strips, side) = (p.kind.is_acc || is_one_block(p), p.n.div_ceil(SQUARE));
    // Only C that is cut in other ways keeps more threads busy.
    if parts > if in_strips { p.n / (2 * UNIT) } else { side * (side + 1) / 2 } {
        return false;
    }
    // SAFETY: the contract is the same, and the parts share no element of C.
    unsafe {
        if p.kind.is_acc {
            // C is not written in place twice.
            if p.beta != 0 || p.c.row < p.n as isize * size {
                return false;
            }
            each_strip(p.n, parts, &|from, to| {
                blocked_above(p, from, to);
                mirror(p, from, to);
            });
        } else if in_strips {
            each_strip(p.n, parts, &|from, to| blocked_above(p, from, to));
        } else {
            each(side * side, &|square| {
                let (i, j) = (square / side, square % side);
                if i <= j {
                    by_square(p, i * SQUARE, j * SQUARE);
                }
            });
        }
    }
    true
}

/// Calls `f` with the ranges of columns of up to `parts` parts of C, at once. Above the diagonal, they have
/// about the same size.
fn each_strip(n: usize, parts: usize, f: &(dyn Callback<(usize, usize)> + Sync)) {
    let start = |part: usize| match n as f64 * (part as f64 / parts as f64).sqrt() {
        _ if part == parts => n,
        at => at as usize / UNIT * UNIT,
    };
    each(parts, &|part| {
        let (from, to) = (start(part), start(part + 1));
        if from < to {
            f.call_with((from, to));
        }
    });
}

/// Copies the numbers above the diagonal of the columns `from..to` to the rows `from..to`.
///
/// # Safety
/// The contract of [`gemm`](super::gemm) for these columns and rows. The numbers of C are accumulators.
unsafe fn mirror(p: &Product, from: usize, to: usize) {
    let (c, size) = (p.c, p.kind.size);
    for j in (from..to).step_by(UNIT) {
        let k = (to - j).min(UNIT);
        // SAFETY: the numbers are inside C. What is read is above the diagonal, what is written below it.
        unsafe {
            let (width, k_stride, stride) = (c.row as usize / size, c.col, c.row);
            let (from, to) = (c.at(0, j).ptr, c.at(j, 0).ptr);
            (p.kind.pack)(PanelCopy { k, count: j, width, from, k_stride, stride, to });
            // The square on the diagonal.
            for i in j..j + k {
                for l in j..i {
                    c.at(i, l).ptr.copy_from_nonoverlapping(c.at(l, i).ptr, size);
                }
            }
        }
    }
}

/// Computes a square of C from row `i` and column `j` on, and that on the other side of the diagonal, from
/// sums in a buffer.
///
/// # Safety
/// The contract of [`gemm`](super::gemm) for both squares.
unsafe fn by_square(p: &Product, i: usize, j: usize) {
    let part = p.part(i, (p.m - i).min(SQUARE), j, (p.n - j).min(SQUARE));
    // SAFETY: the contract is the same. The buffer has room for the sums twice; the method initializes them
    // and, since `beta` is 0, does not read them before.
    unsafe {
        if i == j {
            return serial(&part, ProductMethod::Blocked);
        }
        let (Product { m, n, beta, c, .. }, size) = (part, p.kind.acc_size());
        with_buffer(&SUMS, 2 * m * n * size, &mut |sums| {
            let turned = sums.add(m * n * size);
            let (row, col) = ((n * size) as isize, size as isize);
            ProductMethod::Blocked.run(&part, Sums { ptr: sums, row, beta: 0 });
            (p.kind.acc)().copy_rows(MatrixView { ptr: sums, row, col }.t(), n, m, turned);
            (p.kind.write)(&BlockResults { sums: turned, width: m, m: n, n: m, beta, c: p.c.at(j, i) });
            (p.kind.write)(&BlockResults { sums, width: n, m, n, beta, c });
        });
    }
}
