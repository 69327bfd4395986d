//! Copies of parts of the operands in the order in which the kernels read them, and the buffers for these.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::thread::LocalKey;

use super::element::{Accumulator, MatmulElement};
use crate::cpu::simd::{Isa, isa, simd};

/// A cache line, which is also the widest vector: the unit and the alignment of buffers.
#[repr(align(64))]
pub(super) struct Line(#[expect(dead_code, reason = "gives the size")] [u8; 64]);

/// Memory that a thread keeps from call to call.
pub(super) type Buffer = Cell<Vec<MaybeUninit<Line>>>;

thread_local! {
    /// Packed parts of A and B.
    pub(super) static PANELS: Buffer = const { Cell::new(Vec::new()) };
    /// Results that can not be formed in C itself.
    pub(super) static SUMS: Buffer = const { Cell::new(Vec::new()) };
}

/// Calls `f` with room for `len` numbers in the thread's `buffer`, not initialised.
///
/// The buffer is away from its place while `f` runs: a nested call would work, with memory of its own.
#[inline]
pub(super) fn with_buffer<T>(buffer: &'static LocalKey<Buffer>, len: usize, f: impl FnOnce(*mut T)) {
    let lines = (len * size_of::<T>()).div_ceil(size_of::<Line>());
    let mut memory = buffer.take();
    if memory.capacity() < lines {
        memory = Vec::with_capacity(lines);
    }
    f(memory.as_mut_ptr().cast());
    buffer.set(memory);
}

/// Writes `k` rows of `width` numbers to `to`, of which the first `count` are `from[l * k_stride + i * stride]` for row
/// `l` and number `i`; the others are left alone.
///
/// A panel of B has its columns for the numbers of a row, a panel of A its rows. One of the two strides is one as a
/// rule: if it is `stride`, rows are copied; if it is `k_stride`, blocks are transposed.
///
/// # Safety
/// `from` is valid for reading these numbers, `to` for writing `k * width`.
pub(super) unsafe fn pack<T: MatmulElement>(
    k: usize,
    count: usize,
    width: usize,
    from: *const T,
    k_stride: isize,
    stride: isize,
    to: *mut T::Acc,
) {
    // SAFETY: the contract is the same; `isa` has found AVX2.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if k_stride == 1 && stride != 1 && isa() >= Isa::Avx2 {
            return transpose(k, count, width, from, stride, to);
        }
        copy(k, count, width, from, k_stride, stride, to)
    }
}

simd! {
    /// [`pack`] for any strides, and at full speed for common numbers that lie side by side.
    ///
    /// # Safety
    /// That of [`pack`].
    unsafe fn copy[T: MatmulElement](
        k: usize, count: usize, width: usize, from: *const T, k_stride: isize, stride: isize, to: *mut T::Acc
    ) {
        // SAFETY: the contract is the same.
        unsafe {
            match (stride, count) {
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

/// Asks for a cache line that will be read soon. Any address will do.
#[inline(always)]
pub(super) fn prefetch<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: this reads nothing that a program could see, and never traps.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// How many rows are asked for ahead of their copying.
const AHEAD: isize = 16;

/// [`pack`] for `N` numbers side by side.
///
/// # Safety
/// That of [`pack`].
#[inline(always)]
unsafe fn copy_rows<T: MatmulElement, const N: usize>(
    k: usize,
    width: usize,
    from: *const T,
    k_stride: isize,
    to: *mut T::Acc,
) {
    for l in 0..k {
        // SAFETY: within the numbers that the caller vouches for; arrays are aligned as their elements.
        unsafe {
            let row = from.offset(l as isize * k_stride);
            let ahead = row.wrapping_offset(AHEAD * k_stride);
            prefetch(ahead);
            prefetch(ahead.wrapping_add(N - 1));
            let row = row.cast::<[T; N]>().read();
            let mut wide = [T::Acc::ZERO; N];
            for (wide, x) in wide.iter_mut().zip(row) {
                *wide = x.widen();
            }
            to.add(l * width).cast::<[T::Acc; N]>().write(wide);
        }
    }
}

/// [`pack`] for any strides.
///
/// # Safety
/// That of [`pack`].
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
            // SAFETY: within the numbers that the caller vouches for.
            unsafe {
                let x = *from.offset(l as isize * k_stride + i as isize * stride);
                to.add(l * width + i).write(x.widen());
            }
        }
    }
}

/// [`pack`] for a `k_stride` of one: squares of eight by eight numbers, or four by four of twice the size, are
/// transposed in registers. What is left over at the end of a direction is covered by a last square that overlaps the
/// one before it.
///
/// # Safety
/// That of [`pack`], on a CPU with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn transpose<T: MatmulElement>(
    k: usize,
    count: usize,
    width: usize,
    from: *const T,
    stride: isize,
    to: *mut T::Acc,
) {
    let side = 32 / size_of::<T::Acc>();
    // SAFETY: the squares lie within what the caller vouches for; numbers are moved as bits, whatever their type.
    unsafe {
        if k < side || count < side {
            return gather(k, count, width, from, 1, stride, to);
        }
        for l in (0..k).step_by(side) {
            let l = l.min(k - side);
            for i in (0..count).step_by(side) {
                let i = i.min(count - side);
                let from = from.offset(i as isize * stride).add(l);
                let mut wide = [T::Acc::ZERO; 64];
                let (square, square_stride) = if T::IS_ACC {
                    (from.cast(), stride)
                } else {
                    for (i, wide) in wide.chunks_exact_mut(side).take(side).enumerate() {
                        for (l, wide) in wide.iter_mut().enumerate() {
                            *wide = (*from.offset(i as isize * stride).add(l)).widen();
                        }
                    }
                    (wide.as_ptr(), side as isize)
                };
                let to = to.add(l * width + i);
                if side == 8 {
                    square_of_8(square.cast(), square_stride, to.cast(), width);
                } else {
                    square_of_4(square.cast(), square_stride, to.cast(), width);
                }
            }
        }
    }
}

/// Transposes eight rows of eight numbers of 32 bits: pairs of rows are woven together, then pairs of pairs, then
/// halves.
///
/// # Safety
/// `from` is valid for reading the rows at their stride, `to` for writing; the CPU has AVX.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn square_of_8(from: *const f32, stride: isize, to: *mut f32, to_stride: usize) {
    use std::arch::x86_64::*;
    // SAFETY: the caller vouches for the rows.
    let r: [__m256; 8] =
        std::array::from_fn(|i| unsafe { _mm256_loadu_ps(from.offset(i as isize * stride)) });
    let weave = |x, y| (_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y));
    let ((a0, a1), (b0, b1)) = (weave(r[0], r[1]), weave(r[2], r[3]));
    let ((c0, c1), (d0, d1)) = (weave(r[4], r[5]), weave(r[6], r[7]));
    let pairs = |x, y| (_mm256_shuffle_ps::<0x44>(x, y), _mm256_shuffle_ps::<0xee>(x, y));
    let ((e0, e1), (e2, e3)) = (pairs(a0, b0), pairs(a1, b1));
    let ((f0, f1), (f2, f3)) = (pairs(c0, d0), pairs(c1, d1));
    let low = |x, y| _mm256_permute2f128_ps::<0x20>(x, y);
    let high = |x, y| _mm256_permute2f128_ps::<0x31>(x, y);
    let columns = [
        low(e0, f0),
        low(e1, f1),
        low(e2, f2),
        low(e3, f3),
        high(e0, f0),
        high(e1, f1),
        high(e2, f2),
        high(e3, f3),
    ];
    for (l, column) in columns.into_iter().enumerate() {
        // SAFETY: the caller vouches for the rows.
        unsafe { _mm256_storeu_ps(to.add(l * to_stride), column) };
    }
}

/// [`square_of_8`] for four rows of four numbers of 64 bits.
///
/// # Safety
/// That of [`square_of_8`].
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn square_of_4(from: *const f64, stride: isize, to: *mut f64, to_stride: usize) {
    use std::arch::x86_64::*;
    // SAFETY: the caller vouches for the rows.
    let r: [__m256d; 4] =
        std::array::from_fn(|i| unsafe { _mm256_loadu_pd(from.offset(i as isize * stride)) });
    let weave = |x, y| (_mm256_unpacklo_pd(x, y), _mm256_unpackhi_pd(x, y));
    let ((a0, a1), (b0, b1)) = (weave(r[0], r[1]), weave(r[2], r[3]));
    let low = |x, y| _mm256_permute2f128_pd::<0x20>(x, y);
    let high = |x, y| _mm256_permute2f128_pd::<0x31>(x, y);
    for (l, column) in [low(a0, b0), low(a1, b1), high(a0, b0), high(a1, b1)].into_iter().enumerate() {
        // SAFETY: the caller vouches for the rows.
        unsafe { _mm256_storeu_pd(to.add(l * to_stride), column) };
    }
}
