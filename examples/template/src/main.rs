//! Trains a small network and prints how long a step takes.

use namegrad::prelude::*;
use std::time::Instant;

#[derive(Module)]
struct Mlp {
    hidden: Linear,
    out: Linear,
}

impl Mlp {
    fn new() -> Result<Mlp> {
        Ok(Mlp {
            hidden: Linear::new(("pixels", 64), ("hidden", 128))?,
            out: Linear::new(("hidden", 128), ("class", 10))?,
        })
    }

    /// Logits `[N, class]` for inputs `[N, pixels]`.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.out.forward(&self.hidden.forward(x)?.relu()?)
    }
}

fn main() -> Result<()> {
    manual_seed(0);
    let model = Mlp::new()?;
    let mut optimizer = AdamW::builder(model.parameters()).lr(1e-2).build()?;

    // Replace this with your data. The class is the position of the brightest of the first ten pixels.
    let x = Tensor::rand([("N", 64), ("pixels", 64)])?;
    let class = x.narrow("pixels", 0, 10)?.argmax("pixels")?; // [N]

    let (steps, start) = (200, Instant::now());
    for step in 0..steps {
        let loss = F::cross_entropy(&model.forward(&x)?, &class, "class")?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        if step % 50 == 0 {
            println!("step {step}: loss {:.3}", loss.item::<f64>()?);
        }
    }
    println!("{:.2} ms a step", start.elapsed().as_secs_f64() * 1e3 / f64::from(steps));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;

    #[test]
    fn the_order_of_the_dims_does_not_matter() -> Result<()> {
        let model = Mlp::new()?;
        let x = Tensor::rand([("N", 3), ("pixels", 64)])?;
        let y = model.forward(&x.align_to(["pixels", "N"])?)?.align_to(["N", "class"])?;
        assert_relative_eq!(y, model.forward(&x)?, epsilon = 1e-5);
        Ok(())
    }
}
