//! `lr_scheduler.*`: the learning rates of an optimizer's groups after each step of a schedule, and its
//! momentums. The schedules are those of the library's list.

use crate::call::{Answer, Stop, missing};
use crate::case::{Case, Tolerance, scalar};
use namegrad::core::Scalar;
use namegrad::optim::rows::{Row, Rows};
use namegrad::optim::schedule::{
    Chained, ReduceOnPlateau, ReduceOnPlateauBuilder, Schedule, Scheduler, Sequence,
};
use namegrad::optim::{AdamOptions, Builder, Method, Optimizer, SgdOptions};
use namegrad::prelude::*;
use namegrad_tests::list::SCHEDULES;
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
    let mut builder = Builder::new([] as [Parameter; 0], method);
    for lr in numbers(&case.args["base_lr"]) {
        let parameter = Parameter::new(Tensor::new([1.0])?)?;
        builder = builder.group([parameter], move |group| group.set_lr(lr));
    }
    Ok(Box::new(builder.build()?))
}

/// Steps the optimizer and the schedule.
fn follow(case: &Case, optimizer: &mut dyn Optimizer) -> Answer<Option<String>> {
    let name = case.op.trim_start_matches("lr_scheduler.");
    let steps = count(&case.args, "steps")?.unwrap_or_default();
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
    match name {
        "SequentialLR" => {
            let milestones: Vec<usize> =
                numbers(&args["milestones"]).iter().map(|step| *step as usize).collect();
            return Ok(Box::new(Sequence::from_list(schedules(args)?, milestones)));
        }
        "ChainedScheduler" => return Ok(Box::new(Chained::from_list(schedules(args)?))),
        _ => {}
    }
    let Some((_, make)) = SCHEDULES.iter().find(|(torch, _)| *torch == name) else {
        return missing("no row");
    };
    let mut schedule = make();
    let Some(table) = schedule.table_mut() else { return missing("no table") };
    let mut args = args.clone();
    // The rates of the optimizer are called `base_lr` in a case.
    match args.remove("cyclic_base_lr") {
        Some(base_lr) => args.insert("base_lr".into(), base_lr),
        None => args.remove("base_lr"),
    };
    if let (None, Some(epochs), Some(batches)) =
        (args.get("total_steps"), number(&args, "epochs"), number(&args, "steps_per_epoch"))
    {
        args.insert("total_steps".into(), (epochs * batches).into());
    }
    if args.get("mode").and_then(Json::as_str) == Some("exp_range") {
        let gamma = args.remove("gamma").unwrap_or_else(|| 1.0.into());
        args.insert("mode".into(), gamma); // a number is the factor of this mode
    }
    read(table, &args)?;
    Ok(schedule)
}

/// Sets the options that are given; the names are PyTorch's in lower case.
fn read(rows: &mut dyn Rows, args: &Args) -> Answer<()> {
    for (row, Row { name, .. }) in rows.rows().iter().enumerate() {
        let Some((_, json)) = args.iter().find(|(own, _)| own.to_lowercase() == *name) else { continue };
        let is_count = match rows.value(row).to_json() {
            Json::Array(list) => list.iter().all(Json::is_u64),
            default => default.is_u64() || default.is_null(),
        };
        let Some(value) = value(json, is_count)? else { continue };
        rows.value_mut(row).set(&value).map_err(|_| Stop::Unwritable("of another type"))?;
    }
    Ok(())
}

/// The value of an option; `None` is a default. A negative number of steps does not compile; 0 is as wrong.
fn value(json: &Json, is_count: bool) -> Answer<Option<Json>> {
    Ok(Some(match json {
        Json::Null => return Ok(None),
        Json::Array(list) => {
            let values: Answer<Vec<Option<Json>>> = list.iter().map(|json| value(json, is_count)).collect();
            values?.into_iter().flatten().collect()
        }
        json => match as_float(json) {
            Some(number) if is_count && number.fract() != 0.0 => {
                return Err(Stop::Unwritable("a number of steps is an integer"));
            }
            Some(number) if is_count => (number as u64).into(),
            Some(number) if number.is_finite() => number.into(),
            Some(number) => format!("{number}").into(), // JSON does not have it
            None => json.clone(),
        },
    }))
}

/// The schedules of a schedule.
fn schedules(args: &Args) -> Answer<Vec<Box<dyn Schedule>>> {
    let inner = args["schedulers"].as_array().into_iter().flatten();
    let inner = inner.map(|inner| (inner["name"].as_str(), inner["args"].as_object()));
    let empty = Args::new();
    inner.map(|(name, args)| schedule(name.unwrap_or_default(), args.unwrap_or(&empty))).collect()
}

fn plateau(args: &Args) -> Answer<ReduceOnPlateauBuilder> {
    let mut builder = ReduceOnPlateau::builder();
    read(&mut builder, args)?;
    Ok(builder)
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

/// A number of steps. A negative one does not compile; 0 is as wrong.
fn count(args: &Args, name: &str) -> Answer<Option<usize>> {
    match number(args, name) {
        Some(value) if value.fract() != 0.0 => Err(Stop::Unwritable("a number of steps is an integer")),
        value => Ok(value.map(|value| value as usize)),
    }
}
