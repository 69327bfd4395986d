//! [`OptimizerState`], everything that the next steps of an optimizer depend on, as a value and as a file.

use super::*;
use namegrad_core::Name;
use namegrad_io::fields::object_of_some;

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
    /// The content of the file that [`save`](Self::save) writes.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the hyperparameters have no JSON form.
    #[track_caller]
    pub fn to_file(&self) -> Result<TensorFile> {
        let (mut file, mut groups, mut index) = (TensorFile::default(), Vec::new(), 0);
        for (number, group) in self.groups.iter().enumerate() {
            if let Json::String(reason) = &group.hyperparameters {
                let message = format!("group {number} of {}: {reason}", self.method);
                return Err(Error::new(ErrorKind::Value, "save", message));
            }
            let mut parameters = Vec::new();
            for parameter in &group.parameters {
                parameters.push(parameter.stored(&mut file, index));
                index += 1;
            }
            let hyperparameters = group.hyperparameters.clone();
            let fields = vec![("hyperparameters", hyperparameters), ("parameters", parameters.into())];
            groups.push(object(fields));
        }
        let shared = (!self.shared.is_empty()).then(|| stored(&mut file, "shared", &self.shared)).into();
        let method = self.method.to_json();
        let state = object_of_some(vec![("method", method), ("groups", groups.into()), ("shared", shared)]);
        file.insert_value(DESCRIPTION, &state);
        Ok(file)
    }

    /// The state in a file's content.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if it is not the state of an optimizer.
    #[track_caller]
    pub fn from_file(file: &TensorFile) -> Result<OptimizerState> {
        at_caller(|| {
            let json = file.value(DESCRIPTION, "the state of an optimizer")?;
            let (fields, mut groups, mut index) = (Fields::new(DESCRIPTION, &json), Vec::new(), 0);
            for group in fields.list("groups")? {
                let mut parameters = Vec::new();
                for parameter in group.list("parameters")? {
                    parameters.push(ParameterState::read(file, index, parameter)?);
                    index += 1;
                }
                groups.push(GroupState { hyperparameters: group.get("hyperparameters")?, parameters });
            }
            let method = fields.get("method")?;
            let shared = tensors(file, "shared", fields.get::<Option<_>>("shared")?.unwrap_or_default())?;
            let state = OptimizerState { method, groups, shared };
            // A state that cannot be saved has no hyperparameters, which is an error when it is loaded.
            if let Ok(known) = state.to_file() {
                check_known(file, &known, "belongs to no parameter")?;
            }
            Ok(state)
        })
    }

    /// The same state without the names of dims and the paths of parameters, for a model in which they were
    /// renamed.
    pub fn ignore_names(mut self) -> OptimizerState {
        for group in &mut self.groups {
            for parameter in &mut group.parameters {
                (parameter.names, parameter.path) = (Names::none(), None);
                for slot in parameter.slots.values_mut() {
                    *slot = slot.unnamed();
                }
            }
        }
        self
    }
}

impl ParameterState {
    /// Stores the tensors in a file, and returns everything else with their names.
    fn stored(&self, file: &mut TensorFile, index: usize) -> Json {
        let text = |name: Option<Name>| name.map(|name| name.as_str().to_string());
        let names: Vec<Option<String>> = crate::list(self.names.iter(self.sizes.len()).map(text));
        if let Some(master) = &self.master {
            insert(&mut file.tensors, format!("{index}.master"), master.clone());
        }
        object_of_some(vec![
            ("path", self.path.to_json()),
            ("sizes", self.sizes.to_json()),
            ("names", names.to_json()),
            ("steps", self.steps.into()),
            ("master", self.master.as_ref().map(|_| true).into()),
            ("slots", stored(file, &index.to_string(), &self.slots)),
        ])
    }

    fn read(file: &TensorFile, index: usize, fields: Fields<'_>) -> Result<ParameterState> {
        let (sizes, texts): (Vec<usize>, Vec<Option<String>>) = (fields.get("sizes")?, fields.get("names")?);
        if texts.len() != sizes.len() {
            let message = format!("parameter {index} has sizes {sizes:?} and {} names", texts.len());
            return Err(malformed(message));
        }
        let place = |error: Error| malformed(format!("parameter {index}: {}", error.message()));
        let mut names = Vec::new();
        for text in texts {
            names.push(text.as_deref().map(Name::new).transpose().map_err(place)?);
        }
        let names = Names::new("load", names).map_err(place)?;
        let slots = tensors(file, &index.to_string(), fields.get("slots")?)?;
        let master = match fields.get("master")? {
            Some(true) => Some(tensor(file, &format!("{index}.master"))?),
            _ => None,
        };
        let (path, steps) = (fields.get("path")?, fields.get("steps")?);
        Ok(ParameterState { path, sizes, names, steps, master, slots })
    }
}

/// Stores tensors in a file under their names behind a prefix, and returns the names.
fn stored(file: &mut TensorFile, prefix: &str, tensors: &BTreeMap<String, NamedTensor>) -> Json {
    let mut names = Vec::new();
    for (name, tensor) in entries(tensors) {
        insert(&mut file.tensors, format!("{prefix}.{name}"), tensor.clone());
        names.push(Json::from(name.as_str()));
    }
    names.into()
}

/// The tensors of a file with these names behind a prefix.
fn tensors(file: &TensorFile, prefix: &str, names: Vec<String>) -> Result<BTreeMap<String, NamedTensor>> {
    let mut tensors = BTreeMap::new();
    for name in names {
        let value = tensor(file, &format!("{prefix}.{name}"))?;
        insert(&mut tensors, name, value);
    }
    Ok(tensors)
}

/// Checks that a file has no tensors besides those of a state.
#[track_caller]
pub(crate) fn check_known(file: &TensorFile, known: &TensorFile, refusal: &str) -> Result<()> {
    let all = entries(&file.tensors);
    match all.into_iter().find(|(name, _)| value_of(&known.tensors, name).is_none()) {
        Some((name, _)) => Err(malformed(format!("tensor '{name}' {refusal}"))),
        None => Ok(()),
    }
}

/// A tensor of a file.
#[track_caller]
pub(crate) fn tensor(file: &TensorFile, name: &str) -> Result<NamedTensor> {
    match value_of(&file.tensors, name) {
        Some(tensor) => Ok(tensor.clone()),
        None => Err(malformed(format!("tensor '{name}' is missing"))),
    }
}

#[cold]
#[track_caller]
pub(crate) fn malformed(message: String) -> Error {
    Error::new(ErrorKind::Format, "load", message)
}
