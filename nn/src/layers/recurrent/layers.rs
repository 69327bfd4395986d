//! [`Rnn`], [`Lstm`] and [`Gru`]: three kinds of [`Recurrent`].

use super::*;
use namegrad_core::args::NewName;

/// A recurrent layer: [`Rnn`], [`Lstm`] or [`Gru`].
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = self.stack.text())]
pub struct Recurrent<K> {
    #[module(flatten)]
    stack: Stack,
    kind: PhantomData<fn() -> K>,
}

/// An Elman network: `h = tanh(W_ih x + b_ih + W_hh h + b_hh)` at every step, for one or several layers, each
/// of which takes the states of the one below.
///
/// # Shapes
/// With 2 `directions` in a bidirectional layer, otherwise 1:
/// - `x`: any dims that include the time and the features, in any order. All other dims are batch dims.
/// - `output`: the dims of `x`, with `hidden` of `directions` times its size in place of the features: the
///   states of the last layer after each step, those of the reverse direction behind the others
/// - `h0`, `hn`: `[layer, ..]`, where `layer` has `num_layers` times `directions` elements, layer by layer and
///   forward before reverse, and `..` are the dims of `x` without the time and with `hidden` in place of the
///   features. A named `h0` can lack batch dims, or have them with size 1: it is then the same for the batch
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
pub type Rnn = Recurrent<RnnOptions>;

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
/// - `h0`, `hn`, `c0`, `cn`: `[layer, ..]`, where `layer` has `num_layers` times `directions` elements, layer
///   by layer and forward before reverse, and `..` are the dims of `x` without the time and with `hidden` in
///   place of the features. Named ones can lack batch dims, or have them with size 1: they are then the same
///   for the batch
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
/// let lstm = Lstm::builder(("embed", 3), ("hidden", 4), "time").num_layers(2).bidirectional(true).build()?;
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
/// Starting from a state that is learned, and is the same for the whole batch:
/// ```
/// use namegrad::prelude::*;
/// let lstm = Lstm::new(("embed", 3), ("hidden", 4), "time")?;
/// let first = Parameter::new(Tensor::zeros([("hidden", 4)])?)?;
/// let x = Tensor::randn([("N", 2), ("time", 6), ("embed", 3)])?;
/// let result = lstm.forward_with(&x, LstmOptions::new().h0(&first.tensor()))?; // the cells start at 0
/// assert_eq!(result.hn.shape().to_string(), "[layer=1, N=2, hidden=4]");
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
pub type Lstm = Recurrent<LstmOptions>;

/// Gated recurrent units, of one or several layers, each of which takes the states of the one below. With `σ`
/// the sigmoid, at every step:
///
/// ```text
/// r = σ(W_ir x + b_ir + W_hr h + b_hr)       n = tanh(W_in x + b_in + r (W_hn h + b_hn))
/// z = σ(W_iz x + b_iz + W_hz h + b_hz)       h = (1 - z) n + z h
/// ```
///
/// # Shapes
/// Same as [`Rnn`].
///
/// # Parameters
/// Same as [`Rnn`], where `gates` are `r`, `z` and `n`, 3 times `hidden`.
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
pub type Gru = Recurrent<GruOptions>;

/// A builder for [`Rnn`]; see [`Rnn::builder`](Recurrent::builder).
///
/// ```
/// use namegrad::nn::Nonlinearity;
/// use namegrad::prelude::*;
/// let builder = Rnn::builder(("embed", 3), ("hidden", 4), "time");
/// let rnn = builder.nonlinearity(Nonlinearity::Relu).bias(false).build()?;
/// assert_eq!(rnn.named_parameters().len(), 2);
/// # Ok::<(), Error>(())
/// ```
pub type RnnBuilder = RecurrentBuilder<RnnOptions>;

/// A builder for [`Lstm`]; see [`Lstm::builder`](Recurrent::builder).
///
/// ```
/// use namegrad::prelude::*;
/// let lstm = Lstm::builder(("embed", 3), ("hidden", 4), "time").proj_size(2).build()?;
/// let result = lstm.forward(&Tensor::randn([("time", 5), ("N", 2), ("embed", 3)])?)?;
/// assert_eq!(result.output.shape().to_string(), "[time=5, N=2, hidden=2]");
/// assert_eq!(result.cn.shape().to_string(), "[layer=1, N=2, hidden=4]");
/// # Ok::<(), Error>(())
/// ```
pub type LstmBuilder = RecurrentBuilder<LstmOptions>;

/// A builder for [`Gru`]; see [`Gru::builder`](Recurrent::builder).
///
/// ```
/// use namegrad::prelude::*;
/// let gru = Gru::builder(("embed", 3), ("hidden", 4), "time").num_layers(3).dropout(0.1).build()?;
/// assert_eq!(gru.named_parameters().len(), 3 * 4);
/// # Ok::<(), Error>(())
/// ```
pub type GruBuilder = RecurrentBuilder<GruOptions>;

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
pub type RnnOptions = StateOptions<false>;

/// The options of [`Gru::forward_with`].
pub type GruOptions = StateOptions<true>;

/// The options of [`Rnn`] and [`Gru`].
#[derive(Clone, Debug, Default, Setters)]
pub struct StateOptions<const GATED: bool> {
    /// The first states, `[layer, ..]` like `hn`; zeros if they are not given. The dim `layer` can be left
    /// out if it has one element. If all dims have names, so can batch dims, along which it is expanded.
    pub h0: Option<Tensor>,
    /// The length of each sequence, between 1 and the number of steps. Beyond its end, a sequence has the
    /// output 0, and its last state is that at its end.
    pub lengths: Option<Tensor>,
}

/// The options of [`Lstm::forward_with`].
#[derive(Clone, Debug, Default, Setters)]
pub struct LstmOptions {
    /// The first states, `[layer, ..]` like `hn`; zeros if they are not given. The dim `layer` can be left
    /// out if it has one element. If all dims have names, so can batch dims, along which it is expanded.
    pub h0: Option<Tensor>,
    /// The first cells, like `cn`, with the same rules as `h0`; zeros if they are not given.
    pub c0: Option<Tensor>,
    /// The length of each sequence, between 1 and the number of steps. Beyond its end, a sequence has the
    /// output 0, and its last state is that at its end.
    pub lengths: Option<Tensor>,
}

/// A builder for a recurrent layer; see [`Recurrent::builder`].
#[derive(Clone, Debug, Setters)]
#[setters(generics(K: RecurrentKind), layer = K::NAMES[0])]
pub(super) struct RecurrentConfig {
    #[setters(skip, default = layer)]
    pub(super) layer: &'static str,
    #[setters(skip, default = K::CELL)]
    pub(super) cell: Cell,
    /// The function that is applied at every step; the default is tanh.
    #[setters(of(RnnBuilder))]
    pub(super) nonlinearity: Nonlinearity,
    /// The features of the input, a size with or without a name.
    pub(super) input: Named,
    /// The features of the states, a size with or without a name.
    pub(super) hidden: Named,
    /// The dim to step along: a name, or a number if inputs have no names.
    pub(super) time: Seq,
    /// Whether it is a single step, of a cell.
    #[setters(skip)]
    pub(super) is_step: bool,
    /// The number of layers on top of each other; the default is 1.
    #[setters(default = 1)]
    pub(super) num_layers: usize,
    /// Whether each layer also steps from the last step to the first; the default is `false`.
    pub(super) bidirectional: bool,
    /// The probability to drop an element between two layers in training; the default is 0.
    pub(super) dropout: f64,
    /// The name of the dim of layers and directions in states; the default is `layer`, or no name if the
    /// hidden dim has none.
    pub(super) layer_dim: Option<NewName>,
    /// Whether there are biases; the default is `true`.
    #[setters(default = true)]
    pub(super) bias: bool,
    /// The size of a state, or 0 for `hidden`.
    /// The size to which states are projected, smaller than that of the hidden dim; the default is 0, for no
    /// projection.
    #[setters(of(LstmBuilder))]
    pub(super) proj_size: usize,
    /// The dtype of the parameters; the default is the default dtype.
    pub(super) dtype: DType,
}

impl<K: RecurrentKind> RecurrentBuilder<K> {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::DuplicateName`] if features and time have
    /// the same, [`ErrorKind::Value`] for a size or an option that is out of range, [`ErrorKind::DType`] for
    /// a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<Recurrent<K>> {
        let stack = made(K::NAMES[0], Stack::new(self.config()?))?;
        Ok(Recurrent { stack, kind: PhantomData })
    }
}

impl<K: RecurrentKind> Recurrent<K> {
    /// The results for `x`, from a state of zeros.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim, [`ErrorKind::Shape`] if the features have another size
    /// or there are no steps, [`ErrorKind::DuplicateName`] if `x` already has a dim of the results,
    /// [`ErrorKind::DType`] if `x` does not have the dtype of the parameters.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<K::Output<Tensor>> {
        self.forward_with(x, K::default())
    }

    /// The results for `x`, with options.
    ///
    /// # Errors
    /// Same as [`forward`](Self::forward), also for the states; [`ErrorKind::NameMismatch`] if states and
    /// lengths have different names for a batch dim; for lengths that are out of range [`ErrorKind::Value`].
    #[track_caller]
    pub fn forward_with(&self, x: &Tensor, options: K) -> Result<K::Output<Tensor>> {
        let (states, lengths) = options.given();
        let [output, hn, cn] = self.stack.forward(x, states, lengths, None)?;
        Ok(K::output(output, hn, cn))
    }

    /// The results for sequences of different lengths. The states have the sequences in the order in
    /// which they were before they were packed.
    ///
    /// # Errors
    /// Same as [`forward`](Self::forward).
    #[track_caller]
    pub fn forward_packed(&self, x: &PackedSequence) -> Result<K::Output<PackedSequence>> {
        self.forward_packed_with(x, K::default())
    }

    /// The results for sequences of different lengths, with options other than `lengths`.
    ///
    /// # Errors
    /// Same as [`forward_with`](Self::forward_with); [`ErrorKind::Value`] for options with `lengths`.
    #[track_caller]
    pub fn forward_packed_with(&self, x: &PackedSequence, options: K) -> Result<K::Output<PackedSequence>> {
        let (states, lengths) = options.given();
        let (output, hn, cn) = self.stack.forward_packed(x, states, lengths)?;
        Ok(K::output(output, hn, cn))
    }
}

impl<K: RecurrentKind> Layer<Tensor, K::Output<Tensor>> for Recurrent<K> {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<K::Output<Tensor>> {
        Recurrent::forward(self, x)
    }
}

impl<K: RecurrentKind> Layer<PackedSequence, K::Output<PackedSequence>> for Recurrent<K> {
    #[track_caller]
    fn forward(&self, x: &PackedSequence) -> Result<K::Output<PackedSequence>> {
        self.forward_packed(x)
    }
}
