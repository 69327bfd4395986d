//! Checkpoints of a run: [`Checkpoints`], a folder of them. `part.rs` has what can be saved, `resume.rs` how
//! a run goes on, `content.rs` what is in a file, and `folder.rs` what is in a folder.

mod content;
mod folder;
mod part;
mod resume;
mod value;

pub use folder::Checkpoint;
pub use part::{IntoPart, Parts, Resumable, Snapshot, kind, last_word};
pub use resume::Resumed;

use content::compose;
use namegrad_core::args::length;
use namegrad_core::{Error, ErrorKind, Result, Whole};
use namegrad_io::TensorFile;
use namegrad_io::sorted;
use namegrad_io::text::{append, closest_name};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Says whether a low or a high value of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    /// The lowest, as of a loss.
    Lowest,
    /// The highest, as of an accuracy.
    Highest,
}

/// Checkpoints of a training run in a folder: saves everything that the run consists of, and goes on from
/// there as if the run had not been interrupted.
///
/// A checkpoint has the parts that are given with [`parts!`](crate::parts), and the state of the random
/// generator. A resumed run then computes the same bits as one that was not interrupted, if the parts are all
/// that changes:
///
/// | part | given as |
/// | --- | --- |
/// | a model, with parameters and buffers | `&model` |
/// | an optimizer, with its hyperparameters | `&mut optimizer`, `&mut *boxed` |
/// | a [`Scheduler`] or [`ReduceOnPlateau`] | `&mut scheduler` |
/// | a [`Loader`](namegrad_data::Loader), with its place in the epoch | `&loader` |
/// | an [`AveragedModel`] or [`GradScaler`] | `&mut average` |
/// | a [`Generator`](namegrad_core::random::Generator) | `&mut generator` |
/// | the number of the epoch, a history, any value with serde's traits | `&mut epoch` |
/// | your own type that implements [`Resumable`] | `&mut part` |
///
/// [`Scheduler`]: namegrad_optim::schedule::Scheduler
/// [`ReduceOnPlateau`]: namegrad_optim::schedule::ReduceOnPlateau
/// [`AveragedModel`]: namegrad_optim::AveragedModel
/// [`GradScaler`]: namegrad_optim::GradScaler
///
/// Gradients are not saved: save between steps, not between the backward passes of one step. Neither are the
/// modes of layers (`train`, `eval`) and which parameters are frozen.
///
/// # Files
/// Each checkpoint is one safetensors file, `step-00001000.safetensors`, which is written completely or not
/// at all, also if the process is killed or the disk is full. Its tensors are called `<part>.<tensor>`, so
/// other programs can read it. A checksum in its metadata shows whether the content has changed since. After
/// a checkpoint is on the disk, those that are neither among the latest nor among the best are removed; by
/// default, the latest three stay. Other files in the folder do not matter and are not touched.
///
/// Only one run can save in a folder at a time, and a run that does not [`resume`](Self::resume) cannot save
/// in a folder that already has checkpoints.
///
/// # Examples
/// ```
/// use namegrad::optim::schedule::{Cosine, Scheduler};
/// use namegrad::prelude::*;
/// use namegrad::train::{Best, Checkpoints, parts};
///
/// # let folder = std::env::temp_dir().join(format!("namegrad-doc-checkpoints-{}", std::process::id()));
/// # for stop in [2, 5] {
/// let model = Linear::new(("in", 3), ("out", 1))?;
/// let mut optimizer = AdamW::new(model.parameters())?;
/// let mut scheduler = Scheduler::new(Cosine::new(5), &mut optimizer)?;
/// let (mut epoch, mut losses) = (0, Vec::<f64>::new());
///
/// let checkpoints = Checkpoints::builder(&folder).keep_best(1, "loss", Best::Lowest).build()?;
/// checkpoints.resume(parts![&model, &mut optimizer, &mut scheduler, &mut epoch, &mut losses])?;
/// while epoch < 5 {
/// #   if epoch == stop { break }
///     let loss = model.forward(&Tensor::randn([("N", 8), ("in", 3)])?)?.square()?.mean(..)?;
///     optimizer.zero_grad();
///     loss.backward()?;
///     optimizer.step()?;
///     scheduler.step(&mut optimizer)?;
///     let loss = loss.item()?;
///     losses.push(loss);
///     epoch += 1;
///     checkpoints.save_with(
///         epoch,
///         parts![&model, &mut optimizer, &mut scheduler, &mut epoch, &mut losses],
///         [("loss", loss)],
///     )?;
/// }
/// # if epoch < 5 { continue }
/// assert_eq!((epoch, losses.len()), (5, 5));
/// let best = checkpoints.load_best(parts![&model])?.unwrap();
/// assert_eq!(best.metrics["loss"], losses.iter().copied().fold(f64::INFINITY, f64::min));
/// # }
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
///
/// To list the parts once, keep them in a struct with a method:
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::{Checkpoints, Parts, parts};
///
/// struct Run {
///     model: Linear,
///     optimizer: Adam,
///     epoch: u64,
/// }
///
/// impl Run {
///     fn parts(&mut self) -> Parts<'_> {
///         parts![&self.model, &mut self.optimizer, &mut self.epoch]
///     }
/// }
///
/// # let folder = std::env::temp_dir().join(format!("namegrad-doc-run-{}", std::process::id()));
/// let model = Linear::new(("in", 3), ("out", 1))?;
/// let optimizer = Adam::new(model.parameters())?;
/// let mut run = Run { model, optimizer, epoch: 0 };
/// let checkpoints = Checkpoints::new(&folder)?;
/// checkpoints.resume(run.parts())?;
/// run.epoch += 1;
/// checkpoints.save(run.epoch, run.parts())?;
/// # assert_eq!(checkpoints.resume(run.parts())?, Some(1));
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    keep: Retention,
    state: Mutex<FolderState>,
}

/// The checkpoints that are kept when another one is saved.
#[derive(Clone, Debug)]
struct Retention {
    /// The number of the latest ones; all of them if `None`.
    last: Option<usize>,
    best: Option<KeepBest>,
}

#[derive(Clone, Debug)]
struct KeepBest {
    count: usize,
    metric: String,
    best: Best,
}

#[derive(Debug, Default)]
struct FolderState {
    /// The latest step that this run has saved or resumed from.
    known: Option<u64>,
    /// Held from the first save on.
    lock: Option<File>,
    is_locked: bool,
}

/// A builder for [`Checkpoints`].
#[derive(Clone, Debug)]
#[must_use = "`build` makes the checkpoints"]
pub struct CheckpointsBuilder {
    folder: PathBuf,
    keep: Retention,
}

impl CheckpointsBuilder {
    /// Sets the number of the latest checkpoints that are kept. Default: 3.
    pub fn keep_last(mut self, count: usize) -> CheckpointsBuilder {
        self.keep.last = Some(count);
        self
    }

    /// All checkpoints stay.
    pub fn keep_all(mut self) -> CheckpointsBuilder {
        self.keep.last = None;
        self
    }

    /// Sets the number of the best checkpoints by a metric that are kept besides the latest. Of equal ones,
    /// the earlier is better. A metric that is NaN, or a checkpoint without the metric, is never among the
    /// best. Default: none.
    pub fn keep_best(mut self, count: usize, metric: impl Into<String>, best: Best) -> CheckpointsBuilder {
        self.keep.best = Some(KeepBest { count, metric: metric.into(), best });
        self
    }

    /// Makes the folder if there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if no checkpoints would be kept, [`ErrorKind::Io`] if the folder cannot be made.
    #[track_caller]
    pub fn build(self) -> Result<Checkpoints> {
        const OP: &str = "Checkpoints";
        let CheckpointsBuilder { folder, keep } = self;
        let counts = [("keep_last", keep.last), ("keep_best", keep.best.as_ref().map(|best| best.count))];
        if let Some((setter, _)) = counts.into_iter().find(|(_, count)| *count == Some(0)) {
            let message = format!("{setter} must be at least 1, because the others are removed");
            let repair = match setter {
                "keep_best" => ".keep_best(1, \"loss\", Best::Lowest)",
                _ => ".keep_last(1)",
            };
            return Err(Error::new(ErrorKind::Value, OP, message).with_repair(repair));
        }
        match fs::create_dir_all(&folder) {
            Ok(()) => Ok(Checkpoints { folder, keep, state: Mutex::default() }),
            Err(error) => Err(folder::io_error(OP, &folder, &error)),
        }
    }
}

/// The error of metrics without the one by which the best checkpoints are kept.
#[cold]
fn no_metric(metric: &str, metrics: &BTreeMap<String, f64>) -> Error {
    let mut message = format!("the best checkpoints are kept by '{metric}', which is not among the metrics");
    if let Some(similar) = closest_name(metric, &mut metrics.keys().map(String::as_str)) {
        append(&mut message, format_args!("; there is '{similar}'"));
    }
    Error::new(ErrorKind::Value, "Checkpoints::save", message)
        .with_repair(format!("checkpoints.save_with(step, parts, [({metric:?}, value)])?"))
}

/// A checkpoint that is not yet written.
#[doc(hidden)]
#[derive(Debug)]
pub struct Composed {
    step: u64,
    file: TensorFile,
    metrics: BTreeMap<String, f64>,
}

const OP: &str = "Checkpoints::save";

impl Checkpoints {
    /// Checkpoints in a folder, of which the latest three stay. The folder is made if there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the folder cannot be made.
    #[track_caller]
    pub fn new(folder: impl AsRef<Path>) -> Result<Checkpoints> {
        Checkpoints::builder(folder).build()
    }

    /// A builder for checkpoints in a folder.
    pub fn builder(folder: impl AsRef<Path>) -> CheckpointsBuilder {
        let keep = Retention { last: Some(3), best: None };
        CheckpointsBuilder { folder: folder.as_ref().to_path_buf(), keep }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Saves the parts of the run after a step. A checkpoint of the same step is replaced.
    ///
    /// The step is any number that grows: of steps, or of epochs.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be written, or if another run saves in this folder.
    /// [`ErrorKind::Value`] if a part has no state, two parts have the same name, or the folder has a later
    /// checkpoint than this run has saved or resumed from. All checkpoints are as they were then. If an old
    /// checkpoint cannot be removed, that is an [`ErrorKind::Io`] too, and the new one is saved.
    #[track_caller]
    pub fn save(&self, step: impl Whole, parts: Parts<'_>) -> Result<Checkpoint> {
        self.save_with(step, parts, [])
    }

    /// Like [`save`](Self::save), with metrics: `checkpoints.save_with(epoch, parts, [("val_loss", loss)])?`.
    ///
    /// # Errors
    /// The errors of [`save`](Self::save); [`ErrorKind::Value`] if there are metrics, but not the one by
    /// which the best checkpoints are kept.
    #[track_caller]
    pub fn save_with<'m>(
        &self,
        step: impl Whole,
        parts: Parts<'_>,
        metrics: impl IntoIterator<Item = (&'m str, f64)>,
    ) -> Result<Checkpoint> {
        let caller = Location::caller();
        let mut named = Vec::new();
        for (name, value) in metrics {
            named.push((name.to_string(), value));
        }
        let step = length(OP, "step", step.number())? as u64;
        let composed = self.composed(step, &parts, folder::by_name(named), caller);
        composed.and_then(|composed| self.write(composed)).map_err(|error| error.at(caller))
    }

    /// The states of the parts, which may be on several processes.
    fn composed(
        &self,
        step: u64,
        parts: &Parts<'_>,
        metrics: BTreeMap<String, f64>,
        caller: &'static Location<'static>,
    ) -> Result<Composed> {
        parts.check(OP, caller)?;
        self.check_metrics(&metrics)?;
        Ok(Composed { step, file: compose(step, parts, &metrics)?, metrics })
    }

    /// The first half of [`save`](Self::save), which all processes with parts of a model call: what is to be
    /// saved.
    ///
    /// # Errors
    /// The errors of [`save`](Self::save) about the parts.
    #[doc(hidden)]
    #[track_caller]
    pub fn compose(&self, step: impl Whole, parts: Parts<'_>) -> Result<Composed> {
        let step = length(OP, "step", step.number())? as u64;
        self.composed(step, &parts, BTreeMap::new(), Location::caller())
    }

    /// The second half of [`save`](Self::save).
    ///
    /// # Errors
    /// The other errors of [`save`](Self::save).
    #[doc(hidden)]
    pub fn write(&self, composed: Composed) -> Result<Checkpoint> {
        let Composed { step, file, metrics } = composed;
        let mut state = self.state();
        if !state.is_locked {
            state.lock = folder::lock(OP, &self.folder)?;
            state.is_locked = true;
        }
        self.check_step(step, state.known)?;
        let path = folder::path_of(&self.folder, step);
        file.save(&path).map_err(|error| error.of(OP))?;
        state.known = Some(step);
        self.remove_old()?;
        Ok(Checkpoint { step, path, metrics, damage: None })
    }

    fn check_metrics(&self, metrics: &BTreeMap<String, f64>) -> Result<()> {
        let Some(KeepBest { metric, .. }) = &self.keep.best else { return Ok(()) };
        if metrics.is_empty() || metrics.get(metric).is_some() {
            return Ok(());
        }
        Err(no_metric(metric, metrics))
    }

    /// Checks that the folder has no later step than this run knows of.
    fn check_step(&self, step: u64, known: Option<u64>) -> Result<()> {
        const OP: &str = "Checkpoints::save";
        let Some(newest) = folder::steps(OP, &self.folder)?.pop() else { return Ok(()) };
        let folder = self.folder.display();
        let message = match known {
            Some(known) if known >= newest && step >= newest => return Ok(()),
            Some(known) if known >= newest => {
                format!("step {step} comes after step {newest}, which was saved before; steps must not fall")
            }
            Some(known) => {
                let message = format!(
                    "{folder} has checkpoints up to step {newest}, and this run goes on from step {known}"
                );
                let repair = format!("checkpoints.remove_after({known})? before it, if they are not needed");
                return Err(Error::new(ErrorKind::Value, OP, message).with_repair(repair));
            }
            None => {
                format!("{folder} has checkpoints up to step {newest}, from which this run did not resume")
            }
        };
        Err(Error::new(ErrorKind::Value, OP, message).with_repair(
            "checkpoints.resume(parts)? before the first step, checkpoints.resume_some(parts)? if the parts differ, \
                 or another folder",
        ))
    }

    /// Removes the checkpoints that are neither among the latest nor among the best. Those that cannot be
    /// read stay, and do not count.
    fn remove_old(&self) -> Result<()> {
        const OP: &str = "Checkpoints::save";
        let Some(last) = self.keep.last else { return Ok(()) };
        if folder::steps(OP, &self.folder)?.len() <= last {
            return Ok(());
        }
        let mut all = folder::list(OP, &self.folder)?;
        all.retain(|checkpoint| checkpoint.damage.is_none());
        let mut best = Vec::new();
        if let Some(keep) = &self.keep.best {
            best = keep.ranked(&all);
            best.truncate(keep.count);
        }
        all.truncate(all.len().saturating_sub(last));
        for (at, old) in all.iter().enumerate() {
            if !best.contains(&at) {
                folder::remove(OP, &self.folder, old.step)?;
            }
        }
        Ok(())
    }

    /// Loads the given parts from the best checkpoint, and returns it; `None` if no checkpoint has the
    /// metric.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if [`keep_best`](CheckpointsBuilder::keep_best) has not said which one is the
    /// best; the errors of [`load`](Self::load).
    #[track_caller]
    pub fn load_best(&self, parts: Parts<'_>) -> Result<Option<Checkpoint>> {
        let Some(best) = self.best()? else { return Ok(None) };
        self.load(best.step, parts)?;
        Ok(Some(best))
    }

    /// The best checkpoint; `None` if no checkpoint has the metric.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if [`keep_best`](CheckpointsBuilder::keep_best) has not said which one is the
    /// best; [`ErrorKind::Io`] if the folder cannot be read.
    #[track_caller]
    pub fn best(&self) -> Result<Option<Checkpoint>> {
        let Some(keep) = &self.keep.best else {
            let message = "nothing says which checkpoint is the best";
            return Err(Error::new(ErrorKind::Value, "Checkpoints::best", message).with_repair(
                "Checkpoints::builder(folder).keep_best(1, \"val_loss\", Best::Lowest).build()?",
            ));
        };
        let mut all = self.list()?;
        Ok(keep.ranked(&all).first().map(|best| all.swap_remove(*best)))
    }

    /// All checkpoints in the folder, by step. Damaged ones are among them.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the folder cannot be read.
    #[track_caller]
    pub fn list(&self) -> Result<Vec<Checkpoint>> {
        let caller = Location::caller();
        folder::list("Checkpoints::list", &self.folder).map_err(|error| error.at(caller))
    }

    /// Removes the checkpoints of all steps after this one.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if one cannot be removed.
    #[track_caller]
    pub fn remove_after(&self, step: impl Whole) -> Result<()> {
        const OP: &str = "Checkpoints::remove_after";
        let step = length(OP, "step", step.number())? as u64;
        let caller = Location::caller();
        let steps = folder::steps(OP, &self.folder).map_err(|error| error.at(caller))?;
        for later in steps.iter().rev().filter(|other| **other > step) {
            folder::remove(OP, &self.folder, *later).map_err(|error| error.at(caller))?;
        }
        let mut state = self.state();
        state.known = state.known.map(|known| known.min(step));
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, FolderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeepBest {
    /// The checkpoints that have the metric, the best first.
    fn ranked(&self, all: &[Checkpoint]) -> Vec<usize> {
        let mut ranked = Vec::new();
        for (at, checkpoint) in all.iter().enumerate() {
            if let Some(value) = checkpoint.metrics.get(&self.metric).filter(|value| !value.is_nan()) {
                ranked.push((*value, at));
            }
        }
        // A stable sort: equal ones stay in the order of their steps.
        sorted::sort(&mut ranked, &|a: &(f64, usize), b| match self.best {
            Best::Lowest => a.0.total_cmp(&b.0).is_lt(),
            Best::Highest => b.0.total_cmp(&a.0).is_lt(),
        });
        sorted::list_of(ranked.len(), &mut |place| ranked[place].1)
    }
}
