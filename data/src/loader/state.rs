//! [`LoaderState`], everything that the next batches depend on, as a value and as a file; and the position of
//! a loader from which it is made.

use namegrad_core::{Error, ErrorKind, Result};
use namegrad_io::TensorFile;
use namegrad_io::fields::{StateFields, compare};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Everything that the next batches of a [`Loader`](super::Loader) depend on besides the data. In a file, it
/// is JSON under the metadata key `loader`.
///
/// [`Loader::state_dict`](super::Loader::state_dict) has an example.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoaderState {
    /// The number of the current epoch.
    pub epoch: u64,
    /// The number of batches of this epoch that the loop has taken.
    pub batches: u64,
    /// The seed of the order and of random augmentation.
    pub seed: u64,
    /// The number of samples of the data set, if it is known.
    pub samples: Option<usize>,
    /// The number of samples in a batch, of all processes together.
    pub batch_size: usize,
    /// Whether a last batch that is not full is dropped.
    pub drop_last: bool,
    /// A checksum of the order of the samples in this epoch, which shows whether the sampler is the same.
    pub order: Option<u64>,
}

impl LoaderState {
    /// Writes the state to a safetensors file without tensors. If that fails, an existing file is unchanged.
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
    /// The errors of [`TensorFile::load`]; [`ErrorKind::Format`] if the file is not the state of a loader.
    #[track_caller]
    pub fn load(path: impl AsRef<Path>) -> Result<LoaderState> {
        TensorFile::load_as(path, LoaderState::from_file)
    }

    /// The content of the file that [`save`](Self::save) writes.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the state has no JSON form.
    #[track_caller]
    pub fn to_file(&self) -> Result<TensorFile> {
        self.clone().fields().to_file()
    }

    /// The state in a file's content.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if it is not the state of a loader.
    #[track_caller]
    pub fn from_file(file: &TensorFile) -> Result<LoaderState> {
        let mut state = LoaderState::default();
        state.fields().read(file)?;
        Ok(state)
    }

    fn fields(&mut self) -> StateFields<'_> {
        StateFields {
            key: "loader",
            what: "the state of a loader",
            fields: vec![
                ("epoch", &mut self.epoch),
                ("batches", &mut self.batches),
                ("seed", &mut self.seed),
                ("samples", &mut self.samples),
                ("batch_size", &mut self.batch_size),
                ("drop_last", &mut self.drop_last),
                ("order", &mut self.order),
            ],
        }
    }

    /// Checks that a state is of a loader with the settings of this one, and names what differs. What either
    /// does not know is not compared.
    pub(super) fn check(&self, state: &LoaderState) -> Result<()> {
        let mut differences = Vec::new();
        if self.samples != state.samples {
            let words =
                |samples: Option<usize>| samples.map_or("a stream".into(), |n| format!("{n} samples"));
            let (here, there) = (words(self.samples), words(state.samples));
            differences.push(format!("the data set has {here} here, {there} in the state"));
        }
        compare("batch_size", &self.batch_size.into(), &state.batch_size.into(), &mut differences);
        compare("drop_last", &self.drop_last.into(), &state.drop_last.into(), &mut differences);
        if differences.is_empty() && self.order.is_some() && self.order != state.order {
            differences.push(format!(
                "the order of the samples in epoch {} differs: the sampler or its settings are not the same",
                self.epoch
            ));
        }
        if differences.is_empty() {
            return Ok(());
        }
        let message = format!("the state is of another loader: {}", crate::joined(&differences, "; "));
        Err(Error::new(ErrorKind::Value, "load_state_dict", message))
    }

    /// The error of a state that is further in its epoch than the epoch is long.
    #[cold]
    pub(super) fn beyond(&self, batches: usize) -> Error {
        let message = format!("the state is damaged: batch {} of an epoch of {batches}", self.batches);
        Error::new(ErrorKind::Value, "load_state_dict", message)
    }
}

/// The position of a loader, to put it back there.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct LoaderPosition(pub(super) Position);

/// The position of the loop in the epochs.
#[derive(Clone, Debug)]
pub(super) struct Position {
    seed: u64,
    epoch: u64,
    batches: u64,
    /// The epoch of the next run.
    next_epoch: u64,
    /// The first batch of the next run, if that goes on from a state.
    resume_at: u64,
    /// The number of the last run. Runs before it no longer move the position.
    run: u64,
}

impl Position {
    pub(super) fn new(seed: u64) -> Position {
        Position { seed, epoch: 0, batches: 0, next_epoch: 0, resume_at: 0, run: 0 }
    }

    /// Starts a run over the next epoch: its number, seed, epoch and first batch.
    pub(super) fn next_run(&mut self) -> (u64, u64, u64, u64) {
        let epoch = self.next_epoch;
        let (run, seed, first) = self.run_of(epoch);
        (run, seed, epoch, first)
    }

    /// Starts a run over an epoch: its number, seed and first batch.
    pub(super) fn run_of(&mut self, epoch: u64) -> (u64, u64, u64) {
        let resumed = std::mem::take(&mut self.resume_at);
        let first = if epoch == self.next_epoch { resumed } else { 0 };
        (self.epoch, self.batches, self.next_epoch) = (epoch, first, epoch.saturating_add(1));
        self.run += 1;
        (self.run, self.seed, first)
    }

    /// The seed, epoch and first batch of the next run.
    pub(super) fn upcoming(&self) -> (u64, u64, u64) {
        (self.seed, self.next_epoch, self.resume_at)
    }

    pub(super) fn state(&self) -> (u64, u64, u64) {
        (self.seed, self.epoch, self.batches)
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn batches(&self) -> u64 {
        self.batches
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// The loop has taken a batch from a run.
    pub(super) fn take(&mut self, run: u64) {
        if run == self.run {
            self.batches += 1;
        }
    }

    /// The loop has come to the end of a run.
    pub(super) fn end(&mut self, run: u64) {
        if run == self.run {
            (self.epoch, self.batches) = (self.next_epoch, 0);
        }
    }

    pub(super) fn load(&mut self, state: &LoaderState) {
        let LoaderState { seed, epoch, batches, .. } = *state;
        *self = Position { seed, epoch, batches, next_epoch: epoch, resume_at: batches, run: self.run + 1 };
    }
}
