//! Trains a classifier of handwritten digits on MNIST: `cargo run --release --example mnist -- --data
//! FOLDER`, where the folder holds the four idx files, gzipped or not.

use clap::Parser;
use namegrad::data::{Dataset, Mnist};
use namegrad::prelude::*;
use namegrad_examples::flags::{self, TrainFlags};
use namegrad_examples::training;
use namegrad_examples::training::Mlp;
use std::path::PathBuf;
use std::process::ExitCode;

/// Train a multilayer perceptron on MNIST.
#[derive(Parser)]
#[command(
    mut_arg("epochs", |arg| arg.default_value("5")),
    mut_arg("batch_size", |arg| arg.default_value("128")),
    mut_arg("lr", |arg| arg.default_value("0.002")),
    mut_arg("hidden", |arg| arg.default_value("512")),
    mut_arg("out", |arg| arg.default_value("target/mnist")),
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

fn main() -> ExitCode {
    flags::run(|| {
        let Flags { data, train: flags } = Flags::try_parse()?;
        training::set_threads(flags.threads)?;
        manual_seed(flags.seed);
        let Mnist { train, test } = Mnist::load(&data)?;
        println!("MNIST: {} to train on, {} to test on, seed {}", train.len(), test.len(), flags.seed);
        let pixels = train.images().numel() / train.len();
        let model = Mlp::new(pixels, flags.hidden, flags.dropout, CLASSES)?;
        training::train("MNIST", &flags, &model, train, test, CLASSES)
    })
}
