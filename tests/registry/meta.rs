//! Compares every op of the registry on meta tensors with the same call on the CPU, with random calls: sizes,
//! strides, names, dtypes and errors of the results, of the in-place form, and of the gradients.

use crate::recipe::{Recipe, recipes};
use namegrad::autograd::{BackwardOptions, grad_with};
use namegrad::ops::{Gradients, Op};
use namegrad::prelude::*;
use namegrad_tests::draw::{Draw, Drawn, SEED};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The number of calls of each op.
const CALLS: usize = 60;

/// Ops that need the elements of an input, and what for.
const NEEDS: [(&str, &str); 14] = [
    ("argwhere", "the size is the number of nonzero elements"),
    ("bincount", "the size is that of the largest number"),
    ("histc", "the range, if it is not given"),
    ("histogram", "the range, if it is not given"),
    ("histogramdd", "the range, if it is not given"),
    ("index_by", "the size is the number of true elements of a mask"),
    ("masked_select", "the size is the number of true elements"),
    ("nonzero", "the size is the number of nonzero elements"),
    ("nonzero_numpy", "the size is the number of nonzero elements"),
    ("one_hot", "the number of classes, if it is not given"),
    ("repeat_interleave", "the size is the sum of the repeats, if it is not given"),
    ("unique", "the size is the number of distinct elements"),
    ("unique_consecutive", "the size is the number of runs"),
    ("unique_dim", "the size is the number of distinct slices"),
];

/// Ops of which strides and errors about sizes depend on elements, and how.
const BY_VALUES: [(&str, &str); 1] = [(
    "masked_scatter",
    "a view if the mask is nowhere true, an error if it is true at more places than the source has",
)];

fn is_by_values(op: &Op) -> bool {
    BY_VALUES.iter().any(|(name, _)| *name == op.info.name)
}

/// What of the results of an op does not depend on elements.
fn forms(op: &Op, all: &[Tensor]) -> String {
    let strides = |x: &Tensor| if is_by_values(op) { Vec::new() } else { x.value().strides().to_vec() };
    let form = |x: &Tensor| format!("{} {} {:?}", x.dtype(), x.shape(), strides(x));
    // Whether there are residuals depends on the rank of the matrices.
    let is_free = |at: usize| op.info.name == "lstsq" && at == 1;
    all.iter()
        .enumerate()
        .filter(|(at, _)| !is_free(*at))
        .map(|(_, x)| form(x))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Whether an error says that an op needs the elements.
fn is_refusal(error: &Error) -> bool {
    error.kind() == ErrorKind::Unsupported && error.message().contains("needs the elements")
}

fn is_meta(x: &Tensor) -> bool {
    x.device() == Device::Meta
}

/// The gradients of the sum of all floats of some results, with the inputs that have some.
fn gradients(op: &Op, call: &Drawn) -> Result<Vec<Tensor>> {
    let mut call = call.clone();
    let floats = |x: &&mut Tensor| x.dtype().is_floating_point();
    let mut inputs = Vec::new();
    for x in call.tensors.iter_mut().flat_map(|(_, x)| x).filter(floats) {
        x.requires_grad_(true)?;
        inputs.push(x.clone());
        // An in-place op does not write to a leaf.
        *x = if op.info.name.ends_with('_') { x.mul(1.0)? } else { x.clone() };
    }
    let results = call.call(op)?;
    let results: Vec<&Tensor> = results.iter().filter(|y| y.requires_grad()).collect();
    let seeds = results.iter().map(|y| y.ones_like()).collect::<Result<Vec<_>>>()?;
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let options = BackwardOptions::new().allow_unused(true);
    let found = grad_with(&results, &inputs, &seeds.iter().map(Some).collect::<Vec<_>>(), options)?;
    Ok(found.into_iter().flatten().collect())
}

/// Compares what a call gives on both devices. An error about values is none on the meta device.
fn compare(
    op: &Op,
    what: &str,
    cpu: Result<Vec<Tensor>>,
    meta: Result<Vec<Tensor>>,
) -> std::result::Result<bool, String> {
    match (cpu, meta) {
        (Ok(cpu), Ok(meta)) if forms(op, &cpu) == forms(op, &meta) && meta.iter().all(is_meta) => Ok(true),
        (Err(cpu), Err(meta)) if cpu.kind() == meta.kind() && cpu.message() == meta.message() => Ok(false),
        (Err(cpu), _) if matches!(cpu.kind(), ErrorKind::Value | ErrorKind::Index) => Ok(false),
        (Err(cpu), _) if cpu.kind() == ErrorKind::Shape && is_by_values(op) => Ok(false),
        (cpu, meta) => {
            let told = |made: &Result<Vec<Tensor>>| match made {
                Ok(made) => format!("{} on {:?}", forms(op, made), made.first().map(Tensor::device)),
                Err(error) => format!("{:?}: {error}", error.kind()),
            };
            Err(format!("{what}:\n    cpu  {}\n    meta {}", told(&cpu), told(&meta)))
        }
    }
}

/// The calls that are compared for an op: on tensors of random shapes, names, dtypes and memory orders, most of
/// which are floats.
fn calls(op: &Op, seed: u64) -> impl Iterator<Item = Drawn> + use<'_> {
    let config = Config { rng_seed: RngSeed::Fixed(seed), ..Config::default() };
    let (mut runner, strategy) = (TestRunner::new(config), recipes());
    (0..).map_while(move |number: u64| {
        let mut recipes = strategy.new_tree(&mut runner).ok()?.current();
        if !number.is_multiple_of(3) {
            recipes.iter_mut().for_each(|recipe| recipe.dtype = DType::F32);
        }
        let inputs = recipes.map(|recipe: Recipe| recipe.tensor(false));
        Some(Drawn::of(op, &inputs, &mut Draw::new(seed.wrapping_add(number))))
    })
}

fn check(op: &Op, call: &Drawn) -> std::result::Result<bool, String> {
    let meta = call.map(|x| x.to_device(Device::Meta).unwrap());
    let works = compare(op, "values", call.call(op), meta.call(op))?;
    if op.info.in_place.is_some() {
        let first = |call: &Drawn| {
            let mut x = call.tensors[0].1[0].clone();
            call.call_in_place(op, &mut x).map(|()| vec![x])
        };
        compare(op, "in place", first(call), first(&meta))?;
    }
    let refuses = matches!(op.gradients, Gradients::Constant | Gradients::Refused);
    if works && !refuses {
        compare(op, "gradients", gradients(op, call), gradients(op, &meta))?;
    }
    Ok(works)
}

#[test]
fn every_op_has_the_same_sizes_and_errors_without_elements() {
    let mut wrong = Vec::new();
    for op in namegrad_tests::ops() {
        let mut worked = 0;
        let named = NEEDS.iter().any(|(name, _)| *name == op.info.name);
        let mut refused = !named;
        for (number, call) in calls(op, *SEED).enumerate().take(10 * CALLS) {
            let without = |x: &Tensor| x.to_device(Device::Meta).unwrap();
            if named && matches!(call.map(without).call(op), Err(error) if is_refusal(&error)) {
                refused = true;
                continue;
            }
            let checked = catch_unwind(AssertUnwindSafe(|| check(op, &call)));
            match checked.unwrap_or_else(|_| Err("panics".into())) {
                Ok(works) => worked += usize::from(works),
                Err(error) => {
                    let seed = *SEED;
                    wrong.push(format!(
                        "{} {error}\n    NAMEGRAD_SEED={seed}, call {number}: {call:?}",
                        op.info.name
                    ));
                    break;
                }
            }
            if worked >= CALLS / 10 && number > CALLS {
                break;
            }
        }
        if !refused {
            wrong.push(format!("{} does not need elements", op.info.name));
        }
    }
    let names: Vec<&str> = wrong.iter().map(|text| text.split(' ').next().unwrap()).collect();
    assert!(wrong.is_empty(), "{}\n{} ops: {}", wrong.join("\n"), wrong.len(), names.join(" "));
}
