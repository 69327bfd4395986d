//! The encoder.

use super::*;

/// A layer of a [`TransformerEncoder`]: self-attention, and two linear maps with an activation between them,
/// each with a residual connection and a layer norm.
///
/// The norms come after the sums: `norm1(x + attention(x))`; with
/// [`norm_first`](TransformerEncoderLayerBuilder::norm_first), before: `x + attention(norm1(x))`.
///
/// # Shapes
/// - `x`: any dims that include the layer's sequence and `embed`, in any order. All other dims ride along.
///   Without names, `[seq, N, embed]` or `[seq, embed]`, as in PyTorch.
/// - result: the dims of `x`
///
/// # Parameters
/// - `self_attn.*`: see [`MultiheadAttention`]
/// - `linear1.weight`: `[feedforward, embed]`, `linear2.weight`: `[embed, feedforward]`, and their biases
/// - `norm1.weight`, `norm2.weight`: `[embed]`, ones, and their biases, zeros
///
/// # Source
/// Vaswani et al., *Attention Is All You Need* (2017), section 3.1; Xiong et al., *On Layer Normalization in
/// the Transformer Architecture* (2020) for norms that come first.
///
/// # Examples
/// ```
/// use namegrad::nn::TransformerEncoderLayer;
/// use namegrad::prelude::*;
/// let block = TransformerEncoderLayer::builder(("embed", 8), ("heads", 2), "seq")
///     .dim_feedforward(16)
///     .activation(Tensor::gelu)
///     .norm_first(true)
///     .is_causal(true)
///     .build()?;
/// let x = Tensor::randn([("N", 3), ("embed", 8), ("seq", 5)])?;
/// assert_eq!(block.forward(&x)?.shape(), x.shape());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = self.layer.self_attn.config.text(), layer)]
pub struct TransformerEncoderLayer {
    #[module(flatten)]
    layer: TransformerLayer,
}

impl TransformerEncoderLayerBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// Same as [`MultiheadAttentionBuilder::build`](crate::MultiheadAttentionBuilder::build).
    #[track_caller]
    pub fn build(self) -> Result<TransformerEncoderLayer> {
        let config = self.config()?;
        let layer = TransformerEncoderLayer { layer: made(config.layer, config.layer(false))? };
        layer.train(); // tells the layers their paths
        Ok(layer)
    }
}

/// The masks of a [`TransformerEncoder`] or of a layer of it.
#[derive(Clone, Copy, Debug, Default, Setters)]
pub struct TransformerEncoderOptions<'a> {
    /// The elements that are hidden from each element, as in [`MultiheadAttentionOptions::attn_mask`].
    src_mask: Option<&'a Tensor>,
    /// The elements that are hidden from all, for example because they pad a sequence, as in
    /// [`MultiheadAttentionOptions::key_padding_mask`].
    src_key_padding_mask: Option<&'a Tensor>,
    /// Whether an element sees only those up to itself; by default as the layer was built.
    is_causal: Option<bool>,
}

impl TransformerEncoderLayer {
    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// Same as [`MultiheadAttention::attend`].
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_with(x, TransformerEncoderOptions::new())
    }

    /// [`forward`](Self::forward) with masks.
    ///
    /// # Errors
    /// Same as [`MultiheadAttention::attend_with`].
    #[track_caller]
    pub fn forward_with(&self, x: &Tensor, options: TransformerEncoderOptions<'_>) -> Result<Tensor> {
        let masks = masks(options.src_mask, options.src_key_padding_mask, options.is_causal);
        self.layer.forward(x, masks, None)
    }
}

/// A sequence of [`TransformerEncoderLayer`]s, with a norm at the end if it is given one.
///
/// # Shapes
/// Those of a [layer](TransformerEncoderLayer).
///
/// # Parameters
/// - `layers.0.*`, `layers.1.*`, ...: those of the layers, each with its own initial values; in PyTorch,
///   they are copies of one layer
/// - `norm.*`: those of the norm
///
/// # Examples
/// ```
/// use namegrad::nn::{TransformerEncoder, TransformerEncoderLayer};
/// use namegrad::prelude::*;
/// let layer = TransformerEncoderLayer::builder(("embed", 8), ("heads", 2), "seq").dim_feedforward(16);
/// let norm = LayerNorm::new([("embed", 8)])?;
/// let encoder = TransformerEncoder::new(layer.norm_first(true), 2)?.with_norm(norm);
/// let x = Tensor::randn([("N", 3), ("seq", 5), ("embed", 8)])?;
/// assert_eq!(encoder.forward(&x)?.shape(), x.shape());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, layer, get(layers))]
pub struct TransformerEncoder {
    /// The layers.
    layers: Vec<TransformerEncoderLayer>,
    norm: Option<LayerNorm>,
}

impl TransformerEncoder {
    /// An encoder of `num_layers` such layers, without a norm at the end.
    ///
    /// # Errors
    /// Same as [`TransformerEncoderLayerBuilder::build`].
    #[track_caller]
    pub fn new(layer: TransformerEncoderLayerBuilder, num_layers: usize) -> Result<TransformerEncoder> {
        let layers = repeated("TransformerEncoder", num_layers, &mut |_| layer.clone().build())?;
        let model = TransformerEncoder { layers, norm: None };
        model.train(); // tells the layers their paths
        Ok(model)
    }

    /// The encoder with this norm at the end.
    #[must_use]
    pub fn with_norm(mut self, norm: LayerNorm) -> TransformerEncoder {
        self.norm = Some(norm);
        self
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// Same as [`MultiheadAttention::attend`].
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_with(x, TransformerEncoderOptions::new())
    }

    /// [`forward`](Self::forward) with masks, which all layers use.
    ///
    /// # Errors
    /// Same as [`MultiheadAttention::attend_with`].
    #[track_caller]
    pub fn forward_with(&self, x: &Tensor, options: TransformerEncoderOptions<'_>) -> Result<Tensor> {
        let mut y = x.clone();
        for layer in &self.layers {
            y = layer.forward_with(&y, options)?;
        }
        match &self.norm {
            Some(norm) => norm.forward(&y),
            None => Ok(y),
        }
    }
}
