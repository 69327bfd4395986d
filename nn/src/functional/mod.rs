//! Layers without state, as functions: PyTorch's `torch.nn.functional`.
//!
//! Each file has a table of rows, in the grammar of all ops, and the functions that the rows call in the
//! module `kernels` below it. Options of a function are a struct in [`options`].

mod activation;
mod conv;
mod dropout;
mod linear;
mod loss;

pub use activation::{
    Approximate, celu, celu_with, elu, elu_with, gelu, gelu_with, hardtanh, hardtanh_with, leaky_relu,
    leaky_relu_with, log_softmax, log_softmax_with, relu, sigmoid, silu, softmax, softmax_with, softplus,
    softplus_with, tanh,
};
pub use conv::{Padding, conv1d, conv1d_with};
pub use dropout::{dropout, dropout_with};
pub use linear::{linear, linear_with};
pub use loss::{
    ClassDim, Reduction, cross_entropy, cross_entropy_with, mse_loss, mse_loss_with, nll_loss, nll_loss_with,
};

/// The options of functions.
pub mod options {
    pub use super::activation::options::*;
    pub use super::conv::options::*;
    pub use super::dropout::options::*;
    pub use super::linear::options::*;
    pub use super::loss::options::*;
}

/// The functions that are not methods of a tensor too, by the tables that they are in, as `namegrad::ops`
/// finds them.
pub const OPS: [&[&namegrad_autograd::registry::Op]; 5] =
    [activation::OPS, conv::OPS, dropout::OPS, linear::OPS, loss::OPS];
