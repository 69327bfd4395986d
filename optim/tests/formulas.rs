//! Compares each optimizer with its formula, written out for one number in `f64`, for given gradients.

use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::{DType, NamedTensor, Result};
use namegrad_optim::{Adam, AdamW, Optimizer, Sgd};

const START: [f64; 6] = [1.5, -0.75, 0.25, -2.0, 0.5, 3.0];

/// The gradient in step `t`, from 1. Every number is representable in `bf16`, so that all dtypes get the same
/// numbers.
fn gradient(t: usize) -> Vec<f64> {
    (0..START.len()).map(|i| ((i * 5 + t * 3) % 7) as f64 / 4.0 - 0.75).collect()
}

fn tensor(values: &[f64], dtype: DType) -> Result<NamedTensor> {
    NamedTensor::from_slice(values, [("out", 2), ("in", 3)])?.to(dtype)
}

/// Makes three steps with the optimizer and with `formula`, a function of the number of the step, the
/// parameter and its gradient, for each element.
fn compare<F: FnMut(i32, f64, f64) -> f64>(
    optimizer: impl Fn(Parameter) -> Result<Box<dyn Optimizer>>,
    formula: impl Fn() -> F,
) -> Result<()> {
    for (dtype, tolerance) in [(DType::F64, 1e-14), (DType::F32, 1e-6)] {
        let parameter = Parameter::new(Tensor::constant(tensor(&START, dtype)?))?;
        let mut optimizer = optimizer(parameter.clone())?;
        let mut formulas: Vec<F> = START.iter().map(|_| formula()).collect();
        let mut expected = START;
        for t in 1..=3 {
            parameter.set_grad(Some(Tensor::constant(tensor(&gradient(t), dtype)?)))?;
            optimizer.step()?;
            for ((p, g), formula) in expected.iter_mut().zip(gradient(t)).zip(&mut formulas) {
                *p = formula(t as i32, *p, g);
            }
            for (found, expected) in parameter.tensor().to_vec::<f64>()?.iter().zip(&expected) {
                let error = (found - expected).abs();
                assert!(error <= tolerance * (1.0 + expected.abs()), "step {t}, {dtype}: {found} {expected}");
            }
        }
        let after = parameter.tensor();
        assert_eq!((after.dtype(), after.shape().names), (dtype, tensor(&START, dtype)?.names().clone()));
    }
    Ok(())
}

#[test]
fn plain_sgd() -> Result<()> {
    compare(|p| Ok(Box::new(Sgd::builder([p]).lr(0.1).build()?)), || |_, p, g| p - 0.1 * g)
}

#[test]
fn sgd_with_momentum_dampening_and_decay() -> Result<()> {
    let optimizer = |p| Sgd::builder([p]).lr(0.1).momentum(0.9).dampening(0.25).weight_decay(0.01).build();
    compare(
        |p| Ok(Box::new(optimizer(p)?)),
        || {
            let mut b = 0.0;
            move |t, p, g| {
                let d = g + 0.01 * p;
                b = if t == 1 { d } else { 0.9 * b + 0.75 * d };
                p - 0.1 * b
            }
        },
    )
}

#[test]
fn nesterov_that_ascends() -> Result<()> {
    compare(
        |p| Ok(Box::new(Sgd::builder([p]).lr(0.1).momentum(0.9).nesterov(true).maximize(true).build()?)),
        || {
            let mut b = 0.0;
            move |_, p, g| {
                b = 0.9 * b - g;
                p - 0.1 * (0.9 * b - g)
            }
        },
    )
}

/// Adam as in its paper: `m` and `v` are corrected before they are used.
fn adam(decay: f64, decoupled: f64, amsgrad: bool) -> impl FnMut(i32, f64, f64) -> f64 {
    let (mut m, mut v, mut max) = (0.0, 0.0, 0.0);
    move |t, p, g| {
        let p = p * (1.0 - 0.1 * decoupled);
        let d: f64 = g + decay * p;
        m = 0.8 * m + 0.2 * d;
        v = 0.95 * v + 0.05 * d * d;
        max = f64::max(max, v);
        let second = if amsgrad { max } else { v };
        p - 0.1 * (m / (1.0 - 0.8f64.powi(t))) / ((second / (1.0 - 0.95f64.powi(t))).sqrt() + 1e-3)
    }
}

#[test]
fn adam_with_decay() -> Result<()> {
    let optimizer = |p| Adam::builder([p]).lr(0.1).betas((0.8, 0.95)).eps(1e-3).weight_decay(0.05).build();
    compare(|p| Ok(Box::new(optimizer(p)?)), || adam(0.05, 0.0, false))
}

#[test]
fn adam_with_amsgrad() -> Result<()> {
    let optimizer = |p| Adam::builder([p]).lr(0.1).betas((0.8, 0.95)).eps(1e-3).amsgrad(true).build();
    compare(|p| Ok(Box::new(optimizer(p)?)), || adam(0.0, 0.0, true))
}

#[test]
fn adamw() -> Result<()> {
    let optimizer = |p| AdamW::builder([p]).lr(0.1).betas((0.8, 0.95)).eps(1e-3).weight_decay(0.5).build();
    compare(|p| Ok(Box::new(optimizer(p)?)), || adam(0.0, 0.5, false))?;
    let adam_form = |p| {
        Adam::builder([p]).lr(0.1).betas((0.8, 0.95)).eps(1e-3).weight_decay(0.5).decoupled_weight_decay(true)
    };
    compare(|p| Ok(Box::new(adam_form(p).build()?)), || adam(0.0, 0.5, false))
}

/// A gradient that is a view in another order of memory gives the same step.
#[test]
fn the_order_of_memory_does_not_matter() -> Result<()> {
    let columns = NamedTensor::from_slice(&[0.0, 3.0, 1.0, 4.0, 2.0, 5.0], [3, 2])?.reversed_dims();
    assert!(!columns.is_contiguous());
    let mut results = Vec::new();
    for (value, grad) in [
        (columns.clone(), columns.clone()),
        (columns.contiguous()?, columns.clone()),
        (columns.contiguous()?, columns.contiguous()?),
    ] {
        let parameter = Parameter::new(Tensor::constant(value))?;
        parameter.set_grad(Some(Tensor::constant(grad)))?;
        Sgd::builder([parameter.clone()]).lr(0.5).build()?.step()?;
        results.push(parameter.tensor().to_vec::<f64>()?);
    }
    assert!(results.iter().all(|result| *result == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]), "{results:?}");
    Ok(())
}
