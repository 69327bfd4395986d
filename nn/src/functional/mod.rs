//! Layers without state, as functions: PyTorch's `torch.nn.functional`.

mod activation;
mod conv;
mod loss;

pub use activation::{dropout, gelu, gelu_tanh, linear, log_softmax, relu, sigmoid, silu, softmax, tanh};
pub use conv::{Conv, Padding, conv1d};
pub use loss::{
    CrossEntropy, Reduction, cross_entropy, cross_entropy_with, mse_loss, mse_loss_with, nll_loss,
    nll_loss_with,
};
