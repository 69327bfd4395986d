//! Optimizers over named parameters, with groups that have their own hyperparameters and state that can be
//! saved.
//!
//! Read [`Optimizer`] first, which has what all of them can do, then [`Sgd`] and [`AdamW`]. [`Descent`] is
//! their common implementation. A [`Method`] is what distinguishes an optimizer: its hyperparameters, the
//! tensors it keeps, and its formula. Implement it, with a loop that [`update`] runs fast, for your own
//! optimizer.
//!
//! ```
//! use namegrad::prelude::*;
//! use namegrad::optim::{AdamW, Optimizer};
//!
//! let weight = Parameter::new(Tensor::new([4.0, -3.0])?.refine_names(["in"])?)?;
//! let mut optimizer = AdamW::new([weight.clone()]).lr(0.1).build()?;
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
mod descent;
mod method;
mod optimizer;
mod sgd;
mod state;

pub use adam::{Adam, AdamW};
pub use descent::{Builder, Descent};
pub use method::{Method, Slots, Turn};
pub use namegrad_core::cpu::math::Real;
pub use namegrad_core::cpu::update::{Update, update};
pub use optimizer::Optimizer;
pub use sgd::Sgd;
pub use state::{GroupState, OptimizerState, ParameterState};
