//! When a training stops, and how that goes on after an interruption.

use crate::common::Scratch;
use namegrad::prelude::*;
use namegrad::train::{Best, Checkpoints, EarlyStopping, parts};

/// The number of metrics until the end, or `None` without one.
fn stops_after(mut stopping: EarlyStopping, metrics: &[f64]) -> Result<Option<usize>> {
    for (steps, metric) in (1..).zip(metrics) {
        if stopping.step(*metric)? {
            return Ok(Some(steps));
        }
    }
    Ok(None)
}

#[test]
fn after_as_many_steps_as_patience_says() -> Result<()> {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let lowest = || EarlyStopping::builder().patience(2);
    let highest = || lowest().mode(Best::Highest);
    let cases: [(_, &[f64], _); 9] = [
        (lowest(), &[3.0, 2.0, 1.0, 0.0, -1.0], None),
        (lowest(), &[1.0, 2.0, 0.5, 0.5, 0.6], Some(5)),
        (lowest().patience(1), &[1.0, 1.0], Some(2)),
        (lowest().min_delta(0.5), &[3.0, 2.6, 2.4, 2.0, 1.9], Some(5)),
        (highest().min_delta(0.1), &[0.5, 0.55, 0.7, 0.75, 0.79], Some(5)),
        // NaN is never better, and the best before it stays.
        (lowest(), &[1.0, nan, 0.5, nan, nan], Some(5)),
        (lowest(), &[nan, nan, 0.0], Some(2)),
        (lowest(), &[inf, 1.0, -inf, -inf, 0.0], Some(5)),
        (highest(), &[-inf, inf, inf, 1.0], Some(4)),
    ];
    for (builder, metrics, steps) in cases {
        let stopping = builder.build()?;
        assert_eq!(stops_after(stopping.clone(), metrics)?, steps, "{stopping:?} {metrics:?}");
    }
    let mut stopping = EarlyStopping::new(1)?;
    assert_eq!((stopping.best(), stopping.is_over()), (None, false));
    assert!(!stopping.step(Tensor::new(2.0)?)?);
    assert_eq!((stopping.best(), stopping.since_best()), (Some(2.0), 0));
    Ok(())
}

#[test]
fn it_goes_on_from_a_checkpoint() -> Result<()> {
    for start in [&[1.0, 2.0][..], &[f64::NAN], &[f64::NEG_INFINITY, 0.0], &[]] {
        let folder = Scratch::new("early-stopping");
        let checkpoints = Checkpoints::new(folder.path())?;
        let mut stopping = EarlyStopping::new(3)?;
        for metric in start {
            stopping.step(*metric)?;
        }
        checkpoints.save(1, parts![&mut stopping])?;
        let mut resumed = EarlyStopping::new(3)?;
        checkpoints.resume(parts![stopping = &mut resumed])?;
        assert_eq!(resumed, stopping);

        let mut other = EarlyStopping::builder().mode(Best::Highest).build()?;
        other.step(0.5)?;
        let before = other.clone();
        let error = checkpoints.resume(parts![stopping = &mut other]).unwrap_err();
        assert!(error.message().contains("the mode is 'highest', but"), "{error}");
        assert_eq!(other, before);
    }
    Ok(())
}

#[test]
fn the_best_model_comes_back() -> Result<()> {
    let model = BatchNorm::new(("C", 2))?;
    let set =
        |value: f64| model.parameters().iter().try_for_each(|p| p.set(&Tensor::full([("C", 2)], value)?));
    let mut stopping = EarlyStopping::new(3)?;
    let error = stopping.restore_best(&model).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    for (metric, value) in [(0.9, 1.0), (0.5, 2.0), (0.6, 3.0), (f64::NAN, 4.0)] {
        set(value)?;
        stopping.step_model(metric, &model)?;
    }
    let folder = Scratch::new("best-model");
    let checkpoints = Checkpoints::new(folder.path())?;
    checkpoints.save(1, parts![&mut stopping])?;
    let mut resumed = EarlyStopping::new(3)?;
    checkpoints.resume(parts![stopping = &mut resumed])?;
    for stopping in [&stopping, &resumed] {
        set(5.0)?;
        stopping.restore_best(&model)?;
        for parameter in model.parameters() {
            assert_eq!(parameter.tensor().to_vec::<f32>()?, [2.0, 2.0]);
        }
    }
    let other = Linear::new(("in", 1), ("out", 1))?;
    assert_eq!(stopping.restore_best(&other).unwrap_err().location().file(), file!());
    // A better step without a model has no values.
    resumed.step(0.1)?;
    assert!(resumed.restore_best(&model).is_err());
    Ok(())
}

#[test]
fn what_is_refused() -> Result<()> {
    let bad = [
        EarlyStopping::new(0),
        EarlyStopping::builder().min_delta(-0.1).build(),
        EarlyStopping::builder().min_delta(f64::NAN).build(),
        EarlyStopping::builder().min_delta(f64::INFINITY).build(),
    ];
    for error in bad.map(Result::unwrap_err) {
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()), "{error}");
        assert!(error.repair().is_some(), "{error}");
    }
    let mut stopping = EarlyStopping::new(2)?;
    let error = stopping.step(Tensor::new([1.0, 2.0])?).unwrap_err();
    assert_eq!(
        (error.kind(), error.op(), error.location().file()),
        (ErrorKind::Shape, "EarlyStopping", file!())
    );
    assert_eq!(stopping, EarlyStopping::new(2)?);
    Ok(())
}
