//! Products of `bf16` on a CPU with AVX-512 BF16, whose multiply-add takes pairs of them: for the same time
//! as one product of `f32`, it adds two.
//!
//! A panel has a pair in place of each number, the two of one row or column at `k` and `k + 1`, in the bits
//! of an `f32`. So the loops and the kernel are those of `f32` with half the `k`. Sums are in `f32`, and
//! subnormal numbers count as 0.

use std::arch::x86_64::*;

use super::kernel::tile;
use super::lanes::x86::PairsX16;
use super::pack::{AHEAD, prefetch, square_of_8};
use super::product::{BlockResults, PanelCopy, Tile};
use crate::cpu::simd::{Avx512, Isa, Simd, Vectorized};
use half::bf16;

/// Whether this CPU has the instructions.
#[inline]
pub(super) fn are_found() -> bool {
    Avx512::found().is_some() && std::arch::is_x86_feature_detected!("avx512bf16")
}

/// [`tile`] for pairs. The contract is that of [`TileFn`](super::product::TileFn).
#[target_feature(enable = "avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
pub(super) unsafe fn tile_of_pairs<const R: usize, const V: usize>(t: &Tile) {
    // SAFETY: the contract is the same, and this code is compiled for the vectors.
    unsafe { tile::<PairsX16, R, V, false>(t) }
}

/// Writes the pairs of `k` rows of `width` numbers, as [`pack`](super::pack::pack) writes the numbers. The
/// last number of an odd `k` has a 0 beside it.
///
/// # Safety
/// `from` is valid for reads of the numbers, `to` for writes of `width` pairs for each two rows. The CPU has
/// AVX-512.
pub(super) unsafe fn pack(part: PanelCopy) {
    // SAFETY: the caller guarantees the instructions.
    let avx512 = unsafe { Avx512::assume() };
    if part.k_stride == SIZE && part.k >= 2 * SIDE && part.count >= SIDE {
        avx512.run(Transposed(part), ());
    } else {
        avx512.run(Interleaved(part), ());
    }
}

/// [`rounded::write`](super::rounded::write) for contiguous rows of C.
///
/// # Safety
/// The contract of [`WriteFn`](super::product::WriteFn), and the CPU has the instructions.
#[target_feature(enable = "avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
pub(super) unsafe fn write(results: &BlockResults) {
    let BlockResults { width, n, beta, c, .. } = *results;
    let factor = _mm512_set1_ps(f32::from_bits(beta as u32));
    for i in 0..results.m {
        let sums = results.sums.cast::<f32>().wrapping_add(i * width);
        for j in (0..n).step_by(LANES) {
            let mask = u16::MAX >> (LANES - LANES.min(n - j));
            let to = c.at(i, j).ptr.cast();
            // SAFETY: the masks leave out what is past the end of a row. The others are valid by the
            // contract.
            unsafe {
                let mut sum = _mm512_maskz_loadu_ps(mask, sums.add(j));
                if beta != 0 {
                    let old = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, to));
                    let old = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(old));
                    sum = _mm512_fmadd_ps(factor, old, sum);
                }
                let halves = std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(sum));
                _mm256_mask_storeu_epi16(to, mask, halves);
            }
        }
    }
}

/// The bytes of a number, in a panel's strides.
const SIZE: isize = size_of::<bf16>() as isize;
/// The numbers of a vector register.
const LANES: usize = 16;

/// A number and the next one along `k`.
#[inline(always)]
fn pair(first: bf16, second: bf16) -> u32 {
    u32::from(first.to_bits()) | u32::from(second.to_bits()) << 16
}

impl PanelCopy {
    /// The address of a number.
    ///
    /// # Safety
    /// The number exists.
    #[inline(always)]
    unsafe fn at(&self, l: usize, i: usize) -> *const bf16 {
        // SAFETY: the caller guarantees the number.
        unsafe { self.from.offset(l as isize * self.k_stride + i as isize * self.stride).cast() }
    }

    /// Writes the pairs from row `l` on to their row of the panel.
    ///
    /// # Safety
    /// The contract of [`pack`], and row `l` exists.
    #[inline(always)]
    unsafe fn row(&self, l: usize) {
        // SAFETY: the caller guarantees the row; the next one is read only if it exists.
        unsafe {
            let to = self.to.cast::<u32>().add(l / 2 * self.width);
            let paired = l + 1 < self.k;
            for i in 0..self.count {
                to.add(i).write(pair(*self.at(l, i), if paired { *self.at(l + 1, i) } else { bf16::ZERO }));
            }
        }
    }

    /// [`row`](Self::row) for two rows of `N` contiguous numbers, as vectors.
    ///
    /// # Safety
    /// The contract of [`pack`], both rows exist, and they have `N` contiguous numbers.
    #[inline(always)]
    unsafe fn contiguous<const N: usize>(&self, l: usize) {
        // SAFETY: the caller guarantees the rows; arrays are aligned as their elements.
        unsafe {
            let [first, second] = [l, l + 1].map(|l| {
                prefetch(self.at(l, 0).wrapping_byte_offset(AHEAD * self.k_stride));
                self.at(l, 0).cast::<[bf16; N]>().read()
            });
            let mut pairs = [0; N];
            for ((to, first), second) in pairs.iter_mut().zip(first).zip(second) {
                *to = pair(first, second);
            }
            self.to.cast::<u32>().add(l / 2 * self.width).cast::<[u32; N]>().write(pairs);
        }
    }
}

/// [`pack`] for any strides, at full speed for a `stride` of 1 and a common `count`.
struct Interleaved(PanelCopy);

impl Vectorized for Interleaved {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, _: ()) {
        let part = self.0;
        let wide = if part.stride == SIZE { part.count } else { 0 };
        for l in (0..part.k).step_by(2) {
            // SAFETY: the contract of `pack` holds, and the rows have `count` contiguous numbers.
            unsafe {
                match wide {
                    12 if l + 1 < part.k => part.contiguous::<12>(l),
                    16 if l + 1 < part.k => part.contiguous::<16>(l),
                    32 if l + 1 < part.k => part.contiguous::<32>(l),
                    _ => part.row(l),
                }
            }
        }
    }
}

/// The pairs along each side of the squares of [`Transposed`].
const SIDE: usize = 8;

/// [`pack`] for a `k_stride` of 1, with at least one square: squares of pairs are transposed in registers.
/// The last square of a direction may overlap the one before.
struct Transposed(PanelCopy);

impl Vectorized for Transposed {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, _: ()) {
        const { assert!(matches!(S::ISA, Isa::Avx512), "the squares need AVX2") };
        let part = self.0;
        let pairs = part.k / 2;
        // SAFETY: the squares are inside the numbers of the contract of `pack`, and this code is compiled for
        // more than AVX2.
        unsafe {
            for row in (0..pairs).step_by(SIDE) {
                let row = row.min(pairs - SIDE);
                for i in (0..part.count).step_by(SIDE) {
                    let i = i.min(part.count - SIDE);
                    let to = part.to.cast::<f32>().add(row * part.width + i);
                    square_of_8(part.at(2 * row, i).cast(), part.stride, to, part.width);
                }
            }
            if part.k % 2 == 1 {
                part.row(part.k - 1);
            }
        }
    }
}
