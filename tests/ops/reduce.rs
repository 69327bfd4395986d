//! Reductions: a row gives the dtype of the result, whether nothing at all can be reduced, and the reference on the numbers that become one.

use crate::check::{Call, Case, Input, axes, check, near_one, numbers, sizes, values};
use crate::plain::{self, Plain, unravel};
use namegrad::prelude::*;

/// A row of the table.
struct Reduction {
    op: &'static str,
    call: fn(&Tensor, &[usize], bool) -> Result<Tensor>,
    dtype: fn(DType) -> Option<DType>,
    reference: fn(&[f64]) -> f64,
    /// Does it have an answer over nothing?
    empty: bool,
    /// Is it `bool`, so that any order of the terms gives the same?
    exact: bool,
}

impl Reduction {
    /// The op over `dims` of an input, with the reduced dims gone or of size one.
    fn case(&'static self, input: Input, from: &str, dims: &[usize], keepdim: bool) -> Case {
        let all = axes(from);
        let result = all.iter().enumerate().filter(|(dim, _)| keepdim || !dims.contains(dim));
        let result = result
            .map(|(dim, (name, size))| (name.clone(), if dims.contains(&dim) { 1 } else { *size }))
            .collect();
        let (shape, sizes, dims) = (sizes(&result), sizes(&all), dims.to_vec());
        let reduced: Vec<usize> = dims.iter().map(|dim| sizes[*dim]).collect();
        let own = dims.clone();
        let reference = move |x: &[Plain]| {
            Plain::from_fn(&shape, |i| {
                let mut index = vec![0; sizes.len()];
                let mut kept = (0..sizes.len()).filter(|dim| keepdim || !own.contains(dim));
                i.iter().for_each(|i| index[kept.next().unwrap()] = *i);
                let lane: Vec<f64> = (0..reduced.iter().product())
                    .map(|at| {
                        own.iter().zip(unravel(at, &reduced)).for_each(|(dim, i)| index[*dim] = i);
                        x[0].at(&index)
                    })
                    .collect();
                (self.reference)(&lane)
            })
        };
        let call: Call = Box::new(move |x| (self.call)(&x[0], &dims, keepdim));
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
        let shape = "A=2 B=3 C=2";
        for dims in
            [vec![], vec![0], vec![1], vec![2], vec![0, 1], vec![1, 2], vec![0, 2], vec![2, 0], vec![0, 1, 2]]
        {
            for keepdim in [false, true] {
                check(&self.case(values(shape), shape, &dims, keepdim));
            }
        }
        for shape in ["", "A=1 ?=3", "B=3 A=0"] {
            check(&self.case(values(shape), shape, &[0][..shape.len().min(1)], false));
        }
        self.nothing();
        self.long();
        self.special_values();
        self.by_name();
    }

    /// Over nothing there is an answer, or an error.
    fn nothing(&'static self) {
        if self.empty {
            let case = self.case(values("A=0 B=3"), "A=0 B=3", &[0], true);
            DType::ALL.into_iter().for_each(|dtype| case.value(dtype));
            self.case(values("A=0 B=0"), "A=0 B=0", &[0, 1], false).value(DType::F64);
        } else {
            let x = Tensor::zeros([("A", 0), ("B", 3)]).unwrap();
            let error = (self.call)(&x, &[0], false).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Shape, "{error}");
        }
    }

    /// Long enough for vectors, blocks and their rests, in each direction.
    fn long(&'static self) {
        for (shape, dims) in [
            ("A=3 B=1037", vec![1]),
            ("A=1037 B=3", vec![0]),
            ("A=517 B=3", vec![0, 1]),
            ("A=3 B=70 C=5", vec![1]),
        ] {
            let input = if self.op == "prod" { near_one(shape) } else { values(shape) };
            let case = self.case(input, shape, &dims, false);
            for dtype in [DType::F64, DType::F32, DType::I64]
                .into_iter()
                .filter(|dtype| (self.dtype)(*dtype).is_some())
            {
                if self.op != "prod" || dtype != DType::I64 {
                    case.value(dtype);
                    case.orders(dtype);
                }
            }
        }
    }

    /// Zeros, ties, infinities and NaN, in the first and in the last place.
    fn special_values(&'static self) {
        let special = [0.0, -0.0, 1.0, -2.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        for first in special {
            for last in special {
                for dtype in [DType::F64, DType::F32, DType::F16]
                    .into_iter()
                    .filter(|dtype| (self.dtype)(*dtype).is_some())
                {
                    self.case(numbers("A=3", [first, 1.0, last]), "A=3", &[0], false).value(dtype);
                }
            }
        }
    }

    /// A dim by name, by a negative index and as one of a list is the same dim.
    fn by_name(&'static self) {
        let x = Tensor::ones([("A", 2), ("B", 3)]).unwrap();
        let error = (self.call)(&x, &[2], false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DimRange, "{error}");
        let error = (self.call)(&x, &[1, 1], false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DimRange, "{error}");
    }
}

macro_rules! reductions {
    ($($name:ident $name_keepdim:ident $(($arg:expr))? $dtype:ident $empty:ident |$x:ident| $reference:expr $(, $exact:ident)?;)*) => {
        /// The ops of this table.
        pub(crate) const OPS: &[$crate::Tested] = &[$((stringify!($name), None)),*];
        static ROWS: &[Reduction] = &[$(Reduction {
            op: stringify!($name),
            call: |x, dims, keepdim| if keepdim { x.$name_keepdim(dims $(, $arg)?) } else { x.$name(dims $(, $arg)?) },
            dtype: $crate::check::$dtype,
            reference: |$x| $reference,
            empty: stringify!($empty).as_bytes()[0] == b'o', // const: texts cannot be compared here
            exact: [$(stringify!($exact).len() > 0,)? false][0],
        }),*];
        $(
            #[test]
            fn $name() {
                row(stringify!($name)).check();
            }
        )*
    };
}

fn row(op: &str) -> &'static Reduction {
    ROWS.iter().find(|row| row.op == op).expect("a row of the table")
}

reductions! {
//  op                          dtype    nothing  reference
    sum sum_keepdim             sums     or_zero  |x| plain::sum(x.len(), |i| x[i]);
    prod prod_keepdim           sums     or_one   |x| x.iter().product();
    mean mean_keepdim           floats   or_nan   |x| plain::sum(x.len(), |i| x[i]) / x.len() as f64;
    amax amax_keepdim           any      error    |x| x.iter().copied().reduce(plain::larger).unwrap_or(f64::NAN), exact;
    amin amin_keepdim           any      error    |x| x.iter().copied().reduce(plain::smaller).unwrap_or(f64::NAN), exact;
    all all_keepdim             truth_or_byte or_true  |x| x.iter().all(|x| *x != 0.0).into(), exact;
    any any_keepdim             truth_or_byte or_false |x| x.iter().any(|x| *x != 0.0).into(), exact;
    logsumexp logsumexp_keepdim to_float or_log_0 |x| plain::logsumexp(x);
    var var_keepdim             floats   or_nan   |x| plain::variance(x, 1.0);
    std std_keepdim             floats   or_nan   |x| plain::variance(x, 1.0).sqrt();
    norm norm_keepdim           floats   or_zero  |x| plain::sum(x.len(), |i| x[i] * x[i]).sqrt();
    vector_norm vector_norm_keepdim (3.0) floats or_zero |x| plain::norm(x, 3.0);
    var_corrected var_corrected_keepdim (0.5) floats or_nan |x| plain::variance(x, 0.5);
    std_corrected std_corrected_keepdim (0.5) floats or_nan |x| plain::variance(x, 0.5).sqrt();
    nansum nansum_keepdim       sums     or_zero  |x| x.iter().filter(|x| !x.is_nan()).sum();
    nanmean nanmean_keepdim     floats   or_nan   |x| plain::nanmean(x);
    count_nonzero count_nonzero_keepdim indices or_zero |x| x.iter().filter(|x| **x != 0.0).count() as f64, exact;
}

/// Where an element is zero the product cannot be divided by it, to no order.
#[test]
fn prod_of_zeros() {
    for zeros in [[0.0, 2.0, 3.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0]] {
        for (from, dims) in [("A=3", vec![0]), ("A=1 B=3", vec![1]), ("A=3 B=1", vec![0, 1])] {
            check(&row("prod").case(numbers(from, zeros), from, &dims, false));
        }
    }
}

/// The orders that have a formula of their own, and some between them. A ratio of 0 to a negative order has no derivative.
#[test]
fn vector_norm_of_each_order() {
    macro_rules! order {
        ($($ord:expr, $empty:literal;)*) => { $({
            static ROW: Reduction = Reduction {
                op: "vector_norm",
                call: |x, dims, keepdim| if keepdim { x.vector_norm_keepdim(dims, $ord) } else { x.vector_norm(dims, $ord) },
                dtype: crate::check::floats,
                reference: |x| plain::norm(x, $ord),
                empty: $empty,
                exact: false,
            };
            ROW.check();
        })* };
    }
    order! {
        0.0, true;
        0.5, true;
        1.0, true;
        1.5, true;
        2.0, true;
        f64::INFINITY, false;
        f64::NEG_INFINITY, false;
        -1.0, false;
    }
}

/// At zeros the gradient of a norm is zero, for every order.
#[test]
fn vector_norm_of_zeros() {
    for ord in [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -1.0, f64::INFINITY, f64::NEG_INFINITY] {
        for data in [[0.0, 0.0], [0.0, 1.0]] {
            let x = Tensor::new(data).unwrap().requires_grad_(true).unwrap();
            x.vector_norm(.., ord).unwrap().backward().unwrap();
            let grad = x.grad().unwrap().to_vec::<f64>().unwrap();
            let one = f64::from(data[1] == 1.0 && ord > 0.0);
            assert_eq!(grad, [0.0, one], "order {ord} at {data:?}");
        }
    }
}

/// A NaN among the elements has no part in the result, nor in the gradient.
#[test]
fn reductions_without_nan() {
    for op in ["nansum", "nanmean"] {
        for data in [[1.0, f64::NAN, 2.0], [f64::NAN, f64::NAN, 2.0]] {
            let case = row(op).case(numbers("A=3", data), "A=3", &[0], false);
            [DType::F64, DType::F32, DType::F16].into_iter().for_each(|dtype| case.value(dtype));
            case.gradient();
        }
    }
}

/// As the single ops give.
#[test]
fn pairs_of_reductions() {
    use namegrad::core::{MinMax, StdMean, VarMean};
    let x = Tensor::new([[1.0, 4.0, 2.0], [3.0, 3.0, 0.0]]).unwrap().refine_names(["N", "C"]).unwrap();
    let same = |a: &Tensor, b: Result<Tensor>| assert!(crate::check::identical(a, &b.unwrap()));
    let MinMax { min, max } = x.aminmax("C").unwrap();
    same(&min, x.amin("C"));
    same(&max, x.amax("C"));
    let StdMean { std, mean } = x.std_mean("C", 1.0).unwrap();
    same(&std, x.std("C"));
    same(&mean, x.mean("C"));
    let VarMean { var, mean } = x.var_mean_keepdim(.., 0.0).unwrap();
    same(&var, x.var_corrected_keepdim(.., 0.0));
    same(&mean, x.mean_keepdim(..));
}
