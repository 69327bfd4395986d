//! How long exchanges take between the ranks of a group, and how much of them a backward pass hides:
//! `mpirun -n 4 cargo run --release --example exchange_times`. From the times of an all-reduce follow `alpha`,
//! the seconds of a message, and `beta`, the seconds of a byte, by the formula of a ring:
//! `t = 2 (n - 1) (alpha + beta bytes / n)`.
//! Source: Thakur, Rabenseifner, Gropp, *Optimization of Collective Communication Operations in MPICH* (2005).

use namegrad::prelude::*;
use namegrad_dist::{DataParallel, Group, Reduction};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    namegrad_dist::run(|group| {
        let unchecked = group.checked(false);
        if group.is_first() {
            println!("{} ranks\n{:>10} {:>12} {:>12}", group.size(), "bytes", "µs", "compared, µs");
        }
        let mut times = Vec::new();
        for bytes in [4, 1 << 10, 1 << 15, 1 << 20, 1 << 23, 25 << 20] {
            let x = Tensor::ones([bytes / 4])?;
            let [plain, checked] = [seconds(&unchecked, &x)?, seconds(group, &x)?];
            times.push((bytes as f64, plain));
            if group.is_first() {
                println!("{bytes:>10} {:>12.1} {:>12.1}", 1e6 * plain, 1e6 * checked);
            }
        }
        let n = group.size() as f64;
        if let ([first, .., last], true) = (&times[..], group.is_first() && n > 1.0) {
            let alpha = first.1 / (2.0 * (n - 1.0));
            let beta = (last.1 - first.1) * n / (2.0 * (n - 1.0) * last.0);
            println!("alpha {:.2} µs, beta {:.3} ns a byte", 1e6 * alpha, 1e9 * beta);
        }
        hidden(group)
    })
}

/// Prints how much of the exchange of gradients a backward pass hides: the times of a pass without it, of the
/// exchange alone, of a pass that exchanges one bucket at its end, and of one with buckets that are exchanged
/// while it runs.
fn hidden(group: &Group) -> Result<()> {
    let width = 1024;
    let x = Tensor::randn([("N", 256), ("C", width)])?;
    let model = |bytes: usize| {
        let mut model = Sequential::new();
        for _ in 0..6 {
            model = model.then(Linear::new(("C", width), ("C", width))?).then(Tanh);
        }
        DataParallel::with_buckets(model, group, bytes)
    };
    let (one, several) = (model(1 << 30)?, model(5 << 20)?);
    let pass = |model: &DataParallel<Sequential>| model.forward(&x)?.square()?.mean(..)?.backward();
    let gradients = Tensor::ones([one.num_parameters()])?;
    let alone = least(group, || one.no_sync(|| pass(&one)))?;
    let exchange = least(group, || group.all_reduce(&gradients, Reduction::Sum).map(drop))?;
    let [at_end, meanwhile] = [least(group, || pass(&one))?, least(group, || pass(&several))?];
    if group.is_first() {
        println!(
            "a pass {:.1} ms, its exchange of {} bytes {:.1} ms; both {:.1} ms one after the other, {:.1} ms \
             together: {:.0} % hidden",
            1e3 * alone,
            gradients.nbytes(),
            1e3 * exchange,
            1e3 * at_end,
            1e3 * meanwhile,
            100.0 * ((at_end - meanwhile) / exchange).clamp(0.0, 1.0)
        );
    }
    Ok(())
}

/// The time of an all-reduce.
fn seconds(group: &Group, x: &Tensor) -> Result<f64> {
    least(group, || group.all_reduce(x, Reduction::Sum).map(drop))
}

/// The least time of `f`, on the slowest rank.
fn least(group: &Group, f: impl Fn() -> Result<()>) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..20 {
        group.barrier()?;
        let started = Instant::now();
        f()?;
        least = least.min(started.elapsed().as_secs_f64());
    }
    group.all_reduce(&Tensor::new(least)?, Reduction::Max)?.item()
}
