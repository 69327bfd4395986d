//! Compresses handwritten digits to a few numbers and restores them: `cargo run --release --example
//! autoencoder`. It needs no data, and draws digits beside what is restored in
//! `target/autoencoder/reconstructions.svg`.

mod common;

use clap::Parser;
use common::flags::{self, TrainFlags};
use common::picture::Picture;
use common::{Result, digits, training};
use namegrad::nn::{Unflatten, Upsample};
use namegrad::prelude::*;
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
            .then(double()?)
            .then(smooth(32, 16)?) // [N, C=16, H=4, W=4]
            .then(Relu)
            .then(double()?)
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
    let mut optimizer = AdamW::builder(model.parameters()).lr(flags.lr).build()?;
    let count = train.size("N")?;
    let all = count.div_ceil(flags.batch_size);
    let steps = if flags.steps == 0 { all } else { flags.steps.min(all) };
    for epoch in 1..=flags.epochs {
        model.train();
        let order = Tensor::randperm(count)?;
        for step in 0..steps {
            let start = step * flags.batch_size;
            let index = order.narrow(0, start, flags.batch_size.min(count - start))?;
            let batch = train.index_select(index, "N")?;
            let loss = F::binary_cross_entropy_with_logits(&model.forward(&batch)?, &batch)?;
            let done = ((epoch - 1) * steps + step) as f64 / (flags.epochs * steps) as f64;
            optimizer.set_lr(flags.lr * (1.0 - done))?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
        }
        if epoch % 5 == 0 || epoch == flags.epochs {
            println!("epoch {epoch:3}  mean squared error on test digits {:.4}", restore(model, test)?.0);
        }
    }
    Ok(())
}

/// Digits above what is restored of them.
fn draw(images: &Tensor, restored: &Tensor) -> namegrad::Result<Picture> {
    const PIXEL: f64 = 8.0;
    let side = digits::SIDE as f64 * PIXEL + PIXEL; // with a gap
    let mut picture = Picture::new(SHOWN as f64 * side + PIXEL, 2.0 * side + PIXEL);
    for (row, images) in [images, restored].into_iter().enumerate() {
        for at in 0..SHOWN {
            let grays = images.select("N", at)?.to_vec::<f64>()?;
            let corner = [at, row].map(|at| PIXEL + at as f64 * side);
            picture.image(corner, PIXEL, digits::SIDE, &grays);
        }
    }
    Ok(picture)
}

fn main() -> ExitCode {
    flags::run(|| {
        let Flags { train: flags } = Flags::try_parse()?;
        flags.create_out()?;
        training::set_threads(flags.threads)?;
        manual_seed(flags.seed);
        let samples = digits::load()?;
        let sizes = [("N", samples.count()), ("C", 1), ("H", digits::SIDE), ("W", digits::SIDE)];
        let images = Tensor::from_slice(&samples.pixels, sizes)?;
        let order = Tensor::randperm(samples.count())?;
        // Four fifths for training, the rest for testing.
        let images = images.index_select(order, "N")?;
        let first = samples.count() * 4 / 5;
        let [training, test] =
            [images.narrow("N", 0, first)?, images.narrow("N", first, samples.count() - first)?];

        let model = Autoencoder::new(flags.hidden)?;
        println!("{model}\n");
        train(&model, &training, &test, &flags)?;

        let (_, restored) = restore(&model, &test)?;
        let path = flags.out.join("reconstructions.svg");
        draw(&test, &restored)?.save(&path)?;
        println!("picture     {}", path.display());
        Ok(())
    })
}
