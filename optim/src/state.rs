//! [`OptimizerState`]: what an optimizer's next steps depend on, as a value.

use namegrad_core::{NamedTensor, Names};
use std::collections::BTreeMap;

/// What the next steps of an optimizer depend on besides the parameters and their gradients.
#[derive(Clone, Debug)]
pub struct OptimizerState {
    /// The name of the optimizer: `AdamW`.
    pub method: String,
    /// The groups of parameters.
    pub groups: Vec<GroupState>,
}

/// The state of one group of parameters.
#[derive(Clone, Debug)]
pub struct GroupState {
    /// The hyperparameters by name.
    pub hyperparameters: serde_json::Value,
    /// What is kept for each parameter.
    pub parameters: Vec<ParameterState>,
}

/// The state of one parameter.
#[derive(Clone, Debug)]
pub struct ParameterState {
    /// The sizes of the parameter.
    pub sizes: Vec<usize>,
    /// The names of its dims.
    pub names: Names,
    /// How many steps it has made.
    pub steps: u64,
    /// The tensors that are kept for it, by name.
    pub slots: BTreeMap<String, NamedTensor>,
}
