//! Decompositions of matrices and solutions of systems of equations, for batches of row-major matrices that
//! are not empty. Blocks of [`BLOCK`] columns are eliminated by plain loops, and the rest of the matrix is
//! updated by products.

use super::math::Real;
use super::matmul::{Mat, MatmulElement, gemm};
use super::threads::{DisjointParts, each_part, parallel};

/// The numbers of these decompositions, which are those of products.
pub(crate) trait Number: Real + MatmulElement<Acc = Self> {}
impl Number for f32 {}
impl Number for f64 {}

/// The columns of a block.
const BLOCK: usize = 32;

/// [`qr`] of each matrix, with `columns` columns of `q`.
pub(crate) fn each_qr<T: Number>(a: &mut [T], [m, n]: [usize; 2], columns: usize, q: &mut [T], r: &mut [T]) {
    let count = a.len() / (m * n);
    let q_size = q.len() / count;
    let (a, q, r) = (DisjointParts::new(a), DisjointParts::new(q), DisjointParts::new(r));
    parallel(count, 1, |range| {
        for at in range {
            let of = |size: usize| at * size..(at + 1) * size;
            // SAFETY: each matrix is taken by one thread.
            unsafe { qr(a.part(of(m * n)), [m, n], columns, q.part(of(q_size)), r.part(of(columns * n))) };
        }
    });
}

/// [`solve_triangular`] of each system.
pub(crate) fn each_solve<T: Number>(a: &[T], n: usize, upper: bool, unit: bool, x: &mut [T], columns: usize) {
    each_part(x, n * columns, &|at, x| {
        solve_triangular(&a[at * n * n..(at + 1) * n * n], n, upper, unit, x, columns);
    });
}

/// A matrix whose rows are contiguous and `width` elements apart.
fn rows<T>(ptr: *const T, width: usize) -> Mat<*const T> {
    Mat { ptr, row_stride: width as isize, col_stride: 1 }
}

/// `c ← alpha a b + beta c`, where the rows of `c`, of which it is the first elements, are `width` elements
/// apart.
fn multiply<T: Number>(
    sizes: [usize; 3],
    alpha: T,
    a: Mat<*const T>,
    b: Mat<*const T>,
    beta: T,
    (c, width): (&mut [T], usize),
) {
    let [m, k, n] = sizes;
    debug_assert!(m == 0 || c.len() >= (m - 1) * width + n, "the rows of c");
    let c = Mat { ptr: c.as_mut_ptr(), row_stride: width as isize, col_stride: 1 };
    // SAFETY: the callers take `a` and `b` of slices with these elements, which `c`, borrowed for writes, is
    // not part of; it is as long as asserted.
    unsafe { gemm::<T>(m, k, n, alpha, a, b, beta, c) };
}

/// Some reflections: their product is `1 - v t vᵀ`.
struct Reflections<T> {
    /// The first row and column.
    first: usize,
    /// The number of reflections.
    count: usize,
    /// Their vectors as columns, from row `first` on.
    v: Vec<T>,
    t: Vec<T>,
}

impl<T: Number> Reflections<T> {
    /// Those that `factor` left below the diagonal of a matrix with `m` rows and `n` columns.
    ///
    /// # Source
    /// Schreiber, Van Loan, *A Storage-Efficient WY Representation for Products of Householder Transformations*
    /// (1989).
    fn of(a: &[T], [m, n]: [usize; 2], first: usize, factors: &[T]) -> Reflections<T> {
        let (count, height) = (factors.len(), m - first);
        let mut v = vec![T::ZERO; height * count];
        for (row, v) in v.chunks_exact_mut(count).enumerate() {
            let known = row.min(count);
            v[..known].copy_from_slice(&a[(first + row) * n + first..][..known]);
            if row < count {
                v[row] = T::ONE;
            }
        }
        let mut products = vec![T::ZERO; count * count];
        let view = rows(v.as_ptr(), count);
        multiply([count, height, count], T::ONE, view.t(), view, T::ZERO, (&mut products, count));
        let mut t = vec![T::ZERO; count * count];
        for j in 0..count {
            t[j * count + j] = factors[j];
            for i in 0..j {
                let sum = (i..j).fold(T::ZERO, |sum, k| sum + t[i * count + k] * products[k * count + j]);
                t[i * count + j] = -factors[j] * sum;
            }
        }
        Reflections { first, count, v, t }
    }

    /// Applies them, or their transposed product, to some columns of a matrix with `width` columns.
    fn apply(&self, transposed: bool, c: &mut [T], width: usize, columns: std::ops::Range<usize>) {
        let (height, n) = (self.v.len() / self.count, columns.len());
        if n == 0 {
            return;
        }
        let c = &mut c[self.first * width + columns.start..];
        let (v, t) = (rows(self.v.as_ptr(), self.count), rows(self.t.as_ptr(), self.count));
        let (mut across, mut turned) = (vec![T::ZERO; self.count * n], vec![T::ZERO; self.count * n]);
        multiply([self.count, height, n], T::ONE, v.t(), rows(c.as_ptr(), width), T::ZERO, (&mut across, n));
        let t = if transposed { t.t() } else { t };
        multiply([self.count, self.count, n], T::ONE, t, rows(across.as_ptr(), n), T::ZERO, (&mut turned, n));
        multiply([height, self.count, n], -T::ONE, v, rows(turned.as_ptr(), n), T::ONE, (c, width));
    }
}

/// `a = q r` by Householder reflections. `a` has `m` rows and `n` columns, `q` gets `columns` orthonormal
/// columns, and `r` as many rows; with an empty `q` only `r` is written. `a` is overwritten. The signs are
/// those of LAPACK: a diagonal element of `r` has the opposite sign of the element that was reflected to it.
///
/// # Source
/// Golub, Van Loan, *Matrix Computations* (4th edition, 2013), algorithms 5.1.1 and 5.2.1.
fn qr<T: Number>(a: &mut [T], [m, n]: [usize; 2], columns: usize, q: &mut [T], r: &mut [T]) {
    let k = m.min(n);
    let (mut factors, mut scratch) = (vec![T::ZERO; k], vec![T::ZERO; m + BLOCK.max(columns)]);
    let is_small = k <= BLOCK;
    let mut blocks = Vec::new();
    for first in (0..k).step_by(BLOCK) {
        let last = (first + BLOCK).min(k);
        // The other columns of a small matrix are not worth a product.
        let end = if is_small { n } else { last };
        factor(a, [m, n], first..last, end, &mut factors, &mut scratch);
        if !is_small {
            let block = Reflections::of(a, [m, n], first, &factors[first..last]);
            block.apply(true, a, n, last..n);
            blocks.push(block);
        }
    }
    for (i, r) in r.chunks_exact_mut(n).enumerate() {
        let known = i.min(n);
        r[..known].fill(T::ZERO);
        match i < k {
            true => r[known..].copy_from_slice(&a[i * n + known..(i + 1) * n]),
            false => r[known..].fill(T::ZERO),
        }
    }
    if q.is_empty() {
        return;
    }
    // The reflections of the unit columns, from the last to the first.
    q.fill(T::ZERO);
    (0..columns).for_each(|i| q[i * columns + i] = T::ONE);
    for block in blocks.iter().rev() {
        block.apply(false, q, columns, block.first..columns);
    }
    for i in (0..k).rev().filter(|_| is_small) {
        let (v, across) = scratch.split_at_mut(m);
        v[0] = T::ONE;
        for row in i + 1..m {
            v[row - i] = a[row * n + i];
        }
        reflect(&v[..m - i], factors[i], &mut q[i * columns..], columns, i..columns, across);
    }
}

/// Reflects the columns `block` to multiples of unit vectors, and the columns after them up to `end`.
/// Reflection `i` is `1 - factor v vᵀ`. Its `v` is in column `i` from row `i` on, where its head, 1, is not
/// stored.
fn factor<T: Number>(
    a: &mut [T],
    [m, n]: [usize; 2],
    block: std::ops::Range<usize>,
    end: usize,
    factors: &mut [T],
    scratch: &mut [T],
) {
    for i in block {
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
        let (v, across) = scratch.split_at_mut(m);
        v[0] = T::ONE;
        for row in i + 1..m {
            a[row * n + i] /= head - beta;
            v[row - i] = a[row * n + i];
        }
        a[i * n + i] = beta;
        // The other columns of a small matrix may be more than there is room for at once.
        for from in (i + 1..end).step_by(across.len()) {
            let to = (from + across.len()).min(end);
            reflect(&v[..m - i], factors[i], &mut a[i * n..], n, from..to, across);
        }
    }
}

/// `b -= factor v (vᵀ b)` for some columns of `b`, whose rows have `width` elements. `across` has room for
/// a number for each column.
fn reflect<T: Real>(
    v: &[T],
    factor: T,
    b: &mut [T],
    width: usize,
    columns: std::ops::Range<usize>,
    across: &mut [T],
) {
    let across = &mut across[..columns.len()];
    across.fill(T::ZERO);
    for (v, row) in v.iter().zip(b.chunks(width)) {
        for (sum, b) in across.iter_mut().zip(&row[columns.clone()]) {
            *sum += *v * *b;
        }
    }
    for (v, row) in v.iter().zip(b.chunks_mut(width)) {
        let scale = factor * *v;
        for (sum, b) in across.iter().zip(&mut row[columns.clone()]) {
            *b -= scale * *sum;
        }
    }
}

/// Solves `a x = b` for the `columns` columns of `b`, which `x` holds at first. `a` is a triangular matrix of
/// `n` rows; the other half is not read. With `unit`, its diagonal is taken to be 1.
fn solve_triangular<T: Number>(a: &[T], n: usize, upper: bool, unit: bool, x: &mut [T], columns: usize) {
    let blocks = n.div_ceil(BLOCK);
    for step in 0..blocks {
        let first = if upper { blocks - 1 - step } else { step } * BLOCK;
        let last = (first + BLOCK).min(n);
        let (before, rest) = x.split_at_mut(first * columns);
        let (own, after) = rest.split_at_mut((last - first) * columns);
        // What is known of the solution.
        let (from, known) = if upper { (last, &*after) } else { (0, &*before) };
        let count = known.len() / columns;
        if count > 0 {
            let factors = rows(a[first * n + from..].as_ptr(), n);
            let known = rows(known.as_ptr(), columns);
            multiply([last - first, count, columns], -T::ONE, factors, known, T::ONE, (own, columns));
        }
        solve_block(&a[first * n + first..], n, last - first, [upper, unit], own, columns);
    }
}

/// [`solve_triangular`] for the first `size` rows and columns of `a`, whose rows are `n` elements apart.
fn solve_block<T: Real>(
    a: &[T],
    n: usize,
    size: usize,
    [upper, unit]: [bool; 2],
    x: &mut [T],
    columns: usize,
) {
    for step in 0..size {
        let i = if upper { size - 1 - step } else { step };
        let (before, rest) = x.split_at_mut(i * columns);
        let (own, after) = rest.split_at_mut(columns);
        let (from, known) = if upper { (i + 1, &*after) } else { (0, &*before) };
        for (j, known) in known.chunks_exact(columns).enumerate() {
            let factor = a[i * n + from + j];
            for (x, known) in own.iter_mut().zip(known) {
                *x -= factor * *known;
            }
        }
        if !unit {
            own.iter_mut().for_each(|x| *x /= a[i * n + i]);
        }
    }
}
