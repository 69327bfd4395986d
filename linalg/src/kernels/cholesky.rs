//! `a = l lᵀ`.

use super::{Number, Scratch};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::{MatMut, Par, Spec};

/// Below this number of rows, plain loops are faster.
const SMALL: usize = 32;

/// The lower triangular factor of a symmetric matrix, whose lower triangle is in `l`. Returns 0, or the order
/// of the first leading minor that is not positive.
///
/// # Source
/// Golub, Van Loan, *Matrix Computations* (4th edition, 2013), section 4.2.
pub(crate) fn cholesky<T: Number>(scratch: &mut Scratch, l: &mut [T], n: usize) -> i32 {
    let info = if n <= SMALL { small(l, n) } else { large(scratch, l, n) };
    for i in 0..n {
        l[i * n + i + 1..(i + 1) * n].fill(T::ZERO);
    }
    info
}

fn small<T: Number>(l: &mut [T], n: usize) -> i32 {
    for i in 0..n {
        let (above, row) = l.split_at_mut(i * n);
        for j in 0..i {
            let other = &above[j * n..j * n + j + 1];
            let mut rest = row[j];
            for k in 0..j {
                rest -= row[k] * other[k];
            }
            row[j] = rest / other[j];
        }
        let mut rest = row[i];
        for x in &row[..i] {
            rest -= *x * *x;
        }
        if rest > T::ZERO {
            row[i] = rest.root();
        } else {
            return i as i32 + 1; // also for NaN
        }
    }
    0
}

/// The rows of a symmetric matrix are its columns, so the lower triangle of the rows is the upper one of the
/// columns: `faer`, which works on columns, gets a copy.
fn large<T: Number>(scratch: &mut Scratch, l: &mut [T], n: usize) -> i32 {
    let mut columns = vec![T::ZERO; n * n];
    transpose(l, &mut columns, [n, n]);
    let (par, params) = (Par::Seq, Spec::default());
    let stack = scratch.of(cholesky_in_place_scratch::<T>(n, par, params));
    let matrix = MatMut::from_column_major_slice_mut(&mut columns, n, n);
    let made = cholesky_in_place(matrix, Default::default(), par, stack, params);
    transpose(&columns, l, [n, n]);
    match made {
        // NaN may pass as a pivot.
        Ok(_) => (0..n).find(|i| l[i * n + i].undefined()).map_or(0, |i| i as i32 + 1),
        Err(faer::linalg::cholesky::llt::factor::LltError::NonPositivePivot { index }) => index as i32 + 1,
    }
}

/// Copies the transpose of a matrix with `m` rows and `n` columns, in blocks that fit in the cache.
pub(crate) fn transpose<T: Copy>(from: &[T], to: &mut [T], [m, n]: [usize; 2]) {
    const BLOCK: usize = 16;
    for top in (0..m).step_by(BLOCK) {
        for left in (0..n).step_by(BLOCK) {
            for j in left..(left + BLOCK).min(n) {
                for i in top..(top + BLOCK).min(m) {
                    to[j * m + i] = from[i * n + j];
                }
            }
        }
    }
}
