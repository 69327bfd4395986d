//! Classifies points on the arms of spirals: `cargo run --release --example spirals`. It needs no data, and
//! draws the points and what the model says of the plane in `target/spirals/boundary.svg`.

use clap::Parser;
use namegrad::prelude::*;
use namegrad::train::pictures::{Chart, Rgb};
use namegrad_examples::flags::{self, TrainFlags};
use namegrad_examples::{Result, training};
use std::f64::consts::TAU;
use std::process::ExitCode;

/// Train a multilayer perceptron to tell the arms of spirals apart.
#[derive(Parser)]
#[command(
    mut_arg("epochs", |arg| arg.default_value("300").help("How many steps to make, each with all points")),
    mut_arg("lr", |arg| arg.default_value("0.01")),
    mut_arg("hidden", |arg| arg.default_value("64")),
    mut_arg("batch_size", |arg| arg.hide(true)),
    mut_arg("steps", |arg| arg.hide(true)),
    mut_arg("dropout", |arg| arg.hide(true)),
    mut_arg("out", |arg| arg.default_value("target/spirals")),
)]
struct Flags {
    #[command(flatten)]
    train: TrainFlags,
}

const ARMS: usize = 3;
const POINTS: usize = 200;
/// The plane is drawn from -1 to 1 in both directions, as this many squares.
const SQUARES: usize = 96;
const COLORS: [Rgb; ARMS] = [[217, 84, 77], [64, 153, 89], [64, 102, 204]];

#[derive(Module)]
struct Mlp {
    first: Linear,
    second: Linear,
    out: Linear,
}

impl Mlp {
    fn new(hidden: usize) -> namegrad::Result<Mlp> {
        Ok(Mlp {
            first: Linear::new(("xy", 2), ("hidden", hidden))?,
            // A layer may map a dim to itself.
            second: Linear::new(("hidden", hidden), ("hidden", hidden))?,
            out: Linear::new(("hidden", hidden), ("arm", ARMS))?,
        })
    }

    /// The dims of `points`, with `arm` in place of `xy`: a list of points or a whole plane.
    fn forward(&self, points: &Tensor) -> namegrad::Result<Tensor> {
        let h = self.first.forward(points)?.tanh()?;
        let h = self.second.forward(&h)?.tanh()?;
        self.out.forward(&h)
    }
}

/// Points `[arm, point, xy]` on arms that turn from the center outward, with noise, and the arm of each.
fn spirals() -> namegrad::Result<(Tensor, Tensor)> {
    let radius = Tensor::linspace(0.05, 0.95, POINTS)?.refine_names(["point"])?;
    let start = Tensor::arange(0, ARMS as i64, 1)?.refine_names(["arm"])?;
    let noise = Tensor::randn([("arm", ARMS), ("point", POINTS)])?.mul(0.15)?;
    // Neither the lengths nor the order of the dims have to be thought of: names say what belongs together.
    let turn = radius.mul(4.0)?.align_as(&noise)?.add(start.mul(TAU / ARMS as f64)?.align_as(&noise)?)?;
    let angle = turn.add(&noise)?;
    let radius = radius.align_as(&angle)?;
    let points = Tensor::stack_with(
        &[&radius.mul(angle.cos()?)?, &radius.mul(angle.sin()?)?],
        -1,
        StackOptions::new().name("xy"),
    )?;
    Ok((points, start.align_as(&angle)?.expand([ARMS, POINTS])?))
}

/// The centers of the squares of the plane, `[H, W, xy]`.
fn plane() -> namegrad::Result<Tensor> {
    let half = 1.0 - 1.0 / SQUARES as f64;
    let at = Tensor::linspace(-half, half, SQUARES)?;
    let [x, y] =
        ["W", "H"].map(|name| at.refine_names([name])?.align_to(["H", "W"])?.expand([SQUARES, SQUARES]));
    Tensor::stack_with(&[&x?, &y?], -1, StackOptions::new().name("xy"))
}

fn draw(model: &Mlp, points: &Tensor) -> namegrad::Result<Chart> {
    // A light mixture of the colors of the arms.
    let colors = Tensor::new(COLORS)?.to(DType::F32)?.div(255.0)?.refine_names(["arm", "C"])?;
    let shares = no_grad(|| model.forward(&plane()?)?.softmax("arm"))?; // [H, W, arm]
    let mixed = shares.contract(&colors, "arm")?.mul(0.5)?.add(0.5)?; // [H, W, C]
    let mut chart = Chart::new("").size(520, 520).image(mixed.flip("H")?, [-1.0, 1.0], [-1.0, 1.0])?;
    for (arm, color) in COLORS.into_iter().enumerate() {
        let points = points.select("arm", arm)?.to_vec::<f64>()?;
        chart = chart.color(color).points("", points.as_chunks::<2>().0.iter().map(|[x, y]| (*x, *y)));
    }
    Ok(chart)
}

fn train(model: &Mlp, points: &Tensor, arms: &Tensor, flags: &TrainFlags) -> Result<()> {
    let mut optimizer = AdamW::builder(model.parameters()).lr(flags.lr).build()?;
    // The points of an arm and the arms are the batch; the classes of the logits are another dim.
    let points = points.rename([("arm", "of")])?;
    let arms = arms.rename([("arm", "of")])?;
    for step in 1..=flags.epochs {
        let logits = model.forward(&points)?;
        let loss = F::cross_entropy(&logits, &arms, "arm")?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        if step % 50 == 0 || step == flags.epochs {
            let right = logits.argmax("arm")?.eq(&arms)?.to(DType::F64)?.mean(..)?;
            println!(
                "step {step:4}  loss {:.4}  accuracy {:6.2} %",
                loss.item::<f64>()?,
                100.0 * right.item::<f64>()?
            );
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    flags::run(|| {
        let Flags { train: flags } = Flags::try_parse()?;
        flags.create_out()?;
        training::set_threads(flags.threads)?;
        manual_seed(flags.seed);
        let (points, arms) = spirals()?;
        let model = Mlp::new(flags.hidden)?;
        println!("{model}\n");
        train(&model, &points, &arms, &flags)?;
        let path = flags.out.join("boundary.svg");
        draw(&model, &points)?.save(&path)?;
        println!("picture  {}", path.display());
        Ok(())
    })
}
