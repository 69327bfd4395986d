//! Products with a vector or a few rows. Each number of B is used only a few times, so the speed depends on
//! reading B in its order in memory, and little else.

use super::element::{Accumulator, MatmulElement};
use super::pack::{PANELS, pack, with_buffer};
use super::{Mat, Method, Product, axpys, dots};

/// The most rows of A for the methods in this file.
pub(super) const ROWS: usize = 8;
/// The most rows of A for [`dots`].
pub(super) const DOTS: usize = 4;
/// The bytes per row of A from which B is large: reading it in order is then worth more than keeping sums in
/// registers.
const LARGE: usize = 1 << 18;

/// The method in this file for a shape, if there is one.
pub(super) fn method<T: MatmulElement>(p: &Product<T>) -> Option<Method> {
    if p.m <= DOTS && p.b.row_stride == 1 && (p.b.col_stride != 1 || p.n == 1) {
        Some(Method::ByColumns)
    } else if p.b.col_stride == 1 && (p.m == 1 || p.m <= ROWS && p.k * p.n * size_of::<T>() > p.m * LARGE) {
        Some(Method::ByRows)
    } else {
        None
    }
}

/// A block of a product in which A has few rows.
pub(super) struct Block<T> {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) alpha: T,
    /// A, with contiguous rows.
    pub(super) a: *const T,
    pub(super) a_row_stride: isize,
    /// B, with contiguous rows or columns.
    pub(super) b: Mat<*const T>,
    pub(super) beta: T,
    /// C, with contiguous rows.
    pub(super) c: *mut T,
    pub(super) c_row_stride: isize,
}

impl<T: Accumulator> Block<T> {
    /// `c ← alpha sum + beta c`
    ///
    /// # Safety
    /// `c` is valid for writes and, unless `beta` is 0, for reads.
    #[inline(always)]
    pub(super) unsafe fn finish(&self, sum: T, c: *mut T) {
        // SAFETY: the contract is the same.
        unsafe {
            let base = if self.beta == T::ZERO { T::ZERO } else { self.beta.mul_add(*c, T::ZERO) };
            c.write(self.alpha.mul_add(sum, base));
        }
    }
}

/// The [`Method`] for a B with contiguous columns.
///
/// # Safety
/// The contract of [`Method::run`].
pub(super) unsafe fn by_columns<T: MatmulElement>(
    p: &Product<T>,
    beta: T::Acc,
    c: *mut T::Acc,
    c_row_stride: isize,
) {
    // SAFETY: the contract is the same.
    unsafe { in_blocks(p, beta, c, c_row_stride, (2048, 16), dots::block) }
}

/// The [`Method`] for a B with contiguous rows.
///
/// # Safety
/// The contract of [`Method::run`].
pub(super) unsafe fn by_rows<T: MatmulElement>(
    p: &Product<T>,
    beta: T::Acc,
    c: *mut T::Acc,
    c_row_stride: isize,
) {
    // SAFETY: the contract is the same.
    unsafe { in_blocks(p, beta, c, c_row_stride, (64, 512), axpys::block) }
}

/// The largest `k` of a block: as many numbers of each row of A stay in the cache while the columns of B
/// pass.
const K_MAX: usize = 4096;

/// Calls `step` for blocks of `k`. All but the first add to C. The rows of A are copied to a buffer unless
/// they are contiguous accumulators. If B does not consist of accumulators, `wide` rows and columns of it at
/// a time are widened into a buffer that fits into the cache.
///
/// # Safety
/// The contract of [`Method::run`].
unsafe fn in_blocks<T: MatmulElement>(
    p: &Product<T>,
    beta: T::Acc,
    c: *mut T::Acc,
    c_row_stride: isize,
    wide: (usize, usize),
    step: unsafe fn(&Block<T::Acc>),
) {
    let (k_max, n_max) = if T::IS_ACC { (p.k.min(K_MAX), p.n) } else { (p.k.min(wide.0), p.n.min(wide.1)) };
    let ready = T::IS_ACC && p.a.col_stride == 1;
    let a_len = if ready { 0 } else { p.m * k_max };
    let b_len = if T::IS_ACC { 0 } else { k_max * n_max };
    with_buffer(&PANELS, a_len + b_len, |a_wide: *mut T::Acc| {
        for l in (0..p.k).step_by(k_max) {
            let k = k_max.min(p.k - l);
            let (mut a, mut a_row_stride) = (p.a.at(0, l).ptr.cast(), p.a.row_stride);
            if !ready {
                for i in 0..p.m {
                    // SAFETY: the row exists, and the buffer has room for all of them.
                    unsafe { pack(1, k, k, p.a.at(i, l).ptr, 0, p.a.col_stride, a_wide.add(i * k)) };
                }
                (a, a_row_stride) = (a_wide.cast_const(), k as isize);
            }
            let beta = if l == 0 { beta } else { T::Acc::ONE };
            for j in (0..p.n).step_by(n_max) {
                let n = n_max.min(p.n - j);
                // SAFETY: the block is inside the operands, and the buffer has room for this part of B.
                unsafe {
                    let b = p.b.at(l, j);
                    let b = if T::IS_ACC {
                        Mat { ptr: b.ptr.cast(), row_stride: b.row_stride, col_stride: b.col_stride }
                    } else {
                        widen(k, n, b, a_wide.add(a_len))
                    };
                    let (m, alpha, c) = (p.m, p.alpha, c.add(j));
                    step(&Block { m, k, n, alpha, a, a_row_stride, b, beta, c, c_row_stride });
                }
            }
        }
    });
}

/// Copies B with its numbers widened. The same direction is contiguous in the copy.
///
/// # Safety
/// B has `k` by `n` numbers, and `to` has room for them.
unsafe fn widen<T: MatmulElement>(
    k: usize,
    n: usize,
    b: Mat<*const T>,
    to: *mut T::Acc,
) -> Mat<*const T::Acc> {
    // SAFETY: the contract is the same.
    unsafe {
        if b.col_stride == 1 {
            pack(k, n, n, b.ptr, b.row_stride, 1, to);
            Mat { ptr: to.cast_const(), row_stride: n as isize, col_stride: 1 }
        } else {
            pack(n, k, k, b.ptr, b.col_stride, 1, to);
            Mat { ptr: to.cast_const(), row_stride: 1, col_stride: k as isize }
        }
    }
}
