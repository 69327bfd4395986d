//! Compares every op of the registry inside of `vmap` with a loop over slices, with random calls: its
//! values, the gradient of a slice inside of the map, and the gradient of the whole map.

use namegrad::autograd::functional::{Randomness, VmapOptions, jvp, vjp, vmap_with};
use namegrad::ops::{Gradients, Op};
use namegrad::prelude::*;
use namegrad_tests::draw::{Draw, Drawn, SEED};

/// The number of calls that are compared for each op.
const CALLS: usize = 6;

/// The number of slices.
const SLICES: usize = 3;

/// A call with its tensors in a batch, where some are the same for all slices.
struct Batched {
    call: Drawn,
    tensors: Vec<Tensor>,
    shared: Vec<usize>,
}

impl Batched {
    fn of(op: &Op, seed: u64) -> Option<Batched> {
        let mut draw = Draw::distinct(seed);
        let sizes: Vec<usize> = (0..draw.below(4)).map(|_| 1 + draw.below(4)).collect();
        let dtype = [DType::F64, DType::F64, DType::F32, DType::I64][draw.below(4)];
        let call = Drawn::alike(op, &draw.tensor(&sizes, dtype), &mut draw);
        call.call(op).ok()?;
        let own: Vec<&Tensor> = call.tensors.iter().flat_map(|(_, x)| x).collect();
        let (mut tensors, mut shared) = (Vec::new(), Vec::new());
        for (number, x) in own.iter().enumerate() {
            if number > 0 && draw.below(3) == 0 || own.len() == 1 && draw.below(8) == 0 && !tensors.is_empty()
            {
                shared.push(number);
                tensors.push((*x).clone());
                continue;
            }
            // Other floats in each slice; other integers would not be indices.
            let slice = |k: usize| match x.dtype().is_floating_point() {
                true => x.mul(1.0 - 0.125 * k as f64),
                false => Ok((*x).clone()),
            };
            let slices = (0..SLICES).map(slice).collect::<Result<Vec<Tensor>>>().ok()?;
            tensors.push(Tensor::stack(&slices, 0).ok()?);
        }
        (shared.len() < tensors.len()).then_some(Batched { call, tensors, shared })
    }

    /// The call on other tensors.
    fn on(&self, op: &Op, tensors: &[Tensor]) -> Result<Vec<Tensor>> {
        let mut call = self.call.clone();
        for (own, x) in call.tensors.iter_mut().flat_map(|(_, x)| x).zip(tensors) {
            *own = if op.info.name.ends_with('_') && x.requires_grad() { x.mul(1.0)? } else { x.clone() };
        }
        call.call(op)
    }

    fn options(&self) -> VmapOptions {
        VmapOptions::new().shared(self.shared.clone()).randomness(Randomness::Same)
    }

    /// `f` of all slices, mapped or by a loop.
    fn both(&self, f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>) -> [Result<Vec<Tensor>>; 2] {
        let inputs: Vec<&Tensor> = self.tensors.iter().collect();
        let mapped = vmap_with(&f, &inputs, 0, self.options());
        let slice = |at: usize| {
            let slices = self.tensors.iter().enumerate().map(|(number, x)| {
                if self.shared.contains(&number) { Ok(x.clone()) } else { x.select(0, at) }
            });
            f(&slices.collect::<Result<Vec<Tensor>>>()?)
        };
        let looped = (0..SLICES).map(slice).collect::<Result<Vec<_>>>().and_then(|rows| {
            (0..rows[0].len())
                .map(|column| {
                    Tensor::stack(rows.iter().map(|row| row[column].clone()).collect::<Vec<_>>(), 0)
                })
                .collect()
        });
        [mapped, looped]
    }
}

/// Whether results agree in names, dtypes and numbers.
fn agree(a: &[Tensor], b: &[Tensor]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| {
            let digits = if a.dtype() == DType::F64 { 1e-9 } else { 1e-3 };
            let options = IscloseOptions::new().rtol(digits).atol(digits).equal_nan(true);
            a.dtype() == b.dtype() && a.shape() == b.shape() && a.allclose_with(b, options).unwrap_or(false)
        })
}

/// The sum of all floats of some results, which differ in their weights; large ones are not more sensitive to
/// rounding.
fn loss(results: Vec<Tensor>) -> Result<Tensor> {
    let mut sum = Tensor::from_slice(&[0.0_f64], [] as [usize; 0])?;
    for y in results.iter().filter(|y| y.dtype() == DType::F64) {
        sum = sum.add(y.rename(None)?.asinh()?.sum(..)?)?;
    }
    Ok(sum)
}

/// The places of the floats among some tensors.
fn floats(x: &[Tensor]) -> Vec<usize> {
    (0..x.len()).filter(|at| x[*at].dtype() == DType::F64).collect()
}

fn of_floats(x: &[Tensor]) -> Vec<&Tensor> {
    floats(x).into_iter().map(|at| &x[at]).collect()
}

/// The tensors, with others in place of the floats.
fn with_floats(all: &[Tensor], others: &[Tensor]) -> Vec<Tensor> {
    let mut all = all.to_vec();
    for (at, x) in floats(&all).into_iter().zip(others) {
        all[at] = x.clone();
    }
    all
}

impl Batched {
    /// Compares the op, its gradient and its tangent in a slice, and the gradient of the whole. Returns whether
    /// there was anything to compare.
    fn check(&self, op: &Op) -> std::result::Result<bool, String> {
        let compare = |what: &str, [mapped, looped]: [Result<Vec<Tensor>>; 2]| match (mapped, looped) {
            (Ok(a), Ok(b)) if agree(&a, &b) => Ok(true),
            (Err(_), Err(_)) => Ok(false),
            (a, b) => Err(format!("{what} of {}: {a:?} and not {b:?}", op.info.name)),
        };
        let of = |x: &[Tensor]| self.on(op, x);
        let is_alike = compare("values", self.both(of))?;
        let refuses = matches!(op.gradients, Gradients::Constant | Gradients::Refused);
        if refuses || !is_alike || floats(&self.tensors).is_empty() {
            return Ok(is_alike);
        }
        let gradient = |x: &[Tensor]| Ok(vjp(|y| loss(of(&with_floats(x, y))?), &of_floats(x), None)?.1);
        let tangent = |x: &[Tensor]| {
            let own = of_floats(x);
            let along = own.iter().map(|x| x.cos()).collect::<Result<Vec<Tensor>>>()?;
            let along: Vec<&Tensor> = along.iter().collect();
            Ok(vec![jvp(|y| loss(of(&with_floats(x, y))?), &own, &along)?.1])
        };
        let whole = |number: usize| {
            let all = |y: &[Tensor]| {
                let tensors = with_floats(&self.tensors, y);
                let moved = Batched { call: self.call.clone(), tensors, shared: self.shared.clone() };
                let mut both = moved.both(of).into_iter();
                loss(both.nth(number).expect("two results")?)
            };
            Ok(vjp(all, &of_floats(&self.tensors), None)?.1)
        };
        compare("the gradient in a slice", self.both(gradient))?;
        compare("the tangent in a slice", self.both(tangent))?;
        compare("the gradient of the map", [whole(0), whole(1)])?;
        Ok(true)
    }
}

#[test]
fn every_op_maps_over_a_batch_as_a_loop_does() {
    let mut wrong = Vec::new();
    for op in namegrad_tests::ops() {
        // The factors of a singular matrix depend on rounding, and `registry/gradients.rs` says what the
        // gradient of `ctc_loss` is.
        if ["qr", "nn.ctc_loss"].contains(&op.info.name) {
            continue;
        }
        let mut calls = 0;
        for seed in (0..400).map(|k| SEED.wrapping_add(k)) {
            let Some(batched) = Batched::of(op, seed) else { continue };
            match batched.check(op) {
                Ok(counts) => calls += usize::from(counts),
                Err(error) => {
                    let (call, shared) = (&batched.call, &batched.shared);
                    wrong.push(format!(
                        "{error}; NAMEGRAD_SEED={seed} plays it again, with {call:?}, shared {shared:?}"
                    ));
                    break;
                }
            }
            if calls == CALLS {
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
