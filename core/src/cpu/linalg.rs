//! Decompositions of matrices and systems of equations, in row-major memory: of a batch, one matrix after the
//! other, none of them empty.

use super::math::Real;
use super::threads::{Parts, each_part, parallel};

/// [`qr`] of each matrix.
pub(crate) fn each_qr<T: Real>(a: &mut [T], [m, n]: [usize; 2], q: &mut [T], r: &mut [T]) {
    let k = m.min(n);
    let count = a.len() / (m * n);
    let (a, q, r) = (Parts::new(a), Parts::new(q), Parts::new(r));
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

/// `a = q r` by Householder reflections, `a` of `m` rows and `n` columns: `q` gets `min(m, n)` orthonormal
/// columns, `r` as many rows. `a` is overwritten. The signs are those of LAPACK: a diagonal element of `r`
/// has the sign opposite to that of the element that was reflected to it.
///
/// # Source
/// Golub, Van Loan, *Matrix Computations* (4th edition, 2013), algorithms 5.1.1 and 5.2.1.
fn qr<T: Real>(a: &mut [T], [m, n]: [usize; 2], q: &mut [T], r: &mut [T]) {
    let k = m.min(n);
    let mut factors = vec![T::ZERO; k]; // reflection `i` is `I - factor v vᵀ`, with `v` in column `i` of `a`, from row `i` on
    for i in 0..k {
        let scale = (i..m).fold(T::ZERO, |max, row| max.maximum(a[row * n + i].abs()));
        if (i + 1..m).all(|row| a[row * n + i] == T::ZERO) {
            continue; // nothing to reflect: the sign stays
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
        // The head of `v` is 1 and is not stored.
        for row in i + 1..m {
            a[row * n + i] /= head - beta;
        }
        a[i * n + i] = beta;
        for column in i + 1..n {
            let mut dot = a[i * n + column];
            for row in i + 1..m {
                dot += a[row * n + i] * a[row * n + column];
            }
            let dot = dot * factors[i];
            a[i * n + column] -= dot;
            for row in i + 1..m {
                let v = a[row * n + i];
                a[row * n + column] -= dot * v;
            }
        }
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
        for column in i..k {
            let mut dot = q[i * k + column];
            for row in i + 1..m {
                dot += a[row * n + i] * q[row * k + column];
            }
            let dot = dot * factors[i];
            q[i * k + column] -= dot;
            for row in i + 1..m {
                let v = a[row * n + i];
                q[row * k + column] -= dot * v;
            }
        }
    }
}

/// Solves `a x = b` for the `columns` columns of `b`, which `x` holds first; `a` is a triangle of side `n`,
/// of which only that half is read. With `unit` its diagonal is taken to be 1.
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
