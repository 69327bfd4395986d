//! The parameters of a distribution: numbers or tensors, which are broadcast to each other and checked.

use crate::common::*;
use crate::frame::is_checked;

/// A parameter as it was given, its name and the values that it can have.
pub(crate) type Given<'a> = (&'static str, &'a dyn Operand, Support);

/// The parameters of `name` as float tensors of one dtype, the default one if all are numbers.
#[track_caller]
pub(crate) fn floats(name: &'static str, given: &[(&'static str, &dyn Operand)]) -> Result<Vec<Tensor>> {
    floats_or(name, given, default_dtype())
}

/// [`floats`], but numbers without a tensor are not rounded: as 0-d tensors of `f64`, they do not widen
/// others.
#[track_caller]
pub(crate) fn operands(name: &'static str, given: &[(&'static str, &dyn Operand)]) -> Result<Vec<Tensor>> {
    floats_or(name, given, DType::F64)
}

#[track_caller]
fn floats_or(
    name: &'static str,
    given: &[(&'static str, &dyn Operand)],
    alone: DType,
) -> Result<Vec<Tensor>> {
    let mut dtype = None;
    for (parameter, operand) in given {
        let own = operand.either().dtype()?;
        let is_number = matches!(operand.either(), TensorOrNumber::Number(_))
            || *parameter == "total_count" && !own.is_floating_point(); // counts can be integers
        if !is_number && !own.is_floating_point() {
            let message = format!("{parameter} must be floating-point, but its dtype is {own}");
            let repair = format!("{parameter}.to(DType::{:?})?", default_dtype());
            return Err(Error::new(ErrorKind::DType, name, message).with_repair(repair));
        }
        if !is_number {
            dtype = Some(dtype.map_or(own, |dtype: DType| dtype.promote(own)));
        }
    }
    let dtype = dtype.unwrap_or(alone);
    let mut tensors = Vec::with_capacity(given.len());
    for (_, operand) in given {
        let x = operand.operand_beside(dtype)?;
        tensors.push(if x.dtype() == dtype { x.into_owned() } else { x.to(dtype)? });
    }
    Ok(tensors)
}

/// The parameters of a distribution whose parameters all have the batch dims: broadcast and checked.
#[track_caller]
pub(crate) fn parameters<const N: usize>(
    name: &'static str,
    given: [Given<'_>; N],
) -> Result<([Tensor; N], Frame)> {
    let tensors = broadcast(name, &given)?;
    let frame = Frame::of(name, &tensors[0]);
    Ok((tensors.try_into().expect("one for each that was given"), frame))
}

#[track_caller]
fn broadcast(name: &'static str, given: &[Given<'_>]) -> Result<Vec<Tensor>> {
    let operands: Vec<_> = given.iter().map(|(parameter, operand, _)| (*parameter, *operand)).collect();
    let tensors = floats(name, &operands)?;
    if is_checked() {
        for ((parameter, _, support), x) in given.iter().zip(&tensors) {
            support.check(name, parameter, x)?;
        }
    }
    let names: Vec<&str> = given.iter().map(|(parameter, ..)| *parameter).collect();
    unified(name, &names, &tensors.iter().collect::<Vec<_>>())
}

/// Tensors broadcast to each other; an error says which parameters they are.
#[track_caller]
pub(crate) fn unified(name: &'static str, parameters: &[&str], tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
    if let [x] = tensors {
        return Ok(vec![Tensor::clone(x)]);
    }
    match Tensor::broadcast_tensors(tensors) {
        Ok(spread) => Ok(spread),
        Err(error) => {
            let shapes = tensors.iter().map(|x| x.shape());
            // Names that do not meet say more than the sizes of their dims.
            let ones =
                tensors.iter().map(|x| Tensor::zeros(vec![1; x.ndim()])?.rename(Some(x.names().clone())));
            let by_name = Tensor::broadcast_tensors(ones.collect::<Result<Vec<_>>>()?).err();
            let error = by_name.unwrap_or(error).of(name).with_operands(shapes).at(Location::caller());
            Err(error.context(format_args!("{}: ", parameters.join(" and "))))
        }
    }
}

/// Checks a parameter, unless checks are off.
#[track_caller]
pub(crate) fn check(name: &'static str, parameter: &str, support: &Support, x: &Tensor) -> Result<()> {
    if is_checked() { support.check(name, parameter, x) } else { Ok(()) }
}

/// The position of the dim of events in a parameter.
#[track_caller]
pub(crate) fn event_dim(name: &'static str, parameter: &str, x: &Tensor, dim: &Dim) -> Result<usize> {
    if x.ndim() == 0 {
        let message = format!("{parameter} must have a dim of events, but it has no dims");
        return Err(Error::new(ErrorKind::Shape, name, message));
    }
    dim.look_up(name, &[x.value()])
}

/// A parameter with the dim of events at the end.
#[track_caller]
pub(crate) fn with_events(name: &'static str, parameter: &str, x: &Tensor, dim: &Dim) -> Result<Tensor> {
    let place = event_dim(name, parameter, x, dim)?;
    moved_last(x, &[place])
}
