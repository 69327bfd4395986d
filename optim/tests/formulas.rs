//! Compares each optimizer with its formula by hand, and checks that the table of the tests and the lists of
//! the library have every optimizer and every schedule.

use crate::table::{Formula, Row, table};
use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::{DType, ErrorKind, NamedTensor, Result};
use namegrad_optim::interval::Interval;
use namegrad_optim::schedule::{Schedule, Scheduler};
use namegrad_optim::{Optimizer, Sgd};
use namegrad_tests::list::{AnyOptimizer, OPTIMIZERS, SCHEDULES};
use serde_json::{Value as Json, json};
use std::ops::Bound;
use std::path::Path;

/// The optimizer of a row.
pub(crate) fn optimizer(name: &str) -> &'static AnyOptimizer {
    let found = OPTIMIZERS.iter().find(|optimizer| optimizer.name() == name);
    found.unwrap_or_else(|| panic!("namegrad_tests::list::OPTIMIZERS has no {name}"))
}

/// The elements of a parameter at the start.
fn start(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * 0.1).cos()).collect()
}

/// The gradient in step `t`. Its matrices have full rank: the singular vectors of others, for the values that
/// are 0, are those of roundings.
fn gradient(n: usize, t: u64) -> Vec<f64> {
    (0..n as u64).map(|i| ((i * i * 7 + t * 13) as f64 * 0.37).sin()).collect()
}

/// The forms of a row, each descending, and ascending with a weight decay.
fn forms(row: &Row) -> Vec<Json> {
    let defaults = optimizer(row.name).defaults();
    let with = |form: &Json, name: &str, value: Json| {
        let mut form = form.clone();
        if defaults.rows().iter().any(|row| row.name == name) {
            form[name] = value;
        }
        form
    };
    let up =
        row.forms.iter().map(|form| with(&with(form, "maximize", true.into()), "weight_decay", 0.01.into()));
    row.forms.iter().cloned().chain(up).collect()
}

fn check(row: &Row, formula: &Formula, options: &Json, sizes: &'static [usize], dtype: DType) -> Result<()> {
    let n = sizes.iter().product();
    let tensor = |numbers: &[f64]| NamedTensor::from_slice(numbers, sizes)?.to(dtype);
    let parameter = Parameter::new(Tensor::constant(tensor(&start(n))?))?;
    let mut optimizer = optimizer(row.name).build(std::slice::from_ref(&parameter), options)?;
    let mut steps = (formula.steps)(options, sizes);
    let mut expected = vec![vec![0.0; n]; formula.slots.len() + 1];
    expected[0] = start(n);
    let epsilon = if dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    for t in 1..=if n < 100 { 8 } else { 3 } {
        let gradient = gradient(n, t);
        parameter.set_grad(Some(Tensor::constant(tensor(&gradient)?)))?;
        optimizer.step()?;
        steps(t, &gradient, &mut expected);
        let state = optimizer.state_dict();
        let slots = &state.groups[0].parameters[0].slots;
        for (k, expected) in expected.iter().enumerate() {
            let found = match k {
                0 => parameter.tensor().to_vec::<f64>()?,
                _ => match slots.get(formula.slots[k - 1]) {
                    Some(slot) => slot.to_vec::<f64>()?,
                    None => continue,
                },
            };
            let tolerance = t as f64 * formula.tolerance.filter(|_| k == 0).unwrap_or(16.0 * epsilon);
            assert_eq!(found.len(), expected.len());
            for (i, (a, b)) in found.iter().zip(expected).enumerate() {
                assert!(
                    (a - b).abs() <= tolerance * (1.0 + b.abs()),
                    "{} {options}, {dtype} {sizes:?}, step {t}, tensor {k}: {a} is not {b} at {i}",
                    row.name
                );
            }
        }
    }
    Ok(())
}

#[test]
fn steps_follow_the_formula() -> Result<()> {
    for row in table() {
        let Some(formula) = &row.formula else { continue };
        for (number, options) in forms(&row).iter().enumerate() {
            for sizes in formula.sizes {
                let is_long = sizes.iter().product::<usize>() > 1000;
                for dtype in [DType::F64, DType::F32] {
                    // In f32, rounding decides some signs of a long parameter.
                    let has_signs = row.name == "Lion" && dtype == DType::F32;
                    if !(is_long && (number > 0 || has_signs)) {
                        check(&row, formula, options, sizes, dtype)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// The names in the sources of the library that begin a line with this indentation, before these words.
fn declared(folder: &str, before: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder);
    let mut names = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        for block in std::fs::read_to_string(path).unwrap().split("! {\n    /// ").skip(1) {
            let name = block.lines().find_map(|line| {
                let name = line.strip_prefix("    ")?.strip_suffix(before)?;
                name.chars().all(char::is_alphanumeric).then(|| name.to_string())
            });
            names.extend(name);
        }
    }
    names.sort();
    names
}

fn sorted(names: impl IntoIterator<Item = &'static str>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().map(String::from).collect();
    names.sort();
    names
}

#[test]
fn every_optimizer_is_listed_and_tested() {
    let listed = sorted(OPTIMIZERS.iter().map(|optimizer| optimizer.name()));
    assert_eq!(declared("methods", "Options {"), listed, "namegrad_tests::list::OPTIMIZERS");
    assert_eq!(sorted(table().iter().map(|row| row.name)), listed, "the table of the tests");
    let source = |path| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let (face, exports) = (source("src/lib.rs"), source("src/methods/mod.rs"));
    for name in listed {
        assert!(exports.contains(&format!("{name}, {name}Options")), "methods/mod.rs does not export {name}");
        assert!(face.contains(&format!("[`{name}`]")), "the table of lib.rs has no {name}");
    }
}

#[test]
fn every_schedule_is_listed() {
    let mut declared = declared("schedule", " {");
    declared.retain(|name| name != "ReduceOnPlateauBuilder");
    let mut listed: Vec<Box<dyn Schedule>> = SCHEDULES.iter().map(|(_, make)| make()).collect();
    listed.retain_mut(|schedule| schedule.table_mut().is_some());
    let names = listed.iter().map(|schedule| schedule.name());
    assert_eq!(declared, sorted(names), "namegrad_tests::list::SCHEDULES");
    let tried: Vec<&str> = crate::schedules::every().iter().map(|[schedule, _]| schedule.name()).collect();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/schedule/mod.rs");
    let docs = std::fs::read_to_string(docs).unwrap();
    for (torch, make) in &SCHEDULES {
        let name = make().name();
        assert!(tried.contains(&name), "tests/schedules.rs: {name}");
        let row = docs.lines().find(|line| line.starts_with(&format!("//! | [`{name}`] |")));
        assert!(row.is_some_and(|row| row.contains(torch)), "the table of schedule/mod.rs: {name}, {torch}");
    }
}

/// The numbers outside of the range of a value that are closest to it, infinity and NaN.
fn outside(range: &dyn Interval, value: &Json) -> Vec<f64> {
    let is_integer = value.is_u64();
    let step = if is_integer { 1.0 } else { 1e-9 };
    let mut numbers = Vec::new();
    for (bound, step) in range.bounds().into_iter().zip([-step, step]) {
        match bound {
            Bound::Included(number) => numbers.push(number + step),
            Bound::Excluded(number) => numbers.push(number),
            Bound::Unbounded => {}
        }
    }
    if !is_integer {
        numbers.extend([0.0, f64::NEG_INFINITY, f64::INFINITY, f64::NAN]);
    }
    numbers.retain(|number| !range.contains(*number) && (!is_integer || *number >= 0.0));
    numbers
}

/// The value of an option with another number. JSON has no infinity and no NaN: they are texts.
fn with_number(value: &Json, index: usize, number: f64) -> Json {
    let number = match value.is_u64() {
        true => json!(number as u64),
        false if number.is_finite() => json!(number),
        false => json!(format!("{number}")),
    };
    let mut value = value.clone();
    match &mut value {
        Json::Array(numbers) => numbers[index] = number,
        value => *value = number,
    }
    value
}

/// A number outside of its range is refused when the optimizer is built.
#[test]
fn hyperparameters_out_of_range_are_refused() -> Result<()> {
    for entry in &OPTIMIZERS {
        let matrix = Parameter::new(Tensor::constant(NamedTensor::ones([2, 2])?))?;
        entry.build(std::slice::from_ref(&matrix), &json!({}))?;
        let defaults = entry.defaults();
        for (row, range) in defaults.rows().iter().enumerate().filter_map(|(row, r)| Some((row, r.range?))) {
            let name = defaults.rows()[row].name;
            let value = defaults.value(row).to_json();
            for index in 0..value.as_array().map_or(1, Vec::len) {
                for number in outside(range, &value) {
                    let options = json!({ name: with_number(&value, index, number) });
                    let built = entry.build(std::slice::from_ref(&matrix), &options);
                    let error = built.err().unwrap_or_else(|| panic!("{}.{name}: {number}", entry.name()));
                    let found = (error.kind(), error.location().file());
                    assert_eq!(found, (ErrorKind::Value, file!()), "{error}");
                    let shown = [format!("{number}"), format!("{number:?}")];
                    assert!(shown.iter().any(|shown| error.message().contains(shown)), "{error}: {number}");
                }
            }
        }
    }
    Ok(())
}

/// A number outside of its range is refused when the scheduler is made.
#[test]
fn options_of_schedules_out_of_range_are_refused() -> Result<()> {
    for (_, make) in &SCHEDULES {
        let parameter = Parameter::new(Tensor::constant(NamedTensor::ones([1])?))?;
        let mut optimizer = Sgd::builder([parameter]).momentum(0.9).build()?;
        Scheduler::new(make(), &mut optimizer)?;
        let mut schedule = make();
        let Some(table) = schedule.table_mut() else { continue };
        for (row, range) in table.rows().iter().enumerate().filter_map(|(row, r)| Some((row, r.range?))) {
            let value = table.value(row).to_json();
            for number in outside(range, &value) {
                let mut schedule = make();
                let (name, option) = (schedule.name(), table.rows()[row].name);
                let value = with_number(&value, 0, number);
                schedule.table_mut().unwrap().value_mut(row).set(&value).unwrap();
                let error = match Scheduler::new(schedule, &mut optimizer) {
                    Err(error) => error,
                    Ok(_) => panic!("{name}.{option}: {number}"),
                };
                assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()), "{error}");
                assert!(error.repair().is_some_and(|repair| repair.starts_with(name)), "{error}");
            }
        }
    }
    Ok(())
}

/// A gradient that is a view in another order of memory gives the same step.
#[test]
fn the_order_of_memory_does_not_matter() -> Result<()> {
    let columns = NamedTensor::from_slice(&[0.0, 3.0, 1.0, 4.0, 2.0, 5.0], [3, 2])?.reversed_dims();
    assert!(!columns.is_contiguous());
    let mut results = Vec::new();
    for (value, grad) in [
        (columns.clone(), columns.clone()),
        (columns.contiguous()?, columns.clone()),
        (columns.contiguous()?, columns.contiguous()?),
    ] {
        let parameter = Parameter::new(Tensor::constant(value))?;
        parameter.set_grad(Some(Tensor::constant(grad)))?;
        Sgd::builder([parameter.clone()]).lr(0.5).build()?.step()?;
        results.push(parameter.tensor().to_vec::<f64>()?);
    }
    assert!(results.iter().all(|result| *result == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]), "{results:?}");
    Ok(())
}

/// The directions of LAMB's first step are those of the signs, also for a parameter of zeros.
#[test]
fn a_parameter_of_zeros_moves_with_lamb() -> Result<()> {
    let parameter = Parameter::new(Tensor::constant(NamedTensor::zeros([2])?.to(DType::F64)?))?;
    parameter.set_grad(Some(Tensor::constant(NamedTensor::from_slice(&[1.0, -1.0], [2])?)))?;
    let options = json!({"lr": 0.5, "eps": 0.0});
    optimizer("Lamb").build(std::slice::from_ref(&parameter), &options)?.step()?;
    assert!(parameter.tensor().to_vec::<f64>()?[0] < -0.49);
    Ok(())
}
