//! Layers of attention and linear maps: [`TransformerEncoder`], [`TransformerDecoder`] and [`Transformer`],
//! which has both. What their layers share is in this file.

mod decoder;
mod encoder;
mod whole;

pub use {decoder::*, encoder::*, whole::*};

use super::*;
use crate::Dropout;
use namegrad_autograd::called_here;
use std::panic::Location;

/// A function by element.
type Activation = fn(&Tensor) -> Result<Tensor>;

/// The configuration of the layers of an encoder and a decoder.
#[derive(Clone, Debug, Setters)]
#[setters(builds(TransformerEncoderLayer, TransformerDecoderLayer, Transformer))]
struct TransformerConfig {
    #[setters(skip, default = layer)]
    layer: &'static str,
    /// The features, a size with or without a name.
    embed: Named,
    /// The number of heads, with or without a name.
    heads: Named,
    /// The name or position of the sequence.
    seq: Seq,
    /// The sequence in the memory, if it has another name than in the target.
    #[setters(of(TransformerDecoderLayerBuilder))]
    memory_seq: Option<Seq>,
    /// The sequence in the source, if it has another name than in the target.
    #[setters(of(TransformerBuilder))]
    source_seq: Option<Seq>,
    /// The number of layers of the encoder; the default is 6.
    #[setters(of(TransformerBuilder), default = 6)]
    num_encoder_layers: usize,
    /// The number of layers of the decoder; the default is 6.
    #[setters(of(TransformerBuilder), default = 6)]
    num_decoder_layers: usize,
    /// The features between the two linear maps, a size with or without a name; the default is
    /// `("feedforward", 2048)`.
    #[setters(default = (None, 2048))]
    dim_feedforward: Named,
    /// The probability to drop an element, and a weight of the attention, in training; the default is 0.1.
    #[setters(default = 0.1)]
    dropout: f64,
    /// The function between the two linear maps, such as `Tensor::gelu`; the default is `Tensor::relu`.
    #[setters(default = Tensor::relu)]
    activation: Activation,
    /// The number that the norms add to the variance; the default is `1e-5`.
    #[setters(default = 1e-5)]
    layer_norm_eps: f64,
    /// Whether the input of attention and linear maps is normalized, and not their sum with it; the default
    /// is `false`.
    norm_first: bool,
    /// Whether linear maps, attention and norms have biases; the default is `true`.
    #[setters(default = true)]
    bias: bool,
    /// Whether inputs without names are `[N, seq, embed]`; by default they are `[seq, N, embed]`, as in
    /// PyTorch.
    batch_first: bool,
    /// Whether an element of the sequence, which is the target in a decoder, sees only those up to itself, and
    /// the whole memory; the default is `false`.
    is_causal: bool,
    /// The dtype of the parameters; the default is the default dtype.
    dtype: DType,
}

impl TransformerConfig {
    fn attention(&self) -> MultiheadAttentionBuilder {
        let attention = MultiheadAttention::builder(open(self.embed), open(self.heads), self.seq.dim());
        attention.dropout(self.dropout).bias(self.bias).batch_first(self.batch_first).dtype(self.dtype)
    }

    fn linear(&self, from: Named, to: Named) -> Result<Linear> {
        Linear::builder(open(from), open(to)).bias(self.bias).dtype(self.dtype).build()
    }

    #[track_caller]
    #[inline(never)]
    fn norm(&self) -> Result<LayerNorm> {
        let norm = LayerNorm::builder([open(self.embed)]).eps(self.layer_norm_eps).bias(self.bias);
        norm.dtype(self.dtype).build().map_err(|error| error.of(self.layer))
    }

    /// A layer of an encoder, or one of a decoder, which attends to a memory as well.
    fn layer(&self, decodes: bool) -> Result<TransformerLayer> {
        let (embed, mut hidden) = (self.embed, self.dim_feedforward);
        if embed.0.is_some() && hidden.0.is_none() {
            hidden.0 = Some(Name::new("feedforward")?);
        }
        let to_memory = match self.memory_seq {
            Some(seq) => self.attention().key_seq(seq.dim()),
            None => self.attention(),
        };
        Ok(TransformerLayer {
            self_attn: self.attention().is_causal(self.is_causal).build()?,
            multihead_attn: if decodes { Some(to_memory.build()?) } else { None },
            linear1: self.linear(embed, hidden)?,
            dropout: Dropout::new(self.dropout)?,
            linear2: self.linear(hidden, embed)?,
            activation: self.activation,
            dropout2: Dropout::new(self.dropout)?,
            norm1: self.norm()?,
            norm2: self.norm()?,
            norm3: if decodes { Some(self.norm()?) } else { None },
            dropout1: Dropout::new(self.dropout)?,
            norm_first: self.norm_first,
        })
    }
}

/// A layer of an encoder or a decoder: attention, and two linear maps with an activation between them, each
/// with a residual connection and a norm.
#[derive(Clone, Debug, Module)]
#[module(crate = crate, part)]
struct TransformerLayer {
    self_attn: MultiheadAttention,
    /// The attention to the memory, in a decoder.
    multihead_attn: Option<MultiheadAttention>,
    linear1: Linear,
    dropout: Dropout,
    linear2: Linear,
    #[module(skip)]
    activation: Activation,
    dropout2: Dropout,
    norm1: LayerNorm,
    norm2: LayerNorm,
    norm3: Option<LayerNorm>,
    dropout1: Dropout,
    norm_first: bool,
}

impl TransformerLayer {
    /// The output for `x` with these masks, and for a memory with masks of its own.
    #[track_caller]
    fn forward(
        &self,
        x: &Tensor,
        masks: MultiheadAttentionOptions<'_>,
        memory: Option<(&Tensor, MultiheadAttentionOptions<'_>)>,
    ) -> Result<Tensor> {
        let mut x = self.residual(x, &self.norm1, &|x| {
            self.dropout1.forward(&self.self_attn.attend_with(x, x, x, masks)?.output)
        })?;
        if let (Some(attention), Some((memory, masks))) = (&self.multihead_attn, memory) {
            x = self.residual(&x, &self.norm2, &|x| {
                self.dropout1.forward(&attention.attend_with(x, memory, memory, masks)?.output)
            })?;
        }
        self.residual(&x, self.norm3.as_ref().unwrap_or(&self.norm2), &|x| {
            let h = (self.activation)(&self.linear1.forward(x)?)?;
            self.dropout2.forward(&self.linear2.forward(&self.dropout.forward(&h)?)?)
        })
    }

    /// `norm(x + f(x))`, or `x + f(norm(x))` if the norm is first.
    #[track_caller]
    fn residual(
        &self,
        x: &Tensor,
        norm: &LayerNorm,
        f: &dyn Fn(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let (caller, _called) = (Location::caller(), called_here()); // not that of the closure
        let f = |x: &Tensor| f(x).map_err(|error| error.at(caller));
        if self.norm_first { x.add(&f(&norm.forward(x)?)?) } else { norm.forward(&x.add(&f(x)?)?) }
    }
}

/// The options of an attention with these masks.
fn masks<'a>(
    attn_mask: Option<&'a Tensor>,
    key_padding_mask: Option<&'a Tensor>,
    is_causal: Option<bool>,
) -> MultiheadAttentionOptions<'a> {
    MultiheadAttentionOptions { attn_mask, key_padding_mask, is_causal, ..MultiheadAttentionOptions::new() }
}
