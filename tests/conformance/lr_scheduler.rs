//! `lr_scheduler.*`: the learning rates of an optimizer's groups after each step of a schedule, and its
//! momentums. A new schedule is one row of [`schedule`].

use crate::call::{Answer, Stop, missing};
use crate::case::{Case, Tolerance, scalar};
use namegrad::core::Scalar;
use namegrad::optim::schedule::{
    Anneal, Chained, Constant, Cosine, CosineRestarts, CycleMode, Cyclic, Exponential, LinearRamp, Mode,
    MultiStep, OneCycle, PerGroup, Polynomial, ReduceOnPlateau, Schedule, Scheduler, Sequence, StepDecay,
    ThresholdMode,
};
use namegrad::optim::{AdamOptions, Builder, Method, Optimizer, SgdOptions};
use namegrad::prelude::*;
use serde_json::{Map, Value as Json};

type Args = Map<String, Json>;

/// Runs the case and returns what differs.
pub(crate) fn run(case: &Case) -> Answer<Option<String>> {
    let momentum = number(&case.args, "momentum");
    match case.args["optimizer"].as_str() {
        Some("sgd") => {
            let method = SgdOptions::new().momentum(momentum.unwrap_or(0.0));
            follow(case, &mut *optimizer(case, method)?)
        }
        Some("adam") => {
            let method = AdamOptions::new();
            let second = method.betas.1;
            follow(case, &mut *optimizer(case, method.betas((momentum.unwrap_or(0.9), second)))?)
        }
        _ => missing("the optimizer"),
    }
}

/// An optimizer with a group for each of the rates.
fn optimizer<M: Method>(case: &Case, method: M) -> Answer<Box<dyn Optimizer>> {
    let mut builder = Builder::new([], method);
    for lr in numbers(&case.args["base_lr"]) {
        let parameter = Parameter::new(Tensor::new([1.0])?)?;
        builder = builder.group([parameter], move |group| group.set_lr(lr));
    }
    Ok(Box::new(builder.build()?))
}

/// Steps the optimizer and the schedule.
fn follow(case: &Case, optimizer: &mut dyn Optimizer) -> Answer<Option<String>> {
    let name = case.op.trim_start_matches("lr_scheduler.");
    let steps = count(&case.args, "steps")?.unwrap_or_default() as usize;
    if name == "ReduceLROnPlateau" {
        let metrics = numbers(&case.args["metrics"]);
        let mut scheduler = plateau(&case.args)?.build(optimizer)?;
        return compared(case, steps, optimizer, |step, optimizer| scheduler.step(metrics[step], optimizer));
    }
    let epochs = case.args.get("epochs").filter(|epochs| epochs.is_array()).map(numbers);
    let mut scheduler = Scheduler::new(schedule(name, &case.args)?, optimizer)?;
    compared(case, steps, optimizer, |step, optimizer| match &epochs {
        Some(epochs) => scheduler.step_to(epochs[step], optimizer),
        None => scheduler.step(optimizer),
    })
}

fn compared(
    case: &Case,
    steps: usize,
    optimizer: &mut dyn Optimizer,
    mut schedule: impl FnMut(usize, &mut dyn Optimizer) -> Result<()>,
) -> Answer<Option<String>> {
    for step in 0..=steps {
        let (lrs, momentums) = (optimizer.lrs(), optimizer.momentums().unwrap_or_default());
        for (what, got, want) in
            [("rates", lrs, &case.expect.lrs), ("momentums", momentums, &case.expect.momentums)]
        {
            if want.get(step).is_some_and(|want| !close(&got, want, case.tol)) {
                return Ok(Some(format!("{what} {got:?} after {step} steps, expected {:?}", want[step])));
            }
        }
        if step < steps {
            optimizer.step()?;
            schedule(step, optimizer)?;
        }
    }
    Ok(None)
}

fn close(got: &[f64], want: &[f64], tol: Tolerance) -> bool {
    let pairs = || got.iter().zip(want);
    got.len() == want.len()
        && pairs().all(|(got, want)| (got - want).abs() <= tol.atol + tol.rtol * want.abs())
}

/// The schedule of this name in PyTorch.
fn schedule(name: &str, args: &Args) -> Answer<Box<dyn Schedule>> {
    /// `schedule` with the arguments that are given.
    macro_rules! with {
        ($schedule:expr, $($read:ident $name:ident),*) => {{
            let mut schedule = $schedule;
            $(if let Some(value) = $read(args, stringify!($name))? {
                schedule = schedule.$name(value);
            })*
            schedule
        }};
    }
    Ok(match name {
        "StepLR" => Box::new(with!(StepDecay::new(length(args, "step_size", 0)?), float gamma)),
        "MultiStepLR" => Box::new(with!(MultiStep::new(steps(&args["milestones"])), float gamma)),
        "ExponentialLR" => Box::new(Exponential::new(float(args, "gamma")?.unwrap_or(f64::NAN))),
        "LinearLR" => Box::new(
            with!(LinearRamp::new(length(args, "total_iters", 5)?), float start_factor, float end_factor),
        ),
        "ConstantLR" => Box::new(with!(Constant::new(length(args, "total_iters", 5)?), float factor)),
        "PolynomialLR" => Box::new(with!(Polynomial::new(length(args, "total_iters", 5)?), float power)),
        "CosineAnnealingLR" => Box::new(with!(Cosine::new(length(args, "T_max", 0)?), float eta_min)),
        "CosineAnnealingWarmRestarts" => {
            let schedule = with!(CosineRestarts::new(length(args, "T_0", 0)?), float eta_min);
            Box::new(schedule.t_mult(length(args, "T_mult", 1)?))
        }
        "OneCycleLR" => {
            let batches = length(args, "steps_per_epoch", 0)?;
            let total = match count(args, "total_steps")? {
                Some(total) => total,
                None => length(args, "epochs", 0)? * batches,
            };
            Box::new(with!(
                OneCycle::new(per_group(args, "max_lr")?.unwrap_or(PerGroup::All(f64::NAN)), total),
                float pct_start, anneal anneal_strategy, boolean cycle_momentum, per_group base_momentum,
                per_group max_momentum, float div_factor, float final_div_factor, boolean three_phase
            ))
        }
        "CyclicLR" => {
            let bound = |name: &str| Ok::<_, Stop>(per_group(args, name)?.unwrap_or(PerGroup::All(f64::NAN)));
            let schedule = with!(
                Cyclic::new(bound("cyclic_base_lr")?, bound("max_lr")?),
                count step_size_up, count step_size_down, boolean cycle_momentum, per_group base_momentum,
                per_group max_momentum
            );
            Box::new(schedule.mode(match args.get("mode").and_then(Json::as_str).unwrap_or("triangular") {
                "triangular" => CycleMode::Triangular,
                "triangular2" => CycleMode::Triangular2,
                "exp_range" => CycleMode::ExpRange(float(args, "gamma")?.unwrap_or(1.0)),
                _ => return Err(Stop::Unwritable("the mode is an enum")),
            }))
        }
        "SequentialLR" => Box::new(Sequence::from_list(schedules(args)?, steps(&args["milestones"]))),
        "ChainedScheduler" => Box::new(Chained::from_list(schedules(args)?)),
        _ => return missing("no row"),
    })
}

/// The schedules of a schedule.
fn schedules(args: &Args) -> Answer<Vec<Box<dyn Schedule>>> {
    let inner = args["schedulers"].as_array().into_iter().flatten();
    let inner = inner.map(|inner| (inner["name"].as_str(), inner["args"].as_object()));
    let empty = Args::new();
    inner.map(|(name, args)| schedule(name.unwrap_or_default(), args.unwrap_or(&empty))).collect()
}

fn plateau(args: &Args) -> Answer<namegrad::optim::schedule::ReduceOnPlateauBuilder> {
    let mut builder = ReduceOnPlateau::builder();
    builder = match args.get("mode").and_then(Json::as_str) {
        None | Some("min") => builder,
        Some("max") => builder.mode(Mode::Max),
        _ => return Err(Stop::Unwritable("the mode is an enum")),
    };
    builder = match args.get("threshold_mode").and_then(Json::as_str) {
        None | Some("rel") => builder,
        Some("abs") => builder.threshold_mode(ThresholdMode::Abs),
        _ => return Err(Stop::Unwritable("the threshold mode is an enum")),
    };
    if let Some(factor) = float(args, "factor")? {
        builder = builder.factor(factor);
    }
    if let Some(threshold) = float(args, "threshold")? {
        builder = builder.threshold(threshold);
    }
    if let Some(eps) = float(args, "eps")? {
        builder = builder.eps(eps);
    }
    if let Some(min_lr) = per_group(args, "min_lr")? {
        builder = builder.min_lr(min_lr);
    }
    let builder = builder.patience(length(args, "patience", 10)?);
    Ok(builder.cooldown(length(args, "cooldown", 0)?))
}

fn as_float(value: &Json) -> Option<f64> {
    match scalar(value)? {
        Scalar::Float(value) => Some(value),
        Scalar::Int(value) => Some(value as f64),
        Scalar::Bool(_) => None,
    }
}

fn number(args: &Args, name: &str) -> Option<f64> {
    args.get(name).and_then(as_float)
}

/// A number or a list of numbers.
fn numbers(value: &Json) -> Vec<f64> {
    let one = std::slice::from_ref(value);
    value.as_array().map_or(one, Vec::as_slice).iter().filter_map(as_float).collect()
}

fn steps(value: &Json) -> Vec<u64> {
    numbers(value).into_iter().map(|step| step as u64).collect()
}

fn float(args: &Args, name: &str) -> Answer<Option<f64>> {
    Ok(number(args, name))
}

fn boolean(args: &Args, name: &str) -> Answer<Option<bool>> {
    Ok(args.get(name).and_then(Json::as_bool))
}

/// A number of steps. A negative one does not compile; 0 is as wrong.
fn count(args: &Args, name: &str) -> Answer<Option<u64>> {
    match number(args, name) {
        Some(value) if value.fract() != 0.0 => Err(Stop::Unwritable("a number of steps is an integer")),
        value => Ok(value.map(|value| value as u64)),
    }
}

fn length(args: &Args, name: &str, default: u64) -> Answer<u64> {
    Ok(count(args, name)?.unwrap_or(default))
}

fn per_group(args: &Args, name: &str) -> Answer<Option<PerGroup>> {
    Ok(match args.get(name) {
        Some(value) if value.is_array() => Some(numbers(value).into()),
        _ => number(args, name).map(PerGroup::All),
    })
}

fn anneal(args: &Args, name: &str) -> Answer<Option<Anneal>> {
    Ok(match args.get(name).and_then(Json::as_str) {
        None => None,
        Some("cos") => Some(Anneal::Cos),
        Some("linear") => Some(Anneal::Linear),
        _ => return Err(Stop::Unwritable("the strategy is an enum")),
    })
}
