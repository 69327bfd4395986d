//! States of models and optimizers in parts, as those of one process.

use super::Mesh;
use super::value::{Split, Value};
use crate::backend::Reduction;
use crate::traffic;
use namegrad::autograd::places;
use namegrad::core::{NamedTensor, Whole};
use namegrad::nn::StateDict;
use namegrad::optim::{Descent, Method, OptimizerState, clip_grads_with_norm_};
use namegrad::prelude::*;
use namegrad::train::{Checkpoints, Parts};
use std::panic::Location;

/// # States
///
/// A state is that of a model on one process, whatever the table: what a mesh saves, another mesh or a program
/// without one loads.
impl Mesh {
    /// The state of a model with the wholes of its parameters, on every rank.
    ///
    /// # Errors
    /// Those of [`Group::all_gather`](crate::Group::all_gather).
    #[track_caller]
    pub fn state_dict(&self, model: &dyn Module) -> Result<StateDict> {
        let mut values = Vec::new();
        for held in &self.state().parameters {
            let part = held.parameter.try_tensor()?.into_value();
            let mut value = Value::of(part, held.splits.clone());
            value.gather_all(&self.axes)?;
            values.push((held.parameter.id(), Tensor::from(value.part)));
        }
        Ok(places::substituted(values, || model.state_dict()))
    }

    /// Loads the state of a whole model, as [`Module::load_state_dict`] does; each rank keeps its part.
    ///
    /// # Errors
    /// Those of [`Module::load_state_dict`].
    #[track_caller]
    pub fn load_state_dict(&self, model: &dyn Module, state: &StateDict) -> Result<()> {
        model.load_state_dict(state)
    }

    /// The state of an optimizer of parameters in parts, as that of an optimizer of the wholes:
    /// [`Descent::state_dict`], which all ranks call.
    ///
    /// # Errors
    /// Those of [`Group::all_gather`](crate::Group::all_gather).
    #[track_caller]
    pub fn optimizer_state<M: Method>(&self, optimizer: &Descent<M>) -> Result<OptimizerState> {
        Ok(optimizer.state_dict())
    }

    /// Loads the state of an optimizer of whole parameters, as [`Descent::load_state_dict`] does; each rank
    /// keeps its part.
    ///
    /// # Errors
    /// Those of [`Descent::load_state_dict`].
    #[track_caller]
    pub fn load_optimizer_state<M: Method>(
        &self,
        optimizer: &mut Descent<M>,
        state: &OptimizerState,
    ) -> Result<()> {
        optimizer.load_state_dict(state)
    }

    /// Saves a checkpoint of whole models and optimizers: all ranks give their parts, and rank 0 writes. On
    /// every rank, [`Checkpoints::resume`] reads it, whatever the table.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::train::{Checkpoints, parts};
    /// use namegrad_dist::{Group, Mesh};
    /// let world = Group::world()?;
    /// let mesh = Mesh::on(&world, [("model", world.size())])?.shard([("hidden", "model")])?;
    /// let mut model = Linear::new(("in", 3), ("hidden", 4 * world.size()))?;
    /// mesh.split(&model)?;
    /// let mut optimizer = Adam::new(model.parameters())?;
    /// let folder = std::env::temp_dir().join(format!("namegrad-doc-mesh-{}", std::process::id()));
    /// let checkpoints = Checkpoints::new(&folder)?;
    /// mesh.save(&checkpoints, 1, parts![&model, &mut optimizer])?;
    /// let resumed = checkpoints.resume(parts![&model, &mut optimizer])?;
    /// assert_eq!(resumed, Some(1));
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Checkpoints::save`], on all ranks.
    #[track_caller]
    pub fn save(&self, checkpoints: &Checkpoints, step: impl Whole, parts: Parts<'_>) -> Result<()> {
        let composed = checkpoints.compose(step, parts)?;
        self.world.on_first(|| checkpoints.write(composed)).map(drop)
    }

    /// The whole of a parameter's gradient, of which [`Parameter::grad`] has the part of this rank.
    ///
    /// # Errors
    /// Those of [`Group::all_gather`](crate::Group::all_gather).
    #[track_caller]
    pub fn gradient(&self, parameter: &Parameter) -> Result<Option<Tensor>> {
        let Some(own) = parameter.grad() else { return Ok(None) };
        let whole = parameter.part().map_or(Ok(own.value().clone()), |part| part.whole(own.value()))?;
        Ok(Some(Tensor::from(whole)))
    }

    /// Scales the gradients of the parameters so that the norm of all together is at most `max_norm`, and gives
    /// the norm before: [`clip_grad_norm_`](namegrad::optim::clip_grad_norm_) over all parts.
    ///
    /// # Errors
    /// Those of [`clip_grad_norm_`](namegrad::optim::clip_grad_norm_).
    #[track_caller]
    pub fn clip_grad_norm_(&self, model: &dyn Module, max_norm: f64) -> Result<f64> {
        // For each set of axes, the sum of squares of the gradients that these axes split.
        let axes = self.axes.all.len();
        let mut sums = vec![0.0_f64; 1 << axes];
        for parameter in model.parameters() {
            let Some(grad) = parameter.grad() else { continue };
            let splits = self.splits_of_parameter(&parameter).unwrap_or_default();
            let set = splits.iter().enumerate().filter(|(_, split)| split.is_some());
            let set: usize = set.map(|(axis, _)| 1 << axis).sum();
            if !self.world.is_pretended() {
                sums[set] += grad.value().to(DType::F64)?.square()?.sum(..)?.item::<f64>()?;
            }
        }
        let _exchanges = traffic::in_call("clip_grad_norm_", Location::caller());
        let mut sums = NamedTensor::from_slice(&sums, [sums.len()])?;
        if self.world.is_pretended() {
            let sums = sums.to_device(Device::Meta)?;
            for axis in 0..axes {
                self.axes.reduced(&sums, axis, Reduction::Sum)?;
            }
            return clip_grads_with_norm_(model.parameters(), max_norm, f64::NAN).map(|()| f64::NAN);
        }
        for axis in 0..axes {
            let all = self.axes.reduced(&sums, axis, Reduction::Sum)?.to_vec::<f64>()?;
            let own = sums.to_vec::<f64>()?;
            let joined = own.iter().zip(&all).enumerate();
            let joined: Vec<f64> =
                joined.map(|(set, (own, all))| if set & (1 << axis) == 0 { *own } else { *all }).collect();
            sums = NamedTensor::from_slice(&joined, [joined.len()])?;
        }
        let norm = sums.to_vec::<f64>()?.iter().sum::<f64>().sqrt();
        clip_grads_with_norm_(model.parameters(), max_norm, norm)?;
        Ok(norm)
    }

    fn splits_of_parameter(&self, parameter: &Parameter) -> Option<Vec<Option<Split>>> {
        let state = self.state();
        state.parameters.iter().find(|held| held.parameter.is(parameter)).map(|held| held.splits.clone())
    }
}
