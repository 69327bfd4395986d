//! The ways to compute a product on one thread.

use super::blocked::{blocked, blocked_and_rounded};
use super::buffer::{SUMS, with_buffer};
use super::foreign::foreign;
use super::matvec::{ReadOrder, by_strips, direction};
use super::product::{BlockResults, Product, Sums};

/// A way to compute a product on one thread. Parts of a product must use the method of the whole.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ProductMethod {
    Blocked,
    Strips(ReadOrder),
    Foreign,
}

impl ProductMethod {
    /// The method for a shape.
    pub(super) fn of(p: &Product) -> Self {
        match (p.kind.kernels)() {
            Some(_) => direction(p).map_or(ProductMethod::Blocked, ProductMethod::Strips),
            None => ProductMethod::Foreign,
        }
    }

    /// Computes a product whose C and `beta` are replaced by `sums`. `k` is not 0.
    ///
    /// # Safety
    /// The contract of [`gemm`](super::gemm).
    pub(super) unsafe fn run(self, p: &Product, sums: Sums) {
        // SAFETY: the contract is the same.
        unsafe {
            match self {
                ProductMethod::Blocked => blocked(p, sums),
                ProductMethod::Strips(direction) => by_strips(p, sums, direction),
                ProductMethod::Foreign => foreign(p, sums),
            }
        }
    }
}

/// Computes `C ← alpha A B + beta C` on this thread. `k` is not 0.
///
/// # Safety
/// The contract of [`gemm`](super::gemm).
pub(super) unsafe fn serial(p: &Product, method: ProductMethod) {
    // SAFETY: the contract is the same.
    unsafe {
        if p.sums_in_place() {
            method.run(p, p.sums());
        } else if !(method == ProductMethod::Blocked && blocked_and_rounded(p)) {
            apart(p, method);
        }
    }
}

/// The most rows and columns of C whose sums are in a buffer at once: 1 MiB.
const PART: usize = 512;

/// Computes `C ← alpha A B + beta C` with a method whose sums are in a buffer.
///
/// # Safety
/// The contract of [`gemm`](super::gemm).
unsafe fn apart(p: &Product, method: ProductMethod) {
    let rows = PART - PART % (p.kind.kernels)().map_or(1, |kernels| kernels.rows);
    for i in (0..p.m).step_by(rows) {
        for j in (0..p.n).step_by(PART) {
            let part = p.part(i, (p.m - i).min(rows), j, (p.n - j).min(PART));
            let Product { m, n, beta, c, .. } = part;
            with_buffer(&SUMS, m * n * p.kind.acc_size(), &mut |sums| {
                // SAFETY: the contract is the same. The buffer has room for the part; the method initializes
                // it and, since `beta` is 0, does not read it before.
                unsafe {
                    method.run(&part, Sums { ptr: sums, row: (n * p.kind.acc_size()) as isize, beta: 0 });
                    (p.kind.write)(&BlockResults { sums, width: n, m, n, beta, c });
                }
            });
        }
    }
}

/// `C ← beta C`
///
/// # Safety
/// The contract of [`gemm`](super::gemm) with respect to C.
pub(super) unsafe fn scale(p: &Product) {
    for i in 0..p.m {
        // The sums of one row, which are overwritten. An accumulator has at most eight bytes.
        let mut zeros = vec![0_u64; p.n];
        let sums = zeros.as_mut_ptr().cast();
        // SAFETY: the row exists, and there are as many zeros.
        unsafe {
            (p.kind.write)(&BlockResults { sums, width: p.n, m: 1, n: p.n, beta: p.beta, c: p.c.at(i, 0) })
        };
    }
}
