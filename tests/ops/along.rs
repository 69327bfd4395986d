//! Ops along one dim: a row gives the call, the dtype of the result, and the reference on the numbers along the dim.

use crate::check::{
    Axes, CallInPlace, Case, Input, Reference, axes, check, near_one, numbers, sizes, values,
};
use crate::plain::{self, Plain};
use namegrad::prelude::*;
use std::cmp::Ordering;

/// A row of the table.
struct Along {
    op: &'static str,
    call: fn(&Tensor, usize) -> Result<Tensor>,
    in_place: Option<fn(&mut Tensor, usize) -> Result<()>>,
    dtype: fn(DType) -> Option<DType>,
    reference: fn(&[f64]) -> Vec<f64>,
    /// What becomes of the dim.
    place: Place,
    /// Is the result an index?
    exact: bool,
}

/// What becomes of the dim that an op runs along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It stays, with as many elements as the reference gives.
    Stays,
    /// It has size one.
    One,
    /// It is gone.
    Removed,
}

impl Place {
    /// From the first letter of a word in a row; texts cannot be compared in a `static`.
    pub(crate) const fn of(word: &str) -> Place {
        match word.as_bytes()[0] {
            b's' => Place::Stays,
            b'o' => Place::One,
            _ => Place::Removed,
        }
    }
}

/// The reference of an op along `dim` of a tensor of sizes `from`, made of that on the numbers along it, and the sizes of the result.
pub(crate) fn lanes(
    from: &str,
    dim: usize,
    place: Place,
    reference: impl Fn(&[f64]) -> Vec<f64> + 'static,
) -> (Axes, Reference) {
    let mut result = axes(from);
    let zero_d = result.is_empty();
    if !zero_d {
        match place {
            Place::Stays if result[dim].1 > 0 => result[dim].1 = reference(&vec![0.0; result[dim].1]).len(),
            Place::Stays => {}
            Place::One => result[dim].1 = 1,
            Place::Removed => drop(result.remove(dim)),
        }
    }
    let shape = sizes(&result);
    let whole = move |x: &[Plain]| {
        let mut y = Plain::from_fn(&shape, |_| 0.0);
        let x = if zero_d { Plain { sizes: vec![1], ..x[0].clone() } } else { x[0].clone() };
        let firsts: Vec<usize> =
            x.sizes.iter().enumerate().map(|(d, size)| if d == dim { 1 } else { *size }).collect();
        for lane in 0..firsts.iter().product() {
            let mut index = plain::unravel(lane, &firsts);
            for (at, value) in reference(&x.lane(&index, dim)).into_iter().enumerate() {
                index[dim] = at;
                let at = if place == Place::Stays && !zero_d { plain::ravel(&index, &shape) } else { lane };
                y.data[at] = value;
            }
        }
        y
    };
    (result, Box::new(whole))
}

impl Along {
    fn case(&'static self, input: Input, from: &str, dim: usize) -> Case {
        let (result, reference) = lanes(from, dim, self.place, self.reference);
        let in_place = |call: fn(&mut Tensor, usize) -> Result<()>| -> CallInPlace {
            Box::new(move |x: &mut Tensor, _: &[Tensor]| call(x, dim))
        };
        let scale = if self.exact { None } else { Some(input.magnitude()) };
        Case {
            op: self.op,
            call: Box::new(move |x| (self.call)(&x[0], dim)),
            in_place: self.in_place.map(in_place),
            inputs: vec![input],
            result,
            dtype: self.dtype,
            reference,
            scale,
            reshapes: false,
        }
    }

    fn check(&'static self) {
        for (shape, dim) in
            [("A=2 B=3 C=2", 0), ("A=2 B=3 C=2", 1), ("A=2 ?=3", 1), ("A=4", 0), ("", 0), ("A=0 B=3", 1)]
        {
            check(&self.case(values(shape), shape, dim));
        }
        for (shape, dim) in [("A=3 B=1037", 1), ("A=1037 B=3", 0), ("A=3 B=70 C=5", 1)] {
            let product = self.op == "cumprod";
            let case = self.case(if product { near_one(shape) } else { values(shape) }, shape, dim);
            for dtype in [DType::F64, DType::F32, DType::I64]
                .into_iter()
                .filter(|dtype| (self.dtype)(*dtype).is_some() && !(product && *dtype == DType::I64))
            {
                case.value(dtype);
                case.orders(dtype);
            }
        }
        let special = [0.0, -0.0, 1.0, 1.0, -2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        for first in special {
            for last in special {
                for dtype in [DType::F64, DType::F32, DType::BF16] {
                    self.case(numbers("A=3", [first, 1.0, last]), "A=3", 0).value(dtype);
                }
            }
        }
    }
}

macro_rules! along {
    ($($name:ident $($name_:ident)? |$x:ident, $dim:ident| $call:expr, $dtype:ident $place:ident $exact:ident |$lane:ident| $reference:expr;)*) => {
        /// The ops of this table.
        pub(crate) const OPS: &[$crate::Tested] = &[$((stringify!($name), in_place!(name $($name_)?))),*];
        $(
            #[test]
            fn $name() {
                static ROW: Along = Along {
                    op: stringify!($name),
                    call: |$x, $dim| $call,
                    in_place: along!(@ $($name_)?),
                    dtype: $crate::check::$dtype,
                    reference: |$lane| $reference,
                    place: Place::of(stringify!($place)),
                    exact: stringify!($exact).as_bytes()[0] == b'e', // const: texts cannot be compared here
                };
                ROW.check();
            }
        )*
    };
    (@) => { None };
    (@ $name_:ident) => { Some(|x, dim| x.$name_(dim).map(drop)) };
}

along! {
//  op                 call                           dtype   the dim, the result  reference
    softmax            |x, dim| x.softmax(dim),        floats  stays   rounded |x| plain::softmax(x);
    log_softmax        |x, dim| x.log_softmax(dim),    floats  stays   rounded |x| plain::log_softmax(x);
    cumsum cumsum_     |x, dim| x.cumsum(dim),         sums    stays   rounded |x| plain::running_sum(x);
    cumprod cumprod_   |x, dim| x.cumprod(dim),        sums    stays   rounded |x| plain::running_product(x);
    logcumsumexp       |x, dim| x.logcumsumexp(dim),   floats  stays   rounded |x| plain::running_logsumexp(x);
    argmax             |x, dim| x.argmax(dim),         places  removed exact   |x| vec![plain::best(x, Ordering::Greater)];
    argmax_keepdim     |x, dim| x.argmax_keepdim(dim), places  one     exact   |x| vec![plain::best(x, Ordering::Greater)];
    argmin             |x, dim| x.argmin(dim),         places  removed exact   |x| vec![plain::best(x, Ordering::Less)];
    argmin_keepdim     |x, dim| x.argmin_keepdim(dim), places  one     exact   |x| vec![plain::best(x, Ordering::Less)];
    argsort            |x, dim| x.argsort(dim, false), indices stays   exact   |x| plain::sorted(x, false);
}

#[test]
fn argsort_descending() {
    static ROW: Along = Along {
        op: "argsort",
        call: |x, dim| x.argsort(dim, true),
        in_place: None,
        dtype: crate::check::indices,
        reference: |x| plain::sorted(x, true),
        place: Place::Stays,
        exact: true,
    };
    ROW.check();
}

/// Where an element is zero the products cannot be divided by it, to no order.
#[test]
fn cumprod_of_zeros() {
    static ROW: Along = Along {
        op: "cumprod",
        call: |x, dim| x.cumprod(dim),
        in_place: None,
        dtype: crate::check::sums,
        reference: plain::running_product,
        place: Place::Stays,
        exact: false,
    };
    for zeros in [[0.0, 2.0, 3.0, 4.0], [2.0, 0.0, 3.0, 0.0], [0.0, 0.0, 0.0, 5.0]] {
        for (from, dim) in [("A=4", 0), ("A=2 B=2", 1), ("B=4 A=1", 0)] {
            check(&ROW.case(numbers(from, zeros), from, dim));
        }
    }
}

/// Where the sum so far is infinite there is no finite slope; elsewhere the gradient is not touched by it.
#[test]
fn logcumsumexp_of_infinite_numbers() {
    let gradient = |data: [f64; 3]| {
        let x = TensorOptions::new().dtype(DType::F64).requires_grad(true).tensor(data).unwrap();
        x.logcumsumexp(0).unwrap().sum(..).unwrap().backward().unwrap();
        x.grad().unwrap().to_vec::<f64>().unwrap()
    };
    assert_eq!(gradient([f64::NEG_INFINITY, 0.0, f64::NEG_INFINITY]), [0.0, 2.0, 0.0]);
    assert_eq!(gradient([1.0, f64::INFINITY, 2.0]), [1.0, 0.0, 0.0]);
}

/// Ops that are made of others, on named dims, to second order.
#[test]
fn composed() {
    let of = |from: &'static str,
              dim: usize,
              place,
              call: fn(&Tensor, usize) -> Result<Tensor>,
              reference: fn(&[f64]) -> Vec<f64>,
              dtype| {
        let (result, reference) = lanes(from, dim, place, reference);
        check(&Case {
            op: "narrow", // differentiated as the ops that it is made of
            call: Box::new(move |x| call(&x[0], dim)),
            in_place: None,
            inputs: vec![values(from)],
            result,
            dtype,
            reference,
            scale: Some(6.0),
            reshapes: false,
        });
    };
    let floats = crate::check::floats;
    for (from, dim) in [("A=2 B=4", 1), ("A=4 B=2", 0), ("B=5", 0)] {
        of(
            from,
            dim,
            Place::Stays,
            |x, dim| x.diff(1, dim),
            |x| x.windows(2).map(|x| x[1] - x[0]).collect(),
            crate::check::any,
        );
        of(
            from,
            dim,
            Place::Removed,
            |x, dim| x.quantile(0.3, dim),
            |x| vec![plain::quantile(x, 0.3)],
            floats,
        );
        of(
            from,
            dim,
            Place::One,
            |x, dim| x.quantile_keepdim(1.0, dim),
            |x| vec![plain::quantile(x, 1.0)],
            floats,
        );
    }
    let x = Tensor::new([[1.0, 5.0], [4.0, 2.0]]).unwrap().refine_names(["N", "C"]).unwrap();
    assert_eq!(x.quantile(0.5, ..).unwrap().item().unwrap().to_f64(), 3.0);
    assert_eq!(x.quantile_keepdim(0.5, ..).unwrap().extents().to_string(), "[N=1, C=1]");
    assert_eq!(x.msort().unwrap().to_vec::<f64>().unwrap(), [1.0, 2.0, 4.0, 5.0]);
    assert_eq!(x.diff(3, "C").unwrap().extents().to_string(), "[N=2, C=0]");
    assert!(
        x.div(0.0)
            .unwrap()
            .sub(f64::INFINITY)
            .unwrap()
            .quantile(0.5, ..)
            .unwrap()
            .item()
            .unwrap()
            .to_f64()
            .is_nan()
    );
    assert_eq!(x.quantile(1.5, "C").unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(x.to(DType::I64).unwrap().quantile(0.5, "C").unwrap_err().kind(), ErrorKind::DType);
    assert_eq!(x.sum(..).unwrap().diff(1, 0).unwrap_err().kind(), ErrorKind::Shape);
}
