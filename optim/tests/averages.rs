//! Averages of models, and running statistics computed again.

use namegrad::prelude::*;
use namegrad_nn::StateDict;
use namegrad_optim::{AverageState, AveragedModel, update_batch_norm};
use std::path::PathBuf;

fn model() -> Result<Sequential> {
    Ok(Sequential::new().then(Linear::new(("in", 2), ("h", 3))?).then(BatchNorm::new(("h", 3))?))
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("namegrad-average-{name}-{}.safetensors", std::process::id()))
}

/// Sets every element of a parameter or a buffer.
fn fill(model: &dyn Module, path: &str, number: f64) -> Result<()> {
    for (own, parameter) in model.named_parameters() {
        if own == path {
            parameter.update(|value| value.fill_(number).map(drop))?;
        }
    }
    for (own, buffer) in model.named_buffers() {
        if own == path {
            let mut value = buffer.value();
            value.fill_(number)?;
            buffer.set(value)?;
        }
    }
    Ok(())
}

fn first(model: &dyn Module, path: &str) -> f64 {
    let state = model.state_dict();
    state.get(path).unwrap().to(DType::F64).unwrap().to_vec::<f64>().unwrap()[0]
}

const PATHS: [&str; 3] = ["0.weight", "1.running_mean", "1.num_batches_tracked"];

#[test]
fn averages_are_those_of_pytorch() -> Result<()> {
    manual_seed(1);
    // From `AveragedModel` of PyTorch 2.15, with `get_ema_multi_avg_fn(0.9)` and without.
    let ema = [0.1, 0.13, 0.187, 0.2683];
    let equal = [0.1, 0.25, 0.4, 0.55];
    let copied = [[0.0, 0.2, 0.4, 0.6], [13.0, 23.0, 33.0, 43.0]];
    let cases = [
        (true, false, [ema, copied[0], copied[1]]),
        (true, true, [ema, [0.0, 0.02, 0.058, 0.1122], [13.0, 14.0, 15.0, 17.0]]),
        (false, false, [equal, copied[0], copied[1]]),
        (false, true, [equal, [0.0, 0.1, 0.2, 0.3], [13.0, 18.0, 23.0, 28.0]]),
    ];
    for (is_ema, use_buffers, want) in cases {
        let model = model()?;
        let builder = AveragedModel::builder(&model).use_buffers(use_buffers);
        let mut average = if is_ema { builder.ema(0.9) } else { builder }.build()?;
        for t in 0..4 {
            let time = t as f64;
            for (path, value) in PATHS.into_iter().zip([0.3 * time + 0.1, 0.2 * time, 10.0 * time + 13.0]) {
                fill(&model, path, value)?;
            }
            average.update_parameters(&model)?;
            let found = average.scope(&model, || Ok(PATHS.map(|path| first(&model, path))))?;
            let want = want.map(|all| all[t]);
            let close = found.iter().zip(want).all(|(found, want)| (found - want).abs() < 1e-6);
            assert!(close, "ema {is_ema}, buffers {use_buffers}, update {t}: {found:?}, not {want:?}");
        }
        assert_eq!(average.n_averaged(), 4);
    }
    Ok(())
}

/// A formula of the average, the number and how many came before.
type Rule = fn(f64, f64, f64) -> f64;

/// The average of `numbers` by a formula in f64.
fn plain(numbers: &[f64], rule: Rule) -> f64 {
    let each = numbers.iter().enumerate().skip(1);
    each.fold(numbers[0], |average, (n, number)| rule(average, *number, n as f64))
}

#[test]
fn a_long_average_follows_its_formula() -> Result<()> {
    manual_seed(2);
    // Long enough for several threads, and in a half type.
    for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 1e-5), (DType::BF16, 1e-5)] {
        let layer = Linear::new(("in", 300), ("out", 301))?;
        layer.to(dtype)?;
        let rules: [(&str, AveragedModel, Rule); 4] = [
            ("ema", AveragedModel::ema(&layer, 0.9)?, |a, p, _| 0.9 * a + 0.1 * p),
            ("equal", AveragedModel::new(&layer)?, |a, p, n| a + (p - a) / (n + 1.0)),
            (
                "weight",
                AveragedModel::builder(&layer).weight(|n| 0.7 - 0.01 * n as f64).build()?,
                |a, p, n| a + (0.7 - 0.01 * n) * (p - a),
            ),
            ("avg_fn", AveragedModel::builder(&layer).avg_fn(|a, p, _| a.maximum(p)).build()?, |a, p, _| {
                a.max(p)
            }),
        ];
        for (name, mut average, rule) in rules {
            let mut history: Vec<Vec<f64>> = Vec::new();
            for _ in 0..6 {
                let noise = Tensor::randn([("out", 301), ("in", 300)])?;
                layer.weight().set(&noise)?;
                history.push(layer.weight().tensor().to(DType::F64)?.to_vec()?);
                average.update_parameters(&layer)?;
            }
            let state = average.state_dict();
            let kept = &state.parameters["weight"].value;
            assert_eq!(kept.dtype(), if dtype == DType::F64 { dtype } else { DType::F32 });
            for (i, found) in kept.to(DType::F64)?.to_vec::<f64>()?.into_iter().enumerate().step_by(997) {
                let numbers: Vec<f64> = history.iter().map(|step| step[i]).collect();
                let want = plain(&numbers, rule);
                assert!((found - want).abs() <= tolerance, "{name} in {dtype}: {found}, not {want}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_scope_ends_also_after_an_error_and_a_panic() -> Result<()> {
    manual_seed(3);
    let model = model()?;
    let mut average = AveragedModel::new(&model)?;
    fill(&model, PATHS[0], 1.0)?;
    average.update_parameters(&model)?;
    fill(&model, PATHS[0], 3.0)?;
    let seen = average.scope(&model, || Ok(first(&model, PATHS[0])))?;
    assert_eq!((seen, first(&model, PATHS[0])), (1.0, 3.0));
    let failed = average.scope(&model, || model.forward(&Tensor::ones([("other", 2)])?));
    assert!(failed.is_err());
    assert_eq!(first(&model, PATHS[0]), 3.0);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        average.scope(&model, || -> Result<()> { panic!("in the scope") })
    }));
    assert!(caught.is_err());
    assert_eq!(first(&model, PATHS[0]), 3.0);
    // A forward pass in training mode changes the statistics of the average alone, for this scope.
    average.scope(&model, || model.forward(&Tensor::randn([("N", 4), ("in", 2)])?))?;
    assert_eq!(first(&model, PATHS[2]), 0.0);
    assert_eq!(average.scope(&model, || Ok(first(&model, PATHS[2])))?, 0.0);
    Ok(())
}

#[test]
fn an_average_is_copied_to_a_model() -> Result<()> {
    manual_seed(4);
    let model = model()?;
    model.to(DType::F16)?;
    let mut average = AveragedModel::ema(&model, 0.5)?;
    for number in [1.0, 2.0, 4.0] {
        fill(&model, PATHS[0], number)?;
        average.update_parameters(&model)?;
    }
    let copy = model.deep_copy()?;
    average.copy_to(&copy)?;
    assert_eq!((first(&copy, PATHS[0]), first(&model, PATHS[0])), (2.75, 4.0));
    assert_eq!(copy.parameters()[0].dtype(), DType::F16);
    assert_eq!(*copy.parameters()[0].tensor().names(), ["h", "in"]);
    let other = Linear::new(("in", 2), ("h", 3))?;
    let error = average.copy_to(&other).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    assert!(error.message().contains("'0.weight'"), "{error}");
    Ok(())
}

#[derive(Module)]
struct Growing {
    a: Linear,
    tied: Parameter,
    late: Vec<Linear>,
}

#[test]
fn ties_frozen_parameters_and_those_that_come_later_are_averaged() -> Result<()> {
    manual_seed(5);
    let a = Linear::new(("in", 2), ("out", 2))?;
    let mut model = Growing { tied: a.weight().clone(), a, late: Vec::new() };
    model.a.bias().unwrap().set_requires_grad(false)?;
    let mut average = AveragedModel::new(&model)?;
    assert_eq!(average.state_dict().parameters.len(), 2, "the tied one once");
    for number in [1.0, 3.0] {
        fill(&model, "a.weight", number)?;
        fill(&model, "a.bias", number)?;
        average.update_parameters(&model)?;
    }
    model.late.push(Linear::builder(("out", 2), ("late", 1)).bias(false).build()?);
    for number in [5.0, 7.0] {
        fill(&model, "a.weight", number)?;
        fill(&model, "late.0.weight", number)?;
        average.update_parameters(&model)?;
    }
    let paths = ["a.weight", "tied", "a.bias", "late.0.weight"];
    let found = average.scope(&model, || Ok(paths.map(|path| first(&model, path))))?;
    assert_eq!(found, [4.0, 4.0, 2.5, 6.0], "the late one is the average of its own two");
    // A parameter that is gone, or has other dims.
    let before = average.state_dict();
    model.late.clear();
    let lost = average.update_parameters(&model).unwrap_err();
    assert!(lost.message().contains("no 'late.0.weight'"), "{lost}");
    model.late.push(Linear::builder(("out", 2), ("late", 3)).bias(false).build()?);
    let grown = average.update_parameters(&model).unwrap_err();
    model.late[0] = Linear::builder(("out", 2), ("other", 1)).bias(false).build()?;
    let renamed = average.update_parameters(&model).unwrap_err();
    let kinds = [&lost, &grown, &renamed].map(|error| (error.kind(), error.location().file()));
    let kind = [ErrorKind::Value, ErrorKind::Shape, ErrorKind::NameMismatch];
    assert_eq!(kinds, kind.map(|kind| (kind, file!())));
    let after = average.state_dict();
    assert_eq!(after.n_averaged, before.n_averaged);
    for (path, average) in &before.parameters {
        assert!(after.parameters[path].value == average.value, "{path} has not changed");
    }
    Ok(())
}

#[test]
fn a_weight_that_is_not_finite_changes_nothing() -> Result<()> {
    manual_seed(6);
    for (late, use_buffers) in [(f64::NAN, false), (f64::INFINITY, true)] {
        let model = model()?;
        let builder = AveragedModel::builder(&model).use_buffers(use_buffers);
        let mut average = builder.weight(move |n| if n == 2 { late } else { 0.5 }).build()?;
        for value in [1.0, 2.0] {
            PATHS.iter().try_for_each(|path| fill(&model, path, value))?;
            average.update_parameters(&model)?;
        }
        let before = average.state_dict();
        PATHS.iter().try_for_each(|path| fill(&model, path, 3.0))?;
        let error = average.update_parameters(&model).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()), "{error}");
        assert!(error.message().contains("the weight of update 2 must be finite"), "{error}");
        let after = average.state_dict();
        assert_eq!((before.n_averaged, after.n_averaged), (2, 2));
        for (path, value) in before.parameters.iter().chain(&before.buffers) {
            let now = after.parameters.get(path).or(after.buffers.get(path)).unwrap();
            assert!(now.value == value.value && now.count == value.count, "{path}");
        }
    }
    Ok(())
}

#[test]
fn a_resumed_average_is_equal_in_every_bit() -> Result<()> {
    manual_seed(7);
    let numbers = |t: i32| f64::from(t * 37 % 11) / 7.0;
    for rule in 0..4 {
        let make = |model: &Sequential| {
            let builder = AveragedModel::builder(model).use_buffers(rule == 3);
            match rule {
                0 => builder,
                1 | 3 => builder.ema(0.97),
                _ => builder.weight(|n| 1.0 / (n as f64 + 2.0)),
            }
            .build()
        };
        let steps = |model: &Sequential, average: &mut AveragedModel, range: std::ops::Range<i32>| {
            range.into_iter().try_for_each(|t| {
                PATHS.iter().try_for_each(|path| fill(model, path, numbers(t)))?;
                average.update_parameters(model)
            })
        };
        let whole = model()?;
        let mut expected = make(&whole)?;
        let copy = whole.deep_copy()?;
        steps(&whole, &mut expected, 0..10)?;
        let mut average = make(&copy)?;
        steps(&copy, &mut average, 0..5)?;
        let path = scratch(&format!("resume-{rule}"));
        average.state_dict().save(&path)?;
        let mut resumed = make(&copy)?;
        resumed.load_state_dict(&AverageState::load(&path)?)?;
        steps(&copy, &mut resumed, 5..10)?;
        let (expected, resumed) = (expected.state_dict(), resumed.state_dict());
        assert_eq!(expected.n_averaged, resumed.n_averaged);
        for (path, value) in expected.parameters.iter().chain(&expected.buffers) {
            let other = resumed.parameters.get(path).or(resumed.buffers.get(path)).unwrap();
            assert!(value.value == other.value, "{path} of rule {rule}");
            assert_eq!((value.value.names(), value.count), (other.value.names(), other.count));
        }
        // The file is also that of a model.
        let state = StateDict::load(&path)?;
        model()?.load_state_dict(&state)?;
        std::fs::remove_file(path).unwrap();
    }
    Ok(())
}

#[test]
fn the_state_of_another_average_is_refused_and_named() -> Result<()> {
    manual_seed(8);
    let model = model()?;
    let mut average = AveragedModel::ema(&model, 0.9)?;
    let other = Sequential::new().then(Linear::new(("in", 2), ("h", 4))?).then(Relu);
    let cases = [
        (AveragedModel::new(&model)?.state_dict(), "the average is 'ema' here, 'equal' in the state"),
        (
            AveragedModel::builder(&model).ema(0.9).use_buffers(true).build()?.state_dict(),
            "use_buffers is false here, true in the state",
        ),
        (
            AveragedModel::ema(&other, 0.9)?.state_dict(),
            "'0.bias' is [h=4] in the average and [h=3] in the model",
        ),
        (AveragedModel::ema(&other, 0.9)?.state_dict(), "'1.running_mean' is missing in the state"),
    ];
    for (state, words) in cases {
        let error = average.load_state_dict(&state).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
        assert!(error.message().contains(words), "{error}");
    }
    let mut state = average.state_dict();
    state.decay = Some(f64::NAN);
    assert!(average.load_state_dict(&state).is_err());
    // Files that are none.
    let mut file = average.state_dict().to_file()?;
    let path = file.tensors.keys().next().unwrap().clone();
    file.tensors.remove(&path);
    let error = AverageState::from_file(&file).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Format, file!()));
    assert!(error.message().contains(&format!("'{path}' is missing")), "{error}");
    file.metadata.insert("average".into(), "{}".into());
    assert_eq!(AverageState::from_file(&file).unwrap_err().kind(), ErrorKind::Format);
    file.metadata.clear();
    assert!(AverageState::from_file(&file).unwrap_err().message().contains("not the state of an average"));
    let mut file = average.state_dict().to_file()?;
    file.tensors.insert("other".into(), namegrad::core::NamedTensor::zeros([1])?);
    assert!(AverageState::from_file(&file).is_err());
    Ok(())
}

#[test]
fn bad_arguments_are_refused() -> Result<()> {
    manual_seed(9);
    let model = model()?;
    for decay in [-0.1, 1.5, f64::NAN, f64::INFINITY] {
        let error = AveragedModel::ema(&model, decay).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
        assert!(error.message().contains("Invalid decay value"), "{error}");
    }
    let error = AveragedModel::new(&Relu).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    let mut average = AveragedModel::builder(&model).avg_fn(|a, _, _| a.select(0, 0)).build()?;
    average.update_parameters(&model)?;
    let error = average.update_parameters(&model).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Shape, file!()));
    Ok(())
}

#[test]
fn running_statistics_are_averages_over_all_batches() -> Result<()> {
    manual_seed(10);
    let model = model()?.then(Dropout::new(0.0)?);
    let batches: Vec<Tensor> = (0..5).map(|_| Tensor::randn([("N", 8), ("in", 2)])).collect::<Result<_>>()?;
    model.forward(&batches[0])?;
    model.eval();
    let Some((_, linear)) = model.named_parameters().into_iter().next() else { unreachable!() };
    let hidden = |x: &Tensor| F::linear(x, linear.tensor());
    let bias = model.named_parameters()[1].1.tensor();
    update_batch_norm(&model, &batches, |batch| model.forward(batch))?;
    let means = batches.iter().map(|x| hidden(x)?.add(&bias)?.mean("N")).collect::<Result<Vec<_>>>()?;
    let want = Tensor::stack(&means, 0)?.mean(0)?;
    let vars = batches.iter().map(|x| hidden(x)?.var("N")).collect::<Result<Vec<_>>>()?;
    let want_var = Tensor::stack(&vars, 0)?.mean(0)?;
    let state = model.state_dict();
    let near = |path: &str, want: &Tensor| {
        let want = want.detach().into_value();
        state.get(path).unwrap().sub(&want).unwrap().abs().unwrap().amax(..).unwrap().item::<f64>().unwrap()
    };
    assert!(near("1.running_mean", &want) < 1e-5 && near("1.running_var", &want_var) < 1e-5);
    assert_eq!(first(&model, PATHS[2]), 5.0);
    model.entries(&mut |path, entry| {
        if let namegrad_nn::Entry::Training(training) = entry {
            assert!(!training.get(), "{path} is in evaluation mode as before");
        }
    });
    // After an error, nothing has changed.
    let before = model.state_dict();
    let mut calls = 0;
    let failed = update_batch_norm(&model, &batches, |batch| {
        calls += 1;
        if calls == 3 { batch.select("no", 0) } else { model.forward(batch) }
    });
    assert!(failed.is_err());
    let error = update_batch_norm(&model, Vec::<Tensor>::new(), |batch| model.forward(&batch)).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    for (path, value) in before.iter() {
        assert!(model.state_dict().get(path) == Some(value), "{path}");
    }
    // Without running statistics there is nothing to do.
    update_batch_norm(&Relu, &batches, |_| -> Result<()> { panic!("not called") })
}

#[test]
fn an_average_has_running_statistics_of_its_own() -> Result<()> {
    manual_seed(11);
    let model = model()?;
    let mut average = AveragedModel::new(&model)?;
    average.update_parameters(&model)?;
    let batches = vec![Tensor::randn([("N", 8), ("in", 2)])?; 3];
    average.update_batch_norm(&model, &batches, |batch| model.forward(batch))?;
    assert_eq!(first(&model, PATHS[2]), 0.0);
    assert_eq!(average.scope(&model, || Ok(first(&model, PATHS[2])))?, 3.0);
    let error =
        average.update_batch_norm(&model, Vec::<Tensor>::new(), |batch| model.forward(&batch)).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    assert_eq!(average.scope(&model, || Ok(first(&model, PATHS[2])))?, 3.0);
    average.update_parameters(&model)?;
    assert_eq!(average.scope(&model, || Ok(first(&model, PATHS[2])))?, 0.0, "those of the model again");
    Ok(())
}

#[test]
fn a_layer_at_two_paths_is_averaged_once() -> Result<()> {
    manual_seed(12);
    let norm = BatchNorm::new(("h", 3))?;
    let model = Sequential::new().then(norm.clone()).then(norm);
    let x = Tensor::randn([("N", 8), ("h", 3)])?;
    let mut average = AveragedModel::builder(&model).use_buffers(true).build()?;
    for _ in 0..2 {
        model.forward(&x)?;
        average.update_parameters(&model)?;
    }
    let mut resumed = AveragedModel::builder(&model).use_buffers(true).build()?;
    resumed.load_state_dict(&average.state_dict())?;
    resumed.scope(&model, || model.forward(&x))?;
    resumed.update_batch_norm(&model, [&x], |x| model.forward(x))?;
    model.to(DType::BF16)?;
    AveragedModel::new(&model)?.scope(&model, || model.forward(&x.to(DType::BF16)?))?;
    Ok(())
}

#[test]
fn running_statistics_of_half_types_stay_in_f32() -> Result<()> {
    manual_seed(13);
    for use_buffers in [true, false] {
        let model = Sequential::new().then(BatchNorm::new(("h", 4))?);
        model.to(DType::BF16)?;
        let x = Tensor::randn([("N", 8), ("h", 4)])?.to(DType::BF16)?;
        let mut average = AveragedModel::builder(&model).ema(0.9).use_buffers(use_buffers).build()?;
        average.update_parameters(&model)?;
        average.update_batch_norm(&model, [&x], |x| model.forward(x))?;
        average.update_parameters(&model)?;
        assert_eq!(average.state_dict().buffers["0.running_mean"].value.dtype(), DType::F32);
    }
    Ok(())
}
