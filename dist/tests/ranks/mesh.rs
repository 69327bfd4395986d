//! Models that are split by name, beside the same models on one process.

use crate::{Outcome, Program};
use namegrad::prelude::*;
use namegrad_dist::{Group, Mesh};

pub(crate) const PROGRAMS: &[Program] =
    &[Program { name: "split-by-name", ranks: &[1, 2, 4], run: split_by_name, error: None }];

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
