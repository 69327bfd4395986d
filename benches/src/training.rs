//! Training steps: W5, a perceptron on 784 pixels, and the memory that it takes.

use crate::data::{classes, positive, uniform};
use crate::harness::{Bench, Step};
use namegrad::core::cpu::optimizer_steps::{Adam as AdamStep, adam};
use namegrad::prelude::*;

pub(crate) fn all(bench: &Bench) -> Result<()> {
    bench.training("W5.mlp.64", || mlp(64))?;
    bench.training("W5.mlp.512", || mlp(512))
}

/// The peak of memory of 30 steps, or of a process that does nothing.
pub(crate) fn memory(bench: &Bench, model: &str) -> Result<()> {
    let name = match model {
        "W5" => {
            let mut step = mlp(512)?;
            for _ in 0..30 {
                step()?;
            }
            "W10.W5.mlp.512"
        }
        _ => "W10.import_only",
    };
    bench.print_memory(name);
    Ok(())
}

/// Parameter `i`, counted from 1 in order of declaration, is stream `100 + i` with the scale `1 / √fan_in`.
struct Init(u64);

impl Init {
    fn parameter(&mut self, sizes: &[usize], fan_in: usize) -> Result<Parameter> {
        self.0 += 1;
        Parameter::new(uniform(100 + self.0, sizes, 1.0 / (fan_in as f32).sqrt())?)
    }
}

struct Linear {
    weight: Parameter,
    bias: Parameter,
}

impl Linear {
    fn new(init: &mut Init, inputs: usize, outputs: usize) -> Result<Linear> {
        Ok(Linear {
            weight: init.parameter(&[outputs, inputs], inputs)?,
            bias: init.parameter(&[outputs], inputs)?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.mm(&self.weight.tensor().t()?)?.add(&self.bias.tensor())
    }
}

/// 784-512-256-10 with ReLU, cross entropy and Adam, on one batch.
fn mlp(batch: usize) -> Result<Step> {
    let mut init = Init(0);
    let layers = [
        Linear::new(&mut init, 784, 512)?,
        Linear::new(&mut init, 512, 256)?,
        Linear::new(&mut init, 256, 10)?,
    ];
    let parameters: Vec<Parameter> =
        layers.iter().flat_map(|layer| [layer.weight.clone(), layer.bias.clone()]).collect();
    let x = positive(11, &[batch, 784])?;
    let target = classes(12, batch, 10)?;
    let mut optimizer = Adam::new(parameters)?;
    Ok(Box::new(move || {
        let hidden = layers[0].forward(&x)?.relu()?;
        let hidden = layers[1].forward(&hidden)?.relu()?;
        let logits = layers[2].forward(&hidden)?;
        let picked = logits.log_softmax(1)?.gather(&target.unsqueeze(1)?, 1)?;
        let loss = picked.mean(..)?.neg()?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        Ok(loss.detach())
    }))
}

struct Adam {
    slots: Vec<(Parameter, Vec<f32>, Vec<f32>)>,
    steps: i32,
}

impl Adam {
    fn new(parameters: Vec<Parameter>) -> Result<Adam> {
        let slot = |parameter: Parameter| {
            let n = parameter.tensor().numel();
            (parameter, vec![0.0; n], vec![0.0; n])
        };
        Ok(Adam { slots: parameters.into_iter().map(slot).collect(), steps: 0 })
    }

    fn zero_grad(&self) {
        self.slots.iter().for_each(|(parameter, ..)| parameter.zero_grad());
    }

    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        let betas: (f64, f64) = (0.9, 0.999);
        let step = AdamStep {
            lr: 1e-3,
            betas,
            eps: 1e-8,
            weight_decay: 0.0,
            decoupled: false,
            maximize: false,
            bias_corrections: (1.0 - betas.0.powi(self.steps), 1.0 - betas.1.powi(self.steps)),
        };
        for (parameter, mean, square) in &mut self.slots {
            let Some(grad) = parameter.grad() else { continue };
            let grad = grad.value().contiguous()?;
            parameter.update(|value| {
                adam(&step, value.as_mut_slice::<f32>()?, grad.as_slice()?, mean, square, None);
                Ok(())
            })?;
        }
        Ok(())
    }
}
