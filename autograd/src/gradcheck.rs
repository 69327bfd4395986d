//! Checking derivatives against finite differences.

use crate::parameter::Parameter;
use crate::tape::{BackwardOptions, enable_grad, no_grad};
use crate::tensor::{Tensor, grad_with};
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result, Shape};
use namegrad_macros::Setters;
use std::collections::HashSet;
use std::panic::Location;

/// The options of [`gradcheck_with`], [`gradgradcheck_with`] and [`gradcheck_parameters_with`]. The
/// tolerances are tighter than PyTorch's, which accept an error of 0.1 %.
///
/// ```
/// use namegrad::autograd::GradCheckOptions;
/// let options = GradCheckOptions::new().eps(1e-5);
/// assert_eq!(options, GradCheckOptions { eps: 1e-5, ..GradCheckOptions::default() });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Setters)]
pub struct GradCheckOptions {
    /// The step of the central difference.
    ///
    /// Default: `1e-6`.
    pub eps: f64,
    /// Absolute tolerance.
    ///
    /// Default: `1e-6`.
    pub atol: f64,
    /// Relative tolerance.
    ///
    /// Default: `1e-5`.
    pub rtol: f64,
}

impl Default for GradCheckOptions {
    fn default() -> GradCheckOptions {
        GradCheckOptions { eps: 1e-6, atol: 1e-6, rtol: 1e-5 }
    }
}

/// The result of a successful check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The reason why the check may prove little: an input is not `f64`.
    pub warning: Option<String>,
}

/// Compares the derivative of each output of `f` by each of `inputs` with `(f(x + eps) - f(x - eps)) / (2
/// eps)`, element by element.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::gradcheck;
/// let x = TensorOptions::new().dtype(DType::F64).tensor([0.5, -1.0, 2.0])?;
/// gradcheck(|x| x[0].sigmoid(), &[x])?;
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Autograd`] if elements differ; the message has their number for each input and the worst of
/// them, with its position and both values. Also if the output depends on no input, or if two calls of `f`
/// give different outputs. [`ErrorKind::Value`] if there are no inputs, [`ErrorKind::DType`] unless they are
/// floats; the errors of `f`. Use `f64` inputs: in narrower dtypes, differences are so inexact that the check
/// most likely fails. If it passes anyway, [`Checked::warning`] is set.
#[track_caller]
pub fn gradcheck(f: impl Fn(&[Tensor]) -> Result<Tensor>, inputs: &[Tensor]) -> Result<Checked> {
    gradcheck_with(f, inputs, GradCheckOptions::default())
}

/// [`gradcheck`] with options.
///
/// # Errors
/// Same as [`gradcheck`].
#[track_caller]
pub fn gradcheck_with(
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[Tensor],
    options: GradCheckOptions,
) -> Result<Checked> {
    let inputs = fresh_leaves(inputs)?;
    Check { op: "gradcheck", f: &f, inputs: &inputs, names: &[], second: false }.run(options)
}

/// [`gradcheck`] for the gradient of `f`, which checks second derivatives.
///
/// # Errors
/// Same as [`gradcheck`].
#[track_caller]
pub fn gradgradcheck(f: impl Fn(&[Tensor]) -> Result<Tensor>, inputs: &[Tensor]) -> Result<Checked> {
    gradgradcheck_with(f, inputs, GradCheckOptions::default())
}

/// [`gradgradcheck`] with options.
///
/// # Errors
/// Same as [`gradcheck`].
#[track_caller]
pub fn gradgradcheck_with(
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[Tensor],
    options: GradCheckOptions,
) -> Result<Checked> {
    let inputs = fresh_leaves(inputs)?;
    Check { op: "gradgradcheck", f: &f, inputs: &inputs, names: &[], second: true }.run_second(options)
}

/// [`gradcheck`] for a function of parameters: compares the derivative of each output of `f` by each
/// parameter. Errors have the path of the parameter. Afterwards, the parameters have their original values.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::gradcheck_parameters;
/// let layer = Linear::new(("in", 3), ("out", 2))?;
/// layer.to(DType::F64)?;
/// let x = TensorOptions::new().dtype(DType::F64).randn([("N", 4), ("in", 3)])?;
/// gradcheck_parameters(|| layer.forward(&x)?.tanh(), layer.named_parameters())?;
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// The errors of [`gradcheck`]; [`ErrorKind::Autograd`] if a parameter is frozen.
#[track_caller]
pub fn gradcheck_parameters(
    f: impl Fn() -> Result<Tensor>,
    parameters: impl IntoIterator<Item = (String, Parameter)>,
) -> Result<Checked> {
    gradcheck_parameters_with(f, parameters, GradCheckOptions::default())
}

/// [`gradcheck_parameters`] with options.
///
/// # Errors
/// Same as [`gradcheck_parameters`].
#[track_caller]
pub fn gradcheck_parameters_with(
    f: impl Fn() -> Result<Tensor>,
    parameters: impl IntoIterator<Item = (String, Parameter)>,
    options: GradCheckOptions,
) -> Result<Checked> {
    let mut seen = HashSet::new();
    // A tied parameter has several paths, and is checked once.
    let once = parameters.into_iter().filter(|(_, parameter)| seen.insert(parameter.id()));
    let (names, parameters): (Vec<String>, Vec<Parameter>) = once.unzip();
    check_parameters(&f, &names, Restored::new(parameters), options)
}

#[track_caller]
fn check_parameters(
    f: &dyn Fn() -> Result<Tensor>,
    names: &[String],
    parameters: Restored,
    options: GradCheckOptions,
) -> Result<Checked> {
    const OP: &str = "gradcheck_parameters";
    let inputs: Vec<Tensor> = crate::list(parameters.0.iter().map(|(parameter, _)| parameter.tensor()));
    if let Some(frozen) = inputs.iter().position(|x| !x.requires_grad()) {
        let message = format!("parameter '{}' is frozen", names[frozen]);
        return Err(Error::new(ErrorKind::Autograd, OP, message)
            .with_operands([inputs[frozen].shape()])
            .with_repair("parameter.set_requires_grad(true)?"));
    }
    let of = |values: &[Tensor]| {
        for ((parameter, _), value) in parameters.0.iter().zip(values) {
            parameter.set(value.value())?;
        }
        f()
    };
    Check { op: OP, f: &of, inputs: &inputs, names, second: false }.run(options)
}

/// Parameters whose values are restored on drop.
struct Restored(Vec<(Parameter, NamedTensor)>);

impl Restored {
    fn new(parameters: Vec<Parameter>) -> Restored {
        let value = |parameter: Parameter| {
            let value = parameter.tensor().into_value();
            (parameter, value)
        };
        Restored(crate::list(parameters.into_iter().map(value)))
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        for (parameter, value) in &self.0 {
            // The value has the same sizes and dtype as before, so this cannot fail.
            let _ = parameter.set(value);
        }
    }
}

/// New leaves with the values of the inputs.
#[track_caller]
fn fresh_leaves(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let mut leaves = Vec::with_capacity(inputs.len());
    for x in inputs {
        let leaf = Tensor::constant(x.value().deep_clone()?);
        leaves.push(if x.dtype().is_floating_point() { leaf.requiring_grad()? } else { leaf });
    }
    Ok(leaves)
}

/// A function and the leaves at which its derivative is checked.
struct Check<'a> {
    /// The function that the user called.
    op: &'static str,
    f: &'a dyn Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &'a [Tensor],
    /// The names of the inputs; empty if they are only numbered.
    names: &'a [String],
    /// Whether `f` is a gradient, whose own gradient is checked.
    second: bool,
}

/// An element whose derivatives differ.
struct Wrong {
    output: usize,
    input: usize,
    element: usize,
    /// The derivative from the tape, and the difference.
    numbers: [f64; 2],
    /// The difference divided by the tolerance.
    excess: f64,
}

impl Check<'_> {
    /// Checks the gradient of a weighted sum of the outputs, as a function of the inputs; the weights differ,
    /// so that no error cancels.
    #[track_caller]
    fn run_second(&self, options: GradCheckOptions) -> Result<Checked> {
        self.check_inputs()?;
        let y = enable_grad(|| (self.f)(self.inputs))?;
        self.check_output(&y)?;
        self.check_repeats(&y)?;
        let mut checked = Checked::default();
        for which in 0..self.inputs.len() {
            let gradient = |xs: &[Tensor]| {
                enable_grad(|| {
                    let y = (self.f)(xs)?;
                    let loss = y.mul(&weights(&y)?)?.sum(..)?;
                    let options =
                        BackwardOptions { create_graph: true, allow_unused: true, ..Default::default() };
                    if !loss.requires_grad() {
                        return xs[which].zeros_like();
                    }
                    let found = grad_with(&[&loss], &[&xs[which]], &[], options)?;
                    found[0].clone().map_or_else(|| xs[which].zeros_like(), Ok)
                })
            };
            checked = Check { f: &gradient, ..*self }.run(options)?;
        }
        Ok(checked)
    }

    #[track_caller]
    fn run(&self, options: GradCheckOptions) -> Result<Checked> {
        self.check_inputs()?;
        let y = enable_grad(|| (self.f)(self.inputs))?;
        // The gradient of a linear function does not depend on its input.
        if !self.second {
            self.check_output(&y)?;
        }
        self.check_repeats(&y)?;
        let narrow = self.inputs.iter().find(|x| x.dtype() != DType::F64);
        let warning = narrow
            .map(|x| format!("an input is of {}: differences in less than float64 prove little", x.dtype()));
        let (mut compared, mut worst) = (0, None::<Wrong>);
        let mut counts = vec![0; self.inputs.len()];
        for (input, count) in counts.iter_mut().enumerate() {
            let rows = self.on_the_tape(&y, input)?;
            for element in 0..self.inputs[input].numel() {
                let differences = self.by_difference(input, element, options)?;
                for (output, (row, (want, noise))) in rows.iter().zip(differences).enumerate() {
                    let got = row[element];
                    compared += 1;
                    let allowed = options.atol + options.rtol * want.abs() + noise;
                    let apart = (got - want).abs();
                    if apart <= allowed {
                        continue;
                    }
                    *count += 1;
                    let excess = if apart.is_nan() { f64::INFINITY } else { apart / allowed };
                    if worst.as_ref().is_none_or(|worst| worst.excess < excess) {
                        worst = Some(Wrong { output, input, element, numbers: [got, want], excess });
                    }
                }
            }
        }
        match worst {
            None => Ok(Checked { warning }),
            Some(worst) => Err(self.differs(&y, &worst, &counts, compared, warning)),
        }
    }

    #[track_caller]
    fn check_inputs(&self) -> Result<()> {
        if self.inputs.is_empty() {
            let message = "there are no inputs, so there is no derivative to check: the function is differentiated by them";
            return Err(Error::new(ErrorKind::Value, self.op, message));
        }
        let Some(x) = self.inputs.iter().find(|x| !x.dtype().is_floating_point()) else { return Ok(()) };
        let message = format!("expected inputs of floats, got {}", x.dtype());
        Err(Error::new(ErrorKind::DType, self.op, message)
            .with_operands([x.shape()])
            .with_repair("x.to(DType::F64)?"))
    }

    #[track_caller]
    fn check_output(&self, y: &Tensor) -> Result<()> {
        let options = BackwardOptions { retain_graph: true, allow_unused: true, ..Default::default() };
        let depends = y.requires_grad() && {
            let inputs: Vec<&Tensor> = crate::list(self.inputs.iter());
            let ones = y.ones_like()?.detach();
            grad_with(&[y], &inputs, &[Some(&ones)], options)?.iter().any(Option::is_some)
        };
        if depends {
            return Ok(());
        }
        let message = match y.dtype().is_floating_point() {
            true => "the output depends on no input on the tape: detach, no_grad or an op without a gradient, such as argmax, cut it off"
                .to_string(),
            false => format!("the output is of {}, which has no gradient", y.dtype()),
        };
        Err(Error::new(ErrorKind::Autograd, self.op, message).with_operands([y.shape()]))
    }

    /// Compares with the result of a second call.
    #[track_caller]
    fn check_repeats(&self, y: &Tensor) -> Result<()> {
        let again = enable_grad(|| (self.f)(self.inputs))?;
        let same = again.sizes() == y.sizes() && {
            let pairs = bits(y)?.into_iter().zip(bits(&again)?);
            pairs.into_iter().all(|(a, b)| a == b)
        };
        if same {
            return Ok(());
        }
        let message = "two calls of the function with the same inputs give different outputs, so it cannot be compared with differences";
        Err(Error::new(ErrorKind::Autograd, self.op, message)
            .with_operands([y.shape(), again.shape()])
            .with_repair(
                "manual_seed(0) first in the function, or model.eval() if dropout makes the difference",
            ))
    }

    /// The derivatives of each output by the elements of an input.
    #[track_caller]
    fn on_the_tape(&self, y: &Tensor, input: usize) -> Result<Vec<Vec<f64>>> {
        let (x, outputs) = (&self.inputs[input], y.numel());
        let nothing = || Ok(vec![0.0; x.numel()]);
        let mut rows = Vec::with_capacity(outputs);
        for output in 0..outputs {
            if !y.requires_grad() {
                rows.push(nothing()?);
                continue;
            }
            // Row `output` of the derivative is the gradient of that output alone.
            let mut one = vec![0.0; outputs];
            one[output] = 1.0;
            let one = Tensor::constant(NamedTensor::from_slice(&one, y.sizes())?.to(y.dtype())?);
            let options = BackwardOptions { retain_graph: true, allow_unused: true, ..Default::default() };
            let found = grad_with(&[y], &[x], &[Some(&one)], options)?.remove(0);
            rows.push(found.map_or_else(nothing, |gradient| gradient.to_vec::<f64>())?);
        }
        Ok(rows)
    }

    /// The central difference of each output by an element of an input, and a bound on its rounding error.
    #[track_caller]
    fn by_difference(
        &self,
        input: usize,
        element: usize,
        options: GradCheckOptions,
    ) -> Result<Vec<(f64, f64)>> {
        let eps = options.eps;
        let (above, below) = (self.moved(input, element, eps)?, self.moved(input, element, -eps)?);
        let difference = |(above, below): (f64, f64)| {
            let noise = 4.0 * f64::EPSILON * above.abs().max(below.abs()) / eps;
            ((above - below) / (2.0 * eps), if noise.is_finite() { noise } else { 0.0 })
        };
        Ok(crate::list(above.into_iter().zip(below).map(difference)))
    }

    /// The outputs after a step of one element.
    #[track_caller]
    fn moved(&self, input: usize, element: usize, step: f64) -> Result<Vec<f64>> {
        let (mut inputs, x) = (self.inputs.to_vec(), &self.inputs[input]);
        let mut values = x.to_vec::<f64>()?;
        values[element] += step;
        let mut moved = Tensor::constant(NamedTensor::from_slice(&values, x.shape())?.to(x.dtype())?);
        moved.requires_grad_(self.second)?;
        inputs[input] = moved;
        let y = if self.second { (self.f)(&inputs)? } else { no_grad(|| (self.f)(&inputs))? };
        y.to_vec::<f64>()
    }

    #[cold]
    #[track_caller]
    fn differs(
        &self,
        y: &Tensor,
        worst: &Wrong,
        counts: &[usize],
        compared: usize,
        warning: Option<String>,
    ) -> Error {
        let x = &self.inputs[worst.input];
        let called = |input: usize| match self.names.get(input) {
            Some(name) => format!("'{name}'"),
            None => format!("input {input}"),
        };
        let (input, count) = (called(worst.input), counts.iter().sum::<usize>());
        let wrong = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let wrong: Vec<String> =
            crate::list(wrong.map(|(input, count)| format!("{count} by {}", called(input))));
        let of_each = if wrong.len() > 1 {
            format!("; wrong are {}", crate::joined(&wrong, ", "))
        } else {
            String::new()
        };
        let [got, want] = worst.numbers;
        let (of, by) = (place(&y.shape(), worst.output), place(&x.shape(), worst.element));
        let message = format!(
            "{count} of {compared} derivatives differ. The worst: that of output{of} by {input}{by} is {got} on the tape and {want} by difference{of_each}"
        );
        let error = Error::new(ErrorKind::Autograd, self.op, message)
            .with_operands([x.shape()])
            .at(Location::caller());
        match warning {
            Some(warning) if self.names.is_empty() => {
                error.with_repair(format!("x.to(DType::F64)?, for {warning}"))
            }
            Some(warning) => {
                error.with_repair(format!("model.to(DType::F64)?, and its inputs too, for {warning}"))
            }
            None => error,
        }
    }
}

/// The position of element number `element`, by the names of the dims: ` [N=1, C=0]`, or ` [1, 0]` without
/// names.
pub fn place(shape: &Shape, mut element: usize) -> String {
    let mut places = Vec::with_capacity(shape.sizes.len());
    for (dim, size) in shape.sizes.iter().enumerate().rev() {
        let at = element % size;
        element /= size;
        places.push(match shape.names.get(dim) {
            Some(name) => format!("{name}={at}"),
            None => at.to_string(),
        });
    }
    places.reverse();
    if places.is_empty() { String::new() } else { format!(" [{}]", crate::joined(&places, ", ")) }
}

/// Elements as bits, which are equal for equal NaN.
#[track_caller]
fn bits(x: &Tensor) -> Result<Vec<u64>> {
    Ok(crate::list(x.value().to(DType::F64)?.to_vec::<f64>()?.into_iter().map(f64::to_bits)))
}

/// Fixed numbers between 0.5 and 1.5, different for each element.
fn weights(y: &Tensor) -> Result<Tensor> {
    let numbers: Vec<f64> = crate::list((0..y.numel()).map(|i| 1.0 + 0.5 * (1.0 + i as f64).sin()));
    Ok(Tensor::constant(NamedTensor::from_slice(&numbers, y.sizes())?))
}
