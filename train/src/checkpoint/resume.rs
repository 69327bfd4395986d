//! Continuing a run: [`Checkpoints::resume`] and its variants, and [`Checkpoints::load`].

use super::content::{Take, apply, verify};
use super::{Checkpoints, Parts, folder};
use namegrad_core::args::length;
use namegrad_core::{Error, ErrorKind, Result, Whole};
use namegrad_io::TensorFile;
use namegrad_io::sorted::list_of;
use std::panic::Location;

/// The result of [`Checkpoints::resume_some`]: the step, and the parts that were not restored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resumed {
    /// The step of the checkpoint.
    pub step: u64,
    /// The parts that the checkpoint does not have. They are as they were.
    pub missing: Vec<String>,
    /// The parts of the checkpoint that were not given. They are not in the checkpoints that follow, unless
    /// parts of these names are saved again.
    pub unused: Vec<String>,
}

impl Checkpoints {
    /// Continues from the latest checkpoint, and returns its step; `None` if there is no checkpoint, so that
    /// the run begins. The parts must be those that were saved. Give the same parts to [`save`](Self::save).
    ///
    /// What a run writes elsewhere, such as a log, can be ahead of the checkpoint: remove what belongs to
    /// later steps than the one that is returned.
    ///
    /// Hyperparameters come from the checkpoint: a learning rate that was changed in the program has no
    /// effect on a run that goes on. Change it after this call, and make a new scheduler if there is one,
    /// because a scheduler starts from the rate that it finds:
    /// ```
    /// use namegrad::optim::schedule::{Cosine, Scheduler};
    /// use namegrad::prelude::*;
    /// use namegrad::train::{Checkpoints, parts};
    /// # let folder = std::env::temp_dir().join(format!("namegrad-doc-rate-{}", std::process::id()));
    /// # let model = Linear::new(("in", 3), ("out", 1))?;
    /// # let mut optimizer = Adam::builder(model.parameters()).lr(0.1).build()?;
    /// # let mut scheduler = Scheduler::new(Cosine::new(100), &mut optimizer)?;
    /// # let checkpoints = Checkpoints::new(&folder)?;
    /// # checkpoints.save(10, parts![&model, &mut optimizer, &mut scheduler])?;
    /// # let mut optimizer = Adam::builder(model.parameters()).lr(0.02).build()?;
    /// # let mut scheduler = Scheduler::new(Cosine::new(100), &mut optimizer)?;
    /// checkpoints.resume(parts![&model, &mut optimizer, &mut scheduler])?;
    /// # assert_eq!(optimizer.lr(), 0.1);
    /// optimizer.set_lr(0.02)?;
    /// scheduler = Scheduler::new(Cosine::new(50), &mut optimizer)?;
    /// assert_eq!(optimizer.lr(), 0.02);
    /// # scheduler.step(&mut optimizer)?;
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Training longer, or with another schedule
    /// A scheduler of another length or another kind does not take the state of the old one. Resume once with
    /// [`resume_some`](Self::resume_some) and without the scheduler, and make a new one after that. From the
    /// next [`save`](Self::save) on, the checkpoints have the new scheduler, and `resume` goes on from them:
    /// ```
    /// use namegrad::optim::schedule::{Cosine, Scheduler};
    /// use namegrad::prelude::*;
    /// use namegrad::train::{Checkpoints, parts};
    /// # let folder = std::env::temp_dir().join(format!("namegrad-doc-longer-{}", std::process::id()));
    /// # let model = Linear::new(("in", 3), ("out", 1))?;
    /// # let mut optimizer = Adam::builder(model.parameters()).lr(0.1).build()?;
    /// # let mut scheduler = Scheduler::new(Cosine::new(10), &mut optimizer)?;
    /// # let mut epoch = 10;
    /// # let checkpoints = Checkpoints::new(&folder)?;
    /// # checkpoints.save(10, parts![&model, &mut optimizer, &mut scheduler, &mut epoch])?;
    /// # drop(checkpoints);
    /// # let mut optimizer = Adam::builder(model.parameters()).lr(0.1).build()?;
    /// # let mut epoch = 0;
    /// let checkpoints = Checkpoints::new(&folder)?; // of a run that ended after 10 epochs
    /// let resumed = checkpoints.resume_some(parts![&model, &mut optimizer, &mut epoch])?.unwrap();
    /// assert_eq!((resumed.step, resumed.unused), (10, vec!["scheduler".to_string()]));
    ///
    /// optimizer.set_lr(0.02)?; // the old schedule may have ended at 0
    /// let mut scheduler = Scheduler::new(Cosine::new(20), &mut optimizer)?; // for 20 epochs more
    /// // ... the training of an epoch
    /// epoch += 1;
    /// checkpoints.save(epoch, parts![&model, &mut optimizer, &mut scheduler, &mut epoch])?;
    ///
    /// // In later runs:
    /// checkpoints.resume(parts![&model, &mut optimizer, &mut scheduler, &mut epoch])?;
    /// # assert_eq!(epoch, 11);
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// If one schedule is to span both runs, such as a cosine of 20 epochs after a run of 10, make its
    /// scheduler from the first rate, before `resume_some`, and call [`step_to`] after it, which sets the rate
    /// of that step: `scheduler.step_to(10.0, &mut optimizer)?`.
    ///
    /// [`step_to`]: namegrad_optim::schedule::Scheduler::step_to
    ///
    /// The same works for a part that was added to the program, such as an average of the model, and for one
    /// that is no longer in it. A variable that has a new name needs only the old one for its part:
    /// `parts![model = &network]`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the checkpoint has other parts, or a part does not fit: the message says
    /// which, and what differs. [`ErrorKind::Format`] or [`ErrorKind::Io`] if the file is damaged, its
    /// content has changed since it was written, or it cannot be read; the repair goes on from the one
    /// before. The parts and the random generator are as they were then.
    #[track_caller]
    pub fn resume(&self, parts: Parts<'_>) -> Result<Option<u64>> {
        let resumed = self.latest("Checkpoints::resume", parts, Take::All, Location::caller())?;
        Ok(resumed.map(|resumed| resumed.step))
    }

    /// Continues from the latest checkpoint with those parts that both the checkpoint and the program have,
    /// and says which are left out; `None` if there is no checkpoint, so that the run begins. The random
    /// generator continues too, and [`save`](Self::save) goes on in the same folder.
    ///
    /// Use it once, when the parts of a run have changed; [`resume`](Self::resume) has an example. With
    /// `resume`, a part whose name is misspelled is an error; here it is in [`Resumed::missing`].
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the checkpoint has none of the parts, or a part does not fit: leave that out
    /// too. The errors of [`resume`](Self::resume) for a file that is damaged. The parts and the random
    /// generator are as they were then.
    #[track_caller]
    pub fn resume_some(&self, parts: Parts<'_>) -> Result<Option<Resumed>> {
        self.latest("Checkpoints::resume_some", parts, Take::Common, Location::caller())
    }

    /// Continues from the latest checkpoint.
    fn latest(
        &self,
        op: &'static str,
        parts: Parts<'_>,
        take: Take,
        caller: &'static Location<'static>,
    ) -> Result<Option<Resumed>> {
        let steps = folder::steps(op, &self.folder).map_err(|error| error.at(caller))?;
        let Some((newest, before)) = steps.split_last() else { return Ok(None) };
        let unreadable = |error: Error| match before.last() {
            Some(before) => error.with_repair(format!(
                "checkpoints.resume_from({before}, parts)? for the checkpoint before, \
                 and checkpoints.remove_after({before})? to remove this one"
            )),
            None => error.with_repair(""),
        };
        let resumed = self.continue_from(op, *newest, parts, take, &unreadable);
        resumed.map(Some).map_err(|error| error.at(caller))
    }

    /// Continues from the checkpoint of a step. To save earlier steps than those in the folder, call
    /// [`remove_after`](Self::remove_after). To go on with some of the parts, call that first, and then
    /// [`resume_some`](Self::resume_some), which takes the latest checkpoint.
    ///
    /// # Errors
    /// The errors of [`resume`](Self::resume); [`ErrorKind::Value`] if there is no checkpoint of this step.
    #[track_caller]
    pub fn resume_from(&self, step: impl Whole, parts: Parts<'_>) -> Result<u64> {
        const OP: &str = "Checkpoints::resume_from";
        let step = length(OP, "step", step.number())? as u64;
        self.check_exists(OP, step)?;
        let caller = Location::caller();
        let resumed = self.continue_from(OP, step, parts, Take::All, &|error| error);
        resumed.map(|resumed| resumed.step).map_err(|error| error.at(caller))
    }

    /// Restores parts and the random generator from the checkpoint of a step, after which this run can save.
    fn continue_from(
        &self,
        op: &'static str,
        step: u64,
        parts: Parts<'_>,
        take: Take,
        unreadable: &dyn Fn(Error) -> Error,
    ) -> Result<Resumed> {
        let resumed = self.restore(op, step, parts, take, unreadable)?;
        self.state().known = Some(step);
        Ok(resumed)
    }

    /// Loads the given parts from the checkpoint of a step. Other parts of the checkpoint and the random
    /// generator do not matter: `checkpoints.load(1000, parts![&model])?` is for using a model.
    ///
    /// # Errors
    /// The errors of [`resume_from`](Self::resume_from), except that the checkpoint can have more parts.
    #[track_caller]
    pub fn load(&self, step: impl Whole, parts: Parts<'_>) -> Result<()> {
        const OP: &str = "Checkpoints::load";
        let caller = Location::caller();
        let step = length(OP, "step", step.number())? as u64;
        self.check_exists(OP, step)?;
        let restored = self.restore(OP, step, parts, Take::Given, &|error| error);
        restored.map(drop).map_err(|error| error.at(caller))
    }

    #[track_caller]
    fn check_exists(&self, op: &'static str, step: u64) -> Result<()> {
        let caller = Location::caller();
        let steps = folder::steps(op, &self.folder).map_err(|error| error.at(caller))?;
        if steps.contains(&step) {
            return Ok(());
        }
        let have = list_of(steps.len(), &mut |at| steps[at].to_string());
        let have = if have.is_empty() { "none".into() } else { crate::joined(&have, ", ") };
        let message = format!("{} has no checkpoint of step {step}; it has {have}", self.folder.display());
        Err(Error::new(ErrorKind::Value, op, message)
            .with_repair("checkpoints.list()?, which says what there is"))
    }

    fn restore(
        &self,
        op: &'static str,
        step: u64,
        mut parts: Parts<'_>,
        take: Take,
        unreadable: &dyn Fn(Error) -> Error,
    ) -> Result<Resumed> {
        parts.check(op, Location::caller())?;
        let path = folder::path_of(&self.folder, step);
        let file = TensorFile::load(&path).map_err(|error| unreadable(error.of(op)))?;
        let header = folder::header(op, &path, step, &file.metadata).map_err(unreadable)?;
        let named = |error: Error| error.of(op).context(format_args!("{}: ", path.display()));
        verify(&file, &header).map_err(|error| unreadable(named(error)))?;
        apply(&file.into_entries(), &header, &mut parts, take).map_err(named)
    }
}
