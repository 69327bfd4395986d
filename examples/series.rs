//! Forecasts sunspots with an LSTM: `cargo run --release --example series -- --data FILE`, where the file is
//! a CSV with a header, whose last column has the numbers. It draws the forecast beside the naive one, which
//! says that nothing changes, and prints both errors.
//!
//! A forecast has two dims that are easily confused: the month `time` in which it is made, and the months
//! `ahead` that it is about. Here they are names: the LSTM steps along `time`, the linear layer makes
//! `ahead`, and an error for each lead is a mean over `time`.

mod common;

use clap::Parser;
use common::Result;
use common::flags::{self, TrainFlags};
use common::lines::{self, Line};
use common::training::set_threads;
use namegrad::optim::clip_grad_norm_;
use namegrad::prelude::*;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Forecast a series of monthly numbers with an LSTM.
#[derive(Parser)]
#[command(
    mut_arg("epochs", |arg| arg.default_value("30")),
    mut_arg("batch_size", |arg| arg.default_value("32")),
    mut_arg("lr", |arg| arg.default_value("0.005")),
    mut_arg("hidden", |arg| arg.default_value("48")),
    mut_arg("out", |arg| arg.default_value("target/series")),
)]
struct Flags {
    /// CSV with a header and a number in the last column, such as monthly-sunspots.csv
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    #[command(flatten)]
    train: TrainFlags,
}

/// The months that a forecast covers.
const AHEAD: usize = 24;
/// The months of a training sequence, a cycle of the sun.
const WINDOW: usize = 132;
/// The months from one training sequence to the next.
const STRIDE: usize = 6;

#[derive(Module)]
struct Forecaster {
    lstm: Lstm,
    dropout: Dropout,
    ahead: Linear,
}

impl Forecaster {
    fn new(hidden: usize, dropout: f64) -> namegrad::Result<Forecaster> {
        Ok(Forecaster {
            lstm: Lstm::new(("value", 1), ("hidden", hidden), "time")?,
            dropout: Dropout::new(dropout)?,
            ahead: Linear::new(("hidden", hidden), ("ahead", AHEAD))?,
        })
    }

    /// The forecast `[.., time, ahead]` in every month of `x`, `[.., time]`: the last value plus a change.
    fn forward(&self, x: &Tensor) -> namegrad::Result<Tensor> {
        let value = x.unsqueeze_with(-1, UnsqueezeOptions::new().name("value"))?;
        let hidden = self.lstm.forward(&value)?.output;
        self.ahead.forward(&self.dropout.forward(&hidden)?)?.add(&naive(x)?)
    }
}

/// The forecast that nothing changes, `[.., time, ahead=1]`.
fn naive(x: &Tensor) -> namegrad::Result<Tensor> {
    x.unsqueeze_with(-1, UnsqueezeOptions::new().name("ahead"))
}

/// The numbers of the last column.
fn read(path: &Path) -> Result<Vec<f32>> {
    let failed = |what: String| format!("{}: {what}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let mut numbers = Vec::new();
    for (line, text) in text.lines().enumerate().skip(1).filter(|(_, text)| !text.trim().is_empty()) {
        let last = text.rsplit(',').next().unwrap_or_default().trim().parse::<f32>();
        let number = last.ok().filter(|number| number.is_finite());
        numbers.push(number.ok_or_else(|| failed(format!("no number at the end of line {}", line + 1)))?);
    }
    let least = 5 * (WINDOW + AHEAD);
    if numbers.len() < least {
        return Err(failed(format!("expected at least {least} numbers, got {}", numbers.len())).into());
    }
    Ok(numbers)
}

/// What the forecasts in the months `start..start + length` are about, `[time, ahead]`.
fn targets(series: &Tensor, start: usize, length: usize) -> namegrad::Result<Tensor> {
    let shifted = |lead| series.narrow("time", (start + lead) as isize, length);
    let leads = (1..=AHEAD).map(shifted).collect::<namegrad::Result<Vec<Tensor>>>()?;
    Tensor::stack_with(&leads, 1, StackOptions::new().name("ahead"))
}

/// The root of the mean square error over `dims`, in units of the series.
fn error(forecast: &Tensor, target: &Tensor, dims: &str, unit: f64) -> namegrad::Result<Tensor> {
    forecast.sub(target)?.square()?.mean(dims)?.sqrt()?.mul(unit)
}

fn main() -> ExitCode {
    flags::run(|| {
        let Flags { data, train: flags } = Flags::try_parse()?;
        flags.create_out()?;
        set_threads(flags.threads)?;
        manual_seed(flags.seed);
        let numbers = read(&data)?;
        let (count, start) = (numbers.len(), numbers.len() * 4 / 5);
        let raw = Tensor::from_slice(&numbers, [("time", count)])?;
        // Mean and deviation of the part to train on, so that nothing is known of the rest.
        let past = raw.narrow("time", 0, start)?;
        let (mean, unit) = (past.mean("time")?.item::<f64>()?, past.std("time")?.item::<f64>()?.max(1e-9));
        let series = raw.sub(mean)?.div(unit)?;
        println!("{start} months to train on, {} to test on, seed {}", count - start, flags.seed);

        let starts: Vec<usize> = (0..start - WINDOW - AHEAD).step_by(STRIDE).collect();
        let (mut windows, mut wanted) = (Vec::new(), Vec::new());
        for start in &starts {
            windows.push(series.narrow("time", *start as isize, WINDOW)?);
            wanted.push(targets(&series, *start, WINDOW)?);
        }
        let windows = Tensor::stack_with(&windows, 0, StackOptions::new().name("N"))?; // [N, time]
        let wanted = Tensor::stack_with(&wanted, 0, StackOptions::new().name("N"))?; // [N, time, ahead]

        let model = Forecaster::new(flags.hidden, flags.dropout)?;
        println!("{model}\n");
        let mut optimizer = AdamW::builder(model.parameters()).lr(flags.lr).build()?;
        for epoch in 1..=flags.epochs {
            let order = Tensor::randperm(starts.len())?;
            optimizer.set_lr(flags.lr * (1.0 - (epoch - 1) as f64 / flags.epochs as f64))?;
            let mut losses = Vec::new();
            for at in (0..starts.len()).step_by(flags.batch_size) {
                let chosen = order.narrow(0, at as isize, flags.batch_size.min(starts.len() - at))?;
                let forecast = model.forward(&windows.index_select(&chosen, "N")?)?;
                let loss = F::mse_loss(&forecast, &wanted.index_select(&chosen, "N")?)?;
                optimizer.zero_grad();
                loss.backward()?;
                clip_grad_norm_(model.parameters(), 1.0)?;
                optimizer.step()?;
                losses.push(loss.item::<f64>()?);
            }
            if epoch % 5 == 0 || epoch == flags.epochs {
                println!("epoch {epoch:3}  loss {:.4}", losses.iter().sum::<f64>() / losses.len() as f64);
            }
        }

        // The forecasts of the months to test on, by a model that has read everything before them.
        model.eval();
        let length = count - AHEAD - start;
        let forecast = no_grad(|| model.forward(&series))?.narrow("time", start as isize, length)?;
        let same = naive(&series)?.narrow("time", start as isize, length)?;
        let target = targets(&series, start, length)?;
        let by_lead = [error(&forecast, &target, "time", unit)?, error(&same, &target, "time", unit)?];
        println!("\nroot mean square error   LSTM   nothing changes");
        for lead in [1, 6, 12, AHEAD] {
            let [own, other] = by_lead.each_ref().map(|error| error.select("ahead", lead as isize - 1));
            println!("{lead:5} months ahead   {:9.2} {:9.2}", own?.item::<f64>()?, other?.item::<f64>()?);
        }
        let [own, other] = by_lead.each_ref().map(|error| error.square().mean("ahead").sqrt());
        println!("all leads            {:9.2} {:9.2}", own?.item::<f64>()?, other?.item::<f64>()?);

        let ahead = AHEAD / 2;
        let points = |x: Tensor| -> Result<Vec<(f64, f64)>> {
            let months = (start + ahead..).map(|month| 1749.0 + month as f64 / 12.0);
            let values = x.mul(unit)?.add(mean)?.to_vec::<f32>()?.into_iter().map(f64::from);
            Ok(months.zip(values).collect())
        };
        let lines = [
            Line { name: "observed", points: points(target.select("ahead", ahead as isize - 1)?)? },
            Line { name: "nothing changes", points: points(same.select("ahead", 0)?)? },
            Line { name: "LSTM", points: points(forecast.select("ahead", ahead as isize - 1)?)? },
        ];
        let (picture, checkpoint) = (flags.out.join("forecast.svg"), flags.out.join("model.safetensors"));
        lines::save(&picture, &format!("Sunspots, {ahead} months ahead"), ["year", "sunspots"], &lines)?;
        model.state_dict().save(&checkpoint)?;
        println!("\nforecast    {}\ncheckpoint  {}", picture.display(), checkpoint.display());
        Ok(())
    })
}
