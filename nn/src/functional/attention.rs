//! Attention: the op by position, and attention by name, which arranges its inputs for that op.

use super::*;
use crate::dims::{Named, dims_text, renamed_to_fit};
use crate::layers::mentions;
use namegrad_autograd::options::ScaledDotProductAttentionOptions;
use namegrad_io::sorted::{retain, sort};
use std::fmt;

functions! {
    attention: scaled_dot_product_attention;
}

functional! { attention;
    /// Attention by name: `softmax(scale Σ_embed q k + mask)` over the positions `seq` of the keys, times `v`,
    /// summed over `seq`.
    ///
    /// `seq` is the dim of the positions of `k` and `v`, and `embed` the dim that `q` and `k` contract. Every
    /// other dim is matched by name, in any order, and broadcasts if a tensor lacks it. Tensors are not
    /// copied, except for a `v` with several dims of its own that are not next to each other.
    ///
    /// - The positions of the queries are `seq` if `q` has it, which is self-attention: the `seq` of the
    ///   result is that of `q`. Otherwise they are the dim of `q` that `k` and `v` lack. `query_dim` says
    ///   which dim it is if `is_causal` or `window` needs to know and there are several of them, or the only
    ///   one is called as heads are.
    /// - `attn_mask` and `bias` have dims of `q`, `k` and `v` except `embed`, by name. If queries and keys both
    ///   have the positions `time`, then `time` is that of the queries, and `time_key` that of the keys, as in
    ///   [`MultiheadAttention`](crate::MultiheadAttention). A mask of padding is `[N, time_key]` there, and
    ///   `[N, time]` is an error. `false` in a mask hides a key from a query; numbers are added to the scores,
    ///   as those of ALiBi are. A query that sees no key has the result 0.
    /// - With `is_causal`, query `i` sees the keys up to `i`. With `window`, it sees the keys that are at most
    ///   `window` positions away, and the scores of other blocks of keys are not computed.
    /// - `heads` names a dim in which `q` has several times the size of `k` and `v`, so that each head of the
    ///   keys serves a group of heads of the queries. Without it, other sizes are an error.
    /// - `dropout_p` is the probability to drop a weight; the others are divided by `1 - dropout_p`. The
    ///   default `scale` is `1/√embed`.
    ///
    /// Without names, dims have the same meaning if they have the same place from the right:
    /// `F::attention(&q, &k, &v, -2, -1)` is [`scaled_dot_product_attention`]. Either all dims have names or
    /// none.
    ///
    /// # Shapes
    /// - `q`: any dims that include `embed`
    /// - `k`: any dims that include `seq` and `embed`
    /// - `v`: any dims that include `seq`. Those that neither `q` nor `k` has are its own, and so is `embed`.
    /// - `attn_mask`, `bias`: any of the dims of the result that `v` does not own, and the positions of keys
    /// - result: the dims of `q`, with the own dims of `v` in place of `embed`, after dims that `q` lacks
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if a tensor lacks `seq` or `embed`, or a mask has a dim that the scores
    /// lack, or `time` without `time_key`; [`ErrorKind::Shape`] if sizes differ; [`ErrorKind::Value`] if `seq`
    /// is `embed`, if `query_dim` or `heads` has another meaning, or if the positions of the queries are not
    /// clear;
    /// [`ErrorKind::NameMismatch`] if only some dims have names; [`ErrorKind::DuplicateName`] if a mask would
    /// need the name of another dim; [`ErrorKind::DType`].
    ///
    /// # Source
    /// Vaswani et al., *Attention Is All You Need* (2017), equation 1; Chiang, Rush, Barak, *Named Tensor
    /// Notation* (2021), section 3.2. Windows: Beltagy et al., *Longformer* (2020). Groups of heads: Ainslie
    /// et al., *GQA* (2023).
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let q = Tensor::randn([("N", 2), ("heads", 4), ("time", 5), ("embed", 8)])?;
    /// let k = Tensor::randn([("time", 5), ("embed", 8), ("N", 2), ("heads", 2)])?; // in any order
    /// let v = Tensor::randn([("N", 2), ("time", 5), ("heads", 2), ("value", 3)])?;
    /// let options = AttentionOptions::new().is_causal(true).heads("heads");
    /// let y = F::attention_with(&q, &k, &v, "time", "embed", options)?;
    /// assert_eq!(y.shape().to_string(), "[N=2, heads=4, time=5, value=3]");
    ///
    /// // The queries have their own positions, and a mask hides the padding.
    /// let word = Tensor::randn([("word", 3), ("embed", 8)])?;
    /// let memory = Tensor::randn([("N", 2), ("time", 3), ("embed", 8)])?;
    /// let seen = Tensor::new([[true, true, true], [true, false, false]])?.refine_names(["N", "time"])?;
    /// let masked = AttentionOptions::new().attn_mask(&seen);
    /// let y = F::attention_with(&word, &memory, &memory, "time", "embed", masked)?;
    /// assert_eq!(y.shape().to_string(), "[N=2, word=3, embed=8]");
    /// # Ok::<(), Error>(())
    /// ```
    attention (
        q, k, v, attn_mask?, bias?;
        seq: Dim of k or -2,
        embed: Dim of q or -1,
        dropout_p: f64 = 0.0,
        is_causal: bool = false,
        scale: Option<f64> = None,
        window: Option<usize> = None,
        heads: NewName = None,
        query_dim: NewName = None
    ) on floats names contracts, k: aligned, v: aligned, attn_mask: aligned, bias: aligned,
        heads: aligned, query_dim: aligned => {
        let call = AttentionCall { inputs: [q, k, v], is_ordered: is_causal || window.is_some() };
        let dims = call.dims([seq, embed], [heads, query_dim])?;
        let mask = dims.mask([attn_mask, bias], q.dtype().compute())?;
        let (attn_mask, enable_gqa) = (mask.as_ref().map(Cow::Borrowed), dims.kv_heads.is_some());
        let options =
            ScaledDotProductAttentionOptions { attn_mask, dropout_p, is_causal, scale, enable_gqa, window };
        let q = dims.arranged(q, dims.query, &[dims.embed])?;
        let k = dims.with_heads(dims.arranged(k, Some(dims.seq), &[dims.embed])?)?;
        let values = dims.with_heads(dims.arranged(v, Some(dims.seq), &dims.own)?)?;
        dims.restore(&q.scaled_dot_product_attention_with(&k, &values, options)?, v)
    }
}

/// A dim as it is matched between tensors: by its name, or without names by its place from the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    name: Option<Name>,
    from_right: usize,
}

impl Key {
    /// The dims of a tensor.
    fn all(x: &Tensor) -> Vec<Key> {
        let from_right = |dim: usize| if x.name(dim).is_some() { 0 } else { x.ndim() - dim };
        crate::list((0..x.ndim()).map(|dim| Key { name: x.name(dim), from_right: from_right(dim) }))
    }

    /// Its position in a tensor.
    #[inline(never)]
    fn find(self, x: &Tensor) -> Option<usize> {
        match self.name {
            Some(name) => x.names().position(name),
            None => x.ndim().checked_sub(self.from_right),
        }
    }

    /// The size in a tensor, if it has the dim.
    #[inline(never)]
    fn size(self, x: &Tensor) -> Option<usize> {
        self.find(x).map(|dim| x.sizes()[dim])
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "'{name}'"),
            None => write!(f, "-{}", self.from_right),
        }
    }
}

/// The tensors of a call, and whether the order of the queries matters.
struct AttentionCall<'a> {
    inputs: [&'a Tensor; 3],
    is_ordered: bool,
}

impl AttentionCall<'_> {
    /// Finds and checks the meaning of each dim.
    fn dims(&self, [seq, embed]: [usize; 2], [heads, query_dim]: [Option<Name>; 2]) -> Result<AttentionDims> {
        let [q, k, v] = self.inputs;
        let is_named = q.has_names() || k.has_names() || v.has_names();
        for (what, x) in [("q", q), ("k", k), ("v", v)] {
            check_named(what, x, is_named)?;
        }
        let (of_q, of_k, of_v) = (Key::all(q), Key::all(k), Key::all(v));
        let (Some(&seq), Some(&embed)) = (of_k.get(seq), of_q.get(embed)) else {
            return Err(shape_error("q and k need at least one dim")); // 0-d
        };
        (seq != embed).or_value(format_args!(
            "{seq} cannot be both the positions of the keys and the dim of products"
        ))?;
        same_size(embed, ("q", q), ("k", k))?;
        same_size(seq, ("k", k), ("v", v))?;
        let query = match query_dim {
            None if of_q.contains(&seq) => Some(seq),
            Some(name) => Some(self.chosen_query(name, [seq, embed])?),
            None => {
                let mut free = of_q.clone();
                let is_heads = |key: &Key| heads.is_some() && key.name == heads;
                retain(&mut free, &|key| {
                    *key != embed && !is_heads(key) && !of_k.contains(key) && !of_v.contains(key)
                });
                self.clear_query(&free)?
            }
        };
        let mut own = of_v.clone();
        retain(&mut own, &|key| *key != seq && (*key == embed || !of_q.contains(key) && !of_k.contains(key)));
        // The dims that `q` lacks come first, in the result as well.
        let mut batch = of_k.clone();
        retain(&mut batch, &|key| *key != embed && *key != seq && !of_q.contains(key));
        let mut result = batch.clone();
        for key in &of_q {
            result.extend(if *key == embed { &own } else { std::slice::from_ref(key) });
            if *key != embed && Some(*key) != query {
                batch.push(*key);
            }
        }
        if !is_named {
            sort(&mut batch, &|a, b| a.from_right > b.from_right);
            sort(&mut result, &|a, b| a.from_right > b.from_right);
        }
        let kv_heads = self.groups(heads, &mut batch)?;
        let mut shared = Vec::new();
        for key in batch {
            let is_grouped = kv_heads.is_some() && key.name == heads;
            shared.push((key, if is_grouped { key.size(q).unwrap_or(1) } else { self.size(key)? }));
        }
        let lengths = [query.and_then(|key| key.size(q)).unwrap_or(1), seq.size(k).unwrap_or(1)];
        Ok(AttentionDims { seq, embed, query, batch: shared, own, result, kv_heads, lengths })
    }

    /// The positions of the queries among the dims that only `q` has.
    fn clear_query(&self, free: &[Key]) -> Result<Option<Key>> {
        let option = |name| format!("AttentionOptions::new().query_dim(\"{name}\")");
        let is_heads = |name: &Name| mentions(&name.as_str().to_ascii_lowercase(), "head");
        let (message, repair): (String, _) = match free {
            [] if self.is_ordered => {
                ("q has no positions, which is_causal and window need: it has no dim of its own".into(), None)
            }
            [Key { name: Some(name), .. }] if self.is_ordered && is_heads(name) => (
                format!(
                    "is_causal and window are about the positions of the queries: the only dim that k and v lack is '{name}', and heads have no order"
                ),
                Some(option(*name) + ", if these are positions; a single query needs no such option"),
            ),
            [_, .., last] if self.is_ordered => {
                let all: Vec<String> = crate::list(free.iter().map(Key::to_string));
                let message =
                    format!("the positions of the queries could be any of {}", crate::joined(&all, ", "));
                (message, last.name.map(|name| option(name) + ", or another of them"))
            }
            // Any of them gives the same result; most queries at once are fastest.
            _ => return Ok(free.iter().copied().max_by_key(|key| key.size(self.inputs[0]))),
        };
        Err(repaired(value_error(message), repair))
    }

    /// The dim of `q` that an option names.
    fn chosen_query(&self, name: Name, [seq, embed]: [Key; 2]) -> Result<Key> {
        let [q, k, v] = self.inputs;
        Dim::from(name).look_up("", &[q.value()])?;
        let key = Key { name: Some(name), from_right: 0 };
        let is_free = key != embed && key.find(k).is_none() && key.find(v).is_none();
        if key == seq || is_free && seq.find(q).is_none() {
            return Ok(key);
        }
        Err(value_error(match seq.find(q) {
            Some(_) => format!("query_dim '{name}' must be {seq}, which q has as well"),
            None => format!("query_dim '{name}' must be a dim of q that k and v lack"),
        }))
    }

    /// The number of heads of `k` and `v` if they serve groups of heads of `q`. The kernel needs the heads as
    /// the last of the shared dims.
    fn groups(&self, heads: Option<Name>, batch: &mut Vec<Key>) -> Result<Option<usize>> {
        let (Some(name), [q, k, v]) = (heads, self.inputs) else { return Ok(None) };
        Dim::from(name).look_up("", &[q.value()])?;
        let key = Key { name: Some(name), from_right: 0 };
        let Some(at) = batch.iter().position(|own| *own == key) else {
            let dims = "the positions and the dim of products";
            return Err(value_error(format_args!("heads '{name}' must be a dim beside {dims}")));
        };
        let [own, of_k, of_v] = [q, k, v].map(|x| key.size(x).unwrap_or(1));
        let shared = of_k.max(of_v);
        if shared == 1 || (of_k == own || of_k == 1) && (of_v == own || of_v == 1) {
            return Ok(None); // they broadcast
        }
        let fits = |size: usize| size == shared || size == 1;
        (shared > 0 && fits(of_k) && fits(of_v) && own % shared == 0).or_shape(format_args!(
            "the heads in k and v must divide those in q, got {own} in q, {of_k} in k and {of_v} in v"
        ))?;
        batch.remove(at);
        batch.push(key);
        Ok(Some(shared))
    }

    /// The size to which a shared dim broadcasts.
    fn size(&self, key: Key) -> Result<usize> {
        let mut size = 1;
        for x in self.inputs {
            let own = key.size(x).unwrap_or(1);
            if size != 1 && own != 1 && own != size {
                return Err(self.other_size(key, size.is_multiple_of(own)));
            }
            size = if own == 1 { size } else { own };
        }
        Ok(size)
    }

    /// The error for a shared dim of different sizes, which can be that of heads if `in_groups`.
    #[cold]
    fn other_size(&self, key: Key, in_groups: bool) -> Error {
        let size_in = |(what, x): (&str, &Tensor)| key.size(x).map(|size| format!("{size} in {what}"));
        let sizes: Vec<String> =
            crate::list(["q", "k", "v"].into_iter().zip(self.inputs).filter_map(size_in));
        let message = format!("the sizes of the dim {key} differ: {}", crate::joined(&sizes, ", "));
        let heads = |name| {
            format!(
                "AttentionOptions::new().heads(\"{name}\") if each head of k serves a group of heads of q"
            )
        };
        repaired(shape_error(message), key.name.filter(|_| in_groups).map(heads))
    }
}

/// The meaning of each dim of a call.
struct AttentionDims {
    seq: Key,
    embed: Key,
    /// The positions of the queries, unless there is a single query.
    query: Option<Key>,
    /// The dims that are matched, with their sizes.
    batch: Vec<(Key, usize)>,
    /// The dims of values.
    own: Vec<Key>,
    /// The dims of the result.
    result: Vec<Key>,
    /// The heads of keys and values, if they serve groups of heads of queries.
    kv_heads: Option<usize>,
    /// The number of queries and of keys.
    lengths: [usize; 2],
}

impl AttentionDims {
    /// `x` without names as `[batch.., rows, columns]`, where the columns are several dims as one. A dim that
    /// `x` lacks has size one.
    fn arranged(&self, x: &Tensor, rows: Option<Key>, columns: &[Key]) -> Result<Tensor> {
        let (mut order, mut sizes) = (Vec::new(), Vec::new());
        for key in self.batch.iter().map(|(key, _)| Some(*key)).chain([rows]) {
            let dim = key.and_then(|key| key.find(x));
            order.extend(dim);
            sizes.push(dim.map_or(1, |dim| x.sizes()[dim]));
        }
        let columns: Vec<usize> = crate::list(columns.iter().filter_map(|key| key.find(x)));
        sizes.push(numel(&sizes_of(x, &columns)));
        order.extend(columns);
        permuted(x.rename(None)?, &order)?.reshape(sizes)
    }

    /// Keys or values with their number of heads, if these are in groups: one head is expanded to all.
    fn with_heads(&self, x: Tensor) -> Result<Tensor> {
        let Some(heads) = self.kv_heads else { return Ok(x) };
        let mut sizes = copied(x.sizes());
        sizes[x.ndim() - 3] = heads;
        x.expand(sizes)
    }

    /// The result with its own dims in place of `[batch.., queries, width]`, where the width is that of `v`.
    fn restore(&self, y: &Tensor, v: &Tensor) -> Result<Tensor> {
        let mut dims = self.batch.clone();
        dims.extend(self.query.map(|key| (key, self.lengths[0])));
        dims.extend(self.own.iter().map(|key| (*key, key.size(v).unwrap_or(1))));
        let sizes: Vec<usize> = crate::list(dims.iter().map(|(_, size)| *size));
        let place = |key: &Key| dims.iter().position(|(own, _)| own == key);
        let order: Vec<usize> = crate::list(self.result.iter().filter_map(place));
        let names: Vec<Option<Name>> = crate::list(self.result.iter().map(|key| key.name));
        with_names(permuted(y.reshape(sizes)?, &order)?, &Names::new("", names)?)
    }

    /// All that is added to the scores or hides keys, as one mask `[batch.., queries, keys]`.
    fn mask(&self, [mask, bias]: [Option<&Tensor>; 2], dtype: DType) -> Result<Option<Tensor>> {
        let mask = mask.map(|mask| self.arranged_mask("attn_mask", mask, dtype)).transpose()?;
        let bias = bias.map(|bias| self.arranged_mask("bias", bias, dtype)).transpose()?;
        let (Some(mask), Some(bias)) = (&mask, &bias) else { return Ok(mask.or(bias)) };
        let is_bool = mask.dtype() == DType::Bool;
        let both = if is_bool { mask.choose(bias, f64::NEG_INFINITY) } else { mask.add(bias) };
        both.map(Some)
    }

    /// A mask with its dims in the order of the scores, and numbers in their dtype.
    fn arranged_mask(&self, what: &str, mask: &Tensor, dtype: DType) -> Result<Tensor> {
        let (own, is_bias) = (mask.dtype(), what == "bias");
        if !own.is_floating_point() && (is_bias || own != DType::Bool) {
            let (taken, cast) =
                if is_bias { ("floating-point", dtype) } else { ("bool or floating-point", DType::Bool) };
            let error = wrong_dtype(format_args!("{what} must be {taken}, got {own}"), (what, cast));
            let instead = "AttentionOptions::new().attn_mask(..), which hides keys where it is false";
            return Err(if own == DType::Bool { error.with_repair(instead) } else { error });
        }
        let mask = if own == DType::Bool { mask } else { &mask.to(dtype)? };
        let is_self = self.query == Some(self.seq);
        let key = match self.seq.name {
            Some(name) if is_self => Key { name: Some(Name::new(&format!("{name}_key"))?), from_right: 0 },
            _ => self.seq,
        };
        let mut scores: Vec<Named> = crate::list(self.batch.iter().map(|(key, size)| (key.name, *size)));
        if let (Some(name), true) = (key.name, scores.iter().any(|(own, _)| *own == key.name)) {
            let message =
                format_args!("in {what}, '{name}' would be the positions of the keys, but it is another dim");
            return Err(fault(ErrorKind::DuplicateName, message));
        }
        scores.extend(self.query.map(|query| (query.name, self.lengths[0])));
        scores.push((key.name, self.lengths[1]));
        let unfit = |kind| {
            let message =
                format_args!("{what} {} does not broadcast to [{}]", mask.shape(), dims_text(&scores));
            Err(repaired(fault(kind, message), renamed_to_fit(what, mask, &scores)))
        };
        let last = &scores[scores.len().saturating_sub(mask.ndim())..];
        let fits = last.len() == mask.ndim()
            && last.iter().zip(mask.sizes()).all(|((_, wanted), size)| size == wanted || *size == 1);
        if self.seq.name.is_none() {
            // By position from the right, as the op takes it.
            let kind = if mask.has_names() { ErrorKind::NameMismatch } else { ErrorKind::Shape };
            return if fits && !mask.has_names() { Ok(mask.clone()) } else { unfit(kind) };
        }
        check_named(what, mask, true).map_err(|error| {
            let names: Option<Vec<&str>> = crate::list(last.iter().map(|(name, _)| Some((*name)?.as_str())));
            let names = names.filter(|_| fits && !mask.has_names());
            repaired(error, names.map(|names| format!("{what}.refine_names({names:?})?")))
        })?;
        for (dim, size) in mask.sizes().iter().enumerate() {
            match scores.iter().find(|(name, _)| *name == mask.name(dim)) {
                None => return unfit(ErrorKind::NameNotFound),
                Some((_, wanted)) if size != wanted && *size != 1 => return unfit(ErrorKind::Shape),
                _ => {}
            }
        }
        if let (Some(name), Some(of_keys)) = (self.seq.name.filter(|_| is_self), key.name)
            && let Some(error) = without_keys(what, mask, name, of_keys)
        {
            return Err(error);
        }
        self.arranged(mask, self.query, &[key])
    }
}

/// The error for a mask of self-attention with the positions `queries` and without those of the keys: it would
/// hide all keys from a query, or add one number to all of its scores, where the keys are meant.
#[cold]
pub(crate) fn without_keys(what: &str, mask: &Tensor, queries: Name, keys: Name) -> Option<Error> {
    let has = |name| mask.names().position(name).is_some();
    if !has(queries) || has(keys) {
        return None;
    }
    let message = format!(
        "{what} {} has no positions of keys: beside '{queries}', those of the queries, the keys are '{keys}'",
        mask.shape()
    );
    let repair = format!("{what}.rename([(\"{queries}\", \"{keys}\")])?, if it is about the keys");
    Some(fault(ErrorKind::NameNotFound, message).with_repair(repair))
}

/// An error unless all dims of a tensor have names, or none.
fn check_named(what: &str, x: &Tensor, is_named: bool) -> Result<()> {
    if !is_named || (0..x.ndim()).all(|dim| x.name(dim).is_some()) {
        return Ok(());
    }
    let message = "has dims without names beside tensors with names, and refine_names gives names";
    Err(fault(ErrorKind::NameMismatch, format_args!("{what} {} {message}", x.shape())))
}

/// An error unless both tensors have the dim, in one size.
fn same_size(key: Key, (what, x): Called<'_>, (other_what, other): Called<'_>) -> Result<()> {
    if let Some(name) = key.name {
        Dim::from(name).look_up("", &[other.value()])?;
    }
    let size = key.size(x).unwrap_or(1);
    let Some(of_other) = key.size(other) else {
        return Err(shape_error(format_args!("{other_what} {} has no dim {key}", other.shape())));
    };
    (size == of_other)
        .or_shape(format_args!("the dim {key} has {size} elements in {what} and {of_other} in {other_what}"))
}
