//! Resizing and sampling of images. The references compute each element from its position.

use crate::check::{numbers, values};
use crate::plain::Plain;

/// The weight of element `k` of `n` in element `i` of `m`: linear, without aligned corners.
fn share(i: usize, m: usize, k: usize, n: usize) -> f64 {
    let at = ((i as f64 + 0.5) * n as f64 / m as f64 - 0.5).clamp(0.0, n as f64 - 1.0);
    (1.0 - (at - k as f64).abs()).max(0.0)
}

/// The weight of element `k` of `n` at a coordinate, linear and with zeros outside.
fn tent(coordinate: f64, k: usize, n: usize) -> f64 {
    let at = ((coordinate + 1.0) * n as f64 - 1.0) / 2.0;
    (1.0 - (at - k as f64).abs()).max(0.0)
}

/// The sum over the elements `0..n` along dim `dim` of `x`, at the other indices `i`, with weights.
fn along(x: &Plain, i: &[usize], dim: usize, n: usize, weight: impl Fn(usize) -> f64) -> f64 {
    let mut i = i.to_vec();
    (0..n)
        .map(|k| {
            i[dim] = k;
            weight(k) * x.at(&i)
        })
        .sum()
}

const GRID: [f64; 12] = [-0.9, 0.3, 0.1, -0.4, 0.7, 1.2, -0.2, 0.6, 0.8, -1.7, -0.3, 0.05];

cases! {
    resample {
        (x: values("N=2 W=4"); "W", 7) => "N=2 W=7" floats, |i| along(x, i, 1, 4, |k| share(i[1], 7, k, 4)), scale 3.0;
        (x: values("H=5 C=2"); 0, 2) => "H=2 C=2" floats, |i| along(x, i, 0, 5, |k| share(i[0], 2, k, 5)), scale 3.0;
        (x: values("H=3 W=4"); ["W", "H"], 5) => "H=5 W=5" floats, |i| {
            (0..3).map(|h| share(i[0], 5, h, 3) * along(x, &[h, 0], 1, 4, |k| share(i[1], 5, k, 4))).sum()
        }, scale 3.0;
    }
    resample_input {
        (x: values("N=2 W=7"); "W", 7, 4) => "N=2 W=4" floats, |i| along(x, i, 1, 7, |k| share(k, 7, i[1], 4)), scale 6.0;
        (x: values("H=2 C=2"); 0, 2, 5) => "H=5 C=2" floats, |i| along(x, i, 0, 2, |k| share(k, 2, i[0], 5)), scale 6.0;
    }
    sample_at {
        (x: values("2 3 4 5"), grid: numbers("2 1 3 2", GRID); "linear") => "2 3 1 3" floats, |i| {
            let [n, c, h, w] = *i else { unreachable!() };
            let [to_w, to_h] = [0, 1].map(|k| grid.at(&[n, h, w, k]));
            (0..4)
                .map(|h| tent(to_h, h, 4) * along(x, &[n, c, h, 0], 3, 5, |k| tent(to_w, k, 5)))
                .sum()
        }, scale 9.0;
        (x: values("2 1 4"), grid: numbers("2 3 1", [0.1, -0.9, 0.35, 0.8, -1.3, 0.0]); "linear") => "2 1 3" floats,
            |i| along(x, i, 2, 4, |k| tent(grid.at(&[i[0], i[2], 0]), k, 4)), scale 9.0;
    }
    sample_at_input {
        (x: values("2 3 1 3"), grid: numbers("2 1 3 2", GRID); "linear", [4, 5]) => "2 3 4 5" floats, |i| {
            let [n, c, h, w] = *i else { unreachable!() };
            (0..3)
                .map(|p| {
                    let [to_w, to_h] = [0, 1].map(|k| grid.at(&[n, 0, p, k]));
                    tent(to_h, h, 4) * tent(to_w, w, 5) * x.at(&[n, c, 0, p])
                })
                .sum()
        }, scale 9.0;
    }
}
