//! Ops along one dim. A row has the call, the dtype of the result, and the reference for the numbers along
//! the dim.

use crate::check::{
    Args, Axes, Case, Input, Reference, axes, by_name, check, near_one, numbers, sizes, values,
};
use crate::plain::{self, Plain};
use Order::*;
use Place::*;
use namegrad::autograd::gradgradcheck;
use namegrad::prelude::*;
use namegrad_tests::values::{assert_near, f64s, gradient};
use std::cmp::Ordering;

/// A row of the table.
struct Along {
    op: &'static str,
    /// The name of the output, if there are several.
    output: &'static str,
    /// The arguments other than the dim, for `n` elements along it.
    args: fn(usize) -> Args,
    dtype: fn(DType) -> Option<DType>,
    reference: fn(&[f64]) -> Vec<f64>,
    place: Place,
    order: Order,
}

/// Whether the result may depend on the memory order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Rounds,
    Exact,
}

/// The arguments of an op along a dim.
pub(crate) fn with_dim(args: fn(usize) -> Args, from: &str, dim: usize) -> Args {
    let n = axes(from).get(dim).map_or(1, |(_, size)| *size);
    args(n).into_iter().chain([("dim", dim.into())]).collect()
}

/// The fate of the dim that an op runs along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The dim is kept, with as many elements as the reference returns.
    Stays,
    /// The dim has size one.
    One,
    /// The dim is removed.
    Removed,
}

/// The reference of an op along `dim` of a tensor with sizes `from`, from the reference for the numbers along
/// the dim, and the sizes of the result.
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
    const fn new(
        op: &'static str,
        output: &'static str,
        args: fn(usize) -> Args,
        dtype: fn(DType) -> Option<DType>,
        place: Place,
        order: Order,
        reference: fn(&[f64]) -> Vec<f64>,
    ) -> Along {
        Along { op, output, args, dtype, reference, place, order }
    }

    fn case(&'static self, input: Input, from: &str, dim: usize) -> Case {
        let (result, reference) = lanes(from, dim, self.place, self.reference);
        let (call, in_place) = by_name(self.op, with_dim(self.args, from, dim), self.output);
        let scale = if self.order == Order::Exact { None } else { Some(input.magnitude()) };
        Case {
            op: self.op,
            call,
            in_place,
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

rows! { Along:
//  op, or name = op, arguments      dtype   the dim order   reference
    softmax                          floats  Stays   Rounds |x| plain::softmax(x);
    log_softmax                      floats  Stays   Rounds |x| plain::log_softmax(x);
    cumsum                           sums    Stays   Rounds |x| plain::running_sum(x);
    cumprod                          sums    Stays   Rounds |x| plain::running_product(x);
    logcumsumexp                     floats  Stays   Rounds |x| plain::running_logsumexp(x);
    argmax                           places  Removed Exact  |x| vec![plain::best(x, Ordering::Greater)];
    argmax_kept = argmax (_n: keepdim true) places One Exact |x| vec![plain::best(x, Ordering::Greater)];
    argmin                           places  Removed Exact  |x| vec![plain::best(x, Ordering::Less)];
    argmin_kept = argmin (_n: keepdim true) places One Exact |x| vec![plain::best(x, Ordering::Less)];
    argsort                          indices Stays   Exact  |x| plain::sorted(x, false);
    argsort_descending = argsort (_n: descending true) indices Stays Exact |x| plain::sorted(x, true);
}

/// If an element is zero, the products cannot be divided by it, in any order of differentiation.
#[test]
fn cumprod_of_zeros() {
    for zeros in [[0.0, 2.0, 3.0, 4.0], [2.0, 0.0, 3.0, 0.0], [0.0, 0.0, 0.0, 5.0]] {
        for (from, dim) in [("A=4", 0), ("A=2 B=2", 1), ("B=4 A=1", 0)] {
            check(&row("cumprod").case(numbers(from, zeros), from, dim));
        }
    }
}

/// Where the sum so far is infinite, there is no derivative; the gradient elsewhere is not affected.
#[test]
fn logcumsumexp_of_infinite_numbers() {
    let gradient = |data: [f64; 3]| {
        let x = TensorOptions::new().dtype(DType::F64).requires_grad(true).tensor(data).unwrap();
        x.logcumsumexp(0).unwrap().sum(..).unwrap().backward().unwrap();
        x.grad().unwrap().to_vec::<f64>().unwrap()
    };
    assert_eq!(gradient([f64::NEG_INFINITY, 0.0, f64::NEG_INFINITY]), [0.0, 2.0, 0.0]);
    assert_near(&gradient([1.0, f64::INFINITY, 2.0]), &[1.0, f64::NAN, 0.0]);
}

/// Composed ops.
pub(crate) mod composed {
    use crate::check::{numbers, values};
    use crate::plain;
    use namegrad::prelude::*;

    cases! {
        diff {
            (x: values("A=2 B=3"), before: values("A=2 B=1"), after: values("A=2 B=2"); "B") => "A=2 B=5" any, |i| {
                let joined = [before.lane(&[i[0], 0], 1), x.lane(&[i[0], 0], 1), after.lane(&[i[0], 0], 1)].concat();
                let apart = joined[i[1] + 1] - joined[i[1]];
                if x.data.iter().all(|x| *x == 0.0 || *x == 1.0) { apart.rem_euclid(2.0) } else { apart }
            }, scale 6.0;
            (x: values("A=2 B=4"); 1) => "A=2 B=3" any, |i| plain::diff(&x.lane(i, 1))[i[1]], scale 6.0;
            (x: values("A=4 B=2"); "A", 2) => "A=2 B=2" any, |i| {
                let second = plain::diff(&plain::diff(&x.lane(i, 0)))[i[0]];
                // For `bool` it is whether neighbors differ.
                if x.data.iter().all(|x| *x == 0.0 || *x == 1.0) { second.rem_euclid(2.0) } else { second }
            }, scale 12.0;
            (x: values("B=5")) => "B=4" any, |i| plain::diff(&x.data)[i[0]], scale 6.0;
            (x: values("A=2 B=2"); 1, 3) => "A=2 B=0" any, |i| 0.0;
        }
        quantile {
            (x: values("A=2 B=4"); 0.3, 1) => "A=2" floats, |i| plain::quantile(&x.lane(&[i[0], 0], 1), 0.3), scale 6.0;
            (x: values("A=4 B=2"); 1.0, "A") => "B=2" floats, |i| plain::quantile(&x.lane(&[0, i[0]], 0), 1.0), scale 6.0;
            (x: values("B=5"); 0.5) => "" floats, |i| plain::quantile(&x.data, 0.5), scale 6.0;
            (x: values("A=2 B=4"); [0.0, 0.7], "B") => "?=2 A=2" floats, |i| plain::quantile(&x.lane(&[i[1], 0], 1), [0.0, 0.7][i[0]]), scale 6.0;
            (x: numbers("4", [4.0, 1.0, 3.0, 2.0]); 0.5, "..", "lower") => "" floats, |i| 2.0;
            (x: numbers("4", [4.0, 1.0, 3.0, 2.0]); [0.5, 0.25], 0, "higher", "q") => "q=2" floats, |i| [3.0, 2.0][i[0]];
            (x: numbers("4", [4.0, 1.0, 3.0, 2.0]); 0.2, 0, "nearest") => "" floats, |i| 2.0;
            (x: numbers("4", [4.0, 1.0, 3.0, 2.0]); [0.1], 0, "midpoint") => "1" floats, |i| 1.5;
        }
        nanquantile {
            (x: numbers("A=2 B=4", [4.0, f64::NAN, 3.0, 2.0, f64::NAN, f64::NAN, 5.0, f64::NAN]); 0.75, "B") => "A=2" floats, |i| [3.5, 5.0][i[0]];
            (x: values("A=2 B=4"); [0.3, 1.0], 0) => "2 B=4" floats, |i| plain::quantile(&x.lane(&[0, i[1]], 0), [0.3, 1.0][i[0]]), scale 6.0;
            (x: numbers("4", [4.0, 1.0, f64::NAN, 2.0]); 0.4, "..", "lower") => "" floats, |i| 1.0;
        }
        msort {
            (x: values("A=3 B=2")) => "A=3 B=2" any, |i| {
                let lane = x.lane(i, 0);
                lane[plain::sorted(&lane, false)[i[0]] as usize]
            };
        }
    }

    #[test]
    fn what_quantile_and_diff_refuse() {
        let x = Tensor::new([[1.0, 5.0], [4.0, 2.0]]).unwrap().refine_names(["N", "C"]).unwrap();
        assert_eq!(x.quantile(0.5, keep(..)).unwrap().shape().to_string(), "[N=1, C=1]");
        let nan = x.add(f64::NAN).unwrap().quantile(0.5, ..).unwrap();
        assert!(nan.item::<f64>().unwrap().is_nan());
        assert_eq!(x.quantile(1.5, "C").unwrap_err().kind(), ErrorKind::Value);
        assert_eq!(x.to(DType::I64).unwrap().quantile(0.5, "C").unwrap_err().kind(), ErrorKind::DType);
        assert_eq!(x.sum(..).unwrap().diff(0).unwrap_err().kind(), ErrorKind::Shape);
    }

    /// Between two elements, a quantile rises by their difference.
    #[test]
    fn the_gradient_of_the_place_of_a_quantile() {
        let x = Tensor::new([5.0, 1.0, 3.0]).unwrap().to(DType::F64).unwrap();
        let q = Tensor::new([0.2, 0.9]).unwrap().to(DType::F64).unwrap().requiring_grad().unwrap();
        x.quantile(&q, 0).unwrap().sum(..).unwrap().backward().unwrap();
        assert_eq!(q.grad().unwrap().to_vec::<f64>().unwrap(), [4.0, 4.0]);
    }
}

#[test]
fn the_gradient_of_logcumsumexp_of_large_numbers_was_nan() -> Result<()> {
    for [a, b] in [[-1000.0, 1000.0], [1000.0, -1000.0]] {
        let x = f64s([a, b])?;
        let want = if a < b { [1.0, 1.0] } else { [2.0, 0.0] };
        assert_near(&gradient(&x, |x| x.logcumsumexp(0))?, &want);
    }
    let x = [f64s([0.5, 0.5, 800.0, -800.0])?];
    gradgradcheck(|x| x[0].logcumsumexp(0), &x)?;
    let least = f64::NEG_INFINITY;
    let halves = 1.0 / (1.0 + 1f64.exp());
    assert_near(
        &gradient(&f64s([least, 1.0, 2.0])?, |x| x.logcumsumexp(0))?,
        &[0.0, 1.0 + halves, 1.0 - halves],
    );
    Ok(())
}

/// Products past a zero have no gradient, and those before it are not lost beside products that overflow.
#[test]
fn cumprod_of_zeros_and_large_numbers() -> Result<()> {
    let product = |x: [f32; 5]| gradient32(&x, |x| x.cumprod(0));
    assert_eq!(product([1e30, 0.0, 1e30, 1e30, 1e30])?, [1.0, f32::INFINITY, 0.0, 0.0, 0.0]);
    assert_eq!(product([2.0, 0.0, 3.0, 0.0, 5.0])?, [1.0, 8.0, 0.0, 0.0, 0.0]);
    assert_eq!(product([0.0, 2.0, 3.0, 1.0, 1.0])?, [21.0, 0.0, 0.0, 0.0, 0.0]);
    Ok(())
}

/// The shares come from the elements and not from a rounded logarithm.
#[test]
fn logcumsumexp_of_large_numbers() -> Result<()> {
    let shares = |x: &[f32]| gradient32(x, |x| x.logcumsumexp(0));
    assert_eq!(shares(&[1e30, 1e30])?, [1.5, 0.5]);
    assert_eq!(shares(&[f32::NEG_INFINITY, 3.0])?, [0.0, 1.0]);
    assert!(shares(&[1.0, f32::INFINITY])?[1].is_nan());
    for sum in [|x: &Tensor| x.logcumsumexp(0)?.select(0, 1), |x: &Tensor| x.logsumexp(0)] {
        let x = Tensor::new([100.0, 100.0])?.to(DType::BF16)?;
        assert_eq!(gradient32_of(&x, sum)?, [0.5, 0.5]);
    }
    Ok(())
}

fn gradient32(x: &[f32], f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Vec<f32>> {
    gradient32_of(&Tensor::from_slice(x, [x.len()])?, f)
}

fn gradient32_of(x: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Vec<f32>> {
    let x = x.detach().requiring_grad()?;
    f(&x)?.sum(..)?.backward()?;
    x.grad().expect("it was computed").to(DType::F32)?.to_vec()
}

/// The gradients of quantiles by their places, and of derivatives by a spacing, which are arguments.
#[test]
fn numbers_of_tensors_keep_their_gradients() -> Result<()> {
    let x = Tensor::new([1.0, 4.0, 9.0, 16.0])?;
    let q = Tensor::new(0.5)?.requiring_grad()?;
    let median = x.quantile(&q, 0)?;
    assert_eq!(median.item::<f32>()?, 6.5);
    median.backward()?;
    assert_eq!(q.grad().unwrap().item::<f32>()?, 15.0); // (9 - 4) (n - 1)
    let step = Tensor::new(2.0)?.requiring_grad()?;
    let slopes = x.gradient_with(0, GradientOptions::new().spacing(&step))?;
    slopes[0].select(0, 1)?.backward()?; // 8 / (2 step)
    assert_eq!(step.grad().unwrap().item::<f32>()?, -1.0);
    Ok(())
}
