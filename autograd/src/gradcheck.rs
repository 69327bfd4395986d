//! Checks derivatives against differences.

use crate::tape::{BackwardOptions, enable_grad, no_grad};
use crate::tensor::{Tensor, grad};
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result};

/// How a derivative is checked. The defaults are PyTorch's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradCheck {
    /// The step of the central difference.
    pub eps: f64,
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
}

impl Default for GradCheck {
    fn default() -> GradCheck {
        GradCheck { eps: 1e-6, atol: 1e-5, rtol: 1e-3 }
    }
}

/// That a derivative agrees with differences, and what is to be said of the comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Why the comparison may prove little: an input is not of `f64`.
    pub warning: Option<String>,
}

/// Compares the derivative of each output of `f` by each of `inputs` with `(f(x + eps) - f(x - eps)) / (2
/// eps)`, element by element.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::{gradcheck, GradCheck};
/// let x = TensorOptions::new().dtype(DType::F64).tensor([0.5, -1.0, 2.0])?;
/// gradcheck(|x| x[0].sigmoid(), &[x], GradCheck::default())?;
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Autograd`] with the first element that differs and both numbers; [`ErrorKind::DType`] unless
/// the inputs are floats; what `f` gives. Inputs narrower than `f64`, in which alone differences are exact
/// enough, most likely fail; if they do not, [`Checked::warning`] says so.
#[track_caller]
pub fn gradcheck(
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[Tensor],
    options: GradCheck,
) -> Result<Checked> {
    check("gradcheck", &f, inputs, options)
}

/// [`gradcheck`] of the gradient of `f`: checks second derivatives.
///
/// # Errors
/// Those of [`gradcheck`].
#[track_caller]
pub fn gradgradcheck(
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[Tensor],
    options: GradCheck,
) -> Result<Checked> {
    // The gradient of a weighted sum of the outputs, as a function of the inputs; the weights differ, so that
    // no error cancels.
    let mut checked = Checked::default();
    for which in 0..inputs.len() {
        let gradient = |xs: &[Tensor]| {
            enable_grad(|| {
                let y = f(xs)?;
                let loss = y.mul(&weights(&y)?)?.sum(..)?;
                let options =
                    BackwardOptions { create_graph: true, allow_unused: true, ..Default::default() };
                if !loss.requires_grad() {
                    return xs[which].zeros_like();
                }
                let found = grad(&[&loss], &[&xs[which]], &[], options)?;
                found[0].clone().map_or_else(|| xs[which].zeros_like(), Ok)
            })
        };
        checked = check("gradgradcheck", &gradient, inputs, options)?;
    }
    Ok(checked)
}

/// Fixed numbers between 0.5 and 1.5, different for each element.
fn weights(y: &Tensor) -> Result<Tensor> {
    let numbers: Vec<f64> = (0..y.numel()).map(|i| 1.0 + 0.5 * (1.0 + i as f64).sin()).collect();
    Ok(Tensor::constant(NamedTensor::from_slice(&numbers, y.sizes())?))
}

#[track_caller]
fn check(
    op: &'static str,
    f: &dyn Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[Tensor],
    GradCheck { eps, atol, rtol }: GradCheck,
) -> Result<Checked> {
    if let Some(x) = inputs.iter().find(|x| !x.dtype().is_floating_point()) {
        let message = format!("expected inputs of floats, got {}", x.dtype());
        return Err(Error::new(ErrorKind::DType, op, message)
            .with_operands([x.shape()])
            .with_repair("x.to(DType::F64)?"));
    }
    let narrow = inputs.iter().find(|x| x.dtype() != DType::F64);
    let warning = narrow
        .map(|x| format!("an input is of {}: differences in less than float64 prove little", x.dtype()));
    let mut leaves = Vec::with_capacity(inputs.len());
    for x in inputs {
        leaves.push(Tensor::constant(x.value().deep_clone()?).requiring_grad()?);
    }
    let y = enable_grad(|| f(&leaves))?;
    let outputs = y.numel();
    for (number, x) in leaves.iter().enumerate() {
        // Row `o` of the derivative is the gradient of output `o` alone.
        let mut rows = Vec::with_capacity(outputs);
        for o in 0..outputs {
            if !y.requires_grad() {
                rows.push(vec![0.0; x.numel()]);
                continue;
            }
            let mut one = vec![0.0; outputs];
            one[o] = 1.0;
            let one = Tensor::constant(NamedTensor::from_slice(&one, y.sizes())?.to(y.dtype())?);
            let options = BackwardOptions { retain_graph: true, allow_unused: true, ..Default::default() };
            let found = grad(&[&y], &[x], &[Some(&one)], options)?.remove(0);
            rows.push(found.map_or_else(|| Ok(vec![0.0; x.numel()]), |g| g.to_vec::<f64>())?);
        }
        for i in 0..x.numel() {
            let at = |step: f64| -> Result<Vec<f64>> {
                let mut moved = leaves.clone();
                let mut values = x.to_vec::<f64>()?;
                values[i] += step;
                moved[number] = Tensor::constant(NamedTensor::from_slice(&values, x.shape())?.to(x.dtype())?);
                let value = if op == "gradgradcheck" { f(&moved)? } else { no_grad(|| f(&moved))? };
                value.to_vec::<f64>()
            };
            let (above, below) = (at(eps)?, at(-eps)?);
            for o in 0..outputs {
                let want = (above[o] - below[o]) / (2.0 * eps);
                let got = rows[o][i];
                let near = (got - want).abs() <= atol + rtol * want.abs();
                if !near {
                    let message = format!(
                        "the derivative of output {o} by element {i} of input {number} is {got} on the tape and {want} by difference"
                    );
                    let error = Error::new(ErrorKind::Autograd, op, message).with_operands([x.shape()]);
                    return Err(match &warning {
                        Some(warning) => error.with_repair(format!("x.to(DType::F64)?, for {warning}")),
                        None => error,
                    });
                }
            }
        }
    }
    Ok(Checked { warning })
}
