//! Products with a vector, or with a few rows: each number of B is used once or a few times, so that all is in
//! reading B in the order in which it lies, and in touching nothing else.

#[cfg(doc)]
use super::blocked::Method;
use super::element::{Accumulator, MatmulElement};
use super::lanes::{Lanes, vectors};
use super::pack::{PANELS, pack, with_buffer};
use super::{Mat, Product};

/// The most rows of A for the methods of this file.
pub(super) const ROWS: usize = 4;
/// The most rows of A for [`axpys`] and a B larger than the caches of a core, which is better read once and in order.
pub(super) const ROWS_OF_LARGE: usize = 8;
/// What makes B large, in bytes.
pub(super) const LARGE: usize = 1 << 20;

/// The most of `k` in a block: so many numbers of each row of A are kept near while all of B's columns pass.
const K_MAX: usize = 4096;

/// The [`Method`] for a few rows and a B whose columns are contiguous: each number of C is a dot product.
///
/// # Safety
/// That of a [`Method`].
pub(super) unsafe fn dots<T: MatmulElement>(
    p: &Product<T>,
    beta: T::Acc,
    c: *mut T::Acc,
    c_row_stride: isize,
) {
    // SAFETY: the contract is the same.
    unsafe { in_blocks_of_k(p, beta, c, c_row_stride, dots_block) }
}

/// The [`Method`] for a few rows and a B whose rows are contiguous: each row of C is a sum of B's rows.
///
/// # Safety
/// That of a [`Method`].
pub(super) unsafe fn axpys<T: MatmulElement>(
    p: &Product<T>,
    beta: T::Acc,
    c: *mut T::Acc,
    c_row_stride: isize,
) {
    // SAFETY: the contract is the same.
    unsafe { in_blocks_of_k(p, beta, c, c_row_stride, axpys_block) }
}

/// A block of `k` of a product whose A has few rows.
struct Block<T: MatmulElement> {
    m: usize,
    k: usize,
    n: usize,
    alpha: T::Acc,
    /// A, whose numbers lie side by side in each row.
    a: *const T::Acc,
    a_row_stride: isize,
    b: Mat<*const T>,
    beta: T::Acc,
    /// C, likewise.
    c: *mut T::Acc,
    c_row_stride: isize,
}

/// Calls `step` for blocks of `k`, all but the first of which add to C. The rows of A are copied to a buffer unless
/// they are ready for vectors where they are.
///
/// # Safety
/// That of a [`Method`].
unsafe fn in_blocks_of_k<T: MatmulElement>(
    p: &Product<T>,
    beta: T::Acc,
    c: *mut T::Acc,
    c_row_stride: isize,
    step: unsafe fn(&Block<T>),
) {
    let ready = T::IS_ACC && p.a.col_stride == 1;
    let room = if ready { 0 } else { p.m * p.k.min(K_MAX) };
    with_buffer(&PANELS, room, |buffer: *mut T::Acc| {
        for l in (0..p.k).step_by(K_MAX) {
            let k = (p.k - l).min(K_MAX);
            let (mut a, mut a_row_stride) = (p.a.at(0, l).ptr.cast(), p.a.row_stride);
            if !ready {
                for i in 0..p.m {
                    // SAFETY: the row exists, and the buffer has room for all of them.
                    unsafe { pack(1, k, k, p.a.at(i, l).ptr, 0, p.a.col_stride, buffer.add(i * k)) };
                }
                (a, a_row_stride) = (buffer.cast_const(), k as isize);
            }
            let beta = if l == 0 { beta } else { T::Acc::ONE };
            let (m, n, alpha, b) = (p.m, p.n, p.alpha, p.b.at(l, 0));
            // SAFETY: the block lies within the operands.
            unsafe { step(&Block { m, k, n, alpha, a, a_row_stride, b, beta, c, c_row_stride }) };
        }
    });
}

vectors! {
    /// C from dot products.
    ///
    /// # Safety
    /// That of [`gemm`](super::gemm) for the block.
    unsafe fn dots_block[T, L](p: &Block<T>) {
        // Sums that do not wait for each other hide the latency of an addition: eight or so of them.
        // SAFETY: the contract is the same.
        unsafe {
            match p.m {
                1 => dots_rows::<T, L, 1, 4, 2>(p),
                2 => dots_rows::<T, L, 2, 4, 1>(p),
                3 => dots_rows::<T, L, 3, 2, 1>(p),
                _ => dots_rows::<T, L, ROWS, 2, 1>(p),
            }
        }
    }
}

/// All columns of C, `J` at a time; each sum is kept in `U` vectors.
///
/// # Safety
/// That of [`dots_block`] for `R` rows, in code compiled for `L`.
#[inline(always)]
unsafe fn dots_rows<T, L, const R: usize, const J: usize, const U: usize>(p: &Block<T>)
where
    T: MatmulElement,
    L: Lanes<Elem = T::Acc>,
{
    let whole = p.n / J * J;
    for j in (0..whole).step_by(J) {
        // SAFETY: these columns exist.
        unsafe { dots_tile::<T, L, R, J, U>(p, j) };
    }
    for j in whole..p.n {
        // SAFETY: this column exists.
        unsafe { dots_tile::<T, L, R, 1, U>(p, j) };
    }
}

/// `J` columns of C from column `j` on. The order of a sum does not depend on `J`.
///
/// # Safety
/// That of [`dots_rows`]; the columns exist.
#[inline(always)]
unsafe fn dots_tile<T, L, const R: usize, const J: usize, const U: usize>(p: &Block<T>, j: usize)
where
    T: MatmulElement,
    L: Lanes<Elem = T::Acc>,
{
    // SAFETY: rows and columns exist, and have `k` numbers side by side.
    unsafe {
        let mut sums = [[[L::splat(T::Acc::ZERO); J]; R]; U];
        let columns: [*const T; J] = std::array::from_fn(|t| p.b.at(0, j + t).ptr);
        let mut l = 0;
        while l + U * L::COUNT <= p.k {
            for sums in &mut sums {
                let b = columns.map(|column| L::load_wide(column.add(l)));
                for (i, sums) in sums.iter_mut().enumerate() {
                    let a = L::load(p.a.offset(i as isize * p.a_row_stride).add(l));
                    for (sum, b) in sums.iter_mut().zip(b) {
                        *sum = a.mul_add(b, *sum);
                    }
                }
                l += L::COUNT;
            }
        }
        while l < p.k {
            let count = (p.k - l).min(L::COUNT);
            let b = columns.map(|column| L::load_wide_first(column.add(l), count));
            for (i, sums) in sums[0].iter_mut().enumerate() {
                let a = L::load_first(p.a.offset(i as isize * p.a_row_stride).add(l), L::mask(count));
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = a.mul_add(b, *sum);
                }
            }
            l += count;
        }
        for i in 0..R {
            for t in 0..J {
                let sum =
                    (1..U).fold(sums[0][i][t], |sum, u| L::splat(T::Acc::ONE).mul_add(sum, sums[u][i][t]));
                let c = p.c.offset(i as isize * p.c_row_stride).add(j + t);
                finish(p, sum.sum(), c);
            }
        }
    }
}

/// Columns of C whose sums stay in the first cache, for one row and for several.
const N_MAX: [usize; 2] = [1024, 512];
/// From one row of sums to the next: some lines more than the columns take.
const SUMS_STRIDE: usize = N_MAX[1] + 48;

/// Some columns of C, and where their sums are formed. The rows of sums lie apart from each other in the cache, which
/// those of C often do not.
struct Strip<T> {
    j: usize,
    n: usize,
    sums: *mut T,
}

vectors! {
    /// C as sums of rows of B, some of which are added at once, so that the sums are not read and written for each.
    ///
    /// # Safety
    /// That of [`gemm`](super::gemm) for the block, of at most [`ROWS_OF_LARGE`] rows.
    unsafe fn axpys_block[T, L](p: &Block<T>) {
        let mut sums = [T::Acc::ZERO; ROWS_OF_LARGE * SUMS_STRIDE];
        let n_max = if p.m == 1 { N_MAX[0] } else { N_MAX[1] };
        for j in (0..p.n).step_by(n_max) {
            let n = n_max.min(p.n - j);
            let used = if p.m == 1 { n } else { p.m * SUMS_STRIDE };
            sums[..used].fill(T::Acc::ZERO);
            let strip = Strip { j, n, sums: sums.as_mut_ptr() };
            // SAFETY: these columns exist, and there is room for all sums.
            unsafe {
                if p.m == 1 {
                    axpys_strip::<T, L, 8>(p, &strip);
                } else {
                    axpys_strip::<T, L, 4>(p, &strip);
                }
                for i in 0..p.m {
                    let c = p.c.offset(i as isize * p.c_row_stride).add(j);
                    for j in 0..n {
                        finish(p, sums[i * SUMS_STRIDE + j], c.add(j));
                    }
                }
            }
        }
    }
}

/// `c ← alpha sum + beta c`
///
/// # Safety
/// `c` is valid for writing, and for reading unless `beta` is zero.
#[inline(always)]
unsafe fn finish<T: MatmulElement>(p: &Block<T>, sum: T::Acc, c: *mut T::Acc) {
    // SAFETY: the contract is the same.
    unsafe {
        let base = if p.beta == T::Acc::ZERO { T::Acc::ZERO } else { p.beta.mul_add(*c, T::Acc::ZERO) };
        c.write(p.alpha.mul_add(sum, base));
    }
}

/// Adds all rows of B, `G` at a time.
///
/// # Safety
/// That of [`axpys_block`], in code compiled for `L`; the columns exist.
#[inline(always)]
unsafe fn axpys_strip<T, L, const G: usize>(p: &Block<T>, strip: &Strip<T::Acc>)
where
    T: MatmulElement,
    L: Lanes<Elem = T::Acc>,
{
    let whole = p.k / G * G;
    // SAFETY: these rows exist.
    unsafe {
        for l in (0..whole).step_by(G) {
            axpys_group::<T, L, G>(p, strip, l);
        }
        for l in whole..p.k {
            axpys_group::<T, L, 1>(p, strip, l);
        }
    }
}

/// Adds `G` rows of B from row `l` on to the sums for all rows of C.
///
/// # Safety
/// That of [`axpys_strip`]; the rows exist.
#[inline(always)]
unsafe fn axpys_group<T, L, const G: usize>(p: &Block<T>, strip: &Strip<T::Acc>, l: usize)
where
    T: MatmulElement,
    L: Lanes<Elem = T::Acc>,
{
    let mut i = 0;
    // SAFETY: these rows exist.
    unsafe {
        while i + 4 <= p.m {
            axpys_tile::<T, L, 4, G>(p, strip, i, l);
            i += 4;
        }
        if i + 2 <= p.m {
            axpys_tile::<T, L, 2, G>(p, strip, i, l);
            i += 2;
        }
        if i < p.m {
            axpys_tile::<T, L, 1, G>(p, strip, i, l);
        }
    }
}

/// Adds `G` rows of B from row `l` on to the sums for `R` rows of C from row `i` on.
///
/// # Safety
/// That of [`axpys_strip`]; the rows exist.
#[inline(always)]
unsafe fn axpys_tile<T, L, const R: usize, const G: usize>(
    p: &Block<T>,
    strip: &Strip<T::Acc>,
    i: usize,
    l: usize,
) where
    T: MatmulElement,
    L: Lanes<Elem = T::Acc>,
{
    // SAFETY: the caller vouches for rows and columns.
    unsafe {
        let a: [[L; G]; R] = std::array::from_fn(|r| {
            let a = p.a.offset((i + r) as isize * p.a_row_stride).add(l);
            std::array::from_fn(|g| L::splat(*a.add(g)))
        });
        let b: [*const T; G] = std::array::from_fn(|g| p.b.at(l + g, strip.j).ptr);
        let sums: [*mut T::Acc; R] = std::array::from_fn(|r| strip.sums.add((i + r) * SUMS_STRIDE));
        let whole = strip.n / L::COUNT * L::COUNT;
        for j in (0..whole).step_by(L::COUNT) {
            let b = b.map(|b| L::load_wide(b.add(j)));
            for (a, sums) in a.iter().zip(sums) {
                let sum = a.iter().zip(b).fold(L::load(sums.add(j)), |sum, (a, b)| a.mul_add(b, sum));
                sum.store(sums.add(j));
            }
        }
        if whole < strip.n {
            let (count, mask) = (strip.n - whole, L::mask(strip.n - whole));
            let b = b.map(|b| L::load_wide_first(b.add(whole), count));
            for (a, sums) in a.iter().zip(sums) {
                let sums = sums.add(whole);
                let sum = a.iter().zip(b).fold(L::load_first(sums, mask), |sum, (a, b)| a.mul_add(b, sum));
                sum.store_first(sums, mask);
            }
        }
    }
}
