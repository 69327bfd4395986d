//! Copies parts of the operands to panels, in the order in which the kernels read them.
//!
//! Copies wait for memory, so they are compiled for AVX2 and not for wider vectors.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::element::{Accumulator, MatmulNumber};
use super::product::PanelCopy;
#[cfg(target_arch = "x86_64")]
use crate::cpu::simd::Avx2;
use crate::cpu::simd::{Baseline, Isa, Simd, Vectorized};

/// Runs a loop with AVX2 if this CPU has it.
pub(super) fn run_with_avx2<V: Vectorized>(job: V, out: V::Out<'_>) {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = Avx2::found() {
        return avx2.run(job, out);
    }
    Baseline.run(job, out);
}

/// Writes a panel of accumulators. The contract is that of [`PackFn`](super::product::PackFn).
pub(super) unsafe fn pack<T: MatmulNumber>(panel: PanelCopy) {
    run_with_avx2(Packed::<T>(panel, PhantomData), &mut MaybeUninit::uninit());
}

/// The argument of [`pack`], which meets its contract.
pub(super) struct Packed<T>(pub(super) PanelCopy, pub(super) PhantomData<T>);

impl<T: MatmulNumber> Vectorized for Packed<T> {
    type Out<'a> = &'a mut Square<T::Acc>;

    #[inline(always)]
    fn run<S: Simd>(self, _: S, square: &mut Square<T::Acc>) {
        let size = size_of::<T>() as isize;
        let p = &self.0;
        // SAFETY: the contract of `pack` holds, and this code is compiled for AVX2 where that is needed.
        unsafe {
            // No kernels read what is packed for the baseline's floats, or they are slow.
            if !matches!(S::ISA, Isa::Baseline) {
                if p.stride == size && p.count >= WIDE {
                    return copy_rows::<T>(p);
                }
                #[cfg(target_arch = "x86_64")]
                if p.k_stride == size {
                    return match size_of::<T::Acc>() {
                        4 => transpose::<T, 8>(p, square),
                        _ => transpose::<T, 4>(p, square),
                    };
                }
            }
            gather::<T>(p);
        }
    }
}

/// Prefetches a cache line. The address may be invalid.
#[inline(always)]
pub(super) fn prefetch<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: a prefetch has no effect on the program, and never traps.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// How many rows ahead the source is prefetched.
pub(super) const AHEAD: isize = 16;

/// The numbers that [`copy_rows`] copies at a time.
const WIDE: usize = 8;

/// [`pack`] for a row of contiguous numbers, at least [`WIDE`]. The last numbers of a row are copied together
/// with some that were copied before.
///
/// # Safety
/// The contract of [`pack`].
#[inline(always)]
unsafe fn copy_rows<T: MatmulNumber>(p: &PanelCopy) {
    let mut l = 0;
    while l < p.k {
        // SAFETY: these numbers are valid by the contract.
        unsafe {
            let row = p.from.offset(l as isize * p.k_stride).cast::<T>();
            let to = p.to.cast::<T::Acc>().add(l * p.width);
            let ahead = row.wrapping_byte_offset(AHEAD * p.k_stride);
            prefetch(ahead);
            prefetch(ahead.wrapping_add(p.count - 1));
            let mut i = 0;
            while i + WIDE <= p.count {
                widen_row::<T, WIDE>(row.add(i), to.add(i).cast());
                i += WIDE;
            }
            if i < p.count {
                i = p.count - WIDE;
                widen_row::<T, WIDE>(row.add(i), to.add(i).cast());
            }
        }
        l += 1;
    }
}

/// Copies `N` contiguous numbers, as one vector if possible.
///
/// # Safety
/// `from` is valid for reads of `N` numbers, `to` for writes.
#[inline(always)]
unsafe fn widen_row<T: MatmulNumber, const N: usize>(from: *const T, to: *mut [T::Acc; N]) {
    // SAFETY: the contract is the same; arrays are aligned as their elements.
    unsafe {
        let row = from.cast::<[T; N]>().read();
        let mut wide = [T::Acc::ZERO; N];
        let mut i = 0;
        while i < N {
            wide[i] = row[i].widen();
            i += 1;
        }
        to.write(wide);
    }
}

/// [`pack`] for any strides.
///
/// # Safety
/// The contract of [`pack`].
#[inline(always)]
unsafe fn gather<T: MatmulNumber>(p: &PanelCopy) {
    let mut l = 0;
    while l < p.k {
        let mut i = 0;
        while i < p.count {
            // SAFETY: these numbers are valid by the contract.
            unsafe {
                let x = p.from.offset(l as isize * p.k_stride + i as isize * p.stride).cast::<T>();
                p.to.cast::<T::Acc>().add(l * p.width + i).write((*x).widen());
            }
            i += 1;
        }
        l += 1;
    }
}

/// Room for a square of widened numbers. It belongs to the caller: otherwise the compiler would keep the
/// numbers in registers and shuffle them one by one, which takes twice as long.
type Square<T> = MaybeUninit<[T; 64]>;

/// [`pack`] for contiguous numbers along `k`: squares of `SIDE` by `SIDE` numbers are transposed in
/// registers. The last square of a direction may overlap the one before.
///
/// # Safety
/// The contract of [`pack`]. A row of a square has 32 bytes, and the code is compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn transpose<T: MatmulNumber, const SIDE: usize>(p: &PanelCopy, wide: &mut Square<T::Acc>) {
    // SAFETY: the squares are inside the numbers that are valid by the contract. They are moved as bits,
    // whatever their type.
    unsafe {
        if p.k < SIDE || p.count < SIDE {
            return gather::<T>(p);
        }
        let mut row = 0;
        while row < p.k {
            let l = row.min(p.k - SIDE);
            let mut column = 0;
            while column < p.count {
                let i = column.min(p.count - SIDE);
                let from = p.from.offset(i as isize * p.stride).cast::<T>().add(l);
                let (square, stride) = if T::IS_ACC {
                    (from.cast::<u8>(), p.stride)
                } else {
                    let wide = wide.as_mut_ptr().cast::<[T::Acc; SIDE]>();
                    let mut i = 0;
                    while i < SIDE {
                        widen_row(from.byte_offset(i as isize * p.stride), wide.add(i));
                        i += 1;
                    }
                    (wide.cast_const().cast(), (SIDE * size_of::<T::Acc>()) as isize)
                };
                let to = p.to.cast::<T::Acc>().add(l * p.width + i);
                if SIDE == 8 {
                    square_of_8(square.cast(), stride, to.cast(), p.width);
                } else {
                    square_of_4(square.cast(), stride, to.cast(), p.width);
                }
                column += SIDE;
            }
            row += SIDE;
        }
    }
}

/// Transposes eight rows of eight numbers of 32 bits. A vector gets four numbers of a row and of the fourth
/// row after it, so that only numbers within 128 bits are interleaved, in pairs and then in pairs of pairs. The
/// rows are `bytes` apart and need no alignment.
///
/// # Safety
/// `from` is valid for reads of the rows at their stride, `to` for writes. The code is compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn square_of_8(from: *const f32, bytes: isize, to: *mut f32, to_stride: usize) {
    // SAFETY: the caller guarantees the rows and the instructions.
    unsafe {
        for half in [0, 4] {
            let mut r = [_mm256_setzero_ps(); 4];
            for (i, row) in (0..).zip(&mut r) {
                let from = from.add(half).byte_offset(i * bytes);
                let upper = _mm_loadu_ps(from.byte_offset(4 * bytes));
                *row = _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(_mm_loadu_ps(from)), upper);
            }
            let ((a0, a1), (b0, b1)) = (interleave(r[0], r[1]), interleave(r[2], r[3]));
            let ((e0, e1), (e2, e3)) = (interleave_pairs(a0, b0), interleave_pairs(a1, b1));
            for (i, column) in [e0, e1, e2, e3].into_iter().enumerate() {
                _mm256_storeu_ps(to.add((half + i) * to_stride), column);
            }
        }
    }
}

/// Interleaves the numbers of `x` and `y`: those in the first half of each 128 bits, and those in the second
/// half.
///
/// # Safety
/// The code is compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn interleave(x: __m256, y: __m256) -> (__m256, __m256) {
    // SAFETY: the caller guarantees the instructions.
    unsafe { (_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y)) }
}

/// [`interleave`] for pairs of numbers.
///
/// # Safety
/// The code is compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn interleave_pairs(x: __m256, y: __m256) -> (__m256, __m256) {
    // SAFETY: the caller guarantees the instructions.
    unsafe { (_mm256_shuffle_ps::<0x44>(x, y), _mm256_shuffle_ps::<0xee>(x, y)) }
}

/// [`square_of_8`] for four rows of four numbers of 64 bits.
///
/// # Safety
/// The contract of [`square_of_8`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn square_of_4(from: *const f64, bytes: isize, to: *mut f64, to_stride: usize) {
    // SAFETY: the caller guarantees the rows and the instructions.
    unsafe {
        let mut r = [_mm256_setzero_pd(); 4];
        for (i, row) in (0..).zip(&mut r) {
            *row = _mm256_loadu_pd(from.byte_offset(i * bytes));
        }
        let (a, b) = (_mm256_unpacklo_pd(r[0], r[1]), _mm256_unpacklo_pd(r[2], r[3]));
        let (c, d) = (_mm256_unpackhi_pd(r[0], r[1]), _mm256_unpackhi_pd(r[2], r[3]));
        for (i, (low, high)) in [(a, b), (c, d)].into_iter().enumerate() {
            _mm256_storeu_pd(to.add(i * to_stride), _mm256_permute2f128_pd::<0x20>(low, high));
            _mm256_storeu_pd(to.add((i + 2) * to_stride), _mm256_permute2f128_pd::<0x31>(low, high));
        }
    }
}
