//! Small matrices beside each other: number `l` of each vector belongs to matrix `l`, so that one instruction
//! computes for several matrices. The steps are those of the plain loops for one matrix, and so are the
//! results.

use super::Number;
use namegrad_core::kernels::{Loop, widely};

/// The matrices that are computed together: numbers of `f64` that fill the widest vectors, and of `f32` that
/// the compiler keeps in registers.
pub(crate) const LANES: usize = 8;

/// The factors of up to [`LANES`] symmetric matrices, as in [`cholesky`](super::cholesky::cholesky).
pub(crate) fn cholesky<T: Number>(a: &mut [T], n: usize, infos: &mut [i32]) {
    const L: usize = LANES;
    let mut l = packed::<T, L>(infos.len(), n * n, |k| &a[k * n * n..]);
    let mut found = [0; L];
    widely(Cholesky { l: &mut l, n, infos: &mut found });
    infos.copy_from_slice(&found[..infos.len()]);
    for (k, a) in a.chunks_exact_mut(n * n).enumerate() {
        for i in 0..n {
            let row = &mut a[i * n..(i + 1) * n];
            row[..=i].iter_mut().zip(&l[i * n..]).for_each(|(a, l)| *a = l[k]);
            row[i + 1..].fill(T::ZERO);
        }
    }
}

struct Cholesky<'a, T, const L: usize> {
    l: &'a mut [[T; L]],
    n: usize,
    infos: &'a mut [i32; L],
}

impl<T: Number, const L: usize> Loop for Cholesky<'_, T, L> {
    #[inline(always)]
    fn run(self) {
        let n = self.n;
        for i in 0..n {
            let (above, row) = self.l.split_at_mut(i * n);
            for j in 0..i {
                let other = &above[j * n..j * n + j + 1];
                let mut rest = row[j];
                for (x, other) in row[..j].iter().zip(other) {
                    for l in 0..L {
                        rest[l] -= x[l] * other[l];
                    }
                }
                for l in 0..L {
                    row[j][l] = rest[l] / other[j][l];
                }
            }
            let mut rest = row[i];
            for x in &row[..i] {
                for l in 0..L {
                    rest[l] -= x[l] * x[l];
                }
            }
            for l in 0..L {
                let is_positive = rest[l] > T::ZERO; // not for NaN
                if !is_positive && self.infos[l] == 0 {
                    self.infos[l] = i as i32 + 1;
                }
                row[i][l] = rest[l].root();
            }
        }
    }
}

/// The factors of up to [`LANES`] square matrices, as in [`lu`](super::lu::lu).
pub(crate) fn lu<T: Number>(a: &mut [T], n: usize, pivots: &mut [i32], infos: &mut [i32]) {
    const L: usize = LANES;
    let count = infos.len();
    let mut u = packed::<T, L>(count, n * n, |k| &a[k * n * n..]);
    let mut swaps = vec![[0; L]; n];
    widely(Lu { a: &mut u, n, pivots: &mut swaps });
    unpacked(&u, a, n * n);
    for k in 0..count {
        let zero = (0..n).find(|i| u[i * n + i][k] == T::ZERO);
        infos[k] = zero.map_or(0, |i| i as i32 + 1);
        pivots[k * n..(k + 1) * n].iter_mut().zip(&swaps).for_each(|(pivot, at)| *pivot = at[k] + 1);
    }
}

struct Lu<'a, T, const L: usize> {
    a: &'a mut [[T; L]],
    n: usize,
    /// The row with which each row is swapped, from 0.
    pivots: &'a mut [[i32; L]],
}

impl<T: Number, const L: usize> Loop for Lu<'_, T, L> {
    #[inline(always)]
    fn run(self) {
        let (n, a) = (self.n, self.a);
        for i in 0..n {
            let (mut best, mut at) = ([T::ZERO; L], [i as i32; L]);
            for l in 0..L {
                best[l] = a[i * n + i][l].size();
            }
            for row in i + 1..n {
                let x = &a[row * n + i];
                for l in 0..L {
                    let size = x[l].size();
                    let is_larger = size > best[l];
                    best[l] = if is_larger { size } else { best[l] };
                    at[l] = if is_larger { row as i32 } else { at[l] };
                }
            }
            swapped(a, i, &at, n);
            self.pivots[i] = at;
            let (above, below) = a.split_at_mut((i + 1) * n);
            let own = &above[i * n + i..];
            let mut inverse = [T::ZERO; L];
            for l in 0..L {
                inverse[l] = T::ONE / own[0][l];
            }
            // A pivot may be 0, or the inverse of a tiny one infinite.
            if !inverse.iter().all(|x| x.finite()) {
                eliminated(own, below, [n, i], &inverse);
                continue;
            }
            for row in below.chunks_exact_mut(n) {
                let mut factor = row[i];
                for l in 0..L {
                    factor[l] *= inverse[l];
                }
                row[i] = factor;
                for (x, above) in row[i + 1..].iter_mut().zip(&own[1..]) {
                    for l in 0..L {
                        x[l] -= factor[l] * above[l];
                    }
                }
            }
        }
    }
}

/// A step of the elimination, one matrix after another.
fn eliminated<T: Number, const L: usize>(
    own: &[[T; L]],
    below: &mut [[T; L]],
    [n, i]: [usize; 2],
    inverse: &[T; L],
) {
    for l in (0..L).filter(|l| own[0][*l] != T::ZERO) {
        for row in below.chunks_exact_mut(n) {
            let x = row[i][l];
            let factor = if inverse[l].finite() { x * inverse[l] } else { x / own[0][l] };
            row[i][l] = factor;
            for (x, above) in row[i + 1..].iter_mut().zip(&own[1..]) {
                x[l] -= factor * above[l];
            }
        }
    }
}

/// Swaps row `i` of each matrix with its row `at`.
#[inline(always)]
fn swapped<T: Number, const L: usize>(a: &mut [[T; L]], i: usize, at: &[i32; L], n: usize) {
    for l in 0..L {
        let other = at[l] as usize;
        if other != i {
            for j in 0..n {
                let (x, y) = (a[i * n + j][l], a[other * n + j][l]);
                (a[i * n + j][l], a[other * n + j][l]) = (y, x);
            }
        }
    }
}

/// Solves up to [`LANES`] systems with the factors and pivots of `of`, as in [`solve`](super::lu::solve).
pub(crate) fn solve<'a, T: Number>(
    of: impl Fn(usize) -> (&'a [T], &'a [i32]),
    n: usize,
    x: &mut [T],
    columns: usize,
    adjoint: bool,
) {
    const L: usize = LANES;
    let count = x.len() / (n * columns);
    let factors = packed::<T, L>(count, n * n, |k| of(k).0);
    let mut pivots = packed::<i32, L>(count, n, |k| of(k).1);
    pivots.as_flattened_mut().iter_mut().for_each(|pivot| *pivot -= 1);
    let mut y = packed::<T, L>(count, n * columns, |k| &x[k * n * columns..]);
    widely(Solve { factors: &factors, pivots: &pivots, n, x: &mut y, columns, adjoint });
    unpacked(&y, x, n * columns);
}

struct Solve<'a, T, const L: usize> {
    factors: &'a [[T; L]],
    pivots: &'a [[i32; L]],
    n: usize,
    x: &'a mut [[T; L]],
    columns: usize,
    adjoint: bool,
}

impl<T: Number, const L: usize> Loop for Solve<'_, T, L> {
    #[inline(always)]
    fn run(self) {
        let Solve { factors, pivots, n, x, columns, adjoint } = self;
        if !adjoint {
            (0..n).for_each(|i| swapped(x, i, &pivots[i], columns));
            triangular(factors, n, [false, true, false], x, columns);
            triangular(factors, n, [true, false, false], x, columns);
        } else {
            triangular(factors, n, [true, false, true], x, columns);
            triangular(factors, n, [false, true, true], x, columns);
            (0..n).rev().for_each(|i| swapped(x, i, &pivots[i], columns));
        }
    }
}

/// As [`triangular`](super::lu::triangular), for several columns at a time.
#[inline(always)]
fn triangular<T: Number, const L: usize>(
    a: &[[T; L]],
    n: usize,
    flags: [bool; 3],
    x: &mut [[T; L]],
    columns: usize,
) {
    let mut from = 0;
    while from + 4 <= columns {
        solved_columns::<T, L, 4>(a, n, flags, x, columns, from);
        from += 4;
    }
    while from < columns {
        solved_columns::<T, L, 1>(a, n, flags, x, columns, from);
        from += 1;
    }
}

#[inline(always)]
fn solved_columns<T: Number, const L: usize, const W: usize>(
    a: &[[T; L]],
    n: usize,
    [upper, unit, transposed]: [bool; 3],
    x: &mut [[T; L]],
    columns: usize,
    from: usize,
) {
    let backward = upper != transposed;
    for step in 0..n {
        let i = if backward { n - 1 - step } else { step };
        let at = i * columns + from;
        let mut own = [[T::ZERO; L]; W];
        own.copy_from_slice(&x[at..at + W]);
        for k in if backward { i + 1..n } else { 0..i } {
            let factor = &a[if transposed { k * n + i } else { i * n + k }];
            let solved = &x[k * columns + from..][..W];
            for (own, solved) in own.iter_mut().zip(solved) {
                for l in 0..L {
                    own[l] -= factor[l] * solved[l];
                }
            }
        }
        if !unit {
            let pivot = &a[i * n + i];
            for own in &mut own {
                for l in 0..L {
                    own[l] /= pivot[l];
                }
            }
        }
        x[at..at + W].copy_from_slice(&own);
    }
}

/// The first `size` numbers of each matrix, beside each other. Lanes beyond `count` repeat the first matrix.
fn packed<'a, T: Copy + Default + 'a, const L: usize>(
    count: usize,
    size: usize,
    of: impl Fn(usize) -> &'a [T],
) -> Vec<[T; L]> {
    let from: [&[T]; L] = std::array::from_fn(|l| &of(if l < count { l } else { 0 })[..size]);
    (0..size).map(|at| std::array::from_fn(|l| from[l][at])).collect()
}

/// The inverse of [`packed`].
fn unpacked<T: Copy, const L: usize>(x: &[[T; L]], y: &mut [T], size: usize) {
    for (l, y) in y.chunks_exact_mut(size).enumerate() {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x[l]);
    }
}
