//! Measures namegrad on the workloads of `docs/performance.md` and prints a line of JSON for each.
//!
//! [`harness`] measures and prints, [`data`] generates the same numbers that other frameworks are measured
//! with, and [`operations`], [`layers`], [`loader`], [`optimizers`] and [`training`] have the workloads.
//! [`growth`] draws costs by size, and [`scale`] how ops and models run on more threads and ranks.
//!
//! ```text
//! namegrad-bench --threads 2 --only W2.add,W5 --budget 0.5
//! ```

#![forbid(unsafe_code)]

mod data;
mod gpt;
mod growth;
mod harness;
mod layers;
mod loader;
mod operations;
mod optimizers;
mod scale;
mod training;

use harness::{Bench, Flags};

fn main() -> namegrad::Result<()> {
    let flags = match Flags::parse(std::env::args().skip(1)) {
        Ok(flags) => flags,
        Err(message) => {
            eprintln!("{message}\n\n{}", harness::USAGE);
            std::process::exit(2);
        }
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(flags.threads)
        .build_global()
        .expect("nothing has used the pool yet");
    let bench = Bench::new(flags);
    if let Some(folder) = &bench.flags.growth {
        return growth::draw(&bench.flags, folder.as_ref());
    }
    if let Some(folder) = &bench.flags.scale {
        return scale::draw(&bench.flags, folder.as_ref());
    }
    if let Some(model) = bench.flags.rss.clone() {
        return if model == "W13" { loader::memory(&bench) } else { training::memory(&bench, &model) };
    }
    operations::products(&bench)?;
    operations::by_element(&bench)?;
    operations::moves(&bench)?;
    operations::transforms(&bench)?;
    operations::along_dims(&bench)?;
    layers::convolutions(&bench)?;
    layers::others(&bench)?;
    operations::overhead(&bench)?;
    operations::names(&bench)?;
    optimizers::steps(&bench)?;
    loader::all(&bench)?;
    training::all(&bench)
}
