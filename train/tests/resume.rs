//! A resumed run is equal to one that was not interrupted, in every bit, for every optimizer.

use crate::common::Model;
use namegrad::core::random::{Generator, random_state};
use namegrad::data::{Loader, TensorDataset};
use namegrad::optim::AveragedModel;
use namegrad::optim::schedule::{Cosine, OneCycle, ReduceOnPlateau, Schedule, Scheduler};
use namegrad::prelude::*;
use namegrad::train::{Checkpoints, parts};
use namegrad_tests::list::{AnyOptimizer, OPTIMIZERS};
use serde_json::{Value as Json, json};
use std::path::PathBuf;

/// A model with a weight in another order in memory than the file.
fn model() -> Result<Model> {
    let model = Model::new(0.25, 2)?;
    model.hidden.weight().update(|weight| {
        *weight = weight.t()?.contiguous()?.t()?;
        Ok(())
    })?;
    Ok(model)
}

/// Options that keep more tensors than the defaults, and learning rates for this run.
fn options(name: &str) -> Json {
    match name {
        "Sgd" => json!({"lr": 0.05, "momentum": 0.9}),
        "Asgd" => json!({"lr": 0.05, "t0": 3.0}),
        "Adam" => json!({"lr": 0.01, "amsgrad": true}),
        "Adagrad" => json!({"lr": 0.05, "lr_decay": 0.01}),
        "RmsProp" => json!({"lr": 0.01, "centered": true, "momentum": 0.5}),
        "Lbfgs" => json!({"lr": 0.5, "max_iter": 3, "history_size": 4, "line_search_fn": "strong_wolfe"}),
        _ => json!({"lr": 0.01}),
    }
}

type Build = Box<dyn Fn(Vec<(String, Parameter)>) -> Result<Box<dyn Optimizer>>>;

/// Every optimizer.
fn every() -> Vec<(&'static str, Build)> {
    let row = |entry: &'static AnyOptimizer| {
        let build = move |named: Vec<(String, Parameter)>| {
            let group = named.into_iter().map(Into::into).collect();
            entry.build_with(vec![(group, options(entry.name()))])
        };
        (entry.name(), Box::new(build) as Build)
    };
    OPTIMIZERS.iter().map(row).collect()
}

const SAMPLES: usize = 20;
const BATCH: usize = 6;

/// A run that is saved after each step, if there is a folder, and ends when `stop` steps are made.
fn run(dtype: DType, build: &Build, folder: Option<&PathBuf>, stop: u64) -> Result<(Vec<u64>, Vec<f64>)> {
    manual_seed(7);
    let data = Tensor::randn([("N", SAMPLES), ("in", 3)])?.to(dtype)?;
    let model = model()?;
    model.to(dtype)?;
    // Biases have their own group, if there is a place for it.
    let mut optimizer =
        build(model.named_parameters().into_iter().filter(|(path, _)| matrix(path)).collect())?;
    let rest = model.named_parameters().into_iter().filter(|(path, _)| !matrix(path));
    let mut other = Sgd::builder_named(rest).lr(0.01).momentum(0.5).build()?;
    let mut schedule = Scheduler::new(Cosine::new(12).warmup(3), &mut *optimizer)?;
    let mut cycle = Scheduler::new(OneCycle::new(0.05, 20), &mut other)?;
    let mut plateau = ReduceOnPlateau::builder().patience(0).threshold(0.5).build(&other)?;
    let mut noise = Generator::from_seed(3);
    let mut average = AveragedModel::ema(&model, 0.9)?;
    let data = TensorDataset::new(data)?;
    let loader = Loader::builder(data).batch_size(BATCH).shuffle(true).workers(2).build()?;
    let (mut step, mut losses, mut best) = (0_u64, Vec::<f64>::new(), f64::INFINITY);
    let checkpoints = folder.map(Checkpoints::new).transpose()?;
    macro_rules! parts_of_run {
        () => {
            parts![
                &model,
                &mut *optimizer,
                &mut other,
                &mut schedule,
                &mut cycle,
                &mut plateau,
                &mut noise,
                &mut average,
                &loader,
                &mut step,
                &mut losses,
                &mut best
            ]
        };
    }
    if let Some(checkpoints) = &checkpoints {
        let resumed = checkpoints.resume(parts_of_run!())?;
        assert_eq!(resumed.unwrap_or(0), step);
        if resumed.is_none() {
            checkpoints.save(0, parts_of_run!())?;
        }
    }
    'run: loop {
        for x in loader.iter() {
            if step == stop {
                break 'run;
            }
            let x = x?;
            let noise = noise.scope(|| Tensor::randn([("N", x.size("N")?), ("in", 3)]))?;
            let x = x.add(noise.mul(0.1)?.to(dtype)?)?;
            let mut closure = || model.forward(&x)?.sub(0.5)?.square()?.mean(..);
            model.zero_grad();
            let loss = optimizer.step_with(&mut closure)?.item::<f64>()?;
            other.step()?;
            schedule.step(&mut *optimizer)?;
            cycle.step(&mut other)?;
            plateau.step(loss, &mut other)?;
            average.update_parameters(&model)?;
            losses.push(loss);
            best = best.min(loss);
            step += 1;
            if let Some(checkpoints) = &checkpoints {
                checkpoints.save(step, parts_of_run!())?;
            }
        }
    }
    let mut bits = Vec::new();
    for _ in 0..2 {
        for (_, value) in model.state_dict().iter() {
            bits.extend(value.to(DType::F64)?.to_vec::<f64>()?.into_iter().map(f64::to_bits));
        }
        average.copy_to(&model)?;
    }
    bits.push(best.to_bits());
    Ok((bits, losses))
}

fn matrix(path: &str) -> bool {
    path.ends_with("weight") && !path.contains("norm")
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("namegrad-resume-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// The other tests of this program draw from the same default generator.
#[test]
fn in_a_process_of_its_own() {
    namegrad_tests::run_alone("resume::");
}

#[test]
#[ignore = "run by `in_a_process_of_its_own`"]
fn a_resumed_run_has_the_same_bits() -> Result<()> {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for (name, build) in every() {
            let whole = run(dtype, &build, None, 11)?;
            let folder = folder(name);
            // Interrupted before the first step, within an epoch, at its end, and twice at the same place.
            for stop in [0, 1, 3, 4, 4, 9] {
                run(dtype, &build, Some(&folder), stop)?;
            }
            let resumed = run(dtype, &build, Some(&folder), 11)?;
            assert_eq!(resumed.1, whole.1, "losses of {name} in {dtype}");
            assert_eq!(resumed.0, whole.0, "parameters of {name} in {dtype}");
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
    Ok(())
}

#[test]
#[ignore = "run by `in_a_process_of_its_own`"]
fn a_resume_that_fails_leaves_the_random_state() -> Result<()> {
    manual_seed(5);
    let folder = folder("refused");
    let checkpoints = Checkpoints::new(&folder)?;
    let (narrow, wide) = (Linear::new(("in", 3), ("out", 2))?, Linear::new(("in", 3), ("out", 5))?);
    checkpoints.save(1, parts![model = &narrow])?;
    Tensor::rand([4])?;
    let random = random_state();
    assert!(checkpoints.resume(parts![model = &wide]).is_err());
    assert_eq!(random_state(), random);
    std::fs::remove_dir_all(&folder).unwrap();
    Ok(())
}

#[test]
#[ignore = "run by `in_a_process_of_its_own`"]
fn some_parts_continue_with_the_random_numbers() -> Result<()> {
    let folder = folder("some");
    let (model, mut extra) = (Linear::new(("in", 3), ("out", 2))?, 1);
    let checkpoints = Checkpoints::new(&folder)?;
    assert_eq!(checkpoints.resume_some(parts![&model])?, None);
    checkpoints.save(1, parts![&model, &mut extra])?;
    let random = random_state();
    Tensor::rand([4])?;
    checkpoints.resume_some(parts![&model])?;
    assert_eq!(random_state(), random);
    std::fs::remove_dir_all(&folder).unwrap();
    Ok(())
}
