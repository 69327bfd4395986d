//! [`Resumable`], the trait of parts that a checkpoint can save, and [`Parts`], the list of those of a run.

use super::value::{KEY, ValuePart};
use namegrad_autograd::Parameter;
use namegrad_core::random::{Generator, GeneratorState};
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_data::{Loader, LoaderPosition, LoaderState};
use namegrad_io::TensorFile;
use namegrad_io::fields::{StateFields, insert, value_of};
use namegrad_io::setting::Setting;
use namegrad_nn::{Module, StateDict};
use namegrad_optim::schedule::{ReduceOnPlateau, Scheduler, SchedulerState};
use namegrad_optim::{AverageState, AveragedModel, GradScaler, GradScalerState, Optimizer, OptimizerState};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::panic::Location;

/// A part of a training run that has a state: tensors by name, and text by key.
///
/// Modules, optimizers, schedulers, loaders, averaged models, random generators and values with serde's
/// traits are parts already. Implement it for your own types that change during a run, if serde does not fit.
///
/// # Examples
/// An average of the losses, which is saved as a tensor:
/// ```
/// use namegrad::core::NamedTensor;
/// use namegrad::io::TensorFile;
/// use namegrad::prelude::*;
/// use namegrad::train::{Checkpoints, Resumable, parts};
///
/// struct Smoothed(NamedTensor);
///
/// impl Resumable for Smoothed {
///     fn state(&self) -> Result<TensorFile> {
///         let mut state = TensorFile::default();
///         state.tensors.insert("average".into(), self.0.clone());
///         Ok(state)
///     }
///     fn restore(&mut self, state: &TensorFile) -> Result<()> {
///         let missing = || Error::new(ErrorKind::Format, "restore", "there is no tensor 'average'");
///         self.0 = state.tensors.get("average").ok_or_else(missing)?.clone();
///         Ok(())
///     }
/// }
///
/// # let folder = std::env::temp_dir().join(format!("namegrad-doc-part-{}", std::process::id()));
/// let checkpoints = Checkpoints::new(&folder)?;
/// let mut loss = Smoothed(NamedTensor::full((), 0.5)?);
/// checkpoints.save(1, parts![&mut loss])?;
/// loss.0 = NamedTensor::zeros(())?;
/// checkpoints.resume(parts![&mut loss])?;
/// assert_eq!(loss.0.item::<f32>()?, 0.5);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
pub trait Resumable {
    /// Returns everything that the further run depends on. Cloning a tensor copies no elements, and later
    /// changes of the part do not change the clone.
    ///
    /// # Errors
    /// Any error; nothing is saved then.
    fn state(&self) -> Result<TensorFile>;

    /// Continues from a state. After an error, nothing has changed.
    ///
    /// # Errors
    /// An error that says what differs, if the state does not fit.
    fn restore(&mut self, state: &TensorFile) -> Result<()>;

    /// The borrow of the part's variable, `&` or `&mut `, for messages.
    #[doc(hidden)]
    fn borrow(&self) -> &'static str {
        "&mut "
    }

    /// The present state of the part, for [`put_back`](Self::put_back).
    #[doc(hidden)]
    fn before(&self) -> Result<Snapshot> {
        self.state().map(Snapshot::State)
    }

    /// Undoes [`restore`](Self::restore), because another part has refused its state.
    #[doc(hidden)]
    fn put_back(&mut self, before: &Snapshot) -> Result<()> {
        match before {
            Snapshot::State(state) => self.restore(state),
            Snapshot::Position(_) => Ok(()),
        }
    }
}

/// The state of a part before it was restored.
#[doc(hidden)]
#[derive(Debug)]
pub enum Snapshot {
    State(TensorFile),
    /// The place of a loader. Its state does not know of the iterator that runs.
    Position(LoaderPosition),
}

impl<T: Resumable + ?Sized> Resumable for &mut T {
    fn state(&self) -> Result<TensorFile> {
        (**self).state()
    }
    fn restore(&mut self, state: &TensorFile) -> Result<()> {
        (**self).restore(state)
    }
    fn borrow(&self) -> &'static str {
        (**self).borrow()
    }
    fn before(&self) -> Result<Snapshot> {
        (**self).before()
    }
    fn put_back(&mut self, before: &Snapshot) -> Result<()> {
        (**self).put_back(before)
    }
}

impl Resumable for Scheduler {
    fn state(&self) -> Result<TensorFile> {
        self.state_dict().to_file()
    }
    fn restore(&mut self, state: &TensorFile) -> Result<()> {
        self.resume(&SchedulerState::from_file(state)?)
    }
}

impl Resumable for ReduceOnPlateau {
    fn state(&self) -> Result<TensorFile> {
        self.state_dict().to_file()
    }
    fn restore(&mut self, state: &TensorFile) -> Result<()> {
        self.resume(&SchedulerState::from_file(state)?)
    }
}

impl Resumable for AveragedModel {
    fn state(&self) -> Result<TensorFile> {
        self.state_dict().to_file()
    }
    fn restore(&mut self, state: &TensorFile) -> Result<()> {
        self.load_state_dict(&AverageState::from_file(state)?)
    }
}

impl Resumable for GradScaler {
    fn state(&self) -> Result<TensorFile> {
        self.state_dict().to_file()
    }
    fn restore(&mut self, state: &TensorFile) -> Result<()> {
        self.load_state_dict(&GradScalerState::from_file(state)?)
    }
}

/// The place in the data: the epoch, and how many of its batches the loop has taken.
impl<B: Send + 'static> Resumable for &Loader<B> {
    fn state(&self) -> Result<TensorFile> {
        self.state_dict()?.to_file()
    }
    fn restore(&mut self, state: &TensorFile) -> Result<()> {
        self.load_state_dict(&LoaderState::from_file(state)?)
    }
    fn borrow(&self) -> &'static str {
        "&"
    }
    fn before(&self) -> Result<Snapshot> {
        Ok(Snapshot::Position(self.place()))
    }
    fn put_back(&mut self, before: &Snapshot) -> Result<()> {
        if let Snapshot::Position(place) = before {
            Loader::put_back(self, place);
        }
        Ok(())
    }
}

/// Your own random generator. The default generator is in every checkpoint.
impl Resumable for Generator {
    fn state(&self) -> Result<TensorFile> {
        fields(&mut Generator::state(self)).to_file()
    }
    fn restore(&mut self, file: &TensorFile) -> Result<()> {
        let mut state = Generator::state(self);
        fields(&mut state).read(file)?;
        self.set_state(state);
        Ok(())
    }
}

fn fields(state: &mut GeneratorState) -> StateFields<'_> {
    let fields: Vec<(_, &mut dyn Setting)> = vec![("seed", &mut state.seed), ("offset", &mut state.offset)];
    StateFields { key: KEY, what: "the state of a generator", fields }
}

/// A parameter that is in no module.
impl Resumable for &Parameter {
    fn state(&self) -> Result<TensorFile> {
        let mut file = TensorFile::default();
        insert(&mut file.tensors, "value".into(), self.try_tensor()?.into_value());
        Ok(file)
    }
    fn restore(&mut self, state: &TensorFile) -> Result<()> {
        match value_of(&state.tensors, "value") {
            Some(value) => self.set(value),
            None => Err(Error::new(ErrorKind::Format, "load", "not the state of a parameter")),
        }
    }
    fn borrow(&self) -> &'static str {
        "&"
    }
}

struct ModulePart<'a, M: ?Sized>(&'a M);

impl<M: Module + ?Sized> Resumable for ModulePart<'_, M> {
    fn state(&self) -> Result<TensorFile> {
        Ok(self.0.state_dict().to_file())
    }
    fn restore(&mut self, state: &TensorFile) -> Result<()> {
        self.0.load_state_dict(&StateDict::from_tensor_file(state)?)
    }
    fn borrow(&self) -> &'static str {
        "&"
    }
}

struct OptimizerPart<'a, O: ?Sized>(&'a mut O);

impl<O: Optimizer + ?Sized> Resumable for OptimizerPart<'_, O> {
    fn state(&self) -> Result<TensorFile> {
        self.0.state_dict().to_file()
    }
    fn restore(&mut self, state: &TensorFile) -> Result<()> {
        self.0.load_state_dict(&OptimizerState::from_file(state)?)
    }
}

/// A part in the form that [`Parts::with`] takes: `&model` for a module, `&loader`, `&mut optimizer`,
/// `&mut scheduler`, `&mut` any [`Resumable`], and `&mut` any value with serde's `Serialize` and `Deserialize`.
/// `Kind` tells these cases apart; the compiler finds it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a part of a checkpoint",
    label = "not a part in this form",
    note = "a module or a loader is given as `&model`, everything else as `&mut part`",
    note = "your own types implement `Resumable`, or derive serde's `Serialize` and `Deserialize`"
)]
pub trait IntoPart<'a, Kind> {
    /// The part with its state.
    fn into_part(self) -> Box<dyn Resumable + 'a>;
}

/// The kinds of parts.
#[doc(hidden)]
pub mod kind {
    /// A type that implements [`Resumable`](super::Resumable).
    #[derive(Debug)]
    pub enum Own {}
    /// A module.
    #[derive(Debug)]
    pub enum Module {}
    /// An optimizer.
    #[derive(Debug)]
    pub enum Optimizer {}
    /// A value with serde's traits.
    #[derive(Debug)]
    pub enum Value {}
}

impl<'a, T: Resumable + 'a> IntoPart<'a, kind::Own> for T {
    fn into_part(self) -> Box<dyn Resumable + 'a> {
        Box::new(self)
    }
}

impl<'a, M: Module + ?Sized> IntoPart<'a, kind::Module> for &'a M {
    fn into_part(self) -> Box<dyn Resumable + 'a> {
        Box::new(ModulePart(self))
    }
}

impl<'a, O: Optimizer + ?Sized> IntoPart<'a, kind::Optimizer> for &'a mut O {
    fn into_part(self) -> Box<dyn Resumable + 'a> {
        Box::new(OptimizerPart(self))
    }
}

impl<'a, T: Serialize + DeserializeOwned + 'static> IntoPart<'a, kind::Value> for &'a mut T {
    fn into_part(self) -> Box<dyn Resumable + 'a> {
        Box::new(ValuePart(self))
    }
}

/// The parts of a run with their names, borrowed for one call of [`Checkpoints`](super::Checkpoints). The
/// macro [`parts!`](crate::parts) is the short form.
#[derive(Default)]
#[must_use = "parts are given to `Checkpoints::save` or `resume`"]
pub struct Parts<'a> {
    pub(super) parts: Vec<(String, Box<dyn Resumable + 'a>)>,
}

impl<'a> Parts<'a> {
    /// No parts.
    pub fn new() -> Parts<'a> {
        Parts::default()
    }

    /// Adds a part. Its name consists of letters, digits, `_` and `-`.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::train::Parts;
    /// let model = Linear::new(("in", 3), ("out", 2))?;
    /// let mut optimizer = Sgd::new(model.parameters())?;
    /// let mut epoch = 0;
    /// let parts = Parts::new().with("model", &model).with("optimizer", &mut optimizer);
    /// let parts = parts.with("epoch", &mut epoch);
    /// assert!(parts.names().eq(["model", "optimizer", "epoch"]));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn with<Kind>(mut self, name: impl Into<String>, part: impl IntoPart<'a, Kind>) -> Parts<'a> {
        self.parts.push((name.into(), part.into_part()));
        self
    }

    /// The names, in the order of the parts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|(name, _)| name.as_str())
    }

    /// The borrow of a part's variable in `parts!`: `&` or `&mut `.
    pub(super) fn form(&self, name: &str) -> Option<&'static str> {
        self.parts.iter().find(|(own, _)| own == name).map(|(_, part)| part.borrow())
    }

    /// Checks the names.
    pub(super) fn check(&self, op: &'static str, caller: &'static Location<'static>) -> Result<()> {
        let refused = |message: String, repair: &str| {
            Err(Error::new(ErrorKind::Value, op, message).with_repair(repair).at(caller))
        };
        if self.parts.is_empty() {
            return refused("there are no parts".into(), "parts![&model, &mut optimizer]");
        }
        for (at, (name, _)) in self.parts.iter().enumerate() {
            let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
            if name.is_empty() || !name.chars().all(is_word) {
                let message =
                    format!("a part cannot be called '{name}': letters, digits, _ and - are possible");
                return refused(message, "Parts::new().with(\"name\", part)");
            }
            if self.parts[..at].iter().any(|(other, _)| other == name) {
                let message = format!("two parts are called '{name}'");
                return refused(message, "Parts::new().with(\"first\", ..).with(\"second\", ..)");
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// The [`Parts`] of a run, named after the variables that they are in, or with a name that is given.
///
/// `parts![&model, &mut run.optimizer, average = &shadow]` becomes
///
/// ```text
/// Parts::new().with("model", &model).with("optimizer", &mut run.optimizer).with("average", &shadow)
/// ```
///
/// If no name is given, a part is named by the last word of the expression.
/// [`Checkpoints`](crate::Checkpoints) has an example.
#[macro_export]
macro_rules! parts {
    (@ $parts:expr;) => {
        $parts
    };
    (@ $parts:expr; $name:ident = $part:expr $(, $($rest:tt)*)?) => {
        $crate::parts!(@ $parts.with(stringify!($name), $part); $($($rest)*)?)
    };
    (@ $parts:expr; $part:expr $(, $($rest:tt)*)?) => {
        $crate::parts!(@ $parts.with($crate::last_word(stringify!($part)), $part); $($($rest)*)?)
    };
    ($($all:tt)*) => {
        $crate::parts!(@ $crate::Parts::new(); $($all)*)
    };
}

/// The last word of an expression, by which `parts!` calls a part.
#[doc(hidden)]
pub fn last_word(expression: &'static str) -> &'static str {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let end = expression.trim_end_matches(|letter| !is_word(letter));
    let start = end.rfind(|letter| !is_word(letter)).map_or(0, |at| at + 1);
    &end[start..]
}

#[cfg(test)]
mod tests {
    use super::last_word;

    #[test]
    fn a_part_is_called_by_the_last_word() {
        let words = ["& model", "&mut run.optimizer", "& mut *optimizer", "&mut self.epoch_1", "&r#loop", ""];
        let names = ["model", "optimizer", "optimizer", "epoch_1", "loop", ""];
        assert_eq!(words.map(last_word), names);
    }
}
