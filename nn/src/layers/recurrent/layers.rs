//! [`Rnn`], [`Lstm`] and [`Gru`].

use super::packed::PackedSequence;
use super::stack::{Layers, Nonlinearity, Results, Settings, Stack};
use crate::Module;
use crate::dims::{Named, named};
use crate::layers::Layer;
use namegrad_autograd::Tensor;
use namegrad_core::args::NewName;
use namegrad_core::names::Name;
use namegrad_core::{Cell, DType, Dim, NewDim, Result, default_dtype};
use namegrad_macros::Setters;

/// An Elman network: `h = tanh(W_ih x + b_ih + W_hh h + b_hh)` at every step, for one or several layers, each
/// of which takes the states of the one below.
///
/// # Shapes
/// With 2 `directions` in a bidirectional layer, otherwise 1:
/// - `x`: any dims that include the time and the features, in any order. All other dims are batch dims.
/// - `output`: the dims of `x`, with `hidden` of `directions` times its size in place of the features: the
///   states of the last layer after each step, those of the reverse direction behind the others
/// - `h0`, `hn`: `[layer, ..]`, where `layer` has `layers` times `directions` elements, layer by layer and
///   forward before reverse, and `..` are the dims of `x` without the time and with `hidden` in place of the
///   features
/// - `lengths`: the batch dims, or some of them by name
///
/// The dims are found by name. Where the layer or `x` has no name, the features are the last dim, and the
/// time is dim 0 or the dim that was given as a number: 1 is PyTorch's `batch_first`.
///
/// # Parameters
/// For layer 0, all uniform in ±1/√hidden; further layers have `_l1` and so on, reverse directions
/// `_l0_reverse`:
/// - `weight_ih_l0`: `[gates, in]`, where `gates` has as many elements as `hidden`; in further layers `in` is
///   `hidden` times `directions`
/// - `weight_hh_l0`: `[gates, hidden]`
/// - `bias_ih_l0`, `bias_hh_l0`: `[gates]`
///
/// # Source
/// Elman, *Finding Structure in Time* (1990).
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let rnn = Rnn::new(("embed", 3), ("hidden", 4), "time")?;
/// let x = Tensor::randn([("N", 2), ("time", 5), ("embed", 3)])?;
/// let RecurrentOutput { output, hn } = rnn.forward(&x)?;
/// assert_eq!(output.shape().to_string(), "[N=2, time=5, hidden=4]");
/// assert_eq!(hn.shape().to_string(), "[layer=1, N=2, hidden=4]");
/// assert!(hn.select("layer", -1)?.equal(&output.select("time", -1)?)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = Rnn::text)]
pub struct Rnn {
    #[module(flatten)]
    stack: Stack,
}

/// Long short-term memory, of one or several layers, each of which takes the states of the one below. With
/// `σ` the sigmoid, at every step:
///
/// ```text
/// i = σ(W_ii x + b_ii + W_hi h + b_hi)       c = f c + i g
/// f = σ(W_if x + b_if + W_hf h + b_hf)       h = o tanh(c)
/// g = tanh(W_ig x + b_ig + W_hg h + b_hg)
/// o = σ(W_io x + b_io + W_ho h + b_ho)
/// ```
///
/// With a `proj_size`, `W_hr h` takes the place of `h`.
///
/// # Shapes
/// With 2 `directions` in a bidirectional layer, otherwise 1:
/// - `x`: any dims that include the time and the features, in any order. All other dims are batch dims.
/// - `output`: the dims of `x`, with `hidden` of `directions` times its size in place of the features: the
///   states of the last layer after each step, those of the reverse direction behind the others
/// - `h0`, `hn`, `c0`, `cn`: `[layer, ..]`, where `layer` has `layers` times `directions` elements, layer by
///   layer and forward before reverse, and `..` are the dims of `x` without the time and with `hidden` in
///   place of the features
/// - `lengths`: the batch dims, or some of them by name
///
/// With a `proj_size`, that is the size of `hidden` in `output`, `h0` and `hn`.
///
/// The dims are found by name. Where the layer or `x` has no name, the features are the last dim, and the
/// time is dim 0 or the dim that was given as a number: 1 is PyTorch's `batch_first`.
///
/// # Parameters
/// For layer 0, all uniform in ±1/√hidden; further layers have `_l1` and so on, reverse directions
/// `_l0_reverse`:
/// - `weight_ih_l0`: `[gates, in]`, where `gates` are `i`, `f`, `g` and `o`, 4 times `hidden`; in further
///   layers `in` is `hidden` times `directions`
/// - `weight_hh_l0`: `[gates, hidden]`
/// - `bias_ih_l0`, `bias_hh_l0`: `[gates]`
/// - `weight_hr_l0`, with a `proj_size`: `[hidden, hidden_in]`
///
/// # Source
/// Hochreiter, Schmidhuber, *Long Short-Term Memory* (1997); Gers, Schmidhuber, Cummins, *Learning to Forget*
/// (2000); Sak, Senior, Beaufays (2014) for projections.
///
/// # Examples
/// A tagger, with an output for every step:
/// ```
/// use namegrad::prelude::*;
/// let lstm = Lstm::builder(("embed", 3), ("hidden", 4), "time").layers(2).bidirectional(true).build()?;
/// let words = Tensor::randn([("time", 5), ("N", 2), ("embed", 3)])?;
/// let LstmOutput { output, hn, cn } = lstm.forward(&words)?;
/// assert_eq!(output.shape().to_string(), "[time=5, N=2, hidden=8]");
/// assert_eq!(hn.shape().to_string(), "[layer=4, N=2, hidden=4]");
/// assert_eq!(cn.shape(), hn.shape());
/// let tags = Linear::new(("hidden", 8), ("tag", 6))?.forward(&output)?;
/// assert_eq!(tags.shape().to_string(), "[time=5, N=2, tag=6]");
/// # Ok::<(), Error>(())
/// ```
///
/// Going on from the state where it stopped, with sequences of different lengths:
/// ```
/// use namegrad::prelude::*;
/// let lstm = Lstm::new(("embed", 3), ("hidden", 4), "time")?;
/// let x = Tensor::randn([("N", 2), ("time", 6), ("embed", 3)])?;
/// let whole = lstm.forward(&x)?;
/// let start = lstm.forward(&x.narrow("time", 0, 2)?)?;
/// let options = LstmOptions::new().h0(&start.hn).c0(&start.cn);
/// let rest = lstm.forward_with(&x.narrow("time", 2, 4)?, options)?;
/// assert!(rest.hn.allclose(&whole.hn)?);
///
/// let lengths = Tensor::new([6, 2])?.refine_names(["N"])?;
/// let ended = lstm.forward_with(&x, LstmOptions::new().lengths(&lengths))?;
/// assert!(ended.hn.select("N", 1)?.allclose(&start.hn.select("N", 1)?)?);
/// assert_eq!(ended.output.select("N", 1)?.narrow("time", 2, 4)?.abs()?.sum(..)?.item::<f32>()?, 0.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = Lstm::text)]
pub struct Lstm {
    #[module(flatten)]
    stack: Stack,
}

/// Gated recurrent units, of one or several layers, each of which takes the states of the one below. With `σ`
/// the sigmoid, at every step:
///
/// ```text
/// r = σ(W_ir x + b_ir + W_hr h + b_hr)       n = tanh(W_in x + b_in + r (W_hn h + b_hn))
/// z = σ(W_iz x + b_iz + W_hz h + b_hz)       h = (1 - z) n + z h
/// ```
///
/// # Shapes
/// Those of [`Rnn`].
///
/// # Parameters
/// Those of [`Rnn`], where `gates` are `r`, `z` and `n`, 3 times `hidden`.
///
/// # Source
/// Cho et al., *Learning Phrase Representations using RNN Encoder-Decoder* (2014); the reset gate is applied
/// after the product, as in cuDNN and PyTorch.
///
/// # Examples
/// An encoder and a decoder that starts from its last state:
/// ```
/// use namegrad::prelude::*;
/// let encoder = Gru::new(("embed", 3), ("hidden", 4), "time")?;
/// let decoder = Gru::new(("embed", 3), ("hidden", 4), "time")?;
/// let source = Tensor::randn([("N", 2), ("time", 5), ("embed", 3)])?;
/// let lengths = Tensor::new([5, 3])?.refine_names(["N"])?;
/// let read = encoder.forward_with(&source, GruOptions::new().lengths(&lengths))?;
/// let target = Tensor::randn([("time", 7), ("N", 2), ("embed", 3)])?;
/// let written = decoder.forward_with(&target, GruOptions::new().h0(&read.hn))?;
/// assert_eq!(written.output.shape().to_string(), "[time=7, N=2, hidden=4]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = Gru::text)]
pub struct Gru {
    #[module(flatten)]
    stack: Stack,
}

/// The results of [`Rnn`] and [`Gru`]. `output` is a [`PackedSequence`] if the input was one.
#[derive(Clone, Debug)]
pub struct RecurrentOutput<S = Tensor> {
    /// The states of the last layer after every step.
    pub output: S,
    /// The last state of every layer and direction.
    pub hn: Tensor,
}

/// The results of [`Lstm`]. `output` is a [`PackedSequence`] if the input was one.
#[derive(Clone, Debug)]
pub struct LstmOutput<S = Tensor> {
    /// The states of the last layer after every step.
    pub output: S,
    /// The last state of every layer and direction.
    pub hn: Tensor,
    /// The last cells of every layer and direction.
    pub cn: Tensor,
}

/// The options of [`Rnn::forward_with`].
#[derive(Clone, Debug, Default, Setters)]
pub struct RnnOptions {
    /// The first states, `[layer, ..]` like `hn`; zeros if they are not given. The dim `layer` can be left
    /// out if it has one element.
    #[setters(some, cloned)]
    pub h0: Option<Tensor>,
    /// The length of each sequence, between 1 and the number of steps. Beyond its end, a sequence has the
    /// output 0, and its last state is that at its end.
    #[setters(some, cloned)]
    pub lengths: Option<Tensor>,
}

/// The options of [`Gru::forward_with`].
#[derive(Clone, Debug, Default, Setters)]
pub struct GruOptions {
    /// The first states, `[layer, ..]` like `hn`; zeros if they are not given. The dim `layer` can be left
    /// out if it has one element.
    #[setters(some, cloned)]
    pub h0: Option<Tensor>,
    /// The length of each sequence, between 1 and the number of steps. Beyond its end, a sequence has the
    /// output 0, and its last state is that at its end.
    #[setters(some, cloned)]
    pub lengths: Option<Tensor>,
}

/// The options of [`Lstm::forward_with`].
#[derive(Clone, Debug, Default, Setters)]
pub struct LstmOptions {
    /// The first states, `[layer, ..]` like `hn`; zeros if they are not given. The dim `layer` can be left
    /// out if it has one element.
    #[setters(some, cloned)]
    pub h0: Option<Tensor>,
    /// The first cells, like `cn`. They are given together with `h0`.
    #[setters(some, cloned)]
    pub c0: Option<Tensor>,
    /// The length of each sequence, between 1 and the number of steps. Beyond its end, a sequence has the
    /// output 0, and its last state is that at its end.
    #[setters(some, cloned)]
    pub lengths: Option<Tensor>,
}

/// The settings of all builders.
#[derive(Clone, Debug, Setters)]
#[setters(of(RnnBuilder, LstmBuilder, GruBuilder), at = building)]
pub(super) struct Building {
    #[setters(skip)]
    dims: Result<[Named; 2]>,
    #[setters(skip)]
    pub(super) layers: Layers,
    /// The name of the dim of layers and directions in states; the default is `layer`, or no name if the
    /// hidden dim has none.
    #[setters(some, into)]
    layer_dim: Option<NewName>,
    /// Whether there are biases; the default is `true`.
    bias: bool,
    #[setters(skip)]
    proj_size: usize,
    /// The dtype of the parameters; the default is the default dtype.
    dtype: DType,
}

impl Building {
    fn new(dims: Result<[Named; 2]>, time: Dim) -> Building {
        let layers = Layers { time, layers: 1, bidirectional: false, dropout: 0.0, layer_dim: None };
        Building { dims, layers, layer_dim: None, bias: true, proj_size: 0, dtype: default_dtype() }
    }

    #[track_caller]
    fn build(self, layer: &'static str, cell: Cell) -> Result<Stack> {
        let Building { dims, mut layers, layer_dim, bias, proj_size, dtype } = self;
        let [input, hidden] = dims?;
        layers.layer_dim = match (layer_dim, hidden.0) {
            (Some(name), _) => name.name().map_err(|error| error.of(layer))?,
            (None, Some(_)) => Some(Name::new("layer")?),
            (None, None) => None,
        };
        Stack::new(Settings { layer, cell, input, hidden, bias, dtype, proj_size }, layers)
    }
}

/// The parts of the layers that differ only in names. A row has the layer, its builder, its options, its
/// results and the fields of these besides `output`: `Rnn RnnBuilder RnnOptions RecurrentOutput { hn };`
/// becomes
///
/// ```ignore
/// impl Rnn { new, builder, forward, forward_with, forward_packed, forward_packed_with, text }
/// impl RnnBuilder { build }
/// impl Layer<Tensor, RecurrentOutput> for Rnn
/// impl Layer<PackedSequence, RecurrentOutput<PackedSequence>> for Rnn
/// ```
macro_rules! layers {
    ($($layer:ident $builder:ident $options:ident $output:ident { $($last:ident),* };)*) => {$(
        #[doc = concat!("A builder for [`", stringify!($layer), "`]; see [`", stringify!($layer), "::builder`].")]
        #[derive(Clone, Debug)]
        pub struct $builder {
            pub(super) building: Building,
            cell: Cell,
        }

        impl $builder {
            /// Builds the layer.
            ///
            /// # Errors
            /// [`ErrorKind::InvalidName`](namegrad_core::ErrorKind::InvalidName) for an invalid name,
            /// [`ErrorKind::DuplicateName`](namegrad_core::ErrorKind::DuplicateName) if features and time
            /// have the same, [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) for a size or an option
            /// that is out of range, [`ErrorKind::DType`](namegrad_core::ErrorKind::DType) for a dtype that
            /// is not floating-point.
            #[track_caller]
            pub fn build(self) -> Result<$layer> {
                Ok($layer { stack: self.building.build(stringify!($layer), self.cell)? })
            }
        }

        impl $layer {
            /// One layer in one direction, from the dim `input` to the dim `hidden`, that steps along `time`.
            /// `input` and `hidden` are sizes with or without a name; `time` is a name, or a number if inputs
            /// have no names.
            ///
            /// # Errors
            #[doc = concat!("Those of [`", stringify!($builder), "::build`].")]
            #[track_caller]
            pub fn new(input: impl NewDim, hidden: impl NewDim, time: impl Into<Dim>) -> Result<$layer> {
                $layer::builder(input, hidden, time).build()
            }

            /// The results for `x`, from a state of zeros.
            ///
            /// # Errors
            /// [`ErrorKind::NameNotFound`](namegrad_core::ErrorKind::NameNotFound) if `x` lacks a dim,
            /// [`ErrorKind::Shape`](namegrad_core::ErrorKind::Shape) if the features have another size or
            /// there are no steps, [`ErrorKind::DuplicateName`](namegrad_core::ErrorKind::DuplicateName) if
            /// `x` already has a dim of the results, [`ErrorKind::DType`](namegrad_core::ErrorKind::DType) if
            /// `x` does not have the dtype of the parameters.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Result<$output> {
                self.forward_with(x, $options::default())
            }

            /// The results for `x`, with options.
            ///
            /// # Errors
            /// Those of [`forward`](Self::forward), also for the states; for lengths that are out of range
            /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value).
            #[track_caller]
            pub fn forward_with(&self, x: &Tensor, options: $options) -> Result<$output> {
                let states = options.states();
                let Results { output, $($last,)* .. } =
                    self.stack.forward(x, states, options.lengths.as_ref(), None)?;
                Ok($output { output, $($last),* })
            }

            /// The results for sequences of different lengths. The states have the sequences in the order in
            /// which they were before they were packed.
            ///
            /// # Errors
            /// Same as [`forward`](Self::forward).
            #[track_caller]
            pub fn forward_packed(&self, x: &PackedSequence) -> Result<$output<PackedSequence>> {
                self.forward_packed_with(x, $options::default())
            }

            /// The results for sequences of different lengths, with options other than `lengths`.
            ///
            /// # Errors
            /// Same as [`forward_with`](Self::forward_with);
            /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) for options with `lengths`.
            #[track_caller]
            pub fn forward_packed_with(
                &self,
                x: &PackedSequence,
                options: $options,
            ) -> Result<$output<PackedSequence>> {
                if options.lengths.is_some() {
                    return Err(self.stack.lengths_twice());
                }
                let (padded, lengths, time) = x.padded(0.0, None)?;
                let Results { output, $($last,)* .. } =
                    self.stack.forward(&padded, options.states(), Some(&lengths), Some(time))?;
                Ok($output { output: x.repacked(&output)?, $($last),* })
            }

            fn text(&self) -> String {
                self.stack.text()
            }
        }

        impl Layer<Tensor, $output> for $layer {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Result<$output> {
                $layer::forward(self, x)
            }
        }

        impl Layer<PackedSequence, $output<PackedSequence>> for $layer {
            #[track_caller]
            fn forward(&self, x: &PackedSequence) -> Result<$output<PackedSequence>> {
                self.forward_packed(x)
            }
        }
    )*};
}
layers! {
    Rnn RnnBuilder RnnOptions RecurrentOutput { hn };
    Gru GruBuilder GruOptions RecurrentOutput { hn };
    Lstm LstmBuilder LstmOptions LstmOutput { hn, cn };
}

#[track_caller]
fn dims(layer: &'static str, input: impl NewDim, hidden: impl NewDim) -> Result<[Named; 2]> {
    Ok([named(layer, input)?, named(layer, hidden)?])
}

impl Rnn {
    /// A builder, to change the defaults of [`new`](Self::new).
    ///
    /// ```
    /// use namegrad::nn::Nonlinearity;
    /// use namegrad::prelude::*;
    /// let builder = Rnn::builder(("embed", 3), ("hidden", 4), "time");
    /// let rnn = builder.nonlinearity(Nonlinearity::Relu).bias(false).build()?;
    /// assert_eq!(rnn.named_parameters().len(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn builder(input: impl NewDim, hidden: impl NewDim, time: impl Into<Dim>) -> RnnBuilder {
        RnnBuilder { building: Building::new(dims("Rnn", input, hidden), time.into()), cell: Cell::Tanh }
    }
}

impl RnnBuilder {
    /// The function that is applied at every step; the default is tanh.
    pub fn nonlinearity(mut self, nonlinearity: Nonlinearity) -> RnnBuilder {
        self.cell = nonlinearity.cell();
        self
    }
}

impl Gru {
    /// A builder, to change the defaults of [`new`](Self::new).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let gru = Gru::builder(("embed", 3), ("hidden", 4), "time").layers(3).dropout(0.1).build()?;
    /// assert_eq!(gru.named_parameters().len(), 3 * 4);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn builder(input: impl NewDim, hidden: impl NewDim, time: impl Into<Dim>) -> GruBuilder {
        GruBuilder { building: Building::new(dims("Gru", input, hidden), time.into()), cell: Cell::Gru }
    }
}

impl Lstm {
    /// A builder, to change the defaults of [`new`](Self::new).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let lstm = Lstm::builder(("embed", 3), ("hidden", 4), "time").proj_size(2).build()?;
    /// let result = lstm.forward(&Tensor::randn([("time", 5), ("N", 2), ("embed", 3)])?)?;
    /// assert_eq!(result.output.shape().to_string(), "[time=5, N=2, hidden=2]");
    /// assert_eq!(result.cn.shape().to_string(), "[layer=1, N=2, hidden=4]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn builder(input: impl NewDim, hidden: impl NewDim, time: impl Into<Dim>) -> LstmBuilder {
        LstmBuilder { building: Building::new(dims("Lstm", input, hidden), time.into()), cell: Cell::Lstm }
    }
}

impl LstmBuilder {
    /// The size to which states are projected, smaller than that of the hidden dim; the default is 0, for no
    /// projection.
    pub fn proj_size(mut self, proj_size: usize) -> LstmBuilder {
        self.building.proj_size = proj_size;
        self
    }
}

impl RnnOptions {
    fn states(&self) -> [Option<&Tensor>; 2] {
        [self.h0.as_ref(), None]
    }
}

impl GruOptions {
    fn states(&self) -> [Option<&Tensor>; 2] {
        [self.h0.as_ref(), None]
    }
}

impl LstmOptions {
    fn states(&self) -> [Option<&Tensor>; 2] {
        [self.h0.as_ref(), self.c0.as_ref()]
    }
}
