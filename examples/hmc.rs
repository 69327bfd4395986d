//! Bayesian regression by Hamiltonian Monte Carlo: `cargo run --release --example hmc`. Fits a line to 60
//! points that the program makes, with a few outliers among them, and prints what the points say of its
//! parameters.
//!
//! The errors follow Student's t distribution, so that outliers do not bend the line; its scale is unknown,
//! too. Several chains run at once along the dim `chain`: each step has the gradients of all of them. (R. Neal,
//! *MCMC using Hamiltonian dynamics*, 2011.)

use clap::Parser;
use namegrad::autograd::grad;
use namegrad::distributions::{Independent, Normal, StudentT};
use namegrad::prelude::*;
use namegrad_examples::flags;
use std::process::ExitCode;

/// Draw from the posterior of a regression with outliers.
#[derive(Parser)]
struct Flags {
    /// The number of draws of each chain
    #[arg(long, value_name = "N", default_value_t = 500, allow_hyphen_values = true, value_parser = flags::within(2..=100_000usize))]
    draws: usize,
    /// The number of chains
    #[arg(long, value_name = "N", default_value_t = 4, allow_hyphen_values = true, value_parser = flags::within(2..=1000usize))]
    chains: usize,
    /// Seed of everything random; the same seed gives the same run
    #[arg(long, value_name = "SEED", default_value_t = 0, allow_hyphen_values = true, value_parser = flags::within(0..=u64::MAX))]
    seed: u64,
}

/// The parameters of the line from which the points are: offset, slope, and the logarithm of the scale of
/// errors.
const TRUTH: [f64; 3] = [1.0, -2.0, -1.2];
const NAMES: [&str; 3] = ["offset", "slope", "log scale"];
const POINTS: usize = 60;
/// The size and the number of steps between two draws.
const STEP: f64 = 0.08;
const STEPS: usize = 15;

/// The points `x` and `y`, both `[point]`; every tenth is an outlier.
fn points() -> Result<[Tensor; 2]> {
    let x = TensorOptions::new().names(["point"]).linspace(-1.0, 1.0, POINTS)?;
    let clean = x.mul(TRUTH[1])?.add(TRUTH[0])?;
    let far = TensorOptions::new().names(["point"]).arange(0, POINTS as i64, 1)?.remainder(10)?.eq(4)?;
    let y = clean.add(Normal::new(0.0, TRUTH[2].exp())?.sample([("point", POINTS)])?)?;
    Ok([x, y.add(far.to(DType::F32)?.mul(6.0)?)?])
}

/// The logarithm of the posterior density, but for a constant: `[chain]` for parameters `[chain, parameter]`.
fn log_posterior(parameters: &Tensor, [x, y]: &[Tensor; 2]) -> Result<Tensor> {
    let part = |number: isize| parameters.narrow("parameter", number, 1)?.rename([("parameter", "point")]);
    let prior = Independent::new(Normal::new(parameters.zeros_like()?, 3.0)?, "parameter")?;
    let line = part(1)?.mul(x)?.add(part(0)?)?; // [chain, point]
    let errors = StudentT::new(3.0, line, part(2)?.exp()?)?;
    prior.log_prob(parameters)?.add(errors.log_prob(y)?.sum("point")?)
}

/// The gradient of the logarithm of the posterior density, and that itself.
fn slope(parameters: &Tensor, points: &[Tensor; 2]) -> Result<(Tensor, Tensor)> {
    let leaf = parameters.detach().requiring_grad()?;
    let log = log_posterior(&leaf, points)?;
    let slope = grad(&[&log.sum(..)?], &[&leaf])?.remove(0);
    Ok((slope.rename(["chain", "parameter"])?, log.detach()))
}

/// The next draw of each chain, and which of them moved.
fn next(start: &Tensor, points: &[Tensor; 2]) -> Result<(Tensor, Tensor)> {
    let momenta = Normal::new(start.zeros_like()?, 1.0)?;
    let energy = |momentum: &Tensor| momenta.log_prob(momentum)?.sum("parameter");
    let (mut x, mut p) = (start.clone(), momenta.sample(())?);
    let (mut g, before) = slope(&x, points)?;
    let before = before.add(energy(&p)?)?;
    let mut after = before.clone();
    for _ in 0..STEPS {
        p = p.add(g.mul(0.5 * STEP)?)?;
        x = x.add(p.mul(STEP)?)?;
        (g, after) = slope(&x, points)?;
        p = p.add(g.mul(0.5 * STEP)?)?;
    }
    // a path whose energy was not kept is taken back with a probability
    let kept = before.rand_like()?.log()?.lt(after.add(energy(&p)?)?.sub(&before)?)?; // [chain]
    Ok((kept.align_as(start)?.choose(&x, start)?, kept))
}

fn main() -> ExitCode {
    flags::run(|| {
        let Flags { draws, chains, seed } = Flags::try_parse()?;
        manual_seed(seed);
        let points = points()?;
        let mut x = Tensor::randn([("chain", chains), ("parameter", NAMES.len())])?;
        let (mut all, mut moved) = (Vec::with_capacity(draws), 0.0);
        let burn_in = draws.div_ceil(2);
        for number in 0..burn_in + draws {
            let (drawn, kept) = next(&x, &points)?;
            x = drawn;
            if number >= burn_in {
                all.push(x.clone());
                moved += kept.to(DType::F32)?.mean("chain")?.item::<f64>()?;
            }
        }
        let all = Tensor::stack_with(&all.iter().collect::<Vec<_>>(), 0, StackOptions::new().name("draw"))?;
        println!(
            "{:.0} % of the draws moved\n\n           truth    mean     std   R-hat",
            100.0 * moved / draws as f64
        );
        let (mean, std) = (all.mean(["draw", "chain"])?, all.std(["draw", "chain"])?);
        // chains that have mixed differ no more than draws of one (A. Gelman, D. Rubin, 1992)
        let between = all.mean("draw")?.var("chain")?;
        let mixed = between.div(all.var("draw")?.mean("chain")?)?.add(1.0)?.sqrt()?;
        for (number, name) in NAMES.iter().enumerate() {
            let [mean, std, mixed] = [&mean, &std, &mixed].map(|x| x.item_at::<f64>([number]));
            println!("{name:9} {:6.2}  {:6.2}  {:6.3}  {:6.3}", TRUTH[number], mean?, std?, mixed?);
        }
        Ok(())
    })
}
