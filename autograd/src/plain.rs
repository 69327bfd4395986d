//! Arguments of the plain functions behind the methods of ops.
//!
//! A method such as `x.add(2.0)` is generic, so it is compiled in each crate that calls it. It only converts
//! its arguments to the types here and calls a function that is compiled once, in this crate.

#[doc(hidden)]
pub use crate::line::called_with;

use crate::autocast::{self, Class};
use crate::line::is_of_library;
use crate::operators::AsTensor;
use crate::parameter::Parameter;
use crate::tensor::Tensor;
use namegrad_core::names::{self, Meets, OfCall};
use namegrad_core::ops::OpInfo;
use namegrad_core::{DType, Error, NamedTensor, Result, Scalar};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::panic::Location;

/// A tensor or a parameter, passed by reference.
#[derive(Clone, Copy)]
pub enum Handle<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A parameter, whose tensor is read when the op runs.
    Parameter(&'a Parameter),
}

impl<'a> Handle<'a> {
    /// The tensor as it is now.
    #[inline(never)]
    #[track_caller]
    fn tensor(self) -> Result<Tensor> {
        match self {
            Handle::Tensor(tensor) => Ok(tensor.clone()),
            Handle::Parameter(parameter) => parameter.try_tensor(),
        }
    }

    /// [`tensor`](Self::tensor), by reference: that of a parameter is put in `place`.
    ///
    /// # Errors
    /// As [`Parameter::try_tensor`].
    #[inline]
    #[track_caller]
    pub fn tensor_in<'p>(self, place: &'p mut Option<Tensor>) -> Result<&'p Tensor>
    where
        'a: 'p,
    {
        match self {
            Handle::Tensor(tensor) => Ok(tensor),
            Handle::Parameter(parameter) => parameter.tensor_in(place),
        }
    }
}

/// An operand as it was passed.
#[derive(Clone, Copy)]
pub enum TensorOrNumber<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A parameter, whose tensor is read when the op runs.
    Parameter(&'a Parameter),
    /// A number.
    Number(Scalar),
}

impl<'a> TensorOrNumber<'a> {
    /// The tensor, or the number as a tensor for an op with a tensor of `dtype`.
    ///
    /// # Errors
    /// As [`tensor_in`](Self::tensor_in).
    #[track_caller]
    pub(crate) fn tensor(self, dtype: DType) -> Result<Cow<'a, Tensor>> {
        let mut place = None;
        match self {
            TensorOrNumber::Tensor(tensor) => return Ok(Cow::Borrowed(tensor)),
            other => other.tensor_in(dtype, &mut place)?,
        };
        Ok(Cow::Owned(place.expect("numbers and parameters are put there")))
    }

    /// [`tensor`](Self::tensor), for which memory is provided: a tensor that is made, or that of a parameter,
    /// is put in `place`. A `Cow` would be moved, which takes longer than an op on a small tensor.
    ///
    /// # Errors
    /// As [`Parameter::try_tensor`]; [`ErrorKind::OutOfMemory`](namegrad_core::ErrorKind::OutOfMemory).
    #[inline]
    #[track_caller]
    pub fn tensor_in<'p>(self, dtype: DType, place: &'p mut Option<Tensor>) -> Result<&'p Tensor>
    where
        'a: 'p,
    {
        match self {
            TensorOrNumber::Tensor(tensor) => Ok(tensor),
            TensorOrNumber::Parameter(parameter) => parameter.tensor_in(place),
            TensorOrNumber::Number(number) => number_in(number, dtype, place),
        }
    }

    /// The dtype of the tensor, or that which a number has alone.
    ///
    /// # Errors
    /// As [`Parameter::try_tensor`].
    #[track_caller]
    pub fn dtype(self) -> Result<DType> {
        match self {
            TensorOrNumber::Tensor(tensor) => Ok(tensor.dtype()),
            TensorOrNumber::Parameter(parameter) => Ok(parameter.try_tensor()?.dtype()),
            TensorOrNumber::Number(number) => Ok(number.dtype()),
        }
    }
}

#[inline(never)]
#[track_caller]
fn number_in(number: Scalar, dtype: DType, place: &mut Option<Tensor>) -> Result<&Tensor> {
    Ok(place.insert(Tensor::constant(NamedTensor::number_beside(number, dtype)?)))
}

/// The argument of an op for a tensor of its row.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    /// A tensor.
    One(&'a Tensor),
    /// A tensor or nothing.
    Optional(Option<&'a Tensor>),
    /// Any number of tensors.
    List(&'a [&'a Tensor]),
}

impl<'a> Input<'a> {
    /// The tensors that were passed.
    pub fn tensors(&self) -> &[&'a Tensor] {
        match self {
            Input::One(x) => std::slice::from_ref(x),
            Input::Optional(x) => x.as_slice(),
            Input::List(tensors) => tensors,
        }
    }
}

/// A tensor of a row as the function behind a method is given it.
#[doc(hidden)]
pub enum Given<'a> {
    /// A tensor or a parameter.
    One(Handle<'a>),
    /// A tensor or nothing.
    Optional(Option<&'a Tensor>),
    /// Any number of tensors.
    List(&'a [Tensor]),
    /// A tensor or a number, which becomes one beside the tensor of this number, or alone.
    Operand(TensorOrNumber<'a>, Option<usize>),
}

/// The facts of a function that is made of other ops.
#[doc(hidden)]
pub struct Composed {
    op: &'static str,
    class: Option<Class>,
    /// The names of its tensors, with what they meet.
    names: &'static [(&'static str, Meets)],
}

impl Composed {
    #[doc(hidden)]
    pub const fn new(op: &'static str, names: &'static [(&'static str, Meets)]) -> Composed {
        Composed { op, class: autocast::class_of(op), names }
    }
}

/// A function that is made of other ops, a closure. The outer error is of an argument, and the inner one of an
/// op that the function calls. As [`OnCasts`](autocast::OnCasts), it is a trait of its own.
#[doc(hidden)]
pub trait Function<T> {
    fn run(&self, inputs: &[Input<'_>]) -> Result<Result<T>>;
}

impl<T, F: Fn(&[Input<'_>]) -> Result<Result<T>>> Function<T> for F {
    #[inline]
    fn run(&self, inputs: &[Input<'_>]) -> Result<Result<T>> {
        self(inputs)
    }
}

/// A [`Function`] whose result is put in a place, so that what calls it is compiled once.
trait Step {
    fn run(&mut self, inputs: &[Input<'_>]) -> Result<Result<()>>;
}

struct Into<'f, T> {
    function: &'f dyn Function<T>,
    made: Option<T>,
}

impl<T> Step for Into<'_, T> {
    fn run(&mut self, inputs: &[Input<'_>]) -> Result<Result<()>> {
        Ok(self.function.run(inputs)?.map(|made| self.made = Some(made)))
    }
}

/// Calls a function that is made of other ops, with cast tensors under `autocast`. Its errors have the caller's
/// line and name the function and its tensors, rather than an op that it is made of.
///
/// # Errors
/// Those of the function.
#[doc(hidden)]
#[inline(never)]
#[track_caller]
pub fn composed<T>(call: &'static Composed, given: &[Given<'_>], function: &dyn Function<T>) -> Result<T> {
    let mut into = Into { function, made: None };
    composed_into(call, given, &mut into)?;
    Ok(into.made.expect("a function without an error has a result"))
}

#[track_caller]
fn composed_into(call: &'static Composed, given: &[Given<'_>], step: &mut dyn Step) -> Result<()> {
    let caller = Location::caller(); // a closure does not get it
    let mut places: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
    places.resize(given.len(), None);
    let mut lists = Vec::new();
    for (given, place) in given.iter().zip(&mut places) {
        match given {
            Given::One(Handle::Parameter(parameter)) => *place = Some(parameter.try_tensor()?),
            Given::List(tensors) => lists.push(tensors.iter().collect::<Vec<_>>()),
            _ => (),
        }
    }
    for at in 0..given.len() {
        let Given::Operand(operand, beside) = &given[at] else { continue };
        let dtype = match beside.map(|other| (&given[other], &places[other])) {
            None => DType::F64,
            Some((_, Some(made))) => made.dtype(),
            Some((Given::One(Handle::Tensor(x)) | Given::Optional(Some(x)), _)) => x.dtype(),
            Some((Given::Operand(other, _), _)) => other.dtype()?,
            Some(_) => DType::F64,
        };
        let mut place = None;
        operand.tensor_in(dtype, &mut place)?;
        places[at] = place;
    }
    let mut inputs: SmallVec<[Input<'_>; 4]> = SmallVec::new();
    let mut lists = lists.iter();
    for (given, place) in given.iter().zip(&places) {
        inputs.push(match (given, place) {
            (_, Some(made)) => Input::One(made),
            (Given::One(Handle::Tensor(x)) | Given::Operand(TensorOrNumber::Tensor(x), _), _) => {
                Input::One(x)
            }
            (Given::Optional(x), _) => Input::Optional(*x),
            _ => Input::List(lists.next().map_or(&[], |list| list)),
        });
    }
    // The closures of a row do not know their caller, and new tensors are on the device of the inputs.
    let _called = called_with(&inputs);
    let mut finish = |inputs: &[Input<'_>]| match step.run(inputs) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(renamed(error, call.op, inputs, call.names, caller)),
        // A closure has a line of its own, which is of the library.
        Err(error) if is_of_library(error.location()) => Err(error.at(caller)),
        Err(error) => Err(error),
    };
    match call.class.is_some() && autocast::is_on() {
        true => autocast::with_inputs(call.op, call.class, &inputs, &mut finish),
        false => finish(&inputs),
    }
}

/// A list of tensors as a method is given it.
///
/// # Errors
/// As [`Parameter::try_tensor`].
#[doc(hidden)]
#[inline]
#[track_caller]
pub fn tensors(given: impl IntoIterator<Item: AsTensor>) -> Result<Vec<Tensor>> {
    let mut tensors = Vec::new();
    for x in given {
        tensors.push(x.handle().tensor()?);
    }
    Ok(tensors)
}

/// The items of an array as a list.
#[doc(hidden)]
#[inline(never)]
pub fn listed<T, const N: usize>(items: [T; N]) -> Vec<T> {
    Vec::from(items)
}

/// An input that is one tensor.
#[doc(hidden)]
#[inline(never)]
pub fn tensor<'a>(inputs: &[Input<'a>], at: usize) -> &'a Tensor {
    match inputs[at] {
        Input::One(x) => x,
        _ => unreachable!("a row says which of its inputs are one tensor"),
    }
}

/// An input, if the op was called with it.
#[doc(hidden)]
#[inline(never)]
pub fn tensor_or_none<'a>(inputs: &[Input<'a>], at: usize) -> Option<&'a Tensor> {
    match inputs[at] {
        Input::Optional(x) => x,
        _ => None,
    }
}

/// The value of an input that is one tensor.
#[inline]
pub(crate) fn one<'a>(inputs: &[Input<'a>], at: usize) -> &'a NamedTensor {
    tensor(inputs, at).value()
}

/// The value of an input, if the op was called with it.
#[inline]
pub(crate) fn optional<'a>(inputs: &[Input<'a>], at: usize) -> Option<&'a NamedTensor> {
    tensor_or_none(inputs, at).map(Tensor::value)
}

/// The values of all inputs of an op.
pub(crate) fn values<'a>(inputs: &[Input<'a>]) -> Vec<&'a NamedTensor> {
    let mut values = Vec::with_capacity(inputs.len());
    for input in inputs {
        for x in input.tensors() {
            values.push(x.value());
        }
    }
    values
}

/// The result of the function of an op. Its errors have the caller's line and name the op that the user
/// called, and its inputs, rather than an op that the function is made of.
#[inline]
#[track_caller]
pub fn named<T>(
    result: Result<T>,
    op: &'static str,
    inputs: &[Input<'_>],
    names: &'static [(&'static str, Meets)],
) -> Result<T> {
    match result {
        Ok(made) => Ok(made),
        Err(error) => Err(renamed(error, op, inputs, names, Location::caller())),
    }
}

/// The error of a call of an op of core, or of its in-place form, in the words of its row.
#[cold]
pub(crate) fn failed(error: Error, op: &'static str, inputs: &[Input<'_>]) -> Error {
    let is_op = |info: &&OpInfo| info.name == op || info.in_place == Some(op);
    let Some(info) = namegrad_core::ops::all().find(is_op) else { return error };
    let names: Vec<(&str, Meets)> = info.tensors.iter().map(|tensor| (tensor.name, tensor.meets)).collect();
    in_words(error, op, inputs, &names)
}

/// The error of a call, in the words of its row.
fn in_words(error: Error, op: &'static str, inputs: &[Input<'_>], names: &[(&'static str, Meets)]) -> Error {
    let mut all: Vec<OfCall<'_>> = Vec::new();
    for (input, (name, meets)) in inputs.iter().zip(names) {
        // A plain number has no dims.
        let tensors = input.tensors().iter().map(|x| x.value()).filter(|x| !x.is_number());
        all.extend(tensors.map(|x| (*name, *meets, x)));
    }
    names::of_call(error, op, &all)
}

#[cold]
fn renamed(
    error: Error,
    op: &'static str,
    inputs: &[Input<'_>],
    names: &'static [(&'static str, Meets)],
    caller: &'static Location<'static>,
) -> Error {
    let error = in_words(error, op, inputs, names).at(caller);
    // A repair that sets an option, such as `.stride(1)`, is one of the options of the function.
    let setter = error.repair().filter(|repair| repair.starts_with('.')).map(str::to_string);
    let Some(setter) = setter else { return error };
    let mut options = String::new();
    let function = op.rsplit('.').next().unwrap_or(op);
    for word in function.trim_end_matches('_').split('_') {
        options += &(word[..1].to_uppercase() + &word[1..]);
    }
    error.with_repair(format!("{options}Options::new(){setter}"))
}
