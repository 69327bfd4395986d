//! [`RnnCell`], [`LstmCell`] and [`GruCell`].

use super::stack::{Nonlinearity, Settings, Step};
use crate::Module;
use crate::dims::{Named, named};
use namegrad_autograd::Tensor;
use namegrad_core::{Cell, DType, NewDim, Result, default_dtype};
use namegrad_macros::Setters;

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
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = RnnCell::text)]
pub struct RnnCell {
    #[module(flatten)]
    step: Step,
}

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
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = LstmCell::text)]
pub struct LstmCell {
    #[module(flatten)]
    step: Step,
}

/// A step of [`Gru`](super::Gru), from a state to the next.
///
/// # Shapes
/// Those of [`RnnCell`].
///
/// # Parameters
/// Those of [`RnnCell`], where `gates` are `r`, `z` and `n`, 3 times `hidden`.
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
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = GruCell::text)]
pub struct GruCell {
    #[module(flatten)]
    step: Step,
}

/// The parts of the cells that differ only in names: `new`, `builder` and the builder itself.
macro_rules! cells {
    ($($layer:ident $builder:ident $cell:ident;)*) => {$(
        #[doc = concat!("A builder for [`", stringify!($layer), "`]; see [`", stringify!($layer), "::builder`].")]
        #[derive(Clone, Debug, Setters)]
        #[setters(builder)]
        pub struct $builder {
            #[setters(skip)]
            dims: Result<[Named; 2]>,
            #[setters(skip)]
            cell: Cell,
            /// Whether there are biases; the default is `true`.
            bias: bool,
            /// The dtype of the parameters; the default is the default dtype.
            dtype: DType,
        }

        impl $builder {
            /// Builds the cell.
            ///
            /// # Errors
            /// [`ErrorKind::InvalidName`](namegrad_core::ErrorKind::InvalidName) for an invalid name,
            /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) for an invalid size,
            /// [`ErrorKind::DType`](namegrad_core::ErrorKind::DType) for a dtype that is not floating-point.
            #[track_caller]
            pub fn build(self) -> Result<$layer> {
                let $builder { dims, cell, bias, dtype } = self;
                let [input, hidden] = dims?;
                let layer = stringify!($layer);
                let settings = Settings { layer, cell, input, hidden, bias, dtype, proj_size: 0 };
                Ok($layer { step: Step::new(settings)? })
            }
        }

        impl $layer {
            /// A cell from the features `input` to states `hidden`. Each is a size with or without a name.
            ///
            /// # Errors
            /// [`ErrorKind::InvalidName`](namegrad_core::ErrorKind::InvalidName),
            /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) for a negative size or a hidden size of
            /// 0.
            #[track_caller]
            pub fn new(input: impl NewDim, hidden: impl NewDim) -> Result<$layer> {
                $layer::builder(input, hidden).build()
            }

            /// A builder, to change the defaults of [`new`](Self::new).
            #[track_caller]
            pub fn builder(input: impl NewDim, hidden: impl NewDim) -> $builder {
                let dims = match (named(stringify!($layer), input), named(stringify!($layer), hidden)) {
                    (Ok(input), Ok(hidden)) => Ok([input, hidden]),
                    (Err(error), _) | (_, Err(error)) => Err(error),
                };
                $builder { dims, cell: Cell::$cell, bias: true, dtype: default_dtype() }
            }

            fn text(&self) -> String {
                self.step.text()
            }
        }
    )*};
}
cells! {
    RnnCell RnnCellBuilder Tanh;
    LstmCell LstmCellBuilder Lstm;
    GruCell GruCellBuilder Gru;
}

impl RnnCellBuilder {
    /// The function that is applied; the default is tanh.
    pub fn nonlinearity(mut self, nonlinearity: Nonlinearity) -> RnnCellBuilder {
        self.cell = nonlinearity.cell();
        self
    }
}

impl RnnCell {
    /// The state after `h`; `None` is a state of zeros.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`](namegrad_core::ErrorKind::NameNotFound) if an input lacks a dim,
    /// [`ErrorKind::Shape`](namegrad_core::ErrorKind::Shape) if one has another size,
    /// [`ErrorKind::DType`](namegrad_core::ErrorKind::DType) if an input does not have the dtype of the
    /// parameters.
    #[track_caller]
    pub fn forward<'a>(&self, x: &Tensor, h: impl Into<Option<&'a Tensor>>) -> Result<Tensor> {
        let [h, _] = self.step.forward(x, [h.into(), None])?;
        Ok(h)
    }
}

impl GruCell {
    /// The state after `h`; `None` is a state of zeros.
    ///
    /// # Errors
    /// Same as [`RnnCell::forward`].
    #[track_caller]
    pub fn forward<'a>(&self, x: &Tensor, h: impl Into<Option<&'a Tensor>>) -> Result<Tensor> {
        let [h, _] = self.step.forward(x, [h.into(), None])?;
        Ok(h)
    }
}

impl LstmCell {
    /// The state and the cells after `(h, c)`; `None` are zeros.
    ///
    /// # Errors
    /// Same as [`RnnCell::forward`].
    #[track_caller]
    pub fn forward<'a>(
        &self,
        x: &Tensor,
        state: impl Into<Option<(&'a Tensor, &'a Tensor)>>,
    ) -> Result<(Tensor, Tensor)> {
        let (h, c) = state.into().unzip();
        let [h, c] = self.step.forward(x, [h, c])?;
        Ok((h, c))
    }
}
