//! Ops along one dim: a row gives the call, the dtype of the result, and the reference on the numbers along the dim.

use crate::check::{Call, Case, axes, check, numbers, sizes, values};
use crate::plain::{self, Plain};
use namegrad::prelude::*;
use std::cmp::Ordering;

/// A row of the table.
struct Along {
    op: &'static str,
    call: fn(&Tensor, usize) -> Result<Tensor>,
    dtype: fn(DType) -> Option<DType>,
    reference: fn(&[f64]) -> Vec<f64>,
    /// Is the dim gone from the result?
    removes: bool,
    /// Is the result an index?
    exact: bool,
}

impl Along {
    fn case(&'static self, input: crate::check::Input, from: &str, dim: usize) -> Case {
        let mut result = axes(from);
        let zero_d = result.is_empty();
        if self.removes && !zero_d {
            result.remove(dim);
        }
        let shape = sizes(&result);
        let reference = move |x: &[Plain]| {
            let mut y = Plain::from_fn(&shape, |_| 0.0);
            let x = if zero_d { Plain { sizes: vec![1], ..x[0].clone() } } else { x[0].clone() };
            let firsts: Vec<usize> =
                x.sizes.iter().enumerate().map(|(d, size)| if d == dim { 1 } else { *size }).collect();
            for lane in 0..firsts.iter().product() {
                let mut index = plain::unravel(lane, &firsts);
                for (place, value) in (self.reference)(&x.lane(&index, dim)).into_iter().enumerate() {
                    index[dim] = place;
                    let at = if self.removes { lane } else { plain::ravel(&index, &x.sizes) };
                    y.data[at] = value;
                }
            }
            y
        };
        let call: Call = Box::new(move |x| (self.call)(&x[0], dim));
        let scale = if self.exact { None } else { Some(input.magnitude()) };
        Case {
            op: self.op,
            call,
            in_place: None,
            inputs: vec![input],
            result,
            dtype: self.dtype,
            reference: Box::new(reference),
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
            let case = self.case(values(shape), shape, dim);
            for dtype in [DType::F64, DType::F32, DType::I64]
                .into_iter()
                .filter(|dtype| (self.dtype)(*dtype).is_some())
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
    ($($name:ident |$x:ident, $dim:ident| $call:expr, $dtype:ident $keeps:ident $exact:ident |$lane:ident| $reference:expr;)*) => {
        /// The ops of this table.
        pub(crate) const OPS: &[$crate::Tested] = &[$((stringify!($name), None)),*];
        $(
            #[test]
            fn $name() {
                static ROW: Along = Along {
                    op: stringify!($name),
                    call: |$x, $dim| $call,
                    dtype: $crate::check::$dtype,
                    reference: |$lane| $reference,
                    removes: stringify!($keeps).as_bytes()[0] == b'r', // const: texts cannot be compared here
                    exact: stringify!($exact).as_bytes()[0] == b'e',
                };
                ROW.check();
            }
        )*
    };
}

along! {
//  op          call                               dtype   the dim, the result  reference
    softmax     |x, dim| x.softmax(dim),           floats  stays  rounded |x| plain::softmax(x);
    log_softmax |x, dim| x.log_softmax(dim),       floats  stays  rounded |x| plain::log_softmax(x);
    cumsum      |x, dim| x.cumsum(dim),            sums    stays  rounded |x| plain::running_sum(x);
    argmax      |x, dim| x.argmax(dim),            places  removed exact  |x| vec![plain::best(x, Ordering::Greater)];
    argmin      |x, dim| x.argmin(dim),            places  removed exact  |x| vec![plain::best(x, Ordering::Less)];
    argsort     |x, dim| x.argsort(dim, false),    indices stays  exact   |x| plain::sorted(x, false);
}

#[test]
fn argsort_descending() {
    static ROW: Along = Along {
        op: "argsort",
        call: |x, dim| x.argsort(dim, true),
        dtype: crate::check::indices,
        reference: |x| plain::sorted(x, true),
        removes: false,
        exact: true,
    };
    ROW.check();
}
