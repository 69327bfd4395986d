//! The convolutional network of PyTorch's MNIST example: `cargo run --release --example mnist_cnn -- --data
//! FOLDER`, where the folder holds the four idx files, gzipped or not. It reaches more than 99 % on the test
//! data.

use clap::Parser;
use namegrad::data::{Dataset, Mnist};
use namegrad::prelude::*;
use namegrad_examples::flags::{self, TrainFlags};
use namegrad_examples::training;
use std::path::PathBuf;
use std::process::ExitCode;

/// Train a convolutional network on MNIST.
#[derive(Parser)]
#[command(
    mut_arg("epochs", |arg| arg.default_value("4")),
    mut_arg("dropout", |arg| arg.default_value("0.5")),
    mut_arg("out", |arg| arg.default_value("target/mnist_cnn")),
)]
struct Flags {
    /// Folder with train-images-idx3-ubyte, train-labels-idx1-ubyte and the two t10k files, optionally with
    /// .gz
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    #[command(flatten)]
    train: TrainFlags,
}

/// The digits 0 to 9.
const CLASSES: usize = 10;
/// The mean and the standard deviation of the pixels of MNIST.
const PIXELS: (f64, f64) = (0.1307, 0.3081);

/// Two convolutions and two linear layers.
#[derive(Module)]
struct Cnn {
    conv1: Conv2d,
    conv2: Conv2d,
    pool: MaxPool2d,
    dropout1: Dropout,
    flatten: Flatten,
    fc1: Linear,
    dropout2: Dropout,
    fc2: Linear,
}

impl Cnn {
    /// A network for images with `side` rows and columns.
    fn new(side: usize, hidden: usize, dropout: f64) -> Result<Cnn> {
        // A convolution says once which dims it slides along and what becomes of the channels. The order of
        // the dims of the images does not matter, and neither do further dims.
        let pooled = side.saturating_sub(4) / 2;
        Ok(Cnn {
            conv1: Conv2d::new(("C", 1), ("C", 32), [("H", 3), ("W", 3)])?,
            conv2: Conv2d::new(("C", 32), ("C", 64), [("H", 3), ("W", 3)])?,
            pool: MaxPool2d::new([("H", 2), ("W", 2)])?,
            dropout1: Dropout::new(0.25)?,
            flatten: Flatten::new(["C", "H", "W"], "features")?,
            fc1: Linear::new(("features", 64 * pooled * pooled), ("hidden", hidden))?,
            dropout2: Dropout::new(dropout)?,
            fc2: Linear::new(("hidden", hidden), ("class", CLASSES))?,
        })
    }
}

impl Layer for Cnn {
    /// Logits `[N, class]` for images `[N, C, H, W]`.
    fn forward(&self, images: &Tensor) -> Result<Tensor> {
        let (mean, std) = PIXELS;
        let x = images.sub(mean)?.div(std)?;
        let x = self.conv1.forward(&x)?.relu()?; // [N, C=32, H=26, W=26]
        let x = self.conv2.forward(&x)?.relu()?; // [N, C=64, H=24, W=24]
        let x = self.dropout1.forward(&self.pool.forward(&x)?)?; // [N, C=64, H=12, W=12]
        let h = self.fc1.forward(&self.flatten.forward(&x)?)?.relu()?; // [N, hidden]
        self.fc2.forward(&self.dropout2.forward(&h)?)
    }
}

fn main() -> ExitCode {
    flags::run(|| {
        let Flags { data, train: flags } = Flags::try_parse()?;
        training::set_threads(flags.threads)?;
        manual_seed(flags.seed);
        let Mnist { train, test } = Mnist::load(&data)?;
        println!("MNIST: {} to train on, {} to test on, seed {}", train.len(), test.len(), flags.seed);
        let side = train.images().size("H")?;
        if train.images().size("W")? != side {
            return Err("the images must be squares".into());
        }
        let model = Cnn::new(side, flags.hidden, flags.dropout)?;
        training::train("MNIST, convolutional network", &flags, &model, train, test, CLASSES)
    })
}
