//! What each rank of a transformer with 7 billion parameters would hold, compute and send on 64 to 1,024 ranks,
//! planned by this process alone: `cargo run --release --example plan_ranks`.

use namegrad::prelude::*;
use namegrad_dist::{Group, Machine, Mesh, RankPlan, plan};
use std::time::Instant;

const MODEL: usize = 16;

/// The plan of a step with a batch for each 16 ranks, which have the heads and the feedforward layers in parts.
fn planned(ranks: usize) -> Result<RankPlan> {
    let data = ranks / MODEL;
    let mesh = Mesh::on(&Group::pretend(ranks)?, [("data", data), ("model", MODEL)])?
        .shard([("N", "data"), ("heads", "model"), ("feedforward", "model")])?
        .zero(1, "data")?;
    let layer = TransformerEncoderLayer::builder(("embed", 4096), ("heads", 32), "time");
    let layer = layer.dim_feedforward(16_384);
    let model = on_device(Device::Meta, || TransformerEncoder::new(layer, 35))?;
    mesh.split(&model)?;
    let mut optimizer = AdamW::new(model.parameters())?;
    let x = on_device(Device::Meta, || Tensor::zeros([("N", 4 * data), ("time", 2048), ("embed", 4096)]))?;
    let x = mesh.part(&x)?;
    plan(|| {
        optimizer.zero_grad();
        mesh.scope(|| model.forward(&x)?.square()?.mean(..)?.backward())?;
        mesh.clip_grad_norm_(&model, 1.0)?;
        optimizer.step()
    })
}

fn main() -> Result<()> {
    // 100 TFLOP/s for each rank; the ranks of the axis "model" are on one machine.
    let machine = Machine::new(1e14).network(1e-5, 4e-11).axis("model", 2e-6, 5e-12);
    println!("ranks  planned in  parameters       state        peak        sent     step  computing");
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    for ranks in [64, 128, 256, 512, 1024] {
        let started = Instant::now();
        let plan = planned(ranks)?;
        let (taken, times, step) = (started.elapsed(), plan.times(&machine), &plan.step);
        let [parameters, state, peak, sent] =
            [step.parameters, step.state, step.peak, plan.bytes_sent()].map(gib);
        println!(
            "{ranks:>5} {:>8.0} ms {parameters:>7.2} GiB {state:>7.2} GiB {peak:>7.1} GiB {sent:>7.1} GiB {:>6.2} s {:>8.0} %",
            1e3 * taken.as_secs_f64(),
            times.step(),
            100.0 * times.compute / times.step(),
        );
        if ranks == 1024 {
            println!("\n{plan}\n\n{times}");
        }
    }
    Ok(())
}
