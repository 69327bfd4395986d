//! The model and the training loop of the classifiers of images.

use super::Result;
use super::flags::TrainFlags;
use namegrad::data::{Collate, Loader, Source};
use namegrad::optim::schedule::{Polynomial, Scheduler};
use namegrad::prelude::*;
use namegrad::train::log::Log;
use namegrad::train::meters::{Accuracy, ConfusionMatrix, Mean};
use namegrad::train::pictures::{Chart, Figure};
use namegrad::train::progress::Progress;

/// Two linear layers with a ReLU and dropout between them.
#[derive(Module)]
pub struct Mlp {
    hidden: Linear,
    dropout: Dropout,
    out: Linear,
}

impl Mlp {
    /// From images of `pixels` to logits of `classes`; a hidden feature is dropped with probability `dropout`.
    pub fn new(pixels: usize, hidden: usize, dropout: f64, classes: usize) -> namegrad::Result<Mlp> {
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

/// Sets the number of threads, if one is given.
pub fn set_threads(threads: usize) -> Result<()> {
    if threads > 0 {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    Ok(())
}

/// Trains a model from images `[N, C, H, W]` to logits `[N, class]`, prints a line for each epoch and the
/// confusion matrix at the end, and writes the log, the curves and the checkpoint.
pub fn train<T, V>(
    title: &str,
    flags: &TrainFlags,
    model: &impl Layer,
    train: T,
    test: V,
    classes: usize,
) -> Result<()>
where
    T: Source<Sample: Collate<Batch = (Tensor, Tensor)>>,
    V: Source<Sample: Collate<Batch = (Tensor, Tensor)>>,
{
    println!("{}\n", model.summary());
    let train = Loader::builder(train).batch_size(flags.batch_size).shuffle(true).build()?;
    let test = Loader::new(test, 256)?; // batches that fit into caches
    let steps = if flags.steps == 0 { train.len()? } else { flags.steps.min(train.len()?) };
    let mut optimizer = AdamW::builder(model.parameters()).lr(flags.lr).build()?;
    // The learning rate falls linearly to zero.
    let mut scheduler = Scheduler::new(Polynomial::new(flags.epochs * steps), &mut optimizer)?;
    let mut log = Log::new(&flags.out)?;
    let epochs = Progress::new(flags.epochs).label("epochs");
    let mut matrix = ConfusionMatrix::new(classes);
    for epoch in epochs.over(1..=flags.epochs) {
        model.train();
        let (mut train_loss, mut accuracy) = (Mean::new(), Accuracy::new());
        let batches = epochs.nested(steps).label(format!("epoch {epoch}"));
        for batch in batches.over(train.iter().take(steps)) {
            let (images, labels) = batch?;
            let logits = model.forward(&images)?;
            let loss = F::cross_entropy(&logits, &labels, "class")?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            scheduler.step(&mut optimizer)?;
            train_loss.update(&loss, labels.numel() as f64)?;
            accuracy.update(&logits, &labels, "class")?;
            batches.message(format!("loss {train_loss}"));
        }
        let test_loss = evaluate(model, &test, &mut matrix)?;
        let losses = [("loss/train", train_loss.compute()), ("loss/test", test_loss.compute())];
        let accuracies = [("accuracy/train", accuracy.compute()), ("accuracy/test", matrix.accuracy())];
        log.scalars(epoch, losses.into_iter().chain(accuracies))?;
        epochs.println(format_args!(
            "epoch {epoch:3}  train loss {:.4}  accuracy {:6.2} %  |  test loss {:.4}  accuracy {:6.2} %",
            losses[0].1,
            100.0 * accuracies[0].1,
            losses[1].1,
            100.0 * accuracies[1].1
        ));
    }
    println!("\n{matrix}\n");
    let (curves, checkpoint) = (flags.out.join("curves.svg"), flags.out.join("model.safetensors"));
    let history = log.history()?;
    let chart = |of: &str| Chart::of(&history, [format!("{of}/train"), format!("{of}/test")]);
    let [loss, accuracy] = [chart("loss")?.y_label("loss"), chart("accuracy")?.y_label("accuracy")];
    let panels = [loss, accuracy].map(|panel| panel.x_label("epoch"));
    panels.into_iter().fold(Figure::new(title), Figure::panel).save(&curves)?;
    model.state_dict().save(&checkpoint)?;
    println!("curves      {}\ncheckpoint  {}", curves.display(), checkpoint.display());
    Ok(())
}

/// The mean loss on a data set. The matrix has the predictions then.
fn evaluate(
    model: &impl Layer,
    data: &Loader<(Tensor, Tensor)>,
    matrix: &mut ConfusionMatrix,
) -> Result<Mean> {
    model.eval();
    matrix.reset();
    let mut mean = Mean::new();
    for batch in data.iter() {
        let (images, labels) = batch?;
        let logits = no_grad(|| model.forward(&images))?;
        mean.update(F::cross_entropy(&logits, &labels, "class")?, labels.numel() as f64)?;
        matrix.update(&logits, &labels, "class")?;
    }
    Ok(mean)
}
