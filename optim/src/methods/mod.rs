//! The optimizers, a file for each: the table of its hyperparameters and its formula. `adam.rs` is a good first
//! one. `sgd.rs` shows an optimizer with forms, `asgd.rs` one that keeps numbers, `lamb.rs` one with norms,
//! `muon.rs` a formula over matrices, and `lbfgs.rs` a step that evaluates the loss again.

mod adadelta;
mod adafactor;
mod adagrad;
mod adam;
mod adamax;
mod asgd;
mod lamb;
mod lbfgs;
mod line_search;
mod lion;
mod muon;
mod nadam;
mod radam;
mod rmsprop;
mod rprop;
mod sgd;

pub use adadelta::{Adadelta, AdadeltaOptions};
pub use adafactor::{Adafactor, AdafactorOptions};
pub use adagrad::{Adagrad, AdagradOptions};
pub use adam::{Adam, AdamOptions, AdamW, AdamWOptions};
pub use adamax::{Adamax, AdamaxOptions};
pub use asgd::{Asgd, AsgdOptions};
pub use lamb::{Lamb, LambOptions};
pub use lbfgs::{Lbfgs, LbfgsOptions, LineSearch};
pub use lion::{Lion, LionOptions};
pub use muon::{AdjustLr, Muon, MuonOptions};
pub use nadam::{NAdam, NAdamOptions};
pub use radam::{RAdam, RAdamOptions};
pub use rmsprop::{RmsProp, RmsPropOptions};
pub use rprop::{Rprop, RpropOptions};
pub use sgd::{Sgd, SgdOptions};

// The names that most optimizers need.
use super::*;
