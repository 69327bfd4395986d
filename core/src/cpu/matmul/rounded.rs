//! Sums that are not formed in C: it has a half type, or its rows are not contiguous.

use super::element::{Accumulator, MatmulElement};
use super::pack::{SUMS, pack, with_buffer};
use super::{Mat, Method, Product};
use crate::cpu::simd::{Simd, Vectorized};

/// The most rows and columns of C whose sums are in a buffer at once: 1 MiB.
const PART: usize = 512;

/// Computes `C ← alpha A B + beta C` with a method whose sums are in a buffer.
///
/// # Safety
/// The contract of [`gemm`](super::gemm).
pub(super) unsafe fn apart<T: MatmulElement>(p: &Product<T>, method: Method) {
    let rows = PART - PART % T::kernels().map_or(1, |kernels| kernels.rows);
    for i in (0..p.m).step_by(rows) {
        for j in (0..p.n).step_by(PART) {
            let part = p.part(i, (p.m - i).min(rows), j, (p.n - j).min(PART));
            with_buffer(&SUMS, part.m * part.n, |sums: *mut T::Acc| {
                // SAFETY: the contract is the same. The buffer has room for the part; the method initializes
                // it and, since `beta` is 0, does not read it before.
                unsafe {
                    method.run(&part, T::Acc::ZERO, sums, part.n as isize);
                    write(sums, part.n, part.m, part.n, part.beta, part.c);
                }
            });
        }
    }
}

/// `C ← sums + beta C` for `m` rows and `n` columns. The rows of `sums` are `width` apart, and are overwritten.
///
/// # Safety
/// The sums are valid for reads and writes, those of C for writes and, unless `beta` is 0, for reads.
#[inline]
pub(crate) unsafe fn write<T: MatmulElement>(
    sums: *mut T::Acc,
    width: usize,
    m: usize,
    n: usize,
    beta: T::Acc,
    c: Mat<*mut T>,
) {
    // SAFETY: the contract is the same.
    unsafe { T::round(Rows { sums, width, m, n, beta, c }) };
}

/// Transposes `m` rows of `n` sums, which are `width` apart, into `n` rows of `m`.
///
/// # Safety
/// The sums are valid for reads, `to` for writes.
#[inline]
pub(super) unsafe fn turn<A: Accumulator>(sums: *const A, width: usize, m: usize, n: usize, to: *mut A) {
    // SAFETY: the contract is the same.
    unsafe { pack(n, m, m, sums, 1, width as isize, to) };
}

/// The arguments of [`write`], which meet its contract.
pub(crate) struct Rows<T: MatmulElement> {
    pub(super) sums: *mut T::Acc,
    pub(super) width: usize,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) beta: T::Acc,
    pub(super) c: Mat<*mut T>,
}

impl<T: MatmulElement> Rows<T> {
    /// The sums of row `i`.
    ///
    /// # Safety
    /// The row exists, and nothing else accesses it.
    #[inline(always)]
    pub(super) unsafe fn row(&mut self, i: usize) -> &mut [T::Acc] {
        // SAFETY: the contract of `write` holds.
        unsafe { std::slice::from_raw_parts_mut(self.sums.add(i * self.width), self.n) }
    }
}

/// How many numbers are rounded at once: those of one vector register.
const BLOCK: usize = 16;

impl<T: MatmulElement> Vectorized for Rows<T> {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, _: S, _: ()) {
        let (beta, c) = (self.beta, self.c);
        let mut block = [T::narrow(T::Acc::ZERO); BLOCK];
        for i in 0..self.m {
            // SAFETY: the row exists.
            let row = unsafe { self.row(i) };
            for (j, sums) in (0..).step_by(BLOCK).zip(row.chunks_mut(BLOCK)) {
                let to = c.at(i, j).ptr;
                // SAFETY: the contract of `write` holds.
                unsafe {
                    if beta != T::Acc::ZERO {
                        for (j, sum) in sums.iter_mut().enumerate() {
                            let old = *to.offset(j as isize * c.col_stride);
                            *sum = beta.mul_add(old.widen(), *sum);
                        }
                    }
                    T::narrow_slice(sums, &mut block[..sums.len()]);
                    if c.col_stride == 1 && sums.len() == BLOCK {
                        to.cast::<[T; BLOCK]>().write(block);
                    } else {
                        for (j, x) in block[..sums.len()].iter().enumerate() {
                            to.offset(j as isize * c.col_stride).write(*x);
                        }
                    }
                }
            }
        }
    }
}
