//! The functions against plain loops.

use super::*;
use crate::cpu::room::vec_of;
use std::mem::MaybeUninit;

const SHAPES: [[usize; 3]; 9] = [
    [1, 1, 1],
    [3, 10, 1],
    [2, 16, 1],
    [5, 33, 1],
    [600, 100, 1],
    [2, 5, 7],
    [3, 40, 300],
    [1, 7, 9000],
    [0, 3, 2],
];

fn numbers<T: Real>(n: usize, seed: f64) -> Vec<T> {
    (0..n).map(|i| T::from_f64(5.0 * ((i as f64 + seed) * 1.37).sin())).collect()
}

fn f64s<T: Real>(x: &[T]) -> Vec<f64> {
    x.iter().map(|x| x.to_f64()).collect()
}

/// `f(slice along the middle) -> slice`, for every slice.
fn along(
    x: &[f64],
    g: &[f64],
    [outer, n, inner]: [usize; 3],
    f: impl Fn(&[f64], &[f64]) -> Vec<f64>,
) -> Vec<f64> {
    let mut y = vec![0.0; x.len()];
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let at = |j: usize| (o * n + j) * inner + i;
        let slice = |x: &[f64]| (0..n).map(|j| x[at(j)]).collect::<Vec<_>>();
        for (j, value) in f(&slice(x), &slice(g)).into_iter().enumerate() {
            y[at(j)] = value;
        }
    }
    y
}

fn plain_softmax(x: &[f64]) -> Vec<f64> {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = x.iter().map(|x| (x - max).exp()).sum();
    x.iter().map(|x| (x - max).exp() / sum).collect()
}

fn close<T: Real>(a: &[T], b: &[f64], what: &str) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        let tolerance = 64.0 * T::EPSILON.to_f64() * (1.0 + b.abs());
        assert!((a.to_f64() - b).abs() <= tolerance, "{what}: {a} is not {b} at {i}");
    }
}

fn check<T: Real>(shape: [usize; 3]) {
    let len = shape.iter().product();
    let (x, g) = (numbers::<T>(len, 0.3), numbers::<T>(len, 7.1));
    let (x64, g64) = (f64s(&x), f64s(&g));

    let y = vec_of(len, |y| softmax(&x, shape, y));
    close(&y, &along(&x64, &g64, shape, |x, _| plain_softmax(x)), "softmax");
    let dx = vec_of(len, |dx| softmax_backward(&y, &g, shape, dx));
    let backward = along(&f64s(&y), &g64, shape, |y, g| {
        let mean: f64 = y.iter().zip(g).map(|(y, g)| y * g).sum();
        y.iter().zip(g).map(|(y, g)| y * (g - mean)).collect()
    });
    close(&dx, &backward, "softmax_backward");

    let y = vec_of(len, |y| log_softmax(&x, shape, y));
    let log = along(&x64, &g64, shape, |x, _| plain_softmax(x).iter().map(|p| p.ln()).collect());
    close(&y, &log, "log_softmax");
    let dx = vec_of(len, |dx| log_softmax_backward(&y, &g, shape, dx));
    let backward = along(&f64s(&y), &g64, shape, |y, g| {
        let sum: f64 = g.iter().sum();
        y.iter().zip(g).map(|(y, g)| g - y.exp() * sum).collect()
    });
    // The gradient has sums of up to 100 numbers around 5.
    let loose: Vec<T> = dx.iter().map(|dx| *dx * T::from_f64(0.125)).collect();
    close(&loose, &backward.iter().map(|x| x * 0.125).collect::<Vec<_>>(), "log_softmax_backward");

    let sums = vec_of(shape[0] * shape[2], |sums| logsumexp(&x, shape, sums));
    let all = along(&x64, &g64, shape, |x, _| vec![x.iter().map(|x| x.exp()).sum::<f64>().ln(); x.len()]);
    let first: Vec<f64> =
        all.chunks(shape[1] * shape[2]).flat_map(|group| group[..shape[2]].iter().copied()).collect();
    close(&sums, &first, "logsumexp");
}

#[test]
fn softmax_and_its_kin_match_plain_loops() {
    for shape in SHAPES {
        check::<f32>(shape);
        check::<f64>(shape);
    }
}

#[test]
fn infinite_logits() {
    let inf = f32::INFINITY;
    for inner in [1, 3] {
        let x: Vec<f32> = [-inf, 0.0, 0.0].iter().flat_map(|x| vec![*x; inner]).collect();
        let (shape, len) = ([1, 3, inner], 3 * inner);
        let y = vec_of(len, |y| softmax(&x, shape, y));
        assert_eq!([y[0], y[inner], y[2 * inner]], [0.0, 0.5, 0.5]);
        for x in [vec![-inf; 3 * inner], vec![inf; 3 * inner], vec![f32::NAN; 3 * inner]] {
            assert!(vec_of(len, |y| softmax(&x, shape, y)).iter().all(|y| y.is_nan()));
            assert!(vec_of(len, |y| log_softmax(&x, shape, y)).iter().all(|y| y.is_nan()));
            let y = vec_of(inner, |y| logsumexp(&x, shape, y));
            assert!(y.iter().all(|y| y.is_nan() == x[0].is_nan() && (y.is_nan() || *y == x[0])));
        }
    }
    assert_eq!(vec_of(3, |y| logsumexp::<f32>(&[], [3, 0, 1], y)), [-inf; 3]);
    let y = vec_of(3, |y| softmax(&[1.0, f32::NAN, 0.0], [1, 3, 1], y));
    assert!(y.iter().all(|y| y.is_nan()));
}

#[test]
fn cross_entropy_matches_log_softmax() {
    for (batch, classes) in [(1, 1), (4, 10), (500, 100)] {
        let x = numbers::<f64>(batch * classes, 0.2);
        let g = numbers::<f64>(batch, 3.0);
        // every fifth row is ignored
        let target: Vec<i64> =
            (0..batch).map(|i| if i % 5 == 3 { -100 } else { (i * 7 % classes) as i64 }).collect();
        let mut rooms = [(); 2].map(|()| vec![MaybeUninit::uninit(); batch]);
        let [lse, loss] = cross_entropy(&x, classes, &target, rooms.each_mut().map(|room| &mut room[..]));
        let (lse, loss) = (&*lse, &*loss);
        let dx = vec_of(x.len(), |dx| cross_entropy_backward(&x, classes, &target, lse, &g, dx));
        for i in 0..batch {
            let p = plain_softmax(&x[i * classes..][..classes]);
            let hit = |j: usize| target[i] == j as i64;
            let ignored = target[i] < 0;
            let expected = if ignored { 0.0 } else { -p[target[i] as usize].ln() };
            close(&loss[i..=i], &[expected], "cross_entropy");
            let expected: Vec<f64> =
                (0..classes).map(|j| if ignored { 0.0 } else { g[i] * (p[j] - f64::from(hit(j))) }).collect();
            close(&dx[i * classes..][..classes], &expected, "cross_entropy_backward");
        }
    }
}

#[test]
fn the_same_for_any_number_of_threads() {
    let shape = [700, 100, 1];
    let x = numbers::<f32>(70_000, 0.1);
    let [one, two, many] = [1, 2, 64].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| vec_of(x.len(), |y| softmax(&x, shape, y)))
    });
    assert_eq!((&one, &one), (&two, &many));
}
