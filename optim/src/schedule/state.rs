//! [`SchedulerState`], everything that the next rates depend on, as a value and as a file.

use super::*;

/// Everything that the next rates of a [`Scheduler`](super::Scheduler) or a
/// [`ReduceOnPlateau`](super::ReduceOnPlateau) depend on. In a file, it is JSON under the metadata key
/// `scheduler`.
///
/// # Examples
/// ```
/// use namegrad::optim::schedule::{Cosine, Scheduler, SchedulerState};
/// use namegrad::prelude::*;
/// let mut optimizer = Sgd::builder([Parameter::new(Tensor::new([1.0])?)?]).lr(0.1).build()?;
/// let mut scheduler = Scheduler::new(Cosine::new(100), &mut optimizer)?;
/// for _ in 0..50 {
///     scheduler.step(&mut optimizer)?;
/// }
/// # let file = format!("namegrad-doc-scheduler-{}.safetensors", std::process::id());
/// # let path = std::env::temp_dir().join(file);
/// scheduler.state_dict().save(&path)?;
///
/// let mut resumed = Sgd::new([Parameter::new(Tensor::new([1.0])?)?])?;
/// let mut scheduler = Scheduler::new(Cosine::new(100), &mut resumed)?;
/// scheduler.load_state_dict(&SchedulerState::load(&path)?, &mut resumed)?;
/// assert_eq!((scheduler.steps(), resumed.lr()), (50.0, optimizer.lr()));
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SchedulerState {
    /// The name of the schedule: `Cosine`.
    pub schedule: String,
    /// Its settings by name.
    pub settings: Json,
    /// The number of steps so far.
    pub step: f64,
    /// The learning rate of each group that the schedule starts from.
    pub base_lrs: Vec<f64>,
    /// The current learning rate of each group.
    pub lrs: Vec<f64>,
    /// The current momentum of each group, if the schedule has changed it.
    pub momentums: Option<Vec<f64>>,
    /// The memory of a schedule that is not a function of the step.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub memory: Json,
}

impl SchedulerState {
    /// The state before the first step.
    pub(super) fn new(schedule: &str, settings: Json, lrs: Vec<f64>) -> SchedulerState {
        let (schedule, base_lrs, memory) = (schedule.into(), lrs.clone(), Json::Null);
        SchedulerState { schedule, settings, step: 0.0, base_lrs, lrs, momentums: None, memory }
    }

    pub(crate) fn fields(&mut self) -> StateFields<'_> {
        StateFields {
            key: "scheduler",
            what: "the state of a scheduler",
            fields: vec![
                ("schedule", &mut self.schedule),
                ("settings", &mut self.settings),
                ("step", &mut self.step),
                ("base_lrs", &mut self.base_lrs),
                ("lrs", &mut self.lrs),
                ("momentums", &mut self.momentums),
                ("memory", &mut self.memory),
            ],
        }
    }

    /// Checks that the state fits a schedule and an optimizer with this many groups, and names what differs.
    pub(super) fn check(&self, name: &'static str, settings: &Json, groups: usize) -> Result<()> {
        let mut differences = Vec::new();
        if self.schedule != name {
            differences.push(format!("the schedule is {name} here, {} in the state", self.schedule));
        } else {
            compare("", settings, &self.settings, &mut differences);
        }
        let theirs = self.base_lrs.len();
        if theirs != groups {
            differences.push(format!("the optimizer has {groups} groups here, {theirs} in the state"));
        }
        ensure(differences.is_empty(), name, || {
            let step = self.step;
            let repair = format!(
                "scheduler.step_to({step:?}, &mut optimizer)?, if another schedule is to go on at the same step"
            );
            (
                format!("the state is of another schedule: {}", namegrad_core::joined(&differences, "; ")),
                repair,
            )
        })?;
        let momentums = self.momentums.as_deref().unwrap_or(&self.lrs);
        let counts = self.lrs.len() == groups && momentums.len() == groups;
        let mut numbers = [&self.base_lrs, &self.lrs[..], momentums].into_iter().flatten();
        let is_step = self.step >= 0.0 && self.step.is_finite();
        let is_good = counts && is_step && numbers.all(|number| number.is_finite());
        Error::ensure(is_good, ErrorKind::Value, name, || {
            format!("the state is damaged: it has one finite rate for each group, not {self:?}")
        })
    }
}
