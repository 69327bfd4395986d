//! Groups of parameters, what is kept for them and saved, and what is refused.

use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::io::TensorFile;
use namegrad_core::{DType, ErrorKind, NamedTensor, Result};
use namegrad_optim::{Adam, AdamW, Builder, Method, Optimizer, OptimizerState, Real, Sgd, Slots, Turn};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

fn parameter(values: &[f32]) -> Result<Parameter> {
    Parameter::new(Tensor::constant(NamedTensor::from_slice(values, [("in", values.len())])?))
}

fn values(parameter: &Parameter) -> Vec<f32> {
    parameter.tensor().to_vec().unwrap()
}

fn set_grad(parameter: &Parameter, grad: &[f32]) -> Result<()> {
    parameter.set_grad(Some(Tensor::constant(NamedTensor::from_slice(grad, [grad.len()])?)))
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("namegrad-optim-{name}-{}.safetensors", std::process::id()))
}

#[test]
fn groups_have_hyperparameters_of_their_own() -> Result<()> {
    let [a, b, c] = [parameter(&[1.0])?, parameter(&[1.0])?, parameter(&[1.0])?];
    let mut optimizer = Sgd::new([a.clone()]).group([b.clone()], |group| group.lr = 0.25).lr(0.5).build()?;
    assert_eq!(optimizer.lrs(), [0.5, 0.25]);
    assert_eq!(optimizer.groups()[1].momentum, 0.0);
    let step = |optimizer: &mut dyn Optimizer| {
        [&a, &b, &c].into_iter().try_for_each(|p| set_grad(p, &[1.0]))?;
        optimizer.step()?;
        Ok([&a, &b, &c].map(|p| values(p)[0]))
    };
    assert_eq!(step(&mut optimizer)?, [0.5, 0.75, 1.0]);
    optimizer.groups_mut()[0].lr = 1.0;
    optimizer.add_group([c.clone()], |group| group.maximize = true)?;
    assert_eq!(step(&mut optimizer)?, [-0.5, 0.5, 2.0]);
    optimizer.set_lrs(&[0.0, 0.5, 0.25])?;
    assert_eq!(step(&mut optimizer)?, [-0.5, 0.0, 2.25]);
    assert!(optimizer.group_parameters(1)[0].is(&b));
    optimizer.set_lr(0.125)?;
    assert_eq!(optimizer.lrs(), [0.125; 3]);
    optimizer.set_momentums(&[0.5, 0.0, 0.25])?;
    assert_eq!(optimizer.momentums(), Some(vec![0.5, 0.0, 0.25]));
    Ok(())
}

#[test]
fn a_parameter_without_a_gradient_is_left_alone() -> Result<()> {
    let [a, b] = [parameter(&[1.0])?, parameter(&[1.0])?];
    let mut optimizer = AdamW::new([a.clone(), b.clone()]).lr(0.5).build()?;
    set_grad(&a, &[1.0])?;
    optimizer.step()?;
    assert_eq!(values(&b), [1.0], "not even its decay");
    let steps = |optimizer: &dyn Optimizer| {
        optimizer.state_dict().groups[0].parameters.iter().map(|p| p.steps).collect::<Vec<_>>()
    };
    assert_eq!(steps(&optimizer), [1, 0]);
    optimizer.zero_grad();
    assert!(a.grad().is_none());
    optimizer.step()?;
    assert_eq!(steps(&optimizer), [1, 0]);
    Ok(())
}

#[test]
fn a_momentum_that_is_switched_on_late_begins_undampened() -> Result<()> {
    let a = parameter(&[0.0])?;
    let mut optimizer = Sgd::new([a.clone()]).lr(1.0).dampening(0.5).build()?;
    set_grad(&a, &[1.0])?;
    optimizer.step()?;
    optimizer.groups_mut()[0].momentum = 0.5;
    optimizer.step()?;
    assert_eq!(values(&a), [-2.0]);
    optimizer.step()?; // the buffer: 0.5 · 1 + 0.5 · 1
    assert_eq!(values(&a), [-3.0]);
    Ok(())
}

#[test]
fn a_value_that_somebody_holds_is_not_changed() -> Result<()> {
    let a = parameter(&[1.0])?;
    let (before, mut optimizer) = (a.tensor(), Adam::new([a.clone()]).lr(0.5).build()?);
    set_grad(&a, &[1.0])?;
    optimizer.step()?;
    let state = optimizer.state_dict();
    optimizer.step()?;
    assert_eq!(before.to_vec::<f32>()?, [1.0]);
    assert_eq!(state.groups[0].parameters[0].slots["exp_avg"].to_vec::<f32>()?, [(1.0 - 0.9) as f32]);
    Ok(())
}

/// Ten steps, and five, a file, and five more, must agree in every bit.
fn check_resume<O: Optimizer>(name: &str, build: impl Fn([Parameter; 2]) -> Result<O>) -> Result<()> {
    let start = || Ok::<_, namegrad_core::Error>([parameter(&[1.0, -2.0, 0.3])?, parameter(&[0.1])?]);
    let steps = |parameters: &[Parameter; 2], optimizer: &mut O, range: std::ops::Range<usize>| {
        range.into_iter().try_for_each(|t| {
            let t = t as f32;
            set_grad(&parameters[0], &[t.sin(), 0.1 * t, t.cos() / 3.0])?;
            set_grad(&parameters[1], &[(2.0 * t).sin()])?;
            // A schedule, with numbers that are not short in decimal.
            optimizer.set_lrs(&[0.1 / (1.0 + f64::from(t)), 0.3 / (1.0 + f64::from(t))])?;
            optimizer.step()
        })
    };
    let whole = start()?;
    steps(&whole, &mut build(whole.clone())?, 0..10)?;

    let first = start()?;
    let mut optimizer = build(first.clone())?;
    steps(&first, &mut optimizer, 0..5)?;
    let path = scratch(name);
    optimizer.state_dict().save(&path)?;
    let second = [parameter(&values(&first[0]))?, parameter(&values(&first[1]))?];
    let mut resumed = build(second.clone())?;
    resumed.load_state_dict(&OptimizerState::load(&path)?)?;
    assert_eq!(resumed.lrs(), optimizer.lrs());
    steps(&second, &mut resumed, 5..10)?;
    for (whole, second) in whole.iter().zip(&second) {
        assert_eq!(values(whole), values(second), "{name}");
    }
    // What was loaded and is saved again is the same file.
    let again = OptimizerState::load(&path)?.to_file()?.to_bytes()?;
    assert_eq!(again, std::fs::read(&path).unwrap());
    std::fs::remove_file(path).unwrap();
    Ok(())
}

#[test]
fn resumed_training_is_equal_in_every_bit() -> Result<()> {
    check_resume("sgd", |[a, b]| {
        Sgd::new([a]).momentum(0.9).dampening(0.1).group([b], |g| g.momentum = 0.0).build()
    })?;
    check_resume("adam", |[a, b]| Adam::new([a]).amsgrad(true).group([b], |g| g.betas.0 = 0.7).build())?;
    check_resume("adamw", |[a, b]| AdamW::new([a]).group([b], |g| g.weight_decay = 1.0 / 3.0).build())
}

#[test]
fn a_state_that_does_not_fit_changes_nothing() -> Result<()> {
    let pair = |n| Ok::<_, namegrad_core::Error>([parameter(&[1.0, 2.0])?, parameter(&vec![1.0; n])?]);
    let [a, b] = pair(3)?;
    let mut other = Adam::new([a.clone(), b.clone()]).lr(0.25).build()?;
    set_grad(&a, &[1.0, 1.0])?;
    set_grad(&b, &[1.0; 3])?;
    other.step()?;
    let state = other.state_dict();

    let [a, b] = pair(3)?;
    let [_, long] = pair(4)?;
    let renamed = Parameter::new(b.tensor().rename(["out"])?)?;
    let mut renamed_dim = Adam::new([a.clone(), renamed]).build()?;
    let mut cases: Vec<(Box<dyn Optimizer>, &str)> = vec![
        (Box::new(AdamW::new(pair(3)?).build()?), "the state is of Adam, the optimizer is AdamW"),
        (Box::new(Adam::new([a.clone()]).build()?), "2 parameters in the state, 1 in the optimizer"),
        (
            Box::new(Adam::new([a.clone()]).group([b], |_| ()).build()?),
            "the state has 1 groups, the optimizer 2",
        ),
        (Box::new(Adam::new([a.clone(), long]).build()?), "parameter 1 of group 0: sizes [3] in the state"),
        (Box::new(Adam::new([renamed_dim.parameters()[1].clone(), a]).build()?), "parameter 0 of group 0"),
    ];
    for (optimizer, message) in &mut cases {
        let error = optimizer.load_state_dict(&state).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
        assert!(error.message().contains(*message), "{error} does not say '{message}'");
        assert!(optimizer.lrs().iter().all(|lr| *lr == 1e-3));
        let kept = optimizer.state_dict();
        assert!(kept.groups.iter().flat_map(|g| &g.parameters).all(|p| p.steps == 0 && p.slots.is_empty()));
    }
    let error = renamed_dim.load_state_dict(&state).unwrap_err();
    assert!(error.message().contains("names ['in'] in the state, ['out'] in the optimizer"), "{error}");
    renamed_dim.load_state_dict(&state.clone().ignore_names())?;
    assert_eq!(renamed_dim.lr(), 0.25);

    let mut hyperparameters = state.clone();
    hyperparameters.groups[0].hyperparameters["momentum"] = 0.5.into();
    let mut sizes = state.clone();
    sizes.groups[0].parameters[0].slots.insert("exp_avg".into(), NamedTensor::zeros([5])?);
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut state = state.clone();
        change(&mut state.groups[0].hyperparameters);
        state
    };
    let betas = changed(&|given| given["betas"] = serde_json::json!([1, 1]));
    let rate = changed(&|given| given["lr"] = (-1).into());
    let list = changed(&|given| *given = given.as_object().unwrap().values().cloned().collect());
    let mut moments = state.clone();
    moments.groups[0].parameters[1].slots.remove("exp_avg_sq");
    for (state, message) in [
        (hyperparameters, "momentum"),
        (sizes, "exp_avg"),
        (betas, "group 0: Invalid beta parameter at index 0: 1.0"),
        (rate, "group 0: Invalid learning rate: -1.0"),
        (list, "hyperparameters of group 0: expected them by name, got [false,"),
        (moments, "parameter 1 of group 0: exp_avg_sq is missing in the state, which has made 1 steps"),
    ] {
        let error = other.load_state_dict(&state).unwrap_err();
        assert!(error.message().contains(message), "{error} does not say '{message}'");
        assert_eq!(other.lr(), 0.25);
    }
    Ok(())
}

#[test]
fn a_file_that_is_no_state_is_refused() -> Result<()> {
    let a = parameter(&[1.0])?;
    let mut optimizer = Adam::new([a.clone()]).build()?;
    set_grad(&a, &[1.0])?;
    optimizer.step()?;
    let good = optimizer.state_dict().to_file()?;
    assert!(OptimizerState::from_file(&good).is_ok());
    let changed = |change: &dyn Fn(&mut TensorFile)| {
        let mut file = good.clone();
        change(&mut file);
        OptimizerState::from_file(&file).unwrap_err()
    };
    for (error, message) in [
        (changed(&|file| file.metadata.clear()), "not the state of an optimizer"),
        (changed(&|file| drop(file.metadata.insert("optimizer".into(), "{}".into()))), "missing field"),
        (changed(&|file| drop(file.tensors.remove("0.exp_avg"))), "'0.exp_avg' is missing"),
        (
            changed(&|file| drop(file.tensors.insert("1.exp_avg".into(), good.tensors["0.exp_avg"].clone()))),
            "'1.exp_avg' belongs to no parameter",
        ),
    ] {
        assert_eq!(error.kind(), ErrorKind::Format);
        assert!(error.message().contains(message), "{error} does not say '{message}'");
    }
    let path = scratch("missing");
    let error = OptimizerState::load(&path).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Io, file!()));
    TensorFile::default().save(&path)?;
    let error = OptimizerState::load(&path).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Format, file!()));
    assert!(error.message().starts_with(path.to_str().unwrap()), "{error}");
    std::fs::write(&path, [1; 20]).unwrap();
    let error = TensorFile::load(&path).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Format, file!()));
    std::fs::remove_file(path).unwrap();
    Ok(())
}

#[test]
fn bad_arguments_are_refused_with_pytorchs_sentences() -> Result<()> {
    let a = parameter(&[1.0])?;
    let sgd = || Sgd::new([a.clone()]);
    let adam = || Adam::new([a.clone()]);
    let adamw = || AdamW::new([a.clone()]);
    for (error, message) in [
        (sgd().lr(-0.1).build().unwrap_err(), "Invalid learning rate: -0.1"),
        (sgd().lr(f64::NAN).build().unwrap_err(), "Invalid learning rate: NaN"),
        (sgd().momentum(-0.5).build().unwrap_err(), "Invalid momentum value: -0.5"),
        (sgd().weight_decay(-1.0).build().unwrap_err(), "Invalid weight_decay value: -1.0"),
        (
            sgd().nesterov(true).build().unwrap_err(),
            "Nesterov momentum requires a momentum and zero dampening",
        ),
        (
            sgd().nesterov(true).momentum(0.9).dampening(0.1).build().unwrap_err(),
            "Nesterov momentum requires a momentum and zero dampening",
        ),
        (adam().lr(-1.0).build().unwrap_err(), "Invalid learning rate: -1.0"),
        (adam().eps(-1.0).build().unwrap_err(), "Invalid epsilon value: -1.0"),
        (adam().betas((1.0, 0.9)).build().unwrap_err(), "Invalid beta parameter at index 0: 1.0"),
        (adamw().betas((0.9, -0.1)).build().unwrap_err(), "Invalid beta parameter at index 1: -0.1"),
        (adamw().weight_decay(-0.1).build().unwrap_err(), "Invalid weight_decay value: -0.1"),
        (Sgd::new([]).build().unwrap_err(), "optimizer got an empty parameter list"),
        (
            Sgd::new([a.clone(), a.clone()]).build().unwrap_err(),
            "some parameters appear more than once in the parameter groups",
        ),
        (
            sgd().group([a.clone()], |_| ()).build().unwrap_err(),
            "some parameters appear more than once in the parameter groups",
        ),
        (
            sgd().group([parameter(&[1.0])?], |group| group.lr = -2.0).build().unwrap_err(),
            "Invalid learning rate: -2.0",
        ),
    ] {
        assert_eq!((error.kind(), error.message()), (ErrorKind::Value, message));
        assert_eq!(error.location().file(), file!());
    }

    let mut optimizer = sgd().build()?;
    assert_eq!(optimizer.set_lrs(&[0.1, 0.2]).unwrap_err().kind(), ErrorKind::Value);
    let error = optimizer.set_lr(f64::INFINITY).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    optimizer.groups_mut()[0].lr = f64::NAN;
    set_grad(&a, &[1.0])?;
    let error = optimizer.step().unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    assert_eq!(values(&a), [1.0]);
    Ok(())
}

#[test]
fn a_parameter_may_change_its_dtype_but_not_its_sizes() -> Result<()> {
    let a = parameter(&[1.0, 2.0])?;
    let mut optimizer = Adam::new([a.clone()]).build()?;
    set_grad(&a, &[1.0, 1.0])?;
    optimizer.step()?;
    a.to_dtype(DType::F64)?;
    set_grad(&a, &[1.0, 1.0])?;
    optimizer.step()?;
    assert_eq!(a.tensor().dtype(), DType::F64);

    a.update(|value| {
        *value = NamedTensor::zeros([3])?;
        Ok(())
    })?;
    set_grad(&a, &[1.0; 3])?;
    let error = optimizer.step().unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Shape, file!()));
    Ok(())
}

/// A method that names no tensor and takes one.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Forgetful;

impl Method for Forgetful {
    const NAME: &'static str = "Forgetful";

    fn lr(&self) -> f64 {
        1.0
    }

    fn set_lr(&mut self, _: f64) {}

    fn step<T: Real>(&self, _: Turn<'_>, _: &mut [T], _: &[T], slots: Slots<'_, T>) -> Result<()> {
        let [_momentum] = slots.take()?;
        Ok(())
    }
}

#[test]
fn a_method_must_name_the_tensors_that_it_takes() -> Result<()> {
    let a = parameter(&[1.0])?;
    let mut optimizer = Builder::new([a.clone()], Forgetful).build()?;
    set_grad(&a, &[1.0])?;
    let error = optimizer.step().unwrap_err();
    assert_eq!((error.kind(), error.op(), error.location().file()), (ErrorKind::Value, "Forgetful", file!()));
    assert!(error.message().contains("names 0 tensors, Method::step takes 1"), "{error}");
    Ok(())
}
