//! Models that are split by name, beside the same models on one process.

use crate::{Outcome, Program};
use namegrad::prelude::*;
use namegrad::train::{Checkpoints, parts};
use namegrad_dist::{Group, Mesh};

pub(crate) const PROGRAMS: &[Program] = &[
    Program { name: "split-by-name", ranks: &[1, 2, 4], run: split_by_name, error: None },
    Program { name: "split-checkpoints", ranks: &[1, 2, 4], run: split_checkpoints, error: None },
    Program {
        name: "a-checkpoint-of-one-rank",
        ranks: &[2],
        run: |group| {
            let mesh = Mesh::on(group, [("model", 2)])?.shard([("hidden", "model")])?;
            let model = Linear::new(("in", 3), ("hidden", 4))?;
            mesh.split(&model)?;
            group.on_first(|| model.state_dict().save(std::env::temp_dir().join("never.safetensors")))?;
            Ok(())
        },
        error: Some(
            "error: rank 0 of 2: panicked: Group::on_first: rank 0 alone runs the function, so no other rank takes part in its exchanges",
        ),
    },
    Program { name: "split-with-dropout", ranks: &[1, 2, 4], run: split_with_dropout, error: None },
];

#[derive(Module)]
struct Block {
    tokens: Embedding,
    attention: MultiheadAttention,
    norm: LayerNorm,
    hidden: Linear,
    back: Linear,
    dropout: Dropout,
    out: Linear,
}

impl Block {
    fn new() -> Result<Block> {
        manual_seed(1);
        Ok(Block {
            tokens: Embedding::new(("vocab", 12), ("embed", 8))?,
            attention: MultiheadAttention::builder(("embed", 8), ("heads", 4), "seq")
                .is_causal(true)
                .build()?,
            norm: LayerNorm::new(("embed", 8))?,
            hidden: Linear::new(("embed", 8), ("hidden", 16))?,
            back: Linear::new(("hidden", 16), ("embed", 8))?,
            dropout: Dropout::new(0.2)?,
            out: Linear::new(("embed", 8), ("vocab", 12))?,
        })
    }

    fn loss(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let x = self.tokens.forward(x)?;
        let x = x.add(&self.attention.forward(&x)?)?;
        let h = self.hidden.forward(&self.norm.forward(&x)?)?.gelu()?;
        let x = x.add(&self.back.forward(&self.dropout.forward(&h)?)?)?;
        F::cross_entropy(&self.out.forward(&x)?, y, "vocab")
    }
}

fn split_by_name(group: &Group) -> Outcome {
    let model = Block::new()?;
    let batch = || Tensor::rand([("batch", 4), ("seq", 6)])?.mul(12.0).floor().to(DType::I64);
    let (x, y) = (batch()?, batch()?);

    let other = Block::new()?;
    // Adam would make the rounding errors of gradients that are 0, such as those of the bias of keys, large.
    let sgd = |model: &Block| Sgd::builder(model.parameters()).lr(0.1).momentum(0.9).build();
    let mut optimizer = sgd(&other)?;
    manual_seed(2);
    let mut expected = Vec::new();
    for _ in 0..3 {
        optimizer.zero_grad();
        let loss = other.loss(&x, &y)?;
        loss.backward()?;
        namegrad::optim::clip_grad_norm_(other.parameters(), 0.5)?;
        optimizer.step()?;
        expected.push(loss.item::<f32>()?);
    }

    let axes = [("data", if group.size() == 4 { 2 } else { 1 }), ("model", group.size().min(2))];
    let table = [("batch", "data"), ("heads", "model"), ("hidden", "model"), ("vocab", "model")];
    let mesh = Mesh::on(group, axes)?.shard(table)?.zero(1, "data")?;
    mesh.split(&model)?;
    let mut optimizer = sgd(&model)?;
    manual_seed(2);
    let (x, y) = (mesh.part(&x)?, mesh.part(&y)?);
    for expected in expected {
        optimizer.zero_grad();
        let loss = mesh.scope(|| {
            let loss = model.loss(&x, &y)?;
            loss.backward()?;
            loss.item::<f32>()
        })?;
        mesh.clip_grad_norm_(&model, 0.5)?;
        optimizer.step()?;
        assert!((loss - expected).abs() < 1e-5, "{loss} in parts, {expected} on one process");
    }
    let state = mesh.state_dict(&model)?;
    for ((path, x), (_, y)) in state.iter().zip(other.state_dict().iter()) {
        let far = x.sub(y)?.abs()?.amax(..)?.item::<f32>()?;
        assert!(far < 1e-4, "{path} differs by {far}");
    }
    assert_eq!(mesh.gathered(), Vec::<String>::new());
    Ok(())
}

/// A transformer whose layers, heads and scores drop features.
fn split_with_dropout(group: &Group) -> Outcome {
    let make = || -> Result<TransformerEncoder> {
        manual_seed(3);
        let layer = TransformerEncoderLayer::builder(("embed", 8), ("heads", 4), "seq").dim_feedforward(16);
        TransformerEncoder::new(layer.dropout(0.1), 2)
    };
    let (model, other) = (make()?, make()?);
    let x = Tensor::randn([("batch", 4), ("seq", 6), ("embed", 8)])?;
    let steps = |model: &TransformerEncoder, step: &dyn Fn() -> Result<f32>| -> Result<Vec<f32>> {
        let mut optimizer = Sgd::builder(model.parameters()).lr(0.1).build()?;
        manual_seed(4);
        let mut losses = Vec::new();
        for _ in 0..5 {
            optimizer.zero_grad();
            losses.push(step()?);
            optimizer.step()?;
        }
        Ok(losses)
    };
    let loss = |model: &TransformerEncoder, x: &Tensor| -> Result<f32> {
        let loss = model.forward(x)?.pow(4.0)?.mean(..)?;
        loss.backward()?;
        loss.item()
    };
    let expected = steps(&other, &|| loss(&other, &x))?;
    let axes = [("data", if group.size() == 4 { 2 } else { 1 }), ("model", group.size().min(2))];
    let table = [("batch", "data"), ("heads", "model"), ("feedforward", "model")];
    let mesh = Mesh::on(group, axes)?.shard(table)?.zero(1, "data")?;
    mesh.split(&model)?;
    let x = mesh.part(&x)?;
    let losses = steps(&model, &|| mesh.scope(|| loss(&model, &x)))?;
    for (own, one) in losses.iter().zip(&expected) {
        assert!((own - one).abs() < 1e-3 * one.abs(), "{losses:?} in parts, {expected:?} on one process");
    }
    Ok(())
}

/// A run that is resumed with another table goes on as if nothing had happened, also with a model that has no
/// values before.
fn split_checkpoints(group: &Group) -> Outcome {
    let axes = [("data", if group.size() == 4 { 2 } else { 1 }), ("model", group.size().min(2))];
    let batch = || Tensor::rand([("batch", 4), ("seq", 6)])?.mul(12.0).floor().to(DType::I64);
    manual_seed(5);
    let (x, y) = (batch()?, batch()?);
    let base = std::env::temp_dir().join("namegrad-dist-mesh");
    let folder = base.join(format!("{}", group.size()));
    group.on_first(|| Ok(std::fs::create_dir_all(&folder)?))?;
    let checkpoints = Checkpoints::new(&folder)?;
    let step = |mesh: &Mesh, model: &Block, optimizer: &mut Adam| -> Result<()> {
        let (x, y) = (mesh.part(&x)?, mesh.part(&y)?);
        optimizer.zero_grad();
        mesh.scope(|| model.loss(&x, &y)?.backward())?;
        optimizer.step()
    };
    let first = Mesh::on(group, axes)?.shard([("batch", "data"), ("heads", "model"), ("vocab", "model")])?;
    let model = Block::new()?;
    first.split(&model)?;
    model.eval(); // without dropout
    let mut optimizer = Adam::new(model.parameters())?;
    step(&first, &model, &mut optimizer)?;
    first.save(&checkpoints, 1, parts![&model, &mut optimizer])?;
    step(&first, &model, &mut optimizer)?;

    let second = Mesh::on(group, axes)?.shard([("batch", "data"), ("hidden", "model")])?.zero(1, "data")?;
    let other = on_device(Device::Meta, Block::new)?;
    second.split(&other)?;
    other.eval();
    let mut resumed = Adam::new(other.parameters())?;
    checkpoints.resume(parts![model = &other, optimizer = &mut resumed])?;
    step(&second, &other, &mut resumed)?;
    for ((path, x), (_, y)) in other.state_dict().iter().zip(model.state_dict().iter()) {
        let far = x.sub(y)?.abs()?.amax(..)?.item::<f32>()?;
        assert!(far < 1e-4, "{path} differs by {far}");
    }
    drop(checkpoints);
    group.on_first(|| Ok(std::fs::remove_dir_all(&base)?))?;
    Ok(())
}
