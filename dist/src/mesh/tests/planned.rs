//! Plans of a rank beside what ranks send, and both beside the theory.

use super::*;
use crate::{Exchange, Machine, RankPlan, plan};

/// The bytes that each rank sends in the second step.
fn sent<M: Module>(case: &Case<M>, axes: Axes2<'_>, table: Table<'_>, zero: Option<usize>) -> Vec<u64> {
    let count = axes.iter().map(|(_, size)| size).product();
    let all = on_ranks(count, |group| -> Result<u64> {
        let mesh = mesh_of(group, axes, table, zero)?;
        let model = (case.model)();
        filled(&model);
        mesh.split(&model)?;
        let mut optimizer = Adam::new(model.parameters())?;
        let batch: Vec<Tensor> = (case.batch)().iter().map(|x| mesh.part(x)).collect::<Result<_>>()?;
        let mut bytes = 0;
        for _ in 0..2 {
            bytes = mesh.bytes_sent();
            optimizer.zero_grad();
            mesh.scope(|| (case.loss)(&model, &batch)?.backward())?;
            mesh.clip_grad_norm_(&model, 1.0)?;
            optimizer.step()?;
        }
        Ok(mesh.bytes_sent() - bytes)
    });
    all.into_iter().map(|bytes| bytes.unwrap()).collect()
}

fn mesh_of(group: &Group, axes: Axes2<'_>, table: Table<'_>, zero: Option<usize>) -> Result<Mesh> {
    let mesh = Mesh::on(group, axes.iter().copied())?.shard(table.iter().copied())?;
    zero.map_or(Ok(mesh.clone()), |level| mesh.zero(level, axes[0].0))
}

fn planned<M: Module>(
    case: &Case<M>,
    axes: Axes2<'_>,
    table: Table<'_>,
    zero: Option<usize>,
) -> Result<RankPlan> {
    let mesh = mesh_of(&Group::pretend(axes.iter().map(|(_, size)| size).product())?, axes, table, zero)?;
    let model = on_device(Device::Meta, || Ok((case.model)()))?;
    model.to(DType::F64)?;
    mesh.split(&model)?;
    let mut optimizer = Adam::new(model.parameters())?;
    let part = |x: &Tensor| mesh.part(&x.to_device(Device::Meta)?);
    let batch: Vec<Tensor> = (case.batch)().iter().map(part).collect::<Result<_>>()?;
    plan(|| {
        optimizer.zero_grad();
        mesh.scope(|| (case.loss)(&model, &batch)?.backward())?;
        mesh.clip_grad_norm_(&model, 1.0)?;
        optimizer.step()
    })
}

#[track_caller]
fn compare<M: Module>(case: &Case<M>, axes: Axes2<'_>, table: Table<'_>, zero: Option<usize>) {
    let planned = planned(case, axes, table, zero).unwrap();
    for sent in sent(case, axes, table, zero) {
        assert_eq!(planned.bytes_sent(), sent, "{axes:?} {table:?} {zero:?}\n{planned}");
    }
}

#[test]
fn plans_send_what_ranks_send() {
    for axes in [[("data", 2), ("model", 1)], [("data", 1), ("model", 2)], [("data", 2), ("model", 2)]] {
        for zero in [None, Some(1), Some(3)] {
            compare(&MLP, &axes, &[("batch", "data"), ("hidden", "model")], zero);
            compare(
                &BLOCK,
                &axes,
                &[("batch", "data"), ("heads", "model"), ("hidden", "model"), ("vocab", "model")],
                zero,
            );
            compare(&SEQUENCES, &axes, &[("batch", "data"), ("class", "model")], zero);
            compare(&IMAGES, &axes, &[("N", "data"), ("features", "model")], zero);
        }
    }
    compare(&BLOCK, &[("data", 2), ("model", 2)], &[("embed", "model"), ("batch", "data")], None);
}

/// The bytes of the exchanges of one kind along an axis, without those of `clip_grad_norm_`.
fn bytes_of(plan: &RankPlan, kind: &str) -> u64 {
    let is_of = |own: &&Exchange| format!("{:?}", own.kind).starts_with(kind) && own.op != "clip_grad_norm_";
    plan.exchanges.iter().filter(is_of).map(|own| own.bytes).sum()
}

#[test]
fn zero_scatters_gradients() {
    let model = (MLP.model)();
    let elements: usize = model.parameters().iter().map(|parameter| parameter.numel()).sum();
    let table = [("batch", "data")];
    for ranks in [2, 4] {
        let axes = [("data", ranks), ("model", 1)];
        // The bytes that each rank sends to gather or to scatter all parameters, which `ranks` divides.
        let once = (8 * elements * (ranks - 1) / ranks) as u64;
        let plain = planned(&MLP, &axes, &table, None).unwrap();
        let loss = bytes_of(&plain, "AllReduce") - 2 * once;
        assert!(loss <= 64, "{plain}"); // the sums of the loss
        for (level, gathered) in [(1, 1), (3, 2)] {
            let plan = planned(&MLP, &axes, &table, Some(level)).unwrap();
            assert_eq!(bytes_of(&plan, "ReduceScatter"), once, "{plan}");
            assert_eq!(bytes_of(&plan, "AllReduce"), loss, "{plan}");
            let once_more = bytes_of(&plan, "AllGather") / once;
            assert!(once_more <= gathered && once_more >= 1, "level {level}: {once} bytes\n{plan}");
        }
    }
}

#[test]
fn plans_are_of_one_rank() {
    let axes = [("data", 8), ("model", 128)];
    let table = [("N", "data"), ("heads", "model"), ("feedforward", "model")];
    let model = || {
        let layer = TransformerEncoderLayer::builder(("embed", 4096), ("heads", 128), "time")
            .dim_feedforward(16_384)
            .dropout(0.0);
        on_device(Device::Meta, || TransformerEncoder::new(layer, 35))
    };
    let batch = |size: usize| {
        on_device(Device::Meta, || Tensor::zeros([("N", size), ("time", 2048), ("embed", 4096)]))
    };
    let alone = model().unwrap();
    let one = namegrad::plan(|| alone.forward(&batch(8)?)?.square()?.mean(..)?.backward()).unwrap();
    let started = std::time::Instant::now();
    let plan = (|| {
        let mesh = mesh_of(&Group::pretend(1024)?, &axes, &table, None)?;
        let model = model()?;
        mesh.split(&model)?;
        let x = mesh.part(&batch(8)?)?;
        plan(|| mesh.scope(|| model.forward(&x)?.square()?.mean(..)?.backward()))
    })()
    .unwrap();
    println!("{:?}\n{plan}", started.elapsed());
    let share = one.flops() as f64 / 1024.0 / plan.step.flops() as f64;
    assert!((share - 1.0).abs() < 0.02, "{share} of the FLOPs of one process\n{plan}");
    assert!(plan.step.parameters < one.parameters / 64);
    // Two sums of [N, time, embed] for each layer forward and backward, and the gradients that are not split.
    let per_sum = 2 * (4 * 2048 * 4096) * 127 / 128_u64;
    let along_model: u64 = plan.exchanges.iter().filter(|own| own.axis == "model").map(|own| own.bytes).sum();
    // The batch has no gradient.
    assert_eq!(along_model, (4 * 35 - 1) * per_sum, "{plan}");
    let times = plan.times(&Machine::new(1e13).network(5e-6, 1e-10).axis("model", 1e-6, 1e-11));
    let expected = plan.step.flops() as f64 / 1e13;
    assert!((times.compute - expected).abs() < 1e-9 && times.exchange > 0.0);
    let text = format!("{plan}\n{times}");
    for part in ["sends ", "all_reduce along model", "src/mesh/tests/planned.rs", "computing"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn pretended_groups_say_what_they_cannot_do() {
    let group = Group::pretend(4).unwrap();
    let error = group.all_reduce(&Tensor::ones([2]).unwrap(), Reduction::Sum).err().unwrap().to_string();
    assert!(error.contains("the other ranks of a pretended group have no elements"), "{error}");
    assert!(group.split(0).err().unwrap().to_string().contains("give no colors"));
    assert!(Group::pretend(0).err().unwrap().to_string().contains("at least one rank"));
    let model = crate::DataParallel::new(
        on_device(Device::Meta, || Linear::new(("C", 1000), ("y", 1000))).unwrap(),
        &group,
    )
    .unwrap();
    let x = on_device(Device::Meta, || Tensor::zeros([("N", 8), ("C", 1000)])).unwrap();
    let plan = plan(|| model.forward(&x)?.sum(..)?.backward()).unwrap();
    // The gradients, and in `f64` for each of two parameters whether there is one, and a 1.
    assert_eq!(plan.bytes_sent(), 2 * (4 * 1_001_000 + 8 * 3) * 3 / 4, "{plan}");
}
