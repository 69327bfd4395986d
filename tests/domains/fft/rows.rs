//! Every function of the crate by its row: gradients to second order, memory orders, threads, dtypes, and names
//! in any order. The calls are drawn from the rows, so a new function needs no line here.

use namegrad::autograd::{GradCheckOptions, gradcheck_with, gradgradcheck_with};
use namegrad::ops::{self, Gradients, Op, TensorKind};
use namegrad::prelude::*;
use namegrad_tests::draw::{Draw, Drawn, SEED};
use namegrad_tests::{is_chosen, is_of_domain};
use std::collections::BTreeMap;

fn rows() -> impl Iterator<Item = &'static Op> {
    ops::all().filter(|op| is_of_domain(op.info.name) && is_chosen(op.info.name))
}

/// Whether the first tensor of a function is complex.
fn takes_complex(op: &Op) -> bool {
    match op.info.name.split_once('.') {
        Some(("complex", function)) => !["from_parts", "from_real", "polar"].contains(&function),
        _ => op.info.args.first().is_some_and(|arg| ["Axis", "Axes"].contains(&arg.ty)),
    }
}

/// A call on a tensor of these sizes, beside the pairs of a complex one.
fn drawn(op: &Op, sizes: &[usize], draw: &mut Draw) -> Drawn {
    let sizes = if takes_complex(op) { [sizes, &[2]].concat() } else { sizes.to_vec() };
    let x = draw.tensor(&sizes, DType::F64);
    let mut args = Drawn::of(op, std::slice::from_ref(&x), draw).args;
    let mut tensors = vec![(op.info.tensors[0].name, x.clone())];
    for tensor in &op.info.tensors[1..] {
        if tensor.name == "window" {
            // Most numbers are not 0: otherwise elements are in no window.
            if draw.below(2) == 0 {
                let n = args.iter().find(|(name, _)| *name == "n_fft").and_then(|(_, n)| int(n)).unwrap_or(1);
                tensors.push((
                    "window",
                    draw.tensor(&[n as usize], DType::F64).abs().unwrap().add(0.5).unwrap(),
                ));
            }
            continue;
        }
        let other = match (tensor.kind, draw.below(3)) {
            (TensorKind::Operand, 0) => draw.tensor(&[], DType::F64),
            _ if op.info.name == "complex.matmul" => {
                x.movedim(-1, 0).unwrap().mt().unwrap().movedim(0, -1).unwrap()
            }
            (_, 1) if sizes.len() > 1 => draw.tensor(&sizes[1..], DType::F64),
            _ => draw.tensor(&sizes, DType::F64),
        };
        tensors.push((tensor.name, other));
    }
    if op.info.table == "stft" {
        args.retain(|(name, _)| ["n_fft", "dim", "center", "normalized", "pad_mode"].contains(name));
    }
    Drawn::with(tensors, args)
}

fn int(value: &ops::Value) -> Option<i64> {
    if let ops::Value::Int(int) = value { Some(*int) } else { None }
}

fn finite(y: &Tensor) -> bool {
    y.numel() > 0 && y.isfinite().unwrap().all(..).unwrap().item::<bool>().unwrap()
}

/// Calls `each` for valid calls of every function.
fn calls(least: usize, mut each: impl FnMut(&Op, &Drawn, &Tensor, u64)) {
    let mut rare = Vec::new();
    for op in rows() {
        let mut count = 0;
        for seed in (0..3000).map(|k| SEED.wrapping_add(k)) {
            let mut draw = Draw::distinct(seed);
            let sizes: Vec<usize> = (0..1 + draw.below(3)).map(|_| 1 + draw.below(6)).collect();
            let call = drawn(op, &sizes, &mut draw);
            match call.call(op) {
                Ok(y) if finite(&y[0]) => each(op, &call, &y[0], seed),
                _ => continue,
            }
            count += 1;
            if count == least {
                break;
            }
        }
        if count < least {
            rare.push((op.info.name, count));
        }
    }
    assert!(rare.is_empty(), "NAMEGRAD_SEED={} has few valid calls of {rare:?}", *SEED);
}

fn with(call: &Drawn, given: &[Tensor]) -> Drawn {
    let mut call = call.clone();
    for ((_, tensors), given) in call.tensors.iter_mut().zip(given) {
        tensors[0] = given.clone();
    }
    call
}

#[test]
fn gradients_to_second_order() {
    let steps = [1e-5, 1e-7].map(|eps| GradCheckOptions { eps, atol: 1e-5, rtol: 1e-4 });
    let mut wrong = BTreeMap::new();
    calls(4, |op, call, _, seed| {
        assert!(!matches!(op.gradients, Gradients::Constant | Gradients::Refused), "{}", op.info.name);
        let given: Vec<Tensor> = call.tensors.iter().map(|(_, x)| x[0].clone()).collect();
        let of = |given: &[Tensor]| Ok(with(call, given).call(op)?.remove(0));
        let at = |step| gradcheck_with(of, &given, step).and_then(|_| gradgradcheck_with(of, &given, step));
        if let Err(error) = at(steps[0]).or_else(|_| at(steps[1])) {
            wrong.entry(op.info.name).or_insert(format!("{error}; NAMEGRAD_SEED={seed}, with {call:?}"));
        }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn results_do_not_depend_on_memory_or_threads() {
    let pools = [1, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    calls(20, |op, call, y, seed| {
        let turned = call.map(|x| {
            let dims: Vec<usize> = (0..x.ndim()).rev().collect();
            x.permute(dims.clone()).unwrap().contiguous().unwrap().permute(dims).unwrap()
        });
        for pool in &pools {
            let same = pool.install(|| turned.call(op)).unwrap();
            // Sums may be in another order.
            let close = same[0].allclose_with(y, IscloseOptions::new().rtol(1e-12).atol(1e-12)).unwrap();
            assert!(close, "{}: NAMEGRAD_SEED={seed}, {call:?}", op.info.name);
        }
    });
}

/// The meta device: sizes and names of the result, and of the gradient.
#[test]
fn sizes_without_elements() {
    let gradient = |op: &Op, call: &Drawn| -> Result<(Tensor, Vec<Tensor>)> {
        let call = call.map(|x| {
            let mut x = x.detach();
            x.requires_grad_(true).unwrap();
            x
        });
        let y = call.call(op)?.remove(0);
        y.sum(..)?.backward()?;
        Ok((y, call.tensors.iter().filter_map(|(_, x)| x[0].grad()).collect()))
    };
    let form = |x: &Tensor| format!("{} {}", x.dtype(), x.shape());
    let mut wrong = BTreeMap::new();
    calls(10, |op, call, _, seed| {
        let meta = call.map(|x| x.to_device(Device::Meta).unwrap());
        let (y, gradients) = gradient(op, call).unwrap();
        match gradient(op, &meta) {
            Ok((on_meta, of_meta))
                if form(&y) == form(&on_meta)
                    && on_meta.device() == Device::Meta
                    && gradients.iter().map(form).eq(of_meta.iter().map(form)) => {}
            found => {
                let found = found.map(|(y, of)| (form(&y), of.iter().map(form).collect::<Vec<_>>()));
                wrong.entry(op.info.name).or_insert(format!("{found:?}; NAMEGRAD_SEED={seed}, {call:?}"));
            }
        }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn narrower_dtypes() {
    calls(20, |op, call, y, seed| {
        let narrow = call.map(|x| x.to(DType::F32).unwrap()).call(op).unwrap();
        assert_eq!(narrow[0].dtype(), DType::F32);
        let size = y.abs().unwrap().amax(..).unwrap().item::<f64>().unwrap().max(1.0);
        let far =
            narrow[0].to(DType::F64).sub(y).unwrap().abs().unwrap().amax(..).unwrap().item::<f64>().unwrap();
        if size > 1e30 {
            return; // out of the range of `f32`
        }
        // Beside a pole, and for a window with small weights, rounding errors are larger.
        assert!(far < 1e-3 * size, "{}: {far} of {size}, NAMEGRAD_SEED={seed}, {call:?}", op.info.name);
    });
}

/// Inputs in another order of dims, with all dims said by name, give the permuted result.
#[test]
fn dims_can_have_any_order() {
    const NAMES: [&str; 3] = ["A", "B", "D"];
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    calls(30, |op, call, _, seed| {
        let names = |x: &Tensor, pairs: bool| -> Vec<&str> {
            let own = x.ndim() - usize::from(pairs);
            let mut names = NAMES[..own].to_vec();
            names.extend(pairs.then_some("complex"));
            names
        };
        let is_complex = takes_complex(op);
        let mut call = call.clone();
        let ndim = call.tensors[0].1[0].ndim();
        if call.tensors.iter().any(|(name, x)| x[0].ndim() != ndim && *name != "window")
            || op.info.name == "complex.matmul"
        {
            return;
        }
        for (name, x) in call.tensors.iter_mut().filter(|(name, _)| *name != "window") {
            let _ = name;
            x[0] = x[0].rename(names(&x[0], is_complex)).unwrap();
        }
        // Dims by name: positions do not count the pairs.
        let own = ndim - usize::from(is_complex);
        let named = |value: &ops::Value| -> Option<ops::Value> {
            let dim = int(value)?;
            Some(NAMES[dim.rem_euclid(own as i64) as usize].into())
        };
        for arg in op.info.args.iter().filter(|arg| arg.name == "dim") {
            let given = call.args.iter().position(|(name, _)| *name == "dim");
            let value = match given.map(|at| call.args.remove(at).1) {
                Some(ops::Value::Int(dim)) => named(&dim.into()),
                Some(ops::Value::List(list)) if !list.is_empty() => {
                    list.iter().map(named).collect::<Option<Vec<_>>>().map(ops::Value::List)
                }
                None if arg.ty.ends_with("Axis") && own > 0 => Some(NAMES[own - 1].into()),
                None if arg.default.is_some_and(|text| text.contains("last_two")) && own > 1 => {
                    Some(ops::Value::List(NAMES[own - 2..own].iter().map(|name| (*name).into()).collect()))
                }
                _ => None,
            };
            let Some(value) = value else { return };
            call.args.push(("dim", value));
        }
        let Ok(y) = call.call(op) else { return };
        let y = &y[0];
        if !(0..y.ndim()).all(|dim| y.name(dim).is_some()) {
            return; // a new dim without a name
        }
        let turned = call.map(|x| {
            let all = names(x, is_complex && x.ndim() > 1);
            if x.ndim() < 2 || !x.has_names() {
                x.clone()
            } else {
                x.align_to(all.into_iter().rev().collect::<Vec<_>>()).unwrap()
            }
        });
        let other = turned.call(op).unwrap_or_else(|error| panic!("{error} NAMEGRAD_SEED={seed} {turned:?}"));
        let other = if y.ndim() > 0 { other[0].align_as(y).unwrap() } else { other[0].clone() };
        let close = other.allclose_with(y, IscloseOptions::new().rtol(1e-10).atol(1e-10)).unwrap();
        assert!(close, "{}: NAMEGRAD_SEED={seed}, {call:?}", op.info.name);
        *counts.entry(op.info.name).or_default() += 1;
    });
    let missed: Vec<&str> = rows().map(|op| op.info.name).filter(|name| !counts.contains_key(name)).collect();
    // Its dims are contracted, and the dims of these are new.
    let unnamed = ["fft.stft", "complex.matmul"].into_iter().filter(|name| is_chosen(name));
    assert_eq!(missed, unnamed.collect::<Vec<_>>());
}
