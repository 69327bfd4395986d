//! Derivatives of functions: products with the Jacobian, the Jacobian itself, and second derivatives.
//!
//! `f` takes tensors and returns one. It is called with copies of the inputs that require gradients, so the
//! inputs themselves need not require gradients, and no `grad` changes. If recording is on and the inputs
//! require gradients, the results are recorded and can be differentiated again.

use crate::scan::Tensors;
use crate::tape::{BackwardOptions, Level, enable_grad, is_grad_enabled, remembering};
use crate::tensor::{Tensor, grad_with};
use crate::vmap::{forget_loops, looped, loops, slices_of, standing_for, take_refused};
use namegrad_core::random::Draws;
use namegrad_core::tensor::looked_behind;
use namegrad_core::{Argument, Dim, Error, ErrorKind, Name, NamedTensor, Names, OnDevice, Result, called};
use namegrad_macros::Setters;
use std::cell::RefCell;
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
    x.value().unnamed().full_like(0, x.dtype()).map(Tensor::constant)
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
    along("jvp", &f, inputs, &crate::list::<_, Vec<Option<&Tensor>>>(v.iter().copied().map(Some)))
}

/// [`jvp`] along directions, of which those that are missing are zero.
#[track_caller]
fn along(
    op: &'static str,
    f: &dyn Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[&Tensor],
    v: &[Option<&Tensor>],
) -> Result<(Tensor, Tensor)> {
    let values = inputs.iter().chain(v.iter().flatten()).map(|x| x.value());
    let _device = OnDevice::of_inputs(op, &[&crate::list::<_, Vec<_>>(values)])?;
    let level = Level::enter();
    let mut xs = Vec::with_capacity(inputs.len());
    for (x, v) in inputs.iter().zip(v) {
        check_float(op, x)?;
        xs.push(match v {
            Some(v) => level.with_tangent(x, v.unnamed().to(x.dtype())?),
            None => (*x).clone(),
        });
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
    let rows = match y.numel() {
        0 => Vec::new(),
        _ => vmap(|of_y| gradients(&y, &xs, Some(&of_y[0]), create, true), &[&directions(&y)?], 0)?,
    };
    let mut jacobians = Vec::with_capacity(xs.len());
    for (number, x) in inputs.iter().enumerate() {
        let sizes: Vec<usize> = crate::list(y.sizes().iter().chain(x.sizes()).copied());
        let jacobian = match rows.get(number) {
            Some(rows) => rows.rename(None)?.reshape(sizes)?,
            None => y.new_zeros(sizes)?,
        };
        jacobians.push(jacobian.rename(Some(primed("jacobian", &y, x)?))?);
    }
    Ok(jacobians)
}

pub use jacobian as jacrev;

/// The [`jacobian`] in forward mode: the function is called once for each input, with all directions of the
/// input at once. This is faster if the inputs have fewer elements than the result.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::functional::jacfwd;
/// let x = Tensor::new([1.0, 2.0])?.refine_names(["n"])?;
/// let j = &jacfwd(|x| x[0].square(), &[&x])?[0];
/// assert_eq!(*j.names(), ["n", "n_"]);
/// assert_eq!(j.to_vec::<f32>()?, [2.0, 0.0, 0.0, 4.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// As [`jacobian`].
#[track_caller]
pub fn jacfwd(f: impl Fn(&[Tensor]) -> Result<Tensor>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    forward_jacobians("jacfwd", &f, inputs)
}

#[track_caller]
fn forward_jacobians(
    op: &'static str,
    f: &dyn Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[&Tensor],
) -> Result<Vec<Tensor>> {
    let mut jacobians = Vec::with_capacity(inputs.len());
    for (number, x) in inputs.iter().enumerate() {
        let mut shape = None;
        let by_x = match x.numel() {
            0 => {
                let y = f(&crate::list::<_, Vec<Tensor>>(inputs.iter().map(|x| (*x).clone())))?;
                let sizes: Vec<usize> = crate::list(y.sizes().iter().chain(x.sizes()).copied());
                shape = Some(y.detach());
                y.new_zeros(sizes)?
            }
            _ => {
                let of_y = RefCell::new(None);
                let columns = vmap(
                    |v| {
                        let mut all: Vec<Option<&Tensor>> = vec![None; inputs.len()];
                        all[number] = Some(&v[0]);
                        let (y, along) = along(op, f, inputs, &all)?;
                        *of_y.borrow_mut() = Some(y.detach());
                        Ok(along.unnamed())
                    },
                    &[&directions(x)?],
                    0,
                )?;
                let y = of_y.into_inner();
                let sizes: Vec<usize> = crate::list(columns.sizes()[1..].iter().chain(x.sizes()).copied());
                shape = y.or(shape);
                columns.movedim(0, -1)?.reshape(sizes)?
            }
        };
        let names = shape.map(|y| primed(op, &y, x)).transpose()?;
        jacobians.push(by_x.rename(names)?);
    }
    Ok(jacobians)
}

/// For each element of `x`, a tensor with 1 there and 0 elsewhere, along a new first dim.
#[track_caller]
fn directions(x: &Tensor) -> Result<Tensor> {
    let _device = OnDevice::of(x.value());
    let n = x.numel();
    let sizes: Vec<usize> = crate::list([n].into_iter().chain(x.sizes().iter().copied()));
    Ok(Tensor::constant(NamedTensor::eye(n, n, x.dtype())?.reshape(sizes)?))
}

/// The names of `y`, then those of `x` with a `_`.
#[track_caller]
fn primed(op: &'static str, y: &Tensor, x: &Tensor) -> Result<Names> {
    let mut names: Vec<Option<Name>> = crate::list((0..y.ndim()).map(|dim| y.name(dim)));
    for dim in 0..x.ndim() {
        names.push(x.name(dim).map(|name| Name::new(&format!("{name}_"))).transpose()?);
    }
    Names::new(op, names)
}

/// The second derivatives of `f`, whose result must have one element, by each pair of elements of `x`, in
/// forward mode over reverse mode. The result has the dims of `x` twice, the second time with a `_`
/// appended to their names.
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
        let of = |x: &[Tensor]| one_element("hessian", f(&x[0])?).map_err(|error| error.at(caller));
        Ok(vjp(of, &[&xs[0]], None)?.1.remove(0).with_names_of(&xs[0]))
    };
    Ok(forward_jacobians("hessian", &gradient, &[x])?.remove(0))
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
    let _device = OnDevice::of_inputs("hvp", &[&[x.value(), v.value()]])?;
    let level = Level::enter();
    let dual = level.with_tangent(x, v.unnamed().to(x.dtype())?);
    let (y, mut gradients) = vjp(|x| one_element("hvp", f(&x[0])?), &[&dual], None)?;
    let product = match level.tangent_of(&gradients.remove(0))? {
        Some(product) => product,
        None => zeros(x)?,
    };
    Ok((level.without_tangent(y), product.with_names_of(x)))
}

/// What random numbers in the function of [`vmap`] are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Randomness {
    /// An error.
    #[default]
    Error,
    /// Different in each slice: the function is called once for each slice if it draws numbers.
    Different,
    /// The same in all slices.
    Same,
}

/// The options of [`vmap_with`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Setters)]
pub struct VmapOptions {
    /// What random numbers are.
    pub randomness: Randomness,
    /// The numbers of the inputs that are the same for all slices, PyTorch's `in_dims=None`. The function sees
    /// them whole.
    pub shared: Vec<usize>,
    /// The position of the dim in the results, which may be negative; the first by default.
    pub out_dim: isize,
}

/// Applies `f` to all slices of `inputs` along `dim`, which `f` does not see: for it, the tensors have neither
/// that dim nor its name. The results have the dim as their first one, with the name that it has in the inputs.
///
/// `f` is called once, with tensors that stand for all slices, and ops run on all slices at once. An op without
/// a rule for that runs once for each slice; [`looped_in_vmap`] tells which. If `f` reads the numbers of a
/// value outside of the ops of this library, as your own [`Op`](crate::Op) does, or fails, `f` itself is
/// called once for each slice.
///
/// Calls can be nested, with each other and with derivatives: `vmap` of `grad` gives gradients per sample,
/// of the inputs and of tensors from outside, such as parameters.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::{functional::vmap, grad};
/// let x = Tensor::ones([("batch", 3), ("n", 4)])?;
/// let y = vmap(|x| x[0].dot(&x[0]), &[&x], "batch")?;
/// assert_eq!(*y.names(), ["batch"]);
/// assert_eq!(y.to_vec::<f32>()?, [4.0; 3]);
///
/// // The gradient of the weight for each sample.
/// let layer = Linear::new(("n", 4), ("class", 2))?;
/// let target = Tensor::new([0, 1, 1])?.refine_names(["batch"])?;
/// let of_weight = vmap(
///     |sample| {
///         let loss = F::cross_entropy(&layer.forward(&sample[0])?, &sample[1], "class")?;
///         Ok(grad(&[&loss], &[&layer.weight().tensor()])?.remove(0))
///     },
///     &[&x, &target],
///     "batch",
/// )?;
/// assert_eq!(of_weight.sizes(), [3, 2, 4]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// The errors of `f`; [`ErrorKind::NameNotFound`] if an input does not have the dim, [`ErrorKind::Shape`] if
/// the sizes of the dim differ or are 0. [`ErrorKind::Unsupported`] if `f` reads numbers, as an `if` on
/// [`item`](Tensor::item) does, or writes all slices into a tensor from outside. [`ErrorKind::Value`] if
/// `f` draws random numbers: [`VmapOptions::randomness`] says what they are to be.
#[track_caller]
pub fn vmap<R: Tensors>(
    f: impl Fn(&[Tensor]) -> Result<R>,
    inputs: &[&Tensor],
    dim: impl Into<Dim>,
) -> Result<R> {
    vmap_with(f, inputs, dim, VmapOptions::default())
}

/// [`vmap`] with options: inputs that all slices share, and what random numbers are.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::functional::{Randomness, VmapOptions, vmap_with};
/// let x = Tensor::ones([("batch", 3), ("n", 4)])?;
/// let noise = |randomness| {
///     let noisy = |x: &[Tensor]| x[0].add(&x[0].randn_like()?);
///     vmap_with(noisy, &[&x], "batch", VmapOptions::new().randomness(randomness))
/// };
/// assert!(noise(Randomness::Error).is_err());
/// let same = noise(Randomness::Same)?;
/// assert!(same.select("batch", 0)?.equal(&same.select("batch", 1)?)?);
///
/// let w = Tensor::ones([("n", 4)])?;
/// let products = vmap_with(|x| x[0].dot(&x[1]), &[&x, &w], "batch", VmapOptions::new().shared(vec![1]))?;
/// assert_eq!(products.to_vec::<f32>()?, [4.0; 3]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// As [`vmap`]; [`ErrorKind::Value`] if all inputs are shared.
#[track_caller]
pub fn vmap_with<R: Tensors>(
    f: impl Fn(&[Tensor]) -> Result<R>,
    inputs: &[&Tensor],
    dim: impl Into<Dim>,
    options: VmapOptions,
) -> Result<R> {
    let form = RefCell::new(None);
    let listed = |inputs: &[Tensor]| {
        let made = f(inputs)?;
        let mut list = Vec::new();
        made.append_to(&mut list);
        *form.borrow_mut() = Some(made);
        Ok(list)
    };
    let made = Mapping::new(inputs, dim.into(), &options)?.run(&listed)?;
    let form = form.into_inner().expect("the function was called at least once");
    Ok(form.with_next(&mut made.into_iter()))
}

/// The ops that ran once for each slice in the last call of [`vmap`] on this thread; `f` is the function
/// itself.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::functional::{looped_in_vmap, vmap};
/// let x = Tensor::rand([("batch", 3), ("n", 4)])?;
/// vmap(|x| x[0].softmax("n"), &[&x], "batch")?;
/// assert!(looped_in_vmap().is_empty());
/// # Ok::<(), Error>(())
/// ```
pub fn looped_in_vmap() -> Vec<&'static str> {
    looped()
}

/// A call of [`vmap`].
struct Mapping<'a> {
    inputs: &'a [&'a Tensor],
    /// The position of the dim in each input that is not shared.
    at: Vec<Option<usize>>,
    name: Option<Name>,
    count: usize,
    options: &'a VmapOptions,
}

/// The name of the function in errors.
const VMAP: &str = "vmap";

impl<'a> Mapping<'a> {
    #[track_caller]
    fn new(inputs: &'a [&'a Tensor], dim: Dim, options: &'a VmapOptions) -> Result<Mapping<'a>> {
        let mut at = Vec::with_capacity(inputs.len());
        let (mut name, mut size) = (None, None);
        for (number, x) in inputs.iter().enumerate() {
            if options.shared.contains(&number) {
                at.push(None);
                continue;
            }
            let place = dim.look_up(VMAP, &[x.value()]).map_err(|error| {
                let missing = inputs.len() > 1 && error.kind() == ErrorKind::NameNotFound;
                let repair = format!(
                    "VmapOptions::new().shared(vec![{number}]), if input {number} is the same for all slices"
                );
                if missing { error.with_repair(repair) } else { error }
            })?;
            let own = x.size(place as i64)?;
            if own == 0 || size.is_some_and(|size| size != own) {
                let message = format!(
                    "the inputs must have the same size along {}, and not 0",
                    called(x.value(), place)
                );
                return Err(Error::new(ErrorKind::Shape, VMAP, message)
                    .with_operands(inputs.iter().map(|x| x.shape())));
            }
            size = Some(own);
            name = name.or(x.name(place));
            at.push(Some(place));
        }
        let Some(count) = size else {
            return Err(Error::new(ErrorKind::Value, VMAP, "there are no inputs to take slices of"));
        };
        Ok(Mapping { inputs, at, name, count, options })
    }

    #[track_caller]
    fn run(&self, f: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>) -> Result<Vec<Tensor>> {
        forget_loops();
        let level = Level::enter();
        let mut slices = Vec::with_capacity(self.inputs.len());
        for (x, at) in self.inputs.iter().zip(&self.at) {
            slices.push(match at {
                None => (*x).clone(),
                Some(at) => {
                    let mut shape = x.shape();
                    shape.sizes.remove(*at);
                    shape.names = others(x, *at);
                    Tensor::constant(standing_for(x.movedim(*at as i64, -1)?, level.id, shape)?)
                }
            });
        }
        let (draws, (made, is_looked)) = Draws::record(|| looked_behind(|| f(&slices)));
        drop(slices);
        if let Some(error) = take_refused() {
            return Err(error);
        }
        if !draws.is_empty() && self.options.randomness == Randomness::Error {
            return Err(drawn());
        }
        let is_random = !draws.is_empty() && self.options.randomness == Randomness::Different;
        let mut results = Vec::new();
        match made {
            Ok(made) if !is_looked && !is_random => {
                for y in made {
                    results.push(match slices_of(&y, level.id) {
                        Some(slices) => (slices.movedim(-1, 0)?, y),
                        None => (y.unnamed().unsqueeze(0)?.expand([&[self.count], y.sizes()].concat())?, y),
                    });
                }
            }
            _ => {
                drop(level);
                return self.by_loop(f);
            }
        }
        drop(level);
        let mut all = Vec::with_capacity(results.len());
        for (y, of_slice) in results {
            all.push(self.placed(y, &of_slice)?);
        }
        Ok(all)
    }

    /// A result with the dim first, with its names and at its place.
    #[track_caller]
    fn placed(&self, y: Tensor, of_slice: &Tensor) -> Result<Tensor> {
        let mut names = vec![self.name];
        names.extend((0..of_slice.ndim()).map(|dim| of_slice.name(dim)));
        let y = y.named(Names::new(VMAP, names)?);
        if self.options.out_dim == 0 { Ok(y) } else { y.movedim(0, self.options.out_dim as i64) }
    }

    /// The function is called once for each slice.
    #[track_caller]
    fn by_loop(&self, f: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>) -> Result<Vec<Tensor>> {
        loops("f");
        let mut columns: Vec<Vec<Tensor>> = Vec::new();
        let mut first = Draws::default();
        for number in 0..self.count {
            let mut slices = Vec::with_capacity(self.inputs.len());
            for (x, at) in self.inputs.iter().zip(&self.at) {
                slices.push(match at {
                    None => (*x).clone(),
                    Some(at) => x.select(*at as i64, number)?,
                });
            }
            let replayed = number > 0 && self.options.randomness == Randomness::Same;
            let (draws, made) =
                Draws::record(|| if replayed { first.replay(|| f(&slices)) } else { f(&slices) });
            let made = made?;
            if !draws.is_empty() && self.options.randomness == Randomness::Error {
                return Err(drawn());
            }
            if number == 0 {
                first = draws;
            }
            columns.resize(made.len(), Vec::with_capacity(self.count));
            for (column, y) in columns.iter_mut().zip(made) {
                column.push(y);
            }
        }
        let mut all = Vec::with_capacity(columns.len());
        for column in &columns {
            let y = Tensor::stack(column, 0)?;
            all.push(self.placed(y, &column[0])?);
        }
        Ok(all)
    }
}

/// The names of all dims but one.
fn others(x: &Tensor, at: usize) -> Names {
    let mut names: Vec<Option<Name>> = crate::list((0..x.ndim()).map(|dim| x.name(dim)));
    names.remove(at);
    Names::new(VMAP, names).unwrap_or_default()
}

#[cold]
#[track_caller]
fn drawn() -> Error {
    let message = "vmap: called random operation while in randomness error mode: should all slices have the same numbers, or different ones?";
    Error::new(ErrorKind::Value, VMAP, message)
        .with_repair("vmap_with(f, &[&x], \"batch\", VmapOptions::new().randomness(Randomness::Different))?")
}
