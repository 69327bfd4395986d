//! The health of parameters: numbers against plain references, and a watch that stops before anything
//! changes.

use namegrad::autograd::Op;
use namegrad::core::NamedTensor;
use namegrad::prelude::*;
use namegrad::train::{HealthWatch, TensorHealth, health};

fn model() -> Result<Sequential> {
    Ok(Sequential::new()
        .then_named("hidden", Linear::new(("in", 3), ("h", 4))?)
        .then_named("relu", Relu)
        .then_named("out", Linear::new(("h", 4), ("out", 2))?))
}

fn values(model: &impl Module) -> Vec<Vec<f32>> {
    model.parameters().iter().map(|parameter| parameter.tensor().to_vec().unwrap()).collect()
}

#[test]
fn norms_zeros_and_updates() -> Result<()> {
    manual_seed(2);
    let model = model()?;
    let mut optimizer = Sgd::builder(model.parameters()).lr(0.25).build()?;
    let mut watch = HealthWatch::new(model.named_parameters());
    let x = Tensor::randn([("N", 5), ("in", 3)])?;
    assert!(watch.report()?.rows().iter().all(|row| row.grad.is_none() && row.update.is_none()));
    model.forward(&x)?.square()?.sum(..)?.backward()?;
    watch.remember();
    optimizer.step()?;
    let report = watch.report()?;
    println!("{report}");
    let norm = |list: &[f32]| list.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    for (row, (path, parameter)) in report.rows().iter().zip(model.named_parameters()) {
        let (value, grad) = (parameter.tensor().to_vec::<f32>()?, parameter.grad().unwrap().to_vec::<f32>()?);
        let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-6 * b.abs(), "{path}: {a} {b}");
        assert_eq!(row.path, path);
        close(row.value.norm, norm(&value));
        close(row.grad.unwrap().norm, norm(&grad));
        assert!((row.update.unwrap().norm - 0.25 * norm(&grad)).abs() < 1e-5);
        close(row.update_ratio().unwrap(), row.update.unwrap().norm / norm(&value));
        let zeros = grad.iter().filter(|x| **x == 0.0).count() as f64 / grad.len() as f64;
        assert_eq!(row.grad.unwrap().zeros, zeros);
    }
    assert!(report.to_string().lines().nth(1).unwrap().starts_with("hidden.weight  [h=4, in=3]"), "{report}");
    assert!(report.to_string().ends_with("nan and infinite count elements of all three"), "{report}");
    assert_eq!(report.scalars().len(), 4 * 5);
    Ok(())
}

#[test]
fn numbers_at_the_edges() -> Result<()> {
    let of = |list: &[f64]| TensorHealth::of(&NamedTensor::from_slice(list, [list.len()])?);
    let relative = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-12;
    assert!(relative(of(&[3e200, 4e200])?.norm, 5e200) && relative(of(&[3e-200, -4e-200])?.norm, 5e-200));
    assert_eq!((of(&[])?.norm, of(&[])?.zeros, of(&[0.0, -0.0])?.zeros), (0.0, 0.0, 1.0));
    let bad = of(&[f64::NAN, f64::INFINITY, -f64::INFINITY, 0.0])?;
    assert_eq!((bad.nan, bad.infinite, bad.zeros, bad.is_finite()), (1, 2, 0.25, false));
    assert!(of(&[1.0, f64::INFINITY])?.norm.is_infinite());
    let half = Tensor::new([3.0, 4.0])?.to(DType::BF16)?.t()?;
    assert_eq!(TensorHealth::of(half.value())?.norm, 5.0);
    Ok(())
}

/// The text of the error of a step that must fail, after which the parameters are as before.
#[track_caller]
fn stopped(model: &Sequential, loss: impl FnOnce(&Sequential) -> Result<Tensor>) -> String {
    let mut optimizer = Sgd::builder(model.parameters()).lr(0.1).build().unwrap();
    let before = values(model);
    let mut watch = HealthWatch::new(model.named_parameters());
    let error = watch.step(|| {
        optimizer.zero_grad();
        loss(model)?.backward()?;
        optimizer.step()
    });
    assert_eq!(values(model), before);
    assert!(model.parameters().iter().all(|parameter| parameter.grad().is_none()));
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Autograd, "{error}");
    error.to_string()
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "no '{part}' in: {text}"));
}

#[test]
fn a_watch_stops_at_the_first_bad_value() -> Result<()> {
    manual_seed(2);
    let model = model()?;
    let x = Tensor::ones([("N", 5), ("in", 3)])?;

    // In the forward pass: infinite, long before it becomes NaN, of an op without and with a parameter.
    let line = line!() + 2;
    let text = stopped(&model, |model| {
        let big = model.forward(&x)?.mul(0.0)?.add(1000.0)?.exp()?;
        big.sub(&big)?.sum(..)
    });
    has(
        &text,
        &["Function 'exp' returned nan or infinite values in the forward pass", &format!("health.rs:{line}")],
    );
    let weight = model.named_parameters()[0].1.clone();
    let text = stopped(&model, |_| weight.tensor().div(0.0)?.sum(..));
    has(&text, &["Function 'div'", "its inputs include the parameter 'hidden.weight'"]);

    // In the backward pass, far from and directly at a parameter.
    let line = line!() + 1;
    let text = stopped(&model, |model| model.forward(&x)?.mul(0.0)?.sqrt()?.sum(..));
    let all = "leads to, the gradient of 'hidden.weight', 'hidden.bias', 'out.weight', 'out.bias'";
    has(&text, &["Function 'sqrt'", "in the gradient", &format!("health.rs:{line}"), all]);
    has(&text, &["try: x.add(1e-12)?.sqrt()?"]);
    let bias = model.named_parameters()[3].1.clone();
    let text = stopped(&model, |model| {
        let at_zero = bias.tensor().sub(bias.tensor().detach())?;
        model.forward(&x)?.sum(..)?.add(at_zero.abs()?.pow(0.5)?.sum(..)?)
    });
    has(&text, &["Function 'pow'", "the gradient of 'out.bias'"]);
    assert!(!text.contains("hidden"), "{text}");

    // In the data: the hint says nothing of functions that the program did not call.
    let bad = x.mul(f64::NAN)?;
    let text = stopped(&model, |model| model.forward(&bad)?.sum(..));
    has(&text, &["was given an input", "was nan or infinite already, from the data"]);
    assert!(!text.contains("detect_anomaly"), "{text}");

    // An op of a user.
    let text = stopped(&model, |model| {
        let y = model.forward(&x)?;
        Op::new("mine", y.value().clone()).input(&y, |g, _| g.div(0.0)).output().sum(..)
    });
    has(&text, &["Function 'mine'", "'out.bias'"]);
    Ok(())
}

#[test]
fn infinite_masks_are_fine() -> Result<()> {
    let model = model()?;
    let mut watch = HealthWatch::new(model.named_parameters());
    let mut optimizer = Adam::new(model.parameters())?;
    let before = values(&model);
    watch.step(|| {
        let y = model.forward(&Tensor::ones([("N", 5), ("in", 3)])?)?;
        let mask = Tensor::new([true, false])?.refine_names(["out"])?;
        let loss = y.masked_fill(&mask, f64::NEG_INFINITY)?.softmax("out")?.square()?.sum(..)?;
        loss.add(y.square()?.sum(..)?)?.backward()?;
        optimizer.step()
    })?;
    assert_ne!(values(&model), before);
    assert!(
        watch
            .report()?
            .rows()
            .iter()
            .all(|row| row.update.unwrap().norm > 0.0 || row.grad.unwrap().norm == 0.0)
    );
    Ok(())
}

#[test]
fn bad_parameters_are_named() -> Result<()> {
    let model = model()?;
    // With random ones, the gradients of a hidden unit can be 0, and its step finite.
    for parameter in model.parameters() {
        parameter.update(|value| value.fill_(1.0).map(drop))?;
    }
    let mut watch = HealthWatch::new(model.named_parameters());
    let out = model.named_parameters()[2].1.clone();
    // An enormous rate: the gradients are finite, the step is not.
    let mut optimizer = Sgd::builder(model.parameters()).lr(1e38).build()?;
    let x = Tensor::ones([("N", 5), ("in", 3)])?;
    let error = watch.step(|| {
        model.forward(&x)?.sum(..)?.mul(1e6)?.backward()?;
        optimizer.step()
    });
    let error = error.unwrap_err();
    has(&error.to_string(), &["parameter 'hidden.", "after the step", "learning rate", "health.rs"]);
    out.update(|value| value.fill_(f64::NAN).map(drop))?;
    for parameter in model.parameters().iter().filter(|parameter| !parameter.is(&out)) {
        parameter.update(|value| value.fill_(1.0).map(drop))?;
    }
    let mut ran = false;
    let error = watch.step(|| {
        ran = true;
        Ok(())
    });
    has(
        &error.unwrap_err().to_string(),
        &["parameter 'out.weight' has 8 nan and 0 infinite values before the step"],
    );
    assert!(!ran);
    assert_eq!(health(model.named_parameters())?.first_bad().unwrap().path, "out.weight");
    // An error of the step itself stays as it is.
    out.update(|value| value.fill_(1.0).map(drop))?;
    let error = watch.step(|| x.sum("Z")).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::NameNotFound, "sum"));
    Ok(())
}
