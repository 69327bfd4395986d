//! Steps of optimizers alone: W11, over the 535,818 parameters of the multilayer perceptron of W5, with given
//! gradients, and `W11.adam_short` over many short parameters.
//!
//! A step of L-BFGS is one iteration with a history of 10, whose closure costs next to nothing: a loss with
//! the gradients as its derivatives.

use crate::data::uniform;
use crate::harness::{Bench, Work};
use namegrad::optim::{
    Adam, AveragedModel, GradScaler, Lbfgs, Optimizer, RmsProp, Sgd, clip_each_grad_norm_, clip_grad_norm_,
    clip_grad_value_,
};
use namegrad::prelude::*;
use namegrad_tests::list::OPTIMIZERS;

/// The weights and biases of 784-512-256-10, with gradients.
fn parameters() -> Result<Vec<Parameter>> {
    let sizes: [&[usize]; 6] = [&[512, 784], &[512], &[256, 512], &[256], &[10, 256], &[10]];
    sizes.into_iter().zip(0..).map(|(sizes, seed)| parameter(sizes, seed)).collect()
}

fn parameter(sizes: &[usize], seed: u64) -> Result<Parameter> {
    let parameter = Parameter::new(uniform(101 + seed, sizes, 0.05)?)?;
    parameter.set_grad(Some(uniform(201 + seed, sizes, 0.01)?))?;
    Ok(parameter)
}

/// 48 parameters of 128 by 128, which no step divides between threads.
fn short() -> Result<Vec<Parameter>> {
    (0..48).map(|seed| parameter(&[128, 128], seed)).collect()
}

/// The matrices of the perceptron.
fn matrices() -> Result<Vec<Parameter>> {
    Ok(parameters()?.into_iter().filter(|parameter| parameter.ndim() == 2).collect())
}

fn boxed(optimizer: impl Optimizer + 'static) -> Box<dyn Optimizer> {
    Box::new(optimizer)
}

fn step(bench: &Bench, name: &str, mut optimizer: Box<dyn Optimizer>) -> Result<()> {
    bench.case(&format!("W11.{name}"), Work::Call, || optimizer.step());
    Ok(())
}

pub(crate) fn steps(bench: &Bench) -> Result<()> {
    if !bench.wants("W11.") {
        return Ok(());
    }
    for entry in OPTIMIZERS.iter().filter(|entry| entry.name() != "Lbfgs") {
        let parameters = if entry.name() == "Muon" { matrices()? } else { parameters()? };
        let optimizer = entry.build(&parameters, &Default::default())?;
        step(bench, &entry.name().to_lowercase(), optimizer)?;
    }
    step(bench, "sgd_momentum", boxed(Sgd::builder(parameters()?).momentum(0.9).build()?))?;
    step(bench, "adam_amsgrad", boxed(Adam::builder(parameters()?).amsgrad(true).build()?))?;
    let centered = RmsProp::builder(parameters()?).centered(true).momentum(0.9);
    step(bench, "rmsprop_centered", boxed(centered.build()?))?;
    step(bench, "adam_short", boxed(Adam::new(short()?)?))?;
    lbfgs(bench)?;
    clipping(bench)?;
    averages(bench)?;
    unscaling(bench)
}

/// To a norm of 0, so that every call scales.
fn clipping(bench: &Bench) -> Result<()> {
    let parameters = parameters()?;
    bench.case("W11.clip_grad_norm", Work::Call, || clip_grad_norm_(&parameters, 0.0));
    bench.case("W11.clip_each_grad_norm", Work::Call, || clip_each_grad_norm_(&parameters, 0.0));
    bench.case("W11.clip_grad_value", Work::Call, || clip_grad_value_(&parameters, 0.1));
    Ok(())
}

/// An update of an average of the perceptron's parameters.
fn averages(bench: &Bench) -> Result<()> {
    let layers = Sequential::new()
        .then(Linear::new(784, 512)?)
        .then(Linear::new(512, 256)?)
        .then(Linear::new(256, 10)?);
    for (name, mut average) in
        [("ema", AveragedModel::ema(&layers, 0.999)?), ("swa", AveragedModel::new(&layers)?)]
    {
        bench.case(&format!("W11.average_{name}"), Work::Call, || average.update_parameters(&layers));
    }
    Ok(())
}

/// Gradients unscaled and looked through.
fn unscaling(bench: &Bench) -> Result<()> {
    let optimizer = Sgd::new(parameters()?)?;
    let (mut scaler, loss) = (GradScaler::builder().init_scale(2.0).build()?, Tensor::ones(())?);
    bench.case("W11.unscale", Work::Call, || {
        scaler.scale(&loss)?;
        scaler.unscale_(&optimizer)?;
        scaler.update_to(2.0)
    });
    Ok(())
}

/// The loss is `Σ (p - c)² / 2`, whose gradient, `p - c`, takes two passes.
fn lbfgs(bench: &Bench) -> Result<()> {
    let parameters = parameters()?;
    let targets = parameters.iter().map(|parameter| parameter.tensor().detach().mul(0.5));
    let targets = targets.collect::<Result<Vec<_>>>()?;
    let builder = Lbfgs::builder(parameters.clone()).lr(1e-3).max_iter(1).history_size(10);
    let mut optimizer = builder.tolerance_change(0.0).tolerance_grad(0.0).build()?;
    let mut loss = || {
        let mut total = Tensor::zeros(())?;
        for (parameter, target) in parameters.iter().zip(&targets) {
            total = total.add(&parameter.tensor().sub(target)?.square()?.sum(..)?)?;
        }
        total.mul(0.5)
    };
    bench.case("W11.lbfgs", Work::Call, || optimizer.step_with(&mut loss));
    Ok(())
}
