//! Deep learning with named dimensions.

pub use namegrad_autograd as autograd;
pub use namegrad_core as core;
pub use namegrad_core::{Error, ErrorKind, Result, memory, names};
pub use namegrad_nn as nn;
pub use namegrad_optim as optim;

/// What most programs need.
pub mod prelude {
    pub use namegrad_autograd::{Parameter, Tensor, TensorOptions, enable_grad, no_grad};
    pub use namegrad_core::random::manual_seed;
    pub use namegrad_core::{DType, Error, ErrorKind, Result};
    pub use namegrad_nn::functional as F;
    pub use namegrad_nn::{Dropout, Layer, Linear, Module, Relu, Sequential};
}
