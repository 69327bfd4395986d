//! Invents first names with a GRU that reads letters: `cargo run --release --example names_rnn -- --data
//! FILE`, where the file has a name on each line. It writes the training curves and the checkpoint to
//! `target/names_rnn`.
//!
//! No line of the model says where a dim is. The names of a batch are `[N, time]`, one letter that is being
//! written is `[N, time=1]`, and the state goes from one to the next by name. The targets are shifted along
//! `time` and the loss is over `letter`, so neither can slip into the batch.

use clap::Parser;
use namegrad::data::{Dataset, Loader, Samples, Vocabulary, text};
use namegrad::optim::clip_grad_norm_;
use namegrad::optim::schedule::{Polynomial, Scheduler};
use namegrad::prelude::*;
use namegrad::train::log::Log;
use namegrad::train::meters::Mean;
use namegrad::train::pictures::Chart;
use namegrad::train::progress::Progress;
use namegrad_examples::Result;
use namegrad_examples::flags::{self, TrainFlags};
use namegrad_examples::training::set_threads;
use std::collections::HashSet;
use std::path::PathBuf;
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
const END: &str = ".";
/// The target where there is no letter, which losses ignore.
const NOTHING: i64 = -100;
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

    /// The loss for each letter of the names `[N, time]`, which begin and end with [`END`].
    fn loss(&self, names: &Tensor) -> namegrad::Result<Tensor> {
        let steps = names.size("time")? - 1;
        let before = names.narrow("time", 0, steps)?.clamp_min(0)?; // where there is no letter, any will do
        let (logits, _) = self.forward(&before, None)?;
        F::cross_entropy(&logits, &names.narrow("time", 1, steps)?, "letter")
    }

    /// Draws `count` names, all at once, letter by letter.
    fn invent(&self, count: usize, alphabet: &Vocabulary) -> namegrad::Result<Vec<String>> {
        let end = alphabet.id(END).unwrap_or(0);
        let mut letters = Tensor::full([("N", count), ("time", 1)], end)?;
        let (mut state, mut names) = (None, vec![Vec::new(); count]);
        for _ in 0..LONGEST {
            let (logits, hn) = self.forward(&letters, state.as_ref())?;
            // The first letter whose cumulative probability exceeds a random number.
            let below = logits.softmax("letter")?.cumsum("letter")?; // [N, time, letter]
            let random = Tensor::rand([("N", count), ("time", 1), ("letter", 1)])?;
            letters = below.le(&random)?.sum("letter")?.clamp_max(alphabet.len() as i64 - 1)?;
            for (name, letter) in names.iter_mut().zip(letters.to_vec::<i64>()?) {
                name.push(letter);
            }
            state = Some(hn);
        }
        let written =
            |name: Vec<i64>| alphabet.text(name.split(|letter| *letter == end).next().unwrap_or(&[]));
        names.into_iter().map(written).collect()
    }
}

/// The names of the file, and its letters with [`END`].
fn read(path: &PathBuf) -> Result<(Vec<String>, Vocabulary)> {
    let text = text::read_text(path)?.to_lowercase();
    let names: Vec<String> =
        text.lines().map(str::trim).filter(|name| !name.is_empty()).map(String::from).collect();
    let alphabet = Vocabulary::chars(&format!("{END}{}", names.concat()));
    if names.len() < 20 || alphabet.len() > 200 || text.contains(END) {
        let what = "expected a file with a name on each line, at least 20 of them, without full stops";
        return Err(format!("{}: {what}", path.display()).into());
    }
    Ok((names, alphabet))
}

fn main() -> ExitCode {
    flags::run(|| {
        let Flags { data, samples, train: flags } = Flags::try_parse()?;
        set_threads(flags.threads)?;
        manual_seed(flags.seed);
        let (names, alphabet) = read(&data)?;
        let whole = |name: String, alphabet: &Vocabulary| {
            alphabet.encode(&format!("{END}{name}{END}"))?.rename([("seq", "time")])
        };
        let encoded =
            names.iter().map(|name| whole(name.clone(), &alphabet)).collect::<namegrad::Result<_>>()?;
        let [train, test] = Samples::new(encoded).random_split([0.9, 0.1], flags.seed)?;
        println!("{} names to train on, {} to test on, seed {}", train.len(), test.len(), flags.seed);
        // Names differ in length: batches are padded along time.
        let train =
            Loader::builder(train).batch_size(flags.batch_size).shuffle(true).pad("time", NOTHING).build()?;
        let test = Loader::builder(test).batch_size(1000).pad("time", NOTHING).build()?;
        let model = Writer::new(alphabet.len(), flags.hidden, flags.dropout)?;
        println!("{model}\n");
        let mut optimizer = AdamW::builder(model.parameters()).lr(flags.lr).build()?;
        let steps = train.len()?;
        // The learning rate falls linearly to zero.
        let mut scheduler = Scheduler::new(Polynomial::new(flags.epochs * steps), &mut optimizer)?;
        let mut log = Log::new(&flags.out)?;
        let epochs = Progress::new(flags.epochs).label("epochs");
        for epoch in epochs.over(1..=flags.epochs) {
            model.train();
            let (mut train_loss, mut test_loss) = (Mean::new(), Mean::new());
            let batches = epochs.nested(steps).label(format!("epoch {epoch}"));
            for names in batches.over(train.iter()) {
                let loss = model.loss(&names?)?;
                optimizer.zero_grad();
                loss.backward()?;
                clip_grad_norm_(model.parameters(), 1.0)?;
                optimizer.step()?;
                scheduler.step(&mut optimizer)?;
                train_loss.update(&loss, 1)?;
                batches.message(format!("loss {train_loss}"));
            }
            model.eval();
            for names in test.iter() {
                test_loss.update(no_grad(|| model.loss(&names?))?, 1)?;
            }
            epochs
                .println(format_args!("epoch {epoch:3}  train loss {train_loss}  |  test loss {test_loss}"));
            log.scalars(epoch, [("loss/train", train_loss.compute()), ("loss/test", test_loss.compute())])?;
        }
        let known: HashSet<&str> = names.iter().map(String::as_str).collect();
        println!("\ninvented names; those in the file have a *");
        for name in no_grad(|| model.invent(samples, &alphabet))? {
            println!("  {name}{}", if known.contains(name.as_str()) { " *" } else { "" });
        }
        let (curves, checkpoint) = (flags.out.join("curves.svg"), flags.out.join("model.safetensors"));
        let chart = Chart::of(&log.history()?, ["loss/train", "loss/test"])?;
        chart.x_label("epoch").y_label("loss").save(&curves)?;
        model.state_dict().save(&checkpoint)?;
        println!("\ncurves      {}\ncheckpoint  {}", curves.display(), checkpoint.display());
        Ok(())
    })
}
