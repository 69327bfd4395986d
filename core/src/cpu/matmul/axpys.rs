//! The step of `matvec` for a B with contiguous rows: each row of C is a sum of rows of B.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::element::Accumulator;
use super::lanes::Lanes;
use super::product::Strip;
use super::rounded::finish;
use crate::cpu::simd::{Simd, Vectorized};

/// The most rows of a strip.
pub(super) const ROWS: usize = 8;
/// The columns of C whose sums stay in the L1 cache, for one row and for several.
const N_MAX: [usize; 2] = [1024, 512];
/// The distance between rows of sums: a few cache lines more than the columns take. So rows of sums use
/// different parts of the cache, which rows of C often do not.
const SUMS_STRIDE: usize = N_MAX[1] + 48;
/// The rows of B that are added at once, so that the sums are not read and written for each.
const GROUP: usize = 8;

/// Computes C as sums of rows of B, in code compiled for `S`. The contract is that of
/// [`StripFn`](super::product::StripFn), with at most [`ROWS`] rows.
pub(super) unsafe fn axpys<S: Simd, L: Lanes>(p: &Strip) {
    // SAFETY: the contract is the same.
    unsafe { S::assume() }.run(Axpys::<L>(p, PhantomData), ());
}

/// The argument of [`axpys`], which meets its contract.
struct Axpys<'a, L>(&'a Strip, PhantomData<L>);

impl<L: Lanes> Vectorized for Axpys<'_, L> {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, _: ()) {
        let p = self.0;
        let mut memory = [const { MaybeUninit::<L::Elem>::uninit() }; ROWS * SUMS_STRIDE];
        let n_max = if p.m == 1 { N_MAX[0] } else { N_MAX[1] };
        let mut j = 0;
        while j < p.n {
            let n = n_max.min(p.n - j);
            let used = if p.m == 1 { n } else { p.m * SUMS_STRIDE };
            memory[..used].fill(MaybeUninit::new(L::Elem::ZERO));
            let sums = memory.as_mut_ptr().cast::<L::Elem>();
            // SAFETY: the contract of `axpys` holds, and this code is compiled for the vectors. These columns
            // exist. The memory has room for all sums, and those that are used have been set to 0.
            unsafe {
                let mut l = 0;
                while l < p.k {
                    l += add_group::<L>(p, l, (j, n), sums);
                }
                let mut i = 0;
                while i < p.m {
                    let c = p.sums.ptr.offset(i as isize * p.sums.row).cast::<L::Elem>().add(j);
                    let mut at = 0;
                    while at < n {
                        finish(*sums.add(i * SUMS_STRIDE + at), p, c.add(at));
                        at += 1;
                    }
                    i += 1;
                }
            }
            j += n;
        }
    }
}

/// Adds [`GROUP`] rows of B from row `l` on, or one if there are fewer, to the sums of all rows of C. Returns
/// how many.
///
/// # Safety
/// The contract of [`axpys`], in code compiled for `L`; the row and the columns, given by start and number,
/// exist.
#[inline(always)]
unsafe fn add_group<L: Lanes>(p: &Strip, l: usize, cols: (usize, usize), sums: *mut L::Elem) -> usize {
    let group = if L::IS_RARE || p.k - l < GROUP { 1 } else { GROUP };
    let mut i = 0;
    // SAFETY: these rows exist.
    unsafe {
        while group == GROUP && i + 4 <= p.m {
            tile::<L, 4, 4>(p, i, l, cols, sums);
            tile::<L, 4, 4>(p, i, l + 4, cols, sums);
            i += 4;
        }
        while i < p.m {
            if group == GROUP {
                tile::<L, 1, GROUP>(p, i, l, cols, sums);
            } else {
                tile::<L, 1, 1>(p, i, l, cols, sums);
            }
            i += 1;
        }
    }
    group
}

/// Adds `G` rows of B from row `l` on to the sums for `R` rows of C from row `i` on.
///
/// # Safety
/// The contract of [`add_group`]; the rows exist.
#[inline(always)]
unsafe fn tile<L: Lanes, const R: usize, const G: usize>(
    p: &Strip,
    i: usize,
    l: usize,
    (j, n): (usize, usize),
    sums: *mut L::Elem,
) {
    // SAFETY: the caller guarantees that the rows and columns exist.
    unsafe {
        let mut a = [[L::splat(L::Elem::ZERO); G]; R];
        let mut r = 0;
        while r < R {
            let from = p.a.offset((i + r) as isize * p.a_row).cast::<L::Elem>().add(l);
            let mut g = 0;
            while g < G {
                a[r][g] = L::splat(*from.add(g));
                g += 1;
            }
            r += 1;
        }
        let b = p.b.at(l, j).ptr.cast::<L::Elem>();
        let sums = sums.add(i * SUMS_STRIDE);
        let mut at = 0;
        while at + L::COUNT <= n {
            add::<L, R, G>(&a, b.add(at), p.b.row, sums.add(at), None);
            at += L::COUNT;
        }
        if at < n {
            add::<L, R, G>(&a, b.add(at), p.b.row, sums.add(at), Some(L::mask(n - at)));
        }
    }
}

/// Adds a vector of each row of B to a vector of each row of sums.
///
/// # Safety
/// The contract of [`tile`] for the numbers of the vectors.
#[inline(always)]
unsafe fn add<L: Lanes, const R: usize, const G: usize>(
    a: &[[L; G]; R],
    b: *const L::Elem,
    b_row: isize,
    sums: *mut L::Elem,
    mask: Option<L::Mask>,
) {
    // SAFETY: the contract is the same.
    unsafe {
        let mut rows = [L::splat(L::Elem::ZERO); G];
        let mut g = 0;
        while g < G {
            rows[g] = L::load_if(b.byte_offset(g as isize * b_row), mask);
            g += 1;
        }
        let mut r = 0;
        while r < R {
            let to = sums.add(r * SUMS_STRIDE);
            let mut sum = L::load_if(to, mask);
            let mut g = 0;
            while g < G {
                sum = a[r][g].mul_add(rows[g], sum);
                g += 1;
            }
            match mask {
                Some(mask) => sum.store_first(to, mask),
                None => sum.store(to),
            }
            r += 1;
        }
    }
}
