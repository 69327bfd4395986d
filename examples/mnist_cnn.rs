//! The convolutional network of PyTorch's MNIST example: `cargo run --release --example mnist_cnn -- --data
//! FOLDER`, where the folder holds the four idx files, gzipped or not. It reaches more than 99 % on the test
//! data. The same example in the folder `dist` trains it on several processes.

use clap::Parser;
use namegrad::data::{Dataset, Mnist};
use namegrad::prelude::*;
use namegrad_examples::cnn::{CLASSES, Cnn, CnnFlags};
use namegrad_examples::flags;
use namegrad_examples::training;
use std::process::ExitCode;

/// Train a convolutional network on MNIST.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    cnn: CnnFlags,
}

fn main() -> ExitCode {
    flags::run(|| {
        let CnnFlags { data, distributed, train: flags } = Flags::try_parse()?.cnn;
        if distributed {
            return Err(
                "--distributed needs MPI: run the same command in the folder dist, as docs/scale.md says"
                    .into(),
            );
        }
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
