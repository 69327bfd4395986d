//! The builder of [`MultiheadAttention`], and the parameters of a new layer.

use super::*;
use crate::dims::sequences::{Seq, open};
use std::panic::Location;

/// A builder for [`MultiheadAttention`]; see [`MultiheadAttention::builder`].
///
/// ```
/// use namegrad::prelude::*;
/// let cross = MultiheadAttention::builder(("embed", 8), ("heads", 2), "target")
///     .kdim(("depth", 6))
///     .vdim(("depth", 6))
///     .key_seq("source")
///     .build()?;
/// let target = Tensor::randn([("N", 3), ("target", 5), ("embed", 8)])?;
/// let source = Tensor::randn([("N", 3), ("depth", 6), ("source", 7)])?;
/// assert_eq!(cross.attend(&target, &source, &source)?.shape(), target.shape());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Setters)]
pub struct MultiheadAttentionBuilder {
    /// The features, a size with or without a name.
    embed: Result<Named>,
    /// The number of heads, with or without the name of the dim of heads.
    heads: Result<Named>,
    /// The name or position of the sequence.
    seq: Result<Seq>,
    /// The sequence in keys and values, if it has another name than in the queries.
    key_seq: Option<Result<Seq>>,
    /// The features of the keys, a size with or without a name; by default those of the queries.
    kdim: Option<Result<Named>>,
    /// The features of the values, a size with or without a name; by default those of the queries.
    vdim: Option<Result<Named>>,
    /// The number of heads of keys and values, each of which serves a group of heads of the queries; by
    /// default there are as many as for queries. PyTorch's layer does not have this.
    kv_heads: Option<usize>,
    /// Rotary positions, of the features of a head: `RotaryEmbedding::new(("width", embed / heads), "seq")?`;
    /// by default there are none. PyTorch's layer does not have this.
    rotary: Option<RotaryEmbedding>,
    /// The probability to drop a weight in training; the default is 0.
    dropout: f64,
    /// Whether the projections have biases; the default is `true`.
    #[setters(default = true)]
    bias: bool,
    /// Whether each sequence of keys and values gets one more, which is learned; the default is `false`.
    add_bias_kv: bool,
    /// Whether each sequence of keys and values gets one more, of zeros; the default is `false`.
    add_zero_attn: bool,
    /// Whether inputs without names are `[N, seq, embed]`; by default they are `[seq, N, embed]`, as in
    /// PyTorch.
    batch_first: bool,
    /// Whether a query sees only the keys up to its own position; the default is `false`.
    is_causal: bool,
    /// The number of positions up to which a query sees keys on both sides, or with
    /// [`is_causal`](Self::is_causal) before it; by default it sees all.
    window: Option<usize>,
    /// The dtype of the parameters; the default is the default dtype.
    dtype: DType,
}

impl MultiheadAttentionBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name; [`ErrorKind::Value`] for an invalid size, if `heads`
    /// does not divide `embed` or `kv_heads` does not divide `heads`, if `rotary` is of other features than
    /// those of a head, and for a `dropout` outside [0, 1];
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<MultiheadAttention> {
        const LAYER: &str = "MultiheadAttention";
        let (embed, heads) = (self.embed?, self.heads?);
        let kv_heads = self.kv_heads.unwrap_or(heads.1);
        check_dtype(LAYER, self.dtype)?;
        let value = ErrorKind::Value;
        Error::ensure(embed.1 > 0 && heads.1 > 0, value, LAYER, || {
            format!("embed and heads must be greater than 0, got {} and {}", embed.1, heads.1)
        })?;
        Error::ensure(embed.1.is_multiple_of(heads.1), value, LAYER, || {
            format!("embed must be divisible by heads, got {} and {}", dim_text(embed), dim_text(heads))
        })?;
        Error::ensure(kv_heads > 0 && heads.1.is_multiple_of(kv_heads), value, LAYER, || {
            format!("the number of heads must be divisible by kv_heads, got {} and {kv_heads}", heads.1)
        })?;
        let (width, turned) = (embed.1 / heads.1, self.rotary.as_ref().map(RotaryEmbedding::width));
        Error::ensure(turned.is_none_or(|turned| turned == width), value, LAYER, || {
            format!(
                "the rotary positions must be of the {width} features of a head, got {}",
                turned.unwrap_or(0)
            )
        })?;
        Error::ensure((0.0..=1.0).contains(&self.dropout), value, LAYER, || {
            format!("dropout probability has to be between 0 and 1, but got {}", self.dropout)
        })?;
        let config = AttentionConfig {
            embed,
            kdim: self.kdim.unwrap_or(Ok(embed))?,
            vdim: self.vdim.unwrap_or(Ok(embed))?,
            heads,
            kv_heads,
            seq: self.seq?,
            key_seq: self.key_seq.transpose()?,
            dropout: self.dropout,
            add_zero_attn: self.add_zero_attn,
            batch_first: self.batch_first,
            is_causal: self.is_causal,
            window: self.window,
        };
        let layer = NewParameters { config, dtype: self.dtype };
        let caller = Location::caller(); // not that of a closure
        layer.layer(self.bias, self.add_bias_kv, self.rotary).map_err(|error| error.of(LAYER).at(caller))
    }
}

/// The settings from which the parameters of a new layer are made.
struct NewParameters {
    config: AttentionConfig,
    dtype: DType,
}

impl NewParameters {
    #[track_caller]
    fn layer(
        self,
        bias: bool,
        add_bias_kv: bool,
        rotary: Option<RotaryEmbedding>,
    ) -> Result<MultiheadAttention> {
        let config = self.config;
        let (embed, of_keys) = (config.embed, config.of_keys());
        let qkv = of_keys.saturating_mul(2).saturating_add(embed.1);
        let merged = config.kdim.1 == embed.1 && config.vdim.1 == embed.1;
        let qkv = (embed.0.map(|_| Name::new("qkv")).transpose()?, qkv);
        let own = |size: usize, features: Named| self.xavier([(embed.0, size), beside(features, embed.0)?]);
        let [q, k, v] = match merged {
            true => [None, None, None],
            false => [
                Some(own(embed.1, embed)?),
                Some(own(of_keys, config.kdim)?),
                Some(own(of_keys, config.vdim)?),
            ],
        };
        let options = TensorOptions::new().dtype(self.dtype);
        // Xavier normal, with fan in and fan out both the number of features.
        let extra = || -> Result<Parameter> {
            let noise = options.randn(shape_of(&[(None, 1), (None, 1), (embed.0, of_keys)])?)?;
            Parameter::new(noise.div((of_keys as f64).sqrt())?)
        };
        let out_proj = Linear::builder(open(embed), open(embed)).bias(bias).dtype(self.dtype).build()?;
        if let Some(bias) = out_proj.bias() {
            crate::init::constant_(bias, 0.0)?;
        }
        Ok(MultiheadAttention {
            in_proj_weight: if merged { Some(self.xavier([qkv, beside(embed, qkv.0)?])?) } else { None },
            q_proj_weight: q,
            k_proj_weight: k,
            v_proj_weight: v,
            in_proj_bias: if bias { Some(Parameter::new(options.zeros(shape_of(&[qkv])?)?)?) } else { None },
            bias_k: if add_bias_kv { Some(extra()?) } else { None },
            bias_v: if add_bias_kv { Some(extra()?) } else { None },
            out_proj,
            rotary,
            config,
            training: Training::new(),
            path: ModulePath::new(),
        })
    }

    /// A weight `[out, in]`, uniform in ±√(6 / (in + out)).
    #[track_caller]
    fn xavier(&self, dims: [Named; 2]) -> Result<Parameter> {
        let bound = (6.0 / (dims[0].1.saturating_add(dims[1].1)).max(1) as f64).sqrt();
        uniform("MultiheadAttention", &dims, bound, self.dtype)
    }
}
