//! The decoder.

use super::*;

/// A layer of a [`TransformerDecoder`]: self-attention, attention to the `memory`, which is the output of an
/// encoder, and two linear maps with an activation between them, each with a residual connection and a layer
/// norm.
///
/// The self-attention sees the whole sequence, unless the layer is
/// [`is_causal`](TransformerDecoderLayerBuilder::is_causal) or there is a mask.
///
/// # Shapes
/// - `tgt`: any dims that include the layer's sequence and `embed`, in any order. All other dims ride along.
///   Without names, `[seq, N, embed]` or `[seq, embed]`, as in PyTorch.
/// - `memory`: the same, with its own length. Its sequence is the dim named in
///   [`memory_seq`](TransformerDecoderLayerBuilder::memory_seq), otherwise the one with the layer's name,
///   otherwise the only dim that `tgt` does not have.
/// - result: the dims of `tgt`
///
/// # Parameters
/// - `self_attn.*`, `multihead_attn.*`: see [`MultiheadAttention`]; the second one attends to the memory
/// - `linear1.weight`: `[feedforward, embed]`, `linear2.weight`: `[embed, feedforward]`, and their biases
/// - `norm1.weight` to `norm3.weight`: `[embed]`, ones, and their biases, zeros
///
/// # Source
/// Vaswani et al., *Attention Is All You Need* (2017), section 3.1.
///
/// # Examples
/// ```
/// use namegrad::nn::TransformerDecoderLayer;
/// use namegrad::prelude::*;
/// let layer = TransformerDecoderLayer::builder(("embed", 8), ("heads", 2), "target").is_causal(true).build()?;
/// let target = Tensor::randn([("N", 3), ("target", 5), ("embed", 8)])?;
/// let memory = Tensor::randn([("N", 3), ("source", 7), ("embed", 8)])?;
/// assert_eq!(layer.forward(&target, &memory)?.shape(), target.shape());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = self.layer.self_attn.config.text(), layer(tgt, memory))]
pub struct TransformerDecoderLayer {
    #[module(flatten)]
    layer: TransformerLayer,
}

impl TransformerDecoderLayerBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// Same as [`MultiheadAttentionBuilder::build`](crate::MultiheadAttentionBuilder::build).
    #[track_caller]
    pub fn build(self) -> Result<TransformerDecoderLayer> {
        let config = self.config()?;
        let layer = TransformerDecoderLayer { layer: made(config.layer, config.layer(true))? };
        layer.train(); // tells the layers their paths
        Ok(layer)
    }
}

/// The masks of a [`TransformerDecoder`] or of a layer of it.
#[derive(Clone, Copy, Debug, Default, Setters)]
pub struct TransformerDecoderOptions<'a> {
    /// The elements of the target that are hidden from each element of the target, as in
    /// [`MultiheadAttentionOptions::attn_mask`](crate::MultiheadAttentionOptions::attn_mask).
    tgt_mask: Option<&'a Tensor>,
    /// The elements of the memory that are hidden from each element of the target.
    memory_mask: Option<&'a Tensor>,
    /// The elements of the target that are hidden from all, as in
    /// [`MultiheadAttentionOptions::key_padding_mask`](crate::MultiheadAttentionOptions::key_padding_mask).
    tgt_key_padding_mask: Option<&'a Tensor>,
    /// The elements of the memory that are hidden from all.
    memory_key_padding_mask: Option<&'a Tensor>,
    /// Whether an element of the target sees only those up to itself; by default as the layer was built.
    tgt_is_causal: Option<bool>,
    /// Whether an element of the target sees only the memory up to its own position; the default is `false`.
    memory_is_causal: Option<bool>,
}

impl TransformerDecoderLayer {
    /// The output for a target and a memory, with the dims of the target.
    ///
    /// # Errors
    /// Same as [`MultiheadAttention::attend`].
    #[track_caller]
    pub fn forward(&self, tgt: &Tensor, memory: &Tensor) -> Result<Tensor> {
        self.forward_with(tgt, memory, TransformerDecoderOptions::new())
    }

    /// [`forward`](Self::forward) with masks.
    ///
    /// # Errors
    /// Same as [`MultiheadAttention::attend_with`].
    #[track_caller]
    pub fn forward_with(
        &self,
        tgt: &Tensor,
        memory: &Tensor,
        options: TransformerDecoderOptions<'_>,
    ) -> Result<Tensor> {
        let own = masks(options.tgt_mask, options.tgt_key_padding_mask, options.tgt_is_causal);
        let other = masks(options.memory_mask, options.memory_key_padding_mask, options.memory_is_causal);
        self.layer.forward(tgt, own, Some((memory, other)))
    }
}

/// A sequence of [`TransformerDecoderLayer`]s, all of which attend to the same memory, with a norm at the end
/// if it is given one.
///
/// # Shapes
/// Those of a [layer](TransformerDecoderLayer).
///
/// # Parameters
/// - `layers.0.*`, `layers.1.*`, ...: those of the layers, each with its own initial values; in PyTorch,
///   they are copies of one layer
/// - `norm.*`: those of the norm
///
/// # Examples
/// ```
/// use namegrad::nn::{TransformerDecoder, TransformerDecoderLayer};
/// use namegrad::prelude::*;
/// let layer = TransformerDecoderLayer::builder(("embed", 8), ("heads", 2), "target").dim_feedforward(16);
/// let decoder = TransformerDecoder::new(layer.is_causal(true), 2)?;
/// let target = Tensor::randn([("N", 3), ("target", 5), ("embed", 8)])?;
/// let memory = Tensor::randn([("N", 3), ("source", 7), ("embed", 8)])?;
/// assert_eq!(decoder.forward(&target, &memory)?.shape(), target.shape());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, layer(tgt, memory), get(layers))]
pub struct TransformerDecoder {
    /// The layers.
    layers: Vec<TransformerDecoderLayer>,
    norm: Option<LayerNorm>,
}

impl TransformerDecoder {
    /// A decoder of `num_layers` such layers, without a norm at the end.
    ///
    /// # Errors
    /// Same as [`TransformerDecoderLayerBuilder::build`].
    #[track_caller]
    pub fn new(layer: TransformerDecoderLayerBuilder, num_layers: usize) -> Result<TransformerDecoder> {
        let layers = repeated("TransformerDecoder", num_layers, &mut |_| layer.clone().build())?;
        let model = TransformerDecoder { layers, norm: None };
        model.train(); // tells the layers their paths
        Ok(model)
    }

    /// The decoder with this norm at the end.
    #[must_use]
    pub fn with_norm(mut self, norm: LayerNorm) -> TransformerDecoder {
        self.norm = Some(norm);
        self
    }

    /// The output for a target and a memory, with the dims of the target.
    ///
    /// # Errors
    /// Same as [`MultiheadAttention::attend`].
    #[track_caller]
    pub fn forward(&self, tgt: &Tensor, memory: &Tensor) -> Result<Tensor> {
        self.forward_with(tgt, memory, TransformerDecoderOptions::new())
    }

    /// [`forward`](Self::forward) with masks, which all layers use.
    ///
    /// # Errors
    /// Same as [`MultiheadAttention::attend_with`].
    #[track_caller]
    pub fn forward_with(
        &self,
        tgt: &Tensor,
        memory: &Tensor,
        options: TransformerDecoderOptions<'_>,
    ) -> Result<Tensor> {
        let mut y = tgt.clone();
        for layer in &self.layers {
            y = layer.forward_with(&y, memory, options)?;
        }
        match &self.norm {
            Some(norm) => norm.forward(&y),
            None => Ok(y),
        }
    }
}
