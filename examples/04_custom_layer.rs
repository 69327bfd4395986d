//! Your own layer and model: the derive macro, `forward`, a few training steps, the summary, and saving and
//! loading.
//!
//! `cargo run --example 04_custom_layer`

use namegrad::nn::StateDict;
use namegrad::prelude::*;

/// `x / √(mean x² + eps) · gain` over one dim, which is found by name in any position.
///
/// `derive(Module)` finds the parameters in the fields; numbers and strings are fields without parameters.
#[derive(Module)]
struct RmsNorm {
    gain: Parameter,
    dim: &'static str,
    eps: f64,
}

impl RmsNorm {
    fn new(dim: &'static str, size: usize) -> Result<RmsNorm> {
        Ok(RmsNorm { gain: Parameter::new(Tensor::ones([(dim, size)])?)?, dim, eps: 1e-6 })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let scale = x.square()?.mean(keep(self.dim))?.add(self.eps)?.rsqrt()?;
        x.mul(&scale)?.mul(&self.gain.tensor().align_as(x)?)
    }
}

/// Layers are fields; `forward` is an ordinary method with whatever arguments the model needs.
#[derive(Module)]
struct Classifier {
    hidden: Linear,
    norm: RmsNorm,
    dropout: Dropout,
    out: Linear,
}

impl Classifier {
    fn new(width: usize) -> Result<Classifier> {
        Ok(Classifier {
            hidden: Linear::new(("coord", 2), ("hidden", width))?,
            norm: RmsNorm::new("hidden", width)?,
            dropout: Dropout::new(0.1)?,
            out: Linear::new(("hidden", width), ("class", 2))?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = self.norm.forward(&self.hidden.forward(x)?.relu()?)?; // [.., hidden]
        self.out.forward(&self.dropout.forward(&h)?) // [.., class]
    }
}

/// The share of the points that the model classifies correctly, without dropout.
fn accuracy(model: &Classifier, points: &Tensor, class: &Tensor) -> Result<f64> {
    model.eval();
    let logits = no_grad(|| model.forward(points))?;
    model.train();
    logits.argmax("class")?.eq(class)?.to(DType::F64)?.mean("N")?.item::<f64>()
}

fn main() -> Result<()> {
    manual_seed(1);
    let model = Classifier::new(32)?;
    println!("{model}\n"); // a derived module prints its summary
    assert_eq!(model.named_parameters()[2].0, "norm.gain");

    // The layer accepts its dim in any position, with any other dims.
    let x = Tensor::randn([("hidden", 32), ("N", 4), ("time", 5)])?;
    assert_eq!(model.norm.forward(&x)?.shape(), x.shape());

    // Points in the plane; the class says whether both coordinates have the same sign.
    let points = Tensor::randn([("N", 256), ("coord", 2)])?;
    let class = points.prod("coord")?.gt(0)?.to(DType::I64)?;
    let mut optimizer = AdamW::builder(model.parameters()).lr(0.02).build()?;
    for step in 0..100 {
        let loss = F::cross_entropy(&model.forward(&points)?, &class, "class")?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        if step % 20 == 0 {
            println!("step {step:3}  loss {:.4}", loss.item::<f64>()?);
        }
    }
    let trained = accuracy(&model, &points, &class)?;
    println!("accuracy {trained:.3}");
    assert!(trained > 0.9);

    // The state dict maps paths to values. Its file keeps the names of the dims. A new model loads it if
    // every path, name and size agrees.
    let file = std::env::temp_dir().join(format!("custom_layer_{}.safetensors", std::process::id()));
    model.state_dict().save(&file)?;
    let state = StateDict::load(&file)?;
    std::fs::remove_file(&file).expect("it was just written");
    assert_eq!(*state.get("hidden.weight").unwrap().names(), ["hidden", "coord"]);
    let copy = Classifier::new(32)?;
    copy.load_state_dict(&state)?;
    assert_eq!(accuracy(&copy, &points, &class)?, trained);
    println!("{}", Classifier::new(16)?.load_state_dict(&state).unwrap_err());
    Ok(())
}
