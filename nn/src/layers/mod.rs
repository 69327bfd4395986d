//! Layers with state, and [`Sequential`], which runs layers one after the other.

mod activation;
mod dropout;
mod hooked;
mod linear;
mod sequential;

pub use activation::{Relu, Sigmoid, Tanh};
pub use dropout::Dropout;
pub use hooked::Hooked;
pub use linear::Linear;
pub use sequential::Sequential;

use crate::Module;
use namegrad_autograd::Tensor;
use namegrad_core::Result;

/// A module from one tensor to one tensor: a part of a [`Sequential`].
pub trait Layer: Module + Send + Sync {
    /// The output for `x`.
    ///
    /// # Errors
    /// Those of the ops of the layer.
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor>;
}
