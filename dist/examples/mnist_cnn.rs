//! The convolutional network of PyTorch's MNIST example on several processes:
//! `mpirun -n 4 cargo run --release --example mnist_cnn -- --data FOLDER --distributed`, where the folder holds
//! the four idx files, gzipped or not. With `--resume`, it goes on from its last checkpoint, on any number of
//! ranks.

#[path = "../../examples/common/cnn.rs"]
#[allow(unreachable_pub, reason = "public in the library of the examples")]
mod cnn;
#[path = "../../examples/common/flags.rs"]
#[allow(dead_code, unreachable_pub, reason = "public in the library of the examples")]
mod flags;

use clap::Parser;
use cnn::{Cnn, CnnFlags};
use namegrad::data::sampler::Random;
use namegrad::data::{Dataset, Loader, Mnist};
use namegrad::optim::schedule::{Polynomial, Scheduler};
use namegrad::prelude::*;
use namegrad::train::{Checkpoints, parts};
use namegrad_dist::{DataParallel, Group, Reduction};
use std::process::ExitCode;
use std::time::Instant;

/// Train a convolutional network on MNIST, on all processes that mpirun starts.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    cnn: CnnFlags,
    /// Go on from the last checkpoint in the folder for the results
    #[arg(long)]
    resume: bool,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let flags = Flags::parse();
    namegrad_dist::run(|world| match flags.cnn.distributed {
        true => train(&flags, world),
        false => train(&flags, &Group::single()),
    })
}

fn train(flags: &Flags, group: &Group) -> Result<()> {
    let Flags { cnn: CnnFlags { data, train: flags, .. }, resume } = flags;
    // All ranks begin with the same seed, so their samplers and loaders agree.
    manual_seed(flags.seed);
    let Mnist { train, test } = Mnist::load(data)?;
    if !flags.batch_size.is_multiple_of(group.size()) {
        return Err(format!(
            "--batch-size {} cannot be divided among {} ranks",
            flags.batch_size,
            group.size()
        )
        .into());
    }
    let side = train.images().size("H")?;
    let batch_size = flags.batch_size / group.size();
    let train =
        Loader::builder(train).batch_size(batch_size).sampler(group.sampler(Random::new())).build()?;
    let own = (group.rank()..test.len()).step_by(group.size());
    let part = test.subset(own)?;
    let part = Loader::new(part, 256)?;
    let steps = if flags.steps == 0 { train.len()? } else { flags.steps.min(train.len()?) };
    let model = DataParallel::new(Cnn::new(side, flags.hidden, flags.dropout)?, group)?;
    let mut optimizer = AdamW::builder(model.parameters()).lr(flags.lr).build()?;
    let mut scheduler = Scheduler::new(Polynomial::new(flags.epochs * steps), &mut optimizer)?;

    // One rank writes checkpoints, all read them.
    let checkpoints = Checkpoints::new(&flags.out)?;
    let mut done = 0;
    if *resume {
        done =
            checkpoints.resume(parts![&model, &mut optimizer, &mut scheduler, &train])?.unwrap_or(0) as usize;
    }
    group.spread_random_state()?; // so that each rank drops other features
    for epoch in done + 1..=flags.epochs {
        let started = Instant::now();
        model.train();
        for batch in train.iter().take(steps) {
            let (images, labels) = batch?;
            let loss = F::cross_entropy(&model.forward(&images)?, &labels, "class")?;
            optimizer.zero_grad();
            loss.backward()?; // the gradients of the whole batch, on all ranks
            optimizer.step()?;
            scheduler.step(&mut optimizer)?;
        }
        let seconds = started.elapsed().as_secs_f64();
        let accuracy = 100.0 * accuracy(&model, &part, group)?;
        if group.is_first() {
            println!(
                "epoch {epoch:3}  {} ranks  {seconds:6.1} s  test accuracy {accuracy:6.2} %",
                group.size()
            );
        }
        let parts = parts![&model, &mut optimizer, &mut scheduler, &train];
        group.on_first(|| checkpoints.save(epoch, parts))?;
    }
    Ok(())
}

/// The share of right answers on the test data, of which `part` is this rank's.
fn accuracy(model: &impl Layer, part: &Loader<(Tensor, Tensor)>, group: &Group) -> Result<f64> {
    model.eval();
    let (mut right, mut all) = (0, 0);
    for batch in part.iter() {
        let (images, labels) = batch?;
        let answers = no_grad(|| model.forward(&images))?.argmax("class")?;
        right += answers.eq(&labels)?.sum(..)?.item::<i64>()?;
        all += labels.numel() as i64;
    }
    let counts = group.all_reduce(&Tensor::new([right, all])?, Reduction::Sum)?.to_vec::<i64>()?;
    Ok(counts[0] as f64 / counts[1] as f64)
}
