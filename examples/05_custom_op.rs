//! Your own ops: a value, and how to compute the gradients of the inputs from those of the outputs. The
//! built-in ops are recorded in the same way.
//!
//! `cargo run --example 05_custom_op`

use namegrad::autograd::{BackwardOptions, Kept, Op, grad, grad_with, gradcheck, gradgradcheck};
use namegrad::core::NamedTensor;
use namegrad::prelude::*;

/// `ln cosh x`, a loss that is quadratic near 0 and linear far out.
///
/// The value is `|x| + ln((1 + e^(-2|x|)) / 2)`, which never overflows. The derivative that the tape would
/// derive from this formula is wrong at 0, where `|x|` has a kink but the function has none. So the op has
/// its own derivative, `tanh x`.
fn log_cosh(x: &Tensor) -> Result<Tensor> {
    let distance = x.value().abs()?; // ops on `value()` are not recorded and propagate names
    let y = distance.add(&distance.mul(-2.0)?.exp()?.log1p()?)?.sub(std::f64::consts::LN_2)?;
    let kept = Kept::input(x);
    Ok(Op::new("log_cosh", y).input(x, move |g, cx| g.mul(kept.get(cx).tanh()?)).output())
}

/// `exp(-(x / width)² / 2)`: two inputs, either of which may be broadcast, and derivatives in terms of the
/// output.
fn bump(x: &Tensor, width: &Tensor) -> Result<Tensor> {
    let y = x.value().div(width.value())?.square()?.mul(-0.5)?.exp()?;
    // Each derivative saves what it needs, and only if its input requires a gradient.
    let (x1, width1, y1) = (Kept::input(x), Kept::input(width), Kept::output(&y));
    let (x2, width2, y2) = (x1.clone(), width1.clone(), y1.clone());
    Ok(Op::new("bump", y)
        .input(x, move |g, cx| (-g * y1.get(cx)).mul(x1.get(cx).div(width1.get(cx).square()?)?))
        .input(width, move |g, cx| (g * y2.get(cx)).mul(x2.get(cx).square()?.div(width2.get(cx).pow(3)?)?))
        .output())
}

/// The sign of `x` as ±1, computed in its own loop. The true derivative is 0 everywhere; this one passes the
/// gradient straight through, as is usual in training networks with binary weights.
fn binarize(x: &Tensor) -> Result<Tensor> {
    let signs: Vec<f32> = x.to_vec::<f32>()?.into_iter().map(|x| if x < 0.0 { -1.0 } else { 1.0 }).collect();
    let y = NamedTensor::from_slice(&signs, x.shape())?; // a shape has sizes and names
    Ok(Op::new("binarize", y).input(x, |g, _| Ok(g.clone())).output())
}

/// The mean of each row and its standard deviation: two outputs of one op, with one derivative for both.
///
/// `∂mean/∂x = 1 / n` and `∂std/∂x = (x - mean) / (n std)`, in terms of the input and of both outputs.
fn mean_and_std(x: &Tensor) -> Result<[Tensor; 2]> {
    let mean = x.value().mean(keep(-1))?;
    let std = x.value().sub(&mean)?.square()?.mean(keep(-1))?.sqrt()?;
    // Save outputs by their number, never as tensors: an op that owned its outputs would never be freed.
    let (x_kept, mean_kept, std_kept) = (Kept::input(x), Kept::output_at(0, &mean), Kept::output_at(1, &std));
    let outputs = Op::with_outputs("mean_and_std", vec![mean, std]).inputs(&[Some(x)], move |_, cx| {
        // The gradient of an unused output is zero.
        let [of_mean, of_std] = [cx.output_gradient(0)?, cx.output_gradient(1)?];
        let centered = x_kept.get(cx).sub(mean_kept.get(cx))?;
        let n = *cx.sizes().last().unwrap_or(&1) as f64;
        let of_x = of_mean.add(of_std.mul(centered)?.div(std_kept.get(cx))?)?.div(n)?;
        Ok(vec![Some(of_x)])
    });
    Ok(outputs.try_into().expect("two values make two outputs"))
}

fn main() -> Result<()> {
    let x = Tensor::new([-1000.0, -1.0, 0.0, 2.0])?.refine_names(["N"])?.requiring_grad()?;
    let y = log_cosh(&x)?;
    println!("{y}");
    assert_eq!(y.names(), x.names());
    y.sum("N")?.backward()?;
    println!("{}", x.grad().unwrap());
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?[2], 0.0);

    // The derivatives use tensor ops, so they can be differentiated again: the second derivative at 0 is 1.
    let zero = Tensor::new(0.0)?.requiring_grad()?;
    let options = BackwardOptions::new().create_graph(true);
    let first = grad_with(&[&log_cosh(&zero)?], &[&zero], &[], options)?[0].clone().unwrap();
    let second = grad(&[&first], &[&zero])?.remove(0);
    assert_eq!(second.item::<f64>()?, 1.0);

    // The tape sums the gradient of a broadcast input.
    let width = Tensor::new([0.5, 2.0])?.refine_names(["W"])?.requiring_grad()?;
    let bumps = bump(&x.detach().unsqueeze(-1)?, &width)?;
    assert_eq!(bumps.shape().to_string(), "[N=4, W=2]");
    bumps.sum(..)?.backward()?;
    assert_eq!(width.grad().unwrap().sizes(), [2]);

    // `gradcheck` compares with finite differences in f64; see 06_gradient_check.
    let f64s = |data: [f64; 3]| TensorOptions::new().dtype(DType::F64).tensor(data);
    let both = [f64s([-0.7, 0.1, 1.5])?, f64s([0.5, 1.0, 2.0])?];
    gradcheck(|x| log_cosh(&x[0]), &both[..1])?;
    gradgradcheck(|x| log_cosh(&x[0]), &both[..1])?;
    gradcheck(|x| bump(&x[0], &x[1]), &both)?;
    gradgradcheck(|x| bump(&x[0], &x[1]), &both)?;

    // Both outputs of one op; with `create_graph` the gradient can be differentiated again.
    let rows = TensorOptions::new().dtype(DType::F64).tensor([[1.0, 3.0, 8.0], [0.5, -1.0, 2.0]])?;
    let both_used = |x: &[Tensor]| {
        let [mean, std] = mean_and_std(&x[0])?;
        mean.mul(std.log()?)
    };
    gradcheck(both_used, std::slice::from_ref(&rows))?;
    gradgradcheck(both_used, &[rows])?;

    let x = Tensor::new([-0.3, 0.2])?.requiring_grad()?;
    binarize(&x)?.mul(Tensor::new([2.0, 3.0])?)?.sum(..)?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 3.0]);
    println!("all derivatives agree with the differences");
    Ok(())
}
