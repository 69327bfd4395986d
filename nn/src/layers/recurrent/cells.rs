//! [`RnnCell`], [`LstmCell`] and [`GruCell`]: three kinds of [`RecurrentCell`].

use super::*;

/// A step of a recurrent layer: [`RnnCell`], [`LstmCell`] or [`GruCell`].
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = self.step.text())]
pub struct RecurrentCell<K> {
    #[module(flatten)]
    step: Stack,
    kind: PhantomData<fn() -> K>,
}

/// A step of [`Rnn`](super::Rnn): `h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`.
///
/// # Shapes
/// - `x`: any dims that include the features; all others are batch dims
/// - `h`, `h'`: the dims of `x`, with `hidden` in place of the features
///
/// The dims are found by name. Where the layer or a tensor has no name, the features are the last dim.
///
/// # Parameters
/// - `weight_ih`: `[gates, in]`, `weight_hh`: `[gates, hidden]`, `bias_ih`, `bias_hh`: `[gates]`, uniform in
///   ±1/√hidden, where `gates` has as many elements as `hidden`
///
/// # Examples
/// ```
/// use namegrad::nn::RnnCell;
/// use namegrad::prelude::*;
/// let cell = RnnCell::new(("embed", 3), ("hidden", 4))?;
/// let x = Tensor::randn([("N", 2), ("embed", 3)])?;
/// let h = cell.forward(&x, None)?; // from a state of zeros
/// assert_eq!(cell.forward(&x, &h)?.shape().to_string(), "[N=2, hidden=4]");
/// # Ok::<(), Error>(())
/// ```
pub type RnnCell = RecurrentCell<RnnOptions>;

/// A step of [`Lstm`](super::Lstm), from a state `h` and cells `c` to the next.
///
/// # Shapes
/// - `x`: any dims that include the features; all others are batch dims
/// - `h`, `c` and the results: the dims of `x`, with `hidden` in place of the features
///
/// The dims are found by name. Where the layer or a tensor has no name, the features are the last dim.
///
/// # Parameters
/// - `weight_ih`: `[gates, in]`, `weight_hh`: `[gates, hidden]`, `bias_ih`, `bias_hh`: `[gates]`, uniform in
///   ±1/√hidden, where `gates` are `i`, `f`, `g` and `o`, 4 times `hidden`
///
/// # Examples
/// ```
/// use namegrad::nn::LstmCell;
/// use namegrad::prelude::*;
/// let cell = LstmCell::new(("embed", 3), ("hidden", 4))?;
/// let x = Tensor::randn([("time", 5), ("N", 2), ("embed", 3)])?;
/// let (mut h, mut c) = cell.forward(&x.select("time", 0)?, None)?;
/// for t in 1..5 {
///     (h, c) = cell.forward(&x.select("time", t)?, (&h, &c))?;
/// }
/// assert_eq!((h.shape().to_string(), c.shape()), ("[N=2, hidden=4]".into(), h.shape()));
/// # Ok::<(), Error>(())
/// ```
pub type LstmCell = RecurrentCell<LstmOptions>;

/// A step of [`Gru`](super::Gru), from a state to the next.
///
/// # Shapes
/// Same as [`RnnCell`].
///
/// # Parameters
/// Same as [`RnnCell`], where `gates` are `r`, `z` and `n`, 3 times `hidden`.
///
/// # Examples
/// ```
/// use namegrad::nn::GruCell;
/// use namegrad::prelude::*;
/// let cell = GruCell::new(("embed", 3), ("hidden", 4))?;
/// let (x, h) = (Tensor::randn([("N", 2), ("embed", 3)])?, Tensor::zeros([("N", 2), ("hidden", 4)])?);
/// assert!(cell.forward(&x, &h)?.allclose(&cell.forward(&x, None)?)?);
/// # Ok::<(), Error>(())
/// ```
pub type GruCell = RecurrentCell<GruOptions>;

/// A builder for [`RnnCell`]; see [`RnnCell::builder`](RecurrentCell::builder).
pub type RnnCellBuilder = RecurrentCellBuilder<RnnOptions>;

/// A builder for [`LstmCell`]; see [`LstmCell::builder`](RecurrentCell::builder).
pub type LstmCellBuilder = RecurrentCellBuilder<LstmOptions>;

/// A builder for [`GruCell`]; see [`GruCell::builder`](RecurrentCell::builder).
pub type GruCellBuilder = RecurrentCellBuilder<GruOptions>;

/// A builder for a step of a recurrent layer; see [`RecurrentCell::builder`].
#[derive(Clone, Debug, Setters)]
#[setters(generics(K: RecurrentKind), layer = K::NAMES[1])]
struct RecurrentCellConfig {
    /// The features of the input, a size with or without a name.
    input: Named,
    /// The features of the states, a size with or without a name.
    hidden: Named,
    /// The function that is applied; the default is tanh.
    #[setters(of(RnnCellBuilder))]
    nonlinearity: Nonlinearity,
    /// Whether there are biases; the default is `true`.
    #[setters(default = true)]
    bias: bool,
    /// The dtype of the parameters; the default is the default dtype.
    dtype: DType,
}

impl<K: RecurrentKind> RecurrentCellBuilder<K> {
    /// Builds the cell.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size,
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<RecurrentCell<K>> {
        let RecurrentCellConfig { input, hidden, nonlinearity, bias, dtype } = self.config()?;
        let layer = Recurrent::<K>::builder(open(input), open(hidden), 0);
        let mut settings = layer.bias(bias).dtype(dtype).config()?;
        (settings.layer, settings.nonlinearity, settings.is_step) = (K::NAMES[1], nonlinearity, true);
        Ok(RecurrentCell { step: made(K::NAMES[1], Stack::new(settings))?, kind: PhantomData })
    }
}

impl<K: RecurrentKind> RecurrentCell<K> {
    /// The state after `state`, which is `h`, or `(h, c)` for an [`LstmCell`]; `None` is a state of zeros.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if an input lacks a dim, [`ErrorKind::Shape`] if one has another size,
    /// [`ErrorKind::DType`] if an input does not have the dtype of the parameters.
    #[track_caller]
    pub fn forward<'a>(&self, x: &Tensor, state: impl Into<Option<K::Before<'a>>>) -> Result<K::After> {
        let [_, h, c] = self.step.forward(x, K::before(state.into()), None, None)?;
        Ok(K::after([h, c]))
    }
}
