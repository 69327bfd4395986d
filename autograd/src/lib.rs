//! Tensors that remember where they came from.
//!
//! Read [`Tensor`] first, then [`Op`], the one door by which ops enter the tape, then the rows of the derivatives in `rules/`, then the walk in
//! `tape.rs`.

mod composed;
mod create;
mod gradcheck;
mod hooks;
mod methods;
mod naming;
mod op;
mod operators;
mod parameter;
pub mod rules;
mod tape;
mod tensor;

pub use composed::{Indexing, Sections, Tolerance};
pub use create::TensorOptions;
pub use gradcheck::{GradCheck, gradcheck, gradgradcheck};
pub use hooks::HookHandle;
pub use op::{Kept, Op};
pub use operators::Operand;
pub use parameter::Parameter;
pub use rules::getitem::Index;
pub use tape::{BackwardOptions, Cx, enable_grad, is_grad_enabled, no_grad, set_grad_enabled};
pub use tensor::{Tensor, grad};
