//! Compares calls with answers recorded from PyTorch: values, names, dtypes, errors, gradients.
//!
//! Reads the cases in `tests/fixtures/`, or in the folder that `NAMEGRAD_CONFORMANCE` names, and prints for
//! each op how many passed, failed and are not implemented. Read [`case`] for the cases,
//! [`by_name`] for how they are replayed through the registry of ops, [`ops`] for
//! the calls that differ in namegrad, and [`compare`] for what counts as equal.
//!
//! ```text
//! cargo test --release --test conformance -- --nocapture
//! ```
//! On the cases in `tests/fixtures/`, the test fails if a case fails that is not in [`KNOWN`], if one in
//! [`KNOWN`] passes, or if an op passes fewer cases than `tests/fixtures/implemented.txt` says.
//! `NAMEGRAD_CONFORMANCE_BLESS=1` rewrites that list.

#![cfg_attr(not(feature = "all"), expect(dead_code, reason = "cases of optimizers have fields of their own"))]

mod attention;
mod by_name;
mod call;
mod case;
mod compare;
#[cfg(feature = "all")]
mod distributions;
mod fft;
#[cfg(feature = "all")]
mod linalg;
#[cfg(feature = "all")]
mod lr_scheduler;
mod ops;
#[cfg(feature = "all")]
mod optim;
mod program;
mod properties;
mod recurrent;
mod report;

use call::{Call, Stop, Value, copied};
use case::Case;
use compare::Difference;
use namegrad::autograd::{BackwardOptions, grad_with};
use namegrad::core::NamedTensor;
use namegrad::prelude::*;
use report::{Report, Verdict};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Cases in which namegrad differs from PyTorch on purpose: an id, or a prefix of ids followed by `*`; the
/// start of the message; the reason.
const KNOWN: &[(&str, &str, &str)] = &[
    ("autograd/program/0045", WORKS, KEPT),
    ("autograd/program/0047", "output 0", VIEW),
    ("autograd/program/0048", "output 0", VIEW),
    ("autograd/program/0049", "output 0", VIEW),
    ("autograd/program/0050", "output 0", VIEW),
    ("autograd/program/0051", "output 0", VIEW),
    ("autograd/program/0052", "output 0", VIEW),
    ("autograd/program/0053", WORKS, VIEW),
    ("autograd/program/0054", WORKS, VIEW),
    ("autograd/program/0057", WORKS, KEPT),
    ("autograd/program/0059", WORKS, KEPT),
    ("names_errors/program/0004", WORKS, KEPT),
    (
        "names_remove/squeeze/0003",
        "output 0: names",
        "names stay where no dim is removed, as the document says",
    ),
    ("names_remove/topk/0005", "value, expected unsupported", "k is out of range with names and without"),
    (
        "names_errors/clamp/0001",
        "does not compile",
        "which bounds there are is in the name of the method: one must be said",
    ),
    ("names_out/exp2/0002", "out_names, expected unsupported", CHECKED),
    ("names_out/logit/0002", "out_names, expected unsupported", CHECKED),
    ("names_out/sgn/0002", "out_names, expected unsupported", CHECKED),
    ("names_out/sinc/0002", "out_names, expected unsupported", CHECKED),
    ("dtype/nansum/*", WORKS, "a sum in another dtype is the sum of the cast tensor"),
    ("tensor_ops/cholesky_inverse/0001", "gradient of input 0: element 1 is 0", READ),
    ("distributions/distributions.MultivariateNormal.log_prob/0015", "does not compile", ONE),
    ("distributions/distributions.Bernoulli.log_prob/0012", "does not compile", ONE),
    (
        "distributions/distributions.Independent.*",
        "dim_range, expected shape",
        "dims are listed, not counted: one is out of range",
    ),
];

const READ: &str = "an element that is not read has the gradient 0";
const ONE: &str = "which parameter is given is in the name of the constructor: exactly one can be";
const WORKS: &str = "works";
const KEPT: &str = "an in-place op cannot corrupt what another op has kept, so there is nothing to refuse";
const CHECKED: &str = "the op works on names, so those of `out` are checked as the document says";
const VIEW: &str = "a tensor is a value: a write through a view is not seen by its base; index_put_ and masked_fill_ on the base take its place";

#[test]
fn conformance() {
    let shipped = namegrad_tests::root().join("tests/fixtures");
    let other = std::env::var_os("NAMEGRAD_CONFORMANCE").map(PathBuf::from);
    let mut report = Report::default();
    for file in files(other.as_deref().unwrap_or(&shipped)) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let family = name.trim_end_matches(".gz").trim_end_matches(".jsonl");
        for case in case::read(&file).into_iter().filter(is_chosen) {
            report.add(family, &case.op, &case.id, verdict(&case));
        }
    }
    println!("{report}");
    assert_eq!(report.failed(), 0, "cases failed; they are listed above");
    if other.is_none() && namegrad_tests::chosen().is_none() {
        check_implemented(&report, &shipped.join("implemented.txt"));
        check_known(&report);
    }
}

/// Whether the case is of the op to which the tests are limited, if they are.
fn is_chosen(case: &Case) -> bool {
    let name = case.op.rsplit('.').next().unwrap_or(&case.op);
    namegrad_tests::is_chosen(&case.op) || namegrad_tests::is_chosen(name)
}

/// Every entry of [`KNOWN`] matches a case.
fn check_known(report: &Report) {
    let differs = |pattern: &str, reason: &str| {
        let mut cases = report.known.iter().filter_map(|line| line.strip_suffix(reason)?.strip_suffix(": "));
        cases.any(|id| covers(pattern, id))
    };
    let stale: Vec<&str> =
        KNOWN.iter().filter(|(pattern, _, reason)| !differs(pattern, reason)).map(|known| known.0).collect();
    assert!(stale.is_empty(), "no longer different from PyTorch, so no entries of KNOWN: {stale:?}");
}

/// Whether `id` matches a pattern of [`KNOWN`].
fn covers(pattern: &str, id: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => id.starts_with(start),
        None => id == pattern,
    }
}

/// The files with cases in a folder, sorted by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| {
        let name = file.to_string_lossy();
        name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")
    });
    files.sort();
    assert!(!files.is_empty(), "no .jsonl or .jsonl.gz in {}", folder.display());
    files
}

/// Checks that no op passes fewer cases than the list says.
fn check_implemented(report: &Report, list: &Path) {
    let passing = report.ops.iter().filter(|(_, tally)| tally.passed + tally.works > 0);
    let now: String = passing.map(|(op, tally)| format!("{op} {} {}\n", tally.passed, tally.works)).collect();
    if std::env::var_os("NAMEGRAD_CONFORMANCE_BLESS").is_some() {
        std::fs::write(list, &now).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    }
    let listed = std::fs::read_to_string(list).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    let mut worse = Vec::new();
    for line in listed.lines() {
        let [op, passed, works] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("not an op and two numbers: {line}")
        };
        let count = |text: &str| text.parse::<usize>().expect("a number of cases");
        let before = (count(passed), count(works));
        let now = report.ops.get(op).map_or((0, 0), |tally| (tally.passed, tally.works));
        if now.0 < before.0 || now.0 + now.1 < before.0 + before.1 {
            worse.push(format!("{op} passes {now:?} cases by answer and by working, {before:?} before"));
        }
    }
    assert!(worse.is_empty(), "worse than {}:\n{}", list.display(), worse.join("\n"));
    if listed != now {
        println!("note: more passes than {} says; NAMEGRAD_CONFORMANCE_BLESS=1 rewrites it", list.display());
    }
}

/// Runs a case and judges it.
fn verdict(case: &Case) -> Verdict {
    let run = catch_unwind(AssertUnwindSafe(|| judge(case)));
    let verdict = run.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words");
        Verdict::Failed(format!("panicked: {text}"))
    });
    let Verdict::Failed(difference) = verdict else { return verdict };
    let listed =
        KNOWN.iter().find(|(pattern, begins, _)| covers(pattern, &case.id) && difference.starts_with(begins));
    match listed {
        Some((_, _, reason)) => Verdict::Known(reason.to_string()),
        None => Verdict::Failed(difference),
    }
}

/// The outcome of a case: an error, with the step of a program, or what differs.
enum Outcome {
    Error { error: Error, step: Option<usize>, backward: bool },
    Worked(Difference),
    NotImplemented(String),
    Unwritable(&'static str),
}

fn judge(case: &Case) -> Verdict {
    let compared: Option<call::Answer<Option<String>>> = match case.op.split('.').next() {
        #[cfg(feature = "all")]
        Some("optim") => Some(optim::run(case)),
        #[cfg(feature = "all")]
        Some("lr_scheduler") => Some(lr_scheduler::run(case)),
        _ => None,
    };
    let outcome = match compared {
        Some(Ok(difference)) => Outcome::Worked(difference.map_or(Ok(()), Err)),
        Some(Err(stop)) => stopped(stop, None),
        None => run(case),
    };
    match (outcome, &case.expect.error) {
        (Outcome::NotImplemented(what), _) => Verdict::NotImplemented(what),
        (Outcome::Unwritable(why), _) => Verdict::Failed(format!("does not compile: {why}")),
        (Outcome::Worked(Ok(())), None) => Verdict::Passed,
        (Outcome::Worked(Err(difference)), None) => Verdict::Failed(difference),
        (Outcome::Error { error, .. }, None) => Verdict::Failed(error.to_string()),
        // PyTorch contradicts its own documentation, or does not support the call.
        (Outcome::Worked(_), Some(expected))
            if case.deviation.is_some() || expected.kind == "unsupported" =>
        {
            works(case)
        }
        (Outcome::Worked(_), Some(expected)) => {
            Verdict::Failed(format!("works, expected an error of kind {}", expected.kind))
        }
        (Outcome::Error { error, step, backward }, Some(expected)) => {
            let kind = compare::kind(error.kind());
            if kind != expected.kind {
                Verdict::Failed(format!("{kind}, expected {}: {error}", expected.kind))
            } else if expected.step.is_some() && expected.step != step {
                Verdict::Failed(format!("fails at step {step:?}, expected {:?}", expected.step))
            } else if expected.phase.as_deref() == Some("backward") && !backward {
                Verdict::Failed(format!("fails before backward: {error}"))
            } else {
                Verdict::Passed
            }
        }
    }
}

/// A call that PyTorch rejects has no recorded values. Its values are compared with those of the same call
/// without names, if that call needs no names.
fn works(case: &Case) -> Verdict {
    if case.op == "program" {
        return Verdict::Works { seen: false };
    }
    let outputs = |named: bool| {
        let inputs: Result<Vec<Tensor>> = case.inputs.iter().map(|spec| spec.tensor()).collect();
        let mut inputs = inputs.ok()?;
        if !named {
            inputs = inputs.iter().map(|x| x.detach().rename(None)).collect::<Result<_>>().ok()?;
        }
        manual_seed(0);
        let mut call = Call::new(&case.args, inputs);
        ops::play(&case.op, &mut call)?.ok()
    };
    let (Some(named), Some(unnamed)) = (outputs(true), outputs(false)) else {
        return Verdict::Works { seen: false };
    };
    match compare::same_values(&named, &unnamed) {
        Ok(()) => Verdict::Works { seen: true },
        Err(difference) => Verdict::Failed(format!("with names, as without: {difference}")),
    }
}

fn stopped(stop: Stop, step: Option<usize>) -> Outcome {
    match stop {
        Stop::Error(error) => Outcome::Error { error, step, backward: false },
        Stop::NotImplemented(what) => Outcome::NotImplemented(what),
        Stop::Unwritable(why) => Outcome::Unwritable(why),
    }
}

fn run(case: &Case) -> Outcome {
    let inputs: Result<Vec<Tensor>> = case.inputs.iter().map(|spec| spec.tensor()).collect();
    let mut inputs = match inputs {
        Ok(inputs) => inputs,
        Err(error) => return Outcome::Error { error, step: None, backward: false },
    };
    // Apart from the call, only leaves are kept, so that the buffers of other tensors are not shared in
    // in-place ops.
    let mut leaves: Vec<Option<Tensor>> =
        inputs.iter().map(|x| x.requires_grad().then(|| x.clone())).collect();
    if case.op == "program" {
        return match program::run(&case.args, inputs) {
            Ok(outputs) => finish(case, &outputs, &[], &leaves),
            Err((step, stop)) => stopped(stop, Some(step)),
        };
    }
    if case.clone_self {
        match copied(&inputs[0]) {
            Ok(copy) => inputs[0] = copy,
            Err(stop) => return stopped(stop, None),
        }
    }
    let mut call = Call::new(&case.args, inputs);
    let Some(played) = ops::play(&case.op, &mut call) else {
        return Outcome::NotImplemented("no row".into());
    };
    let outputs = match played.and_then(|outputs| call.write_out(outputs)) {
        Ok(outputs) => outputs,
        Err(stop) => return stopped(stop, None),
    };
    for (input, parameter) in call.parameters.drain(..) {
        leaves[input] = leaves[input].take().map(|_| parameter);
    }
    match call.unread().first() {
        Some(argument) => Outcome::NotImplemented(format!("`{argument}`")),
        None => finish(case, &outputs, &call.after, &leaves),
    }
}

/// Compares the results, and the gradients if the case has any.
fn finish(case: &Case, outputs: &[Value], after: &[Tensor], leaves: &[Option<Tensor>]) -> Outcome {
    if let Some(error) = &case.expect.error {
        if error.phase.as_deref() != Some("backward") {
            return Outcome::Worked(Ok(()));
        }
    } else if let Err(difference) = compare_values(case, outputs, after) {
        return Outcome::Worked(Err(difference));
    }
    let (Some(cotangents), want) = (&case.grad_outputs, &case.expect.grads) else {
        return Outcome::Worked(Ok(()));
    };
    let gradients = match backward(outputs, cotangents, leaves) {
        Ok(gradients) => gradients,
        Err(error) => return Outcome::Error { error, step: None, backward: true },
    };
    match (want, &case.expect.error) {
        (Some(want), _) => Outcome::Worked(compare::gradients(&gradients, want, case.tol)),
        (None, Some(_)) => Outcome::Worked(Ok(())),
        (None, None) => Outcome::Worked(Err("a case with gradients of outputs and none of inputs".into())),
    }
}

fn compare_values(case: &Case, outputs: &[Value], after: &[Tensor]) -> Difference {
    compare::outputs(outputs, &case.expect.outputs, case.tol)?;
    let Some(want) = &case.expect.inputs_after else { return Ok(()) };
    if after.len() != want.len() {
        return Err(format!("{} inputs were written to, expected {}", after.len(), want.len()));
    }
    for (got, want) in after.iter().zip(want) {
        compare::tensor(got.value(), want, case.tol)
            .map_err(|difference| format!("input after the call: {difference}"))?;
    }
    Ok(())
}

/// The gradients of the leaves, for the given gradients of the outputs.
fn backward(
    outputs: &[Value],
    cotangents: &[case::TensorSpec],
    leaves: &[Option<Tensor>],
) -> Result<Vec<Option<NamedTensor>>> {
    let outputs: Vec<&Tensor> = outputs
        .iter()
        .filter_map(|value| match value {
            Value::Tensor(tensor) if tensor.requires_grad() => Some(tensor),
            _ => None,
        })
        .collect();
    let mut given = Vec::with_capacity(cotangents.len());
    for cotangent in cotangents {
        given.push(cotangent.tensor()?);
    }
    let given: Vec<Option<&Tensor>> = given.iter().map(Some).collect();
    let inputs: Vec<&Tensor> = leaves.iter().flatten().collect();
    let options = BackwardOptions { allow_unused: true, ..BackwardOptions::default() };
    let mut found = grad_with(&outputs, &inputs, &given, options)?.into_iter();
    let mut gradients = Vec::with_capacity(leaves.len());
    for leaf in leaves {
        let gradient = leaf.as_ref().and_then(|_| found.next()).flatten();
        gradients.push(gradient.map(Tensor::into_value));
    }
    Ok(gradients)
}
