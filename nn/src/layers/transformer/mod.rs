//! Layers of attention and linear maps: [`TransformerEncoder`], [`TransformerDecoder`] and [`Transformer`],
//! which has both. What their layers share is in this file.

mod decoder;
mod encoder;
mod whole;

pub use decoder::{
    TransformerDecoder, TransformerDecoderLayer, TransformerDecoderLayerBuilder, TransformerDecoderOptions,
};
pub use encoder::{
    TransformerEncoder, TransformerEncoderLayer, TransformerEncoderLayerBuilder, TransformerEncoderOptions,
};
pub use whole::{Transformer, TransformerBuilder};

use super::attention::dims::{Seq, open};
use super::place::{Named, dim_text, named};
use super::{LayerNorm, Linear, MultiheadAttention, MultiheadAttentionBuilder};
use crate::Dropout;
use crate::{Field, Visitor};
use namegrad_autograd::{Tensor, called_here};
use namegrad_core::{DType, Dim, Name, NewDim, Result, default_dtype};
use std::panic::Location;

/// A function by element.
type Activation = fn(&Tensor) -> Result<Tensor>;

/// What the layers of an encoder and a decoder are made for.
#[derive(Clone, Debug)]
struct Config {
    layer: &'static str,
    dims: Result<[Named; 2]>,
    seq: Result<Seq>,
    memory_seq: Option<Result<Seq>>,
    dim_feedforward: Result<Named>,
    dropout: f64,
    activation: Activation,
    layer_norm_eps: f64,
    norm_first: bool,
    bias: bool,
    batch_first: bool,
    causal: bool,
    dtype: DType,
}

impl Config {
    #[track_caller]
    fn new(layer: &'static str, embed: impl NewDim, heads: impl NewDim, seq: impl Into<Dim>) -> Config {
        Config {
            layer,
            dims: named(layer, embed).and_then(|embed| Ok([embed, named(layer, heads)?])),
            seq: Seq::new(layer, seq),
            memory_seq: None,
            dim_feedforward: Ok((None, 2048)),
            dropout: 0.1,
            activation: Tensor::relu,
            layer_norm_eps: 1e-5,
            norm_first: false,
            bias: true,
            batch_first: false,
            causal: false,
            dtype: default_dtype(),
        }
    }

    #[track_caller]
    fn embed(&self) -> Result<Named> {
        Ok(self.dims.clone()?[0])
    }

    fn attention(&self) -> Result<MultiheadAttentionBuilder> {
        let [embed, heads] = self.dims.clone()?;
        let attention = MultiheadAttention::builder(open(embed), open(heads), self.seq.clone()?.dim());
        Ok(attention.dropout(self.dropout).bias(self.bias).batch_first(self.batch_first).dtype(self.dtype))
    }

    #[track_caller]
    fn self_attention(&self) -> Result<MultiheadAttention> {
        self.attention()?.causal(self.causal).build().map_err(|error| error.of(self.layer))
    }

    #[track_caller]
    fn norm(&self) -> Result<LayerNorm> {
        let norm = LayerNorm::builder([open(self.embed()?)]).eps(self.layer_norm_eps).bias(self.bias);
        norm.dtype(self.dtype).build().map_err(|error| error.of(self.layer))
    }

    /// The linear maps with the activation between them.
    #[track_caller]
    fn feed_forward(&self) -> Result<FeedForward> {
        let (embed, mut hidden) = (self.embed()?, self.dim_feedforward.clone()?);
        if embed.0.is_some() && hidden.0.is_none() {
            hidden.0 = Some(Name::new("feedforward")?);
        }
        let caller = Location::caller();
        let linear = |from: Named, to: Named| {
            let layer = Linear::builder(open(from), open(to)).bias(self.bias).dtype(self.dtype).build();
            layer.map_err(|error| error.of(self.layer).at(caller))
        };
        let dropout = || Dropout::new(self.dropout).map_err(|error| error.of(self.layer).at(caller));
        Ok(FeedForward {
            linear1: linear(embed, hidden)?,
            dropout: dropout()?,
            linear2: linear(hidden, embed)?,
            activation: self.activation,
            dropout2: dropout()?,
        })
    }

    /// `embed=64, heads=4, along seq`.
    fn text(&self) -> String {
        match (&self.dims, &self.seq) {
            (Ok([embed, heads]), Ok(seq)) => {
                format!("{}, heads={}, along {}", dim_text(*embed), heads.1, seq.text())
            }
            _ => String::new(),
        }
    }
}

/// `linear2(dropout(activation(linear1(x))))`, with dropout after it, too.
#[derive(Clone, Debug)]
struct FeedForward {
    linear1: Linear,
    dropout: Dropout,
    linear2: Linear,
    activation: Activation,
    dropout2: Dropout,
}

impl FeedForward {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = (self.activation)(&self.linear1.forward(x)?)?;
        self.dropout2.forward(&self.linear2.forward(&self.dropout.forward(&h)?)?)
    }
}

impl Field for FeedForward {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("linear1", &self.linear1);
        visitor.field("dropout", &self.dropout);
        visitor.field("linear2", &self.linear2);
        visitor.field("dropout2", &self.dropout2);
    }
}

/// `norm(x + f(x))`, or `x + f(norm(x))` if the norm is first.
#[track_caller]
fn residual(
    x: &Tensor,
    norm: &LayerNorm,
    norm_first: bool,
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let (caller, _called) = (Location::caller(), called_here()); // not that of the closure
    let f = |x: &Tensor| f(x).map_err(|error| error.at(caller));
    match norm_first {
        true => x.add(&f(&norm.forward(x)?)?),
        false => norm.forward(&x.add(&f(x)?)?),
    }
}

/// The setters that the builders share.
macro_rules! setters {
    ($($builder:ident)*) => {$(
        impl $builder {
            /// The features between the two linear maps, a size with or without a name; the default is
            /// `("feedforward", 2048)`.
            #[track_caller]
            #[must_use]
            pub fn dim_feedforward(mut self, dim: impl NewDim) -> $builder {
                self.config.dim_feedforward = named(self.config.layer, dim);
                self
            }

            /// The probability to drop an element, and a weight of the attention, in training; the default is
            /// 0.1.
            #[must_use]
            pub fn dropout(mut self, p: f64) -> $builder {
                self.config.dropout = p;
                self
            }

            /// The function between the two linear maps, such as `Tensor::gelu`; the default is
            /// `Tensor::relu`.
            #[must_use]
            pub fn activation(mut self, activation: fn(&Tensor) -> Result<Tensor>) -> $builder {
                self.config.activation = activation;
                self
            }

            /// What the norms add to the variance; the default is `1e-5`.
            #[must_use]
            pub fn layer_norm_eps(mut self, eps: f64) -> $builder {
                self.config.layer_norm_eps = eps;
                self
            }

            /// Whether the input of attention and linear maps is normalized, and not their sum with it; the
            /// default is `false`.
            #[must_use]
            pub fn norm_first(mut self, norm_first: bool) -> $builder {
                self.config.norm_first = norm_first;
                self
            }

            /// Whether linear maps, attention and norms have biases; the default is `true`.
            #[must_use]
            pub fn bias(mut self, bias: bool) -> $builder {
                self.config.bias = bias;
                self
            }

            /// Whether inputs without names are `[N, seq, embed]`; by default they are `[seq, N, embed]`, as
            /// in PyTorch.
            #[must_use]
            pub fn batch_first(mut self, batch_first: bool) -> $builder {
                self.config.batch_first = batch_first;
                self
            }

            /// The dtype of the parameters; the default is the default dtype.
            #[must_use]
            pub fn dtype(mut self, dtype: DType) -> $builder {
                self.config.dtype = dtype;
                self
            }
        }
    )*};
}

setters! { TransformerEncoderLayerBuilder TransformerDecoderLayerBuilder TransformerBuilder }
