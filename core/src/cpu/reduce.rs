//! Folds over the middle of `[outer, n, inner]`.

use super::integer::Integer;
use super::math::Real;
use super::pointwise::parallel;
use super::simd::simd;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// A fold of numbers of type `T` with an associative operation.
pub(crate) trait Fold<T> {
    /// The fold of nothing.
    const START: T;
    /// The fold of two.
    fn step(a: T, b: T) -> T;
}

macro_rules! folds {
    ($($fold:ident: $float_start:expr, |$fa:ident, $fb:ident| $float:expr; $int_start:ident, |$ia:ident, $ib:ident| $int:expr;)*) => {$(
        #[doc = concat!("The fold by ", stringify!($float), ".")]
        pub(crate) struct $fold;
        folds!(@float $fold $float_start, $fa, $fb, $float; f32 f64);
        folds!(@int $fold $int_start, $ia, $ib, $int; u8 i8 i16 i32 i64);
    )*};
    (@float $fold:ident $start:expr, $a:ident, $b:ident, $e:expr; $($ty:ident)*) => {$(
        impl Fold<$ty> for $fold {
            const START: $ty = $start as $ty;
            #[inline(always)]
            fn step($a: $ty, $b: $ty) -> $ty { $e }
        }
    )*};
    (@int $fold:ident $start:ident, $a:ident, $b:ident, $e:expr; $($ty:ident)*) => {$(
        impl Fold<$ty> for $fold {
            const START: $ty = folds!(@start $start $ty);
            #[inline(always)]
            fn step($a: $ty, $b: $ty) -> $ty { $e }
        }
    )*};
    (@start zero $ty:ident) => { 0 };
    (@start one $ty:ident) => { 1 };
    (@start min $ty:ident) => { $ty::MIN };
    (@start max $ty:ident) => { $ty::MAX };
}
folds! {
    Sum: 0.0, |a, b| a + b; zero, |a, b| Integer::wrapping_add(a, b);
    Prod: 1.0, |a, b| a * b; one, |a, b| Integer::wrapping_mul(a, b);
    Max: f64::NEG_INFINITY, |a, b| Real::maximum(a, b); min, |a, b| a.max(b);
    Min: f64::INFINITY, |a, b| Real::minimum(a, b); max, |a, b| a.min(b);
}

/// Rows that one thread folds at a time, and elements of a long row: each block is folded for itself, and the blocks pair by pair, so that
/// the result does not depend on the threads and the error of a sum grows with the logarithm of its length.
const BLOCK: usize = 1 << 14;
/// Folds that run side by side in a row, to fill the vector registers.
const LANES: usize = 32;

/// Folds the middle of `[outer, n, inner]` to `[outer, inner]`.
pub(crate) fn fold<F: Fold<T>, T: Copy + Send + Sync>(
    x: &[T],
    outer: usize,
    n: usize,
    inner: usize,
    out: &mut [MaybeUninit<T>],
) {
    debug_assert_eq!(out.len(), outer * inner);
    debug_assert_eq!(x.len(), outer * n * inner);
    let to = out.as_mut_ptr() as usize;
    // SAFETY: each index is written by one thread.
    let write = |index: usize, value: T| unsafe { (to as *mut T).add(index).write(value) };
    if inner == 1 && n > BLOCK {
        let blocks = n.div_ceil(BLOCK);
        for row in 0..outer {
            let mut partial = vec![F::START; blocks];
            let place = partial.as_mut_ptr() as usize;
            parallel(blocks, 4, |range| {
                for block in range {
                    let part = &x[row * n + block * BLOCK..row * n + n.min((block + 1) * BLOCK)];
                    // SAFETY: each block is written by one thread.
                    unsafe { (place as *mut T).add(block).write(fold_row(PhantomData::<F>, part)) };
                }
            });
            write(row, pairwise::<F, T>(&partial));
        }
    } else if inner == 1 {
        parallel(outer, (BLOCK / n.max(1)).max(1), |rows| {
            rows.for_each(|row| write(row, fold_row(PhantomData::<F>, &x[row * n..][..n])));
        });
    } else {
        // Columns in strips that stay in the first-level cache while the rows pass.
        const STRIP: usize = 512;
        let strips = inner.div_ceil(STRIP);
        parallel(outer * strips, (4 * BLOCK / (n.max(1) * STRIP.min(inner))).max(1), |range| {
            for index in range {
                let (o, first) = (index / strips, index % strips * STRIP);
                let width = STRIP.min(inner - first);
                let mut column = [F::START; STRIP];
                fold_columns(PhantomData::<F>, &x[o * n * inner..], first, inner, n, &mut column[..width]);
                (0..width).for_each(|j| write(o * inner + first + j, column[j]));
            }
        });
    }
}

simd! {
    /// The fold of a row, in `LANES` folds side by side.
    fn fold_row['a, F: Fold<T>, T: Copy](fold: PhantomData<F>, row: &'a [T]) -> T {
        let _ = fold;
        let mut lanes = [F::START; LANES];
        let chunks = row.chunks_exact(LANES);
        let rest = chunks.remainder();
        for chunk in chunks {
            for (lane, value) in lanes.iter_mut().zip(chunk) {
                *lane = F::step(*lane, *value);
            }
        }
        for (lane, value) in lanes.iter_mut().zip(rest) {
            *lane = F::step(*lane, *value);
        }
        let mut width = LANES / 2;
        while width > 0 {
            for k in 0..width {
                lanes[k] = F::step(lanes[k], lanes[k + width]);
            }
            width /= 2;
        }
        lanes[0]
    }
}

simd! {
    /// Folds `n` rows, `stride` apart, from column `first` on into `column`; blocks of rows are folded for themselves first.
    fn fold_columns['a, F: Fold<T>, T: Copy](fold: PhantomData<F>, x: &'a [T], first: usize, stride: usize, n: usize, column: &'a mut [T]) {
        let _ = fold;
        const ROWS: usize = 128;
        let mut part = [F::START; 512];
        let part = &mut part[..column.len()];
        let mut row = 0;
        while row < n {
            part.fill(F::START);
            let end = n.min(row + ROWS);
            while row < end {
                let from = &x[row * stride + first..][..part.len()];
                for (sum, value) in part.iter_mut().zip(from) {
                    *sum = F::step(*sum, *value);
                }
                row += 1;
            }
            for (sum, value) in column.iter_mut().zip(part.iter()) {
                *sum = F::step(*sum, *value);
            }
        }
    }
}

fn pairwise<F: Fold<T>, T: Copy>(values: &[T]) -> T {
    match values {
        [] => F::START,
        [value] => *value,
        _ => {
            let (left, right) = values.split_at(values.len() / 2);
            F::step(pairwise::<F, T>(left), pairwise::<F, T>(right))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_plain_loop() {
        for (outer, n, inner) in
            [(1, 0, 1), (3, 1, 1), (2, 100, 1), (1, 50_001, 1), (3, 70, 5), (1, 300, 1030), (2, 0, 3)]
        {
            let x: Vec<i64> = (0..outer * n * inner).map(|i| (i as i64 * 7919) % 101 - 50).collect();
            let mut out = vec![MaybeUninit::uninit(); outer * inner];
            fold::<Sum, i64>(&x, outer, n, inner, &mut out);
            for o in 0..outer {
                for i in 0..inner {
                    let want: i64 = (0..n).map(|j| x[(o * n + j) * inner + i]).sum();
                    // SAFETY: fold wrote all of it.
                    assert_eq!(unsafe { out[o * inner + i].assume_init() }, want, "{outer} {n} {inner}");
                }
            }
        }
    }

    #[test]
    fn nan_is_the_largest_and_the_smallest() {
        let x = [1.0f32, f32::NAN, 3.0];
        let mut out = [MaybeUninit::uninit()];
        fold::<Max, f32>(&x, 1, 3, 1, &mut out);
        // SAFETY: fold wrote it.
        assert!(unsafe { out[0].assume_init() }.is_nan());
    }
}
