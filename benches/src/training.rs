//! Training steps: W5, a multilayer perceptron on 784 pixels, W6, a convolutional network on as many, W7, a
//! language model in [`gpt`](crate::gpt), and W8, an LSTM, with their memory; W11, a deep stack of layers
//! with and without checkpoints.

use crate::data::{classes, positive, uniform};
use crate::gpt::gpt;
use crate::harness::{Bench, Step};
use namegrad::autograd::{autocast, checkpoint};
use namegrad::nn::functional as F;
use namegrad::nn::{Conv2d, Linear, Lstm, Module};
use namegrad::optim::{Adam, Optimizer};
use namegrad::prelude::*;
use std::sync::Arc;

pub(crate) fn all(bench: &Bench) -> Result<()> {
    bench.training("W5.mlp.64", || mlp(64, DType::F32))?;
    bench.training("W5.mlp.512", || mlp(512, DType::F32))?;
    bench.training("W5.mlp.512.bf16", || mlp(512, DType::BF16))?;
    bench.training("W6.cnn.64", cnn)?;
    bench.training("W7.gpt.12", gpt)?;
    bench.training("W8.lstm.32", lstm)?;
    bench.training("W11.deep.plain", || deep(None))?;
    bench.training("W11.deep.checkpoint4", || deep(Some(4)))?;
    bench.training("W11.deep.checkpoint8", || deep(Some(8)))
}

/// The peak memory of 30 steps, or of a process that does nothing.
pub(crate) fn memory(bench: &Bench, model: &str) -> Result<()> {
    let name = match model {
        "W5" => {
            let mut step = mlp(512, DType::F32)?;
            for _ in 0..30 {
                step()?;
            }
            "W10.W5.mlp.512"
        }
        "W6" => {
            let mut step = cnn()?;
            for _ in 0..30 {
                step()?;
            }
            "W10.W6.cnn.64"
        }
        "W7" => {
            let mut step = gpt()?;
            for _ in 0..30 {
                step()?;
            }
            "W10.W7.gpt.12"
        }
        "W8" => {
            let mut step = lstm()?;
            for _ in 0..30 {
                step()?;
            }
            "W10.W8.lstm.32"
        }
        _ => "W10.import_only",
    };
    bench.print_memory(name);
    Ok(())
}

/// Parameter `i`, counted from 1 in order of declaration, is stream `100 + i` with the scale `1 / √fan_in`.
pub(crate) struct Init(pub(crate) u64);

impl Init {
    pub(crate) fn numbers(&mut self, sizes: &[usize], fan_in: usize) -> Result<Tensor> {
        self.0 += 1;
        uniform(100 + self.0, sizes, 1.0 / (fan_in as f32).sqrt())
    }
}

/// A layer from the next two streams.
fn linear(init: &mut Init, inputs: usize, outputs: usize) -> Result<Linear> {
    let layer = Linear::new(inputs, outputs)?;
    layer.weight().set(init.numbers(&[outputs, inputs], inputs)?.value())?;
    if let Some(bias) = layer.bias() {
        bias.set(init.numbers(&[outputs], inputs)?.value())?;
    }
    Ok(layer)
}

/// 784-512-256-10 with ReLU, cross entropy and Adam, on one batch, with products in a dtype.
pub(crate) fn mlp(batch: usize, dtype: DType) -> Result<Step> {
    let mut init = Init(0);
    let sizes = [(784, 512), (512, 256), (256, 10)];
    let [a, b, c] = sizes.map(|(inputs, outputs)| linear(&mut init, inputs, outputs));
    let (a, b, c) = (a?, b?, c?);
    let parameters = [&a, &b, &c].into_iter().flat_map(Module::parameters);
    let mut optimizer = Adam::builder(parameters).lr(1e-3).build()?;
    let x = positive(11, &[batch, 784])?;
    let target = classes(12, batch, 10)?;
    Ok(Box::new(move || {
        let loss = autocast(dtype, || {
            let hidden = b.forward(&a.forward(&x)?.relu()?)?.relu()?;
            F::cross_entropy(&c.forward(&hidden)?, &target, 1)
        })?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        Ok(loss.detach())
    }))
}

/// A convolution with a kernel of 3 by 3, from the next two streams.
fn conv(init: &mut Init, channels: usize, features: usize) -> Result<Conv2d> {
    let layer = Conv2d::new(channels, features, [3, 3])?;
    layer.weight().set(init.numbers(&[features, channels, 3, 3], 9 * channels)?.value())?;
    if let Some(bias) = layer.bias() {
        bias.set(init.numbers(&[features], 9 * channels)?.value())?;
    }
    Ok(layer)
}

/// Two convolutions with 32 and 64 features, a maximum over 2 by 2, and two linear layers, with ReLU, cross
/// entropy and Adam, on one batch of 64 images.
pub(crate) fn cnn() -> Result<Step> {
    let mut init = Init(0);
    let (first, second) = (conv(&mut init, 1, 32)?, conv(&mut init, 32, 64)?);
    let (hidden, out) = (linear(&mut init, 9216, 128)?, linear(&mut init, 128, 10)?);
    let layers: [&dyn Module; 4] = [&first, &second, &hidden, &out];
    let mut optimizer = Adam::builder(layers.into_iter().flat_map(Module::parameters)).lr(1e-3).build()?;
    let x = positive(11, &[64, 1, 28, 28])?;
    let target = classes(12, 64, 10)?;
    Ok(Box::new(move || {
        let features = second.forward(&first.forward(&x)?.relu()?)?.relu()?;
        let pixels = F::max_pool2d(&features, 2)?.reshape([64, 9216])?;
        drop(features);
        let loss = F::cross_entropy(&out.forward(&hidden.forward(&pixels)?.relu()?)?, &target, 1)?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        Ok(loss.detach())
    }))
}

/// An LSTM from 64 to 128 features over 50 steps, and a linear layer to 65 classes at every step, with cross
/// entropy and Adam, on one batch of 32 sequences.
pub(crate) fn lstm() -> Result<Step> {
    let mut init = Init(0);
    let layer = Lstm::new(64, 128, 1)?;
    for parameter in layer.parameters() {
        parameter.set(init.numbers(&parameter.shape().sizes, 128)?)?;
    }
    let head = linear(&mut init, 128, 65)?;
    let parameters = layer.parameters().into_iter().chain(head.parameters());
    let mut optimizer = Adam::builder(parameters).lr(1e-3).build()?;
    let x = uniform(11, &[32, 50, 64], 1.0)?;
    let target = classes(12, 32 * 50, 65)?;
    Ok(Box::new(move || {
        let logits = head.forward(&layer.forward(&x)?.output)?.reshape([32 * 50, 65])?;
        let loss = F::cross_entropy(&logits, &target, 1)?;
        drop(logits);
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        Ok(loss.detach())
    }))
}

/// 32 layers of size 256 with tanh, the mean square and plain gradient descent, on one batch of 1024. If
/// `segment` is given, only the input of each segment of that many layers is saved.
fn deep(segment: Option<usize>) -> Result<Step> {
    let mut init = Init(0);
    let layers = (0..32).map(|_| linear(&mut init, 256, 256)).collect::<Result<Vec<_>>>()?;
    let parameters = layers.iter().flat_map(Module::parameters);
    let mut optimizer = Sgd::builder(parameters).lr(1e-3).build()?;
    let x = positive(11, &[1024, 256])?;
    let layers = Arc::new(layers);
    let run = |layers: &[Linear], x: &Tensor| {
        layers.iter().try_fold(x.clone(), |x, layer| layer.forward(&x)?.tanh())
    };
    Ok(Box::new(move || {
        let mut y = x.clone();
        for start in (0..layers.len()).step_by(segment.unwrap_or(layers.len())) {
            let held = layers.clone();
            y = match segment {
                Some(count) => checkpoint(move |x| run(&held[start..start + count], &x[0]), &[&y])?,
                None => run(&held, &y)?,
            };
        }
        let loss = y.square()?.mean(..)?;
        drop(y);
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        Ok(loss.detach())
    }))
}
