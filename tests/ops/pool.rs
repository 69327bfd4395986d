//! Pooling over the last dims.

use crate::check::{numbers, values};
use crate::plain::Plain;
use namegrad::core::args::Windows;
use namegrad::prelude::*;

/// The elements of the window at `i` over the last two dims; windows of 2 by 2 that touch.
fn elements(x: &Plain, i: &[usize]) -> [f64; 4] {
    let [outer @ .., h, w] = i else { unreachable!() };
    [0, 1, 2, 3].map(|at| x.at(&[outer, &[2 * h + at / 2, 2 * w + at % 2]].concat()))
}

/// The mean of the elements of a window. Integers have a whole one; drawn floats are never all whole.
fn mean(window: &[f64]) -> f64 {
    let mean = window.iter().sum::<f64>() / window.len() as f64;
    if window.iter().all(|x| x.fract() == 0.0) { mean.trunc() } else { mean }
}

cases! {
    max_pool {
        (x: values("N=2 C=3 H=4 W=5"); [2, 2]) values => "N=2 C=3 H=2 W=2" numeric, |i| elements(x, i).into_iter().fold(f64::MIN, f64::max);
        (x: values("C=2 L=7"); 3) values => "C=2 L=2" numeric, |i| (0..3).map(|k| x.at(&[i[0], 3 * i[1] + k])).fold(f64::MIN, f64::max);
        (x: values("N=0 L=4"); 2) values => "N=0 L=2" numeric, |i| unreachable!();
    }
    avg_pool {
        (x: values("N=2 C=3 H=4 W=5"); [2, 2]) => "N=2 C=3 H=2 W=2" numeric, |i| mean(&elements(x, i)), scale 3.0;
        (x: values("C=2 L=7"); 3) => "C=2 L=2" numeric, |i| mean(&[0, 1, 2].map(|k| x.at(&[i[0], 3 * i[1] + k]))), scale 3.0;
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

/// Windows by name are those of the last dims, in any order, and no others.
#[test]
fn windows_by_name() -> Result<()> {
    let x = Tensor::arange(0.0, 48.0, 1.0)?.reshape([("N", 2), ("H", 4), ("W", 6)])?;
    let windows = Windows::sliding([("W", 3), ("H", 2)]).stride([("H", 1)]);
    let positional = Windows::sliding([2, 3]).stride([1, 3]);
    for (named, by_position) in [
        (x.max_pool(windows)?.values, x.max_pool(positional)?.values),
        (x.avg_pool(windows)?, x.avg_pool(positional)?),
        (x.avg_pool(Windows::adaptive([("W", 2), ("H", 1)]))?, x.avg_pool(Windows::adaptive([1, 2]))?),
    ] {
        assert!(named.equal(&by_position)?);
        assert_eq!(named.names(), x.names());
    }
    let last = x.align_to(["H", "W", "N"])?;
    for wrong in
        [Windows::sliding([("H", 2), ("W", 3)]), Windows::sliding([2, 3]).stride([("H", 1), ("W", 3)])]
    {
        assert_eq!(last.max_pool(wrong).unwrap_err().kind(), ErrorKind::NameNotFound);
        assert_eq!(last.avg_pool(wrong).unwrap_err().kind(), ErrorKind::NameNotFound);
    }
    Ok(())
}
