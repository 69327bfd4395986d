//! [`functional_call`]: a module run with other parameters; [`gradcheck_module`]: its gradients checked.

use crate::pattern::nearest;
use crate::places::walk;
use crate::{Entry, Module};
use namegrad_autograd::{Checked, GradCheckOptions, Parameter, Tensor, gradcheck_parameters_with, places};
use namegrad_core::{Error, ErrorKind, NamedTensor, Result, Shape};

/// Runs `f`, in which the parameters and buffers of `module` at these paths have these values: PyTorch's
/// `torch.func.functional_call`. For meta-learning, averages of parameters, ensembles, and second
/// derivatives.
///
/// Gradients flow to the given tensors, and not to the parameters that they replace. Without names, a value
/// gets those of the parameter. Parameters that are not given keep their values. A layer that sets a given
/// buffer sets the value of this call alone. After `f`, also after an error or a panic, the module is as
/// before.
///
/// The values hold for this thread alone: other threads that run the module at the same time use its own
/// parameters or those of their own call. An inner call replaces values of an outer one until it ends. A
/// [checkpoint](namegrad_autograd::checkpoint) runs the module a second time in the backward pass, which must
/// then be inside of `f`.
///
/// # Errors
/// The errors of `f`; [`ErrorKind::Value`] for a path that the module does not have, with similar ones, and
/// for different values for a parameter that has two paths; [`ErrorKind::Shape`] and
/// [`ErrorKind::NameMismatch`] for a value with other dims.
///
/// # Examples
/// A step of gradient descent, through which a second gradient flows:
/// ```
/// use namegrad::autograd::grad_with;
/// use namegrad::nn::functional_call;
/// use namegrad::prelude::*;
/// let layer = Linear::builder(("in", 1), ("out", 1)).bias(false).build()?;
/// let rate = Tensor::new(0.1)?.requiring_grad()?;
/// let x = Tensor::ones([("in", 1)])?;
/// let loss = layer.forward(&x)?.square()?.sum(..)?;
/// let weight = layer.weight().tensor();
/// let gradient = grad_with(&[&loss], &[&weight], &[], BackwardOptions::new().create_graph(true))?;
/// let fast = weight.sub(gradient[0].as_ref().unwrap().mul(&rate)?)?;
///
/// let after = functional_call(&layer, [("weight", fast)], || layer.forward(&x))?;
/// after.square()?.sum(..)?.backward()?;
/// assert!(rate.grad().is_some());
/// assert!(layer.weight().tensor().equal(&weight)?); // as before
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn functional_call<P: Into<String>, R>(
    module: &dyn Module,
    values: impl IntoIterator<Item = (P, Tensor)>,
    f: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let values = crate::list(values.into_iter().map(|(path, value)| (path.into(), value)));
    places::substituted(resolved(module, values)?, f)
}

/// A parameter or buffer of a module.
struct Known {
    path: String,
    id: usize,
    value: NamedTensor,
}

/// The parameters and buffers of a module. Values that are computed are zeros, because computing them may have
/// effects.
fn known(module: &dyn Module) -> Vec<Known> {
    let mut known = Vec::new();
    walk(&module, &mut |path, entry| {
        let (id, value) = match entry {
            Entry::Parameter(parameter) => (parameter.id(), parameter.tensor().into_value()),
            Entry::Computed(parameter) => {
                let Shape { sizes, names } = parameter.shape();
                let zeros = NamedTensor::zeros(()).and_then(|zero| zero.expand(sizes.as_slice()));
                let Ok(zeros) = zeros else { return };
                (parameter.id(), zeros.with_names(names))
            }
            Entry::Buffer(buffer) => (buffer.id(), buffer.value()),
            _ => return,
        };
        known.push(Known { path: path.to_string(), id, value });
    });
    known
}

/// The values with the addresses of their places.
#[track_caller]
fn resolved(module: &dyn Module, values: Vec<(String, Tensor)>) -> Result<Vec<(usize, Tensor)>> {
    const OP: &str = "functional_call";
    let (known, mut next) = (known(module), 0);
    let mut found: Vec<(&Known, Tensor)> = Vec::with_capacity(values.len());
    for (path, value) in values {
        // Most values come in the order of the module.
        let at = (0..known.len()).map(|at| (next + at) % known.len()).find(|at| known[*at].path == path);
        let Some(at) = at else {
            let similar =
                crate::joined(&nearest(&path, &mut known.iter().map(|known| &known.path[..])), ", ");
            let message = format!("the module has no parameter or buffer '{path}'; the nearest: {similar}");
            return Err(Error::new(ErrorKind::Value, OP, message));
        };
        next = at + 1;
        let (place, own) = (&known[at], &known[at].value);
        if own.sizes() != value.sizes() {
            let shapes = [own.shape(), value.shape()];
            let message = format!("'{path}' is {} in the module and {} in the call", shapes[0], shapes[1]);
            return Err(Error::new(ErrorKind::Shape, OP, message).with_operands(shapes));
        }
        own.check_names_of(OP, value.value()).map_err(|error| error.context(format_args!("'{path}': ")))?;
        if let Some((other, before)) = found.iter().find(|(other, _)| other.id == place.id)
            && before.value().data_ptr() != value.value().data_ptr()
        {
            let (other, shapes) = (&other.path, [before.shape(), value.shape()]);
            let message =
                format!("'{other}' and '{path}' are the same parameter, and are given different values");
            return Err(Error::new(ErrorKind::Value, OP, message).with_operands(shapes));
        }
        let renamed = own.has_names() && value.names() != own.names();
        found.push((place, if renamed { value.rename(Some(own.names().clone()))? } else { value }));
    }
    Ok(crate::list(found.into_iter().map(|(place, value)| (place.id, value))))
}

/// Compares the derivative of each output of `f` by every parameter of `module` that is not frozen with
/// finite differences. The error names the parameters that differ by their paths. Afterwards, the parameters
/// have their original values.
///
/// ```
/// use namegrad::nn::gradcheck_module;
/// use namegrad::prelude::*;
/// let model = Sequential::new().then(Linear::new(("in", 3), ("h", 2))?).then(Tanh);
/// model.to(DType::F64)?;
/// let x = TensorOptions::new().dtype(DType::F64).randn([("N", 4), ("in", 3)])?;
/// gradcheck_module(&model, || model.forward(&x))?;
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Those of [`gradcheck`](namegrad_autograd::gradcheck), and [`ErrorKind::Value`] if no parameter requires a
/// gradient. Switch layers such as dropout to evaluation mode first, and cast the module to `f64`.
#[track_caller]
pub fn gradcheck_module(module: &dyn Module, f: impl Fn() -> Result<Tensor>) -> Result<Checked> {
    gradcheck_module_with(module, f, GradCheckOptions::default())
}

/// [`gradcheck_module`] with options.
///
/// # Errors
/// Same as [`gradcheck_module`].
#[track_caller]
pub fn gradcheck_module_with(
    module: &dyn Module,
    f: impl Fn() -> Result<Tensor>,
    options: GradCheckOptions,
) -> Result<Checked> {
    const OP: &str = "gradcheck_module";
    let learned = |(_, parameter): &(String, Parameter)| parameter.requires_grad();
    let parameters: Vec<_> = crate::list(module.named_parameters().into_iter().filter(learned));
    if parameters.is_empty() {
        let message = "the module has no parameter that requires a gradient";
        return Err(Error::new(ErrorKind::Value, OP, message).with_repair("model.unfreeze(\"**\")?"));
    }
    gradcheck_parameters_with(f, parameters, options).map_err(|error| error.of(OP))
}
