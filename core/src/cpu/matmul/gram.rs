//! The product of a matrix with itself transposed. It is symmetric, so only the tiles on one side of the
//! diagonal are computed. The bits are those of the whole product: each sum adds the same numbers in the same
//! order on both sides.

use super::blocked::{blocked_above, is_one_block};
use super::element::{Accumulator, MatmulElement};
use super::pack::{SUMS, pack, with_buffer};
use super::rounded::{turn, write};
use super::{Method, Product, serial};
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
pub(super) unsafe fn gram<T: MatmulElement>(p: &Product<T>, method: Method, parts: usize) -> bool {
    let is_gram =
        p.a.ptr == p.b.ptr && (p.m, p.a.row_stride, p.a.col_stride) == (p.n, p.b.col_stride, p.b.row_stride);
    if !is_gram || p.n < LEAST || !matches!(method, Method::Blocked) || p.c.col_stride != 1 {
        return false;
    }
    let (in_strips, side) = (T::IS_ACC || is_one_block(p), p.n.div_ceil(SQUARE));
    // Only C that is cut in other ways keeps more threads busy.
    if parts > if in_strips { p.n / (2 * UNIT) } else { side * (side + 1) / 2 } {
        return false;
    }
    // SAFETY: the contract is the same, and the parts share no element of C.
    unsafe {
        if T::IS_ACC {
            // C is not written in place twice.
            if p.beta != T::Acc::ZERO || p.c.row_stride < p.n as isize {
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
fn each_strip(n: usize, parts: usize, f: &(dyn Fn(usize, usize) + Sync)) {
    let start = |part: usize| match n as f64 * (part as f64 / parts as f64).sqrt() {
        _ if part == parts => n,
        at => at as usize / UNIT * UNIT,
    };
    each(parts, &|part| {
        let (from, to) = (start(part), start(part + 1));
        if from < to {
            f(from, to);
        }
    });
}

/// Copies the numbers above the diagonal of the columns `from..to` to the rows `from..to`.
///
/// # Safety
/// The contract of [`gemm`](super::gemm) for these columns and rows. `T` is its own accumulator.
unsafe fn mirror<T: MatmulElement>(p: &Product<T>, from: usize, to: usize) {
    let (c, stride) = (p.c.ptr.cast::<T::Acc>(), p.c.row_stride);
    for j in (from..to).step_by(UNIT) {
        let cols = (to - j).min(UNIT);
        // SAFETY: the numbers are inside C. What is read is above the diagonal, what is written below it.
        unsafe {
            let columns = c.add(j).cast_const();
            pack(cols, j, stride as usize, columns, 1, stride, c.offset(j as isize * stride));
            // The square on the diagonal.
            for i in j..j + cols {
                for l in j..i {
                    let above = *c.offset(l as isize * stride).add(i);
                    c.offset(i as isize * stride).add(l).write(above);
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
unsafe fn by_square<T: MatmulElement>(p: &Product<T>, i: usize, j: usize) {
    let part = p.part(i, (p.m - i).min(SQUARE), j, (p.n - j).min(SQUARE));
    // SAFETY: the contract is the same. The buffer has room for the sums twice; the method initializes them
    // and, since `beta` is 0, does not read them before.
    unsafe {
        if i == j {
            return serial(&part, Method::Blocked);
        }
        let (m, n) = (part.m, part.n);
        with_buffer(&SUMS, 2 * m * n, |sums: *mut T::Acc| {
            let turned = sums.add(m * n);
            Method::Blocked.run(&part, T::Acc::ZERO, sums, n as isize);
            turn(sums, n, m, n, turned);
            write(turned, m, n, m, p.beta, p.c.at(j, i));
            write(sums, n, m, n, p.beta, part.c);
        });
    }
}
