//! Tests for every optimizer: resuming, half types, ascending, refused hyperparameters.

use crate::formulas::optimizer;
use crate::table::table;
use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::{DType, ErrorKind, NamedTensor, Result};
use namegrad_optim::{Adam, Lbfgs, LineSearch, Muon, Optimizer, OptimizerState, Rprop, Sgd};
use namegrad_tests::list::OPTIMIZERS;
use serde_json::json;

type Made = Result<Box<dyn Optimizer>>;
type Make = Box<dyn Fn(Vec<Parameter>) -> Made>;

/// Every optimizer in each of its forms.
fn every() -> Vec<(String, Make)> {
    let mut every: Vec<(String, Make)> = Vec::new();
    for row in table() {
        for options in row.forms {
            let (name, entry) = (format!("{} {options}", row.name), optimizer(row.name));
            every.push((name, Box::new(move |parameters| entry.build(&parameters, &options))));
        }
    }
    every
}

/// Two matrices, with values that a half type has.
fn start(dtype: DType) -> Result<Vec<Parameter>> {
    [(0, [3, 4]), (5, [4, 3])]
        .into_iter()
        .map(|(shift, sizes)| {
            let values: Vec<f64> = (0..12).map(|i| ((i * 7 + shift) % 11) as f64 / 8.0 - 0.5).collect();
            let value = NamedTensor::from_slice(&values, [("out", sizes[0]), ("in", sizes[1])])?;
            Parameter::new(Tensor::constant(value.to(dtype)?))
        })
        .collect()
}

/// A loss with another curvature along each element, computed in `f32` or `f64`.
fn loss(parameters: &[Parameter]) -> Result<Tensor> {
    let mut total = Tensor::constant(NamedTensor::zeros(())?);
    for (k, parameter) in parameters.iter().enumerate() {
        let value = parameter.tensor();
        let wide = value.to(value.dtype().compute())?;
        let curvature = NamedTensor::arange(0.5, 12.5, 1.0, wide.dtype())?.reshape(wide.sizes())?;
        let square = wide.sub(0.25 * (k + 1) as f64)?.square()?.mul(Tensor::constant(curvature))?;
        total = total.to(wide.dtype())?.add(&square.sum(..)?.mul(0.1)?)?;
    }
    Ok(total)
}

fn step(parameters: &[Parameter], optimizer: &mut dyn Optimizer, t: usize) -> Result<f64> {
    // A schedule, with numbers that have no short decimal form.
    let lr = optimizer.lr();
    optimizer.set_lr(lr * (1.0 - 0.01 / (t + 3) as f64))?;
    optimizer.step_with(&mut || loss(parameters))?.value().to_vec::<f64>().map(|loss| loss[0])
}

fn values(parameters: &[Parameter]) -> Vec<Vec<f64>> {
    parameters.iter().map(|parameter| parameter.tensor().to_vec().unwrap()).collect()
}

/// Twelve steps must give the same bits as seven steps, saving and loading into new objects, and five more.
#[test]
fn resumed_training_is_equal_in_every_bit() -> Result<()> {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for (name, make) in every() {
            let run =
                |parameters: &[Parameter], optimizer: &mut dyn Optimizer, steps: std::ops::Range<usize>| {
                    steps.into_iter().try_for_each(|t| step(parameters, optimizer, t).map(drop))
                };
            let whole = start(dtype)?;
            run(&whole, &mut *make(whole.clone())?, 0..12)?;

            let first = start(dtype)?;
            let mut optimizer = make(first.clone())?;
            run(&first, &mut *optimizer, 0..7)?;
            let file = optimizer.state_dict().to_file()?.to_bytes()?;
            let state = OptimizerState::from_file(&namegrad_io::TensorFile::from_bytes(&file)?)?;
            assert_eq!(state.to_file()?.to_bytes()?, file, "{name}");
            let second = start(dtype)?;
            for (to, from) in second.iter().zip(&first) {
                to.set(from.tensor().value())?;
            }
            let mut resumed = make(second.clone())?;
            resumed.load_state_dict(&state)?;
            run(&second, &mut *resumed, 7..12)?;
            assert_eq!(values(&whole), values(&second), "{name}, {dtype}");
        }
    }
    Ok(())
}

#[test]
fn the_loss_falls() -> Result<()> {
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for (name, make) in every() {
            let parameters = start(dtype)?;
            let mut optimizer = make(parameters.clone())?;
            let first = step(&parameters, &mut *optimizer, 0)?;
            for t in 1..25 {
                step(&parameters, &mut *optimizer, t)?;
            }
            let last = loss(&parameters)?.value().to_vec::<f64>()?[0];
            assert!(last < 0.7 * first, "{name}, {dtype}: {first} {last}");
            assert!(
                parameters.iter().all(|parameter| *parameter.tensor().names() == ["out", "in"]),
                "{name}"
            );
        }
    }
    Ok(())
}

/// A parameter of a half type is the rounded parameter of a run in `f32`, if both have the same gradients.
#[test]
fn half_types_have_masters_in_f32() -> Result<()> {
    for dtype in [DType::F16, DType::BF16] {
        for (name, make) in every().into_iter().filter(|(name, _)| !name.contains("Lbfgs")) {
            let (half, single) = (start(dtype)?, start(DType::F32)?);
            let mut optimizers = [make(half.clone())?, make(single.clone())?];
            for t in 1..=20 {
                for (half, single) in half.iter().zip(&single) {
                    let grad = half.tensor().value().mul((t % 5) as f64 / 4.0 - 0.25)?.unnamed();
                    half.set_grad(Some(Tensor::constant(grad.clone())))?;
                    single.set_grad(Some(Tensor::constant(grad.to(DType::F32)?)))?;
                }
                optimizers.iter_mut().try_for_each(|optimizer| optimizer.step())?;
                for (half, single) in half.iter().zip(&single) {
                    let rounded = single.tensor().value().to(dtype)?.to_vec::<f64>()?;
                    assert_eq!(half.tensor().to_vec::<f64>()?, rounded, "{name}, {dtype}, step {t}");
                }
            }
        }
    }
    Ok(())
}

/// A step that is lost in a half type adds up in its master, which follows the parameter if that is changed.
#[test]
fn a_master_keeps_small_steps_and_follows_its_parameter() -> Result<()> {
    let start = NamedTensor::ones([("in", 3)])?.to(DType::BF16)?;
    let parameter = Parameter::new(Tensor::constant(start))?;
    let mut optimizer = Sgd::builder([parameter.clone()]).lr(1e-3).build()?;
    let set_grad = || {
        let grad = NamedTensor::from_slice(&[1.0, -1.0, 0.0], [3])?.to(DType::BF16)?;
        parameter.set_grad(Some(Tensor::constant(grad)))
    };
    let found = || parameter.tensor().to_vec::<f32>();
    set_grad()?;
    optimizer.step()?;
    assert_eq!(found()?, [1.0, 1.0, 1.0]); // 0.999 rounds to 1
    for _ in 1..100 {
        optimizer.step()?;
    }
    let master = |optimizer: &Sgd| optimizer.state_dict().groups[0].parameters[0].master.clone();
    let kept = master(&optimizer).unwrap();
    for (kept, expected) in kept.to_vec::<f32>()?.into_iter().zip([0.9, 1.1, 1.0]) {
        assert!((kept - expected).abs() < 1e-5, "{kept}");
    }
    assert_eq!(*kept.names(), ["in"]);
    assert_eq!(found()?, kept.to(DType::BF16)?.to_vec::<f32>()?);

    // Only the element that was changed is taken.
    parameter.update(|value| {
        let mut changed = value.to_vec::<f32>()?;
        changed[2] = 5.0;
        *value = NamedTensor::from_slice(&changed, [("in", 3)])?.to(DType::BF16)?;
        Ok(())
    })?;
    optimizer.step()?;
    for (kept, expected) in master(&optimizer).unwrap().to_vec::<f32>()?.into_iter().zip([0.899, 1.101, 5.0])
    {
        assert!((kept - expected).abs() < 1e-5, "{kept}");
    }

    // A parameter that is no longer of a half type needs none.
    parameter.to_dtype(DType::F32)?;
    parameter.set_grad(Some(Tensor::constant(NamedTensor::ones([3])?)))?;
    optimizer.step()?;
    assert!(master(&optimizer).is_none());
    Ok(())
}

/// Ascending on the negative loss gives the same parameters as descending.
#[test]
fn ascending_is_descending_on_the_negative_loss() -> Result<()> {
    for entry in &OPTIMIZERS {
        if !entry.defaults().rows().iter().any(|row| row.name == "maximize") {
            continue;
        }
        let (down, up) = (start(DType::F64)?, start(DType::F64)?);
        let mut descending = entry.build(&down, &json!({}))?;
        let mut ascending = entry.build(&up, &json!({"maximize": true}))?;
        for _ in 0..4 {
            descending.step_with(&mut || loss(&down))?;
            ascending.step_with(&mut || loss(&up)?.neg())?;
        }
        assert_eq!(values(&down), values(&up), "{}", entry.name());
    }
    Ok(())
}

/// Many parameters that are stepped on several threads get the same steps as each one alone.
#[test]
fn short_parameters_are_stepped_at_once() -> Result<()> {
    let sizes = [200, 300];
    let count = (1 << 17) / (sizes[0] * sizes[1]) + 40;
    let value = |k: usize| {
        let numbers: Vec<f32> = (0..60_000).map(|i| ((i + k * 17) % 101) as f32 / 50.0 - 1.0).collect();
        NamedTensor::from_slice(&numbers, sizes)
    };
    let all = (0..count).map(|k| Parameter::new(Tensor::constant(value(k)?))).collect::<Result<Vec<_>>>()?;
    let mut together = Adam::builder(all.clone()).lr(0.1).build()?;
    for (k, parameter) in all.iter().enumerate() {
        parameter.set_grad(Some(Tensor::constant(value(k + 1)?)))?;
    }
    together.step()?;
    together.step()?;
    for (k, parameter) in all.iter().enumerate().step_by(7) {
        let alone = Parameter::new(Tensor::constant(value(k)?))?;
        let mut optimizer = Adam::builder([alone.clone()]).lr(0.1).build()?;
        alone.set_grad(Some(Tensor::constant(value(k + 1)?)))?;
        optimizer.step()?;
        optimizer.step()?;
        assert_eq!(parameter.tensor().to_vec::<f32>()?, alone.tensor().to_vec::<f32>()?, "{k}");
    }
    let state = together.state_dict();
    assert!(state.groups[0].parameters.iter().all(|parameter| parameter.steps == 2));
    Ok(())
}

/// Gradients of several backward passes add up until `zero_grad`, so that a step can be of several batches.
#[test]
fn gradients_accumulate() -> Result<()> {
    let (whole, parts) = (start(DType::F64)?, start(DType::F64)?);
    let mut optimizers = [Adam::builder(whole.clone()).build()?, Adam::builder(parts.clone()).build()?];
    for _ in 0..3 {
        optimizers.iter().for_each(|optimizer| optimizer.zero_grad());
        loss(&whole)?.backward()?;
        for _ in 0..4 {
            loss(&parts)?.div(4.0)?.backward()?;
        }
        optimizers.iter_mut().try_for_each(|optimizer| optimizer.step())?;
    }
    for (whole, parts) in values(&whole).into_iter().flatten().zip(values(&parts).into_iter().flatten()) {
        assert!((whole - parts).abs() < 1e-12);
    }
    Ok(())
}

/// The refusals of `torch.optim`, in its words. Nothing but the message after them differs.
#[test]
fn refusals_have_the_words_of_pytorch() -> Result<()> {
    for (name, options, message) in [
        ("Sgd", json!({"nesterov": true}), "Nesterov momentum requires a momentum and zero dampening"),
        ("Adadelta", json!({"rho": 1.5}), "Invalid rho value: 1.5; it must be at least 0 and at most 1"),
        ("Adagrad", json!({"eps": -1.0}), "Invalid epsilon value: -1.0; it must be finite and not negative"),
        ("Adafactor", json!({"beta2_decay": 0.5}), "beta2_decay should be <= 0 but is: 0.5"),
        ("Adafactor", json!({"eps": [-1.0, 1e-3]}), "epsilon1 should be >= 0 but is: -1.0"),
        ("Adafactor", json!({"eps": [null, -1.0]}), "epsilon2 should be >= 0 but is: -1.0"),
        ("Adafactor", json!({"d": 0.5}), "Clipping threshold d should be >= 1 but is: 0.5"),
        (
            "Adamax",
            json!({"betas": [0.9, 1.0]}),
            "Invalid beta parameter at index 1: 1.0; it must be at least 0",
        ),
        ("Lion", json!({"weight_decay": -1.0}), "Invalid weight_decay value: -1.0"),
        ("Muon", json!({"lr": -1.0}), "Learning rate should be >= 0 but is: -1.0"),
        (
            "Muon",
            json!({"ns_steps": 100}),
            "Number of steps must be less than 100 for computational efficiency",
        ),
        ("NAdam", json!({"momentum_decay": -1.0}), "Invalid momentum_decay value: -1.0"),
        (
            "Rprop",
            json!({"etas": [0.5, 0.9]}),
            "Invalid eta values: 0.5, 0.9; it must be that 0 < η₋ < 1 < η₊",
        ),
        ("Sgd", json!({"lr": "high"}), "invalid type: string \"high\", expected f64"),
        ("Sgd", json!({"speed": 1.0}), "unknown field `speed`, expected one of `lr`, `momentum`"),
    ] {
        let error = optimizer(name).build(&start(DType::F32)?, &options).err();
        let error = error.unwrap_or_else(|| panic!("'{message}' is not refused"));
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()), "{error}");
        assert!(error.message().starts_with(message), "{error}");
    }
    let error = Rprop::builder(start(DType::F32)?).step_sizes((f64::NAN, 1.0)).build().unwrap_err();
    assert!(error.message().starts_with("Invalid smallest step size: NaN; it must be a number"), "{error}");
    let p = || start(DType::F32).unwrap();
    let vector = Parameter::new(Tensor::constant(NamedTensor::ones([3])?))?;
    let error = Muon::builder([vector.clone()]).build().unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Shape, file!()), "{error}");
    let mut muon = Muon::builder(p()).build()?;
    let error = muon.add_group([vector], |_| ()).unwrap_err();
    assert_eq!((error.kind(), error.location().file(), muon.lrs().len()), (ErrorKind::Shape, file!(), 1));
    Ok(())
}

#[test]
fn lbfgs_needs_a_closure_and_one_group() -> Result<()> {
    let parameters = start(DType::F64)?;
    let before = values(&parameters);
    let mut optimizer = Lbfgs::builder(parameters.clone()).build()?;
    loss(&parameters)?.backward()?;
    let error = optimizer.step().unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Autograd, file!()), "{error}");
    assert!(error.to_string().contains("step_with"), "{error}");
    assert_eq!(values(&parameters), before);

    let [a, b]: [Parameter; 2] = start(DType::F32)?.try_into().unwrap();
    let error = Lbfgs::builder([a]).group([b.clone()], |_| ()).build().unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()), "{error}");
    let error = optimizer.add_group([b], |_| ()).unwrap_err();
    assert!(error.message().contains("LBFGS doesn't support per-parameter options"), "{error}");
    assert_eq!(optimizer.parameters().len(), 2);
    Ok(())
}

/// A closure that fails in the middle of a step changes neither parameters nor state.
#[test]
fn a_closure_that_fails_changes_nothing() -> Result<()> {
    for line_search in [None, Some(LineSearch::StrongWolfe)] {
        let parameters = start(DType::F32)?;
        let mut optimizer = Lbfgs::builder(parameters.clone()).line_search_fn(line_search).build()?;
        optimizer.step_with(&mut || loss(&parameters))?;
        let start = parameters[0].tensor().value().add(1.0)?;
        parameters[0].set(&start)?;
        let (before, state) = (values(&parameters), optimizer.state_dict().to_file()?.to_bytes()?);
        let mut calls = 0;
        let error = optimizer.step_with(&mut || {
            calls += 1;
            if calls == 3 { Ok(Tensor::constant(NamedTensor::ones([2])?)) } else { loss(&parameters) }
        });
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Autograd);
        assert_eq!(calls, 3);
        assert_eq!(values(&parameters), before);
        assert_eq!(optimizer.state_dict().to_file()?.to_bytes()?, state);
    }
    Ok(())
}
