//! States of models and optimizers in parts, as those of one process.

use super::value::{Split, Value};
use super::{Mesh, copied};
use crate::backend::Reduction;
use namegrad::autograd::places;
use namegrad::core::NamedTensor;
use namegrad::nn::StateDict;
use namegrad::optim::{Descent, Method, OptimizerState, clip_grads_with_norm_};
use namegrad::prelude::*;

/// What becomes of a tensor of a parameter's state, from the sizes of the parameter and how it is split.
type Change<'a> = dyn FnMut(&NamedTensor, &[usize], &[Option<Split>]) -> Option<Result<NamedTensor>> + 'a;

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
            let mut value = Value { part, splits: held.splits.clone() };
            value.gather_all(&self.axes)?;
            values.push((held.parameter.id(), Tensor::from(value.part)));
        }
        Ok(places::substituted(values, || model.state_dict()))
    }

    /// Loads the state of a whole model; each rank keeps its part.
    ///
    /// # Errors
    /// Those of [`Module::load_state_dict`]; [`ErrorKind::Shape`] for a value of other sizes.
    #[track_caller]
    pub fn load_state_dict(&self, model: &dyn Module, state: &StateDict) -> Result<()> {
        let parameters = model.named_parameters();
        let mut own = state.clone();
        for (path, value) in state.iter() {
            let Some((_, parameter)) = parameters.iter().find(|(other, _)| other == path) else { continue };
            let Some(splits) = self.splits_of_parameter(parameter) else { continue };
            let part = self.part_of(path, value, &parameter.try_tensor()?.into_value(), &splits)?;
            own.insert(path, part);
        }
        model.load_state_dict(&own)
    }

    /// The state of an optimizer of parameters in parts, as that of an optimizer of the wholes.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the optimizer keeps something of another size than the parameter.
    #[track_caller]
    pub fn optimizer_state<M: Method>(&self, optimizer: &Descent<M>) -> Result<OptimizerState> {
        let mut state = optimizer.state_dict();
        self.each_parameter(optimizer, &mut state, &mut |x, sizes, splits| {
            (x.sizes() == sizes).then(|| {
                let mut value = Value { part: x.clone(), splits: splits.to_vec() };
                value.gather_all(&self.axes)?;
                Ok(value.part)
            })
        })?;
        Ok(state)
    }

    /// Loads the state of an optimizer of whole parameters; each rank keeps its part.
    ///
    /// # Errors
    /// Those of [`Descent::load_state_dict`], and as [`optimizer_state`](Self::optimizer_state).
    #[track_caller]
    pub fn load_optimizer_state<M: Method>(
        &self,
        optimizer: &mut Descent<M>,
        state: &OptimizerState,
    ) -> Result<()> {
        let mut own = state.clone();
        self.each_parameter(optimizer, &mut own, &mut |x, sizes, splits| {
            (x.sizes() == sizes).then(|| copied(&self.axes.whole(x.clone()).placed(&self.axes, splits)?.part))
        })?;
        optimizer.load_state_dict(&own)
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
            sums[set] += grad.value().to(DType::F64)?.square()?.sum(..)?.item::<f64>()?;
        }
        let mut sums = NamedTensor::from_slice(&sums, [sums.len()])?;
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

    /// This rank's part of a value of a state.
    #[track_caller]
    fn part_of(
        &self,
        path: &str,
        value: &NamedTensor,
        own: &NamedTensor,
        splits: &[Option<Split>],
    ) -> Result<NamedTensor> {
        let sizes = Value { part: own.clone(), splits: splits.to_vec() }.sizes(&self.axes);
        Error::ensure(value.sizes() == &sizes[..], ErrorKind::Shape, "Mesh::load_state_dict", || {
            format!("'{path}' has sizes {sizes:?} in the model and {:?} in the state", value.sizes())
        })?;
        copied(&self.axes.whole(value.clone()).placed(&self.axes, splits)?.part)
    }

    /// Changes what an optimizer keeps of each parameter that is in parts, from one kind of sizes to the other.
    #[track_caller]
    fn each_parameter<M: Method>(
        &self,
        optimizer: &Descent<M>,
        state: &mut OptimizerState,
        change: &mut Change<'_>,
    ) -> Result<()> {
        for (number, group) in state.groups.iter_mut().enumerate() {
            if number >= optimizer.groups().len() {
                break; // which is an error of loading
            }
            for (parameter, kept) in optimizer.group_parameters(number).iter().zip(&mut group.parameters) {
                let Some(splits) = self.splits_of_parameter(parameter) else { continue };
                let before = kept.sizes.clone();
                for (name, x) in kept.slots.iter_mut().chain(kept.master.iter_mut().map(|x| (&*MASTER, x))) {
                    if x.numel() == 1 && before.iter().product::<usize>() != 1 {
                        continue;
                    }
                    *x = change(x, &before, &splits).unwrap_or_else(|| {
                        let message =
                            format!("'{name}' is {} beside a parameter of sizes {before:?}", x.shape());
                        Err(Error::new(ErrorKind::Unsupported, "Mesh", message))
                    })?;
                    kept.sizes = x.sizes().to_vec();
                }
                if kept.sizes == before {
                    let zeros = NamedTensor::zeros(())?.expand(&before[..])?;
                    kept.sizes = match change(&zeros, &before, &splits) {
                        Some(x) => x?.sizes().to_vec(),
                        None => before,
                    };
                }
            }
        }
        Ok(())
    }
}

/// What the copy of a half-precision parameter is called in messages.
static MASTER: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "master".to_string());
