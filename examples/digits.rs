//! Trains a classifier of handwritten digits on the data in the repository.
//!
//! Run it with `cargo run --release --example digits`; `-- --help` lists the flags. It writes the training
//! curves and the checkpoint to `target/digits`.

mod common;

use clap::Parser;
use common::flags::{self, TrainFlags};
use common::training::Mlp;
use common::{digits, training};
use namegrad::prelude::*;
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
        flags.create_out()?;
        training::set_threads(flags.threads)?;
        manual_seed(flags.seed);
        let samples = digits::load()?;
        let order: Vec<usize> = Tensor::randperm(samples.count())?
            .to_vec::<i64>()?
            .into_iter()
            .map(|index| index as usize)
            .collect();
        // Four fifths for training, the rest for testing.
        let (train, test) = samples.split(&order, samples.count() * 4 / 5)?;
        println!(
            "handwritten digits: {} to train on, {} to test on, seed {}",
            train.count(),
            test.count(),
            flags.seed
        );
        let model = Mlp::new(train.features(), flags.hidden, flags.dropout, digits::CLASSES)?;
        training::train("Handwritten digits", &flags, &model, &train, &test, digits::CLASSES)
    })
}
