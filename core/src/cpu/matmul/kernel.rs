//! The innermost loop, which computes one tile of C in registers, and the table of its forms.
//!
//! A tile has `R` rows and `V` vectors of columns. For each `k`, the kernel loads `V` vectors from a row of
//! B. For each row of the tile it then fills a vector with a number of A and does `V` fused multiply-adds.
//! These are `R V` multiply-adds for `R + V` loads, so large tiles are efficient. But all `R V` sums must
//! stay in registers: 14 × 2 of the 32 registers of AVX-512, 6 × 2 of the 16 of AVX2.
//!
//! There is a kernel for each number of rows, so that no shape pays for rows that it does not have. Missing
//! columns are masked. Every kernel sums over `k` from first to last, so the bits of a result do not depend
//! on how C is cut into tiles.

use super::element::Accumulator;
use super::lanes::Lanes;
use super::pack::prefetch;
use crate::cpu::simd::{Simd, Vectorized, isa};

/// The arguments of a kernel: `C ← alpha A B + beta C` for one tile.
pub(crate) struct Tile<T> {
    /// The length of the sums.
    pub(super) k: usize,
    /// The first row of A, packed or in place.
    pub(super) a: *const T,
    pub(super) a_row_stride: isize,
    pub(super) a_col_stride: isize,
    /// The first row of B. Rows are contiguous.
    pub(super) b: *const T,
    pub(super) b_row_stride: isize,
    /// The first row of C. Rows are contiguous.
    pub(super) c: *mut T,
    pub(super) c_row_stride: isize,
    /// The number of rows.
    pub(super) rows: usize,
    /// The number of columns. It is at most that of the kernel's vectors, and the last vector has at least
    /// one.
    pub(super) cols: usize,
    pub(super) alpha: T,
    /// If 0, C is written and not read.
    pub(super) beta: T,
}

/// A kernel.
///
/// # Safety
/// The CPU has its instructions. The pointers of the tile are valid for the rows of the kernel, `k` and
/// `cols`, that of C for writes by this call alone.
pub(crate) type TileFn<T> = unsafe fn(&Tile<T>);

/// What a panel of A or B is made of.
#[derive(Clone, Copy)]
pub(super) enum Layout {
    /// The numbers, as accumulators.
    Numbers,
    /// Pairs along `k`, in the bits of an accumulator.
    #[cfg(target_arch = "x86_64")]
    Pairs,
    /// The tiles of `amx`, of pairs.
    #[cfg(target_arch = "x86_64")]
    Tiles,
}

impl Layout {
    /// The numbers along `k` in an element of a panel.
    pub(super) fn depth(self) -> usize {
        match self {
            Layout::Numbers => 1,
            #[cfg(target_arch = "x86_64")]
            Layout::Pairs | Layout::Tiles => 2,
        }
    }

    /// The rows of a panel of A, and its elements along `k`, are multiples of this.
    pub(super) fn unit(self) -> usize {
        match self {
            Layout::Numbers => 1,
            #[cfg(target_arch = "x86_64")]
            Layout::Pairs => 1,
            #[cfg(target_arch = "x86_64")]
            Layout::Tiles => super::amx::SIDE,
        }
    }
}

/// The kernels for a type of number and a set of instructions.
pub(crate) struct Kernels<T: 'static> {
    /// What the panels of A and B have.
    pub(super) layout: Layout,
    /// The numbers in a vector.
    pub(super) lanes: usize,
    /// The greatest number of rows of a tile.
    pub(super) rows: usize,
    /// The kernels by their number of vectors, 1 or 2, and then by their rows.
    pub(super) tiles: [&'static [TileFn<T>]; 2],
}

/// How many rows ahead B is prefetched.
const AHEAD: isize = 16;

/// The `k` above which C is prefetched. For a shorter one the hardware does better.
const LONG: usize = 100;

/// Computes a tile of `R` rows and `V` vectors.
///
/// # Safety
/// The contract of [`TileFn`], in code compiled for the instructions of `L`.
#[inline(always)]
pub(super) unsafe fn tile<L: Lanes, const R: usize, const V: usize>(t: &Tile<L::Elem>) {
    let (mut a, mut b) = (t.a, t.b);
    // SAFETY: the caller guarantees that the CPU has the instructions and that the pointers are valid for the
    // rows, `k` and the columns. Nothing else is accessed: the last vector is masked, and `a` and `b` step
    // past the last `k` with `wrapping_offset`.
    unsafe {
        let mask = L::mask(t.cols - (V - 1) * L::COUNT);
        if t.k > LONG {
            // Without prefetching, C would have to come from memory when it is needed.
            for r in 0..R {
                let c_row = t.c.wrapping_offset(r as isize * t.c_row_stride);
                (0..V).for_each(|v| prefetch(c_row.wrapping_add(v * L::COUNT).cast_const()));
            }
        }
        let mut sums = [[L::splat(L::Elem::ZERO); V]; R];
        for _ in 0..t.k {
            if V > 1 {
                // In place, B is far away, at a stride that the hardware does not predict.
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
                    *sum = x.accumulate(b_vector, *sum);
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

/// [`tile`] compiled for the instructions of `S`, with their vectors. The contract is that of [`TileFn`].
pub(super) unsafe fn compiled<S: Simd, T: Accumulator, const R: usize, const V: usize>(t: &Tile<T>) {
    // SAFETY: the contract is the same.
    unsafe { S::assume() }.run(TileOf::<T, R, V>(t), ());
}

/// The argument of a [`TileFn`], which meets its contract.
struct TileOf<'a, T, const R: usize, const V: usize>(&'a Tile<T>);

impl<T: Accumulator, const R: usize, const V: usize> Vectorized for TileOf<'_, T, R, V> {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, _: ()) {
        // SAFETY: the contract of `TileFn` holds, and this code is compiled for the vectors of `S`.
        unsafe { tile::<S::Lanes<T>, R, V>(self.0) }
    }
}

/// The kernels of a type of number for a set of instructions, or those of `pairs`, for tiles with the listed
/// numbers of rows.
///
/// `kernels!(Avx2, f32, [1 2])` becomes
///
/// ```ignore
/// Kernels {
///     layout: Layout::Numbers,
///     lanes: <<Avx2 as Simd>::Lanes<f32> as Lanes>::COUNT,
///     rows: [1, 2].len(),
///     tiles: [
///         &[compiled::<Avx2, f32, 1, 1>, compiled::<Avx2, f32, 2, 1>],
///         &[compiled::<Avx2, f32, 1, 2>, compiled::<Avx2, f32, 2, 2>],
///     ],
/// }
/// ```
macro_rules! kernels {
    ($S:ident, $T:ident, [$($rows:literal)*]) => {
        Kernels {
            layout: Layout::Numbers,
            lanes: <<$S as Simd>::Lanes<$T> as Lanes>::COUNT,
            rows: [$($rows),*].len(),
            tiles: [&[$(compiled::<$S, $T, $rows, 1>),*], &[$(compiled::<$S, $T, $rows, 2>),*]],
        }
    };
    (pairs [$($rows:literal)*]) => {
        Kernels {
            layout: Layout::Pairs,
            lanes: <PairsX16 as $crate::cpu::matmul::Lanes>::COUNT,
            rows: [$($rows),*].len(),
            tiles: [&[$(tile_of_pairs::<$rows, 1>),*], &[$(tile_of_pairs::<$rows, 2>),*]],
        }
    };
}
pub(super) use kernels;

impl<T: Accumulator> Kernels<T> {
    /// The kernels for this CPU, if there are any.
    #[inline]
    pub(super) fn get() -> Option<&'static Self> {
        T::KERNELS[isa() as usize].as_ref()
    }
}
