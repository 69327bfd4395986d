//! Attention by name: dims in any order, a learned bias by position, a window, and groups of heads.
//!
//! `cargo run --example 08_attention`

use namegrad::prelude::*;

const TIME: usize = 12;

/// Attention whose scores are only a learned number for each pair of positions.
#[derive(Module)]
struct ByPosition {
    bias: Parameter,
}

impl ByPosition {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        // Queries and keys have the same positions. In a bias or a mask, those of the keys are `time_key`.
        let bias = self.bias.tensor();
        let options = AttentionOptions::new().bias(&bias).is_causal(true).window(4).scale(0.0);
        F::attention_with(x, x, x, "time", "channel", options) // [N, time, channel]
    }
}

fn main() -> Result<()> {
    manual_seed(0);

    // The first name is the dim of the positions of the keys, the second the dim of the products. All other
    // dims are matched by name, wherever they are.
    let q = Tensor::randn([("N", 2), ("heads", 4), ("word", 3), ("embed", 8)])?;
    let k = Tensor::randn([("time", 5), ("N", 2), ("heads", 4), ("embed", 8)])?;
    let v = Tensor::randn([("heads", 4), ("value", 2), ("N", 2), ("time", 5)])?;
    let y = F::attention(&q, &k, &v, "time", "embed")?;
    println!("{} attends to {}: {}", q.shape(), k.shape(), y.shape());
    assert_eq!(y.shape().to_string(), "[N=2, heads=4, word=3, value=2]");

    // The same, written as its formula.
    let scores = q.contract(&k, "embed")?.div(8_f64.sqrt())?; // [N, heads, word, time]
    let formula = scores.softmax("time")?.contract(&v, "time")?; // [N, heads, word, value]
    assert!(y.allclose_with(&formula, IscloseOptions::new().atol(1e-5))?);

    // Two heads of the keys serve four of the queries, if that is asked for. Otherwise it is an error.
    let few = k.narrow("heads", 0, 2)?;
    println!("{}", F::attention(&q, &few, &few, "time", "embed").unwrap_err());
    let grouped = F::attention_with(&q, &few, &few, "time", "embed", AttentionOptions::new().heads("heads"))?;
    println!("in groups: {}\n", grouped.shape());

    // A task that needs positions only: repeat the numbers of three steps before.
    let model = ByPosition { bias: Parameter::new(Tensor::zeros([("time", TIME), ("time_key", TIME)])?)? };
    let mut optimizer = Adam::builder(model.parameters()).lr(0.3).build()?;
    for step in 0..=60 {
        let x = Tensor::randn([("N", 32), ("time", TIME), ("channel", 6)])?;
        let y = model.forward(&x)?.narrow("time", 3, TIME - 3)?;
        let wanted = x.narrow("time", 0, TIME - 3)?;
        let loss = F::mse_loss(&y, &wanted)?;
        if step % 20 == 0 {
            println!("step {step}: loss {:.4}", loss.item::<f64>()?);
        }
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
    }
    let best = model.bias.tensor().select("time", 8)?.argmax("time_key")?.item::<i64>()?;
    println!("position 8 looks at position {best}");
    assert_eq!(best, 5);
    Ok(())
}
