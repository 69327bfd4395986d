//! [`Groups`], the hyperparameters of an optimizer without their type.

use super::step::{AnyStep, OptimizerStep};
use crate::method::Method;
use namegrad_core::{Error, ErrorKind, NamedTensor, Result, Shape};
use namegrad_io::TensorFile;
use serde_json::Value as Json;
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::Location;

/// The functions of a [`Method`], for the group with a number. A `Vec<M>` implements it.
pub(crate) trait Groups: Any + Send + Sync {
    fn name(&self) -> &'static str;
    fn count(&self) -> usize;
    fn remove_last(&mut self);
    fn lr(&self, group: usize) -> f64;
    fn set_lr(&mut self, group: usize, lr: f64);
    fn momentum(&self, group: usize) -> Option<f64>;
    fn set_momentum(&mut self, group: usize, momentum: f64);
    #[track_caller]
    fn check(&self, group: usize) -> Result<()>;
    #[track_caller]
    fn check_parameter(&self, group: usize, shape: &Shape) -> Result<()>;
    #[track_caller]
    fn check_together(&self) -> Result<()>;
    fn check_shared(&self, shared: &BTreeMap<String, NamedTensor>, numel: usize) -> Result<()>;
    fn slots(&self, group: usize, sizes: &[usize]) -> &'static [&'static str];
    fn slot_sizes(&self, group: usize, slot: &str, sizes: &[usize]) -> Vec<usize>;
    fn slot_start(&self, group: usize, slot: &str) -> f64;
    fn needs_loss(&self) -> bool;
    /// Makes a step, and says whether its closure has failed.
    fn step<'a>(&'a self, step: AnyStep<'a>) -> (Result<()>, bool);
    /// The hyperparameters of a group as JSON. The error names the one that has no JSON form.
    #[track_caller]
    fn to_json(&self, group: usize) -> Result<Json>;
    /// Groups with these hyperparameters, or the number of the group that has others and what is wrong.
    fn of_json(&self, all: &[&Json]) -> std::result::Result<Box<dyn Groups>, (usize, String)>;
}

impl<M: Method> Groups for Vec<M> {
    fn name(&self) -> &'static str {
        M::NAME
    }
    fn count(&self) -> usize {
        self.len()
    }
    fn remove_last(&mut self) {
        self.pop();
    }
    fn lr(&self, group: usize) -> f64 {
        self[group].lr()
    }
    fn set_lr(&mut self, group: usize, lr: f64) {
        self[group].set_lr(lr);
    }
    fn momentum(&self, group: usize) -> Option<f64> {
        self[group].momentum()
    }
    fn set_momentum(&mut self, group: usize, momentum: f64) {
        self[group].set_momentum(momentum);
    }
    #[track_caller]
    fn check(&self, group: usize) -> Result<()> {
        if let Some(rows) = self[group].rows() {
            rows.check(M::NAME)?;
        }
        self[group].check()
    }
    #[track_caller]
    fn check_parameter(&self, group: usize, shape: &Shape) -> Result<()> {
        self[group].check_parameter(shape)
    }
    #[track_caller]
    fn check_together(&self) -> Result<()> {
        M::check_groups(self)
    }
    fn check_shared(&self, shared: &BTreeMap<String, NamedTensor>, numel: usize) -> Result<()> {
        M::check_shared(shared, numel)
    }
    fn slots(&self, group: usize, sizes: &[usize]) -> &'static [&'static str] {
        self[group].slots(sizes)
    }
    fn slot_sizes(&self, group: usize, slot: &str, sizes: &[usize]) -> Vec<usize> {
        self[group].slot_sizes(slot, sizes)
    }
    fn slot_start(&self, group: usize, slot: &str) -> f64 {
        self[group].slot_start(slot)
    }
    fn needs_loss(&self) -> bool {
        M::needs_loss()
    }
    fn step<'a>(&'a self, step: AnyStep<'a>) -> (Result<()>, bool) {
        let mut step = OptimizerStep { groups: self, step };
        (M::step(&mut step), step.step.failed)
    }
    #[track_caller]
    fn to_json(&self, group: usize) -> Result<Json> {
        parsed(M::NAME, TensorFile::of_json(KEY, &self[group]))
    }
    fn of_json(&self, all: &[&Json]) -> std::result::Result<Box<dyn Groups>, (usize, String)> {
        let mut groups = Vec::with_capacity(all.len());
        for (number, json) in all.iter().enumerate() {
            match M::deserialize(*json) {
                Ok(method) => groups.push(method),
                Err(error) => return Err((number, error.to_string())),
            }
        }
        Ok(Box::new(groups))
    }
}

/// The metadata key of hyperparameters on their way to JSON.
const KEY: &str = "hyperparameters";

/// The hyperparameters in the metadata of a file.
#[track_caller]
fn parsed(name: &'static str, file: Result<TensorFile>) -> Result<Json> {
    let caller = Location::caller();
    file.and_then(|file| file.json(KEY, "a table of hyperparameters")).map_err(|error| {
        Error::new(ErrorKind::Value, name, format!("hyperparameters: {}", error.message()))
            .with_repair("a large number in place of f64::INFINITY")
            .at(caller)
    })
}
