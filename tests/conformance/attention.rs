//! Layers of attention. A layer gets the recorded weights as the values of its parameters, and the gradients
//! of the parameters are those of the recorded weights.

use crate::call::{Answer, Call, Value, missing};
use namegrad::autograd::{BackwardOptions, Op, grad_with};
use namegrad::nn::{
    MultiheadAttentionOptions, TransformerDecoderLayer, TransformerDecoderOptions, TransformerEncoderLayer,
    TransformerEncoderOptions,
};
use namegrad::prelude::*;
use serde_json::Value as Json;

/// The paths of the recorded weights.
fn paths(c: &Call<'_>) -> Vec<String> {
    let list = c.arg("weights").and_then(Json::as_array).into_iter().flatten();
    list.filter_map(|path| path.as_str().map(String::from)).collect()
}

/// The outputs of `run` for a module whose parameters have the values of the last inputs of the call.
fn replayed(
    c: &Call<'_>,
    module: &dyn Module,
    run: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Answer<Vec<Value>> {
    let (paths, given) = (paths(c), c.xs()?);
    let (inputs, weights) = given.split_at(given.len() - paths.len());
    let inputs: Vec<Tensor> = inputs.iter().map(|x| x.detach().requiring_grad()).collect::<Result<_>>()?;
    let parameters = module.named_parameters();
    if parameters.len() != paths.len() {
        return missing(format!("{} parameters for {paths:?}", parameters.len()));
    }
    let mut leaves = inputs.clone();
    for (path, weight) in paths.iter().zip(weights) {
        let Some((_, parameter)) = parameters.iter().find(|(own, _)| own == path) else {
            return missing(format!("the parameter {path}"));
        };
        parameter.set(weight.value())?;
        leaves.push(parameter.tensor());
    }
    let led_back = |y: Tensor| {
        let mut op = Op::new("layer", y.value().clone());
        for (given, leaf) in given.iter().zip(&leaves) {
            let (y, leaf) = (y.clone(), leaf.clone());
            op = op.input(given, move |g, _| {
                let options =
                    BackwardOptions { retain_graph: true, allow_unused: true, ..Default::default() };
                let gradient = grad_with(&[&y], &[&leaf], &[Some(g)], options)?.remove(0);
                gradient.map_or_else(|| leaf.zeros_like(), Ok)
            });
        }
        Value::Tensor(op.output())
    };
    Ok(run(&inputs)?.into_iter().map(led_back).collect())
}

/// `nn.MultiheadAttention`.
pub(crate) fn multihead(c: &mut Call<'_>) -> Answer<Vec<Value>> {
    let paths = paths(c);
    let (embed, dtype) = (c.int("embed_dim")?, c.x(0)?.dtype());
    let layer = MultiheadAttention::builder(embed, c.int("num_heads")?, "seq")
        .kdim(c.int_or("kdim", embed)?)
        .vdim(c.int_or("vdim", embed)?)
        .bias(c.flag("bias", true) && paths.iter().any(|path| path == "in_proj_bias"))
        .add_bias_kv(c.flag("add_bias_kv", false) || paths.iter().any(|path| path == "bias_k"))
        .dropout(c.float_or("dropout", 0.0)?)
        .is_causal(c.flag("is_causal", false))
        .add_zero_attn(c.flag("add_zero_attn", false))
        .batch_first(c.flag("batch_first", false))
        .dtype(dtype)
        .build()?;
    let mut options = MultiheadAttentionOptions::new()
        .need_weights(c.flag("need_weights", true))
        .average_attn_weights(c.flag("average_attn_weights", true));
    if let Some(mask) = c.tensor("attn_mask") {
        options = options.attn_mask(mask);
    }
    if let Some(mask) = c.tensor("key_padding_mask") {
        options = options.key_padding_mask(mask);
    }
    replayed(c, &layer, |inputs| {
        let attended = layer.attend_with(&inputs[0], &inputs[1], &inputs[2], options)?;
        Ok([attended.output].into_iter().chain(attended.weights).collect())
    })
}

/// The arguments that the layers of encoder and decoder share, in a builder.
macro_rules! build {
    ($c:ident, $layer:ident) => {
        $layer::builder($c.int("d_model")?, $c.int("nhead")?, "seq")
            .dim_feedforward($c.int_or("dim_feedforward", 2048)?)
            .dropout($c.float_or("dropout", 0.0)?)
            .activation(if $c.text("activation") == Some("gelu") { Tensor::gelu } else { Tensor::relu })
            .layer_norm_eps($c.float_or("layer_norm_eps", 1e-5)?)
            .norm_first($c.flag("norm_first", false))
            .bias($c.flag("bias", true) && paths($c).iter().any(|path| path == "linear1.bias"))
            .is_causal($c.flag("is_causal", false) || $c.flag("tgt_is_causal", false))
            .batch_first($c.flag("batch_first", false))
            .dtype($c.x(0)?.dtype())
            .build()?
    };
}

/// `nn.TransformerEncoderLayer`.
pub(crate) fn encoder(c: &mut Call<'_>) -> Answer<Vec<Value>> {
    let layer = build!(c, TransformerEncoderLayer);
    let mut options = TransformerEncoderOptions::new();
    if let Some(mask) = c.tensor("src_mask") {
        options = options.src_mask(mask);
    }
    if let Some(mask) = c.tensor("src_key_padding_mask") {
        options = options.src_key_padding_mask(mask);
    }
    replayed(c, &layer, |inputs| Ok(vec![layer.forward_with(&inputs[0], options)?]))
}

/// `nn.TransformerDecoderLayer`.
pub(crate) fn decoder(c: &mut Call<'_>) -> Answer<Vec<Value>> {
    let layer = build!(c, TransformerDecoderLayer);
    let mut options = TransformerDecoderOptions::new();
    options = options.memory_is_causal(c.flag("memory_is_causal", false));
    if let Some(mask) = c.tensor("tgt_mask") {
        options = options.tgt_mask(mask);
    }
    if let Some(mask) = c.tensor("memory_mask") {
        options = options.memory_mask(mask);
    }
    if let Some(mask) = c.tensor("tgt_key_padding_mask") {
        options = options.tgt_key_padding_mask(mask);
    }
    if let Some(mask) = c.tensor("memory_key_padding_mask") {
        options = options.memory_key_padding_mask(mask);
    }
    replayed(c, &layer, |inputs| Ok(vec![layer.forward_with(&inputs[0], &inputs[1], options)?]))
}
