//! The gradient scaler: PyTorch's scales, skipped steps, wrong orders of calls, and training in f16.

use namegrad::autograd::autocast;
use namegrad::prelude::*;
use namegrad_optim::{Adam, GradScaler, GradScalerState, Lbfgs, OptimizerState, clip_grad_norm_};

fn parameter(value: f64) -> Result<Parameter> {
    Parameter::new(Tensor::new([value])?)
}

fn number(parameter: &Parameter) -> f64 {
    parameter.tensor().item::<f64>().unwrap()
}

/// `p · by`, whose gradient is `by`.
fn loss(parameter: &Parameter, by: f64) -> Result<Tensor> {
    parameter.tensor().mul(by)?.sum(..)
}

fn refused<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind, words: &str) {
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (kind, file!()), "{error}");
    assert!(error.message().contains(words), "{error}");
}

#[test]
fn scales_and_steps_are_those_of_pytorch() -> Result<()> {
    // From `GradScaler` of PyTorch 2.15 with SGD and a rate of 0.5: in step t the gradient is 0.1 t, or
    // infinite. The scale, the good steps since it changed, and the parameter.
    let want = [
        (false, 8.0, 1, 1.0),
        (false, 8.0, 2, 0.95),
        (true, 2.0, 0, 0.95),
        (false, 2.0, 1, 0.8),
        (false, 2.0, 2, 0.6),
        (false, 4.0, 0, 0.35),
        (false, 4.0, 1, 0.05),
        (true, 1.0, 0, 0.05),
        (true, 0.25, 0, 0.05),
        (false, 0.25, 1, -0.4),
        (false, 0.25, 2, -0.9),
        (false, 0.5, 0, -1.45),
    ];
    let p = parameter(1.0)?;
    let mut optimizer = Sgd::builder([p.clone()]).lr(0.5).build()?;
    let builder = GradScaler::builder().init_scale(8.0).growth_factor(2.0).backoff_factor(0.25);
    let mut scaler = builder.growth_interval(3).build()?;
    for (t, (is_bad, scale, tracker, value)) in want.into_iter().enumerate() {
        optimizer.zero_grad();
        let by = if is_bad { [f64::INFINITY, f64::NAN][t % 2] } else { 0.1 * t as f64 };
        scaler.scale(&loss(&p, by)?)?.backward()?;
        assert_eq!(scaler.step(&mut optimizer)?, !is_bad, "step {t}");
        scaler.update()?;
        assert_eq!((scaler.scale_factor(), scaler.state_dict().growth_tracker), (scale, tracker), "step {t}");
        assert!((number(&p) - value).abs() < 1e-6, "step {t}: {}", number(&p));
    }
    assert_eq!((scaler.steps_taken(), scaler.steps_skipped()), (9, 3));
    Ok(())
}

#[test]
fn a_skipped_step_changes_neither_parameters_nor_state() -> Result<()> {
    let [good, bad] = [parameter(1.0)?, parameter(2.0)?];
    let mut both = Adam::new([good.clone(), bad.clone()])?;
    let mut scaler = GradScaler::new();
    let steps = |optimizer: &dyn Optimizer| {
        let OptimizerState { groups, .. } = optimizer.state_dict();
        groups[0]
            .parameters
            .iter()
            .map(|parameter| (parameter.steps, parameter.slots.len()))
            .collect::<Vec<_>>()
    };
    for nan in [f64::NAN, f64::NEG_INFINITY] {
        both.zero_grad();
        scaler.scale(&loss(&good, 1.0)?.add(&loss(&bad, nan)?)?)?.backward()?;
        assert!(!scaler.step(&mut both)?);
        scaler.update()?;
        assert_eq!([number(&good), number(&bad)], [1.0, 2.0]);
        assert_eq!(steps(&both), [(0, 0); 2]);
    }
    assert_eq!((scaler.steps_skipped(), scaler.scale_factor()), (2, 65536.0 / 4.0));
    Ok(())
}

#[test]
fn several_optimizers_and_batches_share_a_scale() -> Result<()> {
    let [a, b] = [parameter(1.0)?, parameter(1.0)?];
    let (mut first, mut second) =
        (Sgd::builder([a.clone()]).lr(1.0).build()?, Sgd::builder([b.clone()]).lr(1.0).build()?);
    let mut scaler = GradScaler::builder().growth_interval(1).build()?;
    for by in [0.25, 0.5] {
        scaler.scale(&loss(&a, by)?.add(&loss(&b, f64::INFINITY)?)?)?.backward()?;
    }
    assert_eq!([scaler.step(&mut first)?, scaler.step(&mut second)?], [true, false]);
    scaler.update()?;
    assert_eq!([number(&a), number(&b)], [0.25, 1.0]);
    assert_eq!(scaler.scale_factor(), 32768.0, "one was skipped");
    Ok(())
}

#[test]
fn unscaled_gradients_can_be_clipped() -> Result<()> {
    let [p, absent] = [parameter(0.0)?, parameter(0.0)?];
    let mut optimizer = Sgd::builder([p.clone(), absent.clone()]).lr(1.0).build()?;
    let mut scaler = GradScaler::new();
    scaler.scale(&loss(&p, 4.0)?)?.backward()?;
    assert_eq!(p.grad().unwrap().item::<f64>()?, 4.0 * 65536.0);
    scaler.unscale_(&optimizer)?;
    assert_eq!(clip_grad_norm_([&p], 2.0)?, 4.0);
    assert!(scaler.step(&mut optimizer)?);
    scaler.update()?;
    assert!((number(&p) + 2.0).abs() < 1e-6);
    // A parameter whose gradient comes after `unscale_` is unscaled in the step.
    optimizer.zero_grad();
    scaler.scale(&loss(&p, 1.0)?)?.backward()?;
    scaler.unscale_(&optimizer)?;
    scaler.scale(&loss(&absent, 1.0)?)?.backward()?;
    assert!(scaler.step(&mut optimizer)?);
    assert_eq!(number(&absent), -1.0);
    Ok(())
}

#[test]
fn calls_in_a_wrong_order_are_refused() -> Result<()> {
    use ErrorKind::{Autograd, DType as Type, Value};
    let p = parameter(1.0)?;
    let mut optimizer = Sgd::builder([p.clone()]).lr(0.5).build()?;
    let mut scaler = GradScaler::new();
    p.set_grad(Some(Tensor::new([1.0])?))?;
    let before = || (number(&p), p.grad().unwrap().item::<f64>().unwrap());
    let start = before();
    refused(scaler.unscale_(&optimizer), Autograd, "did not use scaler.scale(loss or outputs)");
    refused(scaler.step(&mut optimizer), Autograd, "no loss was scaled");
    refused(scaler.update(), Autograd, "no loss was scaled");
    assert_eq!(before(), start);

    p.zero_grad();
    let scaled = scaler.scale(&loss(&p, 1.0)?)?;
    refused(scaler.step(&mut optimizer), Autograd, "No inf checks were recorded for this optimizer");
    refused(scaler.update(), Autograd, "No inf checks were recorded prior to update");
    scaled.backward()?;
    scaler.unscale_(&optimizer)?;
    let start = before();
    refused(scaler.unscale_(&optimizer), Autograd, "has already been called on this optimizer");
    assert_eq!(before(), start);
    scaler.step(&mut optimizer)?;
    let start = before();
    refused(scaler.step(&mut optimizer), Autograd, "step() has already been called");
    refused(scaler.unscale_(&optimizer), Autograd, "is being called after step()");
    assert_eq!(before(), start);
    scaler.update()?;
    refused(scaler.step(&mut optimizer), Autograd, "no loss was scaled");
    refused(scaler.scale(&Tensor::new([1])?), Type, "no gradient to scale");

    let mut closure = Lbfgs::new([p.clone()])?;
    p.zero_grad();
    scaler.scale(&loss(&p, 1.0)?)?.backward()?;
    let start = before();
    refused(scaler.step(&mut closure), Autograd, "Closure use is not currently supported");
    assert_eq!(before(), start);
    scaler.step(&mut optimizer)?;
    scaler.update()?;

    // Gradients of f16 are refused, of bf16 they are not.
    for (dtype, fits) in [(DType::F16, false), (DType::BF16, true)] {
        let half = parameter(1.0)?;
        half.to_dtype(dtype)?;
        let mut optimizer = Sgd::builder([half.clone()]).lr(0.5).build()?;
        scaler.scale(&loss(&half, 1.0)?)?.backward()?;
        match fits {
            true => assert!(scaler.step(&mut optimizer)?),
            false => {
                refused(scaler.step(&mut optimizer), Type, "Attempting to unscale FP16 gradients");
                refused(scaler.unscale_(&optimizer), Type, "Attempting to unscale FP16 gradients");
            }
        }
        assert_eq!(number(&half), if fits { 0.5 } else { 1.0 });
    }
    for builder in [
        GradScaler::builder().init_scale(0.0),
        GradScaler::builder().init_scale(f64::NAN),
        GradScaler::builder().init_scale(1e300),
        GradScaler::builder().growth_factor(1.0),
        GradScaler::builder().growth_factor(f64::INFINITY),
        GradScaler::builder().backoff_factor(1.0),
        GradScaler::builder().backoff_factor(f64::NAN),
        GradScaler::builder().growth_interval(0),
    ] {
        refused(builder.build(), Value, "");
    }
    refused(scaler.update_to(-1.0), Value, "the scale must be positive");
    scaler.update_to(4.0)?;
    assert_eq!(scaler.scale_factor(), 4.0);
    Ok(())
}

#[test]
fn a_scaler_that_is_not_enabled_does_nothing() -> Result<()> {
    let p = parameter(1.0)?;
    let mut optimizer = Sgd::builder([p.clone()]).lr(0.5).build()?;
    let mut scaler = GradScaler::builder().enabled(false).build()?;
    assert!(!scaler.is_enabled());
    scaler.scale(&loss(&p, 1.0)?)?.backward()?;
    scaler.unscale_(&optimizer)?;
    assert!(scaler.step(&mut optimizer)?);
    scaler.update()?;
    assert_eq!((number(&p), scaler.scale_factor()), (0.5, 1.0));
    Ok(())
}

#[test]
fn the_scale_neither_overflows_nor_vanishes() -> Result<()> {
    let p = parameter(1.0)?;
    let mut optimizer = Sgd::builder([p.clone()]).lr(0.0).build()?;
    let mut go = |mut scaler: GradScaler, by: f64| {
        for _ in 0..300 {
            optimizer.zero_grad();
            scaler.scale(&loss(&p, by)?)?.backward()?;
            scaler.step(&mut optimizer)?;
            scaler.update()?;
        }
        Ok::<_, Error>(scaler.scale_factor())
    };
    let fast = || GradScaler::builder().growth_interval(1).build();
    assert_eq!(go(fast()?, 0.0)?, 2.0_f64.powi(127));
    assert!(go(fast()?, f64::NAN)? > 0.0);
    Ok(())
}

#[test]
fn a_state_continues_and_a_damaged_one_is_refused() -> Result<()> {
    let mut scaler = GradScaler::builder().init_scale(1024.0).growth_interval(7).build()?;
    let p = parameter(1.0)?;
    let mut optimizer = Sgd::builder([p.clone()]).lr(0.5).build()?;
    scaler.scale(&loss(&p, 1.0)?)?.backward()?;
    scaler.step(&mut optimizer)?;
    scaler.update()?;
    let file = scaler.state_dict().to_file()?;
    let state = GradScalerState::from_file(&file)?;
    assert_eq!((state.scale, state.growth_tracker, state.steps_taken), (1024.0, 1, 1));
    let mut resumed = GradScaler::new();
    resumed.load_state_dict(&state)?;
    assert_eq!(resumed.state_dict(), scaler.state_dict());
    for damaged in [
        GradScalerState { scale: f64::NAN, ..state.clone() },
        GradScalerState { scale: -2.0, ..state.clone() },
        GradScalerState { growth_factor: 0.5, ..state.clone() },
        GradScalerState { backoff_factor: 2.0, ..state.clone() },
        GradScalerState { growth_interval: 0, ..state.clone() },
    ] {
        refused(resumed.load_state_dict(&damaged), ErrorKind::Value, "the state is damaged");
        assert_eq!(resumed.state_dict(), scaler.state_dict());
    }
    let mut other = file.clone();
    other.metadata.insert("grad_scaler".into(), "[]".into());
    refused(GradScalerState::from_file(&other), ErrorKind::Format, "is not as expected");
    other.metadata.clear();
    refused(GradScalerState::from_file(&other), ErrorKind::Format, "not the state of a scaler");
    Ok(())
}

#[test]
fn a_perceptron_learns_in_f16() -> Result<()> {
    let train = |dtype, scaled: bool, shrink: f64| {
        manual_seed(3);
        let model = Sequential::new()
            .then(Linear::new(("in", 2), ("h", 32))?)
            .then(Relu)
            .then(Linear::new(("h", 32), ("class", 2))?);
        let points = Tensor::randn([("N", 128), ("in", 2)])?;
        let class = points.prod("in").gt(0).to(DType::I64)?;
        let mut optimizer = Adam::builder(model.parameters()).lr(0.02).eps(1e-30).build()?;
        let mut scaler = GradScaler::builder().enabled(scaled).build()?;
        let mut last = 0.0;
        for _ in 0..60 {
            // A loss so small that its gradients vanish in f16 without a scale.
            let loss = autocast(dtype, || F::cross_entropy(&model.forward(&points)?, &class, "class"))?;
            optimizer.zero_grad();
            scaler.scale(&loss.mul(shrink)?)?.backward()?;
            scaler.step(&mut optimizer)?;
            scaler.update()?;
            last = loss.item::<f64>()?;
        }
        Ok::<_, Error>(last)
    };
    let (plain, half) = (train(DType::F32, false, 1e-6)?, train(DType::F16, true, 1e-6)?);
    assert!(plain < 0.2 && (half - plain).abs() < 0.1, "{plain} and {half}");
    assert!(train(DType::F16, false, 1e-9)? > 2.0 * plain, "without a scale, gradients vanish");
    Ok(())
}

#[test]
fn a_parameter_of_two_optimizers_is_stepped_by_one() -> Result<()> {
    let [shared, own] = [parameter(1.0)?, parameter(1.0)?];
    let mut first = Adam::new([shared.clone()])?;
    let mut second = Adam::new([shared.clone(), own.clone()])?;
    let mut scaler = GradScaler::new();
    scaler.scale(&loss(&shared, 2.0)?.add(&loss(&own, 2.0)?)?)?.backward()?;
    scaler.step(&mut first)?;
    refused(scaler.step(&mut first), ErrorKind::Autograd, "step() has already been called");
    refused(scaler.step(&mut second), ErrorKind::Autograd, "another optimizer with a parameter of this one");
    Ok(())
}
