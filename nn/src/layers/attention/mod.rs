//! Attention with several heads. [`dims`] finds the dims of its inputs and masks, `builder` makes the layer.

mod builder;
mod masks;

use super::*;
use masks::MaskedScores;
use namegrad_autograd::options::{ScaledDotProductAttentionOptions, TrilOptions, TriuOptions};
use namegrad_core::keep;

const LAYER: &str = "MultiheadAttention";

/// Attention with several heads: queries, keys and values are mapped linearly, split into heads, and each
/// query gets the mean of the values, weighted by how well their keys match it; a linear map joins the heads.
///
/// [`forward`](Self::forward) is self-attention, in which a sequence is queries, keys and values. For other
/// keys, see [`attend`](Self::attend), for masks and weights [`attend_with`](Self::attend_with). Unless the
/// weights are asked for, they are never stored as a whole, so memory grows with the length of the sequence,
/// not with its square.
///
/// # Shapes
/// - queries: any dims that include the layer's sequence and `embed`, in any order. All other dims ride
///   along.
/// - keys and values: the same, with their own length. Their sequence is the dim named in
///   [`key_seq`](MultiheadAttentionBuilder::key_seq), otherwise the one with the layer's name, otherwise the
///   only dim that the queries do not have. Dims of the queries that they lack are shared.
/// - result: the dims of the queries
///
/// Without names, the dims are `[seq, N, embed]` or `[seq, embed]`, as in PyTorch, and `[N, seq, embed]` with
/// [`batch_first`](MultiheadAttentionBuilder::batch_first). Keys and values without names next to queries whose
/// sequence is named must be in the order of the queries. In place of a name, `seq` can be a position, such as
/// -2.
///
/// Inside, queries are `[.., heads, seq, width]`, keys and values `[.., kv_heads, seq_key, width]`, where
/// `width` is `embed / heads`:
/// - [`kv_heads`](MultiheadAttentionBuilder::kv_heads): each head of keys and values serves `heads / kv_heads`
///   heads of queries, in order; by default `kv_heads` is `heads`
/// - [`rotary`](MultiheadAttentionBuilder::rotary): queries and keys are turned along `width` by their
///   positions in the sequence, from 0
/// - [`window`](MultiheadAttentionBuilder::window): query `i` sees the keys `i - window` to `i + window`, or
///   with [`is_causal`](MultiheadAttentionBuilder::is_causal) to `i`. Time grows with the window then, not with
///   the length, unless the weights are asked for or there are keys of `add_bias_kv` or `add_zero_attn`: these
///   take a mask `[seq, seq_key]`
///
/// # Parameters
/// - `in_proj_weight`: `[qkv = embed + 2 kv_heads width, embed]`, Xavier uniform. If keys or values have other
///   features, instead `q_proj_weight`: `[embed, embed_in]`, `k_proj_weight`: `[kv_heads width, kdim]` and
///   `v_proj_weight`: `[kv_heads width, vdim]`
/// - `in_proj_bias`: `[qkv]`, zeros
/// - `out_proj.weight`: `[embed, embed_in]`, uniform in ±1/√embed; `out_proj.bias`: `[embed]`, zeros
/// - `bias_k`, `bias_v`: `[1, 1, kv_heads width]`, Xavier normal, with
///   [`add_bias_kv`](MultiheadAttentionBuilder::add_bias_kv)
///
/// # Source
/// Vaswani et al., *Attention Is All You Need* (2017), section 3.2.2.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let attention = MultiheadAttention::builder(("embed", 8), ("heads", 2), "seq").is_causal(true).build()?;
/// let x = Tensor::randn([("N", 3), ("seq", 5), ("embed", 8)])?;
/// let y = attention.forward(&x)?;
/// assert_eq!(y.shape(), x.shape());
/// // The order of the dims does not matter, and further dims ride along.
/// let turned = attention.forward(&x.align_to(["embed", "seq", "N"])?)?;
/// assert!(turned.align_as(&y)?.allclose_with(&y, IscloseOptions::new().atol(1e-6))?);
/// let boards = Tensor::randn([("row", 4), ("N", 3), ("seq", 5), ("embed", 8)])?;
/// assert_eq!(attention.forward(&boards)?.shape(), boards.shape());
///
/// // Cross-attention from "target" to "source".
/// let cross = MultiheadAttention::new(("embed", 8), ("heads", 2), "target")?;
/// let target = Tensor::randn([("N", 3), ("target", 5), ("embed", 8)])?;
/// let source = Tensor::randn([("N", 3), ("source", 7), ("embed", 8)])?;
/// assert_eq!(cross.attend(&target, &source, &source)?.shape(), target.shape());
///
/// // Rotary positions, groups of heads and a window.
/// let local = MultiheadAttention::builder(("embed", 8), ("heads", 2), "seq").kv_heads(1).window(1);
/// let local = local.rotary(RotaryEmbedding::new(("width", 4), "seq")?).is_causal(true).build()?;
/// let short = x.narrow("seq", 0, 2)?;
/// let first = local.forward(&x)?.narrow("seq", 0, 2)?; // does not see what comes later
/// assert!(local.forward(&short)?.allclose_with(&first, IscloseOptions::new().atol(1e-6))?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = self.config.text(), layer, get(in_proj_weight, in_proj_bias, out_proj))]
pub struct MultiheadAttention {
    /// The weight of the merged projections, `[qkv, embed]`, unless keys or values have other features.
    in_proj_weight: Option<Parameter>,
    q_proj_weight: Option<Parameter>,
    k_proj_weight: Option<Parameter>,
    v_proj_weight: Option<Parameter>,
    /// The bias of the projections of queries, keys and values, `[qkv]`, if there is one.
    in_proj_bias: Option<Parameter>,
    bias_k: Option<Parameter>,
    bias_v: Option<Parameter>,
    /// The map that joins the heads.
    out_proj: Linear,
    rotary: Option<RotaryEmbedding>,
    pub(super) config: MultiheadAttentionConfig,
    training: Training,
    path: ModulePath,
}

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
pub(super) struct MultiheadAttentionConfig {
    /// The features, a size with or without a name.
    embed: Named,
    /// The number of heads, with or without the name of the dim of heads.
    heads: Named,
    /// The name or position of the sequence.
    seq: Seq,
    /// The sequence in keys and values, if it has another name than in the queries.
    key_seq: Option<Seq>,
    /// The features of the keys, a size with or without a name; by default those of the queries.
    #[setters(default = embed)]
    kdim: Named,
    /// The features of the values, a size with or without a name; by default those of the queries.
    #[setters(default = embed)]
    vdim: Named,
    /// The number of heads of keys and values, each of which serves a group of heads of the queries; by
    /// default there are as many as for queries. PyTorch's layer does not have this.
    #[setters(default = heads.1)]
    kv_heads: usize,
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

impl MultiheadAttentionConfig {
    /// The features of one head.
    fn width(&self) -> usize {
        self.embed.1 / self.heads.1
    }

    /// The features of all heads of the keys.
    fn of_keys(&self) -> usize {
        self.width() * self.kv_heads
    }

    pub(super) fn text(&self) -> String {
        format!("{}, heads={}, along {}", dim_text(self.embed), self.heads.1, self.seq.text())
    }
}

/// The options of [`MultiheadAttention::attend_with`].
#[derive(Clone, Copy, Debug, Setters)]
pub struct MultiheadAttentionOptions<'a> {
    /// A mask of keys by queries: `true` hides a key, as in PyTorch, and numbers are added to
    /// the scores. Its dims are found by name, with the names of [`Attended::weights`]. Without names, it is
    /// `[queries, keys]` or `[N * heads, queries, keys]`, as in PyTorch, or broadcasts to
    /// `[N, heads, queries, keys]`. If only some dims have names, it is `[queries, keys]` or
    /// `[N, heads, queries, keys]`, in this order. In self-attention along `time`, the keys are `time_key`, and
    /// a mask with `time` alone is an error.
    pub(in crate::layers) attn_mask: Option<&'a Tensor>,
    /// A mask of keys that are hidden from all queries, for example because they pad a sequence: `[N, keys]`,
    /// in any order if all of its dims have the names of the keys. `true` hides a key, and numbers are added
    /// to the scores.
    pub(in crate::layers) key_padding_mask: Option<&'a Tensor>,
    /// Whether a query sees only the keys up to its own position; by default as the layer was built. Switch
    /// it off to let the last query of a sequence see all keys.
    pub(in crate::layers) is_causal: Option<bool>,
    /// Whether the weights are returned; the default is `false`, unlike in PyTorch, because the weights of
    /// long sequences do not fit in memory.
    pub(in crate::layers) need_weights: bool,
    /// Whether the weights are averaged over the heads; the default is `true`.
    #[setters(default = true)]
    pub(in crate::layers) average_attn_weights: bool,
}

/// The result of [`MultiheadAttention::attend_with`].
#[derive(Clone, Debug)]
pub struct Attended {
    /// The output, with the dims of the queries.
    pub output: Tensor,
    /// The weight of each key for each query, if it was requested: `[N, queries, keys]`, averaged over the
    /// heads, or `[N, heads, queries, keys]`. The keys have the name of their sequence, with `_key` appended
    /// if it is that of the queries: `["N", "heads", "seq", "seq_key"]`.
    pub weights: Option<Tensor>,
}

impl MultiheadAttention {
    /// Self-attention: the output for `x` as queries, keys and values.
    ///
    /// # Errors
    /// Same as [`attend`](Self::attend).
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.attend(x, x, x)
    }

    /// The output for these queries, keys and values, with the dims of the queries.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if an input lacks a dim of the layer, or if the keys or values have a dim
    /// that the queries lack; [`ErrorKind::Misaligned`] if keys or values without names would be in another
    /// order than named inputs; [`ErrorKind::Shape`] if sizes do not fit or there are no keys;
    /// [`ErrorKind::DType`] if an input does not have the dtype of the parameters.
    #[track_caller]
    pub fn attend(&self, query: &Tensor, key: &Tensor, value: &Tensor) -> Result<Tensor> {
        Ok(self.attend_with(query, key, value, MultiheadAttentionOptions::new())?.output)
    }

    /// [`attend`](Self::attend) with masks, and with the weights if they are asked for.
    ///
    /// A query from which all keys are hidden has weights of 0; in PyTorch they are NaN if the weights are
    /// asked for.
    ///
    /// ```
    /// use namegrad::nn::MultiheadAttentionOptions;
    /// use namegrad::prelude::*;
    /// let attention = MultiheadAttention::new(("embed", 8), ("heads", 2), "seq")?;
    /// let x = Tensor::randn([("N", 2), ("seq", 3), ("embed", 8)])?;
    /// let padding = Tensor::new([[false, false, false], [false, false, true]])?.refine_names(["N", "seq"])?;
    /// let options = MultiheadAttentionOptions::new().key_padding_mask(&padding).need_weights(true);
    /// let weights = attention.attend_with(&x, &x, &x, options)?.weights.unwrap();
    /// assert_eq!(weights.shape().to_string(), "[N=2, seq=3, seq_key=3]");
    /// assert_eq!(weights.select("N", 1)?.select("seq_key", 2)?.to_vec::<f32>()?, [0.0; 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`attend`](Self::attend), and [`ErrorKind::NameNotFound`], [`ErrorKind::Shape`] or
    /// [`ErrorKind::DType`] for a mask that does not fit.
    #[track_caller]
    pub fn attend_with(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        options: MultiheadAttentionOptions<'_>,
    ) -> Result<Attended> {
        self.path.run(LAYER, &[query, key, value], &|_: &Running| {
            let MultiheadAttentionConfig { seq, key_seq, batch_first, .. } = self.config;
            let of = Finder { layer: LAYER, path: &self.path, dims: &|| self.config.text() };
            let finder = Sequences { of, seq, key_seq, batch_first };
            for x in [query, key, value] {
                of.check_dtype("the input", x, self.out_proj.weight().dtype())?;
            }
            let own = std::ptr::eq(query, key) && std::ptr::eq(query, value) && key_seq.is_none();
            let of_query = finder.queries(query, self.config.embed)?;
            let of_key = finder.keys((query, &of_query), key, self.config.kdim)?;
            let of_value = finder.keys((query, &of_query), value, self.config.vdim)?;
            let inputs = [(query, &of_query), (key, &of_key), (value, &of_value)];
            finder.check_order(inputs)?;
            let (of_keys, of_values) = (names_where(key, &of_key.batch), names_where(value, &of_value.batch));
            // The queries may not tell their names.
            let apart = namegrad_core::names::apart(of_keys.into_iter(), of_values.into_iter());
            if let Some((own, other)) = apart {
                let message = format_args!("{of}: the keys have the dim '{own}', the values '{other}'");
                return Err(fault(ErrorKind::NameMismatch, message));
            }
            let (keys, values) = (key.sizes()[of_key.seq], value.sizes()[of_value.seq]);
            (keys > 0).or_shape(format_args!("{of} needs a sequence of keys, and there are none"))?;
            (keys == values).or_shape(format_args!("{of}: there are {keys} keys and {values} values"))?;
            let heads = self.project(inputs, own)?;
            let key_name = key.name(of_key.seq);
            let (mut names, seq) = (names_where(query, &of_query.batch), query.name(of_query.seq));
            // The keys are `seq_key` beside queries that are `seq`.
            names.extend([self.config.heads.0, seq, beside((key_name, 0), &[seq], "_key")?.0]);
            self.weigh(of, heads, (names, key_name), options)
                .and_then(|(y, weights)| Ok(Attended { output: self.join(y, query, &of_query)?, weights }))
        })
    }

    /// Queries, keys and values as `[batch.., heads, seq, width]`, without names.
    fn project(&self, inputs: [(&Tensor, &SequencePlaces); 3], own: bool) -> Result<[Tensor; 3]> {
        let of_keys = self.config.of_keys() as isize;
        let sizes = [self.config.embed.1 as isize, of_keys, of_keys];
        let (merged, bias) = (unnamed(self.in_proj_weight.as_ref())?, unnamed(self.in_proj_bias.as_ref())?);
        let heads = [self.config.heads.1, self.config.kv_heads, self.config.kv_heads];
        let mut parts = Vec::with_capacity(3);
        if let Some(weight) = merged.as_ref().filter(|_| own) {
            let (x, places) = inputs[0];
            parts = linear(&last(x, places)?, weight, bias.as_ref())?.split(sizes, -1)?;
        } else {
            let mut weights = Vec::new();
            for weight in [&self.q_proj_weight, &self.k_proj_weight, &self.v_proj_weight] {
                weights.extend(unnamed(weight.as_ref())?);
            }
            if let Some(weight) = merged {
                weights = weight.split(sizes, 0)?;
            }
            let biases = bias.map(|bias| bias.split(sizes, 0)).transpose()?.unwrap_or_default();
            for (at, (x, places)) in inputs.into_iter().enumerate() {
                parts.push(linear(&last(x, places)?, &weights[at], biases.get(at))?);
            }
        }
        let part = |at: usize| {
            let x = split(&parts[at], inputs[at].1, heads[at])?;
            match &self.rotary {
                Some(rotary) if at < 2 => rotary.turned(&x, 0),
                _ => Ok(x),
            }
        };
        Ok([part(0)?, part(1)?, part(2)?])
    }

    /// The attention of each head, `[batch.., heads, queries, width]`, and the weights.
    fn weigh(
        &self,
        of: Finder<'_>,
        [q, k, v]: [Tensor; 3],
        (names, key_name): (Vec<Option<Name>>, Option<Name>),
        options: MultiheadAttentionOptions<'_>,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let config = &self.config;
        let (queries, keys) = (q.sizes()[q.ndim() - 2], k.sizes()[k.ndim() - 2]);
        let mut sizes = copied(q.sizes());
        sizes[q.ndim() - 1] = keys;
        let scores = MaskedScores { of, names, sizes, key_name, dtype: q.dtype() };
        let mut mask = options.attn_mask.map(|mask| scores.mask(mask)).transpose()?;
        if let Some(padding) = options.key_padding_mask {
            mask = both(mask, scores.padding(padding)?)?;
        }
        let (k, v) = (self.longer(k, self.bias_k.as_ref())?, self.longer(v, self.bias_v.as_ref())?);
        let extra = k.sizes()[k.ndim() - 2] - keys;
        let causal = options.is_causal.unwrap_or(config.is_causal);
        let by_kernel = extra == 0 && !options.need_weights;
        if (causal || config.window.is_some()) && !by_kernel {
            mask = both(mask, seen([queries, keys], config.window, causal, &q)?.log()?)?;
        }
        if extra > 0 {
            mask = mask.map(|mask| widened(&mask, keys, extra)).transpose()?;
        }
        let dropout_p = if self.training.get() { config.dropout } else { 0.0 };
        let groups = config.heads.1 / config.kv_heads;
        if !options.need_weights {
            let options = ScaledDotProductAttentionOptions::new().dropout_p(dropout_p);
            let mut options = options.is_causal(causal && by_kernel).enable_gqa(groups > 1);
            options.attn_mask = mask.as_ref().map(Cow::Borrowed);
            options.window = config.window.filter(|_| by_kernel);
            return Ok((q.scaled_dot_product_attention_with(&k, &v, options)?, None));
        }
        let repeated = |x: Tensor| match groups {
            1 => Ok(x),
            _ => x.repeat_interleave(groups as i64, x.ndim() as isize - 3),
        };
        let mut weights = weights_of(&q, &repeated(k)?, mask.as_ref(), dropout_p)?;
        let y = weights.matmul(&repeated(v)?)?;
        let mut names = scores.names;
        if options.average_attn_weights {
            names.remove(names.len() - 3);
            weights = weights.mean(-3)?;
        }
        Ok((y, Some(with_names(weights, &Names::new(LAYER, names)?)?)))
    }

    /// Keys or values with the learned one and with zeros at the end, if the layer has them.
    fn longer(&self, mut x: Tensor, learned: Option<&Parameter>) -> Result<Tensor> {
        if let Some(learned) = learned {
            let mut sizes = copied(x.sizes());
            let [.., heads, seq, width] = &mut sizes[..] else { return Ok(x) };
            let own = [*heads, 1, *width];
            *seq = 1;
            let learned = learned.try_tensor()?.rename(None)?.reshape(own)?.expand(sizes)?;
            x = Tensor::cat(&[&x, &learned], -2)?;
        }
        if self.config.add_zero_attn { F::pad(&x, [0, 0, 0, 1]) } else { Ok(x) }
    }

    /// The output with the dims of the queries.
    fn join(&self, y: Tensor, query: &Tensor, places: &SequencePlaces) -> Result<Tensor> {
        let mut y = moved_back(y, &places.heads_order())?;
        let mut sizes = copied(&y.sizes()[..y.ndim() - 2]);
        sizes.push(self.config.embed.1);
        y = y.reshape(sizes)?;
        let weight = self.out_proj.weight().try_tensor()?.rename(None)?;
        y = linear(&y, &weight, unnamed(self.out_proj.bias())?.as_ref())?;
        if places.features + 1 != y.ndim() {
            y = y.movedim(-1, places.features)?;
        }
        let mut names = names_of(query);
        names[places.features] = self.config.embed.0.or(names[places.features]);
        with_names(y, &Names::new(LAYER, names)?)
    }
}

/// 1 for each key that a query sees, otherwise 0: `[queries, keys]`. It is at most `window` positions away, and
/// if `causal` not after the query. The dtype is that of `q`.
fn seen([queries, keys]: [usize; 2], window: Option<usize>, causal: bool, q: &Tensor) -> Result<Tensor> {
    let most = queries.max(keys);
    let away = window.unwrap_or(most).min(most) as isize;
    let ones = q.new_ones([queries, keys])?;
    let near = ones.triu_with(TriuOptions::new().diagonal(-away))?;
    near.tril_with(TrilOptions::new().diagonal(if causal { 0 } else { away }))
}

fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    F::linear_with(x, weight, LinearOptions { bias: bias.map(Cow::Borrowed) })
}

/// The input with its features at the end, without names.
fn last(x: &Tensor, places: &SequencePlaces) -> Result<Tensor> {
    let x = if x.has_names() { x.rename(None)? } else { x.clone() };
    if places.features + 1 == x.ndim() { Ok(x) } else { x.movedim(places.features, -1) }
}

/// A projection as `[batch.., heads, seq, width]`, with size 1 for batch dims that the input lacks.
fn split(y: &Tensor, places: &SequencePlaces, heads: usize) -> Result<Tensor> {
    let (last, mut sizes) = (y.ndim() - 1, copied(y.sizes()));
    sizes.splice(last.., [heads, y.sizes()[last] / heads]);
    let mut y = permuted(y.reshape(sizes)?, &places.heads_order())?;
    for (at, _) in places.batch.iter().enumerate().filter(|(_, dim)| dim.is_none()) {
        y = y.unsqueeze(at as isize)?;
    }
    Ok(y)
}

/// A mask with another one added.
fn both(mask: Option<Tensor>, other: Tensor) -> Result<Option<Tensor>> {
    match mask {
        Some(mask) => mask.add(&other).map(Some),
        None => Ok(Some(other)),
    }
}

/// The mask with columns of 0 for keys that the layer adds.
fn widened(mask: &Tensor, keys: usize, extra: usize) -> Result<Tensor> {
    let mut sizes = copied(mask.sizes());
    sizes[mask.ndim() - 1] = keys;
    F::pad(&mask.expand(sizes)?, [0, extra as isize])
}

/// The weights `[.., queries, keys]`; those of a query that sees no key are 0.
fn weights_of(q: &Tensor, k: &Tensor, mask: Option<&Tensor>, dropout_p: f64) -> Result<Tensor> {
    let scale = 1.0 / (q.sizes()[q.ndim() - 1] as f64).sqrt();
    let scores = q.mul(scale)?.matmul(k.mt()?)?;
    let weights = match mask {
        None => scores.softmax(-1)?,
        Some(mask) => {
            let scores = scores.add(mask)?;
            let blind = scores.detach().amax(keep(-1))?.eq(f64::NEG_INFINITY)?;
            scores.masked_fill(&blind, 0.0)?.softmax(-1)?.masked_fill(&blind, 0.0)?
        }
    };
    F::dropout_with(&weights, dropout_p, DropoutOptions { training: true })
}

impl Layer<(Tensor, Tensor, Tensor)> for MultiheadAttention {
    #[track_caller]
    fn forward(&self, (query, key, value): &(Tensor, Tensor, Tensor)) -> Result<Tensor> {
        self.attend(query, key, value)
    }
}
