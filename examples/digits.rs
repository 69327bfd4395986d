//! Trains a classifier of handwritten digits on the data in the repository.
//!
//! Run it with `cargo run --release --example digits`; `-- --help` lists the flags. It writes the log, the
//! training curves and the checkpoint to `target/digits`.

use clap::Parser;
use namegrad::data::{Dataset, TensorDataset};
use namegrad::prelude::*;
use namegrad_examples::flags::{self, TrainFlags};
use namegrad_examples::training::Mlp;
use namegrad_examples::{digits, training};
use std::process::ExitCode;

/// Train a classifier of 8x8 handwritten digits.
// The defaults were chosen by cross-validation on the training set: five folds for each of the seeds 0, 1
// and 2.
#[derive(Parser)]
#[command(
    mut_arg("epochs", |arg| arg.default_value("60")),
    mut_arg("lr", |arg| arg.default_value("0.01")),
    mut_arg("hidden", |arg| arg.default_value("512")),
    mut_arg("dropout", |arg| arg.default_value("0.5")),
    mut_arg("out", |arg| arg.default_value("target/digits")),
)]
struct Flags {
    #[command(flatten)]
    train: TrainFlags,
}

fn main() -> ExitCode {
    flags::run(|| {
        let Flags { train: flags } = Flags::try_parse()?;
        training::set_threads(flags.threads)?;
        manual_seed(flags.seed);
        // Four fifths for training, the rest for testing.
        let [train, test] = TensorDataset::new(digits::load()?)?.random_split([0.8, 0.2], flags.seed)?;
        println!(
            "handwritten digits: {} to train on, {} to test on, seed {}",
            train.len(),
            test.len(),
            flags.seed
        );
        let model = Mlp::new(digits::SIDE * digits::SIDE, flags.hidden, flags.dropout, digits::CLASSES)?;
        training::train("Handwritten digits", &flags, &model, train, test, digits::CLASSES)
    })
}
