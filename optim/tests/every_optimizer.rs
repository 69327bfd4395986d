//! Tests for every optimizer: resuming, half types, ascending, refused hyperparameters.

use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::{DType, ErrorKind, NamedTensor, Result};
use namegrad_optim::{
    Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Asgd, Lamb, Lbfgs, LineSearch, Lion, Muon, NAdam,
    Optimizer, OptimizerState, RAdam, RmsProp, Rprop, Sgd,
};

type Made = Result<Box<dyn Optimizer>>;
type Make = fn(Vec<Parameter>) -> Made;

/// `name: builder` of each optimizer.
macro_rules! every {
    ($($name:literal: $Optimizer:ident $(.$option:ident($($value:expr),*))*;)*) => {
        [$((
            $name,
            (|parameters| {
                let builder = $Optimizer::builder(parameters)$(.$option($($value),*))*;
                Ok(Box::new(builder.build()?) as Box<dyn Optimizer>)
            }) as Make,
        )),*]
    };
}

/// Every optimizer with a step of about 0.05, and forms that keep other tensors.
fn every() -> [(&'static str, Make); 23] {
    every! {
        "sgd": Sgd.lr(0.05);
        "sgd with momentum": Sgd.lr(0.05).momentum(0.9).dampening(0.1).weight_decay(0.01);
        "asgd": Asgd.lr(0.05).lambd(0.1).t0(3.0);
        "adam": Adam.lr(0.05).weight_decay(0.01);
        "adam with amsgrad": Adam.lr(0.05).amsgrad(true);
        "adamw": AdamW.lr(0.05);
        "nadam": NAdam.lr(0.05);
        "radam": RAdam.lr(0.05).betas((0.8, 0.9));
        "adamax": Adamax.lr(0.05);
        "adagrad": Adagrad.lr(0.1).lr_decay(0.01).initial_accumulator_value(0.1);
        "adadelta": Adadelta.lr(5.0);
        "rmsprop": RmsProp.lr(0.02);
        "rmsprop with momentum": RmsProp.lr(0.01).momentum(0.5);
        "centered rmsprop": RmsProp.lr(0.02).centered(true);
        "centered rmsprop with momentum": RmsProp.lr(0.01).centered(true).momentum(0.5);
        "rprop": Rprop.lr(0.05);
        "adafactor": Adafactor.lr(0.05);
        "muon": Muon.lr(0.05).weight_decay(0.01);
        "lamb": Lamb.lr(0.05);
        "lion": Lion.lr(0.02).weight_decay(0.01);
        "lbfgs": Lbfgs.lr(0.1).max_iter(2).history_size(3);
        "lbfgs with a line search": Lbfgs.max_iter(3).history_size(2).line_search_fn(Some(LineSearch::StrongWolfe));
        "lbfgs that remembers nothing": Lbfgs.lr(0.1).max_iter(2).history_size(0);
    }
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
        for (name, make) in every().into_iter().filter(|(name, _)| !name.contains("lbfgs")) {
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
    macro_rules! check {
        ($($Optimizer:ident)*) => {$(
            let (down, up) = (start(DType::F64)?, start(DType::F64)?);
            let mut descending = $Optimizer::builder(down.clone()).build()?;
            let mut ascending = $Optimizer::builder(up.clone()).maximize(true).build()?;
            for _ in 0..4 {
                descending.step_with(&mut || loss(&down))?;
                ascending.step_with(&mut || loss(&up)?.neg())?;
            }
            assert_eq!(values(&down), values(&up), stringify!($Optimizer));
        )*};
    }
    check!(Sgd Asgd Adam AdamW NAdam RAdam Adamax Adagrad Adadelta RmsProp Rprop Adafactor Lamb Lion Lbfgs);
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
fn bad_hyperparameters_are_refused() -> Result<()> {
    let p = || start(DType::F32).unwrap();
    macro_rules! refused {
        ($($Optimizer:ident.$option:ident($value:expr), $message:literal;)*) => {[$(
            ($Optimizer::builder(p()).$option($value).build().err(), $message)
        ),*]};
    }
    for (error, message) in refused! {
        Adadelta.lr(-1.0), "Invalid learning rate: -1.0";
        Adadelta.rho(1.5), "Invalid rho value: 1.5";
        Adadelta.eps(-1.0), "Invalid epsilon value: -1.0";
        Adadelta.weight_decay(-1.0), "Invalid weight_decay value: -1.0";
        Adafactor.lr(f64::NAN), "Learning rate should be >= 0 but is: NaN";
        Adafactor.beta2_decay(0.5), "beta2_decay should be <= 0 but is: 0.5";
        Adafactor.eps((Some(-1.0), 1e-3)), "epsilon1 should be >= 0 but is: -1.0";
        Adafactor.eps((None, -1.0)), "epsilon2 should be >= 0 but is: -1.0";
        Adafactor.d(0.5), "Clipping threshold d should be >= 1 but is: 0.5";
        Adafactor.weight_decay(-1.0), "weight_decay should be >= 0 but is: -1.0";
        Adagrad.lr_decay(-1.0), "Invalid lr_decay value: -1.0";
        Adagrad.initial_accumulator_value(-1.0), "Invalid initial_accumulator_value value: -1.0";
        Adamax.betas((0.9, 1.0)), "Invalid beta parameter at index 1: 1.0";
        Asgd.lr(f64::NAN), "Invalid learning rate: NaN";
        Asgd.lambd(-1.0), "Invalid lambd value: -1.0";
        Asgd.alpha(-1.0), "Invalid alpha value: -1.0";
        Asgd.t0(f64::NAN), "Invalid t0 value: NaN";
        Lamb.betas((f64::NAN, 0.9)), "Invalid beta parameter at index 0: NaN";
        Lbfgs.lr(-0.5), "Invalid learning rate: -0.5";
        Lion.weight_decay(-1.0), "Invalid weight_decay value: -1.0";
        Muon.lr(-1.0), "Learning rate should be >= 0 but is: -1.0";
        Muon.momentum(-1.0), "momentum should be >= 0 but is: -1.0";
        Muon.weight_decay(-1.0), "weight decay should be >= 0 but is: -1.0";
        Muon.ns_steps(100), "Number of steps must be less than 100 for computational efficiency";
        NAdam.momentum_decay(-1.0), "Invalid momentum_decay value: -1.0";
        RAdam.eps(-1.0), "Invalid epsilon value: -1.0";
        RmsProp.alpha(-1.0), "Invalid alpha value: -1.0";
        RmsProp.momentum(-1.0), "Invalid momentum value: -1.0";
        Rprop.etas((0.5, 0.9)), "Invalid eta values: 0.5, 0.9";
        Rprop.step_sizes((f64::NAN, 1.0)), "Invalid smallest step size: NaN";
        Lbfgs.tolerance_change(f64::NAN), "Invalid tolerance_change value: NaN";
    } {
        let error = error.unwrap_or_else(|| panic!("'{message}' is not refused"));
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()), "{error}");
        assert!(error.message().starts_with(message), "{error}");
    }
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
