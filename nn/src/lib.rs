//! Layers that find their dims by name, models, losses and initializations. Programs use this crate as
//! `namegrad::nn`.
//!
//! ```
//! use namegrad::nn::StateDict;
//! use namegrad::prelude::*;
//!
//! #[derive(Module)]
//! struct Model {
//!     hidden: Linear,
//!     dropout: Dropout,
//!     out: Linear,
//! }
//!
//! impl Model {
//!     fn forward(&self, x: &Tensor) -> Result<Tensor> {
//!         let h = self.dropout.forward(&self.hidden.forward(x)?.relu()?)?;
//!         self.out.forward(&h)
//!     }
//! }
//!
//! let model = Model {
//!     hidden: Linear::new(("pixels", 64), ("hidden", 32))?,
//!     dropout: Dropout::new(0.1)?,
//!     out: Linear::builder(("hidden", 32), ("class", 10)).bias(false).build()?,
//! };
//! let images = Tensor::rand([("N", 4), ("pixels", 64)])?;
//! let classes = Tensor::new([3, 1, 4, 1])?.refine_names(["N"])?;
//! let loss = F::cross_entropy(&model.forward(&images)?, &classes, "class")?;
//! loss.backward()?;
//!
//! model.eval(); // no dropout
//! println!("{model}"); // every layer with its path, dims and number of parameters
//! let state: StateDict = model.state_dict();
//! assert!(state.get("hidden.weight").is_some());
//! # Ok::<(), Error>(())
//! ```
//!
//! # Where to find what
//!
//! * Models: derive [`Module`]. A field can be any [`Field`]: a [`Parameter`](namegrad_autograd::Parameter),
//!   a [`Buffer`], a [`Training`] flag, another module, or plain data. With `#[derive(Clone, Module)]`, a
//!   clone has the same parameters, and [`deep_copy`](Module::deep_copy) makes a copy with its own.
//! * Layers: [`Linear`], [`Bilinear`], [`Conv`], [`ConvTranspose`], [`Embedding`], [`EmbeddingBag`],
//!   [`Dropout`], [`Relu`] and other activations; [`MaxPool`], [`AvgPool`] and other pooling; normalizations
//!   [`BatchNorm`], [`LayerNorm`], [`RmsNorm`], [`GroupNorm`], [`InstanceNorm`], [`LocalResponseNorm`];
//!   images [`ZeroPad`] and other padding, [`Upsample`], [`Unfold`], [`Fold`]; rearrangements [`Flatten`],
//!   [`Unflatten`], [`PixelShuffle`], [`PixelUnshuffle`], [`ChannelShuffle`].
//! * Recurrent layers: [`Rnn`], [`Lstm`], [`Gru`], with several layers and directions; their steps
//!   [`RnnCell`], [`LstmCell`], [`GruCell`]; sequences of different lengths, with an option of these layers
//!   or as a [`PackedSequence`].
//! * Attention: [`MultiheadAttention`], [`TransformerEncoder`], [`TransformerDecoder`], [`Transformer`],
//!   [`RotaryEmbedding`].
//! * Layers of layers: [`Sequential`], [`Residual`], [`ModuleList`], [`ModuleDict`], [`Identity`];
//!   [`Lambda`] makes a layer of a closure.
//!   [`Hooked`] adds hooks to any layer, and [`Layer`] is the trait that all of them implement.
//! * Losses and layers without state: functions in [`functional`], which the prelude calls `F`. Each is also
//!   a layer, such as [`CrossEntropyLoss`]. For many classes: [`AdaptiveLogSoftmaxWithLoss`].
//! * Initial values of parameters: [`init`]. Weights that are computed from other parameters:
//!   [`parametrize`].
//! * A model run with other parameters: [`functional_call`]; its gradients checked: [`gradcheck_module`].
//! * Saving and loading a model: [`StateDict`], [`LoadOptions`]. Printing a model: [`Summary`].
//!
//! An error of a layer names the layer and its path in the model: see [`ModulePath`].

#![doc(html_root_url = "https://docs.rs/namegrad-nn/0.1.0")] // so that links from other crates work
#![forbid(unsafe_code)]

mod buffer;
mod call;
mod copy;
#[doc(hidden)]
pub mod derived;
mod dims;
mod field;
pub mod functional;
pub mod init;
mod layers;
#[doc(hidden)]
pub mod misused;
mod module;
pub mod parametrize;
#[doc(hidden)]
pub mod pattern;
mod state;
mod summary;
mod trace;
mod training;

pub use buffer::Buffer;
pub use call::{functional_call, gradcheck_module, gradcheck_module_with};
pub use field::{Entry, Field, Visitor};
pub use functional::layers::*;
pub use layers::*;
pub use module::{Module, ModuleFields};
pub use namegrad_nn_derive::{Module, dims};
pub use state::{LoadOptions, LoadReport, StateDict};
pub use summary::{LayerSummary, Summary};
pub use trace::Running;
pub use training::{ModulePath, Training};
