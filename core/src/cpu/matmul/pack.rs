//! Copies parts of the operands to buffers, in the order in which the kernels read them.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::thread::LocalKey;

use super::element::{Accumulator, MatmulElement};
#[cfg(target_arch = "x86_64")]
use crate::cpu::simd::Avx2;
use crate::cpu::simd::{Isa, Simd, Vectorized};

/// A cache line, the unit and the alignment of buffers. The widest vector has the same size.
#[repr(align(64))]
pub(crate) struct Line(#[expect(dead_code, reason = "gives the size")] [u8; 64]);

/// Memory that a thread keeps between calls.
pub(crate) type Buffer = Cell<Vec<MaybeUninit<Line>>>;

thread_local! {
    /// Packed parts of A and B.
    pub(super) static PANELS: Buffer = const { Cell::new(Vec::new()) };
    /// Sums that cannot be formed in C.
    pub(super) static SUMS: Buffer = const { Cell::new(Vec::new()) };
}

/// Calls `f` with uninitialized memory for `len` numbers from the thread's `buffer`.
///
/// The buffer is taken while `f` runs, so a nested call would allocate its own memory.
#[inline]
pub(crate) fn with_buffer<T>(buffer: &'static LocalKey<Buffer>, len: usize, f: impl FnOnce(*mut T)) {
    let lines = (len * size_of::<T>()).div_ceil(size_of::<Line>());
    let mut memory = buffer.take();
    if memory.capacity() < lines {
        memory = Vec::with_capacity(lines);
    }
    f(memory.as_mut_ptr().cast());
    buffer.set(memory);
}

/// Writes `k` rows of `width` numbers to `to`. The first `count` of each are
/// `from[l * k_stride + i * stride]` for row `l` and number `i`; the others are not written.
///
/// A row has one number per column of a panel of B, or per row of a panel of A. Usually one of the two
/// strides is 1. If it is `stride`, rows are copied; if it is `k_stride`, blocks are transposed.
///
/// # Safety
/// `from` is valid for reads of these numbers, `to` for writes of `k * width`.
pub(super) unsafe fn pack<T: MatmulElement>(
    k: usize,
    count: usize,
    width: usize,
    from: *const T,
    k_stride: isize,
    stride: isize,
    to: *mut T::Acc,
) {
    let part = Part { k, count, width, from, k_stride, stride, to };
    #[cfg(target_arch = "x86_64")]
    if k_stride == 1
        && stride != 1
        && let Some(avx2) = Avx2::found()
    {
        return avx2.run(Transposed(part), &mut MaybeUninit::uninit());
    }
    T::Acc::run(Copied(part), ());
}

/// The arguments of [`pack`], which meet its contract.
pub(super) struct Part<T: MatmulElement> {
    pub(super) k: usize,
    pub(super) count: usize,
    pub(super) width: usize,
    pub(super) from: *const T,
    pub(super) k_stride: isize,
    pub(super) stride: isize,
    pub(super) to: *mut T::Acc,
}

/// [`pack`] for any strides, at full speed for a `stride` of 1 and a common `count`.
pub(super) struct Copied<T: MatmulElement>(pub(super) Part<T>);

impl<T: MatmulElement> Vectorized for Copied<T> {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, _: ()) {
        let Part { k, count, width, from, k_stride, stride, to } = self.0;
        // SAFETY: the contract of `pack` holds.
        unsafe {
            match (stride, count) {
                // No kernels read what is packed for the baseline's floats, or they are slow.
                _ if matches!(S::ISA, Isa::Baseline) => gather(k, count, width, from, k_stride, stride, to),
                (1, 8) => copy_rows::<T, 8>(k, width, from, k_stride, to),
                (1, 13) => copy_rows::<T, 13>(k, width, from, k_stride, to),
                (1, 14) => copy_rows::<T, 14>(k, width, from, k_stride, to),
                (1, 16) => copy_rows::<T, 16>(k, width, from, k_stride, to),
                (1, 32) => copy_rows::<T, 32>(k, width, from, k_stride, to),
                (1, _) => gather(k, count, width, from, k_stride, 1, to),
                _ => gather(k, count, width, from, k_stride, stride, to),
            }
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

/// [`pack`] for `N` contiguous numbers.
///
/// # Safety
/// The contract of [`pack`].
#[inline(always)]
unsafe fn copy_rows<T: MatmulElement, const N: usize>(
    k: usize,
    width: usize,
    from: *const T,
    k_stride: isize,
    to: *mut T::Acc,
) {
    for l in 0..k {
        // SAFETY: these numbers are valid by the contract.
        unsafe {
            let row = from.offset(l as isize * k_stride);
            let ahead = row.wrapping_offset(AHEAD * k_stride);
            prefetch(ahead);
            prefetch(ahead.wrapping_add(N - 1));
            widen_row(row, to.add(l * width).cast::<[T::Acc; N]>());
        }
    }
}

/// Copies `N` contiguous numbers, as one vector if possible.
///
/// # Safety
/// `from` is valid for reads of `N` numbers, `to` for writes.
#[inline(always)]
unsafe fn widen_row<T: MatmulElement, const N: usize>(from: *const T, to: *mut [T::Acc; N]) {
    // SAFETY: the contract is the same; arrays are aligned as their elements.
    unsafe {
        let row = from.cast::<[T; N]>().read();
        let mut wide = [T::Acc::ZERO; N];
        for (wide, x) in wide.iter_mut().zip(row) {
            *wide = x.widen();
        }
        to.write(wide);
    }
}

/// [`pack`] for any strides.
///
/// # Safety
/// The contract of [`pack`].
#[inline(always)]
unsafe fn gather<T: MatmulElement>(
    k: usize,
    count: usize,
    width: usize,
    from: *const T,
    k_stride: isize,
    stride: isize,
    to: *mut T::Acc,
) {
    for l in 0..k {
        for i in 0..count {
            // SAFETY: these numbers are valid by the contract.
            unsafe {
                let x = *from.offset(l as isize * k_stride + i as isize * stride);
                to.add(l * width + i).write(x.widen());
            }
        }
    }
}

/// [`pack`] for a `k_stride` of 1, on a CPU with AVX2: squares of eight by eight numbers, or four by four of
/// twice the size, are transposed in registers. The last square of a direction may overlap the one before.
#[cfg(target_arch = "x86_64")]
struct Transposed<T: MatmulElement>(Part<T>);

#[cfg(target_arch = "x86_64")]
impl<T: MatmulElement> Vectorized for Transposed<T> {
    type Out<'a> = &'a mut Square<T::Acc>;

    #[inline(always)]
    fn run<S: Simd>(self, _: S, wide: &mut Square<T::Acc>) {
        const { assert!(!matches!(S::ISA, Isa::Baseline), "only AVX2 has these squares") };
        // SAFETY: the contract of `pack` holds, and this code is compiled for AVX2.
        unsafe {
            match size_of::<T::Acc>() {
                4 => transpose::<T, 8>(self.0, wide),
                _ => transpose::<T, 4>(self.0, wide),
            }
        }
    }
}

/// Room for a square of widened numbers. It belongs to the caller: otherwise the compiler would keep the
/// numbers in registers and shuffle them one by one, which takes twice as long.
#[cfg(target_arch = "x86_64")]
type Square<T> = MaybeUninit<[T; 64]>;

/// [`Transposed`] with squares of `SIDE` by `SIDE` numbers.
///
/// # Safety
/// The contract of [`pack`]. A row of a square has 32 bytes, and the code is compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn transpose<T: MatmulElement, const SIDE: usize>(part: Part<T>, wide: &mut Square<T::Acc>) {
    let Part { k, count, width, from, stride, to, .. } = part;
    // SAFETY: the squares are inside the numbers that are valid by the contract. They are moved as bits,
    // whatever their type.
    unsafe {
        if k < SIDE || count < SIDE {
            return gather(k, count, width, from, 1, stride, to);
        }
        for l in (0..k).step_by(SIDE) {
            let l = l.min(k - SIDE);
            for i in (0..count).step_by(SIDE) {
                let i = i.min(count - SIDE);
                let from = from.offset(i as isize * stride).add(l);
                let (square, square_stride) = if T::IS_ACC {
                    (from.cast(), stride)
                } else {
                    let wide = wide.as_mut_ptr().cast::<[T::Acc; SIDE]>();
                    for i in 0..SIDE {
                        widen_row(from.offset(i as isize * stride), wide.add(i));
                    }
                    (wide.cast_const().cast::<T::Acc>(), SIDE as isize)
                };
                let to = to.add(l * width + i);
                if SIDE == 8 {
                    square_of_8(square.cast(), square_stride * size_of::<f32>() as isize, to.cast(), width);
                } else {
                    square_of_4(square.cast(), square_stride, to.cast(), width);
                }
            }
        }
    }
}

/// Transposes eight rows of eight numbers of 32 bits: pairs of rows are interleaved, then pairs of pairs,
/// then halves. The rows are `bytes` apart and need no alignment.
///
/// # Safety
/// `from` is valid for reads of the rows at their stride, `to` for writes. The code is compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn square_of_8(from: *const f32, bytes: isize, to: *mut f32, to_stride: usize) {
    // SAFETY: the caller guarantees the rows and the instructions.
    unsafe {
        let mut r = [_mm256_setzero_ps(); 8];
        for (i, row) in (0..).zip(&mut r) {
            *row = _mm256_loadu_ps(from.byte_offset(i * bytes));
        }
        let ((a0, a1), (b0, b1)) = (interleave(r[0], r[1]), interleave(r[2], r[3]));
        let ((c0, c1), (d0, d1)) = (interleave(r[4], r[5]), interleave(r[6], r[7]));
        let ((e0, e1), (e2, e3)) = (interleave_pairs(a0, b0), interleave_pairs(a1, b1));
        let ((f0, f1), (f2, f3)) = (interleave_pairs(c0, d0), interleave_pairs(c1, d1));
        for (i, (e, f)) in [(e0, f0), (e1, f1), (e2, f2), (e3, f3)].into_iter().enumerate() {
            _mm256_storeu_ps(to.add(i * to_stride), _mm256_permute2f128_ps::<0x20>(e, f));
            _mm256_storeu_ps(to.add((i + 4) * to_stride), _mm256_permute2f128_ps::<0x31>(e, f));
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

/// [`square_of_8`] for four rows of four numbers of 64 bits, which are `stride` numbers apart.
///
/// # Safety
/// The contract of [`square_of_8`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn square_of_4(from: *const f64, stride: isize, to: *mut f64, to_stride: usize) {
    // SAFETY: the caller guarantees the rows and the instructions.
    unsafe {
        let mut r = [_mm256_setzero_pd(); 4];
        for (i, row) in (0..).zip(&mut r) {
            *row = _mm256_loadu_pd(from.offset(i * stride));
        }
        let (a, b) = (_mm256_unpacklo_pd(r[0], r[1]), _mm256_unpacklo_pd(r[2], r[3]));
        let (c, d) = (_mm256_unpackhi_pd(r[0], r[1]), _mm256_unpackhi_pd(r[2], r[3]));
        for (i, (low, high)) in [(a, b), (c, d)].into_iter().enumerate() {
            _mm256_storeu_pd(to.add(i * to_stride), _mm256_permute2f128_pd::<0x20>(low, high));
            _mm256_storeu_pd(to.add((i + 2) * to_stride), _mm256_permute2f128_pd::<0x31>(low, high));
        }
    }
}
