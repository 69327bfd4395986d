//! W9: convolutions. W12: other functions that layers are made of. Each is measured forward, and forward with
//! the gradients of all inputs.

use crate::data::{classes, uniform};
use crate::harness::{Bench, Work};
use namegrad::prelude::*;

/// W9: convolutions without a bias.
pub(crate) fn convolutions(bench: &Bench) -> Result<()> {
    if !bench.wants("W9") {
        return Ok(());
    }
    // Batch, channels, height, width, features; kernel, padding, stride, groups.
    let cases = [
        ("3x3_64_56", [16, 64, 56, 56, 64], [3, 1, 1, 1]),
        ("3x3_128_28", [16, 128, 28, 28, 128], [3, 1, 1, 1]),
        ("1x1_256_512", [16, 256, 14, 14, 512], [1, 0, 1, 1]),
        ("3x3_256_14", [16, 256, 14, 14, 256], [3, 1, 1, 1]),
        ("3x3_96_27", [8, 96, 27, 27, 96], [3, 1, 1, 1]),
        ("3x3_67_odd", [3, 67, 23, 31, 75], [3, 2, 1, 1]),
        ("3x3_17_56", [16, 17, 56, 56, 33], [3, 1, 1, 1]),
        ("3x3_3_64", [16, 3, 56, 56, 64], [3, 1, 1, 1]),
        ("3x3_64_56_one", [1, 64, 56, 56, 64], [3, 1, 1, 1]),
        ("strided_64_56", [16, 64, 56, 56, 64], [3, 1, 2, 1]),
        ("depthwise_64_56", [16, 64, 56, 56, 64], [3, 1, 1, 64]),
    ];
    for (name, [batch, channels, height, width, features], [kernel, padding, stride, groups]) in cases {
        let x = uniform(1, &[batch, channels, height, width], 1.0)?;
        let weight = uniform(2, &[features, channels / groups, kernel, kernel], 0.05)?;
        let [rows, columns] = [height, width].map(|size| (size + 2 * padding - kernel) / stride + 1);
        let flops = 2 * batch * features * channels / groups * kernel * kernel * rows * columns;
        let work = [Work::Flops(flops), Work::Flops(3 * flops)];
        both(bench, &format!("W9.{name}"), work, [x, weight], |[x, weight]| {
            F::conv2d_with(x, weight, Conv2dOptions::new().padding(padding).stride(stride).groups(groups))
        })?;
    }
    Ok(())
}

/// W12: norms, pooling, embeddings and attention.
pub(crate) fn others(bench: &Bench) -> Result<()> {
    if !bench.wants("W12") {
        return Ok(());
    }
    let work = [Work::Call, Work::Call];
    for (rows, columns) in [(1024, 1024), (768, 128)] {
        let x = uniform(1, &[rows, columns], 1.0)?;
        let [weight, bias] = [uniform(2, &[columns], 1.0)?, uniform(3, &[columns], 1.0)?];
        both(bench, &format!("W12.layer_norm.{rows}x{columns}"), work, [x, weight, bias], |[x, w, b]| {
            x.layer_norm_with(-1, LayerNormOptions::new().weight(w).bias(b))
        })?;
    }
    let images = || uniform(1, &[16, 64, 56, 56], 1.0);
    let scales = || Ok::<_, Error>([uniform(2, &[64], 1.0)?, uniform(3, &[64], 1.0)?]);
    let [weight, bias] = scales()?;
    both(bench, "W12.batch_norm.64x56", work, [images()?, weight, bias], |[x, w, b]| {
        let options = BatchNormOptions::new().weight(w).bias(b).training(true);
        Ok(F::batch_norm_with(x, 1, options)?.0)
    })?;
    let [weight, bias] = scales()?;
    both(bench, "W12.group_norm.64x56", work, [images()?, weight, bias], |[x, w, b]| {
        F::group_norm_with(x, 8, 1, [2, 3], GroupNormOptions::new().weight(w).bias(b))
    })?;
    both(bench, "W12.max_pool.64x56", work, [images()?], |[x]| F::max_pool2d(x, 2))?;
    both(bench, "W12.max_pool3.64x56", work, [images()?], |[x]| {
        F::max_pool2d_with(x, 3, MaxPool2dOptions::new().stride(2).padding(1))
    })?;
    both(bench, "W12.avg_pool.64x56", work, [images()?], |[x]| F::avg_pool2d(x, 2))?;
    both(bench, "W12.adaptive_avg_pool.64x56", work, [images()?], |[x]| F::adaptive_avg_pool2d(x, 1))?;
    for (rows, columns, count) in [(65, 128, 768), (50_000, 256, 8192)] {
        let index = classes(2, count, rows as u64)?;
        both(
            bench,
            &format!("W12.embedding.{rows}x{columns}"),
            work,
            [uniform(1, &[rows, columns], 1.0)?],
            |[w]| F::embedding(&index, w),
        )?;
    }
    for (batch, heads, length, width, causal) in
        [(12, 4, 64, 32, true), (4, 8, 512, 64, false), (4, 8, 512, 64, true), (1, 8, 2048, 64, true)]
    {
        let draw = |seed| uniform(seed, &[batch, heads, length, width], 1.0);
        let name = format!("W12.attention.{length}x{width}{}", if causal { ".causal" } else { "" });
        both(bench, &name, work, [draw(1)?, draw(2)?, draw(3)?], |[q, k, v]| {
            let options = ScaledDotProductAttentionOptions::new().is_causal(causal);
            q.scaled_dot_product_attention_with(k, v, options)
        })?;
    }
    for (length, window) in [(2048, 128), (8192, 128)] {
        let draw = |seed| uniform(seed, &[1, 8, length, 64], 1.0);
        let name = format!("W12.attention.{length}x64.window{window}");
        both(bench, &name, work, [draw(1)?, draw(2)?, draw(3)?], |[q, k, v]| {
            let options = ScaledDotProductAttentionOptions::new().window(window);
            q.scaled_dot_product_attention_with(k, v, options)
        })?;
    }
    // Messages along the edges of a graph.
    let (nodes, edges) = (10_000, 100_000);
    let to = classes(2, edges, nodes as u64)?;
    let messages = || uniform(1, &[edges, 64], 1.0);
    both(bench, "W12.segment_sum.100000x64", work, [messages()?], |[x]| x.segment_sum(&to, 0, nodes))?;
    both(bench, "W12.segment_max.100000x64", work, [messages()?], |[x]| x.segment_max(&to, 0, nodes))?;
    both(bench, "W12.segment_softmax.100000x64", work, [messages()?], |[x]| {
        x.segment_softmax(&to, 0, nodes)
    })?;
    Ok(())
}

/// Measures `call` on the inputs, and then with the gradients of all of them.
fn both<const N: usize>(
    bench: &Bench,
    name: &str,
    [forward, all]: [Work; 2],
    inputs: [Tensor; N],
    call: impl Fn([&Tensor; N]) -> Result<Tensor>,
) -> Result<()> {
    bench.case(&format!("{name}.fwd"), forward, || call(inputs.each_ref()));
    let inputs = inputs.into_iter().map(Tensor::requiring_grad).collect::<Result<Vec<_>>>()?;
    bench.case(&format!("{name}.fwdbwd"), all, || {
        inputs.iter().for_each(Tensor::zero_grad);
        call(std::array::from_fn(|at| &inputs[at]))?.sum(..)?.backward()
    });
    Ok(())
}
