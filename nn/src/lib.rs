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
#[allow(dead_code, unreachable_pub, reason = "the registry calls what is behind these functions")]
mod factories;
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
#[doc(hidden)]
pub mod places;
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
use namegrad_core::{joined, list};
pub use namegrad_nn_derive::Module;
/// Checks the names and sizes of the dims of a function's arguments and of its result, whenever it is called.
///
/// ```
/// use namegrad::prelude::*;
///
/// /// Each query's mean of the values, weighted by how well it matches the keys.
/// #[dims(q = "N query embed", k = "N key embed", v = "N key value", returns = "N query value")]
/// fn attend(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
///     let weights = q.contract(k, "embed")?.softmax("key")?; // [N, query, key]
///     weights.contract(v, "key")
/// }
///
/// let q = Tensor::randn([("N", 2), ("query", 4), ("embed", 8)])?;
/// let k = Tensor::randn([("N", 2), ("key", 5), ("embed", 8)])?;
/// let v = Tensor::randn([("key", 5), ("N", 2), ("value", 3)])?; // in another order
/// assert_eq!(attend(&q, &k, &v)?.shape().to_string(), "[N=2, query=4, value=3]");
///
/// let error = attend(&q, &k, &v.narrow("key", 0, 4)?).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Shape);
/// println!("{error}");
/// assert!(error.message().starts_with("`v` has size 4 in dim 'key', but `k` has size 5"));
/// # Ok::<(), Error>(())
/// ```
///
/// ```text
/// attend: `v` has size 4 in dim 'key', but `k` has size 5; the signature is (q = "N query embed",
/// k = "N key embed", v = "N key value", returns = "N query value"), where N=2, query=4, embed=8, key=5
/// (at src/main.rs:15:13)
///   inputs: [key=4, N=2, value=3]
/// ```
///
/// # Notation
/// The names of the dims, separated by spaces, in any order. The sizes of equal names must be equal, across the
/// arguments and the result. A tensor needs these dims and no others.
///
/// | notation | dims |
/// | --- | --- |
/// | `"N embed"` | `N` and `embed`, in any order |
/// | `"[N embed]"` | `N` and `embed`, in this order |
/// | `"N C=3"` | `C` has size 3 |
/// | `"N head?"`, `"N C=3?"` | there may be a dim `head`, or a dim `C` of size 3 |
/// | `"N ..."` | `N` and any other dims, with or without names |
/// | `"[N ... C]"` | the first dim is `N`, the last one `C` |
/// | `""` | none: the tensor is 0-d |
///
/// # Arguments
/// What stands before `=` is an argument, a field of one, or `returns`, the value of the `Result`:
///
/// ```
/// # use namegrad::prelude::*;
/// struct Head {
///     weight: Parameter,
/// }
///
/// impl Head {
///     #[dims(x = "N embed ...", self.weight = "embed class", mask = "N", returns.0 = "N class ...")]
///     fn scores(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<(Tensor, f64)> {
///         let scores = x.contract(&self.weight, "embed")?;
/// #       let _ = mask;
///         let scale = scores.abs().amax(..)?.item()?;
///         Ok((scores, scale))
///     }
/// }
///
/// let head = Head { weight: Parameter::new(Tensor::randn([("embed", 8), ("class", 3)])?)? };
/// let x = Tensor::randn([("N", 2), ("time", 4), ("embed", 8)])?;
/// assert!(head.scores(&x, None).is_ok());
/// let mask = Tensor::ones([("N", 3)])?;
/// assert_eq!(head.scores(&x, Some(&mask)).unwrap_err().kind(), ErrorKind::Shape);
/// # Ok::<(), Error>(())
/// ```
///
/// Arguments can be tensors, parameters, values, and options, slices, arrays and vectors of these, owned or
/// borrowed. `None` is not checked. Each tensor of a list must have the dims, of equal sizes.
///
/// The attribute is for functions and methods with a body, generic ones and those of traits too, that return a
/// `Result` whose error implements `From<namegrad::Error>`. It does not take `async` and `const` functions. It
/// makes the function `#[track_caller]`, so that an error of the signature has the caller's line; errors of the
/// function's own code keep their lines. In a program where the library has another name, write
/// `#[dims(crate = path, ..)]`.
///
/// # Errors of the function
/// `UnnamedNotAllowed` for a tensor without names, `NameNotFound` for a missing dim, `Shape` for a further dim
/// or another size, `Misaligned` for another order.
///
/// # Cost
/// A call that fits costs about 2 ns for each dim, twice that in another order than the notation, and no
/// memory. The feature `signatures` of `namegrad`, which is on by default, has the checks; in a program
/// without it, a signature costs nothing.
///
/// # Source
/// The idea is that of Kidger, *jaxtyping* (2022).
pub use namegrad_nn_derive::dims;
pub use state::{LoadOptions, LoadReport, StateDict};
pub use summary::{LayerSummary, Summary};
pub use trace::Running;
pub use training::{ModulePath, Synchronized, Training};

/// PyTorch's functions that make tensors, for calls by name.
#[doc(hidden)]
pub static FACTORIES: &[&namegrad_autograd::registry::Op] = factories::OPS;
