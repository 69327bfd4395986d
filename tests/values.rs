//! Small tensors, their gradients, and comparisons of numbers.

use namegrad::autograd::{BackwardOptions, grad_with};
use namegrad::prelude::*;

/// The default options of a backward pass, as a constant.
pub const ONCE: BackwardOptions = BackwardOptions {
    retain_graph: false,
    create_graph: false,
    allow_unused: false,
    named: false,
    early: false,
};

/// The gradients of the sum of `y` with respect to two numbers.
pub fn gradients(y: fn(&Tensor, &Tensor) -> Result<Tensor>, a: f64, b: f64) -> Result<[f64; 2]> {
    let number = |x: f64| TensorOptions::new().dtype(DType::F64).requires_grad(true).tensor([x]);
    let (a, b) = (number(a)?, number(b)?);
    y(&a, &b)?.sum(..)?.backward()?;
    let of = |x: &Tensor| x.grad().expect("took part").item::<f64>();
    Ok([of(&a)?, of(&b)?])
}

/// A vector in `f64`.
pub fn f64s<const N: usize>(numbers: [f64; N]) -> Result<Tensor> {
    TensorOptions::new().dtype(DType::F64).tensor(numbers)
}

/// The gradient of the sum of `f(x)`.
pub fn gradient(x: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Vec<f64>> {
    let x = x.detach().requiring_grad()?;
    f(&x)?.sum(..)?.backward()?;
    x.grad().unwrap().to_vec()
}

/// Fails unless the numbers are equal up to rounding; NaN is equal to NaN.
#[track_caller]
pub fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        let near = a == b || (a - b).abs() <= 1e-14 * b.abs() || a.is_nan() && b.is_nan();
        assert!(near, "{found:?} is not {expected:?}");
    }
}

/// The gradient of `x`, computed by the kernels and by the differentiable formulas.
pub fn plain_and_recorded(x: &Tensor, loss: impl Fn(&Tensor) -> Result<Tensor>) -> Result<[Vec<f64>; 2]> {
    let x = x.detach().requiring_grad()?;
    let of = |recorded| {
        let options = BackwardOptions { create_graph: recorded, ..Default::default() };
        let gradients = grad_with(&[&loss(&x)?], &[&x], &[], options)?;
        gradients[0].as_ref().unwrap().to(DType::F64)?.to_vec::<f64>()
    };
    Ok([of(false)?, of(true)?])
}
