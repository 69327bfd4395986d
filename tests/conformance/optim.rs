//! `optim.*`: some steps with given gradients, and the parameters after them. A new optimizer is one row of
//! [`run`].

use crate::conformance::call::{Stop, missing};
use crate::conformance::case::Case;
use crate::conformance::compare;
use namegrad::optim::{AdamOptions, AdamWOptions, Builder, Method, Optimizer, SgdOptions};
use namegrad::prelude::*;
use serde_json::{Map, Value as Json};

/// Runs the case and returns what differs.
pub(crate) fn run(case: &Case) -> std::result::Result<Option<String>, Stop> {
    match case.op.as_str() {
        "optim.sgd" => descend::<SgdOptions>(case),
        "optim.adam" => descend::<AdamOptions>(case),
        "optim.adamw" => descend::<AdamWOptions>(case),
        _ => missing("no row"),
    }
}

/// The arguments that are not hyperparameters.
const OF_THE_CASE: [&str; 4] = ["steps", "checkpoints", "param_groups", "params"];

/// `base` with the hyperparameters of the case, which have the same names in PyTorch and here.
fn hyperparameters<M: Method>(base: M, args: &Map<String, Json>) -> std::result::Result<M, Stop> {
    let Ok(Json::Object(mut all)) = serde_json::to_value(base) else { return missing("hyperparameters") };
    let given = args.iter().filter(|(key, _)| !OF_THE_CASE.contains(&key.as_str()));
    all.extend(given.map(|(key, value)| (key.clone(), value.clone())));
    serde_json::from_value(Json::Object(all)).or_else(|error| missing(error.to_string()))
}

fn descend<M: Method + Default>(case: &Case) -> std::result::Result<Option<String>, Stop> {
    let mut parameters = Vec::new();
    for input in &case.inputs {
        parameters.push(Parameter::new(input.tensor()?)?);
    }
    let method: M = hyperparameters(M::default(), &case.args)?;
    let mut optimizer = match case.args.get("param_groups").and_then(Json::as_array) {
        None => Builder::new(parameters.clone(), method).build()?,
        Some(groups) => {
            let mut builder = Builder::new([], method.clone());
            for group in groups {
                let own = group.as_object().expect("a group is an object");
                let members = own["params"].as_array().into_iter().flatten().filter_map(Json::as_u64);
                let members: Vec<Parameter> = members.map(|k| parameters[k as usize].clone()).collect();
                let own = hyperparameters(method.clone(), own)?;
                builder = builder.group(members, |method| *method = own);
            }
            builder.build()?
        }
    };
    for (number, gradients) in case.grads.iter().enumerate() {
        for (parameter, gradient) in parameters.iter().zip(gradients) {
            parameter.set_grad(gradient.as_ref().map(|gradient| gradient.tensor()).transpose()?)?;
        }
        optimizer.step()?;
        let expected = case.expect.trajectory.iter().filter(|checkpoint| checkpoint.step == number + 1);
        for (k, want) in expected.flat_map(|checkpoint| checkpoint.params.iter().enumerate()) {
            if let Err(difference) = compare::tensor(parameters[k].tensor().value(), want, case.tol) {
                return Ok(Some(format!("parameter {k} after step {}: {difference}", number + 1)));
            }
        }
    }
    Ok(None)
}
