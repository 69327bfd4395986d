//! The step of [`matvec`](super::matvec) for a B with contiguous rows: each row of C is a sum of rows of B.

use std::mem::MaybeUninit;

use super::element::Accumulator;
use super::lanes::Lanes;
use super::matvec::{Block, ROWS};
use crate::cpu::simd::{Simd, Vectorized};

/// The columns of C whose sums stay in the L1 cache, for one row and for several.
const N_MAX: [usize; 2] = [1024, 512];
/// The distance between rows of sums: a few cache lines more than the columns take.
const SUMS_STRIDE: usize = N_MAX[1] + 48;

/// Some columns of C with a buffer for their sums. The rows of the buffer use different parts of the cache,
/// which rows of C often do not.
struct Strip<T> {
    j: usize,
    n: usize,
    sums: *mut T,
}

/// Computes C as sums of rows of B. Several rows are added at once, so that the sums are not read and written
/// for each.
///
/// # Safety
/// The contract of [`gemm`](super::gemm) for the block, which has at most [`ROWS`] rows.
pub(super) unsafe fn block<T: Accumulator>(p: &Block<T>) {
    T::run_product(Axpys(p), ());
}

/// The argument of [`block`], which meets its contract.
struct Axpys<'a, T>(&'a Block<T>);

impl<T: Accumulator> Vectorized for Axpys<'_, T> {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, _: ()) {
        let p = self.0;
        let mut sums = [const { MaybeUninit::<T>::uninit() }; ROWS * SUMS_STRIDE];
        let n_max = if p.m == 1 { N_MAX[0] } else { N_MAX[1] };
        for j in (0..p.n).step_by(n_max) {
            let n = n_max.min(p.n - j);
            let used = if p.m == 1 { n } else { p.m * SUMS_STRIDE };
            sums[..used].fill(MaybeUninit::new(T::ZERO));
            let strip = Strip { j, n, sums: sums.as_mut_ptr().cast() };
            // SAFETY: the contract of `block` holds, and this code is compiled for the vectors of `S`. These
            // columns exist. The buffer has room for all sums, and those that are used have been set to 0.
            unsafe {
                if p.m == 1 {
                    add_all::<S::Lanes<T>, 8, false>(p, &strip);
                } else {
                    add_all::<S::Lanes<T>, 4, true>(p, &strip);
                }
                for i in 0..p.m {
                    let c = p.c.offset(i as isize * p.c_row_stride).add(j);
                    for j in 0..n {
                        p.finish(sums[i * SUMS_STRIDE + j].assume_init(), c.add(j));
                    }
                }
            }
        }
    }
}

/// Adds all rows of B, `G` at a time, to the sums for one row of C or for `MANY`.
///
/// # Safety
/// The contract of [`block`], in code compiled for `L`; the columns exist.
#[inline(always)]
unsafe fn add_all<L: Lanes, const G: usize, const MANY: bool>(p: &Block<L::Elem>, strip: &Strip<L::Elem>) {
    let whole = p.k / G * G;
    // SAFETY: these rows exist.
    unsafe {
        for l in (0..whole).step_by(G) {
            add_group::<L, G, MANY>(p, strip, l);
        }
        for l in whole..p.k {
            add_group::<L, 1, MANY>(p, strip, l);
        }
    }
}

/// Adds `G` rows of B from row `l` on to the sums for all rows of C.
///
/// # Safety
/// The contract of [`add_all`]; the rows exist.
#[inline(always)]
unsafe fn add_group<L: Lanes, const G: usize, const MANY: bool>(
    p: &Block<L::Elem>,
    strip: &Strip<L::Elem>,
    l: usize,
) {
    let mut i = 0;
    // SAFETY: these rows exist.
    unsafe {
        if MANY {
            while i + 4 <= p.m {
                tile::<L, 4, G>(p, strip, i, l);
                i += 4;
            }
            if i + 2 <= p.m {
                tile::<L, 2, G>(p, strip, i, l);
                i += 2;
            }
        }
        if i < p.m {
            tile::<L, 1, G>(p, strip, i, l);
        }
    }
}

/// Adds `G` rows of B from row `l` on to the sums for `R` rows of C from row `i` on.
///
/// # Safety
/// The contract of [`add_all`]; the rows exist.
#[inline(always)]
unsafe fn tile<L: Lanes, const R: usize, const G: usize>(
    p: &Block<L::Elem>,
    strip: &Strip<L::Elem>,
    i: usize,
    l: usize,
) {
    // SAFETY: the caller guarantees that the rows and columns exist.
    unsafe {
        // Loops here and below, since `from_fn` and `map` of arrays cost the compiler more than everything
        // else.
        let mut a = [[L::splat(L::Elem::ZERO); G]; R];
        let mut sums = [strip.sums; R];
        for (r, (a, sums)) in (i..).zip(a.iter_mut().zip(&mut sums)) {
            let from = p.a.offset(r as isize * p.a_row_stride).add(l);
            for (g, a) in a.iter_mut().enumerate() {
                *a = L::splat(*from.add(g));
            }
            *sums = strip.sums.add(r * SUMS_STRIDE);
        }
        let mut rows = [p.b.ptr; G];
        for (g, row) in rows.iter_mut().enumerate() {
            *row = p.b.at(l + g, strip.j).ptr;
        }
        let mut b = [L::splat(L::Elem::ZERO); G];
        let whole = strip.n / L::COUNT * L::COUNT;
        for j in (0..whole).step_by(L::COUNT) {
            for (b, row) in b.iter_mut().zip(rows) {
                *b = L::load(row.add(j));
            }
            for (a, sums) in a.iter().zip(sums) {
                let mut sum = L::load(sums.add(j));
                for (a, b) in a.iter().zip(b) {
                    sum = a.mul_add(b, sum);
                }
                sum.store(sums.add(j));
            }
        }
        if whole < strip.n {
            let mask = L::mask(strip.n - whole);
            for (b, row) in b.iter_mut().zip(rows) {
                *b = L::load_first(row.add(whole), mask);
            }
            for (a, sums) in a.iter().zip(sums) {
                let sums = sums.add(whole);
                let mut sum = L::load_first(sums, mask);
                for (a, b) in a.iter().zip(b) {
                    sum = a.mul_add(b, sum);
                }
                sum.store_first(sums, mask);
            }
        }
    }
}
