//! Checks the derivative of every op in the registry to second order, with random calls. Ops are called by
//! name, so a new op needs no line here. The draws differ in each run, and a failure prints the seed that
//! repeats it.

use namegrad::autograd::functional::{jvp, vjp};
use namegrad::autograd::{BackwardOptions, GradCheckOptions, grad_with, gradcheck_with, gradgradcheck_with};
use namegrad::core::Category;
use namegrad::ops::{Gradients, Op, OpInfo, Value};
use namegrad::prelude::*;
use namegrad_tests::draw::{Draw, Drawn, SEED};
use std::collections::BTreeMap;

/// The number of calls that are checked for each op.
const CALLS: usize = 3;

/// Whether an op has no derivative to compare with differences: a cast to a dtype with too few digits or
/// without fractions, or an op that overwrites the tensor with numbers.
fn is_flat(info: &OpInfo) -> bool {
    let casts_or_draws = ["cast", "random"].contains(&info.table) && info.tensors.len() == 1;
    casts_or_draws && !["to", "double"].contains(&info.name) || info.name == "zero_"
}

/// A call in `f64` whose results are finite. The numbers are in one of several ranges, because some functions
/// are defined only on an interval.
fn call_of(op: &Op, seed: u64) -> Option<Drawn> {
    let mut draw = Draw::distinct(seed);
    let sizes: Vec<usize> = (0..draw.below(4)).map(|_| 1 + draw.below(3)).collect();
    let floats = op.info.dtypes.contains(&Category::Float);
    let x = draw.tensor(&sizes, if floats { DType::F64 } else { DType::I64 });
    let mut call = Drawn::alike(op, &x, &mut draw);
    if !floats {
        // The tensors after integers may be floats, such as weights.
        call.tensors.iter_mut().skip(1).flat_map(|(_, x)| x).for_each(|x| {
            if x.dtype().is_floating_point() || !op.info.name.starts_with("nn.embedding") {
                *x = x.to(DType::F64).unwrap();
            }
        });
    }
    // A cast to another dtype has too few digits for a difference.
    call.args.retain(|(name, _)| {
        op.info
            .args
            .iter()
            .all(|arg| arg.name != *name || !["Cast", "DType", "Option<DType>"].contains(&arg.ty))
    });
    // Options that change the gradient of a table, but not its rows, or its rows, but not the gradient.
    call.args.retain(|(name, _)| !["padding_idx", "max_norm", "scale_grad_by_freq"].contains(name));
    // The steps between rounded fractions are as small as the differences.
    call.args.retain(|(name, value)| *name != "decimals" || matches!(value, Value::Int(..=0)));
    if op.info.args.iter().any(|arg| arg.ty == "DType") {
        call.args.push(("dtype", DType::F64.into()));
    }
    // Where `eps` limits a variance or a length, the derivative is that without the limit, as in PyTorch.
    let limited = ["nn.gaussian_nll_loss", "nn.cosine_similarity"].contains(&op.info.name);
    call.args.retain(|(name, _)| !limited || *name != "eps");
    // A derivative is for a rank that does not change, with the singular values that count as they are.
    call.args.retain(|(name, _)| !["atol", "rtol", "rcond"].contains(name));
    // The columns that only a full decomposition has are no function of the matrix.
    call.args.retain(|(name, value)| {
        *name != "full_matrices" && (op.info.name != "qr" || *value != Value::from("complete"))
    });
    if op.info.args.iter().any(|arg| arg.name == "full_matrices") {
        call.args.push(("full_matrices", false.into()));
    }
    // A hard sample has the gradient of the soft one.
    call.args.retain(|(name, _)| *name != "hard");
    let [scale, shift] = [[1.0, 0.0], [0.14, 0.5], [0.3, 2.1]][draw.below(3)];
    let call = call
        .map(|x| if x.dtype() == DType::F64 { x.mul(scale).unwrap().add(shift).unwrap() } else { x.clone() });
    // An element that no window of a pooling has is raised to the power as well: NaN if it is negative.
    let is_power = |(name, value): &(&str, Value)| {
        *name == "norm_type" && matches!(value, Value::Float(power) if power.fract() != 0.0)
    };
    let powers = call.args.iter().any(is_power);
    let call = call.map(|x| if powers && x.dtype() == DType::F64 { x.abs().unwrap() } else { x.clone() });
    // These have no derivative by the first tensor.
    let second_alone = ["zeta", "gammainc", "gammaincc"].contains(&op.info.name);
    let mut call = call;
    if second_alone {
        let first = &mut call.tensors[0].1[0];
        *first = first.to(DType::F32).unwrap();
    }
    let results = call.call(op).ok()?;
    (!results.is_empty() && results.iter().all(|y| y.numel() > 0 && finite(y))).then_some(call)
}

fn finite(y: &Tensor) -> bool {
    y.isfinite().and_then(|y| y.all(..)?.is_nonzero()).unwrap_or(false)
}

/// Ops on symmetric matrices, which share the gradient of what they read between both triangles.
const SYMMETRIC: [&str; 4] = ["cholesky", "cholesky_ex", "eigh", "eigvalsh"];

/// The floats among the tensors of a call.
fn leaves(call: &Drawn) -> Vec<Tensor> {
    call.tensors.iter().flat_map(|(_, x)| x).filter(|x| x.dtype() == DType::F64).cloned().collect()
}

/// Whether the results beside `given` are finite, nearly the same, and without a kink in between. A power of
/// a negative number is finite only where the exponent is a whole number, `copysign` jumps where the sign
/// changes, and a loss that is cut off at 0 has two slopes there.
fn is_smooth(of: impl Fn(&[Tensor]) -> Result<Tensor>, given: &[Tensor]) -> Result<bool> {
    const STEP: f64 = 1e-5;
    let beside = |step: f64| {
        // Steps of different lengths, because a difference of two inputs does not change when both do.
        let moved = given.iter().enumerate().map(|(number, x)| x.add(step * (1.0 + 0.3 * number as f64)));
        of(&moved.collect::<Result<Vec<Tensor>>>()?)
    };
    let (before, at, after) = (beside(-STEP)?, of(given)?, beside(STEP)?);
    let bend = after.add(&before)?.sub(at.mul(2)?)?.abs()?.amax(..)?.item::<f64>()?;
    Ok(finite(&before)
        && finite(&after)
        && after.allclose_with(&before, IscloseOptions::new().rtol(0.01).atol(0.01))?
        && bend < 0.01 * STEP)
}

/// The results of a call on other floats, with those that have a gradient joined into one tensor.
fn joined(op: &Op, call: &Drawn, given: &[Tensor]) -> Result<Tensor> {
    let mut call = call.clone();
    let floats = call.tensors.iter_mut().flat_map(|(_, x)| x).filter(|x| x.dtype() == DType::F64);
    for (x, given) in floats.zip(given) {
        // An op that has only an in-place form cannot write to a leaf.
        *x = if op.info.name.ends_with('_') { given.mul(1.0)? } else { given.clone() };
    }
    if SYMMETRIC.contains(&op.info.name) {
        let x = &mut call.tensors[0].1[0];
        *x = x.rename(None)?.add(x.rename(None).mt()?)?.mul(0.5)?;
    }
    let mut results = call.call(op)?;
    // Eigenvectors and singular vectors have no sign, and complex ones no phase.
    match op.info.name {
        "eig" => results[1] = results[1].square().sum(-1)?,
        "eigh" => results[1] = results[1].square()?,
        "svd" => [0, 2].into_iter().try_for_each(|at| results[at].square().map(|y| results[at] = y))?,
        _ => {}
    }
    let results = results.into_iter().filter(|y| y.dtype() == DType::F64);
    let flat = results.map(|y| y.rename(None)?.reshape([-1])).collect::<Result<Vec<Tensor>>>()?;
    Tensor::cat(&flat.iter().collect::<Vec<_>>(), 0)
}

#[test]
fn every_op_has_the_derivative_of_its_values() {
    // Beside a pole only small steps are small enough.
    let steps = [1e-5, 1e-7].map(|eps| GradCheckOptions { eps, atol: 1e-5, rtol: 1e-4 });
    let mut wrong = Vec::new();
    for op in
        namegrad_tests::ops().filter(|op| !matches!(op.gradients, Gradients::Constant | Gradients::Refused))
    {
        let name = op.info.name;
        if name == "nn.ctc_loss" {
            continue; // its gradient is that of logits: tests/nn/losses.rs checks it
        }
        let mut calls = 0;
        for seed in (0..4000).map(|k| SEED.wrapping_add(k)) {
            let Some(call) = call_of(op, seed) else { continue };
            let given = leaves(&call);
            let tracked: Vec<Tensor> = given.iter().map(|x| x.clone().requiring_grad().unwrap()).collect();
            // A result that does not depend on floats, such as a count, has no derivative to compare.
            if !joined(op, &call, &tracked).is_ok_and(|y| y.requires_grad()) {
                continue;
            }
            let of = |given: &[Tensor]| joined(op, &call, given);
            if !is_smooth(of, &given).unwrap_or(false) {
                continue;
            }
            let at =
                |step| gradcheck_with(of, &given, step).and_then(|_| gradgradcheck_with(of, &given, step));
            if let Err(error) =
                at(steps[0]).or_else(|_| at(steps[1])).and_then(|_| check_forward(&of, &given, seed))
            {
                wrong.push(format!("{name}: {error}; NAMEGRAD_SEED={seed} plays it again, with {call:?}"));
                break;
            }
            calls += 1;
            if calls == CALLS {
                break;
            }
        }
        if calls < CALLS && !is_flat(op.info) {
            wrong.push(format!("{name}: {calls} calls from NAMEGRAD_SEED={} on were checked", *SEED));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks forward mode against reverse mode, along random directions: `J v` against `Jᵀ u`, and second
/// derivatives in all orders of the modes.
fn check_forward(of: &dyn Fn(&[Tensor]) -> Result<Tensor>, given: &[Tensor], seed: u64) -> Result<()> {
    let mut draw = Draw::distinct(!seed);
    let inputs: Vec<&Tensor> = given.iter().collect();
    let v: Vec<Tensor> =
        given.iter().map(|x| draw.tensor(x.sizes(), DType::F64).rename(None)).collect::<Result<_>>()?;
    let v: Vec<&Tensor> = v.iter().collect();
    let product = |a: &[Tensor], b: &[&Tensor]| {
        let products = a.iter().zip(b).map(|(a, b)| a.rename(None)?.mul(b)?.sum(..));
        products.reduce(|a, b| a?.add(b?)).expect("at least one input")
    };
    let y = of(given)?;
    let u = draw.tensor(y.sizes(), DType::F64).rename(None)?;
    let scalar = |x: &[Tensor]| of(x)?.mul(&u)?.sum(..);
    let gradients = |x: &[Tensor]| vjp(scalar, &x.iter().collect::<Vec<_>>(), None).map(|(_, all)| all);
    let along = |x: &[Tensor]| jvp(scalar, &x.iter().collect::<Vec<_>>(), &v).map(|(_, along)| along);
    let (same, along_v) = jvp(of, &inputs, &v)?;
    let of_v = product(&gradients(given)?, &v)?;
    let twice = |x: &[Tensor]| product(&gradients(x)?, &v);
    let reverse = product(&vjp(twice, &inputs, None)?.1, &v)?;
    let pairs = [
        ("the value beside a tangent", same.sub(&y)?.abs()?.sum(..)?, y.zeros_like()?.sum(..)?),
        ("a tangent", product(&[along_v], &[&u])?, of_v),
        ("forward over reverse", jvp(twice, &inputs, &v)?.1, reverse.clone()),
        ("reverse over forward", product(&vjp(along, &inputs, None)?.1, &v)?, reverse.clone()),
        ("forward over forward", jvp(along, &inputs, &v)?.1, reverse),
    ];
    for (what, a, b) in pairs {
        let options = IscloseOptions::new().rtol(1e-6).atol(1e-6).equal_nan(true);
        if !a.allclose_with(&b, options)? {
            return Err(Error::new(ErrorKind::Other, "jvp", format!("{what} is {a}, and should be {b}")));
        }
    }
    Ok(())
}

/// Numbers at which formulas divide by zero, choose between equals, or subtract infinities.
const SPECIAL: [f64; 7] = [0.0, -0.0, 0.0, 1.0, -2.0, f64::INFINITY, f64::NEG_INFINITY];

/// Ops with calls on such numbers whose results are finite, but which have a gradient of NaN: powers and
/// logarithms of 0, lengths and angles of zero vectors, singular matrices and equal eigenvalues, and factors
/// of 0 with infinities. An op that no
/// longer has one is removed from the list.
const NAN: [&str; 25] = [
    "atan2",
    "bernoulli_cross_entropy",
    "cholesky_ex",
    "eig",
    "eigvals",
    "erfcx",
    "float_power",
    "hypot",
    "lu",
    "lu_factor_ex",
    "nn.attention",
    "nn.cosine_embedding_loss",
    "nn.kl_div",
    "nn.lp_pool1d",
    "nn.lp_pool2d",
    "nn.lp_pool3d",
    "nn.margin_ranking_loss",
    "pow",
    "qr",
    "sample_at_input",
    "scaled_dot_product_attention",
    "solve",
    "solve_ex",
    "svd",
    "xlogy",
];

/// The gradients of a call, by the kernels or by formulas that can be differentiated.
fn gradients_of(y: &Tensor, given: &[Tensor], create_graph: bool) -> Result<Vec<Option<Tensor>>> {
    let options = BackwardOptions {
        create_graph,
        retain_graph: true,
        allow_unused: true,
        ..BackwardOptions::default()
    };
    grad_with(&[&y.sum(..)?], &given.iter().collect::<Vec<_>>(), &[], options)
}

/// At zeros, ties and infinities, gradients are numbers wherever all results are finite.
#[test]
fn gradients_of_finite_results_are_numbers() {
    let mut wrong = BTreeMap::new();
    for op in
        namegrad_tests::ops().filter(|op| !matches!(op.gradients, Gradients::Constant | Gradients::Refused))
    {
        for seed in 0..200 {
            let mut draw = Draw::new(seed);
            let sizes: Vec<usize> = (0..draw.below(4)).map(|_| 1 + draw.below(3)).collect();
            let drawn = Drawn::alike(op, &draw.tensor(&sizes, DType::F64), &mut draw);
            // The first tensor is special; the others sometimes.
            let mut call = drawn.clone();
            call.args.retain(|(_, value)| op.info.name != "qr" || *value != Value::from("complete"));
            for (at, x) in call.tensors.iter_mut().flat_map(|(_, x)| x).enumerate() {
                if x.dtype() == DType::F64 && (at == 0 || draw.below(3) == 0) {
                    let numbers: Vec<f64> = (0..x.numel()).map(|_| SPECIAL[draw.below(7)]).collect();
                    *x = Tensor::from_slice(&numbers, x.sizes()).unwrap();
                }
            }
            if !call.call(op).is_ok_and(|results| results.iter().all(finite)) {
                continue;
            }
            let given: Vec<Tensor> = leaves(&call).into_iter().map(|x| x.requiring_grad().unwrap()).collect();
            let Ok(y) = joined(op, &call, &given) else { continue };
            for recorded in [false, true].into_iter().filter(|_| y.requires_grad()) {
                let gradients = gradients_of(&y, &given, recorded).unwrap();
                if gradients
                    .iter()
                    .flatten()
                    .any(|g| g.isnan().unwrap().any(..).unwrap().is_nonzero().unwrap())
                {
                    wrong.entry(op.info.name).or_insert(format!("{gradients:?} of {call:?}"));
                }
            }
        }
    }
    let listed = NAN.into_iter().filter(|name| namegrad_tests::is_chosen(name));
    let found: Vec<&str> = wrong.keys().copied().collect();
    assert_eq!(found, listed.collect::<Vec<_>>(), "gradients of NaN: {wrong:#?}");
}
