//! The test of learning rates leaves no trace.

use crate::common::Model;
use namegrad::optim::Adam;
use namegrad::prelude::*;
use namegrad::train::lr_finder::{LrCurve, LrFinder};

/// Losses of some steps, with a test of learning rates between them or not.
fn losses(test: bool) -> Result<(Vec<f64>, Vec<f32>)> {
    manual_seed(4);
    let (model, x) = (Model::new(0.5, 1)?, Tensor::randn([("N", 16), ("in", 3)])?);
    let loss = || model.forward(&x)?.sub(1.0)?.square()?.mean(..);
    let mut optimizer = Adam::builder(model.parameters()).lr(0.01).build()?;
    let mut losses = vec![];
    for step in 0..6 {
        if test && (step == 0 || step == 3) {
            let curve = LrFinder::new().run(&model, &mut optimizer, |_| loss())?;
            assert!(curve.points().len() > 10 && curve.points()[0].0 == 1e-7);
            let error = Error::new(ErrorKind::Value, "mine", "on purpose");
            let failed = LrFinder::new().run(&model, &mut optimizer, |step| match step {
                5 => Err(error.clone()),
                _ => loss(),
            });
            assert_eq!(failed.unwrap_err().op(), "mine");
        }
        losses.push(optimizer.step_with(&mut || loss())?.item::<f64>()?);
    }
    let state = model.norm.named_buffers();
    let running = state.into_iter().map(|(_, buffer)| buffer.tensor().to(DType::F32)?.to_vec::<f32>());
    Ok((losses, running.collect::<Result<Vec<_>>>()?.concat()))
}

/// The other tests of this program draw from the same default generator.
#[test]
fn in_a_process_of_its_own() {
    namegrad_tests::run_alone("lr_finder::");
}

#[test]
#[ignore = "run by `in_a_process_of_its_own`"]
fn the_model_the_optimizer_and_the_random_numbers_are_as_before() -> Result<()> {
    assert_eq!(losses(true)?, losses(false)?);
    Ok(())
}

#[test]
fn gradients_are_as_before() -> Result<()> {
    let weight = Parameter::new(Tensor::new([2.0, -1.0])?)?;
    let mut optimizer = Sgd::builder([weight.clone()]).lr(0.1).build()?;
    weight.tensor().sum(..)?.backward()?;
    let model = Sequential::new(); // the parameter is not in the model
    let curve = LrFinder::new()
        .range(1e-3, 100.0)
        .steps(50)
        .run(&model, &mut optimizer, |_| weight.tensor().square()?.sum(..))?;
    assert_eq!(weight.grad().unwrap().to_vec::<f32>()?, [1.0, 1.0]);
    assert_eq!(weight.tensor().to_vec::<f32>()?, [2.0, -1.0]);
    assert_eq!(optimizer.lr(), 0.1);
    // The steps diverge for rates above 1.
    assert!(curve.points().len() < 50 && curve.points().last().unwrap().0 > 1.0);
    assert!((0.01..1.0).contains(&curve.steepest().unwrap()), "{:?}", curve.steepest());
    Ok(())
}

/// The curve of a test with a random batch of 64 in each step, of classes that a linear layer can tell.
fn noisy_curve(seed: u64) -> Result<LrCurve> {
    manual_seed(seed);
    let teacher = Tensor::randn([("in", 8), ("class", 3)])?;
    let model = Linear::new(("in", 8), ("class", 3))?;
    let mut optimizer = Adam::new(model.parameters())?;
    LrFinder::new().range(1e-5, 1.0).run(&model, &mut optimizer, |_step| {
        let x = Tensor::randn([("N", 64), ("in", 8)])?;
        let y = x.matmul(&teacher)?.argmax("class")?;
        F::cross_entropy(&model.forward(&x)?, &y, "class")
    })
}

#[test]
#[ignore = "run by `in_a_process_of_its_own`"]
fn the_noise_of_the_first_batches_is_not_a_slope() -> Result<()> {
    for seed in 0..10 {
        let curve = noisy_curve(seed)?;
        let (steepest, minimum) = (curve.steepest().unwrap(), curve.tenth_of_minimum().unwrap());
        assert!((0.005..0.5).contains(&steepest), "seed {seed}: {steepest}");
        assert!((0.005..0.1).contains(&minimum), "seed {seed}: {minimum}");
    }
    Ok(())
}

#[test]
fn a_short_test_suggests_nothing_rather_than_noise() -> Result<()> {
    let weight = Parameter::new(Tensor::new([2.0])?)?;
    let mut optimizer = Sgd::builder([weight.clone()]).lr(0.1).build()?;
    let curve = LrFinder::new().run(&Sequential::new(), &mut optimizer, |step| {
        weight.tensor().square()?.sum(..)?.mul(if step < 4 { 1.0 } else { 1e9 })
    })?;
    assert_eq!((curve.points().len(), curve.steepest(), curve.tenth_of_minimum()), (5, None, None));
    Ok(())
}

#[test]
fn bad_rates_are_errors_before_anything_runs() -> Result<()> {
    let weight = Parameter::new(Tensor::new([2.0])?)?;
    let mut optimizer = Sgd::builder([weight.clone()]).lr(0.1).build()?;
    let zero_to_one = LrFinder::new().range(0.0, 1.0);
    for finder in [
        zero_to_one,
        LrFinder::new().range(1.0, 0.1),
        LrFinder::new().range(f64::NAN, 1.0),
        LrFinder::new().range(0.1, f64::INFINITY),
        LrFinder::new().steps(1),
    ] {
        let error = finder.run(&Sequential::new(), &mut optimizer, |_| panic!("must not run")).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    }
    Ok(())
}
