//! W7: a language model of characters on 12 sequences of 64.

use crate::data::classes;
use crate::harness::Step;
use crate::training::Init;
use namegrad::nn::{TransformerEncoder, TransformerEncoderLayer};
use namegrad::prelude::*;

const VOCAB: usize = 65;
const BLOCK: usize = 64;
const BATCH: usize = 12;
const WIDTH: usize = 128;

/// Embeddings of characters and positions, four layers with the norms first, and a linear map to the
/// characters.
#[derive(Module)]
struct Gpt {
    characters: Embedding,
    positions: Embedding,
    blocks: TransformerEncoder,
    head: Linear,
}

impl Gpt {
    fn new() -> Result<Gpt> {
        let block = TransformerEncoderLayer::builder(WIDTH, 4, -2).is_causal(true).norm_first(true);
        let block = block.dim_feedforward(4 * WIDTH).activation(Tensor::gelu).dropout(0.0);
        let model = Gpt {
            characters: Embedding::new(VOCAB, WIDTH)?,
            positions: Embedding::new(BLOCK, WIDTH)?,
            blocks: TransformerEncoder::new(block, 4)?.with_norm(LayerNorm::new([WIDTH])?),
            head: Linear::builder(WIDTH, VOCAB).bias(false).build()?,
        };
        let mut init = Init(0);
        let mut fan_in = WIDTH;
        for (path, parameter) in model.named_parameters() {
            if path.contains("norm") {
                continue; // stays 1 and 0
            }
            // A bias follows its weight.
            if parameter.ndim() == 2 {
                fan_in = parameter.shape().sizes[1];
            }
            parameter.set(init.numbers(&parameter.shape().sizes, fan_in)?)?;
        }
        Ok(model)
    }

    fn forward(&self, ids: &Tensor, positions: &Tensor) -> Result<Tensor> {
        let x = self.characters.forward(ids)?.add(&self.positions.forward(positions)?)?;
        self.head.forward(&self.blocks.forward(&x)?)
    }
}

/// A step with AdamW and cross entropy.
pub(crate) fn gpt() -> Result<Step> {
    let model = Gpt::new()?;
    let optimizer = AdamW::builder(model.parameters()).lr(1e-3).betas((0.9, 0.99)).weight_decay(0.1);
    let mut optimizer = optimizer.build()?;
    let ids = classes(11, BATCH * BLOCK, VOCAB as u64)?.reshape([BATCH, BLOCK])?;
    let target = classes(12, BATCH * BLOCK, VOCAB as u64)?;
    let positions = Tensor::arange(0, BLOCK as i64, 1)?;
    Ok(Box::new(move || {
        let logits = model.forward(&ids, &positions)?.reshape([BATCH * BLOCK, VOCAB])?;
        let loss = F::cross_entropy(&logits, &target, 1)?;
        drop(logits);
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        Ok(loss.detach())
    }))
}
