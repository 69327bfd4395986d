//! Optimizers find known minima: of Rosenbrock's function, of an ill-conditioned quadratic, and of a logistic
//! regression on measured data.

use crate::formulas::optimizer;
use crate::table::table;
use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::{DType, NamedTensor, Result};
use namegrad_optim::{Lbfgs, LineSearch, Optimizer, OptimizerState};
use serde_json::{Value as Json, json};

fn parameter(values: &[f64]) -> Result<Parameter> {
    Parameter::new(Tensor::constant(NamedTensor::from_slice(values, [values.len()])?))
}

type Build<'b> = &'b dyn Fn(Parameter) -> Result<Box<dyn Optimizer>>;

fn values(parameter: &Parameter) -> Vec<f64> {
    parameter.tensor().to_vec().unwrap()
}

/// `100 (b - a²)² + (1 - a)²`, which is 0 at (1, 1).
fn rosenbrock(p: &Tensor) -> Result<Tensor> {
    let (a, b) = (p.select(0, 0)?, p.select(0, 1)?);
    b.sub(&a.square()?)?.square()?.mul(100.0)?.add(&a.sub(1.0)?.square()?)
}

/// The loss after some steps from the usual start.
fn after(steps: usize, build: impl FnOnce(Parameter) -> Result<Box<dyn Optimizer>>) -> Result<f64> {
    let p = parameter(&[-1.2, 1.0])?;
    let mut optimizer = build(p.clone())?;
    for _ in 0..steps {
        optimizer.step_with(&mut || rosenbrock(&p.tensor()))?;
    }
    Ok(rosenbrock(&p.tensor())?.value().to_vec::<f64>()?[0])
}

/// The squares of such gradients are infinite in `f32`.
#[test]
fn lbfgs_takes_gradients_of_any_size() -> Result<()> {
    for scale in [1.0, 1e16, 1e18, 1e19] {
        let p = Parameter::new(Tensor::constant(NamedTensor::from_slice(&[1.0_f32, 2.0, 3.0], [3])?))?;
        let factors = Tensor::constant(NamedTensor::from_slice(&[1.0_f32, 10.0, 100.0], [3])?);
        let builder =
            Lbfgs::builder([p.clone()]).line_search_fn(Some(LineSearch::StrongWolfe)).tolerance_grad(0.0);
        let mut optimizer = builder.tolerance_change(0.0).build()?;
        let mut loss = || p.tensor().square()?.mul(&factors)?.sum(..)?.mul(scale);
        let before = loss()?.item::<f64>()?;
        for _ in 0..4 {
            optimizer.step_with(&mut loss)?;
        }
        let after = loss()?.item::<f64>()?;
        assert!(after < 1e-6 * before, "scale {scale}: {after}");
    }
    Ok(())
}

#[test]
fn lbfgs_keeps_as_many_pairs_as_it_is_told() -> Result<()> {
    let p = parameter(&[-1.2, 1.0])?;
    let mut optimizer = Lbfgs::builder([p.clone()]).lr(0.1).max_iter(8).build()?;
    let mut step = |size: usize| -> Result<usize> {
        optimizer.groups_mut()[0].history_size = size;
        optimizer.step_with(&mut || rosenbrock(&p.tensor()))?;
        Ok(optimizer.state_dict().shared["ro"].numel())
    };
    assert_eq!((step(5)?, step(2)?, step(1)?, step(3)?), (5, 2, 1, 3));
    Ok(())
}

#[test]
fn lbfgs_computes_products_again_that_are_missing_or_nan() -> Result<()> {
    let run = |edit: &dyn Fn(&mut OptimizerState) -> Result<()>| -> Result<Vec<f32>> {
        let p = parameter(&[-1.2, 1.0])?;
        let mut optimizer = Lbfgs::builder([p.clone()]).lr(0.1).max_iter(8).build()?;
        optimizer.step_with(&mut || rosenbrock(&p.tensor()))?;
        let mut state = optimizer.state_dict();
        edit(&mut state)?;
        optimizer.load_state_dict(&state)?;
        optimizer.step_with(&mut || rosenbrock(&p.tensor()))?;
        p.tensor().to_vec()
    };
    let expected = run(&|_| Ok(()))?;
    let without = run(&|state| {
        state.shared.remove("products");
        Ok(())
    })?;
    let nan = run(&|state| {
        let products = &state.shared["products"];
        let products = products.full_like(f64::NAN, products.dtype())?;
        state.shared.insert("products".into(), products);
        Ok(())
    })?;
    assert_eq!((&without, &nan), (&expected, &expected));
    Ok(())
}

/// Builds an optimizer with these options for a parameter.
fn with(name: &'static str, options: Json) -> impl Fn(Parameter) -> Result<Box<dyn Optimizer>> {
    move |p| optimizer(name).build(&[p], &options)
}

#[test]
fn rosenbrock_is_minimized() -> Result<()> {
    let found = after(10, with("Lbfgs", json!({"line_search_fn": "strong_wolfe"})))?;
    assert!(found < 1e-8, "{found}");
    // Methods of first order follow the valley; the first steps of RAdam are too long for it.
    for (name, loss) in [
        ("sgd", after(3000, with("Sgd", json!({"lr": 2e-4, "momentum": 0.9})))?),
        ("adam", after(3000, with("Adam", json!({"lr": 0.02})))?),
        ("adamw", after(3000, with("AdamW", json!({"lr": 0.02, "weight_decay": 0.0})))?),
        ("nadam", after(3000, with("NAdam", json!({"lr": 0.02})))?),
        ("adamax", after(3000, with("Adamax", json!({"lr": 0.05})))?),
        ("rprop", after(3000, with("Rprop", json!({"lr": 0.01})))?),
        ("adagrad", after(3000, with("Adagrad", json!({"lr": 1.0})))?),
    ] {
        assert!(loss < 1e-2, "{name}: {loss}");
    }
    Ok(())
}

/// `Σ cᵢ (xᵢ - 1)² / 2` with `c` from 1 to 1000.
#[test]
fn an_ill_conditioned_quadratic_is_minimized() -> Result<()> {
    let curvature: Vec<f64> = (0..8).map(|i| 1000_f64.powf(f64::from(i) / 7.0)).collect();
    let curvature = Tensor::constant(NamedTensor::from_slice(&curvature, [2, 4])?);
    let loss = |p: &Parameter| p.tensor().sub(1.0)?.square()?.mul(&curvature)?.sum(..)?.div(2.0);
    // The learning rate falls to 0, as the steps of some methods do not.
    let run = |steps: usize, build: Build<'_>| {
        let p = Parameter::new(Tensor::constant(NamedTensor::zeros([2, 4])?.to(DType::F64)?))?;
        let mut optimizer = build(p.clone())?;
        let lr = optimizer.lr();
        for t in 0..steps {
            optimizer.set_lr(lr * (1.0 - t as f64 / steps as f64))?;
            optimizer.step_with(&mut || loss(&p))?;
        }
        loss(&p)?.value().to_vec::<f64>().map(|loss| loss[0])
    };
    for row in table() {
        let Some((options, steps, bound)) = row.minimizes else { continue };
        let name = row.name;
        let found = run(steps, &|p| optimizer(name).build(&[p], &options))?;
        assert!(found < bound, "{name}: {found}");
    }
    Ok(())
}

/// Temperature at launch in °F and whether an O-ring of the Space Shuttle was damaged: Dalal, Fowlkes,
/// Hoadley, *Risk Analysis of the Space Shuttle: Pre-Challenger Prediction of Failure* (Journal of the
/// American Statistical Association 84, 1989), table 1.
const LAUNCHES: [(u8, bool); 23] = [
    (66, false),
    (70, true),
    (69, false),
    (68, false),
    (67, false),
    (72, false),
    (73, false),
    (70, false),
    (57, true),
    (63, true),
    (70, true),
    (78, false),
    (67, false),
    (53, true),
    (67, false),
    (75, false),
    (70, false),
    (81, false),
    (76, false),
    (79, false),
    (75, true),
    (76, false),
    (58, true),
];

/// The maximum likelihood of a logistic regression, which is published as 15.0429 - 0.2322 · temperature.
#[test]
fn a_logistic_regression_has_the_known_optimum() -> Result<()> {
    // The temperature is centered and scaled, so that methods of first order converge as well.
    let scaled = |temperature: u8| (f64::from(temperature) - 70.0) / 10.0;
    let rows: Vec<f64> = LAUNCHES.iter().flat_map(|(temperature, _)| [1.0, scaled(*temperature)]).collect();
    let signs: Vec<f64> = LAUNCHES.iter().map(|(_, damaged)| if *damaged { -1.0 } else { 1.0 }).collect();
    let rows = Tensor::constant(NamedTensor::from_slice(&rows, [LAUNCHES.len(), 2])?);
    let signs = Tensor::constant(NamedTensor::from_slice(&signs, [LAUNCHES.len()])?);
    // ln(1 + exp(± x·w)) for each launch
    let loss = |w: &Parameter| rows.matmul(w.tensor())?.mul(&signs)?.exp()?.log1p()?.sum(..);
    let optimizers: [(usize, Build<'_>); 4] = [
        (5, &with("Lbfgs", json!({"line_search_fn": "strong_wolfe"}))),
        (3000, &with("Adam", json!({"lr": 0.02}))),
        (3000, &with("Sgd", json!({"lr": 0.02, "momentum": 0.9}))),
        (500, &with("Rprop", json!({"lr": 0.02}))),
    ];
    for (steps, build) in optimizers {
        let w = parameter(&[0.0, 0.0])?;
        let mut optimizer = build(w.clone())?;
        for _ in 0..steps {
            optimizer.step_with(&mut || loss(&w))?;
        }
        let [intercept, slope] = values(&w).try_into().unwrap();
        let (intercept, slope) = (intercept - 7.0 * slope, slope / 10.0);
        assert!(
            (intercept - 15.0429).abs() < 1e-3,
            "{optimizer:?}: {intercept}",
            optimizer = optimizer.lrs()
        );
        assert!((slope + 0.2322).abs() < 1e-4, "{slope}");
    }
    Ok(())
}

/// The first step is the gradient times `lr / Σ|g|`, which is no number of `f32`.
#[test]
fn steps_of_lbfgs_keep_the_digits_of_f64() -> Result<()> {
    let p = Parameter::new(Tensor::constant(NamedTensor::from_slice(&[0.1f64, 0.7], [2])?))?;
    let mut optimizer = Lbfgs::builder([p.clone()]).lr(1.0).max_iter(1).build()?;
    let slopes = Tensor::constant(NamedTensor::from_slice(&[3.0f64, 4.0], [2])?);
    optimizer.step_with(&mut || p.tensor().mul(&slopes)?.sum(..))?;
    let moved = p.tensor().detach().to_vec::<f64>()?;
    assert_eq!(moved, [0.1 - 3.0 / 7.0, 0.7 - 4.0 / 7.0]);
    Ok(())
}
