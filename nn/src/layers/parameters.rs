//! The parameters of layers: how new ones are made, and how layers read them.

use super::*;
use crate::Entry;
use namegrad_core::NamedTensor;
use std::panic::Location;

/// The layer, or the error of one of its parts as one of the layer, with the line of the caller.
#[track_caller]
pub(super) fn made<L>(layer: &'static str, made: Result<L>) -> Result<L> {
    let caller = Location::caller(); // not that of the closure
    made.map_err(|error| error.of(layer).at(caller))
}

/// An error for parameters that are not floating-point.
#[track_caller]
pub(super) fn check_dtype(layer: &'static str, dtype: DType) -> Result<()> {
    if dtype.is_floating_point() {
        return Ok(());
    }
    let message = format!("the parameters of a layer are floating-point, not {dtype}");
    Err(Error::new(ErrorKind::DType, layer, message).with_repair(".dtype(DType::F32)"))
}

/// A parameter with these dims, uniform in ±`bound`.
#[track_caller]
pub(super) fn uniform(layer: &'static str, dims: &[Named], bound: f64, dtype: DType) -> Result<Parameter> {
    check_dtype(layer, dtype)?;
    let shape = shape_of(dims).map_err(|error| error.of(layer))?;
    let value = TensorOptions::new().dtype(dtype).uniform(shape, -bound, bound);
    Parameter::new(value.map_err(|error| error.of(layer))?)
}

/// A tensor with these dims, all of whose elements are `value`.
#[track_caller]
pub(super) fn filled(layer: &'static str, dims: &[Named], value: f64, dtype: DType) -> Result<Tensor> {
    check_dtype(layer, dtype)?;
    let shape = shape_of(dims).map_err(|error| error.of(layer))?;
    TensorOptions::new().dtype(dtype).full(shape, value).map_err(|error| error.of(layer))
}

/// A dim with another name if this is that of a dim beside it: the input dim `C_in` of a weight beside `C`.
#[track_caller]
pub(super) fn beside((name, size): Named, taken: &[Option<Name>], suffix: &str) -> Result<Named> {
    match name {
        Some(own) if taken.contains(&name) => Ok((Some(Name::new(&format!("{own}{suffix}"))?), size)),
        _ => Ok((name, size)),
    }
}

/// A weight that another layer has, too, if it has these dims.
#[track_caller]
pub(super) fn shared(layer: &'static str, weight: Parameter, dims: [Named; 2]) -> Result<Parameter> {
    let (own, wanted) = (weight.shape(), shape_of(&dims)?);
    let kind = if own.sizes != wanted.sizes {
        ErrorKind::Shape
    } else if (0..2).any(|dim| own.names.get(dim).zip(wanted.names.get(dim)).is_some_and(|(a, b)| a != b)) {
        ErrorKind::NameMismatch
    } else {
        return Ok(weight);
    };
    let message = format!("the weight of this layer has the dims {wanted}, and the given one has {own}");
    Err(Error::new(kind, layer, message).with_operands([own]))
}

/// A list of `count` modules, which are made one by one. That they fit in memory is known from the first.
#[track_caller]
pub(super) fn repeated<M: Field>(
    layer: &'static str,
    count: usize,
    make: &mut dyn FnMut(usize) -> Result<M>,
) -> Result<Vec<M>> {
    let caller = Location::caller(); // not that of the closure
    let mut list = Vec::new();
    for at in 0..count {
        let module = make(at).map_err(|error| error.at(caller))?;
        if at == 0 {
            let mut bytes = size_of::<M>();
            module.visit(&mut Visitor::new(&mut |_, entry| {
                if let Entry::Parameter(parameter) = entry {
                    // Beside the elements, a place and the parts of a tensor.
                    bytes += numel(&parameter.shape().sizes) * parameter.dtype().itemsize() + 512;
                }
            }));
            NamedTensor::check_room(layer, count, bytes)?;
        }
        list.push(module);
    }
    Ok(list)
}

/// [`read_any`] without names, for a layer that puts its path into errors itself.
#[inline(never)]
pub(super) fn unnamed(parameter: Option<&Parameter>) -> Result<Option<Tensor>> {
    parameter.map(|parameter| parameter.try_tensor()?.rename(None)).transpose()
}

/// The value that was made, or the default for an error. The first error is kept, and `build` returns it.
pub(crate) fn kept<T: Default>(made: Result<T>, checked: &mut Result<()>) -> T {
    made.unwrap_or_else(|error| {
        if checked.is_ok() {
            *checked = Err(error);
        }
        T::default()
    })
}

/// `x`, in which the dim that is contracted has the name that it has in the weight: in a layer from `C` to `C`,
/// that is `C_in`.
pub(super) fn as_in_weight<'x>(x: &'x Tensor, dim: usize, wanted: Option<Name>) -> Result<Cow<'x, Tensor>> {
    match (x.name(dim), wanted) {
        (Some(own), Some(wanted)) if own != wanted => {
            x.rename([(own.as_str(), wanted.as_str())]).map(Cow::Owned)
        }
        _ => Ok(Cow::Borrowed(x)),
    }
}

/// The value of a parameter, as options take it.
pub(super) fn read(parameter: &Option<Parameter>) -> Result<Option<Cow<'static, Tensor>>> {
    parameter.as_ref().map(|parameter| parameter.try_tensor().map(Cow::Owned)).transpose()
}
