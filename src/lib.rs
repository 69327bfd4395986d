//! Deep learning with tensors whose dims have names: values, gradients, layers, optimizers.
//!
//! A dim is called by its name, so that it is found wherever it stands, and a mix-up of two dims is an error
//! where it happens rather than a loss that does not fall. A tensor without names behaves as in any other
//! library and pays nothing.
//!
//! ```
//! use namegrad::prelude::*;
//!
//! #[derive(Module)]
//! struct Mlp {
//!     hidden: Linear,
//!     out: Linear,
//! }
//!
//! impl Mlp {
//!     fn forward(&self, x: &Tensor) -> Result<Tensor> {
//!         self.out.forward(&self.hidden.forward(x)?.relu()?)
//!     }
//! }
//!
//! manual_seed(0);
//! let model = Mlp {
//!     hidden: Linear::new(("coord", 2), ("hidden", 32))?,
//!     out: Linear::new(("hidden", 32), ("class", 2))?,
//! };
//! let mut optimizer = AdamW::builder(model.parameters()).lr(0.02).build()?;
//!
//! // Points of the plane; the class says whether both coordinates have the same sign.
//! let points = Tensor::randn([("N", 256), ("coord", 2)])?;
//! let class = points.prod("coord").gt(0).to(DType::I64)?; // [N]
//! for _ in 0..200 {
//!     let logits = model.forward(&points)?; // [N, class]
//!     let loss = F::cross_entropy(&logits, &class, "class")?;
//!     optimizer.zero_grad();
//!     loss.backward()?;
//!     optimizer.step()?;
//! }
//! let right = model.forward(&points)?.argmax("class").eq(&class)?;
//! assert!(right.to(DType::F32).mean("N").item::<f64>()? > 0.95);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Debug builds
//!
//! A plain `cargo run` is many times slower than one with `--release`. These lines in your `Cargo.toml`
//! compile what you depend on with optimizations in either case; `examples/template/` is a project that has them.
//!
//! ```toml
//! [profile.dev.package."*"]
//! opt-level = 3
//! debug-assertions = false
//! overflow-checks = false
//! codegen-units = 16
//! ```
//!
//! # Where to go
//!
//! * [`Tensor`](prelude::Tensor) has the ops as methods, [`TensorOptions`](prelude::TensorOptions) the
//!   factories of other dtypes; the numbered programs in `examples/` introduce them in order.
//! * [`names`]: what a name is, the rules by which ops hand names on, [`names::strict`].
//! * [`autograd`]: the tape, [`autograd::grad`], [`autograd::Op`] for your own ops,
//!   [`autograd::gradcheck`].
//! * [`nn`]: [`nn::Module`] and its derive, layers, [`nn::functional`], [`nn::init`], states.
//! * [`optim`]: optimizers and their states.
//! * [`ops`]: ops by name, with what is known of each, and calls with named arguments; [`options`]: their
//!   options.
//! * [`core`]: tensors as plain values, dtypes, kernels, [`core::random`]. [`memory`]: what tensors hold of
//!   it.
//! * [`Error`]: what an error tells; every method that can fail returns it, the operators `+ - * /` panic
//!   with its text.
//!
//! The README has a table from PyTorch's named tensors to this crate, `docs/migration.md` the whole of it,
//! `docs/operators.md` every operator.

#![forbid(unsafe_code)]

pub mod ops;

pub use namegrad_autograd as autograd;
pub use namegrad_core as core;
pub use namegrad_core::{Error, ErrorKind, Result, memory, names};
pub use namegrad_nn as nn;
pub use namegrad_optim as optim;

/// The options of ops and of [`nn::functional`], with their defaults.
pub mod options {
    pub use namegrad_autograd::options::*;
    pub use namegrad_nn::functional::options::*;
}

/// What most programs need.
pub mod prelude {
    pub use crate::options::*;
    pub use namegrad_autograd::chain::*;
    pub use namegrad_autograd::{
        BackwardOptions, Index, Parameter, Tensor, TensorOptions, enable_grad, no_grad,
    };
    pub use namegrad_core::random::manual_seed;
    pub use namegrad_core::{DType, Error, ErrorKind, Picked, Result, StdMean, VarMean, except, keep};
    pub use namegrad_nn::functional as F;
    pub use namegrad_nn::{Dropout, Layer, Linear, Module, Relu, Sequential, Sigmoid, Tanh};
    pub use namegrad_optim::{Adam, AdamW, Optimizer, Sgd};
}

/// The code of the README, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
