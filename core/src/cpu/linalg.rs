//! Decompositions of matrices and solutions of systems of equations, for batches of row-major matrices that
//! are not empty.

use super::math::Real;
use super::threads::{DisjointParts, each_part, parallel};
use std::ops::Range;

/// [`qr`] of each matrix.
pub(crate) fn each_qr<T: Real>(a: &mut [T], [m, n]: [usize; 2], q: &mut [T], r: &mut [T]) {
    let k = m.min(n);
    let count = a.len() / (m * n);
    let (a, q, r) = (DisjointParts::new(a), DisjointParts::new(q), DisjointParts::new(r));
    parallel(count, 1, |range| {
        for at in range {
            let of = |size: usize| at * size..(at + 1) * size;
            // SAFETY: each matrix is taken by one thread.
            unsafe { qr(a.part(of(m * n)), [m, n], q.part(of(m * k)), r.part(of(k * n))) };
        }
    });
}

/// [`solve_triangular`] of each system.
pub(crate) fn each_solve<T: Real>(a: &[T], n: usize, upper: bool, unit: bool, x: &mut [T], columns: usize) {
    each_part(x, n * columns, &|at, x| {
        solve_triangular(&a[at * n * n..(at + 1) * n * n], n, upper, unit, x, columns);
    });
}

/// `a = q r` by Householder reflections. `a` has `m` rows and `n` columns, `q` gets `min(m, n)` orthonormal
/// columns, and `r` as many rows. `a` is overwritten. The signs are those of LAPACK: a diagonal element of
/// `r` has the opposite sign of the element that was reflected to it.
///
/// # Source
/// Golub, Van Loan, *Matrix Computations* (4th edition, 2013), algorithms 5.1.1 and 5.2.1.
fn qr<T: Real>(a: &mut [T], [m, n]: [usize; 2], q: &mut [T], r: &mut [T]) {
    let k = m.min(n);
    // Reflection `i` is `I - factor v vᵀ`. Its `v` is in column `i` of `a` from row `i` on, where its head,
    // 1, is not stored.
    let mut factors = vec![T::ZERO; k];
    let mut v = vec![T::ONE; m];
    for i in 0..k {
        let scale = (i..m).fold(T::ZERO, |max, row| max.maximum(a[row * n + i].abs()));
        if (i + 1..m).all(|row| a[row * n + i] == T::ZERO) {
            continue; // nothing to reflect: the sign does not change
        }
        // Scaled, so that no square overflows or vanishes.
        let norm = (i..m).fold(T::ZERO, |sum, row| {
            let x = a[row * n + i] / scale;
            sum + x * x
        });
        let head = a[i * n + i];
        let length = norm.sqrt() * scale;
        let beta = if head < T::ZERO { length } else { -length };
        factors[i] = (beta - head) / beta;
        for row in i + 1..m {
            a[row * n + i] /= head - beta;
            v[row - i] = a[row * n + i];
        }
        a[i * n + i] = beta;
        reflect(&v[..m - i], factors[i], &mut a[i * n..], n, i + 1..n);
    }
    for i in 0..k {
        for column in 0..n {
            r[i * n + column] = if column >= i { a[i * n + column] } else { T::ZERO };
        }
    }
    // The reflections of the unit columns, from the last to the first.
    for row in 0..m {
        for column in 0..k {
            q[row * k + column] = if row == column { T::ONE } else { T::ZERO };
        }
    }
    for i in (0..k).rev() {
        for row in i + 1..m {
            v[row - i] = a[row * n + i];
        }
        reflect(&v[..m - i], factors[i], &mut q[i * k..], k, i..k);
    }
}

/// `b -= factor v (vᵀ b)` for some columns of `b`, whose rows have `width` elements.
fn reflect<T: Real>(v: &[T], factor: T, b: &mut [T], width: usize, columns: Range<usize>) {
    for column in columns {
        let dot = v.iter().enumerate().fold(T::ZERO, |sum, (row, v)| sum + *v * b[row * width + column]);
        let scale = dot * factor;
        for (row, v) in v.iter().enumerate() {
            b[row * width + column] -= scale * *v;
        }
    }
}

/// Solves `a x = b` for the `columns` columns of `b`, which `x` holds at first. `a` is a triangular matrix of
/// `n` rows; the other half is not read. With `unit`, its diagonal is taken to be 1.
fn solve_triangular<T: Real>(a: &[T], n: usize, upper: bool, unit: bool, x: &mut [T], columns: usize) {
    for step in 0..n {
        let i = if upper { n - 1 - step } else { step };
        let known = if upper { i + 1..n } else { 0..i };
        for j in known {
            let factor = a[i * n + j];
            for column in 0..columns {
                let there = x[j * columns + column];
                x[i * columns + column] -= factor * there;
            }
        }
        if !unit {
            for column in 0..columns {
                x[i * columns + column] /= a[i * n + i];
            }
        }
    }
}
