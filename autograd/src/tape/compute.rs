//! How the ops of rows run. A row is a [`Recipe`], which the functions here read, so that the casts under
//! `autocast`, the checks and the record are compiled once and not for each op.

use super::record::{
    Args, Formula, JointFormula, is_followed, is_tracked, record, record_edges, record_jointly,
};
use super::{is_forward, is_looking, is_plain, linear, nan};
use crate::autocast::{self, Class, Off};
use crate::line::{called_here, device_of};
use crate::observe;
use crate::plain::{self, Input, TensorOrNumber};
use crate::rules::refuse;
use crate::tensor::Tensor;
use crate::vmap::Call;
use namegrad_core::ops::by_element::Kernel;
use namegrad_core::{Device, NamedTensor, Result, Scalar};
use std::any::Any;
use std::panic::Location;
use std::sync::Arc;

/// The facts of a row that do not depend on a call.
pub(crate) struct Recipe {
    pub(crate) op: &'static str,
    /// The class of the op under `autocast`.
    pub(crate) class: Option<Class>,
    /// The inputs without a derivative: their numbers and names.
    pub(crate) refused: &'static [(usize, &'static str)],
    /// Whether the result is a mask, which is not looked at.
    pub(crate) is_truth: bool,
    /// Whether each element of the result depends on the elements of the inputs at the same place.
    pub(crate) by_element: bool,
    pub(crate) formulas: Formulas,
}

/// The derivatives of a row.
pub(crate) enum Formulas {
    /// A formula for each input; none if the result is a constant.
    Each(&'static [Formula]),
    /// Formulas for several inputs, or of several outputs.
    Joint(&'static [JointFormula]),
}

/// The arguments that formulas see, which are copied only if one of the inputs requires a gradient.
pub(crate) trait Save {
    fn save(&self) -> Args;
}

impl<A: Any + Clone + Send + Sync> Save for A {
    fn save(&self) -> Args {
        Arc::new(self.clone())
    }
}

/// The kernel of an op with one output, a closure.
///
/// It is a trait of its own because an object of `Fn` has two more functions, which would be compiled for each
/// op. The same is true of the other kernels here.
pub(crate) trait OneOutput {
    /// Computes the output, and adds outputs that only formulas see to the list.
    fn run(&self, inputs: &[Input<'_>], hidden: &mut Vec<NamedTensor>) -> Result<NamedTensor>;
}

impl<F: Fn(&[Input<'_>], &mut Vec<NamedTensor>) -> Result<NamedTensor>> OneOutput for F {
    #[inline]
    fn run(&self, inputs: &[Input<'_>], hidden: &mut Vec<NamedTensor>) -> Result<NamedTensor> {
        self(inputs, hidden)
    }
}

/// The kernel of an op with several outputs.
pub(crate) trait ManyOutputs {
    fn run(&self, inputs: &[Input<'_>]) -> Result<Vec<NamedTensor>>;
}

impl<F: Fn(&[Input<'_>]) -> Result<Vec<NamedTensor>>> ManyOutputs for F {
    #[inline]
    fn run(&self, inputs: &[Input<'_>]) -> Result<Vec<NamedTensor>> {
        self(inputs)
    }
}

/// The recorded form of an in-place op.
pub(crate) trait RecordedForm {
    fn run(&self, x: &Tensor) -> Result<Tensor>;
}

impl<F: Fn(&Tensor) -> Result<Tensor>> RecordedForm for F {
    #[inline]
    fn run(&self, x: &Tensor) -> Result<Tensor> {
        self(x)
    }
}

/// The kernel of an in-place op.
pub(crate) trait InPlaceKernel {
    fn run(&self, x: &mut NamedTensor) -> Result<()>;
}

impl<F: Fn(&mut NamedTensor) -> Result<()>> InPlaceKernel for F {
    #[inline]
    fn run(&self, x: &mut NamedTensor) -> Result<()> {
        self(x)
    }
}

impl dyn OneOutput + '_ {
    /// [`run`](OneOutput::run) on the device of the inputs.
    #[track_caller]
    fn run_on(
        &self,
        op: &'static str,
        inputs: &[Input<'_>],
        hidden: &mut Vec<NamedTensor>,
    ) -> Result<NamedTensor> {
        let _device = device_of(op, inputs)?;
        self.run(inputs, hidden)
    }
}

impl dyn ManyOutputs + '_ {
    /// [`run`](ManyOutputs::run) on the device of the inputs.
    #[track_caller]
    fn run_on(&self, op: &'static str, inputs: &[Input<'_>]) -> Result<Vec<NamedTensor>> {
        let _device = device_of(op, inputs)?;
        self.run(inputs)
    }
}

impl Recipe {
    /// Whether the inputs are cast first.
    #[inline]
    fn casts(&self) -> bool {
        self.class.is_some() && autocast::is_on()
    }

    /// The steps before the kernel.
    #[inline]
    #[track_caller]
    fn start(&self, inputs: &[Input<'_>]) -> Result<()> {
        if !self.is_truth {
            observe::starting();
        }
        self.check(inputs)
    }

    /// Returns an error if an input without a derivative requires a gradient.
    #[inline]
    #[track_caller]
    fn check(&self, inputs: &[Input<'_>]) -> Result<()> {
        for (at, name) in self.refused {
            for x in inputs[*at].tensors() {
                refuse(self.op, name, x)?;
            }
        }
        Ok(())
    }

    /// The result of an op with one output.
    #[track_caller]
    fn finish(
        &self,
        inputs: &[Input<'_>],
        value: NamedTensor,
        hidden: &[NamedTensor],
        args: Option<&dyn Save>,
    ) -> Tensor {
        if self.is_truth {
            return Tensor::constant(value);
        }
        match self.formulas {
            Formulas::Each(formulas) => record(self.op, inputs, value, hidden, saved(inputs, args), formulas),
            Formulas::Joint(formulas) => {
                let args = saved(inputs, args);
                let mut made = record_jointly(self.op, inputs, vec![value], hidden, args, formulas);
                made.pop().expect("one result of one value")
            }
        }
    }
}

/// The arguments, if a gradient will see them.
#[inline]
fn saved(inputs: &[Input<'_>], args: Option<&dyn Save>) -> Option<Args> {
    args.filter(|_| is_tracked(inputs)).map(Save::save)
}

/// Runs an op with one output and records it.
#[track_caller]
pub(crate) fn compute(
    recipe: &'static Recipe,
    inputs: &[Input<'_>],
    kernel: &dyn OneOutput,
    args: Option<&dyn Save>,
) -> Result<Tensor> {
    compute_parts(recipe, inputs, kernel, args, &mut Vec::new())
}

/// [`compute`]; outputs that only formulas see are added to `hidden`.
#[track_caller]
fn compute_parts(
    recipe: &'static Recipe,
    inputs: &[Input<'_>],
    kernel: &dyn OneOutput,
    args: Option<&dyn Save>,
    hidden: &mut Vec<NamedTensor>,
) -> Result<Tensor> {
    if recipe.casts() {
        return autocast::with_inputs(recipe.op, recipe.class, inputs, &mut |inputs| {
            compute(recipe, inputs, kernel, args)
        });
    }
    if is_forward()
        && let Formulas::Each(formulas) = recipe.formulas
        && let Some(made) = linear(formulas, inputs, &|inputs| compute(recipe, inputs, kernel, args))
    {
        return made;
    }
    recipe.start(inputs)?;
    let caller = Location::caller();
    let made = match is_forward() {
        true => of_batches(recipe, inputs, kernel, args, hidden),
        false => kernel.run_on(recipe.op, inputs, hidden),
    };
    match made {
        Ok(value) if recipe.is_truth || !is_followed(inputs) => Ok(Tensor::constant(value)),
        Ok(value) => Ok(recipe.finish(inputs, value, hidden, args)),
        Err(error) => Err(plain::failed(error, recipe.op, inputs).at(caller)), // a closure does not get it
    }
}

/// The kernel on batches, or on plain values if no input is a batch.
#[cold]
#[track_caller]
fn of_batches(
    recipe: &'static Recipe,
    inputs: &[Input<'_>],
    kernel: &dyn OneOutput,
    args: Option<&dyn Save>,
    hidden: &mut Vec<NamedTensor>,
) -> Result<NamedTensor> {
    let _called = called_here();
    let of_slice = || {
        let mut hidden = Vec::new();
        let value = kernel.run_on(recipe.op, inputs, &mut hidden)?;
        hidden.insert(0, value);
        Ok(hidden)
    };
    let run = |inputs: &[Input<'_>]| {
        let mut hidden = Vec::new();
        let mut all = vec![compute_parts(recipe, inputs, kernel, args, &mut hidden)?];
        all.extend(hidden.into_iter().map(Tensor::constant));
        Ok(all)
    };
    let (op, by_element) = (recipe.op, recipe.by_element);
    let call = Call { op, by_element, inputs, of_slice: &of_slice, returned: Some(1), run: &run, args };
    match call.outputs()? {
        Some(mut values) => {
            hidden.extend(values.drain(1..));
            Ok(values.remove(0))
        }
        None => kernel.run_on(op, inputs, hidden),
    }
}

/// Runs an op with several outputs and records it. The first `returned` outputs are results, the others are
/// only for formulas.
#[track_caller]
pub(crate) fn compute_all(
    recipe: &'static Recipe,
    inputs: &[Input<'_>],
    kernel: &dyn ManyOutputs,
    returned: Option<usize>,
    args: Option<&dyn Save>,
) -> Result<Vec<Tensor>> {
    if recipe.casts() {
        return autocast::with_inputs(recipe.op, recipe.class, inputs, &mut |inputs| {
            compute_all(recipe, inputs, kernel, returned, args)
        });
    }
    recipe.start(inputs)?;
    let caller = Location::caller();
    let made = match is_forward() {
        true => all_of_batches(recipe, inputs, kernel, returned, args),
        false => kernel.run_on(recipe.op, inputs),
    };
    let mut values = made.map_err(|error| plain::failed(error, recipe.op, inputs).at(caller))?;
    let hidden = returned.map_or_else(Vec::new, |returned| values.split_off(returned));
    let Formulas::Joint(formulas) = recipe.formulas else {
        if is_looking() {
            nan::look(recipe.op, &plain::values(inputs), &values.iter().chain(&hidden).collect::<Vec<_>>());
        }
        return Ok(values.into_iter().map(Tensor::constant).collect());
    };
    Ok(record_jointly(recipe.op, inputs, values, &hidden, saved(inputs, args), formulas))
}

/// The kernel of an op with several outputs on batches, or on plain values if no input is a batch.
#[cold]
#[track_caller]
fn all_of_batches(
    recipe: &'static Recipe,
    inputs: &[Input<'_>],
    kernel: &dyn ManyOutputs,
    returned: Option<usize>,
    args: Option<&dyn Save>,
) -> Result<Vec<NamedTensor>> {
    let _called = called_here();
    // All outputs are results here, also those that only formulas see.
    let run = |inputs: &[Input<'_>]| compute_all(recipe, inputs, kernel, None, args);
    let (op, by_element) = (recipe.op, recipe.by_element);
    let call =
        Call { op, by_element, inputs, of_slice: &|| kernel.run_on(op, inputs), returned, run: &run, args };
    match call.outputs()? {
        Some(values) => Ok(values),
        None => kernel.run_on(op, inputs),
    }
}

/// The in-place form of an op, of the tensor that is written to and the `others`. An op that is followed is
/// recorded by `made`; otherwise the kernel writes to the value. A form that may change sizes, such as a
/// transposition, replaces the tensor.
#[track_caller]
pub(crate) fn in_place<'w>(
    op: &'static str,
    written: &'w mut Tensor,
    others: &[Input<'_>],
    may_change_sizes: bool,
    made: &dyn RecordedForm,
    kernel: &dyn InPlaceKernel,
) -> Result<&'w mut Tensor> {
    let caller = Location::caller(); // closures do not get it
    if !is_followed(&[Input::One(written)]) && !is_followed(others) && !is_forward() {
        let is_plain = written.value().device() != Device::Meta && matches!(device_of(op, others), Ok(None));
        let device = match is_plain {
            true => Ok(None),
            false => device_of(op, &[&[Input::One(written)], others].concat()),
        };
        let done = device.and_then(|_device| kernel.run(written.in_buffer()));
        let Err(error) = done else { return Ok(written.written()) };
        let inputs = [&[Input::One(written)], others].concat();
        return Err(plain::failed(error, op, &inputs).at(caller));
    }
    let made = {
        // The op casts nothing, because it keeps the dtype of what it writes to.
        let (_off, _called) = (Off::enter(), called_here());
        made.run(written).map_err(|error| error.at(caller))
    };
    match may_change_sizes {
        true => written.become_made(op, made),
        false => written.assign_made(op, made),
    }
}

/// An elementwise op of a tensor, or of a tensor and an operand: its recipe and its kernel.
pub struct ByElement {
    pub(crate) recipe: Recipe,
    /// The name of the in-place form; empty if there is none.
    pub(crate) in_place: &'static str,
    pub(crate) kernel: &'static Kernel,
}

impl ByElement {
    /// Whether a call on inputs that require no gradient only runs the kernel.
    #[inline]
    fn is_plain(&self) -> bool {
        is_plain() && !self.recipe.casts()
    }

    #[inline(never)]
    #[track_caller]
    fn run(
        &'static self,
        inputs: &[Input<'_>],
        values: &[&NamedTensor],
        scalars: &[Scalar],
        args: Option<&dyn Save>,
        called: &'static str,
    ) -> Result<Tensor> {
        let recipe = &self.recipe;
        if recipe.casts() {
            return autocast::with_inputs(recipe.op, recipe.class, inputs, &mut |inputs| {
                self.run(inputs, &plain::values(inputs), scalars, args, called)
            });
        }
        let is_plain = is_plain(); // asked once, as most programs only compute and record
        if !is_plain && !recipe.is_truth {
            observe::starting();
        }
        recipe.check(inputs)?;
        let made = match !is_plain && is_forward() {
            true => self.of_batches(inputs, values, scalars, args, called),
            false => self.kernel.call(values, scalars),
        };
        match (made, &recipe.formulas) {
            (Err(error), _) => Err(plain::failed(error, called, inputs)),
            (Ok(value), Formulas::Each(formulas)) if !recipe.is_truth && (is_plain || !is_looking()) => {
                Ok(record_edges(recipe.op, inputs, value, &[], saved(inputs, args), formulas))
            }
            (Ok(value), _) => Ok(recipe.finish(inputs, value, &[], args)),
        }
    }

    /// The kernel on batches, or on plain values if no input is a batch.
    #[cold]
    fn of_batches(
        &'static self,
        inputs: &[Input<'_>],
        values: &[&NamedTensor],
        scalars: &[Scalar],
        args: Option<&dyn Save>,
        called: &'static str,
    ) -> Result<NamedTensor> {
        let of_slice = || self.kernel.call(values, scalars).map(|value| vec![value]);
        let run = |inputs: &[Input<'_>]| {
            self.run(inputs, &plain::values(inputs), scalars, args, called).map(|y| vec![y])
        };
        let op = self.recipe.op;
        let call =
            Call { op, by_element: true, inputs, of_slice: &of_slice, returned: None, run: &run, args };
        match call.outputs()? {
            Some(mut values) => Ok(values.remove(0)),
            None => self.kernel.call(values, scalars),
        }
    }

    #[track_caller]
    fn run_in_place<'w>(
        &'static self,
        written: &'w mut Tensor,
        other: Option<&Tensor>,
        scalars: &[Scalar],
        args: Option<&dyn Save>,
    ) -> Result<&'w mut Tensor> {
        let x = &*written;
        let both = [Input::One(x), Input::One(other.unwrap_or(x))];
        let inputs = &both[..1 + usize::from(other.is_some())];
        if is_followed(inputs) || is_forward() {
            let _off = Off::enter();
            let made = self.run(inputs, &plain::values(inputs), scalars, args, self.in_place);
            return written.assign_made(self.in_place, made);
        }
        let value = other.map(Tensor::value);
        match self.kernel.call_in_place(written.in_buffer(), value.as_slice(), scalars) {
            Ok(()) => Ok(written.written()),
            Err(error) => {
                let both = [Input::One(written), Input::One(other.unwrap_or(written))];
                Err(plain::failed(error, self.in_place, &both[..1 + usize::from(other.is_some())]))
            }
        }
    }
}

/// An elementwise op of a tensor without arguments.
#[track_caller]
pub(crate) fn unary(op: &'static ByElement, x: &Tensor) -> Result<Tensor> {
    run_unary(op, x, &[], None)
}

/// An elementwise op of a tensor. `scalars` are its arguments, and `args` are those that formulas see.
#[inline(never)]
#[track_caller]
pub(crate) fn unary_with(
    op: &'static ByElement,
    x: &Tensor,
    scalars: &[Scalar],
    args: Option<&dyn Save>,
) -> Result<Tensor> {
    run_unary(op, x, scalars, args)
}

#[inline(always)]
#[track_caller]
fn run_unary(
    op: &'static ByElement,
    x: &Tensor,
    scalars: &[Scalar],
    args: Option<&dyn Save>,
) -> Result<Tensor> {
    if x.tracked().is_none() && op.is_plain() {
        return match op.kernel.call(&[x.value()], scalars) {
            Ok(value) => Ok(Tensor::from_parts_at_once(value, None)), // which is faster than `constant`
            Err(error) => Err(plain::failed(error, op.recipe.op, &[Input::One(x)])),
        };
    }
    op.run(&[Input::One(x)], &[x.value()], scalars, args, op.recipe.op)
}

/// [`unary`] in place.
#[inline(never)]
#[track_caller]
pub(crate) fn unary_<'w>(
    op: &'static ByElement,
    written: &'w mut Tensor,
    scalars: &[Scalar],
    args: Option<&dyn Save>,
) -> Result<&'w mut Tensor> {
    written.check_in_place(op.in_place)?;
    op.run_in_place(written, None, scalars, args)
}

/// An elementwise op of a tensor and a tensor or a number.
#[track_caller]
pub(crate) fn binary(op: &'static ByElement, a: &Tensor, b: TensorOrNumber<'_>) -> Result<Tensor> {
    let mut place = None;
    let b = b.tensor_in(a.dtype(), &mut place)?;
    if a.tracked().is_none() && b.tracked().is_none() && op.is_plain() {
        return match op.kernel.call(&[a.value(), b.value()], &[]) {
            Ok(value) => Ok(Tensor::from_parts_at_once(value, None)),
            Err(error) => Err(plain::failed(error, op.recipe.op, &[Input::One(a), Input::One(b)])),
        };
    }
    op.run(&[Input::One(a), Input::One(b)], &[a.value(), b.value()], &[], None, op.recipe.op)
}

/// [`unary`] of the result of another op, without arguments.
#[inline(never)]
#[track_caller]
pub(crate) fn unary_of(op: &'static ByElement, x: Result<Tensor>) -> Result<Tensor> {
    unary(op, &x?)
}

/// [`binary`] of the result of another op.
#[inline(never)]
#[track_caller]
pub(crate) fn binary_of(op: &'static ByElement, a: Result<Tensor>, b: TensorOrNumber<'_>) -> Result<Tensor> {
    binary(op, &a?, b)
}

/// [`binary`] in place.
#[inline(never)]
#[track_caller]
pub(crate) fn binary_<'w>(
    op: &'static ByElement,
    written: &'w mut Tensor,
    b: TensorOrNumber<'_>,
) -> Result<&'w mut Tensor> {
    written.check_in_place(op.in_place)?;
    let mut place = None;
    let b = b.tensor_in(written.dtype(), &mut place)?;
    op.run_in_place(written, Some(b), &[], None)
}
