//! The step of [`matvec`](super::matvec) for a B with contiguous columns: each number of C is a dot product.

use super::element::Accumulator;
use super::lanes::Lanes;
use super::matvec::{Block, DOTS};
use crate::cpu::simd::{Simd, Vectorized};

/// Computes C with dot products.
///
/// # Safety
/// The contract of [`gemm`](super::gemm) for the block.
pub(super) unsafe fn block<T: Accumulator>(p: &Block<T>) {
    T::run_product(Dots(p), ());
}

/// The argument of [`block`], which meets its contract.
struct Dots<'a, T>(&'a Block<T>);

impl<T: Accumulator> Vectorized for Dots<'_, T> {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, _: ()) {
        // About eight independent sums hide the latency of an addition.
        // SAFETY: the contract of `block` holds, and this code is compiled for the vectors of `S`.
        unsafe {
            match self.0.m {
                1 => rows::<S::Lanes<T>, 1, 4, 2>(self.0),
                2 => rows::<S::Lanes<T>, 2, 4, 1>(self.0),
                3 => rows::<S::Lanes<T>, 3, 2, 1>(self.0),
                _ => rows::<S::Lanes<T>, DOTS, 2, 1>(self.0),
            }
        }
    }
}

/// Computes all columns of C, `J` at a time. Each sum is kept in `U` vectors.
///
/// # Safety
/// The contract of [`block`] for `R` rows, in code compiled for `L`.
#[inline(always)]
unsafe fn rows<L: Lanes, const R: usize, const J: usize, const U: usize>(p: &Block<L::Elem>) {
    let whole = p.n / J * J;
    for j in (0..whole).step_by(J) {
        // SAFETY: these columns exist.
        unsafe { tile::<L, R, J, U>(p, j) };
    }
    for j in whole..p.n {
        // SAFETY: this column exists.
        unsafe { tile::<L, R, 1, U>(p, j) };
    }
}

/// Computes `J` columns of C from column `j` on. The order of a sum does not depend on `J`.
///
/// # Safety
/// The contract of [`rows`]; the columns exist.
#[inline(always)]
unsafe fn tile<L: Lanes, const R: usize, const J: usize, const U: usize>(p: &Block<L::Elem>, j: usize) {
    // SAFETY: the rows and columns exist, and each has `k` contiguous numbers.
    unsafe {
        let mut sums = [[[L::splat(L::Elem::ZERO); U]; J]; R];
        // Loops here and below, since `from_fn` and `map` of arrays cost the compiler more than everything
        // else.
        let mut columns = [p.b.ptr; J];
        for (t, column) in columns.iter_mut().enumerate() {
            *column = p.b.at(0, j + t).ptr;
        }
        let mut rows = [p.a; R];
        for (i, row) in rows.iter_mut().enumerate() {
            *row = p.a.offset(i as isize * p.a_row_stride);
        }
        let mut b = [L::splat(L::Elem::ZERO); J];
        let mut l = 0;
        while l + U * L::COUNT <= p.k {
            for u in 0..U {
                for (b, column) in b.iter_mut().zip(columns) {
                    *b = L::load(column.add(l));
                }
                for (sums, row) in sums.iter_mut().zip(rows) {
                    let a = L::load(row.add(l));
                    for (sums, b) in sums.iter_mut().zip(b) {
                        sums[u] = a.mul_add(b, sums[u]);
                    }
                }
                l += L::COUNT;
            }
        }
        while l < p.k {
            let count = (p.k - l).min(L::COUNT);
            let mask = L::mask(count);
            for (b, column) in b.iter_mut().zip(columns) {
                *b = L::load_first(column.add(l), mask);
            }
            for (sums, row) in sums.iter_mut().zip(rows) {
                let a = L::load_first(row.add(l), mask);
                for (sums, b) in sums.iter_mut().zip(b) {
                    sums[0] = a.mul_add(b, sums[0]);
                }
            }
            l += count;
        }
        for (i, sums) in sums.into_iter().enumerate() {
            for (t, sums) in sums.into_iter().enumerate() {
                let one = L::splat(L::Elem::ONE);
                let sum = sums.into_iter().reduce(|sum, x| one.mul_add(sum, x));
                let sum = sum.map_or(L::Elem::ZERO, |sum| sum.sum());
                p.finish(sum, p.c.offset(i as isize * p.c_row_stride).add(j + t));
            }
        }
    }
}
