//! The values of a model by path, and how they are saved and read. `load.rs` compares them with a model and
//! loads them.

mod by_path;
mod load;
mod renames;
mod repair;

pub use load::{LoadOptions, LoadReport};

use crate::pattern::Pattern;
use crate::places::{AnyModule, Ids, places};
use by_path::ByPath;
use namegrad_core::names::NameList;
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use namegrad_io::sorted::retain;
use namegrad_io::{OpenFile, TensorFile};
use std::path::Path;

/// The values of parameters and buffers by path, such as `hidden.weight`.
///
/// Creating one copies nothing, and later updates of the model do not change it. A parameter that two layers
/// share has a value under both paths, as in PyTorch.
///
/// # Examples
/// ```
/// use namegrad::nn::StateDict;
/// use namegrad::prelude::*;
/// let (trained, fresh) = (Linear::new(("in", 3), ("out", 2))?, Linear::new(("in", 3), ("out", 2))?);
/// # let path = std::env::temp_dir().join(format!("namegrad-state-{}.safetensors", std::process::id()));
/// # let path = path.to_str().unwrap();
/// trained.state_dict().save(path)?;
/// let state = StateDict::load(path)?;
/// # std::fs::remove_file(path).unwrap();
/// assert_eq!(state.get("weight").unwrap().shape().to_string(), "[out=2, in=3]");
/// fresh.load_state_dict(&state)?;
/// assert!(fresh.weight().tensor().equal(&trained.weight().tensor())?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct StateDict {
    values: ByPath<NamedTensor>,
    /// The paths whose value is that of another path, because a parameter has both.
    shared: ByPath<String>,
}

/// The tensors and the metadata of a file.
type Entries = (Vec<(String, NamedTensor)>, Vec<(String, String)>);

/// The prefix in the metadata of a file for a path that has the value of another: `shared:decoder.weight` is
/// `embed.weight`.
const SHARED: &str = "shared:";

impl StateDict {
    pub(crate) fn of(module: &dyn AnyModule) -> StateDict {
        let (mut state, mut ids) = (StateDict::default(), Ids::default());
        let places = places(module);
        for (at, (path, place)) in places.iter().enumerate() {
            let first = ids.first(place.id(), at);
            if first != at {
                state.shared.insert(path.clone(), places[first].0.clone());
            }
            state.values.insert(path.clone(), place.whole());
        }
        state
    }

    /// Writes the values with the names of their dims to a safetensors file, or without names to a file whose
    /// name ends in `.npz`. An existing file is replaced atomically.
    ///
    /// A safetensors file has the value of a shared parameter once, under its first path; its metadata has
    /// the others: `shared:decoder.weight` is `embed.weight`. In Python,
    /// `safetensors.torch.load_model(model, path)` loads it into a model that shares them, too. An `.npz`
    /// file, which has no metadata, has each.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] with the path.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let file = match path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npz")) {
            true => TensorFile::of_entries(self.values.entries().to_vec(), Vec::new()),
            false => self.to_file(),
        };
        file.into_saved(path)
    }

    /// The content of the safetensors file that [`save`](Self::save) writes. Nothing is copied.
    pub fn to_file(&self) -> TensorFile {
        let own = self.values.entries().iter().filter(|(path, _)| !self.shared.contains(path));
        let shared = self.shared.entries().iter();
        let metadata = shared.map(|(path, first)| (format!("{SHARED}{path}"), first.clone()));
        TensorFile::of_entries(crate::list(own.cloned()), crate::list(metadata))
    }

    /// Reads a file from [`save`](Self::save), any other safetensors file, a state dict of PyTorch (`.pt` or
    /// `.pth`) or an `.npz` file: see [`TensorFile`]. Dims have the names in the file, if there are any.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] or [`ErrorKind::Format`], with the path and the reason.
    #[track_caller]
    pub fn load(path: impl AsRef<Path>) -> Result<StateDict> {
        let path = path.as_ref();
        StateDict::read(TensorFile::load(path)?.into_entries(), &format!("{}", path.display()))
    }

    /// Reads all tensors of a safetensors file that is open, or that is mapped into memory: each is copied
    /// once, from the file to its own memory.
    ///
    /// ```
    /// use namegrad::io::OpenFile;
    /// use namegrad::nn::StateDict;
    /// use namegrad::prelude::*;
    /// let layer = Linear::new(("in", 3), ("out", 2))?;
    /// # let path = std::env::temp_dir().join(format!("namegrad-mapped-{}.safetensors", std::process::id()));
    /// layer.state_dict().save(&path)?;
    /// // SAFETY: no program changes the file while it is mapped.
    /// let file = unsafe { OpenFile::map(&path)? };
    /// layer.load_state_dict(&StateDict::from_file(&file)?)?;
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`OpenFile::tensor`].
    #[track_caller]
    pub fn from_file(file: &OpenFile) -> Result<StateDict> {
        StateDict::read(file.read_all()?.into_entries(), "the file")
    }

    /// The content of a file, with the paths that share values.
    #[track_caller]
    fn read((tensors, metadata): Entries, file: &str) -> Result<StateDict> {
        let mut state = StateDict::default();
        *state.values.entries_mut() = tensors; // sorted by path
        for (key, first) in metadata {
            let Some(path) = key.strip_prefix(SHARED).filter(|path| !state.values.contains(path)) else {
                continue;
            };
            let Some(value) = state.values.get(&first).filter(|_| !state.shared.contains(&first)) else {
                let message =
                    format!("{file}: '{path}' has the value of '{first}', which the file does not have");
                return Err(Error::new(ErrorKind::Format, "load", message));
            };
            let value = value.clone();
            state.values.insert(path.to_string(), value);
            state.shared.insert(path.to_string(), first);
        }
        Ok(state)
    }

    /// The values in a file's content, such as that of [`to_file`](Self::to_file). Nothing is copied.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if a path has the value of another one that is missing.
    #[track_caller]
    pub fn from_tensor_file(file: &TensorFile) -> Result<StateDict> {
        StateDict::read(file.entries(), "the file")
    }

    /// The value at a path.
    pub fn get(&self, path: &str) -> Option<&NamedTensor> {
        self.values.get(path)
    }

    /// Sets the value at a path and returns the previous one.
    ///
    /// ```
    /// use namegrad::core::NamedTensor;
    /// use namegrad::prelude::*;
    /// let model = Linear::new(("in", 3), ("out", 2))?;
    /// let mut state = model.state_dict();
    /// state.insert("bias", NamedTensor::zeros([("out", 2)])?);
    /// model.load_state_dict(&state)?;
    /// assert_eq!(model.bias().unwrap().tensor().to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn insert(&mut self, path: impl Into<String>, value: NamedTensor) -> Option<NamedTensor> {
        let path = path.into();
        self.separate(&path);
        self.values.insert(path, value)
    }

    /// Removes the value at a path, which is not a pattern: [`remove_all`](Self::remove_all) takes one.
    pub fn remove(&mut self, path: &str) -> Option<NamedTensor> {
        self.separate(path);
        self.values.remove(path)
    }

    /// Removes the values whose paths match a pattern, as in [`rename`](Self::rename), such as the head of
    /// another task. Returns their number.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let mut state = Sequential::new().then(Linear::new(3, 4)?).then(Linear::new(4, 2)?).state_dict();
    /// assert_eq!(state.remove_all("1.*")?, 2);
    /// assert!(state.iter().map(|(path, _)| path).eq(["0.bias", "0.weight"]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if no path matches.
    #[track_caller]
    pub fn remove_all(&mut self, pattern: &str) -> Result<usize> {
        let pattern = Pattern::new(pattern);
        let paths = self.matching("StateDict::remove_all", &pattern)?;
        for path in &paths {
            self.remove(path);
        }
        Ok(paths.len())
    }

    /// Forgets which paths share the value of this one.
    fn separate(&mut self, path: &str) {
        retain(self.shared.entries_mut(), &|(other, first)| other != path && first != path);
    }

    /// Renames the paths that match a pattern: the texts in place of its stars, in order, take the place of
    /// the stars of `to`. `*` is any text without a dot, `**` any text. Returns the number of paths.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let mut state = Linear::new(("in", 3), ("out", 2))?.state_dict();
    /// state.rename("**", "model.encoder.**")?; // a prefix
    /// state.rename("model.**", "**")?; // without a prefix
    /// state.rename("*.bias", "*.offset")?;
    /// assert!(state.iter().map(|(path, _)| path).eq(["encoder.offset", "encoder.weight"]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if no path matches, if `to` has more stars than the pattern, or if two values
    /// would have the same path. Then nothing has changed.
    #[track_caller]
    pub fn rename(&mut self, pattern: &str, to: &str) -> Result<usize> {
        const OP: &str = "StateDict::rename";
        let (from, target) = (Pattern::new(pattern), Pattern::new(to));
        if target.stars() > from.stars() {
            let message = format!("'{to}' has more stars than '{pattern}', which give it their texts");
            return Err(Error::new(ErrorKind::Value, OP, message));
        }
        let renamed = |path: &str| from.captures(path).map_or(path.into(), |texts| target.filled(&texts));
        let count = self.matching(OP, &from)?.len();
        let mut state = StateDict::default();
        for (path, value) in self.values.entries() {
            let now = renamed(path);
            if now.is_empty() || state.values.contains(&now) {
                let of_another = format!("the path '{now}' of another value");
                let what = if now.is_empty() { "no path" } else { &of_another };
                return Err(Error::new(ErrorKind::Value, OP, format!("'{path}' would get {what}")));
            }
            state.values.insert(now, value.clone());
        }
        for (path, first) in self.shared.entries() {
            state.shared.insert(renamed(path), renamed(first));
        }
        *self = state;
        Ok(count)
    }

    /// The paths that match a pattern.
    #[track_caller]
    fn matching(&self, op: &'static str, pattern: &Pattern) -> Result<Vec<String>> {
        let matching = self.values.paths().filter(|path| pattern.captures(path).is_some());
        let paths: Vec<String> = crate::list(matching.map(str::to_string));
        match paths.is_empty() {
            true => Err(pattern.unmatched(op, "path of the state", &mut self.values.paths())),
            false => Ok(paths),
        }
    }

    /// Names the dims of the values whose paths match a pattern, as in [`rename`](Self::rename), so that they
    /// can be aligned to a model: for files of other tools. Returns the number of values.
    ///
    /// ```
    /// use namegrad::core::NamedTensor;
    /// use namegrad::nn::{LoadOptions, StateDict};
    /// use namegrad::prelude::*;
    /// let model = Linear::builder(("in", 3), ("out", 2)).bias(false).build()?;
    /// // Another tool stores the transposed weight.
    /// let mut state: StateDict = [("kernel".to_string(), NamedTensor::ones([3, 2])?)].into_iter().collect();
    /// state.rename("kernel", "weight")?;
    /// state.refine_names("weight", ["in", "out"])?;
    /// model.load_state_dict_with(&state, LoadOptions::new().align(true))?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if no path matches; the errors of
    /// [`NamedTensor::refine_names`](namegrad_core::NamedTensor::refine_names). Then nothing has changed.
    #[track_caller]
    pub fn refine_names(&mut self, pattern: &str, names: impl NameList + Clone) -> Result<usize> {
        const OP: &str = "StateDict::refine_names";
        let from = Pattern::new(pattern);
        let (count, mut named) = (self.matching(OP, &from)?.len(), self.values.clone());
        for (path, value) in named.entries_mut().iter_mut().filter(|(path, _)| from.captures(path).is_some())
        {
            let own = value.refine_names(names.clone());
            *value = own.map_err(|error| error.of(OP).context(format_args!("'{path}': ")))?;
        }
        self.values = named;
        Ok(count)
    }

    /// Paths and values, in the order of the paths.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &NamedTensor)> {
        self.values.entries().iter().map(|(path, value)| (path.as_str(), value))
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.entries().len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.entries().is_empty()
    }
}

impl FromIterator<(String, NamedTensor)> for StateDict {
    fn from_iter<I: IntoIterator<Item = (String, NamedTensor)>>(values: I) -> StateDict {
        let mut state = StateDict::default();
        for (path, value) in values {
            state.values.insert(path, value);
        }
        state
    }
}
