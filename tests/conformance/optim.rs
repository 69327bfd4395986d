//! `optim.*`: some steps with given gradients, and the parameters after them. The optimizers are those of
//! the library's list. L-BFGS computes its gradients from an [`objective`]; clipping is one call.

use crate::call::{Answer, missing};
use crate::case::{Case, Output, scalar};
use crate::compare;
use namegrad::core::{NamedTensor, Scalar};
use namegrad::optim::{ClipGradNormOptions, Listed, clip_grad_norm_with_, clip_grad_value_};
use namegrad::prelude::*;
use namegrad_tests::list::{AnyOptimizer, OPTIMIZERS};
use serde_json::{Map, Value as Json};

/// Runs the case and returns what differs.
pub(crate) fn run(case: &Case) -> Answer<Option<String>> {
    match case.op.as_str() {
        "optim.lbfgs" => minimize(case),
        "optim.clip_grad_norm_" => clip_norm(case),
        "optim.clip_grad_value_" => clip_value(case),
        op => match OPTIMIZERS.iter().find(|entry| op == format!("optim.{}", entry.name().to_lowercase())) {
            Some(entry) => descend(entry, case),
            None => missing("no optimizer"),
        },
    }
}

/// The arguments that are not hyperparameters.
const OF_THE_CASE: [&str; 5] = ["steps", "checkpoints", "param_groups", "params", "objective"];

/// The hyperparameters of the case, which have the same names in PyTorch and here. `None` is a default.
fn hyperparameters(args: &Map<String, Json>) -> Map<String, Json> {
    let given = args.iter().filter(|(key, value)| !OF_THE_CASE.contains(&key.as_str()) && !value.is_null());
    given.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn descend(entry: &AnyOptimizer, case: &Case) -> Answer<Option<String>> {
    let parameters = parameters(case)?;
    let common = hyperparameters(&case.args);
    let mut groups = vec![(parameters.iter().cloned().map(Listed::from).collect(), common.clone().into())];
    if let Some(own) = case.args.get("param_groups").and_then(Json::as_array) {
        groups.clear();
        for own in own {
            let own = own.as_object().expect("a group is an object");
            let members = own["params"].as_array().into_iter().flatten().filter_map(Json::as_u64);
            let members = members.map(|k| parameters[k as usize].clone().into()).collect();
            let options: Map<String, Json> = common.clone().into_iter().chain(hyperparameters(own)).collect();
            groups.push((members, options.into()));
        }
    }
    let mut optimizer = entry.build_with(groups)?;
    for (number, gradients) in case.grads.iter().enumerate() {
        for (parameter, gradient) in parameters.iter().zip(gradients) {
            parameter.set_grad(gradient.as_ref().map(|gradient| gradient.tensor()).transpose()?)?;
        }
        optimizer.step()?;
        if let Some(difference) = differs(case, number + 1, &parameters, None) {
            return Ok(Some(difference));
        }
    }
    Ok(None)
}

fn parameters(case: &Case) -> Answer<Vec<Parameter>> {
    case.inputs.iter().map(|input| Ok(Parameter::new(input.tensor()?)?)).collect()
}

/// The difference after a step, if there is any.
fn differs(case: &Case, step: usize, parameters: &[Parameter], loss: Option<f64>) -> Option<String> {
    for checkpoint in case.expect.trajectory.iter().filter(|checkpoint| checkpoint.step == step) {
        for (k, want) in checkpoint.params.iter().enumerate() {
            if let Err(difference) = compare::tensor(parameters[k].tensor().value(), want, case.tol) {
                return Some(format!("parameter {k} after step {step}: {difference}"));
            }
        }
        if let (Some(want), Some(got)) = (checkpoint.loss, loss)
            && (got - want).abs() > case.tol.atol + case.tol.rtol * want.abs()
        {
            return Some(format!("loss {got} in step {step}, expected {want}"));
        }
    }
    None
}

/// L-BFGS, which evaluates the objective itself.
fn minimize(case: &Case) -> Answer<Option<String>> {
    let p = Parameter::new(case.inputs[0].tensor()?)?;
    let given = case.inputs[1..].iter().map(|input| input.tensor()).collect::<Result<Vec<Tensor>>>()?;
    let name = case.args["objective"].as_str().unwrap_or_default();
    let Some(entry) = OPTIMIZERS.iter().find(|entry| entry.name() == "Lbfgs") else {
        return missing("Lbfgs");
    };
    let mut optimizer = entry.build(std::slice::from_ref(&p), &Json::Object(hyperparameters(&case.args)))?;
    for step in 1..=case.args["steps"].as_u64().unwrap_or_default() {
        let loss = optimizer.step_with(&mut || objective(name, &p.tensor(), &given))?;
        let loss = loss.item::<f64>()?;
        if let Some(difference) = differs(case, step as usize, std::slice::from_ref(&p), Some(loss)) {
            return Ok(Some(difference));
        }
    }
    Ok(None)
}

fn objective(name: &str, p: &Tensor, given: &[Tensor]) -> Result<Tensor> {
    match (name, given) {
        ("quadratic", [a, b]) => p.dot(&a.matmul(p)?)?.mul(0.5)?.sub(&b.dot(p)?),
        ("logsumexp", [a, b]) => a.matmul(p)?.add(b)?.logsumexp(0)?.add(&p.dot(p)?.mul(0.05)?),
        ("rosenbrock", []) => {
            let n = p.numel();
            let (x, next) = (p.narrow(0, 0, n - 1)?, p.narrow(0, 1, n - 1)?);
            let curved = next.sub(&x.square()?)?.square()?.mul(100.0)?;
            curved.add(&x.sub(1.0)?.square()?)?.sum(..)
        }
        _ => panic!("no objective '{name}' of {} tensors", given.len()),
    }
}

/// Parameters with the inputs as gradients.
fn with_gradients(case: &Case) -> Answer<Vec<Parameter>> {
    let parameters = parameters(case)?;
    for parameter in &parameters {
        parameter.set_grad(Some(parameter.tensor().detach()))?;
    }
    Ok(parameters)
}

fn gradients(parameters: &[Parameter]) -> impl Iterator<Item = NamedTensor> {
    parameters.iter().map(|parameter| parameter.grad().expect("it was set").into_value())
}

fn float(case: &Case, name: &str, default: f64) -> f64 {
    match case.args.get(name).and_then(scalar) {
        Some(Scalar::Float(value)) => value,
        Some(Scalar::Int(value)) => value as f64,
        _ => default,
    }
}

fn clip_norm(case: &Case) -> Answer<Option<String>> {
    let parameters = with_gradients(case)?;
    let strict = case.args.get("error_if_nonfinite").and_then(Json::as_bool).unwrap_or_default();
    let options =
        ClipGradNormOptions::new().norm_type(float(case, "norm_type", 2.0)).error_if_nonfinite(strict);
    let norm = clip_grad_norm_with_(&parameters, float(case, "max_norm", f64::NAN), options)?;
    let norm = NamedTensor::from_slice(&[norm], ())?.to(parameters[0].dtype())?;
    Ok(all_differ(case, std::iter::once(norm).chain(gradients(&parameters))))
}

fn clip_value(case: &Case) -> Answer<Option<String>> {
    let parameters = with_gradients(case)?;
    clip_grad_value_(&parameters, float(case, "clip_value", f64::NAN))?;
    Ok(all_differ(case, gradients(&parameters)))
}

/// The difference from the expected outputs, which are tensors, if there is any.
fn all_differ(case: &Case, got: impl Iterator<Item = NamedTensor>) -> Option<String> {
    let pairs = got.zip(&case.expect.outputs).enumerate();
    pairs.into_iter().find_map(|(number, (got, want))| match want {
        Output::Tensor(want) => compare::tensor(&got, want, case.tol)
            .err()
            .map(|difference| format!("output {number}: {difference}")),
        Output::Plain(want) => Some(format!("output {number} is a tensor, expected {want}")),
    })
}
