//! Compresses handwritten digits to a few numbers and restores them: `cargo run --release --example
//! autoencoder`. It needs no data, and draws digits beside what is restored in
//! `target/autoencoder/reconstructions.svg`.

use clap::Parser;
use namegrad::data::{Loader, TensorDataset};
use namegrad::nn::{Unflatten, Upsample};
use namegrad::optim::schedule::{Polynomial, Scheduler};
use namegrad::prelude::*;
use namegrad::train::pictures::Images;
use namegrad_examples::flags::{self, TrainFlags};
use namegrad_examples::{Result, digits, training};
use std::process::ExitCode;

/// Train a convolutional autoencoder on 8x8 handwritten digits.
#[derive(Parser)]
#[command(
    mut_arg("epochs", |arg| arg.default_value("30")),
    mut_arg("batch_size", |arg| arg.default_value("32")),
    mut_arg("lr", |arg| arg.default_value("0.003")),
    mut_arg("hidden", |arg| arg.default_value("12").help("Numbers to which a digit is compressed")),
    mut_arg("dropout", |arg| arg.hide(true)),
    mut_arg("out", |arg| arg.default_value("target/autoencoder")),
)]
struct Flags {
    #[command(flatten)]
    train: TrainFlags,
}

/// Digits in the picture, in two rows each: as they are, and restored.
const SHOWN: usize = 16;

/// A stack of layers that halve the image, a linear layer, and the way back.
#[derive(Module)]
struct Autoencoder {
    encoder: Sequential,
    decoder: Sequential,
}

impl Autoencoder {
    fn new(code: usize) -> namegrad::Result<Autoencoder> {
        let halve = |input: usize, output: usize| {
            Conv2d::builder(("C", input), ("C", output), [("H", 3), ("W", 3)]).stride(2).padding(1).build()
        };
        let smooth = |input: usize, output: usize| {
            Conv2d::builder(("C", input), ("C", output), [("H", 3), ("W", 3)]).padding(1).build()
        };
        let double = || Upsample::builder(None).scale_factor([("H", 2.0), ("W", 2.0)]).build();
        let encoder = Sequential::new()
            .then(halve(1, 16)?) // [N, C=16, H=4, W=4]
            .then(Relu)
            .then(halve(16, 32)?) // [N, C=32, H=2, W=2]
            .then(Relu)
            .then(Flatten::new(["C", "H", "W"], "features")?)
            .then(Linear::new(("features", 128), ("code", code))?);
        let decoder = Sequential::new()
            .then(Linear::new(("code", code), ("features", 128))?)
            .then(Relu)
            .then(Unflatten::new("features", [("C", 32), ("H", 2), ("W", 2)])?)
            .then(double())
            .then(smooth(32, 16)?) // [N, C=16, H=4, W=4]
            .then(Relu)
            .then(double())
            .then(smooth(16, 1)?); // [N, C=1, H=8, W=8]
        Ok(Autoencoder { encoder, decoder })
    }

    /// The logits of the pixels.
    fn forward(&self, images: &Tensor) -> namegrad::Result<Tensor> {
        self.decoder.forward(&self.encoder.forward(images)?)
    }
}

/// The mean squared error of the pixels, and the restored images.
fn restore(model: &Autoencoder, images: &Tensor) -> namegrad::Result<(f64, Tensor)> {
    model.eval();
    let restored = no_grad(|| model.forward(images)?.sigmoid())?;
    Ok((F::mse_loss(&restored, images)?.item::<f64>()?, restored))
}

fn train(model: &Autoencoder, train: &Tensor, test: &Tensor, flags: &TrainFlags) -> Result<()> {
    let data = TensorDataset::new(train.clone())?;
    let loader = Loader::builder(data).batch_size(flags.batch_size).shuffle(true).build()?;
    let steps = if flags.steps == 0 { loader.len()? } else { flags.steps };
    let mut optimizer = AdamW::builder(model.parameters()).lr(flags.lr).build()?;
    let schedule = Polynomial::new(flags.epochs * steps); // linearly to zero
    let mut scheduler = Scheduler::new(schedule, &mut optimizer)?;
    for epoch in 1..=flags.epochs {
        model.train();
        for batch in loader.iter().take(steps) {
            let batch = batch?;
            let loss = F::binary_cross_entropy_with_logits(&model.forward(&batch)?, &batch)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            scheduler.step(&mut optimizer)?;
        }
        if epoch % 5 == 0 || epoch == flags.epochs {
            println!("epoch {epoch:3}  mean squared error on test digits {:.4}", restore(model, test)?.0);
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    flags::run(|| {
        let Flags { train: flags } = Flags::try_parse()?;
        flags.create_out()?;
        training::set_threads(flags.threads)?;
        manual_seed(flags.seed);
        let (images, _) = digits::load()?;
        let count = images.size("N")?;
        let images = images.index_select(Tensor::randperm(count)?, "N")?;
        // Four fifths for training, the rest for testing.
        let first = count * 4 / 5;
        let [training, test] = [images.narrow("N", 0, first)?, images.narrow("N", first, count - first)?];

        let model = Autoencoder::new(flags.hidden)?;
        println!("{model}\n");
        train(&model, &training, &test, &flags)?;

        let (_, restored) = restore(&model, &test)?;
        let path = flags.out.join("reconstructions.svg");
        // Digits above what is restored of them.
        let shown = |images: &Tensor| images.narrow("N", 0, SHOWN);
        Images::new().row(shown(&test)?)?.row(shown(&restored)?)?.scale(8).save(&path)?;
        println!("picture     {}", path.display());
        Ok(())
    })
}
