//! Code that the training examples share: a model, the training loop, and the files that it writes.

use super::Result;
use super::confusion::ConfusionMatrix;
use super::flags::TrainFlags;
use super::plot::{self, Epoch};
use super::progress::epoch_bar;
use super::samples::Samples;
use namegrad::prelude::*;

/// Two linear layers with a ReLU and dropout between them.
#[derive(Module)]
pub(crate) struct Mlp {
    hidden: Linear,
    dropout: Dropout,
    out: Linear,
}

impl Mlp {
    pub(crate) fn new(pixels: usize, hidden: usize, dropout: f64, classes: usize) -> namegrad::Result<Mlp> {
        Ok(Mlp {
            hidden: Linear::new(("pixels", pixels), ("hidden", hidden))?,
            dropout: Dropout::new(dropout)?,
            out: Linear::new(("hidden", hidden), ("class", classes))?,
        })
    }
}

impl Layer for Mlp {
    /// Logits `[N, class]` for images `[N, C, H, W]`.
    fn forward(&self, images: &Tensor) -> namegrad::Result<Tensor> {
        let pixels = images.flatten(["C", "H", "W"], "pixels")?;
        let h = self.hidden.forward(&pixels)?.relu()?;
        self.out.forward(&self.dropout.forward(&h)?)
    }
}

/// Images `[N, C, H, W]` with one channel, and labels `[N]`.
struct Set {
    images: Tensor,
    labels: Tensor,
}

impl Set {
    fn new(samples: &Samples) -> namegrad::Result<Set> {
        let n = samples.count();
        Ok(Set {
            images: Tensor::from_slice(
                &samples.pixels,
                [("N", n), ("C", 1), ("H", samples.height), ("W", samples.width)],
            )?,
            labels: Tensor::from_slice(&samples.labels, [("N", n)])?,
        })
    }

    fn len(&self) -> usize {
        self.labels.numel()
    }

    /// The samples at `indices`.
    fn pick(&self, indices: &Tensor) -> namegrad::Result<Set> {
        Ok(Set {
            images: self.images.index_select(indices, "N")?,
            labels: self.labels.index_select(indices, "N")?,
        })
    }
}

/// Sets the number of threads, if one is given.
pub(crate) fn set_threads(threads: usize) -> Result<()> {
    if threads > 0 {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    Ok(())
}

/// Trains a model from images `[N, C, H, W]` to logits `[N, class]`, prints a line for each epoch and the confusion matrix at the end, and writes the curves
/// and the checkpoint.
pub(crate) fn train(
    title: &str,
    flags: &TrainFlags,
    model: &impl Layer,
    train: &Samples,
    test: &Samples,
    classes: usize,
) -> Result<()> {
    let (train, test) = (Set::new(train)?, Set::new(test)?);
    println!("{}\n", model.summary());
    let mut optimizer = AdamW::builder(model.parameters()).lr(flags.lr).build()?;
    let mut history = Vec::new();
    for epoch in 1..=flags.epochs {
        let (train_loss, train_accuracy) = run_epoch(model, &mut optimizer, &train, flags, epoch)?;
        let (test_loss, predicted) = evaluate(model, &test)?;
        let test_accuracy = accuracy(&predicted, &test.labels)?;
        println!(
            "epoch {epoch:3}  train loss {train_loss:.4}  accuracy {:6.2} %  |  test loss {test_loss:.4}  accuracy {:6.2} %",
            100.0 * train_accuracy,
            100.0 * test_accuracy
        );
        history.push(Epoch { train_loss, test_loss, train_accuracy, test_accuracy });
    }
    let (_, predicted) = evaluate(model, &test)?;
    let pairs = test.labels.to_vec::<i64>()?.into_iter().zip(predicted.to_vec::<i64>()?);
    println!("\n{}\n", ConfusionMatrix::new(classes, pairs)?);
    let (curves, checkpoint) = (flags.out.join("curves.svg"), flags.out.join("model.safetensors"));
    plot::save(&curves, title, &history)?;
    model.state_dict().save(&checkpoint)?;
    println!("curves      {}\ncheckpoint  {}", curves.display(), checkpoint.display());
    Ok(())
}

/// Makes one pass over the training data in random order. Returns the mean loss and accuracy during the pass.
fn run_epoch(
    model: &impl Layer,
    optimizer: &mut dyn Optimizer,
    train: &Set,
    flags: &TrainFlags,
    epoch: usize,
) -> Result<(f64, f64)> {
    model.train();
    let order = Tensor::randperm(train.len())?;
    let all = train.len().div_ceil(flags.batch_size);
    let steps = if flags.steps == 0 { all } else { flags.steps.min(all) };
    let bar = epoch_bar(epoch, flags.epochs, steps as u64);
    let (mut losses, mut right, mut seen) = (0.0, 0.0, 0);
    for step in 0..steps {
        let start = step * flags.batch_size;
        let size = flags.batch_size.min(train.len() - start);
        let batch = train.pick(&order.narrow(0, start, size)?)?;
        let logits = model.forward(&batch.images)?;
        let loss = F::cross_entropy(&logits, &batch.labels, "class")?;
        // The learning rate falls linearly to zero.
        let done = ((epoch - 1) * steps + step) as f64 / (flags.epochs * steps) as f64;
        optimizer.set_lr(flags.lr * (1.0 - done))?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        let loss = loss.item::<f64>()?;
        losses += loss * size as f64;
        right += accuracy(&logits.argmax("class")?, &batch.labels)? * size as f64;
        seen += size;
        bar.set_message(format!("loss {loss:.4}"));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok((losses / seen as f64, right / seen as f64))
}

/// Images that are evaluated at a time.
const EVALUATED: usize = 256;

/// The mean loss on a data set, and the predicted class of each sample.
fn evaluate(model: &impl Layer, set: &Set) -> Result<(f64, Tensor)> {
    model.eval();
    // In parts, which fit into caches.
    let parts = no_grad(|| {
        set.images
            .split(EVALUATED, "N")?
            .iter()
            .map(|images| model.forward(images))
            .collect::<namegrad::Result<Vec<_>>>()
    })?;
    let logits = Tensor::cat(&parts.iter().collect::<Vec<_>>(), "N")?;
    Ok((F::cross_entropy(&logits, &set.labels, "class")?.item::<f64>()?, logits.argmax("class")?))
}

/// The share of the predictions that are right.
fn accuracy(predicted: &Tensor, labels: &Tensor) -> Result<f64> {
    Ok(predicted.eq(labels)?.to(DType::F64)?.mean(..)?.item::<f64>()?)
}
