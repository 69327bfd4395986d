//! Encoder and decoder.

use super::*;

use crate::init;

/// An encoder of the source and a decoder of the target, which attends to the output of the encoder.
///
/// It has 6 layers each by default, with a norm at the end. It sees the whole target, unless it is
/// [`is_causal`](TransformerBuilder::is_causal) or there is a mask. Embeddings and positions are your own.
///
/// # Shapes
/// - `src`: any dims that include the sequence and `embed`, in any order
/// - `tgt`: the same, with its own length
/// - result: the dims of `tgt`
///
/// The sequence of the source is the dim named in [`source_seq`](TransformerBuilder::source_seq), or has the
/// same name as that of the target. Without names, the dims are `[seq, N, embed]` or `[seq, embed]`, as in
/// PyTorch.
///
/// # Parameters
/// - `encoder.layers.0.*`, ..., `encoder.norm.*`: see [`TransformerEncoder`](crate::TransformerEncoder)
/// - `decoder.layers.0.*`, ..., `decoder.norm.*`: see [`TransformerDecoder`](crate::TransformerDecoder)
///
/// All weights with several dims are Xavier uniform.
///
/// # Source
/// Vaswani et al., *Attention Is All You Need* (2017), figure 1.
///
/// # Examples
/// ```
/// use namegrad::nn::Transformer;
/// use namegrad::prelude::*;
/// let model = Transformer::builder(("embed", 8), ("heads", 2), "target")
///     .source_seq("source")
///     .num_encoder_layers(2)
///     .num_decoder_layers(1)
///     .dim_feedforward(16)
///     .is_causal(true)
///     .build()?;
/// let source = Tensor::randn([("N", 3), ("source", 7), ("embed", 8)])?;
/// let target = Tensor::randn([("N", 3), ("target", 5), ("embed", 8)])?;
/// assert_eq!(model.forward(&source, &target)?.shape(), target.shape());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, layer(src, tgt), get(encoder, decoder))]
pub struct Transformer {
    /// The encoder.
    encoder: TransformerEncoder,
    /// The decoder.
    decoder: TransformerDecoder,
}

impl TransformerBuilder {
    /// Builds the model.
    ///
    /// # Errors
    /// Same as [`MultiheadAttentionBuilder::build`](crate::MultiheadAttentionBuilder::build).
    #[track_caller]
    pub fn build(self) -> Result<Transformer> {
        let config = self.config()?;
        let seq = config.source_seq.unwrap_or(config.seq);
        let source = TransformerConfig { is_causal: false, seq, ..config.clone() };
        let (encoder_layers, decoder_layers) = (config.num_encoder_layers, config.num_decoder_layers);
        let config = TransformerConfig { memory_seq: config.source_seq, ..config };
        let (encoder_norm, decoder_norm) = (source.norm()?, config.norm()?);
        let of_encoder =
            TransformerEncoderLayerBuilder { config: source, checked: Ok(()), kinds: PhantomData };
        let of_decoder = TransformerDecoderLayerBuilder { config, checked: Ok(()), kinds: PhantomData };
        let model = Transformer {
            encoder: TransformerEncoder::new(of_encoder, encoder_layers)?.with_norm(encoder_norm),
            decoder: TransformerDecoder::new(of_decoder, decoder_layers)?.with_norm(decoder_norm),
        };
        for parameter in model.parameters().iter().filter(|parameter| parameter.ndim() > 1) {
            init::xavier_uniform_(parameter)?;
        }
        Ok(model)
    }
}

impl Transformer {
    /// The output for a source and a target, with the dims of the target.
    ///
    /// # Errors
    /// Same as [`MultiheadAttention::attend`](crate::MultiheadAttention::attend).
    #[track_caller]
    pub fn forward(&self, src: &Tensor, tgt: &Tensor) -> Result<Tensor> {
        self.forward_with(src, tgt, TransformerEncoderOptions::new(), TransformerDecoderOptions::new())
    }

    /// [`forward`](Self::forward) with masks.
    ///
    /// # Errors
    /// Same as [`MultiheadAttention::attend_with`](crate::MultiheadAttention::attend_with).
    #[track_caller]
    pub fn forward_with(
        &self,
        src: &Tensor,
        tgt: &Tensor,
        of_source: TransformerEncoderOptions<'_>,
        of_target: TransformerDecoderOptions<'_>,
    ) -> Result<Tensor> {
        let memory = self.encoder.forward_with(src, of_source)?;
        self.decoder.forward_with(tgt, &memory, of_target)
    }
}
