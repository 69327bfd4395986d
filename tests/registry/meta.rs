//! Compares every op of the registry on meta tensors with the same call on the CPU, with random calls: sizes,
//! strides, names, dtypes and errors of the results, of the in-place form, and of the gradients.

use crate::recipe::{Recipe, recipes};
use namegrad::autograd::functional::{hessian, jvp, vmap};
use namegrad::autograd::{BackwardOptions, checkpoint, grad_with};
use namegrad::fused;
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
const NEEDS: [(&str, &str); 12] = [
    ("argwhere", "the size is the number of nonzero elements"),
    ("bincount", "the size is that of the largest number"),
    ("histogram", "the range, if it is not given"),
    ("histogramdd", "the range, if it is not given"),
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

type Way = (&'static str, fn(&Tensor) -> Result<Vec<Tensor>>);

/// What is made of ops, as a function of a tensor of 3 by 4 numbers above 0 that requires a gradient.
const WAYS: [Way; 8] = [
    ("vmap", |x| {
        let y = vmap(|x| x[0].log()?.cumsum(0)?.mul(&x[0].sum(..)?), &[x], "row")?;
        y.sum(..)?.backward()?;
        Ok(vec![y, x.grad().unwrap()])
    }),
    ("vmap of gradients", |x| {
        let gradient = |x: &[Tensor]| {
            Ok(grad_with(&[&x[0].pow(3)?.sum(..)?], &[&x[0]], &[], <_>::default())?.remove(0).unwrap())
        };
        Ok(vec![vmap(|x| gradient(&[x[0].detach().requiring_grad()?]), &[x], "row")?])
    }),
    ("forward mode", |x| {
        let (y, along) = jvp(|x| x[0].softmax(1)?.sum(0), &[x], &[&x.ones_like()?])?;
        Ok(vec![y, along])
    }),
    ("second derivatives", |x| Ok(vec![hessian(|x| x.pow(3)?.sum(..)?.mul(&x.mean(..)?), x)?])),
    ("create_graph", |x| {
        let create = BackwardOptions::new().create_graph(true);
        let first = grad_with(&[&x.sqrt()?.sum(..)?], &[x], &[], create)?.remove(0).unwrap();
        first.square()?.sum(..)?.backward()?;
        Ok(vec![first, x.grad().unwrap()])
    }),
    ("hooks", |x| {
        x.register_hook(|g| g.mul(2.0).map(Some))?;
        x.register_post_accumulate_grad_hook(|g| g.add(1.0).map(Some))?;
        x.exp()?.sum(..)?.backward()?;
        Ok(vec![x.grad().unwrap()])
    }),
    ("fused", |x| {
        let y = fused(&[x, &x.detach()], |[x, gate]| gate.sigmoid()?.mul(x)?.add(x))?;
        y.sum(..)?.backward()?;
        Ok(vec![y, x.grad().unwrap()])
    }),
    ("checkpoint", |x| {
        let y = checkpoint(|x| x[0].exp()?.sin(), &[x])?;
        y.sum(..)?.backward()?;
        Ok(vec![y, x.grad().unwrap()])
    }),
];

#[test]
fn functions_of_ops_work_without_elements() -> Result<()> {
    for (name, way) in WAYS {
        let made = |device| -> Result<Vec<Tensor>> {
            let x = Tensor::ones([("row", 3), ("col", 4)])?.to_device(device)?;
            way(&x.requiring_grad()?)
        };
        let (cpu, meta) =
            (made(Device::Cpu)?, made(Device::Meta).map_err(|error| error.context(format!("{name}: ")))?);
        assert!(meta.iter().all(is_meta), "{name}");
        let forms =
            |all: &[Tensor]| all.iter().map(|x| format!("{} {}", x.dtype(), x.shape())).collect::<Vec<_>>();
        assert_eq!(forms(&meta), forms(&cpu), "{name}");
    }
    Ok(())
}

/// What has a tensor with elements and one without is an error, and changes nothing.
#[test]
fn devices_that_differ_are_errors() -> Result<()> {
    let cpu = Tensor::ones([("N", 2), ("C", 3)])?;
    let meta = cpu.to_device(Device::Meta)?;
    let (number, of_meta) = (Tensor::new(2.0)?, Tensor::new(2.0)?.to_device(Device::Meta)?);
    let leaf = meta.detach().requiring_grad()?;
    let here = cpu.detach().requiring_grad()?;
    let with = |y: &Tensor, g: &Tensor| y.exp()?.backward_with(Some(g), BackwardOptions::default());
    let parameter = Parameter::new(cpu.clone())?;
    let (mut out, mut scalar) = (cpu.clone(), number.clone());
    let results = [
        ("backward", with(&leaf, &cpu)),
        ("backward", with(&here, &meta)),
        ("backward", with(&here.sum(..)?, &of_meta)),
        ("set_grad", here.set_grad(Some(meta.clone()))),
        ("set_grad", leaf.set_grad(Some(cpu.clone()))),
        ("write_to", meta.add(1.0)?.write_to(&mut out).map(drop)),
        ("copy_", out.copy_(&meta).map(drop)),
        ("copy_", scalar.copy_(&of_meta).map(drop)),
        ("Parameter::set", parameter.set(&meta)),
        ("Parameter::update", on_device(Device::Meta, || parameter.update(|x| x.mul_(2.0).map(drop)))),
    ];
    for (number, (op, result)) in results.into_iter().enumerate() {
        let Err(error) = result else { panic!("{number}: {op} works") };
        assert_eq!(error.kind(), ErrorKind::Device, "{number}: {error}");
        assert!(error.to_string().starts_with(&format!("{op}: ")), "{number}: {error}");
        assert!(error.location().file().ends_with("meta.rs"), "{number}: {error}");
    }
    assert!(leaf.grad().is_none() && here.grad().is_none());
    assert_eq!((&out, &parameter.tensor()), (&cpu, &cpu));
    assert_eq!(scalar, number);
    Ok(())
}

/// A comparison has no error to return.
#[test]
fn comparisons_say_what_they_need() -> Result<()> {
    let x = Tensor::ones([("N", 2)])?.to_device(Device::Meta)?;
    let y = x.clone();
    assert!(x != Tensor::ones([("C", 2)])? && x != x.to(DType::F64)?, "known without elements");
    let panic = catch_unwind(AssertUnwindSafe(|| x == y)).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.starts_with("==: needs the elements") && text.contains("meta.rs"), "{text}");
    let named = x.to_string();
    assert!(named.contains("device='meta'") && format!("{x:?}").contains("[N=2]"), "{named}");
    let error = serde_json::to_string(x.value()).unwrap_err().to_string();
    assert!(error.contains("needs the elements"), "{error}");
    Ok(())
}
