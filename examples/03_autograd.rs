//! Gradients: `backward`, `grad`, hooks, switching the tape off, higher derivatives.
//!
//! `cargo run --example 03_autograd`

use namegrad::autograd::{BackwardOptions, grad_with};
use namegrad::prelude::*;

fn main() -> Result<()> {
    backward()?;
    accumulation()?;
    gradients_by_request()?;
    hooks()?;
    without_the_tape()?;
    second_order()?;
    misuse()
}

/// `backward` goes from one number back to the leaves that require a gradient, and adds to their `grad`.
fn backward() -> Result<()> {
    let x = Tensor::new([1.0, 2.0, 3.0])?.refine_names(["D"])?;
    let w = Tensor::new([0.1, 0.2, 0.3])?.refine_names(["D"])?.requiring_grad()?;
    let y = x.mul(&w)?;
    let loss = y.square()?.sum("D")?;
    println!("{loss}"); // grad_fn says which op made it
    assert!(w.is_leaf() && !y.is_leaf() && y.grad_fn() == Some("mul"));

    y.retain_grad()?; // by default, only leaves keep their gradient
    loss.backward()?;
    println!("d loss / d y = {}", y.grad().unwrap());
    println!("d loss / d w = {}", w.grad().unwrap()); // 2 x² w, without names
    assert!(!w.grad().unwrap().has_names());
    let want = (2.0 * x.square()? * w.detach()).to_vec::<f32>()?;
    assert!(w.grad().unwrap().to_vec::<f32>()?.iter().zip(want).all(|(g, want)| (g - want).abs() < 1e-6));
    Ok(())
}

/// A second pass adds to the existing gradients, so training loops clear them before each step.
fn accumulation() -> Result<()> {
    let x = Tensor::new(3.0)?.requiring_grad()?;
    x.square()?.backward()?;
    x.square()?.backward()?;
    assert_eq!(x.grad().unwrap().item::<f64>()?, 12.0);
    x.zero_grad();
    assert!(x.grad().is_none());
    Ok(())
}

/// `grad` returns the gradients without changing the `grad` of any tensor. An output with several elements
/// needs a gradient to start from.
fn gradients_by_request() -> Result<()> {
    let x = Tensor::new([1.0, 2.0])?.requiring_grad()?;
    let y = x.exp()?;
    let start = Tensor::new([1.0, 10.0])?;
    let found = grad_with(&[&y], &[&x], &[Some(&start)], BackwardOptions::default())?;
    println!("{}", found[0].as_ref().unwrap());
    assert!(x.grad().is_none());
    Ok(())
}

/// A hook sees a gradient as it is computed and can replace it. Its handle removes it again.
fn hooks() -> Result<()> {
    let x = Tensor::new([1.0, -1.0])?.requiring_grad()?;
    let y = x.mul(100.0)?;
    let handle = y.register_hook(|g| {
        println!("the gradient of y is {g}");
        Ok(Some(g.clamp(-0.5, 0.5)?))
    })?;
    y.sum(..)?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [50.0, 50.0]);
    handle.remove();
    Ok(())
}

/// Nothing inside `no_grad` is recorded; this is where to change a parameter. `detach` cuts a single tensor
/// off.
fn without_the_tape() -> Result<()> {
    let mut w = Tensor::new([1.0, 2.0])?.requiring_grad()?;
    w.square()?.sum(..)?.backward()?;
    let step = w.grad().unwrap().mul(0.1)?;
    no_grad(|| w.sub_(&step).map(drop))?;
    assert_eq!(w.to_vec::<f32>()?, [0.8, 1.6]);
    assert!(w.requires_grad() && w.is_leaf());
    assert!(!w.detach().requires_grad() && !no_grad(|| w.exp())?.requires_grad());
    Ok(())
}

/// With `create_graph` the gradients are recorded too: here f, f', f'' and f''' of x⁴ at 2.
fn second_order() -> Result<()> {
    let x = Tensor::new(2.0)?.requiring_grad()?;
    let options = BackwardOptions { create_graph: true, ..Default::default() };
    let mut y = x.pow(4)?;
    for (order, want) in [16.0, 32.0, 48.0, 48.0].into_iter().enumerate() {
        println!("derivative {order} of x^4 at 2 is {}", y.item::<f64>()?);
        assert!((y.item::<f64>()? - want).abs() < 1e-4);
        y = grad_with(&[&y], &[&x], &[], options)?[0].clone().unwrap();
    }
    Ok(())
}

/// Whatever would silently give a wrong gradient is an error.
fn misuse() -> Result<()> {
    let mut x = Tensor::new([1.0, 2.0])?.requiring_grad()?;
    println!("{}", x.exp()?.backward().unwrap_err()); // which element?
    println!("{}", x.mul_(2.0).unwrap_err()); // would overwrite the value whose gradient is wanted
    let loss = x.square()?.sum(..)?;
    loss.backward()?;
    println!("{}", loss.backward().unwrap_err()); // what the ops saved was freed
    Ok(())
}
