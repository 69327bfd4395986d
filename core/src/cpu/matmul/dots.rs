//! The step of `matvec` for a B with contiguous columns: each number of C is a dot product.

use std::marker::PhantomData;

use super::element::Accumulator;
use super::lanes::Lanes;
use super::product::Strip;
use super::rounded::finish;
use crate::cpu::simd::{Simd, Vectorized};

/// Computes C with dot products, in code compiled for `S`. The contract is that of
/// [`StripFn`](super::product::StripFn).
pub(super) unsafe fn dots<S: Simd, L: Lanes>(p: &Strip) {
    // SAFETY: the contract is the same.
    unsafe { S::assume() }.run(Dots::<L>(p, PhantomData), ());
}

/// The argument of [`dots`], which meets its contract.
struct Dots<'a, L>(&'a Strip, PhantomData<L>);

impl<L: Lanes> Vectorized for Dots<'_, L> {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, _: ()) {
        let p = self.0;
        let mut i = 0;
        // Eight independent sums hide the latency of an addition.
        // SAFETY: the contract of `dots` holds, these rows and columns exist, and this code is compiled for
        // the vectors.
        unsafe {
            while i < p.m {
                let (rows, cols) = if p.m - i > 1 && !L::IS_RARE { (2, 2) } else { (1, 4) };
                let mut j = 0;
                while j + cols <= p.n {
                    if rows == 2 {
                        tile::<L, 2, 2>(p, i, j)
                    } else {
                        tile::<L, 1, 4>(p, i, j)
                    }
                    j += cols;
                }
                while j < p.n {
                    let mut row = i;
                    while row < i + rows {
                        tile::<L, 1, 1>(p, row, j);
                        row += 1;
                    }
                    j += 1;
                }
                i += rows;
            }
        }
    }
}

/// Computes `R` rows and `J` columns of C from row `i` and column `j` on. Each sum is kept in two vectors. Its
/// order does not depend on `R` and `J`.
///
/// # Safety
/// The contract of [`dots`] for these rows and columns, in code compiled for `L`.
#[inline(always)]
unsafe fn tile<L: Lanes, const R: usize, const J: usize>(p: &Strip, i: usize, j: usize) {
    // SAFETY: the rows and columns exist, and each has `k` contiguous numbers.
    unsafe {
        let mut even = [[L::splat(L::Elem::ZERO); J]; R];
        let mut odd = [[L::splat(L::Elem::ZERO); J]; R];
        let a = p.a.offset(i as isize * p.a_row).cast::<L::Elem>();
        let b = p.b.at(0, j).ptr.cast::<L::Elem>();
        let mut l = 0;
        while l + 2 * L::COUNT <= p.k {
            add(p, a.add(l), b.add(l), None, &mut even);
            add(p, a.add(l + L::COUNT), b.add(l + L::COUNT), None, &mut odd);
            l += 2 * L::COUNT;
        }
        while l < p.k {
            let mask = L::mask((p.k - l).min(L::COUNT));
            add(p, a.add(l), b.add(l), Some(mask), &mut even);
            l += L::COUNT;
        }
        let mut r = 0;
        while r < R {
            let c = p.sums.ptr.offset((i + r) as isize * p.sums.row).cast::<L::Elem>();
            let mut t = 0;
            while t < J {
                let sum = L::splat(L::Elem::ONE).mul_add(even[r][t], odd[r][t]);
                finish(sum.sum(), p, c.add(j + t));
                t += 1;
            }
            r += 1;
        }
    }
}

/// Adds the products of a vector from each row of A and each column of B to the sums. Numbers that are not in
/// the mask count as zeros.
///
/// # Safety
/// The contract of [`tile`] for the numbers of the vectors.
#[inline(always)]
unsafe fn add<L: Lanes, const R: usize, const J: usize>(
    p: &Strip,
    a: *const L::Elem,
    b: *const L::Elem,
    mask: Option<L::Mask>,
    sums: &mut [[L; J]; R],
) {
    // SAFETY: the contract is the same.
    unsafe {
        let mut columns = [L::splat(L::Elem::ZERO); J];
        let mut t = 0;
        while t < J {
            columns[t] = L::load_if(b.byte_offset(t as isize * p.b.col), mask);
            t += 1;
        }
        let mut r = 0;
        while r < R {
            let x = L::load_if(a.byte_offset(r as isize * p.a_row), mask);
            let mut t = 0;
            while t < J {
                sums[r][t] = x.mul_add(columns[t], sums[r][t]);
                t += 1;
            }
            r += 1;
        }
    }
}
