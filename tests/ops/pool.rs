//! Pooling over the last dims.

use crate::check::{numbers, values};
use crate::plain::Plain;

/// The windows along a dim: size, stride, padding. The elements of window `i` of a dim of `length`.
fn window(length: usize, (size, stride, padding): (usize, usize, usize), i: usize) -> Vec<usize> {
    (0..size).filter_map(|k| (i * stride + k).checked_sub(padding).filter(|at| *at < length)).collect()
}

/// The elements of the window at `i` over the last two dims, with their positions.
fn elements(x: &Plain, i: &[usize], size: usize, stride: usize) -> Vec<(usize, f64)> {
    let [outer @ .., h, w] = i else { unreachable!() };
    let [.., height, width] = x.sizes[..] else { unreachable!() };
    let rows = window(height, (size, stride, 0), *h);
    let cols = window(width, (size, stride, 0), *w);
    let all = rows.iter().flat_map(|row| cols.iter().map(move |col| (*row, *col)));
    all.map(|(row, col)| (row * width + col, x.at(&[outer, &[row, col]].concat()))).collect()
}

/// The first of the largest.
fn largest(all: Vec<(usize, f64)>) -> (usize, f64) {
    all.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best }).unwrap()
}

cases! {
    max_pool {
        (x: values("N=2 C=3 H=4 W=5"); [2, 2]) values => "N=2 C=3 H=2 W=2" numeric, |i| largest(elements(x, i, 2, 2)).1;
        (x: values("N=2 C=3 H=4 W=5"); [2, 2]) indices => "N=2 C=3 H=2 W=2" places, |i| largest(elements(x, i, 2, 2)).0 as f64;
        (x: numbers("L=5", [1.0, 3.0, 3.0, 0.0, 2.0]); 3) values => "L=1" numeric, |i| 3.0;
        (x: numbers("L=5", [1.0, 3.0, 3.0, 0.0, 2.0]); 3) indices => "L=1" places, |i| 1.0;
        (x: values("N=0 L=4"); 2) values => "N=0 L=2" numeric, |i| unreachable!();
    }
    avg_pool {
        (x: values("N=2 C=3 H=4 W=5"); [2, 2]) => "N=2 C=3 H=2 W=2" floats,
            |i| elements(x, i, 2, 2).iter().map(|(_, x)| x).sum::<f64>() / 4.0, scale 3.0;
        (x: values("C=2 L=7"); 3) => "C=2 L=2" floats, |i| (0..3).map(|k| x.at(&[i[0], 3 * i[1] + k])).sum::<f64>() / 3.0, scale 3.0;
    }
    avg_pool_input {
        (x: values("C=2 L=2"); 3, 7) => "C=2 L=7" floats, |i| if i[1] < 6 { x.at(&[i[0], i[1] / 3]) / 3.0 } else { 0.0 }, scale 3.0;
        (x: values("H=2 W=3"); [2, 1], [4, 3]) => "H=4 W=3" floats, |i| x.at(&[i[0] / 2, i[1]]) / 2.0, scale 3.0;
    }
    fractional_max_pool {
        (x: values("C=1 L=7"), samples: numbers("1 1 1", [0.5]); 2, 3) values => "C=1 L=3" floats, |i| {
            // Steps of 5 / 2: the windows start at ⌊0.5 · 2.5⌋ - 1, ⌊1.5 · 2.5⌋ - 1 and 5.
            let start = [0, 2, 5][i[1]];
            x.at(&[0, start]).max(x.at(&[0, start + 1]))
        };
    }
}
