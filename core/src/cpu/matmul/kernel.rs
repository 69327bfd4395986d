//! The innermost loop, which computes one tile of C in registers.
//!
//! A tile has `R` rows and `V` vectors of columns. For each `k`, the kernel loads `V` vectors from a row of
//! B. For each row of the tile it then fills a vector with a number of A and does `V` fused multiply-adds.
//! These are `R V` multiply-adds for `R + V` loads, so large tiles are efficient. But all `R V` sums must
//! stay in registers: 14 × 2 of the 32 registers of AVX-512, 6 × 2 of the 16 of AVX2.
//!
//! There are kernels for some numbers of rows, and other tiles are computed by several kernels. Missing
//! columns are masked. Kernels that are `SCATTERED` find each column of A and row of B by a list of offsets,
//! such as the windows of a convolution, which overlap in memory. Every kernel sums over `k` from first to
//! last, so the bits of a result do not depend on how C is cut into tiles.
//!
//! Hot loops here and in the steps of `matvec` count with `while`: iterators over arrays cost the compiler
//! more than everything else in them.

use std::marker::PhantomData;

use super::element::Accumulator;
use super::lanes::Lanes;
use super::pack::prefetch;
use super::product::Tile;
use crate::cpu::simd::{Simd, Vectorized};

/// How many rows ahead B is prefetched.
const AHEAD: isize = 16;

/// The `k` above which C is prefetched. For a shorter one the hardware does better.
const LONG: usize = 100;

/// Computes a tile of `R` rows and `V` vectors.
///
/// # Safety
/// The contract of [`TileFn`](super::product::TileFn), in code compiled for the instructions of `L`.
#[inline(always)]
pub(super) unsafe fn tile<L: Lanes, const R: usize, const V: usize, const SCATTERED: bool>(t: &Tile) {
    let (mut a, mut b) = (t.a, t.b);
    let width = L::COUNT * size_of::<L::Elem>(); // the bytes of a vector
    // SAFETY: the caller guarantees that the CPU has the instructions and that the pointers are valid for the
    // rows, `k` and the columns. Nothing else is accessed: the last vector is masked, and `a` and `b` step
    // past the last `k` with `wrapping_offset`.
    unsafe {
        let mask = L::mask(t.cols - (V - 1) * L::COUNT);
        if t.k > LONG {
            // Without prefetching, C would have to come from memory when it is needed.
            let mut r = 0;
            while r < R {
                let c_row = t.c.wrapping_offset(r as isize * t.c_row).cast_const();
                prefetch(c_row);
                if V > 1 {
                    prefetch(c_row.wrapping_add(width));
                }
                r += 1;
            }
        }
        let mut sums = [[L::splat(L::Elem::ZERO); V]; R];
        let mut b_row = [L::splat(L::Elem::ZERO); V];
        let mut k = t.k;
        while k > 0 {
            if SCATTERED {
                let [column, row] = *t.offsets.add(t.k - k);
                (a, b) = (t.a.offset(column as isize), t.b.offset(row as isize));
            } else if V > 1 {
                // In place, B is far away, at a stride that the hardware does not predict.
                let ahead = b.wrapping_offset(AHEAD * t.b_row);
                let mut line = 0;
                while line < V * width {
                    prefetch(ahead.wrapping_add(line));
                    line += 64;
                }
            }
            let mut v = 0;
            while v < V {
                let p = b.add(v * width).cast();
                b_row[v] = if v + 1 == V { L::load_first(p, mask) } else { L::load(p) };
                v += 1;
            }
            let mut r = 0;
            while r < R {
                let x = L::splat(*a.offset(r as isize * t.a_row).cast());
                let mut v = 0;
                while v < V {
                    sums[r][v] = x.accumulate(b_row[v], sums[r][v]);
                    v += 1;
                }
                r += 1;
            }
            if !SCATTERED {
                (a, b) = (a.wrapping_offset(t.a_col), b.wrapping_offset(t.b_row));
            }
            k -= 1;
        }

        let alpha = L::splat(L::Elem::of_bits(t.alpha));
        let beta = L::splat(L::Elem::of_bits(t.beta));
        let mut r = 0;
        while r < R {
            let c_row = t.c.offset(r as isize * t.c_row);
            let mut v = 0;
            while v < V {
                let c = c_row.add(v * width).cast();
                // A masked store is slow on some CPUs.
                let last = v + 1 == V && t.cols < V * L::COUNT;
                let mut base = L::splat(L::Elem::ZERO);
                if t.beta != 0 {
                    let old = if last { L::load_first(c, mask) } else { L::load(c) };
                    base = beta.mul_add(old, base);
                }
                let new = alpha.mul_add(sums[r][v], base);
                if last {
                    new.store_first(c, mask)
                } else {
                    new.store(c)
                }
                v += 1;
            }
            r += 1;
        }
    }
}

/// [`tile`] compiled for the instructions of `S`. The contract is that of
/// [`TileFn`](super::product::TileFn).
pub(super) unsafe fn compiled<S: Simd, L: Lanes, const R: usize, const V: usize, const SCATTERED: bool>(
    t: &Tile,
) {
    // SAFETY: the contract is the same.
    unsafe { S::assume() }.run(TileOf::<L, R, V, SCATTERED>(t, PhantomData), ());
}

/// The argument of a kernel, which meets its contract.
struct TileOf<'a, L, const R: usize, const V: usize, const SCATTERED: bool>(&'a Tile, PhantomData<L>);

impl<L: Lanes, const R: usize, const V: usize, const SCATTERED: bool> Vectorized
    for TileOf<'_, L, R, V, SCATTERED>
{
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, _: ()) {
        // SAFETY: the contract of a kernel holds.
        unsafe { tile::<L, R, V, SCATTERED>(self.0) }
    }
}
