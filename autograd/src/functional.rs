//! Derivatives of functions: products with the Jacobian, the Jacobian itself, and second derivatives.
//!
//! `f` takes tensors and returns one. It is called with copies of the inputs that require gradients, so the
//! inputs themselves need not require gradients, and no `grad` changes. If recording is on and the inputs
//! require gradients, the results are recorded and can be differentiated again.

use crate::chain::*;
use crate::tape::{BackwardOptions, Level, enable_grad, is_grad_enabled, remembering};
use crate::tensor::{Tensor, grad_with};
use namegrad_core::options::StackOptions;
use namegrad_core::{Error, ErrorKind, Name, NamedTensor, Names, Result};
use std::panic::Location;

/// The inputs as `f` gets them: on the tape, and connected to the original inputs if these require gradients
/// and recording is on.
#[track_caller]
fn tracked(op: &'static str, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    let mut tracked = Vec::with_capacity(inputs.len());
    for x in inputs {
        tracked.push(match is_grad_enabled() && x.requires_grad() {
            true => x.mul(1)?, // a new record that leads to the input
            false => {
                check_float(op, x)?;
                x.leaf()
            }
        });
    }
    Ok(tracked)
}

/// Checks that an input has derivatives.
#[track_caller]
fn check_float(op: &'static str, x: &Tensor) -> Result<()> {
    x.detach().requires_grad_(true).map(drop).map_err(|error| error.of(op))
}

/// The gradient of each input, 0 if nothing depends on it; recorded if `create` is true.
#[track_caller]
fn gradients(
    y: &Tensor,
    xs: &[Tensor],
    of_y: Option<&Tensor>,
    create: bool,
    retain: bool,
) -> Result<Vec<Tensor>> {
    if !y.requires_grad() {
        let mut all = Vec::with_capacity(xs.len());
        for x in xs {
            all.push(zeros(x)?);
        }
        return Ok(all);
    }
    let inputs: Vec<&Tensor> = crate::list(xs.iter());
    let options = BackwardOptions {
        create_graph: create,
        retain_graph: retain,
        allow_unused: true,
        ..BackwardOptions::default()
    };
    let found = grad_with(&[y], &inputs, &[of_y], options)?;
    let mut all = Vec::with_capacity(xs.len());
    for (gradient, x) in found.into_iter().zip(xs) {
        all.push(match gradient {
            Some(gradient) => gradient,
            None => zeros(x)?,
        });
    }
    Ok(all)
}

#[track_caller]
fn zeros(x: &Tensor) -> Result<Tensor> {
    Ok(Tensor::constant(NamedTensor::zeros(x.sizes())?.to(x.dtype())?))
}

/// Takes a result off the tape unless it is to be recorded.
fn finished(x: Tensor, recorded: bool) -> Tensor {
    if recorded { x } else { x.off_tape() }
}

/// Whether results are to be recorded.
fn recorded(inputs: &[&Tensor]) -> bool {
    is_grad_enabled() && inputs.iter().any(|x| x.requires_grad())
}

/// `f(inputs)`, and the gradient `v · ∂f/∂x` for each input: the vector-Jacobian product. Without `v`, the
/// result of `f` must have one element.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::functional::vjp;
/// let x = Tensor::new([1.0, 2.0])?;
/// let (y, gradients) = vjp(|x| x[0].square(), &[&x], Some(&Tensor::new([1.0, 10.0])?))?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 4.0]);
/// assert_eq!(gradients[0].to_vec::<f32>()?, [2.0, 40.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// The errors of `f`; [`ErrorKind::Autograd`] if `v` does not have the sizes of the result.
#[track_caller]
pub fn vjp(
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[&Tensor],
    v: Option<&Tensor>,
) -> Result<(Tensor, Vec<Tensor>)> {
    let create = recorded(inputs);
    let xs = tracked("vjp", inputs)?;
    let y = enable_grad(|| f(&xs))?;
    if let Some(v) = v {
        check_names("vjp", ["y", "v"], &y, v)?;
    }
    if let Some(v) = v.filter(|v| v.sizes() != y.sizes()) {
        let message = format!("the direction has sizes {:?}, and the output {:?}", v.sizes(), y.sizes());
        return Err(Error::new(ErrorKind::Autograd, "vjp", message).with_operands([y.shape(), v.shape()]));
    }
    let gradients = gradients(&y, &xs, v, create, create)?;
    Ok((finished(y, create), gradients))
}

/// `f(inputs)`, and its derivative `∂f/∂x · v` in the direction `v`, which has a tensor for each input:
/// the Jacobian-vector product.
///
/// `f` runs once, in forward mode: each op also gives the derivative of its result from those of its inputs.
/// Nothing is kept for a backward pass, so memory does not grow with the number of ops. Calls can be nested,
/// also with [`vjp`] and [`grad`](crate::grad), in either order.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::functional::jvp;
/// let x = Tensor::new([1.0, 2.0])?;
/// let (_, along) = jvp(|x| x[0].square()?.sum(..), &[&x], &[&Tensor::new([1.0, 10.0])?])?;
/// assert_eq!(along.item::<f64>()?, 42.0);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// The errors of `f`; [`ErrorKind::Autograd`] if there is not one direction for each input, or a direction
/// does not have the sizes of its input.
#[track_caller]
pub fn jvp(
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[&Tensor],
    v: &[&Tensor],
) -> Result<(Tensor, Tensor)> {
    check_directions("jvp", inputs, v)?;
    let level = Level::enter();
    let mut xs = Vec::with_capacity(inputs.len());
    for (x, v) in inputs.iter().zip(v) {
        check_float("jvp", x)?;
        xs.push(level.with_tangent(x, v.unnamed().to(x.dtype())?));
    }
    let y = remembering(|| f(&xs))?;
    let along = level.tangent_of(&y)?;
    let y = level.without_tangent(y);
    let along = match along {
        Some(along) => along,
        None => zeros(&y)?,
    };
    let along = along.with_names_of(&y);
    Ok((y, along))
}

#[track_caller]
fn check_directions(op: &'static str, inputs: &[&Tensor], v: &[&Tensor]) -> Result<()> {
    if inputs.len() != v.len() {
        let message = format!("got {} inputs and {} directions", inputs.len(), v.len());
        return Err(Error::new(ErrorKind::Autograd, op, message));
    }
    for (x, v) in inputs.iter().zip(v) {
        check_names(op, ["x", "v"], x, v)?;
        if x.sizes() != v.sizes() {
            return Err(Error::new(ErrorKind::Autograd, op, "a direction has other sizes than its input")
                .with_operands([x.shape(), v.shape()]));
        }
    }
    Ok(())
}

/// Checks the names of a direction, if it has any: they are those of the tensor that it belongs to.
#[track_caller]
fn check_names(op: &'static str, what: [&'static str; 2], x: &Tensor, v: &Tensor) -> Result<()> {
    if v.has_names() { x.value().check_alike(op, what, v.value()) } else { Ok(()) }
}

/// For each input, the derivative of each element of `f(inputs)` by each element of the input. The result has
/// the dims of the output, followed by the dims of the input with a `_` appended to their names, like the
/// prime in Chiang, Rush, Barak, *Named Tensor Notation* (2021), section 5. For example, the derivative of
/// `y[n]` by `x[n]` has the dims `n` and `n_`.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::functional::jacobian;
/// let x = Tensor::new([1.0, 2.0])?.refine_names(["n"])?;
/// let j = &jacobian(|x| x[0].square(), &[&x])?[0];
/// assert_eq!(*j.names(), ["n", "n_"]);
/// assert_eq!(j.to_vec::<f32>()?, [2.0, 0.0, 0.0, 4.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// The errors of `f`; [`ErrorKind::DuplicateName`] if a name of the output is a name of an input with a `_`.
#[track_caller]
pub fn jacobian(f: impl Fn(&[Tensor]) -> Result<Tensor>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    let create = recorded(inputs);
    let xs = tracked("jacobian", inputs)?;
    let y = enable_grad(|| f(&xs))?;
    let mut rows: Vec<Vec<Tensor>> = vec![Vec::with_capacity(y.numel()); xs.len()];
    for o in 0..y.numel() {
        let one = one_hot(&y, o)?;
        for (rows, row) in rows.iter_mut().zip(gradients(&y, &xs, Some(&one), create, true)?) {
            rows.push(row);
        }
    }
    let mut jacobians = Vec::with_capacity(xs.len());
    for (rows, x) in rows.into_iter().zip(inputs) {
        let sizes: Vec<usize> = crate::list(y.sizes().iter().chain(x.sizes()).copied());
        let rows: Vec<&Tensor> = crate::list(rows.iter());
        let jacobian = match rows.is_empty() {
            true => Tensor::constant(NamedTensor::zeros(sizes)?.to(y.dtype())?),
            false => Tensor::stack(&rows, 0).reshape(sizes)?,
        };
        jacobians.push(jacobian.rename(Some(primed(&y, x)?))?);
    }
    Ok(jacobians)
}

/// A tensor like `y` with 1 at element `o` and 0 elsewhere.
#[track_caller]
fn one_hot(y: &Tensor, o: usize) -> Result<Tensor> {
    let mut one = vec![0.0; y.numel()];
    one[o] = 1.0;
    Ok(Tensor::constant(NamedTensor::from_slice(&one, y.sizes())?.to(y.dtype())?))
}

/// The names of `y`, then those of `x` with a `_`.
#[track_caller]
fn primed(y: &Tensor, x: &Tensor) -> Result<Names> {
    let mut names: Vec<Option<Name>> = crate::list((0..y.ndim()).map(|dim| y.name(dim)));
    for dim in 0..x.ndim() {
        names.push(x.name(dim).map(|name| Name::new(&format!("{name}_"))).transpose()?);
    }
    Names::new("jacobian", names)
}

/// The second derivatives of `f`, whose result must have one element, by each pair of elements of `x`. The
/// result has the dims of `x` twice, the second time with a `_` appended to their names.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::functional::hessian;
/// let x = Tensor::new([1.0, 2.0])?.refine_names(["n"])?;
/// let h = hessian(|x| x.square()?.mul(x)?.sum(..), &x)?; // Σ x³
/// assert_eq!(*h.names(), ["n", "n_"]);
/// assert_eq!(h.to_vec::<f32>()?, [6.0, 0.0, 0.0, 12.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// The errors of `f`; [`ErrorKind::Autograd`] if its result does not have exactly one element.
#[track_caller]
pub fn hessian(f: impl Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    let caller = Location::caller();
    let gradient = |xs: &[Tensor]| {
        let x = &xs[0];
        let y = one_element("hessian", f(x)?).map_err(|error| error.at(caller))?;
        let mut found = gradients(&y, std::slice::from_ref(x), None, true, true)?;
        Ok(found.remove(0).with_names_of(x))
    };
    Ok(jacobian(gradient, &[x])?.remove(0))
}

#[track_caller]
fn one_element(op: &'static str, y: Tensor) -> Result<Tensor> {
    if y.numel() != 1 {
        return Err(Error::new(ErrorKind::Autograd, op, "the function must give one element")
            .with_operands([y.shape()])
            .with_repair("y.sum(..)? or y.mean(..)? as its result"));
    }
    Ok(y)
}

/// `f(x)`, which must have one element, and the product of its [`hessian`] with `v`: the derivative along `v`
/// of the gradient, at the cost of a few gradients.
///
/// # Errors
/// The errors of [`hessian`]; [`ErrorKind::Autograd`] if `v` does not have the sizes of `x`.
#[track_caller]
pub fn hvp(f: impl Fn(&Tensor) -> Result<Tensor>, x: &Tensor, v: &Tensor) -> Result<(Tensor, Tensor)> {
    check_directions("hvp", &[x], &[v])?;
    check_float("hvp", x)?;
    let level = Level::enter();
    let dual = level.with_tangent(x, v.unnamed().to(x.dtype())?);
    let (y, mut gradients) = vjp(|x| one_element("hvp", f(&x[0])?), &[&dual], None)?;
    let product = match level.tangent_of(&gradients.remove(0))? {
        Some(product) => product,
        None => zeros(x)?,
    };
    Ok((level.without_tangent(y), product.with_names_of(x)))
}

/// Applies `f` to each slice of `inputs` along `dim`, which `f` does not see. The results are stacked along a
/// first dim with the same name.
///
/// This calls `f` once per slice. If `f` consists of elementwise ops, reductions over named dims and
/// products, you do not need `vmap`: these ops also work with extra dims.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::functional::vmap;
/// let x = Tensor::ones([("batch", 3), ("n", 4)])?;
/// let y = vmap(|x| x[0].dot(&x[0]), &[&x], "batch")?;
/// assert_eq!(*y.names(), ["batch"]);
/// assert_eq!(y.to_vec::<f32>()?, [4.0; 3]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// The errors of `f`; [`ErrorKind::NameNotFound`] if an input does not have the dim, [`ErrorKind::Shape`] if
/// the sizes of the dim differ or are 0.
#[track_caller]
pub fn vmap(f: impl Fn(&[Tensor]) -> Result<Tensor>, inputs: &[&Tensor], dim: &str) -> Result<Tensor> {
    const OP: &str = "vmap";
    let Some(first) = inputs.first() else {
        return Err(Error::new(ErrorKind::Value, OP, "there are no inputs to take slices of"));
    };
    let count = first.size(dim).map_err(|error| error.of(OP))?;
    for x in inputs {
        if x.size(dim).map_err(|error| error.of(OP))? != count || count == 0 {
            let message = format!("the inputs must have the same size along '{dim}', and not 0");
            return Err(
                Error::new(ErrorKind::Shape, "vmap", message).with_operands(inputs.iter().map(|x| x.shape()))
            );
        }
    }
    let mut results = Vec::with_capacity(count);
    for at in 0..count {
        let mut slices = Vec::with_capacity(inputs.len());
        for x in inputs {
            slices.push(x.select(dim, at)?);
        }
        results.push(f(&slices)?);
    }
    Tensor::stack_with(&results, 0, StackOptions::new().name(dim))
}
