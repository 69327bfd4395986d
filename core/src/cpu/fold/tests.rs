//! Folds against plain loops, and the bits of halves and threads.

use super::cast::fold_cast;
use super::*;
use crate::cpu::fold::plain::{self, AnyElements, fold_plainly};

fn sum_of(x: &[f32]) -> f32 {
    vec_of(1, |y| fold_rows(&Sum, x, y))[0]
}

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i as f32) * 1.37).sin() + 0.1).collect()
}

/// `[outer, n, inner] -> [outer, inner]`, one element at a time.
fn one_by_one<T: Copy, A: Copy>(
    x: &[T],
    [outer, n, inner]: [usize; 3],
    start: A,
    f: impl Fn(A, T) -> A,
) -> Vec<A> {
    let mut y = vec![start; outer * inner];
    for (i, x) in x.iter().enumerate() {
        let y = &mut y[i / (n * inner) * inner + i % inner];
        *y = f(*y, *x);
    }
    y
}

/// Shapes on both sides of the limits at which data is cut in another way.
const SHAPES: [[usize; 3]; 14] = [
    [1, 1, 1],
    [0, 2, 3],
    [2, 0, 3],
    [7, 5, 1],
    [3, 63, 1],
    [3, 64, 1],
    [2, 5000, 1],
    [3, 140_000, 1],
    [5, 70, 3],
    [1, 200, 1500],
    [300, 40, 33],
    [1, 70_001, 5],
    [2, 66_000, 2],
    [1, 3, 100_003],
];

#[test]
fn folds_match_plain_loops() {
    for shape in SHAPES {
        let x = numbers(shape.iter().product());
        let len = shape[0] * shape[2];
        let y = vec_of(len, |y| fold_middle(&Sum, &x, shape, y));
        let sums = one_by_one(&x, shape, 0.0_f64, |s, x| s + f64::from(x));
        for (y, sum) in y.iter().zip(&sums) {
            // numbers of both signs: relative to the sum of magnitudes, which is about the length
            let tolerance = 2e-7 * (shape[1] as f64);
            assert!((f64::from(*y) - sum).abs() <= tolerance, "{y} is not {sum} in {shape:?}");
        }
        let y = vec_of(len, |y| fold_middle(&MAX, &x, shape, y));
        assert_eq!(y, one_by_one(&x, shape, f32::NEG_INFINITY, f32::max), "{shape:?}");
        let y = vec_of(len, |y| fold_middle(&MIN, &x, shape, y));
        assert_eq!(y, one_by_one(&x, shape, f32::INFINITY, f32::min), "{shape:?}");
        let i: Vec<i32> = (0..x.len() as i32).map(|i| i * 1000).collect();
        let elements = AnyElements::of(&i);
        let y = vec_of(len, |y| fold_plainly(plain::SUM, elements, shape, y));
        assert_eq!(y, one_by_one(&i, shape, 0, |s, x| s + i64::from(x)), "{shape:?}");
        let y = vec_of(len, |y| fold_plainly(plain::MAX, elements, shape, y));
        assert_eq!(y, one_by_one(&i, shape, i64::MIN, |s, x| s.max(i64::from(x))), "{shape:?}");
    }
}

#[test]
fn folds_of_halves_have_the_bits_of_folds_after_a_cast() {
    for shape in SHAPES {
        let halves: Vec<_> = numbers(shape.iter().product()).into_iter().map(half::bf16::from_f32).collect();
        let x: Vec<f32> = halves.iter().map(|x| x.to_f32()).collect();
        let len = shape[0] * shape[2];
        for fold in [&Sum as &dyn Fold<f32>, &SumSquares, &MAX, &MIN] {
            let y = vec_of(len, |y| fold_cast(fold, AnyElements::of(&halves), shape, y));
            assert_eq!(y, vec_of(len, |y| fold_middle(fold, &x, shape, y)), "{shape:?}");
        }
    }
}

#[test]
fn extremes_propagate_nan() {
    for at in [0, 1, 40, 99] {
        for inner in [1, 2] {
            let mut x = numbers(200);
            x[at * inner] = f32::NAN;
            let (x, shape) = (&x[..100 * inner], [1, 100, inner]);
            assert!(vec_of(inner, |y| fold_middle(&MAX, x, shape, y))[0].is_nan());
            assert!(vec_of(inner, |y| fold_middle(&MIN, x, shape, y))[0].is_nan());
        }
    }
}

#[test]
fn long_sums_stay_accurate() {
    // Equal numbers are the worst case because roundings do not cancel: one accumulator would be wrong in
    // the third digit.
    let x = vec![0.1_f32; 1 << 22];
    let exact = f64::from(0.1_f32) * x.len() as f64;
    assert!((f64::from(sum_of(&x)) / exact - 1.0).abs() < 1e-6);
    let y = vec_of(4, |y| fold_middle(&Sum, &x, [1, 1 << 20, 4], y));
    assert!((f64::from(y[3]) * 4.0 / exact - 1.0).abs() < 2e-6);
}

#[test]
fn the_same_for_any_number_of_threads() {
    let x = numbers(1_000_000);
    let [one, two, many] = [1, 2, 64].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let y = pool.install(|| vec_of(10, |y| fold_middle(&Sum, &x, [1, 100_000, 10], y)));
        (pool.install(|| sum_of(&x)), y)
    });
    assert_eq!((&one, &one), (&two, &many));
}
