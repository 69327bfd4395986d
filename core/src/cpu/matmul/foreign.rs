//! Products on processors without a kernel here. They use `matrixmultiply`, which has a kernel for NEON.

use super::Product;
use super::element::{Accumulator, MatmulElement};
use super::pack::{PANELS, pack, with_buffer};

/// `C ← alpha A B + beta C` as other libraries define it: `m`, `k`, `n`, `alpha`, A, B, `beta`, C. A matrix
/// is a pointer, its row stride and its column stride.
pub(crate) type Gemm<T> = unsafe fn(
    usize,
    usize,
    usize,
    T,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    *mut T,
    isize,
    isize,
);

/// The largest `k` of a block of operands that are widened.
const K_MAX: usize = 512;

/// The [`Method`](super::Method) of another library. Half types are widened first.
///
/// # Safety
/// The contract of [`Method::run`](super::Method::run).
pub(super) unsafe fn foreign<T: MatmulElement>(
    p: &Product<T>,
    beta: T::Acc,
    c: *mut T::Acc,
    c_row_stride: isize,
) {
    let gemm = T::Acc::GEMM.expect("a type without kernels has it");
    let Product { m, k, n, alpha, a, b, .. } = *p;
    if T::IS_ACC {
        let (a_ptr, b_ptr) = (a.ptr.cast(), b.ptr.cast());
        let (a, b) = ((a.row_stride, a.col_stride), (b.row_stride, b.col_stride));
        // SAFETY: the contract is the same, and `T` is its own accumulator.
        return unsafe { gemm(m, k, n, alpha, a_ptr, a.0, a.1, b_ptr, b.0, b.1, beta, c, c_row_stride, 1) };
    }
    let k_max = k.min(K_MAX);
    with_buffer(&PANELS, (m + n) * k_max, |wide: *mut T::Acc| {
        for l in (0..k).step_by(k_max) {
            let k = k_max.min(k - l);
            let beta = if l == 0 { beta } else { T::Acc::ONE };
            let (a, b) = (a.at(0, l), b.at(l, 0));
            // SAFETY: this part of `k` exists, and the buffer has room for it.
            unsafe {
                let b_wide = wide.add(m * k_max);
                pack(k, m, m, a.ptr, a.col_stride, a.row_stride, wide); // [k, m]
                pack(k, n, n, b.ptr, b.row_stride, b.col_stride, b_wide); // [k, n]
                let (m_, n_) = (m as isize, n as isize);
                gemm(m, k, n, alpha, wide, 1, m_, b_wide, n_, 1, beta, c, c_row_stride, 1);
            }
        }
    });
}
