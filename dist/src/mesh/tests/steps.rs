//! Steps that need the whole of a parameter or of its gradient, beside those of one process.

use super::*;
use namegrad::core::random::{Generator, GeneratorState};
use namegrad::optim::{
    Adafactor, ClipGradNormOptions, GradScaler, Lamb, Lbfgs, LineSearch, Muon, OptimizerState,
    clip_each_grad_norm_, clip_grad_norm_, clip_grad_norm_with_,
};

const AXES: [(&str, usize); 2] = [("data", 2), ("model", 2)];
const TABLE: [(&str, &str); 2] = [("batch", "data"), ("hidden", "model")];

/// A way to train: makes an optimizer, and steps with the loss of the model.
type Train = fn(&Mlp, &mut dyn FnMut() -> Result<Tensor>) -> Result<OptimizerState>;

fn descend(optimizer: &mut dyn Optimizer, loss: &mut dyn FnMut() -> Result<Tensor>) -> Result<()> {
    for _ in 0..STEPS {
        optimizer.step_with(loss)?;
    }
    Ok(())
}

/// The matrices of a model.
fn matrices(model: &Mlp) -> Vec<Parameter> {
    model.parameters().into_iter().filter(|parameter| parameter.ndim() == 2).collect()
}

const TRAIN: [(&str, Train); 4] = [
    ("Lamb", |model, loss| {
        let mut optimizer = Lamb::builder(model.parameters()).lr(0.05).build()?;
        descend(&mut optimizer, loss)?;
        Ok(optimizer.state_dict())
    }),
    ("Adafactor", |model, loss| {
        let mut optimizer = Adafactor::builder(model.parameters()).lr(0.05).build()?;
        descend(&mut optimizer, loss)?;
        Ok(optimizer.state_dict())
    }),
    ("Muon", |model, loss| {
        let mut optimizer = Muon::builder(matrices(model)).lr(0.05).build()?;
        descend(&mut optimizer, loss)?;
        Ok(optimizer.state_dict())
    }),
    ("Lbfgs", |model, loss| {
        let wolfe = Some(LineSearch::StrongWolfe);
        let mut optimizer = Lbfgs::builder(model.parameters()).max_iter(4).line_search_fn(wolfe).build()?;
        descend(&mut optimizer, loss)?;
        Ok(optimizer.state_dict())
    }),
];

fn slots(state: &OptimizerState) -> Vec<NamedTensor> {
    moments(state).into_iter().chain(state.shared.values().cloned()).collect()
}

#[test]
fn optimizers_see_whole_parameters() {
    for (name, train) in TRAIN {
        let alone = (MLP.model)();
        filled(&alone);
        let batch = (MLP.batch)();
        let state = train(&alone, &mut || (MLP.loss)(&alone, &batch)).unwrap();
        for zero in [None, Some(1), Some(3)] {
            for made in on_ranks(4, |group| -> Result<(StateDict, Vec<NamedTensor>)> {
                let mesh = Mesh::on(group, AXES)?.shard(TABLE)?;
                let mesh = zero.map_or(Ok(mesh.clone()), |level| mesh.zero(level, "data"))?;
                let model = (MLP.model)();
                filled(&model);
                mesh.split(&model)?;
                let batch: Vec<Tensor> = batch.iter().map(|x| mesh.part(x)).collect::<Result<_>>()?;
                let state = train(&model, &mut mesh.closure(|| (MLP.loss)(&model, &batch)))?;
                Ok((mesh.state_dict(&model)?, slots(&state)))
            }) {
                let (own, kept) = made.unwrap_or_else(|error| panic!("{name}, zero {zero:?}: {error}"));
                for ((path, x), (_, y)) in own.iter().zip(alone.state_dict().iter()) {
                    close(&format!("{name}, zero {zero:?}: {path}"), x, y);
                }
                for (x, y) in kept.iter().zip(&slots(&state)) {
                    close(&format!("{name}, zero {zero:?}: the state"), x, y);
                }
            }
        }
    }
}

#[test]
fn states_of_whole_parameters_are_loaded_by_other_tables() {
    let of = |group: &Group, table: Table<'_>, state: Option<&OptimizerState>| -> Result<OptimizerState> {
        let mesh = Mesh::on(group, AXES)?.shard(table.iter().copied())?;
        let model = (MLP.model)();
        filled(&model);
        mesh.split(&model)?;
        let mut optimizer = Lamb::new(model.parameters())?;
        if let Some(state) = state {
            mesh.load_optimizer_state(&mut optimizer, state)?;
        }
        let batch: Vec<Tensor> = (MLP.batch)().iter().map(|x| mesh.part(x)).collect::<Result<_>>()?;
        mesh.scope(|| (MLP.loss)(&model, &batch)?.backward())?;
        optimizer.step()?;
        mesh.optimizer_state(&optimizer)
    };
    let first = on_ranks(4, |group| of(group, &TABLE, None)).remove(0).unwrap();
    for second in on_ranks(4, |group| of(group, &[("class", "model"), ("batch", "data")], Some(&first))) {
        assert_eq!(second.unwrap().groups[0].parameters[0].steps, 2);
    }
}

#[test]
fn clipping_is_by_the_norm_of_the_whole() {
    let alone = (MLP.model)();
    filled(&alone);
    let backward = |model: &Mlp, batch: &[Tensor]| (MLP.loss)(model, batch)?.backward();
    let infinite = ClipGradNormOptions::new().norm_type(f64::INFINITY);
    let cubic = ClipGradNormOptions::new().norm_type(3.0);
    let clip = |model: &Mlp| -> Result<Vec<f64>> {
        let mut norms = vec![
            clip_grad_norm_(model.parameters(), 0.1)?,
            clip_grad_norm_with_(model.parameters(), 0.01, infinite.clone())?,
            clip_grad_norm_with_(model.parameters(), 0.005, cubic.clone())?,
        ];
        norms.extend(clip_each_grad_norm_(model.parameters(), 0.001)?);
        Ok(norms)
    };
    backward(&alone, &(MLP.batch)()).unwrap();
    let expected = clip(&alone).unwrap();
    for norms in on_ranks(4, |group| -> Result<Vec<f64>> {
        let mesh = Mesh::on(group, AXES)?.shard(TABLE)?.zero(1, "data")?;
        let model = (MLP.model)();
        filled(&model);
        mesh.split(&model)?;
        let batch: Vec<Tensor> = (MLP.batch)().iter().map(|x| mesh.part(x)).collect::<Result<_>>()?;
        mesh.scope(|| backward(&model, &batch))?;
        clip(&model)
    }) {
        for (own, one) in norms.unwrap().iter().zip(&expected) {
            assert!((own - one).abs() < 1e-12, "{own} in parts, {one} on one process");
        }
    }
}

#[test]
fn all_ranks_skip_the_steps_of_a_scaler() {
    let stepped = on_ranks(2, |group| -> Result<(bool, bool, f64)> {
        let mesh = Mesh::on(group, [("model", 2)])?.shard([("hidden", "model")])?;
        let model = Linear::builder(("in", 2), ("hidden", 4)).bias(false).build()?;
        mesh.split(&model)?;
        let mut optimizer = Sgd::new(model.parameters())?;
        let mut scaler = GradScaler::new();
        let mut step = |infinite: bool| -> Result<bool> {
            optimizer.zero_grad();
            // Only the gradient of the last row is infinite, which one rank has.
            let factors = [1.0, 1.0, 1.0, if infinite { f64::INFINITY } else { 1.0 }];
            let factors = Tensor::new(factors)?.to(DType::F32)?.refine_names(["hidden"])?;
            mesh.scope(|| {
                let y = model.forward(&Tensor::ones([("N", 3), ("in", 2)])?)?.mul(&mesh.part(&factors)?)?;
                scaler.scale(&y.sum(..)?)?.backward()
            })?;
            let stepped = scaler.step(&mut optimizer)?;
            scaler.update()?;
            Ok(stepped)
        };
        let stepped = (step(true)?, step(false)?);
        Ok((stepped.0, stepped.1, scaler.scale_factor()))
    });
    for stepped in stepped {
        assert_eq!(stepped.unwrap(), (false, true, 32768.0));
    }
}

#[test]
fn gradients_of_several_passes_in_a_scope_add_up() {
    let alone = (MLP.model)();
    filled(&alone);
    (MLP.loss)(&alone, &(MLP.batch)()).unwrap().mul(3.0).unwrap().backward().unwrap();
    for zero in [None, Some(1), Some(3)] {
        for gradients in on_ranks(4, |group| -> Result<Vec<Tensor>> {
            let mesh = Mesh::on(group, AXES)?.shard(TABLE)?;
            let mesh = zero.map_or(Ok(mesh.clone()), |level| mesh.zero(level, "data"))?;
            let model = (MLP.model)();
            filled(&model);
            mesh.split(&model)?;
            let batch: Vec<Tensor> = (MLP.batch)().iter().map(|x| mesh.part(x)).collect::<Result<_>>()?;
            mesh.scope(|| {
                (MLP.loss)(&model, &batch)?.backward()?;
                (MLP.loss)(&model, &batch)?.mul(2.0)?.backward()
            })?;
            let whole = |parameter: &Parameter| {
                let own = parameter.grad().expect("a gradient");
                parameter.part().map_or(Ok(own.clone()), |part| part.whole(own.value()).map(Tensor::from))
            };
            model.parameters().iter().map(whole).collect()
        }) {
            for (own, parameter) in gradients.unwrap().iter().zip(alone.parameters()) {
                let expected = parameter.grad().unwrap();
                close(
                    "a gradient",
                    &own.value().rename(None).unwrap(),
                    &expected.value().rename(None).unwrap(),
                );
            }
        }
    }
}

#[test]
fn dropped_features_are_those_of_one_process() {
    let shape = [("batch", 4), ("time", 3), ("hidden", 256)];
    let x = numbers(1, &shape);
    let draw = |f: &dyn Fn() -> Result<Tensor>| -> Result<(Tensor, GeneratorState)> {
        let mut generator = Generator::from_seed(11);
        let y = generator.scope(f)?;
        Ok((y, generator.state()))
    };
    let expected = draw(&|| F::dropout(&x, 0.3)).unwrap();
    let maps = draw(&|| F::dropout1d(&x, 0.3, "time")).unwrap();
    for table in [
        &[("batch", "data")][..],
        &[("batch", "data"), ("hidden", "model")],
        &[("hidden", "data")],
        &[("batch", "model"), ("time", "data")],
    ] {
        let axes = if table.iter().any(|(name, _)| *name == "time") { ("data", 3) } else { ("data", 2) };
        for made in on_ranks(2 * axes.1, |group| -> Result<[(Tensor, GeneratorState); 2]> {
            let mesh = Mesh::on(group, [axes, ("model", 2)])?.shard(table.iter().copied())?;
            let x = mesh.part(&x)?;
            mesh.scope(|| {
                let whole = |f: &dyn Fn() -> Result<Tensor>| {
                    let (y, state) = draw(f)?;
                    Ok::<_, Error>((mesh.whole(&y)?, state))
                };
                Ok([whole(&|| F::dropout(&x, 0.3))?, whole(&|| F::dropout1d(&x, 0.3, "time"))?])
            })
        }) {
            assert!(made.unwrap() == [expected.clone(), maps.clone()], "{table:?}");
        }
    }
}
