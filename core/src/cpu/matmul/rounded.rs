//! Sums that are not formed in C: it has a half type, or its rows are not contiguous.

use super::element::{Accumulator, MatmulNumber};
use super::pack::run_with_avx2;
use super::product::{BlockResults, Strip};
use crate::cpu::room::written;
use crate::cpu::simd::{Baseline, Simd, Vectorized};
use std::mem::MaybeUninit;

/// Writes sums to a C of `T`. The contract is that of [`WriteFn`](super::product::WriteFn).
pub(super) unsafe fn write<T: MatmulNumber>(results: &BlockResults) {
    let job = Rounding::<T>(results, std::marker::PhantomData);
    // A C of accumulators is only written here if its rows are not contiguous.
    if T::IS_ACC { Baseline.run(job, ()) } else { run_with_avx2(job, ()) }
}

/// The argument of [`write`], which meets its contract.
pub(super) struct Rounding<'a, T>(pub(super) &'a BlockResults, pub(super) std::marker::PhantomData<T>);

/// How many numbers are rounded at once: those of one vector register.
const BLOCK: usize = 16;

impl<T: MatmulNumber> Vectorized for Rounding<'_, T> {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, _: ()) {
        let BlockResults { sums, width, m, n, beta, c } = *self.0;
        let factor = T::Acc::of_bits(beta);
        let contiguous = c.col == size_of::<T>() as isize;
        let mut block = [const { MaybeUninit::uninit() }; BLOCK];
        for i in 0..m {
            let mut j = 0;
            while j < n {
                let count = BLOCK.min(n - j);
                let to = c.at(i, j).ptr.cast::<T>();
                // SAFETY: the contract of `write` holds.
                unsafe {
                    let sums = sums.cast::<T::Acc>().add(i * width + j);
                    let sums = std::slice::from_raw_parts_mut(sums, count);
                    if beta != 0 {
                        for (j, sum) in sums.iter_mut().enumerate() {
                            let old = *to.byte_offset(j as isize * c.col);
                            *sum = factor.mul_add(old.widen(), *sum);
                        }
                    }
                    T::narrow_slice::<S>(sums, &mut block[..count]);
                    if contiguous && count == BLOCK {
                        to.cast::<[MaybeUninit<T>; BLOCK]>().write(block);
                    } else {
                        for (j, x) in written(&mut block[..count]).iter().enumerate() {
                            to.byte_offset(j as isize * c.col).write(*x);
                        }
                    }
                }
                j += count;
            }
        }
    }
}

/// Adds accumulators. The contract is that of [`AddFn`](super::product::AddFn).
pub(super) unsafe fn add<T: Accumulator>(from: *const u8, n: usize, to: *mut u8) {
    let (from, to) = (from.cast::<T>(), to.cast::<T>());
    for i in 0..n {
        // SAFETY: the caller guarantees the numbers.
        unsafe { to.add(i).write((*to.add(i)).add(*from.add(i))) };
    }
}

/// `c ← alpha sum + beta c`, with the scalars of a strip.
///
/// # Safety
/// `c` is valid for writes and, unless `beta` is 0, for reads.
#[inline(always)]
pub(super) unsafe fn finish<T: Accumulator>(sum: T, p: &Strip, c: *mut T) {
    // SAFETY: the contract is the same.
    unsafe {
        let base = if p.sums.beta == 0 { T::ZERO } else { T::of_bits(p.sums.beta).mul_add(*c, T::ZERO) };
        c.write(T::of_bits(p.alpha).mul_add(sum, base));
    }
}
