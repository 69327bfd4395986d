//! `program`: several successive calls on registers. Several numbers can refer to the same register, so an
//! in-place op changes it for all of them.

use crate::call::{Answer, Call, Stop, Value, missing};
use crate::ops::play;
use namegrad::autograd::{BackwardOptions, grad_with};
use namegrad::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

#[derive(Deserialize)]
struct Step {
    op: String,
    #[serde(rename = "in")]
    inputs: Vec<usize>,
    #[serde(default)]
    args: Map<String, Json>,
    #[serde(default)]
    no_grad: bool,
}

struct Registers {
    cells: Vec<Value>,
    /// The tensor whose gradient this cell is. An in-place op on the cell changes the gradient.
    gradient_of: Vec<Option<Tensor>>,
    cell_of: Vec<usize>,
}

impl Registers {
    fn push(&mut self, value: Value) {
        self.cell_of.push(self.cells.len());
        self.cells.push(value);
        self.gradient_of.push(None);
    }

    fn get(&self, register: usize) -> &Value {
        &self.cells[self.cell_of[register]]
    }

    fn tensors(&self, registers: &[usize]) -> Answer<Vec<Tensor>> {
        let tensor = |register: &usize| match self.get(*register) {
            Value::Tensor(tensor) => Ok(tensor.clone()),
            Value::Plain(value) => missing(format!("register {register}, which is {value}, as a tensor")),
        };
        registers.iter().map(tensor).collect()
    }
}

/// Runs the steps. An error includes the number of its step.
pub(crate) fn run(
    args: &Map<String, Json>,
    inputs: Vec<Tensor>,
) -> std::result::Result<Vec<Value>, (usize, Stop)> {
    let mut registers = Registers { cells: Vec::new(), gradient_of: Vec::new(), cell_of: Vec::new() };
    inputs.into_iter().for_each(|x| registers.push(Value::Tensor(x)));
    let steps: Vec<Step> =
        serde_json::from_value(args["steps"].clone()).expect("steps as the fixtures have them");
    for (number, step) in steps.iter().enumerate() {
        let ran = if step.no_grad {
            no_grad(|| run_step(step, &mut registers))
        } else {
            run_step(step, &mut registers)
        };
        ran.map_err(|stop| (number, stop))?;
    }
    let outputs = args["outputs"].as_array().into_iter().flatten().filter_map(Json::as_u64);
    Ok(outputs.map(|register| registers.get(register as usize).clone()).collect())
}

fn run_step(step: &Step, registers: &mut Registers) -> Answer<()> {
    let inputs = registers.tensors(&step.inputs)?;
    let flag = |key: &str| step.args.get(key).and_then(Json::as_bool).unwrap_or(false);
    let count =
        |key: &str, default: usize| step.args.get(key).and_then(Json::as_u64).map_or(default, |n| n as usize);
    let options = BackwardOptions {
        retain_graph: flag("retain_graph") || flag("create_graph"),
        create_graph: flag("create_graph"),
        allow_unused: flag("allow_unused"),
        ..BackwardOptions::default()
    };
    let maybe = |x: Option<Tensor>| x.map_or(Value::Plain(Json::Null), Value::Tensor);
    match step.op.as_str() {
        "autograd.grad" => {
            let (outputs, rest) = inputs.split_at(count("n_outputs", 1));
            let (cotangents, inputs) = rest.split_at(count("n_grad_outputs", 0));
            let outputs: Vec<&Tensor> = outputs.iter().collect();
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            let cotangents: Vec<Option<&Tensor>> = cotangents.iter().map(Some).collect();
            let found = grad_with(&outputs, &inputs, &cotangents, options)?;
            found.into_iter().for_each(|x| registers.push(maybe(x)));
        }
        "backward" => inputs[0].backward_with(inputs.get(1), options)?,
        "get_grad" => {
            registers.push(maybe(inputs[0].grad()));
            *registers.gradient_of.last_mut().expect("just pushed") = inputs.into_iter().next();
        }
        "clear_grad" => inputs[0].zero_grad(),
        "retain_grad" => inputs[0].retain_grad()?,
        op => {
            let mut call = Call::new(&step.args, inputs);
            let Some(outputs) = play(op, &mut call) else { return missing(op) };
            let outputs = outputs?;
            if let Some(argument) = call.unread().first() {
                return missing(format!("{op} with `{argument}`"));
            }
            if op.ends_with('_') {
                let cell = registers.cell_of[step.inputs[0]];
                registers.cell_of.push(cell);
                registers.cells[cell] = outputs[0].clone();
                if let (Some(of), Value::Tensor(gradient)) = (&registers.gradient_of[cell], &outputs[0]) {
                    of.set_grad(Some(gradient.clone()))?;
                }
            } else {
                outputs.into_iter().for_each(|value| registers.push(value));
            }
        }
    }
    Ok(())
}
