//! `p a = l u` with partial pivoting, and systems of equations.

use super::cholesky::transpose;
use super::{Number, Scratch};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place,
    solve_unit_upper_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::{MatMut, MatRef, Par, Spec};

/// Below this number of rows and columns, plain loops are faster.
pub(crate) const SMALL: usize = 32;

/// The factors of a matrix with `m` rows and `n` columns, in its place: below the diagonal those of `l`, whose
/// diagonal is 1, and `u`. Row `i` was swapped with row `pivots[i]`, counted from 1 as in LAPACK. Returns 0, or
/// the number of the first pivot that is 0, from 1.
///
/// # Source
/// Golub, Van Loan, *Matrix Computations* (4th edition, 2013), section 3.4.
pub(crate) fn lu<T: Number>(
    scratch: &mut Scratch,
    a: &mut [T],
    [m, n]: [usize; 2],
    pivots: &mut [i32],
) -> i32 {
    match m.max(n) <= SMALL || m.min(n) <= 4 {
        true => small(a, [m, n], pivots),
        false => large(scratch, a, [m, n], pivots),
    }
    (0..m.min(n)).find(|i| a[i * n + i] == T::ZERO).map_or(0, |i| i as i32 + 1)
}

fn small<T: Number>(a: &mut [T], [m, n]: [usize; 2], pivots: &mut [i32]) {
    for i in 0..m.min(n) {
        let mut pivot = i;
        for row in i + 1..m {
            if a[row * n + i].size() > a[pivot * n + i].size() {
                pivot = row;
            }
        }
        pivots[i] = pivot as i32 + 1;
        if pivot != i {
            let (above, below) = a.split_at_mut(pivot * n);
            above[i * n..(i + 1) * n].swap_with_slice(&mut below[..n]);
        }
        let (above, below) = a.split_at_mut((i + 1) * n);
        let own = &above[i * n + i..];
        if own[0] == T::ZERO {
            continue;
        }
        let inverse = T::ONE / own[0];
        // The inverse of a tiny number is infinite.
        let divides = !inverse.finite();
        for row in below.chunks_exact_mut(n) {
            let row = &mut row[i..];
            let factor = if divides { row[0] / own[0] } else { row[0] * inverse };
            row[0] = factor;
            for (x, above) in row[1..].iter_mut().zip(&own[1..]) {
                *x -= factor * *above;
            }
        }
    }
}

fn large<T: Number>(scratch: &mut Scratch, a: &mut [T], [m, n]: [usize; 2], pivots: &mut [i32]) {
    let mut columns = vec![T::ZERO; m * n];
    transpose(a, &mut columns, [m, n]);
    let (mut order, mut inverse) = (vec![0usize; m], vec![0usize; m]);
    let (par, params) = (Par::Seq, Spec::default());
    let stack = scratch.of(lu_in_place_scratch::<usize, T>(m, n, par, params));
    let matrix = MatMut::from_column_major_slice_mut(&mut columns, m, n);
    lu_in_place(matrix, &mut order, &mut inverse, par, stack, params);
    transpose(&columns, a, [n, m]);
    // The swaps that lead to this order: what is at each row now, and where each row is.
    let (mut at, mut place): (Vec<usize>, Vec<usize>) = ((0..m).collect(), (0..m).collect());
    for (i, pivot) in pivots.iter_mut().enumerate() {
        let other = place[order[i]];
        *pivot = other as i32 + 1;
        let (old, new) = (at[i], at[other]);
        at.swap(i, other);
        (place[new], place[old]) = (i, other);
    }
}

/// Solves `a x = b` for the factors of `a`, or with `adjoint` `aᵀ x = b`, where `x` has the `columns`
/// columns of `b` at first.
pub(crate) fn solve<T: Number>(
    factors: &[T],
    pivots: &[i32],
    n: usize,
    x: &mut [T],
    columns: usize,
    adjoint: bool,
) {
    let swap = |x: &mut [T], i: usize| {
        let other = pivots[i] as usize - 1;
        if other != i {
            let (above, below) = x.split_at_mut(other * columns);
            above[i * columns..(i + 1) * columns].swap_with_slice(&mut below[..columns]);
        }
    };
    if !adjoint {
        (0..n).for_each(|i| swap(x, i));
        triangular(factors, n, [false, true, false], x, columns);
        triangular(factors, n, [true, false, false], x, columns);
    } else {
        triangular(factors, n, [true, false, true], x, columns);
        triangular(factors, n, [false, true, true], x, columns);
        (0..n).rev().for_each(|i| swap(x, i));
    }
}

/// Solves a triangular system in place. The flags say whether the triangle that is read is the upper one,
/// whether its diagonal is taken to be 1, and whether the system is transposed.
pub(crate) fn triangular<T: Number>(
    a: &[T],
    n: usize,
    [upper, unit, transposed]: [bool; 3],
    x: &mut [T],
    columns: usize,
) {
    if n <= SMALL || n * columns <= 1024 {
        return small_triangular(a, n, [upper, unit, transposed], x, columns);
    }
    let a = MatRef::from_row_major_slice(a, n, n);
    let a = if transposed { a.transpose() } else { a };
    let x = MatMut::from_row_major_slice_mut(x, n, columns);
    match (upper != transposed, unit) {
        (false, false) => solve_lower_triangular_in_place(a, x, Par::Seq),
        (false, true) => solve_unit_lower_triangular_in_place(a, x, Par::Seq),
        (true, false) => solve_upper_triangular_in_place(a, x, Par::Seq),
        (true, true) => solve_unit_upper_triangular_in_place(a, x, Par::Seq),
    }
}

fn small_triangular<T: Number>(
    a: &[T],
    n: usize,
    [upper, unit, transposed]: [bool; 3],
    x: &mut [T],
    columns: usize,
) {
    let backward = upper != transposed;
    for step in 0..n {
        let i = if backward { n - 1 - step } else { step };
        let (before, rest) = x.split_at_mut(i * columns);
        let (own, after) = rest.split_at_mut(columns);
        let (known, first) = if backward { (&*after, i + 1) } else { (&*before, 0) };
        let count = if backward { n - 1 - i } else { i };
        for (k, solved) in (first..first + count).zip(known.chunks_exact(columns.max(1))) {
            let factor = if transposed { a[k * n + i] } else { a[i * n + k] };
            for (x, solved) in own.iter_mut().zip(solved) {
                *x -= factor * *solved;
            }
        }
        if !unit {
            let pivot = a[i * n + i];
            own.iter_mut().for_each(|x| *x /= pivot);
        }
    }
}
