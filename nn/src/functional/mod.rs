//! Layers without state, as functions: PyTorch's `torch.nn.functional`.

mod activation;
mod loss;

pub use activation::{dropout, linear, log_softmax, relu, sigmoid, softmax, tanh};
pub use loss::{
    CrossEntropy, Reduction, cross_entropy, cross_entropy_with, mse_loss, mse_loss_with, nll_loss,
    nll_loss_with,
};
