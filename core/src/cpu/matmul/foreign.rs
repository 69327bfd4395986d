//! Products on processors without a kernel here, and those of integers. Floats use `matrixmultiply`, which
//! has a kernel for NEON. On x86-64, where all CPUs have kernels here, only tests do.

use super::buffer::{PANELS, with_buffer};
use super::element::Accumulator;
use super::product::{MatrixView, Product, Sums};

pub(super) use floats::{of_f32, of_f64};

#[cfg(any(test, not(target_arch = "x86_64")))]
mod floats {
    use super::*;

    /// `C ← alpha A B + beta C` as `matrixmultiply` defines it: `m`, `k`, `n`, `alpha`, A, B, `beta`, C. A
    /// matrix is a pointer, its row stride and its column stride.
    type Gemm<T> = unsafe fn(
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

    /// Calls a product of `matrixmultiply`. The contract is that of
    /// [`ForeignFn`](super::super::product::ForeignFn), as for the functions below.
    #[inline(always)]
    unsafe fn call<T: Accumulator>(gemm: Gemm<T>, p: &Product) {
        let size = size_of::<T>() as isize;
        let [(a, a_row, a_col), (b, b_row, b_col), (c, c_row, c_col)] =
            [p.a, p.b, p.c].map(|x| (x.ptr.cast::<T>(), x.row / size, x.col / size));
        let (alpha, beta) = (T::of_bits(p.alpha), T::of_bits(p.beta));
        // SAFETY: the contract is the same.
        unsafe { gemm(p.m, p.k, p.n, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, c_row, c_col) }
    }

    pub(in super::super) unsafe fn of_f32(p: &Product) {
        // SAFETY: the contract is the same.
        unsafe { call(matrixmultiply::sgemm, p) }
    }

    pub(in super::super) unsafe fn of_f64(p: &Product) {
        // SAFETY: the contract is the same.
        unsafe { call(matrixmultiply::dgemm, p) }
    }
}

#[cfg(all(not(test), target_arch = "x86_64"))]
mod floats {
    use super::Product;

    pub(in super::super) unsafe fn of_f32(_: &Product) {
        unreachable!("every CPU has kernels")
    }
    pub(in super::super) use of_f32 as of_f64;
}

/// The product of integers, which wraps. It is one plain loop, since such products are rarely hot.
///
/// # Safety
/// The contract of [`ForeignFn`](super::product::ForeignFn), and the rows of C are contiguous.
pub(super) unsafe fn of_integers(p: &Product) {
    let (alpha, beta) = (i64::of_bits(p.alpha), i64::of_bits(p.beta));
    let contiguous = p.b.col == size_of::<i64>() as isize;
    for i in 0..p.m {
        // SAFETY: the elements exist, C has contiguous rows, and it is read only if `beta` is not 0.
        unsafe {
            let c = p.c.at(i, 0).ptr.cast::<i64>();
            for j in 0..p.n {
                c.add(j).write(if beta == 0 { 0 } else { beta.wrapping_mul(*c.add(j)) });
            }
            let c = std::slice::from_raw_parts_mut(c, p.n);
            for l in 0..p.k {
                let a = alpha.wrapping_mul(*p.a.at(i, l).ptr.cast());
                let b = p.b.at(l, 0).ptr.cast::<i64>();
                if contiguous {
                    for (c, b) in c.iter_mut().zip(std::slice::from_raw_parts(b, p.n)) {
                        *c = a.mul_add(*b, *c);
                    }
                } else {
                    for (j, c) in c.iter_mut().enumerate() {
                        *c = a.mul_add(*b.byte_offset(j as isize * p.b.col), *c);
                    }
                }
            }
        }
    }
}

/// The largest `k` of a block of operands that are widened.
const K_MAX: usize = 512;

/// The [`ProductMethod`](super::method::ProductMethod) of another library. Half types are widened first.
///
/// # Safety
/// The contract of [`ProductMethod::run`](super::method::ProductMethod::run).
pub(super) unsafe fn foreign(p: &Product, sums: Sums) {
    let acc = (p.kind.acc)();
    let size = acc.size as isize;
    let c = MatrixView { ptr: sums.ptr, row: sums.row, col: size };
    if p.kind.is_acc {
        // SAFETY: the contract is the same.
        return unsafe { (acc.multiply)(&Product { beta: sums.beta, c, ..*p }) };
    }
    let Product { m, k, n, .. } = *p;
    let k_max = k.min(K_MAX);
    with_buffer(&PANELS, (m + n) * k_max * acc.size, &mut |wide| {
        for l in (0..k).step_by(k_max) {
            let k = k_max.min(k - l);
            // SAFETY: this part of `k` exists, and the buffer has room for it.
            unsafe {
                let a = p.kind.copy_rows(p.a.at(0, l).t(), k, m, wide).t();
                let b = p.kind.copy_rows(p.b.at(l, 0), k, n, wide.add(m * k_max * acc.size));
                let beta = if l == 0 { sums.beta } else { acc.one };
                (acc.multiply)(&Product { kind: acc, k, a, b, beta, c, ..*p });
            }
        }
    });
}
