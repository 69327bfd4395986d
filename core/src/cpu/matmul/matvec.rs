//! Products with a vector, or with a few rows: each number of B is used once or a few times, so that all is in
//! reading B in the order in which it lies, and in touching nothing else.

#[cfg(doc)]
use super::blocked::Method;
use super::element::{Accumulator, MatmulElement};
use super::lanes::{Lanes, vectors};
use super::pack::{PANELS, pack, with_buffer};
use super::{Mat, Product};

/// The most rows of A for [`dots`].
pub(super) const ROWS: usize = 4;

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

/// The [`Method`] for one row and a B whose rows are contiguous: C is a sum of B's rows.
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
                let base =
                    if p.beta == T::Acc::ZERO { T::Acc::ZERO } else { p.beta.mul_add(*c, T::Acc::ZERO) };
                c.write(p.alpha.mul_add(sum.sum(), base));
            }
        }
    }
}

/// Columns of C that stay in the first cache while rows of B are added to them.
const N_MAX: usize = 1024;
/// Rows of B that are added at once, so that C is not read and written for each of them.
const GROUP: usize = 8;

vectors! {
    /// C as a sum of rows of B.
    ///
    /// # Safety
    /// That of [`gemm`](super::gemm) for the block, of one row.
    unsafe fn axpys_block[T, L](p: &Block<T>) {
        for j in (0..p.n).step_by(N_MAX) {
            let n = (p.n - j).min(N_MAX);
            let whole = p.k / GROUP * GROUP;
            // SAFETY: these columns exist, and so do the rows of B.
            unsafe {
                let c = p.c.add(j);
                if p.beta == T::Acc::ZERO {
                    (0..n).for_each(|j| c.add(j).write(T::Acc::ZERO));
                } else if p.beta != T::Acc::ONE {
                    (0..n).for_each(|j| c.add(j).write(p.beta.mul_add(*c.add(j), T::Acc::ZERO)));
                }
                for l in (0..whole).step_by(GROUP) {
                    add_rows::<T, L, GROUP>(p, l, j, n, c);
                }
                for l in whole..p.k {
                    add_rows::<T, L, 1>(p, l, j, n, c);
                }
            }
        }
    }
}

/// Adds `G` rows of B from row `l` on to `c`: `n` columns from column `j` on.
///
/// # Safety
/// That of [`axpys_block`], in code compiled for `L`; the rows and columns exist.
#[inline(always)]
unsafe fn add_rows<T, L, const G: usize>(p: &Block<T>, l: usize, j: usize, n: usize, c: *mut T::Acc)
where
    T: MatmulElement,
    L: Lanes<Elem = T::Acc>,
{
    // SAFETY: the caller vouches for rows and columns.
    unsafe {
        let x: [L; G] = std::array::from_fn(|g| L::splat(p.alpha.mul_add(*p.a.add(l + g), T::Acc::ZERO)));
        let rows: [*const T; G] = std::array::from_fn(|g| p.b.at(l + g, j).ptr);
        let whole = n / L::COUNT * L::COUNT;
        for j in (0..whole).step_by(L::COUNT) {
            let mut sum = L::load(c.add(j));
            for (x, row) in x.iter().zip(rows) {
                sum = x.mul_add(L::load_wide(row.add(j)), sum);
            }
            sum.store(c.add(j));
        }
        if whole < n {
            let (count, mask) = (n - whole, L::mask(n - whole));
            let mut sum = L::load_first(c.add(whole), mask);
            for (x, row) in x.iter().zip(rows) {
                sum = x.mul_add(L::load_wide_first(row.add(whole), count), sum);
            }
            sum.store_first(c.add(whole), mask);
        }
    }
}
