//! [`Groups`], the hyperparameters of an optimizer without their type.

use super::*;

/// A number of each group that schedules change.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Rate {
    Lr,
    Momentum,
}

/// The functions of a [`Method`], for the group with a number. A `Vec<M>` implements it.
pub(crate) trait Groups: Any + Send + Sync {
    fn name(&self) -> &'static str;
    fn count(&self) -> usize;
    fn rate(&self, group: usize, rate: Rate) -> Option<f64>;
    fn set_rate(&mut self, group: usize, rate: Rate, number: f64);
    #[track_caller]
    fn check(&self, group: usize) -> Result<()>;
    #[track_caller]
    fn check_parameter(&self, group: usize, shape: &Shape) -> Result<()>;
    fn check_shared(&self, shared: &BTreeMap<String, NamedTensor>, numel: usize) -> Result<()>;
    fn slots(&self, group: usize, sizes: &[usize]) -> &'static [&'static str];
    /// The sizes of a slot, and the value of its elements at first.
    fn slot(&self, group: usize, slot: &str, sizes: &[usize]) -> (Vec<usize>, f64);
    fn needs_loss(&self) -> bool;
    fn needs_whole(&self) -> bool;
    /// Updates one parameter.
    fn update(&self, group: usize, step: ParameterStep<'_>) -> Result<()>;
    fn step(&self, step: &mut OptimizerStep<'_>) -> Result<()>;
    /// The hyperparameters of a group as JSON. The error names the one that has no JSON form.
    fn to_json(&self, group: usize) -> std::result::Result<Json, String>;
    /// No groups of the same method.
    fn none(&self) -> Box<dyn Groups>;
    /// Adds a group with the hyperparameters in JSON.
    fn push_json(&mut self, json: &Json) -> std::result::Result<(), String>;
}

impl<M: Method> Groups for Vec<M> {
    fn name(&self) -> &'static str {
        M::NAME
    }
    fn count(&self) -> usize {
        self.len()
    }
    fn rate(&self, group: usize, rate: Rate) -> Option<f64> {
        if rate == Rate::Lr { Some(self[group].lr()) } else { self[group].momentum() }
    }
    fn set_rate(&mut self, group: usize, rate: Rate, number: f64) {
        if rate == Rate::Lr { self[group].set_lr(number) } else { self[group].set_momentum(number) }
    }
    fn check(&self, group: usize) -> Result<()> {
        if let Some(rows) = self[group].rows() {
            rows.check(M::NAME)?;
        }
        self[group].check()?;
        M::check_groups(self)
    }
    fn check_parameter(&self, group: usize, shape: &Shape) -> Result<()> {
        self[group].check_parameter(shape)
    }
    fn check_shared(&self, shared: &BTreeMap<String, NamedTensor>, numel: usize) -> Result<()> {
        M::check_shared(shared, numel)
    }
    fn slots(&self, group: usize, sizes: &[usize]) -> &'static [&'static str] {
        self[group].slots(sizes)
    }
    fn slot(&self, group: usize, slot: &str, sizes: &[usize]) -> (Vec<usize>, f64) {
        (self[group].slot_sizes(slot, sizes), self[group].slot_start(slot))
    }
    fn needs_loss(&self) -> bool {
        M::needs_loss()
    }
    fn needs_whole(&self) -> bool {
        M::needs_whole()
    }
    fn update(&self, group: usize, step: ParameterStep<'_>) -> Result<()> {
        self[group].update(step)
    }
    fn step(&self, step: &mut OptimizerStep<'_>) -> Result<()> {
        M::step(self, step)
    }
    fn to_json(&self, group: usize) -> std::result::Result<Json, String> {
        self[group].to_json()
    }
    fn none(&self) -> Box<dyn Groups> {
        Box::new(Vec::<M>::new())
    }
    fn push_json(&mut self, json: &Json) -> std::result::Result<(), String> {
        self.push(M::of_json(json)?);
        Ok(())
    }
}
