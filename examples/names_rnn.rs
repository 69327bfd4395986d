//! Invents first names with a GRU that reads letters: `cargo run --release --example names_rnn -- --data
//! FILE`, where the file has a name on each line. It writes the training curves and the checkpoint to
//! `target/names_rnn`.
//!
//! No line of the model says where a dim is. The names of a batch are `[N, time]`, one letter that is being
//! written is `[N, time=1]`, and the state goes from one to the next by name. The targets are shifted along
//! `time` and the loss is over `letter`, so neither can slip into the batch.

mod common;

use clap::Parser;
use common::Result;
use common::flags::{self, TrainFlags};
use common::plot::{self, Epoch};
use common::progress::epoch_bar;
use common::training::set_threads;
use namegrad::nn::{PadSequenceOptions, pad_sequence, pad_sequence_with};
use namegrad::optim::clip_grad_norm_;
use namegrad::prelude::*;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Train a GRU on first names and let it invent more.
#[derive(Parser)]
#[command(
    mut_arg("epochs", |arg| arg.default_value("6")),
    mut_arg("batch_size", |arg| arg.default_value("64")),
    mut_arg("lr", |arg| arg.default_value("0.004")),
    mut_arg("hidden", |arg| arg.default_value("128")),
    mut_arg("out", |arg| arg.default_value("target/names_rnn")),
)]
struct Flags {
    /// File with a name on each line
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Names to invent
    #[arg(long, value_name = "N", default_value_t = 20)]
    samples: usize,
    #[command(flatten)]
    train: TrainFlags,
}

/// The letter before the first and after the last of a name.
const END: char = '.';
/// The target where there is no letter, which losses ignore.
const NOTHING: f64 = -100.0;
/// The length at which an invented name is cut off.
const LONGEST: usize = 24;

#[derive(Module)]
struct Writer {
    letters: Embedding,
    gru: Gru,
    dropout: Dropout,
    next: Linear,
}

impl Writer {
    fn new(letters: usize, hidden: usize, dropout: f64) -> namegrad::Result<Writer> {
        Ok(Writer {
            letters: Embedding::new(("letter", letters), ("embed", 32))?,
            gru: Gru::new(("embed", 32), ("hidden", hidden), "time")?,
            dropout: Dropout::new(dropout)?,
            next: Linear::new(("hidden", hidden), ("letter", letters))?,
        })
    }

    /// The logits of the next letters `[N, time, letter]` after the letters `[N, time]`, and the last state.
    fn forward(&self, letters: &Tensor, state: Option<&Tensor>) -> namegrad::Result<(Tensor, Tensor)> {
        let options = GruOptions { h0: state.cloned(), ..GruOptions::new() };
        let RecurrentOutput { output, hn } =
            self.gru.forward_with(&self.letters.forward(letters)?, options)?;
        Ok((self.next.forward(&self.dropout.forward(&output)?)?, hn))
    }

    /// Draws `count` names, all at once, letter by letter.
    fn invent(&self, count: usize, alphabet: &[char]) -> namegrad::Result<Vec<String>> {
        let mut letters = Tensor::zeros([("N", count), ("time", 1)])?.to(DType::I64)?;
        let (mut state, mut names) = (None, vec![String::new(); count]);
        let mut done = vec![false; count];
        for _ in 0..LONGEST {
            let (logits, hn) = self.forward(&letters, state.as_ref())?;
            // The first letter whose cumulative probability exceeds a random number.
            let below = logits.softmax("letter")?.cumsum("letter")?; // [N, time, letter]
            let random = Tensor::rand([("N", count), ("time", 1), ("letter", 1)])?;
            letters = below.le(&random)?.sum("letter")?.clamp_max(alphabet.len() as i64 - 1)?;
            for (n, letter) in letters.to_vec::<i64>()?.into_iter().enumerate() {
                done[n] |= alphabet[letter as usize] == END;
                if !done[n] {
                    names[n].push(alphabet[letter as usize]);
                }
            }
            state = Some(hn);
        }
        Ok(names)
    }
}

/// The names of the file, and all letters with [`END`] first.
fn read(path: &Path) -> Result<(Vec<String>, Vec<char>)> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let names: Vec<String> = text.lines().map(|line| line.trim().to_lowercase()).collect();
    let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let letters: BTreeSet<char> = names.iter().flat_map(|name| name.chars()).collect();
    if names.len() < 20 || letters.len() > 200 || letters.contains(&END) {
        let what = "expected a file with a name on each line, at least 20 of them, without full stops";
        return Err(format!("{}: {what}", path.display()).into());
    }
    Ok((names, [END].into_iter().chain(letters).collect()))
}

/// The letters of the names with [`END`] before them, and with [`END`] after them: both `[N, time]`.
fn batch(names: &[&String], alphabet: &[char]) -> namegrad::Result<(Tensor, Tensor)> {
    let index = |letter| alphabet.iter().position(|own| *own == letter).unwrap_or(0) as i64;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for name in names {
        let letters: Vec<i64> = format!("{END}{name}{END}").chars().map(index).collect();
        let whole = Tensor::from_slice(&letters, [("time", letters.len())])?;
        before.push(whole.narrow("time", 0, letters.len() - 1)?);
        after.push(whole.narrow("time", 1, letters.len() - 1)?);
    }
    let nothing = PadSequenceOptions::new().padding_value(NOTHING);
    Ok((pad_sequence(&before, "time", "N")?, pad_sequence_with(&after, "time", "N", nothing)?))
}

/// The loss for each letter, and the share of letters that are guessed.
fn judge(model: &Writer, names: &[&String], alphabet: &[char]) -> namegrad::Result<(Tensor, f64)> {
    let (before, after) = batch(names, alphabet)?;
    let (logits, _) = model.forward(&before, None)?;
    let right = logits.argmax("letter")?.eq(&after)?.to(DType::F64)?.sum(..)?;
    let letters = after.ge(0)?.to(DType::F64)?.sum(..)?;
    Ok((F::cross_entropy(&logits, &after, "letter")?, right.item::<f64>()? / letters.item::<f64>()?))
}

fn main() -> ExitCode {
    flags::run(|| {
        let Flags { data, samples, train: flags } = Flags::try_parse()?;
        flags.create_out()?;
        set_threads(flags.threads)?;
        manual_seed(flags.seed);
        let (names, alphabet) = read(&data)?;
        let order = Tensor::randperm(names.len())?.to_vec::<i64>()?;
        let mixed: Vec<&String> = order.into_iter().map(|index| &names[index as usize]).collect();
        let (test, train) = mixed.split_at(names.len() / 10);
        println!("{} names to train on, {} to test on, seed {}", train.len(), test.len(), flags.seed);
        let model = Writer::new(alphabet.len(), flags.hidden, flags.dropout)?;
        println!("{model}\n");
        let mut optimizer = AdamW::builder(model.parameters()).lr(flags.lr).build()?;
        let mut history = Vec::new();
        for epoch in 1..=flags.epochs {
            model.train();
            let order = Tensor::randperm(train.len())?.to_vec::<i64>()?;
            let steps = train.len().div_ceil(flags.batch_size);
            let bar = epoch_bar(epoch, flags.epochs, steps as u64);
            let (mut train_loss, mut train_accuracy) = (0.0, 0.0);
            for (step, chosen) in order.chunks(flags.batch_size).enumerate() {
                let chosen: Vec<&String> = chosen.iter().map(|index| train[*index as usize]).collect();
                let (loss, accuracy) = judge(&model, &chosen, &alphabet)?;
                // The learning rate falls linearly to zero.
                let done = ((epoch - 1) * steps + step) as f64 / (flags.epochs * steps) as f64;
                optimizer.set_lr(flags.lr * (1.0 - done))?;
                optimizer.zero_grad();
                loss.backward()?;
                clip_grad_norm_(model.parameters(), 1.0)?;
                optimizer.step()?;
                train_loss += loss.item::<f64>()? / steps as f64;
                train_accuracy += accuracy / steps as f64;
                bar.set_message(format!("loss {:.4}", loss.item::<f64>()?));
                bar.inc(1);
            }
            bar.finish_and_clear();
            model.eval();
            let (test_loss, test_accuracy) = no_grad(|| judge(&model, test, &alphabet))?;
            let test_loss = test_loss.item::<f64>()?;
            println!("epoch {epoch:3}  train loss {train_loss:.4}  |  test loss {test_loss:.4}");
            history.push(Epoch { train_loss, test_loss, train_accuracy, test_accuracy });
        }
        let known: HashSet<&str> = names.iter().map(String::as_str).collect();
        println!("\ninvented names; those in the file have a *");
        for name in no_grad(|| model.invent(samples, &alphabet))? {
            println!("  {name}{}", if known.contains(name.as_str()) { " *" } else { "" });
        }
        let (curves, checkpoint) = (flags.out.join("curves.svg"), flags.out.join("model.safetensors"));
        plot::save(&curves, "First names", &history)?;
        model.state_dict().save(&checkpoint)?;
        println!("\ncurves      {}\ncheckpoint  {}", curves.display(), checkpoint.display());
        Ok(())
    })
}
