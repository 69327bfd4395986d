//! The values of a model by path, and how they are saved, compared and loaded.

use crate::buffer::Buffer;
use crate::module::{Entry, Fields, walk};
use namegrad_autograd::Parameter;
use namegrad_core::{Error, ErrorKind, NamedTensor, Result, Shape};
use namegrad_io::TensorFile;
use namegrad_macros::Setters;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// The values of parameters and buffers by path, such as `hidden.weight`.
///
/// Creating one copies nothing, and later updates of the model do not change it.
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
pub struct StateDict(BTreeMap<String, NamedTensor>);

/// The mismatches that [`load_state_dict_with`](crate::Module::load_state_dict_with) allows. By default, the
/// state must fit exactly.
///
/// # Examples
/// ```
/// use namegrad::nn::LoadOptions;
/// use namegrad::prelude::*;
/// let small = Linear::builder(("in", 3), ("out", 2)).bias(false).build()?;
/// let model = Linear::new(("in", 3), ("out", 2))?;
/// assert!(model.load_state_dict(&small.state_dict()).is_err());
/// let report = model.load_state_dict_with(&small.state_dict(), LoadOptions::new().partial(true))?;
/// assert_eq!(report.missing, ["bias"]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Setters)]
pub struct LoadOptions {
    /// Allow paths that only the state or only the model has.
    pub partial: bool,
    /// Align the dims of a value to those of the model by name, for example from `[N, H, W, C]` to
    /// `[N, C, H, W]`.
    pub align: bool,
    /// Allow values whose dims have other names or are unnamed.
    pub ignore_names: bool,
}

/// The paths that did not fit. [`LoadOptions`] has an example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Paths of the model that the state does not have.
    pub missing: Vec<String>,
    /// Paths of the state that the model does not have.
    pub unexpected: Vec<String>,
    /// Paths with other sizes or names: the dims in the model, then the dims in the state.
    pub mismatched: Vec<(String, Shape, Shape)>,
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for (what, paths) in [("missing", &self.missing), ("unexpected", &self.unexpected)] {
            if !paths.is_empty() {
                parts.push(format!("{what}: {}", paths.join(", ")));
            }
        }
        for (path, own, given) in &self.mismatched {
            parts.push(format!("{path} is {own} in the model and {given} in the state"));
        }
        f.write_str(&parts.join("; "))
    }
}

impl LoadReport {
    /// The call that loads the values that fit, for a repair.
    fn repair(&self, options: LoadOptions) -> String {
        let every =
            |fits: fn(&Shape, &Shape) -> bool| self.mismatched.iter().all(|(_, own, given)| fits(own, given));
        let differ = !self.mismatched.is_empty();
        let align = options.align || differ && every(same_dims);
        let ignore_names =
            options.ignore_names || differ && !align && every(|own, given| own.sizes == given.sizes);
        // Values with other sizes cannot be loaded.
        let removed: String = match differ && !align && !ignore_names {
            true => self.mismatched.iter().map(|(path, ..)| format!("state.remove({path:?}); ")).collect(),
            false => String::new(),
        };
        let absent = !self.missing.is_empty() || !self.unexpected.is_empty();
        let partial = options.partial || absent || !removed.is_empty();
        let setters: String = [("partial", partial), ("align", align), ("ignore_names", ignore_names)]
            .iter()
            .filter(|(_, on)| *on)
            .map(|(name, _)| format!(".{name}(true)"))
            .collect();
        format!("{removed}model.load_state_dict_with(&state, LoadOptions::new(){setters})?")
    }
}

/// Whether both have the same named dims of the same sizes, in any order.
fn same_dims(own: &Shape, given: &Shape) -> bool {
    let dims = |shape: &Shape| {
        let mut dims: Vec<_> = shape.names.iter(shape.sizes.len()).zip(shape.sizes.iter().copied()).collect();
        dims.sort();
        dims
    };
    let named = |shape: &Shape| shape.names.iter(shape.sizes.len()).all(|name| name.is_some());
    named(own) && named(given) && dims(own) == dims(given)
}

/// The target of a value in a model.
enum Place {
    Parameter(Parameter),
    Buffer(Buffer),
}

impl Place {
    fn value(&self) -> NamedTensor {
        match self {
            Place::Parameter(parameter) => parameter.tensor().into_value(),
            Place::Buffer(buffer) => buffer.value(),
        }
    }
}

fn places(fields: Fields<'_>) -> BTreeMap<String, Place> {
    let mut places = BTreeMap::new();
    walk(fields, &mut |path, entry| {
        let place = match entry {
            Entry::Parameter(parameter) => Place::Parameter(parameter.clone()),
            Entry::Buffer(buffer) => Place::Buffer(buffer.clone()),
            _ => return,
        };
        places.insert(path.to_string(), place);
    });
    places
}

impl StateDict {
    pub(crate) fn of(fields: Fields<'_>) -> StateDict {
        StateDict(places(fields).into_iter().map(|(path, place)| (path, place.value())).collect())
    }

    /// Writes the values with the names of their dims to a safetensors file, or without names to a file whose
    /// name ends in `.npz`. An existing file is replaced atomically.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] with the path.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        TensorFile { tensors: self.0.clone(), ..TensorFile::default() }.save(path)
    }

    /// Reads a file from [`save`](Self::save), any other safetensors file, a state dict of PyTorch (`.pt` or
    /// `.pth`) or an `.npz` file: see [`TensorFile`]. Dims have the names in the file, if there are any.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] or [`ErrorKind::Format`], with the path and the reason.
    #[track_caller]
    pub fn load(path: impl AsRef<Path>) -> Result<StateDict> {
        Ok(StateDict(TensorFile::load(path)?.tensors))
    }

    /// The value at a path.
    pub fn get(&self, path: &str) -> Option<&NamedTensor> {
        self.0.get(path)
    }

    /// Sets the value at a path and returns the previous one.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let model = Linear::new(("in", 3), ("out", 2))?;
    /// // A file from an older version of the model, in which the bias was called `offset`:
    /// let mut state = model.state_dict();
    /// let bias = state.remove("bias").unwrap();
    /// state.insert("offset", bias);
    ///
    /// let offset = state.remove("offset").unwrap();
    /// state.insert("bias", offset);
    /// model.load_state_dict(&state)?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn insert(&mut self, path: impl Into<String>, value: NamedTensor) -> Option<NamedTensor> {
        self.0.insert(path.into(), value)
    }

    /// Removes the value at a path.
    pub fn remove(&mut self, path: &str) -> Option<NamedTensor> {
        self.0.remove(path)
    }

    /// Paths and values, in the order of the paths.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &NamedTensor)> {
        self.0.iter().map(|(path, value)| (path.as_str(), value))
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares everything with `state`, then loads it.
    #[track_caller]
    pub(crate) fn load_into(&self, fields: Fields<'_>, options: LoadOptions) -> Result<LoadReport> {
        let places = places(fields);
        let mut report = LoadReport {
            missing: places.keys().filter(|path| !self.0.contains_key(*path)).cloned().collect(),
            unexpected: self.0.keys().filter(|path| !places.contains_key(*path)).cloned().collect(),
            mismatched: Vec::new(),
        };
        let mut updates = Vec::new();
        for (path, place) in &places {
            let Some(given) = self.0.get(path) else { continue };
            let own = place.value();
            match fitted(&own, given, options) {
                Some(value) => updates.push((place, value.to(own.dtype())?.with_names(own.names().clone()))),
                None => report.mismatched.push((path.clone(), own.shape(), given.shape())),
            }
        }
        let absent = !report.missing.is_empty() || !report.unexpected.is_empty();
        if !report.mismatched.is_empty() || absent && !options.partial {
            let message = format!("the state does not fit the model: {report}");
            let error = Error::new(ErrorKind::Value, "load_state_dict", message);
            return Err(error.with_repair(report.repair(options)));
        }
        for (place, value) in updates {
            match place {
                Place::Parameter(parameter) => parameter.set(value.unnamed())?,
                Place::Buffer(buffer) => buffer.set(value.unnamed())?,
            }
        }
        Ok(report)
    }
}

/// The value with the dims of the model, if it fits.
fn fitted(own: &NamedTensor, given: &NamedTensor, options: LoadOptions) -> Option<NamedTensor> {
    if options.align && own.names() != given.names() && own.has_names() && given.has_names() {
        let aligned = given.align_as(own).ok()?;
        return (aligned.sizes() == own.sizes()).then_some(aligned);
    }
    let names_agree = own.names() == given.names() || options.ignore_names;
    (own.sizes() == given.sizes() && names_agree).then(|| given.clone())
}

impl FromIterator<(String, NamedTensor)> for StateDict {
    fn from_iter<I: IntoIterator<Item = (String, NamedTensor)>>(values: I) -> StateDict {
        StateDict(values.into_iter().collect())
    }
}
