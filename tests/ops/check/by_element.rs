//! Rows of elementwise ops: the cases of a row, and further checks of these ops.

use super::compare::assert_close;
use super::inputs::{Axes, Input, Random, Role, axes, numbers, sizes};
use super::values::own;
use super::{Args, CallInPlace, Case, any, by_name, check, floats, numeric, plain, to_float, truth};
use crate::plain::Plain;
use namegrad::core::{Category, NamedTensor};
use namegrad::prelude::*;
use std::ops::Range;

/// A row of a table of elementwise ops.
pub(crate) struct Pointwise {
    pub(crate) op: &'static str,
    /// The other arguments.
    pub(crate) args: fn() -> Args,
    /// `float`, `int`, `bool`: the dtypes that it takes without conversion. `only`: other dtypes do not
    /// become floats. `alike`: nor are dtypes promoted. `signed`: `bool` is rejected even with other dtypes.
    /// `counts`: `bool` becomes `i64`. `bits`: `bool` is treated as one bit. `test`: the result is `bool`.
    pub(crate) classes: &'static [&'static str],
    /// The range of the numbers.
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

/// Sizes and names of the inputs of an elementwise op, and of the result.
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

/// Checks a row of elementwise ops.
pub(crate) fn pointwise(row: &'static Pointwise) {
    for (shapes, result) in pointwise_shapes(row.ranges.len()) {
        let inputs = row.draw(&shapes);
        check(&row.case(inputs, axes(result)));
    }
    row.special_values();
    row.one_input_everywhere();
    row.mixed_dtypes();
    row.reuses_its_buffer();
    row.gradients_of_half_types();
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
            // The last bit of a number in two's complement is the bit of a `bool`.
            result.data.iter_mut().filter(|_| bools).for_each(|x| *x = f64::from(*x as i64 as u8 & 1));
            result
        };
        let (call, in_place) = by_name(self.op, (self.args)(), "");
        Case {
            op: self.op,
            call,
            in_place,
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
        // Unsigned numbers and bools are computed from the same numbers, so the reference must be finite
        // there too.
        let ints = find(Random::whole, &|x| {
            if !self.has("int") {
                return true; // they become floats
            }
            let unsigned: Vec<f64> = x.iter().map(|x| x.abs()).collect();
            (self.reference)(x).is_finite() && (self.reference)(&unsigned).is_finite()
        });
        let parts = axes.into_iter().zip(floats).zip(ints);
        parts
            .map(|((axes, floats), ints)| Input { axes, floats, ints, role: Role::Value, drawn: None })
            .collect()
    }

    /// At 0, kinks, large numbers, infinities and NaN, the value equals the reference in every float dtype.
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
            let (got, want) =
                (result.to(DType::F64).unwrap().to_vec::<f64>().unwrap(), case.reference_of(&inputs));
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
        let (call, in_place) = by_name(self.op, (self.args)(), "");
        let everywhere = move |x: &[Tensor]| call(&vec![x[0].clone(); arity]);
        let reference = move |x: &[Plain]| (case.reference)(&vec![x[0].clone(); arity]);
        let in_place = in_place.map(|call| {
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
                // `bool` inputs can be zero, and integers cannot be divided by zero.
                let divides_by_zero = promoted.category() == Category::Integer && !self.is_finite_on(&cast);
                let refused = self.has("signed") && [first, second].contains(&DType::Bool)
                    || self.has("alike") && first != second;
                match ((case.dtype)(promoted).filter(|_| !refused), (case.call)(&inputs)) {
                    (Some(_), Err(error)) if divides_by_zero => {
                        assert_eq!(error.kind(), ErrorKind::Value, "{}: {error}", what());
                    }
                    (Some(dtype), Ok(result)) if divides_by_zero => {
                        assert_eq!((self.op, result.dtype()), ("pow", dtype), "{}", what());
                        let mut want = case.reference_of(&cast);
                        // As every negative power of an integer but those of 1 and -1.
                        want.data.iter_mut().filter(|y| y.is_infinite()).for_each(|y| *y = 0.0);
                        assert_close(&result, &want, self.scale, &what);
                    }
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

    /// Gradients of half types are those of `f32`, rounded once; a result that is kept was rounded before.
    fn gradients_of_half_types(&'static self) {
        let shapes = vec!["N=4 C=5"; self.ranges.len()];
        let case = self.case(self.draw(&shapes), axes("N=4 C=5"));
        let op = namegrad::ops::find(self.op).unwrap();
        let namegrad::ops::Gradients::Formulas(formulas) = op.gradients else { return };
        for (dtype, ulp) in [(DType::F16, 2f64.powi(-10)), (DType::BF16, 2f64.powi(-7))] {
            if (case.dtype)(dtype) != Some(dtype) {
                continue;
            }
            let half = case.tensors(dtype);
            let gradients = |compute: DType| -> Vec<Option<Plain>> {
                let cast = |x: &Tensor| match x.dtype() == dtype {
                    true => x.to(compute).unwrap().detach().requiring_grad().unwrap(),
                    false => x.clone(),
                };
                let inputs: Vec<Tensor> = half.iter().map(cast).collect();
                let y = (case.call)(&inputs).unwrap();
                let g = Tensor::from_slice(&[1.25, 3.0, -0.375, 7.0, 1.125].repeat(4), [4, 5]).unwrap();
                y.mul(g.to(y.dtype()).unwrap()).unwrap().sum(..).unwrap().backward().unwrap();
                inputs.iter().map(|x| Some(plain(&x.grad()?))).collect()
            };
            let pairs = gradients(dtype).into_iter().zip(gradients(DType::F32));
            for ((name, formula), (got, want)) in formulas.iter().zip(pairs) {
                let (Some(got), Some(want)) = (got, want) else { continue };
                let keeps_result = formula.split(|c: char| !c.is_alphanumeric()).any(|word| word == "y");
                // Where the result is kept, `1 - y²` and its kin lose the digits that `y` lost.
                let (roundings, least) = if keeps_result { (8.0, 1.0) } else { (0.51, 2f64.powi(-14)) };
                for (got, want) in got.data.iter().zip(&want.data) {
                    let near = (got - want).abs() <= roundings * ulp * want.abs().max(least);
                    let text = format!("the gradient of `{name}` of {} of {dtype}", self.op);
                    assert!(near || want.is_nan(), "{text}: {got} is not {want}");
                }
            }
        }
    }

    /// In-place forms allocate nothing if the buffer is not shared.
    fn reuses_its_buffer(&'static self) {
        let (_, Some(in_place)) = by_name(self.op, (self.args)(), "") else { return };
        let dtype = if self.has("float") { DType::F64 } else { DType::I64 };
        let inputs: Vec<Tensor> =
            self.draw(&vec!["N=2 C=3"; self.ranges.len()]).iter().map(|x| x.tensor(dtype)).collect();
        let mut x = own(&inputs[0]);
        let before = x.value().data_ptr();
        in_place(&mut x, &inputs[1..]).unwrap();
        assert_eq!(x.value().data_ptr(), before, "{} in place took another buffer", self.op);
    }
}
