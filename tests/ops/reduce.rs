//! Reductions. A row has the rule for the dtype of the result, whether an empty input can be reduced, and the
//! reference, a function of the numbers that are reduced to one.

use crate::check::{Args, Case, Input, axes, by_name, check, near_one, numbers, sizes, values};
use crate::plain::{self, Plain, unravel};
use Nothing::*;
use Order::*;
use namegrad::autograd::{BackwardOptions, gradgradcheck};
use namegrad::core::Scalar;
use namegrad::ops::Value;
use namegrad::prelude::*;
use namegrad_tests::values::{assert_near, f64s, gradient, plain_and_recorded};

/// A row of the table.
struct Reduction {
    op: &'static str,
    /// The name of the output, if there are several.
    output: &'static str,
    /// The arguments other than the dims.
    args: fn(usize) -> Args,
    dtype: fn(DType) -> Option<DType>,
    reference: fn(&[f64]) -> f64,
    nothing: Nothing,
    order: Order,
}

/// The result of an op without elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nothing {
    Answers,
    Refuses,
}

/// Whether the result may depend on the order of the terms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Rounds,
    Exact,
}

impl Reduction {
    const fn new(
        op: &'static str,
        output: &'static str,
        args: fn(usize) -> Args,
        dtype: fn(DType) -> Option<DType>,
        nothing: Nothing,
        order: Order,
        reference: fn(&[f64]) -> f64,
    ) -> Reduction {
        Reduction { op, output, args, dtype, reference, nothing, order }
    }

    fn arguments(&self, dims: &[usize], keepdim: bool) -> Args {
        let dims = Value::from(dims.to_vec());
        (self.args)(0).into_iter().chain([("dim", dims), ("keepdim", keepdim.into())]).collect()
    }

    /// The op over `dims` of an input, with the reduced dims removed or kept with size one.
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
        let (call, _) = by_name(self.op, self.arguments(&dims, keepdim), self.output);
        let scale = if self.order == Order::Exact { None } else { Some(input.magnitude()) };
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
        for dims in [vec![0], vec![1], vec![2], vec![0, 1], vec![1, 2], vec![0, 2], vec![2, 0], vec![0, 1, 2]]
        {
            for keepdim in [false, true] {
                check(&self.case(values(shape), shape, &dims, keepdim));
            }
        }
        // In a call by name, an empty list means all dims, as in PyTorch.
        check(&self.case(values(""), "", &[], false));
        for shape in ["A=1 ?=3", "B=3 A=0"] {
            check(&self.case(values(shape), shape, &[0], false));
        }
        self.nothing();
        self.long();
        self.special_values();
        self.by_name();
    }

    fn refused(&self, x: &Tensor, dims: &[usize]) -> Error {
        by_name(self.op, self.arguments(dims, false), self.output).0(std::slice::from_ref(x)).unwrap_err()
    }

    /// Over no elements there is a result, or an error.
    fn nothing(&'static self) {
        if self.nothing == Nothing::Answers {
            let case = self.case(values("A=0 B=3"), "A=0 B=3", &[0], true);
            DType::ALL.into_iter().for_each(|dtype| case.value(dtype));
            self.case(values("A=0 B=0"), "A=0 B=0", &[0, 1], false).value(DType::F64);
        } else {
            let x = Tensor::zeros([("A", 0), ("B", 3)]).unwrap();
            let error = self.refused(&x, &[0]);
            assert_eq!(error.kind(), ErrorKind::Shape, "{error}");
        }
    }

    /// Long enough for vectors, blocks and their remainders, in each direction.
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

    /// Zeros, ties, infinities and NaN, in the first and last positions.
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

    /// A dim can be given by name, by a negative index and in a list.
    fn by_name(&'static self) {
        let x = Tensor::ones([("A", 2), ("B", 3)]).unwrap();
        let error = self.refused(&x, &[2]);
        assert_eq!(error.kind(), ErrorKind::DimRange, "{error}");
        let error = self.refused(&x, &[1, 1]);
        assert_eq!(error.kind(), ErrorKind::DimRange, "{error}");
    }
}

rows! { Reduction:
//  op, or name = op, arguments            dtype    nothing order   reference
    sum                                    sums     Answers Rounds |x| plain::sum(x.len(), |i| x[i]);
    prod                                   sums     Answers Rounds |x| x.iter().product();
    mean                                   floats   Answers Rounds |x| plain::mean(x);
    amax                                   any      Refuses Exact  |x| x.iter().copied().reduce(plain::larger).unwrap_or(f64::NAN);
    amin                                   any      Refuses Exact  |x| x.iter().copied().reduce(plain::smaller).unwrap_or(f64::NAN);
    smallest_of_pair = aminmax.min         any      Refuses Exact  |x| x.iter().copied().reduce(plain::smaller).unwrap_or(f64::NAN);
    largest_of_pair = aminmax.max          any      Refuses Exact  |x| x.iter().copied().reduce(plain::larger).unwrap_or(f64::NAN);
    all                                    truth_or_byte Answers Exact |x| x.iter().all(|x| *x != 0.0).into();
    any                                    truth_or_byte Answers Exact |x| x.iter().any(|x| *x != 0.0).into();
    logsumexp                              to_float Answers Rounds |x| plain::logsumexp(x);
    var                                    floats   Answers Rounds |x| plain::variance(x, 1.0);
    std                                    floats   Answers Rounds |x| plain::variance(x, 1.0).sqrt();
    var_of_half = var (_n: correction 0.5)     floats   Answers Rounds |x| plain::variance(x, 0.5);
    std_of_half = std (_n: correction 0.5)     floats   Answers Rounds |x| plain::variance(x, 0.5).sqrt();
    var_of_pair = var_mean.var             floats   Answers Rounds |x| plain::variance(x, 1.0);
    mean_beside_var = var_mean.mean        floats   Answers Rounds |x| plain::mean(x);
    std_of_pair = std_mean.std             floats   Answers Rounds |x| plain::variance(x, 1.0).sqrt();
    mean_beside_std = std_mean.mean        floats   Answers Rounds |x| plain::mean(x);
    norm                                   floats   Answers Rounds |x| plain::sum(x.len(), |i| x[i] * x[i]).sqrt();
    vector_norm (_n: ord 3.0)                  floats   Answers Rounds |x| plain::norm(x, 3.0);
    // The orders that have their own formula, and some between them. A ratio of 0 to a negative power has no
    // derivative.
    norm_0 = vector_norm (_n: ord 0.0)         floats   Answers Rounds |x| plain::norm(x, 0.0);
    norm_half = vector_norm (_n: ord 0.5)      floats   Answers Rounds |x| plain::norm(x, 0.5);
    norm_1 = vector_norm (_n: ord 1.0)         floats   Answers Rounds |x| plain::norm(x, 1.0);
    norm_1_5 = vector_norm (_n: ord 1.5)       floats   Answers Rounds |x| plain::norm(x, 1.5);
    norm_2 = vector_norm (_n: ord 2.0)         floats   Answers Rounds |x| plain::norm(x, 2.0);
    norm_inf = vector_norm (_n: ord f64::INFINITY) floats Refuses Rounds |x| plain::norm(x, f64::INFINITY);
    norm_neg_inf = vector_norm (_n: ord f64::NEG_INFINITY) floats Refuses Rounds |x| plain::norm(x, f64::NEG_INFINITY);
    norm_neg_1 = vector_norm (_n: ord -1.0)    floats   Refuses Rounds |x| plain::norm(x, -1.0);
    nansum                                 sums     Answers Rounds |x| x.iter().filter(|x| !x.is_nan()).sum();
    nanmean                                floats   Answers Rounds |x| plain::nanmean(x);
    count_nonzero                          indices  Answers Exact  |x| x.iter().filter(|x| **x != 0.0).count() as f64;
}

/// A method reduces the dims in its list, so with an empty list it reduces none.
#[test]
fn over_no_dims() {
    let x = Tensor::new([[1.0, -2.0], [3.0, 4.0]]).unwrap().refine_names(["N", "C"]).unwrap();
    let none: [usize; 0] = [];
    for same in [x.sum(none), x.amax(none), x.mean(keep(none)), x.prod(none)] {
        assert!(same.unwrap().equal(&x).unwrap());
    }
    assert!(x.norm(none).unwrap().equal(&x.abs().unwrap()).unwrap());
}

/// If an element is zero, the product cannot be divided by it, in any order of differentiation.
#[test]
fn prod_of_zeros() {
    for zeros in [[0.0, 2.0, 3.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0]] {
        for (from, dims) in [("A=3", vec![0]), ("A=1 B=3", vec![1]), ("A=3 B=1", vec![0, 1])] {
            check(&row("prod").case(numbers(from, zeros), from, &dims, false));
        }
    }
}

/// At zeros, the gradient of a norm is zero for every order.
#[test]
fn vector_norm_of_zeros() {
    for ord in [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -1.0, f64::INFINITY, f64::NEG_INFINITY] {
        for data in [[0.0, 0.0], [0.0, 1.0]] {
            let x = Tensor::new(data).unwrap().requiring_grad().unwrap();
            x.vector_norm_with(.., VectorNormOptions::new().ord(ord)).unwrap().backward().unwrap();
            let grad = x.grad().unwrap().to_vec::<f64>().unwrap();
            let one = f64::from(data[1] == 1.0 && ord > 0.0);
            assert_eq!(grad, [0.0, one], "order {ord} at {data:?}");
        }
    }
}

/// A NaN among the elements affects neither the result nor the gradient.
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

#[test]
fn the_second_derivative_of_a_product_with_a_zero_was_zero() -> Result<()> {
    for zeros in [[0.0, 2.0, 3.0], [0.0, 0.0, 5.0]] {
        let x = TensorOptions::new().dtype(DType::F64).tensor([zeros, [1.0, 2.0, 0.5]])?;
        gradgradcheck(|x| x[0].prod(1), std::slice::from_ref(&x))?;
        gradgradcheck(|x| x[0].prod(..), &[x])?;
    }
    Ok(())
}

#[test]
fn running_sums_and_deviations_lost_what_does_not_fit_f32() -> Result<()> {
    let last = |x: Tensor| x.select(0, -1)?.item::<f64>();
    assert_eq!(last(Tensor::full([20_000_000], 1.0)?.cumsum(0)?)?, 2e7);
    assert_eq!(last(Tensor::full([1_000_000], 0.1)?.cumsum(0)?)?, 1e5);
    let std = Tensor::new([1e20, 2e20])?.std(..)?.item::<f64>()?;
    assert!((std / 5e39f64.sqrt() - 1.0).abs() < 1e-6, "{std}");
    Ok(())
}

#[test]
fn a_product_that_does_not_count_gave_nan() -> Result<()> {
    let infinite = Tensor::full([2, 2], f64::INFINITY)?;
    for beta in [1.0, 2.0] {
        let options = AddmmOptions::new().alpha(0.0).beta(beta);
        let y = Tensor::ones([2, 2])?.addmm_with(&infinite, &infinite, options)?;
        assert_eq!(y.to_vec::<f64>()?, [beta; 4]);
    }
    Ok(())
}

#[test]
fn the_gradient_of_logsumexp_was_wrong_beside_infinity() -> Result<()> {
    let x = f64s([1.0, f64::INFINITY, 2.0])?;
    assert_near(&gradient(&x, |x| x.logsumexp(0))?, &[0.0, f64::NAN, 0.0]);
    Ok(())
}

#[test]
fn a_variance_with_a_correction_of_nan_was_infinite() -> Result<()> {
    let x = f64s([1.0, 2.0, 4.0])?;
    let var =
        |correction| x.var_mean_with(.., VarMeanOptions::new().correction(correction))?.var.item::<Scalar>();
    assert!(var(f64::NAN)?.to_f64().is_nan());
    assert_eq!(var(f64::INFINITY)?.to_f64(), f64::INFINITY);
    assert_eq!(var(3.0)?.to_f64(), f64::INFINITY);
    Ok(())
}

#[test]
fn the_median_of_an_empty_tensor_was_an_error() -> Result<()> {
    let x = Tensor::zeros([2, 0])?.requiring_grad()?;
    for Picked { values, indices } in [x.median(..)?, x.nanmedian(..)?] {
        assert!(values.item::<f64>()?.is_nan() && indices.item::<i64>()? == -1);
        values.backward()?;
    }
    assert_eq!(x.grad().unwrap().sizes(), [2, 0]);
    assert_eq!(x.median(keep(..))?.values.sizes(), [1, 1]);
    // An integer dtype has no NaN, and an empty lane has no median.
    assert_eq!(x.to(DType::I64)?.median(..).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(x.median(1).unwrap_err().kind(), ErrorKind::Shape);
    Ok(())
}

/// Sums of integers were always `i64`, even if another integer dtype was requested.
#[test]
fn sums_did_not_have_the_integer_dtype_that_was_asked_for() -> Result<()> {
    let x = Tensor::new([[100.7, 100.2], [f64::NAN, 3.9]])?.refine_names(["N", "C"])?;
    let whole = x.narrow("N", 0, 1)?.select("N", 0)?;
    for dtype in [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64] {
        // As in PyTorch, the elements are cast first, and the sum wraps.
        let wrapped = |number: i64| Tensor::new(number)?.to(dtype)?.double()?.to_vec::<f64>();
        let sum = whole.sum_with(.., SumOptions::new().dtype(dtype))?;
        assert_eq!((sum.dtype(), sum.double()?.to_vec::<f64>()?), (dtype, wrapped(200)?));
        let prod = whole.prod_with(keep("C"), ProdOptions::new().dtype(dtype))?;
        assert_eq!((prod.dtype(), prod.double()?.to_vec::<f64>()?), (dtype, wrapped(10_000)?));
        let sums = whole.cumsum_with("C", CumsumOptions::new().dtype(dtype))?;
        assert_eq!((sums.dtype(), sums.select(0, 1)?.double()?.to_vec::<f64>()?), (dtype, wrapped(200)?));
        let products = whole.cumprod_with("C", CumprodOptions::new().dtype(dtype))?;
        assert_eq!(
            (products.dtype(), products.select(0, 1)?.double()?.to_vec::<f64>()?),
            (dtype, wrapped(10_000)?)
        );
        let numbers = x.nansum_with(.., NansumOptions::new().dtype(dtype))?;
        assert_eq!((numbers.dtype(), numbers.double()?.to_vec::<f64>()?), (dtype, wrapped(203)?));
    }
    let leaf = x.detach().requiring_grad()?;
    let sum = leaf.sum_with("C", SumOptions::new().dtype(DType::F32))?;
    assert!(sum.requires_grad());
    assert!(!leaf.sum_with("C", SumOptions::new().dtype(DType::I32))?.requires_grad());
    Ok(())
}

/// The zeros of a lane are counted: 0 times an overflowing product of the others is not NaN.
#[test]
fn the_gradient_of_prod_with_zeros_and_large_numbers() -> Result<()> {
    let product = |x: [f32; 6]| -> Result<Vec<f32>> {
        let x = Tensor::new(x)?.requiring_grad()?;
        x.prod(0)?.backward()?;
        x.grad().expect("it was computed").to_vec()
    };
    assert_eq!(product([0.0, 1e30, 1e30, 1e30, 0.0, 3.0])?, [0.0; 6]);
    // One factor has no others.
    for gradient in plain_and_recorded(&Tensor::new([f64::INFINITY])?, |x| x.prod(0))? {
        assert_eq!(gradient, [1.0]);
    }
    // The product of all overflows, those of the others do not.
    let half = Tensor::new([300.0, 300.0, 1.0])?.to(DType::F16)?;
    for gradient in plain_and_recorded(&half, |x| x.prod(0))? {
        assert_eq!(gradient, [300.0, 300.0, f64::INFINITY]);
    }
    for gradient in
        plain_and_recorded(&Tensor::new([300.0, 300.0, 0.0])?.to(DType::F16)?, |x| x.cumprod(0)?.sum(..))?
    {
        assert_eq!(gradient, [301.0, 300.0, f64::INFINITY]);
    }
    // In `f64` too; and infinity and NaN beside zeros are NaN.
    for (x, want) in [
        ([1e300, 1e300, 1e-300], [1.0, 1.0, f64::INFINITY]),
        ([0.0, f64::INFINITY, 2.0], [f64::INFINITY, 0.0, f64::NAN]),
        ([f64::NAN, 0.0, 2.0], [0.0, f64::NAN, f64::NAN]),
    ] {
        for gradient in plain_and_recorded(&Tensor::from_slice(&x, 3)?, |x| x.prod(0))? {
            let near = |a: f64, b: f64| a == b || (a - b).abs() < 1e-12 * b.abs() || a.is_nan() && b.is_nan();
            assert!(gradient.iter().zip(want).all(|(a, b)| near(*a, b)), "{x:?}: {gradient:?}");
        }
    }
    let underflows = Tensor::from_slice(&[1e-200, 1e-200, 1e200], 3)?;
    for gradient in plain_and_recorded(&underflows, |x| x.cumprod(0)?.sum(..))? {
        assert_eq!(gradient, [2.0, 1.0, 0.0]);
    }
    let one = product([0.0, 1e30, 1e30, 1e-30, 1e-30, 3.0])?;
    assert!((one[0] - 3.0).abs() < 1e-5 && one[1..] == [0.0; 5], "{one:?}");
    Ok(())
}

/// Gradients of several outputs are added before they are rounded to a half type.
#[test]
fn joint_gradients_of_half_types_are_rounded_once() -> Result<()> {
    type Op = fn(&Tensor) -> Result<Vec<Tensor>>;
    // A result that is kept was rounded before, which costs some digits.
    let ops: [(&str, Op, f64); 4] = [
        ("var_mean", |x| x.var_mean(1).map(|y| vec![y.var, y.mean]), 0.51),
        ("std_mean", |x| x.std_mean(1).map(|y| vec![y.std, y.mean]), 8.0),
        ("aminmax", |x| x.aminmax(1).map(|y| vec![y.min, y.max]), 0.51),
        ("standardize", |x| x.standardize(0, [1], 1).map(|(y, mean, var)| vec![y, mean, var]), 8.0),
    ];
    let x: Vec<f64> = (0..35).map(|at| ((at * 37 % 35) as f64 - 17.0) / 8.0).collect();
    let g = f64s([1.25, 3.0, -0.375, 7.0, 1.125])?.unsqueeze(1)?;
    for (name, op, roundings) in ops {
        for (dtype, ulp) in [(DType::F16, 2f64.powi(-10)), (DType::BF16, 2f64.powi(-7))] {
            for create_graph in [false, true] {
                let gradient = |compute: DType| -> Result<Vec<f64>> {
                    let x = Tensor::from_slice(&x, [5, 7])?.to(dtype)?.to(compute)?.requiring_grad()?;
                    let mut sum = Tensor::zeros(())?.to(compute)?;
                    for (at, y) in op(&x)?.into_iter().enumerate() {
                        let g = g
                            .add(at as f64)?
                            .to(compute)?
                            .reshape(&[&[5], &vec![1; y.ndim() - 1][..]].concat()[..])?;
                        sum = sum.add(y.mul(&g)?.sum(..)?)?;
                    }
                    sum.backward_with(None, BackwardOptions::new().create_graph(create_graph))?;
                    x.grad().expect("it was computed").detach().to(DType::F64)?.to_vec()
                };
                for (got, want) in gradient(dtype)?.into_iter().zip(gradient(DType::F32)?) {
                    let near = (got - want).abs() <= roundings * ulp * want.abs().max(2f64.powi(-3));
                    assert!(near, "{name} of {dtype}, recorded {create_graph}: {got} is not {want}");
                }
            }
        }
    }
    Ok(())
}

/// A copy of all repetitions would take 8 GiB.
#[test]
fn expanded_tensors_are_reduced_without_a_copy() -> Result<()> {
    let huge = Tensor::full([1], 0.5)?.expand([1usize << 31])?;
    assert_eq!(huge.sum(..)?.item::<f64>()?, 2f64.powi(30));
    assert_eq!([huge.mean(..)?.item::<f64>()?, huge.amax(..)?.item()?], [0.5, 0.5]);
    assert!(Tensor::new([true])?.expand([1usize << 33])?.all(..)?.item::<bool>()?);
    // Integers wrap: 3 to the power of 2³³ by squares.
    let power = (0..33).fold(3_i64, |power, _| power.wrapping_mul(power));
    assert_eq!(Tensor::new([3])?.expand([1usize << 33])?.prod(..)?.item::<i64>()?, power);
    let x = Tensor::new([[1.0], [-3.0]])?.expand([2, 2, 3])?; // [repeated, 2, repeated]
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::I32] {
        let (x, dense) =
            (x.narrow(0, 0, 1)?.to(dtype)?.narrow(2, 0, 1)?.expand([2, 2, 3])?, x.to(dtype)?.clone());
        let dense = dense.contiguous()?;
        for dims in [vec![0], vec![2], vec![0, 2], vec![0, 1], vec![1, 2], vec![0, 1, 2]] {
            for (op, y) in [
                ("sum", [x.sum(&dims[..])?, dense.sum(&dims[..])?]),
                ("prod", [x.prod(&dims[..])?, dense.prod(&dims[..])?]),
                ("amin", [x.amin(&dims[..])?, dense.amin(&dims[..])?]),
                ("norm", [x.to(DType::F32)?.norm(&dims[..])?, dense.to(DType::F32)?.norm(&dims[..])?]),
                ("keep", [x.sum(keep(&dims[..]))?, dense.sum(keep(&dims[..]))?]),
            ] {
                assert!(
                    y[0].allclose(&y[1])? && y[0].dtype() == y[1].dtype(),
                    "{op} of {dtype} over {dims:?}"
                );
            }
        }
    }
    Ok(())
}
