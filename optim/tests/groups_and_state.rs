//! Parameter groups, their state, saving and loading it, and rejected calls.

use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result};
use namegrad_io::TensorFile;
use namegrad_optim::schedule::{Schedule, StepDecay};
use namegrad_optim::{
    Adam, AdamW, Builder, ClipGradNormOptions, Method, Optimizer, OptimizerState, OptimizerStep,
    ParameterStep, Sgd, SgdOptions, clip_grad_norm_, clip_grad_norm_with_, clip_grad_value_,
};
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
    let mut optimizer =
        Sgd::builder([a.clone()]).group([b.clone()], |group| group.lr = 0.25).lr(0.5).build()?;
    assert_eq!(optimizer.lrs(), [0.5, 0.25]);
    assert_eq!(optimizer.groups()[1].momentum, 0.0);
    let step = |optimizer: &mut dyn Optimizer| {
        [&a, &b, &c].into_iter().try_for_each(|p| set_grad(p, &[1.0]))?;
        optimizer.step()?;
        Ok::<_, Error>([&a, &b, &c].map(|p| values(p)[0]))
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
    let mut optimizer = AdamW::builder([a.clone(), b.clone()]).lr(0.5).build()?;
    set_grad(&a, &[1.0])?;
    optimizer.step()?;
    assert_eq!(values(&b), [1.0], "not even its decay");
    let steps = |optimizer: &dyn Optimizer| {
        optimizer.state_dict().groups[0].parameters.iter().map(|p| p.steps).collect::<Vec<_>>()
    };
    assert_eq!(steps(&optimizer), [1, 0]);
    optimizer.zero_grad();
    assert!(a.grad().is_none());
    assert_eq!(optimizer.step().unwrap_err().kind(), ErrorKind::Autograd);
    assert_eq!(steps(&optimizer), [1, 0]);
    Ok(())
}

#[test]
fn a_momentum_that_is_switched_on_late_begins_undampened() -> Result<()> {
    let a = parameter(&[0.0])?;
    let mut optimizer = Sgd::builder([a.clone()]).lr(1.0).dampening(0.5).build()?;
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
    let (before, mut optimizer) = (a.tensor(), Adam::builder([a.clone()]).lr(0.5).build()?);
    set_grad(&a, &[1.0])?;
    optimizer.step()?;
    let state = optimizer.state_dict();
    optimizer.step()?;
    assert_eq!(before.to_vec::<f32>()?, [1.0]);
    assert_eq!(state.groups[0].parameters[0].slots["exp_avg"].to_vec::<f32>()?, [(1.0 - 0.9) as f32]);
    Ok(())
}

/// Ten steps must give the same bits as five steps, saving and loading, and five more steps.
fn check_resume<O: Optimizer>(name: &str, build: impl Fn([Parameter; 2]) -> Result<O>) -> Result<()> {
    let start = || Ok::<_, namegrad_core::Error>([parameter(&[1.0, -2.0, 0.3])?, parameter(&[0.1])?]);
    let steps = |parameters: &[Parameter; 2], optimizer: &mut O, range: std::ops::Range<usize>| {
        range.into_iter().try_for_each(|t| {
            let t = t as f32;
            set_grad(&parameters[0], &[t.sin(), 0.1 * t, t.cos() / 3.0])?;
            set_grad(&parameters[1], &[(2.0 * t).sin()])?;
            // A schedule, with numbers that have no short decimal form.
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
    // Saving a loaded state again gives the same file.
    let again = OptimizerState::load(&path)?.to_file()?.to_bytes()?;
    assert_eq!(again, std::fs::read(&path).unwrap());
    std::fs::remove_file(path).unwrap();
    Ok(())
}

#[test]
fn resumed_training_is_equal_in_every_bit() -> Result<()> {
    check_resume("sgd", |[a, b]| {
        Sgd::builder([a]).momentum(0.9).dampening(0.1).group([b], |g| g.momentum = 0.0).build()
    })?;
    check_resume("adam", |[a, b]| Adam::builder([a]).amsgrad(true).group([b], |g| g.betas.0 = 0.7).build())?;
    check_resume("adamw", |[a, b]| AdamW::builder([a]).group([b], |g| g.weight_decay = 1.0 / 3.0).build())
}

#[test]
fn a_state_that_does_not_fit_changes_nothing() -> Result<()> {
    let pair = |n| Ok::<_, namegrad_core::Error>([parameter(&[1.0, 2.0])?, parameter(&vec![1.0; n])?]);
    let [a, b] = pair(3)?;
    let mut other = Adam::builder([a.clone(), b.clone()]).lr(0.25).build()?;
    set_grad(&a, &[1.0, 1.0])?;
    set_grad(&b, &[1.0; 3])?;
    other.step()?;
    let state = other.state_dict();

    let [a, b] = pair(3)?;
    let [_, long] = pair(4)?;
    let renamed = Parameter::new(b.tensor().rename(["out"])?)?;
    let mut renamed_dim = Adam::builder([a.clone(), renamed]).build()?;
    let mut cases: Vec<(Box<dyn Optimizer>, &str)> = vec![
        (Box::new(AdamW::builder(pair(3)?).build()?), "the state is of Adam, the optimizer is AdamW"),
        (Box::new(Adam::builder([a.clone()]).build()?), "2 parameters in the state, 1 in the optimizer"),
        (
            Box::new(Adam::builder([a.clone()]).group([b], |_| ()).build()?),
            "the state has 1 groups, the optimizer 2",
        ),
        (
            Box::new(Adam::builder([a.clone(), long]).build()?),
            "parameter 1 of group 0: sizes [3] in the state",
        ),
        (
            Box::new(Adam::builder([renamed_dim.parameters()[1].clone(), a]).build()?),
            "parameter 0 of group 0",
        ),
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
    let mut optimizer = Adam::builder([a.clone()]).build()?;
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
    let sgd = || Sgd::builder([a.clone()]);
    let adam = || Adam::builder([a.clone()]);
    let adamw = || AdamW::builder([a.clone()]);
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
        (Sgd::builder([] as [Parameter; 0]).build().unwrap_err(), "optimizer got an empty parameter list"),
        (
            Sgd::builder([a.clone(), a.clone()]).build().unwrap_err(),
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
        assert_eq!(error.kind(), ErrorKind::Value);
        // Behind PyTorch's sentence there can be what is valid.
        let rest = error.message().strip_prefix(message);
        assert!(rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("; it must be")), "{error}");
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
    let mut optimizer = Adam::builder([a.clone()]).build()?;
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

/// A method that names no tensors but takes one.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Forgetful;

impl Method for Forgetful {
    const NAME: &'static str = "Forgetful";

    fn lr(&self) -> f64 {
        1.0
    }

    fn set_lr(&mut self, _: f64) {}

    fn update(&self, step: ParameterStep<'_>) -> Result<()> {
        let [_momentum] = step.slots.take()?;
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
    assert!(error.message().contains("names 0 tensors, the update takes 1"), "{error}");
    Ok(())
}

/// The gradient as a matrix, orthogonalized by the Newton-Schulz iteration, as in Muon.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Orthogonal(f64);

impl Method for Orthogonal {
    const NAME: &'static str = "Orthogonal";
    fn lr(&self) -> f64 {
        self.0
    }
    fn set_lr(&mut self, lr: f64) {
        self.0 = lr;
    }
    fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
        &["momentum_buffer"]
    }
    fn update(&self, step: ParameterStep<'_>) -> Result<()> {
        let ParameterStep { param, grad, slots, .. } = step;
        let [momentum] = slots.take()?;
        momentum.add_(grad)?;
        let mut x = momentum.unnamed().div(&momentum.norm(..)?)?;
        for _ in 0..40 {
            let square = x.mm(&x.t()?)?.mm(&x)?;
            x = x.mul(1.5)?.sub(&square.mul(0.5)?)?;
        }
        param.sub_(&x.mul(self.0)?).map(drop)
    }
}

#[test]
fn a_method_can_treat_a_parameter_as_a_matrix() -> Result<()> {
    for dtype in [DType::F64, DType::F32, DType::BF16] {
        let start = NamedTensor::zeros([("out", 2), ("in", 3)])?.to(dtype)?;
        let a = Parameter::new(Tensor::constant(start))?;
        let mut optimizer = Builder::new([a.clone()], Orthogonal(1.0)).build()?;
        let grad = NamedTensor::from_slice(&[1.0, 2.0, 0.5, 0.0, -1.0, 3.0], [2, 3])?.to(dtype)?;
        a.set_grad(Some(Tensor::constant(grad)))?;
        optimizer.step()?;
        let step = a.tensor().value().to(DType::F64)?.unnamed();
        let square = step.mm(&step.t()?)?.to_vec::<f64>()?;
        for (found, want) in square.iter().zip([1.0, 0.0, 0.0, 1.0]) {
            assert!((found - want).abs() < if dtype == DType::BF16 { 1e-2 } else { 1e-5 }, "{square:?}");
        }
        assert_eq!(*a.tensor().names(), ["out", "in"]);
    }
    Ok(())
}

/// Steps whose total length over all parameters is fixed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Normalized(f64);

impl Method for Normalized {
    const NAME: &'static str = "Normalized";
    fn lr(&self) -> f64 {
        self.0
    }
    fn set_lr(&mut self, lr: f64) {
        self.0 = lr;
    }
    fn step(groups: &[Self], step: &mut OptimizerStep<'_>) -> Result<()> {
        let mut square = 0.0;
        for (_, gradient) in step.gradients() {
            square += gradient.square()?.sum(..)?.item::<f64>()?;
        }
        step.each(|group, own| own.param.sub_(&own.grad.mul(groups[group].0 / square.sqrt())?).map(drop))
    }
}

#[test]
fn a_method_can_see_all_gradients() -> Result<()> {
    let [a, b, c] = [parameter(&[1.0])?, parameter(&[0.0, 1.0])?, parameter(&[1.0])?];
    let builder = Builder::new([a.clone(), b.clone()], Normalized(5.0));
    let mut optimizer = builder.group([c.clone()], |_| ()).build()?;
    set_grad(&a, &[3.0])?;
    set_grad(&b, &[4.0, 0.0])?;
    optimizer.step()?;
    assert_eq!([values(&a), values(&b), values(&c)], [vec![-2.0], vec![-4.0, 1.0], vec![1.0]]);
    let counts =
        optimizer.state_dict().groups.iter().flat_map(|g| &g.parameters).map(|p| p.steps).collect::<Vec<_>>();
    assert_eq!(counts, [1, 1, 0]);
    Ok(())
}

/// Newton's method with the secant of two gradients.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Secant(f64);

impl Method for Secant {
    const NAME: &'static str = "Secant";
    fn lr(&self) -> f64 {
        self.0
    }
    fn set_lr(&mut self, lr: f64) {
        self.0 = lr;
    }
    fn step(groups: &[Self], step: &mut OptimizerStep<'_>) -> Result<()> {
        assert!(step.loss()?.to_vec::<f32>()?[0] > 0.0);
        let before = step.gradients().remove(0).1.to_vec::<f32>()?[0];
        step.each(|_, own| own.param.add_(groups[0].0).map(drop))?;
        step.evaluate()?;
        let after = step.gradients().remove(0).1.to_vec::<f32>()?[0];
        step.each(|_, own| own.param.sub_(f64::from(after / (after - before)) * groups[0].0).map(drop))
    }
}

#[test]
fn a_step_can_evaluate_the_loss_again() -> Result<()> {
    let a = parameter(&[5.0])?;
    let mut optimizer = Builder::new([a.clone()], Secant(0.5)).build()?;
    let mut calls = 0;
    let loss = optimizer.step_with(&mut || {
        calls += 1;
        a.tensor().sub(2.0)?.square()?.sum(..)
    })?;
    assert_eq!((loss.to_vec::<f32>()?, values(&a), calls), (vec![9.0], vec![2.0], 2));
    assert!(!loss.requires_grad());
    assert_eq!(optimizer.state_dict().groups[0].parameters[0].steps, 1, "one step, in two passes");

    let error = optimizer.step().unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Autograd, file!()));
    assert!(error.to_string().contains("optimizer.step_with(&mut || ..)"), "{error}");
    let error = optimizer.step_with(&mut || a.tensor().detach().sum(..)).unwrap_err();
    assert_eq!((error.op(), error.location().file()), ("backward", file!()));
    Ok(())
}

#[test]
fn step_with_removes_old_gradients_and_computes_new_ones() -> Result<()> {
    let [a, unused] = [parameter(&[4.0, -3.0])?, parameter(&[1.0])?];
    let mut optimizer: Box<dyn Optimizer> =
        Box::new(Sgd::builder([a.clone(), unused.clone()]).lr(0.25).build()?);
    set_grad(&a, &[100.0, 100.0])?;
    set_grad(&unused, &[1.0])?;
    let loss = optimizer.step_with(&mut || a.tensor().square()?.sum(..))?;
    assert_eq!(loss.to_vec::<f32>()?, [25.0]);
    assert_eq!([values(&a), values(&unused)], [vec![2.0, -1.5], vec![1.0]]);
    assert!(unused.grad().is_none());
    Ok(())
}

#[test]
fn a_method_without_a_formula_is_refused() -> Result<()> {
    #[derive(Clone, Debug, Serialize, Deserialize)]
    struct Idle(f64);
    impl Method for Idle {
        const NAME: &'static str = "Idle";
        fn lr(&self) -> f64 {
            self.0
        }
        fn set_lr(&mut self, lr: f64) {
            self.0 = lr;
        }
    }
    let a = parameter(&[1.0])?;
    let mut optimizer = Builder::new([a.clone()], Idle(1.0)).build()?;
    set_grad(&a, &[1.0])?;
    let error = optimizer.step().unwrap_err();
    assert_eq!(
        (error.kind(), error.op(), error.location().file()),
        (ErrorKind::Unsupported, "Idle", file!())
    );
    Ok(())
}

/// Like `torch.nn.utils.clip_grad_norm_`: one factor for all, no larger than 1.
#[test]
fn gradients_are_clipped_together() -> Result<()> {
    let [a, b, none] = [parameter(&[0.0])?, parameter(&[0.0, 0.0])?, parameter(&[0.0])?];
    let all = [a.clone(), b.clone(), none.clone(), a.clone()];
    let grads = || [&a, &b].map(|p| p.grad().unwrap().to_vec::<f32>().unwrap()).concat();
    let reset = || {
        set_grad(&a, &[3.0])?;
        set_grad(&b, &[0.0, -4.0])
    };
    reset()?;
    assert_eq!(clip_grad_norm_(&all, 10.0)?, 5.0);
    assert_eq!(grads(), [3.0, 0.0, -4.0], "short enough");
    assert_eq!(clip_grad_norm_(&all, 2.5)?, 5.0);
    let want = [1.5, 0.0, -2.0];
    assert!(grads().iter().zip(want).all(|(found, want)| (found - want).abs() < 1e-6), "{:?}", grads());
    reset()?;
    let order = |order| ClipGradNormOptions::new().norm_type(order);
    assert_eq!(clip_grad_norm_with_(&all, 100.0, order(1.0))?, 7.0);
    assert_eq!(clip_grad_norm_with_(&all, 2.0, order(f64::INFINITY))?, 4.0);
    assert!((grads()[2] + 2.0).abs() < 1e-6);
    clip_grad_value_(&all, 1.0)?;
    assert_eq!(grads(), [1.0, 0.0, -1.0]);
    assert!(none.grad().is_none());
    assert_eq!(clip_grad_norm_with_([&none], 1.0, order(f64::INFINITY))?, 0.0);

    set_grad(&a, &[f32::NAN])?;
    let strict = ClipGradNormOptions::new().error_if_nonfinite(true);
    let error = clip_grad_norm_with_(&all, 1.0, strict).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    assert_eq!(grads()[1..], [0.0, -1.0], "nothing has changed");
    assert!(clip_grad_norm_(&all, 1.0)?.is_nan());
    assert!(grads().iter().all(|g| g.is_nan()));
    set_grad(&a, &[3e30])?;
    set_grad(&b, &[4e30, 0.0])?;
    assert!((clip_grad_norm_(&all, 5.0)? / 5e30 - 1.0).abs() < 1e-6, "no square overflows");
    assert!((grads()[0] - 3.0).abs() < 1e-5);
    for error in [
        clip_grad_norm_(&all, -1.0).unwrap_err(),
        clip_grad_norm_(&all, f64::NAN).unwrap_err(),
        clip_grad_norm_with_(&all, 1.0, order(-2.0)).unwrap_err(),
        clip_grad_value_(&all, -1.0).unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    }
    Ok(())
}

/// The parameters of a model in which the last layer shares its weight with the first.
fn named() -> Result<Vec<(String, Parameter)>> {
    let mut all = Vec::new();
    for path in ["embed.weight", "hidden.weight", "hidden.bias", "head.bias"] {
        all.push((path.to_string(), parameter(&[1.0])?));
    }
    all.insert(3, ("head.weight".into(), all[0].1.clone()));
    Ok(all)
}

#[test]
fn groups_are_chosen_by_pattern() -> Result<()> {
    let all = named()?;
    let mut optimizer = Sgd::builder_named(all.clone())
        .lr(0.5)
        .group_matching("head", |group| group.lr = 0.25)
        .group_matching("**.bias", |group| group.lr = 0.125)
        .build()?;
    assert_eq!(optimizer.lrs(), [0.5, 0.25, 0.125]);
    let group = |number: usize| optimizer.group_parameters(number);
    assert!(group(0).len() == 1 && group(0)[0].is(&all[1].1));
    assert!(group(1).len() == 2 && group(1)[0].is(&all[0].1) && group(1)[1].is(&all[4].1));
    assert!(group(2).len() == 1 && group(2)[0].is(&all[2].1));
    // A tied parameter is stepped once.
    all.iter().try_for_each(|(_, parameter)| set_grad(parameter, &[1.0]))?;
    optimizer.step()?;
    assert_eq!(all.iter().map(|(_, p)| values(p)[0]).collect::<Vec<_>>(), [0.75, 0.5, 0.875, 0.75, 0.75]);

    // Without a parameter that is in no group, the first group is that of the first pattern.
    let optimizer =
        Sgd::builder_named(named()?).lr(0.5).group_matching("**", |group| group.lr = 0.25).build()?;
    assert_eq!(optimizer.lrs(), [0.25]);
    // Items of a list with paths can be given to any group.
    let later = vec![("new.weight".to_string(), parameter(&[1.0])?)];
    let mut optimizer = Sgd::builder_named(named()?).lr(0.5).group(later, |group| group.lr = 0.25).build()?;
    optimizer.add_group([("newer.weight".to_string(), parameter(&[1.0])?)], |_| ())?;
    assert_eq!(optimizer.lrs(), [0.5, 0.25, 0.5]);

    for (error, message) in [
        (Sgd::builder_named(named()?).group_matching("heads", |_| ()).build(), "'head.bias'"),
        (
            Sgd::builder_named(named()?)
                .group_matching("head", |_| ())
                .group_matching("embed", |_| ())
                .build(),
            "no parameter outside of earlier groups matches 'embed'",
        ),
        (
            Sgd::builder(named()?.into_iter().skip(1).map(|(_, p)| p)).group_matching("head", |_| ()).build(),
            "the paths of parameters are not known",
        ),
        (
            Sgd::builder_named(all.clone()).group([all[2].1.clone()], |_| ()).build(),
            "some parameters appear more than once in the parameter groups: 'hidden.bias'",
        ),
    ] {
        let error = error.unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
        assert!(error.message().contains(message), "{error} does not say '{message}'");
    }
    Ok(())
}

#[test]
fn a_state_knows_the_paths_of_its_parameters() -> Result<()> {
    let build = |all: Vec<(String, Parameter)>| Adam::builder_named(all).build();
    let state = build(named()?)?.state_dict();
    let file = state.to_file()?;
    let state = OptimizerState::from_file(&file)?;
    let paths = state.groups[0].parameters.iter().map(|parameter| parameter.path.as_deref());
    assert_eq!(
        paths.collect::<Vec<_>>(),
        ["embed.weight", "hidden.weight", "hidden.bias", "head.bias"].map(Some)
    );

    let mut other = named()?;
    other[1].0 = "middle.weight".into();
    let mut optimizer = build(other)?;
    let error = optimizer.load_state_dict(&state).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    let message = "parameter 1 of group 0, 'middle.weight': it is 'hidden.weight' in the state";
    assert!(error.message().contains(message), "{error}");
    optimizer.load_state_dict(&state.clone().ignore_names())?;
    // A tied parameter has all its paths.
    let mut reversed = named()?;
    reversed.swap(0, 3);
    build(reversed)?.load_state_dict(&state)?;
    Ok(())
}

#[test]
fn numbers_of_options_can_be_integers() -> Result<()> {
    let optimizer = Sgd::builder([parameter(&[1.0])?]).lr(1).momentum(0).build()?;
    assert_eq!(optimizer.groups()[0], SgdOptions::new().lr(1.0));
    assert_eq!(StepDecay::new(2).gamma(1).lr(4.0, 0.5, 0), 0.5);
    Ok(())
}
