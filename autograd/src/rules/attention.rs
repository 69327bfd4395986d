//! The derivative of attention.

use crate::Tensor;
use crate::chain::*;
use crate::elsewhere::behind;
use crate::rules::kernels;
use namegrad_core::ops::attention::{AttentionArgs, attention_backward, attention_dropout};
use namegrad_core::options::{TrilOptions, TriuOptions};
use namegrad_core::{NamedTensor, Names, Result, Shape, keep};
use namegrad_macros::derivatives;

derivatives! { attention; |g, cx|
    scaled_dot_product_attention(q, k, v, mask; dropout_p, is_causal, scale, enable_gqa, window) -> (y; lse, draw) {
        (q k v mask): [q k v mask y lse draw; dropout_p is_causal scale enable_gqa window]
            gradients(g, [q, k, v], mask, [y, lse, draw], &AttentionArgs { dropout_p, is_causal, scale, enable_gqa, window }, wants)?
            => kernels(attention_backward(
                g.value(), [q.value(), k.value(), v.value()], mask.map(|mask| mask.value()),
                [y.value(), lse.value(), draw.value()], &AttentionArgs { dropout_p, is_causal, scale, enable_gqa, window }, wants
            )?)
    }
}

/// With the weights `w`: `wᵀ g` for the values, `ds = w (g vᵀ - Σ g y)` for the scores and the mask,
/// `scale ds k` for the queries, `scale dsᵀ q` for the keys. Dropped weights have their factor 0 in `w` and
/// in `g vᵀ`. Like the kernel, it computes half types in `f32`.
fn gradients(
    g: &Tensor,
    [q, k, v]: [&Tensor; 3],
    mask: Option<&Tensor>,
    [_, lse, draw]: [&Tensor; 3],
    args: &AttentionArgs,
    wants: [bool; 4],
) -> Result<[Option<Tensor>; 4]> {
    let dtype = q.dtype().compute();
    let (g, q) = (&g.to(dtype)?, &q.to(dtype)?);
    let group = if args.enable_gqa { q.sizes()[q.ndim() - 3] / k.sizes()[k.ndim() - 3] } else { 1 };
    let (k, v) = (&repeated(&k.to(dtype)?, group)?, &repeated(&v.to(dtype)?, group)?);
    let scale = args.scale.unwrap_or(1.0 / (q.sizes()[q.ndim() - 1] as f64).sqrt());
    let mut scores = q.matmul(k.mt()?).mul(scale)?;
    let (queries, keys) = (scores.sizes()[scores.ndim() - 2], scores.sizes()[scores.ndim() - 1]);
    if let Some(mask) = mask {
        let added = mask.to(dtype)?;
        scores = scores.add(if mask.dtype().is_floating_point() { added } else { added.log()? })?;
    }
    if args.is_causal || args.window.is_some() {
        let mut seen = NamedTensor::ones([queries, keys])?;
        if let Some(window) = args.window.and_then(|window| isize::try_from(window).ok()) {
            let of = |diagonal| TriuOptions::new().diagonal(diagonal);
            seen = seen.triu_with(of(-window))?.tril_with(TrilOptions::new().diagonal(window))?;
        }
        if args.is_causal {
            seen = seen.tril()?;
        }
        scores = scores.masked_fill(&Tensor::constant(seen).eq(0.0)?, f64::NEG_INFINITY)?;
    }
    // A query that sees no key has no weights.
    let blind = lse.eq(f64::NEG_INFINITY).unsqueeze(-1)?;
    let w = scores.masked_fill(&blind, 0.0).softmax(-1).masked_fill(&blind, 0.0)?;
    let shape = Shape { sizes: w.sizes().into(), names: Names::none() };
    let kept = attention_dropout(draw.value(), args.dropout_p, dtype, &|draw| match behind(w.value()) {
        Some(what) => what.drawn(shape.clone(), draw),
        None => draw(shape.clone()),
    });
    let kept = kept?.map(Tensor::constant);
    let dropped = |x: Tensor| match &kept {
        Some(kept) => x.mul(kept),
        None => Ok(x),
    };
    let of_weights = dropped(g.matmul(v.mt()?)?)?;
    let along = of_weights.mul(&w).sum(keep(-1))?;
    let of_scores = w.mul(&of_weights.sub(&along)?)?;
    let of_query = || of_scores.matmul(k).mul(scale);
    let of_key = || joined(&of_scores.mt().matmul(q).mul(scale)?, group);
    let of_value = || joined(&dropped(w.clone()).mt().matmul(g)?, group);
    Ok([
        if wants[0] { Some(of_query()?) } else { None },
        if wants[1] { Some(of_key()?) } else { None },
        if wants[2] { Some(of_value()?) } else { None },
        wants[3].then(|| of_scores.clone()),
    ])
}

/// Each head `group` times.
fn repeated(x: &Tensor, group: usize) -> Result<Tensor> {
    if group == 1 { Ok(x.clone()) } else { x.repeat_interleave(group as i64, x.ndim() as isize - 3) }
}

/// The sum over the heads of a group.
fn joined(x: &Tensor, group: usize) -> Result<Tensor> {
    if group == 1 {
        return Ok(x.clone());
    }
    let heads = x.ndim() - 3;
    let mut sizes = x.sizes().to_vec();
    sizes.splice(heads..=heads, [sizes[heads] / group, group]);
    x.reshape(sizes).sum(heads + 1)
}
