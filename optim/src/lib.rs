//! Optimizers for named parameters, with parameter groups, which have their own hyperparameters, and state
//! that can be saved.
//!
//! Read [`Optimizer`] first, the trait of all optimizers, then [`Sgd`] and [`AdamW`]. [`clip_grad_norm_`]
//! limits gradients before a step.
//!
//! To write your own optimizer, implement [`Method`]: its hyperparameters, the tensors that it keeps, and its
//! formula. [`Descent`] does the rest.
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

mod adam;
mod clip;
mod descent;
mod hyperparameters;
mod method;
mod optimizer;
mod sgd;
mod state;

pub use adam::{Adam, AdamOptions, AdamW, AdamWOptions};
pub use clip::{ClipGradNormOptions, clip_grad_norm_, clip_grad_norm_with_, clip_grad_value_};
pub use descent::{Builder, Descent, Pass};
pub use method::{Method, Slots, Turn};
pub use namegrad_core::cpu::math::Real;
pub use namegrad_core::cpu::update::Update;
pub use optimizer::{Loss, Optimizer};
pub use sgd::{Sgd, SgdOptions};
pub use state::{GroupState, OptimizerState, ParameterState};
