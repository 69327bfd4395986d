//! Forecasts sunspots with an LSTM: `cargo run --release --example series -- --data FILE`, where the file is
//! a CSV with a header, whose last column has the numbers. It draws the forecast beside the naive one, which
//! says that nothing changes, and prints both errors.
//!
//! A forecast has two dims that are easily confused: the month `time` in which it is made, and the months
//! `ahead` that it is about. Here they are names: the LSTM steps along `time`, the linear layer makes
//! `ahead`, and an error for each lead is a mean over `time`.

use clap::Parser;
use namegrad::data::{Csv, Dataset, Loader, Windows};
use namegrad::optim::clip_grad_norm_;
use namegrad::optim::schedule::{Polynomial, Scheduler};
use namegrad::prelude::*;
use namegrad::train::meters::Mean;
use namegrad::train::pictures::Chart;
use namegrad_examples::Result;
use namegrad_examples::flags::{self, TrainFlags};
use namegrad_examples::training::set_threads;
use std::path::PathBuf;
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

/// The values that the forecasts in the months `start..start + length` should give, `[time, ahead]`.
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
        let raw = Csv::new(&data).skip([0]).read()?.column(-1)?.rename([("N", "time")])?;
        let count = raw.size("time")?;
        let start = count * 4 / 5;
        if count < 5 * (WINDOW + AHEAD) {
            return Err(format!("expected at least {} numbers, got {count}", 5 * (WINDOW + AHEAD)).into());
        }
        // Mean and deviation of the part to train on, so that nothing is known of the rest.
        let past = raw.narrow("time", 0, start)?;
        let (mean, unit) = (past.mean("time")?.item::<f64>()?, past.std("time")?.item::<f64>()?.max(1e-9));
        let series = raw.sub(mean)?.div(unit)?;
        println!("{start} months to train on, {} to test on, seed {}", count - start, flags.seed);

        let past = series.narrow("time", 0, start)?;
        let wanted = targets(&past, 0, start - AHEAD)?; // [time, ahead]
        let known = past.narrow("time", 0, start - AHEAD)?;
        let windows = Windows::new(known, "time", WINDOW)?.stride(STRIDE)?;
        let data = windows.zip(Windows::new(wanted, "time", WINDOW)?.stride(STRIDE)?)?;
        let loader = Loader::builder(data).batch_size(flags.batch_size).shuffle(true).build()?;

        let model = Forecaster::new(flags.hidden, flags.dropout)?;
        println!("{model}\n");
        let mut optimizer = AdamW::builder(model.parameters()).lr(flags.lr).build()?;
        let mut scheduler = Scheduler::new(Polynomial::new(flags.epochs), &mut optimizer)?;
        for epoch in 1..=flags.epochs {
            let mut mean = Mean::new();
            for batch in loader.iter() {
                let (windows, wanted) = batch?; // [N, time], [N, time, ahead]
                let loss = F::mse_loss(&model.forward(&windows)?, &wanted)?;
                optimizer.zero_grad();
                loss.backward()?;
                clip_grad_norm_(model.parameters(), 1.0)?;
                optimizer.step()?;
                mean.update(&loss, windows.size("N")? as f64)?;
            }
            scheduler.step(&mut optimizer)?;
            if epoch % 5 == 0 || epoch == flags.epochs {
                println!("epoch {epoch:3}  loss {mean}");
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
        let chart = Chart::new(format!("Sunspots, {ahead} months ahead"))
            .size(1200, 480)
            .x_label("year")
            .y_label("sunspots")
            .line("observed", points(target.select("ahead", ahead as isize - 1)?)?)
            .line("nothing changes", points(same.select("ahead", 0)?)?)
            .line("LSTM", points(forecast.select("ahead", ahead as isize - 1)?)?);
        let (picture, checkpoint) = (flags.out.join("forecast.svg"), flags.out.join("model.safetensors"));
        chart.save(&picture)?;
        model.state_dict().save(&checkpoint)?;
        println!("\nforecast    {}\ncheckpoint  {}", picture.display(), checkpoint.display());
        Ok(())
    })
}
