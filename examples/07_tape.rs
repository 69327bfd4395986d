//! The tape: a drawing of it, hooks on tensors and layers, checkpoints, and finding a NaN.
//!
//! `cargo run --example 07_tape` writes `target/tape/mlp.dot`, for Graphviz, and `target/tape/mlp.svg`.

use namegrad::autograd::{Graph, checkpoint, detect_anomaly};
use namegrad::memory;
use namegrad::nn::Hooked;
use namegrad::prelude::*;
use namegrad_examples::diagram;
use std::path::Path;
use std::sync::{Arc, Mutex};

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    manual_seed(0);
    picture()?;
    hooks_of_tensors()?;
    hooks_of_layers()?;
    checkpoints()?;
    Ok(anomalies()?)
}

/// A drawing of the computation of a loss: the values that take part in the backward pass, and the ops
/// between them.
fn picture() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let hidden = Linear::new(("pixels", 8), ("hidden", 4))?;
    let out = Linear::new(("hidden", 4), ("classes", 3))?;
    let x = Tensor::rand([("N", 2), ("pixels", 8)])?;
    let h = hidden.forward(&x)?.relu()?;
    let logits = out.forward(&h)?;
    let loss = F::cross_entropy(&logits, &Tensor::new([0, 2])?.refine_names(["N"])?, "classes")?;

    let (w, b) = (hidden.weight().tensor(), hidden.bias().expect("it has one").tensor());
    let (v, c) = (out.weight().tensor(), out.bias().expect("it has one").tensor());
    let labeled =
        [("w", &w), ("b", &b), ("v", &v), ("c", &c), ("h", &h), ("logits", &logits), ("loss", &loss)];
    let graph = Graph::of(&labeled);
    let ops: Vec<_> = graph.nodes.iter().filter_map(|node| node.op).collect();
    println!("a loss of {} values, made by {ops:?}", graph.nodes.len());
    assert_eq!(
        graph.nodes.iter().filter(|node| node.is_leaf).count(),
        4,
        "the parameters; x needs no gradient"
    );

    let folder = Path::new("target/tape");
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("mlp.dot"), graph.to_string())?;
    std::fs::write(folder.join("mlp.svg"), diagram::svg(&graph))?;
    println!("drawn in {}", folder.join("mlp.svg").display());
    Ok(())
}

/// A hook sees a gradient as it is computed and can replace it, here with one whose norm is at most 1.
fn hooks_of_tensors() -> Result<()> {
    let x = Tensor::new([3.0, 4.0])?.requiring_grad()?;
    let handle = x.register_hook(|g| {
        let length = g.square()?.sum(..)?.sqrt()?.item::<f64>()?;
        Ok(if length > 1.0 { Some(g.div(length)?) } else { None })
    })?;
    x.square()?.sum(..)?.backward()?;
    println!("clipped to length 1: {}", x.grad().expect("a leaf"));
    handle.remove();
    x.zero_grad();
    x.square()?.sum(..)?.backward()?;
    assert_eq!(x.grad().expect("a leaf").to_vec::<f32>()?, [6.0, 8.0]);
    Ok(())
}

/// The hooks of a layer see its inputs, its outputs and their gradients.
fn hooks_of_layers() -> Result<()> {
    let layer = Hooked::new(Linear::new(("in", 4), ("out", 2))?);
    let model = Sequential::new().then(layer.clone()).then(Tanh);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (forward, backward) = (seen.clone(), seen.clone());
    layer.register_forward_hook(move |_, x, y| {
        forward.lock().unwrap().push(format!("forward {} -> {}", x.shape(), y.shape()));
        Ok(None)
    });
    layer.register_full_backward_hook(move |_, of_input, of_output| {
        let of_input = of_input.map_or("no gradient".into(), |g| g.shape().to_string());
        backward.lock().unwrap().push(format!("backward {of_input} <- {}", of_output.shape()));
        Ok(None)
    });
    let x = Tensor::randn([("N", 3), ("in", 4)])?.requiring_grad()?;
    model.forward(&x)?.sum(..)?.backward()?;
    println!("{}", seen.lock().unwrap().join("\n"));
    assert_eq!(*seen.lock().unwrap(), ["forward [N=3, in=4] -> [N=3, out=2]", "backward [3, 4] <- [3, 2]"]);
    Ok(())
}

/// A checkpoint saves only the input of a block and runs the block again in the backward pass.
fn checkpoints() -> Result<()> {
    let x = Tensor::randn([("N", 64), ("C", 1024)])?.requiring_grad()?;
    let block = |x: &[Tensor]| (0..20).try_fold(x[0].clone(), |y, _| y.sin());
    let measured = |y: &dyn Fn() -> Result<Tensor>| -> Result<(usize, Vec<f32>)> {
        x.zero_grad();
        let before = memory::stats().live_bytes;
        let loss = y()?.sum(..)?;
        let kept = memory::stats().live_bytes - before;
        loss.backward()?;
        Ok((kept, x.grad().expect("a leaf").to_vec()?))
    };
    let (all, plain) = measured(&|| block(std::slice::from_ref(&x)))?;
    let (few, again) = measured(&|| checkpoint(block, &[&x]))?;
    println!("kept for the backward pass: {} KiB, {} KiB with a checkpoint", all >> 10, few >> 10);
    assert!(few * 10 < all && plain == again);
    Ok(())
}

/// Anomaly mode finds the op that produced a NaN in a gradient, and its line.
fn anomalies() -> Result<()> {
    let x = Tensor::new([0.0, 4.0])?.requiring_grad()?;
    let length = x.mul(0.0)?.sqrt()?; // the derivative of the root is infinite at 0
    let loss = length.mul(0.0)?.sum(..)?;
    let error = detect_anomaly(|| loss.backward()).expect_err("0 times infinity is no number");
    println!("{error}");
    assert!(error.to_string().contains("sqrt") && error.to_string().contains("07_tape.rs"));
    Ok(())
}
