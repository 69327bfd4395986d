//! A variational autoencoder with a learned prior: `cargo run --release --example vae`. It needs no data, and
//! draws new digits, beside those that it restores, in `target/vae/digits.svg`.
//!
//! An encoder says of each digit how a few numbers, its code, are distributed; a decoder says of a code how
//! bright each pixel is. The prior of codes is a mixture of normal distributions that is learned with both, so
//! that codes drawn from it are like those of digits. (D. Kingma, M. Welling, *Auto-Encoding Variational
//! Bayes*, 2014; J. Tomczak, M. Welling, *VAE with a VampPrior*, 2018; G. Loaiza-Ganem, J. Cunningham, *The
//! continuous Bernoulli*, 2019.)

use clap::Parser;
use namegrad::data::{Loader, TensorDataset};
use namegrad::distributions::{Categorical, ContinuousBernoulli, Independent, MixtureSameFamily, Normal};
use namegrad::prelude::*;
use namegrad::train::meters::Mean;
use namegrad::train::pictures::Images;
use namegrad_examples::flags::{self, TrainFlags};
use namegrad_examples::{Result, digits, training};
use std::process::ExitCode;

/// Train a variational autoencoder on 8x8 handwritten digits.
#[derive(Parser)]
#[command(
    mut_arg("epochs", |arg| arg.default_value("60")),
    mut_arg("batch_size", |arg| arg.default_value("64")),
    mut_arg("lr", |arg| arg.default_value("0.003")),
    mut_arg("hidden", |arg| arg.default_value("128")),
    mut_arg("dropout", |arg| arg.hide(true)),
    mut_arg("out", |arg| arg.default_value("target/vae")),
)]
struct Flags {
    #[command(flatten)]
    train: TrainFlags,
    /// Numbers of a code
    #[arg(long, value_name = "N", default_value_t = 8, allow_hyphen_values = true, value_parser = flags::within(1..=64usize))]
    code: usize,
    /// Parts of the prior
    #[arg(long, value_name = "N", default_value_t = 20, allow_hyphen_values = true, value_parser = flags::within(1..=1000usize))]
    parts: usize,
}

/// Digits in a row of the picture.
const SHOWN: usize = 16;
const PIXELS: usize = digits::SIDE * digits::SIDE;

#[derive(Module)]
struct Vae {
    hidden: Linear,
    loc: Linear,
    log_scale: Linear,
    decoder: Sequential,
    /// The prior: the weights `[part]`, the means and the logarithms of the scales `[part, code]`.
    weights: Parameter,
    means: Parameter,
    log_scales: Parameter,
}

impl Vae {
    fn new(hidden: usize, code: usize, parts: usize) -> namegrad::Result<Vae> {
        let of_code = || Linear::new(("hidden", hidden), ("code", code));
        let decoder = Sequential::new()
            .then(Linear::new(("code", code), ("hidden", hidden))?)
            .then(Relu)
            .then(Linear::new(("hidden", hidden), ("pixel", PIXELS))?);
        let shape = [("part", parts), ("code", code)];
        Ok(Vae {
            hidden: Linear::new(("pixel", PIXELS), ("hidden", hidden))?,
            loc: of_code()?,
            log_scale: of_code()?,
            decoder,
            weights: Parameter::new(Tensor::zeros(("part", parts))?)?,
            means: Parameter::new(Tensor::randn(shape)?)?,
            log_scales: Parameter::new(Tensor::zeros(shape)?)?,
        })
    }

    /// How the codes of digits `[N, pixel]` are distributed: over `N`, with events `[code]`.
    fn codes(&self, pixels: &Tensor) -> namegrad::Result<Independent> {
        let h = self.hidden.forward(pixels)?.relu()?;
        let scale = self.log_scale.forward(&h)?.clamp(-7.0, 3.0)?.exp()?;
        Independent::new(Normal::new(self.loc.forward(&h)?, scale)?, "code")
    }

    /// How codes of any digits are distributed, with events `[code]`.
    fn prior(&self) -> namegrad::Result<MixtureSameFamily> {
        let parts = Normal::new(&self.means, self.log_scales.exp()?)?;
        let weights = Categorical::from_logits(&self.weights, "part")?;
        MixtureSameFamily::new(weights, Independent::new(parts, "code")?)
    }

    /// How the pixels of digits with these codes are distributed: events `[pixel]`.
    fn digits(&self, codes: &Tensor) -> namegrad::Result<Independent> {
        Independent::new(ContinuousBernoulli::from_logits(self.decoder.forward(codes)?)?, "pixel")
    }

    /// A bound of the logarithm of the density of digits from below, in nats: `[N]`.
    fn bound(&self, pixels: &Tensor) -> namegrad::Result<Tensor> {
        let codes = self.codes(pixels)?;
        let z = codes.rsample(())?; // [N, code]
        let restored = self.digits(&z)?.log_prob(pixels)?;
        restored.add(self.prior()?.log_prob(&z)?)?.sub(codes.log_prob(&z)?)
    }
}

fn train(model: &Vae, train: &Tensor, test: &Tensor, flags: &TrainFlags) -> Result<()> {
    let data = TensorDataset::new(train.clone())?;
    let loader = Loader::builder(data).batch_size(flags.batch_size).shuffle(true).build()?;
    let steps = if flags.steps == 0 { loader.len()? } else { flags.steps };
    let mut optimizer = AdamW::builder(model.parameters()).lr(flags.lr).build()?;
    for epoch in 1..=flags.epochs {
        let mut mean = Mean::new();
        for batch in loader.iter().take(steps) {
            let batch = batch?;
            let loss = model.bound(&batch)?.mean("N")?.neg()?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            mean.update(&loss, batch.size("N")?)?;
        }
        if epoch % 10 == 0 || epoch == flags.epochs {
            let bound = no_grad(|| model.bound(test))?.mean("N")?.item::<f64>()?;
            println!("epoch {epoch:3}  nats a digit: training {:8.3}, test {bound:8.3}", -mean.compute());
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    flags::run(|| {
        let Flags { train: flags, code, parts } = Flags::try_parse()?;
        flags.create_out()?;
        training::set_threads(flags.threads)?;
        manual_seed(flags.seed);
        let (images, _) = digits::load()?;
        let count = images.size("N")?;
        let pixels = images.index_select(Tensor::randperm(count)?, "N")?.flatten(["C", "H", "W"], "pixel")?;
        // Four fifths for training, the rest for testing.
        let first = count * 4 / 5;
        let [training, test] =
            [pixels.narrow("N", 0, first)?, pixels.narrow("N", first as isize, count - first)?];

        let model = Vae::new(flags.hidden, code, parts)?;
        println!("{model}\n");
        train(&model, &training, &test, &flags)?;

        let sides = [("C", 1), ("H", digits::SIDE), ("W", digits::SIDE)];
        let shown = test.narrow("N", 0, SHOWN)?;
        let (restored, new) = no_grad(|| {
            let restored = model.digits(&model.codes(&shown)?.mean()?)?.mean()?;
            let codes = model.prior()?.sample([("N", 2 * SHOWN)])?;
            Ok::<_, namegrad::Error>((restored, model.digits(&codes)?.mean()?))
        })?;
        let path = flags.out.join("digits.svg");
        // Digits, what is restored of them, and two rows of new ones.
        let mut picture = Images::new();
        let rows = [shown, restored, new.narrow("N", 0, SHOWN)?, new.narrow("N", SHOWN as isize, SHOWN)?];
        for row in rows {
            picture = picture.row(row.unflatten("pixel", sides)?)?;
        }
        picture.scale(8).save(&path)?;
        println!("picture     {}", path.display());
        Ok(())
    })
}
