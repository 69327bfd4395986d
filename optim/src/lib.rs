//! Optimizers for named parameters, with parameter groups, which have their own hyperparameters, and state
//! that can be saved.
//!
//! Read [`Optimizer`] first, the trait of all optimizers, then [`Sgd`] and [`AdamW`].
//!
//! | optimizers | |
//! | --- | --- |
//! | [`Sgd`], [`Asgd`] | gradient descent, with momentum; with an average of the parameters |
//! | [`Adam`], [`AdamW`], [`NAdam`], [`RAdam`], [`Adamax`] | averages of the gradient and of its size |
//! | [`Adagrad`], [`Adadelta`], [`RmsProp`], [`Rprop`], [`Adafactor`] | the size of each element's gradient |
//! | [`Lion`], [`Lamb`], [`Muon`] | signs, steps as long as the parameter, orthogonal matrices |
//! | [`Lbfgs`] | curvature, for losses of a whole data set |
//!
//! All of them are PyTorch's, step by step, but for [`Lion`] and [`Lamb`], which are those of their papers.
//!
//! | around a step | |
//! | --- | --- |
//! | [`schedule`] | learning rates that change during training |
//! | [`clip_grad_norm_`], [`clip_each_grad_norm_`], [`clip_grad_value_`] | limits for gradients |
//! | [`GradScaler`] | gradients in `f16`, for losses computed under `autocast` |
//! | [`AveragedModel`], [`update_batch_norm`] | averages of the parameters |
//!
//! To write your own optimizer, implement [`Method`]: its hyperparameters, the tensors that it keeps, and its
//! formula. [`Descent`] does the rest. To write your own schedule, implement
//! [`Schedule`](schedule::Schedule), or use [`Lambda`](schedule::Lambda).
//!
//! ```
//! use namegrad::prelude::*;
//! use namegrad::optim::{AdamW, Optimizer};
//!
//! let weight = Parameter::new(Tensor::new([4.0, -3.0])?.refine_names(["in"])?)?;
//! let mut optimizer = AdamW::builder([weight.clone()]).lr(0.1).build()?;
//! for _ in 0..200 {
//!     let w = weight.tensor();
//!     let loss = w.mul(&w)?.sum(..)?;
//!     optimizer.zero_grad();
//!     loss.backward()?;
//!     optimizer.step()?;
//! }
//! assert!(weight.tensor().to_vec::<f32>()?.iter().all(|w| w.abs() < 0.1));
//! # Ok::<(), Error>(())
//! ```

#![forbid(unsafe_code)]

mod average;
mod clip;
mod engine;
mod formula;
#[doc(hidden)]
pub mod interval;
mod methods;
mod optimizer;
#[doc(hidden)]
pub mod rows;
mod saved;
mod scaler;
pub mod schedule;
mod update;

pub use average::{AverageState, Averaged, AveragedModel, AveragedModelBuilder, update_batch_norm};
pub use clip::{
    ClipGradNormOptions, clip_each_grad_norm_, clip_each_grad_norm_with_, clip_grad_norm_,
    clip_grad_norm_with_, clip_grad_value_, clip_grads_with_norm_, total_norm, total_norm_with,
};
pub use engine::{
    Builder, Descent, GroupState, Listed, Method, OptimizerState, OptimizerStep, ParameterList,
    ParameterState, ParameterStep, Slots,
};
pub use methods::*;
pub use namegrad_core::cpu::math::Real;
pub use namegrad_core::cpu::update::{Sweep, Update};
pub use optimizer::{Loss, Optimizer};
pub use scaler::{GradScaler, GradScalerBuilder, GradScalerState};
pub use update::{sweep_tensors, update_tensors};

// The names that most files need.
use formula::*;
use namegrad_autograd::{Held, Parameter, PartOf, Tensor, holding};
use namegrad_core::names::apart;
use namegrad_core::{
    DType, Device, Element, Error, ErrorKind, NamedTensor, Names, OnDevice, Result, Shape, for_types, list,
};
use namegrad_io::TensorFile;
use namegrad_io::fields::{Fields, StateFields, check_numbers, compare, entries, insert, object, value_of};
use namegrad_io::setting::{Choice, OfJson};
use namegrad_macros::Words;
use namegrad_nn::places::Ids;
use rows::{Rows, at_caller, ensure, options, refused};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::panic::Location;
use update::{number, run_alone, single};
