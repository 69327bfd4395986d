//! Attention and transformers: dims and masks by name, causal and padded sequences, PyTorch's state, and what
//! the layers refuse.

use crate::orders;
use namegrad::autograd::gradcheck_parameters;
use namegrad::core::random::Generator;
use namegrad::nn::{
    MultiheadAttentionOptions, RotaryEmbedding, Transformer, TransformerDecoder, TransformerDecoderLayer,
    TransformerDecoderOptions, TransformerEncoder, TransformerEncoderLayer, TransformerEncoderOptions,
};
use namegrad::prelude::*;

fn close(a: &Tensor, b: &Tensor) {
    let options = IscloseOptions::new().atol(1e-5).rtol(1e-5);
    assert!(a.allclose_with(b, options).unwrap(), "{a} is not {b}");
}

fn encoder_layer() -> Result<TransformerEncoderLayer> {
    let layer = TransformerEncoderLayer::builder(("embed", 6), ("heads", 2), "seq").dim_feedforward(5);
    layer.dropout(0.0).norm_first(true).activation(Tensor::gelu).build()
}

const DIMS: [(&str, usize); 4] = [("N", 2), ("seq", 4), ("embed", 6), ("row", 3)];

/// Layers of one input with these dims.
fn layers() -> Result<Vec<(&'static str, Box<dyn Layer>)>> {
    let attention = || MultiheadAttention::builder(("embed", 6), ("heads", 2), "seq");
    let layer =
        TransformerEncoderLayer::builder(("embed", 6), ("heads", 3), "seq").dropout(0.0).is_causal(true);
    let encoder = TransformerEncoder::new(layer.dim_feedforward(("hidden", 7)), 2)?;
    Ok(vec![
        ("MultiheadAttention", Box::new(attention().build()?)),
        ("causal", Box::new(attention().is_causal(true).bias(false).build()?)),
        ("more keys", Box::new(attention().is_causal(true).add_bias_kv(true).add_zero_attn(true).build()?)),
        ("kv_heads", Box::new(attention().kv_heads(1).build()?)),
        ("TransformerEncoderLayer", Box::new(encoder_layer()?)),
        ("TransformerEncoder", Box::new(encoder.with_norm(LayerNorm::new([("embed", 6)])?))),
    ])
}

/// The values and gradients by name do not depend on the order of the dims, and another dim rides along.
#[test]
fn the_order_of_dims_does_not_matter() -> Result<()> {
    manual_seed(1);
    for (name, layer) in layers()? {
        let names = DIMS.map(|(name, _)| name);
        let (x, factors) = (Tensor::randn(DIMS)?, Tensor::randn(DIMS)?);
        let run = |x: &Tensor| -> Result<(Tensor, Tensor)> {
            let x = x.detach().requiring_grad()?;
            let y = layer.forward(&x)?;
            assert_eq!(y.names(), x.names(), "{name}");
            let y = y.align_to(names)?;
            y.mul(&factors)?.sum(..)?.backward()?;
            Ok((y, x.grad().unwrap().rename(Some(x.names().clone()))?.align_to(names)?))
        };
        let want = run(&x)?;
        for order in orders(&names) {
            let got = run(&x.align_to(order)?)?;
            close(&got.0, &want.0);
            close(&got.1, &want.1);
        }
        let row = layer.forward(&x.select("row", 1)?)?;
        close(&row, &want.0.select("row", 1)?);
        let one = layer.forward(&x.select("row", 1)?.select("N", 0)?)?;
        close(&one, &row.select("N", 0)?);
    }
    Ok(())
}

#[test]
fn without_names_dims_have_pytorchs_order() -> Result<()> {
    let attention = MultiheadAttention::new(("embed", 6), ("heads", 2), "seq")?;
    let x = Tensor::randn([("seq", 4), ("N", 2), ("embed", 6)])?;
    let want = attention.forward(&x)?.rename(None)?;
    let bare = x.rename(None)?;
    close(&attention.forward(&bare)?.rename(None)?, &want);
    let batch_first = MultiheadAttention::builder(6, 2, "seq").batch_first(true).build()?;
    let by_position = MultiheadAttention::new(6, 2, -2)?;
    for layer in [&batch_first, &by_position] {
        let state = attention.state_dict();
        layer.load_state_dict_with(&state, namegrad::nn::LoadOptions::new().ignore_names(true))?;
        let y = layer.forward(&bare.transpose(0, 1)?)?;
        assert!(!y.has_names());
        close(&y.transpose(0, 1)?, &want);
        close(&layer.forward(&bare.select(1, 0)?)?, &want.select(1, 0)?);
    }
    Ok(())
}

#[test]
fn keys_of_another_sequence() -> Result<()> {
    manual_seed(2);
    let layer = MultiheadAttention::new(("embed", 6), ("heads", 2), "target")?;
    let target = Tensor::randn([("N", 2), ("target", 3), ("embed", 6)])?;
    let source = Tensor::randn([("N", 2), ("source", 5), ("embed", 6)])?;
    let want = layer.attend(&target, &source, &source)?;
    assert_eq!(want.shape(), target.shape());
    // By name in any order; under the name of the layer; under a name that the layer is given.
    let turned = source.align_to(["embed", "source", "N"])?;
    close(&layer.attend(&target, &turned, &source)?, &want);
    let same = source.rename([("source", "target")])?;
    close(&layer.attend(&target, &same, &turned)?, &want);
    let named =
        MultiheadAttention::builder(("embed", 6), ("heads", 2), "target").key_seq("source").build()?;
    named.load_state_dict(&layer.state_dict())?;
    close(&named.attend(&target, &turned, &turned)?, &want);
    assert_eq!(named.attend(&target, &same, &same).unwrap_err().kind(), ErrorKind::NameNotFound);
    // A source that all targets share.
    let shared = source.select("N", 0)?;
    let beside = Tensor::stack(&[&shared, &shared], 0)?.rename([Some("N"), Some("source"), Some("embed")])?;
    let want = layer.attend(&target, &beside, &beside)?;
    close(&layer.attend(&target, &shared, &shared)?, &want);
    // Other features.
    let layer = MultiheadAttention::builder(("embed", 6), ("heads", 2), "target").kdim(("depth", 4)).vdim(3);
    let layer = layer.build()?;
    let depth = Tensor::randn([("depth", 4), ("N", 2), ("source", 5)])?;
    let value = Tensor::randn((("N", 2), ("source", 5), 3))?;
    assert_eq!(layer.attend(&target, &depth, &value)?.shape(), target.shape());
    let paths: Vec<(String, String)> =
        layer.named_parameters().into_iter().map(|(path, x)| (path, x.shape().to_string())).collect();
    let paths: Vec<(&str, &str)> = paths.iter().map(|(path, shape)| (&path[..], &shape[..])).collect();
    let wanted = [
        ("q_proj_weight", "[embed=6, embed_in=6]"),
        ("k_proj_weight", "[embed=6, depth=4]"),
        ("v_proj_weight", "[embed=6, ?=3]"),
        ("in_proj_bias", "[qkv=18]"),
        ("out_proj.weight", "[embed=6, embed_in=6]"),
        ("out_proj.bias", "[embed=6]"),
    ];
    assert_eq!(paths, wanted);
    Ok(())
}

#[test]
fn causal_attention_is_a_mask() -> Result<()> {
    manual_seed(3);
    let layer = MultiheadAttention::new(("embed", 6), ("heads", 2), "seq")?;
    let x = Tensor::randn([("N", 3), ("seq", 4), ("embed", 6)])?;
    let run = |options| layer.attend_with(&x, &x, &x, options).map(|attended| attended.output);
    let options = MultiheadAttentionOptions::new;
    let want = run(options().is_causal(true))?;
    assert!(!want.allclose(&layer.forward(&x)?)?);
    let hidden = Tensor::ones([4, 4])?.triu_with(TriuOptions::new().diagonal(1))?.to(DType::Bool)?;
    let numbers = Tensor::zeros([4, 4])?.masked_fill(&hidden, f64::NEG_INFINITY)?;
    let by_name = hidden.rename([Some("seq"), Some("seq_key")])?;
    let heads = hidden.expand([6, 4, 4])?;
    let turned = by_name.t()?;
    for mask in [&hidden, &numbers, &by_name, &turned, &heads] {
        for need_weights in [false, true] {
            close(&run(options().attn_mask(mask).need_weights(need_weights))?, &want);
            close(&run(options().attn_mask(mask).is_causal(true).need_weights(need_weights))?, &want);
        }
    }
    // A mask for each head and each sequence, by name and in PyTorch's order.
    let mask = Tensor::randn([("heads", 2), ("seq_key", 4), ("N", 3), ("seq", 4)])?;
    let flat = mask.align_to(["N", "heads", "seq", "seq_key"])?.rename(None)?.reshape([6, 4, 4])?;
    close(&run(options().attn_mask(&mask))?, &run(options().attn_mask(&flat))?);
    Ok(())
}

#[test]
fn padded_keys_are_ignored() -> Result<()> {
    manual_seed(4);
    let x = Tensor::randn([("N", 2), ("seq", 4), ("embed", 6)])?;
    let other = Tensor::cat(
        &[&x.narrow("seq", 0, 3)?, &Tensor::randn([("N", 2), ("seq", 1), ("embed", 6)])?],
        "seq",
    )?;
    let padding = Tensor::new([[false, false, false, true], [false, false, false, true]])?;
    let named = padding.rename([Some("N"), Some("seq")])?;
    let layer = encoder_layer()?;
    let short = layer.forward(&x.narrow("seq", 0, 3)?)?;
    for padding in [&padding, &named, &named.t()?, &named.select("N", 0)?] {
        let options = TransformerEncoderOptions::new().src_key_padding_mask(padding);
        for x in [&x, &other] {
            close(&layer.forward_with(x, options)?.narrow("seq", 0, 3)?, &short);
        }
    }
    // A sequence of padding alone gives numbers.
    let all = padding.ones_like()?.to(DType::Bool)?;
    let attention = MultiheadAttention::new(("embed", 6), ("heads", 2), "seq")?;
    for need_weights in [false, true] {
        let options = MultiheadAttentionOptions::new().key_padding_mask(&all).need_weights(need_weights);
        let y = attention.attend_with(&x, &x, &x, options)?.output;
        assert_eq!(y.abs()?.sum(..)?.item::<f64>()?, 0.0); // the bias of the last map is 0
    }
    Ok(())
}

/// A window hides the keys that are further away, with and without weights, learned keys and causal order.
#[test]
fn a_window_is_a_mask() -> Result<()> {
    manual_seed(5);
    let x = Tensor::randn([("N", 2), ("seq", 6), ("embed", 6)])?;
    let far = |i: usize, j: usize| i.abs_diff(j) > 2;
    let far: Vec<bool> = (0..36).map(|at| far(at / 6, at % 6)).collect();
    let far = Tensor::from_slice(&far, [("seq", 6), ("seq_key", 6)])?;
    for (causal, extra) in [(false, false), (true, false), (true, true)] {
        let layer = MultiheadAttention::builder(("embed", 6), ("heads", 2), "seq").is_causal(causal);
        let layer = layer.add_bias_kv(extra);
        // Other tests draw from the default generator meanwhile.
        let [all, near] =
            [layer.clone(), layer.window(2)].map(|layer| Generator::from_seed(6).scope(|| layer.build()));
        let (all, near) = (all?, near?);
        for weights in [false, true] {
            let options = MultiheadAttentionOptions::new().need_weights(weights);
            let wanted = all.attend_with(&x, &x, &x, options.attn_mask(&far))?;
            close(&near.attend_with(&x, &x, &x, options)?.output, &wanted.output);
        }
    }
    Ok(())
}

/// Rotary positions turn queries and keys of each head, as the layer does that is called for them.
#[test]
fn rotary_positions_of_a_layer() -> Result<()> {
    manual_seed(11);
    let rotary = RotaryEmbedding::builder(("width", 4), "seq").base(50.0).build()?;
    let builder = || MultiheadAttention::builder(("embed", 8), ("heads", 2), "seq").kv_heads(1).bias(false);
    let layer = builder().rotary(rotary.clone()).build()?;
    let x = Tensor::randn([("N", 2), ("seq", 5), ("embed", 8)])?;
    let weight = layer.in_proj_weight().expect("merged").tensor();
    let parts = x.contract(&weight, "embed")?.split([8, 4, 4], "qkv")?; // [N, seq, qkv]
    let heads = |x: &Tensor, heads: usize| x.unflatten("qkv", [("heads", heads), ("width", 4)]);
    let (q, k) = (rotary.forward(&heads(&parts[0], 2)?)?, rotary.forward(&heads(&parts[1], 1)?)?);
    let y = F::attention(&q, &k, heads(&parts[2], 1)?, "seq", "width")?;
    let y = y.align_to(["N", "seq", "heads", "width"])?.flatten(["heads", "width"], "embed")?;
    close(&layer.forward(&x)?, &layer.out_proj().forward(&y)?);
    assert_eq!(layer.forward(&x)?.shape(), x.shape());
    // Other features than those of a head.
    let other = builder().rotary(RotaryEmbedding::new(("width", 8), "seq")?).build();
    assert_eq!(other.unwrap_err().kind(), ErrorKind::Value);
    Ok(())
}

/// The mask of a window is made of tensors: one that does not fit in memory is an error.
#[test]
fn a_window_beside_weights_that_do_not_fit() -> Result<()> {
    let layer = MultiheadAttention::builder(("embed", 2), ("heads", 1), "seq").window(1).build()?;
    let x = Tensor::zeros([("seq", 1), ("embed", 2)])?.expand(("seq", 1 << 20))?;
    let options = MultiheadAttentionOptions::new().need_weights(true);
    assert_eq!(layer.attend_with(&x, &x, &x, options).unwrap_err().kind(), ErrorKind::OutOfMemory);
    Ok(())
}

#[test]
fn one_query_at_a_time_gives_what_all_give() -> Result<()> {
    manual_seed(5);
    let builder = MultiheadAttention::builder(("embed", 6), ("heads", 2), "seq");
    for layer in [builder.clone().is_causal(true).build()?, builder.kv_heads(1).is_causal(true).build()?] {
        let x = Tensor::randn([("N", 2), ("seq", 5), ("embed", 6)])?;
        let full = layer.forward(&x)?;
        for step in 0..5 {
            let (last, seen) = (x.narrow("seq", step as isize, 1)?, x.narrow("seq", 0, step + 1)?);
            let options = MultiheadAttentionOptions::new().is_causal(false);
            let y = layer.attend_with(&last, &seen, &seen, options)?.output;
            close(&y, &full.narrow("seq", step as isize, 1)?);
        }
    }
    // The decoder, on growing prefixes.
    let layer = TransformerDecoderLayer::builder(("embed", 6), ("heads", 2), "target").dim_feedforward(5);
    let decoder = TransformerDecoder::new(layer.is_causal(true), 2)?;
    decoder.eval();
    let target = Tensor::randn([("N", 2), ("target", 4), ("embed", 6)])?;
    let memory = Tensor::randn([("source", 3), ("N", 2), ("embed", 6)])?;
    let full = decoder.forward(&target, &memory)?;
    for length in 1..4 {
        let prefix = target.narrow("target", 0, length)?;
        close(&decoder.forward(&prefix, &memory)?, &full.narrow("target", 0, length)?);
    }
    Ok(())
}

#[test]
fn the_weights_are_those_of_the_output() -> Result<()> {
    manual_seed(6);
    let builder = || MultiheadAttention::builder(("embed", 6), ("heads", 2), "seq");
    let x = Tensor::randn([("embed", 6), ("seq", 3), ("N", 2)])?;
    let more = builder().add_bias_kv(true).add_zero_attn(true).build()?;
    for (layer, keys) in [(builder().build()?, 3), (builder().kv_heads(1).build()?, 3), (more, 5)] {
        for causal in [false, true] {
            let options = MultiheadAttentionOptions::new().is_causal(causal);
            let plain = layer.attend_with(&x, &x, &x, options)?;
            assert!(plain.weights.is_none());
            let options = options.need_weights(true);
            let averaged = layer.attend_with(&x, &x, &x, options)?;
            let each = layer.attend_with(&x, &x, &x, options.average_attn_weights(false))?;
            let ([averaged, each], outputs) =
                ([averaged.weights.unwrap(), each.weights.unwrap()], [averaged.output, each.output]);
            outputs.iter().for_each(|y| close(y, &plain.output));
            assert_eq!(averaged.shape().to_string(), format!("[N=2, seq=3, seq_key={keys}]"));
            assert_eq!(each.shape().to_string(), format!("[N=2, heads=2, seq=3, seq_key={keys}]"));
            close(&each.mean("heads")?, &averaged);
            close(&each.sum("seq_key")?, &Tensor::ones([("N", 2), ("heads", 2), ("seq", 3)])?);
        }
    }
    Ok(())
}

#[test]
fn gradients_of_an_encoder_layer() -> Result<()> {
    manual_seed(7);
    for norm_first in [false, true] {
        let layer = TransformerEncoderLayer::builder(("embed", 4), ("heads", 2), "seq").dim_feedforward(3);
        let layer = layer.dropout(0.0).activation(Tensor::gelu).norm_first(norm_first).dtype(DType::F64);
        let layer = layer.is_causal(true).build()?;
        let x = TensorOptions::new().dtype(DType::F64).randn([("N", 2), ("seq", 3), ("embed", 4)])?;
        gradcheck_parameters(|| layer.forward(&x), layer.named_parameters())?;
    }
    Ok(())
}

#[test]
fn state_has_pytorchs_paths_and_comes_back() -> Result<()> {
    let builder =
        Transformer::builder(("embed", 4), ("heads", 2), "seq").num_encoder_layers(1).dim_feedforward(3);
    let model = builder.clone().num_decoder_layers(1).dropout(0.0).build()?;
    let paths: Vec<String> = model.named_parameters().into_iter().map(|(path, _)| path).collect();
    let attention = ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"];
    let both = |layer: &str, of: &str| [format!("{layer}{of}.weight"), format!("{layer}{of}.bias")];
    let mut wanted = Vec::new();
    for (layer, attentions, norms) in [
        ("encoder.layers.0.", &["self_attn"][..], 2),
        ("decoder.layers.0.", &["self_attn", "multihead_attn"][..], 3),
    ] {
        attentions.iter().for_each(|of| wanted.extend(attention.map(|path| format!("{layer}{of}.{path}"))));
        wanted.extend(both(layer, "linear1").into_iter().chain(both(layer, "linear2")));
        (1..=norms).for_each(|number| wanted.extend(both(layer, &format!("norm{number}"))));
        wanted.extend(both(&layer[..8], "norm"));
    }
    assert_eq!(paths, wanted);
    let other = builder.num_decoder_layers(1).dropout(0.0).build()?;
    let file = std::env::temp_dir().join(format!("namegrad-attention-{}.safetensors", std::process::id()));
    model.state_dict().save(&file)?;
    other.load_state_dict(&namegrad::nn::StateDict::load(&file)?)?;
    std::fs::remove_file(&file).unwrap();
    let (src, tgt) = (Tensor::randn([("seq", 3), ("embed", 4)])?, Tensor::randn([("seq", 2), ("embed", 4)])?);
    assert!(model.forward(&src, &tgt)?.equal(&other.forward(&src, &tgt)?)?);
    Ok(())
}

#[test]
fn initial_values_are_pytorchs() -> Result<()> {
    manual_seed(8);
    let layer = MultiheadAttention::builder(("embed", 64), ("heads", 4), "seq").add_bias_kv(true).build()?;
    let state = layer.state_dict();
    let largest = |path: &str| state.get(path).unwrap().abs()?.amax(..)?.item::<f64>();
    for (path, bound) in [("in_proj_weight", (6.0f64 / 256.0).sqrt()), ("out_proj.weight", 0.125)] {
        assert!((0.98 * bound..=bound).contains(&largest(path)?), "{path}: {}", largest(path)?);
    }
    assert_eq!([largest("in_proj_bias")?, largest("out_proj.bias")?], [0.0; 2]);
    let extra = state.get("bias_k").unwrap();
    assert_eq!(extra.sizes(), [1, 1, 64]);
    assert!((extra.std(..)?.item::<f64>()? - 0.125).abs() < 0.03);
    Ok(())
}

#[test]
fn masks_of_source_and_target() -> Result<()> {
    manual_seed(9);
    let model =
        Transformer::builder(("embed", 4), ("heads", 2), "target").source_seq("source").is_causal(true);
    let model = model.num_encoder_layers(1).num_decoder_layers(2).dim_feedforward(3).dropout(0.0).build()?;
    let source = Tensor::randn([("N", 2), ("source", 4), ("embed", 4)])?;
    let target = Tensor::randn([("target", 3), ("N", 2), ("embed", 4)])?;
    let padding =
        Tensor::new([false, false, false, true])?.expand([2, 4])?.rename([Some("N"), Some("source")])?;
    let y = model.forward_with(
        &source,
        &target,
        TransformerEncoderOptions::new().src_key_padding_mask(&padding),
        TransformerDecoderOptions::new().memory_key_padding_mask(&padding),
    )?;
    close(&y, &model.forward(&source.narrow("source", 0, 3)?, &target)?);
    // The first of the target sees only itself.
    let first = model.forward(&source, &target.narrow("target", 0, 1)?)?;
    close(&first, &model.forward(&source, &target)?.narrow("target", 0, 1)?);
    Ok(())
}

#[test]
fn rotary_positions() -> Result<()> {
    manual_seed(11);
    for interleaved in [false, true] {
        let rotary =
            RotaryEmbedding::builder(("width", 6), "seq").base(100.0).interleaved(interleaved).build()?;
        let x = Tensor::randn([("heads", 2), ("seq", 4), ("width", 6)])?;
        let y = rotary.forward(&x)?;
        let at = |x: &Tensor, seq: usize, feature: usize| -> Result<f64> {
            x.select("heads", 1)?
                .select("seq", seq as isize)?
                .select("width", feature as isize)?
                .item::<f64>()
        };
        for (seq, pair) in (0..4).flat_map(|seq| (0..3).map(move |pair| (seq, pair))) {
            let (first, second) = if interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + 3) };
            let (sin, cos) = (seq as f64 * 100f64.powf(-2.0 * pair as f64 / 6.0)).sin_cos();
            let (a, b) = (at(&x, seq, first)?, at(&x, seq, second)?);
            assert!((at(&y, seq, first)? - (a * cos - b * sin)).abs() < 1e-5);
            assert!((at(&y, seq, second)? - (a * sin + b * cos)).abs() < 1e-5);
        }
        for order in orders(&["heads", "seq", "width"]) {
            close(&rotary.forward(&x.align_to(order)?)?.align_as(&x)?, &y);
        }
        close(&rotary.forward(&x.rename(None)?)?, &y.rename(None)?);
        close(&rotary.forward_from(&x.narrow("seq", 2, 2)?, 2)?, &y.narrow("seq", 2, 2)?);
    }
    assert_eq!(RotaryEmbedding::new(("width", 5), "seq").unwrap_err().kind(), ErrorKind::Value);
    let rotary = RotaryEmbedding::new(("width", 4), "seq")?;
    let error = |x: Tensor| rotary.forward(&x).unwrap_err().kind();
    assert_eq!(error(Tensor::ones([("time", 3), ("width", 4)])?), ErrorKind::NameNotFound);
    assert_eq!(error(Tensor::ones([("seq", 3), ("width", 6)])?), ErrorKind::Shape);
    assert_eq!(error(Tensor::ones([3, 4])?.to(DType::I64)?), ErrorKind::DType);
    Ok(())
}

#[test]
fn strict_names() -> Result<()> {
    let layer = encoder_layer()?;
    let x = Tensor::randn([("N", 2), ("embed", 6), ("seq", 3)])?;
    namegrad::names::strict(|| {
        assert_eq!(layer.forward(&x)?.shape(), x.shape());
        assert!(layer.forward(&x.rename(None)?).is_err());
        let attention = MultiheadAttention::new(("embed", 6), ("heads", 2), "target")?;
        let target = x.rename([("seq", "target")])?;
        // The name of the source is not guessed.
        assert_eq!(attention.attend(&target, &x, &x).unwrap_err().kind(), ErrorKind::NameNotFound);
        Ok(())
    })
}

#[test]
fn what_a_summary_says() -> Result<()> {
    let layer = encoder_layer()?;
    assert_eq!(layer.describe(), "TransformerEncoderLayer(embed=6, heads=2, along seq)");
    assert!(layer.to_string().contains("MultiheadAttention(embed=6, heads=2, along seq)"), "{layer}");
    Ok(())
}

#[test]
fn dropout_only_in_training() -> Result<()> {
    let layer = MultiheadAttention::builder(("embed", 6), ("heads", 2), "seq").dropout(0.5).build()?;
    let x = Tensor::randn([("seq", 8), ("embed", 6)])?;
    assert!(!layer.forward(&x)?.equal(&layer.forward(&x)?)?);
    layer.eval();
    assert!(layer.forward(&x)?.equal(&layer.forward(&x)?)?);
    Ok(())
}

/// Learns to repeat the first of a sequence at the end.
#[test]
fn training_lowers_the_loss() -> Result<()> {
    manual_seed(10);
    let layer = encoder_layer()?;
    let x = Tensor::randn([("N", 32), ("seq", 4), ("embed", 6)])?;
    let target = x.narrow("seq", 0, 1)?;
    let mut optimizer = Adam::builder(layer.parameters()).lr(0.01).build()?;
    let mut losses = Vec::new();
    for _ in 0..30 {
        let loss = layer.forward(&x)?.narrow("seq", 3, 1)?.sub(&target)?.square()?.mean(..)?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        losses.push(loss.item::<f64>()?);
    }
    assert!(losses[29] < 0.5 * losses[0], "{losses:?}");
    Ok(())
}

#[derive(Module)]
struct Model {
    block: TransformerEncoderLayer,
}

#[test]
fn wrong_calls() -> Result<()> {
    let built = |heads: usize| MultiheadAttention::new(("embed", 6), ("heads", heads), "seq").unwrap_err();
    assert_eq!([built(4).kind(), built(0).kind()], [ErrorKind::Value; 2]);
    assert!(built(4).message().contains("embed=6 and heads=4"), "{}", built(4));
    let builder = || MultiheadAttention::builder(("embed", 6), ("heads", 2), "seq");
    for wrong in [builder().dropout(1.5), builder().kv_heads(0), builder().kv_heads(3)] {
        assert_eq!(wrong.build().unwrap_err().kind(), ErrorKind::Value);
    }
    assert_eq!(builder().dtype(DType::I64).build().unwrap_err().kind(), ErrorKind::DType);

    let model = Model { block: encoder_layer()? };
    model.train(); // tells the layers their paths
    let x = Tensor::ones([("N", 2), ("seq", 3), ("embed", 6)])?;
    let narrow = model.block.forward(&x.narrow("embed", 0, 4)?).unwrap_err();
    assert_eq!(narrow.kind(), ErrorKind::Shape);
    assert!(narrow.message().contains("block."), "{narrow}");
    assert_eq!(narrow.location().file(), file!());

    let layer = builder().build()?;
    let error = |x: &Tensor| layer.forward(x).unwrap_err();
    assert_eq!(error(&x.rename([("seq", "time")])?).kind(), ErrorKind::NameNotFound);
    assert_eq!(error(&x.rename([("embed", "F")])?).kind(), ErrorKind::NameNotFound);
    assert_eq!(error(&x.narrow("embed", 0, 5)?).kind(), ErrorKind::Shape);
    assert_eq!(error(&x.narrow("seq", 0, 0)?).kind(), ErrorKind::Shape);
    assert_eq!(error(&x.select("seq", 0)?.select("N", 0)?).kind(), ErrorKind::Shape);
    assert_eq!(error(&Tensor::ones([2, 3, 4, 6])?).kind(), ErrorKind::Shape);
    assert_eq!(error(&x.to(DType::F64)?).kind(), ErrorKind::DType);
    assert_eq!(error(&x.to(DType::I64)?).kind(), ErrorKind::DType);
    assert_eq!(error(&x.narrow("seq", 0, 0)?).location().file(), file!());

    let attend = |key: &Tensor, value: &Tensor| layer.attend(&x, key, value).unwrap_err().kind();
    assert_eq!(attend(&x, &x.narrow("seq", 0, 2)?), ErrorKind::Shape);
    assert_eq!(attend(&x.narrow("N", 0, 1)?, &x), ErrorKind::Shape);
    let more = Tensor::ones([("T", 2), ("N", 2), ("seq", 3), ("embed", 6)])?;
    assert_eq!(attend(&more, &x), ErrorKind::NameNotFound);

    let masked = |mask: &Tensor| {
        let options = MultiheadAttentionOptions::new().attn_mask(mask);
        layer.attend_with(&x, &x, &x, options).unwrap_err()
    };
    assert_eq!(masked(&Tensor::ones([3, 2])?).kind(), ErrorKind::Shape);
    assert_eq!(masked(&Tensor::ones([5, 3, 3])?).kind(), ErrorKind::Shape);
    // Two sequences, not two heads.
    assert_eq!(masked(&Tensor::ones([2, 3, 3])?).kind(), ErrorKind::Shape);
    let by_name = Tensor::ones([("N", 2), ("seq", 3), ("seq_key", 3)])?;
    layer.attend_with(&x, &x, &x, MultiheadAttentionOptions::new().attn_mask(&by_name))?;
    // Without queries there is nothing to do; without keys, nothing to attend to.
    assert_eq!(layer.attend(&x.narrow("seq", 0, 0)?, &x, &x)?.sizes(), [2, 0, 6]);
    assert_eq!(masked(&Tensor::ones([("seq", 3), ("key", 3)])?).kind(), ErrorKind::NameNotFound);
    assert_eq!(masked(&Tensor::ones([3, 3])?.to(DType::I64)?).kind(), ErrorKind::DType);
    assert!(masked(&Tensor::ones([3, 2])?).message().contains("[N=2, heads=2, seq=3, seq_key=3]"));
    let padded = |mask: &Tensor| {
        let options = MultiheadAttentionOptions::new().key_padding_mask(mask);
        layer.attend_with(&x, &x, &x, options).unwrap_err()
    };
    assert_eq!(padded(&Tensor::ones([2, 4])?).kind(), ErrorKind::Shape);
    assert_eq!(padded(&Tensor::ones([3, 2, 4])?).kind(), ErrorKind::Shape);
    assert_eq!(padded(&Tensor::ones([("N", 2), ("time", 3)])?).kind(), ErrorKind::NameNotFound);
    Ok(())
}

#[test]
fn a_mask_of_self_attention_without_the_keys_hid_no_key() -> Result<()> {
    let x = Tensor::randn([("N", 2), ("time", 3), ("embed", 4)])?;
    let seen = Tensor::new([[true, true, false], [true, false, false]])?.refine_names(["N", "time"])?;
    let with = |x: &Tensor, options| F::attention_with(x, x, x, "time", "embed", options);
    let error = with(&x, AttentionOptions::new().attn_mask(&seen)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameNotFound);
    let repair = |what| format!("{what}.rename([(\"time\", \"time_key\")])?, if it is about the keys");
    assert_eq!(error.repair(), Some(&repair("attn_mask")[..]));
    let bias = Tensor::ones([("time", 3)])?;
    let error = with(&x, AttentionOptions::new().bias(&bias)).unwrap_err();
    assert_eq!(error.repair(), Some(&repair("bias")[..]));
    // The hidden keys have no part in what the others give.
    let keys = seen.rename([("time", "time_key")])?;
    let hidden = seen.logical_not()?.align_as(&x)?;
    let other = x.masked_fill(&hidden, 9.0)?;
    let [own, its] = [&x, &other].map(|x| with(x, AttentionOptions::new().attn_mask(&keys)));
    close(&own?.masked_fill(&hidden, 0.0)?, &its?.masked_fill(&hidden, 0.0)?);
    // Queries that are not the keys can be hidden.
    let (word, memory) = (x.rename([("time", "word")])?, &x);
    let mask = seen.rename([("time", "word")])?;
    F::attention_with(&word, memory, memory, "time", "embed", AttentionOptions::new().attn_mask(&mask))?;

    let layer = MultiheadAttention::new(("embed", 4), ("heads", 2), "time")?;
    let hidden = seen.logical_not()?;
    let attend =
        |mask: &Tensor| layer.attend_with(&x, &x, &x, MultiheadAttentionOptions::new().attn_mask(mask));
    let error = attend(&hidden).unwrap_err();
    assert_eq!((error.kind(), error.repair()), (ErrorKind::NameNotFound, Some(&repair("attn_mask")[..])));
    assert!(error.message().contains("the keys are 'time_key'"), "{error}");
    let named = attend(&hidden.rename([("time", "time_key")])?)?.output;
    let options = MultiheadAttentionOptions::new().key_padding_mask(&hidden);
    close(&named, &layer.attend_with(&x, &x, &x, options)?.output);
    Ok(())
}

/// A dim without a name in a mask of padding is that of the batch, not that of the queries.
#[test]
fn unnamed_dims_of_a_mask_of_padding() -> Result<()> {
    let layer = MultiheadAttention::new(("embed", 4), ("heads", 2), "time")?;
    let x = Tensor::randn([("N", 3), ("time", 3), ("embed", 4)])?;
    let hidden = Tensor::new([[false, false, true], [false, true, true], [false, false, false]])?;
    let attend = |mask: &Tensor| {
        let options = MultiheadAttentionOptions::new().key_padding_mask(mask);
        layer.attend_with(&x, &x, &x, options).map(|attended| attended.output)
    };
    let want = attend(&hidden.refine_names(["N", "time"])?)?;
    close(&attend(&hidden)?, &want);
    for names in [[None, Some("time")], [Some("N"), None]] {
        close(&attend(&hidden.rename(names)?)?, &want);
    }
    // Not in strict mode, nor if there could be another batch dim.
    for names in [[None, Some("time")], [Some("N"), None]] {
        let mask = hidden.rename(names)?;
        let error = namegrad::names::strict(|| attend(&mask)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NameMismatch, "{error}");
    }
    assert!(namegrad::names::strict(|| attend(&hidden)).is_err());
    let more = x.unsqueeze_with(3, UnsqueezeOptions::new().name("M"))?.expand(("M", 3))?;
    let more_masked = |mask: &Tensor| {
        let options = MultiheadAttentionOptions::new().key_padding_mask(mask);
        layer.attend_with(&more, &more, &more, options).map(|attended| attended.output)
    };
    close(&more_masked(&hidden.rename(["N", "time"])?)?.select("M", 1)?, &want);
    let error = more_masked(&hidden.rename([None, Some("time")])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.message().ends_with("give all of its dims names"), "{error}");
    // The keys come last.
    let turned = hidden.t()?;
    assert_eq!(attend(&turned.rename([Some("time"), None])?).unwrap_err().kind(), ErrorKind::Shape);
    Ok(())
}

/// Keys whose features have only a size are found by the name of those of the queries, wherever they are.
#[test]
fn features_of_keys_given_by_size() -> Result<()> {
    let layer = MultiheadAttention::builder(("embed", 4), ("heads", 2), "seq").kdim(4).vdim(4).build()?;
    let q = Tensor::randn([("N", 2), ("seq", 4), ("embed", 4)])?;
    let (want, turned) = (layer.forward(&q)?, q.align_to(["embed", "N", "seq"])?);
    close(&layer.forward(&turned)?.align_as(&want)?, &want);
    let k = Tensor::randn([("N", 2), ("source", 4), ("embed", 4)])?;
    let want = layer.attend(&q, &k, &k)?;
    for order in orders(&["N", "source", "embed"]) {
        let k = k.align_to(order)?;
        close(&layer.attend(&q, &k, &k)?, &want);
    }
    // The batch of keys is that of values, even if the queries do not tell its name.
    let unnamed = q.align_to(["seq", "N", "embed"])?.rename(None)?;
    close(&layer.attend(&unnamed, &q, &q)?.transpose(0, 1)?, &layer.forward(&q)?.rename(None)?);
    let other = q.rename([("N", "other")])?;
    assert_eq!(layer.attend(&unnamed, &q, &other).unwrap_err().kind(), ErrorKind::NameMismatch);
    // Features of another name are the last dim, as in PyTorch.
    let depth = k.rename([("embed", "depth")])?;
    close(&layer.attend(&q, &depth, &depth)?, &want);
    Ok(())
}

/// The unnamed batch dim of a mask with names was taken for the heads, as many as there were.
#[test]
fn a_mask_without_a_name_for_the_batch_was_one_of_heads() -> Result<()> {
    let layer = MultiheadAttention::new(("embed", 4), ("heads", 2), "time")?;
    let x = Tensor::randn([("N", 2), ("time", 2), ("embed", 4)])?;
    let hidden = Tensor::new([[[false, true], [false, true]], [[false, false], [true, false]]])?;
    let attend = |mask: &Tensor| {
        let options = MultiheadAttentionOptions::new().attn_mask(mask);
        layer.attend_with(&x, &x, &x, options).map(|attended| attended.output)
    };
    let strictly = |mask: &Tensor| namegrad::names::strict(|| attend(mask));
    let named = hidden.rename(["N", "time", "time_key"])?;
    let want = attend(&named)?;
    for names in [[None, Some("time"), Some("time_key")], [Some("N"), None, Some("time_key")]] {
        let mask = hidden.rename(names)?;
        assert_eq!(attend(&mask).unwrap_err().kind(), ErrorKind::Shape, "{names:?}");
        assert!(strictly(&mask).is_err(), "{names:?}");
    }
    // All of the dims are there, in order.
    let all = named.unsqueeze_with(1, UnsqueezeOptions::new().name("heads"))?.expand(("heads", 2))?;
    let partly = all.rename([None, None, Some("time"), Some("time_key")])?;
    close(&attend(&partly)?, &want);
    assert_eq!(strictly(&partly).unwrap_err().kind(), ErrorKind::NameMismatch);
    close(&strictly(&all)?, &want);
    let turned = all.rename([None, Some("heads"), Some("time"), Some("time_key")])?.transpose(0, 1)?;
    assert_eq!(attend(&turned).unwrap_err().kind(), ErrorKind::Shape);
    // Nor are the rows of `[N, time_key]` queries.
    let rows = hidden.select(0, 1)?;
    attend(&rows)?;
    assert!(strictly(&rows).is_err());
    attend(&rows.rename([None, Some("time_key")])?)?;
    assert_eq!(attend(&rows.rename([Some("N"), None])?).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(attend(&rows.rename([None, Some("N")])?).unwrap_err().kind(), ErrorKind::Shape);
    // PyTorch's form for heads.
    let flat = all.rename(None)?.reshape([4, 2, 2])?;
    close(&attend(&flat)?, &want);
    assert_eq!(strictly(&flat).unwrap_err().kind(), ErrorKind::Shape);
    Ok(())
}

/// Unnamed keys and values beside named queries in another order: nothing tells which of their dims is the
/// sequence.
#[test]
fn unnamed_keys_were_read_in_another_order_than_named_queries() -> Result<()> {
    let layer = MultiheadAttention::builder(("embed", 4), ("heads", 2), "time").key_seq("source").build()?;
    let q = Tensor::randn([("N", 3), ("time", 3), ("embed", 4)])?;
    let k = Tensor::randn([("N", 3), ("source", 3), ("embed", 4)])?;
    let decoder = TransformerDecoderLayer::builder(("embed", 4), ("heads", 2), "time").dropout(0.0);
    let decoder = decoder.memory_seq("source").dim_feedforward(5).build()?;
    let want = layer.attend(&q, &k, &k)?;
    for unnamed in [k.rename([None, None, Some("embed")])?, k.rename(None)?] {
        for (q, k, v) in [(&q, &k, &unnamed), (&q, &unnamed, &k), (&q, &unnamed, &unnamed)] {
            let error = layer.attend(q, k, v).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misaligned, "{error}");
        }
        assert_eq!(decoder.forward(&q, &unnamed).unwrap_err().kind(), ErrorKind::Misaligned);
        // The values against the keys.
        let turned = q.align_to(["time", "N", "embed"])?;
        assert_eq!(layer.attend(&turned, &k, &unnamed).unwrap_err().kind(), ErrorKind::Misaligned);
    }
    // In PyTorch's order, all agree.
    let (q, k) = (q.align_to(["time", "N", "embed"])?, k.align_to(["source", "N", "embed"])?);
    for (k, v) in [(&k, &k.rename(None)?), (&k.rename(None)?, &k.rename(None)?)] {
        close(&layer.attend(&q, k, v)?.align_to(["N", "time", "embed"])?, &want);
    }
    Ok(())
}
