//! Ops that pick elements along a dim. A row has the call and the positions that a plain search finds; the
//! values are the numbers at these positions.

use crate::along::Place::{self, *};
use crate::along::{lanes, with_dim};
use crate::check::{Args, Case, Input, axes, by_name, check, identical, indices, numbers, values};
use crate::plain;
use namegrad::core::Picked;
use namegrad::prelude::*;
use std::cmp::Ordering;

/// A row of the table.
struct Pick {
    op: &'static str,
    /// The arguments other than the dim, for `n` elements along it.
    args: fn(usize) -> Args,
    dtype: fn(DType) -> Option<DType>,
    reference: fn(&[f64]) -> Vec<f64>,
    place: Place,
}

impl Pick {
    /// The outputs are `values` and `indices`, so rows do not mention them.
    const fn new(
        op: &'static str,
        _: &'static str,
        args: fn(usize) -> Args,
        dtype: fn(DType) -> Option<DType>,
        place: Place,
        reference: fn(&[f64]) -> Vec<f64>,
    ) -> Pick {
        Pick { op, args, dtype, reference, place }
    }

    /// The values as a case.
    fn values(&'static self, input: Input, from: &str, dim: usize) -> Case {
        let numbers = |x: &[f64]| (self.reference)(x).into_iter().map(|place| x[place as usize]).collect();
        let (result, reference) = lanes(from, dim, self.place, numbers);
        let (call, _) = by_name(self.op, with_dim(self.args, from, dim), "values");
        Case {
            op: self.op,
            call,
            in_place: None,
            inputs: vec![input],
            result,
            dtype: self.dtype,
            reference,
            scale: None,
            reshapes: false,
        }
    }

    /// The indices are those of the reference, in any memory order.
    fn check_indices(&'static self, input: Input, from: &str, dim: usize) {
        let (result, reference) = lanes(from, dim, self.place, self.reference);
        let (call, _) = by_name(self.op, with_dim(self.args, from, dim), "indices");
        let case = Case {
            op: self.op,
            call,
            in_place: None,
            inputs: vec![input],
            result,
            dtype: indices,
            reference,
            scale: None,
            reshapes: false,
        };
        for dtype in DType::ALL.into_iter().filter(|dtype| (self.dtype)(*dtype).is_some()) {
            case.value(dtype);
            case.orders(dtype);
        }
        if (self.dtype)(DType::F64).is_some() && axes(from).iter().all(|(_, size)| *size > 0) {
            let x = Tensor::ones(axes(from).iter().map(|(_, size)| *size).collect::<Vec<_>>()).unwrap();
            let indices = (case.call)(&[x.requiring_grad().unwrap()]).unwrap();
            assert!(!indices.requires_grad(), "{}: an index has no gradient", self.op);
        }
    }

    fn check(&'static self) {
        for (shape, dim) in
            [("A=2 B=3 C=2", 0), ("A=2 B=3 C=2", 1), ("A=2 ?=3", 1), ("A=4", 0), ("", 0), ("A=0 B=3", 1)]
        {
            check(&self.values(values(shape), shape, dim));
            self.check_indices(values(shape), shape, dim);
        }
        for (shape, dim) in [("A=40 B=70", 1), ("A=300 B=3", 0), ("A=3 B=70 C=5", 1)] {
            self.check_indices(values(shape), shape, dim);
        }
        let special = [0.0, -0.0, 1.0, -2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        for first in special {
            for last in special {
                let data = [1.0, first, -2.0, last, 1.0];
                for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
                    self.values(numbers("A=5", data), "A=5", 0).value(dtype);
                }
                self.check_indices(numbers("A=5", data), "A=5", 0);
            }
        }
    }
}

/// The first half of the positions.
fn first_half(places: Vec<f64>) -> Vec<f64> {
    places[..places.len().div_ceil(2)].to_vec()
}

rows! { Pick:
//  op, or name = op, arguments                     dtype   the dim places
    max                                             any     Removed |x| vec![plain::best(x, Ordering::Greater)];
    max_kept = max (_n: keepdim true)               any     One     |x| vec![plain::best(x, Ordering::Greater)];
    min                                             any     Removed |x| vec![plain::best(x, Ordering::Less)];
    min_kept = min (_n: keepdim true)               any     One     |x| vec![plain::best(x, Ordering::Less)];
    median                                          numeric Removed |x| vec![plain::median(x)];
    median_kept = median (_n: keepdim true)         numeric One     |x| vec![plain::median(x)];
    nanmedian                                       numeric Removed |x| vec![plain::nanmedian(x)];
    nanmedian_kept = nanmedian (_n: keepdim true)   numeric One     |x| vec![plain::nanmedian(x)];
    mode                                            any     Removed |x| vec![plain::mode(x)];
    mode_kept = mode (_n: keepdim true)             any     One     |x| vec![plain::mode(x)];
    kthvalue (n: k n.div_ceil(2))                   numeric Removed |x| vec![plain::sorted(x, false)[x.len().div_ceil(2) - 1]];
    kthvalue_kept = kthvalue (_n: k 1, keepdim true) numeric One    |x| vec![plain::sorted(x, false)[0]];
    sort                                            any     Stays   |x| plain::sorted(x, false);
    sort_descending = sort (_n: descending true)    any     Stays   |x| plain::sorted(x, true);
    topk (n: k n.div_ceil(2))                       numeric Stays   |x| first_half(plain::sorted(x, true));
    topk_smallest = topk (n: k n.div_ceil(2), largest false) numeric Stays |x| first_half(plain::sorted(x, false));
    cummax                                          any     Stays   |x| plain::running_best(x, Ordering::Greater);
    cummin                                          any     Stays   |x| plain::running_best(x, Ordering::Less);
}

/// Over all elements, the values have no dims and the indices count in row-major order. Equal elements share
/// the gradient.
#[test]
fn of_all_elements() {
    type Op = fn(&Tensor) -> Result<Picked<Tensor>>;
    let nan = f64::NAN;
    type Row = (Op, [f64; 4], f64, i64, [f64; 4]);
    let table: [Row; 8] = [
        (|x| x.max(..), [1.0, 5.0, 5.0, 2.0], 5.0, 1, [0.0, 0.5, 0.5, 0.0]),
        (|x| x.max(..), [1.0, nan, nan, 2.0], nan, 1, [0.0, 0.5, 0.5, 0.0]),
        (|x| x.min(..), [3.0, 5.0, 5.0, 2.0], 2.0, 3, [0.0, 0.0, 0.0, 1.0]),
        (|x| x.kthvalue(2, ..), [7.0, 1.0, 7.0, 7.0], 7.0, 0, [1.0 / 3.0, 0.0, 1.0 / 3.0, 1.0 / 3.0]),
        (|x| x.median(..), [4.0, 1.0, 7.0, 5.0], 4.0, 0, [1.0, 0.0, 0.0, 0.0]),
        (|x| x.median(..), [4.0, nan, 7.0, 5.0], nan, 1, [0.0, 1.0, 0.0, 0.0]),
        (|x| x.nanmedian(..), [4.0, nan, 7.0, 5.0], 5.0, 3, [0.0, 0.0, 0.0, 1.0]),
        (|x| x.nanmedian(..), [nan; 4], nan, 0, [0.25; 4]),
    ];
    for (op, data, value, index, gradient) in table {
        let x = TensorOptions::new().dtype(DType::F64).requires_grad(true).tensor(data).unwrap();
        let Picked { values, indices } =
            op(&x.reshape([2, 2]).unwrap().refine_names(["N", "C"]).unwrap()).unwrap();
        assert_eq!((values.ndim(), indices.ndim()), (0, 0));
        assert_eq!(values.item::<f64>().unwrap().to_bits(), value.to_bits());
        assert_eq!(indices.to_vec::<i64>().unwrap(), [index]);
        values.backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), gradient);
    }
    let x = Tensor::new([[1.0, 2.0]]).unwrap().refine_names(["N", "C"]).unwrap();
    let kept = x.max(keep(..)).unwrap();
    assert_eq!(kept.values.shape().to_string(), "[N=1, C=1]");
    assert_eq!(kept.indices.shape().to_string(), "[N=1, C=1]");
    assert_eq!(x.argmax(..).unwrap().to_vec::<i64>().unwrap(), [1]);
    assert_eq!(x.argmin(keep(..)).unwrap().shape().to_string(), "[N=1, C=1]");
}

/// An empty dim, more elements than there are, and a dim that does not exist.
#[test]
fn what_cannot_be_picked() {
    let x = Tensor::zeros([("N", 2), ("C", 0)]).unwrap();
    let kinds = [
        (x.max("C"), ErrorKind::Shape),
        (x.max(..), ErrorKind::Value),
        (x.mode("C"), ErrorKind::Shape),
        (x.kthvalue(1, "C"), ErrorKind::Shape),
        (x.kthvalue(0, "N"), ErrorKind::Value),
        (x.kthvalue(3, "N"), ErrorKind::Value),
        (x.topk(3, "N"), ErrorKind::Value),
        (x.topk(-1, "N"), ErrorKind::Value),
        (x.sort("H"), ErrorKind::NameNotFound),
        (x.cummax(2), ErrorKind::DimRange),
        (x.to(DType::Bool).unwrap().median("N"), ErrorKind::DType),
    ];
    for (number, (result, kind)) in kinds.into_iter().enumerate() {
        assert_eq!(result.unwrap_err().kind(), kind, "call {number}");
    }
    assert_eq!(x.sort("C").unwrap().values.shape().to_string(), "[N=2, C=0]");
    assert_eq!(x.max("N").unwrap().indices.shape().to_string(), "[C=0]");
    assert_eq!(x.topk(0, "N").unwrap().values.shape().to_string(), "[N=0, C=0]");
}

/// An op that picks elements takes one dim or all. For several dims, the repair in the error is right.
#[test]
fn several_dims_are_flattened_first() {
    let x =
        Tensor::arange(0, 12, 1).unwrap().reshape([2, 3, 2]).unwrap().refine_names(["N", "H", "W"]).unwrap();
    let text = x.argmax(["H", "W"]).unwrap_err().to_string();
    assert!(text.contains(r#"x.flatten(["H", "W"], "flat")?.argmax("flat")?"#), "{text}");
    let y = x.flatten(["H", "W"], "flat").unwrap().argmax("flat").unwrap();
    assert_eq!(y.to_vec::<i64>().unwrap(), [5, 5]);

    let text = x.max(["W", "N"]).unwrap_err().to_string();
    let flat = r#"x.movedim(["W", "N"], [-2, -1])?.flatten([-2, -1], "flat")?.max("flat")?"#;
    assert!(text.contains(flat) && text.contains(r#"x.amax(["W", "N"])? for the values alone"#), "{text}");
    let Picked { values, indices } =
        x.movedim(["W", "N"], [-2, -1]).unwrap().flatten([-2, -1], "flat").unwrap().max("flat").unwrap();
    assert!(identical(&values, &x.amax(["W", "N"]).unwrap()));
    assert_eq!(
        (values.to_vec::<i64>().unwrap(), indices.to_vec::<i64>().unwrap()),
        (vec![7, 9, 11], vec![3; 3])
    );

    let unnamed = x.rename(None).unwrap();
    for (error, call) in [
        (unnamed.argmin([1, 2]).unwrap_err(), r#"x.flatten([1, 2], "flat")?.argmin("flat")?"#),
        (x.kthvalue(1, ["N", "H"]).unwrap_err(), r#"x.flatten(["N", "H"], "flat")?.kthvalue(k, "flat")?"#),
        (x.median([0, 1]).unwrap_err(), r#"x.flatten(["N", "H"], "flat")?.median("flat")?"#),
        (
            x.to(DType::F32).unwrap().quantile(0.5, [0, 1]).unwrap_err(),
            r#"x.flatten(["N", "H"], "flat")?.quantile(q, "flat")?"#,
        ),
    ] {
        assert_eq!(error.kind(), ErrorKind::DimRange);
        assert!(error.to_string().contains(call), "{error}");
    }
}
