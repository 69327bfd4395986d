//! What each row of the tables is checked for.
//!
//! A row becomes [`Case`]s: an op on given inputs, with the names and the dtype that the result must have and a slow reference. [`check`] then looks at
//!
//! * the value in each of the ten dtypes, and that a dtype without the op is refused;
//! * the names, with named and with unnamed inputs;
//! * the same result for any memory order of the inputs: permuted, flipped, narrowed, stepped, expanded;
//! * in place as out of place, in a buffer that is shared, one that is not, and a view; and that a failed call leaves its tensor as it was;
//! * the gradient to second order against differences, also through views and for inputs used twice; its sizes, dtype and lack of names; and that a fused
//!   gradient agrees with its row.
//!
//! Ops by element make their cases from the row ([`pointwise`]): broadcasting, 0-d and empty inputs, and values at 0, kinks, large numbers,
//! infinities and NaN.

use crate::WITHOUT_ROW;
use crate::plain::Plain;
use half::{bf16, f16};
use namegrad::autograd::{BackwardOptions, GradCheck, grad, gradcheck, gradgradcheck, rules};
use namegrad::core::{Category, NamedTensor};
use namegrad::prelude::*;
use std::ops::Range;

/// How an op is differentiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Derivative {
    /// By a row, or recorded by hand.
    Taped,
    /// Not at all: its result has no gradient.
    Constant,
    /// There is none: it is an error on an input that requires a gradient.
    Refused,
}

fn derivative(op: &str) -> Derivative {
    match WITHOUT_ROW.iter().find(|(name, ..)| *name == op) {
        Some((_, derivative, _)) => *derivative,
        None if rules::constants().any(|name| name == op) => Derivative::Constant,
        None => Derivative::Taped,
    }
}

/// An input of a case: its sizes and names, and the numbers that it holds as floats and as integers.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    axes: Axes,
    floats: Vec<f64>,
    ints: Vec<f64>,
    role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Of the dtype that is checked.
    Value,
    /// `i64`, whatever is checked.
    Index,
    /// `bool`, whatever is checked.
    Mask,
}

/// Sizes with names.
pub(crate) type Axes = Vec<(Option<String>, usize)>;

/// `"N=2 ?=3"` or `"2 3"` as sizes with names.
pub(crate) fn axes(text: &str) -> Axes {
    let axis = |word: &str| match word.split_once('=') {
        Some(("?", size)) => (None, size.parse().unwrap()),
        Some((name, size)) => (Some(name.to_string()), size.parse().unwrap()),
        None => (None, word.parse().unwrap()),
    };
    text.split_whitespace().map(axis).collect()
}

pub(crate) fn sizes(axes: &Axes) -> Vec<usize> {
    axes.iter().map(|(_, size)| *size).collect()
}

/// Numbers that are the same in each run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A seed of its own for each text.
    pub(crate) fn of(text: &str) -> Random {
        Random(
            text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
            }),
        )
    }

    /// SplitMix64: Steele, Lea, Flood, *Fast splittable pseudorandom number generators* (2014).
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn float(&mut self, range: &Range<f64>) -> f64 {
        range.start + (range.end - range.start) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number in the range.
    fn whole(&mut self, range: &Range<f64>) -> f64 {
        let (low, high) = (range.start.ceil(), range.end.floor());
        low + (self.bits() % ((high - low).max(0.0) as u64 + 1)) as f64
    }
}

/// Numbers between -3 and 3.
pub(crate) fn values(text: &str) -> Input {
    let range = -3.0..3.0;
    let axes = axes(text);
    let numel = sizes(&axes).iter().product();
    let mut random = Random::of(text);
    let floats = (0..numel).map(|_| random.float(&range)).collect();
    let ints = (0..numel).map(|_| random.whole(&range)).collect();
    Input { axes, floats, ints, role: Role::Value }
}

/// Numbers near 1, of which even a long product is neither large nor small.
pub(crate) fn near_one(text: &str) -> Input {
    let mut input = values(text);
    input.floats.iter_mut().for_each(|x| *x = 1.0 + *x / 6000.0);
    input
}

/// These numbers.
pub(crate) fn numbers(text: &str, numbers: impl AsRef<[f64]>) -> Input {
    let numbers = numbers.as_ref().to_vec();
    Input { axes: axes(text), floats: numbers.clone(), ints: numbers, role: Role::Value }
}

/// These positions.
pub(crate) fn index<const K: usize>(text: &str, positions: [i64; K]) -> Input {
    Input { role: Role::Index, ..numbers(text, positions.map(|i| i as f64)) }
}

/// This condition, 1 being true.
pub(crate) fn mask<const K: usize>(text: &str, truth: [u8; K]) -> Input {
    Input { role: Role::Mask, ..numbers(text, truth.map(f64::from)) }
}

impl Input {
    /// The sum of the finite numbers without their signs: what rounding errors of a sum are relative to.
    pub(crate) fn magnitude(&self) -> f64 {
        self.floats.iter().map(|x| x.abs()).filter(|x| x.is_finite()).sum::<f64>().max(1.0)
    }

    /// The input with its values in `dtype`.
    fn tensor(&self, dtype: DType) -> Tensor {
        let dtype = match self.role {
            Role::Value => dtype,
            Role::Index => DType::I64,
            Role::Mask => DType::Bool,
        };
        let data: Vec<f64> = match dtype.category() {
            Category::Float => self.floats.clone(),
            Category::Integer if dtype == DType::U8 => self.ints.iter().map(|x| x.abs()).collect(),
            Category::Integer => self.ints.clone(),
            Category::Bool => self.ints.iter().map(|x| x % 2.0).collect(),
        };
        let shape: Vec<(Option<&str>, usize)> =
            self.axes.iter().map(|(name, size)| (name.as_deref(), *size)).collect();
        Tensor::from_slice(&data, shape).unwrap().to(dtype).unwrap()
    }
}

/// The numbers of a tensor, as they are after rounding to its dtype.
pub(crate) fn plain(x: &Tensor) -> Plain {
    Plain { sizes: x.sizes().to_vec(), data: x.to_vec::<f64>().unwrap() }
}

/// An op on tensors.
pub(crate) type Call = Box<dyn Fn(&[Tensor]) -> Result<Tensor>>;

/// An in-place op on its first tensor, with the others.
type InPlace = fn(&mut Tensor, &[Tensor]) -> Result<()>;
/// The in-place form of an op on a tensor and others.
pub(crate) type CallInPlace = Box<dyn Fn(&mut Tensor, &[Tensor]) -> Result<()>>;

/// A slow, plain form of an op.
pub(crate) type Reference = Box<dyn Fn(&[Plain]) -> Plain>;

/// An op on given inputs.
pub(crate) struct Case {
    pub(crate) op: &'static str,
    pub(crate) call: Call,
    pub(crate) in_place: Option<CallInPlace>,
    pub(crate) inputs: Vec<Input>,
    /// The sizes and names of the result.
    pub(crate) result: Axes,
    /// The dtype of the result, `None` where the op refuses the dtype.
    pub(crate) dtype: fn(DType) -> Option<DType>,
    pub(crate) reference: Reference,
    /// The size of the terms that may cancel in the result: rounding errors are relative to it, too. `None`: the result does not depend on
    /// the memory order in any bit.
    pub(crate) scale: Option<f64>,
    /// May the in-place form change the sizes?
    pub(crate) reshapes: bool,
}

/// A result of the same dtype, whatever that is.
pub(crate) fn any(dtype: DType) -> Option<DType> {
    Some(dtype)
}

/// The same dtype, but not bool.
pub(crate) fn numeric(dtype: DType) -> Option<DType> {
    (dtype != DType::Bool).then_some(dtype)
}

/// Floats only.
pub(crate) fn floats(dtype: DType) -> Option<DType> {
    dtype.is_floating_point().then_some(dtype)
}

/// Floats, which others become.
pub(crate) fn to_float(dtype: DType) -> Option<DType> {
    Some(if dtype.is_floating_point() { dtype } else { DType::F32 })
}

/// `f64`.
pub(crate) fn doubles(_: DType) -> Option<DType> {
    Some(DType::F64)
}

/// Floats, or `i64` for all others.
pub(crate) fn sums(dtype: DType) -> Option<DType> {
    Some(if dtype.is_floating_point() { dtype } else { DType::I64 })
}

/// Floats, or `f64` for all others.
pub(crate) fn weighted(dtype: DType) -> Option<DType> {
    Some(if dtype.is_floating_point() { dtype } else { DType::F64 })
}

/// `i64`.
pub(crate) fn indices(_: DType) -> Option<DType> {
    Some(DType::I64)
}

/// `i64`, of what has an order.
pub(crate) fn places(dtype: DType) -> Option<DType> {
    (dtype != DType::Bool).then_some(DType::I64)
}

/// `bool`.
pub(crate) fn truth(_: DType) -> Option<DType> {
    Some(DType::Bool)
}

/// `bool`, but of `u8` itself.
pub(crate) fn truth_or_byte(dtype: DType) -> Option<DType> {
    Some(if dtype == DType::U8 { DType::U8 } else { DType::Bool })
}

/// The relative error allowed: the arithmetic is right to a few units in the last place, and half types are rounded once.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-14,
        DType::F32 => 1e-6,
        DType::F16 => 2.0f64.powi(-10),
        DType::BF16 => 2.0f64.powi(-7),
        _ => 0.0,
    }
}

/// The nearest number of that dtype.
fn rounded(x: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F16 => f16::from_f64(x).to_f64(),
        DType::BF16 => bf16::from_f64(x).to_f64(),
        DType::F32 => f64::from(x as f32),
        DType::Bool => f64::from(x != 0.0),
        DType::U8 => f64::from(x as i64 as u8),
        DType::I8 => f64::from(x as i64 as i8),
        DType::I16 | DType::I32 | DType::I64 => x.trunc(),
        DType::F64 => x,
    }
}

/// Below this, numbers of a dtype have lost digits.
fn smallest(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::MIN_POSITIVE,
        DType::F16 => f16::MIN_POSITIVE_SUBNORMAL.to_f64(),
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

/// The smallest numbers of a float dtype that are not rounded to zero.
#[track_caller]
pub(crate) fn assert_close(got: &Tensor, want: &Plain, scale: f64, what: &dyn Fn() -> String) {
    assert_eq!(got.sizes(), want.sizes, "sizes of {}", what());
    let dtype = got.dtype();
    let tolerance = tolerance(dtype);
    for (at, (got, exact)) in got.to_vec::<f64>().unwrap().into_iter().zip(&want.data).enumerate() {
        let want = rounded(*exact, dtype);
        let allowed = tolerance * (want.abs() + scale) + if tolerance > 0.0 { smallest(dtype) } else { 0.0 };
        let equal = got == want || got.is_nan() && want.is_nan() || (got - want).abs() <= allowed;
        assert!(equal, "{}: element {at} is {got:e}, the reference {want:e}", what());
    }
}

/// The same sizes, names, dtype and bits, any NaN being equal to any other.
pub(crate) fn identical(a: &Tensor, b: &Tensor) -> bool {
    let bits = |x: &Tensor| -> Vec<u64> {
        if x.dtype().is_floating_point() {
            let bits = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
            x.to_vec::<f64>().unwrap().into_iter().map(bits).collect()
        } else {
            x.to_vec::<i64>().unwrap().into_iter().map(|x| x as u64).collect()
        }
    };
    a.dtype() == b.dtype() && a.extents() == b.extents() && bits(a) == bits(b)
}

/// The dims from the last to the first.
fn reversed(x: &Tensor) -> Vec<usize> {
    (0..x.ndim()).rev().collect()
}

/// A tensor with a buffer of its own.
fn own(x: &Tensor) -> Tensor {
    Tensor::constant(x.value().deep_clone().unwrap())
}

/// The same tensor in other memory orders.
pub(crate) fn orders(x: &Tensor) -> Vec<(&'static str, Tensor)> {
    let made = || -> Result<_> {
        let permuted = x.permute(reversed(x))?.contiguous()?.permute(reversed(x))?;
        let flipped = x.flip(..)?.contiguous()?.flip(..)?;
        let mut narrowed = x.clone();
        for dim in 0..x.ndim() {
            let padding = narrowed.narrow(dim, 0, narrowed.sizes()[dim].min(1))?;
            let before = padding.sizes()[dim];
            narrowed = Tensor::cat(&[&padding, &narrowed, &padding], dim)?;
            narrowed = narrowed.narrow(dim, before, x.sizes()[dim])?;
        }
        let pairs = Tensor::stack(&[x, &x.zeros_like()?], x.ndim() as isize, None)?;
        let stepped = pairs.select(x.ndim(), 0)?;
        Ok(vec![("permuted", permuted), ("flipped", flipped), ("narrowed", narrowed), ("stepped", stepped)])
    };
    made().unwrap()
}

/// Tighter than PyTorch's, which lets a factor of 1.0005 pass.
const GRADCHECK: GradCheck = GradCheck { eps: 1e-5, atol: 1e-6, rtol: 1e-5 };

/// Checks a case for everything.
pub(crate) fn check(case: &Case) {
    for dtype in DType::ALL {
        case.value(dtype);
        case.in_place(dtype);
    }
    case.no_names();
    for dtype in [DType::F64, DType::F32, DType::I32, DType::Bool] {
        case.orders(dtype);
    }
    case.gradient();
}

impl Case {
    fn tensors(&self, dtype: DType) -> Vec<Tensor> {
        self.inputs.iter().map(|input| input.tensor(dtype)).collect()
    }

    fn describe(&self, dtype: DType) -> String {
        let inputs: Vec<String> = self.tensors(dtype).iter().map(|x| format!("{x:?}")).collect();
        format!("{} of {dtype} on {}", self.op, inputs.join(" and "))
    }

    fn reference_of(&self, inputs: &[Tensor]) -> Plain {
        (self.reference)(&inputs.iter().map(plain).collect::<Vec<_>>())
    }

    /// Is the result near the reference, and of the right dtype and names?
    pub(crate) fn value(&self, dtype: DType) {
        let inputs = self.tensors(dtype);
        let result = (self.call)(&inputs);
        let what = || self.describe(dtype);
        match ((self.dtype)(dtype), result) {
            (Some(wanted), Ok(result)) => {
                assert_eq!(result.dtype(), wanted, "dtype of {}", what());
                assert_close(&result, &self.reference_of(&inputs), self.scale.unwrap_or(0.0), &what);
                let names = self.result.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
                let found: Vec<_> = (0..result.ndim())
                    .map(|dim| result.name(dim).map(|name| name.as_str().to_string()))
                    .collect();
                assert_eq!(found, names, "names of {}", what());
            }
            (None, Err(error)) => assert_eq!(error.kind(), ErrorKind::DType, "{}: {error}", what()),
            (Some(_), Err(error)) => panic!("{}: {error}", what()),
            (None, Ok(result)) => panic!("{} should be refused and gives {result}", what()),
        }
    }

    /// Inputs without names give a result without names, of the same value.
    fn no_names(&self) {
        let Some(dtype) = [DType::F64, DType::I64].into_iter().find(|dtype| (self.dtype)(*dtype).is_some())
        else {
            return;
        };
        let inputs = self.tensors(dtype);
        let unnamed: Vec<Tensor> = inputs.iter().map(|x| x.rename(None).unwrap()).collect();
        match (self.call)(&unnamed) {
            Ok(result) => {
                let named = (self.call)(&inputs).unwrap().rename(None).unwrap();
                assert!(identical(&result, &named), "{} without names", self.describe(dtype));
            }
            // The call speaks of dims by name.
            Err(error) => {
                let kinds = [ErrorKind::NameNotFound, ErrorKind::UnnamedNotAllowed];
                assert!(kinds.contains(&error.kind()), "{} without names: {error}", self.describe(dtype));
            }
        }
    }

    /// Does the result depend on how the inputs lie in memory?
    pub(crate) fn orders(&self, dtype: DType) {
        if (self.dtype)(dtype).is_none() {
            return;
        }
        let inputs = self.tensors(dtype);
        let want = self.reference_of(&inputs);
        let dense = (self.call)(&inputs).unwrap();
        let same = |inputs: &[Tensor], order: &str| {
            let what = || format!("{} with an input {order}", self.describe(dtype));
            let got = (self.call)(inputs).unwrap_or_else(|error| panic!("{}: {error}", what()));
            match self.scale {
                None => assert!(identical(&got, &dense), "{}: {got} and not {dense}", what()),
                Some(scale) => assert_close(&got, &want, scale, &what),
            }
        };
        for number in 0..inputs.len() {
            for (order, x) in orders(&inputs[number]) {
                let mut inputs = inputs.clone();
                inputs[number] = x;
                same(&inputs, order);
            }
            for dim in (0..inputs[number].ndim()).filter(|dim| inputs[number].sizes()[*dim] > 1) {
                let mut spread = inputs.clone();
                let one = inputs[number].narrow(dim, 0, 1).unwrap();
                spread[number] = one.expand(inputs[number].sizes()).unwrap();
                let mut dense = spread.clone();
                dense[number] = own(&spread[number]);
                let (got, want) = ((self.call)(&spread).unwrap(), (self.call)(&dense).unwrap());
                let what =
                    || format!("{} with input {number} expanded along dim {dim}", self.describe(dtype));
                match self.scale {
                    None => assert!(identical(&got, &want), "{}: {got} and not {want}", what()),
                    Some(scale) => assert_close(&got, &plain(&want), scale, &what),
                }
            }
        }
    }

    /// In place gives what the op gives, or fails and changes nothing; and it never changes another tensor.
    pub(crate) fn in_place(&self, dtype: DType) {
        let Some(in_place) = &self.in_place else { return };
        let inputs = self.tensors(dtype);
        let result = (self.call)(&inputs);
        let x = &inputs[0];
        let fits = |y: &Tensor| y.dtype().can_cast(dtype) && (self.reshapes || y.sizes() == x.sizes());
        let wanted = result.ok().filter(fits).map(|y| y.to(dtype).unwrap());
        let holders = [("a buffer of its own", None), ("a shared buffer", Some(())), ("a view", None)];
        for (place, shared) in holders {
            let what = || format!("in place in {place}: {}", self.describe(dtype));
            let mut target = if place == "a view" { orders(x).swap_remove(0).1 } else { own(x) };
            let other = shared.map(|()| target.clone());
            match (in_place(&mut target, &inputs[1..]), &wanted) {
                (Ok(()), Some(wanted)) => match self.scale {
                    None => assert!(identical(&target, wanted), "{}: {target} and not {wanted}", what()),
                    Some(scale) => {
                        assert_eq!(target.extents(), wanted.extents(), "{}", what());
                        assert_close(&target, &plain(wanted), scale, &what);
                    }
                },
                (Err(error), None) => {
                    assert!(identical(&target, x), "a failed call changed its tensor {}", what());
                    assert!(
                        [ErrorKind::DType, ErrorKind::Shape].contains(&error.kind()),
                        "{}: {error}",
                        what()
                    );
                }
                (Ok(()), None) => panic!("{} should fail and gives {target}", what()),
                (Err(error), Some(_)) => panic!("{}: {error}", what()),
            }
            if let Some(other) = other {
                assert!(identical(&other, x), "another tensor was changed {}", what());
            }
            let rest = self.tensors(dtype);
            assert!(
                inputs.iter().zip(&rest).all(|(a, b)| identical(a, b)),
                "an input was changed {}",
                what()
            );
        }
    }

    /// The derivative to second order against differences, or what there is in its place.
    pub(crate) fn gradient(&self) {
        if (self.dtype)(DType::F64).is_none() {
            return;
        }
        let inputs = self.tensors(DType::F64);
        let leaves: Vec<usize> = (0..inputs.len()).filter(|i| self.inputs[*i].role == Role::Value).collect();
        let derivative = derivative(self.op);
        if derivative != Derivative::Taped {
            return self.no_gradient(derivative, &inputs, &leaves);
        }
        if self.reference_of(&inputs).data.iter().any(|y| !y.is_finite()) {
            return; // there is no difference to compare with
        }
        let given: Vec<Tensor> = leaves.iter().map(|i| inputs[*i].clone()).collect();
        // All inputs of the op, of which some come from outside.
        let all = |given: &[Tensor]| {
            let mut inputs = inputs.clone();
            leaves.iter().zip(given).for_each(|(i, x)| inputs[*i] = x.clone());
            inputs
        };
        let what = |how: &str| format!("{how}{}", self.describe(DType::F64));
        let plainly = |given: &[Tensor]| (self.call)(&all(given));
        gradcheck(plainly, &given, GRADCHECK).unwrap_or_else(|error| panic!("{}: {error}", what("")));
        gradgradcheck(plainly, &given, GRADCHECK)
            .unwrap_or_else(|error| panic!("{}: {error}", what("second order of ")));

        let reordered: Vec<Tensor> = given.iter().map(|x| x.permute(reversed(x)).unwrap()).collect();
        let permuted = |given: &[Tensor]| {
            let given: Result<Vec<Tensor>> = given.iter().map(|x| x.permute(reversed(x))).collect();
            (self.call)(&all(&given?))
        };
        gradcheck(permuted, &reordered, GRADCHECK)
            .unwrap_or_else(|error| panic!("{}: {error}", what("permuted inputs of ")));

        let twice = |given: &[Tensor]| {
            let (y, z) = ((self.call)(&all(given))?, (self.call)(&all(given))?);
            y.mul(&z)
        };
        gradcheck(twice, &given, GRADCHECK)
            .unwrap_or_else(|error| panic!("{}: {error}", what("inputs used twice by ")));

        if let Some(in_place) = &self.in_place
            && in_place(&mut own(&inputs[0]), &inputs[1..]).is_ok()
        {
            let changed = |given: &[Tensor]| {
                let inputs = all(given);
                let mut y = inputs[0].mul(1.0)?;
                in_place(&mut y, &inputs[1..])?;
                Ok(y)
            };
            gradcheck(changed, &given, GRADCHECK)
                .unwrap_or_else(|error| panic!("{}: {error}", what("in place: ")));
        }
        for dtype in [DType::F64, DType::F32, DType::F16] {
            self.gradients_fit(dtype, &leaves);
            self.fused_agrees(dtype, &leaves);
        }
    }

    /// Gradients have the sizes and the dtype of their tensors, and no names.
    fn gradients_fit(&self, dtype: DType, leaves: &[usize]) {
        let mut inputs = self.tensors(dtype);
        leaves.iter().for_each(|i| inputs[*i].set_requires_grad(true).unwrap());
        let what = || format!("backward of {}", self.describe(dtype));
        let y = (self.call)(&inputs).unwrap();
        assert!(y.requires_grad(), "{} is cut", what());
        y.sum(..).unwrap().backward().unwrap_or_else(|error| panic!("{}: {error}", what()));
        for i in leaves {
            let Some(grad) = inputs[*i].grad() else { panic!("input {i} has no gradient in the {}", what()) };
            assert_eq!(grad.sizes(), inputs[*i].sizes(), "{}", what());
            assert_eq!(grad.dtype(), dtype, "{}", what());
            assert!(!grad.has_names(), "{}", what());
        }
    }

    /// What runs when the backward pass is not recorded gives what its row says.
    fn fused_agrees(&self, dtype: DType, leaves: &[usize]) {
        let mut inputs = self.tensors(dtype);
        leaves.iter().for_each(|i| inputs[*i].set_requires_grad(true).unwrap());
        let given: Vec<&Tensor> = leaves.iter().map(|i| &inputs[*i]).collect();
        let y = (self.call)(&inputs).unwrap();
        let weights =
            Plain::from_fn(y.sizes(), |i| 1.0 + 0.5 * (1.0 + crate::plain::ravel(i, y.sizes()) as f64).sin());
        let weights = Tensor::from_slice(&weights.data, y.sizes()).unwrap();
        let options = |create_graph| BackwardOptions {
            retain_graph: true,
            create_graph,
            allow_unused: false,
            named: false,
        };
        let walk = |create_graph| grad(&[&y], &given, &[Some(&weights)], options(create_graph)).unwrap();
        for (fused, row) in walk(false).into_iter().zip(walk(true)) {
            let what = || format!("fused gradient of {}", self.describe(dtype));
            let want = plain(&row.unwrap());
            let size = want.data.iter().fold(1.0, |size: f64, x| size.max(x.abs()));
            assert_close(&fused.unwrap(), &want, 4.0 * size, &what);
        }
    }

    /// The result of an op without derivative requires no gradient, or there is an error.
    fn no_gradient(&self, derivative: Derivative, inputs: &[Tensor], leaves: &[usize]) {
        let mut inputs = inputs.to_vec();
        leaves.iter().for_each(|i| inputs[*i].set_requires_grad(true).unwrap());
        match ((self.call)(&inputs), derivative) {
            (Ok(y), Derivative::Constant) => assert!(!y.requires_grad(), "{}", self.op),
            (Err(error), Derivative::Refused) => assert_eq!(error.kind(), ErrorKind::Autograd, "{error}"),
            (result, _) => panic!("{} is {derivative:?} and gives {result:?}", self.op),
        }
    }
}

/// A row of a table of ops by element.
pub(crate) struct Pointwise {
    pub(crate) op: &'static str,
    pub(crate) call: fn(&[Tensor]) -> Result<Tensor>,
    pub(crate) in_place: Option<InPlace>,
    /// `float`, `int`, `bool`: the dtypes on which it has a meaning of its own; `only`: others do not become floats, `alike`: nor does one dtype another.
    /// `signed`: bool is refused beside other dtypes, too. `counts`: bool becomes `i64`. `bits`: bool as one bit. `test`: the result is bool.
    pub(crate) classes: &'static [&'static str],
    /// Where the numbers are taken from.
    pub(crate) ranges: &'static [Range<f64>],
    pub(crate) reference: fn(&[f64]) -> f64,
    /// Zero where there is no derivative.
    pub(crate) kinks: fn(&[f64]) -> f64,
    pub(crate) scale: f64,
}

/// Numbers at which functions are special, and some between them.
const SPECIAL: [f64; 22] = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.0,
    -1.0,
    1.5,
    -1.5,
    2.0,
    -2.0,
    2.5,
    -2.5,
    7.0,
    -7.0,
    1e-30,
    -1e-30,
    1e4,
    1e30,
    -1e30,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// Sizes and names of inputs of an op by element, and of the result.
fn pointwise_shapes(arity: usize) -> Vec<(Vec<&'static str>, &'static str)> {
    match arity {
        1 => vec![
            (vec!["N=2 C=3"], "N=2 C=3"),
            (vec!["?=2 C=1 ?=2"], "?=2 C=1 ?=2"),
            (vec![""], ""),
            (vec!["N=0 C=3"], "N=0 C=3"),
            (vec!["1"], "1"),
        ],
        2 => vec![
            (vec!["N=2 C=3", "N=2 C=3"], "N=2 C=3"),
            (vec!["N=2 C=3", "C=3"], "N=2 C=3"),
            (vec!["3", "N=2 C=1"], "N=2 C=3"),
            (vec!["", "N=2"], "N=2"),
            (vec!["N=2", ""], "N=2"),
            (vec!["", ""], ""),
            (vec!["N=0 C=3", "C=3"], "N=0 C=3"),
            (vec!["N=0 C=1", "?=1 C=3"], "N=0 C=3"),
            (vec!["N=2 ?=1", "?=1 C=3"], "N=2 C=3"),
            (vec!["A=2 B=1 C=2", "B=2 1"], "A=2 B=2 C=2"),
            (vec!["2 2", "2"], "2 2"),
        ],
        _ => vec![
            (vec!["N=2 C=3", "N=2 C=3", "N=2 C=3"], "N=2 C=3"),
            (vec!["N=2 C=3", "3", ""], "N=2 C=3"),
            (vec!["C=2", "N=2 ?=1", "1"], "N=2 C=2"),
            (vec!["", "N=2", ""], "N=2"),
            (vec!["N=0 C=3", "", "C=3"], "N=0 C=3"),
        ],
    }
}

/// Checks a row of ops by element.
pub(crate) fn pointwise(row: &'static Pointwise) {
    for (shapes, result) in pointwise_shapes(row.ranges.len()) {
        let inputs = row.draw(&shapes);
        check(&row.case(inputs, axes(result)));
    }
    row.special_values();
    row.one_input_everywhere();
    row.mixed_dtypes();
    row.reuses_its_buffer();
}

impl Pointwise {
    fn has(&self, class: &str) -> bool {
        self.classes.contains(&class)
    }

    fn case(&'static self, inputs: Vec<Input>, result: Axes) -> Case {
        let sizes = sizes(&result);
        let evaluate = move |inputs: &[Plain]| {
            Plain::from_fn(&sizes, |i| {
                let numbers: Vec<f64> = inputs.iter().map(|x| x.broadcast(i)).collect();
                (self.reference)(&numbers)
            })
        };
        let bits = move |inputs: &[Plain]| {
            let mut result = evaluate(inputs);
            let bools =
                self.has("bits") && inputs.iter().flat_map(|x| &x.data).all(|x| *x == 0.0 || *x == 1.0);
            // Of a number in two's complement, the last bit is that of a bool.
            result.data.iter_mut().filter(|_| bools).for_each(|x| *x = f64::from(*x as i64 as u8 & 1));
            result
        };
        Case {
            op: self.op,
            call: Box::new(self.call),
            in_place: self.in_place.map(|call| Box::new(call) as CallInPlace),
            inputs,
            result,
            dtype: self.result_dtype(),
            reference: Box::new(bits),
            scale: (self.scale > 0.0).then_some(self.scale),
            reshapes: false,
        }
    }

    fn result_dtype(&self) -> fn(DType) -> Option<DType> {
        match self.classes {
            ["float"] => to_float,
            ["float", "only" | "alike"] => floats,
            ["float", "int", "counts"] => |dtype| Some(if dtype == DType::Bool { DType::I64 } else { dtype }),
            ["float", "int", "signed"] => numeric,
            ["float", "int"] => numeric,
            ["float", "int", "bool"] => any,
            ["float", "int", "bool", "test"] => truth,
            ["int"] => |dtype| (dtype.category() == Category::Integer).then_some(dtype),
            ["int", "bool" | "bits"] => |dtype| (!dtype.is_floating_point()).then_some(dtype),
            other => panic!("{}: a combination of classes that no op had before: {other:?}", self.op),
        }
    }

    /// Random numbers away from kinks, and whole numbers at which the reference is finite.
    fn draw(&self, shapes: &[&str]) -> Vec<Input> {
        let mut random = Random::of(&format!("{} {shapes:?}", self.op));
        let axes: Vec<Axes> = shapes.iter().map(|text| axes(text)).collect();
        let ndim = axes.iter().map(Vec::len).max().unwrap();
        let broadcast: Vec<usize> = (1..=ndim)
            .rev()
            .map(|k| {
                axes.iter()
                    .filter(|x| x.len() >= k)
                    .map(|x| x[x.len() - k].1)
                    .find(|size| *size != 1)
                    .unwrap_or(1)
            })
            .collect();
        let mut find =
            |draw: fn(&mut Random, &Range<f64>) -> f64, good: &dyn Fn(&[f64]) -> bool| -> Vec<Vec<f64>> {
                for _ in 0..100_000 {
                    let set: Vec<Plain> = axes
                        .iter()
                        .zip(self.ranges)
                        .map(|(axes, range)| Plain::from_fn(&sizes(axes), |_| draw(&mut random, range)))
                        .collect();
                    let mut all_good = true;
                    Plain::from_fn(&broadcast, |i| {
                        all_good &= good(&set.iter().map(|x| x.broadcast(i)).collect::<Vec<f64>>());
                        0.0
                    });
                    if all_good {
                        return set.into_iter().map(|x| x.data).collect();
                    }
                }
                panic!("{}: no numbers in {:?} away from the kinks", self.op, self.ranges)
            };
        let floats = find(Random::float, &|x| (self.kinks)(x).abs() > 0.02);
        // Unsigned numbers and bools are made of the same ones, so the reference must be finite there as well.
        let ints = find(Random::whole, &|x| {
            if !self.has("int") {
                return true; // they become floats
            }
            let unsigned: Vec<f64> = x.iter().map(|x| x.abs()).collect();
            (self.reference)(x).is_finite() && (self.reference)(&unsigned).is_finite()
        });
        let parts = axes.into_iter().zip(floats).zip(ints);
        parts.map(|((axes, floats), ints)| Input { axes, floats, ints, role: Role::Value }).collect()
    }

    /// At 0, kinks, large numbers, infinities and NaN the value is that of the reference, in every float dtype.
    fn special_values(&'static self) {
        let all = (0..self.ranges.len()).fold(vec![vec![]], |sets: Vec<Vec<f64>>, _| {
            let longer = |set: Vec<f64>| SPECIAL.map(|x| [&set[..], &[x]].concat());
            sets.into_iter().flat_map(longer).collect()
        });
        let text = all.len().to_string();
        let inputs = (0..self.ranges.len())
            .map(|k| numbers(&text, all.iter().map(|set| set[k]).collect::<Vec<f64>>()))
            .collect();
        let case = self.case(inputs, axes(&text));
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            if (case.dtype)(dtype).is_none() {
                continue;
            }
            let inputs = case.tensors(dtype);
            let result = (case.call)(&inputs).unwrap();
            let (got, want) = (result.to_vec::<f64>().unwrap(), case.reference_of(&inputs));
            for (at, got) in got.into_iter().enumerate() {
                let what = || {
                    let numbers: Vec<f64> = inputs.iter().map(|x| plain(x).data[at]).collect();
                    format!("{} of {dtype} on {numbers:?}", self.op)
                };
                let got = Tensor::constant(NamedTensor::from_slice(&[got], [1]).unwrap())
                    .to(result.dtype())
                    .unwrap();
                assert_close(&got, &Plain { sizes: vec![1], data: vec![want.data[at]] }, self.scale, &what);
            }
        }
    }

    /// The same tensor as every input.
    fn one_input_everywhere(&'static self) {
        if self.ranges.len() == 1 {
            return;
        }
        let low = self.ranges.iter().map(|range| range.start).fold(f64::NEG_INFINITY, f64::max);
        let high = self.ranges.iter().map(|range| range.end).fold(f64::INFINITY, f64::min);
        let mut random = Random::of(self.op);
        let data: Vec<f64> = (0..4).map(|_| random.float(&(low..high))).collect();
        let smooth = data.iter().all(|x| (self.kinks)(&vec![*x; self.ranges.len()]).abs() > 0.02);
        let case = self.case(vec![numbers("N=2 ?=2", data)], axes("N=2 ?=2"));
        let arity = self.ranges.len();
        let everywhere = move |x: &[Tensor]| (self.call)(&vec![x[0].clone(); arity]);
        let reference = move |x: &[Plain]| (case.reference)(&vec![x[0].clone(); arity]);
        let in_place = self.in_place.map(|call| {
            Box::new(move |x: &mut Tensor, _: &[Tensor]| {
                let same = x.clone();
                call(x, &vec![same; arity - 1])
            }) as CallInPlace
        });
        let case = Case { call: Box::new(everywhere), reference: Box::new(reference), in_place, ..case };
        for dtype in [DType::F64, DType::F32] {
            if (case.dtype)(dtype).is_some() {
                case.value(dtype);
                case.in_place(dtype);
            }
        }
        if smooth {
            case.gradient();
        }
    }

    /// Inputs of different dtypes promote.
    fn mixed_dtypes(&'static self) {
        if self.ranges.len() == 1 {
            return;
        }
        let inputs = self.draw(&vec!["2"; self.ranges.len()]);
        let case = self.case(inputs, axes("2"));
        for first in DType::ALL {
            for second in DType::ALL {
                let promoted = first.promote(second);
                let whole = !first.is_floating_point() || !second.is_floating_point();
                let input = |(number, input): (usize, &Input)| {
                    let input = if whole {
                        Input { floats: input.ints.clone(), ..input.clone() }
                    } else {
                        input.clone()
                    };
                    input.tensor(if number == 0 { first } else { second })
                };
                let inputs: Vec<Tensor> = case.inputs.iter().enumerate().map(input).collect();
                let what = || format!("{} of {first} and {second} on {inputs:?}", self.op);
                let cast: Vec<Tensor> = inputs.iter().map(|x| x.to(promoted).unwrap()).collect();
                // Bools among the inputs can be zero, by which integers are not divided.
                let divides_by_zero = promoted.category() == Category::Integer && !self.is_finite_on(&cast);
                let refused = self.has("signed") && [first, second].contains(&DType::Bool)
                    || self.has("alike") && first != second;
                match ((case.dtype)(promoted).filter(|_| !refused), (case.call)(&inputs)) {
                    _ if divides_by_zero => {}
                    (Some(dtype), Ok(result)) => {
                        assert_eq!(result.dtype(), dtype, "{}", what());
                        assert_close(&result, &case.reference_of(&cast), self.scale, &what);
                    }
                    (None, Err(error)) => assert_eq!(error.kind(), ErrorKind::DType, "{}: {error}", what()),
                    (_, result) => panic!("{} gives {result:?}", what()),
                }
            }
        }
    }

    fn is_finite_on(&'static self, inputs: &[Tensor]) -> bool {
        let data: Vec<Vec<f64>> = inputs.iter().map(|x| plain(x).data).collect();
        (0..data[0].len())
            .all(|i| (self.reference)(&data.iter().map(|x| x[i]).collect::<Vec<f64>>()).is_finite())
    }

    /// In place nothing is allocated where nobody else holds the buffer.
    fn reuses_its_buffer(&'static self) {
        let Some(in_place) = self.in_place else { return };
        let dtype = if self.has("float") { DType::F64 } else { DType::I64 };
        let inputs: Vec<Tensor> =
            self.draw(&vec!["N=2 C=3"; self.ranges.len()]).iter().map(|x| x.tensor(dtype)).collect();
        let mut x = own(&inputs[0]);
        let before = x.value().data_ptr();
        in_place(&mut x, &inputs[1..]).unwrap();
        assert_eq!(x.value().data_ptr(), before, "{} in place took another buffer", self.op);
    }
}

/// Rows of ops by element, a test for each:
///
/// ```ignore
/// maximum (x: -3.0..3.0, y: -3.0..3.0) [float int bool] larger(x, y), kinks x - y;
/// ```
/// The op with its in-place form if it has one; for each input where its numbers come from; the classes of dtypes; the reference; what is zero where there is no
/// derivative; the `scale` to which rounding errors are relative besides the result.
macro_rules! pointwise {
    ($(
        $name:ident $($name_:ident)? ($x:ident: $range:expr $(, $more:ident: $ranges:expr)*) [$($class:ident)*] $reference:expr
        $(, kinks $kinks:expr)? $(, scale $scale:expr)?;
    )*) => {
        /// The ops of this table.
        pub(crate) const OPS: &[$crate::Tested] = &[$((stringify!($name), in_place!(name $($name_)?))),*];
        $(
            #[test]
            #[allow(unused_variables)] // a kink may depend on some of the inputs only
            fn $name() {
                static ROW: $crate::check::Pointwise = $crate::check::Pointwise {
                    op: stringify!($name),
                    call: |inputs| {
                        let [$x $(, $more)*] = inputs else { unreachable!() };
                        $x.$name($($more),*)
                    },
                    in_place: in_place!(call [$($name_)?] $($more)*),
                    classes: &[$(stringify!($class)),*],
                    ranges: &[$range $(, $ranges)*],
                    reference: |numbers| {
                        let [$x $(, $more)*] = *numbers else { unreachable!() };
                        $reference
                    },
                    kinks: |numbers| {
                        let [$x $(, $more)*] = *numbers else { unreachable!() };
                        [$($kinks,)? f64::INFINITY][0]
                    },
                    scale: [$($scale,)? 0.0][0],
                };
                $crate::check::pointwise(&ROW);
            }
        )*
    };
}

/// The in-place form of a row, if there is one: its name, or the call.
macro_rules! in_place {
    (name) => { None };
    (name $name_:ident) => { Some(stringify!($name_)) };
    (call [] $($more:ident)*) => { None };
    (call [$name_:ident] $($more:ident)*) => {
        Some(|x, others| {
            let [$($more),*] = others else { unreachable!() };
            x.$name_($($more),*).map(drop)
        })
    };
}

/// Rows of all other ops, a test for each, with a case or more:
///
/// ```ignore
/// transpose transpose_ { (x: values("N=2 C=3 H=4"); 0, 2) => "H=4 C=3 N=2" any, |i| x.at(&[i[2], i[1], i[0]]); }
/// ```
/// The inputs and the other arguments; the result with its names, and how its dtype follows from that of the values; the element of the result at index `i`; the
/// `scale` of rounding errors where there are any.
macro_rules! cases {
    ($($name:ident $($name_:ident)? { $($cases:tt)+ })*) => {
        /// The ops of this table.
        pub(crate) const OPS: &[$crate::Tested] = &[$((stringify!($name), in_place!(name $($name_)?))),*];
        $(
            #[test]
            #[allow(unused_variables)] // a reference may not need all inputs
            fn $name() {
                cases!(@ $name [$($name_)?] $($cases)+);
            }
        )*
    };
    (@ $name:ident $name_:tt
        $(($x:ident: $input:expr $(, $more:ident: $inputs:expr)* $(; $($arg:expr),*)?)
            => $result:literal $dtype:ident, |$i:ident| $element:expr $(, scale $scale:expr)?;)+
    ) => {
        $($crate::check::check(&case! {
            $name $name_ [$x: $input $(, $more: $inputs)*] [$($($arg),*)?]
            $result, $dtype, |$i| $element, [$($scale)?]
        });)+
    };
}

/// One case of a row.
macro_rules! case {
    ($name:ident [$($name_:ident)?] [$x:ident: $input:expr $(, $more:ident: $inputs:expr)*] $args:tt
        $result:literal, $dtype:ident, |$i:ident| $element:expr, [$($scale:expr)?]) => {{
        let result = $crate::check::axes($result);
        let sizes = $crate::check::sizes(&result);
        $crate::check::Case {
            op: stringify!($name),
            call: Box::new(|inputs| {
                let [$x $(, $more)*] = inputs else { unreachable!() };
                case!(method $x $name [$($more),*] $args)
            }),
            in_place: case!(in_place [$($name_)?] [$($more),*] $args),
            inputs: vec![$input $(, $inputs)*],
            result,
            dtype: $crate::check::$dtype,
            reference: Box::new(move |inputs| {
                let [$x $(, $more)*] = inputs else { unreachable!() };
                $crate::plain::Plain::from_fn(&sizes, |$i: &[usize]| $element)
            }),
            scale: [$(Some($scale),)? None][0],
            reshapes: true,
        }
    }};
    (method $x:ident $name:ident [$($more:ident),*] [$($arg:expr),*]) => { $x.$name($($more,)* $($arg),*) };
    (in_place [] $more:tt $args:tt) => { None };
    (in_place [$name_:ident] [$($more:ident),*] $args:tt) => {
        Some(Box::new(|x: &mut namegrad::prelude::Tensor, others: &[namegrad::prelude::Tensor]| {
            let [$($more),*] = others else { unreachable!() };
            case!(method x $name_ [$($more),*] $args).map(drop)
        }) as $crate::check::CallInPlace)
    };
}
