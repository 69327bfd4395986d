//! Counting and searching. A row has the inputs and other arguments, the result and its element at index `i`.

use crate::check::{index, numbers, values};
use namegrad::core::Unique;
use namegrad::prelude::*;

/// The number of the `boundaries` before `x`.
fn before(x: f64, boundaries: &[f64], right: bool) -> f64 {
    let counts = |boundary: &f64| if right { *boundary <= x } else { *boundary < x };
    boundaries.iter().filter(|boundary| counts(boundary)).count() as f64
}

cases! {
    bucketize {
        (x: values("A=2 B=3"), boundaries: numbers("4", [0.0, 0.0, 1.0, 1.0]); false) => "A=2 B=3" indices, |i| before(x.at(i), &boundaries.data, false);
        (x: values("A=2 B=3"), boundaries: numbers("4", [0.0, 0.0, 1.0, 1.0]); true) => "A=2 B=3" indices, |i| before(x.at(i), &boundaries.data, true);
        (x: numbers("5", [0.0, 1.0, 1.0, 0.0, 1.0]), boundaries: numbers("2", [0.0, 1.0]); true) => "5" indices, |i| before(x.at(i), &boundaries.data, true);
        (x: values(""), boundaries: numbers("0", []); true) => "" indices, |i| 0.0;
    }
    searchsorted {
        (x: numbers("3", [0.0, 1.0, 1.0]), values: values("A=2 B=3"); false) => "A=2 B=3" indices, |i| before(values.at(i), &x.data, false);
        (x: numbers("N=2 C=2", [0.0, 0.0, 0.0, 1.0]), values: values("N=2 B=3"); true) => "N=2 B=3" indices, |i| before(values.at(i), &x.lane(&[i[0], 0], 1), true);
    }
    bincount {
        (x: index("A=4", [1, 3, 1, 0]), weights: values("A=4"); 5) => "5" weighted, |i| {
            (0..4).filter(|k| x.at(&[*k]) == i[0] as f64).map(|k| weights.at(&[k])).sum()
        }, scale 3.0;
        (x: index("A=5", [1, 3, 1, 0, 1]); 0) => "4" indices, |i| x.data.iter().filter(|x| **x == i[0] as f64).count() as f64;
        (x: index("A=2", [1, 1]); 3) => "3" indices, |i| [0.0, 2.0, 0.0][i[0]];
        (x: index("A=0", []); 0) => "0" indices, |i| 0.0;
    }
    histc {
        (x: values("A=2 B=5"); 4, -2.0, 2.0) => "4" floats, |i| {
            let low = i[0] as f64 - 2.0;
            x.data.iter().filter(|x| **x >= low && (**x < low + 1.0 || i[0] == 3 && **x == 2.0)).count() as f64
        };
        (x: numbers("3", [1.0, 2.0, 3.0]); 2, 0.0, 0.0) => "2" floats, |i| [1.0, 2.0][i[0]];
        (x: numbers("2", [1.0, 1.0]); 2, 0.0, 0.0) => "2" floats, |i| [0.0, 2.0][i[0]];
        (x: numbers("3", [f64::NAN, -9.0, 1.0]); 1, 0.0, 1.0) => "1" floats, |i| 1.0;
    }
    unique_dim {
        (x: numbers("N=3 C=2", [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]); "N") values => "N=2 C=2" any, |i| [[0.0, 1.0], [1.0, 0.0]][i[0]][i[1]];
        (x: numbers("N=3 C=2", [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]); 0) inverse => "N=3" indices, |i| [1.0, 0.0, 1.0][i[0]];
        (x: numbers("N=3 C=2", [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]); 0) counts => "N=2" indices, |i| [1.0, 2.0][i[0]];
        (x: numbers("C=2 N=3", [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]); "N") values => "C=2 N=2" any, |i| [[0.0, 1.0], [1.0, 0.0]][i[0]][i[1]];
    }
    unique {
        (x: numbers("N=2 C=2", [1.0, 0.0, 1.0, 1.0])) => "2" any, |i| [0.0, 1.0][i[0]];
        (x: numbers("N=2 C=2", [1.0, 0.0, 1.0, 1.0])) inverse => "N=2 C=2" indices, |i| [[1.0, 0.0], [1.0, 1.0]][i[0]][i[1]];
        (x: numbers("N=2 C=2", [1.0, 0.0, 1.0, 1.0])) counts => "2" indices, |i| [1.0, 3.0][i[0]];
    }
}

#[test]
fn searches_in_words_and_in_32_bits() {
    let x = Tensor::new([1, 2, 2, 3]).unwrap();
    let options = SearchsortedOptions::new().side(namegrad::core::args::Side::Right).out_int32(true);
    let found = x.searchsorted_with(Tensor::new([2, 9]).unwrap(), options).unwrap();
    assert_eq!((found.dtype(), found.to_vec::<i32>().unwrap()), (DType::I32, vec![3, 4]));
    let found = x.bucketize_with(&x, BucketizeOptions::new().out_int32(true)).unwrap();
    assert_eq!((found.dtype(), found.to_vec::<i32>().unwrap()), (DType::I32, vec![0, 1, 1, 3]));
}

#[test]
fn unique_of_nan_and_of_nothing() {
    let x =
        TensorOptions::new().dtype(DType::F32).tensor([[3.0, f64::NAN, -0.0], [0.0, f64::NAN, 3.0]]).unwrap();
    let x = x.refine_names(["N", "C"]).unwrap();
    for x in crate::check::orders(&x).into_iter().map(|(_, x)| x).chain([x.clone()]) {
        let Unique { values, inverse, counts } = x.unique().unwrap();
        assert_eq!(format!("{:?}", values.to_vec::<f32>().unwrap()), "[-0.0, 3.0, NaN, NaN]");
        assert_eq!(inverse.to_vec::<i64>().unwrap(), [1, 2, 0, 0, 3, 1]);
        assert_eq!(inverse.shape(), x.shape());
        assert_eq!(counts.to_vec::<i64>().unwrap(), [2, 2, 1, 1]);
    }
    let error = x.requiring_grad().unwrap().unique().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Autograd);
    let none = Tensor::zeros([("N", 0), ("C", 2)]).unwrap().unique().unwrap();
    assert_eq!((none.values.numel(), none.inverse.shape().to_string()), (0, "[N=0, C=2]".to_string()));
}

#[test]
fn what_cannot_be_counted() {
    let x = Tensor::new([1.0, 2.0]).unwrap();
    let whole = Tensor::new([1i64, -2]).unwrap();
    let kinds = [
        (x.bincount(), ErrorKind::DType),
        (whole.bincount(), ErrorKind::DType),
        (
            whole.abs().unwrap().bincount_with(BincountOptions::new().weights(x.narrow(0, 0, 1).unwrap())),
            ErrorKind::Shape,
        ),
        (x.histc_with(HistcOptions::new().bins(0).max(1.0)), ErrorKind::Value),
        (x.histc_with(HistcOptions::new().bins(2).min(1.0)), ErrorKind::Value),
        (x.histc_with(HistcOptions::new().bins(2).max(f64::INFINITY)), ErrorKind::Value),
        (x.bucketize(&whole), ErrorKind::DType),
        (x.bucketize(Tensor::zeros([2, 2]).unwrap()), ErrorKind::Shape),
        (Tensor::zeros([3, 2]).unwrap().searchsorted(&x), ErrorKind::Shape),
    ];
    for (number, (result, kind)) in kinds.into_iter().enumerate() {
        assert_eq!(result.unwrap_err().kind(), kind, "call {number}");
    }
}
