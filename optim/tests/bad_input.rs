//! Input that every optimizer refuses before any parameter or state changes, and the names that it keeps.

use namegrad::prelude::*;
use namegrad_optim::{
    Asgd, AsgdOptions, ClipGradNormOptions, GradScaler, Lbfgs, LineSearch, OptimizerState,
    clip_grad_norm_with_,
};
use namegrad_tests::list::{AnyOptimizer, OPTIMIZERS};
use serde_json::json;

type Made = Result<Box<dyn Optimizer>>;
type Named = Vec<(String, Parameter)>;

/// An optimizer of the list.
struct Row {
    name: &'static str,
    entry: &'static AnyOptimizer,
}

impl Row {
    fn build(&self, named: Named) -> Made {
        self.entry.build_with(vec![(named.into_iter().map(Into::into).collect(), json!({}))])
    }

    /// With a learning rate.
    fn at(&self, parameters: Vec<Parameter>, lr: f64) -> Made {
        let lr = if lr.is_finite() { json!(lr) } else { json!(format!("{lr}")) };
        self.entry.build(&parameters, &json!({ "lr": lr }))
    }

    /// With a group of these parameters beside that of the first.
    fn grouped(&self, first: Vec<Parameter>, second: Vec<Parameter>) -> Made {
        let groups = [first, second].map(|group| (group.into_iter().map(Into::into).collect(), json!({})));
        self.entry.build_with(groups.into())
    }
}

fn every() -> Vec<Row> {
    OPTIMIZERS.iter().map(|entry| Row { name: entry.name(), entry }).collect()
}

fn matrix(out: &'static str) -> Result<Parameter> {
    Parameter::new(
        Tensor::new([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0], [2.0, 0.1, 0.2]])?.refine_names([out, "in"])?,
    )
}

fn model() -> Result<Named> {
    Ok(vec![("a.weight".into(), matrix("h")?), ("b.weight".into(), matrix("out")?)])
}

fn plain(named: &Named) -> Vec<Parameter> {
    named.iter().map(|(_, parameter)| parameter.clone()).collect()
}

/// All values, and the state as it is saved.
fn all(parameters: &[Parameter], optimizer: &dyn Optimizer) -> Result<(Vec<Vec<f32>>, Vec<u8>)> {
    let values = parameters.iter().map(|parameter| parameter.tensor().to_vec()).collect::<Result<_>>()?;
    Ok((values, optimizer.state_dict().to_file()?.to_bytes()?))
}

/// `Σ (p - 1)²`.
fn loss(parameters: &[Parameter]) -> Result<Tensor> {
    let mut total = Tensor::zeros(())?;
    for parameter in parameters {
        total = total.add(&parameter.tensor().sub(1.0)?.square()?.sum(..)?)?;
    }
    Ok(total)
}

fn is_value_error<T>(result: Result<T>, what: &str) -> String {
    let Err(error) = result else { panic!("{what} is not refused") };
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()), "{what}: {error}");
    error.message().to_string()
}

/// JSON has no infinite numbers, so a state with one could not be loaded.
#[test]
fn a_hyperparameter_that_json_cannot_store_is_named() -> Result<()> {
    let parameters = plain(&model()?);
    let infinite = Asgd::builder(parameters.clone()).t0(f64::INFINITY).build();
    let message = is_value_error(infinite, "an infinite hyperparameter");
    assert_eq!(message, "hyperparameters: 't0' is inf, which JSON cannot store");

    let mut optimizer = Sgd::new(parameters)?;
    optimizer.groups_mut()[0].dampening = f64::NAN;
    let state = optimizer.state_dict();
    let message = is_value_error(state.to_file(), "a state with NaN");
    assert_eq!(message, "group 0 of Sgd: hyperparameters: 'dampening' is NaN, which JSON cannot store");
    optimizer.groups_mut()[0].dampening = 0.5;
    let message = is_value_error(optimizer.load_state_dict(&state), "a state with NaN");
    assert!(message.contains("'dampening' is NaN"), "{message}");
    assert_eq!(optimizer.groups()[0].dampening, 0.5);
    Ok(())
}

/// Options that serde writes have the text of an infinite number in its place.
#[test]
fn an_infinite_option_is_a_text_in_json() {
    let options = AsgdOptions::new().t0(f64::INFINITY);
    let json = serde_json::to_value(&options).unwrap();
    assert_eq!(json["t0"], "inf");
    assert_eq!(serde_json::from_value::<AsgdOptions>(json).unwrap(), options);
}

#[test]
fn bad_learning_rates_are_refused_when_built_when_set_and_in_a_step() -> Result<()> {
    for row in every() {
        let named = model()?;
        let parameters = plain(&named);
        for lr in [-0.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            is_value_error(row.at(parameters.clone(), lr), row.name);
        }
        let mut optimizer = row.build(named)?;
        optimizer.step_with(&mut || loss(&parameters))?;
        let before = all(&parameters, &*optimizer)?;
        for lr in [-0.1, f64::NAN, f64::INFINITY] {
            is_value_error(optimizer.set_lr(lr), row.name);
            is_value_error(optimizer.set_lrs(&[lr]), row.name);
        }
        is_value_error(optimizer.set_lrs(&[0.1, 0.1]), row.name);
        is_value_error(optimizer.set_momentums(&[f64::NAN]), row.name);
        assert_eq!(all(&parameters, &*optimizer)?, before, "{}", row.name);
    }
    // Fields of a group can be set to anything; the step refuses them.
    let parameters = plain(&model()?);
    loss(&parameters)?.backward()?;
    let mut optimizer = AdamW::new(parameters.clone())?;
    let before = all(&parameters, &optimizer)?.0;
    let changes: [fn(&mut namegrad_optim::AdamWOptions); 4] = [
        |group| group.lr = -1.0,
        |group| group.lr = f64::NAN,
        |group| group.betas = (1.0, 0.9),
        |group| group.betas = (0.9, f64::NAN),
    ];
    for change in changes {
        let fine = optimizer.groups()[0].clone();
        change(&mut optimizer.groups_mut()[0]);
        is_value_error(optimizer.step(), "a bad field");
        is_value_error(optimizer.step_with(&mut || loss(&parameters)), "a bad field");
        optimizer.groups_mut()[0] = fine;
        assert_eq!(all(&parameters, &optimizer)?.0, before);
    }
    optimizer.step()
}

#[test]
fn no_parameters_and_one_in_two_groups_are_refused() -> Result<()> {
    for row in every() {
        let message = is_value_error(row.build(vec![]), row.name);
        assert!(message.contains("optimizer got an empty parameter list"), "{message}");
        let parameters = plain(&model()?);
        let twice = vec![parameters[0].clone(), parameters[0].clone()];
        let message = is_value_error(row.at(twice, 0.1), row.name);
        assert!(message.contains("more than once in the parameter groups"), "{message}");
        is_value_error(row.grouped(parameters.clone(), vec![parameters[0].clone()]), row.name);
    }
    let named = model()?;
    let message = is_value_error(
        Sgd::builder_named(named.clone()).group([named[1].1.clone()], |_| ()).build(),
        "a named parameter",
    );
    assert!(message.contains("'b.weight'"), "{message}");
    let mut optimizer = Sgd::new(plain(&named))?;
    is_value_error(optimizer.add_group([named[0].1.clone()], |_| ()), "add_group");
    assert_eq!(optimizer.lrs().len(), 1);
    Ok(())
}

#[test]
fn the_state_of_another_optimizer_or_model_is_refused_and_named() -> Result<()> {
    let rows = every();
    for (number, row) in rows.iter().enumerate() {
        let named = model()?;
        let parameters = plain(&named);
        let mut optimizer = row.build(named.clone())?;
        optimizer.step_with(&mut || loss(&parameters))?;
        let before = all(&parameters, &*optimizer)?;
        let other = &rows[(number + 1) % rows.len()];
        let mut refuse = |state: &OptimizerState, words: &[&str]| {
            let message = is_value_error(optimizer.load_state_dict(state), row.name);
            for word in words {
                assert!(message.contains(word), "{}: {message}", row.name);
            }
        };
        refuse(&other.build(model()?)?.state_dict(), &[row.name, other.name]);

        let mut changed = model()?;
        changed[0].0 = "c.weight".into();
        changed[1].0 = "d.weight".into();
        refuse(&row.build(changed)?.state_dict(), &["'c.weight'", "'a.weight'", "'d.weight'", "'b.weight'"]);

        let mut more = model()?;
        more.push(("late.weight".into(), matrix("x")?));
        refuse(
            &row.build(more)?.state_dict(),
            &["3 parameters in the state", "only in the state: 'late.weight'"],
        );
        let fewer = model()?[..1].to_vec();
        refuse(&row.build(fewer)?.state_dict(), &["missing in the state: 'b.weight'"]);

        let renamed = vec![("a.weight".into(), matrix("h")?), ("b.weight".into(), matrix("other")?)];
        refuse(&row.build(renamed)?.state_dict(), &["'b.weight'", "names ['other', 'in']", "['out', 'in']"]);
        let larger = Parameter::new(Tensor::ones([("out", 4), ("in", 3)])?)?;
        let larger = vec![("a.weight".into(), matrix("h")?), ("b.weight".into(), larger)];
        refuse(&row.build(larger)?.state_dict(), &["'b.weight'", "[4, 3]", "[3, 3]"]);
        assert_eq!(all(&parameters, &*optimizer)?, before, "{}", row.name);
    }
    Ok(())
}

#[test]
fn a_nan_gradient_is_an_error_of_clipping_and_is_skipped_by_the_scaler() -> Result<()> {
    for row in every() {
        let named = model()?;
        let parameters = plain(&named);
        let mut optimizer = row.build(named)?;
        optimizer.step_with(&mut || loss(&parameters))?;
        let before = all(&parameters, &*optimizer)?;
        let mut scaler = GradScaler::new();
        optimizer.zero_grad();
        scaler.scale(&loss(&parameters)?.mul(f64::NAN)?)?.backward()?;
        let strict = ClipGradNormOptions::new().error_if_nonfinite(true);
        is_value_error(clip_grad_norm_with_(&parameters, 1.0, strict), row.name);
        if optimizer.needs_loss() {
            assert_eq!(scaler.step(&mut *optimizer).unwrap_err().kind(), ErrorKind::Autograd);
        } else {
            assert!(!scaler.step(&mut *optimizer)?);
            assert_eq!(scaler.steps_skipped(), 1);
        }
        assert_eq!(all(&parameters, &*optimizer)?, before, "{}", row.name);
    }
    Ok(())
}

#[test]
fn only_lbfgs_needs_a_closure() -> Result<()> {
    for row in every() {
        let named = model()?;
        let parameters = plain(&named);
        let mut optimizer = row.build(named)?;
        loss(&parameters)?.backward()?;
        let before = all(&parameters, &*optimizer)?;
        assert_eq!(optimizer.needs_loss(), row.name == "Lbfgs");
        if let Err(error) = optimizer.step() {
            assert_eq!((error.kind(), error.location().file()), (ErrorKind::Autograd, file!()));
            assert!(error.repair().is_some_and(|repair| repair.contains("step_with")), "{error}");
            assert_eq!((row.name, all(&parameters, &*optimizer)?), ("Lbfgs", before));
        }
    }
    Ok(())
}

#[test]
fn parameters_and_their_states_keep_their_names() -> Result<()> {
    for row in every() {
        let named = model()?;
        let parameters = plain(&named);
        let mut optimizer = row.build(named)?;
        for _ in 0..2 {
            optimizer.step_with(&mut || loss(&parameters))?;
        }
        let want = [["h", "in"], ["out", "in"]];
        let file = optimizer.state_dict().to_file()?;
        let bytes = namegrad::io::TensorFile::from_bytes(&file.to_bytes()?)?;
        for state in [optimizer.state_dict(), OptimizerState::from_file(&bytes)?] {
            for (number, parameter) in state.groups[0].parameters.iter().enumerate() {
                let name = row.name;
                assert_eq!(*parameters[number].tensor().names(), want[number], "{name}");
                assert_eq!(parameter.names, *parameters[number].tensor().names(), "{name}");
                let slots = parameter.slots.iter().filter(|(_, slot)| slot.sizes() == [3, 3]);
                for (slot, value) in slots {
                    assert_eq!(*value.names(), want[number], "{slot} of {name}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_gradient_with_other_names_is_refused_before_anything_changes() -> Result<()> {
    for row in every() {
        let named = model()?;
        let parameters = plain(&named);
        let mut optimizer = row.build(named)?;
        // Named gradients of a backward pass fit, and so do those that somebody sets with the right names.
        let options = BackwardOptions::new().named(true);
        loss(&parameters)?.backward_with(None, options)?;
        assert_eq!(*parameters[0].grad().unwrap().names(), ["h", "in"]);
        if !optimizer.needs_loss() {
            optimizer.step()?;
        }
        let gradient = parameters[1].grad().unwrap();
        parameters[1].set_grad(Some(gradient.rename(["out", "in"])?))?;
        if !optimizer.needs_loss() {
            optimizer.step()?;
        }
        let before = all(&parameters, &*optimizer)?;
        for names in [["in", "out"], ["out", "other"]] {
            parameters[1].set_grad(Some(gradient.rename(names)?))?;
            assert_eq!(*parameters[1].grad().unwrap().names(), names);
            let result = match optimizer.needs_loss() {
                // Its gradients come from the closure alone; those that are there count for nothing.
                true => optimizer.step_with(&mut || loss(&parameters)?.mul(0.0)).map(drop),
                false => optimizer.step(),
            };
            match result {
                Ok(()) => assert_eq!(row.name, "Lbfgs"),
                Err(error) => {
                    let place = (error.kind(), error.location().file());
                    assert_eq!(place, (ErrorKind::NameMismatch, file!()), "{error}");
                    let message = error.message();
                    assert!(message.contains("'b.weight'") && message.contains("['out', 'in']"), "{error}");
                    assert!(error.repair().is_some_and(|repair| repair.contains("align_as")));
                }
            }
            assert_eq!(all(&parameters, &*optimizer)?.0, before.0, "{}", row.name);
        }
        // The repair of the message, and adding to the gradient, which drops its names.
        let parameter = &parameters[1];
        let permuted = gradient.rename(["out", "in"])?.align_to(["in", "out"])?;
        parameter.set_grad(Some(permuted.align_as(&parameter.tensor())?))?;
        parameter.tensor().sum(..)?.backward()?;
        assert!(!parameter.grad().unwrap().has_names());
        if !optimizer.needs_loss() {
            optimizer.step()?;
        }
    }
    Ok(())
}

#[test]
fn a_learning_rate_beyond_f32_is_for_f64_parameters() -> Result<()> {
    for row in every() {
        let parameters = plain(&model()?);
        let mut optimizer = row.at(parameters.clone(), 0.1)?;
        optimizer.step_with(&mut || loss(&parameters))?;
        let before = all(&parameters, &*optimizer)?;
        optimizer.set_lr(1e300)?;
        let refused = is_value_error(optimizer.step_with(&mut || loss(&parameters)), row.name);
        assert!(refused.contains("at most 3.4028235e38"), "{refused}");
        optimizer.set_lr(0.1)?;
        assert_eq!(all(&parameters, &*optimizer)?, before, "{}", row.name);
    }
    let wide = Parameter::new(Tensor::from_slice(&[1e-300], [1])?)?;
    wide.set_grad(Some(Tensor::from_slice(&[1e-300], [1])?))?;
    Sgd::builder([wide.clone()]).lr(1e300).build()?.step()?;
    assert_eq!(wide.tensor().item::<f64>()?, 1e-300 - 1e300 * 1e-300);
    Ok(())
}

#[test]
fn a_step_of_lbfgs_ends_where_the_loss_is_nan() -> Result<()> {
    for line_search in [None, Some(LineSearch::StrongWolfe)] {
        let x = Parameter::new(Tensor::new([3.0])?)?;
        let mut optimizer = Lbfgs::builder([x.clone()]).line_search_fn(line_search).max_iter(8).build()?;
        // NaN from the start: the loss shows it, and nothing changes.
        let mut nan = || x.tensor().mul(f64::NAN)?.sum(..);
        assert!(optimizer.step_with(&mut nan)?.item::<f64>()?.is_nan());
        assert_eq!(x.tensor().item::<f64>()?, 3.0);
        // NaN beyond 2: the step goes back to where it was.
        x.set(&Tensor::new([1.5])?)?;
        let mut root = || x.tensor().neg()?.add(2.0)?.sqrt()?.neg()?.mul(-4.0)?.sum(..);
        let first = optimizer.step_with(&mut root)?.item::<f64>()?;
        let (now, last) = (x.tensor().item::<f64>()?, root()?.item::<f64>()?);
        assert!(now.is_finite() && last <= first, "{line_search:?}: {now}, {first} to {last}");
        let mut bowl = || x.tensor().sub(1.0)?.square()?.sum(..);
        for _ in 0..4 {
            optimizer.step_with(&mut bowl)?;
        }
        assert!(bowl()?.item::<f64>()? < 1e-3, "{line_search:?}");
    }
    Ok(())
}

/// The first error of training that nothing else shows: no gradient reaches the parameters of the optimizer.
#[test]
fn a_step_without_gradients_is_an_error_where_it_is_a_mistake() -> Result<()> {
    for row in every() {
        let refused = |result: Result<()>, words: &str| {
            let error = result.unwrap_err();
            assert_eq!((error.kind(), error.op()), (ErrorKind::Autograd, row.name));
            assert!(error.message().contains(words), "{error}");
            assert!(error.location().file().ends_with("bad_input.rs"), "{error}");
        };
        let (named, others) = (model()?, plain(&model()?));
        let (parameters, mut optimizer) = (plain(&named), row.build(named)?);
        let mut step = |computed: &[Parameter], backward: bool| {
            if optimizer.needs_loss() {
                return optimizer.step_with(&mut || loss(computed)).map(drop);
            }
            optimizer.zero_grad();
            let loss = loss(computed)?;
            if backward {
                loss.backward()?;
            }
            optimizer.step()
        };
        refused(step(&others, true), "of another model");
        step(&parameters, true)?;
        if !row.build(model()?)?.needs_loss() {
            refused(step(&parameters, false), "`zero_grad` has removed them, and there was no backward pass");
        }
        step(&parameters, true)?;
        // Some parameters without a gradient are left alone, as in PyTorch.
        parameters[0].set_requires_grad(false)?;
        let before = parameters[0].tensor();
        step(&parameters, true)?;
        assert!(parameters[0].tensor().equal(&before)?);
        parameters.iter().try_for_each(|parameter| parameter.set_requires_grad(false))?;
        refused(step(&others, true), "the model is frozen");
    }
    // Before anything is computed, a step does nothing: schedules can be looked at.
    let parameters = plain(&model()?);
    let mut optimizer = Sgd::new(parameters.clone())?;
    optimizer.step()?;
    let unused = loss(&parameters)?;
    let error = optimizer.step().unwrap_err();
    assert!(error.message().ends_with("has a gradient: there was no backward pass"), "{error}");
    unused.backward()?;
    optimizer.zero_grad();
    let error = optimizer.step().unwrap_err();
    assert!(error.message().ends_with("has removed them, and there was no backward pass since"), "{error}");
    Ok(())
}

/// As the two models of a GAN do, with one loop for both optimizers.
#[test]
fn losses_of_two_models_take_turns() -> Result<()> {
    let parameters = [plain(&model()?), plain(&model()?)];
    let mut optimizers = [Sgd::new(parameters[0].clone())?, Sgd::new(parameters[1].clone())?];
    // The first step of an optimizer without gradients is taken for that of a wrong model.
    for (turn, is_known) in [(0, false), (1, true), (0, true), (0, true), (1, true), (1, true), (0, true)] {
        let before = parameters[1 - turn][0].tensor();
        optimizers.iter().for_each(|optimizer| optimizer.zero_grad());
        let loss = loss(&parameters[turn])?;
        loss.backward()?;
        optimizers[turn].step()?;
        if is_known {
            optimizers[1 - turn].step()?;
        }
        assert!(parameters[1 - turn][0].tensor().equal(&before)?);
    }
    Ok(())
}

/// PyTorch's closures call `backward`; here the step does.
#[test]
fn a_closure_that_calls_backward_is_an_error() -> Result<()> {
    for row in every() {
        let named = model()?;
        let (parameters, mut optimizer) = (plain(&named), row.build(named)?);
        let before = all(&parameters, &*optimizer)?;
        let retain = BackwardOptions::new().retain_graph(true);
        let closures: [&dyn Fn(Tensor) -> Result<Tensor>; 4] = [
            &|loss| loss.backward().map(|()| loss),
            &|loss| loss.backward_with(None, retain).map(|()| loss),
            &|loss| loss.backward().map(|()| loss.detach()),
            &|loss| loss.backward_with(None, retain).and_then(|()| loss.backward()).map(|()| loss),
        ];
        for closure in closures {
            let error = optimizer.step_with(&mut || closure(loss(&parameters)?)).unwrap_err();
            assert_eq!((error.kind(), error.op()), (ErrorKind::Autograd, "step_with"));
            assert!(error.message().starts_with("the closure has called `backward`"), "{error}");
            assert!(error.location().file().ends_with("bad_input.rs"), "{error}");
        }
        assert_eq!(all(&parameters, &*optimizer)?, before, "{}", row.name);
        // A part of the loss may have its own pass, such as a batch that does not fit with the others.
        let mut parts = || {
            loss(&parameters)?.backward()?;
            loss(&parameters)
        };
        optimizer.step_with(&mut parts)?;
        // Without a graph there is nothing to call `backward` for.
        let error = optimizer.step_with(&mut || no_grad(|| loss(&parameters))).unwrap_err();
        assert!(error.message().contains("does not require grad"), "{error}");
    }
    Ok(())
}

/// A NaN of the loss reaches the first elements of all gradients, where a step looks; further ones are looked
/// at by `check_finite`. Nothing changes.
#[test]
fn a_loss_or_a_gradient_that_is_not_finite_is_an_error() -> Result<()> {
    for row in every() {
        let named = model()?;
        let (parameters, mut optimizer) = (plain(&named), row.build(named)?);
        if optimizer.needs_loss() {
            continue; // its steps end where they were
        }
        optimizer.step_with(&mut || loss(&parameters))?;
        let before = all(&parameters, &*optimizer)?;
        for bad in [f64::NAN, f64::INFINITY] {
            let refused = is_value_error(optimizer.step_with(&mut || loss(&parameters)?.mul(bad)), row.name);
            assert!(refused.starts_with("the loss: the value is "), "{refused}");
            optimizer.zero_grad();
            loss(&parameters)?.mul(bad)?.backward()?;
            let refused = is_value_error(optimizer.step(), row.name);
            assert!(refused.starts_with("the gradient of 'a.weight': of "), "{refused}");
            is_value_error(optimizer.check_finite(), "check_finite");
        }
        assert_eq!(all(&parameters, &*optimizer)?, before, "{}", row.name);
    }
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let weight = Parameter::new(Tensor::ones([("a", 9), ("b", 12)])?.to(dtype)?)?;
        let mut optimizer = Sgd::new([weight.clone()])?;
        let ones = Tensor::ones([9, 12])?;
        let gradient = |place: [usize; 2], transposed: bool| -> Result<()> {
            let mut ones = ones.clone();
            ones.index_put_(
                &place.map(|at| namegrad_autograd::Index::At(at as isize)),
                &Tensor::new(f64::NAN)?,
            )?;
            let ones = if transposed { ones.t()?.contiguous()?.t()? } else { ones };
            weight.set_grad(Some(ones.to(dtype)?))
        };
        for transposed in [false, true] {
            gradient([0, 0], transposed)?;
            let message = optimizer.step().unwrap_err().message().to_string();
            assert_eq!(message, "a gradient: of 108 values, 1 are NaN and 0 are infinite");
            gradient([8, 11], transposed)?;
            assert_eq!(optimizer.check_finite().unwrap_err().kind(), ErrorKind::Value);
            weight.set_grad(Some(ones.to(dtype)?))?;
            optimizer.check_finite()?;
        }
    }
    Ok(())
}

/// The README says which NaNs a step finds: those of a loss whose gradients are finite are found by
/// `check_finite`.
#[test]
fn a_nan_loss_with_finite_gradients_is_found_before_the_backward_pass() -> Result<()> {
    let weight = Parameter::new(Tensor::new([-1.0, 2.0])?.refine_names(["class"])?)?;
    let mut optimizer = Sgd::builder([weight.clone()]).lr(0.1).build()?;
    let logarithm = || weight.tensor().log()?.mean(..);
    let ignored = || {
        let logits = weight.tensor().unsqueeze_with(0, UnsqueezeOptions::new().name("N"))?;
        F::cross_entropy(&logits, &Tensor::new([-100])?.refine_names(["N"])?, "class")
    };
    for loss in [&logarithm as &dyn Fn() -> Result<Tensor>, &ignored] {
        optimizer.zero_grad();
        let nan = loss()?;
        assert!(nan.item::<f64>()?.is_nan());
        nan.backward()?;
        optimizer.step()?;
        assert!(weight.tensor().isfinite()?.all(..)?.item::<bool>()?);
        assert!(loss()?.check_finite().is_err());
        assert!(optimizer.step_with(&mut || loss()).is_err());
    }
    Ok(())
}
