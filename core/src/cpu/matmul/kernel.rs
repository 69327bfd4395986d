//! The innermost loop: one tile of C, held in registers while `k` runs, and the table of its forms.
//!
//! A tile is `R` rows by `V` vectors of columns. For each `k` it loads `V` vectors of a row of B and, for each of its
//! rows, spreads one number of A over a vector and does `V` fused multiply-adds: `R V` of them for `R + V` loads. So
//! it wants many rows and vectors, and all `R V` sums must stay in registers: 14 × 2 of the 32 registers of AVX-512,
//! 6 × 2 of the 16 of AVX2.
//!
//! There is a kernel for each number of rows, so that no shape pays for rows that it does not have; missing columns
//! are masked. Every kernel sums over `k` from first to last, so the bits of a result do not depend on the tiles
//! that C was cut into.

use super::element::Accumulator;
use super::lanes::Lanes;
use super::pack::prefetch;
use crate::cpu::simd::isa;

/// What a kernel works on: `C ← alpha A B + beta C` for one tile.
pub(crate) struct Tile<T> {
    /// The length of the sums.
    pub(super) k: usize,
    /// A's first row, packed or in place.
    pub(super) a: *const T,
    pub(super) a_row_stride: isize,
    pub(super) a_col_stride: isize,
    /// B's first row, whose numbers lie side by side.
    pub(super) b: *const T,
    pub(super) b_row_stride: isize,
    /// C's first row, whose numbers lie side by side.
    pub(super) c: *mut T,
    pub(super) c_row_stride: isize,
    /// Columns, more than all but the last of the kernel's vectors hold.
    pub(super) cols: usize,
    pub(super) alpha: T,
    /// If zero, C is written and not read.
    pub(super) beta: T,
}

/// A kernel. Its contract: the CPU has its instructions, and the pointers of the tile are valid for the rows of the
/// kernel, `k` and `cols`, C's for writing by this call alone.
pub(crate) type TileFn<T> = unsafe fn(&Tile<T>);

/// The kernels of one kind of number on one CPU.
pub(crate) struct Kernels<T: 'static> {
    /// Numbers in a vector.
    pub(super) lanes: usize,
    /// The greatest number of rows of a tile.
    pub(super) rows: usize,
    /// By vectors (1, 2), then by rows.
    pub(super) tiles: [&'static [TileFn<T>]; 2],
}

/// How many rows of B are asked for ahead of their use.
const AHEAD: isize = 16;

/// From what `k` on C is asked for before the sums are formed: with a short one it is better left to the hardware.
const LONG: usize = 100;

/// One tile of `R` rows and `V` vectors.
///
/// # Safety
/// That of [`TileFn`], in code compiled for the instructions of `L`.
#[inline(always)]
unsafe fn tile<L: Lanes, const R: usize, const V: usize>(t: &Tile<L::Elem>) {
    let (mut a, mut b) = (t.a, t.b);
    // SAFETY: the caller vouches for the CPU, and for the pointers within rows, `k` and columns, which is all that is
    // touched: the last vector is masked, and `a` and `b` step with `wrapping_offset` past the last `k`.
    unsafe {
        let mask = L::mask(t.cols - (V - 1) * L::COUNT);
        if t.k > LONG {
            // C is far away by the time that it is needed, unless it is asked for now.
            for r in 0..R {
                let c_row = t.c.wrapping_offset(r as isize * t.c_row_stride);
                (0..V).for_each(|v| prefetch(c_row.wrapping_add(v * L::COUNT).cast_const()));
            }
        }
        let mut sums = [[L::splat(L::Elem::ZERO); V]; R];
        for _ in 0..t.k {
            if V > 1 {
                // B in place comes from far and at a stride that the hardware does not foresee.
                let ahead = b.wrapping_offset(AHEAD * t.b_row_stride);
                let line = 64 / size_of::<L::Elem>();
                (0..V * L::COUNT).step_by(line).for_each(|column| prefetch(ahead.wrapping_add(column)));
            }
            let mut b_row = [L::splat(L::Elem::ZERO); V];
            for (v, b_vector) in b_row.iter_mut().enumerate() {
                let p = b.add(v * L::COUNT);
                *b_vector = if v + 1 == V { L::load_first(p, mask) } else { L::load(p) };
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                let x = L::splat(*a.offset(r as isize * t.a_row_stride));
                for (sum, b_vector) in sums.iter_mut().zip(b_row) {
                    *sum = x.mul_add(b_vector, *sum);
                }
            }
            a = a.wrapping_offset(t.a_col_stride);
            b = b.wrapping_offset(t.b_row_stride);
        }

        let alpha = L::splat(t.alpha);
        let beta = L::splat(t.beta);
        let keep = t.beta != L::Elem::ZERO;
        for (r, sums) in sums.iter().enumerate() {
            let c_row = t.c.offset(r as isize * t.c_row_stride);
            for (v, sum) in sums.iter().enumerate() {
                let c = c_row.add(v * L::COUNT);
                // A masked store is slow on some CPUs.
                let last = v + 1 == V && t.cols < V * L::COUNT;
                let mut base = L::splat(L::Elem::ZERO);
                if keep {
                    let old = if last { L::load_first(c, mask) } else { L::load(c) };
                    base = beta.mul_add(old, base);
                }
                let new = alpha.mul_add(*sum, base);
                if last { new.store_first(c, mask) } else { new.store(c) }
            }
        }
    }
}

/// [`tile`] compiled for one instruction set. The contract is that of [`TileFn`].
macro_rules! compiled {
    ($($(#[$attribute:meta])* $name:ident)*) => {$(
        $(#[$attribute])*
        pub(super) unsafe fn $name<L: Lanes, const R: usize, const V: usize>(t: &Tile<L::Elem>) {
            // SAFETY: the contract is the same.
            unsafe { tile::<L, R, V>(t) }
        }
    )*};
}
compiled! {
    baseline
    #[cfg(target_arch = "x86_64")] #[target_feature(enable = "avx2,fma")] avx2
    #[cfg(target_arch = "x86_64")] #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")] avx512
}

/// `kernels!(avx2, F32x8, [1 2 3])`: all forms with up to three rows.
macro_rules! kernels {
    ($compiled:ident, $L:ty, [$($rows:literal)*]) => {
        &const {
            Kernels {
                lanes: <$L>::COUNT,
                rows: [$($rows),*].len(),
                tiles: [&[$(kernel::$compiled::<$L, $rows, 1>),*], &[$(kernel::$compiled::<$L, $rows, 2>),*]],
            }
        }
    };
}
pub(super) use kernels;

impl<T: Accumulator> Kernels<T> {
    /// The kernels for this CPU.
    #[inline]
    pub(super) fn get() -> &'static Self {
        T::kernels(isa())
    }
}
