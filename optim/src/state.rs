//! [`OptimizerState`], everything that the next steps of an optimizer depend on, as a value and as a file.

use namegrad_core::{Error, ErrorKind, Name, NamedTensor, Names, Result};
use namegrad_io::TensorFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::panic::Location;
use std::path::Path;

/// The metadata key of a file under which everything except the tensors is stored.
const DESCRIPTION: &str = "optimizer";

/// Everything that the next steps of an optimizer depend on besides the parameters and their gradients.
///
/// In a file, a tensor is called `<parameter>.<slot>`, such as `0.exp_avg`, where the parameters of all
/// groups are numbered together, `<parameter>.master` or `shared.<name>`. Everything else is JSON under the
/// metadata key `optimizer`.
///
/// # Examples
/// Resumed training gives exactly the same results as training without an interruption:
/// ```
/// use namegrad::prelude::*;
/// use namegrad::optim::{Adam, Optimizer, OptimizerState};
/// fn step(weight: &Parameter, optimizer: &mut impl Optimizer) -> Result<()> {
///     optimizer.zero_grad();
///     weight.tensor().mul(&weight.tensor())?.sum(..)?.backward()?;
///     optimizer.step()
/// }
///
/// let weight = Parameter::new(Tensor::new([1.0, 2.0])?)?;
/// let mut optimizer = Adam::builder([weight.clone()]).lr(0.1).build()?;
/// step(&weight, &mut optimizer)?;
/// # let file = format!("namegrad-doc-optimizer-{}.safetensors", std::process::id());
/// # let path = std::env::temp_dir().join(file);
/// optimizer.state_dict().save(&path)?;
///
/// let resumed = Parameter::new(weight.tensor())?;
/// let mut other = Adam::new([resumed.clone()])?;
/// other.load_state_dict(&OptimizerState::load(&path)?)?;
/// step(&weight, &mut optimizer)?;
/// step(&resumed, &mut other)?;
/// assert_eq!(weight.tensor().to_vec::<f32>()?, resumed.tensor().to_vec::<f32>()?);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OptimizerState {
    /// The name of the optimizer: `AdamW`.
    pub method: String,
    /// The groups of parameters.
    pub groups: Vec<GroupState>,
    /// The tensors that the optimizer keeps for all parameters together, by name.
    pub shared: BTreeMap<String, NamedTensor>,
}

/// The state of one group of parameters.
#[derive(Clone, Debug)]
pub struct GroupState {
    /// The hyperparameters by name.
    pub hyperparameters: serde_json::Value,
    /// The state of each parameter.
    pub parameters: Vec<ParameterState>,
}

/// The state of one parameter.
#[derive(Clone, Debug)]
pub struct ParameterState {
    /// Its path in the model, if the optimizer knows it.
    pub path: Option<String>,
    /// The sizes of the parameter.
    pub sizes: Vec<usize>,
    /// The names of its dims.
    pub names: Names,
    /// The number of its steps so far.
    pub steps: u64,
    /// The copy in `f32` of a parameter of a half type.
    pub master: Option<NamedTensor>,
    /// The tensors that the optimizer keeps for it, by name.
    pub slots: BTreeMap<String, NamedTensor>,
}

impl OptimizerState {
    /// Writes the state to a safetensors file. If that fails, an existing file is unchanged.
    ///
    /// # Errors
    /// Same as [`TensorFile::save`].
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.to_file()?.save(path)
    }

    /// Reads a state from a file.
    ///
    /// # Errors
    /// The errors of [`TensorFile::load`]; [`ErrorKind::Format`] if the file is not the state of an
    /// optimizer.
    #[track_caller]
    pub fn load(path: impl AsRef<Path>) -> Result<OptimizerState> {
        TensorFile::load_as(path, OptimizerState::from_file)
    }

    /// The content of the file that [`save`](Self::save) writes.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the hyperparameters have no JSON form.
    #[track_caller]
    pub fn to_file(&self) -> Result<TensorFile> {
        for (number, group) in self.groups.iter().enumerate() {
            if let serde_json::Value::String(reason) = &group.hyperparameters {
                let message = format!("group {number} of {}: {reason}", self.method);
                return Err(Error::new(ErrorKind::Value, "save", message));
            }
        }
        let mut file = TensorFile::default();
        file.insert_json(DESCRIPTION, &Description::of(self))?;
        let parameters = self.groups.iter().flat_map(|group| &group.parameters);
        for (index, parameter) in parameters.enumerate() {
            for (slot, value) in &parameter.slots {
                file.tensors.insert(format!("{index}.{slot}"), value.clone());
            }
            if let Some(master) = &parameter.master {
                file.tensors.insert(format!("{index}.master"), master.clone());
            }
        }
        for (name, value) in &self.shared {
            file.tensors.insert(format!("shared.{name}"), value.clone());
        }
        Ok(file)
    }

    /// The state in a file's content.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if it is not the state of an optimizer.
    #[track_caller]
    pub fn from_file(file: &TensorFile) -> Result<OptimizerState> {
        let caller = Location::caller();
        let malformed = |message: String| Error::new(ErrorKind::Format, "load", message).at(caller);
        let description: Description = file.json(DESCRIPTION, "the state of an optimizer")?;
        let mut tensors = file.tensors.clone();
        let state = description.state(|name| tensors.remove(name)).map_err(malformed)?;
        match tensors.keys().next() {
            Some(name) => Err(malformed(format!("tensor '{name}' belongs to no parameter"))),
            None => Ok(state),
        }
    }

    /// The same state without the names of dims and the paths of parameters, for a model in which they were
    /// renamed.
    pub fn ignore_names(mut self) -> OptimizerState {
        for parameter in self.groups.iter_mut().flat_map(|group| &mut group.parameters) {
            parameter.names = Names::none();
            parameter.path = None;
            parameter.slots.values_mut().for_each(|slot| *slot = slot.unnamed());
        }
        self
    }
}

/// A state with the names of its tensors in place of the tensors.
#[derive(Serialize, Deserialize)]
struct Description {
    method: String,
    groups: Vec<GroupDescription>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shared: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct GroupDescription {
    hyperparameters: serde_json::Value,
    parameters: Vec<ParameterDescription>,
}

#[derive(Serialize, Deserialize)]
struct ParameterDescription {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    sizes: Vec<usize>,
    names: Vec<Option<Name>>,
    steps: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    master: bool,
    slots: Vec<String>,
}

impl Description {
    fn of(state: &OptimizerState) -> Description {
        let parameter = |parameter: &ParameterState| ParameterDescription {
            path: parameter.path.clone(),
            sizes: parameter.sizes.clone(),
            names: parameter.names.iter(parameter.sizes.len()).collect(),
            steps: parameter.steps,
            master: parameter.master.is_some(),
            slots: parameter.slots.keys().cloned().collect(),
        };
        let group = |group: &GroupState| GroupDescription {
            hyperparameters: group.hyperparameters.clone(),
            parameters: group.parameters.iter().map(parameter).collect(),
        };
        Description {
            method: state.method.clone(),
            groups: state.groups.iter().map(group).collect(),
            shared: state.shared.keys().cloned().collect(),
        }
    }

    /// The state with tensors from `take`, or a message that says what is wrong.
    fn state(
        self,
        mut take: impl FnMut(&str) -> Option<NamedTensor>,
    ) -> std::result::Result<OptimizerState, String> {
        let mut taken = |name: String| take(&name).ok_or_else(|| format!("tensor '{name}' is missing"));
        let mut index = 0;
        let mut groups = Vec::new();
        for group in self.groups {
            let mut parameters = Vec::new();
            for described in group.parameters {
                let ParameterDescription { path, sizes, names, steps, master, slots } = described;
                if names.len() != sizes.len() {
                    return Err(format!("parameter {index} has sizes {sizes:?} and {} names", names.len()));
                }
                let names = Names::new("load", names)
                    .map_err(|error| format!("parameter {index}: {}", error.message()))?;
                let mut found = BTreeMap::new();
                for slot in slots {
                    let value = taken(format!("{index}.{slot}"))?;
                    found.insert(slot, value);
                }
                let master = if master { Some(taken(format!("{index}.master"))?) } else { None };
                parameters.push(ParameterState { path, sizes, names, steps, master, slots: found });
                index += 1;
            }
            groups.push(GroupState { hyperparameters: group.hyperparameters, parameters });
        }
        let mut shared = BTreeMap::new();
        for name in self.shared {
            let value = taken(format!("shared.{name}"))?;
            shared.insert(name, value);
        }
        Ok(OptimizerState { method: self.method, groups, shared })
    }
}
